"""Loading fitted maps from their JSON."""

from __future__ import annotations

from typing import Any

from calviz.core.errors import InputError, OptionError
from calviz.recalibrators.base import BaseRecalibrator
from calviz.recalibrators.maps.saved_maps import check_map
from calviz.specs.recalibrator import RECALIBRATORS


def load_map(record: Any) -> BaseRecalibrator:
    """Rebuild the fitted recalibrator whose `to_dict` wrote the record.

    Raises
    ------
    InputError, OptionError
        If the record is not a map, is of another version, or is damaged.
    """
    check_map(record)
    try:
        cls = type(RECALIBRATORS[str(record["method"])].make())
        loaded: BaseRecalibrator = cls.from_dict(record)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise InputError(f"the map of '{record['method']}' is damaged ({error})") from None
    except OptionError as error:
        raise InputError(f"the map cannot be read: {error}".rstrip(".")) from None
    return loaded
