"""Questions with choices: the rows that can be made of them.

Where every question has as many choices, a row holds the scores of all of them. Otherwise a row is a question with its top choice
and whether that is right; or a row is a choice, with its probability and whether it is the right one; or only the questions of
one number of choices are read. Logs of language models and rows of JSON both end here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.errors import OptionError
from calviz.core.finding import Finding
from calviz.core.limits import MAX_ROWS
from calviz.data.formats.arrow.memory import ArrowRows, columns_of
from calviz.data.loaded import ReadingOptions
from calviz.data.table import Table

#: How many numbers of choices are worth a word of their own.
_NAMED = 4
_RIGHT = ("wrong", "right")
#: What the rows belong together by where each choice is one.
_QUESTION = "question"
#: How many choices a row's question has.
_CHOICES = "choices"


@dataclass(frozen=True, eq=False)
class Questions:
    """Scores of the choices of all questions, one question after the other.

    Attributes
    ----------
    scores : mapping of str to ndarray, shape (m,)
        By name, such as "logits" and "logits_per_byte"; the first one is read if nothing else is asked for.
    kind : {"logits", "probabilities"}
        What they are.
    starts : ndarray of int, shape (n + 1,)
        Where the choices of each question begin, and the end.
    right : ndarray of int, shape (n,)
        The place of the right choice among those of its question.
    others : pyarrow.Table
        What else is known of each question: task, model, subject, its identifier.
    texts : sequence of tuple of str
        The choices of each question where they are known; empty otherwise.
    """

    scores: Mapping[str, FloatArray]
    kind: Literal["logits", "probabilities"]
    starts: IntArray
    right: IntArray
    others: Any
    texts: Sequence[tuple[str, ...]] = ()

    @cached_property
    def counts(self) -> IntArray:
        """The number of choices of each question, shape (n,)."""
        return np.diff(self.starts)

    @cached_property
    def numbers(self) -> tuple[int, ...]:
        """The different numbers of choices, from the smallest."""
        return tuple(np.unique(self.counts).tolist())

    @property
    def told_by_nothing_else(self) -> bool:
        """Whether the number of choices differs within the levels of every other column, so that it is worth a column of its own."""
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
        """The probability of each choice among those of its question, shape (m,)."""
        scores = self.scores[name]
        if self.kind == "probabilities":
            return scores
        first = self.starts[:-1]
        weights = np.exp(scores - np.repeat(np.maximum.reduceat(scores, first), self.counts))
        shares: FloatArray = weights / np.repeat(np.add.reduceat(weights, first), self.counts)
        return shares

    def take(self, rows: IntArray) -> Questions:
        """Some of the questions."""
        counts = self.counts[rows]
        starts = np.concatenate([[0], np.cumsum(counts)])
        places = np.arange(starts[-1]) - np.repeat(starts[:-1] - self.starts[rows], counts)
        return replace(
            self,
            scores={name: values[places] for name, values in self.scores.items()},
            starts=starts,
            right=self.right[rows],
            others=_rows_of(self.others, rows),
            texts=[self.texts[row] for row in rows] if self.texts else (),
        )


def table_of(questions: Questions, tool: str, notices: Sequence[Finding] = ()) -> Table:
    """The questions as rows: all scores where there are as many of each, otherwise the top choice.

    Parameters
    ----------
    questions : Questions
    tool : str
        What wrote them.
    notices : sequence of Finding
        What its reader has to say.
    """
    if len(questions.numbers) == 1:
        return _whole(questions, tool, notices)
    many = ", ".join(f"{k}" for k in questions.numbers[:_NAMED])
    many += ", …" if len(questions.numbers) > _NAMED else ""
    text = (
        f"the rows have different numbers of choices ({many}): the top choice of each row is judged; each choice by itself is judged "
        f"by choices='each' (--choices each), the questions of one number alone by choices='{questions.numbers[-1]}'"
    )
    said = [*notices, Finding("DATA012", "info", text)]
    return _tops(questions, tool, said, next(iter(questions.scores)))


def by_choices(table: Table, options: ReadingOptions) -> tuple[Table, ReadingOptions]:
    """The table as its questions are to be read, and the options to read it with.

    Raises
    ------
    OptionError
        Where the file has no questions with choices, or none of that number.
    """
    questions, how = table.questions, options.choices
    if questions is None:
        if how is not None:
            raise OptionError(
                f"'choices' is for questions with choices: logs of language models, and rows with different numbers of scores; this "
                f"is {table.format}, whose rows are read as they are."
            )
        return table, options
    asked = options.scores[0] if options.scores and len(options.scores) == 1 else ""
    name = asked if asked in questions.scores else next(iter(questions.scores))
    if how is None and (asked != name or asked in table):
        return table, options
    # Scores that were asked for by name are taken here, and are no column of the table.
    options = replace(options, choices=None, scores=None if asked == name else options.scores)
    plain = [n for n in table.notices if "choices='each'" not in n.message]
    if how == "each":
        cluster = options.cluster_column
        made = _each(questions, table.format, plain, name)
        return made, replace(options, cluster_column=_QUESTION if cluster is None else cluster)
    if how in (None, "top"):
        return _tops(questions, table.format, plain, name), options
    rows = np.flatnonzero(questions.counts == int(how))
    if not rows.size:
        known = ", ".join(f"{k}" for k in questions.numbers[:10])
        raise OptionError(f"no question has {how} choices; the numbers of choices are {known}.")
    left = len(questions.counts) - rows.size
    if left:
        text = f"{left:,} of {len(questions.counts):,} questions have another number of choices than {how}, and are left out"
        plain.append(Finding("DATA012", "info", text))
    made = _whole(questions.take(rows), table.format, plain)
    return made, options if asked != name or asked not in made else replace(options, scores=(name,))


def _whole(questions: Questions, tool: str, notices: Sequence[Finding]) -> Table:
    """A row per question, with the scores of all choices."""
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


def _tops(questions: Questions, tool: str, notices: Sequence[Finding], name: str) -> Table:
    """A row per question: the probability of its top choice, and whether that is right."""
    import pyarrow as pa

    p = questions.probabilities(name)
    first = questions.starts[:-1]
    top = np.maximum.reduceat(p, first)
    # The first of equals, as argmax has it.
    places = np.flatnonzero(p == np.repeat(top, questions.counts))
    best = places[np.searchsorted(places, first)] - first
    columns: dict[str, Any] = {
        "confidence": pa.array(np.minimum(top, 1.0)),
        "correct": pa.array(best == questions.right),
    }
    if questions.told_by_nothing_else:
        columns[_CHOICES] = pa.array(questions.counts)
    return _table(questions, columns, questions.others, tool, notices)


def _each(questions: Questions, tool: str, notices: Sequence[Finding], name: str) -> Table:
    """A row per choice: its probability, whether it is the right one, and its question."""
    import pyarrow as pa

    p, counts = questions.probabilities(name), questions.counts
    MAX_ROWS.check(p.size, f"there are {p.size:,} choices")
    rows = np.repeat(np.arange(len(counts)), counts)
    place = np.arange(p.size) - questions.starts[:-1][rows]
    others = questions.others
    ids = (
        others.column("id").to_pylist()
        if "id" in others.column_names
        else range(1, len(counts) + 1)
    )
    named = np.array([str(one) for one in ids], dtype=object)[rows]
    columns: dict[str, Any] = {
        "probability": pa.array(np.minimum(p, 1.0)),
        "label": pa.array((place == questions.right[rows]).astype(np.int8)),
        _QUESTION: pa.array(named).dictionary_encode(),
        "id": pa.array([f"{one}#{j + 1}" for one, j in zip(named, place.tolist(), strict=True)]),
    }
    if questions.told_by_nothing_else:
        columns[_CHOICES] = pa.array(counts[rows])
    text = (
        f"each choice is a row: its probability against whether it is the right one; {p.size:,} choices of {len(counts):,} questions, "
        "which are the clusters; both add up to 1 in each question, so accuracy and mean gap of these rows say nothing: look at the "
        "diagram and the ECE"
    )
    said = [*notices, Finding("DATA012", "info", text)]
    return _table(questions, columns, _rows_of(others, rows), tool, said, _RIGHT)


def _table(
    questions: Questions,
    columns: Mapping[str, Any],
    others: Any,
    tool: str,
    notices: Sequence[Finding],
    names: tuple[str, ...] = (),
) -> Table:
    import pyarrow as pa

    own = {name: others.column(name) for name in others.column_names if name not in columns}
    # What the file says of the questions comes first among the groups.
    last = {_CHOICES: columns[_CHOICES]} if _CHOICES in columns else {}
    first = {name: values for name, values in columns.items() if name not in last}
    data = pa.table(first | own | last)
    return ArrowRows(
        format=tool,
        columns=columns_of(data, "the log has"),
        data=data,
        class_names=names,
        notices=list(notices),
        questions=questions,
    )


def _rows_of(table: Any, rows: IntArray) -> Any:
    # A table without columns has no rows to take.
    return table.take(rows) if table.num_columns else table


def _names(texts: Sequence[tuple[str, ...]], k: int) -> tuple[str, ...]:
    """The texts of the choices where all questions have the same; letters otherwise."""
    if texts and len(set(texts[0])) == k and all(one == texts[0] for one in texts):
        return texts[0]
    return tuple(chr(ord("A") + j) if k <= 26 else str(j) for j in range(k))
