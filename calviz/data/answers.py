"""Answers in texts: the confidence that one states, which of several are the same, how far they agree, and one row per question."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from calviz.core.blocks import BoolArray, Factor, FloatArray, IntArray
from calviz.core.errors import Finding, InputError, OptionError, shortened
from calviz.core.p_values import clopper_pearson
from calviz.core.words import counted, percent, percent_range
from calviz.data import column_names
from calviz.data import format as file_format
from calviz.data.column_names import is_missing, plain
from calviz.data.format import Column, Notice, ReadingOptions, Table, known_columns, place, short
from calviz.data.judge_columns import yes_or_score
from calviz.data.roles import PERCENT_WORDS, are_percentages
from calviz.data.rows_in_memory import arrow_of, arrow_rows

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
    answer = np.where(answer < 0, answer.max(initial=0) + 1 + np.arange(question.size), answer)
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
        name = self.named(self.options.cluster_column or self.table.cluster, QUESTIONS)
        if name is None or name == self.options.answers:
            raise InputError(
                f"no column says which question a row answers ({known_columns(tuple(self.columns))})",
                remedy="name it as the cluster: cluster_column, --cluster COL",
            )
        return name, Factor.of(self.columns[name])

    def correct(self, key: IntArray, keys: list[str]) -> BoolArray:
        """Whether each answer is right: as a column says, or as it is the same as the right one."""
        worded = [c.name for c in self.table.columns if c.says_right]
        name = self.named(self.options.correct_column, column_names.CORRECTS)
        name = name or (worded[0] if len(worded) == 1 else None)
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
        if truth.codes.size and np.all(right == -2):
            raise InputError(
                "this is taken for the right answer, but equals none of the answers",
                column=name,
                remedy="add a column 'correct' (1 or 0), or name the one with the right answer",
            )
        return np.asarray(right[truth.codes] == key)

    def numbers(self, name: str) -> FloatArray | None:
        """A column of numbers; None if its first rows hold text."""
        if not self.table[name].numeric:
            return None
        return np.asarray(self.table.fetch([(name,)], ()).scores[0][:, 0], dtype=np.float64)

    def confidences(self, answers: Factor) -> dict[str, FloatArray]:
        """The confidence that each row states, and the probability of its answer by its log-probability, nan where there is none."""
        scores = self.options.scores[0] if self.options.scores else None
        sure = [c for c in self.table.columns if c.numeric and c.is_sure]
        logged = [c.name for c in sure if c.is_log_probability]
        named = [c.name for c in sure if not c.is_log_probability]
        name = self.named(scores, (STATED, *column_names.CONFIDENCES))
        name = name or (named[0] if len(named) == 1 else None)
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
        name = name or (logged[0] if len(logged) == 1 else None)
        logs = None if name is None else self.numbers(name)
        if logs is not None:
            found[LOG_PROBABILITY] = np.where(logs <= 0, np.exp(np.minimum(logs, 0)), np.nan)
        return found

    def say(self, text: str) -> None:
        self.findings.append(Notice.LOGS_AND_HINTS.finding("info", text))


def by_question(table: Table, options: ReadingOptions) -> tuple[dict[str, Table], ReadingOptions]:
    """Make one row per question of the answers to it: the most frequent answer, whether it is right, and how sure each signal is of it.

    Return a table for each signal, and the options to read it with: the signal is the only score.

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
    return tables, options


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
        rows.say(f"left out, as the answers to a question differ in it: {', '.join(varying[:5])}")
    return rest


def _kept(columns: dict[str, FloatArray], rows: _Answered) -> tuple[list[str], BoolArray]:
    """The signals that most questions have, and the questions that have all of these, shape (q,)."""
    known = {name: ~np.isnan(values) for name, values in columns.items()}
    kept = [name for name, has in known.items() if has.mean() >= LEAST_SHARE]
    for name in known:
        if name not in kept and (has := int(known[name].sum())):
            of = counted(known[name].size, "question")
            rows.say(f"'{name}' is left out: only {has:,} of {of} have it")
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


# ---- Confidence that is stated in a text: "Confidence: 85%", "85/100", "I am 0.85 sure"
#
# A number counts only beside a word for confidence, or if it is all of the text. Bounds ("at least 80 %") and ranges state no number;
# of several statements the last one counts, as answers end with it. Prompts that ask for this form: Lin et al. 2022, Tian et al. 2023.


_VALUE = (
    r"(?<![\w.,/<>≤≥–—-])(?P<value>\d{1,3}+(?:\.\d++)?+|\.\d++)"
    r"(?P<unit>\s*\\?%|\s*(?:percent|per\ cent)\b|\s*(?:/|out\ of)\s*100?\b)?+"
    r"(?![.,]?\d|\s*[-–—/~]\s*\.?\d|\s+(?:to|and|or)\s+\d|\w)"
)
_GAP = r"""["'*_`\s$({\[\\]*"""
_BOUND = r"(?:(?P<bound>\b(?:not|than|least|most|over|under|above|below|to|and|or|between)\s|[<>≤≥]=?)\s*)?"
#: How much of a text at its end is looked at, and at most shown.
_TAIL, _SHOWN = 20_000, 60
_ALONE = re.compile(rf"\W*?{_VALUE}\W*", re.VERBOSE)
#: What is left before a statement that was taken away.
_I_AM = re.compile(r"\b(?:i\s+am|i['\u2019]m)\s*(?=\n)", re.IGNORECASE)
#: Most of a long text need not be searched for numbers.
_WORD = re.compile("confiden|certain|sure", re.IGNORECASE)
_DEFAULT = tuple(
    re.compile(pattern, re.IGNORECASE | re.VERBOSE)
    for pattern in (
        rf"""\b(?:confidence|certainty)(?:\ (?:score|level|rating|estimate|percentage))?
        (?:\ (?:in|of|for|that)(?:\ (?:my|this|the|final|answer|response|is|it|being|correct|right))+)?
        \s*(?:\([^()\n]{{0,40}}\))?["'*_`\s]*(?:[:=]|->|\bis\b|\bof\b){_GAP}(?:about|around|approximately|roughly)?\s*{_VALUE}""",
        rf"""{_BOUND}{_VALUE}\s*(?:sure|certain|confident|confidence(?!\s+(?:interval|level|limit|bound|region|band)))\b""",
    )
)


def pattern_of(
    text: str, option: str = "confidence_pattern", example: str = "Sicherheit: ([0-9.]+%?)"
) -> re.Pattern[str]:
    """Compile a user's pattern, whose first group (or a named one) is what is looked for; raises OptionError."""
    try:
        pattern = re.compile(text, re.IGNORECASE)
    except re.error as error:
        raise OptionError(f"{option} is not a regular expression: {error}.") from None
    if not pattern.groups:
        what = "number" if option == "confidence_pattern" else "answer"
        raise OptionError(f"{option} must have the {what} in parentheses, such as '{example}'.")
    return pattern


def stated(
    text: str, pattern: re.Pattern[str] | None = None, *, whole: bool = False
) -> tuple[float, bool] | None:
    """Return the last confidence that a text states, and whether its unit is known; None if none is understood.

    Parameters
    ----------
    text : str
    pattern : re.Pattern, optional
        As `pattern_of` makes it, in place of the usual ways to state it.
    whole : bool
        Whether a text that is nothing but a number is a confidence; in an answer it is the answer.

    Examples
    --------
    >>> stated("Answer: B. Confidence: 85%"), stated("I am 0.85 sure"), stated("85/100", whole=True)
    ((0.85, True), (0.85, False), (0.85, True))
    >>> stated("Confidence: 85"), stated("at least 80% sure"), stated("the 95% confidence interval")
    ((85.0, False), None, None)
    """
    if pattern is not None:
        return _of_user(text[-_TAIL:], pattern)
    if whole and len(text) <= _SHOWN and (match := _ALONE.fullmatch(text)):
        return _number(match)
    text = text[-_TAIL:]
    found = [
        (match.end(), value)
        for word in _WORD.finditer(text)
        for one in _DEFAULT
        for match in one.finditer(text, max(0, word.start() - _SHOWN), word.end() + 4 * _SHOWN)
        if not match.groupdict().get("bound") and (value := _number(match)) is not None
    ]
    return max(found)[1] if found else None


def unstated(text: str, pattern: re.Pattern[str] | None = None) -> str:
    """Return the text without its statements of a confidence.

    >>> unstated("Paris. Confidence: 85%"), unstated("Rome, I am 0.6 sure"), unstated("about 80 people")
    ('Paris.', 'Rome,', 'about 80 people')
    """
    for one in _DEFAULT if pattern is None else (pattern,):
        if pattern is not None or _WORD.search(text):
            text = one.sub("\n", text)
    return _I_AM.sub("", text).strip("*_` \n\t")


def _of_user(text: str, pattern: re.Pattern[str]) -> tuple[float, bool] | None:
    group = "confidence" if "confidence" in pattern.groupindex else 1
    for match in reversed(list(pattern.finditer(text))):
        number = _ALONE.fullmatch(match[group] or "")
        if number is not None and (value := _number(number)) is not None:
            return value
    return None


def _number(match: re.Match[str]) -> tuple[float, bool] | None:
    value, unit = float(match["value"]), (match["unit"] or "").strip()
    if unit.endswith(("%", "t")) and 0 < value < 1:
        return None  # 0.85 % is more likely a share that was given a sign
    ends_in_10 = unit.startswith(("/", "out")) and not unit.endswith("100")
    known = float(f"{match['value']}e{-1 if ends_in_10 else -2}") if unit else value
    return (known, bool(unit)) if known <= (1 if unit else 100) else None


def settled(values: FloatArray, without_unit: BoolArray) -> tuple[FloatArray, list[Finding]]:
    """Return confidences in [0, 1], shape (n,), NaN where none is understood, and what was done.

    Values without a unit are per cent if all of them are whole numbers up to 100 and one is above 10; otherwise those above 1, which
    could be on any scale, are not understood.

    Parameters
    ----------
    values : ndarray of float, shape (n,)
    without_unit : ndarray of bool, shape (n,)
    """
    values = values.copy()
    if are_percentages(values[without_unit]):
        values[without_unit] /= 100
        return values, [Notice.CONVERTED.finding("info", PERCENT_WORDS)]
    values[without_unit & (values > 1)] = np.nan
    return values, []


def said(values: FloatArray, correct: BoolArray, shown: Sequence[str], where: str) -> list[Finding]:
    """Say where the confidences come from, and how many are not understood.

    Parameters
    ----------
    values : ndarray of float, shape (n,)
        NaN where none was understood.
    correct : ndarray of bool, shape (n,)
        Whether the answer is right; empty if that is not known here.
    shown : sequence of str
        Texts, or places, of rows that are not understood.
    where : str
        What states the confidence.
    """
    left = int(np.isnan(values).sum())
    if not left:
        text = f"the confidence is the one that {where} states"
        return [Notice.LOGS_AND_HINTS.finding("info", text)]
    right = f" ({int(correct[np.isnan(values)].sum()):,} right)" if correct.size else ""
    verb = "is" if left == 1 else "are"
    text = (
        f"the confidence is the one that {where} states; {left:,} of {len(values):,} rows{right}, in which none is understood, {verb} "
        f"left out: {file_format.join_places(list(shown), left)}"
    )
    return [Notice.LOGS_AND_HINTS.finding("warning", text)]


def ending(text: str) -> str:
    """The end of a text in quotes, to be shown in a message."""
    text = " ".join(text[-4 * _SHOWN :].split())
    return f"'{shortened(text if len(text) <= _SHOWN else '…' + text[1 - _SHOWN :])}'"


def no_confidence(
    correct: BoolArray, questions: Sequence[str], by_task: Sequence[str]
) -> InputError:
    """Return the error about answers without any confidence: how many are right, of all and by task.

    Parameters
    ----------
    correct : ndarray of bool, shape (n,)
    questions : sequence of str
        Identifiers of the questions; answers to the same question count as one in the interval, which is then wider than needed.
    by_task : sequence of str
        The task of each answer.
    """
    tasks = list(dict.fromkeys(by_task))
    parts = [share_right(correct, questions)]
    if 1 < len(tasks) <= 5:
        at = np.array(by_task)
        ids = np.array(questions, dtype=object)
        parts += [
            f"{t or '(none)'} {share_right(correct[at == t], ids[at == t].tolist())}" for t in tasks
        ]
    return InputError(
        f"{'; '.join(parts)} answers are right, but none states a confidence, so there is nothing to calibrate",
        remedy="ask the model for one, such as 'Confidence: 85%', or say how it is written (confidence_pattern, --confidence-pattern)",
    )


def share_right(correct: BoolArray, questions: Sequence[str]) -> str:
    """Write how many answers are right, with an interval: "12 of 40 (30.0 %, 95 % interval 16.6 to 46.5 %)"; see `no_confidence`."""
    n = len(set(questions))
    low, high = clopper_pearson([correct.mean() * n], [n])
    interval = percent_range(float(low[0]), float(high[0]))
    return f"{int(correct.sum()):,} of {correct.size:,} ({percent(float(correct.mean()))}, 95 % interval {interval})"


# ---- A text column of any table


def with_stated_confidence(table: Table, options: ReadingOptions) -> tuple[Table, ReadingOptions]:
    """Return the table with the confidence that a text column states in place of the text, and the options to read it with.

    The column is the one that the options name as the scores, or the only one in which a confidence is found. A table whose scores are
    not stated in a text is returned as it is.

    Raises
    ------
    InputError, OptionError
        If no text column, or more than one, states a confidence.
    """
    named = options.scores[0] if options.scores and len(options.scores) == 1 else None
    is_text = named in table and table[str(named)].type == "text"
    if options.confidence_pattern is None and not is_text:
        return table, options
    pattern = None if options.confidence_pattern is None else pattern_of(options.confidence_pattern)
    column = table[str(named)] if is_text else _stating(table, pattern)
    columns = table.singles()
    text = Factor.of(columns[column.name])
    found = [stated(level, pattern, whole=True) for level in text.levels]
    values = np.array([np.nan if one is None else one[0] for one in found])[text.codes]
    plain = np.array([one is not None and not one[1] for one in found])[text.codes]
    values, findings = settled(values, plain)
    understood = np.flatnonzero(~np.isnan(values))
    missing = np.flatnonzero(np.isnan(values))
    if not understood.size:
        raise InputError(
            "no row states a confidence that is understood",
            column=column.name,
            remedy="say how it is written (confidence_pattern, --confidence-pattern)",
        )
    shown = [
        f"{place(int(r), table.line)} {ending(text.levels[text.codes[r]])}" for r in missing[:3]
    ]
    findings += said(values, np.empty(0, dtype=bool), shown, f"'{shortened(column.name)}'")
    columns[column.name] = values
    lines = None
    if table.line(0) is not None:
        lines = np.array([table.line(int(row)) for row in understood], dtype=np.int64)
    made = arrow_rows(
        arrow_of(columns).take(understood),
        "the file has",
        format=table.format,
        notices=[*table.notices, *findings],
        lines=lines,
    )
    return made, replace(options, confidence_pattern=None, scores=(column.name,), kind="confidence")


def _stating(table: Table, pattern: re.Pattern[str] | None) -> Column:
    texts = [c for c in table.columns if c.type == "text" and c.width is None]
    found = [c for c in texts if any(stated(str(v), pattern) for v in c.head.tolist())]
    if len(found) == 1:
        return found[0]
    names = ", ".join(f"'{shortened(c.name)}'" for c in found or texts)
    if found:
        raise OptionError(f"several columns state a confidence: {names}; name one as the scores.")
    where = f" ({names})" if texts else ""
    raise OptionError(f"no text column{where} states a confidence in the way of the pattern.")
