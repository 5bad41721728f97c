"""Weights and exact zeros in every recalibrator."""

import json
import math
from functools import cache

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

import calviz
from calviz.core.entry_specs import RECALIBRATORS
from calviz.recalibrators.base import load_map
from tests.inputs.simulated import draw_labels, simulate, softmax

pytestmark = pytest.mark.usefixtures("few_candidates")


# ---- Maps that are fitted to rows of which some count more than others


N = 500
#: What the caps, priors and penalties of a map are measured in is rows, of which copies are more: without these.
PLAIN = {
    "isotonic": {"cap": False},
    "irm": {"cap": False},
    "histogram": {"cap": False},
    "centered-isotonic": {"smooth": False},
    "logit-spline": {"own_rows": 0.0, "strength": 1e-9},
}
#: Penalties, cuts by rank and pseudo-rows cannot be taken away.
COUNTED = (
    "svs",
    "sms",
    "matrix-odir",
    "dirichlet-odir",
    "scaling-binning",
    "platt",  # its smoothed labels count rows
    "auto",  # its folds are random
    "spline",
    "spline-classwise",
    "venn-abers",
    "bbq",  # cuts by the effective number, as below
    "gp",
    "temperature+isotonic",
    "temperature+irm",
    "ets+isotonic",
)


def rows(classes, seed=0):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(N, classes)) * 1.5
    p = softmax(z)
    y = draw_labels(softmax(0.6 * z + 0.2 * np.arange(classes)), rng)
    return p, y, rng.integers(1, 4, N)


def taking():
    values = {spec.key: spec.make(**PLAIN.get(spec.key, {})) for spec in RECALIBRATORS}
    return {key: map_ for key, map_ in values.items() if map_.takes_weights}


@pytest.mark.parametrize("key", sorted(set(taking()) - set(COUNTED)))
def test_a_weight_is_the_row_so_often(key):
    classes = 2 if key == "logit-spline" else 3
    p, y, counts = rows(classes)
    map_ = taking()[key]
    weighted = map_.fit(p, y, sample_weight=counts).transform(p)
    many = np.repeat(np.arange(N), counts)
    copied = taking()[key].fit(p[many], y[many]).transform(p)
    # Two searches for one optimum, or sums in another order.
    np.testing.assert_allclose(weighted, copied, atol=2e-4 if key != "logit-spline" else 5e-3)


@pytest.mark.parametrize("key", sorted(taking()))
def test_the_scale_of_weights_is_nothing_and_rows_without_weight_are_not_there(key):
    p, y, counts = rows(3, seed=1)
    w = counts.astype(float)
    once = taking()[key].fit(p, y, sample_weight=w).transform(p)
    scaled = taking()[key].fit(p, y, sample_weight=4 * w).transform(p)
    np.testing.assert_allclose(once, scaled, atol=1e-9)
    absent = np.arange(N) % 5 == 0
    kept = ~absent
    left_out = taking()[key].fit(p, y, sample_weight=np.where(absent, 0, w)).transform(p)
    fewer = taking()[key].fit(p[kept], y[kept], sample_weight=w[kept]).transform(p)
    # The floor of an exact 0 is that of all rows; these have none.
    np.testing.assert_allclose(left_out, fewer, atol=1e-9)


def test_isotonic_regression_is_that_of_scikit_learn():
    p, y, counts = rows(2)
    w = counts * np.random.default_rng(2).uniform(0.1, 1, N)
    peer = IsotonicRegression(out_of_bounds="clip").fit(p[:, 1], y, sample_weight=w)
    own = RECALIBRATORS["isotonic"].make(cap=False).fit(p, y, sample_weight=w)
    np.testing.assert_allclose(own.curve(p[:, 1]), peer.predict(p[:, 1]), atol=1e-12)


@pytest.mark.parametrize("key", ["isotonic", "irm"])
def test_a_cap_keeps_a_map_of_very_unequal_weights_ascending(key):
    p, y, _ = rows(2)
    w = np.exp(3 * np.random.default_rng(3).normal(size=N))
    own = RECALIBRATORS[key].make(cap=True).fit(p, y, sample_weight=w)
    assert (np.diff(own.curve(np.sort(p[:, 1]))) >= 0).all()
    np.testing.assert_allclose(own.transform(p).sum(axis=1), 1)
    assert load_map(own.to_dict()).key == key


@pytest.mark.parametrize("key", ["matrix", "dirichlet"])
def test_linear_maps_are_the_logistic_regression_of_scikit_learn(key):
    p, y, counts = rows(3)
    peer = LogisticRegression(C=1e8, tol=1e-9, max_iter=5_000)
    peer.fit(np.log(p), y, sample_weight=counts)
    own = RECALIBRATORS[key].make().fit(p, y, sample_weight=counts)
    np.testing.assert_allclose(own.transform(p), peer.predict_proba(np.log(p)), atol=2e-4)


def test_the_pairs_of_venn_abers_are_regressions_with_an_average_row_added():
    p, y, counts = rows(2)
    w = counts / counts.mean()
    own = RECALIBRATORS["venn-abers"].make().fit(p, y, sample_weight=counts)
    for score in (0.0, 0.2, float(p[7, 1]), 0.9):
        x, weights = np.append(p[:, 1], score), np.append(w, 1)
        peers = [
            IsotonicRegression().fit(x, np.append(y, hit), sample_weight=weights).predict([score])
            for hit in (0, 1)
        ]
        (pair,) = own.intervals(np.array([[1 - score, score]]))
        np.testing.assert_allclose(pair[-1], np.ravel(peers), atol=1e-9)


@pytest.mark.parametrize("key", ["spline", "spline-classwise"])
@pytest.mark.parametrize("bounded", [False, True])
def test_splines_over_shares_of_weights_are_near_those_of_copies(key, bounded):
    # The fit goes through the cumulative hits at each row: once for a weight, and once for each copy.
    p, y, counts = rows(3)
    weighted = RECALIBRATORS[key].make(bounded=bounded).fit(p, y, sample_weight=counts)
    many = np.repeat(np.arange(N), counts)
    copied = RECALIBRATORS[key].make(bounded=bounded).fit(p[many], y[many])
    # Of the largest class: where it is near 1/3 the others of a row follow it with a jump.
    top = np.arange(N), p.argmax(axis=1)
    np.testing.assert_allclose(weighted.transform(p)[top], copied.transform(p)[top], atol=6 / N)
    # Weights that hardly differ are none.
    nearly = RECALIBRATORS[key].make(bounded=bounded)
    nearly.fit(p, y, sample_weight=np.append(np.ones(N - 1), 1 + 1e-9))
    plain = RECALIBRATORS[key].make(bounded=bounded).fit(p, y)
    np.testing.assert_allclose(nearly.transform(p), plain.transform(p), atol=1e-5)


@pytest.mark.parametrize("key", ["svs", "sms"])
def test_structured_maps_minimise_their_penalised_weighted_loss(key):
    # The gradient at the fitted parameters, by differences.
    p, y, counts = rows(3)
    w = counts / counts.mean()
    own = RECALIBRATORS[key].make().fit(p, y, sample_weight=w)
    logs = own._mixed(np.log(p))
    start = own._start(3)
    rates = own._rates(3, 3)

    def loss(x):
        u = logs * x[0] + x[1] if key == "svs" else logs @ x[:, :-1].T + x[:, -1]
        nll = np.log(np.exp(u).sum(axis=1)) - u[np.arange(N), y]
        return w @ nll / N + (rates * (x - start) ** 2).sum() / N

    parts = own.weights_, own.intercepts_
    x = np.stack(parts) if key == "svs" else np.column_stack(parts)
    for at in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[at] += 1e-5
        down[at] -= 1e-5
        assert (loss(up) - loss(down)) / 2e-5 == pytest.approx(0, abs=2e-6)


def test_auto_chooses_and_fits_by_what_counts():
    # Half of the rows are twice too sharp, the others right; the ones that count decide.
    rng = np.random.default_rng(5)
    z = rng.normal(size=(1_200, 2)) * 1.5
    y = (rng.random(1_200) < 1 / (1 + np.exp(z[:, 0] - z[:, 1]))).astype(int)
    sharp = np.arange(1_200) % 2 == 0
    z[sharp] *= 2
    p = softmax(z)
    taken = {}
    for name, weights in (("sharp", np.where(sharp, 1, 1e-3)), ("right", np.where(sharp, 1e-3, 1))):
        mapped = RECALIBRATORS["auto"].make().fit(p, y, sample_weight=weights).transform(p)
        taken[name] = np.polyfit(z[:, 1] - z[:, 0], np.log(mapped[:, 1] / mapped[:, 0]), 1)[0]
    assert taken["sharp"] == pytest.approx(0.5, abs=0.12)
    assert taken["right"] == pytest.approx(1, abs=0.15)


def test_every_method_takes_weights_and_equal_ones_are_none():
    assert set(taking()) == {spec.key for spec in RECALIBRATORS}
    p, y, _ = rows(3)
    same = RECALIBRATORS["bbq"].make().fit(p, y, sample_weight=np.full(N, 2.0))
    np.testing.assert_array_equal(
        same.transform(p), RECALIBRATORS["bbq"].make().fit(p, y).transform(p)
    )


@pytest.mark.parametrize("key", [m.key for m in RECALIBRATORS.methods(confidence=False)])
def test_the_size_of_the_weights_has_no_effect(key):
    """Only their ratios have; the sum of 300 weights of 2^1015 is beyond double precision."""
    rng = np.random.default_rng(4)
    logits = rng.normal(size=(300, 2)) * 2
    X, y = softmax(logits), draw_labels(softmax(logits / 2), rng)
    weights = rng.integers(64, 128, 300) / 64
    one, *others = (
        RECALIBRATORS[key].make_with(input="probabilities").fit(X, y, weights * factor).transform(X)
        for factor in (1.0, 2.0**-1000, 2.0**1015)
    )
    for other in others:
        np.testing.assert_array_equal(one, other)


# ---- Files with exact zeros: what forests, votes and rounding leave, and what the maps make of them


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
