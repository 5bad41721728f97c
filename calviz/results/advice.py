"""What a comparison of recalibrators advises."""

from __future__ import annotations

from dataclasses import dataclass

from calviz.specs.recalibrator import RECALIBRATORS, UNCALIBRATED


@dataclass(frozen=True)
class Guideline:
    """What wins on such data elsewhere, and what is recommended for them.

    Attributes
    ----------
    ranking : tuple of str
        Methods that are allowed, the one that wins most often first; empty if none was tried on such data.
    reason : str
        The experiments, the figures, and the published guideline.
    """

    ranking: tuple[str, ...]
    reason: str

    @property
    def method(self) -> str | None:
        """What wins most often."""
        return next(iter(self.ranking), None)


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
