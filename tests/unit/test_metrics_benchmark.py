"""`benchmarks/metrics.py` still measures what it names: its parts run on small data."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_every_part_of_the_benchmark_runs(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import metrics as benchmark

    monkeypatch.setattr(benchmark, "memory", lambda n, k, keys: "")
    monkeypatch.setattr(benchmark, "RESAMPLES", 5)
    try:
        results = [
            *benchmark.multiclass("small", 300, 4, repeats=1),
            *benchmark.intervals(100, 3),
            benchmark.binary_ece(300, float),
            *benchmark.resampling(200),
            benchmark.classes(300, 5),
        ]
    finally:
        for name in ("metrics", "_harness"):
            sys.modules.pop(name, None)
    assert all("calviz" in result.seconds for result in results)
    assert len(results) == 12
