"""How often intervals cover the truth, and whether p-values of calibrated models are uniform.

    python benchmarks/coverage.py [runs]

Prints Markdown. Two cases with a closed form (Zhang et al. 2020, appendix E), and a multiclass one
that is over-confident by a temperature. The truth of a metric is its value on very many rows, where
the noise and the bias of its estimator are gone. "Bias" is the mean estimate minus the truth in
standard deviations of the estimate: a percentile interval resamples the estimate, bias and all, so that its
coverage falls as the bias grows, whatever the resampling.
"""

from __future__ import annotations

import sys

import numpy as np
from _harness import machine

import calviz
from calviz.core.metric import METRICS
from calviz.core.predictions import Predictions

SIZES = (300, 2_000)
TRUTH_ROWS = 400_000
LEFT_OUT = ("skce",)  # computed on 1,000 rows at the most, so that many rows are no truth


def synthetic(beta0: float, beta1: float):
    """Eq. 13 of Zhang et al. 2020."""

    def draw(n, rng):
        x = np.where(rng.random(n) < 0.5, -1.0, 1.0) + rng.standard_normal(n)
        p = 1 / (1 + np.exp(-beta0 - beta1 * x))
        return Predictions(probs=p, labels=rng.random(n) < 1 / (1 + np.exp(2 * x)))

    return draw


def multiclass(temperature: float, k: int = 5):
    """Softmax of random logits, sharper by a temperature than the labels deserve."""

    def draw(n, rng):
        z = 1.5 * rng.standard_normal((n, k))
        labels = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
        p = np.exp(z / temperature)
        return Predictions(probs=p / p.sum(axis=1, keepdims=True), labels=labels)

    return draw


CASES = {
    "appendix E, case 1": (synthetic(0.5, -1.5), "positive"),
    "appendix E, case 2": (synthetic(0.2, -1.9), "positive"),
    "over-confident, 5 classes": (multiclass(0.6), "top-label"),
}


def study(draw, reduction, n, runs):
    """Coverage, truth, bias and spread per metric."""
    keys = [key for key in METRICS.keys() if key not in LEFT_OUT]  # noqa: SIM118 - in its order
    truth = calviz.evaluate(draw(TRUTH_ROWS, np.random.default_rng(99)), keys, reduction=reduction)
    inside = {key: [] for key in keys}
    values = {key: [] for key in keys}
    for run in range(runs):
        data = draw(n, np.random.default_rng([run, n]))
        result = calviz.evaluate(
            data, keys, reduction=reduction, ci=True, noise_floor=False, resamples=400, seed=run
        )
        for r in result:
            if r.interval is not None and np.isfinite(truth[r.key].value):
                inside[r.key].append(r.interval.low <= truth[r.key].value <= r.interval.high)
                values[r.key].append(r.value)
    for key in keys:
        if len(values[key]) > runs / 2:
            v = np.array(values[key])
            spread = v.std()
            bias = (v.mean() - truth[key].value) / spread if spread > 0 else np.nan
            yield key, np.mean(inside[key]), truth[key].value, v.mean(), bias


def uniform(n, runs):
    """Share of p-values of calibrated models at most 0.05 and 0.5."""
    draw = multiclass(1.0)
    found: dict[str, list[float]] = {}
    for run in range(runs):
        data = draw(n, np.random.default_rng([run, n, 1]))
        for r in calviz.evaluate(data, noise_floor=True, resamples=199, seed=run):
            if r.noise_floor is not None:
                found.setdefault(r.key, []).append(r.noise_floor.p_value)
    for key, p in found.items():
        yield key, np.mean(np.array(p) <= 0.05), np.mean(np.array(p) <= 0.5), len(p)


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
    print(machine(), end="\n\n")
    print(
        f"{runs} samples each; one standard error of a coverage of 95 % is "
        f"{np.sqrt(0.95 * 0.05 / runs):.1%}.\n"
    )
    for name, (draw, reduction) in CASES.items():
        for n in SIZES:
            print(f"## {name}, n = {n:,}, 95 % intervals\n")
            print("| metric | coverage | truth | mean estimate | bias (sd) | |")
            print("| --- | --- | --- | --- | --- | --- |")
            for key, coverage, truth, mean, bias in study(draw, reduction, n, runs):
                slack = 2 * np.sqrt(0.95 * 0.05 / runs)
                if 0.93 - slack <= coverage <= 0.97 + slack:
                    verdict = "fine"
                else:
                    verdict = "biased" if abs(bias) > 0.3 else "off"
                cells = f"{coverage:.1%} | {truth:.4g} | {mean:.4g} | {bias:+.2f} | {verdict}"
                print(f"| {key} | {cells} |")
            print()
    for n in SIZES:
        print(f"## Noise-floor p-values of a calibrated model, n = {n:,}\n")
        print("| metric | share <= 0.05 | share <= 0.5 | samples |")
        print("| --- | --- | --- | --- |")
        for key, small, half, count in uniform(n, runs):
            print(f"| {key} | {small:.1%} | {half:.1%} | {count} |")
        print()


if __name__ == "__main__":
    main()
