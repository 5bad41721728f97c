"""The result table of an arena: every method in every experiment, and the experiments themselves."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray, IntArray, read_only
from calviz.core.errors import InputError
from calviz.core.extra_packages import needs
from calviz.specs.recalibrator import UNCALIBRATED

if TYPE_CHECKING:
    import pandas as pd

#: Keys of the proper scores that an arena judges by; lower is better.
SCORES = ("brier", "nll")


@dataclass(frozen=True, order=True)
class Experiment:
    """One model on one data set, whose probabilities are calibrated on some rows and judged on others.

    Attributes
    ----------
    benchmark : str
        The collection it belongs to; benchmarks have equal weight, however many experiments they have.
    dataset : str
        Experiments on the same data set are dependent and are resampled together.
    model : str
    rows : int
        Number of calibration rows.
    evaluation_rows : int
        Number of evaluation rows.
    classes : int
    """

    benchmark: str
    dataset: str
    model: str
    rows: int
    evaluation_rows: int
    classes: int

    @property
    def name(self) -> tuple[str, str, str]:
        """Unique name: benchmark, data set and model."""
        return self.benchmark, self.dataset, self.model


@dataclass(frozen=True)
class MethodScore:
    """The result of one method in one experiment.

    Attributes
    ----------
    method : str
    scores : mapping of str to float
        By the keys of `SCORES`; nan if it failed.
    seconds : float
        Time of the fit and of its application.
    reason : str or None
        Why it failed.
    """

    method: str
    scores: Mapping[str, float] = field(default_factory=dict)
    seconds: float = math.nan
    reason: str | None = None


@dataclass(frozen=True, eq=False)
class ResultTable:
    """Scores of methods (columns) in experiments (rows).

    Attributes
    ----------
    experiments : tuple of Experiment, n of them
    methods : tuple of str, K of them
    scores : mapping of str to ndarray, shape (n, K)
        By the keys of `SCORES`; nan where a method has no score.
    seconds : ndarray, shape (n, K)
    entered : ndarray of bool, shape (n, K)
        Whether a method takes part in an experiment; without a score it then beats no other method.
    baseline : str or None
        The method without calibration, if there is one.
    reasons : mapping of (int, str) to str
        Why a method failed, by index of the experiment and method.
    """

    experiments: tuple[Experiment, ...]
    methods: tuple[str, ...]
    scores: Mapping[str, FloatArray]
    seconds: FloatArray
    entered: BoolArray
    baseline: str | None = None
    reasons: Mapping[tuple[int, str], str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        results: Iterable[tuple[Experiment, Iterable[MethodScore]]],
        *,
        baseline: str | None = UNCALIBRATED,
        methods: Sequence[str] | None = None,
    ) -> Self:
        """Combine results into a table; an experiment may come in several parts.

        Parameters
        ----------
        results : iterable of (Experiment, iterable of MethodScore)
        baseline : str, optional
            Name of the method without calibration.
        methods : sequence of str, optional
            Only these methods, in this order; if left out, all, in order of first appearance.

        Raises
        ------
        InputError
            If there are no results, or a result occurs twice with different scores.
        """
        merged, names = _merged(results, methods)
        order = tuple(names) if methods is None else tuple(m for m in methods if m in names)
        if not order:
            raise InputError("there are no results", remedy="give files that hold some")
        shape = (len(merged), len(order))
        scores = {key: np.full(shape, math.nan) for key in SCORES}
        seconds, entered = np.full(shape, math.nan), np.zeros(shape, dtype=np.bool_)
        reasons: dict[tuple[int, str], str] = {}
        for i, (_, by_method) in enumerate(merged):
            for j, method in enumerate(order):
                if (result := by_method.get(method)) is None:
                    continue
                entered[i, j], seconds[i, j] = True, result.seconds
                for key in SCORES:
                    scores[key][i, j] = result.scores.get(key, math.nan)
                if result.reason:
                    reasons[i, method] = result.reason
        return cls(
            tuple(experiment for experiment, _ in merged),
            order,
            {key: read_only(value) for key, value in scores.items()},
            read_only(seconds),
            read_only(entered),
            baseline if baseline in order else None,
            reasons,
        )

    def __len__(self) -> int:
        return len(self.experiments)

    def take(
        self, rows: Sequence[int] | IntArray | BoolArray, methods: Sequence[str] | None = None
    ) -> Self:
        """Return the table of some experiments and, optionally, some methods; methods that take part in none of them are dropped."""
        chosen = np.asarray(rows)
        chosen = np.flatnonzero(chosen) if chosen.dtype == np.bool_ else chosen.astype(np.intp)
        columns = [
            j
            for j, m in enumerate(self.methods)
            if (methods is None or m in methods) and self.entered[chosen, j].any()
        ]
        part = np.ix_(chosen, np.array(columns, dtype=np.intp))
        names = tuple(self.methods[j] for j in columns)
        new = {int(old): at for at, old in enumerate(chosen)}
        return type(self)(
            tuple(self.experiments[i] for i in chosen),
            names,
            {key: read_only(value[part]) for key, value in self.scores.items()},
            read_only(self.seconds[part]),
            read_only(self.entered[part]),
            self.baseline if self.baseline in names else None,
            {(new[i], m): why for (i, m), why in self.reasons.items() if i in new and m in names},
        )

    def results(self) -> Iterable[tuple[Experiment, tuple[MethodScore, ...]]]:
        """Yield the results by experiment; the inverse of `of`."""
        for i, experiment in enumerate(self.experiments):
            yield (
                experiment,
                tuple(
                    MethodScore(
                        method,
                        {key: float(self.scores[key][i, j]) for key in SCORES},
                        float(self.seconds[i, j]),
                        self.reasons.get((i, method)),
                    )
                    for j, method in enumerate(self.methods)
                    if self.entered[i, j]
                ),
            )

    def frame(self) -> pd.DataFrame:
        """Return a table with one row per experiment and method."""
        needs("pandas")
        import pandas as pd

        rows: list[dict[str, Any]] = [
            {
                "benchmark": e.benchmark,
                "dataset": e.dataset,
                "model": e.model,
                "cal_size": e.rows,
                "test_size": e.evaluation_rows,
                "n_classes": e.classes,
                "method": score.method,
                **score.scores,
                "seconds": score.seconds,
                "reason": score.reason,
            }
            for e, scores in self.results()
            for score in scores
        ]
        return pd.DataFrame(rows)


def _merged(
    results: Iterable[tuple[Experiment, Iterable[MethodScore]]], methods: Sequence[str] | None
) -> tuple[list[tuple[Experiment, dict[str, MethodScore]]], dict[str, None]]:
    """Bring the parts of each experiment together; also return the methods in order of first appearance."""
    by_name: dict[tuple[str, str, str], tuple[Experiment, dict[str, MethodScore]]] = {}
    names: dict[str, None] = {}
    for experiment, scores_of_methods in results:
        first, by_method = by_name.setdefault(experiment.name, (experiment, {}))
        if first != experiment:
            raise InputError(
                f"{_place(experiment)} has {first.rows:,} calibration rows and {first.classes:,} classes in one place, "
                f"{experiment.rows:,} and {experiment.classes:,} in another",
                remedy="give results of the same experiments",
            )
        for score in scores_of_methods:
            if methods is not None and score.method not in methods:
                continue
            before = by_method.get(score.method)
            if before is not None and not _same(before, score):
                raise InputError(
                    f"'{score.method}' has two different results for {_place(experiment)}",
                    remedy="give each result once",
                )
            by_method[score.method] = score
            names.setdefault(score.method)
    return list(by_name.values()), names


def _place(experiment: Experiment) -> str:
    return f"'{experiment.model}' on '{experiment.dataset}' ({experiment.benchmark})"


def _same(first: MethodScore, second: MethodScore) -> bool:
    # Times are not compared: they differ when a run is repeated.
    pairs = ((first.scores.get(k, math.nan), second.scores.get(k, math.nan)) for k in SCORES)
    return all(a == b or (math.isnan(a) and math.isnan(b)) for a, b in pairs)
