"""Recalibrators side by side on the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from threading import Event
from typing import Any

import numpy as np

from calviz.analysis import evaluate
from calviz.comparison.fitting import UNCALIBRATED, Fitted, fit_and_apply
from calviz.comparison.paired import pair, squares
from calviz.comparison.rows import Rows, choose_rows
from calviz.core.comparison import Comparison, MethodResult
from calviz.core.errors import CalvizError
from calviz.core.metric import METRICS
from calviz.core.predictions import Dataset, Predictions
from calviz.core.recalibrator import RECALIBRATORS, RecalibratorSpec
from calviz.core.reduction import Reduction
from calviz.core.watch import Stopped, checkpoint, watching
from calviz.numerics.blocks import available_cores
from calviz.numerics.reduce import predicted_classes

Progress = Callable[[MethodResult, int, int], object]
Activity = Callable[[str, str], object]


def compare(
    data: Dataset,
    methods: Iterable[str] | str = "all",
    *,
    fit_split: str | None = None,
    eval_split: str | None = None,
    fit_fraction: float | None = None,
    cross_fit: int | None = None,
    seed: int = 0,
    in_sample: bool = False,
    metrics: Iterable[str] | None = None,
    reduction: Reduction | str | None = None,
    ci: bool = True,
    resamples: int = 1_000,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    jobs: int | None = None,
    progress: Progress | None = None,
    activity: Activity | None = None,
    stop: Callable[[], bool] | None = None,
) -> Comparison:
    """Fit recalibrators on some rows and compare them on others.

    A method that fails is a row with its reason; the others still finish.

    Parameters
    ----------
    data : Predictions or ConfidencePredictions
    methods : iterable of str or "all"
        Keys of recalibrators; the uncalibrated model always comes first.
    fit_split, eval_split, fit_fraction, cross_fit, seed, in_sample
        Which rows (see `choose_rows`).
    metrics : iterable of str, optional
        All metrics where left out.
    reduction : Reduction or str, optional
        Which (score, hit) pair the calibration metrics look at; where left out, the positive class of
        two classes, else the top label.
    ci : bool
        Whether to compute intervals, paired differences and shares of "best".
    resamples : int
    options : mapping of str to mapping, optional
        Parameters of single methods.
    jobs : int, optional
        Methods that are fitted at a time; the cores there are where left out.
    progress : callable, optional
        Called as ``progress(result, done, total)`` after each method, from the thread that fitted it.
    activity : callable, optional
        Called as ``activity(method, doing)`` while a method is worked at, from that thread.
    stop : callable, optional
        Asked all the time; where it says True, the methods that are not finished are rows with that reason, and the
        differences of the others are of fewer resamples.
    """
    specs = chosen(methods)
    rows = choose_rows(
        data,
        fit_split=fit_split,
        eval_split=eval_split,
        fit_fraction=fit_fraction,
        cross_fit=cross_fit,
        seed=seed,
        in_sample=in_sample,
    )
    seen_as = Reduction.of(reduction, data)
    judging = _Judging(
        data, rows, tuple(metrics) if metrics is not None else None, seen_as, ci, resamples, seed
    )
    own = options or {}
    finished: dict[str, MethodResult] = {}
    interrupted = Event()

    def run(spec: RecalibratorSpec) -> None:
        def step(doing: str) -> None:
            if interrupted.is_set() or (stop is not None and stop()):
                raise Stopped
            if doing and activity is not None:
                activity(spec.key, doing)

        with watching(step):
            result = judging.result(spec, own.get(spec.key, {}))
        finished[spec.key] = result
        if progress is not None:
            progress(result, len(finished), len(specs))

    workers = max(1, min(jobs or available_cores(), len(specs)))
    if workers == 1:
        for spec in specs:
            run(spec)
    else:
        with ThreadPoolExecutor(workers) as pool:
            try:
                list(pool.map(run, specs))
            except BaseException:
                interrupted.set()  # Ctrl-C waits for no fit
                raise
    results = {spec.key: finished[spec.key] for spec in specs}
    tied: dict[str, tuple[str, ...]] = {}
    if ci:
        with watching(None):  # what was stopped still says what is finished
            results, tied = judging.paired(results, stop or (lambda: False))
    measured = dict.fromkeys(key for r in results.values() for key in r.metrics)
    return Comparison(
        name=data.name,
        fit=rows.fit,
        evaluation=rows.evaluation,
        in_sample=rows.in_sample,
        seed=seed,
        reduction=seen_as.key,
        methods=results,
        directions={key: METRICS[key].direction for key in measured},
        tied=tied,
    )


def chosen(methods: Iterable[str] | str) -> list[RecalibratorSpec]:
    """The methods that are meant, the uncalibrated model first."""
    if methods == "all":
        return list(RECALIBRATORS)
    names = [methods] if isinstance(methods, str) else list(methods)
    return [RECALIBRATORS[name] for name in dict.fromkeys([UNCALIBRATED, *names])]


def _failed(spec: RecalibratorSpec, reason: str) -> MethodResult:
    return MethodResult(
        spec.key, spec.label, False, reason, accuracy_preserving=spec.accuracy_preserving
    )


@dataclass(frozen=True, eq=False)
class _Judging:
    data: Dataset
    rows: Rows
    metrics: tuple[str, ...] | None
    reduction: Reduction
    ci: bool
    resamples: int
    seed: int

    def result(self, spec: RecalibratorSpec, options: Mapping[str, Any]) -> MethodResult:
        """Fit and evaluate one method; whatever goes wrong becomes its reason."""
        try:
            checkpoint("fitting")
            return self._measured(spec, fit_and_apply(self.data, spec, self.rows, options))
        except CalvizError as error:
            return _failed(spec, str(error))
        except MemoryError:
            return _failed(spec, "there is not enough memory for it.")
        except Exception as error:
            return _failed(spec, f"it failed: {str(error) or type(error).__name__}.")

    def _measured(self, spec: RecalibratorSpec, done: Fitted) -> MethodResult:
        evaluation = evaluate(
            done.calibrated,
            self.metrics,
            reduction=self.reduction,
            ci=self.ci,
            noise_floor=False,
            resamples=self.resamples,
            seed=self.seed,
        )
        before = self.before
        return MethodResult(
            spec.key,
            spec.label,
            True,
            fit_seconds=done.fit_seconds,
            apply_seconds=done.apply_seconds,
            params=done.recalibrator.describe() if done.recalibrator is not None else {},
            accuracy_preserving=spec.accuracy_preserving,
            predictions_changed=_changed(before, done.calibrated),
            metrics=evaluation.metrics,
            calibration_gain=_gain(before, done.calibrated),
            warnings=done.warnings,
            calibrated=done.calibrated,
            recalibrator=done.recalibrator,
        )

    @property
    def before(self) -> Dataset:
        """The evaluation rows as they came."""
        if len(self.rows.pairs) > 1:
            return self.data
        return self.data.take(self.rows.pairs[0][1])

    def paired(
        self, results: dict[str, MethodResult], stop: Callable[[], bool]
    ) -> tuple[dict[str, MethodResult], dict[str, tuple[str, ...]]]:
        """Differences to the uncalibrated model, shares of best, and ties, on common resamples."""
        there = {
            key: r.calibrated for key, r in results.items() if r.ok and r.calibrated is not None
        }
        if UNCALIBRATED not in there or there[UNCALIBRATED].n < 2:
            return results, {}
        rng = np.random.default_rng([self.seed, 2])
        keys = [k for k in results[UNCALIBRATED].metrics if all(_has(results[m], k) for m in there)]
        paired = pair(
            there, keys, reduction=self.reduction, resamples=self.resamples, rng=rng, hurry=stop
        )
        wanted = list(paired.drawn)
        shares = {metric: paired.best_share(metric) for metric in wanted}
        tied = {
            metric: paired.tied_with_best(
                metric, {m: results[m].metrics[metric].value for m in there}
            )
            for metric in wanted
        }
        return {
            key: r
            if key not in there
            else replace(
                r,
                best_share={metric: shares[metric][key] for metric in wanted},
                differences={
                    metric: paired.difference(metric, key, UNCALIBRATED)
                    for metric in wanted
                    if key != UNCALIBRATED
                },
            )
            for key, r in results.items()
        }, tied


def _has(result: MethodResult, metric: str) -> bool:
    return metric in result.metrics and result.metrics[metric].available


def _changed(before: Dataset, after: Dataset) -> int:
    if not isinstance(before, Predictions) or not isinstance(after, Predictions):
        return 0
    return int(np.count_nonzero(predicted_classes(before) != predicted_classes(after)))


def _gain(before: Dataset, after: Dataset) -> float:
    """Squared error before minus after (Zhang 2020, eq. 8); of confidence-only data that of the confidence."""

    def error(data: Dataset) -> float:
        if isinstance(data, Predictions):
            own = data.probs[np.arange(data.n), data.labels].astype(np.float64)
            return float((squares(data) + 1 - 2 * own).mean())
        return float(((data.confidence.astype(np.float64) - data.correct) ** 2).mean())

    return error(before) - error(after)
