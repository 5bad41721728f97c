"""Metrics against light peers on data without ties; where a peer means something else, how the two are related."""

import numpy as np
import pycalib.metrics
import pytest
from mapie.metrics import calibration as mapie
from model_diagnostics.calibration import compute_bias
from model_diagnostics.scoring import LogLoss, SquaredError, decompose

import calviz
from tests.inputs.simulated import draw_labels

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
    z = mapie.spiegelhalter_statistic(hit, score)
    assert ours.value == pytest.approx(z, abs=1e-12)
    # MAPIE's is one-sided: a model whose Brier score is too good has a p near 1.
    one_sided = mapie.spiegelhalter_p_value(hit, score)
    assert ours.details["p_value"] == pytest.approx(2 * min(one_sided, 1 - one_sided), abs=1e-9)


def test_ks_against_mapie():
    score, hit = binary()
    (ks,) = values(score, hit, ["ks"])
    # MAPIE divides by the standard deviation of the sum under calibration, and jitters by 1e-8.
    statistic = mapie.kolmogorov_smirnov_statistic(hit, score)
    deviation = np.sqrt((score * (1 - score)).sum()) / score.size
    assert ks == pytest.approx(statistic * deviation, abs=1e-8)


@pytest.mark.parametrize("bins", [2, 10, 15])
def test_binned_against_mapie_and_pycalib(bins):
    score, hit = binary()
    ece, mce = values(score, hit, ["ece", "mce"], bins=bins)
    # MAPIE counts edges, not bins.
    theirs = mapie.expected_calibration_error(hit, score, num_bins=bins + 1)
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
        mapie.expected_calibration_error(right, probs, num_bins=16), abs=1e-12
    )
    theirs = mapie.expected_calibration_error(
        right, probs, num_bins=16, classwise=True, class_labels=labels
    )
    assert classwise == pytest.approx(theirs, abs=1e-12)
    assert classwise == pytest.approx(pycalib.metrics.classwise_ECE(one_hot, probs), abs=1e-12)
    # pycalib averages the squares over the classes, where we sum.
    per_class = pycalib.metrics.brier_score(one_hot, probs)
    assert brier == pytest.approx(probs.shape[1] * per_class, abs=1e-12)
    assert nll == pytest.approx(pycalib.metrics.cross_entropy(one_hot, probs), abs=1e-12)
    assert accuracy == pycalib.metrics.accuracy(one_hot, probs)
