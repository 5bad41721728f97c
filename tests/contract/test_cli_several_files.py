"""Several files as one table: folders, patterns, and what is wrong with one of them."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import calviz
from calviz.core.errors import InputError
from tests.inputs.command_line import outcome as run
from tests.inputs.maps_and_files import map_file, probabilities, write

pytestmark = pytest.mark.usefixtures("small_blocks")


def test_several_files_are_written_to_a_folder(tmp_path: Path):
    path, fitted = write(tmp_path, ".csv", probabilities()), map_file(tmp_path)
    other = tmp_path / "other.csv"
    other.write_bytes(path.read_bytes())
    for named in ((path, other), (tmp_path / "*.csv",)):
        code, _, stderr = run("apply", *named, "--map", fitted, "--out", tmp_path / "out.csv")
        assert (code, "must be a folder" in stderr) == (2, True)
    assert not (tmp_path / "out.csv").exists()
    other.write_text(other.read_text().replace("p_1", "p_x"))
    out = tmp_path / "out"
    code, _, stderr = run("apply", other, path, "--map", fitted, "--out", out)
    assert (code, "rows.csv: there is no column 'p_x', which the first file has" in stderr) == (
        2,
        True,
    )


def test_text_files_with_columns_in_another_order_are_one_table(tmp_path: Path):
    p = np.random.default_rng(0).random(200).round(3)
    y = (np.arange(200) % 2).astype(int)
    frame = pl.DataFrame({"label": y, "p_0": 1 - p, "p_1": p})
    frame.write_csv(tmp_path / "1.csv")
    frame.select("p_1", "label", "p_0").write_csv(tmp_path / "2.csv")
    frame.write_csv(tmp_path / "3.csv", separator=";", decimal_comma=True)
    whole = calviz.load(tmp_path / "1.csv")
    profiled = calviz.profile(tmp_path)
    assert profiled.n == 600
    for key in ("nll", "ece", "brier"):
        expected = calviz.evaluate(whole, [key])[key].value
        assert calviz.evaluate(profiled, [key])[key].value == pytest.approx(expected, abs=1e-9)
    frame.select("label", "p_0").write_csv(tmp_path / "4.csv")
    with pytest.raises(InputError, match=r"4\.csv: there is no column 'p_1', which the first file"):
        calviz.profile(tmp_path)


def test_a_line_of_text_that_cannot_be_summed_is_named(tmp_path: Path):
    path = write(tmp_path, ".csv", probabilities())
    path.write_text(path.read_text().replace("\n", "\n0,0.1,x,0.9\n", 1))
    code, _, stderr = run("profile", path, "--out", tmp_path / "profile.parquet")
    assert (code, "row 1 (line 2) 'p_1' = 'x' is not a number" in stderr) == (2, True)
    assert "--skip-broken" in stderr
    code, _, stderr = run(
        "profile",
        write(tmp_path, ".parquet", probabilities()),
        "--time",
        "label:day",
        "--out",
        tmp_path / "q.parquet",
    )
    assert (code, "column 'label': it holds no dates" in stderr) == (2, True)


def test_a_pattern_says_what_is_wrong_with_its_files(tmp_path: Path):
    code, _, stderr = run("audit", tmp_path / "*.csv")
    assert (code, stderr) == (2, "calviz: *.csv: there is no such file.\n")
    write(tmp_path, ".npz", probabilities())
    code, _, stderr = run("audit", tmp_path / "*.npz")
    assert (code, "rows.npz: files that end in '.npz' cannot be read block by block" in stderr) == (
        2,
        True,
    )


@pytest.mark.parametrize(
    ("dates", "sentence"),
    [
        (["01.02.2026"] * 1_500, "row 1, column 'day': '01.02.2026' cannot be read as a date"),
        (["2026-02-01"] * 1_499 + ["soon"], "column 'day': a value cannot be read as a date"),
        (["2026-02-01"] * 1_499 + [""], "1 of 1,500 rows cannot be used: 1 with no time"),
    ],
)
def test_dates_that_cannot_be_read_are_not_a_broken_file(tmp_path: Path, dates, sentence):
    path = tmp_path / "rows.parquet"
    pl.DataFrame({"y": np.arange(1_500) % 2, "p": [0.25] * 1_500, "day": dates}).write_parquet(path)
    code, _, stderr = run("profile", path, "--time", "day:month", "--out", tmp_path / "x.parquet")
    assert (code, sentence in stderr, "skip-broken" in stderr) == (2, True, False), stderr
