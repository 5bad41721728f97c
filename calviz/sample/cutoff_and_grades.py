"""Decisions by a cutoff of the score, and tests of rating grades."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.special import betainc, betaincc, betaincinv

from calviz.core import entry_specs, p_values, predictions, words
from calviz.core.blocks import BoolArray, Factor, FloatArray, IntArray
from calviz.core.errors import NotAvailable, OptionError, checked_cutoff, claim, picked, shortened
from calviz.core.events import BinaryEvents, Reduction
from calviz.core.words import counted, number
from calviz.sample import draws, error_bars, steps
from calviz.sample.sample import Sample
from calviz.sample.slice_tests import counts_as, slice_sums, tails_if_calibrated

#: Default cutoff.
CUTOFF = 0.5


@dataclass(frozen=True, eq=False)
class CutoffCounts:
    """Rows by decision and outcome; rows whose score is at least the cutoff are decided for.

    Attributes
    ----------
    tp, fp, fn, tn : ndarray of float64, shape (...)
        Hits and misses decided for, hits and misses decided against, by weight (weights have a mean of 1); a leading axis of resamples
        is allowed.
    params : mapping
        The cutoff.
    rows : mapping
        tp, fp, fn and tn as numbers of rows, whatever their weights; empty for resamples.
    events : BinaryEvents or None
        The rows; None for resamples.
    weights, cluster : ndarray, shape (n,), or None
        Weights and cluster numbers of the rows.
    """

    tp: FloatArray
    fp: FloatArray
    fn: FloatArray
    tn: FloatArray
    params: Mapping[str, float] = field(default_factory=dict)
    rows: Mapping[str, int] = field(default_factory=dict)
    events: BinaryEvents | None = None
    weights: FloatArray | None = None
    cluster: IntArray | None = None

    #: Fields that differ between resamples.
    DRAWN: ClassVar = ("tp", "fp", "fn", "tn")

    @classmethod
    def of(cls, cells: FloatArray, params: Mapping[str, float], **rows: Any) -> CutoffCounts:
        """From tp, fp, fn and tn along the first axis, shape (4, ...)."""
        tp, fp, fn, tn = cells
        return cls(tp, fp, fn, tn, params, **rows)

    @property
    def n(self) -> FloatArray:
        """All rows, shape (...)."""
        return np.asarray(self.tp + self.fp + self.fn + self.tn)

    @property
    def by_weight(self) -> bool:
        """Whether rows count by weights in shares, so that these do not follow from `rows`."""
        return self.weights is not None and self.events is not None and not self.events.counted

    @property
    def per_1000(self) -> dict[str, float]:
        """tp, fp, fn and tn of 1,000 rows, by weight."""
        return {name: float(1000 * getattr(self, name) / self.n) for name in self.DRAWN}

    def bootstrap(self, rng: np.random.Generator, resamples: int) -> CutoffCounts:
        """Rows drawn with replacement: multinomial over the four cells, which is exact."""
        cells = np.array([self.tp, self.fp, self.fn, self.tn], dtype=np.float64)
        drawn = rng.multinomial(int(cells.sum()), cells / cells.sum(), size=resamples)
        return CutoffCounts.of(drawn.T.astype(np.float64), self.params)

    def under_calibration(self, rng: np.random.Generator, resamples: int) -> CutoffCounts:
        """Hits redrawn from the scores."""
        assert self.events is not None
        view = steps.make_steps(self.events)
        first = int(np.searchsorted(view.score, least_score(self.events, self.params["cutoff"])))

        def drawn(side: slice) -> tuple[FloatArray, float]:
            """Hits in each resample, shape (resamples,), and rows."""
            columns = view.score[side], view.count[side], view.hits[side]
            part = steps.Steps(*columns, whole=view)
            if not part.size:
                return np.zeros(resamples), 0.0
            return part.under_calibration(rng, resamples).n_hits, float(part.n)

        hits, rows = zip(*map(drawn, (slice(first), slice(first, None))), strict=True)
        return CutoffCounts(hits[1], rows[1] - hits[1], hits[0], rows[0] - hits[0], self.params)

    @property
    def net_benefit(self) -> float:
        """Net benefit at the cutoff."""
        return float(net_benefit_of(self.tp, self.fp, self.n, self.params["cutoff"]))

    @property
    def decimals(self) -> int:
        """Decimals of a net benefit, which is at most the share of positives."""
        return words.decimals_for(float((self.tp + self.fn) / self.n), figures=3, least=3)

    @property
    def net_benefit_of_all(self) -> float:
        """Net benefit of acting on everybody."""
        hits, n = self.tp + self.fn, self.n
        return float(net_benefit_of(hits, n - hits, n, self.params["cutoff"]))

    def meaning(self) -> str:
        """Say which costs the cutoff implies, and what decisions at it then cost."""
        cutoff = float(self.params["cutoff"])
        odds = (1 - cutoff) / cutoff
        worse, other = ("negative", "positive") if odds >= 1 else ("positive", "negative")
        times = f"{float(f'{max(odds, 1 / odds):.3g}'):,.7g} false {other}s"
        weigh = f"a false {worse} is as bad as {times if cutoff != 0.5 else 'a false positive'}"
        n, hits = float(self.n), float(self.tp + self.fn)
        costs = [
            1000 * (float(missed) + float(alarms) / odds) / n
            for missed, alarms in ((self.fn, self.fp), (0, n - hits), (hits, 0))
        ]
        own, everybody, nobody = (number(c, 2) for c in costs)
        return (
            f"If the scores are calibrated, a cutoff of {cutoff:.3g} is right where {weigh}. By that, 1,000 rows cost as much as {own} false negatives; acting on "
            f"everybody would cost {everybody}, on nobody {nobody}."
        )

    def shares(self, *, level: float = 0.95) -> dict[str, tuple[float, float, float]]:
        """Sensitivity, specificity and predictive values, each with its Clopper-Pearson interval; ``nan`` without rows.

        Weighted or clustered rows count as their effective number (see `counts_as` in `calviz.sample.cutoff_and_grades`); with too few
        clusters to know it, the interval is ``nan``.
        """
        parts = {
            "sensitivity": (self.tp, self.fn),
            "specificity": (self.tn, self.fp),
            "positive predictive value": (self.tp, self.fp),
            "negative predictive value": (self.tn, self.fn),
        }
        out = {}
        for name, (right, wrong) in parts.items():
            rows = float(right + wrong)
            share = float(right) / rows if rows else float("nan")
            alike = rows if self.alike or not rows else self._counts_as(name, share)
            ends = p_values.clopper_pearson([share * alike if rows else 0.0], [alike], level=level)
            low, high = (float(end[0]) if alike == alike else float("nan") for end in ends)
            out[name] = share, low, high
        return out

    @property
    def alike(self) -> bool:
        """Whether each row is one observation: neither clusters nor importance weights."""
        return self.cluster is None and not self.by_weight

    def _counts_as(self, name: str, share: float) -> float:
        """Number of independent rows that the rows behind a share are worth."""
        assert self.events is not None
        hit = self.events.hit
        acted_on = self.events.score >= least_score(self.events, self.params["cutoff"])
        inside, right = {
            "sensitivity": (hit, acted_on),
            "specificity": (~hit, ~acted_on),
            "positive predictive value": (acted_on, hit),
            "negative predictive value": (~acted_on, ~hit),
        }[name]
        rows = np.flatnonzero(inside)
        # The share stands for the score of every row: its gap is 0, and its spread that of the share.
        sums = slice_sums(
            BinaryEvents(np.full(rows.size, share), right[rows]),
            np.zeros(rows.size, dtype=np.intp),
            1,
            None if self.cluster is None else self.cluster[rows],
            None if self.weights is None else self.weights[rows],
        )
        return float(counts_as(sums)[0])


def net_benefit_of(tp: Any, fp: Any, n: Any, cutoff: Any) -> FloatArray:
    """``tp / n - fp / n * t / (1 - t)`` (Vickers & Elkin 2006), all of one shape or broadcast."""
    return np.asarray(tp / n - fp / n * (cutoff / (1 - cutoff)))


def least_score(events: BinaryEvents, cutoff: float) -> float:
    """The cutoff in the precision of the scores, so that a score of 0.3 in single precision reaches a cutoff of 0.3."""
    return float(np.asarray(cutoff, dtype=events.score.dtype))


def decidable(sample: Sample) -> Sample:
    """The sample under the class that decisions are about: the positive one of two, or the one-vs-rest class of its reduction.

    Raises
    ------
    NotAvailable
        If there is no such class, or if all rows or none have it.
    """
    data = sample.data
    if data.kind == "confidence":
        raise NotAvailable(
            "not available for confidence-only data: decisions for or against a class need its probability."
        )
    if data.n_classes == 2 and sample.reduction.kind != "class":
        sample = sample.but(reduction=Reduction("positive"))
    elif sample.reduction.kind != "class":
        raise NotAvailable(
            f"decisions at a cutoff are about one of two classes, and these data have {data.n_classes:,}: look at one class "
            "against the rest (in the app under View, or --reduction class:NAME)."
        )
    hits, n = int(np.count_nonzero(sample.scored.hit)), sample.data.n
    if hits in (0, n):
        name = shortened(data.class_names[sample.reduction.class_index(data)])
        if data.rows == 1:
            has = "the only row does not have" if hits == 0 else "the only row has"
        else:
            has = f"{'none' if hits == 0 else 'every one'} of the {data.rows:,} rows has"
        raise NotAvailable(
            f"{has} the class '{name}': without both outcomes there is nothing to tell apart; choose other rows, or all splits."
        )
    return sample


def _cells(events: BinaryEvents, cutoff: float) -> IntArray:
    """Code of each row, shape (n,): 0 to 3 for tp, fp, fn, tn."""
    return np.asarray(2 * (events.score < least_score(events, cutoff)).view(np.uint8) + ~events.hit)


def _reweighted(sample: Sample, view: CutoffCounts) -> entry_specs.Reweighted:
    sums_of = draws.RowSums(_cells(sample.scored, view.params["cutoff"]), 4, None)

    def reweighted(weights: draws.RowWeights) -> Callable[[float | None], CutoffCounts]:
        sums = sums_of(weights)[0]
        return lambda _: CutoffCounts.of(sums, view.params)

    return reweighted


def _redrawn(sample: Sample, view: CutoffCounts) -> entry_specs.Redrawn:
    """See `calviz.core.entry_specs.Reweighting`."""
    side = _cells(sample.scored, view.params["cutoff"]) // 2
    hits_of = draws.HitSums(sample.scored, side, 2)
    decided = np.array([view.tp + view.fp, view.fn + view.tn])[:, None]

    def draw(rng: np.random.Generator, rows: Any, size: int) -> CutoffCounts:
        hits = hits_of(rng, rows, size)
        misses = decided - hits
        return CutoffCounts(hits[0], misses[0], hits[1], misses[1], view.params)

    return draw


@entry_specs.reweighted_by(_reweighted, redrawn=_redrawn)
def at_cutoff(sample: Sample, *, cutoff: float = CUTOFF) -> CutoffCounts:
    """Decisions at a cutoff of the score of the sample's own reduction."""
    checked = checked_cutoff(cutoff)
    cells = _cells(sample.scored, checked)
    rows = np.rint(np.bincount(cells, sample.row_counts, minlength=4)).astype(np.intp)
    return CutoffCounts.of(
        draws.RowSums(cells, 4, None).once(sample.weights)[0],
        {"cutoff": checked},
        rows=dict(zip(CutoffCounts.DRAWN, rows.tolist(), strict=True)),
        events=sample.scored,
        weights=sample.weights,
        cluster=sample.row_draws.cluster if sample.data.clusters is not None else None,
    )


# ---- Rating grades

#: A grade is yellow, or red, below these p-values of the exact test.
YELLOW, RED = 0.05, 0.01
#: Help text for `Grades.counts_as`, shown for weighted or clustered rows.
COUNTS_AS = "How many independent rows of equal weight the rows of the grade are worth; the tests and intervals use this number."
#: Columns with more values than this do not hold grades.
MOST_GRADES = 50
#: Fewer levels than this are too often in the order of their scores by chance.
LEAST_GRADES = 3
_NAMES = re.compile(r"(^|[^a-z])(grade|rating|bucket|band|notch|(risk|rating)[ _-]?class)s?([^a-z]|$)|bonit[aä]|(rating|risi[kc]o|score)[ _-]?(klasse|stufe|note)|class?e d[ei] (rating|ri)", re.I)  # fmt: skip
_AGENCY = re.compile(r"([A-C])\1{0,2}[0-9]?[+-]?|Aaa|Aa[1-3]?|Baa[1-3]?|Ba[1-3]?|Caa[1-3]?|Ca|D")


@dataclass(frozen=True, eq=False)
class Grades:
    """Grades in ascending order of their mean score, followed by all rows together; arrays have one entry for each.

    Attributes
    ----------
    column : str
    names : tuple of str
    rows, hits, score : ndarray, shape (G + 1,)
        Number of rows, number of hits, and the mean score (the probability of default of the grade).
    observed : ndarray, shape (G + 1,)
        Share of hits; weighted for weighted rows, as `score` is.
    counts_as : ndarray, shape (G + 1,)
        Effective sample size: how many independent rows of equal weight they are worth; nan where that is unknown, and
        nothing is tested.
    low, high : ndarray, shape (G + 1,)
        Jeffreys interval of the share of hits.
    jeffreys, binomial : ndarray, shape (G + 1,)
        One-sided p-values: small where there are more hits than the mean score says.
    fewer : ndarray, shape (G + 1,)
        The same as `binomial` for fewer hits.
    """

    column: str
    names: tuple[str, ...]
    rows: FloatArray
    hits: FloatArray
    score: FloatArray
    observed: FloatArray
    counts_as: FloatArray
    low: FloatArray
    high: FloatArray
    jeffreys: FloatArray
    binomial: FloatArray
    fewer: FloatArray

    @property
    def lights(self) -> tuple[Literal["green", "yellow", "red", "none"], ...]:
        """Traffic lights by the binomial test, each grade by itself; "none": not tested."""
        return tuple(
            "red" if p < RED else "yellow" if p < YELLOW else "green" if p <= 1 else "none"
            for p in self.binomial.tolist()
        )

    @property
    def adjusted(self) -> FloatArray:
        """`binomial` adjusted for the number of grades (Holm); that of all rows as it is, shape (G + 1,)."""
        return np.append(_over_grades(self.binomial), self.binomial[-1])

    @property
    def alike(self) -> bool:
        """Whether each row counts as one, as rows without weights or clusters do."""
        return np.array_equal(self.counts_as, self.rows)

    def columns(self) -> Mapping[str, Any]:
        """Columns of a table with one row per grade, and one for all rows."""
        return {
            "grade": self.names,
            "rows": self.rows.astype(np.int64),
            "hits": self.hits.astype(np.int64),
            "mean_score": self.score,
            **picked(self, "observed counts_as low high"),
            "p_jeffreys": self.jeffreys,
            "p_binomial": self.binomial,
            "p_adjusted": self.adjusted,
            "light": self.lights,
        }

    @claim(
        "grades",
        says="In grade C more happens than the probabilities say",
        chosen="the grades in which more happens, of all grades",
        adjusted="exact binomial tests, adjusted by Holm",
    )
    def reading(self) -> str:
        """Say in which grades more happens than the scores say, and in which less, adjusted for the number of grades."""
        names = [shortened(name) for name in self.names[:-1]]
        more = self.adjusted[:-1] <= YELLOW
        less = _over_grades(self.fewer) <= RED
        alone = [light in ("red", "yellow") for light in self.lights[:-1]] & ~more
        tested = ~np.isnan(self.binomial[:-1])

        def listed(which: BoolArray) -> str:
            return ", ".join(name for name, one in zip(names, which.tolist(), strict=True) if one)

        parts = []
        if more.any():
            parts.append(f"{self.headline}: {listed(more)}.")
        elif tested.any():
            parts.append(f"{self.headline}{self._needed()}.")
        if alone.any():
            parts.append(
                f"The light of {listed(alone)} may be chance: of 20 grades whose probabilities are right, up to one is yellow or red."
            )
        if less.any():
            parts.append(
                f"Less happens in {listed(less)}: the lights look only for scores that are too low."
            )
        if not tested.all():
            parts.append(
                f"Not tested: {listed(~tested)}, with fewer than {error_bars.FEWEST_CLUSTERS} clusters."
            )
        return " ".join(filter(None, (*parts, self._order())))

    @property
    @claim("grades")
    def headline(self) -> str:
        """In how many grades more happens than the scores say."""
        more = int((self.adjusted[:-1] <= YELLOW).sum())
        tested = int((~np.isnan(self.binomial[:-1])).sum())
        less = int((_over_grades(self.fewer) <= RED).sum())
        of = f"of {len(self.names) - 1}"
        if more:
            return (
                f"In {counted(more, 'grade')} {of} more happens than the probabilities say"
                + f", in {less:,} less" * (less > 0)
            )
        if less:
            return f"In {counted(less, 'grade')} {of} less happens than the probabilities say, in none more"
        if tested and not self._needed():
            return f"In none of {counted(tested, 'grade')} does more happen than the probabilities say, beyond chance"
        return "Whether the grades hold what they say cannot be told"

    @claim("grades")
    def _needed(self) -> str:
        """Say how many rows a grade would need, if hits alone would show nothing in any; "" otherwise."""
        tested = ~np.isnan(self.binomial[:-1])
        with np.errstate(divide="ignore"):
            # The p-value of hits alone is the mean score to the power of the rows.
            needed = np.log(YELLOW / max(tested.sum(), 1)) / np.log(self.score[:-1])
        needed = np.where(tested, np.ceil(needed), np.inf)
        if not np.isfinite(needed).any() or (needed <= self.counts_as[:-1])[tested].any():
            return ""
        least = int(needed.argmin())
        return (
            f": in so few rows hits alone would not be beyond chance; {shortened(self.names[least])} would need "
            f"{counted(int(needed[least]), 'row')}"
        )

    def _order(self) -> str:
        """Say whether the observed shares rise from grade to grade, as the mean scores do."""
        share, names = self.observed[:-1], self.names[:-1]
        if share.size < 2:
            return ""
        falls = np.flatnonzero(np.diff(share) < 0)
        if not falls.size:
            return "The observed shares rise from grade to grade, as the scores do."
        pairs = [f"from {shortened(names[i])} to {shortened(names[i + 1])}" for i in falls.tolist()]
        more = ", …" if len(pairs) > 5 else ""
        return f"The observed shares rise with the scores, but not {', '.join(pairs[:5])}{more}."


def _over_grades(p: FloatArray) -> FloatArray:
    """Adjust the p-values of the grades that are tested, shape (G + 1,) to (G,), by Holm."""
    adjusted = p[:-1].copy()
    tested = ~np.isnan(adjusted)
    adjusted[tested] = p_values.holm(adjusted[tested])
    return adjusted


@entry_specs.takes_weights
def grades(sample: Sample, *, column: str, level: float = 0.95) -> Grades:
    """Test every grade for more hits than its mean score says.

    Parameters
    ----------
    sample : Sample
        Under the class that decisions are about (`calviz.sample.cutoff_and_grades.decidable`).
    column : str
        The group column that holds the grades.
    level : float
        Level of the Jeffreys intervals.

    Raises
    ------
    OptionError
        If there is no such column, or it has more than `MOST_GRADES` values.

    Notes
    -----
    The binomial test is ``P(K >= k)`` with the mean score as probability: exact, and so never significant too often at any number of
    hits. If the scores within a grade differ, the number of hits varies less than a binomial one, and its tails are shorter (Hoeffding
    1956). The Jeffreys test (ECB 2019, section 2.5) is the probability of the mean score or less under the posterior
    ``Beta(k + 1/2, n - k + 1/2)``; with few hits it is below 1 % in up to 4 % of calibrated grades. Both assume that the rows of a
    grade are independent, and neither is adjusted for the number of grades.

    For clustered rows, n is the effective sample size and k the share of hits times n (Korn & Graubard 1998), see `counts_as`; so it is
    for the Jeffreys test and intervals of weighted rows, whose other tests are those of the weighted sum of hits
    (`calviz.sample.slice_tests.tails_if_calibrated`).
    """
    factor = grade_factor(sample.data, column)
    cluster, weights = sample.row_draws.cluster, sample.weights
    by_level = slice_sums(sample.scored, factor.codes, len(factor.levels), cluster, weights)
    mass = by_level.mass
    levels = np.flatnonzero(mass)
    levels = levels[np.argsort(by_level.score[levels] / mass[levels], kind="stable")]
    all_rows = slice_sums(sample.scored, np.zeros_like(factor.codes), 1, cluster, weights)

    def with_all_rows(name: str) -> FloatArray:
        return np.append(getattr(by_level, name)[levels], getattr(all_rows, name))

    hits = np.bincount(factor.codes, sample.scored.hit, minlength=len(factor.levels))
    mean, share = (
        np.clip(with_all_rows(name) / with_all_rows("mass"), 0, 1) for name in ("score", "hits")
    )
    n = np.append(counts_as(by_level)[levels], counts_as(all_rows))
    k = share * n
    a, b, tail = k + 0.5, n - k + 0.5, (1 - level) / 2
    if cluster is None and weights is not None and by_level.weighted is not None:
        of_all = tails_if_calibrated(all_rows, sample.scored, np.zeros_like(factor.codes), weights)
        of_level = tails_if_calibrated(by_level, sample.scored, factor.codes, weights)
        binomial, fewer = np.hstack([of_level[:, levels], of_all])
    else:
        # For grades that are not tested k is nan, and so is the p-value.
        binomial = np.where(k == 0, 1.0, betainc(np.maximum(k, 1e-12), n - k + 1, mean))
        fewer = np.where(k == n, 1.0, betaincc(k + 1, np.maximum(n - k, 1e-12), mean))
    return Grades(
        column=column,
        names=(*(factor.levels[i] for i in levels.tolist()), "all rows"),
        rows=with_all_rows("rows"),
        hits=np.append(hits[levels], hits.sum())
        if by_level.weighted is not None
        else with_all_rows("hits"),
        score=mean,
        observed=share,
        counts_as=n,
        low=np.where(k == 0, 0.0, betaincinv(a, b, tail)),
        high=np.where(k == n, 1.0, betaincinv(a, b, 1 - tail)),
        jeffreys=betainc(a, b, mean),
        binomial=binomial,
        fewer=fewer,
    )


def grade_columns(data: predictions.Dataset) -> tuple[str, ...]:
    """The group columns that hold rating grades, recognised by their names or values, or failing that by their scores.

    A column is recognised by its scores if its values have an order (numbers, R1 to R9, or single letters) in which the mean score of the
    positive class rises or falls without exception over three grades or more, and if the column explains at least half of
    the variance of the scores, as grades do that were made from them.
    """
    few = possible_grade_columns(data)
    named = tuple(
        name
        for name, f in few.items()
        if _NAMES.search(name) or all(_AGENCY.fullmatch(level.strip()) for level in f.levels)
    )
    return named or tuple(name for name, f in few.items() if _follows_scores(data, f))


def possible_grade_columns(data: predictions.Dataset) -> dict[str, Factor]:
    """The group columns that a user may choose as grades."""
    return {name: f for name, f in data.groups.items() if len(f.levels) <= MOST_GRADES}


def has_grades(data: predictions.Dataset) -> bool:
    """Whether a column holds grades according to its name."""
    return any(_NAMES.search(name) for name in data.groups)


def _follows_scores(data: predictions.Dataset, factor: Factor) -> bool:
    if not isinstance(data, predictions.Predictions) or data.n_classes != 2:
        return False
    ranks = _order_of(factor.levels)
    if ranks is None:
        return False
    score, size = data.probs[:, 1].astype(np.float64), len(factor.levels)
    weights = np.ones(data.n) if data.weights is None else data.weights
    rows = np.bincount(factor.codes, weights, minlength=size)
    levels = np.flatnonzero(rows)
    if levels.size < LEAST_GRADES:
        return False
    mean = np.bincount(factor.codes, weights * score, minlength=size)[levels] / rows[levels]
    steps = np.diff(mean[np.argsort(np.asarray(ranks)[levels])])
    mean_of_all = weights @ score / weights.sum()
    between = rows[levels] @ (mean - mean_of_all) ** 2
    whole = float(weights @ (score - mean_of_all) ** 2)
    return bool((np.all(steps > 0) or np.all(steps < 0)) and between >= 0.5 * whole)


def _order_of(levels: Sequence[str]) -> list[float] | None:
    """Sort keys of the levels, which are numbers, also after one word, or single letters; None if they have no such order."""
    texts = [level.strip() for level in levels]
    if all(len(text) == 1 and text.isalpha() for text in texts):
        return [float(ord(text.upper())) for text in texts]
    try:
        return [float(text.removeprefix(re.split(r"[-\d]", texts[0])[0])) for text in texts]
    except ValueError:
        return None


def grade_factor(data: predictions.Dataset, column: str) -> Factor:
    """The group column of this name, to be used as grades.

    Raises
    ------
    OptionError
        If there is no such column, or it has more than `MOST_GRADES` values.
    """
    if column not in data.groups:
        raise predictions.no_group_column(data, column)
    factor = data.groups[column]
    if len(factor.levels) > MOST_GRADES:
        raise OptionError(
            f"'{shortened(column)}' has {len(factor.levels):,} values: a column of grades has at most {MOST_GRADES}."
        )
    return factor


def tests_words(data: predictions.Dataset) -> str:
    """Describe the tests of `grades` and the colours of its lights, for a note below a table."""
    independent = "; rows are taken as independent, which defaults in one year are not"
    if data.clusters is not None:
        independent = ""
    return (
        "One-sided tests of each grade by itself, with small p-values if there are more hits than its mean score predicts: Jeffreys (the "
        f"posterior with a Jeffreys prior) and binomial (exact). Lights by the binomial test, yellow below {YELLOW:g}, red below {RED:g}; "
        f"the sentence, and p (adjusted), take the number of grades into account (Holm){independent}."
    )
