"""sample_rows(): rows drawn by a hash of their content."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from calviz.core.blocks import BoolArray, FloatArray, IntArray, proportional
from calviz.core.errors import InputError, OptionError, check_whole, shortened
from calviz.core.limits import DEFAULT_SAMPLE_ROWS
from calviz.core.predictions import Dataset
from calviz.core.row_columns import Factor
from calviz.data.any_size.blocks_of_rows import (
    Hashes,
    RowSource,
    SampledBlock,
    predictions_of,
    rehashed,
    uniform,
)
from calviz.data.any_size.file_sources import Engine
from calviz.data.loaded import EVAL_SPLITS, FIT_SPLITS, ReadingOptions, usual_split
from calviz.data.reading import options_of

# ---- Drawing by hash


#: Number of counters; rows are counted by hash, so each counter is an upper bound on the copies of a row.
COUNTERS = 1 << 24
#: Number of candidates collected before copies are merged.
_PENDING = 1 << 21


def counted_rows(counters: np.ndarray[tuple[int], np.dtype[Any]], hashes: Hashes) -> IntArray:
    """Count in the counter of each row, shape (n,)."""
    return counters[(hashes & np.uint64(counters.size - 1)).astype(np.intp)].astype(np.intp)


@dataclass(frozen=True, eq=False)
class Drawn:
    """The drawn contents (distinct rows), and how many rows of each are for fitting and for judging.

    Attributes
    ----------
    hashes : ndarray of uint64, shape (m,)
        In ascending order.
    fit, judged : ndarray of int, shape (m,)
    """

    hashes: Hashes
    fit: IntArray
    judged: IntArray

    def taken(self) -> Callable[[Hashes, IntArray], tuple[IntArray, IntArray]]:
        """Return a function, to be called block by block, from hashes and frequency weights of rows, shape (n,) each, to draws.

        Its result is how often each row was drawn for fitting and for judging, shape (n,) each. Of equal rows, the first ones
        are taken, since they differ in nothing that matters.
        """
        seen = np.zeros(self.hashes.size, dtype=np.intp)

        def of(hashes: Hashes, copies: IntArray) -> tuple[IntArray, IntArray]:
            draws = np.zeros((2, hashes.size), dtype=np.intp)
            if not self.hashes.size:
                return draws[0], draws[1]
            index = np.minimum(np.searchsorted(self.hashes, hashes), self.hashes.size - 1)
            rows = np.flatnonzero(self.hashes[index] == hashes)
            order = rows[np.argsort(index[rows], kind="stable")]
            if not order.size:
                return draws[0], draws[1]
            content, weights = index[order], copies[order]
            new = np.flatnonzero(np.diff(content, prepend=-1))
            before = np.cumsum(weights) - weights
            before -= np.repeat(before[new], np.diff(new, append=content.size)) - seen[content]
            seen[content[new]] += np.add.reduceat(weights, new)
            fit, all_drawn = self.fit[content], (self.fit + self.judged)[content]
            fits, drawn = (
                np.minimum(before + weights, most) - np.minimum(before, most)
                for most in (fit, all_drawn)
            )
            draws[0, order], draws[1, order] = fits, drawn - fits
            return draws[0], draws[1]

        return of


def draw(
    blocks: Callable[[], Iterable[tuple[Hashes, IntArray, IntArray, IntArray]]],
    counts: IntArray,
    fit: IntArray,
    judged: IntArray,
    seed: int,
) -> Drawn:
    """Draw the requested number of rows from each stratum.

    Parameters
    ----------
    blocks : callable
        Yields all rows block by block: hashes, strata, an upper bound on the number of copies of each row, and its own frequency
        weight, shape (n,) each.
    counts, fit, judged : ndarray of int, shape (S,)
        Per stratum: number of rows, and how many to draw for fitting and for judging.
    seed : int

    Notes
    -----
    Copy j = 0, ..., m - 1 of a content gets the position (j + u) / m, with u in (0, 1] from the hash of the content and the seed.
    The rows of a stratum with the smallest positions are drawn: every row has the same probability of being drawn, and the m copies
    of a content are drawn in proportion, to within one row, so that frequent rows (saturated or rounded scores) are neither all
    drawn nor all left out. A smaller sample with the same seed is part of a larger one.
    """
    needed = fit + judged
    # Positions are uniform, so this is more than eight standard deviations above the expected need.
    limit = np.minimum((needed + 8 * np.sqrt(needed) + 16) / np.maximum(counts, 1), 1.0)
    while True:
        hashes, strata, copies = _candidates(blocks, limit, seed)
        position, content = _positions(hashes, copies, limit[strata], seed)
        stratum = strata[content]
        available = np.bincount(stratum, minlength=counts.size)
        if ((available >= needed) | (limit >= 1)).all():
            break
        limit = np.where(available < needed, np.minimum(2 * limit, 1.0), limit)
    order = np.lexsort((content, position, stratum))
    rank = np.arange(order.size) - np.searchsorted(stratum[order], stratum[order])
    is_fit = rank < fit[stratum[order]]
    is_judged = ~is_fit & (rank < needed[stratum[order]])
    size = hashes.size
    draws = [np.bincount(content[order[chosen]], minlength=size) for chosen in (is_fit, is_judged)]
    drawn = np.flatnonzero(draws[0] + draws[1])
    return Drawn(hashes[drawn], draws[0][drawn], draws[1][drawn])


def _candidates(
    blocks: Callable[[], Iterable[tuple[Hashes, IntArray, IntArray, IntArray]]],
    limit: FloatArray,
    seed: int,
) -> tuple[Hashes, IntArray, IntArray]:
    """Contents whose first copy may be within the limit: ascending hashes, strata and exact numbers of copies, shape (m,) each."""
    pending: list[tuple[Hashes, IntArray, IntArray]] = []
    rows = 0
    for hashes, strata, most_copies, weights in blocks():
        within_limit: BoolArray = uniform(rehashed(hashes, seed)) <= limit[strata] * most_copies
        pending.append((hashes[within_limit], strata[within_limit], weights[within_limit]))
        rows += pending[-1][0].size
        if rows > _PENDING:
            pending, rows = [_merged(pending)], 0
    return _merged(pending)


def _merged(parts: list[tuple[Hashes, IntArray, IntArray]]) -> tuple[Hashes, IntArray, IntArray]:
    hashes, strata, copies = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    distinct, first, place = np.unique(hashes, return_index=True, return_inverse=True)
    summed = np.zeros(distinct.size, dtype=np.intp)
    np.add.at(summed, place, copies)
    return distinct, strata[first], summed


def _positions(
    hashes: Hashes, copies: IntArray, limit: FloatArray, seed: int
) -> tuple[FloatArray, IntArray]:
    """Positions of all copies that may be within the limit, and the index of the content of each, shape (c,) each."""
    u = uniform(rehashed(hashes, seed))
    within = np.clip(np.floor(copies * limit - u).astype(np.intp) + 1, 0, copies)
    content = np.repeat(np.arange(hashes.size), within)
    number = np.arange(content.size) - np.repeat(np.cumsum(within) - within, within)
    return (number + u[content]) / copies[content], content


# ---- sample_rows


#: Names of the splits of drawn rows.
FIT, JUDGED = "calibration", "evaluation"


@dataclass(frozen=True, eq=False)
class RowSample:
    """Rows drawn from a source, with the numbers of rows they were drawn from.

    Attributes
    ----------
    data : Predictions or ConfidencePredictions
        The rows; with the splits "calibration" and "evaluation" if some are evaluation rows.
    classes : tuple of str
        Names of the strata.
    counts : ndarray of int, shape (2, S)
        Rows of the source by class, from which the fitting rows and the evaluation rows were drawn.
    fit, judged : ndarray of int, shape (S,)
        Rows drawn, by class.
    splits : tuple of (str or None, str or None)
        The splits from which fitting and evaluation rows were drawn; None for all rows.
    seed : int
    drawn : Drawn
        The drawn contents.
    count, weight : str or None
        The column with frequency weights, or with importance weights.
    """

    data: Dataset
    classes: tuple[str, ...]
    counts: IntArray
    fit: IntArray
    judged: IntArray
    splits: tuple[str | None, str | None]
    seed: int
    drawn: Drawn
    count: str | None = None
    weight: str | None = None

    def how(self, role: Literal[0, 1]) -> str:
        """Describe how the rows for fitting (0) or judging (1) were drawn."""
        total = int(self.counts[role].sum())
        split = self.splits[role]
        other = "other " if role == 1 and self.splits == (None, None) else ""
        of = f"{total:,} {other}rows" + (f" of split '{shortened(split)}'" if split else "")
        return f"a stratified sample of {of}, by a hash of each row, seed {self.seed}"

    def sentence(self) -> str:
        """Say how many rows were drawn out of how many, in total and by class."""
        text = f"{self.fit.sum():,} rows to fit on: {self.how(0)}"
        shares = [
            f"{shortened(name)} {drawn:,} of {total:,}"
            for name, drawn, total in zip(self.classes, self.fit, self.counts[0], strict=True)
        ]
        if len(shares) > 10:
            least, most = int(self.fit.argmin()), int(self.fit.argmax())
            shares = [f"{len(shares):,} classes, from {shares[least]} to {shares[most]}"]
        text += f" ({', '.join(shares)})"
        if self.judged.sum():
            text += f"; {self.judged.sum():,} to judge on: {self.how(1)}"
        if self.count is not None:
            text += (
                f"; each row of the source counts as many rows as '{shortened(self.count)}' says"
            )
        if self.weight is not None:
            text += f"; each row has the same chance of being drawn, and keeps its weight in '{shortened(self.weight)}'"
        return f"{text}."

    def record(self) -> dict[str, Any]:
        """Return the same information as plain values, for JSON."""
        by_class = zip(
            self.classes, *(x.tolist() for x in (*self.counts, self.fit, self.judged)), strict=True
        )
        return {
            "seed": self.seed,
            "rows_of_source": int(self.counts[0].sum()),
            "fit_rows": int(self.fit.sum()),
            "eval_rows": int(self.judged.sum()),
            "fit_split": self.splits[0],
            "eval_split": self.splits[1],
            "count_column": self.count,
            "weight_column": self.weight,
            "classes": {
                name: {"fit_rows": f, "of": of_fit, "eval_rows": j, "eval_of": of_judged}
                for name, of_fit, of_judged, f, j in by_class
            },
        }


def sample_rows(
    source: Any,
    rows: int = DEFAULT_SAMPLE_ROWS,
    *,
    judged: int = 0,
    fit_split: str | None = None,
    eval_split: str | None = None,
    seed: int = 0,
    engine: Engine = "auto",
    memory: str | None = None,
    model: str | None = None,
    name: str | None = None,
    **options: Any,
) -> RowSample:
    """Draw rows from a source of any size, stratified by class; the result does not depend on order or division into files.

    The source is read three times, block by block; memory is that of the sample plus 64 MB (128 MB with frequency weights).
    Logits are drawn unchanged. Rows with frequency weights (``weight_kind="frequency"``) are drawn as if each were repeated. With
    importance weights, every row has the same chance of being drawn and keeps its weight, which fitting and judging on the sample use.

    Parameters
    ----------
    source : str, PathLike, list of these, or a frame
        As in `profile`, except Spark frames.
    rows : int
        How many rows to draw for fitting. The shares of the classes are kept to within one row, so a rare class may get none.
    judged : int
        How many other rows to draw for judging.
    fit_split, eval_split : str, optional
        The splits to draw from. If none is given, splits with usual names, if the source has them; all rows otherwise.
    seed : int
        Seed of the hash. The same seed draws the same rows, and a smaller sample is part of a larger one.
    engine, memory, model, name
        As in `profile`.
    **options
        Fields of `ReadingOptions` (``label="y"``, ``scores=["p0", "p1", "p2"]``).

    Returns
    -------
    RowSample

    Raises
    ------
    InputError, OptionError
        If rows are unusable, or there are too few.

    Examples
    --------
    >>> import calviz, polars
    >>> frame = polars.DataFrame({"p": [k / 1000 for k in range(1000)], "y": [0, 0, 0, 1] * 250})
    >>> sample = calviz.sample_rows(frame, 100, label="y", scores=["p"])
    >>> sample.fit.tolist(), sample.data.n
    ([75, 25], 100)
    """
    check_whole("rows", rows, least=1)
    check_whole("judged", judged, least=0)
    check_whole("seed", seed, least=0)
    if fit_split is not None and fit_split == eval_split:
        raise OptionError(f"'{shortened(fit_split)}' cannot both fit and judge; name two splits.")
    reading: ReadingOptions = options_of(options)
    opened = RowSource.of(source, reading, engine=engine, memory=memory, model=model, name=name)
    return _Drawing(opened, seed).sample(rows, judged, fit_split, eval_split)


@dataclass(frozen=True, eq=False)
class _Drawing:
    source: RowSource
    seed: int

    def sample(
        self, rows: int, judged: int, fit_split: str | None, eval_split: str | None
    ) -> RowSample:
        by_split, counters = self._counted()
        splits = self._splits(tuple(by_split), fit_split, eval_split, judged > 0)
        pools = pools_of(splits)
        counts = np.zeros((2, len(self.source.layout.classes)), dtype=np.intp)
        for level, rows_of_class in by_split.items():
            if (pool := pools(level)) >= 0:
                counts[pool] += rows_of_class
        fit, other = _shares(counts, rows, judged, from_two_splits=splits != (None, None))

        def blocks() -> Iterator[tuple[Hashes, IntArray, IntArray, IntArray]]:
            for block in self.source.blocks("choosing rows"):
                content = block.hashes
                pooled, pool = _pooled(block, pools)
                strata = pool * counts.shape[1] + block.labels[pooled]
                most_copies = counted_rows(counters, content[pooled])
                yield rehashed(content[pooled], pool), strata, most_copies, block.copies[pooled]

        none = np.zeros_like(fit)
        if splits == (None, None):
            wanted = np.concatenate([fit, none]), np.concatenate([other, none])
        else:
            wanted = np.concatenate([fit, none]), np.concatenate([none, other])
        drawn = draw(blocks, counts.ravel(), *wanted, self.seed)
        drawn_from = counts if splits != (None, None) else np.stack([counts[0], counts[0] - fit])
        return RowSample(
            self._collected(drawn, pools, bool(other.any())),
            self._names(),
            drawn_from,
            fit,
            other,
            splits,
            self.seed,
            drawn,
            self.source.layout.count,
            self.source.layout.weight,
        )

    def _names(self) -> tuple[str, ...]:
        layout = self.source.layout
        if layout.confidence:
            return ("wrong", "right")
        return layout.class_names or tuple(str(c) for c in layout.classes)

    def _counted(self) -> tuple[dict[str, IntArray], Any]:
        """Return the number of rows of each split by class, shape (K,), and counters of contents."""
        k = len(self.source.layout.classes)
        by_split: dict[str, IntArray] = {}
        has_counts = self.source.layout.count is not None
        counters = np.zeros(COUNTERS, dtype=np.uint64 if has_counts else np.uint32)
        for block in self.source.blocks("counting rows", check=True):
            counter = (block.hashes & np.uint64(COUNTERS - 1)).astype(np.intp)
            copies = block.copies
            np.add.at(counters, counter, copies.astype(counters.dtype) if has_counts else 1)
            levels = {"": np.ones(block.labels.size, dtype=np.bool_)}
            if block.splits is not None:
                levels = {str(s): block.splits == s for s in np.unique(block.splits)}
            for level, rows in levels.items():
                rows_of_class = by_split.setdefault(level, np.zeros(k, dtype=np.intp))
                np.add.at(rows_of_class, block.labels[rows], copies[rows])
        if not by_split or not sum(c.sum() for c in by_split.values()):
            raise InputError("there are no rows", remedy="give a source with at least one")
        return dict(sorted(by_split.items())), counters

    def _splits(
        self, levels: tuple[str, ...], fit: str | None, judged: str | None, judging: bool
    ) -> tuple[str | None, str | None]:
        """Return the splits to draw from: the given ones, or those with usual names."""
        for name in (fit, judged):
            if name is not None and (self.source.layout.split is None or name not in levels):
                names = ", ".join(shortened(level) for level in levels[:10] if level)
                raise InputError(
                    f"there is no split '{shortened(name)}'",
                    remedy=f"known: {names}" if names else "there are no splits: leave it out",
                )
        if fit is not None or judged is not None:
            return fit, judged
        fit, judged = usual_split(levels, FIT_SPLITS), usual_split(levels, EVAL_SPLITS)
        return (None, None) if fit is None or (judged is None and judging) else (fit, judged)

    def _collected(self, drawn: Drawn, pools: Callable[[str], int], judging: bool) -> Dataset:
        """Collect the drawn rows, in an order that depends only on the rows."""
        draws_of = drawn.taken()
        parts: list[tuple[Any, ...]] = []
        for block in self.source.blocks("taking rows"):
            pooled, pool = _pooled(block, pools)
            hashes = rehashed(block.hashes[pooled], pool)
            copies = draws_of(hashes, block.copies[pooled])
            # Rows with frequency weights are repeated.
            rows = np.concatenate([np.repeat(np.arange(pooled.size), count) for count in copies])
            role = np.repeat([0, 1], [count.sum() for count in copies])
            drawn_rows = pooled[rows]
            scores = np.stack([column[drawn_rows] for column in block.scores], axis=1)
            weights = (
                np.ones(drawn_rows.size) if block.weights is None else block.weights[drawn_rows]
            )
            parts.append((hashes[rows], role, block.labels[drawn_rows], scores, weights))
        hashes, role, labels, scores, weights = (
            np.concatenate(columns) for columns in zip(*parts, strict=True)
        )
        order = np.lexsort((rehashed(hashes, self.seed), role))
        more: dict[str, Any] = {"name": self.source.name}
        if judging:
            more["splits"] = Factor.of(np.array([FIT, JUDGED], dtype=object)[role[order]])
        if self.source.layout.weight is not None:
            more["weights"] = weights[order]
        return predictions_of(scores[order], labels[order], self.source.layout, **more)


def pools_of(splits: tuple[str | None, str | None]) -> Callable[[str], int]:
    """Return a function from the split of a row to its pool: 0 for fitting, 1 for judging, -1 for neither.

    Without splits, both kinds of rows are drawn from pool 0.
    """
    fit, judged = splits

    def pool(level: str) -> int:
        if splits == (None, None):
            return 0
        if level == fit or (fit is None and level != judged):
            return 0
        return 1 if level == judged or judged is None else -1

    return pool


def _pooled(block: SampledBlock, pools: Callable[[str], int]) -> tuple[IntArray, IntArray]:
    """Return the rows of a block that are in a pool, and the pool of each, shape (m,) each."""
    n = block.labels.size
    if block.splits is None:
        return np.arange(n), np.zeros(n, dtype=np.intp)
    levels, codes = np.unique(block.splits, return_inverse=True)
    pool = np.array([pools(str(level)) for level in levels], dtype=np.intp)[codes]
    rows = np.flatnonzero(pool >= 0)
    return rows, pool[rows]


def _shares(
    counts: IntArray, rows: int, judged: int, *, from_two_splits: bool
) -> tuple[IntArray, IntArray]:
    """How many rows of each class to draw for fitting and for judging, shape (S,) each, from one pool of rows or from two splits."""
    available = int(counts[0].sum())
    if not from_two_splits:
        if rows >= available:
            raise InputError(
                f"there are {available:,} rows, and {rows:,} are to be drawn: none are left to judge on",
                remedy="draw fewer, or read the source whole",
            )
        fit = proportional(counts[0], rows)
        return fit, _some(counts[0] - fit, judged)
    if not available:
        raise InputError("no rows are left to fit on", remedy="name another split")
    return _some(counts[0], rows), _some(counts[1], judged)


def _some(counts: IntArray, rows: int) -> IntArray:
    """Divide `rows`, or all rows if there are fewer, among classes in proportion to `counts`, shape (S,)."""
    most = min(rows, int(counts.sum()))
    return proportional(counts, most) if most else np.zeros_like(counts)
