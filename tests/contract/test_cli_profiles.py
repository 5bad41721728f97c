"""`calviz profile`, `calviz merge`, and `calviz audit` of what comes of them."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import calviz
from calviz.data.any_size import file_sources as sources
from tests.inputs.command_line import outcome

N = 500


@pytest.fixture
def days(tmp_path: Path) -> Path:
    for day in range(2):
        rng = np.random.default_rng(day)
        p = np.round(rng.beta(1, 2, N), 3)
        table = {
            "p": p,
            "y": (rng.random(N) < p).astype(int),
            "country": rng.choice(["de", "fr"], N),
        }
        table["date"] = np.full(N, np.datetime64("2026-01-01") + day)
        pl.DataFrame(table).write_parquet(tmp_path / f"day{day}.parquet")
    return tmp_path


def profiled(days: Path, day: int) -> Path:
    out = days / f"p{day}.parquet"
    code, text, wrong = outcome(
        "profile", days / f"day{day}.parquet", "--out", out, "--by", "country", "--time", "date:day"
    )
    assert (code, wrong) == (0, "")
    assert "500 rows" in text
    assert not Path(f"{out}.parts").exists()
    return out


def test_two_days_merged_are_the_two_files_at_once(days: Path):
    parts = [profiled(days, 0), profiled(days, 1)]
    merged = days / "both.parquet"
    assert outcome("merge", *parts, "--out", merged)[0] == 0
    records = []
    for source, extra in ((merged, ()), (days / "day[01].parquet", ("--group", "country"))):
        code, _, wrong = outcome("audit", source, "--json", days / "a.json", *extra)
        assert code == 0, wrong
        records.append(json.loads((days / "a.json").read_text()))
    assert "summed part by part" in wrong
    for record in records:
        assert record["rows"] == 2 * N
        assert record["metrics"]["ks"]["exact"] is True
        assert record["metrics"]["ks"]["bound"] == 0
    first, second = (
        {key: m["value"] for key, m in record["metrics"].items()} for record in records
    )
    assert first == pytest.approx(second, nan_ok=True)
    code, table, _ = outcome("audit", merged, "--by", "country")
    assert "of the rows" in table


def test_what_does_not_fit_together_is_a_sentence(days: Path):
    one = profiled(days, 0)
    code, _, text = outcome("merge", one, days / "day1.parquet", "--out", days / "x.parquet")
    assert (code, "day1.parquet: this is not a profile" in text) == (2, True)
    code, _, text = outcome("merge", one, one, "--out", days / "x.parquet")
    assert (code, "is named twice: its rows would be counted twice" in text) == (2, True)
    before = one.read_bytes()
    code, _, text = outcome("merge", one, "--out", one)
    assert (code, "would replace the file that is read" in text) == (2, True)
    assert one.read_bytes() == before
    code, _, text = outcome("profile", days / "day1.parquet", "--out", days / "x.csv")
    assert (code, "a profile is a .parquet file" in text) == (2, True)
    code, _, text = outcome("profile", days / "none*.parquet", "--out", days / "x.parquet")
    assert (code, "no such file" in text) == (2, True)
    (days / "day1.parquet").write_bytes(b"PAR1")
    code, _, text = outcome("profile", days, "--out", days / "x.parquet", "--skip-broken")
    assert not (days / "x.parquet").exists() or code == 0


def test_a_map_is_applied_to_files_block_by_block(days: Path, monkeypatch):
    from calviz.comparison import recalibrate_files as apply_to_files

    monkeypatch.setattr(apply_to_files, "BLOCK", 1)
    table = pl.read_parquet(days / "day0.parquet")

    def both(p: np.ndarray) -> np.ndarray:
        return np.stack([1 - p, p], axis=1)

    fitted = calviz.recalibrators.PlattScaling().fit(
        both(table["p"].to_numpy()), table["y"].to_numpy()
    )
    (days / "map.json").write_text(json.dumps(fitted.to_dict()))
    out = days / "calibrated"
    code, text, wrong = outcome(
        "apply", days / "day*.parquet", "--map", days / "map.json", "--out", out
    )
    assert (code, text, wrong) == (0, f"wrote 2 files to {out}\n", "")
    for day in range(2):
        before, after = (pl.read_parquet(at / f"day{day}.parquet") for at in (days, out))
        assert after.drop("p").equals(before.drop("p"))
        np.testing.assert_allclose(after["p"], fitted.transform(both(before["p"].to_numpy()))[:, 1])
    code, _, text = outcome(
        "apply", days / "day*.parquet", "--map", days / "map.json", "--out", days
    )
    assert (code, "the folder holds the files themselves" in text) == (2, True)


def test_a_file_that_may_not_fit_is_judged_from_its_profile(days: Path, monkeypatch):
    source = days / "day0.parquet"
    rows = calviz.evaluate(calviz.load(source), ["ece", "ks"])
    code, _, wrong = outcome("audit", source, "--json", days / "rows.json")
    assert (code, "profile" in wrong) == (0, False)
    monkeypatch.setattr(sources, "_machine_memory", lambda: 1_000.0)
    code, _, wrong = outcome("audit", source, "--json", days / "cells.json")
    assert code == 0
    assert "day0.parquet: it may not fit into memory, so it is summed part by part" in wrong
    record = json.loads((days / "cells.json").read_text())
    assert record["rows"] == N
    for m in rows:
        assert record["metrics"][m.key]["value"] == pytest.approx(m.value, abs=1e-9)
        assert record["metrics"][m.key]["exact"] is True
