"""A metric of a sample, without error bars: everything that needs the number takes it from here, so that it is computed once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from calviz.core.errors import NotAvailable
from calviz.results.evaluation import MetricResult
from calviz.sample.cell_bounds import Precision, precision
from calviz.sample.sample import Sample, metric_options
from calviz.specs.metric import METRICS, Metric, takes_weights

#: A metric of a sample: its key and the parameters of its view.
Asked = tuple[str, tuple[tuple[str, Any], ...]]
#: Details in closed form that hold for independent rows.
_OF_INDEPENDENT_ROWS = ("sigma", "p_value", "if_calibrated")


def asked_of(sample: Sample, metric: Metric, options: Mapping[str, Any]) -> Asked:
    """What is asked of a sample: the metric, with the parameters that its bins and `options` give."""
    return metric.key, tuple(sorted(metric_options(sample, metric, **options).items()))


def view_of(sample: Sample, asked: Asked) -> Any:
    """What the metric is a function of."""
    return sample.view(METRICS[asked[0]].view, **dict(asked[1]))


@takes_weights
def value_of(sample: Sample, *, asked: Asked) -> MetricResult:
    """A metric without error bars."""
    m = METRICS[asked[0]]
    try:
        if m.no_weights and sample.data.weights is not None and not sample.data.alike:
            raise NotAvailable(f"not available for weighted rows: {m.no_weights}")
        view = view_of(sample, asked)
        value = float(m.value(view))
    except NotAvailable as error:
        return MetricResult(m.key, math.nan, params=dict(asked[1]), reason=str(error))
    is_defined = math.isfinite(value)
    known = precision(sample, m, view) if is_defined else Precision()
    return MetricResult(
        m.key,
        value if is_defined else math.nan,
        params=dict(view.params),
        details=_details(sample, m, view),
        reason=None if is_defined else m.undefined,
        note=m.note(view) if m.note and is_defined else None,
        exact=known.exact,
        bound=known.bound,
    )


def _details(sample: Sample, metric: Metric, view: Any) -> dict[str, Any]:
    found = dict(metric.details(view)) if metric.details else {}
    if sample.data.clusters is None:
        return found
    return {name: value for name, value in found.items() if name not in _OF_INDEPENDENT_ROWS}


def measured(sample: Sample, key: str) -> MetricResult:
    """The metric `key` of a sample, with its default parameters."""
    found: MetricResult = sample.view(value_of, asked=asked_of(sample, METRICS[key], {}))
    return found
