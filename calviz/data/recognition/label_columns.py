"""Find the label column, or the one-hot label columns."""

from __future__ import annotations

from calviz.core.errors import InputError
from calviz.data.loaded import ReadingForMap, short
from calviz.data.notices import Notice
from calviz.data.recognition import column_names, first_rows
from calviz.data.recognition.layout import ScoreColumns
from calviz.data.recognition.table_view import TableView


def one_hot(
    view: TableView, scores: tuple[ScoreColumns, ...], used: set[str]
) -> tuple[tuple[ScoreColumns, ...], tuple[str, ...]]:
    """Find the 0/1 columns that belong to the score columns, one each; also return the scores, reduced if two are complementary."""
    first = scores[0]
    if view.options.label is not None or len(first.columns) != first.width:
        return scores, ()
    class_names = first.class_names or first.columns
    columns = []
    for column, name in zip(first.columns, class_names, strict=True):
        options = (
            view.plain.get(column_names.plain(n)) for n in column_names.one_hot_names(column, name)
        )
        match = next((c for c in options if c is not None and c not in used), None)
        if match is None or not first_rows.is_zero_one(view.table[match]):
            return scores, ()
        columns.append(match)
    if len(columns) == 1:
        return scores, (columns[0],)
    if len(columns) == 2 and all(c.endswith(column_names.OUTCOME) for c in columns):
        # Two complementary forecasts of one event: the first one counts.
        view.note(
            Notice.COMPLEMENT,
            "info",
            f"'{short(first.columns[0])}' is taken as P(class 1), with its outcome '{short(columns[0])}'; "
            f"'{short(first.columns[1])}' is its complement",
        )
        one = ScoreColumns((first.columns[0],), (), first.kind, 1, first.model)
        return (one, *scores[1:]), (columns[0],)
    return scores, tuple(columns)


def label(view: TableView, scores: tuple[ScoreColumns, ...], used: set[str]) -> str | None:
    """Find the column with the true class: by its name, or as the only candidate; None if a map does not need one."""
    optional = isinstance(view.options, ReadingForMap)
    named = view.named(column_names.LABELS, used) if view.table.named else None
    if named is not None and view.table[named].type == "other":
        if optional:
            return None
        raise InputError(f"cannot be the label: {view.table[named].note}", column=named)
    if named is not None:
        return named
    event = view.named(column_names.EVENTS, used) if view.table.named else None
    if event is not None and scores[0].width <= 2 and first_rows.is_zero_one(view.table[event]):
        view.note(Notice.LABEL_COLUMN, "info", f"the column '{short(event)}' is taken as the label")
        return event
    if optional and view.table.named:
        return None
    free = [
        c
        for c in view.table.columns
        if c.name not in used
        and c.type != "other"
        and (c.width is None or c.width == scores[0].width)
        and column_names.plain(c.name)
        not in (*column_names.PREDICTED, *column_names.CONFIDENCES, *column_names.CORRECTS)
    ]
    classes = set(scores[0].class_names)
    fitting = [
        c
        for c in free
        if c.type == "text" and first_rows.levels(c) and first_rows.levels(c) <= classes
    ]
    whole = [c for c in free if first_rows.is_label_like(c)]
    for candidates in (fitting, whole if len(whole) == 1 or not view.table.named else [], free):
        if len(candidates) == 1 or (candidates and not view.table.named):
            chosen = candidates[-1] if not view.table.named else candidates[0]
            where = _where(view, chosen.name)
            view.note(Notice.LABEL_COLUMN, "info", f"{where} taken as the label")
            return chosen.name
    if optional:
        return None
    plural = "s" if scores[0].width != 1 else ""
    word = "probability" if scores[0].kind == "probabilities" else "logit"
    what = f"{scores[0].width:,} {word} column{plural} found"
    if not free:
        raise InputError(
            f"there is no label column: {what}, but nothing to compare them with",
            remedy="add a column 'label' with the true class",
        )
    raise InputError(
        f"there is no column called 'label' ({what}), and several could be it: "
        f"{', '.join(short(c.name) for c in free[:10])}",
        remedy="say which one is the label",
    )


def _where(view: TableView, name: str) -> str:
    if view.table.named:
        return f"the column '{short(name)}' is"
    place = view.table.places[name]
    if place == 0:
        return "the first column is"
    return "the last column is" if place == len(view.table.names) - 1 else f"{name} is"
