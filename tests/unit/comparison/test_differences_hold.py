"""What is concluded from a comparison, on data of which the truth is known; `benchmarks/differences.py` has the study."""

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import binom, norm

from calviz.comparison.difference_intervals import (
    Spread,
    Z,
    _without_noise,
    critical,
    difference,
    from_single_intervals,
)
from calviz.comparison.paired_differences import pair
from calviz.core.entry_specs import Interval
from calviz.core.predictions import Predictions
from calviz.verdicts.analysis import evaluate
from tests.inputs.simulated import draw_labels

K, SPREAD = 5, 0.6
ERRORS = ("ece", "ks", "kde_ece", "smece", "classwise_ece", "brier_miscalibration", "ece_debiased")


def truth(n, rng):
    """True probabilities (n, K), and labels drawn from them."""
    q = rng.dirichlet(np.full(K, SPREAD), n)
    return q, draw_labels(q, rng)


def compared(sets, labels, keys, rng):
    data = {k: Predictions(probs=p, labels=labels) for k, p in sets.items()}
    return pair(data, keys, reduction="top-label", resamples=250, rng=rng)


@pytest.mark.slow
def test_two_calibrated_models_are_not_called_different():
    # Sharp and constant: noise lifts the errors of the sharp one much more. Each metric in at most 5 % of samples.
    runs, rng = 20, np.random.default_rng(0)
    false = dict.fromkeys(ERRORS, 0)
    for _ in range(runs):
        q, y = truth(500, rng)
        result = compared({"sharp": q, "constant": np.full_like(q, 1 / K)}, y, ERRORS, rng)
        for key in ERRORS:
            false[key] += not result.metrics[key].difference("sharp", "constant").tied
    # With a probability of 5 % each, more than this many have one of 1 in 1,000.
    assert max(false.values()) <= binom.ppf(0.999, runs, 0.05), false


@pytest.mark.slow
def test_a_difference_is_covered_declared_and_hardly_biased():
    # Logits x 1.5 against the true probabilities, which have no error at all.
    runs, rng = 40, np.random.default_rng(1)
    keys = ("ece", "ks", "smece", "classwise_ece")
    q, _ = truth(400_000, rng)
    p = softmax(1.5 * np.log(q + 1e-300), axis=1)
    rows, top = np.arange(len(q)), p.argmax(axis=1)
    # Every confidence is too high, so that all errors of the top label are the mean excess; class-wise in 15 bins.
    excess = float((p[rows, top] - q[rows, top]).mean())
    cell = np.ceil(p * 15).astype(int).clip(1, 15) + 15 * np.arange(K)
    gaps = np.bincount(cell.ravel(), (p - q).ravel())
    true = dict.fromkeys(keys, excess) | {"classwise_ece": np.abs(gaps).sum() / len(q) / K}
    covered, declared = dict.fromkeys(keys, 0), dict.fromkeys(keys, 0)
    shown = {key: [] for key in keys}
    for _ in range(runs):
        q, y = truth(500, rng)
        sharp = softmax(1.5 * np.log(q + 1e-300), axis=1)
        result = compared({"sharp": sharp, "true": q}, y, keys, rng)
        for key in keys:
            d = result.metrics[key].difference("sharp", "true")
            covered[key] += d.interval.low <= true[key] <= d.interval.high
            declared[key] += d.verdict == "worse"
            shown[key].append(d.value)
    for key in keys:
        assert covered[key] >= binom.ppf(0.001, runs, 0.95), (key, covered[key])
        assert declared[key] >= 0.6 * runs, (key, declared[key])
        error = np.std(shown[key]) / np.sqrt(runs)
        assert abs(np.mean(shown[key]) - true[key]) < 0.12 * true[key] + 3 * error, key


@pytest.mark.slow
def test_none_of_eight_equal_models_is_called_worse():
    runs, rng = 20, np.random.default_rng(2)
    keys = ("nll", "ece", "ks")
    worse = dict.fromkeys(keys, 0)
    for _ in range(runs):
        q, y = truth(500, rng)
        logs = np.log(q + 1e-300)
        sets = {f"{i}": softmax(logs + 0.6 * rng.standard_normal(q.shape), 1) for i in range(8)}
        result = compared(sets, y, keys, rng)
        for key in keys:
            one = result.metrics[key]
            worse[key] += len(one.tied_with_best(one.values)) < 8
    assert max(worse.values()) <= binom.ppf(0.999, runs, 0.05), worse


def test_far_from_zero_the_interval_is_that_of_two_normal_numbers():
    # Errors that are large and move with their noise alone: the usual interval of a difference.
    rng = np.random.default_rng(3)
    scales = np.array([0.0, 0.3, 0.65, 1.0, 1.4])
    noise = rng.normal(size=(2, 20_000)) * [[0.01], [0.02]]
    noise[1] += noise[0]  # paired: the difference has a standard deviation of 0.02
    spreads = [
        Spread.of(v, v * scales, v * scales[:, None] + e)
        for v, e in zip((0.50, 0.30), noise, strict=True)
    ]
    low, high = difference(*spreads, z=1.96)
    # The middle 95 % of a normal distribution, to the distance of the points between the scales.
    np.testing.assert_allclose([low, high], 0.2 + np.array([-1, 1]) * 1.96 * 0.02, atol=0.012)
    assert spreads[0].estimate == pytest.approx(0.5, abs=0.01)


def test_one_of_many_comparisons_asks_more_than_a_single_one():
    # Bins of equal models whose gaps are a little more than their noise: sums of absolute normal numbers.
    rng = np.random.default_rng(4)
    scales = np.array([0.0, 0.3, 0.65, 1.0, 1.4, 2.0])
    longer = 0
    for _ in range(40):
        spreads = []
        for gaps in 0.01 + 0.007 * rng.normal(size=(2, 15)):
            noise = 0.007 * rng.normal(size=(250, 15))
            drawn = np.abs(scales[:, None, None] * gaps + noise).sum(axis=-1)
            seen = float(np.abs(gaps).sum())
            spreads.append(Spread.of(seen, seen * scales, drawn))
        one, other = spreads
        single, family = difference(one, other, z=Z), difference(one, other, z=3.0)
        # What is not declared alone is not declared among many, and what the two values show is held.
        assert family.low <= single.low < single.high <= family.high
        values, sd = one.value - other.value, float(np.std(one.draws - other.draws, ddof=1))
        assert family.low <= values - 3 * sd < values + 3 * sd <= family.high
        # A family of many asks more than one of two.
        longer += difference(one, other, z=2.5).high < family.high
    assert longer == 40


def spread(value, off):
    """An error seen, whose simulated populations at five scales from 0 to 1 show the truth and `off`, shape (5, B)."""
    truth = np.linspace(0, 1, 41)
    at = int(np.abs(truth - value).argmin())
    sd = np.interp(np.arange(41) / 10, np.arange(5), off.std(axis=1, ddof=1))
    return Spread(value, truth, truth, sd, off, at, truth[at], truth[at] + off[at // 10])


def exact(shape):
    """An error that is 0 and has no noise."""
    none, still = np.zeros(41), np.zeros(shape)
    return Spread(0.0, none, none, none, still, 0, 0.0, still[0])


@pytest.mark.parametrize(
    ("quantile", "wanted"),
    [
        # Density 2 x: mean 2/3; the quantiles are 0.4 sqrt(0.025) = 0.063 and 0.4 sqrt(0.975) = 0.395, around 0.267.
        (lambda q: 0.4 * np.sqrt(q), (0.25 - 0.128, 0.25 + 0.203)),
        # Exponential: 0.05 (-log(0.025) - 1) = 0.134 would be the upper one, but 2.3 standard deviations are 0.115.
        (lambda q: -0.05 * np.log1p(-q), (0.25 - 0.115, 0.25 + 0.049)),
    ],
)
def test_the_populations_that_are_accepted_by_hand(quantile, wanted):
    # Noise at the first three scales, and none where gaps are as seen, so that nothing else holds the interval open.
    drawn = quantile((np.arange(9_999) + 0.5) / 9_999)
    off = np.zeros((5, drawn.size))
    off[:3] = drawn - drawn.mean()
    one = spread(0.25, off)
    low, high = difference(one, exact(off.shape), z=Z)
    # Accepted is t where 0.25 - t is between the quantiles; the truths are 0.025 apart.
    assert wanted[0] - 0.001 <= low < wanted[0] + 0.026
    assert wanted[1] - 0.026 < high <= wanted[1] + 0.001
    # The other way round it is the same interval with its sign turned.
    assert difference(exact(off.shape), one, z=Z) == pytest.approx((-high, -low))


@pytest.mark.parametrize("z", [Z, 3.0])
def test_the_two_values_and_their_paired_noise_by_hand(z):
    # Truths that are 0 in every simulated population: what is left is the difference of the values, z standard deviations to both sides.
    rng = np.random.default_rng(5)
    common, own = rng.normal(size=(2, 5, 400))
    spreads = []
    for value, noise in ((0.10, common), (0.07, common + 0.1 * own)):
        result = spread(value, 0.05 * noise)
        none = np.zeros(41)
        spreads.append(Spread(value, none, none, result.sd, result.off, 0, 0.0, result.draws))
    low, high = difference(*spreads, z=z)
    # Scale 1 is the fourth; the part that both share cancels.
    sd = float(np.std(0.05 * 0.1 * own[3], ddof=1))
    np.testing.assert_allclose([low, high], [min(0, 0.03 - z * sd), 0.03 + z * sd], atol=1e-12)


def test_the_estimate_by_hand():
    # Noise that is the same at every scale, and a value in its middle: with no error the value would be as likely as its
    # density says, and 30 % of the weight is there before anything is seen.
    truth, value, sd = np.linspace(0, 1, 2_001), 0.1, 0.05
    slab = norm.cdf((np.array([1.0, 0.0]) - value) / sd) @ [1, -1]
    none = 0.3 * norm.pdf(value / sd) / sd
    share = none / (none + 0.7 * slab)
    # The median of what is left: a normal variable cut off at 0.
    below = norm.cdf(-value / sd) + (0.5 - share) / (1 - share) * slab
    wanted = value + sd * norm.ppf(below)
    result = _without_noise(value, truth, truth, np.full(truth.shape, sd))
    assert result == pytest.approx(wanted, abs=1e-4)
    assert 0.05 < wanted < 0.1


def test_two_comparisons_are_a_family():
    # Two sets against a third: Dunnett's (1964) two-sided value for two treatments and infinite degrees of freedom is 2.21.
    rng = np.random.default_rng(6)
    draws = dict(zip("abc", rng.normal(size=(3, 40_000)), strict=True))
    pairs = (("a", "b"), ("a", "c"))
    assert critical(draws, pairs) == pytest.approx(2.21, rel=0.015)
    assert critical(draws, pairs[:1]) == Z


def test_errors_that_are_nothing_but_rounding_have_an_estimate():
    # Of a constant probability that is the frequency: true errors stand still between the scales.
    truth = 1e-16 * np.repeat([0.0, 1.0], 4)
    shown, sd = 1e-15 + 3 * truth, 1e-47 * np.arange(8, 0, -1)
    assert 0 <= _without_noise(7e-16, truth, shown, sd) <= truth[-1]


def test_an_interval_from_two_single_ones_against_published_numbers():
    # Newcombe 1998 (Statistics in Medicine 17, 873-890), table II, method 10: 56/70 - 48/80.
    def wilson(hits, n):
        p, z = hits / n, norm.ppf(0.975)
        middle = (p + z**2 / (2 * n)) / (1 + z**2 / n)
        half = z / (1 + z**2 / n) * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
        return Interval(middle - half, middle + half)

    single = wilson(56, 70), wilson(48, 80)
    found = from_single_intervals((0.8, 0.6), single, 0.0)
    assert found == pytest.approx((0.0524, 0.3339), abs=5e-5)
    # Symmetric single intervals: the variance of a difference.
    for r in (-0.5, 0.3, 0.9):
        low, high = from_single_intervals((1.0, 3.0), (Interval(0, 2), Interval(1, 5)), r)
        half = np.sqrt(1 + 4 - 2 * r * 1 * 2)
        assert (low, high) == pytest.approx((-2 - half, -2 + half))
    # The same error in both: no difference, however asymmetric the intervals are.
    same = Interval(0.4, 0.7)
    assert from_single_intervals((0.6, 0.6), (same, same), 1.0) == (0, 0)


@pytest.mark.slow
def test_a_difference_of_areas_of_few_events_covers_the_truth():
    # Areas of 99 and 95 % by Phi(d / sqrt(2)), of scores that correlate; percentiles covered 79 to 88 %.
    runs, n, events, resamples = 120, 150, 15, 60
    shift = np.sqrt(2) * norm.ppf([0.99, 0.95])
    rng = np.random.default_rng(0)
    hit = (np.arange(n) < events).astype(int)
    covered, percentiles = 0, 0
    for _ in range(runs):
        common = rng.normal(size=n)
        z = [0.77 * common + 0.63 * rng.normal(size=n) + s * hit for s in shift]
        sets = {
            k: Predictions(probs=norm.cdf(v / 4), labels=hit) for k, v in zip("ab", z, strict=True)
        }
        paired = pair(sets, ["auroc"], reduction="positive", resamples=resamples, rng=rng)
        low, high = paired.metrics["auroc"].difference("a", "b").interval
        covered += low <= 0.04 <= high
        drawn = paired.metrics["auroc"].drawn
        low, high = np.quantile(drawn["a"] - drawn["b"], [0.025, 0.975])
        percentiles += low <= 0.04 <= high
        # The verdict is that of an interval of the same kind, and a negative error of the badness.
        d = paired.metrics["auroc"].difference("a", "b", (("a", "b"), ("b", "a")))
        assert d.adjusted.low <= d.interval.low + 1e-12
        assert d.adjusted.high >= d.interval.high - 1e-12
    assert covered > 0.93 * runs > percentiles


def test_areas_of_the_same_order_do_not_differ():
    rng = np.random.default_rng(1)
    hit = (np.arange(300) < 20).astype(int)
    p = norm.cdf(rng.normal(size=300) + hit)
    sets = {"none": Predictions(probs=p, labels=hit), "map": Predictions(probs=p**3, labels=hit)}
    d = (
        pair(sets, ["auroc"], reduction="positive", resamples=50, rng=rng)
        .metrics["auroc"]
        .difference("none", "map")
    )
    assert (d.value, d.interval, d.tied) == (0, (0, 0), True)


def test_two_models_that_separate_all_rows_may_still_differ():
    rng = np.random.default_rng(0)
    hit = (np.arange(60) < 20).astype(int)
    sets = {k: Predictions(probs=0.6 * hit + 0.3 * rng.random(60), labels=hit) for k in "ab"}
    d = (
        pair(sets, ["auroc"], reduction="positive", resamples=50, rng=rng)
        .metrics["auroc"]
        .difference("a", "b")
    )
    # Areas of 1 have intervals of a width, and resamples do not tell how far their errors are common.
    low = evaluate(sets["a"], ["auroc"], reduction="positive", ci=True)["auroc"].interval.low
    assert d.interval == pytest.approx((low - 1, 1 - low))


@pytest.mark.parametrize("events", [2, 5])
def test_areas_of_very_few_events_have_a_difference(events):
    # 1 resample of 150 has none of 5 events, 1 of 7 none of 2. The correlation is that in the others.
    n, rng = 150, np.random.default_rng(0)
    hit = (np.arange(n) < events).astype(int)
    common = rng.normal(size=n)
    sets = {
        k: Predictions(probs=norm.cdf((common + rng.normal(size=n) + s * hit) / 4), labels=hit)
        for k, s in (("a", 3), ("b", 2))
    }
    paired = pair(sets, ["auroc"], reduction="positive", resamples=1_000, rng=rng)
    a, b = paired.metrics["auroc"].drawn.values()
    assert a.size == b.size == pytest.approx(1_000 * (1 - np.exp(-events)), abs=40)
    assert a.size < 1_000
    d, value = paired.metrics["auroc"].difference("a", "b"), paired.metrics["auroc"].values
    single = [
        evaluate(p, ["auroc"], reduction="positive", ci=True)["auroc"].interval
        for p in sets.values()
    ]
    # The share without events is exp(-m) for m events, whose correlation counts 1 - 1 / m.
    r = np.corrcoef(a, b)[0, 1] * (1 + 1 / np.log(1 - a.size / 1_000))
    wanted = from_single_intervals((value["a"], value["b"]), single, r)
    assert d.interval == pytest.approx(wanted)
