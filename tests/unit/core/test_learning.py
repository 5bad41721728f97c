"""How many labels are needed, on curves drawn by hand."""

import pytest

from calviz.comparison.comparison_results import RowsUsed
from calviz.comparison.study_results import LearningCurve, LearningPoint
from calviz.core.errors import OptionError
from calviz.sample.metric_results import MetricResult

SIZES = (10, 20, 40, 80)


def curve(before, direction="lower", draws=(5, 5, 5, 1), **methods):
    """One metric; of each method (low, mean, high) at each of the sizes."""
    points = [
        LearningPoint(method, rows, "m", mean, low, high, repeats)
        for method, bands in methods.items()
        for rows, repeats, (low, mean, high) in zip(SIZES, draws, bands, strict=True)
    ]
    return LearningCurve(
        name="by hand",
        points=tuple(points),
        failures={},
        fit=RowsUsed("calibration", 80, ""),
        evaluation=RowsUsed("test", 100, ""),
        reduction="top-label",
        seed=0,
        uncalibrated={"m": MetricResult("m", before)},
        directions={"m": direction},
        labels={},
    )


def test_better_is_the_whole_band_at_every_larger_number():
    bands = [(0.01, 0.05, 0.09), (0.05, 0.08, 0.11), (0.04, 0.05, 0.06), (0.04, 0.04, 0.04)]
    result = curve(0.1, a=bands).needed("a", "m")
    assert result.better_from == 40  # 20 spoils 10, whose band is better as well
    assert result.gain == pytest.approx(0.06)
    # 90 % of the gain is 0.046 or less; at 40 it is 0.05.
    assert result.settled_from == 80
    assert curve(0.1, a=bands).needed("a", "m", within=0.2).settled_from == 40
    assert result.largest == 80


def test_one_draw_says_nothing_by_itself():
    bands = [(0.01, 0.05, 0.11)] * 3 + [(0.04, 0.04, 0.04)]
    result = curve(0.1, a=bands).needed("a", "m")
    assert result.better_from is None
    assert result.gain == pytest.approx(0.06)
    assert curve(0.1, draws=(5, 5, 5, 5), a=bands).needed("a", "m").better_from == 80


@pytest.mark.parametrize(
    ("direction", "before", "last", "better"),
    [
        ("lower", 0.1, (0.11, 0.12, 0.13), False),
        ("higher", 0.9, (0.91, 0.92, 0.93), True),
        ("higher", 0.9, (0.89, 0.92, 0.93), False),
        ("zero", 0.1, (-0.05, 0.01, 0.05), True),
        ("zero", 0.1, (-0.15, 0.01, 0.05), False),
        ("one", 0.8, (0.9, 1.0, 1.1), True),
        ("one", 0.8, (0.9, 1.0, 1.3), False),
    ],
)
def test_what_better_means(direction, before, last, better):
    result = curve(before, direction, a=[last] * 4).needed("a", "m")
    assert result.better_from == (10 if better else None)


def test_no_gain_never_settles():
    result = curve(0.1, a=[(0.2, 0.2, 0.2)] * 4).needed("a", "m")
    assert result.gain == pytest.approx(-0.1)
    assert result.settled_from is None


def test_what_only_describes_has_no_answer():
    assert curve(0.1, "none", a=[(0.2, 0.2, 0.2)] * 4).needed("a", "m") is None
    assert curve(float("nan"), a=[(0.2, 0.2, 0.2)] * 4).needed("a", "m") is None
    assert curve(0.1, a=[(0.2, 0.2, 0.2)] * 4).needed("b", "m") is None
    with pytest.raises(OptionError, match="'n' is not in this learning curve"):
        curve(0.1, a=[(0.2, 0.2, 0.2)] * 4).needed("a", "n")


def test_the_best_at_each_number_of_rows():
    a = [(0, v, 1) for v in (0.1, 0.3, 0.3, 0.3)]
    b = [(0, v, 1) for v in (0.2, 0.2, 0.4, 0.1)]
    identity = [(0.25, 0.25, 0.25)] * 4
    result = curve(0.25, identity=identity, a=a, b=b)
    assert result.best("m") == ((10, "a"), (20, "b"), (40, "identity"), (80, "b"))
    assert result.methods == ("a", "b")
