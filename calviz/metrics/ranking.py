"""How well scores tell hits from misses: AUROC, net benefit, selective prediction and failure detection."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from calviz.core.blocks import FloatArray, quotient
from calviz.core.entry_specs import metric
from calviz.core.errors import OptionError
from calviz.sample import cell_bounds, cutoff_and_grades, draws, step_views
from calviz.sample.sample import Sample
from calviz.sample.step_views import StepsWithParams, chance_of_order, ranked_parts, top_label_steps
from calviz.sample.steps import Steps

# ---- Discrimination and decisions

_ONE_KIND = "undefined: all rows are hits, or none is."
_discrimination = partial(
    metric,
    family="Discrimination and decisions",
    direction="higher",
    view=step_views.steps,
    tail="two-sided",
)


@_discrimination(
    label="AUROC",
    tables=("two-classes",),
    bounds=(0.0, 1.0),
    formula=r"P(s_{h=1} > s_{h=0}) + \tfrac12 P(s_{h=1} = s_{h=0})",
    reference="Hanley & McNeil 1982",
    undefined=_ONE_KIND,
    closed_interval=step_views.interval_of_area,
    closed_where=step_views.has_both_kinds,
    closed_weights=True,
    interval_note=step_views.of_dependent_area,
    bound=cell_bounds.of_pairs,
)
def auroc(view: Steps) -> FloatArray:
    """Probability that a hit has a higher score than a miss, ties counting half: the area under the ROC curve; for the positive class, the c statistic.

    Steps of shape (..., G) give values of shape (...).

    It depends only on the order of the scores. The noise floor is the area that these scores would have if they were calibrated: a
    smaller area means that they are spread too widely for how well they separate hits from misses. The interval is a
    score interval (`calviz.sample.step_views`), as resamples of few events vary too little.
    """
    return chance_of_order(view)


@_discrimination(
    label="Somers' Dxy (Gini)",
    bounds=(-1.0, 1.0),
    formula=r"2\,\mathrm{AUROC} - 1",
    reference="Somers 1962; Harrell 2015",
    undefined=_ONE_KIND,
    closed_interval=step_views.interval_of_somers_d,
    closed_where=step_views.has_both_kinds,
    closed_weights=True,
    interval_note=step_views.of_dependent_area,
    bound=lambda sample, view: 2 * cell_bounds.of_pairs(sample, view),
)
def somers_d(view: Steps) -> FloatArray:
    """Somers' rank correlation between score and hit: 2 AUROC - 1, which credit rating calls the accuracy ratio or Gini coefficient.

    Steps of shape (..., G) give values of shape (...).
    """
    return np.asarray(2 * chance_of_order(view) - 1)


@_discrimination(
    label="AUPRC",
    bounds=(0.0, 1.0),
    formula=r"\sum_j (R_j - R_{j-1}) P_j",
    reference="Davis & Goadrich 2006",
    undefined="undefined: no row is a hit.",
    interval_note=step_views.of_few_hits,
    bound=lambda sample, view: cell_bounds.of_precision(sample, of="hits"),
)
def auprc(view: Steps) -> FloatArray:
    """Area under the precision-recall curve as average precision, tied rows entering together; the chance level is the share of hits, so values from different data are not comparable.

    Steps of shape (..., G) give values of shape (...).
    """
    return step_views.average_precision(view, of="hits")


@metric(
    label="Net benefit",
    family="Discrimination and decisions",
    direction="higher",
    bounds=(-math.inf, 1.0),
    formula=r"\frac{\mathrm{TP}}{n} - \frac{\mathrm{FP}}{n} \cdot \frac{t}{1 - t}",
    reference="Vickers & Elkin 2006",
    view=cutoff_and_grades.at_cutoff,
    tail="two-sided",
)
def net_benefit(view: cutoff_and_grades.CutoffCounts) -> FloatArray:
    """True positives per row when acting on scores of at least the cutoff t (0.5 by default), less false positives per row at the exchange rate t / (1 - t) that the cutoff implies.

    Acting on no row has a net benefit of 0, acting on all rows the share of hits less the share of misses times t / (1 - t): a model
    is useful at t if its net benefit exceeds both. Cells of shape (...) give values of shape (...).
    """
    return cutoff_and_grades.net_benefit_of(view.tp, view.fp, view.n, view.params["cutoff"])


# ---- A point of the risk-coverage curve

_of_kept = partial(metric, family="Selective prediction", bounds=(0.0, 1.0), tail="two-sided")
_selective = partial(_of_kept, view=top_label_steps)
_at_point = partial(
    _of_kept, direction="higher", unit="percent", paired=False, reference="Geifman & El-Yaniv 2017"
)


def _share(name: str, value: Any, *, above_zero: bool) -> float:
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or not (0 < value <= 1 or (value == 0 and not above_zero)):
        rule = "above 0 and at most 1" if above_zero else "from 0 to 1"
        raise OptionError(f"'{name}' must be a number {rule}, got {value!r}.")
    return float(value)


@step_views.over_steps(top_label_steps)
def at_coverage(sample: Sample, *, coverage: float = 0.8) -> StepsWithParams:
    """Steps of the top label, and the coverage at which accuracy is computed."""
    share = _share("coverage", coverage, above_zero=True)
    return StepsWithParams(sample.view(top_label_steps), {"coverage": share})


@step_views.over_steps(top_label_steps)
def at_risk(sample: Sample, *, risk: float = 0.05) -> StepsWithParams:
    """Steps of the top label, and the largest error rate allowed."""
    share = _share("risk", risk, above_zero=False)
    return StepsWithParams(sample.view(top_label_steps), {"risk": share})


@_at_point(
    label="Accuracy at a coverage",
    formula=r"1 - \mathrm{risk}(c)",
    view=at_coverage,
    bound=lambda sample, view: cell_bounds.of_coverage(sample, view.params["coverage"]),
)
def accuracy_at_coverage(view: StepsWithParams) -> FloatArray:
    """Accuracy on the most confident share c of the rows (80 % by default); inside a group of ties the expected value is taken.

    Steps of shape (..., G) give values of shape (...).
    """
    coverage = view.params["coverage"]
    errors = step_views.errors_at_coverage(view.steps, coverage)
    return np.asarray(1 - errors / (coverage * view.steps.n))


@_at_point(
    label="Coverage at a risk",
    formula=r"\max \{ c : \mathrm{risk}(c) \le r \}",
    view=at_risk,
    bound=lambda sample, view: cell_bounds.of_coverage_at(sample, view.params["risk"]),
)
def coverage_at_risk(view: StepsWithParams) -> FloatArray:
    """Largest share of the rows that a confidence threshold can keep with an error rate of at most r among them (5 % by default); 0 if no threshold achieves it.

    Steps of shape (..., G) give values of shape (...).

    Tied rows are kept together or not at all, because no threshold tells them apart. The threshold is chosen on
    the rows it is judged on (again on each resample), so on other rows the risk is likely to be a little
    larger; Geifman & El-Yaniv's algorithm 1, which guarantees a risk, keeps fewer rows.
    """
    return step_views.coverage_at(view.steps, view.params["risk"])


# ---- Selective prediction and failure detection

_ALL_RIGHT = "undefined: all predictions are right, or all are wrong."


@_selective(
    tables=("rivals",),
    label="AURC",
    direction="lower",
    formula=r"\int_0^1 \mathrm{risk}(c)\, dc",
    reference="Geifman & El-Yaniv 2017; Ao et al. 2023, section 5.4",
    bound=cell_bounds.of_area,
)
def aurc(view: Steps) -> FloatArray:
    """Area under the risk-coverage curve: the error rate of the kept rows, averaged over all shares of rows kept, most confident first.

    Steps of shape (..., G) give values of shape (...).

    Tied confidences enter together, and the curve is linear in between; below the first step it keeps
    that step's risk (fd-shifts does the same; in torch-uncertainty the order inside ties is arbitrary).
    """
    return np.asarray(_area(view))


@draws.once_per_view
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
    label="E-AURC",
    direction="lower",
    # The optimum is for very many distinct scores: with a large group of ties, AURC may be below it.
    bounds=(-0.5, 1.0),
    formula=r"\mathrm{AURC} - \left( e + (1-e)\ln(1-e) \right)",
    reference="Geifman, Uziel & El-Yaniv 2019",
    bound=cell_bounds.of_area,
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
    unit="percent",
    label="Accuracy at 90 % coverage",
    direction="higher",
    formula=r"1 - \mathrm{risk}(0.9)",
    reference="Geifman & El-Yaniv 2017; Ao et al. 2023, section 5.4",
    bound=lambda sample, view: cell_bounds.of_coverage(sample, 0.9),
)
def accuracy_at_90_coverage(view: Steps) -> FloatArray:
    """Accuracy on the 90 % most confident rows; inside a group of ties the expected value is taken.

    Steps of shape (..., G) give values of shape (...).
    """
    return 1 - step_views.errors_at_coverage(view, 0.9) / (0.9 * view.n)


@_selective(
    undefined=_ALL_RIGHT,
    closed_interval=step_views.interval_of_area,
    closed_where=step_views.has_both_kinds,
    closed_weights=True,
    interval_note=step_views.of_dependent_area,
    label="AUROC of failure detection",
    tables=("confidences",),
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
    undefined="undefined: no prediction is wrong.",
    interval_note=step_views.of_few_misses,
    label="AUPR of errors",
    direction="higher",
    formula=r"\sum_j (R_j - R_{j-1}) P_j",
    reference="Hendrycks & Gimpel 2017",
    bound=lambda sample, view: cell_bounds.of_precision(sample.top_label, of="misses"),
)
def aupr_error(view: Steps) -> FloatArray:
    """Average precision of finding the wrong predictions by their low confidence; the chance level is the error rate, and it is undefined without errors.

    Steps of shape (..., G) give values of shape (...).
    """
    return step_views.average_precision(view, of="misses")


@_selective(
    unit="percent",
    undefined=_ALL_RIGHT,
    interval_note=step_views.of_few_at_95_tpr,
    label="FPR at 95 % TPR",
    direction="lower",
    formula=r"\mathrm{FPR}(t),\; t = \max\{t: \mathrm{TPR}(t) \ge 0.95\}",
    reference="Hendrycks & Gimpel 2017; Corbiere et al. 2019",
    bound=lambda sample, view: cell_bounds.of_kept_misses(sample, 0.95),
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
    return np.where(total[..., 0] > 0, quotient(errors_kept, view.n - view.n_hits), math.nan)
