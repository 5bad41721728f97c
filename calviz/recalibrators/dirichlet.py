"""Dirichlet calibration: a linear map of all log-probabilities."""

from __future__ import annotations

from calviz.recalibrators.bases import reasons_to_leave_out
from calviz.recalibrators.bases.linear_maps import LinearMaps
from calviz.specs.recalibrator import recalibrator


@recalibrator(
    key="dirichlet-odir",
    label="Dirichlet calibration (ODIR)",
    family="Parametric",
    accuracy_preserving=False,
    needs="log-probabilities",
    reference="Kull et al. 2019; Kull et al. 2019 (ODIR)",
    formula=r"\mathrm{softmax}(W \log p + b)",
    summary="Dirichlet calibration with penalties on the off-diagonal weights and on the offsets (ODIR), whose strengths are found by cross-validation.",
    preset={"regularisation": "odir"},
    left_out=reasons_to_leave_out.odir(for_logits=False),
)
@recalibrator(
    key="dirichlet",
    label="Dirichlet calibration",
    family="Parametric",
    accuracy_preserving=False,
    needs="log-probabilities",
    reference="Kull et al. 2019",
    formula=r"\mathrm{softmax}(W \log p + b)",
    preset={"regularisation": "l2"},
    left_out=reasons_to_leave_out.many_parameters,
    mixed_up_to=20,
)
class DirichletCalibration(LinearMaps):
    """A linear map of all log-probabilities, fitted by maximum likelihood: the form that follows if the scores in each class are Dirichlet-distributed.

    Parameters and attributes are those of `MatrixScaling`; the penalty strengths are in units of log-probabilities.
    """

    in_units_of_scores = False
