"""A metric over time, period by period, and the e-value of a watch, look by look."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, Unpack

import numpy as np

from calviz.comparison.over_time import OverTime, Period
from calviz.core.blocks import FloatArray
from calviz.core.claims import claim
from calviz.core.entry_specs import METRICS, RECALIBRATORS
from calviz.core.events import Reduction
from calviz.core.words import capitalised, counted, p_value, plotly_text, shorten
from calviz.figures.figure import NAME_LENGTH, Figure, facts
from calviz.figures.marks import (
    Drawing,
    Overlay,
    Page,
    Picture,
    Sheet,
    Trace,
    drawn,
    line,
    markers,
    whiskers,
)
from calviz.verdicts.evaluation import scale_of, value_text
from calviz.verdicts.watching import WatchState


@dataclass(frozen=True, eq=False)
class OverTimeLine(Figure):
    """The periods of `calviz.over_time`, ready to draw.

    Drawn from a result, not from predictions: `calviz.over_time` measures, this class draws.

    Attributes
    ----------
    result : OverTime
    """

    result: OverTime

    @classmethod
    def compute(cls, result: OverTime) -> Self:
        """Create the figure from the result."""
        return cls(result)

    @property
    def label(self) -> str:
        """Label of the metric."""
        return METRICS[self.result.metric].label

    def columns(self) -> Mapping[str, Any]:
        """One row per period."""
        return dict(self.result.frame())

    def caption(self) -> tuple[str, ...]:
        """Name, rows and reduction."""
        r = self.result
        reduction = shorten(Reduction.of(r.reduction).label)
        details = facts(None, counted(r.rows, "row"), reduction, f"{self.label} by {r.every}")
        return shorten(r.name, NAME_LENGTH), details

    @claim("change-over-time")
    def answer(self) -> str:
        """Say whether the metric, or the MCS, changes, and in which period most significantly."""
        r = self.result
        looked = counted(len(r.periods), "period")
        if r.untested:
            return capitalised(r.untested)
        metrics = " or ".join(METRICS[key].label for key in r.tested)
        if not r.changed:
            return f"None of {looked} differs from the others in {metrics} beyond chance."
        most = "; most surely" if len(r.changed) > 1 else ":"
        verb = "differ" if len(r.changed) > 1 else "differs"
        return (
            f"In {len(r.changed):,} of {looked} the {metrics} {verb} from the others beyond chance"
            f"{most} {self.sentence(r.changed[0])}."
        )

    @property
    @claim("change-over-time")
    def headline(self) -> str:
        """`answer` in at most 15 words."""
        r = self.result
        if r.untested:
            return "Whether it changes over time cannot be told"
        if not r.changed:
            return self.answer().rstrip(".")
        metrics = " or ".join(METRICS[key].label for key in r.tested)
        most = ", most surely in" if len(r.changed) > 1 else ":"
        return (
            f"The {metrics} changes beyond chance in {len(r.changed):,} of {counted(len(r.periods), 'period')}{most} "
            f"{r.changed[0].name}"
        )

    def sentence(self, one: Period) -> str:
        """Describe one period in words."""
        r = self.result
        values = (one.gap, one.expected_gap) if one.by_gap else (one.result.value, one.expected)
        key = r.tested[-1] if one.by_gap else r.metric
        value, expected = (value_text(key, v) for v in values)
        both = " and both metrics" if len(r.tested) > 1 else ""
        return (
            f"{one.name}, {METRICS[key].label} {value} where {expected} would be usual on {counted(one.rows, 'row')} "
            f"({p_value(one.adjusted)}, adjusted for {len(r.periods)} periods{both})"
        )

    @claim("models-differ")
    def past(self) -> str:
        """Say what recalibration on past rows would have given; empty if it was not requested."""
        r = self.result
        if r.method is None:
            return ""
        name = RECALIBRATORS[r.method].label
        if r.before is None or r.after is None:
            return f"{name} could not be fitted on the past: {r.reason}"
        outcome = ""
        if r.difference is not None:
            outcome = {
                "better": ", better beyond noise",
                "worse": ", worse beyond noise",
                "tied": ", no difference beyond noise",
            }[r.difference.verdict]
        before, after = (value_text(r.metric, v.value) for v in (r.before, r.after))
        # The first periods, on which it is fitted, are in the value of all rows but not in these two.
        judged = sum(p.recalibrated is not None for p in r.periods)
        where = (
            f" on the {counted(judged, 'period')} with enough rows before {'it' if judged == 1 else 'them'}"
            if judged < len(r.periods)
            else ""
        )
        return (
            f"{name}, fitted before each period on all rows until then, would have made the {self.label} {after} "
            f"instead of {before}{where}{outcome}."
        )

    @claim("expected")
    def before_labels(self) -> str:
        """Say what is expected of rows without labels, or why nothing is; empty if there are none."""
        r = self.result
        whole = r.whole_waiting
        if whole is None:
            return capitalised(r.unexpected) if r.unexpected else ""
        one = whole.metrics[r.metric]
        value, low, high = (value_text(r.metric, v) for v in (one.value, *one.interval))
        says = f"Of the {counted(whole.rows, 'row')} without labels, {self.label} {value} is expected (95 % interval {low} to {high})."
        return " ".join((says, *whole.remarks()))

    def describe(self) -> str:
        """Say in plain words what the picture shows."""
        parts = [
            f"{self.label} of {shorten(self.result.name, NAME_LENGTH)} over time.",
            self.answer(),
        ]
        return " ".join(filter(None, [*parts, self.past(), self.before_labels()]))

    def plot(self, *, beside: Sequence[Overlay[FloatArray]] = (), **page: Unpack[Page]) -> Drawing:
        """Draw the periods in their order.

        Parameters
        ----------
        beside : sequence of Overlay
            Values of other rows, such as a subset of these, shape (P,) each: one per period, nan where there is none.
        **page
            See `Figure.plot`.
        """
        sheet, periods = self.sheet(**page), _names(self.result)
        step = max(1, -(-len(periods) // (_FEW if sheet.narrow else _NAMES)))
        at = list(range(0, len(periods), step))
        scale, sign = scale_of(self.result.metric)
        # The beginning of a period suffices to identify it.
        names = [plotly_text(periods[i].split(" to ")[0], 16) for i in at]
        room = (sheet.width or _USUAL) - _LEFT - _RIGHT
        fit = len(names) * (2 + max(map(len, names), default=0)) * _LETTER <= room
        traces = [*_traces(self, sheet), *_before_labels(self, sheet)]
        # Values of other rows, joined where neighbouring periods have values.
        for one in beside:
            x, hover = (
                np.arange(one.content.size, dtype=float),
                f"%{{y:.4~g}}<extra>{plotly_text(one.name, 44)}</extra>",
            )
            traces.append(one.curve(x, scale * one.content, sheet.palette, hover=hover, size=9))
        ticks: Trace = {"tickmode": "array", "tickvals": at, "ticktext": names}
        picture = sheet.picture(
            traces,
            inner=sheet.panel_height,
            margins=(_LEFT, _RIGHT, _TOP, _BOTTOM if fit else _TURNED),
            xaxis=sheet.axis(range=[-0.6, len(periods) - 0.4], **ticks),
            yaxis=sheet.axis(self.label + (f", {sign}" if sign else ""), nticks=7),
        )
        return drawn(picture)


@dataclass(frozen=True, eq=False)
class WatchLine(Figure):
    """The e-value of a `calviz.Watch`, look by look, against its limit.

    Attributes
    ----------
    state : WatchState
    name : str
        Of the predictions.
    """

    state: WatchState
    name: str

    @classmethod
    def compute(cls, state: WatchState, *, name: str = "") -> Self:
        """Create the figure from the state."""
        return cls(state, name)

    def columns(self) -> Mapping[str, Any]:
        """One row per look."""
        looks, values = zip(*self.state.path, strict=True)
        return {"look": looks, "e_value": values, "limit": [self.state.limit] * len(looks)}

    def caption(self) -> tuple[str, ...]:
        """Name and rows."""
        looks = f"{counted(self.state.looks, 'look')}"
        return shorten(self.name, NAME_LENGTH), facts(None, counted(self.state.rows, "row"), looks)

    def describe(self) -> str:
        """Say in plain words what the picture shows."""
        return f"The e-value of {shorten(self.name, NAME_LENGTH)}, look by look. {self.state.sentence()}"

    def draw(self, sheet: Sheet) -> Picture:
        """Draw the e-value on a logarithmic axis."""
        looks, values = zip(*self.state.path, strict=True)
        # Beyond this, nothing is left to tell.
        x, y = np.arange(len(looks), dtype=float), np.minimum(values, 1e30)
        step = max(1, -(-len(looks) // (_FEW if sheet.narrow else _NAMES)))
        ends = np.array([-0.6, len(looks) - 0.4])
        limit = np.full(2, self.state.limit)
        top = max(math.log10(self.state.limit), float(np.log10(y.max()))) + 0.4
        low = min(float(np.log10(y.min())), 0)
        traces = [
            line(ends, limit, sheet.palette.vermillion, width=1.5, dash="dash", name="Limit"),
            line(
                x,
                y,
                sheet.palette.blue,
                points={"size": 5},
                name="E-value",
                hover="%{customdata}: %{y:.3g}",
                customdata=[plotly_text(name, 40) for name in looks],
            ),
        ]
        return sheet.picture(
            traces,
            inner=sheet.panel_height,
            margins=(_LEFT, _RIGHT, _TOP, _TURNED),
            xaxis=sheet.axis(
                range=ends.tolist(),
                tickmode="array",
                tickvals=x[::step].tolist(),
                ticktext=[plotly_text(name, 16) for name in looks[::step]],
            ),
            yaxis=sheet.axis(
                "E-value",
                type="log",
                range=[low - 0.2, top],
                dtick=max(1, round((top - low) / 6)),
                exponentformat="power",
            ),
        )


# ---- Drawing


#: Margins of the panel left, right, above and below, in pixels; the last one if the names of the periods are written upright.
_LEFT, _RIGHT, _TOP, _BOTTOM, _TURNED = 66, 20, 14, 40, 70
#: Width of a letter, and of the drawing if it is not known, in pixels.
_LETTER, _USUAL = 7, 700
#: Number of period names that fit below the panel, on wide and narrow pages.
_NAMES, _FEW = 12, 5


def _names(r: OverTime) -> list[str]:
    """Names of the periods, then of those that have rows without labels only."""
    return list(dict.fromkeys([p.name for p in r.periods] + [w.name for w in r.waiting]))


def _before_labels(figure: OverTimeLine, sheet: Sheet) -> Iterator[Trace]:
    """What past rows let expect of each period, and all rows with labels of those without."""
    r, scale = figure.result, scale_of(figure.result.metric)[0]
    x = np.arange(len(r.periods), dtype=float)
    believed = np.array([p.before_labels for p in r.periods])
    if np.isfinite(believed).any():
        yield line(
            x,
            scale * believed,
            sheet.palette.neutral,
            points={"size": 5, "symbol": "diamond-open"},
            name="Expected before its labels came",
            hover="%{y:.4~g}<extra>expected before its labels came</extra>",
        )
    if r.waiting:
        names = _names(r)
        value = [scale * w.expected.value for w in r.waiting]
        ends = [[scale * end for end in w.expected.interval] for w in r.waiting]
        yield markers(
            [names.index(w.name) for w in r.waiting],
            value,
            sheet.palette.neutral,
            size=9,
            symbol="diamond-open",
            name="Without labels: expected, with 95 % interval",
            error_y=whiskers(
                [e[1] - v for e, v in zip(ends, value, strict=True)],
                [v - e[0] for e, v in zip(ends, value, strict=True)],
                sheet.palette.neutral,
                thickness=1.3,
                width=4,
            ),
            customdata=[[plotly_text(w.name, 40), w.rows] for w in r.waiting],
            hover="%{customdata[0]}: %{y:.4~g} expected<br>%{customdata[1]:,} rows without labels",
        )


def _traces(figure: OverTimeLine, sheet: Sheet) -> Iterator[Trace]:
    r, palette = figure.result, sheet.palette
    scale = scale_of(r.metric)[0]
    x = np.arange(len(r.periods), dtype=float)
    floors = [p.result.noise_floor for p in r.periods]
    floor = np.array([np.nan if one is None else one.mean for one in floors])
    look: Trace = {"width": 1.5, "hoverinfo": None}
    if np.isfinite(floor).any():
        look |= {"dash": "2px,3px", "name": "Noise floor (calibrated)"}
        yield line(x, scale * floor, palette.muted, **look)
    expected = np.array([p.expected for p in r.periods])
    if np.isfinite(expected).any():
        look |= {"dash": "dash", "name": "Usual, if nothing changes"}
        yield line(x, scale * expected, palette.ink, **look)
    if any(p.recalibrated for p in r.periods):
        after = np.array([p.recalibrated.value if p.recalibrated else np.nan for p in r.periods])
        yield line(
            x,
            scale * after,
            palette.green,
            points={"size": 6, "symbol": "square"},
            name=plotly_text(f"{RECALIBRATORS[r.method or ''].label}, fitted on the past", 60),
            hover="%{y:.4~g}<extra>fitted on the past</extra>",
        )
    for changed in (False, True):
        some = [i for i, p in enumerate(r.periods) if (p.adjusted <= r.level) == changed]
        if not some:
            continue
        changes = [r.periods[i] for i in some]
        results = [p.result for p in changes]
        value = [scale * f.value for f in results]
        ends = [f.interval or (f.value, f.value) for f in results]
        colour = palette.vermillion if changed else palette.blue
        name = "Differs from the others beyond chance" if changed else "Each period, with 95 % CI"
        yield markers(
            some,
            value,
            colour,
            size=9,
            symbol="diamond" if changed else "circle",
            name=name,
            error_y=whiskers(
                [scale * e[1] - v for e, v in zip(ends, value, strict=True)],
                [v - scale * e[0] for e, v in zip(ends, value, strict=True)],
                colour,
                thickness=1.3,
                width=4,
            ),
            customdata=[[plotly_text(p.name, 40), p.rows, _by_gap(r, p)] for p in changes],
            hover="%{customdata[0]}: %{y:.4~g}<br>%{customdata[1]:,} rows%{customdata[2]}",
        )


def _by_gap(r: OverTime, one: Period) -> str:
    """The MCS, where it is what differs."""
    if not one.by_gap or one.adjusted > r.level:
        return ""
    key = r.tested[-1]
    value, expected = (value_text(key, v) for v in (one.gap, one.expected_gap))
    return f"<br>{METRICS[key].label} {value}, usually {expected}"
