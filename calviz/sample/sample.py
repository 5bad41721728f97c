"""`Sample`: the rows that are judged, the settings under which they are judged, and cached results."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from functools import partial
from types import SimpleNamespace
from typing import Any, TypedDict, TypeVar, Unpack, get_args

import numpy as np
import numpy.typing as npt

from calviz.core import blocks, entry_specs, errors, events, predictions
from calviz.core.blocks import BoolArray, Factor, FloatArray, IntArray, for_row_blocks
from calviz.core.entry_specs import Metric, takes_weights
from calviz.core.events import DEFAULT_BINS, BinaryEvents, BinNumber, Reduction, Scheme, bins_used
from calviz.core.profile import Profile
from calviz.core.words import bins_words, condition, shorten
from calviz.sample import binning, draws, error_bars
from calviz.sample.binning import BinSums, bin_events, effective_rows, redrawn_sums, reweighted_sums

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])
#: Columns and their values; all conditions hold in the rows of a slice.
Where = tuple[tuple[str, str], ...]
#: Rows times classes above which resampling every metric takes minutes.
LARGE = 20_000_000
#: With fewer rows there is no statement on calibration: any estimate is mostly noise.
MIN_ROWS = 30
#: Resamples of errors of classes in large samples.
QUICK_RESAMPLES = 200
#: Cached values of up to this many bytes are results and stay; larger ones can be dropped and computed again.
SMALL = 1 << 16
_MISSING = object()


class EventOptions(TypedDict, total=False):
    """Which rows are judged, for which event, and how they are redrawn, as `evaluate` describes; each is None if left out."""

    reduction: Reduction | str | None
    split: str | None
    seed: int | None
    resamples: int | None


class BinOptions(EventOptions, total=False):
    """The same, and the bins."""

    bins: BinNumber | None
    scheme: Scheme | None


class SampleOptions(BinOptions, total=False):
    """The same, and which rows belong together or count more."""

    clusters: str | Factor | npt.ArrayLike | None
    sample_weight: npt.ArrayLike | None


_KINDS = {f"Unpack[{kind.__name__}]": kind for kind in (EventOptions, BinOptions, SampleOptions)}


def shows_options(function: F) -> F:
    """Show the options of a sample, which the function takes as ``**options``, in its signature and its help."""
    own = inspect.signature(function)
    *named, options = own.parameters.values()
    for name, hint in _KINDS.get(options.annotation, SampleOptions).__annotations__.items():
        kind = options.KEYWORD_ONLY
        named.append(inspect.Parameter(name, kind, default=None, annotation=hint.__forward_arg__))
    if options.annotation not in _KINDS:
        named.append(options)
    vars(function)["__signature__"] = own.replace(parameters=named)
    return function


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
    bins : int or "cube_root"
        Number of bins, or ceil(n^(1/3)) of them for n rows, as in scikit-learn 1.10; Sturges' rule determines its own (`bins_used`).
    scheme : {"equal-width", "equal-mass", "sturges"}, optional
        How bins are placed; if left out, as `usual_scheme` says for verdict, findings and diagrams, and at equal width for metrics.
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

    data: predictions.Dataset
    reduction: Reduction = None  # type: ignore[assignment]  # resolved below; a name will do
    _: KW_ONLY
    bins: BinNumber = DEFAULT_BINS
    scheme: Scheme | None = None
    seed: int = 0
    resamples: int = errors.RESAMPLES
    split: str | None = None
    where: Where = ()
    cache: dict[Any, Any] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not (isinstance(self.bins, str) and self.bins == events.CUBE_ROOT):
            errors.check_whole("bins", self.bins)
        errors.check_choice("scheme", self.scheme or "equal-width", get_args(Scheme))
        errors.check_whole("seed", self.seed, least=0)
        errors.check_whole("resamples", self.resamples, least=1)
        object.__setattr__(self, "reduction", Reduction.of(self.reduction, self.data))
        self.reduction.check(self.data)
        object.__setattr__(self, "data", self.data.that_count())

    @classmethod
    @shows_options
    def of(
        cls,
        data: AnyData,
        *,
        where: Where = (),
        clusters: str | Factor | npt.ArrayLike | None = None,
        weights: npt.ArrayLike | None = None,
        **options: Unpack[BinOptions],
    ) -> Sample:
        """Take the rows of a split and a slice; settings that are left out are those of the given sample, or the defaults.

        `clusters` and `weights` are for all rows that are given (`calviz.core.predictions.with_rows`): for a sample, for the
        rows that it holds.

        A sample is returned as it is if nothing is to be changed.
        """
        split = options.pop("split", None)
        changes: dict[str, Any] = {k: v for k, v in options.items() if v is not None}
        given = data if isinstance(data, Sample) else None
        rows = data.data if isinstance(data, Sample) else dataset_of(data)
        if clusters is not None or weights is not None:
            if given is not None:
                _check_of_sample(rows.n, clusters=clusters, weights=weights)
            rows = predictions.with_rows(rows, clusters=clusters, weights=weights)
            given = given and given.with_data(rows)
        given = given and given.but(**changes)
        if given is not None and split is None and not where:
            return given
        chosen = rows if split is None else rows.split(split)
        mask = rows_where(chosen, where)
        if mask is not None and not mask.all():
            chosen = chosen.take(np.flatnonzero(mask))
        if given is None:
            return cls(chosen, split=split, where=where, **changes)
        split = given.split if split is None else split
        return replace(given, data=chosen, cache={}, split=split, where=given.where + where)

    def but(self, **how: Any) -> Sample:
        """The same rows with another reduction, bins, scheme, seed or number of resamples."""
        other = replace(self, **how) if how else self
        return self if other._settings == self._settings else other

    def with_data(self, data: predictions.Dataset) -> Sample:
        """Other predictions, such as recalibrated ones, under the same settings."""
        return replace(self, data=data, cache={})

    def rows_of(self, mask: npt.ArrayLike) -> Sample:
        """The rows that a mask of shape (n,) holds."""
        return self.with_data(self.data.take(np.flatnonzero(mask)))

    def predicted(self, names: Sequence[str]) -> Sample:
        """The rows that are predicted as one of these classes; all without names."""
        return self.rows_of(is_predicted(self.data, names)) if names else self

    @property
    def redrawing(self) -> error_bars.Redrawing:
        """Seed and number of resamples, for `calviz.sample.error_bars.resampled` and for figures."""
        return error_bars.Redrawing(seed=self.seed, resamples=self.resamples)

    @property
    def quick_redrawing(self) -> error_bars.Redrawing:
        """The same with fewer resamples for large samples, for errors of classes, of which 1,000 take many seconds."""
        few = min(QUICK_RESAMPLES, self.resamples)
        return self.redrawing | {"resamples": few} if self.is_large else self.redrawing

    @property
    def _settings(self) -> tuple[Any, ...]:
        return self.reduction, self.bins, self.scheme, self.seed, self.resamples

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
    def row_weights(self) -> FloatArray:
        """The same, shape (n,), all 1 where they are equal (which takes no memory)."""
        weights = self.weights
        return np.broadcast_to(1.0, self.data.n) if weights is None else weights

    @property
    def row_counts(self) -> FloatArray:
        """Rows that each entry stands for whatever its weight, shape (n,): 1, or in a profile as many as its cell has."""
        return self.row_weights if self.data.cells is not None else np.ones(self.data.n)

    @property
    def row_draws(self) -> draws.RowDraws:
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
        return value

    def _drawable(self, make: Callable[..., T], view: T) -> None:
        """Tell a view of weighted or clustered rows how it is to be drawn, unless it was told."""
        if not self.data.alike and hasattr(view, "under_calibration"):
            drawing = draws.Drawing(self, self.row_draws, entry_specs.reweighting_of(make))
            view.__dict__.setdefault(draws.DRAWN_BY, drawing)

    def _refuse_weights(self, make: Callable[..., Any]) -> None:
        if self.data.cells is not None:
            if not entry_specs.knows_weights(make) or entry_specs.is_of_rows(make):
                raise errors.NotAvailable("needs the rows: a profile holds their sums only.")
        elif self.data.weights is not None and not entry_specs.knows_weights(make):
            raise errors.NotAvailable("not available for weighted rows: it does not take weights.")

    def let_go(self) -> None:
        """Drop cached values that hold many bytes, such as sorted scores and resamples; results stay."""
        for key, value in list(self.cache.items()):
            if draws.held_bytes(value) > SMALL:
                self.cache.pop(key, None)
                # Resamples lead back to the view that keeps them: they would stay until the next collection of garbage.
                getattr(value, "__dict__", {}).pop(draws.LATEST, None)

    @property
    def placed(self) -> Scheme:
        """How the bins of verdict, findings and diagrams are placed."""
        return self.scheme or usual_scheme(self)

    @property
    def bins_used(self) -> int:
        """Number of bins, with Sturges' rule or the cube root applied."""
        return bins_used(self.data.rows, self.bins, self.placed)

    @property
    def ece_key(self) -> str:
        """Key of the metric that is the ECE over these bins."""
        return "ece_equal_mass" if self.placed == "equal-mass" else "ece"

    @property
    def is_large(self) -> bool:
        """Whether resampling every metric takes minutes."""
        return self.data.n * max(1, self.data.n_classes) > LARGE

    @property
    def bins_words(self) -> str:
        """Description of the bins: "15 equal-width bins"."""
        return bins_words(self.bins_used, self.placed)

    @property
    def rows_words(self) -> str:
        """Description of the rows: "1,000 rows · split test · month = 5"."""
        parts = [self.data.rows_words]
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


def dataset_of(data: AnyRows) -> predictions.Dataset:
    """Return predictions, with days as clusters if their rows are found to depend on each other, and a profile as its cells (`Profile.predictions`); raises InputError for anything else.

    That is found once for a file: where clusters are named, even as none, or rows were taken from such data, it stays.
    """
    if isinstance(data, Profile):
        return data.predictions()
    predictions.check_dataset(data)
    if data.times is None or data.clusters is not None or data.clusters_known:
        return data
    by_days: predictions.Dataset | None = vars(data).get("_by_days")
    if by_days is None:
        if (days := _dependent_days(data)) is None:
            vars(data)["clusters_known"] = True
            return data
        names = {"clusters": f"day of {data.time_name}"}
        by_days = vars(data)["_by_days"] = predictions.with_rows(data, clusters=days, names=names)
    return by_days if by_days.name == data.name else by_days.renamed(data.name)


def _check_of_sample(n: int, **columns: Any) -> None:
    """Raise InputError if a column has not one value for each of the n rows of a sample, which may be fewer than those it was made of."""
    for name, column in columns.items():
        if column is None or isinstance(column, str):
            continue
        size = len(column) if isinstance(column, Factor) else np.size(column)
        if size != n:
            raise errors.InputError(
                f"there are {size:,} {name} for {n:,} rows: a sample holds the rows of its split and slice, without those of weight 0",
                remedy="give one value for each row of its `data`, or evaluate the predictions that it was made of",
            )


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
        raise errors.NotAvailable("all of these rows have the weight 0, so that none counts.")
    if sample.data.cells is not None:
        return np.asarray(weights, np.float64)
    return blocks.with_mean_one(weights)


@takes_weights
def _row_draws(sample: Sample) -> draws.RowDraws:
    clusters = sample.data.clusters
    codes = None if clusters is None else clusters.codes.astype(np.intp)
    return draws.RowDraws(sample.data.n, codes, sample.weights)


def full_predictions(sample: Sample) -> predictions.Predictions:
    """The sample's probabilities and labels; raises NotAvailable for confidence-only data."""
    data = sample.data
    if not isinstance(data, predictions.Predictions):
        raise errors.NotAvailable(events.CONFIDENCE_ONLY)
    return data


def rows_where(data: predictions.Dataset, where: Where) -> BoolArray | None:
    """Mask of the rows of a slice, shape (n,); None, for all rows, without conditions.

    Raises
    ------
    OptionError
        On an unknown column.
    InputError
        On an unknown value.
    """
    mask: BoolArray | None = None
    data = predictions.cut_at_score(data, where)
    for column, value in where:
        factor = data.groups.get(column)
        if factor is None or value not in factor.levels:
            # A slice of an interval, or of the values that are not the most frequent ones.
            try:
                sliced = data.sliced(column)
            except KeyError:
                groups = ", ".join(data.groups) or "none"
                raise errors.OptionError(
                    f"there is no group column '{column}'; known: {groups}."
                ) from None
            factor = sliced if factor is None or value in sliced.levels else factor
        cut = data.cuts.get(column)
        side = cut.sides.get(value) if cut is not None and value not in factor.levels else None
        codes = [i for i, level in enumerate(factor.levels) if level in (side or ())]
        own = None if side or value in factor.levels else data.within(column, value)
        if own is None:
            own = factor.mask(value) if side is None else np.isin(factor.codes, codes)
        mask = own if mask is None else np.logical_and(mask, own)
    return mask


def on_days(data: predictions.Dataset, days: tuple[str, str], where: Where) -> Where:
    """Return the conditions of the rows of a slice since the first of two days, and before the second; each may be ""."""
    others = (each for each in where if each[0] != data.time_name)
    since, until = (
        day and str(np.datetime64(day, "s") - np.timedelta64(1, "s")).replace("T", " ")
        for day in days
    )
    one_side = f"> {since}" if since else f"≤ {until}"
    return (*others, (data.time_name, f"({since}, {until}]" if since and until else one_side))


def rows_outside(data: predictions.Dataset, wheres: Iterable[Where]) -> BoolArray:
    """Mask of the rows of none of some slices, shape (n,)."""
    inside = [np.asarray(rows_where(data, where)) for where in wheres]
    return np.asarray(~np.any([np.zeros(data.n, bool), *inside], axis=0))


def where_words(where: Where, limit: int = 40) -> str:
    """Return the condition in words, with each name shortened to `limit` characters.

    >>> where_words((("league", "Serie A"), ("month", "5")))
    'league = Serie A, month = 5'
    """
    return ", ".join(condition(c, v, limit) for c, v in where)


# ---- Views of a metric


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
    asked: Scheme = sample.scheme or "equal-width"
    if "bins" in names:
        scheme = "equal-mass" if named == "equal-mass" else asked
        own["bins"] = bins_used(sample.data.rows, sample.bins, scheme)
    if named == "equal-width":
        own["scheme"] = asked
    return own


#: Decorator of functions that make sums over bins under the sample's reduction: says how they are recomputed from weights.
binned = entry_specs.reweighted_by(
    lambda sample, view: reweighted_sums(sample.scored, view),
    redrawn=lambda sample, view: redrawn_sums(sample.scored, view),
)


@binned
def bin_sums(
    sample: Sample, *, bins: int = DEFAULT_BINS, scheme: Scheme = "equal-width"
) -> BinSums:
    """The binned view of a sample (see `bin_events`)."""
    sums = bin_events(sample.scored, bins=bins, scheme=scheme, weights=sample.weights)
    return _with_effective(sample, sums)


def chosen_bins(sample: Sample) -> BinSums:
    """The binned view over the sample's own bins and scheme."""
    return sample.view(bin_sums, bins=sample.bins_used, scheme=sample.placed)


def usual_scheme(sample: Sample) -> Scheme:
    """Equal mass for rare events, where the first bin of equal width holds most rows, and few events are expected above 1/2."""
    sums = sample.view(bin_sums)
    share, expected = sums.weight, sums.score_sum
    if share[0] > 0.5 and expected[share.size // 2 :].sum() < 0.1 * expected.sum():
        # Tied scores may not divide.
        apart = sample.view(bin_sums, scheme="equal-mass").count
        return "equal-mass" if (apart > 0).sum() > (share > 0).sum() else "equal-width"
    return "equal-width"


@binned
def event_sums(sample: Sample) -> BinSums:
    """Rows, scores and hits under the sample's reduction in one bin."""
    return _with_effective(sample, bin_events(sample.scored, weights=sample.weights).pooled())


def rate_if_rare(sample: Sample, limit: float = 0.1) -> float | None:
    """Share of hits of a class that has less than `limit` of the rows, or that all but so many have; None of others and of the top label."""
    if sample.reduction.kind not in ("positive", "class"):
        return None
    sums = sample.view(event_sums)
    rate = float(sums.hit_sum.sum() / sums.n)
    return rate if 0 < min(rate, 1 - rate) < limit else None


def event_rate_if_rare(sample: Sample, limit: float = 0.1) -> float | None:
    """`rate_if_rare` of the second of two classes, whatever the reduction; None of other data."""
    two = sample.data.kind != "confidence" and sample.data.n_classes == 2
    return rate_if_rare(sample.but(reduction="positive"), limit) if two else None


@entry_specs.reweighted_by(
    lambda sample, view: reweighted_sums(sample.top_scored, view),
    redrawn=lambda sample, view: redrawn_sums(sample.top_scored, view),
)
def top_label_sums(sample: Sample) -> BinSums:
    """Rows, confidence and hits of the predicted class in one bin."""
    # The very same view under every reduction, so that it is resampled once.
    return sample.top_label.view(event_sums)


def _with_effective(sample: Sample, sums: BinSums) -> BinSums:
    if sample.data.alike:
        return sums
    rows = sample.row_draws
    return replace(
        sums, effective=effective_rows(sample.scored, sums.edges, rows.cluster, rows.weights)
    )


# ---- Reductions

#: Up to this many classes a block is transposed, so that NumPy's inner loops are long.
TRANSPOSED_CLASSES = 16


def reduce(data: predictions.Dataset, reduction: Reduction) -> BinaryEvents:
    """Score and hit of every row (shape (n,) each) under a reduction.

    Among equal probabilities the class with the lowest index ranks first, as in ``argmax``.

    Raises
    ------
    NotAvailable
        For confidence-only data and any reduction other than the top label.
    OptionError
        If the reduction names a class or rank that the data do not have.
    """
    reduction.check(data)
    return _of_rows(data, reduction) if data.cells is None else _of_cells(data, reduction)


def _of_rows(data: predictions.Dataset, reduction: Reduction) -> BinaryEvents:
    if not isinstance(data, predictions.Predictions):
        return BinaryEvents(data.confidence, data.correct)
    if reduction.kind == "top-label":
        return _top_events(data)
    if reduction.kind in ("class", "positive"):
        return _one_class(data, reduction.class_index(data))
    return _ranked(data, reduction.r, within=reduction.kind == "within-top-r")


def _of_cells(data: predictions.Dataset, reduction: Reduction) -> BinaryEvents:
    """Score and hit of the cells of a profile; with two classes, other reductions use the limits of the positive class."""
    chosen = _of_rows(data, reduction)
    cells = data.cells
    assert cells is not None
    low, high = cells.low, cells.high
    if isinstance(data, predictions.Predictions) and reduction.kind != "positive":
        turned = chosen.score != data.probs[:, 1]
        low, high = np.where(turned, 1 - high, low), np.where(turned, 1 - low, high)
    assert data.weights is not None
    return events.CellEvents(chosen.score, chosen.hit, low, high, cells.edge_type, data.weights)


def _one_class(data: predictions.Predictions, k: int) -> BinaryEvents:
    column = data.probs[:, k]
    strided = not column.flags.c_contiguous
    score = np.empty(data.n, dtype=column.dtype) if strided else column
    hit = np.empty(data.n, dtype=np.bool_)

    def work(rows: slice) -> None:
        if strided:
            score[rows] = column[rows]
        np.equal(data.labels[rows], k, out=hit[rows])

    for_row_blocks(data.probs if strided else data.labels, work)
    return BinaryEvents(score, hit)


def predicted_classes(data: predictions.Dataset) -> IntArray:
    """The predicted class of each row, shape (n,); raises NotAvailable if the data do not say."""
    if data.predicted is None:
        raise errors.NotAvailable("not available: these data do not name the predicted classes.")
    return data.predicted


def is_predicted(data: predictions.Dataset, names: Sequence[str]) -> BoolArray:
    """Whether each row is predicted as one of these classes, shape (n,); raises OptionError for an unknown class."""
    predicted = predicted_classes(data)
    at = [Reduction("class", class_name=name).class_index(data) for name in names]
    return np.isin(predicted, at)


def predicted_words(data: predictions.Dataset, names: Sequence[str]) -> str:
    """The classes that predictions are chosen by: "'spam', 'hate' or 'violence'", "any class but 'ok'", "one of 40 classes"."""
    if not names:
        return ""
    *first, last = (f"'{shorten(name, 30)}'" for name in names)
    if len(first) < 3:
        return f"{', '.join(first)} or {last}" if first else last
    left = [name for name in data.class_names if name not in names]
    return (
        f"any class but '{shorten(left[0], 30)}'"
        if len(left) == 1
        else f"one of {len(names)} classes"
    )


def with_predicted(data: predictions.Dataset) -> predictions.Dataset:
    """Return the data with the predicted classes as a group column, unless a column has its name."""
    if errors.PREDICTED in data.groups:
        return data
    predicted_classes(data)
    return predictions.with_group(
        data, errors.PREDICTED, data.sliced(errors.PREDICTED).take(np.arange(data.n))
    )


def _top_events(data: predictions.Predictions) -> BinaryEvents:
    """Score and hit of the top label, without keeping a column of predicted classes."""
    hit = np.empty(data.n, dtype=np.bool_)
    score = np.empty(data.n, dtype=data.probs.dtype)
    few = data.n_classes <= TRANSPOSED_CLASSES
    find = _top_of_few if few else _top_of_many

    def work(rows: slice) -> None:
        np.equal(find(data.probs[rows], score[rows]), data.labels[rows], out=hit[rows])

    # argmax needs no extra memory, so that large blocks only save calls.
    for_row_blocks(data.probs, work, block_bytes=1 << 20 if few else 1 << 22)
    return BinaryEvents(score, hit)


def _top_of_many(block: FloatArray, score: FloatArray) -> IntArray:
    """Like `_top_of_few`, by ``argmax``, without the copy that NumPy makes of a read-only array.

    The copy is unnecessary, as argmax does not write, and takes as long as five passes over an array of 200 MB.
    """
    described = {**block.__array_interface__, "data": (block.ctypes.data, False)}
    unlocked: Any = SimpleNamespace(__array_interface__=described)
    best = np.asarray(unlocked).argmax(axis=1)
    score[:] = block[np.arange(best.size), best]
    return best


def _top_of_few(block: FloatArray, score: FloatArray) -> IntArray:
    by_class = np.ascontiguousarray(block.T)
    best = np.zeros(score.shape, dtype=np.uint8)
    score[:] = by_class[0]
    for k in range(1, by_class.shape[0]):
        # Strictly greater: a tie stays with the lower class. As k grows, the maximum is the latest k that was larger.
        larger = (by_class[k] > score).view(np.uint8)
        larger *= np.uint8(k)
        np.maximum(best, larger, out=best)
        np.maximum(score, by_class[k], out=score)
    return best


def _ranked(data: predictions.Predictions, r: int, *, within: bool) -> BinaryEvents:
    """The r-th largest probability, or the sum of the r largest, and whether the label has this rank or one of these.

    Removing the largest again and again takes a tenth of the time of a sort for a few ranks, and no more for all.
    """
    score = np.empty(data.n, dtype=data.probs.dtype)
    hit = np.zeros(data.n, dtype=np.bool_)

    def work(rows: slice) -> None:
        rest, labels = np.array(data.probs[rows], order="C"), data.labels[rows]
        starts = np.arange(0, rest.size, rest.shape[1])
        top = np.empty((r, labels.size), dtype=rest.dtype)
        for rank in range(r):
            best = rest.argmax(axis=1)
            place = best + starts
            top[rank] = rest.ravel()[place]
            rest.ravel()[place] = -1  # below every probability
            if within or rank == r - 1:
                hit[rows] |= best == labels
        # Rounding must not carry a sum of probabilities beyond 1.
        score[rows] = np.minimum(top.sum(axis=0, dtype=np.float64), 1.0) if within else top[-1]

    for_row_blocks(data.probs, work)
    return BinaryEvents(score, hit)


# ---- Whether rows depend on each other

#: Fewest levels of a column, or days, that are tested as clusters.
FEWEST_LEVELS = 20


def _dependent_days(data: predictions.Dataset) -> Factor | None:
    """The day of each row, if rows of one day are found to depend on each other.

    Each day is compared with the next of the same weekday, or the next one where days are far apart: what changes slowly, or with the
    weekday, cancels. So the pair is a cluster, in which the residuals of the second day change their sign.
    """
    days, day = np.unique(np.asarray(data.times).astype("datetime64[D]"), return_inverse=True)
    if data.cells is not None or not FEWEST_LEVELS <= len(days) < data.n:
        return None
    weekday = days.astype(np.int64) % 7 * ((days[-1] - days[0]).astype(int) < 7 * len(days))
    order = np.argsort(weekday, kind="stable")
    place = np.argsort(order) - np.searchsorted(weekday[order], weekday)
    pair = place // 2 * 7 + weekday
    counts = data.weights is None or data.weights != 0
    sign = counts * np.where(np.bincount(pair)[pair] > 1, 1 - place % 2 * 2, 0)[day]
    residual, rate = binning.residuals(reduce(data, Reduction.default(data)))
    residual, rate = residual * sign, rate * np.abs(sign)
    # A few days that are off alone are no dependence: one pair in twenty, those furthest apart, tell nothing.
    spread = np.bincount(pair[day], rate * (1 - rate)) + 1e-300
    apart = np.bincount(pair[day], residual) ** 2 / spread
    used = ~np.isin(pair[day], np.argsort(-apart)[: 1 + len(days) // 40])
    found = binning.dependence(residual[used], rate[used], pair[day][used])
    return Factor(day, tuple(map(str, days))) if found.is_found(len(data.groups)) else None


def alike_by(sample: Sample, cluster: IntArray) -> float:
    """By how much the residuals of rows of the same cluster, shape (n,), correlate: at least 0."""
    return max(binning.dependence(*binning.residuals(sample.scored), cluster).icc, 0.0)


#: Rows, one by one or summed, and what can be judged.
AnyRows = predictions.Dataset | Profile
AnyData = AnyRows | Sample
