"""Selections of rows as rules: each has a name, applies to any page, split or model, and fits into a link."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from typing import Any, ClassVar, Self, get_args

import numpy as np

from calviz.core.arrays import BoolArray, IntArray
from calviz.core.errors import NotAvailable
from calviz.core.predictions import Dataset, Predictions
from calviz.figures.kernels.uncertainty_ranking import RankedBy, ranking_values
from calviz.results.slices import Where, rows_where, where_words
from calviz.sample.binning import bin_of_rows
from calviz.sample.reduce import predicted_classes
from calviz.sample.sample import Sample, chosen_bins
from calviz.text.words import number, percent, shorten
from calviz.ui.session.link_encoding import join_parts, split_parts

#: Characters of a class's or value's name within the name of a selection.
_NAME_LENGTH = 30


@dataclass(frozen=True)
class SelectionRule(ABC):
    """A rule that selects rows; its fields are texts and whole numbers, in the order of the link."""

    code: ClassVar[str]
    #: Whether the rule means the same rows only while reduction and bins stay as they are.
    of_bins: ClassVar[bool] = False
    #: Whether the rule depends on the true class: a gap of such rows is no sign of miscalibration.
    by_outcome: ClassVar[bool] = False
    kinds: ClassVar[dict[str, type[SelectionRule]]] = {}

    def __init_subclass__(cls) -> None:
        """Register the kind."""
        SelectionRule.kinds[cls.code] = cls

    @abstractmethod
    def words(self, sample: Sample) -> str:
        """Return the name of the selection, in plain text."""

    @abstractmethod
    def mask(self, sample: Sample) -> BoolArray:
        """Return the mask of the selected rows, shape (n,); raise a CalvizError with the reason if the rule does not apply."""

    @classmethod
    def read(cls, parts: list[str]) -> Self:
        """Decode the parts of a link; raise ValueError or TypeError if they are invalid."""
        return cls(*parts)

    def link(self) -> str:
        """Encode the rule for a link."""
        parts = [self.code]
        for value in astuple(self):
            parts += [str(v) for v in _flat(value)]
        return join_parts(parts)


def _flat(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple):
        for part in value:
            yield from _flat(part)
    else:
        yield value


def decode_rule(link: str) -> SelectionRule | None:
    """Decode the rule in a link; None if it holds none."""
    code, *parts = split_parts(link)
    kind = SelectionRule.kinds.get(code)
    try:
        return None if kind is None else kind.read(parts)
    except (ValueError, TypeError):
        return None


@dataclass(frozen=True)
class Bins(SelectionRule):
    """A range of scores: neighbouring bins of the diagram, 0-based; links count from 1."""

    code = "bins"
    of_bins = True
    first: int
    last: int

    def words(self, sample: Sample) -> str:
        """Return the bins and their edges."""
        several = self.first != self.last
        where = f"{self.numbers(' to ')} {bounds(sample, self.first, self.last)}"
        return f"{'bins' if several else 'bin'} {where}"

    def numbers(self, between: str = "-") -> str:
        """Return the bins, 1-based: "14", or "13-15"."""
        return between.join(str(end + 1) for end in dict.fromkeys((self.first, self.last)))

    def mask(self, sample: Sample) -> BoolArray:
        """Return the rows whose scores lie in the bins, shape (n,)."""
        edges = chosen_bins(sample).edges
        if not 0 <= self.first <= self.last < edges.size - 1:
            raise NotAvailable(f"there are {edges.size - 1} bins.")
        bins = bin_of_rows(sample.scored, edges)
        return np.asarray((bins >= self.first) & (bins <= self.last))

    def link(self) -> str:
        """Encode the bins, 1-based, as "bins~13-15"."""
        return join_parts([self.code, self.numbers()])

    @classmethod
    def read(cls, parts: list[str]) -> Self:
        """Decode what `link` encodes."""
        (text,) = parts
        ends = [int(end) - 1 for end in text.split("-")]
        if len(ends) > 2 or min(ends) < 0:
            raise ValueError(text)
        return cls(min(ends), max(ends))


def bounds(sample: Sample, first: int, last: int | None = None) -> str:
    """Return the scores of one or several bins as an interval; right-closed, the first one also holds its lower edge."""
    edges = chosen_bins(sample).edges
    low, high = float(edges[first]), float(edges[(first if last is None else last) + 1])
    digits = 4 if sample.scheme == "equal-mass" else 2 if edges.size <= 51 else 3
    return f"{'[' if first == 0 else '('}{low:.{digits}f}, {high:.{digits}f}]"


@dataclass(frozen=True)
class Predicted(SelectionRule):
    """The rows that are predicted as a class."""

    code = "predicted"
    name: str

    def words(self, sample: Sample) -> str:
        """The class."""
        return f"predicted '{shorten(self.name, _NAME_LENGTH)}'"

    def mask(self, sample: Sample) -> BoolArray:
        """Rows by predicted class."""
        return np.asarray(_predicted(sample.data) == _class(sample.data, self.name))


@dataclass(frozen=True)
class Labelled(SelectionRule):
    """The rows whose true class is this one."""

    code = "true"
    by_outcome = True
    name: str

    def words(self, sample: Sample) -> str:
        """The class."""
        return f"true class '{shorten(self.name, _NAME_LENGTH)}'"

    def mask(self, sample: Sample) -> BoolArray:
        """Rows by true class."""
        return np.asarray(_true(sample.data) == _class(sample.data, self.name))


@dataclass(frozen=True)
class CellRule(SelectionRule):
    """The rows of a true class that are predicted as another: a cell of the confusion matrix."""

    code = "cell"
    by_outcome = True
    true: str
    predicted: str

    def words(self, sample: Sample) -> str:
        """The two classes."""
        true, taken = (shorten(name, _NAME_LENGTH) for name in (self.true, self.predicted))
        right = self.true == self.predicted
        return f"'{true}' predicted right" if right else f"'{true}' taken for '{taken}'"

    def mask(self, sample: Sample) -> BoolArray:
        """Rows by both classes."""
        data = sample.data
        true = _true(data) == _class(data, self.true)
        return np.asarray(true & (_predicted(data) == _class(data, self.predicted)))


@dataclass(frozen=True)
class SliceRule(SelectionRule):
    """The rows with given values in columns of the file, such as a grade."""

    code = "slice"
    where: Where

    def words(self, sample: Sample) -> str:
        """The condition."""
        return f"where {where_words(self.where, _NAME_LENGTH)}"

    def mask(self, sample: Sample) -> BoolArray:
        """Rows where the condition holds."""
        mask = rows_where(sample.data, self.where)
        return np.ones(sample.data.n, dtype=np.bool_) if mask is None else mask

    @classmethod
    def read(cls, parts: list[str]) -> Self:
        """Decode alternating columns and values."""
        if not parts or len(parts) % 2:
            raise ValueError(parts)
        return cls(tuple(zip(parts[::2], parts[1::2], strict=True)))


@dataclass(frozen=True)
class Covered(SelectionRule):
    """The rows that are kept, or referred, at a coverage: the most certain rows are kept."""

    code = "covered"
    side: str
    ranking: RankedBy
    percent: int

    def words(self, sample: Sample) -> str:
        """Return the coverage and, when ranked by confidence, the threshold."""
        share = percent(self.percent / 100, 0)
        words = f"{self.side} at {share} coverage"
        if self.ranking != "confidence":
            return f"{words} by {self.ranking}"
        low = threshold(sample, self.ranking, self.percent / 100)
        return f"{words}, confidence {'≥' if self.side == 'kept' else '<'} {number(low)}"

    def mask(self, sample: Sample) -> BoolArray:
        """Return the rows on one side of the threshold, shape (n,); all rows at the threshold are kept."""
        value = ranking_values(sample, self.ranking)
        is_kept = value >= threshold(sample, self.ranking, self.percent / 100)
        return np.asarray(is_kept if self.side == "kept" else ~is_kept)

    @classmethod
    def read(cls, parts: list[str]) -> Self:
        """Decode side, ranking and percent."""
        side, ranking, share = parts
        if side not in ("kept", "referred") or ranking not in get_args(RankedBy):
            raise ValueError(parts)
        if not 0 <= int(share) <= 100:
            raise ValueError(share)
        return cls(side, ranking, int(share))  # type: ignore[arg-type]


def threshold(sample: Sample, ranking: RankedBy, coverage: float) -> float:
    """Return the smallest value of a ranking that is kept at a coverage."""
    value = ranking_values(sample, ranking)
    count = round(value.size * coverage)
    if count == 0:
        return float("inf")
    return float(np.partition(value, value.size - count)[value.size - count])


def _class(data: Dataset, name: str) -> int:
    if name not in data.class_names:
        raise NotAvailable(f"there is no class '{shorten(name, _NAME_LENGTH)}'.")
    return data.class_names.index(name)


def predicted_classes_of(data: Dataset) -> IntArray | None:
    """Return the predicted class of each row, shape (n,); None if the data do not say."""
    predicted = predicted_classes(data) if isinstance(data, Predictions) else data.predicted
    return None if predicted is None else np.asarray(predicted)


def _predicted(data: Dataset) -> IntArray:
    predicted = predicted_classes_of(data)
    if predicted is None:
        raise NotAvailable("these data do not name the predicted classes.")
    return predicted


def _true(data: Dataset) -> IntArray:
    if data.labels is None:
        raise NotAvailable("these data do not name the true classes.")
    return np.asarray(data.labels)


def rows_of(rule: SelectionRule, sample: Sample) -> IntArray:
    """Return the rows of a sample that a rule selects, ascending; raise a CalvizError if the rule does not apply."""
    return np.flatnonzero(rule.mask(sample))
