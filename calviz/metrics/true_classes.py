"""Over- and underconfidence by true class: the family of Ao et al. 2023.

"Class k" here means the rows whose true label is k, scored by the top label. That is not the
one-vs-rest reduction of `calviz.metrics.classwise`.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray
from calviz.numerics.safe_division import quotient
from calviz.sample.true_classes import TrueClassErrors, true_class_errors
from calviz.specs.metric import metric

_by_class = partial(
    metric,
    family="Over- and underconfidence",
    view=true_class_errors,
    tail="two-sided",
)
_size = partial(_by_class, direction="lower", bounds=(0.0, 1.0), interval="inverted")
_signed = partial(_by_class, direction="zero", bounds=(-1.0, 1.0))
_one_sided = partial(_by_class, interval="half-inverted")
_positive = partial(_one_sided, direction="lower", bounds=(0.0, 1.0))
_negative = partial(_one_sided, direction="higher", bounds=(-1.0, 0.0))
# Neither more nor fewer overconfident classes are better in themselves (section 6 of the paper).
_share_of_classes = partial(_by_class, direction="none", bounds=(0.0, 1.0))

#: An MCS of at most this size counts as 0, as sums of equal numbers may differ in their last digits.
ZERO = 1e-12


def _share(view: TrueClassErrors) -> FloatArray:
    return np.asarray(view.rows / view.rows.sum(axis=-1, keepdims=True))


def _over(view: TrueClassErrors) -> BoolArray:
    return (view.rows > 0) & (view.mcs > ZERO)


def _under(view: TrueClassErrors) -> BoolArray:
    return (view.rows > 0) & (view.mcs < -ZERO)


def _fraction(chosen: BoolArray, view: TrueClassErrors) -> FloatArray:
    return np.asarray(chosen.sum(axis=-1) / (view.rows > 0).sum(axis=-1))


def _mean_over(chosen: BoolArray, values: FloatArray) -> FloatArray:
    return quotient((values * chosen).sum(axis=-1), chosen.sum(axis=-1))


@_size(
    key="wsece",
    unit="points",
    label="wsECE",
    formula=r"\sum_k \frac{n_k}{N} \mathrm{ECE}_k",
    reference="Obadinma et al. 2021; Ao et al. 2023, section 3",
)
def wsece(view: TrueClassErrors) -> FloatArray:
    """ECE of the rows of each true class, averaged over the classes weighted by their rows.

    Errors of shape (..., K) give values of shape (...).
    """
    return np.asarray((_share(view) * view.ece).sum(axis=-1))


@_size(
    key="msece",
    unit="points",
    label="MSECE",
    formula=r"\frac1K \sum_k \mathrm{ECE}_k",
    reference="Obadinma et al. 2021; Ao et al. 2023, section 3",
)
def msece(view: TrueClassErrors) -> FloatArray:
    """ECE of the rows of each true class, averaged over the classes that have rows.

    Errors of shape (..., K) give values of shape (...).
    """
    return _mean_over(view.rows > 0, view.ece)


@_size(
    key="cece",
    unit="points",
    label="CECE",
    formula=r"\frac{\sum_k \mathrm{ECE}_k^2}{\sum_k \mathrm{ECE}_k}",
    reference="Obadinma et al. 2021; Ao et al. 2023, section 3",
)
def cece(view: TrueClassErrors) -> FloatArray:
    """Contraharmonic mean of the ECE of each true class: classes with large errors weigh more.

    Errors of shape (..., K) give values of shape (...).
    """
    return quotient((view.ece**2).sum(axis=-1), view.ece.sum(axis=-1), otherwise=0.0)


@_positive(
    key="wsmcs_over",
    unit="points",
    label="wsMCS+",
    formula=r"\sum_{k:\,\mathrm{MCS}_k > 0} \frac{n_k}{N} \mathrm{MCS}_k",
    reference="Ao et al. 2023, eq. 6",
)
def wsmcs_over(view: TrueClassErrors) -> FloatArray:
    """MCS of the overconfident true classes, weighted by their rows.

    Errors of shape (..., K) give values of shape (...).
    """
    return np.asarray((_share(view) * view.mcs * _over(view)).sum(axis=-1))


@_negative(
    key="wsmcs_under",
    unit="points",
    label="wsMCS-",
    formula=r"\sum_{k:\,\mathrm{MCS}_k < 0} \frac{n_k}{N} \mathrm{MCS}_k",
    reference="Ao et al. 2023, eq. 7",
)
def wsmcs_under(view: TrueClassErrors) -> FloatArray:
    """MCS of the underconfident true classes, weighted by their rows (0 or negative).

    Errors of shape (..., K) give values of shape (...).
    """
    return np.asarray((_share(view) * view.mcs * _under(view)).sum(axis=-1))


@_signed(
    key="wsmcs",
    unit="points",
    label="wsMCS",
    formula=r"\frac{k^+}{K} \mathrm{wsMCS}^+ + \frac{k^-}{K} \mathrm{wsMCS}^-",
    reference="Ao et al. 2023, eq. 8",
)
def wsmcs(view: TrueClassErrors) -> FloatArray:
    """Weighted subset miscalibration score: wsMCS+ and wsMCS- weighted by the shares of over- and underconfident classes; K counts the classes with rows.

    Errors of shape (..., K) give values of shape (...).
    """
    over = _fraction(_over(view), view) * wsmcs_over(view)
    return over + _fraction(_under(view), view) * wsmcs_under(view)


@_positive(
    key="over_mcs",
    unit="points",
    label="OC MCS",
    undefined="undefined: on no class is the confidence above the accuracy.",
    formula=r"\frac{1}{k^+} \sum_{k:\,\mathrm{MCS}_k > 0} \mathrm{MCS}_k",
    reference="Ao et al. 2023, table 2",
)
def over_mcs(view: TrueClassErrors) -> FloatArray:
    """Mean MCS of the overconfident true classes; undefined where there are none.

    Errors of shape (..., K) give values of shape (...).
    """
    return _mean_over(_over(view), view.mcs)


@_negative(
    key="under_mcs",
    unit="points",
    label="UC MCS",
    undefined="undefined: on no class is the confidence below the accuracy.",
    formula=r"\frac{1}{k^-} \sum_{k:\,\mathrm{MCS}_k < 0} \mathrm{MCS}_k",
    reference="Ao et al. 2023, table 2",
)
def under_mcs(view: TrueClassErrors) -> FloatArray:
    """Mean MCS of the underconfident true classes (negative); undefined where there are none.

    Errors of shape (..., K) give values of shape (...).
    """
    return _mean_over(_under(view), view.mcs)


@_share_of_classes(
    key="over_share",
    unit="percent",
    label="Share of overconfident classes",
    formula=r"k^+ / K",
    reference="Ao et al. 2023, table 2",
)
def over_share(view: TrueClassErrors) -> FloatArray:
    """Share of the classes with rows whose mean confidence is above their accuracy, whether beyond noise or not.

    Errors of shape (..., K) give values of shape (...).
    """
    return _fraction(_over(view), view)


@_share_of_classes(
    key="under_share",
    unit="percent",
    label="Share of underconfident classes",
    formula=r"k^- / K",
    reference="Ao et al. 2023, table 2",
)
def under_share(view: TrueClassErrors) -> FloatArray:
    """Share of the classes with rows whose mean confidence is below their accuracy, whether beyond noise or not.

    Errors of shape (..., K) give values of shape (...).
    """
    return _fraction(_under(view), view)
