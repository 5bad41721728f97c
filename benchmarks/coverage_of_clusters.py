"""Measure how often intervals of clustered rows cover the truth, from 3 clusters on.

    python benchmarks/coverage_of_clusters.py [--minutes 15] [--jobs 1] [--samples FILE] [--write]

The marginal distribution of the rows is that of two cases of `coverage.py`, with their known truth. Rows of a cluster share a fifth of the
variance of the predictor, and of the latent normal variable that decides the label.
"""

from __future__ import annotations

import numpy as np
from _harness import machine, run_study, write_section
from coverage import RESAMPLES, truth_of
from scipy.special import expit, ndtr

import calviz
from calviz.core.predictions import Predictions

CLUSTERS = (3, 5, 8, 12, 20, 40)
ROWS_PER_CLUSTER = 10
SHARED = 0.2
BETAS = {"calibrated": (0.0, -2.0), "appendix E, case 1": (0.5, -1.5)}
#: An interval that is always the half-inverted one, one that is so for clustered rows, and the others.
KEYS = ("ks", "ece", "brier", "nll", "accuracy", "auroc", "mcs", "calibration_slope")


def draw(case, clusters, rng):
    """Rows of the case, in clusters of equal size."""
    of = np.repeat(np.arange(clusters), ROWS_PER_CLUSTER)

    def normal():
        common, own = rng.standard_normal(clusters)[of], rng.standard_normal(of.size)
        return np.sqrt(SHARED) * common + np.sqrt(1 - SHARED) * own

    x = np.where(rng.random(of.size) < 0.5, -1.0, 1.0) + normal()
    beta0, beta1 = BETAS[case]
    return Predictions(
        probs=expit(beta0 + beta1 * x), labels=ndtr(normal()) < expit(-2 * x), clusters=of
    )


def draw_turn(turn):
    """Draw a sample of each case and number of clusters."""
    for case in BETAS:
        for clusters in CLUSTERS:
            rng = np.random.default_rng([turn, clusters, list(BETAS).index(case)])
            results = calviz.evaluate(
                draw(case, clusters, rng),
                KEYS,
                reduction="positive",
                ci=True,
                noise_floor=True,
                resamples=RESAMPLES,
                seed=turn,
            )
            row = {
                r.key: (*r.interval, r.noise_floor.p_value if r.noise_floor else None)
                for r in results
                if r.interval
            }
            yield case, clusters, row


def covered(rows, key, truth):
    """Share of the intervals that contain the truth, with the share of samples that have one."""
    ends = np.array([row[key][:2] for row in rows if key in row])
    if not len(ends):
        return "–"
    share = np.mean((ends[:, 0] <= truth + 1e-12) & (truth - 1e-12 <= ends[:, 1]))
    missing = 1 - len(ends) / len(rows)
    note = f" ({100 * missing:.0f} % have none)" if missing >= 0.005 else ""
    return f"{100 * share:.1f} %{note}"


def main() -> None:
    rows, write = run_study(__doc__, draw_turn, minutes=15)
    lines = [
        f"`python benchmarks/coverage_of_clusters.py --write` on {machine()}. Share of the 95 % intervals of {RESAMPLES} resamples that "
        f"contain the truth. Clusters have {ROWS_PER_CLUSTER} rows, which share {100 * SHARED:.0f} % of the variance of predictor and luck. The "
        "standard error of 95 % is 1.0 points with 500 samples. `docs/uncertainty.md` explains.\n"
    ]
    for case in BETAS:
        truth = truth_of(case, lambda _: KEYS)
        lines += [f"### {case}\n", "| clusters | samples | " + " | ".join(KEYS) + " |"]
        lines.append("|" + " --- |" * (len(KEYS) + 2))
        for clusters in CLUSTERS:
            drawn = rows[case, clusters]
            cells = [covered(drawn, key, truth[key]) for key in KEYS]
            lines.append(f"| {clusters} | {len(drawn)} | " + " | ".join(cells) + " |")
        lines.append("")
    text = "\n".join(lines)
    print(text)
    if write:
        write_section("Coverage of clustered rows", text)


if __name__ == "__main__":
    main()
