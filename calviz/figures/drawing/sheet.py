"""The sheet that a figure is drawn on: colours, width, the caption above and the legend below."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from calviz.figures.drawing.parts import LINE, Trace, caption_label, legend, wrapped
from calviz.figures.drawing.style import Palette, layout

if TYPE_CHECKING:
    import plotly.graph_objects as go

#: Traces and layout, the arguments of a plotly figure.
Picture = dict[str, Any]

#: Below this width panels stand one above the other, and labels are short.
_NARROW = 620
#: Pixels of a character of the caption, and its fewest characters on a line.
_CHARACTER, _FEWEST = 7.6, 24
#: Pixels of an entry of the legend without its text, and of a letter; the width of a narrow place on a desk, where none is known.
_ENTRY, _LETTER, _USUAL = 48, 6.4, 560


@dataclass(frozen=True)
class Sheet:
    """What a figure is drawn on.

    Attributes
    ----------
    palette : Palette
        The colours of the theme.
    caption : tuple of str
        Lines above the picture, plain text; none where there is no caption.
    width : int or None
        Pixels that the page has for it, where that is known.
    """

    palette: Palette
    caption: tuple[str, ...] = ()
    width: int | None = None

    @property
    def narrow(self) -> bool:
        """Whether panels are stacked."""
        return self.width is not None and self.width < _NARROW

    def _legend_room(self, traces: Sequence[Trace], beside: int) -> int:
        """Pixels for the legend below a panel with these margins; plotly sets entries in a row, or in columns of equal width."""
        return _legend_room(traces, (self.width or _USUAL) - beside)

    def picture(
        self,
        traces: Iterable[Trace],
        *,
        inner: int,
        margins: tuple[int, int, int, int],
        entries: bool = True,
        above: int = 8,
        air: int = 6,
        legend_over: Literal["paper", "container"] = "paper",
        annotations: Iterable[dict[str, Any]] = (),
        **own: Any,
    ) -> Picture:
        """Lay out panels with the caption above and the legend below.

        Parameters
        ----------
        traces : iterable of dict
        inner : int
            Pixels of the panels' height.
        margins : tuple of int
            Pixels left and right of the panels, above them without the caption, and below them without the legend.
        entries : bool
            Whether traces that have a name are in a legend.
        above, air : int
            Pixels between the panels and the caption, and what the caption takes beyond its lines.
        legend_over : {"paper", "container"}
            Whether the legend is centred below the panels or on the page.
        annotations : iterable of dict
        **own
            Axes, shapes and what else a layout has.
        """
        left, right, top, bottom = margins
        drawn = list(traces)
        beside = left + right if legend_over == "paper" else 0
        below = self._legend_room(drawn, beside) if entries else 0
        lines = self.caption_lines(left)
        top += LINE * len(lines) + air if lines else 0
        height = top + inner + bottom + below
        shown: dict[str, Any] = {"showlegend": False}
        if below:
            place = {"xref": legend_over, "yref": "container", "y": below / height}
            # Of one entry alone plotly would draw none, and leave its room empty.
            shown = {"legend": legend(self.palette, **place), "showlegend": True}
        return {
            "data": drawn,
            "layout": layout(
                self.palette,
                height=height,
                margin={"l": left, "r": right, "t": top, "b": bottom + below},
                annotations=[*caption_label(lines, self.palette, above=above), *annotations],
                **shown,
                **own,
            ),
        }

    def caption_lines(self, left: int) -> list[str]:
        """Break the caption for the width beside the left margin, or for a phone where it is not known."""
        if self.width is None:
            return wrapped(self.caption)
        return wrapped(self.caption, max(_FEWEST, round((self.width - left) / _CHARACTER)))


def _legend_room(traces: Iterable[Any], width: float) -> int:
    names = [
        str(t["name"])
        for t in traces
        if _of(t, "name") and _of(t, "showlegend") is not False and _of(t, "visible") is not False
    ]
    if not names:
        return 0
    widths = [_ENTRY + _LETTER * len(re.sub("<[^>]*>", "", name)) for name in names]
    lines = 1 if sum(widths) <= width else -(-len(names) // max(1, int(width / max(widths))))
    return LINE * lines + 10


def _of(trace: Any, name: str) -> Any:
    # A trace of plotly's own has no `get`.
    return trace[name] if name in trace else None  # noqa: SIM401


def with_legend_for(drawn: go.Figure, width: int) -> go.Figure:
    """Give the legend below a drawing the room that it needs at this width, which is known only on the page.

    Parameters
    ----------
    drawn : plotly.graph_objects.Figure
        Drawn for no known width; changed in place.
    width : int
        Pixels, of the whole drawing.
    """
    layout = drawn.layout
    if layout.legend.yref != "container" or not layout.height or layout.legend.y is None:
        return drawn
    beside = (layout.margin.l or 0) + (layout.margin.r or 0) if layout.legend.xref == "paper" else 0
    below = round(layout.legend.y * layout.height)
    change = _legend_room(drawn.data, width - beside) - below
    layout.height += change
    layout.margin.b += change
    layout.legend.y = (below + change) / layout.height
    return drawn
