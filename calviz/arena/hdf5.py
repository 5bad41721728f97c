"""Predictions in the layout of CalArena's HDF5 files.

``DATASET/MODEL/{probas_cal, labels_cal, probas_test, labels_test}``; one-dimensional probabilities are P(class 1) of two classes.
The attributes ``source`` and ``problem_type`` of the file name the benchmark (arXiv 2605.30188).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calviz.core.errors import InputError, shortened
from calviz.core.factor import Factor
from calviz.core.limits import MAX_ARRAY, MAX_ARRAYS, MAX_FILE, size_text
from calviz.core.predictions import Predictions

if TYPE_CHECKING:
    import numpy.typing as npt

SIGNATURE = b"\x89HDF\r\n\x1a\n"
SUFFIXES = (".h5", ".hdf5", ".hdf")
#: Splits, by the suffix of their arrays.
SPLITS = {"cal": "calibration", "test": "test"}


def members(path: Path) -> tuple[str, tuple[tuple[str, str], ...]]:
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
            names += [(dataset, model) for model in itertools.islice(group, MAX_ARRAYS.value + 1)]
            MAX_ARRAYS.check(len(names), f"it has {len(names):,} or more experiments")
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
        MAX_FILE.check(path.stat().st_size, f"the file is {size_text(path.stat().st_size)}")
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
    kind = group.get(name, getlink=True)
    if not isinstance(kind, h5py.HardLink):
        raise InputError(
            f"'{shortened(name)}' is a link",
            remedy="copy the data set into this file",
        )
    return group[name]


def _array(h5py: Any, group: Any, name: str, where: str) -> npt.NDArray[Any]:
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
    MAX_ARRAY.check(size, f"'{name}' of {shortened(where)} has {size_text(size)}")
    return np.asarray(data[()])


def _text(value: Any) -> str:
    text = value.decode("utf-8", "replace") if isinstance(value, bytes) else value
    return shortened(text) if isinstance(text, str) else ""
