"""Recognise columns from the schema and the first rows, in the same way as for files that are read whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np

from calviz.core.errors import InputError, OptionError, shortened
from calviz.core.factor import Factor
from calviz.data.building import diagnose, labels
from calviz.data.formats.arrow.memory import ArrowRows, columns_of
from calviz.data.loaded import ReadingForMap, ReadingOptions, known_columns
from calviz.data.recognition import layout as files
from calviz.data.recognition.recognise import recognise
from calviz.data.table import SAMPLE_ROWS
from calviz.profiles.layout import ProfileColumns, TimeUnit
from calviz.profiles.logits import probability_columns

if TYPE_CHECKING:
    import narwhals as nw


def profile_layout(
    frame: nw.LazyFrame[Any],
    options: ReadingOptions,
    *,
    by: Sequence[str] = (),
    time: str | None = None,
    every: TimeUnit = "day",
    true_class: bool = False,
    each_class: bool = False,
    model: str | None = None,
    summed: bool = False,
) -> ProfileColumns:
    """Return the columns from which a profile or a row sample is made.

    With `summed`, importance weights are refused.

    Raises
    ------
    InputError, OptionError
        If the columns cannot be recognised, or their form is not supported.
    """
    head = frame.head(SAMPLE_ROWS).collect("pyarrow").to_native()
    names = frame.collect_schema().names()
    for name in (*by, *([time] if time else [])):
        if name not in names:
            raise OptionError(f"there is no column '{shortened(name)}'; {known_columns(names)}.")
    if time:
        _check_dates(head.column(time).to_pylist(), time)
    table = ArrowRows(format="table", columns=columns_of(head, "the table has"), data=head)
    with np.errstate(all="ignore"):
        roles = recognise(table, options)
    common: dict[str, Any] = {
        "split": roles.split,
        "groups": tuple(by),
        "time": time,
        "every": every,
    }
    if roles.cluster is not None:
        raise InputError(
            "profiles and row samples do not support clusters, because they take rows one by one",
            remedy="leave the column of clusters out, or judge a file that fits into memory",
        )
    if roles.weight is not None:
        common |= _weight(table, roles.weight, options, summed)
    if roles.confidence is not None:
        if true_class:
            raise InputError(
                "confidences do not name the true classes",
                remedy="leave out the true classes (--true-class, true_class=)",
            )
        if each_class:
            raise InputError(
                "confidences do not hold the probabilities of all classes",
                remedy="leave out the cells of each class (--each-class, each_class=)",
            )
        return _of_confidence(table, roles.confidence, options, common)
    layout = _of_scores(table, roles, options, model, common)
    # With two classes, the hit is the true class.
    several_classes = not layout.two_classes
    return replace(
        layout, true_class=true_class and several_classes, each_class=each_class and several_classes
    )


def _check_dates(values: Sequence[Any], column: str) -> None:
    """Raise InputError if the first values of a column are no dates, or texts that do not begin with YYYY-MM-DD."""
    for row, value in enumerate(values, start=1):
        if isinstance(value, str):
            try:
                date.fromisoformat(value[:10] or "2000-01-01")
            except ValueError:
                raise InputError(
                    f"'{shortened(value)}' cannot be read as a date",
                    row=row,
                    column=column,
                    remedy="write all as YYYY-MM-DD or YYYY-MM-DD HH:MM:SS",
                ) from None
        elif value is not None and not isinstance(value, date):  # also a datetime
            raise InputError("it holds no dates", column=column, remedy="name a column of dates")


def _weight(table: ArrowRows, name: str, options: ReadingOptions, summed: bool) -> dict[str, str]:
    are_counts = options.weight_kind == "frequency"
    if summed and not are_counts:
        raise InputError(
            "a profile has no importance weights, because their intervals need single rows",
            column=name,
            remedy="say so if they are counts (--weight-kind frequency, weight_kind='frequency'), or judge a sample of the rows, which keeps them (calviz.sample_rows)",
        )
    if not table[name].numeric:
        what = "counts" if are_counts else "weights"
        raise InputError(
            f"the column of {what} holds no numbers", column=name, remedy="name another one"
        )
    return {"count" if are_counts else "weight": name}


def _of_confidence(
    table: ArrowRows, columns: files.Confidence, options: ReadingOptions, common: dict[str, Any]
) -> ProfileColumns:
    if isinstance(options, ReadingForMap) and not columns.log:
        return ProfileColumns(
            label="", scores=(columns.score,), classes=(0, 1), confidence=True, **common
        )
    if columns.correct is None or columns.log:
        raise InputError(
            "a profile of confidences needs a column that says whether each prediction was right",
            remedy="add one with 0 and 1",
        )
    classes = (False, True) if table[columns.correct].type == "boolean" else (0, 1)
    return ProfileColumns(
        label=columns.correct, scores=(columns.score,), classes=classes, confidence=True, **common
    )


def _of_scores(
    table: ArrowRows,
    roles: files.ColumnRoles,
    options: ReadingOptions,
    model: str | None,
    common: dict[str, Any],
) -> ProfileColumns:
    scores = _model(roles.scores, model)
    if scores.width > 1 and len(scores.columns) == 1:
        raise InputError(
            "a profile is made of one column per class, and this is a column of lists",
            column=scores.columns[0],
        )
    k = max(2, scores.width)
    label = roles.label or ""
    if isinstance(options, ReadingForMap):
        classes, names = _classes_if_any(table, label, scores, k, options)
    elif not label:
        raise InputError("a profile needs one column with the true class")
    else:
        classes, names = _classes(table, label, scores, k, options)
    columns = scores.columns
    if scores.kind == "logits":
        head = table.fetch([columns], []).scores[0]
        diagnose.Problem(table, scores, head, lambda row: row).check_logits()
        common, columns = common | {"logits": columns}, probability_columns(k)
    return ProfileColumns(label=label, scores=columns, classes=classes, class_names=names, **common)


def _model(scores: Sequence[files.ScoreColumns], model: str | None) -> files.ScoreColumns:
    by_model = {s.model: s for s in scores}
    if model is None and len(scores) == 1:
        return scores[0]
    if model in by_model:
        return by_model[model]
    if list(by_model) == [""]:
        raise OptionError(
            f"there is no model '{shortened(str(model))}': there is one, without a name; leave out the model (--model, model=)."
        )
    wrong = f"there is no model '{shortened(model)}'" if model else "there are several models"
    raise OptionError(f"{wrong}; choose one of: {', '.join(by_model)}.")


def _classes_if_any(
    table: ArrowRows, label: str, scores: files.ScoreColumns, k: int, options: ReadingForMap
) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """Return the same as `_classes`, also if there are no labels or they cannot be read."""
    named = options.class_names or scores.class_names
    if label:
        try:
            classes, names = _classes(table, label, scores, k, options)
            if not options.labels_rename(named, names):
                return classes, names
        except InputError:
            pass
    return tuple(range(k)), options.names_of_classes(named, k)


def _classes(
    table: ArrowRows, label: str, scores: files.ScoreColumns, k: int, options: ReadingOptions
) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """Return the value in the label column for each class, and the class names."""
    classes, names = _labelled_classes(table, label, scores, k, options)
    if scores.holds_first_of(names):
        return classes[::-1], names[::-1]
    return classes, names


def _labelled_classes(
    table: ArrowRows, label: str, scores: files.ScoreColumns, k: int, options: ReadingOptions
) -> tuple[tuple[Any, ...], tuple[str, ...]]:
    """Return the same in the order of the labels."""
    column = table[label]
    names = options.class_names or scores.class_names
    base = options.label_base
    if column.type == "boolean" and k == 2:
        return (False, True), names if len(names) == k else ("0", "1")
    values = table.fetch((), [label]).columns[label]
    if len(names) != k:
        # A single score column does not name both classes.
        names = labels.names_of_one(names[0], values) if len(names) == 1 else ()
        base = None if names else base
    decoded = labels.decode(
        values,
        k,
        class_names=tuple(names),
        columns=scores.columns,
        base=base,
        name=label,
        line=lambda _: None,
    )
    if decoded.form == "-1 and +1":
        return (-1, 1), decoded.class_names
    if column.numeric and decoded.form.startswith("class index"):
        base = options.label_base or 0
        return tuple(range(base, base + k)), decoded.class_names
    # Each class as written in the label column, or its name if it does not occur in the first rows.
    levels = Factor.of(values).levels
    codes = decoded.indices[np.unique(Factor.of(values).codes, return_index=True)[1]]
    written = {int(c): level for c, level in zip(codes, levels, strict=True) if c >= 0}
    texts = [written.get(j, decoded.class_names[j]) for j in range(k)]
    return (tuple(float(t) for t in texts) if column.numeric else tuple(texts)), decoded.class_names
