import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from calviz.core.probabilities import Scores, complement, raise_to
from calviz.core.temperature import _TemperatureProblem, fit_temperature
from calviz.recalibrators.temperature_scaling import TemperatureScaling
from tests.inputs.simulated import simulate, softmax


def plain_loss(z, y, temperature, loss):
    p = softmax(z / temperature)
    own = p[np.arange(y.size), y]
    if loss == "nll":
        return -np.log(own).mean()
    return ((p - np.eye(z.shape[1])[y]) ** 2).sum(axis=1).mean()


@pytest.mark.parametrize("loss", ["nll", "mse"])
@pytest.mark.parametrize("k", [2, 5, 60])
@pytest.mark.parametrize("true", [0.3, 2.5])
def test_is_the_minimum_that_a_plain_search_finds(loss, k, true):
    z, y = simulate(1_500, k, temperature=true, seed=k)
    temperature = TemperatureScaling(loss=loss, input="logits").fit(z, y).temperature_
    other = minimize_scalar(
        lambda t: plain_loss(z, y, t, loss), bracket=(0.8 * true, true), options={"xtol": 1e-10}
    )
    assert temperature == pytest.approx(other.x, rel=1e-6)


def test_finds_the_temperature_that_made_the_labels():
    z, y = simulate(200_000, 4, temperature=1.6, seed=5)
    assert TemperatureScaling(input="logits").fit(z, y).temperature_ == pytest.approx(1.6, rel=0.01)


def test_two_rows_by_hand():
    """Logits (a, 0): right in 3 of 4 rows, so that the best map gives 3/4: a / T = log 3."""
    z = np.array([[1.7, 0.0]] * 4)
    fitted = TemperatureScaling(input="logits").fit(z, [0, 0, 0, 1])
    assert fitted.temperature_ == pytest.approx(1.7 / np.log(3), rel=1e-8)
    np.testing.assert_allclose(fitted.transform(z)[:, 0], 0.75)


@pytest.mark.parametrize("factor", [1e-6, 100, 1e7])
@pytest.mark.parametrize("loss", ["nll", "mse"])
def test_scales_with_the_logits(factor, loss):
    z, y = simulate(800, 4, temperature=2)
    one = TemperatureScaling(loss=loss, input="logits").fit(z, y).temperature_
    other = TemperatureScaling(loss=loss, input="logits").fit(factor * z, y).temperature_
    assert other == pytest.approx(factor * one, rel=1e-6)


def test_float32_and_float64_agree():
    z, y = simulate(3_000, 20, temperature=1.3)
    narrow = z.astype(np.float32)
    a = TemperatureScaling(input="logits").fit(narrow, y).temperature_
    b = TemperatureScaling(input="logits").fit(narrow.astype(np.float64), y).temperature_
    assert a == pytest.approx(b, rel=1e-6)


@pytest.mark.slow
def test_many_rows_in_single_precision_reach_the_optimum():
    z, y = simulate(60_000, 50, temperature=1.4)
    narrow = z.astype(np.float32)
    a = TemperatureScaling(input="logits").fit(narrow, y).temperature_
    b = TemperatureScaling(input="logits").fit(narrow.astype(np.float64), y).temperature_
    other = minimize_scalar(
        lambda t: plain_loss(narrow.astype(float), y, t, "nll"), bracket=(1.3, 1.5), tol=1e-10
    )
    assert a == pytest.approx(other.x, rel=1e-6)
    assert b == pytest.approx(other.x, rel=1e-6)


@pytest.mark.parametrize("loss", ["nll", "mse"])
@pytest.mark.parametrize("k", [3, 40])
def test_derivatives(loss, k):
    z, y = simulate(200, k)
    problem = _TemperatureProblem(Scores(z, "logits", "logits"), y, loss)
    for beta in (0.2, 1.0, 3.0):
        h = 1e-4
        low, at, high = (problem.at(b) for b in (beta - h, beta, beta + h))
        assert at.value == pytest.approx(plain_loss(z, y, 1 / beta, loss), rel=1e-12)
        assert at.slope == pytest.approx((high.value - low.value) / (2 * h), abs=1e-6)
        assert at.curvature == pytest.approx((high.slope - low.slope) / (2 * h), abs=1e-5)


@pytest.mark.parametrize("loss", ["nll", "mse"])
@pytest.mark.parametrize("ties", [0, 2])
def test_separable_rows_are_fitted_with_smoothed_labels_and_say_so(loss, ties):
    # Of 40 rows, perhaps with ties that are right or wrong at any T, by hand: 41/42 and 1/42 are met where exp(5/T) = 41.
    z = np.array([[5.0, 0.0], [0.0, 5.0]] * 20 + [[1.0, 1.0]] * ties)
    fitted = TemperatureScaling(input="logits", loss=loss).fit(z, [0, 1] * 20 + [0, 1][:ties])
    assert "separable" in fitted.warnings_[0]
    assert fitted.temperature_ == pytest.approx(5 / np.log(41 + ties), rel=1e-4)


def test_scores_that_are_worse_than_chance_end_at_the_upper_bound_and_say_so():
    z = np.array([[5.0, 0.0], [0.0, 5.0]] * 20)
    fitted = TemperatureScaling(input="logits").fit(z, [1, 0] * 20)
    assert "upper bound" in fitted.warnings_[0]
    np.testing.assert_allclose(fitted.transform(z), 0.5, atol=1e-3)


def test_equal_scores_have_no_temperature_and_stay_uniform():
    p = np.full((40, 4), 0.25)
    np.testing.assert_allclose(TemperatureScaling().fit(p, [0, 1, 2, 3] * 10).transform(p), 0.25)


def test_logits_and_their_probabilities_have_one_temperature():
    z, y = simulate(500, 4, temperature=3)
    a = TemperatureScaling(input="logits").fit(z, y).temperature_
    b = TemperatureScaling().fit(softmax(z), y).temperature_
    assert a == pytest.approx(b, rel=1e-8)


@pytest.mark.parametrize(("dtype", "least"), [(np.float32, 2.0**-126), (np.float64, 2.0**-1022)])
def test_without_a_floor_zeros_count_as_the_smallest_normal_number_of_their_type(dtype, least):
    subnormal = np.nextafter(dtype(0), dtype(1))
    p = np.array([[0.99, 0.01, 0.0], [0.2, 0.4, 0.4], [1 - 0.25, 0.25, subnormal]], dtype=dtype)
    fitted = TemperatureScaling(floor=None).fit(p, [0, 1, 1])
    assert fitted.floor_ == fitted.describe()["floor"] == fitted.to_dict()["floor"] == least
    block = Scores(p, "probabilities", "logits", fitted.floor_).block(slice(0, 3))
    np.testing.assert_array_equal(block[[0, 2], 2], np.log(dtype(least)))
    assert not fitted.warnings_


def test_the_floor_can_be_set_and_is_of_no_matter_to_logits():
    p = np.array([[0.99, 0.01, 0.0], [0.2, 0.4, 0.4]])
    fitted = TemperatureScaling(floor=1e-6).fit(p, [0, 1])
    assert fitted.floor_ == fitted.describe()["floor"] == fitted.to_dict()["floor"] == 1e-6
    assert "floor" not in TemperatureScaling(input="logits").fit(p, [0, 1]).describe()


def test_a_map_from_double_precision_reads_zeros_of_single_precision():
    p = np.array([[0.9, 0.1, 0.0], [0.2, 0.4, 0.4], [0.1, 0.9, 0.0]])
    out = TemperatureScaling().fit(p, [0, 1, 0]).transform(p.astype(np.float32))
    assert np.isfinite(out).all()


def test_zeros_on_the_true_class_are_said():
    p = np.array([[1.0, 0.0], [0.6, 0.4], [0.3, 0.7]] * 20)
    y = np.array([0, 1, 1] * 20)
    y[:6:3] = 1
    assert not TemperatureScaling().fit(p, y).warnings_
    (warnings,) = TemperatureScaling(floor=None).fit(p, y).warnings_
    assert (
        "2 of 60 calibration rows give their true class a probability of 0, read as 2.23e-308"
        in warnings
    )
    assert "leave 'floor' at \"auto\", which is 0.01 here" in warnings
    (warnings,) = TemperatureScaling(loss="mse", floor=None).fit(p, y).warnings_
    assert "they hardly count in the fit, and stay next to 0" in warnings
    before = TemperatureScaling(loss="mse", floor=None).fit(p, y).transform(p[:1])[0, 1]
    after = TemperatureScaling(loss="mse", floor=0.01).fit(p, y).transform(p[:1])[0, 1]
    assert before < 1e-6 < after


def test_the_complement_is_exact_beside_one():
    p = np.array([[1.0, 1e-20, 2e-20], [0.5, 0.25, 0.25]])
    rest = complement(p)
    np.testing.assert_allclose(rest, [[3e-20, 1, 1], [0.5, 0.75, 0.75]], rtol=1e-15)
    np.testing.assert_array_equal(p[0], [1.0, 1e-20, 2e-20])


def test_the_search_reads_large_data_only_a_few_times():
    z, y = simulate(50_000, 5, temperature=1.5)
    assert fit_temperature(Scores(z, "logits", "logits"), y).passes <= 2


def test_low_exponents_are_raised_and_others_left_alone():
    for lowest in (-3.0, -90.0):
        block = np.array([[lowest, -80.5, -2.0], [0.0, -1.0, -79.5]])[:, ::2]
        wanted = np.maximum(block, -80)
        raise_to(-80, block)
        np.testing.assert_array_equal(block, wanted)
    raise_to(-80, np.empty((0, 3)))


@pytest.mark.parametrize("k", [3, 40])
def test_the_scores_are_not_written_to(k):
    z, y = simulate(300, k)
    for array in (z, z.astype(np.float32)):
        kept = array.copy()
        scores = Scores(array, "logits", "logits")
        assert np.shares_memory(scores.read_only_block(slice(0, 9), array.dtype.type), array)
        fit_temperature(scores, y)
        np.testing.assert_array_equal(array, kept)
