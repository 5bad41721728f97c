"""Rows summed into cells by the engine of the frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from calviz.core.blocks import checkpoint
from calviz.core.errors import InputError
from calviz.core.probabilities import LOG_FLOOR, ROW_SUM_TOLERANCE, SCORE_SLACK
from calviz.core.profile import CLASS_SUMS, GROUP, SUMS, UNITS, ProfileColumns, intervals_of
from calviz.core.row_columns import FEW_SCORES, FINE_CELLS

if TYPE_CHECKING:
    import polars as pl


def missing(score: Any) -> Any:
    """Expression for whether a number is null or NaN."""
    return score.is_null() | score.is_nan()


def inside(score: Any) -> Any:
    """Expression for whether a number is a probability, up to rounding."""
    return (score >= -SCORE_SLACK) & (score <= 1 + SCORE_SLACK)


def tree(terms: Sequence[Any]) -> Any:
    """Expression for a sum, missing if any term is, nested only to a depth logarithmic in the number of terms."""
    while len(terms) > 2:
        terms = [reduce(add, terms[i : i + 2]) for i in range(0, len(terms), 2)]
    return reduce(add, terms)


# ---- Cells of the score


#: Prefix of derived columns, so that they do not clash with columns of a file.
_PREFIX = "calviz:"
#: Columns of their own, as Spark repeats an expression at each use: the edge nearest to a score, and the probability whose logarithm is taken.
_NEAREST, _AT_LEAST = f"{_PREFIX}nearest edge", f"{_PREFIX}true at least"

#: Why rows cannot be used, by fault code.
FAULTS = {
    -1: "no label",
    -2: "a label that is none of the classes",
    -3: "a missing score",
    -4: "a score outside [0, 1]",
    -5: f"scores that do not sum to 1 (within {ROW_SUM_TOLERANCE})",
    -6: "no time",
    -7: "a count that is not a whole number from 0 up",
    -8: "a weight that is not a number from 0 up",
}

#: Above this, not all integers can be represented in double precision.
LARGEST_COUNT = float(1 << 53)


@dataclass(frozen=True)
class _RowExpressions:
    """Derived values of each row, as expressions.

    Attributes
    ----------
    score, hit
    true
        The probability of the true class; None if it is not known.
    square
        The squared distance to the one-hot label; None if it follows from score and hit, or is not known.
    usable
        Whether the row is usable; missing if one of its values is missing.
    faults
        Conditions under which a row is unusable, with their codes (`FAULTS`).
    log
        The logarithm of `true`, if it is known more precisely than from `true` itself.
    helpers
        Columns to compute beforehand, so that expressions over all classes are evaluated once.
    """

    score: Any
    hit: Any
    true: Any
    square: Any
    usable: Any
    faults: tuple[tuple[Any, int], ...]
    helpers: Mapping[str, Any] = field(default_factory=dict)
    log: Any = None


def cells_of(frame: nw.LazyFrame[Any], layout: ProfileColumns, *, by_score: bool = False) -> Any:
    """Return the sums of a lazy frame, still lazy: a row per occurring split, group, time, cell and hit, to be passed to `cells_from_sums`.

    Unusable rows have the key -1. Sums are weighted by frequency weights; rows with a weight of 0 are dropped after they were
    checked.

    Parameters
    ----------
    frame : narwhals.LazyFrame
    layout : ProfileColumns
    by_score : bool
        Whether to keep separate sums for every distinct score.

    Notes
    -----
    A cell is one of `FINE_CELLS` intervals of equal width, or one of the edges between them. Scores rounded to few digits lie on
    edges of their own, so that nothing is lost.
    """
    single = is_single(frame, layout)
    rows = _rows(layout, single)
    keys = keys_of_rows(layout, frame)
    values = {"score": rows.score, "hit": rows.hit, "usable": rows.usable}
    if frame.implementation.is_pandas_like():
        # pandas cannot cast a missing score to an integer, even in unusable rows.
        values["score"] = nw.when(rows.usable).then(rows.score).otherwise(nw.lit(0.0))
    values |= {"true": rows.true} if rows.true is not None else {}
    values |= {"square": rows.square} if rows.square is not None else {}
    values |= {"log": rows.log} if rows.log is not None else {}
    if layout.count is not None:
        count = nw.when(rows.usable).then(counts_of(layout)).otherwise(nw.lit(1.0))
        values["count"] = count.cast(nw.Int64)
    table = _with_helpers(frame, rows).select(
        **keys, **{f"{_PREFIX}{name}": column for name, column in values.items()}
    )
    count_column = nw.col(f"{_PREFIX}count")
    if layout.count is not None:
        table = table.filter(count_column > 0)
    score, hit = nw.col(f"{_PREFIX}score"), nw.col(f"{_PREFIX}hit")
    table = _with_nearest_edge(table, score, FINE_CELLS)
    if rows.true is not None:
        table = table.with_columns(**{_AT_LEAST: nw.col(f"{_PREFIX}true").clip(LOG_FLOOR)})
    # Grouping by one integer is faster than by two columns.
    key = cell_of(score, single, FINE_CELLS) * 2 + hit.cast(nw.Int32)
    usable = nw.col(f"{_PREFIX}usable")
    added = {"score_sum": score, "square_sum": score * score} | _losses(rows, hit, single)
    if layout.count is not None:
        added = {name: column * count_column for name, column in added.items()}
    # Some engines can sum only columns, not expressions.
    columns = {f"{_PREFIX}sum of {name}": column for name, column in added.items()}
    sums = {name: nw.col(f"{_PREFIX}sum of {name}").sum() for name in added}
    sums["n"] = nw.len() if layout.count is None else count_column.sum()
    sums |= {"low": score.min(), "high": score.max()}
    columns["key"] = nw.when(usable).then(key).otherwise(nw.lit(-1)).cast(nw.Int32)
    by = [*keys, "key", *([f"{_PREFIX}score"] if by_score else [])]
    return table.with_columns(**columns).group_by(*by).agg(**sums)


def _losses(rows: _RowExpressions, hit: Any, single: bool) -> dict[str, Any]:
    """Columns to be summed for the log loss, the squared error and the clipped logarithms, as far as the rows have them."""
    losses: dict[str, Any] = {}
    if rows.true is not None:
        # As in evaluations in memory.
        losses["log_loss"] = nw.col(_AT_LEAST).log()
        losses["clipped"] = (nw.col(f"{_PREFIX}true") < LOG_FLOOR).cast(nw.Int32)
    if rows.log is not None:
        # Nothing is clipped if the logarithms are known.
        losses["log_loss"], losses["clipped"] = nw.col(f"{_PREFIX}log"), hit.cast(nw.Int32) * 0
    if rows.square is not None:
        losses["squared_error"] = nw.col(f"{_PREFIX}square")
    return losses


def has_few_scores(frame: nw.LazyFrame[Any], layout: ProfileColumns) -> bool:
    """Whether there are few enough distinct scores to keep each separate; checks the first rows, then all if necessary."""
    rows = _rows(layout, is_single(frame, layout))
    table = _with_helpers(frame, rows).select(score=rows.score)

    def distinct(part: nw.LazyFrame[Any]) -> int:
        counts = part.select(distinct=nw.col("score").n_unique()).collect("polars")
        return int(counts["distinct"][0])

    return distinct(table.head(2 * FEW_SCORES)) <= FEW_SCORES and distinct(table) <= FEW_SCORES


def row_columns(layout: ProfileColumns, single: bool) -> dict[str, Any]:
    """Expressions for score, hit, and whether the label is one of the classes, for a single score column."""
    score = nw.col(layout.scores[-1])
    hit, known = _hit_and_known(layout)
    return {"score": score if single else score.cast(nw.Float64), "hit": hit, "known": known}


def _hit_and_known(layout: ProfileColumns) -> tuple[Any, Any]:
    """Expressions for whether the label is the second of two classes, and whether it is one of them."""
    label = nw.col(layout.label)
    hit = label == layout.classes[1]
    return hit, hit | (label == layout.classes[0])


def cells_from_sums(table: pl.DataFrame, layout: ProfileColumns) -> tuple[pl.DataFrame, int]:
    """Convert the sums of any engine to cells with the columns of `Profile.cells`; also return the number of unusable rows."""
    import polars as pl

    table = table.drop(f"{_PREFIX}score", strict=False)
    types: Any = {"key": pl.Int32, "n": pl.Int64}
    types |= {name: pl.Float64 for name in table.columns if name in (*SUMS[1:], "low", "high")}
    types |= {"time": pl.Datetime("us")} if layout.time is not None else {}
    table = table.cast(types)
    unusable = int(table.filter(pl.col("key") < 0)["n"].sum())
    # The key is 2 * cell + hit.
    table = table.filter(pl.col("key") >= 0).with_columns(
        cell=pl.col("key") // 2, hit=pl.col("key") % 2 == 1
    )
    log_loss = 0.0 - pl.col("log_loss") if "log_loss" in table.columns else pl.lit(float("nan"))
    clipped = pl.col("clipped") if "clipped" in table.columns else pl.lit(0)
    if "squared_error" in table.columns:
        square = pl.col("squared_error")
    elif layout.two_classes:
        squares_of_hits = pl.col("n") - 2 * pl.col("score_sum") + pl.col("square_sum")
        square = 2 * pl.when("hit").then(squares_of_hits).otherwise(pl.col("square_sum"))
    else:
        square = pl.lit(float("nan"))
    table = table.with_columns(
        log_loss=log_loss, clipped=clipped.cast(pl.Int64), squared_error=square.cast(pl.Float64)
    )
    return table.drop("key"), unusable


def faults_of(frame: nw.LazyFrame[Any], layout: ProfileColumns) -> dict[int, int]:
    """Count the rows by fault; a row with several faults counts for the first one."""
    rows = _rows(layout, is_single(frame, layout))
    codes = _with_helpers(frame, rows).select(fault=_fault(rows))
    # Usable rows are counted too: for a filter, Spark would repeat the whole expression at each use.
    table = codes.group_by("fault").agg(n=nw.len()).collect("polars")
    counts = zip(table["fault"].to_list(), table["n"].to_list(), strict=True)
    return {int(fault): int(n) for fault, n in sorted(counts, reverse=True) if fault < 0}


def first_fault(frame: nw.LazyFrame[Any], layout: ProfileColumns) -> tuple[int, int]:
    """Return the 0-based number of the first unusable row of a lazy polars frame, and its fault code."""
    rows = _rows(layout, is_single(frame, layout))
    codes = _with_helpers(frame, rows).select(fault=_fault(rows)).collect().with_row_index("row")
    row = codes.filter(nw.col("fault") < 0).head(1).row(0)
    return int(row[0]), int(row[1])


def unusable(faults: Mapping[int, int], total: int | None, place: str = "") -> InputError:
    """Return the error that says how many rows cannot be used, and why.

    Parameters
    ----------
    faults : mapping of int to int
        Number of rows by fault (a key of `FAULTS`).
    total : int or None
        Total number of rows, if known.
    place : str
        Location of the first one, as the end of the sentence.
    """
    of_total = "" if total is None else f" of {total:,}"
    counts = ", ".join(f"{rows:,} with {FAULTS[code]}" for code, rows in faults.items())
    return InputError(
        f"{sum(faults.values()):,}{of_total} rows cannot be used: {counts}{place}",
        remedy="correct them or leave them out",
    )


def _with_helpers(frame: nw.LazyFrame[Any], rows: _RowExpressions) -> nw.LazyFrame[Any]:
    return frame.with_columns(**rows.helpers) if rows.helpers else frame


def _fault(rows: _RowExpressions) -> Any:
    """Expression for the code of the first fault of a row; 0 if it has none."""
    code = nw.lit(0)
    for wrong, fault in reversed(rows.faults):
        code = nw.when(wrong).then(nw.lit(fault)).otherwise(code)
    return code.cast(nw.Int32)


def is_single(frame: nw.LazyFrame[Any], layout: ProfileColumns) -> bool:
    """Whether all scores are in single precision."""
    schema = frame.collect_schema()
    return all(schema[name] == nw.Float32 for name in layout.scores)


def keys_of_rows(layout: ProfileColumns, frame: nw.LazyFrame[Any]) -> dict[str, Any]:
    """Expressions for split, groups, true class and time of each row, as far as the layout has them."""
    keys: dict[str, Any] = {}
    if layout.split is not None:
        keys["split"] = nw.col(layout.split).cast(nw.String)
    for name in layout.groups:
        keys[f"{GROUP}{name}"] = nw.col(name).cast(nw.String)
    if layout.true_class:
        keys["true"] = _index(layout)[0].fill_null(-1).cast(nw.Int32)
    if layout.time is not None:
        time = nw.col(layout.time)
        if frame.collect_schema()[layout.time] == nw.String:
            date = nw.when(time != "").then(time.str.slice(0, 10))
            time = date.str.to_datetime(format="%Y-%m-%d")
        time = time.dt.truncate(UNITS[layout.every])
        keys["time"] = time.cast(nw.Datetime("us"))
    return keys


def _with_nearest_edge(table: nw.LazyFrame[Any], score: Any, intervals: int) -> nw.LazyFrame[Any]:
    """Add the column that `cell_of` needs; not by rounding, for which Spark uses decimal arithmetic."""
    return table.with_columns(**{_NEAREST: (score * intervals + 0.5).floor()})


def cell_of(score: Any, single: bool, intervals: int) -> Any:
    """Expression for the cell of a score: 2 i for a score on edge i, 2 i + 1 for a score between edges i and i + 1.

    Edges have cells of their own, so that bins closed on either side are sums of cells. Edges are rounded to the type of the
    scores, as in `calviz.core.events.equal_width_edges`. The nearest edge is a column (`_with_nearest_edge`).
    """
    nearest = nw.col(_NEAREST)
    edge = nearest / intervals
    if single:
        edge = edge.cast(nw.Float32).cast(nw.Float64)
    side = (score > edge).cast(nw.Int32) - (score < edge).cast(nw.Int32)
    return (nearest.cast(nw.Int32) * 2 + side).clip(0, 2 * intervals)


def _rows(layout: ProfileColumns, single: bool) -> _RowExpressions:
    if layout.confidence:
        rows = _confidences(layout)
    else:
        rows = _two_classes(layout, single) if layout.two_classes else _top_label(layout)
    if layout.count is not None:
        count = counts_of(layout)
        is_whole = (count >= 0) & (count <= LARGEST_COUNT) & (count == count.round(0))
        return _with_fault(rows, missing(count) | ~is_whole, is_whole, -7)
    if layout.weight is not None:
        weight = counts_of(layout)
        # Written such that infinity fails the comparison.
        is_number = (weight >= 0) & (weight < float("inf"))
        return _with_fault(rows, missing(weight) | ~is_number, is_number, -8)
    return rows


def _with_fault(rows: _RowExpressions, wrong: Any, usable: Any, code: int) -> _RowExpressions:
    return replace(rows, usable=rows.usable & usable, faults=(*rows.faults, (wrong, code)))


def counts_of(layout: ProfileColumns) -> Any:
    """Expression for the frequency or importance weight of each row."""
    return nw.col(layout.count or layout.weight or "").cast(nw.Float64)


def _confidences(layout: ProfileColumns) -> _RowExpressions:
    label, score = nw.col(layout.label), nw.col(layout.scores[0]).cast(nw.Float64)
    hit, known = _hit_and_known(layout)
    faults = ((label.is_null(), -1), (~known, -2), (missing(score), -3), (~inside(score), -4))
    return _RowExpressions(score, hit, None, None, known & inside(score), faults)


def _two_classes(layout: ProfileColumns, single: bool) -> _RowExpressions:
    """Rows by the score of the positive class; the other class has 1 minus the score, unless it has a column of its own."""
    label = nw.col(layout.label)
    hit, known = _hit_and_known(layout)
    positive = nw.col(layout.scores[-1]).cast(nw.Float64)
    faults = [(label.is_null(), -1), (~known, -2)]
    faults += [(missing(positive), -3), (~inside(positive), -4)]
    if len(layout.scores) == 1:
        # In single precision, round 1 - p as a column of it would be.
        other = nw.lit(1.0) - positive
        other = other.cast(nw.Float32).cast(nw.Float64) if single else other
        true = nw.when(hit).then(positive).otherwise(other)
        return _RowExpressions(positive, hit, true, None, known & inside(positive), tuple(faults))
    other = nw.col(layout.scores[0]).cast(nw.Float64)
    true = nw.when(hit).then(positive).otherwise(other)
    square = other * other + positive * positive + 1.0 - true * 2.0
    sums_to_one = (other + positive - 1).abs() <= ROW_SUM_TOLERANCE
    faults += [(missing(other), -3), (~inside(other), -4), (~sums_to_one, -5)]
    usable = known & inside(positive) & inside(other) & sums_to_one
    logs = [nw.col(name) for name in layout.logs]
    log = nw.when(hit).then(logs[1]).otherwise(logs[0]) if logs else None
    return _RowExpressions(positive, hit, true, square, usable, tuple(faults), log=log)


def _top_label(layout: ProfileColumns) -> _RowExpressions:
    """Rows by the score of the class with the largest probability; ties go to the first class."""
    label = nw.col(layout.label)
    columns = [nw.col(name) for name in layout.scores]
    wide = [c.cast(nw.Float64) for c in columns]
    index, known = _index(layout)
    helpers = {
        "top": nw.max_horizontal(*wide),
        "lowest": nw.min_horizontal(*wide),
        "total": tree(wide),
        "squares": tree([c * c for c in wide]),
        "index": index,
    }
    top, lowest, total, squares, index = (nw.col(f"{_PREFIX}{name}") for name in helpers)
    best = nw.min_horizontal(*(nw.when(c == top).then(nw.lit(k)) for k, c in enumerate(wide)))
    zero = nw.lit(0.0)

    def of_true(columns: Sequence[Any]) -> Any:
        return tree([nw.when(index == k).then(c).otherwise(zero) for k, c in enumerate(columns)])

    true = of_true(wide)
    in_range = inside(top) & inside(lowest)
    sums_to_one = (total - 1).abs() <= ROW_SUM_TOLERANCE
    wrong = (label.is_null(), ~known, missing(total), ~in_range, ~sums_to_one)
    return _RowExpressions(
        top,
        best == index,
        true,
        squares + 1.0 - true * 2.0,
        known & in_range & sums_to_one,
        tuple((fault, -code) for code, fault in enumerate(wrong, start=1)),
        {f"{_PREFIX}{name}": column for name, column in helpers.items()},
        of_true([nw.col(name) for name in layout.logs]) if layout.logs else None,
    )


def _index(layout: ProfileColumns) -> tuple[Any, Any]:
    """Expressions for the index of the true class, and for whether the label is one of the classes."""
    label = nw.col(layout.label)
    if all(isinstance(value, int) for value in layout.classes):
        base, last = layout.classes[0], layout.classes[-1]
        return label - base, (label >= base) & (label <= last)
    classes = enumerate(layout.classes)
    index = nw.min_horizontal(*(nw.when(label == v).then(nw.lit(k)) for k, v in classes))
    return index, ~nw.col(f"{_PREFIX}index").is_null()


# ---- Cells of each class


#: TACE leaves out probabilities up to this threshold; the cell that contains it is split there.
THRESHOLD = 1e-3
#: Number of classes summed in one pass over the rows.
AT_ONCE = 25


def class_cells_of(frame: nw.LazyFrame[Any], layout: ProfileColumns) -> pl.DataFrame:
    """Return the sums per class, split, group, time, cell and hit; all rows must be usable (see `calviz.data.any_size.sums.cells_of`).

    Each class is grouped separately, reading only its own column: for 1,000,000 x 100 this takes a third of the time of one grouping
    of the 100,000,000 probabilities.
    """
    import polars as pl

    tables = []
    classes = range(len(layout.classes))
    for first in classes[::AT_ONCE]:
        checkpoint()
        sums = [_sums_of_class(frame, layout, k) for k in classes[first : first + AT_ONCE]]
        if frame.implementation.is_polars():
            plans = [of_class.to_native() for of_class in sums]
            tables += pl.collect_all(plans, engine="streaming")
        else:
            tables.append(nw.concat(sums).collect("polars").to_native())
    types: Any = {"class": pl.Int32, "cell": pl.Int32, "n": pl.Int64}
    types |= dict.fromkeys((*CLASS_SUMS[1:], "low", "high"), pl.Float64)
    types |= {"time": pl.Datetime("us")} if layout.time is not None else {}
    table = pl.concat(tables, how="vertical_relaxed")
    table = table.with_columns(cell=pl.col("key") // 2, hit=pl.col("key") % 2 == 1)
    return table.drop("key").cast(types)


def _sums_of_class(frame: nw.LazyFrame[Any], layout: ProfileColumns, k: int) -> nw.LazyFrame[Any]:
    """Return the sums of one class, still lazy."""
    intervals = intervals_of(len(layout.classes))
    single = is_single(frame, layout)
    score = nw.col("score")
    keys = keys_of_rows(layout, frame)
    keys.pop("true", None)
    values = {
        "score": nw.col(layout.scores[k]).cast(nw.Float64),
        "hit": nw.col(layout.label) == layout.classes[k],
    }
    count = nw.col("count")
    if layout.count is not None:
        values["count"] = counts_of(layout).cast(nw.Int64)
    table = frame.select(**keys, **values)
    if layout.count is not None:
        table = table.filter(count > 0)
    table = _with_nearest_edge(table, score, intervals)
    threshold = float(np.float32(THRESHOLD)) if single else THRESHOLD
    cell = cell_of(score, single, intervals)
    # The cell that contains the threshold is split in two.
    split_cell = 2 * int(THRESHOLD * intervals) + 1
    above = (cell == split_cell) & (score > threshold)
    cell = nw.when(above).then(nw.lit(2 * intervals + 1)).otherwise(cell)
    # Some engines can sum only columns, not expressions.
    columns = {"added": score if layout.count is None else score * count}
    columns["key"] = (cell * 2 + nw.col("hit").cast(nw.Int32)).cast(nw.Int32)
    sums = {
        "n": nw.len() if layout.count is None else count.sum(),
        "score_sum": nw.col("added").sum(),
        "low": score.min(),
        "high": score.max(),
    }
    grouped = table.with_columns(**columns).group_by(*keys, "key").agg(**sums)
    return grouped.select(*keys, "key", *sums, nw.lit(k).cast(nw.Int32).alias("class"))


# ---- Logits


_LOGITS_PREFIX = "calviz:logits "
#: Upper limit of -log of a probability, as for data in memory, so that sums of squares stay finite for any logits.
LARGEST_LOSS = 1e100


def with_probabilities(frame: nw.LazyFrame[Any], layout: ProfileColumns) -> nw.LazyFrame[Any]:
    """Add the softmax of the logits in ``layout.scores`` and its logarithm in ``layout.logs`` to a frame, still lazy.

    Returns the same frame if there are no logits.

    A single column z is the logit of class 1 and means (0, z), as in files that are read whole. Non-finite logits give NaN scores.
    """
    if not layout.logits:
        return frame
    schema = frame.collect_schema()
    single = all(schema[name] == nw.Float32 for name in layout.logits)
    columns = [nw.col(name).cast(nw.Float64) for name in layout.logits]
    if len(columns) == 1:
        columns = [columns[0] * 0.0, *columns]
    names = [f"{_LOGITS_PREFIX}z {k}" for k in range(len(columns))]
    frame = frame.with_columns(**dict(zip(names, columns, strict=True)))
    z = [nw.col(name) for name in names]
    frame = frame.with_columns(**{f"{_LOGITS_PREFIX}top": nw.max_horizontal(*z)})
    # The term v - v is 0, or nan if v is infinite.
    shifted = [(v - nw.col(f"{_LOGITS_PREFIX}top")) + (v - v) for v in z]
    frame = frame.with_columns(**dict(zip(layout.logs, shifted, strict=True)))
    shifted = [nw.col(name) for name in layout.logs]
    frame = frame.with_columns(**dict(zip(names, [v.exp() for v in shifted], strict=True)))
    frame = frame.with_columns(**{f"{_LOGITS_PREFIX}sum": tree(z)})
    total = nw.col(f"{_LOGITS_PREFIX}sum")
    shares = [v / total for v in z]
    if single:
        shares = [share.cast(nw.Float32) for share in shares]
    logs = [(v - total.log()).clip(-LARGEST_LOSS) for v in shifted]
    probabilities = dict(zip(layout.scores, shares, strict=True))
    return frame.with_columns(**probabilities, **dict(zip(layout.logs, logs, strict=True)))
