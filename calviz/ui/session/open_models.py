"""All models of the open files, each under a unique name."""

from __future__ import annotations

from dataclasses import dataclass

from calviz.comparison import named_models
from calviz.core.predictions import Dataset
from calviz.ui.session import open_files


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


def on_offer(entry: open_files.Entry) -> tuple[OpenModel, ...]:
    """Return the models of the current file, then those of the other files of the session."""
    entries = [entry, *(e for key, e in open_files.files().items() if key != entry.key)]
    named = named_models([(e.title, e.loaded.models) for e in entries])
    keys = [model_key(e, model) for e in entries for model in e.loaded.models]
    return tuple(
        OpenModel(key, name, data) for key, (name, data) in zip(keys, named.items(), strict=True)
    )


def model_key(entry: open_files.Entry, model: str) -> str:
    """Identify the content of a model, for caches."""
    return f"{entry.content}#{model}"
