"""``--fail-on "ece>0.05"``: thresholds that make a command fail, for builds."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from calviz.core.errors import NotAvailable, OptionError
from calviz.results.evaluation import Evaluation
from calviz.specs.metric import METRICS

_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}
_FORM = re.compile(r"\s*(\w+)\s*(>=|<=|>|<)\s*(\S+)\s*")


@dataclass(frozen=True)
class Threshold:
    """A metric, a comparison and a limit; the threshold is crossed if the comparison holds.

    Attributes
    ----------
    metric : str
        The metric's key.
    sign : {">", ">=", "<", "<="}
    limit : float
        A fraction, as everywhere (0.05, not 5).
    """

    metric: str
    sign: str
    limit: float

    @classmethod
    def of(cls, text: str) -> Threshold:
        """Read the written form, ``"ece>0.05"``.

        Raises
        ------
        OptionError
            Unless the text is a known metric, one of > >= < <=, and a finite number.
        """
        match = _FORM.fullmatch(text)
        limit = _number(match[3]) if match else None
        if match is None or limit is None:
            raise OptionError(
                f"--fail-on '{text}' is not understood; write a metric, one of > >= < <= "
                'and a number, such as "ece>0.05".'
            )
        return cls(METRICS[match[1]].key, match[2], limit)

    def crossed(self, evaluation: Evaluation) -> str | None:
        """Describe how the threshold is crossed; None if it is not.

        With an interval, the value and the whole interval must lie beyond the limit: sampling noise
        alone does not cross a threshold.

        Raises
        ------
        NotAvailable
            If the metric has no value: a gate that cannot be judged must not pass.
        """
        result = evaluation[self.metric]
        if not result.available:
            raise NotAvailable(f"--fail-on '{self}' cannot be judged: {result.reason}")
        beyond = _OPERATORS[self.sign]
        numbers = (result.value, *(result.interval or ()))
        if not all(beyond(number, self.limit) for number in numbers):
            return None
        text = f"{self.metric} is {result.value:.6g}"
        if result.interval:
            text += f" (interval {result.interval.low:.6g} to {result.interval.high:.6g})"
        return f"{text}, which crosses {self.sign} {self.limit:g}"

    def __str__(self) -> str:
        return f"{self.metric}{self.sign}{self.limit:g}"


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) < float("inf") else None
