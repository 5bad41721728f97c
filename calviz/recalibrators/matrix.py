"""Matrix scaling: a linear map of all logits."""

from __future__ import annotations

from calviz.recalibrators.bases import reasons_to_leave_out
from calviz.recalibrators.bases.linear_maps import LinearMaps
from calviz.specs.recalibrator import recalibrator


@recalibrator(
    key="matrix-odir",
    label="Matrix scaling (ODIR)",
    family="Parametric",
    accuracy_preserving=False,
    needs="logits",
    reference="Guo et al. 2017, section 4.2; Kull et al. 2019 (ODIR)",
    formula=r"\mathrm{softmax}(W z + b)",
    summary="Matrix scaling with penalties on the off-diagonal weights and on the offsets (ODIR), whose strengths are found by cross-validation. The off-diagonal strength is for logits divided by their spread, so that rescaling the logits changes nothing; multiplied by the squared spread it is the strength of Kull et al.",
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
    """A linear map of all logits, fitted by maximum likelihood: its K squared weights make it flexible, but need many rows.

    Parameters
    ----------
    regularisation : {"l2", "odir"}
        "l2": the mean loss plus `l2` times the sum of all squares. "odir": plus `off_diagonal` times the mean
        square of the off-diagonal weights and `intercept` times that of the offsets (Kull 2019).
    l2 : float
        Strength of the ridge penalty; at least 1e-8 is always used, so that separable data have a solution.
    off_diagonal, intercept : float, optional
        Strengths of ODIR; found by k-fold cross-validation of the likelihood over a small grid by default. `off_diagonal` (and
        `l2`, for the weights) is for logits divided by their spread, the root mean square deviation from the mean of their row:
        multiplied by the squared spread it is the strength of Kull et al. 2019.
    folds : int
        Number of folds of that cross-validation.
    max_seconds : float
        A fit that is estimated to take longer is refused, and the estimate is given.
    floor, input
        As in `TemperatureScaling`.

    Attributes
    ----------
    weights_ : ndarray, shape (K, K)
    intercepts_ : ndarray, shape (K,)
    strengths_ : ndarray, shape (2,)
        Strengths of the two penalties (for "l2", both are that of the ridge penalty).
    """

    in_units_of_scores = True
