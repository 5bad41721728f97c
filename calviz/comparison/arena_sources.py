"""The input of an arena: files and folders of predictions, HDF5 files, published results, and saved arenas."""

from __future__ import annotations

import itertools
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path, PurePath
from typing import Any, Self

import numpy as np

from calviz.comparison.arena_results import SCORES, Experiment, MethodScore, ResultTable
from calviz.core import errors
from calviz.core.blocks import AnyArray, Factor, FloatArray
from calviz.core.entry_specs import UNCALIBRATED
from calviz.core.errors import InputError, OptionError, OutputError, shortened
from calviz.core.predictions import Dataset, Predictions
from calviz.data import read
from calviz.data.format import FORMATS, ReadingOptions, Source, Table, format_of

#: Benchmark of files that do not name one.
FILES = "files"
SUFFIXES = (".h5", ".hdf5", ".hdf")
#: Suffixes of files that are read in a folder, in addition to those of the formats.
_OWN = (".json", *SUFFIXES)


@dataclass(frozen=True, eq=False)
class ArenaInput:
    """Experiments to run, or results.

    Attributes
    ----------
    playable : tuple of Playable
    results : tuple of (Experiment, list of MethodScore)
    baseline : str or None
        Name of the method without calibration.
    notes : tuple of str
    """

    playable: tuple[Playable, ...] = ()
    results: tuple[tuple[Experiment, list[MethodScore]], ...] = ()
    baseline: str | None = UNCALIBRATED
    notes: tuple[str, ...] = ()


def find(
    paths: Iterable[str | os.PathLike[str]],
    reading: ReadingOptions | None = None,
    *,
    state: str | os.PathLike[str] | None = None,
) -> ArenaInput:
    """Search files and folders for predictions or results.

    If files come from several folders, the folder of a file is the name of its data set (except directly in a folder that was
    given); otherwise, each file is a data set.

    Parameters
    ----------
    paths : iterable of path
    reading : ReadingOptions, optional
        Options for reading files of predictions.
    state : path, optional
        File that the run saves its results in; it is skipped in folders.

    Raises
    ------
    InputError
        If there is nothing, or if there are both predictions and results.
    """
    options = reading or ReadingOptions()
    playable: list[Playable] = []
    results: list[tuple[Experiment, list[MethodScore]]] = []
    result_files: list[str] = []
    baselines: dict[str | None, None] = {}
    lists: list[str] = []
    # Each file once, with the folder in which it was found; the state file only if it was named itself.
    files = [
        (file, root)
        for file, root in dict.fromkeys(_files([Path(path) for path in paths]))
        if root is None or state is None or errors.real_path(file) != errors.real_path(state)
    ]
    by_folder = len({file.parent for file, _ in files if file.suffix.lower() not in _OWN}) > 1
    for file, root in files:
        source = Source(file)
        if source.head(4096).startswith(SIGNATURE) or file.suffix.lower() in SUFFIXES:
            benchmark, members = members_of(file)
            playable += [Playable(*names, path=file, benchmark=benchmark) for names in members]
        elif (read_already := results_in(source)) is not None:
            more, baseline = read_already
            if more:
                baselines.setdefault(baseline)
                results += more
                result_files.append(file.name)
            else:
                lists.append(file.name)
        elif root is not None and file.suffix.lower() == ".json":
            continue  # some other file of the folder
        else:
            stem = _stem(file)
            below = by_folder and (root is None or file.parent != root)
            dataset = file.parent.name if below else stem
            playable.append(Playable(dataset, stem, path=file, reading=options))
    if playable and results:
        raise InputError(
            f"there are both predictions and results ('{result_files[0]}')",
            remedy="rank the predictions alone, with --state FILE; then give FILE and the results together",
        )
    if not playable and not results:
        raise InputError(
            f"{lists[0]} lists experiments and holds no results" if lists else "there are no files",
            remedy="name files of predictions, a folder of them, HDF5 files, or results (METHOD.csv)",
        )
    if len(baselines) > 1:
        raise InputError(
            "the results come from arenas with different methods", remedy="give one arena at a time"
        )
    notes = (f"{', '.join(sorted(lists))}: no results, left out.",) if lists else ()
    return ArenaInput(tuple(playable), tuple(results), next(iter(baselines), UNCALIBRATED), notes)


def _files(paths: Sequence[Path]) -> Iterator[tuple[Path, Path | None]]:
    """Yield files with the folder they were found in; in a folder, only files with readable suffixes."""
    endings = (*(s for f in FORMATS for s in f.suffixes), *_OWN)
    for path in paths:
        if not path.is_dir():
            yield path, None
            continue
        inside = sorted(
            f
            for f in path.rglob("*")
            if f.is_file()
            and f.name.lower().endswith(endings)
            and not any(part.startswith(".") for part in f.relative_to(path).parts)
        )
        if not inside:
            raise InputError(
                "there are no files in this folder that can be read",
                file=path.name,
                remedy="see 'calviz formats'",
            )
        yield from ((file, path) for file in inside)


def _stem(file: Path) -> str:
    return Path(file.name.removesuffix(".gz")).stem or file.name


def results_in(
    source: Source, benchmark: str | None = None
) -> tuple[list[tuple[Experiment, list[MethodScore]]], str | None] | None:
    """Return the results in a file, and its name of the method without calibration; None if it is not a file of results.

    Parameters
    ----------
    source : Source
    benchmark : str, optional
        Benchmark of results that do not name one; if left out, the folder of the file.
    """
    head = source.head(4096)
    # It starts like a state file, or like the JSON of a finished arena.
    text = head.decode("utf-8", "replace").lstrip("\ufeff \r\n\t")
    if text.startswith(MARK) or (text.startswith("{") and JSON_MARK in text):
        return read_saved(source)
    of_calarena = head.removeprefix(b"\xef\xbb\xbf").startswith(_FIRST)
    return read_results(source, benchmark) if of_calarena else None


# ---- Sources of experiments


@dataclass(frozen=True)
class Playable:
    """A source of experiments that `play_all` can run: predictions in memory, a file of predictions, or an experiment of an HDF5 file.

    Attributes
    ----------
    dataset, model : str
        Names; that of the model if the source has a single one.
    data : Predictions or ConfidencePredictions, optional
        Predictions in memory.
    path : Path, optional
        The file, otherwise.
    benchmark : str
    reading : ReadingOptions, optional
        How a file of predictions is read; None for an HDF5 file.
    """

    dataset: str
    model: str
    data: Dataset | None = None
    path: Path | None = None
    benchmark: str = FILES
    reading: ReadingOptions | None = None

    @property
    def name(self) -> str:
        """Name for messages."""
        alone = self.reading is not None and self.dataset == self.model
        return self.model if alone or self.path is None else f"{self.dataset}/{self.model}"

    def models(self) -> dict[str, Dataset]:
        """Read the predictions of each model, by name."""
        if self.path is None:
            return {self.model: self.data} if self.data is not None else {}
        if self.reading is None:
            return {self.model: read_member(self.path, self.dataset, self.model)}
        models = read(self.path, options=self.reading).models
        return {self.model if len(models) == 1 else name: data for name, data in models.items()}


# ---- Results of CalArena
#
# Columns: ``dataset, model, cal_size, test_size``, ``n_classes`` where there are more than two, and ``METHOD_brier``,
# ``METHOD_logloss``, ``METHOD_time`` (arXiv 2605.30188).


#: CalArena's name of the method without calibration.
BASELINE = "Base-model"
#: First columns of every file of results and every list of experiments.
KEYS = ("dataset", "model", "cal_size", "test_size")
#: Suffixes of a method's columns, by score key.
ENDS = {"brier": "_brier", "nll": "_logloss"}
_TIME, _CLASSES = "_time", "n_classes"
#: How a file of results, or a list of experiments, starts.
_FIRST = ",".join(KEYS[:2]).encode()


def read_results(
    source: Source, benchmark: str | None = None
) -> tuple[list[tuple[Experiment, list[MethodScore]]], str]:
    """Read a file of results.

    Parameters
    ----------
    source : Source
    benchmark : str, optional
        If left out, the name of the folder.

    Returns
    -------
    results : list of (Experiment, list of MethodScore)
        Empty for a list of experiments, which holds no results.
    baseline : str
        Name of the method without calibration.

    Raises
    ------
    InputError
        If columns are missing, or a size is not a whole number.
    """
    with errors.in_file(source.name):
        return _results(format_of(source).open(source), benchmark or _folder(source)), BASELINE


def _folder(source: Source) -> str:
    folder = source.path.absolute().parent.name if source.path is not None else ""
    return folder or PurePath(source.name).stem


def _results(table: Table, benchmark: str) -> list[tuple[Experiment, list[MethodScore]]]:
    if missing := [key for key in KEYS if key not in table]:
        raise InputError(
            f"results need the column '{missing[0]}'",
            remedy=f"add the column: results begin with {', '.join(KEYS)}",
        )
    names = [n.removesuffix(ENDS["brier"]) for n in table.names if n.endswith(ENDS["brier"])]
    columns = [*KEYS, *([_CLASSES] if _CLASSES in table else [])]
    for name in names:
        if name + ENDS["nll"] not in table:
            raise InputError(f"'{name}' has no column '{name}{ENDS['nll']}'")
        columns += [name + end for end in ENDS.values()]
        columns += [name + _TIME] if name + _TIME in table else []
    if not names:
        return []
    fetched = table.fetch((), columns).columns
    texts = {key: _texts(fetched[key]) for key in KEYS[:2]}
    sizes = {key: _counts(fetched[key], key) for key in columns[2:] if key in (*KEYS, _CLASSES)}
    classes = sizes.get(_CLASSES, [2] * len(texts["dataset"]))
    scores = {c: _numbers(fetched[c], c) for c in columns if c not in (*KEYS, _CLASSES)}
    results = []
    for i, (dataset, model) in enumerate(zip(texts["dataset"], texts["model"], strict=True)):
        experiment = Experiment(
            benchmark, dataset, model, sizes["cal_size"][i], sizes["test_size"][i], classes[i]
        )
        method_scores = [
            MethodScore(
                name,
                {key: float(scores[name + end][i]) for key, end in ENDS.items()},
                float(scores[name + _TIME][i]) if name + _TIME in scores else math.nan,
            )
            for name in names
        ]
        results.append((experiment, method_scores))
    return results


def _texts(column: object) -> list[str]:
    values = column.values() if isinstance(column, Factor) else np.asarray(column)
    return [str(v) for v in values]


def _numbers(column: object, name: str) -> FloatArray:
    if not isinstance(column, Factor):
        return np.asarray(column, dtype=np.float64)
    try:
        return np.array([float(v) if v else math.nan for v in column.values()])
    except ValueError:
        raise InputError("the scores of a method must be numbers", column=name) from None


def _counts(column: object, name: str) -> list[int]:
    numbers = _numbers(column, name)
    wrong = ~(np.isfinite(numbers) & (numbers >= 1) & (numbers == np.round(numbers)))
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InputError(
            f"must be a whole number from 1, got {numbers[row]:g}", row=row + 1, column=name
        )
    return [int(v) for v in numbers]


# ---- HDF5 files of CalArena
#
# ``DATASET/MODEL/{probas_cal, labels_cal, probas_test, labels_test}``; one-dimensional probabilities are P(class 1) of two classes.
# The attributes ``source`` and ``problem_type`` of the file name the benchmark (arXiv 2605.30188).


SIGNATURE = b"\x89HDF\r\n\x1a\n"
#: Splits, by the suffix of their arrays.
SPLITS = {"cal": "calibration", "test": "test"}


def members_of(path: Path) -> tuple[str, tuple[tuple[str, str], ...]]:
    """Return the benchmark of a file, and the data set and model of each experiment.

    Raises
    ------
    InputError
        If h5py is not installed, or the file is damaged or has another layout.
    """
    with _opened(path) as (h5py, file):
        names: list[tuple[str, str]] = []
        for dataset in file:
            group = _local(h5py, file, dataset)
            if not isinstance(group, h5py.Group):
                raise InputError(
                    f"'{shortened(dataset)}' is not a folder of models",
                    remedy="the layout is DATASET/MODEL/probas_cal, labels_cal, probas_test, labels_test",
                )
            names += [
                (dataset, model) for model in itertools.islice(group, errors.MAX_ARRAYS.value + 1)
            ]
            errors.MAX_ARRAYS.check(len(names), f"it has {len(names):,} or more experiments")
        if not names:
            raise InputError("there are no experiments in it")
        parts = [_text(file.attrs.get(key)) for key in ("source", "problem_type")]
        return "-".join(part.lower() for part in parts if part) or path.stem, tuple(names)


def read_member(path: Path, dataset: str, model: str) -> Predictions:
    """Read the predictions of one experiment, with the splits "calibration" and "test"."""
    with _opened(path) as (h5py, file):
        where = f"{dataset}/{model}"
        group = _local(h5py, _local(h5py, file, dataset), model)
        if not isinstance(group, h5py.Group):
            raise InputError(f"'{shortened(where)}' is not a group of arrays")
        probs, labels, splits = [], [], []
        for end, split in SPLITS.items():
            p = _array(h5py, group, f"probas_{end}", where)
            y = _array(h5py, group, f"labels_{end}", where)
            if p.ndim not in (1, 2) or y.ndim != 1 or p.shape[:1] != y.shape or not y.size:
                raise InputError(
                    f"probas_{end} of shape {p.shape} and labels_{end} of shape {y.shape} do not go together",
                    column=where,
                )
            if y.dtype.kind == "f" and not (y == np.round(y)).all():
                raise InputError(f"labels_{end} must be whole numbers", column=where)
            probs.append(p)
            labels.append(y.astype(np.intp))
            splits += [split] * y.size
        if probs[0].shape[1:] != probs[1].shape[1:]:
            raise InputError("probas_cal and probas_test have different classes", column=where)
        return Predictions(
            probs=np.concatenate(probs),
            labels=np.concatenate(labels),
            splits=Factor.of(splits),
            name=model,
        )


@contextmanager
def _opened(path: Path) -> Iterator[tuple[Any, Any]]:
    try:
        import h5py
    except ImportError:
        raise InputError(
            "HDF5 files need h5py, which is not installed",
            file=path.name,
            remedy="run: pip install 'calviz[hdf5]'",
        ) from None
    try:
        size = path.stat().st_size
        errors.MAX_FILE.check(size, f"the file is {errors.size_text(size)}")
        with h5py.File(path, "r", locking=False) as file:
            yield h5py, file
    except InputError as error:
        raise error.in_file(path.name) from None
    except MemoryError:
        raise InputError("there is not enough memory to read it", file=path.name) from None
    except (OSError, RuntimeError, KeyError, ValueError, TypeError, UnicodeError, OverflowError):
        # The error messages of the library are about its internals.
        raise InputError(
            "the HDF5 file is damaged or incomplete", file=path.name, remedy="copy it again"
        ) from None


def _local(h5py: Any, group: Any, name: str) -> Any:
    """Return a member of the file itself; links are refused."""
    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
        raise InputError(
            f"'{shortened(name)}' is a link", remedy="copy the data set into this file"
        )
    return group[name]


def _array(h5py: Any, group: Any, name: str, where: str) -> AnyArray:
    if name not in group:
        raise InputError(f"there is no array '{name}'", column=where)
    data = _local(h5py, group, name)
    if not isinstance(data, h5py.Dataset) or data.dtype.kind not in "fiub" or data.shape is None:
        raise InputError(f"'{name}' is not an array of numbers", column=where)
    if data.external or data.is_virtual:
        raise InputError(
            f"'{name}' is stored in another file",
            column=where,
            remedy="copy the data set into this file",
        )
    size = int(np.prod(data.shape, dtype=object)) * data.dtype.itemsize
    errors.MAX_ARRAY.check(size, f"'{name}' of {shortened(where)} has {errors.size_text(size)}")
    return np.asarray(data[()])


def _text(value: Any) -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return shortened(text) if isinstance(text, str) else ""


# ---- Saved arenas: a state file with one experiment per line, written as results come, and the JSON of a finished arena


#: Start of the first line of a state file, and text that marks the JSON of a finished arena.
MARK, JSON_MARK = '{"calviz_arena": ', '"format": "arena"'
VERSION = 1
_HEAD = f"{MARK}{VERSION}}}\n".encode()

Key = tuple[str, str]


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
        errors.check_place(target, f"--state {path}")
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
            raise _unwritable(target, error) from None
        state = cls(target)
        with errors.in_file(target.name):
            for _, scores, keys in _lines(Source(target)):
                state.done |= dict(zip(keys, scores, strict=True))
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
            raise _unwritable(self.path, error) from None


def _unwritable(path: Path, error: OSError) -> OutputError:
    reason = (error.strerror or str(error)).lower()
    return OutputError(f"{path.name}: cannot be written ({reason}).")


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
    with errors.in_file(source.name):
        if source.head(len(MARK)).decode("utf-8", "replace") == MARK:
            return [(e, scores) for e, scores, _ in _lines(source)], UNCALIBRATED
        return _document(source)


def _lines(source: Source) -> Iterator[tuple[Experiment, list[MethodScore], list[Key]]]:
    text = _content(source)
    head, *lines = text.splitlines() or [""]
    if not head.startswith(MARK):
        raise InputError("this file is not a saved arena", remedy="give --state a file of its own")
    whole = text.endswith("\n")
    for number, line in enumerate(lines, start=2):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            if number == len(lines) + 1 and not whole:
                return  # incomplete because of an interruption
            raise InputError("the line is damaged", line=number, remedy="remove it") from None
        experiment, scores = _entry(entry, line=number)
        keys = [(str(r.get("digest")), str(r.get("as"))) for r in entry["results"]]
        yield experiment, scores, keys


def _document(source: Source) -> tuple[list[tuple[Experiment, list[MethodScore]]], str | None]:
    try:
        table = json.loads(_content(source))["arena"]
        entries, baseline = table["experiments"], table["baseline"]
    except (ValueError, RecursionError, KeyError, TypeError):
        entries, baseline = None, None
    if not isinstance(entries, list) or not (baseline is None or isinstance(baseline, str)):
        raise InputError(
            "this is not an arena written by calviz", remedy="write one with 'calviz arena --json'"
        )
    return [_entry(entry) for entry in entries], baseline


def _content(source: Source) -> str:
    errors.MAX_JSON.check(source.size, f"the file is {errors.MAX_JSON.written(source.size)}")
    with source.open() as stream:
        try:
            return stream.read().decode("utf-8-sig")
        except UnicodeDecodeError:
            raise InputError("the file is not text in UTF-8", file=source.name) from None


def _entry(entry: Any, *, line: int | None = None) -> tuple[Experiment, list[MethodScore]]:
    try:
        facts = entry["experiment"]
        experiment = Experiment(
            *(_of_type(str, facts[key]) for key in ("benchmark", "dataset", "model")),
            *(_of_type(int, facts[key]) for key in ("rows", "judged", "classes")),
        )
        return experiment, [_score(result) for result in _of_type(list, entry["results"])]
    except (KeyError, TypeError, ValueError):
        raise InputError("an experiment is damaged", line=line) from None


def _score(result: Any) -> MethodScore:
    reason = result["reason"]
    return MethodScore(
        _of_type(str, result["method"]),
        {key: _number(result.get(key)) for key in SCORES},
        _number(result.get("seconds")),
        None if reason is None else _of_type(str, reason),
    )


def _of_type(kind: Any, value: Any) -> Any:
    """Return a value of this type; raise TypeError for others, and for a number below 0."""
    if not isinstance(value, kind) or isinstance(value, bool) or (kind is int and value < 0):
        raise TypeError
    return value


def _number(value: Any) -> float:
    return math.nan if value is None else float(_of_type(int | float | str, value))
