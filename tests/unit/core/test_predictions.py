"""Predictions, profiles, reductions, and their checks."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from calviz.core.blocks import Factor
from calviz.core.errors import InputError, NotAvailable, OptionError
from calviz.core.events import Reduction
from calviz.core.predictions import ConfidencePredictions, Predictions, identifier_texts

# ---- `Predictions` and `ConfidencePredictions`: validated once, read-only, told apart by content


PROBS = np.array([[0.2, 0.3, 0.5], [0.6, 0.2, 0.2], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
LABELS = np.array([2, 0, 1, 0])


def predictions(**changes) -> Predictions:
    return Predictions(**({"probs": PROBS, "labels": LABELS} | changes))


def test_the_attributes():
    p = predictions(splits=["a", "b", "a", "b"], groups={"sex": ["f", "m", "m", "f"]}, name="x")
    assert (p.n, p.n_classes, p.kind, p.name) == (4, 3, "probabilities", "x")
    assert p.class_names == ("0", "1", "2")
    assert p.split_names == ("a", "b")
    assert p.groups["sex"].counts() == {"f": 2, "m": 2}
    assert predictions().split_names == ()


def test_one_column_is_the_probability_of_class_1():
    p = Predictions(probs=[0.25, 0.5], labels=[True, False])
    assert p.probs.tolist() == [[0.75, 0.25], [0.5, 0.5]]
    assert p.labels.tolist() == [1, 0]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logits_alone_give_their_softmax(dtype):
    logits = np.random.default_rng(0).normal(scale=30, size=(50, 7)).astype(dtype)
    p = Predictions(logits=logits, labels=np.zeros(50, dtype=int))
    assert p.kind == "logits"
    assert p.probs.dtype == dtype
    np.testing.assert_allclose(p.probs, softmax(logits, axis=1), rtol=1e-5, atol=1e-30)


@pytest.mark.parametrize(
    ("given", "stored"),
    [("float16", "float32"), ("float32", "float32"), ("float64", "float64"), ("int64", "float64")],
)
def test_the_storage_types(given, stored):
    p = Predictions(probs=np.eye(3).astype(given), labels=[0, 1, 2])
    assert p.probs.dtype == stored


def test_nothing_is_copied_and_nothing_can_be_written():
    p = predictions()
    assert np.shares_memory(p.probs, PROBS)
    for array in (p.probs, p.labels):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    with pytest.raises(AttributeError):
        p.name = "other"
    assert PROBS.flags.writeable  # the caller's own array is left as it was


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"probs": None}, "neither probabilities nor logits were given"),
        ({"labels": None}, "nothing to compare with"),
        ({"probs": PROBS[:0], "labels": LABELS[:0]}, "there are no rows"),
        ({"probs": PROBS[:, :1]}, r"'probs' has shape \(4, 1\)"),
        ({"probs": PROBS[None]}, r"'probs' has shape \(1, 4, 3\)"),
        ({"probs": PROBS * 1.2}, "4 of 4 rows do not sum to 1 .*sums to 1.2"),
        ({"probs": PROBS - 0.2}, "row 1: 'probs' is|row 3: 'probs' is"),
        ({"probs": np.where(PROBS == 0.8, np.nan, PROBS)}, r"row 3: 'probs' is missing \(NaN\)"),
        ({"probs": np.where(PROBS == 0.8, np.inf, PROBS)}, "row 3: 'probs' is infinite"),
        ({"probs": PROBS.astype(str)}, "'probs' holds text, expected numbers"),
        ({"labels": [0, 1, 2, 3]}, r"row 4: label 3 but there are 3 classes \(0..2\)"),
        ({"labels": [0, -1, 2, 1]}, r"row 2: label -1 but there are 3 classes"),
        ({"labels": [0, 1.5, 2, 1]}, "row 2: label .*1.5.* is not a whole number"),
        ({"labels": [0, 1, 2]}, "4 rows of probabilities but 3 labels"),
        ({"labels": list("abca")}, "expected class indices 0..2"),
        ({"labels": PROBS}, r"'labels' has shape \(4, 3\)"),
        ({"class_names": ("a", "b")}, "2 class names for 3 classes"),
        ({"class_names": ("a", "b", "a")}, "'a' stands for more than one class"),
        ({"splits": ["a", "b"]}, "'splits' has 2 rows but there are 4 predictions"),
        ({"groups": {"sex": ["f"]}}, "'sex' has 1 rows but there are 4"),
        ({"ids": [1, 2, 3]}, "'ids' has 3 rows"),
        ({"logits": PROBS[:, :2]}, r"logits have shape \(4, 2\) but probs \(4, 3\)"),
        ({"logits": PROBS[0]}, r"'logits' has shape \(3,\), expected 2-D"),
        ({"probs": None, "logits": np.where(PROBS == 0.8, np.nan, PROBS)}, "row 3: 'logits' is"),
    ],
)
def test_what_breaks_a_rule_is_refused_in_a_sentence(changes, words):
    with pytest.raises(InputError, match=words) as caught:
        predictions(**changes)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_labels_may_be_a_column_or_whole_floats():
    assert predictions(labels=LABELS[:, None]).labels.tolist() == LABELS.tolist()
    assert predictions(labels=LABELS.astype(float)).labels.tolist() == LABELS.tolist()


def test_rows_are_taken_with_all_their_columns():
    p = predictions(
        logits=np.log(PROBS),
        splits=["a", "b", "a", "b"],
        groups={"sex": ["f", "m", "m", "f"]},
        ids=["r1", "r2", "r3", "r4"],
        class_names=("x", "y", "z"),
        name="model",
    )
    q = p.split("b")
    assert q.probs.tolist() == PROBS[[1, 3]].tolist()
    assert q.labels.tolist() == [0, 0]
    np.testing.assert_array_equal(q.logits, np.log(PROBS[[1, 3]]))
    assert q.splits.levels == ("b",)
    assert q.groups["sex"].values().tolist() == ["m", "f"]
    assert q.ids.tolist() == ["r2", "r4"]
    assert (q.class_names, q.name) == (("x", "y", "z"), "model")
    assert p.take(np.array([3, 0]), name="two").probs.tolist() == PROBS[[3, 0]].tolist()
    with pytest.raises(InputError, match="no rows left"):
        p.take(np.zeros(4, dtype=bool))
    with pytest.raises(InputError, match="there is no split 'c'; known: a, b"):
        p.split("c")
    with pytest.raises(InputError, match="these data have no splits"):
        predictions().split("a")


def test_the_fingerprint_follows_the_content_and_not_the_name():
    changed = PROBS.copy()
    changed[3] = changed[3, [1, 0, 2]] + [1e-9, -1e-9, 0]
    base = predictions().fingerprint()
    assert predictions(name="other").fingerprint() == base
    assert predictions().renamed("other").fingerprint() == base
    others = [
        predictions(probs=changed),
        predictions(probs=PROBS.astype(np.float32)),
        predictions(labels=LABELS[::-1]),
        predictions(logits=np.log(PROBS)),
        predictions(splits=list("aabb")),
        predictions(splits=list("abab")),
        predictions(groups={"g": list("aabb")}),
        predictions(class_names=("x", "y", "z")),
        predictions(ids=[1, 2, 3, 4]),
    ]
    assert len({p.fingerprint() for p in others} | {base}) == len(others) + 1


def test_renaming_shares_the_arrays():
    p = predictions()
    q = p.renamed("b")
    assert (p.name, q.name) == ("predictions", "b")
    assert q.probs is p.probs


class TestConfidence:
    def test_the_attributes(self):
        c = ConfidencePredictions(confidence=[0.9, 0.4], correct=[1, 0], splits=["a", "b"])
        assert (c.n, c.n_classes, c.kind) == (2, 0, "confidence")
        assert c.split("b").confidence.tolist() == [0.4]
        assert c.renamed("x").name == "x"
        assert c.renamed("x").fingerprint() == c.fingerprint()
        other = ConfidencePredictions(confidence=[0.9, 0.4], correct=[1, 1], splits=["a", "b"])
        assert other.fingerprint() != c.fingerprint()

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"confidence": [0.9, 1.4]}, "row 2: 'confidence' is 1.4, outside"),
            ({"confidence": [0.9, np.nan]}, r"row 2: 'confidence' is missing \(NaN\)"),
            ({"confidence": [0.9]}, "must be 1-D and of one length"),
            ({"confidence": [], "correct": []}, "there are no rows"),
            ({"labels": [0, 7], "class_names": ("a", "b")}, "row 2: label 7"),
        ],
    )
    def test_what_breaks_a_rule_is_refused_in_a_sentence(self, changes, words):
        with pytest.raises(InputError, match=words):
            ConfidencePredictions(**({"confidence": [0.9, 0.4], "correct": [1, 0]} | changes))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("value", [-0.0, -9e-7, -2e-6, 1.0, 1 + 9e-7, 1 + 2e-6, np.nan, np.inf, -np.inf])  # fmt: skip
def test_probabilities_lie_in_the_unit_interval_up_to_rounding(value, dtype):
    probs = np.array([[0.25, 0.75], [1 - value, value]], dtype=dtype)
    # By definition, in the type of the scores.
    fine = bool(((probs >= dtype(-1e-6)) & (probs <= dtype(1 + 1e-6))).all())
    assert fine == (abs(value - 0.5) < 0.5 + 1e-6)
    if fine:
        Predictions(probs=probs, labels=[0, 1])
    else:
        with pytest.raises(InputError, match="class"):
            Predictions(probs=probs, labels=[0, 1])


def test_the_first_bad_number_is_named_although_threads_share_the_rows() -> None:
    probs = np.full((60_000, 20), 0.05, dtype=np.float32)
    for row in (59_999, 41_000, 30_003):
        probs[row, 7] = 1.5
    with pytest.raises(
        InputError, match=r"row 30,?004: 'probs' is 1\.5, outside \[0, 1\] for class 7"
    ):
        Predictions(probs=probs, labels=np.zeros(len(probs), dtype=int))


# ---- Reductions: their written form, and which data they are allowed on


THREE = Predictions(
    probs=[[0.2, 0.3, 0.5], [0.6, 0.2, 0.2]], labels=[2, 1], class_names=("cat", "dog", "top-2")
)
TWO = Predictions(probs=[0.2, 0.7], labels=[0, 1])
ONE = ConfidencePredictions(confidence=[0.9, 0.8], correct=[True, False])


@pytest.mark.parametrize(
    "text", ["top-label", "top-2", "top-10", "within-top-2", "class:cat", "class:top-2", "positive"]
)
def test_the_written_form_is_read_back(text):
    assert Reduction.of(text).key == text
    assert Reduction.of(Reduction.of(text)) == Reduction.of(text)


@pytest.mark.parametrize("text", ["top-1", "within-top-1", "confidence", " top-label "])
def test_the_largest_probability_has_one_name(text):
    assert Reduction.of(text) == Reduction()


@pytest.mark.parametrize("text", ["", "top", "top-0", "top--1", "within-2", "class:", "Positive"])
def test_anything_else_is_refused_in_a_sentence(text):
    with pytest.raises(OptionError, match="is unknown; write top-label, top-2"):
        Reduction.of(text)


@pytest.mark.parametrize(
    ("text", "data", "words"),
    [
        ("positive", THREE, "needs two classes, these data have 3"),
        ("top-4", THREE, "'top-4' needs 4 classes, there are 3"),
        ("class:fox", THREE, "there is no class 'fox'; known: cat, dog"),
    ],
)
def test_what_the_data_do_not_have_is_refused(text, data, words):
    with pytest.raises(OptionError, match=words):
        Reduction.of(text).check(data)


def test_confidence_only_data_have_the_top_label_only():
    Reduction().check(ONE)
    for text in ("top-2", "within-top-2", "class:0", "positive"):
        with pytest.raises(NotAvailable, match="confidence-only"):
            Reduction.of(text).check(ONE)


def test_every_kind_of_reduction_has_words():
    name = THREE.class_names[1]
    many = ("top-label", "top-2", "within-top-2", f"class:{name}")
    for data, texts in ((THREE, many), (TWO, ("positive", "top-label"))):
        for text in texts:
            reduction = Reduction.of(text)
            reduction.check(data)
            assert reduction.label
            assert reduction.score_label
            assert reduction.hit_label


@pytest.mark.parametrize(
    ("data", "key"),
    [
        ((TWO,), "positive"),
        ((THREE,), "top-label"),
        ((ONE,), "top-label"),
        ((TWO, TWO), "positive"),
        ((TWO, ONE), "top-label"),
    ],
)
def test_where_nothing_is_said_the_data_decide(data, key):
    assert Reduction.of(None, *data).key == key
    assert Reduction.of("top-label", *data) == Reduction()


# ---- Identifiers of rows as text, whatever type they come in


DAYS = ["2026-01-01", "2026-01-02"]


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (np.array([1, 20]), ["1", "20"]),
        (np.array([1.0, np.nan]), ["1", ""]),
        (np.array(["a ", "3.0"]), ["a", "3"]),
        (np.array(["ä".encode(), b"3.0"]), ["ä", "3"]),
        (np.array([1, None], dtype=object), ["1", ""]),
        (np.array([1, pd.NA], dtype=object), ["1", ""]),
        (np.array([1.0, float("nan")], dtype=object), ["1", ""]),
        (pd.Series(["a", None], dtype="string").to_numpy(), ["a", ""]),
        (np.array(DAYS, dtype="datetime64[D]"), DAYS),
        (np.array([DAYS[0], "NaT"], dtype="datetime64[ns]"), [f"{DAYS[0]}T00:00:00.000000000", ""]),
        (Factor.of(np.array(["", "3.0"])), ["", "3"]),
    ],
)
def test_every_type_is_written_alike_and_a_missing_one_is_empty(values, texts):
    assert identifier_texts(values) == texts


# ---- Categorical columns


def test_levels_stand_in_the_order_of_their_first_row():
    factor = Factor.of(["test", "cal", "test", "other"])
    assert factor.levels == ("test", "cal", "other")
    assert factor.codes.tolist() == [0, 1, 0, 2]
    assert factor.values().tolist() == ["test", "cal", "test", "other"]
    assert factor.counts() == {"test": 2, "cal": 1, "other": 1}
    assert len(factor) == 4


@pytest.mark.parametrize(
    ("column", "levels"),
    [
        ([3, 1, 3], ("3", "1")),
        ([True, False], ("True", "False")),
        (np.array(["a", None, "a"], dtype=object), ("a", "None")),
        ([], ()),
    ],
)
def test_any_column_can_be_one(column, levels):
    assert Factor.of(column).levels == levels


def test_taking_rows_drops_levels_without_rows():
    factor = Factor.of(["a", "b", "c", "a"])
    taken = factor.take(np.array([False, True, False, True]))
    assert taken.levels == ("a", "b")
    assert taken.values().tolist() == ["b", "a"]


def test_the_mask_of_a_level():
    factor = Factor.of(["a", "b", "a"])
    assert factor.mask("a").tolist() == [True, False, True]
    with pytest.raises(InputError, match="there is no 'z' here; known: a, b"):
        factor.mask("z")


def test_a_factor_is_read_only_and_flat():
    factor = Factor.of(["a", "b"])
    with pytest.raises(ValueError, match="read-only"):
        factor.codes[0] = 1
    assert Factor.of(factor) is factor
    with pytest.raises(InputError, match="must be 1-D"):
        Factor.of([["a"], ["b"]])
