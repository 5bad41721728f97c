"""Logits of files and frames are summed as the probabilities that they stand for."""

import math

import numpy as np
import polars as pl
import pytest

import calviz
from calviz.core.errors import InputError
from calviz.core.profile import merge
from tests.unit.data.test_engines import check

N = 400
KEYS = ["accuracy", "nll", "brier", "ece", "mce", "ks", "auroc", "mcs", "oe_ratio"]
#: Softmax is taken in single precision in memory, and rounded to it here.
SLACK = {np.float64: 1e-9, np.float32: 2e-6}


def one_column(kind: type = np.float64) -> pl.DataFrame:
    rng = np.random.default_rng(1)
    z = rng.normal(0, 2, N)
    # Some whose probability is rounded to 0 or 1, right and wrong.
    z[:4] = 800, -800, 40, -40
    y = (rng.random(N) < 1 / (1 + np.exp(-z / 2))).astype(np.int64)
    y[:4] = 0, 1, 1, 1
    return pl.DataFrame({"logit": z.astype(kind), "y": y})


def three_columns(kind: type = np.float64) -> pl.DataFrame:
    rng = np.random.default_rng(2)
    z = rng.normal(0, 2, (N, 3)).astype(kind)
    z[0] = 900, -900, 5
    z[1] = 1, 1, 1
    return pl.DataFrame({f"logit_{k}": z[:, k] for k in range(3)} | {"y": rng.integers(0, 3, N)})


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("make", [one_column, three_columns])
def test_numbers_are_those_of_the_file_read_whole(tmp_path, make, kind):
    table = make(kind)
    for name, part in (("a", table[:130]), ("b", table[130:]), ("whole", table)):
        part.write_parquet(tmp_path / f"{name}.parquet")
    own = calviz.load(tmp_path / "whole.parquet")
    assert own.kind == "logits"
    profile = merge([calviz.profile(tmp_path / f"{name}.parquet") for name in "ba"])
    assert profile.is_exact
    assert profile.facts.single == (own.probs.dtype == np.float32)
    wanted = calviz.evaluate(own, KEYS)
    given = calviz.evaluate(profile, KEYS)
    for m in wanted:
        assert given[m.key].available == m.available, m.key
        if m.available:
            assert given[m.key].value == pytest.approx(m.value, rel=SLACK[kind], abs=SLACK[kind]), (
                m.key
            )


def test_two_rows_by_hand():
    rows = pl.DataFrame({"z": [math.log(3), 0.0], "y": [1, 0]})
    profile = calviz.profile(rows, label="y", scores=["z"], kind="logits")
    assert profile.cells["score_sum"].to_list() == pytest.approx([0.5, 0.75])
    assert profile.cells["log_loss"].to_list() == pytest.approx([math.log(2), math.log(4 / 3)])


@pytest.mark.parametrize("engine", ["pandas", "pyarrow", "duckdb"])
@pytest.mark.parametrize("make", [one_column, three_columns])
def test_every_engine_takes_them(engine: str, make):
    table = make()
    if engine == "duckdb":
        native = pytest.importorskip("duckdb").from_arrow(table.to_arrow())
    else:
        native = table.to_pandas() if engine == "pandas" else table.to_arrow()
    result, own = (
        merge_scores(calviz.profile(frame, true_class=True)) for frame in (native, table)
    )
    check(result, own)


def merge_scores(profile):
    """Engines differ in the last digit of exp: the scores that are apart for that are put together."""
    cells = profile.cells
    keys = [name for name in ("true", "cell", "hit") if name in cells.columns]
    numbers = [c for c in cells.columns if c not in (*keys, "low", "high")]
    summed = cells.group_by(keys).agg(*(pl.col(c).sum() for c in numbers)).sort(keys)
    return type(profile)(profile.facts, summed)


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("make", [one_column, three_columns])
@pytest.mark.parametrize("engine", ["polars", "pandas", "duckdb"])
def test_one_that_is_not_finite_is_refused(value, make, engine):
    table = make()
    name = table.columns[-2]
    rows = table.with_columns(pl.Series(name, [*table[name][:-1].to_list(), value]))
    if engine == "duckdb":
        native = pytest.importorskip("duckdb").from_arrow(rows.to_arrow())
    else:
        native = rows.to_pandas() if engine == "pandas" else rows
    with pytest.raises(InputError, match="1 of 400 rows cannot be used: 1 with a missing score"):
        calviz.profile(native)


def test_probabilities_that_are_called_logits_are_refused():
    p = np.random.default_rng(0).dirichlet(np.ones(3), 50)
    rows = pl.DataFrame({f"p_{k}": p[:, k] for k in range(3)} | {"y": np.arange(50) % 3})
    with pytest.raises(InputError, match="declared as logits, but all lie in"):
        calviz.profile(rows, kind="logits")
