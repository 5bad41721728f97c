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
from calviz.data.roles import ColumnRoles, TableView
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
    # For a map, other columns are copied as they are.
    for_map = isinstance(options, ReadingForMap)
    time = options.time_column or None if for_map else time_column(view, used)
    used |= {time} if time else set()
    # The cluster column may also be sliced by, if it has few values.
    cluster_only = {cluster} if cluster else set[str]()
    groups, unused = group_columns(view, (used | set(numbers)) - cluster_only)
    if options.groups is not None:
        groups, unused = options.groups, ()
    kept: tuple[str, ...] = ()
    if for_map:
        unused, kept = (), others(view, {*used, *numbers, *groups})
    else:
        view.notices.extend(cluster_and_weight_hints(view, used | cluster_only))
    return replace(
        found,
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


def _scores_and_label(view: TableView, taken: set[str]) -> ColumnRoles:
    options = view.options
    named = named_label(view, taken)
    event = event_column(view, taken) if named is None else None
    if options.kind == "confidence":
        return single_score(view, taken, named or event)
    scores = find_scores(view, taken, named or event)
    found = ColumnRoles(scores, label=event if scores and scores[0].width <= 2 and event else named)
    if not (named or options.scores or options.models or isinstance(options, ReadingForMap)):
        found = named_by_an_unnamed_label(view, taken) or found
    if not found.scores:
        own = with_labels_of_their_own(view, taken) if named is None else None
        found = own or single_score(view, taken, named or event)
    if found.confidence is not None:
        return found
    if options.label is None and not found.one_hot:
        found = with_one_hot(view, found, taken)
    label, scores = found.label, found.scores
    if label is not None and label == event:
        text = f"the column '{short(event)}' is taken as the label"
        view.note(Notice.LABEL_COLUMN, "info", text)
    if label is None and not found.one_hot:
        label = label_column(view, scores, taken | found.used)
    if len(scores) == 1 and not options.models:
        scores = (of_named_class(view, scores[0], label),)
    scores = tuple(with_labels(view, s, label) for s in scores)
    found = with_event_last(view, replace(found, scores=scores, label=label))
    ask_if_predicted(view, found, taken)
    note_agreement(view, found, taken)
    return found


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


#: Options that name a column, and what it is called in messages; those of the rows come last.
_NAMED = {
    "label": "label",
    "split_column": "split column",
    "id_column": "identifier column",
    "prediction_column": "column of predictions",
    "correct_column": "column that says what was right",
    "cluster_column": "cluster column",
    "weight_column": "weight column",
    "time_column": "time column",
}


def _check_options(table: Table, options: ReadingOptions) -> None:
    """Refuse a column that is not there, that has two roles, or whose name says that it is the label or the score."""
    single = [(what, name) for key, what in _NAMED.items() if (name := getattr(options, key))]
    scores = [("score column", s) for s in options.scores or () if not s.endswith("*")]
    for what, name in (*single, *(("group", g) for g in options.groups or () if g), *scores):
        if name not in table:
            raise OptionError(
                f"the {what} '{short(name)}' is not in the {table.holder}; {known_columns(table.names)}."
            )
        # Unusable score columns are reported by `score_columns`.
        if what != "score column" and table[name].type == "other":
            raise InputError(f"cannot be the {what}: {table[name].note}", column=name)
    if options.sheet is not None and not table.format.startswith("Excel"):
        raise OptionError(f"the {table.holder} has no sheets; leave out the sheet.")
    of_rows = [
        pair for pair in single if pair[0] in ("cluster column", "weight column", "time column")
    ]
    others = [("label", options.label), *scores]
    for what, name in of_rows:
        for other, its_name in others:
            if name == its_name:
                raise OptionError(
                    f"the column '{short(name)}' is named as the {other} and as the {what}; name another one for one of them."
                )
        others.append((what, name))
        for meaning, usual, chosen in (
            ("label", column_names.LABELS, options.label),
            ("score", column_names.PROBABILITIES, options.scores),
        ):
            if plain(name) in usual and not chosen:
                raise OptionError(
                    f"'{short(name)}' looks like the {meaning}; give the {meaning} column, or choose another {what}."
                )
