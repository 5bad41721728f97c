"""Metrics of samples in which each row has a weight: what paired resamples are made of.

Rows are drawn once for all methods, and every method's metrics are asked for the same draws. A metric is a function of a
view, so it is enough to make the view anew from weights. The gaps between scores and hits in it can be scaled, which gives
a world of which the true error is known (`calviz.numerics.inversion`). Not available are metrics whose bins depend on the resample
(ECE sweep), whose value takes pairs of rows or a sort per class or resample (SKCE, class-wise KS, accuracy at a coverage, Hosmer-Lemeshow, ICI), and
logistic fits; class-wise errors of very many probabilities (`MOST`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.comparison import badness
from calviz.core.errors import NotAvailable
from calviz.core.events import BinaryEvents
from calviz.core.metric import METRICS, Metric
from calviz.metrics.smooth import KernelSteps, kernel_steps
from calviz.numerics.binning import BinSums, assign
from calviz.numerics.draws import redrawn_labels
from calviz.numerics.inversion import ALONE, MORE_SCALES, SCALES
from calviz.numerics.losses import (
    MeanLoss,
    full_predictions,
    negative_log_likelihood,
    squared_error,
)
from calviz.numerics.one_vs_rest import ClassErrors, classwise_equal_width, classwise_thresholded
from calviz.numerics.sample import Sample, bin_sums, event_sums, top_label_sums
from calviz.numerics.steps import Steps, steps, top_label_steps
from calviz.numerics.true_classes import TrueClassErrors, true_class_errors

#: Weights, shape (n, b), to a function of the scale of the gaps that gives the view, with a leading axis of b;
#: without a scale it is the view of rows that are drawn so often.
Reweighted = Callable[[FloatArray], Callable[[float | None], Any]]
#: A family whose metrics are fits, one per resample.
FITS = "Tests and summaries"
#: Up to this many probabilities are gone through once per resample; class-wise errors of more are left out.
MOST = 20_000_000
#: Cells of classes, bins and resamples that are filled at a time: 32 MiB.
CELLS = 1 << 22


def is_inverted(metric: Metric) -> bool:
    """Whether differences of a metric are made by inversion: the size of gaps, which noise makes larger.

    Of a signed metric that is its size, which says what is better; its signed differences are not.
    """
    return metric.interval != "percentile" or metric.direction == "zero"


@dataclass(eq=False)
class _Shared:
    """A view that several metrics are functions of."""

    reweighted: Reweighted
    metrics: list[Metric]
    #: The largest scale of each inverted metric; known after the first resamples.
    most: dict[str, float] | None = None

    def values(self, view: Any, metrics: list[Metric]) -> dict[str, FloatArray]:
        """Each metric, shape (b,)."""
        parts = list(view.parts()) if hasattr(view, "parts") else [view]
        return {m.key: np.concatenate([np.asarray(m.value(p)) for p in parts]) for m in metrics}


class Weighted:
    """The metrics of one set of probabilities as functions of how often each row counts.

    Parameters
    ----------
    sample : Sample
    metrics : iterable of str
        Keys; those that cannot be had are left out.
    **options
        Parameters of the metrics (``bins=15``), passed on to those that have them.
    """

    def __init__(self, sample: Sample, metrics: Iterable[str], **options: Any) -> None:
        self._n = sample.data.n
        self._shared: list[_Shared] = []
        known: dict[int, list[Metric]] = {}
        for metric in map(METRICS.__getitem__, metrics):
            maker = _plain(metric.view)
            if maker not in MAKERS or metric.family == FITS or badness(metric.direction) is None:
                continue
            if MAKERS[maker] is _of_classes and sample.data.n * sample.data.n_classes > MOST:
                continue
            own = {p.name: options[p.name] for p in metric.parameters if p.name in options}
            try:
                view = sample.view(metric.view, **own)
            except NotAvailable:
                continue
            if id(view) not in known:
                known[id(view)] = []
                self._shared.append(_Shared(MAKERS[maker](sample, view), known[id(view)]))
            known[id(view)].append(metric)

    @property
    def metrics(self) -> tuple[str, ...]:
        """Keys of the metrics that there are."""
        return tuple(m.key for shared in self._shared for m in shared.metrics)

    def values(
        self, weights: FloatArray, wanted: Callable[[Metric], bool] = lambda _: True
    ) -> dict[str, FloatArray]:
        """Every wanted metric where row i counts ``weights[i]`` times, shape (n, b) to (b,)."""
        out: dict[str, FloatArray] = {}
        for shared in self._shared:
            metrics = [m for m in shared.metrics if wanted(m)]
            if metrics:
                out |= shared.values(shared.reweighted(weights)(None), metrics)
        return out

    def scaled(self, weights: FloatArray) -> dict[str, FloatArray]:
        """How bad every inverted metric is in worlds whose gaps are scaled, shape (n, b) to (S, b).

        The deviations are those of the weights; the scales begin at 0 and are the same in all calls.
        """
        out: dict[str, FloatArray] = {}
        for shared in self._shared:
            metrics = [m for m in shared.metrics if is_inverted(m)]
            if metrics:
                table = self._worlds(shared, metrics, shared.reweighted(weights))
                out |= {key: np.stack(rows) for key, rows in table.items()}
        return out

    def truths(self) -> dict[str, FloatArray]:
        """What the inverted metrics are in those worlds without any noise, shape (S,); after `scaled`."""
        once = np.ones((self._n, 1))
        return {key: drawn[:, 0] for key, drawn in self.scaled(once).items()}

    def _worlds(
        self, shared: _Shared, metrics: list[Metric], view_at: Callable[[float | None], Any]
    ) -> dict[str, list[FloatArray]]:
        table: dict[str, list[FloatArray]] = {m.key: [] for m in metrics}

        def add(scale: float, some: list[Metric]) -> None:
            for key, values in shared.values(view_at(scale), some).items():
                table[key].append(_worse(METRICS[key], values))

        for scale in SCALES:
            add(scale, metrics)
        if shared.most is None:
            # Few gaps that happen to be small may be much larger in truth.
            itself = shared.values(shared.reweighted(np.ones((self._n, 1)))(None), metrics)
            seen = {key: float(_worse(METRICS[key], v)[0]) for key, v in itself.items()}
            shared.most = dict.fromkeys(table, SCALES[-1])
            for scale in MORE_SCALES:
                metrics = [m for m in metrics if _possible(table[m.key][-1], seen[m.key])]
                if metrics:
                    add(scale, metrics)
                    shared.most |= {m.key: scale for m in metrics}
            return table
        for scale in MORE_SCALES:
            some = [m for m in metrics if scale <= shared.most[m.key]]
            if some:
                add(scale, some)
        return table


def _worse(metric: Metric, values: FloatArray) -> FloatArray:
    worse: Any = badness(metric.direction)
    return np.asarray(worse(values))


def _possible(drawn: FloatArray, seen: float) -> bool:
    """Whether a world whose draws these are may have shown an error as small as the one seen."""
    return bool(drawn.mean() - (ALONE + 1) * drawn.std() <= seen) and seen > 0


def _plain(maker: Callable[..., Any]) -> Callable[..., Any]:
    while isinstance(maker, partial):
        maker = maker.func
    return maker


def _losses(_: Sample, view: MeanLoss) -> Reweighted:
    losses = view.losses.astype(np.float64)

    def reweighted(weights: FloatArray) -> Callable[[float | None], MeanLoss]:
        mean = MeanLoss(losses @ weights / losses.size, view.of_rows)
        return lambda _: mean

    return reweighted


def _binned(events: BinaryEvents, view: BinSums) -> Reweighted:
    bins = view.edges.size - 1
    bin_of = assign(events.score, view.edges) if bins > 1 else np.zeros(events.n, dtype=np.intp)
    cell = 2 * bin_of + events.hit
    at = np.arange(events.n)
    values = np.concatenate([np.ones(events.n), events.score.astype(np.float64)])
    where = np.concatenate([cell, 2 * bins + cell]), np.concatenate([at, at])
    table = csr_array((values, where), shape=(4 * bins, events.n))
    gap = view.score_sum - view.hit_sum

    def reweighted(weights: FloatArray) -> Callable[[float | None], BinSums]:
        sums = np.moveaxis(np.asarray(table @ weights), -1, 0).reshape(-1, 2, bins, 2)
        cells = np.concatenate([sums, np.zeros_like(sums[:, :1])], axis=1)

        def at_scale(scale: float | None) -> BinSums:
            if scale is None:
                return BinSums(view.edges, cells, view.params)
            # Rows and scores stay: a gap is divided by the rows of its bin, and noise in these is no error.
            hits = view.score_sum - (sums[:, 1].sum(axis=-1) - sums[:, 0, :, 1]) - (scale - 1) * gap
            moved = np.zeros_like(cells)
            moved[:, 0, :, 1] = hits
            moved[:, 0, :, 0] = view.count - hits
            moved[:, 1, :, 0] = view.score_sum
            return BinSums(view.edges, moved, view.params)

        return at_scale

    return reweighted


def _stepped(
    events: BinaryEvents, view: Steps
) -> Callable[[FloatArray], Callable[[float | None], Steps]]:
    base = view.merged()
    # The groups are runs of the ordered rows, ties together.
    group: IntArray = np.empty(events.n, dtype=np.intp)
    group[np.argsort(events.score, kind="stable")] = np.repeat(
        np.arange(base.size), base.count.astype(np.intp)
    )
    right = np.flatnonzero(events.hit)
    where = np.concatenate([group, base.size + group[right]]), np.append(np.arange(events.n), right)
    table = csr_array((np.ones(where[0].size), where), shape=(2 * base.size, events.n))
    rows, gap = base.score_sum, base.score_sum - base.hits

    def reweighted(weights: FloatArray) -> Callable[[float | None], Steps]:
        count, hits = np.asarray(table @ weights).reshape(2, base.size, -1)
        count, hits = np.ascontiguousarray(count.T), np.ascontiguousarray(hits.T)
        gaps: list[FloatArray] = []

        def at_scale(scale: float | None) -> Steps:
            if scale is None:
                return Steps(base.score, count, hits, base.merged_square, base.params)
            if not gaps:
                gaps.append(count * base.score - hits)
            moved = (rows - (scale - 1) * gap) - gaps[0]
            still = np.broadcast_to(base.count, moved.shape)
            return Steps(base.score, still, moved, base.merged_square, base.params)

        return at_scale

    return reweighted


def _own_steps(sample: Sample) -> Callable[[FloatArray], Callable[[float | None], Steps]]:
    """The steps of the sample's own reduction; the last resamples are kept for the next family of metrics."""
    stepped = _stepped(sample.events, sample.view(steps))
    last: list[tuple[FloatArray, Callable[[float | None], Steps]]] = []

    def reweighted(weights: FloatArray) -> Callable[[float | None], Steps]:
        if not last or last[0][0] is not weights:
            last[:] = [(weights, stepped(weights))]
        return last[0][1]

    return reweighted


def _smoothed(sample: Sample, view: KernelSteps) -> Reweighted:
    stepped = sample.view(_own_steps)

    def reweighted(weights: FloatArray) -> Callable[[float | None], KernelSteps]:
        at_scale = stepped(weights)
        return lambda scale: view.over(at_scale(scale), signed=scale is not None)

    return reweighted


def _of_classes(sample: Sample, view: ClassErrors) -> Reweighted:
    columns = view.columns
    dtype = columns.data.probs.dtype  # so that the probabilities are not copied
    itself = columns.scores - next(columns.hits(columns.data.labels[None]))

    def reweighted(weights: FloatArray) -> Callable[[float | None], ClassErrors]:
        # Most cells hold few rows and rarely a hit: rows that are drawn again do not know the hits that might
        # have been, so labels are redrawn instead. Weights of one are the sample without noise.
        without_noise = bool((weights == 1).all())
        parts = _in_parts(weights.shape[1], itself.size)
        kept: list[FloatArray] = []

        def deviations(rows: slice) -> FloatArray:
            if without_noise:
                return np.zeros((weights[:, rows].shape[1], *itself.shape))
            if kept:
                return kept[0]
            labels = sample.view(_class_labels)(weights)[rows]
            drawn = np.asarray(columns.scores - np.stack(list(columns.hits(labels))))
            if len(parts) == 1:
                kept.append(drawn)
            return drawn

        def at_scale(scale: float | None) -> ClassErrors:
            if scale is None:
                return replace(view, errors=columns.weighted_errors(weights.astype(dtype)))
            gaps = [np.abs(scale * itself + deviations(rows)).sum(axis=-1) for rows in parts]
            return replace(view, errors=np.concatenate(gaps) / np.maximum(columns.count, 1))

        return at_scale

    return reweighted


def _class_labels(sample: Sample) -> Callable[[FloatArray], IntArray]:
    """Labels drawn from the rows' probabilities, (b, n), from random numbers that the weights stand for.

    All sets have the same weights, and so the same numbers: their labels agree as far as their probabilities do.
    """
    last: list[tuple[FloatArray, IntArray]] = []

    def labels(weights: FloatArray) -> IntArray:
        if not last or last[0][0] is not weights:
            data = full_predictions(sample)
            rng = np.random.default_rng([int(w) for w in weights[:16, 0]])
            last[:] = [(weights, redrawn_labels(data.probs, rng, weights.shape[1]))]
        return last[0][1]

    return labels


def _of_true_classes(_: Sample, view: TrueClassErrors) -> Reweighted:
    source = view.source
    cells = source.n_classes * source.bins
    base = source.weighted_gaps(np.ones((source.score.size, 1)))[0]

    def reweighted(weights: FloatArray) -> Callable[[float | None], TrueClassErrors]:
        parts = [weights[:, rows] for rows in _in_parts(weights.shape[1], cells)]
        kept = source.weighted_gaps(weights) if len(parts) == 1 else None

        def at_scale(scale: float | None) -> TrueClassErrors:
            columns = []
            for part in parts:
                gaps, rows = kept or source.weighted_gaps(part)
                moved = gaps if scale is None else gaps + (scale - 1) * base
                columns.append(source.errors_of(moved, rows))
            rows, ece, mcs = (np.concatenate(c) for c in zip(*columns, strict=True))
            return replace(view, rows=rows, ece=ece, mcs=mcs)

        return at_scale

    return reweighted


def _in_parts(resamples: int, cells: int) -> list[slice]:
    """Resamples at a time, so that what is filled for them stays within `CELLS`."""
    step = max(1, CELLS // cells)
    return [slice(start, start + step) for start in range(0, resamples, step)]


#: How a view is made again, by its maker.
MAKERS: Mapping[Callable[..., Any], Callable[[Sample, Any], Reweighted]] = {
    negative_log_likelihood: _losses,
    squared_error: _losses,
    bin_sums: lambda sample, view: _binned(sample.events, view),
    event_sums: lambda sample, view: _binned(sample.events, view),
    top_label_sums: lambda sample, view: _binned(sample.top_events, view),
    steps: lambda sample, _: sample.view(_own_steps),
    top_label_steps: lambda sample, view: _stepped(sample.top_events, view),
    kernel_steps: _smoothed,
    classwise_equal_width: _of_classes,
    classwise_thresholded: _of_classes,
    true_class_errors: _of_true_classes,
}
