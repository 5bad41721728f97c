"""Rows to cells: one narwhals expression, which the engine of the frame carries out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import TYPE_CHECKING, Any

import numpy as np

from calviz.core.cells import FINE_CELLS
from calviz.core.predictions import ROW_SUM_TOLERANCE
from calviz.profile.layout import Every, Layout

if TYPE_CHECKING:
    import narwhals as nw

#: What a 0 counts as in the log loss, as in `calviz.sample.losses`.
_EPSILON, _TINY = float(np.finfo(np.float64).eps), float(np.finfo(np.float64).tiny)
#: Scores this far outside [0, 1] are rounding.
_SLACK = 1e-6
#: Names of what is made of the rows; no column of a file is called so.
_OWN = "calviz:"

#: Why rows cannot be used, by the number that stands in place of their cell.
FAULTS = {
    -1: "no label",
    -2: "a label that is none of the classes",
    -3: "a missing score",
    -4: "a score outside [0, 1]",
    -5: f"scores that do not sum to 1 (within {ROW_SUM_TOLERANCE})",
    -6: "no time",
}

_TRUNCATED: dict[Every, str] = {
    "hour": "1h",
    "day": "1d",
    "week": "1w",
    "month": "1mo",
    "quarter": "1q",
    "year": "1y",
}

#: Columns that are summed, and of which the smallest and the largest count.
SUMS = ("n", "score_sum", "square_sum", "log_loss", "clipped", "squared_error")
KEYS = ("split", "time", "cell", "hit")
#: How the columns of groups begin.
GROUP = "group:"


def cells_of(frame: nw.LazyFrame[Any], layout: Layout) -> Any:
    """The cells of a lazy frame, still lazy: a row for each split, group, time, cell and hit that occurs.

    Columns are those of `Profile.cells`. Rows that cannot be used are in cells below 0 (`FAULTS`).

    Parameters
    ----------
    frame : narwhals.LazyFrame
    layout : Layout

    Notes
    -----
    A cell is one of `FINE_CELLS` intervals of equal width, or one of the edges between them: scores that were rounded to few
    digits have a cell each, and nothing is lost then.
    """
    import narwhals as nw

    single = is_single(frame, layout)
    score, hit, loss, square, fault = _two(layout, single) if layout.two_classes else _top(layout)
    rows = frame.select(
        **_keys(layout, frame),
        **{
            f"{_OWN}score": score.cast(nw.Float64),
            f"{_OWN}hit": hit,
            f"{_OWN}true": loss.cast(nw.Float64),
            f"{_OWN}square": square.cast(nw.Float64),
            f"{_OWN}fault": fault,
        },
    )
    score, hit, true, square, fault = (
        nw.col(f"{_OWN}{name}") for name in ("score", "hit", "true", "square", "fault")
    )
    zero = true < _TINY
    keys = [name for name in rows.collect_schema().names() if not name.startswith(_OWN)]
    rows = rows.with_columns(
        cell=nw.when(fault < 0).then(fault).otherwise(_cell(score, single)),
        hit=nw.when(fault < 0).then(nw.lit(False)).otherwise(hit),
        **{f"{_OWN}nats": -(nw.when(zero).then(nw.lit(_EPSILON)).otherwise(true).log())},
        **{f"{_OWN}zero": zero.cast(nw.Int64)},
        **{f"{_OWN}two": score * score},
    )
    return rows.group_by(*keys, "cell", "hit").agg(
        n=nw.len(),
        score_sum=score.sum(),
        square_sum=nw.col(f"{_OWN}two").sum(),
        low=score.min(),
        high=score.max(),
        log_loss=nw.col(f"{_OWN}nats").sum(),
        clipped=nw.col(f"{_OWN}zero").sum(),
        squared_error=square.sum(),
    )


def is_single(frame: nw.LazyFrame[Any], layout: Layout) -> bool:
    """Whether the scores are in single precision."""
    import narwhals as nw

    schema = frame.collect_schema()
    return all(schema[name] == nw.Float32 for name in layout.scores)


def _keys(layout: Layout, frame: nw.LazyFrame[Any]) -> dict[str, Any]:
    import narwhals as nw

    keys: dict[str, Any] = {}
    if layout.split is not None:
        keys["split"] = nw.col(layout.split).cast(nw.String)
    for name in layout.groups:
        keys[f"{GROUP}{name}"] = nw.col(name).cast(nw.String)
    if layout.time is not None:
        at = nw.col(layout.time)
        if frame.collect_schema()[layout.time] == nw.String:
            at = at.str.slice(0, 10).str.to_datetime(format="%Y-%m-%d")
        at = at.dt.truncate(_TRUNCATED[layout.every])
        keys["time"] = at.cast(nw.Datetime("us"))
    return keys


def _cell(score: Any, single: bool) -> Any:
    """Twice the number of the edge that a score lies on, or the odd number between two edges.

    Edges are apart from what is between them, so that bins that are closed on either side are sums of cells. An edge is the
    nearest number of the scores' type, as in `calviz.numerics.edges.equal_width_edges`.
    """
    import narwhals as nw

    nearest = (score * FINE_CELLS).round(0)
    edge = nearest / FINE_CELLS
    if single:
        edge = edge.cast(nw.Float32).cast(nw.Float64)
    side = (score > edge).cast(nw.Int32) - (score < edge).cast(nw.Int32)
    return (nearest.cast(nw.Int32) * 2 + side).clip(0, 2 * FINE_CELLS)


def _missing(score: Any) -> Any:
    return score.is_null() | score.is_nan()


def _faults(*found: tuple[Any, int]) -> Any:
    """The number of the first fault that a row has; 0 if it has none."""
    import narwhals as nw

    code = nw.lit(0)
    for wrong, number in reversed(found):
        code = nw.when(wrong).then(nw.lit(number)).otherwise(code)
    return code.cast(nw.Int32)


def _two(layout: Layout, single: bool) -> tuple[Any, Any, Any, Any, Any]:
    """Score and hit of the positive class, the true class's probability, squared distance, fault."""
    import narwhals as nw

    label = nw.col(layout.label)
    hit, miss = label == layout.classes[1], label == layout.classes[0]
    positive = nw.col(layout.scores[-1])
    if not single:
        positive = positive.cast(nw.Float64)
    other = nw.lit(1.0) - positive
    if single:
        # Rounded as a column of it would be.
        other = other.cast(nw.Float32)
    if len(layout.scores) == 2:
        other = nw.col(layout.scores[0])
    one, two = other.cast(nw.Float64), positive.cast(nw.Float64)
    true = nw.when(hit).then(two).otherwise(one)
    square = one * one + two * two + 1.0 - true * 2.0
    wrong = [
        (label.is_null(), -1),
        (~(hit | miss), -2),
        (_missing(two), -3),
        ((two < -_SLACK) | (two > 1 + _SLACK), -4),
    ]
    if len(layout.scores) == 2:
        wrong += [(_missing(one), -3), ((one + two - 1).abs() > ROW_SUM_TOLERANCE, -5)]
    return two, hit, true, square, _faults(*wrong)


def _top(layout: Layout) -> tuple[Any, Any, Any, Any, Any]:
    """The same of the class with the largest probability; ties go to the first."""
    import narwhals as nw

    label = nw.col(layout.label)
    if layout.confidence:
        score = nw.col(layout.scores[0]).cast(nw.Float64)
        hit, miss = label == layout.classes[1], label == layout.classes[0]
        unknown = nw.lit(None).cast(nw.Float64)
        wrong = (
            (label.is_null(), -1),
            (~(hit | miss), -2),
            (_missing(score), -3),
            ((score < -_SLACK) | (score > 1 + _SLACK), -4),
        )
        return score, hit, unknown, unknown, _faults(*wrong)
    columns = [nw.col(name) for name in layout.scores]
    top = nw.max_horizontal(*columns)
    best = nw.min_horizontal(*(nw.when(c == top).then(nw.lit(k)) for k, c in enumerate(columns)))
    is_class = [label == value for value in layout.classes]
    index = nw.min_horizontal(*(nw.when(i).then(nw.lit(k)) for k, i in enumerate(is_class)))
    wide = [c.cast(nw.Float64) for c in columns]
    true = nw.sum_horizontal(
        *(nw.when(i).then(c).otherwise(nw.lit(0.0)) for i, c in zip(is_class, wide, strict=True))
    )
    total = _tree(wide)
    square = _tree([c * c for c in wide]) + 1.0 - true * 2.0
    lowest = nw.min_horizontal(*columns)
    wrong = (
        (label.is_null(), -1),
        (index.is_null(), -2),
        (_missing(total), -3),
        ((lowest < -_SLACK) | (top > 1 + _SLACK), -4),
        ((total - 1).abs() > ROW_SUM_TOLERANCE, -5),
    )
    return top.cast(nw.Float64), best == index, true, square, _faults(*wrong)


def _tree(terms: Sequence[Any]) -> Any:
    """A sum in which a missing term is not lost, and that is not as deep as it has terms."""
    while len(terms) > 2:
        terms = [reduce(add, terms[i : i + 2]) for i in range(0, len(terms), 2)]
    return reduce(add, terms)
