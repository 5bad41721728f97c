"""Cumulative score and hits, calibration without bins: the four panels of Gupta et al. 2021, figure 1."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar, Literal, Self, Unpack, get_args

import numpy as np

from calviz.core import words
from calviz.core.blocks import FloatArray
from calviz.core.entry_specs import Interval, MetricResult, figure
from calviz.core.errors import OptionError, check_choice, check_level, claim, picked
from calviz.core.words import SINGLE_ROW, decimal, level_text, plotly_text, points, points_text
from calviz.figures import marks
from calviz.figures.figure import Data, ScoreFigure, end_columns, measured_at, pointwise
from calviz.figures.marks import BUCKETS, Drawing, Overlay, Page, Sheet, Trace, area, drawn, line
from calviz.figures.reliability import fractiles, isotonic_curve, smoothed_gap
from calviz.sample.error_bars import Redrawing, resampled
from calviz.sample.sample import EventOptions, Sample, shows_options
from calviz.sample.step_views import steps
from calviz.sample.steps import Steps
from calviz.verdicts.evaluation import Verdict

CumulativePanel = Literal["a", "b", "c", "d", "gap"]
Estimate = Literal["smooth", "isotonic"]

#: The panels of the paper's figure.
FOUR: tuple[CumulativePanel, ...] = ("a", "b", "c", "d")


@figure(
    key="cumulative",
    label="Cumulative plot and KS error",
    summary="Cumulative score and cumulative hits along the sorted rows: the largest distance between "
    "the two is the KS error. Beside it, score and probability show where the two differ.",
    reference="Gupta et al. 2021, figure 1",
)
@dataclass(frozen=True, eq=False, kw_only=True)
class Cumulative(ScoreFigure):
    """The cumulative plot and the KS error, computed; `plot` draws it.

    Rows are sorted by score; tied rows form one step. Arrays have one entry per kept step: all steps, or those with the
    smallest and the largest gap of each of 300 buckets of neighbouring steps, so that the maximum stays exact.

    Attributes
    ----------
    name, split, reduction, n, level
        See `ScoreFigure`.
    steps : Steps
        All steps: the view from which the KS error is computed.
    estimate : {"smooth", "isotonic"}
        How the probability of a hit is estimated.
    redrawing : Redrawing
        Seed and number of the resamples.
    fractile : ndarray, shape (G,)
        Share of the rows with at most this score.
    cumulative_score, cumulative_hits : ndarray, shape (G,)
        Sum of scores, and number of hits, of these rows, divided by the number of all rows.
    score, probability : ndarray, shape (G,)
        Score of the step, and estimated probability of a hit.
    bound : float or None
        With probability `level`, the cumulative hits of a calibrated model stay within this distance of its cumulative
        score everywhere (simultaneous).
    maximum : int
        Index of the step with the largest absolute gap, which is the KS error.

    References
    ----------
    Gupta et al. 2021, figure 1, eq. 11-12 and section 4.1.
    """

    steps: Steps
    estimate: Estimate
    redrawing: Redrawing
    fractile: FloatArray
    cumulative_score: FloatArray
    cumulative_hits: FloatArray
    score: FloatArray
    probability: FloatArray
    bound: float | None
    maximum: int
    _measured: Callable[[], MetricResult]
    # Beside other figures, whose panels have letters of their own.
    print_options: ClassVar[Mapping[str, Any]] = {"panels": ("a",)}

    @classmethod
    @shows_options
    def compute(
        cls,
        data: Data,
        *,
        estimate: Estimate = "smooth",
        level: float = 0.95,
        band: bool = True,
        **options: Unpack[EventOptions],
    ) -> Self:
        """Compute the cumulative sums, and the bands from redrawn hits.

        Parameters
        ----------
        data, reduction, split
            See `calviz.evaluate`.
        estimate : {"smooth", "isotonic"}
            How the probability of a hit is estimated: a kernel along the fractiles, or isotonic regression.
        level : float
            Level of the bands and of the interval, between 0 and 1.
        band : bool
            Whether to compute the range of a calibrated model.
        seed, resamples : int
            Seed and number of the resamples with redrawn hits.

        Raises
        ------
        OptionError, InputError, NotAvailable
            Under the same conditions as in `calviz.evaluate`.
        """
        check_level(level)
        sample = Sample.of(data, **options)
        check_choice("estimate", estimate, get_args(Estimate))
        view = sample.view(steps)
        upto, gap = fractiles(view), view.cumulative_gap
        kept = marks.extremes(gap)
        cumulative_score = np.cumsum(view.score_sum) / float(view.n)
        fitted: FloatArray = np.clip(view.score - smoothed_gap(view, upto), 0, 1)
        if estimate == "isotonic":
            _, last, level_of = isotonic_curve(view)
            fitted = level_of[np.searchsorted(last, view.score)]
        bound = None
        if band:
            redraws = resampled(view, "under_calibration", **sample.redrawing)
            bound = float(np.quantile(_largest(redraws), level))
        return cls(
            **cls._fields(sample, level=level),
            steps=view,
            estimate=estimate,
            redrawing=sample.redrawing,
            fractile=upto[kept],
            cumulative_score=cumulative_score[kept],
            cumulative_hits=(cumulative_score - gap)[kept],
            score=view.score[kept],
            probability=fitted[kept],
            bound=bound,
            maximum=int(np.argmax(np.abs(gap[kept]))),
            _measured=partial(measured_at, sample, "ks", level),
        )

    @cached_property
    def band(self) -> tuple[FloatArray, FloatArray] | None:
        """Pointwise range of the smooth estimate for a calibrated model, at the kept steps, shape (G,) each; None without `bound`.

        Only some panels draw it, and it takes as long as all the rest.
        """
        if self.bound is None or self.estimate != "smooth":
            return None
        redraws = resampled(self.steps, "under_calibration", **self.redrawing)
        ends = fractiles(self.steps.merged())
        gaps = np.concatenate([smoothed_gap(part, ends) for part in redraws.parts()])
        limits = (np.interp(self.fractile, ends, v) for v in pointwise(gaps, self.level))
        high, low = (np.clip(self.score - limit, 0, 1) for limit in limits)
        return low, high

    @property
    def gap(self) -> FloatArray:
        """Cumulative score minus cumulative hits, shape (G,)."""
        return self.cumulative_score - self.cumulative_hits

    @property
    def ks(self) -> float:
        """The KS error."""
        return abs(self.ks_signed)

    @property
    def ks_signed(self) -> float:
        """The largest gap with its sign; positive if the scores run ahead of the hits."""
        return float(self.gap[self.maximum])

    def upto(self, score: float) -> tuple[float, float]:
        """Return the share of the rows with at most this score, and the cumulative score there."""
        view = self.steps
        at = int(np.searchsorted(view.score, score, side="right"))
        n = float(view.n)
        return float(view.count[:at].sum()) / n, float(view.score_sum[:at].sum()) / n

    @property
    def gap_range(self) -> tuple[float, float]:
        """The smallest and the largest gap, including the gap 0 at the start."""
        return min(float(self.gap.min()), 0.0), max(float(self.gap.max()), 0.0)

    @property
    def kuiper(self) -> float:
        """The Kuiper error: the width of `gap_range`."""
        low, high = self.gap_range
        return high - low

    @property
    def at_fractile(self) -> float:
        """Fractile at which the absolute gap is largest."""
        return float(self.fractile[self.maximum])

    @property
    def at_score(self) -> float:
        """Score at which the absolute gap is largest."""
        return float(self.score[self.maximum])

    @property
    def beyond_noise(self) -> bool | None:
        """Whether the KS error exceeds `bound`; None if there is no bound."""
        return None if self.bound is None else self.ks > self.bound

    @cached_property
    def interval(self) -> Interval | None:
        """Bootstrap interval of the KS error, the same as in an evaluation."""
        return self._measured().interval

    def columns(self) -> Mapping[str, Any]:
        """One row per kept step."""
        return {
            **picked(self, "fractile score cumulative_score cumulative_hits gap probability"),
            **end_columns("band", self.band, self.score),
            "maximum": np.arange(self.score.size) == self.maximum,
        }

    def caption(self) -> tuple[str, ...]:
        """Name; what is drawn; the KS error with its interval: one line each."""
        size = points_text(self.ks, self.interval, self.level)
        return *self._head(), SINGLE_ROW if self.n == 1 else f"KS {size}"

    def describe(self) -> str:
        """Say in plain words what the panels show."""
        return f"Cumulative {' and '.join(self.names)} of {self._scored}. {self.reading()}"

    @claim("miscalibration")
    def reading(self, verdict: Verdict | None = None, *, titled: bool = False) -> str:
        """Return the description without the name of the data: how far scores and hits differ, where, and whether it is noise.

        Parameters
        ----------
        verdict : Verdict, optional
            Verdict on the same rows, which adjusts for several tests: it decides whether a gap beyond the bound is called
            "beyond noise". Without a verdict it is only called "more".
        titled : bool
            Whether it stands below `headline`, whose number it does not repeat.
        """
        if self.n == 1:
            return SINGLE_ROW
        place = f"fractile {decimal(self.at_fractile, 2)} (score {decimal(self.at_score)})"
        text = self._ahead(self.interval)
        if titled and self.interval is not None and self.ks != 0:
            text = words.points_interval(self.ks, self.interval, self.level)
        if self.ks != 0:
            text += f", at {place}; {self._after()}"
        if self.bound is not None:
            # As many decimals as the error itself, as on metric cards.
            stays = f"{points(self.bound, words.points_decimals(self.ks))} points"
            more = "more"
            if verdict is not None:
                more = "beyond noise" if verdict.beyond_noise else "more, looked at alone"
            text += (
                f". A calibrated model stays within {stays} in {level_text(self.level)} of samples of "
                f"this size: this is {more if self.beyond_noise else 'within noise'}"
            )
        return f"{text}."

    @claim("miscalibration")
    def headline(self, verdict: Verdict) -> str:
        """Return the largest gap in a few words, and whether the verdict on the same rows leaves it to noise."""
        text = self._ahead()
        beyond = verdict.beyond_noise and self.beyond_noise is not False
        return text if beyond or self.ks == 0 else f"{text}, which noise can explain"

    @property
    def names(self) -> tuple[str, str]:
        """What scores and hits are called, as in the reliability diagram: "forecast", "frequency"."""
        score, hits = words.score_and_hit(self.reduction)
        return score.removeprefix("mean "), hits

    def _ahead(self, interval: Interval | None = None) -> str:
        if self.ks == 0:
            return f"Cumulative {' and '.join(self.names)} agree everywhere"
        ahead = "ahead of" if self.ks_signed > 0 else "behind"
        size = points_text(self.ks, interval, self.level)
        score, hits = self.names
        return f"The {score} runs {ahead} the {hits} by up to {size}"

    def _after(self) -> str:
        """Say what remains of the gap over all rows."""
        rest = float(self.gap[-1])
        left = f"{points_text(abs(rest))} too {'high' if rest > 0 else 'low'}"
        if abs(rest) > 0.9 * self.ks:
            return f"over all rows it is {left}"
        return f"above it the error changes its sign, so that over all rows it is only {left}"

    def plot(
        self,
        *,
        panels: Sequence[CumulativePanel] = FOUR,
        selected: tuple[float, float] | None = None,
        beside: Sequence[Overlay[Cumulative]] = (),
        **page: Unpack[Page],
    ) -> Drawing:
        """Draw the figure; on a narrow page its panels are stacked.

        Parameters
        ----------
        panels : sequence of {"a", "b", "c", "d", "gap"}
            Which panels to draw: cumulative score and hits against fractile (a) and against cumulative score
            (b), score and probability against fractile (c) and against score (d), and the gap on its own scale.
        selected : (float, float), optional
            Range of scores to frame: above the first, up to and including the second.
        beside : sequence of Overlay
            Plots of other rows, such as a subset of these: their probability is drawn in panel d, their gap in panel "gap".
        **page
            See `Figure.plot`.
        """
        if not panels or any(p not in get_args(CumulativePanel) for p in panels):
            raise OptionError(
                f"'panels' must be among {', '.join(get_args(CumulativePanel))}; got {panels!r}."
            )
        sheet = self.sheet(**page)
        columns = 1 if sheet.narrow or len(panels) == 1 else 2
        rows = -(-len(panels) // columns)
        inner = rows * _PANEL + (rows - 1) * _DOWN
        gap = _ACROSS / max((sheet.width or _WIDTH) - _LEFT - _RIGHT, 1)
        wide = (1 - gap * (columns - 1)) / columns
        axes: dict[str, Any] = {}
        traces: list[Trace] = []
        labels: list[Trace] = []
        frames: list[Trace] = []
        for place, key in enumerate(panels):
            letter = f"<b>{key}</b>&nbsp; " * (len(panels) > 1 and key != "gap")
            panel = _Panel(self, sheet, key, letter, "" if place == 0 else str(place + 1), beside)
            row, column = divmod(place, columns)
            left, top = column * (wide + gap), 1 - row * (_PANEL + _DOWN) / inner
            axes |= panel.axes([left, left + wide], [max(0.0, top - _PANEL / inner), top])
            traces += panel.traces()
            labels += panel.labels()
            frames += panel.frames(selected)
        picture = sheet.picture(
            _named_once(traces),
            inner=inner,
            margins=_MARGINS,
            above=24,
            annotations=labels,
            shapes=frames,
            **axes,
        )
        return drawn(picture)


def _largest(view: Steps) -> FloatArray:
    if view.count.ndim == 1:
        return np.asarray(np.abs(view.cumulative_gap).max())
    return np.concatenate([np.abs(part.cumulative_gap).max(axis=-1) for part in view.parts()])


# ---- Drawing


#: Height of a panel, and margins around the panels, in pixels.
_PANEL = 270
_MARGINS = _LEFT, _RIGHT, _TOP, _BOTTOM = 58, 14, 30, 52
#: Space between panels, for titles and ticks of the axes, in pixels.
_ACROSS, _DOWN = 72, 80
#: Half-width in pixels from which a range around a line is visible.
_LEAST = 4
#: Maximum number of markers on a further curve.
_MARKS = 8
#: Width assumed if none is known.
_WIDTH = 880
_TITLES: dict[CumulativePanel, str] = {
    "a": "Cumulative, by fractile",
    "b": "Cumulative, by cumulative score",
    "c": "Score and probability, by fractile",
    "d": "Score and probability, by score",
    "gap": "Difference, cumulative",
}
_WAYS: dict[Estimate, str] = {"smooth": "smoothed", "isotonic": "isotonic"}


def _named_once(traces: list[Trace]) -> list[Trace]:
    """Give traces of the same name one entry in the legend that the panels share."""
    named: set[str] = set()
    for trace in traces:
        name = trace.get("name", "")
        trace["showlegend"] = bool(name) and name not in named
        named.add(name)
    return traces


@dataclass(frozen=True)
class _Panel:
    """One panel: its traces, axes and labels."""

    figure: Cumulative
    sheet: Sheet
    panel: CumulativePanel
    letter: str
    suffix: str
    beside: Sequence[Overlay[Cumulative]]

    @property
    def _cumulative(self) -> bool:
        return self.panel in ("a", "b")

    @cached_property
    def _x(self) -> FloatArray:
        f = self.figure
        return {"b": f.cumulative_score, "d": f.score}.get(self.panel, f.fractile)

    def traces(self) -> list[Trace]:
        """Return the band, the score, the hits or probability, and the mark at the maximum."""
        traces = [*self._lines(), *self._others()]
        axes = {"xaxis": f"x{self.suffix}", "yaxis": f"y{self.suffix}"}
        return [{**trace, **axes} for trace in traces]

    def _lines(self) -> Iterator[Trace]:
        f, p = self.figure, self.sheet.palette
        if self.panel == "gap":
            yield from self._gap_lines()
            return
        x, score, hits = self._x, f.score, f.probability
        what, name = ("score", "probability"), f"Probability ({_WAYS[f.estimate]})"
        shape = "vh" if f.estimate == "isotonic" else None
        if self._cumulative:
            what = f"cumulative {f.names[0]}", f"cumulative {f.names[1]}"
            name, shape = f.names[1].capitalize(), None
            score, hits = f.cumulative_score, f.cumulative_hits
            x, score, hits = (np.append(0.0, values) for values in (x, score, hits))
        elif x.size == 1:
            x = np.array([0.0, 1.0]) if self.panel == "c" else marks.short_line(x)
            score, hits = np.repeat(score, 2), np.repeat(hits, 2)
        yield from self._band(x, score)
        # A thin line through the panel where the gap is largest.
        top = 1.04 * float(max(score.max(), hits.max()))
        yield marks.vertical_mark(float(self._x[f.maximum]), 0.0, top, p.muted)
        # Plotted against itself, the score is a straight line.
        ends = [0, -1] if self.panel in ("b", "d") else slice(None)
        yield line(x[ends], score[ends], p.ink, name=f.names[0].capitalize(), hover=_hover(what[0]))
        look: Trace = {"dash": "7px,3px", "width": 2.5, "shape": shape}
        yield line(x, hits, p.blue, name=name, hover=_hover(what[1]), **look)
        if self._cumulative:
            m = f.maximum
            ends_of_gap = np.array([f.cumulative_score[m], f.cumulative_hits[m]])
            yield self._dots(self._x[[m, m]], ends_of_gap)

    def _others(self) -> Iterator[Trace]:
        """Draw curves of other rows, in the panels where a single line suffices."""
        for other in self.beside:
            f, look = other.content, {"size": 8, "maxdisplayed": _MARKS}
            if self.panel == "gap":
                x, y = np.append(0.0, f.fractile), 100 * np.append(0.0, f.gap)
                yield other.curve(x, y, self.sheet.palette, hover=_hover("gap"), **look)
            elif self.panel == "d":
                x, y, hover = f.score, f.probability, _hover("probability")
                yield other.curve(x, y, self.sheet.palette, hover=hover, **look)

    def frames(self, selected: tuple[float, float] | None) -> Iterator[Trace]:
        """Draw a frame around the selected range of scores."""
        if selected is None:
            return
        low, high = max(selected[0], 0.0), selected[1]
        if self.panel != "d":
            at = 1 if self.panel == "b" else 0
            low, high = (self.figure.upto(end)[at] for end in selected)
        ink = self.sheet.palette.ink
        yield marks.frame(
            ink,
            width=1.5,
            xref=f"x{self.suffix}",
            yref=f"y{self.suffix} domain",
            x0=low,
            x1=high,
            y0=0,
            y1=1,
            fillcolor=self.sheet.palette.glaze(ink, 0.08),
            layer="below",
        )

    def _band(self, x: FloatArray, score: FloatArray) -> Iterator[Trace]:
        f, fill = self.figure, self.sheet.palette.calibrated
        name = f"{level_text(f.level)} range if calibrated"
        if self._cumulative and f.bound is not None:
            low = np.maximum(score - f.bound, 0)
            # A range as thin as the line on it is invisible, and gets no legend entry.
            thin = f.bound * _PANEL <= _LEAST * self._y_range()[1]
            yield area(*_lighter(x, low, score + f.bound), fill, name=None if thin else name)
        elif not self._cumulative and f.band is not None:
            low, high = f.band
            if low.size < x.size:
                low, high = np.repeat(low, 2), np.repeat(high, 2)
            yield area(*_lighter(x, low, high), fill, name=name)

    def _gap_lines(self) -> Iterator[Trace]:
        f, p = self.figure, self.sheet.palette
        x, gap = np.append(0.0, f.fractile), 100 * np.append(0.0, f.gap)
        ends = np.array([0.0, 1.0])
        if f.bound is not None:
            b, name = np.full(2, 100 * f.bound), f"{level_text(f.level)} range if calibrated"
            yield area(ends, -b, b, p.calibrated, name=name)
        yield line(ends, np.zeros(2), p.ink, dash="dash", width=1)
        yield line(x, gap, p.blue, name=" minus ".join(f.names).capitalize(), hover=_hover("gap"))
        both = np.tile([0.0, 1.0, np.nan], 2), np.repeat([100 * end for end in f.gap_range], 3)
        yield line(*both, p.ink, name="Range (Kuiper error)", dash="dot", width=1.5)
        at = f.maximum + 1
        yield self._dots(x[[at]], gap[[at]])

    def _dots(self, x: FloatArray, y: FloatArray) -> Trace:
        p = self.sheet.palette
        look: Trace = {"symbol": "circle", "size": 7, "line": {"color": p.paper, "width": 1}}
        name = "Largest gap (KS error)"
        return line(x, y, p.ink, width=2.5, points=look, name=name, cliponaxis=False)

    def labels(self) -> Iterator[dict[str, Any]]:
        """Label the panel with its title, and with a letter among others, and with the size of the gap in a free corner."""
        p, f, gap = self.sheet.palette, self.figure, self.panel == "gap"
        over = (f"x{self.suffix} domain", f"y{self.suffix} domain")
        yield marks.heading(self.letter + _TITLES[self.panel], p, over)
        if not (self._cumulative or gap):
            return
        at = f"fractile {decimal(f.at_fractile, 2)}"
        if self.panel == "b":
            # Where the mark stands on this axis.
            at = f"cumulative score {decimal(float(f.cumulative_score[f.maximum]), 2)}"
        # Panel "gap" stands beside others, which have the KS error.
        words_of = (
            f"Kuiper {points_text(f.kuiper)}" if gap else f"KS {points_text(f.ks)}<br>at {at}"
        )
        # In panel "gap" the label stands between the extreme gap and the band around 0.
        y, side = 0.96, "top"
        if gap:
            y, side = (0.14, "bottom") if f.ks_signed < 0 else (0.86, "top")
        yield marks.label(
            words_of,
            p,
            xref=over[0],
            yref=over[1],
            x=0.03,
            y=y,
            xanchor="left",
            yanchor=side,
            bgcolor=p.glaze(p.paper, 0.75),
        )

    def axes(self, across: list[float], down: list[float]) -> dict[str, Any]:
        """Return both axes of the panel."""
        f, x_range = self.figure, [0.0, 1.0]
        x_title = "Fractile (share of rows, lowest scores first)"
        y_title = "Cumulative share" if self._cumulative else "Probability"
        if self.panel == "gap":
            y_title = "Points"
        elif self.panel == "b":
            x_title, x_range = "Cumulative score", [0.0, float(f.cumulative_score[-1]) or 1.0]
        elif self.panel == "d":
            x_title = plotly_text(words.with_short_class(f.reduction, 18).score_label)
        x: dict[str, Any] = {"domain": across, "anchor": f"y{self.suffix}", "range": x_range}
        y = {"domain": down, "anchor": f"x{self.suffix}", "range": self._y_range()}
        return {
            f"xaxis{self.suffix}": self.sheet.axis(x_title, size=13, **x, nticks=6),
            f"yaxis{self.suffix}": self.sheet.axis(y_title, size=13, **y, nticks=6),
        }

    def _y_range(self) -> list[float]:
        f = self.figure
        if self.panel == "gap":
            ranges = [f.gap_range, *(other.content.gap_range for other in self.beside)]
            low, high = 100 * min(r[0] for r in ranges), 100 * max(r[1] for r in ranges)
            bound = 100 * (f.bound or 0)
            low, high = min(low, -bound), max(high, bound)
            room = 0.08 * (high - low or 1)
            return [low - room, high + room]
        if self._cumulative:
            top = max(float(f.cumulative_score[-1]), float(f.cumulative_hits[-1]))
            return [0.0, 1.04 * top or 1.0]
        return [0.0, 1.04]


def _lighter(
    x: FloatArray, low: FloatArray, high: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Keep every second point of a long smooth band, and its end."""
    some = np.arange(x.size)
    if x.size > BUCKETS:
        some = np.append(some[:-1:2], x.size - 1)
    return x[some], low[some], high[some]


def _hover(what: str) -> str:
    return f"{what} %{{y:.3f}} at %{{x:.3f}}"
