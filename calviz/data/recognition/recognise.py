"""Recognise the roles of columns: pure logic on names, types and the first rows.

The order of the steps: scores by name (`score_columns`), by value (`score_values`), then the
label (`label_columns`); the remaining columns are groups (`extra_columns`).
"""

from __future__ import annotations

from dataclasses import replace

from calviz.core.errors import InputError, OptionError
from calviz.data.loaded import ReadingForMap, ReadingOptions, known_columns, short
from calviz.data.recognition import (
    column_names,
    extra_columns,
    label_columns,
    score_columns,
    score_values,
)
from calviz.data.recognition.layout import ColumnRoles, Confidence, ScoreColumns
from calviz.data.recognition.table_view import TableView
from calviz.data.table import Table


def with_array_names(table: Table, options: ReadingOptions) -> ReadingOptions:
    """Return the options with the names of arrays: a group `site` may be stored as ``group_site``, and the other way round."""
    if not table.arrays:
        return options

    def stored(name: str) -> str:
        others = (f"group_{name}", name.removeprefix("group_"))
        return name if name in table else next((o for o in others if o in table), name)

    def renamed(name: str | None) -> str | None:
        return name and stored(name)

    return replace(
        options,
        groups=options.groups and tuple(stored(name) for name in options.groups),
        cluster_column=renamed(options.cluster_column),
        weight_column=renamed(options.weight_column),
        time_column=renamed(options.time_column),
    )


def recognise(table: Table, options: ReadingOptions) -> ColumnRoles:
    """Recognise the columns of a table; options take precedence over guesses.

    Raises
    ------
    InputError
        If there are no scores or no label, or if several columns could be the label.
    OptionError
        If an option names a column that does not exist.
    """
    _check_options(table, options)
    view = TableView(table, options)
    split, identifier = extra_columns.split(view), extra_columns.identifier(view)
    cluster, weight = options.cluster_column or None, options.weight_column or None
    roles: tuple[str | None, ...] = (
        split,
        identifier,
        options.label,
        weight,
        options.time_column,
        cluster,
    )
    taken = {c for c in roles if c is not None and c}
    if cluster == identifier:
        # A column that defines clusters does not identify single rows.
        identifier = None
    scores, confidence = _scores(view, taken)
    used = taken | _columns_of(scores, confidence)
    scores, one_hot, label = _label(view, scores, confidence, used)
    used |= _columns_of(scores) | {c for c in (label, *one_hot) if c}
    numbers = extra_columns.numbers(view, used | set(options.groups or ()))
    time = _time(view, used)
    if time is not None:
        used.add(time)
    groups, unused, kept = _remaining(view, used, numbers)
    return ColumnRoles(
        scores=scores,
        confidence=confidence,
        label=label,
        one_hot=one_hot,
        split=split,
        id=identifier,
        groups=groups,
        groups_chosen=options.groups is not None,
        numbers=numbers,
        unused=unused,
        kept=kept,
        cluster=cluster,
        weight=weight,
        time=time,
        notices=tuple(view.notices),
    )


def _scores(view: TableView, taken: set[str]) -> tuple[tuple[ScoreColumns, ...], Confidence | None]:
    """Return the scores of all models or, if there are none, the confidence; raises InputError without either."""
    scores = score_columns.by_name(view, taken)
    if scores:
        return scores, None
    confidence = score_columns.confidence(view, taken)
    if confidence is not None:
        return (), confidence
    scores = score_columns.one_column(view, taken) or score_values.fitting_block(view, taken)
    if not scores:
        raise _no_scores(view, taken)
    return scores, None


def _label(
    view: TableView,
    scores: tuple[ScoreColumns, ...],
    confidence: Confidence | None,
    used: set[str],
) -> tuple[tuple[ScoreColumns, ...], tuple[str, ...], str | None]:
    """Return the scores without one-hot labels among them, the columns of the one-hot labels, and the label column."""
    one_hot: tuple[str, ...] = ()
    if scores:
        scores, one_hot = label_columns.one_hot(view, scores, used)
        used = used | _columns_of(scores)
    label = view.options.label
    if label is None and scores and not one_hot:
        label = label_columns.label(view, scores, used)
    elif label is None and confidence is not None:
        label = view.named(column_names.LABELS, used)
    return scores, one_hot, label


def _time(view: TableView, used: set[str]) -> str | None:
    """Return the column with the times; for a map, only a requested one, as other columns are copied as they are."""
    if isinstance(view.options, ReadingForMap):
        return view.options.time_column or None
    return extra_columns.time(view, used)


def _remaining(
    view: TableView, used: set[str], numbers: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the groups, the columns that cannot be groups, and, for a map, the columns that are only copied."""
    options = view.options
    # The cluster column may also be sliced by, if it has few values.
    cluster_only = {options.cluster_column} if options.cluster_column else set[str]()
    groups, unused = extra_columns.groups(view, (used | set(numbers)) - cluster_only)
    if options.groups is not None:
        groups, unused = options.groups, ()
    if isinstance(options, ReadingForMap):
        return groups, (), extra_columns.others(view, {*used, *numbers, *groups})
    view.notices.extend(extra_columns.cluster_and_weight_hints(view, used | cluster_only))
    return groups, unused, ()


def _columns_of(scores: tuple[ScoreColumns, ...], confidence: Confidence | None = None) -> set[str]:
    columns = {c for s in scores for c in (*s.columns, *s.logits)}
    if confidence is not None:
        roles = (confidence.score, confidence.correct, confidence.predicted)
        columns |= {c for c in roles if c is not None}
    return columns


def _check_options(table: Table, options: ReadingOptions) -> None:
    wanted = [
        ("label", options.label),
        ("split column", options.split_column),
        ("identifier column", options.id_column),
        ("cluster column", options.cluster_column),
        ("weight column", options.weight_column),
        ("time column", options.time_column),
        *(("group", g) for g in options.groups or ()),
        *(("score column", s) for s in options.scores or () if not s.endswith("*")),
    ]
    for what, name in wanted:
        if name and name not in table:
            raise OptionError(
                f"the {what} '{short(name)}' is not in the {table.holder}; {known_columns(table.names)}."
            )
        # Unusable score columns are reported by `score_columns`.
        if name and what != "score column" and table[name].type == "other":
            raise InputError(f"cannot be the {what}: {table[name].note}", column=name)
    _check_meanings(options)


def _check_meanings(options: ReadingOptions) -> None:
    """Refuse a column that is given two roles, or whose name says that it is the label or the score."""
    of_rows = [
        ("cluster column", options.cluster_column),
        ("weight column", options.weight_column),
        ("time column", options.time_column),
    ]
    named = [("label", options.label), *(("score column", s) for s in options.scores or ())]
    for at, (what, name) in enumerate(of_rows):
        if not name:
            continue
        for other, its_name in (*named, *of_rows[:at]):
            if name == its_name:
                raise OptionError(
                    f"the column '{short(name)}' is named as the {other} and as the {what}; name another one for one of them."
                )
        plain = column_names.plain(name)
        for meaning, usual, chosen in (
            ("label", column_names.LABELS, options.label),
            ("score", column_names.PROBABILITIES, options.scores),
        ):
            if plain in usual and not chosen:
                raise OptionError(
                    f"'{short(name)}' looks like the {meaning}; give the {meaning} column, or choose another {what}."
                )


def _mixed_scores(view: TableView) -> list[str]:
    """Columns called like scores that hold text, but also numbers."""
    return [
        c.name
        for c in view.table.columns
        if c.type == "text"
        and column_names.is_score_name(c.name)
        and any(_is_number(str(v)) for v in c.head.tolist())
    ]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _no_scores(view: TableView, taken: set[str]) -> InputError:
    named = view.table.named
    word = "array" if view.table.arrays and named else "column"
    text = view.text_scores() or _mixed_scores(view)
    if text:
        column = view.table[text[0]]
        values = [str(v) for v in column.head.tolist()]
        odd = [row for row, value in enumerate(values) if value and not _is_number(value)]
        if 0 < len(odd) < len(values) / 2:
            return InputError(
                f"'{short(values[odd[0]])}' is not a number",
                row=odd[0] + 1,
                line=view.table.line(odd[0]),
                column=column.name,
                remedy="correct it",
            )
        return InputError(
            f"the {word} '{short(column.name)}' holds text, not numbers",
            remedy="check the decimal sign and the separator",
        )
    confidence = view.named(column_names.CONFIDENCES, taken)
    if confidence is not None:
        return InputError(
            "there is a confidence, but nothing says whether the prediction was right",
            column=confidence,
            remedy="add a column 'correct', or the columns 'true_label' and 'pred_label'",
        )
    names = view.table.names
    listed = ", ".join(map(short, names[:10]))
    present = f" (there {'is' if len(names) == 1 else 'are'}: {listed})" if names else ""
    if not named:
        return InputError(
            f"there are no columns that add up to 1 in every row, as probabilities do{present}",
            remedy="say which columns hold the scores, and whether they are logits",
        )
    return InputError(
        f"there are no probability {word}s{present}",
        remedy=(
            "name the array 'probs' or 'logits', or say which one holds the scores"
            if view.table.arrays
            else "name them p_<class>, or say which columns hold the scores"
        ),
    )
