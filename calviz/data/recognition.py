"""The role of every column: rules find scores and label; values, and the agreement of columns, confirm them or raise a question."""

from __future__ import annotations

from dataclasses import replace

from calviz.core.errors import InputError, OptionError
from calviz.data import column_names
from calviz.data.class_order import with_event_last, with_labels
from calviz.data.column_names import plain
from calviz.data.format import Table
from calviz.data.label_columns import (
    ask_if_predicted,
    event_column,
    label_column,
    named_by_an_unnamed_label,
    named_label,
    note_agreement,
    with_labels_of_their_own,
    with_one_hot,
)
from calviz.data.loaded import Notice, ReadingForMap, ReadingOptions, known_columns, short
from calviz.data.other_columns import (
    cluster_and_weight_hints,
    group_columns,
    identifier_column,
    number_columns,
    others,
    split_column,
    time_column,
)
from calviz.data.roles import ColumnRoles, Found, TableView
from calviz.data.score_columns import find_scores
from calviz.data.single_scores import of_named_class, single_score


def recognise(table: Table, options: ReadingOptions) -> ColumnRoles:
    """Recognise the columns of a table; options take precedence over guesses.

    Raises
    ------
    InputError
        If there are no scores or no label, or if the columns can be read in several ways; its `readings` choose one.
    OptionError
        If an option names a column that does not exist.
    """
    _check_options(table, options)
    view = TableView(table, options)
    split, identifier = split_column(view), identifier_column(view)
    cluster, weight = options.cluster_column or None, options.weight_column or None
    roles = (split, identifier, options.label, weight, options.time_column, cluster)
    taken = {c for c in roles if c}
    if cluster == identifier:
        # A column that defines clusters does not identify single rows.
        identifier = None
    found = _scores_and_label(view, taken)
    used = taken | found.used
    numbers = number_columns(view, used | set(options.groups or ()))
    time = _time(view, used)
    if time is not None:
        used.add(time)
    groups, unused, kept = _remaining(view, used, numbers)
    return ColumnRoles(
        scores=found.scores,
        confidence=found.confidence,
        label=found.label,
        one_hot=found.one_hot,
        multilabel=found.multilabel,
        correct=found.correct,
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


# ---- Scores and label


def _scores_and_label(view: TableView, taken: set[str]) -> Found:
    named = named_label(view, taken)
    event = event_column(view, taken) if named is None else None
    if view.options.kind == "confidence":
        return single_score(view, taken, named or event)
    scores = find_scores(view, taken, named or event)
    found = Found(scores, label=named)
    if event is not None and scores and scores[0].width <= 2:
        found.label = event
    chosen = view.options.scores or view.options.models
    if named is None and not chosen and not isinstance(view.options, ReadingForMap):
        found = named_by_an_unnamed_label(view, taken) or found
    if not found.scores:
        own = with_labels_of_their_own(view, taken) if named is None else None
        found = own or single_score(view, taken, named or event)
    if found.confidence is not None:
        return found
    if view.options.label is None and not found.one_hot:
        found = with_one_hot(view, found, taken)
    if found.label is not None and found.label == event:
        text = f"the column '{short(event)}' is taken as the label"
        view.note(Notice.LABEL_COLUMN, "info", text)
    if found.label is None and not found.one_hot:
        found.label = label_column(view, found.scores, taken | found.used)
    if len(found.scores) == 1 and not view.options.models:
        found.scores = (of_named_class(view, found.scores[0], found.label),)
    found.scores = tuple(with_labels(view, s, found.label) for s in found.scores)
    found = with_event_last(view, found)
    ask_if_predicted(view, found, taken)
    note_agreement(view, found, taken)
    return found


def _time(view: TableView, used: set[str]) -> str | None:
    """Return the column with the times; for a map, only a requested one, as other columns are copied as they are."""
    if isinstance(view.options, ReadingForMap):
        return view.options.time_column or None
    return time_column(view, used)


def _remaining(
    view: TableView, used: set[str], numbers: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Return the groups, the columns that cannot be groups, and, for a map, the columns that are only copied."""
    options = view.options
    # The cluster column may also be sliced by, if it has few values.
    cluster_only = {options.cluster_column} if options.cluster_column else set[str]()
    groups, unused = group_columns(view, (used | set(numbers)) - cluster_only)
    if options.groups is not None:
        groups, unused = options.groups, ()
    if isinstance(options, ReadingForMap):
        return groups, (), others(view, {*used, *numbers, *groups})
    view.notices.extend(cluster_and_weight_hints(view, used | cluster_only))
    return groups, unused, ()


# ---- Options


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


def _check_options(table: Table, options: ReadingOptions) -> None:
    wanted = [
        ("label", options.label),
        ("split column", options.split_column),
        ("identifier column", options.id_column),
        ("cluster column", options.cluster_column),
        ("weight column", options.weight_column),
        ("time column", options.time_column),
        ("column of predictions", options.prediction_column),
        ("column that says what was right", options.correct_column),
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
    if options.sheet is not None and not table.format.startswith("Excel"):
        raise OptionError(f"the {table.holder} has no sheets; leave out the sheet.")
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
        called = plain(name)
        for meaning, usual, chosen in (
            ("label", column_names.LABELS, options.label),
            ("score", column_names.PROBABILITIES, options.scores),
        ):
            if called in usual and not chosen:
                raise OptionError(
                    f"'{short(name)}' looks like the {meaning}; give the {meaning} column, or choose another {what}."
                )
