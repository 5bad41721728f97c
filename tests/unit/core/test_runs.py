import numpy as np
import pytest

from calviz.core import blocks as row_runs


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("starts", [[0], [0, 1, 2, 999], [0, 10, 64, 65, 128, 500]])
def test_totals_of_runs_are_those_of_the_pieces(monkeypatch, dtype, starts):
    monkeypatch.setattr(row_runs, "BLOCK", 64)
    values = np.random.default_rng(0).random(1_000).astype(dtype)
    pieces = np.split(values.astype(float), starts[1:])
    result = row_runs.run_totals(values, np.array(starts))
    np.testing.assert_allclose(result, [p.sum() for p in pieces], rtol=1e-14)
