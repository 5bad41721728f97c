"""Strengths of penalties, found by cross-validation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.watch import checkpoint
from calviz.recalibrators.fitting.linear_scaling import LinearProblem
from calviz.recalibrators.fitting.matrix_loss import MatrixProblem
from calviz.recalibrators.fitting.minimise import minimise
from calviz.recalibrators.fitting.penalty import Penalty
from calviz.recalibrators.fitting.softmax_loss import rounding_of

#: Strengths that are looked at, the strongest first: each fit starts where the last one ended.
GRID = (1e5, 1e4, 1e3, 1e2, 1e1, 1e0, 1e-1, 1e-2)
#: Passes over the rows that one of these fits may take, and how exact it has to be.
SHORT_PASSES = 25
_LOOSE = 1e-6

#: One strength, or several.
S = TypeVar("S")


class StrengthSearch(Generic[S]):
    """The strengths of penalties with the lowest cross-validated loss, along paths of falling strength.

    Parameters
    ----------
    problem : MatrixProblem or VectorProblem
        Of all calibration rows.
    start : ndarray
        Where the first fits start.
    folds : int
    penalty : callable
        The penalty of a problem under given strengths.

    Attributes
    ----------
    losses : list of float
        Of the last path: the cross-validated mean loss of the strengths that were looked at.
    """

    def __init__(
        self,
        problem: LinearProblem,
        start: FloatArray,
        folds: int,
        penalty: Callable[[LinearProblem, S], Penalty],
    ) -> None:
        self.problem, self.penalty = problem, penalty
        folds = min(folds, problem.labels.size)  # none of them without rows
        fold_of = _folds(problem.labels, folds)
        self.fitted = [problem.of_rows(np.flatnonzero(fold_of != fold)) for fold in range(folds)]
        self.held_out = [problem.of_rows(np.flatnonzero(fold_of == fold)) for fold in range(folds)]
        for part in (*self.fitted, *self.held_out):
            # Strengths are far apart: single precision is enough to tell them apart.
            part.dtype = np.float32
        # One Hessian serves all folds and strengths: it only has to point the way.
        self.blocks = (
            problem.blocks(start)
            if isinstance(problem, MatrixProblem) and problem.in_blocks
            else None
        )
        self.reached = [start] * folds
        self.losses: list[float] = []

    def best(self, paths: Sequence[S], what: str) -> S:
        """The best of these strengths; where the loss climbs twice, weaker ones are not looked at."""
        losses = self.losses = []
        lowest, reached = np.inf, self.reached
        for at, strengths in enumerate(paths, start=1):
            self.problem.penalty = self.penalty(self.problem, strengths)
            # The inverses of the strength before are as large as the rows: they go before the next ones come.
            shared = inverse = None
            if self.blocks is not None and isinstance(self.problem, MatrixProblem):
                shared = self.problem.by_class(self.blocks)
            losses.append(0.0)
            for fold, (part, held_out) in enumerate(zip(self.fitted, self.held_out, strict=True)):
                checkpoint(
                    f"cross-validating the {what}: strength {at} of at most {len(paths)}, "
                    f"fold {fold + 1} of {len(self.fitted)}"
                )
                part.penalty = self.penalty(part, strengths)
                x = reached[fold]
                inverse = shared or part.inverse(x)
                minimum = minimise(
                    part.at,
                    x,
                    inverse,
                    tolerance=_LOOSE,
                    max_passes=SHORT_PASSES,
                    rounding=rounding_of(np.float32),
                )
                reached = [*reached[:fold], minimum.x, *reached[fold + 1 :]]
                losses[-1] += held_out.likelihood(minimum.x)[0] * held_out.n / self.problem.n
            if losses[-1] < lowest:
                # The next path starts where this one was best.
                lowest, self.reached = losses[-1], reached
            if len(losses) > 2 and losses[-1] > losses[-2] > losses[-3]:
                break
        return paths[int(np.argmin(losses))]


def _folds(labels: IntArray, folds: int) -> IntArray:
    """The fold of each row; every class is dealt out in turn."""
    order = np.argsort(labels, kind="stable")
    fold = np.empty(labels.size, dtype=np.intp)
    fold[order] = np.arange(labels.size) % folds
    return fold
