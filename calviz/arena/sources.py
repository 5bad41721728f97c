"""What there is to play: files of predictions, folders of them, HDF5, published results, and arenas that were kept."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from calviz.arena import hdf5
from calviz.arena.calarena import looks_like_results, read_results
from calviz.arena.saved import looks_saved, read_saved
from calviz.core.errors import InputError
from calviz.core.predictions import Dataset
from calviz.data import read
from calviz.data.file_bytes import Source
from calviz.data.format import FORMATS
from calviz.data.loaded import ReadingOptions
from calviz.results.arena import Experiment, Played
from calviz.specs.recalibrator import UNCALIBRATED

#: The benchmark that files belong to which name none.
FILES = "files"
#: Endings of files that are looked at in a folder, besides those of the formats.
_OWN = (".json", *hdf5.SUFFIXES)


@dataclass(frozen=True)
class Member:
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
    """A file of predictions, of one model or more.

    Attributes
    ----------
    path : Path
    dataset : str
        What its rows are called.
    model : str
        What its model is called, where there is one.
    reading : ReadingOptions
    """

    path: Path
    dataset: str
    model: str
    reading: ReadingOptions = field(default_factory=ReadingOptions)

    @property
    def name(self) -> str:
        """What to call it."""
        return self.model if self.dataset == self.model else f"{self.dataset}/{self.model}"

    def members(self) -> Iterator[Member]:
        """Its models."""
        models = read(self.path, options=self.reading).models
        for model, data in models.items():
            yield Member(data, FILES, self.dataset, self.model if len(models) == 1 else model)


@dataclass(frozen=True)
class Hdf5Member:
    """One experiment of an HDF5 file."""

    path: Path
    benchmark: str
    dataset: str
    model: str

    @property
    def name(self) -> str:
        """What to call it."""
        return f"{self.dataset}/{self.model}"

    def members(self) -> Iterator[Member]:
        """The one model."""
        data = hdf5.read_member(self.path, self.dataset, self.model)
        yield Member(data, self.benchmark, self.dataset, self.model)


@dataclass(frozen=True)
class Loaded:
    """Predictions that are open already."""

    dataset: str
    model: str
    data: Dataset

    @property
    def name(self) -> str:
        """What to call it."""
        return self.model

    def members(self) -> Iterator[Member]:
        """The one model."""
        yield Member(self.data, FILES, self.dataset, self.model)


#: Something that `run` can carry out.
Playable = PredictionFile | Hdf5Member | Loaded


@dataclass(frozen=True, eq=False)
class Found:
    """What was found: experiments to carry out, or results.

    Attributes
    ----------
    playable : tuple of Playable
    results : tuple of (Experiment, list of Played)
    baseline : str or None
        What the method is called that does nothing.
    notes : tuple of str
    """

    playable: tuple[Playable, ...] = ()
    results: tuple[tuple[Experiment, list[Played]], ...] = ()
    baseline: str | None = UNCALIBRATED
    notes: tuple[str, ...] = ()


def find(paths: Iterable[str | os.PathLike[str]], reading: ReadingOptions | None = None) -> Found:
    """Look at files and folders, and tell predictions from results.

    A data set is named by the folder of a file that lies in a folder of its own below one that is given, or where files of several
    folders are given; else each file is one.

    Parameters
    ----------
    paths : iterable of path
    reading : ReadingOptions, optional
        How files of predictions are read.

    Raises
    ------
    InputError
        Where there is nothing, or results come together with predictions.
    """
    options = reading or ReadingOptions()
    playable: list[Playable] = []
    results: list[tuple[Experiment, list[Played]]] = []
    baselines: dict[str | None, None] = {}
    lists: list[str] = []
    given = [Path(path) for path in paths]
    files = list(dict.fromkeys(_files(given)))
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
            else:
                lists.append(file.name)
        elif root is not None and file.suffix.lower() == ".json":
            continue  # something else that lies in the folder
        else:
            stem = _stem(file)
            below = by_folder and (root is None or file.parent != root)
            playable.append(
                PredictionFile(file, file.parent.name if below else stem, stem, options)
            )
    if playable and results:
        raise InputError(
            "there are predictions and results",
            remedy="give one kind at a time; keep both with --state",
        )
    if not playable and not results:
        what = (
            f"{lists[0]} lists experiments and holds no results" if lists else "there are no files"
        )
        raise InputError(
            what,
            remedy="name files of predictions, a folder of them, HDF5 files, or results (METHOD.csv)",
        )
    if len(baselines) > 1:
        raise InputError(
            "the results come from arenas with different methods", remedy="give one arena at a time"
        )
    notes = (f"{', '.join(sorted(lists))}: no results, left out.",) if lists else ()
    return Found(tuple(playable), tuple(results), next(iter(baselines), UNCALIBRATED), notes)


def results_in(
    source: Source, benchmark: str | None = None
) -> tuple[list[tuple[Experiment, list[Played]]], str | None] | None:
    """The results in a file, and what the method is called there that does nothing; None if it is no file of results.

    Parameters
    ----------
    source : Source
    benchmark : str, optional
        What results belong to that name none; the folder of the file if left out.
    """
    head = source.head(4096)
    if looks_saved(head):
        return read_saved(source)
    return read_results(source, benchmark) if looks_like_results(head) else None


def _files(given: Sequence[Path]) -> Iterator[tuple[Path, Path | None]]:
    """Files, and the folder they were found in; in a folder only those whose names say that they can be read."""
    endings = (*(s for f in FORMATS for s in f.suffixes), *_OWN)
    for path in given:
        if not path.is_dir():
            yield path, None
            continue
        found = sorted(
            f
            for f in path.rglob("*")
            if f.is_file()
            and f.name.lower().endswith(endings)
            and not any(part.startswith(".") for part in f.relative_to(path).parts)
        )
        if not found:
            raise InputError(
                "there are no files in this folder that can be read",
                file=path.name,
                remedy="see 'calviz formats'",
            )
        yield from ((file, path) for file in found)


def _stem(file: Path) -> str:
    return Path(file.name.removesuffix(".gz")).stem or file.name
