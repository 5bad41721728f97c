"""Input of an arena: files and folders of predictions, HDF5 files, published results, and saved arenas."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from calviz.arena import hdf5
from calviz.arena.calarena import looks_like_results, read_results
from calviz.arena.saved_arenas import looks_saved, read_saved
from calviz.core.atomic_files import real_path
from calviz.core.errors import InputError
from calviz.core.predictions import Dataset
from calviz.data import read
from calviz.data.file_bytes import Source
from calviz.data.format import FORMATS
from calviz.data.loaded import ReadingOptions
from calviz.results.arena import Experiment, MethodScore
from calviz.specs.recalibrator import UNCALIBRATED

#: Benchmark of files that do not name one.
FILES = "files"
#: Suffixes of files that are read in a folder, in addition to those of the formats.
_OWN = (".json", *hdf5.SUFFIXES)


@dataclass(frozen=True)
class ModelInFile:
    """One model in a file.

    Attributes
    ----------
    data : Predictions or ConfidencePredictions
    benchmark, dataset, model : str
    """

    data: Dataset
    benchmark: str
    dataset: str
    model: str


@dataclass(frozen=True)
class PredictionFile:
    """A file of predictions of one or more models.

    Attributes
    ----------
    path : Path
    dataset : str
        Name of the data set.
    model : str
        Name of the model, if the file has a single one.
    reading : ReadingOptions
    """

    path: Path
    dataset: str
    model: str
    reading: ReadingOptions = field(default_factory=ReadingOptions)

    @property
    def name(self) -> str:
        """Name for messages."""
        return self.model if self.dataset == self.model else f"{self.dataset}/{self.model}"

    def members(self) -> Iterator[ModelInFile]:
        """Read the models of the file."""
        models = read(self.path, options=self.reading).models
        for model, data in models.items():
            yield ModelInFile(data, FILES, self.dataset, self.model if len(models) == 1 else model)


@dataclass(frozen=True)
class Hdf5Member:
    """One experiment of an HDF5 file."""

    path: Path
    benchmark: str
    dataset: str
    model: str

    @property
    def name(self) -> str:
        """Name for messages."""
        return f"{self.dataset}/{self.model}"

    def members(self) -> Iterator[ModelInFile]:
        """Yield the single model."""
        data = hdf5.read_member(self.path, self.dataset, self.model)
        yield ModelInFile(data, self.benchmark, self.dataset, self.model)


@dataclass(frozen=True)
class LoadedSource:
    """Predictions in memory."""

    dataset: str
    model: str
    data: Dataset

    @property
    def name(self) -> str:
        """Name for messages."""
        return self.model

    def members(self) -> Iterator[ModelInFile]:
        """Yield the single model."""
        yield ModelInFile(self.data, FILES, self.dataset, self.model)


#: A source of experiments that `run_experiments` can run.
Playable = PredictionFile | Hdf5Member | LoadedSource


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
    files = _files_but_state(paths, state)
    by_folder = len({file.parent for file, _ in files if file.suffix.lower() not in _OWN}) > 1
    for file, root in files:
        source = Source(file)
        head = source.head(4096)
        if head.startswith(hdf5.SIGNATURE) or file.suffix.lower() in hdf5.SUFFIXES:
            benchmark, members = hdf5.members(file)
            playable += [Hdf5Member(file, benchmark, *names) for names in members]
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
            playable.append(
                PredictionFile(file, file.parent.name if below else stem, stem, options)
            )
    if playable and results:
        raise InputError(
            f"there are both predictions and results ('{result_files[0]}')",
            remedy="rank the predictions alone, with --state FILE; then give FILE and the results together",
        )
    if not playable and not results:
        raise _nothing_found(lists)
    if len(baselines) > 1:
        raise InputError(
            "the results come from arenas with different methods", remedy="give one arena at a time"
        )
    notes = (f"{', '.join(sorted(lists))}: no results, left out.",) if lists else ()
    return ArenaInput(tuple(playable), tuple(results), next(iter(baselines), UNCALIBRATED), notes)


def _files_but_state(
    paths: Iterable[str | os.PathLike[str]], state: str | os.PathLike[str] | None
) -> list[tuple[Path, Path | None]]:
    """Return each file once, with the folder in which it was found; the state file only if it was named itself."""
    return [
        (file, root)
        for file, root in dict.fromkeys(_files([Path(path) for path in paths]))
        if root is None or state is None or real_path(file) != real_path(state)
    ]


def _nothing_found(lists: Sequence[str]) -> InputError:
    """Return the error if there are neither predictions nor results; `lists` are the names of files that only list experiments."""
    return InputError(
        f"{lists[0]} lists experiments and holds no results" if lists else "there are no files",
        remedy="name files of predictions, a folder of them, HDF5 files, or results (METHOD.csv)",
    )


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
    if looks_saved(head):
        return read_saved(source)
    return read_results(source, benchmark) if looks_like_results(head) else None


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
