"""Apply saved maps to other predictions."""

from __future__ import annotations

from typing import Any

from calviz.comparison.fitting import calibrated_by, scores_of
from calviz.core.errors import InputError
from calviz.core.predictions import Dataset, Predictions
from calviz.data.loaded import ReadingForMap, ReadingOptions, classes_agree
from calviz.recalibrators.maps.loading import load_map


def reading_for_map(record: Any, options: ReadingOptions) -> ReadingOptions:
    """Return the options for reading files to which a saved map is applied, which need no labels.

    Raises
    ------
    InputError
        If the map is damaged or of another version.
    """
    load_map(record)
    return ReadingForMap.of(options, record.get("class_names", ()))


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
                f"{_first(names)} against {_first(data.class_names)}",
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


def _first(names: tuple[str, ...]) -> str:
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "")
