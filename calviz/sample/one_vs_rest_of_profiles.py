"""One-vs-rest classes of a profile: one sample per class, and the errors of all classes as a view.

A profile holds the distribution of the probabilities of each class, but not which probabilities of different classes belong to
the same row. So each class is drawn on its own, and the dependence between classes is bounded: given the probabilities, the
covariances of the residuals of a class with those of all others add up to no more than its variance, so that the variance of a
sum over classes is at most twice that for independent classes; with drawn rows it is at most four times as large (the absolute
residuals of a row sum to twice that of its true class). Classes are drawn in groups of two and of four that err together, which
gives these variances: intervals and p-values of means over classes are, if anything, too wide and too large.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.cells import Cells
from calviz.core.errors import NotAvailable
from calviz.core.events import CellEvents
from calviz.core.predictions import ConfidencePredictions, Dataset, Predictions
from calviz.core.reduction import Reduction
from calviz.sample import cell_bounds
from calviz.sample.sample import Sample, bin_sums
from calviz.specs.metric import takes_weights

#: Number of classes that err together with redrawn labels and with drawn rows.
TOGETHER_LABELS, TOGETHER_ROWS = 2, 4


def knows_classes(data: Dataset) -> bool:
    """Whether the data are a profile with the probabilities of all classes."""
    if data.cells is None:
        return False
    return isinstance(data, Predictions) or data.class_cells is not None


@takes_weights
def class_samples(sample: Sample) -> tuple[Sample, ...]:
    """One sample per class of a profile, one-vs-rest: the class is the positive one of two.

    Raises
    ------
    NotAvailable
        For a profile without cells of each class.
    """
    return tuple(_of_class(sample, k) for k in range(_classes(sample.data)))


def _classes(data: Dataset) -> int:
    if not knows_classes(data):
        raise NotAvailable(
            "needs the rows, or a profile with cells of each class (--each-class, each_class=True)."
        )
    return data.n_classes


def _of_class(sample: Sample, k: int) -> Sample:
    data = sample.data
    if isinstance(data, Predictions):
        return sample.but(reduction=Reduction("class", class_name=data.class_names[k]))
    assert isinstance(data, ConfidencePredictions)
    assert data.class_cells is not None
    own = data.class_cells.of_class(k)
    score = own["score"]
    unknown = np.full(score.shape, np.nan)
    cells = Cells(own["low"], own["high"], unknown, unknown, unknown, data.class_cells.single)
    one = Predictions(
        probs=np.stack([1 - score, score], axis=1),
        labels=own["hit"].astype(np.int32),
        weights=own["count"],
        cells=cells,
        name=data.name,
    )
    return Sample(one, Reduction("positive"), bins=sample.bins, seed=sample.seed)


@dataclass(frozen=True, eq=False)
class ClassErrorsOfCells:
    """One calibration error per class, one-vs-rest, of a profile.

    Attributes
    ----------
    errors : ndarray, shape (..., K)
        Error per class; a leading axis of resamples is allowed.
    cell_bound : float
        Largest possible difference between the mean over the classes and that of the rows.
    views : tuple of View or None
        One per class; None for a class without probabilities to bin, whose error is 0.
    error : callable
        Takes such a view to its error.
    params : mapping
    """

    #: Fields that differ between resamples.
    DRAWN: ClassVar = ("errors",)

    errors: FloatArray
    cell_bound: float
    views: tuple[Any, ...]
    error: Callable[[Any], FloatArray]
    params: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        views: tuple[Any, ...],
        error: Callable[[Any], FloatArray],
        bounds: list[float],
        params: Mapping[str, Any],
    ) -> Self:
        """Compute the errors of the views of K classes, shape (K,); `bounds` has the bound of each error."""
        errors = np.array([0.0 if view is None else float(error(view)) for view in views])
        return cls(errors, float(np.mean(bounds)), views, error, params)

    def bootstrap(self, rng: np.random.Generator, resamples: int) -> Self:
        """Rows drawn with replacement, for each class."""
        return self._drawn(rng, "bootstrap", resamples, TOGETHER_ROWS)

    def under_calibration(self, rng: np.random.Generator, resamples: int) -> Self:
        """Hits of each class redrawn from its probabilities."""
        return self._drawn(rng, "under_calibration", resamples, TOGETHER_LABELS)

    def as_drawn(self) -> Self:
        """The sample itself as one resample, at the resolution of resamples."""
        drawn = [
            float(self.error(view.as_drawn())[0]) if hasattr(view, "as_drawn") else error
            for view, error in zip(self.views, self.errors.tolist(), strict=True)
        ]
        return replace(self, errors=np.array([drawn]), views=())

    def _drawn(self, rng: np.random.Generator, draw: str, resamples: int, together: int) -> Self:
        drawn = np.zeros((len(self.views), resamples))
        for of_class, view in zip(drawn, self.views, strict=True):
            if view is not None:
                of_class[:] = self.error(getattr(view, draw)(rng, resamples))
        errors = erring_together(rng, drawn, together).T
        return replace(self, errors=errors, views=())


def erring_together(rng: np.random.Generator, drawn: FloatArray, together: int) -> FloatArray:
    """Reorder the draws of each class, shape (K, B), so that the classes of a group are large in the same resamples.

    Each class keeps its own draws; groups consist of classes with similar standard deviations.
    """
    out = np.empty(drawn.shape)
    order = np.argsort(drawn.std(axis=1), kind="stable")
    for first in range(0, order.size, together):
        classes = order[first : first + together]
        out[classes] = np.sort(drawn[classes], axis=1)[:, rng.permutation(drawn.shape[1])]
    return out


def equal_width_errors(sample: Sample, bins: int) -> ClassErrorsOfCells:
    """ECE of each class over equal-width bins."""
    samples = sample.view(class_samples)
    views = tuple(one.view(bin_sums, bins=bins) for one in samples)
    bounds = [cell_bounds.of_binned(*both) for both in zip(samples, views, strict=True)]
    params = {"bins": bins, "scheme": "equal-width"}
    return ClassErrorsOfCells.of(views, _mean_gap, bounds, params)


def thresholded_errors(sample: Sample, bins: int, threshold: float) -> ClassErrorsOfCells:
    """ECE of each class over equal-mass bins of its probabilities above a threshold; nan if no class has any.

    Raises
    ------
    NotAvailable
        If the threshold lies between the scores of a cell, so that it is unknown which of its rows are above it.
    """
    views: list[Any] = []
    bounds = []
    for one in sample.view(class_samples):
        events = one.scored
        assert isinstance(events, CellEvents)
        least = float(events.edge_type.type(threshold))
        if ((events.low <= least) & (events.high > least)).any():
            raise NotAvailable(
                f"needs the rows: this profile does not tell which of its probabilities are above {threshold:g}."
            )
        cells = np.flatnonzero(events.low > least)
        if cells.size:
            part = Sample(one.data.take(cells), one.reduction, seed=one.seed)
            views.append(part.view(bin_sums, bins=bins, scheme="equal-mass"))
            bounds.append(cell_bounds.of_binned(part, views[-1]))
        else:
            views.append(None)
            bounds.append(0.0)
    params = {"bins": bins, "scheme": "equal-mass", "threshold": threshold}
    of_classes = ClassErrorsOfCells.of(tuple(views), _mean_gap, bounds, params)
    if all(view is None for view in views):
        of_classes.errors[:] = np.nan
    return of_classes


def _mean_gap(view: Any) -> FloatArray:
    return np.asarray(view.mean_gap)
