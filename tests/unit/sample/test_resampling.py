"""Resampling of sums against resampling of rows.

The tolerances are about four standard errors of what 4,000 draws show; all seeds are fixed.
"""

import numpy as np
import pytest
from scipy import stats

from calviz.core.events import BinaryEvents
from calviz.core.predictions import Predictions
from calviz.metrics.binned import ece, mce, mcs
from calviz.sample import binning
from calviz.sample.binning import bin_events
from calviz.sample.draws import resample_cells
from calviz.sample.losses import MeanLoss, RandomLabels, negative_log_likelihood, squared_error
from calviz.sample.sample import Sample

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
    expected = [
        mean.mean(),
        (p * central**2).sum() / 40**2,
        (p * central**3).sum() / 40**3,
    ]
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
        predictions(2000, 10, 4.0).probs,
        lambda p: -np.log(np.maximum(p, 1e-300)),
        np.ones(2000),
    )
    exact = labels.draw_labels(rng(), 2000)
    approximate = labels.draw(rng(), 2000)
    assert alike(approximate, exact) < 0.06
