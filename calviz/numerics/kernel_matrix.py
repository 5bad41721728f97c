"""The squared kernel calibration error as a U-statistic on a capped number of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np
from scipy.spatial.distance import cdist

from calviz.core.arrays import FloatArray
from calviz.core.errors import OptionError
from calviz.numerics.losses import full_predictions
from calviz.numerics.sample import Sample

Kernel = Literal["laplacian", "rbf"]

#: Seed of the choice of rows above the cap.
ROWS_SEED = 0


@dataclass(frozen=True, eq=False)
class PairwiseErrors:
    """``h_ij = k(p_i, p_j) (e_i - p_i) . (e_j - p_j)`` with a diagonal of zeros, and its mean off it.

    Attributes
    ----------
    value : ndarray, shape (...)
        Mean of the off-diagonal entries.
    pairs : ndarray of float64, shape (m, m)
    params : mapping
    """

    value: FloatArray
    pairs: FloatArray
    params: Mapping[str, Any] = field(default_factory=dict)

    def bootstrap(self, rng: np.random.Generator, resamples: int) -> Self:
        """Rows drawn with replacement; pairs of a row with itself never count."""
        m = self.pairs.shape[0]
        weights = rng.multinomial(m, np.full(m, 1 / m), size=resamples).astype(np.float64)
        total = np.einsum("bi,bi->b", weights @ self.pairs, weights)
        count = m**2 - (weights**2).sum(axis=1)
        return type(self)(total / count, self.pairs, self.params)

    def under_calibration(self, rng: np.random.Generator, resamples: int) -> Self:
        """Wild bootstrap: random signs give the statistic's distribution when its mean is zero."""
        m = self.pairs.shape[0]
        signs = rng.choice([-1.0, 1.0], size=(resamples, m))
        total = np.einsum("bi,bi->b", signs @ self.pairs, signs)
        return type(self)(total / (m * (m - 1)), self.pairs, self.params)


def pairwise_errors(
    sample: Sample,
    *,
    kernel: Kernel = "laplacian",
    bandwidth: float | None = None,
    max_rows: int = 1_000,
) -> PairwiseErrors:
    """All pairs of at most `max_rows` rows (drawn without replacement with a fixed seed).

    Parameters
    ----------
    sample : Sample
    kernel : {"laplacian", "rbf"}
        ``exp(-|p - q| / nu)`` or ``exp(-|p - q|^2 / (2 nu^2))``, times the identity over classes.
    bandwidth : float, optional
        nu; the median distance between the rows where left out.
    max_rows : int
        The cost is quadratic in the rows, so that it is paid on this many at the most.
    """
    data = full_predictions(sample)
    if max_rows < 2:
        raise OptionError(f"max_rows must be at least 2, got {max_rows}.")
    rows = np.arange(data.n)
    if data.n > max_rows:
        rows = np.sort(np.random.default_rng(ROWS_SEED).choice(data.n, max_rows, replace=False))
    p = data.probs[rows].astype(np.float64)
    m = rows.size
    distance = cdist(p, p)
    if bandwidth is None:
        upper = distance[np.triu_indices(m, 1)]
        bandwidth = float(np.median(upper)) if upper.size else 1.0
        bandwidth = bandwidth or 1.0
    if kernel == "laplacian":
        similarity = np.exp(-distance / bandwidth)
    else:
        similarity = np.exp(-((distance / bandwidth) ** 2) / 2)
    p[np.arange(m), data.labels[rows]] -= 1
    pairs = similarity * (p @ p.T)
    np.fill_diagonal(pairs, 0)
    value = pairs.sum() / (m * (m - 1)) if m > 1 else np.nan
    params = {"kernel": kernel, "bandwidth": bandwidth, "rows": m, "max_rows": max_rows}
    return PairwiseErrors(np.asarray(value), pairs, params)
