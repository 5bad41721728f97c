"""Isotonic regression: one-vs-rest, centered, shared by all classes (IRM), and as Venn-Abers prediction."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial, reduce
from typing import Any, Self

import numpy as np
from scipy.optimize import isotonic_regression

from calviz.core import blocks, entry_specs, errors
from calviz.core.blocks import BoolArray, FloatArray, IntArray, row_blocks, run_totals, runs
from calviz.core.events import ROUNDING, Ordered, tied_scores
from calviz.core.probabilities import Scores, row_sums
from calviz.recalibrators import maps
from calviz.recalibrators.per_class import ADDED, EPSILON, OneClass, OneMap, OneVsRest

_isotonic = partial(entry_specs.recalibrator, family="Non-parametric")


@_isotonic(
    key="isotonic",
    label="Isotonic regression, one-vs-rest (IROvA)",
    confidence_only=True,
    reference="Zadrozny and Elkan 2002; Guo et al. 2017, section 4.1; Zhang et al. 2020, section 3.3",
    formula=r"\hat p_k \propto g_k(p_k),\ g_k \text{ increasing}",
    left_out=entry_specs.follows_noise,
    preselected=True,
)
class IsotonicRecalibrator(OneVsRest):
    """The best-fitting increasing function for each class (pool-adjacent-violators algorithm); then each row is normalised.

    By definition, outermost pieces without hits or without misses are exactly 0 or 1, and a single wrong row there
    would cost a log loss of 34.5, as 0 is returned as 1e-15. With `cap`, they are limited to what their rows support.

    Parameters
    ----------
    cap : bool
        If true, a piece of m rows without hits has the value 1 / (2 (m + 1)) and one without misses 1 minus that, the extremes that
        m rows support (or the value of the next piece, if that is nearer to 0 or 1). If false, they have 0 and 1, as isotonic
        regression is defined.
    input : {"probabilities", "logits"}
        What X holds.

    Attributes
    ----------
    maps_ : list of Piecewise
        The map of each class; with two classes, that of class 1 alone.
    """

    cap: bool = True
    added_later = maps.earlier_values(cap=False)

    def _fit_column(self, column: OneClass) -> maps.Piecewise:
        return through_pieces(pieces_of(column), cap=self.cap)


@_isotonic(
    key="centered-isotonic",
    label="Centered isotonic regression",
    confidence_only=True,
    reference="Oron & Flournoy 2017",
    formula=r"\hat p_k \propto g_k(p_k),\ g_k(\bar p_B) = \frac{H_B + 1/2}{n_B + 1}",
    left_out=entry_specs.always("a variant of isotonic regression."),
    mixed_up_to=20,
)
class CenteredIsotonicRecalibrator(OneVsRest):
    """Isotonic regression as lines through one point per constant piece, at its mean score: strictly increasing; fitted one-vs-rest, then normalised.

    Pieces without hits or without misses stay constant, and the outermost pieces stay constant from their mean score outwards.

    Parameters
    ----------
    smooth : bool
        If true, a piece of n rows with H hits has the value (H + 1/2) / (n + 1), so that none is 0 or 1; neighbours whose values do
        not ascend are pooled. If false, the value is H / n as in the paper, and a single wrong row beyond the outermost
        pieces costs a log loss of 34.5.
    input : {"probabilities", "logits"}
        What X holds.

    Attributes
    ----------
    maps_ : list of Piecewise
        The map of each class; with two classes, that of class 1 alone.
    """

    smooth: bool = True

    def _fit_column(self, column: OneClass) -> maps.Piecewise:
        pieces, score, weights = pieces_of(column), column.score, column.weights
        if weights is not None:
            # Tied scores count as the largest of them.
            ordered, weights = column.in_order()
            score = ordered.score.astype(np.float64)
        return centred_map(pieces, score, smooth=self.smooth, weights=weights)


#: Size of a run of probabilities that is sorted at once: large, because each run costs one search per positive.
_RUN_BYTES = 1 << 23


@_isotonic(
    key="irm",
    label="Isotonic regression, multiclass (IRM)",
    accuracy_preserving=True,
    reference="Zhang et al. 2020, section 3.3.2 and eq. 4",
    formula=r"\hat p_k = \frac{g(p_k) + \epsilon p_k}{\sum_j g(p_j) + \epsilon p_j}",
    left_out=entry_specs.close_to_simpler,
    preselected=True,
)
class MulticlassIsotonic(OneMap):
    """One increasing function for all n times K pairs of a probability and a hit (whether its class is the true one); then each row is normalised.

    Adding a small multiple of the probability makes it strictly increasing, so that no predicted class changes.

    Parameters
    ----------
    epsilon : float
        The multiple that is added.
    cap : bool
        If true, a piece of m pairs without hits has the value 1 / (2 (m + 1)) and one without misses 1 minus that, the extremes that
        m pairs support (or the value of the next piece, if that is nearer to 0 or 1). If false, they have 0 and 1, as in the paper,
        and a probability there is only what `epsilon` adds.
    input : {"probabilities", "logits"}
        What X holds.

    Attributes
    ----------
    map_ : Piecewise
    """

    epsilon: float = EPSILON
    cap: bool = True
    map_: maps.Piecewise = maps.learned(maps.ProbabilityMap(rising=True))
    added_later = maps.earlier_values(cap=False)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.epsilon < 0:
            raise errors.OptionError(f"'epsilon' must be 0 or more, got {self.epsilon!r}.")

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: FloatArray | None) -> None:
        whole = scores.whole()
        n, k = whole.shape
        if weights is None:
            positives = Positives.of(whole[np.arange(n), labels])
            runs = (
                ScoresAroundPositives.of(np.sort(whole[rows], axis=None), positives)
                for rows in row_blocks(whole, block_bytes=_RUN_BYTES)
            )
            pieces = constant_pieces(reduce(ScoresAroundPositives.merged, runs))
        else:
            hit = labels[:, None] == np.arange(k)
            pieces = weighted_pieces(whole.ravel(), hit.ravel(), np.repeat(weights, k))
        self.map_ = through_pieces(pieces, cap=self.cap)

    def _apply(self, block: FloatArray) -> FloatArray:
        out = self.map_(block)
        out += ADDED.raise_zeros(self.epsilon * block.astype(np.float64, copy=False))
        # In double precision: the small added part would be lost in float32.
        out /= row_sums(out)[:, None]
        return out

    def _source(self, name: str) -> str:
        return f"""{name}_x = {maps.array_source(self.map_.x)}
{name}_y = {maps.array_source(self.map_.y)}


def {name}_of(p):
    added = {self.epsilon!r} * p
    out = np.interp(p, {name}_x, {name}_y) + {ADDED.source("added")}
    return out / out.sum(axis=1, keepdims=True)
"""


# ---- Isotonic regression
#
# All rows between two neighbouring positives are misses, so they act as one weighted
# point: the pool-adjacent-violators algorithm runs on about twice as many points as there are
# positives at most, however many rows there are.


@dataclass(frozen=True, eq=False)
class Positives:
    """The distinct scores of the positives; scores that differ by rounding only are merged.

    Attributes
    ----------
    at : ndarray, shape (m,)
        Distinct scores, ascending; the largest of each group of ties.
    count : ndarray of int64, shape (m,)
        Number of positives at each.
    low, high : ndarray, shape (m,)
        The smallest and the largest score, of any row, that counts as tied with it. Only equal scores are tied in single
        precision, which is coarser than rounding, and where these ranges would meet, which means many close scores, not rounding.
    """

    at: FloatArray
    count: IntArray
    low: FloatArray
    high: FloatArray

    @classmethod
    def of(cls, score: FloatArray) -> Self:
        """Make from the scores of the positives, in any order."""
        ordered = np.sort(score)
        tied = tied_scores(ordered)
        last = np.flatnonzero(np.append(tied[1:] != tied[:-1], True))
        count = np.diff(last, prepend=-1)
        at, first = tied[last], ordered[last - count + 1]
        if at.itemsize < 8:
            return cls(at, count, at, at)
        # Within rounding of every positive of the tie.
        low, high = np.minimum(first, at * (1 - ROUNDING)), np.maximum(at, first * (1 + ROUNDING))
        meets = high[:-1] >= low[1:]
        alone = ~(np.append(False, meets) | np.append(meets, False))
        return cls(at, count, np.where(alone, low, first), np.where(alone, high, at))


@dataclass(frozen=True, eq=False)
class ScoresAroundPositives:
    """Position of all scores relative to the distinct scores of the positives, as mergeable sums and extremes.

    Attributes
    ----------
    positives : Positives
        The m distinct scores.
    below, upto : ndarray of int64, shape (m,)
        Number of scores below each distinct score and its ties, and number up to and including these.
    under, over : ndarray, shape (m,)
        The largest score below these ties and the smallest one above; -inf and inf where there is none.
    lowest, highest : float
        Smallest and largest score of all.
    n : int
        Number of scores.
    """

    positives: Positives
    below: IntArray
    upto: IntArray
    under: FloatArray
    over: FloatArray
    lowest: float
    highest: float
    n: int

    @classmethod
    def of(cls, ordered: FloatArray, positives: Positives) -> ScoresAroundPositives:
        """Make from one run of ascending scores."""
        n = ordered.size
        below = np.searchsorted(ordered, positives.low, side="left")
        upto = np.searchsorted(ordered, positives.high, side="right")
        under = np.where(below > 0, ordered[np.maximum(below - 1, 0)], -np.inf)
        over = np.where(upto < n, ordered[np.minimum(upto, n - 1)], np.inf)
        return cls(positives, below, upto, under, over, float(ordered[0]), float(ordered[-1]), n)

    def merged(self, other: ScoresAroundPositives) -> ScoresAroundPositives:
        """Merge with another run of scores."""
        return ScoresAroundPositives(
            self.positives,
            self.below + other.below,
            self.upto + other.upto,
            np.maximum(self.under, other.under),
            np.minimum(self.over, other.over),
            min(self.lowest, other.lowest),
            max(self.highest, other.highest),
            self.n + other.n,
        )


@dataclass(frozen=True, eq=False)
class ConstantPieces:
    """The constant pieces of an isotonic regression, in ascending order.

    Attributes
    ----------
    value : ndarray, shape (B,)
        Values, strictly ascending.
    rows, hits : ndarray, shape (B,)
        Rows and hits of each.
    first, last : ndarray, shape (B,)
        The smallest and the largest score of each.
    """

    value: FloatArray
    rows: FloatArray
    hits: FloatArray
    first: FloatArray
    last: FloatArray

    def joined(self, value: FloatArray, starts: IntArray) -> ConstantPieces:
        """Join the pieces from each start to the next, and give them new values; `value` and `starts` have shape (B',)."""
        return ConstantPieces(
            value,
            np.add.reduceat(self.rows, starts),
            np.add.reduceat(self.hits, starts),
            self.first[starts],
            self.last[np.append(starts[1:], self.value.size) - 1],
        )


def constant_pieces(between: ScoresAroundPositives) -> ConstantPieces:
    """Isotonic regression of the hits: constant pieces whose values are their shares of hits."""
    at = between.positives.at
    m = at.size
    # Alternating: the misses before a positive score, then the rows at it; finally the misses after all positives.
    weight = np.empty(2 * m + 1)
    hits = np.zeros(2 * m + 1)
    first = np.empty(2 * m + 1)
    last = np.empty(2 * m + 1)
    weight[0:-1:2] = between.below
    weight[2:-1:2] -= between.upto[:-1]
    weight[1::2] = between.upto - between.below
    weight[-1] = between.n - between.upto[-1]
    hits[1::2] = between.positives.count
    first[0], first[2::2] = between.lowest, between.over
    first[1::2] = last[1::2] = at
    last[0:-1:2], last[-1] = between.under, between.highest
    filled = weight > 0
    weight, hits, first, last = (v[filled] for v in (weight, hits, first, last))
    return pooled(ConstantPieces(hits / weight, weight, hits, first, last), weight)


def pieces_of(column: OneClass) -> ConstantPieces:
    """Isotonic regression of the hits of a class on its scores, which are sorted if there are no row weights."""
    if column.weights is not None:
        return weighted_pieces(column.score, column.hit, column.weights)
    positives = Positives.of(column.score[column.hit_rows])
    column.score.sort()
    return constant_pieces(ScoresAroundPositives.of(column.score, positives))


def weighted_pieces(score: FloatArray, hit: BoolArray, weights: FloatArray) -> ConstantPieces:
    """Isotonic regression of hits on scores with row weights above 0; all of shape (n,), in any order."""
    order = np.argsort(score, kind="stable")
    tied = tied_scores(score[order])
    starts = np.flatnonzero(np.append(True, tied[1:] != tied[:-1]))
    rows = np.add.reduceat(weights[order], starts)
    hits = np.add.reduceat((weights * hit)[order], starts)
    at = tied[starts].astype(np.float64)
    # Equal shares may differ by the rounding of the weights.
    return pooled(ConstantPieces(hits / rows, rows, hits, at, at), rows, rounding=1e-12)


def pooled(pieces: ConstantPieces, weight: FloatArray, rounding: float = 0.0) -> ConstantPieces:
    """Pool adjacent violators, with weights of shape (B,), so that values ascend by more than `rounding`."""
    y = np.asarray(isotonic_regression(pieces.value, weights=weight).x)
    starts = np.append(0, np.flatnonzero(y[1:] - y[:-1] > rounding) + 1)
    return pieces.joined(y[starts], starts)


def through_pieces(pieces: ConstantPieces, *, cap: bool = False) -> maps.Piecewise:
    """Piecewise linear map through the ends of constant pieces.

    Parameters
    ----------
    pieces : ConstantPieces
    cap : bool
        Whether to limit the outermost pieces to what their rows support (see `supported`), but not beyond the next piece.

    Returns
    -------
    Piecewise
        Interpolated between pieces and constant beyond the outermost scores; without `cap` it equals scikit-learn's
        ``IsotonicRegression(out_of_bounds="clip")`` up to rounding.
    """
    value = pieces.value
    if cap:
        limited = maps.supported(value, pieces.rows)
        if value.size > 1:  # no further than the next piece: the map stays increasing
            limited[0], limited[-1] = min(limited[0], value[1]), max(limited[-1], value[-2])
        # Pieces that weigh less than a row may have been moved past their neighbours.
        if (np.diff(limited) < 0).any():
            limited = np.asarray(isotonic_regression(limited, weights=pieces.rows).x)
        value = limited
    # Both ends of every piece.
    return through(np.stack([pieces.first, pieces.last], axis=1).ravel(), np.repeat(value, 2))


def centred_map(
    pieces: ConstantPieces, ordered: FloatArray, *, smooth: bool, weights: FloatArray | None = None
) -> maps.Piecewise:
    """Centered isotonic regression (Oron and Flournoy 2017): lines through one point per piece, at its mean score and value.

    Pieces of misses alone or of hits alone keep both ends, and the outermost pieces keep their outer end.

    Parameters
    ----------
    pieces : ConstantPieces
    ordered : ndarray, shape (n,)
        All scores, ascending.
    smooth : bool
        If true, a piece of n rows with H hits has the value (H + 1/2) / (n + 1), which is never 0 or 1; where these values do not
        ascend, neighbours are pooled again, with n + 1 as weights.
    weights : ndarray, shape (n,), optional
        Row weights, in the order of the scores.
    """
    if smooth:
        rows = pieces.rows + 1
        pieces = pooled(replace(pieces, value=(pieces.hits + 0.5) / rows), rows)
    # Sums of weights are compared up to rounding.
    sure = (pieces.hits == 0) | (pieces.hits >= pieces.rows * (1 - 1e-12))
    if weights is None:
        total = run_totals(ordered, np.append(0, np.cumsum(pieces.rows[:-1])).astype(np.intp))
    else:
        total = np.add.reduceat(weights * ordered, np.searchsorted(ordered, pieces.first))
    mean = np.clip(total / pieces.rows, pieces.first, pieces.last)
    mean = np.where(sure, pieces.first, mean)
    x = np.stack([mean, mean, np.where(sure, pieces.last, mean)], axis=1)
    x[0, 0], x[-1, 2] = pieces.first[0], pieces.last[-1]
    return through(x.ravel(), np.repeat(pieces.value, 3))


def through(x: FloatArray, y: FloatArray) -> maps.Piecewise:
    """Piecewise linear map through ascending points, shape (m,); of points with equal x only the first is kept."""
    keep = np.append(True, x[1:] != x[:-1])
    return maps.Piecewise(np.asarray(x[keep]), np.asarray(y[keep]))


# ---- Venn-Abers prediction


@_isotonic(
    key="venn-abers",
    label="Venn-Abers prediction",
    confidence_only=True,
    reference="Vovk et al. 2015, section 2 and algorithms 1 to 4",
    formula=r"\hat p_k \propto \frac{p_1}{1 - p_0 + p_1},\ p_0 = g_{(s, 0)}(s),\ p_1 = g_{(s, 1)}(s)",
    left_out=entry_specs.each_class_alone,
    interval_columns=("p0", "p1"),
)
class VennAbers(OneVsRest):
    """Isotonic regression with the row itself added, once as a miss (p0) and once as a hit (p1); the probability lies between the two.

    The pair is what matters: one of the two is calibrated whatever the model, and they are far apart where calibration rows are few.
    `intervals` returns both, and the calibrated file contains them. Fitted one-vs-rest, then normalised.

    Parameters
    ----------
    input : {"probabilities", "logits"}
        What X holds.

    Attributes
    ----------
    lower_, upper_ : list of Piecewise
        The maps of each class to p0 and to p1; with two classes, those of class 1 alone.
    maps_ : list of Piecewise
        The maps to p1 / (1 - p0 + p1), which has the least worst-case regret in log loss.

    Notes
    -----
    Both are exact step functions, computed for all scores at once. With row weights, the added row has the mean weight. A score that
    differs from a calibration score by rounding only counts as equal to it.
    """

    #: Nothing needs to be added: no probability is 0.
    epsilon = 0.0
    lower_: list[maps.Piecewise] = maps.learned(maps.OnePerMap(maps.ProbabilityMap()))
    upper_: list[maps.Piecewise] = maps.learned(maps.OnePerMap(maps.ProbabilityMap()))
    maps_: list[maps.Piecewise] = maps.learned()

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: FloatArray | None) -> None:
        k = scores.shape[1]
        self._pairs = [Pair(maps.UNCHANGED, maps.UNCHANGED)] * k
        super()._fit_weighted(scores, labels, weights)
        pairs = self._pairs[k - len(self.maps_) :]
        del self._pairs
        self.lower_, self.upper_ = [p.lower for p in pairs], [p.upper for p in pairs]

    def _fit_column(self, column: OneClass) -> maps.Piecewise:
        pair = self._pairs[column.k] = venn_abers(*column.in_order())
        return pair.merged()

    def _read(self, saved: Any) -> None:
        super()._read(saved)
        pairs = [Pair(*pair) for pair in zip(self.lower_, self.upper_, strict=True)]
        if not all(pair.is_ordered for pair in pairs):
            raise maps.damaged(self.key, "'lower_' must not exceed 'upper_'")
        self.maps_ = [pair.merged() for pair in pairs]

    def _intervals(self, scores: Scores) -> FloatArray:
        n, k = scores.shape
        start = k - len(self.maps_)
        out = np.empty((n, len(self.maps_), 2), dtype=scores.array.dtype)

        def work(rows: slice) -> None:
            block = scores.block(rows, np.float64)
            for at, (lower, upper) in enumerate(zip(self.lower_, self.upper_, strict=True)):
                out[rows, at, 0] = lower(block[:, start + at])
                out[rows, at, 1] = upper(block[:, start + at])

        blocks.for_row_blocks(scores.array, work)
        return out

    def _described(self) -> dict[str, Any]:
        """Return the description of other maps, and the largest distance between p0 and p1."""
        widths = [
            u(x) - low(x)
            for low, u, x in zip(
                self.lower_, self.upper_, (np.append(m.x, 1.0) for m in self.maps_), strict=True
            )
            if low.is_steps
        ]
        return super()._described() | {"widest": max(float(w.max()) for w in widths)}

    def _source(self, name: str) -> str:
        parts = [
            f"{name}_{end}_{axis} = {maps.arrays_source([getattr(m, axis) for m in of_end])}"
            for end, of_end in (("p0", self.lower_), ("p1", self.upper_))
            for axis in ("x", "y")
        ]
        first = "1" if len(self.maps_) == 1 else "0"
        newline = "\n"
        return f"""{newline.join(parts)}


def {name}_steps(score, x, y):
    if y.size == x.size:  # a class without calibration rows
        return np.interp(score, x, y)
    return y[np.searchsorted(x, score, side="left")]


def {name}_pairs(p):
    \"\"\"The pairs p0 and p1, each of shape (n, {len(self.maps_)}): of {"class 1" if first == "1" else "all classes"}.\"\"\"
    columns = p[:, {first}:].T
    p0 = [{name}_steps(s, x, y) for s, x, y in zip(columns, {name}_p0_x, {name}_p0_y)]
    p1 = [{name}_steps(s, x, y) for s, x, y in zip(columns, {name}_p1_x, {name}_p1_y)]
    return np.stack(p0, axis=1), np.stack(p1, axis=1)


def {name}_of(p):
    p0, p1 = {name}_pairs(p)
    out = p1 / (1 - p0 + p1)
    if {first}:
        out = np.concatenate([1 - out, out], axis=1)
    return out / out.sum(axis=1, keepdims=True)
"""


@dataclass(frozen=True, eq=False)
class Pair:
    """The maps to p0 and to p1, both step functions.

    Attributes
    ----------
    lower, upper : Piecewise
        Isotonic regression of the calibration rows plus a row with the given score, a miss (p0) or a hit (p1), at that score.
    """

    lower: maps.Piecewise
    upper: maps.Piecewise

    @property
    def is_ordered(self) -> bool:
        """Whether the lower map is nowhere above the upper one, by more than rounding, and both are of one kind."""
        at = np.append(np.union1d(self.lower.x, self.upper.x), np.inf)
        return self.lower.is_steps == self.upper.is_steps and bool(
            (self.lower(at) <= self.upper(at) + 1e-9).all()
        )

    def merged(self) -> maps.Piecewise:
        """Return the map to p1 / (1 - p0 + p1), which has the least worst-case regret in log loss."""
        if not self.lower.is_steps:  # a map that changes nothing
            return self.lower
        x = np.union1d(self.lower.x, self.upper.x)
        # A step includes its right edge; the last one has none.
        at = np.append(x, np.inf)
        p0, p1 = self.lower(at), self.upper(at)
        return maps.steps_merged(x, p1 / (1 - p0 + p1))


# The value of isotonic regression at an added hit is the slope of a tangent: the regression is the greatest convex minorant
# of the cumulative hits against the cumulative rows, and the added hit moves all later points by (1, 1). So p1 is the largest
# slope from a point before the added one to the moved minorant after its piece. One search per score finds it.


#: Relative difference up to which scores in single precision differ by rounding only.
_SINGLE = 2.0**-22


def venn_abers(ordered: Ordered, weights: FloatArray | None = None) -> Pair:
    """Return the exact pair of maps from calibration scores and hits in ascending order; O(n log n) including the sort.

    With row `weights`, shape (n,), in the same order and with a mean of 1, the added row has the weight 1.

    Scores between those of two neighbouring calibration rows have the p0 of the lower and the p1 of the upper one.
    A score that differs from a calibration score by rounding only counts as equal to it.
    """
    score, hit = ordered
    if weights is not None:
        # Whole multiples of a unit that sums resolve: rows far lighter than the added row, such as those of 1e-20 of all weights, have
        # no effect, and would give groups whose sums do not differ.
        unit = 2 * np.spacing(weights.sum())
        weights = np.rint(weights / unit) * unit
        kept = np.flatnonzero(weights)
        score, hit, weights = score[kept], hit[kept], weights[kept]
    ends = blocks.ends_of_ties(score)
    own = blocks.row_weights(weights, score.size)
    rows, hits = (np.append(0.0, np.cumsum(v)[ends - 1]) for v in (own, own * hit))
    misses = rows - hits
    upper, p1 = with_a_hit(rows, hits)
    # Mirrored: from the highest score down, and misses for hits.
    lower, p0 = with_a_hit(rows[-1] - rows[::-1], misses[-1] - misses[::-1])
    del rows, hits, misses
    last = ends.size - 1

    def distinct(group: IntArray) -> FloatArray:
        return score[ends[np.clip(group, 0, last)] - 1].astype(np.float64)

    def room(at: FloatArray) -> FloatArray:
        return (ROUNDING if score.itemsize == 8 else _SINGLE) * np.abs(at)

    # Steps are open on the left: p0 changes just below a score, p1 just above it.
    group = (last + 1 - lower[1:])[::-1]
    at = distinct(group)
    middle = np.where(group > 0, (at + distinct(group - 1)) / 2, -np.inf)
    below = np.maximum(np.nextafter(at - room(at), -np.inf), middle)
    group = upper[1:] - 1
    at = distinct(group)
    middle = np.where(group < last, (at + distinct(group + 1)) / 2, np.inf)
    above = np.minimum(at + room(at), middle)
    return Pair(maps.steps_merged(below, 1 - p0[::-1]), maps.steps_merged(above, p1))


def with_a_hit(rows: FloatArray, hits: FloatArray) -> tuple[IntArray, FloatArray]:
    """Isotonic regression at each group of equal scores with one hit added there: where the value changes, and to what.

    Parameters
    ----------
    rows, hits : ndarray, shape (G + 1,)
        Cumulative rows and hits (or sums of weights) before each group, in ascending order of scores, and in total.

    Returns
    -------
    first : ndarray of int, shape (S,)
        The groups from which each value holds. Group G is for a hit above all scores.
    value : ndarray, shape (S,)
        The values, ascending; the last one is 1.
    """
    corner = _corners(rows, hits)[1:]
    # Corners of the minorant after the added hit. Whole numbers, and their products, are compared exactly.
    cw, ch = rows[corner] + 1, hits[corner] + 1
    dw, dh = np.diff(cw, append=0), np.diff(ch, append=0)
    first, value, least = [], [], -1.0
    for part in runs(0, rows.size):
        blocks.checkpoint()
        x, y = rows[part], hits[part]
        # Find, for every point, the first corner to which the slope is at most that of the edge after it: slopes fall until there.
        low = np.searchsorted(corner, np.arange(part.start, part.stop), side="right")
        low = np.minimum(low, cw.size - 1)
        high = np.full(low.size, cw.size - 1)
        while (open_ := np.flatnonzero(low < high)).size:
            middle = (low[open_] + high[open_]) >> 1
            is_flat = (ch[middle] - y[open_]) * dw[middle] <= dh[middle] * (cw[middle] - x[open_])
            high[open_[is_flat]] = middle[is_flat]
            low[open_[~is_flat]] = middle[~is_flat] + 1
        slope = np.minimum((ch[high] - y) / (cw[high] - x), 1)
        slope = np.maximum.accumulate(np.maximum(slope, least))
        new = np.diff(slope, prepend=least) > 0
        first.append(np.flatnonzero(new) + part.start)
        value.append(slope[new])
        least = float(slope[-1])
    return np.concatenate(first), np.concatenate(value)


def _corners(rows: FloatArray, hits: FloatArray) -> IntArray:
    """Return the corners of the greatest convex minorant of hits against rows, shape (G + 1,) each, from the corners of its parts."""

    def pooled(at: IntArray) -> IntArray:
        count = np.diff(rows[at])
        return np.asarray(at[isotonic_regression(np.diff(hits[at]) / count, weights=count).blocks])

    parts = [pooled(np.arange(p.start, p.stop + 1)) for p in runs(0, rows.size - 1)]
    return pooled(np.unique(np.concatenate(parts)))
