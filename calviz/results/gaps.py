"""When a gap between scores and hits is a slight one, and with how many digits it and its two shares are written."""

from __future__ import annotations

#: Smaller differences and errors are called slight, and have a digit more.
SLIGHT = 0.01
#: No share has more decimals than this, in percent.
_MOST = 3


def gap_decimals(gap: float) -> int:
    """Decimals of a gap in points.

    >>> gap_decimals(-0.0012), gap_decimals(0.071)
    (2, 1)
    """
    return 2 if abs(gap) < SLIGHT else 1


def share_decimals(score: float, hits: float, written: int | None = None, least: int = 1) -> int:
    """Decimals of two shares in percent: as many as it takes for them to differ by what is said to be between them.

    Parameters
    ----------
    score, hits : float
    written : int, optional
        Decimals of their gap in points; those of `gap_decimals` if left out.
    least : int

    Examples
    --------
    Of 91.46 % and 79.12 %, which are 12.3 points apart, one decimal would leave 12.4.

    >>> share_decimals(0.9146, 0.7912), share_decimals(0.9146, 0.7918)
    (2, 1)
    """
    gap = score - hits
    written = gap_decimals(gap) if written is None else written
    for decimals in range(max(least, min(written, _MOST)), _MOST):
        shown = round(100 * score, decimals) - round(100 * hits, decimals)
        if f"{abs(shown):.{written}f}" == f"{abs(100 * gap):.{written}f}":
            return decimals
    return _MOST
