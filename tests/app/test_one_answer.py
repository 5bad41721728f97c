"""One answer to one question, on the page, in the report and on the command line."""

import json
import re
from collections import Counter
from functools import partial

import numpy as np
import pytest

import calviz
from calviz.core.entry_specs import METRICS
from calviz.data import read
from calviz.figures.decision_cost import Decision
from calviz.metrics import other_libraries as _measure
from calviz.report.content import Subject
from calviz.report.document import bind, make_part
from calviz.sample.cross_fitted import CrossFitted
from calviz.sample.sample import Sample
from calviz.verdicts import analysis
from tests.app.pages import ROOT, open_page, plain, quiet, text_of, unfold, upload, wait
from tests.app.test_report import _finished
from tests.inputs.command_line import run, run_successfully
from tests.inputs.simulated import draw_labels

# ---- App, report and command line give the same numbers, in the same words, for the samples


MODELS = {"digits": "MLP", "breast_cancer": "naive Bayes"}
#: What the report holds.
SECTIONS = "verdict,findings,fix,prediction-sets,risk-coverage,decisions,metrics"


#: What a recalibrator with few parameters would bring.
FIX = re.compile(
    r"(?:Platt|Temperature) scaling would take the ECE of the (?P<rows>[\d,]+) rows it was not fitted on "
    r"from (?P<before>[\d.]+) to (?P<after>[\d.]+) points(?:, \w+(?: \w+)? within the noise of a calibrated model)?\."
)


def flat(text):
    """Text without what only lays it out: escapes, emphasis, line breaks, spaces that do not break."""
    text = re.sub(r"\\([^A-Za-z0-9\s])|\*\*|:\w+\[:material/\w+:\]|:material/\w+:", r"\1", text)
    return re.sub(r"\s+", " ", text.replace("\u00a0", " ").replace("\u2011", "-"))


def shown(app):
    tiles = " ".join(f"{tile.label} {tile.value}" for tile in app.metric)
    return flat(f"{text_of(quiet(app))} {tiles}")


@pytest.fixture(scope="module", params=MODELS)
def answers(request, tmp_path_factory):
    """Name, report, command line, JSON, the rows of the report's first table by metric, and the open page."""
    name, page = request.param, tmp_path_factory.mktemp("answers") / "page.md"
    file = str(ROOT / "sample_data" / f"{name}.parquet")
    asked = ["audit", file, "--split", "test", "--model", MODELS[name], "--ci"]
    cutoff = ["--cutoff", "0.3"] if name == "breast_cancer" else []
    printed = run_successfully(*asked, "--all", *cutoff, "--markdown", page, "--sections", SECTIONS)
    record = json.loads(run_successfully(*asked, "--json", "-"))
    report = page.read_text(encoding="utf-8")
    rows = {}
    for line in report.splitlines():
        cells = [flat(cell).strip() for cell in line.strip("|").split("|")]
        rows.setdefault(cells[0].split(" (")[0], cells)
    return name, flat(report), flat(printed), record, rows, open_page(f"data={name}")


@pytest.mark.slow
def test_verdict_findings_and_fix(answers):
    name, report, printed, record, _, opened = answers
    app = shown(opened)
    assert flat(record["verdict"]) in printed
    # The report has the words of the page: the title, and the line below it.
    title = flat(plain(opened.title[0].value)).split("] ")[-1].strip()
    assert title in report
    assert flat(plain(next(m.value for m in opened.markdown if "CI" in m.value))) in report
    found = {f["code"]: flat(f["message"]).rstrip(".") for f in record["findings"]}
    full = flat(plain(" ".join(m.help or "" for m in opened.markdown)))
    # The line under the title says what the title does not; the whole sentence is behind its question mark.
    assert flat(record["verdict"]) in app + full
    assert {"CAL002", "CAL020"} <= found.keys()
    for code, message in found.items():
        assert message in report, code
        assert message in printed, code
        # The title says CAL001 in its own words, the panel Data what was read, the tab Classes which others are off.
        elsewhere = code in ("CAL001", "CAL013", "CAL023") or code.startswith("DATA")
        # The sentence under the title names the place; the tab Reliability says how far it is off.
        elsewhere |= code == "CAL002"
        # So does the title where both sides of a half are off.
        elsewhere |= code == "CAL020" and "(slope " in record["verdict"]
        # One short sentence on the page, the whole one behind its question mark.
        assert (message in app or message in full) is not elsewhere, code
    (fix,) = FIX.finditer(app)
    assert fix[0] in report
    # A comparison has the same numbers for this method. It may advise another.
    method = "platt" if fix[0].startswith("Platt") else "temperature"
    file = str(ROOT / "sample_data" / f"{name}.parquet")
    asked = ["compare", file, "--model", MODELS[name], "--methods", method, "--json", "-"]
    compared = json.loads(run_successfully(*asked))
    for text, key in ((fix["before"], "identity"), (fix["after"], method)):
        exact = 100 * compared["methods"][key]["metrics"]["ece"]["value"]
        half = 0.5 * 10 ** -len(text.partition(".")[2])
        assert float(text) == pytest.approx(exact, abs=half + 1e-9)
    assert fix["rows"] == f"{compared['eval']['rows']:,}"
    # The verdict before it is that of the same rows, to the last digit.
    assert record["verdict"] in " ".join(compared["advice"]["reasons"])
    assert "A comparison of more methods may advise another." in app


@pytest.mark.slow
def test_what_a_fix_brings_in_a_slice():
    # The map is fitted on rows of the slice: those since a change are not mended by the rows before it.
    opened = open_page("data=digits&slice=condition&level=rotated")
    (fix,) = FIX.finditer(shown(opened))
    whole = read(ROOT / "sample_data" / "digits.parquet").models["MLP"]
    sample = Sample.of(whole, split="test", where=(("condition", "rotated"),))
    part = make_part(Subject(sample, whole=whole), sections=["fix"])
    assert fix[0] in flat(bind([part], title="t", date="").markdown())
    opened.open("recalibrate")
    opened.multiselect(key="methods").set_value(["temperature"]).run()
    page = wait(opened.button(key="calviz.compare").click().run())
    ece = [float(plain(text).rstrip("\xa0≈")) for text in page.table[0].value["ECE (points)"]]
    assert ece == pytest.approx([float(fix["before"]), float(fix["after"])], abs=0.051)
    # In plain words the ECE is the average gap.
    brought = fix[0][fix[0].index("of the") :].removesuffix(".").partition(", ")[0]
    assert brought in shown(page)
    # From then on Overview, in plain words too, says the advice with its numbers; not under other bins.
    advice = flat(page.title[0].value.replace("\u2060", ""))
    assert advice == "Advice: Temperature scaling"
    page.open("overview")
    for how in ("words", "plain words", "other bins"):
        if how == "plain words":
            page.toggle(key="plain").set_value(True).run()
        if how == "other bins":
            page.number_input(key="bins").set_value(11).run()
        words = shown(page).replace("\u2060", "")
        assert ((f"{advice}." in words) and (brought in words)) is (how != "other bins")
        assert ("A comparison of more" in words) is (how == "other bins")


@pytest.mark.slow
def test_headline_metrics(answers):
    name, _, printed, record, rows, opened = answers
    app, tiles = shown(opened), {t.label.split(",")[0]: flat(t.value) for t in opened.metric}
    for label in ("Accuracy", "ECE", "MCS", "NLL", "Brier score"):
        _, value, interval, mean, most, _ = rows[label][:6]
        brier = "brier_binary" if name == "breast_cancer" else "brier"
        number = record["metrics"][brier if label == "Brier score" else label.lower()]
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
            assert f"noise: {mean}, rarely above {most}" in app
        else:
            assert f"95 % interval {interval}" in app
        written = rf"\b{re.escape(label)}(?: \(points\))? ([+\u2212]?[\d.]+\d)"
        assert value.removesuffix(" %") in re.findall(written, printed)


@pytest.mark.slow
def test_one_quantity_has_one_number_of_decimals(answers):
    name, report, _, record, rows, opened = answers
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


@pytest.mark.slow
def test_prediction_sets(answers):
    name, report, *_ = answers
    file = str(ROOT / "sample_data" / f"{name}.parquet")
    printed = flat(run_successfully("sets", file, "--model", MODELS[name]))
    sentence = re.search(r"The sets hold .*?(?= true class rows)", printed)[0]
    assert sentence in report
    assert sentence in shown(open_page(f"data={name}", "prediction_sets"))


@pytest.mark.slow
def test_costs_of_decisions(answers):
    name, report, printed, *_ = answers
    data = read(ROOT / "sample_data" / f"{name}.parquet").models[MODELS[name]]
    costs = Decision.compute(data, split="test")
    assert costs.chosen_on == "calibration"
    query = f"data={name}&cutoff=0.300"
    app = open_page(query, "decisions")
    assert flat(costs.reading()) in shown(unfold(app, "Keep or refer"))
    if name == "breast_cancer":
        (meaning,) = set(
            re.findall(
                r"If the scores are calibrated, a cutoff of 0\.3 is right[^.]*\.\d+[^.]*\.", report
            )
        )
        assert meaning in printed
        assert meaning in shown(unfold(app, "Act or not, for one class"))


@pytest.mark.slow
def test_risk_and_coverage(answers):
    name, report, *_ = answers
    app = open_page(f"data={name}", "risk_coverage")
    app = shown(unfold(app, "Summaries: AURC and others"))
    of_report = re.search(r"AURC[^\d]*([\d.]+\d)", report)[1]
    assert of_report in app


@pytest.mark.slow
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
    reasons = re.findall(
        r"- (The verdict finds .+?\.) - (The (?:map brings|gain) .+?\.) - ", printed
    )[0]
    for text in (headline, *reasons, "fitted on 2,000 rows (split 'calibration')"):
        assert text in printed, text
    for text in (headline, *reasons):
        assert text in report, text
        assert text in app, text


@pytest.mark.slow
def test_periods_groups_grades_and_useful_cutoffs(tmp_path):
    # One of eight days is off by 1.5 logits, and so is the grade C.
    rng = np.random.default_rng(0)
    day, grade, e = (
        np.repeat(np.arange(8), 250),
        rng.integers(4, size=2_000),
        rng.normal(-1, 1.2, 2_000),
    )
    score = 1 / (1 + np.exp(-e))
    hit = rng.random(2_000) < 1 / (1 + np.exp(-e - 1.5 * ((day == 5) | (grade == 2))))
    dates = np.datetime64("2026-03-01") + day
    lines = (
        f"{s:.4f},{h:d},{d},{'ABCD'[g]}"
        for s, h, d, g in zip(score, hit, dates, grade, strict=True)
    )
    content = "\n".join(["p,label,day,grade", *lines])
    file, page = tmp_path / "loans.csv", tmp_path / "page.md"
    file.write_text(content)
    run_successfully(
        "audit", file, "--markdown", page, "--sections", "over-time,slices,grades,decisions"
    )
    report = flat(page.read_text(encoding="utf-8"))
    app = upload(open_page(), file.name, content.encode())
    for key, words, command in (
        ("over_time", r"In \d of 8 periods .*?\)\.", ["over-time"]),
        # What is off without a change is said in the open, not in a folded box only.
        ("over_time", r"Not calibrated[^.]*: off where grade = C; .*?\.", ["over-time"]),
        ("slices", r"95 % CI [^;]*; .*? off beyond chance\.", ["slices"]),
        ("grades", r"In 1 grade of 4 more happens than the probabilities say: C\.", None),
        ("decisions", r"Deciding by the scores is better than .*?\d\.\d+ and \d\.\d+\.", None),
    ):
        opened = app.open(key)
        if key == "decisions":
            opened = unfold(opened, "Act or not, for one class")
        said = re.search(words, shown(opened))
        assert said, (key, shown(opened))
        assert said[0] in report, key
        if command:
            assert said[0] in flat(run_successfully(*command, file)), key


@pytest.mark.slow
def test_a_line_of_the_classes_is_about_one_population():
    table = open_page("data=digits", "classwise").dataframe[0].value
    assert {"rows", "ece", "ks"}.isdisjoint(table.columns)
    gap = table["confidence"] - table["accuracy"]
    assert gap.tolist() == pytest.approx(table["value"].tolist())


# ---- One sample is measured once: by the terminal and its report, and by page after page


class Measured:
    """Counts metrics of views, draws of views, and verdicts."""

    def __init__(self):
        self.values, self.draws, self.verdicts = Counter(), Counter(), Counter()
        self.views = []  # kept alive, so that no two have the same id
        self.origins = {}
        self.inside = 0

    def what(self, view):
        """What a view is of, if it is a sample's own: the same for samples that are made anew of the same rows."""
        return self.origins.get(id(view), id(view))

    def twice(self):
        """What was computed more than once."""
        counts = (self.values, self.draws, self.verdicts)
        return [(what, n) for count in counts for what, n in count.items() if n > 1]


@pytest.fixture
def measured(monkeypatch):
    """All metrics, the views that they are functions of, and the verdict, watched."""
    result = Measured()
    watched = set()

    def value_of(metric):
        def value(view, plain=metric.value):
            result.views.append(view)
            result.values[metric.key, result.what(view)] += 1
            return plain(view)

        return value

    def watch(kind):
        for how in ("bootstrap", "under_calibration"):
            plain = getattr(kind, how)

            def draw(self, rng, resamples, plain=plain, how=how):
                # A view may draw by means of another one, which then keeps what it drew.
                if not result.inside:
                    state = repr(rng.bit_generator.state)
                    result.draws[result.what(self), how, resamples, state] += 1
                result.inside += 1
                try:
                    return plain(self, rng, resamples)
                finally:
                    result.inside -= 1

            monkeypatch.setattr(kind, how, draw)

    def view(self, make, plain=Sample.view, **params):
        computed = plain(self, make, **params)
        kind = type(computed)
        # What cross-fitted parts draw is kept as the numbers that were drawn (`kept_draw`); calling them again draws nothing.
        if kind not in watched and hasattr(kind, "bootstrap") and kind is not CrossFitted:
            watched.add(kind)
            watch(kind)
        result.views += [computed, self]
        while isinstance(make, partial):
            params, make = {**make.keywords, **params}, make.func
        origin = (id(self.data), self.reduction, make, tuple(sorted(params.items())))
        result.origins.setdefault(id(computed), origin)
        return computed

    def verdict(sample, plain=analysis.judged):
        result.verdicts[id(sample.data), sample.reduction, sample.bins, sample.scheme] += 1
        result.views.append(sample)
        return plain(sample)

    monkeypatch.setattr(Sample, "view", view)
    monkeypatch.setattr(analysis, "judged", verdict)
    before = {m.key: m.value for m in METRICS}
    for m in METRICS:
        object.__setattr__(m, "value", value_of(m))
    yield result
    for m in METRICS:
        object.__setattr__(m, "value", before[m.key])


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """A file of three classes that is slightly off."""
    rng = np.random.default_rng(11)
    probs = rng.dirichlet([1.0, 1.0, 1.0], 400)
    right = rng.random(400) < 0.9
    labels = np.where(right, draw_labels(probs, rng), rng.integers(0, 3, 400))
    file = tmp_path_factory.mktemp("three") / "three.csv"
    rows = (f"{y},{','.join(f'{v:.4f}' for v in p)}" for p, y in zip(probs, labels, strict=True))
    file.write_text("\n".join(["label,p_0,p_1,p_2", *rows]))
    return file


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--ci", "--bins", "7", "--conventions")])
def test_an_audit_with_its_report_measures_once(measured, three, tmp_path, options):
    html = tmp_path / "report.html"
    done = run("audit", three, "--html", html, "--all", *options)
    assert done.exit_code == 0, done.output
    assert html.stat().st_size > 100_000
    assert {key for key, _ in measured.values} == {m.key for m in METRICS}
    assert len(measured.draws) > 10
    assert len(measured.verdicts) == 1
    assert measured.twice() == []


@pytest.fixture(scope="module")
def two_models(tmp_path_factory):
    """A file with the scores of two models for the same rows."""
    rng = np.random.default_rng(12)
    score = rng.random(300)
    labels = (rng.random(300) < score).astype(int)
    file = tmp_path_factory.mktemp("two") / "two.csv"
    models = [score, score**2]
    rows = (
        ",".join([f"{y}", *(f"{1 - a[i]},{a[i]}" for a in models)]) for i, y in enumerate(labels)
    )
    file.write_text("\n".join(["label,mlp:0,mlp:1,forest:0,forest:1", *rows]))
    return file


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [("audit",), ("audit", "--preset", "full", "--ci"), ("compare-models",)]
)
def test_a_report_on_several_models_measures_each_once(measured, two_models, tmp_path, command):
    html = tmp_path / "report.html"
    done = run(command[0], two_models, "--html", html, *command[1:])
    assert done.exit_code == 0, done.output
    # The comparison stands once, before the parts of the models.
    text = html.read_text()
    assert text.count('id="models"') == 1
    assert text.index('id="models"') < text.index('id="part-1"')
    # The paired resamples of both models, whose views are no sample's own, are measured as well.
    of_samples = [what for key, what in measured.values if key == "ece" and isinstance(what, tuple)]
    # Each model in both of its views, and after the one map that the report says the gain of.
    assert len(of_samples) == (6 if command[0] == "audit" else 4)
    assert len(measured.verdicts) == 2
    assert measured.twice() == []


@pytest.mark.slow
@pytest.mark.parametrize("several", [False, True])
def test_what_a_judge_is_worth(tmp_path, several):
    rng = np.random.default_rng(4)
    good, names = np.tile(rng.random(400) < 0.6, 2), np.array(["no", "yes"])
    says = np.where(rng.random(800) < np.repeat((0.75, 0.9), 400), good, ~good)
    human = np.where(np.arange(800) % 400 < 160, names[good.astype(int)], "")
    first = "model" if several else "system"
    lines = [
        f"q{i % 400 if several else i},{'ab'[i // 400]},{i % 2},{names[int(says[i])]},{human[i]}"
        for i in range(800)
    ]
    file, page = tmp_path / "judged.csv", tmp_path / "page.md"
    file.write_text("\n".join([f"id,{first},topic,judge,human", *lines, ""]))
    chosen = ("--model", "a") if several else ()
    by = "topic" if several else "system"
    printed = flat(run_successfully("judge", str(file), *chosen, "--by", by, "--width", ".05"))
    # By hand: the labels alone, of the rows that are asked about.
    kept = np.arange(800) < (400 if several else 800)
    mean = good[kept & (human != "")].mean()
    run_successfully("audit", str(file), *chosen, "--markdown", page)  # the default report
    report = flat(page.read_text(encoding="utf-8"))
    section = report.partition("The judge's rate, corrected by people")[2].partition("## ")[0]
    assert f"| labels alone | {100 * mean:.1f} % |" in section
    app = quiet(upload(open_page(), file.name, file.read_bytes()))
    assert "judge" in quiet(app.open("report")).pills(key="sections").value
    app = quiet(app.open("judge"))
    tab, found = shown(app), app.dataframe[0].value
    for row in found.itertuples(index=False):
        assert f"| {row[0]} | {row[1]} | {row[2]} |" in section
        assert " ".join(row) in printed
    assert len(found) == 10
    (verdict,) = re.findall(r"The judge says 'yes' of .*? interval [\d. to]+\)\.", section)
    (needed,) = re.findall(r"(?:About|The|Labels) [^.]*? of 5\.0 points|(?:About) [\d,]+ labels are needed for an interval of 5\.0 points", section)  # fmt: skip
    pairs = re.findall(r"'[^'|]+' (?:has a|and '[^']+' are not)[^|]*? points \([^)]*\)\.", section)
    assert len(pairs) == 1
    for sentence in (verdict, needed, *pairs):
        assert sentence in tab, sentence
        assert sentence in printed, sentence
    assert ("differ between values of" in section) is ("differ between values of" in tab)
    # In any other file there is none, and none is offered.
    sample = str(ROOT / "sample_data" / "breast_cancer.parquet")
    if not several:
        run_successfully("audit", sample, "--model", "naive Bayes", "--markdown", page)
        assert "corrected by people" not in page.read_text(encoding="utf-8")
        app = quiet(open_page("data=breast_cancer", "report"))
        assert "judge" not in app.pills(key="sections").options


@pytest.mark.slow
@pytest.mark.parametrize("options", [(), ("--ci",)])
def test_an_audit_with_its_report_asks_other_libraries_once(monkeypatch, three, tmp_path, options):
    calls = Counter()

    def values(sample, plain=_measure._values):
        calls[id(sample.data)] += 1
        kept.append(sample)
        return plain(sample)

    kept = []  # alive, so that no two have the same id
    monkeypatch.setattr(_measure, "_values", values)
    html = str(tmp_path / "report.html")
    done = run("audit", three, "--html", html, "--preset", "full", "--conventions", *options)
    assert done.exit_code == 0, done.output
    # Means under calibration are shown with --ci only, in the terminal.
    assert ("if calibrated" in done.output) == bool(options)
    assert len(calls) == 1 + _measure.REDRAWS
    assert set(calls.values()) == {1}


@pytest.mark.slow
def test_pages_and_the_report_of_the_same_settings_measure_once(measured):
    app = quiet(open_page("data=breast_cancer"))
    for page in ("metrics", "reliability", "report"):
        quiet(app.open(page))
    _finished(app)
    # Those of all classes say that two have none.
    keys = {m.key for m in METRICS if not m.key.endswith("_all")}
    assert {key for key, _ in measured.values} == keys
    assert len(measured.verdicts) == 1
    assert measured.twice() == []


@pytest.mark.slow
def test_a_sample_keeps_its_results(measured):
    rng = np.random.default_rng(3)
    score = rng.random(300)
    sample = Sample(calviz.Predictions(probs=score, labels=(rng.random(300) < score).astype(int)))
    values = calviz.evaluate(sample, ["ece", "nll"], findings=True)
    calviz.verdict(sample)
    bars = calviz.evaluate(sample, ["nll", "ece"], ci=True)
    again = calviz.evaluate(sample, ["ece", "nll"], ci=True)
    assert bars["ece"].value == values["ece"].value
    assert bars["ece"] == again["ece"]
    assert bars["ece"].interval is not None
    assert len(measured.verdicts) == 1
    assert measured.twice() == []
    # Other bins are another verdict; what has no bins is not measured again.
    measured.values.clear()
    calviz.evaluate(sample, ["ece", "nll"], bins=10, findings=True)
    assert {key for key, _ in measured.values} == {"ece"}
    assert len(measured.verdicts) == 2
