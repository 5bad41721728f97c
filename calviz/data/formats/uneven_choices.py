"""JSON rows with different numbers of choices.

Lists or objects of scores form one column per class only if all rows have the same classes. A mix of questions with two and with five
choices does not; `data/multiple_choice.py` turns these into rows that can be evaluated.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from calviz.core.probabilities import ROW_SUM_TOLERANCE
from calviz.data.questions import Questions
from calviz.data.recognition import column_names

#: Pairs of keys for class and score in list elements, as written by Hugging Face pipelines.
_PAIRS = (("label", "score"), ("label", "probability"), ("class", "probability"))


def paired(table: Any) -> Any:
    """Replace all columns of lists ``[{"label": "a", "score": 0.9}, ...]`` by objects ``{"a": 0.9, ...}``."""
    for name in table.column_names:
        table = _pairs_as_objects(table, name)
    return table


def questions_of(table: Any) -> Questions | None:
    """Return rows with different classes as questions; None if all rows have the same classes, or some row has no distribution.

    Parameters
    ----------
    table : pyarrow.Table
        The result of `paired`.
    """
    import pyarrow as pa

    plain = {column_names.plain(name): name for name in table.column_names}
    scores = next((plain[n] for n in _SCORES if n in plain), None)
    label = next((plain[n] for n in column_names.LABELS if n in plain), None)
    if scores is None or label is None or "confidence" in plain or "correct" in plain:
        return None
    kind = table.schema.field(scores).type
    if not (pa.types.is_struct(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return None
    if pa.types.is_nested(table.schema.field(label).type):
        return None
    if _even(table.column(scores)):
        return None
    logits = column_names.plain(scores) in column_names.LOGITS
    rows = _choices(table.column(scores).to_pylist(), table.column(label).to_pylist(), logits)
    if rows is None:
        return None
    return Questions(
        scores={scores: np.array([value for values, _, _ in rows for value in values])},
        kind="logits" if logits else "probabilities",
        starts=np.concatenate([[0], np.cumsum([len(values) for values, _, _ in rows])]),
        right=np.array([right for _, right, _ in rows]),
        others=table.select([n for n in table.column_names if n not in (scores, label)]),
        texts=[texts for _, _, texts in rows],
    )


_SCORES = (*column_names.PROBABILITIES, *column_names.LOGITS)


def _pairs_as_objects(table: Any, name: str) -> Any:
    """Replace one column of ``[{"label": "a", "score": 0.9}, ...]`` by objects ``{"a": 0.9, ...}``."""
    import pyarrow as pa

    kind = table.schema.field(name).type
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return table
    if not pa.types.is_struct(kind.value_type):
        return table
    fields = {kind.value_type.field(j).name for j in range(kind.value_type.num_fields)}
    pair = next((p for p in _PAIRS if set(p) == fields), None)
    if pair is None:
        return table
    rows = [
        None
        if row is None
        else {str(element[pair[0]]): element[pair[1]] for element in row if element is not None}
        for row in table.column(name).to_pylist()
    ]
    if any(row is not None and len(row) == 0 for row in rows):
        return table
    try:
        column = pa.array(rows)
    except pa.ArrowException:
        return table
    return table.set_column(table.column_names.index(name), name, column)


def _even(column: Any) -> bool:
    """Whether all rows have the same classes, or some row is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count:
        return True
    if pa.types.is_struct(column.type):
        return all(
            pc.struct_field(column, [j]).null_count == 0 for j in range(column.type.num_fields)
        )
    return len(pc.unique(pc.list_value_length(column))) == 1


def _choices(
    rows: Sequence[Any], labels: Sequence[Any], logits: bool
) -> list[tuple[list[float], int, tuple[str, ...]]] | None:
    """Return scores, index of the right one, and names (if any) of each row; None if a row is not a distribution."""
    choices: list[tuple[list[float], int, tuple[str, ...]]] = []
    for row, label in zip(rows, labels, strict=True):
        has_names = isinstance(row, Mapping)
        scores: dict[Any, float] = (
            {k: v for k, v in row.items() if v is not None} if has_names else dict(enumerate(row))
        )
        values = list(scores.values())
        if len(values) < 2 or not all(_is_number(v) for v in values):
            return None
        # The true class must be among the classes of the row.
        if (str(label) if has_names else label) not in scores:
            return None
        if not logits and (min(values) < 0 or abs(sum(values) - 1) > ROW_SUM_TOLERANCE):
            return None
        right = list(scores).index(str(label) if has_names else label)
        choices.append((values, right, tuple(scores) if has_names else ()))
    return choices


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
