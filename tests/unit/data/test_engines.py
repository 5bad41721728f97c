"""The same cells from every engine that narwhals carries the sums to."""

import narwhals as nw
import numpy as np
import polars as pl
import pytest

import calviz
from calviz.core import profile as profile_module
from calviz.core.profile import Profile, ProfileColumns
from calviz.data.any_size import profiling as in_blocks
from calviz.data.any_size import sums as aggregate

N = 2_000


def table() -> pl.DataFrame:
    rng = np.random.default_rng(3)
    p = rng.beta(0.7, 2, N)
    p[:4] = 0.0, 1.0, 0.5, 1 / 15
    day = np.datetime64("2026-01-30T12:00", "us") + np.timedelta64(86_400_000_000) * rng.integers(
        0, 4, N
    )
    return pl.DataFrame(
        {
            "p": p,
            "y": (rng.random(N) < p).astype(np.int32),
            "country": rng.choice(["de", "fr"], N),
            "day": day.astype("datetime64[us]"),
        }
    )


def wide() -> pl.DataFrame:
    rng = np.random.default_rng(4)
    probs = rng.dirichlet(np.ones(4) * 0.5, N)
    probs[:2] = 0.25
    columns = {f"p_{k}": probs[:, k] for k in range(4)}
    return pl.DataFrame(columns | {"y": rng.integers(0, 4, N).astype(np.int32)})


def check(result: Profile, own: Profile) -> None:
    assert result.facts == own.facts
    keys = [c for c in own.cells.columns if own.cells[c].dtype != pl.Float64]
    assert result.cells.select(keys).equals(own.cells.select(keys))
    for name in set(own.cells.columns) - set(keys):
        np.testing.assert_allclose(result.cells[name], own.cells[name], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("engine", ["pandas", "pyarrow", "duckdb"])
def test_frames_of_other_libraries(engine: str):
    for rows, wanted in (
        (table(), {"by": ["country"], "time": "day", "every": "month"}),
        (wide(), {}),
    ):
        if engine == "duckdb":
            duckdb = pytest.importorskip("duckdb")
            native = duckdb.from_arrow(rows.to_arrow())
        else:
            native = rows.to_pandas() if engine == "pandas" else rows.to_arrow()
        check(calviz.profile(native, **wanted), calviz.profile(rows, **wanted))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("few", [0, 700, 1 << 17])
def test_sorted_blocks_are_what_is_grouped(monkeypatch, kind, few: int):
    for module in (in_blocks, aggregate, profile_module):
        monkeypatch.setattr(module, "FEW_SCORES", few)
    monkeypatch.setattr(in_blocks, "BLOCK_ROWS", 300)
    rng = np.random.default_rng(1)
    p = np.concatenate([np.arange(400) / 61_440, rng.random(600), rng.choice([0, 1, 0.25], 600)])
    rows = pl.DataFrame(
        {"p": p.astype(kind), "y": rng.integers(0, 2, p.size), "half": np.arange(p.size) % 2}
    ).sample(fraction=1, shuffle=True, seed=0)
    layout = ProfileColumns(label="y", scores=("p",), classes=(0, 1), class_names=("0", "1"))
    assert in_blocks.cells_in_blocks(nw.from_native(rows.lazy()), layout) is not None
    for wanted in ({}, {"by": ["half"]}):
        profile = calviz.profile(rows, label="y", scores=["p"], **wanted)
        check(profile, calviz.profile(rows.to_arrow(), label="y", scores=["p"], **wanted))
        assert profile.is_exact == (few > 700)
        halves = [
            calviz.profile(half, label="y", scores=["p"], **wanted)
            for half in rows.partition_by("half")
        ]
        check(halves[1] + halves[0], profile)


def test_duckdb_reads_the_files_itself(tmp_path):
    pytest.importorskip("duckdb")
    table().write_parquet(tmp_path / "a.parquet")
    profile = calviz.profile(tmp_path / "a.parquet", engine="duckdb", memory="500MB")
    check(profile, calviz.profile(tmp_path / "a.parquet"))
