"""What a comparison of recalibrators advises."""

from __future__ import annotations

from dataclasses import dataclass

from calviz.specs.recalibrator import RECALIBRATORS, UNCALIBRATED


@dataclass(frozen=True)
class Guideline:
    """What Zhang et al. 2020, appendix G, recommend for these data.

    Attributes
    ----------
    method : str or None
        None if the guideline does not speak of such data.
    alternative : str or None
        "A strong alternative."
    reason : str
        One or two sentences with this file's n and K.
    """

    method: str | None
    alternative: str | None
    reason: str


@dataclass(frozen=True)
class Advice:
    """What to take.

    Attributes
    ----------
    method : str
        Key; the uncalibrated model where nothing is better beyond noise.
    reasons : tuple of str
        Sentences: what was measured, the guideline, what to keep in mind.
    """

    method: str
    reasons: tuple[str, ...]

    @property
    def headline(self) -> str:
        """What to take, in a few words."""
        left = self.method == UNCALIBRATED
        return f"Advice: {'leave the model as it is' if left else RECALIBRATORS[self.method].label}"
