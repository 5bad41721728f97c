"""Two classes can be judged on the positive class or on the top label; what the one hides the other may show."""

from __future__ import annotations

from dataclasses import dataclass

from calviz.checks._evidence import MIN_ROWS, Evidence, evidence
from calviz.checks._joint import looks
from calviz.checks._levels import OVERALL
from calviz.core.reduction import Reduction
from calviz.core.words import counted, percent, points, score_and_hit
from calviz.metrics.binned import ece
from calviz.numerics.binning import Scheme
from calviz.numerics.error_bars import stream
from calviz.numerics.sample import Sample, bin_sums, event_sums


def other_view(
    sample: Sample,
    *,
    bins: int = 15,
    scheme: Scheme = "equal-width",
    seed: int = 0,
    resamples: int = 1_000,
) -> str | None:
    """Say what the view of two classes shows that the verdict does not speak of, where one of the two is off beyond noise.

    Parameters
    ----------
    sample : Sample
    bins, scheme
        The bins of the ECE.
    seed, resamples : int
        Of the redrawn labels.

    Returns
    -------
    str or None
        One sentence; None without a second view, and where both show the same or nothing beyond noise.

    Notes
    -----
    With gaps A = sum (p - y) of the rows above 1/2 and B of those below, the positive class is off on average by
    (A + B)/n and the top label by (A - B)/n: what adds in one cancels in the other. What is beyond noise is what the
    tests of the verdict say, which know both views.
    """
    if sample.reduction.other_of_two(sample.data) is None or sample.data.n < MIN_ROWS:
        return None
    seen = sample.view(evidence, bins=bins, scheme=scheme, seed=seed, resamples=resamples)
    spoken = sorted(looks(sample), key=lambda s: s.reduction != seen.reduction)
    this, other = (_look(s, seen, bins, scheme, seed, resamples) for s in spoken)
    if not (this.off or other.off) or this.shown == other.shown:
        return None
    return _sentence(this, other)


@dataclass(frozen=True)
class _Look:
    """One view: means, ECE, and whether a calibrated model would rarely show as much."""

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
        """What a reader sees of it, to a tenth of a point."""
        return points(self.gap), points(self.ece)

    @property
    def means(self) -> str:
        score, hit = score_and_hit(self.reduction)
        return f"{score} {percent(self.score)}, {hit} {percent(self.observed)}"


def _look(
    sample: Sample, seen: Evidence, bins: int, scheme: Scheme, seed: int, resamples: int
) -> _Look:
    sums, whole = sample.view(bin_sums, bins=bins, scheme=scheme), sample.view(event_sums)
    errors = ece(sums.under_calibration(stream(seed, "under_calibration"), resamples))
    key = sample.reduction.key
    beyond = {t.key for t in seen.tests if t.reduction == key and t.adjusted <= OVERALL}
    return _Look(
        reduction=sample.reduction,
        rows=sample.data.n,
        score=float(whole.score_sum.sum() / whole.n),
        observed=float(whole.hit_sum.sum() / whole.n),
        ece=float(ece(sums)),
        ece_noise=float(errors.mean()),
        on_average="mcs" in beyond,
        in_places=bool(beyond - {"mcs"}),
    )


def _sentence(this: _Look, other: _Look) -> str:
    head = f"Seen by the {other.reduction.label}"
    if other.on_average:
        return f"{head}, {_way(other)}: {other.means}."
    against = f"ECE {points(other.ece)} points where a calibrated model would show {points(other.ece_noise)}"
    if other.in_places:
        return f"{head}, it is not off on average but in places: {other.means}, {against}."
    why = " Errors above and below a score of 1/2 cancel there." if this.on_average else ""
    return (
        f"{head}, these {counted(this.rows, 'row')} do not show it: {other.means}, {against}.{why}"
    )


def _way(look: _Look) -> str:
    size = points(abs(look.gap))
    if look.reduction.kind == "top-label":
        word = "overconfident" if look.gap > 0 else "underconfident"
        return f"the predictions are {word} by {size} points"
    return f"the forecasts are {size} points too {'high' if look.gap > 0 else 'low'}"
