"""The same rows before and after recalibration, excluding those that the map was fitted on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calviz.comparison.fitting import fit_and_apply
from calviz.comparison.rows import Division, judged_within
from calviz.core.arrays import BoolArray, IntArray
from calviz.core.predictions import Dataset
from calviz.results.comparison import RowsUsed
from calviz.specs.recalibrator import RECALIBRATORS


@dataclass(frozen=True, eq=False)
class BeforeAfter:
    """A model before and after recalibration.

    Attributes
    ----------
    rows : ndarray of int, shape (m,)
        Row numbers of the judged rows.
    before, after : Predictions or ConfidencePredictions
        The judged rows.
    fit_before, fit_after : Predictions or ConfidencePredictions
        The rows that the map was fitted on, for choosing a threshold, never for judging it.
    fit, evaluation : RowsUsed
        Descriptions of the fitting rows and the judged rows.
    warnings : tuple of str
        Warnings of the fit.
    """

    rows: IntArray
    before: Dataset
    after: Dataset
    fit_before: Dataset
    fit_after: Dataset
    fit: RowsUsed
    evaluation: RowsUsed
    warnings: tuple[str, ...]


def before_and_after(
    data: Dataset,
    method: str,
    *,
    eval_split: str | None = None,
    within: BoolArray | None = None,
    seed: int = 0,
) -> BeforeAfter:
    """Fit a recalibrator on some rows, and return the others before and after recalibration.

    Parameters
    ----------
    data : Predictions or ConfidencePredictions
    method : str
        Key of a recalibrator, or ``first+second``.
    eval_split : str, optional
        The split to judge. The map is fitted on the split that `fit_split_for` names; without one, on a stratified
        half of the rows, and the other half is judged.
    within : ndarray of bool, shape (n,), optional
        Judge only these rows (a slice).
    seed : int
        Of the random half.

    Raises
    ------
    InputError
        If there are too few rows to fit on, or none to judge.
    NotAvailable
        If the method is not defined for these data.
    """
    rows = Division.with_other_split(data, eval_split, seed=seed).rows(data)
    fit, judged = rows.pairs[0]
    judged = judged_within(judged, within, "the map was fitted on them")
    spec = RECALIBRATORS[method]
    both = np.concatenate([fit, judged])
    fitted = fit_and_apply(data, spec, replace(rows, pairs=((fit, both),)), {})
    return BeforeAfter(
        rows=judged,
        before=data.take(judged),
        after=fitted.calibrated.take(np.arange(fit.size, both.size)),
        fit_before=data.take(fit),
        fit_after=fitted.calibrated.take(np.arange(fit.size)),
        fit=rows.fit,
        evaluation=replace(rows.evaluation, rows=judged.size),
        warnings=fitted.warnings,
    )
