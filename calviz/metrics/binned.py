"""The binned family: gaps between mean score and share of hits, bin by bin.

Bins are right-closed, ((m - 1)/M, m/M], and the first one also holds 0 (Guo 2017, section 2). Other libraries
differ only for scores that lie on an edge: uncertainty-calibration agrees, and so do scikit-learn's
``calibration_curve`` and MAPIE except at edges that ``np.linspace`` misses by a rounding error (MAPIE counts edges, so
its 16 make 15 bins, and puts exact zeros in a bin of their own); netcal and pycalib close bins on the left;
torchmetrics adds a bin for scores of exactly 1, which visibly changes ECE² and RMSCE of saturated models.
`calviz.peers` implements the defaults of each, checked against the libraries.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.sample import cell_bounds_of_bins
from calviz.sample.bin_gaps import bin_intervals
from calviz.sample.binning import BinSums
from calviz.sample.sample import bin_sums
from calviz.specs.metric import metric

_equal_width = partial(
    metric,
    family="Binned",
    direction="lower",
    bounds=(0.0, 1.0),
    view=partial(bin_sums, scheme="equal-width"),
    interval="inverted",
)
_ECE = r"\sum_m \frac{|B_m|}{n} \left| \mathrm{conf}_m - \mathrm{acc}_m \right|"
_ECE_L2 = r"\sum_m \frac{|B_m|}{n} \left( \mathrm{conf}_m - \mathrm{acc}_m \right)^2"


@_equal_width(
    key="ece",
    tables=("fits", "methods", "models", "rivals", "drawn"),
    criterion=4,
    unit="points",
    label="ECE",
    formula=_ECE,
    reference="Guo et al. 2017, eq. 3; Naeini et al. 2015",
    bound=cell_bounds_of_bins.of_error,
)
def ece(sums: BinSums) -> FloatArray:
    """Expected calibration error: the absolute gap between mean score and share of hits, averaged over bins weighted by their rows.

    Sums of shape (..., M) give values of shape (...).

    The bins have equal width by default. The ECE of a calibrated model is above 0 too: compare it with its noise floor.
    """
    return sums.mean_gap


@_equal_width(
    key="ece_l2",
    label="ECE²",
    formula=_ECE_L2,
    reference="Zhang et al. 2020, eq. 3 with d = 2; Kumar et al. 2019",
)
def ece_l2(sums: BinSums) -> FloatArray:
    """Squared expected calibration error: like ECE, with squared gaps, so that large gaps weigh more.

    Sums of shape (..., M) give values of shape (...).
    """
    return np.asarray((sums.weight * sums.gap**2).sum(axis=-1))


@_equal_width(
    key="rmsce",
    unit="points",
    label="RMSCE",
    formula=rf"\sqrt{{{_ECE_L2}}}",
    reference="Nguyen and O'Connor 2015; Kumar et al. 2019",
)
def rmsce(sums: BinSums) -> FloatArray:
    """Root mean squared calibration error: the square root of ECE², in units of probability; never below the ECE.

    Sums of shape (..., M) give values of shape (...).
    """
    return np.sqrt(ece_l2(sums))


def _largest(sums: BinSums) -> Mapping[str, float]:
    """Return the bin with the largest gap and the exact interval of its share of hits (95 % simultaneously for all bins)."""
    index, score, low, high = bin_intervals(sums)
    at = int(np.argmax(np.abs(sums.gap[index])))
    m = int(index[at])
    return {
        "bin_low": float(sums.edges[m]),
        "bin_high": float(sums.edges[m + 1]),
        "bin_rows": float(sums.whole_rows[m]),
        "mean_score": float(score[at]),
        "hits_low": float(low[at]),
        "hits_high": float(high[at]),
    }


@_equal_width(
    key="mce",
    one_bin=True,
    unit="points",
    label="MCE",
    details=_largest,
    interval="half-inverted",
    formula=r"\max_m \left| \mathrm{conf}_m - \mathrm{acc}_m \right|",
    reference="Guo et al. 2017, eq. 5; Naeini et al. 2015",
)
def mce(sums: BinSums) -> FloatArray:
    """Maximum calibration error: the largest gap of any bin that has rows; a bin with few rows can dominate it.

    Sums of shape (..., M) give values of shape (...).

    The details name that bin, with the exact interval of its share of hits at 95 % simultaneously for all bins: the bin is
    miscalibrated if its mean score lies outside.
    """
    return np.asarray(np.abs(sums.gap).max(axis=-1))


@_equal_width(
    key="ece_equal_mass",
    unit="points",
    label="ECE (equal mass)",
    formula=_ECE,
    reference="Nixon et al. 2019; Kumar et al. 2019",
    view=partial(bin_sums, scheme="equal-mass"),
    bound=cell_bounds_of_bins.of_error,
)
def ece_equal_mass(sums: BinSums) -> FloatArray:
    """ECE over bins that hold (nearly) equally many rows each; tied scores stay in one bin.

    Sums of shape (..., M) give values of shape (...).

    uncertainty-calibration (``get_ece_em``) agrees, with and without ties. Mix-n-Match, robustness_metrics and
    torch-uncertainty split by rank and so separate ties; netcal rejects tied quantiles.
    Intervals and noise floors keep the edges found on the data.
    """
    return ece(sums)


@_equal_width(
    key="ece_sturges",
    unit="points",
    label="ECE (Sturges)",
    formula=_ECE,
    reference="Zhang et al. 2020, section 5.1; Sturges 1926",
    view=partial(bin_sums, bins=1, scheme="sturges"),
    bound=cell_bounds_of_bins.of_error,
)
def ece_sturges(sums: BinSums) -> FloatArray:
    """ECE over equal-width bins, ceil(log2 n) + 1 of them for n rows (Sturges' rule).

    Sums of shape (..., M) give values of shape (...).
    """
    return ece(sums)
