"""Linear, affine and quadratic scaling."""

import numpy as np
import pytest
from scipy.special import logit
from sklearn.linear_model import LogisticRegression

from calviz.core.errors import InputError
from calviz.recalibrators.platt_scaling import (
    AffineScaling,
    LinearScaling,
    PlattScaling,
    QuadraticScaling,
)
from calviz.recalibrators.temperature_scaling import TemperatureScaling
from tests.inputs.simulated import simulate, softmax

POWERS = {LinearScaling: (1,), AffineScaling: (1, 0), QuadraticScaling: (1, 2, 0)}


def binary(n=900, seed=2, bend=0.15):
    rng = np.random.default_rng(seed)
    z = rng.normal(scale=1.5, size=n)
    y = rng.random(n) < 1 / (1 + np.exp(-(0.2 + 0.8 * z + bend * z * z)))
    p = 1 / (1 + np.exp(-z))
    return np.stack([1 - p, p], axis=1), y.astype(int)


def unpenalised(p, y, powers):
    z = logit(p)
    x = np.stack([z**power for power in powers], axis=1)
    model = LogisticRegression(
        C=np.inf, fit_intercept=False, solver="newton-cholesky", tol=1e-12, max_iter=1_000
    )
    return model.fit(x, y).coef_[0]


@pytest.mark.parametrize("cls", POWERS)
def test_it_is_scikit_learns_regression_without_penalty(cls):
    p, y = binary()
    coefficients = cls().fit(p, y).coefficients_[:, 0]
    wanted = unpenalised(p[:, 1], y, POWERS[cls])
    np.testing.assert_allclose(coefficients[: wanted.size], wanted, rtol=1e-6)
    if cls is LinearScaling:
        assert coefficients[1] == 0


@pytest.mark.parametrize("cls", POWERS)
def test_several_classes_are_each_against_the_rest_and_normalised(cls):
    z, y = simulate(900, 4, temperature=1.8, seed=6)
    p = softmax(z)
    fitted = cls().fit(p, y)
    shares = np.empty_like(p)
    for k in range(4):
        theta = unpenalised(p[:, k], y == k, POWERS[cls])
        margin = sum(
            t * logit(p[:, k]) ** power for t, power in zip(theta, POWERS[cls], strict=True)
        )
        shares[:, k] = 1 / (1 + np.exp(-margin))
    shares /= shares.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(fitted.transform(p), shares, atol=2e-6)


def test_linear_scaling_of_two_classes_is_temperature_scaling():
    p, y = binary()
    linear, temperature = LinearScaling().fit(p, y), TemperatureScaling().fit(p, y)
    assert linear.describe()["a"] == pytest.approx(1 / temperature.temperature_, rel=1e-6)
    np.testing.assert_allclose(linear.transform([[0.5, 0.5]]), [[0.5, 0.5]])


def test_affine_scaling_is_platt_scaling_without_smoothed_labels():
    p, y = binary()
    affine, platt = AffineScaling().fit(p, y), PlattScaling().fit(p, y)
    assert 0 < np.abs(affine.transform(p) - platt.transform(p)).max() < 0.02
    assert affine.to_dict()["method"] == "affine"


def three_rates(first, second, third):
    """Scores with the log-odds -1, 0 and 1, and these hits of ten each: the parabola through the three is exact."""
    p = np.repeat(1 / (1 + np.exp([1.0, 0.0, -1.0])), 10)
    y = np.concatenate([np.arange(10) < hits for hits in (first, second, third)]).astype(int)
    return np.stack([1 - p, p], axis=1), y


def test_a_parabola_through_three_rates_by_hand():
    p, y = three_rates(2, 4, 7)
    low, middle, high = logit(np.array([0.2, 0.4, 0.7]))
    fitted = QuadraticScaling().fit(p, y)
    description = fitted.describe()
    assert description["a"] == pytest.approx(middle, rel=1e-6)
    assert description["b"] == pytest.approx((high - low) / 2, rel=1e-6)
    assert description["c"] == pytest.approx((high + low) / 2 - middle, rel=1e-6)
    np.testing.assert_allclose(fitted.transform(p[[0, 10, 20]])[:, 1], [0.2, 0.4, 0.7], rtol=1e-6)
    # -b / 2c = -4.1 is outside of the scores, so that nothing falls.
    assert description["turns_at"] is None
    assert not fitted.warnings_


@pytest.mark.parametrize(("rates", "side"), [((4, 2, 7), "below"), ((3, 8, 6), "above")])
def test_a_parabola_that_turns_among_the_scores_is_said(rates, side):
    p, y = three_rates(*rates)
    fitted = QuadraticScaling().fit(p, y)
    low, middle, high = logit(np.array(rates) / 10)
    b, c = (high - low) / 2, (high + low) / 2 - middle
    score = 1 / (1 + np.exp(b / (2 * c)))
    assert fitted.describe()["turns_at"] == pytest.approx(score, rel=1e-5)
    (warnings,) = fitted.warnings_
    assert warnings == (
        f"the map is not monotone: it turns at a score of {score:.4g}, and reverses the order of scores {side} that."
    )
    # It is so: out there the map falls with the score.
    rest = np.linspace(score, 0.73, 9) if side == "above" else np.linspace(0.27, score, 9)
    assert (np.diff(fitted.transform(np.stack([1 - rest, rest], axis=1))[:, 1]) < 0).all()


def test_turns_of_several_classes_are_counted():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(3), size=2_000)
    # Only class 2 is likelier at both ends than in the middle.
    chance = np.abs(2 * p[:, 2] - 1) ** 2
    y = np.where(rng.random(2_000) < chance, 2, rng.integers(2, size=2_000))
    fitted = QuadraticScaling().fit(p, y)
    turned = np.flatnonzero(~np.isnan(fitted.turns()))
    assert 2 in turned
    assert f"the maps of {turned.size} of 3 classes are not monotone" in fitted.warnings_[0]


def test_wide_logits_and_a_million_rows_in_single_precision():
    rng = np.random.default_rng(1)
    z = rng.normal(scale=30, size=300_000)
    y = (rng.random(z.size) < 1 / (1 + np.exp(-(0.1 + 0.05 * z + 1e-3 * z * z)))).astype(int)
    logits = np.stack([np.zeros_like(z), z], axis=1)
    double = QuadraticScaling(input="logits").fit(logits, y).coefficients_[:, 0]
    single = QuadraticScaling(input="logits").fit(logits.astype(np.float32), y).coefficients_[:, 0]
    np.testing.assert_allclose(double, [0.05, 1e-3, 0.1], rtol=0.1)
    np.testing.assert_allclose(single, double, rtol=1e-3)


def test_a_damaged_map_is_refused():
    record = QuadraticScaling().fit(*binary()).to_dict()
    record["fitted"]["range_"] = [[0.0]]
    with pytest.raises(InputError, match="damaged"):
        QuadraticScaling.from_dict(record)
