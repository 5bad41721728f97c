"""Several answers to each question: which are the same, how far they agree, and one row per question with a confidence for each signal."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from calviz.core.blocks import BoolArray, FloatArray, IntArray
from calviz.core.errors import Finding, InputError
from calviz.core.row_columns import Factor
from calviz.core.words import counted
from calviz.data import column_names
from calviz.data.column_names import is_missing, plain
from calviz.data.format import Table
from calviz.data.judge_columns import yes_or_score
from calviz.data.loaded import Notice, ReadingOptions, known_columns, short
from calviz.data.rows_in_memory import arrow_rows
from calviz.data.stated_confidence import arrow_of, pattern_of, settled, stated, unstated

#: Names of the columns that logs of language models are read into.
ANSWER, CORRECT, QUESTION, STATED, LOG_PROBABILITY = "answer", "correct", "question", "stated", "log-probability"  # fmt: skip
QUESTIONS = (QUESTION, "question_id", "qid", "prompt_id", "problem", "problem_id", "task_id", "doc_id", "sample_id", "prompt")  # fmt: skip
#: Answers that differ in one of these are not samples of one distribution.
APART = ("model", "system", "task", "prompt", "perturbation")
#: A signal that fewer of the questions have is left out.
LEAST_SHARE = 0.5

# ---- Which answers are the same

_ANSWER_LINE = re.compile(r"\banswer\W{0,3}(?:\s+is)?\W{0,4}?[:=]\W{0,4}?(?P<answer>[^\s*_][^\n]*)", re.IGNORECASE)  # fmt: skip
_NUMBER = re.compile(r"[$€£]?\s?(?P<sign>[+-]?)(?P<whole>[1-9]\d{0,2}(?:,\d{3})+|\d*)(?:\.(?P<part>\d*))?")  # fmt: skip
_AROUND = (("(", ")"), ("[", "]"), ("{", "}"), ("**", "**"), ("*", "*"), ("_", "_"), ("`", "`"), ("$", "$"), ('"', '"'), ("'", "'"))  # fmt: skip
#: Longer answers are kept as their digest.
_LONGEST = 200


def normalised(text: str) -> str:
    """Return the form that equal answers share: without case, outer punctuation and repeated spaces, and numbers in one form.

    Punctuation within an answer stays, and brackets stay around a list, where they may mean something.

    >>> normalised(" **Paris**. "), normalised("(B)"), normalised("$1,200.00"), normalised("-0.50"), normalised("(0, 1]")
    ('paris', 'b', '1200', '-0.5', '(0, 1]')
    """
    text = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    text = text.replace("\u2212", "-").translate({0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"'})  # fmt: skip
    while True:
        before = text
        text = text.strip().rstrip(".,;: ")
        for left, right in _AROUND:
            inner = text[len(left) : -len(right)]
            is_around = text.startswith(left) and text.endswith(right) and bool(inner.strip())
            if is_around and not any(c in inner for c in (*(left + right), ",")):
                text = inner
        if text == before:
            break
    number = _NUMBER.fullmatch(text)
    if number is None or not (number["whole"] or number["part"]):
        return text
    whole = number["whole"].replace(",", "").lstrip("0") or "0"
    part = (number["part"] or "").rstrip("0")
    value = f"{whole}.{part}" if part else whole
    return f"-{value}" if number["sign"] == "-" and value != "0" else value


@dataclass(frozen=True)
class AnswerRule:
    """How the answer is found in a text, and when two are the same.

    Attributes
    ----------
    pattern : re.Pattern or None
        Its first group, or the one called ``answer``, is the answer; the last match counts. If None: what follows the last "Answer:",
        else the text without its statement of a confidence.
    exact : bool
        Whether answers are the same only letter by letter.
    confidence : re.Pattern or None
        How the text states a confidence, if not in a usual way.
    """

    pattern: re.Pattern[str] | None = None
    exact: bool = False
    confidence: re.Pattern[str] | None = None

    def of(self, text: str) -> str:
        """Return the answer in the form that the same ones share; "" if there is none."""
        if self.pattern is not None:
            name: str | int = "answer" if "answer" in self.pattern.groupindex else 1
            found = list(self.pattern.finditer(text))
            answer = (found[-1][name] or "") if found else ""
        else:
            text = unstated(text, self.confidence)
            lines = list(_ANSWER_LINE.finditer(text))
            answer = lines[-1]["answer"] if lines else text
        answer = answer.strip() if self.exact else normalised(answer)
        is_long = len(answer) > _LONGEST
        return hashlib.blake2b(answer.encode(), digest_size=16).hexdigest() if is_long else answer


@dataclass(frozen=True)
class TextRules:
    """What is read from the text of an answer in a log.

    Attributes
    ----------
    confidence : re.Pattern or None
        How it states a confidence, if not in a usual way.
    answer : AnswerRule or None
        How the answer is found in it; None if answers are not compared.
    """

    confidence: re.Pattern[str] | None = None
    answer: AnswerRule | None = None

    @classmethod
    def of(cls, options: ReadingOptions) -> TextRules:
        """Return the rules that the options ask for; raise OptionError for a pattern that is none."""
        given = options.confidence_pattern
        confidence = pattern_of(given) if given else None
        if options.answers is None:
            return cls(confidence)
        found = options.answer_pattern
        pattern = pattern_of(found, "answer_pattern", "Antwort: (.+)") if found else None
        return cls(confidence, AnswerRule(pattern, options.same_answers == "exact", confidence))


# ---- How far they agree


class Agreement(NamedTuple):
    """Of the most frequent answer to each question, arrays of shape (q,); the first given one of those that are equally frequent.

    `share` of the answers, `entropy` of all answers in nats, `answers` per question, whether it is `correct` by most of its marks (by the
    first of them if they are even), whether others are as frequent (`tied`), whether its marks differ (`mixed`), and for each row, shape (n,),
    whether it gives this answer.
    """

    share: FloatArray
    entropy: FloatArray
    answers: IntArray
    correct: BoolArray
    tied: BoolArray
    mixed: BoolArray
    gives: BoolArray


def agreement(question: IntArray, answer: IntArray, correct: BoolArray) -> Agreement:
    """Sum up the answers to each question.

    Parameters
    ----------
    question : ndarray of int, shape (n,)
        Index of the question, from 0 to q - 1, all of which occur, as int64.
    answer : ndarray of int, shape (n,)
        Index of the answer, -1 for one that equals no other.
    correct : ndarray of bool, shape (n,)

    References
    ----------
    Wang et al. 2023 (self-consistency) for the share; Farquhar et al. 2024 (discrete semantic entropy) for the entropy.

    Examples
    --------
    >>> import numpy as np
    >>> found = agreement(np.array([0, 0, 0, 1, 1]), np.array([7, 8, 7, 8, 9]), np.array([1, 0, 1, 1, 0], dtype=bool))
    >>> found.share.round(3).tolist(), found.entropy.round(3).tolist(), found.correct.tolist(), found.tied.tolist()
    ([0.667, 0.5], [0.637, 0.693], [True, True], [False, True])
    """
    rows = np.arange(question.size)
    answer = np.where(answer < 0, answer.max(initial=0) + 1 + rows, answer)
    pairs = question * (answer.max(initial=0) + 1) + answer
    _, first, pair, size = np.unique(
        pairs, return_index=True, return_inverse=True, return_counts=True
    )
    of = question[first]
    answers = np.bincount(question)
    share = size / answers[of]
    entropy = np.bincount(of, -share * np.log(share))
    order = np.lexsort((first, -size, of))
    best = order[np.searchsorted(of[order], np.arange(answers.size))]
    most = size[best]
    tied = np.bincount(of, size == most[of]) > 1
    right = np.bincount(pair, correct)[best]
    is_right = np.where(2 * right == most, correct[first[best]], 2 * right > most)
    gives = pair == best[question]
    mixed = (right > 0) & (right < most)
    return Agreement(share[best], entropy.clip(0), answers, is_right, tied, mixed, gives)


# ---- One row per question


def column_of_answers(names: Iterable[str], cluster: str | None) -> str | None:
    """The column that holds several answers to each question, by the names of a file's columns and its cluster; None if nothing says so."""
    by_name = {plain(n): n for n in reversed(list(names))}
    if cluster == QUESTION and CORRECT in by_name:
        return by_name.get(ANSWER, ANSWER)
    return by_name.get(ANSWER) if any(q in by_name for q in QUESTIONS) else None


@dataclass(frozen=True, eq=False)
class Signals:
    """A table of one row per question for each signal, and the options to read it with: the signal is the only score."""

    tables: dict[str, Table]
    options: ReadingOptions


@dataclass
class _Answered:
    """The columns of a table that are read, and what was found in them."""

    table: Table
    options: ReadingOptions
    rule: AnswerRule
    findings: list[Finding] = field(default_factory=list)

    def __post_init__(self) -> None:
        names = [c.name for c in self.table.columns if c.type != "other" and c.width is None]
        self.columns: dict[str, Any] = dict(self.table.fetch((), names).columns)
        self.used: set[str] = set()

    def named(self, given: str | None, usual: Iterable[str]) -> str | None:
        """The column of a given name, or of the first usual one; raise InputError for a name that no column has."""
        if given:
            if given not in self.columns:
                known = known_columns(tuple(self.columns))
                raise InputError(f"there is no column '{short(given)}' ({known})")
            name: str | None = given
        else:
            by_name = {plain(n): n for n in reversed(list(self.columns))}
            name = next((by_name[u] for u in usual if u in by_name), None)
        self.used |= {name} if name else set()
        return name

    def answers(self) -> Factor:
        """The text of each answer."""
        name = self.options.answers
        if name not in self.columns:
            raise InputError(
                f"there is no column '{short(str(name))}' with the answers ({known_columns(tuple(self.columns))})",
                remedy="name the column of the answers; in logs of language models that hold texts it is 'answer'",
            )
        self.used.add(name)
        return Factor.of(self.columns[name])

    def question(self) -> tuple[str, Factor]:
        """The name of the column of questions, and the question of each row."""
        given = self.options.cluster_column or self.table.cluster
        name = self.named(given, QUESTIONS)
        if name is None or name == self.options.answers:
            raise InputError(
                f"no column says which question a row answers ({known_columns(tuple(self.columns))})",
                remedy="name it as the cluster: cluster_column, --cluster COL",
            )
        return name, Factor.of(self.columns[name])

    def correct(self, key: IntArray, keys: list[str]) -> BoolArray:
        """Whether each answer is right: as a column says, or as it is the same as the right one."""
        name = self.named(self.options.correct_column, column_names.CORRECTS)
        if name is not None:
            said = yes_or_score(self.columns[name], name).values
            wrong = ~np.isin(said, (0, 1))
            if wrong.any():
                row = int(wrong.argmax())
                raise InputError(
                    "this does not say whether the answer is right",
                    row=row + 1,
                    line=self.table.line(row),
                    column=name,
                    remedy="write 1 or 0",
                )
            return np.asarray(said == 1)
        name = self.named(self.options.label, column_names.LABELS)
        if name is None:
            raise InputError(
                "nothing says whether an answer is right",
                remedy="add a column 'correct' (1 or 0), or 'label' with the right answer",
            )
        truth = Factor.of(self.columns[name])
        place = {k: j for j, k in enumerate(keys) if k}
        right = np.array([place.get(self.rule.of(level), -2) for level in truth.levels])
        return np.asarray(right[truth.codes] == key)

    def numbers(self, name: str) -> FloatArray | None:
        """A column of numbers; None if its first rows hold text."""
        if not self.table[name].numeric:
            return None
        return np.asarray(self.table.fetch([(name,)], ()).scores[0][:, 0], dtype=np.float64)

    def confidences(self, answers: Factor) -> dict[str, FloatArray]:
        """The confidence that each row states, and the probability of its answer by its log-probability, nan where there is none."""
        scores = self.options.scores[0] if self.options.scores else None
        name = self.named(scores, (STATED, *column_names.CONFIDENCES))
        found: dict[str, FloatArray] = {}
        read = None if name is None else self.numbers(name)
        if read is None:
            column = answers if name is None else Factor.of(self.columns[name])
            each = [stated(t, self.rule.confidence, whole=name is not None) for t in column.levels]
            values = np.array([np.nan if one is None else one[0] for one in each])[column.codes]
            bare = np.array([one is not None and not one[1] for one in each])[column.codes]
        else:
            values, bare = read, ~np.isnan(read)
        if not np.isnan(values).all():
            values, findings = settled(values, bare)
            self.findings += findings
            found[STATED] = values
        name = self.named(None, (plain(LOG_PROBABILITY), *column_names.LOG_CONFIDENCES))
        logs = None if name is None else self.numbers(name)
        if logs is not None:
            found[LOG_PROBABILITY] = np.where(logs <= 0, np.exp(np.minimum(logs, 0)), np.nan)
        return found

    def say(self, text: str) -> None:
        self.findings.append(Notice.LOGS_AND_HINTS.finding("info", text))


def by_question(table: Table, options: ReadingOptions) -> Signals:
    """Make one row per question of the answers to it: the most frequent answer, whether it is right, and how sure each signal is of it.

    ``agreement`` is the share of the answers that are the most frequent one, ``entropy`` is ``exp(-H)`` for the entropy H of the answers, one over
    their effective number; ``stated`` and ``log-probability`` are the means over the rows with the most frequent answer.

    Raises
    ------
    InputError
        Without a column of answers, of questions, or one that says what is right, and if no question has two answers.
    """
    rule = TextRules.of(options).answer
    assert rule is not None
    rows = _Answered(table, options, rule)
    answers, (question_name, question) = rows.answers(), rows.question()
    # The reader of a log has found the answers in the texts.
    raw = table.cluster is None
    keys = [("" if is_missing(t.strip()) else rule.of(t)) if raw else t for t in answers.levels]
    known, key = np.unique(np.array(keys, dtype=object), return_inverse=True)
    key = key.reshape(-1)[answers.codes]
    found = [str(k) for k in known]
    right = rows.correct(key, found)
    signals = rows.confidences(answers)
    key = np.where(np.array([k == "" for k in found])[key], -1, key)
    apart = [n for n in rows.columns if plain(n) in APART and n not in rows.used]
    unit, several = _units(question, [Factor.of(rows.columns[n]) for n in apart])
    number = np.bincount(unit)
    if number.max() < 2:
        raise InputError(
            f"each of the {counted(number.size, 'question')} has one answer, so that there is nothing to agree",
            column=question_name,
            remedy="ask each question several times (epochs, samples), or read the file without 'answers'",
        )
    keep = (number > 1)[unit]
    if not keep.all():
        rows.say(
            f"{int((number == 1).sum()):,} of {counted(number.size, 'question')} with one answer left out"
        )
    unit = np.unique(unit[keep], return_inverse=True)[1].reshape(-1)
    first = np.flatnonzero(keep)[np.unique(unit, return_index=True)[1]]
    sums = agreement(unit, key[keep], right[keep])
    columns: dict[str, Any] = {"agreement": sums.share, "entropy": np.exp(-sums.entropy)}
    for name, values in signals.items():
        columns[name] = _means(unit, np.where(sums.gives, values[keep], np.nan))
    ids = [question.levels[question.codes[r]] for r in first]
    if several:
        ids = ["/".join([i, *(_text(rows.columns[n], r) for n in apart)]) for i, r in zip(ids, first, strict=True)]  # fmt: skip
    rest = _constant(rows, unit, keep, first, question_name)
    if several:
        rest |= {question_name: question.take(first)}
    signals_kept, complete = _kept(columns, rows)
    _say(rows, sums, complete)
    at = np.flatnonzero(complete)
    shared: dict[str, Any] = {CORRECT: sums.correct[at], "id": np.array(ids, dtype=object)[at]}
    shared |= {n: v.take(at) if isinstance(v, Factor) else v[at] for n, v in rest.items() if n not in (*shared, *columns)}  # fmt: skip
    notices = [*table.notices, *rows.findings]
    tables: dict[str, Table] = {
        name: arrow_rows(arrow_of({name: columns[name][at]} | shared), "the file has", format=table.format, notices=notices)
        for name in signals_kept
    }  # fmt: skip
    options = replace(
        options, answers=None, answer_pattern=None, same_answers="normalised", confidence_pattern=None, kind="confidence", label=None, choices=None,
        correct_column=CORRECT, id_column="id", cluster_column=question_name if several else None,
    )  # fmt: skip
    return Signals(tables, options)


def _units(question: Factor, apart: list[Factor]) -> tuple[IntArray, bool]:
    """The question of each row, told apart by other columns, from 0 in order of appearance; and whether these divide any question."""
    keys = np.stack([question.codes, *(f.codes for f in apart)])
    _, first, unit = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    rank = np.argsort(np.argsort(first))
    return rank[unit.reshape(-1)], first.size > np.unique(question.codes).size


def _means(unit: IntArray, values: FloatArray) -> FloatArray:
    """Mean over the rows of each question that have a value; nan where none has."""
    has = ~np.isnan(values)
    number = np.bincount(unit, has)
    with np.errstate(invalid="ignore"):
        return np.bincount(unit, np.where(has, values, 0.0)) / np.where(number > 0, number, np.nan)


def _text(column: Any, row: int) -> str:
    return column.levels[column.codes[row]] if isinstance(column, Factor) else f"{column[row]:g}"


def _constant(
    rows: _Answered, unit: IntArray, keep: BoolArray, first: IntArray, question_name: str
) -> dict[str, Any]:
    """Other columns that are the same for all answers to a question, one value each; says which are not."""
    rest, varying = {}, []
    for name, column in rows.columns.items():
        if name in rows.used or name == question_name:
            continue
        factor = Factor.of(column)
        if not np.array_equal(factor.codes[first][unit], factor.codes[keep]):
            varying.append(f"'{short(name)}'")
            continue
        rest[name] = column.take(first) if isinstance(column, Factor) else column[first]
    if varying:
        shown = ", ".join(varying[:5])
        rows.say(f"left out, as the answers to a question differ in it: {shown}")
    return rest


def _kept(columns: dict[str, FloatArray], rows: _Answered) -> tuple[list[str], BoolArray]:
    """The signals that most questions have, and the questions that have all of these, shape (q,)."""
    known = {name: ~np.isnan(values) for name, values in columns.items()}
    kept = [name for name, has in known.items() if has.mean() >= LEAST_SHARE]
    for name in known:
        if name not in kept and (has := int(known[name].sum())):
            rows.say(
                f"'{name}' is left out: only {has:,} of {counted(known[name].size, 'question')} have it"
            )
    return kept, np.logical_and.reduce([known[name] for name in kept])


def _say(rows: _Answered, sums: Agreement, complete: BoolArray) -> None:
    low, high = int(sums.answers.min()), int(sums.answers.max())
    each = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    text = (
        f"one row per question, of the most frequent of {each} answers: {counted(int(complete.sum()), 'question')}"
        f"; ties, of which the answer given first counts: {int(sums.tied.sum()):,}"
    )
    if sums.mixed.any():
        text += f"; the same answer marked right and wrong: {int(sums.mixed.sum()):,}"
    if not complete.all():
        text += f"; {int((~complete).sum()):,} left out, in which no row with that answer has each confidence"
    rows.say(text)
