"""Results as a table."""

import math

from calviz.sample.error_bars import Interval, NoiseFloor
from calviz.sample.metric_results import MetricResult
from calviz.verdicts.evaluation import Evaluation


def test_the_frame_has_one_row_per_metric():
    evaluation = Evaluation(
        name="a",
        rows=3,
        n_classes=2,
        kind="probabilities",
        split=None,
        reduction="top-label",
        metrics={
            "ece": MetricResult("ece", 0.1, Interval(0.05, 0.2), NoiseFloor(0.04, 0.09, 0.01)),
            "nll": MetricResult("nll", math.nan, reason="not available."),
        },
    )
    frame = evaluation.frame()
    assert frame.index.tolist() == ["ece", "nll"]
    assert frame.loc["ece"].tolist()[:6] == [0.1, 0.05, 0.2, 0.04, 0.09, 0.01]
    assert frame.loc["nll", ["value", "low", "p_value"]].isna().all()
    assert frame.loc["nll", "reason"] == "not available."
    assert len(evaluation) == 2
    assert [r.available for r in evaluation] == [True, False]
