"""Bring compared models to the same classes in the same order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from calviz.core.arrays import IntArray
from calviz.core.errors import InputError
from calviz.core.predictions import Dataset, Predictions
from calviz.text.words import listed, shorten


def same_classes(models: Mapping[str, Dataset]) -> tuple[dict[str, Dataset], list[str]]:
    """Reorder the classes of all models like those of the first model with class names; return notes on assumptions, too.

    Raises
    ------
    InputError
        If models do not have the same classes.
    """
    named = {name: m.class_names for name, m in models.items() if m.class_names}
    first = next((n for n, c in named.items() if not _numbered(c)), next(iter(named), None))
    if first is None:
        return dict(models), []
    classes, notes = named[first], []
    result: dict[str, Dataset] = {}
    for name, model in models.items():
        own = model.class_names
        if not own or own == classes:
            result[name] = model
        elif set(own) == set(classes):
            result[name] = _reordered(model, classes)
        elif len(own) == len(classes) and _numbered(own):
            result[name] = _renamed(model, classes)
            notes.append(
                f"The classes of '{shorten(name)}' have no names: they are taken in the order of "
                f"'{shorten(first)}'."
            )
        else:
            only = [c for c in own if c not in classes] or [c for c in classes if c not in own]
            raise InputError(
                f"'{shorten(name)}' and '{shorten(first)}' have {len(own):,} and {len(classes):,} "
                f"classes that are not the same ({listed(only)} only in one of them)",
                remedy="choose models of one task",
            )
    return result, notes


def _numbered(names: tuple[str, ...]) -> bool:
    return names == tuple(str(j) for j in range(len(names)))


def _reordered(model: Dataset, classes: tuple[str, ...]) -> Dataset:
    column_of = {name: j for j, name in enumerate(model.class_names)}
    columns = np.array([column_of[name] for name in classes])
    place = np.empty_like(columns)
    place[columns] = np.arange(columns.size)

    def relabelled(labels: IntArray | None) -> IntArray | None:
        return None if labels is None else place[labels]

    if not isinstance(model, Predictions):
        return replace(
            model,
            labels=relabelled(model.labels),
            predicted=relabelled(model.predicted),
            class_names=classes,
        )
    scores = _original_scores(model)
    reordered = {key: array[:, columns] for key, array in scores.items() if array is not None}
    return replace(model, **(scores | reordered), labels=place[model.labels], class_names=classes)


def _renamed(model: Dataset, classes: tuple[str, ...]) -> Dataset:
    if not isinstance(model, Predictions):
        return replace(model, class_names=classes)
    return replace(model, **_original_scores(model), class_names=classes)


def _original_scores(model: Predictions) -> dict[str, Any]:
    """Return the original scores, without probabilities that are the softmax of the logits."""
    probs = None if model.kind == "logits" else model.probs
    return {"probs": probs, "logits": model.logits}
