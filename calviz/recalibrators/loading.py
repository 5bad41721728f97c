"""Fitted maps from their JSON."""

from __future__ import annotations

from typing import Any

from calviz.core.errors import InputError, OptionError
from calviz.recalibrators.base import BaseRecalibrator
from calviz.recalibrators.saved_maps import check_map
from calviz.specs.recalibrator import RECALIBRATORS


def load_map(record: Any) -> BaseRecalibrator:
    """The recalibrator that wrote a record with `to_dict`, fitted as it was.

    Raises
    ------
    InputError, OptionError
        Where the record is no map, of another version, or damaged.
    """
    check_map(record)
    try:
        cls = type(RECALIBRATORS[str(record["method"])].make())
        found: BaseRecalibrator = cls.from_dict(record)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise InputError(f"the map of '{record['method']}' is damaged ({error})") from None
    except OptionError as error:
        raise InputError(f"the map cannot be read: {error}".rstrip(".")) from None
    return found
