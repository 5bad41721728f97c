"""The columns of rows beside scores and labels: groups, texts, numbers, splits, identifiers, clusters, weights, times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from calviz.core.arrays import BoolArray, FloatArray
from calviz.core.checked_columns import checked_clusters, checked_weights
from calviz.core.errors import InputError
from calviz.core.factor import Factor
from calviz.core.finding import Finding
from calviz.data.building.column_values import as_numbers, one_dimensional
from calviz.data.building.times import as_times, have_offsets
from calviz.data.loaded import ReadingForMap, ReadingOptions, short
from calviz.data.notices import Notice
from calviz.data.recognition.layout import ColumnRoles
from calviz.data.table import Fetched, Table

#: Columns with more distinct values than this are not offered to slice by.
GROUP_LEVELS = 1_000


class OtherColumns:
    """Makes the columns of a layout beside scores and labels.

    Attributes
    ----------
    counts : ndarray, shape (n,), or None
        Frequency weights of aggregated rows, once the columns are built.
    """

    def __init__(
        self,
        table: Table,
        layout: ColumnRoles,
        options: ReadingOptions,
        notices: list[Finding],
    ) -> None:
        self.table, self.layout, self.options, self.notices = table, layout, options, notices
        self.counts: FloatArray | None = None

    def build(self, fetched: Fetched) -> dict[str, Any]:
        """Return the columns as arguments of `Predictions`, by name."""
        layout = self.layout
        n = fetched.scores[0].shape[0]
        groups: dict[str, Factor] = {}
        texts: dict[str, Factor] = {}
        unused = [f"{short(name)} (too many fractions)" for name in layout.unused]
        for name in layout.groups:
            if isinstance(self.options, ReadingForMap) and self._is_left_out(name, fetched, n):
                continue
            factor = Factor.of(one_dimensional(fetched.columns[name]))
            varied = len(factor.levels) > 1 or n == 1
            few = len(factor.levels) <= GROUP_LEVELS and (len(factor.levels) < n or n <= 2)
            if layout.groups_chosen or (varied and few):
                groups[name] = factor
            elif isinstance(self.options, ReadingForMap):
                texts[name] = factor
            else:
                count = len(factor.levels)
                if count > 1 and self.table[name].type == "text":
                    texts[name] = factor
                unused.append(f"{short(name)} ({count:,} value{'s' if count != 1 else ''})")
        if unused:
            self.notices.append(
                Notice.UNUSED_GROUPS.finding(
                    "info",
                    f"not used as groups because they have one value or too many: {', '.join(unused[:8])}"
                    + (f" and {len(unused) - 8} more" if len(unused) > 8 else ""),
                )
            )
        columns: dict[str, Any] = {
            "groups": {self._shown(name): factor for name, factor in groups.items()},
            "texts": {self._shown(name): factor for name, factor in texts.items()},
        }
        if layout.split is not None:
            columns["splits"] = Factor.of(one_dimensional(fetched.columns[layout.split]))
        if layout.id is not None:
            ids = one_dimensional(fetched.columns[layout.id])
            columns["ids"] = ids.values() if isinstance(ids, Factor) else ids
        columns["numbers"] = {
            name: as_numbers(one_dimensional(fetched.columns[name]), name)
            for name in layout.numbers
        }
        for name in layout.kept:
            if not self._is_left_out(name, fetched, n):
                self._keep(name, one_dimensional(fetched.columns[name]), columns)
        columns |= self._clusters_weights_times(fetched)
        self._keep_times(columns, fetched)
        return columns

    def _is_left_out(self, name: str, fetched: Fetched, n: int) -> bool:
        """Whether a column, such as an array, has not one value per row; a notice says so."""
        values = len(fetched.columns[name])
        if values != n:
            text = f"'{short(name)}' is left out: it has {values:,} values for {n:,} rows"
            self.notices.append(Notice.LEFT_OUT.finding("warning", text))
        return values != n

    def _keep(self, name: str, values: npt.NDArray[Any] | Factor, columns: dict[str, Any]) -> None:
        """Add a column without a role to the texts or, if it holds fractions, to the numbers."""
        shown = self._shown(name)
        if self.table[name].type == "number":
            try:
                columns["numbers"][shown] = as_numbers(values, name)
                return
            except InputError:
                pass
        columns["texts"][shown] = Factor.of(values)

    def _shown(self, name: str) -> str:
        """Name of a column of groups or texts; arrays are named ``group_<name>``, so that they are not taken for something else."""
        plain = name.removeprefix("group_")
        return plain if self.table.arrays and plain not in self.table else name

    def _clusters_weights_times(self, fetched: Fetched) -> dict[str, Any]:
        """Return clusters, weights and times of the rows; frequency weights are stored in `counts`."""
        layout = self.layout
        names = {"clusters": layout.cluster, "weights": layout.weight, "times": layout.time}
        columns: dict[str, Any] = {
            "column_names": {k: self._shown(name) for k, name in names.items() if name is not None}
        }
        if layout.cluster is not None:
            clusters = Factor.of(one_dimensional(fetched.columns[layout.cluster]))
            columns["clusters"] = in_column(layout.cluster, checked_clusters, clusters)
        if layout.weight is not None:
            values = one_dimensional(fetched.columns[layout.weight])
            weights = as_numbers(values, layout.weight).astype(np.float64)
            weights = in_column(layout.weight, checked_weights, weights)
            if self.options.weight_kind == "frequency":
                self.counts = weights
            else:
                columns["weights"] = weights
        if layout.time is not None:
            values = one_dimensional(fetched.columns[layout.time])
            try:
                columns["times"] = as_times(values, layout.time)
            except InputError as error:
                if self.options.time_column is not None:
                    raise
                text = f"'{short(layout.time)}' is not used as times: {error}"
                self.notices.append(Notice.UNUSED_VALUES.finding("info", text))
        return columns

    def _keep_times(self, columns: dict[str, Any], fetched: Fetched) -> None:
        """Add times to the texts, as the file has them, where they have offsets, cannot be used, or all columns are kept."""
        name = self.layout.time
        if name is None:
            return
        values = one_dimensional(fetched.columns[name])
        if isinstance(values, np.ndarray) and values.dtype.kind == "M":
            return
        written = Factor.of(values)
        keeps_all = isinstance(self.options, ReadingForMap)
        if keeps_all or "times" not in columns or have_offsets(written):
            columns["texts"][self._shown(name)] = written


def in_column(name: str, check: Callable[[Any], Any], values: Any) -> Any:
    """``check(values)``, whose error names the column."""
    try:
        return check(values)
    except InputError as error:
        raise error.in_column(name) from None


def rows_taken(columns: dict[str, Any], keep: BoolArray) -> dict[str, Any]:
    """Return the columns of the rows of a mask, shape (n,)."""
    taken = dict(columns)
    taken["groups"] = {key: factor.take(keep) for key, factor in columns["groups"].items()}
    taken["texts"] = {key: factor.take(keep) for key, factor in columns["texts"].items()}
    taken["numbers"] = {key: column[keep] for key, column in columns["numbers"].items()}
    for key in ("weights", "times"):
        if key in columns:
            taken[key] = columns[key][keep]
    if "clusters" in columns:
        taken["clusters"] = columns["clusters"].take(keep)
    if "splits" in columns:
        taken["splits"] = columns["splits"].take(keep)
    if "ids" in columns:
        taken["ids"] = columns["ids"][keep]
    return taken
