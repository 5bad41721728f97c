"""Resampling of weighted or clustered rows: rows that count differently, and clusters of rows that depend on each other.

A view of such rows is recomputed from weights per row, as paired resamples are (`calviz.specs.metric.Reweighting`):

- *resamples* draw whole clusters with replacement (rows, where there are no clusters), times the weights of the rows;
- the residuals, hit minus score, of a *calibrated model* have a mean of 0. Without clusters labels are redrawn from the scores.
  With clusters the residuals of each whole cluster keep or change their sign at random (wild cluster bootstrap: Cameron,
  Gelbach & Miller 2008; Davidson & Flachaire 2008), so that the rows of a cluster stay as dependent as they are. Labels
  redrawn row by row would make the noise floor too low, and p-values too small.

`row_draws` draws the rows, and `row_sums` adds them up.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from calviz.core.errors import NotAvailable
from calviz.core.progress import checkpoint
from calviz.numerics.threads import one_blas_thread
from calviz.sample.row_draws import RowDraws
from calviz.specs.metric import Reweighting

V = TypeVar("V", bound=Any)

#: (group, resample) pairs held in memory at a time.
PAIRS_AT_A_TIME = 1 << 22

#: Reason given where a metric of such rows has no error bars.
REFUSED = "this metric cannot be resampled by clusters or with weights."


@dataclass(frozen=True, eq=False)
class Drawing:
    """How a view of weighted or clustered rows is resampled, and redrawn under calibration.

    Attributes
    ----------
    sample : Sample
    rows : RowDraws
    reweighting : Reweighting or None
        None where the view cannot be recomputed from weights.
    """

    sample: Any
    rows: RowDraws
    reweighting: Reweighting | None

    def of_independent_rows(self) -> Drawing | None:
        """How the view is drawn if rows do not depend on each other; None if they have no weights either."""
        rows = replace(self.rows, cluster=None)
        return None if rows.weights is None else replace(self, rows=rows)

    def draw(self, view: V, draw: str, rng: np.random.Generator, resamples: int) -> V:
        """Draw `resamples` views, as one with a leading axis; on one thread, as such matrix products are slower on several.

        Raises
        ------
        NotAvailable
            If the view cannot be drawn in this way.
        """
        if self.rows.clusters < 2:
            raise NotAvailable("these rows are one cluster: there is nothing to resample.")
        if self.reweighting is None or (draw != "bootstrap" and self.reweighting.redrawn is None):
            raise NotAvailable(REFUSED)
        with one_blas_thread():
            return self._drawn(view, draw, rng, resamples, self.reweighting)

    def _drawn(
        self, view: V, draw: str, rng: np.random.Generator, resamples: int, reweighting: Reweighting
    ) -> V:
        reweighting.check(self.sample)
        resamples = self.rows.affordable(resamples)
        step = max(1, PAIRS_AT_A_TIME // (self.rows.groups if reweighting.grouped else self.rows.n))
        sizes = [min(step, resamples - start) for start in range(0, resamples, step)]
        parts = []
        if draw == "bootstrap":
            reweighted = reweighting.make(self.sample, view)
            for size in sizes:
                checkpoint()
                drawn = self.rows.counts(rng, size)
                parts.append(reweighted(drawn if reweighting.grouped else np.asarray(drawn))(None))
        else:
            assert reweighting.redrawn is not None
            redrawn = reweighting.redrawn(self.sample, view)
            for size in sizes:
                checkpoint()
                parts.append(redrawn(rng, self.rows, size))
        view_of_all: V = joined(parts)
        return view_of_all


def joined(views: list[V]) -> V:
    """Join resampled views: the fields that differ between them (``DRAWN``) are concatenated along the first axis."""
    first = views[0]
    if len(views) == 1:
        return first

    def together(name: str) -> Any:
        parts = [getattr(view, name) for view in views]
        return np.concatenate(parts) if isinstance(parts[0], np.ndarray) else joined(parts)

    whole: V = replace(first, **{name: together(name) for name in first.DRAWN})
    return whole
