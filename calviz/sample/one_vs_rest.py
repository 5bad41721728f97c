"""Calibration errors of all classes, each against the rest, as one view."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from calviz.core.blocks import FloatArray, IntArray, denominators
from calviz.core.entry_specs import Redrawn, Reweighted, reweighted_by, takes_weights
from calviz.core.errors import NotAvailable, OptionError
from calviz.core.events import CellEvents, Reduction, check_bins
from calviz.core.predictions import ConfidencePredictions, Dataset, Predictions
from calviz.core.row_columns import Cells
from calviz.sample import cell_bounds
from calviz.sample.class_columns import (
    LABEL_COST,
    ROW_COST,
    BinnedColumns,
    Redraws,
    equal_width_columns,
    redrawn_labels,
    redraws,
    thresholded_columns,
)
from calviz.sample.draws import GroupWeights, RowWeights, affordable, in_parts
from calviz.sample.sample import Sample, bin_sums, full_predictions

#: Largest number of probabilities for paired differences, whose resamples each pass over all of them.
PAIRED_ENTRIES = 20_000_000


@dataclass(frozen=True, eq=False)
class ClassErrors:
    """One calibration error per class, one-vs-rest, and how to resample it.

    Attributes
    ----------
    errors : ndarray, shape (..., K)
        Error per class; a leading axis of resamples is allowed.
    columns : BinnedColumns
        The binned columns that the errors are computed from.
    draws : Redraws
    params : mapping
    """

    #: Fields that differ between resamples.
    DRAWN: ClassVar = ("errors",)

    errors: FloatArray
    columns: BinnedColumns
    draws: Redraws
    params: Mapping[str, Any] = field(default_factory=dict)

    @property
    def _size(self) -> int:
        """Bytes of one resample: a number per class, held twice while resamples are concatenated."""
        return 2 * 8 * self.columns.data.n_classes

    def bootstrap(self, rng: np.random.Generator, resamples: int) -> Self:
        """Rows drawn with replacement; the bins stay."""
        data, class_bins = self.columns.data, self.columns.class_bins
        if class_bins.above is None:
            listed, dense = (
                min(float(class_bins.bins), data.n_classes) * data.n,
                data.probs.size / 20,
            )
        else:
            listed, dense = float(self.columns.count.sum()), 0.0
        resamples = affordable(
            resamples,
            ROW_COST * data.n + 0.5 * listed + dense,
            start=60 * listed,
            size=self._size,
        )
        drawn = map(self.columns.weighted_errors, self.draws.weights(rng, resamples))
        return type(self)(np.concatenate(list(drawn)), self.columns, self.draws, self.params)

    def under_calibration(self, rng: np.random.Generator, resamples: int) -> Self:
        """Labels redrawn from the rows' own probabilities; the bins stay."""
        data = self.columns.data
        resamples = affordable(
            resamples, LABEL_COST * data.n, start=5.0 * data.probs.size, size=self._size
        )
        drawn = [self.columns.errors(y) for y in self.draws.labels(rng, resamples)]
        return type(self)(np.concatenate(drawn), self.columns, self.draws, self.params)


def _class_errors(sample: Sample, columns: BinnedColumns, params: dict[str, Any]) -> ClassErrors:
    errors = columns.errors(columns.data.labels[None])[0]
    return ClassErrors(errors, columns, sample.view(redraws), params)


def _reweighted(sample: Sample, view: ClassErrors) -> Reweighted:
    """See `Reweighting`."""
    columns = view.columns
    dtype = columns.data.probs.dtype  # so that the probabilities are not copied
    itself = columns.scores - next(columns.hits(columns.data.labels[None]))

    def reweighted(weights: RowWeights) -> Callable[[float | None], ClassErrors]:
        # Most cells hold few rows and rarely a hit. Resampled rows contain only hits that did occur, not those that might have
        # occurred, so labels are redrawn from the probabilities instead. The sample's own weights are no resample: they stand
        # for the case without noise, and have no deviations.
        own = 1.0 if columns.weights is None else columns.weights[:, None]
        without_noise = not isinstance(weights, GroupWeights) and bool((weights == own).all())
        parts = in_parts(weights.shape[1], itself.size)
        kept: list[FloatArray] = []

        def deviations(rows: slice) -> FloatArray:
            if without_noise:  # then the weights are an array
                return np.zeros((weights[:, rows].shape[1], *itself.shape))
            if kept:
                return kept[0]
            if sample.data.clusters is not None:  # labels of a cluster cannot be redrawn one by one
                gaps = columns.weighted_gaps(weights[:, rows].astype(dtype))[0]
                return np.asarray(np.moveaxis(gaps - itself[..., None], -1, 0))
            labels = sample.view(_class_labels)(np.asarray(weights))[rows]
            drawn = np.asarray(columns.scores - np.stack(list(columns.hits(labels))))
            if len(parts) == 1:
                kept.append(drawn)
            return drawn

        def at_scale(scale: float | None) -> ClassErrors:
            if scale is None:
                return replace(view, errors=columns.weighted_errors(weights.astype(dtype)))
            gaps = [np.abs(scale * itself + deviations(rows)).sum(axis=-1) for rows in parts]
            return replace(view, errors=np.concatenate(gaps) / denominators(columns.count))

        return at_scale

    return reweighted


def _redrawn(_: Sample, view: ClassErrors) -> Redrawn:
    """See `Reweighting`."""
    columns = view.columns

    def draw(rng: np.random.Generator, rows: Any, size: int) -> ClassErrors:
        if rows.cluster is None:
            labels = redrawn_labels(columns.data.probs, rng, size)
            return replace(view, errors=columns.errors(labels))
        gaps = columns.weighted_gaps(rows.signs(rng, size))[0]
        return replace(view, errors=columns.errors_of(gaps, columns.count[:, None]))

    return draw


@takes_weights
def _class_labels(sample: Sample) -> Callable[[FloatArray], IntArray]:
    """Function that draws labels, shape (b, n), from the rows' probabilities, with a seed made of the weights, shape (n, b).

    All sets of predictions in a comparison have the same weights, and so the same random numbers: their labels agree as far
    as their probabilities do.
    """
    last: list[tuple[FloatArray, IntArray]] = []

    def labels(weights: FloatArray) -> IntArray:
        if not last or last[0][0] is not weights:
            data = full_predictions(sample)
            rng = np.random.default_rng(_seed_of(weights))
            last[:] = [(weights, redrawn_labels(data.probs, rng, weights.shape[1]))]
        return last[0][1]

    return labels


def _seed_of(weights: FloatArray) -> int:
    """A seed made of the weights of the first resample: the same for equal weights, on every system."""
    first = np.ascontiguousarray(weights[:, 0], dtype="<f8")
    return int.from_bytes(hashlib.blake2b(first.tobytes(), digest_size=16).digest(), "little")


def _check(sample: Sample) -> None:
    if sample.data.cells is not None:
        raise NotAvailable("paired differences of this metric need the rows.")
    if sample.data.n * sample.data.n_classes > PAIRED_ENTRIES:
        raise NotAvailable("these data are too large for paired differences of this metric.")


_binned = reweighted_by(_reweighted, _check, redrawn=_redrawn)


@_binned
def classwise_equal_width(sample: Sample, *, bins: int = 15) -> ClassErrors | ClassErrorsOfCells:
    """One-vs-rest ECE of every class over equal-width bins."""
    check_bins(bins)
    if sample.data.cells is not None:
        return equal_width_errors(sample, bins)
    columns = equal_width_columns(full_predictions(sample), bins, sample.weights)
    return _class_errors(sample, columns, {"bins": bins, "scheme": "equal-width"})


@_binned
def classwise_thresholded(
    sample: Sample, *, bins: int = 15, threshold: float = 1e-3
) -> ClassErrors | ClassErrorsOfCells:
    """One-vs-rest ECE of every class over equal-mass bins of the scores above a threshold.

    A class without such scores has an error of 0; if no class has any, all errors are ``nan``.
    """
    check_bins(bins)
    if not (isinstance(threshold, int | float) and 0 <= threshold < 1):
        raise OptionError(f"'threshold' must be a number from 0 up to 1, got {threshold!r}.")
    if sample.data.cells is not None:
        return thresholded_errors(sample, bins, float(threshold))
    columns = thresholded_columns(full_predictions(sample), bins, float(threshold), sample.weights)
    params = {"bins": bins, "scheme": "equal-mass", "threshold": threshold}
    view = _class_errors(sample, columns, params)
    if not columns.count.any():
        view.errors[:] = np.nan
    return view


# ---- Profiles

# A profile holds the distribution of the probabilities of each class, but not which probabilities of different classes belong to
# the same row. So each class is drawn on its own, and the dependence between classes is bounded: given the probabilities, the
# covariances of the residuals of a class with those of all others add up to no more than its variance, so that the variance of a
# sum over classes is at most twice that for independent classes; with drawn rows it is at most four times as large (the absolute
# residuals of a row sum to twice that of its true class). Classes are drawn in groups of two and of four that err together, which
# gives these variances: intervals and p-values of means over classes are, if anything, too wide and too large.


#: Number of classes that err together with redrawn labels and with drawn rows.
TOGETHER_LABELS, TOGETHER_ROWS = 2, 4


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


@takes_weights
def class_samples(sample: Sample) -> tuple[Sample, ...]:
    """One sample per class of a profile, one-vs-rest: the class is the positive one of two.

    Raises
    ------
    NotAvailable
        For a profile without cells of each class.
    """
    return tuple(_of_class(sample, k) for k in range(_classes(sample.data)))


def knows_classes(data: Dataset) -> bool:
    """Whether the data are a profile with the probabilities of all classes."""
    if data.cells is None:
        return False
    return isinstance(data, Predictions) or data.class_cells is not None


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
