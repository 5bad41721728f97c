"""`--html` and `--markdown` of `calviz audit` and `calviz compare`."""

import numpy as np
import pytest

from tests.inputs.command_line import run


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    rng = np.random.default_rng(5)
    p = rng.uniform(size=120)
    rows = [f"{int(rng.uniform() < v)},{v:.6f}" for v in p]
    path = tmp_path_factory.mktemp("files") / "rain.csv"
    path.write_text("\n".join(["label,p", *rows]) + "\n")
    return path


@pytest.mark.slow
def test_an_audit_writes_the_same_report_twice(file, tmp_path):
    for name in ("one", "two"):
        result = run(
            *("audit", file, "--reduction", "top-label", "--resamples", 50),
            *("--html", tmp_path / f"{name}.html", "--markdown", tmp_path / f"{name}.md"),
        )
        assert result.exit_code == 0, result.stderr
        assert "Brier score" in result.stdout
    html = (tmp_path / "one.html").read_bytes()
    assert html == (tmp_path / "two.html").read_bytes()
    assert (tmp_path / "one.md").read_bytes() == (tmp_path / "two.md").read_bytes()
    assert b"<title>rain.csv</title>" in html
    assert b"reduction top-label, 50 resamples" in html


@pytest.mark.slow
def test_several_files_are_several_parts(file, tmp_path):
    other = tmp_path / "snow.csv"
    other.write_text(file.read_text())
    result = run(
        "audit", file, other, "--resamples", 20, "--markdown", tmp_path / "both.md", "--json", "-"
    )
    assert result.exit_code == 0, result.stderr
    text = (tmp_path / "both.md").read_text()
    assert text.startswith("# Calibration of several models\n")
    assert "## rain.csv" in text
    assert "## snow.csv" in text


@pytest.mark.parametrize("command", [("audit",), ("compare",), ("compare-models",)])
@pytest.mark.parametrize("option", ["--html", "--markdown"])
def test_a_place_that_cannot_be_written_is_found_out_first(command, option, file, tmp_path):
    for path, words in ((tmp_path, "is a directory"), (tmp_path / "no" / "x", "no such directory")):
        result = run(*command, file, option, path)
        assert result.exit_code == 2
        assert words in result.stderr
        assert result.stdout == ""


@pytest.mark.slow
def test_a_file_that_cannot_be_used_leaves_no_report(file, tmp_path):
    target = tmp_path / "report.html"
    result = run("audit", file, tmp_path / "missing.csv", "--resamples", 20, "--html", target)
    assert result.exit_code == 2
    assert not target.exists()


@pytest.mark.slow
def test_a_comparison_writes_a_report(file, tmp_path):
    target = tmp_path / "report.html"
    result = run(*("compare", file, "--methods", "platt", "--fit-fraction", 0.5, "--html", target))
    assert result.exit_code == 0, result.stderr
    html = target.read_text()
    assert 'id="comparison"' in html
    assert "60\u00a0rows" in html or "60 rows" in html


@pytest.mark.slow
def test_models_of_two_files_are_parts_of_one_report(file, tmp_path):
    other = tmp_path / "snow.csv"
    other.write_text(file.read_text())
    html, card = tmp_path / "report.html", tmp_path / "card.md"
    result = run(
        *("compare-models", file, other, "--reduction", "positive", "--resamples", 50),
        *("--html", html, "--markdown", card),
    )
    assert result.exit_code == 0, result.stderr
    text = card.read_text()
    assert "## rain" in text
    assert "## snow" in text
    assert text.count("## Models side by side") == 1
    assert 'id="models"' in html.read_text()
