"""The current settings, which the sidebar chose, and the callbacks by which pages ask it for others."""

from __future__ import annotations

import re
from dataclasses import dataclass
from threading import RLock
from typing import NamedTuple, get_args
from weakref import WeakSet

import numpy as np
import streamlit as st

from calviz.core.arrays import BoolArray, IntArray
from calviz.core.bins import Scheme
from calviz.core.predictions import Dataset
from calviz.core.reduction import Reduction
from calviz.results.slices import Where, rows_where
from calviz.sample.sample import Sample
from calviz.text.words import distinct, shorten
from calviz.ui.session import setting_requests
from calviz.ui.session.open_file import OpenFile
from calviz.ui.session.result_cache import cached_results
from calviz.ui.widgets.escape import md

ALL_ROWS = "all rows"
MAX_BINS = 1_000
SCHEMES: tuple[Scheme, ...] = get_args(Scheme)

#: The conditions of a slice: keys of column and value in the address, label, and the option for no condition.
CONDITIONS = (
    ("slice", "level", "Slice by", "no slice"),
    ("slice-2", "level-2", "And by", "no second column"),
)
_CHOSEN = "calviz.chosen"
_IN_USE = "calviz.samples"


@dataclass(frozen=True, eq=False)
class Settings:
    """The rows that the pages evaluate, with reduction and bins.

    Attributes
    ----------
    entry : OpenFile
    model : str
    split : str or None
        None: all rows.
    reduction : Reduction
    bins : int
    scheme : {"equal-width", "equal-mass", "sturges"}
    where : tuple of (str, str)
        The slice: columns and the values that they hold; empty for all rows.
    """

    entry: OpenFile
    model: str
    split: str | None
    reduction: Reduction
    bins: int
    scheme: Scheme
    where: Where = ()

    @property
    def whole(self) -> Dataset:
        """All rows of the model."""
        return self.entry.loaded.models[self.model]

    @property
    def rows_key(self) -> tuple[str, ...]:
        """Identifies the rows, for caches."""
        parts = (self.model, self.split, self.where)
        return (self.entry.content_key, *(repr(part) for part in parts))

    @property
    def reduction_and_bins_key(self) -> tuple[str, ...]:
        """Identifies reduction and bins, for caches and jobs."""
        return self.reduction.key, str(self.bins), self.scheme

    def mask(self) -> BoolArray | None:
        """Return the mask of the rows, including those of weight 0, shape (n,); None for all."""
        data = self.whole
        mask: BoolArray | None = None
        if self.split is not None and data.splits is not None:
            mask = data.splits.mask(self.split)
        level = rows_where(data, self.where)
        if mask is None or level is None:
            return mask if level is None else level
        return np.logical_and(mask, level)

    @property
    def sample(self) -> Sample:
        """The rows with reduction and bins; what is computed for them is kept with it."""
        return self._rows.sample.but(reduction=self.reduction, bins=self.bins, scheme=self.scheme)

    @property
    def row_numbers(self) -> IntArray | None:
        """Row numbers in the file of the sample's rows, 0-based; None for all rows."""
        return self._rows.numbers

    @property
    def compute_lock(self) -> RLock:
        """A lock that is held while something is computed for the sample; others who ask for the same wait."""
        return self._rows.compute_lock

    @property
    def _rows(self) -> _JudgedRows:
        rows = _rows(self.rows_key, self)
        st.session_state.setdefault(_IN_USE, WeakSet()).add(rows.sample)
        return rows

    @property
    def rows_words(self) -> str:
        """The model, if there are several, and the rows, in markdown."""
        model = f"model {md(self.model, 40)} · " if len(self.entry.loaded.models) > 1 else ""
        return f"{model}{md(self.sample.rows_words, 400)}"

    @property
    def words(self) -> str:
        """Model, rows and reduction, without the bins, in one line of markdown."""
        return f"{self.rows_words} · {self.reduction_words}"

    @property
    def reduction_words(self) -> str:
        """The reduction in markdown, a long class name shortened."""
        if self.reduction.kind == "class":
            return md(f"class '{shorten(self.reduction.class_name, 40)}' against the rest")
        return md(self.reduction.label)

    @property
    def file_stem(self) -> str:
        """Beginning of the file names of downloads: the file, and the model if there are several."""
        name = self.entry.loaded.file.split(".")[0]
        if len(self.entry.loaded.models) > 1:
            name += f"-{self.model}"
        return re.sub(r"[^A-Za-z0-9_-]+", "-", name).strip("-")[:40] or "calviz"

    @property
    def bins_words(self) -> str:
        """The bins: "15 equal-width bins"."""
        return self.sample.bins_words


class _JudgedRows(NamedTuple):
    """A sample of some rows, their numbers in the file, and the lock for computations."""

    sample: Sample
    numbers: IntArray | None
    compute_lock: RLock


@cached_results(3)
def _rows(key: tuple[str, ...], _settings: Settings) -> _JudgedRows:
    mask, data = _settings.mask(), _settings.whole
    numbers: IntArray | None = None
    if mask is not None and not mask.all():
        numbers = np.flatnonzero(mask)
        data = data.take(numbers)
    sample = Sample(data, split=_settings.split, where=_settings.where)
    if (counting := data.rows_that_count) is not None:
        numbers = counting if numbers is None else numbers[counting]
    return _JudgedRows(sample, numbers, RLock())


def current() -> Settings:
    """Return what the sidebar chose in this run (in a fragment: in the last full run)."""
    chosen: Settings = st.session_state[_CHOSEN]
    return chosen


def set_current(chosen: Settings) -> None:
    """Set the settings from now on."""
    _free_memory(st.session_state.get(_CHOSEN), chosen)
    st.session_state[_CHOSEN] = chosen


def _free_memory(previous: Settings | None, chosen: Settings) -> None:
    """If rows or reduction have changed, forget what takes much memory; results stay."""
    if previous is None or (previous.rows_key, previous.reduction) == (
        chosen.rows_key,
        chosen.reduction,
    ):
        return
    for sample in st.session_state.pop(_IN_USE, ()):
        sample.let_go()


def look_at_class(data: Dataset, index: int) -> None:
    """Reduce to one class from the next drawing of the sidebar on; for callbacks."""
    name = distinct(data.class_names)[data.class_names[index]]
    two = {"reduction": "positive"}
    setting_requests.put(two if data.n_classes == 2 else {"reduction": "class", "class": name})


def look_at_default(data: Dataset) -> None:
    """Use the default reduction of these data from the next drawing on; for callbacks."""
    setting_requests.put({"reduction": Reduction.default(data).kind})


def look_at_slice(data: Dataset, where: Where) -> None:
    """Show the rows of a slice from the next drawing of the sidebar on, all rows if `where` is empty; for callbacks."""
    names = distinct(tuple(data.groups))
    requests = {column_key: no_condition for column_key, _, _, no_condition in CONDITIONS}
    for (column, value), (column_key, value_key, _, _) in zip(where, CONDITIONS, strict=False):
        requests[column_key] = names[column]
        requests[value_key] = distinct(data.groups[column].levels)[value]
    setting_requests.put(requests)
