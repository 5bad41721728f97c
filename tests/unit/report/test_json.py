"""The JSON of results, guideline presets, reference texts."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

import calviz
from calviz.comparison.over_time import over_time
from calviz.core.entry_specs import (
    CHECKS,
    METRICS,
    RECALIBRATORS,
    Interval,
    MetricResult,
    NoiseFloor,
)
from calviz.core.errors import Finding, OptionError
from calviz.report import reference as document
from calviz.report.content import PRESETS, SECTIONS, Subject, preset_sections
from calviz.report.document import bind, make_part
from calviz.report.json_results import audit_record, over_time_record, to_json
from calviz.report.reference import GLOSSARY, QUESTIONS, SOURCES, entries, entry, sources_in
from calviz.sample.sample import Sample
from calviz.verdicts.evaluation import ClassRow, Evaluation
from tests.inputs.command_line import run
from tests.inputs.reliability import rare

# ---- JSON of results: plain values, nothing that the standard does not know


EVALUATION = Evaluation(
    name="m",
    rows=3,
    n_classes=2,
    kind="logits",
    split="test",
    reduction="class:a",
    metrics={
        "ece": MetricResult(
            "ece",
            0.1,
            Interval(0.05, np.float64(0.2)),
            NoiseFloor(0.04, 0.09, 0.01),
            params={"bins": np.int64(15), "scheme": "equal-width"},
            interval_method="inverted",
        ),
        "nll": MetricResult("nll", math.nan, reason="not available.", details={"x": math.inf}),
    },
    classes=(ClassRow("a", 0, *[math.nan] * 5), ClassRow("b", 3, 0.5, 0.7, 0.2, 0.2, 0.2)),
    findings=(Finding("CAL001", "warning", "Overconfident."),),
)


def test_the_record_is_the_contract():
    record = audit_record(
        EVALUATION, file="m.csv", notices=[Finding("DATA001", "info", "Read.")], seed=4
    )
    version = record.pop("calviz")
    assert version.count(".") == 2
    assert json.loads(to_json(record)) == record
    nothing = dict.fromkeys(["accuracy", "confidence", "ece", "mcs", "ks"])
    assert record == {
        "file": "m.csv",
        "name": "m",
        "rows": 3,
        "classes": 2,
        "kind": "logits",
        "split": "test",
        "reduction": "class:a",
        "metrics": {
            "ece": {
                "value": 0.1,
                "interval": [0.05, 0.2],
                "interval_method": "inverted",
                "noise_floor": {"mean": 0.04, "q95": 0.09, "p_value": 0.01},
                "params": {"bins": 15, "scheme": "equal-width"},
            },
            "nll": {
                "value": None,
                "interval": None,
                "interval_method": None,
                "noise_floor": None,
                "params": {},
                "reason": "not available.",
                "details": {"x": None},
            },
        },
        "classes_table": [
            {"class": "a", "rows": 0, **nothing},
            {"class": "b", "rows": 3, "accuracy": 0.5, "confidence": 0.7}
            | dict.fromkeys(["ece", "mcs", "ks"], 0.2),
        ],
        "findings": [
            {"code": "DATA001", "severity": "info", "message": "Read."},
            {"code": "CAL001", "severity": "warning", "message": "Overconfident."},
        ],
        "seed": 4,
    }


@pytest.mark.parametrize("name", ["été", '"quoted"', "\x1b[31m", "\ud800", "a\nb", "\0", "猫" * 3])
def test_any_name_can_be_written_and_read_back(name):
    text = to_json({"name": name})
    assert text.isascii()
    assert text.count("\n") == 3
    assert json.loads(text) == {"name": name}


def test_a_metric_over_time_names_the_version_and_has_no_nan():
    rng = np.random.default_rng(0)
    p = rng.uniform(size=200)
    data = calviz.Predictions(
        probs=p,
        labels=(rng.uniform(size=200) < p).astype(int),
        times=np.datetime64("2021-01-01") + (np.arange(200) // 100).astype("timedelta64[D]"),
    )
    result = over_time(data, "ece", method="temperature")
    record = over_time_record(result, file="a.csv", digest="ab")
    assert record["calviz"] == audit_record(EVALUATION, file="m.csv")["calviz"]
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    floor = result.periods[0].result.noise_floor
    assert record["periods"][0]["noise_floor"] == {
        "mean": floor.mean,
        "q95": floor.q95,
        "p_value": floor.p_value,
    }
    assert record["whole"]["interval"] == list(result.whole.interval)
    # No map can be fitted before the first day.
    assert record["periods"][0]["recalibrated"] is None


# ---- Reports that hold what guidelines ask for


def rated(n=400):
    rng = np.random.default_rng(0)
    grade = rng.integers(3, size=n)
    score = np.array([0.02, 0.1, 0.3])[grade] * rng.uniform(0.8, 1.2, size=n)
    hit = rng.random(n) < score
    return score, hit.astype(int), np.array(["A", "B", "C"])[grade]


def test_presets_name_sections_that_there_are():
    for value in PRESETS.values():
        assert set(value.sections) <= set(SECTIONS.keys())


@pytest.mark.slow
@pytest.mark.parametrize("preset", [key for key, preset in PRESETS.items() if preset.decides])
def test_what_is_essential_is_there(preset):
    score, hit, grade = rated()
    p = calviz.Predictions(
        probs=score, labels=hit, groups={"x": grade, "y": np.arange(score.size) % 4}, name="p"
    )
    subject = Subject(Sample.of(p, resamples=20), preset=preset, error_bars=False)
    report = bind([make_part(subject, sections=preset_sections(preset, subject))], date="")
    charts = {c.key for c in report.charts}
    assert {"calibration-curve", "roc", "net-benefit", "scores-by-outcome"} <= charts
    tables = dict(report.tables())
    assert ("grades" in tables) is (preset == "credit")
    assert tables["decisions"].numbers["tp"].le(hit.sum()).all()
    assert report.markdown()
    assert report.html()


def test_cutoffs_of_a_rare_event_are_those_that_act_on_some_rows():
    data = rare()
    subject = Subject(Sample.of(data, reduction="positive", resamples=20), error_bars=False)
    report = bind([make_part(subject, sections=["decisions"])], date="")
    numbers = dict(report.tables())["decisions"].numbers
    # No score reaches 0.05.
    acted_on = 1000 * (numbers["tp"] + numbers["fp"]) / data.n
    assert acted_on.tolist() == pytest.approx([500, 200, 100, 50, 20, 10, 5, 2, 1], rel=0.05)
    score, hit = data.probs[:, 1], data.labels == 1
    for cutoff, found in zip(numbers["cutoff"], numbers["tp"], strict=True):
        assert found == (hit & (score >= cutoff)).sum()


@pytest.mark.slow
def test_counts_of_a_weighted_file_are_rows_and_rates_are_by_weight(tmp_path):
    rng = np.random.default_rng(1)
    score = rng.beta(0.3, 3, 1_500).round(4)
    hit = rng.random(1_500) < score
    weight = np.where(hit, 1.0, 4.0)
    file = tmp_path / "fraud.csv"
    rows = zip(hit.astype(int), score, weight, strict=True)
    file.write_text("fraud,p,w\n" + "\n".join(f"{h},{p},{w}" for h, p, w in rows))
    page, record = tmp_path / "page.md", tmp_path / "record.json"
    asked = ["--cutoff", "0.3", "--resamples", "20", "--preset", "full"]
    done = run("audit", file, "--weight", "w", *asked, "--json", record, "--markdown", page)
    assert done.exit_code == 0, done.stderr
    acted_on = score >= 0.3
    cells = (hit & acted_on, ~hit & acted_on, hit & ~acted_on, ~hit & ~acted_on)
    keys = ("tp", "fp", "fn", "tn")
    decisions = json.loads(record.read_text())["decisions"]
    assert [decisions[key] for key in keys] == [cell.sum() for cell in cells]
    rates = [1_000 * weight[cell].sum() / weight.sum() for cell in cells]
    assert [decisions["per_1000"][key] for key in keys] == pytest.approx(rates)
    assert decisions["sensitivity"]["value"] == pytest.approx(rates[0] / (rates[0] + rates[2]))
    per_1000 = sum(rates[:2])
    said = f"Acting on {acted_on.sum()} of 1,500 rows, {per_1000:.0f} of 1,000 by weight: "
    assert said in " ".join(done.stdout.split())
    text = page.read_text(encoding="utf-8")
    (line,) = (x for x in text.splitlines() if x.startswith("| 0.3 |") and x.count("|") > 6)
    assert f" {acted_on.sum()} | {per_1000:.0f} |" in line
    outcomes = text.split("**Scores by outcome.**")[1].split("\n## ")[0]
    assert f"{hit.sum()} hits with" in outcomes
    table = [row.split("|")[3:5] for row in outcomes.splitlines() if row.startswith("| 0.")]
    counts = np.array([[int(n.replace(",", "")) for n in row] for row in table])
    assert counts.sum(axis=0).tolist() == [hit.sum(), (~hit).sum()]


def test_what_a_preset_is_not_about():
    rng = np.random.default_rng(0)
    p = calviz.Predictions(probs=rng.dirichlet(np.ones(3), 30), labels=rng.integers(3, size=30))
    with pytest.raises(OptionError, match=r"preset clinical: .* these data have 3"):
        preset_sections("clinical", Subject(Sample.of(p)))
    score, hit, _ = rated(50)
    two = calviz.Predictions(probs=score, labels=hit)
    with pytest.raises(
        OptionError,
        match=r"need a column of rating grades.*; presets without: default, one-page, clinical, full",
    ):
        preset_sections("credit", Subject(Sample.of(two)))
    with pytest.raises(OptionError, match="no preset 'legal'; known: default, one-page"):
        preset_sections("legal")


def test_the_command_line_writes_one(tmp_path):
    score, hit, grade = rated(200)
    rows = "\n".join(f"{h},{s:.6f},{g}" for s, h, g in zip(score, hit, grade, strict=True))
    (tmp_path / "loans.csv").write_text(f"label,p,grade\n{rows}\n")
    page = tmp_path / "page.md"
    file = str(tmp_path / "loans.csv")
    asked = ["audit", file, "--preset", "credit", "--resamples", "20"]
    result = run(*asked, "--markdown", page)
    assert result.exit_code == 0, result.stderr
    assert "| light |" in page.read_text(encoding="utf-8")
    alone = run(*asked)
    assert alone.exit_code != 0
    assert (
        "--preset credit chooses sections of a report; add --html, --markdown or --pdf."
        in alone.stderr
    )


@pytest.mark.slow
def test_the_cutoff_and_the_column_that_are_asked_for(tmp_path):
    # By hand: of 10 rows 4 hits; at 0.3 six rows are acted on, 3 of them hits. 3/10 - 3/10 * 3/7.
    p, y = [0.1, 0.1, 0.2, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8], [0, 1, 0, 0, 1, 0, 0, 1, 0, 1]
    rows = "\n".join(f"{h},{s},{'abc'[i % 3]}" for i, (h, s) in enumerate(zip(y, p, strict=True)))
    file = tmp_path / "loans.csv"
    file.write_text(f"label,p,region\n{rows}\n")
    asked = ["audit", str(file), "--cutoff", "0.3", "--resamples", "20"]
    record = json.loads(run(*asked, "--json", "-").stdout)
    result = record["decisions"]
    assert [result[k] for k in ("tp", "fp", "fn", "tn")] == [3, 3, 1, 3]
    assert result["net_benefit"] == pytest.approx(0.3 - 0.3 * 3 / 7)
    assert result["net_benefit_of_acting_on_all"] == pytest.approx(0.4 - 0.6 * 3 / 7)
    assert result["sensitivity"]["value"] == 0.75
    assert record["metrics"]["net_benefit"]["value"] == pytest.approx(0.3 - 0.3 * 3 / 7)
    page = tmp_path / "page.md"
    graded = run(*asked, "--grades", "region", "--preset", "credit", "--markdown", page)
    assert graded.exit_code == 0, graded.stderr
    right = "If the scores are calibrated, a cutoff of 0.3 is right where a false negative is as bad as 2.33 false"
    assert right in " ".join(graded.stdout.split())
    text = page.read_text(encoding="utf-8")
    assert right in text
    assert "| light |" in text


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--cutoff", "1"], "'--cutoff' must be a number above 0 and below 1"),
        (["--cutoff", "nan"], "'--cutoff' must be a number above 0 and below 1"),
        (
            ["--grades", "a", "--html", "x.html"],
            "there is no group column 'a'; these rows have none.",
        ),
        (
            ["--grades", "a"],
            "--grades chooses a column for a report; add --html, --markdown or --pdf.",
        ),
        (
            ["--preset", "credit", "--html", "x.html"],
            "add one, such as 'grade'; presets without: default",
        ),
        (
            ["--sections", "grades", "--html", "x.html"],
            "add one, such as 'grade'; presets without: default",
        ),
    ],
)
def test_what_cannot_be_decided_is_said(tmp_path, options, words):
    file = tmp_path / "two.csv"
    file.write_text("label,p\n" + "0,0.2\n1,0.7\n" * 12)
    result = run("audit", file, "--resamples", "20", *options)
    assert result.exit_code == 2
    assert words in result.stderr
    assert "Traceback" not in result.output


def test_prediction_sets_are_in_the_report():
    rng = np.random.default_rng(1)
    p = calviz.Predictions(probs=rng.dirichlet(np.ones(3), 200), labels=rng.integers(3, size=200))
    tables = dict(bind([make_part(Subject(Sample.of(p)), sections=["prediction-sets"])]).tables())
    numbers = tables["prediction-sets"].numbers
    # The threshold is chosen on the other half, as `calviz.comparison.prediction_sets` has it by itself.
    assert numbers["rows"].tolist()[0] == 100
    assert numbers["rows"].tolist()[1:] == pytest.approx([100 / 3] * 3, abs=12)
    few = Subject(Sample.of(p.take(np.arange(8))))
    (section,) = make_part(few, sections=["prediction-sets"]).sections
    assert "no prediction sets: there are 4 calibration rows" in section.blocks[0].text.lower()


# ---- Everything that can be measured, fitted or found has an entry, and every entry its sources


DOCUMENT = Path(__file__).parents[3] / "docs" / "reference.md"


def test_all_registries_are_there_once():
    keys = [e.key for e in entries()]
    assert keys == [*METRICS.keys(), *RECALIBRATORS.keys(), *CHECKS.keys()]
    assert len(set(keys)) == len(keys)


def test_an_entry_says_what_how_and_who():
    for e in entries():
        if e.kind != "finding":
            assert e.summary.endswith("."), e.key
            assert e.formula, e.key
            assert sources_in(e.reference), f"{e.reference!r} of {e.key} is not in SOURCES"


def test_every_publication_is_named_by_an_entry_or_a_word():
    texts = [e.reference for e in entries()] + [*GLOSSARY.values()]
    named = {source for text in texts for source in sources_in(text)}
    assert named == set(SOURCES)


def test_questions_name_metrics_that_there_are():
    assert {key for q in QUESTIONS for key in q.metrics} <= set(METRICS.keys())


def test_words_are_explained_once():
    words = [word.lower() for word in GLOSSARY]
    assert len(set(words)) == len(words)


def test_an_entry_that_there_is_not():
    with pytest.raises(OptionError, match="no metric, recalibrator or finding 'ecce'"):
        entry("ecce")


def test_the_document_is_made_of_what_there_is():
    assert DOCUMENT.read_text(encoding="utf-8") == document.markdown(), (
        "run: python -m calviz.report.reference > docs/reference.md"
    )
