"""Binning schemes and the number of bins."""

from __future__ import annotations

from typing import Literal

Scheme = Literal["equal-width", "equal-mass", "sturges"]

#: Default number of bins.
DEFAULT_BINS = 15


def sturges_bins(n: int) -> int:
    """Sturges' data-dependent number of bins, ceil(log2 n) + 1 (Zhang 2020, section 5.1)."""
    # Exact for every n, where a floating-point logarithm may round across a whole number.
    return max(n - 1, 0).bit_length() + 1


def bins_used(n: int, bins: int, scheme: Scheme) -> int:
    """Number of bins for n rows: Sturges' rule for the scheme "sturges", otherwise the requested `bins`."""
    return sturges_bins(n) if scheme == "sturges" else bins
