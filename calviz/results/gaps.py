"""When a gap between scores and hits is a slight one, and with how many digits it is seen."""

from __future__ import annotations

#: Smaller differences and errors are called slight, and have a digit more.
SLIGHT = 0.01


def gap_decimals(gap: float) -> int:
    """Decimals of two shares in percent that differ by this.

    >>> gap_decimals(-0.0012), gap_decimals(0.071)
    (2, 1)
    """
    return 2 if abs(gap) < SLIGHT else 1
