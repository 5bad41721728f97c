"""What is called from outside: `evaluate`, `verdict`, `explain`, `conventions`, and for arrays `audit` and `scorer`."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Self, TypeVar, Unpack, get_args

from calviz.core import entry_specs, errors
from calviz.core.entry_specs import CHECKS, LEVEL, METRICS, Check, Conventions, Metric, Parameter
from calviz.core.errors import RESAMPLES, Finding, InputError, NotAvailable, OptionError
from calviz.core.predictions import Dataset, Predictions
from calviz.core.words import within_sentence
from calviz.metrics.other_libraries import measured_conventions
from calviz.sample.metric_results import IntervalChoice, Resampling, measured_with_error_bars
from calviz.sample.sample import AnyData, Sample, SampleOptions, rate_if_rare, shows_options
from calviz.sample.true_classes import class_table
from calviz.verdicts.evaluation import ClassRow, Evaluation, Verdict
from calviz.verdicts.sentence import explained, judged
from calviz.verdicts.watching import watched

F = TypeVar("F", bound=Callable[..., Any])


def first_metrics(sample: Sample) -> tuple[str, ...]:
    """Keys of the main metrics: those of the Overview and of a report, by default.

    Where a class has under 20 % of the rows, or over 80 %, accuracy tells little, and the AUROC is in its place; of a class under
    10 % a ratio, O/E, says more than points, and slope and calibration in the large are what a validation states. The Brier score of
    two classes is the one-column form, as others report it. Of one class against the rest, losses of all classes would not be its own.
    """
    rate = rate_if_rare(sample, 0.2)
    first = "accuracy" if rate is None else "auroc"
    ratios = ("oe_ratio", "calibration_slope", "calibration_in_the_large")
    of_rare = ratios if rate is not None and rate < 0.1 else ()
    several = sample.data.kind != "confidence" and sample.data.n_classes > 2
    of_all = "brier" if several else "brier_binary"
    losses = ("brier_binary",) if several and sample.reduction.kind == "class" else ("nll", of_all)
    return first, *of_rare, sample.ece_key, "mcs", *losses


#: Metrics that guidelines recommend for a validation report besides its figures (Van Calster et al. 2025): shown on the page
#: Decisions and in that section of a report.
VALIDATION_METRICS = (
    *("auroc", "somers_d", "auprc", "oe_ratio", "calibration_in_the_large"),
    *("calibration_slope", "ici", "hosmer_lemeshow"),
)


class _MetricOptions(SampleOptions, total=False):
    """The same, and the parameters of metrics, so that type checkers see a misspelt one; those of plugins are unknown to them."""

    bandwidth: float | None
    coverage: float
    curve: str
    cutoff: float
    kernel: str
    kernel_bandwidth: float | None
    kernel_rows: int
    risk: float
    threshold: float


class EvaluateOptions(_MetricOptions, total=False):
    """All of them."""

    groups: int


class AuditOptions(_MetricOptions, total=False):
    """What `audit` passes on to `evaluate`; its own `groups` are columns."""

    noise_floor: bool | None
    level: float
    interval: IntervalChoice
    classes: bool | None
    findings: bool | None


def _sample(data: AnyData, options: Mapping[str, Any]) -> Sample:
    """Return the sample that these options choose; raise OptionError if one of them is unknown."""
    known = SampleOptions.__annotations__
    for name in options:
        if name not in known:
            raise OptionError(f"there is no option '{name}'; {errors.known_names(name, known)}.")
    named = {"weights" if name == "sample_weight" else name: v for name, v in options.items()}
    return Sample.of(data, **named)


def _divided(options: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options of a sample, and the others."""
    of_sample = {k: v for k, v in options.items() if k in SampleOptions.__annotations__}
    return of_sample, {k: v for k, v in options.items() if k not in of_sample}


@shows_options
def evaluate(
    data: AnyData,
    metrics: Iterable[str] | None = None,
    *,
    ci: bool = False,
    noise_floor: bool | None = None,
    level: float = LEVEL,
    interval: IntervalChoice = "own",
    classes: bool | None = None,
    findings: bool | None = None,
    **options: Unpack[EvaluateOptions],
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
    bins : int or "cube_root"
        Number of bins of the binned metrics, the findings and the table of classes; 15 if left out. With ``cube_root``, ceil(n^(1/3))
        for n rows, as in scikit-learn 1.10.
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
    of_sample, of_metrics = _divided(options)
    sample = _sample(data, of_sample)  # arrays are refused first
    specs = _specs(metrics)
    _check_options(of_metrics)
    errors.check_choice("interval", interval, get_args(IntervalChoice))
    noise_floor = ci if noise_floor is None else noise_floor
    resampling = Resampling(ci, noise_floor, level, interval, sample.resamples, sample.seed)
    everything = metrics is None
    with_classes = everything if classes is None else classes
    judging = everything if findings is None else findings
    for_verdict = _with_enough_resamples(sample)
    evaluation = Evaluation(
        name=sample.data.name,
        rows=sample.data.rows,
        n_classes=sample.data.n_classes,
        kind=sample.data.kind,
        split=sample.split,
        reduction=sample.reduction.key,
        metrics=measured_with_error_bars(sample, specs, of_metrics, resampling),
        classes=sample.once(_classes) if with_classes else (),
        findings=for_verdict.once(findings_of) if judging else (),
        verdict=for_verdict.once(judged) if judging else None,
    )
    if not isinstance(data, Sample):
        sample.let_go()
    return evaluation


@shows_options
def verdict(data: AnyData, **options: Unpack[SampleOptions]) -> Verdict:
    """Say in one sentence whether these probabilities can be trusted.

    Parameters
    ----------
    data : Predictions, ConfidencePredictions, Profile or Sample
    reduction, split, bins, scheme, seed, resamples, clusters, sample_weight
        As in `evaluate`: what is judged, the bins in which the worst place is searched, and how rows are resampled.

    Raises
    ------
    OptionError, InputError, NotAvailable
        As in `evaluate`.
    """
    return _with_enough_resamples(_sample(data, options)).once(judged)


@shows_options
def explain(data: AnyData, **options: Unpack[SampleOptions]) -> tuple[str, ...]:
    """Explain the verdict in five sentences, for readers who do not know the terms.

    Parameters
    ----------
    data, reduction, split, bins, scheme, seed, resamples, clusters, sample_weight
        As in `verdict`; the sentences contain its numbers.

    Raises
    ------
    OptionError, InputError, NotAvailable
        As in `evaluate`.
    """
    sample = _with_enough_resamples(_sample(data, options))
    return explained(sample, sample.once(judged))


@shows_options
def conventions(
    data: Dataset | Sample, *, noise: bool = True, **options: Unpack[SampleOptions]
) -> Conventions:
    """Compute the "ECE" of the same predictions as other libraries define it by default.

    Parameters
    ----------
    data : Predictions, ConfidencePredictions or Sample
    noise : bool
        Whether to add the noise floor of each convention: its mean for a calibrated model.
    reduction, split, bins, scheme, seed, resamples, clusters, sample_weight
        As in `evaluate`. The (score, hit) pair of the reduction is passed to the libraries' binary functions; with the top label they
        get all classes, and their own defaults decide what is measured. The bins are those of calviz's own ECE, and its noise floor is
        that of an evaluation with the same seed and number of resamples.

    Raises
    ------
    OptionError, InputError, NotAvailable
        As in `evaluate`. A convention that has no value on these data is not an error: it has a reason.
    """
    sample = _sample(data, options)
    if sample.data.cells is not None:
        raise NotAvailable(
            "the ECE of other libraries needs the rows: a profile holds their sums only."
        )
    if sample.data.weights is not None:
        raise NotAvailable(
            "the ECE of other libraries is not available for weighted rows: none of their functions takes weights."
        )
    return sample.once(measured_conventions, noise=noise)


@entry_specs.takes_weights
def findings_of(sample: Sample) -> tuple[Finding, ...]:
    """Run every check that applies to these rows, in the order of their codes (and of `Check.before`)."""
    checks = sorted(CHECKS, key=lambda check: (check.before or check.key, not check.before))
    if sample.data.cells is not None:
        return tuple(_of_profile(checks, sample))
    own = [check for check in checks if check.takes(sample.data)]
    found = [finding for check in own for finding in check.findings(sample)]
    if left_out := ", ".join(check.title.lower() for check in checks if check not in own):
        what = "Not checked, as that takes independent rows of equal weight"
        found.append(Finding("CAL025", "info", f"{what}: {left_out}."))
    # Where one slice alone is off, or most, what else is found follows from it.
    verdict = sample.once(judged)
    first, state = bool(verdict.off_alone or verdict.elsewhere), sample.once(watched)
    if first and state and state.change and state.found is state.change:
        found = [_of_all_rows(f) if CHECKS[f.code].about == "times" else f for f in found]
    return tuple(sorted(found, key=lambda f: first and CHECKS[f.code].about != "slices"))


def _of_all_rows(found: Finding) -> Finding:
    message, short = (
        f"All rows together: {within_sentence(text)}" for text in (found.message, found.short)
    )
    return replace(found, message=message, short=short)


def _of_profile(checks: Iterable[Check], sample: Sample) -> Iterator[Finding]:
    """Findings about a profile, and the checks that could not be run on it."""
    titles: dict[str, list[str]] = {}
    for check in checks:
        why = "they need single rows, and a profile holds only sums"
        if check.takes(sample.data):
            try:
                yield from check.findings(sample)
                continue
            except NotAvailable as error:
                why = str(error).rstrip(".")
        titles.setdefault(why, []).append(check.title.lower())
    if titles:
        texts = "; ".join(f"{', '.join(names)} ({why})" for why, names in titles.items())
        yield Finding("CAL025", "info", f"Not checked in a profile: {texts}.")


CHECKS.register(
    Check("CAL025", "Checks left out", lambda _: (), about="values", clusters=True, weights=True)
)


def _with_enough_resamples(sample: Sample) -> Sample:
    """Return the sample with at least `RESAMPLES` resamples: with few, no adjusted p-value could be small enough."""
    return sample.but(resamples=max(sample.resamples, RESAMPLES))


def _specs(metrics: Iterable[str] | None) -> list[Metric]:
    if metrics is None:
        return list(METRICS)
    keys = [metrics] if isinstance(metrics, str) else metrics
    return [METRICS[key] for key in dict.fromkeys(keys)]


def _check_options(options: Mapping[str, Any]) -> None:
    parameters = {p.name: p for m in METRICS for p in m.parameters} if options else {}
    for name, value in options.items():
        if name not in parameters:
            own = inspect.signature(evaluate).parameters.values()
            keywords = {p.name for p in own if p.kind is p.KEYWORD_ONLY}
            known = errors.known_names(name, sorted({*keywords, *parameters}))
            raise OptionError(f"no metric has an option '{name}'; {known}.")
        _check_option(parameters[name], value)


def _check_option(parameter: Parameter, value: Any) -> None:
    if parameter.choices:
        errors.check_choice(parameter.name, value, parameter.choices)
    elif parameter.annotation is int:
        errors.check_whole(parameter.name, value)


@entry_specs.takes_weights
def _classes(sample: Sample) -> tuple[ClassRow, ...]:
    data = sample.data
    if data.labels is None:
        return ()
    names = data.class_names or tuple(str(k) for k in range(int(data.labels.max()) + 1))
    table = class_table(sample)
    columns = (table.rows, table.accuracy, table.confidence, table.ece, table.mcs, table.ks)
    rows = zip(names, *(column.tolist() for column in columns), strict=True)
    return tuple(ClassRow(*row) for row in rows)


# ---- Arrays and scorers


def audit(
    y_true: Any,
    y_prob: Any = None,
    *,
    metrics: Iterable[str] | Literal["all"] | None = None,
    pos_label: Any = None,
    class_names: Sequence[Any] | None = None,
    kind: Literal["probabilities", "logits"] = "probabilities",
    groups: Mapping[str, Any] | None = None,
    ci: bool = True,
    name: str = "predictions",
    **options: Unpack[AuditOptions],
) -> Evaluation:
    """Evaluate probabilities in one call: verdict, main metrics, and findings.

    Parameters
    ----------
    y_true : array_like, shape (n,); or Predictions, ConfidencePredictions, Profile or Sample
        True labels of any kind; or predictions, which hold labels and probabilities (leave out `y_prob`).
    y_prob : array_like, shape (n, K) or (n,)
        Probabilities, as in `calviz.Predictions.from_arrays`.
    metrics : iterable of str or "all", optional
        Keys of metrics; accuracy, ECE, MCS, NLL and Brier score if left out.
    pos_label, class_names, kind, groups, name
        As in `calviz.Predictions.from_arrays`; only with arrays.
    ci : bool
        Whether to compute intervals and noise floors.
    **options
        As in `evaluate`.

    Raises
    ------
    InputError, OptionError
        As in `calviz.Predictions.from_arrays` and `evaluate`.

    Examples
    --------
    >>> import calviz
    >>> result = calviz.audit(["no", "yes"] * 50, [0.2, 0.8] * 50, resamples=100)
    >>> round(result["ece"].value, 4)
    0.2
    >>> result.verdict.direction
    'mixed'
    """
    given = isinstance(y_true, AnyData)
    for_arrays = {"pos_label": pos_label, "class_names": class_names, "groups": groups}
    if y_prob is None and given:
        if kind != "probabilities" or any(value is not None for value in for_arrays.values()):
            raise OptionError(
                "pos_label, class_names, groups and kind are for arrays; predictions have their own."
            )
        data: AnyData = y_true
    else:
        if given:
            raise OptionError("audit got predictions and probabilities: leave out y_prob.")
        if y_prob is None:
            raise InputError("audit got one argument", remedy=_remedy(y_true))
        data = Predictions.from_arrays(y_true, y_prob, kind=kind, name=name, **for_arrays)
    of_sample, others = _divided(options)
    sample = _sample(data, of_sample)
    # Callers look up these by their keys, whatever is quoted.
    usual = (*first_metrics(sample), "accuracy", "ece", "nll", "brier")
    keys = usual if metrics is None else None if metrics == "all" else metrics
    return replace(evaluate(sample, keys, ci=ci, **({"findings": True} | others)), sample=sample)


def _remedy(argument: Any) -> str:
    """Suggest the right call for a single argument that is not predictions."""
    if isinstance(argument, str | os.PathLike):
        return "for a file: audit(calviz.load(path))"
    if type(argument).__module__.startswith("pyspark"):
        return "for a Spark frame: calviz.audit(calviz.profile(df))"
    if hasattr(argument, "columns"):
        return "for a frame: audit(calviz.Predictions.from_frame(df))"
    return "give true labels and probabilities: audit(y_true, y_prob)"


class Scorer:
    """A scorer for scikit-learn: ``scorer(estimator, X, y)`` returns a number, greater is better (see `scorer`)."""

    def __init__(self, metric: str, options: Mapping[str, Any], pos_label: Any) -> None:
        worse = entry_specs.badness(METRICS[metric].direction)
        if worse is None:
            raise OptionError(
                f"'{metric}' only describes the data: neither more nor less of it is better, so it is not a score."
            )
        _check_options(_divided(options)[1])
        self.metric, self.options, self.pos_label = metric, dict(options), pos_label
        self._worse = worse
        #: Request for scikit-learn's metadata routing; None until `set_score_request` is called.
        self._request: Any = None

    def __call__(self, estimator: Any, X: Any, y: Any, *, sample_weight: Any = None) -> float:
        """Return minus the error of the predictions for X, or the metric itself if greater is better."""
        data = Predictions.from_estimator(
            estimator, X, y, pos_label=self.pos_label, sample_weight=sample_weight
        )
        result = evaluate(data, [self.metric], **self.options)[self.metric]
        if result.reason is not None:
            raise NotAvailable(f"'{self.metric}' has no value on these rows: {result.reason}")
        return -self._worse(result.value)

    def set_score_request(self, *, sample_weight: bool | str | None = None) -> Self:
        """Request the weights of the scored rows from scikit-learn's metadata routing.

        Parameters
        ----------
        sample_weight : bool or str or None
            Whether weights passed to `cross_val_score` and the like are used, or their name; None raises an error if any are passed.

        Raises
        ------
        OptionError
            If routing is off (``sklearn.set_config(enable_metadata_routing=True)``).
        """
        from sklearn import get_config

        if not get_config()["enable_metadata_routing"]:
            raise OptionError(
                "scikit-learn's metadata routing is off: switch it on by sklearn.set_config(enable_metadata_routing=True)."
            )
        self._request = self._request_of(sample_weight)
        return self

    def get_metadata_routing(self) -> Any:
        """Return the metadata request, for scikit-learn."""
        return self._request_of(None) if self._request is None else self._request

    def _request_of(self, sample_weight: bool | str | None) -> Any:
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=repr(self))
        request.score.add_request(param="sample_weight", alias=sample_weight)
        return request

    def __repr__(self) -> str:
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        return f"calviz.scorer({self.metric!r}{options})"


def scorer(
    metric: str = "ece", *, pos_label: Any = None, **options: Unpack[EvaluateOptions]
) -> Scorer:
    """Make a scorer for `cross_val_score`, `GridSearchCV` and anything else that takes ``scoring=``.

    As with scikit-learn's own scorers, greater is better: errors are negated, and metrics that are best at 0 or 1 are scored by
    minus the distance from it. It uses `predict_proba` and ``classes_`` of the estimator, so a fold may lack a class. Row weights
    are its ``sample_weight``, which metadata routing passes on after ``scorer(...).set_score_request(sample_weight=True)``.

    Parameters
    ----------
    metric : str
        Key of a metric (``calviz metrics`` lists them).
    pos_label : optional
        With two classes, the positive one; the second of ``classes_`` if left out.
    **options
        As in `evaluate`: ``reduction="top-label"``, ``bins=10``.

    Raises
    ------
    OptionError
        On an unknown metric or option, or a metric that only describes the data.

    Examples
    --------
    >>> import calviz
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.model_selection import cross_val_score
    >>> X, y = load_iris(return_X_y=True)
    >>> scores = cross_val_score(LogisticRegression(max_iter=1000), X, y, scoring=calviz.scorer("ece"))
    >>> len(scores), bool(scores.max() < 0)
    (5, True)
    """
    return Scorer(metric, options, pos_label)
