"""A name of a class, or of a type, means one thing in the whole package."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]


def named_in(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Name and line of each class, and of each type that a module names, such as ``Scheme = Literal[...]``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):
            yield node.name, node.lineno
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            is_type_variable = "TypeVar(" in (value := ast.unparse(node.value)) or "Spec(" in value
            if name.lstrip("_")[:1].isupper() and not name.isupper() and not is_type_variable:
                yield name, node.lineno


def test_names_are_unique():
    homes = defaultdict(list)
    for path in sorted((ROOT / "calviz").rglob("*.py")):
        for name, line in named_in(ast.parse(path.read_text(encoding="utf-8"))):
            homes[name].append(f"{path.relative_to(ROOT)}:{line}")
    assert len(homes) > 500
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}


def test_what_counts_as_a_name():
    code = "class A: ...\nSide = Literal['b']\nLIMIT = 3\nT = TypeVar('T')\nc = Side\ndef f():\n    class D: ..."
    assert sorted(name for name, _ in named_in(ast.parse(code))) == ["A", "D", "Side"]
