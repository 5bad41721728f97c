"""A metric over time, period by period, the e-value of a watch, look by look, and curves by fold or site."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np

from calviz.comparison.folds_and_sites import MIN_ROWS, RowsByLevel
from calviz.comparison.over_time import OverTime, Period
from calviz.core import words
from calviz.core.blocks import FloatArray
from calviz.core.entry_specs import METRICS, RECALIBRATORS
from calviz.core.errors import claim
from calviz.core.events import Reduction
from calviz.core.words import capitalised, counted, p_value, plotly_text, score_and_hit, shorten
from calviz.figures import marks
from calviz.figures.figure import NAME_LENGTH, Data, Figure, facts
from calviz.figures.marks import Picture, ScoreAxes, Sheet, Trace, diagonal, line
from calviz.sample.sample import Sample, bin_sums, event_sums, where_words
from calviz.verdicts.evaluation import Written, scale_of, value_text
from calviz.verdicts.watching import WatchState


def label_of(metric: str, reduction: Reduction) -> str:
    """Label of a metric; of the MCS, with the two means whose difference it is."""
    means = f": {' − '.join(score_and_hit(reduction))}" * (metric == "mcs")
    return f"{METRICS[metric].label}{means}"


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

    @property
    def shown(self) -> OverTime:
        """The periods of the slice that changed, if there is one, or of all rows."""
        return self.result.within or self.result

    @property
    def where(self) -> str:
        """The slice whose periods are shown; "" if they are of all rows."""
        watch = self.result.watch if self.result.within else None
        return where_words(watch.found.where) if watch and watch.found else ""

    def columns(self) -> Mapping[str, Any]:
        """One row per period."""
        return dict(self.shown.frame())

    def table(self, r: OverTime) -> dict[str, list[str]]:
        """Return the texts of all periods of a result, then of those without labels, by heading; a column without any is left out."""
        unit, signed = scale_of(r.metric)[1], METRICS[r.metric].direction == "zero"
        number = partial(Written.column(p.result for p in r.periods).of, unit=False)
        rows = []
        for p in r.periods:
            ci, floor, after = p.result.interval, p.result.noise_floor, p.recalibrated
            cells = {
                "period" if r.every == "equal counts" else r.every: p.name,
                "rows": f"{p.rows:,}",
                self.label + f", {unit}" * bool(unit): number(p.result.value),
                "95 % CI": f"{number(ci.low)} to {number(ci.high)}" if ci else "–",
                "noise floor": number(floor.mean) if floor and not signed else "–",
                f"if nothing {'else ' * bool(r.sides)}changes": number(p.expected),
                f"differs {'beside the change' if r.sides else 'from the others'}": _differs(r, p),
                "fitted on the past": number(after.value) if after else "–",
                "expected before labels": number(p.before_labels),
            }
            rows.append(cells)
        for w in r.waiting:
            value, *ends = map(number, (w.expected.value, *w.expected.interval))
            texts = f"{w.name}, no labels", f"{w.rows:,}", f"~{value}", " to ".join(ends)
            rows.append(dict(zip(cells, texts, strict=False)))
        columns = {key: [row.get(key, "–") for row in rows] for key in cells}
        return {key: column for key, column in columns.items() if {*column} != {"–"}}

    def caption(self) -> tuple[str, ...]:
        """Name, rows and reduction."""
        r = self.shown
        reduction = shorten(Reduction.of(r.reduction).label)
        rows = " where ".join(filter(None, (counted(r.rows, "row"), self.where)))
        details = facts(None, rows, reduction, f"{self.label} by {r.every}")
        return shorten(r.name, NAME_LENGTH), details

    @claim("change-over-time")
    def answer(self) -> str:
        """Say whether the metric, or the MCS, changes, and in which period most significantly."""
        r = self.result
        looked = counted(len(r.periods), "period")
        if untested := capitalised(r.untested):
            return f"{untested} {r.lasting} by the watch of all days." if r.lasting else untested
        metrics = " or ".join(METRICS[key].label for key in r.tested)
        if not r.changed:
            if r.sides:
                return f"Beside the change, none of {looked} differs in {metrics} beyond chance."
            alone = r.watch and (r.watch.changed or r.watch.within)
            none = "Taken alone, none" if alone else "None"
            return f"{none} of {looked} differs from the others in {metrics} beyond chance."
        most = "; most clearly" if len(r.changed) > 1 else ":"
        verb = "differ" if len(r.tested) > 1 and len(r.changed) > 1 else "differs"
        others = f"the others{' on the same side of the change' * bool(r.sides)}"
        of_rows = " In the MCS none does: it may be other rows, not their scores." * r.of_rows
        return (
            f"In {len(r.changed):,} of {looked} the {metrics} {verb} from {others} beyond chance"
            f"{most} {self.sentence(r.changed[0])}.{of_rows}"
        )

    @property
    @claim("change-over-time")
    def headline(self) -> str:
        """The beginning of `answer`, up to the period that differs most clearly."""
        r = self.result
        if r.untested:
            what = f"{r.lasting}; whether single periods differ" if r.lasting else ""
            return f"{what or 'Whether it changes over time'} cannot be told"
        return self.answer().split(", ")[0].rstrip(".")

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
        lead = f"{r.alone} All rows together: " if r.alone else ""
        says = f"{lead}{name}, fitted before each period on all rows until then, would have {self._judged(r)}"
        if r.before is None:
            says = f"{name} could not be fitted on the past: {r.reason}"
        if r.anew is None or r.watch is None:
            return says
        rows = f"on the rows since {r.watch.shown(str(r.watch.changed))} only"
        if r.anew.before is None:
            return f"{says} It could not be fitted {rows}: {r.anew.reason}"
        return f"{says} Fitted {rows}, it would have {self._judged(r.anew)}"

    @claim("models-differ")
    def _judged(self, r: OverTime) -> str:
        if r.before is None or r.after is None:
            return ""
        verdict = r.difference.verdict if r.difference is not None else ""
        found = "no difference" if verdict == "tied" else verdict
        # A change of sign alone is no gain.
        signed = " in its distance from 0" * (METRICS[r.metric].direction == "zero")
        outcome = f", {found} beyond noise{signed}" if verdict else ""
        before, after = (value_text(r.metric, v.value) for v in (r.before, r.after))
        # The first periods, on which it is fitted, are in the value of all rows but not in these two.
        judged = sum(p.recalibrated is not None for p in r.periods)
        where = f" on the {counted(judged, 'period')} with enough rows before {'it' if judged == 1 else 'them'}"
        change = "left the {} at {}" if after == before else "made the {} {} instead of {}"
        change = change.format(self.label, after, before)
        return f"{change}{where if judged < len(r.periods) else ''}{outcome}."

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
        where = f", where {self.where} and of all rows. All rows:" if self.where else "."
        lead = f"{self.label} of {shorten(self.result.name, NAME_LENGTH)} over time{where}"
        return " ".join(filter(None, [lead, self.answer(), self.past(), self.before_labels()]))

    def draw(self, sheet: Sheet) -> Picture:
        """Draw the periods in their order."""
        sign, reduction = scale_of(self.result.metric)[1], Reduction.of(self.result.reduction)
        return sheet.picture(
            [*_traces(self, sheet), *_before_labels(self, sheet)],
            inner=sheet.panel_height,
            margins=_MARGINS,
            xaxis=_across(sheet, _names(self.result)),
            yaxis=sheet.axis(
                label_of(self.result.metric, reduction) + f", {sign}" * bool(sign), nticks=7
            ),
            shapes=list(_change(self.result, sheet)),
        )


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
        counts = counted(self.state.rows, "row"), counted(self.state.looks, "look")
        return shorten(self.name, NAME_LENGTH), facts(None, *counts)

    def describe(self) -> str:
        """Say in plain words what the picture shows."""
        return f"The e-value of {shorten(self.name, NAME_LENGTH)}, look by look. {self.state.sentence()}"

    def draw(self, sheet: Sheet) -> Picture:
        """Draw the e-value on a logarithmic axis."""
        looks = [self.state.shown(look) for look, _ in self.state.path]
        # Beyond this, nothing is left to tell.
        y = np.minimum([value for _, value in self.state.path], 1e30)
        x = np.arange(len(looks), dtype=float)
        ends = np.array([-0.6, len(looks) - 0.4])
        limit = np.full(2, self.state.limit)
        top = max(math.log10(self.state.limit), float(np.log10(y.max()))) + 0.4
        low = min(float(np.log10(y.min())), 0)
        return sheet.picture(
            [
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
            ],
            inner=sheet.panel_height,
            margins=_MARGINS,
            xaxis=_across(sheet, looks),
            yaxis=sheet.axis(
                "E-value",
                type="log",
                range=[low - 0.2, top],
                dtick=max(1, round((top - low) / 6)),
                exponentformat="power",
            ),
        )


# ---- Drawing


#: Margins of the panel left, right, above and below, in pixels.
_MARGINS = (66, 20, 14, 40)
#: Width of a letter, and of the drawing if it is not known, in pixels; distance of a mark without labels from that with labels, in
#: periods, so that neither hides the other.
_LETTER, _USUAL, _ASIDE = 7, 700, 0.15


def _across(sheet: Sheet, names: Sequence[str]) -> Trace:
    """The axis of periods or looks, as many with their names as fit side by side: the beginning of a period suffices to identify it."""
    texts = [plotly_text(name.split(" to ")[0], 16) for name in names]
    room = (sheet.width or _USUAL) - sum(_MARGINS[:2])
    every = -(-len(texts) * (2 + max(map(len, texts))) * _LETTER // room)
    at, ends = list(range(0, len(texts), every)), [-0.6, len(texts) - 0.4]
    ticks: Trace = {"tickvals": at, "ticktext": texts[::every], "tickangle": 0}
    return sheet.axis(range=ends, tickmode="array", **ticks)


def _change(r: OverTime, sheet: Sheet) -> Iterator[Trace]:
    """A line at the day on which calibration changed, and the band of days on which it may have, with 95 % confidence; a period lies at the first day of its rows."""
    watch, found = r.watch, r.watch and r.watch.found
    if watch and (since := found.since if found else watch.changed):
        # Names begin with the first day, month, quarter or year of a period.
        names = (p.name.split(" to ")[0].partition("-Q") for p in r.periods)
        months = (f"{start}-{3 * int(q) - 2:02}" if q else start for start, _, q in names)
        when = (since, *(found.between if found else ()))
        given = (months, when, (day for day, _ in watch.path))
        starts, days, known = (np.array([*some], "M8[D]").astype(int) for some in given)
        first = known[np.searchsorted(known, starts).clip(max=known.size - 1)].tolist()
        first.append(2 * first[-1] - first[-2:][0])  # the end of the last one
        at, *ends = np.interp(days, first, np.arange(len(first))).tolist()
        panel: Trace = {"xref": "x", "yref": "y domain"}
        if ends:
            sides = {"x0": ends[0], "x1": ends[1], "y0": 0, "y1": 1, "layer": "below"}
            glaze = sheet.palette.glaze(sheet.palette.vermillion, 0.12)
            yield marks.frame(glaze, width=0, fillcolor=glaze, **sides, **panel)
        label = {"text": " changed ", "textangle": 0, "textposition": "end"}
        label |= {"xanchor": "right" if 2 * at > len(first) else "left", "yanchor": "top"}
        look: Trace = {"x": at, "width": 1.5, "dash": "2px,3px", "label": label}
        yield marks.vertical_shape(sheet.palette.vermillion, **look, **panel)


def _names(r: OverTime) -> list[str]:
    """Names of the periods, then of those that have rows without labels only."""
    return list(dict.fromkeys([p.name for p in r.periods] + [w.name for w in r.waiting]))


def _before_labels(figure: OverTimeLine, sheet: Sheet) -> Iterator[Trace]:
    """What all rows with labels let expect of those without."""
    r, scale = figure.result, scale_of(figure.result.metric)[0]
    if r.waiting:
        names = _names(r)
        yield _with_whiskers(
            [names.index(w.name) + _ASIDE for w in r.waiting],
            [[scale * v for v in (w.expected.value, *w.expected.interval)] for w in r.waiting],
            sheet.palette.neutral,
            symbol="diamond-open",
            name="Without labels: expected, with 95 % interval",
            customdata=[[plotly_text(w.name, 40), w.rows] for w in r.waiting],
            hover="%{customdata[0]}: %{y:.4~g} expected<br>%{customdata[1]:,} rows without labels",
        )


def _traces(figure: OverTimeLine, sheet: Sheet) -> Iterator[Trace]:
    r, palette = figure.shown, sheet.palette
    scale, every = scale_of(r.metric)[0], figure.result.periods
    at = [p.name for p in every]
    x = np.array([at.index(p.name) for p in r.periods], dtype=float)
    floor = np.array([f.mean if (f := p.result.noise_floor) else np.nan for p in r.periods])
    look: Trace = {"width": 1.5, "hoverinfo": None}
    each = "Each period"
    if figure.where:
        each = f"Where {plotly_text(figure.where, 60)}"
        values = scale * np.array([p.result.value for p in every])
        yield line(
            np.arange(len(every), dtype=float), values, palette.neutral, width=1.5, name="All rows"
        )
    if np.isfinite(floor).any() and METRICS[r.metric].direction != "zero":
        look |= {"dash": "2px,3px", "name": "Noise floor (calibrated)"}
        yield line(x, scale * floor, palette.muted, **look)
    expected = np.array([p.expected for p in r.periods])
    if np.isfinite(expected).any():
        look |= {"dash": "dash", "name": f"If nothing {'else ' * bool(r.sides)}changes"}
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
        changes = [p for p in r.periods if (p.adjusted <= r.level) == changed]
        if not changes:
            continue
        results = [p.result for p in changes]
        yield _with_whiskers(
            [at.index(p.name) for p in changes],
            [[scale * v for v in (f.value, *(f.interval or (f.value, f.value)))] for f in results],
            palette.ink if changed else palette.blue,
            symbol="diamond" if changed else "circle",
            name="Differs from the others beyond chance" if changed else f"{each}, 95 % CI",
            customdata=[
                [
                    plotly_text(p.name, 40),
                    p.rows,
                    f"<br>differs: {_differs(r, p)}" * bool(r.resamples),
                ]
                for p in changes
            ],
            hover="%{customdata[0]}: %{y:.4~g}<br>%{customdata[1]:,} rows%{customdata[2]}",
        )


def _with_whiskers(
    at: Sequence[float], values: Sequence[Sequence[float]], colour: str, **look: Any
) -> Trace:
    """Marks of values, each with the ends of its interval."""
    value, low, high = np.array(values).T
    ends = marks.whiskers(
        (high - value).tolist(), (value - low).tolist(), colour, thickness=1.3, width=4
    )
    return marks.markers(at, value.tolist(), colour, size=9, error_y=ends, **look)


def _differs(r: OverTime, one: Period) -> str:
    """Whether it differs beyond chance, and, of two metrics, if it is the MCS that does; a dash if that is not tested."""
    yes = f"yes, in {METRICS[r.tested[-1]].label}" if one.by_gap else "yes"
    differs = yes if one.adjusted <= r.level else "no"
    return f"{differs} ({p_value(one.adjusted)})" if one.adjusted == one.adjusted else "–"


# ---- Curves by fold or site


#: Most curves or panels; further levels are pooled into the last one.
MOST = 12
#: Rows of a bin that a curve has at least, hits and misses per bin, and its largest number of bins.
BIN_ROWS, BIN_HITS, BINS = 15, 5, 10
#: Side of a panel whose width is not known, gap between panels, and margins left, right, above and below, in pixels.
_SIDE, _GAP, _AROUND = 190, 26, (56, 16, 24, 52)


class LevelCurve(NamedTuple):
    """A curve: name, rows, mean score and share of hits of each equal-mass bin, shape (M,) each, with its 95 % interval."""

    name: str
    rows: int
    score: FloatArray
    observed: FloatArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, name: str, sample: Sample) -> Self:
        """Bin rows into equal masses."""
        rows, share = sample.data.rows, float(sample.view(event_sums).accuracy[0])
        most = min(rows // BIN_ROWS, round(rows * min(share, 1 - share)) // BIN_HITS, BINS)
        sums = sample.view(bin_sums, bins=max(most, 1), scheme="equal-mass")
        return cls(name, rows, sums.confidence, sums.accuracy, *sums.share_interval(0.95))


@dataclass(frozen=True, eq=False)
class CurvesByLevel(Figure):
    """The reliability curve of each fold or site, and that of all rows.

    Attributes
    ----------
    name, by : str
    reduction : Reduction
    pooled : LevelCurve
    curves : tuple of LevelCurve
        At most `MOST`; of more levels, the smallest ones are pooled into the last curve.
    panels : bool
        Whether each has a panel of its own.
    """

    name: str
    by: str
    reduction: Reduction
    pooled: LevelCurve
    curves: tuple[LevelCurve, ...]
    panels: bool

    @classmethod
    def compute(
        cls,
        data: Data,
        by: str | Sequence[str],
        *,
        panels: bool = False,
        split: str | None = None,
        reduction: Reduction | str | None = None,
        min_rows: int = MIN_ROWS,
    ) -> Self:
        """Bin the rows of each level.

        Parameters
        ----------
        data, split, reduction
            See `calviz.evaluate`.
        by : str or sequence of str
            Group column, or two.
        panels : bool
            Whether each level has a panel of its own.
        min_rows : int
            Levels with fewer rows are left out.

        Raises
        ------
        OptionError, NotAvailable
            Without such a column, or without a level of enough rows.
        """
        sample = Sample.of(data, split=split, reduction=reduction)
        columns = (by,) if isinstance(by, str) else tuple(by)
        levels = RowsByLevel.of(sample, columns, min_rows)
        shown, rest = levels.large, levels.large[:0]
        if shown.size > MOST:
            order = np.argsort(-levels.rows[shown], kind="stable")
            shown, rest = np.sort(shown[order[: MOST - 1]]), shown[order[MOST - 1 :]]
        curves = [LevelCurve.of(levels.names[k], levels.part(sample, k)) for k in shown.tolist()]
        if rest.size:
            others = np.flatnonzero(np.isin(levels.code, rest))
            name = f"{rest.size} others pooled"
            curves.append(LevelCurve.of(name, sample.with_data(sample.data.take(others))))
        whole = LevelCurve.of("All rows", sample)
        named = " and ".join(columns)
        return cls(sample.data.name, named, sample.reduction, whole, tuple(curves), panels)

    def columns(self) -> Mapping[str, Any]:
        """One row per point."""
        levels, rows, *of_bins = zip(*self.curves, self.pooled, strict=True)
        sizes = [score.size for score in of_bins[0]]
        names = ("mean_score", "observed", "low", "high")
        return {
            "level": np.repeat(levels, sizes),
            "rows": np.repeat(rows, sizes),
            **dict(zip(names, map(np.concatenate, of_bins), strict=True)),
        }

    @property
    def axes(self) -> ScoreAxes:
        """Axes that all panels share, zoomed as those of a reliability diagram."""
        shown = self.columns()
        high = np.minimum(shown["high"], marks.ZOOMED)
        return ScoreAxes(marks.end_of(shown["mean_score"], shown["observed"], high))

    def caption(self) -> tuple[str, ...]:
        """Name, rows and reduction."""
        details = facts(None, counted(self.pooled.rows, "row"), shorten(self.reduction.label))
        return shorten(self.name, NAME_LENGTH), details, f"By {shorten(self.by)}"

    def describe(self) -> str:
        """Say how many curves there are and where they lie."""
        gaps = [float(np.average(c.score - c.observed)) for c in self.curves]
        low, high = int(np.argmin(gaps)), int(np.argmax(gaps))
        return (
            f"Reliability curves of {counted(len(self.curves), 'level')} of {shorten(self.by)} and of all rows; on average over the bins "
            f"'{shorten(self.curves[high].name, 30)}' lies lowest, {words.signed_points(gaps[high])} points of score minus hits, and "
            f"'{shorten(self.curves[low].name, 30)}' highest, {words.signed_points(gaps[low])}."
        )

    def draw(self, sheet: Sheet) -> Picture:
        """Draw all curves in one square, or a panel for each."""
        return _side_by_side(self, sheet) if self.panels else _overlaid(self, sheet)


def _curve(curve: LevelCurve, colour: str, **attributes: Any) -> Trace:
    name = f"{plotly_text(curve.name, 40)}, {curve.rows:,} rows"
    hover = f"{name}<br>score %{{x:.3f}}, observed %{{y:.3f}}"
    return line(curve.score, curve.observed, colour, hover=hover, **attributes)


def _square(sheet: Sheet, axes: ScoreAxes, key: str, dtick: float, **more: Any) -> dict[str, Any]:
    """Both axes of a square panel; `more` has attributes of the x axis under "x" and of the y axis under "y"."""
    same = axes.unit() | {"tickmode": "linear", "dtick": dtick * axes.end, "tickformat": ".3~f"}
    same["constrain"] = "domain"
    across = sheet.axis(more["titles"][0], anchor=f"y{key}", **same, **more["x"])
    up: Trace = {"anchor": f"x{key}", "scaleanchor": f"x{key}", "scaleratio": 1}
    return {
        f"xaxis{key}": across,
        f"yaxis{key}": sheet.axis(more["titles"][1], **up, **same, **more["y"]),
    }


def _titles(figure: CurvesByLevel) -> tuple[str, str]:
    score, hit = score_and_hit(figure.reduction)
    return plotly_text(score.capitalize()), plotly_text(hit.capitalize())


def _overlaid(figure: CurvesByLevel, sheet: Sheet) -> Picture:
    p = sheet.palette
    faint: Trace = {"width": 1, "name": f"Each {plotly_text(figure.by, 30)}"}
    traces = [
        diagonal(p) | {"showlegend": False},
        *(
            _curve(c, p.glaze(p.ink, 0.45), showlegend=number == 0, **faint)
            for number, c in enumerate(figure.curves)
        ),
        _curve(figure.pooled, p.blue, points={"size": 7}, name="All rows"),
    ]
    left, right, _, _ = _AROUND
    return sheet.picture(
        traces,
        inner=min((sheet.width or 440) - left - right, 380),
        margins=_AROUND,
        **_square(sheet, figure.axes, "", 0.25, titles=_titles(figure), x={}, y={}),
    )


def _side_by_side(figure: CurvesByLevel, sheet: Sheet) -> Picture:
    p, count = sheet.palette, len(figure.curves)
    columns = min(2 if sheet.narrow else 4, count)
    rows = -(-count // columns)
    left, right, _, _ = _AROUND
    room = (sheet.width or columns * (_SIDE + _GAP) + left + right) - left - right
    side = min((room - (columns - 1) * _GAP) / columns, 220)
    height = rows * side + (rows - 1) * (_GAP + 8)
    axes: dict[str, Any] = {}
    scale = figure.axes
    notes: list[Trace] = []
    traces: list[Trace] = []
    names = words.told_apart([c.name for c in figure.curves], max(10, int(side / 8)))
    for number, curve in enumerate(figure.curves):
        row, column = divmod(number, columns)
        key = str(number + 1) if number else ""
        top = 1 - row * (side + _GAP + 8) / height
        x: Trace = {"domain": [(column + 0.06) / columns, (column + 0.94) / columns]}
        x |= {"showticklabels": number + columns >= count}
        y: Trace = {"domain": [max(top - side / height, 0), top], "showticklabels": column == 0}
        axes |= _square(sheet, scale, key, 0.5, titles=("", ""), x=x, y=y)
        notes.append(
            marks.heading(plotly_text(names[number]), p, (f"x{key} domain", f"y{key} domain"), 2)
        )
        own: Trace = {"xaxis": f"x{key}", "yaxis": f"y{key}"}
        entry = own | {"showlegend": number == 0}
        sides = curve.high - curve.observed, curve.observed - curve.low
        ends = marks.whiskers(*sides, p.blue, thickness=1, width=0)
        name = "Rows of the panel, 95 % intervals"
        traces += [
            diagonal(p) | own | {"showlegend": False},
            _curve(figure.pooled, p.neutral, width=1, name="All rows", **entry),
            _curve(curve, p.blue, points={"size": 5}, name=name, error_y=ends, **entry),
        ]
    across, up = _titles(figure)
    paper: Trace = {"xref": "paper", "yref": "paper", "showarrow": False, "font": {"size": 13}}
    notes += [
        paper | {"text": across, "x": 0.5, "y": 0, "yshift": -26, "yanchor": "top"},
        paper | {"text": up, "x": 0, "y": 0.5, "xshift": -36, "xanchor": "right", "textangle": -90},
    ]
    return sheet.picture(traces, inner=round(height), margins=_AROUND, annotations=notes, **axes)
