"""Maps on data frames give what they give on arrays, whatever the library, and lazily where the frame is lazy."""

import numpy as np
import polars as pl
import pytest

from calviz.core.errors import InputError, OptionError
from calviz.recalibrators.isotonic import IsotonicRecalibrator
from calviz.recalibrators.platt_scaling import PlattScaling
from calviz.recalibrators.temperature_scaling import TemperatureScaling

N = 700


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), N)
    columns = {f"p{k}": probs[:, k] for k in range(3)}
    p = rng.beta(0.7, 2, N)
    return pl.DataFrame(
        {"id": np.arange(N), "p": p, **columns, "y": (rng.random(N) < p).astype(int)}
    )


def two(rows: pl.DataFrame) -> np.ndarray:
    p = rows["p"].to_numpy()
    return np.stack([1 - p, p], axis=1)


def added(result, name: str) -> np.ndarray:
    table = result.read_all() if hasattr(result, "read_all") else result
    table = table.collect() if isinstance(table, pl.LazyFrame) else table
    assert np.array_equal(np.asarray(table["id"]), np.arange(N))
    return np.asarray(table[name])


FRAMES = {
    "polars": lambda t: t,
    "polars, lazy": lambda t: t.lazy(),
    "pandas": lambda t: t.to_pandas(),
    "pyarrow": lambda t: t.to_arrow(),
    "duckdb": lambda t: pytest.importorskip("duckdb").from_arrow(t.to_arrow()),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_every_library_gives_what_the_array_gives(rows, kind):
    frame = FRAMES[kind](rows)
    for method in (PlattScaling, IsotonicRecalibrator):
        fitted = method().fit(two(rows), rows["y"].to_numpy())
        calibrated = fitted.transform_frame(frame, "p")
        wanted = fitted.transform(two(rows))[:, 1]
        np.testing.assert_allclose(added(calibrated, "p_calibrated"), wanted, rtol=0, atol=1e-12)
    probs = rows.select("p0", "p1", "p2").to_numpy()
    fitted = TemperatureScaling().fit(probs, rows["id"].to_numpy() % 3)
    names = ["a", "b", "p"]  # p takes the place of a column that is there
    calibrated = fitted.transform_frame(frame, ["p0", "p1", "p2"], names=names)
    table = calibrated.read_all() if hasattr(calibrated, "read_all") else calibrated
    table = table.collect() if isinstance(table, pl.LazyFrame) else table
    for k, name in enumerate(names):
        np.testing.assert_allclose(
            np.asarray(table[name]), fitted.transform(probs)[:, k], rtol=0, atol=1e-12
        )


def test_a_lazy_frame_is_not_collected_and_streams(rows, tmp_path):
    rows.write_parquet(tmp_path / "a.parquet")
    fitted = PlattScaling().fit(two(rows), rows["y"].to_numpy())
    lazy = fitted.transform_frame(pl.scan_parquet(tmp_path / "a.parquet"), "p")
    assert isinstance(lazy, pl.LazyFrame)
    lazy.filter(pl.col("id") < 10).sink_parquet(tmp_path / "b.parquet")
    result = pl.read_parquet(tmp_path / "b.parquet")["p_calibrated"].to_numpy()
    np.testing.assert_allclose(result, fitted.transform(two(rows))[:10, 1], rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("q",), "there is no column 'q'"),
        ((["p0", "p1", "p2"],), "the map has 2 classes, got 3 columns"),
        (("p", []), "'names' must be one name for each"),
    ],
)
def test_what_does_not_fit_is_said(rows, arguments, message):
    fitted = PlattScaling().fit(two(rows), rows["y"].to_numpy())
    scores, *names = arguments
    with pytest.raises((InputError, OptionError), match=message):
        fitted.transform_frame(rows, scores, names=names[0] if names else None)
    with pytest.raises(InputError, match="expected a data frame"):
        fitted.transform_frame([1, 2], "p")
