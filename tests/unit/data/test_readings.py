"""Readings to choose from, and first rows."""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import expit

import calviz
from calviz.core.entry_specs import CHECKS
from calviz.core.errors import CalvizError, InputError, OptionError, Reading
from calviz.core.predictions import ConfidencePredictions, Predictions
from calviz.core.row_columns import one_row_each
from calviz.data import Loaded, ReadingOptions, first_rows, read
from calviz.data.column_names import blocks_named_by, without_common_words
from calviz.data.first_rows import ROWS, FirstRows
from calviz.data.loaded import ReadingForMap
from calviz.data.roles import ROLES
from calviz.sample.sample import Sample
from tests.inputs.command_line import run, run_successfully
from tests.inputs.headers import fault

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


YES_NO = {
    "Y/N": np.where(Y, "Y", "N"),
    "yes/no": np.where(Y, "yes", "no"),
    "ja/nein": np.where(Y, "ja", "nein"),
    "true/false": Y.astype(bool),
    "0/1": Y,
}
#: Four times as many rows without an event stand for each that was kept.
KEPT = np.where(Y, 1, 4)
TWO_MODELS = {"model_a": P, "model_b": np.clip(P + 0.02, 0, 1)}


@pytest.mark.parametrize("spelled", YES_NO)
@pytest.mark.parametrize("name", ["sampling_weight", "weight", "wt", "Gewicht", "Case weight"])
@pytest.mark.parametrize("last", [False, True], ids=["before the label", "after the label"])
def test_weights_are_no_label_and_are_asked_about_after_the_models(name, spelled, last):
    columns = {name: KEPT, "is_fraud": YES_NO[spelled]}
    question = asked(dict([*columns.items()][:: -1 if last else 1]) | TWO_MODELS)
    assert all("weight_column" not in way.options for way in question.readings)
    for answer in question.readings:
        with pytest.raises(InputError, match="how much each row counts") as caught:
            loaded(columns | TWO_MODELS, **answer.options)
        for way in caught.value.readings:
            data = loaded(columns | TWO_MODELS, **answer.options, **way.options).first
            np.testing.assert_array_equal(data.labels, Y)
            if way.options["weight_column"]:
                np.testing.assert_array_equal(data.weights, KEPT)
            else:
                assert data.weights is None


def test_a_file_whose_only_whole_numbers_are_weights_has_no_label():
    with pytest.raises(InputError) as caught:
        loaded({"sampling_weight": KEPT} | TWO_MODELS)
    assert not caught.value.readings


def test_whether_weights_count_stays_a_question_where_the_user_corrects_the_label():
    columns = {"sampling_weight": KEPT, "seen": np.where(Y, "u", "v"), "site": np.arange(N) % 3}
    content = pd.DataFrame(columns | TWO_MODELS).to_csv(index=False).encode()
    rows = first_rows(content)
    assert rows.roles["sampling_weight"] == "weight"
    assert "sampling_weight" in rows.asked
    options = rows.with_role("seen", "label")
    assert (options.label, options.weight_column) == ("seen", None)
    with pytest.raises(InputError, match="how much each row counts"):
        read(content, options=replace(options, class_names=("v", "u")))
    assert rows.with_role("sampling_weight", "weight").weight_column == "sampling_weight"


@pytest.mark.parametrize("spelled", ["Y/N", "yes/no", "ja/nein"])
@pytest.mark.parametrize("number", ["n_items", "response_code"])
def test_words_for_whether_it_happened_come_before_a_count_as_label(number, spelled):
    columns = {number: np.arange(N) % 2 + 1, "is_late": YES_NO[spelled], "score": P}
    first, second, _ = asked(columns).readings
    assert (first.options, second.options["label"]) == ({"label": "is_late"}, number)
    columns["is_fraud"] = columns.pop("is_late")
    np.testing.assert_array_equal(loaded(columns).first.labels, Y)


def test_a_column_w_of_0_and_1_may_be_a_win_and_a_body_weight_is_no_weight_of_rows():
    np.testing.assert_array_equal(loaded({"w": Y, "score": P}).first.labels, Y)
    columns = {"low_birth_weight": Y, "score": P}
    np.testing.assert_array_equal(loaded(columns).first.labels, Y)


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


def _answered(columns: Mapping[str, Any], options: ReadingOptions | None = None) -> list[Loaded]:
    """What a file is read as, for each way to answer all that it asks."""
    options = options or ReadingOptions()
    content = pd.DataFrame(columns).to_csv(index=False, sep=";").encode()
    try:
        return [read(content, name="x.csv", options=options)]
    except InputError as error:
        return [one for way in error.ways for one in _answered(columns, options.answered(way))]


def _with_rare(words: Sequence[str], y: np.ndarray, rare: Mapping[str, int]) -> np.ndarray:
    """Two words, with others in the last rows."""
    said, end = np.array(words, dtype=object)[y], len(y)
    for word, rows in rare.items():
        said[end - rows : end], end = word, end - rows
    return said


@pytest.mark.parametrize(
    ("words", "rare", "readings"),
    [
        (("BEZAHLT", "AUSFALL"), {"offen": 3}, 2),
        (("BEZAHLT", "AUSFALL"), {"offen": 3, "storniert": 2}, 2),
        (("BEZAHLT", "AUSFALL"), {"bezahlt": 40, "offen": 3}, 2),  # which is one class with its usual spelling
        (("nein", "ja"), {"offen": 3}, 1),
        (("0", "1"), {"offen": 3}, 1),
        (("0", "1"), {"9": 3}, 1),
    ],
)  # fmt: skip
def test_rare_labels_beside_the_two_of_a_score_are_left_out_only_as_answer(
    words: tuple[str, str], rare: dict[str, int], readings: int
) -> None:
    p, y = event()
    said = _with_rare(words, y, rare)
    error = asked({"label": said, "score": p})
    assert "a score tells two classes apart, but 'label' has" in error.what
    assert len(error.readings) == readings
    assert all(way.label.count("leave out the rows with '") == 1 for way in error.readings)
    assert "'offen' (3 rows)" in error.readings[0].label or "'9' (3 rows)" in str(error.readings)
    assert error.row is not None
    assert said[error.row - 1] in rare
    keys = np.array([word.casefold() for word in said])
    kept = np.isin(keys, [word.casefold() for word in words])
    for found in _answered({"label": said, "score": p}):
        happened = found.first.class_names[1]
        np.testing.assert_array_equal(found.first.probs[:, 1], p[kept])
        np.testing.assert_array_equal(found.first.labels, keys[kept] == happened.casefold())
        assert any(f"{(~kept).sum()} of 300 rows" in text for text in found.repairs_made)
        assert any("labels that are none of the classes" in n.message for n in found.notices)


def test_where_the_event_is_as_rare_as_another_label_each_may_be_left_out() -> None:
    p, _ = event()
    said = np.array(["BEZAHLT"] * 280 + ["offen"] * 12 + ["AUSFALL"] * 8)
    error = asked({"label": said, "score": p})
    assert [way.options["class_names"] for way in error.readings] == [
        ("BEZAHLT", "offen"), ("offen", "BEZAHLT"), ("AUSFALL", "BEZAHLT"), ("BEZAHLT", "AUSFALL"),
    ]  # fmt: skip
    # Three frequent ones are no two classes and a few mistakes: one of them may be the event.
    error = asked({"label": np.array(["a", "b", "c"])[np.arange(300) % 3], "score": p})
    assert {way.options["repair"] for way in error.readings} == {("others-no",)}
    # More are too many to ask about.
    with pytest.raises(InputError, match=r"give the class names .*, the event last") as caught:
        loaded({"label": np.array([*"abcdefg"])[np.arange(300) % 7], "score": p})
    assert not caught.value.readings


def test_asking_for_missing_values_alone_leaves_out_no_label() -> None:
    p, y = event()
    with pytest.raises(InputError, match="a score tells two classes apart"):
        loaded({"label": _with_rare(("no", "yes"), y, {"offen": 3}), "score": p}, repair=("drop-missing",))  # fmt: skip


@pytest.mark.parametrize("words", [("BEZAHLT", "AUSFALL"), ("paid", "default")])
@pytest.mark.parametrize("names", [("p_{1}",), ("p_{1}", "p_{0}"), ("p_{0}", "p_{1}")])
def test_a_label_without_a_score_is_left_out_with_every_class_in_its_place(
    words: tuple[str, str], names: tuple[str, ...]
) -> None:
    p, y = event()
    scores = {n.format(*words): p if "1" in n else (1 - p).round(4) for n in names}
    columns = {"label": _with_rare(words, y, {"offen": 3}), **scores}
    (way,) = asked(columns).readings
    assert way.label == "leave out the rows with 'offen' (3 rows)"
    (found,) = _answered(columns)
    of_event = found.first.class_names.index(words[1])
    np.testing.assert_allclose(found.first.probs[:, of_event], p[:-3], atol=1e-12)
    np.testing.assert_array_equal(found.first.labels == of_event, y[:-3] == 1)


def test_rows_without_a_score_are_asked_about_beside_a_label_that_is_none() -> None:
    p, y = event()
    score = p.copy()
    score[[4, 7, 9, N - 1]] = np.nan  # the last one in a row that is left out anyway
    said = _with_rare(("no", "yes"), y, {"offen": 3})
    for columns in (
        {"label": said, "p": score},
        {"label": said, "p_no": 1 - score, "p_yes": score},
    ):
        error = asked(columns)
        (further,) = error.further
        assert further.what.startswith("3 of 297 rows have ")
        for way in error.readings:
            with pytest.raises(InputError, match=r"rows have (no score|missing values): row 5"):
                loaded(columns, **way.options)
        (found,) = _answered(columns)
        assert [text.split(" were")[0] for text in found.repairs_made] == [
            "drop-labels: 3 of 300 rows with labels that are none of the classes",
            "drop-missing: 3 of 300 rows with missing values",
        ]
        assert found.first.n == N - 6
        assert [data.n for data in found.waiting.values()] == [2]
    # Of chosen classes, as in links made before, both are left out by one repair, and counted apart.
    both = loaded({"label": said, "p": score}, class_names=("no", "yes"), repair=("drop-missing",))
    assert len(both.repairs_made) == 2
    # A label that is empty is none that was answered for.
    said[0] = None
    with pytest.raises(InputError, match="1 of 300 rows have no label"):
        loaded({"label": said, "p": p}, class_names=("no", "yes"), repair=("drop-labels",))


@pytest.mark.parametrize("rare", [{"spam": 2}, {"spam": 2, "ham": 60}])
def test_labels_without_a_column_among_several_classes_are_counted_and_may_be_left_out(
    rare: dict[str, int],
) -> None:
    p = np.random.default_rng(1).dirichlet((1, 1, 1), 200).round(6)
    left = sum(rare.values())
    said = np.array([*"abc"], dtype=object)[p.argmax(axis=1)]
    said[-left:] = [word for word, rows in rare.items() for _ in range(rows)]
    said[0], p[1] = None, (0.9, 0.9, -0.8)
    columns = {"label": said} | {f"p_{c}": p[:, j] for j, c in enumerate("abc")}
    error = asked(columns)
    found = [f"'{word}' ({rows} rows)" for word, rows in rare.items()]
    shown = ", ".join(sorted(found, key=lambda text: "ham" not in text))
    assert f"{shown} in 'label' {'is' if len(rare) == 1 else 'are'} none of the classes " in str(
        error
    )
    (way,) = error.readings
    few = left < 20  # and else it is not chosen beforehand
    assert way.label == f"leave out the rows with {shown}" + ", 31% of all" * (not few)
    assert way.proposed == few
    # The other repairs are asked for together with it.
    assert [[a.options for a in one.answers] for one in error.further] == [
        [{"repair": ("drop-missing",)}],
        [{"repair": ("drop-outside",)}],
    ]
    read_with = loaded(columns, repair=("drop-labels", "drop-missing", "drop-outside"))
    assert f"drop-labels: {left} of 200 rows with labels that are none of the classes were left out" in read_with.repairs_made[0]  # fmt: skip
    np.testing.assert_allclose(read_with.first.probs, p[2:-left], atol=1e-6)


@pytest.mark.parametrize("names", ["{m}_p_{c}", "{m}:{c}", "p_{c}_{m}", "{c}.{m}"])
@pytest.mark.parametrize("words", [("BEZAHLT", "AUSFALL"), ("no", "yes")])
@pytest.mark.parametrize("turned", [1, -1])
def test_of_models_with_a_column_for_each_class_a_label_that_is_none_is_left_out(
    names: str, words: tuple[str, str], turned: int
) -> None:
    p, y = event()
    scores = {"m1": np.stack([1 - p, p]), "m2": np.stack([1 - p * 0.9, p * 0.9])}
    columns: dict[str, Any] = {"label": _with_rare(words, y, {"offen": 3})}
    for model, block in scores.items():
        columns |= {names.format(m=model, c=words[j]): block[j].round(6) for j in (0, 1)[::turned]}
    (way,) = asked(columns).readings
    assert way.label == "leave out the rows with 'offen' (3 rows)"
    (found,) = _answered(columns)
    assert len(found.models) == 2
    for data, block in zip(found.models.values(), scores.values(), strict=True):
        place = data.class_names.index(words[1])
        np.testing.assert_allclose(data.probs[:, place], block[1, :-3], atol=1e-6)
        np.testing.assert_array_equal(data.labels == place, y[:-3] == 1)


@pytest.mark.parametrize("rows", [15, 60, N])
@pytest.mark.parametrize("label", ["label", "Zahlungsstatus"])
@pytest.mark.parametrize("rare", [{}, {"offen": 1}])
@pytest.mark.parametrize("follows", [True, False])
def test_two_scores_that_do_not_sum_to_1_beside_two_words_are_models(
    rows: int, label: str, rare: dict[str, int], follows: bool
) -> None:
    p, y = (each[:rows] for each in event())
    y = y if follows else y[np.random.default_rng(1).permutation(rows)]
    other = (p**1.5).round(4)
    said = _with_rare(("BEZAHLT", "AUSFALL"), y, rare)
    columns = {"region": [*"ABC"] * (rows // 3), label: said, "p_alt": p, "p_neu": other}
    read_as = _answered(columns)
    assert len(read_as) == 6
    both = [found for found in read_as if len(found.models) == 2]
    assert {found.first.class_names[1] for found in both} == {"BEZAHLT", "AUSFALL"}
    for found in read_as:
        for name, data in found.models.items():
            column = f"p_{name}" if len(found.models) > 1 else found.recognition.scores[0]
            kept = said != "offen"
            np.testing.assert_array_equal(data.probs[:, 1], columns[column][kept])
            np.testing.assert_array_equal(data.labels == 1, said[kept] == data.class_names[1])
    # The rows beside the question show what the first answers make of it.
    content = pd.DataFrame(columns).to_csv(index=False, sep=";").encode()
    roles = first_rows(content).roles
    assert (roles[label], roles["p_alt"], roles["p_neu"]) == ("label", "model", "model")


def test_a_column_in_percent_beside_a_score_may_be_a_model_where_the_event_is_asked() -> None:
    p, y = event()
    percent = [f"{100 * value:.2f} %" for value in p**1.5]
    columns = {"Ergebnis": np.array(["gut", "schlecht"])[y], "Score NEU v2.1": p, "Bestand [%]": percent}  # fmt: skip
    assert "are they models?" in asked(columns).what
    both = next(one for one in _answered(columns) if len(one.models) == 2)
    assert [*both.models] == ["Score NEU v2.1", "Bestand [%]"]
    np.testing.assert_allclose(both.models["Bestand [%]"].probs[:, 1], p**1.5, atol=6e-5)
    # Where the event is known, nothing is asked.
    assert len(loaded(columns | {"Ergebnis": y}).models) == 1


@pytest.mark.parametrize("form", ["moderation_v3.{}", "P({}) new", "v3:{}"])
def test_two_models_stay_two_where_few_rows_have_a_label_that_is_no_class(form: str) -> None:
    rng, classes = np.random.default_rng(5), ["ok", "spam", "hate", "adult"]
    p = rng.dirichlet([2, 1, 1, 1], 600)
    label = np.array(classes)[(p.cumsum(axis=1) < rng.random((600, 1))).sum(axis=1).clip(0, 3)]
    label = label.astype(object)
    label[::97] = "escalated"
    columns = {form.format(k): p[:, i].round(3) for i, k in enumerate(classes)}
    other = form.replace("v3", "v2").replace("new", "old")
    flat = (p**0.7 / (p**0.7).sum(axis=1, keepdims=True)).round(3)
    columns |= {other.format(k): flat[:, i] for i, k in enumerate(classes)}
    (found,) = _answered(columns | {"label": label})
    assert len(found.models) == 2
    for data, block in zip(found.models.values(), (p, flat), strict=True):
        order = [data.class_names.index(k) for k in classes]
        np.testing.assert_allclose(data.probs[:, order], block[label != "escalated"], atol=2e-3)


@pytest.mark.parametrize("labelled", [True, False])
def test_a_type_that_scores_are_surer_of_is_no_label_at_first(labelled: bool) -> None:
    rng = np.random.default_rng(3)
    logits = rng.normal(0, 1.3, (600, 4)) + np.array([1.0, -0.2, -0.4, -0.1])
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    kind = (p.cumsum(axis=1) < rng.random((600, 1))).sum(axis=1)
    if not labelled:
        # Logits of one type are doubled, so that each type is followed by some score.
        kind = rng.integers(0, 4, 600)
        p = np.exp(logits * (1 + (kind == 0))[:, None])
        p /= p.sum(axis=1, keepdims=True)
    columns = {"Turbine": np.array(["V112", "E-82", "N117", "SWT"])[kind]}
    columns |= {f"P[{k}]": p[:, i] for i, k in enumerate(("ok", "gear", "sensor", "oil"))}
    first, second = (way.label for way in asked(columns).readings)
    other = "there are no labels yet"
    is_class = "'Turbine' is the true class"
    assert (first, second) == ((is_class, other) if labelled else (other, is_class))


def test_labels_are_told_as_the_file_spells_them() -> None:
    """ "label 'is_fraud' (n or y)" stood above a file of N and Y."""
    found = loaded({"is_fraud": np.array(["N", "Y"])[Y], "p": P})
    assert found.recognition.label_form == "N or Y"
    assert "label 'is_fraud' (N or Y)" in found.recognition.sentence()


def test_logits_that_all_lie_between_0_and_1_are_asked_about() -> None:
    """Often a model of that name: its probability was read as a logit, without a word."""
    columns = {"fraud": Y, "logit": P}
    assert [r.options["kind"] for r in asked(columns).readings] == ["probabilities", "logits"]
    assert "are they models?" in asked(columns | {"forest": P**1.2}).what
    outside = columns | {"logit": 8 * P - 4}
    for found in (loaded(columns, kind="logits"), loaded(outside)):
        assert all(data.logits is not None for data in found.models.values())


def test_a_column_headed_in_percent_is_offered_as_percentages() -> None:
    p, y = event()
    for head in ("PD [%]", "score_pct", "PD in Prozent", "riskPercentage"):
        columns = {head: (100 * p).round(2), "label": y, "amount": 1000 * p}
        assert f"'{head}' lies in 0 to 100, as percentages do" in asked(columns).what
        (found,) = _answered(columns)
        np.testing.assert_allclose(found.first.probs[:, 1], p, atol=1e-12)


def test_forecasts_in_percent_are_proposed_as_models_and_no_amount_is_a_score() -> None:
    """Found by a stranger: the rain in millimetres was proposed as the score, and the forecasts of rain as groups."""
    p, y = event()
    rain = np.where(y, 0.2 + 35 * p, 0.1 * p).round(1)
    humid = np.random.default_rng(5).integers(20, 100, len(y))
    columns = {"lead (h)": 24 + 24 * (humid % 3), "PoP A (%)": (20 * p).round() * 5}
    columns |= {"PoP B (%)": (10 * p).round() * 10.0, "Humidity (%)": humid}
    columns |= {"RR [mm]": rain, "Rain>=0.2mm": y}
    question = asked(columns)
    assert [r.label for r in question.readings][:2] == ["2 models, in percent", "only 'PoP A (%)', in percent"]  # fmt: skip
    both, *_ = _answered(columns)
    assert both.recognition.models == ("PoP A", "PoP B")
    np.testing.assert_allclose(both.first.probs[:, 1], (20 * p).round() / 20)
    text = pd.DataFrame(columns).to_csv(index=False).encode()
    roles = first_rows(text).roles
    assert [roles[name] for name in columns][1:3] == ["model", "model"]
    assert "score" not in roles.values()
    # Without a forecast, nothing is proposed for amounts.
    less = pd.DataFrame({k: columns[k] for k in ("RR [mm]", "Rain>=0.2mm")} | {"EUR": 900 * p})
    assert "score" not in first_rows(less.to_csv(index=False).encode()).roles.values()


def test_a_score_of_0_to_100_beside_a_flag_is_proposed_as_percentages_of_its_event() -> None:
    """Found by a stranger: the revenue was proposed as the score, and the flag as a group."""
    p, y = event()
    columns = {
        "treatment_group": np.where(p * 7 % 1 < 0.3, "control", "treatment"),
        "Propensity Score": (100 * p).round(1),
        "monthly_revenue": (120 * (p * 37 % 1) + 0.13).round(2),
        "Churn Flag": np.array(["N", "Y"])[y],
    }
    question = asked(columns)
    assert question.what == "'Propensity Score' lies in 0 to 100, as percentages do; say what it is"
    shown = first_rows(pd.DataFrame(columns).to_csv(index=False, sep="\t").encode("utf-16"))
    assert [*shown.roles.values()] == ["group", "score", "group", "label"]


def test_a_proposed_score_is_no_model_beside_a_chosen_one() -> None:
    """Found by a stranger: a column that nobody chose was compared as a third model."""
    p, y = event()
    table = pd.DataFrame({"a": 80 * (p * 37 % 1), "b": 9 * (p * 53 % 1) + 0.5, "label": y, "PoP": (100 * p).astype(int)})  # fmt: skip
    shown = first_rows(table.to_csv(index=False).encode())
    assert [*shown.roles.values()] == ["score", "score", "label", "group"]
    asks = replace(shown, asked=frozenset(("a", "b")))  # as the app does
    options = asks.with_role("PoP", "model")
    assert (options.models, options.scores) == (("PoP",), None)
    # What was chosen before stays.
    assert replace(asks, asked=frozenset("b")).with_role("PoP", "model").models == ("a", "PoP")


def test_an_outcome_in_the_place_of_the_score_is_told() -> None:
    """Found by a stranger: the rain that fell, divided by 100, was judged as the forecast of rain."""
    p, y = event()
    rain = np.where(y, 0.01 + 0.4 * p, 0)

    def said(score: np.ndarray) -> bool:
        notices = loaded({"label": y, "rr": score}, scores=("rr",)).notices
        return any("known only afterwards" in notice.message for notice in notices)

    assert said(rain)
    # Neither a perfect model, nor one that is far off but does not tell each label, nor one that is upside down.
    assert not any(map(said, (np.where(y, 0.99, 0.01 * p), p * 0.4, 0.5 - rain)))


@pytest.mark.parametrize("beside", [{}, {"prediction": True}, {"scores": 2}, {"scores": 3}])
@pytest.mark.parametrize("head", ["Score [%]", "P(default) %", "prob_pct", "Percent"])
def test_a_score_headed_in_percent_of_0_to_1_may_be_percentages_or_fractions(
    head: str, beside: dict[str, Any]
) -> None:
    p, y = event()
    columns: dict[str, Any] = {head: p, "label": y}
    options: dict[str, Any] = {}
    if "prediction" in beside:
        columns = {"confidence [%]": p, "correct": y}
    elif beside:
        columns |= {"other": 1 - p / 2} | ({"p_new [%]": p**2} if beside["scores"] == 3 else {})
        options = {"models": tuple(c for c in columns if c != "label")}
    with pytest.raises(InputError, match=r"' is headed in percent, but lies in 0 to 1") as caught:
        loaded(columns, **options)
    percent, fractions = (
        loaded(columns, **{**options, **way.options}) for way in caught.value.readings
    )
    assert any("divided by 100" in text for text in percent.repairs_made)
    assert len(fractions.models) == max(1, beside.get("scores", 1))
    assert len(percent.models) == max(1, beside.get("scores", 2) - 1)
    for found, by in ((percent, 100), (fractions, 1)):
        data = found.first
        scores = data.confidence if data.kind == "confidence" else data.probs[:, 1]
        np.testing.assert_allclose(scores, p / by, atol=1e-12)
    # A block that sums to 1 is none of percentages, and cells with a sign say it themselves.
    assert loaded({"yes [%]": p, "no [%]": 1 - p, "label": np.array(["no", "yes"])[y]})
    assert loaded({head: [f"{value:.4f} %" for value in p], "label": y})


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


def test_two_models_of_a_rare_event_are_asked_about_though_few_rows_show_it() -> None:
    rng = np.random.default_rng(0)
    rare = np.clip(0.02 * np.exp(rng.normal(0, 0.2, N)), 0, 1)
    event = np.where(np.arange(N) % 60 == 7, "ja", "nein")
    columns = {"Produkt": rng.choice(list("abc"), N), "pd_alt": rare, "pd_neu": rare[::-1]}
    error = asked(columns | {"Ausfall": event})
    assert (
        "each of 'pd_alt', 'pd_neu' may be the probability of the event in 'Ausfall'" in error.what
    )
    both, first, _ = (loaded(columns | {"Ausfall": event}, **r.options) for r in error.readings)
    assert list(both.models) == ["alt", "neu"]
    np.testing.assert_array_equal(first.first.labels, event == "ja")
    # Which of two columns the label is, is not guessed.
    with pytest.raises(InputError, match="no probability columns"):
        loaded(columns | {"Ausfall": event, "Mahnung": event[::-1]})


def test_few_rows_of_two_models_that_name_the_event_raise_one_question() -> None:
    found = np.where(np.arange(150) % 15 == 7, "finding", "no_finding")
    scores = np.random.default_rng(0).uniform(0, 0.2, (2, 150))  # which the labels do not follow
    columns = {"read": found, "P(finding)_v3.1": scores[0], "P(finding)_v3.2": scores[1]}
    error = asked(columns | {"age": np.arange(150)})
    both = loaded(columns, **error.readings[0].options)
    assert list(both.models) == ["v3.1", "v3.2"]
    np.testing.assert_array_equal(both.first.labels, found == "finding")


@pytest.mark.parametrize("whole", [False, True])
def test_two_models_in_percent_without_a_sign_take_one_answer(whole: bool) -> None:
    other = np.round(100 * np.clip(P + 0.02 * np.cos(np.arange(N)), 0, 1), 0 if whole else 2)
    columns = {"left": np.where(Y, "Y", "N"), "risk_a": np.round(100 * P, 2), "risk_b": other}
    both, *single = asked(columns).readings
    assert both.label == "2 models, in percent"
    models = loaded(columns, **both.options).models
    for name, column in (("a", "risk_a"), ("b", "risk_b")):
        np.testing.assert_allclose(models[name].probs[:, 1], columns[column] / 100)
        np.testing.assert_array_equal(models[name].labels, Y)
    assert all("in percent" in one.label for one in single)


def test_models_of_which_one_lies_in_0_to_1_are_not_called_percent() -> None:
    columns = {"label": np.where(Y, "Y", "N"), "risk_a": P, "risk_b": np.round(100 * P[::-1], 2)}
    with suppress(InputError):
        assert not loaded(columns).repairs_made


def test_few_rows_of_a_third_label_may_be_kept_and_are_kept_by_the_first_answer() -> None:
    end = np.array(["home"] * 125 + ["ward"] * 20 + ["gone"] * 4)
    columns = {"end": end, "score": np.linspace(0.01, 0.9, 149)}
    with pytest.raises(InputError) as caught:
        loaded(columns, label="end")
    first, *others = caught.value.readings
    assert first.label == "the probability of any but 'home'"
    read = loaded(columns, label="end", **first.options)
    assert (read.first.n, read.first.class_names) == (149, ("home", "not home"))
    np.testing.assert_array_equal(read.first.labels, end != "home")
    assert all("leave out the rows with 'gone' (4 rows)" in one.label for one in others)
    for few in (["gnoe"], ["open"] * 4):  # a slip of the pen, and no outcome
        columns = {"end": [*end[:145], *few], "score": np.linspace(0.01, 0.9, 145 + len(few))}
        with pytest.raises(InputError) as caught:
            loaded(columns, label="end")
        assert all("leave out the rows" in one.label for one in caught.value.readings)
    # No label is frequent enough to be none.
    end = ["a"] * 14 + ["b"] * 13 + ["c"] * 3
    with pytest.raises(InputError):
        loaded({"end": end, "score": np.linspace(0.01, 0.9, 30)}, label="end")


def test_one_of_several_labels_may_be_the_event_of_one_score() -> None:
    status = np.where(Y == 1, "left", np.where(np.arange(N) % 3 == 0, "graduated", "enrolled"))
    status = np.where(np.arange(N) == 7, "", status)
    columns = {"status": status.tolist(), "score": P}
    with pytest.raises(InputError) as caught:
        loaded(columns, label="status", repair=("drop-missing",))
    found = {r.options["class_names"][1]: r.options for r in caught.value.readings}
    assert {*found} == {"left", "graduated", "enrolled", "not left"}
    # The commonest may be none, and all others the event.
    turned = loaded(
        columns, **found["not left"] | {"label": "status", "repair": ("others-no", "drop-missing")}
    )
    assert turned.first.class_names == ("left", "not left")
    np.testing.assert_array_equal(turned.first.labels, 1 - np.delete(Y, 7))
    assert any("all labels in 'status' but 'left' are the event" in t for t in turned.repairs_made)
    with pytest.raises(InputError, match="no row has the label 'gone' or 'not gone'"):
        loaded(
            columns,
            label="status",
            class_names=("not gone", "gone"),
            repair=("others-no", "drop-missing"),
        )
    chosen = found["left"] | {"label": "status", "repair": ("others-no", "drop-missing")}
    read = loaded(columns, **chosen)
    data = read.first
    assert isinstance(data, Predictions)
    assert data.class_names == ("not left", "left")
    np.testing.assert_array_equal(data.labels, np.delete(Y, 7))
    assert any("all labels in 'status' but 'left' are no event" in t for t in read.repairs_made)


@pytest.mark.parametrize("rarest", ["died", "hospice"])
def test_labels_that_are_no_mistakes_may_be_the_event_before_rows_are_left_out(rarest: str) -> None:
    n = np.arange(1_000)
    outcome = np.where(n < 850, "discharged", np.where(n < 940, "ICU", rarest))
    with pytest.raises(InputError) as caught:
        loaded({"outcome": outcome, "score": np.random.default_rng(3).uniform(0, 1, 1_000)})
    ways = [(way.options["class_names"], way.options["repair"]) for way in caught.value.readings]
    # The name of one may say that it is the event; that may still be any but the commonest.
    may_be = [rarest] if rarest == "died" else ["discharged", "ICU", rarest]
    each = [((f"not {name}", name), ("others-no",)) for name in may_be]
    assert sorted(ways[: len(each)]) == sorted(each)
    assert ways[len(each)] == (("discharged", "not discharged"), ("others-no",))
    assert {repair for _, repair in ways[len(each) + 1 :]} <= {("drop-labels",)}


def test_a_stray_value_does_not_make_percentages_of_a_model_beside_one_in_percent() -> None:
    rng = np.random.default_rng(1)
    share, y = rng.uniform(0, 0.9, 2_000), rng.random(2_000) < 0.4
    whole = np.round(100 * rng.uniform(0, 0.9, 2_000))
    stray = np.where(np.arange(2_000) == 99, 4.0, share)
    columns = {"label": y.astype(int), "risk_a": stray, "risk_b": whole}
    models: dict[str, Any] = {"models": ("risk_a", "risk_b"), "repair": ("percent", "drop-outside")}
    with pytest.raises(InputError) as caught:
        loaded(columns, models=models["models"], repair=("percent",))
    assert caught.value.row == 100
    assert ", 4], outside [0, 1]: 1 of 2,000" in caught.value.what
    assert [repair.key for repair in caught.value.repairs] == ["drop-outside"]
    read = loaded(columns, **models)
    assert any(
        "percent: the scores of 'risk_b' were divided by 100" in t for t in read.repairs_made
    )
    first, second = (read.models[name].probs[:, 1] for name in ("a", "b"))
    np.testing.assert_array_equal(first, np.delete(share, 99))
    np.testing.assert_allclose(second, np.delete(whole, 99) / 100)


def test_a_score_with_a_stray_value_is_the_score_beside_one_in_percent() -> None:
    rng = np.random.default_rng(2)
    share = rng.uniform(0, 0.9, 2_000)
    y = (rng.random(2_000) < share).astype(int)
    whole = np.round(100 * np.clip(share + rng.normal(0, 0.1, 2_000), 0, 1))
    stray = np.where(np.arange(2_000) == 99, 4.0, share)
    columns = {"flag": y, "risk a": stray, "score b (%)": whole}
    with pytest.raises(InputError) as caught:
        loaded(columns, label="flag")
    assert caught.value.row == 100
    assert [repair.key for repair in caught.value.repairs] == ["drop-outside"]
    read = loaded(columns, label="flag", repair=("drop-outside",))
    np.testing.assert_array_equal(read.first.probs[:, 1], np.delete(share, 99))
    # The other is offered as a model.
    (way,) = (way for way in read.ways if "models" in way.options)
    assert way.options["models"] == ("risk a", "score b (%)")
    assert "percent" in way.options["repair"]
    assert "score b (%)" not in read.first.groups


@pytest.mark.parametrize("names", [("not left", "left"), ("stayed", "not stayed")])
def test_another_model_is_offered_where_one_of_several_labels_is_the_event(names) -> None:
    rng = np.random.default_rng(4)
    score = rng.uniform(0, 1, 900)
    left = rng.random(900) < score
    stays = ["moved", "stayed"] if names[1] == "left" else ["stayed", "stayed"]
    leaves = ["left", "left"] if names[1] == "left" else ["left", "moved"]
    said = np.where(left, rng.choice(leaves, 900), rng.choice(stays, 900))
    other = np.clip(score + rng.normal(0, 0.1, 900), 0.001, 0.999)
    columns = {"status": said, "risk a": score, "score b (%)": np.round(100 * other, 1)}
    read = loaded(columns, label="status", class_names=names, repair=("others-no",))
    (way,) = (way for way in read.ways if "models" in way.options)
    assert way.options["models"] == ("risk a", "score b (%)")


def test_of_one_row_the_column_that_is_called_a_label_is_the_first_answer() -> None:
    columns = {"day": ["03.07.2023"], "site": ["A"], "unit": ["ED"], "age band [y]": ["60-79"]}
    error = asked(columns | {"risk": [0.3], "outcome (final)": ["gone"]})
    assert error.readings[0].options["label"] == "outcome (final)"


@pytest.mark.parametrize(
    ("words", "first"), [(("N", "Y"), "left (y/n)"), (("nein", "ja"), "left (y/n)"), (("f", "m"), "")]
)  # fmt: skip
def test_a_yes_or_no_is_the_first_answer_but_no_sex(words: tuple[str, str], first: str) -> None:
    columns = {"site": [*"abcd"] * (N // 4), "score": P, "left (y/n)": np.array(words)[Y]}
    assert asked(columns).readings[0].options["label"] == first


@pytest.mark.parametrize("others_first", [False, True])
@pytest.mark.parametrize("numbers", [False, True])
@pytest.mark.parametrize("unit", [" %", "", " (pct)", " percent"])
def test_models_have_clean_names_with_and_without_labels(others_first, numbers, unit) -> None:
    rng = np.random.default_rng(0)
    names = [*"012"] if numbers else ["ok", "gear", "sensor fault"]
    scale, digits = (100, 2) if unit else (1, 4)
    one, two = (scale * rng.dirichlet([1, 1, 1], 300) for _ in range(2))
    first = {f"P[{n}]{unit}": np.round(one[:, j], digits) for j, n in enumerate(names)}
    new = {f"New model: P[{n}]{unit}": np.round(two[:, j], digits) for j, n in enumerate(names)}
    columns = new | first if others_first else first | new
    labels = np.array([rng.choice(3, p=row / row.sum()) for row in one + two])
    repair = ("percent",) * bool(unit)
    of_label = loaded(columns | {"result": np.array(names)[labels]}, repair=repair)
    of_map = ReadingForMap(repair=repair)
    read_for_map = read(
        pd.DataFrame(columns).to_csv(index=False).encode(), name="x.csv", options=of_map
    )
    for each in (of_label, read_for_map):
        assert [*each.models] == ["New model", "model"][:: 1 if others_first else -1]
        for model, p in (("model", one), ("New model", two)):
            np.testing.assert_allclose(each.models[model].probs, p / scale, atol=2e-3)
            assert each.models[model].class_names == tuple(names)
    np.testing.assert_array_equal(of_label.first.labels, labels)


def test_columns_of_which_only_some_are_of_a_model_make_no_second_one() -> None:
    p = np.random.default_rng(0).dirichlet([1, 1, 1], 200)
    scores = {f"share: {name}": p[:, j] for j, name in enumerate("abc")}
    counts = {name: np.arange(200) % (7 + j) for j, name in enumerate("abc")}
    for beside in (counts, {"a": p[:, 0]}):
        table = pd.DataFrame({**beside, **scores})
        each = read(table.to_csv(index=False).encode(), name="x.csv", options=ReadingForMap())
        assert len(each.models) == 1
        np.testing.assert_allclose(each.first.probs, p)


def test_labels_of_0_and_1_beside_a_named_model_are_no_model() -> None:
    p = np.random.default_rng(0).dirichlet([1, 1, 1], 200)
    truth = p.argmax(axis=1)
    truth[::3] = 0
    ones = {name: (truth == j).astype(int) for j, name in enumerate("abc")}
    each = loaded({**ones, **{f"mlp: {name}": p[:, j] for j, name in enumerate("abc")}})
    assert len(each.models) == 1
    np.testing.assert_allclose(each.first.probs, p)
    np.testing.assert_array_equal(each.first.labels, truth)


def test_first_rows_say_of_which_model_each_score_is() -> None:
    p, text = np.round(100 * np.random.default_rng(0).dirichlet([1, 1], 40), 2), {}
    for model in ("", "New model: "):
        text |= {f"{model}P[{name}] %": p[:, j] for j, name in enumerate(("ok", "off"))}
    table = pd.DataFrame(text | {"result": np.where(p[:, 1] > 40, "off", "ok")})
    shown = first_rows(table.to_csv(index=False).encode())
    assert {*shown.models.values()} == {"model", "New model"}
    assert shown.models["New model: P[ok] %"] == "New model"
    assert not first_rows(b"label,p_a,p_b\na,0.7,0.3\nb,0.2,0.8\n").models


def test_rows_without_a_score_of_any_model_are_counted_once() -> None:
    one, two = P.copy(), P.copy()
    one[[3, 5]], two[[5, 7, 9]] = np.nan, np.nan
    columns = {"label": Y, "pd_alt": one, "pd_neu": two}
    models: dict[str, Any] = {"models": ("pd_alt", "pd_neu")}
    with pytest.raises(
        InputError, match=r"4 of 300 rows have .* \('pd_alt' 2, 'pd_neu' 3\): row 4"
    ):
        loaded(columns, **models)
    assert loaded(columns, **models, repair=("drop-missing",)).first.n == N - 4
    with pytest.raises(InputError, match=r"3 of 300 rows have [a-z ]+: row 6"):
        loaded(columns | {"pd_alt": P}, **models)


def test_a_file_without_outcomes_is_told_what_can_be_done_with_it() -> None:
    columns = {"pd_alt": P / 10, "pd_neu": P / 20, "Ausfall": [""] * N, "amount": 99 * P}
    for options in ({}, {"scores": ("pd_alt",), "label": "Ausfall"}):
        with pytest.raises(
            InputError, match=r"column 'Ausfall' holds no outcomes: .*calviz apply FILE --map"
        ):
            loaded(columns, **options)
    # Without an empty column, nothing is said of outcomes.
    del columns["Ausfall"]
    with pytest.raises(InputError) as error:
        loaded(columns)
    assert "outcomes" not in str(error.value)


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
    true, _ = (loaded(columns, **r.options).first for r in asked(columns).readings[:2])
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
    (reading,) = (one for one in asked(columns).readings if not one.no_labels)
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


@pytest.mark.parametrize(
    ("first", "second", "names"),
    [
        ("p{}", "cal_p{}", ["model", "cal"]),
        ("{}", "bert_{}_prob", ["model", "bert"]),
        ("p_{}", "p_bert_{}", ["model", "bert"]),
        ("prob_{}", "P({}) of bert", ["model", "of bert"]),
        ("old {} risk", "new {} risk", ["old", "new"]),
    ],
)
@pytest.mark.parametrize("classes", [("0", "1"), ("ok", "self-harm")])
def test_columns_named_after_all_classes_that_sum_to_1_are_a_model_each(first, second, names, classes) -> None:  # fmt: skip
    labels = np.array(classes)[Y]
    scores = {first.format(c): p for c, p in zip(classes, (1 - P, P), strict=True)}
    # In the other order of the classes.
    scores |= {second.format(c): p for c, p in zip(classes[::-1], (P**2, 1 - P**2), strict=True)}
    file = loaded({**scores, "label": labels})
    assert [*file.models] == names
    assert not file.recognition.numbers
    for data, p in zip(file.models.values(), (P, P**2), strict=True):
        np.testing.assert_allclose(data.probs[:, 1], p)
        np.testing.assert_array_equal(np.array(data.class_names)[data.labels], labels)


def test_the_score_before_is_no_class_of_a_file_that_calviz_calibrated() -> None:
    columns = {"p_sepsis": P**2, "sepsis": Y, "p_0": 1 - P, "p_1": P, "uncalibrated": P**2}
    (data,) = loaded(columns, label="sepsis").models.values()
    np.testing.assert_allclose(data.probs[:, 1], P)


def test_shares_of_the_classes_that_the_labels_do_not_follow_are_no_model() -> None:
    share = np.random.default_rng(1).random(len(P)).round(3)
    columns = {"p_0": 1 - P, "p_1": P, "prior_0": 1 - share, "prior_1": share, "label": Y}
    assert len(loaded(columns).models) == 1


@pytest.mark.parametrize(
    ("columns", "models"),
    [
        ({"p_toxic": P, "bert_prob": P**2}, ("p_toxic", "bert_prob")),
        ({"p_toxic": P, "bert_ok_prob": 1 - P**2, "bert_toxic_prob": P**2}, ("p_toxic", "bert_toxic_prob")),
        ({"ok": 1 - P, "toxic": P, "bert_toxic": P**2}, ("toxic", "bert_toxic")),
    ],
)  # fmt: skip
def test_a_second_score_of_the_event_is_offered_as_a_model(columns, models) -> None:
    labels = np.array(["ok", "toxic"])[Y]
    file = loaded({**columns, "label": labels})
    (way,) = file.ways
    assert way.options == {"models": models}
    assert "may hold scores of another model" in " ".join(n.message for n in file.notices)
    both = loaded({**columns, "label": labels}, **way.options)
    for data, p in zip(both.models.values(), (P, P**2), strict=True):
        np.testing.assert_allclose(data.probs[:, 1], p)
        assert data.class_names == ("ok", "toxic")
    assert not both.recognition.numbers


def test_other_classes_and_columns_that_are_no_scores_are_not_offered_as_models() -> None:
    labels, noise = np.array(["ok", "toxic"])[Y], np.random.default_rng(3).random(len(P)).round(3)
    others = {"risk": noise, "lower_prob": P / 2, "caps": P**2, "copy_prob": P, "max_prob": np.maximum(P, 1 - P)}  # fmt: skip
    assert not loaded({"p_toxic": P, **others, "label": labels}).ways
    # The probability of the other class is offered as such.
    (way,) = loaded({"p_ok": 1 - P, "bert_ok_prob": 1 - P**2, "label": labels}).ways
    both = loaded({"p_ok": 1 - P, "bert_ok_prob": 1 - P**2, "label": labels}, **way.options)
    for data, p in zip(both.models.values(), (1 - P, 1 - P**2), strict=True):
        np.testing.assert_allclose(data.probs[:, data.class_names.index("ok")], p)


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


def test_lists_of_the_true_labels_beside_an_object_of_scores_are_multi_label() -> None:
    rows = [
        {"scores": {"rude": 0.7, "late": 0.2, "long": 0.4}, "labels": ["rude", "late"]},
        {"scores": {"rude": 0.1, "late": 0.3, "long": 0.5}, "labels": []},
        {"scores": {"rude": 0.6, "late": 0.8, "long": 0.9}, "labels": ["late"]},
    ] * 10
    text = "\n".join(json.dumps(row) for row in rows)
    models = read(text.encode(), name="x.jsonl").models
    assert {name: list(data.labels[:3]) for name, data in models.items()} == {
        "rude": [1, 0, 0],
        "late": [1, 0, 1],
        "long": [0, 0, 0],
    }
    np.testing.assert_allclose(models["late"].probs[:3, 1], [0.2, 0.3, 0.8])


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


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        ("score_v1_ score_v2_", "v1 v2"),
        ("model_a model_b", "a b"),
        ("gpt4 gpt-4o", "gpt4 gpt-4o"),
        ("gpt-4 gpt-4o", "4 4o"),
        ("EuroSCORE_I EuroSCORE_II", "EuroSCORE_I EuroSCORE_II"),
        ("2024_ 2025_", "2024 2025"),
        ("p1 p2", "p1 p2"),
        ("ModelA ModelB", "A B"),
    ],
)
def test_names_of_models_are_cut_at_words(columns: str, names: str) -> None:
    assert without_common_words(columns.split(), of_models=True) == tuple(names.split())
    assert without_common_words(["logit1", "logit2", "logit10"]) == ("1", "2", "10")


def test_models_in_one_file_are_named_by_their_words(tmp_path: Path) -> None:
    p, y = classes(3, seed=2)
    names = [f"score_{model}_{pet}" for model in ("v1", "v2") for pet in PETS]
    lines = [[*row, *row, PETS[label]] for row, label in zip(p, y, strict=True)]
    text = "\n".join(",".join(map(str, line)) for line in [[*names, "label"], *lines])
    (tmp_path / "two.csv").write_text(text)
    assert [*calviz.data.read(tmp_path / "two.csv").models] == ["v1", "v2"]


# ---- Headers and columns that were once read wrong, or half, or refused for no reason


P3, Y3 = classes(3, seed=2)
PETS, RISKS = ("cat", "dog", "fox"), ("no risk", "risk")
P2 = np.column_stack([1 - P, P])


def block(
    header: str,
    names: Sequence[str] = PETS,
    probs: np.ndarray = P3,
    places: Sequence[int] = (2, 0, 1),
) -> dict[str, Any]:
    """Score columns with the class in the header: {c} as the label writes it, {C} in camelCase, {j} its place."""
    return {
        header.format(c=names[j], C=names[j].title().replace(" ", ""), j=j): probs[:, j]
        for j in places
        if j < len(names)
    }


def said(y: np.ndarray, names: Sequence[str] = PETS) -> np.ndarray:
    return np.array(names)[y]


def is_right(
    columns: Mapping[str, Any],
    names: Sequence[str],
    probs: np.ndarray,
    y: np.ndarray,
    **options: Any,
) -> None:
    found = loaded(columns, **options)
    assert len(found.models) == 1
    assert fault(found.first, names, probs, y) == ""


SHARES = np.round(np.random.default_rng(1).random(N), 3)
READ_RIGHT = {
    "camelCase of two words": ({"label": said(Y, RISKS)} | block("ScoredProbabilities_{C}", RISKS, P2), RISKS, P2, Y),
    "camelCase glued to a prefix": ({"y_true": said(Y, RISKS), "top1": said(PREDICTED_CLASS := (P >= 0.5).astype(int), RISKS), "w": SHARES} | block("P{C}", RISKS, P2), RISKS, P2, Y),
    "class before a colon": ({"label": said(Y3)} | block("{c}:prob"), PETS, P3, Y3),
    "number before a colon": ({"label": Y3} | block("{j}:prob"), ("0", "1", "2"), P3, Y3),
    "words before a colon": ({"label": said(Y3)} | block("Predicted: y={c}"), PETS, P3, Y3),
    "class after a slash": ({"label": Y3} | block("probabilities/{j}"), ("0", "1", "2"), P3, Y3),
    "a prediction beside an unnamed label": ({"Ist": Y3, "net_class": P3.argmax(1)} | block("{j}: {j}"), ("0", "1", "2"), P3, Y3),
    "text beside numbered columns": ({"label": said(Y3)} | block("prob_{j}"), ("0", "1", "2"), P3, Y3),
    "one-hot columns with numbers": ({f"true_{j}": (j == Y3).astype(int) for j in (1, 0, 2)} | block("p_{j}"), ("0", "1", "2"), P3, Y3),
    "P(0) by a number in the name": ({"label": Y, ".pred_0": 1 - P}, ("0", "1"), P2, Y),
    "P(-1) by a number in the name": ({"label": 2 * Y - 1, "P(y=-1)": 1 - P}, ("-1", "1"), P2, Y),
    "P(0.0) by a number in the name": ({"label": Y.astype(float), "0.0 probability": 1 - P}, ("0", "1"), P2, Y),
    "P(event) and its prediction in unknown words": ({"target": said(Y, ("tea", "milk")), "p.milk": P, "pred_class": said(PREDICTED_CLASS, ("tea", "milk"))}, ("tea", "milk"), P2, Y),
    "P(event) beside a share": ({"outcome": said(Y, ("no", "yes")), "yes_prob": P, "share": SHARES}, ("no", "yes"), P2, Y),
    "floats as header": ({"label": Y.astype(float), "1.0": P, "0.0": 1 - P}, ("0", "1"), P2, Y),
    "brackets around the first cell": ({"[dog]": P, "[cat]": 1 - P, "label": said(Y, PETS)}, ("cat", "dog"), P2, Y),
    "words in other languages": ({"Klasse": said(Y, ("nein", "ja")), "Wahrscheinlichkeit": P, "Anteil": SHARES}, ("nein", "ja"), P2, Y),
}  # fmt: skip


@pytest.mark.parametrize("key", READ_RIGHT)
def test_a_header_is_read_right(key: str) -> None:
    columns, names, probs, y = READ_RIGHT[key]
    options = {"label": "outcome"} if "outcome" in columns else {}
    found = loaded(columns, **options).first
    codes = [str(j) for j in range(len(names))] if "numbered" not in key else PETS
    assert fault(found, names, probs, y, codes) == ""


@pytest.mark.parametrize(
    "header", ["{c}_logit", "logit({c})", "raw logit {c}", "{c}_logprob", "pred_logit-{c}"]
)
@pytest.mark.parametrize("absent", [0, 1, 2])
def test_logits_of_a_class_that_no_label_has_are_read_too(header: str, absent: int) -> None:
    logits = np.log(np.clip(P3, 1e-4, 1))
    y = np.where(absent == Y3, (absent + 1) % 3, Y3)
    columns = {"label": said(y)} | block(header, probs=logits)
    columns[header.format(c="max")] = logits.max(axis=1)
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    is_right(columns, PETS, probs, y)


def test_models_and_classes_with_numbers_are_told_apart_by_their_sums() -> None:
    columns: dict[str, Any] = {"label": Y3 + 1}
    probs = {f"m{m}": P3**m / (P3**m).sum(axis=1, keepdims=True) for m in (1, 2, 3)}
    for name, own in probs.items():
        columns |= block(f"prob_{{c}}_{name}", ("1", "2", "3"), own)
    models = loaded(columns).models
    for data, own in zip(models.values(), probs.values(), strict=True):
        assert fault(data, ("1", "2", "3"), own, Y3) == ""


@pytest.mark.parametrize(("names", "header"), [(("legit", "fraud"), "{c}"), (("False", "True"), "Prob{c}Calibrated"), (("correct", "incorrect"), "p({c} | text)")])  # fmt: skip
@pytest.mark.parametrize("rows", [6, N])
def test_words_for_the_event_say_which_number_a_column_is(
    names: tuple[str, str], header: str, rows: int
) -> None:
    event_ = names.index("correct") if "correct" in names else 1
    of_event = P if event_ else 1 - P
    scores = np.column_stack([1 - P, P])
    y = (np.random.default_rng(3).random(N) < of_event).astype(int)
    for order in ((0, 1), (1, 0)):
        columns = {"label": y[:rows]} | block(header, names, scores[:rows], order)
        is_right(columns, names, scores[:rows], y[:rows] if event_ else 1 - y[:rows])
    # Labels that are upside down do not change what the words mean.
    columns = {"label": 1 - y} | block(header, names, scores)
    if "False" not in names:  # the alphabet has them the other way round
        assert len(asked(columns).readings) == 2
    else:
        is_right(columns, names, scores, 1 - y if event_ else y)


def test_words_of_the_event_that_only_the_label_has_need_labels_that_follow() -> None:
    probs, y = P2[:60], np.random.default_rng(6).integers(0, 2, 60)
    columns = {"label": said(y, ("no", "yes"))} | block("{c}", ("blue", "green"), probs)
    found = [loaded(columns, **reading.options).first for reading in asked(columns).readings]
    assert [fault(one, ("no", "yes"), probs, y) == "" for one in found].count(True) == 1


def test_numbers_in_names_that_contradict_the_labels_are_asked_about() -> None:
    # Named by their classes, but the labels follow the order of the columns.
    columns = {"label": Y3} | {f"class{j}_{(j + 1) % 3}_p": P3[:, j] for j in (0, 1, 2)}
    loaded(columns)
    columns = {"label": Y3} | {f"{(j + 1) % 3}x: {(j + 2) % 3}": P3[:, j] for j in (0, 1, 2)}
    assert asked(columns).readings
    few = {name: values[:6] for name, values in columns.items()}
    assert asked(few).readings


@pytest.mark.parametrize("name", ["certainty", "Sicherheit"])
@pytest.mark.parametrize("names", [("no", "yes"), ("0", "1"), PETS])
def test_a_score_that_is_never_below_chance_is_a_confidence(
    name: str, names: tuple[str, ...]
) -> None:
    probs, y = (P2, Y) if len(names) == 2 else (P3, Y3)
    best = probs.argmax(axis=1)
    data = loaded({"true_label": said(y, names), "pred": said(best, names), name: probs.max(1)})
    assert isinstance(data.first, ConfidencePredictions)
    np.testing.assert_array_equal(data.first.correct, best == y)


def test_a_spelling_that_two_columns_share_names_no_class() -> None:
    columns = {"label": np.array(["B", "A-"])[Y], "p.B": 1 - P, "p.A+": P / 3, "p.A.": P / 3, "p.A": P / 3}  # fmt: skip
    with pytest.raises(InputError, match=r"'A-' .*nothing says which is which"):
        loaded(columns)


def test_in_few_rows_a_column_without_a_name_for_it_is_no_label() -> None:
    columns = {"sex": Y[:8], "output_label": said(P3[:8].argmax(1))} | block("m.{c}", probs=P3[:8])
    columns |= {"verdict": said(np.roll(P3[:8].argmax(1), 1))}
    is_right(columns, PETS, P3[:8], np.roll(P3[:8].argmax(1), 1))
    assert asked({"sex": Y[:8]} | block("m_{c}", ("tea", "milk"), P2[:8])).readings


def test_the_class_of_another_time_is_no_label() -> None:
    columns = {"prev": said(Y3), "label_by_expert": said(np.full(N, 1))} | block("x_{c}")
    is_right(columns, PETS, P3, np.full(N, 1))


@pytest.mark.parametrize("header", ["x_{c}", "Class={c}", "{c}"])
def test_columns_that_sum_to_100_are_offered_as_percentages(header: str) -> None:
    columns = {"label": said(Y3)} | block(header, probs=100 * P3)
    error = asked(columns)
    assert "sum to 100" in str(error) or "divide" in str(error)
    is_right(columns, PETS, P3, Y3, **error.readings[0].options)


def test_labels_and_weights_have_the_decimal_comma_of_the_file() -> None:
    frame = pd.DataFrame({"p_0": 1 - P, "p_1": P, "label": Y.astype(float), "w": SHARES + 0.5})
    content = frame.to_csv(index=False, sep=";", decimal=",").encode()
    data = read(content, name="x.csv", options=ReadingOptions(weight_column="w")).first
    assert fault(data, ("0", "1"), P2, Y) == ""
    np.testing.assert_allclose(data.weights, SHARES + 0.5)


@pytest.mark.parametrize("other", ["12,50", "4.608", "1.234.567,89", ""])
def test_points_between_thousands_are_no_decimal_points(other: str) -> None:
    p, y = event()
    amounts = ["4.608,48", "950,00", "-1.002,5", other, *(f"{j}.{j:03},5" for j in range(1, N - 3))]
    columns = {"label": y, "p": [f"{v:.4f}".replace(".", ",") for v in p], "Betrag": amounts}
    first = read(pd.DataFrame(columns).to_csv(index=False, sep=";").encode(), name="x.csv").first
    assert isinstance(first, Predictions)
    np.testing.assert_allclose(first.probs[:, 1], p, atol=1e-12)
    value = float(other.replace(".", "").replace(",", ".") or "nan")
    np.testing.assert_array_equal(first.numbers["Betrag"][:4], [4608.48, 950, -1002.5, value])


def test_a_point_that_may_be_a_decimal_one_makes_an_amount_no_number() -> None:
    p, y = event()
    amounts = [*(f"{j}.{j:03},5" for j in range(1, N)), "4.6"]
    columns = {"label": y, "p": [f"{v:.4f}".replace(".", ",") for v in p], "Betrag": amounts}
    found = read(pd.DataFrame(columns).to_csv(index=False, sep=";").encode(), name="x.csv")
    assert "Betrag" not in found.first.numbers


def test_an_empty_column_is_no_percentage() -> None:
    with pytest.raises(InputError, match="no probability columns"):
        loaded({"label": said(Y3), "empty": np.full(N, np.nan), "age": np.arange(N)})


def test_text_in_a_score_column_is_shown() -> None:
    with pytest.raises(InputError, match=r"'probability' holds text such as '0\.2;0\.8'"):
        loaded({"label": ["a", "b"], "probability": ["0.2;0.8", "0.9;0.1"]})


def test_classes_that_are_counted_from_1_keep_their_numbers() -> None:
    data = loaded({"class": Y + 1, "probability": P}, label_base=1).first
    assert data.class_names == ("1", "2")
    np.testing.assert_allclose(data.probs[:, 1], P)


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
    assert shown.with_role("split", "group") == ReadingOptions(
        split_column="", groups=("*", "split")
    )
    # What has another role is no group; the others, and numbers to slice by, stay to be recognised.
    assert (
        first_rows(b"a,b,label,p\nu,x,0,.2\nv,y,1,.7\nu,y,1,.6\n").with_role("a", "cluster").groups
        is None
    )
    assert shown.with_role("id", "cluster") == ReadingOptions(id_column="", cluster_column="id")


def test_a_group_by_hand_leaves_what_else_is_sliced_by():
    rng = np.random.default_rng(0)
    p, y = event()
    columns = {"p": p, "label": y, "region": [*"abc"] * 100, "ward": [*"xy"] * 150}
    columns |= {"age": rng.normal(50, 9, N), "bmi": rng.normal(25, 3, N)}
    columns["note"] = [f"t{j % 7}" for j in range(N)]
    content = pd.DataFrame(columns).to_csv(index=False).encode()

    def sliced(options: ReadingOptions) -> tuple[set[str], set[str]]:
        data = read(content, name="x.csv", options=options).first
        return {*data.groups}, {*data.numbers}

    texts = {"region", "ward", "note"}
    shown = first_rows(content)
    one = shown.with_role("region", "ignored")
    assert sliced(one) == (texts - {"region"}, {"age", "bmi"})
    assert shown.roles["age"] == "group"
    less = shown.with_role("age", "ignored")
    assert sliced(less) == (texts, {"bmi"})
    less = first_rows(content, options=less)
    assert less.roles["age"] == "ignored"
    assert less.with_role("age", "group").groups is None
    # Roles that follow each other, and the way back.
    shown = first_rows(content, options=one)
    assert shown.roles["region"] == "ignored"
    assert sliced(shown.with_role("ward", "ignored")) == ({"note"}, {"age", "bmi"})
    assert sliced(shown.with_role("region", "group")) == (texts, {"age", "bmi"})
    assert shown.with_role("region", "cluster").groups is None
    # Columns that were named one by one stay the only ones.
    named = first_rows(content, options=ReadingOptions(groups=("ward",)))
    assert sliced(named.options) == ({"ward"}, set())
    assert sliced(named.with_role("age", "group")) == ({"ward", "age"}, set())
    assert sliced(named.with_role("ward", "ignored")) == (set(), set())


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


@pytest.mark.parametrize("scores", [1, 2])
def test_a_column_of_two_words_is_proposed_as_the_label(scores):
    # The scores are neither probabilities nor called so.
    rows = [f"{'NWS'[i % 3]},{'NJ'[i % 5 == 0]}{f',{i / 7 - 3:.3f}' * scores}" for i in range(60)]
    names = ",PD_alt,PD_neu"[: 7 * scores]
    shown = first_rows("\n".join([f"Region,Ausfall{names}", *rows]).encode())
    assert shown.roles["Ausfall"] == "label"
    assert [*shown.roles.values()][2:] == ["score"] * scores


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


@pytest.mark.parametrize(
    "options",
    [
        *({"scores": ("p_cat", "gone")}, {"scores": ("gone*",)}, {"models": ("gone",)}),
        *({"label": "gone"}, {"groups": ("gone",)}, {"split_column": "gone"}),
        *({"id_column": "gone"}, {"model_column": "gone"}, {"cluster_column": "gone"}),
        *({"weight_column": "gone"}, {"time_column": "gone"}, {"prediction_column": "gone"}),
        {"correct_column": "gone"},
    ],
)
def test_an_option_made_for_another_file_is_refused_and_left_out_of_the_first_rows(options):
    fits = {"kind": "probabilities"}
    with pytest.raises(OptionError, match="gone"):
        read(READ, name="x.csv", options=ReadingOptions(**options, **fits))
    shown = first_rows(READ, options=ReadingOptions(**options, **fits))
    assert shown.roles == first_rows(READ).roles
    assert shown.options == ReadingOptions(**fits)
    assert not shown.recognised
    assert read(READ, name="x.csv", options=shown.as_shown()).recognition.label == "label"


def test_the_row_that_an_error_names_is_among_them():
    rows = b"label,p\n" + b"1,0.5\n" * 48 + b",0.25\n" + b"0,0.5\n" * 9
    with pytest.raises(InputError) as caught:
        read(rows, name="x.csv")
    assert caught.value.row == 49
    shown = first_rows(rows, also=[49])
    assert shown.numbers == (1, 2, 3, 4, 5, 6, 7, 49)
    assert (shown.cells["label"][-1], shown.cells["p"][-1]) == ("", "0.25")
    # One beyond the rows that are looked at is read; one that the file has not is not there, and one of the first ones is already.
    late = rows + b"1,0.75\n" * 2_000 + b"1,oops\n"
    shown = first_rows(late, also=[49, 2_059])
    assert shown.numbers == (1, 2, 3, 4, 5, 6, 49, 2_059)
    assert (shown.cells["label"][-1], shown.cells["p"][-1]) == ("1", "oops")
    assert first_rows(rows, also=[9_999, 3]).numbers == first_rows(rows).numbers
    assert first_rows(rows, also=[49, 20, 49]).numbers == (1, 2, 3, 4, 5, 6, 20, 49)


def test_a_cell_that_is_no_number_is_shown_as_it_is() -> None:
    shown = first_rows(b"p_a,p_b,label\n0.2,0.8,b\noops,0.1,a\n,0.3,b\n", name="x.csv")
    assert shown.cells["p_a"] == ("0.2", "oops", "")


# ---- The roles of a file that was read are those it was read with, and another role moves no other column


def _judged(rows: int = 300) -> bytes:
    """Verdicts and confidences of a judge, and what people said of every third row."""
    rng = np.random.default_rng(0)
    right = rng.random(rows) < 0.8
    verdict = np.where(rng.random(rows) < 0.6, "pass", "fail")
    human = np.where(right, verdict, np.where(verdict == "pass", "fail", "pass")).astype(object)
    human[np.arange(rows) % 3 > 0] = None
    columns = {
        "item_id": [f"J{i}" for i in range(rows)],
        "created_at": [f"2026-09-01T{i // 60:02}:{i % 60:02}:00Z" for i in range(rows)],
        "language": [*"abc"] * (rows // 3),
        "system": np.where(rng.random(rows) < 0.5, "bot-a", "bot-b"),
        "human_verdict": human,
        "judge_verdict": verdict,
        "judge_confidence": [f"{v}%" for v in rng.integers(10, 20, rows) * 5],
    }
    return pd.DataFrame(columns).to_csv(index=False).encode()


_ROOT = Path(__file__).parents[3]
_FOLDERS = ("tests/inputs/exports", "tests/inputs/predictions", "../shared/cases", "../shared/inputs")  # fmt: skip
FILES: dict[str, bytes | Path] = {"judge.csv": _judged(), "read.csv": READ}
FILES |= {p.name: p for folder in _FOLDERS for p in sorted((_ROOT / folder).glob("*.*"))}
FILES["cancer.parquet"] = _ROOT / "sample_data" / "breast_cancer.parquet"


def _read_with_roles(name: str, options: ReadingOptions) -> tuple[Loaded, FirstRows]:
    found = read(FILES[name], name=name, options=options)
    return found, first_rows(FILES[name], name=name, options=options, read=found)


@pytest.mark.parametrize("name", FILES)
def test_the_roles_that_are_shown_are_those_that_were_read(name: str) -> None:
    try:
        found, shown = _read_with_roles(name, ReadingOptions())
    except CalvizError:
        pytest.skip("asks something, or is no table")
    columns = {role: [n for n, r in shown.roles.items() if r == role] for role in ROLES}
    read_as = found.recognition
    if read_as.label in shown.roles:
        assert columns["label"] == [read_as.label]
    assert {*read_as.scores} <= {*columns["score"], *columns["model"], *columns["confidence"]}
    single = {"id": read_as.id_column, "time": read_as.time_column, "split": read_as.split_column}
    single |= {"cluster": read_as.cluster_column, "named model": read_as.model_column}
    assert {role: columns[role] for role in single} == {r: [n] * bool(n) for r, n in single.items()}
    texts = ({*found.first.texts} & {*found.first.cuts}) - {*single.values()}
    assert {*columns["group"]} == {*read_as.groups, *read_as.numbers, *texts}
    for column, role in shown.roles.items():
        again, _ = _read_with_roles(name, shown.with_role(column, role))
        assert again.roles == found.roles
        if role in ("score", "model") and "ignored" in shown.choices[column]:
            continue  # of several: the classes are others then
        _, without = _read_with_roles(name, shown.with_role(column, "ignored"))
        moved = {n for n, r in shown.roles.items() if without.roles[n] != r} - {column}
        assert not moved


def test_the_verdict_of_a_judge_becomes_a_prediction_of_what_people_say() -> None:
    found, shown = _read_with_roles("judge.csv", ReadingOptions())
    assert found.recognition.time_column == "created_at"
    assert shown.choices["human_verdict"] == ("label",)
    options = shown.with_role("judge_verdict", "prediction")
    with pytest.raises(InputError, match="200 of 300 rows have no label") as caught:
        read(FILES["judge.csv"], options=options)
    (answer,) = caught.value.answers
    found, shown = _read_with_roles("judge.csv", options.answered(answer))
    assert (found.first.kind, found.first.n) == ("confidence", 100)
    assert shown.roles == {
        "item_id": "id",
        "created_at": "time",
        "language": "group",
        "system": "group",
        "human_verdict": "label",
        "judge_verdict": "prediction",
        "judge_confidence": "confidence",
    }
    # The same in one click.
    (way,) = read(FILES["judge.csv"]).offered
    by_way = read(FILES["judge.csv"], options=ReadingOptions(**way.options)).first
    np.testing.assert_array_equal(by_way.correct, found.first.correct)


def test_predictions_that_share_no_value_with_the_labels_are_refused() -> None:
    options = ReadingOptions(label="system", prediction_column="judge_verdict")
    with pytest.raises(InputError, match="such as 'fail', is in the label 'system'") as caught:
        read(FILES["judge.csv"], options=options)
    assert caught.value.asks
    # A few rows may all be wrong, and so may all rows of named classes.
    rows = {"truth": [*"abc"] * 10, "pred": [*"def"] * 10, "confidence": [0.5, 0.6, 0.7] * 10}
    with pytest.raises(InputError, match="no prediction could be right"):
        loaded(rows)
    assert not loaded({n: v[:9] for n, v in rows.items()}).first.correct.any()
    assert not loaded(rows, class_names=tuple("abcdef")).first.correct.any()


def judges(**columns: str) -> pd.DataFrame:
    """What two judges say of the same answers, how sure they are in percent, and what people say, in columns of these names."""
    rng = np.random.default_rng(1)
    true, sure = np.repeat(rng.random(N) < 0.6, 2), rng.integers(60, 100, 2 * N)
    said = np.where(rng.random(2 * N) < sure / 100, true, ~true)
    values = {
        "answer_id": np.repeat([f"ans_{i}" for i in range(N)], 2),
        "judge": np.tile(["big", "small"], N),
        "verdict": np.where(said, "correct", "incorrect"),
        "confidence": sure,
        "human_label": np.where(true, "correct", "incorrect"),
    }
    return pd.DataFrame({columns.get(name, name): column for name, column in values.items()})


@pytest.mark.parametrize(
    "names",
    [
        {},
        {"judge": "grader", "verdict": "grade", "human_label": "gold"},
        {"judge": "model", "verdict": "judgement", "human_label": "expert"},
        {"judge": "annotator", "confidence": "conf", "human_label": "ground_truth"},
        {"judge": "evaluator", "verdict": "decision", "confidence": "score"},
        {"verdict": "label", "confidence": "judge_confidence"},
    ],
)
def test_judges_below_each_other_are_models_whose_verdict_is_the_prediction(names) -> None:
    rows = judges(**names)
    found = loaded(rows)
    assert tuple(found.models) == ("big", "small")
    for name, data in found.models.items():
        own = judges()[judges().judge == name]
        assert isinstance(data, ConfidencePredictions)
        np.testing.assert_array_equal(data.correct, own.verdict == own.human_label)
        np.testing.assert_array_equal(data.confidence, own.confidence / 100)
    # Rows without a confidence are left out of their model, and counted in the whole file.
    sure = names.get("confidence", "confidence")
    rows[sure] = rows[sure].where(rows.index % 100 != 1)
    with pytest.raises(InputError, match="6 of 600 rows have no score") as caught:
        loaded(rows)
    (answer,) = caught.value.answers
    assert [m.n for m in loaded(rows, **answer.options).models.values()] == [N, N - 6]


def test_judges_beside_each_other_are_models_of_the_rows_that_all_have() -> None:
    rows = judges()
    by = rows.pivot(index=["answer_id", "human_label"], columns="judge").reset_index()
    by.columns = ["_".join(filter(None, pair[::-1])) for pair in by.columns]
    assert [*by][2:4] == ["big_verdict", "small_verdict"]
    apart, below = loaded(by), loaded(rows.sort_values(["answer_id", "judge"]))
    assert not apart.first.groups
    for name, data in below.models.items():
        np.testing.assert_array_equal(apart.models[name].correct, data.correct)
    by["big_confidence"] = by.big_confidence.where(by.index != 7)
    kept = loaded(by, repair=("drop-missing",)).models.values()
    assert [m.n for m in kept] == [N - 1] * 2


def test_whether_the_judge_says_correct_or_was_is_asked() -> None:
    rows = judges(verdict="is_correct")
    rows[["is_correct", "human_label"]] = rows[["is_correct", "human_label"]] == "correct"
    says, was = asked(rows).readings
    right = loaded(judges()).models["big"]
    np.testing.assert_array_equal(loaded(rows, **says.options).models["big"].correct, right.correct)
    for name, model in loaded(rows, **was.options).models.items():
        assert model.correct.mean() == rows.is_correct[rows.judge == name].mean()


def test_a_column_of_times_may_be_called_after_what_was_done_then() -> None:
    rows = judges().assign(judged_at=[f"2026-05-18T06:{i // 60:02}:{i % 60:02}+00:00" for i in range(2 * N)])  # fmt: skip
    assert loaded(rows).recognition.time_column == "judged_at"


def test_a_prediction_that_the_reading_does_not_use_is_shown_as_chosen() -> None:
    columns = {"y": [0, 1] * 20, "p": [0.2, 0.7] * 20, "said": [*"ab"] * 20}
    content = pd.DataFrame(columns).to_csv(index=False).encode()
    options = first_rows(content, options=ReadingOptions(scores=("p",))).with_role(
        "said", "prediction"
    )
    for found in (None, read(content, options=options)):
        assert first_rows(content, options=options, read=found).roles["said"] == "prediction"


# ---- Long form: a column names the model of each row


def long_form(name: str = "Modell", id: str = "Nr") -> pd.DataFrame:
    """The same rows of two models with probabilities of three classes, below each other."""
    truth = classes(3)[1]
    table = {
        id: np.tile(np.arange(N), 2),
        name: np.repeat(["Netz A", "Wald B"], N),
        "Wahrheit": np.tile(np.array(["Müll", "Straße", "Grün"])[truth], 2),
    }
    scores = np.concatenate([classes(3)[0], classes(3, seed=1)[0]])
    return pd.DataFrame(table | dict(zip(("p_Müll", "p_Straße", "p_Grün"), scores.T, strict=True)))


def read_long(table: pd.DataFrame, **options: Any) -> Loaded:
    content = table.to_csv(index=False, sep=";", decimal=",").encode("latin-1")
    return read(content, name="x.csv", options=ReadingOptions(**options))


@pytest.mark.parametrize("seed", [None, 0])
def test_rows_of_several_models_are_models_of_the_same_rows(seed):
    table = long_form()
    found = read_long(table if seed is None else table.sample(frac=1, random_state=seed))
    assert {*found.models} == {"Netz A", "Wald B"}
    assert found.recognition.model_column == "Modell"
    assert found.recognition.id_column == "Nr"
    assert found.recognition.rows == N
    assert not found.recognition.groups
    for name, model in found.models.items():
        own = table[table["Modell"] == name].set_index("Nr").loc[np.asarray(model.ids).astype(int)]
        np.testing.assert_allclose(model.probs, own.filter(like="p_"), atol=1e-6)
        assert [model.class_names[y] for y in model.labels] == own["Wahrheit"].tolist()
    (notice,) = (n for n in found.notices if n.code == "DATA016")
    assert "'Nr' has one row for each value of 'Modell'" in notice.message
    # The check says the same of rows that are read together.
    together = read_long(table, model_column="", id_column="Nr").first
    (warning,) = CHECKS["CAL027"].findings(Sample.of(together))
    said = one_row_each("Nr", "Modell")
    assert notice.message.startswith(f"{said}: ")
    assert warning.message.startswith(f"E{said[1:]}: ")
    assert warning.model_column == "Modell"
    assert not any("repeat" in n.message for n in found.notices)


@pytest.mark.parametrize("seed", [None, 0])
def test_models_with_missing_rows_have_their_own_or_are_asked_about(seed):
    table = long_form() if seed is None else long_form().sample(frac=1, random_state=seed)
    some = table[(table["Nr"] >= 20) | (table["Modell"] == "Wald B")]
    found = read_long(some)
    assert {name: m.n for name, m in found.models.items()} == {"Netz A": N - 20, "Wald B": N}
    assert found.recognition.rows == N
    (notice,) = (n.message for n in found.notices if n.code == "DATA016")
    assert "280 of 300 values of 'Nr' have a row" in notice
    assert "each judged on all of its rows, and compared on those of all" in notice
    # Half of them are no sure sign, and of a site it is none at all.
    half = table[(table["Nr"] >= N // 2) | (table["Modell"] == "Wald B")]
    with pytest.raises(InputError, match="150 of 300 values of 'Nr'") as asked:
        read_long(half)
    sizes = [[m.n for m in read_long(half, label="Wahrheit", **each.options).models.values()] for each in asked.value.answers]  # fmt: skip
    assert sorted(map(sorted, sizes)) == [[150, 300], [450]]
    assert len(read_long(some.rename(columns={"Modell": "Standort"}), label="Wahrheit").models) == 1
    few = table[(table["Nr"] >= N - 9) | (table["Modell"] == "Wald B")]
    assert len(read_long(few, label="Wahrheit").models) == 1


def test_models_below_each_other_are_found_beyond_the_first_rows() -> None:
    parts = [long_form().assign(Nr=lambda t, i=i: t["Nr"] + i * N) for i in range(5)]
    table = pd.concat(parts).sort_values("Modell", kind="stable")
    assert (table["Modell"][:1_000] == table["Modell"].iloc[0]).all()
    assert {name: m.n for name, m in read_long(table).models.items()} == {"Netz A": 5 * N, "Wald B": 5 * N}  # fmt: skip
    assert len(read_long(table.assign(run=1)).models) == 2


def _an_id_is_twice(table: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([table, table[-1:]])


def _labels_differ(table: pd.DataFrame) -> pd.DataFrame:
    """Those of each model are of cases of their own."""
    table.loc[N:, "Wahrheit"] = table.loc[N:, "Wahrheit"].to_numpy()[::-1]
    return table


def _the_id_is_missing(table: pd.DataFrame) -> pd.DataFrame:
    return table.drop(columns="Nr")


def _nothing_says_model(table: pd.DataFrame) -> pd.DataFrame:
    return table.rename(columns={"Modell": "Standort"})


@pytest.mark.parametrize(
    "change", [_an_id_is_twice, _labels_differ, _the_id_is_missing, _nothing_says_model]
)
@pytest.mark.parametrize("shuffled", [False, True])
def test_rows_that_are_not_surely_of_several_models_are_one(change, shuffled):
    table = change(long_form())
    found = read_long(table.sample(frac=1, random_state=0) if shuffled else table)
    assert len(found.models) == 1
    assert found.first.n == len(table)
    assert found.recognition.model_column is None
    assert {*found.recognition.groups} & {"Modell", "Standort"}


def test_cases_with_two_labels_are_asked_about_and_those_of_other_rows_named() -> None:
    table = long_form()
    table.loc[N, "Wahrheit"] = next(c for c in ("Müll", "Grün") if c != table.loc[0, "Wahrheit"])
    with pytest.raises(InputError, match=r"row 1 \(line 2\), row \d+ \(line \d+\)\): a case") as e:
        read_long(table)
    assert [way.options for way in e.value.readings] == [{"model_column": ""}]
    (said,) = [
        n.message for n in read_long(_labels_differ(table)).notices if "another" in n.message
    ]
    assert said.endswith("another value of 'Modell': all rows are read as of one model")
    lacking = long_form().astype({"Wahrheit": object})
    lacking.loc[N, "Wahrheit"] = None
    assert len(read_long(lacking, repair=("drop-missing",)).models) == 2


@pytest.mark.parametrize("name", ["provider", "vendor", "engine", "checkpoint", "epoch", "seed"])
def test_what_tells_the_rows_of_each_case_apart_names_models(name: str) -> None:
    assert len(read_long(long_form(name)).models) == 2


def test_the_model_column_is_chosen_and_declined():
    assert len(read_long(long_form("Standort"), model_column="Standort").models) == 2
    assert read_long(long_form(), model_column="").first.n == 2 * N
    assert read_long(long_form(), groups=("Modell",)).first.n == 2 * N
    assert read_long(long_form(), split_column="Modell").first.n == 2 * N
    with pytest.raises(InputError, match="does not name models: a row identifier has several rows"):
        read_long(_an_id_is_twice(long_form()), model_column="Modell")
    numbered = long_form("run").replace({"run": {"Netz A": 1, "Wald B": 2}})
    assert [*read_long(numbered).models] == ["run 1", "run 2"]


def test_models_of_a_column_leave_out_rows_of_their_own():
    table = long_form()
    table.loc[3, "p_Grün"] = np.nan
    table.loc[[5, N + 5], "Wahrheit"] = ""
    found = read_long(table, repair=("drop-missing",))
    assert [m.n for m in found.models.values()] == [N - 2, N - 1]
    assert [np.asarray(m.ids).astype(int).tolist() for m in found.waiting.values()] == [[5], [5]]
    table.loc[N:, "p_Grün"] = np.nan
    with pytest.raises(InputError, match="there are no rows left of 'Wald B': every row has a"):
        read_long(table, repair=("drop-missing",))


def _of_sources(name: str, k: int = 3) -> pd.DataFrame:
    """Forecasts of k sources for the same days and stations, shuffled, with columns that differ by source."""
    p, hit = event()
    rng = np.random.default_rng(0)
    cases = {"day": np.arange(N) // 3, "station": [*"abc"] * (N // 3), "rain": hit, "mm": hit * p}
    table = pd.DataFrame({c: np.tile(v, k) for c, v in cases.items()})
    table[name] = np.repeat([*"uvwxyz"[:k]], N)
    table["p"] = np.clip(np.tile(p, k) + rng.normal(0, 0.05, k * N), 0.01, 0.99)
    table["seconds"], table["alarm"] = rng.uniform(1, 9, k * N).round(2), table["p"] > 0.5
    return table.sample(frac=1, random_state=1)


@pytest.mark.parametrize("name", ["source", "Modell", "forecast_source", "member", "run"])
@pytest.mark.parametrize("indexed", [False, True])
def test_other_columns_together_identify_the_rows_of_each_model(name, indexed):
    """Each outcome was counted once for each source."""
    table = _of_sources(name)
    found = read_long(table.reset_index() if indexed else table, label="rain", scores=("p",))
    assert {n: m.n for n, m in found.models.items()} == dict.fromkeys("uvw", N)
    assert found.recognition.id_column == found.first.id_name == "day + station"
    assert {"station", "alarm"} <= {*found.recognition.groups}
    for model, data in found.models.items():
        own = table[table[name] == model]
        own = own.set_index(own.day.astype(str) + " " + own.station).loc[[*data.ids]]
        np.testing.assert_allclose(data.probs[:, 1], own.p, atol=1e-6)
    assert read_long(table, label="rain", scores=("p",), model_column="").first.n == 3 * N
    # A case has one label, and most have a row of each source.
    gaps = read_long(table[10:], label="rain", scores=("p",))
    assert sum(m.n for m in gaps.models.values()) == 3 * N - 10
    table.iloc[0, table.columns.get_loc("rain")] = 1 - table.iloc[0]["rain"]
    for chosen in (None, name):
        with pytest.raises(InputError, match="1 of 300 values of") as e:
            read_long(table, label="rain", scores=("p",), model_column=chosen)
        (answer,) = e.value.readings
        assert read_long(table, label="rain", scores=("p",), **answer.options).first.n == 3 * N


def test_models_that_other_columns_tell_are_offered_whatever_they_are_called():
    for table in (_of_sources("tool"), _of_sources("tool").reset_index()):
        found = read_long(table, label="rain", scores=("p",))
        (way,) = [way for way in found.ways if "model_column" in way.options]
        assert len(found.models) == 1
        assert len(read_long(table, label="rain", scores=("p",), **way.options).models) == 3
    apart = _of_sources("tool", k=1).assign(tool=["a", "b"] * (N // 2))
    assert not read_long(apart, label="rain", scores=("p",)).ways
    named = _of_sources("model").assign(case=lambda t: t.day.astype(str) + "_" + t.station)
    assert read_long(named, label="rain", scores=("p",)).recognition.id_column == "case"


def test_the_role_of_a_model_column():
    content = long_form().sample(frac=1, random_state=0).to_csv(index=False).encode()
    shown = first_rows(content)
    assert shown.roles["Modell"] == "named model"
    assert shown.roles["Nr"] == "id"
    assert shown.with_role("Modell", "group").model_column == ""
    assert len(read(content, options=shown.with_role("Modell", "group")).models) == 1


# ---- Several questions of one file are asked together


def with_all_questions() -> bytes:
    """A file with ragged lines, two words of which neither is known, rows without labels and scores outside the range."""
    p, hit = event()
    cells = [f"{i},{100 * p[i]:.2f}%,{('blau', 'gelb')[hit[i]]}" for i in range(N)]
    cells[5], cells[9], cells[20] = "5,50%,blau,x", "9,50%,", "20,130%,gelb"
    return "\n".join(["id,score,farbe", *cells, ""]).encode()


def test_what_a_file_asks_is_asked_at_once():
    content = with_all_questions()
    with pytest.raises(InputError) as first:
        read(content)
    error = first.value
    answers = [[answer.options for answer in q.answers] for q in (error, *error.further)]
    assert answers == [
        [{"repair": ("drop-ragged",)}],
        [{"class_names": ("blau", "gelb")}, {"class_names": ("gelb", "blau")}],
        [{"repair": ("drop-missing",)}],
        [{"repair": ("drop-outside",)}],
    ]
    assert all(q.what in str(error) for q in error.further)
    for way, names in zip(error.ways, (("blau", "gelb"), ("gelb", "blau")), strict=True):
        data = read(content, options=ReadingOptions().answered(way)).first
        assert (data.n, data.class_names) == (N - 3, names)


@pytest.mark.parametrize("event_word", ["J", "N"])
def test_the_class_whose_frequency_the_scores_fit_is_proposed_first(event_word):
    rng = np.random.default_rng(11)
    p = rng.beta(1, 15, 4000)
    label = np.where(rng.random(4000) < p, event_word, {"J": "N", "N": "J"}[event_word]).astype(
        object
    )
    rate = np.delete(label == event_word, [7, 9]).mean()
    label[7] = None
    p[9] = np.nan
    fits, other = asked({"score": p, "label": label}).readings
    assert fits.options["class_names"][1] == event_word == other.options["class_names"][0]
    assert f"(expected {100 * np.nanmean(p):.1f}" in fits.label.replace("\u00a0", " ")
    for way, share in ((fits, rate), (other, 1 - rate)):
        assert f"observed {100 * share:.1f}" in way.label.replace("\u00a0", " ")


def test_rows_without_a_score_are_part_of_the_answer_which_columns_are_models():
    p, hit = event()
    q = np.clip(p * 0.9, 0, 1)
    p[[3, 8]] = np.nan
    q[20] = np.nan
    error = asked({"pd_one": p, "pd_two": q, "default_flag": hit.astype(int)})
    assert [way.options["repair"] for way in error.ways] == [("drop-missing",)] * 3
    for way, n in zip(error.ways, (N - 3, N - 2, N - 1), strict=True):
        given = {"pd_one": p, "pd_two": q, "default_flag": hit.astype(int)}
        assert loaded(given, **way.options).first.n == n


@pytest.mark.parametrize("percent", [False, True])
@pytest.mark.parametrize("sign", [".", ","])
def test_a_few_rows_that_do_not_sum_to_1_can_be_left_out(sign, percent):
    rng = np.random.default_rng(3)
    p = rng.dirichlet([1, 1, 1], N).round(3)
    p[:, 2] = 1 - p[:, :2].sum(axis=1)
    p[[7, 40], 0] = 1.4
    p[60, :2] = 0.9
    written = "{:.1%}" if percent else "{:.3f}"
    cells = [[written.format(v).replace(".", sign) for v in row] for row in p]
    labels = [("Ja", "nein ", "OFFEN")[j % 3] for j in range(N)]
    lines = [
        ";".join([f"F{j}", y, *row]) for j, (y, row) in enumerate(zip(labels, cells, strict=True))
    ]
    lines[3], lines[5] = f"F3;;{lines[3].split(';', 2)[2]}", f"{lines[5].rpartition(';')[0]};n/a"
    content = "\n".join(["id;label;p_Ja;p_Nein;p_Offen", *lines, "TOTAL;;;;4202", ""]).encode()
    with pytest.raises(InputError) as asked:
        read(content)
    questions = (asked.value, *asked.value.further)
    keys = [[answer.options["repair"][0] for answer in q.answers] for q in questions]
    assert keys == [["drop-totals"], ["drop-missing"], ["drop-outside", "renormalise"]]
    assert f"3 of {N - 2} rows do not sum to 1" in questions[2].what
    assert all(f"row {row} (line {row + 1})" in questions[2].what for row in (8, 41, 61))
    assert questions[2].row == 8
    data = read(content, options=ReadingOptions().answered(asked.value.ways[0])).first
    kept = np.delete(np.arange(N), [3, 5, 7, 40, 60])
    np.testing.assert_allclose(data.probs, p[kept], atol=1e-12)
    assert data.labels.tolist() == [j % 3 for j in kept]


def test_spellings_of_the_classes_do_not_hide_the_label_or_the_scores_named_after_it():
    rng = np.random.default_rng(4)
    p = rng.dirichlet([1, 1, 1], N).round(3)
    truth = (rng.random(N)[:, None] > p.cumsum(axis=1)[:, :2]).sum(axis=1)
    names = np.array(["Ja", "Nein", "Offen"])[truth].astype(object)
    names[::30] = [f" {name.upper()}" for name in names[::30]]
    frame = pd.DataFrame(
        {
            "nr": np.arange(N),
            "ergebnis": names,
            **dict(zip(["Ja", "Nein", "Offen"], p.T, strict=True)),
        }
    )
    frame.loc[9, "Ja"], total = 1.4, f"Summe,,,,{N}\n"
    with pytest.raises(InputError) as asked:  # also where the first rows say too little
        read((frame.to_csv(index=False) + total).encode())
    assert asked.value.answers[0].options == {"repair": ("drop-totals",)}
    data = read(
        frame.to_csv(index=False).encode(), options=ReadingOptions(repair=("drop-outside",))
    )
    assert data.first.class_names == ("Ja", "Nein", "Offen")
    assert data.first.labels.tolist() == np.delete(truth, 9).tolist()
    hit, risk = truth == 0, p[:, 0]
    words = np.where(hit, "ja", "nein").astype(object)
    words[3], words[5] = words[3].upper(), f" {words[5]} "
    content = pd.DataFrame({"p": risk, "eingetreten": words}).to_csv(index=False).encode()
    assert read(content).first.labels.tolist() == hit.tolist()


def test_many_rows_that_do_not_sum_to_1_are_not_left_out_but_may_be_logits():
    rows = "".join(f"{'ab'[j % 2]},{j / 50},{1 - j / 50 if j % 6 else 1.5}\n" for j in range(48))
    with pytest.raises(InputError, match="8 of 48 rows do not sum to 1") as asked:
        read(f"y,p_a,p_b\n{rows}".encode())
    assert [repair.key for repair in asked.value.repairs] == ["renormalise", "softmax"]
    with pytest.raises(InputError, match="8 of 48 rows"):
        read(f"y,p_a,p_b\n{rows}".encode(), options=ReadingOptions(repair=("drop-outside",)))


def test_rows_that_are_divided_by_their_sum_are_not_left_out():
    rows = "".join(f"{'ab'[j % 2]},{j / 50},{1 - j / 50}\n" for j in range(48))
    content = f"y,p_a,p_b\n{rows}a,-0.2,1.2\nb,0.5,0.75\n".encode()
    both = ReadingOptions(repair=("drop-outside", "renormalise"))
    np.testing.assert_allclose(read(content, options=both).first.probs[-1], [0.4, 0.6])


@pytest.mark.parametrize("unit", ["", "%"])
def test_questions_name_the_values_of_the_file_and_repairs_count_the_same_rows(unit):
    rng = np.random.default_rng(6)
    p = rng.dirichlet([1, 1, 1], N).round(4) * 100  # rounding keeps many sums from 100
    p[[7, 40], 0] = 180
    labels = np.array(["a", "b", "c"])[np.arange(N) % 3]
    rows = [";".join([y, *(f"{v:.2f}{unit}".replace(".", ",") for v in row)]) for y, row in zip(labels, p, strict=True)]  # fmt: skip
    content = "\n".join(["y;p_a;p_b;p_c", *rows]).encode()
    repair = () if unit else ("percent",)
    with pytest.raises(InputError) as asked:
        read(content, options=ReadingOptions(repair=repair))
    sums = sorted(p[[7, 40]].sum(axis=1))
    assert f"2 of {N} rows do not sum to 100 (from {sums[0]:.4g} to {sums[1]:.4g})" in str(asked.value)  # fmt: skip
    assert f"values lie in [{p.min():.4g}, 180]" in str(asked.value)
    loaded = read(content, options=ReadingOptions(repair=(*repair, "renormalise")))
    (made,) = (what for what in loaded.repairs_made if what.startswith("renormalise"))
    assert made.startswith(f"renormalise: 2 of {N} rows were divided by their sum")
    rounded = np.abs(p.sum(axis=1) - 100) > 1e-3
    assert f", and {rounded.sum() - 2:,} (at most 0.0" in made
    assert rounded.sum() > 2
    np.testing.assert_allclose(loaded.first.probs.sum(axis=1), 1, atol=1e-12)


def test_that_there_are_no_labels_yet_is_an_answer_where_a_label_is_asked_for():
    rng = np.random.default_rng(5)
    columns = {"sex": rng.choice(["F", "M"], N), "age": rng.random(N) + 50, "p_sepsis": P}
    error = asked(columns)
    assert [one.options for one in error.readings] == [{"label": ""}, {"label": "sex"}]
    # Beside anything else that may be the label, it is not asked for.
    for score, sexes in (("p", []), ("p_male", ["patient_sex"])):
        beside = asked({"id": np.arange(N) % 9, "patient_sex": rng.choice(["female", "male"], N), "recid": Y, score: P})  # fmt: skip
        assert {way.options["label"] for way in beside.ways} == {"", "recid", *sexes}
    (which,) = error.further  # of the classes the score is of
    assert [way.options["label"] for way in error.ways] == ["", "sex", "sex"]
    given = Reading.joined([error.readings[0], which.answers[0]])
    assert (given.options, given.in_shell()) == ({"label": ""}, "--label ''")
    with pytest.raises(InputError, match="there are no labels") as caught:
        loaded(columns, **given.options)
    assert caught.value.unlabelled
    content = pd.DataFrame(columns).to_csv(index=False).encode()
    for_map = ReadingForMap.of(ReadingOptions(label=""), {"class_names": ("no", "sepsis")})
    assert read(content, name="x.csv", options=for_map).recognition.label is None


def test_what_depends_on_an_answer_is_not_asked_before_it():
    # Without a known label there are two columns of two words each: which word is the event depends on the column.
    rng = np.random.default_rng(5)
    p = rng.random(N)
    one, two = (
        np.where(rng.random(N) < p, *words) for words in (("gut", "schlecht"), ("warm", "kalt"))
    )
    error = asked({"prob": p, "farbe": one, "lage": two})
    assert {answer.options["label"] for answer in error.answers} == {"farbe", "lage", ""}
    assert error.further == ()


def test_the_line_that_answers_all_questions_works_when_it_is_pasted(tmp_path):
    for name, content in {
        "all.csv": with_all_questions(),
        "percent.csv": b"y,prob\n"
        + b"".join(b"%d,%d\n" % (j % 3 < 1, j or 130) for j in range(60)),
    }.items():
        (tmp_path / name).write_bytes(content)
        refused = run("audit", tmp_path / name)
        assert refused.exit_code == 2
        line = refused.stderr.splitlines()[1]
        assert "--repair drop-outside" in line
        options = shlex.split(line.rpartition(": ")[2])
        assert " or " not in line.rpartition(": ")[2]
        assert run("audit", tmp_path / name, *options).exit_code == 0


@pytest.mark.parametrize("labelled", ["all", "some"])
def test_the_confidence_of_a_judge_is_said_not_to_be_used_and_how_it_is_measured(
    tmp_path, labelled
):
    p, right = event(1)
    judge = np.arange(N) % 3 < 1
    human = np.where(judge == (right == 1), "pass", "fail").astype(object)
    human[:: 4 if labelled == "some" else N] = "" if labelled == "some" else "pass"
    verdicts = np.where(judge, "pass", "fail")
    file = tmp_path / "x.csv"
    columns = {"judge": verdicts, "human": human, "judge confidence": p.clip(0.001)}
    pd.DataFrame(columns).to_csv(file, index=False)
    found = read(file)
    (said,) = (n.message for n in found.notices if "is not judged here" in n.message)
    assert said.startswith("'judge confidence' is not judged here: another way to read the file")
    (way,) = found.offered
    assert way.label == "is its confidence right?"
    assert f"offered: {way.in_shell()} ({way.label})" in run("audit", file).stdout
    result = run("audit", file, *shlex.split(way.in_shell()))
    assert result.exit_code == 0
    rows = N if labelled == "all" else N - len(human[::4])
    assert f"{rows:,} rows" in result.stdout
    assert "confidence in judge confidence" in result.stdout


def test_a_judge_s_words_are_asked_about_beside_whether_its_confidence_is_right(tmp_path):
    p, right = event(1)
    judge = np.where(np.arange(N) % 3 < 1, "allowed", "violates")
    other = np.where(judge == "allowed", "violates", "allowed")
    human = np.where(right == 1, judge, other).astype(object)
    human[::4] = ""
    columns = {"judge_verdict": judge, "human_label": human, "judge_confidence": p.clip(0.001)}
    file = tmp_path / "x.csv"
    pd.DataFrame(columns).to_csv(file, index=False)
    with pytest.raises(InputError, match="nothing says which of") as asked:
        read(file)
    labels = [way.label for way in asked.value.readings]
    assert labels == ["'violates' is right", "'allowed' is right", "is its confidence right?"]
    result = run("audit", file, *shlex.split(asked.value.readings[2].in_shell()))
    assert "confidence in judge_confidence" in result.stdout


@pytest.mark.parametrize("names", [["Claude (8B)", "gpt", "llama"], ["claude", "gpt"]])
def test_a_column_judge_may_name_who_judged_each_row(tmp_path, names):
    p, right = event(1)
    rows = {"item_id": np.arange(N).repeat(len(names)), "judge": names * N}
    rows |= {"score": p.repeat(len(names)), "human": right.repeat(len(names))}
    file = tmp_path / "x.csv"
    pd.DataFrame(rows).to_csv(file, index=False)
    assert {*read(file, options=ReadingOptions(label="human")).models} == {*names}
    shown = first_rows(file)
    assert shown.roles["judge"] == "named model"


def test_a_confidence_by_its_words_beside_what_was_right_is_read_as_one():
    columns = {"verbalized_confidence": np.round(100 * P), "correct": Y, "answer": ["yes"] * N}
    assert loaded(columns).recognition.kind == "confidence"
    said = loaded(columns, scores=("verbalized_confidence",), correct_column="correct")
    assert said.recognition.kind == "confidence"


# ---- Labels in other words than the score columns


VERBS = ("pay", "review", "reject")
DECIDED = ("Paid", "Under review", "Rejected")


def decided(
    labels: Sequence[str] = DECIDED, names: Sequence[str] = VERBS, called: str = "Final decision"
) -> dict[str, Any]:
    """A file with a number of each row, a group of as many words as there are classes, and labels in words of their own."""
    k = len(names)
    p, y = classes(k)
    sites = np.random.default_rng(2).choice(["North", "South", "West", "East"][:k], N)
    scores = {f"Prob {name}": p[:, j] for j, name in enumerate(names)}
    return {"site": sites, **scores, called: [labels[j] for j in y]}


def test_a_column_of_as_many_words_as_classes_is_asked_about_with_the_pairs() -> None:
    error = asked(decided())
    assert "is 'Final decision' the true class?" in error.what
    assert [r.options for r in error.readings] == [{"label": "Final decision"}, {"label": ""}]
    (pairs,) = error.further
    assert pairs.what.endswith("Paid = pay, Under review = review, Rejected = reject?")
    assert "--class-names 'Paid,Under review,Rejected'" in error.ways[0].in_shell()
    data = loaded(decided(), **error.ways[0].options).first
    p, y = classes(3)
    assert data.class_names == DECIDED
    np.testing.assert_array_equal(data.labels, y)
    np.testing.assert_allclose(data.probs, p, atol=1e-9)


def test_columns_that_may_be_the_true_class_are_listed_best_first() -> None:
    columns = decided()
    # The class of the scores that nobody calls a label, in words of nobody, comes after one in words of the scores.
    other = {"Segment": [f"segment {'ABC'[DECIDED.index(c)]}" for c in columns["Final decision"]]}
    error = asked({**other, **columns})
    assert "several could be it: Final decision, Segment" in error.what
    # A group that the scores say nothing of is none, and neither are scores without any label.
    del columns["Final decision"]
    with pytest.raises(InputError, match=r"no label column.*'site' has 3 values"):
        loaded(columns)


@pytest.mark.parametrize(
    ("labels", "names", "pairs"),
    [
        (("Denied", "Applied", "Cried"), ("deny", "apply", "cry"), True),
        (("is low risk", "is medium risk", "is high risk"), ("low", "medium", "high"), True),
        (("Rejected", "Paid", "Reviewed"), ("reject", "pay", "review"), True),
        (("not paid", "paid", "reviewed"), ("reject", "pay", "review"), False),
        (("grade 1", "grade 2", "grade 3"), ("grade_a", "grade_b", "grade_c"), False),
        (("pay", "Unpaid", "Rejected"), ("paid", "unpaid claim", "paid later"), False),
        (("A1", "B2", "C3"), ("alpha", "beta", "gamma"), False),
    ],
)
def test_pairs_are_proposed_where_each_label_has_one_name_with_its_stem(
    labels: tuple[str, ...], names: tuple[str, ...], pairs: bool
) -> None:
    columns = decided(labels, names, "label")
    with pytest.raises(InputError) as caught:
        loaded(columns)
    (chosen,) = [r.options["class_names"] for r in caught.value.readings] or [None]
    assert chosen == (labels if pairs else None)
    assert caught.value.unmatched[0] == names
    assert {*caught.value.unmatched[1]} == {*labels}
    p, y = classes(3)
    data = loaded(columns, class_names=labels).first
    np.testing.assert_array_equal(data.labels, y)
    np.testing.assert_allclose(data.probs, p, atol=1e-9)


@pytest.mark.parametrize(
    "outcome",
    [
        np.where(Y, P + 0.1, 0.0),  # millimetres of rain, of which any is the event
        np.where(Y, P + 0.1, np.nan),
        np.where(Y, -P, P),
        np.where(Y, 2, 7),
        np.where(Y, np.where(P > 0.5, "died of it", "died"), "alive"),
        np.where(np.arange(N) % 30 == 0, 1 - Y, Y),  # a second rater, who nearly always agrees
    ],
)
def test_what_tells_the_label_is_neither_sliced_by_nor_corrected_by_unless_it_is_chosen(
    outcome: np.ndarray,
) -> None:
    """Group-wise calibration by the measured rain told each event, and was advised."""
    rng = np.random.default_rng(3)
    columns = {"label": Y, "p": P, "site": [*"abc"] * 100, "rain": outcome, "age": rng.normal(size=N) + Y}  # fmt: skip
    found = loaded(columns)
    assert {*found.first.to_slice()} == {"site", "age"}
    (said,) = [n.message for n in found.notices if "tells the label" in n.message]
    assert said.startswith("'rain' tells the label, as a second label")
    assert "rain" in loaded(columns, groups=("*", "rain")).first.to_slice()
    # What people say of a row afterwards, such as a grade, tells less of it, but more than the score.
    grade = np.where(rng.random(N) < 0.1, rng.integers(1, 6, N), np.where(Y, 5, 1))
    for name, known in (("rubric_grade", False), ("human", False), ("label_2", False), ("stage", True)):  # fmt: skip
        assert (name in loaded(columns | {name: grade}).first.to_slice()) == known
    # It is one of two models where the score does so too, and chance where there are few rows.
    for other in ({"p": np.where(Y, 0.9, 0.1) + P / 100}, {"label": np.where(np.arange(N) < 19, 1, 0)}):  # fmt: skip
        few = columns | other
        few["rain"] = few["label"] * 2
        assert "rain" in loaded(few).first.to_slice()


def test_of_several_classes_and_of_confidences_an_outcome_is_left_out_too() -> None:
    p, y = classes(3)
    goals = {"goals": y - 1, "half": (y + np.arange(N) % 2).clip(0, 2)}
    found = loaded({"label": y, **{f"p_{j}": p[:, j] for j in range(3)}, **goals})
    assert [*found.first.to_slice()] == ["half"]
    # A second rater of every other row; another status with the same words says nothing of the label.
    names, rng = np.array(["red", "amber", "green"]), np.random.default_rng(1)
    rated = np.where(rng.random(N) < 0.7, y, rng.integers(3, size=N))
    second = {"nurse": np.where(np.arange(N) % 2, names[rated], ""), "lamp": names[rng.integers(3, size=N)]}  # fmt: skip
    triage = {"label": names[y], **{f"p_{name}": p[:, j] for j, name in enumerate(names)}}
    assert [*loaded(triage | second).first.to_slice()] == ["lamp"]
    # Of two classes, a flag is one only by its name.
    again = np.where(np.arange(N) % 3, np.where(np.arange(N) % 10, Y, 1 - Y), np.nan)
    of_flags = {"y_1": Y, "p": P, "y_2": again, "smoker": again}
    assert [*loaded(of_flags, label="y_1").first.to_slice()] == ["smoker"]
    texts = {"finding": np.where(Y, "lump", "clear"), "p_lump": P, "reader": np.where(again == 1, "lump", np.where(again == 0, "clear", ""))}  # fmt: skip
    assert not loaded(texts, label="finding").first.to_slice()
    few = {name: values[:12] for name, values in (triage | {"nurse": names[y]}).items()}
    assert "nurse" in loaded(few, label="label").first.to_slice()  # a dozen rows tell nothing
    # Of a single row, the names of all models' columns hold its label.
    of_two = {f"{model}: {name}": [p] for model in "ab" for name, p in zip(names, (0.2, 0.7, 0.1), strict=True)}  # fmt: skip
    one = loaded({"truth": ["amber"], **of_two})
    assert [*one.models] == ["a", "b"]
    assert one.first.class_names == tuple(names)
    graded = {"correct": Y, "confidence": P, "grade": np.where(Y, "pass", "fail"), "task": [*"ab"] * 150}  # fmt: skip
    assert [*loaded(graded).first.to_slice()] == ["task"]


def test_of_amounts_the_event_is_more_than_none_if_asked() -> None:
    """A column of millimetres was called text."""
    rain = np.where(Y, P + 0.1, 0.0)
    error = asked({"forecast": P, "rain": rain})
    assert error.readings[0].no_labels
    for found in (
        loaded({"forecast": P, "rain": rain}, **error.readings[1].options),
        loaded({"p": P, "label": rain}, repair=("above-zero",)),
    ):
        np.testing.assert_array_equal(found.first.labels, Y)
        assert found.first.class_names == ("0", "above 0")
    with pytest.raises(InputError, match=r"'label' holds numbers from 0 to 1\.1, which are no classes") as of_label:  # fmt: skip
        loaded({"p": P, "label": rain})
    assert [way.options for way in of_label.value.answers] == [{"repair": ("above-zero",)}]
    # Where 0 does not occur, nothing says what the event is.
    with pytest.raises(InputError, match=r"which are no classes; add a column") as above:
        loaded({"p": P, "label": rain + 0.3})
    assert not above.value.answers
    roles = first_rows(pd.DataFrame({"forecast": P, "rain": rain}).to_csv(index=False).encode())
    assert roles.roles == {"forecast": "score", "rain": "label"}


def test_groups_of_which_each_identifier_has_one_row_are_offered_as_models() -> None:
    p, y = classes(3)
    columns = {"match id": np.repeat(np.arange(150), 2), "tool": [*"ab"] * 150, "label": np.repeat(y[:150], 2)}  # fmt: skip
    columns |= {f"p_{j}": p[:, j] for j in range(3)}
    found = loaded(columns)
    (way,) = [way for way in found.ways if "model_column" in way.options]
    assert (way.label, len(found.models)) == ("one model per value of 'tool'", 1)
    assert [*loaded(columns, **way.options).models] == ["a", "b"]
    assert not loaded(columns, model_column="").ways
    columns["label"] = y  # of which each row has its own
    assert not loaded(columns).ways


@pytest.mark.parametrize("label", ["Result", "label"])
@pytest.mark.parametrize(
    ("labels", "names", "proposed"),
    [
        (("Home win", "Draw", "Away win"), ("Home %", "Draw %", "Away %"), True),
        (("H", "Draw", "A"), ("p_home", "p_draw", "p_away"), True),
        (("1", "X", "2"), ("p_home", "p_draw", "p_away"), False),
        (("not approved", "pending", "not rejected"), ("approved", "pending", "rejected"), False),
    ],
)
def test_classes_in_words_of_their_own_are_not_left_out_with_a_rare_label_that_is_none(
    labels: tuple[str, ...], names: tuple[str, ...], proposed: bool, label: str
) -> None:
    """A click on what was proposed left out all games but the draws."""
    p, y = classes(3)
    said = np.array(labels, dtype=object)[y]
    said[:5] = "Postponed"
    columns = {label: said, **dict(zip(names, p.T, strict=True))}
    with pytest.raises(InputError) as caught:
        loaded(columns)
    error = caught.value
    questions = [one for one in (error, *error.further) if one.unmatched[0]]
    if proposed:
        (question,) = questions
        assert {*question.unmatched[1]} == {*labels, "Postponed"}
        data = loaded(columns, **error.ways[0].options).first
        assert data.class_names == labels
        np.testing.assert_array_equal(data.labels, y[5:])
    else:
        assert not any("drop-labels" in way.options.get("repair", ()) for way in error.ways)


@pytest.mark.parametrize("labels", [("Refused", "Granted"), ("Zu", "Auf")])
@pytest.mark.parametrize("backwards", [False, True])
def test_of_two_columns_both_ways_are_asked_about_and_each_is_read_as_it_says(
    labels: tuple[str, str], backwards: bool
) -> None:
    columns = decided(labels, ("refuse", "grant"), "label")
    if backwards:
        columns = dict(reversed(columns.items()))
    readings = asked(columns).readings
    assert len(readings) == 2
    for reading in readings:
        data = loaded(columns, **reading.options).first
        assert isinstance(data, Predictions)
        for label in labels:
            name = reading.label.split(f"{label} = ")[1].split(",")[0]
            place = data.class_names.index(label)
            np.testing.assert_allclose(data.probs[:, place], columns[f"Prob {name}"], atol=1e-9)
            np.testing.assert_array_equal(data.labels == place, np.array(columns["label"]) == label)
    if labels[0] == "Refused":
        assert "Refused = refuse" in readings[0].label


def test_names_in_an_order_in_which_the_scores_are_right_far_less_often_are_said() -> None:
    def said(columns: Mapping[str, Any], names: Sequence[str]) -> list[str]:
        file = loaded(columns, class_names=tuple(names))
        texts = [n.message for n in file.notices if "in this order" in n.message]
        assert [w.options for w in file.ways] == [{"class_names": DECIDED}] * len(texts)
        return texts

    columns = decided(called="label")
    p, y = classes(3)
    right = [np.mean(p[:, order].argmax(axis=1) == y) for order in ([0, 1, 2], [0, 2, 1])]
    (text,) = said(columns, ("Paid", "Rejected", "Under review"))
    wrong, best = (f"{100 * share:.1f} %" for share in right[::-1])
    assert f"right in {wrong} of the rows, and in {best} in the order Paid" in text
    assert not said(columns, DECIDED)
    # Labels that have nothing to do with the scores follow no order.
    for seed in range(20):
        rng = np.random.default_rng(seed)
        columns["label"] = rng.choice(DECIDED, N)
        assert not said(columns, DECIDED)


def test_a_count_of_the_first_rows_is_not_said_to_be_that_of_the_file() -> None:
    n = 1_200
    p = np.random.default_rng(0).dirichlet((1, 1, 1), n).round(6)
    columns: dict[str, Any] = {"name": [f"c{i}" for i in range(n)]}
    columns |= {f"p_{c}": p[:, j] for j, c in enumerate("abc")}
    with pytest.raises(InputError, match="'name' has at least 1,000 values"):
        loaded(columns)


def test_the_number_at_the_end_of_a_name_identifies_texts_that_nearly_all_differ() -> None:
    def found(name: str, copies: int, text: bool = True) -> str | None:
        numbers = [i if i >= copies else 0 for i in range(N)]
        own = [f"CLM-{i}" for i in numbers] if text else numbers
        return loaded({name: own, "label": Y, "p": P}).recognition.id_column

    assert found("Claim No.", 10) == "Claim No."
    assert found("Policy number", 0, text=False) == "Policy number"
    assert found("Claim No.", 30) is None
    assert found("Policy number", 10, text=False) is None
    assert found("number of visits", 0, text=False) is None


def test_an_answer_with_weights_is_a_command_that_works(tmp_path: Path) -> None:
    path = tmp_path / "weighted.csv"
    columns = {
        "sampling_weight": 1 + 3 * (1 - Y),
        "is_fraud": np.array(["N", "Y"])[Y],
        "a": P,
        "b": P**1.3,
    }
    pd.DataFrame(columns).to_csv(path, index=False)
    models = asked(columns).readings[0].options
    with pytest.raises(InputError) as caught:
        loaded(columns, **models)
    way = Reading.joined([asked(columns).readings[0], caught.value.readings[0]])
    assert way.in_shell().endswith(" --weight sampling_weight")
    assert "weighted rows" in run_successfully("audit", path, *shlex.split(way.in_shell()))


def test_a_column_called_like_weights_is_asked_about_with_what_it_changes(tmp_path: Path) -> None:
    columns: dict[str, Any] = {"sampling_weight": 1 + 3 * (1 - Y), "is_fraud": Y, "p": P}
    question = asked(columns)
    means = [
        ", ".join(
            f"{name} {100 * np.average(values, weights=weights):.1f} %"
            for name, values in (("expected", P), ("observed", Y))
        )
        for weights in (columns["sampling_weight"], None)
    ]
    assert question.what == "does 'sampling_weight' say how much each row counts?"
    assert [way.label.replace("\u00a0", " ") for way in question.readings] == [
        f"weighted by 'sampling_weight' ({means[0]})",
        f"without weights ({means[1]})",
    ]
    path = tmp_path / "weighted.csv"
    pd.DataFrame(columns).to_csv(path, index=False)
    refused = run("audit", path)
    assert refused.exit_code == 2
    for way, weighted in zip(question.readings, (True, False), strict=True):
        assert f"{way.label}: {way.in_shell()}" in refused.stderr
        out = run_successfully("audit", path, *shlex.split(way.in_shell()))
        assert ("weighted rows" in out) == weighted
    # Nothing changes by weights that are all alike; a map that is applied needs none.
    loaded({**columns, "sampling_weight": 1 + 0 * Y})


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_first_rows_show_all_digits_of_long_identifiers(tmp_path, suffix):
    ids = [2**53 + 1 + 2 * i for i in range(12)]
    gaps = [None, *(123_456_789_012_345_678 + i for i in range(11))]
    labels, scores = [0, 1] * 6, [i / 12 for i in range(12)]
    frame = pl.DataFrame({"case": ids, "account": gaps, "label": labels, "p": scores})
    path = tmp_path / f"rows{suffix}"
    how = {".csv": "write_csv", ".jsonl": "write_ndjson", ".parquet": "write_parquet"}
    getattr(frame, how[suffix])(path)
    cells = first_rows(path).cells
    assert cells["case"] == tuple(map(str, ids[:8]))
    assert cells["account"] == ("", *map(str, gaps[1:8]))


# ---- Numbers that stand for missing ones


@pytest.mark.parametrize("fill", [9.96921e36, 1e20, 1e30, -99, -999, -9999, -32767, -32768, 99999])
def test_labels_that_are_fill_values_are_missing(fill):
    """They were offered as amounts above 0, which are events."""
    label = np.where(np.arange(len(Y)) % 50 == 7, fill, Y)
    words = np.where(label == fill, str(fill), np.array(["no", "yes"])[Y])
    for column in (label, words, label.astype(int) if abs(fill) < 1e9 else label):
        with pytest.raises(InputError, match="rows have no label: read as missing: '") as error:
            loaded({"p": P, "label": column})
        (way,) = error.value.answers
        found = loaded({"p": P, "label": column}, **way.options).first
        np.testing.assert_array_equal(found.labels, Y[label != fill])
    with pytest.raises(InputError, match="rows have no label: read as missing: '"):
        loaded({"p": P, "rain": label})


def test_fill_values_beside_amounts_classes_and_pairs_of_columns():
    gone = np.arange(len(Y)) % 50 == 7
    rain = np.where(gone, 1e20, np.where(Y, 250 * P, 0.0))
    found = loaded({"p": P, "label": rain}, repair=("above-zero", "drop-missing"))
    np.testing.assert_array_equal(found.first.labels, Y[~gone])
    outcome = {"wet": P, "wet_outcome": np.where(gone, -999, Y)}
    assert loaded(outcome, repair=("drop-missing",)).first.n == (~gone).sum()
    # A class that is called so is one.
    p, y = classes(3)
    table = dict(zip(("p_0", "p_1", "p_99999"), p.T, strict=True))
    found = loaded({**table, "label": np.array([0, 1, 99999])[y]})
    np.testing.assert_array_equal(found.first.labels, y)


@pytest.mark.parametrize("label", [np.array(["nein", "ja"])[Y], Y])
def test_models_with_fill_values_are_no_classes(label):
    """Three columns in percent, with -999 where a model failed, were taken for three classes."""
    names = ("P_ICON [%]", "P_WRF [%]", "P_COSMO [%]")
    scores = {n: (100 * np.clip(P + 0.05 * j, 0, 1)).round(2) for j, n in enumerate(names)}
    scores["P_WRF [%]"][3::50] = -999
    for chosen in ({}, {"label": "Sturm"}):
        with pytest.raises(InputError, match="are they models") as error:
            loaded({**scores, "Sturm": label}, **chosen)
        assert error.value.readings[0].options["models"] == names


def test_models_below_each_other_are_found_where_only_what_was_right_is_known():
    rows = [f"q{i},{m},{(7 * i + j) % 10 / 10},{(i + j) % 2}" for j, m in enumerate("ab") for i in range(1_200)]  # fmt: skip
    head = "question_id,model_version,confidence,correct"
    loaded = read("\n".join([head, *rows]).encode(), name="x.csv")
    assert [*loaded.models] == ["a", "b"]
    assert loaded.recognition.id_column == "question_id"
    gaps = read("\n".join([head, *rows[3:]]).encode(), name="x.csv")
    assert any("(not 'q0', 'q1', 'q2')" in n.message for n in gaps.notices)
    apart = ReadingOptions(model_column="")
    assert "(--model-column model_version)" in read("\n".join([head, *rows]).encode(), name="x.csv", options=apart).recognition.of_two_models  # fmt: skip


def test_a_name_that_says_whose_probability_it_is_is_believed_beside_a_prediction() -> None:
    """Found by a stranger: the answer to a question about the label was followed by another question."""
    p, y = event()
    options = ReadingOptions(label="readmitted")
    predicted = (p > 0.2).astype(int)  # not where the score is at least 1/2
    columns = {"P(readmission)": 0.6 * p, "predicted": predicted, "readmitted": y}
    loaded = read(pd.DataFrame(columns).to_csv(index=False).encode(), options=options)
    np.testing.assert_allclose(loaded.first.probs[:, 1], 0.6 * p)
    for name in ("P(predicted)", "score"):
        other = {name: 0.6 * p} | {k: v for k, v in columns.items() if k != "P(readmission)"}
        with pytest.raises(InputError, match="lies below 1/2"):
            read(pd.DataFrame(other).to_csv(index=False).encode(), options=options)


def test_yes_and_no_are_no_better_classes_0_and_1_than_numbers() -> None:
    called = np.where(P + 0.2 * np.random.default_rng(3).normal(size=N) > 0.5, "yes", "no")
    columns = {"called": called, "dropout": Y, "p_0": 1 - P, "p_1": P}
    error = asked(columns)
    assert "named after the values of several columns: called, dropout" in error.what
    np.testing.assert_array_equal(loaded(columns, label="dropout").first.labels, Y)


def test_scores_of_another_model_in_percent_are_offered() -> None:
    other = 100 * np.clip(0.8 * P + 0.05, 0, 1)
    columns = {"outcome": Y, "vendor B p_fraud": P, "Score A (%)": other}
    (way,) = (w for w in loaded(columns, label="outcome").ways if "models" in w.options)
    both = loaded(columns, **({"label": "outcome"} | dict(way.options))).models
    np.testing.assert_allclose(
        [data.probs[:, 1] for data in both.values()], [P, other / 100], atol=1e-12
    )


def test_a_second_score_without_a_word_for_it_is_offered_as_a_model_and_is_no_group() -> None:
    """Percentages, whole ones too, are offered as such; what the labels hardly follow, and points, are groups."""
    rng = np.random.default_rng(5)
    noisy, own = np.clip(P + 0.05 * rng.normal(size=N), 0, 1), {"score": P, "outcome": Y}
    for values, repair in (
        (noisy.round(4), ()),
        ((100 * noisy).round(1), ("percent",)),
        ((100 * noisy).round().astype(int), ("percent",)),
    ):
        read = loaded({**own, "acme": values})
        (way,) = (w for w in read.ways if "models" in w.options)
        assert way.options["models"] == ("score", "acme")
        assert way.options.get("repair", ()) == repair
        assert read.first.cuts.keys().isdisjoint({"acme"})
        assert any("'acme' may hold scores of another model" in n.message for n in read.notices)
        both = loaded({**own, "acme": values}, **way.options).models
        np.testing.assert_allclose(both["acme"].probs[:, 1], noisy, atol=0.006)
        assert "acme" in loaded({**own, "acme": values}, groups=("acme",)).recognition.groups
    weak = np.clip(P + 1.5 * rng.normal(size=N), -1, 2) / 3 + 1 / 3
    for values in (weak, (20 * noisy).round().astype(int), rng.integers(18, 90, N)):
        read = loaded({**own, "acme": values})
        assert not any("models" in w.options for w in read.ways)


def test_whole_percents_of_two_vendors_are_asked_about_as_models() -> None:
    rng = np.random.default_rng(5)
    whole = [(100 * np.clip(P + d * rng.normal(size=N), 0, 1)).round().astype(int) for d in (0, 0.05)]  # fmt: skip
    for first in (whole[0], 0.99 * whole[0] + 0.25):
        error = asked({"vendor_a": first, "vendor_b": whole[1], "outcome": Y})
        assert error.readings[0].options["models"] == ("vendor_a", "vendor_b")
    counts = {name: rng.integers(0, 60, N) for name in ("n_visits", "n_drugs")}
    with pytest.raises(InputError, match="no probability columns"):
        loaded({**counts, "outcome": Y})


@pytest.mark.parametrize("value", [4, 87, 87.5])
def test_one_row_above_1_may_be_in_percent(value) -> None:
    file = f"score,y\n{value},1\n".encode()
    with pytest.raises(InputError, match=rf"'score' is {value}, outside \[0, 1\]") as caught:
        read(file)
    (answer,) = caught.value.answers
    data = read(file, options=ReadingOptions().answered(answer)).first
    np.testing.assert_allclose(data.probs[:, 1], value / 100)
    with pytest.raises(InputError, match="look like points"):
        read(b"score,y\n450,1\n")


@pytest.mark.parametrize(
    ("word", "first"),
    [("dispute", ("others-no",)), ("open", ("drop-labels",)), ("pending", ("drop-missing",))],
)
def test_the_answer_that_keeps_all_rows_comes_first_unless_a_label_says_no_outcome(word, first):
    outcome = np.where(Y == 1, "default", "paid").astype(object)
    outcome[:: 100 // 8] = word
    with pytest.raises(InputError) as caught:
        loaded({"score": P, "outcome": outcome})
    error = caught.value
    assert error.answers[0].options["repair"] == first
    assert len(error.answers) == (3 if word == "dispute" else 1)
    options = ReadingOptions().answered(error.answers[0])
    rows = loaded({"score": P, "outcome": outcome}, **vars(options)).first
    assert rows.n == (N if word == "dispute" else np.sum(outcome != word))
    assert rows.labels.sum() == np.sum(outcome == "default")


def test_a_class_that_no_row_has_is_said_to_be_assumed() -> None:
    for label, other in (("No", "yes"), ("yes", "no"), ("good", "bad")):
        file = read(f"score,y\n0.3,{label}\n".encode())
        assert any(f"no row has '{other}', which is assumed" in n.message for n in file.notices)
    file = read(b"score,y\n0.3,no\n0.6,yes\n")
    assert not any("assumed" in n.message for n in file.notices)


# ---- Several models of several columns


def sets(style: str, *, n: int = 300, models: Sequence[str] = ("v3", "v2"), turned: bool = True) -> tuple[dict[str, Any], np.ndarray]:  # fmt: skip
    """Columns of two models of three classes, the second one in another order of these, and the classes."""
    rng, names = np.random.default_rng(1), ("ok", "spam", "hate")
    p = rng.dirichlet([1, 1, 1], n)
    labels = np.array([rng.choice(names, p=row) for row in p])
    each = (p, 0.6 * p + 0.4 * rng.dirichlet([1, 1, 1], n))
    columns = {}
    for model, scores, order in zip(models, each, ((0, 1, 2), (2, 0, 1)), strict=True):
        for j in order if turned else (0, 1, 2):
            columns[style.format(m=model, c=names[j])] = scores[:, j].round(4)
    return columns, labels


STYLES = ("mod_{m}.{c}", "{m}_p_{c}", "p_{c}_{m}", "{c}_{m}", "{m}({c})", "p_{m}_{c}", "{m} {c}")


@pytest.mark.parametrize("style", STYLES)
def test_sets_that_sum_to_1_each_are_models_without_labels(style: str) -> None:
    """Found by a stranger: without labels, only the last of two models was read."""
    columns, labels = sets(style)
    labelled = loaded({**columns, "label": labels})
    with pytest.raises(InputError, match="2 models of 3 probability columns each found"):
        loaded(columns)
    content = pd.DataFrame(columns).to_csv(index=False).encode()
    file = read(content, name="x.csv", options=ReadingForMap())
    assert [*file.models] == [*labelled.models] == ["v3", "v2"]
    for name, data in file.models.items():
        own = labelled.models[name]
        order = [data.class_names.index(c) for c in own.class_names]
        np.testing.assert_allclose(data.probs[:, order], own.probs)


def test_models_whose_columns_alternate_are_told_apart() -> None:
    columns, _ = sets("{c}_{m}", turned=False)
    content = pd.DataFrame({k: columns[k] for k in sorted(columns)}).to_csv(index=False).encode()
    file = read(content, name="x.csv", options=ReadingForMap())
    assert {*file.models} == {"v2", "v3"}


def test_columns_that_pair_in_two_ways_are_asked_about() -> None:
    p = P.round(3)
    columns = {"a_x": p, "a_y": 1 - p, "b_x": 1 - p, "b_y": p}
    content = pd.DataFrame(columns).to_csv(index=False).encode()
    with pytest.raises(InputError, match="several ways") as caught:
        read(content, name="x.csv", options=ReadingForMap())
    for reading, names in zip(caught.value.readings, (("a", "b"), ("x", "y")), strict=True):
        file = read(content, name="x.csv", options=ReadingForMap().answered(reading))
        assert tuple(file.models) == names


def test_labels_are_spelt_alike_for_all_models() -> None:
    """The numbers of the labels count classes in the order of the alphabet, which a weak model does not tell."""
    columns, labels = sets("{m}.{c}", turned=False)
    weak = np.random.default_rng(5).dirichlet([1, 1, 1], len(labels))
    columns |= {f"v2.{c}": weak[:, j].round(4) for j, c in enumerate(("ok", "spam", "hate"))}
    codes = np.unique(labels, return_inverse=True)[1]
    file = loaded({**columns, "label": codes})
    assert len(file.models) == 2
    for data in file.models.values():
        np.testing.assert_array_equal(np.array(data.class_names)[data.labels], labels)


def test_models_that_contradict_each_other_about_the_labels_are_asked_about() -> None:
    columns, labels = sets("{m}.{c}", turned=False)
    columns |= {f"v2.{c}": columns[f"v3.{o}"] for c, o in (("ok", "spam"), ("spam", "hate"), ("hate", "ok"))}  # fmt: skip
    codes = np.array([("ok", "spam", "hate").index(each) for each in labels])
    error = asked({**columns, "label": codes})
    assert [r.label for r in error.readings] == ["only 'v3'", "only 'v2'"]
    file = loaded({**columns, "label": codes}, **error.readings[0].options)
    assert (file.first.probs.argmax(axis=1) == file.first.labels).mean() > 0.5


@pytest.mark.parametrize("weak", [False, True])
def test_a_model_of_few_rows_that_the_labels_hardly_follow_stays_one(weak: bool) -> None:
    columns, labels = sets("{m}.{c}", n=40)
    if weak:
        p = np.random.default_rng(2).dirichlet([3, 3, 3], 40).round(4)
        columns |= {f"v2.{c}": p[:, j] for j, c in enumerate(("ok", "spam", "hate"))}
    assert [*loaded({**columns, "label": labels}).models] == ["v3", "v2"]


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("label", ["label", "final_action"])
def test_models_of_several_columns_are_chosen_by_their_names(style: str, label: str) -> None:
    columns, labels = sets(style)
    both = loaded({**columns, label: labels}, models=("v2", "v3"), label=label)
    assert [*both.models] == ["v2", "v3"]
    with pytest.raises(OptionError, match="'v22' is not in the file"):
        loaded({**columns, label: labels}, models=("v2", "v22"), label=label)
    one = loaded({**columns, label: labels}, models="v2", label=label)
    assert len(one.models) == 1
    order = [one.first.class_names.index(c) for c in both.first.class_names]
    np.testing.assert_allclose(one.first.probs[:, order], both.first.probs)
    assert not one.roles.features
    assert not one.roles.groups
    assert any("not used: " in notice.message for notice in one.notices)


def test_a_name_that_no_model_has_is_refused() -> None:
    columns, labels = sets("mod_{m}.{c}")
    for names in (("v3", "v4"), ("mod",), ("v3", "mod_v2.ok")):
        with pytest.raises(OptionError, match="is not in the file"):
            loaded({**columns, "label": labels}, models=names)


def test_columns_of_a_model_that_was_not_chosen_are_no_groups() -> None:
    columns, labels = sets("mod_{m}.{c}")
    file = loaded({**columns, "label": labels}, scores=("mod_v3*",))
    assert not file.roles.features
    assert not file.roles.groups


def test_percentages_of_two_models_are_asked_about_as_such() -> None:
    columns, _ = sets("mod_{m}.{c}")
    content = pd.DataFrame({k: 100 * v for k, v in columns.items()}).to_csv(index=False).encode()
    with pytest.raises(InputError, match="v3 and v2 sum to 100") as caught:
        read(content, name="x.csv", options=ReadingForMap())
    (reading,) = caught.value.readings
    file = read(content, name="x.csv", options=ReadingForMap().answered(reading))
    assert [*file.models] == ["v3", "v2"]


@pytest.mark.parametrize("style", STYLES)
def test_the_role_of_a_model_goes_to_all_its_columns(style: str) -> None:
    """Found by a stranger: a click on one of four columns of a second model made five models."""
    columns, labels = sets(style)
    content = pd.DataFrame({**columns, "label": labels}).to_csv(index=False).encode()
    first, second = ([style.format(m=m, c=c) for c in ("ok", "spam", "hate")] for m in ("v3", "v2"))
    alone = ReadingOptions(models="v3")
    shown = first_rows(content, options=alone, read=read(content, name="x.csv", options=alone))
    options = shown.with_role(second[1], "model")
    file = read(content, name="x.csv", options=options)
    assert len(file.models) == 2
    assert {c for s in file.roles.scores for c in s.columns} == {*first, *second}
    # And back: without one of its columns, a model is none.
    shown = first_rows(content, options=options, read=file)
    assert {shown.roles[name] for name in (*first, *second)} == {"score"}
    one = read(content, name="x.csv", options=shown.with_role(second[0], "ignored"))
    assert {*one.roles.scores[0].columns} == {*first}
    assert len(one.models) == 1


def test_another_label_leaves_two_models_as_they_are() -> None:
    columns, labels = sets("mod_{m}.{c}")
    content = pd.DataFrame({**columns, "a": labels, "b": np.roll(labels, 1)}).to_csv(index=False).encode()  # fmt: skip
    shown = first_rows(content)
    for label in ("a", "b"):
        file = read(content, name="x.csv", options=shown.with_role(label, "label"))
        assert [*file.models] == ["v3", "v2"]
        assert file.roles.label == label
    unlabelled = first_rows(pd.DataFrame(columns).to_csv(index=False).encode())
    assert unlabelled.as_shown().scores is None


# ---- Answers of a language model, several for each prompt


def graded(n: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    p = expit(rng.normal(0.5, 1.0, n))
    return pd.DataFrame(
        {
            "prompt_id": [f"q{i // 4:03d}" for i in range(n)],
            "category": rng.choice(["maths", "law", "medicine"], n),
            "verbalized_confidence": (5 * np.round(20 * p)).astype(int),
            "sum_logprob": np.log(p).round(5),
            "grade": np.where(rng.random(n) < p, "correct", "incorrect"),
        }
    )


@pytest.mark.parametrize("words", [("correct", "incorrect"), ("right", "wrong")])
def test_words_say_what_was_right_beside_a_confidence_and_a_category_is_a_group(words) -> None:
    rows = graded()
    right = rows.grade == "correct"
    rows["grade"] = np.where(right, *words)
    data = loaded(rows).first
    assert isinstance(data, ConfidencePredictions)
    np.testing.assert_array_equal(data.correct, right)
    np.testing.assert_array_equal(data.confidence, rows.verbalized_confidence / 100)
    assert "category" in data.groups
    # Of classes that were predicted, it is the true one.
    assert "category" not in loaded(rows.assign(predicted=rows.category)).first.groups


def test_of_two_confidences_it_is_asked_which_one_to_judge() -> None:
    rows = graded()
    rows["logprob_confidence"] = np.exp(rows.pop("sum_logprob"))
    with pytest.raises(InputError, match="2 columns say how sure the prediction was") as caught:
        loaded(rows)
    stated, logged, both = caught.value.answers
    found = loaded(rows, **stated.options).first.confidence
    np.testing.assert_array_equal(found, rows.verbalized_confidence / 100)
    found = loaded(rows, **logged.options).first.confidence
    np.testing.assert_allclose(found, rows.logprob_confidence)
    assert len(loaded(rows, **both.options).models) == 2


def test_log_probabilities_are_known_by_their_names_and_values() -> None:
    rows = graded()
    chosen = loaded(rows, scores=("sum_logprob",))
    for found in (chosen, loaded(rows.drop(columns="verbalized_confidence"))):
        np.testing.assert_allclose(found.first.confidence, np.exp(rows.sum_logprob))
    # What is above 0 is no logarithm of a probability.
    with pytest.raises(InputError):
        loaded(rows.assign(sum_logprob=-rows.sum_logprob), scores=("sum_logprob",))


@pytest.mark.parametrize("first", ["sure", "mark"])
def test_roles_of_confidence_and_of_what_was_right_stay_in_any_order(first) -> None:
    rows = graded().rename(columns={"verbalized_confidence": "sure", "grade": "mark"})
    rows["mark"] = rows["mark"].map({"correct": "ok", "incorrect": "bad"})
    table = rows.drop(columns="sum_logprob").assign(other=0.5).to_csv(index=False).encode()
    roles = {"sure": "confidence", "mark": "correct"}
    shown = first_rows(table)
    for name in sorted(roles, key=lambda name: name != first):
        shown = first_rows(table, options=shown.with_role(name, roles[name]))
    assert {name: shown.roles[name] for name in roles} == roles


def test_a_right_answer_that_equals_no_answer_is_refused() -> None:
    rows = graded().assign(answer="41", grade="x")
    with pytest.raises(InputError, match="equals none of the answers"):
        loaded(rows, answers="answer", cluster_column="prompt_id")


@pytest.mark.parametrize("comma", ["score", "age"])
def test_a_column_of_decimal_points_beside_one_of_decimal_commas_is_read_as_well(comma) -> None:
    p, labels = event()
    columns = {
        "label": labels,
        "score": p,
        "age": 20 + 60 * np.random.default_rng(1).random(p.size),
    }
    texts = {n: [f"{v:.3f}" for v in c] if n != "label" else c for n, c in columns.items()}
    texts[comma] = [text.replace(".", ",") for text in texts[comma]]

    def found() -> Predictions:
        content = pd.DataFrame(texts).to_csv(index=False, sep=";").encode()
        return read(content, name="x.csv").first

    if comma == "score":
        # Three digits after each point may be thousands.
        with pytest.raises(InputError):
            found()
        texts["age"] = [f"{v:.2f}" for v in columns["age"]]
    np.testing.assert_allclose(found().probs[:, 1], p, atol=6e-4)
    assert "age" in found().numbers
    texts["score"][1:3] = ["0.25", "0,5"]
    with pytest.raises(InputError):
        found()
