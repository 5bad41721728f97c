"""MLflow: `log` for any run, and the evaluator ``calviz`` of ``mlflow.models.evaluate``; also what any tracker logs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from calviz import ConfidencePredictions, Predictions, evaluate
from calviz.core.errors import REPORT, InputError, OptionError, needs
from calviz.report.json_results import audit_record
from calviz.sample.sample import Sample
from calviz.verdicts.evaluation import Evaluation

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from calviz.report.document import Report


#: Types that can be logged; an evaluation that keeps no rows has no figures and no report.
Result = Predictions | ConfidencePredictions | Sample | Evaluation
#: Default for the figures logged one by one; the report holds all of them.
FIGURES = ("reliability",)


@dataclass(frozen=True)
class LogContents:
    """A result with everything that is logged about it.

    Attributes
    ----------
    evaluation : Evaluation
    sample : Sample or None
        The rows, for figures and the report; None if the evaluation keeps none.
    """

    evaluation: Evaluation
    sample: Sample | None

    @classmethod
    def of(cls, result: Result) -> LogContents:
        """Evaluate predictions and samples, take evaluations as they are; raises OptionError for other types."""
        if isinstance(result, Evaluation):
            return cls(result, result.sample)
        if not isinstance(result, Sample | Predictions | ConfidencePredictions):
            raise OptionError(
                f"there is nothing to log in a {type(result).__name__}; give what calviz.audit returns, predictions, "
                "or a sample."
            )
        sample = Sample.of(result)
        return cls(evaluate(sample, ci=not sample.is_large), sample)

    def metrics(self, prefix: str) -> dict[str, float]:
        """All available numbers by name: ``<prefix>ece``, ``<prefix>ece_low``, ``..._high``, ``..._noise_floor``, ``..._p_value``."""
        numbers: dict[str, float] = {}
        for result in (r for r in self.evaluation if r.available):
            name, floor = f"{prefix}{result.key}", result.noise_floor
            numbers[name] = result.value
            if ends := result.interval:
                numbers |= {f"{name}_low": ends.low, f"{name}_high": ends.high}
            if floor:
                numbers |= {f"{name}_noise_floor": floor.mean, f"{name}_p_value": floor.p_value}
        return numbers

    @property
    def verdict(self) -> str:
        """The verdict as a sentence; empty if it was not computed."""
        return self.evaluation.verdict.sentence if self.evaluation.verdict else ""

    @cached_property
    def report(self) -> Report | None:
        """Full report; None without rows."""
        if self.sample is None:
            return None
        needs(*REPORT)
        from calviz.report import content, document

        return document.compose(content.Subject(self.sample))

    def figures(self, keys: Iterable[str]) -> dict[str, go.Figure]:
        """Charts of the report, by key; empty without rows.

        Raises
        ------
        OptionError
            If the report on these data has no such chart.
        """
        if self.report is None:
            return {}
        from plotly.io import from_json

        charts = {chart.key: chart for chart in self.report.charts}
        unknown = [key for key in keys if key not in charts]
        if unknown:
            raise OptionError(
                f"the report has no figure '{unknown[0]}'; it has {', '.join(sorted(charts))}."
            )
        return {key: from_json(charts[key].drawing) for key in keys}


# ---- MLflow


def log(
    result: Result,
    *,
    run_id: str | None = None,
    prefix: str = "calviz/",
    figures: Iterable[str] = FIGURES,
    report: bool = True,
) -> dict[str, float]:
    """Log numbers, verdict, findings, interactive figures and the report to a run of MLflow.

    Parameters
    ----------
    result : Evaluation, Predictions or Sample
        The result of `calviz.audit`. A result of `calviz.evaluate` keeps no rows, so no figures and no report are logged. For
        predictions and samples all metrics are evaluated, with error bars unless there are very many rows.
    run_id : str, optional
        The run; by default the active one, or a new one if none is active.
    prefix : str
        Prefix of the names of metrics, and the folder of artifacts.
    figures : iterable of str
        Keys of charts of the report to log as separate files; each opens offline and takes 5 MB.
    report : bool
        Whether to log the report, which holds all figures (HTML, 5 MB).

    Returns
    -------
    dict of str to float
        The metrics, as logged.

    Raises
    ------
    MissingPackage
        If MLflow is not installed.
    OptionError
        If `result` is of another type, or the report has no such figure.
    """
    needs("mlflow")
    import mlflow
    from mlflow.entities import Metric

    contents = LogContents.of(result)
    if run_id is None:
        run_id = (mlflow.active_run() or mlflow.start_run()).info.run_id
    client = mlflow.MlflowClient()
    metrics = contents.metrics(prefix)
    drawings = contents.figures(tuple(figures))
    now = int(time.time() * 1_000)
    client.log_batch(run_id, metrics=[Metric(name, v, now, 0) for name, v in metrics.items()])
    folder = prefix.strip("/") or "calviz"
    if contents.verdict:
        # Longest text of a tag that MLflow accepts, in characters.
        client.set_tag(run_id, f"{folder}.verdict", contents.verdict[:5_000])
    record = audit_record(contents.evaluation, file="", verdict=contents.verdict)
    client.log_dict(run_id, record, f"{folder}/audit.json")
    for key, figure in drawings.items():
        # With plotly.js embedded rather than linked, so that the figure opens without a network.
        client.log_figure(
            run_id, figure, f"{folder}/{key}.html", save_kwargs={"include_plotlyjs": True}
        )
    if report and contents.report is not None:
        client.log_text(run_id, contents.report.html(), f"{folder}/report.html")
    return metrics


class Evaluator:
    """``mlflow.models.evaluate(..., model_type="classifier", evaluators=["default", "calviz"])``.

    The probabilities come from the model's ``predict_proba``, or from its predictions if these are one column of
    probabilities or one per class. Without a model, they are the column of predictions, or the columns named in
    ``evaluator_config={"calviz": {"columns": [...]}}``. Other options: ``classes`` (the labels, in the order of the
    columns), ``reduction``, ``bins``, ``seed``, and ``figures``, ``report`` and ``prefix`` of `log`.
    """

    @classmethod
    def can_evaluate(cls, *, model_type: str, evaluator_config: Any = None, **_: Any) -> bool:
        """Whether the model is a classifier."""
        return model_type == "classifier"

    def evaluate(
        self,
        *,
        dataset: Any,
        run_id: str,
        evaluator_config: Mapping[str, Any] | None = None,
        model: Any = None,
        **_: Any,
    ) -> Any:
        """Evaluate and log; see ``mlflow.models.evaluation.base.ModelEvaluator``."""
        options = dict(evaluator_config or {})

        def taken(*names: str) -> dict[str, Any]:
            return {name: options.pop(name) for name in names if name in options}

        layout, sampling = taken("columns", "classes"), taken("reduction", "bins", "seed")
        logging = taken("figures", "report", "prefix")
        if options:
            raise OptionError(f"the evaluator calviz has no option '{next(iter(options))}'.")
        sample = Sample.of(_predictions(dataset, model, **layout), **sampling)
        return _result(log(sample, run_id=run_id, **logging))


def _result(metrics: dict[str, float]) -> Any:
    from mlflow.models import EvaluationResult

    return EvaluationResult(metrics=metrics, artifacts={})


def _predictions(
    dataset: Any, model: Any, columns: Iterable[str] = (), classes: Iterable[Any] | None = None
) -> Predictions:
    if not dataset.has_targets:
        raise InputError("there are no true labels", remedy="name their column with targets=")
    class_names = classes
    if columns:
        features = dataset.features_data
        missing = [name for name in columns if name not in features]
        if missing:
            raise InputError("there is no such column", column=str(missing[0]))
        scores = np.asarray(features[list(columns)], dtype=np.float64)
        class_names = list(columns) if class_names is None else class_names
    elif model is None:
        scores = np.asarray(list(dataset.predictions_data), dtype=np.float64)
    else:
        scores, model_classes = _scores(model, dataset.features_data)
        class_names = model_classes if class_names is None else class_names
    names = None if class_names is None else list(class_names)
    return Predictions.from_arrays(dataset.labels_data, scores, class_names=names)


def _scores(model: Any, features: Any) -> tuple[npt.NDArray[Any], Iterable[Any] | None]:
    """Probabilities of an MLflow model, and its classes or None if it names none."""
    try:
        raw = model.get_raw_model()
    except (AttributeError, NotImplementedError):
        raw = None
    if hasattr(raw, "predict_proba"):
        return np.asarray(raw.predict_proba(features)), getattr(raw, "classes_", None)
    scores = np.asarray(model.predict(features))
    if scores.dtype.kind != "f":
        raise InputError(
            "the model predicts classes, not probabilities",
            remedy='log it with pyfunc_predict_fn="predict_proba", or give a table of probabilities',
        )
    return scores, None
