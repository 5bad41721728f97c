"""Thresholds with a guarantee: tests of a risk from threshold to threshold of a ranking (Learn then Test)."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Decimal
from functools import partial
from typing import Literal, get_args

import numpy as np
from scipy.optimize import brentq
from scipy.special import betaincinv, rel_entr

from calviz.core import errors, p_values, predictions
from calviz.core.blocks import BoolArray, FloatArray, IntArray
from calviz.core.errors import PREDICTED, SCORE, claim
from calviz.core.events import BinaryEvents, CellEvents
from calviz.core.words import condition, counted, percent, shorten
from calviz.sample import error_bars, slice_tests, step_views
from calviz.sample.sample import Sample
from calviz.sample.steps import Steps, make_steps

#: Confidence that the risk on new rows is at most what was asked for.
CONFIDENCE = 0.95
#: The thresholds that are tested differ by this share of the rows; for precision, of the expected hits.
_LADDER = 0.01
#: Bets of `_by_betting`, as shares of the largest one that cannot lose everything.
_BETS = (0.1, 0.3, 0.9)
#: Where tests begin, as shares of the rows (of `RiskTests.scale`), and the share of the level that each start adds. A cost mostly
#: falls at first, and rises again, as more rows are kept; of other risks only the rows at the very top may be an exception.
_COST_STARTS = (0.0, 0.25, 0.5, 0.75), (0.25, 0.25, 0.25, 0.25)
_STARTS = (0.0, 0.1, 0.25, 0.5), (0.85, 0.05, 0.05, 0.05)

#: More rows would hardly help where each threshold that keeps this share of them takes more than so many times as many; up to the
#: last of these, a number is told.
_USABLE, _MOST_MORE, _MOST_TOLD = 0.05, 10, 30
#: Then, where no share of errors was asked for, and where none was allowed.
_NEVER = {None: "more rows would hardly help", 0.0: "no number of rows can show that none is wrong"}

RiskName = Literal["error", "precision", "recall", "fpr", "cost"]
#: Whether a row counts, by cell: kept hits, kept misses, hits and misses that are not kept; and what is then lost by it.
_CELLS: dict[str, tuple[tuple[float, ...], tuple[float, ...]]] = {
    "error": ((1, 1, 0, 0), (0, 1, 0, 0)),
    "precision": ((1, 1, 0, 0), (0, 1, 0, 0)),
    "recall": ((1, 0, 1, 0), (0, 0, 1, 0)),
    "fpr": ((0, 1, 0, 1), (0, 1, 0, 0)),
}


@dataclass(frozen=True)
class Risk:
    """A mean loss of the rows that count.

    Attributes
    ----------
    name : str
        *error*: wrong predictions among those kept. *precision*: rows of other classes among those kept (1 - precision). *recall*:
        rows of the class that are not kept (1 - recall). *fpr*: rows of other classes that are kept. *cost*: mean cost of a row.
    counts, loss : ndarray, shape (4,)
        Per cell (see `_CELLS`); losses lie in [0, 1].
    least, unit : float
        A cost is ``least + unit * loss``.
    """

    name: RiskName
    counts: FloatArray
    loss: FloatArray
    least: float = 0.0
    unit: float = 1.0

    @classmethod
    def of(cls, name: RiskName, costs: Sequence[float] = ()) -> Risk:
        """The risk of this name; `costs` are those of a wrong prediction, of a referral and of a right prediction.

        Raises
        ------
        OptionError
            If there is no such risk, or costs are not three finite numbers that differ.
        """
        errors.check_choice("of", name, get_args(RiskName))
        if name != "cost":
            counts, loss = (np.array(part, np.float64) for part in _CELLS[name])
            return cls(name, counts, loss)
        costs = tuple(costs)
        if len(costs) != 3 or not np.isfinite(costs).all() or min(costs) == max(costs):
            raise errors.OptionError(
                f"'costs' must be three finite numbers, not all the same: of a wrong prediction, of a referral, of a right one; got {costs!r}."
            )
        wrong, referred, right = costs
        least, unit = min(costs), max(costs) - min(costs)
        loss = (np.array([right, wrong, referred, referred]) - least) / unit
        return cls(name, np.ones(4), loss, least, unit)

    def observed(self, kept: BoolArray, hit: BoolArray, weights: FloatArray | None) -> float:
        """The risk of these rows, shape (n,) each; nan if no row counts."""
        cells = np.bincount(_cell(kept, hit), weights, minlength=4)
        rows = float(self.counts @ cells)
        return self.least + self.unit * float(self.loss @ cells) / rows if rows else math.nan


def _cell(kept: BoolArray, hit: BoolArray) -> IntArray:
    return np.asarray(2 * (~kept).astype(np.intp) + ~hit)


@dataclass(frozen=True)
class RiskTests:
    """Tests, at every step of a ranking, of whether the risk of keeping the rows from there on is larger than a target.

    Attributes
    ----------
    risk : Risk
    kept, misses : ndarray, shape (G,)
        Rows, and misses among them, if all rows from a step on are kept, for the highest step first.
    scale : float
        How many rows are kept at most, roughly: for precision the expected number of hits, for other risks all rows.
    units : _Units or None
        The rows, if they have weights or clusters.
    """

    risk: Risk
    kept: FloatArray
    misses: FloatArray
    scale: float
    units: _Units | None

    @classmethod
    def of(
        cls, view: Steps, risk: Risk | None = None, *, value: FloatArray | None = None
    ) -> RiskTests:
        """Tests of a ranking.

        Parameters
        ----------
        view : Steps
            Rows and hits per value: of the predicted class for an error rate or a cost, of a class for the others.
        risk : Risk, optional
            An error rate by default.
        value : ndarray, shape (n,), optional
            The value of each row by which it is ranked, if it is not the score.
        """
        risk = risk or Risk.of("error")
        drawing = error_bars.drawn_by(view)
        units = None
        if drawing is not None:
            sample = drawing.sample
            events = sample.top_scored if risk.name in ("error", "cost") else sample.scored
            units = _Units.of(sample, view, events, events.score if value is None else value)
        scale = view.score_sum.sum() if risk.name == "precision" else view.n
        return cls(risk, *step_views.ranked(view), float(scale), units)

    @property
    def size(self) -> int:
        """Number of steps G."""
        return self.kept.size

    @property
    def population(self) -> float:
        """Number of rows that count if all rows are kept."""
        return float(self.risk.counts @ self._cells(-1))

    def _cells(self, steps: int | IntArray) -> FloatArray:
        """Rows per cell (see `Risk`), shape (4, ...)."""
        kept, misses = self.kept[steps], self.misses[steps]
        hits, n, all_misses = kept - misses, self.kept[-1], self.misses[-1]
        return np.array([hits, misses, n - all_misses - hits, all_misses - misses])

    @property
    def _bets(self) -> bool:
        return self.risk.name == "cost" and self.units is None

    def _counted(self, step: int) -> tuple[float, float]:
        """What is lost, and rows, of the rows from a step on; with weights or clusters, as so many independent rows."""
        cells = self._cells(self.size - 1 - step)
        worth = 1.0 if self.units is None else self.units.worth(self.risk, step)
        return float(self.risk.loss @ cells) * worth, float(self.risk.counts @ cells) * worth

    def p_value(self, step: int, target: float) -> float:
        """p-value of a risk above a target in [0, 1], of the rows from a step on."""
        if not self._bets:
            return float(p_values.at_most(*self._counted(step), target))
        gain = target * self.risk.counts - self.risk.loss
        return _by_betting(gain, self._cells(self.size - 1 - step), 1 - target)

    def fewest(self, target: float, confidence: float) -> float:
        """Number of rows that show a risk of at most the target if nothing is lost."""
        if self._bets:
            gain = math.log1p(_BETS[-1] * target / (1 - target))
            return (math.log(len(_BETS)) - math.log1p(-confidence)) / gain
        mean = 1.0 if self.units is None else self.units.of_each(self.risk)[2]
        return mean * math.log1p(-confidence) / math.log1p(-target)

    @errors.claim(
        "threshold-risk",
        says="With 95 % confidence at most x of the predictions from the threshold on are wrong.",
        chosen="the lowest threshold, of up to 100 (of all for the false-positive rate), or the highest of all for recall",
        adjusted="fallback procedure, or fixed sequence (Learn then Test), with exact binomial p-values, of the effective number of rows with weights or clusters, or bets for costs; of several groups or risks, Bonferroni",
    )
    def safe(self, target: float, confidence: float = CONFIDENCE) -> IntArray:
        """Steps from which on the risk is at most the target, with confidence for all of them together, ascending, shape (S,).

        Whether the risk is larger is tested in an order that does not depend on what is lost. Recall begins at the bottom and the
        false-positive rate at the top, with every step, up to the first test that fails: these only grow. Other risks begin at the
        top of the ranking, with three times the rows that show the risk without any loss (there a quarter of the risk is shown nine
        times in ten), or a third of the rows, and go on in steps of a hundredth of the rows (for precision, of the rows whose scores
        add up to the expected number of hits). They begin with a share of the level and again, with more of it, at three other
        places; a test that succeeds leaves its level to the next one.

        References
        ----------
        Angelopoulos, Bates, Candès, Jordan & Lei 2021, Learn then Test, section 2.3 (fixed-sequence testing, with several starts);
        Wiens & Dmitrienko 2005, The fallback procedure (which hands the level on);
        Geifman & El-Yaniv 2017, whose selection with guaranteed risk (a union bound over a binary search) keeps fewer rows at the same
        confidence.
        """
        every = np.arange(self.size)
        if target >= 1:
            return every
        if target <= 0 or self.fewest(target, confidence) > self.population:
            return every[:0]
        p_value = partial(self.p_value, target=target)
        if self.risk.name == "recall":
            return every[: bisect_right(every, 1 - confidence, key=p_value)]
        if self.risk.name == "fpr":
            down = every[::-1]
            return down[: bisect_right(down, 1 - confidence, key=p_value)][::-1]
        level, found = 0.0, []
        for step, added in self._ladder(target, confidence):
            level += added
            if level and p_value(step) > level:
                level = 0.0
            elif level:
                found.append(step)
        return np.array(found[::-1], dtype=np.intp)

    def _ladder(self, target: float, confidence: float) -> list[tuple[int, float]]:
        """Steps in the order in which they are tested, descending, and the level that each adds."""
        n, first = float(self.kept[-1]), _LADDER * self.scale
        starts, levels = _COST_STARTS if self.risk.name == "cost" else _STARTS
        if self.risk.name != "cost":
            fewest = self.fewest(target, 1 - levels[0] * (1 - confidence))
            first = max(fewest, min(3 * fewest, self.scale / 3))
        sizes = np.append(np.arange(first, n, max(1.0, _LADDER * self.scale)), n)
        tested = np.unique(np.searchsorted(self.kept, sizes * (1 - 1e-12)))
        begins = np.searchsorted(self.kept[tested], np.multiply(starts, self.scale))
        added = np.bincount(np.minimum(begins, tested.size - 1), levels, tested.size)
        return list(
            zip((self.size - 1 - tested).tolist(), (added * (1 - confidence)).tolist(), strict=True)
        )

    def bound(self, step: int, confidence: float) -> float:
        """The smallest risk that the test at a step rejects, on the scale of the risk: Clopper & Pearson's bound, but of bets."""
        lost, rows = self._counted(step)
        least, unit = self.risk.least, self.risk.unit
        if not self._bets:
            share = betaincinv(lost + 1, rows - lost, confidence) if lost < rows else 1.0
            return least + unit * float(share)

        def too_large(target: float) -> float:
            return self.p_value(step, target) - (1 - confidence)

        low, high = max(lost / rows, 1e-9), 1 - 1e-9
        if too_large(high) > 0:
            return least + unit
        bound = brentq(too_large, low, high) if too_large(low) > 0 else low
        return least + unit * float(bound)

    def rows_missing(self, target: float, confidence: float) -> float | None:
        """About how many more rows like these would show a threshold with this risk; infinity if ten times as many would not, None if these rows do not tell.

        At each step the risk is taken to be ``(lost + 1) / (rows + 2)``; m rows with a risk of q show one of at most r if
        ``m KL(q, r) >= ln(1 / (1 - confidence))`` (the Chernoff bound of the binomial tail). Ten times as many would not if they did
        not even with the risk at its lower exact 95 % bound at each step; of errors and precision, thresholds that keep less than a
        twentieth of the rows are left out. With weights or clusters, rows count as in the test of so many.
        """
        n, population = float(self.kept[-1]), self.population
        if not 0 < target < 1 or not population:
            return None if target else math.inf
        fewest = self.fewest(target, confidence)
        steps: IntArray = np.arange(self.size)
        worth: FloatArray | float = math.log1p(-confidence) / math.log1p(-target) / fewest
        if self.units is not None:
            steps = np.unique(np.linspace(0, self.size - 1, 100).astype(np.intp))
            worth = np.array(
                [self.units.worth(self.risk, step, _MOST_MORE) for step in self.size - 1 - steps]
            )
        cells = self._cells(steps)
        counted = self.risk.counts @ cells
        rows, lost = counted * worth, self.risk.loss @ cells * worth

        def more(share: FloatArray) -> float:
            """More rows that show a threshold if these are the risks."""
            q = np.minimum(share, target)
            shown = rows * (rel_entr(q, target) + rel_entr(1 - q, 1 - target))
            # A share that is the target up to rounding may diverge by less than 0.
            return -n * math.log1p(-confidence) / max(float(shown.max()), 1e-9) - n

        likely, least = more((lost + 1) / (rows + 2)), max(n, fewest * n / population)
        if likely <= _MOST_TOLD * least:
            return math.ceil(max(likely, n / 10))
        low = p_values.clopper_pearson(lost, rows, level=0.9)[0]
        if more(np.where(counted < _USABLE * population, target, low)) > _MOST_MORE * least:
            return math.inf
        # Too few rows to tell: three times as many as without any loss show a quarter of the risk nine times in ten.
        return math.ceil(n * (3 * fewest / population - 1)) if population < fewest else None


@claim(
    "more-rows",
    says="No threshold that keeps 5 % of the rows gets clearly below x % wrong, and more rows would hardly help one threshold for all.",
    chosen="none: every threshold that keeps a twentieth of the rows is tested",
    adjusted="none needed: each of them must be refuted, at a level of 5 % (exact, of the effective number of rows with weights or clusters)",
)
def more_rows_words(more: float | None, wrong: float | None = None) -> str:
    """Say what more rows would do where no threshold can be shown, and why none, if a share `wrong` of the kept was asked for."""
    if more is None:
        return "more rows may help"
    if more == math.inf:
        few = f"no threshold that keeps {percent(_USABLE, 0)} of the rows gets clearly below {percent(wrong or 0)} wrong, and more rows would hardly help one threshold for all"
        return _NEVER.get(wrong, few)
    return f"at least about {rough_rows(more)} more such rows are needed"


def rough_rows(more: float) -> str:
    """The number of `RiskTests.rows_missing`, rounded up to two digits, as it is rough."""
    digits = 10 ** max(0, len(str(more)) - 2)
    return f"{math.ceil(more / digits) * digits:,}"


@claim("more-rows")
def none_words(promise: str, tried: str, rows: int, *more: float | None) -> str:
    """Say that no threshold was found for a promise, as these rows are too few or as none can keep it; the last arguments are those of `more_rows_words`."""
    few = f"{counted(rows, 'row')} cannot show"
    first = "No threshold can promise" if more[0] == math.inf else few
    return f"{first} that {promise}. Tried {tried}: {more_rows_words(*more)}."


def _by_betting(gain: FloatArray, count: FloatArray, most: float) -> float:
    """p-value: the inverse of what bets on gains, whose mean is at most 0 under the null hypothesis, have become.

    ``prod (1 + b gain)`` has a mean of at most 1 for every b that cannot lose more than everything; so has the mean over several b.
    By Markov's inequality its inverse is a p-value.

    References
    ----------
    Waudby-Smith & Ramdas 2024, Estimating means of bounded random variables by betting, section 4.
    """
    logs = [float((count * np.log1p(bet / most * gain)).sum()) for bet in _BETS]
    return math.exp(min(0.0, -float(np.logaddexp.reduce(logs)) + math.log(len(_BETS))))


@dataclass(frozen=True)
class _Units:
    """Rows with weights, or clusters of rows, as independent units.

    Attributes
    ----------
    unit, step : ndarray of int, shape (n,)
        Unit and step of each row.
    weight : ndarray, shape (n,)
    hit : ndarray of bool, shape (n,)
    """

    unit: IntArray
    step: IntArray
    weight: FloatArray
    hit: BoolArray

    @classmethod
    def of(cls, sample: Sample, view: Steps, events: BinaryEvents, value: FloatArray) -> _Units:
        unit, weight = sample.row_draws.unit, sample.row_weights
        step = np.searchsorted(view.score, value.astype(np.float64) - 1e-12)
        return cls(unit, step, weight, events.hit)

    def of_each(self, risk: Risk, lowest: int = 0) -> tuple[FloatArray, FloatArray, float]:
        """Rows that count, and what is lost, of each unit from a step on; and a mean of these rows in which large units weigh most."""
        cell = _cell(self.step >= lowest, self.hit)
        parts = (self.weight * part[cell] for part in (risk.counts, risk.loss))
        rows, lost = (np.bincount(self.unit, part) * 1.0 for part in parts)
        return rows, lost, float((rows**4).sum() / max((rows**3).sum(), 1e-300))

    def worth(self, risk: Risk, lowest: int, times: float = 1) -> float:
        """As how many independent rows a row from a step on counts: the inverse of the design effect of the share that is lost.

        One more unit of the size `of_each`, lost as a whole, stands for what few losses do not tell of how they come together; with
        so many `times` the rows it says less.

        References
        ----------
        Korn & Graubard 1998, Confidence intervals for proportions with small expected number of positive counts estimated from survey data.
        """
        rows, lost, mean = self.of_each(risk, lowest)
        losses = times * lost.sum() + mean
        share = losses / max(times * rows.sum() + mean, 1e-300)
        variance = times * np.square(lost - share * rows).sum() + (mean * (1 - share)) ** 2
        return float(losses * (1 - share) / variance) if variance else 1.0


def threshold_at(
    step: int, scores_at: Callable[[IntArray], FloatArray], lowest: FloatArray | None = None
) -> float:
    """The threshold with the fewest decimals, at least three, that keeps the rows of a step and of those above it, and no others.

    A test of these rows is as much about all scores above the next lower one. `lowest`, shape (G,), is what `lowest_scores` returns.
    """
    limit, below = map(float, scores_at(np.array([step, max(step - 1, 0)])))
    if lowest is not None:
        limit = float(lowest[step])
        below = limit - 1e-7
    exact = Decimal(repr(limit))
    for decimals in range(3, 15):
        short = float(exact.quantize(Decimal(1).scaleb(-decimals), ROUND_FLOOR))
        if not step or short - below > 2e-12:
            return short
    return limit


def lowest_scores(events: BinaryEvents, view: Steps) -> FloatArray | None:
    """Smallest score of each step of a profile, whose rows have scores below that of their step, shape (G,); None of other data."""
    if not isinstance(events, CellEvents):
        return None
    lowest = np.ones(view.size)
    step = np.searchsorted(view.score, events.score - 1e-12)
    np.minimum.at(lowest, np.minimum(step, view.size - 1), events.low)
    return lowest


# ---- Rows that are kept


def rarer_class(sample: Sample, value: FloatArray) -> tuple[str, Steps] | None:
    """The rarer of two classes, and its rows by `value`, shape (n,), with those that are found as hits; None of other data."""
    if sample.data.kind == "confidence" or sample.data.n_classes != 2:
        return None
    events, weights = sample.but(reduction="positive").scored.hit, sample.row_weights
    rare = int(np.average(events, weights=weights) < 0.5)
    rows = np.flatnonzero(events == rare)
    found = BinaryEvents(value[rows], sample.top_scored.hit[rows])
    return (sample.data.class_names[rare], make_steps(found, weights[rows])) if rows.size else None


def missed_words(rarer: tuple[str, Steps] | None, kept: Callable[[FloatArray], BoolArray]) -> str:
    """Say how many of the kept rows of the rarer class are missed, where `kept` maps values, shape (G,), to a mask; "" if most are found."""
    if rarer is None:
        return ""
    name, steps = shorten(rarer[0], 40), rarer[1]
    rows, found = (float(sums[kept(steps.score)].sum()) for sums in (steps.count, steps.hits))
    words = f"{rows - found:,.0f} of the {rows:,.0f} kept rows of '{name}' are missed"
    return words if found < rows / 2 else ""


#: Slices with fewer kept rows are not looked at.
LEAST_KEPT = 50


@claim(
    "wrong-where-kept",
    says="Where region = West, 11.2 % of 412 kept are wrong; of all kept, 4.1 %",
    chosen="the slice whose kept rows are most surely wrong too often, of all with 50 kept rows or more, of numbers too",
    adjusted="exact 95 % intervals of all these slices together (Bonferroni), of the effective number of rows",
)
def wrong_where_kept(sample: Sample, kept: BoolArray, most: float) -> str:
    """Say in which slice more than `most` of the kept rows are wrong beyond chance; "" if in none.

    Parameters
    ----------
    sample : Sample
    kept : ndarray of bool, shape (n,)
        The rows whose predictions are kept.
    most : float
        The share that was allowed or, if none was, the upper end of the interval of all kept rows.
    """
    data, events = sample.data, sample.top_scored
    events = replace(events, score=np.full(events.n, most), hit=~events.hit)
    terms = slice_tests.row_terms(events, sample.weights)
    columns = () if data.cells is not None else predictions.usual_columns(data)
    if data.cells is None and isinstance(data, predictions.Predictions):
        # Of two classes, what is kept is one end of the score or the other.
        own = {PREDICTED, SCORE} if predictions.has_score(data) else {PREDICTED}
        columns = (*(name for name in columns if name not in own), PREDICTED)
    found: list[tuple[str, float, float, float]] = []
    for name, factor in predictions.sliced_columns(data, columns, LEAST_KEPT)[0].items():
        size = len(factor.levels)
        codes = np.where(kept, factor.codes, size)
        sums = slice_tests.sums_of_terms(terms, codes, size + 1, sample.row_draws.cluster)
        alike = slice_tests.counts_as(sums)
        for i in np.flatnonzero(((sums.rows >= LEAST_KEPT) & (alike > 0))[:size]).tolist():
            where = shorten(condition(name, factor.levels[i], 40), 60)
            found.append((where, sums.rows[i], sums.hits[i] / sums.mass[i], alike[i]))
    if not found:
        return ""
    wheres, rows, shares, worth = zip(*found, strict=True)
    level = 1 - (1 - error_bars.LEVEL) / len(found)
    low, high = p_values.clopper_pearson(np.multiply(shares, worth), worth, level=level)
    worst = int(low.argmax())
    if low[worst] <= most:
        return ""
    together = f"95 % CI of all {counted(len(found), 'slice')} together"
    overall = np.average(events.hit[kept], weights=sample.row_weights[kept])
    return (
        f"Where {wheres[worst]}, {percent(shares[worst])} of {rows[worst]:,.0f} kept are wrong "
        f"({together} {percent(low[worst])} to {percent(high[worst])}); of all kept, {percent(overall)}."
    )
