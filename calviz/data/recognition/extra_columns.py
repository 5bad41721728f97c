"""Find the columns with splits, identifiers, times and groups."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from calviz.core.finding import Finding
from calviz.core.predictions import INTERVAL
from calviz.data.building.times import may_be_times
from calviz.data.loaded import short
from calviz.data.notices import Notice
from calviz.data.recognition import column_names
from calviz.data.recognition.table_view import TableView
from calviz.data.table import Column

#: Columns of fractions with more distinct values than this are measurements, not groups.
_MOST_FRACTIONS = 20


def split(view: TableView) -> str | None:
    """The column that names the split of each row."""
    return _role(view, view.options.split_column, column_names.SPLITS)


def identifier(view: TableView) -> str | None:
    """The column that identifies the rows."""
    return _role(view, view.options.id_column, column_names.IDS, _may_be_id)


def _role(
    view: TableView,
    option: str | None,
    names: tuple[str, ...],
    fits: Callable[[Column], bool] | None = None,
) -> str | None:
    if option is not None:
        return option or None
    if not view.table.named:
        return None
    taken = {view.options.label, *(view.options.scores or ()), *(view.options.groups or ())}
    for name in names:
        column = view.plain.get(name)
        if column is None or column in taken or view.table[column].width is not None:
            continue
        if fits is None or fits(view.table[column]):
            return column
    return None


def time(view: TableView, used: set[str]) -> str | None:
    """The column with the time of each row: one with a usual name, or the only one whose name has a word for it; it must hold dates."""
    if view.options.time_column is not None:
        return view.options.time_column or None
    if not view.table.named:
        return None
    taken = {*used, *(view.options.groups or ())}

    def holds_dates(name: str | None) -> bool:
        if name is None or name in taken:
            return False
        column = view.table[name]
        return column.width is None and column.type == "text" and may_be_times(column.head)

    for name in column_names.TIMES:
        column = view.plain.get(name)
        if holds_dates(column):
            return column
    candidates = []
    for plain, name in view.plain.items():
        words = set(plain.split("_"))
        if words & column_names.TIME_WORDS and not words & column_names.NO_TIME_WORDS:
            candidates += [name] if holds_dates(name) else []
    return candidates[0] if len(candidates) == 1 else None


#: Fewest distinct values of a column that is suggested as clusters: resampling three sites says nothing about others.
FEWEST_CLUSTERS = 5


def cluster_and_weight_hints(view: TableView, used: set[str]) -> Iterator[Finding]:
    """Yield hints about columns that may hold clusters or weights, which are never used unless the user says so."""
    options = view.options
    if not view.table.named:
        return
    for name, plain in ((c.name, column_names.plain(c.name)) for c in view.table.columns):
        if name in used or view.table[name].width is not None:
            continue
        column = view.table[name]
        # In benchmarks of language models, "subject" is a topic, not a person.
        may_cluster = view.table.questions is None or plain != "subject"
        repeats = may_cluster and column.type in ("text", "integer") and _has_repeats(column)
        if options.cluster_column is None and plain in column_names.CLUSTERS and repeats:
            yield Notice.LOGS_AND_HINTS.finding(
                "info",
                f"the values of '{name}' repeat: if rows of one value belong together, say so (cluster column "
                f"'{name}', --cluster), and intervals and p-values take it into account",
            )
        elif options.weight_column is None and plain in column_names.WEIGHTS and column.numeric:
            yield Notice.LOGS_AND_HINTS.finding(
                "info",
                f"'{name}' is not used as weights: if it says how much each row counts, say so (weight column '{name}', --weight)",
            )


def _has_repeats(column: Column) -> bool:
    """Whether there are enough distinct values to resample them, at most half as many as rows."""
    values = column.head.tolist()
    return FEWEST_CLUSTERS <= len(set(values)) <= len(values) / 2


def _may_be_id(column: Column) -> bool:
    return column.type in ("text", "integer") and len(set(column.head.tolist())) == len(column.head)


def numbers(view: TableView, used: set[str]) -> tuple[str, ...]:
    """The columns with intervals of calibrated probabilities, as written by calviz."""
    if not view.table.named:
        return ()
    return tuple(
        c.name
        for c in view.table.columns
        if c.name.startswith(INTERVAL) and c.numeric and c.width is None and c.name not in used
    )


def groups(view: TableView, used: set[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns to slice by, and those left out because they hold too many distinct fractions."""
    if not view.table.named:
        return (), ()
    ignored = {*column_names.PREDICTED, *column_names.CONFIDENCES, *column_names.CORRECTS}
    ignored |= {*column_names.PROBABILITIES, *column_names.LOGITS}
    free = [
        c
        for c in view.table.columns
        if c.name not in used
        and c.width is None
        and c.type != "other"
        and column_names.by_prefix(c.name)[1] not in ("probabilities", "logits")
        and not c.name.endswith(column_names.OUTCOME)
        and column_names.plain(c.name) not in ignored
    ]
    measured = tuple(
        c.name for c in free if c.type == "number" and len(set(c.head.tolist())) > _MOST_FRACTIONS
    )
    unfit = frozenset(measured)
    return tuple(c.name for c in free if c.name not in unfit), measured


def others(view: TableView, used: set[str]) -> tuple[str, ...]:
    """The columns that have no role, and are written beside calibrated scores; those that cannot be are named in a notice."""
    free = [c for c in view.table.columns if c.name not in used]
    # An object with a single number has a width of 1.
    single = [c for c in free if c.type != "other" and (c.width or 1) == 1 and not c.fields]
    if lists := [short(c.name) for c in free if c not in single]:
        text = f"columns without a single number or text per row are left out: {', '.join(lists)}"
        view.note(Notice.LEFT_OUT, "warning", text)
    return tuple(c.name for c in single)
