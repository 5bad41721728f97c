"""No header and no layout is read wrong without a word."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calviz
from calviz.core.errors import CalvizError, InputError, OptionError
from calviz.core.predictions import ConfidencePredictions, Predictions
from calviz.data import Loaded, ReadingOptions, read
from tests.inputs.headers import (
    CLASS_SETS,
    MODELS,
    STYLES,
    TARGETS,
    ClassSet,
    HeaderCase,
    Style,
    cases,
    combinations,
    csv_bytes,
    fault,
    folded,
    header_case,
    probabilities,
    spellings,
)
from tests.property.example_counts import FACTOR, examples

if TYPE_CHECKING:
    from tests.inputs.layouts import Layout

# ---- However the columns are called and ordered: each score goes to its class, or the file is refused; never other numbers


REFUSED = "refused"


def outcome(case: HeaderCase, folder: Path) -> str:
    """What became of a file: empty if it was read right, "refused", or what is wrong."""
    path = folder / "predictions.csv"
    path.write_bytes(case.content)
    try:
        data = calviz.load(path)
    except (InputError, OptionError):
        return REFUSED
    return fault(data, case.names, case.probs, case.labels, case.codes)


def tried(files: Iterable[HeaderCase], folder: Path) -> tuple[Counter[str], list[str]]:
    """How many files with class names were read right and refused, and all files that were read wrong."""
    counts: Counter[str] = Counter()
    wrong = []
    for case in files:
        what = outcome(case, folder)
        if what not in ("", REFUSED):
            wrong.append(f"{case}: {what}")
        # Where labels are positions among the sorted names, a question is as good an answer.
        if case.encoding != "position":
            counts[what or "right"] += 1
    return counts, wrong


def sampled(count: int, seed: int, classes: ClassSet | None = None) -> Iterator[HeaderCase]:
    pool = [one for one in combinations() if classes is None or one[1] is classes]
    chosen = np.random.default_rng(seed).permutation(len(pool))[:count]
    return cases([pool[j] for j in chosen])


@pytest.mark.parametrize("classes", CLASS_SETS, ids=lambda c: c.key.replace(" ", "-"))
def test_no_two_classes_are_swapped(classes: ClassSet, tmp_path: Path) -> None:
    _, wrong = tried(sampled(10, len(classes.key), classes), tmp_path)
    assert wrong == []


@pytest.mark.slow
def test_most_headers_are_read(tmp_path: Path) -> None:
    counts, _ = tried(sampled(80, 1), tmp_path)
    assert counts["right"] >= 0.9 * counts.total(), counts


@pytest.mark.slow
def test_every_style_and_every_set_of_classes_in_every_order(tmp_path: Path) -> None:
    """Each order of a style with two sets of classes, and of a set with two styles; with more where more examples are asked for."""
    chosen, met = [], Counter[tuple[Style | ClassSet, str]]()
    for j in np.random.default_rng(0).permutation(len(pool := combinations())):
        style, classes, order = pool[j]
        if min(met[style, order], met[classes, order]) < 2 * FACTOR:
            chosen.append(pool[j])
            met.update([(style, order), (classes, order)])
    counts, wrong = tried(cases(chosen, seed=1), tmp_path)
    assert wrong == []
    assert counts["right"] >= 0.9 * counts.total(), counts


def test_the_files_are_as_many_and_as_different_as_they_should_be() -> None:
    assert len({style.tool for style in STYLES}) == len(STYLES) >= 60
    assert len({classes.names for classes in CLASS_SETS}) == len(CLASS_SETS) >= 12
    for case in sampled(60, 2):
        assert len({name.casefold() for name in case.header}) == len(case.header)
        right = (case.probs.argmax(axis=1) == case.labels).mean()
        assert right > 0.6
        other = (np.roll(case.probs, 1, axis=1).argmax(axis=1) == case.labels).mean()
        assert other < 0.4


def test_a_swap_is_found() -> None:
    probs, labels = probabilities(3)
    names = ("a", "b", "c")

    def what(probs: np.ndarray, labels: np.ndarray, names: Sequence[str]) -> str:
        data = Predictions(probs=probs, labels=labels, class_names=tuple(names))
        return fault(data, ("a", "b", "c"), *probabilities(3))

    assert what(probs, labels, names) == ""
    assert what(probs[:, ::-1], 2 - labels, names[::-1]) == ""
    assert "do not belong together" in what(probs[:, ::-1], labels, names)
    assert "is called" in what(probs, labels, ("b", "a", "c"))
    assert "other numbers" in what(np.roll(probs, 1, axis=0), labels, names)
    assert folded("1.0") == folded("True") == folded("1")


# ---- Names outrank the evidence of the labels: a bad model is read as the bad model it is.


def loaded(columns: Mapping[str, Sequence[object] | np.ndarray]) -> Loaded | InputError:
    """Read a file; the error if it is refused or asks."""
    content = csv_bytes({name: list(values) for name, values in columns.items()})
    try:
        return read(content, name="predictions.csv")
    except InputError as error:
        return error


def only(found: Loaded) -> Predictions | ConfidencePredictions:
    assert len(found.models) == 1, f"read as {len(found.models)} models"
    return found.first


@pytest.mark.parametrize("names", [("no", "yes"), ("0", "1"), ("cat", "dog", "fox")])
@pytest.mark.parametrize("pattern", ["p_{c}", "{c}", "{t}_{c}_PREDICTION", "{c} (prob)"])
@pytest.mark.parametrize("kind", ["reversed", "noise"])
def test_a_bad_model_keeps_its_classes(names: tuple[str, ...], pattern: str, kind: str) -> None:
    k = len(names)
    probs, good = probabilities(k)
    rng = np.random.default_rng(5)
    labels = (good + 1) % k if kind == "reversed" else rng.integers(k, size=len(good))
    words = {"t": TARGETS[0], "m": MODELS[0]}
    scores = {
        pattern.format(**spellings(names[j]), **words): probs[:, j] for j in reversed(range(k))
    }
    found = loaded({TARGETS[0]: [names[y] for y in labels], **scores})
    if not isinstance(found, InputError):
        assert fault(only(found), names, probs, labels) == ""


# ---- One probability of the event.


def of_event(labels: np.ndarray, names: Sequence[str] = ("0", "1")) -> list[str]:
    return [names[y] for y in labels]


def event_fault(found: Loaded, p: np.ndarray, y: np.ndarray, names: Sequence[str]) -> str:
    return fault(only(found), names, np.column_stack([1 - p, p]), y)


def event() -> tuple[np.ndarray, np.ndarray]:
    """P(event), shape (n,), and whether it happened."""
    probs, labels = probabilities(2, seed=3)
    return probs[:, 1], labels


@pytest.mark.parametrize("names", [("0", "1"), ("no", "yes"), ("False", "True")])
@pytest.mark.parametrize("score", ["probability", "y_prob", "score", "pred_prob", "p_event"])
def test_correct_never_outranks_label_and_probability(score: str, names: tuple[str, ...]) -> None:
    p, y = event()
    decided = (p >= 0.5).astype(int)
    found = loaded(
        {
            "id": range(len(p)), "true_label": of_event(y, names), score: p,
            "prediction": of_event(decided, names), "correct": (decided == y).astype(int),
        }
    )  # fmt: skip
    assert isinstance(found, Loaded), str(found)
    assert event_fault(found, p, y, names) == ""


def test_a_confidence_below_one_half_is_none() -> None:
    p, y = event()
    decided = (p >= 0.5).astype(int)
    columns = {"true_label": y, "prediction": decided, "confidence": p}
    for correct in ({}, {"correct": (decided == y).astype(int)}):
        found = loaded({**columns, **correct})
        if isinstance(found, Loaded):
            assert event_fault(found, p, y, ("0", "1")) == ""


def test_a_confidence_of_the_prediction_stays_one() -> None:
    probs, y = probabilities(3)
    top, hit = probs.max(axis=1), probs.argmax(axis=1) == y
    found = loaded({"confidence": top, "correct": hit.astype(int)})
    assert isinstance(found, Loaded), str(found)
    data = only(found)
    assert isinstance(data, ConfidencePredictions)
    assert data.confidence.tolist() == top.tolist()
    assert data.correct.tolist() == hit.tolist()


@pytest.mark.parametrize("columns", ["probability", "p_0,p_1", "p_1,p_0", "prob_no,prob_yes"])
def test_scores_that_rank_in_reverse_are_called_so(columns: str) -> None:
    p, happened = event()
    names = ("no", "yes") if "yes" in columns else ("0", "1")
    y = 1 - happened
    scores = {name: 1 - p if name.endswith(("0", "_no")) else p for name in columns.split(",")}
    found = loaded({"label": of_event(y, names), **scores})
    if isinstance(found, InputError):
        assert "reverse" in str(found)
        return
    assert event_fault(found, p, y, names) == ""
    assert "reverse" in str(calviz.audit(found.first))


RISKS = [
    ("alive", "dead"), ("Alive", "Dead"), ("survived", "died"), ("good", "bad"), ("no", "yes"),
    ("No", "Yes"), ("N", "Y"), ("negative", "positive"), ("neg", "pos"), ("benign", "malignant"),
    ("B", "M"), ("healthy", "sick"), ("stay", "churn"), ("paid", "default"), ("ham", "spam"),
    ("no relapse", "relapse"), ("False", "True"), ("0", "1"),
]  # fmt: skip


@pytest.mark.parametrize("names", RISKS, ids="-".join)
@pytest.mark.parametrize("score", ["probability", "risk"])
def test_the_event_is_the_risk_or_is_asked_for(names: tuple[str, str], score: str) -> None:
    p, y = event()
    for rows in (np.arange(len(p)), np.argsort(y, kind="stable"), np.argsort(-y, kind="stable")):
        found = loaded({"status": of_event(y[rows], names), score: p[rows]})
        if isinstance(found, Loaded):
            assert event_fault(found, p[rows], y[rows], names) == ""
        else:
            assert all(name in str(found) for name in names), str(found)


@pytest.mark.parametrize("names", [("blue", "green"), ("green", "blue"), ("gp", "ms"), ("A", "B")])
def test_of_two_unknown_words_the_event_is_asked_for(names: tuple[str, str]) -> None:
    p, y = event()
    found = loaded({"label": of_event(y, names), "probability": p})
    assert isinstance(found, InputError)
    assert all(name in str(found) for name in names), str(found)


@pytest.mark.parametrize("names", [("no", "yes"), ("blue", "green"), ("alive", "dead")])
def test_advice_does_not_depend_on_the_order_of_rows(names: tuple[str, str]) -> None:
    p, y = event()
    answers = set()
    for rows in (np.argsort(y, kind="stable"), np.argsort(-y, kind="stable")):
        found = loaded({"label": of_event(y[rows], names), "probability": p[rows]})
        answers.add(str(found) if isinstance(found, InputError) else found.first.class_names)
    assert len(answers) == 1


@pytest.mark.parametrize("form", ["array", "list", "pandas", "polars", "categorical", "frame"])
@pytest.mark.parametrize("kept", [(0, 1), (0,), (1,)], ids=["both", "only-0", "only-1"])
def test_zero_and_one_as_text_are_numbers(form: str, kept: tuple[int, ...]) -> None:
    p, y = event()
    rows = np.flatnonzero(np.isin(y, kept))[::-1]
    p, y = p[rows], y[rows]
    texts = of_event(y)
    frame = pd.DataFrame({"label": texts, "probability": p})
    labels = {
        "array": np.array(texts),
        "list": texts,
        "pandas": frame["label"],
        "polars": pl.Series(texts),
        "categorical": pd.Categorical(texts, categories=["1", "0"]),
    }
    data = (
        Predictions.from_frame(frame, label="label")
        if form == "frame"
        else Predictions.from_arrays(labels[form], p)
    )
    assert data.class_names == ("0", "1")
    assert fault(data, ("0", "1"), np.column_stack([1 - p, p]), y) == ""


# ---- Several models, and several true labels per row.


def several(found: Loaded | InputError, truth: Mapping[str, tuple[np.ndarray, np.ndarray]]) -> None:
    """Each model has its own P(event) and labels, or the file is refused without an offer to make the scores sum to 1."""
    if isinstance(found, InputError):
        assert "renormalise" not in [repair.key for repair in found.repairs]
        return
    assert "renormalise" not in [repair.key for repair in found.repairs_offered]
    assert len(found.models) == len(truth)
    left = dict(truth)
    for data in found.models.values():
        assert isinstance(data, Predictions)
        fits = [name for name, (p, _) in left.items() if np.abs(data.probs[:, 1] - p).max() < 1e-6]
        assert len(fits) == 1
        _, y = left.pop(fits[0])
        assert data.labels.tolist() == y.tolist()


@pytest.mark.parametrize(
    "names",
    [
        "p_lr,p_rf", "y_prob_a,y_prob_b", "raw_probability,cal_probability", "oof_lgb,oof_xgb", "lr,rf",
        "prob_model1,prob_model2", "score_v1,score_v2", "lr_prob,rf_prob", "p_lr,p_rf,p_xgb", "before,after",
    ],
)  # fmt: skip
@pytest.mark.parametrize("words", [("0", "1"), ("no", "yes")])
def test_two_scores_of_one_event_are_two_models(names: str, words: tuple[str, str]) -> None:
    p, y = event()
    rng = np.random.default_rng(7)
    z = np.log((p + 1e-3) / (1 - p + 1e-3))
    scores = {
        name: np.round(1 / (1 + np.exp(-(z + rng.normal(0, 0.6, len(p))))), 6)
        for name in names.split(",")
    }
    found = loaded({"id": range(len(p)), "label": of_event(y, words), **scores})
    several(found, {name: (values, y) for name, values in scores.items()})


@pytest.mark.parametrize(
    ("true", "score"),
    [("{c}", "p_{c}"), ("{c}", "pred_{c}"), ("y_{c}", "prob_{c}"), ("{c}_true", "{c}_pred"), ("{c}", "{c}_score")],
)  # fmt: skip
@pytest.mark.parametrize("classes", [("toxic", "obscene", "threat"), ("toxic", "obscene")])
def test_several_true_labels_per_row(true: str, score: str, classes: tuple[str, ...]) -> None:
    rng = np.random.default_rng(8)
    p = np.round(rng.beta(0.8, 1.4, size=(300, len(classes))), 5)
    y = (rng.random(p.shape) < p).astype(int)
    columns = {true.format(c=c): y[:, j] for j, c in enumerate(classes)}
    columns |= {score.format(c=c): p[:, j] for j, c in enumerate(classes)}
    found = loaded({"id": range(len(p)), **columns})
    several(found, {c: (p[:, j], y[:, j]) for j, c in enumerate(classes)})
    if isinstance(found, InputError):
        assert "multi-label" in str(found) or "multilabel" in str(found)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_one_true_label_per_row_in_columns_stays_one(order: tuple[int, ...]) -> None:
    probs, labels = probabilities(3)
    names = ("cat", "dog", "fox")
    columns = {f"true_{names[j]}": (labels == j).astype(int) for j in order}
    found = loaded(columns | {f"p_{c}": probs[:, j] for j, c in enumerate(names)})
    if isinstance(found, Loaded):
        assert fault(only(found), names, probs, labels) == ""


def test_a_file_is_drawn_again_as_it_was() -> None:
    for style, classes, order in combinations()[::2000]:
        first = header_case(style, classes, order, seed=4)
        assert first.content == header_case(style, classes, order, seed=4).content


# ---- Exports in the layouts of other tools: read right, or a question with an answer that is right


def opened(layout: Layout, options: ReadingOptions) -> Loaded:
    return read(layout.content, name=f"x{layout.suffix}", options=options)


def fault_of_layouts(found: Loaded, layout: Layout) -> str:
    """What is wrong with how a file was read; empty if nothing is."""
    data = found.first
    if layout.confidence is not None:
        if not isinstance(data, ConfidencePredictions):
            return "no confidence"
        same = np.allclose(data.confidence, layout.confidence[0], atol=1e-3)
        return "" if same and (data.correct == layout.confidence[1]).all() else "confidence"
    if not isinstance(data, Predictions):
        return "a confidence"
    if layout.models is not None:
        scores = [model.probs[:, 1] for model in found.models.values()]
        same = len(scores) == len(layout.models) and all(
            np.allclose(one, two, atol=1e-4)
            for one, two in zip(scores, layout.models.values(), strict=True)
        )
        return "" if same and (data.labels == layout.y).all() else "models"
    if len(found.models) > 1 or data.probs.shape != layout.p.shape:
        return "shape"
    fits = [
        [i for i in range(layout.p.shape[1]) if np.allclose(column, layout.p[:, i], atol=2e-3)]
        for column in data.probs.T
    ]
    if any(len(fit) != 1 for fit in fits):
        return "scores"
    order = np.array([fit[0] for fit in fits])
    if not (order[data.labels] == layout.y).all():
        return "labels"
    return "" if layout.event in (None, order[1]) else "the event is not the positive class"


def answers(
    layout: Layout, error: InputError, options: ReadingOptions, depth: int = 2
) -> Iterator[Loaded]:
    for reading in error.readings:
        chosen = replace(options, **reading.options)
        try:
            yield opened(layout, chosen)
        except InputError as further:
            if depth > 1:
                yield from answers(layout, further, chosen, depth - 1)
        except CalvizError:
            pass


@cache
def first_answers() -> list[tuple[Layout, Loaded | InputError]]:
    """Each file, and what becomes of it if nothing is said about it."""
    from tests.inputs.layouts import CASES  # they are made when this is imported

    found: list[tuple[Layout, Loaded | InputError]] = []
    for layout in CASES:
        try:
            found.append((layout, opened(layout, ReadingOptions())))
        except InputError as error:
            found.append((layout, error))
    return found


@pytest.mark.slow
def test_an_export_is_read_right_or_asked_about() -> None:
    for layout, found in first_answers():
        if not isinstance(found, InputError):
            assert (layout.asks, fault_of_layouts(found, layout)) == (False, ""), layout.name
            continue
        assert found.readings, layout.name
        if not layout.asks:
            every = answers(layout, found, ReadingOptions())
            assert "" in [fault_of_layouts(answer, layout) for answer in every], layout.name


@pytest.mark.slow
def test_most_exports_are_read_without_a_question() -> None:
    asked = [c.models is None and isinstance(found, InputError) for c, found in first_answers()]
    assert np.mean(asked) < 0.1


# ---- Whatever the table, it is read as it was written; whatever the bytes, they are read or refused in one sentence


ROOT = Path(__file__).resolve().parents[2]

#: Names that are not stripped, folded or taken for numbers, and that every encoding can write.
NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zs", "Zl", "Zp")), min_size=1, max_size=12)  # fmt: skip


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Class names, probabilities with up to 17 digits, labels."""
    k = draw(st.integers(2, 5))
    names = [
        f"c{name}" for name in draw(st.lists(NAMES, min_size=k, max_size=k, unique_by=str.casefold))
    ]
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n = draw(st.integers(1, 30))
    probs = rng.dirichlet(np.full(k, draw(st.sampled_from([0.05, 1.0]))), size=n)
    if draw(st.booleans()):
        probs = np.round(probs, 3)
    return names, probs, rng.integers(k, size=n)  # fmt: skip


def same(content: bytes, name: str, table: tuple[list[str], np.ndarray, np.ndarray]) -> None:
    names, probs, labels = table
    data = read(content, name=name).first
    assert isinstance(data, Predictions)
    assert data.class_names == tuple(names)
    assert data.labels.tolist() == labels.tolist()
    assert np.array_equal(data.probs, probs)


@examples(25)
@given(
    table=tables(),
    separator=st.sampled_from([",", ";", "\t", "|"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL, csv.QUOTE_NONNUMERIC]),
    newline=st.sampled_from(["\n", "\r\n"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    last=st.booleans(),
)
def test_text(
    table: tuple[list[str], np.ndarray, np.ndarray],
    separator: str, quoting: int, newline: str, encoding: str, last: bool,
) -> None:  # fmt: skip
    names, probs, labels = table
    stream = io.StringIO()
    writer = csv.writer(stream, delimiter=separator, quoting=quoting, lineterminator=newline)  # type: ignore[arg-type]
    rows: list[tuple[list[object], str]] = [([f"p_{c}" for c in names], "label")]
    rows += [(list(p), names[y]) for p, y in zip(probs.tolist(), labels, strict=True)]
    writer.writerows([*p, y] if last else [y, *p] for p, y in rows)
    same(stream.getvalue().encode(encoding), "x.csv", table)


@examples(20)
@given(table=tables(), lists=st.booleans())
def test_objects_and_columns(table: tuple[list[str], np.ndarray, np.ndarray], lists: bool) -> None:
    names, probs, labels = table
    rows = [
        {"label": names[y], "probs": dict(zip(names, p, strict=True))}
        for y, p in zip(labels, probs.tolist(), strict=True)
    ]
    same("\n".join(json.dumps(r, ensure_ascii=lists) for r in rows).encode(), "x.jsonl", table)
    columns = {"label": [names[y] for y in labels]} | {f"p_{c}": probs[:, k] for k, c in enumerate(names)}  # fmt: skip
    stream = io.BytesIO()
    pq.write_table(pa.table(columns), stream, row_group_size=7)
    same(stream.getvalue(), "x.parquet", table)
    stream = io.BytesIO()
    np.savez(stream, probs=probs, labels=np.array([names[y] for y in labels]), class_names=np.array(names))  # fmt: skip
    same(stream.getvalue(), "x.npz", table)


BEGINNINGS = [b"", b"label,p_a,p_b\n", b"PK\3\4", b"\x93NUMPY\1\0", b"PAR1", b"ARROW1\0\0", b"\xff\xff\xff\xff", b"\x1f\x8b", b"\xff\xfe", b"{", b"["]  # fmt: skip


@examples(150)
@given(
    begin=st.sampled_from(BEGINNINGS),
    rest=st.one_of(st.binary(max_size=300), st.text(max_size=200).map(lambda t: t.encode("utf-8", "replace"))),
    name=st.sampled_from(["x", "x.csv", "x.npz", "x.parquet", "x.jsonl", "x.npy", "x.arrow"]),
)  # fmt: skip
def test_any_bytes(begin: bytes, rest: bytes, name: str) -> None:
    try:
        assert read(begin + rest, name=name).first.n > 0
    except InputError as error:
        sentence = str(error)
    else:
        sentence = ""
    assert sentence.isprintable()
    assert len(sentence) < 1_500


@pytest.mark.slow
def test_the_fuzzer_finds_nothing(tmp_path: Path) -> None:
    """A short run; ``benchmarks/fuzz_readers.py`` is the long one."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    try:
        from fuzz_readers import Run
    finally:
        sys.path.pop(0)
    run = Run(0, tmp_path)
    run.drive(0, 150 * FACTOR)
    assert run.finds == []
    assert run.kinds["read"] > 0
    assert run.kinds.total() == 150 * FACTOR
