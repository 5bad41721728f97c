"""Rating grades in which more happens than the probabilities say, and their lights."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from benchmarks.claims import simulation
from calviz.core.predictions import Predictions
from calviz.sample.cutoff_and_grades import YELLOW, Grades, grades
from calviz.sample.sample import Sample


@dataclass(frozen=True)
class Portfolio:
    """Grades whose probabilities of default rise geometrically.

    Attributes
    ----------
    n, grades : int
    first, last : float
        Probability of default in the first and in the last grade.
    spread : float
        Standard deviation of the logarithms of the probabilities within a grade.
    weights : float
        Standard deviation of the logarithms of the weights; 0 without weights.
    clusters : int
        Number of clusters, such as debtors, within which defaults depend on each other; 0 for independent rows.
    """

    n: int
    grades: int
    first: float
    last: float
    spread: float = 0.0
    weights: float = 0.0
    clusters: int = 0

    def tested(self, rng: np.random.Generator, *, times: float = 1.0) -> Grades:
        """Draw defaults, `times` as frequent as stated in the middle grade, and test all grades."""
        n = self.n
        grade = rng.integers(0, self.grades, n)
        score = np.geomspace(self.first, self.last, self.grades)[grade]
        score = np.minimum(score * np.exp(self.spread * rng.normal(size=n)), 0.9)
        chance = np.minimum(score * np.where(grade == self.grades // 2, times, 1), 1)
        z, cluster = rng.normal(size=n), None
        if self.clusters:
            cluster = rng.integers(0, self.clusters, n)
            z = np.sqrt(0.15) * rng.normal(size=self.clusters)[cluster] + np.sqrt(0.85) * z
        data = Predictions(
            probs=score,
            labels=(z < ndtri(chance)).astype(int),
            groups={"grade": grade},
            weights=np.exp(self.weights * rng.normal(size=n)) if self.weights else None,
            clusters=cluster,
        )
        return grades(Sample(data, "positive"), column="grade")


CALIBRATED = {
    "many defaults": Portfolio(10_000, 8, 0.01, 0.3),
    "probabilities that differ within a grade": Portfolio(10_000, 8, 0.01, 0.3, spread=0.4),
    "few defaults": Portfolio(3_000, 7, 0.002, 0.1),
    "very few defaults": Portfolio(1_000, 12, 0.001, 0.05),
    "weights": Portfolio(5_000, 7, 0.005, 0.2, weights=1),
    "heavy weights, few defaults": Portfolio(3_000, 7, 0.002, 0.1, weights=2),
    "debtors with several rows": Portfolio(5_000, 7, 0.01, 0.3, clusters=1_000),
    "60 clusters": Portfolio(5_000, 7, 0.01, 0.3, clusters=60),
    "60 clusters, weights": Portfolio(5_000, 7, 0.01, 0.3, clusters=60, weights=1),
}
OFF = {
    "1.5 times as many defaults": (Portfolio(10_000, 8, 0.01, 0.3), 1.5),
    "3 times as many, few defaults": (Portfolio(3_000, 7, 0.005, 0.1), 3.0),
}


def words(case: str, portfolio: Portfolio) -> str:
    """Case with its size."""
    return f"{case}, {portfolio.n:,} rows, {portfolio.grades} grades"


for case, portfolio in CALIBRATED.items():

    @simulation("grades", "said of calibrated portfolios", words(case, portfolio), at_most=0.05)
    def _(rng: np.random.Generator, portfolio: Portfolio = portfolio) -> bool:
        return bool((portfolio.tested(rng).adjusted[:-1] <= YELLOW).any())

    @simulation(
        "grades", "less said to happen in calibrated grades", words(case, portfolio), at_most=0.01
    )
    def _(rng: np.random.Generator, portfolio: Portfolio = portfolio) -> bool:
        return "Less happens in" in portfolio.tested(rng).reading()

    @simulation("grades", "calibrated grades that are red", words(case, portfolio), at_most=0.01)
    def _(rng: np.random.Generator, portfolio: Portfolio = portfolio) -> float:
        return float(np.mean([light == "red" for light in portfolio.tested(rng).lights]))

    @simulation(
        "grades", "calibrated grades that are yellow or red", words(case, portfolio), at_most=0.05
    )
    def _(rng: np.random.Generator, portfolio: Portfolio = portfolio) -> float:
        return float(
            np.mean([light in ("yellow", "red") for light in portfolio.tested(rng).lights])
        )


for case, (portfolio, times) in OFF.items():

    @simulation("grades", "the grade that is off named", words(case, portfolio), at_least=0.8)
    def _(rng: np.random.Generator, portfolio: Portfolio = portfolio, times: float = times) -> bool:
        return bool(portfolio.tested(rng, times=times).adjusted[portfolio.grades // 2] <= YELLOW)
