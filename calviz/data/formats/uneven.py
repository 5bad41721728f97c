"""Rows of JSON with different numbers of choices: the top one of each row, and whether it is right.

A list of scores per row, or an object of them, has a column per class only where all rows have the same classes. Questions with two
choices beside some with five have not; their top choices can still be judged together.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from calviz.core.finding import Finding
from calviz.core.predictions import ROW_SUM_TOLERANCE
from calviz.data.recognition import column_names

#: Names that the elements of a list give the class and its score, as the pipelines of Hugging Face write them.
_PAIRS = (("label", "score"), ("label", "probability"), ("class", "probability"))


def evened(table: Any) -> tuple[Any, list[Finding]]:
    """The table with what can be judged in common, and what to know about it.

    Parameters
    ----------
    table : pyarrow.Table
        As parsed.

    Returns
    -------
    pyarrow.Table
        The same if all rows have the same classes; else with the columns "confidence" and "correct" in place of scores and label.
    """
    import pyarrow as pa

    for name in table.column_names:
        table = _pairs_as_objects(table, name)
    plain = {column_names.plain(name): name for name in table.column_names}
    scores = next((plain[n] for n in _SCORES if n in plain), None)
    label = next((plain[n] for n in column_names.LABELS if n in plain), None)
    if scores is None or label is None or "confidence" in plain or "correct" in plain:
        return table, []
    kind = table.schema.field(scores).type
    if not (pa.types.is_struct(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return table, []
    if pa.types.is_nested(table.schema.field(label).type):
        return table, []
    if _even(table.column(scores)):
        return table, []
    logits = column_names.plain(scores) in column_names.LOGITS
    found = _tops(table.column(scores).to_pylist(), table.column(label).to_pylist(), logits)
    if found is None:
        return table, []
    confidence, correct, counts = found
    kept = [n for n in table.column_names if n not in (scores, label)]
    table = table.select(kept)
    table = table.append_column("confidence", pa.array(confidence))
    table = table.append_column("correct", pa.array(correct))
    text = (
        f"the rows of '{scores[:40]}' have {min(counts)} to {max(counts)} choices: the top choice of each row is judged; save rows of "
        "one number alone to judge the choices"
    )
    return table, [Finding("DATA012", "info", text)]


_SCORES = (*column_names.PROBABILITIES, *column_names.LOGITS)


def _pairs_as_objects(table: Any, name: str) -> Any:
    """``[{"label": "a", "score": 0.9}, ...]`` in each row as ``{"a": 0.9, ...}``."""
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
        None if row is None else {str(one[pair[0]]): one[pair[1]] for one in row if one is not None}
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
    """Whether all rows have the same classes, or a row is missing altogether."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count:
        return True
    if pa.types.is_struct(column.type):
        return all(
            pc.struct_field(column, [j]).null_count == 0 for j in range(column.type.num_fields)
        )
    return len(pc.unique(pc.list_value_length(column))) == 1


def _tops(
    rows: Sequence[Any], labels: Sequence[Any], logits: bool
) -> tuple[list[float], list[bool], list[int]] | None:
    """Confidence, whether it is right, and the number of choices of each row; None where a row is no distribution."""
    confidence: list[float] = []
    correct: list[bool] = []
    counts: list[int] = []
    for row, label in zip(rows, labels, strict=True):
        named = isinstance(row, Mapping)
        given = {k: v for k, v in row.items() if v is not None} if named else dict(enumerate(row))
        values = list(given.values())
        if len(values) < 2 or not all(_is_number(v) for v in values):
            return None
        # Of a class that no row's scores name nothing is known.
        if (str(label) if named else label) not in given:
            return None
        if logits:
            top = max(values)
            values = [math.exp(v - top) for v in values]
        total = sum(values)
        if min(values) < 0 or (not logits and abs(total - 1) > ROW_SUM_TOLERANCE):
            return None
        best = max(range(len(values)), key=values.__getitem__)
        confidence.append(values[best] / total if logits else min(1.0, values[best]))
        correct.append(list(given)[best] == (str(label) if named else label))
        counts.append(len(values))
    return confidence, correct, counts


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
