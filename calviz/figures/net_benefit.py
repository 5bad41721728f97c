"""Decision curve analysis: net benefit against the cutoff, and the loss of acting on miscalibrated scores."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, Unpack, get_args

import numpy as np
from scipy.special import ndtr

from calviz.core import curve_fits, entry_specs, p_values
from calviz.core.blocks import BoolArray, FloatArray, checkpoint, quotient
from calviz.core.errors import check_choice, check_level, claim
from calviz.core.words import SINGLE_ROW, decimal, level_text, percent, plotly_text
from calviz.figures import marks
from calviz.figures.decision_cost import kept_and_wrong, resampled_between
from calviz.figures.figure import Data, ResampledFigure, ScoreFigure, end_columns
from calviz.figures.marks import DASHES, Drawing, Page, Picture, Sheet, Trace, area, drawn, line
from calviz.sample import cutoff_and_grades, error_bars, step_views
from calviz.sample.error_bars import FEWEST_CLUSTERS, LEVEL, drawn_by, resampled, widened
from calviz.sample.sample import EventOptions, Sample, shows_options
from calviz.sample.steps import Steps

#: Quantity drawn: net benefit, net benefit divided by the share of hits, or actions avoided per 100 rows compared with acting on everybody.
Shown = Literal["net-benefit", "standardised", "avoided"]
#: Cutoffs of the curve, as shares of its axis.
CUTOFFS = np.arange(1, 100) / 100


@entry_specs.figure(
    key="net-benefit",
    label="Net benefit",
    summary="Decision curve analysis: net benefit of acting on scores above a cutoff, beside acting on everybody and on nobody, "
    "for every cutoff between 0 and 1.",
    reference="Vickers & Elkin 2006; Kerr et al. 2016",
)
@dataclass(frozen=True, eq=False, kw_only=True)
class NetBenefit(ScoreFigure):
    """Net benefit against the cutoff, computed; `plot` draws it.

    Attributes
    ----------
    name, split, reduction, n, level
        See `ScoreFigure`.
    share : float
        Share of hits.
    cutoff : ndarray, shape (T,)
    values : mapping of str to ndarray, shape (T,)
        "net-benefit"; "standardised": net benefit divided by the share of hits; "avoided": true negatives per 100 rows minus
        missed hits, weighted by the exchange rate of the cutoff.
    everybody : mapping of str to ndarray, shape (T,)
        The same quantities when acting on everybody.
    bands : mapping of str to (ndarray, ndarray), shape (T,) each
        Pointwise percentile bootstrap intervals; empty if not requested.
    useful : ndarray of bool, shape (T,)
        Whether it is shown that deciding by the scores has a higher net benefit than acting on everybody and on nobody
        (`clearly_useful`).
    few_clusters : bool
        Whether there are too few clusters to show it.

    References
    ----------
    Vickers & Elkin 2006 (net benefit); Kerr et al. 2016 (standardised).
    """

    share: float
    cutoff: FloatArray
    values: Mapping[Shown, FloatArray]
    everybody: Mapping[Shown, FloatArray]
    bands: Mapping[Shown, tuple[FloatArray, FloatArray]]
    useful: BoolArray
    few_clusters: bool = False

    @classmethod
    @shows_options
    def compute(
        cls, data: Data, *, level: float = 0.95, band: bool = True, **options: Unpack[EventOptions]
    ) -> Self:
        """Compute net benefits from the hits and misses above every cutoff.

        Parameters
        ----------
        data : Predictions, ConfidencePredictions or Sample
            If a sample is given, arguments left out below take its settings.
        reduction : Reduction or str, optional
            The (score, hit) pair to decide by.
        level : float
            Level of the bands, between 0 and 1.
        band : bool
            Whether to compute the bootstrap bands.
        seed, resamples : int
            Seed and number of the bootstrap resamples.
        split : str, optional
            Only the rows of this split.

        Raises
        ------
        OptionError, InputError, NotAvailable
            Under the same conditions as in `calviz.evaluate`.
        """
        check_level(level)
        sample = Sample.of(data, **options)
        view = sample.view(step_views.steps)
        # Round the cutoffs to the precision of the scores, so that a single-precision score of 0.3 reaches 0.3.
        most = view.score[[np.searchsorted(np.cumsum(view.count), 0.999 * view.n)]]
        cutoffs = CUTOFFS * marks.end_of(most)
        at = cutoffs.astype(sample.scored.score.dtype).astype(np.float64)
        quantities = _all(view, at)
        bands: dict[Shown, tuple[FloatArray, FloatArray]] = {}
        useful = np.zeros(at.size, dtype=np.bool_)
        redraws = resampled_between(view, at, sample.redrawing) if view.n > 1 else None
        if redraws is not None:
            useful = clearly_useful(view, redraws, at)
        if band and redraws is not None:
            redrawn = _all(redraws, at)
            tails = [(1 - level) / 2, (1 + level) / 2]
            for shown, values in redrawn.items():
                if np.isfinite(quantities[shown]).all():
                    low, high = np.nanquantile(values, tails, axis=0)
                    bands[shown] = widened(low, high, level, view, centre=quantities[shown])
        share = float(view.n_hits / view.n)
        whole = cutoff_and_grades.net_benefit_of(share, 1 - share, 1, cutoffs)
        return cls(
            **cls._fields(sample, level=level),
            share=share,
            cutoff=cutoffs,
            values=quantities,
            everybody={
                "net-benefit": whole,
                "standardised": whole / share if share else np.full(whole.shape, np.nan),
                "avoided": np.zeros(whole.shape),
            },
            bands=bands,
            useful=useful,
            few_clusters=has_few_clusters(view),
        )

    @property
    def _end(self) -> float:
        """Where the axis of the cutoffs ends: at 1, or a little beyond 99.9 % of the scores if that is at most 0.4."""
        return float(self.cutoff[-1] / CUTOFFS[-1])

    def columns(self) -> Mapping[str, Any]:
        """One row per cutoff."""
        out: dict[str, Any] = {"cutoff": self.cutoff}
        for shown in get_args(Shown):
            name = shown.replace("-", "_")
            ends = end_columns(name, self.bands.get(shown), self.cutoff)
            out |= {name: self.values[shown], **ends}
        return out | {"act_on_all": self.everybody["net-benefit"], "useful": self.useful}

    def caption(self) -> tuple[str, ...]:
        """Name; rows and score; where the scores are useful: one line each."""
        return *self._head(), self.reading()

    @claim("useful-range")
    def reading(self) -> str:
        """Say at which cutoffs it is shown that deciding by the scores is better than acting on everybody or on nobody."""
        useful = self.useful
        if not useful.any():
            why = f": that takes {FEWEST_CLUSTERS} clusters" if self.few_clusters else ""
            return (
                "At no cutoff is it shown that deciding by the scores is better than acting on everybody or on nobody"
                f"{why}."
            )
        at = np.flatnonzero(useful)
        low, high = self.cutoff[at[0]], self.cutoff[at[-1]]
        digits = 2 if self._end == 1 else 4
        where = f"between {decimal(float(low), digits)} and {decimal(float(high), digits)}"
        if at[-1] - at[0] + 1 > at.size:
            where = f"at {at.size} of {useful.size} cutoffs {where}"
        return f"Deciding by the scores is better than acting on everybody or on nobody {where}."

    def describe(self) -> str:
        """Say in plain words what the curve shows."""
        text = (
            f"Net benefit against the cutoff, {self._subject}, {percent(self.share)} of them positive. "
            f"{self.reading()}"
        )
        if "net-benefit" in self.bands:
            text += f" The band is a {level_text(self.level)} bootstrap range."
        return text

    def plot(
        self,
        *,
        shown: Shown = "net-benefit",
        at: float | None = None,
        others: Sequence[NetBenefit] = (),
        **page: Unpack[Page],
    ) -> Drawing:
        """Draw the figure.

        Parameters
        ----------
        shown : {"net-benefit", "standardised", "avoided"}
        at : float, optional
            A cutoff to mark.
        others : sequence of NetBenefit
            Further curves (after recalibration, or of another state), drawn without bands.
        **page
            See `Figure.plot`.
        """
        check_choice("shown", shown, get_args(Shown))
        sheet = self.sheet(**page)
        low, high = _up(self, shown, others)
        marked = (
            [] if at is None else [marks.label_above(f"cutoff {at:.3g}", sheet.palette, at, at)]
        )
        picture = sheet.picture(
            _traces(self, sheet, shown, at, others, (low, high)),
            inner=sheet.panel_height,
            margins=_MARGINS,
            above=20,
            annotations=marked,
            xaxis=sheet.axis("Cutoff: act from this score on", range=[0, self._end], nticks=11),
            yaxis=sheet.axis(_TITLES[shown], range=[low, high], nticks=7),
        )
        return drawn(picture)


@claim(
    "useful-range",
    says="Deciding by the scores is better than acting on everybody or on nobody between the cutoffs a and b.",
    chosen="the cutoffs, of 99",
    adjusted="exact binomial tests against both, at the level of a step-down max-T over all cutoffs",
)
def clearly_useful(view: Steps, redraws: Steps, cutoff: FloatArray) -> BoolArray:
    """At which cutoffs deciding by the scores is better than acting on everybody and on nobody, shape (T,), with 5 % for any false one.

    Acting on everybody is worse if fewer than t of the rows below the cutoff t are hits; acting on nobody is worse if more than t of
    those above it are: two binomial tests, of which both have to reject. The level of each is that of a normal variable at the
    quantile of the largest standardised deviation of the resamples, over both differences of net benefit at all cutoffs. A
    bootstrapped standard error in place of the exact test is too small where a few rows on one side are all hits or all misses.

    Parameters
    ----------
    view, redraws : Steps
        The sample, and its resamples.
    cutoff : ndarray, shape (T,)
        Ascending.

    References
    ----------
    Romano & Wolf 2005, Exact and approximate stepdown methods for multiple hypothesis testing; Tarone 1990 (a test that cannot reject,
    given its number of rows, does not count).
    """
    level = 1 - LEVEL
    (rows, wrong, gain), (_, _, drawn) = (_against_defaults(v, cutoff) for v in (view, redraws))
    deviation = drawn - gain[:, None]
    spread = deviation.std(axis=1, keepdims=True)
    effect = _design_effect(view, rows, wrong, gain, spread[:, 0], cutoff)
    limit = np.stack([cutoff, 1 - cutoff])
    p = p_values.at_most(wrong / effect, rows / effect, limit).max(axis=0)
    left = p_values.at_most(0.0, rows / effect, limit).max(axis=0) <= level
    scaled = np.divide(deviation, spread, out=np.zeros_like(deviation), where=spread > 0)
    largest = scaled.max(axis=0)
    useful = np.zeros(cutoff.size, dtype=np.bool_)
    while left.any():
        more = left & (p <= ndtr(-np.quantile(largest[:, left].max(axis=1), LEVEL)))
        if not more.any():
            break
        useful |= more
        left &= ~more
    return useful


def has_few_clusters(view: Steps) -> bool:
    """Whether the rows of a view are in clusters too few to know how much these vary."""
    return error_bars.is_clustered(view) and drawn_by(view).rows.clusters < FEWEST_CLUSTERS


def _against_defaults(view: Steps, cutoff: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Rows that are decided otherwise than by a default, those of them that are decided wrongly, and the gain in net benefit.

    Each has shape (2, ..., T): against acting on everybody, which concerns the rows below the cutoff and errs in their misses, and
    against acting on nobody.
    """
    above, fp = kept_and_wrong(view, cutoff)
    n, hits = view.n[..., None], view.n_hits[..., None]
    rows, wrong = np.stack([n - above, above]), np.stack([hits - (above - fp), fp])
    odds = cutoff / (1 - cutoff)
    gain = np.stack([odds * (rows[0] - wrong[0]) - wrong[0], rows[1] - wrong[1] - odds * wrong[1]])
    return rows, wrong, gain / n


def _design_effect(
    view: Steps,
    rows: FloatArray,
    wrong: FloatArray,
    gain: FloatArray,
    spread: FloatArray,
    cutoff: FloatArray,
) -> FloatArray | float:
    """Rows with weights or in clusters per independent row of equal weight, shape (2, T): their variance over that of independent rows.

    The variance estimated from few clusters is imprecise (`widening_of`). Where all rows are decided rightly, or all wrongly, they do
    not show how much clusters vary, and each cluster counts as one row at most.
    """
    drawing = drawn_by(view)
    if drawing is None:
        return 1.0
    draws, n = drawing.rows, float(view.n)
    if has_few_clusters(view):
        return math.inf
    odds = cutoff / (1 - cutoff)
    won, lost = np.stack([odds, np.ones_like(odds)]), np.stack([np.ones_like(odds), odds])
    alone = ((rows - wrong) * won**2 + wrong * lost**2) / n - gain**2
    effect = quotient(
        n * spread**2 * error_bars.widening_of(draws.groups) ** 2, alone, otherwise=1.0
    )
    unanimous = (wrong <= 0) | (wrong >= rows)
    return np.maximum(np.where(unanimous, np.maximum(effect, n / draws.clusters), effect), 1.0)


def _all(view: Steps, cutoff: FloatArray) -> dict[Shown, FloatArray]:
    """Return all drawable quantities at the cutoffs, shape (..., T) each."""
    above, fp = kept_and_wrong(view, cutoff)
    tp = above - fp
    n, hits = view.n[..., None], view.n_hits[..., None]
    net = cutoff_and_grades.net_benefit_of(tp, fp, n, cutoff)
    share = np.full(net.shape, np.nan)
    np.divide(net, hits / n, out=share, where=hits > 0)
    missed, spared = hits - tp, n - hits - fp
    avoided = 100 * (spared - missed * (1 - cutoff) / cutoff) / n
    return {"net-benefit": net, "standardised": share, "avoided": avoided}


#: Margins of the panel in pixels.
_MARGINS = (70, 28, 26, 54)
_TITLES: dict[Shown, str] = {
    "net-benefit": "Net benefit",
    "standardised": "Net benefit / share of positives",
    "avoided": "Actions avoided per 100 rows",
}


def _traces(
    f: NetBenefit,
    sheet: Sheet,
    shown: Shown,
    at: float | None,
    others: Sequence[NetBenefit],
    up: tuple[float, float],
) -> Iterator[Trace]:
    """Yield the traces from back to front."""
    p = sheet.palette

    def curve(one: NetBenefit, colour: str, name: str, **attributes: Any) -> Trace:
        hover = f"cutoff %{{x:.2~g}}: %{{y:.3~f}}<extra>{name}</extra>"
        return line(one.cutoff, one.values[shown], colour, name=name, hover=hover, **attributes)

    if shown in f.bands:
        low, high = (np.clip(end, *up) for end in f.bands[shown])
        yield marks.bootstrap_band(f.cutoff, (low, high), f.level, p)
    thin: Trace = {"width": 1.5, "name": "Act on everybody", "legendrank": 30}
    yield line(f.cutoff, f.everybody[shown], p.muted, dash="dash", **thin)
    if shown != "avoided":
        thin |= {"name": "Act on nobody", "legendrank": 31}
        yield line(np.array([0.0, 1.0]), np.zeros(2), p.ink, dash="2px,3px", **thin)
    if at is not None:
        yield marks.vertical_mark(at, *up, p.ink)
    # Acting on nobody is dotted.
    colours, dashes = (p.vermillion, p.green), (DASHES[1], DASHES[3])
    for i, other in enumerate(others):
        name = plotly_text(other.name, 44)
        yield curve(other, colours[i % 2], name, dash=dashes[i % 2], legendrank=2 + i)
    name = plotly_text(f.name, 30) if others else "Act by the scores"
    yield curve(f, p.blue, name, width=2.5, legendrank=1)


def _up(f: NetBenefit, shown: Shown, others: Sequence[NetBenefit]) -> tuple[float, float]:
    """Range of the vertical axis; values far below 0 are cut off, as their size does not matter."""
    every = [one.values[shown] for one in (f, *others)]
    tops = [*every, f.everybody[shown], *f.bands.get(shown, ())[1:]]
    high = max([float(np.nanmax(v)) for v in tops if np.isfinite(v).any()], default=1.0)
    high = max(high, 1.0 if shown == "avoided" else min(0.02, f.share or 0.02))
    lowest = min([float(np.nanmin(v)) for v in every if np.isfinite(v).any()], default=0.0)
    return max(min(lowest, 0.0) - 0.03 * high, -0.25 * high), 1.06 * high


# ---- Decision loss


#: Cutoffs, in steps of 1 / 200.
LOSS_CUTOFFS = np.linspace(0, 1, 201)
#: Height and margins of the panel, in pixels.
_LOSS_INNER, _LOSS_MARGINS = 300, (64, 14, 12, 54)


@entry_specs.figure(
    key="decision-loss",
    label="Decision loss",
    summary="What acting on the scores costs compared with acting on the probabilities they stand for, at every cutoff, in percent of the "
    "stake: the most that a decision can gain or lose.",
    reference="Hu & Wu 2024 (calibration decision loss)",
)
@dataclass(frozen=True, eq=False, kw_only=True)
class DecisionLoss(ResampledFigure):
    """The decision loss as a function of the cutoff, computed; `plot` draws it.

    A user who acts where the probability is above a cutoff mu gains ``(hit - mu) / max(mu, 1 - mu)`` by acting: at most 1
    (the stake) in either direction. If score p and probability q of a row lie on different sides of mu, the decision is wrong
    and costs ``|q - mu| / max(mu, 1 - mu)`` on average. The probability q is the isotonic estimate, so noise also shows
    up as a loss; the range of a calibrated model shows how much.

    Attributes
    ----------
    name, split, reduction, n, level
        See `ScoreFigure`.
    cutoff, loss : ndarray, shape (P,)
        Cutoff, and mean loss per row as a share of the stake.
    calibrated : (ndarray, ndarray), shape (P,) each
        Mean and upper quantile of the loss of a calibrated model: labels are redrawn and the probability is refitted.
    largest_calibrated : float
        The same quantile of the largest loss over all cutoffs.
    """

    cutoff: FloatArray
    loss: FloatArray
    calibrated: tuple[FloatArray, FloatArray]
    largest_calibrated: float

    @classmethod
    def _from_sample(cls, sample: Sample, level: float, fields: dict[str, Any]) -> Self:
        view = sample.view(step_views.steps)
        redraws = resampled(view, "under_calibration", **sample.redrawing)
        calibrated_loss = decision_loss(redraws.score, redraws.count, redraws.hits)
        base = view.merged()
        return cls(
            **fields,
            cutoff=LOSS_CUTOFFS,
            # On the same (merged) steps as the resamples, so that the losses are comparable.
            loss=decision_loss(base.score, base.count, base.hits),
            calibrated=(calibrated_loss.mean(axis=0), np.quantile(calibrated_loss, level, axis=0)),
            largest_calibrated=float(np.quantile(calibrated_loss.max(axis=1), level)),
        )

    @property
    def worst(self) -> tuple[float, float]:
        """Cutoff of the largest loss, and the loss there."""
        at = int(np.argmax(self.loss))
        return float(self.cutoff[at]), float(self.loss[at])

    @property
    def beyond_noise(self) -> bool:
        """Whether the largest loss exceeds `largest_calibrated`."""
        return self.worst[1] > self.largest_calibrated + 1e-12

    def columns(self) -> Mapping[str, Any]:
        """One row per cutoff."""
        mean, high = self.calibrated
        return {
            "cutoff": self.cutoff,
            "loss": self.loss,
            "calibrated_mean": mean,
            "calibrated_high": high,
        }

    def caption(self) -> tuple[str, ...]:
        """Name; what is drawn; the largest loss: one line each."""
        most = SINGLE_ROW if self.n == 1 else f"At most {self._largest()}"
        return *self._head(), most

    def _largest(self) -> str:
        cutoff, loss = self.worst
        return f"{percent(loss, 2)} of the stake per row, at the cutoff {decimal(cutoff)}"

    def describe(self) -> str:
        """Say in plain words what it shows."""
        return f"Decision loss of {self._scored}. {self.reading()}"

    def reading(self) -> str:
        """Return the description without the name of the data."""
        if self.n == 1:
            return SINGLE_ROW
        noise = "more than" if self.beyond_noise else "within"
        return (
            f"Acting on the scores instead of the probabilities they stand for costs at most {self._largest()}; that is {noise} what "
            f"a calibrated model of this size shows ({percent(self.largest_calibrated, 2)} at most in {level_text(self.level)} of samples)."
        )

    def draw(self, sheet: Sheet) -> Picture:
        """Draw the loss over the range of a calibrated model."""
        p, x = sheet.palette, self.cutoff
        mean, high = self.calibrated
        grey = f"{level_text(self.level)} range if calibrated"
        hover = "%{y:.2f} % of the stake at the cutoff %{x:.3f}"
        thin: Trace = {"width": 1.5, "dash": "4px,3px", "name": "Mean if calibrated"}
        traces = [
            area(x, np.zeros_like(high), 100 * high, p.calibrated, name=grey),
            line(x, 100 * mean, p.muted, **thin),
            line(x, 100 * self.loss, p.purple, width=2.5, name="Decision loss", hover=hover),
        ]
        top = 108 * max(float(self.loss.max()), float(high.max()), 1e-6)
        return sheet.picture(
            traces,
            inner=_LOSS_INNER,
            margins=_LOSS_MARGINS,
            xaxis=sheet.axis(
                "Cutoff: act where the score is above", size=13, range=[0, 1], nticks=6
            ),
            yaxis=sheet.axis("Loss per row, % of the stake", size=13, range=[0, top], nticks=6),
        )


def decision_loss(score: FloatArray, count: FloatArray, hits: FloatArray) -> FloatArray:
    """``mean |q - mu| 1{mu between p and q} / max(mu, 1 - mu)`` at the ``LOSS_CUTOFFS`` mu, with isotonic q; shape (..., P).

    A score equal to a cutoff means not to act.

    Parameters
    ----------
    score : ndarray, shape (G,)
        Ascending scores p.
    count, hits : ndarray, shape (..., G)
        Rows and hits per score, of one sample or of several.
    """
    rows, right = np.atleast_2d(count), np.atleast_2d(hits)
    loss = np.empty((len(right), LOSS_CUTOFFS.size))
    place_of_score = np.searchsorted(LOSS_CUTOFFS, score, side="left")
    wide = LOSS_CUTOFFS.size + 1
    for fits in curve_fits.isotonic_fits(rows, right):
        checkpoint()
        score_place = np.broadcast_to(place_of_score, fits.used.shape)[fits.used]
        p = np.broadcast_to(score, fits.used.shape)[fits.used]
        q = fits.per_step(fits.level)
        fitted_place = fits.per_step(np.searchsorted(LOSS_CUTOFFS, fits.level, side="left"))
        # Rows with p <= mu < q should be acted on but are not; rows with q <= mu < p should not be but are.
        weight = np.sign(q - p) * rows[fits.samples][fits.used]
        first_cell = fits.per_step(fits.sample * wide)
        size = len(fits.used) * wide
        total = np.zeros((2, size))
        for ends, sign in (
            (np.minimum(score_place, fitted_place), 1),
            (np.maximum(score_place, fitted_place), -1),
        ):
            for sums, value in zip(total, (weight * q, weight), strict=True):
                sums += sign * np.bincount(first_cell + ends, value, minlength=size)
        of_q, some = np.cumsum(total.reshape(2, -1, wide), axis=-1)[..., :-1]
        loss[fits.samples] = (of_q - some * LOSS_CUTOFFS) / rows[fits.samples].sum(axis=-1)[:, None]
    loss = np.maximum(loss, 0) / np.maximum(LOSS_CUTOFFS, 1 - LOSS_CUTOFFS)
    return np.asarray(loss.reshape(*np.shape(hits)[:-1], LOSS_CUTOFFS.size))
