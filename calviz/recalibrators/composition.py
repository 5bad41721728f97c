"""A parametric map, and then a non-parametric one on its probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from calviz.core.arrays import FloatArray, IntArray
from calviz.core.errors import InputError
from calviz.core.recalibrator import RECALIBRATORS, FloorChoice, Input, compose
from calviz.numerics.blocks import row_blocks
from calviz.numerics.scores import Scores
from calviz.recalibrators import source
from calviz.recalibrators.base import MAP_VERSION, BaseRecalibrator, check_map, plain

#: Large blocks: each of them goes through the checks of both parts.
_BLOCK_BYTES = 1 << 24


class Composition(BaseRecalibrator):
    """A parametric map and then a non-parametric one on its probabilities (Zhang 2020, section 3.4).

    Parameters
    ----------
    first, second : str
        Keys of a parametric and of a non-parametric recalibrator.
    floor : float, "auto" or None
        Of the first one, where it has one, as in `TemperatureScaling`.
    input : {"probabilities", "logits"}
        What X holds.

    Attributes
    ----------
    first_, second_ : transformers
        The fitted parts.
    """

    needs = "probabilities"

    def __init__(
        self,
        *,
        first: str = "temperature",
        second: str = "isotonic",
        floor: FloorChoice = "auto",
        input: Input = "probabilities",
    ) -> None:
        self.first = first
        self.second = second
        self.floor = floor
        self.input = input

    @property
    def key(self) -> str:  # type: ignore[override]
        """``first+second``."""
        return f"{self.first}+{self.second}"

    @property
    def accuracy_preserving(self) -> bool:  # type: ignore[override]
        """Whether both parts keep the predicted class."""
        return compose(RECALIBRATORS, self.key).accuracy_preserving

    def _takes_logarithms(self) -> bool:
        return False

    def _make(self) -> tuple[Any, Any]:
        compose(RECALIBRATORS, self.key)
        first = RECALIBRATORS[self.first]
        floor = {"floor": self.floor} if any(p.name == "floor" for p in first.parameters) else {}
        return (
            first.make(input=self.input, **floor),
            RECALIBRATORS[self.second].make(input="probabilities"),
        )

    def _fit(self, scores: Scores, labels: IntArray) -> None:
        first, second = self._make()
        self.first_ = first.fit(scores.array, labels)
        # As probabilities that are made of logits: in single precision, see `Scores.dtype`.
        self.second_ = second.fit(self.first_.transform(scores.array).astype(np.float32), labels)
        for part in (self.first_, self.second_):
            for sentence in part.warnings_:
                if sentence not in self._notes:
                    self._warn(sentence)

    def _transform(self, scores: Scores, out: FloatArray) -> None:
        for rows in row_blocks(scores.array, block_bytes=_BLOCK_BYTES):
            # In double precision between the two: a map that jumps must not see rounding.
            block = scores.array[rows].astype(np.float64)
            out[rows] = self.second_.transform(self.first_.transform(block))

    def describe(self) -> dict[str, Any]:
        """The fitted parameters of both parts."""
        return {self.first: self.first_.describe(), self.second: self.second_.describe()}

    def to_dict(self) -> dict[str, Any]:
        """Both maps as plain values, ready for JSON."""
        return {
            "calviz_map": MAP_VERSION,
            "method": self.key,
            "classes": int(self.classes_.size),
            "parameters": {k: plain(v) for k, v in self.get_params(deep=False).items()},
            "floor": 0.0,
            "floor_clips": True,
            "fitted": {"first": self.first_.to_dict(), "second": self.second_.to_dict()},
            "warnings": list(self.warnings_),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
        """A fitted composition from what `to_dict` wrote."""
        check_map(record)
        parts = record["fitted"]
        if set(parts) != {"first", "second"}:
            raise InputError("this is not the map of a composition")
        self = cls(**record["parameters"])
        first, second = self._make()
        self.first_ = type(first).from_dict(parts["first"])
        self.second_ = type(second).from_dict(parts["second"])
        k = int(record["classes"])
        self.classes_, self.n_features_in_ = np.arange(k), k
        self.floor_, self.floor_clips_ = 0.0, True
        self.warnings_ = tuple(str(w) for w in record.get("warnings", ()))
        return self

    def snippet(self) -> str:
        """Python source that applies both maps with nothing but NumPy."""
        return source.program(
            self.key, self.input, self.first_._pieces("first"), self.second_._pieces("second")
        )
