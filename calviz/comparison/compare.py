"""Compare recalibrators on the same rows, and keep comparisons on disk."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any, Literal
from zipfile import BadZipFile

import numpy as np

from calviz.comparison import advice, comparison_results
from calviz.comparison.comparison_results import Comparison, Difference, MethodResult, RowsUsed
from calviz.comparison.fitting import Division, Fitted, Rows, fit_and_apply, with_probabilities
from calviz.comparison.paired_differences import Paired, pair
from calviz.core import __version__, entry_specs, errors
from calviz.core.blocks import FloatArray, IntArray, Stopped, available_cores, checkpoint, watching
from calviz.core.entry_specs import METRICS, UNCALIBRATED, NoiseFloor, RecalibratorSpec
from calviz.core.errors import RESAMPLES, CalvizError, InputError, NotAvailable, OptionError
from calviz.core.events import DEFAULT_BINS, BinNumber, Reduction, Scheme, bins_used
from calviz.core.features import cut_of_numbers, edge_text
from calviz.core.predictions import Dataset, Predictions
from calviz.data.any_size.sampling import FIT, JUDGED, RowSample
from calviz.recalibrators.base import BaseRecalibrator, load_map
from calviz.recalibrators.composition import map_of_slice, slice_of
from calviz.sample.losses import row_log_losses
from calviz.sample.sample import (
    MIN_ROWS,
    AnyRows,
    Sample,
    Where,
    dataset_of,
    on_days,
    predicted_classes,
    rows_where,
    where_words,
)
from calviz.sample.slice_results import Slice
from calviz.sample.slices import usual_slices
from calviz.verdicts import analysis
from calviz.verdicts.row_checks import unchanged_rows
from calviz.verdicts.sentence import judged


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Which methods are compared, fitted on which rows, and judged how.

    Attributes
    ----------
    division : Division
        Which are the fitting rows and the evaluation rows.
    metrics : tuple of str, optional
        Keys; if left out, all metrics, where `compare` has only those shown in the tables of a comparison.
    named : tuple of Slice
        Slices that the verdict names on the rows that the data are a part of.
    methods, reduction, bins, scheme, ci, resamples, refits, options
        As in `compare`.
    """

    methods: tuple[str, ...] | str = "all"
    division: Division = field(default_factory=Division)
    metrics: tuple[str, ...] | None = None
    reduction: Reduction | str | None = None
    bins: BinNumber = DEFAULT_BINS
    scheme: Scheme | None = None
    ci: bool = True
    resamples: int = RESAMPLES
    refits: int = 0
    options: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    named: tuple[Slice, ...] = ()

    def __post_init__(self) -> None:
        if self.refits < 0 or self.refits == 1:
            raise OptionError(f"'refits' must be 0, or 2 or more, got {self.refits}.")

    @property
    def specs(self) -> list[RecalibratorSpec]:
        """Specs of the planned methods, the uncalibrated model first."""
        return entry_specs.RECALIBRATORS.chosen(self.methods, self.options)


CompareProgress = Callable[[MethodResult, int, int], object]
Activity = Callable[[str, str], object]


def compare(
    data: AnyRows | RowSample,
    methods: Iterable[str] | str = "all",
    *,
    fit_split: str | None = None,
    eval_split: str | None = None,
    fit_fraction: float | None = None,
    cross_fit: int | str | None = None,
    seed: int = 0,
    in_sample: bool = False,
    by_time: bool = False,
    metrics: Iterable[str] | Literal["all"] | None = None,
    reduction: Reduction | str | None = None,
    bins: BinNumber = DEFAULT_BINS,
    scheme: Scheme | None = None,
    ci: bool = True,
    resamples: int = RESAMPLES,
    refits: int = 0,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    jobs: int | None = None,
    progress: CompareProgress | None = None,
    activity: Activity | None = None,
    stop: Callable[[], bool] | None = None,
) -> Comparison:
    """Fit recalibrators on some rows and compare them on others.

    A method that fails has a row with the reason; the others are not affected.

    Parameters
    ----------
    data : Predictions, ConfidencePredictions, Profile or RowSample
        A `RowSample`, of data that do not fit into memory, itself determines its fitting rows and evaluation rows.
    methods : iterable of str, "all" or "suggested"
        Keys of recalibrators, or those that the app takes at first; the uncalibrated model always comes first.
    fit_split, eval_split, fit_fraction, cross_fit, seed, in_sample, by_time
        Which are the fitting rows and the evaluation rows (see `calviz.comparison.fitting.Division`).
    metrics : iterable of str or "all", optional
        Keys; if left out, those shown in the tables of a comparison. In a `Plan`, None means "all" instead.
    reduction : Reduction or str, optional
        Which (score, hit) pair the calibration metrics use; if left out, the positive class of
        two classes, otherwise the top label.
    bins, scheme
        Of the binned metrics; if left out, the scheme is that of verdict and diagrams before recalibration (`calviz.Sample`).
    ci : bool
        Whether to compute intervals, paired differences and shares of "best".
    resamples : int
    refits : int
        Number of times each method is refitted, on fitting rows drawn with replacement. Without refits, intervals hold for
        the fitted map; with refits (such as 20), differences and verdicts include the variation of the fit.
    options : mapping of str to mapping, optional
        Parameters of single methods.
    jobs : int, optional
        Number of methods fitted at the same time; if left out, the number of available cores.
    progress : callable, optional
        Called as ``progress(result, done, total)`` after each method, from the thread that fitted it.
    activity : callable, optional
        Called as ``activity(method, doing)`` while a method is being fitted and judged, from that thread.
    stop : callable, optional
        Polled during the work. Once it returns True, unfinished methods have a row with that reason, and the differences
        of the others are based on fewer resamples.
    """
    plan = Plan(
        methods=methods if isinstance(methods, str) else tuple(methods),
        division=Division(fit_split, eval_split, fit_fraction, cross_fit, seed, in_sample, by_time),
        metrics=METRICS.selection(metrics, "methods"),
        reduction=reduction,
        bins=bins,
        scheme=scheme,
        ci=ci,
        resamples=resamples,
        refits=refits,
        options=options or {},
    )
    return carry_out(plan, data, jobs=jobs, progress=progress, activity=activity, stop=stop)


def carry_out(
    plan: Plan,
    data: AnyRows | RowSample,
    *,
    jobs: int | None = None,
    progress: CompareProgress | None = None,
    activity: Activity | None = None,
    stop: Callable[[], bool] | None = None,
) -> Comparison:
    """Carry out a plan; parameters as in `compare`."""
    sample = data if isinstance(data, RowSample) else None
    if isinstance(data, RowSample):
        plan, data = _on_sample(plan, data), data.data
    data = dataset_of(data)
    rows, reduction = plan.division.told(data), Reduction.of(plan.reduction, data)
    if plan.methods == "suggested":
        plan = replace(plan, methods=advice.suggest(data, rows.fit.rows).methods)
    if sample is not None:
        fit = replace(rows.fit, how=sample.how(0))
        rows = replace(rows, fit=fit, evaluation=replace(rows.evaluation, how=sample.how(1)))
    reduction.check(data)
    # One way to place the bins, whatever a map does to the scores.
    before = Sample(rows.judged_of(data), reduction, bins=plan.bins, scheme=plan.scheme)
    judging = _Judging(data, rows, reduction, replace(plan, scheme=before.placed))
    found, of_slice = ({}, ()) if rows.in_sample or not plan.ci else judging.verdict()
    specs = {spec.key: spec for spec in (*plan.specs, *of_slice)}
    results = _results(
        judging, [*specs.values()], jobs or available_cores(), progress, activity, stop
    )
    with watching(None):  # a stopped comparison still reports finished methods
        return _advised(judging, results, found, stop or (lambda: False))


def _advised(
    judging: _Judging,
    results: dict[str, MethodResult],
    found: dict[str, Any],
    stopping: Callable[[], bool],
) -> Comparison:
    """Compare the results, and add the advice, for which the map of a slice may get one for the other rows."""
    plan, tied = judging.plan, dict[str, tuple[str, ...]]()
    paired = judging.paired(results, stopping) if plan.ci else None
    if paired:
        results, tied = _with_differences(results, paired)
    comparison = judging.comparison(results, tied)
    if paired:
        if comparison.criterion:
            comparison = replace(comparison, **found)
        near = _near(comparison, paired)
        comparison = replace(comparison, undefined=paired.undefined, near=near)
    given, keeping = (judging.advice(comparison, keep_classes=keep) for keep in (False, True))
    comparison = replace(comparison, advice=given, advice_keeping_classes=keeping)
    # That of the other rows takes no columns, and no options of the plan.
    spec, cheap = entry_specs.RECALIBRATORS[given.method], entry_specs.cheap_method(judging.data)
    others = cheap if spec.takes_columns or spec.key in plan.options else spec.key
    options = {**comparison.slice_options, "others": others}
    stays = any(comparison.alone in caution for caution in given.cautions)
    if stays and "others" not in comparison.slice_options and not stopping():
        both = judging.with_others(comparison, given.method, options)
        if both is not None:
            found, results = found | {"slice_options": options}, results | {both.key: both}
            again = _advised(judging, results, found, stopping)
            if again.advice and again.advice.method == both.key:
                return again
    return comparison


def _results(
    judging: _Judging,
    specs: list[RecalibratorSpec],
    jobs: int,
    progress: CompareProgress | None,
    activity: Activity | None,
    stop: Callable[[], bool] | None,
) -> dict[str, MethodResult]:
    """Return the result of each method in this order; `jobs` methods are fitted at the same time."""
    finished: dict[str, MethodResult] = {}
    interrupted = Event()

    def run(spec: RecalibratorSpec) -> None:
        def step(doing: str) -> None:
            if interrupted.is_set() or (stop is not None and stop()):
                raise Stopped
            if doing and activity is not None:
                activity(spec.key, doing)

        with watching(step):
            finished[spec.key] = result = judging.result(spec)
        if progress is not None:
            progress(result, len(finished), len(specs))

    todo, ended = iter(specs), SimpleQueue[BaseException | None]()

    def take_turns() -> None:
        try:
            for spec in todo:
                run(spec)
            ended.put(None)
        except BaseException as error:
            ended.put(error)

    # No executor: Ctrl-C leaves locks of its futures held, for which its threads then wait for ever, as does the program for those.
    count = max(1, min(jobs, len(specs)))
    workers = [Thread(target=take_turns, daemon=True) for _ in range(count)]
    try:
        for worker in workers:
            worker.start()
        running = count
        while running:
            # In short turns: once polars has read a file, a longer wait would not be interrupted by Ctrl-C.
            with suppress(Empty):
                error = ended.get(timeout=0.2)
                running -= 1
                if error is not None:
                    raise error
    except BaseException:
        interrupted.set()
        for worker in filter(Thread.is_alive, workers):
            worker.join(2 / count)  # Ctrl-C does not wait long for running fits
        raise
    return {spec.key: finished[spec.key] for spec in specs}


def _on_sample(plan: Plan, sample: RowSample) -> Plan:
    """Return the plan for a sample of rows, which determines its fitting rows and evaluation rows."""
    seed = plan.division.seed
    if plan.division.given.keys() - {"seed"}:
        raise OptionError(
            "a sample determines which rows fit and which judge: leave out the options for that."
        )
    if not sample.judged.any():
        raise InputError(
            "the sample has no rows to judge on", remedy="draw some: sample_rows(..., judged=...)"
        )
    return replace(plan, division=Division(fit_split=FIT, eval_split=JUDGED, seed=seed))


@dataclass(frozen=True, eq=False)
class _Judging:
    data: Dataset
    rows: Rows
    reduction: Reduction
    plan: Plan
    #: Metrics after refits, by method and metric, shape (R,).
    refits: dict[str, dict[str, FloatArray]] = field(default_factory=dict)
    #: Metrics of the resampled rows, of maps that are compared again beside another one.
    drawn: dict[Any, Any] = field(default_factory=dict)

    def result(self, spec: RecalibratorSpec) -> MethodResult:
        """Fit and evaluate one method; any error becomes the reason of its result."""
        options = self.plan.options.get(spec.key, {})
        try:
            checkpoint("fitting")
            result = self._measured(spec, fit_and_apply(self.data, spec, self.rows, options))
            if self.plan.refits and self.plan.ci and spec.key != UNCALIBRATED:
                self.refits[spec.key] = self._refitted(spec, options, tuple(result.metrics))
                spread = {k: float(v.std(ddof=1)) for k, v in self.refits[spec.key].items()}
                result = replace(result, fit_spread=spread)
            return result
        except Exception as error:
            reason = errors.reason_of(error)
            return MethodResult(
                spec.key, spec.label, False, reason, accuracy_preserving=spec.accuracy_preserving
            )

    def _measured(self, spec: RecalibratorSpec, fitted: Fitted) -> MethodResult:
        evaluation = analysis.evaluate(
            fitted.calibrated,
            self.plan.metrics,
            ci=self.plan.ci,
            noise_floor=False,
            resamples=self.plan.resamples,
            seed=self.plan.division.seed,
            **self.settings,
        )
        before, after = self.before.that_count(), fitted.calibrated.that_count()
        return MethodResult(
            spec.key,
            spec.label,
            True,
            params=fitted.recalibrator.describe() if fitted.recalibrator is not None else {},
            accuracy_preserving=spec.accuracy_preserving,
            predictions_changed=_changed(before, after),
            metrics=evaluation.metrics,
            calibration_gain=_gain(before, after),
            **vars(fitted),
        )

    def _refitted(
        self, spec: RecalibratorSpec, options: Mapping[str, Any], metrics: tuple[str, ...]
    ) -> dict[str, FloatArray]:
        """Return metrics on the evaluation rows after fits to resampled fitting rows, which are the same for all methods."""
        if self.data.cells is not None:
            raise NotAvailable("refitting needs the rows: a profile holds their sums only.")
        values: dict[str, list[float]] = {key: [] for key in metrics}
        for refit in range(self.plan.refits):
            checkpoint(f"refit {refit + 1} of {self.plan.refits}")
            rng = np.random.default_rng([self.plan.division.seed, 5, refit])
            pairs = tuple(
                (_resampled_rows(self.data, fit, rng), judged) for fit, judged in self.rows.pairs
            )
            fitted = fit_and_apply(self.data, spec, replace(self.rows, pairs=pairs), options)
            evaluation = analysis.evaluate(fitted.calibrated, metrics, **self.settings)
            for key in metrics:
                values[key].append(evaluation[key].value)
        return {key: np.array(v) for key, v in values.items() if np.isfinite(v).all()}

    @property
    def settings(self) -> dict[str, Any]:
        """Reduction, bins and scheme, as arguments."""
        plan = self.plan
        return {"reduction": self.reduction, "bins": plan.bins, "scheme": plan.scheme}

    @property
    def before(self) -> Dataset:
        """The uncalibrated evaluation rows."""
        return self.rows.judged_of(self.data)

    def comparison(
        self, results: dict[str, MethodResult], tied: dict[str, tuple[str, ...]]
    ) -> Comparison:
        """Return the results as a comparison, without advice."""
        plan, rows = self.plan, self.rows
        measured = dict.fromkeys(key for r in results.values() for key in r.metrics)
        return Comparison(
            name=self.data.name,
            **errors.picked(rows, "fit evaluation in_sample"),
            seed=plan.division.seed,
            reduction=self.reduction.key,
            bins=bins_used(rows.evaluation.rows, plan.bins, plan.scheme),
            scheme=self.settings["scheme"],
            methods=results,
            directions={key: METRICS[key].direction for key in measured},
            tied=tied,
            refits=plan.refits if plan.ci else 0,
            named=plan.named,
        )

    def paired(self, results: dict[str, MethodResult], stop: Callable[[], bool]) -> Paired | None:
        """Return the metrics of all methods on common resamples; None if there is nothing to compare with."""
        sets = {k: r.calibrated for k, r in results.items() if r.ok and r.calibrated is not None}
        if UNCALIBRATED not in sets or sets[UNCALIBRATED].n < 2:
            return None
        rng = np.random.default_rng([self.plan.division.seed, 2])
        keys = [k for k in results[UNCALIBRATED].metrics if all(_has(results[m], k) for m in sets)]
        how: dict[str, Any] = {"resamples": self.plan.resamples, **self.settings}
        paired = pair(sets, keys, rng=rng, stop_early=stop, known=self.drawn, **how)
        refits = {
            key: {name: of_set[key] for name, of_set in self.refits.items() if key in of_set}
            for key in paired.metrics
        }
        metrics = {key: replace(m, refits=refits[key]) for key, m in paired.metrics.items()}
        return replace(paired, metrics=metrics)

    def verdict(self) -> tuple[dict[str, Any], tuple[RecalibratorSpec, ...]]:
        """Return what `Comparison` says of the verdict before recalibration, if there are enough rows, and a map for the slice that it names, unless it finds the other rows off, too.

        Of all rows that are divided at random; of the evaluation split or, if it finds none there, of this and the fitting rows.
        """
        if self.before.that_count().rows < MIN_ROWS:
            return {}, ()
        fit, used = self.rows.fit.split, self.data.take(self.rows.used)
        for data in (self.before, used) if fit is not None else (used,):
            sample = self._judged_as(data)
            verdict = sample.once(judged)
            off = verdict.beyond_noise or verdict.classes_off or verdict.slices_off
            # A change of all rows is mended by no map of all these rows.
            lasting = verdict.changed_where and not verdict.ended
            if off or verdict.in_reverse or lasting:
                whole, where, alone = self.data, verdict.named_where, verdict.alone
                places = verdict.in_places
                if lasting:
                    where = on_days(whole, verdict.changed_days, verdict.changed_where)
                    alone = verdict.own_map(where_words(where))
                    others = unchanged_rows(sample)
                    places = others is None or not judged(others).beyond_noise
                beside = self.plan.named[:1] if not where else ()
                if beside:
                    # A map of all rows may take it off.
                    where, alone = beside[0].where, verdict.own_map(where_words(beside[0].where))
                found = {"found": verdict.sentence, "in_places": places, "alone": alone}
                found |= {"off_where": where, "off_class": verdict.off_class * (not lasting)}
                found["off"] = getattr(usual_slices(sample), "named", ())
                if verdict.beyond_noise and not verdict.slices_off:
                    checks = (c.run for c in entry_specs.CHECKS if c.about == "slices")
                    found["unclear"] = " ".join(told[1] for run in checks for told in run(sample))
                if not where or beside or verdict.others_off:
                    return found, ()
                with suppress(CalvizError):  # confidences have no losses
                    found["off_where"] = moved = self._moved_edges(where)
                    if moved != where:
                        found["moved"] = (
                            f"The fitting rows tell this edge; that of the verdict, {where_words(where)}, is a decile."
                        )
                    where = moved
                options = found["slice_options"] = {"where": slice_of(whole, where)}
                return found, (self._for_slice(where, options),)
        return {"found": ""}, ()

    def advice(
        self, comparison: Comparison, *, keep_classes: bool = False
    ) -> comparison_results.Advice:
        """Return the advice, with what the verdict finds on the judged rows after a map of slices, which may have repaired one of two faults."""
        # A change in time is looked for where the verdict is.
        of_split = self.rows.fit.split is not None
        about = self.before if of_split else self.data.take(self.rows.used)
        given = advice.advise(comparison, about, keep_classes=keep_classes)
        after = comparison[given.method].calibrated
        if after is not None and (given.is_of_slice or given.method == advice.SEGMENTS):
            verdict = judged(self._judged_as(after))
            left = f"Verdict after the map: {verdict.sentence}"
            if verdict.direction not in ("calibrated", "undecided"):
                reasons = (*given.reasons[:-1], left, given.reasons[-1])
                # What is said of its slice already is not said again.
                place = f"Where {where_words(verdict.named_where)}, scores"
                alone = verdict.slices_off == 1 and not verdict.beyond_noise
                said = alone and any(place in caution for caution in given.cautions)
                cautions = (*given.cautions, *[left] * (not said))
                given = replace(given, reasons=reasons, cautions=cautions)
        return given

    def _judged_as(self, data: Dataset) -> Sample:
        return Sample.of(data.that_count(), seed=self.plan.division.seed, **self.settings)

    def _moved_edges(self, where: Where) -> Where:
        """The conditions of a slice with the deciles that cut a number moved, before the next ones, if the likelihood of the fitting rows gains 2 or more by it."""
        (fit, _), *folds = self.rows.pairs
        data, cheap = self.data.take(fit), entry_specs.cheap_method(self.data)
        for at, (name, value) in enumerate(where):
            cut, values = data.cuts.get(name), data.numbers.get(name)
            if folds or values is None or cut != cut_of_numbers(self.data.numbers[name]):
                continue
            inside, rest = rows_where(data, where), (*where[:at], *where[at + 1 :])
            rows = replace(self.rows, pairs=((fit[inside], fit),))
            after = fit_and_apply(self.data, entry_specs.RECALIBRATORS[cheap], rows, {}).calibrated
            losses, then = (row_log_losses(Sample.of(each)) for each in (data, after))
            gain = (losses - then) * (1 if data.weights is None else data.weights)
            # The ends of the slice, and how far they may go.
            ends = np.r_[-np.inf, -np.inf, cut.edges, np.inf, np.inf]
            first, last = np.searchsorted(cut.edges, np.quantile(values[inside], (0, 1)))
            start, low, high, stop = ends[[first, first + 1, last + 2, last + 3]]
            near = (values > start) & (values <= stop)
            near &= rows_where(data, rest) if rest else True
            edges, group = np.unique(values[near], return_inverse=True)
            edges, gained = np.r_[start, edges], np.r_[0, np.bincount(group, gain[near]).cumsum()]
            of: Callable[[int], float] = gained.__getitem__
            since, to = (np.searchsorted(edges, (low, high), "right") - 1).tolist()
            before = gained[to] - gained[since]
            if high < np.inf:
                to = max(range(since + 1, edges.size - 1), key=of, default=edges.size - 2)
            if low > -np.inf:
                since = min(range(1, to), key=of, default=0)
            if gained[to] - gained[since] - before >= 2:
                ways = ((since, low), (to, high))
                texts = [edge_text(*edges[i : i + 2]) for i, end in ways if np.isfinite(end)]
                value = f"({', '.join(texts)}]" if texts[1:] else f"{value[0]} {texts[0]}"
                where = (*where[:at], (name, value), *where[at + 1 :])
        return where

    def with_others(
        self, comparison: Comparison, alone: str, options: Mapping[str, Any]
    ) -> MethodResult | None:
        """The map of a slice with a map for the other rows; None if that is no better than the former, or a map of all rows, `alone`."""
        own = [m for m in comparison if m.is_of_slice and m.ok]
        if not own:
            return None
        base, words = own[0].key.partition("+")[2], where_words(comparison.off_where)
        both = self.result(map_of_slice(base, words, options))

        def loss(result: MethodResult) -> float:
            """Errors of a slice and of the other rows cancel in all criteria but proper scores."""
            by_loss = comparison.criterion == entry_specs.RANKED_BY
            return result.metrics["nll"].value if by_loss else -result.calibration_gain

        better = both.ok and loss(both) < min(map(loss, (*own, comparison[alone])))
        return both if better else None

    def _for_slice(self, where: Where, options: Mapping[str, Any]) -> RecalibratorSpec:
        """The recalibrator for the rows of a slice: the cheap one or, of more than two classes, offsets of these, or factors too, if Akaike's criterion on the fitting rows prefers them."""
        spec_of = partial(map_of_slice, where=where_words(where), options=options)
        cheap = entry_specs.cheap_method(self.data)
        k = getattr(self.data, "n_classes", 2)
        bases = {cheap: 1, "prior": k - 1, "vector": 2 * k - 1} if cheap == "temperature" else {}
        fit, _ = self.rows.pairs[0]
        rows, criteria = replace(self.rows, pairs=((fit, fit),)), {}
        with suppress(CalvizError):  # each method has its reason in its result
            for base, parameters in bases.items():
                fitted = fit_and_apply(self.data, spec_of(base), rows, {}).calibrated
                nll = analysis.evaluate(fitted, ["nll"])["nll"].value
                criteria[base] = fitted.rows * nll + parameters
        return spec_of(min(criteria, key=criteria.__getitem__, default=cheap))


def _with_differences(
    results: dict[str, MethodResult], paired: Paired
) -> tuple[dict[str, MethodResult], dict[str, tuple[str, ...]]]:
    """Add differences from the uncalibrated model and shares of being best; also return the ties by metric."""
    sets = next((m.values for m in paired.metrics.values()), {})
    others = tuple((m, UNCALIBRATED) for m in sets if m != UNCALIBRATED)
    shares = {key: metric.best_share() for key, metric in paired.metrics.items()}
    tied = {
        key: metric.tied_with_best({m: results[m].metrics[key].value for m in sets})
        for key, metric in paired.metrics.items()
    }
    return {
        key: r
        if key not in sets
        else replace(
            r,
            best_share={metric: shares[metric][key] for metric in paired.metrics},
            differences={
                name: metric.difference(key, UNCALIBRATED, others)
                for name, metric in paired.metrics.items()
                if key != UNCALIBRATED
            },
        )
        for key, r in results.items()
    }, tied


def _near(comparison: Comparison, paired: Paired) -> dict[str, tuple[str, ...]]:
    """Return `Comparison.near`: for the best candidate of all, and for the best of those that keep every predicted class."""
    lists = [comparison.candidates(keep_classes=keep) for keep in (False, True)]
    return {
        names[0]: paired.metrics[str(comparison.criterion)].near(names[0], names)
        for names in lists[::-1]
        if names
    }


def _has(result: MethodResult, metric: str) -> bool:
    return metric in result.metrics and result.metrics[metric].available


def _changed(before: Dataset, after: Dataset) -> int:
    if not isinstance(before, Predictions) or not isinstance(after, Predictions):
        return 0
    changed = predicted_classes(before) != predicted_classes(after)
    return int(np.count_nonzero(changed) if before.cells is None else changed @ before.weights)


def _gain(before: Dataset, after: Dataset) -> float:
    """Mean squared error before minus after (Zhang 2020, eq. 8); for confidence-only data, that of the confidence."""

    def error(data: Dataset) -> float:
        if isinstance(data, Predictions):
            of_label = data.probs[np.arange(data.n), data.labels].astype(np.float64)
            squares = np.asarray(np.vecdot(data.probs, data.probs), dtype=np.float64)
            each = squares + 1 - 2 * of_label
        else:
            each = (data.confidence.astype(np.float64) - data.correct) ** 2
        return float(np.average(each, weights=data.weights))

    return error(before) - error(after)


def _resampled_rows(data: Dataset, rows: IntArray, rng: np.random.Generator) -> IntArray:
    """Draw as many rows with replacement as there are; for clustered rows, as many clusters."""
    if data.clusters is None:
        return np.sort(rng.choice(rows, size=rows.size))
    levels, cluster = np.unique(data.clusters.codes[rows], return_inverse=True)
    times = np.bincount(rng.integers(levels.size, size=levels.size), minlength=levels.size)
    return np.repeat(rows, times[cluster])


# ---- Comparisons on disk


#: Raised whenever a result of this version would read differently.
_FORMAT = 10
_RECORD = "record"
_CLASSES = {
    cls.__name__: cls
    for cls in (
        Comparison, MethodResult, entry_specs.MetricResult, Difference, comparison_results.Advice, RowsUsed, entry_specs.Interval, NoiseFloor, Slice,
    )
}  # fmt: skip


@dataclass(frozen=True)
class KeptComparisons:
    """The comparisons in a folder.

    Attributes
    ----------
    folder : Path
        It is made when the first comparison is kept.
    limit : int
        Bytes of all its comparisons.
    """

    folder: Path
    # Bytes of all files of a folder; beyond it, those that were not used for longest are removed.
    limit: int = 500_000_000

    def __contains__(self, key: tuple[str, ...]) -> bool:
        return self._path(key).is_file()

    def keep(self, key: tuple[str, ...], comparison: Comparison) -> None:
        """Write a comparison; one that cannot be written (no space, no right) is not kept.

        Parameters
        ----------
        key : tuple of str
            Identifies the data, how they are divided, and the plan.
        comparison : Comparison
        """
        arrays = {_RECORD: np.frombuffer(json.dumps(_plain(comparison)).encode(), np.uint8)}
        for method in comparison:
            if method.recalibrator is None and method.calibrated is not None:
                arrays |= _rows(method.key, method.calibrated)
        with suppress(OSError, CalvizError):
            self.folder.mkdir(parents=True, exist_ok=True)
            with errors.replacing(self._path(key)) as path, path.open("wb") as stream:
                np.savez(stream, allow_pickle=False, **arrays)
            # Make room by removing the oldest.
            known = [(f.stat().st_mtime, f.stat().st_size, f) for f in self.folder.glob("*.npz")]
            held = 0
            for _, size, file in sorted(known, reverse=True):
                held += size
                if held > self.limit:
                    file.unlink(missing_ok=True)

    def get(self, key: tuple[str, ...], judged: Dataset) -> Comparison | None:
        """Read a comparison; None if it was not kept.

        Parameters
        ----------
        key : tuple of str
            As in `keep`.
        judged : Predictions or ConfidencePredictions
            The evaluation rows before recalibration.
        """
        path = self._path(key)
        try:
            # NumPy leaves a path that is no NPZ file open.
            with path.open("rb") as stream, np.load(stream, allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            kept: Comparison = _rebuilt(json.loads(arrays.pop(_RECORD).tobytes()))
            methods = {m.key: _with_rows(m, judged, arrays) for m in kept}
            path.touch()
        except (OSError, EOFError, ValueError, KeyError, TypeError, BadZipFile, CalvizError):
            return None
        return replace(kept, methods=methods)

    def _path(self, key: tuple[str, ...]) -> Path:
        of = repr((__version__, _FORMAT, key))
        return self.folder / f"{hashlib.sha256(of.encode()).hexdigest()[:32]}.npz"


def _plain(value: Any) -> Any:
    """Return a value as JSON that says which tuple, mapping or class it was."""
    if isinstance(value, BaseRecalibrator):
        return {"map": value.to_dict()}
    if isinstance(value, MethodResult):
        value = replace(value, calibrated=None)
    kind = type(value).__name__
    if _CLASSES.get(kind) is type(value):
        names = [f.name for f in fields(value)] if is_dataclass(value) else value._fields
        return {kind: {name: _plain(getattr(value, name)) for name in names}}
    if isinstance(value, Mapping):
        return {"mapping": [[k, _plain(v)] for k, v in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [_plain(v) for v in value]}
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return value.tolist() if isinstance(value, np.ndarray | np.generic) else value


def _rebuilt(value: Any) -> Any:
    if isinstance(value, list):
        return [_rebuilt(v) for v in value]
    if not isinstance(value, dict):
        return value
    [(kind, content)] = value.items()
    if kind == "map":
        return load_map(content)
    if kind == "mapping":
        return {k: _rebuilt(v) for k, v in content}
    if kind == "tuple":
        return tuple(_rebuilt(v) for v in content)
    return _CLASSES[kind](**{name: _rebuilt(v) for name, v in content.items()})


def _rows(method: str, calibrated: Dataset) -> dict[str, np.ndarray]:
    of_map = calibrated.probs if isinstance(calibrated, Predictions) else calibrated.confidence
    numbers = {f"{method}/{name}": column for name, column in calibrated.numbers.items()}
    return {method: of_map, **numbers}


def _with_rows(
    method: MethodResult, judged: Dataset, arrays: Mapping[str, np.ndarray]
) -> MethodResult:
    probs = arrays.get(method.key)
    if probs is None:
        return method
    numbers = {
        name.removeprefix(f"{method.key}/"): column
        for name, column in arrays.items()
        if name.startswith(f"{method.key}/")
    }
    if probs.ndim == 1:
        probs = np.column_stack([1 - probs, probs])
    return replace(method, calibrated=with_probabilities(judged, probs, numbers))
