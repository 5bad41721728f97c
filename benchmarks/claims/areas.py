"""Intervals of the AUROC of weighted rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import expit

import calviz
from benchmarks.claims import simulation

#: The interval is in closed form: resamples are drawn, but not used.
RESAMPLES = 20


@dataclass(frozen=True)
class Setting:
    """Events with probability expit(intercept + slope e), e normal, and weights exp(tie e + noise z).

    Attributes
    ----------
    intercept, slope : float
    tie : float
        How much the logarithms of the weights rise with e, by which rows are ranked.
    noise : float
        Standard deviation of the other part of these logarithms.
    """

    intercept: float
    slope: float
    tie: float
    noise: float = 0.0

    def draw(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Draw probabilities, events and weights, shape (n,) each."""
        e = rng.normal(size=n)
        chance = expit(self.intercept + self.slope * e)
        weights = np.exp(self.tie * e + self.noise * rng.normal(size=n))
        return chance, rng.random(n) < chance, weights

    @cache  # noqa: B019  # a few settings
    def area(self, *, of_top_label: bool = False) -> float:
        """True AUROC of the weighted population, by quadrature over e."""
        e = np.linspace(-12, 12, 200_001)
        chance = expit(self.intercept + self.slope * e)
        mass = np.exp(-(e**2) / 2 + self.tie * e)
        if of_top_label:
            order = np.argsort(np.abs(chance - 0.5), kind="stable")
            chance, mass = np.maximum(chance, 1 - chance)[order], mass[order]
        hits, misses = mass * chance, mass * (1 - chance)
        below = np.cumsum(misses) - misses / 2
        return float(hits @ below / (hits.sum() * misses.sum()))


SETTINGS = {
    "weights rise with the scores": Setting(0, 1, 1),
    "weights fall with the scores": Setting(0, 1, -1),
    "one event in 9, weights rise with the scores": Setting(-2.5, 1.5, 1),
    "one event in 9, weights fall with the scores": Setting(-2.5, 1.5, -1),
    "heavy weights that rise with the scores": Setting(0, 1, 1, 1),
    "AUROC 0.93, weights rise with the scores": Setting(0, 3, 0.8, 0.5),
    "weights that do not go with the scores": Setting(-1, 1.5, 0, 1),
    "nearly equal weights": Setting(-1, 1.5, 0.01),
}

for case, setting in SETTINGS.items():
    for n in (300, 2_000):

        def covered(
            rng: np.random.Generator, metric: str, setting: Setting = setting, n: int = n
        ) -> bool:
            chance, events, weights = setting.draw(n, rng)
            data = calviz.Predictions(probs=chance, labels=events.astype(int), weights=weights)
            result = calviz.evaluate(
                data, [metric], reduction="positive", ci=True, resamples=RESAMPLES
            )[metric]
            assert result.interval_method == "closed"
            true = setting.area(of_top_label=metric == "auroc_failure")
            low, high = result.interval
            return low <= true <= high

        simulation(
            "weighted-auroc", "AUROC covered", f"{case}, {n:,} rows", at_least=0.93, at_most=0.98
        )(lambda rng, covered=covered: covered(rng, "auroc"))
        if "heavy" in case or "nearly" in case:
            simulation(
                "weighted-auroc",
                "AUROC of failure detection covered",
                f"{case}, {n:,} rows",
                at_least=0.93,
                at_most=0.98,
            )(lambda rng, covered=covered: covered(rng, "auroc_failure"))
