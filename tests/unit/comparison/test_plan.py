"""A plan is carried out as `compare` does, rows are divided by one value, and the advice comes with the result."""

import numpy as np
import pytest

import calviz
from calviz.comparison.advice import advise
from calviz.comparison.compare import Plan, carry_out
from calviz.comparison.fitting import Division, whole_clusters
from calviz.core.errors import InputError, OptionError
from calviz.core.predictions import Predictions
from tests.inputs.simulated import simulate, softmax


@pytest.fixture(scope="module")
def data():
    z, y = simulate(240, 3, 2)
    text = softmax(z)
    return Predictions(probs=text, labels=y, splits=["calibration", "test"] * 120)


def test_a_plan_is_what_compare_carries_out(data):
    plan = Plan(
        methods=("temperature", "isotonic"),
        division=Division(fit_fraction=0.4, seed=3),
        metrics=("nll", "brier"),
        resamples=100,
        options={"isotonic": {"cap": False}},
    )
    planned = carry_out(plan, data)
    written_out = calviz.compare(
        data,
        ["temperature", "isotonic"],
        fit_fraction=0.4,
        seed=3,
        metrics=["nll", "brier"],
        resamples=100,
        options={"isotonic": {"cap": False}},
    )
    left_out = ["fit_seconds", "apply_seconds"]
    assert planned.frame().drop(columns=left_out).equals(written_out.frame().drop(columns=left_out))
    assert planned.tied == written_out.tied
    assert planned.fit.how == "40 % of the rows, stratified, seed 3"


def test_the_advice_is_made_with_the_comparison_and_kept(data):
    comparison = calviz.compare(data, ["ets", "isotonic"], metrics=["nll", "brier"], resamples=100)
    assert comparison.advice == advise(comparison, data)
    assert comparison.advice_keeping_classes == advise(comparison, data, keep_classes=True)


def test_a_plan_says_itself_whole():
    """The app names jobs by the text of a plan, so no choice may be missing in it."""
    plans = [
        Plan(),
        Plan(methods=("temperature",)),
        Plan(division=Division(cross_fit=3)),
        Plan(metrics=("nll",)),
        Plan(reduction="top-label"),
        Plan(bins=7),
        Plan(scheme="equal-mass"),
        Plan(ci=False),
        Plan(resamples=10),
        Plan(refits=2),
        Plan(options={"isotonic": {"cap": False}}),
    ]
    assert len(set(map(repr, plans))) == len(plans)


@pytest.mark.parametrize("refits", [-1, 1])
def test_one_refit_has_no_spread(refits):
    with pytest.raises(OptionError, match="'refits' must be 0, or 2 or more"):
        Plan(refits=refits)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"fit_split": "test", "eval_split": "calibration"},
        {"fit_fraction": 0.5, "seed": 4},
        {"cross_fit": 3},
        {"in_sample": True},
    ],
)
def test_a_division_says_what_was_given_and_divides_by_it(data, given):
    division = Division(**given)
    assert division.given == given
    one, other = division.rows(data), Division(**division.given).rows(data)
    assert one.in_sample == ("in_sample" in given)
    for pair, same in zip(one.pairs, other.pairs, strict=True):
        for rows, same_rows in zip(pair, same, strict=True):
            np.testing.assert_array_equal(rows, same_rows)


def test_a_map_needs_ten_rows():
    def of(rows):
        splits = ["fit"] * rows + ["judge"] * 20
        p = np.full((rows + 20, 2), 0.5)
        return Predictions(probs=p, labels=np.arange(rows + 20) % 2, splits=splits)

    division = Division(fit_split="fit", eval_split="judge")
    assert division.rows(of(10)).fit.rows == 10
    with pytest.raises(InputError, match=r"there are 9 calibration rows .* needs at least 10"):
        division.rows(of(9))


@pytest.mark.parametrize(("rows", "taken"), [(1, 4), (4, 4), (7, 8), (12, 8), (99, 8)])
def test_clusters_are_taken_whole_and_one_is_left(rows, taken):
    # Three clusters of four rows: as many of them as come nearest, but neither none nor all.
    cluster = np.tile([0, 1, 2], 4)
    result = whole_clusters(cluster, rows, np.random.default_rng(0))
    assert result.size == taken
    assert np.bincount(cluster[result], minlength=3).tolist().count(4) == taken // 4
