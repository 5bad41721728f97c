"""What build servers run: the action's script, and the files by which they find calviz."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as Xml
from pathlib import Path

import numpy as np
import pytest

from tests.inputs.command_line import run

ROOT = Path(__file__).resolve().parents[2]


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
        assert "### Verdict" in summary
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
