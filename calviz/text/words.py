"""How numbers and names are written in sentences, captions and tooltips (plain text, not escaped)."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from calviz.core.reduction import Reduction

#: Control characters, and those that are invisible or turn the direction of the text round.
_INVISIBLE = re.compile(
    r"[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+"
)


def shorten(text: str, limit: int = 40) -> str:
    """Text on one line, without invisible characters, cut at `limit` with an ellipsis.

    >>> shorten("a very long name", limit=7)
    'a very…'
    """
    line = " ".join(_INVISIBLE.sub(" ", text).split())
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


def as_sentence(text: str) -> str:
    """Text that begins with a capital letter, unless that is a symbol, and ends with a full stop.

    >>> as_sentence("not used: date (3 values)"), as_sentence("n = 1: not meaningful.")
    ('Not used: date (3 values).', 'n = 1: not meaningful.')
    """
    first = text[:1].upper() if text[1:2].isalpha() else text[:1]
    return f"{first}{text[1:]}{'' if text[-1:] in '.!?' else '.'}"


def together(text: str) -> str:
    """Keep a number and its unit, and a p and its value, on one line.

    >>> together("91.5 % (p = 0.17)") == "91.5\u00a0% (p\u00a0=\u00a00.17)"
    True
    """
    line = re.sub(r"(?<=\d) (?=%|points\b)|(?<=^near) (?=[01]$)", "\u00a0", text)
    return re.sub(r"\bp ([=≤]) (?=\d)", "p\u00a0\\1\u00a0", line)


def counted(n: int, one: str, many: str | None = None) -> str:
    """A number and its noun.

    >>> counted(1, "row"), counted(10_000, "row"), counted(2, "class", "classes")
    ('1 row', '10,000 rows', '2 classes')
    """
    return f"{n:,} {one}" if n == 1 else f"{n:,} {many or one + 's'}"


def listed(names: Sequence[str], *, most: int = 3, limit: int = 30) -> str:
    """The first few names in quotes, and how many more there are.

    >>> listed(["a", "b", "c", "d", "e"])
    "'a', 'b', 'c' and 2 more"
    """
    quoted = [f"'{shorten(name, limit)}'" for name in names[:most]]
    more = len(names) - most
    return ", ".join(quoted) + (f" and {more:,} more" if more > 0 else "")


def decimal(value: float, decimals: int = 3) -> str:
    """A number with a true minus sign.

    >>> decimal(-0.0537), decimal(-0.0001)
    ('−0.054', '0.000')
    """
    if math.isnan(value):
        return "–"
    text = f"{abs(value):,.{decimals}f}"
    return f"−{text}" if value < 0 and float(text.replace(",", "")) != 0 else text


def points(value: float, decimals: int = 1) -> str:
    """A difference of probabilities in percentage points, without the unit.

    >>> points(0.0607), points(-0.0107)
    ('6.1', '−1.1')
    """
    return decimal(100 * value, decimals)


def percent(value: float, decimals: int = 1) -> str:
    """A share.

    >>> percent(0.0129)
    '1.3 %'
    """
    return f"{points(value, decimals)} %"


def outside(value: float, low: float, high: float) -> tuple[str, str, str]:
    """A difference of probabilities and the range that it lies outside of, in percentage points.

    They have as many decimals as tell the difference from the ends of the range.

    >>> outside(0.0601, -0.037, 0.0371), outside(0.0079, -0.0463, 0.0077)
    (('6.0', '−3.7', '3.7'), ('0.79', '−4.63', '0.77'))
    """
    for decimals in range(decimals_for(100 * value, most=3), 6):
        texts = points(value, decimals), points(low, decimals), points(high, decimals)
        if texts[0] not in texts[1:]:
            break
    return texts


def p_value(p: float) -> str:
    """A p-value by simulation, which cannot go below one in so many resamples.

    >>> p_value(0.000999), p_value(0.0324), p_value(0.57)
    ('p ≤ 0.001', 'p = 0.032', 'p = 0.57')
    """
    text = p_number(p)
    return f"p {text}" if text.startswith("≤") else f"p = {text}"


def p_number(p: float) -> str:
    """A p-value in a column of p-values (see `p_value`).

    >>> p_number(0.000999), p_number(0.0324), p_number(0.57)
    ('≤ 0.001', '0.032', '0.57')
    """
    if p < 0.0015:
        return "≤ 0.001"
    return f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def decimals_for(*values: float, figures: int = 2, least: int = 1, most: int = 4) -> int:
    """Decimals that leave so many significant digits of the smallest of the values that are not 0.

    >>> decimals_for(6.1, 5.2), decimals_for(0.043, 12.0), decimals_for(0.0537, figures=3)
    (1, 3, 4)
    """
    smallest = min((abs(v) for v in values if v != 0 and math.isfinite(v)), default=1.0)
    return min(most, max(least, figures - 1 - math.floor(math.log10(smallest))))


def ends(low: float, high: float, *, tolerance: float = 0.02) -> tuple[str, str]:
    """Both ends of a range, with as few decimals as leave an error of this share of its width.

    >>> ends(0.8, 0.9), ends(0.8, 13 / 15), ends(0.8, 13 / 15, tolerance=0.06)
    (('0.8', '0.9'), ('0.800', '0.867'), ('0.80', '0.87'))
    """
    width = high - low
    for decimals in range(1, 8):
        texts = f"{low:.{decimals}f}", f"{high:.{decimals}f}"
        if all(
            abs(float(t) - v) <= tolerance * width for t, v in zip(texts, (low, high), strict=True)
        ):
            return texts
    return texts


def too_high(reduction: Reduction) -> tuple[str, str]:
    """What scores above and below the observed frequency are called.

    >>> too_high(Reduction()), too_high(Reduction("positive"))
    (('Overconfident', 'Underconfident'), ('Forecast too high', 'Forecast too low'))
    """
    if reduction.kind == "top-label":
        return "Overconfident", "Underconfident"
    noun = {"positive": "Forecast", "within-top-r": "Sum"}.get(reduction.kind, "Probability")
    return f"{noun} too high", f"{noun} too low"


def score_and_hit(reduction: Reduction) -> tuple[str, str]:
    """Short names of the mean score and of the share of hits.

    >>> score_and_hit(Reduction())
    ('mean confidence', 'accuracy')
    """
    if reduction.kind == "top-label":
        return "mean confidence", "accuracy"
    if reduction.kind == "positive":
        return "mean forecast", "frequency"
    if reduction.kind == "within-top-r":
        return "mean sum", "frequency"
    return "mean probability", "frequency"
