"""What figures say of a single row: that it says nothing."""

import numpy as np
import pytest

import calviz
from calviz.figures.bin_sensitivity import BinSensitivity
from calviz.figures.calibration_map import CalibrationCurve
from calviz.figures.corp import CorpDiagram
from calviz.figures.cumulative_plot import Cumulative
from calviz.figures.decision_cost import Decision
from calviz.figures.marks import with_legend_for
from calviz.figures.net_benefit import DecisionLoss
from calviz.figures.reliability import Reliability

ONE = calviz.Predictions(probs=np.array([[0.7, 0.2, 0.1]]), labels=np.array([0]))


@pytest.mark.parametrize(
    ("figure", "message"),
    [
        (CalibrationCurve, "a single row has no curve"),
        (BinSensitivity, "A single row is in one bin"),
        (Reliability, "1 row with a score of 0.700, a hit. A single row says nothing"),
        (Cumulative, "A single row says nothing"),
        (CorpDiagram, "A single row says nothing"),
        (DecisionLoss, "A single row says nothing"),
        (Decision, "it tells neither which threshold is best"),
    ],
)
def test_no_size_of_an_error_is_read_off_one_row(figure, message):
    result = figure.compute(ONE)
    text = " ".join([result.describe(), *result.caption()])
    assert message in text
    assert "30.0 points" not in text
    assert "per 1,000 predictions" not in text
    assert result.plot().data


def test_a_legend_has_the_room_that_it_needs():
    """The same drawing on a wide page: what is drawn keeps its height, and the legend begins at the same place."""
    p = calviz.Predictions(probs=np.linspace(0, 1, 60), labels=np.arange(60) % 2)
    figure = BinSensitivity.compute(p)
    for_small, for_wide = figure.plot(), with_legend_for(figure.plot(), 1_000)
    before, after = for_small.layout, for_wide.layout
    inner = [o.height - o.margin.t - o.margin.b for o in (before, after)]
    assert inner[0] == inner[1]
    assert after.height < before.height
    assert before.margin.b - before.legend.y * before.height == pytest.approx(
        after.margin.b - after.legend.y * after.height
    )
    # A drawing whose legend stands elsewhere is left alone.
    square = Reliability.compute(p).plot()
    assert (
        with_legend_for(square, 1_000).layout.height == Reliability.compute(p).plot().layout.height
    )
