"""What docstrings say: the shapes of arrays, and what belongs in a folder."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "calviz"
ARRAYS = {"FloatArray", "IntArray", "BoolArray"}
#: "shape (n,)", "a sum of any shape", or the shape alone: "(n, K)".
SHAPE = re.compile(r"\bshapes?\b|\((\.\.\.|[A-Za-z]\w*),( [^)]*)?\)")


def array_functions(code: str) -> Iterator[tuple[str, str]]:
    """Name and docstring of each public function and method that takes or gives arrays."""
    bodies = [("", ast.parse(code).body)]
    for prefix, body in bodies:
        for node in body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                bodies.append((f"{node.name}.", node.body))
            if not isinstance(node, ast.FunctionDef) or node.name.startswith("_"):
                continue
            arguments = [a.annotation for a in (*node.args.args, *node.args.kwonlyargs)]
            named = {
                name.id
                for annotation in (*arguments, node.returns)
                if annotation is not None
                for name in ast.walk(annotation)
                if isinstance(name, ast.Name)
            }
            if named & ARRAYS:
                yield prefix + node.name, ast.get_docstring(node) or ""


@pytest.mark.slow
@pytest.mark.parametrize("room", ["core", "sample", "metrics"])
def test_array_functions_name_shapes(room):
    seen, silent = 0, []
    for path in sorted((PACKAGE / room).rglob("*.py")):
        for name, text in array_functions(path.read_text(encoding="utf-8")):
            seen += 1
            if not SHAPE.search(text):
                silent.append(f"{path.relative_to(ROOT)}: {name}")
    assert seen > 20
    assert not silent, "\n".join(silent)


def test_a_function_without_a_shape_is_seen():
    code = 'class A:\n    def f(self, x: FloatArray | None) -> int:\n        """Rows (all of them)."""\n'
    ((name, text),) = array_functions(code)
    assert name == "A.f"
    assert not SHAPE.search(text)
    assert SHAPE.search("From (n, K) to a number.")
    assert SHAPE.search("Shape (...,), or a number of shape ().")


def test_every_folder_says_what_belongs_in_it():
    """A paragraph."""
    short = []
    for path in sorted(PACKAGE.glob("**/__init__.py")):
        folder = path.parent.relative_to(PACKAGE)
        text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        if len(text) < 80:
            short.append(f"{folder}: {text}")
    assert not short, "\n".join(short)
