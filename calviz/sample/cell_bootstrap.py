"""Bootstrap of sums per cell, which draws from the cells instead of the rows."""

from __future__ import annotations

import numpy as np

from calviz.core.arrays import FloatArray, IntArray


def random_rows(rng: np.random.Generator, n: int, size: int) -> IntArray:
    """Random integers from 0 to n - 1, uniform, shape (size,).

    Multiplies random 32-bit integers, which is four times as fast as ``rng.integers``; the relative difference
    between the probabilities of two numbers is below n / 2^32.
    """
    if n > 1 << 24:
        return rng.integers(n, size=size)
    wide = rng.integers(1 << 32, size=size, dtype=np.uint32).astype(np.uint64)
    wide *= np.uint64(n)
    wide >>= np.uint64(32)
    return wide.view(np.int64)


def resample_cells(
    rng: np.random.Generator, cells: FloatArray, resamples: int
) -> tuple[FloatArray, FloatArray]:
    """Rows and totals per cell of samples drawn with replacement.

    The numbers of rows are multinomial, exactly as if rows were drawn. Given its number of rows, the total of a
    cell is drawn from a normal distribution with the cell's mean and variance: the mean and variance of every
    sum are exact, higher moments only in the part that comes from differences between cells.

    Parameters
    ----------
    rng : numpy.random.Generator
    cells : ndarray of float64, shape (3, C)
        Number of rows, and total and total of squares of a quantity, per cell.
    resamples : int
        B, the number of samples to draw.

    Returns
    -------
    rows, total : ndarray of float64, shape (B, C)
    """
    # Every cell takes equally long, so leave out empty ones.
    filled = np.flatnonzero(cells[0])
    rows, total, squares = cells[:, filled]
    mean = total / rows
    spread = np.sqrt(np.maximum(squares / rows - mean**2, 0))
    drawn = rng.multinomial(int(rows.sum()), rows / rows.sum(), size=resamples).astype(np.float64)
    totals = rng.standard_normal(drawn.shape)
    totals *= np.sqrt(drawn)
    totals *= spread
    totals += drawn * mean
    if filled.size == cells.shape[1]:
        return drawn, totals
    out = np.zeros((2, resamples, cells.shape[1]))
    out[:, :, filled] = drawn, totals
    return out[0], out[1]


def resample_rows(rng: np.random.Generator, n: int, resamples: int) -> FloatArray:
    """Number of times each of n rows occurs in each sample drawn with replacement, shape (B, n)."""
    place = rng.integers(n, size=(resamples, n))
    place += np.arange(0, resamples * n, n)[:, None]
    times = np.bincount(place.ravel(), minlength=resamples * n)
    return times.reshape(resamples, n).astype(np.float64)
