"""The gap of each slice with its interval, and the confidence from which each group can be trusted."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, Unpack

import numpy as np

from calviz.core import words
from calviz.core.blocks import FloatArray
from calviz.core.entry_specs import Interval
from calviz.core.errors import PREDICTED, NotAvailable, OptionError, claim
from calviz.core.events import Reduction
from calviz.core.features import MISSING
from calviz.core.predictions import Dataset, no_group_column, sliceable_columns, with_group
from calviz.core.words import capitalised, counted, plotly_text, points, shorten, signed_points
from calviz.figures import marks
from calviz.figures.figure import NAME_LENGTH, Figure, facts
from calviz.figures.marks import Drawing, Overlay, Page, Picture, Sheet, Trace, area, drawn, line
from calviz.figures.style import axis
from calviz.sample.class_gaps import class_ranges
from calviz.sample.sample import Sample
from calviz.sample.slice_results import Slice, Slices
from calviz.sample.slices import USUAL_RATE, slices, usual_slices
from calviz.verdicts.evaluation import Verdict
from calviz.verdicts.miscalibration_checks import NEAR, nearest

if TYPE_CHECKING:
    from calviz.comparison.guaranteed_thresholds import ThresholdChoice

#: Maximum number of slices drawn.
MOST = 20


@dataclass(frozen=True, eq=False)
class SliceGaps(Figure):
    """The first slices of `calviz.slices`, ready to draw.

    Drawn from a result, not from predictions: `calviz.slices` computes, this class draws.

    Attributes
    ----------
    result : Slices
    shown : tuple of Slice
        The drawn slices.
    change : str
        Since when one of the slices is off, as the verdict says it; "" if it names no change of one.
    """

    result: Slices
    shown: tuple[Slice, ...]
    change: str = ""

    @classmethod
    def compute(cls, result: Slices, verdict: Verdict | None = None, *, most: int = MOST) -> Self:
        """Choose the slices to draw: the `most` most significant ones; a `verdict` on the same rows says which of them changed.

        Raises
        ------
        OptionError
            If `most` is below 1.
        """
        if most < 1:
            raise OptionError(f"'most' must be 1 or more, got {most}.")
        some, wheres = result.own[:most], [{*s.where} for s in result.slices]
        if verdict is None or result.against == "rest" or {*verdict.changed_where} not in wheres:
            return cls(result, some)
        since, until = verdict.changed_days
        dated = verdict.changed_where, f"until {until}" if until else f"since {since}"
        return cls(replace(result, changed="", dated=dated), some, verdict.changed)

    def columns(self) -> Mapping[str, Any]:
        """One row per slice."""
        return dict(replace(self.result, slices=self.shown).frame())

    def caption(self) -> tuple[str, ...]:
        """Name, rows and reduction."""
        r = self.result
        reduction = shorten(Reduction.of(r.reduction).label)
        return shorten(r.name, NAME_LENGTH), facts(None, counted(r.rows, "row"), reduction)

    def answer(self) -> str:
        """Say how many slices are off beyond chance, and which is most significant."""
        return f"{self.headline}. {self.beyond_headline}".rstrip()

    @property
    @claim("slices")
    def headline(self) -> str:
        """Where scores are off most surely, since when if that changed, or that they are in no slice."""
        return self.change or self._over_all_days

    @property
    @claim("slices")
    def _over_all_days(self) -> str:
        r = self.result
        if not r.slices and r.skipped and not r.small:
            return f"There are no slices: {'; '.join(r.skipped[:3])}"
        if not r.slices:
            return f"No slice has {r.min_rows:,} rows or more"
        of_rest = r.against == "rest"
        if not r.off:
            than = "the other rows" if of_rest else "a calibrated model"
            near = r.slices[0].adjusted <= NEAR
            level = f"at the level of {100 * r.rate:g} %" if near else "beyond chance"
            return f"None of {counted(len(r.slices), 'slice')} differs on average from {than} {level}{f', but {r.change}' * bool(r.change)}"
        _, _, first = r.headline.partition(" beyond chance, most clearly ")
        many = f" in {len(r.off):,} slices, most clearly" * (len(r.off) > 1)
        off = f"{'Unlike the other rows' if of_rest else 'Off'}{many}"
        return f"{off} where {first}" if first else r.headline

    @property
    @claim("slices")
    def beyond_headline(self) -> str:
        """What `headline` does not say: the interval of the first slice, how many are off, and the next ones; or the slice that is nearest to it."""
        r = self.result
        if self.change:
            return f"Over all days: {words.within_sentence(replace(self, change='').answer())}"
        if not r.named:
            return nearest(r)
        first, *off = r.named
        ends = first.expected_interval if first.gap > 0 else first.expected_interval.turned
        size = f"95 % CI {_ends(ends)} points on new rows; {points(abs(first.gap), words.gap_decimals(first.expected))} on these {counted(first.rows, 'row')}"
        gap = words.expected_gap(first.expected)
        said = size if gap in self.headline else f"{capitalised(gap)} ({size})"
        text = f"{said}.{f' {r.counted_off} beyond chance.' * (not r.rest)}"
        if not off:
            return text
        # Three slices are named after the first.
        named = [f"{shorten(s.name, 60)} ({signed_points(s.expected)} points)" for s in off[:3]]
        more = len(off) - len(named)
        return f"{text} Also {'off' if not r.rest else 'different'}: {'; '.join(named)}{f'; and {more:,} more' if more else ''}."

    def unmeasured(self) -> str:
        """Which slices and columns are left out, and why."""
        r = self.result
        few = f"{counted(r.small, 'slice')} with fewer than {r.min_rows:,} rows not measured"
        left = f"left out: {'; '.join(shorten(reason, 200) for reason in r.skipped[:5])}"
        said = (few * bool(r.small), left * bool(r.skipped))
        return " ".join(f"{capitalised(text)}." for text in said if text)

    def describe(self) -> str:
        """Say in plain words what the picture shows."""
        return f"Gap of score and hits by slice of {shorten(self.result.name, NAME_LENGTH)}. {self.answer()}"

    def plot(self, *, beside: Sequence[Overlay[FloatArray]] = (), **page: Unpack[Page]) -> Drawing:
        """Draw the figure.

        Parameters
        ----------
        beside : sequence of Overlay
            Gaps of the same slices in another state: one per drawn slice, nan where there is none.
        **page
            See `Figure.plot`.
        """
        sheet = self.sheet(**page)
        palette, above = sheet.palette, sheet.narrow
        short = words.told_apart((s.name for s in self.shown), _NAME)
        lines = [textwrap.wrap(name, _ABOVE if above else _NAME) for name in short]
        names = ["<br>".join(map(plotly_text, some)) for some in lines]
        tall = _TALL + _LINE * (max(map(len, lines), default=1) - 1)
        # On a narrow page, names beside their rows would take most of the width.
        left = _RIGHT if above else marks.name_room(short, _BESIDE)
        score, hit = words.score_and_hit(Reduction.of(self.result.reduction))
        title = f"{score.capitalize()} − {hit} (points)"
        if any(s.of_class for s in self.shown):
            title += "<br>after a colon: P(class) − its share"
        guide: Trace = {"width": 1.2, "yref": "paper", "layer": "below"}
        traces = [*_traces(self, sheet)]
        for one in beside:
            # So that a click selects the slice, as on the main marker.
            y = list(range(one.content.size))
            traces.append(one.points(100 * one.content, y, palette, customdata=[[i] for i in y]))
        picture = sheet.picture(
            traces,
            inner=(tall if above else _ROW) * max(len(names), 2),
            margins=(left, _RIGHT, _TOP, _BOTTOM + _LINE * ("<br>" in title)),
            shapes=[
                marks.vertical_shape(palette.neutral, x=x, dash=dash, **guide)
                for x, dash in ((0.0, "solid"), (100 * self.result.gap, "dash"))
            ],
            xaxis=sheet.axis(title, nticks=5 if above else 9),
            yaxis=sheet.row_axis(names, showticklabels=not above, ticks="" if above else "outside")
            | {"range": [len(names) - 0.5 - 0.2 * above, -0.5 - 0.2 * above]},
            annotations=sheet.names_above(names, 6) if above else (),
        )
        return drawn(picture)


#: Height of a row, of one with its name above it and of each further line of that, and margins of the panel, in pixels.
_ROW, _TALL, _LINE, _RIGHT, _TOP, _BOTTOM = 24, 42, 14, 20, 12, 52
#: Size of a mark, and of one that was clicked, in pixels.
_MARK, _CLICKED = 9, 14
#: Maximum characters of a name and of a line above its row, and space beside the names in pixels.
_NAME, _ABOVE, _BESIDE = 64, 46, 20


def _traces(figure: SliceGaps, sheet: Sheet) -> Iterator[Trace]:
    palette, result = sheet.palette, figure.result
    filled = {s.where for s in result.named}
    told = filled | result.as_class | result.within
    top = Reduction.of(result.reduction).kind == "top-label"
    top &= not any(s.of_class for s in figure.shown)
    high, low = ("Overconfident", "Underconfident") if top else ("Too high", "Too low")
    kinds = ((high, True, palette.vermillion, "diamond"), (low, False, palette.purple, "circle"))
    for title, above, colour, symbol in kinds:
        same = {i: s.where for i, s in enumerate(figure.shown) if (s.gap > 0) == above}
        for more, mark, wheres in (
            ("", "", filled),
            (", as its class", "-x-open", result.as_class - result.within),
            (", within one that differs", "-open-dot", result.within),
            (f", {result.marks[1]}", "-open", {*same.values()} - told),
        ):
            off, at = not more, [i for i, where in same.items() if where in wheres]
            if not at:
                continue
            some = [figure.shown[i] for i in at]
            yield marks.markers(
                [100 * s.gap for s in some],
                at,
                colour,
                size=_MARK,
                symbol=symbol + mark,
                edge=colour,
                edge_width=1.5,
                name=title + more,
                error_x=_whiskers(some, palette.ink if off else palette.muted),
                customdata=[[i, *_facts(result, figure.shown[i])] for i in at],
                hover="%{customdata[1]}<br>%{customdata[2]}",
                unselected=marks.UNFADED["unselected"],
                selected={"marker": {"opacity": 1, "size": _CLICKED}},
            )


def _whiskers(some: Sequence[Slice], colour: str) -> Trace:
    above = [100 * (s.interval.high - s.gap) for s in some]
    below = [100 * (s.gap - s.interval.low) for s in some]
    return marks.whiskers(above, below, colour, thickness=1.3, width=4)


def _facts(result: Slices, s: Slice) -> list[str]:
    seen = f"{points(s.gap)} points ({_ends(s.interval)}) on {counted(s.rows, 'row')}"
    new = f"; {points(s.expected)} on new rows" * (s in result.off)
    return [plotly_text(s.name, 80), seen + new]


def _ends(interval: Interval) -> str:
    return f"{points(interval.low)} to {points(interval.high)}"


# ---- Along a number


def features_drawn(result: Slices) -> tuple[str, ...]:
    """Columns of numbers or dates along which the gap can be drawn: those with two slices or more, the most surely off first."""
    seen = [s.where[0][0] for s in result.slices if len(s.where) == 1]
    off = [name for s in result.off for name, _ in s.where]
    numbers = {name for name, cut in result.cuts.items() if cut.kept is None}
    return tuple(n for n in dict.fromkeys([*off, *seen]) if n in numbers and seen.count(n) > 1)


@dataclass(frozen=True, eq=False)
class FeatureGap(Figure):
    """The signed gap along a number or a date, interval by interval, with its band.

    Attributes
    ----------
    result : Slices
    column : str
    shown : tuple of Slice
        The slices of the column, in the order of its intervals; rows without a value come last.
    """

    result: Slices
    column: str
    shown: tuple[Slice, ...]

    @classmethod
    def compute(cls, result: Slices, column: str | None = None) -> Self:
        """Choose the slices of a column, the one that is most surely off if none is named.

        Raises
        ------
        OptionError
            If the column is not a number or a date with two slices or more.
        """
        known = features_drawn(result)
        column = next(iter(known), "") if column is None else column
        if column not in known:
            raise OptionError(f"'{shorten(column)}' is not cut into two slices or more.")
        labels = result.cuts[column].labels
        own = [s.top or s for s in result.slices if [name for name, _ in s.where] == [column]]
        return cls(result, column, tuple(sorted(own, key=lambda s: labels.index(s.where[0][1]))))

    def columns(self) -> Mapping[str, Any]:
        """One row per interval."""
        return dict(replace(self.result, slices=self.shown).frame())

    def caption(self) -> tuple[str, ...]:
        """Name, rows and reduction."""
        return SliceGaps.compute(self.result).caption()

    @claim("slices")
    def describe(self) -> str:
        """Say in plain words what the picture shows."""
        off = [s for s in self.shown if s in self.result.named]
        text = ", ".join(f"{s.where[0][1]}: {points(s.expected)} points on new rows" for s in off)
        mark = self.result.marks[0]
        return (
            f"Gap of score and hits along {shorten(self.column, 60)}, {counted(len(self.shown), 'slice')}; "
            f"{f'{mark}: {text}' if off else f'none {mark}'}."
        )

    @claim("slices")
    def draw(self, sheet: Sheet) -> Picture:
        """Draw the gap with its band; what is off is filled."""
        palette = sheet.palette
        known = [i for i, s in enumerate(self.shown) if s.where[0][1] != MISSING]
        x, of = np.array(known, dtype=np.float64), [self.shown[i] for i in known]
        gap, low, high = 100 * np.array([(s.gap, *s.interval) for s in of]).reshape(-1, 3).T
        traces = [
            area(x, low, high, palette.glaze(palette.blue, 0.18), name="95 % interval"),
            line(x, gap, palette.blue, width=1.6, showlegend=False),
        ]
        for off, name in zip((True, False), map(capitalised, self.result.marks), strict=True):
            at = [i for i, s in enumerate(self.shown) if (s in self.result.named) == off]
            if at:
                some = [self.shown[i] for i in at]
                traces.append(
                    marks.markers(
                        at,
                        [100 * s.gap for s in some],
                        palette.blue,
                        size=_MARK,
                        symbol="circle" if off else "circle-open",
                        edge=palette.blue,
                        edge_width=1.5,
                        name=name,
                        customdata=[_facts(self.result, s) for s in some],
                        hover="%{customdata[0]}<br>%{customdata[1]}",
                    )
                )
        names = [plotly_text(shorten(s.where[0][1], 24)) for s in self.shown]
        score, hit = words.score_and_hit(Reduction.of(self.result.reduction))
        place: Trace = {"tickmode": "array", "tickvals": [*range(len(names))], "ticktext": names}
        title = axis(palette, f"{score.capitalize()} − {hit}<br>(points)")
        # Names lie at 40 degrees, with the title of the axis below the longest.
        return sheet.picture(
            traces,
            inner=260,
            margins=(76, _RIGHT, _TOP, round(50 + 4.2 * max(map(len, names), default=0))),
            xaxis=axis(palette, plotly_text(shorten(self.column, 60)), tickangle=-40, **place),
            yaxis=title | {"zeroline": True, "zerolinecolor": palette.neutral},
        )


# ---- Levels of a group


@dataclass(frozen=True, eq=False)
class Levels:
    """The levels of a group column: those with a threshold first, then the most significantly off.

    Attributes
    ----------
    slices : Slices
        Each level compared with a calibrated model, adjusted for the number of levels.
    chosen : ThresholdChoice
        With a threshold for each level: with its confidence for all of them together.
    few : tuple of str
        Levels with fewer than `least_rows` rows, which are not judged.
    off : tuple of Slice
        The slices that are off; of predicted classes, those that `class_ranges` calls so, as everywhere.
    within : tuple of Slice
        The rows of a level above a score that are off by `usual_slices`.
    """

    least_rows: ClassVar = 20
    slices: Slices
    chosen: ThresholdChoice
    few: tuple[str, ...]
    off: tuple[Slice, ...]
    within: tuple[Slice, ...] = ()

    @property
    def choices(self) -> tuple[ThresholdChoice, ...]:
        """The threshold of each slice of `slices`."""
        return tuple(self.chosen.groups[s.where[0][1]] for s in self.slices.slices)

    @claim("threshold-risk")
    def guarantee(self, risk: float) -> tuple[str, str]:
        """Say what the thresholds promise and on which rows they were chosen, and what stands where there is none."""
        c = self.chosen
        few = f"at most {words.percent(risk)} are wrong on new rows too, with {words.level_text(c.confidence)} confidence for all values together"
        key = "None: more rows would hardly help, unless fewer than 5 % of the rows are to be kept; not yet: more rows may help, at least about as many as are said."
        if all(choice.threshold is None for choice in self.choices):
            return f"No value has a confidence from which on {few}. Tried on {c.fit.words}.", key
        rest = f"; what is kept, and right of it, is counted on {c.evaluation.words}"
        if c.fit.how == c.evaluation.how:
            rest = ", with none left to check it"
        return (
            f"From that confidence on, {few}. Chosen on {c.fit.words}{rest}.",
            f"{key} Where fewer are right than promised, that may be chance, unless the promise is said to be broken.",
        )

    def word(self, level: Slice) -> str:
        """Say in a word or two whether the scores of a level are off."""
        within = (s for s in self.within if s.where[:1] == level.where)
        if level not in self.off and (one := next(within, None)):
            return (
                f"{'too high' if one.gap > 0 else 'too low'} where {words.condition(*one.where[1])}"
            )
        if level not in self.off:
            return "not found off"
        return "too high" if level.gap > 0 else "too low"


def check_column(data: Dataset, column: str) -> None:
    """Raise OptionError if there is no such column to slice by."""
    if column not in sliceable_columns(data):
        raise no_group_column(data, column)


def levels_of(
    sample: Sample, column: str, risk: float, chosen: ThresholdChoice | None = None
) -> Levels:
    """Judge each level of a group column, or each interval of numbers.

    Parameters
    ----------
    sample : Sample
    column : str
    risk : float
        Largest allowed share of errors among the kept predictions.
    chosen : ThresholdChoice, optional
        With a threshold for each level; if it is left out or has other levels, a half of the rows of the sample choose them or, of a
        profile, all.

    Raises
    ------
    OptionError
        If there is no such group column, or no level of it can be judged.
    """
    check_column(sample.data, column)
    counts = sample.data.sliced(column).counts()
    try:
        judged = slices(sample, [column], pairs=False, min_rows=Levels.least_rows, rate=USUAL_RATE)
    except NotAvailable as error:
        raise OptionError(f"no level of '{shorten(column)}' can be judged: {error}") from None
    # What is kept is kept by its confidence.
    judged = replace(judged, slices=tuple(s.top or s for s in judged.slices))
    off = judged.off
    if column == PREDICTED:
        beyond = sample.view(class_ranges, view="predicted-class").beyond
        named = {name for name, far in zip(sample.data.class_names, beyond, strict=True) if far}
        off = tuple(s for s in judged.slices if s.where[0][1] in named)
    if chosen is None or not {s.where[0][1] for s in judged.slices} <= {*chosen.groups}:
        # It fits nothing, but loads what fits, which an audit without groups does without.
        from calviz.comparison.guaranteed_thresholds import threshold

        # Here the column is cut as its slices are.
        data = with_group(sample.data, column, sample.data.sliced(column))
        undivided = data.cells is not None
        chosen = threshold(data, risk, by=column, seed=sample.seed, in_sample=undivided)
    shown = {name: choice.cells[0] for name, choice in chosen.groups.items()}
    # Those with a threshold first, then those that more rows may give one.
    first = sorted(judged.slices, key=lambda s: shown[s.where[0][1]].startswith("not"))
    first.sort(key=lambda s: shown[s.where[0][1]] == "none")
    few = tuple(name for name, rows in counts.items() if rows < Levels.least_rows)
    usual = usual_slices(sample)
    within = tuple(s for s in usual.off if s.of_score) if usual else ()
    return Levels(replace(judged, slices=tuple(first)), chosen, few, off, within)
