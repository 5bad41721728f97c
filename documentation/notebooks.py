"""Run a notebook without Jupyter: its cells in order, with the output of each."""

from __future__ import annotations

import ast
import contextlib
import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Cell:
    """One cell with its output.

    Attributes
    ----------
    kind : {"markdown", "code"}
    source : str
    printed : str
        Text written to standard output.
    shown : Any
        Value of the last statement if that is an expression; else None.
    """

    kind: str
    source: str
    printed: str = ""
    shown: Any = None


def run_notebook(notebook: Path) -> Iterator[Cell]:
    """Run a notebook in the folder that holds ``sample_data``; errors of cells are passed on."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.chdir(ROOT):
        for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
            source = "".join(cell["source"])
            if cell["cell_type"] != "code":
                yield Cell("markdown", source)
                continue
            printed = io.StringIO()
            with contextlib.redirect_stdout(printed):
                shown = _run(source, f"{notebook.name}, {cell['id']}", names)
            yield Cell("code", source, printed.getvalue(), shown)


def _run(source: str, place: str, names: dict[str, Any]) -> Any:
    """Execute a cell and return the value of its last expression."""
    tree = ast.parse(source, place)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, place, "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), place, "eval"), names)
