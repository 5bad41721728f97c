"""Sentences about a comparison of models."""

from __future__ import annotations

from calviz.results.metric_words import value_text
from calviz.results.model_comparison import ModelComparison
from calviz.specs.metric import METRICS, RANKED_BY
from calviz.text.words import listed, shorten


def ranked_by(comparison: ModelComparison) -> tuple[str, ...]:
    """Return the metrics that can rank the models, the default first; empty without paired resamples."""
    keys = [key for key in comparison.pairs if key != "error"]
    return tuple(sorted(keys, key=lambda key: key != RANKED_BY))


def headline(comparison: ModelComparison, metric: str) -> str:
    """Say in one sentence which model is best."""
    label = METRICS[metric].label
    best, *tied = comparison.tied_with_best(metric)
    value = value_text(metric, comparison[best].metrics[metric].value)
    others = len(comparison.ranking(metric)) - 1 - len(tied)
    text = f"By {label}, '{shorten(best, 30)}' is best ({value})"
    if tied:
        verb = "is" if len(tied) == 1 else "are"
        text += f"; {listed(tied, limit=60)} {verb} not told apart from it"
    if others:
        text += (
            f"; {'the other is' if others == 1 else f'the other {others:,} are'} worse beyond noise"
        )
    return f"{text}."


def caution(comparison: ModelComparison, metric: str) -> str:
    """Return a caution if the best calibrated model is less accurate than another, otherwise ""."""
    if not METRICS[metric].of_calibration or "accuracy" not in comparison.pairs:
        return ""
    best, right = comparison.ranking(metric)[0], comparison.ranking("accuracy")[0]
    difference = comparison.difference("accuracy", best, right) if best != right else None
    if difference is None or difference.tied:
        return ""
    value = value_text("accuracy", comparison[best].metrics["accuracy"].value)
    return (
        f"Calibrated is not accurate: '{shorten(best, 30)}' is right in {value} of the rows, "
        f"'{shorten(right, 30)}' in {value_text('accuracy', comparison[right].metrics['accuracy'].value)}."
    )
