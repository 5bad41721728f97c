"""Columns of clusters, weights and times."""

import numpy as np
import pytest

from calviz.core.errors import InputError, OptionError
from calviz.data import ReadingOptions, read

N = 60


def table(**columns):
    rng = np.random.default_rng(0)
    p = rng.uniform(size=N).round(4)
    columns = {"label": (rng.random(N) < p).astype(int), "p": p, **columns}
    rows = [",".join(str(column[i]) for column in columns.values()) for i in range(N)]
    return "\n".join([",".join(columns), *rows]).encode()


def opened(columns, **options):
    return read(table(**columns), name="x.csv", options=ReadingOptions(**options))


IDS = {"patient_id": np.arange(N) // 5}
COUNTS = {"weight": 1 + np.arange(N) % 3}


def test_clusters_and_weights_are_asked_for_and_never_assumed():
    loaded = opened(IDS | COUNTS)
    assert loaded.first.alike
    asked = [n.message for n in loaded.notices if n.code == "DATA012"]
    assert len(asked) == 2
    assert "--cluster" in asked[0]
    assert "--weight" in asked[1]


@pytest.mark.parametrize(("values", "asked"), [(3, 0), (4, 0), (5, 1), (30, 1), (31, 0)])
def test_a_column_of_a_few_values_is_no_column_of_clusters(values, asked):
    loaded = opened({"site": np.arange(N) % values})
    assert len([n for n in loaded.notices if n.code == "DATA012"]) == asked


def test_named_columns_are_read():
    loaded = opened(IDS | COUNTS, cluster_column="patient_id", weight_column="weight")
    assert len(loaded.first.clusters.levels) == 12
    np.testing.assert_array_equal(loaded.first.weights, COUNTS["weight"])
    assert "clusters 'patient_id', weights 'weight'" in loaded.recognition.sentence()
    assert not [n for n in loaded.notices if n.code == "DATA012"]


def test_counts_are_written_out():
    loaded = opened(IDS | COUNTS, weight_column="weight", weight_kind="frequency")
    assert loaded.first.n == COUNTS["weight"].sum()
    assert loaded.first.weights is None


@pytest.mark.parametrize(
    "dates",
    [
        [f"2020-03-{1 + i % 28:02d}" for i in range(N)],
        [f"{1 + i % 28:02d}.03.2020" for i in range(N)],
        [f"2020-03-{1 + i % 28:02d}T00:00:00Z" for i in range(N)],
        [f"03/{1 + i % 28:02d}/2020" for i in range(N)],
    ],
)
def test_dates_are_recognised(dates):
    loaded = opened({"date": dates})
    assert loaded.recognition.time_column == "date"
    expected = np.datetime64("2020-03-01") + np.arange(N) % 28
    np.testing.assert_array_equal(loaded.first.times.astype("datetime64[D]"), expected)


def test_a_date_of_another_name_is_the_time_if_it_is_the_only_one():
    dates = [f"2020-03-{1 + i % 28:02d}" for i in range(N)]
    born = [f"19{60 + i % 30}-01-01" for i in range(N)]
    assert opened({"Origination date": dates}).recognition.time_column == "Origination date"
    assert opened({"issue_date": dates, "birth_date": born}).recognition.time_column == "issue_date"
    both = opened({"admission_date": dates, "discharge_date": dates})
    assert both.recognition.time_column is None


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (
            ["2020-01-01"] * (N - 1) + ["soon"],
            "row 60, column 'd': 'soon' cannot be read as a date",
        ),
        (["2020-01-01"] * (N - 1) + ["13.02.2020"], "two formats"),
        ([f"{1 + i % 9:02d}/{1 + i % 7:02d}/2020" for i in range(N)], "day or the month first"),
        (["2020-01-01"] * (N - 1) + [""], "there is no date"),
    ],
)
def test_dates_that_cannot_be_read_are_named(values, message):
    with pytest.raises(InputError, match=message):
        opened({"d": values}, time_column="d")


@pytest.mark.parametrize(
    ("column", "options", "message"),
    [
        ({"c": ["a"] * N}, {"cluster_column": "c"}, "column 'c': the cluster column has one value"),
        ({"w": [-1.5] * N}, {"weight_column": "w"}, "row 1, column 'w': the weight is -1.5"),
        ({"w": ["a"] * N}, {"weight_column": "w"}, "'a' is not a number"),
        ({"w": [1.5] * N}, {"weight_column": "w", "weight_kind": "frequency"}, "whole number"),
    ],
)
def test_columns_that_cannot_be_used_are_named(column, options, message):
    with pytest.raises(InputError, match=message):
        opened(column, **options)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        (
            {"c": ["a", ""] + ["b"] * (N - 2)},
            {"cluster_column": "c"},
            "row 2, column 'c': the cluster is missing",
        ),
        ({"w": ["1", "much"] * (N // 2)}, {"weight_column": "w"}, "row 2, column 'w': 'much' is"),
        (
            COUNTS,
            {"cluster_column": "weight", "weight_column": "weight"},
            "'weight' is named as the cluster column and as the weight column",
        ),
        (
            {},
            {"cluster_column": "label"},
            "'label' looks like the label; give the label column, or choose another cluster column.",
        ),
        (
            {},
            {"weight_column": "p"},
            "'p' looks like the score; give the score column, or choose another weight column.",
        ),
    ],
)
def test_columns_that_mean_nothing_or_two_things_are_refused(columns, options, message):
    with pytest.raises((InputError, OptionError), match=message):
        opened(columns, **options)


def test_rows_of_weight_zero_are_kept_and_counted_in_a_notice():
    loaded = opened({"weight": np.arange(N) % 3}, weight_column="weight")
    assert loaded.first.n == N
    (text,) = [n.message for n in loaded.notices if n.code == "DATA014"]
    assert text.startswith("20 of 60 rows have the weight 0")
    assert not [n for n in opened(COUNTS, weight_column="weight").notices if n.code == "DATA014"]
