"""A recalibrator fitted on some rows and applied to others, and saved maps applied to other predictions."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np

from calviz.comparison.comparison_results import RowsUsed
from calviz.comparison.rows import Division, Rows, judged_within
from calviz.core.blocks import BoolArray, FloatArray, IntArray, checkpoint, read_only
from calviz.core.entry_specs import RECALIBRATORS, UNCALIBRATED, RecalibratorSpec
from calviz.core.errors import InputError, NotAvailable
from calviz.core.predictions import INTERVAL, Dataset, Predictions
from calviz.core.profile import Profile, dataset_of
from calviz.core.row_columns import Factor, cells_after_map
from calviz.core.words import decimal
from calviz.data.loaded import ReadingForMap, ReadingOptions, classes_agree
from calviz.recalibrators.base import check_two_classes, load_map
from calviz.sample.losses import negative_log_likelihood, squared_error
from calviz.sample.sample import Sample


def recalibrate(
    data: Dataset | Profile,
    method: str,
    *,
    fit_split: str | None = None,
    fit_fraction: float | None = None,
    cross_fit: int | None = None,
    seed: int = 0,
    **options: Any,
) -> Dataset:
    """Fit a recalibrator on some rows and apply it to all.

    The fitting rows stay in the result, under their split: evaluate only the others. If
    the data have no splits, the result has the splits "calibration" and "evaluation". Under cross-fitting, no row was
    seen by the map that calibrated it.

    Parameters
    ----------
    data : Predictions, ConfidencePredictions or Profile
    method : str
        Key of a recalibrator, or ``first+second``.
    fit_split : str, optional
        The split to fit on.
    fit_fraction : float, optional
        Alternatively, the stratified share of rows to fit on.
    cross_fit : int, optional
        Alternatively, the number of folds.
    seed : int
        Seed of the random division.
    **options
        Parameters of the recalibrator.
    """
    division = Division(
        fit_split=fit_split, fit_fraction=fit_fraction, cross_fit=cross_fit, seed=seed
    )
    return calibrate(data, method, division, options).calibrated


def calibrate(
    data: Dataset | Profile,
    method: str,
    division: Division,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> Fitted:
    """Like `recalibrate`, but return the fitted map and its warnings, too."""
    data = dataset_of(data)
    spec = RECALIBRATORS[method]
    whole = division.fit_split is not None and data.split_names == (division.fit_split,)
    rows = replace(division, in_sample=whole).rows(data)
    if division.cross_fit is not None:
        return fit_and_apply(data, spec, rows, options)
    fit = rows.pairs[0][0]
    every = np.arange(data.n)
    fitted = fit_and_apply(data, spec, replace(rows, pairs=((fit, every),)), options)
    return replace(fitted, calibrated=_marked(fitted.calibrated, fit))


def trade_off(data: Dataset, calibrated: Dataset, division: Division) -> str | None:
    """Say what a map costs in one proper score although it gains in the other, on the rows that it was not fitted on; None if neither."""
    if division.fit_split is not None and data.split_names == (division.fit_split,):
        return None
    rows = division.rows(data)
    judged = np.arange(data.n) if division.cross_fit is not None else rows.pairs[0][1]
    words: dict[bool, str] = {}
    for view, name in ((squared_error, "Brier score"), (negative_log_likelihood, "NLL")):
        try:
            before, after = (
                float(Sample(d.take(judged)).view(view).mean) for d in (data, calibrated)
            )
        except NotAvailable:
            return None
        numbers = decimal(before, 4), decimal(after, 4)
        if numbers[0] != numbers[1]:
            words[after > before] = f"by {name} ({numbers[0]} before, {numbers[1]} after)"
    if len(words) < 2:
        return None
    return f"better {words[False]}, worse {words[True]}, judged on {rows.evaluation.how}."


@dataclass(frozen=True, eq=False)
class Fitted:
    """Calibrated rows, with the map and the size of it, times and warnings."""

    calibrated: Dataset
    recalibrator: Any
    fit_seconds: float
    apply_seconds: float
    warnings: tuple[str, ...]
    numbers: int = 0


def fit_and_apply(
    data: Dataset, spec: RecalibratorSpec, rows: Rows, options: Mapping[str, Any]
) -> Fitted:
    """Fit on some rows and apply to the others; under cross-fitting, the folds are combined in the original order."""
    scores, labels = scores_of(data)
    fit_seconds = apply_seconds = 0.0
    warnings: list[str] = []
    parts: list[FloatArray] = []
    numbers_of_parts: list[Mapping[str, FloatArray]] = []
    recalibrator: Any = None
    for at, (fit, judged) in enumerate(rows.pairs, start=1):
        if len(rows.pairs) > 1:
            checkpoint(f"fitting fold {at} of {len(rows.pairs)}")
        recalibrator = make(spec, data, options)
        check_fitting_rows(recalibrator, data, labels[fit])
        if data.cells is not None and data.weights is not None:
            recalibrator.rows_each = float(data.weights[fit].mean())
        start = time.perf_counter()
        if data.weights is None:
            recalibrator.fit(_rows_of(scores, fit), labels[fit])
        else:
            recalibrator.fit(_rows_of(scores, fit), labels[fit], sample_weight=data.weights[fit])
        fitted = time.perf_counter()
        judged_scores = _rows_of(scores, judged)
        parts.append(recalibrator.transform(judged_scores))
        numbers_of_parts.append(interval_columns(recalibrator, data, judged_scores))
        fit_seconds += fitted - start
        apply_seconds += time.perf_counter() - fitted
        warnings += [w for w in recalibrator.warnings_ if w not in warnings]
    last = recalibrator
    if len(rows.pairs) == 1:
        judged_data = data.take(rows.pairs[0][1])
        probs, numbers = parts[0], numbers_of_parts[0]
    else:
        judged_data, recalibrator = data, None
        probs = _in_original_order(rows, parts, data.n)
        numbers = {
            name: _in_original_order(rows, [part[name] for part in numbers_of_parts], data.n)
            for name in numbers_of_parts[0]
        }
    size = _numbers_in(last.to_dict())
    # The uncalibrated model must equal the data to the last digit.
    calibrated = (
        judged_data if spec.key == UNCALIBRATED else with_probabilities(judged_data, probs, numbers)
    )
    return Fitted(calibrated, recalibrator, fit_seconds, apply_seconds, tuple(warnings), size)


def _numbers_in(value: Any) -> int:
    """Count the numbers in plain values: the complexity of a saved map."""
    if isinstance(value, Mapping):
        return sum(map(_numbers_in, value.values()))
    if isinstance(value, list | tuple):
        if value and isinstance(value[0], float):  # long lists are of one kind
            return len(value)
        return sum(map(_numbers_in, value))
    return int(isinstance(value, int | float) and not isinstance(value, bool))


def _rows_of(array: FloatArray, rows: IntArray) -> FloatArray:
    # Consecutive rows are taken as a view. Checking the ends is not enough: the rows between may be unordered.
    if rows.size and rows[-1] - rows[0] + 1 == rows.size and bool((np.diff(rows) == 1).all()):
        return array[rows[0] : rows[-1] + 1]
    return np.asarray(array[rows])


def _in_original_order(rows: Rows, parts: Sequence[FloatArray], n: int) -> FloatArray:
    """Combine arrays for the judged rows of each fold into one in the order of all n rows."""
    out = np.empty_like(parts[0], shape=(n, *parts[0].shape[1:]))
    for (_, judged), part in zip(rows.pairs, parts, strict=True):
        out[judged] = part
    return out


def make(spec: RecalibratorSpec, data: Dataset, options: Mapping[str, Any]) -> Any:
    """Return an unfitted recalibrator for these data; raises NotAvailable if the method is not defined for them."""
    if not isinstance(data, Predictions) and not spec.confidence_only:
        raise NotAvailable(
            "not available for confidence-only data: it needs the scores of all classes."
        )
    spec.check(options)
    logits = isinstance(data, Predictions) and data.logits is not None
    return spec.make(input="logits" if logits else "probabilities", **options)


def scores_of(data: Dataset) -> tuple[FloatArray, IntArray]:
    """Return the input of recalibrators: scores, shape (n, K), and labels, shape (n,).

    Scores are the logits, if there are any. Confidence-only data become a problem with two classes, "wrong" and "right".
    """
    if isinstance(data, Predictions):
        return (data.probs if data.logits is None else data.logits), data.labels
    return np.stack([1 - data.confidence, data.confidence], axis=1), data.correct.astype(np.intp)


def check_fitting_rows(recalibrator: Any, data: Dataset, labels: IntArray) -> None:
    """Raise InputError, with the name of the class, if all rows to fit on are of one class and the map needs two."""
    names = data.class_names if isinstance(data, Predictions) else ("wrong", "right")
    check_two_classes(recalibrator, labels, names)


def calibrated_by(recalibrator: Any, data: Dataset, scores: FloatArray) -> Dataset:
    """Apply a fitted map, and add the columns of its intervals, if it has any.

    Parameters
    ----------
    recalibrator : transformer
    data : Predictions or ConfidencePredictions
    scores : ndarray, shape (n, K)
        Scores of these rows (see `scores_of`).
    """
    # Intervals of another map are not those of this one.
    kept = {k: column for k, column in data.numbers.items() if not k.startswith(INTERVAL)}
    numbers = {**kept, **interval_columns(recalibrator, data, scores)}
    return with_probabilities(data, recalibrator.transform(scores), numbers)


def with_probabilities(
    data: Dataset, probs: FloatArray, numbers: Mapping[str, FloatArray] | None = None
) -> Dataset:
    """Return the same rows with calibrated probabilities, without logits, and with the method's further numbers per row.

    `Predictions.numbers` of the old probabilities are dropped.
    """
    new_numbers = dict(numbers or {})
    if isinstance(data, Predictions):
        cells = data.cells and cells_after_map(data.cells, probs, data.labels, data.weights)
        return replace(data, probs=probs, logits=None, cells=cells, numbers=new_numbers)
    cells = data.cells and cells_after_map(data.cells, probs, data.correct, data.weights)
    return replace(data, confidence=read_only(probs[:, 1]), numbers=new_numbers, cells=cells)


def interval_columns(
    recalibrator: Any, data: Dataset, scores: FloatArray
) -> Mapping[str, FloatArray]:
    """Return the intervals of a fitted map for some rows, by column name; empty if it has none."""
    names = RECALIBRATORS[recalibrator.key].interval_columns
    if not names:
        return {}
    pairs = recalibrator.intervals(scores)
    # With two classes there is one map, and column names need no class.
    classes = data.class_names if pairs.shape[1] > 1 else ("",)
    return {
        f"{INTERVAL}{name}_{class_name}"
        if class_name
        else f"{INTERVAL}{name}": np.ascontiguousarray(pairs[:, k, end])
        for k, class_name in enumerate(classes)
        for end, name in enumerate(names)
    }


def apply_to_all(data: Dataset, recalibrator: Any, rows: Rows) -> Dataset:
    """Apply a fitted map to all rows; the fitting rows are marked by their split (see `recalibrate`).

    Parameters
    ----------
    data : Predictions or ConfidencePredictions
    recalibrator : transformer
        Fitted on these data, such as that of a `MethodResult`.
    rows : Rows
        The division into fitting rows and evaluation rows.
    """
    calibrated = calibrated_by(recalibrator, data, scores_of(data)[0])
    return calibrated if rows.in_sample else _marked(calibrated, rows.pairs[0][0])


def _marked(data: Dataset, fit: IntArray) -> Dataset:
    """If the data have no splits, mark the fitting rows."""
    if data.splits is not None:
        return data
    names = np.full(data.n, "evaluation", dtype=object)
    names[fit] = "calibration"
    return replace(data, splits=Factor.of(names))


# ---- Saved maps


def reading_for_map(record: Any, options: ReadingOptions) -> ReadingOptions:
    """Return the options for reading files to which a saved map is applied, which need no labels.

    Raises
    ------
    InputError
        If the map is damaged or of another version.
    """
    load_map(record)
    return ReadingForMap.of(options, record.get("class_names", ()))


def reading_of_unlabelled(data: Dataset, options: ReadingOptions) -> ReadingOptions:
    """Return the options for reading further rows without labels, of the classes of these data."""
    names = data.class_names if isinstance(data, Predictions) else ()
    return ReadingForMap.of(options, names)


def apply_map(data: Dataset, record: Any) -> Dataset:
    """Calibrate predictions by a map saved with `to_dict`.

    Raises
    ------
    InputError
        If the map is damaged or of another version, or does not match the classes or the kind of scores.
    """
    recalibrator = load_map(record)
    names = tuple(record.get("class_names", ()))
    scores, _ = scores_of(data)
    k = recalibrator.classes_.size
    if scores.shape[1] != k:
        raise InputError(
            f"the map is for {k} classes, these data have {scores.shape[1]}",
            remedy="apply it to scores of the classes that it was fitted on",
        )
    if isinstance(data, Predictions):
        if not classes_agree(data.class_names, names):
            raise InputError(
                "the map is for other classes, or for another order of them: "
                f"{_first_names(names)} against {_first_names(data.class_names)}",
                remedy="give the score columns in the order of the map (--scores, scores=), name its classes if these have other names "
                "for them (--class-names, class_names=), or fit a map on these data",
            )
        if recalibrator.input == "logits" and data.logits is None:
            raise InputError(
                "the map needs logits, and these data have probabilities only",
                remedy="apply it to the logits, or fit a map on probabilities",
            )
        if recalibrator.input == "probabilities":
            scores = data.probs
    return calibrated_by(recalibrator, data, scores)


def _first_names(names: tuple[str, ...]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")


# ---- Before and after


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
