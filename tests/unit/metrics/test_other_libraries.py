"""Metrics as other libraries compute them."""

import json
import math
import re
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import calibration
import numpy as np
import pycalib.metrics
import pytest
import relplot
from mapie.metrics import calibration as mapie_of_against_peers
from mapie.metrics.calibration import expected_calibration_error, top_label_ece
from model_diagnostics.calibration import compute_bias
from model_diagnostics.scoring import LogLoss, SquaredError, decompose
from sklearn.calibration import calibration_curve

import calviz
from benchmarks.record_conventions import cases
from calviz.core.entry_specs import (
    CONVENTIONS,
    FAMILIES,
    FIGURES,
    METRICS,
    MetricRegistry,
    is_of_steps,
)
from calviz.core.errors import NotAvailable
from calviz.core.predictions import Predictions
from calviz.metrics.other_libraries import torch_linspace
from calviz.sample.sample import Sample, metric_view
from calviz.sample.steps import Steps
from tests.inputs.simulated import draw_labels

# ---- Every convention against the library whose convention it is, on ties, edges of bins, exact 0 and 1


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


def sklearn_quantile(probs, labels):
    # What 1.12 is to draw by default, asked of today's version by its options.
    score, hit = events(probs, labels)
    bins = int(np.ceil(len(hit) ** (1 / 3)))
    accuracy, mean = calibration_curve(hit, score, pos_label=1, n_bins=bins, strategy="quantile")
    inner = np.percentile(score, np.linspace(0, 1, bins + 1) * 100)[1:-1]
    rows = np.bincount(np.searchsorted(inner, score))
    return np.average(np.abs(accuracy - mean), weights=rows[rows > 0])


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
    "sklearn_quantile": sklearn_quantile,
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
def test_against_the_library_itself(name):
    probs, labels = CASES[name]
    ours = measured(probs, labels)
    for key, theirs in LIVE.items():
        if key == "pycalib_full" and two_columns(probs).shape[1] == 2:
            assert "two classes" in ours[key].reason
        else:
            assert ours[key].value == pytest.approx(theirs(probs, labels), abs=1e-12), key


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
    assert {c.key for c in CONVENTIONS} == {*LIVE, "netcal", *SINGLE, "hle", "hle_all_bins"}
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


def test_hle_leaves_out_its_last_bin_by_hand():
    # Bins of 100 rows: 100 rows of 0.2 with 40 hits, 100 of 0.5 with 50, and 150 of 0.9 with 60, which are the last bin.
    score = np.repeat([0.9, 0.2, 0.5], [150, 100, 100])
    hit = np.concatenate([np.arange(n) < k for n, k in ((150, 60), (100, 40), (100, 50))])
    data = calviz.ConfidencePredictions(confidence=score, correct=hit)
    of = calviz.conventions(data, noise=False)
    assert of["hle"].value == pytest.approx(np.sqrt(100 / 350 * 0.2**2))
    assert of["hle_all_bins"].value == pytest.approx(
        np.sqrt(100 / 350 * 0.2**2 + 150 / 350 * 0.5**2)
    )
    # With one bin nothing is left, and the function fails without any.
    for rows, why in ((150, "leaves out the only bin"), (99, "fewer than 100 rows")):
        few = calviz.ConfidencePredictions(confidence=score[:rows], correct=hit[:rows])
        of = calviz.conventions(few, noise=False)
        assert why in of["hle"].reason
        assert of["hle_all_bins"].value == pytest.approx(abs(0.9 - hit[:rows].mean()))


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


# ---- Metrics against light peers on data without ties; where a peer means something else, how the two are related


CORP = ("brier_miscalibration", "brier_discrimination", "brier_uncertainty")


def binary(n=700, seed=0, decimals=None):
    rng = np.random.default_rng(seed)
    score = rng.uniform(0.01, 0.99, size=n)
    hit = (rng.random(n) < score**1.5).astype(int)
    return (score if decimals is None else np.round(score, decimals)), hit


def multiclass(n=400, k=4, seed=1):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(k, 0.6), size=n)
    return probs, draw_labels(probs**0.8, rng)


def values(probs, labels, keys, reduction="positive", **options):
    data = calviz.Predictions(probs=probs, labels=labels)
    evaluation = calviz.evaluate(data, keys, reduction=reduction, **options)
    return [evaluation[key].value for key in keys]


@pytest.mark.parametrize("decimals", [None, 2, 1])
def test_corp_decomposition_against_model_diagnostics(decimals):
    score, hit = binary(decimals=decimals)
    theirs = decompose(hit, score, scoring_function=SquaredError()).row(0, named=True)
    names = ("miscalibration", "discrimination", "uncertainty")
    assert values(score, hit, CORP) == pytest.approx([theirs[name] for name in names], abs=1e-12)
    # Ours sums over both classes.
    (brier,) = values(score, hit, ["brier"])
    assert brier == pytest.approx(2 * theirs["score"], abs=1e-12)


@pytest.mark.parametrize("decimals", [None, 2, 1])
def test_corp_of_the_log_loss_against_model_diagnostics(decimals):
    score, hit = binary(decimals=decimals)
    score = np.clip(score, 0.01, 0.99)
    theirs = decompose(hit, score, scoring_function=LogLoss()).row(0, named=True)
    names = ("miscalibration", "discrimination", "uncertainty")
    ours = values(score, hit, [f"nll_{name}" for name in names])
    assert ours == pytest.approx([theirs[name] for name in names], abs=1e-12)
    (nll,) = values(score, hit, ["nll"])
    assert nll == pytest.approx(ours[0] - ours[1] + ours[2], abs=1e-12)


def test_nll_against_model_diagnostics():
    score, hit = binary()
    (nll,) = values(score, hit, ["nll"])
    assert nll == pytest.approx(LogLoss()(hit, score), abs=1e-12)


@pytest.mark.filterwarnings("ignore:the string cache:DeprecationWarning")  # of polars, in the peer
def test_mcs_against_the_bias_of_model_diagnostics():
    score, hit = binary()
    (mcs,) = values(score, hit, ["mcs"])
    # Its identification function is prediction minus observation.
    bias = compute_bias(y_obs=hit, y_pred=score)
    assert mcs == pytest.approx(bias["bias_mean"][0], abs=1e-12)


def test_spiegelhalter_against_mapie():
    score, hit = binary()
    data = calviz.Predictions(probs=score, labels=hit)
    ours = calviz.evaluate(data, ["spiegelhalter_z"], reduction="positive")["spiegelhalter_z"]
    z = mapie_of_against_peers.spiegelhalter_statistic(hit, score)
    assert ours.value == pytest.approx(z, abs=1e-12)
    # MAPIE's is one-sided: a model whose Brier score is too good has a p near 1.
    one_sided = mapie_of_against_peers.spiegelhalter_p_value(hit, score)
    assert ours.details["p_value"] == pytest.approx(2 * min(one_sided, 1 - one_sided), abs=1e-9)


def test_ks_against_mapie():
    score, hit = binary()
    (ks,) = values(score, hit, ["ks"])
    # MAPIE divides by the standard deviation of the sum under calibration, and jitters by 1e-8.
    statistic = mapie_of_against_peers.kolmogorov_smirnov_statistic(hit, score)
    deviation = np.sqrt((score * (1 - score)).sum()) / score.size
    assert ks == pytest.approx(statistic * deviation, abs=1e-8)


@pytest.mark.parametrize("bins", [2, 10, 15])
def test_binned_against_mapie_and_pycalib(bins):
    score, hit = binary()
    ece, mce = values(score, hit, ["ece", "mce"], bins=bins)
    # MAPIE counts edges, not bins.
    theirs = mapie_of_against_peers.expected_calibration_error(hit, score, num_bins=bins + 1)
    assert ece == pytest.approx(theirs, abs=1e-12)
    assert ece == pytest.approx(pycalib.metrics.binary_ECE(hit, score, bins=bins), abs=1e-12)
    assert mce == pytest.approx(pycalib.metrics.binary_MCE(hit, score, bins=bins), abs=1e-12)


def test_all_classes_against_mapie_and_pycalib():
    probs, labels = multiclass()
    keys = ["ece", "classwise_ece", "brier", "nll", "accuracy"]
    ece, classwise, brier, nll, accuracy = values(probs, labels, keys, "top-label")
    right = (probs.argmax(axis=1) == labels).astype(int)
    one_hot = np.eye(probs.shape[1])[labels]
    assert ece == pytest.approx(
        mapie_of_against_peers.expected_calibration_error(right, probs, num_bins=16), abs=1e-12
    )
    theirs = mapie_of_against_peers.expected_calibration_error(
        right, probs, num_bins=16, classwise=True, class_labels=labels
    )
    assert classwise == pytest.approx(theirs, abs=1e-12)
    assert classwise == pytest.approx(pycalib.metrics.classwise_ECE(one_hot, probs), abs=1e-12)
    # pycalib averages the squares over the classes, where we sum.
    per_class = pycalib.metrics.brier_score(one_hot, probs)
    assert brier == pytest.approx(probs.shape[1] * per_class, abs=1e-12)
    assert nll == pytest.approx(pycalib.metrics.cross_entropy(one_hot, probs), abs=1e-12)
    assert accuracy == pycalib.metrics.accuracy(one_hot, probs)


# ---- What every metric declares


def test_declares_what_the_app_shows():
    for metric in METRICS:
        low, high = metric.bounds
        assert metric.family in FAMILIES, metric.key
        assert metric.label, metric.key
        assert metric.reference, metric.key
        assert metric.summary.endswith("."), metric.key
        assert "\n" not in metric.summary, metric.key
        assert low < high, metric.key
        assert metric.direction != "zero" or low == -high, metric.key
        assert metric.direction != "higher" or math.isfinite(high), metric.key


def test_formula_is_balanced_latex():
    # Only commands that KaTeX has.
    known = {"frac", "sum", "mathbf", "mathrm", "hat", "neq", "log", "left", "right", "sqrt"}
    known |= {"overline", "max", "min", "int", "hat", "cdot", "lvert", "rvert", "text", "bar"}
    known |= {"pi", "sigma", "epsilon", "tilde", "dots", "forall", "le", "ge", "ne", "arg", "top"}
    known |= {"ln", "Big", "tfrac", "quad", "ell"}
    for formula in (m.formula for m in METRICS):
        assert formula.count("{") == formula.count("}"), formula
        assert len(re.findall(r"\\left", formula)) == len(re.findall(r"\\right", formula)), formula
        assert set(re.findall(r"\\([a-zA-Z]+)", formula)) <= known, formula
        assert formula.isascii(), formula


def test_a_view_names_the_fields_that_differ_between_resamples():
    rng = np.random.default_rng(0)
    probs, labels = rng.dirichlet(np.ones(2), 80), rng.integers(0, 2, 80)
    seen = set()
    for metric in METRICS:
        try:
            view = metric_view(Sample(Predictions(probs=probs, labels=labels)), metric)
            drawn = view.bootstrap(rng, 20)
        except NotAvailable:
            continue
        assert view.DRAWN, metric.key
        for name in view.DRAWN:
            one, several = getattr(view, name), getattr(drawn, name)
            drawn_too = not isinstance(one, np.ndarray) or np.ndim(several) == np.ndim(one) + 1
            assert drawn_too, (metric.key, name)
        seen.add(metric.key)
    assert len(seen) > 70


def test_a_metric_that_leaves_steps_in_memory_says_so():
    # Such metrics are evaluated last (`calviz.sample.metric_results`).
    probs = np.random.default_rng(0).dirichlet(np.ones(3), 80)
    for metric in METRICS:
        sample = Sample(Predictions(probs=probs, labels=np.arange(80) % 3))
        metric.value(metric_view(sample, metric))
        left = any(isinstance(value, Steps) for value in sample.cache.values())
        assert left == is_of_steps(metric.view), metric.key


def test_families_come_in_their_order():
    families = [m.family for m in METRICS]
    assert families == sorted(families, key=FAMILIES.index)


def of_a_plugin(view):
    return view.mean_gap


def test_a_metric_of_a_plugin_comes_last_in_its_family():
    registry = MetricRegistry("metric")
    ece = METRICS["ece"]
    for metric in (
        replace(ece, key="of_a_plugin", value=of_a_plugin),
        METRICS["mcs"],
        ece,
        METRICS["ece_sweep"],
    ):
        registry.register(metric)
    assert registry.keys() == ("ece", "ece_sweep", "of_a_plugin", "mcs")


def test_an_unknown_family_comes_last():
    registry = MetricRegistry("metric")
    ece = METRICS["ece"]
    registry.register(replace(ece, key="strange", family="Strange"))
    registry.register(ece)
    assert registry.keys() == ("ece", "strange")
