"""One-vs-rest errors of all classes as one view, from sums over binned columns (`class_columns`)."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.errors import NotAvailable, OptionError
from calviz.numerics.bin_edges import check_bins
from calviz.numerics.safe_division import denominators
from calviz.sample.affordable_resamples import affordable, in_parts
from calviz.sample.class_columns import (
    BinnedColumns,
    equal_width_columns,
    thresholded_columns,
)
from calviz.sample.losses import full_predictions
from calviz.sample.one_vs_rest_of_profiles import (
    ClassErrorsOfCells,
    equal_width_errors,
    thresholded_errors,
)
from calviz.sample.redrawn_rows_and_labels import (
    LABEL_COST,
    ROW_COST,
    Redraws,
    redrawn_labels,
    redraws,
)
from calviz.sample.row_draws import GroupWeights, RowWeights
from calviz.sample.sample import Sample
from calviz.specs.metric import Redrawn, Reweighted, reweighted_by, takes_weights

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


_binned = reweighted_by(_reweighted, _check, redrawn=_redrawn, weighted=True, grouped=True)


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
