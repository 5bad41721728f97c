"""Logs of Inspect (inspect_ai) as JSON: ``eval(..., log_format="json")``, or ``inspect log convert --to json``.

A log is one object: ``version``, ``status``, ``eval`` (task, model) and ``samples``. A sample has ``choices``, ``target``, ``scores`` by
scorer (``value`` "C" or "I", ``answer``, ``metadata``) and ``output``, with the log-probabilities of its tokens if they were requested.
Sources: logs of inspect_ai 0.3.285 and its documentation (``inspect_ai.log.EvalLog``).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from calviz.core.errors import InputError, shortened
from calviz.core.finding import Finding
from calviz.core.limits import MAX_JSON
from calviz.data.file_bytes import Source, without_bom
from calviz.data.format import FORMATS, Format
from calviz.data.formats.answers import Answer, open_log
from calviz.data.formats.jsonl import check_room, parsed_json
from calviz.data.notices import Notice
from calviz.data.percent_confidences import PERCENT_WORDS, are_percentages

_HEAD = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:\s*"\w+"\s*,\s*"eval"\s*:')
_TOOL = "Inspect log"
_VERSION = 2
#: Keys that may hold a stated confidence.
_CONFIDENCES = ("confidence", "stated_confidence", "probability", "prob")
_RIGHT = {"C": True, "I": False, "N": False, True: True, False: False}
_LETTER = re.compile(r"[^A-Za-z]*([A-Za-z])[^A-Za-z]*")
#: Rounding may carry a log-probability this far above 0.
_ABOVE_ZERO = 1e-6


def answers_of(source: Source) -> tuple[list[Answer], list[Finding]]:
    """Return the answers of a log, and findings about them; raise InputError, naming the sample, if one has no confidence."""
    with source.open() as stream:
        data = stream.read(MAX_JSON.value + 1)
    check_room(data)
    log = parsed_json(data)
    del data
    version = log.get("version") if isinstance(log, Mapping) else None
    if version != _VERSION:
        raise InputError(
            f"the Inspect log has version {version!r:.20}, but only version {_VERSION} is read",
            remedy="convert it with the 'inspect log convert' of a current inspect_ai",
        )
    samples = log.get("samples")
    if not isinstance(samples, list) or not samples:
        raise InputError("the Inspect log has no samples", remedy="log them (log_samples=True)")
    header = log["eval"] if isinstance(log.get("eval"), Mapping) else {}
    task_and_model = {
        key: shortened(header[key]) for key in ("task", "model") if isinstance(header.get(key), str)
    }
    parsed = [_answer(sample, row, task_and_model) for row, sample in enumerate(samples, start=1)]
    answers = [answer for answer in parsed if answer is not None]
    findings = list(_findings(log, len(parsed) - len(answers), len(parsed)))
    if not answers:
        raise InputError(
            "no sample of the Inspect log was scored", remedy="score it (inspect score)"
        )
    stated = np.array([a.confidence for a in answers if not a.scores])
    if are_percentages(stated):
        answers = [a if a.scores else replace(a, confidence=a.confidence / 100) for a in answers]
        findings.append(Notice.CONVERTED.finding("info", PERCENT_WORDS))
    if any(a.scores for a in answers) and not all(a.scores for a in answers):
        # Some samples lack logged scores for all choices: evaluate only the given answer in every sample.
        answers = [_top_only(a) for a in answers]
    return answers, findings


def _findings(log: Mapping[str, Any], left_out: int, count: int) -> Iterator[Finding]:
    status = log.get("status")
    if status != "success":
        text = f"the run ended with the status '{shortened(str(status))}': the log may lack samples"
        yield Notice.LOGS_AND_HINTS.finding("warning", text)
    if left_out:
        yield Notice.LOGS_AND_HINTS.finding(
            "warning",
            f"{left_out:,} of {count:,} samples have no score, and were left out",
        )


def _answer(sample: Any, row: int, task_and_model: Mapping[str, str]) -> Answer | None:
    if not isinstance(sample, Mapping):
        raise InputError("the sample is not a JSON object", row=row)
    scores = sample.get("scores")
    scores = (
        {k: v for k, v in scores.items() if isinstance(v, Mapping)}
        if isinstance(scores, Mapping)
        else {}
    )
    judged = [(name, s) for name, s in scores.items() if _is_mark(s.get("value"))]
    if not judged:
        return None
    scorer, score = judged[0]
    correct = _mark(score["value"], row, scorer)
    metadata = sample.get("metadata")
    columns = dict(task_and_model) | {
        str(key): value
        for key, value in (metadata.items() if isinstance(metadata, Mapping) else ())
        if isinstance(value, str) and len(value) <= 40
    }
    epoch = sample.get("epoch", 1)
    common: dict[str, Any] = {
        "id": "/".join(str(p) for p in (*task_and_model.values(), sample.get("id", row), epoch)),
        "correct": correct,
        "columns": columns,
    }
    stated = _stated(sample, scores)
    if stated is not None:
        return Answer(confidence=stated, **common)
    return _by_tokens(sample, score, row, common)


def _is_mark(value: Any) -> bool:
    return isinstance(value, bool) or value in ("C", "I", "P", "N", 0, 1)


def _mark(value: Any, row: int, scorer: str) -> bool:
    if value == "P":
        raise InputError(
            f"the scorer '{shortened(scorer)}' says that the answer is partly right, which is neither a hit nor a miss",
            row=row,
            remedy="score it as right or wrong",
        )
    return _RIGHT[value]


def _stated(sample: Mapping[str, Any], scores: Mapping[str, Mapping[str, Any]]) -> float | None:
    """Return the confidence stated by the model: from metadata of a score, a score of that name, or metadata or store of the sample."""
    places = [s.get("metadata") for s in scores.values()]
    places += [{name: s.get("value") for name, s in scores.items()}]
    places += [sample.get("metadata"), sample.get("store")]
    for place in places:
        if not isinstance(place, Mapping):
            continue
        for key in _CONFIDENCES:
            value = place.get(key)
            if (
                isinstance(value, int | float)
                and not isinstance(value, bool)
                and math.isfinite(value)
            ):
                return float(value)
    return None


def _by_tokens(
    sample: Mapping[str, Any], score: Mapping[str, Any], row: int, common: Mapping[str, Any]
) -> Answer:
    """Return an answer from the log-probabilities at the last token that is the letter of a choice."""
    choices = sample.get("choices")
    count = len(choices) if isinstance(choices, list) else 0
    letters = [chr(ord("A") + j) for j in range(min(count, 26))]
    for token in reversed(_tokens(sample)):
        letter = _letter(token.get("token"))
        logprob = _log_probability(token)
        if letter not in letters or logprob is None or logprob == -math.inf:
            continue
        probabilities = dict.fromkeys(letters, 0.0)
        tops = token.get("top_logprobs")
        for top in tops if isinstance(tops, list) else ():
            if not isinstance(top, Mapping):
                continue
            name, value = _letter(top.get("token")), _log_probability(top)
            if name in probabilities and value is not None:
                probabilities[str(name)] += math.exp(value)
        if count > 1 and all(p > 0 for p in probabilities.values()):
            label = _target(sample.get("target"), letters)
            if label is not None:
                scores = tuple(math.log(p) for p in probabilities.values())
                return Answer(scores=scores, label=label, confidence=math.exp(logprob), **common)
        return Answer(confidence=math.exp(logprob), **common)
    raise InputError(
        "the sample has neither a stated confidence nor the log-probability of its answer",
        row=row,
        remedy="run it with logprobs=True and top_logprobs, or write a 'confidence' into the metadata of its score",
    )


def _log_probability(token: Mapping[str, Any]) -> float | None:
    """The log-probability of a token, at most 0; None if it is missing, or too far above 0 to be one."""
    value = token.get("logprob")
    if not isinstance(value, int | float) or isinstance(value, bool) or not value <= _ABOVE_ZERO:
        return None
    return min(float(value), 0.0)


def _tokens(sample: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    try:
        content = sample["output"]["choices"][0]["logprobs"]["content"]
    except (KeyError, IndexError, TypeError):
        return []
    return [t for t in content if isinstance(t, Mapping)] if isinstance(content, list) else []


def _letter(token: Any) -> str | None:
    match = _LETTER.fullmatch(token) if isinstance(token, str) else None
    return match[1].upper() if match else None


def _target(target: Any, letters: Sequence[str]) -> int | None:
    if isinstance(target, list):
        target = target[0] if len(target) == 1 else None
    return letters.index(target) if target in letters else None


def _top_only(answer: Answer) -> Answer:
    return Answer(
        id=answer.id, confidence=answer.confidence, correct=answer.correct, columns=answer.columns
    )


FORMATS.register(
    Format(
        key="inspect",
        label="Inspect (log as JSON)",
        suffixes=(),
        matches=lambda head: _HEAD.match(without_bom(head)) is not None,
        open=partial(open_log, answers_of, _TOOL),
        answers=answers_of,
        text=True,
        special=True,
        summary="Log-probabilities of the letters of choices, or a confidence in a score's metadata; task, model and metadata are groups.",
        package="pyarrow",
    )
)
