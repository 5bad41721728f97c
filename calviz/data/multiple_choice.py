"""Turn questions with choices into rows of predictions.

If all questions have the same number of choices, a row holds the scores of all choices. Otherwise a row is either a question, with its
top choice and whether that is right; or a choice, with its probability and whether it is the right one; or only questions with one
given number of choices are read. Both logs of language models and JSON rows are converted here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from calviz.core.errors import OptionError
from calviz.core.finding import Finding
from calviz.core.limits import MAX_ROWS
from calviz.data.formats.arrow.memory import ArrowRows, columns_of
from calviz.data.loaded import ReadingOptions
from calviz.data.notices import Notice
from calviz.data.questions import Questions, rows_of_others
from calviz.data.table import Table

#: How many distinct numbers of choices are listed in a message.
_NAMED = 4
_RIGHT = ("wrong", "right")
#: Name of the cluster column if each choice is a row.
_QUESTION = "question"
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
        return result, replace(options, cluster_column=_QUESTION if cluster is None else cluster)
    if choice in (None, "top"):
        return _top_choice_rows(questions, table.format, notices, name), options
    rows = np.flatnonzero(questions.counts == int(choice))
    if not rows.size:
        numbers = ", ".join(f"{k}" for k in questions.numbers[:10])
        raise OptionError(
            f"no question has {choice} choices; the numbers of choices are {numbers}."
        )
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
    ids = (
        others.column("id").to_pylist()
        if "id" in others.column_names
        else range(1, len(counts) + 1)
    )
    question_ids = np.array([str(one) for one in ids], dtype=object)[rows]
    columns: dict[str, Any] = {
        "probability": pa.array(np.minimum(p, 1.0)),
        "label": pa.array((place == questions.right[rows]).astype(np.int8)),
        _QUESTION: pa.array(question_ids).dictionary_encode(),
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
    return ArrowRows(
        format=tool,
        columns=columns_of(data, "the log has"),
        data=data,
        class_names=names,
        notices=list(notices),
        questions=questions,
    )


def _names(texts: Sequence[tuple[str, ...]], k: int) -> tuple[str, ...]:
    """The texts of the choices if all questions have the same ones; letters or numbers otherwise."""
    if texts and len(set(texts[0])) == k and all(choices == texts[0] for choices in texts):
        return texts[0]
    return tuple(chr(ord("A") + j) if k <= 26 else str(j) for j in range(k))
