"""The package as others use it: names, plug-ins, parts left out, notebooks, what is built."""

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as Xml
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

import calviz
from calviz.core.errors import PURPOSES, InputError
from calviz.figures.figure import Figure
from documentation.docstrings import MODULES, command_pages, markdown, python_pages
from documentation.notebooks import run_notebook
from documentation.site import notebook_page, on_page_markdown
from tests.inputs.command_line import run

# ---- The library: what a script or a notebook may rely on


ROOT = Path(__file__).parents[2]


@pytest.fixture
def p() -> calviz.Predictions:
    probs = np.random.default_rng(0).dirichlet([1, 1, 1], size=60)
    return calviz.Predictions(probs=probs, labels=np.arange(60) % 3, name="three")


def test_every_public_name_is_there():
    for name in calviz.__all__:
        assert getattr(calviz, name) is not None
    assert set(calviz.__all__) <= set(dir(calviz))
    with pytest.raises(AttributeError, match="module 'calviz' has no attribute 'nonsense'"):
        _ = calviz.nonsense


def test_measuring(p):
    e = calviz.evaluate(p, metrics=["ece", "mcs"], reduction="class:1", bins=15, ci=True)
    assert 0 < e["ece"].value < 1
    assert e["ece"].interval.low < e["ece"].interval.high
    assert e["ece"].noise_floor.p_value <= 1
    assert e.frame().index.tolist() == ["ece", "mcs"]
    assert len(calviz.evaluate(p)) > 5
    assert calviz.verdict(p).sentence


def test_reading(p, tmp_path):
    np.savez(tmp_path / "three.npz", probs=p.probs, labels=p.labels)
    q = calviz.load(tmp_path / "three.npz", kind="probabilities", class_names=["a", "b", "c"])
    assert q.class_names == ("a", "b", "c")
    np.testing.assert_array_equal(q.probs, p.probs)


def test_a_saved_map(p, tmp_path):
    record = calviz.recalibrators.TemperatureScaling().fit(p.probs, p.labels)
    path = tmp_path / "map.json"
    path.write_text(json.dumps(record.to_dict()))
    for source in (path, str(path), record.to_dict()):
        loaded = calviz.load_map(source)
        np.testing.assert_array_equal(loaded.transform(p.probs), record.transform(p.probs))
    for text in ("{", "{}", "[1]"):
        path.write_text(text)
        with pytest.raises(InputError, match=r"^map\.json: (this is not|it breaks off)"):
            calviz.load_map(path)
    with pytest.raises(InputError, match=r"^this is not the map of a recalibrator"):
        calviz.load_map(None)
    for place, what in (("none.json", "there is no such file"), (".", "cannot be opened")):
        with pytest.raises(InputError, match=what):
            calviz.load_map(tmp_path / place)


def test_drawing(p):
    figure = calviz.figures.Reliability.compute(p, bins=15)
    assert len(figure.frame()) > 0
    assert figure.plot().to_plotly_json()["data"]


@pytest.mark.slow
def test_the_names_come_with_a_plain_import():
    code = (
        "import calviz; print(calviz.load.__name__, calviz.figures.Reliability.__name__,"
        " calviz.verdict.__name__)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == ["load", "Reliability", "verdict"]


# ---- Entries of other packages: found by their entry points, and left out by name where they are broken


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


# ---- Library and command line, where only the light core is installed


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
    "run: pip install 'calviz[app]'.",
    "audit rain.csv --html report.html": "need pandas, plotly, jinja2 and latex2mathml, which are not installed; run: pip install 'calviz[report]'.",
    "audit rain.jsonl": "Parquet, Arrow, JSON, ARFF, Excel and R files need pyarrow, which is not installed; run: pip install 'calviz[report]'.",
    "recalibrate rain.csv --method beta --fit-fraction 0.5 --out calibrated.csv": "written files need pandas, which is not installed; run: pip install 'calviz[report]'.",
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
        "need pandas, which is not installed; run: pip install 'calviz[report]'."
    )
    assert outcomes["plot"].endswith(
        "need plotly, which is not installed; run: pip install 'calviz[report]'."
    )


# ---- What build servers run: the action's script, and the files by which they find calviz


@pytest.fixture
def rain(tmp_path):
    rng = np.random.default_rng(5)
    p = rng.uniform(size=300)
    rows = [f"{int(rng.uniform() < v)},{v:.6f}" for v in p]
    path = tmp_path / "rain <1>.csv"
    path.write_text("\n".join(["label,p", *rows]) + "\n")
    return path


def audit(*arguments):
    return run("audit", "--resamples", "20", *map(str, arguments))


class TestJunit:
    def test_gates_are_tests(self, rain, tmp_path):
        target = tmp_path / "gates.xml"
        done = audit(rain, "--fail-on", "accuracy>0.1", "--fail-on", "ece>0.9", "--junit", target)
        assert done.exit_code == 1
        root = Xml.parse(target).getroot()
        assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("3", "1", "0")
        cases = {case.get("name"): case for case in root.iter("testcase")}
        assert set(cases) == {"audit", "accuracy>0.1", "ece>0.9"}
        assert "which crosses > 0.1" in cases["accuracy>0.1"].find("failure").get("message")
        assert not list(cases["ece>0.9"])
        assert cases["audit"].find("system-out").text  # the verdict

    def test_a_file_that_cannot_be_used_is_an_error(self, rain, tmp_path):
        target = tmp_path / "gates.xml"
        done = audit(rain, tmp_path / "none.csv", "--junit", target)
        assert done.exit_code == 2
        root = Xml.parse(target).getroot()
        assert [suite.get("errors") for suite in root] == ["0", "1"]
        assert "no such file" in root.find(".//error").get("message")

    def test_a_place_that_cannot_be_written_is_found_out_first(self, rain, tmp_path):
        done = audit(rain, "--junit", tmp_path)
        assert done.exit_code == 2
        assert "--junit" in done.stderr
        assert not done.stdout


class TestStandardOutput:
    @pytest.mark.slow
    def test_a_report_goes_there_alone(self, rain):
        done = audit(rain, "--markdown", "-")
        assert done.exit_code == 0
        assert done.stdout.startswith("# rain ")
        assert done.stdout.endswith("*\n")

    def test_two_cannot_share_it(self, rain):
        done = audit(rain, "--markdown", "-", "--json", "-")
        assert done.exit_code == 2
        assert "cannot share standard output" in done.stderr


@pytest.mark.slow
class TestAction:
    def run(self, folder, **given):
        summary = folder / "summary.md"
        summary.write_text("before\n")
        environment = os.environ | {
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "GITHUB_STEP_SUMMARY": str(summary),
            "CALVIZ_OPTIONS": "--resamples 20",
            **given,
        }
        done = subprocess.run(
            ["bash", str(ROOT / ".ci" / "audit")],
            cwd=folder, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        return done, summary.read_text(encoding="utf-8")

    def test_a_gate_fails_the_step_and_the_summary_says_why(self, rain):
        done, summary = self.run(
            rain.parent, CALVIZ_FILES="rain*.csv", CALVIZ_FAIL_ON="ece>0.9\n\naccuracy > 0.1\n",
            CALVIZ_JUNIT="gates.xml",
        )  # fmt: skip
        assert done.returncode == 1, done.stderr
        assert summary.startswith("before\n```\ncalviz: rain <1>.csv: accuracy is")
        assert "ece" not in summary.splitlines()[2]
        assert "## Verdict" in summary
        assert Xml.parse(rain.parent / "gates.xml").getroot().get("tests") == "3"

    def test_what_is_no_file_is_said(self, tmp_path):
        done, summary = self.run(tmp_path, CALVIZ_FILES="$(touch owned).csv")
        assert done.returncode == 2
        assert "no such file" in summary
        assert not (tmp_path / "owned").exists()

    def test_a_long_report_is_cut_at_a_line(self, tmp_path):
        # A stand-in for calviz, whose report is longer than a summary may be.
        fake = tmp_path / "python"
        fake.write_text(
            f"#!{sys.executable}\nimport sys\n"
            "path = sys.argv[sys.argv.index('--markdown') + 1]\n"
            "open(path, 'w', encoding='utf-8').write(('é' * 99 + '\\n') * 9_000)\n"
        )
        fake.chmod(0o755)
        done, summary = self.run(
            tmp_path, CALVIZ_FILES="a.csv", PATH=f"{tmp_path}:{os.environ['PATH']}"
        )
        assert done.returncode == 0, done.stderr
        assert 900_000 < len(summary.encode()) <= 1 << 20
        *lines, _, last = summary.splitlines()[1:]
        assert set(lines) == {"é" * 99}
        assert last == "*The rest is left out: a summary may hold 1 MiB.*"


def test_the_files_that_build_servers_read():
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    *_, step = action["runs"]["steps"]
    given = {re.search(r"inputs\.([\w-]+)", text)[1] for text in step["env"].values()}
    assert given == set(action["inputs"])
    script = (ROOT / ".ci" / "audit").read_text(encoding="utf-8")
    assert set(step["env"]) == set(re.findall(r"\$\{(CALVIZ_\w+)", script))
    assert not any("${{" in step["run"] for step in action["runs"]["steps"])
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert hook["entry"] == "calviz audit"
    assert re.search(hook["files"], "data/predictions-2.csv")
    assert not re.search(hook["files"], "data/rain.csv")


# ---- The example notebooks run from the first cell to the last, and the site is made of what there is


NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))


@cache
def run_once(notebook):
    return tuple(run_notebook(notebook))


def code_cells(notebook):
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_holds_no_output(notebook):
    assert not any(cell["outputs"] for cell in code_cells(notebook))
    kinds = {"plot()": go.Figure, "frame()": pd.DataFrame}
    shown = 0
    for cell in run_once(notebook):
        for end, kind in kinds.items():
            if cell.kind == "code" and cell.source.endswith(end):
                assert isinstance(cell.shown, kind)
                shown += 1
    assert shown >= 3


@pytest.mark.slow
def test_the_audit_says_what_it_found():
    cells = run_once(ROOT / "examples" / "audit.ipynb")
    shown = [cell.shown for cell in cells if cell.shown is not None]
    assert [type(s) for s in shown] == [pd.DataFrame, go.Figure, pd.DataFrame, pd.DataFrame]
    before, best, after = "".join(cell.printed for cell in cells).strip().splitlines()
    assert before.startswith("Overconfident")
    assert best.split(": ")[1] in {"temperature", "ets", "isotonic", "irm"}
    assert after != before


def test_the_gallery_draws_every_figure():
    source = "".join(
        "".join(cell["source"]) for cell in code_cells(ROOT / "examples" / "gallery.ipynb")
    )
    figures = {
        name
        for name in dir(calviz.figures)
        if isinstance(kind := getattr(calviz.figures, name), type) and issubclass(kind, Figure)
    }
    assert len(figures) > 9
    assert not {name for name in figures if f"figures.{name}.compute(" not in source}


def test_a_page_of_a_notebook_holds_what_it_prints_and_draws(tmp_path):
    cells = [("markdown", "# Title"), ("code", "print('<b>')\nx = 1"), ("code", "x + 1")]
    path = tmp_path / "small.ipynb"
    values = [
        {"cell_type": kind, "id": str(i), "source": [text]} for i, (kind, text) in enumerate(cells)
    ]
    path.write_text(json.dumps({"cells": values}))
    page = notebook_page(path)
    assert page.startswith("# Title\n\n```python\nprint(")
    assert ">&lt;b&gt;</pre>" in page
    assert page.endswith(">2</pre>\n")


def test_every_page_of_the_site_is_there_or_made():
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    pages, todo = (set(), yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"])
    while todo:
        (entry,) = todo.pop().values()
        todo, pages = (todo + entry, pages) if isinstance(entry, list) else (todo, pages | {entry})
    names = {f"tutorials/{notebook.stem}.md" for notebook in NOTEBOOKS}
    written = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert pages == names | written | {"python.md", "commands.md"}


def test_a_notebook_is_a_page_of_the_site():
    page = SimpleNamespace(file=SimpleNamespace(src_uri="how-to/files.md"))
    text = "[a](../../examples/audit.ipynb), [b](../../README.md#x), [c](../scale.md)"
    shown = on_page_markdown(text, page)
    assert shown == "[a](../tutorials/audit.md), b (`README.md`), [c](../scale.md)"


def test_every_public_name_and_command_is_written_down():
    python, commands = python_pages(), command_pages()
    for name in calviz.__all__:
        if callable(getattr(calviz, name)):
            assert f"### {name}\n" in python
    assert all(f"`{module}`" in python for module in MODULES)
    for command in ("audit", "compare-models", "app"):
        assert f"## {command}\n\n```text\nUsage: calviz {command} " in commands


def test_a_docstring_becomes_markdown():
    text = markdown(
        "Add.\n\nParameters\n----------\nx, y : int\n    Two\n    numbers.\n\nExamples\n--------\n>>> 1"
    )
    assert (
        text
        == "Add.\n\n**Parameters**\n\n- **x, y** : int: Two numbers.\n\n**Examples**\n\n```python\n>>> 1\n```"
    )
