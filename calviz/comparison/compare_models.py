"""Compare models on the same rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from calviz.analysis import evaluate
from calviz.comparison.compare import carry_out
from calviz.comparison.matched_rows import align
from calviz.comparison.paired_differences import pair
from calviz.comparison.plan import Plan
from calviz.comparison.rows import Division
from calviz.core.bins import DEFAULT_BINS, Scheme, bins_used
from calviz.core.errors import InputError, NotAvailable, OptionError
from calviz.core.predictions import Dataset
from calviz.core.progress import Stopped, checkpoint
from calviz.core.reduction import Reduction
from calviz.profiles.profile import Profile, dataset_of
from calviz.results.comparison import Comparison, MethodResult
from calviz.results.model_comparison import (
    Alignment,
    ModelComparison,
    ModelResult,
    ModelsByMethods,
)
from calviz.results.slices import Where, rows_where
from calviz.sample.error_bars import RESAMPLES
from calviz.sample.sample import Sample
from calviz.specs.metric import METRICS

Models = Mapping[str, Dataset | Profile] | Sequence[Dataset | Profile]
Progress = Callable[[str, int, int], object]


def compare_models(
    models: Models | Alignment,
    metrics: Iterable[str] | Literal["all"] | None = None,
    *,
    split: str | None = None,
    where: Where = (),
    reduction: Reduction | str | None = None,
    bins: int = DEFAULT_BINS,
    scheme: Scheme = "equal-width",
    ci: bool = True,
    resamples: int = RESAMPLES,
    seed: int = 0,
    samples: Mapping[str, Sample] | None = None,
    progress: Progress | None = None,
    stop: Callable[[], bool] | None = None,
) -> ModelComparison:
    """Evaluate several models on the same rows, with paired differences.

    Parameters
    ----------
    models : mapping of str to Predictions, sequence of Predictions, or Alignment
        At least two; models in a sequence are called by the names of their predictions.
    metrics : iterable of str or "all", optional
        Keys; if left out, those of the tables: accuracy, proper scores, ECE, KS error, MCS and AURC.
    split : str, optional
        Only the rows of this split, in each model that has it.
    where : tuple of (str, str), optional
        Only the rows of a slice: pairs of group column and value, all of which hold.
    reduction : Reduction or str, optional
        Which (score, hit) pair the calibration metrics use; if left out, the positive class of
        two classes, otherwise the top label.
    bins, scheme
        Of the binned metrics, as in `calviz.evaluate`.
    ci : bool
        Whether to compute intervals, paired differences, ranks and shares of "best".
    resamples, seed : int
    samples : mapping of str to Sample, optional
        Samples of the models by name: results cached with one are used if the model has the same rows after matching, and
        new results are cached with it.
    progress : callable, optional
        Called as ``progress(name, done, total)`` after each model.
    stop : callable, optional
        Called before each model; once it returns True, the remaining models are not evaluated.

    Raises
    ------
    InputError, OptionError
        If the models cannot be matched (see `align`), or an argument is wrong. A model that
        cannot be evaluated has a row with the reason.
    """
    aligned = same_rows(models, split=split, where=where)
    reduction = Reduction.of(reduction, *aligned.models.values())
    keys = METRICS.selection(metrics, "rivals")
    results: dict[str, ModelResult] = {}
    for done, (name, data) in enumerate(aligned.models.items(), start=1):
        if stop is not None and stop():
            results[name] = ModelResult(name, reason="stopped before it was evaluated.")
            continue
        results[name] = _model_result(
            name,
            data,
            (samples or {}).get(name),
            keys,
            reduction=reduction,
            bins=bins,
            scheme=scheme,
            ci=ci,
            resamples=resamples,
            seed=seed,
        )
        if progress is not None:
            progress(name, done, len(aligned.models))
    measured = dict.fromkeys(key for r in results.values() for key in r.metrics)
    comparison = ModelComparison(
        alignment=aligned,
        split=split,
        reduction=reduction.key,
        bins=bins_used(aligned.rows, bins, scheme),
        scheme=scheme,
        seed=seed,
        models=results,
        directions={key: METRICS[key].direction for key in measured},
    )
    if not ci or aligned.rows == 1:
        return comparison
    with suppress(Stopped):
        return _with_differences(comparison, bins, scheme, resamples)
    return comparison


def _model_result(
    name: str, data: Dataset, given: Sample | None, keys: tuple[str, ...] | None, **settings: Any
) -> ModelResult:
    """Evaluate one model, by its given sample if that has the same rows; the result of one that cannot be evaluated is the reason."""
    try:
        checkpoint(f"measuring {name}")
        sample = given if given is not None and given.data.has_metrics_of(data) else data
        evaluation = evaluate(
            sample, keys, noise_floor=False, classes=False, findings=False, **settings
        )
        if isinstance(sample, Sample) and sample.is_large:
            sample.let_go()  # free memory for the next model
        return ModelResult(name, evaluation.metrics)
    except (InputError, NotAvailable, Stopped) as error:
        return ModelResult(name, reason=str(error))


def compare_methods(
    models: Models | Alignment,
    methods: Iterable[str] | str,
    *,
    metrics: Iterable[str],
    fit_split: str | None = None,
    eval_split: str | None = None,
    fit_fraction: float | None = None,
    seed: int = 0,
    reduction: Reduction | str | None = None,
    bins: int = DEFAULT_BINS,
    scheme: Scheme = "equal-width",
    options: Mapping[str, Mapping[str, Any]] | None = None,
    progress: Progress | None = None,
    stop: Callable[[], bool] | None = None,
) -> ModelsByMethods:
    """Compare recalibrators for several models, fitted and judged on the same rows (Guo 2017, table 1).

    Parameters
    ----------
    models : mapping of str to Predictions, sequence of Predictions, or Alignment
    methods : iterable of str or "all"
        Keys of recalibrators; the uncalibrated model always comes first.
    metrics : iterable of str
    fit_split, eval_split, fit_fraction, seed, reduction, bins, scheme, options
        As in `compare`.
    progress : callable, optional
        Called as ``progress(words, done, total)`` after each method of each model.
    stop : callable, optional
        Called before each method; once it returns True, the remaining methods are not fitted.
    """
    aligned = same_rows(models)
    plan = Plan(
        methods=methods if isinstance(methods, str) else tuple(methods),
        division=Division(
            fit_split=fit_split, eval_split=eval_split, fit_fraction=fit_fraction, seed=seed
        ),
        metrics=tuple(metrics),
        reduction=Reduction.of(reduction, *aligned.models.values()),
        bins=bins,
        scheme=scheme,
        options=options or {},
    )
    comparisons: dict[str, Comparison] = {}
    failures: dict[str, str] = {}

    for at, (name, data) in enumerate(aligned.models.items()):

        def report(
            result: MethodResult, done: int, total: int, name: str = name, at: int = at
        ) -> None:
            if progress is not None:
                progress(f"{name}: {result.label}", at * total + done, len(aligned.models) * total)

        try:
            comparison = carry_out(plan, data, progress=report, stop=stop)
        except (InputError, NotAvailable) as error:
            failures[name] = str(error)
            continue
        # Only numbers are kept, because the calibrated rows of all methods of all models would take much memory.
        without_rows = {m.key: replace(m, calibrated=None) for m in comparison}
        comparisons[name] = replace(comparison, methods=without_rows)
    return ModelsByMethods(aligned, comparisons, failures)


def _with_differences(
    comparison: ModelComparison, bins: int, scheme: Scheme, resamples: int
) -> ModelComparison:
    sets = {name: m for name, m in comparison.alignment.models.items() if comparison[name].ok}
    if len(sets) < 2:
        return comparison
    rng = np.random.default_rng([comparison.seed, 3])
    checkpoint("resampling all models together")
    keys = [
        key
        for key in comparison.directions
        if all(
            key in comparison[name].metrics and comparison[name].metrics[key].available
            for name in sets
        )
    ]
    paired = pair(
        sets,
        keys,
        reduction=comparison.reduction,
        resamples=resamples,
        rng=rng,
        bins=bins,
        scheme=scheme,
    )
    shares = {key: paired.best_share(key) for key in paired.metrics}
    return replace(
        comparison,
        models={
            name: replace(m, best_share={key: shares[key][name] for key in paired.metrics})
            if m.ok
            else m
            for name, m in comparison.models.items()
        },
        pairs={
            key: {
                (a, b): paired.difference(key, a, b, paired.all_pairs) for a, b in paired.all_pairs
            }
            for key in paired.metrics
        },
        undefined=paired.undefined,
    )


def same_rows(
    models: Models | Alignment,
    *,
    split: str | None = None,
    where: Where = (),
) -> Alignment:
    """Return the models on their common rows that count (see `align` and `compare_models`)."""
    if isinstance(models, Alignment):
        aligned = models
    else:
        by_name = _by_name(models)
        if split is not None:
            by_name = _split(by_name, split)
        aligned = align(by_name)
    matched = aligned.models
    mask = rows_where(next(iter(matched.values())), where)
    if mask is not None:
        rows = np.flatnonzero(mask)
        matched = {name: m.take(rows) for name, m in matched.items()}
    return replace(aligned, models={name: m.that_count() for name, m in matched.items()})


def _by_name(models: Models) -> dict[str, Dataset]:
    if not isinstance(models, Mapping | Sequence):
        raise OptionError(
            f"got {type(models).__name__}, expected several models: a list of predictions, or a mapping of names to them."
        )
    if isinstance(models, Mapping):
        by_name = {str(name): dataset_of(data) for name, data in models.items()}
        if len(by_name) < len(models):
            raise OptionError("two of the names of the models are equal when written as text.")
    else:
        listed = [dataset_of(data) for data in models]
        names = [data.name for data in listed]
        double = next((n for n in names if names.count(n) > 1), None)
        if double is not None:
            raise OptionError(
                f"two models are called '{double}'; give a mapping of names to predictions."
            )
        by_name = dict(zip(names, listed, strict=True))
    if any(data.cells is not None for data in by_name.values()):
        raise NotAvailable(
            "models are compared row by row, and the cells of two profiles are not of the same rows."
        )
    if len(by_name) < 2:
        raise OptionError(f"a comparison takes at least two models, got {len(by_name)}.")
    return by_name


def _split(models: Mapping[str, Dataset], split: str) -> dict[str, Dataset]:
    if not any(split in m.split_names for m in models.values()):
        names = dict.fromkeys(s for m in models.values() for s in m.split_names)
        raise InputError(
            f"there is no split '{split}'",
            remedy=f"known: {', '.join(names)}" if names else "leave the split out",
        )
    return {name: m.split(split) if split in m.split_names else m for name, m in models.items()}
