"""The role of every column: rules find scores and label; values, and the agreement of columns, confirm them or raise a question."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from calviz.core.errors import InputError, OptionError, Reading
from calviz.data import column_names, label_columns, other_columns, score_columns
from calviz.data.column_names import class_key, event_of, number_of, plain, whole
from calviz.data.format import (
    Column,
    Notice,
    ReadingOptions,
    Table,
    known_columns,
    no_outcomes,
    short,
    span,
)
from calviz.data.judge_columns import with_verdicts
from calviz.data.loaded import ReadingForMap
from calviz.data.other_columns import identifier_column, others, split_column, time_column
from calviz.data.roles import (
    BELOW_CHANCE,
    CLEAR,
    FEWEST_ROWS,
    NEARLY_ALL,
    OF_ROWS,
    ONE_COLUMN,
    ColumnRoles,
    Confidence,
    OneColumn,
    ScoreColumns,
    TableView,
    agree,
    ask_which_confidence,
    follows,
    never_below_chance,
    share_equal,
    sum_to_one,
    summing,
)

#: Words and numbers of a name; a number may be negative.
_PARTS = re.compile(r"(?<![a-z0-9])-\d+|\d+|[^\W\d_]+")


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
    options = with_verdicts(table, options)
    if options.label == "" and not options.for_map:
        raise no_outcomes()
    view = TableView(table, options)
    taken = columns_of_rows(view)
    found = _scores_and_label(view, taken)
    _ask_if_in_percent(view, found)
    return with_other_roles(view, found, taken)


def columns_of_rows(view: TableView) -> set[str]:
    """The columns that say something of the rows, and so hold neither scores nor labels."""
    named = (name for _, name in _named(view.options, (ONE_COLUMN["label"], *OF_ROWS)))
    names = {split_column(view), identifier_column(view), *named}
    return {name for name in names if name and name in view.table}


def with_other_roles(view: TableView, found: ColumnRoles, taken: set[str]) -> ColumnRoles:
    """Add the roles of all columns but scores and labels."""
    options, cluster = view.options, view.options.cluster_column or None
    identifier, used = identifier_column(view), taken | found.used
    numbers = other_columns.number_columns(view, used | set(options.named_groups))
    if not options.for_map:  # nobody slices by one minus a score
        single = [view.table[s.columns[0]] for s in found.scores if s.width == 1]
        opposite = {c.name for one in single for c in view.numeric(used) if sum_to_one([one, c])}
        offered = {name for way in view.ways for name in way.options.get("models", ())}
        told = found.scores and (options.scores or options.models)
        beside = score_columns.of_unused_models(view, found, used) if told else set[str]()
        used |= (opposite | offered | beside) - {*options.named_groups}
    # For a map, other columns are copied as they are.
    time = options.time_column or None if options.for_map else time_column(view, used - {cluster})
    used |= {time} if time else set()
    # The cluster column may also be sliced by, if it has few values.
    cluster_only = {cluster} - {time} if cluster else set[str]()
    groups, features = other_columns.group_columns(view, (used | set(numbers)) - cluster_only)
    if (entries := options.groups) is not None:
        named = options.named_groups
        left = {n for n in (*groups, *features) if "*" in entries and f"!{n}" not in entries}
        groups = tuple(dict.fromkeys((*(n for n in groups if n in left), *named)))
        features = tuple(n for n in features if n in left - {*named})
    kept: tuple[str, ...] = ()
    may_weigh: list[str] = []
    if options.for_map:
        features, kept = (), others(view, {*used, *numbers, *groups})
    else:
        may_weigh = other_columns.may_be_weights(view, used | cluster_only)
        for name in may_weigh:
            text = f"'{name}' is not used as weights: if it says how much each row counts, give it the role Weight (--weight)"
            view.note(Notice.LOGS_AND_HINTS, "info", text)
    return replace(
        found,
        split=split_column(view),
        # A column that defines clusters does not identify single rows.
        id=None if identifier == cluster else identifier,
        long=None if options.for_map else next(iter(other_columns.long_forms(view, used)), None),
        groups=groups,
        numbers=numbers,
        features=features,
        kept=kept,
        related=() if options.for_map else other_columns.related_columns(view, used - {identifier}),
        cluster=cluster,
        weight=options.weight_column or None,
        # A "w" alone may be a win, or anything.
        may_weigh=tuple(name for name in may_weigh if plain(name) != "w"),
        time=time,
        notices=tuple(view.notices),
        ways=tuple(view.ways),
    )


def _scores_and_label(view: TableView, taken: set[str]) -> ColumnRoles:
    options = view.options
    _ask_if_top(view)
    named = label_columns.named_label(view, taken)
    if named and not options.label and plain(named) == "category" and correct_column(view, taken):
        # Of questions rather than of answers, unless some were predicted.
        named = named if view.predicted({*taken, named}) else None
    event = label_columns.event_column(view, taken) if named is None else None
    # Beside whether it was right, or one of many classes that was predicted, a single score can only be that of the prediction.
    chosen = options.scores or ()
    right = options.correct_column if named is None else None
    if named is None and chosen and chosen[0] in view.table and view.table[chosen[0]].is_sure:
        right = correct_column(view, taken)
    if named and chosen and chosen[0] in view.table and len(view.table[named].classes) > 2:
        right = view.predicted({*taken, named}) if view.table[chosen[0]].width is None else None
    if options.kind == "confidence" or (options.kind is None and right and len(chosen) == 1):
        return single_score(view, taken, named or event)
    scores = score_columns.find_scores(view, taken, named or event)
    found = ColumnRoles(scores, label=event if scores and scores[0].width <= 2 and event else named)
    if not (named or options.scores or options.models or options.for_map):
        found = label_columns.named_by_an_unnamed_label(view, taken) or found
    if not found.scores:
        own = label_columns.with_labels_of_their_own(view, taken) if named is None else None
        found = own or single_score(view, taken, named or event)
    if found.confidence is not None:
        return found
    if options.label is None and not found.one_hot:
        found = label_columns.with_one_hot(view, found, taken)
    label, scores = found.label, found.scores
    if label is not None and label == event:
        view.note(Notice.LABEL_COLUMN, "info", f"the column '{short(event)}' is taken as the label")
    if label is None and not found.one_hot:
        label = label_columns.label_column(view, scores, taken | found.used)
    said = options.kind or {"renormalise", "softmax"} & {*options.repair}
    if options.scores and label and not said:
        score_columns.ask_if_models(view, scores[0].columns, label)
    if len(scores) == 1 or options.models:
        scores = tuple(of_named_class(view, s, label) for s in scores)
    scores = label_columns.with_labels_alike(view, scores, label)
    found = label_columns.with_event_last(view, replace(found, scores=scores, label=label))
    label_columns.ask_if_predicted(view, found, taken)
    label_columns.note_agreement(view, found, taken)
    score_columns.offer_models(view, found, taken)
    if isinstance(options, ReadingForMap):
        mapped = tuple(each for each in found.scores if each.model == options.model)
        found = replace(found, scores=mapped or found.scores)
        options.check_not_confidence([c for each in found.scores for c in each.columns])
    return found


# ---- Options


def _named(options: ReadingOptions, roles: Iterable[OneColumn]) -> list[tuple[OneColumn, str]]:
    """The roles whose columns the options name, and these columns."""
    return [(one, name) for one in roles if (name := getattr(options, one.option))]


def with_array_names(table: Table, options: ReadingOptions) -> ReadingOptions:
    """Return the options with the names of arrays: a group `site` may be stored as ``group_site``, and the other way round."""
    if not table.arrays:
        return options

    def stored(name: str) -> str:
        names = (name, f"group_{name}", name.removeprefix("group_"))
        return next((each for each in names if each in table), name)

    groups = options.groups and tuple(map(stored, options.groups))
    named: dict[str, Any] = {one.option: stored(name) for one, name in _named(options, OF_ROWS)}
    return replace(options, groups=groups, **named)


def options_without_column(table: Table, options: ReadingOptions) -> dict[str, Any]:
    """Return the options that name a column that is not there, as those made for another file do, each as None."""

    def is_there(name: str) -> bool:
        starts = name.removesuffix("*")
        return name in table or (starts < name and any(n.startswith(starts) for n in table.names))

    keys = (*(one.option for one in ONE_COLUMN.values()), "scores", "models")
    named = {key: getattr(options, key) or () for key in keys}
    named["groups"] = options.named_groups
    several = {key: (v,) if isinstance(v, str) else v for key, v in named.items()}
    return {key: None for key, names in several.items() if not all(map(is_there, names))}


def _check_options(table: Table, options: ReadingOptions) -> None:
    """Refuse a column that is not there, that has two roles, or whose name says that it is the label or the score."""
    single = [(one.called, name) for one, name in _named(options, ONE_COLUMN.values())]
    said = options.scores or (not score_columns.named_sets(table, options) and options.models) or ()
    scores = [("score column", s) for s in said if not s.endswith("*")]
    # A name that is in no header is the mistyped one.
    scores.sort(key=lambda score: any(score[1] in own for own in table.names))
    for what, name in (*single, *(("group", g) for g in options.named_groups), *scores):
        if name not in table:
            known, each = known_columns(table.names), [part.strip() for part in name.split(",")]
            if what == "group" and all(part in table for part in each):
                known = f"give each column by itself: --group {' --group '.join(map(short, each))}"
            raise OptionError(f"the {what} '{short(name)}' is not in the {table.holder}; {known}.")
        # Unusable score columns are reported by `score_columns`.
        if what != "score column" and table[name].type == "other":
            raise InputError(f"cannot be the {what}: {table[name].note}", column=name)
    for key, formats in (("sheet", "Excel"), ("header line", ("Excel", "CSV"))):
        if getattr(options, key.replace(" ", "_")) is not None and not table.format.startswith(
            formats
        ):
            raise OptionError(f"the {table.holder} has no {key}s; leave out the {key}.")
    of_rows = [(one.called, name) for one, name in _named(options, OF_ROWS)]
    others = [("label", options.label), *scores]
    for what, name in of_rows:
        for other, its_name in others:
            if name == its_name and (other, what) != ("cluster column", "time column"):
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


# ---- A single score: the probability of the event, or the confidence that the prediction is right

#: With more columns than this, the label is not looked for by what the prediction says of it.
_MOST_CANDIDATES = 50


def single_score(view: TableView, taken: set[str], label: str | None) -> ColumnRoles:
    """Return a single score, as the probability of the event or as the confidence of the prediction, whichever the values support.

    Raises
    ------
    InputError
        If there is no score, or if it can be neither for sure.
    """
    kind = view.options.kind
    predicted = view.predicted({*taken, label or ""})
    if label is None and predicted is not None:
        worded = label_columns.label_by_word(view, {*taken, predicted})
        if worded is not None and view.table[worded].classes & view.table[predicted].classes:
            text = f"the column '{short(worded)}' is taken as the label, and '{short(predicted)}' as the prediction"
            view.note(Notice.LABEL_COLUMN, "info", text)
            label = worded
    confidence = None if view.options.kind_of_scores else _confidence(view, taken, label)
    if confidence is not None:
        truth = label or _label_by_correct(view, taken, confidence)
        if kind is None and truth is not None and _is_of_event(view, confidence, truth):
            score = score_columns.single_by_name(view, {*taken, confidence.correct or ""}, truth)
            if score is None or score.columns[0] != confidence.score:
                score = ScoreColumns((confidence.score,), (), "probabilities", 1)
            return ColumnRoles((score,), label=truth, correct=confidence.correct)
        return ColumnRoles(confidence=confidence, label=_true_class(view, taken, confidence, truth))
    if kind == "confidence":
        raise InputError(
            "there is no confidence with something that says whether the prediction was right",
            remedy="add a column 'correct', or the columns 'true_label' and 'pred_label'",
        )
    if (top := _top_of_pipeline(view, taken)) is not None:
        return top
    score = score_columns.single_by_name(view, taken, label)
    scores = (score,) if score is not None else score_columns.by_values(view, taken, label)
    if not scores:
        raise no_scores(view, taken, label)
    if label is not None:
        label_columns.ask_what_was_right(view, scores[0], label, taken)
    return ColumnRoles(scores, label=label)


def of_named_class(view: TableView, score: ScoreColumns, label: str | None) -> ScoreColumns:
    """Return a single score with the class that its name holds.

    Raises
    ------
    InputError
        If it is called like the opposite of the event, and nothing says which of the two it is.
    """
    truth = None if label is None else view.table[label]
    if truth is None or score.width > 1 or view.options.class_names or truth.width is not None:
        return score
    name = score.columns[0]
    texts = truth.levels
    spelled = {class_key(text): text for text in texts}
    if score.class_names and class_key(score.class_names[0]) in spelled:
        return score
    named = score_columns.called_class(name, texts)
    if not named and not name.startswith("1-"):
        known = column_names.SCORE_WORDS | column_names.BEFORE_NUMBERS | truth.words
        left = {*_PARTS.findall(name.lower())} - known
        named = [text for key, text in spelled.items() if left == {key}]
    if len(named) == 1 and len(spelled) == 2:
        key = class_key(named[0])
        return replace(score, class_names=(named[0] if whole(key) is None else key,))
    if score.class_names and column_names.is_of_first_class(score.class_names[0], ("0", "1")):
        return score
    if view.options.models:
        return score
    if not view.options.scores:
        others = view.numeric({*columns_of_rows(view), name, truth.name})
        shares = [c.name for c in others if c.is_headed_in_percent and c.in_unit]
        if len(shares) == 1 and truth.event is None:  # which is to be asked anyway
            score_columns.ask_if_models(view, (name, *shares), truth.name)
        _ask_if_of_the_other(view, view.table[name], truth)
    _ask_if_opposite(view.table[name], truth, spelled)
    return score


def _follows(score: Column, truth: Column) -> float:
    """How clearly the event of a label follows a score, in standard errors; 0 if one cannot tell."""
    if truth.event is None or score.head.shape != truth.head.shape:
        return 0.0
    hit, known = truth.event
    return follows(score.head[known].astype(np.float64), hit[known])


def _ask_if_of_the_other(view: TableView, score: Column, truth: Column) -> None:
    """Ask if another column is one minus the score, and the labels follow that one."""
    if not score.in_unit or _follows(score, truth) > -CLEAR:
        return
    free = view.numeric({score.name, truth.name})
    other = next((c for c in free if sum_to_one([score, c])), None)
    if other is not None:
        raise InputError(
            f"'{short(score.name)}' and '{short(other.name)}' sum to 1, and the labels in '{short(truth.name)}' follow the second; "
            "say which is the probability of the event",
            readings=[Reading(f"'{c.name}'", {"scores": (c.name,)}) for c in (other, score)],
        )


def _ask_if_opposite(score: Column, truth: Column, classes: Mapping[str, str]) -> None:
    """Ask if a score is called like the opposite of the event that the label records, such as survival beside died."""
    happened, other = event_of(classes), column_names.no_event_of(classes)
    if happened is None or other is None:
        return
    of_label = 1 if whole(happened) is None else _polarity(truth.name)
    of_score = _polarity(score.name)
    if not of_score or of_score == (of_label or 1):
        return
    if not of_label and (truth.event is None or _follows(score, truth) > CLEAR):
        return  # a label without a meaning may record the opposite: then the values tell
    one, two = (k if whole(k) is not None else classes.get(k, k) for k in (other, happened))
    raise InputError(
        f"'{short(score.name)}' sounds like the opposite of the event in '{short(truth.name)}'; say what it is",
        readings=[
            Reading(f"the probability of '{b}'", {"class_names": (a, b)})
            for a, b in ((two, one), (one, two))
        ],
    )


def _polarity(name: str) -> int:
    """1 for a name with a word for an event, -1 for one with a word for its opposite, 0 for others."""
    words = {*column_names.words(name)}
    if words & (column_names.NO_EVENT_WORDS | column_names.NEGATIONS) or name.startswith("1-"):
        return -1
    return int(bool(words & (column_names.EVENT_WORDS | {*column_names.EVENTS, "mortality"})))


def _ask_if_in_percent(view: TableView, found: ColumnRoles) -> None:
    """Ask what single scores are that are headed in percent but lie in 0 to 1, unless the user said what the scores are."""
    kind = "confidence" if found.confidence else "probabilities"
    single = [s.columns[0] for s in found.scores if s.width == 1 and s.kind == kind]
    single = [found.confidence.score] if found.confidence else single
    small = [c for c in map(view.table.__getitem__, single) if c.in_unit and not c.note]
    headed, options = [c for c in small if c.is_headed_in_percent], view.options
    if isinstance(options, ReadingForMap) and small != headed and "percent" in options.repair:
        there = options.beside_in(view.table)
        gone = [name for name in options.beside if name not in there]
        if gone and not found.fractions_beside_percentages(view.table, there):
            raise InputError(
                f"'{small[0].name}' lies in 0 to 1, and without '{short(gone[0])}' nothing says whether it is in percent",
                remedy="ask to divide by 100 only if it is, with its column as the only one of the models",
            )
    if not headed or options.kind is not None or "percent" in options.repair:
        return
    most, names = max(float(np.nanmax(c.head)) for c in headed), tuple(c.name for c in headed)
    as_they_are = {"kind": kind, "models" if len(single) > 1 else "scores": tuple(single)}
    those = {"models": names} if len(names) < len(single) else {}  # all are divided, or none
    raise InputError(
        f"'{span(names)}' is headed in percent, but lies in 0 to 1; say what it is",
        readings=[
            Reading(f"percentages: {most:g} is {most:g} %", {**those, "repair": ("percent",)}),
            Reading(f"fractions: {most:g} is {100 * most:g} %", as_they_are),
        ],
    )


def _confidence(view: TableView, taken: set[str], label: str | None) -> Confidence | None:
    """The column that may be the confidence of a prediction, if something may say whether that was right."""
    correct = correct_column(view, taken)
    predicted = view.predicted({*taken, label or "", correct or ""})
    known = correct is not None or (predicted is not None and label is not None)
    if not (known or view.options.for_map):
        return None
    others = {*taken, predicted or "", correct or "", label or ""}
    chosen = [name for name in view.options.scores or () if name in view.table]
    score = chosen[0] if chosen else view.named(column_names.CONFIDENCES, others)
    if score is None and known:
        usual = (view.named((name,), others) for name in column_names.PROBABILITIES)
        named = [name for name in usual if name and view.table[name].type == "number"]
        sure = [c for c in view.numeric(others) if c.is_sure and not c.is_log_probability]
        if correct is not None and len(sure) == 1:
            named += [sure[0].name]  # such as verbalized_confidence
        elif correct is not None and sure and not named:
            ask_which_confidence(sure, correct)
        score = named[0] if named else score_columns.only_with_words(view.numeric(others))
        score = score or never_below_chance(view, others, predicted)
    logs = [c.name for c in view.numeric(others | {score or ""}) if c.is_log_probability]
    log = score is None or view.table[score].is_log_probability
    # Such as sum_logprob.
    score = score or (
        logs[0] if len(logs) == 1 else view.named(column_names.LOG_CONFIDENCES, others)
    )
    if score is None or not view.table[score].numeric or view.table[score].width is not None:
        return None
    # A map needs no truth.
    return Confidence(score, correct, predicted, log) if known else Confidence(score, log=log)


def correct_column(view: TableView, taken: set[str]) -> str | None:
    """The column that says whether each prediction was right: the chosen one, by its name or, beside a confidence, by its words; one that holds classes is none."""
    if view.options.correct_column is not None:
        return view.options.correct_column
    name = view.named(column_names.CORRECTS, {*taken, view.options.prediction_column or ""})
    if name is None and any(c.is_sure for c in view.numeric(taken)):
        # Of two, one is what somebody said of the other.
        worded = [c.name for c in view.table.columns if c.says_right]
        return worded[0] if len(worded) == 1 else None
    if name is None or view.table[name].width is not None:
        return None
    column = view.table[name]
    may_be = column.is_zero_one or (len(column.classes) <= 2 and event_of(column.classes))
    return name if may_be else None


def _label_by_correct(view: TableView, taken: set[str], confidence: Confidence) -> str | None:
    """The column that equals the prediction where, and only where, that was right."""
    if confidence.correct is None or confidence.predicted is None:
        return None
    right = view.table[confidence.correct].event
    predicted = view.table[confidence.predicted].keys
    if right is None:
        return None
    said = np.array([hit if known else None for hit, known in zip(*right, strict=True)])
    fits = []
    roles = (*taken, confidence.correct, confidence.predicted, confidence.score)
    free = [c for c in view.table.columns[:_MOST_CANDIDATES] if c.name not in roles]
    for column in (c for c in free if c.is_label_like and len(c.classes) > 1):
        pairs = zip(column.keys, predicted, strict=False)
        equal = np.array([None if None in pair else pair[0] == pair[1] for pair in pairs])
        if share_equal(equal, said) >= NEARLY_ALL:
            fits.append(column.name)
    if len(fits) != 1:
        return None
    text = (
        f"the column '{short(fits[0])}' is taken as the label: '{short(confidence.predicted)}' equals it where "
        f"'{short(confidence.correct)}' says that it was right"
    )
    view.note(Notice.LABEL_COLUMN, "info", text)
    return fits[0]


def _true_class(
    view: TableView, taken: set[str], confidence: Confidence, label: str | None
) -> str | None:
    """The column with the true class beside a prediction: one that shares values with it."""
    roles = {confidence.score, confidence.correct or "", confidence.predicted or ""}
    if confidence.predicted or not confidence.correct:
        label = label or view.named(column_names.LABELS, taken | roles)
    if label is None or confidence.predicted is None or view.options.label or confidence.correct:
        return label
    predicted = view.table[confidence.predicted].classes
    if predicted & view.table[label].classes:
        return label
    sharing = [c.name for c in _texts(view, taken | roles) if predicted & c.classes]
    return sharing[0] if len(sharing) == 1 else label


def _texts(view: TableView, taken: set[str]) -> list[Column]:
    columns = view.table.columns[:_MOST_CANDIDATES]
    return [c for c in columns if c.type == "text" and c.name not in taken]


#: Words that say that a score is of the prediction, whatever that is.
_NOT_OF_EVENT = column_names.PREDICTED_WORDS | {"max", "top", "class", "correct", "right", "label"}


def _is_of_event(view: TableView, confidence: Confidence, label: str) -> bool:
    """Whether a score is the probability of the event rather than the confidence of the prediction, as the values say.

    Raises
    ------
    InputError
        If it can be neither for sure.
    """
    column, truth = view.table[confidence.score], view.table[label]
    name = plain(column.name)
    called_confidence = name in column_names.CONFIDENCES and name not in column_names.PROBABILITIES
    if confidence.log or truth.width is not None or not column.in_unit:
        return False
    # What calviz calibrated may lie below 1/K.
    if name == "confidence" and confidence.correct and other_columns.number_columns(view, {name}):
        return False
    classes = truth.classes
    if confidence.predicted is not None:
        classes |= view.table[confidence.predicted].classes
    k = len(classes)
    p = column.head[~np.isnan(column.head)].astype(np.float64)
    if p.size < FEWEST_ROWS or k < 2:
        few = p.size < FEWEST_ROWS and confidence.predicted is not None
        named = name in column_names.CONFIDENCES
        if few and (named or not _threshold_agrees(view, column, confidence.predicted, 1)):
            return False
        return k <= 2 and not called_confidence
    below = float(np.mean(p < 1 / k - 1e-6))
    if k > 2:
        if below > BELOW_CHANCE:
            raise _no_confidence(view, column, below, k, label)
        return False
    agrees = below > 0 and _threshold_agrees(view, column, confidence.predicted)
    if not called_confidence and (agrees or confidence.predicted is None):
        return True
    if below <= BELOW_CHANCE and not agrees:
        # All scores are at least 1/2: only a name can tell the event from the prediction.
        return False
    event, kind = column_names.by_prefix(column.name)
    if kind and event and _NOT_OF_EVENT.isdisjoint(column_names.words(event)):
        # Its name says whose probability it is: P(readmission).
        return True
    raise _no_confidence(view, column, below, 2, label)


def _threshold_agrees(
    view: TableView, score: Column, predicted: str | None, fewest: int = FEWEST_ROWS
) -> bool:
    """Whether the prediction is the event where the score is at least 1/2, in nearly all rows; of two unknown words, always the same one."""
    if predicted is None or len((column := view.table[predicted]).keys) < fewest:
        return False
    happened, known = event_of(column.classes), column.keys != None  # noqa: E711
    events = {happened} if happened else column.classes if len(column.classes) == 2 else {}
    right = [((column.keys == event) == (score.head >= 0.5))[known] for event in events]
    return any(np.mean(r) >= NEARLY_ALL for r in right)


def _no_confidence(view: TableView, score: Column, below: float, k: int, label: str) -> InputError:
    """Return the question what a score is: of one class or the event, or a confidence, as another column may be."""
    numbers = view.numeric({label})
    of_classes: dict[str, Any] = {"kind": "probabilities", "label": label}
    readings = []
    if k == 2:
        chosen = of_classes | {"scores": (score.name,)}
        readings.append(Reading("the probability of the event", chosen))
    elif score.name in (block := summing(numbers) or ()) and len(block) == k:
        # Of columns called b, c and d beside it, it is the class that is left.
        values = view.table[label].classes
        left = values - {class_key(name) for name in block}
        if len(left) == 1:
            names = tuple(n if class_key(n) in values else next(iter(left)) for n in block)
            chosen = of_classes | {"scores": block, "class_names": names}
            readings.append(Reading(f"the probability of one of {k} classes", chosen))
    for other in numbers:
        may_be = other is not score and other.type == "number" and other.in_unit
        if may_be and float(np.mean(other.head < 1 / k - 1e-6)) <= BELOW_CHANCE:
            chosen = {"kind": "confidence", "scores": (other.name,)}
            readings.append(Reading(f"'{short(other.name)}' is the confidence", chosen))
    readings = [*readings[:3], Reading("a confidence all the same", {"kind": "confidence"})]
    return InputError(
        f"'{short(score.name)}' lies below 1/{k} in {below:.0%} of the rows, which the confidence of a prediction "
        f"among {k:,} classes cannot; say what it is",
        readings=readings,
    )


def _ask_if_top(view: TableView) -> None:
    """Ask about columns with the classes of the first ranks in each row, and their scores: no class has a column of its own."""
    options, ranked = view.options, dict[tuple[str, str], list[Column]]()
    if options.scores or options.models or options.kind or options.for_map:
        return
    for column in view.table.columns:
        # A number in a name, and what stands around it.
        if match := re.fullmatch(r"(|.*\D)(\d+)(|\D.*)", column.name):
            ranked.setdefault((match[1], match[3]), []).append(column)
    several = [columns for columns in ranked.values() if len(columns) > 1]
    falling = [s for s in several if all(c.type == "number" and c.in_unit for c in s)]
    falling = [s for s in falling if all(np.all(a.head >= b.head) for a, b in pairwise(s))]
    for scores in falling:
        of = (w for w in several if len(w) == len(scores) and all(c.is_label_like for c in w))
        if classes := next((w for w in of if all(np.all(a.keys != b.keys) for a, b in pairwise(w))), None):  # fmt: skip
            first, its_class = scores[0].name, classes[0].name
            chosen = {"kind": "confidence", "scores": (first,), "prediction_column": its_class}
            raise InputError(
                f"'{span(tuple(c.name for c in scores))}' fall in every row: scores of its top {len(scores)} classes, which "
                f"'{span(tuple(c.name for c in classes))}' name, not of the same classes in all rows",
                readings=[Reading(f"'{first}' is the confidence of '{its_class}'", chosen)],
            )


def _top_of_pipeline(view: TableView, taken: set[str]) -> ColumnRoles | None:
    """Find ``label`` and ``score`` of a Hugging Face pipeline, the predicted class and its probability, beside the true class."""
    label, score = (view.plain.get(name) for name in ("label", "score"))
    if label is None or score is None or {label, score} & taken or view.options.label == label:
        return None
    truth = view.options.label or view.named(column_names.LABELS, {*taken, label, score})
    if truth is None:
        guessed = view.table[label].keys
        alike = [c.name for c in _texts(view, {*taken, label}) if agree(guessed, c.keys)]
        truth = alike[0] if len(alike) == 1 else None
    if truth is None or not view.table[score].numeric or view.table[score].width is not None:
        return None
    if view.table[label].type != "text" or view.table[truth].type != "text":
        return None
    text = f"'{label}' and '{score}' are read as the predicted class and its confidence, '{truth}' as the true class"
    view.note(Notice.SCORE_COLUMNS, "info", text)
    return ColumnRoles(confidence=Confidence(score, predicted=label), label=truth)


def no_scores(view: TableView, taken: set[str], label: str | None) -> InputError:
    """Return the error about a file in which no column holds scores: what comes nearest, and what stops it."""
    named = view.table.named
    word = "array" if view.table.arrays and named else "column"
    text = [
        c for c in view.table.columns if c.type == "text" and column_names.is_score_name(c.name)
    ]
    if text:
        column = text[0]
        values = [str(v) for v in column.head.tolist()]
        odd = [row for row, value in enumerate(values) if value and number_of(value) is None]
        if 0 < len(odd) < len(values) / 2:
            return InputError(
                f"'{short(values[odd[0]])}' is not a number",
                row=odd[0] + 1,
                line=view.table.line(odd[0]),
                column=column.name,
                remedy="correct it",
            )
        return InputError(
            f"the {word} '{short(column.name)}' holds text such as '{short(values[0])}', not numbers",
            remedy="check the decimal sign and the separator",
        )
    confidence = view.named(column_names.CONFIDENCES, taken)
    if confidence is not None:
        return InputError(
            "there is a confidence, but nothing says whether the prediction was right",
            column=confidence,
            remedy="add a column 'correct', or the columns 'true_label' and 'pred_label'",
        )
    large = [c for c in view.numeric(taken) if np.any(c.head > 1)]
    hundredths = [replace(c, sample=c.head / 100) for c in large]
    called = [c.name for c in hundredths if c.is_headed_in_percent and c.in_unit]
    if not (percent := summing(hundredths)) and len(called) > 1:
        score_columns.ask_if_models(view, called, label)
    above = [c for c in hundredths if not c.has_unit and np.any(c.head > 0.1)]
    called = [one] if (one := score_columns.only_with_words(above)) else called
    if models := tuple(s.model for s in score_columns.models_by_sums(view, hundredths, label)):
        answer = f"percentages of {len(models)} models"
        reading = Reading(answer, {"models": models, "repair": ("percent",)})
        sums = f"the columns of {span(models)} sum to 100 in every row, as percentages do"
        return InputError(sums, readings=[reading])
    if percent := percent or (tuple(called) if len(called) == 1 else ()):
        reading = Reading("percentages", {"scores": percent, "repair": ("percent",)})
        does = "sum to 100 in every row" if len(percent) > 1 else "lies in 0 to 100"
        what = f"'{span(percent)}' {does}, as percentages do; say what {'they are' if len(percent) > 1 else 'it is'}"
        return InputError(what, readings=[reading])
    if not view.options.for_map and any(c.in_unit for c in view.numeric(taken)):
        single = [c for c in view.table.columns if c.width is None and c.type != "other"]
        void = [c.name for c in single if not c.classes]
        fetched = view.table.fetch([], void).columns if void else {}
        void = [name for name, values in fetched.items() if other_columns.blank(values).all()]
        called = [name for name in void if view.table[name].is_called_label]
        if len(called or void) == 1 and not any(c.is_called_label for c in single if c.classes):
            return no_outcomes((called or void)[0])
    raw = [c.name for c in view.numeric(taken) if not c.in_unit and c.words & column_names.RAW]
    if len(raw) == 1:
        chosen = {"scores": (raw[0],), "kind": "logits"}
        raise InputError(
            f"'{short(raw[0])}' is not within 0 to 1: is it the log-odds of the event, as of boosted trees with a logistic loss?",
            readings=[Reading("log-odds: their sigmoid is taken", chosen)],
        )
    unit = [c.name for c in view.numeric(taken) if c.in_unit and not c.is_label_like]
    pairs = [c.name for c in view.table.columns if c.width is None and c.is_label_like and c.pairs]
    if len(unit) > 1 and len(pairs) == 1:
        score_columns.ask_if_models(view, unit, pairs[0], found=False)
    names = view.table.names
    listed = ", ".join(map(short, names[:10]))
    present = f" (there {'is' if len(names) == 1 else 'are'}: {listed})" if names else ""
    what, remedy = (
        f"no probability {word}s were recognised",
        "name them p_<class>, or say which columns hold the scores",
    )
    if not named:
        what = "there are no columns that add up to 1 in every row, as probabilities do"
        remedy = "say which columns hold the scores, and whether they are logits; labels of their own are given by --labels, or uploaded with them"
    elif view.table.arrays:
        remedy = "name the array 'probs' or 'logits', or say which one holds the scores"
    return InputError(f"{what}{present}", remedy=remedy, asks=True)
