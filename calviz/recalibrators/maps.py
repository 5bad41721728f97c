"""Fitted maps: piecewise functions of a probability, saved as JSON, written as NumPy source, applied to data frames.

Each method declares in `fitted` what the fields of its saved maps may hold; all are checked and read here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol, get_args

import numpy as np
import numpy.typing as npt

from calviz.core.blocks import BoolArray, FloatArray, IntArray
from calviz.core.entry_specs import Input, Needs, parameters_of
from calviz.core.errors import InputError, NotAvailable, OptionError, record_batches, shortened
from calviz.core.probabilities import ZeroFloor

if TYPE_CHECKING:
    import pyarrow as pa

# ---- Piecewise maps


#: Cells of float32 numbers from 0 to slightly above 1: numbers in a cell share their exponent and ten more bits.
_SHIFT = 13
_CELLS = (0x3F800000 >> _SHIFT) + 2
#: Number of scores from which a lookup table pays off, and from which a check for the first piece pays off.
_MANY, _SOME = 60_000, 5_000


@dataclass(frozen=True, eq=False)
class Piecewise:
    """A function of one score.

    Attributes
    ----------
    x : ndarray of float64, shape (m,)
        Ascending. The points of a piecewise linear map, or the inner edges of steps.
    y : ndarray of float64
        Values at the points, shape (m,); or of the steps, shape (m + 1,): step j holds the
        scores in ``(x[j - 1], x[j]]``.
    """

    x: FloatArray
    y: FloatArray

    @property
    def is_steps(self) -> bool:
        """Whether it is a step function."""
        return self.y.size == self.x.size + 1

    def __call__(self, score: FloatArray) -> FloatArray:
        """Return the values at scores of any shape, in float64; constant beyond the outermost points."""
        flat = score.reshape(-1)
        if flat.size >= _MANY and flat.dtype == np.float32:
            out = self._by_table(np.maximum(flat, np.float32(0)))
        else:
            out = self._at(flat)
        return out.reshape(score.shape)

    def _at(self, score: FloatArray) -> FloatArray:
        if score.size < _SOME or self.y.size < 2:
            return self._plain(score)
        # With many classes, most probabilities lie on the first, constant piece.
        start = self.x[0] if self.is_steps or self.y[0] != self.y[1] else self.x[1]
        beyond = np.flatnonzero(score > start)
        if 2 * beyond.size > score.size:
            return self._plain(score)
        out = np.full(score.size, self.y[0])
        out[beyond] = self._plain(score[beyond])
        return out

    def _plain(self, score: FloatArray) -> FloatArray:
        if self.is_steps:
            return np.asarray(self.y[np.searchsorted(self.x, score, side="left")])
        return np.interp(score, self.x, self.y)

    def _by_table(self, score: FloatArray) -> FloatArray:
        cell = score.view(np.uint32) >> np.uint32(_SHIFT)
        base, slope, crossed = self._table
        out = base.take(cell, mode="clip")
        if not self.is_steps:
            out += slope.take(cell, mode="clip") * score
        bent = np.flatnonzero(crossed.take(cell, mode="clip"))
        out[bent] = self._plain(score[bent])
        return out

    @cached_property
    def _table(self) -> tuple[FloatArray, FloatArray, BoolArray]:
        """Intercept and slope on each cell of float32 numbers that share their leading bits, and whether the map bends there."""
        edges = (np.arange(_CELLS + 1, dtype=np.uint32) << np.uint32(_SHIFT)).view(np.float32)
        left, right = edges[:-1].astype(np.float64), edges[1:].astype(np.float64)
        crossed = np.searchsorted(self.x, left, side="left") != np.searchsorted(
            self.x, right, side="right"
        )
        if self.is_steps:
            return self._plain(right), np.zeros(1), crossed
        low, high = self._plain(left), self._plain(right)
        slope = (high - low) / (right - left)
        return low - slope * left, slope, crossed

    def within(self, margin: float) -> Piecewise:
        """Return the same map with its values clipped to [margin, 1 - margin]."""
        return Piecewise(self.x, np.clip(self.y, margin, 1 - margin))

    def to_dict(self) -> dict[str, list[float]]:
        """Return plain values, for JSON."""
        return {"x": self.x.tolist(), "y": self.y.tolist()}


#: A map that changes nothing.
UNCHANGED = Piecewise(np.array([0.0, 1.0]), np.array([0.0, 1.0]))


def supported(share: FloatArray, rows: IntArray | FloatArray) -> FloatArray:
    """Clip shares of hits to [1 / (2 (m + 1)), 1 - 1 / (2 (m + 1))], the range that m rows support.

    Only 0 and 1 are outside of it: no hit among m rows counts as half a hit among m + 1.
    """
    margin = 0.5 / (rows + 1)
    return np.clip(share, margin, 1 - margin)


def steps_merged(x: FloatArray, y: FloatArray) -> Piecewise:
    """Make a step function without the edges at which nothing changes."""
    keep = y[1:] != y[:-1]
    return Piecewise(np.asarray(x[keep]), np.asarray(np.append(y[:1], y[1:][keep])))


def halfway(ordered: FloatArray, edges: FloatArray) -> FloatArray:
    """Move edges from the last score below them half-way to the next score.

    The same rows stay in the same bins, and so does a score that is computed again with different
    rounding.
    """
    after = ordered[np.searchsorted(ordered, edges, side="right")]
    return np.asarray((edges.astype(np.float64) + after) / 2)


def thinned(x: FloatArray, y: FloatArray, tolerance: float) -> Piecewise:
    """Return a piecewise linear map through some of the points that is within the tolerance at all others."""
    kept = np.zeros(x.size, dtype=np.bool_)
    kept[np.linspace(0, x.size - 1, min(x.size, 33)).astype(np.intp)] = True
    while True:
        places = np.flatnonzero(kept)
        error = np.abs(np.interp(x, x[places], y[places]) - y)
        if error.max() <= tolerance:
            return Piecewise(np.asarray(x[places]), np.asarray(y[places]))
        # Add the worst point of every interval that exceeds the tolerance.
        worst = np.maximum.reduceat(error, places[:-1])
        interval = np.clip(
            np.searchsorted(places, np.arange(x.size), side="right") - 1, 0, places.size - 2
        )
        kept |= (error > tolerance) & (error == worst[interval])


# ---- Saved maps


#: Version of the JSON of a fitted map.
MAP_VERSION = 1


def check_map(record: Any) -> None:
    """Raise InputError unless this is a map that this version can read."""
    required = {"calviz_map", "method", "classes", "parameters", "floor", "fitted"}
    if not isinstance(record, Mapping) or not required <= set(record):
        raise InputError("this is not the map of a recalibrator that calviz wrote")
    if (version := record["calviz_map"]) != MAP_VERSION:
        raise InputError(f"the map has version {version!r}, this calviz reads {MAP_VERSION}")
    key = shortened(str(record["method"]))
    below_1 = float(np.nextafter(1, 0))
    facts = fields(classes=Numbers(least=2, whole=True), floor=Numbers(least=0, most=below_1))
    read_fields(facts, {name: record[name] for name in facts}, key, {})
    names = record.get("class_names", [])
    scores = record.get("scores", {"kind": "probabilities", "columns": []})
    kinds = (*get_args(Input), "confidence")
    if not isinstance(scores, Mapping) or scores.get("kind") not in kinds:
        raise damaged(key, "'scores' must have a 'kind' and 'columns'")
    lists = {"class_names": names, "columns": scores.get("columns")}
    lists |= {"model": record.get("model", [])}
    for name, texts in (lists | {"warnings": record.get("warnings", [])}).items():
        if not isinstance(texts, list | tuple) or not all(isinstance(text, str) for text in texts):
            raise damaged(key, f"'{name}' must be a list of texts")
    if len(set(names)) < len(names):
        raise damaged(key, "'class_names' must be different from each other")
    # Maps of confidence-only data have two classes, and any number of names.
    if len(names) not in (0, record["classes"]) and record["classes"] > 2:
        raise damaged(key, f"it has {record['classes']} classes and {len(names)} 'class_names'")
    if not isinstance(record.get("floor_clips", True), bool):
        raise damaged(key, "'floor_clips' must be true or false")
    if not isinstance(record.get("fitted_where", ""), str):
        raise damaged(key, "'fitted_where' must be a text")


def saved_parameters(cls: Callable[..., Any], record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of a saved map; those in `cls.added_later` may be missing, and have the values given there.

    Raises
    ------
    InputError
        If others are missing, or some are unknown.
    """
    names = {p.name for p in parameters_of(cls)}
    added = {name: v for name, v in getattr(cls, "added_later", {}).items() if name in names}
    parameters = record["parameters"]
    if not isinstance(parameters, Mapping) or not names - set(added) <= set(parameters) <= names:
        raise damaged(str(record["method"]), f"its parameters must be {', '.join(sorted(names))}")
    return {**added, **parameters}


def earlier_values(**values: Any) -> Mapping[str, Any]:
    """Return what maps saved before some parameters existed are read with, by parameter."""
    return values


def plain(value: Any) -> Any:
    """Convert arrays and NumPy numbers to lists and Python numbers, and maps to what they save."""
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return value


def damaged(key: str, what: str) -> InputError:
    """Return the error for a saved map that was changed or cut off."""
    return InputError(f"the map of '{key}' is damaged: {what}", remedy="fit it again, and save it")


# ---- Fields of saved maps


def fields(**declared: Field) -> Mapping[str, Field]:
    """Return what the fields of a saved map may hold, by name."""
    return declared


def learned(saved: Field | None = None, *, init: Literal[False] = False) -> Any:
    """Declare an attribute that `fit` sets, and what it may hold in a saved map; without `saved` it is not part of one."""
    return field(init=init, metadata={} if saved is None else {"saved": saved})


def read_fields(
    declared: Mapping[str, Field] | tuple[str, ...], record: Any, key: str, sizes: Sizes
) -> dict[str, Any]:
    """Return the fitted attributes of a saved map of the method `key`.

    Parameters
    ----------
    declared : mapping of str to Field, or tuple of str
        The fields; names alone declare finite numbers, or lists of them, of any shape.
    record : mapping
        The saved fields.
    key : str
        For messages.
    sizes : dict
        The lengths of K, C and others.

    Raises
    ------
    InputError
        If fields are missing or unknown, or hold something else.
    """
    if not isinstance(record, Mapping) or set(record) != set(declared):
        raise damaged(key, f"its fields must be {', '.join(declared) or 'none'}")
    attributes = {}
    for name in declared:
        field = declared[name] if isinstance(declared, Mapping) else _AnyNumbers()
        try:
            attributes[name] = field.read(record[name], sizes)
        except DamagedField as error:
            raise damaged(key, f"'{name}' {error}") from None
    return attributes


#: Lengths of axes by letter: K classes, C maps (K, or 1 for two classes), and others that a method declares. A letter without a
#: length takes that of the first array that has it.
Sizes = dict[str, int]


class DamagedField(ValueError):
    """What is wrong with a field, without its name: "must ..., got ..."."""


class Field(Protocol):
    """What one field of a saved map may hold."""

    def read(self, value: Any, sizes: Sizes) -> Any:
        """Return the value of the attribute; raises DamagedField if it is not what was declared."""
        ...


@dataclass(frozen=True)
class Numbers:
    """A finite number, or an array of them.

    Attributes
    ----------
    shape : tuple of int or str
        Axes, with lengths as numbers or as letters of `Sizes`; () is a single number.
    above, least, most : float
        Bounds: all numbers are greater than `above`, and within [`least`, `most`].
    whole : bool
        Whether they are whole numbers.
    ascending : bool
        Whether each is at least as large as the one before it along the first axis.
    total : float, optional
        What they sum to.
    """

    shape: tuple[int | str, ...] = ()
    above: float = -np.inf
    least: float = -np.inf
    most: float = np.inf
    whole: bool = False
    ascending: bool = False
    total: float | None = None

    def read(self, value: Any, sizes: Sizes) -> Any:
        """Return an array, or the number if `shape` is ()."""
        array = _numbers(value)
        if array.size == 0 and array.ndim == 1 and len(self.shape) > 1:
            array = array.reshape(0, *(_length(axis, sizes) or 0 for axis in self.shape[1:]))
        fits = array.ndim == len(self.shape) and all(
            _length(axis, sizes) in (None, length)
            for axis, length in zip(self.shape, array.shape, strict=True)
        )
        if not fits:
            raise DamagedField(
                f"must be {_shape_words(self.shape, sizes)}, got {_shape_words(array.shape, sizes)}"
            )
        self._check(array)
        for axis, length in zip(self.shape, array.shape, strict=True):
            if isinstance(axis, str):
                sizes.setdefault(axis, length)
        if self.shape:
            return array
        return int(array) if self.whole else float(array)

    def _check(self, array: FloatArray) -> None:
        for broken, rule in (
            (~np.isfinite(array), "finite"),
            (~(array > self.above), f"above {self.above:g}"),
            (~(array >= self.least), f"{self.least:g} or more"),
            (~(array <= self.most), f"at most {self.most:g}"),
            (array != np.floor(array) if self.whole else np.zeros(array.shape, np.bool_), "whole"),
        ):
            if broken.any():
                raise DamagedField(f"must be {rule}, got {float(array[broken][0])!r}")
        if self.ascending and array.shape[0] and (np.diff(array, axis=0) < 0).any():
            raise DamagedField("must be in ascending order, and is not")
        if self.total is not None and abs(array.sum() - self.total) > 1e-6:
            raise DamagedField(f"must sum to {self.total:g}, got {float(array.sum())!r}")


@dataclass(frozen=True)
class ProbabilityMap:
    """A `Piecewise` map of a probability to a probability.

    Attributes
    ----------
    rising : bool
        Whether no value is below the one before it.
    """

    rising: bool = False

    def read(self, value: Any, sizes: Sizes) -> Piecewise:
        """Return the map."""
        if not isinstance(value, Mapping) or set(value) != {"x", "y"}:
            raise DamagedField("must hold the points x and y of a map")
        x = Numbers(("M",), ascending=True).read(value["x"], {})
        y = Numbers(("N",), least=0, most=1, ascending=self.rising).read(value["y"], {})
        if y.size - x.size not in (0, 1) or y.size == 0:
            raise DamagedField(f"must hold points that fit together, got {x.size} x and {y.size} y")
        return Piecewise(x, y)


@dataclass(frozen=True)
class OnePerMap:
    """A list of C items, for methods with one map per class."""

    item: Field

    def read(self, value: Any, sizes: Sizes) -> list[Any]:
        """Return the items as a list."""
        if not isinstance(value, list) or len(value) != sizes["C"]:
            got = f"{len(value)}" if isinstance(value, list) else type(value).__name__
            raise DamagedField(f"must be a list of {sizes['C']}, one per map, got {got}")
        # Other letters may differ between items.
        return [self.item.read(item, dict(sizes)) for item in value]


@dataclass(frozen=True)
class _AnyNumbers:
    """Finite numbers of any shape; ragged lists become lists of arrays."""

    def read(self, value: Any, sizes: Sizes) -> Any:
        try:
            array = _numbers(value)
        except DamagedField:
            if isinstance(value, list) and any(isinstance(v, list) for v in value):
                return [self.read(v, sizes) for v in value]
            raise
        Numbers()._check(array)
        return array if array.ndim else value


def _numbers(value: Any) -> FloatArray:
    try:
        cells = np.asarray(value, dtype=object)
        kinds = set(map(type, cells.ravel().tolist()))
        array = cells.astype(np.float64)
    except (ValueError, TypeError, OverflowError):
        raise DamagedField("must hold numbers only, in rows of one length") from None
    # A text such as "0.5" could be converted too.
    if not kinds <= {int, float}:
        raise DamagedField("must hold numbers only, in rows of one length")
    return array


def _length(axis: int | str, sizes: Sizes) -> int | None:
    return axis if isinstance(axis, int) else sizes.get(axis)


def _shape_words(shape: tuple[int | str, ...], sizes: Sizes) -> str:
    lengths = [_length(axis, sizes) for axis in shape]
    if not lengths:
        return "a number"
    words = " x ".join(
        str(axis if length is None else length) for axis, length in zip(shape, lengths, strict=True)
    )
    return f"{words} numbers"


# ---- Python source


#: Largest number of constants that is written into a source file.
MAX_NUMBERS = 500_000
_SOFTMAX = """
def softmax(z):
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)
"""


@dataclass(frozen=True)
class Program:
    """A program that applies a single map, a chain of maps, or a weighted mean of maps.

    Attributes
    ----------
    functions : tuple of str
        The source of a function of the scores for each map, with distinct names.
    call : str
        Expression in ``scores`` that calls them.
    arguments : str
        Those of the function ``recalibrate``.
    """

    functions: tuple[str, ...]
    call: str
    arguments: str = "scores"

    @classmethod
    def one(cls, name: str, needs: Needs, given: Input, floor: ZeroFloor, body: str) -> Program:
        """Make a program of a single map.

        Parameters
        ----------
        name : str
            Name of its function of the scores.
        needs, given : str
            The form of the scores that `body` needs, and the form in which they are given.
        floor : ZeroFloor
            Zero floor that is applied before taking logarithms of probabilities.
        body : str
            Source that defines ``<name>_of``, a function from scores in the form `needs` to probabilities.
        """
        if given == needs:
            form = "scores"
        elif needs == "probabilities":
            form = "softmax(scores)"
        elif given == "logits":
            form = "np.log(np.maximum(softmax(scores), 1e-300))"
        else:
            form = f"np.log({floor.source('scores')})"
        source = f"{body.rstrip()}\n\n\ndef {name}(scores):\n    return {name}_of({form})\n"
        return cls((source,), f"{name}(scores)")

    def then(self, second: Program) -> Program:
        """Chain: apply these maps, then `second` to their probabilities."""
        call = second.call.replace("(scores)", f"({self.call})")
        return Program((*self.functions, *second.functions), call)

    @classmethod
    def mean(cls, weighted: Sequence[tuple[float, Program]]) -> Program:
        """Weighted mean of the probabilities of several programs; the weights sum to 1."""
        if len(weighted) == 1:
            return weighted[0][1]
        functions = tuple(source for _, program in weighted for source in program.functions)
        return cls(functions, " + ".join(f"{w!r} * {program.call}" for w, program in weighted))

    def text(self, key: str, given: Input) -> str:
        """Return the source of the program, for the method with this key and scores that are given in this form."""
        first = "np.zeros_like(scores)" if given == "logits" else "1 - scores"
        return "\n".join(
            [
                f'"""Recalibration map \'{key}\', fitted by calviz: {given}, shape (n, K), in; '
                "calibrated probabilities out. "
                'A confidence, or the scores of the second of two classes, shape (n,), gives those of that."""',
                "",
                "import numpy as np",
                "",
                _SOFTMAX,
                *(source + "\n" for source in self.functions),
                f"def recalibrate({self.arguments}):",
                *[
                    '    """`columns` has the values of these rows by column name, as a data frame has."""'
                ]
                * ("," in self.arguments),
                "    scores = np.asarray(scores, dtype=float)",
                "    if scores.ndim == 1:",
                f"        scores = np.stack([{first}, scores], axis=1)",
                f"        return recalibrate({self.arguments})[:, 1]",
                f"    return {self.call}",
                "",
            ]
        )


def array_source(values: npt.ArrayLike) -> str:
    """Return the source of an array, with all its digits; raise NotAvailable if it is too large."""
    numbers: Any = np.asarray(values, dtype=np.float64)
    if numbers.size > MAX_NUMBERS:
        raise NotAvailable(
            f"a map of {numbers.size:,} numbers is too large for a snippet; save it as JSON and use "
            "'calviz apply'."
        )
    return f"np.array({numbers.tolist()!r})"


def arrays_source(values: list[Any]) -> str:
    """Return the source of a list of arrays of different lengths."""
    if sum(np.size(v) for v in values) > MAX_NUMBERS:
        array_source(np.concatenate([np.ravel(v) for v in values]))
    return "[" + ",\n    ".join(array_source(v) for v in values) + "]"


def inverse_grid(given: Input) -> FloatArray:
    """Raw scores between which the inverse of a map is searched for: dense at both ends, where scores of rare events lie."""
    if given == "logits":
        near, far = np.linspace(-40, 40, 8_001), np.linspace(-750, 750, 1_501)
        return np.unique(np.concatenate([near, far]))
    small = np.exp(np.linspace(-700, -1, 2_048))
    return np.unique(np.concatenate([[0.0], small, np.linspace(0, 1, 2_049), 1 - small]))


def inverse_source(given: Input) -> str:
    """Source of ``inverse``, in terms of ``recalibrate``."""
    if given == "logits":
        grid, rest = (
            "np.unique(np.concatenate([np.linspace(-40, 40, 8001), np.linspace(-750, 750, 1501)]))",
            "np.zeros_like(s)",
        )
    else:
        small = "np.exp(np.linspace(-700, -1, 2048))"
        grid = f"np.unique(np.concatenate([[0.0], {small}, np.linspace(0, 1, 2049), 1 - {small}]))"
        rest = "1 - s"
    return f'''

def inverse(p):
    """The smallest raw score of class 1 whose calibrated probability is at least p; nan where none is."""
    def of_class_1(s):
        return recalibrate(np.stack([{rest}, s], axis=1))[:, 1]

    target = np.ravel(np.asarray(p, dtype=float))
    grid = {grid}
    at = np.searchsorted(np.maximum.accumulate(of_class_1(grid)), target, side="left")
    beyond, at = at == grid.size, np.minimum(at, grid.size - 1)
    low, high = grid[np.maximum(at - 1, 0)], grid[at]
    for _ in range(64):
        middle = low + (high - low) / 2
        reaches = of_class_1(middle) >= target
        low, high = np.where(reaches, low, middle), np.where(reaches, middle, high)
    return np.where(beyond, np.nan, high).reshape(np.shape(p))
'''


# ---- Data frames


def transform_frame(
    fitted: Any, frame: Any, scores: str | Sequence[str], names: Sequence[str] | None
) -> Any:
    """Return the frame with added columns of calibrated probabilities; see `BaseRecalibrator.transform_frame`.

    Raises
    ------
    InputError
        If it is not a data frame, or lacks some of the columns.
    OptionError
        If there is not one column per class, or not one distinct name per column.
    """
    import narwhals as nw

    columns = [scores] if isinstance(scores, str) else list(scores)
    new = [f"{name}_calibrated" for name in columns] if names is None else list(names)
    try:
        wrapped = nw.from_native(frame)
    except TypeError:
        raise InputError(f"got {type(frame).__name__}, expected a data frame") from None
    _check_columns(fitted, columns, new, wrapped.collect_schema().names())
    if wrapped.implementation.is_polars() and isinstance(wrapped, nw.LazyFrame):
        return _mapped_polars(fitted, frame, columns, new)
    if wrapped.implementation.is_pyspark() or wrapped.implementation.is_pyspark_connect():
        return _mapped_spark(fitted, frame, columns, new)
    if isinstance(wrapped, nw.DataFrame):
        calibrated = _calibrated_columns(fitted, columns, lambda name: wrapped[name].to_numpy())
        added = [
            nw.new_series(name, column, backend=wrapped.implementation)
            for name, column in zip(new, calibrated, strict=True)
        ]
        return wrapped.with_columns(*added).to_native()
    # Rows per batch, where the engine lets the caller choose.
    reader = record_batches(frame, 1 << 17, wrapped.implementation)
    return _mapped_reader(fitted, reader, columns, new)


def _check_columns(fitted: Any, columns: list[str], new: list[str], existing: list[str]) -> None:
    missing = [name for name in (*columns, *fitted.needed_columns) if name not in existing]
    if missing:
        needed = ", which the map needs" * (missing[0] in fitted.needed_columns)
        raise InputError(f"there is no column '{shortened(missing[0])}'{needed}")
    classes = int(fitted.n_features_in_)
    if len(columns) != classes and not (classes == 2 and len(columns) == 1):
        alternative = ", or that of the second class alone" if classes == 2 else ""
        raise OptionError(
            f"the map has {classes} classes, got {len(columns)} columns; give one for each class{alternative}."
        )
    if len(new) != len(columns) or len(set(new)) != len(new):
        raise OptionError("'names' must be one name for each column of scores, all different.")


def _calibrated_columns(
    fitted: Any, names: list[str], values: Callable[[str], Any]
) -> list[FloatArray]:
    """Return the calibrated columns of columns of scores, shape (n,) each; ``values(name)`` are those of a column."""
    columns = [values(name) for name in names]
    needed = {name: values(name) for name in fitted.needed_columns}
    more = {"columns": needed} if needed else {}
    table = np.stack(columns if len(columns) > 1 else [1 - columns[0], *columns], axis=1)
    calibrated = fitted.transform(table, **more) if len(table) else table
    return list(calibrated.T)[-len(columns) :]


def _mapped_polars(fitted: Any, frame: Any, columns: list[str], new: list[str]) -> Any:
    import polars as pl

    def add_columns(batch: pl.DataFrame) -> pl.DataFrame:
        calibrated = _calibrated_columns(fitted, columns, lambda name: batch[name].to_numpy())
        return batch.with_columns(
            *(pl.Series(n, c, dtype=pl.Float64) for n, c in zip(new, calibrated, strict=True))
        )

    # Every row is mapped independently of the others, so any block of rows may be mapped alone.
    return frame.map_batches(
        add_columns,
        schema=dict(frame.collect_schema()) | {name: pl.Float64() for name in new},
        streamable=True,
        predicate_pushdown=False,
        projection_pushdown=False,
        slice_pushdown=False,
    )


def _mapped_spark(fitted: Any, frame: Any, columns: list[str], new: list[str]) -> Any:
    schema = type(frame.schema)([field for field in frame.schema.fields if field.name not in new])
    for name in new:
        schema = schema.add(name, "double")

    def add_columns(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield _mapped_batch(fitted, batch, columns, new)

    return frame.mapInArrow(add_columns, schema)


def _mapped_reader(fitted: Any, reader: Any, columns: list[str], new: list[str]) -> Any:
    import pyarrow as pa

    other_fields = [field for field in reader.schema if field.name not in new]
    schema = pa.schema([*other_fields, *(pa.field(name, pa.float64()) for name in new)])
    batches = (_mapped_batch(fitted, batch, columns, new) for batch in reader)
    return pa.RecordBatchReader.from_batches(schema, batches)


def _mapped_batch(fitted: Any, batch: Any, columns: list[str], new: list[str]) -> Any:
    import pyarrow as pa

    def values(name: str) -> Any:
        return batch.column(name).to_numpy(zero_copy_only=False)

    calibrated = _calibrated_columns(fitted, columns, values)
    other_names = [name for name in batch.schema.names if name not in new]
    arrays = [batch.column(name) for name in other_names]
    added = [pa.array(column.astype(np.float64)) for column in calibrated]
    return pa.RecordBatch.from_arrays([*arrays, *added], names=[*other_names, *new])
