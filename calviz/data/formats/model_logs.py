"""Logs of language models: samples of lm-evaluation-harness, and Inspect's logs as JSON."""

from __future__ import annotations

import math
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from calviz.core.blocks import checkpoint
from calviz.core.errors import Finding, InputError, check_expansion, shortened
from calviz.data.answers import TextRules, share_right
from calviz.data.format import Notice, Source, damaged, undamaged
from calviz.data.formats import table_formats
from calviz.data.questions import Answer, lines, log_format, number_in, of_text, short_texts
from calviz.data.roles import PERCENT_WORDS, are_percentages

# ---- lm-evaluation-harness

# Files ``samples_<task>_<date>.jsonl``, written by ``--log_samples``.
# A row holds the document, the requests (``arguments``: context and choice), the response of the model to each of them
# (``filtered_resps``: log-likelihood and whether greedy decoding gives the choice, as numbers or as text), and ``target``, the index or the
# text of the right choice. The row of a generated answer has the text in ``resps``, what was extracted from it in ``filtered_resps``, and
# metrics by name, such as ``exact_match``. Sources: logs of lm_eval 0.4.13 and its documentation (docs/interface.md, ``evaluator.py``).


_FILE = re.compile(r"samples_(?P<task>.+?)(?:_\d{4}-\d\d-\d\dT[\d.-]+)?\.jsonl", re.IGNORECASE)
#: Keys under which a document names the part of the task it belongs to.
_PARTS = ("subject", "category", "subcategory", "topic", "task", "subset", "language", "difficulty", "level")  # fmt: skip
#: Metrics that say whether a generated answer is right, in order of preference.
_RIGHT_IF = ("exact_match", "em", "pass@1", "prompt_level_strict_acc")


@log_format(
    key="lm-eval",
    label="lm-evaluation-harness (samples_*.jsonl)",
    tool="lm-evaluation-harness samples",
    # The first keys of a row, in the order written by the harness.
    begins=rb'\s*\{(?:\s*"doc_id"\s*:[^,{}\[\]]{1,60},\s*"doc"\s*:|.*"filtered_resps")',
    summary="What --log_samples writes: log-likelihoods of choices become probabilities by their softmax, or the confidence that a generated answer states; task and subject are groups.",
)
def answers_of_lm_eval(source: Source) -> tuple[list[Answer], list[Finding]]:
    """Return the answers of a log, and findings about them; raise InputError, naming the line, if a row holds none."""
    task = _FILE.fullmatch(source.name.removesuffix(".gz"))
    task_column = {"task": task["task"]} if task else {}
    with source.open() as stream:
        rows = list(_rows(lines(stream), TextRules.of(source.options), task_column))
    filters = dict.fromkeys(row.get("filter") for _, row in rows)
    findings = []
    if len(filters) > 1:
        # One row per filter: the same answer, extracted in several ways.
        first = next(iter(filters))
        rows = [(number, row) for number, row in rows if row.get("filter") == first]
        text = f"the log holds the answers of {len(filters)} filters; only those of '{shortened(str(first))}' are read"
        findings.append(Notice.LOGS_AND_HINTS.finding("info", text))
    if all(row["scores"] == [] for _, row in rows):
        return [_generated(number, row) for number, row in rows], findings
    read, missed = _reading(rows)
    if missed:
        text = (
            f"in {missed:,} of {len(rows):,} rows the top choice is right and the log's own 'acc' says wrong, or the reverse: "
            "check how the targets are written"
        )
        findings.append(Notice.LOGS_AND_HINTS.finding("warning", text))
    return [_chosen(number, row, read(row)) for number, row in rows], findings


def _rows(
    numbered_lines: Iterator[tuple[int, bytes]], rules: TextRules, task: Mapping[str, str]
) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in numbered_lines:
        row = table_formats.parsed_object(line, number)
        needed = {key: row.get(key) for key in ("target", "filter", "metrics", "acc")}
        needed["filter"] = str(needed["filter"])
        generated = _answer_text(row)
        if generated is not None and (mark := next((m for m in _RIGHT_IF if m in row), None)):
            needed |= {"scores": [], "mark": row[mark], "metric": mark}
            own, answer = number_in(row), _first(row.get("filtered_resps"))
            needed["text"] = of_text(generated, rules, own, answer)
        else:
            needed["scores"] = _scores(row, number)
        needed["choices"] = _choices(row.get("arguments"))
        doc = row.get("doc")
        doc = doc if isinstance(doc, Mapping) else {}
        parts = {part: shortened(doc[part]) for part in _PARTS if isinstance(doc.get(part), str)}
        parts |= task
        needed["where"] = {
            "id": f"{parts.get('task', '')}/{row.get('doc_id')}".lstrip("/"),
            "columns": {key: parts[key] for key in ("task", *parts) if key in parts},
        }
        yield number, needed


def _answer_text(row: Mapping[str, Any]) -> str | None:
    """The generated text of a row: all of it, if it is there; None if the row has log-likelihoods."""
    found = _first(row.get("filtered_resps", row.get("resps")))
    if not isinstance(found, str) or (_number(found) is not None and "exact_match" not in row):
        return None
    whole = _first(row.get("resps"))
    return whole if isinstance(whole, str) else found


def _generated(number: int, row: Mapping[str, Any]) -> Answer:
    """The answer of a row without log-likelihoods."""
    if row["mark"] not in (0, 1):
        raise InputError(
            f"the metric '{row['metric']}' is {row['mark']!r:.20}, which is neither a hit nor a miss",
            line=number,
            remedy="score answers as right or wrong",
        )
    return Answer(correct=row["mark"] == 1, **row["where"], **row["text"])


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


_Reading = Callable[[Mapping[str, Any]], int | None]


def _reading(rows: Sequence[tuple[int, Mapping[str, Any]]]) -> tuple[_Reading, int]:
    """Whether the targets of a log are indices or texts, by agreement with the log's own accuracy if both are possible; how often it differs."""
    readings = (_by_index, _by_text)
    possible = [read for read in readings if all(read(row) is not None for _, row in rows)]
    misses = {
        read: sum(_misses(row, read(row)) for _, row in rows) for read in possible or readings[:1]
    }
    best = min(misses, key=lambda read: misses[read])
    return best, misses[best]


def _chosen(number: int, row: Mapping[str, Any], label: int | None) -> Answer:
    """The answer of a row with log-likelihoods."""
    if label is None:
        raise InputError(
            f"the target {row['target']!r:.60} is none of the {len(row['scores'])} choices",
            line=number,
            remedy="give the index or the text of the one right choice",
        )
    texts = tuple(text.strip() for text in row["choices"][: len(row["scores"])])
    return Answer(
        scores=tuple(row["scores"]),
        lengths=tuple(len(text.encode()) for text in texts),
        label=label,
        choices=texts,
        **row["where"],
    )


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


# ---- Inspect

# Files ``.eval``, a zip of JSON, or one JSON object (``log_format="json"``, ``inspect log convert --to json``).
# A log is one object: ``version``, ``status``, ``eval`` (task, model) and ``samples``. A sample has ``choices``, ``target``, ``scores`` by
# scorer (``value`` "C" or "I", ``answer``, ``metadata``) and ``output``, with the log-probabilities of its tokens if they were requested.
# Sources: logs of inspect_ai 0.3.285 and its documentation (``inspect_ai.log.EvalLog``).


_INSPECT_VERSION = 2
#: The method of compression in a zip file that is zstd.
_ZSTD = 93
_RIGHT = {"C": True, "I": False, "N": False, True: True, False: False}
_MARKS = ("P", *_RIGHT)
_LETTER = re.compile(r"[^A-Za-z]*([A-Za-z])[^A-Za-z]*")
#: Rounding may carry a log-probability this far above 0.
_ABOVE_ZERO = 1e-6


@log_format(
    key="inspect",
    label="Inspect (log, .eval or JSON)",
    tool="Inspect log",
    begins=rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:\s*"\w+"\s*,\s*"eval"\s*:|'
    rb"PK\x03\x04.{22,26}(?:_journal/|header\.json|samples/)",
    summary="Log-probabilities of the letters of choices, or a confidence in a score's metadata; task, model and metadata are groups.",
)
def answers_of_inspect(source: Source) -> tuple[list[Answer], list[Finding]]:
    """Return the answers of a log, and findings about them; raise InputError, naming the sample, if one has no confidence."""
    zipped = source.head(2) == b"PK"
    log, samples = _eval_log(source) if zipped else _json_log(source)
    version = log.get("version")
    if version != _INSPECT_VERSION:
        raise InputError(
            f"the Inspect log has version {version!r:.20}, but only version {_INSPECT_VERSION} is read",
            remedy="convert it with the 'inspect log convert' of a current inspect_ai",
        )
    header = log["eval"] if isinstance(log.get("eval"), Mapping) else {}
    rules = TextRules.of(source.options)
    task_and_model = {
        key: shortened(header[key]) for key in ("task", "model") if isinstance(header.get(key), str)
    }
    keyed = [
        (_epoch_and_id(sample), _answer(sample, row, task_and_model, rules))
        for row, sample in enumerate(samples, start=1)
    ]
    if zipped:
        # Samples lie there in the order in which they ended; in JSON they are sorted.
        keyed.sort(key=lambda one: one[0])
    parsed = [one for _, one in keyed]
    if not parsed:
        raise InputError("the Inspect log has no samples", remedy="log them (log_samples=True)")
    answers = [answer for answer, _ in parsed if answer is not None]
    findings = list(_findings(log, len(parsed) - len(answers), len(parsed)))
    if not answers:
        raise InputError("no sample of the log was scored", remedy="score it (inspect score)")
    in_texts = [by_text for answer, by_text in parsed if answer is not None]
    compared = any(a.answer is not None for a in answers)
    if not compared and (not all(in_texts) or all(a.text for a in answers)):
        _check_confidences([answer for answer, _ in parsed])
    stated = [not a.scores and not by_text for a, by_text in zip(answers, in_texts, strict=True)]
    if are_percentages(np.array([a.confidence for a in answers])[stated]):
        answers = [
            replace(a, confidence=a.confidence / 100) if is_stated else a
            for a, is_stated in zip(answers, stated, strict=True)
        ]
        findings.append(Notice.CONVERTED.finding("info", PERCENT_WORDS))
    if any(a.scores for a in answers) and not all(a.scores for a in answers):
        # Some samples lack logged scores for all choices: evaluate only the given answer in every sample.
        answers = [replace(a, scores=(), label=-1) for a in answers]
    return answers, findings


def _check_confidences(answers: Sequence[Answer | None]) -> None:
    """Raise InputError, naming the first sample, if one has no confidence."""
    row = next((row for row, a in enumerate(answers, start=1) if a is not None and a.text), 0)
    if row:
        scored = [a for a in answers if a is not None]
        right = share_right(np.array([a.correct for a in scored]), [a.question for a in scored])
        raise InputError(
            f"the sample has neither a stated confidence nor the log-probability of its answer; of all answers {right} are right",
            row=row,
            remedy="run it with logprobs=True and top_logprobs, or write a 'confidence' into the metadata of its score",
        )


Samples = Iterator[Any]


def _json_log(source: Source) -> tuple[Mapping[str, Any], Samples]:
    log = table_formats.whole_json(source)
    log = log if isinstance(log, Mapping) else {}
    samples = log.get("samples")
    return log, iter(samples if isinstance(samples, list) else ())


def _eval_log(source: Source) -> tuple[Mapping[str, Any], Samples]:
    """The same from the members of an ``.eval`` file: ``header.json``, and a sample each in ``samples/``, parsed one by one.

    The header of a run that did not end is ``_journal/start.json``.
    """
    with undamaged(*table_formats.ZIP_DAMAGE):
        archive = table_formats.open_zip(source)
        members = {entry.filename: entry for entry in archive.infolist()}
        samples = [m for name, m in members.items() if name.startswith("samples/")]
        header = members.get("header.json", members.get("_journal/start.json"))
        read = [*samples, *([header] if header is not None else [])]
        check_expansion(
            "the log", sum(m.file_size for m in read), sum(m.compress_size for m in read)
        )
        table_formats.check_room(bytes(0), max((m.file_size for m in read), default=0))
        log = table_formats.parsed_json(_member(archive, header)) if header is not None else {}
        if not isinstance(log, dict):
            raise damaged()
    in_order = sorted(samples, key=lambda m: m.header_offset)

    def each() -> Samples:
        for number, member in enumerate(in_order):
            checkpoint(f"sample {number:,} of {len(in_order):,}" if number % 100 == 0 else "")
            with undamaged(*table_formats.ZIP_DAMAGE):
                yield table_formats.parsed_json(_member(archive, member))

    return {"status": "started"} | log, each()


def _epoch_and_id(sample: Any) -> tuple[str, str]:
    """The key by which inspect_ai sorts samples."""
    epoch, id = (sample.get(k) if isinstance(sample, Mapping) else None for k in ("epoch", "id"))
    return str(epoch).zfill(20), id if isinstance(id, str) else str(id).zfill(20)


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    """Return a member of an ``.eval`` file, whose compression by zstd Python's reader does not know before 3.14."""
    if member.compress_type != _ZSTD:
        return archive.read(member)
    import pyarrow as pa

    stored = copy(member)
    stored.compress_type, stored.file_size = zipfile.ZIP_STORED, member.compress_size
    stored.CRC = None  # type: ignore[assignment]  # it is that of the unpacked bytes
    packed = pa.BufferReader(archive.read(stored))
    # Inspect divides large samples into several frames.
    data: bytes = pa.CompressedInputStream(packed, "zstd").read(member.file_size + 1)
    if len(data) != member.file_size or zlib.crc32(data) != member.CRC:
        raise damaged()
    return data


def _findings(log: Mapping[str, Any], left_out: int, count: int) -> Iterator[Finding]:
    status = log.get("status")
    if status != "success":
        text = f"the run ended with the status '{shortened(str(status))}': the log may lack samples"
        yield Notice.LOGS_AND_HINTS.finding("warning", text)
    if left_out:
        yield Notice.LOGS_AND_HINTS.finding(
            "warning", f"{left_out:,} of {count:,} samples have no score, and were left out"
        )


def _answer(
    sample: Any, row: int, task_and_model: Mapping[str, str], rules: TextRules
) -> tuple[Answer | None, bool]:
    """Return the answer of a sample, None if it was not scored, and whether its confidence is looked for in its text."""
    if not isinstance(sample, Mapping):
        raise InputError("the sample is not a JSON object", row=row)
    scores = sample.get("scores")
    scores = scores if isinstance(scores, Mapping) else {}
    scores = {k: v for k, v in scores.items() if isinstance(v, Mapping)}
    judged = [(name, s) for name, s in scores.items() if s.get("value") in _MARKS]
    if not judged:
        return None, False
    scorer, score = judged[0]
    correct = _mark(score["value"], row, scorer)
    columns = dict(task_and_model) | short_texts(sample.get("metadata"))
    epoch = sample.get("epoch", 1)
    question = "/".join(str(p) for p in (*task_and_model.values(), sample.get("id", row)))
    common: dict[str, Any] = {"id": f"{question}/{epoch}", "question": question}
    common |= {"correct": correct, "columns": columns}
    compared = rules.answer is not None
    own = _stated(sample, scores)
    tokens = _by_tokens(sample, common) if own is None or compared else None
    if tokens is not None and not compared:
        return tokens, False
    if compared:
        common["logprob"] = _logprob(sample) if tokens is None else math.log(tokens.confidence)
    fields = of_text(_completion(sample), rules, own, score.get("answer"))
    return Answer(**fields, **common), own is None


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
    found = (number_in(place) for place in places)
    return next((value for value in found if value is not None), None)


def _completion(sample: Mapping[str, Any]) -> Any:
    """The text of the answer."""
    try:
        content = sample["output"]["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError):
        return None
    if isinstance(content, list):
        content = "\n".join(str(c.get("text", "")) for c in content if isinstance(c, Mapping))
    return content


def _by_tokens(sample: Mapping[str, Any], common: Mapping[str, Any]) -> Answer | None:
    """Return an answer from the log-probabilities at the last token that is the letter of a choice; None if there is none."""
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
    return None


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


def _logprob(sample: Mapping[str, Any]) -> float:
    """The mean log-probability of the tokens of a text (Malinin & Gales 2021, length-normalised); nan without any."""
    found = [value for token in _tokens(sample) if (value := _log_probability(token)) is not None]
    return sum(found) / len(found) if found else math.nan


def _letter(token: Any) -> str | None:
    match = _LETTER.fullmatch(token) if isinstance(token, str) else None
    return match[1].upper() if match else None


def _target(target: Any, letters: Sequence[str]) -> int | None:
    if isinstance(target, list):
        target = target[0] if len(target) == 1 else None
    return letters.index(target) if target in letters else None
