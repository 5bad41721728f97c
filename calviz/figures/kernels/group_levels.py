"""Confidence from which predictions can be trusted, for each level of a group column."""

from __future__ import annotations

from dataclasses import dataclass

from calviz.core.errors import NotAvailable, OptionError
from calviz.core.predictions import Dataset
from calviz.figures.risk_coverage import ReferralChoice, RiskCoverage
from calviz.results.slices import Slice, Slices
from calviz.sample.sample import Sample
from calviz.sample.slices import USUAL_RATE, no_group_column, slices
from calviz.specs.metric import takes_weights
from calviz.text.words import shorten

#: Levels with fewer rows are listed but not judged.
LEAST_ROWS = 20


@dataclass(frozen=True, eq=False)
class Levels:
    """The levels of a group column, most significantly off first.

    Attributes
    ----------
    slices : Slices
        Each level compared with a calibrated model, adjusted for the number of levels.
    choices : tuple of ReferralChoice
        For each slice of `slices`, the largest share of its rows that can be kept at the given risk.
    few : tuple of str
        Levels with fewer than `LEAST_ROWS` rows.
    """

    slices: Slices
    choices: tuple[ReferralChoice, ...]
    few: tuple[str, ...]

    def word(self, level: Slice) -> str:
        """Say in a word or two whether the scores of a level are off."""
        if level not in self.slices.off:
            return "within noise"
        return "too high" if level.gap > 0 else "too low"


def check_column(data: Dataset, column: str) -> None:
    """Raise OptionError if there is no such group column."""
    if column not in data.groups:
        raise no_group_column(data, column)


@takes_weights
def levels_of(sample: Sample, column: str, risk: float) -> Levels:
    """Judge each level of a group column.

    Parameters
    ----------
    sample : Sample
    column : str
    risk : float
        Largest allowed share of errors among the kept predictions.

    Raises
    ------
    OptionError
        If there is no such group column, or no level of it can be judged.
    """
    check_column(sample.data, column)
    counts = sample.data.groups[column].counts()
    try:
        judged = slices(sample, [column], pairs=False, min_rows=LEAST_ROWS, rate=USUAL_RATE)
    except NotAvailable as error:
        raise OptionError(f"no level of '{shorten(column)}' can be judged: {error}") from None
    parts = (Sample.of(sample, where=s.where) for s in judged.slices)
    return Levels(
        judged,
        tuple(RiskCoverage.compute(part, band=False).at_risk(risk, others=False) for part in parts),
        tuple(name for name, rows in counts.items() if rows < LEAST_ROWS),
    )
