"""From a file to predictions: find the format, recognise the columns, build, say what was done."""

from __future__ import annotations

import hashlib
import io
import os
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import polars as pl

from calviz.core.errors import InputError, OptionError
from calviz.core.predictions import Dataset, Predictions
from calviz.data.types import Loaded, ReadingOptions, Recognition

# First version, for the interface: plain CSV, Parquet and NPZ only.


def read(
    source: str | os.PathLike[str] | bytes | BinaryIO,
    *,
    name: str | None = None,
    options: ReadingOptions = ReadingOptions(),
) -> Loaded:
    """Read a file of predictions."""
    if isinstance(source, bytes):
        data, file = source, name or "upload"
    elif isinstance(source, str | os.PathLike):
        path = Path(source)
        if not path.is_file():
            raise InputError("there is no such file", file=path.name)
        data, file = path.read_bytes(), name or path.name
    else:
        data, file = source.read(), name or Path(str(getattr(source, "name", "upload"))).name
    splits = None
    groups: dict[str, Any] = {}
    if data[:2] == b"PK":
        arrays = np.load(io.BytesIO(data), allow_pickle=False)
        keys = list(arrays)
        score = next((k for k in keys if k in ("probs", "predictions", "probabilities")), None)
        label = next((k for k in keys if k in ("labels", "ground_truth", "y")), None)
        if score is None or label is None:
            raise InputError("no probabilities or no labels", file=file)
        probs, labels = arrays[score], arrays[label].ravel()
        names = tuple(str(j) for j in range(probs.shape[1]))
        columns, scores = tuple(keys), (score,)
    else:
        frame = pl.read_csv(data)
        columns = tuple(frame.columns)
        scores = tuple(c for c in columns if c.startswith(("p_", "prob_")))
        label = next((c for c in columns if c in ("label", "y", "y_true", "target")), None)
        if not scores or label is None:
            raise InputError("no probability columns or no label column", file=file)
        probs = frame.select(scores).to_numpy()
        names = tuple(c.split("_", 1)[1] for c in scores)
        column = frame[label]
        labels = (
            column.to_numpy()
            if column.dtype.is_integer()
            else np.array([names.index(v) for v in column.to_list()])
        )
        splits = frame["split"].to_list() if "split" in columns else None
        groups = {c: frame[c].to_list() for c in columns if c not in (*scores, label, "split")}
    predictions = Predictions(
        probs=probs,
        labels=labels,
        class_names=names,
        name=Path(file).stem,
        splits=splits,  # type: ignore[arg-type]
        groups=groups,
    )
    return Loaded(
        file=file,
        size=len(data),
        models={predictions.name: predictions},
        recognition=Recognition(
            format="CSV",
            kind=predictions.kind,
            label=label,
            label_form="class index",
            scores=scores,
            split_column="split" if splits else None,
            groups=tuple(groups),
            id_column=None,
            class_names=names,
            models=(predictions.name,),
            columns=columns,
            rows=predictions.n,
            split_counts={} if predictions.splits is None else predictions.splits.counts(),
        ),
        hash=lambda: hashlib.blake2b(data, digest_size=32).hexdigest(),
    )


def load(path: str | os.PathLike[str], *, model: str | None = None, **options: Any) -> Dataset:
    """Read one set of predictions from a file."""
    loaded = read(path, options=ReadingOptions(**options))
    if model is None:
        if len(loaded.models) > 1:
            raise OptionError(f"choose a model: {', '.join(loaded.models)}.")
        return loaded.first
    if model not in loaded.models:
        raise OptionError(f"there is no model '{model}'; known: {', '.join(loaded.models)}.")
    return loaded.models[model]
