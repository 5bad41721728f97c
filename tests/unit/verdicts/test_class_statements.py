"""What is said of classes, by simulation with known truth: CAL012, CAL013, CAL020, CAL023."""

import re
from typing import get_args

import numpy as np
import pytest

import calviz
from calviz.core.errors import NotAvailable
from calviz.core.words import outside_range
from calviz.figures.class_bars import headline
from calviz.sample.class_gaps import ClassView, class_ranges, predicted_class_sums
from calviz.sample.error_bars import CLASS_TEST, CLASSES
from calviz.sample.sample import Sample
from calviz.verdicts.analysis import findings_of
from calviz.verdicts.class_checks import of_the_top_label, one_vs_rest
from tests.inputs.simulated import draw_labels

CODES = ("CAL012", "CAL013", "CAL020", "CAL021", "CAL022", "CAL023")


def model(n, k, seed, concentration=0.3, sharpen=1.0):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(k, concentration), n)
    labels = draw_labels(probs, rng)
    probs = np.maximum(probs, 1e-300) ** sharpen
    return calviz.Predictions(probs=probs / probs.sum(axis=1, keepdims=True), labels=labels)


def findings(data, codes=CODES, reduction=None):
    return [f for f in findings_of(Sample(data, reduction, resamples=200)) if f.code in codes]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "k", "concentration"),
    [(200, 2, 0.3), (1_000, 2, 0.03), (500, 10, 0.1), (2_000, 10, 0.02), (1_000, 100, 0.05)],
)
def test_ranges_hold_all_classes_of_a_calibrated_model(n, k, concentration):
    # Labels redrawn many times: a class of any view is outside in at most the share of files that it may.
    rng = np.random.default_rng(5)
    probs = rng.dirichlet(np.full(k, concentration), n)
    base = Sample(calviz.Predictions(probs=probs, labels=np.zeros(n, int)))
    ranges = {view: class_ranges(base, view=view).range for view in get_args(ClassView)}
    winner, confidence = probs.argmax(1), probs.max(1)
    files, outside = 600, dict.fromkeys(get_args(ClassView), 0)
    for _ in range(files):
        y = draw_labels(probs, rng)
        gap = confidence - (winner == y)
        with np.errstate(invalid="ignore"):
            values = {
                view: np.bincount(by, gap, minlength=k) / np.bincount(by, minlength=k)
                for view, by in (("predicted-class", winner), ("true-class", y))
            }
        values["one-vs-rest"] = probs.mean(0) - np.bincount(y, minlength=k) / n
        for view, (low, high) in ranges.items():
            outside[view] += bool(((values[view] < low) | (values[view] > high)).any())
    # Three standard errors above the level of one test.
    limit = CLASS_TEST * files + 3 * (CLASS_TEST * files) ** 0.5 + 1
    assert max(outside.values()) <= limit, outside


@pytest.mark.slow
def test_calibrated_files_get_no_statement_about_classes_labels_or_dependence():
    spoken = [
        f
        for seed in range(20)
        for n, k, c in ((400, 2, 0.5), (600, 5, 0.1), (500, 30, 0.3))
        for f in findings(model(n, k, seed, c))
    ]
    # A hundredth of files; two of sixty have a probability of 12 %, three of 2 %.
    assert pytest.approx(6 * CLASS_TEST) == CLASSES
    assert len(spoken) <= 2, spoken


def test_cal020_names_the_predicted_class_that_is_off_and_the_page_agrees():
    q = model(4_000, 5, 1)
    rng = np.random.default_rng(2)
    # Where the model says class 2, a third of the labels go elsewhere.
    labels = q.labels.copy()
    moved = (q.probs.argmax(1) == 2) & (rng.random(q.n) < 1 / 3)
    labels[moved] = rng.choice([0, 1, 3, 4], int(moved.sum()))
    data = calviz.Predictions(probs=q.probs, labels=labels, class_names=tuple("abcde"))
    (finding,) = findings(data, ("CAL020",))
    rows = q.probs.argmax(1) == 2
    assert finding.message.startswith("Of 5 predicted classes the model is overconfident on 1 ")
    assert f"says 'c' ({rows.sum():,} rows)" in finding.message
    assert f"mean confidence {100 * q.probs.max(1)[rows].mean():.1f} %" in finding.message
    assert f"accuracy {100 * (labels == 2)[rows].mean():.1f} %" in finding.message
    figure = calviz.figures.ClassBars.compute(data, mode="predicted-class", resamples=50)
    assert np.flatnonzero(figure.over).tolist() == [2]
    assert figure.shares().startswith("Of 5 predicted classes, 1 is overconfident ('c')")


def test_cal020_is_said_of_confidence_only_data_with_predicted_classes():
    rng = np.random.default_rng(0)
    confidence, predicted = rng.uniform(0.5, 1, 3_000), rng.integers(0, 3, 3_000)
    correct = rng.random(3_000) < confidence - 0.2 * (predicted == 1)
    data = calviz.ConfidencePredictions(
        confidence=confidence, correct=correct, predicted=predicted, class_names=tuple("abc")
    )
    finding, labels = findings(data, CODES)
    assert finding.code == "CAL020"
    assert "says 'b'" in finding.message
    # As many are wrong however sure the model is, as if a fifth of these labels were.
    assert labels.code == "CAL021"
    for view in ("true-class", "one-vs-rest"):
        with pytest.raises(NotAvailable):
            class_ranges(Sample(data), view=view)
    assert one_vs_rest(Sample(data)) is None
    assert of_the_top_label(Sample(data)) == " of the top label"


def hidden(seed, n=3_000):
    """The top label exact; of what is left, each other class has another one's share."""
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.full(5, 0.5), n)
    labels = draw_labels(q, rng)
    order = np.argsort(-q, axis=1)
    probs = q.copy()
    others = np.take_along_axis(q, order[:, 1:], axis=1)
    np.put_along_axis(probs, order[:, 1:], np.roll(others, 1, axis=1), axis=1)
    return calviz.Predictions(probs=probs, labels=labels), q


@pytest.mark.slow
def test_cal012_sees_other_classes_that_are_off_behind_an_exact_top_label():
    spoken = 0
    for seed in range(10):
        data, q = hidden(seed)
        np.testing.assert_allclose(data.probs.max(1), q.max(1))
        statements = findings(data, ("CAL012",))
        spoken += any("class-wise ECE" in f.message for f in statements)
        assert of_the_top_label(Sample(data)) == " of the top label"
    assert spoken >= 9
    assert of_the_top_label(Sample(model(3_000, 5, 0, 0.5))) == ""


@pytest.mark.slow
def test_cal012_sees_two_classes_whose_errors_cancel_in_the_top_label():
    # Forecasts that are shifted: too sure of one class as often as not sure enough of the other.
    spoken = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        e = rng.normal(0, 1.5, 3_000)
        y = (rng.random(3_000) < 1 / (1 + np.exp(0.35 - e))).astype(int)
        data = calviz.Predictions(probs=1 / (1 + np.exp(-e)), labels=y)
        statements = findings(data, ("CAL012", "CAL023"), "top-label")
        spoken += "CAL023" in {f.code for f in statements}
    assert spoken == 8


def test_large_data_are_judged_on_some_rows_and_it_is_said(monkeypatch):
    monkeypatch.setattr("calviz.verdicts.class_checks.MOST_ROWS", 2_000)
    data, _ = hidden(0)
    result = one_vs_rest(Sample(data))
    assert result.rows == 2_000
    assert "(judged on 2,000 of 3,000 rows drawn at random)" in result.words


@pytest.mark.slow
def test_the_verdict_says_what_it_is_about_and_which_classes_are_off():
    data, _ = hidden(0)
    sentence = calviz.verdict(data).sentence
    assert sentence.startswith("No miscalibration of the top label found on")
    assert "but the probabilities of all classes are off" in sentence
    assert calviz.verdict(data).direction == "off"
    calm = calviz.verdict(model(3_000, 5, 0, 0.5))
    assert calm.sentence.startswith("No miscalibration found on")
    assert calm.classes_off == ()


def test_the_value_that_is_said_to_be_outside_differs_from_the_ends_that_are_said():
    # In points 0.79 against 0.76: with one decimal both are 0.8.
    value, low, high = outside_range(0.0079, -0.0462, 0.0076)
    assert (value, low, high) == ("0.79", "−4.62", "0.76")
    assert outside_range(-0.0521, -0.0463, 0.0076) == ("−5.2", "−4.6", "0.8")


def many_classes(rows_per_class, k=60, seed=0):
    """Calibrated confidences of k predicted classes with so many rows each; the rest is spread evenly."""
    rng = np.random.default_rng(seed)
    predicted = np.repeat(np.arange(k), rows_per_class)
    confidence = rng.uniform(0.4, 0.95, predicted.size)
    probs = np.repeat((1 - confidence)[:, None] / (k - 1), k, axis=1)
    probs[np.arange(predicted.size), predicted] = confidence
    other = (predicted + rng.integers(1, k, predicted.size)) % k
    labels = np.where(rng.random(predicted.size) < confidence, predicted, other)
    return calviz.Predictions(probs=probs, labels=labels)


@pytest.mark.parametrize("rows", [3, 12, 25])
def test_classes_of_few_rows_are_said_to_show_only_large_gaps(rows):
    data = many_classes(rows)
    figure = calviz.figures.ClassBars.compute(data, mode="predicted-class", resamples=50)
    assert not figure.beyond.any()
    text = figure.shares()
    assert f"; with a median of {rows} rows a class, half of the classes could" in text
    # The same words on page and report, and at the end of the verdict.
    words = text.removesuffix(".").split("; ")[1]
    assert headline([figure])[0].endswith(f"; {words}.")
    verdict = calviz.verdict(data)
    assert verdict.sentence.removesuffix(".").split("; ")[1] == words
    # What is said holds: whatever the labels, the share of classes that can be outside.
    sums = Sample(data).view(predicted_class_sums)
    low, high = figure.band
    mean = sums.score / sums.rows
    gaps = mean[:, None] - np.arange(rows + 1) / rows  # of every number of hits
    outside = (gaps > high[:, None] + 1e-6) | (gaps < low[:, None] - 1e-6)
    smallest = np.where(outside, np.abs(gaps), np.inf).min(axis=1)
    if "above" in words:
        limit = float(re.search(r"above (\d+) points", words)[1]) / 100
        assert np.count_nonzero(smallest > limit) >= 30
    else:
        assert np.count_nonzero(np.isinf(smallest)) >= 30


def test_classes_of_many_rows_are_not_said_to():
    data = many_classes(400, k=8)
    figure = calviz.figures.ClassBars.compute(data, mode="predicted-class", resamples=50)
    assert figure.shares() == (
        "None of 8 predicted classes is outside the range that a calibrated model would show."
    )
    assert "median" not in calviz.verdict(data).sentence
