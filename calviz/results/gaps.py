"""Which gaps between score and share of hits are called slight, and the decimals of a gap and its two shares."""

from __future__ import annotations

#: Differences and errors below this are called slight, and are written with one more digit.
SLIGHT = 0.01
#: Largest number of decimals of a share in percent.
_MOST = 3


def gap_decimals(gap: float) -> int:
    """Number of decimals of a gap in points.

    >>> gap_decimals(-0.0012), gap_decimals(0.071)
    (2, 1)
    """
    return 2 if abs(gap) < SLIGHT else 1


def share_decimals(score: float, hits: float, written: int | None = None, least: int = 1) -> int:
    """Number of decimals of two shares in percent, so that their rounded difference equals the written gap.

    Parameters
    ----------
    score, hits : float
    written : int, optional
        Decimals of their gap in points; from `gap_decimals` if left out.
    least : int

    Examples
    --------
    91.46 % and 79.12 % are 12.3 points apart; with one decimal they would differ by 12.4.

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
