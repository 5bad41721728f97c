"""The first rows of a file with the role of each column, as read or as guessed, also where the file cannot be read as it is."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any, BinaryIO

import numpy as np

from calviz.core.errors import CalvizError, InputError, Reading, in_file
from calviz.data import other_columns, recognition
from calviz.data.column_names import blocks_named_by, is_identifier, without_common_words
from calviz.data.format import Column, ReadingOptions, Source, Table, format_of, no_rows, short
from calviz.data.label_columns import label_by_word, named_label
from calviz.data.questions import by_choices
from calviz.data.reading import (
    MOST_READ_ON,
    Loaded,
    Together,
    cells_of,
    facts_in,
    of_table,
    options_that_keep,
)
from calviz.data.roles import ONE_COLUMN, ROLES, ColumnRoles, Confidence, ScoreColumns, TableView
from calviz.data.roles import ColumnRole as ColumnRole
from calviz.data.score_columns import SIGNS, find_scores, models_by_sums

#: Roles that any number of columns may have.
_SHARED = ("score", "model", "group", "ignored")
_OF_NUMBERS = ("score", "model", "confidence", "weight")
_SCORES: tuple[ColumnRole, ...] = ("score", "model", "confidence")
#: Rows that are shown, the characters of a cell, and the numbers shown of a list.
ROWS, _CELL, _LIST = 8, 80, 4


@dataclass(frozen=True, eq=False)
class FirstRows:
    """The first rows of a file, and what each column is taken for.

    Attributes
    ----------
    numbers : tuple of int
        The 1-based numbers of the rows.
    cells : mapping of str to tuple of str
        The values of each column as text, one per row; a note instead where the values are not known.
    roles : mapping of str to ColumnRole
        The role of each column, in the order of the file.
    classes : mapping of str to str
        The class of a score column, where its name says it.
    models : mapping of str to str
        The model of a score column, if there are several.
    choices : mapping of str to tuple of ColumnRole
        The roles that each column may have; () for one that cannot be used.
    asked : frozenset of str
        The columns whose role is the question.
    recognised : bool
        Whether the roles are recognised, rather than guessed because no reading fits.
    options : ReadingOptions
        The options that these roles were made with, without those that name a column that is not there.
    """

    numbers: tuple[int, ...]
    cells: Mapping[str, tuple[str, ...]]
    roles: Mapping[str, ColumnRole]
    classes: Mapping[str, str]
    models: Mapping[str, str]
    choices: Mapping[str, tuple[ColumnRole, ...]]
    asked: frozenset[str]
    recognised: bool
    options: ReadingOptions

    @property
    def missing(self) -> tuple[str, ...]:
        """What has to be said before the file can be read: "the label", "the scores"."""
        roles = {*self.roles.values()}
        is_known = "label" in roles or "correct" in roles
        return ("the label",) * (not is_known) + ("the scores",) * (not roles & {*_SCORES})

    def as_shown(self) -> ReadingOptions:
        """Return the options that read the file with these roles of scores and labels."""
        return replace(self.options, **self._options_of(self.roles, _ESSENTIAL))

    def with_role(self, column: str, role: ColumnRole) -> ReadingOptions:
        """Return the options that give a column another role.

        A role that only one column may have is taken from the other one. Roles that were recognised and are not touched stay
        to be recognised.
        """
        if self.recognised and role == self.roles[column]:
            told = self.options.weight_column
            return replace(self.options, weight_column=column if role == "weight" else told)
        roles, models = dict(self.roles), self.models
        # A column of a model of several is none alone.
        sets = self._sets(self.roles) if role == "model" else {}
        own = next((each for each in sets if column in each), ())
        for name, was in self.roles.items():
            # What nobody confirmed is no model beside one that was chosen.
            proposed = name in self.asked and not self.recognised and role != was
            if (was == role and role not in _SHARED) or (proposed and {role, was} <= {*_SCORES}):
                roles[name] = "ignored"
            elif role not in _SCORES and was == "score" and models.get(name) == models.get(column):
                roles[name] = "ignored" if column in models else was
            elif role in _SCORES and was in _SCORES and not own:
                roles[name] = "ignored" if "confidence" in (role, was) else role
        roles |= dict.fromkeys(own, "score") or {column: role}
        if role == "correct" and not (self.recognised and "label" in roles.values()):
            # Without a label, which may be guessed, a score can only be that of the prediction.
            roles |= {name: "confidence" for name, was in roles.items() if was == "score"}
        before, after = (self._options_of(r) for r in (self.roles, roles))
        changed = {key: value for key, value in after.items() if value != before[key]}
        changed["groups"] = self._groups_with(column, role)
        if not self.recognised:
            changed |= self._options_of(roles, _ESSENTIAL)
        if {"scores", "models", "kind"} & {*changed}:
            changed |= {key: after[key] for key in ("scores", "models", "kind")}
            changed["class_names"] = None  # which are in the order of the scores
        return replace(self.options, **changed)

    def _groups_with(self, column: str, role: ColumnRole) -> tuple[str, ...] | None:
        """The columns to slice by where one has another role; those that are recognised stay so."""
        groups = ("*",) if self.options.groups is None else self.options.groups
        others = tuple(g for g in groups if g not in (column, f"!{column}"))
        if role == "group" and f"!{column}" not in groups:
            return (*others, column)
        if role == "ignored" and "*" in others:
            return (*others, f"!{column}")
        return None if others == ("*",) else others

    def _options_of(
        self, roles: Mapping[str, ColumnRole], keys: tuple[str, ...] = ()
    ) -> dict[str, Any]:
        """Return the options, or those of `keys`, that say the roles."""

        def named(*wanted: str) -> tuple[str, ...]:
            return tuple(name for name, role in roles.items() if role in wanted)

        options, confidence = self.options, named("confidence")
        models = named("model") or self._sets_named(named("score"))
        kind = (
            "confidence" if confidence else None if options.kind == "confidence" else options.kind
        )
        said: dict[str, Any] = {
            # That no rows belong together stays said.
            option: next(iter(named(role)), "" if getattr(options, option) == "" else none)
            for role, (option, _, none) in ONE_COLUMN.items()
        }
        if len(named("label")) > 1:  # several columns are one label: 0 and 1 for each class
            said["label"] = None
        scores = None if models else confidence or named("score") or None
        said |= {"scores": scores, "models": models or None, "kind": kind}
        return {key: said[key] for key in keys or said}

    def _sets(self, columns: Iterable[str]) -> dict[tuple[str, ...], tuple[str, str]]:
        """The columns of each model, where the first one has several, and what stands before and after its classes; {} if it is the only one."""
        scores = [name for name, role in self.roles.items() if role == "score"]
        first = [n for n in scores if self.models.get(n) == self.models.get(scores[0])]
        classes = without_common_words(first) if len(first) > 1 else ()
        sets = {block.columns: block.around for block in blocks_named_by(classes, [*columns])}
        return sets if len(sets) > 1 else {}

    def _sets_named(self, scores: Sequence[str]) -> tuple[str, ...]:
        """What stands beside the classes of each model, if scores are of several models of several columns; () otherwise."""
        sets = self._sets(scores)
        sides = (
            tuple(part.strip(SIGNS) for part in side) for side in zip(*sets.values(), strict=True)
        )
        names = next((side for side in sides if all(side) and len({*side}) == len(side)), ())
        return names if sum(map(len, sets)) == len(scores) else ()


#: The options that say which columns are scores, labels and weights.
_ESSENTIAL = ("label", "scores", "models", "kind", "prediction_column", "correct_column", "weight_column")  # fmt: skip


def first_rows(
    source: str | os.PathLike[str] | bytes | BinaryIO | Together,
    *,
    name: str | None = None,
    options: ReadingOptions | None = None,
    read: Loaded | None = None,
    rows: int = ROWS,
    also: Iterable[int] = (),
) -> FirstRows:
    r"""Return the first rows of a file with the role of each column, also of a file that `read` refuses.

    Parameters
    ----------
    source : str, PathLike, bytes, binary file object, or tuple of (str, bytes)
    name : str, optional
        Name in messages; the file's own name if left out.
    options : ReadingOptions, optional
        How the file is read; everything left empty is recognised or guessed.
    read : Loaded, optional
        The file as it was read with these options.
    rows : int
        Number of rows.
    also : iterable of int
        1-based numbers of rows that stand in the place of the last ones, if they are among the rows that are looked at.

    Raises
    ------
    InputError
        If the file cannot be opened as a table of columns; several logs that were opened together are none.

    Examples
    --------
    >>> shown = first_rows(b"truth,x1,x2\na,0.3,0.7\nb,0.6,0.4\n")
    >>> dict(shown.roles), shown.cells["x1"]
    ({'truth': 'label', 'x1': 'score', 'x2': 'score'}, ('0.3', '0.6'))
    """
    if isinstance(source, tuple):
        raise InputError("these are several logs, whose rows are made from all of them")
    options = options or ReadingOptions()
    with np.errstate(all="ignore"), Source(source, name, options) as opened:
        with in_file(opened.name):
            table, used = by_choices(format_of(opened).open(opened), options)
            if not table.columns:
                raise no_rows()
            if facts_in(table) is not None:
                raise InputError("a profile holds sums, no rows")
            if options.answers is not None:
                raise InputError("a row is made of all answers to a question")
            used = recognition.with_array_names(table, used)
            lost = recognition.options_without_column(table, used)
            options = replace(options, **lost)
            if read is None:
                # A file is read with so many answers at most.
                most = 2 * (opened.size <= MOST_READ_ON)
                named, asked, read_with = _roles(table, replace(used, **lost), most)
            else:
                named = _as_read(table, read, used)
                asked, read_with = frozenset[str](), options_that_keep(read.roles, table)
            roles, classes, models = named
        columns, known = table.columns, max(len(c.head) for c in table.columns)
        shown = [*range(min(rows, known))]
        more = sorted({row - 1 for row in also if row > rows})[: rows - 1]
        if more and more[-1] >= known and opened.size <= MOST_READ_ON:
            single = [c.name for c in columns if c.width is None and c.type != "other"]
            far = cells_of(table, [row for row in more if row >= known], single)
            columns = tuple(replace(c, odd={**c.odd, **far.get(c.name, {})}) for c in columns)
        more = [row for row in more if row < known or any(row in c.odd for c in columns)]
        shown[len(shown) - len(more) :] = more
        # Whole numbers that a float of the first rows rounds, where the file holds no texts.
        whole = [c for c in columns if c.type == "integer" and not c.odd]
        long = [c.name for c in whole if (np.abs(c.head) >= 2**53).any()]
        exact = cells_of(table, shown, long) if long else {}
        columns = tuple(replace(c, odd=exact[c.name]) if c.name in exact else c for c in columns)
        return FirstRows(
            numbers=tuple(row + 1 for row in shown),
            cells={c.name: _cells(c, shown) for c in columns},
            roles={c.name: roles.get(c.name, "ignored") for c in table.columns},
            classes=classes,
            models=models,
            choices={c.name: _choices(c, roles if read else {}) for c in table.columns},
            asked=asked,
            recognised=read_with is not None and not lost,
            options=options if read_with is None else replace(options, **read_with),
        )


def _cells(column: Column, rows: Sequence[int]) -> tuple[str, ...]:
    if column.type == "other":
        return (f"({short(column.note)})",) * bool(column.note)
    if column.width is not None and not column.head.size:
        return (f"({column.width:,} numbers per row)",)  # read with all rows only
    whole = column.type == "integer"
    head, odd = column.cells, column.odd
    known = (row for row in rows if row < len(head) or row in odd)
    cells = (odd[row] if row in odd else _cell(head[row], whole) for row in known)
    return tuple(short(cell, length=_CELL) for cell in cells)


def _cell(value: Any, whole: bool = False) -> str:
    if isinstance(value, np.ndarray):
        shown = ", ".join(_cell(each) for each in value.ravel()[:_LIST])
        return f"[{shown}{', …' if value.size > _LIST else ''}]"
    if isinstance(value, float | np.floating):
        # Whole numbers with missing ones among them are held as fractions.
        if np.isnan(value) or whole:
            return "" if np.isnan(value) else f"{value:.0f}"
        if value == 0 or 1e-9 < abs(float(value)) < 1e15:
            return np.format_float_positional(value, 15, fractional=False, trim="-")
    return str(value)


def _choices(column: Column, read: Mapping[str, ColumnRole]) -> tuple[ColumnRole, ...]:
    """The roles that the values of a column allow; the only label that was `read` goes only to another column, which gets its role."""
    if column.type == "other":
        return ()
    role = read.get(column.name, "ignored")
    if role in ("label", *_SCORES) and [*read.values()].count(role) == 1:
        may_be = (role,) if role == "label" else (*_SCORES, "prediction")
        return tuple(r for r in may_be if r == role or column.numeric or r not in _OF_NUMBERS)
    if column.width is not None:
        return ("label", "score", "ignored")
    return tuple(role for role in ROLES if column.numeric or role not in _OF_NUMBERS)


# ---- Roles

#: The role of each column that has one, and the class and the model of score columns.
_Named = tuple[dict[str, ColumnRole], dict[str, str], dict[str, str]]


def _roles(
    table: Table, options: ReadingOptions, most: int
) -> tuple[_Named, frozenset[str], dict[str, Any] | None]:
    """Return what the columns are, those in question, and the options that chose.

    These are None if the roles are only guessed. Of several ways to read the file, the first one counts, if further questions may get answers by all rows.
    """
    readings: tuple[Reading, ...] = (Reading("", {}),)
    try:
        recognition.recognise(table, options)
    except InputError as error:
        readings = error.readings
    except CalvizError:
        readings = ()
    ways = []
    for reading in readings:
        with suppress(CalvizError):
            found, chosen = _by_first_answers(table, options, reading)
            ways.append((found, _named(table, found, options.answered(chosen))[0], chosen))
    if not ways:
        told = next((one for one in readings if not one.no_labels), Reading("", {}))
        guess = _guessed(TableView(table, options.answered(told)))
        return _named(table, guess, options), frozenset(), None
    found, _, chosen = ways[0]
    chosen_by = chosen.options
    asked = {
        name
        for name in table.names
        if len({roles_of_way.get(name, "ignored") for _, roles_of_way, _ in ways}) > 1
        or (len(ways) == 1 and name == chosen_by.get("label"))
        or name == chosen_by.get("weight_column")
    }
    # Whether a column weighs the rows is for the user to say.
    chosen_by = {k: v for k, v in chosen_by.items() if k != "weight_column"}
    return _of_rows(table, found, options.answered(chosen), most), frozenset(asked), chosen_by


def _of_rows(table: Table, found: ColumnRoles, options: ReadingOptions, most: int) -> _Named:
    """The roles with which a file is read if at most so many further questions get their first answers; else those that were found."""
    with suppress(CalvizError):
        try:
            return _as_read(table, of_table(table, options, name=""), options)
        except InputError as error:
            answer = next((one for one in error.answers if not one.no_labels), None)
            if answer and most:
                return _of_rows(table, found, options.answered(answer), most - 1)
    return _named(table, found, options)


def _as_read(table: Table, read: Loaded, options: ReadingOptions) -> _Named:
    """The roles with which a file was read; texts of many values are sliced by the most frequent ones."""
    named = _named(table, read.roles, options, as_read=True)
    for name in (n for n in read.first.texts if n in read.first.cuts):
        if _repeats(table[name]) or not is_identifier(name):
            named[0].setdefault(name, "group")
    return named


def _by_first_answers(
    table: Table, options: ReadingOptions, reading: Reading, most: int = 2
) -> tuple[ColumnRoles, Reading]:
    """Recognise the columns by a reading, and by the first one of each question after it."""
    try:
        found = recognition.recognise(table, options.answered(reading))
        if not found.may_weigh:
            return found, reading
        further = Reading("", {"weight_column": found.may_weigh[0]})
        return _by_first_answers(table, options, Reading.joined([reading, further]), most)
    except InputError as error:
        # Rows without labels would leave open what the other columns are.
        first = next((one for one in error.readings if not one.no_labels), None)
        if not most or first is None:
            raise
        further = Reading.joined([reading, first])
        return _by_first_answers(table, options, further, most - 1)


def _named(
    table: Table, layout: ColumnRoles, options: ReadingOptions, *, as_read: bool = False
) -> _Named:
    """Return what the columns are in a layout; the class of each score column only where its name says it.

    Only a layout that was read says which columns are groups, models and times, whatever the first rows hold.
    """
    roles: dict[str, ColumnRole] = {}
    classes: dict[str, str] = {}
    predicted = TableView(table, options).predicted(set())
    if predicted is not None:
        roles[predicted] = "prediction"
    named = options.named_groups
    groups = (n for n in layout.groups if n != options.prediction_column)  # where no score uses it
    roles |= {n: "group" for n in groups if as_read or n in named or _repeats(table[n])}
    roles |= dict.fromkeys(layout.features, "group")
    roles |= {name: role for role, name in layout.single.items()}
    roles |= dict.fromkeys(layout.one_hot, "label")
    of_models = len(layout.scores) > 1 and all(s.width == 1 for s in layout.scores)
    for scores in layout.scores:
        roles |= dict.fromkeys((*scores.columns, *scores.logits), "model" if of_models else "score")
        if len(scores.columns) == len(scores.class_names) and not of_models:
            of_columns = zip(scores.columns, scores.class_names, strict=True)
            classes |= {n: of for n, of in of_columns if of != n and of.strip("[(%)] ")}  # no unit
    models = {name: scores.model for scores in layout.scores for name in scores.columns}
    return roles, classes, models if len(layout.scores) > 1 else {}


def _repeats(column: Column) -> bool:
    """Whether some of the first rows have the same value, as rows of a group do."""
    values = column.head.tolist()
    return len(values) <= 2 or 1 < len({*values}) < len(values)


def _guessed(view: TableView) -> ColumnRoles:
    """Guess as much as can be said of a table whose columns fit no reading."""
    taken = recognition.columns_of_rows(view)
    label = named_label(view, taken) or label_by_word(view, taken)
    used = {*taken, label or ""}
    correct = recognition.correct_column(view, used)
    predicted = view.predicted({*used, correct or ""})
    used |= {correct or "", predicted or ""}
    confidence: Confidence | None = None
    scores: tuple[ScoreColumns, ...] = ()
    with suppress(CalvizError):
        scores = find_scores(view, taken, label)
        scores = scores or models_by_sums(view, view.numeric(used), label)
    # The columns of fractions: those in [0, 1], or what may be percentages or logits if there are none.
    free = [c for c in view.numeric(used) if c.type == "number" and not c.is_label_like]
    free = [c for c in free if not c.has_unit and (np.any(c.head < 0) or not np.any(c.head > 100))]
    fractions = tuple([c.name for c in free if c.in_unit] or (c.name for c in free))
    if view.options.kind == "confidence" and view.options.scores:
        confidence, scores = Confidence(view.options.scores[0], correct, predicted), ()
    elif not scores and len(fractions) == 1 and (correct or (label and predicted)):
        confidence = Confidence(fractions[0], correct=correct, predicted=predicted)
    elif not scores and fractions:
        kind = view.options.kind_of_scores or "probabilities"
        scores = (ScoreColumns(fractions, (), kind, len(fractions)),)
    found = ColumnRoles(scores, confidence, label, correct=correct)
    if label is None and correct is None:
        used |= found.used
        free = [c for c in view.table.columns if c.name not in used and c.is_label_like]
        free = free if len(free) == 1 else [c for c in free if c.pairs]
        found = replace(found, label=free[0].name if len(free) == 1 else None)
    weights = other_columns.may_be_weights(view, used)
    found = recognition.with_other_roles(view, found, {*taken, predicted or ""})
    return replace(found, weight=found.weight or next(iter(weights), None))
