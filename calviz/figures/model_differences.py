"""Differences of a metric between models and a reference model, with paired intervals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

from calviz.comparison.comparison_results import Difference, DifferenceVerdict
from calviz.comparison.study_results import ModelComparison
from calviz.core.claims import claim
from calviz.core.entry_specs import METRICS, RANKED_BY
from calviz.core.errors import OptionError
from calviz.core.words import counted, decimal, decimals_for, listed, plotly_text, shorten
from calviz.figures.figure import Figure, facts
from calviz.figures.marks import (
    Picture,
    Sheet,
    Trace,
    label,
    markers,
    name_room,
    vertical_shape,
    whiskers,
)
from calviz.verdicts.evaluation import scale_of


@dataclass(frozen=True, eq=False)
class ModelDifferences(Figure):
    """Paired differences to a reference model, ready to draw.

    Drawn from a result, not from predictions: `calviz.compare_models` computes, this class draws.

    Attributes
    ----------
    comparison : ModelComparison
    metric : str
    reference : str
        The model with which the others are compared.
    models : tuple of str
        The other models, best value first.
    differences : tuple of Difference
        One per model.
    """

    comparison: ModelComparison
    metric: str
    reference: str
    models: tuple[str, ...]
    differences: tuple[Difference, ...]

    @classmethod
    def compute(
        cls, comparison: ModelComparison, *, metric: str = RANKED_BY, reference: str | None = None
    ) -> Self:
        """Choose the metric and the reference model (by default the best by that metric).

        Raises
        ------
        OptionError
            If the metric has no paired resamples, or the model does not exist.
        """
        if metric not in comparison.pairs:
            metrics = ", ".join(comparison.pairs) or "none"
            reason = comparison.without_differences.get(metric)
            why = f": it {reason}" if reason else ""
            raise OptionError(
                f"there are no paired differences of '{metric}'{why}; known: {metrics}."
            )
        order = comparison.ranking(metric)
        against = order[0] if reference is None else reference
        if against not in order:
            raise OptionError(f"'{against}' has no '{metric}'; known: {', '.join(order)}.")
        differences = {
            name: d
            for name in order
            if name != against and (d := comparison.difference(metric, name, against)) is not None
        }
        return cls(comparison, metric, against, tuple(differences), tuple(differences.values()))

    def side(self, difference: Difference) -> DifferenceVerdict:
        """Whether a model is better or worse than the reference beyond noise, or tied with it."""
        return difference.verdict

    def columns(self) -> Mapping[str, Any]:
        """One row per model."""
        count = len(self.models)
        return {
            "metric": [self.metric] * count,
            "model": self.models,
            "reference": [self.reference] * count,
            "difference": [d.value for d in self.differences],
            "low": [d.interval.low for d in self.differences],
            "high": [d.interval.high for d in self.differences],
            "beyond_noise": [self.side(d) for d in self.differences],
        }

    def caption(self) -> tuple[str, ...]:
        """Metric and reference model; rows: one line each."""
        rows = counted(self.comparison.rows, "row")
        head = f"{METRICS[self.metric].label}, minus that of {shorten(self.reference)}"
        return head, facts(self.comparison.split, rows, "95 % intervals, paired")

    def text(self, difference: Difference) -> str:
        """Write a difference with its interval, in the unit of the metric."""
        scale, unit = scale_of(self.metric, difference=True)
        spread = scale * (difference.interval.high - difference.interval.low) / 2
        decimals = decimals_for(spread, figures=2, least=1, most=4)
        value, low, high = (
            decimal(scale * v, decimals) for v in (difference.value, *difference.interval)
        )
        return f"{value}{' ' + unit if unit else ''} (95 % CI {low} to {high})"

    @claim("models-differ")
    def describe(self) -> str:
        """Say in plain words what it shows."""
        by_side: dict[DifferenceVerdict, list[str]] = {"better": [], "tied": [], "worse": []}
        for name, d in zip(self.models, self.differences, strict=True):
            by_side[self.side(d)].append(name)
        words = {
            "better": "better beyond noise",
            "tied": "not told apart from it",
            "worse": "worse beyond noise",
        }
        parts = [f"{listed(names)} {words[side]}" for side, names in by_side.items() if names]
        return (
            f"{METRICS[self.metric].label} of {counted(len(self.models), 'model')} minus that of "
            f"'{shorten(self.reference)}' on the same {counted(self.comparison.rows, 'row')}: "
            f"{'; '.join(parts)}."
        )

    def draw(self, sheet: Sheet) -> Picture:
        """Draw the reference at the top, then one row per model, best first."""
        names, muted = (self.reference, *self.models), sheet.palette.muted
        left = name_room([shorten(name, _NAME) for name in names], _BESIDE)
        scale, unit = scale_of(self.metric, difference=True)
        every = [0.0] + [v for d in self.differences for v in (d.value, *d.interval)]
        low, high = scale * min(every), scale * max(every)
        # The axis needs a width even if all differences are 0.
        pad = max(0.06 * (high - low), 1e-3 * scale)
        title = f"Difference in {METRICS[self.metric].label}" + (f", {unit}" if unit else "")
        # Both sides are labelled above the rows.
        sides = {"lower": ("better", "worse"), "higher": ("worse", "better")}
        words = sides.get(METRICS[self.metric].direction, ())
        place: Trace = {"xref": "paper", "yref": "paper", "y": 1, "yshift": 2, "yanchor": "bottom"}
        font = {"size": 12, "color": muted}
        zero: Trace = {"x": 0, "width": 1.5, "dash": "4px,3px", "yref": "paper", "layer": "below"}
        return sheet.picture(
            _traces(self, sheet, scale),
            inner=_ROW * len(names),
            margins=(left, _RIGHT, _TOP, _BOTTOM),
            above=_TOP - 6,
            annotations=[
                label(text.format(word), sheet.palette, x=x, xanchor=anchor, **place, font=font)
                for word, x, anchor, text in zip(
                    words, (0, 1), ("left", "right"), ("← {}", "{} →"), strict=False
                )
            ],
            shapes=[vertical_shape(sheet.palette.ink, **zero)],
            xaxis=sheet.axis(title, range=[low - pad, high + pad], nticks=6),
            yaxis=sheet.row_axis([plotly_text(name, _NAME) for name in names], ticks=""),
        )


# ---- Drawing


_RIGHT, _TOP, _BOTTOM, _ROW = 16, 30, 54, 28
#: Maximum characters of a name, and space beside the names in pixels.
_NAME, _BESIDE = 26, 16


def _traces(f: ModelDifferences, sheet: Sheet, scale: float) -> Iterator[Trace]:
    """Yield one point with its interval per model, filled if the difference is beyond noise."""
    p = sheet.palette
    looks = {
        "better": (p.blue, "circle"),
        "worse": (p.vermillion, "square"),
        "tied": (p.neutral, "circle-open"),
    }
    hover = f"{plotly_text(f.reference, 60)}: the reference"
    yield markers([0.0], [0], p.ink, size=10, symbol="diamond", hover=hover)
    for row, (name, d) in enumerate(zip(f.models, f.differences, strict=True), start=1):
        colour, symbol = looks[f.side(d)]
        value, (low, high) = d.value, d.interval
        ends = [max(scale * (high - value), 0.0)], [max(scale * (value - low), 0.0)]
        yield markers(
            [scale * value],
            [row],
            colour,
            size=9,
            symbol=symbol,
            edge=colour,
            error_x=whiskers(*ends, colour, thickness=2, width=5),
            hover=f"{plotly_text(name, 60)}: {f.text(d)}<br>{f.side(d)}",
        )
