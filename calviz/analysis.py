"""`evaluate`, `verdict`, `explain` and `conventions`, which the app, the command line and the report all call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, get_args

import numpy.typing as npt

from calviz.checks import find
from calviz.checks.verdict.plain_words import explained
from calviz.checks.verdict.sentence import verdict as verdict_on
from calviz.core.errors import NotAvailable, OptionError
from calviz.core.factor import Factor
from calviz.core.options import check_choice, check_whole
from calviz.core.predictions import Dataset
from calviz.core.reduction import Reduction
from calviz.peers import measure
from calviz.profiles.profile import Profile
from calviz.results.evaluation import ClassRow, Evaluation
from calviz.results.verdict import Verdict
from calviz.sample.binning import Scheme
from calviz.sample.class_table import class_table
from calviz.sample.error_bars import LEVEL, RESAMPLES
from calviz.sample.metric_results import (
    IntervalChoice,
    Resampling,
    measured_with_error_bars,
)
from calviz.sample.sample import Sample
from calviz.specs.convention import Conventions
from calviz.specs.metric import METRICS, Metric, Parameter, takes_weights


def first_metrics(sample: Sample) -> tuple[str, ...]:
    """Keys of the main metrics: the cards of the Overview page and of a report, by default."""
    return "accuracy", sample.ece_key, "mcs", "nll", "brier"


#: Metrics that guidelines recommend for a validation report besides its figures (Van Calster et al. 2025): shown on the page
#: Decisions and in that section of a report.
VALIDATION_METRICS = (
    "auroc",
    "auprc",
    "oe_ratio",
    "calibration_in_the_large",
    "calibration_slope",
    "ici",
)


def evaluate(
    data: Dataset | Sample | Profile,
    metrics: Iterable[str] | None = None,
    *,
    reduction: Reduction | str | None = None,
    split: str | None = None,
    ci: bool = False,
    noise_floor: bool | None = None,
    level: float = LEVEL,
    interval: IntervalChoice = "own",
    resamples: int | None = None,
    seed: int | None = None,
    classes: bool | None = None,
    findings: bool | None = None,
    bins: int | None = None,
    scheme: Scheme | None = None,
    clusters: str | Factor | npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
    **options: Any,
) -> Evaluation:
    """Compute metrics of one set of predictions.

    A metric's numbers depend only on the data, its options and the seed, not on which other
    metrics are requested or in which order. Results for a `Sample` are cached with it.

    Parameters
    ----------
    data : Predictions, ConfidencePredictions, Profile or Sample
        With a sample, arguments that are left out are taken from it.
    metrics : iterable of str, optional
        Keys; all metrics if left out.
    reduction : Reduction or str, optional
        Which (score, hit) pair the calibration metrics use; if left out, the positive class of
        two classes, otherwise the top label.
    split : str, optional
        Evaluate only the rows of this split.
    ci : bool
        Whether to compute bootstrap intervals.
    noise_floor : bool, optional
        Whether to compute noise floors; as `ci` if left out.
    level : float
        Level of the intervals, between 0 and 1.
    interval : {"own", "percentile", "basic"}
        Method of the intervals: each metric's own (`Metric.interval`), or the same for all. See `docs/uncertainty.md`.
    resamples : int
        Number of resamples for each interval and each noise floor, 1,000 if left out; findings and verdict use at
        least 1,000.
    seed : int
        Seed of all resampling, 0 or more; 0 if left out.
    classes, findings : bool, optional
        Whether to add the table of classes, and the findings with the verdict, which may take longer than a metric;
        if left out, they are added if `metrics` is left out, too.
    bins : int
        Number of bins of the binned metrics, the findings and the table of classes; 15 if left out.
    scheme : {"equal-width", "equal-mass", "sturges"}
        The bins of the findings and of the metrics with equal-width bins (ECE, ECE², RMSCE, MCE); their
        ``params`` say which were used. A key that names its bins (``ece_equal_mass``) keeps them. With ``sturges``, the
        class-wise metrics have the same number of bins.
    clusters : str, Factor or array_like, shape (n,), optional
        Clusters of dependent rows: the name of a group column, "id", or one value per row. Intervals, noise floors and p-values
        then resample whole clusters. If left out, those of the data.
    sample_weight : array_like, shape (n,), optional
        Importance weight of each row (of any scale); if left out, those of the data. With a sample, `clusters` and `sample_weight` are
        for the rows that it holds: those of its split and slice, without those of weight 0. A metric that does not support
        weights then has no value, and a reason.
    **options
        Parameters of metrics (``coverage=0.8``), passed to those that have them.

    Raises
    ------
    OptionError, InputError
        On an unknown metric, option, split, class or reduction.
    NotAvailable
        If the data lack what the reduction needs (confidence-only data allow only the top
        label). A single metric that is not available is not an error: its value is ``nan`` and its
        ``reason`` says why.
    """
    specs = _specs(metrics)
    _check_options(options)
    check_choice("interval", interval, get_args(IntervalChoice))
    sample = Sample.of(
        data,
        split=split,
        reduction=reduction,
        bins=bins,
        scheme=scheme,
        seed=seed,
        resamples=resamples,
        clusters=clusters,
        weights=sample_weight,
    )
    noise_floor = ci if noise_floor is None else noise_floor
    resampling = Resampling(ci, noise_floor, level, interval, sample.resamples, sample.seed)
    everything = metrics is None
    with_classes = everything if classes is None else classes
    judging = everything if findings is None else findings
    for_verdict = _with_enough_resamples(sample)
    return Evaluation(
        name=sample.data.name,
        rows=sample.data.rows,
        n_classes=sample.data.n_classes,
        kind=sample.data.kind,
        split=sample.split,
        reduction=sample.reduction.key,
        metrics=measured_with_error_bars(sample, specs, options, resampling),
        classes=sample.once(_classes) if with_classes else (),
        findings=for_verdict.once(find) if judging else (),
        verdict=for_verdict.once(verdict_on) if judging else None,
    )


def verdict(
    data: Dataset | Sample | Profile,
    *,
    reduction: Reduction | str | None = None,
    split: str | None = None,
    bins: int | None = None,
    scheme: Scheme | None = None,
    seed: int | None = None,
    clusters: str | Factor | npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> Verdict:
    """Say in one sentence whether these probabilities can be trusted.

    Parameters
    ----------
    data : Predictions, ConfidencePredictions, Profile or Sample
    reduction : Reduction or str, optional
        Which (score, hit) pair to judge; if left out, as in `evaluate`.
    split : str, optional
        Judge only the rows of this split.
    bins, scheme
        The bins in which the worst place is searched.
    seed : int
        Seed of all resampling, 0 or more.
    clusters, sample_weight
        As in `evaluate`.

    Raises
    ------
    OptionError, InputError, NotAvailable
        As in `evaluate`.
    """
    sample = Sample.of(
        data,
        split=split,
        reduction=reduction,
        bins=bins,
        scheme=scheme,
        seed=seed,
        clusters=clusters,
        weights=sample_weight,
    )
    return _with_enough_resamples(sample).once(verdict_on)


def explain(
    data: Dataset | Sample | Profile,
    *,
    reduction: Reduction | str | None = None,
    split: str | None = None,
    bins: int | None = None,
    scheme: Scheme | None = None,
    seed: int | None = None,
    clusters: str | Factor | npt.ArrayLike | None = None,
    sample_weight: npt.ArrayLike | None = None,
) -> tuple[str, ...]:
    """Explain the verdict in five sentences, for readers who do not know the terms.

    Parameters
    ----------
    data, reduction, split, bins, scheme, seed, clusters, sample_weight
        As in `verdict`; the sentences contain its numbers.

    Raises
    ------
    OptionError, InputError, NotAvailable
        As in `evaluate`.
    """
    sample = Sample.of(
        data,
        split=split,
        reduction=reduction,
        bins=bins,
        scheme=scheme,
        seed=seed,
        clusters=clusters,
        weights=sample_weight,
    )
    sample = _with_enough_resamples(sample)
    return explained(sample, sample.once(verdict_on))


def conventions(
    data: Dataset | Sample,
    *,
    reduction: Reduction | str | None = None,
    split: str | None = None,
    bins: int | None = None,
    scheme: Scheme | None = None,
    noise: bool = True,
    seed: int | None = None,
    resamples: int | None = None,
) -> Conventions:
    """Compute the "ECE" of the same predictions as other libraries define it by default.

    Parameters
    ----------
    data : Predictions, ConfidencePredictions or Sample
    reduction : Reduction or str, optional
        Which (score, hit) pair to pass to the libraries' binary functions; if left out, as in
        `evaluate`. With the top label they get all classes, and their own defaults decide what is measured.
    split : str, optional
        Only the rows of this split.
    bins, scheme
        The bins of calviz's own ECE, which the others are compared with.
    noise : bool
        Whether to add the noise floor of each convention: its mean for a calibrated model.
    seed, resamples : int
        Of the redrawn labels; with the values of an evaluation, the noise floor of calviz's own ECE is the same as there.

    Raises
    ------
    OptionError, InputError, NotAvailable
        As in `evaluate`. A convention that has no value on these data is not an error: it has a reason.
    """
    sample = Sample.of(
        data,
        split=split,
        reduction=reduction,
        bins=bins,
        scheme=scheme,
        seed=seed,
        resamples=resamples,
    )
    if sample.data.cells is not None:
        raise NotAvailable(
            "the ECE of other libraries needs the rows: a profile holds their sums only."
        )
    if sample.data.weights is not None:
        raise NotAvailable(
            "the ECE of other libraries is not available for weighted rows: none of their functions takes weights."
        )
    return sample.once(measure, noise=noise)


def _with_enough_resamples(sample: Sample) -> Sample:
    """Return the sample with at least `RESAMPLES` resamples: with few, no adjusted p-value could be small enough."""
    return sample.but(resamples=max(sample.resamples, RESAMPLES))


def _specs(metrics: Iterable[str] | None) -> list[Metric]:
    if metrics is None:
        return list(METRICS)
    keys = [metrics] if isinstance(metrics, str) else metrics
    return [METRICS[key] for key in dict.fromkeys(keys)]


def _check_options(options: Mapping[str, Any]) -> None:
    parameters = {p.name: p for m in METRICS for p in m.parameters}
    for name, value in options.items():
        if name not in parameters:
            raise OptionError(
                f"no metric has an option '{name}'; known: {', '.join(sorted(parameters))}."
            )
        _check_option(parameters[name], value)


def _check_option(parameter: Parameter, value: Any) -> None:
    if parameter.choices:
        check_choice(parameter.name, value, parameter.choices)
    elif parameter.annotation is int:
        check_whole(parameter.name, value)


@takes_weights
def _classes(sample: Sample) -> tuple[ClassRow, ...]:
    data = sample.data
    if data.labels is None:
        return ()
    names = data.class_names or tuple(str(k) for k in range(int(data.labels.max()) + 1))
    table = class_table(sample)
    columns = (table.rows, table.accuracy, table.confidence, table.ece, table.mcs, table.ks)
    rows = zip(names, *(column.tolist() for column in columns), strict=True)
    return tuple(ClassRow(*row) for row in rows)
