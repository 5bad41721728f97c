"""Intervals, noise floors and p-values from drawn values, by hand."""

from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calviz.core.entry_specs import IntervalMethod
from calviz.sample.error_bars import (
    Interval,
    NoiseFloor,
    interval,
    noise_floor,
    p_value,
    stream,
    usable,
)

PERCENT = np.arange(101.0)  # 0 ... 100: every percentile is itself


def test_the_interval_is_made_of_percentiles():
    assert interval(PERCENT, value=50) == pytest.approx(Interval(2.5, 97.5))
    assert interval(PERCENT, 0.5, value=50) == Interval(25, 75)
    assert interval(PERCENT[::-1], value=50) == interval(PERCENT, value=50)


def test_the_basic_interval_is_mirrored_at_the_value_and_keeps_to_the_bounds():
    assert interval(PERCENT, 0.5, value=40, method="basic") == Interval(5, 55)
    assert interval(PERCENT, 0.5, value=30, method="basic", bounds=(0, 1)) == Interval(0, 30)


def test_the_inverted_interval_by_hand():
    # Quartiles 5 and 15 without any error, 25 and 75 at an error of 40.
    drawn = {"calibrated": PERCENT[:21], "level": 0.5}
    # The upper quartile, 15 + 60 e / 40, reaches 40 at e = 50/3; the lower, 5 + 20 e / 40, at 70.
    assert interval(PERCENT, value=40, method="inverted", **drawn) == pytest.approx((50 / 3, 70))
    # At 45 the lower quartile gets there at 45 * 40 / 20 = 90, but the percentile is 75.
    assert interval(PERCENT, value=45, method="inverted", **drawn).high == 75
    assert interval(PERCENT, value=40, method="half-inverted", **drawn) == pytest.approx(
        (50 / 3, 75)
    )
    # Corrected estimators: the resamples' simulated population has the error 50, their mean.
    unbiased = interval(PERCENT, value=30, method="inverted-unbiased", **drawn)
    assert unbiased == pytest.approx((50 * 15 / 60, 50 * 25 / 20))


def test_what_a_calibrated_model_shows_as_well_may_be_no_error_at_all():
    drawn = {"calibrated": PERCENT[:21], "level": 0.5}
    assert interval(PERCENT, value=15, method="inverted", **drawn).low == 0
    assert interval(PERCENT, value=15.1, method="inverted", **drawn).low > 0
    # Below the lower quartile of a calibrated model, 5, there is no error that explains the value.
    assert interval(PERCENT, value=4, method="inverted", **drawn) == Interval(0, 4)
    assert interval(PERCENT, value=-4, method="inverted-unbiased", **drawn) == Interval(-4, 0)


def test_an_error_with_its_sign_turned_has_the_interval_turned():
    turned = interval(
        -PERCENT, 0.5, value=-40, method="inverted", calibrated=-PERCENT[:21], bounds=(-100, 0)
    )
    assert turned == pytest.approx((-70, -50 / 3))
    assert interval(np.full(10, -0.3), value=-0.3, bounds=(-1, 0)) is None


def test_without_redrawn_labels_it_is_the_basic_interval():
    for calibrated in (None, np.array([np.nan])):
        assert usable("inverted", calibrated) == "basic"
        result = interval(PERCENT, 0.5, value=40, method="inverted", calibrated=calibrated)
        assert result == interval(PERCENT, 0.5, value=40, method="basic")
    assert usable("inverted", PERCENT) == "inverted"
    assert usable("percentile", None) == "percentile"


@given(
    st.lists(st.floats(0, 1), min_size=2, max_size=30),
    st.lists(st.floats(0, 1), min_size=1, max_size=30),
    st.floats(0, 1),
    st.sampled_from(get_args(IntervalMethod)),
)
def test_it_contains_the_value_and_keeps_to_the_bounds(drawn, calibrated, value, method):
    result = interval(
        np.array(drawn), value=value, method=method, calibrated=np.array(calibrated), bounds=(0, 1)
    )
    assert result is None or 0 <= result.low <= value <= result.high <= 1


def test_an_interval_without_width_or_without_values_is_none():
    assert interval(np.full(10, 0.3), value=0.3) is None
    assert interval(np.full(10, np.nan), value=0.3) is None
    assert interval(np.array([]), value=0.3) is None


def test_undefined_draws_are_left_out():
    values = np.append(PERCENT, [np.nan, np.inf])
    assert interval(values, value=50) == pytest.approx(Interval(2.5, 97.5))
    for method in get_args(IntervalMethod):
        assert interval(values, value=50, method=method, calibrated=values) == interval(
            PERCENT, value=50, method=method, calibrated=PERCENT
        )
    assert noise_floor(values, 100) == noise_floor(values[:101], 100)
    assert noise_floor(np.array([np.nan]), 1) is None


def test_the_p_value_counts_the_observed_value_as_one_more_draw():
    drawn = np.array([1.0, 2.0, 3.0, 4.0])
    assert p_value(drawn, 5) == pytest.approx(1 / 5)
    assert p_value(drawn, 4) == pytest.approx(2 / 5)
    assert p_value(drawn, 0) == 1
    # 0.1 + 0.2 is not 0.3, but it is not larger either.
    assert p_value(np.array([0.3]), 0.1 + 0.2) == 1


def test_the_noise_floor_by_hand():
    values = np.arange(21.0)  # mean 10, 95 % quantile 19
    assert noise_floor(values, 18) == NoiseFloor(10, 19, pytest.approx(4 / 22))
    # Two-sided: 18 is as far from 10 as 2 is; 0, 1, 2, 18, 19, 20 are at least as far.
    assert noise_floor(values, 18, "two-sided") == NoiseFloor(10, 19, pytest.approx(7 / 22))
    assert noise_floor(values, 2, "two-sided") == noise_floor(values, 18, "two-sided")
    # Equal-tailed: twice the share of 18, 19 and 20.
    assert noise_floor(values, 18, "equal-tailed") == NoiseFloor(10, 19, pytest.approx(8 / 22))


def test_an_equal_tailed_p_value_of_skewed_draws():
    # Quantiles of an exponential variable: 1 % of it is below 0.01005, but 37 % is as far from its mean of 1.
    values = -np.log1p(-(np.arange(1_000) + 0.5) / 1_000)
    low = noise_floor(values, -np.log(0.99), "equal-tailed")
    assert low.p_value == pytest.approx(0.02, abs=0.003)
    assert noise_floor(values, -np.log(0.01), "equal-tailed").p_value == pytest.approx(
        0.02, abs=0.003
    )
    assert noise_floor(values, np.log(2), "equal-tailed").p_value == 1


def test_the_streams_follow_the_seed_and_the_kind_of_draw():
    first = [
        stream(seed, draw).random()
        for seed in (0, 1)
        for draw in ("bootstrap", "under_calibration")
    ]
    again = [
        stream(seed, draw).random()
        for seed in (0, 1)
        for draw in ("bootstrap", "under_calibration")
    ]
    assert first == again
    assert len(set(first)) == 4


def test_held_out_ends_are_the_further_ones():
    # Redrawn hits: -10 to 0, their mean -5, their 2.5 and 97.5 % at -9.75 and -0.25. Resamples: 2.5 to 97.5.
    redrawn = np.linspace(-10, 0, 101)
    result = interval(PERCENT, value=50, method="held-out", calibrated=redrawn)
    assert result == pytest.approx(Interval(min(50 + 0.25, 2.5 + 5), max(50 + 9.75, 97.5 + 5)))
    # Within noise, where the resamples end below 0.
    near = interval(PERCENT / 100 - 6, value=-5.5, method="held-out", calibrated=redrawn)
    assert near == pytest.approx(Interval(-5.5, -5.5 + 9.75))
    # Far below: 0 is still held.
    assert (
        interval(PERCENT / 100 - 60, value=-59.5, method="held-out", calibrated=redrawn).high == 0
    )
