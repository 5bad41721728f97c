"""All models of the open files, each under a unique name."""

from __future__ import annotations

from dataclasses import dataclass

from calviz.comparison import named_models
from calviz.core.predictions import Dataset
from calviz.ui.session import open_files
from calviz.ui.session.open_file import OpenFile


@dataclass(frozen=True, eq=False)
class OpenModel:
    """A model of an open file.

    Attributes
    ----------
    key : str
        Identifies its content, for caches.
    name : str
        Unique among all open models.
    data : Predictions or ConfidencePredictions
        All rows.
    """

    key: str
    name: str
    data: Dataset


def all_models(entry: OpenFile) -> tuple[OpenModel, ...]:
    """Return the models of the current file, then those of the other files of the session."""
    entries = [entry, *(each for key, each in open_files.files().items() if key != entry.key)]
    models_by_name = named_models([(each.title, each.loaded.models) for each in entries])
    keys = [model_key(each, model) for each in entries for model in each.loaded.models]
    return tuple(
        OpenModel(key, name, data)
        for key, (name, data) in zip(keys, models_by_name.items(), strict=True)
    )


def model_key(entry: OpenFile, model: str) -> str:
    """Identify the content of a model, for caches."""
    return f"{entry.content_key}#{model}"
