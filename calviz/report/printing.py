"""Figures for papers and printers: several on one sheet with panel letters, and PDF by a browser of the machine."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from calviz.core.entry_specs import Theme
from calviz.core.errors import NotAvailable, OptionError
from calviz.core.words import full_sentence, shorten
from calviz.figures.figure import Figure
from calviz.figures.style import COLUMNS, PALETTES, drawn_width, printed
from calviz.report.content import plain_json
from calviz.report.document import as_element, write_page

#: Letters of the panels.
LETTERS = "abcdefghijklmnopqrstuvwxyz"
#: Gap between panels, in pixels of the drawing.
GAP = 24


@dataclass(frozen=True)
class Panel:
    """A figure on the sheet.

    Attributes
    ----------
    figure : Figure
        The computed figure.
    wide : bool
        Whether it takes the full width of the sheet.
    """

    figure: Figure
    wide: bool = False


def caption_of(panels: Sequence[Panel]) -> str:
    """Compose one caption that describes the panels, one sentence per figure."""
    sentences = [full_sentence(panel.figure.describe()) for panel in panels]
    if len(sentences) > 1:
        sentences = [f"({letter}) {text}" for letter, text in zip(LETTERS, sentences, strict=False)]
    return shorten(" ".join(sentences), 5_000)


def to_sheet(
    panels: Sequence[Panel],
    *,
    columns: int = 1,
    name: str = "figure",
    caption: bool = False,
    theme: Theme = "light",
) -> str:
    """Write a page that draws the panels, and saves them as one SVG or PNG, or copies them to the clipboard.

    When printed, the page holds only the figure, on paper of its size.

    Parameters
    ----------
    panels : sequence of Panel
        1 to 26 panels.
    columns : {1, 2}
        Whether the sheet is as wide as one column of a paper (3.25 in) or two (6.75 in, two panels in a row).
    name : str
        Name of the files.
    caption : bool
        Whether the image includes the caption, below the panels.
    theme : {"light", "dark"}
        Colours of the page around the figure. The figure itself is always black on white, as it is saved.

    Raises
    ------
    OptionError
        If there are no panels or too many, or for any other number of columns.
    """
    if not 0 < len(panels) <= len(LETTERS):
        raise OptionError(f"a figure has 1 to {len(LETTERS)} panels, got {len(panels)}.")
    if columns not in COLUMNS:
        raise OptionError(f"a figure is 1 or 2 columns wide, got {columns}.")
    whole = drawn_width(columns)
    part = whole if columns == 1 else (whole - GAP) // 2
    spec = {
        "name": re.sub(r"[^\w.-]+", "-", shorten(name, 80)).strip("-.") or "figure",
        "width": whole,
        "gap": GAP,
        "inches": COLUMNS[columns],
        "letters": LETTERS[: len(panels)] if len(panels) > 1 else "",
        "caption": caption_of(panels) if caption else "",
        "panels": [
            _panel_spec(panel, whole if panel.wide or len(panels) == 1 else part)
            for panel in panels
        ],
    }
    alt = " ".join(panel.figure.describe() for panel in panels)
    return write_page(
        "figure_sheet.html",
        "sheet.js",
        spec=as_element(json.dumps(spec)),
        alt=alt,
        theme=theme,
        palette=PALETTES[theme],
    )


def _panel_spec(panel: Panel, width: int) -> dict[str, object]:
    picture = printed(panel.figure.plot(theme="light", width=width))
    return {"width": width, "figure": json.loads(plain_json(picture))}


# ---- PDF


#: Environment variable that names the browser, if it is not found automatically.
BROWSER_VARIABLE = "CALVIZ_CHROMIUM"
_BROWSERS = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
    *("microsoft-edge", "msedge"),
)
_BROWSER_PATHS = {
    "darwin": (
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
        "/Applications/Chromium.app/Contents/MacOS/Chromium",
        "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    ),
    "win32": (
        r"C:\Program Files\Google\Chrome\Application\chrome.exe",
        r"C:\Program Files (x86)\Google\Chrome\Application\chrome.exe",
        r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
    ),
}
#: Nothing is fetched, stored or asked; the time budget is for the page's scripts.
_BROWSER_OPTIONS = (
    *("--headless", "--disable-gpu", "--no-first-run", "--no-default-browser-check"),
    *("--disable-extensions", "--disable-background-networking", "--disable-sync"),
    "--host-resolver-rules=MAP * ~NOTFOUND",
    *("--no-pdf-header-footer", "--virtual-time-budget=20000"),
)
#: Timeout in seconds.
PDF_SECONDS = 180


def find_browser() -> str | None:
    """Return the path of Chromium, Chrome or Edge, or of the program that CALVIZ_CHROMIUM names; None if there is none."""
    return next(_candidates(), None)


def _candidates() -> Iterator[str]:
    named = os.environ.get(BROWSER_VARIABLE)
    if named:
        path = shutil.which(named)
        yield from [path] if path else []
        return
    yield from (path for name in _BROWSERS if (path := shutil.which(name)))
    yield from (place for place in _BROWSER_PATHS.get(sys.platform, ()) if Path(place).is_file())


def why_no_pdf() -> str:
    """Return why this machine cannot write a PDF; empty if it can."""
    if find_browser() is not None:
        return ""
    named = os.environ.get(BROWSER_VARIABLE)
    reason = (
        f"{BROWSER_VARIABLE} names '{named}', which is not a program"
        if named
        else "there is none here"
    )
    return (
        f"a PDF needs Chromium, Chrome or Edge, and {reason}; install one, or open the HTML file in "
        "any browser and print it."
    )


def to_pdf(html: str) -> bytes:
    """Print a self-contained page as PDF.

    Parameters
    ----------
    html : str

    Returns
    -------
    bytes

    Raises
    ------
    NotAvailable
        If there is no browser, or printing fails.
    """
    browser = find_browser()
    if browser is None:
        raise NotAvailable(why_no_pdf())
    with tempfile.TemporaryDirectory(prefix="calviz-pdf-", ignore_cleanup_errors=True) as folder:
        page, printed = Path(folder, "page.html"), Path(folder, "page.pdf")
        page.write_text(html, encoding="utf-8")
        command = [
            browser,
            *_BROWSER_OPTIONS,
            # Chromium refuses to run its sandbox as root, as in a container; the page is our own and loads nothing.
            *(["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []),
            f"--user-data-dir={Path(folder, 'profile')}",
            f"--print-to-pdf={printed}",
            page.as_uri(),
        ]
        try:
            subprocess.run(command, capture_output=True, timeout=PDF_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            reason = "took too long" if isinstance(error, subprocess.TimeoutExpired) else str(error)
            raise NotAvailable(f"{browser} did not print: {reason}.") from None
        content = printed.read_bytes() if printed.is_file() else b""
    if not content.startswith(b"%PDF-"):
        raise NotAvailable(
            f"{browser} did not print; open the HTML file in any browser and print it."
        )
    return content
