"""Which gaps between score and share of hits are called slight, and the decimals of a gap and its two shares.

A gap is rounded by itself. In a sentence or a label, its two shares get enough decimals for their written difference to equal
the written gap; in a table, where all rows of a column have the same decimals, they get one digit more than the gap.
"""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal

from calviz.text.words import decimal, percent, points

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
        high, low = (_number(points(share, decimals)) for share in (score, hits))
        # As a reader rounds the difference: 11.35 is 11.4.
        shown = abs(high - low).quantize(Decimal(1).scaleb(-written), ROUND_HALF_UP)
        if shown == _number(points(abs(gap), written)):
            return decimals
    return _MOST


def _number(text: str) -> Decimal:
    return Decimal(text.replace("−", "-").replace(",", ""))


def two_shares(score: float, hits: float) -> tuple[str, str]:
    """Write a mean score and a share of hits in percent, so that they differ by their gap as it is written.

    >>> two_shares(0.9146, 0.7912), two_shares(0.9438, 0.9448)
    (('91.46 %', '79.12 %'), ('94.38 %', '94.48 %'))
    """
    decimals = share_decimals(score, hits)
    return percent(score, decimals), percent(hits, decimals)


def ends_beside(score: float, interval: tuple[float, float], decimals: int) -> tuple[str, str]:
    """Write the ends of an interval of shares in percent with as few decimals as show that a score is outside.

    Parameters
    ----------
    score : float
    interval : (float, float)
    decimals : int
        Decimals of the score, which are for its gap; there are no more than these.

    Examples
    --------
    >>> ends_beside(0.2333, (0.3152, 0.4640), 2), ends_beside(0.3151, (0.31524, 0.4640), 3)
    (('31.5 %', '46.4 %'), ('31.52 %', '46.40 %'))
    """
    fewest = decimals
    for fewest in range(1, decimals):
        low, high = (round(end, fewest + 2) for end in interval)
        if not low <= round(score, decimals + 2) <= high:
            break
    else:
        fewest = decimals
    return percent(interval[0], fewest), percent(interval[1], fewest)


def two_fractions(score: float, hits: float) -> tuple[str, str]:
    """Write them as fractions, with the same digits.

    >>> two_fractions(0.9146, 0.7912), two_fractions(0.9146, 0.7918)
    (('0.9146', '0.7912'), ('0.915', '0.792'))
    """
    decimals = share_decimals(score, hits) + 2
    return decimal(score, decimals), decimal(hits, decimals)


def share_cell(share: float) -> str:
    """Write a share for a table in which a gap with one decimal in points stands beside it.

    >>> share_cell(0.9146)
    '0.9146'
    """
    return decimal(share, 4)
