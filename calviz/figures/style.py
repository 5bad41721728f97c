"""Colours, fonts and axes of all figures, and how they are saved and printed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calviz.core.entry_specs import Theme
from calviz.core.words import shorten

if TYPE_CHECKING:
    import plotly.graph_objects as go


FONT = '"Source Sans 3", "Source Sans Pro", "Helvetica Neue", Helvetica, Arial, sans-serif'


@dataclass(frozen=True)
class Palette:
    """The colours of a theme.

    The four data colours are those of Okabe and Ito with a contrast of at least 3:1 to white; on the dark background they are
    lighter, with at least 6:1. Each has one role: blue is observed, vermillion too high, purple too low, green the target.
    Colour is never the only difference: patterns, dashes and shapes differ too.
    """

    paper: str
    ink: str
    muted: str
    grid: str
    neutral: str
    #: Opacity of the range of a calibrated model.
    haze: float = 0.16
    blue: str = "#0072B2"
    vermillion: str = "#D55E00"
    green: str = "#009E73"
    purple: str = "#CC79A7"

    @property
    def calibrated(self) -> str:
        """Transparent grey for the range of a calibrated model, the same in all figures."""
        return self.glaze(self.ink, self.haze)

    def tint(self, colour: str, share: float) -> str:
        """Mix a `share` of `colour` into the paper colour; opaque."""
        ink, paper = _rgb(colour), _rgb(self.paper)
        mixed = (round(p + share * (i - p)) for i, p in zip(ink, paper, strict=True))
        return "#{:02x}{:02x}{:02x}".format(*mixed)

    def glaze(self, colour: str, opacity: float) -> str:
        """Return `colour` with an opacity."""
        return f"rgba({', '.join(str(v) for v in _rgb(colour))}, {opacity})"


PALETTES: dict[Theme, Palette] = {
    "light": Palette(
        paper="#ffffff", ink="#1f2430", muted="#5b6270", grid="#e6e8ec", neutral="#7d8594"
    ),
    "dark": Palette(
        paper="#0e1117",
        ink="#f0f2f6",
        muted="#b4bbc7",
        grid="#2a303c",
        neutral="#98a0b0",
        haze=0.24,
        blue="#56b4e9",
        vermillion="#f58a3c",
        green="#34c79a",
        purple="#e59cc6",
    ),
}


def _rgb(colour: str) -> tuple[int, int, int]:
    value = int(colour[1:], 16)
    return value >> 16, value >> 8 & 255, value & 255


def axis(
    palette: Palette, title: str = "", *, size: int = 14, standoff: int = 10, **attributes: Any
) -> dict[str, Any]:
    """Describe an axis with thin frame, light grid and small ticks; dragging is off, so that a phone can scroll.

    `title` must be escaped; `size` is its font size, `standoff` its distance from the axis.
    """
    font = {"size": size, "color": palette.ink}
    return {
        "showline": True,
        "mirror": True,
        "linecolor": palette.neutral,
        "linewidth": 1,
        "showgrid": True,
        "gridcolor": palette.grid,
        "gridwidth": 1,
        "zeroline": False,
        "ticks": "outside",
        "ticklen": 4,
        "tickcolor": palette.neutral,
        "tickfont": {"size": 12, "color": palette.muted},
        "fixedrange": True,
        **({"title": {"text": title, "font": font, "standoff": standoff}} if title else {}),
        **attributes,
    }


def layout(palette: Palette, **attributes: Any) -> dict[str, Any]:
    """Describe a layout with everything that plotly would otherwise take from its default template, which streamlit changes."""
    return {
        "template": "none",
        "autosize": True,
        "paper_bgcolor": palette.paper,
        "plot_bgcolor": palette.paper,
        "font": {"family": FONT, "size": 13, "color": palette.ink},
        "hovermode": "closest",
        "dragmode": False,
        "hoverlabel": {
            "bgcolor": palette.paper,
            "bordercolor": palette.neutral,
            "font": {"family": FONT, "size": 13, "color": palette.ink},
            "align": "left",
        },
        "modebar": {
            "bgcolor": "rgba(0, 0, 0, 0)",
            "color": palette.muted,
            "activecolor": palette.ink,
        },
        **attributes,
    }


def plot_config(filename: str = "calviz", *, image: str = "png") -> dict[str, Any]:
    """Return plotly's configuration for showing a figure in the browser.

    There is no logo, nothing is sent anywhere, and images are saved by the browser itself at three times
    their size on screen.

    Parameters
    ----------
    filename : str
        File name of the saved image, without its ending; unsuitable characters are replaced.
    image : {"png", "svg"}
        Format of the saved image.
    """
    return {
        "displaylogo": False,
        # Grey boxes that would cover what is above the figure.
        "displayNotifier": False,
        "showTips": False,
        "showSendToCloud": False,
        "responsive": True,
        "scrollZoom": False,
        "doubleClick": False,
        "displayModeBar": "hover",
        "modeBarButtons": [["toImage"]],
        "toImageButtonOptions": {
            "format": image,
            "filename": re.sub(r"[^\w.-]+", "-", shorten(filename, 80)).strip("-.") or "calviz",
            "scale": 3,
        },
    }


# ---- Print


#: Factor by which a drawing is scaled down in print: letters of 12 pixels become 7 points high.
SHRINK = 1.3
#: Width in inches of one column, and of two with the space between them, in common conference styles.
COLUMNS = {1: 3.25, 2: 6.75}
#: Pixels per inch.
_PIXELS = 96


def drawn_width(columns: int) -> int:
    """Return the width, in pixels, at which to draw a figure of one or two columns."""
    return round(COLUMNS[columns] * _PIXELS * SHRINK)


def printed(drawn: go.Figure, *, theme: Theme = "light") -> go.Figure:
    """Remove what is only meant for the screen: grey areas behind the data, the grid, and boxes behind labels.

    Parameters
    ----------
    drawn : plotly.graph_objects.Figure
        Changed in place.
    theme : {"light", "dark"}
        Theme in which it was drawn.
    """
    palette = PALETTES[theme]
    grey = palette.calibrated
    drawn.data = [trace for trace in drawn.data if getattr(trace, "fillcolor", None) != grey]
    ink = palette.ink
    plain = {"showgrid": False, "linecolor": ink, "tickcolor": ink, "tickfont": {"color": ink}}
    drawn.update_shapes(line_color=ink, selector={"line.color": palette.neutral})
    # Boxes behind labels would erase data.
    return (
        drawn.update_annotations(bgcolor="rgba(0, 0, 0, 0)").update_xaxes(plain).update_yaxes(plain)
    )
