"""The first page of a fresh server does not wait for what only other pages need; that is imported after it."""

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
later = "sklearn", "calviz.comparison.fitting", "scipy.stats"
print(*(name for name in later if name in sys.modules), sep=",")
from calviz.app import navigation
navigation.import_all()
print(*(name for name in (*later, *navigation.module_names()) if name not in sys.modules), sep=",")
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
    before, after = done.stdout.splitlines()[-2:]
    # Up to two seconds of imports before the first verdict otherwise.
    assert before == ""
    # Nor do the pages after it wait.
    assert after == ""
