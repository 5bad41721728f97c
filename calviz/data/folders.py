"""A folder of logs of language models, read as one file: tasks and models become groups."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from calviz.core.errors import InputError, shortened
from calviz.core.finding import Finding
from calviz.core.limits import MAX_ARRAYS
from calviz.data.file_bytes import Source
from calviz.data.format import FORMATS, Format
from calviz.data.formats.answers import Answer, as_table
from calviz.data.table import Table


class Folder:
    """The logs below a folder.

    Attributes
    ----------
    name : str
    size : int
        Bytes of the logs.
    """

    def __init__(self, path: Path, name: str | None = None) -> None:
        self.name = name or path.resolve().name
        files = sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith("."))
        MAX_ARRAYS.check(len(files), f"the folder has {len(files):,} files")
        known = [(file, _log_format(file)) for file in files]
        self.logs = [(file, entry) for file, entry in known if entry is not None]
        self.others = len(files) - len(self.logs)
        if not self.logs:
            raise InputError(
                "this is a folder", file=self.name,
                remedy="name a file in it (folders of lm-evaluation-harness samples or of Inspect logs are read as one)",
            )  # fmt: skip
        self.size = sum(file.stat().st_size for file, _ in self.logs)
        self._sources = [Source(file) for file, _ in self.logs]

    def table(self) -> Table:
        """All answers as one table; raises InputError, naming the log, where one cannot be read."""
        found: dict[tuple[str, ...], tuple[list[Answer], list[Finding]]] = {}
        again = 0
        several = len({file.parent for file, _ in self.logs}) > 1
        for (file, entry), source in zip(self.logs, self._sources, strict=True):
            try:
                assert entry.answers is not None
                answers, said = entry.answers(source)
            except InputError as error:
                raise error.in_file(file.name) from None
            if several:
                answers = [_of_model(a, file.parent.name) for a in answers]
            # Logs sort by their dates: of two runs of a task the last one counts.
            which = (
                tuple(answers[0].columns.get(key, "") for key in ("model", "task"))
                if answers
                else ()
            )
            key = which if any(which) else (file.name,)
            again += key in found
            found[key] = answers, said
        notices = [finding for _, said in found.values() for finding in said]
        if again:
            text = f"{again} log{'s' if again > 1 else ''} of a task that was run again later {'were' if again > 1 else 'was'} left out"
            notices.append(Finding("DATA012", "info", text))
        tools = " and ".join(dict.fromkeys(entry.label.split(" (")[0] for _, entry in self.logs))
        count = f"{len(found)} log{'s' if len(found) > 1 else ''} of {tools}"
        every = [answer for answers, _ in found.values() for answer in answers]
        return as_table(every, count, list(dict.fromkeys(notices)))

    def hasher(self) -> Callable[[], str]:
        """A function that gives the BLAKE2b-256 of the digests of all logs."""
        digests = [source.hasher() for source in self._sources]

        def digest() -> str:
            whole = hashlib.blake2b(digest_size=32)
            for one in digests:
                whole.update(one().encode())
            return whole.hexdigest()

        return digest


def _of_model(answer: Answer, folder: str) -> Answer:
    """The harness writes a folder for each model, and does not name it in the rows."""
    if "model" in answer.columns:
        return answer
    model = shortened(folder)
    return replace(
        answer, id=f"{model}/{answer.id}", columns={"model": model} | dict(answer.columns)
    )


def _log_format(file: Path) -> Format | None:
    try:
        with Source(file) as source:
            head = source.head(8192)
    except (InputError, OSError):
        return None
    logs = (entry for entry in FORMATS if entry.answers is not None)
    return next((entry for entry in logs if entry.matches(head)), None)
