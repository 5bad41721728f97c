"""What `calviz apply` writes beside the scores: columns with their values, types and times."""

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

import calviz
from tests.inputs.command_line import outcome as run
from tests.inputs.maps_and_files import N, map_file, probabilities, write
from tests.inputs.table_files import write_table

pytestmark = pytest.mark.usefixtures("small_blocks")


@pytest.mark.parametrize("groups", [(), ("--group", "site"), ("--group", "")])
def test_columns_without_a_role_are_written_as_they_are(tmp_path: Path, groups: tuple[str, ...]):
    scores = probabilities()[:50]
    others = {
        "site": ["north", "south"] * 25,
        "time": [f"2024-03-{1 + i % 28:02d}T00:00:00+02:00" for i in range(50)],
        "comment": [f"text {i}" for i in range(50)],
    }
    frame = pl.DataFrame({**others, **{f"p_{k}": scores[:, k] for k in range(3)}})
    frame.write_csv(tmp_path / "new.csv")
    out = tmp_path / "out.csv"
    code, _, error = run(
        "apply", tmp_path / "new.csv", "--map", map_file(tmp_path), "--out", out, *groups
    )
    assert code == 0, error
    written = pl.read_csv(out, try_parse_dates=False)
    for name, values in others.items():
        assert written[name].to_list() == values


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
@pytest.mark.parametrize("roles", [(), ("--group", "site", "--time", "seen", "--id", "case")])
def test_columns_keep_their_types(tmp_path: Path, suffix: str, roles: tuple[str, ...]):
    first = datetime(2024, 3, 1, 8, tzinfo=UTC)
    others = pl.DataFrame(
        {
            "case": np.arange(N) + 2**60,
            "site": pl.Series(([None, 1, 2] * N)[:N], dtype=pl.Int8),
            "urgent": ([True, False, None] * N)[:N],
            "seen": [date(2024, 1, 1) + timedelta(i) for i in range(N)],
            "at": pl.Series([first + timedelta(hours=i) for i in range(N)]).dt.convert_time_zone(
                "Europe/Berlin"
            ),
            "amount": pl.Series(np.arange(N) / 7, dtype=pl.Float32),
            "comment": [f"text {i}" for i in range(N)],
            "note": ([None, "a", "b"] * N)[:N],
            "empty": (["", "a", "b"] * N)[:N],
            "grade": pl.Series(([None, "a", "b"] * N)[:N], dtype=pl.Categorical),
            "clock": ([time(7, 30, 0, 250), None, time(23, 59)] * N)[:N],
            "wait": ([timedelta(milliseconds=1500), None, timedelta(days=2)] * N)[:N],
        }
    )
    scores = {f"p_{k}": probabilities()[:, k] for k in range(3)}
    path, fitted = tmp_path / f"new{suffix}", map_file(tmp_path)
    write_table(others.with_columns(**scores), path)
    target = tmp_path / "out.parquet"
    code, _, stderr = run("apply", path, "--map", fitted, "--out", target, *roles)
    assert (code, stderr) == (0, "")
    written = pl.read_parquet(target).rename({"id": "case"} if roles else {})
    assert written.select(others.columns).equals(others)
    assert written.select(others.columns).schema == others.schema


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_missing_texts_and_empty_texts_are_told_apart(tmp_path: Path, suffix: str):
    values = ([None, "", "a", "b"] * N)[:N]
    others = pl.DataFrame(
        {
            "site": values,
            "grade": pl.Series(values, dtype=pl.Categorical),
            "raw": [None if v is None else v.encode() for v in values],
            "comment": [v if not v else f"{v} {i}" for i, v in enumerate(values)],
            "late": [*[""] * (N - 1), None],
            "only_empty": ([""] * 2 + ["a"] * N)[:N],
            "only_missing": ([None] * 2 + ["a"] * N)[:N],
        }
    )
    p = probabilities()
    scores = {f"p_{k}": p[:, k] for k in range(3)}
    path, out = tmp_path / f"new{suffix}", tmp_path / "out.parquet"
    write_table(others.with_columns(label=pl.Series(np.arange(N) % 3), **scores), path)
    for command in (("apply", "--map", map_file(tmp_path)), ("recalibrate", "--method", "platt")):
        code, _, wrong = run(command[0], path, *command[1:], "--out", out)
        assert (code, wrong) == (0, "")
        # Whoever needs groups leaves out columns with a value of its own in every row.
        kept = [name for name in others.columns if name in pl.read_parquet_schema(out)]
        assert len(kept) == 7 or command[0] == "recalibrate"
        written = pl.read_parquet(out).select(kept)
        assert written.equals(others.select(kept))
        assert written.schema == others.select(kept).schema
    # Both are one group, as before.
    assert calviz.load(path).groups["site"].counts() == {"": N // 2, "a": N // 4, "b": N // 4}
    assert calviz.load(out).groups["site"].missing.sum() == N // 4


def test_rows_that_are_left_out_keep_the_others_as_they_are(tmp_path: Path):
    p = probabilities()
    p[::2, 1] = np.nan
    scores = {f"p_{k}": p[:, k] for k in range(3)}
    site = pl.Series("site", (["", "", None, None, "a", "a"] * N)[:N])
    path, out = tmp_path / "rows.parquet", tmp_path / "out.parquet"
    pl.DataFrame({"label": np.arange(N) % 3, "site": site, **scores}).write_parquet(path)
    code, _, wrong = run(
        *("recalibrate", path, "--method", "platt", "--repair", "drop-missing", "--out", out)
    )
    assert (code, wrong) == (0, "")
    assert pl.read_parquet(out)["site"].equals(site.gather_every(2, 1))


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_columns_of_objects_are_left_out_with_a_notice(tmp_path: Path, suffix: str):
    p = probabilities()[:30]
    path, target = tmp_path / f"new{suffix}", tmp_path / "out.csv"
    frame = pl.DataFrame({**{f"p_{k}": p[:, k] for k in range(3)}, "meta": [{"a": 1}] * 30})
    write_table(frame, path)
    code, stdout, stderr = run("apply", path, "--map", map_file(tmp_path), "--out", target)
    assert (code, stderr) == (0, "")
    assert "left out: meta" in stdout
    assert pl.read_csv(target).columns == ["p_0", "p_1", "p_2"]


def test_columns_of_lists_of_one_value_keep_their_types(tmp_path: Path):
    p, rows = probabilities()[:30], range(30)
    lists = pl.DataFrame(
        {
            "whole": [[i] for i in rows],
            "some": [[i] if i else None for i in rows],
            "float": [[i / 2] for i in rows],
            "boolean": [[i % 2 == 0] for i in rows],
            "array": pl.Series([[i] for i in rows], dtype=pl.Array(pl.Float32, 1)),
        }
    )
    path, target = tmp_path / "new.parquet", tmp_path / "out.parquet"
    scores = pl.DataFrame({f"p_{k}": p[:, k] for k in range(3)})
    pl.concat([scores, lists], how="horizontal").write_parquet(path)
    code, _, stderr = run("apply", path, "--map", map_file(tmp_path), "--out", target)
    assert (code, stderr) == (0, "")
    written = pl.read_parquet(target).select(lists.columns)
    assert written.schema == lists.schema
    assert written.equals(lists)


def test_times_keep_their_offsets(tmp_path: Path):
    scores = probabilities()
    hours = [f"{i % 24:02d}:30:00" for i in range(N)]
    path, fitted = tmp_path / "rows.csv", map_file(tmp_path)
    for offset in ("+02:00", "Z", ""):
        frame = pl.DataFrame(
            {
                "time": [
                    f"2024-03-{1 + i % 28:02d}T{hour}{offset}" for i, hour in enumerate(hours)
                ],
                "label": np.arange(N) % 3,
                **{f"p_{k}": scores[:, k] for k in range(3)},
            }
        )
        frame.write_csv(path)
        times = calviz.load(path).times
        for suffix in (".csv", ".parquet", ".npz"):
            out = tmp_path / f"out{suffix}"
            for command in (("apply", "--map", fitted), ("recalibrate", "--method", "temperature")):
                code, _, stderr = run(command[0], path, *command[1:], "--out", out)
                assert (code, stderr) == (0, "")
                read = calviz.load(out, time_column="time")
                np.testing.assert_array_equal(read.times, times)
                if suffix == ".csv" and (offset or command[0] == "apply"):
                    written = pl.read_csv(out, try_parse_dates=False)["time"]
                    assert written.to_list() == frame["time"].to_list()


def test_times_that_cannot_be_used_are_not_lost(tmp_path: Path):
    times = ["2024-03-01"] * (N - 1) + ["unknown"]
    scores = {f"p_{k}": probabilities()[:, k] for k in range(3)}
    path, out = tmp_path / "rows.csv", tmp_path / "out.csv"
    pl.DataFrame({"time": times, "label": np.arange(N) % 3, **scores}).write_csv(path)
    fitted = map_file(tmp_path)
    for command in (("apply", "--map", fitted), ("recalibrate", "--method", "temperature")):
        code, _, stderr = run(command[0], path, *command[1:], "--out", out)
        assert (code, stderr) == (0, "")
        assert pl.read_csv(out)["time"].to_list() == times


def test_columns_with_the_names_of_what_is_written_keep_their_values(tmp_path: Path):
    scores = probabilities()[:50]
    others = {"split": ["x", "y"] * 25, "fold": ["u"] * 25 + ["v"] * 25}
    pl.DataFrame({**others, **{f"p_{k}": scores[:, k] for k in range(3)}}).write_csv(
        tmp_path / "new.csv"
    )
    out = tmp_path / "out.csv"
    code, _, error = run(
        *("apply", tmp_path / "new.csv", "--map", map_file(tmp_path)),
        *("--out", out, "--split-column", "fold"),
    )
    assert code == 0, error
    written = pl.read_csv(out)
    assert written["split"].to_list() == others["fold"]
    assert written["split_"].to_list() == others["split"]


def test_a_decimal_that_double_precision_does_not_hold_keeps_no_decimal_type(tmp_path: Path):
    frame = pl.from_arrow(pq.read_table(write(tmp_path, ".parquet", probabilities())))
    amount = pl.Series("amount", [Decimal("1.25")] * frame.height)
    frame = frame.with_columns(
        amount.cast(pl.Decimal(10, 2)).alias("small"), amount.cast(pl.Decimal(20, 2)).alias("large")
    )
    frame.write_parquet(tmp_path / "new.parquet")
    out = tmp_path / "out.parquet"
    code, _, stderr = run(
        "apply", tmp_path / "new.parquet", "--map", map_file(tmp_path), "--out", out
    )
    assert code == 0, stderr
    schema = pq.read_schema(out)
    assert str(schema.field("small").type) == "decimal128(10, 2)"
    assert "decimal" not in str(schema.field("large").type)
