"""Invariants that every registered metric must have, whatever it is."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calviz
from calviz.core.entry_specs import METRICS
from calviz.core.predictions import ConfidencePredictions, Predictions
from calviz.sample import binning, losses
from tests.inputs.simulated import draw_labels
from tests.property.example_counts import examples

quick = examples(10)

#: Of one view each.
each_view = examples(20)


@st.composite
def predictions(draw, *, min_rows=1, max_classes=6):
    """Small samples with ties, exact 0 and 1, single classes, either type."""
    n = draw(st.integers(min_rows, 40))
    k = draw(st.integers(2, max_classes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.sampled_from(["smooth", "counts", "one-hot", "uniform", "constant"]))
    if shape == "smooth":
        probs = rng.dirichlet(np.full(k, 0.5), size=n)
    elif shape == "counts":
        probs = rng.multinomial(4, np.full(k, 1 / k), size=n) / 4
    elif shape == "one-hot":
        probs = np.eye(k)[rng.integers(k, size=n)]
    elif shape == "uniform":
        probs = np.full((n, k), 1 / k)
    else:
        probs = np.tile(rng.dirichlet(np.ones(k)), (n, 1))
    labels = rng.integers(k, size=n) if draw(st.booleans()) else np.zeros(n, dtype=int)
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    return Predictions(probs=probs.astype(dtype), labels=labels)


def reductions(data):
    keys = ["top-label", "top-2", "within-top-2", "class:0", f"class:{data.n_classes - 1}"]
    return keys + ["positive"] * (data.n_classes == 2)


@st.composite
def views(draw, **options):
    """A small sample, and one of the ways to look at it."""
    data = draw(predictions(**options))
    return data, draw(st.sampled_from(reductions(data)))


def values(data, reduction="top-label", **options):
    evaluation = calviz.evaluate(
        data, reduction=reduction, classes=False, findings=False, **options
    )
    return {m.key: m.value for m in evaluation}


def same(mine, other, rel=1e-9, abs_=1e-12):
    for key in mine:
        assert mine[key] == pytest.approx(other[key], rel=rel, abs=abs_, nan_ok=True), key


def check(result, metric, slack=1e-6):
    """A value within its bounds, or a reason; intervals and noise floors in order and finite.

    Rows may sum to 1 only up to rounding: hence the `slack`.
    """
    if math.isnan(result.value):
        assert result.reason
        return
    low, high = metric.bounds
    assert low - slack <= result.value <= high + slack, metric.key
    if result.interval is not None:
        assert -math.inf < result.interval.low <= result.interval.high < math.inf
        assert result.interval.low >= low - slack
        assert result.interval.high <= high + slack
    if result.noise_floor is not None:
        floor = result.noise_floor
        assert low - slack <= floor.mean <= high + slack
        assert math.isfinite(floor.q95)
        assert 0 < floor.p_value <= 1


@pytest.mark.slow
@each_view
@given(view=views(), bins=st.sampled_from([1, 2, 15, 100]))
def test_finite_or_explained_and_within_bounds(view, bins):
    data, reduction = view
    evaluation = calviz.evaluate(
        data,
        reduction=reduction,
        bins=bins,
        ci=True,
        noise_floor=True,
        resamples=20,
        findings=False,
    )
    assert set(evaluation.metrics) == set(METRICS.keys())
    for result in evaluation:
        check(result, METRICS[result.key])


@pytest.mark.slow
@each_view
@given(view=views())
def test_approximations_for_many_rows_stay_sane_on_few(view):
    data, reduction = view
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(binning, "EXACT_BINNING_ROWS", 0)
        patch.setattr(losses, "EXACT_LOSS_ROWS", 0)
        for result in calviz.evaluate(
            data, reduction=reduction, ci=True, noise_floor=True, resamples=20, findings=False
        ):
            loose = result.key in ("nll", "brier")  # normal and gamma tails know no bounds
            check(result, METRICS[result.key], slack=math.inf if loose else 1e-6)


@pytest.mark.slow
@each_view
@given(view=views(), seed=st.integers(0, 99))
def test_the_order_of_rows_does_not_matter(view, seed):
    data, reduction = view
    order = np.random.default_rng(seed).permutation(data.n)
    same(values(data, reduction), values(data.take(order), reduction))


#: Metrics whose bins, bandwidth or scale follow from the number of rows.
DEPENDS_ON_N = {
    *("ece_sturges", "ece_equal_mass", "ece_debiased", "ece_sweep", "tace", "skce"),
    *("kde_ece", "kde_ece_l2", "spiegelhalter_z", "hosmer_lemeshow", "tcal"),
    *("nll_calibration", "nll_refinement", "brier_calibration", "brier_refinement"),
    *("nll_calibration_all", "nll_refinement_all", "brier_calibration_all", "brier_refinement_all"),
    "ce_l1_unbiased",
    *("ici", "e50", "e90", "emax", "eci"),
    *("unreliability", "discrimination_index", "quality_index"),
}


@pytest.mark.slow
@quick
@given(data=predictions())
def test_rows_counted_twice_change_nothing(data):
    twice = data.take(np.tile(np.arange(data.n), 2))
    mine, other = values(data), values(twice)
    same({k: v for k, v in mine.items() if k not in DEPENDS_ON_N}, other)


@pytest.mark.slow
@quick
@given(data=predictions(), seed=st.integers(0, 99))
def test_the_names_of_classes_do_not_matter(data, seed):
    # Where no row has ties: among equal probabilities the order of the classes decides.
    ordered = np.sort(data.probs, axis=1)
    rows = np.flatnonzero((np.diff(ordered, axis=1) > 0).all(axis=1))
    if rows.size == 0:
        return
    data = data.take(rows)
    order = np.random.default_rng(seed).permutation(data.n_classes)
    other = Predictions(probs=data.probs[:, order], labels=np.argsort(order)[data.labels])
    for reduction in ("top-label", "top-2", "within-top-2"):
        same(values(data, reduction), values(other, reduction), rel=1e-5, abs_=1e-6)


@pytest.mark.slow
@quick
@given(data=predictions())
def test_the_top_label_needs_confidence_and_correctness_only(data):
    winner = data.probs.argmax(axis=1)
    confidence = ConfidencePredictions(
        confidence=data.probs.max(axis=1), correct=winner == data.labels
    )
    full, top = values(data), values(confidence)
    known = {key: value for key, value in top.items() if not math.isnan(value)}
    assert {"accuracy", "ece", "mcs"} <= set(known)
    same(known, full)


@quick
@given(data=predictions())
def test_both_types_agree(data):
    other = np.float32 if data.probs.dtype == np.float64 else np.float64
    probs = data.probs.astype(other)
    # A score may cross an edge when it is rounded: keep to those that are the same number in both.
    rows = np.flatnonzero((probs.astype(data.probs.dtype) == data.probs).all(axis=1))
    if rows.size == 0 or ((data.probs * 15) % 1 == 0).any():
        return
    twin = Predictions(probs=probs[rows], labels=data.labels[rows])
    same(values(data.take(rows)), values(twin), rel=1e-5, abs_=1e-6)


@pytest.mark.slow
@quick
@given(data=predictions(min_rows=2), seed=st.integers(0, 9))
def test_the_same_seed_gives_the_same_numbers(data, seed):
    first, second = (
        calviz.evaluate(data, ci=True, noise_floor=True, resamples=10, seed=seed) for _ in range(2)
    )
    for mine, other in zip(first, second, strict=True):
        assert mine.interval == other.interval
        assert mine.noise_floor == other.noise_floor


def test_a_metric_alone_is_the_metric_in_company():
    rng = np.random.default_rng(0)
    data = Predictions(probs=rng.dirichlet(np.ones(3), size=50), labels=rng.integers(3, size=50))
    options = {"ci": True, "noise_floor": True, "resamples": 30}
    company = calviz.evaluate(data, **options)
    for key in tuple(METRICS.keys()):
        assert calviz.evaluate(data, [key], **options)[key] == company[key], key


#: Fits of redrawn labels take seconds, and these share those of `nll_calibration`.
SHARED_FITS = {"nll_refinement", "brier_calibration", "brier_refinement"}


@pytest.mark.slow
def test_noise_floors_hold_what_they_promise():
    """On calibrated predictions p-values below 10 % are about as rare as 10 %."""
    small = Counter()
    keys = [spec.key for spec in METRICS if spec.key not in SHARED_FITS]
    for seed in range(24):
        rng = np.random.default_rng(seed)
        probs = rng.dirichlet([1, 1, 1], size=200)
        labels = draw_labels(probs, rng)
        data = Predictions(probs=probs, labels=labels)
        for result in calviz.evaluate(data, keys, noise_floor=True, resamples=100, seed=seed):
            if result.noise_floor is not None:
                small[result.key] += result.noise_floor.p_value <= 0.1
    assert len(small) > 30
    # Binomial(24, 0.1) is below 9 with probability 0.9997.
    assert not {key: times for key, times in small.items() if times >= 9}
