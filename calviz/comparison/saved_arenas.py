"""Saved arenas: a state file with one experiment per line, written as results come, and the JSON of a finished arena."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Self

from calviz.comparison.arena_results import SCORES, Experiment, MethodScore, ResultTable
from calviz.core.entry_specs import UNCALIBRATED
from calviz.core.errors import InputError, OptionError
from calviz.core.limits import MAX_JSON, OutputError, check_place
from calviz.data.format import Source

#: Start of the first line of a state file, and text that marks the JSON of a finished arena.
MARK, JSON_MARK = '{"calviz_arena": ', '"format": "arena"'
VERSION = 1
_HEAD = f"{MARK}{VERSION}}}\n".encode()

Key = tuple[str, str]


def looks_saved(head: bytes) -> bool:
    """Whether a file starts like a state file or like the JSON of a finished arena."""
    text = head[:4096].decode("utf-8", "replace").lstrip("\ufeff \r\n\t")
    return text.startswith(MARK) or (text.startswith("{") and JSON_MARK in text)


@dataclass
class ArenaState:
    """Finished results, in a file that each finished experiment is appended to.

    Attributes
    ----------
    path : Path
    done : dict
        Results by (digest of the experiment, method with its parameters).
    """

    path: Path
    done: dict[Key, MethodScore] = field(default_factory=dict)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """Open a state file, which the first result creates; an incomplete last line is cut off.

        Raises
        ------
        OptionError, OutputError
            If no file can be written at the path.
        InputError
            If the file exists but is not a saved arena.
        """
        target = Path(path)
        if str(path) in ("", "-"):
            raise OptionError(f"--state '{path}' is not a file that can be written.")
        check_place(target, f"--state {path}")
        if not target.exists():
            return cls(target)
        try:
            # Also if it was interrupted before the first line was complete.
            if target.stat().st_size < len(_HEAD) and _HEAD.startswith(target.read_bytes()):
                target.write_bytes(_HEAD)
            whole = target.read_bytes()
            end = whole.rfind(b"\n") + 1
            if end < len(whole) and whole.startswith(MARK.encode()):
                with target.open("r+b") as stream:
                    stream.truncate(end)
        except OSError as error:
            raise OutputError(
                f"{target.name}: cannot be written ({(error.strerror or str(error)).lower()})."
            ) from None
        state = cls(target)
        try:
            for _, scores, keys in _lines(Source(target)):
                state.done |= dict(zip(keys, scores, strict=True))
        except InputError as error:
            raise error.in_file(target.name) from None
        return state

    def add(self, experiment: Experiment, scores: Mapping[Key, MethodScore]) -> None:
        """Append the results of an experiment to the file."""
        self.done |= scores
        line = json.dumps(
            {
                "experiment": _experiment_record(experiment),
                "results": [
                    {"digest": digest, "as": method, **_score_record(score)}
                    for (digest, method), score in scores.items()
                ],
            },
            allow_nan=False,
        )
        try:
            with self.path.open("ab") as stream:
                head = b"" if stream.tell() else _HEAD
                stream.write(head + line.encode() + b"\n")
        except OSError as error:
            raise OutputError(
                f"{self.path.name}: cannot be written ({(error.strerror or str(error)).lower()})."
            ) from None


def _experiment_record(experiment: Experiment) -> dict[str, Any]:
    facts = asdict(experiment)
    # The name of the attribute in files.
    return {"judged" if k == "evaluation_rows" else k: v for k, v in facts.items()}


def _score_record(score: MethodScore) -> dict[str, Any]:
    # JSON has no infinity.
    scores = {
        k: None if math.isnan(v) else "inf" if math.isinf(v) else v for k, v in score.scores.items()
    }
    seconds = None if math.isnan(score.seconds) else score.seconds
    return {"method": score.method, **scores, "seconds": seconds, "reason": score.reason}


def record(table: ResultTable) -> dict[str, Any]:
    """Return a result table as plain values, which `read_saved` reads.

    Parameters
    ----------
    table : ResultTable
    """
    return {
        "baseline": table.baseline,
        "experiments": [
            {
                "experiment": _experiment_record(experiment),
                "results": [_score_record(score) for score in scores],
            }
            for experiment, scores in table.results()
        ],
    }


def read_saved(source: Source) -> tuple[list[tuple[Experiment, list[MethodScore]]], str | None]:
    """Read a state file, or the JSON of a finished arena.

    Returns
    -------
    results : list of (Experiment, list of MethodScore)
    baseline : str or None
        The method without calibration.

    Raises
    ------
    InputError
        If the file is neither, or damaged.
    """
    try:
        if source.head(len(MARK)).decode("utf-8", "replace") == MARK:
            return [(e, scores) for e, scores, _ in _lines(source)], UNCALIBRATED
        return _document(source)
    except InputError as error:
        raise error.in_file(source.name) from None


def _lines(source: Source) -> Iterator[tuple[Experiment, list[MethodScore], list[Key]]]:
    text = _text(source)
    head, *lines = text.splitlines() or [""]
    if not head.startswith(MARK):
        raise InputError("this file is not a saved arena", remedy="give --state a file of its own")
    whole = text.endswith("\n")
    for number, line in enumerate(lines, start=2):
        try:
            entry = json.loads(line)
        except (json.JSONDecodeError, RecursionError):
            if number == len(lines) + 1 and not whole:
                return  # incomplete because of an interruption
            raise InputError("the line is damaged", line=number, remedy="remove it") from None
        experiment, scores = _entry(entry, line=number)
        keys = [(str(r.get("digest")), str(r.get("as"))) for r in entry["results"]]
        yield experiment, scores, keys


def _document(source: Source) -> tuple[list[tuple[Experiment, list[MethodScore]]], str | None]:
    try:
        table = json.loads(_text(source))["arena"]
        entries, baseline = table["experiments"], table["baseline"]
    except (json.JSONDecodeError, RecursionError, KeyError, TypeError):
        entries, baseline = None, None
    if not isinstance(entries, list) or not (baseline is None or isinstance(baseline, str)):
        raise InputError(
            "this is not an arena written by calviz",
            remedy="write one with 'calviz arena --json'",
        )
    return [_entry(entry) for entry in entries], baseline


def _text(source: Source) -> str:
    MAX_JSON.check(source.size, f"the file is {MAX_JSON.written(source.size)}")
    with source.open() as stream:
        try:
            return stream.read().decode("utf-8-sig")
        except UnicodeDecodeError:
            raise InputError("the file is not text in UTF-8", file=source.name) from None


def _entry(entry: Any, *, line: int | None = None) -> tuple[Experiment, list[MethodScore]]:
    try:
        facts = entry["experiment"]
        experiment = Experiment(
            benchmark=_name(facts["benchmark"]),
            dataset=_name(facts["dataset"]),
            model=_name(facts["model"]),
            rows=_count(facts["rows"]),
            evaluation_rows=_count(facts["judged"]),
            classes=_count(facts["classes"]),
        )
        return experiment, [_score(result) for result in _listed(entry["results"])]
    except (KeyError, TypeError, ValueError):
        raise InputError("an experiment is damaged", line=line) from None


def _score(result: Any) -> MethodScore:
    reason = result["reason"]
    if reason is not None and not isinstance(reason, str):
        raise TypeError
    return MethodScore(
        _name(result["method"]),
        {key: _number(result.get(key)) for key in SCORES},
        _number(result.get("seconds")),
        reason,
    )


def _listed(value: Any) -> Iterable[Any]:
    if not isinstance(value, list):
        raise TypeError
    return value


def _name(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError
    return value


def _number(value: Any) -> float:
    if value is None:
        return math.nan
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError
    return float(value)
