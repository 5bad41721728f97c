"""Files with exact zeros: what forests, votes and rounding leave, and what the maps make of them."""

import json
import math
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier

import calviz
from calviz.core.entry_specs import RECALIBRATORS
from calviz.recalibrators.base import load_map
from tests.inputs.simulated import simulate, softmax

pytestmark = pytest.mark.usefixtures("few_candidates")

KEYS = RECALIBRATORS.keys()
MAPS = [k for k in KEYS if k != "identity"]
#: The methods that take logarithms of all scores, which an exact 0 used to ruin.
LOGARITHMS = [
    "temperature",
    "platt",
    "vector",
    "beta",
    "matrix",
    "dirichlet",
    "dirichlet-odir",
    "svs",
    "sms",
]
EPS = np.finfo(np.float64).eps


def nll(p, y):
    return -np.log(np.maximum(p[np.arange(y.size), y].astype(float), EPS)).mean()


def ece(p, y, reduction=None):
    data = calviz.Predictions(probs=p, labels=y)
    return calviz.evaluate(data, ["ece"], reduction=reduction)["ece"].value


@pytest.fixture(scope="module", params=["two classes", "ten classes", "rounded"])
def zeros(request):
    """Probabilities and labels to fit on, and to judge on; true classes have zeros."""
    rng = np.random.default_rng(0)
    if request.param == "rounded":
        z, y = simulate(3_000, 5, temperature=2.5, spread=5.0)
        p = np.round(softmax(z), 2)
        p /= p.sum(axis=1, keepdims=True)
        return p[:1500], y[:1500], p[1500:], y[1500:]
    x, y = load_digits(return_X_y=True)
    y = y % 2 if request.param == "two classes" else y
    # Noise, so that the trees are wrong often enough.
    x = x + rng.normal(size=x.shape) * 4
    order = rng.permutation(y.size)
    train, fit, judge = np.split(order, [int(0.3 * y.size), int(0.65 * y.size)])
    trees = RandomForestClassifier(20, max_features=40, bootstrap=False, random_state=0).fit(
        x[train], y[train]
    )
    return trees.predict_proba(x[fit]), y[fit], trees.predict_proba(x[judge]), y[judge]


@pytest.fixture(scope="module")
def fits(zeros):
    """What each method makes of them, fitted once for all tests that only look at it."""
    p, y, *_ = zeros
    return cache(lambda key: RECALIBRATORS[key].make().fit(p, y))


def refuted(p, y):
    return int((p[np.arange(y.size), y] == 0).sum())


def test_true_classes_have_zeros(zeros):
    p, y, q, t = zeros
    assert refuted(p, y) > 0 < refuted(q, t)


@pytest.mark.parametrize("key", LOGARITHMS)
def test_the_automatic_floor_makes_the_map_better_than_nothing(zeros, fits, key):
    p, y, q, t = zeros
    fitted = fits(key)
    out = fitted.transform(q)
    assert nll(out, t) < nll(q, t)
    old = RECALIBRATORS[key].make(floor=None).fit(p, y).transform(q)
    assert nll(out, t) < nll(old, t)
    if key == "temperature":
        assert ece(out, t) < ece(q, t)
        # The smallest number as floor makes every score say nothing; the positive class alone would not show it.
        assert ece(out, t, "top-label") < ece(old, t, "top-label")
    assert not any("not converged" in w for w in fitted.warnings_)


@pytest.mark.parametrize("key", LOGARITHMS)
def test_the_floor_is_half_of_the_smallest_score_and_is_said(zeros, fits, key):
    p, y, q, _ = zeros
    fitted = fits(key)
    half = min(p[p > 0].min() / 2, 0.01)
    assert fitted.floor_ == fitted.describe()["floor"] == fitted.to_dict()["floor"]
    assert fitted.floor_ == pytest.approx(half)
    by_hand = RECALIBRATORS[key].make(floor=half).fit(p, y)
    np.testing.assert_array_equal(by_hand.transform(q), fitted.transform(q))


@pytest.mark.slow
@pytest.mark.parametrize("key", MAPS)
def test_no_true_class_is_left_with_an_infinite_loss(zeros, fits, key):
    q, fitted = zeros[2], fits(key)
    k = q.shape[1]
    new = np.concatenate([q, np.eye(k), np.eye(k)[:1] * (1 - 1e-9) + 1e-9 / k])
    for array in (new, new.astype(np.float32)):
        assert fitted.transform(array).min() > 0


@pytest.mark.slow
@pytest.mark.parametrize("key", [*MAPS, "platt+spline", "vector+gp"])
def test_json_and_snippet_read_zeros_as_the_map_does(zeros, fits, key):
    q, fitted = zeros[2], fits(key)
    new = np.concatenate([q, np.eye(q.shape[1])])
    out = fitted.transform(new)
    back = load_map(json.loads(json.dumps(fitted.to_dict(), allow_nan=False)))
    np.testing.assert_array_equal(back.transform(new), out)
    assert back.describe() == fitted.describe()
    program = {}
    exec(compile(fitted.snippet(), "snippet", "exec"), program)
    np.testing.assert_allclose(program["recalibrate"](new), out, atol=1e-6)
    # What becomes of a row does not depend on the others.
    np.testing.assert_allclose(fitted.transform(new[-3:-2]), out[-3:-2], atol=1e-12)


@pytest.mark.parametrize("key", LOGARITHMS)
def test_zeros_where_the_calibration_rows_had_none(key):
    z, y = simulate(1_500, 3, temperature=2, spread=3)
    p = softmax(z)
    fitted = RECALIBRATORS[key].make().fit(p[:700], y[:700])
    before = RECALIBRATORS[key].make(floor=None).fit(p[:700], y[:700])
    # Other rows are mapped as ever, to the last bit.
    np.testing.assert_array_equal(fitted.transform(p[700:]), before.transform(p[700:]))
    certain = np.array([[1.0, 0, 0], [0, 1, 0], [0.5, 0.5, 0]])
    out = fitted.transform(certain)
    assert out.min() > 0
    # A wrong row costs no more than the zero itself, times what the map sharpens.
    assert -math.log(out.min()) < 2 * -math.log(EPS)
    program = {}
    exec(compile(fitted.snippet(), "snippet", "exec"), program)
    np.testing.assert_allclose(program["recalibrate"](certain), out, atol=1e-9)


@pytest.mark.parametrize("key", ["platt", "beta", "temperature", "dirichlet"])
@pytest.mark.parametrize("certain", [0, 5])
def test_the_order_of_scores_is_kept(key, certain):
    rng = np.random.default_rng(3)
    s = rng.uniform(0.05, 0.95, size=400)
    s[:certain], s[certain : 2 * certain] = 0, 1
    y = (rng.random(400) < s).astype(int)
    if certain:
        y[0], y[certain] = 1, 0
    fitted = RECALIBRATORS[key].make().fit(np.stack([1 - s, s], axis=1), y)
    new = np.concatenate([[0, 1e-14, 1e-6], np.linspace(1e-3, 1 - 1e-3, 300), [1 - 1e-6, 1]])
    out = fitted.transform(np.stack([1 - new, new], axis=1))[:, 1]
    assert (np.diff(out) >= 0).all()
    # Between the smallest and the largest calibration score nothing is tied.
    assert (np.diff(out[(new > 0.03) & (new < 0.97)]) > 0).all()


def test_maps_of_earlier_versions_stay_as_they_are():
    p = np.array([[1.0, 0], [0.6, 0.4], [0.3, 0.7]] * 20)
    y = np.array([0, 1, 1] * 20)
    y[0] = 1
    record = RECALIBRATORS["temperature"].make(floor=None).fit(p, y).to_dict()
    kept = load_map(record).transform(p)
    del record["floor_clips"]
    np.testing.assert_array_equal(load_map(record).transform(p), kept)


#: What n rows of k classes support at least, by method.
SUPPORTED = {
    "spline": lambda n, k: 1 / (2 * (n + 1)),
    "spline-classwise": lambda n, k: 1 / (k * (n + 1)),
    "isotonic": lambda n, k: 1 / (2 * (n + 1)),
    "histogram": lambda n, k: 1 / (2 * (n + 1)),
    "irm": lambda n, k: 1 / (2 * (n * k + 1)),
}


@pytest.mark.parametrize("key", SUPPORTED)
@pytest.mark.parametrize("k", [2, 4])
def test_a_cap_holds_the_map_within_what_the_rows_support(key, k):
    # Nearly always right, so that the outermost pieces hold no misses.
    z, y = simulate(400, k, temperature=0.3, spread=3)
    p = softmax(z)
    capped = RECALIBRATORS[key].make().fit(p, y)
    plain = RECALIBRATORS[key].make(cap=False).fit(p, y)
    least = SUPPORTED[key](400, k)
    description = capped.describe()
    assert least <= description["lowest"] <= description["highest"] <= 1 - least
    assert plain.describe()["highest"] == 1
    if key != "spline":  # it holds the confidence, and rescales the others as they are
        # A wrong row costs no more than that.
        assert capped.transform(p).min() >= least / k
        assert plain.transform(p).min() < 1e-8
    # What is neither 0 nor 1 is as in the paper, at the points that the map is made of.
    for before, after in zip(maps_of(plain), maps_of(capped), strict=True):
        points = np.linspace(0, 1, 2_001) if key == "histogram" else before.x
        was, now = before(points), after(points)
        beyond = (was < least) | (was > 1 - least)
        assert beyond.any()
        assert not beyond.all()
        np.testing.assert_array_equal(now[~beyond], was[~beyond])
        if key in ("isotonic", "irm"):
            assert (np.diff(now) >= 0).all()


def maps_of(fitted):
    return fitted.maps_ if hasattr(fitted, "maps_") else [fitted.map_]


@pytest.mark.slow
def test_every_map_that_could_be_certain_by_its_fit_is_capped():
    default = {
        key: next(p.default for p in RECALIBRATORS[key].parameters if p.name == "cap")
        for key in KEYS
        if any(p.name == "cap" for p in RECALIBRATORS[key].parameters)
    }
    named = {"temperature+isotonic", "temperature+irm", "ets+isotonic"}
    assert default == dict.fromkeys(set(SUPPORTED) | named, True)
    # A score of 1e-3 never hits, one of 0.999 always: no map knows the chances to more than its rows.
    p = np.repeat([[0.999, 0.001], [0.001, 0.999], [0.5, 0.5], [0.6, 0.4]], 50, axis=0)
    y = np.array([0] * 50 + [1] * 50 + [0, 1] * 50)
    for key in MAPS:
        if key != "spline":  # of the top label, where 0.001 does not come up
            out = RECALIBRATORS[key].make().fit(p, y).transform(p)
            assert out.min() > 1e-5, key


@pytest.mark.parametrize("key", ["temperature+isotonic", "platt+histogram", "temperature+irm"])
def test_the_cap_of_a_composition_is_that_of_its_second_part(key):
    z, y = simulate(400, 3, temperature=0.3, spread=3)
    p = softmax(z)
    first, second = key.split("+")
    between = RECALIBRATORS[first].make().fit(p, y).transform(p)
    for cap in (True, False):
        alone = RECALIBRATORS[second].make(cap=cap).fit(between.astype(np.float32), y)
        both = RECALIBRATORS[key].make(cap=cap).fit(p, y)
        np.testing.assert_array_equal(both.transform(p), alone.transform(between))
    assert RECALIBRATORS[key].make().get_params()["cap"] is True
    # bbq has none, and takes no offence.
    RECALIBRATORS["platt+bbq"].make(cap=False).fit(p, y)


@pytest.mark.parametrize("key", ["isotonic", "irm", "histogram", "temperature+isotonic"])
def test_maps_saved_before_there_was_a_cap_load_as_they_were(key):
    z, y = simulate(400, 3, temperature=0.3, spread=3)
    p = softmax(z)
    fitted = RECALIBRATORS[key].make(cap=False).fit(p, y)
    old = json.loads(json.dumps(fitted.to_dict()))
    del old["parameters"]["cap"]
    if "+" in key:
        del old["fitted"]["second"]["parameters"]["cap"]
    back = load_map(old)
    np.testing.assert_array_equal(back.transform(p), fitted.transform(p))
    assert back.get_params() == fitted.get_params()
    # Fitted once more it is what it was, not what is usual now.
    np.testing.assert_array_equal(back.fit(p, y).transform(p), fitted.transform(p))
    new = RECALIBRATORS[key].make().fit(p, y)
    again = load_map(json.loads(json.dumps(new.to_dict())))
    assert again.get_params()["cap"] is True
    np.testing.assert_array_equal(again.transform(p), new.transform(p))


def test_floors_do_not_matter_to_logits():
    z, y = simulate(300, 3)
    p = RECALIBRATORS["temperature"].make(input="logits").fit(z, y)
    assert p.floor_ == 0
    assert "floor" not in p.describe()


@pytest.mark.parametrize("key", [*LOGARITHMS, "temperature+isotonic"])
def test_a_row_of_weight_zero_does_not_set_the_floor(key):
    rng = np.random.default_rng(1)
    p = np.round(rng.uniform(0, 1, 300), 1)
    y = (rng.random(300) < 0.1 + 0.8 * p).astype(int)
    weights = rng.exponential(size=300) + 0.1
    one = np.stack([1 - p, p], axis=1)
    method = RECALIBRATORS[key].make(input="probabilities")
    expected = method.fit(one, y, weights).transform(one)
    # Its smallest score is far below those of the others.
    more = np.vstack([one, [[1e-9, 1 - 1e-9]]])
    got = method.fit(more, np.append(y, 1), np.append(weights, 0.0)).transform(one)
    np.testing.assert_allclose(got, expected, atol=1e-9)
