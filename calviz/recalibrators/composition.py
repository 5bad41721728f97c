"""Compositions: a parametric map followed by a non-parametric one on its probabilities; scaling-binning is one with bins."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any, Self

import numpy as np

from calviz.core import entry_specs
from calviz.core.blocks import FloatArray, IntArray, row_blocks
from calviz.core.entry_specs import RECALIBRATORS, LeftOut, RecalibratorSpec, always
from calviz.core.errors import OptionError
from calviz.core.probabilities import Scores
from calviz.recalibrators.base import FlooredRecalibrator, check_part
from calviz.recalibrators.histogram import BinMeans
from calviz.recalibrators.isotonic import IsotonicRecalibrator, MulticlassIsotonic
from calviz.recalibrators.maps import Program, check_map, damaged, earlier_values
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

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """Rebuild a fitted composition from the output of `to_dict`."""
        check_map(record)
        self = cls._restore(record)
        # Its key is that of its parameters.
        if self.key != record["method"]:
            raise damaged(self.key, f"its method is '{record['method']}'")
        return self


def composed(
    key: str, left_out: LeftOut = entry_specs.suggested, *, preselected: bool = False
) -> RecalibratorSpec:
    """Return the registry entry of the composition named ``first+second`` (Zhang 2020, section 3.4).

    Raises
    ------
    OptionError
        Unless the first part is parametric and the second one non-parametric.
    """
    names = [name.strip() for name in key.split("+")]
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
