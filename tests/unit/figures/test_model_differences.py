"""Paired differences of models, drawn."""

import json

import numpy as np
import pytest

import calviz
from calviz.comparison.comparison_results import Alignment, Difference, ModelComparison, ModelResult
from calviz.core.errors import OptionError
from calviz.core.predictions import Predictions
from calviz.figures.model_differences import ModelDifferences
from calviz.figures.style import PALETTES
from calviz.sample.error_bars import Interval
from calviz.sample.metric_results import MetricResult


def comparison(metric="nll", direction="lower"):
    side = "worse" if direction == "lower" else "better"
    value = {"<b>a</b>": 0.30, "b": 0.20, "c": 0.25}
    return ModelComparison(
        alignment=Alignment(
            {"b": Predictions(probs=np.full((40, 2), 0.5), labels=np.zeros(40, int))}, "order", ()
        ),
        split="test",
        reduction="top-label",
        seed=0,
        models={k: ModelResult(k, {metric: MetricResult(metric, v)}) for k, v in value.items()},
        directions={metric: direction},
        pairs={
            metric: {
                ("<b>a</b>", "b"): Difference(0.1, Interval(0.05, 0.15), side),
                ("<b>a</b>", "c"): Difference(0.05, Interval(0.01, 0.09), side),
                ("b", "c"): Difference(-0.05, Interval(-0.12, 0.02), "tied"),
            }
        },
    )


def test_the_best_is_the_reference_and_sides_are_named():
    figure = ModelDifferences.compute(comparison())
    assert figure.reference == "b"
    assert figure.models == ("c", "<b>a</b>")
    assert [figure.side(d) for d in figure.differences] == ["tied", "worse"]
    assert figure.frame()["difference"].tolist() == pytest.approx([0.05, 0.10])
    assert figure.describe() == (
        "NLL of 2 models minus that of 'b' on the same 40 rows: 'c' not told apart from it; "
        "'<b>a</b>' worse beyond noise."
    )


def test_another_reference_turns_the_signs():
    figure = ModelDifferences.compute(comparison(), reference="<b>a</b>")
    assert figure.models == ("b", "c")
    assert [d.value for d in figure.differences] == pytest.approx([-0.10, -0.05])
    assert [figure.side(d) for d in figure.differences] == ["better", "better"]
    higher = ModelDifferences.compute(comparison("accuracy", "higher"), metric="accuracy")
    assert higher.reference == "<b>a</b>"
    assert [higher.side(d) for d in higher.differences] == ["worse", "worse"]
    assert higher.text(higher.differences[0]) == "−5.0 points (95 % CI −9.0 to −1.0)"


def test_what_is_drawn_is_the_frame():
    figure = ModelDifferences.compute(comparison())
    picture = figure.plot()
    frame = figure.frame()
    points = picture.data[1:]
    assert [t.x[0] for t in points] == frame["difference"].tolist()
    ends = [(t.x[0] - t.error_x.arrayminus[0], t.x[0] + t.error_x.array[0]) for t in points]
    np.testing.assert_allclose(ends, frame[["low", "high"]])
    assert [t.marker.symbol for t in points] == ["circle-open", "square"]
    texts = [a.text for a in picture.layout.annotations]
    assert texts == ["← better", "worse →"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_themes_and_texts_from_files(theme):
    picture = ModelDifferences.compute(comparison()).plot(theme=theme, caption=True, width=350)
    assert picture.layout.paper_bgcolor == PALETTES[theme].paper
    text = json.dumps(picture.to_plotly_json(), default=str)
    assert "&lt;b&gt;a" in text
    assert "<b>a" not in text
    assert "40 rows" in text


def test_what_is_not_there_is_refused():
    with pytest.raises(OptionError, match="no paired differences of 'ece'; known: nll"):
        ModelDifferences.compute(comparison(), metric="ece")
    with pytest.raises(OptionError, match="'d' has no 'nll'"):
        ModelDifferences.compute(comparison(), reference="d")


def test_a_metric_without_differences_says_why():
    hit = (np.arange(100) < 3).astype(int)
    scores = np.random.default_rng(0).uniform(0.05, 0.5, (2, 100))
    models = {
        name: calviz.Predictions(probs=score, labels=hit)
        for name, score in zip("ab", scores, strict=True)
    }
    compared = calviz.compare_models(models, metrics=["auprc", "brier"], reduction="positive")
    with pytest.raises(OptionError, match="has no value on some resampled or simulated rows"):
        ModelDifferences.compute(compared, metric="auprc")
