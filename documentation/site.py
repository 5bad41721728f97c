"""Generated pages of the site: a hook of mkdocs, which calls `on_files`."""

from __future__ import annotations

import posixpath
import re
import sys
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from documentation.docstrings import command_pages, python_pages
from documentation.notebooks import ROOT, Cell, run_notebook

#: Path of plotly.js in the site, so that nothing is fetched from elsewhere.
PLOTLY = "assets/plotly.min.js"
#: A link to a path that starts with ``../``.
_OUT = re.compile(r"\[([^\]]+)\]\((\.\./[^)\s]+)\)")


def generated_pages() -> Iterator[tuple[str, str]]:
    """Address and content of each generated file."""
    from plotly.offline import get_plotlyjs

    for notebook in sorted((ROOT / "examples").glob("*.ipynb")):
        yield f"tutorials/{notebook.stem}.md", notebook_page(notebook)
    yield "python.md", python_pages()
    yield "commands.md", command_pages()
    yield PLOTLY, get_plotlyjs()


def notebook_page(notebook: Path) -> str:
    """Convert a notebook to Markdown, with the output of its cells."""
    return "\n\n".join(part for cell in run_notebook(notebook) for part in _parts(cell)) + "\n"


def _parts(cell: Cell) -> Iterator[str]:
    if cell.kind == "markdown":
        yield cell.source
        return
    yield f"```python\n{cell.source}\n```"
    if cell.printed:
        yield _text(cell.printed.rstrip())
    if cell.shown is not None:
        yield _shown(cell.shown)


def _shown(value: Any) -> str:
    """Convert a value to HTML as a notebook would show it."""
    if hasattr(value, "to_plotly_json"):
        script = f'<script src="../{PLOTLY}"></script>'
        return f"<div>{script}{value.to_html(full_html=False, include_plotlyjs=False)}</div>"
    html = getattr(value, "_repr_html_", lambda: None)()
    return f"<div>{html}</div>" if html else _text(repr(value))


def _text(text: str) -> str:
    return f'<pre style="white-space: pre-wrap">{escape(text)}</pre>'


def on_files(files: Any, config: Any) -> Any:
    """Add the generated pages; called by mkdocs."""
    from mkdocs.structure.files import File

    sys.path.insert(0, str(ROOT))  # mkdocs has undone the change at the top
    for address, content in generated_pages():
        files.append(File.generated(config, address, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Lead links to notebooks to their pages, and replace links to other files outside the site by their paths; called by mkdocs."""
    folder = posixpath.dirname(page.file.src_uri)

    def inside(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, match[2].split("#")[0]))
        if notebook := re.fullmatch(r"\.\./examples/(\w+)\.ipynb", target):
            return f"[{match[1]}]({posixpath.relpath(f'tutorials/{notebook[1]}.md', folder)})"
        return f"{match[1]} (`{target.lstrip('./')}`)" if target.startswith("..") else match[0]

    return _OUT.sub(inside, markdown)
