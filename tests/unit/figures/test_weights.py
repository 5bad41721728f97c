"""Figures of rows of which some count more than others."""

import inspect

import numpy as np
import pytest

import calviz
from calviz.core.entry_specs import FIGURES
from calviz.core.predictions import repeated, with_rows

N = 400
#: What follows the number of rows, and not their shares: ranges, rows themselves, cuts by rank and penalties.
COUNTED = ("rows", "hits", "misses", "floor", "band", "ci_", "_low", "_high", "low", "high")
OTHER = {
    "bin-sensitivity": ("ece_equal_mass",),
    "calibration-curve": ("probability",),
    "cumulative": ("probability",),
    "decision-loss": ("calibrated_mean",),
    "class-bars": ("beyond",),
}


def rows():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.98, N)
    y = (rng.random(N) < p**1.2).astype(int)
    group = np.where(rng.random(N) < 0.4, "a", "b")
    data = calviz.Predictions(probs=p, labels=y, groups={"site": group})
    return data, rng.integers(1, 4, N)


@pytest.mark.slow
@pytest.mark.parametrize(
    "key", sorted({f.key for f in FIGURES} - {"conventions", "outcome-histogram"})
)
def test_a_weight_is_the_row_so_often(key):
    data, counts = rows()
    has_band = "band" in inspect.signature(FIGURES[key].compute).parameters
    how = {"band": False} if has_band else {}
    weighted = FIGURES[key].compute(with_rows(data, weights=counts), **how).frame()
    copied = FIGURES[key].compute(repeated(data, counts), **how).frame()
    compared = 0
    for name in weighted.select_dtypes("number"):
        if name.startswith(OTHER.get(key, ())) or any(part in name for part in COUNTED):
            continue
        compared += 1
        np.testing.assert_allclose(weighted[name], copied[name], rtol=1e-10, atol=1e-10)
    assert compared


def test_slices_are_those_of_repeated_rows():
    data, counts = rows()
    weighted = {s.where: s for s in calviz.slices(with_rows(data, weights=counts)).slices}
    copied = {s.where: s for s in calviz.slices(repeated(data, counts)).slices}
    assert len(weighted) == 2
    for where, one in weighted.items():
        other = copied[where]
        for name in ("score", "hits", "gap", "ece"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-12)


def test_p_values_of_weighted_slices_are_uniform_for_a_calibrated_model():
    p_values = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.1, 0.9, 200)
        y = (rng.random(200) < p).astype(int)
        data = calviz.Predictions(
            probs=p,
            labels=y,
            groups={"one": np.zeros(200, dtype=int)},
            weights=rng.exponential(size=200),
        )
        p_values += [s.p_value for s in calviz.slices(data).slices]
    assert 0.42 < np.mean(p_values) < 0.58
    assert np.mean(np.array(p_values) < 0.1) < 0.17
