"""Rows that stand for several (frequency weights): a profile of them is that of the rows written out."""

import math

import numpy as np
import polars as pl
import pytest

import calviz
from calviz.core import profile as profile_module
from calviz.core.errors import InputError
from calviz.core.profile import Profile, merge
from calviz.data.any_size import sums as aggregate
from tests.inputs.command_line import run
from tests.unit.data.test_engines import check

COUNTED = {"weight_column": "times", "weight_kind": "frequency"}


def two_classes(kind: type = np.float64) -> pl.DataFrame:
    rng = np.random.default_rng(5)
    p = rng.beta(0.7, 2, 300).astype(kind)
    p[:4] = 0, 1, 0.5, 1 / 15
    y = (rng.random(300) < p).astype(np.int32)
    # Scores of 0 and 1 that are wrong count in the log loss as they do in memory.
    y[:2] = 1, 0
    return pl.DataFrame({"p": p, "y": y, "times": rng.integers(0, 9, 300)})


def four_classes() -> pl.DataFrame:
    rng = np.random.default_rng(6)
    probs = rng.dirichlet(np.full(4, 0.5), 300)
    columns = {f"p_{k}": probs[:, k] for k in range(4)}
    return pl.DataFrame(columns | {"y": rng.integers(0, 4, 300), "times": rng.integers(0, 9, 300)})


def both_columns() -> pl.DataFrame:
    return two_classes().select(p_0=1 - pl.col("p"), p_1="p", y="y", times="times")


def confidences() -> pl.DataFrame:
    table = two_classes()
    return table.select(confidence="p", correct="y", times="times")


def written_out(table: pl.DataFrame) -> pl.DataFrame:
    return table[np.repeat(np.arange(table.height), table["times"].to_numpy())].drop("times")


def same(result: Profile, own: Profile) -> None:
    keys = [c for c in own.cells.columns if own.cells[c].dtype != pl.Float64]
    assert result.cells.select(keys).equals(own.cells.select(keys))
    for name in set(own.cells.columns) - set(keys):
        np.testing.assert_allclose(result.cells[name], own.cells[name], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("few", [0, 1 << 17])
@pytest.mark.parametrize(
    "make",
    [two_classes, lambda: two_classes(np.float32), four_classes, both_columns, confidences],
    ids=["two", "single", "four", "both", "confidences"],
)
def test_the_profile_is_that_of_the_rows_written_out(make, few: int, monkeypatch):
    for module in (aggregate, profile_module):
        monkeypatch.setattr(module, "FEW_SCORES", few)
    table = make()
    same(calviz.profile(table, **COUNTED), calviz.profile(written_out(table)))


@pytest.mark.parametrize("reduction", ["positive", "top-label"])
def test_numbers_are_those_of_the_file_read_whole(tmp_path, reduction):
    table = two_classes()
    table.write_parquet(tmp_path / "rows.parquet")
    # In memory the rows are repeated one by one: another way to the same numbers.
    own = calviz.load(tmp_path / "rows.parquet", **COUNTED)
    keys = ["ece", "nll", "brier", "ks", "auroc", "accuracy", "smece", "oe_ratio"]
    cut = [table[:70], table[70:71], table[71:]]
    profile = merge([calviz.profile(part, **COUNTED) for part in cut])
    wanted = calviz.evaluate(own, keys, reduction=reduction, ci=True)
    given = calviz.evaluate(profile, keys, reduction=reduction, ci=True)
    assert given.rows == wanted.rows == int(table["times"].sum())
    for m in wanted:
        assert given[m.key].value == pytest.approx(m.value, abs=1e-9), m.key
        width = m.interval.high - m.interval.low
        assert given[m.key].interval == pytest.approx(m.interval, abs=0.25 * width), m.key


def test_two_rows_by_hand():
    rows = pl.DataFrame({"p": [0.5, 0.25, 0.75], "y": [1, 0, 1], "times": [3, 2, 0]})
    profile = calviz.profile(rows, label="y", scores=["p"], **COUNTED)
    assert profile.cells.select("hit", "n", "score_sum", "square_sum").rows() == [
        (False, 2, 0.5, 0.125),
        (True, 3, 1.5, 0.75),
    ]
    nll = (3 * math.log(2) - 2 * math.log(0.75)) / 5
    assert calviz.evaluate(profile, ["nll"])["nll"].value == pytest.approx(nll, abs=1e-12)


@pytest.mark.parametrize("engine", ["pandas", "pyarrow", "duckdb"])
@pytest.mark.parametrize("make", [two_classes, four_classes])
def test_every_engine_counts_alike(engine: str, make):
    table = make()
    if engine == "duckdb":
        native = pytest.importorskip("duckdb").from_arrow(table.to_arrow())
    else:
        native = table.to_pandas() if engine == "pandas" else table.to_arrow()
    check(calviz.profile(native, **COUNTED), calviz.profile(table, **COUNTED))


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -1.0, 0.5])
@pytest.mark.parametrize("engine", ["polars", "pandas", "duckdb"])
def test_a_count_that_is_none_is_refused(value, engine):
    rows = pl.DataFrame({"p": [0.5, 0.25], "y": [1, 0], "times": [2.0, value]})
    native = {"polars": lambda: rows, "pandas": rows.to_pandas}.get(engine)
    if native is None:
        duckdb = pytest.importorskip("duckdb")
        native = lambda: duckdb.from_arrow(rows.to_arrow())  # noqa: E731
    with pytest.raises(
        InputError, match="1 rows cannot be used: 1 with a count that is not a whole"
    ):
        calviz.profile(native(), label="y", scores=["p"], **COUNTED)


def test_what_has_no_profile_is_a_sentence(tmp_path):
    rows = two_classes()
    with pytest.raises(InputError, match=r"no importance weights.*single rows.*frequency"):
        calviz.profile(rows, weight_column="times")
    none = rows.with_columns(times=pl.lit(0))
    with pytest.raises(InputError, match="all counts are zero"):
        calviz.profile(none, **COUNTED)
    none.write_parquet(tmp_path / "none.parquet")
    with pytest.raises(InputError, match="all counts are zero"):
        calviz.profile(tmp_path / "none.parquet", **COUNTED)
    with pytest.raises(InputError, match="the column of counts holds no numbers"):
        calviz.profile(rows.with_columns(times=pl.lit("two")), **COUNTED)


def test_the_command_takes_them(tmp_path):
    table = two_classes()
    table.write_parquet(tmp_path / "rows.parquet")
    asked = ["profile", str(tmp_path / "rows.parquet"), "--out", str(tmp_path / "out.parquet")]
    result = run(*asked, "--weight", "times", "--weight-kind", "frequency")
    assert result.exit_code == 0, result.output
    assert f"{table['times'].sum():,} rows" in result.stdout
    result = run(*asked, "--weight", "times")
    assert (result.exit_code, "no importance weights" in result.stderr) == (2, True)


def test_the_first_bad_count_of_files_is_named(tmp_path):
    at = tmp_path / "rows.parquet"
    two_classes().with_columns(times=pl.lit(1.5)).write_parquet(at)
    with pytest.raises(InputError, match=r"the first is row 1 of rows\.parquet, with a count"):
        calviz.profile(at, **COUNTED)
