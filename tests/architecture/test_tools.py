"""The tools of the house, run by the tests so that one command tells everything."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["ruff", "check", "."], id="ruff-check"),
        pytest.param(["ruff", "format", "--check", "."], id="ruff-format"),
        pytest.param(["mypy"], id="mypy", marks=pytest.mark.slow),
    ],
)
def test_the_tool_has_nothing_to_say(arguments):
    pytest.importorskip(arguments[0], reason=f"{arguments[0]} is not installed")
    result = subprocess.run(
        [sys.executable, "-m", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
