"""What the app, the command line and the report all call; needs no screen."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.errors import NotAvailable, OptionError
from calviz.core.metric import METRICS, Metric, Parameter
from calviz.core.predictions import Dataset
from calviz.core.reduction import Reduction
from calviz.core.results import ClassRow, Evaluation, Interval, MetricResult, NoiseFloor
from calviz.numerics.classes import class_table
from calviz.numerics.sample import Sample

#: Resamples behind an interval or a noise floor, and the level of an interval.
RESAMPLES = 1_000
LEVEL = 0.95
#: Bins of the table of classes and of the verdict, as of the binned metrics.
DEFAULT_BINS = 15

How = Literal["bootstrap", "under_calibration"]


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
    classes: bool | None = None,
    **options: Any,
) -> Evaluation:
    """Compute metrics of one set of predictions.

    A metric's numbers depend on the data, its options and the seed alone: not on which other
    metrics are asked for, nor on their order.

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
        Level of the intervals, between 0 and 1.
    resamples : int
        Resamples behind each interval and each noise floor.
    seed : int
        Seed of all resampling, 0 or more.
    classes : bool, optional
        Whether to add the table of classes, which may take longer than a metric; where left out,
        it is there when all metrics are.
    **options
        Parameters of the metrics (``bins=15``), passed on to those that have them.

    Raises
    ------
    OptionError, InputError
        On an unknown metric, option, split, class or reduction.
    NotAvailable
        Where the data do not have what the reduction needs (confidence-only data and any
        reduction but the top label). A single metric that is not available is no error: its
        value is ``nan`` and its ``reason`` says why.
    """
    chosen = _chosen(metrics)
    _check_options(options)
    drawing = _Drawing(ci, ci if noise_floor is None else noise_floor, level, resamples, seed)
    sample = _sample(data, reduction, split)
    with_classes = metrics is None if classes is None else classes
    return Evaluation(
        name=sample.data.name,
        rows=sample.data.n,
        n_classes=sample.data.n_classes,
        kind=sample.data.kind,
        split=split,
        reduction=sample.reduction.key,
        metrics=_results(sample, chosen, options, drawing),
        classes=_classes(sample, options.get("bins", DEFAULT_BINS)) if with_classes else (),
    )


def verdict(
    data: Dataset,
    *,
    reduction: Reduction | str = "top-label",
    split: str | None = None,
    bins: int = DEFAULT_BINS,
    seed: int = 0,
) -> Any:
    """Say in one sentence whether these probabilities can be trusted.

    Parameters are those of `evaluate`.
    """
    from calviz import checks

    return checks.verdict(_sample(data, reduction, split), bins=bins, seed=seed)


def _sample(data: Dataset, reduction: Reduction | str, split: str | None) -> Sample:
    return Sample(data if split is None else data.split(split), reduction)


def _chosen(metrics: Iterable[str] | None) -> list[Metric]:
    if metrics is None:
        return list(METRICS)
    keys = [metrics] if isinstance(metrics, str) else metrics
    return [METRICS[key] for key in dict.fromkeys(keys)]


def _check_options(options: Mapping[str, Any]) -> None:
    known = {p.name: p for m in METRICS for p in m.parameters}
    for name, value in options.items():
        if name not in known:
            raise OptionError(
                f"no metric has an option '{name}'; known: {', '.join(sorted(known))}."
            )
        _check_option(known[name], value)


def _check_option(parameter: Parameter, value: Any) -> None:
    if parameter.choices:
        if value not in parameter.choices:
            allowed = ", ".join(str(choice) for choice in parameter.choices)
            raise OptionError(f"'{parameter.name}' must be one of {allowed}; got {value!r}.")
    elif parameter.annotation is int and not _is_whole(value):
        raise OptionError(f"'{parameter.name}' must be a whole number, got {value!r}.")


def _is_whole(value: Any) -> bool:
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


@dataclass(frozen=True)
class _Drawing:
    """Which resampling is wanted, and how."""

    interval: bool
    noise_floor: bool
    level: float
    resamples: int
    seed: int

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise OptionError(f"'level' must lie between 0 and 1, got {self.level!r}.")
        if not (_is_whole(self.resamples) and self.resamples > 0):
            raise OptionError(
                f"'resamples' must be a whole number above 0, got {self.resamples!r}."
            )
        if not (_is_whole(self.seed) and self.seed >= 0):
            raise OptionError(f"'seed' must be a whole number, 0 or more, got {self.seed!r}.")

    def draw(self, view: Any, metrics: list[Metric], how: How) -> dict[str, FloatArray]:
        """Values of the metrics over resamples of the view that they share; none if it has none."""
        # Every view starts its own stream, so that what else is asked for changes nothing.
        rng = np.random.default_rng([self.seed, how == "bootstrap"])
        try:
            drawn = getattr(view, how)(rng, self.resamples)
        except NotAvailable:
            return {}
        return {m.key: np.asarray(m.value(drawn), dtype=np.float64) for m in metrics}


def _classes(sample: Sample, bins: int) -> tuple[ClassRow, ...]:
    data = sample.data
    if data.labels is None:
        return ()
    names = data.class_names or tuple(str(k) for k in range(int(data.labels.max()) + 1))
    table = class_table(sample.top_events, data.labels, len(names), bins=bins)
    columns = (table.rows, table.accuracy, table.confidence, table.ece, table.mcs, table.ks)
    rows = zip(names, *(column.tolist() for column in columns), strict=True)
    return tuple(ClassRow(*row) for row in rows)


def _results(
    sample: Sample, metrics: list[Metric], options: Mapping[str, Any], drawing: _Drawing
) -> dict[str, MetricResult]:
    results: dict[str, MetricResult] = {}
    sharing: dict[int, tuple[Any, list[Metric]]] = {}  # by identity; the views stay alive in it
    for m in metrics:
        own = {p.name: options[p.name] for p in m.parameters if p.name in options}
        try:
            view = sample.view(m.view, **own)
            value = float(m.value(view))
        except NotAvailable as error:
            results[m.key] = MetricResult(m.key, math.nan, params=own, reason=str(error))
            continue
        results[m.key] = MetricResult(
            m.key,
            value,
            params=dict(view.params),
            details=dict(m.details(view)) if m.details else {},
            reason="undefined on these rows." if math.isnan(value) else None,
        )
        sharing.setdefault(id(view), (view, []))[1].append(m)
    for view, family in sharing.values():
        defined = [m for m in family if results[m.key].available]
        for m, interval, floor in _error_bars(sample, view, defined, results, drawing):
            results[m.key] = replace(results[m.key], interval=interval, noise_floor=floor)
    return results


def _error_bars(
    sample: Sample,
    view: Any,
    metrics: list[Metric],
    results: Mapping[str, MetricResult],
    drawing: _Drawing,
) -> Iterator[tuple[Metric, Interval | None, NoiseFloor | None]]:
    # One row resamples to itself, so it has no interval.
    wanted = drawing.interval and sample.data.n > 1
    drawn = drawing.draw(view, metrics, "bootstrap") if wanted else {}
    calibrated = drawing.draw(view, metrics, "under_calibration") if drawing.noise_floor else {}
    for m in metrics:
        yield (
            m,
            _interval(drawn[m.key], drawing.level) if m.key in drawn else None,
            _noise_floor(calibrated[m.key], results[m.key].value, m.tail)
            if m.key in calibrated
            else None,
        )


def _interval(values: FloatArray, level: float) -> Interval | None:
    values = values[np.isfinite(values)]
    if values.size == 0:
        return None
    low, high = np.quantile(values, [(1 - level) / 2, (1 + level) / 2])
    # Rows that all agree resample to themselves: a width of zero would claim certainty.
    return Interval(float(low), float(high)) if low < high else None


def _noise_floor(values: FloatArray, value: float, tail: str) -> NoiseFloor | None:
    values = values[np.isfinite(values)]
    if values.size == 0:
        return None
    mean = float(values.mean())
    # Equal values must count as equal whatever the order of summation.
    slack = 1e-12
    if tail == "two-sided":
        extreme = np.abs(values - mean) >= abs(value - mean) - slack
    else:
        extreme = values >= value - slack
    p_value = (1 + int(np.count_nonzero(extreme))) / (1 + values.size)
    return NoiseFloor(mean, float(np.quantile(values, 0.95)), p_value)
