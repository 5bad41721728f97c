"""Rows to fit on and rows to judge on: splits, fractions and folds."""

import ast
import re
from pathlib import Path

import numpy as np
import pytest

import calviz
from calviz.comparison.fitting import Division, _shuffled_by_class, fit_split_for, stratified_sample
from calviz.core.errors import CalvizError, InputError
from calviz.core.predictions import Predictions


def test_named_splits_are_found(data):
    rows = Division().rows(data)
    assert (rows.fit.split, rows.evaluation.split) == ("calibration", "test")
    assert (rows.fit.rows, rows.evaluation.rows) == (400, 400)


def test_names_of_splits_are_compared_as_in_what_was_recognised(data):
    names = np.array([" CAL", "Test ", "spare"], dtype=object)
    spaced = Predictions(probs=data.probs, labels=data.labels, splits=np.repeat(names, 400))
    rows = Division().rows(spaced)
    assert (rows.fit.split, rows.evaluation.split) == (" CAL", "Test ")
    assert fit_split_for(spaced, "Test ") == " CAL"


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"fit_split": "calibration"},
        {"eval_split": "test"},
        {"fit_split": "spare", "eval_split": "test"},
        {"fit_fraction": 0.3},
        {"cross_fit": 5},
    ],
)
def test_rows_that_fit_never_judge(data, how):
    rows = Division(**how).rows(data)
    for fit, judged in rows.pairs:
        assert not np.intersect1d(fit, judged).size
    assert not rows.in_sample


def test_what_is_left_out_is_all_other_rows(data):
    rows = Division(fit_split="calibration").rows(data)
    assert rows.evaluation.rows == 800
    assert rows.evaluation.how == "all other rows"
    assert Division(eval_split="test").rows(data).fit.rows == 800


def test_without_splits_a_stratified_seeded_half(plain):
    rows = Division().rows(plain)
    fit, judged = rows.pairs[0]
    assert fit.size == judged.size == 450
    counts = np.bincount(plain.labels[fit]) - np.bincount(plain.labels) / 2
    assert np.abs(counts).max() <= 1
    np.testing.assert_array_equal(Division().rows(plain).pairs[0][0], fit)
    assert not np.array_equal(Division(seed=1).rows(plain).pairs[0][0], fit)


def test_cross_fitting_judges_every_row_once(plain):
    rows = Division(cross_fit=4).rows(plain)
    judged = np.concatenate([j for _, j in rows.pairs])
    np.testing.assert_array_equal(np.sort(judged), np.arange(900))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"fit_split": "test", "eval_split": "test"}, "cannot both fit and judge"),
        ({"fit_split": "nothing"}, "no split 'nothing'"),
        ({"fit_fraction": 1.0}, "between 0 and 1"),
        ({"cross_fit": 1}, "from 2"),
        ({"cross_fit": 5, "fit_fraction": 0.5}, "one of the three"),
        ({"fit_fraction": 0.001}, "at least 10"),
    ],
)
def test_divisions_that_make_no_sense_are_refused(data, how, message):
    with pytest.raises(CalvizError, match=message):
        Division(**how).rows(data)


def test_data_without_splits_have_none_to_name(plain):
    with pytest.raises(InputError, match="have no splits"):
        Division(fit_split="calibration").rows(plain)


def test_stratified_samples_hold_the_classes_in_proportion():
    labels = np.repeat([0, 1, 2], [700, 250, 50])
    rows = stratified_sample(labels, 100, np.random.default_rng(0))
    assert np.unique(rows).size == 100
    np.testing.assert_allclose(np.bincount(labels[rows]), [70, 25, 5], atol=1)


@pytest.mark.parametrize(
    ("n", "asked", "message"),
    [
        (1, {"fit_fraction": 0.5}, "these data have 1 row in all: label more rows"),
        (8, {}, "these data have 8 rows in all: label more rows"),
        (100, {"fit_fraction": 0.05}, "fit on a larger split or a larger fraction of the rows, or"),
        (12, {"cross_fit": 2}, "take more folds, so that each map is fitted on more of the rows"),
    ],
)
def test_too_few_rows_to_fit_on_come_with_what_to_do(n, asked, message):
    data = calviz.Predictions(probs=np.linspace(0.2, 0.8, n), labels=np.arange(n) % 2)
    with pytest.raises(
        InputError, match=r"there are \d+ calibration rows \(.+\), a recal"
    ) as caught:
        Division(**asked).rows(data)
    assert message in str(caught.value)
    assert "needs at least 10" in str(caught.value)


@pytest.mark.parametrize("folder", ["comparison", "data", "core"])
def test_errors_that_begin_with_there_are_say_what_to_do(folder):
    checked = 0
    for path in (Path(calviz.__file__).parent / folder).rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not (isinstance(call, ast.Call) and getattr(call.func, "id", "") == "InputError"):
                continue
            text = ast.unparse(call.args[0]).lstrip("f'\"") if call.args else ""
            if re.match(r"there (are|is) .*(rows|models)", text) and "labels" not in text:
                checked += 1
                assert {k.arg for k in call.keywords} & {"remedy", "repairs"}, (path.name, text)
    assert checked


@pytest.mark.parametrize("classes", [1, 7, 1 << 10, (1 << 10) + 1])
def test_rows_are_shuffled_as_by_lexsort(classes):
    labels = np.random.default_rng(classes).integers(classes, size=2_000)
    order = _shuffled_by_class(labels, np.random.default_rng(0))
    random = np.random.default_rng(0).random(labels.size)
    np.testing.assert_array_equal(order, np.lexsort((random, labels)))
