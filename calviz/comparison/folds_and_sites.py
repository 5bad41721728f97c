"""Folds of a cross-validation and sites of a validation: each by itself, whether they differ, and what holds across them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import chdtrc, chdtri, expit, logit, ndtr, ndtri, stdtrit

from calviz.comparison.over_time import against_the_others
from calviz.core.blocks import FloatArray, IntArray, one_blas_thread
from calviz.core.claims import claim
from calviz.core.entry_specs import METRICS
from calviz.core.errors import NotAvailable, OptionError, check_whole, data_frame
from calviz.core.events import BinNumber, Reduction
from calviz.core.p_values import holm
from calviz.core.predictions import Dataset
from calviz.core.profile import Profile
from calviz.core.row_columns import Factor
from calviz.core.words import counted, p_number, shorten
from calviz.data.column_names import plain
from calviz.sample.error_bars import Interval
from calviz.sample.metric_results import Displayed, MetricResult, Summary
from calviz.sample.sample import Sample
from calviz.sample.slices import no_group_column, slice_sums
from calviz.verdicts.analysis import evaluate
from calviz.verdicts.evaluation import value_text

if TYPE_CHECKING:
    import pandas as pd

#: Folds and sites of fewer rows are left out.
MIN_ROWS = 30
#: Sites with fewer hits or misses are left out: their slopes are too uncertain for a normal approximation.
MIN_EVENTS = 10
#: Level of tests and intervals.
LEVEL = 0.05
#: More folds or sites than this are names or numbers of rows.
MOST_LEVELS = 400
#: Metrics of folds; the first one is tested, beside the MCS.
FOLD_METRICS = ("nll", "brier", "ece", "mcs", "auroc", "calibration_slope")
#: Names of columns that hold folds, and repeats of a cross-validation.
_FOLDS = {"fold", "folds", "fold_id", "fold_index", "cv_fold", "kfold", "k_fold"}
_REPEATS = {"repeat", "repeats", "repetition", "cv_repeat"}


# ---- Rows by level


class RowsByLevel(NamedTuple):
    """The level of each row, shape (n,), the levels' names and numbers of rows, and the reasons why levels are left out."""

    code: IntArray
    names: tuple[str, ...]
    rows: FloatArray
    left_out: tuple[str, ...]
    large: IntArray

    @classmethod
    def of(
        cls, sample: Sample, by: Sequence[str], least: int, why: Callable[[int], str] | None = None
    ) -> RowsByLevel:
        """Divide rows by one or two group columns; `why` gives a further reason to leave out a level."""
        for column in by:
            if column not in sample.data.groups:
                raise no_group_column(sample.data, column)
        names: tuple[str, ...] = ("",)
        code = np.zeros(sample.data.n, dtype=np.intp)
        for factor in (sample.data.groups[column] for column in by):
            used, code = np.unique(
                code * len(factor.levels) + factor.codes.astype(np.intp), return_inverse=True
            )
            old = names
            names = tuple(
                f"{old[c // len(factor.levels)]} {factor.levels[c % len(factor.levels)]}".strip()
                for c in used.tolist()
            )
        if len(names) > MOST_LEVELS:
            raise OptionError(
                f"'{shorten(' and '.join(by))}' has {len(names):,} values, more than {MOST_LEVELS}: choose a column of folds or sites."
            )
        # A cell of a profile counts as many rows as it summarises.
        counts = sample.weights if sample.data.cells is not None else None
        rows = np.bincount(code, counts).astype(np.float64)
        reasons = {
            k: f"{shorten(name, 40) or 'rows without a value'} ({reason})"
            for k, name in enumerate(names)
            if (
                reason := counted(round(float(rows[k])), "row")
                if rows[k] < least or not name
                else why(k)
                if why
                else ""
            )
        }
        large = np.array([k for k in range(len(names)) if k not in reasons], dtype=np.intp)
        levels = cls(code, names, rows, tuple(reasons.values()), large)
        if not large.size:
            raise NotAvailable(
                f"no value of '{shorten(' and '.join(by))}' has enough rows: {'; '.join(levels.left_out[:3])}."
            )
        return levels

    def part(self, sample: Sample, k: int) -> Sample:
        """The rows of a level."""
        return sample.with_data(sample.data.take(np.flatnonzero(self.code == k)))


def fold_columns(data: Dataset) -> tuple[str, ...]:
    """Group columns that by their names hold folds, or repeats and folds."""
    named = [
        next((name for name in data.groups if plain(name) in words), None)
        for words in (_REPEATS, _FOLDS)
    ]
    return tuple(name for name in named if name is not None)


def _left_out_words(left_out: Sequence[str]) -> tuple[str, ...]:
    more = f" and {len(left_out) - 5:,} more" if len(left_out) > 5 else ""
    return (f"Left out: {', '.join(left_out[:5])}{more}.",) if left_out else ()


# ---- Folds


@dataclass(frozen=True)
class Fold:
    """A fold: its metrics, and its p-value against the other folds, adjusted for all folds and both metrics; nan if not tested."""

    name: str
    rows: int
    metrics: Mapping[str, MetricResult]
    adjusted: float = math.nan


class MeanOfFolds(NamedTuple):
    """A metric over the folds.

    Attributes
    ----------
    mean, spread : float
        Unweighted mean, and standard deviation over the folds (ddof 1); nan without a value in each.
    interval : Interval or None
        Interval of the mean value of these models; None if the error of a fold grows with its noise, as the ECE does.
    noise : float
        The mean if every fold's model were calibrated.
    pooled : float
        The metric of all rows together.
    """

    mean: float
    spread: float
    interval: Interval | None
    noise: float
    pooled: float


@dataclass(frozen=True, eq=False, repr=False)
class Folds(Displayed):
    """Metrics by fold.

    Attributes
    ----------
    name, reduction : str
    rows : int
    by : tuple of str
        Columns that name the folds.
    folds : tuple of Fold
    means : mapping of str to MeanOfFolds
    tested : tuple of str
        Metrics by which folds are tested against the others.
    untested : str
        Why they are not; empty if they are.
    shared : bool
        Whether folds share rows, as repeats of a cross-validation do.
    left_out : tuple of str
        Folds that are left out, with their reasons.
    """

    name: str
    reduction: str
    rows: int
    by: tuple[str, ...]
    folds: tuple[Fold, ...]
    means: Mapping[str, MeanOfFolds]
    tested: tuple[str, ...]
    untested: str
    shared: bool
    left_out: tuple[str, ...]

    @property
    def differing(self) -> tuple[Fold, ...]:
        """Folds that differ from the others beyond chance, the most certain first, and of equals that furthest from the mean.

        One that is far off also sets the others apart from the rest.
        """
        key, mean = next((key, m.mean) for key, m in self.means.items())
        found = [fold for fold in self.folds if fold.adjusted <= LEVEL]
        return tuple(sorted(found, key=lambda f: (f.adjusted, -abs(f.metrics[key].value - mean))))

    @claim("folds")
    def sentence(self) -> str:
        """Say which folds disagree."""
        if self.untested:
            return self.untested[0].upper() + self.untested[1:]
        labels = " or ".join(METRICS[key].label for key in self.tested)
        if not self.differing:
            return (
                f"No fold of {len(self.folds)} differs from the others in {labels} beyond chance."
            )
        several = len(self.differing) > 1
        return (
            f"{len(self.differing)} of {len(self.folds)} folds {'differ' if several else 'differs'} from the others in {labels} "
            f"beyond chance{', most surely' if several else ':'} '{shorten(self.differing[0].name, 30)}'."
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What the intervals are of, and which folds are left out."""
        of = (
            "Intervals are of the mean of these models, whose rows are independent given the models"
        )
        if self.shared:
            of = "Folds share rows, and intervals allow for the same errors in all of them"
        return (
            f"{of}; a model fitted on all rows may differ, and the SD over folds says by about how much.",
            *(
                f"{METRICS[key].label}: folds of a calibrated model would show {value_text(key, m.noise)} on average."
                for key, m in self.means.items()
                if m.interval is None and math.isfinite(m.noise)
            ),
            *_left_out_words(self.left_out),
        )

    def summary(self) -> Summary:
        """Summarise the means, and each fold."""
        return Summary(
            title=f"of '{shorten(self.name)}': {counted(len(self.folds), 'fold')} by {', '.join(map(shorten, self.by))}",
            verdict=self.sentence(),
            header=(
                "metric",
                "mean",
                "95 % interval",
                "SD over folds",
                "pooled",
                *(f.name for f in self.folds[:10]),
            ),
            rows=tuple(
                (
                    METRICS[key].label,
                    value_text(key, m.mean),
                    _ends_text(key, m.interval),
                    value_text(key, m.spread),
                    value_text(key, m.pooled),
                    *(value_text(key, fold.metrics[key].value) for fold in self.folds[:10]),
                )
                for key, m in self.means.items()
            ),
            notes=self.notes,
        )

    def records(self) -> list[dict[str, Any]]:
        """One mapping per fold: values, ends of intervals, adjusted p-value."""
        return [
            {"fold": f.name, "rows": f.rows}
            | _values({key: (r.value, r.interval) for key, r in f.metrics.items()})
            | {"adjusted": f.adjusted}
            for f in self.folds
        ]

    def frame(self) -> pd.DataFrame:
        """Return `records` as a table."""
        return data_frame(self.records())

    def to_dict(self) -> dict[str, Any]:
        """Return the contract of ``calviz folds --json``."""
        return {
            "schema": 1,
            "by": list(self.by),
            "sentence": self.sentence(),
            "means": {key: m._asdict() for key, m in self.means.items()},
            "folds": self.records(),
            "left_out": list(self.left_out),
        }


@claim(
    "folds",
    says="1 of 5 folds differs from the others in NLL or MCS beyond chance",
    chosen="folds, of all of them, and one of two metrics",
    adjusted="step-down max-T over all folds and both metrics, from permutations of the rows or clusters among the folds",
)
@claim(
    "mean-of-folds",
    says="The mean NLL over folds is ... (95 % interval)",
    chosen="nothing: metrics are fixed beforehand",
    adjusted="the interval is of the mean of the models of these folds, not of a new model",
)
@one_blas_thread()
def folds(
    data: Dataset | Sample | Profile,
    by: str | Sequence[str] | None = None,
    metrics: Iterable[str] = FOLD_METRICS,
    *,
    split: str | None = None,
    reduction: Reduction | str | None = None,
    bins: BinNumber | None = None,
    seed: int | None = None,
    resamples: int | None = None,
    min_rows: int = MIN_ROWS,
) -> Folds:
    """Evaluate each fold of a cross-validation by itself, and test which folds differ from the others.

    Parameters
    ----------
    data : Predictions, ConfidencePredictions, Profile or Sample
        Each row scored by the model of its fold, which was not fitted on it.
    by : str or sequence of str, optional
        The group column that names the folds, or two (repeat and fold); recognised by their names if left out.
    metrics : iterable of str
        Keys; the first one is tested, beside the MCS.
    split, reduction, bins, seed, resamples
        As in `calviz.evaluate`.
    min_rows : int
        Folds with fewer rows are left out.

    Raises
    ------
    OptionError, NotAvailable
        Without such a column, or without a fold of enough rows.

    Notes
    -----
    Given the models, rows of different folds are independent, and the mean over K folds has the variance ``sum_k Var_k / K^2``: the
    interval of the mean value of these K models (Bayle et al. 2020), here from the intervals of the folds, whose distances from their
    values are added in squares (Zou & Donner 2008). Where identifiers or clusters occur in several folds, as in repeats, distances
    themselves are added, as if all folds had the same errors. No interval is of the model that is fitted on all rows: no unbiased
    estimate of that variance exists (Bengio & Grandvalet 2004). If models do not differ, rows are exchangeable between folds, so that
    permutations test each fold against the others, as in `calviz.over_time`.
    """
    sample = Sample.of(
        data, split=split, reduction=reduction, bins=bins, seed=seed, resamples=resamples
    )
    check_whole("min_rows", min_rows, least=2)
    columns = (
        fold_columns(sample.data) if by is None else (by,) if isinstance(by, str) else tuple(by)
    )
    if not columns:
        raise NotAvailable(
            "no column is called fold: name the one that holds the folds (by, --by)."
        )
    keys = tuple(METRICS[key].key for key in dict.fromkeys(metrics))
    levels = RowsByLevel.of(sample, columns, min_rows)
    measured = []
    for k in levels.large.tolist():
        part = evaluate(levels.part(sample, k), keys, ci=True, findings=False, classes=False)
        measured.append(Fold(levels.names[k], round(float(levels.rows[k])), part.metrics))
    ids, clusters = sample.data.ids, sample.data.clusters
    repeated = ids is not None and Factor.of(ids).crosses(levels.code)
    untested, tested = "", tuple[str, ...]()
    try:
        if repeated:
            raise NotAvailable("differences are not tested: the same rows are in several folds.")
        words = ("fold", "differences")
        values, _, p = against_the_others(sample, levels.code, levels.large, keys[0], words=words)
        tested = tuple(values)
        measured = [
            replace(f, adjusted=float(q)) for f, q in zip(measured, p.min(axis=0), strict=True)
        ]
    except NotAvailable as error:
        untested = str(error)
    pooled = evaluate(sample, keys, findings=False, classes=False)
    shared = repeated or (clusters is not None and clusters.crosses(levels.code))
    return Folds(
        name=sample.data.name,
        reduction=sample.reduction.key,
        rows=sample.data.rows,
        by=columns,
        folds=tuple(measured),
        means={
            key: _mean_of([f.metrics[key] for f in measured], pooled[key].value, shared)
            for key in keys
        },
        tested=tested,
        untested=untested,
        shared=shared,
        left_out=levels.left_out,
    )


def _mean_of(results: Sequence[MetricResult], pooled: float, shared: bool) -> MeanOfFolds:
    value = np.array([r.value for r in results])
    ends = np.array([r.interval or (math.nan, math.nan) for r in results])
    mean, spread = float(value.mean()), float(value.std(ddof=1)) if value.size > 1 else math.nan
    noise = [math.nan if r.noise_floor is None else r.noise_floor.mean for r in results]
    interval = None
    biased = any((r.interval_method or "").startswith("inverted") for r in results)
    if np.isfinite(ends).all() and not biased:
        distance = np.abs(ends - value[:, None])
        low, high = distance.mean(0) if shared else np.sqrt((distance**2).sum(0)) / value.size
        interval = Interval(mean - float(low), mean + float(high))
    return MeanOfFolds(mean, spread, interval, float(np.mean(noise)), pooled)


def _values(values: Mapping[str, tuple[float, Interval | None]]) -> dict[str, float]:
    """Each value, with the ends of its interval as ``key_low`` and ``key_high``."""
    return {
        name: part
        for key, (value, ends) in values.items()
        for name, part in zip(
            (key, f"{key}_low", f"{key}_high"), (value, *(ends or (math.nan,) * 2)), strict=True
        )
    }


def _ends_text(key: str, ends: tuple[float, float] | None) -> str:
    if ends is None:
        return ""
    low, high = (value_text(key, end) for end in ends)
    unit = high[len(high.rstrip("points %")) :]
    return f"{low.removesuffix(unit)} to {high}"


# ---- Random effects


class RandomEffects(NamedTuple):
    """A summary of estimates that differ between sites beyond their own errors.

    Attributes
    ----------
    sites : int
    mean : float
        Mean over sites like these.
    interval : Interval
        Of the mean.
    prediction : Interval or None
        For a new site; None with fewer than three sites.
    tau_squared : float
        Variance between sites, of the logarithm of O/E and of the logit of the AUROC.
    tau_squared_interval : Interval
    q, p_value : float
        Cochran's Q and its p-value.
    adjusted : float
        The p-value adjusted for all measures (Holm).
    """

    sites: int
    mean: float
    interval: Interval
    prediction: Interval | None
    tau_squared: float
    tau_squared_interval: Interval
    q: float
    p_value: float
    adjusted: float = math.nan


def random_effects(
    estimates: FloatArray, variances: FloatArray, *, level: float = 1 - LEVEL
) -> RandomEffects:
    """Summarise estimates of k sites by a random-effects model, tau^2 by restricted maximum likelihood.

    Parameters
    ----------
    estimates, variances : ndarray, shape (k,)
        Two or more, with the squares of their standard errors.
    level : float
        Level of the intervals.

    Notes
    -----
    With ``w = 1 / (v + tau^2)`` and the mean ``m = sum w y / sum w``, tau^2 maximises ``-(sum log(v + tau^2) + log sum w +
    sum w (y - m)^2) / 2`` (Viechtbauer 2005). The standard error of m is that of Hartung & Knapp 2001, with ``q = sum w (y - m)^2 / (k -
    1)`` not below 1 (Roever et al. 2015) and k - 1 degrees of freedom. Given tau^2, ``Q(tau^2) = sum w (y - m)^2`` is chi-squared with k - 1
    degrees of freedom: where it has its quantiles lies the interval of tau^2 (Viechtbauer 2007), and inverted quantile by quantile it
    gives tau^2 a confidence distribution. A new site is predicted by the mixture of normal distributions with mean m and variance
    ``tau^2 + 1 / sum w`` over it (as Nagashima et al. 2019): ``m ± t sqrt(tau^2 + se^2)`` at the REML estimate covers only 85 % where
    sites differ about as much as their errors.
    """
    y, v, k = estimates, variances, estimates.size

    def fitted(tau2: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        w = 1 / (v + tau2[..., None])
        total = w.sum(axis=-1)
        m = w @ y / total
        return m, total, (w * (y - m[..., None]) ** 2).sum(axis=-1)

    def loss(tau2: FloatArray) -> FloatArray:
        _, total, q = fitted(tau2)
        return np.asarray(np.log(v + tau2[..., None]).sum(axis=-1) + np.log(total) + q)

    far = 1e6 * max(float(np.var(y, ddof=1)), float(v.max()))
    grid = np.concatenate([[0.0], np.geomspace(float(v.min()) * 1e-4, far, 2_000)])
    q_of = fitted(grid)[2]

    def tau2_where(quantile: float) -> float:
        if q_of[0] <= quantile:
            return 0.0
        return float(brentq(lambda t: float(fitted(np.array(t))[2]) - quantile, 0, far, xtol=1e-14))

    # The highest of the maxima, if there are several.
    at = int(np.argmin(loss(grid)))
    near = (grid[max(at - 1, 0)], grid[min(at + 1, grid.size - 1)])
    best = minimize_scalar(
        lambda t: float(loss(np.array(t))), bounds=near, method="bounded", options={"xatol": 1e-12}
    )
    tau2 = 0.0 if loss(grid[0]) <= best.fun else float(best.x)
    mean, total, q_at = (float(one) for one in fitted(np.array(tau2)))
    upper = (1 + level) / 2
    reach = float(stdtrit(k - 1, upper)) * math.sqrt(max(q_at / (k - 1), 1.0) / total)
    tails = [float(chdtri(k - 1, share)) for share in (1 - upper, upper)]
    # Quantiles of Q in the middle of 200 equal shares; Q falls with tau^2.
    drawn = chdtri(k - 1, (np.arange(200) + 0.5) / 200)
    means, totals, _ = fitted(np.interp(-drawn, -q_of, grid))
    spread = np.sqrt(np.interp(-drawn, -q_of, grid) + 1 / totals)
    ends = (float((means - 40 * spread).min()), float((means + 40 * spread).max()))
    new = [
        float(brentq(lambda x, p=p: ndtr((x - means) / spread).mean() - p, *ends))
        for p in (1 - upper, upper)
    ]
    return RandomEffects(
        sites=k,
        mean=mean,
        interval=Interval(mean - reach, mean + reach),
        prediction=Interval(*new) if k > 2 else None,
        tau_squared=tau2,
        tau_squared_interval=Interval(*map(tau2_where, tails)),
        q=float(q_of[0]),
        p_value=float(chdtrc(k - 1, q_of[0])),
    )


# ---- Sites


class Measure(NamedTuple):
    """A metric that sites are compared by, the scale on which it is summarised, and the way back."""

    key: str
    to: Callable[[Any], Any] = float
    back: Callable[[Any], Any] = float


#: O/E and AUROC are summarised on the scales on which they are more nearly normal (Debray et al. 2017).
MEASURES = (
    Measure("calibration_slope"),
    Measure("calibration_in_the_large"),
    Measure("oe_ratio", np.log, np.exp),
    Measure("mcs"),
    Measure("auroc", logit, expit),
)


class Site(NamedTuple):
    """A site: its rows and hits, and the value and 95 % interval of each measure; (nan, None) where there is none."""

    name: str
    rows: int
    hits: int
    values: Mapping[str, tuple[float, Interval | None]]


@dataclass(frozen=True, eq=False, repr=False)
class Sites(Displayed):
    """A validation at several sites.

    Attributes
    ----------
    name, reduction, by : str
    rows : int
    sites : tuple of Site
    effects : mapping of str to RandomEffects
        By measure; those with a value at two sites or more.
    left_out : tuple of str
        Sites that are left out, with their reasons.
    """

    name: str
    reduction: str
    by: str
    rows: int
    sites: tuple[Site, ...]
    effects: Mapping[str, RandomEffects]
    left_out: tuple[str, ...]

    @property
    def differing(self) -> tuple[str, ...]:
        """Measures in which sites differ beyond chance."""
        return tuple(key for key, e in self.effects.items() if e.adjusted <= LEVEL)

    @claim("sites")
    def sentence(self) -> str:
        """Say in what sites differ, and what a new site is expected to show."""
        if not self.effects:
            return "There are not two sites with enough rows and events to compare."
        if not self.differing:
            return (
                f"The {len(self.sites)} sites do not differ beyond chance in any of these measures."
            )
        labels = ", ".join(METRICS[key].label for key in self.differing)
        return f"The {len(self.sites)} sites differ beyond chance in {labels}."

    @claim("new-site")
    def expectation(self, key: str) -> str:
        """Say what a measure is expected to be at a new site; empty without a prediction interval."""
        effect = self.effects.get(key)
        if effect is None or effect.prediction is None:
            return ""
        return (
            f"{METRICS[key].label} at a new site: {_ends_text(key, effect.prediction)} (95 % prediction interval), "
            f"{value_text(key, effect.mean)} on average."
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What a new site is, and which ones are left out."""
        few = (
            ("A prediction interval needs three sites.",)
            if any(e.prediction is None for e in self.effects.values())
            else ("A new site is one drawn as these were; with few sites its interval is rough.",)
        )
        return (*few, *_left_out_words(self.left_out))

    def table(self) -> list[dict[str, str]]:
        """The random-effects summary in words, one mapping per measure."""
        return [
            {
                "measure": METRICS[key].label,
                "mean": value_text(key, e.mean),
                "95 % interval": _ends_text(key, e.interval),
                "at a new site": _ends_text(key, e.prediction),
                "tau²": f"{e.tau_squared:.3g}",
                "p": p_number(e.adjusted),
                "sites": str(e.sites),
            }
            for key, e in self.effects.items()
        ]

    def summary(self) -> Summary:
        """Summarise the random effects."""
        table = self.table()
        return Summary(
            title=f"of '{shorten(self.name)}': {counted(len(self.sites), 'site')} by {shorten(self.by)}",
            verdict=self.sentence(),
            header=tuple(table[0]) if table else (),
            rows=tuple(tuple(row.values()) for row in table),
            notes=self.notes,
        )

    def records(self) -> list[dict[str, Any]]:
        """One mapping per site: rows, hits, values and ends of intervals."""
        return [
            {"site": s.name, "rows": s.rows, "hits": s.hits} | _values(s.values) for s in self.sites
        ]

    def frame(self) -> pd.DataFrame:
        """Return `records` as a table."""
        return data_frame(self.records())

    def to_dict(self) -> dict[str, Any]:
        """Return the contract of ``calviz sites --json``."""
        return {
            "schema": 1,
            "by": self.by,
            "sentence": self.sentence(),
            "effects": {key: e._asdict() for key, e in self.effects.items()},
            "sites": self.records(),
            "left_out": list(self.left_out),
        }


@claim(
    "sites",
    says="The 8 sites differ beyond chance in Calibration slope",
    chosen="measures, of all five",
    adjusted="Cochran's Q of each measure, adjusted by Holm",
)
@claim(
    "new-site",
    says="Calibration slope at a new site: 0.7 to 1.2 (95 % prediction interval)",
    chosen="nothing: each measure has its own interval",
    adjusted="random effects over the confidence distribution of the variance between sites",
)
@one_blas_thread()
def sites(
    data: Dataset | Sample | Profile,
    by: str,
    *,
    split: str | None = None,
    reduction: Reduction | str | None = None,
    seed: int | None = None,
    resamples: int | None = None,
    min_rows: int = MIN_ROWS,
    min_events: int = MIN_EVENTS,
) -> Sites:
    """Evaluate each site by itself, and summarise slope, intercept, O/E, MCS and AUROC by random effects.

    Parameters
    ----------
    data : Predictions, ConfidencePredictions, Profile or Sample
    by : str
        The group column that names the site, centre or study of each row.
    split, reduction, seed, resamples
        As in `calviz.evaluate`.
    min_rows, min_events : int
        Sites with fewer rows, hits or misses are left out.

    Raises
    ------
    OptionError, NotAvailable
        Without such a column, or without a site of enough rows.

    Notes
    -----
    The standard error at a site is the width of its 95 % interval on the scale of the summary, divided by 2 x 1.96; for the MCS that of
    a mean. The intercept is calibration in the large, with the slope fixed at 1. See `random_effects`.
    """
    sample = Sample.of(data, split=split, reduction=reduction, seed=seed, resamples=resamples)
    check_whole("min_rows", min_rows, least=2)
    events, weights = sample.scored, sample.weights
    if by not in sample.data.groups:
        raise no_group_column(sample.data, by)
    code = sample.data.groups[by].codes
    seen = weights if events.counted else None
    hits = np.bincount(code, np.where(events.hit, 1.0 if seen is None else seen, 0.0))
    rows = np.bincount(code, seen)

    def why(k: int) -> str:
        few = counted(round(hits[k]), "hit") if hits[k] < min_events else ""
        missing = rows[k] - hits[k]
        return few or (counted(round(missing), "miss", "misses") if missing < min_events else "")

    levels = RowsByLevel.of(sample, (by,), min_rows, why)
    sums = slice_sums(events, levels.code, len(levels.names), sample.row_draws.cluster, weights)
    keys = [m.key for m in MEASURES if m.key != "mcs"]
    measured, z = [], float(ndtri(1 - LEVEL / 2))
    for k in levels.large.tolist():
        part = evaluate(
            levels.part(sample, k), keys, ci=True, noise_floor=False, findings=False, classes=False
        )
        gap, reach = float(sums.gap[k]), z * float(sums.spread[k])
        own = {key: (r.value, r.interval) for key, r in part.metrics.items()}
        own["mcs"] = gap, Interval(gap - reach, gap + reach)
        values = {m.key: own[m.key] for m in MEASURES}
        measured.append(Site(levels.names[k], round(rows[k]), round(hits[k]), values))
    effects = {}
    for m in MEASURES:
        ends = np.array(
            [(s.values[m.key][0], *(s.values[m.key][1] or (math.nan,) * 2)) for s in measured]
        )
        with np.errstate(all="ignore"):
            value, low, high = np.apply_along_axis(m.to, 0, ends.T) if m.to is not float else ends.T
        error = (high - low) / (2 * z)
        usable = np.isfinite(value) & np.isfinite(error) & (error > 0)
        if usable.sum() > 1:
            effects[m.key] = _back(m, random_effects(value[usable], error[usable] ** 2))
    adjusted = holm([e.p_value for e in effects.values()])
    return Sites(
        name=sample.data.name,
        reduction=sample.reduction.key,
        by=by,
        rows=sample.data.rows,
        sites=tuple(measured),
        effects={
            key: e._replace(adjusted=float(p))
            for (key, e), p in zip(effects.items(), adjusted, strict=True)
        },
        left_out=levels.left_out,
    )


def _back(measure: Measure, effect: RandomEffects) -> RandomEffects:
    """Means and intervals on the scale of the metric."""

    def ends(interval: Interval) -> Interval:
        return Interval(*(float(measure.back(end)) for end in interval))

    return effect._replace(
        mean=float(measure.back(effect.mean)),
        interval=ends(effect.interval),
        prediction=None if effect.prediction is None else ends(effect.prediction),
    )
