"""Loading fitted maps from their JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from calviz.core.errors import InputError, OptionError
from calviz.recalibrators.base import BaseRecalibrator
from calviz.recalibrators.maps.saved_maps import check_map
from calviz.specs.recalibrator import RECALIBRATORS


def load_map(source: Any) -> BaseRecalibrator:
    """Load a fitted recalibrator that was saved as JSON.

    Parameters
    ----------
    source : str, PathLike or mapping
        A file written by ``calviz recalibrate --save-map``, or with the JSON of a recalibrator's `to_dict`; or such a record itself.

    Returns
    -------
    transformer
        Its `transform` takes scores, shape (n, K), with the classes in the order of the rows that it was fitted on, which
        ``class_names`` of a file written by the command line names. Its parameter `input` says whether these are probabilities or logits.

    Raises
    ------
    InputError, OptionError
        If the file or record is not a map, is of another version, or is damaged.

    Examples
    --------
    >>> import calviz
    >>> scaling = calviz.recalibrators.TemperatureScaling()
    >>> record = scaling.fit([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7]], [0, 1, 1]).to_dict()
    >>> loaded = calviz.load_map(record)
    >>> loaded.key, loaded.transform([[0.5, 0.5]]).tolist()
    ('temperature', [[0.5, 0.5]])
    """
    if isinstance(source, str | os.PathLike):
        try:
            return _rebuilt(read_record(source))
        except InputError as error:
            raise error.in_file(Path(source).name) from None
    return _rebuilt(source)


def _rebuilt(record: Any) -> BaseRecalibrator:
    check_map(record)
    try:
        cls = type(RECALIBRATORS[str(record["method"])].make())
        loaded: BaseRecalibrator = cls.from_dict(record)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise InputError(f"the map of '{record['method']}' is damaged ({error})") from None
    except OptionError as error:
        raise InputError(f"the map cannot be read: {error}".rstrip(".")) from None
    return loaded


def read_record(path: str | os.PathLike[str]) -> Any:
    """Read the JSON of a saved map from a file; raise InputError if it is not JSON."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise InputError(
            f"this is not JSON ({error})", file=Path(path).name, remedy="give a map from --save-map"
        ) from None
