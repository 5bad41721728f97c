"""The example notebooks run from the first cell to the last, and the site is made of what there is."""

import json
from functools import cache

import pandas as pd
import plotly.graph_objects as go
import pytest

import calviz
from calviz.figures.figure import Figure
from documentation.docstrings import MODULES, command_pages, markdown, python_pages
from documentation.notebooks import ROOT, run_notebook
from documentation.site import notebook_page

NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


@cache
def run_once(notebook):
    return tuple(run_notebook(notebook))


def code_cells(notebook):
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_holds_no_output(notebook):
    assert not any(cell["outputs"] for cell in code_cells(notebook))
    kinds = {"plot()": go.Figure, "frame()": pd.DataFrame}
    shown = 0
    for cell in run_once(notebook):
        for end, kind in kinds.items():
            if cell.kind == "code" and cell.source.endswith(end):
                assert isinstance(cell.shown, kind)
                shown += 1
    assert shown >= 3


@pytest.mark.slow
def test_the_audit_says_what_it_found():
    cells = run_once(ROOT / "examples" / "audit.ipynb")
    shown = [cell.shown for cell in cells if cell.shown is not None]
    assert [type(s) for s in shown] == [pd.DataFrame, go.Figure, pd.DataFrame, pd.DataFrame]
    before, best, after = "".join(cell.printed for cell in cells).strip().splitlines()
    assert before.startswith("Overconfident")
    assert best.split(": ")[1] in {"temperature", "ets", "isotonic", "irm"}
    assert after != before


def test_the_gallery_draws_every_figure():
    source = "".join(
        "".join(cell["source"]) for cell in code_cells(ROOT / "examples" / "gallery.ipynb")
    )
    figures = {
        name
        for name in dir(calviz.figures)
        if isinstance(kind := getattr(calviz.figures, name), type) and issubclass(kind, Figure)
    }
    assert len(figures) > 9
    assert not {name for name in figures if f"figures.{name}.compute(" not in source}


def test_a_page_of_a_notebook_holds_what_it_prints_and_draws(tmp_path):
    cells = [("markdown", "# Title"), ("code", "print('<b>')\nx = 1"), ("code", "x + 1")]
    path = tmp_path / "small.ipynb"
    values = [
        {"cell_type": kind, "id": str(i), "source": [text]} for i, (kind, text) in enumerate(cells)
    ]
    path.write_text(json.dumps({"cells": values}))
    page = notebook_page(path)
    assert page.startswith("# Title\n\n```python\nprint(")
    assert ">&lt;b&gt;</pre>" in page
    assert page.endswith(">2</pre>\n")


def test_every_page_of_the_site_is_there_or_made():
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    pages, todo = set(), yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    while todo:
        (entry,) = todo.pop().values()
        todo, pages = (todo + entry, pages) if isinstance(entry, list) else (todo, pages | {entry})
    names = {f"tutorials/{notebook.stem}.md" for notebook in NOTEBOOKS}
    written = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert pages == names | written | {"python.md", "commands.md"}


def test_every_public_name_and_command_is_written_down():
    python, commands = python_pages(), command_pages()
    for name in calviz.__all__:
        if callable(getattr(calviz, name)):
            assert f"### {name}\n" in python
    assert all(f"`{module}`" in python for module in MODULES)
    for command in ("audit", "compare-models", "app"):
        assert f"## {command}\n\n```text\nUsage: calviz {command} " in commands


def test_a_docstring_becomes_markdown():
    text = markdown(
        "Add.\n\nParameters\n----------\nx, y : int\n    Two\n    numbers.\n\nExamples\n--------\n>>> 1"
    )
    assert (
        text
        == "Add.\n\n**Parameters**\n\n- **x, y** : int: Two numbers.\n\n**Examples**\n\n```python\n>>> 1\n```"
    )
