"""Plans, the rows that fit and the rows that judge."""

import ast
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import calviz
from calviz.comparison.advice import advise
from calviz.comparison.compare import Plan, carry_out, compare
from calviz.comparison.compare_models import compare_models
from calviz.comparison.fitting import (
    Division,
    _shuffled_by_class,
    apply_map,
    apply_to_all,
    calibrate,
    stratified_sample,
    whole_clusters,
)
from calviz.comparison.learning_curves import learning_curve
from calviz.comparison.over_time import over_time
from calviz.comparison.paired_differences import pair
from calviz.comparison.prediction_sets import prediction_sets
from calviz.core.entry_specs import METRICS
from calviz.core.errors import CalvizError, InputError, NotAvailable, OptionError
from calviz.core.predictions import ConfidencePredictions, Predictions
from calviz.data.loaded import fit_split_for
from calviz.data.writing import write_predictions
from calviz.figures.reliability import Reliability
from calviz.sample.sample import Sample
from calviz.sample.slices import slices
from tests.inputs.simulated import draw_labels, simulate, softmax

# ---- A plan is carried out as `compare` does, rows are divided by one value, and the advice comes with the result


@pytest.fixture(scope="module")
def data_of_plan():
    z, y = simulate(240, 3, 2)
    text = softmax(z)
    return Predictions(probs=text, labels=y, splits=["calibration", "test"] * 120)


def test_a_plan_is_what_compare_carries_out(data_of_plan):
    plan = Plan(
        methods=("temperature", "isotonic"),
        division=Division(fit_fraction=0.4, seed=3),
        metrics=("nll", "brier"),
        resamples=100,
        options={"isotonic": {"cap": False}},
    )
    planned = carry_out(plan, data_of_plan)
    written_out = calviz.compare(
        data_of_plan,
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


def test_the_advice_is_made_with_the_comparison_and_kept(data_of_plan):
    comparison = calviz.compare(
        data_of_plan, ["ets", "isotonic"], metrics=["nll", "brier"], resamples=100
    )
    assert comparison.advice == advise(comparison, data_of_plan)
    assert comparison.advice_keeping_classes == advise(comparison, data_of_plan, keep_classes=True)


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
def test_a_division_says_what_was_given_and_divides_by_it(data_of_plan, given):
    division = Division(**given)
    assert division.given == given
    one, other = division.rows(data_of_plan), Division(**division.given).rows(data_of_plan)
    assert one.in_sample == ("in_sample" in given)
    for rows_of_one, same in zip(one.pairs, other.pairs, strict=True):
        for rows, same_rows in zip(rows_of_one, same, strict=True):
            np.testing.assert_array_equal(rows, same_rows)


@pytest.mark.parametrize("column", ["ids", "clusters"])
@pytest.mark.parametrize("how", [{}, {"fit_fraction": 0.3}, {"cross_fit": 4}])
def test_rows_of_one_patient_stay_together(how, column):
    rng = np.random.default_rng(0)
    patients = rng.permutation(np.arange(600) % 250)
    p = rng.random(600)
    data = Predictions(probs=p, labels=(rng.random(600) < p) * 1, **{column: patients})
    for fit, judged in Division(**how).rows(data).pairs:
        assert not np.intersect1d(patients[fit], patients[judged]).size
        assert fit.size + judged.size == 600


def test_a_map_needs_ten_rows():
    def of(rows):
        splits = ["fit"] * rows + ["judge"] * 20
        p = np.full((rows + 20, 2), 0.5)
        return Predictions(probs=p, labels=np.arange(rows + 20) % 2, splits=splits)

    division = Division(fit_split="fit", eval_split="judge")
    assert division.rows(of(10)).fit.rows == 10
    with pytest.raises(InputError, match=r"there are 9 calibration rows .* at least 10 are needed"):
        division.rows(of(9))


@pytest.mark.parametrize(("rows", "taken"), [(1, 4), (4, 4), (7, 8), (12, 8), (99, 8)])
def test_clusters_are_taken_whole_and_one_is_left(rows, taken):
    # Three clusters of four rows: as many of them as come nearest, but neither none nor all.
    cluster = np.tile([0, 1, 2], 4)
    result = whole_clusters(cluster, rows, np.random.default_rng(0))
    assert result.size == taken
    assert np.bincount(cluster[result], minlength=3).tolist().count(4) == taken // 4


# ---- Rows to fit on and rows to judge on: splits, fractions and folds


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


def test_by_time_the_earlier_days_fit_and_the_later_judge():
    rng = np.random.default_rng(0)
    day = rng.integers(100, size=1_000)
    times = np.datetime64("2025-01-01T00") + (24 * day + rng.integers(24, size=1_000))
    score = rng.random(1_000)
    hit = (rng.random(1_000) < score).astype(int)
    data = Predictions(probs=score, labels=hit, times=times)
    rows = Division(fit_fraction=0.4, by_time=True).rows(data)
    (fit, judged), dates = rows.pairs[0], times.astype("datetime64[D]")
    assert dates[fit].max() + 1 == dates[judged].min()
    assert fit.size == pytest.approx(400, abs=15)
    assert fit.size + judged.size == 1_000
    assert rows.fit.how == f"the earlier rows, 2025-01-01 to {dates[fit].max()}"
    assert rows.evaluation.how == f"the later rows, {dates[judged].min()} to 2025-04-10"
    compared = compare(data, ["temperature"], fit_fraction=0.4, by_time=True, ci=False)
    assert (compared.fit, compared.evaluation) == (rows.fit, rows.evaluation)
    # The last day always judges.
    last = Division(fit_fraction=0.999, by_time=True).rows(data).judged
    assert set(dates[last]) == {np.datetime64("2025-04-10")}
    with pytest.raises(OptionError, match="fraction"):
        Division(by_time=True).rows(data)
    for none in (replace(data, times=None), data.take(np.flatnonzero(day == 3))):
        with pytest.raises(NotAvailable, match="divided by their days"):
            Division(fit_fraction=0.4, by_time=True).rows(none)


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
        InputError, match=r"there are \d+ calibration rows \(.+\), at least 10"
    ) as caught:
        Division(**asked).rows(data)
    assert message in str(caught.value)
    assert "at least 10 are needed" in str(caught.value)


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


# ---- Rows of a split whose name says that the model was trained on them take part only if the split is named


def in_splits(*names, rows=60):
    rng = np.random.default_rng(4)
    p = rng.uniform(0.02, 0.98, rows * len(names))
    labels = (rng.random(p.size) < p).astype(int)
    splits = np.repeat(np.array(names, dtype=object), rows)
    return Predictions(
        probs=p, labels=labels, splits=splits, groups={"fold": np.arange(p.size) % 4}
    )


def splits_of(rows, data):
    """The splits of the rows that fit, and of those that judge."""
    names = np.array(data.splits.levels)[data.splits.codes]
    return tuple(
        set(names[np.concatenate(part)].tolist()) for part in zip(*rows.pairs, strict=True)
    )


HELD = {"HOLDOUT"}


@pytest.mark.parametrize(
    ("names", "how", "fit", "judged"),
    [
        (("TRAIN", "HOLDOUT"), {}, HELD, HELD),
        (("TRAIN", "HOLDOUT"), {"eval_split": "HOLDOUT"}, HELD, HELD),
        (("TRAIN", "HOLDOUT"), {"eval_split": "HOLDOUT", "fit_fraction": 0.3}, HELD, HELD),
        (("TRAIN", "HOLDOUT"), {"fit_fraction": 0.3}, HELD, HELD),
        (("TRAIN", "HOLDOUT"), {"cross_fit": 3}, HELD, HELD),
        (("TRAIN", "HOLDOUT"), {"cross_fit": "fold"}, HELD, HELD),
        (("TRAIN", "HOLDOUT"), {"fit_split": "TRAIN"}, {"TRAIN"}, HELD),
        (("TRAIN", "HOLDOUT"), {"eval_split": "TRAIN"}, HELD, {"TRAIN"}),
        (("In-Sample", "OOT"), {}, {"OOT"}, {"OOT"}),
        (("train", "val", "test"), {}, {"val"}, {"test"}),
        (("train", "val", "test"), {"fit_split": "val"}, {"val"}, {"test"}),
        (("train", "val", "test"), {"eval_split": "test"}, {"val"}, {"test"}),
        (("train", "a", "b"), {"eval_split": "b"}, {"a"}, {"b"}),
        (("train", "val"), {}, {"val"}, {"val"}),
        (("train", "val"), {"fit_split": "val"}, {"val"}, {"train"}),
        (("training", "train"), {}, {"training", "train"}, {"training", "train"}),
    ],
)
def test_rows_that_the_model_was_trained_on_take_part_only_if_named(names, how, fit, judged):
    data = in_splits(*names)
    rows = Division(**how).rows(data)
    assert splits_of(rows, data) == (fit, judged)
    assert all(not np.intersect1d(*pair).size for pair in rows.pairs)


def test_what_is_divided_is_said():
    data = in_splits("TRAIN", "HOLDOUT")
    rows = Division().rows(data)
    assert rows.fit.how == "50 % of the rows of split 'HOLDOUT', stratified, seed 0"
    assert rows.evaluation.how == "all other rows of split 'HOLDOUT'"
    assert (rows.fit.rows, rows.evaluation.rows) == (30, 30)
    crossed = Division(cross_fit=3).rows(data)
    assert crossed.evaluation.how.startswith("all rows outside split 'TRAIN', each by a map")
    assert crossed.evaluation.rows == crossed.judged.size == 60
    alone = data.take(np.flatnonzero(data.splits.mask("HOLDOUT")))
    for one, other in zip(
        rows.pairs[0], Division(fit_fraction=0.5).rows(alone).pairs[0], strict=True
    ):
        np.testing.assert_array_equal(one - 60, other)
    with pytest.raises(InputError, match="there is no split 'x'"):
        Division(eval_split="x", fit_fraction=0.5).rows(data)


def test_cross_fitted_comparisons_and_files_have_the_rows_they_say():
    data = in_splits("TRAIN", "HOLDOUT")
    comparison = compare(data, ["temperature"], cross_fit=3, metrics=["brier"], ci=False)
    assert comparison.evaluation.rows == comparison["temperature"].calibrated.n == 60
    result = calviz.recalibrate(data, "temperature", cross_fit=3)
    assert result.n == data.n
    np.testing.assert_array_equal(result.labels, data.labels)


def test_rows_that_were_drawn_to_fit_are_marked_in_the_result():
    data = in_splits("TRAIN", "HOLDOUT")
    said = "fitted on 50 % of the rows of split 'HOLDOUT', stratified, seed 0 (30 rows), which have the split 'calibration'"
    assert calibrate(data, "temperature", Division()).warnings[0].startswith(said)
    result = calviz.recalibrate(data, "temperature")
    assert result.splits.counts() == {"HOLDOUT": 30, "TRAIN": 60, "calibration": 30}
    fit = Division().rows(data).pairs[0][0]
    np.testing.assert_array_equal(np.flatnonzero(result.splits.mask("calibration")), fit)
    assert (
        calviz.recalibrate(data, "temperature", fit_split="TRAIN").splits.counts()
        == data.splits.counts()
    )


def memorised(by, n=600):
    """A split on which logits are moved to the labels, and one where they are not."""
    rng = np.random.default_rng(0)
    z = rng.normal(size=2 * n)
    y = (rng.random(2 * n) < 1 / (1 + np.exp(-z))).astype(int)
    z += by * (np.arange(2 * n) < n) * (2 * y - 1)
    return Predictions(probs=1 / (1 + np.exp(-z)), labels=y, splits=np.repeat(["train", "test"], n))


def test_that_the_model_was_trained_on_the_rows_that_fit_is_said_where_it_shows():
    said = "The model was trained on split 'train': its Brier score is "
    division = Division(fit_split="train", eval_split="test")
    remark = division.told(memorised(1.3)).fit.remark
    there, here = (
        calviz.evaluate(memorised(1.3), ["brier_binary"], split=split, ci=False)["brier_binary"]
        for split in ("train", "test")
    )
    # As tables show it: of one column.
    assert remark.startswith(f"{said}{there.value:.4f} there and {here.value:.4f} on ")
    assert division.told(memorised(0)).fit.remark == ""
    assert Division(fit_split="test").told(memorised(1.3)).fit.remark == ""
    comparison = compare(
        memorised(1.3), ["temperature"], fit_split="train", metrics=["brier"], ci=False
    )
    assert comparison.rows_warning.startswith(said)
    assert calibrate(memorised(1.3), "temperature", division).warnings[0].startswith(said)
    assert said in prediction_sets(memorised(1.3), division=division).reading()


# ---- What is judged about data with rows of weight 0 is what is judged about the data without these rows


#: Indices of the rows of weight 0 among all rows, and of those that count.
N = 160
IDLE = np.arange(0, N, 4)
COUNTING = np.delete(np.arange(N), IDLE)


def with_and_without(kind, idle=IDLE, **columns):
    """Return data with rows of weight 0, which are unlike the others in every column, and the data without them."""
    rng = np.random.default_rng(5)
    classes = 2 if kind == "two classes" else 3
    probs = rng.dirichlet(np.ones(classes), N)
    labels = draw_labels(probs, rng)
    weights = np.ones(N) if kind == "equal weights" else rng.uniform(0.5, 2, N)
    weights[idle] = 0
    site, split = (rng.choice(levels, N).astype(object) for levels in (["a", "b"], ["cal", "rest"]))
    times = np.datetime64("2021-01-05") + rng.integers(0, 90, N).astype("timedelta64[D]")
    probs[idle] = np.eye(classes)[0]
    labels[idle], site[idle], times[idle] = classes - 1, "other", np.datetime64("2020-01-01")
    columns |= {"groups": {"site": site}, "splits": split, "times": times, "ids": np.arange(N)}
    columns["weights"] = weights
    if kind == "clusters":
        columns["clusters"] = np.where(weights > 0, np.arange(N) % 30, 30)
    every = {"probs": probs, "labels": labels}
    of = calviz.Predictions
    if kind == "confidence":
        every = {"confidence": probs.max(axis=1), "correct": probs.argmax(axis=1) == labels}
        of = calviz.ConfidencePredictions
    keep = np.delete(np.arange(N), idle)

    def kept(column):
        return (
            {name: kept(values) for name, values in column.items()}
            if isinstance(column, dict)
            else column[keep]
        )

    every |= columns
    return of(**every), of(**kept(every))


KINDS = ("two classes", "three classes", "clusters", "confidence", "equal weights")


@pytest.fixture(params=KINDS)
def both(request):
    """Data with rows of weight 0, and without them."""
    return with_and_without(request.param)


def assert_same(one, other):
    """Results without rows are equal, nan included."""
    for name in vars(one):
        a, b = getattr(one, name), getattr(other, name)
        assert repr(a) == repr(b), name
        if name == "verdict":
            assert repr(vars(a)) == repr(vars(b))


def test_all_metrics_classes_findings_and_the_verdict(both):
    one, other = (calviz.evaluate(d, ci=True, resamples=8) for d in both)
    assert one.metrics.keys() == {m.key for m in METRICS}
    assert one.rows == COUNTING.size
    assert_same(one, other)


def test_slices(both):
    one, other = (slices(d, min_rows=10) for d in both)
    assert {s.where[-1][1] for s in one.slices} >= {"a", "b"}
    assert_same(one, other)


def test_over_time(both):
    one, other = (over_time(d, "ece", every="month", resamples=20) for d in both)
    assert [p.name[:4] for p in one.periods] == ["2021"] * len(one.periods)
    assert_same(one, other)


@pytest.mark.parametrize("how", [{}, {"fit_fraction": 0.4}, {"cross_fit": 3}, {"in_sample": True}])
@pytest.mark.parametrize("kind", ["three classes", "clusters"])
def test_comparisons_of_methods(kind, how):
    one, other = (
        compare(d, ["temperature"], metrics=["ece", "nll", "kde_ece"], resamples=20, **how)
        for d in with_and_without(kind)
    )
    assert (one.fit, one.evaluation, one.bins) == (other.fit, other.evaluation, other.bins)
    for a, b in zip(one, other, strict=True):
        assert a.ok
        for name in ("metrics", "differences", "best_share", "calibration_gain", "params"):
            assert repr(getattr(a, name)) == repr(getattr(b, name)), name
        assert a.predictions_changed == b.predictions_changed
    assert repr(one.advice) == repr(other.advice)


def test_comparisons_of_models():
    def result(data):
        sharper = replace(data, probs=data.probs**2 / (data.probs**2).sum(axis=1, keepdims=True))
        return compare_models({"a": data, "b": sharper}, resamples=20)

    one, other = map(result, with_and_without("three classes"))
    assert one.rows == COUNTING.size
    assert repr(one.models) == repr(other.models)
    assert one.pairs
    assert repr(one.pairs) == repr(other.pairs)


def test_paired_differences_of_sets_with_all_rows():
    def differences(data):
        flat = replace(data, probs=(data.probs + 0.5) / 2.5)
        rng = np.random.default_rng(0)
        sets, keys = {"a": data, "b": flat}, ["ece", "nll", "accuracy"]
        paired = pair(sets, keys, reduction="top-label", resamples=20, rng=rng)
        return [paired.metrics[key].difference("a", "b") for key in paired.metrics]

    one, other = map(differences, with_and_without("three classes"))
    assert one
    assert one == other


def test_learning_curves_and_prediction_sets():
    some, none = with_and_without("three classes")
    curves = [learning_curve(d, ["temperature"], sizes=[20], repeats=2) for d in (some, none)]
    assert repr(curves[0].points) == repr(curves[1].points)
    sets = [
        prediction_sets(d, coverage=0.8, fit_split="cal", eval_split="rest") for d in (some, none)
    ]
    assert repr(vars(sets[0])) == repr(vars(sets[1]))


def test_a_verdict_on_five_rows_that_count_is_on_five_rows():
    rng = np.random.default_rng(0)
    p = rng.random(1_000)
    data = calviz.Predictions(probs=p, labels=rng.random(1_000) < p, weights=np.arange(1_000) < 5)
    assert calviz.verdict(data).sentence.startswith("5 rows are too few for a verdict")


def test_calibrated_files_have_all_rows():
    data, none = with_and_without("three classes")
    for how in ({"fit_fraction": 0.5}, {"cross_fit": 3}, {"fit_split": "cal"}):
        whole, part = (
            calibrate(d, "temperature", Division(**how)).calibrated for d in (data, none)
        )
        assert whole.n == N
        assert np.array_equal(whole.ids, data.ids)
        assert np.isfinite(whole.probs).all()
        np.testing.assert_allclose(whole.probs.sum(axis=1), 1)
        assert np.array_equal(whole.probs[COUNTING], part.probs)
        assert np.array_equal(whole.weights, data.weights)


def test_divisions_are_of_the_rows_that_count():
    data, _ = with_and_without("three classes")
    for fit, judged in Division(fit_fraction=0.5).rows(data).pairs:
        assert np.array_equal(np.sort(np.append(fit, judged)), COUNTING)
    pairs = Division(cross_fit=4).rows(data).pairs
    assert np.array_equal(np.sort(np.concatenate([judged for _, judged in pairs])), np.arange(N))
    assert not any(np.isin(fit, IDLE).any() for fit, _ in pairs)


def test_a_split_whose_rows_all_have_weight_zero():
    data, _ = with_and_without("three classes")
    data = replace(data, weights=np.where(data.splits.mask("cal"), 0, data.weights))
    with pytest.raises(NotAvailable, match="all calibration rows have the weight 0"):
        Division(fit_split="cal", eval_split="rest").rows(data)
    with pytest.raises(NotAvailable, match="all evaluation rows have the weight 0"):
        Division(fit_split="rest", eval_split="cal").rows(data)
    result = calviz.evaluate(data, ["ece"], split="cal")["ece"]
    assert result.reason == "all of these rows have the weight 0, so that none counts."


@pytest.mark.parametrize("split", [None, "rest"])
def test_rows_of_a_bin_are_numbered_as_in_the_data(split):
    data, _ = with_and_without("two classes")
    diagram = Reliability.compute(data, split=split)
    rows = np.sort(np.concatenate([diagram.rows(int(b)) for b in diagram.bin]))
    expected = COUNTING if split is None else COUNTING[data.splits.mask(split)[COUNTING]]
    assert np.array_equal(rows, expected)


def test_data_whose_rows_all_count_are_judged_as_they_are():
    data = calviz.Predictions(probs=[0.2, 0.7, 0.4], labels=[0, 1, 1], weights=[1, 2, 3])
    assert Sample(data).data is data


# ---- A method that hands out two probabilities: both go where the calibrated rows go


def predictions(k=2, n=300):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(k), n)
    labels = draw_labels(probs, rng)
    return calviz.Predictions(probs=probs, labels=labels, class_names=("no", "yes", "maybe")[:k])


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
@pytest.mark.parametrize("k", [2, 3])
def test_the_calibrated_file_has_both_columns_and_is_read_back(tmp_path, suffix, k):
    done = calibrate(predictions(k), "venn-abers", Division(fit_fraction=0.5))
    path = tmp_path / f"calibrated{suffix}"
    write_predictions(done.calibrated, path)
    read = calviz.load(path)
    names = [f"interval_p{end}" for end in (0, 1)]
    if k > 2:
        names = [f"interval_p{end}_{of}" for of in ("no", "yes", "maybe") for end in (0, 1)]
    assert list(done.calibrated.numbers) == names
    assert set(read.numbers) == set(names)
    assert not read.groups
    for name in names:
        np.testing.assert_allclose(read.numbers[name], done.calibrated.numbers[name], rtol=1e-15)
    np.testing.assert_allclose(read.probs, done.calibrated.probs, rtol=1e-15)
    if suffix == ".csv" and k == 2:
        table = pd.read_csv(path)
        low, high = table["interval_p0"], table["interval_p1"]
        np.testing.assert_allclose(table["p_yes"], high / (1 - low + high))


def test_under_cross_fitting_every_row_has_the_pair_of_its_fold():
    done = calibrate(predictions(), "venn-abers", Division(cross_fit=4))
    low, high = done.calibrated.numbers.values()
    np.testing.assert_allclose(done.calibrated.probs[:, 1], high / (1 - low + high))


def test_a_map_that_is_applied_again_gives_them_too():
    data = predictions()
    done = calibrate(data, "venn-abers", Division(fit_fraction=0.5, seed=3))
    record = json.loads(json.dumps(done.recalibrator.to_dict()))
    rows = Division(fit_fraction=0.5, seed=3).rows(data)
    for other in (apply_map(data, record), apply_to_all(data, done.recalibrator, rows)):
        for name, column in done.calibrated.numbers.items():
            np.testing.assert_array_equal(other.numbers[name], column)


def test_rows_that_neither_fit_nor_judge_a_map_are_not_in_the_evaluation_split():
    data = predictions()
    rows = Division(fit_fraction=0.5, seed=3).rows(data)
    ((fit, judged),) = rows.pairs
    some = replace(rows, pairs=((fit, judged[:40]),))
    done = calibrate(data, "temperature", Division(fit_fraction=0.5, seed=3))
    splits = apply_to_all(data, done.recalibrator, some).splits.values()
    assert {*splits[judged[:40]]} == {"evaluation"}
    assert {*splits[judged[40:]]} == {"other"}
    assert {*splits[fit]} == {"calibration"}
    assert {*done.calibrated.splits.levels} == {"calibration", "evaluation"}


def test_what_was_said_of_old_scores_does_not_stay_with_new_ones():
    done = calibrate(predictions(), "venn-abers", Division(fit_fraction=0.5)).calibrated
    assert done.numbers
    again = calibrate(done, "temperature", Division(fit_split="calibration")).calibrated
    assert not again.numbers


def test_a_composition_and_confidences_have_them():
    assert calibrate(
        predictions(), "platt+venn-abers", Division(fit_fraction=0.5)
    ).calibrated.numbers
    p = predictions()
    confident = ConfidencePredictions(
        confidence=p.probs.max(axis=1), correct=p.probs.argmax(axis=1) == p.labels
    )
    done = calibrate(confident, "venn-abers", Division(fit_fraction=0.5)).calibrated
    low, high = done.numbers.values()
    np.testing.assert_allclose(done.confidence, high / (1 - low + high))


def test_numbers_belong_to_their_rows():
    done = calibrate(predictions(), "venn-abers", Division(fit_fraction=0.5)).calibrated
    rows = np.array([5, 2, 9])
    np.testing.assert_array_equal(
        done.take(rows).numbers["interval_p0"], done.numbers["interval_p0"][rows]
    )
    other = {"interval_p0": done.numbers["interval_p0"][::-1]}
    changed = calviz.Predictions(probs=done.probs, labels=done.labels, numbers=other)
    same = calviz.Predictions(probs=done.probs, labels=done.labels)
    assert changed.fingerprint() != same.fingerprint()
    with pytest.raises(calviz.core.errors.InputError, match="'interval_p0' has 3 rows"):
        calviz.Predictions(
            probs=done.probs, labels=done.labels, numbers={"interval_p0": [0.1, 0.2, 0.3]}
        )
