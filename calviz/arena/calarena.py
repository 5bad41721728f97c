"""Results in the layout of CalArena: ``BENCHMARK/METHOD.csv``, one row per experiment.

Columns: ``dataset, model, cal_size, test_size``, ``n_classes`` where there are more than two, and ``METHOD_brier``,
``METHOD_logloss``, ``METHOD_time`` (arXiv 2605.30188).
"""

from __future__ import annotations

import math
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np

from calviz.core.errors import InputError
from calviz.core.factor import Factor
from calviz.data.file_bytes import Source
from calviz.data.format import format_of
from calviz.results.arena import Experiment, MethodScore

if TYPE_CHECKING:
    from calviz.core.arrays import FloatArray
    from calviz.data.table import Table

#: CalArena's name of the method without calibration.
BASELINE = "Base-model"
#: First columns of every file of results and every list of experiments.
KEYS = ("dataset", "model", "cal_size", "test_size")
#: Suffixes of a method's columns, by score key.
ENDS = {"brier": "_brier", "nll": "_logloss"}
_TIME, _CLASSES = "_time", "n_classes"
_FIRST = ",".join(KEYS[:2]).encode()


def looks_like_results(head: bytes) -> bool:
    """Whether a file starts like results or like a list of experiments."""
    return head.removeprefix(b"\xef\xbb\xbf").startswith(_FIRST)


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
    try:
        table = format_of(source).open(source)
        return _results(table, benchmark or _folder(source)), BASELINE
    except InputError as error:
        raise error.in_file(source.name) from None


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
