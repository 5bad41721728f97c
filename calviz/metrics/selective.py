"""Selective prediction and failure detection: whether confidence tells right predictions from wrong ones."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.numerics.safe_division import quotient
from calviz.sample import cell_bounds, cell_bounds_of_order, few_events
from calviz.sample.ranking import (
    average_precision,
    chance_of_order,
    errors_at_coverage,
    ranked_parts,
)
from calviz.sample.step_views import top_label_steps
from calviz.sample.steps import Steps
from calviz.sample.view_caches import once_per_view
from calviz.specs.metric import metric

_selective = partial(
    metric, family="Selective prediction", bounds=(0.0, 1.0), view=top_label_steps, tail="two-sided"
)

_ONE_KIND = "undefined: all predictions are right, or all are wrong."


@_selective(
    key="aurc",
    tables=("models", "rivals"),
    label="AURC",
    direction="lower",
    formula=r"\int_0^1 \mathrm{risk}(c)\, dc",
    reference="Geifman & El-Yaniv 2017; Ao et al. 2023, section 5.4",
    bound=cell_bounds_of_order.of_area,
)
def aurc(view: Steps) -> FloatArray:
    """Area under the risk-coverage curve: the error rate of the kept rows, averaged over all shares of rows kept, most confident first.

    Steps of shape (..., G) give values of shape (...).

    Tied confidences enter together, and the curve is linear in between; below the first step it keeps
    that step's risk (fd-shifts does the same; in torch-uncertainty the order inside ties is arbitrary).
    """
    return np.asarray(_area(view))


@once_per_view
def _area(view: Steps) -> FloatArray:
    area = np.zeros(np.shape(view.n))
    for i, (rows, errors) in enumerate(ranked_parts(view)):
        risk = quotient(errors, rows, otherwise=0.0)
        # Each step adds its rows times the mean risk at its ends; the first with rows has one end only.
        height = risk[..., 1:] + np.where(rows[..., :-1] > 0, risk[..., :-1], risk[..., 1:])
        height *= np.diff(rows, axis=-1)
        if i == 0:
            area += rows[..., 0] * risk[..., 0]
        area += height.sum(axis=-1) / 2
    return np.asarray(area / view.n)


@_selective(
    key="e_aurc",
    label="E-AURC",
    direction="lower",
    # The optimum is for very many distinct scores: with a large group of ties, AURC may be below it.
    bounds=(-0.5, 1.0),
    formula=r"\mathrm{AURC} - \left( e + (1-e)\ln(1-e) \right)",
    reference="Geifman, Uziel & El-Yaniv 2019",
    bound=cell_bounds_of_order.of_area,
)
def e_aurc(view: Steps) -> FloatArray:
    """Excess AURC: the AURC minus that of a perfect ranking with the same error rate e.

    Steps of shape (..., G) give values of shape (...).
    """
    error = (view.n - view.n_hits) / view.n
    right = 1 - error
    best = error + right * np.log(np.where(right > 0, right, 1.0))
    return np.asarray(_area(view) - best)


@_selective(
    key="accuracy_at_90_coverage",
    unit="percent",
    label="Accuracy at 90 % coverage",
    direction="higher",
    formula=r"1 - \mathrm{risk}(0.9)",
    reference="Geifman & El-Yaniv 2017; Ao et al. 2023, section 5.4",
    bound=lambda sample, view: cell_bounds_of_order.of_coverage(sample, 0.9),
)
def accuracy_at_90_coverage(view: Steps) -> FloatArray:
    """Accuracy on the 90 % most confident rows; inside a group of ties the expected value is taken.

    Steps of shape (..., G) give values of shape (...).
    """
    return 1 - errors_at_coverage(view, 0.9) / (0.9 * view.n)


@_selective(
    key="auroc_failure",
    undefined=_ONE_KIND,
    closed_interval=few_events.interval_of_area,
    closed_where=few_events.has_both_kinds,
    interval_note=few_events.of_dependent_area,
    label="AUROC of failure detection",
    direction="higher",
    formula=r"P(\mathrm{conf}_{\mathrm{right}} > \mathrm{conf}_{\mathrm{wrong}}) + \tfrac12 P(=)",
    reference="Hendrycks & Gimpel 2017",
    bound=lambda sample, view: cell_bounds.of_pairs(sample.top_label, view),
)
def auroc_failure(view: Steps) -> FloatArray:
    """Probability that a right prediction has a higher confidence than a wrong one, ties counting half; undefined where all are right or all wrong.

    Steps of shape (..., G) give values of shape (...).
    """
    return chance_of_order(view)


@_selective(
    key="aupr_error",
    undefined="undefined: no prediction is wrong.",
    interval_note=few_events.of_few_misses,
    label="AUPR of errors",
    direction="higher",
    formula=r"\sum_j (R_j - R_{j-1}) P_j",
    reference="Hendrycks & Gimpel 2017",
    bound=lambda sample, view: cell_bounds_of_order.of_precision(sample.top_label, of="misses"),
)
def aupr_error(view: Steps) -> FloatArray:
    """Average precision of finding the wrong predictions by their low confidence; the chance level is the error rate, and it is undefined without errors.

    Steps of shape (..., G) give values of shape (...).
    """
    return average_precision(view, of="misses")


@_selective(
    key="fpr95",
    unit="percent",
    undefined=_ONE_KIND,
    interval_note=few_events.of_few_at_95_tpr,
    label="FPR at 95 % TPR",
    direction="lower",
    formula=r"\mathrm{FPR}(t),\; t = \max\{t: \mathrm{TPR}(t) \ge 0.95\}",
    reference="Hendrycks & Gimpel 2017; Corbiere et al. 2019",
    bound=lambda sample, view: cell_bounds_of_order.of_kept_misses(sample, 0.95),
)
def fpr95(view: Steps) -> FloatArray:
    """Share of the wrong predictions kept at the highest confidence threshold that keeps 95 % of the right ones; undefined where all are right or all wrong.

    Steps of shape (..., G) give values of shape (...).
    """
    total = view.n_hits[..., None]
    # Tolerance for rounding: 0.95 * total may miss a whole number by a little.
    least = 0.95 * total - 1e-9
    rows, errors = next(
        r for r in ranked_parts(view) if (r.rows[..., -1:] - r.errors[..., -1:] >= least).all()
    )
    at = np.argmax(rows - errors >= least, axis=-1)
    errors_kept = np.take_along_axis(errors, at[..., None], axis=-1)[..., 0]
    rate = quotient(errors_kept, view.n - view.n_hits)
    return np.where(total[..., 0] > 0, rate, math.nan)
