"""Reports: complete, the same bytes twice, and safe whatever a file is called."""

import base64
import csv
import hashlib
import io
import json
import re
import zipfile
from dataclasses import replace
from html.parser import HTMLParser
from importlib import metadata

import numpy as np
import pytest

import calviz
from calviz.comparison.advice import advise
from calviz.core.entry_specs import METRICS
from calviz.core.errors import OptionError
from calviz.report.content import Subject
from calviz.report.document import _mathml, bind, compose, make_part, sections_in_order
from calviz.sample.sample import Sample
from tests.unit.report.conftest import FORMULA, HTML, predictions

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
