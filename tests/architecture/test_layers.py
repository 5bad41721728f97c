"""Imports point down only, and streamlit stays upstairs (the contracts are in pyproject.toml)."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_import_contracts_hold():
    pytest.importorskip("importlinter")
    found = run(
        """
        import sys
        from importlinter.cli import lint_imports
        sys.exit(lint_imports(config_filename="pyproject.toml", no_cache=True))
        """
    )
    assert found.returncode == 0, found.stdout + found.stderr


def test_importing_calviz_is_cheap():
    found = run(
        """
        import sys
        import calviz
        heavy = {"numpy", "pandas", "polars", "pyarrow", "plotly", "scipy", "sklearn", "streamlit"}
        print(sorted(heavy & set(sys.modules)))
        """
    )
    assert found.stdout.strip() == "[]", found.stderr


@pytest.mark.parametrize(
    "arguments", [["--version"], ["metrics"], ["formats"], ["audit", "{file}", "--ci"]]
)
def test_the_command_line_leaves_the_screens_alone(arguments, tmp_path):
    file = tmp_path / "small.csv"
    file.write_text("label,p_a,p_b\n0,0.9,0.1\n1,0.2,0.8\n0,0.4,0.6\n")
    arguments = [a.format(file=file) for a in arguments]
    found = run(
        f"""
        import sys
        from calviz.cli import main
        try:
            main({arguments!r})
        except SystemExit as stop:
            assert not stop.code, stop.code
        heavy = {{"pandas", "plotly", "sklearn", "streamlit", "matplotlib"}}
        print(sorted(heavy & set(sys.modules)))
        """
    )
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip().splitlines()[-1] == "[]"


def test_library_command_line_and_figures_work_where_streamlit_does_not():
    """Tests that go through all of it once more, in a process in which streamlit cannot be imported."""
    parts = ["tests/contract/test_api.py", "tests/contract/test_cli_audit.py", "tests/unit/report"]
    found = run(
        f"""
        import sys
        sys.modules["streamlit"] = None
        import pytest
        sys.exit(pytest.main([*{parts!r}, "-q", "-p", "no:cacheprovider"]))
        """
    )
    assert found.returncode == 0, found.stdout[-4_000:] + found.stderr[-2_000:]
