"""The ECE as other libraries define it: all of them on one sample, then one library after the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial

import numpy as np

from calviz.core.blocks import BoolArray, FloatArray, IntArray, for_columns, row_blocks
from calviz.core.entry_specs import CONVENTIONS, Convention, Conventions, ConventionValue
from calviz.core.errors import NotAvailable
from calviz.core.events import CUBE_ROOT, BinaryEvents, Reduction, bins_used, ends_of_bins
from calviz.core.predictions import Dataset, Predictions
from calviz.sample import draws, error_bars
from calviz.sample.sample import Sample, chosen_bins, full_predictions, reduce

#: Number of label redraws for a mean under calibration, and limit of the probabilities evaluated over all redraws.
REDRAWS, WORK = 30, 1 << 23
#: With fewer affordable redraws than this, no means are computed.
LEAST_REDRAWS = 20


def measured_conventions(sample: Sample, *, noise: bool = True) -> Conventions:
    """Compute calviz's ECE and the "ECE" of every convention.

    The mean of calviz's own ECE for a calibrated model is the noise floor of the metric, with the same bins, seed and number
    of redraws. The means of the others come from few redraws, with calviz's own ECE as a control variate, so that a
    convention that always gives the same value as calviz has the same mean.

    Parameters
    ----------
    sample : Sample
        Its bins are used for calviz's own ECE; the other conventions have their own.
    noise : bool
        Whether to compute the means under calibration, if the data are not too large.
    """
    sample = sample.but(scheme=sample.scheme or "equal-width")
    sums = chosen_bins(sample)
    own, values = float(sums.mean_gap), sample.once(_values)
    redraws = _affordable(sample.data) if noise and sample.data.alike else 0
    own_noise = math.nan
    if noise:
        calibrated = error_bars.resampled(sums, "under_calibration", **sample.redrawing)
        own_noise = float(calibrated.mean_gap.mean())
    if redraws:
        rng = error_bars.stream(sample.seed, "under_calibration")
        redrawn = [sample.with_data(data) for data in _redrawn(sample.data, rng, redraws)]
        control = np.array([chosen_bins(one).mean_gap for one in redrawn])
        means = _means([_values(one) for one in redrawn], control, own_noise)
        values = tuple(
            replace(v, noise=means[v.convention.key]) if v.available else v for v in values
        )
    return Conventions(
        name=sample.data.name,
        rows=sample.data.n,
        split=sample.split,
        reduction=sample.reduction.key,
        ece=own,
        noise=own_noise,
        params={"bins": sample.bins_used, "scheme": sample.scheme},
        redraws=redraws,
        values=values,
    )


def _values(sample: Sample) -> tuple[ConventionValue, ...]:
    """Values of all conventions, without means under calibration: the same whether these are computed or not."""
    values = []
    for convention in CONVENTIONS:
        try:
            values.append(ConventionValue(convention, convention.value(sample)))
        except NotAvailable as error:
            values.append(ConventionValue(convention, math.nan, reason=str(error)))
    return tuple(values)


def _affordable(data: Dataset) -> int:
    redraws = min(REDRAWS, WORK // (data.n * max(2, data.n_classes)))
    return redraws if redraws >= LEAST_REDRAWS else 0


def _redrawn(data: Dataset, rng: np.random.Generator, redraws: int) -> Iterator[Dataset]:
    """Yield the same predictions with labels redrawn from their probabilities."""
    if isinstance(data, Predictions):
        for labels in draws.redrawn_labels(data.probs, rng, redraws):
            yield Predictions(probs=data.probs, labels=labels, class_names=data.class_names)
        return
    for _ in range(redraws):
        yield replace(data, correct=rng.random(data.n) < data.confidence)


def _means(
    values_by_redraw: list[tuple[ConventionValue, ...]], control: FloatArray, mean: float
) -> dict[str, float]:
    """Return the corrected mean of each convention; `control` (B,) is calviz's ECE on the redraws, `mean` its mean over many."""
    means = {}
    for column in zip(*values_by_redraw, strict=True):
        # A redraw may lack what a convention needs (labels of three classes); average over the others.
        available = np.array([v.available for v in column])
        value = np.array([v.value for v in column])[available]
        means[column[0].convention.key] = _corrected(value, control[available], mean)
    return means


def _corrected(value: FloatArray, control: FloatArray, mean: float) -> float:
    """Mean of the values (B,) with `control` (B,) as a control variate of expectation `mean`; ``nan`` without values."""
    if not value.size:
        return math.nan
    off = control - control.mean()
    spread = float(off @ off)
    slope = float(off @ value) / spread if spread > 0 else 0.0
    return float(value.mean()) + slope * (mean - float(control.mean()))


_ValueOf = Callable[[Sample], float]


def _convention(**facts: str) -> Callable[[_ValueOf], _ValueOf]:
    """Register the decorated function of a sample as a convention (see `Convention`)."""
    return CONVENTIONS.adding(lambda value: Convention(value=value, **facts))


def gaps(
    score: FloatArray, hit: FloatArray, cell: IntArray, cells: int
) -> tuple[FloatArray, FloatArray]:
    """Return the rows per cell, and the sum of score minus hit per cell, shape (cells,) each; sums are in float64."""
    count: FloatArray = np.bincount(cell, minlength=cells).astype(np.float64)
    gap = np.bincount(cell, weights=score, minlength=cells)
    gap -= np.bincount(cell, weights=hit, minlength=cells)
    return count, np.asarray(gap)


def mean_gap(score: FloatArray, hit: FloatArray, cell: IntArray, cells: int) -> float:
    """Mean of the absolute gaps of the cells, weighted by their rows; all arrays have shape (n,)."""
    _, gap = gaps(score, hit, cell, cells)
    return float(np.abs(gap).sum() / score.size)


def as_float64(events: BinaryEvents) -> tuple[FloatArray, FloatArray]:
    """Convert score and hit to float64, shape (n,) each; NumPy compares float32 scores with float64 edges in float64."""
    return events.score.astype(np.float64), events.hit.astype(np.float64)


def right_closed(score: FloatArray, bins: int) -> IntArray:
    """Index of the bin (a, b] between equally spaced edges, shape (n,); the first bin also contains 0."""
    return np.searchsorted(np.linspace(0, 1, bins + 1)[1:-1], score, side="left")


def positive_of_two(sample: Sample) -> BinaryEvents:
    """Score and hit for a library that judges the positive class if there are two classes."""
    is_two = isinstance(sample.data, Predictions) and sample.data.n_classes == 2
    if is_two and sample.reduction.kind == "top-label":
        return reduce(sample.data, Reduction("positive"))
    return sample.events


# ---- Humanity's Last Exam

# ``calib_err(confidence, correct, p="2", beta=100)``, a copy of the function of that name in outlier-exposure (e6ede98), which other
# benchmarks copied too. Rows are sorted by confidence and divided into bins of 100, the last one of 100 to 199. Its loop runs over
# ``range(len(bins) - 1)``: the last bin, of the most confident rows, never counts, although all rows are in the denominator. Below 200 rows
# that is the only bin, and the function gives 0; below 100 it fails. Rows of the same confidence lie in the order in which
# ``np.argsort`` leaves them, which decides what bin they are in.


_HLE_ROWS = 100
_hle = partial(
    _convention,
    library="Humanity's Last Exam",
    version="e6ede98",
    reference="https://github.com/hendrycks/outlier-exposure/blob/master/utils/calibration_tools.py",
)


def _squares_of_hundreds(sample: Sample) -> FloatArray:
    """Squared gap of each bin, times its share of rows, shape (M,)."""
    score, hit = as_float64(sample.events)
    order = np.argsort(score)
    starts = np.arange(max(score.size // _HLE_ROWS, 1)) * _HLE_ROWS
    rows = np.diff(np.append(starts, score.size))
    gap = np.add.reduceat((score - hit)[order], starts) / rows
    return np.asarray(gap**2 * rows / score.size)


@_hle(
    key="hle",
    call="calib_err",
    rule="root mean square gap of bins of 100 rows, without the last bin",
    why="Squares weigh large gaps more, bins of 100 rows keep more noise, and the loop leaves out the last bin: the 100 to 199 most confident "
    "rows count as if they were calibrated.",
)
def hle_error(sample: Sample) -> float:
    """Root mean square gap as the benchmark prints it."""
    rows = sample.events.score.size
    if rows < 2 * _HLE_ROWS:
        why = (
            "the function fails with fewer than 100 rows"
            if rows < _HLE_ROWS
            else "with fewer than 200 rows its loop leaves out the only bin, and it gives 0"
        )
        raise NotAvailable(f"not available: {why}.")
    return float(np.sqrt(_squares_of_hundreds(sample)[:-1].sum()))


@_hle(
    key="hle_all_bins",
    call="calib_err, with the last bin",
    rule="root mean square gap of bins of 100 rows, all of them",
    why="It is what the benchmark means to print: squares weigh large gaps more, and bins of 100 rows keep more noise.",
)
def hle_error_of_all(sample: Sample) -> float:
    """Root mean square gap of all bins."""
    return float(np.sqrt(_squares_of_hundreds(sample).sum()))


# ---- MAPIE

# ``expected_calibration_error`` and ``top_label_ece`` (1.6.0).
# ``num_bins=50`` is the number of edges: there are 49 right-closed bins between ``np.linspace(0, 1, 50)``, and a separate bin
# for scores of exactly 0.


_MAPIE_EDGES = 50
_mapie = partial(
    _convention,
    library="MAPIE",
    version="1.6.0",
    reference="https://mapie.readthedocs.io/en/stable/api/metrics/",
)


def _mapie_cells(score: FloatArray) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    # Rounding may leave a score a little above 1.
    return np.searchsorted(np.linspace(0, 1, _MAPIE_EDGES), np.minimum(score, 1), side="left")


@_mapie(
    key="mapie",
    call="expected_calibration_error",
    rule="49 equal-width bins (its 50 are the edges), and one for scores of exactly 0",
    why="Its bins are a third as wide and hold fewer rows each, so that more of the noise counts as "
    "error.",
)
def mapie_ece(sample: Sample) -> float:
    """Mean absolute gap, weighted by rows."""
    score, hit = as_float64(sample.events)
    return mean_gap(score, hit, _mapie_cells(score), _MAPIE_EDGES)


@_mapie(
    key="mapie_top_label",
    call="top_label_ece",
    rule="that ECE for each predicted class, classes weighted equally",
    why="Rows are divided by predicted class before they are binned, so that more noise counts as error, "
    "and a rare class weighs as much as a common one.",
)
def mapie_top_label_ece(sample: Sample) -> float:
    """ECE of the rows of each predicted class, averaged over the classes that are predicted at least once."""
    predicted = sample.data.predicted
    if predicted is None:
        raise NotAvailable("not available: it needs to know which class was predicted.")
    score, hit = as_float64(sample.top_events)
    cell = predicted.astype(np.intp) * _MAPIE_EDGES + _mapie_cells(score)
    count, gap = gaps(score, hit, cell, (int(predicted.max()) + 1) * _MAPIE_EDGES)
    by_class = count.reshape(-1, _MAPIE_EDGES).sum(axis=1)
    used = by_class > 0
    return float(np.mean(np.abs(gap.reshape(-1, _MAPIE_EDGES)).sum(axis=1)[used] / by_class[used]))


# ---- netcal

# ``ECE(bins=10).measure(X, y)`` (1.4.0).
# Bins are [a, b) between ``np.linspace(0, 1, 11)``, the last one closed; scores are clipped to
# [eps, 1 - eps] first. If the labels have at most two distinct values, netcal treats the problem as binary,
# uses the second column, and refuses more than two columns. For float32 scores, rows are counted with float64
# edges but means are computed with float32 edges, so that the two disagree about rows on an edge.


_NETCAL_BINS = 10


@_convention(
    key="netcal",
    library="netcal",
    version="1.4.0",
    call="ECE",
    rule="10 equal-width bins [a, b)",
    why="It has 10 bins, closed on the left, and with two classes it always looks at the "
    "positive one.",
    reference="https://efs-opensource.github.io/calibration-framework/build/html/_autosummary/"
    "netcal.metrics.confidence.ECE.html",
)
def netcal_ece(sample: Sample) -> float:
    """Compute the ECE for the top label with three classes or more, else for the positive class."""
    data = sample.data
    whole = isinstance(data, Predictions) and sample.reduction.kind == "top-label"
    if whole and data.n_classes > 2 and np.unique(data.labels).size <= 2:  # type: ignore[arg-type]
        raise NotAvailable(
            "not available: netcal treats labels with no more than two values as a binary problem, "
            "and refuses more than two columns."
        )
    events = positive_of_two(sample)
    dtype = events.score.dtype
    eps = np.finfo(dtype).eps
    score, hit = np.clip(events.score, eps, 1 - eps), events.hit.astype(np.float64)
    edges = np.linspace(0, 1, _NETCAL_BINS + 1)
    # Inner edges in the dtype of the scores; for float64 the bins are the same.
    cell = np.searchsorted(edges[1:-1].astype(dtype), score, side="right")
    rows, gap = gaps(score, hit, cell, _NETCAL_BINS)
    counted = np.bincount(np.searchsorted(edges[1:-1], score, side="right"), minlength=_NETCAL_BINS)
    mean = np.abs(np.divide(gap, rows, out=np.zeros(_NETCAL_BINS), where=rows > 0))
    return float((mean * counted).sum() / score.size)


# ---- pycalib

# ``conf_ECE``, ``binary_ECE``, ``ECE`` and ``classwise_ECE`` (0.1.0.dev6).
# ``conf_ECE`` and ``ECE`` count the rows in (u - 1/15, u] for u in ``np.arange(1/15, 1 + 1/15, 1/15)``: lower
# edges are computed by subtraction and differ from the previous upper edge by a rounding error, so that rows on an edge
# may fall between two bins and be lost, or into both. ``binary_ECE`` and ``classwise_ECE`` have bins [a, b) between
# ``np.linspace(0, 1 + 1e-8, 16)``. ``ECE`` pools all entries of the matrix of probabilities.


_PYCALIB_BINS = 15
_pycalib = partial(
    _convention,
    library="pycalib",
    version="0.1.0.dev6",
    reference="https://classifier-calibration.github.io/PyCalib/",
)


class _Overlapping:
    """Bins (u - 1/15, u], which may overlap; their sums are computed from the intervals between all their edges."""

    def __init__(self) -> None:
        size = 1 / _PYCALIB_BINS
        self.upper = np.arange(size, 1 + size, size)
        self.lower = self.upper - size
        self.lower[self.lower == 0] = -np.inf  # the first bin also contains 0
        self.edges = np.unique(np.concatenate([self.lower, self.upper]))
        self.cells = self.edges.size + 1

    def cell(self, score: FloatArray) -> IntArray:
        return np.searchsorted(self.edges, score, side="left")

    def error(self, gap: FloatArray, n: int) -> float:
        sums = np.concatenate([[0.0], np.cumsum(gap)])
        ends = np.searchsorted(self.edges, self.upper) + 1
        starts = np.searchsorted(self.edges, self.lower) + 1
        return float(np.abs(sums[ends] - sums[starts]).sum() / n)


@_pycalib(
    key="pycalib",
    call="conf_ECE",
    rule="15 equal-width bins (a, b] of the top label; binary_ECE, [a, b), of other scores",
    why="Its bins have tiny gaps and overlaps: rows whose score lies on an edge may be lost or counted "
    "twice; for other rows it agrees.",
)
def pycalib_conf_ece(sample: Sample) -> float:
    """``conf_ECE`` of the top label; ``binary_ECE`` of any other score."""
    score, hit = as_float64(sample.events)
    if sample.reduction.kind != "top-label":
        return mean_gap(score, hit, _left_closed(score), _PYCALIB_BINS)
    bins = _Overlapping()
    _, gap = gaps(score, hit, bins.cell(score), bins.cells)
    return bins.error(gap, score.size)


@_pycalib(
    key="pycalib_full",
    call="ECE",
    rule="15 equal-width bins over all entries of the table of probabilities",
    why="Every probability of every class counts as a prediction; most of them are small and nearly right, and "
    "pull the mean towards 0.",
)
def pycalib_full_ece(sample: Sample) -> float:
    """``ECE``: every probability of every row counts as a separate score."""
    data = full_predictions(sample)
    if data.n_classes == 2:
        raise NotAvailable(
            "not available for two classes: pycalib then pairs probabilities with the labels of other rows."
        )
    bins = _Overlapping()
    gap = np.zeros(bins.cells)
    for _, score, rest in _not_near_zero(data.probs):
        gap += np.bincount(bins.cell(score), weights=score, minlength=bins.cells)
        gap[bins.cell(np.zeros(1))] += rest.sum()
    of_label = data.probs[np.arange(data.n), data.labels].astype(np.float64)
    gap -= np.bincount(bins.cell(of_label), minlength=bins.cells)
    return bins.error(gap, data.probs.size)


@_pycalib(
    key="pycalib_classwise",
    call="classwise_ECE",
    rule="15 equal-width bins [a, b) of each class against the rest, averaged",
    why="It averages over the classes; with many classes most probabilities are near 0, and so are their gaps.",
)
def pycalib_classwise_ece(sample: Sample) -> float:
    """``classwise_ECE``: mean over classes of the one-vs-rest ECE."""
    data = full_predictions(sample)
    k = data.n_classes
    gap = np.zeros((k, _PYCALIB_BINS))
    for column, score, rest in _not_near_zero(data.probs):
        cell = column * _PYCALIB_BINS + _left_closed(score)
        gap += np.bincount(cell, weights=score, minlength=gap.size).reshape(k, _PYCALIB_BINS)
        gap[:, 0] += rest
    of_label = data.probs[np.arange(data.n), data.labels].astype(np.float64)
    cell = data.labels * _PYCALIB_BINS + _left_closed(of_label)
    gap -= np.bincount(cell, minlength=gap.size).reshape(k, _PYCALIB_BINS)
    return float(np.abs(gap).sum() / data.n / k)


def _not_near_zero(probs: FloatArray) -> Iterator[tuple[IntArray, FloatArray, FloatArray]]:
    """Yield class and value of the probabilities that may lie above the first bin, and the sums of the others by class (K,).

    With many classes, nearly all probabilities are in the first bin.
    """
    k = probs.shape[1]
    for rows in row_blocks(probs, block_bytes=1 << 22):
        block = probs[rows].ravel()
        at = np.flatnonzero(block > 0.9 / _PYCALIB_BINS)
        score = block[at].astype(np.float64)
        rest = probs[rows].sum(axis=0, dtype=np.float64)
        rest -= np.bincount(at % k, weights=score, minlength=k)
        yield at % k, score, rest


def _left_closed(score: FloatArray) -> IntArray:
    return np.searchsorted(np.linspace(0, 1 + 1e-8, _PYCALIB_BINS + 1)[1:-1], score, side="right")


# ---- relplot

# ``smECE`` (1.0.3), its replacement for an ECE.
# Residuals are spread over a grid, smoothed with a reflected Gaussian kernel and evaluated at 200 points or more. The
# reflection counts mass on the two end points of the grid once instead of twice, so that scores within a grid step of
# 0 and 1 get half their weight, and saturated predictions a larger error; `calviz.metrics.smooth` integrates the
# same definition exactly. The width is found by ten bisections: the smallest width that is not below its error.


_LEAST_WIDTH, _HALVINGS, _PLACES = 0.001, 10, 200


@_convention(
    key="relplot",
    library="relplot",
    version="1.0.3",
    call="smECE",
    rule="no bins: gaps smoothed with a kernel whose width is chosen from the data",
    why="It smooths over scores instead of binning them, and gives scores next to 0 and 1 half their "
    "weight, which raises it where many are saturated.",
    reference="https://github.com/apple/ml-calibration",
)
def relplot_smece(sample: Sample) -> float:
    """Smooth ECE at the kernel width that equals the error."""
    score, hit = as_float64(sample.events)
    low, high = 0.0, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if middle < _LEAST_WIDTH or middle < _smoothed_error(score, hit, middle):
            low = middle
        else:
            high = middle
    return _smoothed_error(score, hit, high)


def _smoothed_error(score: FloatArray, hit: FloatArray, width: float) -> float:
    size = max(2000, round(20 / width)) // 2 + 1
    places = np.linspace(0, 1, max(round(10 / width), _PLACES))
    kernel = np.exp(-((np.linspace(0, 1, size) - 0.5) ** 2) / (2 * width**2))
    kernel /= np.sqrt(2 * np.pi) * width
    grids = np.stack([_grid(score, mass, size) for mass in (score - hit, np.ones(score.size))])
    residual, density = (
        np.interp(places, np.linspace(0, 1, size), smooth) for smooth in _smooth(grids, kernel)
    )
    return float(np.abs(residual).sum() / (density + 1e-4).sum())


def _grid(score: FloatArray, mass: FloatArray, size: int) -> FloatArray:
    """Split the mass of every row (n,) linearly between its two neighbouring grid points, shape (size,)."""
    at = score * (size - 1)
    left = np.clip(at.astype(np.int64), 0, size - 2)
    share = at - left
    grid = np.bincount(left, weights=(1 - share) * mass, minlength=size)
    return np.asarray(grid + np.bincount(left + 1, weights=share * mass, minlength=size))


def _smooth(grids: FloatArray, kernel: FloatArray) -> FloatArray:
    from scipy.signal import fftconvolve

    size = grids.shape[1]
    back = grids[:, ::-1]
    reflected = np.concatenate([back[:, :-1], grids, back[:, 1:]], axis=1)
    smooth = fftconvolve(reflected, kernel[None], "valid", axes=1)
    return np.asarray(smooth[:, size // 2 : size // 2 + size])


# ---- scikit-learn

# It has calibration curves but no ECE.
# ``calibration_curve(y_true, y_prob, *, n_bins=5, strategy="uniform")`` (1.9.1) returns mean score and share of
# hits of the non-empty bins, but not their numbers of rows. Bins are right-closed between
# ``np.linspace(0, 1, 6)``, whose third inner edge is a little above 0.6.


_SKLEARN_BINS = 5
_sklearn = partial(
    _convention,
    library="scikit-learn",
    version="1.9.1",
    reference="https://scikit-learn.org/stable/modules/generated/sklearn.calibration.calibration_curve.html",
)


@_sklearn(
    key="sklearn",
    call="calibration_curve, by rows",
    rule="5 equal-width bins of its curve, weighted by rows",
    why="scikit-learn has no ECE; its curve has 5 wide bins, in which gaps of different sign cancel, so that the "
    "mean gap is often smaller.",
)
def sklearn_by_rows(sample: Sample) -> float:
    """Mean of the absolute gaps of the curve, weighted by the rows of the bins."""
    score, hit = as_float64(sample.events)
    return mean_gap(score, hit, right_closed(score, _SKLEARN_BINS), _SKLEARN_BINS)


@_sklearn(
    key="sklearn_unweighted",
    call="calibration_curve, by bins",
    rule="5 equal-width bins of its curve, each with the same weight",
    why="The curve does not say how many rows a bin has; in a plain mean of its gaps a bin of a few rows counts as "
    "much as a full one.",
)
def sklearn_by_bins(sample: Sample) -> float:
    """Unweighted mean of the absolute gaps of the curve."""
    score, hit = as_float64(sample.events)
    count, gap = gaps(score, hit, right_closed(score, _SKLEARN_BINS), _SKLEARN_BINS)
    used = count > 0
    return float(np.mean(np.abs(gap[used]) / count[used]))


# Version 1.10 adds ``n_bins="cube_root"``, ceil(n^(1/3)) bins (pull request 33856, merged). From 1.12 the default of ``strategy`` is to be
# "quantile" (33908), that of ``n_bins`` "cube_root" (34326); both were open in November 2026. Their edges are those of 1.9.1.
@_sklearn(
    key="sklearn_quantile",
    call="calibration_curve, 1.12",
    rule="ceil(n^(1/3)) quantile bins of its curve, weighted by rows",
    why="Up to 1.9 the curve has 5 equal-width bins unless asked otherwise; 1.10 adds n_bins='cube_root'; that this and quantile bins "
    "become the defaults is proposed for 1.12 (pull requests 34326, 33908).",
)
def sklearn_by_quantiles(sample: Sample) -> float:
    """Mean of the absolute gaps of the curve between quantiles of the scores, weighted by the rows of the bins."""
    score, hit = as_float64(sample.events)
    bins = bins_used(score.size, CUBE_ROOT, "equal-mass")
    inner = np.percentile(score, np.linspace(0, 1, bins + 1) * 100)[1:-1]
    return mean_gap(score, hit, np.searchsorted(inner, score), bins)


# ---- torchmetrics

# ``calibration_error`` (1.9.0), and probmetrics, which calls it.
# Bins are [a, b) between ``torch.linspace(0, 1, 16)``, and scores of exactly 1 have a bin of their own. The
# multiclass form uses the top label, cast to float32; the binary form uses P(class 1) in its own dtype.
# torchmetrics also sums in that dtype, which is not reproduced here: values agree to about 1e-6.
#
# probmetrics drops classes without labels, clips probabilities to [1e-7, 1 - 1e-7], normalises rows to sum to 1, and
# uses the binary form if two classes are left.


_TORCHMETRICS_BINS = 15
_torchmetrics = partial(
    _convention, rule="15 equal-width bins [a, b), one more for scores of exactly 1"
)


def torch_linspace(bins: int, dtype: np.dtype[np.floating]) -> FloatArray:
    """Return 0, 1/M, ..., 1, shape (M + 1,), as torch computes it: up from 0 in the lower half, down from 1 in the upper."""
    step = dtype.type(1) / dtype.type(bins)
    up = np.arange(bins + 1, dtype=dtype)
    return np.asarray(np.where(up < (bins + 1) // 2, up * step, 1 - up[::-1] * step), dtype=dtype)


def _torchmetrics_ece(score: FloatArray, hit: BoolArray) -> float:
    edges = torch_linspace(_TORCHMETRICS_BINS, score.dtype)
    cell = np.clip(np.searchsorted(edges, score, side="right") - 1, 0, _TORCHMETRICS_BINS)
    return mean_gap(score, hit.astype(np.float64), cell, _TORCHMETRICS_BINS + 1)


@_torchmetrics(
    key="torchmetrics",
    library="torchmetrics",
    version="1.9.0",
    call="calibration_error",
    why="Bins are closed on the left, with edges in single precision, and scores of exactly 1 have a bin of their "
    "own: it differs for scores on an edge or at 1.",
    reference="https://lightning.ai/docs/torchmetrics/stable/classification/calibration_error.html",
)
def torchmetrics_ece(sample: Sample) -> float:
    """Compute the ECE for the top label in float32, for any other event in the dtype of the scores."""
    score, hit = sample.events.score, sample.events.hit
    is_top = sample.reduction.kind == "top-label"
    return _torchmetrics_ece(score.astype(np.float32) if is_top else score, hit)


@_torchmetrics(
    key="probmetrics",
    library="probmetrics",
    version="1.3.0",
    call="ece-15",
    why="It calls torchmetrics on the classes that occur; if these are two, it always looks at the "
    "positive one.",
    reference="https://github.com/dholzmueller/probmetrics",
)
def probmetrics_ece(sample: Sample) -> float:
    """Compute the ECE on the classes that occur, for the positive class if these are two."""
    data = sample.data
    if not isinstance(data, Predictions):
        return torchmetrics_ece(sample)
    if sample.reduction.kind == "top-label":
        probs, labels = data.probs, data.labels
    else:
        score, labels = sample.events.score, sample.events.hit.astype(np.int32)
        probs = np.stack([1 - score, score], axis=1)
    classes, position = np.unique(labels, return_inverse=True)
    if classes.size < 2:
        raise NotAvailable("not available: all labels are of one class, which probmetrics refuses.")
    score = np.empty(data.n, dtype=probs.dtype)
    hit = position == 1
    for rows in row_blocks(probs):
        # Keep probabilities away from 0 and 1, and let the rows sum to 1 again.
        block = np.clip(probs[rows][:, classes], 1e-7, 1 - 1e-7)
        block /= block.sum(axis=1, keepdims=True)
        if classes.size == 2:
            score[rows] = block[:, 1]
        else:
            score[rows], hit[rows] = block.max(axis=1), block.argmax(axis=1) == position[rows]
    return _torchmetrics_ece(score if classes.size == 2 else score.astype(np.float32), hit)


# ---- uncertainty-calibration

# ``get_ece`` and ``get_calibration_error`` (0.1.4).
# ``get_ece`` has 15 right-closed bins with edges ``i / 15``. ``get_calibration_error(p=2, debias=True,
# mode="marginal")`` is the root of a debiased mean squared gap, in 15 equal-mass bins of each class against the rest
# or, if every column has fewer distinct values than a quarter of its rows, in one bin per distinct value.


_UNCERTAINTY_BINS = 15
_uncertainty = partial(
    _convention,
    library="uncertainty-calibration",
    version="0.1.4",
    reference="https://github.com/p-lambda/verified_calibration",
)


@_uncertainty(
    key="uncertainty_calibration",
    call="get_ece",
    rule="15 equal-width bins (a, b]",
    why="It is the same definition as calviz's, and differs only if other bins are chosen in calviz.",
)
def uncertainty_ece(sample: Sample) -> float:
    """Mean absolute gap, weighted by rows."""
    score, hit = as_float64(sample.events)
    edges = np.arange(1, _UNCERTAINTY_BINS) / _UNCERTAINTY_BINS
    return mean_gap(score, hit, np.searchsorted(edges, score, side="left"), _UNCERTAINTY_BINS)


@_uncertainty(
    key="uncertainty_calibration_l2",
    call="get_calibration_error",
    rule="root mean square gap of all classes, debiased, 15 equal-mass bins",
    why="It is the root of the mean squared gap, minus the bias due to noise, of each class against "
    "the rest in equal-mass bins.",
)
def uncertainty_error(sample: Sample) -> float:
    """Compute the error over all classes under the top label, and of score and hit under any other reduction."""
    data = sample.data
    if not isinstance(data, Predictions) or sample.reduction.kind != "top-label":
        score, hit = sample.events.score, sample.events.hit
        ordered, of_hits = np.sort(score), score[hit]
        by_value = _is_discrete(ordered)
        return float(np.sqrt(max(0, _debiased_square(ordered, of_hits, by_value=by_value))))
    squares = np.empty(data.n_classes)
    discrete = np.empty(data.n_classes, dtype=np.bool_)
    of_label = data.probs[np.arange(data.n), data.labels]

    def work(by_value: bool, k: int, column: FloatArray) -> None:
        column.sort()
        discrete[k] = _is_discrete(column)
        squares[k] = _debiased_square(column, of_label[data.labels == k], by_value=by_value)

    for_columns(data.probs, partial(work, False))
    if discrete.all():
        for_columns(data.probs, partial(work, True))
    return float(np.sqrt(np.mean(np.maximum(squares, 0))))


def _is_discrete(ordered: FloatArray) -> bool:
    """Whether there are fewer distinct values than a quarter of the rows; `ordered` is ascending."""
    return bool(1 + np.count_nonzero(ordered[1:] != ordered[:-1]) < ordered.size / 4)


def _debiased_square(ordered: FloatArray, of_hits: FloatArray, *, by_value: bool) -> float:
    """Mean over rows of the squared gaps of the bins, each minus the variance of the share of hits of its bin."""
    ordered = ordered.astype(np.float64, copy=False)
    n = ordered.size
    if by_value:
        values = np.unique(ordered)
        cuts = (values[1:] + values[:-1]) / 2
    else:
        starts = ends_of_bins(n, min(_UNCERTAINTY_BINS, n))
        cuts = np.unique((ordered[starts] + ordered[starts - 1]) / 2)
    edges = np.concatenate([[0], np.searchsorted(ordered, cuts, side="right"), [n]])
    sums = np.concatenate([[0.0], np.cumsum(ordered)])[edges]
    hits = np.bincount(np.searchsorted(cuts, of_hits, side="left"), minlength=cuts.size + 1)
    rows = np.diff(edges)
    used = rows > 1
    rows, hits, total = rows[used], hits[used], np.diff(sums)[used]
    share = hits / rows
    square = (total / rows - share) ** 2 - share * (1 - share) / (rows - 1)
    return float((rows * square).sum() / n)
