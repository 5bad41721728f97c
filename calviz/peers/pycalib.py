"""pycalib: ``conf_ECE``, ``binary_ECE``, ``ECE`` and ``classwise_ECE`` (0.1.0.dev6).

``conf_ECE`` and ``ECE`` count the rows in (u - 1/15, u] for u in ``np.arange(1/15, 1 + 1/15, 1/15)``: lower
edges are computed by subtraction and differ from the previous upper edge by a rounding error, so that rows on an edge
may fall between two bins and be lost, or into both. ``binary_ECE`` and ``classwise_ECE`` have bins [a, b) between
``np.linspace(0, 1 + 1e-8, 16)``. ``ECE`` pools all entries of the matrix of probabilities.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.blocks import row_blocks
from calviz.core.errors import NotAvailable
from calviz.peers._bins import as_float64, gaps, mean_gap
from calviz.sample.losses import full_predictions
from calviz.sample.sample import Sample
from calviz.specs.convention import CONVENTIONS, Convention

_BINS = 15


class _Overlapping:
    """Bins (u - 1/15, u], which may overlap; their sums are computed from the intervals between all their edges."""

    def __init__(self) -> None:
        size = 1 / _BINS
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


def conf_ece(sample: Sample) -> float:
    """``conf_ECE`` of the top label; ``binary_ECE`` of any other score."""
    score, hit = as_float64(sample.events)
    if sample.reduction.kind != "top-label":
        return mean_gap(score, hit, _left_closed(score), _BINS)
    bins = _Overlapping()
    _, gap = gaps(score, hit, bins.cell(score), bins.cells)
    return bins.error(gap, score.size)


def full_ece(sample: Sample) -> float:
    """``ECE``: every probability of every row counts as a separate score."""
    data = full_predictions(sample)
    if data.n_classes == 2:
        raise NotAvailable(
            "not available for two classes: pycalib then pairs probabilities with the labels of other rows."
        )
    bins = _Overlapping()
    gap = np.zeros(bins.cells)
    for _, score, rest in _listed(data.probs):
        gap += np.bincount(bins.cell(score), weights=score, minlength=bins.cells)
        gap[bins.cell(np.zeros(1))] += rest.sum()
    of_label = data.probs[np.arange(data.n), data.labels].astype(np.float64)
    gap -= np.bincount(bins.cell(of_label), minlength=bins.cells)
    return bins.error(gap, data.probs.size)


def classwise_ece(sample: Sample) -> float:
    """``classwise_ECE``: mean over classes of the one-vs-rest ECE."""
    data = full_predictions(sample)
    k = data.n_classes
    gap = np.zeros((k, _BINS))
    for column, score, rest in _listed(data.probs):
        cell = column * _BINS + _left_closed(score)
        gap += np.bincount(cell, weights=score, minlength=gap.size).reshape(k, _BINS)
        gap[:, 0] += rest
    of_label = data.probs[np.arange(data.n), data.labels].astype(np.float64)
    cell = data.labels * _BINS + _left_closed(of_label)
    gap -= np.bincount(cell, minlength=gap.size).reshape(k, _BINS)
    return float(np.abs(gap).sum() / data.n / k)


def _listed(probs: FloatArray) -> Iterator[tuple[IntArray, FloatArray, FloatArray]]:
    """Yield class and value of the probabilities that may lie above the first bin, and the sums of the others by class (K,).

    With many classes, nearly all probabilities are in the first bin.
    """
    k = probs.shape[1]
    for rows in row_blocks(probs, block_bytes=1 << 22):
        block = probs[rows].ravel()
        at = np.flatnonzero(block > 0.9 / _BINS)
        score = block[at].astype(np.float64)
        rest = probs[rows].sum(axis=0, dtype=np.float64)
        rest -= np.bincount(at % k, weights=score, minlength=k)
        yield at % k, score, rest


def _left_closed(score: FloatArray) -> IntArray:
    cuts = np.linspace(0, 1 + 1e-8, _BINS + 1)[1:-1]
    return np.searchsorted(cuts, score, side="right")


_convention = partial(
    Convention,
    library="pycalib",
    version="0.1.0.dev6",
    reference="https://classifier-calibration.github.io/PyCalib/",
)
CONVENTIONS.register(
    _convention(
        key="pycalib",
        call="conf_ECE",
        rule="15 equal-width bins (a, b] of the top label; binary_ECE, [a, b), of other scores",
        why="Its bins have tiny gaps and overlaps: rows whose score lies on an edge may be lost or counted "
        "twice; for other rows it agrees.",
        value=conf_ece,
    )
)
CONVENTIONS.register(
    _convention(
        key="pycalib_full",
        call="ECE",
        rule="15 equal-width bins over all entries of the table of probabilities",
        why="Every probability of every class counts as a prediction; most of them are small and nearly right, and "
        "pull the mean towards 0.",
        value=full_ece,
    )
)
CONVENTIONS.register(
    _convention(
        key="pycalib_classwise",
        call="classwise_ECE",
        rule="15 equal-width bins [a, b) of each class against the rest, averaged",
        why="It averages over the classes; with many classes most probabilities are near 0, and so are their gaps.",
        value=classwise_ece,
    )
)
