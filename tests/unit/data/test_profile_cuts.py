"""Bounds over bins of equal mass of a profile hold in cells that are wide enough for them to be needed."""

import math

import numpy as np
import polars as pl
import pytest

import calviz
from calviz.core import profile as profile_module
from calviz.core import row_columns as core_cells
from calviz.core.events import assign, equal_mass_edges
from calviz.data.any_size import profiling as summarise
from calviz.data.any_size import sums as aggregate
from calviz.sample import cell_bounds
from calviz.sample.cell_bounds import CellTable
from calviz.sample.cell_bounds_of_bins import _sums, uncertain_bins

KEYS = ["ece_equal_mass", "ece_debiased", "ece_sweep", "hosmer_lemeshow"]


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
def test_rows_lie_within_them(cells, kind, monkeypatch):
    for module in (aggregate, profile_module, summarise):
        monkeypatch.setattr(module, "FEW_SCORES", 0)
    for module in (aggregate, cell_bounds):
        monkeypatch.setattr(module, "FINE_CELLS", cells)
    assert core_cells.FINE_CELLS % cells == 0
    rng = np.random.default_rng(cells)
    known = moved = 0
    for n in (25, 120, 700, 3_000):
        p, y = scores(kind, cells, n, rng)
        profile = calviz.profile(pl.DataFrame({"p": p, "y": y}).to_arrow())
        evaluation = calviz.evaluate(profile, KEYS, findings=False)
        for m in calviz.evaluate(calviz.Predictions(probs=p, labels=y), KEYS, findings=False):
            bound, off = evaluation[m.key].bound, abs(evaluation[m.key].value - m.value)
            if bound is None:
                continue
            known += 1
            moved += off > 1e-9
            assert off <= bound + 1e-12 * (1 + abs(m.value)), (m.key, n)
            if cells == 3_840 and n == 3_000 and kind in ("spread", "ties"):
                # About as much as the rows of a cell at each cut.
                assert bound < (2 if m.key == "hosmer_lemeshow" else 0.03), (m.key, bound)
    assert known >= 12 if kind == "spread" else known >= 4
    assert moved or kind == "ties"


@pytest.mark.parametrize("seed", range(6))
def test_bins_of_the_rows_lie_within_what_cells_tell(seed):
    rng = np.random.default_rng(seed)
    n, cells = int(rng.integers(20, 300)), int(rng.integers(4, 40))
    p = np.sort(np.round(rng.random(n), int(rng.integers(1, 4))) * 0.98 + 0.01)
    y = rng.random(n) < p
    cell = np.floor(p * cells).astype(int)
    _, at = np.unique(cell, return_inverse=True)
    columns = [np.bincount(at, w) for w in (y, ~y, ~y * p, y * (1 - p))]
    low = np.array([p[at == k].min() for k in range(at.max() + 1)])
    high = np.array([p[at == k].max() for k in range(at.max() + 1)])
    for bins in (2, 5, 15):
        result = uncertain_bins(_sums(CellTable(low, high, *columns)), bins)
        of_row = assign(p, equal_mass_edges(p, bins))
        if result.bins_inside.size:
            continue
        own = [np.bincount(of_row, w) for w in (np.ones(n), y, p - y, p)]
        own = [sums[own[0] > 0] for sums in own]
        for sums, (least, most) in zip(
            own, (result.rows, result.hits, result.gap, result.expected), strict=True
        ):
            if sums.size != least.size:  # ties have made two cuts one
                continue
            assert (sums >= least - 1e-9).all()
            assert (sums <= most + 1e-9).all()
    assert math.isfinite(result.gap.high.sum())


def test_a_cut_in_the_last_cell_is_not_lost(monkeypatch):
    """Three rows in three bins, two of them in one cell: cells make two bins, rows three."""
    for module in (aggregate, profile_module, summarise):
        monkeypatch.setattr(module, "FEW_SCORES", 0)
    width = 1 / core_cells.FINE_CELLS
    p, y = np.array([0.1, 0.5 + 0.2 * width, 0.5 + 0.7 * width]), np.array([1, 0, 0])
    profile = calviz.profile(pl.DataFrame({"p": p, "y": y}).to_arrow(), label="y", scores=["p"])
    assert profile.cells.height == 2
    result = calviz.evaluate(profile, ["ece_debiased"], bins=3, findings=False)["ece_debiased"]
    assert result.value == pytest.approx(2 / 3 * 0.5**2, abs=1e-4)
    own = calviz.evaluate(calviz.Predictions(probs=p, labels=y), ["ece_debiased"], bins=3)
    assert own["ece_debiased"].value == 0  # bins of one row
    assert result.exact is False
    assert result.bound >= result.value
