"""Histogram binning, and Bayesian binning into quantiles (BBQ), which averages many histograms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Literal, Self

import numpy as np

from calviz.core import blocks
from calviz.core.blocks import FloatArray, IntArray, checkpoint, effective_number, quotient
from calviz.core.entry_specs import FitFacts, always, recalibrator
from calviz.core.events import equal_mass_edges, equal_width_edges, weighted_mass_edges
from calviz.core.probabilities import Scores
from calviz.recalibrators import maps
from calviz.recalibrators.maps import UNCHANGED, Piecewise, earlier_values, halfway, steps_merged
from calviz.recalibrators.per_class import OneClass, OneVsRest

_binning = partial(recalibrator, family="Non-parametric", confidence_only=True)

#: Largest number of classes with which a histogram per class is suggested.
FEW_CLASSES = 20


def _many_histograms(facts: FitFacts) -> str:
    """Why histogram binning is left out with many classes (see `RecalibratorSpec.left_out`)."""
    if facts.classes <= FEW_CLASSES:
        return ""
    return f"{facts.classes:,} histograms leave too few rows in a bin."


@_binning(
    key="histogram",
    label="Histogram binning",
    reference="Zadrozny and Elkan 2001; Guo et al. 2017, section 4.1",
    formula=r"\hat p_k \propto \mathrm{acc}(B_m),\ p_k \in B_m",
    left_out=_many_histograms,
)
class HistogramBinning(OneVsRest):
    """Bins the probability of every class, replaces it by the share of hits in its bin, and normalises each row.

    Parameters
    ----------
    bins : int
        Number of bins per class.
    scheme : {"equal-width", "equal-mass"}
        How the edges are placed; bins are right-closed and tied scores stay together.
    cap : bool
        If true, a bin of m rows without hits has the value 1 / (2 (m + 1)) and one without misses 1 minus that, the extremes that
        m rows support. If false, they have 0 and 1, as histogram binning is defined: a single wrong row there costs a log loss of 34.5.
    input : {"probabilities", "logits"}
        What X holds.

    Notes
    -----
    An equal-width bin without calibration rows has its centre as its value.
    """

    bins: int = 15
    scheme: Literal["equal-width", "equal-mass"] = "equal-width"
    cap: bool = True
    added_later = earlier_values(cap=False)

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: FloatArray | None) -> None:
        if self.scheme == "equal-mass" or weights is not None:
            super()._fit_weighted(scores, labels, weights)
            return
        count = scores.shape[1]
        rows, hits = binned_by_class(scores, labels, self.bins)
        edges = equal_width_edges(self.bins, scores.array.dtype)
        present = hits.sum(axis=1).astype(np.intp)
        share = self._share(edges, rows, hits)
        self.maps_ = [
            steps_merged(edges[1:-1].astype(np.float64), share[k]) if present[k] else UNCHANGED
            for k in range(1 if count == 2 else 0, count)
        ]
        self._warn_absent(present, "their probabilities are only normalised")

    def _fit_column(self, column: OneClass) -> Piecewise:
        if self.scheme == "equal-mass":
            edges, inner = mass_edges(column, self.bins)
        else:
            edges = equal_width_edges(self.bins, column.score.dtype)
            inner = edges[1:-1]
        bin_of, own, hit = np.searchsorted(edges[1:-1], column.score), column.own, column.hit_rows
        rows = np.bincount(bin_of, own, minlength=edges.size - 1)
        hits = np.bincount(bin_of[hit], own[hit], minlength=edges.size - 1)
        return steps_merged(inner.astype(np.float64), self._share(edges, rows, hits))

    def _share(
        self, edges: FloatArray, rows: FloatArray | IntArray, hits: FloatArray | IntArray
    ) -> FloatArray:
        """Return the value of each bin, shape (..., M) like its rows and hits: the share of hits, or the centre of an empty bin."""
        share = quotient(hits, rows)
        if self.cap:
            share = maps.supported(share, rows)
        wide = edges.astype(np.float64)
        return np.where(rows > 0, share, (wide[1:] + wide[:-1]) / 2)


def mass_edges(column: OneClass, bins: int) -> tuple[FloatArray, FloatArray]:
    """Return the edges of bins of equal mass, shape (M + 1,), and the inner ones moved half-way to the next score."""
    ordered = np.sort(column.score)
    if column.weights is None:
        edges = equal_mass_edges(ordered, bins, is_sorted=True)
    else:
        edges = weighted_mass_edges(column.score, column.weights, bins)
    return edges, halfway(ordered, edges[1:-1])


def binned_by_class(scores: Scores, labels: IntArray, bins: int) -> tuple[FloatArray, FloatArray]:
    """Return rows and hits per class and bin, shape (K, M) each; scores hold probabilities.

    A row has fewer than M probabilities above 1/M. All others, the bulk with many classes, need
    only a comparison: they are the remainder, in the first bin.
    """
    n, count = scores.shape
    edges = equal_width_edges(bins, scores.array.dtype)
    inner = edges[1:-1]

    def work(rows: slice) -> FloatArray:
        block = scores.array[rows] if scores.as_given else scores.block(rows)
        sums = np.zeros((2, count * bins))
        flat = np.ascontiguousarray(block).reshape(-1)
        if bins > 1:
            places = np.flatnonzero(flat > edges[1])
            bin_of = np.searchsorted(inner, flat[places], side="left")
            sums[0] = np.bincount(places % count * bins + bin_of, minlength=count * bins)
        y = labels[rows]
        label_bin = np.searchsorted(inner, block[np.arange(y.size), y], side="left")
        sums[1] = np.bincount(y * bins + label_bin, minlength=count * bins)
        return sums

    block_bytes = max(1 << 19, 64 * count * bins)
    rows_per_bin, hits = blocks.sum_over_blocks(scores.array, work, block_bytes=block_bytes)
    per_bin = rows_per_bin.reshape(count, bins)
    per_bin[:, 0] = n - per_bin[:, 1:].sum(axis=1)
    return per_bin, hits.reshape(count, bins)


class BinMeans(OneVsRest):
    """Replaces the probability of every class by the mean probability of its equal-mass bin.

    Parameters
    ----------
    bins : int
    input : {"probabilities", "logits"}
    """

    key = "bin-means"
    needs = "probabilities"
    #: Nothing needs to be added: bin means of positive probabilities are positive.
    epsilon = 0.0
    rows_needed = 0
    bins: int = 15

    def _fit_column(self, column: OneClass) -> Piecewise:
        edges, inner = mass_edges(column, self.bins)
        bin_of, own = np.searchsorted(edges[1:-1], column.score), column.own
        mean = np.bincount(bin_of, own * column.score) / np.bincount(bin_of, own)
        return steps_merged(inner, mean)


# ---- Bayesian binning into quantiles


@_binning(
    key="bbq",
    label="Bayesian binning into quantiles (BBQ)",
    reference="Naeini et al. 2015; Guo et al. 2017, section 4.1",
    formula=r"\hat p_k \propto \sum_M P(M \mid D)\, \theta_M(p_k)",
    left_out=always("an average of histogram binnings, slower than one."),
)
class BayesianBinning(OneVsRest):
    """Averages equal-mass binnings with many numbers of bins, each weighted by how probable it makes the labels; fitted one-vs-rest, then normalised.

    Parameters
    ----------
    input : {"probabilities", "logits"}
        What X holds.

    Notes
    -----
    The paper counts rows. With row weights, calviz uses bins of equal total weight, and replaces rows and hits by sums of weights, scaled
    so that all weights add up to Kish's effective sample size: unequal weights are less evidence.
    """

    def _fit_column(self, column: OneClass) -> Piecewise:
        ordered, weights = column.in_order()
        hits, rows = np.zeros((2, ordered.hit.size + 1))
        if weights is None:
            np.cumsum(ordered.hit, out=hits[1:])
            rows[:] = np.arange(rows.size)
        else:
            own = weights * (effective_number(weights) / weights.sum())
            np.cumsum(own * ordered.hit, out=hits[1:])
            np.cumsum(own, out=rows[1:])
        return averaged_binnings(ordered.score, hits, rows)


#: Pseudo-rows of the prior, spread over the bins (Naeini 2015).
PRIOR_ROWS = 2.0
#: Coefficients of Stirling's series for log Gamma in powers of 1 / x, the highest first.
_STIRLING = (-691 / 360_360, 1 / 1_188, -1 / 1_680, 1 / 1_260, -1 / 360, 1 / 12)


def averaged_binnings(ordered: FloatArray, hits: FloatArray, below: FloatArray) -> Piecewise:
    """The posterior mean of the hit rate, as a step function of the score.

    Parameters
    ----------
    ordered : ndarray, shape (n,)
        Scores, ascending.
    hits, below : ndarray, shape (n + 1,)
        Sums of the (scaled) weights of the hits among the first i of them, and of all of these.

    Notes
    -----
    Every binning is a model: the hit rate of each bin has a Beta prior whose mean is the middle of
    the bin and whose weight is `PRIOR_ROWS` / bins, so that its marginal likelihood is a product of ratios of
    gamma functions. Many binnings are stored in one long array: each needs only its cuts and sums.
    """
    counts = np.array(bin_counts(max(1, round(below[-1]))))
    # Evidence is computed for about this many bins at once, so that memory does not grow with their total number.
    groups = np.split(counts, np.flatnonzero(np.diff(np.cumsum(counts) // (1 << 13))) + 1)
    score = np.concatenate([_Bins.of(ordered, hits, group, below).evidence() for group in groups])
    weight = np.exp(score - score.max())
    # Binnings whose posterior is below this share of the best one's are dropped.
    weight[weight < 1e-10] = 0
    weight /= weight.sum()
    used = _Bins.of(ordered, hits, counts[weight > 0], below)
    # The average has a step wherever a binning has one: add up the steps in the order of the ranks.
    rate = (used.won + used.alpha) / (used.rows + used.alpha + used.beta)
    step = rate - np.where(used.start == 0, 0.0, np.roll(rate, 1))
    places, where = np.unique(used.start, return_inverse=True)
    value = np.cumsum(np.bincount(where, weights=weight[weight > 0][used.model] * step))
    return steps_merged(halfway(ordered, ordered[places[1:] - 1]), np.clip(value, 0, 1))


def bin_counts(n: int) -> range:
    """Return the numbers of bins of the binnings: from n^(1/3) / 10 to 10 n^(1/3) (Naeini 2015)."""
    root = n ** (1 / 3)
    return range(max(1, math.floor(root / 10)), min(math.ceil(10 * root), n) + 1)


@dataclass(frozen=True, eq=False)
class _Bins:
    """The bins of several binnings, one after the other: for each its binning, first rank, rows, hits, and prior."""

    model: IntArray
    start: IntArray
    rows: FloatArray
    won: FloatArray
    alpha: FloatArray
    beta: FloatArray

    @classmethod
    def of(cls, ordered: FloatArray, hits: FloatArray, counts: IntArray, below: FloatArray) -> Self:
        checkpoint()
        cuts, model, sizes = _all_cuts(ordered, counts, below)
        # Bins start and end at ranks; the first of a binning starts at 0, its last ends at n.
        first = np.append(True, model[1:] != model[:-1])
        start = np.where(first, 0, np.roll(cuts, 1))
        border = _border(ordered, cuts)
        centre = np.clip((np.where(first, 0.0, np.roll(border, 1)) + border) / 2, 1e-6, 1 - 1e-6)
        prior = PRIOR_ROWS / sizes[model]
        won = hits[cuts] - hits[start]
        # By rounding, the rows may fall below the hits in the last digit.
        rows = np.maximum(below[cuts] - below[start], won)
        return cls(model, start, rows, won, prior * centre, prior * (1 - centre))

    def evidence(self) -> FloatArray:
        """Log marginal likelihood of each binning."""
        parts = -log_rising(self.alpha + self.beta, self.rows)
        # With many classes, most bins of a class have no hits at all.
        for prior, count in ((self.alpha, self.won), (self.beta, self.rows - self.won)):
            nonempty = np.flatnonzero(count)
            parts[nonempty] += log_rising(prior[nonempty], count[nonempty])
        return np.asarray(np.bincount(self.model, weights=parts))


def _all_cuts(
    ordered: FloatArray, counts: IntArray, below: FloatArray
) -> tuple[IntArray, IntArray, IntArray]:
    """Return the ends of the bins of binnings with the given numbers of bins, the binning of each bin, and the bins per binning.

    Cuts are those of ``np.array_split``, with rows counted by `below`; a cut inside a group of ties, or inside a row, moves to
    its end.
    """
    model = np.repeat(np.arange(counts.size), counts)
    m = np.arange(model.size) - np.repeat(np.cumsum(counts) - counts, counts) + 1
    n = ordered.size
    whole = max(1, round(below[-1]))
    size, larger = (part[model] for part in divmod(whole, counts))
    cuts: IntArray = m * size + np.minimum(m, larger)
    if below[-1] != n:  # rows whose weights differ
        # Tolerates the rounding of the sums.
        cuts = np.searchsorted(below, cuts * (below[-1] / whole) * (1 - 1e-12))
        cuts = np.clip(cuts, 1, n)
    inside = np.flatnonzero(ordered[cuts - 1] == ordered[np.minimum(cuts, n - 1)])
    cuts[inside] = np.searchsorted(ordered, ordered[cuts[inside] - 1], side="right")
    keep = np.append((cuts[1:] != cuts[:-1]) | (model[1:] != model[:-1]), True)
    cuts, model = cuts[keep], model[keep]
    return cuts, model, np.bincount(model)


def _border(ordered: FloatArray, rank: IntArray) -> FloatArray:
    """Score half-way between the rows before and after each cut (a rank above 0); 1 for a cut at the end."""
    below = ordered[rank - 1].astype(np.float64)
    above = ordered[np.minimum(rank, ordered.size - 1)]
    return np.where(rank == ordered.size, 1.0, (below + above) / 2)


def log_rising(a: FloatArray, m: FloatArray) -> FloatArray:
    """``log(Gamma(a + m) / Gamma(a))`` for a > 0, to 12 digits and several times faster than by SciPy's ``gammaln``."""
    ends = np.stack([a, a + m])
    # The product x (x + 1) ... (x + 7), in pairs from both ends, shifts the argument to x + 8, where Stirling's series is accurate.
    pair = ends * (ends + 7)
    product = pair * (pair + 6)
    product *= pair + 10
    product *= pair + 12
    ends += 8
    reciprocal = 1 / ends
    square = reciprocal * reciprocal
    series = np.full_like(ends, _STIRLING[0])
    for term in _STIRLING[1:]:
        series *= square
        series += term
    series *= reciprocal
    series += (ends - 0.5) * np.log(ends) - ends
    return np.asarray(series[1] - series[0] + np.log(product[0] / product[1]))
