"""Errors by class against plain loops, simulation and the metrics."""

import numpy as np
import pytest

import calviz
from calviz.core.errors import NotAvailable, OptionError
from calviz.figures import ClassBars
from calviz.numerics.class_gaps import class_gaps
from calviz.numerics.sample import Sample


def classes(n=500, k=4, seed=0, sharpen=1.0, names=()):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(k, 0.7), n)
    labels = (rng.random(n)[:, None] > np.cumsum(probs, axis=1)[:, :-1]).sum(axis=1)
    probs = probs**sharpen
    probs /= probs.sum(axis=1, keepdims=True)
    return calviz.Predictions(probs=probs, labels=labels, class_names=names)


def test_values_against_a_plain_loop():
    p = classes()
    confidence, hit = p.probs.max(1), p.probs.argmax(1) == p.labels
    own, rest = (ClassBars.compute(p, mode=m) for m in ("true-class", "one-vs-rest"))
    for k in range(4):
        mine = p.labels == k
        assert own.rows[k] == mine.sum()
        assert own.value[k] == pytest.approx(confidence[mine].mean() - hit[mine].mean())
        assert rest.value[k] == pytest.approx(p.probs[:, k].mean() - mine.mean())


def test_shares_are_those_of_the_metrics():
    p = classes(seed=3)
    figure = ClassBars.compute(p)
    keys = ["over_share", "under_share", "over_mcs", "under_mcs"]
    result = calviz.evaluate(p, keys)
    for which, share, size in (
        (figure.over, "over_share", "over_mcs"),
        (figure.under, "under_share", "under_mcs"),
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
    for drawn, pair in ((redrawn, figure.band), (resampled, figure.interval)):
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
    for drawn, pair in ((redrawn, view.calibrated(0.95)), (resampled, view.interval(0.95))):
        low, high = np.quantile(drawn, [0.025, 0.975], axis=0)
        # Numbers of rows are whole: half a row of 120 is what a quantile may be off by.
        np.testing.assert_allclose(pair[0], low, atol=0.5 / 120 + 0.002)
        np.testing.assert_allclose(pair[1], high, atol=0.5 / 120 + 0.002)


def test_a_calibrated_model_is_rarely_outside():
    outside = [
        np.mean(ClassBars.compute(classes(400, 5, seed), mode=m, resamples=300).beyond != 0)
        for seed in range(12)
        for m in ("true-class", "one-vs-rest")
    ]
    assert np.mean(outside) < 0.05 + 3 * (0.05 * 0.95 / 120) ** 0.5
    # A band that is too wide would hide what is wrong: the sharpened model is outside.
    assert (ClassBars.compute(classes(400, 5, sharpen=3)).beyond > 0).mean() > 0.5


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
    assert "range of a calibrated model" not in bars.describe()
    bars.plot(caption=True)
    with pytest.raises(NotAvailable):
        ClassBars.compute(data, mode="one-vs-rest")
    with pytest.raises(NotAvailable):
        ClassBars.compute(calviz.ConfidencePredictions(confidence=[0.5], correct=[True]))


@pytest.mark.parametrize("order", ["value", "beyond", "class"])
def test_orders(order):
    figure = ClassBars.compute(classes(600, 60, sharpen=2), resamples=200)
    shown = figure.shown(order, ends=5)
    assert shown.size == 10
    frame = figure.frame(order)
    assert len(frame) == figure.value.size
    assert frame["class_index"].tolist()[:5] == figure.class_index[shown[:5]].tolist()
    if order != "class":
        column = frame[order]
        assert (np.diff(column) <= 1e-12).all()
    picture = figure.plot(order=order, ends=5, selected=int(figure.class_index[shown[0]]))
    bars = [t for t in picture.data if t.type == "bar" and t.customdata is not None]
    drawn = sorted(int(c) for t in bars for c in t.customdata)
    assert drawn == sorted(figure.class_index[shown].tolist())
    assert len(picture.layout.shapes) == 2


def test_a_thousand_classes_stay_light():
    figure = ClassBars.compute(classes(3_000, 1_000, sharpen=2), resamples=100)
    assert len(figure.plot(caption=True).to_json()) < 120_000


@pytest.mark.parametrize("mode", ["true-class", "one-vs-rest"])
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
