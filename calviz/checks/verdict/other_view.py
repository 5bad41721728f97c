"""Two classes can be judged by the positive class or by the top label; one may show an error that the other hides."""

from __future__ import annotations

from dataclasses import dataclass

from calviz.checks.verdict.evidence import MIN_ROWS, Evidence, collect_evidence
from calviz.checks.verdict.joint_tests import tested_views
from calviz.core.reduction import Reduction
from calviz.metrics.binned import ece
from calviz.sample.error_bars import resampled
from calviz.sample.false_alarm_levels import OVERALL
from calviz.sample.sample import Sample, chosen_bins, event_sums
from calviz.text.gaps import share_decimals
from calviz.text.words import counted, percent, points, points_decimals, score_and_hit


def other_view(sample: Sample) -> str | None:
    """Describe what the other reduction of two classes shows, if one of the two is off beyond noise.

    Parameters
    ----------
    sample : Sample

    Returns
    -------
    str or None
        One sentence; None without a second view, or if both show the same or nothing beyond noise.

    Notes
    -----
    With gaps A = sum (p - y) of the rows above 1/2 and B of those below, the positive class is off on average by
    (A + B)/n and the top label by (A - B)/n: what adds up in one cancels in the other. "Beyond noise" is decided by the
    tests of the verdict, which cover both views.
    """
    if sample.reduction.other_of_two(sample.data) is None or sample.data.rows < MIN_ROWS:
        return None
    evidence = sample.once(collect_evidence)
    views = sorted(tested_views(sample), key=lambda s: s.reduction != evidence.reduction)
    this, other = (_summary_of(s, evidence) for s in views)
    if not (this.off or other.off) or this.shown == other.shown:
        return None
    return _sentence(this, other)


@dataclass(frozen=True)
class _ViewSummary:
    """One view: means, ECE, and whether the error is beyond noise."""

    reduction: Reduction
    rows: int
    score: float
    observed: float
    ece: float
    ece_noise: float
    on_average: bool
    in_places: bool

    @property
    def off(self) -> bool:
        return self.on_average or self.in_places

    @property
    def gap(self) -> float:
        return self.score - self.observed

    @property
    def shown(self) -> tuple[str, str]:
        """MCS and ECE as they are written."""
        return points(self.gap), points(self.ece, points_decimals(self.ece))

    @property
    def means(self) -> str:
        score, hit = score_and_hit(self.reduction)
        decimals = share_decimals(self.score, self.observed, 1)
        return f"{score} {percent(self.score, decimals)}, {hit} {percent(self.observed, decimals)}"


def _summary_of(sample: Sample, evidence: Evidence) -> _ViewSummary:
    sums, whole = chosen_bins(sample), sample.view(event_sums)
    calibrated = resampled(sums, "under_calibration", **sample.redrawing)
    errors = ece(calibrated)
    key = sample.reduction.key
    beyond = {t.key for t in evidence.tests if t.reduction == key and t.adjusted <= OVERALL}
    return _ViewSummary(
        reduction=sample.reduction,
        rows=sample.data.rows,
        score=float(whole.score_sum.sum() / whole.n),
        observed=float(whole.hit_sum.sum() / whole.n),
        ece=float(ece(sums)),
        ece_noise=float(errors.mean()),
        on_average="mcs" in beyond,
        in_places=bool(beyond - {"mcs"}),
    )


def _sentence(this: _ViewSummary, other: _ViewSummary) -> str:
    head = f"Seen by the {other.reduction.label}"
    if other.on_average:
        return f"{head}, {_way(other)}: {other.means}."
    decimals = points_decimals(other.ece)
    value, noise = points(other.ece, decimals), points(other.ece_noise, decimals)
    against = f"ECE {value} points where a calibrated model would show {noise}"
    if other.in_places:
        return f"{head}, it is not off on average but in places: {other.means}, {against}."
    why = " Errors above and below a score of 1/2 cancel there." if this.on_average else ""
    return (
        f"{head}, these {counted(this.rows, 'row')} do not show it: {other.means}, {against}.{why}"
    )


def _way(view: _ViewSummary) -> str:
    size = points(abs(view.gap))
    if view.reduction.kind == "top-label":
        word = "overconfident" if view.gap > 0 else "underconfident"
        return f"the predictions are {word} by {size} points"
    return f"the forecasts are {size} points too {'high' if view.gap > 0 else 'low'}"
