"""What a benchmark writes into benchmarks/results, and what it leaves there."""

import importlib
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RESULTS = """# Recalibrators

An introduction, with | signs.

| hot path | calviz |
| --- | --- |
| temperature, W4 (10,000 x 100) | 23.3 ms |
| vector, W4 (10,000 x 100) | 230 ms |
| temperature, W2 (1,000,000 x 10) | 1 s |
"""


@pytest.fixture
def benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    yield importlib.import_module
    for name in ("recalibrators", "loading", "_recalibrator_peers", "_harness"):
        sys.modules.pop(name, None)


@pytest.fixture
def recalibrators(benchmarks):
    return benchmarks("recalibrators")


def test_lines_of_another_run_stay_and_are_named(recalibrators, monkeypatch, tmp_path):
    monkeypatch.setattr(sys.modules["_harness"], "RESULTS", tmp_path)
    (tmp_path / "recalibrators.md").write_text(RESULTS)
    measured = recalibrators.Comparison("temperature, W4 (10,000 x 100)")
    kept = recalibrators.unmeasured_lines("Recalibrators", [measured.title])
    assert list(kept.values()) == [
        ["| vector, W4 (10,000 x 100) | 230 ms |"],
        ["| temperature, W2 (1,000,000 x 10) | 1 s |"],
    ]
    # Of W4 some lines are new; of W2 none is.
    assert recalibrators.in_short(kept, [measured]) == ["vector, W4", "W2"]
    assert recalibrators.unmeasured_lines("Nothing", []) == {}


def test_the_lines_of_the_results_have_known_workloads(recalibrators):
    kept = recalibrators.unmeasured_lines(recalibrators.SECTION, [])
    assert kept
    assert set(recalibrators.in_short(kept, [])) <= set(recalibrators.SIZES)


def test_formats_that_are_not_measured_stay_in_their_order(benchmarks, monkeypatch, tmp_path):
    loading, harness = benchmarks("loading"), benchmarks("_harness")
    file = tmp_path / "loading.md"
    monkeypatch.setattr(harness, "RESULTS", tmp_path)

    def make(folder, n, k, key):
        path = folder / key
        path.write_bytes(b"")
        return path

    def measured(clock, *arguments):
        monkeypatch.setattr(loading, "make", make)
        monkeypatch.setattr(loading, "measure", lambda *_: {"calviz": (clock, 1.0, 0.0)})
        monkeypatch.setattr(sys, "argv", ["loading.py", "--write", *arguments])
        loading.main()
        lines = [line.split(" | ") for line in file.read_text().splitlines() if line[:2] == "| "]
        return [(line[0].split(",")[0][2:], line[2]) for line in lines[2:]]

    assert measured(1.0, "--formats", "parquet,npz") == [("npz", "1.00 s"), ("parquet", "1.00 s")]
    assert "another run" not in file.read_text()
    assert measured(2.0, "--formats", "npz") == [("npz", "2.00 s"), ("parquet", "1.00 s")]
    assert "--write`; from another run: parquet. On" in file.read_text()
    assert [name for name, _ in measured(3.0)] == ["npz", "npy", "parquet", "arrow", "csv"]


def test_the_lines_of_loading_have_known_formats(benchmarks):
    loading = benchmarks("loading")
    kept = loading.unmeasured_lines(loading.SECTION, [], name_of=loading.format_of)
    assert list(kept) == list(loading.PEERS)
