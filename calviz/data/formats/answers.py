"""Answers of language models to questions with choices, as the columns that recognition knows.

The formats of single tools say what each row holds (`Answer`); here the rows become a table: all scores where every row has
as many choices, and otherwise the top choice of each row and whether it was right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.errors import InputError
from calviz.core.finding import Finding
from calviz.core.limits import MAX_JSON, MAX_LINE, MAX_ROWS
from calviz.data.formats.arrow.memory import ArrowRows, columns_of
from calviz.data.table import Table

#: How many rows with other numbers of choices are worth a word of their own.
_NAMED = 4
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Answer:
    """What a model said to one question.

    Attributes
    ----------
    id : str
        Of the question.
    scores : tuple of float
        The log-likelihood of each choice; empty where only `confidence` is known.
    lengths : tuple of int
        Bytes of each choice; empty where the log does not hold the choices.
    label : int
        The right choice.
    confidence : float
        Of the answer, where there are no scores.
    correct : bool
    choices : tuple of str
        The texts, where the log holds them.
    columns : mapping of str to str
        Task, model, subject.
    """

    id: str
    scores: tuple[float, ...] = ()
    lengths: tuple[int, ...] = ()
    label: int = -1
    confidence: float = float("nan")
    correct: bool = False
    choices: tuple[str, ...] = ()
    columns: Mapping[str, str] = field(default_factory=dict)


def lines(stream: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines of a stream that are not blank, with their numbers, a block at a time."""
    rest, number, read = b"", 0, 0
    while block := stream.read(_BLOCK):
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


def as_table(answers: Sequence[Answer], tool: str, notices: Sequence[Finding] = ()) -> Table:
    """The answers as columns.

    Parameters
    ----------
    answers : sequence of Answer
    tool : str
        What wrote them.
    notices : sequence of Finding
        What its reader has to say.

    Raises
    ------
    InputError
        Where there are none.
    """
    import pyarrow as pa

    if not answers:
        raise InputError("the log holds no answers", remedy="log at least one")
    MAX_ROWS.check(len(answers), f"the log has {len(answers):,} rows")
    said = list(notices)
    counts = sorted({len(a.scores) for a in answers})
    columns: dict[str, Any] = {}
    names: tuple[str, ...] = ()
    if len(counts) == 1 and counts[0] > 1:
        columns["logits"] = _lists(np.array([a.scores for a in answers]))
        if all(len(a.lengths) == counts[0] and min(a.lengths) > 0 for a in answers):
            per_byte = np.array([np.divide(a.scores, a.lengths) for a in answers])
            columns["logits_per_byte"] = _lists(per_byte)
        columns["label"] = pa.array([a.label for a in answers])
        names = _names(answers, counts[0])
    else:
        if counts[0]:
            many = ", ".join(f"{k}" for k in counts[:_NAMED]) + (
                ", …" if len(counts) > _NAMED else ""
            )
            text = (
                f"the rows have different numbers of choices ({many}): the top choice of each row is judged; read rows of one "
                "number alone to judge the choices"
            )
            said.append(Finding("DATA012", "info", text))
        top = [_top(a) for a in answers]
        columns["confidence"] = pa.array([confidence for confidence, _ in top])
        columns["correct"] = pa.array([correct for _, correct in top])
    for key in dict.fromkeys(key for a in answers for key in a.columns):
        values = [a.columns.get(key, "") for a in answers]
        if len(set(values)) > 1 and key not in columns:
            columns[key] = pa.array(values).dictionary_encode()
    identifiers = [a.id for a in answers]
    if len(set(identifiers)) == len(identifiers):
        columns["id"] = pa.array(identifiers)
    data = pa.table(columns)
    return ArrowRows(
        format=tool,
        columns=columns_of(data, "the log has"),
        data=data,
        class_names=names,
        notices=said,
    )


def _lists(scores: FloatArray) -> Any:
    import pyarrow as pa

    n, k = scores.shape
    return pa.FixedSizeListArray.from_arrays(pa.array(scores.reshape(n * k)), k)


def _top(answer: Answer) -> tuple[float, bool]:
    """The probability of the top choice, and whether it is the right one."""
    if not answer.scores:
        return answer.confidence, answer.correct
    scores = np.array(answer.scores)
    weights = np.exp(scores - scores.max())
    best = int(weights.argmax())
    return float(weights[best] / weights.sum()), best == answer.label


def _names(answers: Sequence[Answer], k: int) -> tuple[str, ...]:
    """The texts of the choices where all rows have the same; letters otherwise."""
    first = answers[0].choices
    if len(set(first)) == k and all(a.choices == first for a in answers):
        return first
    return tuple(chr(ord("A") + j) if k <= 26 else str(j) for j in range(k))
