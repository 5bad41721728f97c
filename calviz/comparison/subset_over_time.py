"""A metric over time for a subset of the rows, in the periods of all rows."""

from __future__ import annotations

import math

import numpy as np

from calviz.analysis import evaluate
from calviz.comparison.over_time import MIN_ROWS, PARTS, periods
from calviz.core.arrays import FloatArray, IntArray
from calviz.core.errors import CalvizError, NotAvailable
from calviz.results.over_time import OverTime
from calviz.sample.sample import Sample


def values_of(
    sample: Sample, over_time: OverTime, rows: IntArray, *, parts: int = PARTS
) -> FloatArray:
    """Return the metric of a subset of the rows in each period of `over_time`, shape (P,); nan if rows are too few or it is undefined.

    Parameters
    ----------
    sample : Sample
        The sample that `over_time` was computed from.
    over_time : OverTime
    rows : ndarray of int, shape (M,)
        Indices of the rows in the sample.
    parts : int
        Number of periods of equal counts, as in `over_time`.
    """
    if sample.data.times is None:
        raise NotAvailable("these rows have no times.")
    divided = periods(sample.data.times, over_time.every, parts=parts)
    code = divided.code[rows]
    values = []
    for period in over_time.periods:
        in_period = rows[code == divided.names.index(period.name)]
        enough = in_period.size >= MIN_ROWS
        values.append(_value(sample, in_period, over_time.metric) if enough else math.nan)
    return np.array(values)


def _value(sample: Sample, rows: IntArray, metric: str) -> float:
    part = sample.with_data(sample.data.take(rows))
    try:
        return float(evaluate(part, [metric], findings=False, classes=False)[metric].value)
    except CalvizError:
        return math.nan
