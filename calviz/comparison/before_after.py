"""The same rows before and after recalibration, never those that the map was fitted on."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calviz.comparison.fitting import fit_and_apply
from calviz.comparison.rows import Rows, choose_rows
from calviz.core.arrays import BoolArray, IntArray
from calviz.core.comparison import RowsUsed
from calviz.core.errors import InputError
from calviz.core.predictions import Dataset
from calviz.core.recalibrator import RECALIBRATORS
from calviz.data.types import FIT_SPLITS


@dataclass(frozen=True, eq=False)
class BeforeAfter:
    """A recalibrated model beside the one it was.

    Attributes
    ----------
    rows : ndarray of int, shape (m,)
        Row numbers of the judged rows.
    before, after : Predictions or ConfidencePredictions
        The judged rows.
    fit_before, fit_after : Predictions or ConfidencePredictions
        The rows that the map was fitted on: to choose a threshold, never to judge it.
    fit, evaluation : RowsUsed
        Which rows these are.
    warnings : tuple of str
        What the fit had to say.
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
    """Fit a recalibrator beside the rows to judge, and give both versions of these.

    Parameters
    ----------
    data : Predictions or ConfidencePredictions
    method : str
        Key of a recalibrator, or ``first+second``.
    eval_split : str, optional
        The split to judge. Fitted is on the split that `fit_split_beside` names; without one on a stratified half
        of the rows, and the other half is judged.
    within : ndarray of bool, shape (n,), optional
        Judge only those of the rows that lie in here (a slice).
    seed : int
        Of the random half.

    Raises
    ------
    InputError
        Where there are too few rows to fit on, or none to judge.
    NotAvailable
        Where the method has no meaning for these data.
    """
    rows = rows_beside(data, eval_split, seed=seed)
    fit, judged = rows.pairs[0]
    if within is not None:
        judged = judged[within[judged]]
    if judged.size == 0:
        raise InputError(
            "none of the rows looked at are left to judge: the map was fitted on them",
            remedy="choose another evaluation split or slice",
        )
    spec = RECALIBRATORS[method]
    both = np.concatenate([fit, judged])
    done = fit_and_apply(data, spec, replace(rows, pairs=((fit, both),)), {})
    return BeforeAfter(
        rows=judged,
        before=data.take(judged),
        after=done.calibrated.take(np.arange(fit.size, both.size)),
        fit_before=data.take(fit),
        fit_after=done.calibrated.take(np.arange(fit.size)),
        fit=rows.fit,
        evaluation=replace(rows.evaluation, rows=judged.size),
        warnings=done.warnings,
    )


def fit_split_beside(data: Dataset, eval_split: str | None) -> str | None:
    """The split to fit on while another is judged: the one whose name says so, else the first other one.

    None where there is no other split; of all rows (`eval_split` None) only one whose name says so.
    """
    known = {name.casefold(): name for name in reversed(data.split_names) if name != eval_split}
    named = next((known[name] for name in FIT_SPLITS if name in known), None)
    if named is not None or eval_split is None:
        return named if len(data.split_names) > 1 else None
    return next((name for name in data.split_names if name != eval_split), None)


def rows_beside(data: Dataset, eval_split: str | None, *, seed: int = 0) -> Rows:
    """Rows to fit on and rows to judge (see `before_and_after`)."""
    fit_split = fit_split_beside(data, eval_split)
    if fit_split is not None:
        return choose_rows(data, fit_split=fit_split, eval_split=eval_split)
    return choose_rows(data, fit_fraction=0.5, seed=seed)
