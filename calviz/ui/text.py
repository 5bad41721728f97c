"""Words and numbers on screen: escaping, shortening, and one way to write each kind of number."""

from __future__ import annotations

import math
import re

from calviz.core.results import Interval, MetricResult
from calviz.core.units import Unit, unit_of

#: Written with a plus sign where they are above 0.
_SIGNED = ("mcs", "ks_signed", "wsmcs")

_JOINER = (
    "\u2060"  # takes no room and no line break: it only keeps two characters from being read as one
)
_SPECIAL = re.compile(r"[!-/;-@\[-`{-~]")
_INVISIBLE = re.compile(
    r"[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+"
)
_AUTOLINK = re.compile(r"\b(www)(?=\.)", re.IGNORECASE)


def plain(text: object, limit: int = 60) -> str:
    """Text on one line without invisible or direction-changing characters, cut at `limit`."""
    line = " ".join(_INVISIBLE.sub(" ", str(text)).split())
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


def md(text: object, limit: int = 400) -> str:
    """Text that markdown shows as it is: no image, link, HTML, formula, icon or colour comes of it."""
    line = _AUTOLINK.sub(rf"\1{_JOINER}", plain(text, limit))
    # Entities, because streamlit's own formula and arrow notations ignore backslashes; and joiners
    # after colons, because its icon and emoji notations are read after entities are resolved.
    line = _SPECIAL.sub(lambda m: f"&#{ord(m[0])};" + (_JOINER if m[0] in "-<>~=" else ""), line)
    return line.replace(":", f":{_JOINER}")


def number(value: float, digits: int = 3) -> str:
    """A number with so many significant digits, and a true minus sign."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return _signed(value, decimals_for(value, digits))


def decimals_for(value: float, digits: int = 3, most: int = 4) -> int:
    """Decimals that show `value` with so many significant digits."""
    if value == 0 or not math.isfinite(value):
        return digits - 1
    return min(most, max(0, digits - 1 - math.floor(math.log10(abs(value)))))


def _signed(value: float, decimals: int, *, plus: bool = False) -> str:
    text = f"{abs(value):,.{decimals}f}"
    if value < 0 and float(text.replace(",", "")) != 0:
        return f"−{text}"
    return f"+{text}" if plus and value > 0 else text


class Written:
    """A metric's value, its interval and its noise floor, all with the same decimals.

    Parameters
    ----------
    result : MetricResult
    """

    def __init__(self, result: MetricResult) -> None:
        self.result = result
        self.unit: Unit = unit_of(result.key)
        self.scale = 1.0 if self.unit == "plain" else 100.0
        self.plus = result.key in _SIGNED
        # An accuracy of 97.4 % and a gap of 5.37 points: one decimal less for shares.
        self.decimals = (
            1 if self.unit == "percent" else min(3, decimals_for(result.value * self.scale))
        )
        if self.unit == "plain" and 0 < abs(result.value) < 0.1:
            # A squared or unbiased error may be small and still far above its noise.
            self.decimals = decimals_for(result.value, most=6)

    def of(self, value: float, *, unit: bool = True) -> str:
        """Any value of the metric, in the same form."""
        if math.isnan(value):
            return "–"
        text = _signed(value * self.scale, self.decimals, plus=self.plus)
        return f"{text}\u00a0%" if unit and self.unit == "percent" else text

    @property
    def value(self) -> str:
        """The value with its unit."""
        return self.of(self.result.value)

    @property
    def unit_words(self) -> str:
        """The unit, for a label."""
        return {"percent": "", "points": "points", "plain": ""}[self.unit]

    def interval(self, interval: Interval | None) -> str:
        """The interval in words."""
        if interval is None:
            return "No interval: resampling changes nothing"
        low, high = self.of(interval.low, unit=False), self.of(interval.high)
        return f"95\u00a0% interval {low}\u00a0to\u00a0{high}"

    def noise(self, *, tail: str) -> str:
        """The noise floor in words."""
        floor = self.result.noise_floor
        if floor is None:
            return ""
        if tail == "upper":
            if floor.p_value <= 0.05:
                return f"above noise: a calibrated model stays below {self.of(floor.q95)}"
            return f"within noise: a calibrated model shows up to {self.of(floor.q95)}"
        if floor.p_value <= 0.05:
            return f"a calibrated model would show {self.of(floor.mean)}"
        return f"as if calibrated ({self.of(floor.mean)})"


def rows(n: int) -> str:
    """A count of rows."""
    return f"{n:,} row" if n == 1 else f"{n:,} rows"


def size(n: int) -> str:
    """Bytes, in the unit that suits."""
    if n < 1_000:
        return f"{n:,} bytes"
    for unit in ("kB", "MB", "GB"):
        n_unit = n / 1_000
        if n_unit < 999.5 or unit == "GB":
            return f"{n_unit:,.3g} {unit}"
        n = round(n_unit)
    raise AssertionError


def distinct(names: tuple[str, ...], limit: int = 60) -> dict[str, str]:
    """Short forms of names for a list to choose from, no two the same; by name."""
    seen: dict[str, int] = {}
    result: dict[str, str] = {}
    for position, name in enumerate(names):
        short = plain(name, limit) or "(empty)"
        if short in seen:
            short = f"{short} [{position}]"
        seen[short] = position
        result[name] = short
    return result
