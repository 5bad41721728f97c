"""How results are named and written."""

import numpy as np
import pytest

import calviz
from calviz.sample.error_bars import Interval, NoiseFloor
from calviz.sample.metric_results import MetricResult
from calviz.verdicts.evaluation import Written, name_of


@pytest.mark.parametrize(
    ("key", "options", "name"),
    [
        ("accuracy_at_coverage", {"coverage": 0.7}, "Accuracy at a coverage (70 %)"),
        ("coverage_at_risk", {"risk": 0.1}, "Coverage at a risk (10 %)"),
        ("coverage_at_risk", {"risk": 0.0}, "Coverage at a risk (0 %)"),
        ("ece", {"bins": 5}, "ECE"),
    ],
)
def test_names_say_at_which_point_of_a_curve(key, options, name):
    data = calviz.Predictions(probs=np.array([0.2, 0.9]), labels=np.array([0, 1]))
    assert name_of(calviz.evaluate(data, [key], **options)[key]) == name


@pytest.mark.parametrize(
    ("key", "values", "texts"),
    [
        ("accuracy", [0.9123, 1.0], ["91.2\u00a0%", "100.0\u00a0%"]),
        ("ece", [0.1234, 0.00561, float("nan")], ["12.34", "0.56", "–"]),
        ("mcs", [0.1, -0.002], ["+10.00", "−0.20"]),
        ("nll", [1.05, 0.3], ["1.0500", "0.3000"]),
        ("aurc", [0.07359, 0.00535], ["0.07359", "0.00535"]),
    ],
)
def test_a_column_has_the_same_decimals_everywhere(key, values, texts):
    results = [MetricResult(key, value) for value in values]
    written = Written.column(results)
    assert [written.of(r.value) for r in results] == texts


def test_a_value_alone_has_no_more_decimals_than_make_sense():
    assert Written(MetricResult("nll", 1.0049)).value == "1.005"
    assert Written(MetricResult("ece", 0.00646)).value == "0.65"
    assert Written(MetricResult("ece", 0.1234)).value == "12.3"


def test_mce_is_said_to_be_off_by_its_bin_and_not_by_a_noise_floor_that_says_otherwise():
    # The largest gap of a calibrated model may well be as large, while the bin at hand is off for its many rows.
    floor = NoiseFloor(mean=0.061, q95=0.088, p_value=0.078)
    bin_ = {"bin_low": 0.8, "bin_high": 13 / 15, "bin_rows": 218.0, "mean_score": 0.833}
    off = bin_ | {"hits_low": 0.653, "hits_high": 0.828}
    text = Written(MetricResult("mce", 0.0852, Interval(0.0, 0.1633), floor, details=off)).noise(
        tail="upper"
    )
    assert "noise" not in text
    assert text.startswith("its bin is off: 218 rows from 0.80 to 0.87, mean score 83.3")
    # 83.56 % and 59.62 % are 23.9 points apart, as the finding says of this bin: one decimal would show 24.0.
    bin_ |= {"mean_score": 0.8356, "hits_low": 0.3961, "hits_high": 0.7758}
    text = Written(MetricResult("mce", 0.2394, None, floor, details=bin_)).noise(tail="upper")
    assert "mean score 83.56 %, hits 39.6 % to 77.6 %" in text
    bin_["mean_score"] = 0.833
    within = bin_ | {"hits_low": 0.653, "hits_high": 0.838}
    text = Written(MetricResult("mce", 0.0852, Interval(0.0, 0.1633), floor, details=within))
    assert text.noise(tail="upper").startswith("within noise: 218 rows")


def test_an_mce_and_its_bin_that_part_say_why():
    bin_ = {"bin_low": 0.8, "bin_high": 13 / 15, "bin_rows": 218.0, "mean_score": 0.833}
    off, within = {"hits_low": 0.653, "hits_high": 0.828}, {"hits_low": 0.653, "hits_high": 0.838}
    floor = NoiseFloor(mean=0.061, q95=0.088, p_value=0.078)
    values = {
        (low, ends["hits_high"]): Written(
            MetricResult("mce", 0.0852, Interval(low, 0.16), floor, details=bin_ | ends)
        ).why_apart
        for low in (0.0, 0.02)
        for ends in (off, within)
    }
    assert "it reaches 0 as some bin may be that far off by chance" in values[0.0, 0.828]
    assert "the bin is judged by its own" in values[0.02, 0.838]
    assert all("whichever bin" not in values[k] for k in ((0.0, 0.838), (0.02, 0.828)))
