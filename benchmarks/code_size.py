"""Count what somebody has to read: files, lines of code, imports between files, rooms, floors, file names that recur.

A line of code holds a token that is no docstring and no comment. An import is a pair of files, one of which imports
the other: when it is loaded, inside a function, or for type checking. A room is a folder or a module at the top of the
package; a floor is a layer of the import contract in `pyproject.toml` that holds rooms.

    python -m benchmarks.code_size                 # the checkout that contains this file
    python -m benchmarks.code_size --root ../other  # another one, such as a git worktree of an earlier commit
"""

from __future__ import annotations

import argparse
import ast
import io
import tokenize
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
_BLANK = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}  # fmt: skip


@dataclass(frozen=True)
class Size:
    """What a checkout holds; keys of `lines`, and the pairs of `imports`, are paths below its root."""

    lines: dict[str, int]
    imports: set[tuple[str, str]]
    floors: int

    @cached_property
    def rooms(self) -> list[str]:
        """Folders and modules at the top of the package."""
        tops = {Path(file).parts[1] for file in self.lines if file.startswith("calviz/")}
        return sorted(top.removesuffix(".py") for top in tops if not top.startswith("__"))

    @cached_property
    def recurring(self) -> list[str]:
        """Names that several files of the package have, but for those of Python."""
        names = Counter(Path(file).name for file in self.lines if file.startswith("calviz/"))
        return sorted(n for n, times in names.items() if times > 1 and not n.startswith("__"))

    def counts(self) -> dict[str, float]:
        """The numbers of the table, by their names."""
        sizes, total = sorted(self.lines.values()), sum(self.lines.values())
        return {
            "files": len(sizes),
            "code lines": total,
            "code lines per file, median": median(sizes),
            "code lines per file, most": sizes[-1],
            "imports between files": len(self.imports),
            "imports per 100 code lines": round(100 * len(self.imports) / total, 1),
            "rooms": len(self.rooms),
            "floors": self.floors,
            "recurring file names": len(self.recurring),
        }


def measured(root: Path = ROOT) -> Size:
    """Count the package, the pages and `app.py` of a checkout."""
    files = [*root.glob("calviz/**/*.py"), *root.glob("pages/*.py"), root / "app.py"]
    modules = {_module(path.relative_to(root)): str(path.relative_to(root)) for path in files}
    lines, imports = {}, set()
    for name, file in modules.items():
        text = (root / file).read_text(encoding="utf-8")
        tree = parsed(text)
        lines[file] = len(_code_lines(text, tree))
        imports |= {(file, modules[other]) for other in _imported(tree, modules) if other != name}
    return Size(lines, imports, _floors(root))


@cache
def parsed(text: str) -> ast.Module:
    """Return the syntax tree of a module; tests of the code read each several times."""
    return ast.parse(text)


def _module(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield all statements below a module or a statement; without the expressions in them, a tenth of the nodes."""
    for part in ("body", "orelse", "finalbody", "handlers", "cases"):
        for statement in getattr(node, part, ()):
            yield statement
            yield from statements(statement)


def _code_lines(text: str, tree: ast.Module) -> set[int]:
    documents: set[int] = set()
    for node in (tree, *statements(tree)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            value = first.value if isinstance(first, ast.Expr) else None
            if first and isinstance(value, ast.Constant) and isinstance(value.value, str):
                documents.update(range(first.lineno, (first.end_lineno or 0) + 1))
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    spans = (range(t.start[0], t.end[0] + 1) for t in tokens if t.type not in _BLANK)
    return {line for span in spans for line in span} - documents


def _imported(tree: ast.Module, modules: dict[str, str]) -> Iterator[str]:
    """Modules that a file imports; `from package import name` is one of the package if it hands the name on."""
    for node in statements(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            found = {name if name in modules else node.module for name in names}
        elif isinstance(node, ast.Import):
            found = {alias.name for alias in node.names}
        else:
            continue
        yield from found & modules.keys()


def _floors(root: Path) -> int:
    tools = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    layers = next(c["layers"] for c in tools["importlinter"]["contracts"] if c["type"] == "layers")
    return sum("__" not in layer for layer in layers)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--root", type=Path, default=ROOT, help="another checkout")
    for name, count in measured(parser.parse_args().root).counts().items():
        print(f"{name:<28}{count:>9,}")


if __name__ == "__main__":
    main()
