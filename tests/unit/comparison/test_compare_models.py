"""Models on the same rows: matching, differences, ranks."""

from dataclasses import fields, replace

import numpy as np
import pytest

import calviz
from calviz.cli.result_texts import print_remarks
from calviz.comparison.compare import Plan, compare
from calviz.comparison.compare_models import after_map, align, compare_methods, compare_models
from calviz.comparison.comparison_results import (
    Alignment,
    Difference,
    ModelComparison,
    ModelResult,
    after_map_words,
    answers,
    headline,
    map_words,
    ranked_by,
    state_words,
    where_words,
)
from calviz.core.blocks import Factor
from calviz.core.entry_specs import Interval, MetricResult
from calviz.core.errors import InputError, OptionError
from calviz.core.predictions import ConfidencePredictions, Predictions
from calviz.core.row_columns import RowColumns
from calviz.figures.learning_curve import ModelDifferences
from calviz.report.json_results import models_record
from tests.inputs.simulated import draw_labels, softmax

KEYS = ["accuracy", "nll", "brier", "ece"]


def make(ids=None, labels=(0, 1, 0, 1), score=(0.1, 0.2, 0.3, 0.4), **own):
    """Two classes; the score of a row tells the rows apart."""
    return Predictions(
        probs=np.asarray(score), labels=np.asarray(labels), ids=None if ids is None else ids, **own
    )


def scores(aligned: Alignment) -> dict[str, list[float]]:
    return {name: m.probs[:, 1].tolist() for name, m in aligned.models.items()}


# ------------------------------------------------------------------ matching


def test_rows_are_matched_by_identifier_in_the_order_of_the_first():
    one = make(ids=["a", "b", "c", "d"])
    other = make(ids=["d", "x", "b", "a"], labels=[1, 1, 1, 0], score=[0.94, 0.99, 0.92, 0.91])
    alignment = align({"one": one, "other": other})
    assert alignment.by == "identifier"
    assert scores(alignment) == {"one": [0.1, 0.2, 0.4], "other": [0.91, 0.92, 0.94]}
    text = " ".join(alignment.notes)
    assert "3 rows matched by identifier" in text
    assert "1 row of 'one', 1 row of 'other' left out" in text


def test_identifiers_that_occur_twice_are_left_out_and_said():
    one = make(ids=["a", "b", "c", "d"])
    other = make(ids=["a", "b", "b", "d"], labels=[0, 1, 1, 1], score=[0.91, 0.92, 0.93, 0.94])
    alignment = align({"one": one, "other": other})
    assert scores(alignment) == {"one": [0.1, 0.4], "other": [0.91, 0.94]}
    text = " ".join(alignment.notes)
    assert "2 rows of 'other' left out: their identifiers occur more than once there" in text
    assert "2 rows of 'one' left out" in text  # b and c


def test_identifiers_that_are_the_same_may_occur_twice():
    alignment = align(
        {"one": make(ids=["a", "a", "b", "c"]), "other": make(ids=["a", "a", "b", "c"])}
    )
    assert alignment.rows == 4
    assert alignment.notes == ("Identifiers agree in all 4 rows.",)


def test_rows_on_whose_label_any_model_disagrees_are_left_out():
    ids = list("abcd")
    second, third = make(ids=ids, labels=[0, 0, 1, 1]), make(ids=ids, labels=[0, 1, 0, 1])
    first = make(ids=ids, labels=[0, 1, 1, 1])
    # The second one differs in b, the third one in c.
    alignment = align({"one": first, "two": second, "three": third})
    assert alignment.models["one"].ids.tolist() == ["a", "d"]
    assert "2 rows left out: their true labels are not the same in every model." in alignment.notes


def test_numbers_and_texts_are_the_same_identifiers():
    alignment = align({"one": make(ids=[1, 2, 3, 4]), "other": make(ids=["1", "2", "3", "4"])})
    assert alignment.rows == 4


def test_rows_with_different_labels_are_left_out():
    one = make(ids=list("abcd"))
    other = make(ids=list("abcd"), labels=[0, 1, 1, 1])
    alignment = align({"one": one, "other": other})
    assert scores(alignment)["one"] == [0.1, 0.2, 0.4]
    assert "1 row left out: their true labels" in alignment.notes[-1]
    with pytest.raises(InputError, match="differ in every row"):
        align({"one": one, "other": make(ids=list("abcd"), labels=[1, 0, 1, 0])})


def test_without_identifiers_the_order_counts_where_the_labels_agree():
    alignment = align({"one": make(), "other": make(ids=list("abcd"))})
    assert alignment.by == "order"
    assert "the true labels agree in all 4 rows" in alignment.notes[0]
    one_class = align({"one": make(labels=[0] * 4), "other": make(labels=[0] * 4)})
    assert "their agreement is weak evidence" in one_class.notes[0]


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (make(labels=[0, 1, 1, 1]), "the true labels differ in 1 row, first in row 3"),
        (make(labels=[0, 1, 0], score=[0.1, 0.2, 0.3]), "they have 4 and 3 rows"),
        (
            ConfidencePredictions(confidence=np.full(4, 0.9), correct=np.ones(4)),
            "without identifiers and true labels",
        ),
        (Predictions(probs=np.full((4, 3), 1 / 3), labels=[0, 1, 0, 1]), "'2' only in one of them"),
    ],
)
def test_rows_that_cannot_be_matched_are_refused(other, message):
    with pytest.raises(InputError, match=message):
        align({"one": make(), "other": other})


def of_months(order, month="2024-{}"):
    """Rows of customers over several months; neither names a row alone, and each has a score of its own."""
    pairs = [(customer, at) for customer in range(4) for at in (1, 2, 3)]
    customers, months = zip(*[pairs[i] for i in order], strict=True)
    return Predictions(
        probs=[(1 + i) / 20 for i in order],
        labels=[i % 2 for i in order],
        groups={"customer_id": customers, "month": [month.format(m) for m in months]},
    )


def test_identifiers_that_repeat_count_together_with_a_time():
    one, other = of_months(range(12)), of_months([5, 3, 11, 0, 8])
    aligned = align({"a": one, "b": other})
    assert aligned.by == "identifier"
    assert scores(aligned)["a"] == scores(aligned)["b"]
    assert aligned.notes[0] == "5 rows matched by identifier ('customer_id' and 'month')."
    # Times that are written in another way name no common row: the order and the labels do.
    written = of_months(range(12), "M{}")
    assert align({"a": one, "b": written}).by == "order"


def test_no_common_identifier():
    with pytest.raises(InputError, match="no identifier is in all of 'one', 'other'"):
        align({"one": make(ids=list("abcd")), "other": make(ids=list("efgh"))})


def test_classes_are_brought_into_one_order():
    probs = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])
    one = Predictions(probs=probs, labels=[0, 2], class_names=("cat", "dog", "fox"))
    other = Predictions(
        logits=np.log(probs[:, [2, 0, 1]]), labels=[1, 0], class_names=("fox", "cat", "dog")
    )
    unnamed = Predictions(probs=probs, labels=[0, 2])
    alignment = align({"unnamed": unnamed, "one": one, "other": other}).models
    for model in alignment.values():
        assert model.class_names == ("cat", "dog", "fox")
        assert model.labels.tolist() == [0, 2]
        np.testing.assert_allclose(model.probs, probs)
    assert alignment["other"].kind == "logits"
    with pytest.raises(InputError, match="not the same"):
        align(
            {
                "one": one,
                "two": Predictions(probs=probs, labels=[0, 2], class_names=("a", "b", "c")),
            }
        )


def test_a_class_that_confidence_only_data_predict_keeps_its_name():
    one = Predictions(probs=[[0.9, 0.1], [0.2, 0.8]], labels=[0, 1], class_names=("no", "yes"))
    other = ConfidencePredictions(
        confidence=[0.9, 0.8], correct=[1, 0], labels=[1, 0], predicted=[1, 1],
        class_names=("yes", "no"),
    )  # fmt: skip
    alignment = align({"one": one, "other": other}).models["other"]
    assert alignment.labels.tolist() == [0, 1]
    assert alignment.predicted.tolist() == [0, 0]


def test_splits_and_groups_are_of_the_first_that_has_them():
    one = make(ids=list("abcd"))
    other = make(
        ids=list("dcba"), labels=[1, 0, 1, 0], splits=list("wxyz"), groups={"g": [4, 3, 2, 1]}
    )
    for model in align({"one": one, "other": other}).models.values():
        assert model.splits.values().tolist() == list("zyxw")
        assert model.groups["g"].values().tolist() == ["1", "2", "3", "4"]
        assert model.ids.tolist() == list("abcd")


# ------------------------------------------------------------------ comparing


@pytest.fixture(scope="module")
def models():
    rng = np.random.default_rng(0)
    z = rng.normal(scale=1.5, size=(600, 3))
    y = draw_labels(softmax(z), rng)
    splits = np.repeat(["calibration", "test"], 300)
    side = np.where(np.arange(600) % 3, "left", "right")

    def of(name, factor, noise=0.0):
        scores = factor * (z + noise * rng.normal(size=z.shape))
        p = softmax(scores)
        return Predictions(probs=p, labels=y, splits=splits, groups={"side": side}, name=name)

    return [of("true", 1.0), of("sharp", 3.0), of("sharper", 3.02), of("noisy", 1.0, noise=2.0)]


@pytest.fixture(scope="module")
def comparison(models):
    return compare_models(models, KEYS, split="test", resamples=400)


def test_values_are_those_of_evaluate(models, comparison):
    for model in models:
        wanted = calviz.evaluate(model, KEYS, split="test", ci=True, resamples=400)
        for key in KEYS:
            assert comparison[model.name].metrics[key].value == wanted[key].value
            assert comparison[model.name].metrics[key].interval == wanted[key].interval


def test_differences_are_those_of_the_values_and_of_a_bootstrap_by_hand(models, comparison):
    one, other = models[0].split("test"), models[1].split("test")
    rows = np.arange(300)
    loss = {m.name: -np.log(m.probs[rows, m.labels].astype(float)) for m in (one, other)}
    d = comparison.difference("nll", "sharp", "true")
    assert d.value == pytest.approx(loss["sharp"].mean() - loss["true"].mean())
    drawn = np.random.default_rng(1).integers(300, size=(4_000, 300))
    by_hand = (loss["sharp"] - loss["true"])[drawn].mean(axis=1)
    width = np.ptp(np.quantile(by_hand, [0.025, 0.975]))
    np.testing.assert_allclose(d.interval, np.quantile(by_hand, [0.025, 0.975]), atol=0.15 * width)
    back = comparison.difference("nll", "true", "sharp")
    assert back.value == -d.value
    assert back.interval == (-d.interval.high, -d.interval.low)


def test_ranks_by_what_is_beyond_noise(comparison):
    # The truth is the best; sharp and sharper give every row the same class and nearly the same loss.
    assert comparison.ranks("accuracy")["sharp"] == comparison.ranks("accuracy")["sharper"]
    assert comparison.difference("accuracy", "sharp", "sharper") == Difference(
        0.0, Interval(0.0, 0.0), "tied", Interval(0.0, 0.0)
    )
    assert comparison.ranks("nll")["true"] == 1
    assert comparison.ranks("nll")["sharp"] > 1
    assert comparison.tied_with_best("nll") == ("true",)
    assert set(comparison.tied_with_best("accuracy")) >= {"true", "sharp", "sharper"}
    for key in KEYS:
        assert sum(m.best_share[key] for m in comparison) == pytest.approx(1)


def test_a_model_beside_itself_differs_by_nothing(models):
    again = compare_models([models[0], replace(models[0], name="again")], KEYS, resamples=400)
    for key in KEYS:
        assert again.difference(key, "true", "again") == Difference(
            0.0, Interval(0.0, 0.0), "tied", Interval(0.0, 0.0)
        )


def test_ranks_of_a_case_done_by_hand():
    # c < b < a, where only c and a are told apart: b is tied with both, c is first alone with b.
    value = {"a": 0.3, "b": 0.2, "c": 0.1}
    comparison = ModelComparison(
        alignment=Alignment({"a": make()}, "order", ()),
        split=None,
        reduction="top-label",
        seed=0,
        models={k: ModelResult(k, {"ece": MetricResult("ece", v)}) for k, v in value.items()},
        directions={"ece": "lower"},
        pairs={
            "ece": {
                ("a", "b"): Difference(0.1, Interval(-0.1, 0.3), "tied"),
                ("a", "c"): Difference(0.2, Interval(0.1, 0.3), "worse"),
                ("b", "c"): Difference(0.1, Interval(-0.1, 0.3), "tied"),
            }
        },
    )
    assert comparison.ranking("ece") == ("c", "b", "a")
    assert comparison.ranks("ece") == {"c": 1, "b": 1, "a": 2}
    assert comparison.tied_with_best("ece") == ("c", "b")
    column = comparison.column("ece")
    assert (column.best, column.second) == (("c", "b"), ())
    assert [column.is_tied(name) for name in "abc"] == [False, True, False]
    turned = comparison.difference("ece", "c", "a")
    assert (turned.value, turned.interval, turned.verdict) == (-0.2, (-0.3, -0.1), "better")
    assert comparison.differences("a")["model"].tolist() == ["b", "c"]
    with pytest.raises(OptionError, match="'nll' is not in this comparison"):
        comparison.ranking("nll")


def test_some_rows_only(models):
    some = compare_models(models, ["accuracy"], where=(("side", "right"),), ci=False)
    wanted = models[0].take(np.arange(600) % 3 == 0)
    assert some.rows == 200
    assert some["true"].metrics["accuracy"].value == pytest.approx(
        (wanted.probs.argmax(axis=1) == wanted.labels).mean()
    )
    assert some.ranks("accuracy") == {}
    with pytest.raises(OptionError, match="no group column 'top'"):
        compare_models(models, where=(("top", "left"),))


def test_a_split_is_taken_from_each_model_that_has_it(models):
    test = models[0].split("test")
    alone = Predictions(probs=test.probs, labels=test.labels)
    comparison = compare_models({"all": models[0], "test only": alone}, KEYS, split="test")
    assert comparison.rows == 300
    assert comparison.difference("nll", "all", "test only").tied
    with pytest.raises(InputError, match="there is no split 'train'"):
        compare_models(models, split="train")


def test_a_file_is_compared_with_its_calibrated_copy_on_the_rows_that_both_judge(models):
    """The copy calls a part of the split 'calibration', on which the map was fitted; other copies have splits of which the source has none."""
    source, rows = models[0], np.arange(600)
    splits = np.where(rows < 300, "train", np.where(rows % 3, "test", "calibration"))
    copy = replace(models[1], splits=Factor.of(splits))
    for order in ({"source": source, "copy": copy}, {"copy": copy, "source": source}):
        found = compare_models(order, ["brier"], split="test", resamples=50)
        assert found.rows == 200
        assert found.alignment.notes[1:] == (
            "100 rows left out: not of split 'test' in every file that has it.",
        )
        wanted = calviz.evaluate(copy, ["brier"], split="test")["brier"].value
        assert found["copy"].metrics["brier"].value == wanted
    plain = {"source": replace(source, splits=None), "copy": copy}
    assert compare_models(plain, ["brier"], split="test", resamples=50).rows == 200
    found = compare_models(plain, ["brier"], resamples=50)
    assert found.rows == 600
    assert found.alignment.notes[1:] == (
        "'copy' may have been fitted on the 100 rows of its split 'calibration'.",
    )
    for order in ({"source": source, "copy": copy}, {"copy": copy, "source": source}):
        # Of each, the rows that either names.
        for each in align(order).models.values():
            marked = each.splits.mask("calibration")
            np.testing.assert_array_equal(marked, (rows < 300) | (rows % 3 == 0))
    disjoint = {"source": source, "copy": replace(copy, splits=Factor.of(np.roll(splits, 300)))}
    with pytest.raises(InputError, match="cannot be matched"):
        compare_models(disjoint, ["brier"], split="test")


def test_a_model_that_cannot_be_evaluated_is_a_row_with_its_reason(models):
    m = models[0]
    right = m.probs.argmax(axis=1) == m.labels
    top = ConfidencePredictions(confidence=m.probs.max(axis=1), correct=right, labels=m.labels)
    comparison = compare_models(
        {"full": m, "top": top}, ["accuracy", "ece", "brier"], reduction="class:1"
    )
    assert not comparison["top"].ok
    assert comparison["top"].reason
    assert comparison.ranks("accuracy") == {}
    same = compare_models({"full": m, "top": top}, ["accuracy", "ece", "brier"])
    # The top label says all that accuracy and ECE need.
    assert same.difference("ece", "full", "top").value == pytest.approx(0, abs=1e-12)
    assert set(same.pairs) == {"accuracy", "ece"}
    assert same.ranks("brier") == {}


def test_what_takes_long_can_be_followed_and_stopped(models):
    seen = []
    comparison = compare_models(
        models,
        ["accuracy"],
        progress=lambda *message: seen.append(message),
        stop=lambda: len(seen) == 2,
    )
    assert seen == [("true", 1, 4), ("sharp", 2, 4)]
    assert [m.ok for m in comparison] == [True, True, False, False]
    assert set(comparison.pairs["accuracy"]) == {("true", "sharp")}


def of_two_classes(**times):
    """Models of the same logits, multiplied, with noise for "noisy", and a split to fit on."""
    rng = np.random.default_rng(4)
    z = 1.5 * rng.normal(size=1_500)
    y = (rng.random(z.size) < 1 / (1 + np.exp(-z))).astype(int)
    splits = np.repeat(["calibration", "test"], 750)
    noise = rng.normal(size=z.size)
    return {
        name: Predictions(
            probs=1 / (1 + np.exp(-by * (z + noise * (name == "noisy")))), labels=y, splits=splits
        )
        for name, by in times.items()
    }


def test_a_map_for_each_model_may_turn_the_order_or_leave_no_difference():
    for times, says in (
        ({"noisy": 0.7, "sharp": 3}, "'noisy' is best as it is; after Platt scaling of each, 'sharp' is best."),
        ({"own": 1, "sharp": 3}, "'own' is best as it is; after Platt scaling of each, the models are not told apart."),
        ({"own": 1, "noisy": 0.7}, "'own' is best (0.5139); the other is worse beyond noise."),
    ):  # fmt: skip
        models = of_two_classes(**times)
        before = compare_models(models, ["nll", "ece", "auroc"], split="test")
        both = after_map(before, models)
        assert both.after.fit.split == "calibration"
        assert both.after.rows == before.rows == 750
        assert headline(both, "nll") == f"By NLL, {says}"
        # What holds after a map as well is the title, even if another model is better calibrated; that it does is said below it.
        assert " ".join(filter(None, answers(both, "nll"))) == headline(both, "nll")
        assert bool(map_words(both)) == ("after" in says)
        # Verdicts of both together take wider intervals; what no map is for stays as it was.
        assert both.pairs["ece"] == before.pairs["ece"]
        of_one, of_both = (next(iter(c.pairs["nll"].values())) for c in (before, both))
        assert of_one.value == pytest.approx(of_both.value)
        assert of_one.adjusted == of_one.interval
        assert of_both.adjusted != of_one.adjusted
        record = models_record(both)["after_map"]
        assert record["method"] == "platt"
        assert set(record["models"]) == set(models)


def test_one_row_of_probability_0_does_not_decide_a_comparison():
    rng = np.random.default_rng(5)
    p = rng.uniform(0.02, 0.98, 2_000)
    y = (rng.random(p.size) < p).astype(int)
    splits = np.repeat(["calibration", "test"], 1_000)
    zero = p.copy()
    zero[np.flatnonzero(y)[-1]] = 0  # it happened
    noisy = 1 / (1 + np.exp(-np.log(p / (1 - p)) - 0.3 * rng.normal(size=p.size)))
    views = {
        name: Predictions(probs=v, labels=y, splits=splits)
        for name, v in {"zero": zero, "noisy": noisy}.items()
    }
    says = "1 row{} with probability 0 for what happened: the NLL counts each as a loss of 36, not as infinite; the Brier score decides."
    models = compare_models(views, ["nll", "brier"], split="test")
    assert models.ranking("nll") == ("noisy", "zero")  # by one loss of 36
    assert ranked_by(models)[0] == "brier"
    assert "'zero' leads" in headline(models, "brier")
    assert says.format(" of 'zero'") in [
        remark.text for remark in models.remarks(models.columns(models.directions))
    ]
    assert ranked_by(compare_models(views, ["nll"], split="test")) == ("nll",)
    for name, criterion in (("zero", "brier"), ("noisy", "nll")):
        maps = compare(views[name], ["temperature", "platt"], fit_split="calibration")
        assert maps.criterion == criterion
        assert (says.format("") in maps.advice.reasons) == (name == "zero")
        assert maps["identity"].metrics["nll"].value == calviz.evaluate(
            views[name].split("test"), ["nll"]
        )["nll"].value  # fmt: skip


def test_without_a_split_to_fit_on_each_model_is_cross_fitted():
    models = {name: replace(m, splits=None) for name, m in of_two_classes(a=1, b=2).items()}
    both = after_map(compare_models(models, ["nll"]), models)
    assert both.after.rows == 1_500
    assert "5-fold" in both.after.fit.how
    # Of too few rows no map is fitted, and the comparison stays.
    few = {name: m.take(np.arange(4)) for name, m in models.items()}
    before = compare_models(few, ["nll"])
    assert after_map(before, few) is before


def test_two_classes_have_discrimination_and_the_levels_of_calibration():
    models = of_two_classes(a=1, b=2)
    for how, there in (("positive", True), ("top-label", False)):
        measured = compare_models(models, reduction=how, resamples=200)
        keys = {"auroc", "oe_ratio", "calibration_slope", "calibration_intercept"}
        assert keys.isdisjoint(measured.directions) is not there
        assert ("auroc" in measured.pairs) is there
        assert [key for key in measured.usual() if key in keys] == ["auroc"] * there
    # Of a rare event, accuracy tells little.
    rare = {
        name: replace(m, labels=m.labels * (np.arange(m.n) % 4 == 0)) for name, m in models.items()
    }
    measured = compare_models(rare, ["accuracy", "nll", "ece", "auroc"], resamples=200)
    assert measured.usual() == ("auroc", "nll", "ece")
    assert measured.usual("accuracy") == ("auroc", "accuracy", "nll", "ece")


def test_names_must_tell_the_models_apart(models):
    with pytest.raises(OptionError, match="two models are called 'true'"):
        compare_models([models[0], models[0]])
    with pytest.raises(OptionError, match="at least two models"):
        compare_models([models[0]])


def test_frame(comparison):
    frame = comparison.frame()
    assert frame.index.tolist() == ["true", "sharp", "sharper", "noisy"]
    assert frame["nll"]["true"] == comparison["true"].metrics["nll"].value


# ------------------------------------------------------------------ models x methods


def test_methods_of_every_model_are_judged_on_the_same_rows(models):
    seen = []
    plan = Plan(methods=("temperature",), metrics=("nll",))
    comparison = compare_methods(models[:2], plan, progress=lambda *message: seen.append(message))
    for model in models[:2]:
        alone = compare(model, ["temperature"], metrics=["nll"])
        for key in ("identity", "temperature"):
            assert comparison.models[model.name][key].metrics["nll"].value == pytest.approx(
                alone[key].metrics["nll"].value
            )
    assert sorted(done for _, done, _ in seen) == [1, 2, 3, 4]
    table = comparison.frame("nll")
    assert table.shape == (2, 2)
    assert table.columns.tolist() == ["identity", "temperature"]
    # The one was sharpened by 3, which a temperature mends.
    assert table.loc["sharp", "temperature"] == pytest.approx(
        table.loc["true", "temperature"], rel=0.02
    )


@pytest.mark.parametrize("confidence", [False, True])
def test_classes_in_another_order_keep_every_other_column(confidence):
    n, order = 12, [2, 0, 1]
    rng = np.random.default_rng(0)
    probs, labels = rng.dirichlet([1, 1, 1], n), np.arange(n) % 3
    columns = {
        "splits": np.arange(n) % 2,
        "groups": {"site": np.arange(n) % 4},
        "ids": np.arange(n),
        "numbers": {"interval_low": rng.random(n)},
        "texts": {"tale": [f"tale {i}" for i in range(n)]},
        "clusters": np.arange(n) // 2,
        "weights": np.arange(1.0, n + 1),
        "times": np.arange(n).astype("datetime64[D]"),
        "column_names": {"weights": "w"},
        "time_form": "%d/%m/%Y",
        "related": ("author",),
        "clusters_known": True,
        "name": "b",
    }
    of_classes = {"class_names", "prevalence"}
    assert set(columns) == {f.name for f in fields(RowColumns) if f.init} - of_classes - {
        "cells",
        "cuts",
    }
    first = Predictions(probs=probs, labels=labels, ids=np.arange(n), class_names=("x", "y", "z"))
    place = np.argsort(order)
    if confidence:
        other = ConfidencePredictions(
            confidence=probs.max(axis=1),
            correct=probs.argmax(axis=1) == labels,
            labels=place[labels],
            predicted=place[probs.argmax(axis=1)],
            class_names=("z", "x", "y"),
            prevalence=(0.5, 0.2, 0.3),
            **columns,
        )
    else:
        other = Predictions(
            probs=probs[:, order],
            labels=place[labels],
            class_names=("z", "x", "y"),
            prevalence=(0.5, 0.2, 0.3),
            **columns,
        )
    aligned = align({"a": first, "b": other}).models["b"]
    assert aligned.class_names == ("x", "y", "z")
    assert aligned.prevalence == (0.2, 0.3, 0.5)
    assert dict(aligned.cuts) == dict(other.cuts)
    np.testing.assert_array_equal(aligned.labels, labels)
    if confidence:
        np.testing.assert_array_equal(aligned.predicted, probs.argmax(axis=1))
    else:
        np.testing.assert_array_equal(aligned.probs, probs)

    def written(value):
        if isinstance(value, Factor):
            return value.values().tolist()
        if isinstance(value, str | tuple | bool):
            return value
        return (
            {k: written(v) for k, v in value.items()} if hasattr(value, "items") else value.tolist()
        )

    for name in columns:
        assert written(getattr(aligned, name)) == written(getattr(other, name)), name


@pytest.mark.parametrize("missing", ["", None, float("nan")])
def test_rows_without_an_identifier_match_nothing(missing):
    one = make(ids=np.array(["a", missing, "c", "d"], dtype=object))
    other = make(
        ids=np.array(["d", "c", missing, "a"], dtype=object), labels=[1, 0, 1, 0], score=[0.9] * 4
    )
    alignment = align({"one": one, "other": other})
    assert scores(alignment)["one"] == [0.1, 0.3, 0.4]
    text = " ".join(alignment.notes)
    assert "1 row of 'one' left out: there is no identifier." in text
    assert "1 row of 'other' left out: there is no identifier." in text
    assert "more than once" not in text


def test_numbers_with_and_without_a_fraction_are_the_same_identifiers():
    other = make(ids=np.array(["3.0", "2.0", "1.0", "x"]), labels=[1, 0, 1, 0])
    assert align({"one": make(ids=np.arange(4)), "other": other}).models["other"].n == 3


# ------------------------------------------------------------------ differences that are missing


def few_events(events=3):
    """Two models; a resample has none of m events with a probability of about e^-m."""
    labels = (np.arange(100) < events).astype(int)
    scores = np.random.default_rng(0).uniform(0.05, 0.5, (2, 100))
    return {name: make(labels=labels, score=s) for name, s in zip("ab", scores, strict=True)}


def test_metrics_without_differences_say_why():
    models = few_events()
    keys = ["auprc", "fpr95", "brier", "skce"]
    compared = compare_models(models, metrics=keys, reduction="positive")
    without = "has no value on some resampled or simulated rows"
    no_hit, one_kind = "(no row is a hit)", "(all predictions are right, or all are wrong)"
    assert compared.without_differences == {
        "auprc": f"{without} {no_hit}",
        "fpr95": f"{without} {one_kind}",
        "skce": "is not resampled in this comparison",
    }
    remarks = [r for r in compared.remarks(compared.columns(keys)) if r.kind == "differences"]
    assert [r.text for r in remarks] == [
        f"AUPRC: no paired differences, as it {without} {no_hit}.",
        f"FPR at 95 % TPR: no paired differences, as it {without} {one_kind}.",
        "SKCE: no paired differences, as it is not resampled in this comparison.",
    ]
    # The JSON, the terminal and the report say the same.
    assert models_record(compared)["without_differences"]["auprc"] == f"it {without} {no_hit}"
    # Without any differences there is nothing to explain.
    assert not compare_models(models, metrics=keys, ci=False).without_differences


def test_a_metric_that_one_model_lacks_has_no_differences_for_that_reason():
    labels = np.arange(60) % 2
    wrong = np.where(np.arange(60) < 20, 1 - labels, labels)
    models = {
        "right": make(labels=labels, score=0.1 + 0.8 * labels),
        "a": make(labels=labels, score=0.2 + 0.6 * wrong),
        "b": make(labels=labels, score=0.3 + 0.4 * wrong[::-1]),
    }
    # Without an error there is nothing to detect.
    compared = compare_models(models, metrics=["brier", "auroc_failure"])
    assert "auroc_failure" not in compared["right"].metrics or np.isnan(
        compared["right"].metrics["auroc_failure"].value
    )
    assert compared.without_differences == {
        "auroc_failure": "has a value only for some of those that are compared"
    }


def test_methods_without_differences_say_why(capsys):
    data = few_events(8)["a"]
    compared = compare(data, ["temperature"], metrics=["nll", "fpr95"], fit_fraction=0.5)
    assert set(compared.tied) == {"nll"}
    assert compared.without_differences == {
        "fpr95": "has no value on some resampled or simulated rows (all predictions are right, or all are wrong)"
    }
    print_remarks(compared.remarks(compared.columns(["nll", "fpr95"])))
    assert "FPR at 95 % TPR: no paired differences, as it has no value" in " ".join(
        capsys.readouterr().out.split()
    )


def test_what_has_no_value_without_error_is_not_blamed_on_few_events():
    # Half of 400 rows are hits; but in a population without error no class is overconfident, and their mean is of nothing.
    rng = np.random.default_rng(0)
    score = rng.uniform(0.05, 0.95, 400)
    labels = (rng.random(400) < 0.5 + 0.6 * (score - 0.5)).astype(int)
    models = {name: make(labels=labels, score=s) for name, s in (("a", score), ("b", score**2))}
    compared = compare_models(models, metrics=["brier", "over_mcs"])
    assert compared.without_differences == {
        "over_mcs": "has no value on some resampled or simulated rows (on no class is the confidence above the accuracy)"
    }


# ------------------------------------------------------------------ where the order is another one


def turned_in_a_region(n=4_000, clusters=0):
    """Two models, of which b has the smaller noise but for region s, and logits 3 times too large, so that losses have heavy tails."""
    rng = np.random.default_rng(5)
    region = rng.choice(["n", "e", "s"], n, p=[0.4, 0.35, 0.25])
    z, noise = 1.5 * rng.normal(size=n), rng.normal(size=(2, n))
    size = np.stack([np.full(n, 0.6), np.where(region == "s", 1.1, 0.3)])
    labels = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    cluster = rng.integers(clusters, size=n) if clusters else None
    return {
        name: Predictions(
            probs=1 / (1 + np.exp(-2 * (z + size[i] * noise[i]))),
            labels=labels,
            groups={"region": region, "day": rng.choice(list("xyz"), n)} if i == 0 else {},
            clusters=cluster,
        )
        for i, name in enumerate("ab")
    }


@pytest.mark.parametrize("clusters", [0, 300])
def test_a_slice_in_which_another_model_is_better_is_named(clusters):
    compared = compare_models(turned_in_a_region(clusters=clusters), ["nll"], resamples=200)
    assert {(one.where, one.better) for one in compared.where} >= {("region = s", "a")}
    assert not any("day" in one.where for one in compared.where)
    at_s = next(one for one in compared.where if one.where == "region = s")
    there = compare_models(
        turned_in_a_region(clusters=clusters), ["nll"], where=(("region", "s"),), ci=False
    )
    gap = there["b"].metrics["nll"].value - there["a"].metrics["nll"].value
    assert at_s.lower == pytest.approx(gap)
    assert f"where region = s ({gap:.3g} lower)" in where_words(compared)
    first = models_record(compared)["better_where"][0]
    assert (first["condition"], first["where"]) == (["region", "s"], "region = s")
    assert (first["metric"], first["better"], first["other"]) == ("nll", "a", "b")
    assert first["lower"] == pytest.approx(gap)


def test_without_slices_or_a_turn_nothing_is_said_of_where(comparison):
    assert where_words(comparison) == ""
    rows = turned_in_a_region()
    same = compare_models({"a": rows["a"], "c": replace(rows["a"])}, ["nll"], resamples=200)
    assert same.where == ()


def says_its_interval(low: float, high: float, higher_is_better: bool) -> str:
    """The word of an interval of a difference."""
    if low <= 0 <= high:
        return "tied"
    return "better" if (low > 0) == higher_is_better else "worse"


@pytest.mark.parametrize("models", [2, 5])
def test_the_interval_shown_beside_a_word_is_the_one_that_decides_it(models):
    rng = np.random.default_rng(1)
    z = 1.5 * rng.normal(size=300)
    labels = (rng.random(z.size) < 1 / (1 + np.exp(-z))).astype(int)
    # Some are too high and some too low by about as much, so that signed errors differ and their sizes do not.
    scores = [
        z + 0.35 * (-1) ** i + (0.1 + 0.1 * i) * rng.normal(size=z.size) for i in range(models)
    ]
    rows = {
        name: Predictions(probs=1 / (1 + np.exp(-score)), labels=labels)
        for name, score in zip("abcde", scores, strict=False)
    }
    compared = after_map(compare_models(rows, "all", resamples=200), rows, resamples=200)
    assert compared.after is not None
    otherwise = set()
    for of in (compared, compared.after):
        for key in of.pairs:
            higher, goal = of.directions[key] == "higher", of.directions[key] in ("zero", "one")
            figure = ModelDifferences.compute(of, metric=key)
            table = of.differences(figure.reference)
            shown = [*figure.frame().itertuples(), *table[table.metric == key].itertuples()]
            for row in shown:
                word = getattr(row, "beyond_noise", None) or row.verdict
                assert says_its_interval(row.low, row.high, higher) == word
                d = of.difference(key, row.model, row.reference)
                if says_its_interval(*d.interval, higher) != word:
                    otherwise.add(goal)
            assert ("CI for all pairs" in figure.caption()[1]) == (models > 2)
            both = "before and after recalibration together" in figure.caption()[1]
            # Which says it where it shows what is so after recalibration.
            said = bool(after_map_words(compared, key))
            assert both == (key in compared.after.pairs and (of is not compared or said))
            assert ("distance from" in figure.label) == goal
            for d in of.pairs[key].values():
                assert (d.distance is not None) == goal
                assert d.turned.turned == d
    # Intervals of a pair alone say other words: of signed errors, and with several models of others.
    assert otherwise >= ({True} if models == 2 else {True, False})
    records = models_record(compared)["differences"]
    signed = next(r for r in records if r["metric"] == "mcs")
    low, high = signed["interval_adjusted"]
    assert low <= signed["distance"] <= high


def test_a_slice_that_makes_the_order_of_all_rows_is_named():
    rng = np.random.default_rng(0)
    n = 6_000
    site, z, noise = rng.choice(list("ABCE"), n), 1.5 * rng.normal(size=n), rng.normal(size=n)
    labels = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    models = {
        name: Predictions(
            probs=1 / (1 + np.exp(-z - size * noise)), labels=labels, groups={"site": site}
        )
        for name, size in (("old", 1.0), ("new", np.where(site == "E", 0.0, 1.0)))
    }
    # Elsewhere as good, by other noise.
    models["new"] = replace(
        models["new"],
        probs=1 / (1 + np.exp(-z - np.where(site == "E", 0.0, rng.permutation(noise)))),
    )
    compared = compare_models(models, ["nll"], resamples=200)
    assert [(one.where, one.better) for one in compared.of_lead] == [("site = E", "new")]
    words = where_words(compared)
    assert "'new' is better on all rows together, but not beyond noise without site = E" in words
    assert models_record(compared)["lead_made_where"][0]["condition"] == ["site", "E"]
    # Where it is better everywhere, no slice is said to make it.
    everywhere = models | {"new": replace(models["new"], probs=1 / (1 + np.exp(-z)))}
    assert compare_models(everywhere, ["nll"], resamples=200).of_lead == ()


def test_of_each_model_it_is_said_what_is_wrong_with_it_alone(usual_resamples):
    rng = np.random.default_rng(1)
    n = 6_000
    kind, city, z = (
        rng.choice(list("ABCD"), n),
        rng.choice(list("xyz"), n),
        1.5 * rng.normal(size=n),
    )
    off = 2.0 * ((kind == "B") & (city == "y"))
    labels = (rng.random(n) < 1 / (1 + np.exp(off - z))).astype(int)
    models = {
        name: Predictions(
            probs=1 / (1 + np.exp(-score)), labels=labels, groups={"kind": kind, "city": city}
        )
        for name, score in (("best", z), ("coarse", 0.3 * (z - off)))
    }
    compared = compare_models(models, ["nll", "brier"])
    verdict = calviz.verdict(models["best"])
    assert compared.ranking("nll")[0] == "best"
    best, coarse = state_words(compared)
    # As Overview says it of each alone; where scores are off is said once.
    assert best == f"'best': {verdict.headline}."
    assert ": ".join(verdict.off_in) in best
    assert coarse == f"'coarse': {calviz.verdict(models['coarse']).headline}."
    record = models_record(compared)
    assert record["models"]["best"]["verdict"] == verdict.sentence
    assert verdict.off_where == (("kind", "B"), ("city", "y"))
    assert record["best_off_where"]["best"]["where"] == [*map(list, verdict.off_where)]
    shifted = {
        "best": models["best"],
        "high": replace(models["best"], probs=1 / (1 + np.exp(-z - 0.4))),
    }
    _, high = state_words(compare_models(shifted, ["nll"], resamples=200))
    verdict = calviz.verdict(shifted["high"])
    assert high == f"'high': {verdict.headline}; off where {': '.join(verdict.off_in)}."
    fine = models | {"best": replace(models["best"], probs=1 / (1 + np.exp(off - z)))}
    compared = compare_models(fine, ["nll"], resamples=200)
    assert state_words(compared)[0] == "'best': No miscalibration found on 6,000 rows."
    assert models_record(compared)["best_off_where"] == {}
