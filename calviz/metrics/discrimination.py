"""Discrimination: whether hits have higher scores than misses."""

from __future__ import annotations

from functools import partial

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.sample import cell_bounds, cell_bounds_of_order, few_events
from calviz.sample.ranking import average_precision, chance_of_order
from calviz.sample.step_views import steps
from calviz.sample.steps import Steps
from calviz.specs.metric import metric

_ONE_KIND = "undefined: all rows are hits, or none is."
_discrimination = partial(
    metric, family="Discrimination and decisions", direction="higher", view=steps, tail="two-sided"
)


@_discrimination(
    key="auroc",
    label="AUROC",
    bounds=(0.0, 1.0),
    formula=r"P(s_{h=1} > s_{h=0}) + \tfrac12 P(s_{h=1} = s_{h=0})",
    reference="Hanley & McNeil 1982",
    undefined=_ONE_KIND,
    closed_interval=few_events.interval_of_area,
    closed_where=few_events.has_both_kinds,
    interval_note=few_events.of_dependent_area,
    bound=cell_bounds.of_pairs,
)
def auroc(view: Steps) -> FloatArray:
    """Probability that a hit has a higher score than a miss, ties counting half: the area under the ROC curve; for the positive class, the c statistic.

    Steps of shape (..., G) give values of shape (...).

    It depends only on the order of the scores. The noise floor is the area that these scores would have if they were calibrated: a
    smaller area means that they are spread too widely for how well they separate hits from misses. The interval is a
    score interval (`calviz.sample.few_events`), as resamples of few events vary too little.
    """
    return chance_of_order(view)


@_discrimination(
    key="somers_d",
    label="Somers' Dxy",
    bounds=(-1.0, 1.0),
    formula=r"2\,\mathrm{AUROC} - 1",
    reference="Somers 1962; Harrell 2015",
    undefined=_ONE_KIND,
    closed_interval=few_events.interval_of_somers_d,
    closed_where=few_events.has_both_kinds,
    interval_note=few_events.of_dependent_area,
    bound=cell_bounds.of_pair_differences,
)
def somers_d(view: Steps) -> FloatArray:
    """Somers' rank correlation between score and hit: 2 AUROC - 1, which credit rating calls the accuracy ratio or Gini coefficient.

    Steps of shape (..., G) give values of shape (...).
    """
    return np.asarray(2 * chance_of_order(view) - 1)


@_discrimination(
    key="auprc",
    label="AUPRC",
    bounds=(0.0, 1.0),
    formula=r"\sum_j (R_j - R_{j-1}) P_j",
    reference="Davis & Goadrich 2006",
    undefined="undefined: no row is a hit.",
    interval_note=few_events.of_few_hits,
    bound=lambda sample, view: cell_bounds_of_order.of_precision(sample, of="hits"),
)
def auprc(view: Steps) -> FloatArray:
    """Area under the precision-recall curve as average precision, tied rows entering together; the chance level is the share of hits, so values from different data are not comparable.

    Steps of shape (..., G) give values of shape (...).
    """
    return average_precision(view, of="hits")
