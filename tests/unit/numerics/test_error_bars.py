"""Intervals, noise floors and p-values from drawn values, by hand."""

import numpy as np
import pytest

from calviz.core.results import Interval, NoiseFloor
from calviz.numerics.error_bars import interval, noise_floor, p_value, stream


def test_the_interval_is_made_of_percentiles():
    values = np.arange(101.0)  # 0 ... 100: every percentile is itself
    assert interval(values) == pytest.approx(Interval(2.5, 97.5))
    assert interval(values, 0.5) == Interval(25, 75)
    assert interval(values[::-1]) == interval(values)


def test_an_interval_without_width_or_without_values_is_none():
    assert interval(np.full(10, 0.3)) is None
    assert interval(np.full(10, np.nan)) is None
    assert interval(np.array([])) is None


def test_undefined_draws_are_left_out():
    values = np.append(np.arange(101.0), [np.nan, np.inf])
    assert interval(values) == pytest.approx(Interval(2.5, 97.5))
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
