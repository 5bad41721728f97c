"""Confidence intervals of a proportion."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calviz.core.arrays import FloatArray


def clopper_pearson(
    hits: npt.ArrayLike, rows: npt.ArrayLike, *, level: float = 0.95
) -> tuple[FloatArray, FloatArray]:
    """Exact binomial confidence interval of a share of hits.

    Parameters
    ----------
    hits, rows : array_like, shape (M,)
        Hits among rows. Without rows the interval is all of [0, 1].
    level : float
        At least this share of such intervals contains the true probability.

    Returns
    -------
    low, high : ndarray of float64, shape (M,)

    References
    ----------
    Clopper & Pearson 1934: the probabilities under which at least, or at most, this number of hits
    occurs with probability (1 - level) / 2, as quantiles of the beta distribution.
    """
    # Imported here, so that only callers who need an interval wait for SciPy.
    from scipy.special import betaincinv

    k, n = np.broadcast_arrays(np.asarray(hits, np.float64), np.asarray(rows, np.float64))
    tail = (1 - level) / 2
    low, high = np.zeros(k.shape), np.ones(k.shape)
    some, not_all = k > 0, k < n
    low[some] = betaincinv(k[some], (n - k)[some] + 1, tail)
    high[not_all] = betaincinv(k[not_all] + 1, (n - k)[not_all], 1 - tail)
    return low, high
