"""The ECE for every number of bins is the metric at each of them."""

import time

import numpy as np
import pytest

import calviz
from calviz.core.errors import OptionError
from calviz.figures.bin_sensitivity import BinSensitivity


def binary(n, seed=0, power=1.0, decimals=None):
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    if decimals is not None:
        score = score.round(decimals)
    labels = rng.random(n) < score**power
    return calviz.Predictions(probs=score.astype(np.float32), labels=labels, name="binary")


@pytest.mark.parametrize("decimals", [None, 1, 2])
@pytest.mark.parametrize("n", [1, 40, 3_000])
def test_every_value_is_the_metric(n, decimals):
    p = binary(n, decimals=decimals)
    figure = BinSensitivity.compute(p, reduction="positive")
    for bins in (1, 2, 7, 10, 15, 64, 100):
        result = calviz.evaluate(p, ["ece", "ece_equal_mass"], reduction="positive", bins=bins)
        assert figure.ece["equal-width"][bins - 1] == pytest.approx(result["ece"].value, abs=1e-12)
        assert figure.ece["equal-mass"][bins - 1] == pytest.approx(
            result["ece_equal_mass"].value, abs=1e-12
        )


@pytest.mark.slow
@pytest.mark.parametrize("n", [200, 5_000])
def test_floor_is_that_of_the_metric(n):
    p = binary(n, power=1.4)
    figure = BinSensitivity.compute(p, reduction="positive")
    for scheme, key in (("equal-width", "ece"), ("equal-mass", "ece_equal_mass")):
        for bins in (1, 15, 60):
            options = {"reduction": "positive", "bins": bins, "noise_floor": True}
            floor = calviz.evaluate(p, [key], **options)[key].noise_floor
            assert figure.floor[scheme].mean[bins - 1] == pytest.approx(floor.mean, rel=0.1)
            assert figure.floor[scheme].high[bins - 1] == pytest.approx(floor.q95, rel=0.12)


def test_what_is_drawn_is_the_frame():
    figure = BinSensitivity.compute(binary(300), reduction="positive", bins=20, scheme="equal-mass")
    frame, picture = figure.frame(), figure.plot(caption=True)
    assert frame["bins"].tolist() == list(range(1, 101))
    for name, column in (("Equal-width bins", "width"), ("Equal-mass bins", "mass")):
        (trace,) = [t for t in picture.data if t.name == name]
        np.testing.assert_allclose(trace.y, 100 * frame[f"ece_equal_{column}"], rtol=1e-6)
        assert list(trace.customdata) == frame["bins"].tolist()
    assert figure.chosen == frame["ece_equal_mass"][19]
    assert "With 20 equal-mass bins it is" in figure.describe()


@pytest.mark.slow
def test_words():
    off = BinSensitivity.compute(binary(20_000, power=1.6), reduction="positive").describe()
    assert off.endswith("above what noise explains for every number of bins.")
    calm = BinSensitivity.compute(binary(2_000), reduction="positive").describe()
    assert "noise explains it" in calm
    single = BinSensitivity.compute(binary(1), reduction="positive").reading()
    assert single.startswith("A single row is in one bin, however many there are")
    alone = BinSensitivity.compute(binary(1), reduction="positive", most=1, bins=15)
    assert alone.chosen is None
    assert "nan" not in alone.describe()
    alone.plot(caption=True, width=350, theme="dark")


def test_options_are_checked():
    with pytest.raises(OptionError, match="scheme"):
        BinSensitivity.compute(binary(10), scheme="quantile")
    with pytest.raises(OptionError, match="bins"):
        BinSensitivity.compute(binary(10), most=0)


@pytest.mark.slow
def test_a_million_rows_are_quick_and_light():
    p = binary(1_000_000, power=1.02)
    start = time.process_time()
    figure = BinSensitivity.compute(p, reduction="positive")
    assert time.process_time() - start < 15
    assert len(figure.plot(caption=True).to_json()) < 30_000
