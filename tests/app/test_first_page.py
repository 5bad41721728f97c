"""The first page of a fresh server does not wait for what only other pages need."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CODE = """
import sys
from streamlit.testing.v1 import AppTest
app = AppTest.from_file({app!r}, default_timeout=300).run()
assert not app.exception
print(*(name for name in ("sklearn", "calviz.comparison", "scipy.stats") if name in sys.modules))
"""


@pytest.mark.slow
def test_the_overview_imports_nothing_that_fits_maps():
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(app=str(ROOT / "app.py"))],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # Up to a second of imports before the first verdict otherwise.
    assert done.stdout.split() == []
