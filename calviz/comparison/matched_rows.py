"""Match the rows of several models by identifier, or by order if the labels agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from calviz.comparison.common_classes import same_classes
from calviz.core.arrays import IntArray
from calviz.core.clusters_and_weights import with_rows
from calviz.core.errors import InputError
from calviz.core.identifiers import NO_IDENTIFIER, identifier_texts
from calviz.core.predictions import Dataset
from calviz.results.model_comparison import Alignment
from calviz.text.words import counted, shorten

NamedModels = Mapping[str, Dataset]


def align(models: NamedModels) -> Alignment:
    """Align models to the same rows, in the order of the first one.

    Rows are matched by identifier if every model has identifiers; those that occur more than once in
    a model are left out, as are rows whose true labels differ. Without identifiers, rows are matched
    by their order, provided that the labels agree in every row.

    Parameters
    ----------
    models : mapping of str to Predictions or ConfidencePredictions
        Models by name. Splits and groups are taken from the first one that has them.

    Raises
    ------
    InputError
        If rows or classes cannot be matched; the sentence says why.
    """
    if not models:
        raise InputError("there are no models to compare", remedy="give at least one")
    models, notes = same_classes(models)
    ids = {
        name: np.array(identifier_texts(m.ids)) for name, m in models.items() if m.ids is not None
    }
    if len(ids) < len(models):
        notes.append(_check_order(models))
        return Alignment(_same_columns(models), "order", tuple(notes))
    first, *others = ids.values()
    if all(np.array_equal(first, other) for other in others):
        notes.append(f"The identifiers of all {counted(first.size, 'row')} are the same.")
    else:
        rows, notes_on_rows = _by_identifier(ids)
        models = {name: m.take(rows[name]) for name, m in models.items()}
        notes += notes_on_rows
    models, notes_on_labels = _same_labels(models)
    return Alignment(_same_columns(models), "identifier", tuple(notes + notes_on_labels))


def _check_order(models: NamedModels) -> str:
    """Return a sentence on why rows may be matched by their order; raises InputError if they may not."""
    (name, first), *others = models.items()
    remedy = "add a column with identifiers to every file"
    for other_name, other in others:
        both = f"'{shorten(name)}' and '{shorten(other_name)}'"
        if first.n != other.n:
            raise InputError(
                f"{both} cannot be matched: they have {first.n:,} and {counted(other.n, 'row')}, "
                "and not both have identifiers",
                remedy=remedy,
            )
        if first.labels is None or other.labels is None:
            raise InputError(
                f"{both} cannot be matched: without identifiers and true labels nothing says that "
                "their rows are the same",
                remedy=remedy,
            )
        differ = np.flatnonzero(first.labels != other.labels)
        if differ.size:
            raise InputError(
                f"{both} cannot be matched by the order of their rows: the true labels differ in "
                f"{counted(differ.size, 'row')}, first in row {differ[0] + 1:,}",
                remedy=remedy,
            )
    if not others:
        return f"There is one model, with {counted(first.n, 'row')}."
    note = (
        "The rows are matched by their order: there are no identifiers, and the true labels agree "
        f"in all {counted(first.n, 'row')}."
    )
    assert first.labels is not None
    if np.all(first.labels == first.labels[0]):
        note += " All labels are the same class, so their agreement is weak evidence."
    return note


def _by_identifier(
    ids: Mapping[str, npt.NDArray[Any]],
) -> tuple[dict[str, IntArray], list[str]]:
    """Return the matched rows of each model, in the order of the first, and notes on what did not match."""
    notes: list[str] = []
    once: dict[str, npt.NDArray[Any]] = {}
    place: dict[str, IntArray] = {}
    for name, column in ids.items():
        values, at, counts = np.unique(column, return_index=True, return_counts=True)
        absent = values == NO_IDENTIFIER
        if absent.any():
            rows = counted(int(counts[absent].sum()), "row")
            notes.append(f"{rows} of '{shorten(name)}' left out: there is no identifier.")
            values, at, counts = values[~absent], at[~absent], counts[~absent]
        single = counts == 1
        once[name], place[name] = values[single], at[single]
        if not single.all():
            rows = counted(int(counts[~single].sum()), "row")
            notes.append(
                f"{rows} of '{shorten(name)}' left out: their identifiers occur more than once there."
            )
    names = list(ids)
    common = once[names[0]]
    for name in names[1:]:
        common = np.intersect1d(common, once[name], assume_unique=True)
    if common.size == 0:
        raise InputError(
            f"no identifier is in all of {', '.join(repr(shorten(n)) for n in names)}",
            remedy="choose files of the same rows, or read them without identifiers to match by order",
        )
    rows_of = {name: place[name][np.searchsorted(once[name], common)] for name in names}
    order = np.argsort(rows_of[names[0]])
    for name in names:
        missing = once[name].size - common.size
        if missing:
            notes.append(
                f"{counted(missing, 'row')} of '{shorten(name)}' left out: not every other model has "
                "their identifiers."
            )
    matched = f"{counted(common.size, 'row')} matched by identifier."
    return {name: rows[order] for name, rows in rows_of.items()}, [matched, *notes]


def _same_labels(models: NamedModels) -> tuple[NamedModels, list[str]]:
    """Leave out the rows whose true label differs between the models that have labels."""
    labels_of = {name: m.labels for name, m in models.items() if m.labels is not None}
    if len(labels_of) < 2:
        return models, []
    (name, first), *others = labels_of.items()
    differ = np.zeros(first.shape, dtype=np.bool_)
    for _, labels in others:
        differ |= labels != first
    if not differ.any():
        return models, []
    if differ.all():
        raise InputError(
            f"the true labels of '{shorten(name)}' and the other models differ in every row",
            remedy="choose files with the same labels",
        )
    rows = counted(int(differ.sum()), "row")
    keep = np.flatnonzero(~differ)
    return {key: m.take(keep) for key, m in models.items()}, [
        f"{rows} left out: their true labels are not the same in every model."
    ]


def _same_columns(models: NamedModels) -> NamedModels:
    """Give all models the splits, groups, clusters, weights and times of the first model that has them, and the ids of the first."""
    splits = next((m.splits for m in models.values() if m.splits is not None), None)
    groups = next((m.groups for m in models.values() if m.groups), {})
    clusters = next((m.clusters for m in models.values() if m.clusters is not None), None)
    weights = next((m.weights for m in models.values() if m.weights is not None), None)
    times = next((m.times for m in models.values() if m.times is not None), None)
    first = next(iter(models.values()))
    names: dict[str, str] = {}
    for m in reversed(list(models.values())):
        names |= {k: v for k, v in m.column_names.items() if getattr(m, k) is not None}
    return {
        name: with_rows(
            m.with_columns(splits=splits, groups=groups, ids=first.ids),
            clusters=clusters,
            weights=weights,
            times=times,
            names=names,
        )
        for name, m in models.items()
    }
