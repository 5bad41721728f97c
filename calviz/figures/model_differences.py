"""Differences of a metric between several models and a reference model, with paired intervals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from calviz.core.errors import OptionError
from calviz.figures.base import Figure, facts
from calviz.results.comparison import Difference, DifferenceVerdict
from calviz.results.metric_words import scale_of
from calviz.results.model_comparison import ModelComparison
from calviz.specs.metric import METRICS, RANKED_BY
from calviz.text.words import counted, decimal, decimals_for, listed, shorten


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
