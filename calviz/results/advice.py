"""The advice that a comparison of recalibrators gives."""

from __future__ import annotations

from dataclasses import dataclass

from calviz.specs.recalibrator import RECALIBRATORS, UNCALIBRATED


@dataclass(frozen=True)
class Guideline:
    """Which methods win on similar data in published experiments, and what guidelines recommend.

    Attributes
    ----------
    ranking : tuple of str
        Allowed methods, the one that wins most often first; empty if none was tried on such data.
    reason : str
        The experiments with their numbers, and the published guideline.
    """

    ranking: tuple[str, ...]
    reason: str

    @property
    def method(self) -> str | None:
        """The method that wins most often."""
        return next(iter(self.ranking), None)


@dataclass(frozen=True)
class Advice:
    """The recommended method, with reasons.

    Attributes
    ----------
    method : str
        Key; the uncalibrated model if no method is better beyond noise.
    reasons : tuple of str
        Sentences: what was measured, the guideline, what to keep in mind.
    """

    method: str
    reasons: tuple[str, ...]

    @property
    def headline(self) -> str:
        """The advice in a few words."""
        left = self.method == UNCALIBRATED
        return f"Advice: {'leave the model as it is' if left else RECALIBRATORS[self.method].label}"
