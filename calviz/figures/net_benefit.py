"""Net benefit of acting on scores above a cutoff, against the cutoff: decision curve analysis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Self, get_args

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray
from calviz.core.options import check_choice, check_level
from calviz.core.predictions import Dataset
from calviz.core.reduction import Reduction
from calviz.figures.base import Figure, ends_or_nan, named, score_lines
from calviz.figures.kernels.grouped_rows import resampled_between
from calviz.figures.kernels.threshold_costs import kept_and_wrong
from calviz.sample import error_bars
from calviz.sample.cutoff import net_benefit_of
from calviz.sample.sample import Sample
from calviz.sample.step_views import steps
from calviz.sample.steps import Steps
from calviz.specs.figure import Theme, figure
from calviz.text.words import counted, decimal, level_text, percent

if TYPE_CHECKING:
    import plotly.graph_objects as go

#: Quantity drawn: net benefit, net benefit divided by the share of hits, or actions avoided per 100 rows compared with acting on everybody.
Shown = Literal["net-benefit", "standardised", "avoided"]
#: Cutoffs of the curve.
CUTOFFS = np.arange(1, 100) / 100


class Ends(NamedTuple):
    """Both ends of a band, shape (T,) each."""

    low: FloatArray
    high: FloatArray


@figure(
    key="net-benefit",
    label="Net benefit",
    summary="Decision curve analysis: net benefit of acting on scores above a cutoff, beside acting on everybody and on nobody, "
    "for every cutoff between 0 and 1.",
    reference="Vickers & Elkin 2006; Kerr et al. 2016",
)
@dataclass(frozen=True, eq=False)
class NetBenefit(Figure):
    """Net benefit against the cutoff, computed; `plot` draws it.

    Attributes
    ----------
    name : str
    split : str or None
    reduction : Reduction
        Defines score and hit.
    level : float
        Level of the bands.
    n : int
    share : float
        Share of hits.
    cutoff : ndarray, shape (T,)
    values : mapping of str to ndarray, shape (T,)
        "net-benefit"; "standardised": net benefit divided by the share of hits; "avoided": true negatives per 100 rows minus
        missed hits, weighted by the exchange rate of the cutoff.
    everybody : mapping of str to ndarray, shape (T,)
        The same quantities when acting on everybody.
    bands : mapping of str to Ends
        Pointwise percentile bootstrap intervals; empty if not requested.

    References
    ----------
    Vickers & Elkin 2006 (net benefit); Kerr et al. 2016 (standardised).
    """

    name: str
    split: str | None
    reduction: Reduction
    level: float
    n: int
    share: float
    cutoff: FloatArray
    values: Mapping[Shown, FloatArray]
    everybody: Mapping[Shown, FloatArray]
    bands: Mapping[Shown, Ends]

    @classmethod
    def compute(
        cls,
        data: Dataset | Sample,
        *,
        reduction: Reduction | str | None = None,
        level: float = 0.95,
        band: bool = True,
        seed: int | None = None,
        resamples: int | None = None,
        split: str | None = None,
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
        sample = Sample.of(data, split=split, reduction=reduction, seed=seed, resamples=resamples)
        view = sample.view(steps)
        # Round the cutoffs to the precision of the scores, so that a single-precision score of 0.3 reaches 0.3.
        at = CUTOFFS.astype(sample.scored.score.dtype).astype(np.float64)
        quantities = _all(view, at)
        bands: dict[Shown, Ends] = {}
        if band and view.n > 1:
            redrawn = _all(resampled_between(view, at, sample.redrawing), at)
            tails = [(1 - level) / 2, (1 + level) / 2]
            for shown, values in redrawn.items():
                if np.isfinite(quantities[shown]).all():
                    low, high = np.nanquantile(values, tails, axis=0)
                    observed = quantities[shown]
                    bands[shown] = Ends(
                        *error_bars.widened(low, high, level, view, centre=observed)
                    )
        share = float(view.n_hits / view.n)
        whole = net_benefit_of(share, 1 - share, 1, CUTOFFS)
        return cls(
            name=sample.data.name,
            split=sample.split,
            reduction=sample.reduction,
            level=level,
            n=sample.data.rows,
            share=share,
            cutoff=CUTOFFS,
            values=quantities,
            everybody={
                "net-benefit": whole,
                "standardised": whole / share if share else np.full(whole.shape, np.nan),
                "avoided": np.zeros(whole.shape),
            },
            bands=bands,
        )

    @property
    def useful(self) -> BoolArray:
        """Whether, per cutoff, the scores have a higher net benefit than acting on everybody and on nobody, shape (T,)."""
        own, whole = self.values["net-benefit"], self.everybody["net-benefit"]
        return np.asarray(own > np.maximum(whole, 0) + 1e-12)

    def columns(self) -> Mapping[str, Any]:
        """One row per cutoff."""
        out: dict[str, Any] = {"cutoff": self.cutoff}
        for shown in get_args(Shown):
            name = shown.replace("-", "_")
            low, high = ends_or_nan(self.bands.get(shown), self.cutoff)
            out |= {name: self.values[shown], f"{name}_low": low, f"{name}_high": high}
        return out | {"act_on_all": self.everybody["net-benefit"]}

    def plot(
        self,
        *,
        theme: Theme = "light",
        caption: bool | str = False,
        width: int | None = None,
        shown: Shown = "net-benefit",
        at: float | None = None,
        others: Sequence[NetBenefit] = (),
    ) -> go.Figure:
        """Draw the figure.

        Parameters
        ----------
        theme, caption, width
            See `Figure.plot`.
        shown : {"net-benefit", "standardised", "avoided"}
        at : float, optional
            A cutoff to mark.
        others : sequence of NetBenefit
            Further curves (after recalibration, or of another state), drawn without bands.
        """
        check_choice("shown", shown, get_args(Shown))
        return self._plotly_figure(theme, caption, width, shown=shown, at=at, others=tuple(others))

    def caption(self) -> tuple[str, ...]:
        """Name; rows and score; where the scores are useful: one line each."""
        return *score_lines(self.name, self.split, self.n, self.reduction), self.reading()

    def reading(self) -> str:
        """Say at which cutoffs deciding by the scores is better than acting on everybody or on nobody."""
        useful = self.useful
        if not useful.any():
            return "At no cutoff is deciding by the scores better than acting on everybody or on nobody."
        at = np.flatnonzero(useful)
        low, high = self.cutoff[at[0]], self.cutoff[at[-1]]
        where = f"between {decimal(float(low), 2)} and {decimal(float(high), 2)}"
        if at[-1] - at[0] + 1 > at.size:
            where = f"at {at.size} of {useful.size} cutoffs {where}"
        return f"Deciding by the scores is better than acting on everybody or on nobody {where}."

    def describe(self) -> str:
        """Say in plain words what the curve shows."""
        text = (
            f"Net benefit against the cutoff, {named(self.name, self.split)}, {counted(self.n, 'row')}, "
            f"{percent(self.share)} of them hits. {self.reading()}"
        )
        if "net-benefit" in self.bands:
            text += f" The band is a {level_text(self.level)} bootstrap range."
        return text


def _all(view: Steps, cutoff: FloatArray) -> dict[Shown, FloatArray]:
    """Return all drawable quantities at the cutoffs, shape (..., T) each."""
    above, fp = kept_and_wrong(view, cutoff)
    tp = above - fp
    n, hits = view.n[..., None], view.n_hits[..., None]
    net = net_benefit_of(tp, fp, n, cutoff)
    share = np.full(net.shape, np.nan)
    np.divide(net, hits / n, out=share, where=hits > 0)
    missed, spared = hits - tp, n - hits - fp
    avoided = 100 * (spared - missed * (1 - cutoff) / cutoff) / n
    return {"net-benefit": net, "standardised": share, "avoided": avoided}
