"""The columns of predictions beside scores and labels: levels, clusters, weights, times; the cells of a profile."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from html import escape
from itertools import compress
from types import MappingProxyType
from typing import Any, Literal, Self

import numpy as np
import numpy.typing as npt

from calviz.core import features
from calviz.core.blocks import BoolArray, Factor, FloatArray, IntArray, element_type, read_only
from calviz.core.errors import PREDICTED, InputError, shortened, visible
from calviz.core.features import FEW_VALUES, MISSING_TEXTS, Cut, cut_of_levels, cut_of_numbers
from calviz.core.probabilities import LOG_FLOOR, as_float


def ids_of_all(ids: IntArray, model: Factor, labels: IntArray, *, gaps: bool = False) -> int:
    """The number of ids with a row of each model; 0 if an id has several rows of one, or several labels.

    Parameters
    ----------
    ids, labels : ndarray of int, shape (n,)
    model : Factor
    gaps : bool
        Whether some ids may lack a row of some model; 0 otherwise.
    """
    values, of_id = np.count_nonzero(np.bincount(model.codes)), np.bincount(ids)
    if not len(model) == labels.size == ids.size or of_id.max(initial=0) > values:
        return 0
    order = np.lexsort((model.codes, ids))
    same = np.diff(ids[order]) == 0
    # Each id has one row of a model, and one label.
    if (same & ~np.diff(model.codes[order]).astype(bool)).any() or np.diff(labels[order])[
        same
    ].any():
        return 0
    shared = int(np.count_nonzero(of_id == values))
    return shared if gaps or shared * values == ids.size else 0


def one_row_each(identifier: str, model: str) -> str:
    """Say what `ids_of_all` found in two columns."""
    named, each = shortened(identifier), shortened(model)
    return f"each '{named}' has one row for each value of '{each}'"


def checked_clusters(clusters: Factor | npt.ArrayLike) -> Factor:
    """Return a column of clusters; raises InputError if a value is missing, or if clusters do not group the rows."""
    column = Factor.of(clusters)
    levels, n = len(column.levels), len(column)
    missing = [at for at, level in enumerate(column.levels) if level.strip() in MISSING_TEXTS]
    if missing:
        raise InputError(
            "the cluster is missing",
            row=int(np.isin(column.codes, missing).argmax()) + 1,
            remedy="fill it in, give the row a cluster of its own, or leave the row out",
        )
    if n > 1 and levels == 1:
        raise InputError(
            "the cluster column has one value for all rows, so there is nothing to resample",
            remedy="name a column with several values, such as the patient or the site",
        )
    if n > 1 and levels == n:
        raise InputError(
            f"the cluster column has a different value in each of the {n:,} rows: no rows belong together",
            remedy="leave it out, or name the column that repeats",
        )
    return column


def checked_weights(weights: npt.ArrayLike) -> FloatArray:
    """Return importance weights, shape (n,); raises InputError if one is missing, infinite or negative, or if all are 0."""
    given: npt.NDArray[Any] = np.asarray(weights)
    if given.dtype.kind not in "biuf":
        raise InputError(f"the weights hold {element_type(given)}, expected numbers")
    numbers = given.astype(np.float64)
    if numbers.ndim != 1:
        raise InputError(f"weights must be 1-D, got shape {numbers.shape}")
    good = np.isfinite(numbers) & (numbers >= 0)
    if not good.all():
        row = int(np.argmin(good))
        value = numbers[row]
        text = "missing" if np.isnan(value) else "infinite" if np.isinf(value) else f"{value:g}"
        raise InputError(
            f"the weight is {text}, expected a number from 0 up",
            row=row + 1,
            remedy="correct it, or leave the row out",
        )
    if numbers.size and not numbers.any():
        raise InputError(
            "all weights are zero, so no row counts",
            remedy="give at least one row a weight above zero",
        )
    return numbers


def checked_times(times: npt.ArrayLike) -> npt.NDArray[np.datetime64]:
    """Return times in microseconds, shape (n,); raises InputError if one is missing."""
    dates = np.asarray(times)
    if dates.dtype.kind != "M":
        raise InputError("the times are not dates", remedy="give them as datetime64")
    dates = dates.astype("datetime64[us]")
    if np.isnat(dates).any():
        raise InputError(
            "the time is missing",
            row=int(np.isnat(dates).argmax()) + 1,
            remedy="fill it in, or leave the row out",
        )
    return dates


# ---- HTML in notebooks


def html_text(text: object) -> str:
    """Return text escaped for HTML.

    >>> html_text("a<b")
    'a&lt;b'
    """
    return escape(visible(str(text)))


def html_block(
    title: object,
    lines: Iterable[object] = (),
    header: Sequence[object] = (),
    rows: Iterable[Sequence[object]] = (),
    notes: Iterable[object] = (),
) -> str:
    """Return HTML with a title, lines of text, one table, and notes below it; all text is escaped.

    Parameters
    ----------
    title : object
        Shown in bold.
    lines, notes : iterable of object
        Paragraphs above and below the table.
    header : sequence of object
        Column names; the first column is left-aligned, the others right-aligned.
    rows : iterable of sequence of object
    """
    parts = [f"<p><strong>{html_text(title)}</strong></p>"]
    parts += [f"<p>{html_text(line)}</p>" for line in lines if line]
    body = [_row("td", row) for row in rows]
    if body:
        head = f"<thead>{_row('th', header)}</thead>" if header else ""
        parts.append(f"<table>{head}<tbody>{''.join(body)}</tbody></table>")
    items = "".join(f"<li>{html_text(note)}</li>" for note in notes if note)
    parts += [f"<ul>{items}</ul>"] * bool(items)
    return f'<div class="calviz">{"".join(parts)}</div>'


def _row(tag: str, cells: Sequence[object]) -> str:
    sides = ["left"] + ["right"] * (len(cells) - 1)
    written = (
        f'<{tag} style="text-align:{side}">{html_text(cell)}</{tag}>'
        for side, cell in zip(sides, cells, strict=True)
    )
    return f"<tr>{''.join(written)}</tr>"


# ---- Cells of a profile

#: Number of equal-width cells. Bins are unions of cells if their number divides this, as 15 and 20 do.
FINE_CELLS = 15 << 12
#: Up to this many distinct scores, a profile keeps one cell per score.
FEW_SCORES = 1 << 17


@dataclass(frozen=True, eq=False)
class Cells:
    """Facts about the observed rows behind each row of a profile.

    Attributes
    ----------
    low, high : ndarray of float64, shape (n,)
        Smallest and largest score of the observed rows.
    log_loss : ndarray of float64, shape (n,)
        Mean of -log of the probability of the true class (nats); nan where it is unknown.
    clipped : ndarray of float64, shape (n,)
        Number of observed rows in which the true class has a probability below the limit of log losses (`LOG_FLOOR`).
    squared_error : ndarray of float64, shape (n,)
        Mean squared distance to the one-hot label, summed over classes; nan where it is unknown.
    single : bool
        Whether the scores were given in single precision; bin edges are then rounded to float32.
    summed : bool
        Whether scores and losses are exact means over the observed rows. False after a map that was applied to the mean score
        of cells with several scores.
    """

    low: FloatArray
    high: FloatArray
    log_loss: FloatArray
    clipped: FloatArray
    squared_error: FloatArray
    single: bool = False
    summed: bool = True

    def __post_init__(self) -> None:
        for name in self._columns():
            object.__setattr__(self, name, read_only(np.asarray(getattr(self, name), np.float64)))

    @classmethod
    def _columns(cls) -> tuple[str, ...]:
        return tuple(f.name for f in fields(cls) if f.name not in ("single", "summed"))

    def __len__(self) -> int:
        return int(self.low.shape[0])

    @property
    def is_exact(self) -> bool:
        """Whether every cell holds a single score, so that no information about (score, hit) was lost."""
        return self.summed and bool((self.low == self.high).all())

    @property
    def edge_type(self) -> np.dtype[Any]:
        """Dtype to which bin edges are rounded."""
        return np.dtype(np.float32 if self.single else np.float64)

    def take(self, rows: npt.NDArray[Any]) -> Cells:
        """Return the cells of the selected rows (a boolean mask or indices)."""
        return replace(self, **{name: getattr(self, name)[rows] for name in self._columns()})

    def after_map(
        self, probs: FloatArray, labels: npt.NDArray[Any], counts: FloatArray | None
    ) -> Cells:
        """Return the cells of two-class data after a map, which was applied to the mean score of each cell.

        The result is exact if each cell held a single score.

        Parameters
        ----------
        probs : ndarray, shape (n, 2)
            Output of the map for the mean scores.
        labels : ndarray of int or bool, shape (n,)
        counts : ndarray, shape (n,), optional
            Number of rows in each cell; one if left out.
        """
        score = np.asarray(probs[:, 1], np.float64)
        of_label = np.where(labels.astype(bool), score, probs[:, 0]).astype(np.float64)
        return Cells(
            low=score,
            high=score,
            log_loss=0.0 - np.log(np.maximum(of_label, LOG_FLOOR)),
            clipped=(of_label < LOG_FLOOR) * (1.0 if counts is None else counts),
            squared_error=2 * np.square(1 - of_label),
            summed=self.is_exact,
        )


@dataclass(frozen=True, eq=False)
class ClassCells:
    """One row per class, cell of the class's probability, hit (whether it is the label) and block.

    A block holds the observed rows with one combination of split, groups and time. Rows are sorted by class.

    Attributes
    ----------
    class_index : ndarray of int, shape (C,)
        The class.
    cell : ndarray of int, shape (C,)
        Index of the cell.
    hit : ndarray of bool, shape (C,)
    count, score, low, high : ndarray of float64, shape (C,)
        Number of observed rows; mean, smallest and largest of their scores.
    block : ndarray of int, shape (C,)
        Index of the block.
    block_of_row : ndarray of int, shape (n,)
        Block of each cell of the top label.
    n_classes : int
    single : bool
        Whether the scores were given in single precision.
    """

    class_index: IntArray
    cell: IntArray
    hit: BoolArray
    count: FloatArray
    score: FloatArray
    low: FloatArray
    high: FloatArray
    block: IntArray
    block_of_row: IntArray
    n_classes: int
    single: bool = False

    def __post_init__(self) -> None:
        for name in self._columns():
            object.__setattr__(self, name, read_only(np.asarray(getattr(self, name))))

    @classmethod
    def _columns(cls) -> tuple[str, ...]:
        return tuple(f.name for f in fields(cls) if f.name not in ("n_classes", "single"))

    @property
    def content(self) -> tuple[npt.NDArray[Any], ...]:
        """All columns, to be hashed."""
        return tuple(getattr(self, name) for name in self._columns())

    def take(self, rows: npt.NDArray[Any]) -> ClassCells | None:
        """Return the class cells that belong to the selected cells of the top label (a boolean mask or indices).

        None unless the selection consists of whole blocks.
        """
        blocks = self.block_of_row[rows]
        if not blocks.size:
            return None
        number = int(self.block_of_row.max()) + 1
        selected = np.bincount(blocks, minlength=number)
        if (selected != np.bincount(self.block_of_row, minlength=number))[selected > 0].any():
            return None
        mask = selected[self.block] > 0
        columns = {name: getattr(self, name) for name in self._columns() if name != "block_of_row"}
        columns = {name: column[mask] for name, column in columns.items()}
        return replace(self, **columns, block_of_row=blocks)

    def of_class(self, k: int) -> dict[str, Any]:
        """Hit, number of rows, and mean, smallest and largest score of each cell of class k, summed over blocks; shape (c,) each."""
        first, last = np.searchsorted(self.class_index, [k, k + 1])
        rows = slice(first, last)
        key = 2 * self.cell[rows].astype(np.intp) + self.hit[rows]
        keys, place = np.unique(key, return_inverse=True)
        count = np.bincount(place, self.count[rows])
        low, high = np.full(keys.size, np.inf), np.full(keys.size, -np.inf)
        np.minimum.at(low, place, self.low[rows])
        np.maximum.at(high, place, self.high[rows])
        score = np.bincount(place, self.count[rows] * self.score[rows]) / count
        return {
            "hit": keys % 2 == 1,
            "count": count,
            # Rounding may move a mean outside its cell.
            "score": np.clip(score, low, high),
            "low": low,
            "high": high,
        }


# ---- The columns of predictions

Kind = Literal["probabilities", "logits", "confidence"]

#: Columns on which no metric depends.
_DESCRIPTIVE = frozenset(
    "name splits groups ids numbers texts times column_names time_form related clusters_known cuts prevalence file_rows".split()
)


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class RowColumns:
    """Rows of predictions without their scores and labels, which a subclass adds."""

    splits: Factor | None = None
    groups: Mapping[str, Factor] = field(default_factory=dict)
    ids: npt.NDArray[Any] | None = None
    numbers: Mapping[str, FloatArray] = field(default_factory=dict)
    texts: Mapping[str, Factor] = field(default_factory=dict)
    clusters: Factor | None = None
    #: Whether it is known of these rows that none belong together, if there are no clusters: as said, or as no days are found to be some.
    clusters_known: bool = False
    weights: FloatArray | None = None
    times: npt.NDArray[np.datetime64] | None = None
    #: How the file writes times, as `Cut.dates`.
    time_form: bool | str = True
    cells: Cells | None = None
    column_names: Mapping[str, str] = field(default_factory=dict)
    #: Names of columns whose values may say which rows belong together.
    related: tuple[str, ...] = ()
    cuts: Mapping[str, Cut] = field(default_factory=dict)
    class_names: tuple[str, ...] = ()
    prevalence: tuple[float, ...] = ()
    name: str = "predictions"
    #: The 0-based rows of the file that these are, shape (n,); None where a reader of another format than CSV left out none.
    file_rows: IntArray | None = field(init=False, default=None)

    def _check_columns(self, n: int) -> None:
        """Check the columns, and keep them read-only and as the types that are declared."""
        if n == 0:
            raise InputError("there are no rows", remedy="give at least one")
        if not isinstance(self.groups, Mapping):
            raise InputError(
                f"'groups' is a {type(self.groups).__name__}, expected a mapping of names to columns",
                remedy='such as {"site": sites}',
            )
        splits = None if self.splits is None else Factor.of(self.splits)
        groups = {str(key): Factor.of(column) for key, column in self.groups.items()}
        ids = None if self.ids is None else read_only(np.asarray(self.ids))
        numbers = {str(key): read_only(as_float(v, key)) for key, v in self.numbers.items()}
        texts = {str(key): Factor.of(column) for key, column in self.texts.items()}
        clusters = None if self.clusters is None else Factor.of(self.clusters)
        # Those of rows taken from others were checked; each of a few rows may have its own.
        if clusters is not None and clusters is not self.clusters and len(clusters) == n:
            clusters = checked_clusters(clusters)
        weights = None if self.weights is None else read_only(checked_weights(self.weights))
        if weights is None and self.cells is not None:
            raise InputError(
                "the cells have no row counts", remedy="give their numbers of rows as weights"
            )
        times = None if self.times is None else read_only(checked_times(self.times))
        columns: dict[str, Any] = {**groups, **texts, **numbers, "clusters": clusters}
        columns |= {"cells": self.cells, "weights": weights, "times": times}
        columns |= {"splits": splits, "ids": ids}
        for key, column in columns.items():
            if column is not None and len(column) != n:
                raise InputError(
                    f"'{shortened(key)}' has {len(column):,} rows but there are {n:,} predictions"
                )
        if weights is not None and self.cells is None and _is_constant(weights):
            weights = None  # so that results agree with unweighted rows to the last digit
        vars(self).update(splits=splits, ids=ids, clusters=clusters, weights=weights, times=times)
        named: dict[str, dict[str, Any]] = {"groups": groups, "numbers": numbers, "texts": texts}
        named["column_names"] = dict(self.column_names)
        named["cuts"] = dict(self.cuts)
        vars(self).update({name: MappingProxyType(column) for name, column in named.items()})
        vars(self).update(cuts=MappingProxyType(self._all_cuts()))

    def _all_cuts(self) -> dict[str, Cut]:
        """How each number, and each column of many values, is cut; those that are given stay."""
        cuts, counts = dict(self.cuts), None if self.cells is None else self.weights
        for name, column in self.to_slice().items():
            if name in cuts:
                continue
            if not isinstance(column, Factor):
                dates = name not in self.numbers and self.time_form
                cuts[name] = replace(cut_of_numbers(column, counts), dates=dates)
            elif len(column.levels) > FEW_VALUES:
                rows = np.bincount(column.codes, counts, minlength=len(column.levels))
                cuts[name] = cut_of_levels(column.levels, rows.astype(np.float64))
        if self.times is not None and self.cells is None:
            known = self.to_slice()
            with suppress(InputError):
                times = features.local_times(known[self.time_name], self.time_name)
                for kind in features.cycles_of(times):
                    if (name := f"{kind} of {self.time_name}") not in known:
                        cuts.setdefault(name, features.cycle(kind))
        return cuts

    def to_slice(self) -> dict[str, Any]:
        """Columns that may be sliced by, as factors or numbers, times in microseconds since 1970."""
        times: dict[str, Any] = {}
        if self.times is not None:
            times[self.time_name] = self.times.astype(np.int64).astype(np.float64)
        return {**times, **self.numbers, **self.texts, **self.groups}

    def within(self, column: str, value: str) -> BoolArray | None:
        """Mask of the rows in an interval of a column of numbers or dates, shape (n,); None if it is no interval of this column."""
        cut, read = self.cuts.get(column), features.interval(value, column)
        if cut is None or cut.kept or read is None or read[0].dates != bool(cut.dates):
            return None
        return self.sliced(column, read[0]).mask(read[1])

    def sliced(self, column: str, own: Cut | None = None) -> Factor:
        """Return a column as it is sliced: numbers, dates and texts of many values by `cuts` or their `own` cut; raises KeyError if it does not exist."""
        known = self.to_slice()
        if column == PREDICTED and column not in known and self.predicted is not None:
            names = self.class_names or tuple(map(str, range(int(self.predicted.max()) + 1)))
            return Factor(self.predicted, names)
        cut = own or self.cuts.get(column)
        if cut is None:
            return known[column]  # of few values
        codes = cut.codes(known[self.time_name if cut.cycle else column], column)
        used = np.bincount(codes, minlength=len(cut.labels)) > 0
        place = np.cumsum(used, dtype=np.int32) - 1
        return Factor(place[codes], tuple(compress(cut.labels, used)))

    def __len__(self) -> int:
        return self.n

    def __repr__(self) -> str:
        facts = [self.rows_words, *self._facts().values()]
        return f"<{type(self).__name__} '{shortened(self.name)}': {', '.join(facts)}>"

    def _repr_html_(self) -> str:
        rows = [("rows", f"{self.rows:,}"), *self._facts().items()]
        return html_block(shortened(self.name), rows=rows)

    def _facts(self) -> dict[str, str]:
        """Facts other than the number of rows, by name."""
        facts: dict[str, str] = {"kind": self.kind}
        if self.cells is not None:
            facts["cells"] = f"profile of {self.n:,} cells"
        if self.class_names:
            facts["classes"] = f"{len(self.class_names):,} classes ({_few(self.class_names)})"
        if self.split_names:
            facts["splits"] = f"splits {_few(self.split_names)}"
        if self.groups:
            facts["groups"] = f"groups {_few(tuple(self.groups))}"
        return facts

    @property
    def n(self) -> int:
        """Number of rows."""
        raise NotImplementedError

    @property
    def kind(self) -> Kind:
        """Source of the scores: "probabilities", "logits" or "confidence"."""
        raise NotImplementedError

    @property
    def predicted(self) -> IntArray | None:
        """The predicted class of each row, shape (n,); None if the data do not say."""
        raise NotImplementedError

    def take(self, rows: npt.NDArray[Any], *, name: str | None = None) -> Self:
        """Return the data of the selected rows (a boolean mask or indices), without validating again."""
        new = self._unchecked()
        columns = {column.name: _taken(getattr(self, column.name), rows) for column in fields(self)}
        new.__dict__.update(columns, name=name or self.name)
        return new

    def _hash_scores(self, digest: Any) -> None:
        raise NotImplementedError

    @property
    def alike(self) -> bool:
        """Whether all observed rows are alike: independent (not clustered) and of equal weight.

        Methods that assume independent rows which all count the same are available only then. The weights of a profile are row
        counts, so that the rows behind its cells are alike.
        """
        return self.clusters is None and (self.weights is None or self.cells is not None)

    @property
    def rows(self) -> int:
        """Number of observed rows: for a profile, those behind its cells, otherwise `n`."""
        return self.n if self.cells is None or self.weights is None else int(self.weights.sum())

    @property
    def rows_words(self) -> str:
        """The rows in words: "3,000 rows", "569 rows at a prevalence of 10 %"."""
        rows = f"{self.rows:,} row{'s' if self.rows != 1 else ''}"
        if not self.prevalence:
            return rows
        shares = self.prevalence[1:] if len(self.prevalence) == 2 else self.prevalence[:4]
        listed = ", ".join(f"{100 * share:.4g} %" for share in shares)
        more = ", …" if len(shares) < len(self.prevalence) > 2 else ""
        return f"{rows} at a prevalence of {listed}{more}"

    @property
    def rows_that_count(self) -> IntArray | None:
        """Indices of the rows whose weight is not 0, shape (m,); None if all rows count.

        None, too, if all weights are 0: that is reported where the weights are used.
        """
        if self.weights is None or self._all_count:
            return None
        rows = np.flatnonzero(self.weights)
        return rows if 0 < rows.size < self.n else None

    def that_count(self) -> Self:
        """Return the data without rows of weight 0, and without weights if the others have the same.

        What is judged about these data is judged about the rows that count; files that are written keep all rows.
        """
        if self._all_count:
            return self
        rows = self.rows_that_count
        data = self if rows is None else self.take(rows)
        if data.weights is None or not data.weights.any() or not _is_constant(data.weights):
            return data
        # Not checked again: of the rows that are left, clusters may be one, or one per row.
        new = data._unchecked()
        new.__dict__["weights"] = None
        return new

    @cached_property
    def _all_count(self) -> bool:
        """Whether `that_count` has nothing to leave out."""
        if self.weights is None or self.cells is not None:
            return True
        return bool(self.weights.all()) and not _is_constant(self.weights)

    @property
    def id_name(self) -> str:
        """Name of the identifiers' column in the file; "id" without one."""
        return self.column_names.get("ids", "id")

    @property
    def time_name(self) -> str:
        """Name of the column of times in the file; "time" without one."""
        return self.column_names.get("times", "time")

    @property
    def days_are_clusters(self) -> bool:
        """Whether rows of one day are clusters because they were found to depend on each other (`calviz.sample.sample.dataset_of`)."""
        return self.column_names.get("clusters") == f"day of {self.time_name}"

    @property
    def named_clusters(self) -> Factor | None:
        """The clusters of a column; no days that were found to be some, by which no rows are divided and which no file gets."""
        return None if self.days_are_clusters else self.clusters

    @property
    def split_names(self) -> tuple[str, ...]:
        """Names of the splits, in order of first appearance; empty without splits."""
        return () if self.splits is None else self.splits.levels

    def split(self, split: str) -> Self:
        """Return the rows of one split; raises InputError if it does not exist."""
        remedy = "leave the split out, or name the column that holds it"
        return self.take(in_split(self.splits, split, remedy=remedy))

    def renamed(self, name: str) -> Self:
        """Return the same data under another name; arrays are shared."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__, name=name)
        return new

    def with_columns(
        self, *, splits: Factor | None, groups: Mapping[str, Factor], ids: npt.NDArray[Any] | None
    ) -> Self:
        """Return the same data with other splits, groups and ids; the other arrays are shared."""
        return self._with({"splits": splits, "groups": groups, "ids": ids})

    def _with(self, columns: Mapping[str, Any]) -> Self:
        """Return the same data with some columns replaced, by attribute."""
        new = self._unchecked()
        new.__dict__.update(columns)
        new._check_columns(new.n)
        return new

    def _unchecked(self) -> Self:
        """Return a copy without what was derived from its columns, which may be replaced."""
        new = self.renamed(self.name)
        # The name does not change them, columns do.
        for cached in ("_fingerprint", "_all_count", "_predicted", "_by_days"):
            new.__dict__.pop(cached, None)
        return new

    def has_metrics_of(self, other: RowColumns) -> bool:
        """Whether every metric has the same value on both: scores, labels, weights, clusters and classes are equal."""
        return type(self) is type(other) and all(
            _equal(getattr(self, column.name), getattr(other, column.name))
            for column in fields(self)
            if column.name not in _DESCRIPTIVE
        )

    def fingerprint(self) -> str:
        """BLAKE2b-256 hash of the full content (not the name), in hexadecimal."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        digest = hashlib.blake2b(digest_size=32)
        self._hash_scores(digest)
        self._hash_columns(digest)
        return digest.hexdigest()

    def _hash_columns(self, digest: Any) -> None:
        digest.update(repr(self.class_names).encode())
        factors = dict(self.groups) | {f"\0text {key}": t for key, t in self.texts.items()}
        if self.splits is not None:
            factors["\0split"] = self.splits
        for key in sorted(factors):
            digest.update(repr((key, factors[key].levels)).encode())
            digest.update(np.ascontiguousarray(factors[key].codes).data)
        if self.ids is not None:
            digest.update(repr(self.ids.tolist()).encode())
        if self.clusters is not None:
            digest.update(repr(("\0clusters", self.clusters.levels)).encode())
            digest.update(np.ascontiguousarray(self.clusters.codes).data)
        further: dict[str, Any] = {"\0weights": self.weights, "\0times": self.times}
        if self.cells is not None:
            further |= {"\0low": self.cells.low, "\0high": self.cells.high}
        for name, column in further.items():
            if column is not None:
                digest.update(name.encode())
                digest.update(np.ascontiguousarray(column).view(np.uint8).data)
        for key in sorted(self.numbers):
            digest.update(repr((key, self.numbers[key].dtype.str)).encode())
            digest.update(np.ascontiguousarray(self.numbers[key]).data)


def in_split(splits: Factor | None, name: str, *, remedy: str) -> BoolArray:
    """Which rows are of a split, shape (n,); raise InputError if there is none of this name, with the remedy for no splits at all."""
    missing = f"there is no split '{shortened(name)}'"
    if splits is None:
        raise InputError(f"{missing}: these data have no splits", remedy=remedy)
    if name not in splits.levels:
        known = ", ".join(map(shortened, splits.levels[:10]))
        raise InputError(missing, remedy=f"known: {known}")
    return splits.mask(name)


def hash_arrays(digest: Any, arrays: Iterable[npt.NDArray[Any] | None]) -> None:
    """Add dtype, shape and content of each array that is not None to a hash."""
    for array in arrays:
        if array is not None:
            digest.update(repr((array.dtype.str, array.shape)).encode())
            digest.update(np.ascontiguousarray(array).data)


def _taken(column: Any, rows: npt.NDArray[Any]) -> Any:
    """Return the selected rows of a column, or of each column of a mapping; anything else is returned as it is."""
    if isinstance(column, np.ndarray):
        return read_only(column[rows])
    if isinstance(column, Factor | Cells | ClassCells):
        return column.take(rows)
    if isinstance(column, Mapping):
        return MappingProxyType({key: _taken(part, rows) for key, part in column.items()})
    return column


def _is_constant(weights: FloatArray) -> bool:
    return bool((weights == weights[:1]).all())


def _equal(column: Any, other: Any) -> bool:
    if column is other:
        return True
    if isinstance(column, Factor) and isinstance(other, Factor):
        return column.levels == other.levels and np.array_equal(column.codes, other.codes)
    if isinstance(column, np.ndarray) and isinstance(other, np.ndarray):
        return np.array_equal(column, other)
    return isinstance(column, tuple) and column == other


def _few(names: tuple[str, ...]) -> str:
    shown = [shortened(name) for name in names]
    return ", ".join(shown if len(shown) <= 5 else [*shown[:3], "…", shown[-1]])
