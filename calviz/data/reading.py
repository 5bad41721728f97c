"""From a file to predictions: find the format, recognise the columns, build the predictions, report what was done."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from calviz.core.errors import InputError, OptionError
from calviz.core.finding import Finding
from calviz.core.predictions import Dataset
from calviz.data.building.build import Built, build
from calviz.data.file_bytes import Source
from calviz.data.folders import Logs, Together
from calviz.data.format import format_of
from calviz.data.joining import LabelFile, in_label_file, join
from calviz.data.loaded import Loaded, ReadingForMap, ReadingOptions, Recognition
from calviz.data.multiple_choice import by_choices
from calviz.data.notices import Notice
from calviz.data.profile_files import facts_in
from calviz.data.profile_files import loaded as loaded_profile
from calviz.data.profile_files import of_table as profile_of
from calviz.data.recognition.layout import ColumnRoles
from calviz.data.recognition.recognise import recognise, with_array_names
from calviz.data.table import Table

_EMPTY = ReadingOptions()


def read(
    source: str | os.PathLike[str] | bytes | BinaryIO | Together,
    *,
    name: str | None = None,
    options: ReadingOptions = _EMPTY,
    labels: LabelFile | None = None,
) -> Loaded:
    """Read a file of predictions in any supported format; the layout is recognised.

    Parameters
    ----------
    source : str, PathLike, bytes, binary file object, or tuple of (str, bytes)
        The file; or a folder of logs of language models, or names and bytes of several logs, which are read as one. Nothing in it is
        ever executed or unpickled.
    name : str, optional
        Name in messages and results; the file's own name if left out.
    options : ReadingOptions
        Settings for reading; everything left empty is recognised.
    labels : LabelFile, optional
        Another file that holds the labels of the same rows, joined by an identifier.

    Returns
    -------
    Loaded
        The predictions of each model, and what was recognised.

    Raises
    ------
    InputError
        If the file cannot be read; one sentence names file, row, line, column, the rule and the remedy. Its
        `repairs` can be requested with ``options.repair``.
    OptionError
        If an option does not fit the file.
    """
    # NumPy need not warn: non-finite values are found and reported.
    with np.errstate(all="ignore"):
        if isinstance(source, str | os.PathLike) and Path(source).is_dir() and labels is None:
            return _read_logs(Logs.of_folder(Path(source), name), options)
        if isinstance(source, tuple):
            return _read_logs(Logs.of_files(source, name), options)
        with Source(source, name) as opened:
            return _read(opened, options, labels)


def _read_logs(logs: Logs, options: ReadingOptions) -> Loaded:
    try:
        digest = logs.hasher()
        loaded = of_table(logs.table(), options, name=logs.name)
    except InputError as error:
        raise error.in_file(logs.name) from None
    return replace(loaded, file=logs.name, size=logs.size, hash=digest)


def _read(opened: Source, options: ReadingOptions, labels: LabelFile | None) -> Loaded:
    try:
        digest = opened.hasher()
        table = format_of(opened).open(opened)
        if isinstance(options, ReadingForMap):
            table = table.for_map()
        if labels is not None:
            table, options = join(table, opened.name, labels, options)
        facts = facts_in(table)
        if facts is not None:
            loaded = loaded_profile(profile_of(table, facts), _stem(opened.name))
        else:
            try:
                loaded = of_table(table, options, name=_stem(opened.name))
            except InputError as error:
                raise in_label_file(table, error).but(columns=table.names) from None
    except InputError as error:
        raise error.in_file(opened.name) from None
    except MemoryError:
        raise InputError("there is not enough memory to read it", file=opened.name) from None
    return replace(loaded, file=opened.name, size=opened.size, hash=digest)


def of_table(table: Table, options: ReadingOptions, *, name: str) -> Loaded:
    """Recognise the columns of a table and build its predictions, which get the name `name` if there is only one model.

    Raises
    ------
    InputError, OptionError
        As in `read`, without a file name.
    """
    table, options = by_choices(table, options)
    options = with_array_names(table, options)
    layout = recognise(table, options)
    built = build(table, layout, options, name)
    return Loaded(
        file=name,
        size=0,
        models=built.models,
        recognition=_recognition(table, layout, built),
        hash=lambda: "",
        notices=_notices(table, layout, built),
        repairs_offered=tuple(built.offered),
        repairs_made=tuple(built.repairs),
        types=_types(table, layout),
    )


def _types(table: Table, layout: ColumnRoles) -> Mapping[str, Any]:
    types = dict(table.types)
    renamed = {"id": layout.id, "split": layout.split}
    return types | {new: types[name] for new, name in renamed.items() if name in types}


def load(
    path: str | os.PathLike[str],
    *,
    model: str | None = None,
    labels: str | os.PathLike[str] | None = None,
    on: str | None = None,
    **options: Any,
) -> Dataset:
    """Read one set of predictions from a file.

    Parameters
    ----------
    path : str or PathLike
        A file, or a folder of logs of language models.
    model : str, optional
        Which model, if the file holds several.
    labels : str or PathLike, optional
        Another file that holds the labels of the same rows.
    on : str, optional
        The column that identifies the rows in both files.
    **options
        Fields of `ReadingOptions` (``label="y"``, ``kind="logits"``, ``repair=["renormalise"]``).

    Returns
    -------
    Predictions or ConfidencePredictions

    Raises
    ------
    InputError, OptionError
        As in `read`; also if the file holds several models and none was chosen.
    """
    if on is not None and labels is None:
        raise OptionError(
            "'on' names the identifier of two files: give the file with the labels too."
        )
    other = None if labels is None else LabelFile(labels, on)
    try:
        return one_model(read(path, options=options_of(options), labels=other), model)
    except InputError as error:
        raise error.in_code() from error.__cause__


def options_of(options: Mapping[str, Any]) -> ReadingOptions:
    """Make reading options from keyword arguments; raise OptionError for an unknown one."""
    names = set(ReadingOptions.__dataclass_fields__)
    if wrong := sorted(set(options) - names):
        raise OptionError(
            f"there is no reading option '{', '.join(wrong)}'; known: {', '.join(sorted(names))}."
        )
    return ReadingOptions(**options)


def one_model(loaded: Loaded, model: str | None) -> Dataset:
    """Return the chosen model of a file, or its only one; raise OptionError if that is ambiguous."""
    models = loaded.models
    if model is None and len(models) > 1:
        raise OptionError(f"the file holds several models; choose one of: {', '.join(models)}.")
    if model is not None and model not in models:
        raise OptionError(f"there is no model '{model}'; known: {', '.join(models)}.")
    return next(iter(models.values())) if model is None else models[model]


def _stem(name: str) -> str:
    stem = name.removesuffix(".gz")
    return Path(stem).stem or name


def _recognition(table: Table, layout: ColumnRoles, built: Built) -> Recognition:
    data = next(iter(built.models.values()))
    scores = layout.scores[0].columns if layout.scores else ()
    if layout.confidence is not None:
        scores = (layout.confidence.score,)
    return Recognition(
        format=table.format,
        kind=built.kind,
        label=(layout.label or ", ".join(layout.one_hot) or None) if built.label_form else None,
        label_form=built.label_form,
        scores=scores,
        split_column=layout.split,
        groups=built.groups,
        id_column=layout.id,
        class_names=built.class_names,
        models=tuple(built.models),
        columns=table.names,
        rows=data.n,
        cluster_column=layout.cluster,
        weight_column=layout.weight,
        time_column=layout.time if data.times is not None else None,
        split_counts={} if data.splits is None else data.splits.counts(),
        choices=() if table.questions is None else table.questions.numbers,
    )


def _notices(table: Table, layout: ColumnRoles, built: Built) -> tuple[Finding, ...]:
    repairs = (
        Notice.REPAIRED.finding("warning", f"changed as asked: {what}") for what in built.repairs
    )
    return (*table.notices, *layout.notices, *built.notices, *repairs)
