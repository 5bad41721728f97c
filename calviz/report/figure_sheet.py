"""Several figures side by side with panel letters, as in a paper: one page that exports SVG, PNG and PDF."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass

from calviz.core.errors import OptionError
from calviz.figures.base import Figure
from calviz.figures.drawing.print_style import COLUMNS, drawn_width, printed
from calviz.figures.drawing.style import PALETTES
from calviz.report.blocks import plain_json
from calviz.report.html import as_element, write_page
from calviz.specs.figure import Theme
from calviz.text.words import full_sentence, shorten

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
