"""Maps that are fitted to rows of which some count more than others."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from calviz.core.entry_specs import RECALIBRATORS
from calviz.recalibrators.base import load_map
from tests.inputs.simulated import draw_labels, softmax

pytestmark = pytest.mark.usefixtures("few_candidates")
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
@pytest.mark.parametrize("size", [2.0**-1000, 2.0**1015])
def test_the_size_of_the_weights_has_no_effect(key, size):
    """Only their ratios have; the sum of 300 weights of 2^1015 is beyond double precision."""
    rng = np.random.default_rng(4)
    logits = rng.normal(size=(300, 2)) * 2
    X, y = softmax(logits), draw_labels(softmax(logits / 2), rng)
    weights = rng.integers(64, 128, 300) / 64
    one, other = (
        RECALIBRATORS[key].make_with(input="probabilities").fit(X, y, weights * factor).transform(X)
        for factor in (1.0, size)
    )
    np.testing.assert_array_equal(one, other)
