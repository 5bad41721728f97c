"""Confidence that is stated in a text: "Confidence: 85%", "85/100", "I am 0.85 sure"."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from calviz.core.blocks import BoolArray, FloatArray
from calviz.core.errors import Finding, InputError, OptionError, shortened
from calviz.core.p_values import clopper_pearson
from calviz.core.row_columns import Factor
from calviz.core.words import percent, percent_range
from calviz.data.building import PERCENT_WORDS, are_percentages
from calviz.data.format import Column, Table
from calviz.data.loaded import Notice, ReadingOptions, join_places, place
from calviz.data.rows_in_memory import arrow_rows

# ---- What a text says
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
_NUMBER = re.compile(rf"\W*?{_VALUE}\W*", re.VERBOSE)
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
    if whole and len(text) <= _SHOWN and (match := _NUMBER.fullmatch(text)):
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
        number = _NUMBER.fullmatch(match[group] or "")
        if number is not None and (value := _number(number)) is not None:
            return value
    return None


def _number(match: re.Match[str]) -> tuple[float, bool] | None:
    value, unit = float(match["value"]), (match["unit"] or "").strip()
    if unit.endswith(("%", "t")) and 0 < value < 1:
        return None  # 0.85 % is more likely a share that was given a sign
    ends_in_10 = unit.startswith(("/", "out")) and not unit.endswith("100")
    known = value / (10 if ends_in_10 else 100) if unit else value
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
        f"left out: {join_places(list(shown), left)}"
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
    names = [c.name for c in table.columns if c.type != "other" and c.width is None]
    numbers = [n for n in names if table[n].numeric]
    read = table.fetch([(n,) for n in numbers], [n for n in names if n not in numbers])
    text = Factor.of(read.columns[column.name])
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
    columns: dict[str, Any] = dict(zip(numbers, (a[:, 0] for a in read.scores), strict=True))
    columns |= {**read.columns, column.name: values}
    lines = None
    if table.line(0) is not None:
        lines = np.array([table.line(int(row)) for row in understood], dtype=np.int64)
    made = arrow_rows(
        arrow_of({n: columns[n] for n in names}).take(understood),
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


def arrow_of(columns: dict[str, Any]) -> Any:
    """Return columns as an Arrow table; factors as dictionaries."""
    import pyarrow as pa

    return pa.table(
        {
            name: pa.DictionaryArray.from_arrays(values.codes, list(values.levels))
            if isinstance(values, Factor)
            else pa.array(values)
            for name, values in columns.items()
        }
    )
