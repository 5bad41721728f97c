"""Words on the classes that are off in either direction, for the findings by class."""

from __future__ import annotations

import numpy as np

from calviz.core.arrays import FloatArray


def named_sides(off: FloatArray, words: tuple[str, str]) -> str:
    """Text on how many classes are off in each direction: "overconfident on 2 and underconfident on 1"."""
    sides = ((off > 0, words[0]), (off < 0, words[1]))
    return " and ".join(f"{word} on {int(which.sum()):,}" for which, word in sides if which.any())


def most_if_several(off: FloatArray) -> str:
    """Return "most " if several classes are off, to precede the one furthest off; "" if it is the only one."""
    return "most " if np.count_nonzero(off) > 1 else ""
