"""Find the score columns by their values, if none is recognised by its name."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calviz.data.recognition import column_names, first_rows
from calviz.data.recognition.layout import ScoreColumns
from calviz.data.recognition.score_columns import block, class_names, columns_as_scores
from calviz.data.recognition.table_view import TableView
from calviz.data.table import Column

#: Number of columns examined together.
_BLOCK = 1_024


def fitting_block(view: TableView, taken: set[str]) -> tuple[ScoreColumns, ...]:
    """Find the only array of scores, columns named like the classes, columns whose rows sum to 1, or the only column in [0, 1]."""
    label = view.named(column_names.LABELS, taken)
    not_scores = taken | {label or ""}
    numeric, arrays = view.numeric(not_scores), view.arrays(not_scores)
    if len(arrays) == 1:
        return (block(view, arrays[0]),)
    if label is not None and view.table[label].type == "text":
        values = {str(v) for v in view.table[label].head.tolist()} - {""}
        class_columns = [c.name for c in numeric if c.name in values]
        if len(class_columns) >= 2:
            # Classes may be absent from the first rows: their columns are needed for sums of 1.
            summing = _summing(numeric)
            if summing is not None and set(class_columns) <= set(summing):
                return (columns_as_scores(view, summing, summing, "probabilities"),)
            return (
                columns_as_scores(
                    view, tuple(class_columns), tuple(class_columns), "probabilities"
                ),
            )
    summing = _summing(numeric)
    if summing is not None:
        named = view.table.named
        return (
            columns_as_scores(
                view, summing, class_names(summing) if named else _indices(summing), "probabilities"
            ),
        )
    # A confidence without a predicted class is not P(class 1).
    numeric = [c for c in numeric if column_names.plain(c.name) not in column_names.CONFIDENCES]
    if view.text_scores():
        return ()
    scores = [c for c in numeric if c.type == "number" and first_rows.in_unit(c.head)]
    if len(scores) == 2:
        # In an array of floats, the label is one of them.
        scores = [c for c in scores if not first_rows.is_label_like(c)] or scores
    rest = [c for c in view.table.columns if c not in scores and c.name not in taken]
    if len(scores) == 1 and (label is not None or any(first_rows.is_label_like(c) for c in rest)):
        return (columns_as_scores(view, (scores[0].name,), (), "probabilities"),)
    if len(scores) == 0:
        # Scores that are all 0 or 1 in the sample look like labels; they are told apart by the name of the label.
        two = [c for c in numeric if first_rows.in_unit(c.head)]
        if label is not None and len(two) == 1:
            return (columns_as_scores(view, (two[0].name,), (), "probabilities"),)
    return ()


def _summing(numeric: list[Column]) -> tuple[str, ...] | None:
    """Find the columns whose rows sum to 1: all columns in [0, 1], all but one, or consecutive ones."""
    unit = [c for c in numeric if first_rows.in_unit(c.head) and c.head.size]
    if len(unit) < 2 or len({c.head.size for c in unit}) > 1:  # arrays may differ in length
        return None
    # The usual case needs no copy of all first rows.
    total = np.zeros(unit[0].head.size)
    for column in unit:
        total += column.head
    if first_rows.is_one(total) and not all(map(first_rows.is_zero_one, unit)):
        return tuple(c.name for c in unit)
    heads = np.stack([c.head.astype(np.float64, copy=False) for c in unit], axis=1)
    if len(unit) > 2 and (j := _superfluous(heads)) is not None:
        return tuple(c.name for i, c in enumerate(unit) if i != j)
    sums = np.concatenate([np.zeros((heads.shape[0], 1)), np.cumsum(heads, axis=1)], axis=1)
    runs = [
        (stop - start, start, stop)
        for start in range(min(len(unit), 64))
        for stop in {*range(start + 2, min(start + 64, len(unit)) + 1), len(unit)}
        if stop - start >= 2 and first_rows.is_one(sums[:, stop] - sums[:, start])
    ]
    if not runs:
        return None
    _, start, stop = max(runs)
    return tuple(c.name for c in unit[start:stop])


def _superfluous(heads: npt.NDArray[np.float64]) -> int | None:
    """Index of the first column without which the rows of an (n, m) array sum to 1; None if there is none."""
    total = heads.sum(axis=1, keepdims=True)
    for start in range(0, heads.shape[1], _BLOCK):
        fits = first_rows.are_one(total - heads[:, start : start + _BLOCK])
        if fits.any():
            return start + int(fits.argmax())
    return None


def _indices(columns: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(str(j) for j in range(len(columns)))
