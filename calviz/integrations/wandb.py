"""Weights & Biases: `log` results to a run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from calviz.core.errors import OptionError, needs
from calviz.integrations.mlflow import FIGURES, LogContents, Result


def log(
    result: Result,
    *,
    run: Any = None,
    prefix: str = "calviz/",
    figures: Iterable[str] = FIGURES,
    report: bool = True,
) -> dict[str, float]:
    """Log numbers, verdict, findings, interactive figures and the report to a run of Weights & Biases.

    Parameters
    ----------
    result : Evaluation, Predictions or Sample
        As in `calviz.integrations.mlflow.log`.
    run : wandb.Run, optional
        The run; by default the active one.
    prefix : str
        Prefix of every name.
    figures : iterable of str
        Keys of charts of the report to log separately.
    report : bool
        Whether to log the report, which holds all figures (HTML, 5 MB).

    Returns
    -------
    dict of str to float
        The metrics, as logged.

    Raises
    ------
    MissingPackage
        If wandb is not installed.
    OptionError
        If there is no run, `result` is of another type, or the report has no such figure.
    """
    needs("wandb")
    import wandb

    run = run or wandb.run
    if run is None:
        raise OptionError("there is no run of wandb; call wandb.init() first, or give run=.")
    contents = LogContents.of(result)
    metrics = contents.metrics(prefix)
    media: dict[str, Any] = {
        f"{prefix}{key}": wandb.Plotly(figure)
        for key, figure in contents.figures(tuple(figures)).items()
    }
    if findings := contents.evaluation.findings:
        rows = [[f.code, f.severity, f.message] for f in findings]
        media[f"{prefix}findings"] = wandb.Table(["code", "severity", "message"], data=rows)
    if report and contents.report is not None:
        media[f"{prefix}report"] = wandb.Html(contents.report.html(), inject=False)
    run.log({**metrics, **media})
    if contents.verdict:
        run.summary[f"{prefix}verdict"] = contents.verdict
    return metrics
