"""Rating grades: tests of whether more hits happen in a grade than its probabilities say."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from scipy.special import betainc, betaincinv, stdtrit

from calviz.core.arrays import FloatArray
from calviz.core.errors import OptionError, shortened
from calviz.core.factor import Factor
from calviz.core.predictions import Dataset, Predictions
from calviz.numerics.effective_number import effective_numbers_of_sums
from calviz.numerics.safe_division import quotient
from calviz.sample.sample import Sample
from calviz.sample.slice_sums import FEWEST_CLUSTERS, SliceSums, slice_sums
from calviz.sample.slices import no_group_column
from calviz.specs.metric import takes_weights

#: "none": not tested.
Light = Literal["green", "yellow", "red", "none"]

#: A grade is yellow, or red, below these p-values of the Jeffreys test.
YELLOW, RED = 0.05, 0.01
#: Help text for `Grades.counts_as`, shown for weighted or clustered rows.
COUNTS_AS = "How many independent rows of equal weight the rows of the grade are worth; the tests and intervals use this number."
#: Columns with more values than this do not hold grades.
MOST_GRADES = 50
#: Fewer levels than this are too often in the order of their scores by chance.
LEAST_GRADES = 3
_NAMES = re.compile(r"(^|[^a-z])(grade|rating|bucket|band|notch|risk[ _-]?class)s?([^a-z]|$)", re.I)
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

    @property
    def lights(self) -> tuple[Light, ...]:
        """Traffic lights by the Jeffreys test."""
        return tuple(
            "red" if p < RED else "yellow" if p < YELLOW else "green" if p <= 1 else "none"
            for p in self.jeffreys.tolist()
        )

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
            "observed": self.observed,
            "counts_as": self.counts_as,
            "low": self.low,
            "high": self.high,
            "p_jeffreys": self.jeffreys,
            "p_binomial": self.binomial,
            "light": self.lights,
        }

    def reading(self) -> str:
        """Say which grades are off."""
        lights = self.lights[:-1]
        red, yellow = (
            [shortened(n) for n, light in zip(self.names, lights, strict=False) if light == colour]
            for colour in ("red", "yellow")
        )
        if not red and not yellow:
            tested = len(lights) - lights.count("none")
            text = (
                f"In none of the {tested} grades does more happen than its probabilities say."
                if tested
                else ""
            )
        else:
            parts = [
                f"{colour} {', '.join(n)}" for colour, n in (("red", red), ("yellow", yellow)) if n
            ]
            text = f"In some of the {len(lights)} grades more happens than the probabilities say: {'; '.join(parts)}."
        less = [
            shortened(name)
            for name, p in zip(self.names[:-1], self.jeffreys[:-1].tolist(), strict=True)
            if p > 1 - RED
        ]
        if less:
            text += f" Less happens in {', '.join(less)}: the tests look only for scores that are too low."
        if untested := [
            shortened(name)
            for name, light in zip(self.names, lights, strict=False)
            if light == "none"
        ]:
            text += (
                f" Not tested: {', '.join(untested)}, with fewer than {FEWEST_CLUSTERS} clusters."
            )
        return f"{text} {self._order()}".strip()

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


def grade_columns(data: Dataset) -> tuple[str, ...]:
    """The group columns that hold rating grades, recognised by their names or values, or failing that by their scores.

    A column is recognised by its scores if its values have an order (numbers, or single letters) in which the mean score of the
    positive class rises or falls without exception over three grades or more, and if the column explains at least half of
    the variance of the scores, as grades do that were made from them.
    """
    few = _with_few_values(data)
    named = tuple(
        name
        for name, f in few.items()
        if _NAMES.search(name) or all(_AGENCY.fullmatch(level.strip()) for level in f.levels)
    )
    return named or tuple(name for name, f in few.items() if _follows_scores(data, f))


def possible_grade_columns(data: Dataset) -> tuple[str, ...]:
    """The group columns that a user may choose as grades."""
    return tuple(_with_few_values(data))


def has_grades(data: Dataset) -> bool:
    """Whether a column holds grades according to its name."""
    return any(_NAMES.search(name) for name in data.groups)


def _with_few_values(data: Dataset) -> dict[str, Factor]:
    return {name: f for name, f in data.groups.items() if len(f.levels) <= MOST_GRADES}


def _follows_scores(data: Dataset, factor: Factor) -> bool:
    if not isinstance(data, Predictions) or data.n_classes != 2:
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
    """Sort keys of the levels, which are numbers or single letters; None if they have no such order."""
    texts = [level.strip() for level in levels]
    if all(len(text) == 1 and text.isalpha() for text in texts):
        return [float(ord(text.upper())) for text in texts]
    try:
        return [float(text) for text in texts]
    except ValueError:
        return None


def grade_factor(data: Dataset, column: str) -> Factor:
    """The group column of this name, to be used as grades.

    Raises
    ------
    OptionError
        If there is no such column, or it has more than `MOST_GRADES` values.
    """
    if column not in data.groups:
        raise no_group_column(data, column)
    factor = data.groups[column]
    if len(factor.levels) > MOST_GRADES:
        raise OptionError(
            f"'{shortened(column)}' has {len(factor.levels):,} values: a column of grades has at most {MOST_GRADES}."
        )
    return factor


def tests_words(data: Dataset) -> str:
    """Describe the tests of `grades` and the colours of its lights, for a note below a table."""
    independent = (
        ""
        if data.clusters is not None
        else "; rows are taken as independent, which defaults in one year are not"
    )
    return (
        "One-sided tests of each grade by itself, with small p-values if there are more hits than its mean score predicts: Jeffreys (the "
        f"posterior with a Jeffreys prior) and binomial. Yellow below {YELLOW:g}, red below {RED:g} by the Jeffreys test{independent}."
    )


@takes_weights
def grades(sample: Sample, *, column: str, level: float = 0.95) -> Grades:
    """Test every grade for more hits than its mean score says.

    Parameters
    ----------
    sample : Sample
        Under the class that decisions are about (`calviz.sample.cutoff.decidable`).
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
    The Jeffreys test (ECB 2019, section 2.5) is the probability of the mean score or less under the posterior
    ``Beta(k + 1/2, n - k + 1/2)``; the binomial test is ``P(K >= k)`` with the mean score as probability. Both assume that the
    rows of a grade are independent, and neither is adjusted for the number of grades. For weighted or clustered rows, n is
    the effective sample size and k the share of hits times n (Korn & Graubard 1998), see `counts_as`.
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
    # For grades that are not tested k is nan, and so is the p-value.
    binomial = np.where(k == 0, 1.0, betainc(np.maximum(k, 1e-12), n - k + 1, mean))
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
    )


def counts_as(sums: SliceSums) -> FloatArray:
    """Effective sample size of each slice, shape (S,); nan for fewer than `FEWEST_CLUSTERS` clusters.

    Weights: ``(sum w)^2 / sum w^2`` (Kish 1965). Clusters: divided by the ratio of the variance of the gap with clustered rows
    to that with independent rows, and by the squared ratio of Student's quantiles with the degrees of freedom of the clusters
    and of the rows, as the variance is estimated from the clusters (Korn & Graubard 1998, *Confidence intervals for
    proportions with small expected number of positive counts estimated from survey data*). Rows that all are hits, or all misses,
    do not show how much clusters vary: each cluster counts as one row at most.
    """
    n = sums.rows
    if sums.weighted is not None:
        w, squares, _ = sums.weighted
        n = effective_numbers_of_sums(w, squares)
    if sums.between is None or sums.clusters is None:
        return n
    alone = replace(sums, between=None, clusters=None).spread
    more = quotient(sums.spread, alone, otherwise=1.0)
    degrees = np.maximum(sums.clusters - 1, 1)
    quantile = stdtrit(np.stack([np.maximum(sums.rows - 1, 1), degrees]), 0.975)
    fewer = n / np.maximum(more, 1) ** 2 * (quantile[0] / quantile[1]) ** 2
    unanimous = (sums.hits <= 0) | (sums.hits >= sums.mass)
    fewer = np.where(unanimous, np.minimum(fewer, sums.clusters), fewer)
    return np.where(sums.clusters < FEWEST_CLUSTERS, np.nan, fewer)
