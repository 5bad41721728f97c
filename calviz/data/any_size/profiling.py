"""profile(): part by part, stopped and resumed; polars' rows of one score column are summed block by block."""

from __future__ import annotations

import hashlib
import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, get_args

import narwhals as nw
import numpy as np
import polars as pl

from calviz.core import errors
from calviz.core.blocks import FloatArray, IntArray, checkpoint
from calviz.core.errors import CalvizError, InputError, lines_of, needs, shortened
from calviz.core.events import BinaryEvents
from calviz.core.probabilities import LOG_FLOOR, SCORE_SLACK
from calviz.core.profile import (
    VERSION,
    Profile,
    ProfileColumns,
    ProfileFacts,
    TimeUnit,
    merge,
    summed,
    summed_classes,
    write_profile,
)
from calviz.core.row_columns import FEW_SCORES, FINE_CELLS
from calviz.data.any_size import file_sources
from calviz.data.any_size.file_sources import Engine, TableFiles, error_of_file, no_panic, scan
from calviz.data.any_size.sums import (
    FAULTS,
    cells_from_sums,
    cells_of,
    class_cells_of,
    faults_of,
    first_fault,
    has_few_scores,
    is_single,
    keys_of_rows,
    row_columns,
    unusable,
    with_probabilities,
)
from calviz.data.format import ReadingOptions, options_of
from calviz.data.reading import read_profile

#: From `WIDE` columns on, polars streams chunks of about `ENTRIES` entries: 1,000 columns take 0.65 instead of 1.07 GB, 100 columns
#: of logits 0.45 instead of 0.89 GB.
WIDE, ENTRIES = 100, 2_000_000
#: Largest number of cells by true class, or of each class, in a profile: about 400 MB of memory.
MOST_CELLS = 4_000_000
_NOTHING_COUNTS = "all counts are zero, so no row counts"


def profile(
    source: Any,
    *,
    by: Sequence[str] = (),
    time: str | None = None,
    every: TimeUnit = "day",
    engine: Engine = "auto",
    memory: str | None = None,
    model: str | None = None,
    name: str | None = None,
    skip_broken: bool = False,
    true_class: bool = False,
    each_class: bool = False,
    parts: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Profile:
    """Summarise any number of rows, out of core, as a profile: profiles can be added, and evaluated like predictions.

    Parameters
    ----------
    source : str, PathLike, list of these, or a frame
        A file (Parquet, CSV, Arrow, JSON Lines), a pattern (``"data/2026/**/*.parquet"``), a folder, a hive-partitioned table; or
        a frame: pandas, polars (lazy), a DuckDB relation, PySpark, Ibis. A frame is summed by its own engine, which returns only cells.
    by : sequence of str
        Columns to slice by.
    time : str, optional
        The column with the time of each row; rows are counted in buckets of time.
    every : {"hour", "day", "week", "month", "quarter", "year"}
        Length of a bucket.
    engine : {"auto", "polars", "duckdb"}
        Engine that sums files.
    memory : str, optional
        Memory limit of DuckDB, such as "1GB"; beyond it, DuckDB spills to disk.
    model : str, optional
        Which model, if there are several.
    name : str, optional
        Name of the profile.
    skip_broken : bool
        Whether to leave out files that cannot be read (`ProfileFacts.skipped` names them) rather than raise an error.
    true_class : bool
        Whether to keep separate cells for each true class (for wsECE, wsMCS and the table of classes); with two classes this is
        always so. At most `MOST_CELLS` cells.
    each_class : bool
        Whether to also keep cells of the probability of each class, one-vs-rest (for class-wise ECE, TACE and KS, and errors per
        class); with two classes this is always so. Costs one more grouping per class.
    parts : str or PathLike, optional
        A folder in which finished parts are kept, so that interrupted work can be resumed.
    **options
        Fields of `ReadingOptions` (``label="y"``, ``scores=["p"]``); everything else is recognised. Weights must be counts of rows
        (``weight_kind="frequency"``).

    Returns
    -------
    Profile

    Raises
    ------
    InputError, OptionError
        If a source cannot be used; one sentence names the file, the number of rows, the first of them, and the rule.
    """
    reading = options_of(options)
    settings: dict[str, Any] = {"by": tuple(dict.fromkeys(by)), "time": time, "every": every}
    settings |= {"model": model, "true_class": true_class, "each_class": each_class}
    paths = source if isinstance(source, list | tuple) else [source]
    if all(isinstance(path, str | os.PathLike) for path in paths):
        files = file_sources.find(paths)
        run = _Run(engine, memory, reading, settings, name or files.name, skip_broken)
        return run.of_files(files, None if parts is None else Path(parts))
    return _of_frame(source, reading, settings, name or "profile")


def options_and_time(reading: ReadingOptions) -> tuple[dict[str, Any], str | None, TimeUnit]:
    """Turn reading options into arguments of `profile`; the time column is written ``date`` or ``date:month``.

    Raises
    ------
    OptionError
        For a length of buckets that there is not.
    """
    column, _, bucket = (reading.time_column or "").partition(":")
    every: Any = bucket or "day"
    errors.check_choice("every", every, get_args(TimeUnit))
    values = {f.name: getattr(reading, f.name) for f in fields(reading)}
    separate = ("time_column", "groups")
    options = {name: v for name, v in values.items() if name not in separate and v is not None}
    return options, column or None, every


def _of_frame(source: Any, reading: ReadingOptions, settings: dict[str, Any], name: str) -> Profile:
    if type(source).__module__.startswith("pyspark"):
        source, reading = _without_vectors(source, reading)
    frame = file_sources.frame_of(source).lazy()
    layout = file_sources.profile_layout(frame, reading, summed=True, **settings)
    frame = with_probabilities(frame, layout)
    sums = _summed(frame, layout, name)
    if not sums.usable:
        _refuse(frame, layout, sums)
    if layout.count is not None and not sums.profile.n:
        raise InputError(
            _NOTHING_COUNTS, column=layout.count, remedy="give at least one above zero"
        )
    return sums.profile


def _without_vectors(frame: Any, reading: ReadingOptions) -> tuple[Any, ReadingOptions]:
    """Divide the probabilities of spark.ml, which are a vector per row, into a column per class: probability_0, probability_1, ..."""
    given = reading.scores or ()
    column = given[0] if len(given) == 1 else "probability"
    kinds = {field.name: field.dataType.simpleString() for field in frame.schema.fields}
    if not kinds.get(column, "").startswith(("vector", "array")):
        return frame, reading
    from pyspark.ml.functions import vector_to_array
    from pyspark.sql.functions import col

    array = vector_to_array(col(column)) if kinds[column] == "vector" else col(column)
    first = frame.where(col(column).isNotNull()).select(array.alias("p")).first()
    names = [f"{column}_{j}" for j in range(0 if first is None else len(first["p"]))]
    each = {name: array[j] for j, name in enumerate(names)}
    scores = tuple(names) if given else None
    return frame.withColumns(each).drop(column), replace(reading, scores=scores)


@dataclass(frozen=True)
class _Summed:
    """The profile of some rows, and the number of unusable rows."""

    profile: Profile
    unusable: int

    @property
    def untimed(self) -> int:
        """Number of rows without a time, if rows are counted by time."""
        if self.profile.facts.every is None:
            return 0
        cells = self.profile.cells
        return int(cells.filter(cells["time"].is_null())["n"].sum())

    @property
    def usable(self) -> bool:
        """Whether all rows are usable."""
        return not self.unusable and not self.untimed


def _summed(frame: Any, layout: ProfileColumns, name: str, engine: Engine = "auto") -> _Summed:
    facts = ProfileFacts(
        name=name,
        reduction=layout.reduction,
        class_names=layout.class_names,
        kind="confidence" if layout.confidence else "probabilities",
        single=is_single(frame, layout),
        groups=layout.groups,
        split=layout.split is not None,
        every=None if layout.time is None else layout.every,
        true_class=layout.true_class,
        each_class=layout.each_class,
    )
    blocks = cells_in_blocks(frame, layout) if engine == "auto" else None
    table, unusable = cells_from_sums(_grouped(frame, layout) if blocks is None else blocks, layout)
    sums = _Summed(Profile(facts, summed([table], facts)), unusable)
    if layout.each_class and sums.usable:
        class_cells = summed_classes([class_cells_of(frame, layout)], facts)
        sums = replace(sums, profile=replace(sums.profile, class_cells=class_cells))
    _check_size(sums.profile, layout)
    return sums


def _check_size(result: Profile, layout: ProfileColumns) -> None:
    cells, class_cells = result.cells.height, result.class_cells
    if layout.true_class and cells > MOST_CELLS:
        raise InputError(
            f"the true classes, groups and times make {cells:,} cells, more than {MOST_CELLS:,}",
            remedy="leave out the true classes, or slice by less",
        )
    if class_cells is not None and class_cells.height > MOST_CELLS:
        raise InputError(
            f"the classes, groups and times make {class_cells.height:,} cells of each class, more than {MOST_CELLS:,}",
            remedy="leave out the cells of each class, or slice by less",
        )


def _grouped(frame: Any, layout: ProfileColumns) -> Any:
    """Return the sums per cell from the engine, or per distinct score if there are few."""
    if frame.implementation.is_polars():
        return _streamed(frame, layout)
    table = cells_of(frame, layout).collect("polars").to_native()
    if not (table["low"] != table["high"]).any() or (table["key"] < 0).any():
        return table
    if table["n"].sum() > FEW_SCORES and not has_few_scores(frame, layout):
        return table
    return cells_of(frame, layout, by_score=True).collect("polars").to_native()


def _streamed(frame: Any, layout: ProfileColumns) -> Any:
    """Do the same with polars, which counts rows quickly; wide frames are streamed in smaller chunks."""

    def table(*, by_score: bool) -> pl.DataFrame:
        cells = cells_of(frame, layout, by_score=by_score).collect("polars", engine="streaming")
        return cells.to_native()

    # Logits are held in memory together with the probabilities made from them.
    columns = len(layout.scores) + len(layout.logits)
    with pl.Config(streaming_chunk_size=ENTRIES // columns if columns > WIDE else None):
        rows = int(frame.select(rows=nw.len()).collect("polars")["rows"][0])
        return table(by_score=rows <= FEW_SCORES or has_few_scores(frame, layout))


def _refuse(frame: Any, layout: ProfileColumns, sums: _Summed, place: str = "") -> None:
    """Raise the error that says how many rows cannot be used, and why."""
    faults = {-6: sums.untimed} if sums.untimed else {}
    faults = {**(faults_of(frame, layout) if sums.unusable else {}), **faults}
    # With frequency weights, the number of rows of the source is not known.
    total = None if layout.count is not None else sums.profile.n + sums.unusable
    raise unusable(faults, total, place)


@dataclass
class _Run:
    """One pass through files."""

    engine: Engine
    memory: str | None
    reading: ReadingOptions
    settings: dict[str, Any]
    name: str
    skip_broken: bool

    def of_files(self, files: TableFiles, folder: Path | None) -> Profile:
        needs("pyarrow")
        layout = self._layout(files)
        profiles: list[Profile] = []
        skipped: list[str] = []
        rows = 0
        parts = list(files.parts())
        for number, part in enumerate(parts, start=1):
            checkpoint(f"part {number:,} of {len(parts):,}, {rows:,} rows so far")
            part_profile = self._cached_profile(part, layout, folder)
            if part_profile is None:
                skipped += [path.name for path in part.paths]
                continue
            rows += part_profile.n
            profiles.append(part_profile)
            # Merging from time to time bounds the memory.
            if len(profiles) > 16:
                profiles = [merge(profiles)]
        if not rows:
            raise InputError(
                "there are no rows" if layout.count is None else _NOTHING_COUNTS,
                file=files.name,
                remedy="give files with at least one",
            )
        whole = merge(profiles)
        _check_size(whole, layout)
        return _with_skipped(whole, skipped)

    def _layout(self, files: TableFiles) -> ProfileColumns:
        for path in files.paths:
            file = TableFiles((path,), files.kind, files.hive)
            try:
                with no_panic():
                    frame = nw.from_native(scan(file, self.engine))
                    whole = nw.from_native(scan(files, self.engine)).lazy()
                    how = {"summed": True, "whole": whole, **self.settings}
                    return file_sources.profile_layout(frame, self.reading, **how)
            except CalvizError as error:
                raise error_of_file(error, path.name) from None
            except Exception as error:
                if not self.skip_broken:
                    raise self._broken(path, error) from None
        raise InputError("none of the files can be read", file=files.name)

    def _frame(
        self, part: TableFiles, layout: ProfileColumns, engine: Engine, *, careful: bool = False
    ) -> Any:
        source = scan(part, engine, self.memory, floats=layout.numbers, careful=careful)
        return with_probabilities(nw.from_native(source).lazy(), layout)

    def _cached_profile(
        self, part: TableFiles, layout: ProfileColumns, folder: Path | None
    ) -> Profile | None:
        """Return the profile of a part, read from the folder of finished parts or else computed and stored there."""
        if folder is None:
            return self._profile_of_part(part, layout)
        path = folder / f"{self._key(part, layout)}.parquet"
        if path.exists():
            try:
                return read_profile(path)
            except InputError:
                path.unlink()
        result = self._profile_of_part(part, layout)
        if result is not None:
            folder.mkdir(parents=True, exist_ok=True)
            write_profile(result, path)
        return result

    def _key(self, part: TableFiles, layout: ProfileColumns) -> str:
        states = [(str(p.absolute()), p.stat().st_size, p.stat().st_mtime_ns) for p in part.paths]
        text = repr((VERSION, asdict(layout), self.name, self.skip_broken, states))
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def _profile_of_part(self, part: TableFiles, layout: ProfileColumns) -> Profile | None:
        try:
            with no_panic():
                frame = self._frame(part, layout, self.engine)
                sums = _summed(frame, layout, self.name, self.engine)
                if not sums.usable and part.kind == "csv":
                    # Blank lines are no rows.
                    frame = self._frame(part, layout, self.engine, careful=True)
                    sums = _summed(frame, layout, self.name, self.engine)
        except CalvizError as error:
            raise error_of_file(error, part.paths[0].name) from None
        except Exception as error:
            if len(part.paths) > 1:
                return self._one_by_one(part, layout)
            if not self.skip_broken or _out_of_memory(error):
                raise self._broken(part.paths[0], error) from None
            return None
        if not sums.usable:
            self._refuse(part, layout, sums)
        return sums.profile

    def _one_by_one(self, part: TableFiles, layout: ProfileColumns) -> Profile | None:
        """Profile the files of a part one by one, to find the broken ones and name them or leave them out."""
        by_path = {
            p: self._profile_of_part(TableFiles((p,), part.kind, part.hive), layout)
            for p in part.paths
        }
        profiles = [result for result in by_path.values() if result is not None]
        if not profiles:
            return None
        whole = merge(profiles)
        return _with_skipped(whole, [p.name for p, result in by_path.items() if result is None])

    def _refuse(self, part: TableFiles, layout: ProfileColumns, sums: _Summed) -> None:
        """Raise the error that says how many rows of a part cannot be used, and where the first of them is."""
        whole = self._frame(part, layout, self.engine, careful=True)
        place = ""
        for path in part.paths:
            file = TableFiles((path,), part.kind, part.hive)
            frame = self._frame(file, layout, "polars", careful=True)
            file_sums = _summed(frame, layout, self.name)
            if file_sums.unusable:
                row, code = first_fault(frame, layout)
                place = (
                    f"; the first is row {row + 1:,} of {shortened(path.name)}, with {FAULTS[code]}"
                )
            elif file_sums.untimed:
                place = f"; the first is in {shortened(path.name)}"
            if place:
                break
        _refuse(whole, layout, sums, place)

    def _broken(self, path: Path, error: Exception) -> InputError:
        if _out_of_memory(error):
            return InputError(
                "there is not enough memory to sum the file",
                file=path.name,
                remedy="allow more (--memory, memory=), or use the engine polars",
            )
        text = lines_of(error)[0]
        column = self.settings["time"]
        if column and "datetime" in text and "conversion" in text:
            return InputError(
                "a value cannot be read as a date",
                file=path.name,
                column=column,
                remedy="write all as YYYY-MM-DD or YYYY-MM-DD HH:MM:SS",
            )
        without = "leave out what is broken (--skip-broken, skip_broken=True)"
        if (of_whole := file_sources.error_of_whole(error, path, self.reading)) is not None:
            return of_whole.but(
                remedy=f"{(of_whole.remedy or '').partition(', or ask')[0]}, or {without}",
                repairs=(),
            )
        return InputError(
            f"the file cannot be read ({shortened(text)})",
            file=path.name,
            remedy=f"make it again, or {without}",
        )


def _with_skipped(result: Profile, skipped: Sequence[str]) -> Profile:
    """Return the profile with the names of skipped files added."""
    return replace(result, facts=replace(result.facts, skipped=(*result.facts.skipped, *skipped)))


def _out_of_memory(error: Exception) -> bool:
    return isinstance(error, MemoryError) or "out of memory" in lines_of(error)[0].lower()


# ---- Sums block by block: sorting scores and cutting at the edges takes less than half the time of a GROUP BY


#: Rows sorted at a time; large blocks make the search for edges cheap per row.
BLOCK_ROWS = 1 << 21
#: Largest number of groups with sums in memory, 12 MB each; for more, the engine does the grouping.
MOST_GROUPS = 8
#: Number of cells, for hits and for misses each.
_CELLS = 2 * FINE_CELLS + 1


#: Distinct scores in ascending order, and the number of rows of each.
_Distinct = tuple[FloatArray, IntArray]
_NONE: _Distinct = np.zeros(0), np.zeros(0, np.intp)


class _LeftToEngine(Exception):
    """Raised if there are unusable rows or too many groups, which are left to the engine."""


def cells_in_blocks(frame: nw.LazyFrame[Any], layout: ProfileColumns) -> pl.DataFrame | None:
    """Return the same sums as ``cells_of(frame, layout).collect()`` for a polars frame, by distinct score if there are few.

    Returns None in cases left to the engine: several score columns, frequency weights, many groups, unusable rows, and other
    engines than polars.
    """
    has_counts = layout.count is not None
    if not frame.implementation.is_polars() or len(layout.scores) > 1 or has_counts:
        return None
    single = is_single(frame, layout)
    keys = keys_of_rows(layout, frame)
    table: pl.LazyFrame = frame.select(**keys, **row_columns(layout, single)).to_native()
    sums: dict[tuple[Any, ...], _GroupSums] = {}
    try:
        for group, blocks in _blocks_by_group(table, list(keys), single, not layout.confidence):
            if group not in sums and len(sums) == MOST_GROUPS:
                return None
            sums.setdefault(group, _GroupSums(single, not layout.confidence)).add(blocks)
    except _LeftToEngine:
        return None
    return _as_table(sums, list(keys), table)


def _blocks_by_group(
    table: pl.LazyFrame, keys: list[str], single: bool, losses: bool
) -> Iterator[tuple[tuple[Any, ...], tuple[_Block, _Block]]]:
    """Yield the misses and hits of each block by group; blocks are processed in several threads."""

    def summed(batch: pl.DataFrame) -> list[tuple[tuple[Any, ...], tuple[_Block, _Block]]]:
        if not keys:
            return [((), _misses_and_hits(batch, single, losses))]
        groups = batch.partition_by(keys, as_dict=True, include_key=False)
        if len(groups) > MOST_GROUPS:
            raise _LeftToEngine
        return [(group, _misses_and_hits(part, single, losses)) for group, part in groups.items()]

    workers = min(pl.thread_pool_size(), 4)
    batches = table.collect_batches(chunk_size=BLOCK_ROWS, maintain_order=False, engine="streaming")
    with ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[Any]] = deque()
        for batch in batches:
            checkpoint()
            waiting.append(pool.submit(summed, batch))
            if len(waiting) > workers:
                yield from waiting.popleft().result()
        while waiting:
            yield from waiting.popleft().result()


class _Block(NamedTuple):
    """The hits, or the misses, of a block.

    Attributes
    ----------
    score, rows : ndarray of shape (d,), or None
        Distinct scores in ascending order and the number of rows of each; None if there are more than `FEW_SCORES`.
    cell : ndarray of int, shape (c,)
        Non-empty cells.
    columns : tuple of 7 ndarray, shape (c,) each
        Per cell: number of rows; sums of scores, of their squares and of the logarithms; clipped rows; smallest and largest score.
    """

    score: FloatArray | None
    rows: IntArray | None
    cell: IntArray
    columns: tuple[FloatArray, ...]


def _misses_and_hits(batch: pl.DataFrame, single: bool, losses: bool) -> tuple[_Block, _Block]:
    known, score = batch["known"], batch["score"]
    if known.null_count() or not known.all() or score.null_count():
        raise _LeftToEngine
    misses, hits = BinaryEvents(score.to_numpy(), batch["hit"].to_numpy()).by_hit()
    return _block(misses, False, single, losses), _block(hits, True, single, losses)


def _block(score: FloatArray, hit: bool, single: bool, losses: bool) -> _Block:
    # NaN is sorted to the end.
    if score.size and not (score[0] >= -SCORE_SLACK and score[-1] <= 1 + SCORE_SLACK):
        raise _LeftToEngine
    steps, count = score[1:] != score[:-1], None
    if score.size and np.count_nonzero(steps) < FEW_SCORES:
        ends = np.append(np.flatnonzero(steps), score.size - 1)
        score, count = score[ends], np.diff(ends, prepend=-1)
    return _of_scores(score, count, hit, single, losses)


def _of_scores(
    score: FloatArray, count: IntArray | None, hit: bool, single: bool, losses: bool
) -> _Block:
    """Sum ascending scores, which are distinct and occur `count` times each if it is given."""
    if not score.size:
        return _Block(score, np.zeros(0, np.intp), np.zeros(0, np.intp), (score,) * 7)
    cell, starts = _nonempty_cells(score, single)
    columns = _columns_of_sums(score.astype(np.float64), count, hit, single, losses, starts)
    return _Block(None if count is None else score, count, cell, columns)


@cache
def _edges(single: bool) -> FloatArray:
    """Edges of the cells in the type of the scores, shape (FINE_CELLS + 1,)."""
    return (np.arange(FINE_CELLS + 1) / FINE_CELLS).astype(np.float32 if single else np.float64)


def _nonempty_cells(score: FloatArray, single: bool) -> tuple[IntArray, IntArray]:
    """Return the non-empty cells of ascending scores, numbered as in `calviz.data.any_size.sums`, and the index where each begins."""
    edges = _edges(single)
    first = np.searchsorted(score, edges)
    on_edge = np.flatnonzero(score[np.minimum(first, score.size - 1)] == edges)
    bounds: IntArray = np.empty(_CELLS + 1, dtype=np.intp)
    bounds[:-1:2], bounds[1::2] = first, first
    bounds[2 * on_edge + 1] = np.searchsorted(score, edges[on_edge], side="right")
    # Rounding may move a score outside [0, 1].
    bounds[0], bounds[-1] = 0, score.size
    cell = np.flatnonzero(np.diff(bounds))
    return cell, bounds[cell]


def _columns_of_sums(
    score: FloatArray, count: IntArray | None, hit: bool, single: bool, losses: bool, at: IntArray
) -> tuple[FloatArray, ...]:
    """Compute the columns of a `_Block` from ascending scores that occur `count` times each; overwrites `score`."""

    def total(values: FloatArray) -> FloatArray:
        return np.add.reduceat(values if count is None else values * count, at)

    if not at.size:
        return (np.zeros(0),) * 7
    ends = np.append(at[1:], score.size)
    rows = np.diff(at, append=score.size) if count is None else np.add.reduceat(count, at)
    low, high = score[at], score[ends - 1]
    logs: FloatArray = np.zeros(at.size)
    clipped = logs
    if losses:
        true = score.copy() if hit else 1 - score
        if single and not hit:
            # Round as a column of 1 - p would be.
            true = true.astype(np.float32).astype(np.float64)
        least = LOG_FLOOR
        if true.min() < least:
            clipped = total((true < least).astype(np.float64))
            np.maximum(true, least, out=true)
        logs = total(np.log(true))
    scores = total(score)
    np.multiply(score, score, out=score)
    return rows.astype(np.float64), scores, total(score), logs, clipped, low, high


@dataclass
class _GroupSums:
    """Running sums of one group: by distinct score as long as there are few, by cell from then on."""

    single: bool
    losses: bool
    distinct: list[_Distinct] | None = field(default_factory=lambda: [_NONE, _NONE])
    cells: FloatArray | None = None

    def add(self, blocks: tuple[_Block, _Block]) -> None:
        """Add the misses and hits of a block."""
        if self.distinct is None:
            self._add(blocks)
            return
        distinct = [(b.score, b.rows) for b in blocks if b.score is not None and b.rows is not None]
        if len(distinct) == len(blocks):
            self.distinct = [_merged(*pair) for pair in zip(self.distinct, distinct, strict=True)]
            if max(score.size for score, _ in self.distinct) <= FEW_SCORES:
                return
        else:
            self._add(blocks)
        kinds = zip(self.distinct, (False, True), strict=True)
        self._add([_of_scores(*pair, hit, self.single, self.losses) for pair, hit in kinds])
        self.distinct = None

    def _add(self, blocks: Sequence[_Block]) -> None:
        if self.cells is None:
            self.cells = np.zeros((2, 7, _CELLS))
            self.cells[:, 5], self.cells[:, 6] = np.inf, -np.inf
        for sums, block in zip(self.cells, blocks, strict=True):
            cell = block.cell
            for column, values in zip(sums[:5], block.columns, strict=False):
                column[cell] += values
            sums[5][cell] = np.minimum(sums[5][cell], block.columns[5])
            sums[6][cell] = np.maximum(sums[6][cell], block.columns[6])

    def columns(self) -> dict[str, Any]:
        """Return the sums as columns with the names of `cells_of`."""
        keys, sums = [], []
        for hit in (False, True):
            if self.distinct is not None:
                score, count = self.distinct[hit]
                rows, doubles = np.arange(score.size), score.astype(np.float64)
                sums.append(_columns_of_sums(doubles, count, hit, self.single, self.losses, rows))
                cell, starts = _nonempty_cells(score, self.single) if score.size else (rows, rows)
                cell = np.repeat(cell, np.diff(starts, append=score.size))
            else:
                assert self.cells is not None
                cell = np.flatnonzero(self.cells[int(hit)][0])
                sums.append(tuple(self.cells[int(hit)][:, cell]))
            keys.append(2 * cell + hit)
        names = ("n", "score_sum", "square_sum", "log_loss", "clipped", "low", "high")
        columns = {
            name: np.concatenate(parts)
            for name, parts in zip(names, zip(*sums, strict=True), strict=True)
        }
        if not self.losses:
            del columns["log_loss"], columns["clipped"]
        return {"key": np.concatenate(keys), **columns}


def _merged(one: _Distinct, other: _Distinct) -> _Distinct:
    """Merge the distinct scores of two blocks, adding their numbers of rows."""
    if not one[0].size:
        return other
    if not other[0].size:
        return one
    score, place = np.unique(np.concatenate([one[0], other[0]]), return_inverse=True)
    count = np.zeros(score.size, dtype=np.intp)
    np.add.at(count, place, np.concatenate([one[1], other[1]]))
    return score, count


def _as_table(
    sums: dict[tuple[Any, ...], _GroupSums], keys: list[str], table: pl.LazyFrame
) -> pl.DataFrame | None:
    if not sums:
        return None
    schema = table.collect_schema()
    parts = []
    for group, group_sums in sums.items():
        columns = pl.DataFrame(group_sums.columns())
        group_keys = [pl.lit(v, dtype=schema[k]).alias(k) for k, v in zip(keys, group, strict=True)]
        parts.append(columns.select(*group_keys, *columns.columns))
    return pl.concat(parts)
