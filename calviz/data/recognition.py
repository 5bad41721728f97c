"""The role of every column."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from calviz.core.errors import Finding, InputError, OptionError
from calviz.core.predictions import INTERVAL
from calviz.data import loaded, score_columns
from calviz.data.format import Column, Table
from calviz.data.loaded import Notice, ReadingForMap, ReadingOptions, known_columns, short
from calviz.data.other_columns import may_be_times
from calviz.data.score_columns import ColumnRoles, Confidence, ScoreColumns, TableView

# ---- Find the label column, or the one-hot label columns.


def one_hot_columns(
    view: TableView, scores: tuple[ScoreColumns, ...], used: set[str]
) -> tuple[tuple[ScoreColumns, ...], tuple[str, ...]]:
    """Find the 0/1 columns that belong to the score columns, one each; also return the scores, reduced if two are complementary."""
    first = scores[0]
    if view.options.label is not None or len(first.columns) != first.width:
        return scores, ()
    class_names = first.class_names or first.columns
    columns = []
    for column, name in zip(first.columns, class_names, strict=True):
        options = (view.plain.get(loaded.plain(n)) for n in loaded.one_hot_names(column, name))
        match = next((c for c in options if c is not None and c not in used), None)
        if match is None or not score_columns.is_zero_one(view.table[match]):
            return scores, ()
        columns.append(match)
    if len(columns) == 1:
        return scores, (columns[0],)
    if len(columns) == 2 and all(c.endswith(loaded.OUTCOME) for c in columns):
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


def label_column(view: TableView, scores: tuple[ScoreColumns, ...], used: set[str]) -> str | None:
    """Find the column with the true class: by its name, or as the only candidate; None if a map does not need one."""
    optional = isinstance(view.options, ReadingForMap)
    named = view.named(loaded.LABELS, used) if view.table.named else None
    if named is not None and view.table[named].type == "other":
        if optional:
            return None
        raise InputError(f"cannot be the label: {view.table[named].note}", column=named)
    if named is not None:
        return named
    event = view.named(loaded.EVENTS, used) if view.table.named else None
    if event is not None and scores[0].width <= 2 and score_columns.is_zero_one(view.table[event]):
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
        and loaded.plain(c.name) not in (*loaded.PREDICTED, *loaded.CONFIDENCES, *loaded.CORRECTS)
    ]
    classes = set(scores[0].class_names)
    fitting = [
        c
        for c in free
        if c.type == "text" and score_columns.levels(c) and score_columns.levels(c) <= classes
    ]
    whole = [c for c in free if score_columns.is_label_like(c)]
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


# ---- Find the columns with splits, identifiers, times and groups.


#: Columns of fractions with more distinct values than this are measurements, not groups.
_MOST_FRACTIONS = 20


def split_column(view: TableView) -> str | None:
    """The column that names the split of each row."""
    return _role(view, view.options.split_column, loaded.SPLITS)


def identifier_column(view: TableView) -> str | None:
    """The column that identifies the rows."""
    return _role(view, view.options.id_column, loaded.IDS, _may_be_id)


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

    for name in loaded.TIMES:
        column = view.plain.get(name)
        if holds_dates(column):
            return column
    candidates = []
    for plain, name in view.plain.items():
        words = set(plain.split("_"))
        if words & loaded.TIME_WORDS and not words & loaded.NO_TIME_WORDS:
            candidates += [name] if holds_dates(name) else []
    return candidates[0] if len(candidates) == 1 else None


#: Fewest distinct values of a column that is suggested as clusters: resampling three sites says nothing about others.
FEWEST_CLUSTERS = 5


def cluster_and_weight_hints(view: TableView, used: set[str]) -> Iterator[Finding]:
    """Yield hints about columns that may hold clusters or weights, which are never used unless the user says so."""
    options = view.options
    if not view.table.named:
        return
    for name, plain in ((c.name, loaded.plain(c.name)) for c in view.table.columns):
        if name in used or view.table[name].width is not None:
            continue
        column = view.table[name]
        # In benchmarks of language models, "subject" is a topic, not a person.
        may_cluster = view.table.questions is None or plain != "subject"
        repeats = may_cluster and column.type in ("text", "integer") and _has_repeats(column)
        if options.cluster_column is None and plain in loaded.CLUSTERS and repeats:
            yield Notice.LOGS_AND_HINTS.finding(
                "info",
                f"the values of '{name}' repeat: if rows of one value belong together, say so (cluster column "
                f"'{name}', --cluster), and intervals and p-values take it into account",
            )
        elif options.weight_column is None and plain in loaded.WEIGHTS and column.numeric:
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


def number_columns(view: TableView, used: set[str]) -> tuple[str, ...]:
    """The columns with intervals of calibrated probabilities, as written by calviz."""
    if not view.table.named:
        return ()
    return tuple(
        c.name
        for c in view.table.columns
        if c.name.startswith(INTERVAL) and c.numeric and c.width is None and c.name not in used
    )


def group_columns(view: TableView, used: set[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns to slice by, and those left out because they hold too many distinct fractions."""
    if not view.table.named:
        return (), ()
    ignored = {*loaded.PREDICTED, *loaded.CONFIDENCES, *loaded.CORRECTS}
    ignored |= {*loaded.PROBABILITIES, *loaded.LOGITS}
    free = [
        c
        for c in view.table.columns
        if c.name not in used
        and c.width is None
        and c.type != "other"
        and loaded.by_prefix(c.name)[1] not in ("probabilities", "logits")
        and not c.name.endswith(loaded.OUTCOME)
        and loaded.plain(c.name) not in ignored
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


# ---- Recognise the roles of columns: pure logic on names, types and the first rows.
#
# The order of the steps: scores by name (`score_columns`), by value (`score_values`), then the
# label (`label_columns`); the remaining columns are groups (`extra_columns`).


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
    split, identifier = split_column(view), identifier_column(view)
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
    numbers = number_columns(view, used | set(options.groups or ()))
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
    scores = score_columns.one_column(view, taken) or score_columns.fitting_block(view, taken)
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
        scores, one_hot = one_hot_columns(view, scores, used)
        used = used | _columns_of(scores)
    label = view.options.label
    if label is None and scores and not one_hot:
        label = label_column(view, scores, used)
    elif label is None and confidence is not None:
        label = view.named(loaded.LABELS, used)
    return scores, one_hot, label


def _time(view: TableView, used: set[str]) -> str | None:
    """Return the column with the times; for a map, only a requested one, as other columns are copied as they are."""
    if isinstance(view.options, ReadingForMap):
        return view.options.time_column or None
    return time(view, used)


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
        plain = loaded.plain(name)
        for meaning, usual, chosen in (
            ("label", loaded.LABELS, options.label),
            ("score", loaded.PROBABILITIES, options.scores),
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
        and loaded.is_score_name(c.name)
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
    confidence = view.named(loaded.CONFIDENCES, taken)
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
