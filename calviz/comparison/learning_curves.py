"""Metrics against the number of calibration rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from calviz.comparison.comparison_results import Difference
from calviz.comparison.difference_intervals import Z
from calviz.comparison.fitting import fit_and_apply
from calviz.comparison.paired_differences import pair
from calviz.comparison.rows import LEAST_ROWS, Division, Rows, specs_of
from calviz.comparison.study_results import LearningCurve, LearningPoint
from calviz.core.blocks import IntArray, Stopped
from calviz.core.entry_specs import METRICS, UNCALIBRATED, Metric, RecalibratorSpec, badness
from calviz.core.errors import NotAvailable, OptionError
from calviz.core.events import DEFAULT_BINS, Reduction, Scheme, bins_used
from calviz.core.predictions import Dataset
from calviz.core.profile import Profile, dataset_of
from calviz.sample.metric_results import MetricResult
from calviz.verdicts.analysis import evaluate

#: Number of resamples of the evaluation rows for the verdict on one point.
VERDICT_RESAMPLES = 300


def learning_curve(
    data: Dataset | Profile,
    methods: Sequence[str],
    *,
    sizes: Sequence[int] | None = None,
    repeats: int = 5,
    fit_split: str | None = None,
    eval_split: str | None = None,
    fit_fraction: float | None = None,
    seed: int = 0,
    metrics: Sequence[str] = ("ece", "accuracy"),
    reduction: Reduction | str | None = None,
    bins: int = DEFAULT_BINS,
    scheme: Scheme = "equal-width",
    options: Mapping[str, Mapping[str, Any]] | None = None,
    progress: Callable[[int, int], object] | None = None,
    stop: Callable[[], bool] | None = None,
) -> LearningCurve:
    """Compute metrics against the number of calibration rows, always on the same evaluation rows (Zhang 2020, figure 6).

    Parameters
    ----------
    sizes : sequence of int, optional
        Numbers of calibration rows; if left out, six steps up to all of them.
    repeats : int
        Number of random draws of calibration rows per size, the same for every method. The size of all
        rows has a single draw.
    progress : callable, optional
        Called as ``progress(done, total)`` after every fit.

    The other parameters are as in `compare`.
    """
    data = dataset_of(data)
    if data.cells is not None:
        raise NotAvailable("learning curves draw rows: a profile holds their sums only.")
    specs = specs_of(methods, options or {})
    rows = Division(
        fit_split=fit_split, eval_split=eval_split, fit_fraction=fit_fraction, seed=seed
    ).rows(data)
    pool, judged = rows.pairs[0]
    if sizes is None:
        sizes = _usual_sizes(pool.size)
    _check_sizes(sizes, pool.size)
    judged_before = data.take(judged)
    settings: dict[str, Any] = {
        "reduction": Reduction.of(reduction, data),
        "bins": bins,
        "scheme": scheme,
    }
    before = evaluate(judged_before, metrics, ci=True, noise_floor=True, seed=seed, **settings)
    measured = _Measured(data, specs, rows, metrics, settings, seed, judged_before, before.metrics)
    draws = [(size, r) for size in sizes for r in range(repeats if size < pool.size else 1)]
    done, total = 0, len(specs) * len(draws)
    for size, repeat in draws:
        rng = np.random.default_rng([seed, size, repeat])
        # As labels come: drawn by class, maps would vary less than with fresh labels.
        fit = pool[np.sort(rng.choice(pool.size, size, replace=False))]
        for spec in specs:
            if stop is not None and stop():
                return measured.curve()
            try:
                measured.add(spec, fit, (options or {}).get(spec.key, {}), compared=repeat == 0)
            except Stopped:
                return measured.curve()
            done += 1
            if progress is not None:
                progress(done, total)
    return measured.curve()


def _usual_sizes(n: int) -> list[int]:
    """Return six numbers of rows at equal ratios, up to all `n`."""
    steps = np.geomspace(min(n, max(50, n // 64)), n, 6)
    # Two digits are easier to read; the last size is exactly all rows.
    rounded = {int(float(f"{size:.2g}")) for size in steps[:-1]} | {n}
    return sorted(size for size in rounded if LEAST_ROWS <= size <= n)


def _check_sizes(sizes: Sequence[int], n: int) -> None:
    for size in sizes:
        if not LEAST_ROWS <= size <= n:
            raise OptionError(
                f"'sizes' must be from {LEAST_ROWS} to the {n:,} calibration rows, got {size}."
            )


@dataclass(frozen=True, eq=False)
class _Measured:
    """What has been measured so far, always on the same evaluation rows."""

    data: Dataset
    specs: Sequence[RecalibratorSpec]
    rows: Rows
    metrics: Sequence[str]
    #: Arguments of `evaluate`: reduction, bins and scheme.
    settings: Mapping[str, Any]
    seed: int
    #: The evaluation rows of the uncalibrated model, and its metrics.
    judged_before: Dataset
    before: Mapping[str, MetricResult]
    #: By method, number of calibration rows and metric.
    values: dict[tuple[str, int, str], list[float]] = field(default_factory=dict)
    differences: dict[tuple[str, int, str], Difference] = field(default_factory=dict)
    #: The first reason by method.
    failures: dict[str, str] = field(default_factory=dict)

    def add(
        self,
        spec: RecalibratorSpec,
        fit: IntArray,
        options: Mapping[str, Any],
        *,
        compared: bool,
    ) -> None:
        """Fit a method on some rows and measure it; any error but `Stopped` becomes its reason."""
        try:
            metrics = self.before
            if spec.key != UNCALIBRATED:
                rows = replace(self.rows, pairs=((fit, self.rows.pairs[0][1]),))
                after = fit_and_apply(self.data, spec, rows, options).calibrated
                metrics = evaluate(after, self.metrics, **self.settings).metrics
                if compared:
                    for metric, difference in self._differences(spec.key, after):
                        self.differences[spec.key, fit.size, metric] = difference
            for metric in self.metrics:
                values = self.values.setdefault((spec.key, fit.size, metric), [])
                values.append(metrics[metric].value)
        except Stopped:
            raise
        except Exception as error:
            reason = str(error) or type(error).__name__
            self.failures.setdefault(spec.key, f"with {fit.size:,} rows: {reason}")

    def _differences(self, method: str, after: Dataset) -> Iterator[tuple[str, Difference]]:
        """Yield each metric with its difference from the uncalibrated model."""
        if after.n < 2:
            return
        paired = pair(
            {method: after, UNCALIBRATED: self.judged_before},
            self.metrics,
            resamples=VERDICT_RESAMPLES,
            rng=np.random.default_rng([self.seed, 4]),
            **self.settings,
        )
        for metric in paired.metrics:
            yield metric, paired.difference(metric, method, UNCALIBRATED)

    def curve(self) -> LearningCurve:
        """Return the curve of what has been measured so far."""
        bins, scheme = self.settings["bins"], self.settings["scheme"]
        return LearningCurve(
            name=self.data.name,
            points=_points(self.values, self.differences, self.before),
            failures=self.failures,
            fit=self.rows.fit,
            evaluation=self.rows.evaluation,
            reduction=self.settings["reduction"].key,
            bins=bins_used(self.judged_before.n, bins, scheme),
            scheme=scheme,
            seed=self.seed,
            uncalibrated=self.before,
            directions={key: METRICS[key].direction for key in self.metrics},
            labels={spec.key: spec.label for spec in self.specs},
            clustered=self.data.clusters is not None,
        )


def _points(
    values_of: Mapping[tuple[str, int, str], list[float]],
    differences: Mapping[tuple[str, int, str], Difference],
    before: Mapping[str, MetricResult],
) -> tuple[LearningPoint, ...]:
    points = []
    for (method, size, metric), values in values_of.items():
        worse = badness(METRICS[metric].direction)
        gains = np.array(
            [0.0 if worse is None else worse(before[metric].value) - worse(v) for v in values]
        )
        difference = differences.get((method, size, metric))
        points.append(
            LearningPoint(
                method,
                size,
                metric,
                float(np.mean(values)),
                float(np.quantile(values, 0.05)),
                float(np.quantile(values, 0.95)),
                len(values),
                None if difference is None else difference.verdict,
                float(gains.mean()),
                float(gains.std(ddof=1)) if gains.size > 1 else np.nan,
                np.nan if difference is None else _noise(METRICS[metric], difference),
            )
        )
    return tuple(points)


def _noise(metric: Metric, difference: Difference) -> float:
    """Standard error of a difference: from its value to the end of the interval where it would be no better."""
    ends = difference.adjusted or difference.interval
    if metric.direction in ("zero", "one"):  # the interval of the difference of absolute values
        return (ends.high - ends.low) / (2 * Z)
    if metric.direction == "higher":
        return (difference.value - ends.low) / Z
    return (ends.high - difference.value) / Z
