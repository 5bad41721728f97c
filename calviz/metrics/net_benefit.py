"""Net benefit of deciding by a cutoff of the score."""

from __future__ import annotations

import math

from calviz.core.arrays import FloatArray
from calviz.sample.cutoff import CutoffCounts, at_cutoff, net_benefit_of
from calviz.specs.metric import metric


@metric(
    key="net_benefit",
    label="Net benefit",
    family="Discrimination and decisions",
    direction="higher",
    bounds=(-math.inf, 1.0),
    formula=r"\frac{\mathrm{TP}}{n} - \frac{\mathrm{FP}}{n} \cdot \frac{t}{1 - t}",
    reference="Vickers & Elkin 2006",
    view=at_cutoff,
    tail="two-sided",
)
def net_benefit(view: CutoffCounts) -> FloatArray:
    """True positives per row when acting on scores of at least the cutoff t (0.5 by default), less false positives per row at the exchange rate t / (1 - t) that the cutoff implies.

    Acting on no row has a net benefit of 0, acting on all rows the share of hits less the share of misses times t / (1 - t): a model
    is useful at t if its net benefit exceeds both. Cells of shape (...) give values of shape (...).
    """
    return net_benefit_of(view.tp, view.fp, view.n, view.params["cutoff"])
