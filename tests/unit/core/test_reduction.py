"""Reductions: their written form, and which data they are allowed on."""

import pytest

from calviz.core.errors import NotAvailable, OptionError
from calviz.core.events import Reduction
from calviz.core.predictions import ConfidencePredictions, Predictions

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
