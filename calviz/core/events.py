"""Binary events (score, hit), from which every calibration metric and diagram is computed, the reductions that make them, and edges of bins."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, get_args, overload

import numpy as np

from calviz.core.blocks import BoolArray, FloatArray, IntArray, read_only
from calviz.core.errors import InputError, NotAvailable, OptionError, check_choice
from calviz.core.predictions import Dataset

#: Sorted rows are cached for up to this many events; larger data are sorted on each request.
CACHED_ROWS = 1 << 18
#: Double-precision scores whose relative difference is at most this are considered equal up to rounding.
ROUNDING = 1e-12
#: Block size in rows for comparing neighbours; temporaries of this size stay in the CPU cache.
_RUN = 1 << 14


class Ordered(NamedTuple):
    """Events sorted by score.

    Attributes
    ----------
    score : ndarray of float32 or float64, shape (n,)
        Scores, ascending. Scores that differ only by rounding may be replaced by their largest (`one_score_per_tie`).
    hit : ndarray of bool, shape (n,)
        Their hits; among tied scores, misses come first.
    """

    score: FloatArray
    hit: BoolArray


@dataclass(frozen=True, eq=False)
class BinaryEvents:
    """One score per row, and whether its event happened.

    Attributes
    ----------
    score : ndarray of float32 or float64, shape (n,)
        Predicted probability of the event, in [0, 1].
    hit : ndarray of bool, shape (n,)
        Whether the event happened.
    """

    score: FloatArray
    hit: BoolArray

    def __post_init__(self) -> None:
        if self.score.ndim != 1 or self.score.shape != self.hit.shape:
            raise InputError(
                "score and hit must be 1-D and of one length, "
                f"got shapes {self.score.shape} and {self.hit.shape}"
            )
        object.__setattr__(self, "score", read_only(self.score))
        object.__setattr__(self, "hit", read_only(self.hit.astype(np.bool_, copy=False)))

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.score.shape[0])

    @property
    def edge_type(self) -> np.dtype[Any]:
        """Dtype to which bin edges are rounded: that of the scores."""
        return self.score.dtype

    @property
    def counted(self) -> bool:
        """Whether each event stands for many rows, so that weights are row counts (`CellEvents`)."""
        return False

    @property
    def ordered(self) -> Ordered:
        """The events sorted by score, with near ties made ties (`one_score_per_tie`).

        Cached up to `CACHED_ROWS` events, and for events that are `in_order`. More are sorted on each request: the time is small
        compared with the memory that caching would take.
        """
        ordered: Ordered | None = self.__dict__.get("_ordered")
        if ordered is None:
            ordered = one_score_per_tie(self.rows)
            if "_rows" in self.__dict__:
                self.__dict__["_ordered"] = ordered
        return ordered

    def ordered_copy(self) -> Ordered:
        """`ordered`, in arrays of its own that the caller may write to."""
        ordered = self.ordered
        if "_ordered" in self.__dict__:
            return Ordered(ordered.score.copy(), ordered.hit.copy())
        # The arrays behind the read-only views, which nobody else has.
        score, hit = (column.base for column in ordered)
        assert score is not None
        assert hit is not None
        return Ordered(score, hit)

    @property
    def rows(self) -> Ordered:
        """The rows sorted by score, with unchanged scores, for sums over bins. Cached like `ordered`."""
        rows: Ordered | None = self.__dict__.get("_rows")
        if rows is None:
            rows = self._sorted()
            if self.n <= CACHED_ROWS:
                self.__dict__["_rows"] = rows
        return rows

    def in_order(self) -> BinaryEvents:
        """Return the same events with rows sorted by score and this order cached."""
        rows = self.rows
        events = BinaryEvents(*rows)
        events.__dict__["_rows"] = rows
        return events

    def _sorted(self) -> Ordered:
        """Same order as ``np.lexsort((hit, score))``, but many times faster (see `_bits`)."""
        bits = self._bits()
        if bits is None:
            order = np.lexsort((self.hit, self.score))
            return Ordered(read_only(self.score[order]), read_only(self.hit[order]))
        one = bits.dtype.type(1)
        score = np.empty(self.n, dtype=self.score.dtype)
        packed = np.left_shift(bits, one, out=score.view(bits.dtype))
        packed |= self.hit
        packed.sort()
        hit = np.empty(packed.shape, dtype=np.bool_)
        np.bitwise_and(packed, one, out=hit, casting="unsafe")
        packed >>= one
        return Ordered(read_only(score), read_only(hit))

    def by_hit(self) -> tuple[FloatArray, FloatArray]:
        """Scores of the misses and scores of the hits, shape (misses,) and (hits,), each ascending; sorted on every call.

        Same as ``np.sort(score[~hit]), np.sort(score[hit])``, but with a single sort and no masks (see `_bits`).
        """
        bits = self._bits()
        if bits is None:
            misses, hits = np.sort(self.score[~self.hit]), np.sort(self.score[self.hit])
            return read_only(misses), read_only(hits)
        sign = bits.dtype.type(8 * bits.itemsize - 1)
        packed = self.hit.astype(bits.dtype)
        packed <<= sign
        packed |= bits
        packed.sort()
        first = self.n - int(np.count_nonzero(self.hit))
        packed[first:] ^= bits.dtype.type(1) << sign
        both = read_only(packed.view(self.score.dtype))
        return both[:first], both[first:]

    def _bits(self) -> IntArray | None:
        """The scores as unsigned integers in the same order, with the highest bit free.

        Non-negative floats are ordered like their bit patterns, and their sign bit is unused. With the hit
        in that bit, one integer sort moves both. None if a sign bit is set: rounding may leave a
        probability slightly below 0.
        """
        score = np.ascontiguousarray(self.score)
        bits: IntArray = score.view(np.uint32 if score.itemsize == 4 else np.uint64)
        return None if bits.size and int(bits.max()) >> (8 * bits.itemsize - 1) else bits


@dataclass(frozen=True, eq=False)
class CellEvents(BinaryEvents):
    """Events of the cells of a profile: each stands for the rows of one cell with or without a hit.

    Attributes
    ----------
    low, high : ndarray of float64, shape (n,)
        Smallest and largest score of the observed rows.
    edges_as : dtype
        See `BinaryEvents.edge_type`.
    counts : ndarray of float64, shape (n,)
        Number of observed rows behind each event.
    """

    low: FloatArray
    high: FloatArray
    edges_as: np.dtype[Any]
    counts: FloatArray

    @property
    def edge_type(self) -> np.dtype[Any]:
        """Dtype of the scores of the observed rows."""
        return self.edges_as

    @property
    def counted(self) -> bool:
        """Always True."""
        return True

    def cut_by(self, edges: FloatArray) -> bool:
        """Whether an edge of the bins, shape (M + 1,), lies inside a cell."""
        low, high = self.low, self.high
        return bool(((low < high) & (assign(low, edges) != assign(high, edges))).any())


def one_score_per_tie(rows: Ordered) -> Ordered:
    """Make scores of sorted rows that differ only by rounding equal; return the same object if nothing changes.

    A run of close neighbours is one tie if all of it lies within `ROUNDING` of its largest score. A wider run
    is not rounding but many close scores (saturated ones, near 1), whose order is informative. Scores in
    single precision are coarser than that and stay unchanged. Takes 3 ms per million rows without such
    runs, 30 ms with many.
    """
    tied = None
    for starts, ends in _near_ties(rows.score):
        tied = tied or Ordered(rows.score.copy(), rows.hit.copy())
        sizes = ends - starts + 1
        at = np.arange(sizes.sum()) + np.repeat(ends + 1 - np.cumsum(sizes), sizes)
        tied.score[at] = np.repeat(rows.score[ends], sizes)
        hits = np.add.reduceat(rows.hit[at], np.cumsum(sizes) - sizes, dtype=np.int64)
        tied.hit[at] = at > np.repeat(ends - hits, sizes)
    return rows if tied is None else Ordered(*map(read_only, tied))


def tied_scores(ordered: FloatArray) -> FloatArray:
    """Replace each of the ascending scores, shape (n,), by the largest score of its tie (see `one_score_per_tie`).

    Returns the same object if no two scores differ only by rounding.
    """
    return one_score_per_tie(Ordered(ordered, np.zeros(ordered.size, dtype=np.bool_))).score


def ends_of_near_ties(score: FloatArray, at: IntArray) -> IntArray:
    """Move places, shape (m,), in ascending scores, shape (n,), to the last row of their tie, where its scores differ by rounding."""
    moved = at.copy()
    for starts, ends in _near_ties(score):
        tie = np.searchsorted(starts, at, side="right") - 1
        moved = np.where((tie >= 0) & (at <= ends[tie]), ends[tie], moved)
    return moved


def _near_ties(score: FloatArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Yield first and last rows of the ties of ascending scores that are not all equal, the ties of some rows at a time."""
    if score.itemsize < 8 or score.size < 2 or not _any_close(score):
        return
    start = 0
    for first in range(0, score.size, _RUN):
        part = score[first : first + _RUN + 1]
        ends = first + np.flatnonzero(part[1:] - part[:-1] > ROUNDING * np.abs(part[1:]))
        if first + _RUN >= score.size:
            ends = np.append(ends, score.size - 1)
        if ends.size:
            # The first of these runs may have started in an earlier part.
            starts = np.append(start, ends[:-1] + 1)
            start = int(ends[-1]) + 1
            gap = score[ends] - score[starts]
            near = np.flatnonzero((gap > 0) & (gap <= ROUNDING * np.abs(score[ends])))
            if near.size:
                yield starts[near], ends[near]


def _any_close(score: FloatArray) -> bool:
    """Whether any two neighbours differ, but only by rounding."""
    for start in range(0, score.size - 1, _RUN):
        part = score[start : start + _RUN + 1]
        gap = part[1:] - part[:-1]
        close = gap <= ROUNDING * np.abs(part[1:])
        close &= gap > 0
        if close.any():
            return True
    return False


def ordered_events(column: FloatArray, hit_rows: IntArray) -> Ordered:
    """Sort the probabilities of a class in place, and return them with their hits.

    Parameters
    ----------
    column : ndarray, shape (n,)
        It is overwritten by the sorted probabilities, to save memory.
    hit_rows : ndarray of int, shape (m,)
        The rows with the label of the class.
    """
    hit = np.zeros(column.size, dtype=np.bool_)
    hit[hit_rows] = True
    ordered = BinaryEvents(column, hit).ordered
    column[:] = ordered.score
    return Ordered(column, ordered.hit)


def ordered_rows(
    score: FloatArray, hit: BoolArray, weights: FloatArray
) -> tuple[Ordered, FloatArray]:
    """Sort scores with their hits, near ties made equal, and return the weights in that order; all of shape (n,)."""
    order = np.argsort(score, kind="stable")
    return Ordered(tied_scores(score[order]), hit[order]), weights[order]


# ---- Reductions

#: Why what looks at the classes of a row has no value.
CONFIDENCE_ONLY = (
    "not available for confidence-only data: it needs the probabilities of all classes."
)
ReductionKind = Literal["top-label", "top-r", "within-top-r", "class", "positive"]


def _of(name: str, event: str) -> tuple[str, str, str]:
    return name, f"Probability of {event}", f"Frequency of {event}"


#: Name on screen, and labels of the score and of the observed frequency.
_WORDS: dict[ReductionKind, tuple[str, str, str]] = {
    "top-label": ("top label", "Confidence (largest probability)", "Accuracy"),
    "top-r": _of("top {r}", "the class ranked {r}"),
    "within-top-r": (
        "within top {r}",
        "Sum of the {r} largest probabilities",
        "Frequency of a label within the top {r}",
    ),
    "class": _of("class '{name}' against the rest", "'{name}'"),
    "positive": _of("positive class", "the positive class"),
}


@dataclass(frozen=True)
class Reduction:
    """The (score, hit) pair that every binary calibration metric is computed from.

    ============== ============================== ===================================
    kind           score                          hit
    ============== ============================== ===================================
    top-label      largest p                      label is the argmax
    top-r          r-th largest p                 label is the class holding it
    within-top-r   sum of the r largest p         label is among the r largest
    class          p of the class (one-vs-rest)   label is the class
    positive       p of class 1 (K = 2)           label is class 1
    ============== ============================== ===================================

    Attributes
    ----------
    kind : {"top-label", "top-r", "within-top-r", "class", "positive"}
    r : int
        1-based rank (``top-r`` and ``within-top-r``).
    class_name : str
        The class (``class``).

    References
    ----------
    Guo et al. 2017, eq. 1 (top-label) and section 4.1 (positive class); Gupta et al. 2021,
    eq. 2-5 and 17 (class k, top-r, within-top-r).
    """

    kind: ReductionKind = "top-label"
    r: int = 1
    class_name: str = ""

    def __post_init__(self) -> None:
        if self.kind not in get_args(ReductionKind):
            raise OptionError(
                f"the reduction '{self.kind!s:.40}' is unknown; known: {', '.join(get_args(ReductionKind))}."
            )

    @overload
    @classmethod
    def of(cls, value: Reduction | str, /) -> Reduction: ...

    @overload
    @classmethod
    def of(cls, value: Reduction | str | None, data: Dataset, /, *others: Dataset) -> Reduction: ...

    @classmethod
    def of(cls, value: Reduction | str | None, /, *data: Dataset) -> Reduction:
        """Parse the written form: ``top-label``, ``top-2``, ``within-top-2``, ``class:NAME``, ``positive``.

        None stands for the default reduction of the data (see `default`).
        """
        if value is None:
            return cls.default(*data)
        if isinstance(value, Reduction):
            return value
        text = value.strip()
        if text in ("top-label", "top-1", "confidence"):
            return cls()
        if text == "positive":
            return cls(kind="positive")
        if text.startswith("class:") and len(text) > len("class:"):
            return cls(kind="class", class_name=text.removeprefix("class:"))
        match = re.fullmatch(r"(within-)?top-([1-9][0-9]*)", text)
        if match:
            kind: ReductionKind = "within-top-r" if match[1] else "top-r"
            r = int(match[2])
            # "within-top-1" is the top label, too.
            return cls() if r == 1 else cls(kind=kind, r=r)
        raise OptionError(
            f"the reduction '{value}' is unknown; write top-label, top-2, within-top-2, "
            "class:NAME or positive."
        )

    @classmethod
    def default(cls, *data: Dataset) -> Reduction:
        """Return the default reduction of one data set, or of several that are compared.

        With two classes it is the positive class: the top label folds the score at 1/2, so that errors above
        and below it cancel. With more classes, or if any of the data have confidences only, it is the top label.
        """
        two = all(d.kind != "confidence" and d.n_classes == 2 for d in data)
        return cls(kind="positive") if data and two else cls()

    @property
    def key(self) -> str:
        """The written form that `of` parses."""
        if self.kind == "class":
            return f"class:{self.class_name}"
        if self.kind in ("top-r", "within-top-r"):
            return f"{self.kind[:-1]}{self.r}"
        return self.kind

    @property
    def label(self) -> str:
        """Name on screen."""
        return self._words(0)

    @property
    def score_label(self) -> str:
        """Axis label of the score."""
        return self._words(1)

    @property
    def hit_label(self) -> str:
        """Axis label of the observed frequency."""
        return self._words(2)

    def _words(self, which: int) -> str:
        return _WORDS[self.kind][which].format(r=self.r, name=self.class_name)

    def class_index(self, data: Dataset) -> int:
        """Index of the class of the ``class`` and ``positive`` reductions."""
        if self.kind == "positive":
            return 1
        if self.class_name in data.class_names:
            return data.class_names.index(self.class_name)
        names = ", ".join(data.class_names[:10]) + (", ..." if data.n_classes > 10 else "")
        raise OptionError(f"there is no class '{self.class_name}'; known: {names}.")

    def other_of_two(self, data: Dataset) -> Reduction | None:
        """The other usual reduction of two-class data: top label for positive class and vice versa; otherwise None."""
        if data.kind == "confidence" or data.n_classes != 2:
            return None
        if self.kind == "top-label":
            return Reduction("positive")
        return Reduction() if self.kind == "positive" else None

    def check(self, data: Dataset) -> None:
        """Raise NotAvailable or OptionError, with the reason, if these data do not allow the reduction."""
        if data.kind == "confidence":
            if self.kind != "top-label":
                raise NotAvailable(CONFIDENCE_ONLY)
            return
        if self.kind == "positive" and data.n_classes != 2:
            raise OptionError(
                f"the positive-class reduction needs two classes, these data have {data.n_classes}."
            )
        if self.kind in ("top-r", "within-top-r") and self.r > data.n_classes:
            raise OptionError(f"'{self.key}' needs {self.r} classes, there are {data.n_classes}.")
        if self.kind == "class":
            self.class_index(data)


# ---- Edges of bins

Scheme = Literal["equal-width", "equal-mass", "sturges"]

#: As many bins as the cube root of the number of rows, by scikit-learn's name.
CUBE_ROOT: Literal["cube_root"] = "cube_root"
BinNumber = int | Literal["cube_root"]

#: Default number of bins.
DEFAULT_BINS = 15


def sturges_bins(n: int) -> int:
    """Sturges' data-dependent number of bins, ceil(log2 n) + 1 (Zhang 2020, section 5.1)."""
    # Exact for every n, where a floating-point logarithm may round across a whole number.
    return max(n - 1, 0).bit_length() + 1


def bins_used(n: int, bins: BinNumber, scheme: Scheme | None) -> int:
    """Number of bins for n rows: Sturges' rule for the scheme "sturges", otherwise the requested `bins`, or ceil(n^(1/3))."""
    if scheme == "sturges":
        return sturges_bins(n)
    if not isinstance(bins, str):
        return bins
    # As in scikit-learn; the floating-point root of a cube below 10^10 does not lie above the cube's root.
    return min(max(int(np.ceil(n ** (1 / 3))), 1), MAX_BINS)


#: Largest number of bins: more say nothing and slow everything down.
MAX_BINS = 1_000


def equal_width_edges(bins: int, dtype: np.dtype[Any] | type = np.float64) -> FloatArray:
    """Return the edges 0, 1/M, ..., 1, rounded to the dtype of the scores, shape (M + 1,).

    A score that was written as an edge lies on that edge, whatever its dtype: the float32 number
    nearest to 0.3 is larger than the float64 number nearest to 0.3, so that against float64
    edges it would fall into the next bin. (Edges as multiples of 1/M have the same flaw:
    ``3 * 0.1`` is larger than ``0.3``, where ``3 / 10`` is not.)
    """
    return (np.arange(bins + 1) / bins).astype(dtype)


def ends_of_bins(rows: int, bins: int) -> IntArray:
    """Cumulative rows at the end of each bin but the last, shape (M - 1,), as by ``np.array_split``: the larger bins come first."""
    size, larger = divmod(rows, bins)
    m = np.arange(1, bins)
    return m * size + np.minimum(m, larger)


def equal_mass_edges(score: FloatArray, bins: int, *, is_sorted: bool = False) -> FloatArray:
    """Return edges between bins of (nearly) equal counts; ties stay together, no bin is empty.

    Scores have shape (n,), edges (M + 1,). The sorted scores are cut as by ``np.array_split``: bin sizes differ by at most one, the
    larger ones first. A cut inside a group of ties (equal up to rounding) moves to the end of that group, and cuts that coincide are
    merged, so that there may be fewer bins than asked for. The edge is the last score below the cut.

    Notes
    -----
    uncertainty-calibration cuts in the same places and puts the edge half-way to the next score; both put
    every row of these data into the same bin. Implementations that split by rank (torch-uncertainty,
    robustness_metrics, Mix-n-Match) tear ties apart, so that their value depends on the order of the rows.
    """
    ordered = score if is_sorted else np.sort(score)
    n = ordered.shape[0]
    cuts = ends_of_bins(n, bins)
    cuts = cuts[(cuts > 0) & (cuts < n)]
    # Looked up at the ends of their ties, as a copy with one score per tie would be large.
    places = ends_of_near_ties(ordered, np.concatenate([[0], cuts - 1, [n - 1]]))
    return _with_ends(ordered[places[1:-1]], ordered[places[[0, -1]]])


#: Scores above this number are merged with their neighbours, into cells of about equal counts.
_CELLS = 2_048


def cells_of(score: FloatArray) -> tuple[IntArray, int]:
    """The cell of each row in the order of the scores, shape (n,), and their number; rows of one score are in one cell."""
    _, first, cell, count = np.unique(
        score, return_index=True, return_inverse=True, return_counts=True
    )
    if first.size > _CELLS:
        cell = ((np.cumsum(count) - count) * _CELLS // score.size)[cell]
    return cell.astype(np.intp), min(first.size, _CELLS)


def assign(score: FloatArray, edges: FloatArray) -> IntArray:
    """Return the index of the right-closed bin ``(edges[m], edges[m + 1]]`` of each score; the first bin includes 0.

    Scores of any shape, edges of shape (M + 1,); the result has the shape of the scores.
    """
    return np.searchsorted(edges[1:-1], score, side="left")


def check_bins(bins: BinNumber) -> None:
    """Raise OptionError if this number of bins is not allowed."""
    if bins != CUBE_ROOT and not 1 <= bins <= MAX_BINS:
        raise OptionError(f"the number of bins must be from 1 to {MAX_BINS:,}, got {bins}.")


def weighted_mass_edges(
    score: FloatArray, weights: FloatArray, bins: int, *, counted: bool = False
) -> FloatArray:
    """Return edges between bins of (nearly) equal sums of weights, shape (M + 1,); ties stay together, no bin is empty.

    Scores and weights have shape (n,). A cut follows the row at which the cumulative weight reaches its share. The bins are those of
    `equal_mass_edges` for equal weights if M divides n, and always for weights that count rows (`counted`).
    """
    order = np.argsort(score, kind="stable")
    ordered = tied_scores(score[order])
    upto = np.cumsum(weights[order])
    if counted:
        cut_weights = ends_of_bins(int(upto[-1]), bins)
        cut_weights = cut_weights[cut_weights > 0].astype(np.float64)
    else:
        # Sums of weights that should be equal may differ by rounding.
        cut_weights = upto[-1] * np.arange(1, bins) / bins * (1 - 1e-12)
    return _with_ends(ordered[np.searchsorted(upto, cut_weights)], ordered)


def _with_ends(inner: FloatArray, ordered: FloatArray) -> FloatArray:
    """Return distinct edges from the last scores of the bins but the last, with the ends 0 and 1; `ordered` are the scores, or their ends."""
    inner = np.unique(inner)
    inner = inner[inner < ordered[-1]]
    # Rounding may leave scores a little outside [0, 1]; the edges still enclose them all.
    ends = np.array([min(0, ordered[0]), max(1, ordered[-1])], dtype=ordered.dtype)
    return np.concatenate([ends[:1], inner, ends[1:]])


def make_edges(
    events: BinaryEvents, bins: int, scheme: Scheme, weights: FloatArray | None = None
) -> FloatArray:
    """Return the edges of a binning scheme for these events, shape (M + 1,), in the dtype of the scores.

    With `weights`, shape (n,), equal-mass bins have equal sums of weights. Raises OptionError for an unknown scheme.
    """
    check_choice("scheme", scheme, get_args(Scheme))
    check_bins(bins)
    if scheme == "equal-mass" and weights is not None:
        return weighted_mass_edges(events.score, weights, bins, counted=events.counted)
    if scheme == "equal-mass":
        return equal_mass_edges(events.rows.score, bins, is_sorted=True)
    rows = int(weights.sum()) if events.counted and weights is not None else events.n
    edges = equal_width_edges(bins_used(rows, bins, scheme), events.edge_type)
    return edges.astype(events.score.dtype)
