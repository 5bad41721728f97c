"""The column with the true class, found by its name, by its values, or one column per class; and which column each label is."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from calviz.core.errors import InputError, Reading
from calviz.data import column_names, roles
from calviz.data.column_names import class_key, event_of, is_event_first, plain, whole
from calviz.data.format import SAMPLE_ROWS, Column, Notice, short, span
from calviz.data.loaded import ReadingForMap
from calviz.data.roles import CLEAR, FEWEST_ROWS, ColumnRoles, ScoreColumns, TableView, share_equal
from calviz.data.score_columns import by_known_words, is_named_after_another, named_by_labels

#: With more columns than this that may be the label, the header is not searched for the values of each.
_MOST_CANDIDATES = 50
#: An answer wherever a label is asked for.
_NO_LABELS = Reading("there are no labels yet", {"label": ""})


def named_label(view: TableView, taken: set[str]) -> str | None:
    """The column that is called like a label."""
    if view.options.label is not None or not view.table.named:
        return view.options.label
    columns = [view.table[n] for name in column_names.LABELS if (n := view.named((name,), taken))]
    named = next((c for c in columns if c.is_label_like or c.width is not None), None)
    return None if named is None or named.type == "other" else named.name


def label_by_word(view: TableView, taken: set[str]) -> str | None:
    """The only column like a label whose name has a word for it."""
    free = (c for c in view.table.columns if c.name not in taken)
    found = [c.name for c in free if c.is_called_label and c.is_label_like]
    return found[0] if len(found) == 1 else None


def event_column(view: TableView, taken: set[str]) -> str | None:
    """The column of 0 and 1, or of words that say the same, that is called like an event, such as a default or a death."""
    named = view.named(column_names.EVENTS, taken) if view.table.named else None
    return named if named is not None and view.table[named].is_called_event else None


def named_by_an_unnamed_label(view: TableView, taken: set[str]) -> ColumnRoles | None:
    """Find columns that are named after the values of a column, which is then the label.

    Raises
    ------
    InputError
        If they are named after the values of several columns.
    """
    predictions = {view.plain[n] for n in column_names.PREDICTED if n in view.plain}
    free = [c for c in view.table.columns if c.name not in taken | predictions]
    # Grades, such as 1.5 and 2.0, may be classes; fractions with more distinct values are none.
    grades = [c for c in free if c.type == "number" and c.width is None and len(c.levels) <= 12]
    free = [c for c in free if view.table.named and (c.is_label_like or c in grades)]
    candidates = [c for c in free if not is_named_after_another(view, c)]
    found: dict[str, tuple[ScoreColumns, ...]] = {}
    doubtful: dict[str, tuple[ScoreColumns, ...]] = {}
    for column in candidates[:_MOST_CANDIDATES]:
        notices = len(view.notices)
        scores = named_by_labels(view, taken, column.name)
        del view.notices[notices:]
        may_be = _may_be_true_class(view, column, scores[0]) if scores else False
        if may_be is not False:
            (found if may_be else doubtful)[column.name] = scores
    # In few rows, the class of the largest score may be the label by chance.
    found = {n: s for n, s in found.items() if not _equals_best(view, view.table[n], s[0])} or found
    called = [n for n in found if view.table[n].words & column_names.LABEL_WORDS]
    # Yes and no are the classes 1 and 0, but no more so than numbers are.
    texts = [n for n, s in found.items() if view.table[n].type == "text" and not _numbered(s[0])]
    names = called or texts or list(found)
    if not names and not event_column(view, taken):
        names = [n for n in doubtful if view.table[n].type == "text"]
    if all(view.table[n].is_zero_one for n in names) and with_labels_of_their_own(view, taken):
        return None
    if len(names) > 1 or (names and not found):
        first = span((found or doubtful)[names[0]][0].columns)
        several = "several columns" if len(names) > 1 else "a column, which hardly follow them"
        what = f"the score columns '{first}' are named after the values of {several}"
        raise _several_labels(names, what)
    if not names:
        return None
    text = f"the column '{short(names[0])}' is taken as the label: the score columns are named after its values"
    view.note(Notice.LABEL_COLUMN, "info", text)
    return ColumnRoles(named_by_labels(view, taken, names[0]), label=names[0])


def _numbered(scores: ScoreColumns) -> bool:
    """Whether scores are named after numbers of classes."""
    return all(column_names.whole(name) is not None for name in scores.class_names)


def _may_be_true_class(view: TableView, column: Column, scores: ScoreColumns) -> bool | None:
    """Whether a column that nobody calls a label may be one: it follows the scores, but is not just the class of the largest.

    None if the values do not say it.
    """
    best, truth, words = view.best(scores), column.keys, column.words
    correct = plain(column.name) in column_names.CORRECTS  # of OpenML: the true class
    if share_equal(best, truth) == 1 or (words & column_names.NO_LABEL_WORDS and not correct):
        return False
    if words & column_names.LABEL_WORDS:
        return True
    if len(truth) < FEWEST_ROWS:
        return column.type == "text" or None
    return roles.agree(best, truth) or _is_followed(view, column, scores) or None


def ask_if_predicted(view: TableView, found: ColumnRoles, taken: set[str]) -> None:
    """Ask whether a column called like a label is one, if it is the class of the largest score in all rows and another column may be the label.

    Raises
    ------
    InputError
        With a reading for each of the columns.
    """
    first, label = found.scores[0], found.label
    if view.options.label is not None or label is None or not first.is_block:
        return
    words = view.table[label].words & (column_names.LABEL_WORDS - {"class", "label"})
    if words or plain(label) in ("label", "labels"):
        return  # a prediction may be called class, but hardly label or truth
    used, classes = {*taken, *found.used}, {*first.keys}
    free = [c for c in view.table.columns if c.is_label_like and c.name not in used]
    free = [c for c in free if len(c.classes) > (c.type != "text") and c.classes <= classes]
    possible = [c for c in free if not c.words & column_names.NO_LABEL_WORDS]
    names = [c.name for c in possible if not _equals_best(view, c, first)]
    if names and _equals_best(view, view.table[label], first):
        what = f"'{short(label)}' is the class of the largest score in all rows, as a prediction is, and others may be the label"
        raise _several_labels([*names, label], what)


def ask_what_was_right(view: TableView, score: ScoreColumns, label: str, taken: set[str]) -> None:
    """Ask which column says whether a single score was right, where the one called like a label holds several texts.

    Raises
    ------
    InputError
        With a reading for each column of 0 and 1, and for each true class beside a prediction.
    """
    truth, options = view.table[label], view.options
    is_chosen = options.label is not None or options.class_names or options.for_map
    several = truth.type == "text" and len(truth.classes) > 2 and not truth.pairs
    if is_chosen or not several or score.width > 1:
        return
    name = score.columns[0]
    free = [c for c in view.table.columns if c.name not in {*taken, name} and c.is_label_like]
    readings = [
        Reading(f"'{short(c.name)}' is whether it was right", {"label": c.name})
        for c in free
        if c.is_zero_one and _is_followed(view, c, score)
    ]
    classes = [c for c in free if len(c.classes) > 2][:_MOST_CANDIDATES]
    for column in (c for c in classes if c.is_called_label):
        for said in (c for c in classes if c.classes & column.classes and c is not column):
            if roles.agree(said.keys, column.keys):
                text = f"'{short(column.name)}' is the true class, and '{short(said.name)}' the prediction"
                chosen = {"label": column.name, "prediction_column": said.name}
                readings.append(Reading(text, chosen | {"scores": (name,), "kind": "confidence"}))
    if readings:
        what = f"'{short(name)}' is one score, but '{short(label)}' has {len(truth.classes):,} classes: what says whether it was right?"
        raise InputError(what, readings=[*readings[:3], _NO_LABELS])


def note_agreement(view: TableView, found: ColumnRoles, taken: set[str]) -> None:
    """Say what speaks for the classes of the columns: that they are the labels, and that the prediction is the class of the largest."""
    first = found.scores[0]
    if not first.is_block or first.kind == "logits":
        return
    classes, reasons = {*first.keys}, []
    if found.label is not None and view.table[found.label].classes <= classes:
        reasons.append(f"class names are the values of '{short(found.label)}'")
    name = view.predicted(taken | found.used)
    predicted = None if name is None else view.table[name]
    if (
        predicted is not None
        and len(predicted.head) >= FEWEST_ROWS
        and predicted.classes <= classes
    ):
        said, share = short(predicted.name), share_equal(view.best(first), predicted.keys)
        if share < 0.5:
            text = f"the class of the largest score is '{said}' in only {share:.0%} of the rows: are the columns called by the right classes?"
            view.note(Notice.SCORE_COLUMNS, "warning", text)
            return
        where = "all rows" if share == 1 else f"{share:.1%} of the rows"
        reasons.append(f"the largest score agrees with '{said}' in {where}")
    if reasons and not by_known_words(first.columns):
        text = f"'{span(first.columns)}' are read as the probabilities of {span(first.class_names)}: {'; '.join(reasons)}"
        view.note(Notice.SCORE_COLUMNS, "info", text)


def _several_labels(names: Sequence[str], what: str) -> InputError:
    return InputError(
        f"{what}: {', '.join(short(name) for name in names[:10])}; say which one is the label",
        readings=[
            *(Reading(f"'{short(name)}' is the label", {"label": name}) for name in names[:3]),
            _NO_LABELS,
        ],
    )


def label_column(view: TableView, scores: tuple[ScoreColumns, ...], used: set[str]) -> str | None:
    """Find the column with the true class: by its name, or as the only candidate; None if a map does not need one."""
    table, first = view.table, scores[0]
    named = view.named(column_names.LABELS, used) if table.named else None
    if named is not None and table[named].type != "other":
        return named
    if table.named and view.options.for_map:
        return None
    if named is not None:
        raise InputError(f"cannot be the label: {table[named].note}", column=named)
    not_labels = {*column_names.PREDICTED, *column_names.CONFIDENCES, *column_names.CORRECTS}
    free = [c for c in table.columns if c.name not in used and c.type != "other"]
    free = [c for c in free if plain(c.name) not in not_labels]
    best = view.best(first) if first.is_block else np.empty(0)
    predicted = [c for c in free if _is_prediction(c, best)]
    if all(c in predicted for c in free if c.is_label_like):
        predicted = [c for c in predicted if c.type == "text"]  # numbers may be the only labels
    former = [c for c in free if c.words & column_names.FORMER_WORDS]
    free = [c for c in free if c.width in (None, first.width) and c not in (*predicted, *former)]
    # In a flag of events, the others may be blank.
    flags = [c for c in free if None in c.keys and c.classes == {event_of(c.classes)}]
    # One value in all rows is no label if other columns have several.
    free = [c for c in free if not c.is_label_like or len(c.levels) > 1] or free
    classes = {class_key(name) for name in first.class_names}
    whole_numbers = [c for c in free if c.is_label_like]
    # Beside a count that is called like a label, words for an event may be the label.
    counts = [c for c in free if c.numeric and c.is_called_label and not c.is_zero_one]
    may_be_event = bool(counts) and first.width <= 2
    ways = (
        [c for c in free if c.type == "text" and c.levels and c.classes <= classes],
        [c for c in whole_numbers if c.is_called_label or (may_be_event and c.is_called_event)],
        whole_numbers,
        free,
    )
    if table.named:
        few = 0 < len(best) < FEWEST_ROWS
        column = next((way[0] for way in ways[: 2 if few else 4] if len(way) == 1), None)
        if column is not None and not _is_followed(view, column, first):
            column = None
    else:
        column = next((way[-1] for way in ways if way), None)
        # The last column may be a group of the rows, if another holds 0 and 1.
        if column in whole_numbers and not column.numeric and any(c.is_zero_one for c in free):
            column = None
    if column is not None:
        view.note(Notice.LABEL_COLUMN, "info", f"{_where(view, column.name)} taken as the label")
        return column.name
    if view.options.for_map:
        return None
    plural = "s" if first.width != 1 else ""
    word = "probability" if first.kind == "probabilities" else "logit"
    many = f"{len(scores):,} models of " * (len(scores) > 1)
    what = f"{many}{first.width:,} {word} column{plural}{' each' * bool(many)} found"
    # Beside the scores of models, which sum to no 1, two words may say whether the event happened.
    sums = first.is_block and first.kind == "probabilities"
    models = sums and not roles.sum_to_one(view.columns(first))
    words = [c for c in free if models and c.type == "text" and c.pairs]
    possible = [c for c in free if _can_be_label(c, first) or c in words]
    possible += [c for c in flags if c not in possible and first.width <= 2]
    worded = _of_other_words(view, free, first)
    of_scores = {word for c in view.columns(first) for word in c.words}
    # The first one is what a click on a question would take.
    events_first = sorted(
        possible, key=lambda c: (not c.is_called_event, not c.words & of_scores, not c.is_zero_one)
    )
    possible = [*worded, *(c for c in events_first if c not in worded)]
    possible = [c for c in possible if not c.words & column_names.PREDICTED_WORDS] or possible
    possible = [c for c in possible if plain(c.name) not in column_names.MODELS] or possible
    sexes = [c for c in possible if c.words & column_names.SEX or c.classes == {"f", "m"}]
    sexes = [c for c in sexes if not (c.words | c.classes) & of_scores]
    possible = [c for c in possible if c not in sexes] or possible
    # Such as a reference standard, before the region.
    negative = {"neg", *column_names.NO_EVENT_WORDS}
    possible.sort(key=lambda c: not (c.is_called_event or c.classes & negative))
    possible.sort(key=lambda c: first.width <= 2 and _is_far_off(view, c, first))
    one = len(table[first.columns[0]].head) == 1
    called = column_names.LABEL_WORDS - {"y"}  # which may be years
    possible.sort(key=lambda c: one and not (c.is_called_label and c.words & called))
    if not possible:
        more = [(c, len(c.levels), len(c.head) >= SAMPLE_ROWS) for c in whole_numbers]
        near = [
            f"'{short(c.name)}' has {'at least ' * sampled}{size:,} value{'s' * (size != 1)}"
            for c, size, sampled in more
        ]
        near += [f"'{short(c.name)}' is the class of the largest score" for c in predicted]
        stops = f" ({', '.join(near[:3])})" if near else ""
        amounts = [c.name for c in view.numeric(used) if _is_amount(view, c, first)]
        if len(amounts) == 1:
            event = f"the event is that '{short(amounts[0])}' is above 0"
            above = Reading(event, {"label": amounts[0], "repair": ("above-zero",)})
            asked = f"there is no label column ({what}): is {event.replace(' is', '', 1)}?"
            raise InputError(asked, readings=[_NO_LABELS, above])
        # Beside one row, the app shows a guess.
        none = "one row does not say which is the label" if one else "there is no label column"
        remedy = "add a column 'label' with the true class" + ", or say which column it is" * one
        raise InputError(
            f"{none}: {what}, but nothing to compare them with{stops}",
            remedy=remedy,
            unlabelled=not one,
        )
    none = f"there is no column called 'label' ({what})"
    if len(possible) == 1:
        only, name = possible[0], short(possible[0].name)
        answers = [Reading(f"'{name}' is the true class", {"label": only.name}), _NO_LABELS]
        known = of_scores | column_names.VERDICTS
        two = only.type == "text" and len(only.classes) == 2 and not only.words & known
        if (two and not event_of(only.classes)) or not worded.get(only, True):
            answers.reverse()  # such as the sex, or a type that some scores are surer of
        raise InputError(f"{none}: is '{name}' the true class?", readings=answers)
    raise _several_labels([c.name for c in possible], f"{none}, and several could be it")


def _is_far_off(view: TableView, column: Column, scores: ScoreColumns) -> bool:
    """Whether neither of two classes is nearly as frequent as the scores say: the sex beside 3 % of events."""
    head, share = view.columns(scores)[0].head, np.mean(column.keys == min(column.classes))
    odds = np.clip([np.nanmean(head) / (100 if np.nanmax(head) > 1 else 1), share], 1e-3, 0.999)
    return bool(abs(np.diff(abs(np.log(odds / (1 - odds)))))[0] > 2)


def _is_amount(view: TableView, column: Column, scores: ScoreColumns) -> bool:
    """Whether a column holds amounts from 0 up, of which more than 0 may be the event: a single score says whether it is."""
    score, some = view.columns(scores)[-1].head.astype(float), column.head > 0
    if scores.width > 1 or column.type != "number" or score.shape != some.shape:
        return False
    return bool(some.any() and np.nanmin(column.head) == 0) and roles.follows(score, some) > CLEAR


def _of_other_words(
    view: TableView, free: list[Column], scores: ScoreColumns
) -> dict[Column, bool]:
    """The columns of as many texts as there are classes but for few rows, some in words of their own, that may be the true class, best first, and whether they likely are.

    That are those whose values are alike the classes, that are called like a label, or that the scores follow, each value another one, of
    which it is the value that follows it most.
    """
    k, names = scores.width, {class_key(name) for name in scores.class_names}
    if not 1 < k == len(scores.columns) <= _MOST_CLASSES:
        return {}
    heads, found = [c.head.astype(float) for c in view.columns(scores)], []
    for column in free:
        if column.type != "text" or len(column.classes) < k or column.classes <= names:
            continue
        rows = Counter(key for key in column.keys if key is not None)
        alike = column_names.paired(rows, scores.class_names) is not None
        if not (keys := column_names.most(rows, k)):
            continue
        clear, likely, few = 0.0, True, len(column.head) < FEWEST_ROWS
        if len(column.head) == len(heads[0]):
            z, best = _ranked(heads, [np.array(column.keys == key, bool) for key in keys])
            each = z[range(k), best]
            clear = float(each.sum() / np.sqrt(k)) if each.min() > 0 else 0.0
            likely = np.array_equal(z.argmax(axis=1), best)
        if alike or column.is_called_label or few or clear > CLEAR:
            found.append((alike, clear, column, alike or column.is_called_label or likely))
    found.sort(key=lambda each: each[:2], reverse=True)
    return {column: likely for *_, column, likely in found}


def _ranked(
    heads: Sequence[npt.NDArray[Any]], hits: Sequence[npt.NDArray[np.bool_]]
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.intp]]:
    """How clearly the hits of each label, of K, follow each of K columns, shape (K, K), and which label each column is of, so that they follow best."""
    from scipy.optimize import linear_sum_assignment

    z = np.array([[roles.follows(head, hit) for hit in hits] for head in heads])
    return z, linear_sum_assignment(-z)[1]


def _equals_best(view: TableView, column: Column, scores: ScoreColumns) -> bool:
    return np.array_equal(view.best(scores), column.keys)


def _is_prediction(column: Column, best: npt.NDArray[Any]) -> bool:
    """Whether each class of the largest score is another value of a column, in all rows."""
    if not column.is_label_like or not FEWEST_ROWS <= len(best) == len(column.keys):
        return False
    return len({*zip(best, column.keys, strict=True)}) == len({*best}) == len(column.classes) > 1


def _can_be_label(column: Column, scores: ScoreColumns) -> bool:
    """Whether the values may be classes: no fractions, and no more of them than classes."""
    if column.width is not None:
        return True
    values = column.classes if column.is_label_like else set()
    if not values or not (len(values) <= max(2, scores.width) or column.pairs):
        return False
    named = {class_key(name) for name in scores.class_names if whole(name) is None}
    # Words that are none of the classes name something else.
    is_event = event_of(values) is not None and scores.width == 2
    return column.type != "text" or len(named) < 2 or bool(values & named) or is_event


def _is_followed(view: TableView, column: Column, scores: ScoreColumns) -> bool:
    """Whether a column that nobody calls a label can be one, and the scores say something of it, if there are rows enough to see."""
    if not _can_be_label(column, scores):
        return False
    if column.width is not None or len(column.head) < FEWEST_ROWS:
        return True
    heads = [c.head for c in view.columns(scores)]
    if column.words & column_names.LABEL_WORDS or any(h.shape != column.head.shape for h in heads):
        return True
    hits = [np.array(column.keys == value, dtype=bool) for value in column.classes]
    return any(
        abs(roles.follows(head.astype(np.float64), hit)) > CLEAR
        for head in heads
        for hit in hits[:_MOST_CANDIDATES]
    )


def _where(view: TableView, name: str) -> str:
    if view.table.named:
        return f"the column '{short(name)}' is"
    place, last = view.table.places[name], len(view.table.names) - 1
    return {last: "the last column is", 0: "the first column is"}.get(place, f"{name} is")


# ---- One label per class: one-hot, or several labels


def with_one_hot(view: TableView, found: ColumnRoles, taken: set[str]) -> ColumnRoles:
    """Find the 0/1 columns that belong to the score columns, one each: one-hot labels, or several labels, of which each row has any number."""
    first, label = found.scores[0], found.label
    if first.width not in (len(first.columns), len(first.class_names)):
        return found
    if label is not None and first.width > 1 and not view.table[label].is_zero_one:
        return found
    names = _zero_one(view, taken | (found.used - {label}))
    if first.width == 1:
        ends = {plain(f"{first.columns[0]}{ending}") for ending in column_names.OUTCOME_ENDINGS}
        ends |= {f"y_{plain(name)}" for name in first.class_names}
        outcome = next((name for name in names if plain(name) in ends and name != label), None)
        if outcome is None or (label is not None and view.options.label):
            return found
        return replace(found, label=None, one_hot=(outcome,))
    columns: tuple[str, ...] = ()
    for words in (w for w in (first.columns, first.class_names) if len(w) == first.width):
        for block in column_names.blocks_named_by(words, names)[:1]:
            place = dict(zip(block.labels, block.columns, strict=True))
            columns = columns or tuple(place[word] for word in words)
    if len(columns) != first.width:
        return found
    if len(columns) == len(first.columns) == 2 and all(
        c.endswith(column_names.OUTCOME) for c in columns
    ):
        # Two complementary forecasts of one event: the first one counts.
        text = (
            f"'{short(first.columns[0])}' is taken as P(class 1), with its outcome '{short(columns[0])}'; "
            f"'{short(first.columns[1])}' is its complement"
        )
        view.note(Notice.COMPLEMENT, "info", text)
        one = ScoreColumns((first.columns[0],), (), first.kind, 1, first.model)
        return replace(found, scores=(one, *found.scores[1:]), label=None, one_hot=(columns[0],))
    return _with_columns_of_labels(view, found, columns)


def _zero_one(view: TableView, taken: set[str]) -> list[str]:
    return [c.name for c in view.table.columns if c.name not in taken and c.is_zero_one]


def _with_columns_of_labels(
    view: TableView, found: ColumnRoles, columns: tuple[str, ...]
) -> ColumnRoles:
    """Take columns of 0 and 1 as one-hot labels, or as labels of their own if rows have none or several."""
    first = found.scores[0]
    labels = np.stack([view.table[c].head.astype(float) for c in columns], axis=1)
    is_distribution = first.kind == "probabilities" and roles.sum_to_one(view.columns(first))
    several = bool((np.nansum(labels, axis=1) != 1).any()) and not is_distribution
    return replace(found, label=None, one_hot=columns, multilabel=several)


def with_labels_of_their_own(view: TableView, taken: set[str]) -> ColumnRoles | None:
    """Find columns of 0 and 1, and as many score columns that are named after them."""
    if not view.table.named or view.options.label is not None:
        return None
    zero_one = _zero_one(view, taken)
    numbers = [c for c in view.numeric({*taken, *zero_one}) if c.type == "number" and c.in_unit]
    without = column_names.without_common_words(zero_one) if len(zero_one) > 1 else ()
    for names in (zero_one, without):
        for block in column_names.blocks_named_by(names, [c.name for c in numbers]):
            place = dict(zip(names, zero_one, strict=True))
            kind = view.options.kind_of_scores or "probabilities"
            scores = ScoreColumns(block.columns, block.labels, kind, len(block.columns))
            columns = tuple(place[name] for name in block.labels)
            return _with_columns_of_labels(view, ColumnRoles((scores,)), columns)
    return None


# ---- Labels and columns: by name, by words for the event, by number, and what the labels follow

#: With more classes than this, no other order than the usual ones is looked for.
_MOST_CLASSES = 50


def with_labels(view: TableView, scores: ScoreColumns, label: str | None) -> ScoreColumns:
    """Say how the label spells the class of each column, where names do not.

    Raises
    ------
    InputError
        If nothing says which number or word is which column, or names, numbers and labels contradict each other.
    """
    plain = replace(scores, labels=())
    if label is None or scores.width < 2 or view.options.class_names or view.table.class_names:
        return plain
    column = view.table[label]
    if column.width is not None or len(scores.class_names) != scores.width:
        return plain
    names = [class_key(name) for name in scores.class_names]
    if scores.labels:
        # Labels that are the names need no table, and are read faster without one.
        spelled = tuple(class_key(text) for text in scores.labels)
        texts = column.type == "text" and scores.labels == scores.class_names
        return plain if texts or spelled == scores.class_names else scores
    values = column.classes
    if not values or values <= {*names} or view.options.label_base is not None:
        return plain
    numbers = [number for v in values if (number := whole(v)) is not None]
    matching = _Matching(view, scores, column)
    # Fields such as LABEL_1 hold the labels, as names of columns do, which found these by them.
    blocks = [] if scores.is_block else column_names.blocks_named_by(values, scores.class_names)
    if blocks and len(blocks[0].columns) == scores.width:
        of = dict(zip(blocks[0].columns, blocks[0].labels, strict=True))
        return replace(scores, labels=tuple(of[name] for name in scores.class_names))
    if len(numbers) < len(values):
        return matching.by_words(values)
    k = scores.width
    if values <= {"-1", "1"} and k == 2 and "-1" in values:
        return matching.by_number(["-1", "1"])
    base = 1 if min(numbers) == 1 and max(numbers) == k else 0
    if min(numbers) < base or max(numbers) >= k + base:
        return plain
    if base == 1:
        text = f"the labels of '{short(label)}' count the classes from 1"
        view.note(Notice.LABEL_VALUES, "info", text)
    return matching.by_number([str(j + base) for j in range(k)])


def with_labels_alike(
    view: TableView, scores: tuple[ScoreColumns, ...], label: str | None
) -> tuple[ScoreColumns, ...]:
    """Say how the label spells the classes, which are the same in all models of several columns: as those do that tell it.

    Raises
    ------
    InputError
        If none tells it, or two contradict each other.
    """
    found, asked = list[ScoreColumns](), list[InputError]()
    for each in scores:
        try:
            found.append(with_labels(view, each, label))
        except InputError as error:
            asked.append(error)
    if len(scores) == 1 and asked:
        raise asked[0]
    if scores[0].width > 1 and len({each.labels for each in found}) != 1:
        raise InputError(
            f"nothing says for sure which class each value of '{short(label or '')}' is, the same for all models; choose one",
            readings=[
                Reading(f"only '{short(each.model)}'", {"scores": each.columns, "models": None})
                for each in scores[:3]
            ],
        )
    if not asked:
        return tuple(found)
    return tuple(
        replace(s, labels=found[0].labels, class_names=found[0].class_names) for s in scores
    )


def with_event_last(view: TableView, found: ColumnRoles) -> ColumnRoles:
    """Put the event last of two classes whose names say which it is: it is the positive class, unless the user gave the order."""
    first, options = found.scores[0], view.options
    ordered = options.scores is not None and not options.scores[0].endswith("*")
    if ordered or options.class_names or view.table.class_names or found.multilabel:
        return found
    if not is_event_first(first.class_names) or first.width != 2:
        return found
    label = None if found.label is None else view.table[found.label]
    is_array = len(first.columns) == 1
    if is_array and (first.logits or (label is not None and label.width is not None)):
        return found
    if isinstance(options, ReadingForMap) and options.map_classes == first.class_names:
        return found
    labels, base = first.labels, options.label_base
    values = set() if label is None else label.classes
    if not labels and not values <= {class_key(name) for name in first.class_names}:
        if None not in map(whole, values):
            # Numbers that count the columns of the file.
            labels = tuple(str(j + (base or 0)) for j in range(2))
    elif base is not None:
        return found
    # Labels 0 and 1 are counted anyway.
    labels = () if labels == ("1", "0") and base is None else labels[::-1]
    scores = tuple(
        replace(
            each,
            columns=each.columns[::-1],
            class_names=each.class_names[::-1],
            logits=each.logits[::-1],
            labels=labels,
            reversed=is_array,
        )
        for each in found.scores
    )
    return replace(found, scores=scores, one_hot=found.one_hot[::-1])


class _Matching:
    """Ways to match the values of a label with score columns; an order holds the label of each column."""

    def __init__(self, view: TableView, scores: ScoreColumns, label: Column) -> None:
        self.view, self.scores, self.label = view, scores, label
        self.names = column_names.told_apart(scores.class_names)
        by_map = getattr(view.options, "map_classes", None) == scores.class_names
        self.chosen = by_map or view.options.scores is not None
        self.columns = view.columns(scores)
        if not scores.is_block:  # fields of one column
            heads = zip(scores.class_names, self.columns[0].head.T, strict=True)
            self.columns = [Column(name, "number", head) for name, head in heads]

    def by_words(self, values: frozenset[str]) -> ScoreColumns:
        """Match two words of the label with two other words of the header: the event with the event, else the second column."""
        happened, other = event_of(values), column_names.no_event_of(values)
        if self.scores.width != 2 or happened is None or other is None:
            return self.by_position()
        called, order = event_of(self.names), [other, happened]
        # Whether numbers count the event last is a guess.
        least = (
            -CLEAR if None not in map(whole, self.names) else CLEAR if called is None else -np.inf
        )
        if not self.chosen and self._evidence(order, order[::-1]) < least:
            raise self._question([order[::-1], order])
        if called != self.names[0]:
            return self.scores
        return replace(self.scores, labels=(happened, other))

    def by_position(self) -> ScoreColumns:
        """Match words with columns that are only numbered, if the labels clearly follow the scores in one order."""
        spelled = {class_key(word): word for word in sorted(self.label.levels)}
        k = self.scores.width
        counted = {*self.names} in ({str(j + base) for j in range(k)} for base in (0, 1))
        if not counted or not len(spelled) == k <= _MOST_CLASSES:
            return replace(self.scores, labels=())
        best = self._matched([*spelled])
        pairs = [{i: j, j: i} for j in range(k) for i in range(j)]
        others = [[best[pair.get(n, n)] for n in range(k)] for pair in pairs]
        if min(self._evidence(best, other) for other in others) < CLEAR:
            return self.scores
        found = replace(self.scores, class_names=tuple(spelled[key] for key in best))
        text = f"'{span(found.columns)}' are read as the scores of {span(found.class_names)}, as the labels follow them"
        self.view.note(Notice.SCORE_COLUMNS, "info", text)
        return found

    def by_number(self, counted: list[str]) -> ScoreColumns:
        """Match numbers with names: in the order of the columns, of the alphabet, or of the event, which agree or the labels decide."""
        are_numbers = [whole(name) is not None for name in self.scores.class_names]
        if (
            self.scores.is_block
            and all(are_numbers)
            and not all(column_names.by_prefix(c)[0] for c in self.scores.columns)
        ):
            # Numbers that are not those of the label would be taken for them.
            self.scores = replace(self.scores, class_names=self.scores.columns)
        order = counted
        if not self.chosen:
            orders = self._possible_orders(counted)
            names = "".join(self.scores.class_names)
            # Names may hold other numbers, of which some may be the class.
            numbered = any(map(str.isdigit, names)) and None in map(whole, self.scores.class_names)
            if len(orders) > 1 or numbered or 2 < len(counted) <= _MOST_CLASSES:
                order = self._followed(orders)
        as_counted = order == [str(j) for j in range(len(order))]
        return replace(self.scores, labels=() if as_counted else tuple(order))

    def _possible_orders(self, counted: list[str]) -> list[list[str]]:
        """The distinct ways to count the columns: as they stand, in the alphabet, and the event last."""
        names = self.scores.class_names
        rank = {name: j for j, name in enumerate(sorted(names))}
        orders = [counted, [counted[rank[name]] for name in names]]
        orders += [order for order in (self._event_last(counted),) if order]
        return [order for j, order in enumerate(orders) if order not in orders[:j]]

    def _event_last(self, counted: list[str]) -> list[str] | None:
        """The order in which the words for the event count the columns; None if no word does."""
        if len(self.names) != 2 or event_of(self.names) is None:
            return None
        return counted[::-1] if is_event_first(self.names) else counted

    def _followed(self, orders: list[list[str]]) -> list[str]:
        """The order that the labels follow; with few rows that of the columns, unless names or labels speak against it."""
        if self.columns[0].head.shape != self.label.head.shape:
            return orders[0]  # arrays may differ in length
        by_event = self._event_last(orders[0])
        if len(self.label.head) < FEWEST_ROWS:
            if by_event:
                return by_event
            if self._named_otherwise(orders[0]):
                raise self._question(orders)
            means = [np.nanmean(roles.of_true(self.columns, self.label.keys, o)) for o in orders]
            if max(means) > means[0]:
                raise self._question(orders)
            return orders[0]
        best, *others = sorted(orders, key=partial(self._evidence, two=orders[0]), reverse=True)
        margin = min((self._evidence(best, other) for other in others), default=CLEAR)
        matched = self._matched(best)
        unclear = margin < CLEAR and not (best == orders[0] and margin >= 1 and len(best) > 2)
        # Words for the event say more than the labels of a model that may be upside down.
        turned = by_event not in (None, best)
        if unclear or turned or matched != best or self._named_otherwise(best):
            raise self._question([*orders, matched])
        if others:
            pairs = ", ".join(self._pairs(best, range(len(best))))
            text = f"the numbers in '{short(self.label.name)}' are read as the labels follow the scores: {pairs}"
            self.view.note(Notice.LABEL_VALUES, "info", text)
        return best

    def _named_otherwise(self, order: Sequence[str]) -> bool:
        """Whether the names hold numbers beside other words, but not those of an order."""
        names = column_names.without_common_words(self.scores.class_names)
        held = [{*re.findall(r"\d+", name)} for name in names]
        others = any(numbers and j not in numbers for numbers, j in zip(held, order, strict=True))
        return others and None in map(whole, names)

    def _pairs(self, order: list[str], places: Sequence[int]) -> list[str]:
        return [f"{order[j]} is '{short(self.scores.class_names[j])}'" for j in places[:3]]

    def _evidence(self, one: list[str], two: list[str]) -> float:
        """How much more clearly the labels follow one order than another, in standard errors."""
        if self.columns[0].head.shape != self.label.head.shape:
            return 0.0
        return roles.clearer(self.columns, self.label.keys, one, two)

    def _matched(self, order: list[str]) -> list[str]:
        """The order in which every column is of the label that it ranks highest; the given one where the labels hardly tell another."""
        hits = [np.array(self.label.keys == number, dtype=bool) for number in order]
        if len(order) > _MOST_CLASSES or min(hit.sum() for hit in hits) < 5:
            return order
        z, best = _ranked([c.head.astype(float) for c in self.columns], hits)
        gain = float((z[range(len(order)), best] - z.diagonal()).sum())
        return [order[j] for j in best] if gain > 2 * CLEAR else order

    def _question(self, orders: Sequence[list[str]]) -> InputError:
        """Return the question which class each number, or word, of the label is."""
        readings: dict[tuple[str, ...], Reading] = {}
        for order in orders:
            # Score columns that are named are counted as they are named.
            places = [_place(word, event_of(order)) for word in order]
            counted = sorted(range(len(order)), key=places.__getitem__)
            columns = tuple(self.columns[j].name for j in counted)
            text = ", ".join([*self._pairs(order, counted), *["..."] * (len(order) > 3)])
            chosen = {"scores": columns} if self.scores.is_block else {"class_names": tuple(order)}
            readings.setdefault(columns, Reading(text, chosen))
        return InputError(
            f"nothing says for sure which class each value of '{short(self.label.name)}' is: names, the order of the columns "
            "and the labels do not agree; choose",
            readings=readings.values(),
        )


def _place(word: str, event: str | None) -> tuple[int, int]:
    """Where a label comes when the classes are counted: numbers in order, the event last."""
    number = whole(word)
    return (number, 0) if number is not None else (int(word == event), 1)
