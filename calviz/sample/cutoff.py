"""Counts of rows on either side of a cutoff of the score, by which decisions are judged."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.errors import NotAvailable, shortened
from calviz.core.events import BinaryEvents
from calviz.core.largest_remainders import proportional
from calviz.core.options import checked_cutoff
from calviz.core.reduction import Reduction
from calviz.numerics.proportions import clopper_pearson
from calviz.sample.grades import counts_as
from calviz.sample.row_draws import RowWeights
from calviz.sample.row_sums import HitSums, RowSums
from calviz.sample.sample import Sample
from calviz.sample.slice_sums import slice_sums
from calviz.sample.steps import Steps, make_steps
from calviz.specs.metric import Redrawn, Reweighted, reweighted_by

#: Default cutoff.
CUTOFF = 0.5


@dataclass(frozen=True, eq=False)
class CutoffCounts:
    """Number of rows by decision and outcome; rows whose score is at least the cutoff are decided for.

    Attributes
    ----------
    tp, fp, fn, tn : ndarray of float64, shape (...)
        Hits and misses decided for, hits and misses decided against; a leading axis of resamples is allowed.
    params : mapping
        The cutoff.
    events : BinaryEvents or None
        The rows; None for resamples.
    weights, cluster : ndarray, shape (n,), or None
        Weights and cluster numbers of the rows.
    """

    tp: FloatArray
    fp: FloatArray
    fn: FloatArray
    tn: FloatArray
    params: Mapping[str, float] = field(default_factory=dict)
    events: BinaryEvents | None = None
    weights: FloatArray | None = None
    cluster: IntArray | None = None

    #: Fields that differ between resamples.
    DRAWN: ClassVar = ("tp", "fp", "fn", "tn")

    @classmethod
    def of(cls, cells: FloatArray, params: Mapping[str, float], **rows: Any) -> CutoffCounts:
        """From tp, fp, fn and tn along the first axis, shape (4, ...)."""
        tp, fp, fn, tn = cells
        return cls(tp, fp, fn, tn, params, **rows)

    @property
    def n(self) -> FloatArray:
        """All rows, shape (...)."""
        return np.asarray(self.tp + self.fp + self.fn + self.tn)

    @property
    def whole(self) -> dict[str, int]:
        """tp, fp, fn and tn as whole numbers that add up to all rows; those of weighted rows are fractions, and rounded together."""
        cells = np.array([float(getattr(self, name)) for name in self.DRAWN])
        return dict(zip(self.DRAWN, proportional(cells, round(cells.sum())).tolist(), strict=True))

    def bootstrap(self, rng: np.random.Generator, resamples: int) -> CutoffCounts:
        """Rows drawn with replacement: multinomial over the four cells, which is exact."""
        cells = np.array([self.tp, self.fp, self.fn, self.tn], dtype=np.float64)
        drawn = rng.multinomial(int(cells.sum()), cells / cells.sum(), size=resamples)
        return CutoffCounts.of(drawn.T.astype(np.float64), self.params)

    def under_calibration(self, rng: np.random.Generator, resamples: int) -> CutoffCounts:
        """Hits redrawn from the scores."""
        assert self.events is not None
        view = make_steps(self.events)
        first = int(np.searchsorted(view.score, least_score(self.events, self.params["cutoff"])))

        def drawn(side: slice) -> tuple[FloatArray, float]:
            """Hits in each resample, shape (resamples,), and rows."""
            columns = view.score[side], view.count[side], view.hits[side]
            part = Steps(*columns, whole=view)
            if not part.size:
                return np.zeros(resamples), 0.0
            return part.under_calibration(rng, resamples).n_hits, float(part.n)

        hits, rows = zip(*map(drawn, (slice(first), slice(first, None))), strict=True)
        return CutoffCounts(hits[1], rows[1] - hits[1], hits[0], rows[0] - hits[0], self.params)

    @property
    def net_benefit(self) -> float:
        """Net benefit at the cutoff."""
        return float(net_benefit_of(self.tp, self.fp, self.n, self.params["cutoff"]))

    @property
    def net_benefit_of_all(self) -> float:
        """Net benefit of acting on everybody."""
        hits, n = self.tp + self.fn, self.n
        return float(net_benefit_of(hits, n - hits, n, self.params["cutoff"]))

    def meaning(self) -> str:
        """Say which costs the cutoff implies, and what decisions at it then cost."""
        at = float(self.params["cutoff"])
        odds = (1 - at) / at
        weigh = (
            "a missed hit is as bad as a false alarm"
            if at == 0.5
            else (
                f"a missed hit is as bad as {odds:.3g} false alarms"
                if odds >= 1
                else f"a false alarm is as bad as {1 / odds:.3g} missed hits"
            )
        )
        n, hits = float(self.n), float(self.tp + self.fn)
        costs = [
            1000 * (float(missed) + float(alarms) / odds) / n
            for missed, alarms in ((self.fn, self.fp), (0, n - hits), (hits, 0))
        ]
        own, everybody, nobody = (
            f"{cost:,.0f}" if cost >= 10 else f"{cost:,.1f}" for cost in costs
        )
        return (
            f"A cutoff of {at:.3g} is right where {weigh}. By that, 1,000 rows cost as much as {own} missed hits; acting on "
            f"everybody would cost {everybody}, on nobody {nobody}."
        )

    def shares(self, *, level: float = 0.95) -> dict[str, tuple[float, float, float]]:
        """Sensitivity, specificity and predictive values, each with its Clopper-Pearson interval; ``nan`` without rows.

        Weighted or clustered rows count as their effective number (see `counts_as` in `calviz.sample.grades`); with too few
        clusters to know it, the interval is ``nan``.
        """
        parts = {
            "sensitivity": (self.tp, self.fn),
            "specificity": (self.tn, self.fp),
            "positive predictive value": (self.tp, self.fp),
            "negative predictive value": (self.tn, self.fn),
        }
        out = {}
        for name, (right, wrong) in parts.items():
            rows = float(right + wrong)
            share = float(right) / rows if rows else float("nan")
            alike = rows if self.alike or not rows else self._counts_as(name, share)
            low, high = clopper_pearson([share * alike if rows else 0.0], [alike], level=level)
            known = not np.isnan(alike)
            out[name] = (
                share,
                float(low[0]) if known else float("nan"),
                float(high[0]) if known else float("nan"),
            )
        return out

    @property
    def alike(self) -> bool:
        """Whether each row is one observation: neither clusters nor importance weights."""
        counted = self.events is not None and self.events.counted
        return self.cluster is None and (self.weights is None or counted)

    def _counts_as(self, name: str, share: float) -> float:
        """Number of independent rows that the rows behind a share are worth."""
        assert self.events is not None
        hit = self.events.hit
        acted_on = self.events.score >= least_score(self.events, self.params["cutoff"])
        inside, right = {
            "sensitivity": (hit, acted_on),
            "specificity": (~hit, ~acted_on),
            "positive predictive value": (acted_on, hit),
            "negative predictive value": (~acted_on, ~hit),
        }[name]
        rows = np.flatnonzero(inside)
        # The share stands for the score of every row: its gap is 0, and its spread that of the share.
        events = BinaryEvents(np.full(rows.size, share), right[rows])
        sums = slice_sums(
            events,
            np.zeros(rows.size, dtype=np.intp),
            1,
            None if self.cluster is None else self.cluster[rows],
            None if self.weights is None else self.weights[rows],
        )
        return float(counts_as(sums)[0])


def net_benefit_of(tp: Any, fp: Any, n: Any, cutoff: Any) -> FloatArray:
    """``tp / n - fp / n * t / (1 - t)`` (Vickers & Elkin 2006), all of one shape or broadcast."""
    return np.asarray(tp / n - fp / n * (cutoff / (1 - cutoff)))


def least_score(events: BinaryEvents, cutoff: float) -> float:
    """The cutoff in the precision of the scores, so that a score of 0.3 in single precision reaches a cutoff of 0.3."""
    return float(np.asarray(cutoff, dtype=events.score.dtype))


def decidable(sample: Sample) -> Sample:
    """The sample under the class that decisions are about: the positive one of two, or the one-vs-rest class of its reduction.

    Raises
    ------
    NotAvailable
        If there is no such class, or if all rows or none have it.
    """
    data = sample.data
    if data.kind == "confidence":
        raise NotAvailable(
            "not available for confidence-only data: decisions for or against a class need its probability."
        )
    if data.n_classes == 2 and sample.reduction.kind != "class":
        sample = sample.but(reduction=Reduction("positive"))
    elif sample.reduction.kind != "class":
        raise NotAvailable(
            f"decisions at a cutoff are about one of two classes, and these data have {data.n_classes:,}: look at one class "
            "against the rest (on the page Decisions or under Reduction in the sidebar of the app, or --reduction class:NAME)."
        )
    hits, n = int(np.count_nonzero(sample.scored.hit)), sample.data.n
    if hits in (0, n):
        name = shortened(data.class_names[sample.reduction.class_index(data)])
        if data.rows == 1:
            has = "the only row does not have" if hits == 0 else "the only row has"
        else:
            has = f"{'none' if hits == 0 else 'every one'} of the {data.rows:,} rows has"
        raise NotAvailable(
            f"{has} the class '{name}': without both outcomes there is nothing to tell apart; choose other rows, or all splits."
        )
    return sample


def _cells(events: BinaryEvents, cutoff: float) -> IntArray:
    """Code of each row, shape (n,): 0 to 3 for tp, fp, fn, tn."""
    below = events.score < least_score(events, cutoff)
    return np.asarray(2 * below.view(np.uint8) + ~events.hit)


def _reweighted(sample: Sample, view: CutoffCounts) -> Reweighted:
    sums_of = RowSums(_cells(sample.scored, view.params["cutoff"]), 4, None)

    def reweighted(weights: RowWeights) -> Callable[[float | None], CutoffCounts]:
        sums = sums_of(weights)[0]
        return lambda _: CutoffCounts.of(sums, view.params)

    return reweighted


def _redrawn(sample: Sample, view: CutoffCounts) -> Redrawn:
    """See `calviz.specs.metric.Reweighting`."""
    side = _cells(sample.scored, view.params["cutoff"]) // 2
    hits_of = HitSums(sample.scored, side, 2)
    decided = np.array([view.tp + view.fp, view.fn + view.tn])[:, None]

    def draw(rng: np.random.Generator, rows: Any, size: int) -> CutoffCounts:
        hits = hits_of(rng, rows, size)
        misses = decided - hits
        return CutoffCounts(hits[0], misses[0], hits[1], misses[1], view.params)

    return draw


@reweighted_by(_reweighted, redrawn=_redrawn, weighted=True, grouped=True)
def at_cutoff(sample: Sample, *, cutoff: float = CUTOFF) -> CutoffCounts:
    """Decisions at a cutoff of the score of the sample's own reduction."""
    at = checked_cutoff(cutoff)
    counts = RowSums(_cells(sample.scored, at), 4, None).once(sample.weights)[0]
    return CutoffCounts.of(
        counts,
        {"cutoff": at},
        events=sample.scored,
        weights=sample.weights,
        cluster=sample.row_draws.cluster if sample.data.clusters is not None else None,
    )
