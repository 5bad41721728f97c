"""Read several logs of language models (a folder, or files uploaded together) as one file; tasks and models become groups."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

from calviz.core.errors import InputError, shortened
from calviz.core.finding import Finding
from calviz.core.limits import MAX_ARRAYS
from calviz.data.file_bytes import Source
from calviz.data.format import FORMATS, Format
from calviz.data.formats.answers import Answer, as_table
from calviz.data.loaded import short
from calviz.data.notices import Notice
from calviz.data.table import Table

_AROUND = re.compile(r"^samples_|(_\d{4}-\d\d-\d\dT[\d.-]+)?\.jsonl?(\.gz)?$", re.IGNORECASE)
#: Several files given together, as pairs of name and bytes.
Together = tuple[tuple[str, bytes], ...]


class Logs:
    """Several logs read as one.

    Attributes
    ----------
    name : str
    size : int
        Total size of the logs in bytes.
    others : tuple of str
        Names of the given files that are not logs.
    """

    def __init__(self, name: str, sources: Sequence[Source], folders: Sequence[str] = ()) -> None:
        formats = [(source, _log_format(source)) for source in sources]
        self.name = name
        self._logs = [(source, entry) for source, entry in formats if entry is not None]
        self._folders = [f for f, (_, entry) in zip(folders, formats, strict=False) if entry]
        self.others = tuple(source.name for source, entry in formats if entry is None)
        if not self._logs:
            raise InputError(
                "this is a folder", file=self.name,
                remedy="name a file in it (folders of lm-evaluation-harness samples or of Inspect logs are read as one)",
            )  # fmt: skip
        self.size = sum(source.size for source, _ in self._logs)

    @classmethod
    def of_folder(cls, path: Path, name: str | None = None) -> Self:
        """Return all logs below a folder; raise InputError if there is none."""
        files = sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith("."))
        MAX_ARRAYS.check(len(files), f"the folder has {len(files):,} files")
        sources = [(source, file) for file in files if (source := _opened(file)) is not None]
        return cls(
            name or path.resolve().name,
            [source for source, _ in sources],
            [file.parent.name for _, file in sources],
        )

    @classmethod
    def of_files(cls, files: Together, name: str | None = None) -> Self:
        """Return the logs among files uploaded together; raise InputError if there is none."""
        MAX_ARRAYS.check(len(files), f"there are {len(files):,} files")
        # Sorted like the files of a folder, so that the digest equals that of the folder.
        sources = [Source(content, title) for title, content in sorted(files)]
        logs = cls(name or "several files", sources)
        if name is None:
            first, *rest = (source.name for source, _ in logs._logs)
            # "samples_boolq_2026-11-20T10-00-00.000001.jsonl" is named after its task.
            task = _AROUND.sub("", first) or first
            logs.name = f"{task} and {len(rest)} more" if rest else first
        return logs

    def table(self) -> Table:
        """Return all answers as one table; raise InputError, naming the log, if one cannot be read."""
        runs: dict[tuple[str, ...], tuple[list[Answer], list[Finding]]] = {}
        repeated = 0
        several = len(set(self._folders)) > 1
        for index, (source, entry) in enumerate(self._logs):
            try:
                assert entry.answers is not None
                answers, findings = entry.answers(source)
            except InputError as error:
                raise error.in_file(source.name) from None
            if several:
                answers = [_of_model(a, self._folders[index]) for a in answers]
            # Logs are sorted by date: if a task was run twice, the last run counts.
            model_and_task = (
                tuple(answers[0].columns.get(key, "") for key in ("model", "task"))
                if answers
                else ()
            )
            key = model_and_task if any(model_and_task) else (source.name,)
            repeated += key in runs
            runs[key] = answers, findings
        notices = [finding for _, findings in runs.values() for finding in findings]
        if repeated:
            text = f"{repeated} log{'s' if repeated > 1 else ''} of a task that was run again later {'were' if repeated > 1 else 'was'} left out"
            notices.append(Notice.LOGS_AND_HINTS.finding("info", text))
        # lm-evaluation-harness writes its result files into the same folder.
        left_out = [name for name in self.others if not name.startswith("results")]
        if left_out:
            text = f"left out, not {'logs' if len(left_out) > 1 else 'a log'}: {short(', '.join(left_out), 80)}"
            notices.append(Notice.LOGS_AND_HINTS.finding("info", text))
        formats = " and ".join(dict.fromkeys(entry.label.split(" (")[0] for _, entry in self._logs))
        count = f"{len(runs)} log{'s' if len(runs) > 1 else ''} of {formats}"
        all_answers = [answer for answers, _ in runs.values() for answer in answers]
        return as_table(all_answers, count, list(dict.fromkeys(notices)))

    def hasher(self) -> Callable[[], str]:
        """Return a function that computes the BLAKE2b-256 hash of the digests of all logs."""
        digests = [source.hasher() for source, _ in self._logs]

        def digest() -> str:
            digester = hashlib.blake2b(digest_size=32)
            for log_digest in digests:
                digester.update(log_digest().encode())
            return digester.hexdigest()

        return digest


def _of_model(answer: Answer, folder: str) -> Answer:
    """Add the model, which lm-evaluation-harness names only by the folder of the log."""
    if "model" in answer.columns:
        return answer
    model = shortened(folder)
    return replace(
        answer, id=f"{model}/{answer.id}", columns={"model": model} | dict(answer.columns)
    )


def are_logs(files: Together) -> bool:
    """Whether at least one of several files is a log of a language model."""
    return any(_log_format(Source(content, name)) is not None for name, content in files)


def _opened(file: Path) -> Source | None:
    try:
        return Source(file)
    except (InputError, OSError):
        return None


def _log_format(source: Source) -> Format | None:
    try:
        head = source.head(8192)
    except (InputError, OSError):
        return None
    logs = (entry for entry in FORMATS if entry.answers is not None)
    return next((entry for entry in logs if entry.matches(head)), None)
