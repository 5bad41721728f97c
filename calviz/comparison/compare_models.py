"""Models compared on the same rows, matched by identifier or order, with the same classes in the same order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce
from itertools import combinations
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from calviz.comparison.comparison_results import (
    PROPER,
    Alignment,
    BetterWhere,
    Comparison,
    Difference,
    MethodResult,
    ModelComparison,
    ModelResult,
    ranked_by,
)
from calviz.comparison.paired_differences import Paired, pair
from calviz.core import errors, predictions
from calviz.core.blocks import AnyArray, Factor, IntArray, Stopped, checkpoint, row_weights
from calviz.core.entry_specs import METRICS, RECALIBRATORS, Interval, MetricResult, cheap_method
from calviz.core.events import DEFAULT_BINS, BinNumber, Reduction, Scheme
from calviz.core.predictions import NO_IDENTIFIER, Dataset, Predictions, identifier_texts, with_rows
from calviz.core.words import counted, listed, shorten
from calviz.data.column_names import may_be_cluster, may_be_time
from calviz.sample import slice_tests
from calviz.sample.sample import AnyRows, Sample, Where, dataset_of, rows_where
from calviz.verdicts.analysis import evaluate

if TYPE_CHECKING:
    import pandas as pd

    from calviz.comparison.compare import Plan

Models = Mapping[str, AnyRows] | Sequence[AnyRows]
Progress = Callable[[str, int, int], object]


def compare_models(
    models: Models | Alignment,
    metrics: Iterable[str] | Literal["all"] | None = None,
    *,
    split: str | None = None,
    where: Where = (),
    reduction: Reduction | str | None = None,
    bins: BinNumber = DEFAULT_BINS,
    scheme: Scheme | None = None,
    ci: bool = True,
    resamples: int = errors.RESAMPLES,
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
        Keys; if left out, those of the tables: accuracy, proper scores, ECE, KS error, MCS and AURC; of confidences also the AUROC of
        failure detection, of the positive class of two also AUROC, O/E, calibration slope and intercept.
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
    if metrics is None and keys is not None:
        keys += aligned.more_metrics(reduction.key)
    # One way to place the bins of all: that of the first model.
    how: dict[str, Any] = {"reduction": reduction, "bins": bins, "resamples": resamples}
    first = Sample(next(iter(aligned.models.values())), scheme=scheme, seed=seed, **how)
    results: dict[str, ModelResult] = {}
    for done, (name, data) in enumerate(aligned.models.items(), start=1):
        if stop is not None and stop():
            results[name] = ModelResult(name, reason="stopped before it was evaluated.")
            continue
        results[name] = _model_result(name, data, (samples or {}).get(name), keys, first, ci)
        if progress is not None:
            progress(name, done, len(aligned.models))
    measured = dict.fromkeys(key for r in results.values() for key in r.metrics)
    comparison = ModelComparison(
        alignment=aligned,
        split=split,
        reduction=reduction.key,
        bins=first.bins_used,
        scheme=first.placed,
        seed=seed,
        models=results,
        directions={key: METRICS[key].direction for key in measured},
    )
    if not ci or aligned.rows == 1:
        return comparison
    with suppress(Stopped):
        return with_slices(_with_differences(comparison, how | {"scheme": first.placed}))
    return comparison


def _model_result(
    name: str, data: Dataset, given: Sample | None, keys: Any, first: Sample, ci: bool
) -> ModelResult:
    """Evaluate one model, by its given sample if that has the same rows; the result of one that cannot be evaluated is the reason."""
    try:
        checkpoint(f"measuring {name}")
        kept = given if given is not None and given.data.has_metrics_of(data) else None
        how = errors.picked(first, "reduction bins scheme seed resamples")
        sample = Sample.of(kept or data, **how)
        fast: dict[str, Any] = dict.fromkeys(("noise_floor", "classes", "findings"), False)
        found = evaluate(sample, keys, ci=ci, scheme=first.placed, **fast)
        if sample.is_large:
            sample.let_go()  # free memory for the next model
        return ModelResult(name, found.metrics, sample=sample)
    except (errors.InputError, errors.NotAvailable, Stopped) as error:
        return ModelResult(name, reason=str(error))


def _with_differences(comparison: ModelComparison, settings: Mapping[str, Any]) -> ModelComparison:
    sets = {name: m for name, m in comparison.alignment.models.items() if comparison[name].ok}
    if len(sets) < 2:
        return comparison
    rng = np.random.default_rng([comparison.seed, 3])
    checkpoint("resampling all models together")
    of = [comparison[name].metrics for name in sets]
    keys = [k for k in comparison.directions if all(k in m and m[k].available for m in of)]
    paired = pair(sets, keys, rng=rng, **settings)
    shares = {key: metric.best_share() for key, metric in paired.metrics.items()}
    return replace(
        comparison,
        models={
            name: replace(m, best_share={k: v[name] for k, v in shares.items()}) if m.ok else m
            for name, m in comparison.models.items()
        },
        pairs=_differences(paired, sets),
        undefined=paired.undefined,
    )


def _differences(
    paired: Paired, models: Iterable[str], ends: tuple[str, ...] = ("",)
) -> dict[str, dict[tuple[str, str], Difference]]:
    """Return the differences of all pairs of models, whose names have the first end, adjusted for the pairs with each of them."""
    pairs = tuple(combinations(models, 2))
    every = tuple((f"{a}{end}", f"{b}{end}") for end in ends for a, b in pairs)
    found = {
        key: [metric.difference(*names, every) for names in every[: len(pairs)]]
        for key, metric in paired.metrics.items()
    }
    # Maps of scores that differ by such a map alone agree up to the accuracy of their fit.
    same = Difference(0.0, Interval(0.0, 0.0), "tied")
    least = LEAST if len(ends) > 1 else -1.0
    return {
        key: {
            names: d if abs(d.value) > least else same for names, d in zip(pairs, of, strict=True)
        }
        for key, of in found.items()
    }


def with_slices(comparison: ModelComparison) -> ModelComparison:
    """Add the slices of the default columns where the best model and the next have another order than on all rows, or that make it.

    The mean difference in such a slice is neither 0 nor that of the other rows (`calviz.sample.slice_tests.p_of_means`). Of those with the
    order of all rows, the surest is kept, if the models are not told apart without it.
    """
    metric = next(iter(ranked_by(comparison)), "")
    if metric not in PROPER:
        return comparison
    first, second = comparison.ranking(metric)[:2]
    samples = [Sample(comparison.alignment.models[name]) for name in (first, second)]
    data, overall = samples[0].data, comparison.difference(metric, first, second)
    # What is of one model's scores is no column of both.
    columns = tuple(name for name in predictions.usual_columns(data) if name in data.to_slice())
    factors, _ = predictions.sliced_columns(data, columns, slice_tests.LEAST_ROWS)
    if overall is None or not factors:
        return comparison
    losses = [np.asarray(s.view(METRICS[metric].view).losses, np.float64) for s in samples]
    mean, p = slice_tests.p_of_means(
        losses[0] - losses[1],
        list(factors.values()),
        row_weights(samples[0].weights, data.n),
        None if data.clusters is None else data.clusters.codes,
        seed=comparison.seed,
    )
    where = [(name, value) for name, f in factors.items() for value in f.levels]
    sides = {True: (first, second), False: (second, first)}
    named = [
        BetterWhere(where[i], metric, *sides[bool(mean[i] < 0)], abs(float(mean[i])))
        for i in np.argsort(p, kind="stable")
        if p[i] <= slice_tests.LEVEL
    ]
    turned = tuple(one for one in named if overall.tied or one.better == second)
    surest = [one for one in named if one not in turned][:1]
    of_lead = tuple(one for one in surest if not _is_better_without(one, comparison))
    return replace(comparison, where=turned, of_lead=of_lead)


def _is_better_without(slice_: BetterWhere, comparison: ModelComparison) -> bool:
    """Whether the model is better beyond noise on the rows outside the slice, too."""
    models = {k: comparison.alignment.models[k] for k in (slice_.better, slice_.other)}
    others = ~np.asarray(rows_where(models[slice_.better], (slice_.condition,)))
    paired = pair(
        {name: m.take(np.flatnonzero(others)) for name, m in models.items()},
        [slice_.metric],
        reduction=comparison.reduction,
        resamples=errors.RESAMPLES,
        rng=np.random.default_rng([comparison.seed, 3]),
    )
    return paired.metrics[slice_.metric].difference(slice_.better, slice_.other).verdict == "better"


#: Split of the rows that a map was fitted on, in a calibrated file.
FITTED = "calibration"
#: Folds in which each model is cross-fitted where no split is there to fit on.
FOLDS = 5
#: Differences of log loss or Brier score up to this are none.
LEAST = 1e-6
#: End of the name of a model after a map; no name of a user's has it.
MAPPED = "\0"


def after_map(
    comparison: ModelComparison,
    models: Models | Alignment,
    *,
    where: Where = (),
    resamples: int = errors.RESAMPLES,
) -> ModelComparison:
    """Compare the models after one map for each as well; return the comparison as it is where none can be fitted.

    The map has a parameter or two (`cheap_method`). It is fitted on the split that fits for the one that judges, or cross-fitted. By
    log loss and Brier score, verdicts before and after are adjusted for all pairs of both.

    Parameters
    ----------
    comparison : ModelComparison
        With paired differences.
    models : mapping of str to Predictions, sequence of Predictions, or Alignment
        The same models with the rows of all splits.
    where, resamples
        As in `compare_models`.
    """
    with suppress(errors.CalvizError, Stopped):
        return _after_map(comparison, same_rows(models, where=where), resamples)
    return comparison


def _after_map(comparison: ModelComparison, aligned: Alignment, resamples: int) -> ModelComparison:
    # What fits maps imports scikit-learn, in 0.6 s, for which models alone do not wait.
    from calviz.comparison.fitting import Division, fit_and_apply

    sets = {name: m for name, m in aligned.models.items() if comparison[name].ok}
    keys = [key for key in PROPER if key in comparison.pairs]
    first = min(sets.values(), key=lambda m: m.kind != "confidence")
    split, seed = comparison.split, comparison.seed
    division = Division(eval_split=split, cross_fit=FOLDS, seed=seed)
    if split and (other := Division.with_other_split(first, split)).fit_split:
        division = other
    rows, spec = division.rows(first), RECALIBRATORS[cheap_method(first)]
    if not keys or rows.judged.size != comparison.rows:
        return comparison
    mapped = {name: fit_and_apply(m, spec, rows, {}).calibrated for name, m in sets.items()}
    judged = {name: rows.judged_of(m) for name, m in sets.items()}
    checkpoint("resampling all models together, before and after")
    paired = pair(
        {**judged, **{f"{name}{MAPPED}": m for name, m in mapped.items()}},
        keys,
        reduction=comparison.reduction,
        resamples=resamples,
        rng=np.random.default_rng([seed, 3]),
    )
    values = {key: metric.values for key, metric in paired.metrics.items()}
    results = {
        name: {key: MetricResult(key, of[f"{name}{MAPPED}"]) for key, of in values.items()}
        for name in sets
    }
    after = replace(
        comparison,
        alignment=replace(aligned, models=mapped),
        models={name: ModelResult(name, metrics) for name, metrics in results.items()},
        directions={key: comparison.directions[key] for key in values},
        pairs=_differences(paired, sets, (MAPPED, "")),
        method=spec.key,
        fit=rows.fit,
    )
    before = _differences(paired, sets, ("", MAPPED))
    return replace(comparison, pairs={**comparison.pairs, **before}, after=after)


@dataclass(frozen=True, eq=False)
class ModelsByMethods:
    """Recalibrators compared for several models, on the same rows (Guo 2017, table 1).

    Attributes
    ----------
    models : mapping of str to Comparison
    failures : mapping of str to str
        Reason for each model that could not be compared.
    """

    models: Mapping[str, Comparison]
    failures: Mapping[str, str]

    def frame(self, metric: str) -> pd.DataFrame:
        """Return a table with one row per model and one column per method; ``nan`` where a method failed."""
        return errors.data_frame(
            {
                "model": name,
                **{
                    m.key: m.metrics[metric].value if metric in m.metrics else float("nan")
                    for m in comparison
                },
            }
            for name, comparison in self.models.items()
        ).set_index("model")


def compare_methods(
    models: Models | Alignment,
    plan: Plan,
    *,
    progress: Progress | None = None,
    stop: Callable[[], bool] | None = None,
) -> ModelsByMethods:
    """Compare recalibrators for several models, fitted and judged on the same rows (Guo 2017, table 1).

    Parameters
    ----------
    models : mapping of str to Predictions, sequence of Predictions, or Alignment
    plan : Plan
        What is compared, as in `compare`.
    progress : callable, optional
        Called as ``progress(words, done, total)`` after each method of each model.
    stop : callable, optional
        Called before each method; once it returns True, the remaining methods are not fitted.
    """
    # What fits maps imports scikit-learn, in 0.6 s, for which models alone do not wait.
    from calviz.comparison.compare import carry_out

    aligned = same_rows(models)
    plan = replace(plan, reduction=Reduction.of(plan.reduction, *aligned.models.values()))
    comparisons: dict[str, Comparison] = {}
    failures: dict[str, str] = {}

    for at, (name, data) in enumerate(aligned.models.items()):

        def report(r: MethodResult, done: int, total: int, name: str = name, at: int = at) -> None:
            if progress is not None:
                progress(f"{name}: {r.label}", at * total + done, len(aligned.models) * total)

        try:
            comparison = carry_out(plan, data, progress=report, stop=stop)
        except (errors.InputError, errors.NotAvailable) as error:
            failures[name] = str(error)
            continue
        # Only numbers are kept, because the calibrated rows of all methods of all models would take much memory.
        without_rows = {m.key: replace(m, calibrated=None) for m in comparison}
        comparisons[name] = replace(comparison, methods=without_rows)
    return ModelsByMethods(comparisons, failures)


# ---- Matching rows


def same_rows(
    models: Models | Alignment, *, split: str | None = None, where: Where = ()
) -> Alignment:
    """Return the models on their common rows that count (see `align` and `compare_models`)."""
    if isinstance(models, Alignment):
        aligned = models
    else:
        by_name = _by_name(models)
        taken, notes = _split(by_name, split)
        aligned = align(taken)
        labels: list[Any] = [m.labels for m in by_name.values()]
        of_one_file = all(np.may_share_memory(labels[0], each) for each in labels)
        # The rows of one file need no match.
        if aligned.by == "identifier" or not of_one_file:
            notes = [*aligned.notes, *notes]
        aligned = replace(aligned, notes=tuple(notes))
    matched = aligned.models
    mask = rows_where(next(iter(matched.values())), where)
    if mask is not None:
        rows = np.flatnonzero(mask)
        matched = {name: m.take(rows) for name, m in matched.items()}
    return replace(aligned, models={name: m.that_count() for name, m in matched.items()})


def _by_name(models: Models) -> dict[str, Dataset]:
    if not isinstance(models, Mapping | Sequence):
        raise errors.OptionError(
            f"got {type(models).__name__}, expected several models: a list of predictions, or a mapping of names to them."
        )
    if isinstance(models, Mapping):
        by_name = {str(name): dataset_of(data) for name, data in models.items()}
        if len(by_name) < len(models):
            raise errors.OptionError(
                "two of the names of the models are equal when written as text."
            )
    else:
        listed = [dataset_of(data) for data in models]
        names = [data.name for data in listed]
        double = next((n for n in names if names.count(n) > 1), None)
        if double is not None:
            raise errors.OptionError(
                f"two models are called '{double}'; give a mapping of names to predictions."
            )
        by_name = dict(zip(names, listed, strict=True))
    if any(data.cells is not None for data in by_name.values()):
        raise errors.NotAvailable(
            "models are compared row by row, and the cells of two profiles are not of the same rows."
        )
    if len(by_name) < 2:
        raise errors.OptionError(f"a comparison takes at least two models, got {len(by_name)}.")
    return by_name


def _split(models: NamedModels, split: str | None) -> tuple[NamedModels, list[str]]:
    """Return the rows of the split in each model that has it, and notes: on rows that only some have in it, or that may have fitted one."""
    level = FITTED if split is None else split
    of = {name: m.splits for name, m in models.items() if m.splits and level in m.split_names}
    if split is None:
        words = f"'{{}}' may have been fitted on the {{}} of its split '{FITTED}'."
        size = {name: counted(s.counts()[FITTED], "row") for name, s in of.items()}
        notes = [words.format(shorten(name), rows) for name, rows in size.items()]
        return models, notes * (len(of) < len(models))
    if not of:
        names = ", ".join(dict.fromkeys(s for m in models.values() for s in m.split_names))
        remedy = f"known: {names}" if names else "leave the split out"
        raise errors.InputError(f"there is no split '{split}'", remedy=remedy)
    # The same rows in one order may be split in several ways: a calibrated file says of half of a split that its map was fitted there.
    inside = [s.mask(split) for s in of.values()]
    with suppress(errors.InputError):
        if any(m.ids is None for m in models.values()) and align(models).by == "order":
            rows = np.flatnonzero(np.all(inside, axis=0))
            few = int(np.any(inside, axis=0).sum()) - rows.size
            words = f"{counted(few, 'row')} left out: not of split '{shorten(split)}' in every file that has it."
            return {k: m.take(rows) for k, m in models.items()}, [words] * bool(few)
    return {k: m.split(split) if k in of else m for k, m in models.items()}, []


NamedModels = Mapping[str, Dataset]


def align(models: NamedModels) -> Alignment:
    """Align models to the same rows, in the order of the first one.

    Rows are matched by identifier if every model has identifiers; those that occur more than once in a model are left out, as are rows
    whose true labels differ. Identifiers that repeat count together with a time if both together are unique in every model. Without
    identifiers, rows are matched by their order, provided that the labels agree in every row.

    Parameters
    ----------
    models : mapping of str to Predictions or ConfidencePredictions
        Models by name. Splits and groups are taken from the first one that has them.

    Raises
    ------
    InputError
        If rows or classes cannot be matched; the sentence says why.
    """
    if not models:
        raise errors.InputError("there are no models to compare", remedy="give at least one")
    models, notes = same_classes(models)
    ids, of = _identifiers(models)
    if len(ids) < len(models):
        notes.append(_check_order(models))
        return Alignment(_same_columns(models), "order", tuple(notes))
    first, *others = ids.values()
    if all(np.array_equal(first, other) for other in others):
        notes.append(f"Identifiers{of} agree in all {counted(first.size, 'row')}.")
    else:
        rows, notes_on_rows = _by_identifier(ids, of)
        models = {name: m.take(rows[name]) for name, m in models.items()}
        notes += notes_on_rows
    models, notes_on_labels = _same_labels(models)
    return Alignment(_same_columns(models), "identifier", tuple(notes + notes_on_labels))


def _identifiers(models: NamedModels) -> tuple[dict[str, AnyArray], str]:
    """Return identifiers of the rows, by model that has some, and the two columns that they are of if it takes a time as well."""
    ids = {k: np.array(identifier_texts(m.ids)) for k, m in models.items() if m.ids is not None}
    if len(ids) == len(models) and all(map(_are_unique, ids.values())):
        return ids, ""
    for name, time in columns_that_identify(models.values()):
        both = {k: _both(m, name, time) for k, m in models.items()}
        common = reduce(np.intersect1d, both.values())
        if common.size > 0 and all(map(_are_unique, both.values())):
            return both, f" ('{shorten(name)}' and '{shorten(time)}')"
    return ids, ""


def columns_that_identify(models: Iterable[Dataset]) -> list[tuple[str, str]]:
    """Return the pairs of an identifier and a time, by name, that all models have; both together may be unique."""
    columns = [_columns(m) for m in models]
    names = [n for n in columns[0] if all(n in others for others in columns)]
    return [(a, b) for a in names if may_be_cluster(a) for b in names if a != b and may_be_time(b)]


def _columns(model: Dataset) -> dict[str, Any]:
    """Return the columns that may identify rows, by name."""
    of = {model.column_names.get(role, role): getattr(model, role) for role in ("ids", "clusters")}
    time = {} if model.times is None else {model.time_name: model.times}
    others = {**model.numbers, **model.texts, **model.groups}
    return {k: v for k, v in of.items() if v is not None} | others | time


def _both(model: Dataset, name: str, time: str) -> AnyArray:
    """Return texts of two columns together, without a text where one of them is missing."""
    columns = _columns(model)
    one, two = (np.array(identifier_texts(columns[c])) for c in (name, time))
    given = (one != NO_IDENTIFIER) & (two != NO_IDENTIFIER)
    return np.where(given, np.char.add(np.char.add(one, "\n"), two), NO_IDENTIFIER)


def _are_unique(texts: AnyArray) -> bool:
    given = texts[texts != NO_IDENTIFIER]
    return bool(np.unique(given).size == given.size)


def _check_order(models: NamedModels) -> str:
    """Return a sentence on why rows may be matched by their order; raises InputError if they may not."""
    (name, first), *others = models.items()
    remedy = (
        "add a column with identifiers to every file; those that repeat need a time beside them"
    )
    for other_name, other in others:
        both = f"'{shorten(name)}' and '{shorten(other_name)}'"
        if first.n != other.n:
            raise errors.InputError(
                f"{both} cannot be matched: they have {first.n:,} and {counted(other.n, 'row')}, "
                "and not both have identifiers",
                remedy=remedy,
            )
        if first.labels is None or other.labels is None:
            raise errors.InputError(
                f"{both} cannot be matched: without identifiers and true labels nothing says that "
                "their rows are the same",
                remedy=remedy,
            )
        differ = np.flatnonzero(first.labels != other.labels)
        if differ.size:
            raise errors.InputError(
                f"{both} cannot be matched by the order of their rows: the true labels differ in "
                f"{counted(differ.size, 'row')}, first in row {differ[0] + 1:,}",
                remedy=remedy,
            )
    if not others:
        return f"There is one model, with {counted(first.n, 'row')}."
    note = (
        "The rows are matched by their order: there are no identifiers, and the true labels agree "
        f"in all {counted(first.n, 'row')}."
    )
    assert first.labels is not None
    if np.all(first.labels == first.labels[0]):
        note += " All labels are the same class, so their agreement is weak evidence."
    return note


def _by_identifier(ids: Mapping[str, AnyArray], of: str) -> tuple[dict[str, IntArray], list[str]]:
    """Return the matched rows of each model, in the order of the first, and notes on what did not match."""
    notes: list[str] = []
    once: dict[str, AnyArray] = {}
    place: dict[str, IntArray] = {}
    for name, column in ids.items():
        values, at, counts = np.unique(column, return_index=True, return_counts=True)
        absent = values == NO_IDENTIFIER
        if absent.any():
            rows = counted(int(counts[absent].sum()), "row")
            notes.append(f"{rows} of '{shorten(name)}' left out: there is no identifier.")
            values, at, counts = values[~absent], at[~absent], counts[~absent]
        single = counts == 1
        once[name], place[name] = values[single], at[single]
        if not single.all():
            rows = counted(int(counts[~single].sum()), "row")
            notes.append(
                f"{rows} of '{shorten(name)}' left out: their identifiers occur more than once there."
            )
    names = list(ids)
    common = once[names[0]]
    for name in names[1:]:
        common = np.intersect1d(common, once[name], assume_unique=True)
    if common.size == 0:
        raise errors.InputError(
            f"no identifier is in all of {', '.join(repr(shorten(n)) for n in names)}",
            remedy="choose files of the same rows, or read them without identifiers to match by order",
        )
    rows_of = {name: place[name][np.searchsorted(once[name], common)] for name in names}
    order = np.argsort(rows_of[names[0]])
    lacking = {name: once[name].size - common.size for name in names}
    left_out = [f"{counted(k, 'row')} of '{shorten(name)}'" for name, k in lacking.items() if k]
    if left_out:
        notes.append(f"{', '.join(left_out)} left out: not every model has their identifiers.")
    matched = f"{counted(common.size, 'row')} matched by identifier{of}."
    return {name: rows[order] for name, rows in rows_of.items()}, [matched, *notes]


def _same_labels(models: NamedModels) -> tuple[NamedModels, list[str]]:
    """Leave out the rows whose true label differs between the models that have labels."""
    labels_of = {name: m.labels for name, m in models.items() if m.labels is not None}
    if len(labels_of) < 2:
        return models, []
    (name, first), *others = labels_of.items()
    differ = np.zeros(first.shape, dtype=np.bool_)
    for _, labels in others:
        differ |= labels != first
    if not differ.any():
        return models, []
    if differ.all():
        raise errors.InputError(
            f"the true labels of '{shorten(name)}' and the other models differ in every row",
            remedy="choose files with the same labels",
        )
    rows = counted(int(differ.sum()), "row")
    keep = np.flatnonzero(~differ)
    return {key: m.take(keep) for key, m in models.items()}, [
        f"{rows} left out: their true labels are not the same in every model."
    ]


def _same_columns(models: NamedModels) -> NamedModels:
    """Give all models the splits, groups, clusters, weights and times of the first model that has them, and the ids of the first."""
    columns: dict[str, Any] = {
        name: next((c for m in models.values() if (c := getattr(m, name)) is not None), None)
        for name in ("splits", "clusters", "weights", "times")
    }
    splits = columns.pop("splits")
    # A calibrated file beside its source tells which rows of a split its map was fitted on.
    if told := [m.splits for m in models.values() if m.splits and FITTED in m.split_names]:
        fitted = np.any([s.mask(FITTED) for s in told], axis=0)
        splits = Factor.of(np.where(fitted, FITTED, np.array(splits.levels)[splits.codes]))
    groups = next((m.groups for m in models.values() if m.groups), {})
    first = next(iter(models.values()))
    names: dict[str, str] = {}
    for m in reversed(list(models.values())):
        names |= {k: v for k, v in m.column_names.items() if getattr(m, k) is not None}
    return {
        name: with_rows(
            m.with_columns(splits=splits, groups=groups, ids=first.ids), **columns, names=names
        )
        for name, m in models.items()
    }


# ---- Matching classes


def same_classes(models: Mapping[str, Dataset]) -> tuple[dict[str, Dataset], list[str]]:
    """Reorder the classes of all models like those of the first model with class names; return notes on assumptions, too.

    Raises
    ------
    InputError
        If models do not have the same classes.
    """
    named = {name: m.class_names for name, m in models.items() if m.class_names}
    first = next((n for n, c in named.items() if not _numbered(c)), next(iter(named), None))
    if first is None:
        return dict(models), []
    classes, notes = named[first], []
    result: dict[str, Dataset] = {}
    for name, model in models.items():
        own = model.class_names
        if not own or own == classes:
            result[name] = model
        elif set(own) == set(classes):
            result[name] = _reordered(model, classes)
        elif len(own) == len(classes) and _numbered(own):
            scores = _original_scores(model) if isinstance(model, Predictions) else {}
            result[name] = replace(model, **scores, class_names=classes)
            notes.append(
                f"The classes of '{shorten(name)}' have no names: they are taken in the order of "
                f"'{shorten(first)}'."
            )
        else:
            only = [c for c in own if c not in classes] or [c for c in classes if c not in own]
            raise errors.InputError(
                f"'{shorten(name)}' and '{shorten(first)}' have {len(own):,} and {len(classes):,} "
                f"classes that are not the same ({listed(only)} only in one of them)",
                remedy="choose models of one task",
            )
    return result, notes


def _numbered(names: tuple[str, ...]) -> bool:
    return names == tuple(str(j) for j in range(len(names)))


def _reordered(model: Dataset, classes: tuple[str, ...]) -> Dataset:
    column_of = {name: j for j, name in enumerate(model.class_names)}
    columns = np.array([column_of[name] for name in classes])
    place = np.empty_like(columns)
    place[columns] = np.arange(columns.size)
    named: dict[str, Any] = {
        "class_names": classes,
        "prevalence": tuple(model.prevalence[j] for j in columns) if model.prevalence else (),
    }

    def relabelled(labels: IntArray | None) -> IntArray | None:
        return None if labels is None else place[labels]

    if not isinstance(model, Predictions):
        return replace(
            model, labels=relabelled(model.labels), predicted=relabelled(model.predicted), **named
        )
    scores = _original_scores(model)
    reordered = {key: array[:, columns] for key, array in scores.items() if array is not None}
    return replace(model, **(scores | reordered | named), labels=place[model.labels])


def _original_scores(model: Predictions) -> dict[str, Any]:
    """Return the original scores, without probabilities that are the softmax of the logits."""
    probs = None if model.kind == "logits" else model.probs
    return {"probs": probs, "logits": model.logits}
