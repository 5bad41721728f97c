"""Whether scores rank in reverse: an AUROC clearly below 1/2, which no calibrated and no useless model has but by chance."""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import ndtr, stdtr

from calviz.core.blocks import IntArray, effective_number
from calviz.core.claims import claim
from calviz.core.entry_specs import Told, check, takes_weights
from calviz.core.events import Reduction
from calviz.core.predictions import Predictions
from calviz.core.words import counted, decimal, listed, p_value, shorten
from calviz.sample.error_bars import CLASS_TEST
from calviz.sample.sample import Sample
from calviz.sample.step_views import Placements, step_of_rows, steps
from calviz.verdicts.joint_tests import MIN_ROWS, collect_evidence

#: Level of the test where the verdict finds miscalibration, as it does if scores rank in reverse: this adds nothing to the statements
#: about calibrated files. Otherwise the level is `CLASS_TEST`.
LEVEL_IF_OFF = 0.01
#: Areas between this and 1/2 are negligible, however certain: such scores hardly tell the classes apart.
CLEARLY_BELOW = 0.47
#: Class names up to this length are written out in an option.
NAME = 30


@dataclass(frozen=True)
class AreaTest:
    """Test of an AUROC of 1/2 or more.

    Attributes
    ----------
    of : {"two classes", "class", "confidence"}
        Whose scores: those of the positive one of two classes, of one of more classes, or of the predicted class.
    area : float
        AUROC.
    p_value : float
        One-sided p-value of an area as small as this; 1 if it cannot be tested.
    level : float
        Largest p-value that is beyond chance.
    """

    of: Literal["two classes", "class", "confidence"]
    area: float
    p_value: float
    level: float

    @property
    def in_reverse(self) -> bool:
        """Whether the area is clearly below 1/2, beyond chance."""
        return self.area <= CLEARLY_BELOW and self.p_value <= self.level


@takes_weights
def area_test(sample: Sample) -> AreaTest | None:
    """Test whether the scores rank in reverse; None with fewer than `MIN_ROWS` rows, without hits or misses, or for lower ranks.

    Two classes are tested by the positive one, whatever the reduction; more classes by the reduction's class or by the top label,
    as confidence-only data are.
    """
    data, reduction = sample.data, sample.reduction
    if data.rows < MIN_ROWS:
        return None
    of: Literal["two classes", "class", "confidence"] = "confidence"
    if isinstance(data, Predictions) and data.n_classes == 2:
        of, reduction = "two classes", Reduction.of("positive")
    elif reduction.kind == "class":
        of = "class"
    elif reduction.kind != "top-label":
        return None
    tested = _area(sample.but(reduction=reduction))
    if tested is None:
        return None
    area, p = tested
    # The evidence takes time, and is needed only where it decides.
    open_ = area <= CLEARLY_BELOW and CLASS_TEST < p <= LEVEL_IF_OFF
    off = open_ and sample.once(collect_evidence).beyond_noise
    return AreaTest(of, area, p, LEVEL_IF_OFF if off else CLASS_TEST)


def _area(sample: Sample) -> tuple[float, float] | None:
    """AUROC and its one-sided p-value; None without hits or misses.

    The standard deviation is the larger of two: that of an area of scores which do not depend on the hits (Mann & Whitney 1947, with
    ties), and that estimated from the rows (DeLong et al. 1988), for clusters from the sums over each (Obuchowski 1997). The
    p-value is that of a normal variable or, of weighted and clustered rows, of Student's t with the effective number of groups
    of the rarer kind, less 1.
    """
    view = sample.view(steps)
    placed = Placements.of(view)
    if placed is None:
        return None
    if sample.data.alike:
        independent = _rank_variance(placed) * sum(
            1 / float(kind.sum()) for kind in (placed.hits, placed.misses)
        )
        return placed.area, float(ndtr(-_below_half(placed, max(placed.variance, independent))))
    return placed.area, _p_of_unlike_rows(sample, placed, step_of_rows(sample.scored, view))


def _p_of_unlike_rows(sample: Sample, placed: Placements, step: IntArray) -> float:
    hit, draws = sample.scored.hit, sample.row_draws
    weight = np.ones(draws.n) if draws.weights is None else draws.weights
    group = np.arange(draws.n) if draws.cluster is None else draws.cluster
    g = draws.clusters
    of_group = np.bincount(group, placed.influences(step, hit, weight), minlength=g)
    independent, freedom = 0.0, math.inf
    for kind in (hit, ~hit):
        own = weight * kind / (weight @ kind)
        independent += _rank_variance(placed) * float(own @ own)
        per_group = np.bincount(group, own, minlength=g).astype(np.float64)
        freedom = min(freedom, effective_number(per_group) - 1)
    if freedom < 1:
        return 1.0
    variance = float(of_group @ of_group) * g / (g - 1) if g > 1 else 0.0
    return float(stdtr(freedom, -_below_half(placed, max(variance, independent))))


def _rank_variance(placed: Placements) -> float:
    """Variance of the mid-ranks of all rows, as shares of their number, by the rows less 1."""
    count = placed.hits + placed.misses
    n = float(count.sum())
    rank = (np.cumsum(count) - count / 2) / n
    return float(count @ np.square(rank - 0.5)) / max(n - 1, 1.0)


def _below_half(placed: Placements, variance: float) -> float:
    """Distance of the area below 1/2, in standard deviations; 0 if nothing varies."""
    return (0.5 - placed.area) / variance**0.5 if variance > 0 else 0.0


@claim(
    "in-reverse",
    says="The scores rank in reverse",
    chosen="nothing",
    adjusted="one-sided test of the AUROC at 1 %, or at a sixth of it if nothing else is found",
)
def in_reverse(sample: Sample) -> bool:
    """Whether the scores rank in reverse, beyond chance."""
    test = sample.once(area_test)
    return test is not None and test.in_reverse


@claim("in-reverse")
def reverse_words(sample: Sample) -> str:
    """Return the sentence of the verdict on scores that rank in reverse; "" if they do not."""
    test = sample.once(area_test)
    if test is None or not test.in_reverse:
        return ""
    if test.of == "two classes":
        return "The scores rank the classes in reverse: are they of the other class?"
    if test.of == "class":
        name = shorten(sample.reduction.class_name, NAME)
        return f"The scores rank the rows in reverse: are they of another class than '{name}'?"
    return "The confidence ranks the predictions in reverse: the most confident ones are the most often wrong."


@check(
    "CAL026",
    "Scores that rank in reverse",
    reference="Mann & Whitney 1947; DeLong et al. 1988; Obuchowski 1997",
    clusters=True,
    weights=True,
)
@claim("in-reverse")
def ranks_in_reverse(sample: Sample) -> Iterator[Told]:
    """Report an AUROC clearly below 1/2, and what to read or check."""
    test = sample.once(area_test)
    if test is None or not test.in_reverse:
        return
    rows = counted(sample.data.rows, "row")
    seen = f"AUROC {decimal(test.area, 3)}, where useless scores have 0.5 ({p_value(test.p_value)})"
    names = sample.data.class_names
    if test.of == "two classes":
        text = (
            f"The scores rank the classes in reverse on {rows}: {seen}; are they of {listed(names[:1])}, not of {listed(names[1:])}? "
            f"If so, name the classes in the other order{_other_order(names)}; where the header names the class of a column, or the "
            "labels are numbers of columns, correct those."
        )
    elif test.of == "class":
        text = (
            f"The scores of {listed([sample.reduction.class_name])} rank in reverse on {rows}: {seen}; check which class each score "
            "column is of."
        )
    else:
        check = "which class each score column is of"
        if sample.data.cells is not None:  # of probabilities or of a confidence
            check = "what the scores are of, and what the labels mean"
        elif not isinstance(sample.data, Predictions):
            check = "that 1 means a right prediction, and that the score is a confidence, which is large for sure predictions"
        text = f"The most confident predictions are the most often wrong on {rows}: {seen}; check {check}."
    yield "warning", text


def _other_order(names: Sequence[str]) -> str:
    """The options that name two classes in the other order, for the command line and for Python; "" for names that do not fit there."""
    turned = names[::-1]
    if any(len(name) > NAME or "," in name or not name.isprintable() for name in names):
        return ""
    option = shlex.quote(",".join(turned))
    return f" (--class-names {option}, or class_names={list(turned)})"
