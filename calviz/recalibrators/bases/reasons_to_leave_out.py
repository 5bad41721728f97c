"""Reasons, shared by several methods, why a method is not suggested for some data.

Each function is, or returns, a `RecalibratorSpec.left_out`.
"""

from __future__ import annotations

from calviz.specs.recalibrator import FitFacts, LeftOut

#: Largest value of rows times classes squared with which the search for the strengths of ODIR takes only seconds.
QUICK_SEARCH = 3_000_000
#: The same for a few passes with a full matrix.
QUICK_MATRIX = 2_000_000_000


def variant(sentence: str) -> LeftOut:
    """Return the reason of a method that is left out on any data."""
    return lambda _: sentence


def many_parameters(facts: FitFacts) -> str:
    """Why a matrix without ODIR is left out: many parameters."""
    return f"{facts.parameters:,} free parameters; the form with ODIR regularises them."


def odir(*, for_logits: bool) -> LeftOut:
    """Why a matrix with ODIR is left out: the form for logits suits only files that have logits, the other form all others."""

    def left_out(facts: FitFacts) -> str:
        if facts.logits != for_logits:
            return "the other form of the same map, which suits this file's scores less."
        if facts.few:
            return f"{facts.few}, for {facts.parameters:,} parameters."
        if facts.rows * facts.classes**2 > QUICK_SEARCH:
            return f"the search for its strengths over {facts.parameters:,} parameters takes long."
        return (
            "for two classes it is Platt scaling or beta calibration." if facts.classes == 2 else ""
        )

    return left_out


def structured(facts: FitFacts) -> str:
    """Why structured scaling is left out: its penalties suit any number of rows, but it is made for more than two classes."""
    return "for two classes it comes close to Platt scaling." if facts.classes == 2 else ""


def structured_matrix(facts: FitFacts) -> str:
    """Why structured matrix scaling is left out: each pass costs rows times the square of the classes."""
    if facts.rows * facts.classes**2 > QUICK_MATRIX:
        return f"fitting its {facts.parameters:,} parameters takes long."
    return structured(facts)


def each_class_alone(facts: FitFacts) -> str:
    """Why a method that maps each class separately is left out with more than two classes."""
    if facts.classes == 2:
        return ""
    return "it looks at each class alone, which changes more predictions than it has to."


def follows_noise(facts: FitFacts) -> str:
    """Why a method with a separate map per class is left out: with few rows it follows noise."""
    return f"{facts.few}: it would follow noise." if facts.few else ""


def close_to_simpler(facts: FitFacts) -> str:
    """Why a method made for many classes is left out with two."""
    if facts.classes > 2:
        return ""
    return "for two classes it comes close to temperature scaling or isotonic regression."
