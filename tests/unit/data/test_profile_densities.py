"""The bound of KDE-ECE of a profile, in cells that are wide enough for it to be needed."""

import math

import numpy as np
import polars as pl
import pytest

import calviz
from calviz.core import profile as profile_module
from calviz.data.any_size import profiling as summarise
from calviz.data.any_size import sums as aggregate
from calviz.sample import cell_bounds
from calviz.sample.cell_bounds import slope_jump


@pytest.mark.parametrize(("width", "cells"), [(0.2, 160), (0.05, 640), (0.05, 1600)])
def test_the_jump_is_the_variation_of_the_slope_of_the_kernel(width, cells):
    # K'(u) = -105/16 u (1 - u^2)^2 is steepest at u^2 = 1/5, and rises and falls twice.
    variation = 4 * 105 / 16 / math.sqrt(5) * (1 - 1 / 5) ** 2
    result = slope_jump(width, cells + 1)
    assert result == pytest.approx(variation / cells / width**2, rel=0.01)


@pytest.mark.parametrize("cells", [60, 240, 1_200])
@pytest.mark.parametrize("seed", range(3))
def test_rows_lie_within_it(cells, seed, monkeypatch):
    for module in (aggregate, profile_module, summarise):
        monkeypatch.setattr(module, "FEW_SCORES", 0)
    for module in (aggregate, cell_bounds):
        monkeypatch.setattr(module, "FINE_CELLS", cells)
    rng = np.random.default_rng(seed)
    n = 600
    # Most rows at one end of their cell: their mean is near it, and one of them far away.
    p = (rng.integers(0, cells, n) + rng.choice([0.01, 0.5, 0.99], n, p=[0.8, 0.1, 0.1])) / cells
    y = (p > 0.5).astype(np.int64) if seed else rng.integers(0, 2, n)
    evaluation = calviz.evaluate(
        calviz.profile(pl.DataFrame({"p": p, "y": y}).to_arrow()),
        ["kde_ece", "kde_ece_l2"],
        findings=False,
    )
    for m in calviz.evaluate(calviz.Predictions(probs=p, labels=y), [m.key for m in evaluation]):
        off = abs(evaluation[m.key].value - m.value)
        assert evaluation[m.key].exact is False
        assert off <= evaluation[m.key].bound, m.key
        # Wide as it is, it shrinks with the square of the cells.
        assert evaluation[m.key].bound < {60: 0.05, 240: 0.004, 1_200: 4e-4}[cells]
    if cells == 60:
        assert off > 1e-9
