"""Bins."""

import math

import calibration
import numpy as np
import pytest
from scipy.integrate import quad

import calviz.figures
from calviz.core import events as events_module
from calviz.core.errors import OptionError
from calviz.core.events import (
    MAX_BINS,
    BinaryEvents,
    assign,
    bins_used,
    equal_mass_edges,
    equal_width_edges,
    make_edges,
    sturges_bins,
)
from calviz.figures.reliability import ReliabilityOverlay
from calviz.metrics.cumulative import ks
from calviz.sample import binning as sums_per_bin
from calviz.sample.binning import bin_between, bin_events, redrawn_sums
from calviz.sample.draws import RowDraws
from calviz.sample.sample import Sample, usual_scheme
from calviz.sample.step_views import (
    gaussian_response,
    grid_size,
    integrate,
    smooth,
    spread,
    triweight_response,
)
from calviz.sample.steps import make_steps

# ---- The binning kernel: edges, sums, and that they merge


def events_of(n, dtype=np.float64, *, decimals=None, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.random(n) ** 2
    if decimals is not None:
        score = np.round(score, decimals)
    return BinaryEvents(score.astype(dtype), rng.random(n) < score)


def moments(sums):
    """Rows, sums of scores and of squared scores per bin and hit, shape (3, M, 2)."""
    return np.concatenate([sums.cells, sums.squares[None]])


def plain_moments(events, edges):
    """Row by row: which bin, then counts and sums."""
    m = edges.size - 1
    cells = np.zeros((3, m, 2))
    for score, hit in zip(events.score.astype(float), events.hit, strict=True):
        inside = [k for k in range(m) if edges[k] < score <= edges[k + 1]]
        k = inside[0] if inside else (0 if score <= edges[0] else m - 1)
        cells[:, k, int(hit)] += [1, score, score**2]
    return cells


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("scheme", ["equal-width", "equal-mass", "sturges"])
@pytest.mark.parametrize(("n", "decimals"), [(1, None), (2, 1), (40, 1), (1500, 2), (1500, None)])
def test_sums_are_those_of_the_rows(n, decimals, scheme, dtype):
    events = events_of(n, dtype, decimals=decimals)
    sums = bin_events(events, bins=15, scheme=scheme)
    np.testing.assert_allclose(
        moments(sums), plain_moments(events, sums.edges), rtol=1e-12, atol=1e-12
    )
    np.testing.assert_array_equal(
        sums.count, np.bincount(assign(events.score, sums.edges), minlength=sums.edges.size - 1)
    )
    assert sums.n == n


@pytest.mark.parametrize("n", [16_384, 16_385, 40_000])
def test_sums_over_several_blocks(n):
    events = events_of(n, np.float32, seed=3)
    for bins in (1, 15, 700):
        sums = bin_events(events, bins=bins)
        cell = 2 * assign(events.score, sums.edges) + events.hit
        score = events.score.astype(float)
        for row, weights in zip(moments(sums), (None, score, score**2), strict=True):
            plain = np.bincount(cell, weights, minlength=2 * bins).reshape(bins, 2)
            np.testing.assert_allclose(row, plain, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bins", [1, 2, 3, 7, 10, 15, 25, 49, 100])
def test_a_score_written_as_an_edge_lies_on_it(bins, dtype):
    written = np.array([float(f"{m / bins:.17g}") for m in range(bins + 1)]).astype(dtype)
    events = BinaryEvents(written, np.zeros(bins + 1, dtype=bool))
    # Right-closed: the edge m/M belongs to bin m, and 0 to the first.
    expected = np.maximum(np.arange(bins + 1) - 1, 0)
    edges = equal_width_edges(bins, dtype)
    np.testing.assert_array_equal(assign(written, edges), expected)
    np.testing.assert_array_equal(bin_events(events, bins=bins).count, np.bincount(expected))


def test_three_tenths_whatever_the_type():
    for dtype in (np.float32, np.float64):
        score = np.array(["0.3"]).astype(dtype)
        assert assign(score, equal_width_edges(10, dtype))[0] == 2
    # Against float64 edges the float32 number would fall into the next bin.
    assert assign(np.float32([0.3]), equal_width_edges(10, np.float64))[0] == 3


def test_one_and_zero_have_no_bin_of_their_own():
    events = BinaryEvents(np.array([0.0, 1.0, 1.0]), np.array([False, True, False]))
    sums = bin_events(events, bins=15)
    assert sums.count[0] == 1
    assert sums.count[-1] == 2


def test_scores_a_little_outside_are_in_the_outer_bins():
    score = np.float32([-1e-7, 1 + 1e-6, 0.5])
    events = BinaryEvents(score, np.array([False, True, True]))
    for scheme in ("equal-width", "equal-mass", "sturges"):
        sums = bin_events(events, bins=15, scheme=scheme)
        assert sums.n == 3
        assert sums.score_sum.sum() == pytest.approx(score.sum(dtype=float), abs=1e-12)
        assert (np.diff(sums.edges) >= 0).all()


def test_cube_root():
    # The smallest m with m**3 >= n.
    for n in (*range(1, 70), 999, 1000, 1001, 10**6, 10**6 + 1):
        assert bins_used(n, "cube_root", "equal-mass") == next(
            m for m in range(1, 200) if m**3 >= n
        )
    assert bins_used(1000, "cube_root", "sturges") == sturges_bins(1000)
    assert bins_used(10**10, "cube_root", "equal-width") == 1_000


def test_sturges():
    for n in (*range(1, 70), 1000, 1024, 1025, 2**29, 2**29 + 1):
        # The smallest m with 2**m >= n, and one more.
        assert sturges_bins(n) == next(m for m in range(64) if 2**m >= n) + 1, n
        if n & (n - 1):
            assert sturges_bins(n) == math.ceil(math.log2(n)) + 1, n


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("decimals", [None, 3, 2, 1, 0])
def test_equal_mass_bins_are_those_of_uncertainty_calibration(decimals, dtype):
    for n, bins in ((1, 15), (4, 15), (15, 15), (100, 15), (1007, 15), (90, 4)):
        events = events_of(n, dtype, decimals=decimals, seed=n)
        edges = equal_mass_edges(events.score, bins)
        mine = assign(events.score, edges)
        count = np.bincount(mine)
        assert (count > 0).all(), (n, bins)
        assert edges.dtype == dtype
        # The peer merges edges and may leave bins empty; the rows that share a bin are the same.
        theirs = np.searchsorted(calibration.utils.get_equal_bins(events.score, bins), events.score)
        np.testing.assert_array_equal(mine, np.unique(theirs, return_inverse=True)[1])
        if decimals is None and n >= bins:
            assert count.size == bins, (n, bins)
            assert count.max() - count.min() <= 1, (n, bins)


def test_equal_mass_by_hand():
    score = np.array([0.1, 0.2, 0.2, 0.2, 0.2, 0.9])
    # Cuts after 2 and 4 rows both fall into the group of 0.2 and move to its end.
    np.testing.assert_array_equal(equal_mass_edges(score, 3), [0, 0.2, 1])
    np.testing.assert_array_equal(equal_mass_edges(np.full(5, 0.4), 3), [0, 1])
    np.testing.assert_array_equal(equal_mass_edges(np.zeros(3), 2), [0, 1])
    np.testing.assert_array_equal(equal_mass_edges(np.ones(3), 2), [0, 1])
    np.testing.assert_array_equal(equal_mass_edges(np.array([0.0, 0, 0, 0.5, 1]), 2), [0, 0, 1])


@pytest.mark.parametrize("scheme", ["equal-width", "equal-mass"])
def test_sums_of_two_parts_add_up(scheme):
    events = events_of(3000, np.float32)
    whole = bin_events(events, bins=15, scheme=scheme)
    edges = make_edges(events, 15, scheme)
    first, second = (
        bin_between(BinaryEvents(events.score[rows], events.hit[rows]), edges)
        for rows in (slice(0, 1000), slice(1000, None))
    )
    added = moments(first + second)
    np.testing.assert_allclose(added, moments(whole), rtol=1e-12, atol=1e-12)


def test_sums_over_different_bins_do_not_add():
    first, second = bin_events(events_of(9), bins=3), bin_events(events_of(9), bins=4)
    with pytest.raises(OptionError, match="different bins"):
        first + second


def test_pooling_keeps_the_sums():
    sums = bin_events(events_of(2000))
    pooled = sums.pooled()
    assert pooled.cells.shape == (2, 1, 2)
    assert pooled.squares.sum() == pytest.approx(sums.squares.sum(), rel=1e-14)
    assert pooled.count[0] == sums.n
    assert pooled.score_sum[0] == pytest.approx(sums.score_sum.sum(), rel=1e-14)
    assert pooled.hit_sum[0] == sums.hit_sum.sum()


def test_properties_by_hand():
    events = BinaryEvents(np.array([0.1, 0.3, 0.9, 0.8]), np.array([True, False, True, True]))
    sums = bin_events(events, bins=4)
    np.testing.assert_array_equal(sums.count, [1, 1, 0, 2])
    np.testing.assert_array_equal(sums.hit_sum, [1, 0, 0, 2])
    np.testing.assert_allclose(sums.weight, [0.25, 0.25, 0, 0.5])
    np.testing.assert_allclose(sums.confidence, [0.1, 0.3, np.nan, 0.85])
    np.testing.assert_allclose(sums.accuracy, [1, 0, np.nan, 1])
    np.testing.assert_allclose(sums.gap, [-0.9, 0.3, 0, -0.15])


@pytest.mark.parametrize("bins", [0, -1, MAX_BINS + 1])
def test_a_number_of_bins_out_of_range(bins):
    with pytest.raises(OptionError, match="number of bins"):
        bin_events(events_of(10), bins=bins)


def test_an_unknown_scheme():
    with pytest.raises(OptionError, match="equal-mass"):
        bin_events(events_of(10), scheme="by-feel")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("lowest", [0.0, -0.0, -1e-7], ids=["0", "-0", "below 0"])
def test_ordered_is_a_sort_by_score_then_hit(dtype, lowest):
    events = events_of(500, dtype, decimals=2)
    score = np.append(events.score, np.array([lowest, 1.0], dtype=dtype))
    events = BinaryEvents(score, np.append(events.hit, [True, False]))
    order = np.lexsort((events.hit, events.score))
    np.testing.assert_array_equal(events.ordered.score, events.score[order])
    np.testing.assert_array_equal(events.ordered.hit, events.hit[order])
    assert events.ordered.score.dtype == dtype
    misses, hits = events.by_hit()
    np.testing.assert_array_equal(misses, np.sort(events.score[~events.hit]))
    np.testing.assert_array_equal(hits, np.sort(events.score[events.hit]))


def test_ordered_of_a_strided_column():
    both = np.random.default_rng(0).random((50, 2))
    events = BinaryEvents(both[:, 1], both[:, 0] < 0.5)
    np.testing.assert_array_equal(events.ordered.score, np.sort(both[:, 1]))


def plain_ks(events):
    """By definition: the two cumulative shares, compared at every distinct score."""
    gaps = [
        events.score[events.score <= s].sum(dtype=float) - events.hit[events.score <= s].sum()
        for s in np.unique(events.score)
    ]
    return np.array(gaps) / events.n


@pytest.mark.parametrize("decimals", [None, 2, 1, 0])
def test_ks_compares_at_distinct_scores(decimals):
    events = events_of(300, decimals=decimals)
    np.testing.assert_allclose(make_steps(events).cumulative_gap, plain_ks(events), atol=1e-14)
    assert float(ks(make_steps(events))) == pytest.approx(np.abs(plain_ks(events)).max(), abs=1e-14)


def test_ks_of_tied_scores_is_the_gap_of_the_means():
    # Row by row the sums would wander off to 0.25 and back.
    events = BinaryEvents(np.full(4, 0.5), np.array([True, False, True, False]))
    assert float(ks(make_steps(events))) == 0
    assert ks(make_steps(BinaryEvents(np.full(4, 0.5), np.full(4, True)))) == 0.5


@pytest.mark.parametrize("lowest", [0.0, -1e-7], ids=["0", "below 0"])
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("even", [False, True])
@pytest.mark.parametrize("bins", [1, 7, 200])
def test_rows_that_are_summed_in_blocks_add_up(monkeypatch, bins, even, whole, lowest):
    events = events_of(1_000, np.float32)
    events = BinaryEvents(np.append(events.score, np.float32(lowest)), np.append(events.hit, True))
    monkeypatch.setattr(sums_per_bin, "BLOCK_ROWS", 70)
    monkeypatch.setattr(sums_per_bin, "COUNTED_ROWS", 70)
    edges = equal_width_edges(bins, np.float32)
    sums = bin_between(events, edges if even else np.sqrt(edges), whole=whole)
    of = np.digitize(events.score, sums.edges[1:-1], right=True)
    for hit in (False, True):
        rows = events.hit == hit
        score = events.score[rows].astype(float)
        for power in range(3):
            plain = np.bincount(of[rows], score**power, minlength=bins)
            np.testing.assert_allclose(moments(sums)[power, :, int(hit)], plain, rtol=1e-12)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bins", [1, 2, 15, 49, 100, MAX_BINS])
def test_unsorted_scores_at_the_edges_are_in_the_bins_of_sorted_ones(bins, dtype):
    edges = equal_width_edges(bins, dtype)
    score = np.concatenate([edges, np.nextafter(edges, -1), np.nextafter(edges, 2)])
    score = np.append(score, np.random.default_rng(0).random(500).astype(dtype))
    events = BinaryEvents(score, np.random.default_rng(1).random(score.size) < 0.5)
    plain, unsorted = (moments(bin_between(events, edges, whole=whole)) for whole in (True, False))
    np.testing.assert_array_equal(unsorted[0], plain[0])
    np.testing.assert_allclose(unsorted, plain, rtol=1e-13, atol=1e-15)


def test_many_rows_need_no_order(monkeypatch):
    events = events_of(300_000, np.float32)
    monkeypatch.setattr(BinaryEvents, "by_hit", None)
    monkeypatch.setattr(BinaryEvents, "_sorted", None)
    assert bin_events(events).n == 300_000


def test_many_events_are_sorted_anew_unless_they_are_in_order(monkeypatch):
    monkeypatch.setattr(events_module, "CACHED_ROWS", 99)
    events = events_of(100, decimals=1)
    assert events.ordered is not events.ordered
    kept = events.in_order()
    assert kept.ordered is kept.ordered
    np.testing.assert_array_equal(kept.score, np.sort(events.score))
    np.testing.assert_array_equal(kept.ordered.hit, events.ordered.hit)
    sums = [bin_events(e, bins=7, scheme="equal-mass") for e in (events, kept)]
    np.testing.assert_array_equal(sums[0].cells, sums[1].cells)


def test_rows_of_weighted_bins_are_rows_and_shares_are_by_weight():
    rng = np.random.default_rng(0)
    score, weights = rng.random(400), rng.exponential(size=400)
    p = calviz.Predictions(
        probs=score, labels=(rng.random(400) < score).astype(int), weights=weights
    )
    figure = calviz.figures.Reliability.compute(p, bins=10, resamples=20)
    bin_of_row = np.ceil(10 * score).astype(int) - 1
    np.testing.assert_array_equal(figure.count, np.bincount(bin_of_row))
    np.testing.assert_allclose(figure.share, np.bincount(bin_of_row, weights) / weights.sum())
    assert f"({figure.share[0]:.1%} by weight)".replace("%", " %") in figure.plot().to_json()
    part = ReliabilityOverlay.of_rows(Sample.of(p), figure.sums, np.flatnonzero(score < 0.2), "low")
    np.testing.assert_array_equal(part.count, figure.count[:2])


def test_a_bin_with_rows_of_little_weight_has_one():
    p = calviz.Predictions(
        probs=np.repeat([0.05, 0.15, 0.95], [1, 40, 59]),
        labels=np.arange(100) % 2,
        weights=np.repeat([1e-6, 1.0, 1.0], [1, 40, 59]),
    )
    figure = calviz.figures.Reliability.compute(p, bins=10, resamples=20)
    assert figure.count.sum() == 100
    assert figure.count[0] == 1


# ---- Kernels on a grid against sums over all points, and their characteristic functions


def steps(score):
    score = np.asarray(score, dtype=float)
    return make_steps(BinaryEvents(score, np.zeros(score.size, dtype=bool)))


@pytest.mark.parametrize("size", [2, 17, 1025])
def test_spreading_keeps_mass_and_first_moment(size):
    rng = np.random.default_rng(0)
    view = steps(np.concatenate([rng.random(500), [0, 0, 1, 1, 0.5, 1 / 16]]))
    mass = np.stack([view.count, rng.normal(size=view.score.size)])
    out = spread(view, mass, size)
    nodes = np.linspace(0, 1, size)
    np.testing.assert_allclose(out.sum(axis=1), mass.sum(axis=1))
    np.testing.assert_allclose(out @ nodes, mass @ view.score)


def test_spreading_by_hand():
    out = spread(steps([0.0, 0.1, 0.5, 0.9, 1.0]), np.ones(5), 3)
    np.testing.assert_allclose(out, [1 + 0.8, 0.2 + 1 + 0.2, 0.8 + 1])


@pytest.mark.parametrize("width", [0.05, 0.3, 1.7])
def test_triweight_response_is_the_integral(width):
    def transform(w):
        return quad(lambda u: 35 / 32 * (1 - u**2) ** 3 * np.cos(w * u), -1, 1)[0]

    response = triweight_response(width, 40)
    expected = [transform(np.pi * k * width) for k in range(40)]
    np.testing.assert_allclose(response, expected, atol=1e-9)
    # Continuous where the series takes over.
    near = triweight_response(0.01 / np.pi * 1.0001, 2)[1]
    assert near == pytest.approx(triweight_response(0.01 / np.pi * 0.9999, 2)[1], abs=1e-8)


@pytest.mark.parametrize("at", [0.0, 0.25, 1.0])
def test_smoothing_keeps_all_mass_inside(at):
    mass = spread(steps([at]), np.ones(1), 513)
    density = smooth(mass, gaussian_response(0.1, 513))
    assert integrate(density) == pytest.approx(1)
    t = np.linspace(0, 1, 513)
    images = [at + 2 * m for m in (-1, 0, 1)] + [-at + 2 * m for m in (-1, 0, 1)]
    plain = sum(np.exp(-(((t - x) / 0.1) ** 2) / 2) for x in images) / (0.1 * np.sqrt(2 * np.pi))
    np.testing.assert_allclose(density, plain, atol=1e-6)


def test_grid_size_spans_the_kernel():
    for width in (1e-9, 1e-3, 0.02, 0.5):
        size = grid_size(width, nodes=8)
        assert 1025 <= size <= (1 << 16) + 1000
        assert width < 2e-4 or width * (size - 1) >= 8


# ---- Bins of rare events


def of_scores(score):
    score = np.asarray(score, float)
    return Sample.of(
        calviz.Predictions(probs=score, labels=np.arange(score.size) % 2), reduction="positive"
    )


def test_rare_events_are_binned_by_mass_and_nothing_else_is():
    rng = np.random.default_rng(3)
    rare = 0.004 * np.exp(rng.normal(0, 1, 20_000))
    assert usual_scheme(of_scores(rare)) == "equal-mass"
    # Some scores beyond one half, as of fraud that is surely found, need the whole axis.
    assert usual_scheme(of_scores(np.append(rare, np.full(30, 0.9)))) == "equal-width"
    # A fifth of the rows in other bins leaves four fifths in one point.
    assert usual_scheme(of_scores(np.append(rare, np.full(5_000, 0.2)))) == "equal-mass"
    # Most rows beyond the first bin, one score for all rows, two scores, and one row.
    for score in (np.append(rare, np.full(20_500, 0.2)), np.full(100, 0.01), [0.01]):
        assert usual_scheme(of_scores(score)) == "equal-width"
    assert usual_scheme(of_scores(np.append(np.full(950, 0.01), np.full(50, 0.2)))) == "equal-width"
    # Confidence near 1 is what deep networks have: bins of equal width are the field's convention there.
    assert usual_scheme(of_scores(1 - rare)) == "equal-width"


def _calibrated_hits(cluster, p, hit, size=4_000):
    """Hits of the bins of a calibrated model, redrawn with clusters, and without."""
    events = BinaryEvents(p, hit)
    sums = bin_events(events, bins=10)
    drawn = redrawn_sums(events, sums)(
        np.random.default_rng(0), RowDraws(p.size, np.asarray(cluster)), size
    )
    return drawn.hit_sum, sums.under_calibration(np.random.default_rng(0), size).hit_sum


def test_clusters_of_one_row_give_the_hits_of_rows_without_clusters():
    rng = np.random.default_rng(1)
    p = rng.uniform(size=3_000)
    clustered, alone = _calibrated_hits(np.arange(3_000), p, rng.random(3_000) < p)
    np.testing.assert_allclose(np.sort(clustered, axis=0), np.sort(alone, axis=0))


def test_clusters_of_equal_rows_give_the_hits_as_many_times_their_variance():
    rng = np.random.default_rng(1)
    p = np.repeat(0.3, 1_000)
    hit = np.arange(1_000) < 300  # so that the residuals have the variance p (1 - p)
    cluster = np.repeat(rng.permutation(1_000), 4)
    clustered, alone = _calibrated_hits(cluster, p.repeat(4), hit.repeat(4))
    np.testing.assert_allclose(clustered.var(axis=0), 4 * alone.var(axis=0))
    assert clustered.sum(axis=1).mean() == pytest.approx(1_200, abs=3)


def test_a_bin_without_events_has_the_spread_of_those_that_were_expected():
    clustered, _ = _calibrated_hits(
        np.repeat(np.arange(1_000), 2), np.full(2_000, 0.0015), np.zeros(2_000, dtype=bool)
    )
    low, high = np.quantile(clustered.sum(axis=1), [0.025, 0.975])
    np.testing.assert_allclose([low, high], [0, 7], atol=0.5)
