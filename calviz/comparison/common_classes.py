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
    wanted_by = next((n for n, c in named.items() if not _numbered(c)), next(iter(named), None))
    if wanted_by is None:
        return dict(models), []
    wanted, notes = named[wanted_by], []
    result: dict[str, Dataset] = {}
    for name, model in models.items():
        own = model.class_names
        if not own or own == wanted:
            result[name] = model
        elif set(own) == set(wanted):
            result[name] = _reordered(model, wanted)
        elif len(own) == len(wanted) and _numbered(own):
            result[name] = _renamed(model, wanted)
            notes.append(
                f"The classes of '{shorten(name)}' have no names: they are taken in the order of "
                f"'{shorten(wanted_by)}'."
            )
        else:
            only = [c for c in own if c not in wanted] or [c for c in wanted if c not in own]
            raise InputError(
                f"'{shorten(name)}' and '{shorten(wanted_by)}' have {len(own):,} and {len(wanted):,} "
                f"classes that are not the same ({listed(only)} only in one of them)",
                remedy="choose models of one task",
            )
    return result, notes


def _numbered(names: tuple[str, ...]) -> bool:
    return names == tuple(str(j) for j in range(len(names)))


def _reordered(model: Dataset, wanted: tuple[str, ...]) -> Dataset:
    own = {name: j for j, name in enumerate(model.class_names)}
    columns = np.array([own[name] for name in wanted])
    place = np.empty_like(columns)
    place[columns] = np.arange(columns.size)

    def moved(labels: IntArray | None) -> IntArray | None:
        return None if labels is None else place[labels]

    if not isinstance(model, Predictions):
        return replace(
            model,
            labels=moved(model.labels),
            predicted=moved(model.predicted),
            class_names=wanted,
        )
    given = _given(model)
    moved_scores = {key: array[:, columns] for key, array in given.items() if array is not None}
    return replace(model, **(given | moved_scores), labels=place[model.labels], class_names=wanted)


def _renamed(model: Dataset, wanted: tuple[str, ...]) -> Dataset:
    if not isinstance(model, Predictions):
        return replace(model, class_names=wanted)
    return replace(model, **_given(model), class_names=wanted)


def _given(model: Predictions) -> dict[str, Any]:
    """Return the original scores, without probabilities that are the softmax of the logits."""
    probs = None if model.kind == "logits" else model.probs
    return {"probs": probs, "logits": model.logits}
