"""Base of the methods with one function of a probability, shared by all classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.recalibrators.base import BaseRecalibrator
from calviz.recalibrators.fitting.piecewise import Piecewise
from calviz.recalibrators.maps.fields import ProbabilityMap, fields


class OneMap(BaseRecalibrator):
    """Base of the methods whose fit is one piecewise function, `map_`."""

    fitted = fields(map_=ProbabilityMap())
    map_: Piecewise

    def _described(self) -> dict[str, Any]:
        """Return the number of points of the map, and the range of its values."""
        y = self.map_.y
        return {"points": int(y.size), "lowest": float(y.min()), "highest": float(y.max())}

    def curve(self, score: FloatArray) -> FloatArray:
        """Return the map at scores of any shape, before normalisation."""
        return self.map_(np.asarray(score))

    def _saved(self) -> dict[str, Any]:
        return {"map_": self.map_.to_dict()}
