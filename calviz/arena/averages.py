"""Means over experiments, then over benchmarks, and their bootstrap over data sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.results.arena import Experiment
from calviz.results.metric_result import Interval
from calviz.sample.error_bars import LEVEL

#: A benchmark with fewer data sets is resampled by experiment, as CalArena does for images: draws of a handful
#: of units are too coarse.
FEWEST_DATA_SETS = 8
RESAMPLES = 1_000


@dataclass(frozen=True, eq=False)
class Benchmark:
    """A benchmark: its experiments and their resampling units.

    Attributes
    ----------
    rows : ndarray of int, shape (m,)
        Indices of its experiments.
    units : ndarray of int, shape (m,)
        Resampling unit of each, from 0: its data set, or the experiment itself.
    by : str
        Kind of unit: "data sets" or "experiments".
    """

    rows: IntArray
    units: IntArray
    by: str


@dataclass(frozen=True, eq=False)
class Averages:
    """Means over n experiments.

    Attributes
    ----------
    groups : tuple of Benchmark
    size : int
        Number of experiments, n.
    """

    groups: tuple[Benchmark, ...]
    size: int

    @classmethod
    def over(cls, experiments: Sequence[Experiment], *, pooled: bool = False) -> Averages:
        """Group experiments by benchmark, or put all into one group if `pooled`."""
        named: dict[str, list[int]] = {}
        for at, experiment in enumerate(experiments):
            named.setdefault("" if pooled else experiment.benchmark, []).append(at)
        groups = []
        for rows in named.values():
            sets = [(experiments[i].benchmark, experiments[i].dataset) for i in rows]
            codes = {name: code for code, name in enumerate(dict.fromkeys(sets))}
            few = len(codes) < FEWEST_DATA_SETS
            units = np.arange(len(rows)) if few else np.array([codes[name] for name in sets])
            groups.append(Benchmark(np.array(rows), units, "experiments" if few else "data sets"))
        return cls(tuple(groups), len(experiments))

    @property
    def units(self) -> str:
        """Kind of resampling units, in words."""
        kinds = sorted({group.by for group in self.groups})
        return kinds[0] if len(kinds) == 1 else "data sets, or experiments where these are few"

    def mean(self, values: FloatArray, counts: FloatArray | None = None) -> FloatArray:
        """Return the mean within each group, then over the groups that have a value.

        Parameters
        ----------
        values : ndarray, shape (n, K)
            Entries that are nan are ignored.
        counts : ndarray, shape (B, n), optional
            How often each experiment was drawn; if left out, once.

        Returns
        -------
        ndarray, shape (K,) or (B, K)
        """
        drawn = np.ones((1, self.size)) if counts is None else counts
        has_value = ~np.isnan(values)
        total = np.zeros((drawn.shape[0], values.shape[1]))
        groups = np.zeros_like(total)
        for group in self.groups:
            weight = drawn[:, group.rows]
            size = weight @ has_value[group.rows].astype(np.float64)
            summed = np.where(has_value[group.rows], values[group.rows], 0.0)
            with np.errstate(
                invalid="ignore"
            ):  # 0 times infinity: an infinite loss that was not drawn
                part = weight @ summed
            counted = size > 0
            total += np.where(counted, part / np.where(counted, size, 1.0), 0.0)
            groups += counted
        means = np.where(groups > 0, total / np.maximum(groups, 1), np.nan)
        return means if counts is not None else means[0]

    def weights(self, counts: FloatArray | None = None) -> FloatArray:
        """Return weights of the experiments, equal in sum for every group; they add up to n.

        Parameters
        ----------
        counts : ndarray, shape (B, n), optional

        Returns
        -------
        ndarray, shape (n,) or (B, n)
        """
        drawn = np.ones((1, self.size)) if counts is None else counts
        weights = np.zeros_like(drawn)
        for group in self.groups:
            part = drawn[:, group.rows]
            weights[:, group.rows] = part / part.sum(axis=1, keepdims=True)
        weights *= self.size / len(self.groups)
        return weights if counts is not None else weights[0]

    def draw(self, rng: np.random.Generator, resamples: int = RESAMPLES) -> FloatArray:
        """Bootstrap the units within every group, and return how often each experiment is drawn.

        Returns
        -------
        ndarray, shape (resamples, n)
        """
        counts = np.zeros((resamples, self.size))
        for group in self.groups:
            number = int(group.units.max()) + 1
            drawn = rng.multinomial(number, np.full(number, 1 / number), size=resamples)
            counts[:, group.rows] = drawn[:, group.units]
        return counts

    @property
    def can_vary(self) -> bool:
        """Whether resampling makes a difference: some group has two units or more."""
        return any(group.units.max() > 0 for group in self.groups)


def intervals(values: FloatArray, drawn: FloatArray) -> list[Interval | None]:
    """Return 95 % percentile intervals, extended to contain the values; None without a finite value or draws.

    Parameters
    ----------
    values : ndarray, shape (K,)
    drawn : ndarray, shape (B, K)
    """
    result: list[Interval | None] = []
    for value, column in zip(values, drawn.T, strict=True):
        finite = column[np.isfinite(column)]
        if finite.size < 2 or not np.isfinite(value):
            result.append(None)
            continue
        low, high = np.quantile(finite, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
        result.append(Interval(min(float(low), float(value)), max(float(high), float(value))))
    return result
