"""Steps: ties, merging, and that drawing cells is drawing rows."""

import numpy as np
import pytest
from scipy.stats import binom

from calviz.core import events as events_module
from calviz.core.events import BinaryEvents
from calviz.sample import steps as step_draws
from calviz.sample.steps import MAX_STEPS, Steps, make_steps


def events(n=1000, seed=0, decimals=None, dtype=np.float64):
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    if decimals is not None:
        score = np.round(score, decimals)
    return BinaryEvents(score.astype(dtype), rng.random(n) < score)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("decimals", [None, 2, 0])
def test_counts_rows_and_hits_per_distinct_score(decimals, dtype):
    data = events(decimals=decimals, dtype=dtype)
    score, index = np.unique(data.score, return_inverse=True)
    view = make_steps(data)
    np.testing.assert_array_equal(view.score, score)
    np.testing.assert_array_equal(view.count, np.bincount(index))
    np.testing.assert_array_equal(view.hits, np.bincount(index, data.hit))
    np.testing.assert_allclose(view.square, score.astype(float) ** 2)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("cached", [0, 1_000])
@pytest.mark.parametrize("lowest", [0.0, -1e-9])
def test_counting_leaves_the_events_and_their_order_as_they_are(lowest, cached, dtype, monkeypatch):
    monkeypatch.setattr(events_module, "CACHED_ROWS", cached)
    data = events(decimals=2, dtype=dtype)
    data = BinaryEvents(np.where(data.score == 0, dtype(lowest), data.score), data.hit)
    for given in (data, data.in_order()):
        before = [column.copy() for column in (given.score, given.hit, *given.ordered)]
        first, second = make_steps(given), make_steps(given)
        np.testing.assert_array_equal(first.score, second.score)
        np.testing.assert_array_equal(first.score, np.unique(data.score))
        after = given.score, given.hit, *given.ordered
        for one, other in zip(before, after, strict=True):
            np.testing.assert_array_equal(one, other)


def test_merging_keeps_every_sum():
    view = make_steps(events(30_000))
    small = view.merged()
    assert small.score.size <= MAX_STEPS
    assert small.count.max() <= 2 * 30_000 / MAX_STEPS
    assert small.n == 30_000
    assert small.hits.sum() == view.hits.sum()
    assert small.score_sum.sum() == pytest.approx(view.score_sum.sum())
    assert (small.count * small.square).sum() == pytest.approx((view.score**2).sum())
    assert np.all(np.diff(small.score) > 0)
    assert make_steps(events(100)).merged().score.size == 100


@pytest.mark.parametrize(
    "counts",
    [
        [0, 1, 2, 3, 5, 30, 7, 60, 20],  # many rows per cell
        [0, 1, 2, 3, 5, 30, 7],  # fewer than 100 rows
        [*range(8), *[1] * 200],  # single rows: by Poisson numbers
        [2000, *[1] * 800],  # one large cell beside single rows: row by row
    ],
)
def test_cells_are_drawn_like_rows(counts):
    cells = np.array(counts, dtype=float)
    n, draws = cells.sum(), 4000
    drawn = step_draws.multinomial(np.random.default_rng(0), cells, draws)
    np.testing.assert_array_equal(drawn.sum(axis=1), n)
    np.testing.assert_array_equal(drawn[:, cells == 0], 0)
    share = cells / n
    sd = np.sqrt(n * share * (1 - share))
    assert np.all(np.abs(drawn.mean(axis=0) - cells) <= 5 * sd / np.sqrt(draws))
    np.testing.assert_allclose(drawn.std(axis=0), sd, rtol=0.08, atol=1e-9)
    # Cells exclude each other.
    covariance = np.cov(drawn[:, 1], drawn[:, -1])[0, 1]
    expected = -n * share[1] * share[-1]
    assert covariance == pytest.approx(expected, abs=6 * sd[1] * sd[-1] / np.sqrt(draws))


def test_many_cells_of_many_rows_are_nearly_multinomial():
    # Rounded normals with the skewness of a Poisson number, beside the distribution functions themselves.
    cells = np.tile([0, 12, 40, 300, 648], 300).astype(float)
    n, draws = int(cells.sum()), 400
    drawn = step_draws.multinomial(np.random.default_rng(0), cells, draws)
    np.testing.assert_array_equal(drawn.sum(axis=1), n)
    for rows in (0, 12, 40, 300, 648):
        result = drawn[:, cells == rows].ravel()
        where = np.arange(rows + 6 * int(rows**0.5) + 1)
        share = np.searchsorted(np.sort(result), where, side="right") / result.size
        # Kolmogorov's distance of 120,000 exact draws is below .0057 in 999 of 1,000 samples.
        assert np.abs(share - binom.cdf(where, n, rows / n)).max() < 0.0057
    halves = drawn.reshape(draws, 2, -1).sum(axis=2)[:, 0]
    assert halves.std() == pytest.approx(n**0.5 / 2, rel=0.12)


@pytest.mark.parametrize("p", [0.03, 0.5, 0.98])
def test_hits_of_many_rows_are_nearly_binomial(p):
    count = np.full(200, 2_000.0)
    hits = step_draws.binomial(np.random.default_rng(2), count, np.full(200, p), 600).ravel()
    where = np.arange(2_001)
    share = np.searchsorted(np.sort(hits), where, side="right") / hits.size
    assert np.abs(share - binom.cdf(where, 2_000, p)).max() < 0.0057


@pytest.mark.parametrize("most", [1, 5, 64, 500])
def test_hits_are_binomial(most):
    count, p = np.array([1, 1, most, most, most, most]), np.array([0.3, 0, 1, 0.9, 0.02, 0.5])
    draws = 20_000
    hits = step_draws.binomial(np.random.default_rng(1), count.astype(float), p, draws)
    sd = np.sqrt(count * p * (1 - p))
    assert np.all(np.abs(hits.mean(axis=0) - count * p) <= 5 * sd / np.sqrt(draws))
    np.testing.assert_allclose(hits.std(axis=0), sd, rtol=0.06, atol=1e-9)
    assert np.all((hits >= 0) & (hits <= count))


def test_drawing_again_from_the_same_seed_gives_the_same_arrays():
    view = make_steps(events(3000))
    for how in ("bootstrap", "under_calibration"):
        rngs = [np.random.default_rng(4) for _ in range(2)]
        one, two = (getattr(view, how)(rng, 50) for rng in rngs)
        assert one.hits is two.hits
        assert rngs[0].random() == rngs[1].random()
        other = getattr(view, how)(np.random.default_rng(5), 50)
        assert np.any(other.hits != one.hits)


def test_parts_are_the_resamples_in_order():
    drawn = make_steps(events(3000)).bootstrap(np.random.default_rng(0), 300)
    parts = list(drawn.parts())
    assert len(parts) > 1
    np.testing.assert_array_equal(np.concatenate([p.hits for p in parts]), drawn.hits)
    assert all(isinstance(p, Steps) for p in parts)


def test_under_calibration_leaves_the_rows():
    view = make_steps(events(5000, decimals=2))
    drawn = view.under_calibration(np.random.default_rng(0), 400)
    assert np.all(drawn.count == view.count)
    np.testing.assert_allclose(
        drawn.hits.mean(axis=0), view.count * view.score, atol=6 * np.sqrt(view.count.max() / 1600)
    )


def test_work_on_blocks_comes_in_their_order(monkeypatch):
    monkeypatch.setattr("calviz.sample.steps.STEP_BLOCK", 100)
    monkeypatch.setattr("calviz.sample.steps.WORK_BLOCK", 100)
    rng = np.random.default_rng(9)
    score = rng.random(1_050)
    view = make_steps(BinaryEvents(score, rng.random(1_050) < score))
    firsts = list(view.of_blocks(lambda part: part.score[0]))
    np.testing.assert_array_equal(firsts, np.sort(score)[::100])
    assert list(view.as_drawn().of_blocks(lambda part: part.size)) == [1_050]
    np.testing.assert_array_equal(view.scores_at(np.array([0, 1_049])), [score.min(), score.max()])
