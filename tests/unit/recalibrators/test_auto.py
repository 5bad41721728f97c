"""The automatic mixture: its weights and gains by hand, and what it does where the truth is known."""

import json

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.metrics import log_loss

from calviz.core.entry_specs import RECALIBRATORS, UNCALIBRATED
from calviz.core.errors import InputError, OptionError
from calviz.recalibrators.auto import (
    FEW_ROWS,
    MOST_ROWS,
    RAMP,
    AutomaticRecalibrator,
    HeldOut,
    best_shares,
    extra_standard_errors,
    order_of_rows,
    rows_to_choose_on,
    shuffled_folds,
)
from calviz.recalibrators.base import load_map
from tests.inputs.simulated import draw_labels


def drawn(rng, n, k=3, scale=1.0):
    """Probabilities whose logits are `scale` times the true ones, and labels."""
    p = rng.dirichlet(np.full(k, 0.8), n)
    labels = draw_labels(p, rng)
    text = np.maximum(p, 1e-12) ** scale
    return text / text.sum(axis=1, keepdims=True), labels


def held_out_of(rng, n=60, k=4, methods=3):
    """Random probabilities of several methods in two folds, whole and summed up."""
    whole = rng.dirichlet(np.ones(k), (methods, n))
    labels = rng.integers(k, size=n)
    folds = np.arange(n) % 2
    parts = [(np.flatnonzero(folds == f), [m[folds == f] for m in whole]) for f in (0, 1)]
    return whole, labels, HeldOut.of(parts, labels)


def test_losses_and_gains_are_those_of_the_probabilities():
    rng = np.random.default_rng(0)
    whole, labels, result = held_out_of(rng)
    weights = np.array([[0.2, 0.5, 0.3], [0.6, 0.4, 0]])
    mixed = np.einsum("nm,mnk->nk", weights[np.arange(60) % 2], whole)
    truth = np.eye(4)[labels]
    one, other = (((p - truth) ** 2).sum(axis=1) for p in (whole[0], mixed))
    gains = result.gains(weights)
    np.testing.assert_allclose(gains[1], one - other, atol=1e-12)
    by_scikit = log_loss(labels, whole[0]) - log_loss(labels, mixed)
    assert gains[0].mean() == pytest.approx(by_scikit, abs=1e-12)
    np.testing.assert_allclose(result.losses[1][:, 1], ((whole[1] - truth) ** 2).sum(axis=1))


def test_shares_of_two_methods_are_those_of_the_normal_limit():
    rng = np.random.default_rng(1)
    losses = rng.normal([0, 0.03], size=(1, 2_000, 2))
    apart = losses[0, :, 1] - losses[0, :, 0]
    expected = norm.cdf(apart.mean() / (apart.std() / 2_000**0.5))
    # 1,000 resamples: two standard errors are 3 points.
    assert best_shares(losses, rng)[0, 0] == pytest.approx(expected, abs=0.035)


def test_equal_methods_share_and_a_dominated_one_gets_nothing():
    rng = np.random.default_rng(2)
    one = rng.random(100)
    shares = best_shares(np.stack([one, one, one + 1], axis=1)[None], rng)
    np.testing.assert_allclose(shares[0], [0.5, 0.5, 0])


def test_every_fold_has_its_part_of_every_class():
    rng = np.random.default_rng(3)
    _, labels = drawn(rng, 500)
    fold = shuffled_folds(labels, 5, rng)
    for k in range(3):
        assert np.ptp(np.bincount(fold[labels == k], minlength=5)) <= 1


def test_the_order_of_rows_is_that_of_their_scores():
    rng = np.random.default_rng(4)
    p, labels = drawn(rng, 300)
    shuffled, renamed = rng.permutation(300), rng.permutation(3)
    order = order_of_rows(p, labels)
    other = order_of_rows(p[shuffled][:, renamed], np.argsort(renamed)[labels[shuffled]])
    np.testing.assert_array_equal(shuffled[other], order)
    np.testing.assert_array_equal(rows_to_choose_on(300), np.arange(300))
    assert rows_to_choose_on(3 * MOST_ROWS).size == MOST_ROWS


def test_few_rows_leave_the_model_alone_and_say_so():
    p, labels = drawn(np.random.default_rng(10), 12)
    labels[:2] = 0, 1
    fitted = AutomaticRecalibrator().fit(p, labels)
    assert [part.key for part in fitted.parts_] == [UNCALIBRATED]
    assert "too few" in fitted.warnings_[0]


@pytest.mark.parametrize(
    ("rows", "more"), [(50, 2.4), (200, 1.2), (400, 0.6), (800, 0), (10_000, 0)]
)
def test_few_rows_ask_for_more(rows, more):
    assert extra_standard_errors(rows) == pytest.approx(more)


def test_the_limits_in_the_description_are_those_that_are_used():
    words = " ".join((AutomaticRecalibrator.__doc__ or "").split())
    assert f"all of it from {RAMP[1]:g} standard errors, none below {RAMP[0]:g}," in words
    assert f"with fewer than {FEW_ROWS} rows both limits are higher" in words
    assert (
        f"by {extra_standard_errors(500):.1f} with 500 rows and by {extra_standard_errors(200):.1f} with 200"
        in words
    )


@pytest.mark.slow
def test_a_calibrated_model_is_hardly_changed_and_an_overconfident_one_is_mended():
    rng = np.random.default_rng(5)
    cost, worse, flexible = [], 0, []
    for _ in range(3):
        p, labels = drawn(rng, 400)
        fresh, truth = drawn(rng, 4_000)
        maps = AutomaticRecalibrator(), RECALIBRATORS["isotonic"].make()
        for into, fitted in zip((cost, flexible), maps, strict=True):
            after = fitted.fit(p, labels).transform(fresh)
            into.append(log_loss(truth, after) - log_loss(truth, fresh))
        p, labels = drawn(rng, 400, scale=2)
        fitted = AutomaticRecalibrator().fit(p, labels)
        fresh, truth = drawn(rng, 2_000, scale=2)
        worse += log_loss(truth, fitted.transform(fresh)) > log_loss(truth, fresh)
    # A parameter that is not needed costs 1 / (2 n) = 0.00125 on average; vector scaling has five.
    assert np.mean(cost) < 2 * 0.00125
    assert np.mean(flexible) > 5 * 0.00125
    assert worse == 0


@pytest.mark.slow
def test_all_or_one_and_caution():
    rng = np.random.default_rng(6)
    p, labels = drawn(rng, 400, scale=1.8)
    mixture, one = (AutomaticRecalibrator(combine=how).fit(p, labels) for how in ("mixture", "one"))
    assert len(mixture.parts_) > 1
    assert mixture.weights_.sum() == pytest.approx(1)
    assert len(one.parts_) == 1
    alone = RECALIBRATORS[one.parts_[0].key].make().fit(p, labels)
    np.testing.assert_array_equal(one.transform(p), alone.transform(p))
    careful = AutomaticRecalibrator(caution=100).fit(p, labels)
    assert [part.key for part in careful.parts_] == [UNCALIBRATED]
    np.testing.assert_allclose(careful.transform(p), p, atol=1e-12)
    assert "both have to be above" in careful.reason
    # A map that was saved before it said how much it asks for.
    old = careful.to_dict()
    del old["fitted"]["evidence"]["counts_from"]
    assert "no gain in both scores" in load_map(old).reason


@pytest.mark.slow
def test_the_mixture_is_the_weighted_mean_of_its_parts():
    rng = np.random.default_rng(7)
    p, labels = drawn(rng, 300, scale=1.8)
    fitted = AutomaticRecalibrator().fit(p, labels)
    by_hand = sum(
        w * RECALIBRATORS[part.key].make().fit(p, labels).transform(p)
        for w, part in zip(fitted.weights_, fitted.parts_, strict=True)
    )
    np.testing.assert_allclose(fitted.transform(p), by_hand, atol=1e-12)


@pytest.mark.slow
def test_what_was_tried_is_told():
    rng = np.random.default_rng(8)
    p, labels = drawn(rng, 300, scale=1.8)
    description = AutomaticRecalibrator().fit(p, labels).describe()
    members = {s.key for s in RECALIBRATORS if s.mixed_up_to >= 3} | {UNCALIBRATED}
    assert set(description["methods"]) == members
    assert sum(m["best_nll"] for m in description["methods"].values()) == pytest.approx(1)
    assert description["why"].endswith(" s.")
    json.dumps(description)


@pytest.mark.slow
def test_a_saved_mixture_that_was_changed_is_refused():
    rng = np.random.default_rng(9)
    p, labels = drawn(rng, 300, scale=1.8)
    record = AutomaticRecalibrator().fit(p, labels).to_dict()
    record["fitted"]["weights"][0] += 0.5
    with pytest.raises(InputError, match="sum to 1"):
        load_map(record)


@pytest.mark.parametrize("wrong", [{"caution": -1.0}, {"caution": float("nan")}, {"folds": 1}])
def test_impossible_parameters(wrong):
    with pytest.raises(OptionError, match=next(iter(wrong))):
        AutomaticRecalibrator(**wrong).fit([[0.5, 0.5]] * 4, [0, 1, 0, 1])
