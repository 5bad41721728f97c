"""How numbers, names and tables are written for people, and escaped."""

from __future__ import annotations

import math
import re
import textwrap
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl

    from calviz.core.events import Reduction

#: Control characters, and characters that are invisible or reverse the direction of text.
_INVISIBLE = re.compile(
    r"[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+"
)
#: All white space except the non-breaking space.
_SPACE = re.compile(r"[^\S\u00a0]+")
_DAY = re.compile(r"\d{4}-\d\d-\d\d")


def month_or_day(day: str, days: Iterable[str]) -> str:
    """Write a day as its month or year, if all of these days are the first of one.

    >>> month_or_day("2026-03-01", ["2026-02-01", "2026-03-01"]), month_or_day("2026-03-01", ["2026-03-01", "2026-03-02"])
    ('March 2026', '2026-03-01')
    >>> month_or_day("2026-01-01", ["2025-01-01", "2026-01-01"]), month_or_day("2026-03-01", ["2026-03-01"])
    ('2026', '2026-03-01')
    """
    named = {one if _DAY.fullmatch(one) else "" for one in days}
    if len(named) < 2 or not all(one.endswith("-01") for one in named):
        return day
    first_of_years = all(one.endswith("-01-01") for one in named)
    return date.fromisoformat(day).strftime("%Y" if first_of_years else "%B %Y")


def shorten(text: object, limit: int = 40) -> str:
    """Put text on one line, without invisible characters, cut to `limit` characters with an ellipsis.

    >>> shorten("a very long name", limit=7)
    'a very…'
    """
    line = _SPACE.sub(" ", _INVISIBLE.sub(" ", str(text))).strip()
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


#: An interval of times that begins and ends with a day: up to its last second.
_WHOLE_DAYS = re.compile(r"(> |≤ |\()(\d{4}-\d\d-\d\d) 23:59:59(?:, (\d{4}-\d\d-\d\d) 23:59:59\])?")
_MIDNIGHT = re.compile(r"(?<=^\d{4}-\d\d-\d\d)[ T]00:00:00(\.0+)?$")


def condition(column: str, value: str, limit: int = 10_000) -> str:
    """Write a condition on the rows in words, with each name shortened to `limit` characters.

    >>> condition("age", "(23, 31]"), condition("age", "> 31"), condition("site", "b"), condition("site", "")
    ('age in (23, 31]', 'age > 31', 'site = b', 'site = missing')
    >>> condition("day", "> 2026-07-31 23:59:59"), condition("day", "2026-07-01 00:00:00")
    ('day since 2026-08-01', 'day = 2026-07-01')
    """
    name = shorten(column, limit)
    if days := _WHOLE_DAYS.fullmatch(value):
        sign, first, last = days.groups()
        since = date.fromisoformat(first) + timedelta(1)
        ends = f"{since} to {last}" if last else f"since {since}"
        return f"{name} {f'until {first}' if sign == '≤ ' else ends}"
    value = _MIDNIGHT.sub("", value)
    is_interval = value.startswith("(") and value.endswith("]")
    sign = "" if value.startswith(("≤ ", "> ")) else "in " if is_interval else "= "
    most = max(limit, 44) if is_interval else limit  # both ends of times
    return f"{name} {sign}{shorten(value, most) or 'missing'}"


def capitalised(text: str) -> str:
    """Return the text with a capital first letter; its other letters stay as they are.

    >>> capitalised("after temperature scaling of ResNet")
    'After temperature scaling of ResNet'
    """
    return text[:1].upper() + text[1:]


#: What methods are named after: capital within a sentence, too.
_PROPER = ("Platt", "Bayesian", "Dirichlet", "Gaussian", "Venn")


def within_sentence(label: str) -> str:
    """Return the label of a method as it stands within a sentence.

    >>> within_sentence("Temperature scaling"), within_sentence("Platt scaling")
    ('temperature scaling', 'Platt scaling')
    """
    stays = label.startswith(_PROPER) or label[1:2].isupper()
    return label if stays else label[:1].lower() + label[1:]


def full_sentence(text: str) -> str:
    """Make text begin with a capital letter, unless it begins with a symbol such as n, and end with a full stop.

    >>> full_sentence("not used: date (3 values)"), full_sentence("n = 1: not meaningful."), full_sentence("a class is chosen")
    ('Not used: date (3 values).', 'n = 1: not meaningful.', 'A class is chosen.')
    """
    word = text[1:2].isalpha() or (text[:2] == "a " and text[2:3].isalpha())
    first = text[:1].upper() if word else text[:1]
    return f"{first}{text[1:]}{'' if text[-1:] in '.!?' else '.'}"


def keep_units_together(text: str) -> str:
    """Keep a number and its unit, and "p" and its value, on one line with non-breaking spaces.

    >>> keep_units_together("91.5 % (p = 0.17)") == "91.5\u00a0% (p\u00a0=\u00a00.17)"
    True
    """
    line = re.sub(r"(?<=\d) (?=%|points\b)|(?<=^near) (?=[01]$)", "\u00a0", text)
    return re.sub(r"\bp ([=≤]) (?=\d)", "p\u00a0\\1\u00a0", line)


def in_lines(text: str, width: int) -> str:
    """Allow line breaks only about every `width` characters, so that a narrow column does not break text into many lines.

    >>> in_lines("Platt scaling, then isotonic", 15) == "Platt\u00a0scaling, then\u00a0isotonic"
    True
    """
    return " ".join(
        line.replace(" ", "\u00a0")
        for line in textwrap.wrap(text, width, break_on_hyphens=False, break_long_words=False)
    )


#: What a change means for a map.
NOT_SINCE = "A map fitted on all these rows would not correct the new ones: fit one on the rows since the change."
#: What a map of all rows would do where what is off has ended.
ENDED = "A map fitted on all these rows would correct what has ended: for new rows, take none that is fitted before the change."
#: How what the verdict names second gets its map.
IN_TURN = "For that, compare again on the calibrated file: new rows take both maps in this order."
#: The sentence that replaces all statements about a single row.
SINGLE_ROW = "A single row says nothing about calibration."


def share_intervals(exact: bool) -> str:
    """Name the intervals of shares: exact for independent rows that count alike, approximate for weighted or clustered ones."""
    return (
        "exact (Clopper-Pearson)" if exact else "Clopper-Pearson for the effective number of rows"
    )


def counted(n: int, one: str, many: str | None = None) -> str:
    """Write a number with its noun.

    >>> counted(1, "row"), counted(10_000, "row"), counted(2, "class", "classes")
    ('1 row', '10,000 rows', '2 classes')
    """
    return f"{n:,} {one}" if n == 1 else f"{n:,} {many or one + 's'}"


def bins_words(bins: int, scheme: str) -> str:
    """Say how rows are binned.

    >>> bins_words(15, "equal-width"), bins_words(11, "sturges")
    ('15 equal-width bins', "11 equal-width bins, by Sturges' rule")
    """
    placed = "equal-mass" if scheme == "equal-mass" else "equal-width"
    return counted(bins, f"{placed} bin") + (", by Sturges' rule" if scheme == "sturges" else "")


def listed(names: Sequence[str], *, most: int = 3, limit: int = 30) -> str:
    """List the first few names in quotes, and say how many more there are.

    >>> listed(["a", "b", "c", "d", "e"])
    "'a', 'b', 'c' and 2 more"
    """
    quoted = [f"'{shorten(name, limit)}'" for name in names[:most]]
    more = len(names) - most
    return ", ".join(quoted) + (f" and {more:,} more" if more > 0 else "")


def distinct(names: tuple[str, ...], limit: int = 60) -> dict[str, str]:
    """Map names to distinct short forms for a selection list."""
    positions: dict[str, int] = {}
    result: dict[str, str] = {}
    for position, name in enumerate(names):
        short = shorten(name, limit) or "(empty)"
        if short in positions:
            short = f"{short} [{position}]"
        positions[short] = position
        result[name] = short
    return result


def told_apart(names: Iterable[str], limit: int) -> list[str]:
    """Shorten names; where that makes two alike, leave out what all begin with, else the middle of these, so that their ends tell them apart.

    >>> told_apart(["export_2026_forest", "export_2026_mlp"], 12)
    ['…forest', '…mlp']
    >>> told_apart(["north-west, office 1", "north-west, office 2", "south"], 12)
    ['nort…ffice 1', 'nort…ffice 2', 'south']
    """
    whole = [shorten(name, 1_000) for name in names]
    cut = [shorten(name, limit) for name in whole]
    if len(set(cut)) == len(set(whole)):
        return cut
    alike = takewhile(lambda pair: len({*pair}) == 1, zip(min(whole), max(whole), strict=False))
    common = len(re.sub(r"[^\W_]*$", "", "".join(a for a, _ in alike)))
    ends = [shorten(f"…{name[common:]}", limit) for name in whole]
    if common and len(set(ends)) == len(set(whole)):
        return ends
    head = limit // 3
    tail = limit - head - 1
    often = Counter(cut)
    return [
        c if often[c] == 1 or len(n) <= limit else f"{n[:head].rstrip()}…{n[-tail:].lstrip()}"
        for c, n in zip(cut, whole, strict=True)
    ]


def whole(value: float) -> str:
    """Write a number rounded to a whole number.

    >>> whole(10_000.0)
    '10,000'
    """
    return f"{round(value):,}"


def _exact(value: float | Decimal) -> Decimal:
    """The number as it would be written in full. Ties of decimals go to the even digit, so that shares of a whole still add up."""
    return value if isinstance(value, Decimal) else Decimal(repr(float(value)))


def decimal(value: float | Decimal, decimals: int = 3, *, plus: bool = False) -> str:
    """Write a number with a true minus sign, and optionally with a plus sign.

    >>> decimal(-0.0537), decimal(-0.0001), decimal(2.5, 1, plus=True)
    ('−0.054', '0.000', '+2.5')
    """
    if math.isnan(value):
        return "–"
    text = "∞" if math.isinf(value) else f"{abs(_exact(value)):,.{decimals}f}"
    if not text.strip("0.,"):
        return text
    return f"−{text}" if value < 0 else f"+{text}" if plus else text


def from_on(value: float) -> str:
    """Write a threshold with all of its digits, so that what is written keeps the same rows.

    >>> from_on(0.89432), from_on(0.5)
    ('0.89432', '0.500')
    """
    digits = Decimal(repr(value)).as_tuple().exponent
    return decimal(value, max(3, -digits) if isinstance(digits, int) else 3)


def number(value: float, figures: int = 3) -> str:
    """Write a number with a given number of significant digits, but at most four decimals.

    >>> number(0.123456), number(1234.5)
    ('0.123', '1,234')
    """
    return decimal(value, decimals_for(value, figures=figures, least=0))


def range_end(value: float) -> str:
    """Write an end of the range of a metric.

    >>> range_end(1.0), range_end(-0.5), range_end(-math.inf)
    ('1', '−0.5', '−∞')
    """
    return f"{value:g}".replace("-", "−").replace("inf", "∞")


def points(value: float, decimals: int = 1, *, plus: bool = False) -> str:
    """Write a difference of probabilities in percentage points, without the unit.

    It is rounded as a fraction is: 0.79125 is 0.7912 and 79.12.

    >>> points(0.0607), points(-0.0107), points(0.0607, plus=True), points(0.79125, 2)
    ('6.1', '−1.1', '+6.1', '79.12')
    """
    if not math.isfinite(value):
        return decimal(value, decimals, plus=plus)
    return decimal(100 * _exact(value), decimals, plus=plus)


def points_cell(value: float, decimals: int = 1, *, plus: bool = False) -> str:
    """Write a difference for a column of percentage points; empty for nan.

    >>> points_cell(0.0607, 2), points_cell(math.nan)
    ('6.07', '')
    """
    return "" if math.isnan(value) else points(value, decimals, plus=plus)


def signed_points(value: float, decimals: int = 1) -> str:
    """Write a difference for a column of percentage points, with its sign.

    >>> signed_points(0.0537), signed_points(-0.0014), signed_points(0.0)
    ('+5.4', '−0.1', '0.0')
    """
    return points_cell(value, decimals, plus=True)


def points_text(
    value: float, interval: tuple[float, float] | None = None, level: float = 0.95
) -> str:
    """Write a difference in percentage points, with its interval if given.

    >>> points_text(0.0541, (0.0482, 0.0603))
    '5.41 points (95 % CI 4.82 to 6.03)'
    """
    text = f"{points(value, points_decimals(value))} points"
    return f"{text} ({points_interval(value, interval, level)})" if interval else text


def points_interval(value: float, interval: tuple[float, float], level: float = 0.95) -> str:
    """Write the interval of a difference in percentage points, with as many decimals as the difference.

    >>> points_interval(0.0541, (0.0482, 0.0603))
    '95 % CI 4.82 to 6.03'
    """
    low, high = (points(v, points_decimals(value)) for v in interval)
    return f"{level_text(level)} CI {low} to {high}"


def percent(value: float, decimals: int = 1) -> str:
    """Write a share in percent.

    >>> percent(0.0129)
    '1.3 %'
    """
    return f"{points(value, decimals)} %"


def percent_range(low: float, high: float) -> str:
    """Write both ends of a range of shares in percent.

    >>> percent_range(0.154, 0.2)
    '15.4 to 20.0 %'
    """
    return f"{points(low)} to {percent(high)}"


def percent_numbers(shares: Iterable[float], decimals: int = 1) -> list[float]:
    """Round shares in percent as `percent` writes them, for a column that sorts as numbers.

    A page rounds the ties of such columns upwards, to 81.3, where a sentence says 81.2.

    >>> percent_numbers([0.8125, 0.0129, -0.0001])
    [81.2, 1.3, 0.0]
    """
    # Adding 0 leaves no minus zero.
    return [
        float(round(100 * _exact(share), decimals)) + 0.0 if math.isfinite(share) else share
        for share in shares
    ]


def level_text(level: float) -> str:
    """Write the level of an interval, with as many digits as it was given.

    >>> level_text(0.95)
    '95 %'
    """
    return f"{100 * level:g} %"


def seconds_text(seconds: float) -> str:
    """Write a time in seconds or milliseconds, whichever suits.

    >>> seconds_text(0.0004), seconds_text(0.0213), seconds_text(2.63), seconds_text(0.0)
    ('0.4 ms', '21 ms', '2.6 s', '0 ms')
    """
    if math.isnan(seconds):
        return "–"
    if seconds >= 0.1:
        return f"{seconds:,.1f} s"
    return f"{1_000 * seconds:.{int(0 < seconds < 0.01)}f} ms"


def file_size(n: int) -> str:
    """Write a number of bytes in a suitable unit.

    >>> file_size(53), file_size(12_345)
    ('53 bytes', '12.3 kB')
    """
    if n < 1_000:
        return f"{n:,} bytes"
    for unit in ("kB", "MB", "GB"):
        n_unit = n / 1_000
        if n_unit < 999.5 or unit == "GB":
            return f"{n_unit:,.3g} {unit}"
        n = round(n_unit)
    raise AssertionError


def outside_range(value: float, low: float, high: float) -> tuple[str, str, str]:
    """Write a difference of probabilities and both ends of a range outside of which it lies, in percentage points.

    There are enough decimals to distinguish the difference from the ends.

    >>> outside_range(0.0601, -0.037, 0.0371), outside_range(0.0079, -0.0463, 0.0077)
    (('6.0', '−3.7', '3.7'), ('0.79', '−4.63', '0.77'))
    """
    for decimals in range(decimals_for(100 * value, most=3), 6):
        texts = points(value, decimals), points(low, decimals), points(high, decimals)
        if texts[0] not in texts[1:]:
            break
    return texts


def p_value(p: float) -> str:
    """Write a simulated p-value, which cannot be smaller than about one over the number of resamples.

    >>> p_value(0.000999), p_value(0.0324), p_value(0.57)
    ('p ≤ 0.001', 'p = 0.032', 'p = 0.57')
    """
    text = p_number(p)
    return f"p {text}" if text.startswith("≤") else f"p = {text}"


def p_number(p: float) -> str:
    """Write a p-value for a column of p-values (see `p_value`).

    >>> p_number(0.000999), p_number(0.0324), p_number(0.57), p_number(float("nan"))
    ('≤ 0.001', '0.032', '0.57', 'n/a')
    """
    if p != p:
        return "n/a"
    if p < 0.0015:
        return "≤ 0.001"
    return f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def decimals_for(*values: float, figures: int = 2, least: int = 1, most: int = 4) -> int:
    """Number of decimals that shows `figures` significant digits of the smallest non-zero value.

    >>> decimals_for(6.1, 5.2), decimals_for(0.043, 12.0), decimals_for(0.0537, figures=3)
    (1, 3, 4)
    """
    smallest = min((abs(v) for v in values if v != 0 and math.isfinite(v)), default=1.0)
    return min(most, max(least, figures - 1 - math.floor(math.log10(smallest))))


def points_decimals(*values: float) -> int:
    """Number of decimals for errors in percentage points, the same everywhere: two below ten points, else one.

    >>> points_decimals(0.0935), points_decimals(0.123), points_decimals(0.123, 0.004)
    (2, 1, 2)
    """
    return decimals_for(*(100 * v for v in values), figures=3, least=1, most=2)


def range_ends(low: float, high: float, *, tolerance: float = 0.02) -> tuple[str, str]:
    """Write both ends of a range with as few decimals as keep their error within `tolerance` times its width; 0 and 1 are only these.

    >>> range_ends(0.8, 0.9), range_ends(0.8, 13 / 15), range_ends(0.8, 13 / 15, tolerance=0.06)
    (('0.8', '0.9'), ('0.800', '0.867'), ('0.80', '0.87'))
    >>> range_ends(0.021, 1, tolerance=0.06)
    ('0.02', '1.00')
    """

    def is_close(text: str, end: float) -> bool:
        written = float(text)
        near = abs(written - end) <= tolerance * (high - low)
        return near and (written == end or written not in (0, 1))

    for decimals in range(1, 8):
        texts = f"{low:.{decimals}f}", f"{high:.{decimals}f}"
        if is_close(texts[0], low) and is_close(texts[1], high):
            break
    return texts


def between(low: float, high: float) -> str:
    """Say where a bin lies; of a last bin that takes more than half of all scores, as with equal mass, where it begins.

    >>> between(0.8, 13 / 15), between(0.027, 1)
    ('between 0.80 and 0.87', 'above 0.027')
    """
    if high == 1 and low < 0.5:
        return f"above {decimal(low)}"
    return f"between {' and '.join(range_ends(low, high, tolerance=0.06))}"


def with_short_class(reduction: Reduction, limit: int = 24) -> Reduction:
    """Return a copy of a reduction with the name of its class shortened.

    >>> from calviz.core.events import Reduction
    >>> with_short_class(Reduction("class", class_name="a very long name"), 7).class_name
    'a very…'
    """
    return replace(reduction, class_name=shorten(reduction.class_name, limit))


#: What a score is called; elsewhere a probability.
_NOUNS = {"positive": "forecast", "within-top-r": "sum"}


def too_high(reduction: Reduction) -> tuple[str, str]:
    """Return the words for scores above and below the observed frequency.

    >>> from calviz.core.events import Reduction
    >>> too_high(Reduction()), too_high(Reduction("positive"))
    (('Overconfident', 'Underconfident'), ('Forecast too high', 'Forecast too low'))
    """
    if reduction.kind == "top-label":
        return "Overconfident", "Underconfident"
    noun = _NOUNS.get(reduction.kind, "probability").capitalize()
    return f"{noun} too high", f"{noun} too low"


def score_and_hit(reduction: Reduction) -> tuple[str, str]:
    """Return short names of the mean score and of the share of hits.

    >>> from calviz.core.events import Reduction
    >>> score_and_hit(Reduction())
    ('mean confidence', 'accuracy')
    """
    if reduction.kind == "top-label":
        return "mean confidence", "accuracy"
    return f"mean {_NOUNS.get(reduction.kind, 'probability')}", "frequency"


# ---- Gaps and their two shares
#
# A gap is rounded by itself. In a sentence or a label, its two shares get enough decimals for their written difference to equal
# the written gap; in a table, where all rows of a column have the same decimals, they get one digit more than the gap.


#: Differences and errors below this are called slight, and are written with one more digit.
SLIGHT = 0.01
#: Shares below this are rare: they are off by a factor rather than by points, from `TIMES` on.
RARE, TIMES = 0.05, 1.5


def times_off(score: float, observed: float) -> str:
    """Say by which factor the mean score of something rare is off; "" if it is not rare, or by little.

    >>> times_off(0.0092, 0.004), times_off(0.002, 0.01), times_off(0.4, 0.2), times_off(0.01, 0)
    ('2.3 times too high', '5.0 times too low', '', '')
    """
    low, high = sorted((score, observed))
    if not 0 < low < RARE or high / low < TIMES:
        return ""
    return f"{high / low:.1f} times too {'high' if score > observed else 'low'}"


#: Largest number of decimals of a share in percent.
_MOST = 3


def gap_decimals(gap: float) -> int:
    """Number of decimals of a gap in points.

    >>> gap_decimals(-0.0012), gap_decimals(0.071)
    (2, 1)
    """
    return 2 if abs(gap) < SLIGHT else 1


def amount(text: str) -> str:
    """Say of an amount that is rounded to zero what it is below, as no amount that is stated is none.

    >>> amount("0.00"), amount("0.01")
    ('less than 0.01', '0.01')
    """
    return text if text.strip("0.") else f"less than {text[:-1]}1"


def expected_gap(gap: float) -> str:
    """Write the gap that is expected of a bin or slice that was chosen for its gap.

    >>> expected_gap(0.0712), expected_gap(-0.0012), expected_gap(-1e-6)
    ('about 7.1 points too high', 'about 0.12 points too low', 'less than 0.01 points too low')
    """
    size = f"about {amount(points(abs(gap), gap_decimals(gap)))} points"
    return f"{size.removeprefix('about ' * ('less' in size))} too {'high' if gap > 0 else 'low'}"


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
        # Half a digit may be rounded either way: 11.05 is 11.0 or 11.1.
        apart = abs(high - low) - _number(points(abs(gap), written))
        if abs(apart) <= Decimal(5).scaleb(-written - 1):
            return decimals
    return _MOST


def _number(text: str) -> Decimal:
    return Decimal(text.replace("−", "-").replace(",", ""))


def two_shares(score: float, hits: float, least: int = 2) -> tuple[str, str]:
    """Write a mean score and a share of hits in percent, so that they differ by their gap as it is written.

    >>> two_shares(0.9146, 0.7912), two_shares(0.9438, 0.9448)
    (('91.46 %', '79.12 %'), ('94.38 %', '94.48 %'))
    """
    decimals = share_decimals(score, hits, least=least)
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
    for fewest in range(1, decimals + 1):
        low, high = (round(end, fewest + 2) for end in interval)
        if not low <= round(score, decimals + 2) <= high:
            break
    return percent(interval[0], fewest), percent(interval[1], fewest)


def share_cell(share: float) -> str:
    """Write a share for a table in which a gap with one decimal in points stands beside it.

    >>> share_cell(0.9146)
    '0.9146'
    """
    return decimal(share, 4)


# ---- Escaping
#
# There is one function per target. Pages escape with `calviz.app.session.md`, as only streamlit's Markdown needs that; the
# HTML of reports is escaped by its templates.


#: Some spreadsheets read a cell as a formula if it begins with one of these (full-width forms included), even after blanks.
FORMULA = r"^\s*[=+\-@\uff1d\uff0b\uff0d\uff20]|^[\t\r\n]"
_MARKDOWN = re.compile(r"([\\`*_{}\[\]<>()#|!~$])")
_LATEX = {
    "\\": r"\textbackslash{}",
    **{sign: f"\\{sign}" for sign in "{}$&#%_"},
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "\u00a0": "~",
    "\u2212": "$-$",
    "\u2264": r"$\le$",
    "\u00b2": r"\textsuperscript{2}",
    "\u2013": "--",
    "\u00b7": r"\textperiodcentered{}",
    "\u221e": r"$\infty$",
    "\u2026": r"\dots{}",
}
_PLOTLY = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "$": "&#36;"}


def spreadsheet_text(text: str) -> str:
    """Escape text so that a spreadsheet does not read it as a formula: put an apostrophe before a formula sign.

    Examples
    --------
    >>> spreadsheet_text("=1+1")
    "'=1+1"
    >>> spreadsheet_text("cat")
    'cat'
    """
    return f"'{text}" if re.match(FORMULA, text) else text


def latex_text(text: str) -> str:
    r"""Escape text so that LaTeX prints it as written.

    Examples
    --------
    >>> latex_text("50 % of A_1")
    '50 \\% of A\\_1'
    """
    return "".join(_LATEX.get(sign, sign) for sign in " ".join(text.splitlines()))


def markdown_text(text: str) -> str:
    r"""Escape text so that Markdown shows it as written, on one line.

    Examples
    --------
    >>> markdown_text("a|b")
    'a\\|b'
    """
    return _MARKDOWN.sub(r"\\\1", " ".join(text.splitlines()))


def plotly_text(text: str, limit: int | None = None) -> str:
    """Escape text so that plotly shows it as written, not as HTML or a formula; optionally shortened to `limit` characters.

    plotly interprets a subset of HTML (``<b>``, ``<br>``, ``<a href>``) in every text, and LaTeX between dollar signs if MathJax
    is loaded on the page.

    Examples
    --------
    >>> plotly_text("<b>$x$")
    '&lt;b&gt;&#36;x&#36;'
    """
    # Not html.escape: plotly does not know &quot; and would show it literally.
    shown = text if limit is None else shorten(text, limit)
    return re.sub(r"[&<>$]", lambda m: _PLOTLY[m[0]], shown)


def terminal_text(text: str) -> str:
    r"""Put text on one line, with control characters as escape sequences, so that none reaches the terminal.

    Examples
    --------
    >>> print(terminal_text("a\x1b[31mb\nc"))
    a\x1b[31mb\nc
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


# ---- Tables: CSV without formulas that a spreadsheet would run, Markdown and LaTeX

#: Signed numbers, which begin with a formula sign but are no formulas.
_SIGNED_NUMBER = re.compile(r"[+-]\d[\d.,]*([\s\u00a0(].*)?")


@dataclass(frozen=True)
class CsvStyle:
    """How a table is written as text.

    Attributes
    ----------
    separator, encoding, line_end : str
    decimal_comma : bool
    quoting : {"necessary", "non_numeric", "always"}
        Which cells are quoted.
    above : str
        Lines above the header, such as a title.
    unnamed : tuple of str
        What columns are called that have no name in the header.
    """

    separator: str = ","
    encoding: str = "utf-8"
    line_end: str = "\n"
    decimal_comma: bool = False
    quoting: Literal["necessary", "non_numeric", "always"] = "necessary"
    above: str = ""
    unnamed: tuple[str, ...] = ()


#: Tables that calviz writes of its own accord.
PLAIN_CSV = CsvStyle()
#: Stands around the names of columns without one while they are written.
_UNNAMED = "\x1f"
#: Texts that are the numbers of a column, with a decimal point.
_POINT_NUMBER = r"^[+-]?\d*\.?\d+([eE][+-]?\d+)?$"


#: A number; digits that begin with 0 are a key.
_NUMBER_CELL = r"^[+-]?(0|[1-9][\d.]*)?([.,]\d+)?([eE][+-]?\d+)?$"
#: A signed number as files have it: "-1,5", "+1.425 %".
_SIGNED_CELL = r"^[+-]\d[\d.,]*([eE][+-]?\d+)?( ?%)?$"


def csv_bytes(
    frame: pd.DataFrame, style: CsvStyle = PLAIN_CSV, cells: pl.DataFrame | None = None
) -> bytes:
    """Write a table as CSV with a header; text cells and column names are escaped for spreadsheets.

    Numbers stay numbers, negative ones with their minus sign; those that are missing are empty. The columns of `cells` come first, with
    each text as it is, unless `frame` has a column of the name. Characters that the encoding lacks are written in UTF-8 with its mark.
    """
    # Imported only when a table is written: pages import this module when they are first opened.
    import polars as pl

    # A frame has no two columns without a name.
    marked = {name: f"{_UNNAMED}{name}{_UNNAMED}" for name in style.unnamed}

    def header(name: str) -> str:
        return marked.get(name) or spreadsheet_text(name)

    columns = {header(str(name)): _column(frame[name]) for name in frame.columns}
    if style.decimal_comma:
        columns = {name: _with_commas(column) for name, column in columns.items()}
    quoting: Literal["necessary", "non_numeric", "always", "never"] = style.quoting
    if cells is not None:
        columns = {header(column.name): _escaped(column) for column in cells} | columns
        if style.quoting == "non_numeric" and not (style.separator == "," and style.decimal_comma):
            # All cells are texts here, also the numbers.
            names = (name.replace('"', '""') for name in columns)
            quoted = [_quoted(column, style.separator) for column in columns.values()]
            columns, quoting = dict(zip((f'"{n}"' for n in names), quoted, strict=True)), "never"
    text = pl.DataFrame(columns, strict=False).write_csv(
        line_terminator=style.line_end,
        separator=style.separator,
        decimal_comma=style.decimal_comma,
        quote_style=quoting,
        # Blanks beside each other are one separator.
        null_value='""' if style.separator == " " and style.quoting != "always" else None,
    )
    text = style.above + re.sub(f"{_UNNAMED}.*?{_UNNAMED}", "", text, count=len(marked))
    try:
        return text.encode(style.encoding)
    except UnicodeEncodeError:
        return text.encode("utf-8-sig")


def _quoted(column: pl.Series, separator: str) -> pl.Series:
    """The texts of a column in quotation marks, unless all are numbers that need none."""
    import polars as pl

    if column.dtype != pl.String:
        return column
    has_separator = column.str.contains(separator, literal=True).any()
    if column.str.contains(_NUMBER_CELL).all() and not has_separator:
        return column
    return '"' + column.str.replace_all('"', '""', literal=True) + '"'


def _with_commas(column: pl.Series) -> pl.Series:
    """A column of texts with decimal commas, if all of them are numbers, which are read with points."""
    import polars as pl

    if column.dtype != pl.String or not column.str.contains(_POINT_NUMBER).all():
        return column
    return column.str.replace(".", ",", literal=True)


def _column(column: pd.Series[Any]) -> pl.Series:
    import pandas as pd
    import polars as pl

    if pd.api.types.is_numeric_dtype(column.dtype):
        numbers = pl.Series(column.to_numpy())
        return numbers.fill_nan(None) if numbers.dtype.is_float() else numbers
    return _escaped(pl.Series([None if pd.isna(v) else str(v) for v in column], dtype=pl.String))


def _escaped(texts: pl.Series) -> pl.Series:
    import polars as pl

    # A signed number alone is no formula, and is a class or a group in many files.
    formula = texts.str.contains(FORMULA) & ~texts.str.contains(_SIGNED_CELL)
    formula = formula.fill_null(False)
    return pl.select(pl.when(formula).then("'" + texts).otherwise(texts)).to_series()


def markdown_table(frame: pd.DataFrame, *, caption: str = "", right: Sequence[str] = ()) -> str:
    """Write a table of texts as Markdown, with the columns in `right` aligned right and a caption below.

    Cells are escaped for spreadsheets too, because people paste tables into them.
    """
    head = [_markdown_cell(str(name)) for name in frame.columns]
    rule = ["---:" if name in right else "---" for name in frame.columns]
    body = [[_markdown_cell(str(v)) for v in row] for row in frame.itertuples(index=False)]
    lines = [f"| {' | '.join(row)} |" for row in (head, rule, *body)]
    return "\n".join([*lines, *(["", markdown_text(caption)] if caption else []), ""])


def _markdown_cell(text: str) -> str:
    return markdown_text(text if _SIGNED_NUMBER.fullmatch(text) else spreadsheet_text(text))


def latex_table(frame: pd.DataFrame, *, caption: str = "", right: Sequence[str] = ()) -> str:
    """Write a table of texts as LaTeX (booktabs), with the columns in `right` aligned right."""
    columns = "".join("r" if name in right else "l" for name in frame.columns)
    names = [latex_text(str(name)) for name in frame.columns]
    texts = frame.map(lambda value: latex_text(str(value))).set_axis(names, axis=1)
    table = texts.style.hide(axis="index").to_latex(
        column_format=columns,
        caption=latex_text(caption) or None,
        hrules=True,
        position_float="centering",
    )
    return f"% needs \\usepackage{{booktabs}}\n{table}"
