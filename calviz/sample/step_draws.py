"""Random rows and hits of steps: multinomial and binomial numbers, many at a time."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from scipy.special import binom, pdtr

from calviz.core.arrays import BoolArray, FloatArray, IntArray
from calviz.sample.cell_bootstrap import random_rows

#: Array entries that are processed at a time, so that they stay in the cache.
BLOCK_ENTRIES = 1 << 17
#: Hits are drawn with a table up to the first number of rows per step, rows up to the second number of rows per cell.
TABLE_TRIALS, TABLE_ROWS = 64, 32
#: From this variance on, a number is drawn as a rounded normal corrected for its skewness, which is then below 0.2.
NORMAL_VARIANCE = 25.0


def multinomial(rng: np.random.Generator, cells: FloatArray, resamples: int) -> IntArray:
    """Rows per cell of samples drawn with replacement.

    Parameters
    ----------
    rng : numpy.random.Generator
    cells : ndarray, shape (C,)
        Rows per cell.
    resamples : int

    Returns
    -------
    ndarray of int, shape (resamples, C)
        Many cells with many rows are only nearly multinomial: each is drawn as a rounded normal with its mean, variance and
        skewness, and so that the total is the number of rows.
    """
    used = np.flatnonzero(cells)
    n = int(cells.sum())
    if n >= 100 and cells.max() <= TABLE_ROWS:
        return _poisson_and_rest(rng, cells, n, resamples)
    if used.size**2 > n > 100 * used.size:
        # Takes half the time of `rng.multinomial`, which repeats its setup for every number but is faster for a few cells.
        return _poisson_and_rest(rng, cells, n, resamples)
    if n > 8 * used.size:
        out = np.zeros((resamples, cells.size), dtype=np.int64)
        out[:, used] = rng.multinomial(n, cells[used] / n, size=resamples)
        return out
    cell_of_row = np.repeat(used, cells[used].astype(np.intp))
    out = np.empty((resamples, cells.size), dtype=np.int64)
    for drawn in out:
        drawn[:] = np.bincount(cell_of_row[random_rows(rng, n, n)], minlength=cells.size)
    return out


def _poisson_and_rest(
    rng: np.random.Generator, cells: FloatArray, n: int, resamples: int
) -> IntArray:
    """Rows per cell from independent Poisson numbers, which are multinomial given their total; shape (resamples, C).

    They are drawn for slightly fewer than n rows, and drawn again if their total exceeds n; the few rows that are missing
    are drawn one by one.
    """
    mean = cells * (1 - (5 if cells.max() <= TABLE_ROWS else 2.5) / math.sqrt(n))
    wide = mean >= max(NORMAL_VARIANCE, TABLE_ROWS)
    normal = _RoundedNormal(mean[wide], mean[wide], np.ones(int(wide.sum())))
    upto = _poisson_table(mean[~wide])

    def draw(part: IntArray) -> None:
        _fill(part, wide, normal, rng, upto)

    number = np.arange(cells.size, dtype=np.min_scalar_type(cells.size))
    cell_of_row = np.repeat(number, cells.astype(np.intp))
    out = np.empty((resamples, cells.size), dtype=np.int64)
    block = max(1, BLOCK_ENTRIES // cells.size)
    for start in range(0, resamples, block):
        part = out[start : start + block]
        draw(part)
        missing = n - part.sum(axis=1)
        while (over := np.flatnonzero(missing < 0)).size:
            again = np.empty_like(part[over])
            draw(again)
            part[over] = again
            missing[over] = n - again.sum(axis=1)
        place = cell_of_row[random_rows(rng, n, int(missing.sum()))].astype(np.intp)
        place += np.repeat(np.arange(missing.size) * cells.size, missing)
        part += np.bincount(place, minlength=part.size).reshape(part.shape)
    return out


def _poisson_table(mean: FloatArray) -> FloatArray:
    """Distribution functions of Poisson numbers at 0, 1, ... until all of them are 1, shape (m, C)."""
    most = mean.max(initial=0.0)
    k = np.arange(int(most + 6 * math.sqrt(most) + 12))
    upto = pdtr(k[:, None], mean).astype(np.float32)
    return np.asarray(upto[(upto < 1).any(axis=1)])


def binomial(
    rng: np.random.Generator, count: FloatArray, p: FloatArray, resamples: int
) -> FloatArray:
    """Hits per step: binomial, for many rows nearly so (a rounded normal with the same mean, variance and skewness).

    Parameters
    ----------
    rng : numpy.random.Generator
    count, p : ndarray, shape (C,)
        Rows per step, and the probability of a hit.
    resamples : int

    Returns
    -------
    ndarray of float64, shape (resamples, C)
    """
    out = np.zeros((resamples, p.size))
    most = int(count.max())
    block = max(1, BLOCK_ENTRIES // p.size)
    parts = [out[start : start + block] for start in range(0, resamples, block)]
    if most > TABLE_TRIALS:
        trials = count.astype(np.int64)
        variance = count * p * (1 - p)
        wide = variance >= NORMAL_VARIANCE
        normal = _RoundedNormal((count * p)[wide], variance[wide], (1 - 2 * p)[wide])
        for part in parts:
            if wide.any():
                part[:, wide] = normal.draw(rng, part.shape[0])
            if not wide.all():
                part[:, ~wide] = rng.binomial(
                    trials[~wide], p[~wide], (part.shape[0], int((~wide).sum()))
                )
        return out
    # Few rows per step: one uniform number against a table of the distribution functions.
    k = np.arange(most)[:, None]
    chance = binom(count, k) * p**k * (1 - p) ** np.maximum(count - k, 0)
    upto = np.cumsum(chance, axis=0).astype(np.float32)
    upto[k >= count] = 1  # exactly, so that no step has more hits than rows
    for part in parts:
        part[:] = _count_above(rng, upto, part.shape)
    return out


class _RoundedNormal:
    """Random integers for each cell with (nearly) a given mean, variance and skewness.

    Parameters
    ----------
    mean, variance, skew_ratio : ndarray, shape (C,)
        `skew_ratio` is the third cumulant divided by the variance: 1 for a Poisson number, 1 - 2p for a binomial one.

    Notes
    -----
    Cornish and Fisher's expansion ``mean + sd z + skew_ratio (z^2 - 1) / 6``, whose variance is too large by ``skew_ratio^2 / 18``; rounding
    adds another 1 / 12. Both are subtracted from the variance first.
    """

    def __init__(self, mean: FloatArray, variance: FloatArray, skew_ratio: FloatArray) -> None:
        # In single precision as long as it can tell integers apart.
        exact = mean.max(initial=0.0) < 1 << 20
        self.size = mean.size
        self._mean = (mean - skew_ratio / 6).astype(np.float32 if exact else np.float64)
        self._spread = np.sqrt(variance - 1 / 12 - skew_ratio**2 / 18).astype(np.float32)
        self._skew = (skew_ratio / 6).astype(np.float32)

    def draw(self, rng: np.random.Generator, resamples: int) -> FloatArray:
        """Draw the integers, shape (resamples, C)."""
        z = rng.standard_normal((resamples, self.size), dtype=np.float32)
        rows = z * self._skew
        rows += self._spread
        rows *= z
        rows = np.add(rows, self._mean)
        return np.asarray(np.rint(rows, out=rows))


def _fill(
    out: IntArray,
    wide: BoolArray,
    normal: _RoundedNormal,
    rng: np.random.Generator,
    upto: FloatArray,
) -> None:
    """Fill `out`: cells of large variance (`wide`) with rounded normals, the others from the table."""
    if wide.all():
        out[:] = normal.draw(rng, out.shape[0])
    elif not wide.any():
        out[:] = _count_above(rng, upto, out.shape)
    else:
        out[:, wide] = normal.draw(rng, out.shape[0])
        out[:, ~wide] = _count_above(rng, upto, (out.shape[0], upto.shape[1]))


def _count_above(
    rng: np.random.Generator, upto: FloatArray, shape: tuple[int, ...]
) -> npt.NDArray[np.uint8]:
    """Draw numbers by inversion: how many of the values ``upto[k]`` a uniform number reaches."""
    uniform = rng.random(shape, dtype=np.float32)
    out = np.zeros(shape, dtype=np.uint8)
    for bound in upto:
        out += (uniform >= bound).view(np.uint8)
    return out
