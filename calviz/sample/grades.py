"""Rating grades: whether more happens in a grade than its probabilities say."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from scipy.special import betainc, betaincinv

from calviz.core.arrays import FloatArray
from calviz.core.errors import OptionError, shortened
from calviz.core.factor import Factor
from calviz.core.predictions import Dataset, Predictions
from calviz.sample.sample import Sample

Light = Literal["green", "yellow", "red"]

#: A grade is yellow, or red, below these p-values of the Jeffreys test.
YELLOW, RED = 0.05, 0.01
#: Columns with more values than this are no grades.
MOST_GRADES = 50
#: Fewer levels than this are in the order of their scores by chance too often.
LEAST_GRADES = 3
_NAMES = re.compile(r"(^|[^a-z])(grade|rating|bucket|band|notch|risk[ _-]?class)s?([^a-z]|$)", re.I)
_AGENCY = re.compile(r"([A-C])\1{0,2}[0-9]?[+-]?|Aaa|Aa[1-3]?|Baa[1-3]?|Ba[1-3]?|Caa[1-3]?|Ca|D")


@dataclass(frozen=True, eq=False)
class Grades:
    """Grades in ascending order of their mean score, and all rows at last; arrays have one entry each.

    Attributes
    ----------
    column : str
    names : tuple of str
    rows, hits, score : ndarray, shape (G + 1,)
        Rows, hits among them, and the mean score (the probability of default of the grade).
    low, high : ndarray, shape (G + 1,)
        Jeffreys interval of the share of hits.
    jeffreys, binomial : ndarray, shape (G + 1,)
        One-sided p-values: small where more happens than the mean score says.
    """

    column: str
    names: tuple[str, ...]
    rows: FloatArray
    hits: FloatArray
    score: FloatArray
    low: FloatArray
    high: FloatArray
    jeffreys: FloatArray
    binomial: FloatArray

    @property
    def lights(self) -> tuple[Light, ...]:
        """Traffic lights by the Jeffreys test."""
        return tuple(
            "red" if p < RED else "yellow" if p < YELLOW else "green"
            for p in self.jeffreys.tolist()
        )

    def columns(self) -> Mapping[str, Any]:
        """One row per grade, and one for all rows."""
        return {
            "grade": self.names,
            "rows": self.rows.astype(np.int64),
            "hits": self.hits.astype(np.int64),
            "mean_score": self.score,
            "observed": self.hits / self.rows,
            "low": self.low,
            "high": self.high,
            "p_jeffreys": self.jeffreys,
            "p_binomial": self.binomial,
            "light": self.lights,
        }

    def reading(self) -> str:
        """How many grades are off, in a sentence."""
        lights = self.lights[:-1]
        red, yellow = (
            [shortened(n) for n, light in zip(self.names, lights, strict=False) if light == of]
            for of in ("red", "yellow")
        )
        if not red and not yellow:
            said = f"In none of the {len(lights)} grades more happens than its probabilities say."
        else:
            parts = [f"{of} {', '.join(n)}" for of, n in (("red", red), ("yellow", yellow)) if n]
            said = f"Of {len(lights)} grades more happens than the probabilities say in: {'; '.join(parts)}."
        less = [
            shortened(name)
            for name, p in zip(self.names[:-1], self.jeffreys[:-1].tolist(), strict=True)
            if p > 1 - RED
        ]
        if less:
            said += f" Less happens in {', '.join(less)}: the tests look for too low scores only."
        return f"{said} {self._order()}".strip()

    def _order(self) -> str:
        """Whether the observed shares rise from grade to grade, as the mean scores do."""
        share, names = (self.hits / self.rows)[:-1], self.names[:-1]
        if share.size < 2:
            return ""
        falls = np.flatnonzero(np.diff(share) < 0)
        if not falls.size:
            return "The observed shares rise from grade to grade, as the scores do."
        pairs = [f"from {shortened(names[i])} to {shortened(names[i + 1])}" for i in falls.tolist()]
        more = ", …" if len(pairs) > 5 else ""
        return f"The observed shares rise with the scores, but not {', '.join(pairs[:5])}{more}."


def grade_columns(data: Dataset) -> tuple[str, ...]:
    """The group columns that hold rating grades: by their name or values, or where neither says so, by their scores.

    Grades by their scores have an order (numbers, or single letters), in which the mean score of the positive class rises or falls
    without exception over three grades or more, and which explains at least half of the variance of the scores: a grade is made of them.
    """
    few = _with_few_values(data)
    named = tuple(
        name
        for name, f in few.items()
        if _NAMES.search(name) or all(_AGENCY.fullmatch(level.strip()) for level in f.levels)
    )
    return named or tuple(name for name, f in few.items() if _follows_scores(data, f))


def possible_grade_columns(data: Dataset) -> tuple[str, ...]:
    """The group columns that a person may name as one of grades."""
    return tuple(_with_few_values(data))


def has_grades(data: Dataset) -> bool:
    """Whether a column is one of grades beyond doubt."""
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
    rows = np.bincount(factor.codes, minlength=size)
    there = np.flatnonzero(rows)
    if there.size < LEAST_GRADES:
        return False
    mean = np.bincount(factor.codes, weights=score, minlength=size)[there] / rows[there]
    steps = np.diff(mean[np.argsort(np.asarray(ranks)[there])])
    between = rows[there] @ (mean - score.mean()) ** 2
    whole = float(score.var()) * score.size
    return bool((np.all(steps > 0) or np.all(steps < 0)) and between >= 0.5 * whole)


def _order_of(levels: Sequence[str]) -> list[float] | None:
    """What levels are sorted by: numbers, or single letters; None where they have no such order."""
    texts = [level.strip() for level in levels]
    if all(len(text) == 1 and text.isalpha() for text in texts):
        return [float(ord(text.upper())) for text in texts]
    try:
        return [float(text) for text in texts]
    except ValueError:
        return None


def grade_factor(data: Dataset, column: str) -> Factor:
    """The column of grades of this name.

    Raises
    ------
    OptionError
        Where there is no such column, or it has more than `MOST_GRADES` values.
    """
    if column not in data.groups:
        known = ", ".join(shortened(name) for name in data.groups) or "none"
        raise OptionError(f"there is no group column '{shortened(column)}'; known: {known}.")
    factor = data.groups[column]
    if len(factor.levels) > MOST_GRADES:
        raise OptionError(
            f"'{shortened(column)}' has {len(factor.levels):,} values: a column of grades has at most {MOST_GRADES}."
        )
    return factor


def grades(sample: Sample, *, column: str, level: float = 0.95) -> Grades:
    """Test every grade, against hits that are more than its mean score says.

    Parameters
    ----------
    sample : Sample
        Under the class that is decided on (`calviz.sample.cutoff.decidable`).
    column : str
        The group column that holds the grades.
    level : float
        Of the Jeffreys intervals.

    Raises
    ------
    OptionError
        Where there is no such column, or it has more than `MOST_GRADES` values.

    Notes
    -----
    The Jeffreys test (ECB 2019, section 2.5) is the probability of the mean score or less under the posterior
    ``Beta(k + 1/2, n - k + 1/2)``; the binomial test is ``P(K >= k)`` with the mean score as probability. Both take the rows of
    a grade as independent, and each grade stands for itself.
    """
    factor = grade_factor(sample.data, column)
    events = sample.events
    size = len(factor.levels)
    rows = np.bincount(factor.codes, minlength=size).astype(np.float64)
    hits = np.bincount(factor.codes, weights=events.hit, minlength=size)
    score = np.bincount(factor.codes, weights=events.score, minlength=size)
    there = np.flatnonzero(rows)
    there = there[np.argsort(score[there] / rows[there], kind="stable")]
    n, k, s = (np.append(v[there], v.sum()) for v in (rows, hits, score))
    mean = np.clip(s / n, 0, 1)
    a, b, tail = k + 0.5, n - k + 0.5, (1 - level) / 2
    binomial = np.ones(n.shape)
    some = k > 0
    binomial[some] = betainc(k[some], (n - k + 1)[some], mean[some])
    return Grades(
        column=column,
        names=(*(factor.levels[i] for i in there.tolist()), "all rows"),
        rows=n,
        hits=k,
        score=mean,
        low=np.where(k > 0, betaincinv(a, b, tail), 0.0),
        high=np.where(k < n, betaincinv(a, b, 1 - tail), 1.0),
        jeffreys=betainc(a, b, mean),
        binomial=binomial,
    )
