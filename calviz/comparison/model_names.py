"""Unique names for the models of several files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath

from calviz.core.predictions import Dataset


def named_models(
    files: Sequence[tuple[str, Mapping[str, Dataset]]],
) -> dict[str, Dataset]:
    """Return all models of all files, each under a unique name.

    Parameters
    ----------
    files : sequence of (str, mapping of str to Predictions)
        The name of each file and its models.

    Returns
    -------
    dict
        For one file, the names of its models. For several, the file name without its suffix, followed by the
        model's name if the file has several models; numbered if that is not unique.
    """
    named: dict[str, Dataset] = {}
    for file, models in files:
        stem = PurePath(file).stem or file
        for model, data in models.items():
            name = model if len(files) == 1 else stem if len(models) == 1 else f"{stem}: {model}"
            count, base = 1, name
            while name in named:
                count += 1
                name = f"{base} ({count})"
            named[name] = data.renamed(name)
    return named
