"""Columns of a judge, such as a language model, and of the people who looked at some of its rows."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from calviz.core.blocks import Factor, FloatArray
from calviz.core.errors import InputError, Reading
from calviz.core.features import FEW_VALUES, MISSING, as_values, cut_of_numbers
from calviz.core.predictions import Predictions
from calviz.data import column_names
from calviz.data.column_names import class_key, event_of, is_missing, number_of, plain
from calviz.data.format import Source, Table, format_of
from calviz.data.loaded import Loaded, Notice, Recognition, known_columns, short

JUDGES = (
    "judge", "llm_judge", "judge_score", "judge_label", "judge_verdict", "judged", "autorater",
)  # fmt: skip
HUMANS = (
    "human", "human_label", "human_score", "human_verdict", "human_judgment", "human_judgement", "annotator", "expert",
)  # fmt: skip
#: At most so many columns of numbers are read to slice by.
MOST_FEATURES = 50
#: Columns of text with more values than this are no groups.
MOST_LEVELS = 50
#: Words that stand for 1 beside a column of numbers, or of other words.
YES = frozenset(
    ("yes", "y", "true", "t", "1", "correct", "right", "pass", "positive", "pos", "+", "present", "on", "win")
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Said:
    """One column: numbers in [0, 1], nan where nothing is said, the word that stands for 1 (empty for numbers), and what else it could be."""

    name: str
    values: FloatArray
    event: str = ""
    readings: tuple[Reading, ...] = ()
    doubtful: bool = False


@dataclass(frozen=True, eq=False)
class JudgeColumns:
    """What the judge and people say of the same rows; the group of each by several columns, its chance of being labelled, its question."""

    judge: Said
    human: Said
    by: Mapping[str, Any] = field(default_factory=dict)
    chance: Any = None
    cluster: Any = None

    def aligned(self) -> tuple[FloatArray, FloatArray, str]:
        """Return both columns, and the word that both have for 1.

        Raises
        ------
        InputError
            If they differ in length, if a human label is neither 0 nor 1, and if words leave open what 1 is.
        """
        judge, human = self.judge, self.human
        if judge.values.size != human.values.size:
            raise InputError(
                f"the judge has {judge.values.size:,} rows, the human labels have {human.values.size:,}"
            )
        between = ~np.isin(human.values, (0, 1)) & ~np.isnan(human.values)
        if between.any():
            row = int(between.argmax())
            raise InputError(
                f"the human label {human.values[row]:g} is neither 0 nor 1",
                row=row + 1,
                column=human.name,
                remedy="round it, or leave it empty",
            )
        for one, other in ((judge, human), (human, judge)):
            if one.doubtful and one.event != other.event:
                raise InputError(
                    f"nothing says whether '{short(one.event)}' is 1 in column '{short(other.name)}'",
                    column=one.name,
                    remedy="use the same words in both columns, or 0 and 1",
                    readings=one.readings,
                )
        return judge.values, human.values, human.event or judge.event or "yes"


def yes_or_score(
    values: Factor | npt.ArrayLike, name: str, class_names: Sequence[str] | None = None
) -> Said:
    """Read a column of scores, of 0 and 1, or of words for no and yes; of two `class_names`, the last is yes.

    Where these can be given, as for a file, a question has them as its readings.

    Raises
    ------
    InputError
        For a number outside [0, 1], and for words of which nothing says which is yes.
    """
    column: Any = values if isinstance(values, Factor) else np.asarray(values)
    if isinstance(column, np.ndarray) and column.ndim != 1:
        raise InputError(f"the column must be 1-D, got shape {column.shape}", column=name)
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        return Said(name, _in_range(column.astype(np.float64), name))
    column = Factor.of(column)
    keys = [None if is_missing(level.strip()) else class_key(level) for level in column.levels]
    known = {key for key in keys if key is not None}
    numbers = {key: number for key in known if (number := number_of(key)) is not None}
    if len(numbers) == len(known):
        of_levels = [np.nan if key is None else numbers[key] for key in keys]
        return Said(name, _in_range(np.array([*of_levels, np.nan])[column.codes], name))
    chosen = [class_key(word) for word in class_names or ()]
    given = len(chosen) == 2 and known <= {*chosen}
    event = chosen[1] if given else event_of(known)
    both = sorted(known | {event or ""} - {""})
    pairs = [] if class_names is None or len(both) != 2 else [both, both[::-1]]
    readings = tuple(Reading(f"'{short(w)}' is right", {"class_names": (o, w)}) for o, w in pairs)
    if event is None:
        words = ", ".join(f"'{short(word)}'" for word in sorted(known)[:5])
        raise InputError(
            f"nothing says which of {words} is yes",
            column=name,
            remedy="write yes and no, or 0 and 1",
            readings=readings,
        )
    of_levels = [np.nan if key is None else float(key == event) for key in keys]
    doubtful = not given and event not in YES
    return Said(name, np.array([*of_levels, np.nan])[column.codes], event, readings, doubtful)


def _in_range(values: FloatArray, name: str) -> FloatArray:
    wrong = ~((values >= 0) & (values <= 1)) & ~np.isnan(values)
    if wrong.any():
        row = int(wrong.argmax())
        raise InputError(
            f"{values[row]:g} is not between 0 and 1",
            row=row + 1,
            column=name,
            remedy="give scores from 0 to 1 (grades divided by the highest), or yes and no",
        )
    return values


def as_groups(values: Factor | npt.ArrayLike) -> Factor:
    """Return a column of groups; numbers with fractions and many values are cut at their deciles, as they are to slice by."""
    factor = Factor.of(values)
    if len(factor.levels) <= FEW_VALUES:
        return factor
    read = as_values(factor.levels)
    if read is None or read[1] or not (np.mod(read[0], 1) > 0).any():
        return factor
    cut = cut_of_numbers(read[0][factor.codes])
    names = (*cut.labels, MISSING)
    return Factor.of(np.array(names, dtype=object)[cut.of_numbers(read[0][factor.codes])])


def usual_columns_of_judges(names: Iterable[str]) -> tuple[str | None, str | None]:
    """The columns of the judge and of people among these, by their usual names; None where there is none."""
    by_name = {plain(name): name for name in reversed(list(names))}
    judge, human = (
        next((by_name[usual] for usual in known if usual in by_name), None)
        for known in (JUDGES, HUMANS)
    )
    return judge, human


def loaded_judge(table: Table, name: str, class_names: Sequence[str] = ()) -> Loaded | None:
    """Read the labelled rows of a file with a judge and people as predictions: the judge's score is the probability.

    None if no columns have the names of both, or no row has both.
    """
    judge, human = usual_columns_of_judges(table.names)
    if judge is None or human is None:
        return None
    rest = [c for c in table.columns if c.width is None and c.name not in (judge, human)]
    named = [c.name for c in rest if column_names.is_identifier(c.name)]
    others = [c.name for c in rest if c.type == "text" or c.name in named]
    numeric = [c.name for c in rest if c.numeric and c.name not in named][:MOST_FEATURES]
    fetched = table.fetch([(name,) for name in numeric], [judge, human, *others])
    read = fetched.columns
    says, looked = (yes_or_score(read[n], n, class_names) for n in (judge, human))
    score, people, _ = JudgeColumns(says, looked).aligned()
    at = ~np.isnan(score) & ~np.isnan(people)
    if not at.any():
        return None
    of_all = {name: Factor.of(read[name]) for name in others}
    own = next((n for n in named if len(of_all[n].levels) == at.size), None)
    factors = {name: factor.take(at) for name, factor in of_all.items()}
    groups = {n: f for n, f in factors.items() if 1 < len(f.levels) <= MOST_LEVELS and n != own}
    columns_of = zip(numeric, fetched.scores, strict=True)
    numbers = {n: a[at, 0] for n, a in columns_of if np.unique(a[at, 0]).size > 1}
    data = Predictions(
        probs=score[at],
        labels=people[at].astype(np.int64),
        groups=groups,
        numbers=numbers,
        ids=None if own is None else factors[own].values(),
        column_names={} if own is None else {"ids": own},
        name=name,
    )
    text = f"{int(at.sum()):,} of {at.size:,} rows have both '{short(judge)}' and '{short(human)}', and only these are judged here; all count on the tab Judge, and for calviz judge"  # fmt: skip
    return Loaded(
        file=name,
        models={name: data},
        recognition=Recognition(
            format=table.format,
            kind=data.kind,
            label=human,
            label_form="class index",
            scores=(judge,),
            groups=tuple(groups),
            id_column=own,
            class_names=data.class_names,
            models=(name,),
            columns=table.names,
            rows=data.n,
        ),
        notices=(*table.notices, Notice.LEFT_OUT.finding("info", text)),
    )


def read_judge(
    source: str | os.PathLike[str] | bytes | BinaryIO,
    judge: str | None = None,
    human: str | None = None,
    by: str | Sequence[str] | None = None,
    chance: str | None = None,
    cluster: str | None = None,
    *,
    class_names: Sequence[str] = (),
    name: str | None = None,
) -> JudgeColumns:
    """Read the columns from a file of any format.

    Parameters
    ----------
    source : str, PathLike, bytes or binary file object
    judge, human : str, optional
        Columns; those with a usual name if left out.
    by : str or sequence of str, optional
        Columns of groups.
    chance, cluster : str, optional
        `cluster` is that of the format, if left out: the question of a log that asks it again; "" means none.
    class_names : sequence of str
        The words for no and yes, if these leave it open.
    name : str, optional
        Name of the file in messages.

    Raises
    ------
    InputError
        If a column is missing, or holds something else.
    """
    with np.errstate(all="ignore"), Source(source, name) as opened:
        try:
            table = format_of(opened).open(opened)
            usual = usual_columns_of_judges(table.names)
            chosen = [
                _found(table, given or found, what)
                for given, found, what in zip(
                    (judge, human), usual, ("judge", "human"), strict=True
                )
            ]
            columns = (by,) if isinstance(by, str) else tuple(by or ())
            question = (table.cluster if cluster is None else cluster) or None
            others = [n for n in (*columns, chance, question) if n is not None]
            wanted = list(dict.fromkeys([*chosen, *(_found(table, n, "") for n in others)]))
            read = table.fetch((), wanted).columns
            try:
                says, human_says = (yes_or_score(read[n], n, class_names) for n in chosen)
            except InputError as error:
                line = None if error.row is None else table.line(error.row - 1)
                raise error.but(line=line) from None
            share, same = (None if n is None else read[n] for n in (chance, question))
            if isinstance(share, Factor):
                raise InputError("the chances are not numbers", column=chance)
            return JudgeColumns(says, human_says, {n: read[n] for n in columns}, share, same)
        except InputError as error:
            raise error.in_file(opened.name) from None


def _found(table: Table, name: str | None, what: str) -> str:
    if name is None:
        raise InputError(
            f"there is no column called '{what}' ({known_columns(table.names)})",
            remedy=f"say which column it is: --{what} COL",
        )
    if name not in table:
        raise InputError(f"there is no column '{short(name)}' ({known_columns(table.names)})")
    return name
