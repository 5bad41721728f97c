"""MLflow, Weights & Biases, pytest."""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import calviz
from calviz.core.errors import InputError, MissingPackage, NotAvailable, OptionError
from calviz.integrations.mlflow import Evaluator, log
from calviz.integrations.pytest_plugin import Calibration
from calviz.integrations.wandb import log as log_of_wandb
from calviz.sample.sample import Sample
from tests.inputs.wandb_stub import Run, predictions, stub

# ---- A run in a real local tracking folder holds the numbers, the verdict, the figure and the report


@pytest.fixture
def mlflow(tmp_path, monkeypatch):
    """MLflow with a tracking folder of its own, which sends nothing anywhere."""
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("DO_NOT_TRACK", "true")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow = pytest.importorskip(
        "mlflow", reason="mlflow is not installed: pip install mlflow-skinny"
    )
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    yield mlflow
    mlflow.end_run()
    mlflow.set_tracking_uri(before)


def frame():
    rng = np.random.default_rng(3)
    p = rng.uniform(size=200)
    return pd.DataFrame({"rain": (rng.uniform(size=200) < p).astype(int), "p": p})


def stored(mlflow, run_id):
    client = mlflow.MlflowClient()
    names = {item.path for item in client.list_artifacts(run_id, "calviz")}
    return client.get_run(run_id).data, names


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_a_run_holds_numbers_verdict_figure_and_report(mlflow, tmp_path):
    rows = frame()
    p = calviz.Predictions.from_arrays(rows["rain"], rows["p"])
    with mlflow.start_run() as run:
        logged = log(calviz.audit(rows["rain"], rows["p"]))
    data, names = stored(mlflow, run.info.run_id)
    # By hand: the mean squared error of both classes, of rows that are judged alone.
    brier = 2 * np.mean((rows["p"] - rows["rain"]) ** 2)
    assert data.metrics["calviz/brier"] == pytest.approx(brier)
    assert (
        data.metrics["calviz/ece_low"]
        <= data.metrics["calviz/ece"]
        <= data.metrics["calviz/ece_high"]
    )
    assert data.metrics == pytest.approx(logged)
    assert data.tags["calviz.verdict"] == calviz.verdict(p).sentence
    assert names == {"calviz/audit.json", "calviz/reliability.html", "calviz/report.html"}
    folder = tmp_path / "runs" / run.info.experiment_id / run.info.run_id / "artifacts" / "calviz"
    assert json.loads((folder / "audit.json").read_text())["rows"] == 200
    for name in ("reliability", "report"):
        page = (folder / f"{name}.html").read_text(encoding="utf-8")
        assert "Plotly.newPlot" in page
        assert 'src="http' not in page  # nothing is fetched when somebody looks at it


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_the_evaluator_judges_a_column_of_probabilities(mlflow):
    from mlflow.models.evaluation.evaluator_registry import _model_evaluation_registry

    _model_evaluation_registry.register("calviz", Evaluator)  # as the entry point does
    rows = frame()
    with mlflow.start_run() as run:
        evaluation = mlflow.models.evaluate(
            data=rows, targets="rain", predictions="p", model_type="classifier",
            evaluators=["calviz"], evaluator_config={"calviz": {"figures": (), "report": False}},
        )  # fmt: skip
    expected = calviz.evaluate(calviz.Predictions.from_arrays(rows["rain"], rows["p"]), ["ece"])
    assert evaluation.metrics["calviz/ece"] == pytest.approx(expected["ece"].value)
    data, names = stored(mlflow, run.info.run_id)
    assert data.metrics["calviz/ece"] == pytest.approx(expected["ece"].value)
    assert names == {"calviz/audit.json"}


class Dataset:
    """What the evaluator asks of a data set of MLflow."""

    def __init__(self, rows):
        self.has_targets = "y" in rows
        self.features_data = rows.drop(columns=["y"], errors="ignore")
        self.labels_data = rows["y"].to_numpy() if "y" in rows else None
        self.predictions_data = None


class Raw:
    """A model of scikit-learn, as MLflow wraps it."""

    classes_ = np.array(["cat", "dog"])

    def get_raw_model(self):
        return self

    def predict_proba(self, features):
        return np.column_stack([1 - features["p"], features["p"]])


class Labels:
    """A model that predicts classes."""

    def predict(self, features):
        return np.array(["cat"] * len(features))


@pytest.fixture
def judged(monkeypatch):
    """What the evaluator would log, without MLflow."""
    kept = []
    monkeypatch.setattr("calviz.integrations.mlflow.log", lambda sample, **_: kept.append(sample))
    monkeypatch.setattr("calviz.integrations.mlflow._result", lambda metrics: metrics)

    def evaluate(rows, model=None, **config):
        Evaluator().evaluate(
            dataset=Dataset(pd.DataFrame(rows)), run_id="", model=model, evaluator_config=config
        )
        return kept.pop().data

    return evaluate


@pytest.mark.filterwarnings("ignore")
def test_a_model_is_asked_for_its_probabilities(judged):
    data = judged({"y": ["dog", "cat"], "p": [0.75, 0.25]}, Raw())
    assert data.class_names == ("cat", "dog")
    np.testing.assert_array_equal(data.probs, [[0.25, 0.75], [0.75, 0.25]])
    assert data.labels.tolist() == [1, 0]


@pytest.mark.filterwarnings("ignore")
def test_columns_are_classes(judged):
    rows = {"y": ["b", "a"], "b": [0.75, 0.25], "a": [0.25, 0.75]}
    data = judged(rows, columns=["b", "a"])
    assert data.class_names == ("b", "a")
    assert data.labels.tolist() == [0, 1]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("rows", "model", "config", "words"),
    [
        ({"p": [0.5]}, Raw(), {}, "no true labels; name their column with targets="),
        ({"y": [1], "p": [0.5]}, Labels(), {}, "predicts classes, not probabilities"),
        ({"y": [1], "p": [0.5]}, None, {"columns": ["q"]}, "column 'q': there is no such column"),
        ({"y": [1], "p": [0.5]}, Raw(), {"colour": 1}, "no option 'colour'"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_one_sentence(judged, rows, model, config, words):
    with pytest.raises((InputError, OptionError), match=words):
        judged(rows, model, **config)


@pytest.mark.filterwarnings("ignore")
def test_only_classifiers_are_evaluated():
    assert Evaluator.can_evaluate(model_type="classifier", evaluator_config={})
    assert not Evaluator.can_evaluate(model_type="regressor", evaluator_config={})


@pytest.mark.filterwarnings("ignore")
def test_without_mlflow_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "mlflow", None)
    with pytest.raises(MissingPackage, match=r"run: pip install 'calviz\[mlflow\]'"):
        log(calviz.Predictions.from_arrays([0, 1], [0.1, 0.9]))


# ---- What the fixture `calibration` claims, and its sentences; a run of pytest with it is in tests/contract/test_contributing.py


def claims(rows, shift=0.0):
    """Scores that are `shift` too high."""
    rng = np.random.default_rng(0)
    truth = rng.uniform(0.2, 0.7, size=rows)
    labels = (rng.uniform(size=rows) < truth).astype(int)
    return Calibration(Sample.of(calviz.Predictions.from_arrays(labels, truth + shift)))


def test_many_calibrated_rows_are_shown_to_be_below():
    claims(20_000).assert_below("ece", 0.05)
    claims(20_000).assert_above("accuracy", 0.5)


def test_few_rows_leave_room_for_doubt_and_it_says_both():
    few = claims(60)
    with pytest.raises(AssertionError) as caught:
        few.assert_below("ece", 0.05)
    result = calviz.evaluate(few.sample, ["ece"], ci=True)["ece"]
    assert f"ece is {result.value:.4g} on 60 rows" in str(caught.value)
    assert f"the upper bound {result.interval.high:.4g} is not below it" in str(caught.value)
    few.assert_below("ece", 0.05, doubt="passes")


def test_rows_that_are_off_fail_either_way():
    off = claims(5_000, shift=0.2)
    for doubt in ("fails", "passes"):
        with pytest.raises(AssertionError, match="the whole interval is above it"):
            off.assert_below("ece", 0.05, doubt=doubt)
    with pytest.raises(AssertionError, match="the whole interval is below it"):
        off.assert_above("mcs", 0.4)


def test_what_cannot_be_judged_is_no_pass():
    one = Calibration(Sample.of(calviz.Predictions.from_arrays([1, 1, 1], [0.5, 0.6, 0.7])))
    with pytest.raises(NotAvailable, match="calibration_slope has no value"):
        one.assert_above("calibration_slope", 0.5)
    with pytest.raises(OptionError, match="doubt"):
        one.assert_below("ece", 0.5, doubt="maybe")


# ---- What is handed to Weights & Biases: the same as an offline run of it kept when it was recorded


RECORDED = json.loads(
    (Path(__file__).parents[2] / "reference" / "recorded_wandb.json").read_text(encoding="utf-8")
)


@pytest.fixture
def wandb(monkeypatch):
    """What stands in for wandb."""
    module = stub()
    monkeypatch.setitem(sys.modules, "wandb", module)
    return module


@pytest.mark.slow
def test_a_run_is_given_what_the_recorded_one_kept(wandb):
    wandb.run = Run()
    p = predictions()
    logged = log_of_wandb(calviz.audit(p, metrics="all"))
    kept = wandb.run.kept
    # By hand: the mean squared error of both classes.
    brier = 2 * np.mean((p.probs[:, 1] - p.labels) ** 2)
    assert RECORDED["brier"] == pytest.approx(brier)
    assert kept["calviz/brier"] == pytest.approx(brier)
    assert {k: v.type for k, v in kept.items() if hasattr(v, "type")} == RECORDED["media"]
    assert {k: v for k, v in kept.items() if not hasattr(v, "type")} == logged
    assert wandb.run.summary == {"calviz/verdict": calviz.verdict(p).sentence}
    assert "Plotly.newPlot" in kept["calviz/report"].of


def test_an_evaluation_alone_is_numbers(wandb):
    run = Run()
    log_of_wandb(calviz.evaluate(predictions(), ["ece"]), run=run, prefix="")
    assert list(run.kept) == ["ece"]
    assert not run.summary


@pytest.mark.slow
def test_what_is_wrong_is_one_sentence_of_wandb(wandb, monkeypatch):
    with pytest.raises(OptionError, match=r"no run of wandb; call wandb\.init\(\) first"):
        log_of_wandb(predictions())
    with pytest.raises(OptionError, match="nothing to log in a ndarray"):
        log_of_wandb(np.zeros(3), run=Run())
    with pytest.raises(OptionError, match="has no figure 'heatmap'; it has"):
        log_of_wandb(predictions(), run=Run(), figures=["heatmap"])
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(MissingPackage, match=r"run: pip install 'calviz\[wandb\]'"):
        log_of_wandb(predictions())
