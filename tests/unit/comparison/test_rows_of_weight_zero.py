"""What is judged about data with rows of weight 0 is what is judged about the data without these rows."""

from dataclasses import replace

import numpy as np
import pytest

import calviz
from calviz.comparison.compare import compare
from calviz.comparison.compare_models import compare_models
from calviz.comparison.fitting import Division, calibrate
from calviz.comparison.learning_curves import learning_curve
from calviz.comparison.over_time import over_time
from calviz.comparison.paired_differences import pair
from calviz.comparison.prediction_sets import prediction_sets
from calviz.core.entry_specs import METRICS
from calviz.core.errors import NotAvailable
from calviz.figures.reliability import Reliability
from calviz.sample.sample import Sample
from calviz.sample.slices import slices
from tests.inputs.simulated import draw_labels

#: Indices of the rows of weight 0 among all rows, and of those that count.
N = 160
IDLE = np.arange(0, N, 4)
COUNTING = np.delete(np.arange(N), IDLE)


def with_and_without(kind, idle=IDLE, **columns):
    """Return data with rows of weight 0, which are unlike the others in every column, and the data without them."""
    rng = np.random.default_rng(5)
    classes = 2 if kind == "two classes" else 3
    probs = rng.dirichlet(np.ones(classes), N)
    labels = draw_labels(probs, rng)
    weights = np.ones(N) if kind == "equal weights" else rng.uniform(0.5, 2, N)
    weights[idle] = 0
    site, split = (rng.choice(levels, N).astype(object) for levels in (["a", "b"], ["fit", "rest"]))
    times = np.datetime64("2021-01-05") + rng.integers(0, 90, N).astype("timedelta64[D]")
    probs[idle] = np.eye(classes)[0]
    labels[idle], site[idle], times[idle] = classes - 1, "other", np.datetime64("2020-01-01")
    columns |= {"groups": {"site": site}, "splits": split, "times": times, "ids": np.arange(N)}
    columns["weights"] = weights
    if kind == "clusters":
        columns["clusters"] = np.where(weights > 0, np.arange(N) % 30, 30)
    every = {"probs": probs, "labels": labels}
    of = calviz.Predictions
    if kind == "confidence":
        every = {"confidence": probs.max(axis=1), "correct": probs.argmax(axis=1) == labels}
        of = calviz.ConfidencePredictions
    keep = np.delete(np.arange(N), idle)

    def kept(column):
        return (
            {name: kept(values) for name, values in column.items()}
            if isinstance(column, dict)
            else column[keep]
        )

    every |= columns
    return of(**every), of(**kept(every))


KINDS = ("two classes", "three classes", "clusters", "confidence", "equal weights")


@pytest.fixture(params=KINDS)
def both(request):
    """Data with rows of weight 0, and without them."""
    return with_and_without(request.param)


def assert_same(one, other):
    """Results without rows are equal, nan included."""
    for name in vars(one):
        assert repr(getattr(one, name)) == repr(getattr(other, name)), name


def test_all_metrics_classes_findings_and_the_verdict(both):
    one, other = (calviz.evaluate(d, ci=True, resamples=8) for d in both)
    assert one.metrics.keys() == {m.key for m in METRICS}
    assert one.rows == COUNTING.size
    assert_same(one, other)


def test_slices(both):
    one, other = (slices(d, min_rows=10) for d in both)
    assert {s.where[0][1] for s in one.slices} == {"a", "b"}
    assert_same(one, other)


def test_over_time(both):
    one, other = (over_time(d, "ece", every="month", resamples=20) for d in both)
    assert [p.name[:4] for p in one.periods] == ["2021"] * len(one.periods)
    assert_same(one, other)


@pytest.mark.parametrize("how", [{}, {"fit_fraction": 0.4}, {"cross_fit": 3}, {"in_sample": True}])
@pytest.mark.parametrize("kind", ["three classes", "clusters"])
def test_comparisons_of_methods(kind, how):
    one, other = (
        compare(d, ["temperature"], metrics=["ece", "nll", "kde_ece"], resamples=20, **how)
        for d in with_and_without(kind)
    )
    assert (one.fit, one.evaluation, one.bins) == (other.fit, other.evaluation, other.bins)
    for a, b in zip(one, other, strict=True):
        assert a.ok
        for name in ("metrics", "differences", "best_share", "calibration_gain", "params"):
            assert repr(getattr(a, name)) == repr(getattr(b, name)), name
        assert a.predictions_changed == b.predictions_changed
    assert repr(one.advice) == repr(other.advice)


def test_comparisons_of_models():
    def result(data):
        sharper = replace(data, probs=data.probs**2 / (data.probs**2).sum(axis=1, keepdims=True))
        return compare_models({"a": data, "b": sharper}, resamples=20)

    one, other = map(result, with_and_without("three classes"))
    assert one.rows == COUNTING.size
    assert repr(one.models) == repr(other.models)
    assert one.pairs
    assert repr(one.pairs) == repr(other.pairs)


def test_paired_differences_of_sets_with_all_rows():
    def differences(data):
        flat = replace(data, probs=(data.probs + 0.5) / 2.5)
        rng = np.random.default_rng(0)
        sets, keys = {"a": data, "b": flat}, ["ece", "nll", "accuracy"]
        paired = pair(sets, keys, reduction="top-label", resamples=20, rng=rng)
        return [paired.metrics[key].difference("a", "b") for key in paired.metrics]

    one, other = map(differences, with_and_without("three classes"))
    assert one
    assert one == other


def test_learning_curves_and_prediction_sets():
    some, none = with_and_without("three classes")
    curves = [learning_curve(d, ["temperature"], sizes=[20], repeats=2) for d in (some, none)]
    assert repr(curves[0].points) == repr(curves[1].points)
    sets = [
        prediction_sets(d, coverage=0.8, fit_split="fit", eval_split="rest") for d in (some, none)
    ]
    assert repr(sets[0]) == repr(sets[1])


def test_a_verdict_on_five_rows_that_count_is_on_five_rows():
    rng = np.random.default_rng(0)
    p = rng.random(1_000)
    data = calviz.Predictions(probs=p, labels=rng.random(1_000) < p, weights=np.arange(1_000) < 5)
    assert calviz.verdict(data).sentence.startswith("5 rows are too few for a verdict")


def test_calibrated_files_have_all_rows():
    data, none = with_and_without("three classes")
    for how in ({"fit_fraction": 0.5}, {"cross_fit": 3}, {"fit_split": "fit"}):
        whole, part = (
            calibrate(d, "temperature", Division(**how)).calibrated for d in (data, none)
        )
        assert whole.n == N
        assert np.array_equal(whole.ids, data.ids)
        assert np.isfinite(whole.probs).all()
        np.testing.assert_allclose(whole.probs.sum(axis=1), 1)
        assert np.array_equal(whole.probs[COUNTING], part.probs)
        assert np.array_equal(whole.weights, data.weights)


def test_divisions_are_of_the_rows_that_count():
    data, _ = with_and_without("three classes")
    for fit, judged in Division(fit_fraction=0.5).rows(data).pairs:
        assert np.array_equal(np.sort(np.append(fit, judged)), COUNTING)
    pairs = Division(cross_fit=4).rows(data).pairs
    assert np.array_equal(np.sort(np.concatenate([judged for _, judged in pairs])), np.arange(N))
    assert not any(np.isin(fit, IDLE).any() for fit, _ in pairs)


def test_a_split_whose_rows_all_have_weight_zero():
    data, _ = with_and_without("three classes")
    data = replace(data, weights=np.where(data.splits.mask("fit"), 0, data.weights))
    with pytest.raises(NotAvailable, match="all calibration rows have the weight 0"):
        Division(fit_split="fit", eval_split="rest").rows(data)
    with pytest.raises(NotAvailable, match="all evaluation rows have the weight 0"):
        Division(fit_split="rest", eval_split="fit").rows(data)
    result = calviz.evaluate(data, ["ece"], split="fit")["ece"]
    assert result.reason == "all of these rows have the weight 0, so that none counts."


@pytest.mark.parametrize("split", [None, "rest"])
def test_rows_of_a_bin_are_numbered_as_in_the_data(split):
    data, _ = with_and_without("two classes")
    diagram = Reliability.compute(data, split=split)
    rows = np.sort(np.concatenate([diagram.rows(int(b)) for b in diagram.bin]))
    expected = COUNTING if split is None else COUNTING[data.splits.mask(split)[COUNTING]]
    assert np.array_equal(rows, expected)


def test_data_whose_rows_all_count_are_judged_as_they_are():
    data = calviz.Predictions(probs=[0.2, 0.7, 0.4], labels=[0, 1, 1], weights=[1, 2, 3])
    assert Sample(data).data is data
