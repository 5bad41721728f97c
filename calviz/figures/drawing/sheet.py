"""The sheet on which a figure is drawn: colours, width, caption above and legend below."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from calviz.figures.drawing.curves_and_labels import LINE, Trace, caption_label, legend, wrapped
from calviz.figures.drawing.style import Palette, layout

if TYPE_CHECKING:
    import plotly.graph_objects as go

#: Traces and layout, the arguments of a plotly figure.
Picture = dict[str, Any]

#: Below this width in pixels, panels are stacked and labels are short.
_NARROW = 620
#: Height of a single panel of curves on wide and narrow pages, in pixels.
_TALL, _LOW = 340, 280
#: Width of a character of the caption in pixels, and minimum number of characters per line.
_CHARACTER, _FEWEST = 7.6, 24
#: Widths of a legend entry without its text and of a letter, and of a narrow column on a desktop, assumed if none is known; in pixels.
_ENTRY, _LETTER, _USUAL = 48, 6.4, 560


@dataclass(frozen=True)
class Sheet:
    """Colours, caption and width for a drawing.

    Attributes
    ----------
    palette : Palette
        The colours of the theme.
    caption : tuple of str
        Lines of plain text above the picture; empty without a caption.
    width : int or None
        Width available on the page, in pixels, if known.
    """

    palette: Palette
    caption: tuple[str, ...] = ()
    width: int | None = None

    @property
    def narrow(self) -> bool:
        """Whether the page is so narrow that panels are stacked."""
        return self.width is not None and self.width < _NARROW

    @property
    def panel_height(self) -> int:
        """Height of a single panel of curves in pixels."""
        return _LOW if self.narrow else _TALL

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
        **attributes: Any,
    ) -> Picture:
        """Lay out panels with the caption above and the legend below.

        Parameters
        ----------
        traces : iterable of dict
        inner : int
            Height of all panels, in pixels.
        margins : tuple of int
            Pixels left of, right of, above (without the caption) and below (without the legend) the panels.
        entries : bool
            Whether to show a legend of the named traces.
        above, air : int
            Pixels between the panels and the caption, and extra height for the caption beyond its lines.
        legend_over : {"paper", "container"}
            Whether to centre the legend below the panels or on the page.
        annotations : iterable of dict
        **attributes
            Axes, shapes and other entries of the layout.
        """
        left, right, top, bottom = margins
        all_traces = list(traces)
        # Wherever it is centred, a legend is at most as wide as the panels.
        width = (self.width or _USUAL) - left - right
        below = _legend_room(all_traces, width) if entries else 0
        lines = self.caption_lines(left)
        top += LINE * len(lines) + air if lines else 0
        height = top + inner + bottom + below
        legend_entries: dict[str, Any] = {"showlegend": False}
        if below:
            place = {"xref": legend_over, "yref": "container", "y": below / height}
            # By default, plotly draws no legend for a single entry, and its space would stay empty.
            legend_entries = {"legend": legend(self.palette, **place), "showlegend": True}
        return {
            "data": all_traces,
            "layout": layout(
                self.palette,
                height=height,
                margin={"l": left, "r": right, "t": top, "b": bottom + below},
                annotations=[*caption_label(lines, self.palette, above=above), *annotations],
                **legend_entries,
                **attributes,
            ),
        }

    def caption_lines(self, left: int) -> list[str]:
        """Break the caption to fit right of the left margin, or to fit a phone if the width is not known."""
        if self.width is None:
            return wrapped(self.caption)
        return wrapped(self.caption, max(_FEWEST, round((self.width - left) / _CHARACTER)))


def _legend_room(traces: Iterable[Any], width: float) -> int:
    """Estimate the height of a legend in pixels; plotly puts entries in one row, or in columns of equal width."""
    names = [
        str(t["name"])
        for t in traces
        if _entry(t, "name")
        and _entry(t, "showlegend") is not False
        and _entry(t, "visible") is not False
    ]
    if not names:
        return 0
    widths = [_ENTRY + _LETTER * len(re.sub("<[^>]*>", "", name)) for name in names]
    lines = 1 if sum(widths) <= width else -(-len(names) // max(1, int(width / max(widths))))
    return LINE * lines + 10


def _entry(trace: Any, name: str) -> Any:
    # plotly's own traces have no `get`.
    return trace[name] if name in trace else None  # noqa: SIM401


def with_legend_for(drawn: go.Figure, width: int) -> go.Figure:
    """Adjust the space of the legend below a drawing to a width that only became known on the page.

    Parameters
    ----------
    drawn : plotly.graph_objects.Figure
        Drawn without a known width; changed in place.
    width : int
        Width of the whole drawing in pixels.
    """
    layout = drawn.layout
    if layout.legend.yref != "container" or not layout.height or layout.legend.y is None:
        return drawn
    beside = (layout.margin.l or 0) + (layout.margin.r or 0)
    below = round(layout.legend.y * layout.height)
    change = _legend_room(drawn.data, width - beside) - below
    layout.height += change
    layout.margin.b += change
    layout.legend.y = (below + change) / layout.height
    return drawn
