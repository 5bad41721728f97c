"""The common interface of all formats: named columns, which are inspected first and fetched once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy.typing as npt

from calviz.core.arrays import FloatArray
from calviz.core.errors import InputError
from calviz.core.factor import Factor
from calviz.core.finding import Finding
from calviz.core.probabilities import RowsInRange

if TYPE_CHECKING:
    from calviz.data.questions import Questions

ElementType = Literal["number", "integer", "boolean", "text", "other"]

#: Number of first rows that recognition inspects.
SAMPLE_ROWS = 1_000
#: Missing value in a column of text.
MISSING = ""


@dataclass(frozen=True, eq=False)
class Column:
    """One column of a table, or one array of an array file.

    Attributes
    ----------
    name : str
    type : {"number", "integer", "boolean", "text", "other"}
        Type of the elements, judging by the sample.
    sample : ndarray or callable
        The first rows, or a function that returns them; see `head`.
    width : int or None
        The number of elements per row if each row holds a list (a 2-D array, a list column).
    fields : tuple of str
        The names of these elements, if the file names them.
    note : str
        Why a column of type "other" cannot be used ("it holds lists of string").
    """

    name: str
    type: ElementType
    sample: npt.NDArray[Any] | Callable[[], npt.NDArray[Any]]
    width: int | None = None
    fields: tuple[str, ...] = ()
    note: str = ""

    @property
    def head(self) -> npt.NDArray[Any]:
        """The first rows: text as objects, missing numbers as nan, missing text as ""."""
        return self._called if callable(self.sample) else self.sample

    @cached_property
    def _called(self) -> npt.NDArray[Any]:
        assert callable(self.sample)
        return self.sample()

    @property
    def numeric(self) -> bool:
        """Whether it holds numbers."""
        return self.type in ("number", "integer")


@dataclass(frozen=True, eq=False)
class Fetched:
    """The requested values.

    Attributes
    ----------
    scores : tuple of ndarray, each of shape (n, K)
    columns : mapping of str to ndarray or Factor
        Numbers as arrays (missing values are nan), text as factors (missing values are the level "").
    in_range : tuple of RowsInRange
        Of the scores that were looked at while they were read.
    """

    scores: tuple[FloatArray, ...]
    columns: Mapping[str, npt.NDArray[Any] | Factor]
    in_range: tuple[RowsInRange, ...] = ()

    def filled(self, scores: FloatArray) -> RowsInRange | None:
        """What was found while an array of `scores`, shape (n, K), was read; None if nothing was looked for."""
        return next((found for found in self.in_range if found.probs is scores), None)


@dataclass(eq=False)
class Table(ABC):
    """A file as columns. Looking at `columns` is cheap; `fetch` reads the file once.

    Attributes
    ----------
    format : str
        Description of the format ("CSV separated by ';'").
    columns : tuple of Column
    named : bool
        Whether the column names come from the file.
    arrays : bool
        Whether the columns are arrays of an array file.
    class_names : tuple of str
        Names of the classes, if the file stores them separately.
    notices : list of Finding
    questions : Questions or None
        The questions with choices from which the rows were made, if other rows can be made from them.
    """

    format: str
    columns: tuple[Column, ...]
    named: bool = True
    arrays: bool = False
    class_names: tuple[str, ...] = ()
    notices: list[Finding] = field(default_factory=list)
    questions: Questions | None = None
    #: What messages call the source of the columns.
    holder: ClassVar[str] = "file"

    def __post_init__(self) -> None:
        self._by_name = {c.name: c for c in self.columns}
        self._names = tuple(c.name for c in self.columns)
        if len(self._by_name) != len(self.columns):
            seen: set[str] = set()
            for column in self.columns:
                if column.name in seen:
                    raise InputError(
                        f"there are two columns called '{column.name[:80]}'",
                        remedy="give each column a name of its own",
                    )
                seen.add(column.name)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns."""
        return self._names

    @property
    def types(self) -> Mapping[str, Any]:
        """The Arrow field of each column by name, if the file declares types; nullable are those with missing values, once fetched."""
        return {}

    def for_map(self) -> Table:
        """Return the table with the rows to which a map is applied, which need no labels."""
        return self

    @cached_property
    def places(self) -> Mapping[str, int]:
        """The 0-based index of each column by name."""
        return {name: j for j, name in enumerate(self._names)}

    def __getitem__(self, name: str) -> Column:
        return self._by_name[name]

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    @abstractmethod
    def fetch(self, scores: Sequence[tuple[str, ...]], columns: Sequence[str]) -> Fetched:
        """Read groups of score columns, each into one (n, K) array, and single columns, in one pass."""

    def line(self, row: int) -> int | None:
        """The 1-based line of 0-based data row `row`, for text files."""
        return None

    def is_empty(self, row: int, name: str) -> bool:
        """Whether a missing number is an empty cell (rather than a written NaN)."""
        return False
