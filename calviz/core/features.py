"""Columns as they are sliced: numbers and dates cut into intervals, texts of many values grouped; and the dates that texts hold."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from calviz.core.blocks import Factor, FloatArray, IntArray, read_only
from calviz.core.errors import InputError, OptionError, shortened

#: Numbers and dates are cut at this many quantiles, the last of them the largest value.
INTERVALS = 10
#: Edges that may be chosen for a column.
MOST_EDGES = 200
#: Columns of text with more values than this are numbers or dates, or are grouped.
FEW_VALUES = 50
_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday"
_MONTHS = "January February March April May June July August September October November December"
#: What of a time comes round again: the unit of NumPy, the place of 1970-01-01 in the cycle, its values, how many a range of them has at most, and the days that a file needs.
CYCLES = {
    "hour": ("h", 0, tuple(map(str, range(24))), 12, 7),
    "weekday": ("D", 3, tuple(_DAYS.split()), 5, 40),
    "month": ("M", 0, tuple(_MONTHS.split()), 6, 24),
}
#: Units of ages as in DICOM, such as 068Y or 007M, by how many are a year.
PER_YEAR = {"Y": 1.0, "M": 12.0, "W": 52.18, "D": 365.25}
#: Texts of missing values, and the name of the slice of such rows.
MISSING_TEXTS = ("", "nan", "NaN", "None", "NaT")
MISSING = "missing"


@dataclass(frozen=True)
class Cut:
    """How a column is cut; rows that are selected later are cut alike.

    Attributes
    ----------
    edges : tuple of float
        Inner edges of the intervals of a number, ascending, each the upper end of an interval; dates in microseconds since 1970.
    kept : tuple of str or None
        For a text: the values that are slices; all others are one.
    dates : bool or str
        Whether the numbers are dates; the format of the texts that hold them, if it is known, for days that do not tell which comes first.
    cycle : str
        For times: the one of `CYCLES` whose values are kept.
    """

    edges: tuple[float, ...] = ()
    kept: tuple[str, ...] | None = None
    dates: bool | str = False
    cycle: str = ""
    labels: tuple[str, ...] = field(init=False, compare=False)

    def __post_init__(self) -> None:
        labels = _interval_labels(self.edges, bool(self.dates)) if self.kept is None else self.kept
        if self.kept is not None:
            labels += ("other" if "other" not in self.kept else "all other values",)
        object.__setattr__(self, "labels", labels)

    @property
    def sides(self) -> dict[str, tuple[str, ...]]:
        """What lies on either side of each inner edge, by its name, as intervals, but those of one; of a cycle its values and ranges of them, "22 to 3", short ones first."""
        if self.cycle:
            _, _, values, most, _ = CYCLES[self.cycle]
            starts, both = range(len(values)), values * 2
            spans = [both[i : i + size] for size in range(1, most + 1) for i in starts]
            return {" to ".join(dict.fromkeys((s[0], s[-1]))): s for s in spans}
        if self.kept is not None or len(self.edges) < 2:
            return {}
        ends, intervals = _edge_texts(self.edges, bool(self.dates)), self.labels[:-1]
        low = {f"≤ {end}": intervals[: i + 1] for i, end in enumerate(ends) if i}
        return low | {f"> {end}": intervals[i + 1 :] for i, end in enumerate(ends[:-1])}

    def of_numbers(self, values: FloatArray) -> IntArray:
        """Index of the interval of each number, shape (n,); rows without a value have the index after the last."""
        edges = np.asarray(self.edges, values.dtype)
        if edges.size <= 2 * INTERVALS:  # a quarter of the time of a search
            below = np.zeros(values.shape, np.uint8)
            for edge in edges:
                below += values > edge
            codes = below.astype(np.intp)
        else:
            codes = np.searchsorted(edges, values, side="left")
        codes[np.isnan(values)] = len(self.edges) + 1
        return codes

    def of_times(self, times: npt.NDArray[np.datetime64]) -> IntArray:
        """Index of the value of a cycle at each time, shape (n,); missing times have the index after the last."""
        unit, first, values, *_ = CYCLES[self.cycle]
        number = times.astype(f"datetime64[{unit}]").astype(np.int64) + first
        return np.where(np.isnat(times), len(values), number % len(values))

    def codes(self, column: Factor | FloatArray, name: str) -> IntArray:
        """Index of the slice of each row of a column, shape (n,); raises InputError for texts that are no numbers or dates where it takes these."""
        if self.cycle:
            return self.of_times(local_times(column, name, self.dates))
        if self.kept is not None and isinstance(column, Factor):
            at = {level: i for i, level in enumerate(self.kept)}
            places = [at.get(level, len(self.kept)) for level in column.levels]
            return np.array(places, np.intp)[column.codes]
        read = values_in(column, self.dates)
        if read is None:
            told_apart(column.levels, name)  # type: ignore[union-attr]
            raise InputError(
                f"the column '{shortened(name)}' holds texts, and the map was fitted on numbers or dates"
            )
        return self.of_numbers(read[0])


def cut_of_numbers(values: FloatArray, counts: FloatArray | None = None) -> Cut:
    """Cut numbers at their deciles, with ties together.

    Parameters
    ----------
    values : ndarray, shape (n,)
        Missing ones are nan.
    counts : ndarray, shape (n,), optional
        Number of rows of each value.

    Notes
    -----
    A decile is the smallest value with at least that share of the values at or below it: the inverse of the empirical distribution
    function (Hyndman & Fan 1996, definition 1), so that every edge is a value.
    """
    known = ~np.isnan(values)
    some = values if known.all() else values[known]
    if not some.size:
        return Cut()
    shares = np.arange(1, INTERVALS) / INTERVALS
    own = None if counts is None else counts[known]
    edges = np.unique(np.quantile(some, shares, method="inverted_cdf", weights=own))
    # The largest value ends no interval but the last.
    return Cut(tuple(edges[edges < some.max()].astype(np.float64).tolist()))


def cut_of_levels(levels: tuple[str, ...], counts: FloatArray) -> Cut:
    """Cut a column of many texts, of which `counts` has the rows of each level, shape (L,): at deciles if they are numbers or dates, or else into the most frequent ones and the others."""
    read = as_values(levels)
    if read is None:
        # Values of a grouped text that stay.
        order = np.argsort(-counts, kind="stable")[:20]
        return Cut(kept=tuple(levels[i] for i in order.tolist()))
    values, dates = read
    return Cut(cut_of_numbers(values, counts).edges, dates=dates)


def cut_at(edges: Iterable[object], column: str) -> Cut:
    """Cut at chosen edges, numbers or dates, each the upper end of an interval.

    Raises
    ------
    OptionError
        Unless they are ascending numbers or dates, at most `MOST_EDGES`.
    """
    given = tuple(str(edge).strip() for edge in edges)
    if len(given) > MOST_EDGES:
        raise OptionError(
            f"'{shortened(column)}' can be cut at {MOST_EDGES} edges at most, got {len(given):,}."
        )
    read = as_values(given) if given else None
    if read is None or not np.isfinite(read[0]).all() or (np.diff(read[0]) <= 0).any():
        raise OptionError(
            f"the edges of '{shortened(column)}' must be ascending numbers or dates, got {', '.join(given) or 'none'}."
        )
    return Cut(tuple(read[0].tolist()), dates=read[1])


def cycle(name: str) -> Cut:
    """Cut times into the values of one of `CYCLES`."""
    return Cut(kept=CYCLES[name][2], cycle=name)


def cycles_of(times: npt.NDArray[np.datetime64]) -> list[str]:
    """Those of `CYCLES` that times of enough days have three values of; months if each of them comes in two years."""
    days = len(np.unique(times.astype("datetime64[D]")))
    values = {name: np.count_nonzero(np.bincount(cycle(name).of_times(times))) for name in CYCLES}
    enough = [name for name, (*_, least) in CYCLES.items() if days >= least and values[name] > 2]
    return [name for name in enough if name != "month" or seasons_of(times) is not None]


def seasons_of(times: npt.NDArray[np.datetime64]) -> IntArray | None:
    """The month of each time, shape (n,), where each month comes in two years, so that what returns with it can be told from a change; or else None."""
    month = cycle("month")
    each = np.bincount(month.of_times(np.unique(times.astype("datetime64[M]"))))[:12]
    return month.of_times(times) if each[each > 0].min(initial=2) > 1 else None


def interval(value: str, column: str) -> tuple[Cut, str] | None:
    """Read an interval of numbers or dates, "> 31", "≤ 31" or "(23, 31]": a cut at its ends, and its label; None if it is none."""
    if value[:2] not in ("≤ ", "> ") and (value[:1], value[-1:]) != ("(", "]"):
        return None
    cut = cut_at(value.strip("≤> (]").split(", "), column)
    return cut, cut.labels[value[:2] != "≤ "]


def as_values(levels: tuple[str, ...], form: bool | str = "") -> tuple[FloatArray, bool] | None:
    """Texts as numbers, or as dates in microseconds since 1970, shape (L,), and whether they are dates; None if they are neither; `form` as in `Cut.dates`."""
    texts = [text.strip() for text in levels]
    known = [text for text in texts if text not in MISSING_TEXTS]
    values: dict[str, float] = {}
    dates = False
    try:
        values = {text: _number(text) for text in known}
    except ValueError:
        ways = date_ways(known)
        ways = {form: ways[form]} if form and form in ways else ways
        first = next(iter(ways.values()), None)
        # Where day and month cannot be told apart, they are texts.
        if first is None or any(way != first for way in ways.values()):
            return None
        times = np.array(first, "datetime64[us]").astype(np.int64)
        values, dates = dict(zip(known, times.tolist(), strict=True)), True
    return read_only(np.array([values.get(text, np.nan) for text in texts], np.float64)), dates


def values_in(column: Factor | FloatArray, form: bool | str = "") -> tuple[FloatArray, bool] | None:
    """A column as numbers, or as dates in microseconds since 1970, shape (n,), as `as_values`."""
    if not isinstance(column, Factor):
        return column, False
    read = as_values(column.levels, form)
    return read and (read[0][column.codes], read[1])


def dates_in(column: Factor | FloatArray, name: str, form: bool | str = "") -> FloatArray:
    """Texts or numbers as microseconds since 1970, shape (n,); raises InputError if they are no dates, or day and month cannot be told apart."""
    read = values_in(column, form)
    # Smaller numbers are no dates.
    if read is None or (not read[1] and 0 < np.nanmax(np.abs(read[0]), initial=-1) < 1e12):
        if isinstance(column, Factor):
            told_apart(column.levels, name)
        what = f"the column '{shortened(name)}' holds no dates"
        raise InputError(what, remedy="write them as 2026-01-31")
    return read[0]


def local_times(
    column: Factor | FloatArray, name: str, form: bool | str = ""
) -> npt.NDArray[np.datetime64]:
    """Texts, without their offsets, or numbers as times, shape (n,); raises InputError if they are none."""
    if isinstance(column, Factor):
        with suppress(ValueError):
            texts = [text.strip()[:16] for text in column.levels]
            texts = ["NaT" if t in MISSING_TEXTS else "no" * t.isdigit() or t for t in texts]
            return np.array(texts, "datetime64[m]")[column.codes]
    values = dates_in(column, name, form)
    times = np.nan_to_num(values).astype("datetime64[us]")
    return np.where(np.isnan(values), np.datetime64("NaT"), times)


def _number(text: str) -> float:
    if "_" in text:  # which Python would skip
        raise ValueError(text)
    age = text[-1:] in PER_YEAR and len(text) == 4 and text[:3].isdigit()
    return int(text[:3]) / PER_YEAR[text[3]] if age else float(text)


def _interval_labels(edges: tuple[float, ...], dates: bool) -> tuple[str, ...]:
    if not edges:
        return "any", MISSING
    texts = _edge_texts(edges, dates)
    inner = [f"({low}, {high}]" for low, high in pairwise(texts)]
    return (f"≤ {texts[0]}", *inner, f"> {texts[-1]}", MISSING)


def _edge_texts(edges: tuple[float, ...], dates: bool) -> list[str]:
    return _dates(edges) if dates else _numbers(edges)


def _numbers(edges: tuple[float, ...]) -> list[str]:
    """Write numbers with as few digits, 3 or more, as tell them apart; whole ones have all."""
    texts: list[str] = []
    for digits in range(3, 18):
        texts = [_written(edge, digits) for edge in edges]
        if len(set(texts)) == len(texts):
            break
    return texts


def _written(edge: float, digits: int) -> str:
    if edge.is_integer() and abs(edge) < 1e15:
        return f"{edge:.0f}"
    if not 1e-4 <= abs(edge) < 1e15:
        return f"{edge:.{digits}g}"
    digits = max(digits, len(f"{abs(edge):.0f}"))
    return np.format_float_positional(edge, digits, unique=False, fractional=False, trim="-")


def edge_text(edge: float, following: float) -> str:
    """Write an edge with as few digits, 3 or more, as tell the values up to it from the following one."""
    size = np.floor(np.log10(abs(edge) or 1)) + 1
    near = ((e, d) for d in range(3, 19) for e in (edge, edge + float(10 ** (size - d))))
    return next(t for e, d in near if edge <= float(t := _written(e, d)) < following)


def _dates(edges: tuple[float, ...]) -> list[str]:
    times = np.array(edges, np.int64).astype("datetime64[us]")
    for unit in ("D", "m", "s"):
        if (times.astype(f"datetime64[{unit}]") == times).all():
            return [str(t).replace("T", " ") for t in times.astype(f"datetime64[{unit}]")]
    return [str(t).replace("T", " ") for t in times]


# ---- Dates in texts

#: Formats tried besides ISO 8601. Day-first and month-first dates cannot always be told apart.
_FORMATS = (
    "%Y/%m/%d", "%Y/%m/%d %H:%M", "%Y/%m/%d %H:%M:%S", "%Y%m%d", "%Y-%m", "%Y",
    "%d.%m.%Y", "%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S",
    "%d/%m/%Y", "%m/%d/%Y", "%d/%m/%y", "%m/%d/%y", "%d-%m-%Y", "%m-%d-%Y",
    "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M", "%d/%m/%Y %H:%M:%S", "%m/%d/%Y %H:%M:%S",
    "%d/%m/%Y %I:%M %p", "%m/%d/%Y %I:%M %p", "%d/%m/%Y %I:%M:%S %p", "%m/%d/%Y %I:%M:%S %p",
    "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%d-%b-%Y", "%d-%b-%y", "%d%b%Y", "%d%b%Y:%H:%M:%S",
)  # fmt: skip


#: A quarter: 2022Q1, 2022-Q1, Q1 2022, in French 2022T1.
_QUARTER = re.compile(r"^(?:([12]\d\d\d)[ /-]?[QT]([1-4])|Q([1-4])[ /-]?([12]\d\d\d))$")


#: Remedy for dates that cannot be read.
WRITE_DATES = "write all in one form, such as YYYY-MM-DD, YYYY-MM-DD HH:MM:SS or 22MAR2024"


def date_text(level: str) -> str:
    """The text of a date without what a column of numbers adds to it; of a quarter, its first month."""
    text = level.strip()
    if quarter := _QUARTER.match(text):
        text = f"{quarter[1] or quarter[4]}-{3 * int(quarter[2] or quarter[3]) - 2:02d}"
    return text.removesuffix(".0") if text.removesuffix(".0").isdigit() else text


def date_ways(texts: Iterable[str]) -> dict[bool | str, list[datetime]]:
    """The dates that texts are by each format that reads all of them, "" for ISO 8601; times with an offset are converted to UTC."""
    levels = [date_text(text) for text in texts]
    ways: dict[bool | str, list[datetime]] = {}
    for form in ("", *_FORMATS):
        with suppress(ValueError, OverflowError):
            ways[form] = [datetime.strptime(t, form) if form else _iso(t) for t in levels]
    return ways


def date_form(levels: Iterable[str]) -> bool | str:
    """The one format that reads texts of dates, for `Cut.dates`; True if it is ISO 8601, or there are several."""
    forms = [*date_ways(held(levels))]
    return (len(forms) == 1 and forms[0]) or True


def told_apart(levels: Iterable[str], name: str) -> dict[bool | str, list[datetime]]:
    """`date_ways`; raises InputError if two differ."""
    ways = date_ways(known := held(levels))
    if len({*map(tuple, ways.values())}) > 1:
        what = f"'{shortened(known[0])}' may have the day or the month first, and no other date settles it"
        raise InputError(what, column=name, remedy=WRITE_DATES)
    return ways


def held(levels: Iterable[str]) -> list[str]:
    """The values of a column without those of empty cells."""
    return [text for level in levels if (text := level.strip()) not in MISSING_TEXTS]


def _iso(text: str) -> datetime:
    if text.isdigit():  # 20200101 is one of the formats
        raise ValueError(text)
    time = datetime.fromisoformat(text)
    offset = time.utcoffset()
    return time if offset is None else time.replace(tzinfo=None) - offset


#: Source that reads dates as `as_values` does, for a program of a fitted map.
DATES_SOURCE = (
    '''\
import re
from datetime import datetime, timedelta


def {name}_dates(values, own=""):
    """Microseconds since 1970; of texts by their own format, by ISO 8601, or by the format that reads all of them."""
    if np.asarray(values).dtype.kind != "M":
        texts, ways = [str(value).strip() for value in values], set()
        known = sorted(set(texts) - set(__MISSING__))
        months = [re.sub(__QUARTER__, lambda q: "%s-%02d" % (q[1] or q[4], 3 * int(q[2] or q[3]) - 2), t) for t in known]
        for form in [own] * isinstance(own, str) + ["", *__FORMATS__]:
            try:
                read = [datetime.strptime(t, form) if form else datetime.fromisoformat(t) for t in months]
                ways.add(tuple((t - (t.utcoffset() or timedelta(0))).replace(tzinfo=None) for t in read))
            except ValueError:
                continue
            if form and form == own:
                break
        if len(ways) != 1:
            raise ValueError("no format reads all dates, or two read them differently: give them as datetime64")
        times = dict(zip(known, *ways))
        values = [times.get(text) for text in texts]
    values = np.asarray(values, dtype="datetime64[us]")
    return np.where(np.isnat(values), np.nan, values.astype(float))


'''.replace("__MISSING__", repr(MISSING_TEXTS))
    .replace("__FORMATS__", repr(_FORMATS))
    .replace("__QUARTER__", repr(_QUARTER.pattern))
)
