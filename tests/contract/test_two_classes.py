"""Two classes are judged on the positive class, by every function, where nothing else is said."""

import json

import numpy as np
import pytest

import calviz
from calviz.comparison.compare_models import compare_methods
from calviz.figures.bin_sensitivity import BinSensitivity
from calviz.figures.calibration_map import CalibrationMap
from calviz.figures.convention_bars import EceByLibrary
from calviz.figures.cumulative_plot import Cumulative
from calviz.figures.reliability import Reliability
from calviz.sample.sample import Sample
from tests.inputs.command_line import run_successfully


def forecasts(n=400, seed=1):
    """Probabilities that are all too high: the top label hides most of it."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 1.5, n)
    return calviz.Predictions(
        probs=1 / (1 + np.exp(-z)),
        labels=rng.random(n) < 1 / (1 + np.exp(-(z - 0.8))),
        groups={"site": np.where(np.arange(n) % 2, "a", "b")},
        name="x",
    )


P = forecasts()
GAP = P.probs[:, 1].mean() - P.labels.mean()
CONFIDENCE = P.probs.max(axis=1)
CORRECT = P.probs.argmax(axis=1) == P.labels


def test_the_two_views_of_these_data_are_apart():
    assert GAP > 0.08
    assert abs(CONFIDENCE.mean() - CORRECT.mean()) < 0.04


def test_measuring():
    e = calviz.evaluate(P, ["mcs"], ci=True, resamples=50)
    assert (e.reduction, e["mcs"].value) == ("positive", pytest.approx(GAP))
    top = calviz.evaluate(P, ["mcs"], reduction="top-label")
    assert top["mcs"].value == pytest.approx(CONFIDENCE.mean() - CORRECT.mean())
    assert Sample(P).reduction.key == "positive"
    assert calviz.conventions(P, noise=False).reduction == "positive"
    assert calviz.slices(P).reduction == "positive"
    assert calviz.slices(P).gap == pytest.approx(GAP)


def test_accuracy_and_selective_prediction_are_of_the_predicted_class_as_ever():
    e = calviz.evaluate(P, ["accuracy", "aurc", "wsece"])
    top = calviz.evaluate(P, ["accuracy", "aurc", "wsece"], reduction="top-label")
    assert e["accuracy"].value == pytest.approx(CORRECT.mean())
    assert [r.value for r in e] == [r.value for r in top]


def test_comparing():
    of = {"metrics": ["ece"], "fit_fraction": 0.5}
    assert calviz.compare(P, ["platt"], resamples=20, **of).reduction == "positive"
    curve = calviz.learning_curve(P, ["platt"], sizes=[50], repeats=1, **of)
    assert curve.reduction == "positive"
    q = forecasts()
    models = {"one": P, "other": q}
    assert calviz.compare_models(models, ["ece"], resamples=20).reduction == "positive"
    table = compare_methods(models, ["platt"], **of)
    assert {c.reduction for c in table.models.values()} == {"positive"}


def test_models_of_which_one_has_confidences_only_share_the_top_label():
    only = calviz.ConfidencePredictions(confidence=CONFIDENCE, correct=CORRECT, labels=P.labels)
    comparison = calviz.compare_models({"full": P, "only": only}, ["ece"], resamples=20)
    assert comparison.reduction == "top-label"
    assert comparison["full"].metrics["ece"].value == comparison["only"].metrics["ece"].value


@pytest.mark.slow
def test_figures():
    for figure in (Reliability, Cumulative, BinSensitivity):
        assert figure.compute(P).reduction.key == "positive"
        assert figure.compute(P, reduction="top-label").reduction.key == "top-label"
    assert CalibrationMap.compute(P, P).reduction.key == "positive"
    assert EceByLibrary.compute(P).conventions.reduction == "positive"


@pytest.fixture
def file(tmp_path):
    """One score column."""
    path = tmp_path / "rain.csv"
    rows = [f"{y},{p!r}" for y, p in zip(P.labels, P.probs[:, 1].tolist(), strict=True)]
    path.write_text("\n".join(["label,p", *rows]) + "\n")
    return path


def test_one_score_column_is_two_classes(file):
    assert calviz.evaluate(calviz.load(file), ["mcs"])["mcs"].value == pytest.approx(GAP)


@pytest.mark.slow
def test_command_line_report_and_json_say_what_the_other_view_shows(file, tmp_path):
    other_view = calviz.verdict(calviz.load(file)).other_view
    assert other_view.startswith("Seen by the top label, ")
    assert other_view in run_successfully(
        "audit", file, "--markdown", tmp_path / "rain.md", "--resamples", 50
    )
    assert other_view in (tmp_path / "rain.md").read_text().replace("\\", "")
    record = json.loads(run_successfully("audit", file, "--json", "-"))
    assert (record["reduction"], record["other_view"]) == ("positive", other_view)
    record = json.loads(run_successfully("audit", file, "--json", "-", "--reduction", "top-label"))
    assert record["reduction"] == "top-label"
    # The verdict then speaks of the positive class by itself, as it is the worse view.
    assert record["verdict"].startswith("Probabilities of '1' too high by ")
    assert record["other_view"] == other_view


@pytest.mark.slow
def test_the_commands_that_compare_judge_the_positive_class_too(file):
    for command in (
        ("compare", file, "--methods", "platt", "--fit-fraction", 0.5, "--json", "-"),
        ("compare-models", file, file, "--resamples", 20, "--json", "-"),
    ):
        assert json.loads(run_successfully(*command))["reduction"] == "positive"
        chosen = json.loads(run_successfully(*command, "--reduction", "top-label"))
        assert chosen["reduction"] == "top-label"
