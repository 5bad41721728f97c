"""Identifiers of rows as text, by which the rows of several files are matched."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import numpy.typing as npt

from calviz.core.factor import Factor

#: What a missing identifier is as text; it matches nothing.
NO_IDENTIFIER = ""

_FRACTION = re.compile(r"([+-]?\d+)\.0+")


def identifier_texts(values: npt.NDArray[Any] | Factor) -> list[str]:
    """Identifiers as text; "1.0" becomes "1", because whole numbers with gaps are often stored as floats."""
    if isinstance(values, Factor):
        factor = values
    else:
        # Missing values of numbers and of objects are unequal to themselves, or None.
        missing = np.array([v is None or v != v for v in values.tolist()], dtype=np.bool_)
        factor = Factor.of(np.where(missing, NO_IDENTIFIER, values.astype(object)))
    levels = [_whole(level.strip()) for level in factor.levels]
    return [levels[code] for code in factor.codes.tolist()]


def _whole(text: str) -> str:
    match = _FRACTION.fullmatch(text)
    return match[1] if match else text
