"""The role of every column: a reading is proposed by rules, and weighed by what names, values and columns say of each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from calviz.core.errors import Finding, InputError, OptionError, Reading
from calviz.core.predictions import INTERVAL
from calviz.data import column_names
from calviz.data.class_blocks import blocks_named_by
from calviz.data.column_names import plain
from calviz.data.evidence import (
    BELOW_CHANCE,
    CLEAR,
    FEWEST_ROWS,
    NEARLY_ALL,
    arg_max,
    clearer,
    event,
    in_unit,
    is_label_like,
    is_zero_one,
    keys,
    levels,
    share_equal,
    sum_to_one,
)
from calviz.data.format import Column, Table
from calviz.data.labels import class_key, event_of, whole
from calviz.data.loaded import Notice, ReadingForMap, ReadingOptions, known_columns, short, span
from calviz.data.other_columns import may_be_times
from calviz.data.roles import ColumnRoles, Confidence, ScoreColumns, TableView
from calviz.data.score_columns import (
    by_values,
    find_scores,
    named_by_labels,
    single_by_name,
)

#: With more columns than this that may be the label, the header is not searched for the values of each.
_MOST_CANDIDATES = 50


@dataclass
class _Found:
    """What is known so far: the scores of all models or the confidence, and the label."""

    scores: tuple[ScoreColumns, ...] = ()
    confidence: Confidence | None = None
    label: str | None = None
    one_hot: tuple[str, ...] = ()
    multilabel: bool = False

    @property
    def used(self) -> set[str]:
        """The columns that have a role."""
        columns = {c for s in self.scores for c in (*s.columns, *s.logits)}
        columns |= {c for c in (self.label, *self.one_hot) if c}
        if self.confidence is not None:
            roles = (self.confidence.score, self.confidence.correct, self.confidence.predicted)
            columns |= {c for c in roles if c is not None}
        return columns


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


# Scores and label


def _scores_and_label(view: TableView, taken: set[str]) -> _Found:
    named = _named_label(view, taken)
    scores = find_scores(view, taken, named)
    found = _Found(scores, label=named if scores else None)
    if named is None and not view.options.scores:
        found = _named_by_an_unnamed_label(view, taken) or found
    if not found.scores:
        found = _single_score(view, taken, named)
    if found.confidence is not None:
        found.label = (
            view.options.label or found.label or view.named(column_names.LABELS, taken | found.used)
        )
        return found
    if view.options.label is None:
        found.label = None if found.label is None else found.label
        found = _with_one_hot(view, found, taken)
    if found.label is None and not found.one_hot:
        found.label = view.options.label or label_column(view, found.scores, taken | found.used)
    found.scores = tuple(_with_labels(view, s, found.label, taken) for s in found.scores)
    return _with_label_array(view, found)


def _named_label(view: TableView, taken: set[str]) -> str | None:
    """The column that is called like a label, or that records an event."""
    if view.options.label is not None:
        return view.options.label
    if not view.table.named:
        return None
    named = view.named(column_names.LABELS, taken)
    if named is not None and view.table[named].type != "other":
        return named
    event_column = view.named(column_names.EVENTS, taken)
    if event_column is not None and is_zero_one(view.table[event_column]):
        return event_column
    return None


def _named_by_an_unnamed_label(view: TableView, taken: set[str]) -> _Found | None:
    """Find columns that are named after the values of a column, which is then the label."""
    predictions = {view.plain[n] for n in column_names.PREDICTED if n in view.plain}
    candidates = [
        c
        for c in view.table.columns
        if c.name not in taken | predictions and is_label_like(c) and view.table.named
    ]
    found: list[tuple[Column, tuple[ScoreColumns, ...]]] = []
    for column in candidates[:_MOST_CANDIDATES]:
        notices = len(view.notices)
        scores = named_by_labels(view, taken, column.name)
        del view.notices[notices:]
        if scores and _may_be_true_class(view, column, scores[0]):
            found.append((column, scores))
    texts = [(c, s) for c, s in found if c.type == "text"]
    called = [(c, s) for c, s in found if {*column_names.words(c.name)} & column_names.LABEL_WORDS]
    for some in (called, texts, found):
        if len(some) == 1:
            column, scores = some[0]
            scores = named_by_labels(view, taken, column.name)
            if not _kept_by_name(column.name):
                text = f"the column '{short(column.name)}' is taken as the label: the score columns are named after its values"
                view.note(Notice.LABEL_COLUMN, "info", text)
            return _Found(scores, label=column.name)
        if len(some) > 1:
            raise _several_labels(
                view,
                [c.name for c, _ in some],
                f"the score columns '{span(some[0][1][0].columns)}' are named after the values of several columns",
            )
    return None


def _kept_by_name(name: str) -> bool:
    return plain(name) in column_names.LABELS


def _may_be_true_class(view: TableView, column: Column, scores: ScoreColumns) -> bool:
    """Whether a column that nobody calls a label may be one: it follows the scores, but is not just the class of the largest."""
    words = {*column_names.words(column.name)}
    if words & column_names.NO_LABEL_WORDS:
        return False
    best = arg_max([view.table[c] for c in scores.columns], scores.labels or scores.class_names)
    truth = np.array(
        [class_key(str(v)) if v is not None else None for v in keys(column)], dtype=object
    )
    right = share_equal(best, truth)
    if words & column_names.LABEL_WORDS:
        return True
    rows = max(len(truth), 1)
    if rows < FEWEST_ROWS:
        return column.type == "text"
    chance = max(np.mean(best == name) * np.mean(truth == name) for name in {*truth} - {None})
    return (column.type == "text" and right < 1) or CLEAR * np.sqrt(
        0.25 / rows
    ) + chance < right < 1


def _several_labels(view: TableView, names: Sequence[str], what: str) -> InputError:
    return InputError(
        f"{what}: {', '.join(short(name) for name in names[:10])}",
        remedy="say which one is the label",
        readings=[Reading(f"'{short(name)}' is the label", {"label": name}) for name in names[:3]],
    )


# A single score: the probability of the event, or the confidence of a prediction


def _single_score(view: TableView, taken: set[str], label: str | None) -> _Found:
    """Weigh a single score as the probability of the event against the confidence of the prediction."""
    kind = view.options.kind
    confidence = None if view.options.kind_of_scores else _confidence(view, taken, label)
    notices = list(view.notices)
    score = single_by_name(view, taken, label)
    if confidence is not None and not confidence.log:
        score = score or ScoreColumns((confidence.score,), (), "probabilities", 1)
        truth = label or _label_by_correct(view, taken, confidence)
        if kind is None and _is_of_event(view, score, truth, confidence):
            return _Found((score,), label=truth)
        confidence = (
            replace(confidence, score=score.columns[0])
            if confidence.score == score.columns[0]
            else confidence
        )
    if confidence is not None and (
        confidence.correct
        or (confidence.predicted and label)
        or isinstance(view.options, ReadingForMap)
    ):
        view.notices[:] = notices
        return _Found(confidence=confidence, label=label)
    view.notices[:] = notices
    if kind == "confidence":
        raise InputError(
            "there is no confidence with something that says whether the prediction was right",
            remedy="add a column 'correct', or the columns 'true_label' and 'pred_label'",
        )
    top = _top_of_pipeline(view, taken)
    if top is not None:
        return _Found(confidence=top, label=None)
    score = single_by_name(view, taken, label)
    scores = (score,) if score is not None else by_values(view, taken, label)
    if not scores:
        raise _no_scores(view, taken)
    return _Found(scores, label=label)


def _confidence(view: TableView, taken: set[str], label: str | None) -> Confidence | None:
    """The column that may be the confidence of the prediction, and what says whether the prediction was right."""
    score = view.named(column_names.CONFIDENCES, taken)
    correct = _correct_column(view, taken)
    predicted = view.named(column_names.PREDICTED, taken | {label or ""})
    others = {*taken, predicted or "", correct or "", label or ""}
    if score is None and (correct is not None or (predicted is not None and label is not None)):
        named = (view.named((name,), others) for name in column_names.PROBABILITIES)
        score = next((c for c in named if c is not None and view.table[c].type == "number"), None)
    log = score is None and (score := view.named(column_names.LOG_CONFIDENCES, others)) is not None
    if score is None or not view.table[score].numeric or view.table[score].width is not None:
        return None
    if correct is not None and correct != score:
        return Confidence(score, correct=correct, predicted=predicted, log=log)
    if predicted is not None and predicted != score:
        return Confidence(score, predicted=predicted, log=log)
    return Confidence(score, log=log)


def _correct_column(view: TableView, taken: set[str]) -> str | None:
    """The column that says whether each prediction was right; one that holds classes is none."""
    name = view.named(column_names.CORRECTS, taken)
    if name is None or view.table[name].width is not None:
        return None
    column = view.table[name]
    values = {class_key(v) for v in levels(column)}
    return name if is_zero_one(column) or (len(values) <= 2 and event_of(values)) else None


def _label_by_correct(view: TableView, taken: set[str], confidence: Confidence) -> str | None:
    """The column that equals the prediction where, and only where, that was right."""
    if confidence.correct is None or confidence.predicted is None:
        return None
    right = event(view.table[confidence.correct])
    predicted = keys(view.table[confidence.predicted])
    if right is None:
        return None
    said = np.array(
        [hit if known else None for hit, known in zip(*right, strict=True)], dtype=object
    )
    fits = []
    for column in view.table.columns[:_MOST_CANDIDATES]:
        roles = (confidence.correct, confidence.predicted, confidence.score)
        if column.name in (*taken, *roles) or not is_label_like(column):
            continue
        values = keys(column)
        equal = np.array(
            [None if v is None else v == p for v, p in zip(values, predicted, strict=True)],
            dtype=object,
        )
        if len({*values} - {None}) > 1 and share_equal(equal, said) >= NEARLY_ALL:
            fits.append(column.name)
    if len(fits) != 1:
        return None
    text = (
        f"the column '{short(fits[0])}' is taken as the label: '{short(confidence.predicted)}' equals it where "
        f"'{short(confidence.correct)}' says that it was right"
    )
    view.note(Notice.LABEL_COLUMN, "info", text)
    return fits[0]


def _is_of_event(
    view: TableView, score: ScoreColumns, label: str | None, confidence: Confidence
) -> bool:
    """Whether a score is the probability of the event rather than the confidence of the prediction, as the values say.

    Raises
    ------
    InputError
        If it can be neither for sure.
    """
    column = view.table[score.columns[0]]
    # Two classes are seen in the label, else in the prediction.
    truth = None if label is None else view.table[label]
    classes = (
        {v for v in keys(truth) if v is not None}
        if truth is not None and truth.width is None
        else set()
    )
    if confidence.predicted is not None:
        classes |= {v for v in keys(view.table[confidence.predicted]) if v is not None}
    name = plain(column.name)
    only_confidence = name in column_names.CONFIDENCES and name not in column_names.PROBABILITIES
    if score.kind == "logits" or not in_unit(column.head) or len(classes) < 2:
        return (
            truth is not None
            and not only_confidence
            and len(classes) == 2
            and confidence.correct is None
            and confidence.predicted is None
        )
    p = column.head[~np.isnan(column.head)].astype(float)
    below = float(np.mean(p < 1 / len(classes) - 1e-6)) if p.size else 0.0
    if len(classes) > 2:
        if below > BELOW_CHANCE and p.size >= FEWEST_ROWS:
            raise _no_confidence(column.name, below, len(classes), label, has_event=False)
        return False
    if truth is None or p.size < FEWEST_ROWS:
        return (
            truth is not None
            and confidence.predicted is None
            and confidence.correct is None
            and not only_confidence
        )
    if not only_confidence and confidence.predicted is None and confidence.correct is None:
        return True
    agrees = _threshold_agrees(view, column, confidence.predicted)
    if below > 0 and agrees and not only_confidence:
        return True
    if below > BELOW_CHANCE or (below > 0 and agrees):
        if not only_confidence and confidence.predicted is None:
            return True
        raise _no_confidence(column.name, below, 2, label, has_event=True)
    return False


def _threshold_agrees(view: TableView, score: Column, predicted: str | None) -> bool:
    """Whether the prediction is the event where the score is at least 1/2, in nearly all rows."""
    found = None if predicted is None else event(view.table[predicted])
    if found is None:
        return False
    says, known = found
    at_least = score.head >= 0.5
    return len(says) >= FEWEST_ROWS and float(np.mean((says == at_least)[known])) >= NEARLY_ALL


def _no_confidence(
    name: str, below: float, k: int, label: str | None, *, has_event: bool
) -> InputError:
    readings = [Reading("a confidence all the same", {"kind": "confidence"})]
    if has_event:
        chosen = {"kind": "probabilities", "scores": (name,)} | ({"label": label} if label else {})
        readings.insert(0, Reading("the probability of the event", chosen))
    return InputError(
        f"'{short(name)}' lies below 1/{k} in {below:.0%} of the rows, which the confidence of a prediction "
        f"among {k:,} classes cannot",
        remedy="say what it is",
        readings=readings,
    )


def _top_of_pipeline(view: TableView, taken: set[str]) -> Confidence | None:
    """Find ``label`` and ``score`` of a Hugging Face pipeline, the predicted class and its probability, beside the true class."""
    label, score = (view.plain.get(name) for name in ("label", "score"))
    if label is None or score is None or {label, score} & taken or view.options.label == label:
        return None
    truth = view.options.label or view.named(column_names.LABELS, {*taken, label, score})
    if truth is None or not view.table[score].numeric or view.table[score].width is not None:
        return None
    if view.table[label].type != "text" or view.table[truth].type != "text":
        return None
    text = f"'{label}' and '{score}' are read as the predicted class and its confidence, '{truth}' as the true class"
    view.note(Notice.SCORE_COLUMNS, "info", text)
    return Confidence(score, predicted=label)


# One label per class: one-hot, or several labels


def _with_one_hot(view: TableView, found: _Found, taken: set[str]) -> _Found:
    """Find the 0/1 columns that belong to the score columns, one each: one-hot labels, or several labels, of which each row has any number."""
    first = found.scores[0]
    if len(first.columns) != first.width:
        return found
    zero_one = [
        c
        for c in view.table.columns
        if c.name not in taken | found.used - {found.label} and is_zero_one(c)
    ]
    if first.width == 1:
        ends = (f"{first.columns[0]}{ending}" for ending in column_names.OUTCOME_ENDINGS)
        plain_ends = {plain(end) for end in ends} | {f"y_{plain(n)}" for n in first.class_names}
        outcome = next(
            (c.name for c in zero_one if plain(c.name) in plain_ends and c.name != found.label),
            None,
        )
        if outcome is not None and (found.label is None or not view.options.label):
            return replace(found, label=None, one_hot=(outcome,))
        return found
    if found.label is not None and found.label not in {c.name for c in zero_one}:
        return found
    names = [c.name for c in zero_one]
    columns = _outcomes_of(first, names) or next(
        (
            tuple(dict(zip(b.labels, b.columns, strict=True))[c] for c in first.class_names)
            for b in blocks_named_by(first.class_names, names)
        ),
        (),
    )
    if len(columns) != first.width:
        return found
    if len(columns) == 2 and all(c.endswith(column_names.OUTCOME) for c in columns):
        # Two complementary forecasts of one event: the first one counts.
        view.note(
            Notice.COMPLEMENT,
            "info",
            f"'{short(first.columns[0])}' is taken as P(class 1), with its outcome '{short(columns[0])}'; "
            f"'{short(first.columns[1])}' is its complement",
        )
        one = ScoreColumns((first.columns[0],), (), first.kind, 1, first.model)
        return replace(found, scores=(one, *found.scores[1:]), label=None, one_hot=(columns[0],))
    labels = np.stack([view.table[c].head.astype(float) for c in columns], axis=1)
    scores = [view.table[c] for c in first.columns]
    several = _are_several(labels) and not (first.kind == "probabilities" and sum_to_one(scores))
    if several:
        _note_multilabel(view, first.class_names)
    return replace(found, label=None, one_hot=columns, multilabel=several)


def _outcomes_of(scores: ScoreColumns, names: Sequence[str]) -> tuple[str, ...]:
    """The columns that are called like the score columns, with the same ending (prob1 and prob1_outcome)."""
    by_plain = {plain(name): name for name in names}
    for ending in column_names.OUTCOME_ENDINGS:
        wanted = [plain(f"{column}{ending}") for column in scores.columns]
        if all(name in by_plain for name in wanted):
            return tuple(by_plain[name] for name in wanted)
    return ()


def _with_label_array(view: TableView, found: _Found) -> _Found:
    """See whether a 2-D label holds several labels per row."""
    column = None if found.label is None else view.table[found.label]
    if column is None or (column.width or 1) < 2 or not found.scores or not column.numeric:
        return found
    first = found.scores[0]
    scores = view.table[first.columns[0]]
    heads = scores.head if first.width > 1 and len(first.columns) == 1 else None
    if heads is None or heads.ndim != 2 or column.head.ndim != 2 or column.width != first.width:
        return found
    sums = np.nansum(heads.astype(float), axis=1)
    is_distribution = first.kind == "probabilities" and bool((np.abs(sums - 1) < 0.02).mean() > 0.9)
    if not np.isin(column.head, (0, 1)).all() or is_distribution or not _are_several(column.head):
        return found
    _note_multilabel(view, first.class_names or tuple(map(str, range(first.width))))
    return replace(found, multilabel=True)


def _are_several(labels: npt.NDArray[Any]) -> bool:
    """Whether 0/1 labels, shape (n, K), are none or several of the classes in some rows."""
    return bool((np.nansum(labels.astype(float), axis=1) != 1).any())


def _note_multilabel(view: TableView, names: Sequence[str]) -> None:
    text = f"multi-label: rows have none or several of the {len(names)} labels, so each label is a model of its own with two classes"
    view.note(Notice.LABEL_VALUES, "info", text)


# The label


def label_column(view: TableView, scores: tuple[ScoreColumns, ...], used: set[str]) -> str | None:
    """Find the column with the true class: by its name, or as the only candidate; None if a map does not need one."""
    optional = isinstance(view.options, ReadingForMap)
    named = view.named(column_names.LABELS, used) if view.table.named else None
    if named is not None and view.table[named].type == "other":
        if optional:
            return None
        raise InputError(f"cannot be the label: {view.table[named].note}", column=named)
    if named is not None:
        return named
    event_column = view.named(column_names.EVENTS, used) if view.table.named else None
    if event_column is not None and scores[0].width <= 2 and is_zero_one(view.table[event_column]):
        text = f"the column '{short(event_column)}' is taken as the label"
        view.note(Notice.LABEL_COLUMN, "info", text)
        return event_column
    if optional and view.table.named:
        return None
    not_labels = (*column_names.PREDICTED, *column_names.CONFIDENCES, *column_names.CORRECTS)
    free = [
        c
        for c in view.table.columns
        if c.name not in used
        and c.type != "other"
        and (c.width is None or c.width == scores[0].width)
        and plain(c.name) not in not_labels
    ]
    classes = {class_key(name) for name in scores[0].class_names}
    fitting = [
        c
        for c in free
        if c.type == "text" and levels(c) and {class_key(v) for v in levels(c)} <= classes
    ]
    whole_numbers = [c for c in free if is_label_like(c)]
    called = [
        c
        for c in whole_numbers
        if {*column_names.words(c.name)} & column_names.LABEL_WORDS
        and not {*column_names.words(c.name)} & column_names.NO_LABEL_WORDS
    ]
    only_whole = whole_numbers if len(whole_numbers) == 1 or not view.table.named else []
    for candidates in (fitting, called, only_whole, free):
        if len(candidates) == 1 or (candidates and not view.table.named):
            column = candidates[-1] if not view.table.named else candidates[0]
            if view.table.named and not _can_be_label(column, scores[0]):
                break
            where = _where(view, column.name)
            view.note(Notice.LABEL_COLUMN, "info", f"{where} taken as the label")
            return column.name
    if optional:
        return None
    plural = "s" if scores[0].width != 1 else ""
    word = "probability" if scores[0].kind == "probabilities" else "logit"
    what = f"{scores[0].width:,} {word} column{plural} found"
    possible = [c for c in free if _can_be_label(c, scores[0])]
    if not possible:
        raise InputError(
            f"there is no label column: {what}, but nothing to compare them with",
            remedy="add a column 'label' with the true class",
        )
    raise _several_labels(
        view,
        [c.name for c in possible],
        f"there is no column called 'label' ({what}), and several could be it",
    )


def _can_be_label(column: Column, scores: ScoreColumns) -> bool:
    """Whether the values may be classes: not more of them than there are, and no fractions."""
    if column.width is not None:
        return True
    return is_label_like(column) and len(levels(column)) <= max(2, scores.width)


def _where(view: TableView, name: str) -> str:
    if view.table.named:
        return f"the column '{short(name)}' is"
    place = view.table.places[name]
    if place == 0:
        return "the first column is"
    return "the last column is" if place == len(view.table.names) - 1 else f"{name} is"


# Which label belongs to which score column


def _with_labels(
    view: TableView, scores: ScoreColumns, label: str | None, taken: set[str]
) -> ScoreColumns:
    """Say how the label spells the class of each column, where neither names nor positions do."""
    if label is None or scores.width < 2 or view.options.class_names or view.table.class_names:
        return replace(scores, labels=())
    column = view.table[label]
    if column.width is not None or len(scores.columns) != scores.width:
        return replace(scores, labels=())
    names = [class_key(name) for name in scores.class_names]
    if scores.labels:
        spelled = [class_key(text) for text in scores.labels]
        return replace(scores, labels=() if spelled == names else scores.labels)
    values = {v for v in keys(column) if v is not None}
    if not values or values <= {*names} or view.options.label_base is not None:
        return scores
    numbers = [whole(v) for v in values]
    k = scores.width
    if None not in numbers:
        base = 1 if min(numbers) == 1 and max(numbers) == k else 0  # type: ignore[type-var]
        if base == 0 and not all(0 <= n < k for n in numbers):  # type: ignore[operator]
            return scores if values != {"-1", "1"} else _by_polarity(scores, names, values)
        counted = [str(j + base) for j in range(k)]
        if k == 2 and event_of(names) is not None and len({*names}) == 2:
            return _by_polarity(scores, names, {*counted})
        order = counted if view.options.scores else _counted(view, scores, column, counted)
        if base == 1:
            text = f"the labels of '{short(label)}' count the classes from 1"
            view.note(Notice.LABEL_VALUES, "info", text)
        return replace(scores, labels=tuple(order)) if base or order != counted else scores
    if k == 2 and event_of(values) is not None:
        return _by_polarity(scores, names, values)
    return scores


def _by_polarity(scores: ScoreColumns, names: Sequence[str], values: set[str]) -> ScoreColumns:
    """Match the event of the label to the column that is called like one; the second column otherwise."""
    happened = event_of(values)
    if happened is None or len(values) != 2:
        return scores
    (other,) = values - {happened}
    event_name = event_of(names)
    if event_name == names[0] and names[0] != names[1]:
        return replace(scores, labels=(happened, other))
    return scores


def _counted(view: TableView, scores: ScoreColumns, label: Column, counted: list[str]) -> list[str]:
    """The number of each class in the label: its position, or its position in the alphabet, whichever the labels follow."""
    names = scores.class_names
    rank = {name: j for j, name in enumerate(sorted(names))}
    alphabet = [counted[rank[name]] for name in names]
    if alphabet == counted:
        return counted
    columns = [view.table[c] for c in scores.columns]
    z = clearer(columns, keys(label), counted, alphabet)
    if abs(z) < CLEAR and len(label.head) >= FEWEST_ROWS:
        raise InputError(
            f"nothing says which class each number in '{short(label.name)}' is: the order of the columns and that "
            "of the alphabet differ",
            remedy="choose",
            readings=[
                Reading(f"{counted[0]} is '{short(one[0])}'", {"scores": one})
                for one in (
                    scores.columns,
                    tuple(c for _, c in sorted(zip(names, scores.columns, strict=True))),
                )
            ],
        )
    order = alphabet if z < 0 else counted
    if len(label.head) >= FEWEST_ROWS:
        way = "in alphabetical order" if z < 0 else "in the order of the columns"
        text = f"the numbers in '{short(label.name)}' are read as classes {way}, which the scores follow"
        view.note(Notice.LABEL_VALUES, "info", text)
    return order


# Splits, identifiers, times and groups


#: Columns of fractions with more distinct values than this are measurements, not groups.
_MOST_FRACTIONS = 20


def split_column(view: TableView) -> str | None:
    """The column that names the split of each row."""
    return _role(view, view.options.split_column, column_names.SPLITS)


def identifier_column(view: TableView) -> str | None:
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
    for usual, name in view.plain.items():
        words = set(usual.split("_"))
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
    for name, usual in ((c.name, plain(c.name)) for c in view.table.columns):
        if name in used or view.table[name].width is not None:
            continue
        column = view.table[name]
        # In benchmarks of language models, "subject" is a topic, not a person.
        may_cluster = view.table.questions is None or usual != "subject"
        repeats = may_cluster and column.type in ("text", "integer") and _has_repeats(column)
        if options.cluster_column is None and usual in column_names.CLUSTERS and repeats:
            yield Notice.LOGS_AND_HINTS.finding(
                "info",
                f"the values of '{name}' repeat: if rows of one value belong together, say so (cluster column "
                f"'{name}', --cluster), and intervals and p-values take it into account",
            )
        elif options.weight_column is None and usual in column_names.WEIGHTS and column.numeric:
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
        and plain(c.name) not in ignored
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


# Options


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
        called = plain(name)
        for meaning, usual, chosen in (
            ("label", column_names.LABELS, options.label),
            ("score", column_names.PROBABILITIES, options.scores),
        ):
            if called in usual and not chosen:
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
