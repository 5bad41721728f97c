"""Histogram binning, BBQ, scaling-binning."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betaln, gammaln

from calviz.core.probabilities import Scores
from calviz.recalibrators.composition import ScalingBinning
from calviz.recalibrators.histogram import (
    BayesianBinning,
    HistogramBinning,
    _Bins,
    averaged_binnings,
    bin_counts,
    binned_by_class,
    log_rising,
)
from calviz.recalibrators.maps import (
    DamagedField,
    Piecewise,
    ProbabilityMap,
    halfway,
    steps_merged,
    thinned,
)
from calviz.recalibrators.platt_scaling import PlattScaling
from tests.inputs.simulated import simulate, softmax


def two(p):
    return np.stack([1 - p, p], axis=1)


def test_equal_width_by_hand():
    p = np.array([0.0, 0.1, 0.2, 0.25, 0.5, 0.6, 0.9, 1.0])
    y = np.array([0, 1, 0, 0, 1, 1, 1, 1])
    fitted = HistogramBinning(bins=4).fit(two(p), y)
    # (0, 1/4]: 1 of 4; (1/4, 1/2]: 1 of 1; (1/2, 3/4]: 1 of 1; (3/4, 1]: 2 of 2.
    new = np.array([0.0, 0.25, 0.2500001, 0.7, 1.0])
    shares = [1 / 4, 1 / 4, 1, 1, 1]
    plain = HistogramBinning(bins=4, cap=False).fit(two(p), y)
    np.testing.assert_allclose(plain.transform(two(new))[:, 1], shares, atol=1e-8)
    # One row supports 1 - 1/4, two 1 - 1/6.
    capped = [1 / 4, 1 / 4, 3 / 4, 3 / 4, 5 / 6]
    np.testing.assert_allclose(fitted.transform(two(new))[:, 1], capped, atol=1e-8)


def test_empty_bins_keep_their_centre():
    p, y = np.array([0.1, 0.1, 0.9, 0.9]), np.array([0, 1, 0, 1])
    fitted = HistogramBinning(bins=5).fit(two(p), y)
    np.testing.assert_allclose(
        fitted.transform(two(np.array([0.3, 0.5, 0.7])))[:, 1], [0.3, 0.5, 0.7]
    )


def test_equal_mass_by_hand_with_ties_together():
    p = np.array([0.1, 0.2, 0.2, 0.2, 0.6, 0.8])
    y = np.array([0, 1, 0, 0, 1, 1])
    fitted = HistogramBinning(bins=3, scheme="equal-mass").fit(two(p), y)
    # Cuts after 2 and 4 rows, the first one moved to the end of the ties: {0.1, 0.2 x 3} and {0.6, 0.8}.
    np.testing.assert_allclose(
        fitted.transform(two(np.array([0.05, 0.39, 0.41])))[:, 1], [0.25, 0.25, 5 / 6], atol=1e-8
    )
    plain = HistogramBinning(bins=3, scheme="equal-mass", cap=False).fit(two(p), y)
    np.testing.assert_allclose(plain.transform(two(np.array([0.41])))[:, 1], [1], atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bins", [1, 4, 15])
def test_the_sparse_count_is_the_plain_count(dtype, bins):
    z, y = simulate(500, 7)
    p = softmax(z).astype(dtype)
    p[:20] = np.eye(7)[y[:20]]
    rows, hits = binned_by_class(Scores(p, "probabilities", "probabilities"), y, bins)
    edges = (np.arange(1, bins) / bins).astype(dtype)
    for k in range(7):
        place = np.searchsorted(edges, p[:, k])
        np.testing.assert_array_equal(rows[k], np.bincount(place, minlength=bins))
        np.testing.assert_array_equal(hits[k], np.bincount(place[y == k], minlength=bins))


def brute_force(score, hit, new):
    """BBQ as it is defined: every binning, every bin, one after the other."""
    order = np.argsort(score, kind="stable")
    score, hit = score[order], hit[order]
    n = score.size
    evidence, rates = [], []
    for bins in bin_counts(n):
        groups, seen = [], 0
        for part in np.array_split(np.arange(n), bins):
            if part.size == 0 or part[-1] < seen:
                continue
            end = np.searchsorted(score, score[part[-1]], side="right")
            if end > seen:
                groups.append((seen, end))
                seen = end
        total, value = 0.0, np.empty(new.size)
        for start, end in groups:
            left = 0.0 if start == 0 else (score[start - 1] + score[start]) / 2
            right = 1.0 if end == n else (score[end - 1] + score[end]) / 2
            prior = 2 / len(groups)
            a, b = prior * (left + right) / 2, prior * (1 - (left + right) / 2)
            won, rows = hit[start:end].sum(), end - start
            total += betaln(won + a, rows - won + b) - betaln(a, b)
            value[(new > left) | (start == 0)] = (won + a) / (rows + prior)
        evidence.append(total)
        rates.append(value)
    weight = np.exp(np.array(evidence) - max(evidence))
    return weight @ np.array(rates) / weight.sum()


@pytest.mark.parametrize("decimals", [None, 1])
@pytest.mark.parametrize("n", [12, 60, 300])
def test_bbq_is_its_definition(decimals, n):
    rng = np.random.default_rng(n)
    score = rng.random(n)
    if decimals:
        score = score.round(decimals)
    hit = rng.random(n) < score**2
    ordered = np.sort(score)
    ends = np.searchsorted(ordered, score[hit], side="right")
    hits = np.cumsum(np.bincount(ends, minlength=n + 1))
    new = rng.random(200)
    result = averaged_binnings(ordered, hits, np.arange(ordered.size + 1.0))(new)
    np.testing.assert_allclose(result, brute_force(score, hit, new), atol=1e-9)


def evidence_by_integration(score, hit, w, bins):
    """Log marginal likelihood of one binning into equal weights, every bin's rate integrated out."""
    upto = np.cumsum(w)
    last = [int(np.searchsorted(upto, upto[-1] * m / bins * (1 - 1e-12))) for m in range(1, bins + 1)]  # fmt: skip
    ends = sorted({end + 1 for end in last})
    total, start, left = 0.0, 0, 0.0
    for end in ends:
        right = 1.0 if end == score.size else (score[end - 1] + score[end]) / 2
        a, b = (2 / len(ends) * share for share in ((left + right) / 2, 1 - (left + right) / 2))
        won, lost = (w[start:end] @ own[start:end] for own in (hit, 1 - hit))

        def density(rate, powers=(won + a - 1, lost + b - 1)):
            return rate ** powers[0] * (1 - rate) ** powers[1]

        # Its ends are steep: by halves.
        whole = sum(quad(density, *half, limit=200)[0] for half in ((0, 0.5), (0.5, 1)))
        total += np.log(whole) - betaln(a, b)
        start, left = end, right
    return total


def test_the_evidence_of_weighted_rows_is_an_integral():
    rng = np.random.default_rng(4)
    score, w = np.sort(rng.random(40)), rng.uniform(0.5, 2, 40)
    hit = (rng.random(40) < score).astype(float)
    # A whole number of rows, so that equal weights are cut as rows are.
    w *= 40 / w.sum()
    below, hits = (np.append(0, np.cumsum(v)) for v in (w, w * hit))
    for bins in (1, 4):
        evidence = _Bins.of(score, hits, np.array([bins]), below).evidence()
        assert evidence[0] == pytest.approx(evidence_by_integration(score, hit, w, bins), abs=1e-6)


@pytest.mark.parametrize("decimals", [None, 1])
def test_rows_that_count_as_several_are_as_many_rows(decimals):
    rng = np.random.default_rng(5)
    score = np.sort(rng.random(80).round(decimals) if decimals else rng.random(80))
    hit, counts = rng.random(80) < score**2, rng.integers(1, 4, 80)
    new = rng.random(200)
    below, hits = (np.append(0, np.cumsum(v)) for v in (counts, counts * hit))
    result = averaged_binnings(score, hits.astype(float), below.astype(float))(new)
    wanted = brute_force(np.repeat(score, counts), np.repeat(hit, counts), new)
    # Cuts half-way between copies and the next row are cuts half-way between the rows.
    np.testing.assert_allclose(result, wanted, atol=1e-9)


def test_bbq_takes_unequal_weights_as_fewer_rows():
    rng = np.random.default_rng(6)
    p, w = rng.random(300), rng.exponential(size=300)
    y = (rng.random(300) < p).astype(int)
    order, effective = np.argsort(p), w.sum() ** 2 / (w @ w)
    own = w[order] * effective / w.sum()
    below, hits = (np.append(0, np.cumsum(v)) for v in (own, own * y[order]))
    fitted = BayesianBinning().fit(two(p), y, sample_weight=w)
    np.testing.assert_allclose(fitted.curve(p), averaged_binnings(p[order], hits, below)(p))


def test_log_rising_is_the_quotient_of_gamma_functions():
    rng = np.random.default_rng(0)
    a = np.concatenate([10 ** rng.uniform(-9, 0.3, size=2_000), [1e-12, 1.0, 2.0]])
    m = rng.integers(0, 10 ** rng.uniform(0, 7, size=a.size))
    # The difference of two gammaln has their rounding.
    wanted = gammaln(a + m) - gammaln(a)
    np.testing.assert_allclose(log_rising(a, m), wanted, rtol=1e-13, atol=1e-11)
    # A product, exactly.
    np.testing.assert_allclose(
        log_rising(np.array([0.25]), np.array([3])), np.log(0.25 * 1.25 * 2.25)
    )


def test_bbq_finds_the_true_rate():
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    y = (rng.random(20_000) < np.where(p > 0.5, 0.8, 0.3)).astype(int)
    out = BayesianBinning().fit(two(p), y).transform(two(np.array([0.1, 0.4, 0.6, 0.9])))[:, 1]
    np.testing.assert_allclose(out, [0.3, 0.3, 0.8, 0.8], atol=0.03)


def test_scaling_binning_holds_the_means_of_the_scaled_scores():
    z, y = simulate(1_000, 2, temperature=2)
    p = softmax(z)
    scaled = PlattScaling().fit(p, y).transform(p)[:, 1]
    result = ScalingBinning(bins=10).fit(p, y).transform(p)[:, 1]
    assert np.unique(result.round(12)).size == 10
    for part in np.array_split(np.argsort(scaled), 10):
        np.testing.assert_allclose(result[part], scaled[part].mean(), atol=1e-8)


def test_pieces():
    steps = steps_merged(np.array([0.2, 0.5, 0.7]), np.array([1.0, 1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(steps.x, [0.5, 0.7])
    np.testing.assert_array_equal(steps(np.array([0.1, 0.5, 0.51, 0.7, 0.8])), [1, 1, 2, 2, 3])
    ordered = np.array([0.1, 0.2, 0.2, 0.6])
    np.testing.assert_allclose(halfway(ordered, np.array([0.2])), [0.4])
    x = np.linspace(0, 1, 2_000)
    line = thinned(x, np.sin(6 * x), 1e-4)
    assert line.x.size < 300
    np.testing.assert_allclose(line(x), np.sin(6 * x), atol=1e-4)
    with pytest.raises(DamagedField, match="fit together"):
        ProbabilityMap().read({"x": [1, 2], "y": [1]}, {})


@pytest.mark.parametrize("steps", [False, True])
def test_many_scores_by_table_are_as_one_by_one(steps, monkeypatch):
    rng = np.random.default_rng(0)
    x = np.unique(np.concatenate([rng.random(50), 10.0 ** -rng.uniform(1, 40, 50), [0.5]]))
    y = np.sort(rng.random(x.size + steps))
    y[1] = y[0]
    result = Piecewise(x, y)
    score = np.concatenate(
        [rng.random(70_000), 10.0 ** -rng.uniform(0, 44, 70_000), [0, 1, 0.5, -1e-7, 1 + 1e-6], x]
    ).astype(np.float32)
    by_table = result(score)
    monkeypatch.setattr("calviz.recalibrators.maps._MANY", 10**9)
    skipping = result(score)
    monkeypatch.setattr("calviz.recalibrators.maps._SOME", 10**9)
    np.testing.assert_array_equal(skipping, result(score))
    np.testing.assert_allclose(by_table, result(score), atol=1e-9)
