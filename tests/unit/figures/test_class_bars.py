"""Classes: bars and confusion."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import confusion_matrix

import calviz
from calviz.core.errors import NotAvailable, OptionError
from calviz.core.events import BinaryEvents
from calviz.figures.class_bars import ClassBars, headline
from calviz.figures.confusion import Confusion
from calviz.sample.class_gaps import (
    class_expectation,
    class_gaps,
    sums_of_clusters,
    true_class_range,
)
from calviz.sample.sample import Sample
from calviz.sample.slice_tests import p_against_calibrated, slice_sums
from tests.inputs.simulated import draw_labels

# ---- Errors by class against plain loops, simulation and the metrics


def classes(n=500, k=4, seed=0, sharpen=1.0, names=()):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(k, 0.7), n)
    labels = draw_labels(probs, rng)
    probs = probs**sharpen
    probs /= probs.sum(axis=1, keepdims=True)
    return calviz.Predictions(probs=probs, labels=labels, class_names=names)


def test_values_against_a_plain_loop():
    p = classes()
    confidence, hit = p.probs.max(1), p.probs.argmax(1) == p.labels
    modes = ("true-class", "one-vs-rest", "predicted-class")
    own, rest, text = (ClassBars.compute(p, mode=m) for m in modes)
    for k in range(4):
        here = p.probs.argmax(1) == k
        assert text.rows[k] == here.sum()
        assert text.value[k] == pytest.approx(confidence[here].mean() - hit[here].mean())
        mine = p.labels == k
        assert own.rows[k] == mine.sum()
        assert own.value[k] == pytest.approx(confidence[mine].mean() - hit[mine].mean())
        assert rest.value[k] == pytest.approx(p.probs[:, k].mean() - mine.mean())


def test_values_are_those_of_the_metrics():
    p = classes(seed=3)
    figure = ClassBars.compute(p)
    keys = ["over_share", "under_share", "over_mcs", "under_mcs"]
    result = calviz.evaluate(p, keys)
    for which, share, size in (
        (figure.value > 0, "over_share", "over_mcs"),
        (figure.value < 0, "under_share", "under_mcs"),
    ):
        assert which.mean() == pytest.approx(result[share].value)
        if which.any():
            assert figure.value[which].mean() == pytest.approx(result[size].value)


def test_true_class_bars_against_simulation():
    p = classes(n=300, k=3)
    figure = ClassBars.compute(p)
    rng = np.random.default_rng(7)
    confidence, winner = p.probs.max(1), p.probs.argmax(1)
    upto = np.cumsum(p.probs, axis=1)[:, :-1]
    redrawn, resampled = [], []
    for _ in range(1_500):
        y = (rng.random(300)[:, None] > upto).sum(axis=1)
        redrawn.append([(confidence - (winner == y))[y == k].mean() for k in range(3)])
        rows = rng.integers(300, size=300)
        y, gap = p.labels[rows], (confidence - (winner == p.labels))[rows]
        resampled.append([gap[y == k].mean() for k in range(3)])
    band = true_class_range(class_expectation(Sample(p)), 0.95)
    for drawn, pair in ((redrawn, band), (resampled, figure.interval)):
        low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
        np.testing.assert_allclose(pair[0], low, atol=0.12 * (high - low).max())
        np.testing.assert_allclose(pair[1], high, atol=0.12 * (high - low).max())


def test_one_vs_rest_bars_against_simulation():
    # Few expected rows, so that the numbers of rows are skewed.
    p = classes(n=120, k=6, sharpen=2)
    view = Sample(p).view(class_gaps)
    rng = np.random.default_rng(1)
    upto = np.cumsum(p.probs, axis=1)[:, :-1]
    onehot = np.eye(6)
    redrawn, resampled = [], []
    for _ in range(4_000):
        y = (rng.random(120)[:, None] > upto).sum(axis=1)
        redrawn.append((p.probs - onehot[y]).mean(axis=0))
        rows = rng.integers(120, size=120)
        resampled.append((p.probs - onehot[p.labels])[rows].mean(axis=0))
    low, high = view.calibrated(0.95)
    # The correction for continuity is half a row on either side.
    without = low + 0.5 / 120, high - 0.5 / 120
    for drawn, pair in ((redrawn, without), (resampled, view.interval(0.95))):
        low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
        # Numbers of rows are whole: half a row of 120 is what a quantile may be off by.
        np.testing.assert_allclose(pair[0], low, atol=0.5 / 120 + 0.002)
        np.testing.assert_allclose(pair[1], high, atol=0.5 / 120 + 0.002)


@pytest.mark.parametrize("mode", ["true-class", "one-vs-rest", "predicted-class"])
def test_colour_legend_order_and_words_go_by_the_range(mode):
    # A calibrated model: grey bars only, whatever their sign, and no class is called anything.
    figure = ClassBars.compute(classes(400, 5), mode=mode, resamples=100)
    assert not (figure.over | figure.under).any()
    assert (figure.value > 0).any()
    assert figure.shares().endswith("is outside the range that a calibrated model would show.")
    names = [t.name for t in figure.plot().data]
    assert "Within the range" in names
    assert not {"Overconfident", "Too high", "More confident than if calibrated"} & set(names)
    assert headline([figure]) == (
        "No class is outside the range that a calibrated model would show.",
        False,
    )
    # Where another view has no range, as by true class in clusters, that says nothing of it.
    one = {"true-class": "true class", "one-vs-rest": "class against the rest"}.get(
        mode, "predicted class"
    )
    assert headline([figure, replace(figure, band=None, no_range="clusters")]) == (
        f"No {one} is outside the range that a calibrated model would show.",
        False,
    )
    # One class that is said too often, and too surely.
    q = classes(4_000, 5)
    probs = q.probs.copy()
    probs[:, 1] *= 2
    probs /= probs.sum(1, keepdims=True)
    figure = ClassBars.compute(
        calviz.Predictions(probs=probs, labels=q.labels), mode=mode, resamples=100
    )
    assert (figure.beyond != 0).any()
    ranked = np.abs(figure.beyond[figure.ranked()])
    assert (np.diff(ranked) <= 1e-12).all()
    count = int((figure.beyond != 0).sum())
    words, off = headline([figure])
    assert off
    assert f"{count} of 5 " in words
    drawn = {t.name: list(t.customdata) for t in figure.plot().data if t.customdata is not None}
    grey = drawn.pop("Within the range", [])
    drawn.pop("95 % interval")
    assert sorted(grey) == np.flatnonzero(figure.beyond == 0).tolist()
    assert sum(map(len, drawn.values())) == count


def test_a_true_class_above_0_may_be_less_confident_than_a_calibrated_model():
    # The rows of a rare class look overconfident whatever the model does; one that hedges looks less so.
    rng = np.random.default_rng(0)
    n = 20_000
    truth = rng.beta(0.3, 2.0, n)
    labels = (rng.random(n) < truth).astype(int)
    hedged = 0.5 + 0.4 * (truth - 0.5)
    figure = ClassBars.compute(calviz.Predictions(probs=hedged, labels=labels), resamples=100)
    assert figure.value[1] > 0
    assert figure.beyond[1] < 0
    assert "'1'" in figure.shares().split("less confident than a calibrated model would be")[1]


def test_without_rows_of_a_class_and_without_probabilities():
    p = calviz.Predictions(
        probs=np.full((40, 3), 1 / 3), labels=np.arange(40) % 2, class_names=("a", "b", "c")
    )
    figure = ClassBars.compute(p)
    assert figure.class_name == ("a", "b")
    assert figure.missing == ("c",)
    assert "Without rows: 'c'" in figure.describe()
    assert ClassBars.compute(p, mode="one-vs-rest").value.size == 3
    data = calviz.ConfidencePredictions(
        confidence=np.linspace(0.4, 1, 60),
        correct=np.arange(60) % 3 > 0,
        labels=np.arange(60) % 4,
        class_names=tuple("abcd"),
    )
    bars = ClassBars.compute(data)
    assert bars.band is None
    assert "None of 4 true classes is judged" in bars.describe()
    assert "Not judged: no range is known" in [t.name for t in bars.plot().data]
    with pytest.raises(NotAvailable):
        ClassBars.compute(data, mode="predicted-class")
    bars.plot(caption=True)
    with pytest.raises(NotAvailable):
        ClassBars.compute(data, mode="one-vs-rest")
    with pytest.raises(NotAvailable):
        ClassBars.compute(calviz.ConfidencePredictions(confidence=[0.5], correct=[True]))


@pytest.mark.parametrize(
    ("data", "options", "why"),
    [
        (
            lambda p: calviz.profile(pd.DataFrame({"p": p.probs[:, 1], "y": p.labels})),
            {},
            "is not known from a profile.",
        ),
        (
            lambda p: calviz.Predictions(
                probs=p.probs, labels=p.labels, clusters=np.arange(p.n) // 5
            ),
            {},
            "is not known for clustered rows.",
        ),
        (lambda p: p, {"band": False}, "was not computed."),
        (
            lambda p: calviz.ConfidencePredictions(
                confidence=p.probs.max(1),
                correct=p.probs.argmax(1) == p.labels,
                labels=p.labels,
                class_names=p.class_names,
            ),
            {},
            "is not known without the probabilities of all classes.",
        ),
    ],
    ids=["profile", "clusters", "left-out", "confidence-only"],
)
def test_the_reason_why_no_class_is_judged_is_true(data, options, why):
    # A profile of two classes has the probabilities of both.
    figure = ClassBars.compute(data(classes(k=2)), resamples=20, **options)
    assert figure.band is None
    assert (
        figure.shares()
        == f"None of 2 true classes is judged: what a calibrated model would show {why}"
    )


def drawn_at(picture):
    """The height of each class that has a bar."""
    bars = [t for t in picture.data if t.type == "bar" and t.customdata is not None]
    return {int(c): float(y) for t in bars for c, y in zip(t.customdata, t.y, strict=True)}


@pytest.mark.parametrize("k", [6, 60])
def test_classes_of_another_state_keep_its_order_and_places(k):
    before = ClassBars.compute(classes(900, k, sharpen=2), resamples=20)
    after = ClassBars.compute(classes(900, k, sharpen=0.7), resamples=20)
    assert after.class_index[after.shown()].tolist() != before.class_index[before.shown()].tolist()
    first, second = drawn_at(before.plot()), drawn_at(after.plot(like=before))
    assert second == {c: y for c, y in first.items() if c in after.class_index}
    text = str(after.plot(like=before).layout.annotations)
    assert ("The same 20" in text) == (k == 60)


def test_a_class_of_one_state_alone_keeps_its_place_or_follows_the_others():
    def predicted(columns):
        probs = np.full((40, 3), 0.1)
        probs[np.arange(40), columns] = 0.8
        data = calviz.Predictions(probs=probs, labels=np.arange(40) % 3)
        return ClassBars.compute(data, mode="predicted-class")

    before, after = predicted(np.arange(40) % 2), predicted(1 + np.arange(40) % 2)
    first, second = (
        drawn_at(before.plot(order="class")),
        drawn_at(after.plot(order="class", like=before)),
    )
    assert first == {0: 0, 1: 1}
    assert second == {1: 1, 2: 2}
    assert after.plot(like=before).layout.yaxis.range == (2.6, -0.6)


@pytest.mark.parametrize("order", ["value", "beyond", "class"])
def test_orders(order):
    figure = ClassBars.compute(classes(600, 60, sharpen=2), resamples=200)
    shown = figure.shown(order, most=10)
    assert shown.size == 10
    frame = figure.frame(order)
    assert len(frame) == figure.value.size
    assert frame["class_index"].tolist()[:5] == figure.class_index[shown[:5]].tolist()
    if order != "class":
        column = np.abs(frame[order])
        assert (np.diff(column) <= 1e-12).all()
    picture = figure.plot(order=order, most=10, selected=int(figure.class_index[shown[0]]))
    bars = [t for t in picture.data if t.type == "bar" and t.customdata is not None]
    drawn = sorted(int(c) for t in bars for c in t.customdata)
    assert drawn == sorted(figure.class_index[shown].tolist())
    assert len(picture.layout.shapes) == 2


def test_a_thousand_classes_stay_light():
    figure = ClassBars.compute(classes(3_000, 1_000, sharpen=2), resamples=100)
    assert len(figure.plot(caption=True).to_json()) < 120_000


@pytest.mark.parametrize("mode", ["true-class", "one-vs-rest", "predicted-class"])
def test_one_row(mode):
    p = calviz.Predictions(probs=np.array([[0.7, 0.3]]), labels=[0])
    figure = ClassBars.compute(p, mode=mode)
    assert np.isnan(figure.interval[0]).all()
    figure.plot(caption=True, width=350)
    assert "nan" not in figure.describe()


def test_options_are_checked():
    with pytest.raises(OptionError, match="mode"):
        ClassBars.compute(classes(20), mode="both")
    with pytest.raises(OptionError, match="order"):
        ClassBars.compute(classes(20)).plot(order="size")


def test_one_class_alone_leaves_room_for_the_axes():
    # With less, the browser's drawing fails: "something went wrong with axis scaling".
    p = calviz.Predictions(probs=np.array([[0.6, 0.4]]), labels=np.array([1]))
    layout = ClassBars.compute(p, resamples=20).plot(width=472).layout
    assert layout.height - layout.margin.t - layout.margin.b >= 60


@pytest.mark.parametrize("mode", ["predicted-class", "one-vs-rest"])
def test_no_interval_leaves_what_a_gap_can_be(mode):
    # Of two rows, both wrong, one is nearly certain: the upper tail of their mean would exceed 1.
    probs = np.array([[0.995, 0.005], [0.52, 0.48]])
    figure = ClassBars.compute(calviz.Predictions(probs=probs, labels=[1, 1]), mode=mode)
    low, high = (end[np.isfinite(end)] for end in figure.interval)
    assert low.size
    assert low.min() >= -1
    assert high.max() <= 1


@pytest.mark.parametrize("mode", ["predicted-class", "one-vs-rest"])
def test_classes_of_clustered_rows_are_judged_by_their_clusters(mode):
    # Each row ten times, as a cluster: ranges as of the rows alone, or wider, and no class of a calibrated model is outside.
    p = classes(n=600, k=3)
    copies = p.take(np.repeat(np.arange(600), 10))
    clustered = calviz.Predictions(
        probs=copies.probs, labels=copies.labels, clusters=np.arange(6_000) // 10
    )
    alone, figure = (ClassBars.compute(data, mode=mode) for data in (p, clustered))
    for one, other in zip(figure.band, alone.band, strict=True):
        np.testing.assert_allclose(one, other, rtol=0.12)
    assert not figure.beyond.any()
    # The test of slices, at the level of a class.
    winner = copies.probs.argmax(axis=1)
    events = BinaryEvents(copies.probs.max(axis=1), winner == copies.labels)
    sums = slice_sums(events, winner, 3, clustered.clusters.codes)
    p_values = p_against_calibrated(sums, events, winner)
    view = Sample(clustered).view(sums_of_clusters, view="predicted-class")
    for level in 1 - p_values:
        ratio = np.abs(sums.gap) / view.calibrated(level)[1]
        assert ratio[np.isclose(1 - level, p_values)][0] == pytest.approx(1, abs=1e-3)
    # Nothing can be said of few clusters.
    few = ClassBars.compute(
        calviz.Predictions(probs=p.probs, labels=p.labels, clusters=np.arange(600) // 60), mode=mode
    )
    assert few.band is None
    assert headline([few])[0].endswith("would show is not known with so few clusters.")


def test_the_legend_names_intervals_only_where_there_are_some():
    p = classes(n=60)
    clustered = calviz.Predictions(probs=p.probs, labels=p.labels, clusters=np.arange(60) // 10)
    for data, some in ((p, True), (clustered, False)):
        drawn = ClassBars.compute(data, mode="predicted-class").plot()
        shown = {t.name for t in drawn.data if t.name and t.showlegend is not False}
        assert any("interval" in name for name in shown) is some


# ---- The confusion matrix, against scikit-learn's


def predictions(n=600, k=5, seed=0):
    rng = np.random.default_rng(seed)
    return calviz.Predictions(
        probs=rng.dirichlet(np.full(k, 0.5), n),
        labels=rng.integers(k, size=n),
        splits=np.where(np.arange(n) % 3, "test", "calibration"),
    )


def test_cells_against_scikit_learn():
    p = predictions()
    figure = Confusion.compute(p)
    guess, confidence = p.probs.argmax(1), p.probs.max(1)
    for by, normalize in (("true", "true"), ("predicted", "pred")):
        counts = confusion_matrix(p.labels, guess)
        shares = confusion_matrix(p.labels, guess, normalize=normalize)
        np.testing.assert_array_equal(counts[figure.true, figure.predicted], figure.rows)
        np.testing.assert_allclose(shares[figure.true, figure.predicted], figure.share(by))
    assert figure.rows.sum() == p.n
    assert figure.usual.tolist() == list(range(p.n_classes))
    assert figure.wrong == np.count_nonzero(guess != p.labels)
    for t, g, c in zip(figure.true, figure.predicted, figure.confidence, strict=True):
        assert c == pytest.approx(confidence[(p.labels == t) & (guess == g)].mean())
    assert Confusion.compute(p, split="test").n == 400


def test_the_classes_with_the_most_mistakes_come_first_and_others_can_be_asked_for():
    # Class 3 is always taken for class 1; the others are right.
    labels = np.repeat(np.arange(30), 10)
    guess = np.where(labels == 3, 1, labels)
    probs = np.full((300, 30), 0.2 / 29)
    probs[np.arange(300), guess] = 0.8
    probs /= probs.sum(1, keepdims=True)
    figure = Confusion.compute(calviz.Predictions(probs=probs, labels=labels))
    assert set(figure.ranked[:2].tolist()) == {1, 3}
    assert "Most often '3' is taken for '1': 10 rows" in figure.describe()
    few = calviz.Predictions(probs=probs[[0, 30, 40]], labels=np.array([5, 6, 7]))
    assert (
        Confusion.compute(few)
        .describe()
        .endswith(
            "3 of 3 rows (100.0 %) are predicted wrong. No class is taken for the same other class twice."
        )
    )
    frame = figure.frame()
    assert frame.loc[0, ["true", "predicted", "rows"]].tolist() == ["3", "1", 10]
    picture = json.loads(figure.plot().to_json())
    assert len(picture["layout"]["yaxis"]["ticktext"]) == 12
    picture = json.loads(figure.plot(classes=[7, 3, 1], by="predicted", width=350).to_json())
    assert picture["layout"]["yaxis"]["ticktext"] == ["7", "3", "1"]
    _, wrong, _ = picture["data"]
    # A click says which cell it was, by its classes: 3 is taken for 1.
    clicked = figure.plot(classes=[7, 3, 1])
    cells = zip(clicked.data[-1].x, clicked.data[-1].y, clicked.data[-1].customdata, strict=True)
    assert (2, 1, [3, 1]) in [(x, y, list(cell)) for x, y, cell in cells]
    # Not in binary: the browser would send a row of it back as an object, whose keys were taken for the classes.
    assert [3, 1] in json.loads(clicked.to_json())["data"][-1]["customdata"]
    assert [row.count(text) for row in wrong["text"] for text in ("10",)] == [0, 1, 0]
    with pytest.raises(OptionError, match="between 0 and 29"):
        figure.plot(classes=[30])
    with pytest.raises(OptionError, match="one of true, predicted"):
        figure.share("both")


def test_data_without_classes_have_none():
    p = calviz.ConfidencePredictions(confidence=np.full(9, 0.8), correct=np.arange(9) > 2)
    with pytest.raises(NotAvailable, match="do not name the true classes"):
        Confusion.compute(p)


def test_the_share_of_mistakes_of_weighted_rows_is_the_error():
    p = predictions()
    weights = np.random.default_rng(1).gamma(1, 1, p.n)
    weighted = calviz.Predictions(probs=p.probs, labels=p.labels, weights=weights)
    figure = Confusion.compute(weighted)
    error = np.average(p.probs.argmax(1) != p.labels, weights=weights)
    assert figure.wrong_share == pytest.approx(error)
    assert f"({100 * error:.1f} % by weight) are predicted wrong" in figure.describe()


@pytest.mark.parametrize("mode", ["predicted-class", "true-class", "one-vs-rest"])
def test_rows_of_weighted_classes_are_rows(mode):
    p = classes()
    weights = np.where(p.labels == 0, 1.0, 4.0)
    weighted = calviz.Predictions(probs=p.probs, labels=p.labels, weights=weights)
    figure = ClassBars.compute(weighted, mode=mode, resamples=20)
    of_row = p.probs.argmax(1) if mode == "predicted-class" else p.labels
    np.testing.assert_array_equal(figure.rows, np.bincount(of_row))
    scaled = weights / weights.mean()
    np.testing.assert_allclose(figure.mass, np.bincount(of_row, scaled))
    if mode == "one-vs-rest":
        expected, seen = scaled @ p.probs[:, 0], scaled @ (p.labels == 0)
        shares = [f"{100 * mass / p.n:.1f} %" for mass in (expected, seen)]
        said = "Expected {} of the rows, seen {}".format(*shares)
        assert said in str(figure.plot().to_dict()).replace("\\xa0", " ")
