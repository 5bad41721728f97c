"""A run in a real local tracking folder holds the numbers, the verdict, the figure and the report."""

import json

import numpy as np
import pandas as pd
import pytest

import calviz
from calviz.core.errors import InputError, MissingPackage, OptionError
from calviz.integrations.mlflow import Evaluator, log

pytestmark = pytest.mark.filterwarnings("ignore")  # what MLflow warns of is its own


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


def test_a_model_is_asked_for_its_probabilities(judged):
    data = judged({"y": ["dog", "cat"], "p": [0.75, 0.25]}, Raw())
    assert data.class_names == ("cat", "dog")
    np.testing.assert_array_equal(data.probs, [[0.25, 0.75], [0.75, 0.25]])
    assert data.labels.tolist() == [1, 0]


def test_columns_are_classes(judged):
    rows = {"y": ["b", "a"], "b": [0.75, 0.25], "a": [0.25, 0.75]}
    data = judged(rows, columns=["b", "a"])
    assert data.class_names == ("b", "a")
    assert data.labels.tolist() == [0, 1]


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


def test_only_classifiers_are_evaluated():
    assert Evaluator.can_evaluate(model_type="classifier", evaluator_config={})
    assert not Evaluator.can_evaluate(model_type="regressor", evaluator_config={})


def test_without_mlflow_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "mlflow", None)
    with pytest.raises(MissingPackage, match="run: pip install mlflow"):
        log(calviz.Predictions.from_arrays([0, 1], [0.1, 0.9]))
