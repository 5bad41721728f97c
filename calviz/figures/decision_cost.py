"""The cost of keeping confident predictions and referring the others: the best threshold, and what miscalibration costs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, Unpack

import numpy as np
from scipy.optimize import isotonic_regression

from calviz.core.blocks import FloatArray
from calviz.core.entry_specs import Interval, figure, takes_weights
from calviz.core.errors import DataFrame, OptionError, check_level, claim, data_frame
from calviz.core.words import decimal, decimals_for, level_text, percent, plotly_text
from calviz.data.loaded import fit_split_for
from calviz.figures import marks
from calviz.figures.figure import Data, SampleFigure, end_columns, pointwise
from calviz.figures.marks import DASHES, Drawing, Page, Sheet, Trace, drawn, line, packed
from calviz.sample.error_bars import Redrawing, drawn_by, interval, resampled, stream
from calviz.sample.sample import Sample, dataset_of
from calviz.sample.step_views import ranked, top_label_steps
from calviz.sample.steps import Steps

#: Thresholds of the curve: this many evenly spaced ones, and about as many quantiles of the scores.
POINTS = 120
#: Costs are reported per this many predictions.
PREDICTIONS_PER_COST = 1_000


@dataclass(frozen=True)
class Costs:
    """Cost of each outcome of a prediction, in any common unit; a gain is a negative cost.

    Attributes
    ----------
    wrong, referred, right : float
        Cost of a kept wrong prediction, of a referred prediction, and of a kept right prediction.

    Raises
    ------
    OptionError
        If a cost is not finite, or a wrong prediction does not cost more than a right one.
    """

    wrong: float = 10.0
    referred: float = 1.0
    right: float = 0.0

    def __post_init__(self) -> None:
        for name in ("wrong", "referred", "right"):
            value = getattr(self, name)
            if not math.isfinite(value):
                raise OptionError(f"the cost of '{name}' must be a finite number, got {value!r}.")
        if not self.wrong > self.right:
            raise OptionError(
                f"a wrong prediction must cost more than a right one; got {self.wrong:g} for wrong and "
                f"{self.right:g} for right."
            )

    @property
    def face_value(self) -> float:
        """Smallest confidence at which keeping costs at most as much as referring, if confidences are true probabilities.

        It solves ``conf * right + (1 - conf) * wrong <= referred`` (Chow 1970; with right = 0: refer where
        1 - conf > referred / wrong). Below 0, nothing should be referred; above 1, everything should.
        """
        return (self.wrong - self.referred) / (self.wrong - self.right)

    def total(self, kept: FloatArray, errors: FloatArray, n: FloatArray | float) -> FloatArray:
        """Total cost of `n` predictions of which `kept` are kept and `errors` of these are wrong, shape (...)."""
        return self.wrong * errors + self.right * (kept - errors) + self.referred * (n - kept)


def kept_and_wrong(view: Steps, threshold: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Number of rows with a score of at least the threshold, and of wrong ones among them, shape (..., T) each.

    Parameters
    ----------
    view : Steps
        May have a leading axis of resamples.
    threshold : ndarray, shape (T,)
    """
    first = np.searchsorted(view.score, threshold, side="left")
    ranking, none = ranked(view), first == view.size
    rank = view.size - 1 - first
    kept, wrong = ranking.rows[..., rank], ranking.errors[..., rank]
    kept[..., none] = wrong[..., none] = 0
    return kept, wrong


def cost_at(view: Steps, threshold: FloatArray, costs: Costs) -> FloatArray:
    """Mean cost per prediction if predictions with at least the threshold (T,) are kept, shape (..., T)."""
    kept, errors = kept_and_wrong(view, threshold)
    n = np.asarray(view.n)[..., None]
    return np.asarray(costs.total(kept, errors, n) / n)


def best_threshold(view: Steps, costs: Costs) -> float:
    """Return the threshold of least cost on these rows; among ties, the one that refers the fewest rows.

    The threshold lies half-way between two neighbouring scores; 0 keeps every row, infinity none.
    """
    ranking = ranked(view)
    cost = costs.total(np.append(0.0, ranking.rows), np.append(0.0, ranking.errors), float(view.n))
    # The slack treats costs as equal that differ only by the order of summation.
    slack = 1e-12 * max(1.0, float(np.abs(cost).max()))
    steps = int(np.flatnonzero(cost <= cost.min() + slack)[-1])
    if steps == 0:
        return math.inf
    if steps == view.size:
        return 0.0
    lowest = view.size - steps
    return float(view.scores_at(np.array([lowest - 1, lowest])).mean())


@dataclass(frozen=True)
class RuleResult:
    """Result of a rule on the evaluated rows: keep predictions from a threshold on, refer the others.

    Attributes
    ----------
    threshold : float
        Predictions with at least this confidence are kept; infinity keeps none.
    kept, referred : int
        Rows, whatever their weights.
    referred_share : float
        Share of all rows, by weight.
    accuracy : float
        Share of the kept predictions that are right; ``nan`` where none is kept.
    cost : float
        Mean cost of a prediction, kept or not.
    interval : Interval or None
        Bootstrap interval of the cost, with the threshold held fixed.
    """

    threshold: float
    kept: int
    referred: int
    referred_share: float
    accuracy: float
    cost: float
    interval: Interval | None


@figure(
    key="decision",
    label="Cost of decisions",
    summary="Mean cost of a prediction against the confidence from which predictions are kept: the threshold that "
    "costs least, the one a calibrated model would use, and the difference in cost.",
    reference="Chow 1970; Elkan 2001",
)
@dataclass(frozen=True, eq=False, kw_only=True)
class Decision(SampleFigure):
    """The cost of deciding by confidence, computed; `plot` draws it.

    Attributes
    ----------
    name, split, n
        See `SampleFigure`; on these rows costs are measured.
    chosen_on : str or None
        The split, or that these are other rows, on which the best threshold was chosen; None if it was chosen on the evaluated rows themselves.
    costs : Costs
    level : float
        Level of the band and the intervals.
    face : RuleResult
        The rule that treats confidences as true probabilities (`Costs.face_value`).
    best : RuleResult
        The rule of least cost on the rows on which it was chosen.
    keep_all, refer_all : RuleResult
        Keep every prediction; refer every prediction.
    excess : float
        Cost at face value minus cost of the best rule: what miscalibration costs per prediction. Too large on average if the best
        threshold was chosen on the same rows; negative if the one that was best on other rows is worse than face value on these.
    excess_interval : Interval or None
        Interval of what miscalibration costs among all rows like these (`_excess_interval`).
    threshold, cost : ndarray, shape (T,)
        Thresholds and mean cost per prediction of the curve.
    band : (ndarray, ndarray) or None, shape (T,) each
        Pointwise percentile bootstrap interval of the cost.

    References
    ----------
    Chow 1970 (the rule at face value); Elkan 2001 (costs and thresholds).
    """

    chosen_on: str | None
    costs: Costs
    level: float
    face: RuleResult
    best: RuleResult
    keep_all: RuleResult
    refer_all: RuleResult
    excess: float
    excess_interval: Interval | None
    threshold: FloatArray
    cost: FloatArray
    band: tuple[FloatArray, FloatArray] | None

    @classmethod
    def compute(
        cls,
        data: Data,
        *,
        wrong: float = 10.0,
        referred: float = 1.0,
        right: float = 0.0,
        level: float = 0.95,
        band: bool = True,
        seed: int | None = None,
        resamples: int | None = None,
        split: str | None = None,
        choose_split: str | None = None,
    ) -> Self:
        """Choose the best threshold and compute the costs of the rules.

        Parameters
        ----------
        data : Predictions, ConfidencePredictions or Sample
            If a sample is given, arguments left out below take its settings.
        wrong, referred, right : float
            Costs of a kept wrong prediction, a referred prediction and a kept right prediction.
        level : float
            Level of the band and the intervals, between 0 and 1.
        band : bool
            Whether to compute the bootstrap band.
        seed, resamples : int
            Seed and number of the bootstrap resamples.
        split : str, optional
            Measure costs on this split only.
        choose_split : str, optional
            Choose the best threshold on this split; by default on the one that `calviz.data.loaded.fit_split_for` names for
            `split`. Without one it is chosen on the evaluated rows themselves, which makes its cost look too low.

        Raises
        ------
        OptionError, InputError
            Under the same conditions as in `calviz.evaluate`, and if costs are not finite or `wrong` is not above `right`.
        """
        judged = Sample.of(data, split=split, seed=seed, resamples=resamples)
        if choose_split is None and split is not None and not isinstance(data, Sample):
            choose_split = fit_split_for(dataset_of(data), split)
        choosing = None if choose_split is None else Sample.of(data, split=choose_split)
        costs = Costs(wrong, referred, right)
        return cls.of_rows(judged, choosing, costs=costs, level=level, band=band)

    @classmethod
    def of_rows(
        cls,
        judged: Data,
        choosing: Data | None = None,
        *,
        costs: Costs,
        level: float = 0.95,
        band: bool = True,
    ) -> Self:
        """Compute the figure for `judged`, with the threshold chosen on `choosing` if given; cached with the judged sample."""
        check_level(level)
        sample = Sample.of(judged).top_label
        chosen: Sample | None = None if choosing is None else Sample.of(choosing).top_label
        return sample.view(
            cls._judged,
            costs=costs,
            level=level,
            band=band,
            **sample.redrawing,
            best=(chosen or sample).view(_best, costs=costs),
            chosen_on=None if chosen is None else chosen.split or "other rows",
        )

    @classmethod
    @takes_weights
    def _judged(
        cls,
        sample: Sample,
        *,
        costs: Costs,
        level: float,
        band: bool,
        seed: int,
        resamples: int,
        best: float,
        chosen_on: str | None,
    ) -> Self:
        """See `of_rows`; `best` is the chosen threshold."""
        redrawing = Redrawing(seed=seed, resamples=resamples)
        view = sample.view(top_label_steps)
        n = sample.data.rows
        # Round the face value to the precision of the scores, so that a single-precision score of 0.9 reaches 0.9.
        face = float(np.asarray(costs.face_value, dtype=sample.scored.score.dtype))
        face = math.inf if costs.face_value > 1 else max(face, 0.0)
        rules = np.array([face, best, 0.0, math.inf])
        kept, errors = kept_and_wrong(view, rules)
        per_rule = costs.total(kept, errors, n) / n
        rows = kept
        if view.weight is not None:
            rows = np.array([np.count_nonzero(sample.scored.score >= rule) for rule in rules])
        at = _thresholds(view, rules)
        redrawn = None
        if n > 1:
            within = np.clip(np.concatenate([rules, at]), None, 2.0)
            redrawn = cost_at(resampled_between(view, within, redrawing), within, costs)
        results = [
            RuleResult(
                threshold=float(rules[i]),
                kept=round(float(rows[i])),
                referred=n - round(float(rows[i])),
                referred_share=1 - float(kept[i]) / n,
                accuracy=1 - float(errors[i] / kept[i]) if kept[i] else math.nan,
                cost=float(per_rule[i]),
                interval=None
                if redrawn is None
                else interval(redrawn[:, i], level, view=view, bounds=(0, math.inf)),
            )
            for i in range(4)
        ]
        curve = cost_at(view, at, costs)
        excess_interval = limits = None
        if redrawn is not None:
            if band:
                limits = pointwise(redrawn[:, 4:], level, view, bounds=(0, math.inf))
            gain, drawn = per_rule[0] - np.append(per_rule, curve), redrawn[:, [0]] - redrawn
            drift = cost_at(_right_at_face_value(view, costs, face), np.append(rules, at), costs)
            excess_interval = _excess_interval(
                view, gain, drawn, drift[0] - drift, level, elsewhere=chosen_on is not None
            )
        return cls(
            **cls._fields(sample, level=level),
            chosen_on=chosen_on,
            costs=costs,
            face=results[0],
            best=results[1],
            keep_all=results[2],
            refer_all=results[3],
            excess=results[0].cost - results[1].cost,
            excess_interval=excess_interval,
            threshold=at,
            cost=curve,
            band=limits,
        )

    @property
    def costs_more(self) -> bool:
        """Whether it is clear of chance that miscalibration costs anything."""
        return self.excess_interval is not None and self.excess_interval.low > 0

    @property
    def rules(self) -> dict[str, RuleResult]:
        """The four rules by name."""
        return {
            "confidence at face value": self.face,
            "best threshold": self.best,
            "keep everything": self.keep_all,
            "refer everything": self.refer_all,
        }

    def columns(self) -> Mapping[str, Any]:
        """One row per threshold."""
        ends = end_columns("cost", self.band, self.cost)
        return {"threshold": self.threshold, "cost": self.cost, **ends}

    def table(self) -> DataFrame:
        """Return the rules as a table, one row each, with costs per prediction."""
        rules = self.rules.values()
        shares = ("threshold", "kept", "referred", "accuracy", "cost")
        return data_frame(
            {
                "rule": list(self.rules),
                **{name: [getattr(rule, name) for rule in rules] for name in shares},
                "cost_low": [r.interval.low if r.interval else None for r in rules],
                "cost_high": [r.interval.high if r.interval else None for r in rules],
            }
        )

    def caption(self) -> tuple[str, ...]:
        """Name; rows and costs; what miscalibration costs: one line each."""
        c = self.costs
        costs = f"costs: wrong {c.wrong:g}, referred {c.referred:g}, right {c.right:g}"
        return *self._head(costs), self.headline

    @property
    @claim("cost-of-miscalibration")
    def headline(self) -> str:
        """What miscalibration costs, in at most 15 words."""
        if self.n == 1:
            return "A single row does not tell what miscalibration costs"
        if self.costs_more:
            return f"Miscalibration adds {self.per(self.excess)} to the cost of {PREDICTIONS_PER_COST:,} predictions"
        return "What miscalibration costs is within noise"

    def per(self, cost: float) -> str:
        """Write a cost per `PREDICTIONS_PER_COST` predictions, with decimals that suit all costs in the drawing."""
        return decimal(PREDICTIONS_PER_COST * cost, self._decimals)

    @property
    def _decimals(self) -> int:
        most = max(abs(PREDICTIONS_PER_COST * r.cost) for r in self.rules.values())
        decimals = 0 if most >= 100 else decimals_for(most, least=0)
        # The written difference must equal the difference of the two written costs; add at most two decimals for it.
        for more in range(decimals, decimals + 3):
            face, best, excess = (
                round(PREDICTIONS_PER_COST * v, more)
                for v in (self.face.cost, self.best.cost, self.excess)
            )
            if round(face - best, more) == excess:
                return more
        return decimals

    def reading(self) -> str:
        """Compare the cost at face value with that of the best threshold, without the name of the data."""
        face, best = self.face, self.best
        if self.n == 1:
            done = "kept" if face.kept else "referred"
            return (
                f"At face value ({kept_from(face)}) the single row is {done}; it tells neither which threshold is best nor "
                "what miscalibration costs."
            )
        text = (
            f"At face value ({kept_from(face)}) {PREDICTIONS_PER_COST:,} predictions cost {self.per(face.cost)}, "
            f"{percent(face.referred_share)} of them referred. With the {'best threshold' if self.chosen_on is None else 'threshold that was best on other rows'} "
            f"({kept_from(best)}) they cost {self.per(best.cost)}, "
            f"{percent(best.referred_share)} of them referred"
            f"{f'; referring everything costs {self.per(self.costs.referred)}' * bool(best.kept)}. "
        )
        return text + self._difference()

    @claim("cost-of-miscalibration")
    def _difference(self) -> str:
        amount = f"{self.per(self.excess)} per {PREDICTIONS_PER_COST:,} predictions"
        if self.excess_interval is not None:
            low, high = self.excess_interval
            amount += f" ({level_text(self.level)} CI {self.per(low)} to {self.per(high)})"
        elif self.excess == 0:
            return "Miscalibration costs nothing here."
        if self.costs_more:
            return f"So miscalibration costs {amount}."
        return f"So miscalibration costs nothing that is clear of chance: {amount}."

    def describe(self) -> str:
        """Say in plain words what the rules cost."""
        c = self.costs
        return (
            f"Cost of deciding by confidence, {self._subject}; a wrong prediction costs {c.wrong:g}, a referred "
            f"one {c.referred:g}, a right one {c.right:g}. {self.reading()}"
        )

    def plot(self, *, others: Sequence[Decision] = (), **page: Unpack[Page]) -> Drawing:
        """Draw the figure.

        Parameters
        ----------
        others : sequence of Decision
            Further curves with the same costs (after recalibration, or of other models), drawn without bands.
        **page
            See `Figure.plot`.
        """
        if any(other.costs != self.costs for other in others):
            raise OptionError("curves of different costs cannot be compared in one drawing.")
        sheet = self.sheet(**page)
        every = (self, *others)
        low = min(0.99, *(float(f.threshold[0]) for f in every))
        face = self.costs.face_value if low <= self.costs.face_value <= 1 else None
        up = _up(self, every)
        picture = sheet.picture(
            _traces(self, others, sheet, (low, 1.0), face, up),
            inner=sheet.panel_height,
            margins=_MARGINS,
            above=20,
            annotations=[] if face is None else [_face_label(face, low, sheet)],
            xaxis=sheet.axis(
                "Keep from this confidence on",
                range=[low, 1.0],
                nticks=7,
                tickformat=".4~f" if 1 - low < 0.02 else ".2~f",
            ),
            yaxis=sheet.axis(
                f"Cost of {PREDICTIONS_PER_COST:,} predictions",
                range=list(up),
                nticks=7,
                tickformat=",",
            ),
        )
        return drawn(picture)


def kept_from(rule: RuleResult) -> str:
    """Say from which confidence on a rule keeps predictions."""
    if math.isinf(rule.threshold):
        return "nothing is kept"
    if rule.threshold == 0:
        return "everything is kept"
    ends = (rule.threshold, 1 - rule.threshold) if rule.threshold < 1 else (rule.threshold,)
    return (
        f"confidence ≥ {decimal(rule.threshold, decimals_for(*ends, figures=1, least=3, most=7))}"
    )


@takes_weights
def _best(sample: Sample, *, costs: Costs) -> float:
    """Return the threshold of least cost on these rows."""
    return best_threshold(sample.view(top_label_steps), costs)


def resampled_between(view: Steps, thresholds: FloatArray, redrawing: Redrawing) -> Steps:
    """Resample rows and hits grouped between neighbouring thresholds (T,); each step is placed at its lower threshold.

    The first step is below all thresholds. Grouping loses nothing, as decisions by these thresholds treat all rows of a group alike.
    """
    if drawn_by(view) is not None:  # weighted or clustered rows are resampled ungrouped
        return resampled(view, "bootstrap", **redrawing)
    order = np.unique(thresholds)
    group = np.searchsorted(order, view.score, side="right")
    count, hits = (
        np.bincount(group, weights=values, minlength=order.size + 1).astype(np.float64)
        for values in (view.count, view.hits)
    )
    grouped = Steps(np.append(-1.0, order), count, hits)
    return grouped.bootstrap(stream(redrawing["seed"], "bootstrap"), redrawing["resamples"])


def _right_at_face_value(view: Steps, costs: Costs, face: float) -> Steps:
    """The sample as it would be if miscalibration cost nothing: isotonic frequencies of hits, none on the wrong side of the face value."""
    fitted = isotonic_regression(view.hits / view.count, weights=view.count).x
    keep, value = view.score >= face, min(max(costs.face_value, 0.0), 1.0)
    fitted = np.where(keep, np.maximum(fitted, value), np.minimum(fitted, value))
    return Steps(view.score, view.count, view.count * fitted)


@claim(
    "cost-of-miscalibration",
    says="So miscalibration costs x per 1,000 predictions (95 % CI a to b).",
    chosen="the threshold of least cost",
    adjusted="chosen again in each resample, less what the choice gains where the threshold at face value is right",
)
def _excess_interval(
    view: Steps,
    gain: FloatArray,
    drawn: FloatArray,
    drift: FloatArray,
    level: float,
    *,
    elsewhere: bool,
) -> Interval | None:
    """Interval of the cost at face value minus that of the best of all thresholds; it begins above 0 only if that is clear of chance.

    The best of many thresholds seems to gain even where there is nothing to gain. How much, is seen on the same resamples, moved so
    that the face value is right (`_right_at_face_value`) but frequencies of hits are else as observed. A value within the upper quantile
    of these is not clear of chance, and their mean is what the interval is moved by (see "held-out" in
    `calviz.sample.error_bars.interval`).

    Parameters
    ----------
    view : Steps
    gain, drift : ndarray, shape (T,)
        Cost at face value minus that of each threshold, the second being the chosen one, on these rows, and if the face value is right.
    drawn : ndarray, shape (B, T)
        The same on resampled rows.
    level : float
    elsewhere : bool
        Whether the threshold was chosen on other rows: then it was not chosen by its luck on these, and the lower end is that of its own
        gain.

    References
    ----------
    Harrell, Lee & Mark 1996 (the optimism of what was chosen on the same rows, from choosing again in resamples); Andrews & Soares
    2010 (inference on a maximum, moved by estimates of how far below it each candidate is).
    """
    any_of = interval(
        drawn.max(axis=1),
        level,
        view=view,
        value=float(gain.max()),
        method="held-out",
        calibrated=(drift + drawn - gain).max(axis=1),
        bounds=(0, math.inf),
    )
    own = interval(drawn[:, 1], level, view=view) if elsewhere else None
    if own is None or any_of is None:
        return own or any_of
    return Interval(own.low, max(own.high, any_of.high))


def _thresholds(view: Steps, rules: FloatArray) -> FloatArray:
    """Return the thresholds of the curve, from the lowest score to 1, including those of the rules."""
    score = view.score
    lowest = float(score[0])
    even = np.linspace(lowest, 1.0, POINTS)
    rows = np.cumsum(view.count)
    quantiles = score[
        np.searchsorted(rows, np.linspace(0, 1, POINTS)[:-1] * rows[-1], side="right")
    ]
    return np.unique(np.concatenate([even, quantiles, rules[(rules >= lowest) & (rules <= 1)]]))


# ---- Drawing


#: Margins of the panel in pixels.
_MARGINS = (70, 28, 26, 54)
_SYMBOLS = ("circle", "diamond", "square", "triangle-up")


def _traces(
    f: Decision,
    others: Sequence[Decision],
    sheet: Sheet,
    across: tuple[float, float],
    face: float | None,
    up: tuple[float, float],
) -> Iterator[Trace]:
    """Yield the curves, their best thresholds, the cost of referring everything, and the threshold at face value, if it is on the axis."""
    p = sheet.palette

    def curve(
        one: Decision, colour: str, symbol: str, rank: int, **attributes: Any
    ) -> Iterator[Trace]:
        name, best = plotly_text(one.name, 30), f"Best threshold, {plotly_text(one.name, 30)}"
        if not others:
            name, best = "Cost", "Best threshold"
        # Below the lowest score, everything is kept.
        yield line(
            np.append(across[0], one.threshold),
            PREDICTIONS_PER_COST * np.append(one.keep_all.cost, one.cost),
            colour,
            name=name,
            legendrank=rank,
            hover=f"%{{y:,.4~g}} where confidence ≥ %{{x:.4~f}} is kept<extra>{name}</extra>",
            **attributes,
        )
        yield marks.markers(
            packed(np.clip([one.best.threshold], *across)),
            packed(np.array([PREDICTIONS_PER_COST * one.best.cost])),
            colour,
            size=12,
            symbol=symbol,
            edge=p.paper,
            name=best,
            hover=f"best threshold: %{{y:,.4~g}}<extra>{name}</extra>",
            legendrank=rank + 1,
            cliponaxis=False,
        )

    if f.band is not None:
        low, high = (PREDICTIONS_PER_COST * end for end in f.band)
        yield marks.bootstrap_band(f.threshold, (low, high), f.level, p)
    refer = np.full(2, PREDICTIONS_PER_COST * f.costs.referred)
    thin: Trace = {"width": 1.5, "dash": "dash", "name": "Refer everything", "legendrank": 40}
    yield line(np.array(across), refer, p.muted, **thin)
    if face is not None:
        yield marks.vertical_mark(face, *up, p.ink)
    colours = (p.vermillion, p.purple, p.green)
    for i, other in enumerate(others):
        dash, symbol = DASHES[1 + i % 3], _SYMBOLS[1 + i % 3]
        yield from curve(other, colours[i % 3], symbol, 2 + 2 * i, dash=dash)
    yield from curve(f, p.blue, _SYMBOLS[0], 0, width=2.5)


def _face_label(face: float, low: float, sheet: Sheet) -> Trace:
    digits = decimals_for(face, 1 - face or 1, figures=1, least=2)
    text = f"face value: confidence ≥ {decimal(face, digits)}"
    return marks.label_above(text, sheet.palette, face, (face - low) / (1 - low))


def _up(f: Decision, every: Sequence[Decision]) -> tuple[float, float]:
    """Range of the cost axis, starting at 0 if the curves then still fill at least half of it."""
    costs = np.concatenate([[f.costs.referred], *(one.cost for one in every), *(f.band or ())])
    low, high = PREDICTIONS_PER_COST * float(costs.min()), PREDICTIONS_PER_COST * float(costs.max())
    if 0 < low < 0.5 * high:
        low = 0.0
    room = 0.06 * (high - low or max(abs(high), 1.0))
    return (low - (room if low else 0), high + room)
