"""Entries of other packages: found by their entry points, and left out by name where they are broken."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import calviz

ROOT = Path(__file__).parents[2]
SAID = """
import warnings
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    import calviz
    e = calviz.audit([0, 1, 1], [0.2, 0.4, 0.9], metrics=["average_ce"], bins=2, findings=False, ci=False)
    from calviz.core.entry_specs import METRICS
    keys = METRICS.keys()
print(round(e["average_ce"].value, 6), "half" in keys, len(keys) > 40)
print(*(str(w.message) for w in caught), sep="\\n")
"""


@pytest.fixture
def installed(tmp_path):
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
    ]
    subprocess.run(
        [*command, "--target", tmp_path, ROOT / "examples/plugin"], check=True, capture_output=True
    )
    return tmp_path


@pytest.mark.slow
def test_a_plugin_is_found_and_a_broken_one_is_named_and_left_out(installed):
    # It registers a metric and fails then: nothing of it may stay.
    code = """
from calviz.core.entry_specs import METRICS
from dataclasses import replace
METRICS.register(replace(METRICS._entries["ece"], key="half"))
import a_module_that_is_not_there
"""
    (installed / "broken_plugin.py").write_text(code)
    about = installed / "broken-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[calviz.metrics]\nzz = broken_plugin\n")
    result = subprocess.run(
        [sys.executable, "-c", SAID],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": f"{installed}{os.pathsep}{ROOT}"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    # Bin (0, 1/2]: scores 0.2 and 0.4, one hit: |0.3 - 0.5| = 0.2. Bin (1/2, 1]: 0.9, a hit: 0.1.
    assert result[0] == "0.15 False True"
    assert result[1:] == [
        "the plugin 'zz' of broken (broken_plugin) is left out: No module named 'a_module_that_is_not_there'"
    ]


MOVED = """
from calviz.core.arrays import FloatArray
from calviz.core.factor import Factor
from calviz.core.reduction import Reduction
from calviz.data.file_bytes import Source
from calviz.data.table import SAMPLE_ROWS, Column, Fetched, Table
from calviz.figures.base import Figure, score_lines
from calviz.figures.drawing.sheet import Picture, Sheet
from calviz.figures.drawing import style
style.axis
from calviz.numerics.scores import Scores
from calviz.recalibrators.maps.fields import Numbers, fields
from calviz.specs.figure import figure
import calviz.specs.metric as specs
specs.metric
from calviz.specs.recalibrator import Input, recalibrator
from calviz.text.escape import plotly_text
import calviz.recalibrators.maps
assert calviz.recalibrators.maps.fields is fields
"""


@pytest.mark.slow
def test_modules_under_their_names_before_the_move_work_with_a_warning():
    result = subprocess.run(
        [sys.executable, "-W", "always", "-c", MOVED],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    warned = [line for line in result.stderr.splitlines() if "DeprecationWarning" in line]
    assert {line.split()[2] for line in warned} == set(calviz._MOVED)
    assert "import 'metric' from calviz.core.entry_specs; the old name will go" in result.stderr
