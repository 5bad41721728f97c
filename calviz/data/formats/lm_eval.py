"""Logs of lm-evaluation-harness: ``samples_<task>_<date>.jsonl``, written by ``--log_samples``.

A row holds the document, the requests (``arguments``: context and choice), the response of the model to each of them
(``filtered_resps``: log-likelihood and whether greedy decoding gives the choice, as numbers or as text), and ``target``, the index or the
text of the right choice. Sources: logs of lm_eval 0.4.13 and its documentation (docs/interface.md, ``evaluator.py``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from calviz.core.errors import InputError, shortened
from calviz.core.finding import Finding
from calviz.data.file_bytes import Source, without_bom
from calviz.data.format import FORMATS, Format
from calviz.data.formats.answers import Answer, lines, open_log
from calviz.data.formats.jsonl import first_character, parsed_object
from calviz.data.notices import Notice

#: The first keys of a row, in the order written by the harness.
_HEAD = re.compile(rb'\s*\{\s*"doc_id"\s*:[^,{}\[\]]{1,60},\s*"doc"\s*:')
_FILE = re.compile(r"samples_(?P<task>.+?)(?:_\d{4}-\d\d-\d\dT[\d.-]+)?\.jsonl", re.IGNORECASE)
#: Keys under which a document names the part of the task it belongs to.
_PARTS = ("subject", "category", "subcategory", "topic", "task", "subset", "language", "difficulty", "level")  # fmt: skip
_TOOL = "lm-evaluation-harness samples"


def answers_of(source: Source) -> tuple[list[Answer], list[Finding]]:
    """Return the answers of a log, and findings about them; raise InputError, naming the line, if a row holds none."""
    task = _FILE.fullmatch(source.name.removesuffix(".gz"))
    task_column = {"task": task["task"]} if task else {}
    with source.open() as stream:
        rows = list(_rows(lines(stream)))
    filters = dict.fromkeys(row.get("filter") for _, row in rows)
    findings = []
    if len(filters) > 1:
        # One row per filter: the same answer, extracted in several ways.
        first = next(iter(filters))
        rows = [(number, row) for number, row in rows if row.get("filter") == first]
        text = f"the log holds the answers of {len(filters)} filters; only those of '{shortened(str(first))}' are read"
        findings.append(Notice.LOGS_AND_HINTS.finding("info", text))
    targets = _Targets(rows)
    answers = [targets.answer(number, row, task_column) for number, row in rows]
    return answers, findings + targets.findings(answers)


def _rows(numbered_lines: Iterator[tuple[int, bytes]]) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in numbered_lines:
        row = parsed_object(line, number)
        needed = {key: row.get(key) for key in ("doc_id", "target", "filter", "metrics", "acc")}
        needed["filter"] = str(needed["filter"])
        needed["scores"] = _scores(row, number)
        needed["choices"] = _choices(row.get("arguments"))
        doc = row.get("doc")
        needed["parts"] = {
            part: shortened(doc[part])
            for part in _PARTS
            if isinstance(doc, Mapping) and isinstance(doc.get(part), str)
        }
        yield number, needed


def _scores(row: Mapping[str, Any], number: int) -> list[float]:
    responses = row.get("filtered_resps", row.get("resps"))
    if not isinstance(responses, list) or not responses:
        raise InputError(
            "the row has no 'filtered_resps': another version of lm-evaluation-harness wrote it",
            line=number,
            remedy="logs of version 0.4 and later are read, written by --log_samples",
        )
    values = [_number(_first(response)) for response in responses]
    if any(value is None for value in values):
        raise InputError(
            "the answer is generated text without log-likelihoods of choices, so it has no probability",
            line=number,
            remedy="log a multiple-choice task, or save each answer's confidence beside whether it was right",
        )
    scores = [value for value in values if value is not None]
    if len(scores) == 1:
        raise InputError(
            "there is one log-likelihood, of a task without choices",
            line=number,
            remedy="log a multiple-choice task",
        )
    if any(not math.isfinite(value) for value in scores):
        raise InputError("a log-likelihood is not a finite number", line=number)
    metrics = row.get("metrics")
    if isinstance(metrics, list) and "acc_mutual_info" in metrics and len(scores) % 2 == 0:
        # The second half holds the log-likelihoods of the choices without the question.
        return scores[: len(scores) // 2]
    return scores


def _first(value: Any) -> Any:
    """Return the log-likelihood: the first of a pair, nested in lists to a depth that varies by version."""
    while isinstance(value, list):
        if not value:
            return None
        value = value[0]
    return value


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None


def _choices(arguments: Any) -> tuple[str, ...]:
    """Return the texts of the choices; the requests are either an object or a list."""
    requests: Sequence[Any] = ()
    if isinstance(arguments, Mapping):
        requests = [r.get("arg_1") if isinstance(r, Mapping) else None for r in arguments.values()]
    elif isinstance(arguments, list):
        requests = [r[1] if isinstance(r, list) and len(r) > 1 else None for r in arguments]
    texts = tuple(r for r in requests if isinstance(r, str))
    return texts if len(texts) == len(requests) else ()


class _Targets:
    """Decides whether the targets of a log are indices or texts; if both are possible, by agreement with the log's own accuracy."""

    def __init__(self, rows: Sequence[tuple[int, Mapping[str, Any]]]) -> None:
        readings = (_by_index, _by_text)
        labels = [[read(row) for _, row in rows] for read in readings]
        possible = [
            read
            for read, labels_read in zip(readings, labels, strict=True)
            if None not in labels_read
        ]
        self.read = readings[0]
        if len(possible) == 1:
            self.read = possible[0]
        elif len(possible) == 2:
            misses = [sum(_misses(row, read(row)) for _, row in rows) for read in possible]
            self.read = possible[misses.index(min(misses))]
        self.missed = sum(_misses(row, self.read(row)) for _, row in rows)

    def answer(self, number: int, row: Mapping[str, Any], task_column: Mapping[str, str]) -> Answer:
        label = self.read(row)
        if label is None:
            raise InputError(
                f"the target {row['target']!r:.60} is none of the {len(row['scores'])} choices",
                line=number,
                remedy="give the index or the text of the one right choice",
            )
        texts = tuple(text.strip() for text in row["choices"][: len(row["scores"])])
        lengths = tuple(len(text.encode()) for text in texts)
        columns = dict(row["parts"]) | dict(task_column)
        return Answer(
            id=f"{columns.get('task', '')}/{row['doc_id']}".lstrip("/"),
            scores=tuple(row["scores"]),
            lengths=lengths,
            label=label,
            choices=texts,
            columns={key: columns[key] for key in ("task", *columns) if key in columns},
        )

    def findings(self, answers: Sequence[Answer]) -> list[Finding]:
        if not self.missed:
            return []
        text = (
            f"in {self.missed:,} of {len(answers):,} rows the top choice is right and the log's own 'acc' says wrong, or the reverse: "
            "check how the targets are written"
        )
        return [Notice.LOGS_AND_HINTS.finding("warning", text)]


def _by_index(row: Mapping[str, Any]) -> int | None:
    target = row["target"]
    if isinstance(target, str) and re.fullmatch(r"\s*\d{1,4}\s*", target, re.ASCII):
        target = int(target)
    is_whole = isinstance(target, int) and not isinstance(target, bool)
    return target if is_whole and 0 <= target < len(row["scores"]) else None


def _by_text(row: Mapping[str, Any]) -> int | None:
    target = row["target"]
    if not isinstance(target, str):
        return None
    texts = [text.strip() for text in row["choices"][: len(row["scores"])]]
    return texts.index(target.strip()) if texts.count(target.strip()) == 1 else None


def _misses(row: Mapping[str, Any], label: int | None) -> bool:
    """Whether the log's own accuracy contradicts this label."""
    accuracy = _number(row.get("acc"))
    if accuracy not in (0.0, 1.0) or label is None:
        return False
    scores = row["scores"]
    best = max(scores)
    # In case of a tie, the log may have counted either choice.
    return bool(scores.count(best) == 1 and (scores.index(best) == label) != (accuracy == 1.0))


def looks_like_it(head: bytes) -> bool:
    """Whether the first bytes are those of a log of lm-evaluation-harness."""
    if _HEAD.match(without_bom(head)) is not None:
        return True
    return first_character(head) == b"{" and b'"filtered_resps"' in head


FORMATS.register(
    Format(
        key="lm-eval",
        label="lm-evaluation-harness (samples_*.jsonl)",
        suffixes=(),
        matches=looks_like_it,
        open=partial(open_log, answers_of, _TOOL),
        text=True,
        special=True,
        answers=answers_of,
        summary="What --log_samples writes: log-likelihoods of choices become probabilities by their softmax; task and subject are groups.",
        package="pyarrow",
    )
)
