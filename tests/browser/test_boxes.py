"""Nothing of a figure is cut off or lies on something else, on a desk, a large screen and a phone, light and dark."""

import numpy as np
import pytest

import calviz
from calviz.figures.reliability import Reliability
from calviz.figures.risk_coverage import RiskCoverage
from calviz.report.content import Subject
from calviz.report.document import Panel, compose, to_sheet
from calviz.sample.sample import Sample
from tests.browser import settling

#: Texts of figures that leave their drawing, or lie on each other.
MEASURE = """() => {
  const found = [];
  document.querySelectorAll(".js-plotly-plot").forEach((plot, i) => {
    const box = plot.getBoundingClientRect();
    if (!box.width) return;
    const texts = [...plot.querySelectorAll(".main-svg text")]
      .filter(t => t.textContent.trim() && t.getBoundingClientRect().width && !t.closest(".hoverlayer"))
      .map(t => [t.textContent.slice(0, 40), t.getBoundingClientRect()]);
    for (const [text, r] of texts) {
      if (r.left < box.left - 2 || r.right > box.right + 2 || r.top < box.top - 2 || r.bottom > box.bottom + 2)
        found.push(`figure ${i}: "${text}" is cut off`);
    }
    texts.forEach(([a, p], k) => texts.slice(k + 1).forEach(([b, q]) => {
      const across = Math.min(p.right, q.right) - Math.max(p.left, q.left);
      const down = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
      if (across > 2 && down > 5) found.push(`figure ${i}: "${a}" lies on "${b}"`);
    }));
  });
  const main = document.querySelector("[data-testid=stMain]") || document.documentElement;
  if (main.scrollWidth - main.clientWidth > 1) found.push("the page scrolls sideways");
  return found;
}"""
#: Pages whose figures differ most in legends and labels.
PAGES = [
    "/reliability?data=digits&curves=kernel",
    "/classwise?data=simulated_100_classes",
    "/compare_models?data=digits",
]


def _wrong(page):
    """What is cut off or covered once the page stands still."""
    return settling.in_the_end(page, lambda: page.evaluate(MEASURE), lambda wrong: not wrong)


@pytest.mark.parametrize("path", PAGES)
def test_figures_are_whole_at_three_widths_in_both_themes(path, view):
    tab = view(width=1440).open(path)
    page = tab.page
    page.locator(".js-plotly-plot .main-svg").first.wait_for()
    for width, theme in ((1440, "light"), (1920, "light"), (390, "light"), (390, "dark")):
        page.set_viewport_size({"width": width, "height": 900})
        # An open page follows the theme of the system, its figures too.
        page.emulate_media(color_scheme=theme)
        # It notices a new width and draws again: until then the figures are those of the old one.
        page.wait_for_timeout(1_000)
        settling.drawn_in(tab, theme)
        assert _wrong(page) == [], (width, theme)
    assert page.locator("[data-testid=stAlert]").count() == 0


def test_a_legend_of_a_small_window_is_whole(view):
    # Names of classes take a part of the width, and the legend has no more than the panel.
    tab = view(width=1000).open("/classwise?data=breast_cancer")
    settling.drawn_in(tab, "light")
    assert _wrong(tab.page) == []


@pytest.mark.parametrize(
    "link",
    [
        *(
            f"/{page}?data=breast_cancer"
            for page in ("metrics", "reliability", "classwise", "slices", "compare_models")
        ),
        # With columns for the selected rows and for the pinned state.
        *(
            f"/{page}?data=digits&selected=predicted~3&pinned=mextra trees"
            for page in ("metrics", "classwise")
        ),
    ],
)
def test_tables_fit_a_window_of_1280_pixels(link, view):
    tab = view(width=1280).open(link)
    page = tab.page
    page.locator(".dvn-scroller").first.wait_for(state="attached")

    def wider():
        """By how many pixels the tables are wider than what is seen of them."""
        return page.evaluate(
            """() => [...document.querySelectorAll(".dvn-scroller")].map(t => t.scrollWidth - t.clientWidth).filter(more => more > 0)"""
        )

    settling.in_the_end(
        page, lambda: page.locator("[data-testid=stSpinner]").count(), lambda n: not n
    )
    tab.settle()
    assert settling.in_the_end(page, wider, lambda found: not found) == []


@pytest.mark.parametrize("path", ["/", "/cumulative?data=digits"])
def test_figures_on_a_small_window_are_whole(path, view):
    tab = view(width=1024).open(path)
    # Wide enough to read: nothing that is drawn stands in half of a small page.
    tab.page.wait_for_function(
        """() => [...document.querySelectorAll(".js-plotly-plot")].some(plot => plot.getBoundingClientRect().width > 450)"""
    )
    tab.settle()
    assert _wrong(tab.page) == []


def test_figures_of_a_report_are_whole_on_a_desk_and_a_phone(browser, tmp_path):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([1, 1, 1], size=200)
    p = calviz.Predictions(probs=probs, labels=np.arange(200) % 3)
    path = tmp_path / "report.html"
    subject = Subject(Sample(p, resamples=50), title="A model")
    path.write_text(compose(subject, date="").html(), encoding="utf-8")
    page = browser.new_page()
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(path.as_uri())
        page.locator(".chart .main-svg").last.wait_for()
        assert _wrong(page) == [], width
    page.close()


def test_a_title_does_not_lie_on_long_tick_labels(browser, tmp_path):
    # Of one row the axis goes from 98 to 100 %, in steps of half a percent.
    row = calviz.Predictions(probs=np.array([[0.2, 0.5, 0.3]]), labels=[1])
    path = tmp_path / "sheet.html"
    path.write_text(to_sheet([Panel(RiskCoverage.compute(row))], columns=1, name="one"), "utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    page.wait_for_function("document.body.dataset.ready")
    room = page.evaluate(
        """() => { const box = (one) => one.getBoundingClientRect(), all = (name) => [...document.querySelectorAll(`#sheet ${name}`)];
                   return Math.min(...all(".ytick text").map((one) => box(one).left)) - box(all(".ytitle")[0]).right; }"""
    )
    page.close()
    assert room > 0


@pytest.mark.parametrize("width", [330, 390, 900])
def test_the_legend_of_a_diagram_is_below_the_title_of_its_axis(browser, tmp_path, width):
    rng = np.random.default_rng(0)
    p = calviz.Predictions(probs=rng.dirichlet([1, 1, 1], size=200), labels=np.arange(200) % 3)
    path = tmp_path / "diagram.html"
    drawing = Reliability.compute(Sample(p, resamples=50)).plot(width=width)
    path.write_text(drawing.update_layout(width=width).to_html(), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    page.locator(".legend text").last.wait_for()
    room = page.evaluate(
        """() => { const box = (one) => document.querySelector(one).getBoundingClientRect();
                   return box(".legend .traces").top - box(".xtitle").bottom; }"""
    )
    page.close()
    assert room > 6
