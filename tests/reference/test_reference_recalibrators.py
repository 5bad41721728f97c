"""What other implementations fit."""

import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from calviz.core.entry_specs import RECALIBRATORS
from calviz.core.events import BinaryEvents
from calviz.metrics.cumulative import ks
from calviz.sample.steps import make_steps

from . import samples
from .samples import losses

# ---- Our recalibrators against independent implementations, on the sample data and on real predictions
#
# Values on the sample data are recorded by ``benchmarks/record_sample_data.py``, of libraries or from the published equations
# (``written_objectives.py``); more libraries, on predictions of larger networks, have
# theirs in a folder `shared` beside the checkout, where there is one. What only these have is compared with
# recorded values in ``test_recorded_peers.py`` too. Where a peer stops early or clips, ours has to be at least as good on the objective.


SHARED = Path(__file__).resolve().parents[2].parent / "shared"
FILE = SHARED / "reference" / "reference.json"

BESIDE = json.loads(FILE.read_text()) if FILE.exists() else {}
RECORDED = json.loads(
    (Path(__file__).parent / "recorded_sample_data.json").read_text(encoding="utf-8")
)["values"]
REFERENCE = RECORDED | BESIDE
MULTI = ("netcal_cifar10_wrn16_4", "netcal_cifar100_wrn16_4", "plambda_cifar10_vgg")
BINARY = ("fte_nba_games", "adult_rf")
beside = pytest.mark.skipif(not BESIDE, reason="only of the data beside the checkout")


def having(*entries):
    """The data sets that have one of these values."""
    return [n for n in REFERENCE if any(f"recal:{entry}" in REFERENCE[n] for entry in entries)]


EPS = 2.220446049250313e-16
#: Entries that are not compared here, with the reason.
NOT_COMPARED = {
    r"recal:temperature_guo@.*": "stops at 50 small steps, short of the optimum",
    r"recal:temperature_ece_grid@.*": "another objective: the ECE on a grid",
    r"recal:vector@torch-uncertainty": "its vector scaling has no offsets",
    r"recal:temperature_nll@torch-uncertainty": "float32 and L-BFGS: within 0.2 %, others are exact",
    r"recal:hist_top1_em15@.*": "binning of the confidence alone",
    r"recal:hist_ova_e.*@netcal": "what it makes of empty bins is its own; checked for NBA, without them",
    r"recal:hist_ew.*@netcal": "left-closed bins: equal only where no score lies on an edge (NBA)",
    r"recal:hist_em10@netcal": "fails on these data",
    r"recal:bbq.*@netcal": "BIC or AIC in place of the marginal likelihood",
    r"recal:beta_ova@netcal": "one multinomial fit with weights per class, another model",
    r"recal:beta_a[bm]@betacal": "the restricted beta families",
    r"recal:isotonic_ova@netcal": "as IROvA of Mix-n-Match, without its epsilon",
    r"recal:isotonic@netcal": "scikit-learn's inside",
    r"recal:spline_top2@.*": "the second class alone; its sum with the first one is compared",
}


@cache
def load(name):
    """Probabilities and labels of the calibration rows, and of the test rows."""
    if name in samples.SETS:
        p, y, split = samples.rows(*samples.SETS[name])
        fit, test = split == "calibration", split == "test"
        return p[fit], y[fit], p[test], y[test]
    if name == "fte_nba_games":
        table = pd.read_csv(SHARED / "data" / "fivethirtyeight" / "nba_games.csv")
        p, y = table["prob1"].to_numpy(), table["prob1_outcome"].to_numpy().astype(int)
        p = np.stack([1 - p, p], axis=1)
        return p[::2], y[::2], p[1::2], y[1::2]
    if name == "adult_rf":
        table = pd.read_csv(SHARED / "data" / "adult" / "y_and_p.csv", header=None)
        p, y = table[1].to_numpy(), (table[0] == 1).to_numpy().astype(int)
        p = np.stack([1 - p, p], axis=1)
    else:
        path = {
            "netcal_cifar10_wrn16_4": "netcal_cifar/wideresnet-16-4-cifar-10.npz",
            "netcal_cifar100_wrn16_4": "netcal_cifar/wideresnet-16-4-cifar-100.npz",
            "plambda_cifar10_vgg": "verified_calibration/cifar10_vgg.npz",
        }[name]
        with np.load(SHARED / "data" / path) as file:
            arrays = sorted((file[key].squeeze() for key in file.files), key=lambda a: a.ndim)
        y, p = arrays[0].astype(int), arrays[1]
    half = y.size // 2
    return p[:half], y[:half], p[half:], y[half:]


def value(name, entry):
    return REFERENCE[name][f"recal:{entry}"]["value"]


@cache
def fitted(name, key, **options):
    p, y, _, _ = load(name)
    return RECALIBRATORS[key].make(**options).fit(p, y)


def nll(p, y):
    return float(-np.log(np.maximum(p[np.arange(y.size), y].astype(float), EPS)).mean())


def on_test(name, key, **options):
    _, _, p, y = load(name)
    return fitted(name, key, **options).transform(p), y


@beside
@pytest.mark.parametrize("name", MULTI)
@pytest.mark.parametrize(
    ("key", "entry"),
    [
        ("temperature", "temperature_nll@mix-n-match"),
        ("temperature-mse", "temperature_mse@mix-n-match"),
    ],
)
def test_temperatures(name, key, entry):
    wanted = value(name, entry)["params"]["T"]
    assert fitted(name, key).temperature_ == pytest.approx(wanted, rel=1e-6)


@beside
@pytest.mark.parametrize("name", MULTI)
def test_temperature_by_bisection_in_double_precision(name):
    wanted = value(name, "temperature_nll@probmetrics")["params"]["T"]
    assert fitted(name, "temperature").temperature_ == pytest.approx(wanted, rel=2e-7)
    p, y, _, _ = load(name)
    double = RECALIBRATORS["temperature"].make().fit(p.astype(float), y)
    assert double.temperature_ == pytest.approx(wanted, rel=2e-7)


@beside
@pytest.mark.parametrize("name", MULTI)
def test_temperature_is_as_good_as_netcals(name):
    """netcal clips at the machine epsilon and stops early."""
    p, y, _, _ = load(name)
    other = value(name, "temperature_nll@netcal")["params"]["T"]
    z = np.log(p.astype(float)) / other
    theirs = nll(np.exp(z) / np.exp(z).sum(axis=1, keepdims=True), y)
    assert nll(fitted(name, "temperature").transform(p.astype(float)), y) <= theirs + 1e-12


@pytest.mark.parametrize("name", having("temperature@netcal", "temperature@sklearn"))
def test_temperature_of_two_classes(name):
    peer = "sklearn" if name in samples.SETS else "netcal"
    wanted = value(name, f"temperature@{peer}")["params"]["T"]
    assert fitted(name, "temperature", floor=EPS).temperature_ == pytest.approx(wanted, rel=1e-4)


@beside
@pytest.mark.parametrize("name", MULTI)
@pytest.mark.parametrize("peer", ["mix-n-match", "probmetrics"])
def test_ets(name, peer):
    wanted = value(name, f"ets_mse@{peer}")
    recalibrator = fitted(name, "ets")
    np.testing.assert_allclose(recalibrator.weights_, wanted["params"]["w"], atol=1e-5)
    out, y = on_test(name, "ets")
    assert nll(out, y) == pytest.approx(wanted["test"]["nll"], rel=1e-5)


@beside
@pytest.mark.parametrize("name", MULTI)
def test_ets_by_likelihood(name):
    wanted = value(name, "ets_ce@probmetrics")
    recalibrator = fitted(name, "ets", loss="nll")
    np.testing.assert_allclose(recalibrator.weights_, wanted["params"]["w"], atol=2e-4)
    out, y = on_test(name, "ets", loss="nll")
    assert nll(out, y) == pytest.approx(wanted["test"]["nll"], rel=1e-5)


@pytest.mark.parametrize("name", having("irova@sklearn"))
def test_isotonic_maps_of_every_class(name):
    test = value(name, "irova@sklearn")["test"]
    out, y = on_test(name, "isotonic", cap=False)
    assert nll(out, y) == pytest.approx(test["nll"], rel=2e-5)
    assert (out.argmax(axis=1) == y).mean() == pytest.approx(test["accuracy"], abs=1e-3)


@beside
@pytest.mark.parametrize("name", MULTI)
@pytest.mark.parametrize(
    ("key", "entry"),
    [
        ("irm", "irm@mix-n-match"),
        ("isotonic", "irova@mix-n-match"),
        ("temperature-mse+isotonic", "irova_ts@mix-n-match"),
    ],
)
def test_isotonic_maps(name, key, entry):
    test = value(name, entry)["test"]
    out, y = on_test(name, key, cap=False)
    # scikit-learn takes float32 scores closer than 1e-6 for tied, which moves single rows.
    assert nll(out, y) == pytest.approx(test["nll"], rel=2e-5)
    assert (out.argmax(axis=1) == y).mean() == pytest.approx(test["accuracy"], abs=1e-3)


@pytest.mark.parametrize("name", having("isotonic@sklearn"))
def test_isotonic_of_two_classes(name):
    out, _ = on_test(name, "isotonic", cap=False)
    wanted = value(name, "isotonic@sklearn")["first5"]
    np.testing.assert_allclose(out[:5, 1], wanted, atol=2e-9)
    assert (
        fitted(name, "isotonic", cap=False).describe()["points"]
        == (value(name, "isotonic@sklearn")["params"]["n_thresholds"])
    )


@beside
@pytest.mark.parametrize("name", MULTI)
@pytest.mark.parametrize("peer", ["netcal", "probmetrics", "dirichletcal"])
def test_vector_scaling(name, peer):
    if f"recal:vector@{peer}" not in REFERENCE[name]:
        pytest.skip("no such entry")
    out, y = on_test(name, "vector")
    assert nll(out, y) == pytest.approx(value(name, f"vector@{peer}")["test"]["nll"], rel=1e-4)


@pytest.mark.parametrize("name", having("dirichlet@dirichletcal", "dirichlet@sklearn"))
def test_dirichlet_without_penalties(name):
    peer = "sklearn" if name in samples.SETS else "dirichletcal"
    wanted = value(name, f"dirichlet@{peer}")
    p, y, _, _ = load(name)
    ours = nll(fitted(name, "dirichlet").transform(p.astype(float)), y)
    assert ours <= wanted["params"]["cal_logloss"] + 2e-6
    out, y = on_test(name, "dirichlet")
    assert nll(out, y) == pytest.approx(wanted["test"]["nll"], rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", having("dirichlet_odir1e-3@dirichletcal"))
def test_dirichlet_odir_at_its_strengths(name):
    """dirichletcal adds lambda times the sum of squares, not their mean, and fixes the last row at zero."""
    wanted = value(name, "dirichlet_odir1e-3@dirichletcal")
    k = load(name)[0].shape[1]
    out, y = on_test(name, "dirichlet-odir", off_diagonal=1e-3 * k * (k - 1), intercept=1e-3 * k)
    assert nll(out, y) == pytest.approx(wanted["test"]["nll"], rel=2e-2)
    chosen, _ = on_test(name, "dirichlet-odir")
    assert nll(chosen, y) <= wanted["test"]["nll"] + 1e-4


@beside
@pytest.mark.parametrize("name", MULTI)
@pytest.mark.parametrize("r", [1, 2])
def test_splines(name, r):
    entry = value(
        name,
        "spline_top1@spline-calibration" if r == 1 else "spline_within_top2@spline-calibration",
    )
    mode = "top-label" if r == 1 else "within-top-r"
    out, y = on_test(name, "spline", mode=mode, r=2)
    p = load(name)[2]
    top = np.argsort(-p, axis=1, kind="stable")[:, :r]
    score = out[np.arange(y.size)[:, None], top].sum(axis=1)
    hit = (top == y[:, None]).any(axis=1)
    # The peer breaks ties at random, and its fractiles run from 0: a few parts in ten thousand.
    tolerance = 3e-3 if name == "netcal_cifar10_wrn16_4" else 5e-4
    np.testing.assert_allclose(score[:5], entry["first5"], atol=tolerance)
    assert score.mean() == pytest.approx(entry["test"]["mean_conf"], abs=3e-4)
    assert ks(make_steps(BinaryEvents(score, hit))) == pytest.approx(
        entry["test"]["ks_top1"], abs=3e-4
    )


@pytest.mark.parametrize("name", having("platt@uncertainty-calibration"))
def test_platt_without_smoothed_labels(name):
    wanted = value(name, "platt@uncertainty-calibration")["params"]
    coefficients = fitted(name, "affine", floor=1e-12).coefficients_[:, 0]
    # The peer stops at scikit-learn's default tolerance.
    np.testing.assert_allclose(coefficients, [wanted["a"], wanted["b"]], rtol=6e-4)
    p, y, _, _ = load(name)
    log_odds = np.log(np.maximum(p[:, 1], 1e-12)) - np.log(np.maximum(p[:, 0], 1e-12))

    def loss(a, b):
        margin = a * log_odds + b
        return (np.logaddexp(0, margin) - y * margin).sum()

    assert loss(*coefficients) <= loss(wanted["a"], wanted["b"]) + 1e-9


@pytest.mark.parametrize("name", having("beta_abm@betacal"))
def test_beta(name):
    a, b, m = value(name, "beta_abm@betacal")["params"]["map"]
    p, y, _, _ = load(name)
    log_p, log_rest = (np.log(np.clip(v, EPS, 1 - EPS)) for v in (p[:, 1], p[:, 0]))

    def loss(slope_p, slope_rest, c):
        margin = slope_p * log_p - slope_rest * log_rest + c
        return (np.logaddexp(0, margin) - y * margin).sum()

    coefficients = fitted(name, "beta", floor=EPS).coefficients_[:, 0]
    assert loss(*coefficients) <= loss(a, b, b * np.log(1 - m) - a * np.log(m)) + 1e-4
    out, y = on_test(name, "beta", floor=EPS)
    assert nll(out, y) == pytest.approx(value(name, "beta_abm@betacal")["test"]["nll"], rel=1e-4)


@beside
def test_equal_width_histogram():
    for bins in (10, 15):
        out, y = on_test("fte_nba_games", "histogram", bins=bins, cap=False)
        wanted = value("fte_nba_games", f"hist_ew{bins}@netcal")
        np.testing.assert_allclose(out[:5, 1], wanted["first5"], atol=2e-9)
        if bins == 10:  # with 15 there is an empty bin, which the peer fills otherwise
            assert nll(out, y) == pytest.approx(wanted["test"]["nll"], rel=1e-7)


@pytest.mark.parametrize("name", having("hist_em10@uncertainty-calibration"))
def test_equal_mass_histogram(name):
    out, y = on_test(name, "histogram", bins=10, scheme="equal-mass", cap=False)
    wanted = value(name, "hist_em10@uncertainty-calibration")
    np.testing.assert_allclose(out[:5, 1], wanted["first5"], atol=2e-9)
    assert nll(out, y) == pytest.approx(wanted["test"]["nll"], rel=1e-7)


@pytest.mark.parametrize("name", having("platt_binner10@uncertainty-calibration"))
def test_scaling_binning(name):
    out, y = on_test(name, "scaling-binning", base="affine", bins=10, floor=1e-12)
    wanted = value(name, "platt_binner10@uncertainty-calibration")
    np.testing.assert_allclose(out[:5, 1], wanted["first5"], atol=1e-4)
    # The peer's slope is not quite at the optimum, which moves single rows of the sample into the bin beside.
    rel = 2e-5 if name in samples.SETS else 1e-6
    assert nll(out, y) == pytest.approx(wanted["test"]["nll"], rel=rel)


@pytest.mark.slow
@beside
@pytest.mark.parametrize("name", ["netcal_cifar10_wrn16_4", "plambda_cifar10_vgg"])
def test_class_wise_temperatures(name):
    """From the peer's own T; it rounds the classes' scores to three decimals, and takes the first of equal gammas."""
    wanted = value(name, "cwmcs_ts@miscalibration_TS")["params"]
    recalibrator = fitted(name, "cwmcs-ts", temperature=wanted["T0"], normalize="iqr-max")
    shape_ours = (recalibrator.temperatures_ / wanted["T0"] - 1) / recalibrator.gamma_
    shape_theirs = (np.array(wanted["T_per_class"]) / wanted["T0"] - 1) / wanted["gamma"]
    assert np.corrcoef(shape_ours, shape_theirs)[0, 1] > 0.98


# ---------------------------------------------------------------- the sample data, from the published equations

ALL_COLUMNS = having("irm@sklearn")


@pytest.mark.parametrize("name", ALL_COLUMNS)
@pytest.mark.parametrize(
    ("key", "entry"),
    [("temperature", "temperature_nll@scipy"), ("temperature-mse", "temperature_mse@scipy")],
)
def test_temperatures_of_the_sample_data(name, key, entry):
    wanted = value(name, entry)
    assert fitted(name, key).temperature_ == pytest.approx(wanted["params"]["T"], rel=1e-6)
    out, y = on_test(name, key)
    np.testing.assert_allclose(out[:5], wanted["first5"], atol=1e-6)
    assert nll(out, y) == pytest.approx(wanted["test"]["nll"], rel=1e-6)


@pytest.mark.parametrize("name", ALL_COLUMNS)
@pytest.mark.parametrize(
    ("key", "entry"), [("irm", "irm@sklearn"), ("temperature-mse+isotonic", "irova_ts@sklearn")]
)
def test_isotonic_maps_of_the_sample_data(name, key, entry):
    test = value(name, entry)["test"]
    out, y = on_test(name, key, cap=False)
    assert nll(out, y) == pytest.approx(test["nll"], rel=2e-5)
    assert (out.argmax(axis=1) == y).mean() == pytest.approx(test["accuracy"], abs=1e-3)


@pytest.mark.parametrize("name", ALL_COLUMNS)
@pytest.mark.parametrize("entry", ["spline_top1@scipy", "spline_within_top2@scipy"])
def test_splines_of_the_sample_data(name, entry):
    r = 2 if "within" in entry else 1
    out, y = on_test(name, "spline", mode="within-top-r" if r == 2 else "top-label", r=2, cap=False)
    top = np.argsort(-load(name)[2], axis=1, kind="stable")[:, :r]
    score = out[np.arange(y.size)[:, None], top].sum(axis=1)
    wanted = value(name, entry)
    # Its order inside ties is arbitrary, and the nets have some near 1.
    tolerance = 2e-4 if name == "digits_mlp" else 2e-5
    np.testing.assert_allclose(score[:50], wanted["params"]["scores"], atol=tolerance)
    assert score.mean() == pytest.approx(wanted["params"]["mean"], abs=1e-5)
    if r == 2:  # of the top label alone, ours keeps the predicted class
        assert nll(out, y) == pytest.approx(wanted["test"]["nll"], rel=1e-3)


@pytest.mark.parametrize("name", ALL_COLUMNS)
@pytest.mark.parametrize("entry", ["dirichlet_odir0.01@scipy", "dirichlet_odir0.001@scipy"])
def test_dirichlet_odir_of_the_sample_data(name, entry):
    strength, wanted = float(entry.split("odir")[1].split("@")[0]), value(name, entry)
    p, y, _, _ = load(name)
    recalibrator = fitted(name, "dirichlet-odir", off_diagonal=strength, intercept=strength)
    w, b = recalibrator.weights_, recalibrator.intercepts_
    k = b.size
    penalty = (w[~np.eye(k, dtype=bool)] ** 2).mean() + (b**2).mean()
    ours = nll(recalibrator.transform(p.astype(float)), y) + strength * penalty
    assert ours == pytest.approx(wanted["params"]["objective"], rel=1e-6)
    out, y = on_test(name, "dirichlet-odir", off_diagonal=strength, intercept=strength)
    assert nll(out, y) == pytest.approx(wanted["test"]["nll"], rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", having("cwmcs_ts@numpy"))
def test_class_wise_temperatures_of_the_sample_data(name):
    wanted = value(name, "cwmcs_ts@numpy")["params"]
    p, y, _, _ = load(name)
    recalibrator = fitted(name, "cwmcs-ts")
    assert recalibrator.temperature_ == pytest.approx(wanted["T"], rel=1e-6)
    direction = (recalibrator.temperatures_ / recalibrator.temperature_ - 1) / recalibrator.gamma_
    np.testing.assert_allclose(direction, wanted["direction"], atol=1e-5)
    out = recalibrator.transform(p.astype(float))
    place = np.ceil(15 * out.max(axis=1)).astype(int) - 1
    gaps = np.bincount(place, out.max(axis=1) - (out.argmax(axis=1) == y), 15)
    # Of the whole grid none is better.
    assert np.abs(gaps).sum() / y.size <= wanted["ece"] + 1e-7


@pytest.mark.parametrize("name", having("hist_ew10@pandas"))
def test_equal_width_histogram_of_the_sample_data(name):
    out, y = on_test(name, "histogram", bins=10, cap=False)
    wanted = value(name, "hist_ew10@pandas")
    np.testing.assert_allclose(out[:5, 1], wanted["first5"], atol=1e-9)
    assert nll(out, y) == pytest.approx(wanted["test"]["nll"], rel=1e-7)  # single precision


def test_uncalibrated_rows():
    for name in having("none@identity"):
        out, y = on_test(name, "identity")
        assert nll(out, y) == pytest.approx(value(name, "none@identity")["test"]["nll"], rel=1e-6)


def test_every_entry_is_compared_or_has_a_reason():
    compared = set(re.findall(r'"([a-z0-9_.-]+@[A-Za-z_-]+)"', Path(__file__).read_text()))
    patterns = [r"recal:(vector|ets_mse)@.*", r"recal:hist_ew1[05]@netcal", *NOT_COMPARED]
    unexplained = {
        key
        for name in REFERENCE
        for key in REFERENCE[name]
        if key.startswith("recal:")
        and key.removeprefix("recal:") not in compared
        and not any(re.fullmatch(p, key) for p in patterns)
    }
    # The same map by another solver of the same library family.
    assert unexplained <= {"recal:platt@netcal", "recal:beta@netcal"}


# ---- Structured scaling on predictions of real networks, where they lie beside the checkout: values computed apart from this project


DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "netcal_cifar"


def halves(name):
    """The first half fits, the second one judges."""
    with np.load(DATA / f"{name}.npz") as file:
        y, p = file["ground_truth"].squeeze().astype(int), file["predictions"]
    half = y.size // 2
    return p[:half], y[:half], p[half:], y[half:]


@pytest.mark.skipif(not DATA.exists(), reason="only of the data beside the checkout")
@pytest.mark.parametrize(
    ("name", "key", "nll", "brier"),
    [
        ("wideresnet-16-4-cifar-10", "sms", 0.231115, 0.113032),
        ("wideresnet-16-4-cifar-10", "svs", 0.238224, 0.115771),
        ("lenet-5-cifar-10", "sms", 1.310992, 0.601877),
        ("lenet-5-cifar-10", "svs", 1.319809, 0.604010),
        ("wideresnet-16-4-cifar-100", "sms", 0.920977, 0.338466),
        ("wideresnet-16-4-cifar-100", "svs", 0.928103, 0.340946),
        ("densenet-bc-100-cifar-100", "sms", 0.858642, 0.336812),
        ("densenet-bc-100-cifar-100", "svs", 0.859120, 0.336634),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_losses_on_the_other_half(name, key, nll, brier, dtype):
    p, y, q, t = halves(name)
    fitted = RECALIBRATORS[key].make().fit(p.astype(dtype), y)
    result = losses(fitted.transform(q.astype(np.float64)), t)
    np.testing.assert_allclose(result, (nll, brier), rtol=0, atol=6e-7)
    if name == "wideresnet-16-4-cifar-10":
        assert 1 / fitted.temperature_ == pytest.approx(0.485620, abs=6e-7)
