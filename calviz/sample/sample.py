"""`Sample`: rows of one model, the settings under which they are judged, and cached results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from typing import Any, TypeVar, get_args

import numpy as np
import numpy.typing as npt

from calviz.core.arrays import FloatArray
from calviz.core.bins import DEFAULT_BINS, Scheme, bins_used
from calviz.core.clusters_and_weights import with_rows
from calviz.core.errors import InputError, NotAvailable
from calviz.core.events import BinaryEvents
from calviz.core.factor import Factor
from calviz.core.options import check_choice, check_whole
from calviz.core.predictions import Dataset
from calviz.core.reduction import Reduction
from calviz.numerics.effective_number import with_mean_one
from calviz.profiles.profile import Profile, dataset_of
from calviz.results.slices import Where, rows_where, where_words
from calviz.sample.binning import BinSums, bin_events, effective_rows, redrawn, reweighted
from calviz.sample.clusters_and_weights import Drawing
from calviz.sample.error_bars import RESAMPLES, Redrawing, set_drawn_by
from calviz.sample.reduce import reduce
from calviz.sample.row_draws import RowDraws
from calviz.sample.view_caches import held_bytes
from calviz.specs.metric import (
    Metric,
    knows_cells,
    knows_weights,
    reweighted_by,
    reweighting_of,
    takes_weights,
)
from calviz.text.words import bins_words, counted, shorten

T = TypeVar("T")

#: Rows times classes above which resampling every metric takes minutes.
LARGE = 20_000_000
#: Cached values of up to this many bytes are results and stay; larger ones can be dropped and computed again.
SMALL = 1 << 16
_MISSING = object()


@dataclass(frozen=True, eq=False)
class Sample:
    """Rows of one model and the settings under which they are judged (reduction, bins, seed, resamples); immutable, with a cache.

    `evaluate`, `verdict`, the checks, the figures, a report, the command line and the app take a sample. Its
    views and results are cached and shared by all of these; large ones may be dropped and computed again. Samples made by `but` share
    what does not depend on the changed settings.

    Attributes
    ----------
    data : Predictions or ConfidencePredictions
        Exactly the rows that are judged: rows of weight 0 are left out.
    reduction : Reduction
        Which (score, hit) pair is judged; may be given by name, and is the default of the data
        (`Reduction.default`) if left out.
    bins : int
        Number of bins; Sturges' rule determines its own (`bins_used`).
    scheme : {"equal-width", "equal-mass", "sturges"}
        How bins are placed.
    seed : int
        Seed of all resampling, 0 or more.
    resamples : int
        Number of resamples for each interval and each noise floor.
    split : str or None
        The split to which the rows belong; None for all rows.
    where : tuple of (str, str)
        Group columns and the values by which the rows were chosen; empty for all rows.

    Raises
    ------
    OptionError, NotAvailable
        For a value that is not allowed, and for a reduction that the data do not allow.
    """

    data: Dataset
    reduction: Reduction = None  # type: ignore[assignment]  # resolved below; a name will do
    _: KW_ONLY
    bins: int = DEFAULT_BINS
    scheme: Scheme = "equal-width"
    seed: int = 0
    resamples: int = RESAMPLES
    split: str | None = None
    where: Where = ()
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        check_whole("bins", self.bins)
        check_choice("scheme", self.scheme, get_args(Scheme))
        check_whole("seed", self.seed, least=0)
        check_whole("resamples", self.resamples, least=1)
        object.__setattr__(self, "reduction", Reduction.of(self.reduction, self.data))
        self.reduction.check(self.data)
        object.__setattr__(self, "data", self.data.that_count())

    @classmethod
    def of(
        cls,
        data: Dataset | Sample | Profile,
        *,
        split: str | None = None,
        where: Where = (),
        clusters: str | Factor | npt.ArrayLike | None = None,
        weights: npt.ArrayLike | None = None,
        reduction: Reduction | str | None = None,
        bins: int | None = None,
        scheme: Scheme | None = None,
        seed: int | None = None,
        resamples: int | None = None,
    ) -> Sample:
        """Take the rows of a split and a slice; settings that are left out are those of the given sample, or the defaults.

        `clusters` and `weights` are for all rows that are given (`calviz.core.clusters_and_weights.with_rows`): for a sample, for the
        rows that it holds.

        A sample is returned as it is if nothing is to be changed.
        """
        settings = {
            "reduction": reduction,
            "bins": bins,
            "scheme": scheme,
            "seed": seed,
            "resamples": resamples,
        }
        changes: dict[str, Any] = {
            name: value for name, value in settings.items() if value is not None
        }
        if not isinstance(data, Sample):
            data = dataset_of(data)
        if clusters is not None or weights is not None:
            rows = data.data if isinstance(data, Sample) else data
            if isinstance(data, Sample):
                _check_of_sample(rows.n, clusters=clusters, weights=weights)
            named = with_rows(rows, clusters=clusters, weights=weights)
            data = data.with_data(named) if isinstance(data, Sample) else named
        sample = data.but(**changes) if isinstance(data, Sample) else None
        if sample is not None and split is None and not where:
            return sample
        whole = data.data if isinstance(data, Sample) else data
        chosen = whole if split is None else whole.split(split)
        mask = rows_where(chosen, where)
        if mask is not None and not mask.all():
            chosen = chosen.take(np.flatnonzero(mask))
        if sample is None:
            return cls(chosen, split=split, where=where, **changes)
        names: dict[str, Any] = {
            "split": sample.split if split is None else split,
            "where": sample.where + where,
        }
        return replace(sample, data=chosen, cache={}, **names)

    def but(self, **how: Any) -> Sample:
        """The same rows with another reduction, bins, scheme, seed or number of resamples."""
        other = replace(self, **how) if how else self
        return self if other._settings == self._settings else other

    def with_data(self, data: Dataset) -> Sample:
        """Other predictions, such as recalibrated ones, under the same settings."""
        return replace(self, data=data, cache={})

    @property
    def redrawing(self) -> Redrawing:
        """Seed and number of resamples, for `calviz.sample.error_bars.resampled` and for figures."""
        return Redrawing(seed=self.seed, resamples=self.resamples)

    @property
    def _settings(self) -> tuple[Any, ...]:
        return self.reduction, self.bins, self.scheme, self.seed, self.resamples

    # ------------------------------------------------------------ cached results

    @property
    def events(self) -> BinaryEvents:
        """Score and hit per row under the sample's reduction, for what does not take weights; see `scored`."""
        return self.view(_events)

    @property
    def scored(self) -> BinaryEvents:
        """Score and hit per row, for computations that take the weights (`weights`) or do not depend on them."""
        return self.view(_scored)

    @property
    def weights(self) -> FloatArray | None:
        """Weights of the rows, shape (n,), with a mean of 1; None where all are equal.

        For a profile, the number of rows that each entry stands for.
        """
        return self.view(_weights)

    @property
    def row_draws(self) -> RowDraws:
        """How the rows are drawn, for weighted or clustered rows."""
        return self.view(_row_draws)

    @property
    def top_events(self) -> BinaryEvents:
        """Confidence and correctness of the predicted class, whatever the reduction."""
        return self.top_label.events

    @property
    def top_scored(self) -> BinaryEvents:
        """Confidence and correctness of the predicted class, for computations that take the weights."""
        return self.top_label.scored

    @property
    def top_label(self) -> Sample:
        """The same rows under the top label, for what does not depend on the reduction."""
        return self.but(reduction=Reduction())

    def view(self, make: Callable[..., T], **params: Any) -> T:
        """``make(self, **params)``, computed once per reduction, maker and parameters.

        `make` may use the data, the reduction and these parameters, and no other setting of the sample.
        """
        return self._once((self.reduction, *_named(make, params)), make, params, self._drawable)

    def once(self, make: Callable[..., T], **params: Any) -> T:
        """``make(self, **params)``, computed once for this sample with its bins, seed and resamples."""
        return self._once((*self._settings, *_named(make, params)), make, params)

    def _once(
        self,
        key: tuple[Any, ...],
        make: Callable[..., T],
        params: Mapping[str, Any],
        finish: Callable[[Callable[..., T], T], None] = lambda *_: None,
    ) -> T:
        # Several threads may use the same sample; at worst each computes the value.
        value = self.cache.get(key, _MISSING)
        if value is _MISSING:
            self._refuse_weights(make)
            value = make(self, **params)
            finish(make, value)
            self.cache[key] = value
        result: T = value
        return result

    def _drawable(self, make: Callable[..., T], view: T) -> None:
        """Tell a view of weighted or clustered rows how it is to be drawn."""
        if not self.data.alike and hasattr(view, "under_calibration"):
            set_drawn_by(view, Drawing(self, self.row_draws, reweighting_of(make)))

    def _refuse_weights(self, make: Callable[..., Any]) -> None:
        if self.data.cells is not None:
            if not knows_cells(make):
                raise NotAvailable("needs the rows: a profile holds their sums only.")
        elif self.data.weights is not None and not knows_weights(make):
            raise NotAvailable("not available for weighted rows: it does not take weights.")

    def let_go(self) -> None:
        """Drop cached values that hold many bytes, such as sorted scores and resamples; results stay."""
        for key, value in list(self.cache.items()):
            if held_bytes(value) > SMALL:
                self.cache.pop(key, None)

    # ------------------------------------------------------------ descriptions

    @property
    def bins_used(self) -> int:
        """Number of bins, with Sturges' rule applied."""
        return bins_used(self.data.rows, self.bins, self.scheme)

    @property
    def ece_key(self) -> str:
        """Key of the metric that is the ECE over these bins."""
        return "ece_equal_mass" if self.scheme == "equal-mass" else "ece"

    @property
    def is_large(self) -> bool:
        """Whether resampling every metric takes minutes."""
        return self.data.n * max(1, self.data.n_classes) > LARGE

    @property
    def bins_words(self) -> str:
        """Description of the bins: "15 equal-width bins"."""
        return bins_words(self.bins_used, self.scheme)

    @property
    def rows_words(self) -> str:
        """Description of the rows: "1,000 rows · split test · month = 5"."""
        parts = [counted(self.data.rows, "row")]
        if self.split is not None:
            parts.append(f"split {shorten(self.split)}")
        elif self.data.splits is not None:
            parts.append("all splits")
        if self.where:
            parts.append(where_words(self.where))
        return " · ".join(parts)

    @property
    def words(self) -> str:
        """Rows, reduction and bins in one line."""
        return f"{self.rows_words} · {shorten(self.reduction.label, 60)} · {self.bins_words}"


def _named(make: Callable[..., Any], params: Mapping[str, Any]) -> tuple[Any, ...]:
    """The function and all its parameters, including those bound by a `partial`."""
    while isinstance(make, partial):
        params = {**make.keywords, **params}
        make = make.func
    return make, tuple(sorted(params.items()))


def _events(sample: Sample) -> BinaryEvents:
    return sample.scored


@takes_weights
def _scored(sample: Sample) -> BinaryEvents:
    return reduce(sample.data, sample.reduction)


@takes_weights
def _weights(sample: Sample) -> FloatArray | None:
    weights = sample.data.weights
    if weights is None:
        return None
    if not weights.any():
        raise NotAvailable("all of these rows have the weight 0, so that none counts.")
    if sample.data.cells is not None:
        return np.asarray(weights, np.float64)
    return with_mean_one(weights)


@takes_weights
def _row_draws(sample: Sample) -> RowDraws:
    clusters = sample.data.clusters
    codes = None if clusters is None else clusters.codes.astype(np.intp)
    return RowDraws(sample.data.n, codes, sample.weights)


def metric_view(sample: Sample, metric: Metric, **options: Any) -> Any:
    """The view that a metric is a function of, over the sample's bins.

    Metrics of equal-width bins follow the sample's scheme; one whose key names its bins keeps them.

    Parameters
    ----------
    sample : Sample
    metric : Metric
    **options
        Values of its other parameters.
    """
    return sample.view(metric.view, **metric_options(sample, metric, **options))


def metric_options(sample: Sample, metric: Metric, **options: Any) -> dict[str, Any]:
    """The parameters of the view in `metric_view`: the options that the metric has, and its bins."""
    names = {p.name for p in metric.parameters}
    own = {name: value for name, value in options.items() if name in names}
    named = metric.view.keywords.get("scheme") if isinstance(metric.view, partial) else None
    if "bins" in names:
        own["bins"] = sample.bins if named == "equal-mass" else sample.bins_used
    if named == "equal-width":
        own["scheme"] = sample.scheme
    return own


#: Decorator of functions that make sums over bins under the sample's reduction: says how they are recomputed from weights.
binned = reweighted_by(
    lambda sample, view: reweighted(sample.scored, view),
    redrawn=lambda sample, view: redrawn(sample.scored, view),
    weighted=True,
    grouped=True,
)


@binned
def bin_sums(
    sample: Sample, *, bins: int = DEFAULT_BINS, scheme: Scheme = "equal-width"
) -> BinSums:
    """The binned view of a sample (see `bin_events`)."""
    sums = bin_events(sample.scored, bins=bins, scheme=scheme, weights=sample.weights)
    return _with_effective(sample, sums)


def _with_effective(sample: Sample, sums: BinSums) -> BinSums:
    if sample.data.alike:
        return sums
    rows = sample.row_draws
    return replace(
        sums, effective=effective_rows(sample.scored, sums.edges, rows.cluster, rows.weights)
    )


def chosen_bins(sample: Sample) -> BinSums:
    """The binned view over the sample's own bins and scheme."""
    return sample.view(bin_sums, bins=sample.bins_used, scheme=sample.scheme)


@binned
def event_sums(sample: Sample) -> BinSums:
    """Rows, scores and hits under the sample's reduction in one bin."""
    return _with_effective(sample, bin_events(sample.scored, weights=sample.weights).pooled())


@reweighted_by(
    lambda sample, view: reweighted(sample.top_scored, view),
    redrawn=lambda sample, view: redrawn(sample.top_scored, view),
    weighted=True,
    grouped=True,
)
def top_label_sums(sample: Sample) -> BinSums:
    """Rows, confidence and hits of the predicted class in one bin."""
    # The very same view under every reduction, so that it is resampled once.
    return sample.top_label.view(event_sums)


def _check_of_sample(n: int, **columns: Any) -> None:
    """Raise InputError if a column has not one value for each of the n rows of a sample, which may be fewer than those it was made of."""
    for name, column in columns.items():
        if column is None or isinstance(column, str):
            continue
        size = len(column) if isinstance(column, Factor) else np.size(column)
        if size != n:
            raise InputError(
                f"there are {size:,} {name} for {n:,} rows: a sample holds the rows of its split and slice, without those of weight 0",
                remedy="give one value for each row of its `data`, or evaluate the predictions that it was made of",
            )
