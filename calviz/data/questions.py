"""Questions with choices, as logs of language models hold them: the scores of all choices, and the right ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray, IntArray


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
        shares: FloatArray = weights / np.repeat(np.add.reduceat(weights, first), self.counts)
        return shares

    def top_choices(self, name: str) -> tuple[FloatArray, BoolArray]:
        """Probability of each question's top choice (the first one of ties), and whether it is right, shape (n,) each."""
        p = self.probabilities(name)
        first = self.starts[:-1]
        top = np.maximum.reduceat(p, first)
        places = np.flatnonzero(p == np.repeat(top, self.counts))
        best = places[np.searchsorted(places, first)] - first
        return np.minimum(top, 1.0), best == self.right

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
