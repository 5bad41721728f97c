"""Readings to choose from, and first rows."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import calviz
from calviz.core.errors import InputError
from calviz.core.predictions import ConfidencePredictions, Predictions
from calviz.data import Loaded, ReadingOptions, first_rows, read
from calviz.data.column_names import blocks_named_by, without_common_words
from calviz.data.first_rows import ROLES, ROWS
from tests.inputs.command_line import run

# ---- Doubtful files: what is asked, that every reading that is offered can be taken, and what decides where nothing is asked


N = 300


def event(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of an event, and whether it happened."""
    rng = np.random.default_rng(seed)
    p = rng.beta(0.6, 0.6, N).round(4)
    return p, (rng.random(N) < p).astype(int)


def classes(k: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of K classes, and which of them is true."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, 0.3), N).round(6)
    p[:, -1] = 1 - p[:, :-1].sum(axis=1)
    return p, np.array([rng.choice(k, p=np.abs(row) / np.abs(row).sum()) for row in p])


def loaded(columns: Mapping[str, Any], **options: Any) -> Loaded:
    content = pd.DataFrame(columns).to_csv(index=False).encode()
    return read(content, name="x.csv", options=ReadingOptions(**options))


def asked(columns: Mapping[str, Any]) -> InputError:
    with pytest.raises(InputError) as caught:
        loaded(columns)
    assert caught.value.readings
    return caught.value


P, Y = event()
WORDS = {
    "dead or alive": np.where(Y, "dead", "alive"),
    "good or bad": np.where(Y, "bad", "good"),
    "a word for the event and another": np.where(Y, "relapse", "remission"),
    "text 0 and 1": Y.astype(str),
    "booleans": Y.astype(bool),
}


@pytest.mark.parametrize("words", WORDS)
def test_the_event_is_what_a_risk_model_predicts(words: str) -> None:
    for order in (slice(None), slice(None, None, -1)):
        data = loaded({"status": WORDS[words][order], "risk": P[order]}, label="status").first
        np.testing.assert_array_equal(data.labels, Y[order])
        np.testing.assert_allclose(data.probs[:, 1], P[order])


#: How a header and the labels write no event and event.
PAIRED = {
    "p_0,p_1": (0, 1),
    "p_no,p_yes": ("no", "yes"),
    "class_No,class_Yes": (0, 1),
    "p_False,p_True": (False, True),
    "p_legit,p_fraud": (0, 1),
    "legit,fraud": (False, True),
    "p_-1,p_1": (-1, 1),
}


@pytest.mark.parametrize("header", PAIRED)
def test_the_positive_class_is_the_event_in_every_order_of_columns(
    header: str, tmp_path: Path
) -> None:
    none, event_ = header.split(",")
    columns = {none: 1 - P, event_: P, "label": [PAIRED[header][y] for y in Y]}
    for order in (columns, dict(reversed(columns.items()))):
        frame = pd.DataFrame(order)
        frame.to_parquet(tmp_path / "x.parquet")
        made = calviz.profile(tmp_path / "x.parquet").predictions()
        np.testing.assert_allclose(np.average(made.labels == 1, weights=made.weights), Y.mean())
        texts = frame.drop(columns="label")
        for data in (
            loaded(order).first,
            read(tmp_path / "x.parquet").first,
            Predictions.from_frame(frame),
            Predictions.from_arrays(frame["label"], texts),
        ):
            np.testing.assert_array_equal(data.labels, Y)
            np.testing.assert_allclose(data.probs[:, 1], P)
    # The order that somebody gives stays.
    one = loaded(columns, scores=(event_, none)).first
    np.testing.assert_allclose(one.probs[:, 0], P)


def test_nested_probabilities_have_the_event_last_too() -> None:
    rows = [
        {"label": int(y), "probs": [{"label": "1", "prob": p}, {"label": "0", "prob": 1 - p}]}
        for y, p in zip(Y, P.tolist(), strict=True)
    ]
    data = read("\n".join(map(json.dumps, rows)).encode(), name="x.jsonl").first
    assert data.class_names == ("0", "1")
    np.testing.assert_array_equal(data.labels, Y)
    np.testing.assert_allclose(data.probs[:, 1], P)


def test_a_pair_of_unknown_words_is_asked_about() -> None:
    columns = {"diagnosis": np.where(Y, "M", "B"), "prob": P}
    error = asked(columns)
    assert "'B' or 'M'" in str(error)
    one, two = (loaded(columns, **reading.options).first for reading in error.readings)
    np.testing.assert_array_equal(one.labels, Y)
    np.testing.assert_array_equal(two.labels, 1 - Y)
    assert (one.class_names, two.class_names) == (("B", "M"), ("M", "B"))


def test_two_models_with_one_score_each_are_asked_about_and_read_as_models() -> None:
    columns = {"label": Y, "y_prob_lr": P, "y_prob_rf": np.clip(P * 0.7 + 0.1, 0, 1)}
    error = asked(columns)
    assert not error.repairs
    both, first, second = (loaded(columns, **reading.options) for reading in error.readings)
    assert list(both.models) == ["lr", "rf"]
    for name, column, single in (("lr", "y_prob_lr", first), ("rf", "y_prob_rf", second)):
        for data in (both.models[name], single.first):
            assert isinstance(data, Predictions)
            np.testing.assert_allclose(data.probs[:, 1], columns[column])
            np.testing.assert_array_equal(data.labels, Y)


@pytest.mark.parametrize("label", ["label", "admitted"])
@pytest.mark.parametrize("words", [(0, 1), ("no", "yes"), ("B", "M")])
def test_models_without_a_common_word_are_asked_about(label: str, words: tuple[Any, Any]) -> None:
    rng = np.random.default_rng(0)
    scores = {"mlp": P, "forest": np.clip(P * 0.7 + 0.1, 0, 1), "humidity": rng.random(N).round(3)}
    columns = {**scores, label: [words[y] for y in Y]}
    error = asked(columns)
    assert [r.options.get("models") for r in error.readings] == [("mlp", "forest"), None, None]
    chosen = dict(error.readings[0].options)
    if words == ("B", "M"):
        with pytest.raises(InputError) as caught:
            loaded(columns, **chosen)
        chosen |= next(r.options for r in caught.value.readings if "'M'" in r.label)
    found = loaded(columns, **chosen)
    assert list(found.models) == ["mlp", "forest"]
    for name, data in found.models.items():
        assert isinstance(data, Predictions)
        np.testing.assert_allclose(data.probs[:, 1], scores[name])
        np.testing.assert_array_equal(data.labels, Y)


def test_a_confidence_below_chance_of_several_classes_may_be_another_column_or_a_class() -> None:
    p, y = classes(4)
    names = np.array(list("abcd"))
    said = {"true_label": names[y], "pred_label": names[p.argmax(1)]}
    columns = {**said, "prob": p[np.arange(N), y], "margin": p.max(1)}
    other, same = (loaded(columns, **r.options).first for r in asked(columns).readings)
    assert isinstance(other, ConfidencePredictions)
    assert isinstance(same, ConfidencePredictions)
    np.testing.assert_allclose(other.confidence, p.max(1))
    np.testing.assert_allclose(same.confidence, columns["prob"])
    columns = {**said, "b": p[:, 1], "prob": p[:, 0], "d": p[:, 3], "c": p[:, 2]}
    data = loaded(columns, **asked(columns).readings[0].options).first
    assert data.class_names == ("b", "a", "d", "c")
    np.testing.assert_array_equal(np.array([1, 0, 3, 2])[data.labels], y)


def test_a_column_called_class_that_is_the_largest_score_in_all_rows_is_no_label_without_a_question() -> (
    None
):
    p, y = classes(3)
    names = np.array(["setosa", "versicolor", "virginica"])
    scores = {f"posterior.{name}": p[:, j] for j, name in enumerate(names)}
    columns = {**scores, "class": names[p.argmax(1)], "Species": names[y]}
    true, _ = (loaded(columns, **r.options).first for r in asked(columns).readings)
    np.testing.assert_array_equal(true.labels, y)
    del columns["Species"]
    np.testing.assert_array_equal(loaded(columns).first.labels, p.argmax(1))


@pytest.mark.parametrize("header", ["cls_true,cls_pred,conf", "species,Label,Score"])
def test_the_true_class_beside_a_prediction_and_its_confidence_is_found(header: str) -> None:
    p, y = classes(4)
    names = np.array(list("abcd"))
    other = np.random.default_rng(3).choice(names, N)
    columns = dict(zip(header.split(","), (names[y], names[p.argmax(1)], p.max(1)), strict=True))
    data = loaded({"neighbour": other, **columns}).first
    assert isinstance(data, ConfidencePredictions)
    np.testing.assert_allclose(data.confidence, p.max(1))
    np.testing.assert_array_equal(data.correct, p.argmax(1) == y)


def test_a_prediction_is_not_offered_as_the_label() -> None:
    p, y = classes(2)
    columns = {"Purchase": np.array(["CH", "MM"])[y], "prediction_label": np.array(["CH", "MM"])[p.argmax(1)], "prediction_score": p.max(1)}  # fmt: skip
    (reading,) = asked(columns).readings
    data = loaded(columns, **reading.options).first
    assert isinstance(data, ConfidencePredictions)
    np.testing.assert_array_equal(data.correct, p.argmax(1) == y)


@pytest.mark.parametrize("names", [("true", "false"), ("fraud", "legit")])
def test_with_few_rows_names_say_the_event_and_not_the_order_of_the_columns(
    names: tuple[str, str],
) -> None:
    p, y = np.array([0.9, 0.2, 0.7, 0.4]), np.array([1, 0, 1, 0])
    data = loaded({f"p_{names[0]}": p, f"p_{names[1]}": 1 - p, "label": y}).first
    np.testing.assert_allclose(data.probs[:, 1], p)
    np.testing.assert_array_equal(data.labels, y)
    # Without such a word, the order of the columns and that of the alphabet differ.
    asked({"p_M": p, "p_B": 1 - p, "label": y})


def test_a_constant_column_is_no_label_beside_one_that_varies() -> None:
    columns = {"out_False": 1 - P, "out_True": P, "out": Y.astype(bool), "POSITIVE_CLASS": "True"}
    few = {
        name: values if isinstance(values, str) else values[:25] for name, values in columns.items()
    }
    assert "POSITIVE_CLASS" not in [r.options.get("label") for r in asked(few).readings]
    np.testing.assert_array_equal(loaded(columns).first.labels, Y)


def test_other_scores_of_the_same_classes_are_named() -> None:
    columns = {"p0": 1 - P, "p1": P, "cal_p0": 1 - P**2, "cal_p1": P**2, "label": Y}
    notices = [n.message for n in loaded(columns).notices if n.code == "DATA003"]
    assert notices == ["'p0 and p1' holds the scores; not used: cal_p0 and cal_p1"]


def test_labels_1_and_2_beside_one_score_are_asked_about() -> None:
    columns = {"class": Y + 1, "probability": P}
    (reading,) = asked(columns).readings
    np.testing.assert_array_equal(loaded(columns, **reading.options).first.labels, Y)


def test_classes_that_do_not_sum_to_1_are_no_models() -> None:
    columns = {"label": Y, "p_0": np.clip(1.2 * (1 - P), 0, 1), "p_1": P}
    with pytest.raises(InputError) as caught:
        loaded(columns)
    assert [repair.key for repair in caught.value.repairs] == ["renormalise"]


PREDICTED = (P >= 0.5).astype(int)


def test_the_probability_of_the_event_beside_correct_is_no_confidence() -> None:
    columns = {"true_label": Y, "probability": P, "prediction": PREDICTED, "correct": (PREDICTED == Y).astype(int)}  # fmt: skip
    for label in ("true_label", "outcome_flag"):
        renamed = {label if name == "true_label" else name: values for name, values in columns.items()}  # fmt: skip
        data = loaded(renamed).first
        assert isinstance(data, Predictions)
        np.testing.assert_allclose(data.probs[:, 1], P)
        np.testing.assert_array_equal(data.labels, Y)


def test_rows_of_which_nobody_knows_whether_they_were_right_have_no_label() -> None:
    right = pd.array((PREDICTED == Y).astype(int), dtype="Int64")
    right[:12] = pd.NA
    columns = {"label": Y, "pred_prob": P, "pred_label": PREDICTED, "correct": right}
    with pytest.raises(InputError, match="12 of 300 rows have no label") as caught:
        loaded(columns)
    (repair,) = caught.value.repairs
    assert loaded(columns, repair=(repair.key,)).first.n == N - 12


def test_a_confidence_below_chance_is_asked_about() -> None:
    columns = {"true_label": Y, "prediction": PREDICTED, "confidence": P}
    error = asked(columns)
    assert "below 1/2" in str(error)
    of_event, as_confidence = (loaded(columns, **r.options).first for r in error.readings)
    assert isinstance(of_event, Predictions)
    np.testing.assert_array_equal(of_event.labels, Y)
    assert isinstance(as_confidence, ConfidencePredictions)
    np.testing.assert_array_equal(as_confidence.correct, PREDICTED == Y)


def test_a_score_of_at_least_one_half_beside_both_predictions_is_a_confidence() -> None:
    top = np.maximum(P, 1 - P)
    data = loaded({"target": Y, "prediction_label": PREDICTED, "prediction_score": top}).first
    assert isinstance(data, ConfidencePredictions)
    np.testing.assert_array_equal(data.correct, PREDICTED == Y)


def test_a_negated_event_is_the_first_class_and_a_word_for_its_opposite_is_asked_about() -> None:
    data = loaded({"event": Y, "p_no_event": 1 - P}).first
    np.testing.assert_array_equal(data.labels, 1 - Y)
    columns = {"died": Y, "survival_probability": 1 - P}
    other, same = (loaded(columns, **r.options).first for r in asked(columns).readings)
    np.testing.assert_array_equal(other.labels, 1 - Y)
    np.testing.assert_array_equal(same.labels, Y)


@pytest.mark.parametrize("names", ["{0}", "pred_{0}", "{0} (score)", "P({0})"])
def test_labels_of_their_own_are_models(names: str) -> None:
    rng = np.random.default_rng(1)
    topics = ("rude", "long", "late")
    scores = {names.format(f"is {t}" if names == "{0}" else t): rng.random(N).round(4) for t in topics}  # fmt: skip
    truth = {t if names != "{0}" else f"is {t} label": (rng.random(N) < s).astype(int) for t, s in zip(topics, scores.values(), strict=True)}  # fmt: skip
    file = loaded(truth | scores)
    assert len(file.models) == len(topics)
    for data, values, labels in zip(file.models.values(), scores.values(), truth.values(), strict=True):  # fmt: skip
        np.testing.assert_allclose(data.probs[:, 1], values)
        np.testing.assert_array_equal(data.labels, labels)
    assert any(n.message.startswith("multi-label") for n in file.notices)


def test_a_2d_label_with_several_ones_is_multi_label_and_so_is_from_multilabel() -> None:
    rng = np.random.default_rng(2)
    scores = rng.random((N, 3))
    labels = (rng.random((N, 3)) < scores).astype(int)
    stream = io.BytesIO()
    np.savez(stream, probs=scores, labels=labels)
    models = read(stream.getvalue(), name="x.npz").models
    same = Predictions.from_multilabel(labels, scores)
    pairs = Predictions.from_multilabel(labels, [np.stack([1 - s, s], axis=1) for s in scores.T])
    assert list(models) == list(same) == list(pairs) == ["0", "1", "2"]
    for name, data in models.items():
        assert same[name].fingerprint() == pairs[name].fingerprint()
        np.testing.assert_allclose(same[name].probs[:, 1], data.probs[:, 1])
        np.testing.assert_array_equal(same[name].labels, data.labels)
    with pytest.raises(InputError, match="neither 0 nor 1"):
        Predictions.from_multilabel(labels + 1, scores)
    with pytest.raises(InputError, match="expected the same"):
        Predictions.from_multilabel(labels[:, :2], scores)


def test_numbers_for_classes_are_their_places_or_those_in_the_alphabet_whichever_the_labels_follow() -> (
    None
):
    p, y = classes(3)
    names = ("dog", "cat", "fox")
    columns = {f"p_{name}": p[:, j] for j, name in enumerate(names)}
    alphabet = np.array([sorted(names).index(name) for name in names])
    for labels in (y, alphabet[y]):
        data = loaded(columns | {"label": labels}).first
        np.testing.assert_array_equal(data.labels, y)
    # A useless model says neither.
    noise = np.random.default_rng(3).integers(3, size=N)
    z = {loaded(columns | {"label": noise}, **r.options).first.labels.sum() for r in _readings(columns, noise)}  # fmt: skip
    assert len(z) <= 2


def _readings(columns: Mapping[str, Any], labels: np.ndarray) -> tuple[Any, ...]:
    try:
        loaded(columns | {"label": labels})
    except InputError as error:
        return error.readings
    return ()


def test_a_prediction_is_no_label() -> None:
    p, y = classes(3)
    names = np.array(["cat", "dog", "fox"])
    columns = {name: p[:, j] for j, name in enumerate(names)}
    columns |= {"model_says": names[p.argmax(axis=1)], "doctor_says": names[y]}
    file = loaded(columns)
    assert file.recognition.label == "doctor_says"
    del columns["doctor_says"]
    with pytest.raises(InputError, match="'model_says' is the class of the largest score"):
        loaded(columns)


def test_what_the_largest_score_says_of_the_prediction_is_said() -> None:
    p, y = classes(3)
    names = np.array(["cat", "dog", "fox"])
    columns = {f"model says {name}": p[:, j] for j, name in enumerate(names)}
    columns |= {"label": names[y], "prediction": names[p.argmax(axis=1)]}
    messages = [n.message for n in loaded(columns).notices]
    assert any("agrees with 'prediction' in all rows" in m for m in messages)
    columns["prediction"] = names[(p.argmax(axis=1) + 1) % 3]
    messages = [n.message for n in loaded(columns).notices]
    assert any("in only 0% of the rows" in m for m in messages)


def test_two_columns_of_unknown_names_are_asked_about_if_the_labels_follow_the_first() -> None:
    columns = {"x": P, "y": 1 - P, "class": np.where(Y, "pos", "neg")}
    one, two = (loaded(columns, **r.options).first for r in asked(columns).readings)
    np.testing.assert_array_equal(one.labels, Y)
    np.testing.assert_allclose(one.probs[:, 1], P)
    np.testing.assert_allclose(two.probs[:, 1], 1 - P)
    in_order = loaded({"x": 1 - P, "y": P, "class": columns["class"]}).first
    np.testing.assert_allclose(in_order.probs[:, 1], P)


@pytest.mark.parametrize("columns", [["sex", "risk"], ["age", "risk"]])
def test_a_leftover_column_is_never_made_the_label(columns: list[str]) -> None:
    rng = np.random.default_rng(4)
    values = {"sex": rng.choice(["m", "f", "x"], N), "age": rng.random(N) * 80}[columns[0]]
    with pytest.raises(InputError, match="no label column"):
        loaded({columns[0]: values, columns[1]: P})


def test_the_command_line_and_python_name_the_same_ways(tmp_path: Any) -> None:
    path = tmp_path / "x.csv"
    pd.DataFrame({"label": Y, "p_lr": P, "p_rf": P**2}).to_csv(path, index=False)
    out = run("audit", path)
    assert out.exit_code == 2
    assert "2 models: --models p_lr,p_rf\n" in out.stderr
    assert run("audit", path, "--models", "p_lr,p_rf", "--resamples", "20").exit_code == 0
    with pytest.raises(InputError, match=r"2 models: models=\['p_lr', 'p_rf'\]"):
        calviz.load(path)
    assert calviz.load(path, models=["p_lr", "p_rf"], model="rf").n == N


def test_words_around_classes() -> None:
    columns = ["id", 'Scored Probabilities for Class "a"', 'Scored Probabilities for Class "ab"']
    (block,) = blocks_named_by(["a", "ab"], columns)
    assert block.classes == ("a", "ab")
    assert block.around == ('Scored Probabilities for Class "', '"')
    assert without_common_words(["high_risk", "low_risk"]) == ("high", "low")
    assert without_common_words(["versicolor", "virginica"]) == ("versicolor", "virginica")
    assert [b.classes for b in blocks_named_by(["-1", "1"], ["prob--1", "prob-1"])] == [("-1", "1")]


# ---- The first rows of a file, the role of each column, and what another role reads


READ = b"id,split,label,p_cat,p_dog\n" + b"".join(
    b"r%d,%s,%s,0.%d,0.%d\n" % (i, (b"cal", b"test")[i % 2], (b"cat", b"dog")[i % 2], i, 10 - i)
    for i in range(1, 10)
)
#: Nothing says which of two columns is the label.
TWO_LABELS = b"first,second,p_a,p_b\n" + b"1,0,0.7,0.3\n0,1,0.4,0.6\n" * 12
MODELS = b"y,m_one,m_two\n" + b"1,0.9,0.8\n0,0.3,0.1\n1,0.6,0.7\n0,0.2,0.35\n" * 8
LOGITS = b"1.5,-0.5,0.25,0\n-2.25,3.5,0.5,1\n0.1,0.2,2.5,2\n"


def test_the_roles_of_a_file_that_is_read_are_those_that_were_recognised():
    shown = first_rows(READ)
    assert shown.roles == {
        "id": "id",
        "split": "split",
        "label": "label",
        "p_cat": "score",
        "p_dog": "score",
    }
    assert shown.classes == {"p_cat": "cat", "p_dog": "dog"}
    assert shown.recognised
    assert shown.missing == ()
    assert shown.cells["p_cat"][:2] == ("0.1", "0.2")
    assert {len(cells) for cells in shown.cells.values()} == {ROWS}


def test_the_number_of_rows_is_bounded():
    assert len(first_rows(READ, rows=3).cells["id"]) == 3


@pytest.mark.parametrize(
    "content", [b"\x89PNG\r\n\x1a\n rest", b"PK\x03\x04 an archive", b"", b"\x80\x04 a pickle"]
)
def test_a_file_that_is_no_table_has_no_rows(content):
    with pytest.raises(InputError, match=r"x\.bin"):
        first_rows(content, name="x.bin")


def test_a_question_marks_the_columns_that_it_is_about():
    with pytest.raises(InputError) as caught:
        read(MODELS, name="x.csv")
    assert caught.value.readings
    shown = first_rows(MODELS)
    assert shown.roles == {"y": "label", "m_one": "model", "m_two": "model"}
    assert shown.asked == {"m_one", "m_two"}
    # A column that is no model leaves the other one.
    one = read(MODELS, name="x.csv", options=shown.with_role("m_two", "ignored"))
    np.testing.assert_array_equal(one.first.probs[:2, 1], [0.9, 0.3])


def test_another_role_reads_the_file_with_it():
    shown = first_rows(TWO_LABELS)
    options = shown.with_role("second", "label")
    assert read(TWO_LABELS, name="x.csv", options=options).recognition.label == "second"
    # The label is one column, which was another one before.
    assert "label" not in first_rows(TWO_LABELS, options=options).roles["first"]


def test_a_role_changes_only_what_it_is_about():
    shown = first_rows(READ)
    assert shown.with_role("split", "group") == ReadingOptions(split_column="", groups=("split",))
    assert shown.with_role("id", "cluster") == ReadingOptions(id_column="", cluster_column="id")


def test_columns_that_nothing_names_are_guessed_and_read_as_they_are_shown():
    with pytest.raises(InputError):
        read(LOGITS, name="x.csv")
    shown = first_rows(LOGITS)
    assert not shown.recognised
    assert [*shown.roles.values()] == ["score", "score", "score", "label"]
    options = shown.as_shown()
    assert options.label == "column 4"
    assert options.scores == ("column 1", "column 2", "column 3")


def test_what_is_missing_is_said():
    shown = first_rows(b"ward,floor,risk of fall\n" + b"a,1,0.3\nb,2,0.7\nc,3,0.1\n" * 20)
    assert shown.missing == ("the label",)


def test_a_confidence_is_read_with_the_column_that_says_what_was_right():
    rows = b"surety,ok,why\n" + b"0.9,1,a\n0.8,1,b\n0.7,0,c\n0.6,0,d\n" * 10
    options = first_rows(rows).with_role("ok", "correct")
    assert options.kind == "confidence"
    data = read(rows, name="x.csv", options=options).first
    assert data.kind == "confidence"
    np.testing.assert_array_equal(data.correct[:4], [1, 1, 0, 0])


def test_a_confidence_is_read_with_the_column_of_predictions():
    rows = b"truth,said,sure\n" + b"a,b,0.9\nb,b,0.8\nc,c,0.7\n" * 10
    options = ReadingOptions(
        kind="confidence", scores=("sure",), prediction_column="said", label="truth"
    )
    data = read(rows, name="x.csv", options=options).first
    np.testing.assert_array_equal(data.correct[:3], [0, 1, 1])


def test_the_values_of_a_column_limit_its_roles():
    shown = first_rows(READ)
    assert "score" not in shown.choices["split"]
    assert shown.choices["p_cat"] == ROLES


@pytest.mark.parametrize("role", ROLES)
def test_every_role_of_every_column_gives_valid_options(role):
    for content in (READ, TWO_LABELS, MODELS, LOGITS):
        shown = first_rows(content)
        for name in shown.roles:
            assert first_rows(content, options=shown.with_role(name, role)).roles.keys() == {
                *shown.roles
            }


def test_the_row_that_an_error_names_is_among_them():
    rows = b"label,p\n" + b"1,0.5\n" * 48 + b",0.25\n" + b"0,0.5\n" * 9
    with pytest.raises(InputError) as caught:
        read(rows, name="x.csv")
    assert caught.value.row == 49
    shown = first_rows(rows, also=49)
    assert shown.numbers == (1, 2, 3, 4, 5, 6, 7, 49)
    assert (shown.cells["label"][-1], shown.cells["p"][-1]) == ("", "0.25")
    # One that is not looked at is not there, and one of the first ones is already.
    assert first_rows(rows, also=9_999).numbers == first_rows(rows, also=3).numbers
