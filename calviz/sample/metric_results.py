"""How the metrics of a sample are measured; metrics of one view share its resamples.

Paired differences compute the metrics of resampled rows themselves, in `calviz.comparison.difference_intervals`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from calviz.core import entry_specs, row_columns
from calviz.core.blocks import FloatArray, checkpoint, map_threads, one_blas_thread
from calviz.core.entry_specs import METRICS, Draw, Interval, IntervalMethod, Metric, MetricResult
from calviz.core.errors import NotAvailable, check_level, visible
from calviz.sample import cell_bounds, draws, error_bars
from calviz.sample.sample import Sample, event_sums, metric_options
from calviz.sample.steps import Steps

#: Method of the intervals: the metric's own, or one for all metrics.
IntervalChoice = Literal["own", "percentile", "basic"]
#: Error bars by kind, as fields of a `MetricResult`; a kind without fields cannot be drawn, and a missing one has not been drawn.
BarKind = Literal["interval", "noise_floor"]
ErrorBars = dict[BarKind, dict[str, Any]]


class MetricRequest(NamedTuple):
    """A metric of a sample: its key, and the parameters of its view by name."""

    key: str
    params: tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Resampling:
    """Which error bars are wanted, and how rows are resampled for them."""

    intervals: bool
    noise_floors: bool
    level: float
    interval: IntervalChoice
    resamples: int
    seed: int

    def __post_init__(self) -> None:
        check_level(self.level)

    @property
    def wanted(self) -> set[BarKind]:
        """Kinds of error bars."""
        kinds: dict[BarKind, bool] = {"interval": self.intervals, "noise_floor": self.noise_floors}
        return {kind for kind, is_wanted in kinds.items() if is_wanted}

    def method(self, metric: Metric) -> IntervalMethod:
        """Method of the interval of a metric."""
        return metric.interval if self.interval == "own" else self.interval

    def draw(self, view: Any, metrics: Sequence[Metric], draw: Draw) -> dict[str, FloatArray]:
        """Values of the metrics over shared resamples of the view, shape (resamples,) each; empty if it has no resamples."""

        def value(m: Metric, part: Any) -> FloatArray:
            checkpoint()
            return np.asarray(m.value(part), dtype=np.float64)

        try:
            checkpoint()
            with one_blas_thread():
                drawn = error_bars.resampled(view, draw, seed=self.seed, resamples=self.resamples)
                parts = list(drawn.parts()) if hasattr(drawn, "parts") else [drawn]

                def measured(number: int) -> list[FloatArray]:
                    # A part, with all that it caches, is freed once all metrics have been computed on it.
                    part, parts[number] = parts[number], None
                    return [value(m, part) for m in metrics]

                values = list(map_threads(measured, range(len(parts)), threaded=len(parts) > 1))
        except NotAvailable:
            return {}
        return {m.key: np.concatenate([row[i] for row in values]) for i, m in enumerate(metrics)}


# ---- Values


def measured(sample: Sample, key: str) -> MetricResult:
    """The metric `key` of a sample, with its default parameters."""
    return sample.view(value_of, request=request_of(sample, METRICS[key], {}))


def request_of(sample: Sample, metric: Metric, options: Mapping[str, Any]) -> MetricRequest:
    """The metric's key with the parameters of its view, from the sample's bins and `options`."""
    params = metric_options(sample, metric, **options)
    return MetricRequest(metric.key, tuple(sorted(params.items())))


#: What is measured of all classes also where one of them is looked at, under names that do not say so.
_OF_ALL = ("accuracy", "error", "nll", "brier")


@entry_specs.takes_weights
def value_of(sample: Sample, *, request: MetricRequest) -> MetricResult:
    """Compute a metric without error bars."""
    m = METRICS[request.key]
    try:
        view = sample.view(m.view, **dict(request.params))
        value = float(m.value(view))
    except NotAvailable as error:
        return MetricResult(m.key, math.nan, params=dict(request.params), reason=str(error))
    is_defined = math.isfinite(value)
    of_profile = is_defined and sample.data.cells is not None
    bound = cell_bounds.bound_of(sample, m, view) if of_profile else None
    of_one = sample.reduction.kind == "class" and sample.data.n_classes > 2
    of_all = "Of all classes, not of this one against the rest." * (of_one and m.key in _OF_ALL)
    note = m.note(view) if m.note and is_defined else None
    return MetricResult(
        m.key,
        value if is_defined else math.nan,
        params=dict(view.params),
        details=_details(sample, m, view, value),
        reason=None if is_defined else m.undefined,
        note=" ".join(filter(None, (of_all, note))) or None,
        exact=bound == 0 if of_profile else None,
        bound=bound,
    )


#: Details in closed form that hold only for independent rows.
_OF_INDEPENDENT_ROWS = ("sigma", "p_value", "if_calibrated")


def _details(sample: Sample, metric: Metric, view: Any, value: float) -> dict[str, Any]:
    details: dict[str, Any] = dict(metric.details(view)) if metric.details else {}
    if metric.key == "brier_binary" and sample.data.n_classes == 2:
        details["class_sum"] = 2 * value
    if sample.scheme is None and view.params.get("scheme") == "equal-width" != sample.placed:
        # Of rare events, the diagram has other bins: the name says so (`name_of`).
        details["placed"] = "equal width"
    if sample.data.clusters is None:
        return details
    return {name: value for name, value in details.items() if name not in _OF_INDEPENDENT_ROWS}


# ---- Values with error bars

#: From this many rows on, a view is dropped after its error bars if it alone holds more than this many bytes.
MANY_ROWS, KEPT_VIEW_BYTES = 1 << 17, 1 << 22


@one_blas_thread()
def measured_with_error_bars(
    sample: Sample, metrics: Sequence[Metric], options: Mapping[str, Any], resampling: Resampling
) -> dict[str, MetricResult]:
    """Results of the metrics by key; error bars that the sample has cached are not drawn again."""
    requests = {m.key: request_of(sample, m, options) for m in metrics}
    values = {}
    # Metrics that need much memory for single rows come first, and those that leave the steps of all rows in it last.
    for m in sorted(
        metrics, key=lambda m: (entry_specs.is_of_steps(m.view), not entry_specs.is_of_rows(m.view))
    ):
        checkpoint(f"measuring: {m.label}")
        values[m.key] = sample.view(value_of, request=requests[m.key])
    values = {m.key: values[m.key] for m in metrics}
    if not resampling.intervals and not resampling.noise_floors:
        return values
    # Kept for whatever is wanted: an interval is the same with or without a noise floor beside it.
    kept = replace(resampling, intervals=True, noise_floors=True)
    places = {k: (sample.reduction, r, kept) for k, r in requests.items()}
    bars: dict[str, ErrorBars] = {key: sample.cache.get(place, {}) for key, place in places.items()}
    # Metrics of one view share its resamples.
    sharing: dict[int, tuple[Any, list[Metric]]] = {}  # by identity; the views stay alive in it
    for m in metrics:
        if values[m.key].available and not bars[m.key].keys() >= resampling.wanted:
            view = sample.view(m.view, **dict(requests[m.key].params))
            sharing.setdefault(id(view), (view, []))[1].append(m)
    # Views of the same steps share their draws, which come last so that they are not held beside those of single rows.
    families = sorted(
        sharing.values(),
        key=lambda family: isinstance(getattr(family[0], "steps", family[0]), Steps),
    )
    del sharing
    while families:
        view, family = families.pop(0)
        for m, drawn in _error_bars(sample, view, family, values, bars, resampling):
            bars[m.key] = sample.cache[places[m.key]] = bars[m.key] | drawn
        if sample.data.n >= MANY_ROWS:
            _let_go_of(sample, view, [other for other, _ in families])
    wanted = {
        key: {name: bar for kind in resampling.wanted for name, bar in drawn.get(kind, {}).items()}
        for key, drawn in bars.items()
    }
    results = {k: _with_interval_note(replace(v, **wanted[k]), sample) for k, v in values.items()}
    for key, result in results.items():
        interval = result.interval
        if (least := METRICS[key].at_least) and interval and resampling.interval == "own":
            other = measured_with_error_bars(sample, [METRICS[least]], {}, resampling)[least]
            high = max(interval.high, largest_mean_gap(sample, other.interval, resampling.level))
            results[key] = replace(result, interval=interval._replace(high=high))
    if sample.data.alike:
        return results
    return {
        key: _with_note(result, sample, resampling, drawn="interval" in wanted[key])
        for key, result in results.items()
    }


def largest_mean_gap(sample: Sample, interval: Interval | None, level: float) -> float:
    """Upper bound of |mean score - share of hits|, from its interval.

    If (nearly) all rows are hits, or none, resampling is unreliable: an exact interval for the share of hits then bounds it.
    """
    ends = [0.0] if interval is None else [abs(end) for end in interval]
    whole = sample.view(event_sums)
    if interval is None or whole.is_of_few:
        score = float(whole.score_sum.sum()) / float(whole.n)
        ends += [abs(score - float(share[0])) for share in whole.share_interval(level)]
    return max(ends)


def _with_interval_note(result: MetricResult, sample: Sample) -> MetricResult:
    about = METRICS[result.key].interval_note
    note = None if about is None or result.interval is None else about(sample)
    if note is None:
        return result
    return replace(result, note=" ".join(filter(None, (result.note, note))))


def _let_go_of(sample: Sample, view: Any, needed: Sequence[Any]) -> None:
    """Drop a view from the cache if it holds much that neither the rest of the cache nor the `needed` views hold."""
    keys = [key for key, value in list(sample.cache.items()) if value is view]
    others = [value for key, value in list(sample.cache.items()) if key not in keys]
    if draws.held_bytes(view, beside=[others, needed]) > KEPT_VIEW_BYTES:
        for key in keys:
            sample.cache.pop(key, None)


def _with_note(
    result: MetricResult, sample: Sample, resampling: Resampling, *, drawn: bool
) -> MetricResult:
    """Note how error bars of weighted or clustered rows are meant, or why there are none; `drawn`: whether rows were resampled."""
    if not result.available:
        return result
    missing = [
        name
        for name, wanted, result_part in (
            ("interval", resampling.intervals and not drawn, result.interval),
            ("noise floor", resampling.noise_floors, result.noise_floor),
        )
        if wanted and result_part is None
    ]
    notes = [] if result.note is None else [result.note]
    resampled = "by clusters" if sample.data.clusters is not None else "with weights"
    if drawn and resampling.intervals and result.interval is None:
        notes.append("no interval: nearly all resamples have the same value.")
    if missing:
        notes.append(f"no {' and no '.join(missing)}: it cannot be resampled {resampled}.")
    elif resampling.noise_floors and sample.data.clusters is not None:
        notes.append(
            "noise floor: for a calibrated model whose rows depend on each other within clusters as these do."
        )
    return replace(result, note=" ".join(notes) or None)


def _error_bars(
    sample: Sample,
    view: Any,
    metrics: Sequence[Metric],
    results: Mapping[str, MetricResult],
    bars: Mapping[str, ErrorBars],
    resampling: Resampling,
) -> Iterator[tuple[Metric, ErrorBars]]:
    """Yield the wanted error bars that `bars` lacks, and all noise floors if the labels are redrawn in any case."""
    intervals = [m for m in metrics if "interval" in resampling.wanted - bars[m.key].keys()]
    floors = [m for m in metrics if "noise_floor" in resampling.wanted - bars[m.key].keys()]
    # One row resamples to itself, so it has no interval.
    resampled = intervals if sample.data.rows > 1 else []
    needed = [m for m in resampled if error_bars.needs_calibrated(resampling.method(m))]
    drawn = resampling.draw(view, resampled, "bootstrap") if resampled else {}
    under = [m for m in metrics if m in needed or "noise_floor" not in bars[m.key]]
    if not needed and not floors:
        under = []
    calibrated = resampling.draw(view, under, "under_calibration") if under else {}
    # Few wrong rows of sure scores do not show how much their clusters vary: p-values are then also those of independent rows.
    both = [m for m in under if m.tail != "upper" and isinstance(view, Steps)]
    clustered = bool(both) and error_bars.is_clustered(view)
    independent = resampling.draw(view, both, "independent") if clustered else {}
    coarse = view.as_drawn() if calibrated and hasattr(view, "as_drawn") else None
    for m in metrics:
        value, redrawn = results[m.key].value, calibrated.get(m.key)
        result: ErrorBars = {}
        if m in intervals:
            result["interval"] = {}
        if m.key in drawn:
            method = error_bars.usable(error_bars.suited(resampling.method(m), view), redrawn)
            interval = error_bars.interval(
                drawn[m.key],
                resampling.level,
                view=view,
                value=value,
                method=method,
                calibrated=redrawn,
                bounds=m.bounds,
            )
            closed = m.closed_form(view, sample.data) if resampling.interval == "own" else None
            if closed is not None:
                ends = closed(resampling.level)
                interval, method = (None if ends is None else Interval(*ends)), "closed"
            result["interval"] = {
                "interval": interval,
                "interval_method": method if interval else None,
            }
        if m in under:
            result["noise_floor"] = {}
        if redrawn is not None:
            # Compare like with like: the value at the resolution of the redrawn ones.
            same = value if coarse is None else float(m.value(coarse)[0])
            floor = error_bars.noise_floor(redrawn, same, m.tail)
            if floor is not None and m.key in independent:
                other = error_bars.noise_floor(independent[m.key], same, m.tail)
                least = floor.p_value if other is None else max(floor.p_value, other.p_value)
                floor = replace(floor, p_value=least)
            if floor and hasattr(view, "hit_sum") and m.tail == "two-sided":
                score = view.score_sum  # on average so many hits: what is linear in hits is exact
                cells = np.array([[view.count - score, score], [0 * score, score]]).swapaxes(1, 2)
                floor = replace(floor, mean=float(m.value(replace(view, cells=cells))))
            result["noise_floor"] = {"noise_floor": floor}
        yield m, result


# ---- Display of results


@dataclass(frozen=True)
class Summary:
    """Short text form of a result.

    Attributes
    ----------
    title : str
        What the result is of, in one line.
    verdict : str
        The conclusion, in one sentence.
    lines, notes : tuple of str
        Text above and below the table.
    header : tuple of str
    rows : tuple of tuple of str
    """

    title: str
    verdict: str = ""
    lines: tuple[str, ...] = ()
    header: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    notes: tuple[str, ...] = ()


class Displayed:
    """Mixin that displays a result by its `summary`."""

    def summary(self) -> Summary:
        """Summarise the result."""
        raise NotImplementedError

    def __repr__(self) -> str:
        s = self.summary()
        verdict = f". {s.verdict}" if s.verdict else ""
        return f"<{type(self).__name__} {visible(s.title + verdict)}>"

    @property
    def _kind(self) -> str:
        return re.sub("(?<=[a-z])(?=[A-Z])", " ", type(self).__name__).capitalize()

    def __str__(self) -> str:
        s = self.summary()
        parts = [
            f"{self._kind} {s.title}",
            s.verdict,
            *s.lines,
            *_aligned([s.header, *s.rows] if s.rows else []),
            *s.notes,
        ]
        return "\n".join(visible(part) for part in parts if part)

    def _repr_html_(self) -> str:
        s = self.summary()
        return row_columns.html_block(
            f"{self._kind} {s.title}", (s.verdict, *s.lines), s.header, s.rows, s.notes
        )


def _aligned(table: Sequence[Sequence[str]]) -> list[str]:
    """Format rows of cells as lines, with the first column left-aligned and the others right-aligned."""
    widths = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
    return [
        "  "
        + "  ".join(
            cell.ljust(width) if j == 0 else cell.rjust(width)
            for j, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]
