"""App, report and command line give the same numbers, in the same words, for the samples."""

import json
import re

import pytest

from calviz.data import read
from calviz.figures.decision_cost import Decision
from tests.app.pages import ROOT, open_page, plain, quiet, text_of, unfold, wait
from tests.inputs.command_line import run_successfully

pytestmark = pytest.mark.slow
MODELS = {"digits": "MLP", "breast_cancer": "naive Bayes"}
#: What the report holds.
SECTIONS = "verdict,findings,fix,prediction-sets,risk-coverage,decisions,metrics"


def flat(text):
    """Text without what only lays it out: escapes, emphasis, line breaks, spaces that do not break."""
    text = re.sub(r"\\([^A-Za-z0-9\s])|\*\*|:\w+\[:material/\w+:\]|:material/\w+:", r"\1", text)
    return re.sub(r"\s+", " ", text.replace("\u00a0", " ").replace("\u2011", "-"))


def shown(app):
    tiles = " ".join(f"{tile.label} {tile.value}" for tile in app.metric)
    return flat(f"{text_of(quiet(app))} {tiles}")


@pytest.fixture(scope="module", params=MODELS)
def answers(request, tmp_path_factory):
    """Name, report, command line, JSON, and the rows of the report's first table by metric."""
    name, page = request.param, tmp_path_factory.mktemp("answers") / "page.md"
    file = str(ROOT / "sample_data" / f"{name}.parquet")
    asked = ["audit", file, "--split", "test", "--model", MODELS[name], "--ci"]
    cutoff = ["--cutoff", "0.3"] if name == "breast_cancer" else []
    printed = run_successfully(*asked, *cutoff, "--markdown", page, "--sections", SECTIONS)
    record = json.loads(run_successfully(*asked, "--json", "-"))
    report = page.read_text(encoding="utf-8")
    rows = {}
    for line in report.splitlines():
        cells = [flat(cell).strip() for cell in line.strip("|").split("|")]
        rows.setdefault(cells[0].split(" (")[0], cells)
    return name, flat(report), flat(printed), record, rows


def test_verdict_findings_and_fix(answers):
    name, report, printed, record, _ = answers
    app = shown(open_page(f"data={name}"))
    assert flat(record["verdict"]) in app
    for text in (report, printed):
        assert flat(record["verdict"]) in text
    found = {f["code"]: flat(f["message"]).rstrip(".") for f in record["findings"]}
    full = flat(plain(" ".join(m.help or "" for m in open_page(f"data={name}").markdown)))
    assert {"CAL002", "CAL020"} <= found.keys()
    for code, message in found.items():
        assert message in report, code
        assert message in printed, code
        # The title says CAL001 in its own words, the panel Data what was read, the tab Classes which others are off.
        elsewhere = code in ("CAL001", "CAL013", "CAL023") or code.startswith("DATA")
        # One short sentence on the page, the whole one behind its question mark.
        assert (message in app or message in full) is not elsewhere, code
    (fix,) = re.findall(r"\w+ scaling would take the ECE from [\d.]+ to [\d.]+ points\.", app)
    assert fix in report


def test_headline_metrics(answers):
    name, _, printed, record, rows = answers
    opened = open_page(f"data={name}")
    app, tiles = shown(opened), {t.label.split(",")[0]: flat(t.value) for t in opened.metric}
    for label in ("Accuracy", "ECE", "MCS", "NLL", "Brier score"):
        _, value, interval, mean, most, _ = rows[label][:6]
        number = record["metrics"]["brier" if label == "Brier score" else label.lower()]
        scale, floor = 1 if label in ("NLL", "Brier score") else 100, number["noise_floor"]
        low, high = interval.split(" to ")
        exact = (number["value"], *number["interval"], floor["mean"], floor["q95"])
        for text, fraction in zip((value, low, high, mean, most), exact, strict=True):
            digits = text.removesuffix(" %").replace("\u2212", "-")
            half = 0.5 * 10 ** -len(digits.partition(".")[2])
            assert float(digits) == pytest.approx(scale * fraction, abs=half + 1e-9), (label, text)
        if label in tiles:
            assert tiles[label] == value
        else:
            assert f"{label} {value} · 95 % interval {interval}" in app
        if label == "ECE":
            assert f"noise alone: {mean}, rarely above {most}" in app
        else:
            assert f"95 % interval {interval}" in app
        numbers = re.findall(rf"\b{label} ([\u2212-]?[\d.]+\d)", printed)
        assert any(
            float(text.replace("\u2212", "-")) == pytest.approx(number["value"], abs=6e-5)
            for text in numbers
        ), (label, numbers)


def test_one_quantity_has_one_number_of_decimals(answers):
    name, report, _, record, rows = answers
    opened = open_page(f"data={name}")
    drawn = " ".join(json.dumps(c.proto.spec) for c in opened.get("plotly_chart"))
    app = f"{shown(opened)} {drawn}"
    for word in (
        ("[Aa]ccuracy", "[Mm]ean confidence", "sure of", "right in") if name == "digits" else ()
    ):
        exact = record["metrics"]["accuracy"]["value"]
        of_all = {
            n
            for n in re.findall(rf"{word} (\d+\.\d+)", app + report)
            if abs(float(n) - 100 * exact) < 0.1
        }
        assert len(of_all) <= 1, word
        assert of_all <= {rows["Accuracy"][1].removesuffix(" %")}
    assert not re.search(r"(Accuracy|Mean confidence|Frequency|Mean forecast) 0\.\d{3}", app)


def test_prediction_sets(answers):
    name, report, *_ = answers
    file = str(ROOT / "sample_data" / f"{name}.parquet")
    printed = flat(run_successfully("sets", file, "--model", MODELS[name]))
    sentence = re.search(r"The sets hold .*?(?= true class rows)", printed)[0]
    assert sentence in report
    assert sentence in shown(open_page(f"data={name}", "prediction_sets"))


def test_costs_of_decisions(answers):
    name, report, printed, *_ = answers
    data = read(ROOT / "sample_data" / f"{name}.parquet").models[MODELS[name]]
    costs = Decision.compute(data, split="test")
    assert costs.chosen_on == "calibration"
    query = f"data={name}&cutoff=0.300"
    app = open_page(query, "decisions")
    assert flat(costs.reading()) in shown(unfold(app, "Keep or refer"))
    if name == "breast_cancer":
        (meaning,) = set(re.findall(r"A cutoff of 0\.3 is right[^.]*\.\d+[^.]*\.", report))
        assert meaning in printed
        assert meaning in shown(unfold(app, "Act or not, for one class"))


def test_risk_and_coverage(answers):
    name, report, *_ = answers
    app = open_page(f"data={name}", "risk_coverage")
    app = shown(unfold(app, "Summaries: AURC and others"))
    of_report = re.search(r"AURC[^\d]*([\d.]+\d)", report)[1]
    assert of_report in app


def test_advice(tmp_path):
    file, page = str(ROOT / "sample_data" / "digits.parquet"), tmp_path / "page.md"
    methods = ["temperature", "platt"]
    asked = ["compare", file, "--model", "MLP", "--methods", ",".join(methods), "--markdown", page]
    printed = flat(run_successfully(*asked))
    report = flat(page.read_text(encoding="utf-8"))
    opened = open_page("data=digits", "recalibrate")
    opened.multiselect(key="methods").set_value(methods).run()
    app = shown(wait(opened.button(key="calviz.compare").click().run()))
    headline = re.search(r"Advice: (.+?) - ", printed)[1]
    reasons = re.findall(r"- (The verdict finds .+?\.) - (It brings .+?\.) - ", printed)[0]
    for text in (headline, *reasons, "fitted on 2,000 rows (split 'calibration')"):
        assert text in printed, text
    for text in (headline, *reasons):
        assert text in report, text
        assert text in app, text


def test_a_line_of_the_classes_is_about_one_population():
    table = open_page("data=digits", "classwise").dataframe[0].value
    assert {"rows", "ece", "ks"}.isdisjoint(table.columns)
    gap = table["confidence"] - table["accuracy"]
    assert gap.tolist() == pytest.approx(table["value"].tolist())
