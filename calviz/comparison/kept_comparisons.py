"""Comparisons kept in a folder, so that a link to one need not fit its methods again.

A comparison is one NPZ file: a JSON record of the result with its maps, and the calibrated rows of cross-fitted methods, which
leave no map. Nothing in it is code; a file that does not fit this version is as good as none.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from calviz import __version__
from calviz.comparison.comparison_results import (
    Advice,
    Comparison,
    Difference,
    MethodResult,
    RowsUsed,
)
from calviz.comparison.fitting import with_probabilities
from calviz.core.errors import CalvizError
from calviz.core.limits import replacing
from calviz.core.predictions import Dataset, Predictions
from calviz.recalibrators.base import BaseRecalibrator, load_map
from calviz.sample.error_bars import Interval, NoiseFloor
from calviz.sample.metric_results import MetricResult

#: Bytes of all files of a folder; beyond it, those that were not used for longest are removed.
FOLDER_BYTES = 500_000_000
#: Raised whenever a result of this version would read differently.
_FORMAT = 1
_RECORD = "record"
_CLASSES = {
    cls.__name__: cls
    for cls in (
        Comparison, MethodResult, MetricResult, Difference, Advice, RowsUsed, Interval, NoiseFloor,
    )
}  # fmt: skip


@dataclass(frozen=True)
class KeptComparisons:
    """The comparisons in a folder.

    Attributes
    ----------
    folder : Path
        It is made when the first comparison is kept.
    limit : int
        Bytes of all its comparisons.
    """

    folder: Path
    limit: int = FOLDER_BYTES

    def __contains__(self, key: tuple[str, ...]) -> bool:
        return self._path(key).is_file()

    def keep(self, key: tuple[str, ...], comparison: Comparison) -> None:
        """Write a comparison; one that cannot be written (no space, no right) is not kept.

        Parameters
        ----------
        key : tuple of str
            Identifies the data, how they are divided, and the plan.
        comparison : Comparison
        """
        record = json.dumps(_plain(comparison)).encode()
        arrays = {_RECORD: np.frombuffer(record, np.uint8)}
        for method in comparison:
            if method.recalibrator is None and method.calibrated is not None:
                arrays |= _rows(method.key, method.calibrated)
        with suppress(OSError, CalvizError):
            self.folder.mkdir(parents=True, exist_ok=True)
            with replacing(self._path(key)) as path, path.open("wb") as stream:
                np.savez(stream, allow_pickle=False, **arrays)
            self._make_room()

    def get(self, key: tuple[str, ...], judged: Dataset) -> Comparison | None:
        """Read a comparison; None if it was not kept.

        Parameters
        ----------
        key : tuple of str
            As in `keep`.
        judged : Predictions or ConfidencePredictions
            The evaluation rows before recalibration.
        """
        path = self._path(key)
        try:
            # NumPy leaves a path that is no NPZ file open.
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            kept: Comparison = _rebuilt(json.loads(arrays.pop(_RECORD).tobytes()))
            methods = {m.key: _with_rows(m, judged, arrays) for m in kept}
            path.touch()
        except (OSError, EOFError, ValueError, KeyError, TypeError, BadZipFile, CalvizError):
            return None
        return replace(kept, methods=methods)

    def _path(self, key: tuple[str, ...]) -> Path:
        of = repr((__version__, _FORMAT, key))
        return self.folder / f"{hashlib.sha256(of.encode()).hexdigest()[:32]}.npz"

    def _make_room(self) -> None:
        known = [(f.stat().st_mtime, f.stat().st_size, f) for f in self.folder.glob("*.npz")]
        held = 0
        for _, size, file in sorted(known, reverse=True):
            held += size
            if held > self.limit:
                file.unlink(missing_ok=True)


def _plain(value: Any) -> Any:
    """Return a value as JSON that says which tuple, mapping or class it was."""
    if isinstance(value, BaseRecalibrator):
        return {"map": value.to_dict()}
    if isinstance(value, MethodResult):
        value = replace(value, calibrated=None)
    kind = type(value).__name__
    if _CLASSES.get(kind) is type(value):
        names = [f.name for f in fields(value)] if is_dataclass(value) else value._fields
        return {kind: {name: _plain(getattr(value, name)) for name in names}}
    if isinstance(value, Mapping):
        return {"mapping": [[k, _plain(v)] for k, v in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [_plain(v) for v in value]}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _rebuilt(value: Any) -> Any:
    if isinstance(value, list):
        return [_rebuilt(v) for v in value]
    if not isinstance(value, dict):
        return value
    [(kind, content)] = value.items()
    if kind == "map":
        return load_map(content)
    if kind == "mapping":
        return {k: _rebuilt(v) for k, v in content}
    if kind == "tuple":
        return tuple(_rebuilt(v) for v in content)
    return _CLASSES[kind](**{name: _rebuilt(v) for name, v in content.items()})


def _rows(method: str, calibrated: Dataset) -> dict[str, np.ndarray]:
    of_map = calibrated.probs if isinstance(calibrated, Predictions) else calibrated.confidence
    numbers = {f"{method}/{name}": column for name, column in calibrated.numbers.items()}
    return {method: of_map, **numbers}


def _with_rows(
    method: MethodResult, judged: Dataset, arrays: Mapping[str, np.ndarray]
) -> MethodResult:
    probs = arrays.get(method.key)
    if probs is None:
        return method
    numbers = {
        name.removeprefix(f"{method.key}/"): column
        for name, column in arrays.items()
        if name.startswith(f"{method.key}/")
    }
    if probs.ndim == 1:
        probs = np.column_stack([1 - probs, probs])
    return replace(method, calibrated=with_probabilities(judged, probs, numbers))
