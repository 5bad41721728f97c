"""Draws and error bars."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import calviz
from calviz.core.blocks import watching
from calviz.core.entry_specs import Interval, IntervalMethod, NoiseFloor
from calviz.core.errors import NotAvailable
from calviz.core.events import BinaryEvents
from calviz.core.predictions import ConfidencePredictions, Predictions
from calviz.figures.class_bars import ClassBars
from calviz.metrics.binned import ece, mce, mcs
from calviz.sample import binning
from calviz.sample import draws as redrawn_rows_and_labels
from calviz.sample.binning import bin_events
from calviz.sample.draws import Redraws, random_rows, redrawn_labels, resample_cells, row_counts
from calviz.sample.error_bars import interval, noise_floor, p_value, stream, usable
from calviz.sample.losses import MeanLoss, RandomLabels, negative_log_likelihood, squared_error
from calviz.sample.sample import Sample

# ---- Rows and labels drawn at random have the distribution that they should have


@pytest.mark.parametrize("k", [2, 5, 60, 300])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_labels_follow_the_probabilities(k, dtype):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.full(k, 0.5), size=7).astype(dtype)
    probs[0] = 0
    probs[0, k // 2] = 1  # certain
    probs[1] = 0
    probs[1, [0, -1]] = 0.25, 0.75  # no mass between
    redrawn_rows_and_labels = 6000
    labels = redrawn_labels(probs, rng, redrawn_rows_and_labels)
    assert labels.shape == (redrawn_rows_and_labels, 7)
    exact = probs.astype(float) / probs.sum(axis=1, dtype=float, keepdims=True)
    for row, p in zip(labels.T, exact, strict=True):
        count = np.bincount(row, minlength=k)
        assert count.size == k
        assert not count[p == 0].any()
        expected = redrawn_rows_and_labels * p
        large = expected > 5
        if large.sum() > 1:
            seen = np.append(count[large], count[~large].sum()) + 1e-9
            mean = np.append(expected[large], expected[~large].sum()) + 1e-9
            assert stats.chisquare(seen, mean * seen.sum() / mean.sum()).pvalue > 1e-5


def test_labels_of_different_rows_and_draws_are_independent():
    probs = np.full((400, 3), 1 / 3)
    labels = redrawn_labels(probs, np.random.default_rng(1), 400).astype(float)
    for a, b in ((labels[:, :-1], labels[:, 1:]), (labels[:-1], labels[1:])):
        assert abs(np.corrcoef(a.ravel(), b.ravel())[0, 1]) < 0.015


@pytest.mark.parametrize("n", [1, 3, 1000, (1 << 24) + 1])
def test_random_rows_are_uniform(n):
    rows = random_rows(np.random.default_rng(2), n, 20_000)
    assert rows.min() >= 0
    assert rows.max() < n
    assert stats.kstest((rows + 0.5) / n, "uniform").statistic < 0.5 / n + 0.015


def test_row_counts_are_samples_with_replacement():
    counts = np.concatenate(list(row_counts(np.random.default_rng(3), 200, 3000)))
    np.testing.assert_array_equal(counts.sum(axis=1), 200)
    np.testing.assert_allclose(counts.mean(axis=0), 1, atol=0.1)
    # Binomial(200, 1 / 200).
    expected = stats.binom.pmf(range(5), 200, 1 / 200)
    np.testing.assert_allclose(np.bincount(counts.ravel())[:5] / counts.size, expected, atol=2e-3)


def test_draws_are_shared_and_reproducible():
    rng = np.random.default_rng(4)
    data = Predictions(probs=rng.dirichlet(np.ones(3), 50), labels=rng.integers(0, 3, 50))
    shared = Redraws(data)
    one, two = (list(shared.labels(np.random.default_rng(0), 30)) for _ in range(2))
    assert one[0] is two[0]
    fresh = list(Redraws(data).labels(np.random.default_rng(0), 30))
    np.testing.assert_array_equal(np.concatenate(one), np.concatenate(fresh))
    weights = np.concatenate(list(shared.weights(np.random.default_rng(0), 30)), axis=1)
    assert weights.shape == (50, 30)
    np.testing.assert_array_equal(weights.sum(axis=0), 50)


def test_draws_say_how_far_they_are_and_may_be_stopped(monkeypatch):
    monkeypatch.setattr(redrawn_rows_and_labels, "BLOCK_DRAWS", 1)  # 16 draws at a time
    rng = np.random.default_rng(6)
    data = Predictions(probs=rng.dirichlet(np.ones(3), 20), labels=rng.integers(0, 3, 20))
    messages = []
    with watching(messages.append):
        list(Redraws(data).weights(rng, 40))
        list(Redraws(data).labels(rng, 40))
    messages = [words for words in messages if words]
    assert messages[:3] == [f"resampling the rows: {done} of 40" for done in (0, 16, 32)]
    assert messages[3:] == [f"redrawing the labels: {done} of 40" for done in (0, 16, 32)]


def test_labels_need_the_probabilities():
    data = ConfidencePredictions(confidence=np.array([0.5]), correct=np.array([True]))
    with pytest.raises(NotAvailable, match="probabilities of all classes"):
        list(Redraws(data).labels(np.random.default_rng(0), 3))


# ---- Intervals, noise floors and p-values from drawn values, by hand


PERCENT = np.arange(101.0)  # 0 ... 100: every percentile is itself


def test_the_interval_is_made_of_percentiles():
    assert interval(PERCENT, value=50) == pytest.approx(Interval(2.5, 97.5))
    assert interval(PERCENT, 0.5, value=50) == Interval(25, 75)
    assert interval(PERCENT[::-1], value=50) == interval(PERCENT, value=50)


def test_the_basic_interval_is_mirrored_at_the_value_and_keeps_to_the_bounds():
    assert interval(PERCENT, 0.5, value=40, method="basic") == Interval(5, 55)
    assert interval(PERCENT, 0.5, value=30, method="basic", bounds=(0, 1)) == Interval(0, 30)


def test_the_inverted_interval_by_hand():
    # Quartiles 5 and 15 without any error, 25 and 75 at an error of 40.
    drawn = {"calibrated": PERCENT[:21], "level": 0.5}
    # The upper quartile, 15 + 60 e / 40, reaches 40 at e = 50/3; the lower, 5 + 20 e / 40, at 70.
    assert interval(PERCENT, value=40, method="inverted", **drawn) == pytest.approx((50 / 3, 70))
    # At 45 the lower quartile gets there at 45 * 40 / 20 = 90, but the percentile is 75.
    assert interval(PERCENT, value=45, method="inverted", **drawn).high == 75
    assert interval(PERCENT, value=40, method="half-inverted", **drawn) == pytest.approx(
        (50 / 3, 75)
    )
    # Corrected estimators: the resamples' simulated population has the error 50, their mean.
    unbiased = interval(PERCENT, value=30, method="inverted-unbiased", **drawn)
    assert unbiased == pytest.approx((50 * 15 / 60, 50 * 25 / 20))


def test_what_a_calibrated_model_shows_as_well_may_be_no_error_at_all():
    drawn = {"calibrated": PERCENT[:21], "level": 0.5}
    assert interval(PERCENT, value=15, method="inverted", **drawn).low == 0
    assert interval(PERCENT, value=15.1, method="inverted", **drawn).low > 0
    # Below the lower quartile of a calibrated model, 5, there is no error that explains the value.
    assert interval(PERCENT, value=4, method="inverted", **drawn) == Interval(0, 4)
    assert interval(PERCENT, value=-4, method="inverted-unbiased", **drawn) == Interval(-4, 0)


def test_an_error_with_its_sign_turned_has_the_interval_turned():
    turned = interval(
        -PERCENT, 0.5, value=-40, method="inverted", calibrated=-PERCENT[:21], bounds=(-100, 0)
    )
    assert turned == pytest.approx((-70, -50 / 3))
    assert interval(np.full(10, -0.3), value=-0.3, bounds=(-1, 0)) is None


def test_without_redrawn_labels_it_is_the_basic_interval():
    for calibrated in (None, np.array([np.nan])):
        assert usable("inverted", calibrated) == "basic"
        result = interval(PERCENT, 0.5, value=40, method="inverted", calibrated=calibrated)
        assert result == interval(PERCENT, 0.5, value=40, method="basic")
    assert usable("inverted", PERCENT) == "inverted"
    assert usable("percentile", None) == "percentile"


@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=30),
    st.lists(st.floats(0, 1), min_size=1, max_size=30),
    st.floats(0, 1),
    st.sampled_from(get_args(IntervalMethod)),
)
def test_it_contains_the_value_and_keeps_to_the_bounds(drawn, calibrated, value, method):
    result = interval(
        np.array(drawn), value=value, method=method, calibrated=np.array(calibrated), bounds=(0, 1)
    )
    assert result is None or 0 <= result.low <= value <= result.high <= 1


def test_an_interval_without_width_or_without_values_is_none():
    assert interval(np.full(10, 0.3), value=0.3) is None
    assert interval(np.full(10, np.nan), value=0.3) is None
    assert interval(np.array([]), value=0.3) is None


def test_undefined_draws_are_left_out():
    values = np.append(PERCENT, [np.nan, np.inf])
    assert interval(values, value=50) == pytest.approx(Interval(2.5, 97.5))
    for method in get_args(IntervalMethod):
        assert interval(values, value=50, method=method, calibrated=values) == interval(
            PERCENT, value=50, method=method, calibrated=PERCENT
        )
    assert noise_floor(values, 100) == noise_floor(values[:101], 100)
    assert noise_floor(np.array([np.nan]), 1) is None


def test_the_p_value_counts_the_observed_value_as_one_more_draw():
    drawn = np.array([1.0, 2.0, 3.0, 4.0])
    assert p_value(drawn, 5) == pytest.approx(1 / 5)
    assert p_value(drawn, 4) == pytest.approx(2 / 5)
    assert p_value(drawn, 0) == 1
    # 0.1 + 0.2 is not 0.3, but it is not larger either.
    assert p_value(np.array([0.3]), 0.1 + 0.2) == 1


def test_the_noise_floor_by_hand():
    values = np.arange(21.0)  # mean 10, 95 % quantile 19
    assert noise_floor(values, 18) == NoiseFloor(10, 19, pytest.approx(4 / 22))
    # Two-sided: 18 is as far from 10 as 2 is; 0, 1, 2, 18, 19, 20 are at least as far.
    assert noise_floor(values, 18, "two-sided") == NoiseFloor(10, 19, pytest.approx(7 / 22))
    assert noise_floor(values, 2, "two-sided") == noise_floor(values, 18, "two-sided")
    # Equal-tailed: twice the share of 18, 19 and 20.
    assert noise_floor(values, 18, "equal-tailed") == NoiseFloor(10, 19, pytest.approx(8 / 22))


def test_an_equal_tailed_p_value_of_skewed_draws():
    # Quantiles of an exponential variable: 1 % of it is below 0.01005, but 37 % is as far from its mean of 1.
    values = -np.log1p(-(np.arange(1_000) + 0.5) / 1_000)
    low = noise_floor(values, -np.log(0.99), "equal-tailed")
    assert low.p_value == pytest.approx(0.02, abs=0.003)
    assert noise_floor(values, -np.log(0.01), "equal-tailed").p_value == pytest.approx(
        0.02, abs=0.003
    )
    assert noise_floor(values, np.log(2), "equal-tailed").p_value == 1


def test_the_streams_follow_the_seed_and_the_kind_of_draw():
    first = [
        stream(seed, draw).random()
        for seed in (0, 1)
        for draw in ("bootstrap", "under_calibration")
    ]
    again = [
        stream(seed, draw).random()
        for seed in (0, 1)
        for draw in ("bootstrap", "under_calibration")
    ]
    assert first == again
    assert len(set(first)) == 4


def test_held_out_ends_are_the_further_ones():
    # Redrawn hits: -10 to 0, their mean -5, their 2.5 and 97.5 % at -9.75 and -0.25. Resamples: 2.5 to 97.5.
    redrawn = np.linspace(-10, 0, 101)
    result = interval(PERCENT, value=50, method="held-out", calibrated=redrawn)
    assert result == pytest.approx(Interval(min(50 + 0.25, 2.5 + 5), max(50 + 9.75, 97.5 + 5)))
    # Within noise, where the resamples end below 0.
    near = interval(PERCENT / 100 - 6, value=-5.5, method="held-out", calibrated=redrawn)
    assert near == pytest.approx(Interval(-5.5, -5.5 + 9.75))
    # Far below: 0 is still held.
    assert (
        interval(PERCENT / 100 - 60, value=-59.5, method="held-out", calibrated=redrawn).high == 0
    )


# ---- Resampling of sums against resampling of rows
#
# The tolerances are about four standard errors of what 4,000 draws show; all seeds are fixed.


DRAWS = 4000


def rng():
    return np.random.default_rng(7)


def alike(mine, other, *, quantiles=(0.025, 0.5, 0.975), step=0.0):
    """Whether two sets of draws show the same distribution: mean, sd, quantiles and KS distance.

    A discrete distribution may be off by one of its `step`s in a quantile.
    """
    sd = other.std()
    assert abs(mine.mean() - other.mean()) < 0.08 * sd
    assert mine.std() == pytest.approx(sd, rel=0.06)
    np.testing.assert_allclose(
        np.quantile(mine, quantiles), np.quantile(other, quantiles), atol=0.2 * sd + step
    )
    # Equal up to rounding is equal: many of these distributions are discrete.
    return stats.ks_2samp(np.round(mine, 9), np.round(other, 9), method="asymp").statistic


def events_of(n, shape=(1.0, 1.0), shift=0.0, seed=0):
    generator = np.random.default_rng(seed)
    score = generator.beta(*shape, size=n)
    hit = generator.random(n) < np.clip(score - shift, 0, 1)
    return BinaryEvents(score.astype(np.float32), hit)


def by_bin(events, bins):
    """(n, bins) membership in right-closed bins."""
    return (
        np.ceil(events.score.astype(float) * bins).clip(1)[:, None] == np.arange(1, bins + 1)
    ) * 1.0


def summarise(value, rows, score, hits):
    """The three metrics of (draws, bins) sums, by their definitions."""
    gaps = score - hits
    if value is mcs:
        return gaps.sum(axis=1) / rows.sum(axis=1)
    if value is mce:
        return np.abs(gaps / np.maximum(rows, 1)).max(axis=1)
    return np.abs(gaps).sum(axis=1) / rows.sum(axis=1)


def row_bootstrap(events, value, bins):
    times = np.random.default_rng(1).multinomial(
        events.n, np.full(events.n, 1 / events.n), size=DRAWS
    )
    member = by_bin(events, bins)
    score, hit = events.score[:, None].astype(float), events.hit[:, None]
    return summarise(value, times @ member, times @ (member * score), times @ (member * hit))


def row_calibration(events, value, bins):
    hit = np.random.default_rng(2).random((DRAWS, events.n)) < events.score
    member = by_bin(events, bins)
    score = events.score[:, None].astype(float)
    rows = np.tile(member.sum(axis=0), (DRAWS, 1))
    return summarise(value, rows, (member * score).sum(axis=0), hit @ member)


@pytest.mark.slow
@pytest.mark.parametrize("value", [ece, mcs], ids=["ece", "mcs"])
@pytest.mark.parametrize(("n", "bins"), [(30, 5), (300, 15), (2000, 15), (2000, 1)])
def test_bootstrap_of_sums_is_bootstrap_of_rows(n, bins, value):
    events = events_of(n, shift=0.1)
    mine = value(bin_events(events, bins=bins).bootstrap(rng(), DRAWS))
    assert alike(mine, row_bootstrap(events, value, bins)) < 0.045


@pytest.mark.parametrize(
    ("value", "bins"),
    [(ece, 15), (mce, 15), (ece, 2), (mcs, 1)],
    ids=lambda v: getattr(v, "__name__", str(v)),
)
@pytest.mark.parametrize("shape", [(1, 1), (8, 1), (0.3, 0.3)], ids=["flat", "sure", "both ends"])
@pytest.mark.parametrize("n", [3, 50, 1500])
def test_redrawn_hits_are_those_of_rows(n, shape, value, bins):
    events = events_of(n, shape)
    sums = bin_events(events, bins=bins)
    assert (sums.rows is not None) == (n <= binning.EXACT_BINNING_ROWS)
    mine = value(sums.under_calibration(rng(), DRAWS))
    assert alike(mine, row_calibration(events, value, bins), step=1 / n) < 0.05


@pytest.mark.parametrize("bins", [1, 3, 15])
@pytest.mark.parametrize("shape", [(1, 1), (8, 1), (0.3, 0.3)])
@pytest.mark.parametrize("n", [100, 400])
def test_matched_binomial_is_close_also_for_fewer_rows(n, shape, bins, monkeypatch):
    # What is used for many rows, where few rows make its error largest.
    monkeypatch.setattr(binning, "EXACT_BINNING_ROWS", 0)
    events = events_of(n, shape)
    mine = ece(bin_events(events, bins=bins).under_calibration(rng(), DRAWS))
    assert alike(mine, row_calibration(events, ece, bins), step=1 / n) < 0.06


def test_redrawn_hits_have_the_mean_and_variance_of_the_scores():
    score = np.random.default_rng(0).beta(0.5, 0.5, size=5000)
    sums = bin_events(BinaryEvents(score, score > 2), bins=4)
    hits = sums.under_calibration(rng(), 20_000).hit_sum
    bin_of = np.minimum(np.ceil(score * 4) - 1, 3).astype(int)
    mean = np.bincount(bin_of, score)
    variance = np.bincount(bin_of, score * (1 - score))
    np.testing.assert_allclose(hits.mean(axis=0), mean, atol=0.03 * np.sqrt(variance).max())
    np.testing.assert_allclose(hits.var(axis=0), variance, rtol=0.05)


@pytest.mark.parametrize("score", [0.0, 1.0])
@pytest.mark.parametrize("n", [1, 20, 3000])
def test_certain_scores_have_certain_hits(score, n):
    sums = bin_events(BinaryEvents(np.full(n, score), np.full(n, True)))
    drawn = sums.under_calibration(rng(), 50)
    assert (drawn.hit_sum.sum(axis=-1) == score * n).all()
    assert (ece(drawn) == 0).all()
    assert (drawn.n == n).all()


def test_resampled_sums_keep_the_rows():
    sums = bin_events(events_of(777))
    for drawn in (sums.bootstrap(rng(), 100), sums.under_calibration(rng(), 100)):
        assert (drawn.n == 777).all()
        assert (drawn.hit_sum <= drawn.count).all()
    np.testing.assert_allclose(
        sums.under_calibration(rng(), 3).score_sum, np.tile(sums.score_sum, (3, 1))
    )


def test_the_same_seed_draws_the_same():
    sums = bin_events(events_of(500))
    for how in ("bootstrap", "under_calibration"):
        first, second = (getattr(sums, how)(rng(), 20).cells for _ in range(2))
        np.testing.assert_array_equal(first, second)


def test_empty_cells_stay_empty():
    cells = np.array([[3.0, 0, 2], [0.6, 0, 1.8], [0.12, 0, 1.62]])
    rows, total = resample_cells(rng(), cells, 1000)
    assert (rows[:, 1] == 0).all()
    assert (total[:, 1] == 0).all()
    assert (rows.sum(axis=1) == 5).all()
    # No spread within the cells: totals follow from the rows.
    np.testing.assert_allclose(total, rows * [0.2, 0, 0.9], atol=1e-6)


def predictions(n, k, sharpness, dtype=np.float32, seed=0):
    generator = np.random.default_rng(seed)
    logits = generator.standard_normal((n, k)) * sharpness
    probs = np.exp(logits - logits.max(axis=1, keepdims=True))
    probs /= probs.sum(axis=1, keepdims=True)
    return Predictions(probs=probs.astype(dtype), labels=generator.integers(k, size=n))


LOSSES = pytest.mark.parametrize("make", [negative_log_likelihood, squared_error])


@LOSSES
@pytest.mark.parametrize("n", [50, 800, 3000])
def test_bootstrap_of_losses_is_bootstrap_of_rows(n, make):
    view = make(Sample(predictions(n, 5, 3.0)))
    generator = np.random.default_rng(1)
    rows = np.array([view.losses[generator.integers(n, size=n)].mean() for _ in range(DRAWS)])
    assert alike(view.bootstrap(rng(), DRAWS).mean, rows) < 0.045


@pytest.mark.parametrize("n", [501, 5000])
@pytest.mark.parametrize("worst", [1, 3, 40])
def test_bootstrap_of_a_heavy_tail(n, worst):
    # A few rows, clipped at 708, make nearly all of the mean: their number in a sample is what counts.
    losses = np.random.default_rng(0).exponential(0.1, size=n)
    losses[:worst] = 708.4
    mine = MeanLoss(losses.mean(), lambda: losses).bootstrap(rng(), DRAWS).mean
    generator = np.random.default_rng(1)
    rows = np.array([losses[generator.integers(n, size=n)].mean() for _ in range(DRAWS)])
    assert alike(mine, rows, quantiles=(0.1, 0.5, 0.9)) < 0.045


@LOSSES
@pytest.mark.parametrize(
    ("k", "sharpness"), [(2, 1.0), (2, 4.0), (5, 2.0), (40, 3.0)], ids=lambda v: str(v)
)
@pytest.mark.parametrize("n", [60, 700])
def test_losses_under_calibration_are_those_of_drawn_labels(n, k, sharpness, make):
    data = predictions(n, k, sharpness)
    mine = make(Sample(data)).under_calibration(rng(), DRAWS).mean
    probs = data.probs.astype(float) / data.probs.sum(axis=1, dtype=float, keepdims=True)
    generator = np.random.default_rng(3)
    rows = np.empty((DRAWS, n))
    losses = -np.log(probs) if make is negative_log_likelihood else None
    for i in range(n):
        label = generator.choice(k, size=DRAWS, p=probs[i])
        one = losses[i] if losses is not None else ((probs[i] - np.eye(k)) ** 2).sum(axis=1)
        rows[:, i] = one[label]
    assert alike(mine, rows.mean(axis=1)) < 0.045


@LOSSES
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cumulants_by_definition(make, dtype):
    data = predictions(40, 6, 2.0, dtype)
    labels = make(Sample(data)).random_labels
    p = data.probs.astype(float)
    losses = labels.loss(p)
    mean = (p * losses).sum(axis=1)
    central = losses - mean[:, None]
    expected = [mean.mean(), (p * central**2).sum() / 40**2, (p * central**3).sum() / 40**3]
    np.testing.assert_allclose(labels.cumulants, expected, rtol=2e-5)
    # The losses per class are the losses of rows with that label.
    for c in range(6):
        same = make(Sample(Predictions(probs=data.probs, labels=np.full(40, c))))
        np.testing.assert_allclose(same.losses, losses[:, c], rtol=1e-6, atol=1e-6)


@LOSSES
@pytest.mark.parametrize("n", [10, 600])
def test_certain_rows_lose_nothing_under_calibration(make, n):
    data = Predictions(probs=np.eye(3, dtype=np.float32)[np.arange(n) % 3], labels=[1] * n)
    np.testing.assert_allclose(make(Sample(data)).under_calibration(rng(), 9).mean, 0, atol=1e-12)


@LOSSES
def test_uniform_rows_always_lose_the_same(make):
    for n in (10, 600):
        data = Predictions(probs=np.full((n, 4), 0.25), labels=[1] * n)
        view = make(Sample(data))
        np.testing.assert_allclose(view.under_calibration(rng(), 9).mean, view.mean, rtol=1e-12)


def test_drawn_labels_and_their_approximation_agree():
    labels = RandomLabels(
        predictions(2000, 10, 4.0).probs, lambda p: -np.log(np.maximum(p, 1e-300)), np.ones(2000)
    )
    exact = labels.draw_labels(rng(), 2000)
    approximate = labels.draw(rng(), 2000)
    assert alike(approximate, exact) < 0.06


# ---- Intervals of class errors of clustered rows against a bootstrap of clusters by hand


def _clustered(seed=0, clusters=150, weights=False):
    """Three classes; rows of a cluster share most of the luck of their labels."""
    rng = np.random.default_rng(seed)
    of = np.repeat(np.arange(clusters), rng.integers(3, 12, clusters))
    z = rng.normal(0, 1, (clusters, 3))[of] + rng.normal(0, 1, (of.size, 3))
    probs = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    true = np.exp(z / 2 + rng.normal(0, 1, (clusters, 3))[of])
    true /= true.sum(axis=1, keepdims=True)
    labels = (rng.random(of.size)[:, None] > true.cumsum(axis=1)).sum(axis=1)
    w = rng.uniform(0.5, 3, of.size) if weights else None
    return calviz.Predictions(probs=probs, labels=labels, clusters=of, weights=w), of


def _errors(p, times, mode, k):
    """Error of a class if row i counts ``times[b, i]`` times, shape (b,)."""
    winner = p.probs.argmax(axis=1)
    if mode == "one-vs-rest":
        residual, inside = p.probs[:, k] - (p.labels == k), np.ones(p.n)
    else:
        inside = (winner == k).astype(float)
        residual = p.probs.max(axis=1) - (p.labels == winner)
    return times @ (residual * inside) / (times @ inside)


@pytest.mark.slow
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("mode", ["predicted-class", "one-vs-rest"])
def test_they_are_those_of_resampled_clusters(mode, weights):
    p, of = _clustered(weights=weights)
    bars = ClassBars.compute(p, mode=mode)
    rng = np.random.default_rng(1)
    drawn = rng.multinomial(150, np.full(150, 1 / 150), size=8_000)[:, of].astype(float)
    if weights:
        drawn *= p.weights
    for k in range(3):
        low, high = np.quantile(_errors(p, drawn, mode, k), [0.025, 0.975])
        width = high - low
        assert bars.interval[0][k] == pytest.approx(low, abs=0.06 * width)
        assert bars.interval[1][k] == pytest.approx(high, abs=0.06 * width)


@pytest.mark.parametrize("mode", ["predicted-class", "one-vs-rest"])
def test_rows_repeated_in_their_cluster_have_the_intervals_of_the_rows_once(mode):
    p, _ = _clustered()
    repeated = calviz.Predictions(
        probs=np.repeat(p.probs, 3, axis=0),
        labels=np.repeat(p.labels, 3),
        clusters=np.repeat(np.arange(p.n), 3),
    )
    once = calviz.Predictions(probs=p.probs, labels=p.labels)
    mine, theirs = (ClassBars.compute(data, mode=mode).interval for data in (repeated, once))
    np.testing.assert_allclose(mine, theirs, atol=0.001)


def test_a_class_in_few_clusters_has_none():
    p, _ = _clustered(clusters=7)
    for mode in ("predicted-class", "one-vs-rest"):
        assert np.isnan(ClassBars.compute(p, mode=mode).interval).all()
