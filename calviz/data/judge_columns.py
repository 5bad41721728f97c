"""Columns of a judge, such as a language model, and of the people who looked at some of its rows."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, pairwise
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from calviz.core.blocks import AnyArray, Factor, FloatArray, IntArray
from calviz.core.errors import Finding, InputError, Reading, in_file
from calviz.core.features import FEW_VALUES, MISSING, as_values, cut_of_numbers
from calviz.data import column_names
from calviz.data import format as file_format
from calviz.data.column_names import class_key, event_of, is_missing, number_of, plain
from calviz.data.format import Column, Notice, ReadingOptions, Source, Table, known_columns, short
from calviz.data.loaded import Loaded
from calviz.data.other_columns import long_forms
from calviz.data.roles import BELOW_CHANCE, TableView
from calviz.data.rows_in_memory import arrow_of, arrow_rows

JUDGES = (
    "judge", "llm_judge", "judge_score", "judge_label", "judge_verdict", "judged", "autorater",
)  # fmt: skip
HUMANS = (
    "human", "human_label", "human_score", "human_verdict", "human_judgment", "human_judgement", "annotator", "expert",
)  # fmt: skip
#: Words of which one marks what a judge says, for how sure it is, and for what is true.
_SAID, _SURE = column_names.VERDICTS | {"label", "correct"}, column_names.SURE | {"score"}
TRUE = frozenset(("true", "truth", "gold", "reference", "target", "actual"))
#: Of more grades than this, no threshold is offered.
MOST_GRADES = 11
#: Words for what a judge looks at, beside those for identifiers.
_ITEMS = frozenset(("item", "prompt", "question"))
#: The usual highest grades.
HIGHEST = (5, 10, 100)
#: Words that stand for 1 beside a column of numbers, or of other words.
YES = frozenset(
    ("yes", "y", "true", "t", "1", "correct", "right", "pass", "positive", "pos", "+", "present", "on", "win")
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Said:
    """One column: numbers in [0, 1], nan where nothing is said, the words that stand for 1 and 0 (empty for numbers), and what else it could be.

    Of `grades`, what they were chosen to mean, and the usual `highest` one.
    """

    name: str
    values: FloatArray
    event: str = ""
    readings: tuple[Reading, ...] = ()
    doubtful: bool = False
    grades: str = ""
    highest: float = 0.0
    no: str = ""


@dataclass(frozen=True, eq=False)
class JudgeColumns:
    """What the judge and people say of the same rows; the group of each by several columns, its chance of being labelled, its question."""

    judge: Said
    human: Said
    by: Mapping[str, Any] = field(default_factory=dict)
    chance: Any = None
    cluster: Any = None
    #: The column of `cluster`, if nobody but the rows said so.
    items: str = ""
    #: The rows of the file that these are, of several judges; None if they are all.
    at: IntArray | None = None

    @property
    def grades(self) -> str:
        """What the grades were chosen to mean; "" if there are none."""
        graded = [c for c in (self.judge, self.human) if c.grades]
        return ", and ".join(f"'{short(c.name)}' is read so: {c.grades}" for c in graded)

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
            what = f"the human label {human.values[row]:g} is neither 0 nor 1"
            remedy = "round it, or leave it empty"
            raise InputError(what, row=row + 1, column=human.name, remedy=remedy)
        for one, other in ((judge, human), (human, judge)):
            if one.doubtful and one.event != other.event:
                said = f"'{short(other.event)}'" if other.event else "a score of 1"
                raise InputError(
                    f"{said} in column '{short(other.name)}' may mean '{short(one.event)}' or its opposite",
                    column=one.name,
                    remedy="use the same words in both columns, or 0 and 1",
                    readings=one.readings,
                )
        return judge.values, human.values, human.event or judge.event or "yes"


def yes_or_score(
    values: Factor | npt.ArrayLike,
    name: str,
    class_names: Sequence[str] | None = None,
    *,
    of_people: bool = False,
) -> Said:
    """Read a column of scores, of 0 and 1, of grades, or of words for no and yes.

    Of the pairs of `class_names`, the first that fits says what is no, and what yes; grades between these lie between. Where names can be
    given, as for a file, a question has them as its readings. Labels of people are 0 or 1: their grades have a threshold.

    Raises
    ------
    InputError
        For a number outside [0, 1], and for grades and words of which nothing says what they mean.
    """
    column: Any = values if isinstance(values, Factor) else np.asarray(values)
    if isinstance(column, np.ndarray) and column.ndim != 1:
        raise InputError(f"the column must be 1-D, got shape {column.shape}", column=name)
    if isinstance(column, np.ndarray) and column.dtype.kind in "biuf":
        return _numbers(column.astype(np.float64), name, class_names, of_people)
    column = Factor.of(column)
    keys = [None if is_missing(level.strip()) else class_key(level) for level in column.levels]
    known = {key for key in keys if key is not None}
    numbers = {key: number for key in known if (number := number_of(key)) is not None}
    at = np.array([numbers.get(key or "", np.nan) for key in keys] + [np.nan])
    if len(numbers) == len(known):
        return _numbers(at[column.codes], name, class_names, of_people)
    pairs = ([*map(class_key, pair)] for pair in _pairs(class_names))
    chosen = next((pair for pair in pairs if known <= {*pair}), None)
    # What is bad is the event of a risk, not of a verdict.
    event = chosen[1] if chosen else "good" if known <= {"bad", "good"} else event_of(known)
    both = sorted(known | {event or ""} - {""})
    ways = [both, both[::-1]] if len(both) == 2 else []
    readings = _readings(class_names, [(f"'{short(w)}' is right", (o, w)) for o, w in ways])
    if event is None:
        words = ", ".join(f"'{short(word)}'" for word in sorted(known)[:5])
        what, remedy = f"nothing says which of {words} is yes", "write yes and no, or 0 and 1"
        raise InputError(what, column=name, remedy=remedy, readings=readings)
    of_levels = [np.nan if key is None else float(key == event) for key in keys]
    doubtful = not chosen and event not in YES
    no = next(iter(known - {event}), "")
    at = np.array([*of_levels, np.nan])
    return Said(name, at[column.codes], event, readings, doubtful, no=no)


def _pairs(class_names: Sequence[str] | None) -> list[tuple[str, str]]:
    names = class_names or ()
    return list(zip(names[::2], names[1::2], strict=False))


def _readings(
    class_names: Sequence[str] | None, ways: Iterable[tuple[str, tuple[str, str]]]
) -> tuple[Reading, ...]:
    """Ways to read a column by a further pair of class names; () where none can be given."""
    readings = []
    for label, way in ways if class_names is not None else ():
        others = [pair for pair in _pairs(class_names) if not {*pair} & {*way}]
        readings.append(Reading(label, {"class_names": tuple(chain(*others, way))}))
    return tuple(readings)


def _numbers(
    values: FloatArray, name: str, class_names: Sequence[str] | None, of_people: bool
) -> Said:
    """Read numbers in [0, 1] as they are, and grades as a pair of class names says, by which a judge's score can be turned as well."""
    levels = np.unique(values[~np.isnan(values)])
    beyond = bool(((levels < 0) | (levels > 1)).any())
    for pair in _pairs(class_names) if levels.size else ():
        low, high = (math.nan if (end := number_of(n)) is None else end for n in pair)
        words = _meaning(low, high, levels)
        if words and (beyond or (not of_people and {low, high} == {0, 1})):
            share = ((values - low) / (high - low)).clip(0, 1)
            return Said(name, share, grades=words, highest=_highest(levels))
    if not beyond:
        return Said(name, values)
    graded = 0 <= levels[0] < levels[-1] <= HIGHEST[-1]
    graded = graded and (not np.mod(levels, 1).any() or np.nanmedian(values) > 1)
    if class_names is None or not graded:
        row = int(np.argmax((values < 0) | (values > 1)))
        what = f"{values[row]:g} is not between 0 and 1"
        remedy = "give scores from 0 to 1, or yes and no, such as grades >= 4"
        raise InputError(what, row=row + 1, column=name, remedy=remedy)
    pairs, scale = list(pairwise(levels)) if levels.size <= MOST_GRADES else [], ""
    if levels.size == 2:  # 1 and 2 may mean yes and no
        pairs += [(levels[1], levels[0])]
    elif not of_people:
        scale, top = ", or that they are a confidence", _highest(levels)
        tops = {levels[-1], top} if top <= HIGHEST[1] else {top}
        pairs += [(low, high) for high in sorted(tops) for low in (1, 0)]
    shown = partial(np.format_float_positional, trim="-")
    ways = [(_meaning(*pair, levels), (shown(pair[0]), shown(pair[1]))) for pair in pairs]
    raise InputError(
        f"its grades go from {levels[0]:g} to {levels[-1]:g}: say from which on they mean yes{scale}",
        column=name,
        remedy="for other meanings, give the grades of no and yes as the class names",
        readings=_readings(class_names, [way for way in ways if way[0]]),
    )


def _highest(levels: FloatArray) -> float:
    return next((float(top) for top in HIGHEST if top >= levels[-1]), float(levels[-1]))


def _meaning(low: float, high: float, levels: FloatArray) -> str:
    """What it means that `low` is 0 and `high` is 1: a scale, or a threshold where no level lies between; "" if levels do not fit."""
    at = (levels - low) / (high - low)
    least, most = at.min(), at.max()
    if ((at > 0) & (at < 1)).any():
        scale = f"from {low:g} (0 % sure) to {high:g} (100 % sure)"
        return scale if least >= 0 and most <= 1 else ""
    return f"{high:g} or {'more' if high > low else 'less'} is right" if least <= 0 and most >= 1 else ""  # fmt: skip


def to_compare(groups: Mapping[str, Factor], most: int) -> str | None:
    """The column of groups that is compared if none is chosen: one with few values, and with a name for models or judges if there is one."""
    few = [name for name, factor in groups.items() if len(factor.levels) <= most]
    return min(few, key=lambda name: plain(name) not in column_names.MODELS, default=None)


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
    judge, human = (next(filter(by_name.get, known), None) for known in (JUDGES, HUMANS))
    return judge and by_name[judge], human and by_name[human]


def may_be_judged(loaded: Loaded) -> bool:
    """Whether columns of a file may be those of a judge and of people."""
    confidence = loaded.roles.confidence
    usual = usual_columns_of_judges(loaded.recognition.columns)
    return None not in usual or (confidence is not None and confidence.predicted is not None)


def columns_of_judges(table: Table) -> tuple[str | None, str | None]:
    """The columns with what the judge and people say; one called `judge` may hold its name, and another one its verdict."""
    judge, human = usual_columns_of_judges(table.names)
    of_judge = None if judge is None else table[judge]
    if human and of_judge and (of_judge.numeric or of_judge.classes & table[human].classes):
        return judge, human
    truth, verdicts = _verdicts(table)
    return (verdicts[0].name, truth) if len(verdicts) == 1 else (judge, human)


def _verdicts(table: Table) -> tuple[str, list[Column]]:
    """The column with what people say is true, or else a label, and the columns that may hold verdicts of it; "" if there are none."""
    human = usual_columns_of_judges(table.names)[1]
    said = [c for c in table.columns if c.words & _SAID and c.is_label_like]
    people = [
        c for c in table.columns if c.name == human or (c in said and c.words & column_names.PEOPLE)
    ]
    usual = {plain(name): table[name] for name in reversed(table.names)}
    labels = [usual[name] for name in column_names.LABELS if name in usual]
    said = [c for c in said if c not in people and not c.words & TRUE]
    for truth in (*(people if len(people) == 1 else ()), *labels):
        may_be = [
            c for c in said if c != truth and (truth in people or c.words & column_names.VERDICTS)
        ]
        if verdicts := [c for c in may_be if c.classes & truth.classes]:
            return truth.name, verdicts
    return "", []


def _sure(table: Table, options: ReadingOptions) -> list[Column]:
    """The columns that may say how sure judges are, unless the options say what the columns are."""
    said = (options.for_map, options.models, options.correct_column, options.answers, options.confidence_pattern)  # fmt: skip
    if any(said) or options.kind_of_scores or not table.named:
        return []
    sure = [c for c in table.columns if c.numeric and c.words & _SURE]
    return [c for c in sure if c.words & column_names.SURE] or sure


def _may_be_sure(column: Column, k: int) -> bool:
    """Whether few of the numbers, which may be in percent, lie below 1/k, as the confidence in one of k verdicts does."""
    values = column.head[~np.isnan(column.head)]
    whole = 100 if values.max(initial=0) > 1 else 1
    return bool(values.size) and float(np.mean(values < whole / k - 1e-6)) <= BELOW_CHANCE


def with_verdicts(table: Table, options: ReadingOptions) -> ReadingOptions:
    """Return the options with the verdict of a judge as the prediction and what people say as the label, beside how sure it is."""
    sure = _sure(table, options)
    verdict, human = columns_of_judges(table) if sure else (None, None)
    mine = (options.prediction_column or verdict, options.label or human) == (verdict, human)
    if not (mine and verdict and human) or verdict in usual_columns_of_judges(table.names):
        return options
    says: dict[str, Any] = {"prediction_column": verdict, "label": human}
    if plain(verdict) in column_names.CORRECTS and not options.prediction_column:
        readings = [
            Reading(f"'{short(verdict)}' is what the judge says", says),
            Reading(f"'{short(verdict)}' says whether it was right", {"correct_column": verdict}),
        ]
        what = f"'{short(verdict)}' may be what the judge says, or whether it was right; say which"
        raise InputError(what, readings=readings)
    k = len(table[human].classes | table[verdict].classes)
    if not options.scores and len(sure) == 1 and _may_be_sure(sure[0], k):
        says |= {"kind": "confidence", "scores": (sure[0].name,)}
    return replace(options, **says)


def judges_beside(table: Table, options: ReadingOptions) -> dict[str, ReadingOptions]:
    """The options that read each judge of a table, by its name, if several have a verdict, and how sure they are, in columns of their own."""

    def judge(column: Column) -> tuple[str, ...]:
        return tuple(w for w in column_names.words(column.name) if w not in _SAID | _SURE)

    sure = {} if options.scores else {judge(c): c for c in _sure(table, options)}
    truth, verdicts = _verdicts(table) if len(sure) > 1 else ("", [])
    pairs = [(c.name, sure[judge(c)]) for c in verdicts if judge(c) and judge(c) in sure]
    pairs = [(v, s) for v, s in pairs if _may_be_sure(s, len(table[truth].classes))]
    if len(pairs) < 2 or options.prediction_column or options.label not in (None, truth):
        return {}
    others = (f"!{name}" for v, s in pairs for name in (v, s.name))
    base = replace(
        options, label=truth, kind="confidence", groups=(*(options.groups or ("*",)), *others)
    )
    names = column_names.without_common_words([v for v, _ in pairs], of_models=True)
    of_names = zip(names, pairs, strict=True)
    return {n: replace(base, prediction_column=v, scores=(s.name,)) for n, (v, s) in of_names}


class JudgedRows(NamedTuple):
    """The rows that a judge and people have judged, as probabilities and labels: how to read them, what to say, and what else can be asked."""

    table: Table
    options: ReadingOptions
    notices: tuple[Finding, ...]
    ways: tuple[Reading, ...]


def judged_rows(table: Table, options: ReadingOptions) -> JudgedRows | None:
    """Make the labelled rows of a file with a judge and people predictions: the judge's score is the probability.

    None if no columns have the names of both, if the options say that others are the scores and the label, or if no row has both.
    """
    judge, human = columns_of_judges(table)
    if judge is None or human is None or with_verdicts(table, options) is not options:
        return None
    said = (options.kind, options.models, options.prediction_column, options.correct_column, options.answers, options.confidence_pattern)  # fmt: skip
    if any(said) or {*options.repair} - {"drop-missing"} or _names_judges(table, judge, options):
        return None
    if (options.label or human, options.scores or (judge,)) != (human, (judge,)):
        return None
    read = table.fetch((), [judge, human]).columns
    columns = _others(table, judge, human)
    ways: tuple[Reading, ...] = ()
    for sure in columns:
        if table[sure].numeric and table[sure].words & column_names.SURE and not ways:
            way = {"kind": "confidence", "scores": (sure,), "prediction_column": judge}
            missing = any(is_missing(level.strip()) for level in Factor.of(read[human]).levels)
            way |= {"label": human} | ({"repair": ("drop-missing",)} if missing else {})
            ways = (Reading("is its confidence right?", way),)
    try:
        both = _said(read, judge, human, options.class_names or ())
        score, people, yes = both.aligned()
    except InputError as error:
        # Which word is yes does not matter to whether its confidence is right.
        raise error.but(readings=(*error.readings, *ways) if error.readings else ()) from None
    at = np.flatnonzero(~np.isnan(score) & ~np.isnan(people))
    if not at.size:
        return None
    # What another judge says of a row is no group of rows.
    free = columns.keys() - {*(options.groups or ())}
    others = [c.name for c in table.columns if c.name in free and _is_of_another_judge(c)]
    for name in others:
        del columns[name]
    names = (both.human.no, yes) if both.human.no else ("0", "1")
    columns |= {judge: score, human: Factor((people == 1).astype(np.int32), names)}
    text = f"{at.size:,} of {score.size:,} rows have both '{short(judge)}' and '{short(human)}', and only these are judged here; all count on the tab Judge, and for calviz judge"  # fmt: skip
    also = f"{', '.join(map(short, others))}: verdicts of other judges, no groups of rows; calviz judge --judge NAME asks what one is worth"  # fmt: skip
    notes = {both.grades: Notice.CONVERTED, text: Notice.LEFT_OUT, also * bool(others): Notice.LEFT_OUT}  # fmt: skip
    if not np.isin(score[at], (0, 1)).all():
        ways = ()
    else:
        answers = f"'{short(judge)}' answers yes or no: as probabilities these are 0 and 1; the tab Judge, and calviz judge, say what they are worth"
        notes[answers] = Notice.SCORE_COLUMNS
        for sure in (way.options["scores"][0] for way in ways):
            notes[f"'{short(sure)}' is not judged here: another way to read the file asks whether it is right"] = Notice.SCORE_COLUMNS  # fmt: skip
    return JudgedRows(
        arrow_rows(
            arrow_of(columns).take(at), "the file has", format=table.format, notices=table.notices
        ),
        replace(options, label=human, scores=(judge,), class_names=names, kind="probabilities"),
        tuple(kind.finding("info", t) for t, kind in notes.items() if t),
        ways,
    )


def _names_judges(table: Table, judge: str, options: ReadingOptions) -> bool:
    """Whether a column called a judge names who judged each row: it has no words for yes, and rows of several judges share an identifier."""
    if table[judge].numeric or event_of(table[judge].classes) is not None:
        return False
    long = next(iter(long_forms(TableView(table, options), set())), ())
    ids = table[long[0]].head.tolist() if long[1:] == (judge,) else ()
    return len({*ids}) < len(ids)


def _is_of_another_judge(column: Column) -> bool:
    share = column.numeric and np.nanmax(np.abs(column.head.astype(float) - 0.5), initial=0) <= 0.5
    verdict = share or event_of(column.classes) is not None
    if column.words & column_names.SURE:
        return False
    return verdict and any(word.startswith(("judge", "autorater")) for word in column.words)


def with_verdicts_as_scores(
    table: Table, fitted_on: Mapping[str, Any], class_names: Sequence[str]
) -> Table:
    """Return a table to which a map is applied with words for yes and no as 0 and 1, if the only probability that it was fitted on is such a column."""
    judge, *more = fitted_on.get("columns") or ("",)
    is_judge = fitted_on.get("kind") == "probabilities" and not more and judge in table
    if not is_judge or table[judge].type != "text":
        return table
    says = yes_or_score(table.fetch((), [judge]).columns[judge], judge, class_names)
    rows = arrow_of({judge: says.values} | _others(table, judge))
    return arrow_rows(rows, "the file has", format=table.format, notices=table.notices)


def _others(table: Table, *but: str) -> dict[str, Any]:
    """All columns with one value per row but some, whole numbers as such."""
    columns = table.singles(*but)
    for c in table.columns:
        values = columns.get(c.name)
        if c.type == "integer" and values is not None and not np.isnan(values).any():
            whole = values.astype(np.int64)
            columns[c.name] = Factor.of(whole) if column_names.is_identifier(c.name) else whole
    return columns


def _said(
    columns: Mapping[str, Any], judge: str, human: str, class_names: Sequence[str]
) -> JudgeColumns:
    """Read both columns, that of people first: where both hold grades, one threshold is for both."""
    looked = yes_or_score(columns[human], human, class_names, of_people=True)
    says = yes_or_score(columns[judge], judge, class_names)
    if says.grades and looked.grades and says.highest != looked.highest:
        raise InputError(
            f"'{short(judge)}' has grades to {says.highest:g}, '{short(human)}' to {looked.highest:g}",
            remedy="write one of them as yes and no",
        )
    return JudgeColumns(says, looked)


def share_labels(item: AnyArray, human: FloatArray) -> bool:
    """Whether items, shape (n,), have several labels, which never differ within one: it was labelled once."""
    seen = ~np.isnan(human)
    code = np.unique(item[seen], return_inverse=True)[1]
    rows, yes = np.bincount(code), np.bincount(code, human[seen])
    return rows.max(initial=0) > 1 and not (yes * (rows - yes)).any()


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
    of: tuple[str | None, str] = (None, ""),
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
        `cluster` is that of the format, if left out: the question of a log that asks it again; or the column of items whose rows share
        one human label, as those of several judges do; "" means none.
    class_names : sequence of str
        The words for no and yes, if these leave it open.
    name : str, optional
        Name of the file in messages.
    of : tuple of (str or None, str), optional
        A column with the name of the judge of each row, if there are several, and the judge whose rows are read.

    Raises
    ------
    InputError
        If a column is missing, or holds something else.
    """
    with np.errstate(all="ignore"), Source(source, name) as opened, in_file(opened.name):
        table = file_format.format_of(opened).open(opened)
        chosen = [
            _found(table, given or found, what)
            for given, found, what in zip(
                (judge, human), columns_of_judges(table), ("judge", "human"), strict=True
            )
        ]
        columns = (by,) if isinstance(by, str) else tuple(by or ())
        question = table.cluster if cluster is None else cluster
        may_be = [c for c in table.columns if c.width is None and c.name not in columns]
        may_be = [c for c in may_be if c.words & _ITEMS or column_names.may_be_cluster(c.name)]
        items = [c.name for c in may_be] if question is None else []
        others = [n for n in (*columns, chance, question, of[0], *items) if n]
        wanted = list(dict.fromkeys([*chosen, *(_found(table, n, "") for n in others)]))
        read, at = table.fetch((), wanted).columns, None
        if of[0]:
            named = Factor.of(read[of[0]]).values()
            at = np.flatnonzero([f"{of[0]} {v}" == of[1] or v == of[1] for v in named])
            read = {n: v.take(at) for n, v in read.items()}
        try:
            said = _said(read, chosen[0], chosen[1], class_names)
        except InputError as error:
            line = None if error.row is None else table.line(error.row - 1)
            raise error.but(line=line) from None
        found = next((n for n in items if share_labels(Factor.of(read[n]).codes, said.human.values)), "")  # fmt: skip
        share, asked = (read[n] if n else None for n in (chance, question or found))
        if isinstance(share, Factor):
            raise InputError("the chances are not numbers", column=chance)
        by_column = {n: read[n] for n in columns}
        return replace(said, by=by_column, chance=share, cluster=asked, items=found, at=at)


def _found(table: Table, name: str | None, what: str) -> str:
    if name is None:
        raise InputError(
            f"there is no column called '{what}' ({known_columns(table.names)})",
            remedy=f"say which column it is: --{what} COL",
        )
    if name not in table:
        raise InputError(f"there is no column '{short(name)}' ({known_columns(table.names)})")
    return name
