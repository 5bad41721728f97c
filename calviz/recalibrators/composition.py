"""Compositions: a parametric map followed by a non-parametric one on its probabilities, scaling-binning is one with bins; and a map for the rows of a slice."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from calviz.core import entry_specs
from calviz.core.blocks import BoolArray, FloatArray, IntArray, row_blocks
from calviz.core.entry_specs import RECALIBRATORS, UNCALIBRATED, LeftOut, RecalibratorSpec, always
from calviz.core.errors import InputError, OptionError
from calviz.core.probabilities import Scores, softmax_probabilities
from calviz.core.words import counted, listed
from calviz.recalibrators.base import FlooredRecalibrator, check_part, rebuilt
from calviz.recalibrators.histogram import BinMeans
from calviz.recalibrators.isotonic import IsotonicRecalibrator, MulticlassIsotonic
from calviz.recalibrators.maps import Program, damaged, earlier_values
from calviz.recalibrators.segments import CODES_SOURCE, Condition, given_columns, in_rows, no_column
from calviz.recalibrators.temperature_scaling import EnsembleTemperatureScaling, TemperatureScaling

#: Size of a block: large, because each block goes through the input checks of both parts.
_BLOCK_BYTES = 1 << 24


class Chain(FlooredRecalibrator):
    """Base of the methods with two parts, which `_make` returns: the second maps the probabilities of the first.

    Attributes
    ----------
    first_, second_ : transformers
        The fitted parts.
    """

    needs = "probabilities"

    def _make(self) -> tuple[Any, Any]:
        """Return the two parts, unfitted."""
        raise NotImplementedError

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for part in self._make():
            part._check_parameters()

    def _takes_logarithms(self) -> bool:
        return False

    @property
    def takes_weights(self) -> bool:
        """Whether both parts support unequal row weights."""
        return all(part.takes_weights for part in self._make())

    def _fit_weighted(self, scores: Scores, labels: IntArray, weights: FloatArray | None) -> None:
        first, second = self._make()
        first.rows_each = self.rows_each
        self.first_ = first.fit(scores.array, labels, weights)
        # In single precision, like probabilities made from logits (see `Scores.dtype`).
        between = self.first_.transform(scores.array).astype(np.float32)
        self.second_ = second.fit(between, labels, weights)
        self._warn_of_parts(self.first_, self.second_)

    def _transform(self, scores: Scores, out: FloatArray) -> None:
        for rows in row_blocks(scores.array, block_bytes=_BLOCK_BYTES):
            # In double precision between the parts: a step function would amplify rounding.
            block = scores.array[rows].astype(np.float64)
            out[rows] = self.second_.transform(self.first_.transform(block))

    def _intervals(self, scores: Scores) -> FloatArray:
        between = self.first_.transform(scores.array.astype(np.float64))
        return np.asarray(self.second_.intervals(between)).astype(scores.array.dtype)

    def _saved(self) -> dict[str, Any]:
        return {"first": self.first_.to_dict(), "second": self.second_.to_dict()}

    def _read(self, saved: Any) -> None:
        if not isinstance(saved, Mapping) or set(saved) != {"first", "second"}:
            raise damaged(self.key, "its parts must be first, second")
        for name, made in zip(("first", "second"), self._make(), strict=True):
            part = type(made).from_dict(saved[name])
            check_part(self, part, made.input)
            setattr(self, f"{name}_", part)

    def _program(self, name: str) -> Program:
        first: Program = self.first_._program(f"{name}_first")
        return first.then(self.second_._program(f"{name}_second"))


class Composition(Chain):
    """A parametric map followed by a non-parametric one on its probabilities (Zhang 2020, section 3.4).

    Parameters
    ----------
    first, second : str
        Keys of a parametric and of a non-parametric recalibrator.
    floor : float, "auto" or None
        Zero floor of the first part, if it has one, as in `TemperatureScaling`.
    cap : bool
        Cap of the second part, if it has one, as in `IsotonicRecalibrator`.
    input : {"probabilities", "logits"}
        What X holds.
    """

    first: str = "temperature"
    second: str = "isotonic"
    cap: bool = True
    added_later = earlier_values(cap=False)

    @property
    def key(self) -> str:  # type: ignore[override]
        """Registry key, ``first+second``."""
        return f"{self.first}+{self.second}"

    @property
    def accuracy_preserving(self) -> bool:  # type: ignore[override]
        """Whether both parts keep the predicted class."""
        return composed(self.key).accuracy_preserving

    def _make(self) -> tuple[Any, Any]:
        composed(self.key)
        first, second = RECALIBRATORS[self.first], RECALIBRATORS[self.second]
        return (
            first.make_with(input=self.input, floor=self.floor),
            second.make_with(input="probabilities", cap=self.cap),
        )

    def describe(self) -> dict[str, Any]:
        """Return the fitted parameters of both parts."""
        return {self.first: self.first_.describe(), self.second: self.second_.describe()}


def composed(
    key: str, left_out: LeftOut = entry_specs.suggested, *, preselected: bool = False
) -> RecalibratorSpec:
    """Return the registry entry of the composition named ``first+second`` (Zhang 2020, section 3.4), or ``slice+base``, with its options as JSON after a space.

    Raises
    ------
    OptionError
        Unless the first part is parametric and the second one non-parametric.
    """
    names = [name.strip() for name in key.split("+")]
    if names[0] == SLICE and len(names) > 1:
        name, _, options = key.partition("+")[2].strip().partition(" ")
        try:
            if options:
                how = json.loads(options)
                return map_of_slice(name, SliceMap(base=name, **how).words, how)
        except (ValueError, TypeError, RecursionError) as error:
            raise OptionError("these are not the options of the map of a slice.") from error
        base = RECALIBRATORS[name]
        return replace(
            base,
            key=f"{SLICE}+{base.key}",
            label=f"{base.label} of a slice",
            family="Composition",
            summary=f"{base.label} for the rows of a slice; other rows as they are.",
            make=partial(SliceMap, base=base.key),
            takes_columns=True,
            interval_columns=(),
        )
    if len(names) != 2 or not all(names):
        raise OptionError(
            f"'{key}' is not a composition; write a parametric and a non-parametric recalibrator, "
            "such as temperature+isotonic."
        )
    first, second = (RECALIBRATORS[name] for name in names)
    if first.family != "Parametric" or second.family != "Non-parametric":
        raise OptionError(
            f"'{key}' is not a composition of a parametric and a non-parametric recalibrator: "
            f"'{first.key}' is {first.family.lower()} and '{second.key}' is {second.family.lower()}."
        )
    return RecalibratorSpec(
        key=f"{first.key}+{second.key}",
        label=f"{first.label}, then {second.label[0].lower()}{second.label[1:]}",
        family="Composition",
        accuracy_preserving=first.accuracy_preserving and second.accuracy_preserving,
        needs=first.needs,
        confidence_only=first.confidence_only and second.confidence_only,
        reference=f"Zhang et al. 2020, section 3.4; {first.reference}; {second.reference}",
        summary=f"{first.label} first, then the second map on its probabilities: "
        "the efficiency of the first, the flexibility of the second.",
        formula=r"T_2(T_1(z))",
        make=partial(Composition, first=first.key, second=second.key),
        left_out=left_out,
        preselected=preselected,
        interval_columns=second.interval_columns,
    )


# ---- A map for the rows of a slice

#: First part of the key of a map for the rows of a slice: ``slice+platt``.
SLICE = "slice"


def slice_of(data: Any, where: Iterable[tuple[str, str]]) -> list[dict[str, Any]]:
    """Return the conditions of a slice as a map saves them."""
    return [Condition.on(data, name, value).dated_as(data).to_dict() for name, value in where]


def map_of_slice(base: str, where: str, options: Mapping[str, Any]) -> RecalibratorSpec:
    """Return the registry entry of a `SliceMap` with options; `where` is in words."""
    spec = RECALIBRATORS[f"{SLICE}+{base}"]
    others = RECALIBRATORS[options.get("others", UNCALIBRATED)]
    by = "as they are" if others.key == UNCALIBRATED else f"by {others.label}"
    return replace(
        spec,
        label=f"Map for {where}, other rows {by}",
        accuracy_preserving=spec.accuracy_preserving and others.accuracy_preserving,
        make=partial(spec.make, **options),
    )


class SliceMap(FlooredRecalibrator):
    """A map for the rows that meet some conditions; other rows keep their probabilities, or have a map of their own.

    Parameters
    ----------
    base : str
        Key of the recalibrator of these rows.
    others : str
        Key of the recalibrator of the other rows, which takes no columns.
    where : dict of str to str, or list of dict
        The values of columns, intervals as "> 31", "≤ 31" or "(23, 31]", "17 to 20" of "hour of time"; or the conditions as `slice_of` makes them, which a fitted map has.
    floor, input
        As in `base`.

    Attributes
    ----------
    base_ : transformer
        The fitted map of these rows.
    others_ : transformer or None
        That of the other rows; None if they keep their probabilities.
    """

    base: str = "temperature"
    others: str = UNCALIBRATED
    where: Any = ()
    added_later = earlier_values(others=UNCALIBRATED)

    @property
    def takes_columns(self) -> bool:  # type: ignore[override]
        """Whether a condition asks for a column."""
        return bool(self.columns)

    @property
    def key(self) -> str:  # type: ignore[override]
        """Registry key, ``slice+base``."""
        return f"{SLICE}+{self.base}"

    @classmethod
    def around(cls, base: Any, where: Any, others: Any = None) -> Self:
        """Return a map that was fitted on the rows of a slice, for such rows only, with that of the other rows, if there is one."""
        key = UNCALIBRATED if others is None else others.key
        self = cls(base=base.key, others=key, where=where, input=base.input)
        self._check_parameters()
        self.where = [condition.to_dict() for condition in self.conditions]
        self.base_, self.classes_, self.n_features_in_ = base, base.classes_, base.classes_.size
        self.floor_, self.floor_clips_, self.others_ = 0.0, True, others
        self.warnings_ = tuple(w for part in self._parts.values() for w in part.warnings_)
        return self

    @property
    def _parts(self) -> dict[str, Any]:
        return {"base": self.base_} | ({"others": self.others_} if self.others_ else {})

    @property
    def _rest(self) -> str:
        """What becomes of the other rows."""
        return f"by {RECALIBRATORS[self.others_.key].label}" if self.others_ else "unchanged"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not self.where or not isinstance(self.where, list | tuple | Mapping):
            raise OptionError(
                """"where" must be the conditions of a slice, such as {"site": "b"}."""
            )
        assert self.conditions

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """The conditions, read."""
        if isinstance(self.where, Mapping):
            return tuple(Condition.written(n, str(value)) for n, value in self.where.items())
        return tuple(Condition.of(self.key, record) for record in self.where)

    @property
    def columns(self) -> list[str]:
        """Names of the columns of the conditions."""
        return [c.column.name for c in self.conditions if c.of_class is None]

    @property
    def needed_columns(self) -> tuple[str, ...]:
        """Names of the columns that `transform` needs."""
        return tuple(dict.fromkeys([*self.columns, *self.base_.needed_columns]))

    @property
    def words(self) -> str:
        """The conditions in words."""
        return ", ".join(condition.words for condition in self.conditions)

    def met(self, columns: Any, scores: FloatArray) -> tuple[BoolArray, BoolArray]:
        """Return which rows meet the conditions, and which have an empty cell where one asks for a value; shape (n,) each.

        Raises
        ------
        InputError
            If a column is missing.
        """
        given, n = given_columns(columns), len(scores)
        met, empty = np.ones(n, np.bool_), np.zeros(n, np.bool_)
        for condition in self.conditions:
            name = condition.column.name
            if condition.of_class is not None and condition.column.cut.kept is not None:
                met &= scores.argmax(axis=1) == condition.of_class
                continue
            if condition.of_class is not None:
                probs = scores if self.input == "probabilities" else softmax_probabilities(scores)
                given = {**given, name: probs[:, condition.of_class]}
            if name not in given:
                raise no_column(name, given, f"the map is for rows where {self.words} only")
            inside, without = condition.met(given[name])
            if inside.size != n:
                raise InputError(f"{listed([name])} has {inside.size:,} values for {n:,} rows")
            met &= inside
            empty |= without
        return met, empty

    def counts(self, scores: FloatArray, columns: Any = None) -> dict[str, int]:
        """Return how many rows it changes and leaves as they are, and how many of these have an empty cell where the conditions ask for a value."""
        met, empty = self.met(columns, scores)
        changed = int(np.count_nonzero(met))
        without = int(np.count_nonzero(empty))
        return {"changed": changed, "unchanged": met.size - changed, "without_value": without}

    def reading(self, rows: Mapping[str, int] | None = None) -> str:
        """Say which rows are changed and, by what `counts` returns, how many."""
        if rows is None:
            return (
                f"rows where {self.words} are changed by a map for them, other rows {self._rest}."
            )
        empty = rows["without_value"]
        without = f", {empty:,} of them without a value there" * bool(empty)
        changed = f"{counted(rows['changed'], 'row')} changed where {self.words}"
        return f"{changed}; {counted(rows['unchanged'], 'other row')} {self._rest}{without}."

    def fit(
        self,
        X: npt.ArrayLike,
        y: npt.ArrayLike,
        sample_weight: npt.ArrayLike | None = None,
        columns: Any = None,
    ) -> Self:
        """Fit the map on the rows of the slice, and that of the other rows on these; `columns`: values by name, as for `transform`."""
        self._check_parameters()
        scores, labels, met = np.asarray(X), np.asarray(y), self.met(columns, np.asarray(X))[0]
        if not met.any():
            raise InputError(f"there is no calibration row where {self.words}")

        def of(method: str, rows: BoolArray) -> Any:
            part = RECALIBRATORS[method].make_with(input=self.input, floor=self.floor)
            part.rows_each = self.rows_each
            weights = None if sample_weight is None else np.asarray(sample_weight)[rows]
            return part.fit(scores[rows], labels[rows], weights)

        others = None if self.others == UNCALIBRATED else of(self.others, ~met)
        for name, value in vars(self.around(of(self.base, met), self.where, others)).items():
            setattr(self, name, self.floor if name == "floor" else value)
        return self

    def transform(self, X: npt.ArrayLike, columns: Any = None) -> FloatArray:
        """Return the probabilities, shape (n, K): calibrated where the conditions are met, and else as they are or by the map of the other rows.

        Parameters
        ----------
        X : array_like of float, shape (n, K)
        columns : mapping of str to array_like, or data frame
            At least `needed_columns`.

        Raises
        ------
        InputError
            If a column is missing.
        """
        array = self._check_scores(X, reset=False)
        met, _ = self.met(columns, array)
        out = array.copy() if self.input == "probabilities" else softmax_probabilities(array)
        if self.others_:
            out = self.others_.transform(array)
        if (rows := np.flatnonzero(met)).size:
            given = given_columns(columns)
            more = {name: in_rows(given[name], rows) for name in self.base_.needed_columns}
            out[rows] = self.base_.transform(array[rows], **({"columns": more} if more else {}))
        return out

    def predict_proba(self, X: npt.ArrayLike, columns: Any = None) -> FloatArray:
        """Same as `transform`, shape (n, K)."""
        return self.transform(X, columns)

    def _why_no_inverse(self) -> str:
        return "the map depends on columns: it has no inverse of a score alone."

    def _described(self) -> dict[str, Any]:
        names = {"base": self.base, "others": "others"}
        return {names[name]: part.describe() for name, part in self._parts.items()}

    def _saved(self) -> dict[str, Any]:
        return {name: part.to_dict() for name, part in self._parts.items()}

    def _read(self, saved: Any) -> None:
        names = ("base",) if self.others == UNCALIBRATED else ("base", "others")
        if not isinstance(saved, Mapping) or set(saved) != set(names):
            raise damaged(self.key, f"its parts must be {listed(names)}")
        self.others_ = None
        for name in names:
            check_part(self, part := rebuilt(saved[name]), self.input)
            setattr(self, f"{name}_", part)

    def _program(self, name: str) -> Program:
        base, *rest = (part._program(f"{name}_{key}") for key, part in self._parts.items())
        source = _SLICE_SOURCE.format(
            name=name,
            words=self.words,
            where=[condition.source for condition in self.conditions],
            probs="softmax(scores)" if self.input == "logits" else "scores",
            others=rest[0].call if rest else "probs.copy()",
            rest=self._rest,
            call=base.call,
        )
        codes = CODES_SOURCE.format(name=name)
        return Program(
            (*(f for part in (base, *rest) for f in part.functions), codes, source),
            f"{name}(scores, columns)",
            "scores, columns",
        )


_SLICE_SOURCE = '''\
#: For the rows where {words!r}; other rows {rest}.
#: Columns of the conditions, how they are cut, which of these segments is meant, and whether they are dates, or what comes round in them (unit, place of 1970-01-01); or the predicted class, or the class whose score is meant.
{name}_where = {where!r}


def {name}(scores, columns):
    """Calibrate the rows that meet the conditions by a map for them; columns: values by name."""
    probs, met = {probs}, np.ones(len(scores), dtype=bool)
    for column, cut, held, dates, of_class in {name}_where:
        if of_class is not None and isinstance(cut[0], str):
            met &= scores.argmax(axis=1) == of_class
            continue
        if of_class is None and column not in columns:
            raise KeyError("the map is for rows where " + {words!r} + " only: it needs the column " + column)
        values = columns[column] if of_class is None else probs[:, of_class]
        met &= np.array(held)[{name}_codes(values, cut, dates)]
    out = {others}
    if met.any():
        columns = {{column: np.asarray(values)[met] for column, values in columns.items()}}
        scores = scores[met]
        out[met] = {call}
    return out
'''


RECALIBRATORS.composed = composed

# The compositions that the papers compare (Zhang 2020, section 5); any other pair works by its name.
_T, _IROVA = TemperatureScaling.key, IsotonicRecalibrator.key
for _listed in (
    composed(
        f"{_T}+{_IROVA}",
        lambda facts: entry_specs.follows_noise(facts) or entry_specs.close_to_simpler(facts),
        preselected=True,
    ),
    composed(f"{_T}+{MulticlassIsotonic.key}", always("a variant of IRM.")),
    composed(
        f"{EnsembleTemperatureScaling.key}+{_IROVA}",
        always("a variant of temperature scaling, then isotonic regression."),
    ),
):
    RECALIBRATORS.register(_listed)


# ---- Scaling-binning


@entry_specs.recalibrator(
    key="scaling-binning",
    label="Scaling-binning",
    family="Composition",
    confidence_only=True,
    reference="Kumar et al. 2019",
    formula=r"\hat p_k \propto \mathrm{mean}\{g_k(p) : g_k(p) \in B_m\}",
    left_out=always("a variant of histogram binning."),
)
class ScalingBinning(Chain):
    """A parametric map (Platt scaling), then equal-mass bins that hold the mean of its outputs: the calibration error of such a map can be measured reliably.

    Parameters
    ----------
    base : str
        Key of the parametric recalibrator.
    bins : int
        Number of equal-mass bins per class.
    floor : float, "auto" or None
        As in `PlattScaling`.
    input : {"probabilities", "logits"}
        What X holds.
    """

    base: str = "platt"
    bins: int = 15

    def _make(self) -> tuple[Any, Any]:
        spec = RECALIBRATORS[self.base]
        if spec.family != "Parametric":
            raise OptionError(f"'base' must be a parametric recalibrator, '{self.base}' is not.")
        return spec.make_with(input=self.input, floor=self.floor), BinMeans(bins=self.bins)

    def describe(self) -> dict[str, Any]:
        """Return the fitted parameters of both parts."""
        return {self.base: self.first_.describe(), "bins": self.second_.describe()}
