"""From which confidence on each level of a group column can be believed."""

from __future__ import annotations

from dataclasses import dataclass

from calviz.core.errors import NotAvailable, OptionError
from calviz.core.predictions import Dataset
from calviz.figures.risk_coverage import Choice, RiskCoverage
from calviz.results.slices import Slice, Slices
from calviz.sample.sample import Sample
from calviz.sample.slices import USUAL_RATE, slices
from calviz.specs.metric import takes_weights
from calviz.text.words import shorten

#: Levels with fewer rows are named and not judged, as nothing could be said of them.
LEAST_ROWS = 20


@dataclass(frozen=True, eq=False)
class Levels:
    """The levels of a group column, the most surely off first.

    Attributes
    ----------
    found : Slices
        Each level against a calibrated model, adjusted for all.
    choices : tuple of Choice
        For each slice of `found`, the largest share of its rows with at most so many errors.
    few : tuple of str
        Levels with fewer than `LEAST_ROWS` rows.
    """

    found: Slices
    choices: tuple[Choice, ...]
    few: tuple[str, ...]

    def word(self, level: Slice) -> str:
        """Whether the scores of a level are off, in a word or two."""
        if level not in self.found.off:
            return "within noise"
        return "too high" if level.gap > 0 else "too low"


def check_column(data: Dataset, column: str) -> None:
    """Raise OptionError where there is no such group column."""
    if column not in data.groups:
        known = ", ".join(shorten(name) for name in data.groups) or "there is none"
        raise OptionError(
            f"there is no group column '{shorten(column)}' to look by; known: {known}."
        )


@takes_weights
def levels_of(sample: Sample, column: str, risk: float) -> Levels:
    """Look at the levels of a group column.

    Parameters
    ----------
    sample : Sample
    column : str
    risk : float
        Share of errors among the predictions that are kept, at most.

    Raises
    ------
    OptionError
        Where there is no such group column, or nothing can be said by it.
    """
    check_column(sample.data, column)
    counts = sample.data.groups[column].counts()
    try:
        found = slices(sample, [column], pairs=False, min_rows=LEAST_ROWS, rate=USUAL_RATE)
    except NotAvailable as error:
        raise OptionError(f"nothing can be said by '{shorten(column)}': {error}") from None
    parts = (Sample.of(sample, where=s.where) for s in found.slices)
    return Levels(
        found,
        tuple(RiskCoverage.compute(part, band=False).at_risk(risk, others=False) for part in parts),
        tuple(name for name, rows in counts.items() if rows < LEAST_ROWS),
    )
