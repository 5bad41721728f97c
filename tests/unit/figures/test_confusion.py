"""The confusion matrix, against scikit-learn's."""

import json

import numpy as np
import pytest
from sklearn.metrics import confusion_matrix

import calviz
from calviz.core.errors import NotAvailable, OptionError
from calviz.figures.confusion import Confusion


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
