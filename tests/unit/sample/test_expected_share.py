"""The share of hits that is expected in the bin with the largest gap."""

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import expit, logit

from benchmarks.claims import SIMULATIONS, every_simulation, too_few
from calviz.core.events import BinaryEvents
from calviz.sample.binning import bin_events, expected_share


def sums_of(score, rows, hits, bins=10):
    """Bins in which all scores are the same."""
    hit = np.concatenate([np.arange(n) < h for n, h in zip(rows, hits, strict=True)])
    return bin_events(BinaryEvents(np.repeat(score, rows), hit), bins=bins)


def test_the_curve_is_that_of_a_general_minimiser_shrunk_by_its_significance():
    score = np.array([0.15, 0.35, 0.55, 0.75, 0.95])
    rows, hits = np.array([200, 150, 100, 150, 200]), np.array([50, 60, 48, 102, 168])
    z = logit(score)

    def loss(t):
        m = z + t[0] + t[1] * z
        return (rows * np.logaddexp(0, m) - hits * m).sum()

    best = optimize.minimize(loss, [0.0, 0.0], tol=1e-10)
    ratio, c = 2 * (loss([0, 0]) - best.fun), stats.chi2.ppf(0.95, 2)
    a, b = best.x * (1 - c / ratio)
    at = 4
    curve = expit(z[at] + a + b * z[at])
    share, interval = expected_share(sums_of(score, rows, hits), at)
    # The bin agrees with the curve: 168 of 200, at 99 %.
    exact = stats.binomtest(168, 200).proportion_ci(0.99)
    assert exact.low < curve < exact.high
    assert share == pytest.approx(curve, abs=1e-5)
    q = expit(z + a + b * z)
    x = np.stack([np.ones(5), z], axis=1)
    variance = x[at] @ np.linalg.inv((x.T * (rows * q * (1 - q))) @ x) @ x[at]
    reach = np.sqrt(c * variance)
    assert interval.low == pytest.approx(min(exact.low, expit(logit(curve) - reach)), abs=1e-5)
    assert interval.high == pytest.approx(max(exact.high, expit(logit(curve) + reach)), abs=1e-5)


def test_a_bin_far_from_the_curve_keeps_most_of_its_gap():
    score, rows = np.linspace(0.05, 0.95, 10), np.full(10, 400)
    hits = np.round(score * rows).astype(int)
    hits[6] = 120  # 30 % instead of 65 %
    share, interval = expected_share(sums_of(score, rows, hits), 6)
    assert 0.30 < share < 0.40
    assert interval.low < 0.30 < interval.high


@pytest.mark.parametrize("hits", [0, 4, 400])
def test_with_few_hits_or_misses_only_the_bin_itself_counts(hits):
    share, interval = expected_share(sums_of([0.75], [400], [hits]), 0)
    exact = stats.binomtest(hits, 400).proportion_ci(0.95)
    assert interval == pytest.approx((exact.low, exact.high), abs=1e-9)
    assert share == pytest.approx(exact.low if hits == 400 else exact.high, abs=1e-9)


def test_one_bin_is_shrunk_too():
    # 280 of 400 where 300 are promised: 2 log-likelihood ratio 5.06, of which 3.84 are not significant.
    share, _ = expected_share(sums_of([0.75], [400], [280]), 0)
    ratio = 2 * (280 * np.log(0.7 / 0.75) + 120 * np.log(0.3 / 0.25))
    factor = 1 - stats.chi2.ppf(0.95, 1) / ratio
    assert share == pytest.approx(
        expit(logit(0.75) + factor * (logit(0.7) - logit(0.75))), abs=1e-5
    )


@pytest.mark.slow
def test_it_is_nearer_the_truth_than_the_score_and_its_interval_holds():
    every_simulation()
    case = "logits x 1.5, 2 classes, 500 rows"
    near, holds = (
        SIMULATIONS[f"worst-bin: {measures}, {case}"].outcomes(25, seed=3)
        for measures in (
            "expected share nearer the truth than the score",
            "interval holds the truth",
        )
    )
    assert np.mean(near) >= 0.8
    assert np.mean(holds) >= too_few(0.95, len(holds))
