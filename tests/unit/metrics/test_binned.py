"""Metrics of bins."""

import math
from functools import partial

import calibration
import numpy as np
import pytest
import relplot
from sklearn.calibration import calibration_curve

import calviz
from calviz.core.entry_specs import METRICS
from calviz.core.events import BinaryEvents
from calviz.core.predictions import ConfidencePredictions, Predictions
from calviz.metrics import binned
from calviz.metrics.binned import MonotoneBins, sweep_steps
from calviz.metrics.smooth import KernelSteps
from calviz.sample import steps as steps_module
from calviz.sample.binning import BinSums
from calviz.sample.sample import Sample, bin_sums
from calviz.sample.step_views import steps, top_label_steps
from calviz.sample.steps import Steps, make_steps
from tests.inputs.reliability import event_metrics

# ---- ECE and its family: by hand, against peers, against closed forms


def positive(score, hit, keys, **options):
    result = event_metrics(score, hit, keys, **options)
    return [result[key].value for key in keys]


def untied(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    return score, rng.random(n) < score**1.5


def test_by_hand():
    # Bins (0, 1/2] and (1/2, 1]: means 0.3 and 0.8, hits 1/2 and 2/3.
    score, hit = [0.2, 0.4, 0.7, 0.8, 0.9], [1, 0, 1, 0, 1]
    ece, ece_l2, rmsce, mce, mcs = positive(
        score, hit, ["ece", "ece_l2", "rmsce", "mce", "mcs"], bins=2
    )
    low, high = 0.2, 0.8 - 2 / 3
    assert ece == pytest.approx((2 * low + 3 * high) / 5, abs=1e-15)
    assert ece_l2 == pytest.approx((2 * low**2 + 3 * high**2) / 5, abs=1e-15)
    assert rmsce == pytest.approx(np.sqrt(ece_l2), abs=1e-15)
    assert mce == pytest.approx(low, abs=1e-15)
    assert mcs == pytest.approx(0.6 - 0.6, abs=1e-15)


def test_equal_mass_and_sturges_by_hand():
    score, hit = [0.6, 0.7, 0.8, 0.9], [0, 1, 1, 1]
    equal_mass, sturges = positive(score, hit, ["ece_equal_mass", "ece_sturges"], bins=2)
    # Two rows each: gaps 0.65 - 0.5 and 0.85 - 1.
    assert equal_mass == pytest.approx(0.15, abs=1e-15)
    # ceil(log2 4) + 1 = 3 bins: all rows above 2/3 but the first, which is in (1/3, 2/3].
    assert sturges == pytest.approx((0.6 + 3 * 0.2) / 4, abs=1e-15)


@pytest.mark.parametrize("bins", [1, 2, 10, 15, 100])
def test_ece_against_peers(bins):
    score, hit = untied()
    (ece,) = positive(score, hit, ["ece"], bins=bins)
    assert ece == pytest.approx(
        calibration.get_ece(score, hit.astype(int), num_bins=bins), abs=1e-12
    )
    if bins > 1:  # its bins are left-closed, which is the same here
        assert ece == pytest.approx(relplot.metrics.binnedECE(score, hit, bins), abs=1e-12)
    accuracy, mean = calibration_curve(hit, score, n_bins=bins)
    rows = np.histogram(score, bins, (0, 1))[0]
    (mce,) = positive(score, hit, ["mce"], bins=bins)
    gaps = np.abs(mean - accuracy)
    assert mce == pytest.approx(gaps.max(), abs=1e-12)
    assert ece == pytest.approx(np.average(gaps, weights=rows[rows > 0]), abs=1e-12)


@pytest.mark.parametrize("decimals", [None, 2, 1])
@pytest.mark.parametrize("bins", [2, 15, 40])
def test_against_uncertainty_calibration_also_with_ties(bins, decimals):
    score, hit = untied(1001)
    if decimals:
        score = np.round(score, decimals)
    labels = hit.astype(int)
    rmsce, equal_mass = positive(score, hit, ["rmsce", "ece_equal_mass"], bins=bins)
    peer = calibration.lower_bound_scaling_ce(
        score,
        labels,
        p=2,
        debias=False,
        num_bins=bins,
        binning_scheme=calibration.utils.get_equal_prob_bins,
    )
    assert rmsce == pytest.approx(peer, abs=1e-12)
    peer = calibration.get_ece_em(score, labels, num_bins=bins)
    assert equal_mass == pytest.approx(peer, abs=1e-12)


@pytest.mark.parametrize("key", ["ece", "ece_equal_mass", "ece_sturges"])
def test_one_sided_bins_give_the_mean_gap(key):
    # Every bin is overconfident by construction, so that all ECEs are mean score - accuracy.
    score, hit = np.linspace(0.54, 1, 400), np.arange(400) % 4 == 0
    value, mcs = positive(score, hit, [key, "mcs"])
    assert value == pytest.approx(mcs, abs=1e-12)
    assert mcs == pytest.approx(0.77 - 0.25, abs=1e-12)


def test_known_calibration_error():
    n = 50_000
    # P(hit | s) = s^2 with uniform s: the error is the integral of s - s^2, 1/6, its square s^2(1-s)^2, 1/30.
    rng = np.random.default_rng(0)
    score = rng.random(n)
    ece, ece_l2, mcs = positive(score, rng.random(n) < score**2, ["ece", "ece_l2", "mcs"])
    assert ece == pytest.approx(1 / 6, abs=0.008)
    assert ece_l2 == pytest.approx(1 / 30, abs=0.003)
    assert mcs == pytest.approx(1 / 6, abs=0.008)


@pytest.mark.parametrize("bins", [1, 3, 15, 200])
def test_mcs_is_the_difference_of_the_means_whatever_the_bins(bins):
    score, hit = untied(777)
    data = Predictions(probs=score, labels=hit)
    sums = bin_sums(Sample(data, "positive"), bins=bins)
    binned_form = (sums.weight * sums.gap).sum()
    assert binned_form == pytest.approx(score.mean() - hit.mean(), abs=1e-13)
    assert float(binned.mcs(sums)) == pytest.approx(binned_form, abs=1e-13)


def test_values_keep_the_axis_of_resamples():
    one = BinSums(np.array([0.0, 0.5, 1.0]), np.arange(8.0).reshape(2, 2, 2))
    many = BinSums(one.edges, np.stack([one.cells] * 5))
    for value in (binned.ece, binned.ece_l2, binned.rmsce, binned.mce, binned.mcs):
        assert np.shape(value(one)) == ()
        np.testing.assert_allclose(value(many), np.full(5, float(value(one))))


# ---- The monotone sweep against its algorithm, step by step


def evaluated(score, hit, **options):
    return event_metrics(score, hit, ["ece_sweep"], **options)["ece_sweep"]


def bins_of(score, b):
    """Equal-mass bins: rows in order, cut as array_split does, ties moved to the bin on the left."""
    order = np.argsort(score, kind="stable")
    pieces = np.array_split(order, b)
    last = [score[piece[-1]] for piece in pieces if piece.size]
    bin_of = np.searchsorted(np.unique(last[:-1]), score, side="left")
    return [np.flatnonzero(bin_of == m) for m in np.unique(bin_of)]


def literal(score, hit):
    """Roelofs et al. 2022, algorithm 1."""
    best = [np.arange(score.size)]
    for b in range(2, score.size + 1):
        bins = bins_of(score, b)
        if np.any(np.diff([hit[rows].mean() for rows in bins]) < 0):
            break
        best = bins
    gaps = [rows.size * abs(score[rows].mean() - hit[rows].mean()) for rows in best]
    return len(best), sum(gaps) / score.size


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("decimals", [8, 1])
@pytest.mark.parametrize("n", [1, 7, 60, 150])
def test_against_the_algorithm(n, decimals, seed):
    rng = np.random.default_rng(seed)
    score = np.round(rng.random(n), decimals)
    hit = rng.random(n) < (score if seed % 2 else score > 0.5)
    bins, value = literal(score, hit)
    result = evaluated(score, hit)
    assert result.value == pytest.approx(value)
    assert result.details["bins"] == bins


def test_separated_scores_are_swept_to_single_rows_at_once():
    # A sweep of 200,000 rows bin by bin would not end.
    score = np.linspace(0, 1, 200_000)
    result = evaluated(score, score > 0.5)
    assert result.details["bins"] == 200_000
    assert result.value == pytest.approx(0.25, abs=1e-4)


def test_many_hits_alike_beside_single_rows():
    # Monotone at every number of bins, and the ties never come apart.
    score = np.concatenate([np.zeros(50_000), np.linspace(0.5, 1, 10)])
    hit = np.concatenate([np.arange(50_000) % 2, np.ones(10, dtype=int)])
    assert evaluated(score, hit).details["bins"] == 11


def test_the_floor_repeats_the_sweep():
    rng = np.random.default_rng(3)
    score = rng.random(150)
    drawn = [literal(score, rng.random(150) < score)[1] for _ in range(250)]
    floor = evaluated(score, rng.random(150) < score, ci=True).noise_floor
    assert floor.mean == pytest.approx(np.mean(drawn), rel=0.08)


# ---- Debiased ECE against uncertainty-calibration, and what its bias is


evaluated_of_debiased = partial(event_metrics, keys=["ece_debiased", "ece_l2"])


@pytest.mark.parametrize("bins", [5, 15])
def test_against_uncertainty_calibration(bins):
    rng = np.random.default_rng(0)
    score = rng.random(2000)
    hit = rng.random(2000) < score**2
    binned = calibration.utils.bin(
        list(zip(score, hit.astype(int), strict=True)),
        calibration.utils.get_equal_bins(score, num_bins=bins),
    )
    theirs = calibration.utils.unbiased_square_ce(binned)
    mine = evaluated_of_debiased(score, hit, bins=bins)["ece_debiased"]
    assert mine.value == pytest.approx(theirs, rel=1e-9)
    assert mine.details["root"] == pytest.approx(np.sqrt(theirs), rel=1e-9)


def test_by_hand_of_debiased():
    # Two bins of two rows: gaps 0.2 and 0.3, hit rates 1/2 and 1.
    result = evaluated_of_debiased([0.6, 0.8, 0.3, 0.4][::-1], [1, 0, 1, 1][::-1], bins=2)
    # Ascending 0.3, 0.4 | 0.6, 0.8 with hits 1, 1 | 1, 0.
    expected = ((0.35 - 1) ** 2 + (0.7 - 0.5) ** 2 - 0.25) / 2
    assert result["ece_debiased"].value == pytest.approx(expected)


def test_bins_of_one_row_add_nothing():
    assert evaluated_of_debiased([0.3, 0.7], [1, 0], bins=2)["ece_debiased"].value == 0


@pytest.mark.slow
def test_is_around_zero_for_calibrated_scores():
    rng = np.random.default_rng(1)
    values = []
    for _ in range(200):
        score = rng.random(200)
        values.append(evaluated_of_debiased(score, rng.random(200) < score)["ece_debiased"].value)
    assert min(values) < 0
    assert abs(np.mean(values)) < 3 * np.std(values) / np.sqrt(200)
    assert evaluated_of_debiased([0.4] * 10, [1] * 4 + [0] * 6)["ece_debiased"].details["root"] == 0


# ---- The adaptive test over scales: by brute force over pairs of rows, at its level, and with power at any width


def brute(score, hit, w, most=10):
    """The largest over scales, and its number of bins, from all pairs of rows."""
    r, v = w * (hit - score), w**2 * score * (1 - score)
    values = {}
    for j in range(min(most, int(np.log2(score.size))) + 1):
        bins = 2**j
        bin_of = np.maximum(np.ceil(score * bins), 1)
        same = (bin_of[:, None] == bin_of) & ~np.eye(score.size, dtype=bool)
        rows = (bin_of[:, None] == bin_of) @ w
        spread = np.sqrt(2 * (np.outer(v, v) * same / rows[:, None] ** 2).sum())
        if spread > 0:
            total = (np.outer(r, r) * same / rows[:, None]).sum()
            values[bins] = total / spread, total / w.sum()
    bins = max(values, key=lambda b: values[b][0])
    return bins, *values[bins]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("decimals", [8, 1])
def test_against_all_pairs(decimals, weighted):
    rng = np.random.default_rng(0)
    score = rng.random(150).round(decimals)
    hit = (rng.random(150) < score**1.5).astype(int)
    w = rng.exponential(size=150) if weighted else None
    bins, value, error = brute(score, hit, np.ones(150) if w is None else w)
    result = calviz.evaluate(
        Predictions(probs=score, labels=hit, weights=w), ["tcal"], reduction="positive"
    )["tcal"]
    assert result.value == pytest.approx(value, rel=1e-9)
    assert result.details["bins"] == bins
    assert result.details["squared_error"] == pytest.approx(error, rel=1e-9)


def test_each_scale_is_standard_under_calibration():
    # With labels drawn from the scores, every scale has mean 0 and variance 1.
    from calviz.metrics.clinical import _scales

    rng = np.random.default_rng(1)
    score = rng.random(600)
    data = Predictions(probs=score, labels=rng.random(600) < score)
    view = Sample(data, "positive").view(steps)
    drawn = view.under_calibration(rng, 2_000)
    z = np.concatenate([_scales(part).standardised for part in drawn.parts()])
    np.testing.assert_allclose(z.mean(axis=0), 0, atol=0.12)
    np.testing.assert_allclose(z.std(axis=0), 1, atol=0.15)


def test_errors_of_any_width_are_found():
    rng = np.random.default_rng(2)
    score = rng.uniform(0.2, 0.8, 20_000)
    waves = {2: 0.03, 64: 0.12}  # periods, and how far off
    for periods, size in waves.items():
        hit = rng.random(20_000) < score + size * np.sin(2 * np.pi * periods * score)
        result = event_metrics(score, hit, ["tcal"], noise_floor=True, resamples=199)["tcal"]
        assert result.noise_floor.p_value <= 0.01
        # About half a period, or less.
        assert periods <= result.details["bins"] <= 8 * periods
    assert METRICS["tcal"].tail == "upper"


def test_without_two_rows_that_are_in_doubt_there_is_no_value():
    for score in ([0.3], [0.0, 1.0, 1.0]):
        evaluation = event_metrics(score, [0] * len(score), ["tcal"])
        assert np.isnan(evaluation["tcal"].value)
        assert evaluation["tcal"].reason


# ---- What is computed some steps at a time is what all steps at once give


KEYS = [m.key for m in METRICS if m.view in (steps, top_label_steps)]


def events(n=20_000, *, seed=0, dtype=np.float32, power=1.0, ties=0.0):
    rng = np.random.default_rng(seed)
    score = rng.random(n).astype(dtype)
    score[rng.random(n) < ties] = 1
    return BinaryEvents(score, rng.random(n) < score**power)


@pytest.fixture(params=[64, 1_000, 5_000])
def block(request, monkeypatch):
    monkeypatch.setattr(steps_module, "STEP_BLOCK", request.param)


@pytest.mark.parametrize("ties", [0.0, 0.4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_steps_count_rows_and_hits_per_distinct_score(block, dtype, ties):
    e = events(dtype=dtype, ties=ties)
    view = make_steps(e)
    score, inverse = np.unique(e.score, return_inverse=True)
    np.testing.assert_array_equal(view.score, score)
    np.testing.assert_array_equal(view.count, np.bincount(inverse))
    np.testing.assert_array_equal(view.hits, np.bincount(inverse, e.hit))
    assert view.size == score.size
    assert float(view.n) == e.n
    assert float(view.n_hits) == e.hit.sum()


@pytest.mark.parametrize("ties", [0.0, 0.4])
def test_blocks_of_steps_give_the_value_of_all(monkeypatch, ties):
    monkeypatch.setattr(steps_module, "STEP_BLOCK", 700)
    for metric in (METRICS[key] for key in KEYS):
        parted = make_steps(events(power=1.3, ties=ties))
        whole = Steps(parted.score, parted.count, parted.hits)
        assert len(list(parted.blocks())) > 1
        value = pytest.approx(float(metric.value(whole)), rel=1e-9, abs=1e-12)
        assert float(metric.value(parted)) == value, metric.key
        if metric.details:
            details = pytest.approx(dict(metric.details(whole)))
            assert dict(metric.details(parted)) == details, metric.key


def test_kernels_of_blocks_are_those_of_all(monkeypatch):
    parted = make_steps(events())
    whole = Steps(parted.score, parted.count, parted.hits)
    monkeypatch.setattr(steps_module, "STEP_BLOCK", 700)
    for key in ("kde_ece", "kde_ece_l2"):
        value = [
            float(METRICS[key].value(KernelSteps(v, width=0.05, nodes=1_025)))
            for v in (parted, whole)
        ]
        assert value[0] == pytest.approx(value[1], rel=1e-9)


@pytest.mark.parametrize("ties", [0.0, 0.4])
@pytest.mark.parametrize("power", [1.0, 0.3, 3.0])
@pytest.mark.parametrize("n", [3_000, 40_000])
def test_the_sweep_of_many_steps_is_the_sweep_of_all(n, power, ties):
    view = make_steps(events(n, power=power, ties=ties, dtype=np.float64))
    assert view.size > steps_module.MAX_STEPS or ties
    bins, error = sweep_steps(view, view.count, view.hits)
    result = binned._sweep_of_many(view)
    assert int(result[0]) == int(bins)
    assert float(result[1]) == pytest.approx(float(error), rel=1e-9)


def test_the_sweep_goes_on_to_the_steps_where_they_rise():
    score = np.linspace(0, 1, 5_001)[1:]
    view = make_steps(BinaryEvents(score, score > 0.5))
    bins, error = sweep_steps(view, view.count, view.hits)
    assert int(bins) == 5_000
    plain = np.abs(score - (score > 0.5)).mean()
    assert float(error) == pytest.approx(plain, rel=1e-12)
    result = METRICS["ece_sweep"].value(MonotoneBins(view, base=view))
    assert float(result) == pytest.approx(plain, rel=1e-12)


# ---- Borderline samples: every metric has a value, or nan with a reason of its own; nothing warns


ALL = METRICS.keys()
RNG = np.random.default_rng(0)
PROBS = RNG.dirichlet(np.ones(3), size=40)
LABELS = RNG.integers(0, 3, size=40)
CERTAIN = np.eye(3)[LABELS]
HALF = RNG.random(60)
HALF[:30] = np.arange(30) % 2


def confidence(n, **columns):
    c = np.random.default_rng(1).random(n)
    return ConfidencePredictions(confidence=c, correct=c > 0.4, **columns)


SAMPLES = {
    "one row": Predictions(probs=[[0.7, 0.3]], labels=[0]),
    "one wrong row": Predictions(probs=[[0.7, 0.3]], labels=[1]),
    "one certain row": Predictions(probs=[[1.0, 0.0]], labels=[0]),
    "one certain wrong row": Predictions(probs=[[1.0, 0.0]], labels=[1]),
    "two rows": Predictions(probs=[[0.7, 0.3], [0.4, 0.6]], labels=[0, 0]),
    "one class": Predictions(probs=PROBS, labels=np.zeros(40, dtype=int)),
    "a class without rows": Predictions(probs=PROBS, labels=LABELS % 2),
    "all equal": Predictions(probs=np.full((40, 4), 0.25), labels=np.arange(40) % 4),
    "all one half": Predictions(probs=np.full((30, 2), 0.5), labels=np.arange(30) % 2),
    "certain and right": Predictions(probs=CERTAIN, labels=LABELS),
    "certain and wrong": Predictions(probs=CERTAIN, labels=(LABELS + 1) % 3),
    "certain": Predictions(probs=CERTAIN, labels=np.roll(LABELS, 1)),
    "all right": Predictions(probs=PROBS, labels=PROBS.argmax(axis=1)),
    "all wrong": Predictions(probs=PROBS, labels=PROBS.argmin(axis=1)),
    "some certain": Predictions(probs=HALF, labels=RNG.random(60) < HALF),
    "float32": Predictions(probs=PROBS.astype(np.float32), labels=LABELS),
    "a little below 0": Predictions(
        probs=np.array([[1 + 1e-7, -1e-7], [0.5, 0.5], [0.2, 0.8]]), labels=[0, 1, 0]
    ),
    "more classes than rows": Predictions(
        probs=RNG.dirichlet(np.full(40, 0.1), size=20), labels=RNG.integers(0, 40, size=20)
    ),
    "confidence only": confidence(30),
    "one row of confidence": confidence(1),
    "confidence with classes": confidence(
        30, labels=np.arange(30) % 3, class_names=("a", "b", "c")
    ),
    "confidence with labels": confidence(30, labels=np.arange(30) % 3),
}


def reductions(data):
    if data.kind == "confidence":
        return ["top-label"]
    return ["top-label", "positive" if data.n_classes == 2 else "class:1"]


@pytest.mark.slow
@pytest.mark.parametrize("name", SAMPLES)
def test_values_or_reasons(name):
    data = SAMPLES[name]
    for reduction in reductions(data):
        for r in calviz.evaluate(data, reduction=reduction, ci=True, resamples=40):
            low, high = METRICS[r.key].bounds
            if r.reason is None:
                assert low - 1e-9 <= r.value <= high + 1e-9, r.key
            else:
                assert math.isnan(r.value)
                assert r.reason.endswith(".")
                assert r.reason != "undefined on these rows."
                assert r.interval is None
                assert r.noise_floor is None
            if r.interval is not None:
                assert low - 1e-6 <= r.interval.low < r.interval.high <= high + 1e-6, r.key
            if r.noise_floor is not None:
                assert 0 < r.noise_floor.p_value <= 1


def test_two_classes_as_one_column_or_two():
    one = Predictions(probs=HALF, labels=HALF > 0.3)
    two = Predictions(probs=np.stack([1 - HALF, HALF], axis=1), labels=HALF > 0.3)
    for a, b in zip(calviz.evaluate(one), calviz.evaluate(two), strict=True):
        assert a.value == b.value or (math.isnan(a.value) and a.reason == b.reason)


def test_float32_and_float64_agree():
    narrow = PROBS.astype(np.float32)
    a, b = (
        calviz.evaluate(Predictions(probs=p, labels=LABELS)) for p in (narrow, narrow.astype(float))
    )
    for key in ALL:
        assert a[key].value == pytest.approx(b[key].value, rel=1e-4, abs=1e-6, nan_ok=True), key


def test_rows_in_another_order_and_doubled():
    data = Predictions(probs=np.round(PROBS * 0.9 + 1 / 30, 3) / 1.0, labels=LABELS)
    order = np.random.default_rng(2).permutation(40)
    one, turned, doubled = (
        calviz.evaluate(data.take(rows), ALL)
        for rows in (np.arange(40), order, np.tile(np.arange(40), 2))
    )
    for key in ALL:
        value = pytest.approx(one[key].value, nan_ok=True)
        assert turned[key].value == value, key
        if not METRICS[key].follows_rows:
            assert doubled[key].value == value, key
