"""Affine scaling: the name used in benchmarks for Platt scaling on log-odds."""

from __future__ import annotations

from calviz.recalibrators.bases import reasons_to_leave_out
from calviz.recalibrators.platt import PlattScaling
from calviz.specs.recalibrator import recalibrator


@recalibrator(
    key="affine",
    label="Affine scaling",
    family="Parametric",
    accuracy_preserving=False,
    needs="probabilities",
    confidence_only=True,
    reference="Berta et al. 2026; Platt 1999",
    formula=r"\sigma(a z + b),\ z = \log\frac{p}{1 - p}",
    left_out=reasons_to_leave_out.variant("it is Platt scaling under another name."),
)
class AffineScaling(PlattScaling):
    """A factor and an offset for the log-odds, fitted by maximum likelihood: Platt scaling as defined here, under its other name.

    Elsewhere, "Platt scaling" may also mean a fit on probabilities, or one with smoothed labels; this name is unambiguous.

    Parameters
    ----------
    floor, input
        As in `PlattScaling`.

    Attributes
    ----------
    coefficients_ : ndarray, shape (2, C)
        Slopes a and intercepts b; C is K, or 1 for two classes.
    """
