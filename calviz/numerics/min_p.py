"""p-values of several tests, adjusted for their number by means of their shared draws."""

from __future__ import annotations

import numpy as np

from calviz.core.arrays import FloatArray


def westfall_young(
    observed: FloatArray, drawn: FloatArray, weights: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Unadjusted and adjusted p-values by the weighted step-down min-p method.

    Parameters
    ----------
    observed : ndarray, shape (T,)
        Statistics of T tests; the larger, the more unusual.
    drawn : ndarray, shape (T, B)
        The same under the null hypothesis; column b holds the T statistics of one draw, so that tests that agree
        are hardly counted twice.
    weights : ndarray, shape (T,)
        A test of weight w is judged as if its p-value were p / w.

    Returns
    -------
    p, adjusted : ndarray, shape (T,)
        Both are multiples of 1 / (B + 1). Under the null hypothesis, the probability that any adjusted p-value is at most a
        is at most a.

    References
    ----------
    Westfall & Young 1993, algorithm 2.8 (step-down min-p); the sample itself counts as one of the draws, which makes
    the test exact (Davison & Hinkley 1997, section 4.2).
    """
    statistics = np.column_stack([observed, drawn])
    count = statistics.shape[1]
    ordered = np.sort(statistics, axis=1)
    p = np.empty(statistics.shape)
    for t, row in enumerate(statistics):
        # Tolerates the rounding of another order of summation.
        below = row - 1e-9 * (1e-3 + np.abs(row))
        p[t] = (count - np.searchsorted(ordered[t], below, side="left")) / count
    weighted = p / weights[:, None]
    order = np.argsort(weighted[:, 0], kind="stable")
    adjusted = np.empty(observed.shape)
    least = np.full(count, np.inf)
    for t in order[::-1]:
        np.minimum(least, weighted[t], out=least)
        adjusted[t] = np.count_nonzero(least <= weighted[t, 0] * (1 + 1e-12)) / count
    adjusted[order] = np.maximum.accumulate(adjusted[order])
    return p[:, 0], np.maximum(adjusted, p[:, 0])
