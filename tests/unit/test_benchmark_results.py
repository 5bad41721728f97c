"""What a benchmark writes into benchmarks/RESULTS.md, and what it leaves there."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
RESULTS = """# Benchmarks

## Loading

| hot path | calviz |
| --- | --- |
| csv | 1 s |

## Recalibrators

An introduction, with | signs.

| hot path | calviz |
| --- | --- |
| temperature, W4 (10,000 x 100) | 23.3 ms |
| vector, W4 (10,000 x 100) | 230 ms |
| temperature, W2 (1,000,000 x 10) | 1 s |

## Sentences
"""


@pytest.fixture
def recalibrators(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import recalibrators

    yield recalibrators
    for name in ("recalibrators", "_recalibrator_peers", "_harness"):
        sys.modules.pop(name, None)


def test_lines_of_another_run_stay_and_are_named(recalibrators, tmp_path):
    file = tmp_path / "RESULTS.md"
    file.write_text(RESULTS)
    measured = recalibrators.Comparison("temperature, W4 (10,000 x 100)")
    kept = recalibrators.unmeasured_lines("Recalibrators", [measured.title], file)
    assert list(kept.values()) == [
        "| vector, W4 (10,000 x 100) | 230 ms |",
        "| temperature, W2 (1,000,000 x 10) | 1 s |",
    ]
    # Of W4 some lines are new; of W2 none is.
    assert recalibrators.in_short(kept, [measured]) == ["vector, W4", "W2"]
    assert recalibrators.unmeasured_lines("Nothing", [], file) == {}


def test_the_lines_of_the_results_have_known_workloads(recalibrators):
    kept = recalibrators.unmeasured_lines(recalibrators.SECTION, [])
    assert kept
    assert set(recalibrators.in_short(kept, [])) <= set(recalibrators.SIZES)
