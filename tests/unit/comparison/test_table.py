"""The table of a comparison: marks that can be checked by hand, and remarks that stand once."""

import math

import pytest

from calviz.comparison.comparison_results import (
    Comparison,
    ComparisonColumn,
    MethodResult,
    RowsUsed,
)
from calviz.sample.metric_results import MetricResult


def column(key, tied=(), **values):
    return ComparisonColumn.of(key, {row: MetricResult(key, v) for row, v in values.items()}, tied)


@pytest.mark.parametrize(
    ("key", "tied", "best", "second"),
    [
        ("nll", (), ("a",), ("b",)),  # lower is better
        ("accuracy", (), ("c",), ("b",)),  # higher is better
        ("nll", ("a", "b"), ("a", "b"), ("c",)),
        ("nll", ("a", "b", "c"), ("a", "b", "c"), ()),
    ],
)
def test_the_best_those_tied_with_it_and_the_best_of_the_others(key, tied, best, second):
    result = column(key, tied, c=0.4, a=0.1, b=0.2, none=math.nan)
    assert (result.best, result.second) == (best, second)
    marks = {row: result.mark(row) for row in ("a", "b", "c", "none")}
    assert {r for r, m in marks.items() if m == "best"} == set(best)
    assert {r for r, m in marks.items() if m == "second"} == set(second)
    assert marks["none"] is None
    assert {row for row in marks if result.is_tied(row)} == set(best[1:])


def test_a_column_has_one_number_of_decimals_and_its_unit():
    result = column("ece", a=0.012345, b=0.5, none=math.nan)
    assert result.heading == "ECE (points)"
    assert [result.text(row) for row in ("a", "b", "none", "absent")] == ["1.23", "50.00", "–", "–"]


def test_remarks_stand_once_with_all_that_they_are_about():
    note = "1 row counts as 2.2e-16."
    methods = {
        "identity": MethodResult(
            "identity", "Uncalibrated", True, metrics={"nll": MetricResult("nll", 1, note=note)}
        ),
        "platt": MethodResult("platt", "Platt", True, warnings=("It hit a bound.",)),
        "beta": MethodResult("beta", "Beta", True, warnings=("It hit a bound.", "No rows.")),
        "vector": MethodResult("vector", "Vector", False, "It failed."),
    }
    used = RowsUsed(None, 10, "all rows")
    result = Comparison("x", used, used, False, 0, "top-label", methods, {"nll": "lower"})
    assert [(r.kind, r.of, r.text) for r in result.remarks(result.columns(["nll", "brier"]))] == [
        ("value", ("identity",), note),
        ("failed", ("vector",), "It failed."),
        ("warning", ("platt", "beta"), "It hit a bound."),
        ("warning", ("beta",), "No rows."),
    ]
