"""Library and command line, where only the light core is installed."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from calviz.core.errors import PURPOSES

ROOT = Path(__file__).resolve().parents[2]
EXTRA = (*PURPOSES, "h5py", "markupsafe")

CODE = """
import json, sys
for name in {extra!r}:
    sys.modules[name] = None  # as if it were not installed
import calviz
from click.testing import CliRunner
from calviz.cli import main

out = {{}}
for line in {lines!r}:
    done = CliRunner().invoke(main, line.split())
    out[line] = [done.exit_code, done.stdout, done.stderr]
p = calviz.load("rain.csv")
e = calviz.evaluate(p, ci=True)
for name, call in {{"frame": e.frame, "plot": calviz.figures.Reliability.compute(p).plot}}.items():
    try:
        call()
    except calviz.core.errors.CalvizError as error:
        out[name] = str(error)
json.dump(out, open("out.json", "w"))
"""

WORKS = [
    "audit rain.csv --ci --conventions --resamples 30 --json audit.json --junit gates.xml",
    "compare rain.csv --methods temperature,isotonic --fit-fraction 0.5",
    "compare-models rain.csv snow.csv",
    "recalibrate rain.csv --method beta --fit-fraction 0.5 --out calibrated.npz",
    "metrics",
    "methods",
    "formats",
]
MISSING = {
    "app": "the dashboard needs streamlit, pyarrow, pandas, plotly, jinja2 and latex2mathml, which are not installed; "
    "run: pip install streamlit pyarrow pandas plotly jinja2 latex2mathml.",
    "audit rain.csv --html report.html": "need pandas, plotly, jinja2 and latex2mathml, which are not installed; run: pip install",
    "audit rain.jsonl": "Parquet, Arrow, JSON, ARFF, Excel and R files need pyarrow, which is not installed; run: pip install pyarrow.",
    "recalibrate rain.csv --method beta --fit-fraction 0.5 --out calibrated.csv": "written files need pandas, which is not installed; run: pip install pandas.",
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """One process in which nothing but the core can be imported."""
    folder = tmp_path_factory.mktemp("core")
    rng = np.random.default_rng(1)
    p = rng.uniform(size=200)
    rows = "\n".join(f"{int(rng.uniform() < v)},{v:.6f}" for v in p)
    for name in ("rain", "snow"):
        (folder / f"{name}.csv").write_text(f"label,p\n{rows}\n")
    (folder / "rain.jsonl").write_text('{"label": 1, "p": 0.5}\n' * 3)
    code = CODE.format(extra=EXTRA, lines=[*WORKS, *MISSING])
    done = subprocess.run(
        [sys.executable, "-B", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{code}"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads((folder / "out.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("line", WORKS)
def test_numbers_need_nothing_else(outcomes, line):
    code, out, text = outcomes[line]
    assert code == 0, out + text


@pytest.mark.slow
@pytest.mark.parametrize("line", MISSING)
def test_what_is_missing_is_one_sentence(outcomes, line):
    code, out, text = outcomes[line]
    assert code == 2, out
    assert MISSING[line] in text
    assert text.count("\n") == 1


@pytest.mark.slow
def test_tables_and_figures_say_what_they_need(outcomes):
    assert outcomes["frame"].endswith(
        "need pandas, which is not installed; run: pip install pandas."
    )
    assert outcomes["plot"].endswith(
        "need plotly, which is not installed; run: pip install plotly."
    )
