"""Tables of rows, to show and to download."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from calviz.core.arrays import IntArray
from calviz.core.predictions import Dataset, Predictions
from calviz.core.reduction import Reduction
from calviz.sample.reduce import predicted_classes, reduce
from calviz.text.words import decimal, distinct

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

#: Largest number of score columns in a preview; more would be unreadable.
PREVIEW_CLASSES = 12


def sortable(texts: pd.DataFrame, numbers: Mapping[str, Sequence[float]]) -> Any:
    """Return a table that shows the texts, with the columns in `numbers` sorted as numbers."""
    columns = list(numbers)
    values = texts.copy()
    formats_by_column: dict[Hashable, Callable[[float], str]] = {}
    # Formats depend on the value: rows with equal values but different texts (other units, for example) are formatted one by one.
    different: set[int] = set()
    for name in columns:
        column = np.asarray(numbers[name], dtype=np.float64)
        values[name] = column
        text_of_value: dict[float | None, str] = {}
        for at, (value, text) in enumerate(zip(column.tolist(), texts[name], strict=True)):
            if text_of_value.setdefault(_none_if_nan(value), text) != text:
                different.add(at)
        formats_by_column[name] = partial(_text_of, text_of_value)
    styled = values.style.format(formats_by_column, subset=columns)  # type: ignore[arg-type]
    for at in sorted(different):
        # Functions and not format strings: a text may hold braces.
        formats: dict[Any, Any] = {name: _always(str(texts[name].iat[at])) for name in columns}
        styled = styled.format(formats, subset=pd.IndexSlice[[at], columns])
    return styled


def _none_if_nan(value: float) -> float | None:
    """Return the value, or None for NaN: NaNs are not equal to each other."""
    return None if value != value else value


def _text_of(words: Mapping[float | None, str], value: float) -> str:
    return words[_none_if_nan(value)]


def _always(text: str) -> Callable[[object], str]:
    return lambda _: text


def ticked(rows: Sequence[int]) -> Any:
    """Return the default selection of a table in which these rows are ticked, by their position."""
    return {"selection": {"rows": list(rows)}} if rows else None


def rows_table(
    data: Dataset, rows: IntArray, reduction: Reduction, numbers: IntArray | None
) -> pd.DataFrame:
    """Return a table of some rows with score and hit.

    Parameters
    ----------
    data : Predictions or ConfidencePredictions
    rows : ndarray of int
        Which rows of `data`, 0-based.
    reduction : Reduction
        Defines score and hit.
    numbers : ndarray of int, optional
        For each row of `data` its row number in the file, 0-based.
    """
    part = data.take(rows)
    events = reduce(part, reduction)
    columns = _facts(part)
    original = rows if numbers is None else numbers[rows]
    front: dict[str, object] = {"row": np.asarray(original) + 1}
    if "id" in columns:
        front["id"] = columns.pop("id")
    if "label" in columns:
        front["label"] = columns.pop("label")
    predicted = predicted_classes(part) if isinstance(part, Predictions) else part.predicted
    if predicted is not None and part.class_names:
        front["predicted"] = np.asarray(part.class_names, dtype=object)[predicted]
    front["score"] = events.score
    front["hit"] = np.where(events.hit, "yes", "no")
    for name in list(front):
        # A group may be called "score": the file's column is then renamed to "score (file)".
        if name in columns:
            columns[f"{name} (file)"] = columns.pop(name)
    return pd.DataFrame({**front, **columns})


def preview(data: Dataset, n: int = 50) -> pd.DataFrame:
    """Return the first rows as they were understood."""
    part = data.take(np.arange(min(n, data.n)))
    columns: dict[str, object] = {"row": np.arange(1, part.n + 1)}
    facts = _facts(part)
    columns |= {name: facts.pop(name) for name in ("id", "label") if name in facts}
    if isinstance(part, Predictions):
        shown = distinct(part.class_names[:PREVIEW_CLASSES], 24)
        for j, short in enumerate(shown.values()):
            columns[f"P({short})"] = part.probs[:, j]
    else:
        columns["confidence"] = part.confidence
        columns["correct"] = np.where(part.correct, "yes", "no")
        if part.predicted is not None and part.class_names:
            columns["predicted"] = np.asarray(part.class_names, dtype=object)[part.predicted]
    for name, column in facts.items():
        columns[name if name not in columns else f"{name} (file)"] = column
    return pd.DataFrame(columns)


def class_counts(data: Dataset) -> pd.DataFrame | None:
    """Count rows per true class; None if the data have no labels or class names."""
    if data.labels is None or not data.class_names:
        return None
    counts = np.bincount(data.labels, minlength=data.n_classes)
    return pd.DataFrame(
        {"class": list(data.class_names), "rows": counts, "share": 100 * counts / data.n}
    )


def level_counts(counts: dict[str, int], name: str) -> pd.DataFrame:
    """Make a table of rows and shares per level of a column."""
    rows = np.fromiter(counts.values(), dtype=np.int64, count=len(counts))
    return pd.DataFrame(
        {name: list(counts), "rows": rows, "share": 100 * rows / max(1, int(rows.sum()))}
    )


def with_signs(frame: pd.DataFrame, signed: Mapping[str, int]) -> Styler:
    """Return a table whose signed columns have typographic plus and minus signs, and sort as numbers.

    Parameters
    ----------
    frame : DataFrame
    signed : mapping of str to int
        Columns, with their number of decimals.
    """

    def write(value: float, decimals: int) -> str:
        text = decimal(value, decimals)
        return f"+{text}" if value > 0 and float(text.replace(",", "")) != 0 else text

    forms: dict[Hashable, Callable[[float], str]] = {
        name: partial(write, decimals=decimals) for name, decimals in signed.items()
    }
    return frame.style.format(forms, na_rep="–")  # type: ignore[arg-type]


def _facts(part: Dataset) -> dict[str, object]:
    columns: dict[str, object] = {}
    if part.ids is not None:
        columns["id"] = part.ids
    if part.labels is not None and part.class_names:
        columns["label"] = np.asarray(part.class_names, dtype=object)[part.labels]
    if part.splits is not None:
        columns["split"] = part.splits.values()
    if part.times is not None:
        days = part.times.astype("datetime64[D]")
        columns["time"] = np.datetime_as_string(
            part.times, "D" if (days == part.times).all() else "s"
        )
    if part.clusters is not None:
        columns["cluster"] = part.clusters.values()
    if part.weights is not None:
        columns["weight"] = part.weights
    for name, column in part.groups.items():
        columns[name if name not in columns else f"{name} (group)"] = column.values()
    columns |= {name: column for name, column in part.numbers.items() if name not in columns}
    columns |= {name: text.values() for name, text in part.texts.items() if name not in columns}
    return columns
