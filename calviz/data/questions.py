"""Questions with choices, as logs of language models and JSON rows hold them, made into rows of predictions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, BinaryIO, Literal

import numpy as np

from calviz.core.blocks import BoolArray, FloatArray, IntArray
from calviz.core.errors import MAX_JSON, MAX_LINE, MAX_ROWS, Finding, InputError, OptionError
from calviz.core.probabilities import ROW_SUM_TOLERANCE
from calviz.data.answers import (
    ANSWER,
    CORRECT,
    LOG_PROBABILITY,
    QUESTION,
    STATED,
    TextRules,
    ending,
    no_confidence,
    said,
    settled,
    stated,
)
from calviz.data.column_names import LABELS, LOGITS, PROBABILITIES, plain
from calviz.data.format import Notice, ReadingOptions, Source, Table, reads, without_bom
from calviz.data.rows_in_memory import arrow_rows


@dataclass(frozen=True, eq=False)
class Questions:
    """Scores of the choices of all questions, concatenated.

    Attributes
    ----------
    scores : mapping of str to ndarray, shape (m,)
        Scores by name, such as "logits" and "logits_per_byte"; the first one is read by default.
    kind : {"logits", "probabilities"}
    starts : ndarray of int, shape (n + 1,)
        Index of the first choice of each question, and the total number of choices m.
    right : ndarray of int, shape (n,)
        Index of the right choice within its question.
    others : pyarrow.Table
        Other columns, one row per question: task, model, subject, identifier.
    texts : sequence of tuple of str
        Texts of the choices of each question; empty if they are not known.
    """

    scores: Mapping[str, FloatArray]
    kind: Literal["logits", "probabilities"]
    starts: IntArray
    right: IntArray
    others: Any
    texts: Sequence[tuple[str, ...]] = ()

    @cached_property
    def counts(self) -> IntArray:
        """Number of choices of each question, shape (n,)."""
        return np.diff(self.starts)

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """Distinct numbers of choices in ascending order."""
        return tuple(np.unique(self.counts).tolist())

    @property
    def count_is_informative(self) -> bool:
        """Whether no other column determines the number of choices, so that a column of its own is worthwhile."""
        if len(self.numbers) == 1:
            return False
        for name in self.others.column_names:
            values = self.others.column(name)
            if name == "id" or not str(values.type).startswith("dictionary"):
                continue
            levels = values.to_pylist()
            if len(set(zip(levels, self.counts.tolist(), strict=True))) == len(set(levels)):
                return False
        return True

    def probabilities(self, name: str) -> FloatArray:
        """Probability of each choice within its question, shape (m,)."""
        scores = self.scores[name]
        if self.kind == "probabilities":
            return scores
        first = self.starts[:-1]
        weights = np.exp(scores - np.repeat(np.maximum.reduceat(scores, first), self.counts))
        return weights / np.repeat(np.add.reduceat(weights, first), self.counts)

    def top_choices(self, name: str) -> tuple[FloatArray, BoolArray]:
        """Probability of each question's top choice (the first one of ties), and whether it is right, shape (n,) each."""
        p = self.probabilities(name)
        first = self.starts[:-1]
        top = np.maximum.reduceat(p, first)
        places = np.flatnonzero(p == np.repeat(top, self.counts))
        return np.minimum(top, 1.0), places[np.searchsorted(places, first)] - first == self.right

    def take(self, rows: IntArray) -> Questions:
        """Select questions by index, shape (r,)."""
        counts = self.counts[rows]
        starts = np.concatenate([[0], np.cumsum(counts)])
        places = np.arange(starts[-1]) - np.repeat(starts[:-1] - self.starts[rows], counts)
        return replace(
            self,
            scores={name: values[places] for name, values in self.scores.items()},
            starts=starts,
            right=self.right[rows],
            others=rows_of_others(self.others, rows),
            texts=[self.texts[row] for row in rows] if self.texts else (),
        )


def rows_of_others(table: Any, rows: IntArray) -> Any:
    """Take rows, shape (r,), of the other columns."""
    # pyarrow cannot take rows from a table without columns.
    return table.take(rows) if table.num_columns else table


# ---- Rows
#
# If all questions have the same number of choices, a row holds the scores of all choices. Otherwise a row is either a question, with its
# top choice and whether that is right; or a choice, with its probability and whether it is the right one; or only questions with one
# given number of choices are read. Both logs of language models and JSON rows are converted here.


#: How many distinct numbers of choices are listed in a message.
_NAMED = 4
_RIGHT = ("wrong", "right")
#: Name of the column with the number of choices of the row's question.
_CHOICES = "choices"


def table_of(questions: Questions, tool: str, notices: Sequence[Finding] = ()) -> Table:
    """Return the questions as rows: all scores if each question has the same number of choices, the top choice otherwise.

    Parameters
    ----------
    questions : Questions
    tool : str
        Name of the program that wrote the log, or of the format.
    notices : sequence of Finding
        Findings of the reader so far.
    """
    if len(questions.numbers) == 1:
        return _question_rows(questions, tool, notices)
    numbers = ", ".join(f"{k}" for k in questions.numbers[:_NAMED])
    numbers += ", …" if len(questions.numbers) > _NAMED else ""
    text = (
        f"the rows have different numbers of choices ({numbers}): the top choice of each row is judged; each choice by itself is judged "
        f"by choices='each' (--choices each), the questions of one number alone by choices='{questions.numbers[-1]}'"
    )
    findings = [*notices, Notice.LOGS_AND_HINTS.finding("info", text)]
    return _top_choice_rows(questions, tool, findings, next(iter(questions.scores)))


def by_choices(table: Table, options: ReadingOptions) -> tuple[Table, ReadingOptions]:
    """Apply `options.choices`: return the table of the requested rows, and the options to read it with.

    Raises
    ------
    OptionError
        If the file has no questions with choices, or none with the requested number.
    """
    questions, choice = table.questions, options.choices
    if table.cluster is not None and options.cluster_column is None:
        options = replace(options, cluster_column=table.cluster)
    if questions is None:
        if choice is not None:
            raise OptionError(
                f"'choices' is for questions with choices: logs of language models, and rows with different numbers of scores; this "
                f"is {table.format}, whose rows are read as they are."
            )
        return table, options
    requested = options.scores[0] if options.scores and len(options.scores) == 1 else ""
    name = requested if requested in questions.scores else next(iter(questions.scores))
    if choice is None and (requested != name or requested in table):
        return table, options
    # Scores requested by name are selected here; they are not a column of the resulting table.
    options = replace(options, choices=None, scores=None if requested == name else options.scores)
    notices = [n for n in table.notices if "choices='each'" not in n.message]
    if choice == "each":
        cluster = options.cluster_column
        result = _choice_rows(questions, table.format, notices, name)
        return result, replace(options, cluster_column=QUESTION if cluster is None else cluster)
    if choice in (None, "top"):
        return _top_choice_rows(questions, table.format, notices, name), options
    rows = np.flatnonzero(questions.counts == int(choice))
    if not rows.size:
        numbers = ", ".join(f"{k}" for k in questions.numbers[:10])
        raise OptionError(f"no question has {choice} choices; the numbers are {numbers}.")
    left_out = len(questions.counts) - rows.size
    if left_out:
        text = f"{left_out:,} of {len(questions.counts):,} questions do not have {choice} choices and are left out"
        notices.append(Notice.LOGS_AND_HINTS.finding("info", text))
    result = _question_rows(questions.take(rows), table.format, notices)
    by_name = requested == name and name in result
    return result, replace(options, scores=(name,)) if by_name else options


def _question_rows(questions: Questions, tool: str, notices: Sequence[Finding]) -> Table:
    """One row per question, with the scores of all choices."""
    import pyarrow as pa

    k = questions.numbers[0]
    columns: dict[str, Any] = {
        (name if questions.kind == "logits" else "probs"): pa.FixedSizeListArray.from_arrays(
            pa.array(values), k
        )
        for name, values in questions.scores.items()
    }
    columns["label"] = pa.array(questions.right)
    return _table(questions, columns, questions.others, tool, notices, _names(questions.texts, k))


def _top_choice_rows(
    questions: Questions, tool: str, notices: Sequence[Finding], name: str
) -> Table:
    """One row per question: the probability of its top choice, and whether that is right."""
    import pyarrow as pa

    confidence, correct = questions.top_choices(name)
    columns: dict[str, Any] = {"confidence": pa.array(confidence), "correct": pa.array(correct)}
    if questions.count_is_informative:
        columns[_CHOICES] = pa.array(questions.counts)
    return _table(questions, columns, questions.others, tool, notices)


def _choice_rows(questions: Questions, tool: str, notices: Sequence[Finding], name: str) -> Table:
    """One row per choice: its probability, whether it is the right one, and its question."""
    import pyarrow as pa

    p, counts = questions.probabilities(name), questions.counts
    MAX_ROWS.check(p.size, f"there are {p.size:,} choices")
    rows = np.repeat(np.arange(len(counts)), counts)
    place = np.arange(p.size) - questions.starts[:-1][rows]
    others = questions.others
    numbered = range(1, len(counts) + 1)
    ids = others.column("id").to_pylist() if "id" in others.column_names else numbered
    question_ids = np.array([str(one) for one in ids], dtype=object)[rows]
    clusters = question_ids
    if QUESTION in others.column_names and isinstance(ids, list):
        clusters = np.array(others.column(QUESTION).to_pylist(), dtype=object)[rows]
    columns: dict[str, Any] = {
        "probability": pa.array(np.minimum(p, 1.0)),
        "label": pa.array((place == questions.right[rows]).astype(np.int8)),
        QUESTION: pa.array(clusters).dictionary_encode(),
        "id": pa.array(
            [f"{one}#{j + 1}" for one, j in zip(question_ids, place.tolist(), strict=True)]
        ),
    }
    if questions.count_is_informative:
        columns[_CHOICES] = pa.array(counts[rows])
    text = (
        f"each choice is a row: its probability against whether it is the right one; {p.size:,} choices of {len(counts):,} questions, "
        "which are the clusters; both add up to 1 in each question, so accuracy and mean gap of these rows mean nothing: look at the "
        "diagram and the ECE"
    )
    findings = [*notices, Notice.LOGS_AND_HINTS.finding("info", text)]
    return _table(questions, columns, rows_of_others(others, rows), tool, findings, _RIGHT)


def _table(
    questions: Questions,
    columns: Mapping[str, Any],
    others: Any,
    tool: str,
    notices: Sequence[Finding],
    names: tuple[str, ...] = (),
) -> Table:
    import pyarrow as pa

    rest = {name: others.column(name) for name in others.column_names if name not in columns}
    # Columns of the file come before the number of choices among the groups.
    last = {_CHOICES: columns[_CHOICES]} if _CHOICES in columns else {}
    first = {name: values for name, values in columns.items() if name not in last}
    data = pa.table(first | rest | last)
    return _log_rows(data, tool, notices, class_names=names, questions=questions)


def _names(texts: Sequence[tuple[str, ...]], k: int) -> tuple[str, ...]:
    """The texts of the choices if all questions have the same ones; letters or numbers otherwise."""
    if texts and len(set(texts[0])) == k and all(choices == texts[0] for choices in texts):
        return texts[0]
    return tuple(chr(ord("A") + j) if k <= 26 else str(j) for j in range(k))


# ---- Answers in logs
#
# The readers of log formats turn each row into an `Answer`; here the answers become questions with choices, or confidences if the
# choices have no scores.


_BLOCK = 1 << 20


@dataclass(frozen=True)
class Answer:
    """The answer of a model to one question.

    Attributes
    ----------
    id : str
        Identifier of the question.
    scores : tuple of float
        Log-likelihood of each choice; empty if only `confidence` is known.
    lengths : tuple of int
        Length of each choice in bytes; empty if the log does not hold the choices.
    label : int
        Index of the right choice.
    confidence : float
        Confidence of the answer, if there are no scores.
    correct : bool
        Whether the answer is right, if there are no scores.
    choices : tuple of str
        Texts of the choices, if the log holds them.
    columns : mapping of str to str
        Other columns: task, model, subject.
    question : str
        Identifier of the question, which several answers may share; empty if each answer has a question of its own.
    without_unit : bool
        Whether the confidence was read from a text, without a unit.
    text : str
        The end of the text in which no confidence was understood.
    answer : str or None
        The answer in the form that the same ones share, "" if there is none; None if answers are not compared.
    logprob : float
        The log-probability of the answer, beside a stated confidence; only if answers are compared.
    """

    id: str
    scores: tuple[float, ...] = ()
    lengths: tuple[int, ...] = ()
    label: int = -1
    confidence: float = float("nan")
    correct: bool = False
    choices: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    question: str = ""
    without_unit: bool = False
    text: str = ""
    answer: str | None = None
    logprob: float = float("nan")


#: Keys under which logs may hold a stated confidence.
CONFIDENCE_KEYS = ("confidence", "stated_confidence", "probability", "prob")


def number_in(place: Any, keys: Sequence[str] = CONFIDENCE_KEYS) -> float | None:
    """Return the first finite number under one of the keys; None if there is none, or `place` is not an object."""
    for key in keys if isinstance(place, Mapping) else ():
        if _is_number(place.get(key)):
            return float(place[key])
    return None


def short_texts(place: Any) -> dict[str, str]:
    """Return the values of an object that may be groups: texts of up to 40 characters."""
    return {
        str(key): value
        for key, value in (place.items() if isinstance(place, Mapping) else ())
        if isinstance(value, str) and len(value) <= 40
    }


def of_text(
    text: Any, rules: TextRules, own: float | None = None, answer: Any = None
) -> dict[str, Any]:
    """Return the fields of an `Answer` with this text: the confidence that it states, or in which none is understood, unless it has its own.

    With a rule for answers, also the answer in the text, unless the log has it.
    """
    text = text if isinstance(text, str) else ""
    fields: dict[str, Any] = {}
    if rules.answer is not None:
        fields["answer"] = rules.answer.of(answer if isinstance(answer, str) else text)
    if own is not None:
        return fields | {"confidence": own}
    found = stated(text, rules.confidence)
    if found is None:
        return fields | {"text": ending(text)}
    return fields | {"confidence": found[0], "without_unit": not found[1]}


def with_confidences(answers: Sequence[Answer]) -> tuple[list[Answer], list[Finding]]:
    """Return the answers of a log that have scores or a confidence, those from texts in [0, 1], and what was done.

    Raises
    ------
    InputError
        If no answer has any.
    """
    if not any(a.without_unit or a.text for a in answers):
        return list(answers), []
    values = np.array([a.confidence for a in answers])
    values, findings = settled(values, np.array([a.without_unit for a in answers]))
    correct = np.array([a.correct for a in answers])
    compared = any(a.answer is not None for a in answers)
    # Where answers are compared, one without a confidence counts too.
    missing = [
        j for j, a in enumerate(answers) if not (compared or a.scores) and np.isnan(values[j])
    ]
    if len(missing) == len(answers):
        questions = [a.question or a.id for a in answers]
        raise no_confidence(correct, questions, [a.columns.get("task", "") for a in answers])
    shown = [answers[j].text or "a number without a unit" for j in missing[:3]]
    if not compared:
        findings += said(values, correct, shown, "the text of the answers")
    left_out = {*missing}
    kept = [
        replace(a, confidence=float(value)) if compared or not np.isnan(value) else a
        for j, (a, value) in enumerate(zip(answers, values, strict=True))
        if j not in left_out
    ]
    return kept, findings


def lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """Yield the non-blank lines of a stream with their 1-based line numbers; reads block by block."""
    rest, number, read = b"", 0, 0
    while block := stream.read(_BLOCK):
        block = block if read else without_bom(block)
        read += len(block)
        MAX_JSON.check(read, "there is more text")
        MAX_LINE.check(len(rest), f"line {number + 1:,} is longer")
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            number += 1
            if line.strip():
                yield number, line
    if rest.strip():
        yield number + 1, rest


AnswersOf = Callable[[Source], tuple[list[Answer], list[Finding]]]


def open_log(answers_of: AnswersOf, tool: str, source: Source) -> Table:
    """Read the answers of a log as a table; see `Format.open`."""
    answers, findings = answers_of(source)
    answers, more = with_confidences(answers)
    return as_table(answers, tool, [*findings, *more])


def log_format(*, label: str, tool: str = "", **facts: Any) -> Callable[[AnswersOf], AnswersOf]:
    """Register the decorated function, which returns the answers in a log and findings about them, as a `Format`."""

    def register(answers_of: AnswersOf) -> AnswersOf:
        opens = partial(open_log, answers_of, tool or label.split(" (")[0])
        more: dict[str, Any] = {"answers": answers_of, "text": True, "special": True}
        reads(label=label, package="pyarrow", **more, **facts)(opens)
        return answers_of

    return register


def as_table(answers: Sequence[Answer], tool: str, notices: Sequence[Finding] = ()) -> Table:
    """Return the answers as a table.

    Parameters
    ----------
    answers : sequence of Answer
    tool : str
        Name of the log format.
    notices : sequence of Finding
        Findings of the reader so far.

    Raises
    ------
    InputError
        If there are no answers.
    """
    import pyarrow as pa

    if not answers:
        raise InputError("the log holds no answers", remedy="log at least one")
    MAX_ROWS.check(len(answers), f"the log has {len(answers):,} rows")
    columns: dict[str, Any] = {}
    for key in dict.fromkeys(key for a in answers for key in a.columns):
        values = [a.columns.get(key, "") for a in answers]
        if len(set(values)) > 1:
            columns[key] = pa.array(values).dictionary_encode()
    identifiers = [a.id for a in answers]
    if len(set(identifiers)) == len(identifiers):
        columns["id"] = pa.array(identifiers)
    if any(a.answer is not None for a in answers):
        return _sampled(answers, columns, tool, notices)
    questions = [a.question for a in answers]
    if len({*questions} - {""}) < len(questions) - questions.count(""):
        # The answers to a question that was asked again are a cluster.
        own = [a.question or a.id for a in answers]
        columns[QUESTION] = pa.array(own).dictionary_encode()
        text = f"{len(answers):,} answers to {len(set(own)):,} questions: the answers to the same question are a cluster"
        notices = [*notices, Notice.LOGS_AND_HINTS.finding("info", text)]
    counts = np.array([len(a.scores) for a in answers])
    if counts.min() > 1:
        return table_of(_questions(answers, counts, pa.table(columns)), tool, notices)
    confidence = np.array([a.confidence for a in answers])
    correct = np.array([a.correct for a in answers])
    scored = counts > 0
    if scored.any():
        with_scores = _questions([a for a in answers if a.scores], counts[scored], pa.table({}))
        confidence[scored], correct[scored] = with_scores.top_choices("logits")
    judged = {"confidence": pa.array(confidence), "correct": pa.array(correct)}
    data = pa.table(judged | {key: column for key, column in columns.items() if key not in judged})
    return _log_rows(data, tool, notices)


def _sampled(
    answers: Sequence[Answer], columns: dict[str, Any], tool: str, notices: Sequence[Finding]
) -> Table:
    """The answers with their texts, of which `by_question` makes a row per question."""
    import pyarrow as pa

    judged: dict[str, Any] = {
        ANSWER: pa.array([a.answer or "" for a in answers]).dictionary_encode(),
        CORRECT: pa.array([a.correct for a in answers]),
        QUESTION: pa.array([a.question or a.id for a in answers]).dictionary_encode(),
        STATED: pa.array([a.confidence for a in answers]),
        LOG_PROBABILITY: pa.array([a.logprob for a in answers]),
    }
    others = {key: c for key, c in columns.items() if key not in judged and key != "id"}
    return _log_rows(pa.table(judged | others), tool, notices)


def _log_rows(data: Any, tool: str, notices: Sequence[Finding], **more: Any) -> Table:
    cluster = QUESTION if QUESTION in data.column_names else None
    return arrow_rows(data, "the log has", format=tool, notices=[*notices], cluster=cluster, **more)


def _questions(answers: Sequence[Answer], counts: IntArray, others: Any) -> Questions:
    scores = {"logits": np.array([one for a in answers for one in a.scores])}
    if all(len(a.lengths) == len(a.scores) and min(a.lengths) > 0 for a in answers):
        lengths = np.array([one for a in answers for one in a.lengths])
        scores["logits_per_byte"] = scores["logits"] / lengths
    return Questions(
        scores=scores,
        kind="logits",
        starts=np.concatenate([[0], np.cumsum(counts)]),
        right=np.array([a.label for a in answers]),
        others=others,
        texts=[a.choices for a in answers],
    )


# ---- JSON rows
#
# Lists or objects of scores form one column per class only if all rows have the same classes. A mix of questions with two and with five
# choices does not: it becomes questions.


def questions_of(table: Any) -> Questions | None:
    """Return rows with different classes as questions; None if all rows have the same classes, or some row has no distribution.

    Parameters
    ----------
    table : pyarrow.Table
        The result of `paired`.
    """
    import pyarrow as pa

    names = {plain(name): name for name in table.column_names}
    scores = next((names[n] for n in (*PROBABILITIES, *LOGITS) if n in names), None)
    label = next((names[n] for n in LABELS if n in names), None)
    if scores is None or label is None or "confidence" in names or "correct" in names:
        return None
    kind = table.schema.field(scores).type
    if not (pa.types.is_struct(kind) or pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return None
    if pa.types.is_nested(table.schema.field(label).type):
        return None
    if _even(table.column(scores)):
        return None
    logits = plain(scores) in LOGITS
    rows = _choices(table.column(scores).to_pylist(), table.column(label).to_pylist(), logits)
    if rows is None:
        return None
    return Questions(
        scores={scores: np.array([value for values, _, _ in rows for value in values])},
        kind="logits" if logits else "probabilities",
        starts=np.concatenate([[0], np.cumsum([len(values) for values, _, _ in rows])]),
        right=np.array([right for _, right, _ in rows]),
        others=table.select([n for n in table.column_names if n not in (scores, label)]),
        texts=[texts for _, _, texts in rows],
    )


def _even(column: Any) -> bool:
    """Whether all rows have the same classes, or some row is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.null_count:
        return True
    if pa.types.is_struct(column.type):
        return all(
            pc.struct_field(column, [j]).null_count == 0 for j in range(column.type.num_fields)
        )
    return len(pc.unique(pc.list_value_length(column))) == 1


def _choices(
    rows: Sequence[Any], labels: Sequence[Any], logits: bool
) -> list[tuple[list[float], int, tuple[str, ...]]] | None:
    """Return scores, index of the right one, and names (if any) of each row; None if a row is not a distribution."""
    choices: list[tuple[list[float], int, tuple[str, ...]]] = []
    for row, label in zip(rows, labels, strict=True):
        has_names = isinstance(row, Mapping)
        scores: dict[Any, float] = (
            {k: v for k, v in row.items() if v is not None} if has_names else dict(enumerate(row))
        )
        values = list(scores.values())
        if len(values) < 2 or not all(_is_number(v) for v in values):
            return None
        # The true class must be among the classes of the row.
        if (str(label) if has_names else label) not in scores:
            return None
        if not logits and (min(values) < 0 or abs(sum(values) - 1) > ROW_SUM_TOLERANCE):
            return None
        right = list(scores).index(str(label) if has_names else label)
        choices.append((values, right, tuple(scores) if has_names else ()))
    return choices


_LARGEST = 1e300


def _is_number(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and abs(value) <= _LARGEST  # an int may be too large for a float
