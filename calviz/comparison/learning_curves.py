"""Metrics against the number of calibration rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from calviz.analysis import evaluate
from calviz.comparison.fitting import fit_and_apply
from calviz.comparison.paired_differences import pair
from calviz.comparison.plan import specs_of
from calviz.comparison.rows import LEAST_ROWS, Division, strata
from calviz.comparison.stratified_parts import stratified_sample
from calviz.core.bins import DEFAULT_BINS, Scheme, bins_used
from calviz.core.errors import OptionError
from calviz.core.predictions import Dataset
from calviz.core.progress import Stopped
from calviz.core.reduction import Reduction
from calviz.results.comparison import DifferenceVerdict
from calviz.results.learning_curve import LearningCurve, LearningPoint
from calviz.specs.metric import METRICS
from calviz.specs.recalibrator import UNCALIBRATED

#: Number of resamples of the evaluation rows for the verdict on one point.
VERDICT_RESAMPLES = 300


def learning_curve(
    data: Dataset,
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
        Number of stratified draws of calibration rows per size, the same for every method. The size of all
        rows has a single draw.
    progress : callable, optional
        Called as ``progress(done, total)`` after every fit.

    The other parameters are as in `compare`.
    """
    specs = specs_of(methods)
    rows = Division(
        fit_split=fit_split, eval_split=eval_split, fit_fraction=fit_fraction, seed=seed
    ).rows(data)
    pool, judged = rows.pairs[0]
    if sizes is None:
        least = min(pool.size, max(50, pool.size // 64))
        steps = np.geomspace(least, pool.size, 6)
        # Two digits are easier to read; the last size is exactly all rows.
        rounded = {int(float(f"{size:.2g}")) for size in steps[:-1]} | {pool.size}
        sizes = sorted(size for size in rounded if LEAST_ROWS <= size <= pool.size)
    for size in sizes:
        if not LEAST_ROWS <= size <= pool.size:
            raise OptionError(
                f"'sizes' must be from {LEAST_ROWS} to the {pool.size:,} calibration rows, got {size}."
            )
    resolved = Reduction.of(reduction, data)
    judged_before = data.take(judged)
    settings: dict[str, Any] = {"reduction": resolved, "bins": bins, "scheme": scheme}
    before = evaluate(judged_before, metrics, ci=True, noise_floor=True, seed=seed, **settings)
    values_of: dict[tuple[str, int, str], list[float]] = {}
    verdicts: dict[tuple[str, int, str], DifferenceVerdict] = {}
    failures: dict[str, str] = {}

    def curve() -> LearningCurve:
        return LearningCurve(
            name=data.name,
            points=_points(values_of, verdicts),
            failures=failures,
            fit=rows.fit,
            evaluation=rows.evaluation,
            reduction=resolved.key,
            bins=bins_used(judged_before.n, bins, scheme),
            scheme=scheme,
            seed=seed,
            uncalibrated=before.metrics,
            directions={key: METRICS[key].direction for key in metrics},
            labels={spec.key: spec.label for spec in specs},
        )

    classes = strata(data)[pool]
    draws = [(size, r) for size in sizes for r in range(repeats if size < pool.size else 1)]
    done, total = 0, len(specs) * len(draws)
    for size, repeat in draws:
        rng = np.random.default_rng([seed, size, repeat])
        fit = pool[stratified_sample(classes, size, rng)]
        part = replace(rows, pairs=((fit, judged),))
        for spec in specs:
            if stop is not None and stop():
                return curve()
            try:
                values = before.metrics
                if spec.key != UNCALIBRATED:
                    fitted = fit_and_apply(data, spec, part, (options or {}).get(spec.key, {}))
                    values = evaluate(fitted.calibrated, metrics, **settings).metrics
                    if repeat == 0:
                        sets = {spec.key: fitted.calibrated, UNCALIBRATED: judged_before}
                        for metric, verdict in _beyond_noise(sets, metrics, seed, settings):
                            verdicts[spec.key, size, metric] = verdict
                for metric in metrics:
                    key = (spec.key, size, metric)
                    values_of.setdefault(key, []).append(values[metric].value)
            except Stopped:
                return curve()
            except Exception as error:
                reason = str(error) or type(error).__name__
                failures.setdefault(spec.key, f"with {size:,} rows: {reason}")
            done += 1
            if progress is not None:
                progress(done, total)
    return curve()


def _beyond_noise(
    sets: Mapping[str, Dataset], metrics: Sequence[str], seed: int, settings: Mapping[str, Any]
) -> Iterator[tuple[str, DifferenceVerdict]]:
    """Yield each metric with the verdict on the first set against the second."""
    first, second = sets
    if sets[first].n < 2:
        return
    rng = np.random.default_rng([seed, 4])
    paired = pair(sets, metrics, resamples=VERDICT_RESAMPLES, rng=rng, **settings)
    for metric in paired.metrics:
        yield metric, paired.difference(metric, first, second).verdict


def _points(
    values_of: Mapping[tuple[str, int, str], list[float]],
    verdicts: Mapping[tuple[str, int, str], DifferenceVerdict],
) -> tuple[LearningPoint, ...]:
    return tuple(
        LearningPoint(
            method,
            size,
            metric,
            float(np.mean(values)),
            float(np.quantile(values, 0.05)),
            float(np.quantile(values, 0.95)),
            len(values),
            verdicts.get((method, size, metric)),
        )
        for (method, size, metric), values in values_of.items()
    )
