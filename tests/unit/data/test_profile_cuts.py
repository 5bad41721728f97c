"""The bound of the ECE over bins of equal mass of a profile holds in cells that are wide enough for it to be needed."""

import numpy as np
import polars as pl
import pytest

import calviz
from calviz.core import profile as profile_module
from calviz.core import row_columns as core_cells
from calviz.data.any_size import profiling as summarise
from calviz.data.any_size import sums as aggregate
from calviz.sample import cell_bounds

KEYS = ["ece_equal_mass"]


def scores(kind: str, cells: int, n: int, rng: np.random.Generator):
    if kind == "spread":
        p = rng.beta(0.7, 1.5, n)
    elif kind == "few cells":
        p = (rng.choice(cells, 5) + 0.0)[rng.integers(0, 5, n)] / cells
        p += rng.uniform(0.01, 0.99, n) / cells
    elif kind == "ties":
        p = np.round(rng.beta(1, 1, n) * cells * 3) / (cells * 3)
    else:
        p = np.clip(rng.normal(0.5, 0.4, n), 0, 1)
    y = rng.random(n) < p**1.5
    if kind == "ends":
        y = rng.random(n) < np.clip(p, 0.05, 0.95)
    return p, y.astype(np.int64)


@pytest.mark.parametrize("cells", [30, 240, 3_840])
@pytest.mark.parametrize("kind", ["spread", "few cells", "ties", "ends"])
def test_rows_lie_within_it(cells, kind, monkeypatch):
    for module in (aggregate, profile_module, summarise):
        monkeypatch.setattr(module, "FEW_SCORES", 0)
    for module in (aggregate, cell_bounds):
        monkeypatch.setattr(module, "FINE_CELLS", cells)
    assert core_cells.FINE_CELLS % cells == 0
    rng = np.random.default_rng(cells)
    moved = 0
    for n in (25, 120, 700, 3_000):
        p, y = scores(kind, cells, n, rng)
        profile = calviz.profile(pl.DataFrame({"p": p, "y": y}).to_arrow())
        evaluation = calviz.evaluate(profile, KEYS, findings=False)
        for m in calviz.evaluate(calviz.Predictions(probs=p, labels=y), KEYS, findings=False):
            bound, off = evaluation[m.key].bound, abs(evaluation[m.key].value - m.value)
            moved += off > 1e-9
            assert off <= bound + 1e-12 * (1 + abs(m.value)), (m.key, n)
            if cells == 3_840 and n == 3_000 and kind in ("spread", "ties"):
                # About as much as the rows of a cell at each cut.
                assert bound < 0.03, bound
    assert moved or kind == "ties" or cells == 3_840


def test_bins_inside_a_cell_are_not_lost(monkeypatch):
    """Four rows in four bins, three of them in one cell: cells make two bins, rows four."""
    for module in (aggregate, profile_module, summarise):
        monkeypatch.setattr(module, "FEW_SCORES", 0)
    p = np.array([0.1, *(0.5 + np.array([0.2, 0.5, 0.8]) / core_cells.FINE_CELLS)])
    y = np.array([1, 1, 0, 1])
    profile = calviz.profile(pl.DataFrame({"p": p, "y": y}).to_arrow(), label="y", scores=["p"])
    keys = ["ece_equal_mass"]
    (result,) = calviz.evaluate(profile, keys, bins=4, findings=False)
    (own,) = calviz.evaluate(calviz.Predictions(probs=p, labels=y), keys, bins=4)
    assert result.value == pytest.approx((0.9 + 0.5) / 4, abs=1e-4)
    assert own.value == pytest.approx((0.9 + 3 * 0.5) / 4, abs=1e-4)
    assert result.exact is False
    # The rows of the cell count twice: a sum of 0.5 above, and of 2 times 0.5 below.
    assert result.bound == pytest.approx(2 * 1.5 / 4, abs=1e-4)
