"""Shared kernels: reductions, binning, cumulative sums, resampling."""
