"""sample_rows(): rows of a source of any size, read in blocks and drawn by a hash of their content."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import narwhals as nw
import numpy as np
import numpy.typing as npt

from calviz.core import errors
from calviz.core.blocks import BoolArray, Factor, FloatArray, IntArray, checkpoint, proportional
from calviz.core.errors import DEFAULT_SAMPLE_ROWS, InputError, OptionError
from calviz.core.predictions import ConfidencePredictions, Dataset, Predictions
from calviz.core.profile import ProfileColumns
from calviz.data.any_size import file_sources
from calviz.data.any_size.file_sources import Engine, TableFiles, no_panic, profile_layout, scan
from calviz.data.any_size.sums import FAULTS, faults_of, first_fault, unusable, with_probabilities
from calviz.data.format import ReadingOptions, Source, format_of, options_of
from calviz.data.loaded import EVAL_SPLITS, FIT_SPLITS, is_trained_on, usual_split
from calviz.data.roles import Problem, ScoreColumns, two_logits

if TYPE_CHECKING:
    import polars as pl


# ---- Hashes


#: Unsigned 64-bit integers, whose arithmetic wraps around.
Hashes = npt.NDArray[np.uint64]

_ODD = np.uint64(0x9E3779B97F4A7C15)


def content_hashes(labels: IntArray, scores: Sequence[FloatArray]) -> Hashes:
    """Hash the class and the scores of each row, shape (n,); equal rows have equal hashes.

    Scores in single precision have the same hash as the same values in double precision.
    """
    hashes: Hashes = (labels.astype(np.uint64) + np.uint64(1)) * _ODD
    for column in scores:
        # Adding 0.0 turns -0.0 into 0.0.
        hashes ^= (column.astype(np.float64) + 0.0).view(np.uint64)
        hashes *= _ODD
        hashes ^= hashes >> np.uint64(32)
    return mixed(hashes)


def mixed(numbers: Hashes) -> Hashes:
    """Mix the bits so that each depends on all others, same shape (the finaliser of SplitMix64; Steele, Lea & Flood 2014)."""
    x: Any = numbers.copy()
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x ^= x >> np.uint64(shift)
        x *= np.uint64(factor)
    return np.asarray(x ^ (x >> np.uint64(31)))


def rehashed(hashes: Hashes, number: IntArray | int) -> Hashes:
    """Derive a further hash of each row, shape (n,), for a given `number`: an integer, or one per row of shape (n,)."""
    # Python integers have any size.
    offset = number % (1 << 62) if isinstance(number, int) else number
    with np.errstate(over="ignore"):
        return mixed(hashes + (np.asarray(offset).astype(np.uint64) + np.uint64(1)) * _ODD)


def uniform(hashes: Hashes) -> FloatArray:
    """Map hashes to numbers in (0, 1] with 53 bits, shape (n,)."""
    return np.asarray(((hashes >> np.uint64(11)) + np.uint64(1)) * 2.0**-53)


# ---- Blocks


#: Size of a block in entries (rows x score columns).
BLOCK = 4_000_000


@dataclass(frozen=True, eq=False)
class SampledBlock:
    """A block of rows.

    Attributes
    ----------
    labels : ndarray of int, shape (n,)
        Class indices; -1 for a label that is none of the classes.
    scores : tuple of ndarray, shape (n,) each
        The score columns of the source: probabilities, confidences or logits.
    splits : ndarray of str, shape (n,), or None
    counts : ndarray, shape (n,), or None
        Frequency weight of each row.
    weights : ndarray of float64, shape (n,), or None
        Importance weight of each row.
    """

    labels: IntArray
    scores: tuple[FloatArray, ...]
    splits: np.ndarray[Any, Any] | None
    counts: FloatArray | None = None
    weights: FloatArray | None = None

    @classmethod
    def of(cls, table: pl.DataFrame, layout: ProfileColumns) -> SampledBlock:
        """Make a block from a polars frame with the columns of the layout."""
        import polars as pl

        splits = None
        if layout.split is not None:
            splits = table[layout.split].cast(pl.String).fill_null("").to_numpy()
        return cls(
            _class_numbers(table[layout.label], layout.classes),
            tuple(_floats(table[name]) for name in layout.columns),
            splits,
            None if layout.count is None else _wide(table[layout.count]),
            None if layout.weight is None else _wide(table[layout.weight]),
        )

    @property
    def copies(self) -> IntArray:
        """Frequency weights as integers, shape (n,); ones if there are none."""
        if self.counts is None:
            return np.ones(self.labels.size, dtype=np.intp)
        return self.counts.astype(np.intp)

    @property
    def hashes(self) -> Hashes:
        """Hash of the content of each row (class, scores and importance weight), shape (n,)."""
        weights = () if self.weights is None else (self.weights,)
        return content_hashes(self.labels, (*self.scores, *weights))


def _wide(column: pl.Series) -> FloatArray:
    import polars as pl

    return np.asarray(column.cast(pl.Float64).to_numpy())


def _floats(column: pl.Series) -> FloatArray:
    import polars as pl

    floats = column if column.dtype == pl.Float32 else column.cast(pl.Float64)
    return np.asarray(floats.to_numpy())


def _class_numbers(column: pl.Series, classes: Sequence[Any]) -> IntArray:
    import polars as pl

    is_text = isinstance(classes[0], str)
    numbers = column.cast(pl.String if is_text else pl.Float64).replace_strict(
        list(classes) if is_text else [float(value) for value in classes],
        list(range(len(classes))),
        default=-1,
        return_dtype=pl.Int64,
    )
    return np.asarray(numbers.fill_null(-1).to_numpy()).astype(np.intp)


@dataclass(frozen=True)
class RowSource:
    """Rows that can be iterated over repeatedly.

    Attributes
    ----------
    name : str
    layout : ProfileColumns
        The roles of the columns.
    frames : tuple of (str, callable)
        Name of each file ("" for a frame), and a function that opens it.
    """

    name: str
    layout: ProfileColumns
    frames: tuple[tuple[str, Callable[[], Any]], ...]

    @classmethod
    def of(
        cls,
        source: Any,
        reading: ReadingOptions,
        *,
        engine: Engine = "auto",
        memory: str | None = None,
        model: str | None = None,
        name: str | None = None,
    ) -> RowSource:
        """Open a path, a pattern, a folder, a list of these, or a frame.

        Raises
        ------
        InputError, OptionError
            If the source does not exist, or its columns cannot be recognised.
        """
        if isinstance(source, str | os.PathLike):
            source = [source]
        if isinstance(source, list | tuple):
            errors.needs("pyarrow")
            files = file_sources.find(source)

            def opened(path: Path, floats: Sequence[str] = ()) -> Any:
                return scan(
                    TableFiles((path,), files.kind, files.hive), engine, memory, floats=floats
                )

            first = files.paths[0]
            try:
                with no_panic():
                    frame, whole = (
                        nw.from_native(f).lazy()
                        for f in (opened(first), scan(files, engine, memory))
                    )
                    layout = profile_layout(frame, reading, model=model, whole=whole)
            except Exception as error:
                raise file_sources.error_of_path(error, first, reading) from None
            numbers = layout.numbers
            frames = tuple((path.name, partial(opened, path, numbers)) for path in files.paths)
            return cls(name or files.name, layout, frames)
        frame = file_sources.frame_of(source)
        if frame.implementation.is_pyspark() or frame.implementation.is_pyspark_connect():
            raise InputError(
                "rows cannot be drawn from a Spark frame: all of them would pass through the driver",
                remedy="write it as Parquet and name the folder",
            )
        layout = profile_layout(frame.lazy(), reading, model=model)
        return cls(name or "sample", layout, (("", lambda: source),))

    def blocks(self, doing: str, *, check: bool = False) -> Iterator[SampledBlock]:
        """Yield all rows, block by block.

        Parameters
        ----------
        doing : str
            Description of the work for progress messages.
        check : bool
            Whether to raise an error for unusable rows.

        Raises
        ------
        InputError
            If there are unusable rows (names the file, their number and the first of them), or a file cannot be read.
        """
        done, most = 0, max(1_000, BLOCK // max(2, len(self.layout.scores)))
        for name, opened in self.frames:
            try:
                for table in _tables(opened(), self._columns, most):
                    checkpoint(f"{doing}, {done:,} rows so far")
                    block = SampledBlock.of(table, self.layout)
                    if check and ((block.labels < 0).any() or _faults(table, self.layout)[1]):
                        raise _refused(opened(), self.layout, place=bool(name))
                    done += table.height
                    yield block
            except Exception as error:
                raise file_sources.error_of_file(error, name) from None

    @property
    def _columns(self) -> list[str]:
        layout = self.layout
        others = [name for name in (layout.split, layout.count, layout.weight) if name is not None]
        return list(dict.fromkeys([layout.label, *layout.columns, *others]))


def predictions_of(
    scores: FloatArray, labels: IntArray, layout: ProfileColumns, **more: Any
) -> Dataset:
    """Make predictions from rows of a source.

    Parameters
    ----------
    scores : ndarray, shape (n, columns)
        Scores in the order of `ProfileColumns.columns`.
    labels : ndarray of int, shape (n,)
        Class indices; for confidences, 1 if the prediction was right.
    layout : ProfileColumns
    **more
        Splits, weights and name.
    """
    if layout.confidence:
        return ConfidencePredictions(confidence=scores[:, 0], correct=labels == 1, **more)
    more |= {"labels": labels, "class_names": layout.class_names}
    one_column = scores.shape[1] == 1
    if layout.logits:
        return Predictions(logits=two_logits(scores) if one_column else scores, **more)
    return Predictions(probs=scores[:, 0] if one_column else scores, **more)


def _tables(native: Any, columns: list[str], rows: int) -> Iterator[pl.DataFrame]:
    """Yield blocks of the columns as polars frames."""
    import polars as pl

    frame: nw.LazyFrame[Any] | nw.DataFrame[Any] = nw.from_native(native)
    file_sources.check_columns(frame.collect_schema().names(), columns, None)
    selected: Any = frame.select(*columns)
    if isinstance(frame, nw.DataFrame):
        yield from selected.to_polars().iter_slices(rows)
        return
    table = selected.to_native()
    if frame.implementation.is_polars():
        with no_panic():
            yield from table.collect_batches(chunk_size=rows, maintain_order=True)
        return
    for batch in errors.record_batches(table, rows, frame.implementation):
        block = pl.from_arrow(batch)
        assert isinstance(block, pl.DataFrame)
        yield block


# ---- Refusals


def why_refused(file: TableFiles, layout: ProfileColumns, error: Exception) -> InputError:
    """Return the error about the scores of a single file, with rows counted from its beginning.

    A file that fits into memory is read again as a whole, a larger one is summed; either names what `calviz audit` names.

    Parameters
    ----------
    file : TableFiles
    layout : ProfileColumns
    error : Exception
        Why a block was refused or could not be read; returned as a sentence if the file as a whole shows no reason.
    """
    (path,) = file.paths
    known = error if isinstance(error, InputError) else file_sources.unreadable(error, path.name)
    try:
        with no_panic():
            if file_sources.why_out_of_core(str(path)):
                return _summed(file, layout) or known
            return _read_whole(path, layout, known)
    except InputError as reason:
        return reason
    except Exception:
        return known


def _read_whole(path: Path, layout: ProfileColumns, error: InputError) -> InputError:
    columns = layout.columns
    scores = ScoreColumns(
        columns, layout.class_names, "logits" if layout.logits else "probabilities", len(columns)
    )
    with Source(path) as opened, np.errstate(all="ignore"):
        table = format_of(opened).open(opened)
        (array,) = table.fetch([columns], []).scores
        try:
            predictions_of(array, np.zeros(len(array), dtype=np.int32), layout)
        except InputError as of_whole:
            error = of_whole
        return Problem(table, scores, array).explain(error)


def _summed(file: TableFiles, layout: ProfileColumns) -> InputError | None:
    # Labels and weights are not used, so only scores can be wrong.
    layout = replace(layout, label=layout.label or "label", count=None, weight=None)
    frame = nw.from_native(scan(file, "polars", floats=layout.columns)).lazy()
    frame = frame.with_columns(nw.lit(layout.classes[0]).alias(layout.label))
    return _refused(frame, layout, place=True) if _faults(frame, layout)[1] else None


def _faults(frame: Any, layout: ProfileColumns) -> tuple[nw.LazyFrame[Any], dict[int, int]]:
    """A lazy frame with probabilities, and the number of its rows by fault."""
    lazy = with_probabilities(nw.from_native(frame).lazy(), layout)
    return lazy, faults_of(lazy, layout)


def _refused(frame: Any, layout: ProfileColumns, *, place: bool) -> InputError:
    """Return the error about the unusable rows of a frame; it names the place of the first one, where polars counts rows in order."""
    lazy, faults = _faults(frame, layout)
    total = int(lazy.select(rows=nw.len()).collect("polars")["rows"][0])
    where = ""
    if place and lazy.implementation.is_polars():
        row, code = first_fault(lazy, layout)
        where = f"; the first is row {row + 1:,}, with {FAULTS[code]}"
    return unusable(faults, total, where)


# ---- Drawing by hash


#: Number of counters; rows are counted by hash, so each counter is an upper bound on the copies of a row.
COUNTERS = 1 << 24
#: Number of candidates collected before copies are merged.
_PENDING = 1 << 21


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
    The rows of a stratum with the smallest positions are drawn: every row has nearly the same probability of being drawn, and the m
    copies of a content are drawn in proportion, to within one row, so that frequent rows (saturated or rounded scores) are neither
    all drawn nor all left out. With the same seed, fewer rows of a stratum are part of more.
    """
    needed = fit + judged
    # Positions are uniform, so this is 4 to 8 standard deviations above the need.
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
        The splits from which fitting and evaluation rows were drawn; None for all rows, or all others if one split is named.
    seed : int
    drawn : Drawn
        The drawn contents.
    count, weight : str or None
        The column with frequency weights, or with importance weights.
    left_out : tuple of str
        Splits that were not drawn from, as their names say that the model was trained on them.
    columns : tuple of str
        The score columns.
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
    left_out: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()

    def how(self, role: Literal[0, 1]) -> str:
        """Describe how the rows for fitting (0) or judging (1) were drawn."""
        total = int(self.counts[role].sum())
        split = self.splits[role]
        other = "other " if role == 1 and self.splits == (None, None) else ""
        of = f"{total:,} {other}rows" + (f" of split '{errors.shortened(split)}'" if split else "")
        of += "".join(f" outside split '{errors.shortened(name)}'" for name in self.left_out)
        return f"a stratified sample of {of}, by a hash of each row, seed {self.seed}"

    def sentence(self) -> str:
        """Say how many rows were drawn out of how many, in total and by class."""
        text = f"{self.fit.sum():,} rows to fit on: {self.how(0)}"
        shares = [
            f"{errors.shortened(name)} {drawn:,} of {total:,}"
            for name, drawn, total in zip(self.classes, self.fit, self.counts[0], strict=True)
        ]
        if len(shares) > 10:
            least, most = int(self.fit.argmin()), int(self.fit.argmax())
            shares = [f"{len(shares):,} classes, from {shares[least]} to {shares[most]}"]
        text += f" ({', '.join(shares)})"
        if self.judged.sum():
            text += f"; {self.judged.sum():,} to judge on: {self.how(1)}"
        if self.count is not None:
            text += f"; each row of the source counts as many rows as '{errors.shortened(self.count)}' says"
        if self.weight is not None:
            text += f"; each row has the same chance of being drawn, and keeps its weight in '{errors.shortened(self.weight)}'"
        return f"{text}."

    def record(self) -> dict[str, Any]:
        """Return the same information as plain values, for JSON; ``rows_of_source`` are those that the fitting rows were drawn from."""
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

    The source is read three times, rarely more, block by block; memory is that of the sample, of a few blocks, and 64 MB of counters
    (128 MB with frequency weights).
    Logits are drawn unchanged. Rows with frequency weights (``weight_kind="frequency"``) are drawn as if each were repeated. With
    importance weights, every row has the same chance of being drawn and keeps its weight, which fitting and judging on the sample use.

    Parameters
    ----------
    source : str, PathLike, list of these, or a frame
        As in `profile`, except Spark frames.
    rows : int
        How many rows to draw for fitting; all if there are fewer and none are to judge. The shares of the classes are kept to within
        one row, so a rare class may get none.
    judged : int
        How many other rows to draw for judging.
    fit_split, eval_split : str, optional
        The splits to draw from; with one, the others are drawn from all other rows. If none is given, splits with usual names, if
        the source has them; otherwise all rows but those of splits whose name says that the model was trained on them.
    seed : int
        Seed of the hash. The same seed draws the same rows, and the fitting rows of a smaller sample are among those of a larger one,
        but for the rounding of the classes.
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
    errors.check_whole("rows", rows, least=1)
    errors.check_whole("judged", judged, least=0)
    errors.check_whole("seed", seed, least=0)
    if fit_split is not None and fit_split == eval_split:
        raise OptionError(
            f"'{errors.shortened(fit_split)}' cannot both fit and judge; name two splits."
        )
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
        left_out = tuple(level for level in by_split if is_trained_on(level))
        if splits != (None, None) or len(left_out) == len(by_split):
            left_out = ()
        pools = pools_of(splits, left_out)
        counts = np.zeros((2, len(self.source.layout.classes)), dtype=np.intp)
        for level, rows_of_class in by_split.items():
            if (pool := pools(level)) >= 0:
                counts[pool] += rows_of_class
        if not counts[0].any():
            raise InputError("no rows are left to fit on", remedy="name another split")
        fit = _some(counts[0], rows)
        if one_pool := splits == (None, None):
            counts[1] = counts[0] - fit
        if one_pool and judged and not counts[1].any():
            raise InputError(
                f"there are {fit.sum():,} rows, and {rows:,} are to be drawn: none are left to judge on",
                remedy="draw fewer, or read the source whole",
            )
        other = _some(counts[1], judged)

        def blocks() -> Iterator[tuple[Hashes, IntArray, IntArray, IntArray]]:
            for block in self.source.blocks("choosing rows"):
                content = block.hashes
                pooled, pool = _pooled(block, pools)
                strata = pool * counts.shape[1] + block.labels[pooled]
                counter = (content[pooled] & np.uint64(COUNTERS - 1)).astype(np.intp)
                most_copies = counters[counter].astype(np.intp)
                yield rehashed(content[pooled], pool), strata, most_copies, block.copies[pooled]

        none = np.zeros_like(fit)
        fits, judges = (fit, none), (other, none) if one_pool else (none, other)
        drawn = draw(
            blocks, counts.ravel(), np.concatenate(fits), np.concatenate(judges), self.seed
        )
        return RowSample(
            self._collected(drawn, pools, bool(other.any())),
            self._names(),
            counts,
            fit,
            other,
            splits,
            self.seed,
            drawn,
            self.source.layout.count,
            self.source.layout.weight,
            left_out,
            self.source.layout.columns,
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
                names = ", ".join(errors.shortened(level) for level in levels[:10] if level)
                raise InputError(
                    f"there is no split '{errors.shortened(name)}'",
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
            taken = pooled[rows]
            scores = np.stack([column[taken] for column in block.scores], axis=1)
            weights = np.ones(taken.size) if block.weights is None else block.weights[taken]
            parts.append((hashes[rows], role, block.labels[taken], scores, weights))
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


def pools_of(
    splits: tuple[str | None, str | None], left_out: Collection[str]
) -> Callable[[str], int]:
    """Return a function from the split of a row to its pool: 0 for fitting, 1 for judging, -1 for neither.

    Without splits to draw from, both kinds of rows are drawn from pool 0, but for those left out.
    """
    fit, judged = splits

    def pool(level: str) -> int:
        if splits == (None, None):
            return -1 if level in left_out else 0
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


def _some(counts: IntArray, rows: int) -> IntArray:
    """How many of `rows`, or of all rows if there are fewer, are of each class, in proportion to `counts`, shape (S,)."""
    most = min(rows, int(counts.sum()))
    return proportional(counts, most) if most else np.zeros_like(counts)
