"""Before and after recalibration: the judged rows are never those that the map was fitted on."""

import numpy as np
import pytest

from calviz.comparison.fitting import (
    Division,
    before_and_after,
    calibrate,
    fit_split_for,
    trade_off,
)
from calviz.core.errors import InputError, NotAvailable
from calviz.core.predictions import ConfidencePredictions, Predictions
from tests.inputs.simulated import draw_labels, softmax


def simulated(n=300, splits=None, groups=None):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(n, 3)) * 3
    probs = softmax(z)
    labels = draw_labels(softmax(0.4 * z), rng)
    return Predictions(
        probs=probs, labels=labels, splits=splits, groups=groups or {}, ids=np.arange(n)
    )


SPLITS = np.repeat(["train", "val", "test"], 100)


@pytest.mark.parametrize(
    ("judged", "fit"),
    [("test", "val"), ("val", "train"), ("train", "val"), (None, "val")],
)
def test_which_split_is_fitted_on(judged, fit):
    data = simulated(splits=SPLITS)
    assert fit_split_for(data, judged) == fit
    done = before_and_after(data, "temperature", eval_split=judged)
    assert done.fit.split == fit
    assert set(done.fit_before.ids) == set(np.flatnonzero(fit == SPLITS))
    rest = fit != SPLITS if judged is None else judged == SPLITS
    np.testing.assert_array_equal(done.rows, np.flatnonzero(rest))
    for part in (done.before, done.after):
        np.testing.assert_array_equal(part.ids, done.rows)
    assert not set(done.rows) & set(done.fit_before.ids)
    np.testing.assert_array_equal(done.fit_after.ids, done.fit_before.ids)


def test_splits_whose_names_say_nothing_and_a_single_one():
    data = simulated(splits=np.repeat(["a", "b"], 150))
    assert fit_split_for(data, "b") == "a"
    assert fit_split_for(data, None) is None
    assert fit_split_for(simulated(splits=np.full(300, "val")), None) is None
    assert fit_split_for(simulated(), None) is None


def test_without_splits_a_half_is_judged():
    done = before_and_after(simulated(), "temperature")
    assert done.evaluation.rows == done.rows.size == 150
    assert not set(done.rows) & set(done.fit_before.ids)


@pytest.mark.parametrize("seed", range(8))
def test_every_row_stays_with_its_own_probabilities_whichever_half_is_drawn(seed):
    # A temperature keeps the order within a row. In some halves the first row fits and the last one judges.
    done = before_and_after(simulated(), "temperature", seed=seed)
    for before, after in ((done.before, done.after), (done.fit_before, done.fit_after)):
        np.testing.assert_array_equal(before.probs.argsort(1), after.probs.argsort(1))


def test_the_map_is_that_of_calibrate():
    data = simulated(splits=SPLITS)
    whole = calibrate(data, "temperature", Division(fit_split="val")).calibrated
    done = before_and_after(data, "temperature", eval_split="test")
    np.testing.assert_allclose(done.after.probs, whole.probs[SPLITS == "test"], rtol=1e-12)
    np.testing.assert_allclose(done.fit_after.probs, whole.probs[SPLITS == "val"], rtol=1e-12)


def test_a_slice_is_judged_and_the_map_is_fitted_on_all():
    within = np.arange(300) % 3 == 0
    done = before_and_after(
        simulated(splits=SPLITS), "temperature", eval_split="test", within=within
    )
    np.testing.assert_array_equal(done.rows, np.flatnonzero((SPLITS == "test") & within))
    assert done.fit.rows == 100
    with pytest.raises(InputError, match="left to judge"):
        before_and_after(simulated(splits=SPLITS), "temperature", within=SPLITS == "val")


def test_confidence_only():
    rng = np.random.default_rng(0)
    score = rng.random(200)
    data = ConfidencePredictions(confidence=score, correct=rng.random(200) < score**2)
    done = before_and_after(data, "isotonic")
    assert done.after.n == 100
    assert done.after.confidence.mean() < done.before.confidence.mean()
    with pytest.raises(NotAvailable):
        before_and_after(data, "vector")


def test_without_splits_the_seed_says_which_half_is_judged():
    data = simulated()
    for seed in (0, 1):
        wanted = Division(fit_fraction=0.5, seed=seed).rows(data).pairs[0][1]
        np.testing.assert_array_equal(before_and_after(data, "temperature", seed=seed).rows, wanted)
    one, other = (before_and_after(data, "temperature", seed=s).rows for s in (0, 1))
    assert set(one) != set(other)


def test_what_a_map_costs_in_the_other_proper_score_is_said():
    # Calibration rows that a score separates, and judged rows of which one in twenty is on the other side.
    p = np.tile(np.linspace(0.02, 0.98, 50), 4)
    y = (p > 0.5).astype(int)
    y[100::20] = 1 - y[100::20]
    splits = np.repeat(["cal", "test"], 100)
    data = Predictions(probs=np.stack([1 - p, p], axis=1), labels=y, splits=splits)
    division = Division(fit_split="cal")
    calibrated = calibrate(data, "platt", division).calibrated
    of_true = [d.probs[np.arange(100, 200), y[100:]] for d in (data, calibrated)]
    (brier, brier_after), (nll, nll_after) = (
        [loss(q).mean() for q in of_true]
        for loss in (lambda q: 2 * (1 - q) ** 2, lambda q: -np.log(q))
    )
    assert brier_after < brier
    assert nll_after > nll
    sentence = trade_off(data, calibrated, division)
    assert f"better by Brier score ({brier:.4f} before, {brier_after:.4f} after)" in sentence
    assert f"worse by NLL ({nll:.4f} before, {nll_after:.4f} after)" in sentence
    assert trade_off(data, data, division) is None
