"""The rate that a judge's verdicts would have if people had given them, from the rows with a human label; how far both agree."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import fdtrc, ndtr, ndtri

from calviz.core.blocks import BoolArray, FloatArray, IntArray
from calviz.core.entry_specs import Interval
from calviz.core.p_values import at_most, wilson
from calviz.sample.error_bars import widening_of

#: From this score on the judge says yes.
CUTOFF = 0.5
#: Rows that count beside the labelled ones in each cell of judge and human: few labels show too little spread.
HALF = 0.5
#: Draws for the p-value that error rates are the same in all groups.
DRAWS = 9_999


class RateEstimate(NamedTuple):
    """A rate with its interval; `error` is the large-sample standard error."""

    value: float
    interval: Interval
    error: float = math.nan

    @property
    def width(self) -> float:
        """Length of the interval."""
        return self.interval.high - self.interval.low

    def to_dict(self) -> dict[str, Any]:
        """Value and interval as plain values."""
        return {"value": self.value, "interval": list(self.interval)}


@dataclass(frozen=True, eq=False)
class Clusters:
    """Rows of one question: the question of each labelled row, shape (n,), and of each other row, shape (m,), with what the judge says of it."""

    labelled: IntArray
    others: IntArray
    says: FloatArray

    @property
    def number(self) -> int:
        """Number of questions with labels."""
        return np.unique(self.labelled).size

    @cached_property
    def depend(self) -> bool:
        """Whether any question has several rows."""
        return bool(np.bincount(np.append(self.labelled, self.others)).max(initial=0) > 1)

    @property
    def widening(self) -> float:
        """Factor of the variance for few questions."""
        return widening_of(self.number) ** 2 if self.number > 1 else math.inf

    def design(self, at: BoolArray, off: FloatArray) -> float:
        """How many times the variance of a mean of labelled rows, the mask `at`, of shape (n,), is that of independent rows (Kish 1965).

        `off` holds their deviations from the mean, shape (n,); without any, rows of a question are taken to be all alike.
        """
        own, code = off * at, np.unique(self.labelled, return_inverse=True)[1]
        alone, rows = float(own @ own), np.bincount(code[at])
        if not alone:
            return float(rows.sum() / max(np.count_nonzero(rows), 1)) or 1.0
        return max(self.widening * float(np.square(np.bincount(code, own)).sum()) / alone, 1.0)


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Labels y, what the judge says of them f, and weights of mean 1, shape (n,) each; moments of what it says of all rows."""

    y: FloatArray
    f: FloatArray
    w: FloatArray
    weighted: bool
    rows: int
    mean: float
    variance: float
    #: Variance of what it says of the other rows, and its mean where it says less, and more, than on average.
    others: float
    ends: tuple[float, float]
    clusters: Clusters | None = None

    @classmethod
    def of(
        cls,
        score: FloatArray,
        human: FloatArray,
        chance: FloatArray | None,
        cluster: IntArray | None = None,
    ) -> LabelledRows:
        """Sum up rows, arrays of shape (n,): those without a label are nan in `human`; `chance` is that of each to be labelled, `cluster` the question."""
        seen = ~np.isnan(human)
        y, f, mean = human[seen], score[seen], float(score.mean())
        w = np.ones(y.size) if chance is None else 1 / chance[seen]
        low = score < mean
        ends = (float(score[low].mean()), float(score[~low].mean())) if low.any() else (mean, mean)
        others = float(score[~seen].var()) if y.size < score.size else 0.0
        return cls(
            y, f, w / w.mean() if y.size else w, chance is not None, score.size, mean,
            float(score.var(ddof=1)) if score.size > 1 else 0.0, others, ends,
            None if cluster is None else Clusters(cluster[seen], cluster[~seen], score[~seen]),
        )  # fmt: skip

    @property
    def n(self) -> int:
        """Number of labels."""
        return self.y.size

    @cached_property
    def depend(self) -> Clusters | None:
        """The questions, if any has several rows."""
        return self.clusters if self.clusters is not None and self.clusters.depend else None

    @cached_property
    def cells(self) -> FloatArray:
        """Rows by what people say (yes, no) and what the judge says, ((TP, FN), (FP, TN)); weighted rows count as their effective number."""
        says = self.f >= CUTOFF
        each = [self.w[(self.y == label) & (says == told)].sum() for label in (1, 0) for told in (1, 0)]  # fmt: skip
        counts = np.reshape(each, (2, 2))
        return counts * (self.w.sum() / np.square(self.w).sum()) if self.n else counts

    def _factor(self, y: FloatArray, f: FloatArray, w: FloatArray) -> float:
        """The power-tuned factor, from deviations of labels and verdicts, with their weights, shape (n,) each."""
        n, more = float(w.sum()), self.rows - self.n
        if not more or self.variance <= 0:
            return 0.0
        return min(max(float(w @ (y * f)) / n / ((1 + n / more) * self.variance), 0.0), 1.0)

    def ppi(self, extra: float = 0.0) -> tuple[float, float, float]:
        """PPI++ of the mean: its value, its variance, and the mean label; with so many rows more in each cell of label and judge.

        With the power-tuned factor l, ``l mean(f of the others) + mean(y - l f)``; of rows drawn with unequal chances, the regression
        estimator of two-phase sampling, which is the same for equal ones.

        References
        ----------
        Angelopoulos, Duchi & Zrnic 2023, example 6.1; Sarndal, Swensson & Wretman 1992, section 9.7.
        """
        y, f, w = self.y, self.f, self.w
        if extra:
            low, high = self.ends
            y, f = np.append(y, (0, 0, 1, 1)), np.append(f, (low, high, low, high))
            w = np.append(w, [extra] * 4)
        n, more = float(w.sum()), self.rows - self.n
        y_mean, f_mean = float(w @ y) / n, float(w @ f) / n
        factor = self._factor(y - y_mean, f - f_mean, w)
        slope = factor * (1 + self.n / more) if more else 0.0
        value = y_mean - slope * (f_mean - self.mean) if not extra else y_mean
        used = slope if self.weighted else factor
        off = (y - y_mean - used * (f - f_mean)) / n
        if self.weighted:
            variance = float(np.square(w * off).sum()) * (1 - self.n / self.rows)
            variance += float(w @ np.square(y - y_mean)) / n / self.rows
        else:
            variance = float(w @ np.square(off))
            variance += factor**2 * self.others / more if more else 0.0
        if self.depend is not None:
            # Rows of a question are alike, and chance alone may make them look otherwise.
            own = self.by_question((w * off)[: self.n], used)
            added = float(w[self.n :] @ np.square(off[self.n :]))
            variance = max(variance, self.depend.widening * float(own @ own) + added)
        return value, variance, y_mean

    def by_question(self, off: FloatArray, factor: float) -> FloatArray:
        """What each question adds to the estimate beyond its mean, shape (C,): that of its labels, shape (n,), and of what the judge says."""
        of = self.clusters
        assert of is not None
        size = int(max(of.labelled.max(initial=-1), of.others.max(initial=-1))) + 1
        own = np.bincount(of.labelled, off, minlength=size)
        if self.weighted:  # the mean of all rows, not of the others
            gap = factor * (self.f - self.mean) / self.rows
            own += np.bincount(of.labelled, gap, minlength=size)
        if of.says.size:
            mean, rows = (self.mean, self.rows) if self.weighted else (of.says.mean(), of.says.size)
            own += np.bincount(of.others, factor * (of.says - mean) / rows, minlength=size)
        return np.asarray(own, dtype=np.float64)

    @cached_property
    def influence(self) -> FloatArray:
        """`by_question` of PPI++, shape (Q,)."""
        y, f = (v - float(self.w @ v) / self.n for v in (self.y, self.f))
        factor, more = self._factor(y, f, self.w), self.rows - self.n
        if self.weighted and more:
            factor *= 1 + self.n / more
        return self.by_question(self.w * (y - factor * f) / self.n, factor)

    @cached_property
    def effective(self) -> float:
        """Number of labels that would give the variance of PPI++ by themselves."""
        _, variance, mean = self.ppi(HALF)
        return mean * (1 - mean) / variance * self.n / (self.n + 4 * HALF)

    @cached_property
    def alone(self) -> float:
        """Number of independent labels that would give the variance of the mean label."""
        varies = self.weighted or self.depend is not None
        return replace(self, variance=0.0).effective if varies else float(self.n)

    def tuned(self, level: float) -> RateEstimate:
        """PPI++, with Wilson's interval for the effective number of labels."""
        value, variance, _ = self.ppi()
        value = min(max(value, 0.0), 1.0)
        ends = Interval(*wilson(value, self.effective, level))
        return RateEstimate(value, ends, math.sqrt(variance))

    def plain(self, level: float) -> RateEstimate:
        """Mean of the labels, with Wilson's interval."""
        value = float(self.w @ self.y) / self.n
        number = self.alone
        error = math.sqrt(value * (1 - value) / number)
        return RateEstimate(value, Interval(*wilson(value, number, level)), error)

    def thinned(self, level: float) -> tuple[dict[str, RateEstimate], FloatArray]:
        """`agreement`, and the cells that give sensitivity and specificity their width, shape (2, 2): fewer rows where those of a question are alike."""
        found, clusters = agreement(self.cells, level), self.depend
        if clusters is None:
            return found, self.cells
        says, yes = self.f >= CUTOFF, self.y == 1
        hit = (says == yes).astype(np.float64)
        every = np.ones(self.n, dtype=bool)
        of = {"sensitivity": yes, "specificity": ~yes, "agreement": every, "kappa": every}
        design = {k: clusters.design(m, self.w * (hit - hit[m].mean()) if m.any() else hit) for k, m in of.items()}  # fmt: skip
        own = {k: agreement(self.cells / d, level)[k] for k, d in design.items()}
        return own, self.cells / np.array([[design["sensitivity"]], [design["specificity"]]])

    @property
    def bias(self) -> float:
        """What the judge says minus what people say, on average over the labelled rows."""
        return float(self.w @ (self.f - self.y)) / self.n if self.n else math.nan

    @cached_property
    def p_of_bias(self) -> float:
        """P-value that there is none: exact (McNemar) for verdicts that count alike, otherwise normal; nan without labels."""
        if not self.n:
            return math.nan
        if not self.weighted and self.depend is None and np.isin(self.f, (0, 1)).all():
            wrong = self.cells[0, 1], self.cells[1, 0]
            return min(1.0, 2 * float(at_most(min(wrong), sum(wrong), 0.5)))
        error = self._error(self.w * (self.f - self.y - self.bias))
        return 2 * float(ndtr(-abs(self.bias) / error)) if error else float(self.bias == 0)

    @property
    def p_of_choice(self) -> float:
        """P-value that the judge says the same, on average, of the labelled rows and of all."""
        says = float(self.w @ self.f) / self.n
        error = self._error(self.w * (self.f - says), 1 - self.n / self.rows)
        return 2 * float(ndtr(-abs(says - self.mean) / error)) if error else 1.0

    def _error(self, off: FloatArray, share: float = 1.0) -> float:
        """Standard error of a mean of the labelled rows with these deviations, with a share of its variance."""
        error = math.sqrt(float(off @ off) * share) / self.n
        if self.depend is None:
            return error
        return error * math.sqrt(self.depend.design(np.ones(self.n, dtype=bool), off))


def naive_rate(score: FloatArray, level: float, cluster: IntArray | None = None) -> RateEstimate:
    """Mean of what the judge says, shape (n,), with Wilson's interval for the number of verdicts that have its variance."""
    value, variance = float(score.mean()), float(score.var())
    if cluster is not None:
        variance *= design_of(score, cluster)
    number = score.size * (value * (1 - value) / variance if variance else 1.0)
    ends = wilson(value, number, level) if number else (0.0, 1.0)  # one question tells nothing
    return RateEstimate(value, Interval(*ends), math.sqrt(variance / score.size))


def design_of(score: FloatArray, cluster: IntArray | None) -> float:
    """`Clusters.design` of the mean of all rows, shape (n,)."""
    if cluster is None:
        return 1.0
    of = Clusters(cluster, cluster[:0], score[:0])
    if not of.depend:
        return 1.0
    return of.design(np.ones(score.size, dtype=bool), score - score.mean())


def rogan_gladen(
    sums: LabelledRows, says: float, level: float, design: float = 1.0
) -> RateEstimate:
    """The rate by sensitivity and specificity: ``(m + specificity - 1) / (sensitivity + specificity - 1)`` for a share m of yes.

    The interval holds the rates t for which ``t J - (m + specificity - 1)`` is not unusual (Fieller 1954), with half a row more in each
    cell: that of the delta method breaks down where the judge is hardly better than chance. The labelled rows are among all, hence
    the covariances. `design` is how many times the variance of the share m is that of independent rows.

    References
    ----------
    Rogan & Gladen 1978; Lang & Reiczigel 2014 for the added rows.
    """
    (tp, fn), (fp, tn) = sums.thinned(level)[1].tolist()
    se, sp = (tp + HALF) / (tp + fn + 2 * HALF), (tn + HALF) / (fp + tn + 2 * HALF)
    z2 = float(ndtri((1 + level) / 2)) ** 2
    of_se, of_sp, own = se * (1 - se) / (tp + fn), sp * (1 - sp) / (fp + tn), design / sums.rows
    of_m, both_se, both_sp = says * (1 - says) * own, se * (1 - se) * own, sp * (1 - sp) * own
    gain, top = se + sp - 1, says + sp - 1
    # The variance of t J - top is a quadratic in t, so that the ends of the interval are the roots of another.
    two, one, none = of_se + of_sp, -2 * (of_sp + both_se - both_sp), of_m + of_sp - 2 * both_sp
    a, b, c = gain**2 - z2 * two, -2 * gain * top - z2 * one, top**2 - z2 * none
    root = math.sqrt(max(b * b - 4 * a * c, 0.0))
    low, high = 0.0, 1.0
    if a > 0:
        low, high = (-b - root) / (2 * a), (-b + root) / (2 * a)
    elif a < 0 and root:  # all rates but those between the roots
        less, more = sorted(((-b - root) / (2 * a), (-b + root) / (2 * a)))
        low, high = 0.0 if less >= 0 else more, 1.0 if more <= 1 else less
    observed = tp / (tp + fn) + tn / (fp + tn) - 1
    value = min(max((says + tn / (fp + tn) - 1) / (observed or math.nan), 0.0), 1.0)
    spread = two * value**2 + one * value + none
    error = math.sqrt(max(spread, 0.0)) / abs(gain) if gain else math.inf
    ends = min(max(low, 0.0), value), max(min(high, 1.0), value)
    return RateEstimate(value, Interval(*ends), error)


def agreement(cells: FloatArray, level: float) -> dict[str, RateEstimate]:
    """Sensitivity, specificity and agreement with Wilson's interval, and Cohen's kappa with the normal one, from rows by human and judge, shape (2, 2)."""

    def share(hits: float, number: float) -> RateEstimate:
        value = hits / number if number else math.nan
        ends = wilson(value, number, level) if number else (0.0, 1.0)
        return RateEstimate(value, Interval(*ends))

    (tp, fn), (fp, tn) = cells.tolist()
    value, _ = _kappa(cells)
    middle, error = _kappa(cells + HALF)
    half = float(ndtri((1 + level) / 2)) * error
    ends = max(min(middle - half, value), -1.0), min(max(middle + half, value), 1.0)
    return {
        "sensitivity": share(tp, tp + fn),
        "specificity": share(tn, fp + tn),
        "agreement": share(tp + tn, tp + fn + fp + tn),
        "kappa": RateEstimate(value, Interval(*ends), error),
    }


def _kappa(cells: FloatArray) -> tuple[float, float]:
    """Cohen's kappa and its standard error (Fleiss, Cohen & Everitt 1969, eq. 13)."""
    p = cells / cells.sum()
    people, judge = p.sum(axis=1), p.sum(axis=0)
    chance = float(people @ judge)
    if chance >= 1:
        return math.nan, math.nan
    kappa = (float(np.trace(p)) - chance) / (1 - chance)
    right = np.diag(p) @ np.square(1 - (people + judge) * (1 - kappa))
    wrong = p[0, 1] * (judge[0] + people[1]) ** 2 + p[1, 0] * (judge[1] + people[0]) ** 2
    variance = right + (1 - kappa) ** 2 * wrong - (kappa - chance * (1 - kappa)) ** 2
    return kappa, math.sqrt(max(float(variance), 0.0) / cells.sum()) / (1 - chance)


def difference(one: RateEstimate, other: RateEstimate, correlation: float = 0.0) -> Interval:
    """Interval of a difference from those of both rates (Zou & Donner 2008, eq. 3; Newcombe's hybrid score interval for shares)."""

    def half(a: float, b: float) -> float:
        return math.sqrt(max(a * a + b * b - 2 * correlation * a * b, 0.0))

    gap = one.value - other.value
    down = half(one.value - one.interval.low, other.interval.high - other.value)
    up = half(one.interval.high - one.value, other.value - other.interval.low)
    return Interval(gap - down, gap + up)


def correlation(one: LabelledRows, other: LabelledRows) -> float:
    """Correlation of both corrected rates, of rows that share questions; 0 without questions."""
    if one.clusters is None or other.clusters is None:
        return 0.0
    a, b = one.influence, other.influence
    both = min(a.size, b.size)
    spread = math.sqrt(float(a @ a) * float(b @ b))
    return float(a[:both] @ b[:both]) / spread if spread else 0.0


def p_of_errors(
    wrong: BoolArray, yes: BoolArray, group: IntArray, groups: int, cluster: IntArray
) -> float:
    """P-value that the error rates of both classes are the same in all groups, of rows of shape (n,) that depend on each other within a question.

    Score test with the covariance of the questions' sums and Hotelling's F; nan if nothing tells it.

    References
    ----------
    Rao & Scott 1981 for the idea; Fay & Graubard 2001 for the degrees of freedom.
    """
    code = np.unique(cluster, return_inverse=True)[1]
    questions, columns = int(code.max()) + 1, []
    for rows in (yes, ~yes):
        counts = np.bincount(group[rows], minlength=groups)
        if np.count_nonzero(counts) < 2 or len({*wrong[rows].tolist()}) < 2:
            continue
        off = (wrong - wrong[rows].mean()) * rows
        first, *rest = np.flatnonzero(counts)
        for g in rest:
            own = off * ((group == g) / counts[g] - (group == first) / counts[first])
            columns.append(np.bincount(code, own, minlength=questions))
    if not columns or questions - len(columns) < 1:
        return math.nan
    sums = np.stack(columns, axis=1)
    total = sums.sum(axis=0)
    spread = (sums - sums.mean(axis=0)).T @ (sums - sums.mean(axis=0)) * questions / (questions - 1)
    rank = int(np.linalg.matrix_rank(spread))
    if not rank:
        return math.nan
    statistic = float(total @ np.linalg.pinv(spread, hermitian=True) @ total)
    return float(
        fdtrc(rank, questions - rank, statistic * (questions - rank) / (rank * (questions - 1)))
    )


def hits_by_group(hit: BoolArray, group: IntArray, groups: int) -> tuple[IntArray, IntArray] | None:
    """Hits and rows of each group that has rows, shape (G,), from rows of shape (n,); None if there are fewer than two, or all rows are alike."""
    rows = np.bincount(group, minlength=groups)
    hits = np.bincount(group[hit], minlength=groups)[rows > 0]
    rows = rows[rows > 0]
    return (hits, rows) if rows.size > 1 and 0 < hits.sum() < rows.sum() else None


def p_of_tables(tables: Sequence[tuple[IntArray, IntArray]]) -> float:
    """P-value that hits are spread alike over the groups of every table (hits and rows, shape (G,)), by permutation; nan without tables."""
    if not tables:
        return math.nan
    rng, observed, drawn = np.random.default_rng(0), 0.0, np.zeros(DRAWS)
    for hits, rows in tables:
        share = hits.sum() / rows.sum()
        every = rng.multivariate_hypergeometric(rows, int(hits.sum()), DRAWS, "marginals")
        spread = rows * share * (1 - share)
        observed += float((np.square(hits - rows * share) / spread).sum())
        drawn += (np.square(every - rows * share) / spread).sum(axis=1)
    return float(1 + np.count_nonzero(drawn >= observed - 1e-9)) / (DRAWS + 1)


def chances_with_sum(weights: FloatArray, rows: IntArray, total: int) -> FloatArray:
    """Chances proportional to the weights of strata, shape (S,), at most 1, whose sum over their rows is `total`."""
    chances, full = np.zeros(weights.size), np.zeros(weights.size, dtype=bool)
    for _ in range(weights.size):
        left = total - rows[full].sum()
        chances = np.where(full, 1.0, weights * left / max((weights * rows)[~full].sum(), 1e-300))
        if not (over := (chances > 1) & ~full).any():
            break
        full |= over
    return np.minimum(chances, 1.0)
