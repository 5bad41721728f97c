"""Cross-validated search for penalty strengths."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import numpy as np

from calviz.core.arrays import BoolArray, FloatArray, IntArray
from calviz.core.progress import checkpoint
from calviz.recalibrators.fitting.linear_scaling import LinearProblem
from calviz.recalibrators.fitting.matrix_loss import MatrixProblem
from calviz.recalibrators.fitting.minimise import minimise
from calviz.recalibrators.fitting.penalty import Penalty
from calviz.recalibrators.fitting.softmax_loss import rounding_of

#: Strengths that are tried, strongest first: each fit starts where the last one ended.
GRID = (1e5, 1e4, 1e3, 1e2, 1e1, 1e0, 1e-1, 1e-2)
#: Largest number of passes over the rows of one of these fits, and its tolerance.
SHORT_PASSES = 25
_LOOSE = 1e-6

#: One strength, or several.
S = TypeVar("S")


class StrengthSearch(Generic[S]):
    """Search for the penalty strengths with the lowest cross-validated loss, along paths of decreasing strength.

    Parameters
    ----------
    problem : MatrixProblem or VectorProblem
        The problem on all calibration rows.
    start : ndarray
        Starting point of the first fits.
    folds : int
    penalty : callable
        Returns the penalty of a problem with given strengths.

    Attributes
    ----------
    losses : list of float
        Cross-validated mean losses of the strengths that were tried on the last path.
    """

    def __init__(
        self,
        problem: LinearProblem,
        start: FloatArray,
        folds: int,
        penalty: Callable[[LinearProblem, S], Penalty],
    ) -> None:
        self.problem, self.penalty = problem, penalty
        self.folds = min(folds, problem.labels.size)  # no fold is empty
        self.fold_of = _folds_in_order(problem.labels, self.folds)
        # One Hessian serves all folds and strengths: it is only a preconditioner.
        self.blocks = (
            problem.blocks(start)
            if isinstance(problem, MatrixProblem) and problem.in_blocks
            else None
        )
        self.reached = [start] * self.folds
        self.losses: list[float] = []

    def best(self, paths: Sequence[S], name: str) -> S:
        """Return the best of these strengths; after the loss has risen twice in a row, weaker ones are not tried."""
        losses = self.losses = []
        lowest, reached = np.inf, self.reached
        for at, strengths in enumerate(paths, start=1):
            self.problem.penalty = self.penalty(self.problem, strengths)
            # The inverses for the previous strength are as large as the data: free them before making new ones.
            shared = inverse = None
            if self.blocks is not None and isinstance(self.problem, MatrixProblem):
                shared = self.problem.by_class(self.blocks)
            losses.append(0.0)
            for fold in range(self.folds):
                checkpoint(
                    f"cross-validating the {name}: strength {at} of at most {len(paths)}, "
                    f"fold {fold + 1} of {self.folds}"
                )
                part = self._part(self.fold_of != fold)
                part.penalty = self.penalty(part, strengths)
                x = reached[fold]
                inverse = shared or part.inverse(x)
                x = minimise(
                    part.at,
                    x,
                    inverse,
                    tolerance=_LOOSE,
                    max_passes=SHORT_PASSES,
                    rounding=rounding_of(np.float32),
                    pair_dtype=np.float32,
                ).x
                reached = [*reached[:fold], x, *reached[fold + 1 :]]
                held_out = self._part(self.fold_of == fold)
                losses[-1] += held_out.likelihood(x)[0] * held_out.n / self.problem.n
            if losses[-1] < lowest:
                # The next path starts where this one was best.
                lowest, self.reached = losses[-1], reached
            if len(losses) > 2 and losses[-1] > losses[-2] > losses[-3]:
                break
        return paths[int(np.argmin(losses))]

    def _part(self, chosen: BoolArray) -> LinearProblem:
        """Return the problem on some of the rows, by a mask of shape (n,)."""
        part = self.problem.of_rows(np.flatnonzero(chosen))
        # Strengths are far apart: single precision is enough to compare them.
        part.dtype = np.float32
        return part


def _folds_in_order(labels: IntArray, folds: int) -> IntArray:
    """Return the fold of each row; the rows of every class are dealt out in turn, in their own order."""
    order = np.argsort(labels, kind="stable")
    fold = np.empty(labels.size, dtype=np.intp)
    fold[order] = np.arange(labels.size) % folds
    return fold
