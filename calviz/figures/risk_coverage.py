"""Risk and accuracy against coverage: the gain from referring doubtful predictions to an expert."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, Self, TypeVar, Unpack, get_args

import numpy as np

from calviz.core import words
from calviz.core.blocks import BoolArray, FloatArray, for_row_blocks
from calviz.core.entry_specs import Interval, figure, reweighted_by
from calviz.core.errors import OptionError, check_choice, check_level, claim
from calviz.core.events import BinaryEvents
from calviz.core.p_values import clopper_pearson
from calviz.core.words import capitalised, decimal, from_on, level_text, percent, two_shares
from calviz.figures import marks
from calviz.figures.figure import Data, SampleFigure, end_columns, pointwise
from calviz.figures.marks import DASHES, UNFADED, Drawing, Page, Sheet, Trace, line, markers, packed
from calviz.sample import risk_tests, step_views
from calviz.sample.error_bars import Redrawing, drawn_by, interval, resampled
from calviz.sample.sample import (
    Sample,
    event_sums,
    full_predictions,
    predicted_words,
    top_label_sums,
)
from calviz.sample.step_views import ranked, redrawn_steps, reweighted_steps
from calviz.sample.steps import Steps, make_steps

RankedBy = Literal["confidence", "entropy", "margin"]
R = TypeVar("R", float, FloatArray)
XAxis = Literal["coverage", "referred"]
YAxis = Literal["accuracy", "risk"]

#: Number of coverages at which the curve is computed; with fewer rows, one per row.
POINTS = 400


@dataclass(frozen=True)
class ReferralChoice:
    """Result of keeping the predictions ranked highest and referring the others to an expert.

    Attributes
    ----------
    coverage : float
        Share of the predictions kept.
    kept, referred : int
        Number of rows kept, and referred to an expert, whatever their weights; a row of which the coverage keeps a part counts as kept.
    threshold : float
        Predictions are kept whose confidence or margin is at least, or whose entropy (in nats) is at most, this
        value; ``nan`` if none is kept.
    accuracy, risk : float
        Share of the kept predictions that are right, and wrong; ``nan`` if none is kept. A row of which the coverage keeps a part
        counts as that part, as in the metrics.
    interval : Interval or None
        Exact (Clopper-Pearson) interval of the accuracy; if all rows are kept, the interval of the metric.
    sentence : str
        The result in words.
    more_rows : float or None
        Where no threshold can be shown to have a risk: `RiskTests.rows_missing`.
    refused : bool
        Whether the sentence says that it cannot be promised.
    rows : str
        The rows that the coverage is a share of.
    promise : str
        `RiskCoverage.promise`, where there is one.
    missed : str
        `missed_words` of the kept rows.
    wrong : str or None
        `wrong_where_kept` of the rows that check a promise; None if there are none.
    """

    coverage: float
    kept: int
    referred: int
    threshold: float
    accuracy: float
    risk: float
    interval: Interval | None
    sentence: str
    more_rows: float | None = None
    refused: bool = False
    rows: str = "the rows"
    promise: str = ""
    missed: str = ""
    wrong: str | None = None

    @property
    def headline(self) -> str:
        """What is kept and how much of it is right, of these rows, in at most 15 words; no advice if most of it is wrong."""
        if self.refused:
            return self.sentence.split(": a confidence of ", 1)[0]
        if not self.kept:
            return self.sentence.split(" confidence. Tried ")[0].rsplit(", with ", 1)[0].rstrip(".")
        if self.promise:
            return self.promise
        if self.accuracy < 0.5:
            return f"Only {percent(self.accuracy)} are right if {percent(self.coverage)} of {self.rows} are kept"
        return f"Keep {percent(self.coverage)} of {self.rows}: {percent(self.accuracy)} are right{self.missed and ', but ' + self.missed}"

    @property
    def beyond_headline(self) -> str:
        """What the sentence says after the words of the headline."""
        rest = self.sentence.removeprefix(self.headline).lstrip(":, ")
        # The headline of none leaves out the level.
        level, cut, tried = rest.partition(" confidence. Tried ")
        return capitalised(
            f"tried at {level.removeprefix('with ')} confidence {tried}" if cut else rest
        )


@figure(
    key="risk-coverage",
    label="Risk-coverage curve",
    summary="Accuracy of the predictions that are kept when the doubtful ones are referred to an expert, with "
    "its bootstrap band and the curve of a perfect ranking.",
    reference="Geifman & El-Yaniv 2017; Ao et al. 2023, section 5.4",
)
@dataclass(frozen=True, eq=False, kw_only=True)
class RiskCoverage(SampleFigure):
    """A risk-coverage curve, computed; `plot` draws it.

    Attributes
    ----------
    name, split, n
        See `SampleFigure`.
    ranking : {"confidence", "entropy", "margin"}
        Quantity by which predictions are ranked.
    n_classes : int
        Number of classes K; 0 if unknown.
    level : float
        Level of the band and the intervals.
    steps : Steps
        Rows and right predictions per distinct value of the ranking.
    coverage : ndarray, shape (C,)
        Share of the rows kept, ascending up to 1.
    risk : ndarray, shape (C,)
        Error rate of the kept rows; within a group of ties, its expectation.
    band : (ndarray, ndarray) or None, shape (C,) each
        Pointwise percentile bootstrap interval of the risk.
    perfect : ndarray, shape (C,)
        Risk of a ranking with every wrong prediction below every right one.
    accuracy_interval : Interval or None
        Interval of the accuracy of all predictions: that of the metric, so that all pages agree.
    redrawing : Redrawing
        Seed and number of the resamples.
    mean_confidence : float
        Mean of the largest probability; the accuracy is written with the decimals that it has in sentences that name both.
    lowest : ndarray, shape (G,), or None
        Smallest confidence of the rows of each step, for a profile, whose steps are cells.
    predicted : str
        The predicted classes that the rows were chosen by, in words; empty for all.
    rarer : (str, Steps) or None
        See `calviz.sample.risk_tests.rarer_class`.

    References
    ----------
    Geifman & El-Yaniv 2017; Ao et al. 2023, section 5.4 and figure 2 (by entropy, "referred to experts").
    """

    ranking: RankedBy
    n_classes: int
    level: float
    steps: Steps
    coverage: FloatArray
    risk: FloatArray
    band: tuple[FloatArray, FloatArray] | None
    perfect: FloatArray
    accuracy_interval: Interval | None
    redrawing: Redrawing
    mean_confidence: float
    lowest: FloatArray | None
    predicted: str = ""
    rarer: tuple[str, Steps] | None = None

    @classmethod
    def compute(
        cls,
        data: Data,
        *,
        ranking: RankedBy = "confidence",
        level: float = 0.95,
        band: bool = True,
        seed: int | None = None,
        resamples: int | None = None,
        split: str | None = None,
        predicted: Sequence[str] = (),
    ) -> Self:
        """Rank the predictions and compute the curve.

        Parameters
        ----------
        data : Predictions, ConfidencePredictions or Sample
            If a sample is given, arguments left out below take its settings.
        ranking : {"confidence", "entropy", "margin"}
            Quantity by which predictions are ranked: the largest probability, the negative entropy of all
            probabilities, or the largest minus the second largest probability.
        level : float
            Level of the band and the intervals, between 0 and 1.
        band : bool
            Whether to compute the bootstrap band, and by bootstrap the interval of all predictions, else exact.
        seed, resamples : int
            Seed and number of the bootstrap resamples.
        split : str, optional
            Only the rows of this split.
        predicted : sequence of str
            Only the rows that are predicted as one of these classes.

        Raises
        ------
        NotAvailable
            For confidence-only data with another ranking than the confidence, or without the predicted classes that are asked for.
        OptionError, InputError
            Under the same conditions as in `calviz.evaluate`.
        """
        check_level(level)
        sample = Sample.of(data, split=split, seed=seed, resamples=resamples).predicted(predicted)
        view = sample.view(ranking_steps, by=ranking)
        n = float(view.n)
        size = min(POINTS, sample.data.n)
        kept = n * np.arange(1, size + 1) / size
        errors = errors_along(view, kept)
        limits = None
        if band and n > 1:
            redraws = resampled(view, "bootstrap", **sample.redrawing)
            limits = pointwise(errors_along(redraws, kept) / kept, level, view, bounds=(0, 1))
        sums = sample.view(top_label_sums)
        whole = None
        if band and n > 1:
            drawn = resampled(sums, "bootstrap", **sample.redrawing)
            right = float(sums.hit_sum.sum() / sums.n)
            whole = interval(drawn.hit_sum.sum(axis=-1) / drawn.n, level, view=sums, value=right)
        if limits is not None and whole is not None:
            limits[0][-1], limits[1][-1] = 1 - whole.high, 1 - whole.low
        return cls(
            **cls._fields(sample, level=level),
            ranking=ranking,
            n_classes=sample.data.n_classes,
            steps=view,
            coverage=kept / n,
            risk=errors / kept,
            band=limits,
            perfect=np.maximum(kept - (n - errors[-1]), 0) / kept,
            accuracy_interval=whole,
            redrawing=sample.redrawing,
            mean_confidence=float(sums.score_sum[0] / sums.n),
            lowest=risk_tests.lowest_scores(sample.top_scored, view),
            predicted=predicted_words(sample.data, predicted),
            rarer=risk_tests.rarer_class(sample, ranking_values(sample, ranking)),
        )

    @property
    def accuracy(self) -> float:
        """Accuracy of all predictions."""
        return 1 - float(self.risk[-1])

    @property
    def aurc(self) -> float:
        """Area under the risk-coverage curve."""
        return area_under_risk(self.steps)

    def threshold_of(self, rank: R) -> R:
        """Convert ranking values of `steps` to thresholds in their usual unit (entropy in nats)."""
        if self.ranking == "entropy":
            return (1 - rank) * math.log(max(self.n_classes, 2))
        return rank

    def keeps(self, rank: FloatArray, threshold: float) -> BoolArray:
        """Whether predictions with these ranking values are kept at a threshold in its usual unit; none if that is nan."""
        value = self.threshold_of(rank)
        return (
            value <= threshold + 1e-12 if self.ranking == "entropy" else value >= threshold - 1e-12
        )

    def at_coverage(self, coverage: float) -> ReferralChoice:
        """Keep this share of the predictions.

        Parameters
        ----------
        coverage : float
            From 0 to 1.
        """
        if not 0 <= coverage <= 1:
            raise OptionError(f"'coverage' must lie between 0 and 1, got {coverage!r}.")
        kept = coverage * float(self.steps.n)
        if kept <= 0:
            return self._nothing("Nothing is kept: every row is referred.")
        return self._choice(kept)

    def at_threshold(self, threshold: float) -> ReferralChoice:
        """Keep the predictions whose confidence or margin is at least, or whose entropy is at most, a threshold."""
        kept = float(self.steps.count[self.keeps(self.steps.score, threshold)].sum())
        if math.isnan(threshold):
            return self.at_coverage(0)
        if kept <= 0:
            words = f"No prediction{self._of} has {self._condition(threshold)}"
            return self._nothing(f"{words}: every row is referred.")
        return self._choice(kept, threshold)

    @claim("threshold-risk")
    def at_risk(self, risk: float, *, confidence: float = risk_tests.CONFIDENCE) -> ReferralChoice:
        """Keep as many predictions as possible with an error rate that is at most `risk` on new rows, with confidence.

        Nothing is kept if that cannot be shown of any threshold (`calviz.sample.risk_tests`).

        Parameters
        ----------
        risk : float
            From 0 to 1.
        confidence : float
            Confidence that the error rate of new rows like these is at most `risk`.
        """
        if not 0 <= risk <= 1:
            raise OptionError(f"'risk' must lie between 0 and 1, got {risk!r}.")
        check_level(confidence)
        drawing = drawn_by(self.steps)
        value = None if drawing is None else ranking_values(drawing.sample, self.ranking)
        tests = risk_tests.RiskTests.of(self.steps, value=value)
        safe = tests.safe(risk, confidence)
        more = None if safe.size else tests.rows_missing(risk, confidence)
        sure = f"with {level_text(confidence)} confidence"
        if not safe.size:
            few = f"at most {percent(risk)} of the predictions{self._of} kept are wrong, {sure}"
            words = risk_tests.none_words(few, f"on all of {self._rows} here", self.n, more, risk)
            return replace(self._nothing(words), more_rows=more)
        step = int(safe[0])
        limit = self._limit(step)
        choice = self._choice(float(ranked(self.steps).rows[self.steps.size - 1 - step]), limit)
        kept = "all" if choice.kept == self.n else percent(choice.coverage)
        missed = choice.missed and f" {choice.missed}."
        words = (
            f"Of the predictions{self._of} with {self._condition(limit)}, at most {percent(risk)} are wrong, {sure}. Chosen on all of "
            f"{self._rows} here, with none left to check it: {kept} are kept, {percent(choice.risk)} of them wrong; {_referred_words(choice.referred)}.{missed}"
        )
        return replace(choice, sentence=words, promise=self.promise(limit, risk))

    @claim("threshold-risk")
    def promise(self, threshold: float, risk: float) -> str:
        """Say in a title what is promised of the chosen classes; empty for all, whose share is shown."""
        at_most = f"at most {percent(risk)} of what is kept as {self.predicted} is wrong"
        return f"{capitalised(self._condition(threshold))}: {at_most}" if self.predicted else ""

    @property
    def _of(self) -> str:
        return f" of {self.predicted}" if self.predicted else ""

    @property
    def _rows(self) -> str:
        return f"the rows predicted as {self.predicted}" if self.predicted else "the rows"

    def _choice(self, kept: float, threshold: float | None = None) -> ReferralChoice:
        ranking = ranked(self.steps)
        n = float(self.steps.n)
        # Sums of weights in another order are not the same in their last digits.
        rounding = 1e-9 * max(1.0, n)
        # A single row is not kept in part.
        whole = kept > n - rounding or self.n == 1
        kept = n if whole else kept
        errors = float(errors_along(self.steps, np.array([kept]))[0])
        at = min(int(np.searchsorted(ranking.rows, kept - rounding)), self.steps.size - 1)
        begun, upto = max(math.ceil(kept - rounding), 1), float(ranking.rows[at])
        tied, rows = begun < upto - 0.5, round(min(begun, upto))
        lowest = np.array([self.steps.size - 1 - at])
        if self.steps.weight is not None:
            # A single row may weigh more than 1.
            tied &= bool(self.steps.count[lowest] > self.steps.weight[lowest] + rounding)
        shown = self._limit(self.steps.size - 1 - at) if threshold is None else threshold
        drawing, share = drawn_by(self.steps), 1.0
        if drawing is not None:
            # For weighted or clustered rows, scale counts to the effective sample size.
            share = float(drawing.sample.view(event_sums).effective[0]) / n
            if self.steps.weight is not None:
                values = ranking_values(drawing.sample, self.ranking)
                rows = int(np.count_nonzero(self.keeps(values, shown)))
        low, high = clopper_pearson((kept - errors) * share, kept * share, level=self.level)
        interval = Interval(float(low), float(high))
        accuracy, referred = 1 - errors / kept, self.n - rows
        if whole and self.accuracy_interval is not None:
            interval = self.accuracy_interval
        if whole:
            which = "the one prediction" if rows == 1 else f"all {rows:,} predictions"
            which += self._of
        else:
            by_chance = ", rows tied there split by chance" if tied else ""
            which = f"the {percent(kept / n)} {self._most} predictions{self._of} ({self._condition(shown)}{by_chance})"
        missed = risk_tests.missed_words(self.rarer, partial(self.keeps, threshold=shown))
        sentence = (
            f"Keeping {which} the accuracy is {percent(accuracy)} ({level_text(self.level)} CI {percent(interval[0])} to {percent(interval[1])}); "
            f"{'no row is referred' if whole else _referred_words(referred)}."
        )
        return ReferralChoice(
            coverage=kept / n,
            kept=rows,
            referred=referred,
            threshold=shown,
            accuracy=accuracy,
            risk=errors / kept,
            interval=interval,
            sentence=f"{sentence} {missed}." if missed else sentence,
            rows=self._rows,
            missed=missed,
        )

    def _limit(self, step: int) -> float:
        """Return a threshold that keeps the rows of a step and of all above it, and no others, in its usual unit."""
        if self.ranking == "entropy":
            return -risk_tests.threshold_at(
                step, lambda at: -self.threshold_of(self.steps.scores_at(at))
            )
        return risk_tests.threshold_at(step, self.steps.scores_at, self.lowest)

    def _nothing(self, sentence: str) -> ReferralChoice:
        nan = math.nan
        return ReferralChoice(0.0, 0, self.n, nan, nan, nan, None, sentence)

    @property
    def _most(self) -> str:
        return {"confidence": "most confident", "entropy": "lowest-entropy"}.get(
            self.ranking, "widest-margin"
        )

    def _condition(self, threshold: float) -> str:
        if self.ranking == "entropy":
            return f"entropy ≤ {from_on(threshold)} nats"
        return f"{self.ranking} ≥ {from_on(threshold)}"

    def columns(self) -> Mapping[str, Any]:
        """One row per coverage."""
        return {
            "coverage": self.coverage,
            "referred": 1 - self.coverage,
            "risk": self.risk,
            "accuracy": 1 - self.risk,
            **end_columns("risk", self.band, self.risk),
            "perfect_risk": self.perfect,
        }

    def caption(self) -> tuple[str, ...]:
        """Name; rows and ranking; accuracy of all rows and area under the curve: one line each."""
        numbers = f"Accuracy {percent(self.accuracy)} · AURC {decimal(self.aurc, 4)}"
        predicted = (f"predicted as {self.predicted}",) if self.predicted else ()
        return *self._head(*predicted, f"ranked by {self.ranking}"), numbers

    def describe(self) -> str:
        """Name the data, and say the `reading`."""
        return f"Risk-coverage curve of {self._subject}, ranked by {self.ranking}. {self.reading()}"

    def reading(self) -> str:
        """Say in plain words what the curve shows."""
        _, accuracy = two_shares(self.mean_confidence, self.accuracy)
        text = f"All predictions{self._of}: accuracy {accuracy}."
        if self.n == 1:
            return text
        best = percent(1 - float(np.interp(0.8, self.coverage, self.perfect)))
        return (
            f"{text} {self.at_coverage(0.8).sentence} A perfect ranking would reach {best} there."
        )

    def plot(
        self,
        *,
        x: XAxis = "coverage",
        y: YAxis = "accuracy",
        at: float | None = None,
        others: Sequence[RiskCoverage] = (),
        **page: Unpack[Page],
    ) -> Drawing:
        """Draw the figure.

        Parameters
        ----------
        x : {"coverage", "referred"}
            Share of the predictions kept, or referred to experts.
        y : {"accuracy", "risk"}
            Share of the kept predictions that are right, or wrong.
        at : float, optional
            A coverage to mark.
        others : sequence of RiskCoverage
            Further curves (other rankings, other models, after recalibration); with at most two, their bands are drawn too.
        **page
            See `Figure.plot`.
        """
        check_choice("x", x, get_args(XAxis))
        check_choice("y", y, get_args(YAxis))
        sheet = self.sheet(**page)
        drawing = _RiskCoverageCurves(self, sheet, x, y, others)
        picture = sheet.picture(
            [*drawing.traces(), *drawing.mark(at)],
            inner=_SMALL if sheet.narrow else _TALL,
            margins=_MARGINS,
            annotations=drawing.mark_label(at),
            xaxis=sheet.axis(_ACROSS[x], range=[0, 100], ticksuffix=" %", nticks=6),
            # A few errors make long labels, such as "99.5 %", which the margin only holds in narrow fonts.
            yaxis=sheet.axis(
                f"{_UP[y]} ({self.predicted or 'top label'})",
                range=list(drawing.range),
                ticksuffix=" %",
                nticks=7,
                automargin="left",
            ),
        )
        return marks.drawn(picture)


def _referred_words(referred: int) -> str:
    """How many rows are referred; with few rows, a coverage below 1 may refer a part of the last one."""
    return {0: "no whole row is referred", 1: "1 row is referred"}.get(
        referred, f"{referred:,} rows are referred"
    )


# ---- Drawing


#: Margins of the panel, and its height on wide and narrow pages, in pixels.
_MARGINS = (64, 28, 14, 54)
_TALL, _SMALL = 380, 300
#: Diameter, in pixels, of the area around a point of the curve that reacts to the pointer.
_NEAR = 14
#: Titles of the axes.
_ACROSS = {
    "coverage": "Coverage: share of predictions kept",
    "referred": "Proportion referred to experts",
}
_UP = {"accuracy": "Accuracy of the kept", "risk": "Risk: error rate of the kept"}


@dataclass(frozen=True)
class _RiskCoverageCurves:
    """Band, curves and reference lines, in the requested coordinates."""

    figure: RiskCoverage
    sheet: Sheet
    x: XAxis
    y: YAxis
    others: Sequence[RiskCoverage]

    def _across(self, coverage: FloatArray) -> FloatArray:
        return 100 * (1 - coverage if self.x == "referred" else coverage)

    def _up(self, risk: FloatArray) -> FloatArray:
        return 100 * (1 - risk if self.y == "accuracy" else risk)

    def _ends(
        self, band: tuple[FloatArray, FloatArray] | None
    ) -> list[tuple[FloatArray, FloatArray]]:
        return [] if band is None else [(self._up(band[0]), self._up(band[1]))]

    def traces(self) -> Iterator[Trace]:
        """Yield the traces from back to front."""
        f, p = self.figure, self.sheet.palette
        x = self._across(f.coverage)
        for ends in self._ends(f.band):
            yield marks.bootstrap_band(x, ends, f.level, p)
        thin: Trace = {"width": 1.5, "dash": "3px,3px", "legendrank": 30}
        yield from self._curve(f.coverage, f.perfect, p.green, "Perfect ranking", **thin)
        name = "No ranking (all rows)"
        thin |= {"dash": "dash", "legendrank": 40, "name": name, "hover": _hover(name)}
        whole = self._across(np.array([0.0, 1.0])), self._up(f.risk[[-1, -1]])
        yield line(*whole, p.muted, **thin)
        for i, other in enumerate(self.others):
            colour = (p.vermillion, p.purple, p.ink)[i % 3]
            if len(self.others) <= 2:
                for ends in self._ends(other.band):
                    fill = p.glaze(colour, 0.12)
                    yield marks.area(self._across(other.coverage), *ends, fill, showlegend=False)
            # A repeated colour gets another dash.
            look: Trace = {"dash": DASHES[1 + (i + i // 3) % 3], "legendrank": 2 + i}
            yield from self._curve(other.coverage, other.risk, colour, self._name(other), **look)
        look = {"width": 2.5, "legendrank": 1}
        yield from self._curve(f.coverage, f.risk, p.blue, self._name(f), click=True, **look)

    def _curve(
        self,
        coverage: FloatArray,
        risk: FloatArray,
        colour: str,
        name: str,
        *,
        click: bool = False,
        **attributes: Any,
    ) -> Iterator[Trace]:
        """Yield a curve and one invisible marker per percent of coverage, with hover text and, with `click`, clickable.

        A line does not report where it was clicked, so it takes no hover that would compete with the markers.
        """
        trace = line(self._across(coverage), self._up(risk), colour, name=name, **attributes)
        # A single row is a point.
        yield trace | {"mode": "markers"} if coverage.size == 1 else trace
        percent = np.unique(np.clip(np.round(100 * coverage), 1, 100).astype(int))
        yield markers(
            packed(self._across(percent / 100)),
            packed(self._up(np.interp(percent / 100, coverage, risk))),
            colour,
            # Of overlapping points, plotly picks the largest.
            size=_NEAR if click else _NEAR / 2,
            opacity=0,
            **marks.UNSEEN,
            hover=_hover(name),
            showlegend=False,
            customdata=percent if click else None,
        )

    def _name(self, curve: RiskCoverage) -> str:
        every = (self.figure, *self.others)
        by = f"by {curve.ranking}"
        if len({c.name for c in every}) == 1:
            return by.capitalize()
        name = words.plotly_text(curve.name, 30)
        return name if len({c.ranking for c in every}) == 1 else f"{name}, {by}"

    def _marked(self, at: float) -> tuple[float, float]:
        # Of the rows themselves, as in the sentence: the curve is drawn through some of its points.
        kept = np.array([at * float(self.figure.steps.n)])
        risk = errors_along(self.figure.steps, kept) / np.maximum(kept, 1e-9)
        return float(self._across(np.array(at))), float(self._up(risk)[0])

    def mark(self, at: float | None) -> Iterator[Trace]:
        """Mark the chosen coverage with a vertical line and a point on the curve."""
        if at is None:
            return
        x, y = self._marked(at)
        p = self.sheet.palette
        yield marks.vertical_mark(x, *self.range, p.ink)
        look: Trace = {**UNFADED, "showlegend": False, "cliponaxis": False}
        yield markers([x], [y], p.ink, size=11, edge=p.paper, **look)

    def mark_label(self, at: float | None) -> Iterator[Trace]:
        """Label the marked point with the share kept and its accuracy or risk."""
        if at is None:
            return
        x, y = self._marked(at)
        p = self.sheet.palette
        # Place the label where the curve never is: below an accuracy curve, above a risk curve, ...
        upper = self.y == "risk"
        low, high = self.range
        # ... unless the axis is too close for two lines of text.
        if not 0.15 < (y - low) / (high - low) < 0.85:
            upper = y < (low + high) / 2
        right = (self.x == "referred" and x < 75) or x < 25
        yield marks.label(
            f"<b>{percent(y / 100)}</b> {'right' if self.y == 'accuracy' else 'wrong'}<br>"
            f"{percent(at)} kept",
            p,
            x=x,
            y=y,
            xshift=10 if right else -10,
            yshift=12 if upper else -12,
            xanchor="left" if right else "right",
            yanchor="bottom" if upper else "top",
            bgcolor=p.glaze(p.paper, 0.8),
        )

    @property
    def range(self) -> tuple[float, float]:
        """The range of the vertical axis, fitted to the curves, because differences of a few points matter."""
        curves = [self.figure.risk, *(o.risk for o in self.others), *(self.figure.band or ())[1:]]
        # Ignore the first few rows, whose risk fluctuates between 0 and 1.
        worst = 100 * max(0.02, *(float(c[c.size // 20 :].max()) for c in curves))
        room = min(1.12 * worst, 102.0)
        top = 0.04 * room
        return (100 - room, 100 + top) if self.y == "accuracy" else (-top, room)


def _hover(name: str) -> str:
    return f"%{{y:.2f}} % at %{{x:.1f}} %<extra>{name}</extra>"


# ---- Rankings


#: Size of a block of rows in bytes, small enough that a copy also fits into the cache.
_BLOCK_BYTES = 1 << 18


def negative_entropy(probs: FloatArray) -> FloatArray:
    """``sum_k p_k ln p_k`` of each row of `probs` (n, K), in nats, shape (n,); 0 if one class has probability 1."""
    out = np.empty(probs.shape[0])
    tiny = np.finfo(probs.dtype).tiny

    def work(rows: slice) -> None:
        block = np.maximum(probs[rows], tiny)
        out[rows] = np.einsum("ij,ij->i", block, np.log(block))

    for_row_blocks(probs, work, block_bytes=_BLOCK_BYTES)
    return np.minimum(out, 0)


def margin(probs: FloatArray) -> FloatArray:
    """Largest minus second largest probability of each row of `probs` (n, K), shape (n,)."""
    out = np.empty(probs.shape[0])

    def work(rows: slice) -> None:
        top = np.partition(probs[rows], probs.shape[1] - 2, axis=1)[:, -2:]
        np.subtract(top[:, 1], top[:, 0], out=out[rows])

    for_row_blocks(probs, work, block_bytes=_BLOCK_BYTES)
    return out


@reweighted_by(
    lambda sample, view: reweighted_steps(_ranked_events(sample, view), view),
    redrawn=lambda sample, view: redrawn_steps(_ranked_events(sample, view), view),
)
def ranking_steps(sample: Sample, *, by: RankedBy = "confidence") -> Steps:
    """Rows and right predictions per distinct value of a ranking, ascending; of the top label, whatever the reduction.

    The values lie in [0, 1], with the most certain predictions highest: confidence, margin, or ``1 - entropy / ln K``.

    Raises
    ------
    NotAvailable
        For confidence-only data with another ranking than the confidence.
    """
    if by == "confidence":
        # The same cached view, so that it is resampled only once.
        return sample.view(step_views.top_label_steps)
    events = BinaryEvents(ranking_values(sample, by), sample.top_scored.hit)
    view = make_steps(events, sample.weights)
    view.__dict__["_events"] = events
    return view


def ranking_values(sample: Sample, by: RankedBy) -> FloatArray:
    """Values by which the rows are ranked, shape (n,), with the most certain predictions highest.

    Raises
    ------
    NotAvailable
        For confidence-only data with another ranking than the confidence.
    OptionError
        If the ranking is unknown.
    """
    check_choice("ranking", by, get_args(RankedBy))
    if by == "confidence":
        return sample.top_scored.score
    data = full_predictions(sample)
    if by == "entropy":
        return np.maximum(1 + negative_entropy(data.probs) / math.log(data.n_classes), 0)
    return np.maximum(margin(data.probs), 0)


def _ranked_events(sample: Sample, view: Steps) -> BinaryEvents:
    return view.__dict__.get("_events", sample.top_scored)


def errors_along(view: Steps, kept: FloatArray) -> FloatArray:
    """Expected number of errors among the rows ranked highest, for each of C counts, shape (..., C).

    Within a group of ties, rows are kept at random, so the expectation is linear.

    Parameters
    ----------
    view : Steps
    kept : ndarray, shape (C,)
        Numbers of rows, from 0 to n.
    """
    ranking = ranked(view)
    rows = np.atleast_2d(ranking.rows)
    errors = np.atleast_2d(ranking.errors)
    out = np.empty((rows.shape[0], kept.size))
    for curve, upto, wrong in zip(out, rows, errors, strict=True):
        curve[:] = np.interp(kept, upto, wrong)
        # Interpolate between 0 rows and the first step without copying all steps to prepend a 0.
        first = kept < upto[0]
        curve[first] = kept[first] * (wrong[0] / max(upto[0], 1e-300))
    return out.reshape(*view.count.shape[:-1], kept.size)


def area_under_risk(view: Steps) -> float:
    """Area under the risk-coverage curve (AURC): linear between steps, constant before the first one."""
    ranking = ranked(view)
    risk = ranking.errors / ranking.rows
    heights = np.append(risk[0], (risk[1:] + risk[:-1]) / 2)
    return float(heights @ np.diff(ranking.rows, prepend=0.0) / ranking.n)
