"""What the app, the command line and the report all call; needs no screen."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, get_args

import numpy as np

from calviz.checks import find
from calviz.checks import verdict as verdict_on
from calviz.core.arrays import FloatArray
from calviz.core.convention import Conventions
from calviz.core.errors import NotAvailable, OptionError
from calviz.core.metric import METRICS, IntervalMethod, Metric, Parameter
from calviz.core.predictions import Dataset
from calviz.core.reduction import Reduction
from calviz.core.results import ClassRow, Evaluation, MetricResult
from calviz.core.verdict import Verdict
from calviz.core.watch import checkpoint
from calviz.numerics import error_bars
from calviz.numerics.binning import Scheme
from calviz.numerics.classes import class_table
from calviz.numerics.error_bars import LEVEL, RESAMPLES, Draw, needs_calibrated, usable
from calviz.numerics.sample import Sample
from calviz.numerics.threads import one_blas_thread
from calviz.peers import measure

#: How intervals are made: as suits each metric, or all alike.
IntervalChoice = Literal["own", "percentile", "basic"]
#: Bins of the table of classes and of the verdict, as of the binned metrics.
DEFAULT_BINS = 15


def evaluate(
    data: Dataset,
    metrics: Iterable[str] | None = None,
    *,
    reduction: Reduction | str | None = None,
    split: str | None = None,
    ci: bool = False,
    noise_floor: bool | None = None,
    level: float = LEVEL,
    interval: IntervalChoice = "own",
    resamples: int = RESAMPLES,
    seed: int = 0,
    classes: bool | None = None,
    findings: bool | None = None,
    scheme: Scheme = "equal-width",
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
    reduction : Reduction or str, optional
        Which (score, hit) pair the calibration metrics look at; where left out, the positive class of
        two classes, else the top label.
    split : str, optional
        Evaluate the rows of this split only.
    ci : bool
        Whether to compute bootstrap intervals.
    noise_floor : bool, optional
        Whether to compute noise floors; as `ci` where left out.
    level : float
        Level of the intervals, between 0 and 1.
    interval : {"own", "percentile", "basic"}
        How intervals are made: as suits each metric (`Metric.interval`), or all alike. See `docs/uncertainty.md`.
    resamples : int
        Resamples behind each interval and each noise floor; findings and verdict take 1,000 at least.
    seed : int
        Seed of all resampling, 0 or more.
    classes, findings : bool, optional
        Whether to add the table of classes, and the findings with the verdict, which may take longer than a metric;
        where left out, they are there when all metrics are.
    scheme : {"equal-width", "equal-mass", "sturges"}
        The bins that the findings look at, and metrics of equal-width bins (ECE, ECE², RMSCE, MCE): their
        ``params`` say which they are of. A key that names its bins (``ece_equal_mass``) keeps them.
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
    _check_choice("scheme", scheme, get_args(Scheme))
    _check_choice("interval", interval, get_args(IntervalChoice))
    drawing = _Drawing(ci, _default(noise_floor, ci), level, interval, resamples, seed)
    sample = _sample(data, reduction, split)
    bins = options.get("bins", DEFAULT_BINS)
    everything = metrics is None
    judging = _default(findings, everything)
    # Adjusted p-values need resamples enough: with few of them nothing could be beyond noise.
    least = max(resamples, RESAMPLES)
    judged: dict[str, Any] = {"bins": bins, "scheme": scheme, "seed": seed, "resamples": least}
    return Evaluation(
        name=sample.data.name,
        rows=sample.data.n,
        n_classes=sample.data.n_classes,
        kind=sample.data.kind,
        split=split,
        reduction=sample.reduction.key,
        metrics=_results(sample, chosen, options, drawing, scheme),
        classes=_classes(sample, bins) if _default(classes, everything) else (),
        findings=find(sample, **judged) if judging else (),
        verdict=verdict_on(sample, **judged) if judging else None,
    )


def verdict(
    data: Dataset,
    *,
    reduction: Reduction | str | None = None,
    split: str | None = None,
    bins: int = DEFAULT_BINS,
    scheme: Scheme = "equal-width",
    seed: int = 0,
) -> Verdict:
    """Say in one sentence whether these probabilities can be trusted.

    Parameters
    ----------
    data : Predictions or ConfidencePredictions
    reduction : Reduction or str, optional
        Which (score, hit) pair to judge; where left out, as `evaluate`.
    split : str, optional
        Judge the rows of this split only.
    bins, scheme
        The bins in which to look for the worst place.
    seed : int
        Seed of all resampling, 0 or more.

    Raises
    ------
    OptionError, InputError, NotAvailable
        As `evaluate`.
    """
    _check_whole("seed", seed, least=0)
    _check_whole("bins", bins)
    _check_choice("scheme", scheme, get_args(Scheme))
    return verdict_on(_sample(data, reduction, split), bins=bins, scheme=scheme, seed=seed)


def other_view(
    data: Dataset,
    *,
    reduction: Reduction | str | None = None,
    split: str | None = None,
    bins: int = DEFAULT_BINS,
    scheme: Scheme = "equal-width",
    seed: int = 0,
) -> str | None:
    """Say in one sentence what the other view of two classes shows, positive class or top label.

    None where the data have no second view, and where the two show the same or nothing beyond noise.
    Parameters are those of `verdict`.
    """
    found = verdict(data, reduction=reduction, split=split, bins=bins, scheme=scheme, seed=seed)
    return found.other_view


def conventions(
    data: Dataset,
    *,
    reduction: Reduction | str | None = None,
    split: str | None = None,
    bins: int = DEFAULT_BINS,
    scheme: Scheme = "equal-width",
    noise: bool = True,
    seed: int = 0,
) -> Conventions:
    """Compute the "ECE" of the same predictions as other libraries define it by default.

    Parameters
    ----------
    data : Predictions or ConfidencePredictions
    reduction : Reduction or str, optional
        Which (score, hit) pair to hand to the libraries' binary functions; where left out, as
        `evaluate`. With the top label they are given all classes, and their own defaults decide what is looked at.
    split : str, optional
        Only the rows of this split.
    bins, scheme
        The bins of calviz's own ECE, with which the others are compared.
    noise : bool
        Whether to add what each convention would give on average for a calibrated model.
    seed : int
        Seed of the redrawn labels, 0 or more.

    Raises
    ------
    OptionError, InputError, NotAvailable
        As `evaluate`. A convention that has no value on these data is no error: it has a reason.
    """
    _check_whole("seed", seed, least=0)
    _check_whole("bins", bins)
    _check_choice("scheme", scheme, get_args(Scheme))
    sample = _sample(data, reduction, split)
    return measure(sample, bins=bins, scheme=scheme, noise=noise, seed=seed, split=split)


def _default(choice: bool | None, otherwise: bool) -> bool:
    return otherwise if choice is None else choice


def _sample(data: Dataset, reduction: Reduction | str | None, split: str | None) -> Sample:
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
        _check_choice(parameter.name, value, parameter.choices)
    elif parameter.annotation is int:
        _check_whole(parameter.name, value)


def _check_choice(name: str, value: Any, choices: tuple[Any, ...]) -> None:
    if value not in choices:
        allowed = ", ".join(str(choice) for choice in choices)
        raise OptionError(f"'{name}' must be one of {allowed}; got {value!r}.")


def _check_whole(name: str, value: Any, *, least: int | None = None) -> None:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or (least is not None and value < least):
        rule = "a whole number" if least is None else f"a whole number, {least} or more"
        raise OptionError(f"'{name}' must be {rule}, got {value!r}.")


@dataclass(frozen=True)
class _Drawing:
    """Which resampling is wanted, and how."""

    intervals: bool
    noise_floors: bool
    level: float
    interval: IntervalChoice
    resamples: int
    seed: int

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise OptionError(f"'level' must lie between 0 and 1, got {self.level!r}.")
        _check_whole("resamples", self.resamples, least=1)
        _check_whole("seed", self.seed, least=0)

    def method(self, metric: Metric) -> IntervalMethod:
        """How the interval of a metric is made."""
        return metric.interval if self.interval == "own" else self.interval

    def draw(self, view: Any, metrics: list[Metric], how: Draw) -> dict[str, FloatArray]:
        """Values of the metrics over resamples of the view that they share; none if it has none."""

        def value(m: Metric, part: Any) -> FloatArray:
            checkpoint()
            return np.asarray(m.value(part), dtype=np.float64)

        try:
            checkpoint()
            with one_blas_thread():
                drawn = getattr(view, how)(error_bars.stream(self.seed, how), self.resamples)
                parts = drawn.parts() if hasattr(drawn, "parts") else [drawn]
                values = [[value(m, part) for m in metrics] for part in parts]
        except NotAvailable:
            return {}
        return {m.key: np.concatenate([row[i] for row in values]) for i, m in enumerate(metrics)}


def _classes(sample: Sample, bins: int) -> tuple[ClassRow, ...]:
    data = sample.data
    if data.labels is None:
        return ()
    names = data.class_names or tuple(str(k) for k in range(int(data.labels.max()) + 1))
    table = class_table(sample.top_events, data.labels, len(names), bins=bins)
    columns = (table.rows, table.accuracy, table.confidence, table.ece, table.mcs, table.ks)
    rows = zip(names, *(column.tolist() for column in columns), strict=True)
    return tuple(ClassRow(*row) for row in rows)


@one_blas_thread()
def _results(
    sample: Sample,
    metrics: list[Metric],
    options: Mapping[str, Any],
    drawing: _Drawing,
    scheme: Scheme,
) -> dict[str, MetricResult]:
    results: dict[str, MetricResult] = {}
    sharing: dict[int, tuple[Any, list[Metric]]] = {}  # by identity; the views stay alive in it
    for m in metrics:
        checkpoint(f"measuring: {m.label}")
        own = {p.name: options[p.name] for p in m.parameters if p.name in options}
        try:
            view = sample.view(_over_bins(m, scheme), **own)
            value = float(m.value(view))
        except NotAvailable as error:
            results[m.key] = MetricResult(m.key, math.nan, params=own, reason=str(error))
            continue
        is_defined = math.isfinite(value)
        results[m.key] = MetricResult(
            m.key,
            value if is_defined else math.nan,
            params=dict(view.params),
            details=dict(m.details(view)) if m.details else {},
            reason=None if is_defined else m.undefined,
            note=m.note(view) if m.note and is_defined else None,
        )
        sharing.setdefault(id(view), (view, []))[1].append(m)
    for view, family in sharing.values():
        defined = [m for m in family if results[m.key].available]
        if not defined:
            continue
        for m, bars in _error_bars(sample, view, defined, results, drawing):
            results[m.key] = replace(results[m.key], **bars)
    return results


def _over_bins(m: Metric, scheme: Scheme) -> Callable[..., Any]:
    """The view of a metric, over the bins that are asked for where its own have equal width."""
    equal_width = isinstance(m.view, partial) and m.view.keywords == {"scheme": "equal-width"}
    return partial(m.view, scheme=scheme) if equal_width else m.view


def _error_bars(
    sample: Sample,
    view: Any,
    metrics: list[Metric],
    results: Mapping[str, MetricResult],
    drawing: _Drawing,
) -> Iterator[tuple[Metric, dict[str, Any]]]:
    # One row resamples to itself, so it has no interval.
    wanted = drawing.intervals and sample.data.n > 1
    needed = [m for m in metrics if wanted and needs_calibrated(drawing.method(m))]
    drawn = drawing.draw(view, metrics, "bootstrap") if wanted else {}
    under = metrics if drawing.noise_floors else needed
    calibrated = drawing.draw(view, under, "under_calibration") if under else {}
    coarse = view.as_drawn() if calibrated and hasattr(view, "as_drawn") else None
    for m in metrics:
        value, redrawn = results[m.key].value, calibrated.get(m.key)
        bars: dict[str, Any] = {}
        if m.key in drawn:
            method = usable(drawing.method(m), redrawn)
            found = error_bars.interval(
                drawn[m.key],
                drawing.level,
                value=value,
                method=method,
                calibrated=redrawn,
                bounds=m.bounds,
            )
            bars = {"interval": found, "interval_method": method if found else None}
        if redrawn is not None and drawing.noise_floors:
            # Like is compared with like: the value at the resolution of the redrawn ones.
            same = value if coarse is None else float(m.value(coarse)[0])
            bars["noise_floor"] = error_bars.noise_floor(redrawn, same, m.tail)
        yield m, bars
