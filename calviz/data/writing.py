"""Write predictions to a file that calviz and most other tools can read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from calviz.core.atomic_files import check_place, replacing
from calviz.core.errors import InputError, OptionError
from calviz.core.extra_packages import needs
from calviz.core.predictions import Dataset, Predictions

#: Supported file extensions.
SUFFIXES = (".csv", ".parquet", ".npz")
#: Optional packages that each format needs.
_NEEDED = {".csv": ("pandas",), ".parquet": ("pandas", "pyarrow")}


def check_target(path: str | Path) -> Path:
    """Return the path if its format can be written and its directory exists; raise OptionError or MissingPackage otherwise."""
    target = Path(path)
    if target.suffix.lower() not in SUFFIXES:
        raise OptionError(
            f"'{target.name}' must end in {', '.join(SUFFIXES[:-1])} or {SUFFIXES[-1]}."
        )
    check_place(target, f"'{target.name}'")
    needs(*_NEEDED.get(target.suffix.lower(), ()))
    return target


def write_predictions(data: Dataset, path: str | Path) -> None:
    """Write probabilities (or confidences), labels, identifiers, splits, groups, numbers and texts.

    In tables, score columns are named ``p_<class>``, labels are class names, and groups, numbers and texts keep their names; CSV
    text that a spreadsheet would run as a formula is escaped. NPZ files hold ``probs``, ``labels``, ``class_names`` and ``split``,
    ``ids``, ``group_<name>`` and numbers; long texts, of which an array gives every row the length of the longest, are left out.
    """
    target = check_target(path)
    if data.cells is not None:
        raise InputError(
            "a profile holds no rows to write",
            remedy="apply the map to the files: calviz apply FILE... --map MAP.json --out FOLDER",
        )
    with replacing(target) as beside:
        _write(data, beside)


def _write(data: Dataset, target: Path) -> None:
    if target.suffix.lower() == ".npz":
        with target.open("wb") as stream:  # given a path that ends in ".NPZ", savez appends ".npz"
            np.savez(stream, **_arrays(data))  # no object arrays, so nothing is pickled
        return
    import pandas as pd

    frame = pd.DataFrame(_columns(data))
    if target.suffix.lower() == ".parquet":
        frame.to_parquet(target, index=False)
        return
    from calviz.text.export import csv_bytes

    target.write_bytes(csv_bytes(frame))


def _ids_and_splits(data: Dataset) -> dict[str, Any]:
    columns: dict[str, Any] = {}
    if data.ids is not None:
        columns["id"] = np.asarray(data.ids)
    if data.splits is not None:
        columns["split"] = data.splits.values().astype(str)
    return columns


def _columns(data: Dataset) -> dict[str, Any]:
    columns = _ids_and_splits(data)
    columns |= {name: group.values().astype(str) for name, group in data.groups.items()}
    columns |= {name: text.values() for name, text in data.texts.items() if name not in columns}
    if isinstance(data, Predictions):
        columns["label"] = np.asarray(data.class_names, dtype=object)[data.labels]
        for k, name in enumerate(data.class_names):
            columns[f"p_{name}"] = data.probs[:, k]
    else:
        columns["confidence"] = data.confidence
        columns["correct"] = data.correct.astype(np.int8)
    columns |= data.numbers
    return columns


def _arrays(data: Dataset) -> dict[str, Any]:
    ids_and_splits = _ids_and_splits(data)
    arrays: dict[str, Any] = {"ids" if k == "id" else k: v for k, v in ids_and_splits.items()}
    arrays |= {f"group_{name}": g.values().astype(str) for name, g in data.groups.items()}
    arrays |= data.numbers
    if "ids" in arrays and arrays["ids"].dtype == object:
        arrays["ids"] = arrays["ids"].astype(str)
    if isinstance(data, Predictions):
        return arrays | {
            "probs": data.probs,
            "labels": data.labels,
            "class_names": np.asarray(data.class_names, dtype=str),
        }
    return arrays | {"confidence": data.confidence, "correct": data.correct.astype(np.int8)}
