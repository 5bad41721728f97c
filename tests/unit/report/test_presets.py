"""Reports that hold what guidelines ask for."""

import numpy as np
import pytest
from click.testing import CliRunner

import calviz
from calviz.cli import main
from calviz.core.errors import OptionError
from calviz.report.document import bind, make_part
from calviz.report.presets import PRESETS, sections_of
from calviz.report.section import SECTIONS
from calviz.report.subject import Subject
from calviz.sample.sample import Sample


def rated(n=400):
    rng = np.random.default_rng(0)
    grade = rng.integers(3, size=n)
    score = np.array([0.02, 0.1, 0.3])[grade] * rng.uniform(0.8, 1.2, size=n)
    hit = rng.random(n) < score
    return score, hit.astype(int), np.array(["A", "B", "C"])[grade]


def test_presets_name_sections_that_there_are():
    for made in PRESETS.values():
        assert set(made.sections) <= set(SECTIONS.keys())


@pytest.mark.slow
@pytest.mark.parametrize("preset", PRESETS)
def test_what_is_essential_is_there(preset):
    score, hit, grade = rated()
    p = calviz.Predictions(probs=score, labels=hit, groups={"x": grade}, name="p")
    subject = Subject(Sample.of(p, resamples=20), preset=preset, error_bars=False)
    report = bind([make_part(subject, sections=sections_of(preset, subject))], date="")
    charts = {c.key for c in report.charts}
    assert {"calibration-curve", "roc", "net-benefit", "scores-by-outcome"} <= charts
    tables = dict(report.tables())
    assert ("grades" in tables) is (preset == "credit")
    assert tables["decisions"].numbers["tp"].le(hit.sum()).all()
    assert report.markdown()
    assert report.html()


def test_what_a_preset_is_not_about():
    rng = np.random.default_rng(0)
    p = calviz.Predictions(probs=rng.dirichlet(np.ones(3), 30), labels=rng.integers(3, size=30))
    with pytest.raises(OptionError, match=r"preset clinical: .* these data have 3"):
        sections_of("clinical", Subject(Sample.of(p)))
    score, hit, _ = rated(50)
    two = calviz.Predictions(probs=score, labels=hit)
    with pytest.raises(OptionError, match="preset credit needs a column of rating grades"):
        sections_of("credit", Subject(Sample.of(two)))
    with pytest.raises(OptionError, match="no preset 'legal'; known: clinical, credit"):
        sections_of("legal")


def test_the_command_line_writes_one(tmp_path):
    score, hit, grade = rated(200)
    rows = "\n".join(f"{h},{s:.6f},{g}" for s, h, g in zip(score, hit, grade, strict=True))
    (tmp_path / "loans.csv").write_text(f"label,p,grade\n{rows}\n")
    page = tmp_path / "page.md"
    file = str(tmp_path / "loans.csv")
    asked = ["audit", file, "--preset", "credit", "--resamples", "20"]
    result = CliRunner().invoke(main, [*asked, "--markdown", str(page)])
    assert result.exit_code == 0, result.stderr
    assert "| light |" in page.read_text(encoding="utf-8")
    alone = CliRunner().invoke(main, asked)
    assert alone.exit_code != 0
    assert "--preset credit chooses sections of a report; add --html or --markdown." in alone.stderr
