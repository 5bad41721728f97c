"""Folds of a cross-validation and sites of a validation: each by itself, whether they differ, and what holds across them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Self, Unpack

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.special import chdtrc, chdtri, expit, logit, ndtr, ndtri, stdtrit

from calviz.comparison.difference_intervals import against_the_others
from calviz.core import p_values
from calviz.core.blocks import Factor, FloatArray, IntArray, one_blas_thread
from calviz.core.entry_specs import METRICS, Interval, MetricResult, takes_weights
from calviz.core.errors import NotAvailable, OptionError, check_whole, claim, data_frame, shortened
from calviz.core.events import BinNumber
from calviz.core.predictions import Dataset, no_group_column, sliceable_columns
from calviz.core.words import counted, p_number, shorten
from calviz.data.column_names import plain
from calviz.sample.metric_results import Displayed, Summary
from calviz.sample.sample import AnyData, EventOptions, Sample, shows_options
from calviz.sample.slice_tests import slice_sums
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
#: Names of columns that hold folds, repeats of a cross-validation, and sites.
_FOLDS = {"fold", "folds", "fold_id", "fold_index", "cv_fold", "kfold", "k_fold"}
_REPEATS = {"repeat", "repeats", "repetition", "cv_repeat"}
_SITES = {
    *"site site_id sites centre centre_id center center_id hospital hospital_id clinic institution zentrum klinik krankenhaus standort".split()
}


# ---- Rows by level


class RowsByLevel(NamedTuple):
    """Rows by the values of one or two columns.

    Attributes
    ----------
    code : ndarray of int, shape (n,)
        The level of each row.
    names : tuple of str
    rows, hits : ndarray, shape (L,)
        Numbers of rows and of hits; of a profile, of the rows behind its cells.
    large : ndarray of int
        Levels that are measured.
    left_out : tuple of str
        The others, with their reasons.
    """

    code: IntArray
    names: tuple[str, ...]
    rows: IntArray
    hits: IntArray
    large: IntArray
    left_out: tuple[str, ...]

    @classmethod
    def of(cls, sample: Sample, by: Sequence[str], least: int, least_events: int = 0) -> Self:
        """Divide rows; levels of fewer rows, hits or misses are left out."""
        code, names = np.zeros(sample.data.n, dtype=np.intp), [""]
        for column in by:
            if column not in sample.data.groups:
                if column in sliceable_columns(sample.data):
                    raise OptionError(
                        f"'{shortened(column)}' holds numbers or many values; folds and sites are groups: {', '.join(map(shortened, sample.data.groups)) or 'there are none'}."
                    )
                raise no_group_column(sample.data, column)
            levels = sample.data.groups[column].levels
            both = code * len(levels) + sample.data.groups[column].codes.astype(np.intp)
            used, code = np.unique(both, return_inverse=True)
            pairs = [divmod(c, len(levels)) for c in used.tolist()]
            names = [f"{names[a]} {levels[b]}".strip() for a, b in pairs]
        # "fold 2" before "fold 10", in whatever order the rows are.
        order = sorted(range(len(names)), key=lambda k: _parts(names[k]))
        code, names = np.argsort(order)[code], [names[k] for k in order]
        named = f"'{shorten(' and '.join(by))}'"
        if len(names) > MOST_LEVELS:
            raise OptionError(
                f"{named} has {len(names):,} values, more than {MOST_LEVELS}: choose a column of folds or sites."
            )
        counts = sample.row_counts
        rows, hits = (
            np.rint(np.bincount(code, w)).astype(np.intp)
            for w in (counts, counts * sample.scored.hit)
        )
        reasons = {}
        for k, (n, h) in enumerate(zip(rows.tolist(), hits.tolist(), strict=True)):
            if n < least or not names[k]:
                reasons[k] = counted(n, "row")
            elif min(h, n - h) < least_events:
                reasons[k] = counted(h, "hit") if h < n - h else counted(n - h, "miss", "misses")
        left_out = tuple(
            f"{shorten(names[k], 40) or 'rows without a value'} ({why})"
            for k, why in reasons.items()
        )
        large = np.setdiff1d(np.arange(len(names)), list(reasons)).astype(np.intp)
        if not large.size:
            raise NotAvailable(f"no value of {named} has enough rows: {'; '.join(left_out[:3])}.")
        return cls(code, tuple(names), rows, hits, large, left_out)

    def part(self, sample: Sample, k: int) -> Sample:
        """The rows of a level."""
        return sample.rows_of(self.code == k)


def _parts(name: str) -> list[str | int]:
    """Texts and whole numbers of a name by turns, for sorting."""
    return [int(t) if place % 2 else t for place, t in enumerate(re.split(r"([0-9]+)", name))]


def fold_columns(data: Dataset) -> tuple[str, ...]:
    """Group columns that by their names hold folds, or repeats and folds."""
    named = [
        next((name for name in data.groups if plain(name) in words), None)
        for words in (_REPEATS, _FOLDS)
    ]
    return tuple(name for name in named if name is not None)


def site_column(data: Dataset) -> str | None:
    """The first group column that by its name holds the sites of a study of one event; None if there is none."""
    named = (name for name in data.groups if plain(name) in _SITES and data.n_classes == 2)
    return next(named, None)


class _ByLevel(Displayed):
    """What results by level have in common."""

    name: str
    left_out: tuple[str, ...]

    def records(self) -> list[dict[str, Any]]:
        """One mapping per level."""
        raise NotImplementedError

    def frame(self) -> pd.DataFrame:
        """Return `records` as a table."""
        return data_frame(self.records())

    def _summary(
        self, what: str, verdict: str, table: Sequence[Mapping[str, str]], notes: Sequence[str]
    ) -> Summary:
        more = f" and {len(self.left_out) - 5:,} more" if len(self.left_out) > 5 else ""
        left_out = [f"Left out: {', '.join(self.left_out[:5])}{more}."] if self.left_out else []
        return Summary(
            title=f"of '{shorten(self.name)}': {what}",
            verdict=verdict,
            header=tuple(table[0]) if table else (),
            rows=tuple(tuple(row.values()) for row in table),
            notes=(*notes, *left_out),
        )


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
class FoldResults(_ByLevel):
    """Metrics by fold.

    Attributes
    ----------
    name : str
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
        key = self.tested[0] if self.tested else next(iter(self.means))
        mean = self.means[key].mean
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
            f"beyond chance{', most clearly' if several else ':'} '{shorten(self.differing[0].name, 30)}'."
        )

    def summary(self) -> Summary:
        """Summarise the means, and the first folds."""
        of = (
            "Intervals are of the mean of these models, whose rows are independent given the models"
        )
        if self.shared:
            of = "Folds share rows, and intervals allow for the same errors in all of them"
        notes = [
            f"{of}; a model fitted on all rows may differ, and the SD over folds says by about how much."
        ]
        notes += [
            f"{METRICS[key].label}: folds of a calibrated model would show {value_text(key, m.noise)} on average."
            for key, m in self.means.items()
            if m.interval is None and math.isfinite(m.noise)
        ]
        table = [
            {
                "metric": METRICS[key].label,
                "mean": value_text(key, m.mean),
                "95 % interval": _ends_text(key, m.interval),
                "SD over folds": value_text(key, m.spread),
                "pooled": value_text(key, m.pooled),
            }
            | {f"fold {f.name}": value_text(key, f.metrics[key].value) for f in self.folds[:10]}
            for key, m in self.means.items()
        ]
        what = f"{counted(len(self.folds), 'fold')} by {', '.join(map(shorten, self.by))}"
        return self._summary(what, self.sentence(), table, notes)

    def records(self) -> list[dict[str, Any]]:
        """One mapping per fold: values, ends of intervals, adjusted p-value."""
        return [
            {"fold": f.name, "rows": f.rows}
            | _values({key: (r.value, r.interval) for key, r in f.metrics.items()})
            | {"adjusted": f.adjusted}
            for f in self.folds
        ]

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
@takes_weights
@one_blas_thread()
@shows_options
def folds(
    data: AnyData,
    by: str | Sequence[str] | None = None,
    metrics: Iterable[str] = FOLD_METRICS,
    *,
    bins: BinNumber | None = None,
    min_rows: int = MIN_ROWS,
    **options: Unpack[EventOptions],
) -> FoldResults:
    """Evaluate each fold of a cross-validation by itself, and test which folds differ from the others.

    Parameters
    ----------
    data : Predictions, ConfidencePredictions, Profile or Sample
        Each row scored by the model of its fold, which was not fitted on it.
    by : str or sequence of str, optional
        The group column that names the folds, or two (repeat and fold); recognised by their names if left out.
    metrics : iterable of str
        Keys; the first one that has a value is tested, beside the MCS.
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
    sample = Sample.of(data, bins=bins, **options)
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
        measured.append(Fold(levels.names[k], int(levels.rows[k]), part.metrics))
    ids, clusters = sample.data.ids, sample.data.clusters
    repeated = ids is not None and Factor.of(ids).crosses(levels.code)
    pooled = evaluate(sample, keys, findings=False, classes=False)
    first = next((key for key in keys if pooled[key].available), keys[0])
    untested, tested = "", tuple[str, ...]()
    try:
        if repeated:
            raise NotAvailable("differences are not tested: the same rows are in several folds.")
        words = ("fold", "differences")
        values, _, p = against_the_others(sample, levels.code, levels.large, first, words=words)
        tested = tuple(values)
        measured = [
            replace(f, adjusted=float(q)) for f, q in zip(measured, p.min(axis=0), strict=True)
        ]
    except NotAvailable as error:
        untested = str(error)
    shared = repeated or (clusters is not None and clusters.crosses(levels.code))
    return FoldResults(
        name=sample.data.name,
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


def random_effects(estimates: FloatArray, variances: FloatArray) -> RandomEffects:
    """Summarise estimates of k sites by a random-effects model, tau^2 by restricted maximum likelihood.

    Parameters
    ----------
    estimates, variances : ndarray, shape (k,)
        Two or more, with the squares of their standard errors.

    Notes
    -----
    With ``w = 1 / (v + tau^2)`` and the mean ``m = sum w y / sum w``, tau^2 maximises ``-(sum log(v + tau^2) + log sum w +
    sum w (y - m)^2) / 2`` (Viechtbauer 2005). The standard error of m is that of Hartung & Knapp 2001, with ``q = sum w (y - m)^2 / (k -
    1)`` not below 1 (Roever et al. 2015) and k - 1 degrees of freedom. Given tau^2, ``Q(tau^2) = sum w (y - m)^2`` is chi-squared with k - 1
    degrees of freedom: where it has its quantiles lies the interval of tau^2 (Viechtbauer 2007), and inverted quantile by quantile it
    gives tau^2 a confidence distribution. A new site is predicted by the mixture of normal distributions with mean m and variance
    ``tau^2 + 1 / sum w`` over it (as Nagashima et al. 2019): ``m ± t sqrt(tau^2 + se^2)`` at the REML estimate covers only 87 % where
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
    lowest = int(np.argmin(loss(grid)))
    near = (grid[max(lowest - 1, 0)], grid[min(lowest + 1, grid.size - 1)])
    best = minimize_scalar(
        lambda t: float(loss(np.array(t))), bounds=near, method="bounded", options={"xatol": 1e-12}
    )
    tau2 = 0.0 if loss(grid[0]) <= best.fun else float(best.x)
    mean, total, q_at = (float(one) for one in fitted(np.array(tau2)))
    upper = 1 - LEVEL / 2
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
    to: Callable[[Any], Any] = np.positive
    back: Callable[[Any], Any] = np.positive


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
class SiteResults(_ByLevel):
    """A validation at several sites.

    Attributes
    ----------
    name, by : str
    sites : tuple of Site
    effects : mapping of str to RandomEffects
        By measure; those with a value at two sites or more.
    left_out : tuple of str
        Sites that are left out, with their reasons.
    """

    name: str
    by: str
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
    def summary(self) -> Summary:
        """Summarise the random effects: a row per measure, with what a new site is expected to show, and each of the first ten sites below it."""
        table = []
        for key, e in self.effects.items():
            of_all = {
                "measure": METRICS[key].label,
                "mean": value_text(key, e.mean),
                "95 % interval": _ends_text(key, e.interval),
                "new site, 95 %": _ends_text(key, e.prediction),
                "tau²": f"{e.tau_squared:.3g}",
                "p": p_number(e.adjusted),
                "sites": str(e.sites),
            }
            table.append(of_all)
            for site in self.sites[:10]:
                value, ends = site.values[key]
                own = f"at {shorten(site.name, 30)}", value_text(key, value), _ends_text(key, ends)
                table.append(dict.fromkeys(of_all, "") | dict(zip(of_all, own, strict=False)))
        note = "A prediction interval for a new site needs three sites."
        if all(e.prediction is not None for e in self.effects.values()):
            note = "Prediction intervals are for a new site, drawn as these were; p: of a difference, adjusted for all measures."
        what = f"{counted(len(self.sites), 'site')} by {shorten(self.by)}"
        return self._summary(what, self.sentence(), table, [note])

    def records(self) -> list[dict[str, Any]]:
        """One mapping per site: rows, hits, values and ends of intervals."""
        return [
            {"site": s.name, "rows": s.rows, "hits": s.hits} | _values(s.values) for s in self.sites
        ]

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


LevelResults = FoldResults | SiteResults


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
@takes_weights
@one_blas_thread()
@shows_options
def sites(
    data: AnyData,
    by: str,
    *,
    min_rows: int = MIN_ROWS,
    min_events: int = MIN_EVENTS,
    **options: Unpack[EventOptions],
) -> SiteResults:
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
    sample = Sample.of(data, **options)
    check_whole("min_rows", min_rows, least=2)
    levels = RowsByLevel.of(sample, (by,), min_rows, min_events)
    cluster = sample.row_draws.cluster
    sums = slice_sums(sample.scored, levels.code, len(levels.names), cluster, sample.weights)
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
        measured.append(Site(levels.names[k], int(levels.rows[k]), int(levels.hits[k]), values))
    effects = {}
    for m in MEASURES:
        pairs = [s.values[m.key] for s in measured]
        ends = np.array([(value, *(interval or (math.nan,) * 2)) for value, interval in pairs])
        with np.errstate(all="ignore"):
            value, low, high = m.to(ends.T)
        error = (high - low) / (2 * z)
        usable = np.isfinite(value) & np.isfinite(error) & (error > 0)
        if usable.sum() > 1:
            effects[m.key] = _back(m, random_effects(value[usable], error[usable] ** 2))
    adjusted = p_values.holm([e.p_value for e in effects.values()])
    return SiteResults(
        name=sample.data.name,
        by=by,
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
