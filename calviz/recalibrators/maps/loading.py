"""Loading fitted maps from their JSON."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from calviz.core.errors import CalvizError, InputError, OptionError
from calviz.recalibrators.base import BaseRecalibrator
from calviz.recalibrators.maps.fields import damaged
from calviz.recalibrators.maps.saved_maps import check_map
from calviz.specs.recalibrator import RECALIBRATORS, Input


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
        If there is no such file, or the file or record is not a map, is of another version, or is damaged.

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
            return rebuilt(read_record(source))
        except InputError as error:
            raise error.in_file(Path(source).name) from None
    return rebuilt(source)


def rebuilt(record: Any) -> BaseRecalibrator:
    """Return the map of a saved record; raises InputError if it is none, or damaged."""
    check_map(record)
    method = str(record["method"])
    try:
        cls = type(RECALIBRATORS[method].make())
        loaded: BaseRecalibrator = cls.from_dict(record)
    except OptionError as error:
        raise InputError(f"the map cannot be read: {error}".rstrip(".")) from None
    except CalvizError:
        raise
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError) as error:
        raise damaged(method, str(error)) from None
    return loaded


def check_part(whole: BaseRecalibrator, part: BaseRecalibrator, given: Input) -> None:
    """Raise InputError unless a part of a map has the classes of the whole, and takes scores of this kind."""
    if part.classes_.size != whole.classes_.size:
        raise damaged(
            whole.key,
            f"it is for {whole.classes_.size} classes, its part '{part.key}' for {part.classes_.size}",
        )
    if part.input != given:
        raise damaged(whole.key, f"its part '{part.key}' is for {part.input}, not for {given}")


def read_record(path: str | os.PathLike[str]) -> Any:
    """Read the JSON of a saved map from a file; raises InputError if there is none, or if it is not JSON."""
    name = Path(path).name or str(path)
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise InputError("there is no such file", file=name) from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise InputError(f"cannot be opened ({reason})", file=name) from None
    except (UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise InputError(
            f"this is not JSON ({error})", file=name, remedy="give a map from --save-map"
        ) from None
