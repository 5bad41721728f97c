"""A metric over time, period by period."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from calviz.core.arrays import FloatArray
from calviz.core.reduction import Reduction
from calviz.figures.base import NAME_LENGTH, Figure, facts
from calviz.figures.kernels.overlaid_curves import Overlay
from calviz.results.metric_words import value_text
from calviz.results.over_time import OverTime, Period
from calviz.specs.figure import Theme
from calviz.specs.metric import METRICS
from calviz.specs.recalibrator import RECALIBRATORS
from calviz.text.words import capitalised, counted, p_value, shorten

if TYPE_CHECKING:
    import plotly.graph_objects as go


@dataclass(frozen=True, eq=False)
class OverTimeLine(Figure):
    """The periods of `calviz.over_time`, ready to draw.

    Drawn from a result, not from predictions: `calviz.over_time` measures, this class draws.

    Attributes
    ----------
    result : OverTime
    """

    result: OverTime

    @classmethod
    def compute(cls, result: OverTime) -> Self:
        """Create the figure from the result."""
        return cls(result)

    def plot(
        self,
        *,
        theme: Theme = "light",
        caption: bool | str = False,
        width: int | None = None,
        beside: Sequence[Overlay[FloatArray]] = (),
    ) -> go.Figure:
        """Draw the figure.

        Parameters
        ----------
        theme, caption, width
            See `Figure.plot`.
        beside : sequence of Overlay
            Values of other rows, such as a subset of these, shape (P,) each: one per period, nan where there is none.
        """
        return self._plotly_figure(theme, caption, width, beside=tuple(beside))

    @property
    def label(self) -> str:
        """Label of the metric."""
        return METRICS[self.result.metric].label

    def columns(self) -> Mapping[str, Any]:
        """One row per period."""
        return dict(self.result.frame())

    def caption(self) -> tuple[str, ...]:
        """Name, rows and reduction."""
        r = self.result
        reduction = shorten(Reduction.of(r.reduction).label)
        details = facts(None, counted(r.rows, "row"), reduction, f"{self.label} by {r.every}")
        return shorten(r.name, NAME_LENGTH), details

    def answer(self) -> str:
        """Say whether the metric changes, and in which period most significantly."""
        r = self.result
        looked = counted(len(r.periods), "period")
        if r.untested:
            return capitalised(r.untested)
        if not r.changed:
            return f"No change of the {self.label} over {looked} beyond chance."
        most = "; most surely" if len(r.changed) > 1 else ":"
        verb = "differ" if len(r.changed) > 1 else "differs"
        return (
            f"In {len(r.changed):,} of {looked} the {self.label} {verb} from the others beyond chance"
            f"{most} {self.sentence(r.changed[0])}."
        )

    def sentence(self, one: Period) -> str:
        """Describe one period in words."""
        value, expected = (
            value_text(self.result.metric, v) for v in (one.result.value, one.expected)
        )
        return (
            f"{one.name}, {value} where {expected} would be usual on {counted(one.rows, 'row')} "
            f"({p_value(one.adjusted)}, adjusted for {len(self.result.periods)} periods)"
        )

    def past(self) -> str:
        """Say what recalibration on past rows would have given; empty if it was not requested."""
        r = self.result
        if r.method is None:
            return ""
        name = RECALIBRATORS[r.method].label
        if r.before is None or r.after is None:
            return f"{name} could not be fitted on the past: {r.reason}"
        outcome = ""
        if r.difference is not None:
            outcome = {
                "better": ", better beyond noise",
                "worse": ", worse beyond noise",
                "tied": ", no difference beyond noise",
            }[r.difference.verdict]
        before, after = (value_text(r.metric, v.value) for v in (r.before, r.after))
        # The first periods, on which it is fitted, are in the value of all rows but not in these two.
        judged = sum(p.recalibrated is not None for p in r.periods)
        where = (
            f" on the {counted(judged, 'period')} with enough rows before {'it' if judged == 1 else 'them'}"
            if judged < len(r.periods)
            else ""
        )
        return (
            f"{name}, fitted before each period on all rows until then, would have made the {self.label} {after} "
            f"instead of {before}{where}{outcome}."
        )

    def describe(self) -> str:
        """Say in plain words what the picture shows."""
        parts = [
            f"{self.label} of {shorten(self.result.name, NAME_LENGTH)} over time.",
            self.answer(),
        ]
        return " ".join(filter(None, [*parts, self.past()]))
