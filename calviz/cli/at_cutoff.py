"""``calviz audit --cutoff``: the consequences of decisions at a cutoff, for the terminal and for JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from calviz.core.errors import NotAvailable, OptionError

if TYPE_CHECKING:
    from calviz.sample.cutoff import CutoffCounts
    from calviz.sample.sample import Sample


@dataclass(frozen=True)
class DecisionOptions:
    """Options about decisions.

    Attributes
    ----------
    cutoff : float or None
        Rows whose score is at least this are acted on.
    grades : str or None
        The group column that holds rating grades.
    """

    cutoff: float | None = None
    grades: str | None = None

    @property
    def options(self) -> dict[str, Any]:
        """Keyword arguments for `calviz.evaluate`."""
        return {} if self.cutoff is None else {"cutoff": self.cutoff}

    def check(self, sample: Sample) -> None:
        """Raise OptionError if the sample cannot be judged at the cutoff or has no such column of grades."""
        from calviz.sample.grades import grade_factor

        if self.grades is not None:
            grade_factor(sample.data, self.grades)
        if self.cutoff is not None:
            self._cells(sample)

    def _cells(self, sample: Sample) -> CutoffCounts:
        from calviz.sample.cutoff import at_cutoff, decidable

        try:
            return decidable(sample).view(at_cutoff, cutoff=self.cutoff)
        except NotAvailable as reason:
            raise OptionError(f"--cutoff: {reason}") from None

    def record(self, sample: Sample) -> dict[str, Any]:
        """Entry of the JSON; empty without a cutoff."""
        if self.cutoff is None:
            return {}
        c = self._cells(sample)
        shares = {
            name.replace(" ", "_"): {
                "value": value,
                "interval": None if low != low else [low, high],
            }
            for name, (value, low, high) in c.shares().items()
        }
        nets = {"net_benefit": c.net_benefit, "net_benefit_of_acting_on_all": c.net_benefit_of_all}
        return {"decisions": {"cutoff": self.cutoff, **c.whole, **shares, **nets}}

    def print(self, sample: Sample) -> None:
        """Print what the cutoff means and what follows from it; nothing without a cutoff."""
        if self.cutoff is None:
            return
        from calviz.cli.text import cell, console
        from calviz.text.words import decimal, percent

        c, out = self._cells(sample), console()
        rows = c.whole
        shares = ", ".join(
            f"{name} {percent(value)}"
            + ("" if low != low else f" ({percent(low)} to {percent(high)})")
            for name, (value, low, high) in c.shares().items()
            if value == value
        )
        out.print()
        out.print(cell(c.meaning()), soft_wrap=True)
        text = (
            f"Acting on {rows['tp'] + rows['fp']:,} of {sum(rows.values()):,} rows: {shares}; net benefit {decimal(c.net_benefit)} (acting on everybody "
            f"{decimal(c.net_benefit_of_all)})."
        )
        out.print(cell(text), soft_wrap=True)
