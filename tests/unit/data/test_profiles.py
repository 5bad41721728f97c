"""Profiles: their counts and cuts."""

import math
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import calviz
from calviz.core import row_columns as core_cells
from calviz.core.errors import InputError
from calviz.core.events import assign, equal_mass_edges
from calviz.core.profile import Profile, merge
from calviz.data.any_size import sums
from calviz.sample import cell_bounds
from calviz.sample.cell_bounds import CellTable, _sums, slope_jump, uncertain_bins
from tests.inputs.command_line import run
from tests.inputs.simulated import keep_few_scores
from tests.unit.data.test_sampling import check

# ---- Rows that stand for several (frequency weights): a profile of them is that of the rows written out


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
    keep_few_scores(monkeypatch, few)
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


# ---- Bounds over bins of equal mass of a profile hold in cells that are wide enough for them to be needed


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
    keep_few_scores(monkeypatch, 0)
    for module in (sums, cell_bounds):
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
        own = [some[own[0] > 0] for some in own]
        for some, (least, most) in zip(
            own, (result.rows, result.hits, result.gap, result.expected), strict=True
        ):
            if some.size != least.size:  # ties have made two cuts one
                continue
            assert (some >= least - 1e-9).all()
            assert (some <= most + 1e-9).all()
    assert math.isfinite(result.gap.high.sum())


def test_a_cut_in_the_last_cell_is_not_lost(monkeypatch):
    """Three rows in three bins, two of them in one cell: cells make two bins, rows three."""
    keep_few_scores(monkeypatch, 0)
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


# ---- The bound of KDE-ECE of a profile, in cells that are wide enough for it to be needed


@pytest.mark.parametrize(("width", "cells"), [(0.2, 160), (0.05, 640), (0.05, 1600)])
def test_the_jump_is_the_variation_of_the_slope_of_the_kernel(width, cells):
    # K'(u) = -105/16 u (1 - u^2)^2 is steepest at u^2 = 1/5, and rises and falls twice.
    variation = 4 * 105 / 16 / math.sqrt(5) * (1 - 1 / 5) ** 2
    result = slope_jump(width, cells + 1)
    assert result == pytest.approx(variation / cells / width**2, rel=0.01)


@pytest.mark.parametrize("cells", [60, 240, 1_200])
@pytest.mark.parametrize("seed", range(3))
def test_rows_lie_within_it(cells, seed, monkeypatch):
    keep_few_scores(monkeypatch, 0)
    for module in (sums, cell_bounds):
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


@pytest.mark.parametrize("sign", [".", ","])
def test_duckdb_reads_below_a_title_as_polars_does(tmp_path: Path, sign: str):
    pytest.importorskip("duckdb")
    rows = "".join(f"{i / 40};{i % 2}\n".replace(".", sign) for i in range(1, 40))
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text(f"Report of model A\n\np;label\n{rows}")
    made = [calviz.profile([first], engine=engine) for engine in ("polars", "duckdb")]
    cells = [one.cells.sort("cell") for one in made]
    np.testing.assert_allclose(*(table["score_sum"].to_numpy() for table in cells))
    second.write_text(f"Report of model B\n\np;label\n{rows}")
    with pytest.raises(InputError, match=r"b.csv: its first lines are not those of a.csv"):
        calviz.profile([first, second], engine="duckdb")
    assert calviz.profile([first, second], engine="polars").n == 78
