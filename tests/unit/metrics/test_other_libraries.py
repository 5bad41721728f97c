"""Every convention against the library whose convention it is, on ties, edges of bins, exact 0 and 1."""

import json
from importlib.metadata import version
from pathlib import Path

import calibration
import numpy as np
import pycalib.metrics
import pytest
import relplot
from mapie.metrics.calibration import expected_calibration_error, top_label_ece
from sklearn.calibration import calibration_curve

import calviz
from benchmarks.record_conventions import cases
from calviz.core.entry_specs import CONVENTIONS, FIGURES
from calviz.metrics.other_libraries import torch_linspace

CASES = cases()
RECORDED = json.loads(
    Path(__file__).with_name("recorded_conventions.json").read_text(encoding="utf-8")
)
SINGLE = {"torchmetrics", "probmetrics"}  # they sum in float32


def measured(probs, labels, **options):
    reduction = "positive" if probs.ndim == 1 else "top-label"
    data = calviz.Predictions(probs=probs, labels=labels)
    return calviz.conventions(data, reduction=reduction, noise=False, **options)


def events(probs, labels):
    """Score and event that a library's binary function is given by hand."""
    if probs.ndim == 1:
        return probs, labels
    return probs.max(axis=1), (probs.argmax(axis=1) == labels).astype(int)


def sklearn_weighted(probs, labels):
    # The curve leaves the rows out; they are counted between the same edges.
    score, hit = events(probs, labels)
    accuracy, mean = calibration_curve(hit, score, pos_label=1)
    rows = np.bincount(np.searchsorted(np.linspace(0, 1, 6)[1:-1], score))
    return np.average(np.abs(accuracy - mean), weights=rows[rows > 0])


def sklearn_unweighted(probs, labels):
    score, hit = events(probs, labels)
    accuracy, mean = calibration_curve(hit, score, pos_label=1)
    return np.abs(accuracy - mean).mean()


def mapie(probs, labels):
    score, hit = events(probs, labels)
    return expected_calibration_error(hit, score)


def pycalib_one(probs, labels):
    if probs.ndim == 1:
        return pycalib.metrics.binary_ECE(labels, probs)
    return pycalib.metrics.conf_ECE(labels, probs)


def two_columns(probs):
    return np.stack([1 - probs, probs], axis=1) if probs.ndim == 1 else probs


def one_hot(probs, labels):
    return np.eye(probs.shape[1])[labels]


LIVE = {
    "sklearn": sklearn_weighted,
    "sklearn_unweighted": sklearn_unweighted,
    "mapie": mapie,
    "mapie_top_label": lambda p, y: top_label_ece(y, two_columns(p)),
    "uncertainty_calibration": calibration.get_ece,
    "uncertainty_calibration_l2": calibration.get_calibration_error,
    "pycalib": pycalib_one,
    "pycalib_full": lambda p, y: pycalib.metrics.ECE(y, p),
    "pycalib_classwise": lambda p, y: pycalib.metrics.classwise_ECE(
        one_hot(two_columns(p), y), two_columns(p)
    ),
    "relplot": lambda p, y: relplot.smECE(*(v.astype(float) for v in events(p, y))),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("key", LIVE)
def test_against_the_library_itself(key, name):
    probs, labels = CASES[name]
    ours = measured(probs, labels)[key]
    if key == "pycalib_full" and two_columns(probs).shape[1] == 2:
        assert "two classes" in ours.reason
        return
    assert ours.value == pytest.approx(LIVE[key](probs, labels), abs=1e-12)


@pytest.mark.parametrize("name", RECORDED["values"])
def test_against_recorded_values(name):
    case, dtype = name.rsplit(", ", 1)
    probs, labels = CASES[case]
    ours = measured(probs.astype(dtype), labels)
    for key, theirs in RECORDED["values"][name].items():
        if isinstance(theirs, str):  # what the library says instead of a number
            assert ours[key].reason.startswith("not available")
        else:
            assert ours[key].value == pytest.approx(theirs, abs=1e-6 if key in SINGLE else 1e-12)


def test_every_convention_is_checked_with_the_version_that_it_names():
    recorded = RECORDED["versions"]
    assert {c.key for c in CONVENTIONS} == {*LIVE, "netcal", *SINGLE}
    for convention in CONVENTIONS:
        if convention.library in recorded:
            assert convention.version == recorded[convention.library]
        else:
            # Newer ones are welcome: the values above decide.
            major = version(convention.library).split(".")[0]
            assert convention.version.split(".")[0] == major


def test_the_inputs_are_where_conventions_part():
    one, _ = CASES["binary, one column"]
    assert {0.0, 1.0, 0.3, 1 / 15, 0.6} <= set(one.tolist())
    values = [v.value for v in measured(*CASES["binary, one column"]) if v.available]
    assert len({round(v, 6) for v in values}) > 7


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_edges_counted_from_both_ends(dtype):
    # The seven edges below the middle come from 0, those above from 1.
    edges = torch_linspace(15, np.dtype(dtype))
    step = dtype(1) / dtype(15)
    assert edges.dtype == dtype
    assert edges[[0, 3, 12, 15]].tolist() == [0, 3 * step, 1 - 3 * step, 1]


def test_pycalib_takes_labels_of_other_rows_for_two_classes():
    # These are perfect, and a correct mean gap would be 0.
    assert pycalib.metrics.ECE(np.array([0, 0, 1, 1]), np.eye(2)[[0, 0, 1, 1]]) > 0.1


def test_own_ece_is_the_metric_and_differences_are_to_it():
    probs, labels = CASES["ten classes"]
    data = calviz.Predictions(probs=probs, labels=labels)
    for scheme, key in (("equal-width", "ece"), ("equal-mass", "ece_equal_mass")):
        conventions = calviz.conventions(data, bins=7, scheme=scheme, noise=False)
        assert conventions.ece == calviz.evaluate(data, [key], bins=7)[key].value
        frame = conventions.frame()
        assert frame.index.tolist() == list(CONVENTIONS.keys())
        np.testing.assert_allclose(frame["difference"], frame["value"] - conventions.ece)
        assert conventions.span == (min(frame["value"]), max(frame["value"]))
        assert conventions.redraws == 0


def test_other_reductions_are_binary_problems():
    probs, labels = CASES["ten classes, tied"]
    data = calviz.Predictions(probs=probs, labels=labels)
    conventions = calviz.conventions(data, reduction="class:3", noise=False)
    score, hit = probs[:, 3], (labels == 3).astype(int)
    alone = measured(score, hit)
    assert conventions["pycalib_classwise"].value > 0  # of all classes, whatever the reduction
    for key in ("mapie", "netcal", "torchmetrics", "pycalib", "relplot", "sklearn"):
        assert conventions[key].value == alone[key].value
    assert conventions["uncertainty_calibration_l2"].value == pytest.approx(
        calibration.get_calibration_error(score, hit), abs=1e-12
    )


def test_confidence_only():
    probs, labels = CASES["three classes"]
    score, hit = events(probs, labels)
    data = calviz.ConfidencePredictions(confidence=score, correct=hit)
    conventions, full = calviz.conventions(data), measured(probs, labels)
    missing = {v.convention.key for v in conventions if not v.available}
    assert missing == {"mapie_top_label", "pycalib_full", "pycalib_classwise"}
    for key in ("mapie", "netcal", "torchmetrics", "pycalib", "relplot", "sklearn"):
        assert conventions[key].value == full[key].value
    named = calviz.ConfidencePredictions(
        confidence=score, correct=hit, labels=labels, predicted=probs.argmax(axis=1)
    )
    top = calviz.conventions(named, noise=False)["mapie_top_label"]
    assert top.value == full["mapie_top_label"].value


@pytest.mark.usefixtures("usual_resamples")
@pytest.mark.slow
def test_noise_is_the_mean_for_a_calibrated_model():
    # With all scores 1/2 and one bin the gap is half the distance of a coin's share from a half.
    data = calviz.Predictions(probs=np.full(400, 0.5), labels=np.arange(400) % 2)
    conventions = calviz.conventions(data, reduction="positive", seed=3)
    expected = np.sqrt(2 / np.pi) * np.sqrt(0.25 / 400)
    assert conventions.redraws == 30
    for key in ("mapie", "sklearn", "torchmetrics", "netcal", "pycalib"):
        assert conventions[key].noise == pytest.approx(expected, rel=0.3)
    assert conventions.noise == pytest.approx(expected, rel=0.3)
    again = calviz.conventions(data, reduction="positive", seed=3)
    assert again.frame().equals(conventions.frame())


@pytest.mark.usefixtures("usual_resamples")
@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["equal-width", "equal-mass"])
@pytest.mark.parametrize("resamples", [200, 1_000])
def test_what_the_same_ece_would_be_is_one_number(scheme, resamples):
    probs, labels = CASES["ten classes"]
    data = calviz.Predictions(probs=probs, labels=labels)
    same = {"bins": 12, "scheme": scheme, "seed": 4, "resamples": resamples}
    floor = calviz.evaluate(data, ["ece"], noise_floor=True, **same)["ece"].noise_floor
    conventions = calviz.conventions(data, **same)
    assert conventions.noise == floor.mean
    drawn = FIGURES["conventions"].compute(data, bins=12, scheme=scheme, seed=4).conventions
    assert (drawn.noise == floor.mean) == (resamples == 1_000)


def test_a_library_with_the_same_value_has_the_same_mean():
    # Scores on no edge: netcal's 10 bins are calviz's with 10 bins, whatever was drawn.
    rng = np.random.default_rng(0)
    score = rng.random(500) * 0.8 + 0.1003
    data = calviz.Predictions(probs=score, labels=rng.random(500) < score)
    conventions = calviz.conventions(data, bins=10)
    same = [
        v
        for v in conventions
        if v.available and v.value == pytest.approx(conventions.ece, rel=1e-9)
    ]
    assert same
    for v in same:
        assert v.noise == pytest.approx(conventions.noise, rel=1e-9), v.convention.key


def test_large_data_go_without_redraws():
    probs = np.tile(CASES["ten classes"][0], (100, 1))
    labels = np.tile(CASES["ten classes"][1], 100)
    conventions = calviz.conventions(calviz.Predictions(probs=probs, labels=labels))
    assert conventions.redraws == 0
    assert all(np.isnan(v.noise) for v in conventions)
    # Means do not change where every row is there a hundred times.
    assert conventions["mapie"].value == pytest.approx(
        measured(*CASES["ten classes"])["mapie"].value
    )
