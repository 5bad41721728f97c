"""How many labels are needed, on curves drawn by hand."""

import math
from dataclasses import replace

import numpy as np
import pytest

from calviz.comparison.comparison_results import RowsUsed
from calviz.comparison.learning_curves import FURTHEST, LearningCurve, LearningPoint
from calviz.core.errors import OptionError
from calviz.sample.metric_results import MetricResult

SIZES = (10, 20, 40, 80)


def curve(before, direction="lower", draws=(5, 5, 5, 1), noise=0.0, **methods):
    """One metric; of each method (gain, standard deviation) at each of the sizes."""
    points = [
        LearningPoint(
            method,
            rows,
            "m",
            before - gain,
            before - gain,
            before - gain,
            repeats,
            None,
            gain,
            spread,
            noise,
        )
        for method, values in methods.items()
        for rows, repeats, (gain, spread) in zip(SIZES, draws, values, strict=True)
    ]
    return LearningCurve(
        name="by hand",
        points=tuple(points),
        failures={},
        fit=RowsUsed("calibration", 100, ""),
        evaluation=RowsUsed("test", 100, ""),
        reduction="top-label",
        seed=0,
        uncalibrated={"m": MetricResult("m", before)},
        directions={"m": direction},
        labels={},
    )


def test_the_tolerance_limit_is_that_of_drawn_gains():
    # Gains of normal draws that share the fraction f of a pool: a common part of variance f and own ones of 1 - f.
    rng = np.random.default_rng(0)
    k, size, pool, error, missed = 8, 40, 100, 0.05, 0
    f, runs = size / pool, 3_000
    for _ in range(runs):
        gains = 3 + np.sqrt(f) * rng.normal() + np.sqrt(1 - f) * rng.normal(size=k)
        point = LearningPoint(
            "a", size, "m", 0, 0, 0, k, None, gains.mean(), gains.std(ddof=1), 0.0
        )
        missed += point.least_gain(pool, error) > 3 - FURTHEST
    assert missed / runs == pytest.approx(error, abs=3.5 * np.sqrt(error / runs))


def test_better_is_what_nearly_all_draws_are_at_every_larger_number():
    # 20 spoils 10, which is better as well.
    values = [(0.08, 0.01), (0.02, 0.01), (0.08, 0.01), (0.08, math.nan)]
    result = curve(0.1, a=values).needed("a", "m")
    assert result.better_from == 40
    assert result.largest == 80
    # Noise of the evaluation rows is added; unknown noise tells nothing.
    assert curve(0.1, noise=0.04, a=values).needed("a", "m").better_from is None
    assert curve(0.1, noise=math.nan, a=values).needed("a", "m").better_from is None
    # Two methods share the error.
    assert curve(0.1, a=values, b=values).needed("a", "m").better_from is None
    # A fit that failed does not count as better.
    fewer = [
        replace(p, repeats=4) if (p.method, p.rows) == ("a", 40) else p
        for p in curve(0.1, a=values, identity=values).points
    ]
    assert replace(curve(0.1, a=values), points=tuple(fewer)).needed("a", "m").better_from is None
    assert replace(curve(0.1, a=values), clustered=True).needed("a", "m").better_from is None


def test_it_settles_where_most_of_the_gain_is_reached():
    values = [(0.02, 0.1), (0.05, 0.1), (0.053, 0.1), (0.06, math.nan)]
    result = curve(0.1, a=values).needed("a", "m")
    assert result.gain == pytest.approx(0.06)
    # 90 % of the gain is 0.054.
    assert result.settled_from == 80
    assert curve(0.1, a=values).needed("a", "m", within=0.2).settled_from == 20


def test_one_draw_says_nothing_by_itself():
    values = [(0.01, 0.05)] * 3 + [(0.06, math.nan)]
    assert curve(0.1, a=values).needed("a", "m").better_from is None
    # All rows must not contradict.
    values = [(0.08, 0.01)] * 3 + [(-0.01, math.nan)]
    assert curve(0.1, a=values).needed("a", "m").better_from is None
    several = [(0.01, 0.05)] * 3 + [(0.06, 0.001)]
    assert curve(0.1, draws=(5, 5, 5, 5), a=several).needed("a", "m").better_from == 80


def test_no_gain_never_settles():
    result = curve(0.1, a=[(-0.1, 0.0)] * 4).needed("a", "m")
    assert result.gain == pytest.approx(-0.1)
    assert result.settled_from is None


def test_what_only_describes_has_no_answer():
    assert curve(0.1, "none", a=[(-0.1, 0.0)] * 4).needed("a", "m") is None
    assert curve(float("nan"), a=[(-0.1, 0.0)] * 4).needed("a", "m") is None
    assert curve(0.1, a=[(-0.1, 0.0)] * 4).needed("b", "m") is None
    with pytest.raises(OptionError, match="'n' is not in this learning curve"):
        curve(0.1, a=[(-0.1, 0.0)] * 4).needed("a", "n")


def test_the_best_at_each_number_of_rows():
    a, b, identity = (
        [(0.25 - v, 0.0) for v in values]
        for values in ((0.1, 0.3, 0.3, 0.3), (0.2, 0.2, 0.4, 0.1), (0.25,) * 4)
    )
    result = curve(0.25, identity=identity, a=a, b=b)
    assert result.best("m") == ((10, "a"), (20, "b"), (40, "identity"), (80, "b"))
    assert result.methods == ("a", "b")
