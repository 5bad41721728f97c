"""What the app, the command line and the report all call; needs no screen."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.errors import NotAvailable, OptionError
from calviz.core.metric import METRICS, Metric
from calviz.core.predictions import Dataset
from calviz.core.reduction import Reduction
from calviz.core.results import Evaluation, Interval, MetricResult, NoiseFloor
from calviz.numerics.sample import Sample

#: Resamples behind an interval or a noise floor, and the level of an interval.
RESAMPLES = 1_000
LEVEL = 0.95


def evaluate(
    data: Dataset,
    metrics: Iterable[str] | None = None,
    *,
    reduction: Reduction | str = "top-label",
    split: str | None = None,
    ci: bool = False,
    noise_floor: bool | None = None,
    level: float = LEVEL,
    resamples: int = RESAMPLES,
    seed: int = 0,
    **options: Any,
) -> Evaluation:
    """Compute metrics of one set of predictions.

    Parameters
    ----------
    data : Predictions or ConfidencePredictions
    metrics : iterable of str, optional
        Keys; all metrics where left out.
    reduction : Reduction or str
        Which (score, hit) pair the calibration metrics look at.
    split : str, optional
        Evaluate the rows of this split only.
    ci : bool
        Whether to compute bootstrap intervals.
    noise_floor : bool, optional
        Whether to compute noise floors; as `ci` where left out.
    level : float
        Level of the intervals.
    resamples : int
        Resamples behind each interval and each noise floor.
    seed : int
        Seed of all resampling.
    **options
        Parameters of the metrics (``bins=15``), passed on to those that have them.

    Raises
    ------
    OptionError, InputError
        On an unknown metric, option, split, class or reduction.
    """
    if split is not None:
        data = data.split(split)
    sample = Sample(data, reduction)
    chosen = [METRICS[key] for key in metrics] if metrics is not None else list(METRICS)
    known = {p.name for m in METRICS for p in m.parameters}
    for name in options:
        if name not in known:
            raise OptionError(f"no metric has an option '{name}'; known: {', '.join(sorted(known))}.")
    floor = ci if noise_floor is None else noise_floor
    resampler = _Resampler(sample, ci, floor, level, resamples, seed)
    return Evaluation(
        name=data.name,
        rows=data.n,
        n_classes=data.n_classes,
        kind=data.kind,
        split=split,
        reduction=sample.reduction.key,
        metrics={m.key: resampler.result(m, options) for m in chosen},
    )


class _Resampler:
    """Values, intervals and noise floors; views that metrics share are resampled once."""

    def __init__(
        self, sample: Sample, ci: bool, floor: bool, level: float, resamples: int, seed: int
    ) -> None:
        self.sample, self.ci, self.floor = sample, ci, floor
        self.level, self.resamples, self.seed = level, resamples, seed
        self._drawn: dict[tuple[int, str], Any] = {}

    def result(self, metric: Metric, options: dict[str, Any]) -> MetricResult:
        own = {p.name: options[p.name] for p in metric.parameters if p.name in options}
        try:
            view = self.sample.view(metric.view, **own)
            value = float(metric.value(view))
        except NotAvailable as error:
            return MetricResult(metric.key, math.nan, params=own, reason=str(error))
        return MetricResult(
            metric.key,
            value,
            interval=self._interval(metric, view),
            noise_floor=self._noise_floor(metric, view, value),
            params=dict(view.params),
            details=dict(metric.details(view)) if metric.details else {},
            reason="undefined on these rows." if math.isnan(value) else None,
        )

    def _draw(self, metric: Metric, view: Any, how: str) -> FloatArray | None:
        key = (id(view), how)
        if key not in self._drawn:
            rng = np.random.default_rng([self.seed, how == "bootstrap"])
            try:
                self._drawn[key] = getattr(view, how)(rng, self.resamples)
            except NotAvailable:
                self._drawn[key] = None
        drawn = self._drawn[key]
        return None if drawn is None else np.asarray(metric.value(drawn))

    def _interval(self, metric: Metric, view: Any) -> Interval | None:
        # One row resamples to itself: an interval of zero width would claim certainty.
        if not self.ci or self.sample.data.n < 2:
            return None
        values = self._draw(metric, view, "bootstrap")
        if values is None:
            return None
        low, high = np.quantile(values, [(1 - self.level) / 2, (1 + self.level) / 2])
        return Interval(float(low), float(high))

    def _noise_floor(self, metric: Metric, view: Any, value: float) -> NoiseFloor | None:
        if not self.floor:
            return None
        values = self._draw(metric, view, "under_calibration")
        if values is None:
            return None
        mean = float(values.mean())
        # Equal values must count as equal whatever the order of summation.
        slack = 1e-12
        if metric.tail == "two-sided":
            extreme = np.abs(values - mean) >= abs(value - mean) - slack
        else:
            extreme = values >= value - slack
        p_value = (1 + int(extreme.sum())) / (1 + values.size)
        return NoiseFloor(mean, float(np.quantile(values, 0.95)), p_value)
