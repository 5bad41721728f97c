"""What columns are taken for."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.special import expit

import calviz
from calviz.core.blocks import Factor
from calviz.core.errors import CalvizError, InputError, OptionError
from calviz.core.predictions import (
    ConfidencePredictions,
    Predictions,
    sliceable_columns,
    usual_columns,
)
from calviz.data import Loaded, ReadingOptions, read
from calviz.data.format import Source, format_of
from calviz.data.labels import decode
from calviz.data.roles import Problem, ScoreColumns

# ---- Which column is what, how labels name classes, options, models and repairs


def loaded(text: str, **options: object) -> Loaded:
    return read(text.encode(), name="x.csv", options=ReadingOptions(**options))  # type: ignore[arg-type]


# What is read, and the labels and class names that must come out.
LABELS = {
    "names by text": ("label,p_a,p_b\nb,.5,.5\na,.4,.6\n", [1, 0], "a b"),
    "names by text, without case": ("label,p_Cat,p_dog\nCAT,.5,.5\ndog,.4,.6\n", [0, 1], "CAT dog"),
    "full column names": ("label,p_a,p_b\np_b,.5,.5\np_a,.4,.6\n", [1, 0], "a b"),
    "indices": ("label,p_a,p_b\n1,.5,.5\n0,.4,.6\n", [1, 0], "a b"),
    "one-based by name": ("y,p_1,p_2,p_3\n3,.2,.3,.5\n1,.1,.1,.8\n", [2, 0], "1 2 3"),
    "indices although names are numbers": ("y,p_1,p_2,p_3\n0,.2,.3,.5\n1,.1,.1,.8\n", [0, 1], "1 2 3"),
    "minus one and one": ("y,prob\n-1,.5\n1,.4\n", [0, 1], "-1 1"),
    "yes and no": ("outcome,risk\nyes,.5\nno,.4\n", [1, 0], "no yes"),
    "true and false": ("y,prob\nTrue,.5\nFalse,.4\n", [1, 0], "False True"),
    "column names the event": ("d,p_malignant\nmalignant,.5\nbenign,.4\n", [1, 0], "benign malignant"),
    "one-hot": ("p_a,p_b,y_a,y_b\n.5,.5,0,1\n.4,.6,1,0\n", [1, 0], "a b"),
    "outcome of one forecast": ("prob1,prob1_outcome\n.5,1\n.4,0\n", [1, 0], "0 1"),
    "columns called like the classes": ("y,cat,dog,w\ndog,.2,.8,8\ncat,.1,.9,3\n", [1, 0], "cat dog"),
    "columns called 0, 1": ("0,1,label\n.2,.8,1\n.1,.9,0\n", [1, 0], "0 1"),
    "numbers that sum to 1": ("y,u,v,w\n1,.2,.8,8.5\n0,.1,.9,3.5\n", [1, 0], "u v"),
    "two class probabilities by number": ("target,p0,p1\n1,.2,.8\n0,.1,.9\n", [1, 0], "0 1"),
    "parentheses": ("y,P(a),P(b)\n1,.2,.8\n0,.1,.9\n", [1, 0], "a b"),
}  # fmt: skip


@pytest.mark.parametrize("key", LABELS)
def test_labels(key: str) -> None:
    text, labels, names = LABELS[key]
    file = loaded(text)
    assert file.first.labels is not None
    assert file.first.labels.tolist() == labels
    assert " ".join(file.first.class_names) == names
    assert file.recognition.sentence().startswith("CSV, comma-separated")


ONE_SCORE = {
    "True and False": ("True", "False"),
    "TRUE and FALSE": ("TRUE", "FALSE"),
    "yes and no": ("yes", "no"),
    "1 and 0": ("1", "0"),
    "1.0 and 0.0": ("1.0", "0.0"),
    "1 and -1": ("1", "-1"),
}


@pytest.mark.parametrize(
    ("column", "of_event"),
    [
        ("p_0", False),
        ("p0", False),
        ("prob_0", False),
        ("score_0", False),
        ("logit_0", False),
        ("p_no", False),
        ("prob_False", False),
        ("p_1", True),
        ("p_yes", True),
        ("prob_True", True),
    ],
)
def test_the_only_score_is_that_of_the_class_it_is_named_after(
    tmp_path: Path, column: str, of_event: bool
) -> None:
    score, event = np.array([0.9, 0.2, 0.6]), np.array([True, False, True])
    written = score if of_event else 1 - score
    if column.startswith("logit"):
        written = np.log(written / (1 - written))
    for labels, (yes, no) in ONE_SCORE.items():
        path = tmp_path / f"{labels}.csv"
        lines = [f"{yes if e else no},{float(s)!r}" for e, s in zip(event, written, strict=True)]
        path.write_text("\n".join([f"label,{column}", *lines]))
        data = calviz.load(path, scores=[column])
        # The probability of the event, and whether it happened, whichever of the classes is the second.
        of_second = data.probs[:, 1] if data.probs.ndim == 2 else data.probs
        np.testing.assert_allclose(of_second, score if of_event else 1 - score, err_msg=labels)
        np.testing.assert_array_equal(data.labels == 1, event if of_event else ~event, labels)
        profile = calviz.profile(path, scores=[column])
        mcs = calviz.evaluate(profile, ["mcs"], reduction="positive")["mcs"].value
        expected = (np.mean(score) - np.mean(event)) * (1 if of_event else -1)
        assert mcs == pytest.approx(expected), labels


@pytest.mark.parametrize("base", [None, 0])
def test_the_only_score_of_class_0_where_all_labels_are_0(base: int | None) -> None:
    data = loaded("label,p_0\n0,.9\n0,.8\n", label_base=base).first
    assert data.labels.tolist() == [1, 1]  # type: ignore[union-attr]
    assert data.class_names == ("1", "0")


def test_the_only_score_of_the_first_class_of_labels_that_count_from_1() -> None:
    data = loaded("label,p_1\n1,.9\n2,.2\n", scores=("p_1",), label_base=1).first
    assert data.labels.tolist() == [1, 0]  # type: ignore[union-attr]
    assert data.class_names == ("2", "1")


def test_given_class_names_do_not_turn_the_only_score_around() -> None:
    file = loaded("label,p_cat\ncat,.9\ndog,.2\n", class_names=("cat", "dog"))
    assert file.first.labels.tolist() == [1, 0]  # type: ignore[union-attr]
    assert file.first.class_names == ("dog", "cat")
    assert any("'p_cat' was read as the score of class 'cat'" in n.message for n in file.notices)


@pytest.mark.parametrize("ending", ["_outcome", "_label", "_true", "_actual", "_result", "_target"])
def test_a_column_named_after_a_score_column_is_its_outcome(ending: str) -> None:
    names = [f"p_{name}" for name in "abc"]
    head = ",".join([*names, *(f"{name}{ending}" for name in names)])
    data = loaded(f"{head}\n.2,.3,.5,0,0,1\n.1,.8,.1,1,0,0\n").first
    assert data.labels.tolist() == [2, 0]  # type: ignore[union-attr]
    assert data.class_names == ("a", "b", "c")


def test_the_probability_of_a_class_called_true_is_a_score() -> None:
    data = loaded("p_false,p_true,label\n.3,.7,1\n.6,.4,0\n").first
    assert isinstance(data, Predictions)
    assert data.class_names == ("false", "true")
    np.testing.assert_array_equal(data.probs[:, 1], [0.7, 0.4])


def test_an_outcome_before_its_score_is_no_score() -> None:
    data = loaded("prob_x_outcome,prob_x\n1.0,.3\n0.0,.6\n1.0,.8\n").first
    assert isinstance(data, Predictions)
    np.testing.assert_array_equal(data.probs[:, 1], [0.3, 0.6, 0.8])


def test_labels_that_can_only_count_from_1_do() -> None:
    file = loaded("label,p_a,p_b,p_c\n3,.2,.3,.5\n1,.1,.1,.8\n")
    assert file.first.labels.tolist() == [2, 0]  # type: ignore[union-attr]
    assert any("count the classes from 1" in n.message for n in file.notices)
    # Without the last class nothing says so.
    zero = loaded("label,p_a,p_b,p_c\n2,.2,.3,.5\n1,.1,.1,.8\n").first
    assert zero.labels.tolist() == [2, 1]  # type: ignore[union-attr]
    base = loaded("label,p_a,p_b,p_c\n2,.2,.3,.5\n1,.1,.1,.8\n", label_base=1).first
    assert base.labels.tolist() == [1, 0]  # type: ignore[union-attr]


def test_roles_of_other_columns() -> None:
    text = (
        "id,split,site,version,age,label,p_a,p_b\n"
        "r1,val,x,1.2,50,0,.5,.5\nr2,val,y,1.2,60,1,.4,.6\nr3,test,x,1.2,60,1,.1,.9\n"
    )
    file = loaded(text)
    recognised = file.recognition
    assert recognised.split_counts == {"val": 2, "test": 1}
    assert (recognised.fit_split, recognised.eval_split) == ("val", "test")
    assert recognised.id_column == "id"
    assert recognised.groups == ("site", "age")
    assert file.first.ids is not None
    assert file.first.ids.tolist() == ["r1", "r2", "r3"]
    none = loaded(text, split_column="", id_column="", groups=()).recognition
    assert (none.split_column, none.id_column, none.groups) == (None, None, ())
    other = loaded(text, split_column="site", groups=("version",)).recognition
    assert other.split_counts == {"x": 2, "y": 1}
    assert other.groups == ("version",)


@pytest.mark.parametrize(
    ("first", "second", "split"),
    [
        (("TRAIN", "HOLDOUT"), ("x", "y"), "a"),
        (("In-Sample", "OOT"), ("x", "y"), "a"),
        (("val", "test"), ("x", "y"), "a"),
        # Stages of a system, a means of transport, one of two columns.
        (("dev", "test"), ("x", "y"), None),
        (("train", "bus"), ("x", "y"), None),
        (("train", "test"), ("train", "test"), None),
    ],
)
def test_a_column_of_names_of_splits_is_the_split_whatever_its_name(first, second, split) -> None:
    rows = "".join(
        f"{first[i % 2]},{second[i // 2 % 2]},{i % 3 % 2},{0.1 + 0.08 * i:.2f}\n" for i in range(10)
    )
    found = loaded(f"a,b,label,p\n{rows}").recognition
    assert found.split_column == split
    assert found.groups == (("b",) if split else ("a", "b"))
    assert found.eval_split == (first[1] if split else None)


def test_models() -> None:
    text = "label,m1:a,m1:b,m2:b,m2:a\nb,.5,.5,.25,.75\na,.25,.75,1,0\n"
    file = loaded(text)
    assert list(file.models) == ["m1", "m2"]
    second = file.models["m2"]
    assert isinstance(second, Predictions)
    assert second.class_names == ("a", "b")
    assert second.probs.tolist() == [[0.75, 0.25], [0, 1]]
    assert "2 models (m1, m2)" in file.recognition.sentence()


def test_load_asks_for_a_model(tmp_path: Path) -> None:
    path = tmp_path / "two.csv"
    path.write_text("label,m1:a,m1:b,m2:a,m2:b\na,.5,.5,.25,.75\n")
    with pytest.raises(OptionError, match="m1, m2"):
        calviz.load(path)
    with pytest.raises(OptionError, match="m3"):
        calviz.load(path, model="m3")
    assert calviz.load(path, model="m2").name == "m2"
    with pytest.raises(OptionError, match="there is no reading option 'lable'"):
        calviz.load(path, lable="x")


def test_options_override_what_is_recognised() -> None:
    text = "label,truth,m_a,m_b,n_a,n_b\n0,1,.5,.5,-2,1\n1,0,.4,.6,3,1\n"
    chosen = loaded(text, label="truth", scores=("m_*",))
    assert chosen.first.labels.tolist() == [1, 0]  # type: ignore[union-attr]
    assert chosen.recognition.scores == ("m_a", "m_b")
    assert chosen.first.class_names == ("a", "b")
    logits = loaded(text, scores=("n_a", "n_b"), kind="logits", class_names=("x", "y"))
    data = logits.first
    assert isinstance(data, Predictions)
    assert data.logits is not None
    assert data.logits.tolist() == [[-2, 1], [3, 1]]
    expected = np.exp([[-2, 1], [3, 1]])
    assert np.allclose(data.probs, expected / expected.sum(axis=1, keepdims=True), atol=1e-15)
    assert data.class_names == ("x", "y")


def test_a_predicted_probability_beside_an_outcome_is_that_of_the_event() -> None:
    data = loaded("income_over_50k,predicted_probability\n0,.25\n1,.75\n1,.5\n").first
    assert data.probs[:, 1].tolist() == [0.25, 0.75, 0.5]
    assert data.labels.tolist() == [0, 1, 1]
    # Beside a predicted class it is the confidence in that.
    text = "y,pred,predicted_probability\n10,2,.5\n2,2,.75\n"
    assert loaded(text).first.kind == "confidence"


def test_confidence_only() -> None:
    text = "y,pred,confidence,split\n10,2,.5,a\n2,2,.75,b\n"
    data = loaded(text).first
    assert isinstance(data, ConfidencePredictions)
    assert data.class_names == ("2", "10")
    assert data.correct.tolist() == [False, True]
    assert data.splits is not None
    data = loaded("confidence,is_correct\n.5,yes\n.75,no\n").first
    assert isinstance(data, ConfidencePredictions)
    assert data.correct.tolist() == [True, False]


def test_one_logit_column_is_the_logit_of_class_1() -> None:
    data = loaded("label,logit\n0,-2.5\n1,.4\n").first
    assert isinstance(data, Predictions)
    assert np.allclose(data.probs[:, 1], 1 / (1 + np.exp([2.5, -0.4])), atol=1e-15)


# What is refused, what the sentence says, and what may be asked for.
REFUSED = {
    "p_a,p_b\n.5,.5\n.4,.6\n": ("no label column: 2 probability columns found", ""),
    "p_a,p_b\n.5,.5\n": ("one row does not say which is the label: 2 probability columns", ""),
    "what,p_a,p_b\nz,.5,.5\n": ("('what' has 1 value)", ""),
    "label\n0\n1\n": ("no probability columns", ""),
    "-2,3,0\n1,-1,1\n": (
        "no columns that add up to 1 in every row, as probabilities do (there are: column 1, column 2, column 3); say which columns hold the scores",
        "",
    ),
    "label,p_a,p_b\n0,.5,.5\nb,.4,.6\n": ("'0' is none of the classes", ""),
    "outcome,risk\nfoo,.5\nbar,.4\n": ("nothing says which class", ""),
    "foo,bar,p_a,p_b\n0,1,.5,.5\n1,0,.4,.6\n": ("several could be it: foo, bar", ""),
    "sex,sepsis_24h,p_sepsis\nF,0,.5\nM,1,.6\nF,1,.4\n": ("is 'sepsis_24h' the true class", ""),
    "label,confidence\n0,.5\n1,.4\n": ("nothing says whether the prediction was right", ""),
    "label,p_a,p_b\n,.5,.5\n1,.4,.6\n": ("1 of 2 rows have no label", "drop-missing"),
    "label,p_a,p_b\n0,-2.5,1.5\n1,.4,.6\n": ("not probabilities", "softmax"),
    "label,p_a,p_b\n0,50,50\n1,40,60\n": ("percentages", "percent"),
    "label,prob\n0,25\n1,40\n": ("percentages", "percent"),
    "label,prob\n0,-2.5\n1,4.5\n": ("outside [0, 1]", "sigmoid"),
    "label,p_a,p_b\n0,.6,.6\n1,.5,.7\n": ("2 of 2 rows sum to 1.2", "renormalise"),
    "label,logit_a,logit_b\n0,.5,.5\n1,.4,.6\n": ("they are probabilities", ""),
    "label,p_a,p_b\n0,.5,?!\n1,.4,?!\n": ("'p_b' holds text", ""),
    "p_a,p_b,y_a,y_b\n.5,.5,1,1\n": ("expected exactly one", ""),
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text: str) -> None:
    with pytest.raises(InputError) as caught:
        loaded(text)
    sentence, repair = REFUSED[text]
    assert sentence in str(caught.value)
    offered = [r.key for r in caught.value.repairs]
    assert repair in offered if repair else not offered
    if repair:
        done = loaded(text, repair=(repair,))
        assert len(done.repairs_made) == 1
        assert done.repairs_made[0].startswith(repair)


#: Scores of 60 rows, the number of one that is a mistake and its value, the factor of the others, and the repairs that read them.
MISTAKES = [
    (31, 130.0, 100, ["percent drop-outside"]),
    (59, -3.0, 100, ["percent drop-outside", "sigmoid"]),
    (0, 430.0, 1, ["drop-outside"]),
    (7, 1.7, 1, ["drop-outside", "percent"]),
    (7, -0.25, 1, ["drop-outside", "sigmoid"]),
]


@pytest.mark.parametrize(("row", "wrong", "factor", "keys"), MISTAKES)
@pytest.mark.parametrize("before", [0, 2])
def test_scores_with_one_mistake_are_named_as_what_the_others_are(row, wrong, factor, keys, before):
    p = (np.arange(60) + 0.5) / 60
    lines = [f"{int(i % 3 < 1)},{factor * x:.6g}" for i, x in enumerate(p)]
    lines[row] = f"1,{wrong}"
    # Rows that are left out for another reason come first.
    text = "\n".join(["label,prob", *[",0.5"] * before, *lines])
    asked = ("drop-missing",) * (before > 0)
    with pytest.raises(InputError, match=rf"1 of 60 is not in 0 to {factor}\b") as error:
        loaded(text, repair=asked)
    look = "percentages" if factor == 100 else "probabilities"
    at = before + row + 1
    assert f"(first: row {at} (line {at + 1})), the others look like {look}" in str(error.value)
    assert error.value.row == at
    assert [" ".join(answer.options["repair"]) for answer in error.value.answers] == keys
    # Whichever is chosen first, the next message asks for what is left.
    needed = ["percent", "drop-outside"] if factor == 100 else ["drop-outside"]
    for first in needed:
        chosen = loaded if needed == [first] else None
        if chosen is None:
            with pytest.raises(InputError) as error:
                loaded(text, repair=(*asked, first))
            offered = {key for answer in error.value.answers for key in answer.options["repair"]}
            assert {*needed} - {first} <= offered
    read = loaded(text, repair=(*asked, *needed))
    np.testing.assert_allclose(read.first.probs[:, 1], np.delete(p, row), atol=1e-6)
    assert f"row {at} (line {at + 1})" in next(t for t in read.repairs_made if "outside" in t)


def test_percentages_are_read_to_their_last_digit():
    written = [f"{i / 10:.1f}" for i in range(1_001)] + ["0.00000123456789", "33.33333333333333"]
    text = "label,prob\n" + "".join(f"{int(x == '37.2')},{x}\n" for x in written)
    found = loaded(text, repair=("percent",)).first.probs[:, 1]
    assert found.tolist()[:-1] == [float(f"{x}e-2") for x in written[:-1]]
    assert found[-1] == pytest.approx(33.33333333333333 / 100, rel=1e-15)


CONFIDENCES = "confidence,correct,split\n0.9,1,a\n0.8,,b\n0.7,0,b\n,1,a\n0.95,1,b\n"
EVENTS = "p,y,split\n0.9,1,a\n0.8,,b\n0.7,0,b\n,1,a\n0.95,1,b\n"


@pytest.mark.parametrize("text", [CONFIDENCES, EVENTS])
def test_rows_keep_their_numbers_of_the_file_where_others_are_left_out(text):
    data = loaded(text, repair=("drop-missing",)).first
    assert data.file_rows.tolist() == [0, 2, 4]
    assert data.split("b").file_rows.tolist() == [2, 4]
    whole = loaded("\n".join(line for line in text.split("\n") if ",," not in f",{line}")).first
    assert whole.file_rows.tolist() == [0, 1, 2]
    # They are no content.
    assert whole.fingerprint() == data.fingerprint()
    assert whole.has_metrics_of(data)


def test_rows_are_left_out_as_mistakes_only_if_they_are_few():
    text = "label,prob\n" + "1,0.9\n0,7\n0,0.2\n" * 10
    with pytest.raises(InputError, match="look like percentages"):
        loaded(text, repair=("drop-outside",))
    logits = np.random.default_rng(3).normal(1, 1.5, 300)
    text = "label,score\n" + "".join(f"{int(x > 1)},{x}\n" for x in logits)
    with pytest.raises(InputError, match="declare it as a logit") as error:
        loaded(text)
    assert [repair.key for repair in error.value.repairs] == ["sigmoid"]


def test_a_row_with_a_score_below_0_can_be_left_out_of_several_classes():
    rows = [f"{'ab'[i % 2]},{i / 50},{1 - i / 50}" for i in range(50)]
    text = "\n".join(["label,p_a,p_b", *rows[:9], "a,-0.2,1.2", *rows[9:]])
    with pytest.raises(InputError, match="row 10") as error:
        loaded(text)
    assert [repair.key for repair in error.value.repairs] == ["drop-outside"]
    read = loaded(text, repair=("drop-outside",))
    np.testing.assert_array_equal(
        read.first.probs, loaded("\n".join(["label,p_a,p_b", *rows])).first.probs
    )


def test_a_confidence_that_is_refused_is_named_by_its_row_of_the_file():
    text = "confidence,correct\n0.9,\n" + "0.8,1\n0.7,0\n" * 10 + "1.4,1\n"
    with pytest.raises(InputError, match="row 22"):
        loaded(text, repair=("drop-missing",))
    read = loaded(text, repair=("drop-missing", "drop-outside"))
    assert read.first.n == 20
    assert read.first.confidence.max() == 0.8


def test_sums_that_are_off_are_told_of_the_model_they_belong_to() -> None:
    rows = ".5,.498,.5,.5\n.4,.598,.3,.702\n"
    file = loaded(
        "label,m1:a,m1:b,m2:a,m2:b\n"
        + "".join(f"{'ab'[j]},{row}\n" for j, row in enumerate(rows.splitlines()))
    )
    assert list(file.models) == ["m1", "m2"]
    first, second = notices(file, "DATA006")
    assert first.startswith("'m1': 2 of 2 rows sum to 0.998")
    assert second.startswith("'m2': 1 of 2 rows sums to 1 … 1.002")
    (alone,) = notices(loaded("label,p_a,p_b\na,.5,.498\nb,.4,.6\n"), "DATA006")
    assert alone.startswith("1 of 2 rows sums to 0.998 … 1 ")
    # As far off as three decimals may be.
    assert not notices(loaded("label,p_a,p_b,p_c\na,.333,.333,.333\nb,.4,.301,.3\n"), "DATA006")


def test_repairs_compute_what_they_say() -> None:
    def probs(text: str, repair: str) -> list[list[float]]:
        data = loaded(text, repair=(repair,)).first
        assert isinstance(data, Predictions)
        return data.probs.tolist()

    assert probs("label,p_a,p_b\n0,75,25\n1,40,60\n", "percent") == [[0.75, 0.25], [0.4, 0.6]]
    assert probs("label,p_a,p_b\n0,3,1\n1,1,1\n", "renormalise") == [[0.75, 0.25], [0.5, 0.5]]
    result = probs("label,p_a,p_b\n0,-2,1\n1,1,1\n", "softmax")
    assert result[0][1] == pytest.approx(1 / (1 + np.exp(-3)))
    result = probs("label,p_a,p_b,id\n0,,.5,r1\n1,.25,.75,r2\n", "drop-missing")
    assert result == [[0.25, 0.75]]


def test_a_repair_that_is_not_needed_changes_nothing() -> None:
    text = "label,p_a,p_b\n0,.5,.5\n1,.25,.75\n"
    plain, asked = loaded(text), loaded(text, repair=("renormalise", "drop-missing"))
    assert asked.repairs_made == ()
    assert asked.first.fingerprint() == plain.first.fingerprint()


@pytest.mark.parametrize(
    ("text", "scores"),
    [
        ("label,p_a,p_b,day\n0,.6,.4,a\n1,.3,.7,a\n,.2,.8,b\n,,.1,b\n0,,.1,b\n", [0.2, 0.8]),
        ("correct,confidence,day\n1,.6,a\n0,.7,a\n,.8,b\n,,b\n1,,b\n", [0.8]),
    ],
)
def test_rows_without_a_label_only_wait_for_it(text: str, scores: list[float]) -> None:
    file = loaded(text, repair=("drop-missing",), groups=("day",))
    assert file.first.n == 2
    (waiting,) = file.waiting.values()
    assert waiting.n == 1
    assert waiting.groups["day"].levels == ("b",)
    found = waiting.probs if isinstance(waiting, Predictions) else waiting.confidence
    assert found.ravel().tolist() == scores
    # They are said to be left out once, and never wait unless they are.
    assert len(file.repairs_made) == 1
    assert not loaded("\n".join(text.split("\n")[:3])).waiting


@pytest.mark.parametrize(
    "options",
    [
        {"label": "foo"},
        {"scores": ("foo",)},
        {"scores": ("foo*",)},
        {"groups": ("foo",)},
        {"kind": "odds"},
        {"label_base": 2},
        {"repair": ("magic",)},
        {"class_names": ("one",)},
        {"scores": ("label2",)},
    ],
)
def test_options_that_do_not_fit(options: dict[str, object]) -> None:
    with pytest.raises(CalvizError):
        loaded("label,p_a,p_b,label2\n0,.5,.5,x\n1,.4,.6,y\n", **options)


def test_the_sentence_is_one_line_whatever_the_names() -> None:
    text = 'label,"p_a\nb",p_' + "x" * 5_000 + "\n0,.5,.5\n1,.4,.6\n"
    file = loaded(text)
    assert file.first.class_names == ("a\nb", "x" * 5_000)
    assert "\n" not in file.recognition.sentence()
    assert len(file.recognition.sentence()) < 400


def notices(result: Loaded, code: str) -> list[str]:
    return [n.message for n in result.notices if n.code == code]


def test_words_for_missing_in_a_column_of_numbers_are_missing_numbers():
    words = ["n/a", "NA", "N/A", "-", "null", "None", "--", "?"]
    rows = [f"{i % 2},.{i:03}5,{i / 10},{i % 60},{'NA' if i % 3 else 'DE'}" for i in range(900)]
    for word in words:
        rows += [f"0,.5,{word},{word},NA", "1,.5,,,DE"]
    found = loaded("label,p,temp,count,country\n" + "\n".join(rows))
    said = "read as missing: 8 (n/a, NA, N/A, -, null, None, --, ?)"
    assert notices(found, "DATA011") == [f"cells of 'temp' {said}", f"cells of 'count' {said}"]
    assert not notices(found, "DATA008")
    data = found.first
    assert np.isnan(data.numbers["temp"]).sum() == 16
    assert {"", "59"} < set(data.groups["count"].levels)
    assert not {*words} & {*data.groups["count"].levels}
    assert not data.cuts["count"].kept  # intervals
    # Where a column is no number, "NA" is one of its values.
    assert set(data.groups["country"].levels) == {"DE", "NA"}


def test_a_column_that_is_sliced_is_not_said_to_be_unused():
    rows = [f"{i % 2},.5,{'low' if i % 50 == 9 else i % 300 / 10}" for i in range(900)]
    found = loaded("label,p,temp\n" + "\n".join(rows))
    assert "temp" in usual_columns(found.first)
    assert not notices(found, "DATA008")


# Both kinds of scores: ln 3 = 1.0986 is the logit of .75 against .25, in any order of columns.
BOTH = "label,p_a,p_b,{0}_b,{0}_a\n0,.75,.25,0,1.0986123\n1,.5,.5,{1},2\n"


@pytest.mark.parametrize("prefix", ["logit", "logits", "y_logit"])
def test_logits_that_agree_are_kept_beside_the_probabilities(prefix: str) -> None:
    file = loaded(BOTH.format(prefix, 2))
    data = file.first
    assert isinstance(data, Predictions)
    assert data.probs.tolist() == [[0.75, 0.25], [0.5, 0.5]]
    assert data.logits is not None
    assert data.logits.tolist() == [[1.0986123, 0], [2, 2]]
    assert (data.kind, file.recognition.kind) == ("probabilities", "probabilities")
    assert data.class_names == ("a", "b")
    (text,) = notices(file, "DATA003")
    assert "p_a and p_b" in text
    assert f"{prefix}_a and {prefix}_b, which agree with them" in text


@pytest.mark.parametrize(
    ("cell", "reason"), [("3", "differs from them by up to 0.23"), ("inf", "not all finite")]
)
def test_logits_that_do_not_agree_are_left_and_named(cell: str, reason: str) -> None:
    file = loaded(BOTH.format("logit", cell))
    assert file.first.logits is None  # type: ignore[union-attr]
    (text,) = notices(file, "DATA003")
    assert "not used: logit_a and logit_b" in text
    assert reason in text


def test_logits_beside_probabilities_when_rows_are_dropped_or_the_kind_is_said() -> None:
    text = BOTH.format("logit", 2) + ",.5,.5,1,1\n"
    data = loaded(text, repair=("drop-missing",)).first
    assert data.logits.tolist() == [[1.0986123, 0], [2, 2]]  # type: ignore[union-attr]
    file = loaded(BOTH.format("logit", 3), kind="logits", label_base=0)
    assert file.recognition.scores == ("logit_b", "logit_a")
    assert file.first.class_names == ("b", "a")
    assert notices(file, "DATA003")[0].endswith("not used: p_a and p_b")


def test_other_score_columns_are_named() -> None:
    other_classes = loaded("label,p_a,p_b,logit_a,logit_c\n0,.5,.5,1,1\n1,.5,.5,1,1\n")
    assert "not used: logit_a and logit_c" in notices(other_classes, "DATA003")[0]
    one = loaded("label,prob,logit\n0,.5,0\n1,.5,0\n")
    assert "not used: logit" in notices(one, "DATA003")[0]


def test_columns_of_many_fractions_are_numbers_and_not_groups() -> None:
    rows = "".join(f"{i % 2},.5,.5,{i / 7:.3f},{'xy'[i % 2]},k\n" for i in range(30))
    file = loaded("label,p_a,p_b,age,site,unit\n" + rows)
    assert file.recognition.groups == ("site",)
    (text,) = notices(file, "DATA008")
    assert "age" not in text
    assert "unit (1 value)" in text
    (data,) = file.models.values()
    assert data.numbers["age"].tolist() == [round(i / 7, 3) for i in range(30)]
    # A column that is not sliced by is still written beside calibrated scores.
    assert data.texts["unit"].levels == ("k",)
    assert not loaded("label,p_a,p_b,age,site,unit\n" + rows, groups=("site",)).first.numbers
    assert not notices(loaded("label,p_a,p_b,age\n0,.5,.5,1.5\n", groups=()), "DATA008")
    # Numbers that are all different are cut to slice by, as their role says.
    rows = "".join(f"{j % 2},.5,.5,{j}\n" for j in range(60))
    file = loaded(f"label,p_a,p_b,pixel\n{rows}")
    assert "pixel" in sliceable_columns(file.first)
    assert not notices(file, "DATA008")


@pytest.mark.parametrize(
    "name", ["ID Patient#", "PatientID", "Patienten-Nr.", "Fallnummer", "customer-id"]
)
def test_a_column_with_a_word_for_identifiers_identifies_rows_that_all_differ(name):
    rows = [f"{1_000 + i},{i % 2},.{1 + i % 8}" for i in range(30)]
    file = loaded("\n".join([f"{name},label,p_1", *rows]))
    assert file.recognition.id_column == name
    assert file.first.ids.tolist()[:2] == ["1000", "1001"]
    # Not where values repeat, and not if the words may be those of a label.
    again = loaded("\n".join([f"{name},label,p_1", rows[0], *rows]))
    assert again.recognition.id_column is None
    asked = loaded("class_id,y,p_1\n0,1,.5\n1,0,.2\n2,1,.6\n")
    assert asked.recognition.id_column is None


def test_whole_numbers_that_all_differ_and_have_no_role_stay_with_the_rows():
    rows = [f"{900 + i},{i % 2},.{1 + i % 8}" for i in range(30)]
    file = loaded("\n".join(["accession,label,p_1", *rows]))
    assert file.recognition.id_column is None
    assert file.first.texts["accession"].values().tolist() == [str(900 + i) for i in range(30)]


def test_an_event_of_credit_or_medicine_is_the_label_where_no_column_is_called_so() -> None:
    file = loaded("defaulted,pd,rating\n1,.5,B\n0,.1,A\n0,.2,A\n")
    (data,) = file.models.values()
    assert file.recognition.label == "defaulted"
    assert data.labels is not None
    assert data.labels.tolist() == [1, 0, 0]
    assert "the column 'defaulted' is taken as the label" in file.notices[0].message
    # A name of its own comes first, and what is no 0 or 1 is no event.
    assert loaded("died,label,p\n1,0,.5\n0,1,.1\n").recognition.label == "label"
    with pytest.raises(InputError, match=r"no label column.*'disease' has 3 values"):
        loaded("disease,p,ward\nflu,.5,a\ncold,.1,b\nrash,.2,c\n")


@pytest.mark.parametrize("base", [None, 0, 1])
@pytest.mark.parametrize(
    ("class_names", "columns"),
    [
        ((), ("p_a", "p_b", "p_c")),
        (("0", "1", "2"), ("2.0", "1.0", "0.0")),
        (("a", "b", "c"), ("2", "1", "0")),
        (("1", "2", "3"), ("p_1", "p_2", "p_3")),
    ],
)
def test_whole_floats_mean_the_same_labels_as_their_texts(
    class_names: tuple[str, ...], columns: tuple[str, ...], base: int | None
) -> None:
    """Text is never taken for plain indices; only missing numbers are written in another way."""

    def outcome(labels: Any) -> Any:
        try:
            decoded = decode(
                labels, 3, class_names=class_names, columns=columns, base=base, name="y", line=lambda row: None
            )  # fmt: skip
        except InputError as error:
            return str(error)
        return decoded.indices.tolist(), decoded.form, decoded.class_names, decoded.notice

    for values in (
        [0, 1, 2, 1],
        [2, 1, np.nan, 0],
        [1, 2, 2, 2],
        [1, 2, 3, 1],
        [0, 1.5, 2, 1],
        [0, -1, 1, 1],
        [0, 3, np.inf, 1],
    ):
        floats = np.array(values, dtype=np.float32)
        assert outcome(floats) == outcome(Factor.of(floats)), values


@pytest.mark.parametrize("first", ["label", "score"])
def test_an_array_of_one_score_and_the_label(first):
    rng = np.random.default_rng(0)
    p, y = rng.random(50), (np.arange(50) % 2).astype(float)
    stream = io.BytesIO()
    np.save(stream, np.stack([y, p] if first == "label" else [p, y], axis=1))
    data = read(stream.getvalue(), name="rows.npy").first
    np.testing.assert_array_equal(data.probs[:, 1], p)
    np.testing.assert_array_equal(data.labels, y)


def test_a_text_among_numbers_is_named():
    lines = [json.dumps({"p": 0.25 if i != 5 else "high", "label": i % 2}) for i in range(20)]
    with pytest.raises(InputError, match=r"row 6, line 6, column 'p': 'high' is not a number"):
        read("\n".join(lines).encode(), name="rows.jsonl")


def test_a_header_that_comes_again_is_called_so():
    rows = [f"{i % 2},0.{i}" for i in range(1, 10)]
    text = "\n".join(["label,p", *rows, "label,p", *rows, "label,p", *rows])
    with pytest.raises(InputError) as raised:
        read(text.encode(), name="joined.csv")
    assert str(raised.value) == (
        "joined.csv: 2 lines repeat the header (11, 21), as in joined files; delete them, or ask to leave them out."
    )
    assert [repair.key for repair in raised.value.repairs] == ["drop-headers"]


def joined(separator: str = ",", end: str = "\n", mark: str = "", cell: str = "0.{}") -> list[str]:
    """Two files in one, and the one file of their rows."""
    head = f"label{separator}score{separator}region"
    rows = [separator.join((str(i % 2), cell.format(i), "ns"[i // 2 % 2])) for i in range(11, 61)]
    return [
        end.join(lines) + end for lines in ([head, *rows, mark + head, *rows], [head, *rows * 2])
    ]


@pytest.mark.parametrize(
    "way",
    [{}, {"end": "\r\n", "mark": "\ufeff"}, {"separator": ";", "cell": "0,{}"}, {"cell": "{} %"}],
)
def test_headers_that_come_again_are_left_out_if_asked(way):
    both, alone = joined(**way)
    options = ReadingOptions(repair=("drop-headers",))
    repaired, plain = read(both.encode(), options=options), read(alone.encode(), options=options)
    for attribute in ("probs", "labels"):
        np.testing.assert_array_equal(
            getattr(repaired.first, attribute), getattr(plain.first, attribute)
        )
    assert repaired.first.groups["region"].levels == plain.first.groups["region"].levels
    (made,) = repaired.repairs_made
    assert made == "drop-headers: 1 line repeats the header (52), as in joined files: left out"
    assert plain.repairs_made == ()


def test_lines_are_counted_as_in_the_file_behind_a_header_that_comes_again():
    lines = joined()[0].splitlines()
    lines[70] = lines[70].replace("0.", "x")
    with pytest.raises(InputError, match=r"row 69 \(line 71\) 'score' = 'x"):
        read("\n".join(lines).encode(), options=ReadingOptions(repair=("drop-headers",)))


def test_a_row_of_the_numbers_that_name_the_columns_is_a_row():
    rows = ["0,1", *["0.3,0.7"] * 1_200, "0,1"]
    table = format_of(source := Source("\n".join(rows).encode())).open(source)
    assert len(table.fetch([("0", "1")], ()).scores[0]) == 1_201


def test_a_split_without_a_name_is_called_empty():
    text = "label,p,split\n" + "\n".join(
        f"{i % 2},0.{i},{'test' if i % 3 else ''}" for i in range(1, 10)
    )
    assert "split 'split' (test 6, (empty) 3)" in loaded(text).recognition.sentence()


@pytest.mark.parametrize("chosen", [None, ("p_1",)])
@pytest.mark.parametrize("base", [None, 1])
def test_a_column_called_p_1_is_that_of_label_1_whether_chosen_or_found(
    chosen: tuple[str, ...] | None, base: int | None, tmp_path: Path
) -> None:
    text = "label,p_1\n1,.9\n2,.2\n"
    data = loaded(text, scores=chosen, label_base=base).first
    assert data.labels.tolist() == [1, 0]  # type: ignore[union-attr]
    assert data.class_names == ("2", "1")
    (tmp_path / "one.csv").write_text(text)
    profile = calviz.profile(tmp_path / "one.csv", scores=chosen, label_base=base)
    mcs = calviz.evaluate(profile, ["mcs"], reduction="positive")["mcs"].value
    assert mcs == pytest.approx((0.9 + 0.2 - 1) / 2)


@pytest.mark.parametrize("column", ["logit_0", "logit_1"])
def test_the_only_logit_is_found_by_its_name(column: str) -> None:
    text = f"label,{column}\n1,-3.5\n0,2.5\n"
    found_by_name, chosen = (loaded(text, scores=s).first for s in (None, (column,)))
    assert found_by_name.kind == "logits"
    assert found_by_name.labels.tolist() == chosen.labels.tolist()  # type: ignore[union-attr]
    np.testing.assert_array_equal(found_by_name.probs, chosen.probs)  # type: ignore[union-attr]


# ---- Classes called NA, None, null: names where the score columns carry them, missing labels elsewhere


WORDS = ["NA", "NaN", "nan", "null", "None", "none", "N/A", "<NA>"]


def as_csv(columns, rows, separator=",", quote=""):
    lines = [columns, *rows]
    return "\n".join(separator.join(f"{quote}{c}{quote}" for c in line) for line in lines).encode()


def as_jsonl(columns, rows):
    return "\n".join(json.dumps(dict(zip(columns, row, strict=True))) for row in rows).encode()


def as_binary(columns, rows, write):
    frame = pl.DataFrame({c: [row[j] for row in rows] for j, c in enumerate(columns)}, strict=False)
    out = io.BytesIO()
    getattr(frame, write)(out)
    return out.getvalue()


FORMS = {
    "a.csv": as_csv,
    "a.tsv": lambda c, r: as_csv(c, r, "\t"),
    "quoted.csv": lambda c, r: as_csv(c, r, ";", '"'),
    "a.jsonl": as_jsonl,
    "a.parquet": lambda c, r: as_binary(c, r, "write_parquet"),
    "a.arrow": lambda c, r: as_binary(c, r, "write_ipc"),
}


@pytest.fixture(params=FORMS)
def load(request):
    return lambda columns, rows: read(FORMS[request.param](columns, rows), name=request.param).first


def test_a_word_for_missing_is_a_class_where_a_score_column_carries_it(load):
    for word in WORDS:
        rows = [(word, 0.7, 0.3), ("EU", 0.2, 0.8), (word, 0.6, 0.4)] * 4
        data = load(["label", f"p_{word}", "p_EU"], rows)
        assert data.class_names == (word, "EU")
        assert data.labels.tolist() == [0, 1, 0] * 4, word


@pytest.mark.parametrize(
    ("columns", "labels", "names", "indices"),
    [
        # Only such labels, or thousands of them before another one.
        (["label", "p_NA", "p_EU"], ["NA"] * 20, ("NA", "EU"), [0] * 20),
        (["label", "p_NA", "p_EU"], ["NA"] * 3_000 + ["EU"], ("NA", "EU"), [0] * 3_000 + [1]),
        # Among classes that are numbers, early and late.
        (["y", "p_NA", "p_1", "p_2"], ["NA", "1", "2"] * 5, ("NA", "1", "2"), [0, 1, 2] * 5),
        (
            ["y", "p_NA", "p_1", "p_2"],
            ["1", "2"] * 1_500 + ["NA"],
            ("NA", "1", "2"),
            [1, 2] * 1_500 + [0],
        ),
        # Two of them, without a prefix, of models, of one score column, in another case.
        (["y", "p_none", "p_null", "p_x"], ["none", "null", "x"], ("none", "null", "x"), [0, 1, 2]),
        (["label", "NA", "EU"], ["NA", "EU"] * 5, ("NA", "EU"), [0, 1] * 5),
        (["label", "m:NA", "m:EU", "t:NA", "t:EU"], ["NA", "EU"] * 5, ("NA", "EU"), [0, 1] * 5),
        (["label", "p_NA"], ["NA", "EU"] * 5, ("EU", "NA"), [1, 0] * 5),
        (["label", "p_None", "p_some"], ["none", "some"] * 5, ("none", "some"), [0, 1] * 5),
    ],
)
def test_wherever_they_stand(load, columns, labels, names, indices):
    k = len(columns) - 1
    scores = {1: (0.7,), 2: (0.7, 0.3), 3: (0.5, 0.3, 0.2), 4: (0.7, 0.3, 0.6, 0.4)}[k]
    data = load(columns, [(label, *scores) for label in labels])
    assert data.class_names == names
    assert data.labels.tolist() == indices


@pytest.mark.parametrize(
    ("word", "classes"),
    [(word, ("US", "EU")) for word in (*WORDS, "")]
    + [("NA", classes) for classes in (("NAN_", "EU"), ("X", "is_NA"))]
    + [("nan", ("NAN_", "EU"))],
)
def test_without_such_a_class_they_are_missing(load, word, classes):
    rows = [(classes[0], 0.7, 0.3), (classes[1], 0.2, 0.8), (word, 0.5, 0.5)]
    with pytest.raises(InputError, match="1 of 3 rows have no label"):
        load(["label", *(f"p_{c}" for c in classes)], rows)


def test_an_empty_label_is_missing_beside_such_a_class(load):
    with pytest.raises(InputError, match=r"row 2.*1 of 3 rows have no label"):
        load(["label", "p_NA", "p_EU"], [("NA", 0.7, 0.3), ("", 0.2, 0.8), ("EU", 0.2, 0.8)])


def test_another_word_is_missing_beside_such_a_class(load):
    with pytest.raises(InputError, match="1 of 3 rows have no label"):
        load(["label", "p_NA", "p_EU"], [("NA", 0.7, 0.3), ("null", 0.2, 0.8), ("EU", 0.2, 0.8)])


def test_nan_in_a_column_of_numbers_is_missing_whatever_the_classes_are_called():
    frame = pl.DataFrame({"label": [1.0, float("nan")], "p_nan": [0.2, 0.3], "p_1": [0.8, 0.7]})
    out = io.BytesIO()
    frame.write_parquet(out)
    with pytest.raises(InputError, match="1 of 2 rows have no label"):
        read(out.getvalue(), name="a.parquet")


def test_missing_scores_are_missing_beside_such_a_class():
    rows = [("NA", 0.7, 0.3), ("EU", "NA", 0.8), ("EU", 0.2, 0.8)]
    with pytest.raises(InputError, match=r"row 2 \(line 3\) .p_NA. is empty"):
        read(as_csv(["label", "p_NA", "p_EU"], rows), name="a.csv")


def test_groups_and_numbers_beside_such_a_class_are_read():
    rows = [("NA", 0.7, 0.3, 31.5, "NA"), ("EU", 0.2, 0.8, "NA", "b")] * 4
    data = read(as_csv(["label", "p_NA", "p_EU", "age", "site"], rows), name="a.csv").first
    assert data.labels.tolist() == [0, 1] * 4
    assert data.groups["site"].levels == ("NA", "b")


def test_arrays_with_class_names():
    out = io.BytesIO()
    probs = np.array([[0.7, 0.3], [0.2, 0.8]])
    np.savez(out, probs=probs, labels=np.array(["NA", "EU"]), class_names=np.array(["NA", "EU"]))
    assert read(out.getvalue(), name="a.npz").first.labels.tolist() == [0, 1]


def test_models_named_by_labels_stand_in_the_order_of_the_file_and_a_disease_is_the_event():
    rng = np.random.default_rng(0)
    truth = rng.random(60) < 0.4
    rows = [
        ";".join(["erkrankt" if ill else "gesund", *(f"{v:.4f}" for v in (p, 1 - p, q, 1 - q))])
        for ill in truth
        for p, q in [rng.beta(2, 2, 2) * 0.5 + 0.4 * ill]
    ]
    names = "Diagnose;Modell eins: erkrankt;Modell eins: gesund;Wald: erkrankt;Wald: gesund"
    found = loaded("\n".join([names, *rows])).recognition
    assert found.models == ("Modell eins", "Wald")
    assert found.class_names == ("gesund", "erkrankt")


@pytest.mark.parametrize(("bad", "good"), [("bad", "good"), ("schlecht", "gut")])
def test_words_of_people_beside_the_score_of_a_judge_are_asked_for_unless_one_is_yes(bad, good):
    text = f"judge,human\n.9,{good}\n.2,{bad}\n.8,{good}\n.4,\n"
    with pytest.raises(InputError) as asked:
        loaded(text)
    ways = {way.label: way.options for way in asked.value.readings}
    assert set(ways) == {f"'{good}' is right", f"'{bad}' is right"}
    for word, labels in ((good, [1, 0, 1]), (bad, [0, 1, 0])):
        assert loaded(text, **ways[f"'{word}' is right"]).first.labels.tolist() == labels
    text = text.replace(good, "pass").replace(bad, "fail")
    assert loaded(text).first.labels.tolist() == [1, 0, 1]


GRADES, LOOKED = np.tile([5, 1, 2, 3, 4, 5], 5), np.tile([1, 0, 0, 1, 1, 0], 5)
MEANINGS = {f"{k} or more is right": (k <= GRADES).astype(float) for k in (2, 3, 4, 5)} | {
    "from 1 (0 % sure) to 5 (100 % sure)": (GRADES - 1) / 4,
    "from 0 (0 % sure) to 5 (100 % sure)": GRADES / 5,
}


def _graded(people, judge=GRADES):
    return as_csv(["judge_score", "human_label"], zip(judge, people, strict=True)).decode()


@pytest.mark.parametrize("words", [[0, 1], ["bad", "good"], ["schlecht", "gut"]])
def test_what_the_grades_of_a_judge_mean_is_asked_and_each_answer_gives_its_numbers(words):
    text = _graded(np.array(words)[LOOKED])
    with pytest.raises(InputError, match=r"grades go from 1 to 5|nothing says which") as asked:
        loaded(text)
    ways = asked.value.readings
    if words[0] == "schlecht":  # unknown words first
        assert {way.label for way in ways} == {f"'{word}' is right" for word in words}
        text = text.replace("schlecht", "no").replace("gut", "yes")
        ways = _ways_of(text)
    assert {way.label for way in ways} == MEANINGS.keys()
    for way in ways:
        options = dict(way.options)
        if words == ["bad", "good"]:
            options = dict(next(w.options for w in _ways_of(text, **options) if "good" in w.label))
        found = loaded(text, **options)
        np.testing.assert_allclose(found.first.probs[:, 1], MEANINGS[way.label])
        assert found.first.labels.tolist() == LOOKED.tolist()
        # The words of people are the names of the classes.
        named = {0: ("0", "1"), "bad": ("bad", "good"), "schlecht": ("no", "yes")}
        assert found.first.class_names == named[words[0]]
        assert notices(found, "DATA011") == [f"'judge_score' is read so: {way.label}"]
        said = [text for text in notices(found, "DATA003") if "answers yes or no" in text]
        assert bool(said) == ("more" in way.label)


def _ways_of(text, **options):
    with pytest.raises(InputError) as asked:
        loaded(text, **options)
    return asked.value.readings


def test_grades_beside_another_label_are_read_once_the_columns_are_named():
    text = _graded(LOOKED).replace("judge_score,human_label", "score,label")
    with pytest.raises(InputError, match="points or a judge's grades") as error:
        loaded(text)
    judge, human = re.findall("'(judge|human)'", str(error.value))
    assert len(_ways_of(text.replace("score,label", f"{judge},{human}"))) == len(MEANINGS)
    with pytest.raises(InputError, match="look like percentages; ask to divide them by 100"):
        loaded(_graded(LOOKED, GRADES * 20).replace("judge_score,human_label", "score,label"))


def test_grades_of_many_digits_are_read_by_the_button_that_names_them():
    judge = np.resize([1, 5 / 3, 3.3333366, 4], 30)
    ways = _ways_of(_graded(LOOKED, judge))
    for way, least in zip(ways[:3], [5 / 3, 3.3333366, 4], strict=True):
        found = loaded(_graded(LOOKED, judge), **way.options).first
        np.testing.assert_array_equal(found.probs[:, 1], judge >= least)


def test_grades_of_judge_and_people_have_one_threshold_and_grades_of_two_kinds_are_refused():
    people = GRADES[::-1]
    ways = _ways_of(_graded(people))
    assert [way.label for way in ways] == [label for label in MEANINGS if "more" in label]
    found = loaded(_graded(people), **ways[2].options).first
    assert found.labels.tolist() == (people >= 4).tolist()
    np.testing.assert_array_equal(found.probs[:, 1], GRADES >= 4)
    with pytest.raises(InputError, match="'judge_score' has grades to 10, 'human_label' to 5"):
        loaded(_graded(people, GRADES * 2), **ways[2].options)


@pytest.mark.parametrize(
    ("judge", "labels"),
    [
        ([1, 2], ["2 or more is right", "1 or less is right"]),
        ([0, 40, 100], ["40 or more is right", "100 or more is right", "from 0 (0 % sure) to 100 (100 % sure)"]),
        (np.arange(30), ["from 0 (0 % sure) to 100 (100 % sure)"]),
        ([2.5, 3.5, 4], ["3.5 or more is right", "4 or more is right", *(f"from {low} (0 % sure) to {high} (100 % sure)" for high in (4, 5) for low in (1, 0))]),
    ],
)  # fmt: skip
def test_the_meanings_of_other_grades(judge, labels):
    judge = np.resize(judge, 30)
    assert [way.label for way in _ways_of(_graded(LOOKED, judge))] == labels


@pytest.mark.parametrize("judge", [[0.2, 0.9, 1.4], [0, 1, -1], [0, 1, 250]])
def test_a_wrong_score_of_a_judge_is_no_grade(judge):
    with pytest.raises(InputError, match=r"row 3, .*'judge_score': .* is not between 0 and 1") as error:  # fmt: skip
        loaded(_graded(LOOKED, np.resize(judge, 30)))
    assert not error.value.readings


@pytest.mark.parametrize(
    ("names", "score"),
    [(("4", "3"), GRADES <= 3), (("5", "1"), (5 - GRADES) / 4), (("3", "4"), GRADES >= 4)],
)
def test_grades_have_the_meaning_that_is_given(names, score):
    found = loaded(_graded(LOOKED), class_names=names).first
    np.testing.assert_allclose(found.probs[:, 1], score)


@pytest.mark.parametrize("names", [["1", "4"], ["1", "0"], ["3", "3"], ["nan", "inf"], ["a", "b"]])
def test_class_names_that_fit_no_grade_are_no_answer(names):
    ways = _ways_of(_graded(LOOKED), class_names=names)
    assert [way.label for way in ways] == [*MEANINGS]


def test_the_score_of_a_judge_is_turned_by_names_in_the_other_order():
    text = _graded([*LOOKED[:-1], ""], np.linspace(0.1, 0.9, 30).round(3))
    before = loaded(text).first.probs[:, 1]
    turned = loaded(text, class_names=["1", "0"]).first
    np.testing.assert_allclose(turned.probs[:, 1], 1 - before)
    assert turned.labels.tolist() == LOOKED[:-1].tolist()


def test_verdicts_of_another_judge_are_no_groups_unless_asked_for():
    rows = [
        f"{'AB'[i // 3 % 2]},{i % 3},0.{i % 9 + 1},{i % 2},{['no', 'yes'][i % 2]}"
        for i in range(60)
    ]
    text = "\n".join(["system,judge_id,judge,human,judge2_verdict", *rows])
    found = loaded(text)
    assert {*found.first.groups} == {"system", "judge_id"}
    assert any("judge2_verdict: verdicts of other judges" in n.message for n in found.notices)
    assert "judge2_verdict" in loaded(text, groups=("judge2_verdict",)).first.groups


def test_rows_whose_sums_are_off_by_the_rounding_of_four_decimals_are_no_notice():
    rows = "label,a,b,c,d\na,.1234,.2345,.3456,.2963\nb,.5,.2,.2,.0998\n"
    assert not notices(loaded(rows), "DATA006")
    (notice,) = notices(loaded(rows.replace(".0998", ".0996")), "DATA006")
    assert notice.startswith("2 of 2 rows sum to 0.9996")
    assert notices(loaded(rows.replace(".0998", ".09981")), "DATA006")


def test_a_column_that_identifies_the_rows_of_a_judge_is_no_number_to_slice_by():
    rows = [
        f"{i + 1},{i % 3},{0.2 + 0.6 * (i % 2)},{i % 2 if i % 5 == 0 else ''}" for i in range(60)
    ]
    found = loaded("\n".join(["answer_id,length,judge,human", *rows])).first
    assert found.id_name == "answer_id"
    assert found.ids is not None
    assert found.ids.tolist() == [str(i + 1) for i in range(0, 60, 5)]
    assert (list(found.groups), list(found.numbers)) == (["length"], [])
    # A counter is nothing to slice by, whatever it is called.
    rows[0:0] = ["item,length,judge,human"]
    found = loaded("\n".join(rows)).first
    assert (list(found.groups), list(found.numbers)) == (["length"], [])


@pytest.mark.parametrize("word", ["score", "PD"])
@pytest.mark.parametrize("empty", [False, True])
def test_percentages_of_an_event_by_two_models_are_asked_about_as_models(word, empty):
    rng = np.random.default_rng(2)
    p = rng.uniform(0.02, 0.98, 200)
    hit = (rng.random(200) < p).astype(int)
    two = [100 * p, 100 * np.clip(p + rng.normal(0, 0.05, 200), 0, 1)]
    text = as_csv(
        ["churned", f"{word}_old", f"{word}_new"], zip(hit, *np.round(two, 1), strict=True)
    ).decode()
    if empty:
        text += "\n1,,40.1"
    way = next(way for way in _ways_of(text) if way.label.startswith("2 models"))
    assert way.label.startswith("2 models, in percent")
    assert "percent" in way.options["repair"]
    repair = ("drop-missing",) * empty + ("percent",)
    models = loaded(text, **way.options | {"repair": repair}).models
    assert [*models] == ["old", "new"]
    np.testing.assert_allclose(models["old"].probs[:, 1], np.round(two[0], 1) / 100)


@pytest.mark.parametrize("seldom_last", [False, True])
@pytest.mark.parametrize("header", ["truth,score", "truth,p_ham"])
def test_spellings_of_a_class_are_joined_under_the_usual_one_and_said(header, seldom_last):
    rows = ["ham,0.4", "spam,0.6"] * 20 + ["HAM,0.3", "Spam ,0.7", "HAM,0.2"]
    found = loaded("\n".join([header, *(rows if seldom_last else rows[::-1])]))
    assert sorted(found.first.class_names) == ["ham", "spam"]
    at = found.first.class_names.index("spam")
    assert found.first.labels.sum() == (21 if at else 22)
    *_, said = notices(found, "DATA007")
    assert said.startswith("spellings that are read as one class: ")
    assert "'ham' (20), 'HAM' (2)" in said
    assert "'spam' (20), 'Spam' (1)" in said


@pytest.mark.parametrize("labels", [("0", "1"), ("0", "0.0", "1"), ("ham", "spam", "spam ")])
def test_one_spelling_of_each_class_needs_no_words(labels):
    text = "truth,score\n" + "".join(f"{y},0.{3 + i}\n" for i, y in enumerate(labels * 9) if i < 7)
    assert not any("spelling" in text for text in notices(loaded(text), "DATA007"))


def test_a_third_word_that_says_that_nobody_knows_is_a_missing_label():
    rows = ["yes,0.9", "no,0.2"] * 20 + ["Unknown,0.5"]
    with pytest.raises(InputError, match="1 of 41 rows have no label") as asked:
        loaded("\n".join(["truth,score", *rows]))
    assert asked.value.row == 41
    found = loaded("\n".join(["truth,score", *rows]), repair=("drop-missing",)).first
    assert (found.class_names, found.n) == (("no", "yes"), 40)
    # Beside one other word it is a class of its own, and so it is where a column has its name.
    with pytest.raises(InputError, match="nothing says which class"):
        loaded("\n".join(["truth,score", *["known,0.9", "unknown,0.2"] * 20]))
    three = ["yes,0.2,0.2,0.6", "no,0.7,0.2,0.1", "unknown,0.2,0.5,0.3"]
    named = loaded("\n".join(["truth,p_no,p_unknown,p_yes", *three])).first
    assert named.class_names == ("no", "unknown", "yes")


def test_a_true_class_may_be_spelled_otherwise_than_the_prediction_and_that_is_said():
    rows = ["ham,ham,0.9", "spam,spam,0.8", "ham,spam,0.7"] * 20 + ["ham,HAM,0.9", "spam,Spam ,0.9"]
    found = loaded("\n".join(["predicted,truth,confidence", *rows]))
    assert found.first.class_names == ("ham", "spam")
    assert found.first.correct.sum() == 42
    (said,) = (text for text in notices(found, "DATA007") if "spellings" in text)
    assert said.startswith("spellings that are read as one class: 'HAM' is 'ham', 'Spam")
    # Predictions that have both spellings mean two classes.
    letters = ["a,a,0.9", "A,A,0.8", "a,A,0.7"] * 20
    two = loaded("\n".join(["predicted,truth,confidence", *letters]))
    assert two.first.class_names == ("A", "a")
    assert any("different classes here" in text for text in notices(two, "DATA007"))
    assert two.first.correct.sum() == 40
    assert [repair.key for repair in two.repairs_offered] == ["join-spellings"]
    joined = loaded("\n".join(["predicted,truth,confidence", *letters]), repair=("join-spellings",))
    assert (joined.first.class_names, joined.first.correct.sum()) == (("a",), 60)
    assert joined.repairs_made == (
        "join-spellings: spellings that are read as one class: 'A' is 'a'",
    )
    assert not joined.repairs_offered


@pytest.mark.parametrize(("name", "is_logit"), [("logit_prob", False), ("logit_score", True)])
def test_the_probability_of_a_model_called_logit_is_no_logit(name, is_logit):
    z = np.linspace(-3, 3, 40)
    values = z if is_logit else expit(z)
    rows = [f"{int(v > 0)},{value:.6f}" for v, value in zip(z, values, strict=True)]
    found = loaded("\n".join([f"label,{name}", *rows])).first
    assert (found.kind == "logits") == is_logit
    np.testing.assert_allclose(found.probs[:, 1], expit(z), atol=1e-5)


def test_what_says_whether_one_score_was_right_is_asked():
    rng = np.random.default_rng(0)
    p, kind = rng.uniform(0.3, 1, 300), rng.integers(0, 9, 300)
    right = rng.uniform(size=300) < p
    rows = zip(kind, p, right, strict=True)
    boxes = "category,score,matched\n" + "".join(f"c{k},{s:.3f},{r:d}\n" for k, s, r in rows)
    with pytest.raises(InputError, match="what says whether it was right") as asked:
        loaded(boxes)
    assert [way.options for way in asked.value.readings] == [{"label": "matched"}, {"label": ""}]
    said = np.where(right, kind, (kind + 1) % 9)
    rows = zip(kind, said, p, strict=True)
    top = "target,index,label,prob\n" + "".join(f"{k},{j},n{j},{s:.3f}\n" for k, j, s in rows)
    with pytest.raises(InputError, match="what says whether it was right") as asked:
        loaded(top)
    way = asked.value.readings[0].options
    assert (way["label"], way["prediction_column"], way["kind"]) == (
        "target",
        "index",
        "confidence",
    )
    named = loaded(top, **{key: value for key, value in way.items() if key != "kind"})
    np.testing.assert_array_equal(named.first.correct, right)


@pytest.mark.parametrize("text", ["2022Q{}", "2022-Q{}", "2022 Q{}", "Q{} 2022", "2022T{}"])
def test_quarters_are_dates(text):
    rows = "".join(f"0.{i % 9 + 1},{i % 2},{text.format(i % 4 + 1)}\n" for i in range(60))
    times = loaded(f"p,label,date\n{rows}").first.times
    assert [str(day) for day in times[:4].astype("datetime64[D]")] == [
        f"2022-{m}-01" for m in ("01", "04", "07", "10")
    ]


def _readers(rng, patients=80):
    """Two readers, each with one row of each patient."""
    p = rng.uniform(0.01, 0.99, (patients, 2)).round(3)
    truth = rng.random(patients) < p.mean(axis=1)
    return [
        (f"P{j:03}", reader, p[j, k], ("absent", "present")[int(truth[j])])
        for j in range(patients)
        for k, reader in enumerate(("Huber", "LungNet"))
    ]


_READERS = ["PatientID", "Reader", "AI_score", "GroundTruth"]
_TWO_OFFERS = {"class_names": ("absent", "present"), "model_column": "Reader", "cluster_column": "PatientID"}  # fmt: skip


def test_clusters_of_one_row_of_each_model_leave_its_rows_single():
    rows = _readers(np.random.default_rng(3))
    read_as = loaded(as_csv(_READERS, rows).decode(), **_TWO_OFFERS)
    assert [*read_as.models] == ["Huber", "LungNet"]
    assert all(m.clusters is None and m.ids is not None for m in read_as.models.values())
    assert any("two rows of one model" in notice.message for notice in read_as.notices)
    assert read_as.recognition.cluster_column is None
    # In the app, one offer comes after the other.
    first = loaded(as_csv(_READERS, rows).decode(), cluster_column="PatientID", model_column="")
    assert first.first.clusters is not None


def test_clusters_that_repeat_within_a_model_stay():
    rows = [
        (f"P{j % 40:03}", *row[1:], j) for j, row in enumerate(_readers(np.random.default_rng(3)))
    ]
    rows = [(f"P{int(j) // 4:03}", reader, s, t, f"A{j // 2}") for _, reader, s, t, j in rows]
    models = loaded(as_csv([*_READERS, "Accession"], rows).decode(), **_TWO_OFFERS, id_column="Accession").models  # fmt: skip
    assert all(m.clusters is not None and len(m.clusters.levels) == 40 for m in models.values())


def test_the_reason_of_another_column_is_not_replaced_by_one_of_the_scores():
    rows = [row for row in _readers(np.random.default_rng(3)) if row[1] == "Huber"]
    options = {**_TWO_OFFERS, "model_column": None}
    with pytest.raises(InputError, match="no rows belong together") as error:
        loaded(as_csv(_READERS, rows).decode(), **options)
    assert "outside" not in str(error.value)
    assert not error.value.repairs
    for values in ([0.0, 1.0], [0.002, 0.991], [1 + 1e-7, -1e-7]):
        array = np.array(values)[:, None]
        table = format_of(source := Source(b"score,label\n0.1,0\n", "x.csv", ReadingOptions())).open(source)  # fmt: skip
        given = InputError("the cluster is missing")
        scores = ScoreColumns(("score",), (), "probabilities", 1)
        assert Problem(table, scores, array, None, False).explain(given) is given


@pytest.mark.parametrize("labels", [("false", "true"), ("False", "True"), ("no", "yes")])
@pytest.mark.parametrize("names", [("1", "0"), ("true", "false"), ("yes", "no"), ("0", "1")])
def test_names_with_the_event_first_turn_the_classes(labels, names):
    text = "score_0,score_1,churned\n" + "0.8,0.2,{1}\n0.3,0.7,{0}\n".format(*labels) * 20
    data = loaded(text, label="churned", class_names=names).first
    assert data.class_names == names
    happened = next(names.index(n) for n in names if n in ("1", "true", "yes"))
    np.testing.assert_array_equal(data.labels, [happened, 1 - happened] * 20)


_BESIDE = ["p[{j}].label,p[{j}].prob", "p_{j}_class,p_{j}_score", "p.{j}.name,p.{j}.probability"]


@pytest.mark.parametrize("around", _BESIDE)
@pytest.mark.parametrize("order", ["one", "turned", "by row", "late"])
@pytest.mark.parametrize("blank", [False, True])
def test_classes_named_beside_scores_are_theirs(around, order, blank):
    rng = np.random.default_rng(4)
    n = 1_500
    p = rng.uniform(0.02, 0.98, n).round(4)
    truth = rng.random(n) < p
    swap = {"one": p < 0, "turned": p >= 0, "by row": rng.random(n) < 0.5, "late": np.arange(n) > 1_200}[order]  # fmt: skip
    lines = [",".join(around.format(j=j) for j in range(2)) + ",churned"]
    for q, hit, s in zip(p.tolist(), truth.tolist(), swap.tolist(), strict=True):
        pairs = [("false", round(1 - q, 4)), ("true", q)][:: -1 if s else 1]
        lines.append(",".join(f"{c},{v}" for c, v in pairs) + f",{str(hit).lower()}")
    if blank:
        lines.append(",,,,true")
    data = loaded("\n".join(lines), repair=("drop-missing",) * blank)
    assert data.first.class_names == ("false", "true")
    np.testing.assert_allclose(data.first.probs[:, 1], p)
    np.testing.assert_array_equal(data.first.labels, truth)
    assert any("of the classes that" in notice.message for notice in data.notices)


def test_names_beside_scores_that_are_no_classes():
    head = "p[0].label,p[0].prob,p[1].label,p[1].prob,y\n"
    with pytest.raises(InputError, match="do not name each class"):
        loaded(head + "true,0.2,false,0.8,true\ntrue,0.7,true,0.3,false\n" * 20)
    # Of models, the scores sum to anything.
    models = loaded(head + "lr,0.2,rf,0.3,0\nlr,0.7,rf,0.9,1\n" * 20, models=("p[0].prob", "p[1].prob"), label="y").models  # fmt: skip
    assert len(models) == 2


def test_two_scores_of_the_event_are_offered_as_models_though_named_as_scores():
    rng = np.random.default_rng(5)
    p = rng.uniform(0, 1, 300)
    hit = (rng.random(300) < p).astype(int)
    both = [np.round(100 * np.clip(p + rng.normal(0, 0.1, 300), 0, 1)) for _ in range(2)]
    text = as_csv(["PoP ECMWF (%)", "PoP ICON (%)", "rain"], zip(*both, hit, strict=True)).decode()
    options = {"scores": ("PoP ECMWF (%)", "PoP ICON (%)"), "label": "rain"}
    with pytest.raises(InputError, match="are they models") as error:
        loaded(text, **options)
    keys = {key for way in error.value.readings for key in way.options.get("repair", ())}
    assert keys == {"percent"}
    way = error.value.readings[0]
    assert "--scores" not in way.in_shell()
    assert "scores" not in way.in_code()
    models = loaded(text, **options | way.options).models
    np.testing.assert_allclose([m.probs[:, 1] for m in models.values()], np.array(both) / 100)
    # What the user asks for stays.
    with pytest.raises(InputError, match="rows do not sum to 1"):
        loaded(text, **options, repair="renormalise")
