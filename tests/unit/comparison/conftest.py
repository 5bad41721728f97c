"""Data with and without splits, on which recalibrators are compared."""

import numpy as np
import pytest

from calviz.core.predictions import Predictions
from tests.inputs.simulated import simulate, softmax


@pytest.fixture(scope="module")
def data():
    z, y = simulate(1_200, 4, 2.5)
    splits = np.repeat(["calibration", "test", "spare"], 400)
    return Predictions(probs=softmax(z), labels=y, splits=splits, name="simulated")


@pytest.fixture(scope="module")
def plain():
    z, y = simulate(900, 3, 2.0)
    return Predictions(probs=softmax(z), labels=y)
