"""Names that tell the models of several files apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath

from calviz.core.predictions import Dataset


def named_models(
    files: Sequence[tuple[str, Mapping[str, Dataset]]],
) -> dict[str, Dataset]:
    """All models of all files, each under a unique name.

    Parameters
    ----------
    files : sequence of (str, mapping of str to Predictions)
        The name of each file and its models.

    Returns
    -------
    dict
        Of one file: its models' names. Of several: the file's name without its ending, and the
        model's where the file has more than one; numbered where that is not enough.
    """
    named: dict[str, Dataset] = {}
    for file, models in files:
        stem = PurePath(file).stem or file
        for model, data in models.items():
            name = model if len(files) == 1 else stem if len(models) == 1 else f"{stem}: {model}"
            count, wanted = 1, name
            while name in named:
                count += 1
                name = f"{wanted} ({count})"
            named[name] = data.renamed(name)
    return named
