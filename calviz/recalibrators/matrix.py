"""Matrix scaling: a linear map of all logits."""

from __future__ import annotations

from calviz.recalibrators import reasons_to_leave_out
from calviz.recalibrators.linear_maps import LinearMaps
from calviz.specs.recalibrator import recalibrator


@recalibrator(
    key="matrix-odir",
    label="Matrix scaling (ODIR)",
    family="Parametric",
    accuracy_preserving=False,
    needs="logits",
    reference="Guo et al. 2017, section 4.2; Kull et al. 2019 (ODIR)",
    formula=r"\mathrm{softmax}(W z + b)",
    summary="Matrix scaling with penalties on the off-diagonal weights and on the offsets (ODIR), whose strengths are found by cross-validation. The off-diagonal one is for logits divided by their spread, so that logits times 100 are the same problem: times the spread squared it is that of Kull et al.",
    preset={"regularisation": "odir"},
    left_out=reasons_to_leave_out.odir(for_logits=True),
)
@recalibrator(
    key="matrix",
    label="Matrix scaling",
    family="Parametric",
    accuracy_preserving=False,
    needs="logits",
    reference="Guo et al. 2017, section 4.2",
    formula=r"\mathrm{softmax}(W z + b)",
    preset={"regularisation": "l2"},
    left_out=reasons_to_leave_out.many_parameters,
)
class MatrixScaling(LinearMaps):
    """A linear map of all logits, by maximum likelihood: with K squared weights it can do much, and needs many rows.

    Parameters
    ----------
    regularisation : {"l2", "odir"}
        "l2": the mean loss plus `l2` times the sum of all squares. "odir": plus `off_diagonal` times the mean
        square of the off-diagonal weights and `intercept` times that of the offsets (Kull 2019).
    l2 : float
        A ridge; at least 1e-8 is always there, so that separable data have an answer.
    off_diagonal, intercept : float, optional
        Strengths of ODIR; if left out, by k-fold cross-validation of the likelihood over a small grid. The first (and `l2`,
        of the weights) is for logits divided by their spread, the root mean square about the mean of their row: that of
        Kull et al. 2019 is it times the square of the spread.
    folds : int
        Folds of that cross-validation.
    max_seconds : float
        A fit that would take longer is refused, with its estimate.
    floor, input
        As in `TemperatureScaling`.

    Attributes
    ----------
    weights_ : ndarray, shape (K, K)
    intercepts_ : ndarray, shape (K,)
    strengths_ : ndarray, shape (2,)
        Strengths of the two penalties (both the ridge for "l2").
    """

    key = "matrix"
    needs = "logits"
    in_units_of_scores = True
