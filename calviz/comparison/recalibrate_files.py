"""Recalibration of files of any size: fitted on a sample of the rows, applied to all."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from calviz.comparison.apply_to_files import apply_to_files, target_names
from calviz.comparison.fitting import check_fitting_rows, make, scores_of
from calviz.comparison.rows import LEAST_ROWS
from calviz.core.errors import InputError, OptionError
from calviz.core.options import DEFAULT_SAMPLE_ROWS
from calviz.data.reading import options_of
from calviz.data.sampling.blocks import SampledBlock
from calviz.data.sampling.hashes import rehashed
from calviz.data.sampling.sample import FIT, JUDGED, RowSample, sample_rows
from calviz.profiles.layout import ProfileColumns
from calviz.specs.recalibrator import RECALIBRATORS
from calviz.text.words import counted


@dataclass(frozen=True, eq=False)
class RecalibratedFiles:
    """Calibrated files, with the map and the rows that it was fitted on.

    Attributes
    ----------
    files : tuple of Path
    recalibrator : transformer
        The fitted map.
    sample : RowSample
        The rows that it was fitted on.
    judge_column, judge_split : str or None
        Column of the files that marks the rows that were not used to fit the map, and its value for these.
    """

    files: tuple[Path, ...]
    recalibrator: Any
    sample: RowSample
    judge_column: str | None
    judge_split: str | None

    @property
    def map(self) -> dict[str, Any]:
        """The map for JSON, with a record of the sample that it was fitted on."""
        names = list(self.sample.data.class_names)
        record: dict[str, Any] = self.recalibrator.to_dict()
        return record | {"class_names": names, "sample": self.sample.record()}


def recalibrate_files(
    sources: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    method: str,
    folder: str | os.PathLike[str],
    *,
    rows: int = DEFAULT_SAMPLE_ROWS,
    fit_split: str | None = None,
    seed: int = 0,
    model: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    **options: Any,
) -> RecalibratedFiles:
    """Fit a recalibrator on a stratified sample of the rows of files, and write all files with calibrated scores.

    If the files have no splits, they get a column ``split``: "calibration" for the fitting rows and "evaluation" for
    all others, which the map should be judged on. An aggregated row of which only some copies were drawn is written twice, with
    both counts. Logits are replaced by probabilities, ``p_CLASS``.

    Parameters
    ----------
    sources : str, PathLike, or sequence of these
        Files, folders or patterns.
    method : str
        Key of a recalibrator, or ``first+second``.
    folder : str or PathLike
        Output folder; the files are written as Parquet and keep their names.
    rows : int
        Number of rows to fit on (see `calviz.sample_rows`).
    fit_split : str, optional
        The split that they are drawn from; if left out, a split with a usual name for it.
    seed : int
        Seed of the sample.
    model : str, optional
        Which model, if there are several.
    parameters : mapping, optional
        Parameters of the recalibrator.
    **options
        Fields of `ReadingOptions` (``label="y"``, ``scores=["p0", "p1", "p2"]``).

    Returns
    -------
    RecalibratedFiles

    Raises
    ------
    InputError, OptionError
        If a row cannot be used or files cannot be written there; the sentence names the file.
    """
    spec = RECALIBRATORS[method]
    paths = [sources] if isinstance(sources, str | os.PathLike) else list(sources)
    target_names(paths, folder)
    if rows < LEAST_ROWS:
        raise OptionError(f"a recalibrator needs at least {LEAST_ROWS} rows, got {rows!r}.")
    sample = sample_rows(paths, rows, fit_split=fit_split, seed=seed, model=model, **options)
    if sample.data.n < LEAST_ROWS:
        raise InputError(
            f"there {'is' if sample.data.n == 1 else 'are'} {counted(sample.data.n, 'calibration row')}, a recalibrator needs at least {LEAST_ROWS}",
            remedy="fit on another split, or label more rows",
        )
    recalibrator = make(spec, sample.data, parameters or {})
    weights = {} if sample.data.weights is None else {"sample_weight": sample.data.weights}
    scores, labels = scores_of(sample.data)
    check_fitting_rows(recalibrator, sample.data, labels)
    recalibrator.fit(scores, labels, **weights)
    marks = _Marks(sample) if sample.splits == (None, None) else None
    result = RecalibratedFiles((), recalibrator, sample, None, None)
    files = apply_to_files(
        paths, result.map, folder, model=model, options=options_of(options), marks=marks
    )
    column = None if marks is None else marks.column
    split = None if marks is None else JUDGED
    return replace(result, files=files, judge_column=column, judge_split=split)


class _Marks:
    """Marks the fitting rows, block by block."""

    def __init__(self, sample: RowSample) -> None:
        self._taken = sample.drawn.taken()
        self.column = "split"

    def __call__(self, table: Any, layout: ProfileColumns) -> tuple[Any, dict[str, Any]]:
        """Return the rows of a block to write, and the columns that mark them."""
        if "split" in table.columns:
            self.column = "calviz_split"
        # The split may be in the name of a folder, and is not needed here.
        block = SampledBlock.of(table, replace(layout, split=None))
        copies = block.copies
        fits, _ = self._taken(rehashed(block.hashes, 0), copies)
        divided = (fits > 0) & (fits < copies)
        rows = np.repeat(np.arange(copies.size), 1 + divided)
        second = np.diff(rows, prepend=-1) == 0
        fitting = (fits > 0)[rows] & ~second
        columns = {self.column: np.where(fitting, FIT, JUDGED)}
        if layout.count is not None:
            columns[layout.count] = np.where(fitting, fits[rows], (copies - fits)[rows])
        return rows, columns
