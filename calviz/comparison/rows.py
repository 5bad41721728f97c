"""Which rows fit a recalibrator, and which judge it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calviz.core.arrays import IntArray
from calviz.core.comparison import RowsUsed
from calviz.core.errors import InputError, OptionError
from calviz.core.predictions import Dataset, Predictions
from calviz.core.words import percent
from calviz.data.types import EVAL_SPLITS, FIT_SPLITS
from calviz.numerics.partition import dealt, stratified_sample

#: A map that is fitted to fewer rows follows single rows.
LEAST_ROWS = 10


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows to fit on and rows to judge, as row numbers; several pairs under cross-fitting."""

    pairs: tuple[tuple[IntArray, IntArray], ...]
    fit: RowsUsed
    evaluation: RowsUsed
    in_sample: bool = False


def choose_rows(
    data: Dataset,
    *,
    fit_split: str | None = None,
    eval_split: str | None = None,
    fit_fraction: float | None = None,
    cross_fit: int | None = None,
    seed: int = 0,
    in_sample: bool = False,
) -> Rows:
    """Decide which rows fit and which judge; they never overlap unless `in_sample` asks for it.

    Where nothing is said: splits whose names say so (`FIT_SPLITS`, `EVAL_SPLITS`), or else a stratified half;
    with `in_sample`, all rows do both.
    """
    given = [fit_split is not None or eval_split is not None, fit_fraction is not None]
    if sum([*given, cross_fit is not None]) > 1:
        raise OptionError("give splits, a fraction to fit on, or cross-fitting: one of the three.")
    if not any(given) and cross_fit is None:
        if in_sample:
            return _same(data)
        known = {name.casefold(): name for name in reversed(data.split_names)}
        fit_split = next((known[n] for n in FIT_SPLITS if n in known), None)
        eval_split = next((known[n] for n in EVAL_SPLITS if n in known), None)
        if fit_split is None or eval_split is None:
            fit_split = eval_split = None
            fit_fraction = 0.5
    if cross_fit is not None:
        rows = _crossed(data, cross_fit, seed)
    elif fit_fraction is not None:
        rows = _drawn(data, fit_fraction, seed)
    else:
        rows = _named(data, fit_split, eval_split, in_sample)
    for fit, _ in rows.pairs:
        if fit.size < LEAST_ROWS:
            raise InputError(
                f"there are {fit.size} calibration rows, a recalibrator needs at least {LEAST_ROWS}"
            )
    return rows


def _same(data: Dataset) -> Rows:
    every = np.arange(data.n)
    used = RowsUsed(None, data.n, "all rows")
    return Rows(((every, every),), used, used, in_sample=True)


def _named(data: Dataset, fit: str | None, evaluation: str | None, in_sample: bool) -> Rows:
    def of(name: str) -> IntArray:
        if data.splits is None:
            raise InputError(
                f"there is no split '{name}': these data have no splits",
                remedy="fit on a fraction of the rows, or cross-fit",
            )
        if name not in data.splits.levels:
            known = ", ".join(data.splits.levels[:10])
            raise InputError(f"there is no split '{name}'", remedy=f"known: {known}")
        return np.flatnonzero(data.splits.mask(name))

    def others(rows: IntArray) -> IntArray:
        mask = np.ones(data.n, dtype=np.bool_)
        mask[rows] = False
        return np.flatnonzero(mask)

    if fit is not None and fit == evaluation and not in_sample:
        raise OptionError(
            f"'{fit}' cannot both fit and judge: a map always looks good on its own rows; name two splits, "
            "or ask for in-sample results."
        )
    fit_rows = of(fit) if fit is not None else others(of(str(evaluation)))
    rows = of(evaluation) if evaluation is not None else others(fit_rows)
    if in_sample and evaluation is None:
        rows, evaluation = fit_rows, fit
    if rows.size == 0 or fit_rows.size == 0:
        raise InputError(
            f"the split '{fit or evaluation}' holds all rows: none are left to judge on"
        )

    def used(name: str | None, count: int) -> RowsUsed:
        return RowsUsed(name, count, f"split '{name}'" if name else "all other rows")

    return Rows(
        ((fit_rows, rows),),
        used(fit, fit_rows.size),
        used(evaluation, rows.size),
        in_sample=bool(np.intersect1d(fit_rows, rows).size),
    )


def strata(data: Dataset) -> IntArray:
    """What is kept in proportion when rows are divided: the class, or whether the prediction is right."""
    if isinstance(data, Predictions):
        return data.labels
    return data.correct.astype(np.intp)


def _drawn(data: Dataset, fraction: float, seed: int) -> Rows:
    if not 0 < fraction < 1:
        raise OptionError(f"'fit_fraction' must lie between 0 and 1, got {fraction!r}.")
    count = min(max(round(fraction * data.n), 1), data.n - 1)
    fit = stratified_sample(strata(data), count, np.random.default_rng(seed))
    mask = np.ones(data.n, dtype=np.bool_)
    mask[fit] = False
    rest = np.flatnonzero(mask)
    return Rows(
        ((fit, rest),),
        RowsUsed(None, fit.size, f"{percent(fraction, 0)} of the rows, stratified, seed {seed}"),
        RowsUsed(None, rest.size, "all other rows"),
    )


def _crossed(data: Dataset, folds: int, seed: int) -> Rows:
    if not 2 <= folds <= data.n:
        raise OptionError(f"'cross_fit' must be from 2 to the number of rows, got {folds!r}.")
    share = dealt(strata(data), folds, np.random.default_rng(seed))
    pairs = tuple((np.flatnonzero(share != f), np.flatnonzero(share == f)) for f in range(folds))
    how = f"{folds}-fold cross-fitting, stratified, seed {seed}"
    return Rows(
        pairs,
        RowsUsed(None, pairs[0][0].size, how),
        RowsUsed(None, data.n, f"all rows, each by a map that never saw it ({how})"),
    )
