"""The report."""

import base64
import csv
import hashlib
import io
import json
import re
import sys
import zipfile
from dataclasses import replace
from html.parser import HTMLParser
from importlib import metadata

import numpy as np
import pytest

import calviz
from calviz.comparison.advice import advise
from calviz.core.entry_specs import FIGURES, METRICS
from calviz.core.errors import NotAvailable, OptionError
from calviz.figures.style import PALETTES
from calviz.report import document as pdf
from calviz.report.content import Subject
from calviz.report.document import (
    Panel,
    _mathml,
    bind,
    caption_of,
    compose,
    make_part,
    sections_in_order,
    to_sheet,
)
from calviz.sample.sample import Sample
from tests.inputs.command_line import run
from tests.unit.report.conftest import FORMULA, HTML, predictions

# ---- Reports: complete, the same bytes twice, and safe whatever a file is called


#: Elements that have no end tag.
VOID = {"meta", "br", "hr", "img", "input", "link"}


class Page(HTMLParser):
    """What a browser would see: elements, their attributes, and the text outside scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append((dict(attrs), ""))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            attributes, text = self.scripts[-1]
            self.scripts[-1] = (attributes, text + data)
        elif not self.open or self.open[-1] != "style":
            self.text.append(data)


@pytest.fixture(scope="module")
def html(report) -> str:
    return report.html()


@pytest.fixture(scope="module")
def page(html) -> Page:
    return Page(html)


def shown(page: Page) -> str:
    return " ".join(" ".join(page.text).replace("\u00a0", " ").split())


@pytest.mark.slow
def test_the_same_data_and_settings_give_the_same_bytes(subject, report, html):
    data = predictions(240, subject.sample.data.class_names)
    again = replace(subject, sample=subject.sample.with_data(data))
    second = compose(again, author=report.author, notes=report.notes, date="")
    assert second.html() == html
    assert second.markdown() == report.markdown()
    assert second.archive() == report.archive()


@pytest.mark.slow
def test_elements_are_closed_and_nothing_is_fetched(page):
    assert page.open == []
    tags = {tag for tag, _ in page.elements}
    assert not tags & {"img", "link", "iframe", "object", "embed", "form", "base", "image"}
    for _, attributes in page.elements:
        for name, value in attributes.items():
            assert not name.startswith("on")
            assert name not in ("src", "srcset", "action", "data")
            if name == "href":
                assert value.startswith("#")


def test_links_inside_the_page_arrive(page):
    anchors = [a["id"] for _, a in page.elements if "id" in a]
    assert len(set(anchors)) == len(anchors)
    assert {a["href"][1:] for tag, a in page.elements if tag == "a"} <= set(anchors)


def test_the_policy_lets_exactly_the_scripts_of_the_page_run(page):
    (policy,) = [
        a["content"] for _, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"
    ]
    running = [text for attributes, text in page.scripts if "type" not in attributes]
    assert len(running) == 2
    wanted = {
        "sha256-" + base64.b64encode(hashlib.sha256(t.encode()).digest()).decode() for t in running
    }
    assert set(re.findall(r"'(sha256-[^']+)'", policy)) == wanted
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
    assert "http" not in policy


def test_names_and_notes_are_shown_and_never_obeyed(page):
    text = shown(page)
    for words in (HTML, f"{HTML}.csv", "</title><script>alert(2)</script>", f"First & {HTML}"):
        assert words in text
    assert "</script> = a$b" in text
    assert "\u202e" not in text
    assert {tag for tag, a in page.elements if a.get("class") == "notes"} == {"p"}


def test_names_in_charts_are_shown_and_never_obeyed(page):
    charts = [json.loads(text) for attributes, text in page.scripts if "type" in attributes]
    assert len(charts) == 16
    drawn = json.dumps([chart["figure"] for chart in charts])
    assert HTML not in drawn
    assert "&lt;img src=x" in drawn
    assert all(HTML in chart["caption"][0] for chart in charts)
    assert not any("<" in text for a, text in page.scripts if "type" in a)


def test_every_chart_has_its_words_and_its_table(page):
    alts = [a["aria-label"] for _, a in page.elements if a.get("class") == "chart"]
    folded = [tag for tag, _ in page.elements if tag == "details"]
    assert len(alts) == len(folded) == 16
    assert all(len(alt) > 40 for alt in alts)


def test_a_line_may_break_between_the_parts_of_a_formula():
    assert _mathml(r"a_{i}, b,\quad c = \text{d,\; e}").count("<math") == 1
    assert _mathml(r"a,\quad b = 1,\; c").count("<math") == 3
    # Nothing of any formula is lost.
    for metric in METRICS:
        assert "\\" not in re.sub("<[^>]*>", "", _mathml(metric.formula)), metric.key


def test_drawings_are_small(page, html):
    sizes = [len(text) for attributes, text in page.scripts if "type" in attributes]
    assert max(sizes) < 100_000
    running = sum(len(text) for attributes, text in page.scripts if "type" not in attributes)
    assert len(html) - running < 460_000


def test_what_is_needed_to_get_the_numbers_again_is_there(page, subject):
    text = shown(page)
    for words in (
        subject.origin.digest,
        "12,345 bytes",
        "240 of 300",
        "divided every row by its sum",
        f"label: {HTML}",
        "repair: renormalise",
        "split test",
        f"class:{HTML}",
        "10 equal-width bins",
        "seed 3",
        "150 resamples",
        f"calviz {calviz.__version__}",
        f"numpy {np.__version__}",
    ):
        assert words in text, words


def test_the_numbers_are_those_of_evaluate(report, subject):
    tables = dict(report.tables())
    expected = calviz.evaluate(
        subject.sample.data,
        reduction=subject.sample.reduction,
        bins=10,
        seed=3,
        resamples=150,
        ci=True,
    )
    numbers = tables["metrics"].numbers.set_index("metric")
    assert set(numbers.index) == {m.key for m in METRICS}
    for result in expected:
        np.testing.assert_equal(numbers.loc[result.key, "value"], result.value)
        if result.interval:
            assert numbers.loc[result.key, "ci_low"] == result.interval.low
    ece = numbers.loc["ece", "value"]
    bins = tables["reliability"].numbers
    assert (bins["share"] * bins["gap"].abs()).sum() == pytest.approx(ece)


def files(report) -> dict[str, str]:
    with zipfile.ZipFile(io.BytesIO(report.archive())) as archive:
        return {name: archive.read(name).decode() for name in archive.namelist()}


def test_tables_go_into_spreadsheets_and_papers_unharmed(report):
    written = files(report)
    rows = list(csv.reader(io.StringIO(written["classes.csv"])))
    names = {row[0] for row in rows[1:]}
    assert f"'{FORMULA}" in names
    assert HTML in names
    assert not any(cell.startswith(("=", "@")) for row in rows for cell in row)
    assert r"\textless{}img src=x" in written["classes.tex"]
    assert r"\<img src=x onerror=alert\(1\)\>" in written["classes.md"]
    assert {name.rsplit(".", 1)[1] for name in written} == {"csv", "md", "tex"}


def test_markdown_holds_no_html_link_or_image(report):
    text = report.markdown()
    bare = re.sub(r"\\.", "", text)
    assert "<" not in bare
    assert "](" not in bare
    assert text.startswith("# \\<img src=x")
    assert "=second" in text


def test_a_date_stands_there_only_if_it_is_given(subject, monkeypatch):
    part = make_part(subject, sections=["provenance"])
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    assert bind([part]).date == ""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert bind([part]).date == "1970-01-02"
    assert "1970-01-02" in bind([part]).html()
    assert bind([part], date="today").date == "today"
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    with pytest.raises(OptionError, match="whole number of seconds, got 'yesterday'"):
        bind([part])


def test_versions_are_those_of_the_packages_that_are_installed(subject, monkeypatch):
    def version(package):
        if package == "pyarrow":
            raise metadata.PackageNotFoundError(package)
        return "1.2.3"

    monkeypatch.setattr(metadata, "version", version)
    text = bind([make_part(subject, sections=["provenance"])]).markdown()
    assert "polars 1.2.3, pandas 1.2.3" in text.replace("\\", "")
    assert "pyarrow" not in text


def test_sections_are_chosen_by_key_and_stand_in_their_order(subject):
    part = make_part(subject, sections=["provenance", "findings"])
    assert [w.section.key for w in part.sections] == ["findings", "provenance"]
    text = bind([part]).html()
    assert "<script" not in text
    with pytest.raises(OptionError, match="there is no section 'nonsense'; known: "):
        make_part(subject, sections=["nonsense"])
    with pytest.raises(OptionError, match="at least one set of predictions"):
        compose([])


def test_progress_is_told_section_by_section(subject):
    seen = []
    make_part(subject, sections=["findings", "provenance"], progress=lambda *a: seen.append(a))
    assert seen == [("Findings", 0, 2), ("Data and provenance", 1, 2)]


@pytest.mark.slow
def test_several_models_are_several_parts_with_anchors_of_their_own(subject):
    other = Subject(Sample(predictions(50, ("a", "b"), seed=1), resamples=100), title="other")
    keys = ["verdict", "reliability", "definitions"]
    report = compose([subject, other], sections=keys, date="")
    page = Page(report.html())
    anchors = [a["id"] for _, a in page.elements if "id" in a]
    assert len(set(anchors)) == len(anchors)
    assert {"part-1-reliability", "part-2-reliability", "definitions"} <= set(anchors)
    assert {"01-reliability", "02-reliability"} <= {name for name, _ in report.tables()}
    assert other.verdict.sentence in shown(page)
    assert "``" not in shown(page)


@pytest.mark.slow
def test_what_a_kind_of_data_does_not_have_is_said():
    from calviz.core.predictions import ConfidencePredictions

    top = ConfidencePredictions(
        confidence=np.array([0.9, 0.8, 0.7, 0.6]), correct=np.array([1, 1, 0, 1]), name="top"
    )
    text = shown(Page(compose(Subject(Sample(top, resamples=50)), date="").html()))
    assert "Not available: these data do not name the true classes." in text
    assert "too few for a verdict" in text


def test_sections_and_their_places_are_distinct():
    sections = sections_in_order()
    assert len({s.place for s in sections}) == len(sections)
    assert sections[0].key == "verdict"


def test_the_card_keeps_the_lines_of_the_notes(subject):
    text = bind(
        [make_part(subject, sections=["findings"])], notes="Two:\n- a\n# b", date=""
    ).markdown()
    assert "Two:  \n- a  \n\\# b\n" in text


def test_a_comparison_shows_the_best_and_says_where_it_was_judged():
    p = predictions(400, ("a", "b", "c"))
    splits = ["fit", "judge"] * 200
    p = calviz.Predictions(
        probs=p.probs**3 / (p.probs**3).sum(axis=1, keepdims=True),
        labels=p.labels,
        splits=splits,
        name="three",
    )
    comparison = calviz.compare(
        p,
        methods=["temperature", "histogram"],
        fit_split="fit",
        eval_split="judge",
        metrics=["accuracy", "nll", "ece"],
        resamples=50,
    )
    where = (("month", "5"),)
    subject = Subject(Sample(p.split("judge"), where=where), comparison=comparison)
    part = make_part(subject, sections=["comparison"])
    report = bind([part], date="")
    table = dict(report.tables())["comparison"]
    best = comparison.best("nll")
    (row,) = [r for (r, name), mark in table.marks.items() if name == "NLL" and mark == "best"]
    assert table.shown["method"][row] == comparison[best].label
    assert (
        table.numbers.set_index("method").loc[best, "nll"] == comparison[best].metrics["nll"].value
    )
    criterion = comparison.criterion
    assert criterion is not None
    assert table.pictured == METRICS[criterion].label
    assert [b.value for b in table.bullets] == [
        m.metrics[criterion].value for m in comparison.ready
    ]
    assert not {"fit_seconds", "apply_seconds"} & set(table.numbers.columns)
    text = shown(Page(report.html()))
    assert "200 rows (split 'judge')" in text
    assert "month = 5" in text
    # What the page advises is on file too, and it is what is drawn.
    advised = comparison[advise(comparison, subject.sample.data).method].label
    assert f"Advice: {advised}." in text
    assert f"Before and after {advised}, which is the advice" in text
    assert make_part(Subject(Sample(p)), sections=["comparison"]).sections == ()


def test_the_conventions_are_those_of_the_library_function(report, subject):
    tables = dict(report.tables())
    conventions = calviz.conventions(
        subject.sample.data, reduction=subject.sample.reduction, bins=10, seed=3
    )
    numbers = tables["conventions"].numbers.set_index("convention")
    for v in conventions:
        np.testing.assert_equal(numbers.loc[v.convention.key, "value"], v.value)
    shown = tables["conventions"].shown
    assert len(shown) == sum(v.available for v in conventions) > 1
    # Values and differences do the sum.
    values, apart = (shown[c].str.replace("−", "-") for c in ("ECE (points)", "minus calviz's"))
    off = values.astype(float) - apart.astype(float) - 100 * conventions.ece
    assert off.abs().max() < 0.011


def test_a_single_row_has_no_error_bars():
    p = calviz.Predictions(probs=np.array([[0.8, 0.2]]), labels=np.array([0]), name="one")
    keys = ["verdict", "findings", "reliability", "classwise", "metrics"]
    text = shown(Page(compose(Subject(Sample(p, resamples=20)), sections=keys, date="").html()))
    assert text.count("n = 1: not meaningful") == 5
    assert "A single row says nothing about calibration." in text


@pytest.mark.parametrize("kind", ["clusters", "weights"])
def test_intervals_of_bins_are_called_exact_only_if_rows_are_alike(kind):
    p = predictions(60, ("a", "b"))
    values = np.arange(60) // 2 if kind == "clusters" else 1.0 + np.arange(60) % 3
    for data, exact in ((p, True), (replace(p, **{kind: values}), False)):
        report = bind(
            [make_part(Subject(Sample(data)), sections=("provenance",))], title="t", date=""
        )
        (line,) = re.findall(r"\*\*Intervals:\*\*.*", report.markdown())
        assert ("exact" in line, "effective number" in line) == (exact, not exact)


# ---- A page as PDF: which browser prints, what it is told, and what is said where none does


FAKE = """#!{python}
import sys
asked = dict(a.lstrip("-").partition("=")[::2] for a in sys.argv[1:-1])
page = open(sys.argv[-1].removeprefix("file://"), encoding="utf-8").read()
if "print-to-pdf" in asked and "é" in page and "{works}":
    open(asked["print-to-pdf"], "wb").write(b"%PDF-1.4 " + asked["host-resolver-rules"].encode())
"""


@pytest.fixture
def browser(tmp_path, monkeypatch):
    def install(works="yes"):
        path = tmp_path / "browser"
        path.write_text(FAKE.format(python=sys.executable, works=works))
        path.chmod(0o755)
        monkeypatch.setenv(pdf.BROWSER_VARIABLE, str(path))

    return install


@pytest.mark.skipif(sys.platform == "win32", reason="the browser is a script")
def test_the_page_is_printed_without_the_network(browser):
    browser()
    assert pdf.why_no_pdf() == ""
    assert pdf.to_pdf("<p>é") == b"%PDF-1.4 MAP * ~NOTFOUND"
    browser(works="")
    with pytest.raises(NotAvailable, match="did not print; open the HTML file in any browser"):
        pdf.to_pdf("<p>é")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="the browser is a script")
def test_the_command_line_writes_it_or_says_before_the_work_why_not(browser, tmp_path, monkeypatch):
    file, target = tmp_path / "é.csv", tmp_path / "report.pdf"
    file.write_text("label,p_a,p_b\n" + "a,0.6,0.4\nb,0.3,0.7\n" * 20, encoding="utf-8")
    options = ["audit", str(file), "--resamples", "20", "--pdf", str(target)]
    browser()
    result = run(*options)
    assert result.exit_code == 0, result.output
    assert target.read_bytes().startswith(b"%PDF-1.4")
    target.unlink()
    monkeypatch.setenv(pdf.BROWSER_VARIABLE, "/nowhere/chrome")
    refused = run(*options)
    assert refused.exit_code != 0
    assert "a PDF needs Chromium, Chrome or Edge" in refused.output
    assert not target.exists()


def test_where_there_is_no_browser_one_sentence_says_so(monkeypatch):
    monkeypatch.setenv(pdf.BROWSER_VARIABLE, "/nowhere/chrome")
    assert "CALVIZ_CHROMIUM names '/nowhere/chrome', which is not a program" in pdf.why_no_pdf()
    with pytest.raises(NotAvailable, match=r"^a PDF needs Chromium, Chrome or Edge.*print it\.$"):
        pdf.to_pdf("<p>x")
    monkeypatch.delenv(pdf.BROWSER_VARIABLE)
    monkeypatch.setattr(pdf.shutil, "which", lambda name: None)
    monkeypatch.setattr(pdf, "_BROWSER_PATHS", {})
    assert pdf.why_no_pdf().startswith(
        "a PDF needs Chromium, Chrome or Edge, and there is none here;"
    )


# ---- Figures beside each other, as a paper prints them


@pytest.fixture(scope="module")
def panels():
    rng = np.random.default_rng(0)
    p = calviz.Predictions(
        probs=rng.dirichlet([1, 1, 1], 90), labels=np.arange(90) % 3, name="</script><b>x"
    )
    return [Panel(FIGURES[key].compute(p)) for key in ("reliability", "risk-coverage", "corp")]


def spec_of(html):
    return json.loads(re.search(r'id="spec">(.*?)</script>', html, re.S)[1])


def test_panels_have_letters_one_caption_and_the_width_of_a_paper(panels):
    html = to_sheet([*panels[:2], Panel(panels[2].figure, wide=True)], columns=2, caption=True)
    spec = spec_of(html)
    assert spec["letters"] == "abc"
    # Letters of 12 pixels are 7 points high: 12 / 96 inches, of 72 points, smaller by the same factor on both widths.
    assert 12 * spec["inches"] / spec["width"] * 72 == pytest.approx(7, abs=0.1)
    first, second, third = (panel["width"] for panel in spec["panels"])
    assert first == second == (spec["width"] - spec["gap"]) // 2
    assert third == spec["width"]
    assert spec["caption"] == caption_of(panels)
    for letter, panel in zip("abc", panels, strict=True):
        assert f"({letter}) {panel.figure.describe()}"[:60] in spec["caption"]
    assert "</script><b>x" not in html


def test_the_cumulative_plot_is_one_panel_and_no_box_hides_data(panels):
    figure = FIGURES["cumulative"].compute(
        calviz.Predictions(probs=np.full(40, 0.4), labels=np.arange(40) % 2)
    )
    assert len(figure.plot()["layout"]["annotations"]) > 4
    layout = spec_of(to_sheet([*panels, Panel(figure)]))["panels"][-1]["figure"]["layout"]
    assert "xaxis2" not in layout
    assert not [note for note in layout["annotations"] if "<b>a</b>" in note["text"]]
    assert {note["bgcolor"] for note in layout["annotations"]} == {"rgba(0, 0, 0, 0)"}


def test_one_panel_has_no_letter_and_no_grey(panels):
    spec = spec_of(to_sheet(panels[:1]))
    assert spec["letters"] == "" == spec["caption"]
    assert 12 * spec["inches"] / spec["width"] * 72 == pytest.approx(7, abs=0.1)
    drawn = spec["panels"][0]["figure"]
    fills = [t.get("fillcolor") for t in drawn["data"]]
    assert PALETTES["light"].calibrated not in fills
    assert PALETTES["light"].calibrated in [
        t.fillcolor for t in panels[0].figure.plot().data if t.type == "scatter"
    ]
    assert drawn["layout"]["xaxis"]["showgrid"] is False


def test_no_panels_and_odd_widths_are_refused(panels):
    with pytest.raises(OptionError, match="1 to 26 panels, got 0"):
        to_sheet([])
    with pytest.raises(OptionError, match="1 or 2 columns wide, got 3"):
        to_sheet(panels, columns=3)


def test_the_page_around_the_paper_follows_the_theme_and_the_figure_does_not(panels):
    light, dark = (to_sheet(panels[:1], theme=theme) for theme in ("light", "dark"))
    assert f"background: {PALETTES['dark'].paper}" in dark
    assert f"background: {PALETTES['light'].paper}" in light
    assert spec_of(dark) == spec_of(light)
