"""JSON of results: plain values, nothing that the standard does not know."""

import json
import math

import numpy as np
import pytest

import calviz
from calviz.comparison.over_time import over_time
from calviz.core.errors import Finding
from calviz.report.json_results import audit_record, over_time_record, to_json
from calviz.sample.error_bars import Interval, NoiseFloor
from calviz.sample.metric_results import MetricResult
from calviz.verdicts.evaluation import ClassRow, Evaluation

EVALUATION = Evaluation(
    name="m",
    rows=3,
    n_classes=2,
    kind="logits",
    split="test",
    reduction="class:a",
    metrics={
        "ece": MetricResult(
            "ece",
            0.1,
            Interval(0.05, np.float64(0.2)),
            NoiseFloor(0.04, 0.09, 0.01),
            params={"bins": np.int64(15), "scheme": "equal-width"},
            interval_method="inverted",
        ),
        "nll": MetricResult("nll", math.nan, reason="not available.", details={"x": math.inf}),
    },
    classes=(ClassRow("a", 0, *[math.nan] * 5), ClassRow("b", 3, 0.5, 0.7, 0.2, 0.2, 0.2)),
    findings=(Finding("CAL001", "warning", "Overconfident."),),
)


def test_the_record_is_the_contract():
    record = audit_record(
        EVALUATION, file="m.csv", notices=[Finding("DATA001", "info", "Read.")], seed=4
    )
    version = record.pop("calviz")
    assert version.count(".") == 2
    assert json.loads(to_json(record)) == record
    nothing = dict.fromkeys(["accuracy", "confidence", "ece", "mcs", "ks"])
    assert record == {
        "file": "m.csv",
        "name": "m",
        "rows": 3,
        "classes": 2,
        "kind": "logits",
        "split": "test",
        "reduction": "class:a",
        "metrics": {
            "ece": {
                "value": 0.1,
                "interval": [0.05, 0.2],
                "interval_method": "inverted",
                "noise_floor": {"mean": 0.04, "q95": 0.09, "p_value": 0.01},
                "params": {"bins": 15, "scheme": "equal-width"},
            },
            "nll": {
                "value": None,
                "interval": None,
                "interval_method": None,
                "noise_floor": None,
                "params": {},
                "reason": "not available.",
                "details": {"x": None},
            },
        },
        "classes_table": [
            {"class": "a", "rows": 0, **nothing},
            {"class": "b", "rows": 3, "accuracy": 0.5, "confidence": 0.7}
            | dict.fromkeys(["ece", "mcs", "ks"], 0.2),
        ],
        "findings": [
            {"code": "DATA001", "severity": "info", "message": "Read."},
            {"code": "CAL001", "severity": "warning", "message": "Overconfident."},
        ],
        "seed": 4,
    }


@pytest.mark.parametrize("name", ["été", '"quoted"', "\x1b[31m", "\ud800", "a\nb", "\0", "猫" * 3])
def test_any_name_can_be_written_and_read_back(name):
    text = to_json({"name": name})
    assert text.isascii()
    assert text.count("\n") == 3
    assert json.loads(text) == {"name": name}


def test_a_metric_over_time_names_the_version_and_has_no_nan():
    rng = np.random.default_rng(0)
    p = rng.uniform(size=200)
    data = calviz.Predictions(
        probs=p,
        labels=(rng.uniform(size=200) < p).astype(int),
        times=np.datetime64("2021-01-01") + (np.arange(200) // 100).astype("timedelta64[D]"),
    )
    result = over_time(data, "ece", method="temperature")
    record = over_time_record(result, file="a.csv", digest="ab")
    assert record["calviz"] == audit_record(EVALUATION, file="m.csv")["calviz"]
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    floor = result.periods[0].result.noise_floor
    assert record["periods"][0]["noise_floor"] == {
        "mean": floor.mean,
        "q95": floor.q95,
        "p_value": floor.p_value,
    }
    assert record["whole"]["interval"] == list(result.whole.interval)
    # No map can be fitted before the first day.
    assert record["periods"][0]["recalibrated"] is None
