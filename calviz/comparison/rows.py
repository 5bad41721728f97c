"""How rows are divided into those that a recalibrator is fitted on and those that it is judged on, and the plan of a comparison."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from calviz.comparison.comparison_results import RowsUsed
from calviz.core.blocks import BoolArray, IntArray
from calviz.core.entry_specs import RECALIBRATORS, UNCALIBRATED, RecalibratorSpec
from calviz.core.errors import InputError, NotAvailable, OptionError
from calviz.core.events import DEFAULT_BINS, Reduction, Scheme
from calviz.core.predictions import Dataset, Predictions, check_dataset
from calviz.core.words import counted, percent
from calviz.data.loaded import EVAL_SPLITS, FIT_SPLITS, usual_split
from calviz.sample.error_bars import RESAMPLES

#: Smallest number of fitting rows: with fewer, a map would follow single rows.
LEAST_ROWS = 10


@dataclass(frozen=True, eq=False)
class Rows:
    """Indices of the fitting rows and of the evaluation rows; several pairs under cross-fitting."""

    pairs: tuple[tuple[IntArray, IntArray], ...]
    fit: RowsUsed
    evaluation: RowsUsed
    in_sample: bool = False


@dataclass(frozen=True, kw_only=True)
class Division:
    """How rows are divided into fitting rows and evaluation rows; the two overlap only with `in_sample`.

    By default, the split that is judged and the one that is fitted on are chosen by their names (`EVAL_SPLITS`, `fit_split_for`); without
    them a stratified half of the rows is fitted on; with `in_sample`, all rows are both.

    Attributes
    ----------
    fit_split, eval_split : str, optional
        The splits; if only one is given, all other rows take the other role.
    fit_fraction : float, optional
        Alternatively, the stratified share of the rows to fit on.
    cross_fit : int, optional
        Alternatively, the number of folds. Every row is calibrated by a map that never saw it.
    seed : int
        Seed of the random division.
    in_sample : bool
        Whether the fitting rows may be evaluation rows too.
    """

    fit_split: str | None = None
    eval_split: str | None = None
    fit_fraction: float | None = None
    cross_fit: int | None = None
    seed: int = 0
    in_sample: bool = False

    def check(self) -> None:
        """Raise OptionError if the attributes contradict each other or are out of range, whatever the data."""
        by_split = self.fit_split is not None or self.eval_split is not None
        if by_split + (self.fit_fraction is not None) + (self.cross_fit is not None) > 1:
            raise OptionError(
                "give splits, a fraction to fit on, or cross-fitting: one of the three."
            )
        if by_split and self.fit_split == self.eval_split and not self.in_sample:
            raise OptionError(
                f"'{self.fit_split}' cannot both fit and judge: a map always looks good on its own rows; name two splits, "
                "or ask for in-sample results."
            )
        if self.fit_fraction is not None and not 0 < self.fit_fraction < 1:
            raise OptionError(
                f"'fit_fraction' must lie between 0 and 1, got {self.fit_fraction!r}."
            )
        if self.cross_fit is not None and self.cross_fit < 2:
            raise OptionError(
                f"'cross_fit' must be from 2 to the number of rows, got {self.cross_fit!r}."
            )

    def rows(self, data: Dataset) -> Rows:
        """Divide the rows of these data; raises InputError, OptionError or NotAvailable if that is not possible.

        Rows of weight 0 neither fit nor judge. Under cross-fitting, where every row is calibrated, the first map calibrates them.
        """
        check_dataset(data)
        self.check()
        divided = data.that_count()
        for split, role in ((self.fit_split, "calibration"), (self.eval_split, "evaluation")):
            if split in data.split_names and split not in divided.split_names:
                raise NotAvailable(f"all {role} rows have the weight 0, so that none counts.")
        rows = self._divided(divided)
        counting = data.rows_that_count
        return rows if counting is None else _among_all(rows, counting, data.n)

    def _divided(self, data: Dataset) -> Rows:
        """Divide rows that all count."""
        by_split = self.fit_split is not None or self.eval_split is not None
        if data.cells is not None and (not by_split) and (not self.in_sample):
            rows = self._of_cells(data)
        elif self.cross_fit is not None:
            rows = _cross_fitted(data, self.cross_fit, self.seed)
        elif self.fit_fraction is not None:
            rows = _by_fraction(data, self.fit_fraction, self.seed)
        elif by_split:
            rows = _by_splits(data, self.fit_split, self.eval_split, self.in_sample)
        elif self.in_sample:
            return _all_rows_twice(data)
        else:
            rows = self._usual(data)
        for fit, _ in rows.pairs:
            # Each cell of a profile stands for many rows.
            counts = None if data.cells is None else data.weights
            count = fit.size if counts is None else round(float(counts[fit].sum()))
            if count < LEAST_ROWS:
                raise InputError(
                    f"there {'is' if count == 1 else 'are'} {counted(count, 'calibration row')} ({rows.fit.how}), a recalibrator needs at least {LEAST_ROWS}",
                    remedy=_for_more_rows(data, folds=self.cross_fit),
                )
        return rows

    def _of_cells(self, data: Dataset) -> Rows:
        """Divide the rows of a profile, by splits only, because a cell cannot be divided."""
        fit, judged = self._usual_splits(data)
        if self.fit_fraction is not None or self.cross_fit is not None or fit is None:
            raise InputError(
                "the rows of a profile cannot be divided at random",
                remedy="name the splits to fit and to judge on, or profile with a split column",
            )
        return _by_splits(data, fit, judged, in_sample=False)

    @staticmethod
    def _usual_splits(data: Dataset) -> tuple[str | None, str | None]:
        """Return the splits to fit and to judge on: the usual one to judge, and the one that `fit_split_for` names; None for all other rows."""
        judged = usual_split(data.split_names, EVAL_SPLITS)
        return fit_split_for(data, judged), judged

    def _usual(self, data: Dataset) -> Rows:
        fit, judged = self._usual_splits(data)
        if fit is None:
            return _by_fraction(data, 0.5, self.seed)
        return _by_splits(data, fit, judged, in_sample=False)

    @property
    def given(self) -> dict[str, Any]:
        """Attributes that are not the default, as keyword arguments of `compare` and similar functions."""
        values = {f.name: (getattr(self, f.name), f.default) for f in fields(self)}
        return {name: value for name, (value, default) in values.items() if value != default}

    @classmethod
    def with_other_split(cls, data: Dataset, eval_split: str | None, *, seed: int = 0) -> Division:
        """Choose fitting rows for a split to judge: the split that `fit_split_for` names, otherwise a stratified half of all rows."""
        fit_split = fit_split_for(data, eval_split)
        if fit_split is None:
            return cls(fit_fraction=0.5, seed=seed)
        return cls(fit_split=fit_split, eval_split=eval_split)


def _among_all(rows: Rows, counting: IntArray, n: int) -> Rows:
    """Turn indices into the rows that count into indices into all n rows."""
    pairs = [(counting[fit], counting[judged]) for fit, judged in rows.pairs]
    if len(pairs) > 1:
        fit, judged = pairs[0]
        pairs[0] = fit, np.append(judged, np.delete(np.arange(n), counting))
    return replace(rows, pairs=tuple(pairs))


def fit_split_for(data: Dataset, eval_split: str | None) -> str | None:
    """Return the split to fit on while `eval_split` is judged: one whose name suggests it, otherwise the first other split.

    None if there is no other split. If all rows are judged (`eval_split` is None), only a split whose name suggests it.
    """
    others = [name for name in data.that_count().split_names if name != eval_split]
    usual = usual_split(others, FIT_SPLITS)
    if usual is not None or eval_split is None:
        return usual if len(data.split_names) > 1 else None
    return next(iter(others), None)


def _for_more_rows(data: Dataset, *, folds: int | None) -> str:
    """Return the remedy if there are too few rows to fit on."""
    if data.n <= LEAST_ROWS:
        return f"these data have {counted(data.n, 'row')} in all: label more rows"
    if folds is not None:
        return "take more folds, so that each map is fitted on more of the rows"
    return "fit on a larger split or a larger fraction of the rows, or cross-fit"


def _all_rows_twice(data: Dataset) -> Rows:
    every = np.arange(data.n)
    used = RowsUsed(None, data.rows, "all rows")
    return Rows(((every, every),), used, used, in_sample=True)


def _observed(data: Dataset, rows: IntArray) -> int:
    """Number of observed rows: for a profile, those behind the given cells."""
    if data.cells is None or data.weights is None:
        return int(rows.size)
    return int(data.weights[rows].sum())


def _by_splits(data: Dataset, fit: str | None, evaluation: str | None, in_sample: bool) -> Rows:
    def rows_of(name: str) -> IntArray:
        if data.splits is None:
            raise InputError(
                f"there is no split '{name}': these data have no splits",
                remedy="fit on a fraction of the rows, or cross-fit",
            )
        if name not in data.splits.levels:
            names = ", ".join(data.splits.levels[:10])
            raise InputError(f"there is no split '{name}'", remedy=f"known: {names}")
        return np.flatnonzero(data.splits.mask(name))

    def others(rows: IntArray) -> IntArray:
        mask = np.ones(data.n, dtype=np.bool_)
        mask[rows] = False
        return np.flatnonzero(mask)

    fit_rows = rows_of(fit) if fit is not None else others(rows_of(str(evaluation)))
    rows = rows_of(evaluation) if evaluation is not None else others(fit_rows)
    if in_sample and evaluation is None:
        rows, evaluation = fit_rows, fit
    if rows.size == 0 or fit_rows.size == 0:
        raise InputError(
            f"the split '{fit or evaluation}' holds all rows: none are left to judge on",
            remedy="fit on a fraction of the rows, or cross-fit",
        )

    def used(name: str | None, count: int) -> RowsUsed:
        return RowsUsed(name, count, f"split '{name}'" if name else "all other rows")

    return Rows(
        ((fit_rows, rows),),
        used(fit, _observed(data, fit_rows)),
        used(evaluation, _observed(data, rows)),
        in_sample=bool(np.intersect1d(fit_rows, rows).size),
    )


def judged_within(judged: IntArray, within: BoolArray | None, reason: str) -> IntArray:
    """Return the evaluation rows that are in a subset, shape (n,); raise InputError with the reason if none is left."""
    if within is not None:
        judged = judged[within[judged]]
    if judged.size == 0:
        raise InputError(
            f"none of the selected rows are left to judge: {reason}",
            remedy="choose another evaluation split or slice",
        )
    return judged


def _by_fraction(data: Dataset, fraction: float, seed: int) -> Rows:
    count = min(max(round(fraction * data.n), 1), data.n - 1)
    rng = np.random.default_rng(seed)
    if data.clusters is None:
        fit, how = stratified_sample(strata(data), count, rng), "stratified"
    else:
        fit, how = whole_clusters(data.clusters.codes, count, rng), "in whole clusters"
    mask = np.ones(data.n, dtype=np.bool_)
    mask[fit] = False
    rest = np.flatnonzero(mask)
    return Rows(
        ((fit, rest),),
        RowsUsed(None, fit.size, f"{percent(fraction, 0)} of the rows, {how}, seed {seed}"),
        RowsUsed(None, rest.size, "all other rows"),
    )


def _cross_fitted(data: Dataset, folds: int, seed: int) -> Rows:
    if folds > data.n:
        raise OptionError(
            f"'cross_fit' must be at most the number of rows, {data.n:,}, got {folds!r}."
        )
    rng = np.random.default_rng(seed)
    if data.clusters is None:
        fold, words = assign_parts(strata(data), folds, rng), "stratified"
    else:
        levels = len(data.clusters.levels)
        if folds > levels:
            raise OptionError(
                f"'cross_fit' must be at most the number of clusters, {levels:,}, got {folds!r}."
            )
        # Rows of one cluster stay in one fold: otherwise the map would have seen related rows.
        fold = assign_parts(np.zeros(levels, dtype=np.intp), folds, rng)[data.clusters.codes]
        words = "in whole clusters"
    pairs = tuple((np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(folds))
    how = f"{folds}-fold cross-fitting, {words}, seed {seed}"
    return Rows(
        pairs,
        RowsUsed(None, pairs[0][0].size, how),
        RowsUsed(None, data.n, f"all rows, each by a map that never saw it ({how})"),
    )


# ---- Random divisions


def strata(data: Dataset) -> IntArray:
    """Return the strata whose proportions a division keeps, shape (n,): the class, or whether the prediction is right."""
    if isinstance(data, Predictions):
        return data.labels
    return data.correct.astype(np.intp)


def assign_parts(labels: IntArray, parts: int, rng: np.random.Generator) -> IntArray:
    """Assign each row to one of `parts` parts, shape (n,): rows of each class are shuffled and dealt out in turn."""
    order = _shuffled_by_class(labels, rng)
    part = np.empty(labels.size, dtype=np.intp)
    part[order] = np.arange(labels.size) % parts
    return part


def stratified_sample(labels: IntArray, rows: int, rng: np.random.Generator) -> IntArray:
    """Draw `rows` row indices, ascending, with class proportions kept to within one row."""
    n = labels.size
    order = _shuffled_by_class(labels, rng)
    # Systematic sampling: evenly spaced along the rows sorted by class, from a random start.
    at = np.floor((np.arange(rows) + rng.random()) * n / rows).astype(np.intp)
    return np.sort(order[np.minimum(at, n - 1)])


def _shuffled_by_class(labels: IntArray, rng: np.random.Generator) -> IntArray:
    """Same as ``np.lexsort((rng.random(n), labels))``, in a third of the time: one sort of keys with the class above 53 random bits."""
    random = rng.random(labels.size)
    if labels.max(initial=0) >= 1 << 10:
        return np.lexsort((random, labels))
    random *= 1 << 53
    keys = labels.astype(np.int64) << 53
    keys |= random.astype(np.int64)
    return np.argsort(keys)


def whole_clusters(cluster: IntArray, rows: int, rng: np.random.Generator) -> IntArray:
    """Draw about `rows` row indices, ascending, as whole clusters; at least one cluster is left out.

    `cluster` has shape (n,), with codes from 0 up.
    """
    size = np.bincount(cluster)
    order = rng.permutation(size.size)
    upto = np.cumsum(size[order])
    count = min(max(int(np.abs(upto - rows).argmin()) + 1, 1), size.size - 1)
    chosen = np.zeros(size.size, dtype=np.bool_)
    chosen[order[:count]] = True
    return np.flatnonzero(chosen[cluster])


# ---- The plan of a comparison


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Which methods are compared, fitted on which rows, and judged how.

    Attributes
    ----------
    methods : tuple of str or "all"
        Keys of recalibrators; the uncalibrated model always comes first.
    division : Division
        Which are the fitting rows and the evaluation rows.
    metrics : tuple of str, optional
        Keys; if left out, all metrics, where `calviz.compare` has only those shown in the tables of a comparison.
    reduction : Reduction or str, optional
        Which (score, hit) pair the calibration metrics use; if left out, the positive class of
        two classes, otherwise the top label.
    bins, scheme
        Of the binned metrics, as in `calviz.evaluate`.
    ci : bool
        Whether to compute intervals, paired differences and shares of "best".
    resamples : int
    refits : int
        Number of times each method is refitted, on fitting rows drawn with replacement. Without refits, intervals hold for
        the fitted map; with refits (such as 20), differences and verdicts include the variation of the fit.
    options : mapping of str to mapping
        Parameters of single methods.
    """

    methods: tuple[str, ...] | str = "all"
    division: Division = field(default_factory=Division)
    metrics: tuple[str, ...] | None = None
    reduction: Reduction | str | None = None
    bins: int = DEFAULT_BINS
    scheme: Scheme = "equal-width"
    ci: bool = True
    resamples: int = RESAMPLES
    refits: int = 0
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.refits < 0 or self.refits == 1:
            raise OptionError(f"'refits' must be 0, or 2 or more, got {self.refits}.")

    @property
    def specs(self) -> list[RecalibratorSpec]:
        """Specs of the planned methods, the uncalibrated model first."""
        return specs_of(self.methods, self.options)


def specs_of(
    methods: Iterable[str] | str, options: Mapping[str, Mapping[str, Any]]
) -> list[RecalibratorSpec]:
    """Return the specs of the named methods, the uncalibrated model first.

    Raises
    ------
    OptionError
        If there are options of other methods, or one has a value that is not allowed.
    """
    if methods == "all":
        specs = list(RECALIBRATORS)
    else:
        names = [methods] if isinstance(methods, str) else list(methods)
        specs = [RECALIBRATORS[name] for name in dict.fromkeys([UNCALIBRATED, *names])]
    keys = [spec.key for spec in specs]
    check_options(options, keys if methods == "all" or len(keys) == 1 else keys[1:])
    return specs


def check_options(
    options: Mapping[str, Mapping[str, Any]], methods: Sequence[str], name: str = "'options'"
) -> None:
    """Raise OptionError if there are parameters of a method that is not used, or one has a value that is not allowed.

    Parameters
    ----------
    options : mapping of str to mapping
        Parameters of single methods.
    methods : sequence of str
        The methods that are used.
    name : str
        What the message calls the parameters.
    """
    if others := [method for method in options if method not in methods]:
        used = (
            f"method is '{methods[0]}'"
            if len(methods) == 1
            else f"methods are {', '.join(methods)}"
        )
        raise OptionError(f"{name} names '{others[0]}', but the {used}.")
    for method, values in options.items():
        try:
            RECALIBRATORS[method].check(values)
        except OptionError as error:
            raise OptionError(f"{name} of '{method}': {error}") from None
