"""p-values of many tests, adjusted to control the false discovery rate."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from calviz.core.arrays import FloatArray


def benjamini_hochberg(p: npt.ArrayLike) -> FloatArray:
    """Adjusted p-values, shape (T,): the smallest false discovery rate at which each of T tests is a discovery.

    Parameters
    ----------
    p : array_like, shape (T,)
        p-values, in [0, 1].

    Notes
    -----
    Same as ``scipy.stats.false_discovery_control``, but importing scipy.stats takes half a second, for which the first page of a
    server would wait.

    References
    ----------
    Benjamini & Hochberg 1995, section 3.1: the smallest of ``T p_(j) / j`` over the ranks j from that of the test upwards.
    """
    values = np.asarray(p, dtype=np.float64)
    order = np.argsort(values)[::-1]
    tests = values.size
    adjusted = np.empty(tests)
    adjusted[order] = np.minimum.accumulate(values[order] * tests / np.arange(tests, 0, -1))
    return np.minimum(adjusted, 1.0)
