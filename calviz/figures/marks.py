"""What figures are drawn with, as plain dicts for plotly: curves, bands, points, labels, and the sheet with caption and legend."""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, Self, TypeAlias, TypedDict, TypeVar

import numpy as np

from calviz.core.blocks import AnyArray, FloatArray, IntArray
from calviz.core.entry_specs import Theme
from calviz.core.errors import check_choice, needs
from calviz.core.words import level_text, plotly_text
from calviz.figures.style import PALETTES, Palette, axis, layout

if TYPE_CHECKING:
    import plotly.graph_objects as go


Trace = dict[str, Any]
#: What `Figure.plot` returns.
Drawing: TypeAlias = "go.Figure"

#: Dashes of curves, in the order in which they are taken, so that curves do not differ in colour only.
DASHES = ("solid", "8px,3px", "2px,3px", "8px,3px,2px,3px")
#: Height of a line of the caption in pixels.
LINE = 19
#: Turns off plotly's fading of unselected points; the drawing itself marks a selection.
UNFADED: Trace = {"selected": {"marker": {"opacity": 1}}, "unselected": {"marker": {"opacity": 1}}}
#: Keeps invisible points invisible.
UNSEEN: Trace = {"selected": {"marker": {"opacity": 0}}, "unselected": {"marker": {"opacity": 0}}}


def packed(values: AnyArray) -> FloatArray:
    """Convert coordinates of any shape to single precision, which is more precise than a screen."""
    return np.asarray(values, dtype=np.float32)


def _hovering(text: str) -> Trace:
    """Describe what appears at the pointer; an empty text stands for nothing."""
    if not text:
        return {"hoverinfo": "skip"}
    return {"hovertemplate": text if "<extra>" in text else f"{text}<extra></extra>"}


def line(
    x: FloatArray,
    y: FloatArray,
    colour: str,
    *,
    width: float = 2,
    dash: str = "solid",
    shape: str | None = None,
    points: Trace | None = None,
    hover: str = "",
    **attributes: Any,
) -> Trace:
    """Draw a curve, with `points` of a size and a symbol on it; `hover` appears at the pointer."""
    trace = {
        "type": "scatter",
        "mode": "lines",
        "x": packed(x),
        "y": packed(y),
        "line": {"color": colour, "width": width, "dash": dash, "shape": shape},
        **_hovering(hover),
    }
    if points is not None:
        trace |= {"mode": "lines+markers", "marker": {"color": colour, **points}}
    return trace | attributes


def short_line(x: FloatArray) -> FloatArray:
    """Return both ends of a short line around the only score `x` (1,) of a curve, because a single point would not be visible."""
    return np.asarray(x + np.array([-0.05, 0.05]))


def vertical_mark(x: float, low: float, high: float, colour: str) -> Trace:
    """Draw a thin dotted vertical line as a mark."""
    ends = np.array([x, x]), np.array([low, high])
    return line(*ends, colour, width=1, dash="2px,3px", showlegend=False)


def markers(
    x: Any,
    y: Any,
    colour: str,
    *,
    size: Any,
    symbol: str | None = None,
    edge: str | None = None,
    edge_width: float = 2,
    hover: str | list[str] = "",
    **attributes: Any,
) -> Trace:
    """Draw points, with an outline of the colour `edge`; `hover` appears at the pointer, one text for all or one for each."""
    style: Trace = {"color": colour, "size": size, "symbol": symbol}
    if edge is not None:
        style["line"] = {"color": edge, "width": edge_width}
    if isinstance(hover, list):
        shown: Trace = {"hoverinfo": "text", "hovertext": hover}
    else:
        shown = _hovering(hover)
    same = {"type": "scatter", "mode": "markers", "x": x, "y": y, "marker": style}
    return same | shown | attributes


def outline(role: Role, palette: Palette) -> tuple[str, str, str]:
    """Return symbol, dash and colour of further curves or points, so that they also differ without colour."""
    return {
        "selected": ("square-open", "1px,3px", palette.ink),
        "pinned": ("diamond-open", "5px,3px", palette.green),
        "before": ("circle-open", "2px,2px", palette.muted),
        "named": ("triangle-up-open", "6px,2px", palette.ink),
    }[role]


def whiskers(above: Any, below: Any, colour: str, *, thickness: float, width: int) -> Trace:
    """Describe the error bars of points by their lengths on both sides."""
    return {
        "type": "data",
        "symmetric": False,
        "array": above,
        "arrayminus": below,
        "color": colour,
        "thickness": thickness,
        "width": width,
    }


def area(x: FloatArray, low: FloatArray, high: FloatArray, fill: str, **attributes: Any) -> Trace:
    """Fill the band between two curves with the same x values, shape (P,)."""
    return {
        "type": "scatter",
        "mode": "lines",
        "x": packed(np.concatenate([x, x[::-1]])),
        "y": packed(np.concatenate([low, high[::-1]])),
        "fill": "toself",
        "fillcolor": fill,
        "line": {"width": 0},
        "hoverinfo": "skip",
        **attributes,
    }


def bootstrap_band(
    x: FloatArray, ends: tuple[FloatArray, FloatArray], level: float, palette: Palette
) -> Trace:
    """Fill the bootstrap range of a blue curve."""
    name, fill = f"{level_text(level)} bootstrap range", palette.glaze(palette.blue, 0.2)
    return area(x, *ends, fill, name=name, legendrank=20)


def hatched(colour: str, palette: Palette, *, shape: str, tint: float, solidity: float) -> Trace:
    """Describe the hatching of a bar, so that bars do not differ in colour only."""
    return {
        "shape": shape,
        "fillmode": "replace",
        "fgcolor": colour,
        "bgcolor": palette.tint(colour, tint),
        "fgopacity": 1,
        "size": 6,
        "solidity": solidity,
    }


def vertical_shape(
    colour: str, *, x: float, width: float, dash: str | None = None, **attributes: Any
) -> Trace:
    """Describe a line from the bottom of a panel to its top, or from `y0` to `y1`."""
    style = {"color": colour, "width": width, "dash": dash}
    return {"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "line": style, **attributes}


def frame(colour: str, *, width: float = 2, **attributes: Any) -> Trace:
    """Describe a rectangle; `width` is that of its line."""
    return {"type": "rect", "line": {"color": colour, "width": width}, **attributes}


def wrapped(caption: Sequence[str], width: int = 46) -> list[str]:
    """Break a caption into lines of at most `width` characters, if possible at the dots between its parts; 46 fit on a phone."""

    def unbroken(part: str) -> str:
        return part.replace(" ", "\u00a0") if len(part) <= width else part

    return [
        part.removesuffix("\u00a0·").replace("\u00a0", " ")
        for text in caption
        for part in textwrap.wrap(
            "\u00a0· ".join(unbroken(p) for p in text.split(" · ")), width, break_on_hyphens=False
        )
    ]


def caption_label(
    lines: Sequence[str],
    palette: Palette,
    *,
    above: int,
    over: tuple[str, str] = ("paper", "paper"),
) -> Iterator[dict[str, Any]]:
    """Put the caption `above` pixels above all panels or one of them, flush left; its first line is bold."""
    if not lines:
        return
    head, *rest = (plotly_text(text) for text in lines)
    text = "<br>".join([f"<b>{head}</b>", *rest])
    yield heading(text, palette, over, above, font={"size": 13, "color": palette.ink})


def heading(
    text: str, palette: Palette, over: tuple[str, str], above: int = 4, **attributes: Any
) -> dict[str, Any]:
    """Put text `above` pixels above a panel, flush left; `over` names the axes of the panel. `text` must be escaped."""
    place: Trace = {"x": 0, "y": 1, "yshift": above, "xanchor": "left", "yanchor": "bottom"}
    return label(text, palette, xref=over[0], yref=over[1], **place, **attributes)


def label(text: str, palette: Palette, **attributes: Any) -> Trace:
    """Put text into the drawing without an arrow; `text` must be escaped."""
    return {
        "text": text,
        "showarrow": False,
        "align": "left",
        "font": {"size": 12, "color": palette.ink},
        **attributes,
    }


def label_above(text: str, palette: Palette, x: float, share: float) -> Trace:
    """Put text above a panel, over the place `x` of a mark that is this share of the panel's width from its left edge."""
    anchor = "right" if share > 0.75 else "left" if share < 0.25 else "center"
    place = {"x": x, "y": 1, "yref": "paper", "yshift": 2, "xanchor": anchor}
    return label(text, palette, **place, yanchor="bottom")


def legend(palette: Palette, **attributes: Any) -> dict[str, Any]:
    """Describe a horizontal legend; clicks on it hide nothing."""
    return {
        "orientation": "h",
        "x": 0.5,
        "xanchor": "center",
        "yanchor": "top",
        "bgcolor": "rgba(0, 0, 0, 0)",
        "font": {"size": 12, "color": palette.ink},
        "itemclick": False,
        "itemdoubleclick": False,
        "traceorder": "normal",
        **attributes,
    }


# ---- Sheet


#: Traces and layout, the arguments of a plotly figure.
Picture = dict[str, Any]


class Page(TypedDict, total=False):
    """Arguments of `Figure.plot`."""

    theme: Theme
    caption: bool | str
    width: int | None


#: Below this width in pixels, panels are stacked and labels are short.
_NARROW = 620
#: Height of a single panel of curves on wide and narrow pages, in pixels.
_TALL, _LOW = 340, 280
#: Width of a character of the caption in pixels, and minimum number of characters per line.
_CHARACTER, _FEWEST = 7.6, 24
#: Widths of a legend entry without its text, of a letter in a picture and on a page, and of a narrow column on a desktop, assumed if none is known; in pixels.
_ENTRY, _LETTER, _SMALL_LETTER, _USUAL = 48, 6.4, 4.85, 560


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

    @classmethod
    def of(
        cls,
        own_caption: Callable[[], tuple[str, ...]],
        *,
        theme: Theme = "light",
        caption: bool | str = False,
        width: int | None = None,
    ) -> Self:
        """Choose colours, and the caption of a figure or another text; see `Figure.plot`."""
        check_choice("theme", theme, tuple(PALETTES))
        text = own_caption() if caption is True else tuple(str(caption or "").splitlines())
        return cls(PALETTES[theme], text, width)

    @property
    def narrow(self) -> bool:
        """Whether the page is so narrow that panels are stacked."""
        return self.width is not None and self.width < _NARROW

    @property
    def panel_height(self) -> int:
        """Height of a single panel of curves in pixels."""
        return _LOW if self.narrow else _TALL

    def axis(self, title: str = "", **attributes: Any) -> dict[str, Any]:
        """Describe an axis (`calviz.figures.style.axis`)."""
        return axis(self.palette, title, **attributes)

    def row_axis(self, names: Sequence[str], **attributes: Any) -> dict[str, Any]:
        """Describe an axis with one row per name, from the top down; equal names keep separate rows."""
        return self.axis(
            range=[len(names) - 0.5, -0.5],
            tickmode="array",
            tickvals=list(range(len(names))),
            ticktext=list(names),
            showgrid=False,
            **attributes,
        )

    def names_above(self, names: Iterable[str], yshift: int) -> list[Trace]:
        """Write the names of rows on the panel, `yshift` pixels above each: on a narrow page they would take most of the width."""
        place: Trace = {"xref": "paper", "x": 0.0, "xanchor": "left", "yref": "y"}
        place |= {"yanchor": "bottom", "yshift": yshift, "bgcolor": self.palette.paper}
        return [label(name, self.palette, **place, y=y) for y, name in enumerate(names)]

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
        # Wherever it is centred, a legend is at most as wide as the panels; on a narrow page one that begins left of them may be wider.
        width = (self.width or _USUAL) - left - right
        below = _legend_room(all_traces, width) if entries else 0
        aside: Trace = {}
        if self.narrow and below > LINE + 10:
            x, y = (right - left) / width, -bottom / inner
            aside = {"xref": "paper", "x": x, "xanchor": "left", "yref": "paper", "y": y}
            below = _legend_room(all_traces, width + left, _SMALL_LETTER)
        lines = self.caption_lines(left)
        top += LINE * len(lines) + air if lines else 0
        height = top + inner + bottom + below
        legend_entries: dict[str, Any] = {"showlegend": False}
        if below:
            place: Trace = {"xref": legend_over, "yref": "container", "y": below / height} | aside
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


def drawn(picture: Picture) -> Drawing:
    """Make a plotly figure of a picture."""
    needs("plotly")
    import plotly.graph_objects as go

    return go.Figure(**picture)


def name_room(names: Iterable[str], beside: int) -> int:
    """Return the width of a margin, in pixels, that holds the longest name of a row and the space `beside` it.

    `names` must be shortened as they are drawn, but not escaped.
    """
    # Width of a character of a row's name, in pixels, where the system's sans-serif is as wide as DejaVu Sans.
    return round(7.0 * max(map(len, names), default=0)) + beside


def entries(traces: Iterable[Any]) -> list[str]:
    """Return the names in the legend."""
    return [
        str(t["name"])
        for t in traces
        if _entry(t, "name")
        and _entry(t, "showlegend") is not False
        and _entry(t, "visible") is not False
    ]


def _legend_room(traces: Iterable[Any], width: float, letter: float = _LETTER) -> int:
    """Estimate the height of a legend in pixels; plotly puts entries in one row, or in columns of equal width."""
    if not (names := entries(traces)):
        return 0
    widths = [_ENTRY + letter * len(re.sub("<[^>]*>", "", name)) for name in names]
    lines = 1 if sum(widths) <= width else -(-len(names) // max(1, int(width / max(widths))))
    return LINE * lines + 10


def _entry(trace: Any, name: str) -> Any:
    # plotly's own traces have no `get`.
    return trace[name] if name in trace else None  # noqa: SIM401


def with_legend_for(drawn: Drawing, width: int) -> Drawing:
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


# ---- Square panels


#: Room on each side of a score's axis, so that no point on an edge crosses the frame.
EDGE = 0.035
#: The axes end where the scores do if that is at most here.
ZOOMED = 0.4
#: Margins of the square (above, for the button that saves it), and diameter of a circle for all rows, in pixels.
_MARGINS, _CIRCLE = (54, 8, 28, 46), 26


def circles(x: FloatArray, y: FloatArray, share: FloatArray, p: Palette) -> Trace:
    """Draw observed frequencies as circles with areas proportional to the rows; arrays have shape (M,)."""
    return markers(
        x,
        y,
        p.glaze(p.vermillion, 0.25),
        size=np.maximum(4, _CIRCLE * np.sqrt(share)),
        edge=p.vermillion,
        edge_width=1.5,
        customdata=100 * share,
        hover="score %{x:.3f}, observed %{y:.3f}<br>%{customdata:.1f} % of the rows",
    )


def diagonal(p: Palette) -> Trace:
    """Draw the diagonal, where score and frequency agree or a map changes nothing."""
    ends = np.array([0.0, 1.0])
    return line(ends, ends, p.ink, width=1, dash="4px,3px")


def end_of(*values: FloatArray) -> float:
    """Where the axes of score and frequency end: at 1, or beyond all values, shape (n,) each, if that is at most 0.4."""
    most = float(np.nanmax(np.concatenate(values)))
    if not 0 < most <= ZOOMED:
        return 1.0
    size = 10.0 ** math.floor(math.log10(most))
    return next(size * end for end in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if most <= size * end)


def number_of(tick: float) -> str:
    """Write a tick of a logarithmic axis, whose only digit is 1, 2 or 5, without an exponent."""
    return f"{tick:.{max(-math.floor(math.log10(tick) + 1e-9), 0)}f}"


@dataclass(frozen=True)
class ScoreAxes:
    """Both axes of score and frequency: from 0 to `end`, or with a `floor` logarithmic from there on.

    On logarithmic axes, a line parallel to the diagonal is a constant ratio of observed to expected events.
    """

    end: float
    floor: float = 0.0

    def at(self, values: Any) -> Any:
        """Return the coordinates of values: their logarithms, those below the floor at the floor, or the values themselves."""
        return np.log10(np.maximum(values, self.floor)) if self.floor else values

    def along(self, share: float) -> float:
        """Return the coordinate that is this share of the axis from its start."""
        low, high = self.at(0.0), self.at(self.end)
        return float(low + share * (high - low))

    def share(self, values: Any) -> Any:
        """Return how far along the axis values lie, as shares of its length."""
        low = self.at(0.0)
        return (self.at(values) - low) / (self.at(self.end) - low)

    @property
    def words(self) -> str:
        """Say what is unusual about these axes; empty if they are linear and end at 1."""
        how = f"logarithmic, from {number_of(self.floor)}" if self.floor else "from 0"
        return f"Both axes {how} to {self.end:.3g}" if self.floor or self.end < 1 else ""

    def unit(self, *, few: bool = False) -> Trace:
        """Range and ticks, with room for the points on the edges; every second power of ten if there is room for `few`."""
        ends: Trace = {"range": [self.along(-EDGE), self.along(1 + EDGE)]}
        if not self.floor:
            form = ".1f" if self.end == 1 else ".3~g"
            return ends | {"tick0": 0, "dtick": self.end / 5, "tickformat": form}
        powers = range(round(math.log10(self.floor)), math.floor(math.log10(self.end)) + 1)
        steps = (1, 2, 5) if len(powers) < 3 else (1,)
        ticks = [(step, power) for power in powers[:: 1 + few] for step in steps]
        names = [number_of(step * 10.0**power) for step, power in ticks]
        places = [math.log10(step) + power for step, power in ticks]
        return ends | {"tickmode": "array", "tickvals": places, "ticktext": names}


def square_axes(sheet: Sheet, x: str, y: str, **unit: Any) -> dict[str, Any]:
    """Describe the axes of a panel that is square at any width; `unit` holds the ticks and the range of both."""
    unit = {"tickmode": "linear", "constrain": "domain"} | unit
    return {
        "xaxis": sheet.axis(x, **unit),
        "yaxis": sheet.axis(y, **unit, scaleanchor="x", scaleratio=1),
    }


def square(
    traces: Iterable[Trace], sheet: Sheet, height: int, axes: ScoreAxes, *titles: str
) -> Picture:
    """Lay out a square panel; `height` is in pixels and includes the axes."""
    # Few ticks on a small square, so that tick labels do not touch the titles.
    low, end = height < 300, axes.end
    unit = axes.unit(few=low)
    if not axes.floor:
        step = (0.25 if end == 1 else end / 5) * (1 + low)
        unit |= {"dtick": step, "tickformat": ".3~f"}
    return sheet.picture(
        traces,
        inner=height - _MARGINS[2] - _MARGINS[3],
        margins=_MARGINS,
        entries=False,
        **square_axes(sheet, *titles, **unit, size=12, standoff=6),
    )


#: plotly's default margin and height, used where a drawing sets none.
_MARGIN, _HEIGHT = 80, 450
#: Pixels between the caption and the former top of the drawing.
_AIR = 8


def captioned(
    drawn: Drawing, lines: Sequence[str], *, theme: Theme = "light", characters: int = 62
) -> Drawing:
    """Add lines of text above a drawing, the first one bold; the panels keep their size.

    Parameters
    ----------
    drawn : plotly.graph_objects.Figure
        Changed in place.
    lines : sequence of str
        Plain text, escaped here.
    theme : {"light", "dark"}
    characters : int
        Number that fits on a line; longer lines are broken.
    """
    broken = wrapped(lines, characters)
    if not broken:
        return drawn
    layout, palette = drawn.layout, PALETTES[theme]
    top = _MARGIN if layout.margin.t is None else round(layout.margin.t)
    room = LINE * len(broken) + _AIR
    for label in caption_label(broken, palette, above=top):
        drawn.add_annotation(**label)
    layout.margin.t = top + room
    layout.height = (_HEIGHT if layout.height is None else layout.height) + room
    return drawn


# ---- Overlays


#: Role of the further curve or points, which determines how they are drawn.
Role = Literal["selected", "pinned", "before", "named"]
F = TypeVar("F")


@dataclass(frozen=True, eq=False)
class Overlay(Generic[F]):
    """A figure, or an array of its values, to draw in addition to the main one.

    Attributes
    ----------
    name : str
        Name in the legend.
    role : {"selected", "pinned", "before", "named"}
    content : figure or ndarray
        The figure or values to draw.
    """

    name: str
    role: Role
    content: F

    def points(self, x: FloatArray, y: Any, palette: Palette, **attributes: Any) -> Trace:
        """Draw further errors, in points, as outlines."""
        symbol, _, colour = outline(self.role, palette)
        name = plotly_text(self.name, 44)
        hover = f"%{{x:.2f}} points<extra>{name}</extra>"
        look: Trace = {"size": 10, "symbol": symbol, "edge": colour, "name": name, "hover": hover}
        return markers(x, y, colour, **look, **UNFADED, **attributes)

    def curve(
        self, x: FloatArray, y: FloatArray, palette: Palette, *, hover: str, **points: Any
    ) -> Trace:
        """Draw a further curve, with outlined `points` on it."""
        symbol, dash, colour = outline(self.role, palette)
        look: Trace = {"width": 1.5, "dash": dash, "points": {"symbol": symbol, **points}}
        return line(x, y, colour, **look, name=plotly_text(self.name, 44), hover=hover)


#: Number of buckets of a drawn curve; a panel is a few hundred pixels wide.
BUCKETS = 300


def extremes(values: FloatArray, *, buckets: int = BUCKETS) -> IntArray:
    """Return the ascending indices (P,) of both ends and of the minimum and maximum of each bucket of neighbours.

    A curve through these points looks the same and has the same minimum and maximum.

    Parameters
    ----------
    values : ndarray, shape (G,)
        Values along the curve, whose extremes are kept.
    buckets : int
        Number of buckets; a curve of at most twice as many points is not thinned.
    """
    size = values.size
    if size <= 2 * buckets:
        return np.arange(size)
    starts = np.arange(buckets) * size // buckets
    sizes = np.diff(starts, append=size)
    indices = [np.array([0, size - 1])]
    for extreme in (np.minimum, np.maximum):
        reached = np.flatnonzero(values == np.repeat(extreme.reduceat(values, starts), sizes))
        bucket = np.searchsorted(starts, reached, side="right")
        indices.append(reached[np.append(True, bucket[1:] != bucket[:-1])])
    return np.unique(np.concatenate(indices))
