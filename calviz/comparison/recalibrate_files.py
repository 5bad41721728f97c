"""A recalibrator for files of any size: fitted on a sample of the rows, applied to all of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from calviz.comparison.apply_to_files import apply_to_files, target_names
from calviz.comparison.fitting import make, scores_of
from calviz.comparison.rows import LEAST_ROWS
from calviz.core.errors import InputError, OptionError
from calviz.data.reading import options_of
from calviz.data.sampling.blocks import Block
from calviz.data.sampling.hashes import apart
from calviz.data.sampling.sample import FIT, JUDGED, ROWS, RowSample, sample_rows
from calviz.profiles.layout import Layout
from calviz.specs.recalibrator import RECALIBRATORS


@dataclass(frozen=True, eq=False)
class RecalibratedFiles:
    """Calibrated files, and how they came about.

    Attributes
    ----------
    files : tuple of Path
    recalibrator : transformer
        The fitted map.
    sample : RowSample
        The rows that it was fitted on.
    judge_column, judge_split : str or None
        The column of the files that says which rows did not fit the map, and what it holds for them.
    """

    files: tuple[Path, ...]
    recalibrator: Any
    sample: RowSample
    judge_column: str | None
    judge_split: str | None

    @property
    def map(self) -> dict[str, Any]:
        """The map for JSON, with the rows that it was fitted on."""
        names = list(self.sample.data.class_names)
        record: dict[str, Any] = self.recalibrator.to_dict()
        return record | {"class_names": names, "sample": self.sample.record()}


def recalibrate_files(
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    method: str,
    folder: str | os.PathLike[str],
    *,
    rows: int = ROWS,
    fit_split: str | None = None,
    seed: int = 0,
    model: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    **options: Any,
) -> RecalibratedFiles:
    """Fit a recalibrator on a stratified sample of the rows of files, and write all files again with calibrated scores.

    Rows that fitted the map are marked: where the files have no splits, they get a column ``split``, "calibration" for the rows of
    the sample and "evaluation" for all others. Judge the map on these. A row that stands for several of which only some fit is
    written twice, with their counts. Logits are replaced by probabilities, ``p_CLASS``.

    Parameters
    ----------
    sources : str, PathLike, or sequence of these
        Files, folders or patterns.
    method : str
        Key of a recalibrator, or ``first+second``.
    folder : str or PathLike
        Where the files go, as Parquet, under their own names.
    rows : int
        How many rows fit (see `calviz.sample_rows`).
    fit_split : str, optional
        The split that they are drawn from; where none is named, one whose name says so.
    seed : int
        Of the sample.
    model : str, optional
        Whose scores, where there are several.
    parameters : mapping, optional
        Of the recalibrator.
    **options
        Fields of `ReadingOptions` (``label="y"``, ``scores=["p0", "p1", "p2"]``).

    Returns
    -------
    RecalibratedFiles

    Raises
    ------
    InputError, OptionError
        Naming the file, where a row cannot be used or files cannot be written there.
    """
    spec = RECALIBRATORS[method]
    named = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    target_names(named, folder)
    if rows < LEAST_ROWS:
        raise OptionError(f"a recalibrator needs at least {LEAST_ROWS} rows, got {rows!r}.")
    sample = sample_rows(named, rows, fit_split=fit_split, seed=seed, model=model, **options)
    if sample.data.n < LEAST_ROWS:
        raise InputError(
            f"there are {sample.data.n} calibration rows, a recalibrator needs at least {LEAST_ROWS}",
            remedy="fit on another split, or label more rows",
        )
    recalibrator = make(spec, sample.data, parameters or {})
    how = {} if sample.data.weights is None else {"sample_weight": sample.data.weights}
    recalibrator.fit(*scores_of(sample.data), **how)
    marks = _Marks(sample) if sample.splits == (None, None) else None
    found = RecalibratedFiles((), recalibrator, sample, None, None)
    files = apply_to_files(
        named, found.map, folder, model=model, options=options_of(options), marks=marks
    )
    column = None if marks is None else marks.column
    return RecalibratedFiles(files, recalibrator, sample, column, JUDGED if marks else None)


class _Marks:
    """Which rows fitted the map, told block by block."""

    def __init__(self, sample: RowSample) -> None:
        self._taken = sample.drawn.taken()
        self.column = "split"

    def __call__(self, table: Any, layout: Layout) -> tuple[Any, dict[str, Any]]:
        """The rows of a block to be written, and columns of these."""
        if "split" in table.columns:
            self.column = "calviz_split"
        # Splits may be in the names of folders, and do not matter here.
        block = Block.of(table, replace(layout, split=None))
        copies = block.copies
        fits, _ = self._taken(apart(block.hashes, 0), copies)
        divided = (fits > 0) & (fits < copies)
        rows = np.repeat(np.arange(copies.size), 1 + divided)
        second = np.diff(rows, prepend=-1) == 0
        fitting = (fits > 0)[rows] & ~second
        columns = {self.column: np.where(fitting, FIT, JUDGED)}
        if layout.count is not None:
            columns[layout.count] = np.where(fitting, fits[rows], (copies - fits)[rows])
        return rows, columns
