"""From a file or folder to predictions, step by step."""

from __future__ import annotations

import copy
import hashlib
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial, reduce
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np
import numpy.typing as npt

from calviz.core import errors, profile
from calviz.core.blocks import AnyArray, Factor, checkpoint
from calviz.core.errors import MAX_ARRAYS, Finding, InputError, OptionError, known_names, needs
from calviz.core.predictions import ConfidencePredictions, Dataset, Predictions
from calviz.core.profile import KEY, SUMS, Profile, columns_of, group_names, merge, read_facts
from calviz.core.words import decimals_for, percent
from calviz.data import format as file_format
from calviz.data import judge_columns
from calviz.data.answers import by_question, with_stated_confidence
from calviz.data.building import build
from calviz.data.format import SAMPLE_ROWS, Notice, ReadingOptions, Source, Table, format_of, short
from calviz.data.formats.numpy_formats import MAGIC
from calviz.data.formats.numpy_formats import zipped as zipped
from calviz.data.joining import LabelFile, in_label_file, join
from calviz.data.judge_columns import columns_of_judges, judges_beside, with_verdicts_as_scores
from calviz.data.loaded import Loaded as Loaded
from calviz.data.loaded import ReadingForMap, Recognition
from calviz.data.questions import Answer, as_table, by_choices, with_confidences
from calviz.data.recognition import recognise, with_array_names
from calviz.data.roles import ColumnRoles, ScoreColumns

# ---- Read several logs of language models (a folder, or files uploaded together) as one file; tasks and models become groups.


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
    def of_folder(
        cls, path: Path, name: str | None = None, options: ReadingOptions | None = None
    ) -> Self:
        """Return all logs below a folder; raise InputError if there is none."""
        files = sorted(p for p in path.rglob("*") if p.is_file() and not p.name.startswith("."))
        MAX_ARRAYS.check(len(files), f"the folder has {len(files):,} files")
        opened = ((_opened(file, options), file) for file in files)
        sources = [(source, file) for source, file in opened if source is not None]
        opened_from = [file.parent.name for _, file in sources]
        return cls(name or path.resolve().name, [source for source, _ in sources], opened_from)

    @classmethod
    def of_files(cls, files: Together, name: str | None, options: ReadingOptions) -> Self:
        """Return the logs among files uploaded together; raise InputError if there is none."""
        MAX_ARRAYS.check(len(files), f"there are {len(files):,} files")
        # Sorted like the files of a folder, so that the digest equals that of the folder.
        sources = [Source(content, title, options) for title, content in sorted(files)]
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
            checkpoint(f"log {index + 1:,} of {len(self._logs):,}")
            with errors.in_file(source.name):
                assert entry.answers is not None
                answers, findings = entry.answers(source)
            if several:
                answers = [_of_model(a, self._folders[index]) for a in answers]
            # Logs are sorted by date: if a task was run twice, the last run counts.
            named = answers[0].columns if answers else {}
            run = tuple(named.get(key, "") for key in ("model", "task"))
            key = run if any(run) else (source.name,)
            repeated += key in runs
            runs[key] = answers, findings
        notices = [finding for _, findings in runs.values() for finding in findings]
        if repeated:
            text = f"{repeated} log{'s' if repeated > 1 else ''} of a task that was run again later {'were' if repeated > 1 else 'was'} left out"
            notices.append(Notice.LOGS_AND_HINTS.finding("info", text))
        # lm-evaluation-harness writes its result files into the same folder.
        left_out = [name for name in self.others if not name.startswith("results")]
        if left_out:
            text = f"left out, not {'logs' if len(left_out) > 1 else 'a log'}: {short(', '.join(left_out), length=80)}"
            notices.append(Notice.LOGS_AND_HINTS.finding("info", text))
        formats = " and ".join(dict.fromkeys(entry.label.split(" (")[0] for _, entry in self._logs))
        count = f"{len(runs)} log{'s' if len(runs) > 1 else ''} of {formats}"
        all_answers = [answer for answers, _ in runs.values() for answer in answers]
        kept, more = with_confidences(all_answers)
        return as_table(kept, count, [*dict.fromkeys(notices), *more])

    def hasher(self) -> Callable[[], str]:
        """Return a function that computes the BLAKE2b-256 hash of the digests of all logs."""
        digests = [source.hasher() for source, _ in self._logs]

        def digest() -> str:
            of_logs = "".join(log_digest() for log_digest in digests)
            return hashlib.blake2b(of_logs.encode(), digest_size=32).hexdigest()

        return digest


def _of_model(answer: Answer, folder: str) -> Answer:
    """Add the model, which lm-evaluation-harness names only by the folder of the log."""
    if "model" in answer.columns:
        return answer
    model = errors.shortened(folder)
    return replace(answer, id=f"{model}/{answer.id}", columns={"model": model, **answer.columns})


def are_logs(files: Together) -> bool:
    """Whether at least one of several files is a log of a language model."""
    return any(_log_format(Source(content, name)) is not None for name, content in files)


def _opened(file: Path, options: ReadingOptions | None) -> Source | None:
    try:
        return Source(file, None, options)
    except (InputError, OSError):
        return None


def _log_format(source: Source) -> file_format.Format | None:
    try:
        head = source.head(8192)
    except (InputError, OSError):
        return None
    logs = (entry for entry in file_format.FORMATS if entry.answers is not None)
    return next((entry for entry in logs if entry.matches(head)), None)


# ---- Read profiles from files, with the same checks as any other file.


def facts_in(table: Table) -> bytes | None:
    """The facts of a profile, from the metadata of a Parquet file; None if the table is not a profile."""
    return (getattr(getattr(table, "schema", None), "metadata", None) or {}).get(KEY)


def profile_in(table: Table, text: bytes) -> Profile:
    """Return the profile stored in a table.

    Raises
    ------
    InputError
        If it has another version or is damaged.
    """
    facts, rows = read_facts(text)
    names = columns_of(facts)
    if set(names) != set(table.names):
        raise InputError(
            "the profile is damaged: it does not have the columns that its facts declare",
            remedy="make it again",
        )
    timed = facts.every is not None
    fetched = dict(table.fetch((), [name for name in names if name != "time"]).columns)
    columns: dict[str, Any] = {}
    for name in names:
        if name == "time" and timed:
            columns[name] = _times(table)
        elif name == "split" or name in group_names(facts):
            columns[name] = _texts(fetched[name])
        else:
            columns[name] = _numbers(fetched[name], name)
    return profile.profile_from_columns(facts, rows, columns)


def _texts(column: Any) -> Any:
    return Factor.of(column).values().tolist()


def _numbers(column: Any, name: str) -> Any:
    if name == "hit":
        if isinstance(column, Factor):
            column = [text in ("True", "true", "1") for text in _texts(column)]
        return np.asarray(column).astype(bool)
    if isinstance(column, Factor):
        raise InputError("the profile is damaged: a column of numbers holds text", column=name)
    values = np.asarray(column, dtype=np.float64)
    if not (np.isfinite(values) | (np.isnan(values) & (name in SUMS[3:]))).all():
        raise InputError("the profile is damaged: a number is missing", column=name)
    if name in ("n", "clipped", "cell", "true", "class"):
        return values.astype(np.int64 if name in ("n", "clipped") else np.int32)
    return values


def _times(table: Any) -> Any:
    return table._table(["time"]).column(0).to_numpy(zero_copy_only=False).astype("datetime64[us]")


def read_profile(source: str | os.PathLike[str]) -> Profile:
    """Read a profile from its file.

    Raises
    ------
    InputError
        If the file is not a profile, has another version, or is damaged.
    """
    needs("pyarrow")
    with Source(source) as opened, errors.in_file(opened.name):
        table = format_of(opened).open(opened)
        text = facts_in(table)
        if text is None:
            remedy = "make one from it: calviz profile FILE --out NAME.parquet"
            raise InputError("this is not a profile", remedy=remedy)
        return profile_in(table, text)


def merge_files(paths: Iterable[str | os.PathLike[str]]) -> Profile:
    """Merge the profiles of several files.

    Raises
    ------
    InputError
        If one is not a profile, or two cannot be merged.
    """
    return merge([read_profile(path) for path in paths])


def loaded_profile(sums: Profile, name: str) -> Loaded:
    """Return a profile in the form of a file that was read."""
    data: Dataset = sums.predictions().renamed(sums.facts.name or name)
    weights = data.weights
    counts: dict[str, int] = {}
    if data.splits is not None and weights is not None:
        rows = np.bincount(data.splits.codes, weights, minlength=len(data.splits.levels))
        counts = dict(zip(data.splits.levels, rows.astype(int).tolist(), strict=True))
    facts = sums.facts
    return Loaded(
        file=name,
        models={data.name: data},
        recognition=Recognition(
            format=f"calviz profile ({sums.cells.height:,} cells)",
            kind=data.kind,
            split_column="split" if facts.split else None,
            groups=facts.groups,
            class_names=data.class_names,
            models=(data.name,),
            columns=tuple(sums.cells.columns),
            rows=sums.n,
            time_column="time" if facts.every else None,
            split_counts=counts,
        ),
    )


# ---- From a file to predictions: find the format, recognise the columns, build the predictions, report what was done.


_EMPTY = ReadingOptions()
#: With more classes than this, some are expected to be missing from the first rows.
_FEW_CLASSES = 20


def read(
    source: str | os.PathLike[str] | bytes | BinaryIO | Together,
    *,
    name: str | None = None,
    options: ReadingOptions = _EMPTY,
    labels: LabelFile | None = None,
) -> Loaded:
    """Read a file of predictions in any supported format; the layout is recognised.

    Parameters
    ----------
    source : str, PathLike, bytes, binary file object, or tuple of (str, bytes)
        The file; or a folder of logs of language models, or names and bytes of several logs, which are read as one. Nothing in it is
        ever executed or unpickled.
    name : str, optional
        Name in messages and results; the file's own name if left out.
    options : ReadingOptions
        Settings for reading; everything left empty is recognised.
    labels : LabelFile, optional
        Another file that holds the labels of the same rows, joined by an identifier.

    Returns
    -------
    Loaded
        The predictions of each model, and what was recognised.

    Raises
    ------
    InputError
        If the file cannot be read; one sentence names file, row, line, column, the rule and the remedy. Its
        `repairs` can be requested with ``options.repair``.
    OptionError
        If an option does not fit the file.
    """
    # NumPy need not warn: non-finite values are found and reported.
    with np.errstate(all="ignore"):
        if isinstance(source, str | os.PathLike) and Path(source).is_dir() and labels is None:
            return _read_logs(Logs.of_folder(Path(source), name, options), options)
        if isinstance(source, tuple):
            return _read_logs(Logs.of_files(source, name, options), options)
        if labels is not None and isinstance(labels.source, str | os.PathLike):
            with Source(source, name, options) as opened, Source(labels.source) as other:
                if opened.path and opened.head(6) == other.head(6) == MAGIC:
                    both = [(one.name, one.head(-1)) for one in (opened, other)]
                    (name, source), *rest = zipped(both)
                    labels = labels if rest else None
        with Source(source, name, options) as opened:
            try:
                return _read(opened, options, labels)
            except InputError as error:
                asks = labels is None and opened.size <= MOST_READ_ON
                if not asks or not isinstance(source, str | os.PathLike | bytes):
                    raise
                error, *further = _asked(error, partial(Source, source, name), options, ())
                raise error.but(further=further) from error.__cause__


#: Bytes of a file that is read on after a question; its answers that are tried, and its further questions, at most.
MOST_READ_ON, _MOST_ANSWERS, _MOST_FURTHER = 8 << 20, 6, 3
#: The answer to a question about missing values, and the options of those that are part of one answer.
_DROPPED = file_format.REPAIRS["drop-missing"]
_LEAVE_OUT = errors.Reading(_DROPPED.label, {"repair": ("drop-missing",)})
_OF_BLANKS = [[{"repair": (key,)}] for key in ("drop-missing", "blank-no")]


def _asked(
    error: InputError,
    source: Callable[[ReadingOptions], Source],
    options: ReadingOptions,
    before: tuple[str, ...],
) -> list[InputError]:
    """Return a question, and what a file asks after it, as far as that is the same whichever answer this gets; rows with missing values of one answer are part of that."""
    answers = [answer for answer in error.answers if not answer.no_labels]
    before = (*before, error.what)
    if len(answers) > _MOST_ANSWERS or len(before) > _MOST_FURTHER:
        return [error]
    each: list[list[InputError]] = []
    for answered in map(options.answered, answers):
        each.append([])
        try:
            with source(answered) as opened:
                _read(opened, answered, None)
        except InputError as further:
            if further.answers and further.what not in before:
                each[-1] = _asked(further, source, answered, before)
        except errors.CalvizError:
            return [error]
    for them in (each, [[*map(_without_means, one)] for one in each]):
        of_all = [[(q.what, q.answers) for q in one] for one in them]
        same = [q for one in them[:1] for q in one if all((q.what, q.answers) in a for a in of_all)]
        if same:
            break
    own, ways = iter(each), []
    for way in error.readings:
        for q in () if way.no_labels else next(own):
            own_blanks = [a.options for a in q.answers] in _OF_BLANKS
            if own_blanks and q.what not in [s.what for s in same]:
                words = f"{q.answers[0].label} ({q.what.replace(' rows', '', 1)})"
                way = errors.Reading.joined([way, replace(q.answers[0], label=words)])
        ways.append(way)
    return [error.but(readings=ways), *same]


def _without_means(error: InputError) -> InputError:
    """The question without the means of its answers, which may depend on an answer before them."""
    means = r" \([^()]*\b(expected|mean confidence) .*\)$"
    readings = [replace(a, label=re.sub(means, "", a.label)) for a in error.readings]
    return error.but(readings=readings)


def _read_logs(logs: Logs, options: ReadingOptions) -> Loaded:
    with errors.in_file(logs.name):
        digest = logs.hasher()
        loaded = of_table(logs.table(), replace(options, confidence_pattern=None), name=logs.name)
    return replace(loaded, file=logs.name, size=logs.size, hash=digest)


def _read(opened: Source, options: ReadingOptions, labels: LabelFile | None) -> Loaded:
    try:
        digest = opened.hasher()
        entry = format_of(opened)
        table = entry.open(opened)
        if entry.answers is not None:  # it has used the pattern
            options = replace(options, confidence_pattern=None)
        if isinstance(options, ReadingForMap):
            table = with_verdicts_as_scores(
                table.for_map(), options.map_scores, options.map_classes
            )
            options = options.of_table(table)
        if labels is not None:
            table, options = join(table, opened.name, labels, options)
        facts = facts_in(table)
        if facts is not None:
            loaded = loaded_profile(profile_in(table, facts), _stem(opened.name))
        else:
            try:
                loaded = of_table(table, options, name=_stem(opened.name))
            except InputError as error:
                raise in_label_file(table, error) from None
    except InputError as error:
        raise error.in_file(opened.name) from None
    except MemoryError:
        raise InputError("there is not enough memory to read it", file=opened.name) from None
    named = replace(loaded, file=opened.name, size=opened.size, hash=digest)
    return replace(named, style=opened.style)


def of_table(table: Table, options: ReadingOptions, *, name: str) -> Loaded:
    """Recognise the columns of a table and build its predictions, which get the name `name` if there is only one model.

    Raises
    ------
    InputError, OptionError
        As in `read`, without a file name.
    """
    if options.answers is not None:
        return _of_answers(table, options, name)
    if table.questions is not None or table.cluster is not None or options.choices is not None:
        table, options = by_choices(table, options)
    if judges := judges_beside(table, options):
        return _of_judges(table, judges, name)
    rows, used = table, options
    try:
        if options.scores is not None or options.confidence_pattern is not None:
            rows, used = with_stated_confidence(table, options)
        used = with_array_names(rows, used)
        layout = _recognised(rows, used)
        made = {"": build(rows, layout, used, name)}
    except InputError as error:
        # Verdicts are no probabilities, and most of their rows have no label.
        judged = None if options.for_map else judge_columns.judged_rows(table, options)
        if judged is None:
            if error.repairs == (_DROPPED,) and None not in columns_of_judges(table):
                still = "which still count on the tab Judge, and for 'calviz judge FILE'"
                error = error.but(remedy=f"{error.remedy}, {still}")
            raise _by_fit(error, rows, used, name) from error.__cause__
        rows = judged.table
        read = build(rows, recognise(rows, judged.options), judged.options, name)
        found = replace(read.recognition, columns=table.names)
        notices = (*read.notices, *judged.notices)
        return replace(read, recognition=found, notices=notices, ways=judged.ways)
    for column in layout.may_weigh:
        with suppress(InputError):
            made[column] = build(rows, replace(layout, weight=column), used, name)
    weighed = [c for c, loaded in made.items() if c and loaded.first.weights is not None]
    if weighed:
        said = {c: f"weighted by '{short(c)}'" for c in weighed} | {"": "without weights"}
        ways = [
            errors.Reading(f"{text} ({_means(made[c])})", {"weight_column": c})
            for c, text in said.items()
        ]
        what = f"does {' or '.join(map(repr, map(short, weighed)))} say how much each row counts?"
        raise InputError(what, readings=ways)
    return made[""]


def _by_fit(error: InputError, table: Table, options: ReadingOptions, name: str) -> InputError:
    """Return the question which of two classes a score is of with what each answer means; the one that fits the rows better comes first."""
    names = [way.options.get("class_names", ()) for way in error.readings]
    told = any("scores" in way.options for way in error.readings)  # by words
    if told or len(names) != 2 or not names[0] or names[0] != names[1][::-1]:
        return error
    means: list[tuple[float, errors.Reading]] = []
    for way in error.readings:
        answered = options.answered(way).answered(_LEAVE_OUT)
        try:
            loaded = build(table, _recognised(table, answered), answered, name)
        except InputError:
            return error
        data = loaded.first
        assert isinstance(data, Predictions)
        loss = float(np.mean((data.probs[:, 1] - data.labels) ** 2))
        means.append((loss, replace(way, label=f"{way.label} ({_means(loaded)})")))
    return error.but(readings=[way for _, way in sorted(means, key=lambda each: each[0])])


def _means(loaded: Loaded) -> str:
    """Mean score and share of hits of the first model, by weight: of the second of two classes, else of the predicted one."""
    data = loaded.first
    if isinstance(data, ConfidencePredictions):
        parts = {"mean confidence": data.confidence, "accuracy": data.correct}
    elif data.n_classes == 2:
        parts = {"expected": data.probs[:, 1], "observed": data.labels == 1}
    else:
        parts = {"mean confidence": data.probs.max(1), "accuracy": data.predicted == data.labels}
    means = {
        name: float(np.average(each.astype(float), weights=data.weights))
        for name, each in parts.items()
    }
    decimals = decimals_for(*(100 * mean for mean in means.values()))
    of = f"{short(next(iter(loaded.models)))}: " * (len(loaded.models) > 1)
    return of + ", ".join(f"{name} {percent(mean, decimals)}" for name, mean in means.items())


def _of_answers(table: Table, options: ReadingOptions, name: str) -> Loaded:
    """Build a model of each signal of confidence in the most frequent answer to each question."""
    tables, options = by_question(table, options)
    read = {n: of_table(t, replace(options, scores=(n,)), name=n) for n, t in tables.items()}
    return _together(read, tuple(read), name)


def _of_judges(table: Table, judges: Mapping[str, ReadingOptions], name: str) -> Loaded:
    """Build a model of each judge."""
    read = {n: of_table(table, options, name=n) for n, options in judges.items()}
    columns = {n: one.recognition.scores for n, one in read.items()}
    found = _together(read, sum(columns.values(), ()), name)
    scores = tuple(ScoreColumns(c, (), "probabilities", 1, n) for n, c in columns.items())
    notices = tuple(dict.fromkeys(n for one in read.values() for n in one.notices))
    own = {n: each for one in read.values() for n, each in one.own_scores.items()}
    roles = replace(found.roles, scores=scores)
    return replace(found, notices=notices, own_scores=own, roles=roles)


def _together(read: Mapping[str, Loaded], scores: tuple[str, ...], name: str) -> Loaded:
    """Return what was read as models of one file, of the rows that all have."""
    first, made = next(iter(read.values())), {n: one.first for n, one in read.items()}
    rows = {n: np.arange(m.n) if m.file_rows is None else m.file_rows for n, m in made.items()}
    common = reduce(np.intersect1d, rows.values())
    models = {n: m.take(np.isin(rows[n], common)) for n, m in made.items()}
    found = replace(first.recognition, scores=scores, models=tuple(read), rows=common.size)
    return replace(first, file=name, models=models, recognition=found)


def _recognised(table: Table, options: ReadingOptions) -> ColumnRoles:
    """Recognise by the first rows; if these are of one class or cannot be read, by rows from the whole file, which may be sorted."""
    try:
        layout = recognise(table, options)
    except InputError:
        wider = _with_rows_of_all(table)
        if wider is None:
            raise
        return recognise(wider, options)
    label = None if layout.label is None else table[layout.label]
    if label is None or label.width is not None:
        return layout
    width = max((s.width for s in layout.scores), default=2)
    seen, most = len(label.levels), max(2, width)
    if seen >= most or (seen > 1 and width > _FEW_CLASSES):
        return layout
    wider = _with_rows_of_all(table)
    return layout if wider is None else recognise(wider, options)


def _with_rows_of_all(table: Table) -> Table | None:
    """Return the table with rows from the whole file, evenly spaced, in place of the first ones.

    None if the first rows are all rows, or if the table is very wide or cannot be read to its end.
    """
    single = [c for c in table.columns if c.width is None and c.type != "other"]
    # Tables with more columns than this are recognised by their first rows only.
    if len(table.columns) > 512 or not single or len(single[0].head) < SAMPLE_ROWS:
        return None
    try:
        fetched = table.singles()
    except InputError as error:
        if error.repairs and error.row is None:  # lines that are no rows, whatever the columns are
            raise
        return None
    lengths = {len(values) for values in fetched.values()}
    if len(lengths) != 1 or (rows := lengths.pop()) <= SAMPLE_ROWS:
        return None
    at = np.linspace(0, rows - 1, SAMPLE_ROWS).astype(np.int64)
    other = copy.copy(table)
    other.columns = tuple(
        replace(c, sample=_as_in_head(fetched[c.name], at, c)) if c.name in fetched else c
        for c in table.columns
    )
    other.__post_init__()
    return other


def options_that_keep(read: ColumnRoles, table: Table) -> dict[str, Any]:
    """The options that keep what was read as the label, and as the verdicts of a judge, where another column gets another role."""
    judged = [s.columns for s in read.scores if (*s.columns, read.label) == columns_of_judges(table)]  # fmt: skip
    kept = {"label": read.label, "scores": judged[0] if judged else None}
    return {key: value for key, value in kept.items() if value}


def cells_of(table: Table, rows: Sequence[int], names: list[str]) -> dict[str, dict[int, str]]:
    """What rows of the whole file hold in columns; nothing if it cannot be read to its end."""
    try:
        found = table.fetch((), names).columns
    except InputError:
        return {}
    texts = {name: Factor.of(values).values() for name, values in found.items()}
    return {name: {r: t[r] for r in rows if r < len(t)} for name, t in texts.items()}


def _as_in_head(values: Any, rows: npt.NDArray[np.int64], column: file_format.Column) -> AnyArray:
    """Some rows of fetched values, in the form of the first rows of their column."""
    if isinstance(values, Factor):
        texts = np.array(values.levels, dtype=object)[values.codes[rows]]
        if column.head.dtype == bool:
            return np.array([text.casefold() in ("true", "1") for text in texts])
        return texts
    return np.asarray(values)[rows]


def load(
    path: str | os.PathLike[str],
    *,
    model: str | None = None,
    labels: str | os.PathLike[str] | None = None,
    on: str | None = None,
    **options: Any,
) -> Dataset:
    """Read one set of predictions from a file.

    Parameters
    ----------
    path : str or PathLike
        A file, or a folder of logs of language models.
    model : str, optional
        Which model, if the file holds several.
    labels : str or PathLike, optional
        Another file that holds the labels of the same rows.
    on : str, optional
        The column that identifies the rows in both files.
    **options
        Fields of `ReadingOptions` (``label="y"``, ``kind="logits"``, ``repair=["renormalise"]``).

    Returns
    -------
    Predictions or ConfidencePredictions

    Raises
    ------
    InputError, OptionError
        As in `read`; also if the file holds several models and none was chosen.
    """
    if on is not None and labels is None:
        raise OptionError("'on' names the identifier of two files: give the file of labels too.")
    other = None if labels is None else LabelFile(labels, on)
    try:
        return one_model(read(path, options=file_format.options_of(options), labels=other), model)
    except InputError as error:
        raise error.in_code() from error.__cause__


def one_model(loaded: Loaded, model: str | None) -> Dataset:
    """Return the chosen model of a file, or its only one; raise OptionError if that is ambiguous."""
    models = loaded.models
    if model is None and len(models) > 1:
        raise OptionError(f"the file holds several models; choose one of: {', '.join(models)}.")
    if model is not None and model not in models:
        raise OptionError(f"there is no model '{model}'; {known_names(model, models)}.")
    return next(iter(models.values())) if model is None else models[model]


def _stem(name: str) -> str:
    return Path(name.removesuffix(".gz")).stem or name


# ---- The sample data sets that ship with calviz.


@dataclass(frozen=True)
class SampleSet:
    """One file of ``sample_data``.

    Attributes
    ----------
    key : str
        Stable name.
    title : str
        Title on screen.
    description : str
        What the data set holds and shows, in two or three sentences.
    file : str
        File name.
    """

    key: str
    title: str
    description: str
    file: str


#: All sample sets; the app opens with the first one.
SAMPLES: tuple[SampleSet, ...] = (
    SampleSet(
        "digits",
        "Handwritten digits, 3 models",
        "Ten classes, 6,000 held-out pictures, clean and degraded in four ways. An MLP trained to the "
        "end on clean pictures is overconfident, a strongly regularised logistic regression is "
        "underconfident, extra trees with a fitted temperature are well calibrated.",
        "digits.parquet",
    ),
    SampleSet(
        "breast_cancer",
        "Breast cancer, 5 models",
        "Two classes, 569 tumours, cross-validated predictions of naive Bayes, a support vector "
        "machine's margin, a random forest, logistic regression and boosted trees; the size of the "
        "tumour as a group.",
        "breast_cancer.parquet",
    ),
    SampleSet(
        "simulated_binary",
        "Simulated, 2 classes",
        "The two synthetic models of Zhang et al. 2020, appendix E. The true calibration error of "
        "the positive class is 7.44 % (less calibrated) and 2.35 % (better calibrated).",
        "simulated_binary.parquet",
    ),
    SampleSet(
        "simulated_100_classes",
        "Simulated, 100 classes",
        "Labels drawn from known probabilities, which are then reported too sharp. The true "
        "top-label calibration error is 10.97 %, and a temperature of 1.2 mends it exactly.",
        "simulated_100_classes.parquet",
    ),
)


def project_root() -> Path:
    """Return the folder that holds ``app.py``, ``pages`` and ``sample_data``.

    This is the root of the repository in a checkout, and ``calviz/_app`` in an installed wheel.
    """
    package = Path(__file__).resolve().parents[1]
    inside = package / "_app"
    return inside if inside.is_dir() else package.parent


def load_sample(key: str | None = None) -> Loaded:
    """Read a sample set in the same way as a user's file.

    Parameters
    ----------
    key : str, optional
        Key of one of the `SAMPLES`; the first if left out.

    Raises
    ------
    OptionError
        If there is no such set.
    InputError
        If its file is missing.
    """
    samples = {sample.key: sample for sample in SAMPLES}
    chosen = SAMPLES[0] if key is None else samples.get(key)
    if chosen is None:
        raise OptionError(f"there is no sample set '{key}'; {known_names(key, samples)}.")
    path = project_root() / "sample_data" / chosen.file
    if not path.is_file():
        raise InputError(
            "the sample file is missing",
            file=chosen.file,
            remedy="make it again with 'python sample_data/make.py'",
        )
    return read(path)


def sample(key: str = "digits", model: str | None = None) -> Dataset:
    """Return one of the sample sets that ship with calviz (called as ``calviz.sample("digits", "MLP")``).

    Parameters
    ----------
    key : str
        "digits", "breast_cancer", "simulated_binary" or "simulated_100_classes".
    model : str, optional
        Which of its models; the first if left out.

    Returns
    -------
    Predictions or ConfidencePredictions

    Raises
    ------
    OptionError
        If there is no such set or model.

    Examples
    --------
    >>> import calviz
    >>> calviz.sample("digits").split_names
    ('test', 'calibration')
    """
    loaded = load_sample(key)
    return loaded.first if model is None else one_model(loaded, model)
