"""Why scores were refused, in sentences."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calviz.core.blocks import FloatArray
from calviz.core.errors import InputError, Repair
from calviz.core.probabilities import RENORMALISE
from calviz.data.format import Table
from calviz.data.loaded import DROP_MISSING, NAMED, PERCENT, SIGMOID, SOFTMAX, place, short
from calviz.data.roles import ScoreColumns


class Problem:
    """Checks and error messages for scores, with their location in the file.

    Parameters
    ----------
    table : Table
    scores : ScoreColumns
    array : ndarray, shape (n, K)
    original : callable
        Maps a row of `array` to its data row in the file.
    """

    def __init__(
        self, table: Table, scores: ScoreColumns, array: FloatArray, original: Callable[[int], int]
    ) -> None:
        self.table, self.scores, self.array, self.original = table, scores, array, original

    def check_logits(self) -> None:
        """Raise InputError if scores declared as logits are probabilities."""
        if self.scores.width == 1 or not self.array.size:
            return
        low, high = float(self.array.min()), float(self.array.max())
        if low < 0 or high > 1 + 1e-6 or np.isnan(low):
            return
        sums = self.array.sum(axis=1, dtype=np.float64)
        if np.abs(sums - 1).max() < 1e-3:
            raise InputError(
                "the scores are declared as logits, but all lie in [0, 1] and every row sums to 1: "
                "they are probabilities",
                remedy="declare the kind as probabilities",
            )

    def explain(self, error: InputError) -> InputError:
        """Return the most detailed message about why `array` was refused; `error` itself if nothing fits."""
        return self._not_finite() or self._not_probabilities() or error

    def _name(self, column: int) -> str:
        if len(self.scores.columns) == self.array.shape[1]:
            return self.scores.columns[column]
        names = self.scores.class_names
        inner = names[column] if len(names) == self.array.shape[1] else str(column)
        return f"{self.scores.columns[0]}[{inner}]"

    def _not_finite(self) -> InputError | None:
        bad = ~np.isfinite(self.array)
        bad_rows = np.flatnonzero(bad.any(axis=1))
        if not bad_rows.size:
            return None
        rows, nan_rows = bad_rows.size, int(np.isnan(self.array[bad_rows]).any(axis=1).sum())
        first = bad_rows[:NAMED]
        places = [(int(first[r]), int(c)) for r, c in np.argwhere(bad[first])[:NAMED]]
        shown = []
        for row, column in places:
            at, name = self.original(row), self._name(column)
            value = self.array[row, column]
            if np.isinf(value):
                state = "is infinite"
            else:
                state = "is empty" if self.table.is_empty(at, name) else "is NaN"
            shown.append(f"{place(at, self.table.line)} '{short(name)}' {state}")
        row, column = places[0]
        what = "missing values" if nan_rows == rows else "values that are not finite"
        counted = f"{rows:,} row{'s' if rows != 1 else ''} of {self.array.shape[0]:,}"
        more = rows - len({r for r, _ in places})
        listing = ", ".join(shown) + (", …" if more > 0 else "")
        return InputError(
            f"{what}: {listing} ({counted})",
            row=self.original(row) + 1,
            line=self.table.line(self.original(row)),
            column=self._name(column),
            placed=True,
            remedy=(
                "fill them in, or ask to leave out the rows"
                if nan_rows == rows
                else "correct the values"
            ),
            repairs=(DROP_MISSING,) if nan_rows == rows else (),
        )

    def _not_probabilities(self) -> InputError | None:
        low, high = float(self.array.min()), float(self.array.max())
        if self.scores.kind == "logits":
            return None
        n, k = self.array.shape
        if k == 1:
            return self._one_column(low, high)
        sums = self.array.sum(axis=1, dtype=np.float64)
        off = np.abs(sums - 1) > 0.02
        count = int(off.sum())
        if low >= 0 and (np.abs(sums - 100) <= 2).mean() > 0.9:
            return self._refused(
                f"values look like percentages: {n:,} rows sum to 100, not 1",
                "ask to divide them by 100",
                (PERCENT,),
            )
        if low < -1e-6:
            row, column = (int(v) for v in np.unravel_index(self.array.argmin(), self.array.shape))
            return self._refused(
                f"values from {low:.4g} to {high:.4g} are not probabilities "
                f"({place(self.original(row), self.table.line)} '{short(self._name(column))}' is "
                f"{low:.4g})",
                "declare them as logits if that is what they are",
                (SOFTMAX,),
            )
        if not count:
            return None
        common = f"{np.median(sums[off]):.4g}"
        first = int(off.argmax())
        spread = sums[off].max() - sums[off].min()
        totals = f"sum to {common}" if spread < 5e-3 else (
            f"do not sum to 1 (from {sums[off].min():.4g} to {sums[off].max():.4g})"
        )  # fmt: skip
        tail = ", not 1" if spread < 5e-3 else ""
        return self._refused(
            f"{count:,} of {n:,} rows {totals}{tail}: not probabilities (first: "
            f"{place(self.original(first), self.table.line)}; values lie in [{low:.4g}, {high:.4g}])",
            "ask to divide every row by its sum"
            + (", or declare the values as logits" if high > 1 else ""),
            (RENORMALISE, *([SOFTMAX] if high > 1 else [])),
        )

    def _one_column(self, low: float, high: float) -> InputError:
        name = short(self.scores.columns[0])
        column = self.array[:, 0]
        row = int(np.argmax((column < -1e-6) | (column > 1 + 1e-6)))
        where = place(self.original(row), self.table.line)
        what = f"'{name}' lies in [{low:.4g}, {high:.4g}], outside [0, 1] (first: {where})"
        if low >= 0 and 1.5 < high <= 100:
            return self._refused(
                f"{what}: values look like percentages", "ask to divide them by 100", (PERCENT,)
            )
        return self._refused(what, "declare it as a logit if it is one", (SIGMOID,))

    def _refused(self, what: str, remedy: str, repairs: tuple[Repair, ...]) -> InputError:
        return InputError(what, remedy=remedy, repairs=repairs, placed=True)
