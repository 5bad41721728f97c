"""Convert answers of language models to multiple-choice questions to columns that recognition knows.

The readers of log formats turn each row into an `Answer`; here the answers become questions with choices (`data/multiple_choice.py`), or
confidences if the choices have no scores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np

from calviz.core.arrays import IntArray
from calviz.core.errors import InputError
from calviz.core.finding import Finding
from calviz.core.limits import MAX_JSON, MAX_LINE, MAX_ROWS
from calviz.data.file_bytes import Source, without_bom
from calviz.data.formats.arrow.memory import ArrowRows, columns_of
from calviz.data.multiple_choice import table_of
from calviz.data.questions import Questions
from calviz.data.table import Table

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


def open_log(
    answers_of: Callable[[Source], tuple[list[Answer], list[Finding]]], tool: str, source: Source
) -> Table:
    """Read the answers of a log as a table; see `Format.open`."""
    answers, findings = answers_of(source)
    return as_table(answers, tool, findings)


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
    counts = np.array([len(a.scores) for a in answers])
    if counts.min() > 1:
        return table_of(_questions(answers, counts, pa.table(columns)), tool, notices)
    confidence = np.array([a.confidence for a in answers])
    correct = np.array([a.correct for a in answers])
    scored = counts > 0
    if scored.any():
        questions = _questions([a for a in answers if a.scores], counts[scored], pa.table({}))
        confidence[scored], correct[scored] = questions.top_choices("logits")
    judged = {"confidence": pa.array(confidence), "correct": pa.array(correct)}
    data = pa.table(judged | {key: column for key, column in columns.items() if key not in judged})
    return ArrowRows(
        format=tool, columns=columns_of(data, "the log has"), data=data, notices=list(notices)
    )


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
