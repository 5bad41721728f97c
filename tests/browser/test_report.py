"""A report opened from disk: it draws, says nothing on the console, and asks nobody for anything."""

import re
from importlib.resources import files
from xml.etree import ElementTree

import numpy as np
import pytest

import calviz
from calviz.core.errors import NotAvailable
from calviz.data import read
from calviz.report.content import Origin, Subject, preset_sections
from calviz.report.document import bind, compose, make_part, to_pdf
from calviz.sample.sample import Sample
from tests.inputs.command_line import run

#: Lines of a number, and whether it is wider than its card.
_LINES = """cards => cards.map((e) => [e.offsetHeight / parseFloat(getComputedStyle(e).lineHeight),
    e.scrollWidth > e.clientWidth])"""
HTML = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1, 1, 1], size=120)
    p = calviz.Predictions(probs=probs, labels=np.arange(120) % 3, class_names=(HTML, "b", "c"))
    subject = Subject(Sample(p, resamples=50), title=f"Model {HTML}")
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(compose(subject, date="").html(), encoding="utf-8")
    return path


def test_it_works_from_disk_without_a_network(browser, file):
    context = browser.new_context(viewport={"width": 390, "height": 800}, accept_downloads=True)
    page = context.new_page()
    asked, messages = [], []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: messages.append(message.text))
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on("dialog", lambda dialog: messages.append(dialog.message))
    page.goto(file.as_uri())
    page.locator(".chart .main-svg").first.wait_for()
    assert page.locator(".chart").count() == page.locator(".chart:has(.main-svg)").count() > 3
    assert page.locator("h1").inner_text() == f"Model {HTML}"
    assert page.locator("img").count() == 0
    # Nothing but wide tables is wider than a phone, and those scroll by themselves.
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for form in ("PNG", "SVG"):
        with page.expect_download() as download:
            page.get_by_role("button", name=form).first.click()
        assert download.value.suggested_filename == f"of-a-hundred.{form.lower()}"
    svg = ElementTree.parse(download.value.path()).getroot()
    assert f"Model {HTML}" in "".join(svg.itertext())
    assert not svg.findall(".//{*}script") + svg.findall(".//{*}img")
    outside = [url for url in asked if not url.startswith(("data:", "blob:"))]
    assert outside == [file.as_uri()]
    assert messages == []
    context.close()


def test_a_number_and_its_unit_are_on_one_line(browser, file):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(file.as_uri())
    # On the screen, on paper, and on a phone; fonts that stand in for others are wide.
    for width in (1440, 690, 390):
        page.set_viewport_size({"width": width, "height": 800})
        for font in ("inherit", "DejaVu Sans, Verdana, sans-serif"):
            page.evaluate("font => document.body.style.fontFamily = font", font)
            cards = page.locator(".cards dd.value").evaluate_all(_LINES)
            assert len(cards) > 3
            assert all(lines < 2 and not wide for lines, wide in cards), (width, font, cards)
    context.close()


def test_words_and_tables_are_there_without_scripts(browser, file):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(file.as_uri())
    assert page.locator("#metrics td").first.is_visible()
    page.locator("summary").first.click()
    assert page.locator("details td").first.is_visible()
    assert page.locator("noscript").first.inner_text().startswith("The drawing needs JavaScript")
    context.close()


def test_on_paper_a_figure_is_on_the_page_of_its_heading():
    style = files("calviz.report").joinpath("templates", "style.css").read_text()
    # Before each section, so much of a page is taken, in millimetres.
    taken = range(20, 240, 40)
    body = "".join(
        f'<div style="break-before: page; height: {mm}mm"></div><section id="s{mm}"><h2>Heading</h2><p>{"A sentence. " * 20}</p>'
        f'<figure id="f{mm}"><figcaption>Title</figcaption><div class="chart" style="height: 500px"></div></figure>'
        f'<p class="note" id="n{mm}">A note.</p></section>'
        for mm in taken
    )
    links = "".join(f'<a href="#{part}{mm}">.</a>' for mm in taken for part in "sfn")
    try:
        printed = to_pdf(f"<style>{style}</style><main>{body}<p>{links}</p></main>")
    except NotAvailable as reason:
        pytest.skip(str(reason))
    page = dict(re.findall(rb"/(\w\d+) \[(\d+) 0 R\s+/XYZ", printed))
    assert len(page) == 3 * len(taken)
    for mm in taken:
        assert len({page[f"{part}{mm}".encode()] for part in "sfn"}) == 1, mm


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "model", "preset", "most"),
    [
        ("digits", "MLP", "one-page", 1),
        ("digits", "MLP", "default", 6),
        # The longest verdicts, in two paragraphs.
        ("breast_cancer", "naive Bayes", "one-page", 1),
    ],
)
def test_presets_keep_their_number_of_pages(browser, file, model, preset, most):
    loaded = read(f"sample_data/{file}.parquet")
    data = loaded.models[model]
    split = "test" if "test" in data.split_names else None
    sample = Sample.of(data, split=split)
    subject = Subject(sample, title=file, origin=Origin.of(loaded), whole=data)
    report = bind([make_part(subject, sections=preset_sections(preset, subject))]).dated()
    try:
        printed = to_pdf(report.html())
    except NotAvailable as reason:
        pytest.skip(str(reason))
    assert 1 <= _pages(printed) <= most


def _pages(printed):
    return len(re.findall(rb"/Type\s*/Page\b", printed))


@pytest.mark.slow
def test_several_models_are_compared_first_and_fit_on_six_pages(browser, tmp_path):
    rng = np.random.default_rng(0)
    for models in (2, 6, 12):
        file, pdf, page = (tmp_path / f"{models}.{kind}" for kind in ("csv", "pdf", "html"))
        score = rng.uniform(0.05, 0.95, (300, models))
        label = rng.random(300) < score.mean(axis=1)
        names = ",".join(f"net{k}:{name}" for k in range(models) for name in ("no", "yes"))
        both = np.stack([1 - score, score], axis=2).reshape(300, -1).round(4).astype(str)
        rows = (f"{'yes' if y else 'no'},{','.join(s)}" for y, s in zip(label, both, strict=True))
        file.write_text("\n".join([f"label,{names}", *rows]))
        done = run("audit", file, "--resamples", "50", "--html", page, "--pdf", pdf)
        assert done.exit_code == 0, done.stderr
        html = page.read_text(encoding="utf-8")
        assert html.index('id="models"') < html.index('id="part-1"')
        assert len(re.findall(r'id="part-\d+-verdict"', html)) == models
        assert "preset full" in html
        assert 1 <= _pages(pdf.read_bytes()) <= 6
