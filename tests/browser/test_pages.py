"""What only a real browser shows on the pages."""

import csv
import io
import json
import re
from functools import partial
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import calviz
from calviz.data import read
from calviz.figures.reliability import Reliability
from calviz.figures.risk_coverage import RiskCoverage
from calviz.report.content import Subject
from calviz.report.document import Panel, compose, to_sheet
from calviz.sample.sample import Sample
from tests.browser import tabbing, waiting

# ---- A click on a bar of the diagram lists the rows of that bin


def _click_bar(page, number):
    bar = page.locator(".js-plotly-plot .bars .point path").nth(number)
    chosen = page.locator(".st-key-calviz-selected-chip button").first
    bar.wait_for(state="attached")

    def click(box):
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.7)

    waiting.click_until(page, bar.bounding_box, click, chosen)


def test_a_click_lists_the_rows_of_the_bin_and_they_can_be_taken_home(view):
    tab = view(height=1100).open("/reliability?data=digits&model=MLP")
    page = tab.page
    _click_bar(page, 6)
    page.locator(".st-key-calviz-selected-chip button").first.wait_for()
    title = page.locator("[data-testid=stMain] h3").first.inner_text()
    assert title.startswith("Bin ")
    rows = int(title.split("], ")[1].split(" row")[0].replace(",", ""))
    low, high = (float(v) for v in title.split(" ", 2)[2].split("]")[0].strip("([").split(","))

    with page.expect_download() as download:
        page.get_by_role("button", name="rows as CSV").click()
    content = Path(download.value.path()).read_text()
    listed = list(csv.DictReader(io.StringIO(content)))
    assert len(listed) == rows
    assert all(low - 0.005 <= float(row["score"]) <= high + 0.005 for row in listed)
    assert {row["hit"] for row in listed} <= {"yes", "no"}
    assert all((row["label"] == row["predicted"]) == (row["hit"] == "yes") for row in listed)
    assert {"row", "id", "split"} <= set(listed[0])

    number = title.split()[1]
    page.wait_for_url(f"**selected=bins~{number}**")
    page.locator(".st-key-calviz-selected-chip button").first.click()
    page.get_by_text("Choose a bin").wait_for()
    assert page.get_by_role("heading", name=re.compile(r"^Bin \d")).count() == 0


def test_a_row_of_the_table_and_a_link_choose_a_bin_too(view):
    tab = view(height=2400).open("/reliability?data=digits&model=MLP&bin=15")
    tab.expect("Bin 15 (")
    waiting.tick_first_row(tab.page, "The bins of the diagram")
    tab.page.wait_for_function(
        "() => !document.querySelector('[data-testid=stMain] h3').innerText.startsWith('Bin 15')"
    )
    # The page, which runs after the table's own part has answered, follows.
    tab.expect("Of the selected rows:")
    tab.page.wait_for_function("() => !location.search.includes('bins~15')")


def test_bins_of_equal_mass_are_drawn(view):
    tab = view().open("/reliability?scheme=equal-mass")
    # The first bar may have no height.
    tab.page.wait_for_selector(".js-plotly-plot .bars .point path", state="attached")
    assert "ECE" in tab.settle().text


#: Where on the page the curve has kept 60 % of the rows.
AT_60_PERCENT = """() => {
    const graph = document.querySelector(".js-plotly-plot"), {xaxis, yaxis} = graph._fullLayout;
    const curve = graph._fullData.find(trace => trace.name.startsWith("By confidence"));
    const at = curve.x.findIndex(x => x >= 60);
    const box = graph.querySelector(".nsewdrag").getBoundingClientRect();
    return [box.x + xaxis.l2p(curve.x[at]), box.y + yaxis.l2p(curve.y[at])];
}"""


def _click_curve(page, chosen):
    """Click beside the curve, after a movement that the chart has seen."""

    def click(place):
        x, y = place
        page.mouse.move(x - 20, y)
        page.mouse.move(x, y + 3, steps=3)
        page.wait_for_timeout(300)
        page.mouse.down()
        page.mouse.up()

    waiting.click_until(page, lambda: page.evaluate(AT_60_PERCENT), click, chosen)


def test_a_drag_over_the_diagram_picks_a_range_that_the_link_keeps(view):
    tab = view(height=1200).open("/reliability?data=digits&model=MLP&pick=a+range+by+a+drag")
    page = tab.page
    area = page.locator(".js-plotly-plot .nsewdrag").first
    area.wait_for(state="attached")
    page.locator(".js-plotly-plot .legendtext").first.wait_for()
    box = waiting.at_rest(page, area.bounding_box)
    middle = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.62 * box["width"], middle)
    page.mouse.down()
    page.mouse.move(box["x"] + 0.75 * box["width"], middle + 20, steps=5)
    page.mouse.move(box["x"] + 0.85 * box["width"], middle + 40, steps=5)
    page.mouse.up()
    page.get_by_role("heading", name=re.compile(r"^Bins 1\d to 1\d \(0\.")).wait_for()
    page.wait_for_url(re.compile(r"selected=bins~1\d-1\d"))
    tab.expect("By predicted class").expect("By condition")
    # Another page has it too, and ends it for both.
    tab.go("Diagnose", "Classes (MCS)")
    page.wait_for_url(re.compile(r"/classwise\?.*selected=bins~1"))
    page.get_by_role("heading", name=re.compile(r"^Bins 1\d to 1\d \(0\.")).wait_for()
    page.locator(".st-key-calviz-selected-chip button").first.click()
    tab.expect("Choose a bar or a cell")
    page.wait_for_url(re.compile(r"^((?!selected).)*$"))
    # A click on the risk-coverage curve, a few pixels beside it, selects what is kept there.
    tab.go("Decide", "Risk-coverage")
    tab.expect("Choose a point of the curve").settle()
    page.locator(".js-plotly-plot .legendtext").first.wait_for()
    _click_curve(page, page.get_by_role("heading", name=re.compile(r"^Kept, confidence ≥ 0\.")))
    page.wait_for_url("**selected=covered~kept~confidence~0.*")


# ---- Nothing of a figure is cut off or lies on something else, on a desk, a large screen and a phone, light and dark


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
    return waiting.in_the_end(page, lambda: page.evaluate(MEASURE), lambda wrong: not wrong)


@pytest.mark.parametrize("path", PAGES)
def test_figures_are_whole_at_three_widths_in_both_themes(path, view):
    tab = view(width=1440).open(path)
    page = tab.page
    page.locator(".js-plotly-plot .main-svg").first.wait_for()
    for width, theme in ((1440, "light"), (1920, "light"), (390, "light"), (390, "dark")):
        if page.viewport_size["width"] != width:
            page.set_viewport_size({"width": width, "height": 900})
            # It notices a new width and draws again: until then the figures are those of the old one.
            page.wait_for_timeout(1_000)
        # An open page follows the theme of the system, its figures too.
        page.emulate_media(color_scheme=theme)
        waiting.drawn_in(tab, theme)
        assert _wrong(page) == [], (width, theme)
    assert page.locator("[data-testid=stAlert]").count() == 0


def test_a_legend_of_a_small_window_is_whole(view):
    # Names of classes take a part of the width, and the legend has no more than the panel.
    tab = view(width=1000).open("/classwise?data=breast_cancer")
    waiting.drawn_in(tab, "light")
    assert _wrong(tab.page) == []


@pytest.mark.parametrize(
    "link",
    [
        *(f"/{page}?data=breast_cancer" for page in ("metrics", "reliability", "slices")),
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

    waiting.in_the_end(
        page, lambda: page.locator("[data-testid=stSpinner]").count(), lambda n: not n
    )
    tab.settle()
    assert waiting.in_the_end(page, wider, lambda found: not found) == []


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
    leagues = np.array(["Spanish Segunda Division", "Austrian T-Mobile Bundesliga"])
    groups = {"league": leagues[np.arange(200) // 3 % 2]}
    p = calviz.Predictions(probs=probs, labels=np.arange(200) % 3, groups=groups)
    path = tmp_path / "report.html"
    subject = Subject(Sample(p, resamples=50), title="A model")
    path.write_text(compose(subject, date="").html(), encoding="utf-8")
    page = browser.new_page()
    for width in (1440, 390, 360):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(path.as_uri())
        page.locator(".chart .main-svg").last.wait_for()
        assert _wrong(page) == [], width
        # Long names beside rows leave room for what they name.
        chart = page.locator("#figure-slices-drawn .chart")
        assert chart.evaluate("chart => chart._fullLayout._size.w") > 200, width
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


# ---- Keys lead to pages, but not while somebody types; a figure is made and copied without a server's help


def test_keys_lead_to_pages_and_a_figure_is_copied(view):
    tab = view(height=1400).open("/metrics?data=breast_cancer&error-bars=false").settle()
    page = tab.page
    # What listens comes with the button.
    page.get_by_role("button", name="Keyboard", exact=True).wait_for()
    page.keyboard.press("?")
    keyboard = page.get_by_role("dialog", name="Keyboard shortcuts")
    keyboard.wait_for()
    # Tabs that this file does not have, Time and Judge, are not listed.
    listed = keyboard.locator("dd").all_inner_texts()
    assert "Groups" in listed
    assert not {"Time", "Judge"} & {*listed}
    page.keyboard.press("Escape")
    # A chip that a key opens takes the focus into its settings.
    page.locator(".st-key-calviz-bar button", has_text="Bins").first.press("Enter")
    page.locator("[data-testid=stPopoverBody] input:focus").wait_for()
    # In a field, letters are letters.
    page.get_by_role("spinbutton", name="Number of bins").focus()
    page.keyboard.type("gp")
    assert page.url.split("?")[0].endswith("/metrics")
    page.keyboard.press("Escape")
    page.locator("h1").click()
    page.keyboard.type("gp")
    page.wait_for_url("**/figures**")
    # A key counts while a page opens, too, although the element of the keys is drawn anew.
    page.keyboard.press("?")
    tab.at("Report", "Figures for print")
    keyboard.wait_for()
    page.keyboard.press("Escape")
    page.wait_for_url("**/figures?**data=breast_cancer**")
    frame = page.frame_locator("iframe").first
    drawn = frame.locator("#sheet > svg")
    drawn.wait_for()
    assert drawn.get_attribute("width") == "6.750in"
    assert frame.locator("#sheet > svg > svg").count() == 2
    # Its buttons have the font of the page, which the sheet cannot load by itself.
    frame.locator("body[data-ready]").wait_for()
    fonts = "document.fonts.load('14px around').then((all) => all.length)"
    assert frame.locator(".tools").evaluate(f"() => {fonts}") == 1
    family = "(one) => getComputedStyle(one).fontFamily"
    assert frame.get_by_role("button", name="SVG").evaluate(family).startswith("around")
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    frame.get_by_role("button", name="Copy figure").click()
    frame.get_by_role("button", name="Copied").wait_for()
    kind = page.evaluate("navigator.clipboard.read().then((all) => all[0].types[0])")
    assert kind == "image/png"
    with page.expect_download() as saved:
        frame.get_by_role("button", name="SVG").click()
    assert saved.value.suggested_filename == "breast_cancer-naive-Bayes-figure.svg"


# ---- Every page, light and dark, on a desk and on a phone


#: Those with the most figures are measured at this width too (`test_boxes.py`).
PAGES_OF_LOOKS = ["/", "/data"]


#: One theme each: their charts take the colours of the same palettes.
ONCE = {
    "/metrics?data=breast_cancer&error-bars=false": True,
    "/cumulative?data=breast_cancer": False,
    "/risk_coverage?data=breast_cancer": False,
}


#: By how much the page, and its main part, are wider than what is seen of them.
WIDER = """() => [document.documentElement, document.querySelector('[data-testid=stMain]')]
    .map(e => e.scrollWidth - e.clientWidth)"""


@pytest.mark.parametrize("path", [*PAGES_OF_LOOKS, *ONCE])
def test_a_page_fits_a_phone(path, view):
    first = ONCE.get(path, False)
    tab = view(width=390, height=844, dark=first).open(path)
    page = tab.page
    for dark in {first, *([] if path in ONCE else [True])}:
        waiting.turn(tab, "dark" if dark else "light")
        wide = waiting.in_the_end(page, lambda: page.evaluate(WIDER), lambda wide: not any(wide))
        assert wide == [0, 0], dark


def test_a_swipe_over_a_diagram_scrolls_and_each_tap_selects_the_bin_that_it_points_at(view):
    tab = view(width=390, height=1400, stranger=True).open("/reliability")
    page = tab.page
    # Until the page knows its width it is drawn for a large screen, and once more for this one: a tap in between meets neither.
    page.locator(".st-key-calviz-bar button", has_text="Settings").wait_for()
    tab.settle()
    bins = page.locator(".js-plotly-plot .bars .point path")
    # No column of their table is cut.
    hidden = "t => t.scrollWidth - t.clientWidth"
    assert page.locator(".dvn-scroller").first.evaluate(hidden) <= 0
    box = waiting.at_rest(page, bins.nth(5).bounding_box)
    devtools = page.context.new_cdp_session(page)
    x, y = box["x"] + box["width"] / 2, box["y"] + 60
    # The finger rests before it is lifted: what is thrown rolls on.
    for kind, up in (("Start", 0), *(("Move", min(20 * i, 200)) for i in range(20)), ("End", None)):
        points = [] if up is None else [{"x": x, "y": y - up}]
        devtools.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": points})
        page.wait_for_timeout(20)
    down = "document.querySelector('[data-testid=stMain]').scrollTop"
    assert waiting.in_the_end(page, lambda: page.evaluate(down), lambda far: far > 100) > 100
    for place, number in ((9, 14), (5, 10)):
        box = waiting.at_rest(page, bins.nth(place).bounding_box)
        page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + 60)
        page.wait_for_url(f"**selected=bins~{number}")


def test_the_drawer_of_a_narrow_window_takes_the_focus_only_while_it_is_open(view):
    page = view(width=390, height=844).open("/data").page
    drawer, menu = page.get_by_test_id("stSidebar"), page.get_by_test_id("stExpandSidebarButton")
    # The footer comes last; a phone is not offered its list of keys.
    page.get_by_role("link", name="Learn: words").wait_for()
    assert not page.get_by_role("button", name="Keyboard", exact=True).is_visible()
    rooms = drawer.locator("a")
    for state in ("attached", "hidden"):
        rooms.first.wait_for(state=state)
    at = "() => document.activeElement.getBoundingClientRect().x"
    reached = []
    while not menu.evaluate("button => button === document.activeElement"):
        page.keyboard.press("Tab")
        reached.append(page.evaluate(at))
        assert len(reached) < 5, reached
    assert min(reached) >= 0
    page.keyboard.press("Enter")
    drawer.locator("a:focus").wait_for()
    page.keyboard.press("Escape")
    menu.and_(page.locator(":focus")).wait_for()
    # A click beside it, and a room that is chosen, close it too.
    menu.click()
    rooms.last.wait_for()
    page.mouse.click(380, 600)
    rooms.last.wait_for(state="hidden")
    menu.click()
    rooms.filter(has_text="Report").click()
    page.wait_for_url("**/report**")
    rooms.last.wait_for(state="hidden")


def test_rows_that_were_asked_for_stand_above_the_diagram_on_a_phone(view):
    page = view(width=390, height=844, stranger=True).open("/reliability?selected=bins~14").page
    rows, diagram = page.locator("[data-testid=stMain] h3"), page.locator(".js-plotly-plot")

    def tops():
        # None while an element is exchanged for another.
        boxes = [q.first.bounding_box() for q in (rows, diagram) if q.count()]
        return [box["y"] for box in boxes if box is not None]

    first = waiting.in_the_end(page, tops, lambda at: len(at) == 2 and at[0] < at[1])
    assert first[0] < first[1]
    # Those of a bin that is tapped stand below it, and the diagram stays where it was tapped, also in a browser that does not see to that.
    page.add_style_tag(content="* { overflow-anchor: none !important; }")
    page.locator("[data-testid=stMain]").evaluate(f"e => {{ e.scrollTop = {first[1] - 150}; }}")
    before = waiting.at_rest(page, tops)
    box = page.locator(".js-plotly-plot .bars .point path").nth(5).bounding_box()
    page.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + 60)
    page.wait_for_url("**selected=bins~10")
    after = waiting.in_the_end(page, tops, lambda at: len(at) == 2 and at[0] > at[1])
    assert after[0] > after[1]
    assert waiting.at_rest(page, tops)[1] == pytest.approx(before[1], abs=2)


def _has_a_diagram_with_its_words(tab):
    tab.page.wait_for_selector(".js-plotly-plot .bars .point path", state="attached")
    chart = tab.page.locator("[data-testid=stPlotlyChart]").first
    label = chart.get_attribute("aria-label") or chart.locator("[aria-label]").first.get_attribute(
        "aria-label"
    )
    assert "Reliability diagram of" in label


def test_each_section_of_the_costs_opens_and_says_its_title(view):
    """A section that opens on a click replaces the title, which was drawn before it."""
    page = view().open("/decisions?data=breast_cancer").page
    for name, title in (("Keep or refer", "cost"), ("Act or not, for one class", "Acting from")):
        page.get_by_role("tab", name=name).click()
        page.get_by_role("heading", level=1, name=re.compile(title)).wait_for()
        assert page.get_by_text("Something went wrong").count() == 0
    # ROC and precision-recall: beside each other, but one above the other on a phone, as wide as it.
    for width, least, beside in ((1440, 450, True), (390, 340, False)):
        page.set_viewport_size({"width": width, "height": 900})

        def as_wanted(least=least, beside=beside):
            # None while a figure is exchanged for one of the new width.
            boxes = [page.locator(".js-plotly-plot").nth(n).bounding_box() for n in (0, 1)]
            if None in boxes:
                return False
            level = abs(boxes[0]["y"] - boxes[1]["y"]) < 5
            return level == beside and min(box["width"] for box in boxes) > least

        assert waiting.in_the_end(page, as_wanted, bool), width


def test_the_overview_says_what_it_is_with_a_verdict_and_three_numbers(view):
    tab = view().open("/")
    tab.page.locator("[data-testid=stMetric]").nth(2).wait_for()
    tab.settle()
    # The code that draws figures is asked for with the page, once, not when the first figure arrives.
    asked = [url for url in tab.requests if "/PlotlyChart." in url or "/_stcore/health" in url]
    assert ["/PlotlyChart." in url for url in asked] == [True, False]
    _has_a_diagram_with_its_words(tab)
    tab.page.locator(".js-plotly-plot .legendtext").first.wait_for()
    # The first screen holds verdict, numbers and diagram.
    for part in ("h1", "[data-testid=stMetric]:last-of-type", ".js-plotly-plot"):
        box = waiting.at_rest(
            tab.page, tab.page.locator(f"[data-testid=stMain] {part}").last.bounding_box
        )
        assert box["y"] + box["height"] <= 900, part
    assert tab.page.locator("[data-testid=stHeaderLogo], [data-testid*=Logo]").count()
    assert tab.page.locator("[data-testid=stMetric]").count() == 3
    tab.expect("Your data stay on the machine that runs calviz")
    verdict = tab.page.locator("h1").first.inner_text()
    assert "points" in verdict or "calibrat" in verdict
    assert len(verdict.split()) <= 15
    # What one cheap map would bring.
    tab.expect("would take the ECE of")
    # Every control is reached by Tab, and one sees where the focus is.
    for theme in ("light", "dark"):
        waiting.turn(tab, theme)
        # A page that runs again under the Tab key loses the focus.
        waiting.drawn_in(tab, theme)
        stops = tabbing.stops(tab.page)
        assert {"Copy link", "Recalibrate", "See the rows", "Use your file"} <= {
            stop["name"].split("\n")[-1].strip() for stop in stops
        }
        assert tabbing.missed(tab.page) == []
        assert tabbing.unseen(tab.page, stops) == []
    tab.page.locator("[data-testid=stMain]").get_by_role("link", name="Use your file").click()
    tab.expect("Recognised:")


def test_few_keys_lead_past_the_bar_a_table_and_a_preview(view):
    focus = """() => { const at = document.activeElement;
        return at.tagName === "A" ? at.innerText.split("\\n").pop() : at.tagName; }"""
    for path, first, tall in (
        ("/", "Use your file", None),
        ("/classwise", "Reliability", "CANVAS"),
        ("/report", "Report", "IFRAME"),
    ):
        page = view().open(path).settle().page
        page.get_by_role("button", name="Keyboard", exact=True).wait_for()
        if tall:
            page.locator(tall.lower()).first.wait_for()
        page.keyboard.press("Tab")  # to "Skip to main content"
        page.keyboard.press("Enter")
        page.wait_for_function(f"({focus})() === '{first}'")
        stops = []
        while stops[-1:] != ["BODY"]:
            page.keyboard.press("Tab")
            stops.append(page.evaluate(focus))
        at = [number for number, stop in enumerate(stops) if stop == tall]
        assert bool(at) == (tall is not None), stops
        assert all(stops[number + 1] != tall for number in at), stops


def test_the_rows_of_the_worst_bin_are_one_click_away_and_the_bar_stays_one_line(view):
    tab = view().open("/")
    tab.page.get_by_role("button", name="See the rows").click()
    tab.at("Diagnose", "Reliability").expect("Bin 14 (0.87, 0.93], 329 rows")
    tab.page.wait_for_url("**/reliability?selected=bins~14")
    rows = tab.page.locator("[data-testid=stDataFrame]").first
    assert waiting.at_rest(tab.page, rows.bounding_box)["y"] < 900
    tab.page.get_by_role("button", name="Pin").first.click()
    tab.settle().expect("Pinned")
    assert len(set(waiting.at_rest(tab.page, lambda: tab.page.evaluate(MIDDLES)))) == 1


#: Middles of what stands in the bar, in pixels from the top.
MIDDLES = """[...document.querySelectorAll('.st-key-calviz-bar > *')].map(e => {
    const box = e.getBoundingClientRect(); return Math.round(box.y + box.height / 2) })"""


@pytest.mark.parametrize(("width", "lines"), [(600, 2), (1000, 1)])
def test_the_bar_with_a_selection_takes_few_lines(width, lines, view):
    tab = view(width=width).open("/?data=digits&model=MLP&selected=cell~3~8").settle()
    middles = waiting.at_rest(tab.page, lambda: tab.page.evaluate(MIDDLES))
    assert len({middle // 8 for middle in middles}) == lines


@pytest.mark.parametrize("width", [360, 390, 430])
def test_on_a_phone_one_line_holds_every_button_of_the_bar_by_its_name(width, view):
    page = view(width=width).open("/reliability?selected=bins~14&data=breast_cancer").page
    names = ("Breast cancer", "Settings", "Pin", "Copy link", "Save this view")
    page.locator(".st-key-calviz-bar button", has_text="Settings").wait_for()
    buttons = [page.get_by_role("button", name=name).first for name in names]
    boxes = waiting.at_rest(page, lambda: [button.bounding_box() for button in buttons])
    for left, right in pairwise(boxes):
        assert left["x"] + left["width"] <= right["x"]
        assert left["y"] == pytest.approx(right["y"], abs=2)
    assert all(box["width"] >= 40 for box in boxes)
    assert boxes[-1]["x"] + boxes[-1]["width"] <= width
    with page.expect_download():
        buttons[-1].click()
    said = page.get_by_text("Saved: open it like a file").bounding_box()
    assert 0 <= said["x"] < said["x"] + said["width"] <= width


def test_on_a_phone_a_table_shows_that_it_goes_on(view):
    page = view(width=390).open("/metrics?error-bars=false").settle().page
    table = page.locator(".dvn-scroller").first
    fade = "table => getComputedStyle(table).backgroundImage"
    # Drawn anew meanwhile, it has no fade for a moment.
    goes_on = lambda found: "16px" in found  # noqa: E731
    assert goes_on(waiting.in_the_end(page, lambda: table.evaluate(fade), goes_on))
    # The table may be drawn anew meanwhile, at its start: it is scrolled until it stays at its end.
    to_end = "table => { table.scrollLeft = table.scrollWidth; }"

    def at_its_end():
        table.evaluate(to_end)
        return table.evaluate(fade)

    assert "16px" not in waiting.in_the_end(page, at_its_end, lambda found: "16px" not in found)


def test_settings_survive_a_page_switch_and_a_step_back(view):
    tab = view().open("/")
    page = tab.page
    tab.bins(20)
    tab.go("Diagnose").expect("Bins 20")
    assert "/reliability" in page.url
    _has_a_diagram_with_its_words(tab)
    # The first screen holds the diagram and its legend.
    legend = waiting.at_rest(page, page.locator(".js-plotly-plot .legend").first.bounding_box)
    assert legend["y"] + legend["height"] <= 900
    tab.go("Diagnose", "Classes (MCS)").expect("Bins 20")
    tab.back().at("Diagnose", "Reliability").expect("Bins 20")
    # A room opens at the tab where it was left.
    tab.go("Overview").go("Diagnose").at("Diagnose", "Reliability")
    tab.back().at("Overview").expect("Bins 20")


def test_a_figure_has_the_font_of_its_page_and_a_saved_one_has_not(view):
    tab = view().open("/explain?picture=SVG").at("Overview")
    page = tab.page
    chart = page.locator(".js-plotly-plot").first
    chart.locator("text").first.wait_for()
    families = page.evaluate(
        """() => ["h1", ".js-plotly-plot text"].map(
            where => getComputedStyle(document.querySelector(where)).fontFamily.split(",")[0])"""
    )
    assert families[0] == families[1]
    # The keyboard shortcuts come with what prepares a picture.
    page.get_by_role("button", name="Keyboard", exact=True).wait_for()
    chart.hover()
    with page.expect_download() as saved:
        chart.locator(".modebar-btn").first.click()
    drawing = Path(saved.value.path()).read_text()
    assert "Helvetica" in drawing
    assert f"{families[0].strip(chr(34))}&quot;" not in drawing


#: Contrast of the text of an element to the background that it stands on.
CONTRAST = """element => {
  if (!element.isConnected) return 0;  // drawn again meanwhile
  const light = (colour) => {
    const [r, g, b] = colour.match(/[\\d.]+/g).map((v) => v / 255).map((v) => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const text = [...element.querySelectorAll("*"), element].find((one) => one.textContent.trim() && !one.childElementCount);
  const both = [light(getComputedStyle(text).color), light(getComputedStyle(element).backgroundColor)].sort();
  return (both[1] + 0.05) / (both[0] + 0.05);
}"""


def test_chosen_items_and_the_main_button_can_be_read_on_both_themes(view):
    tab = view().open("/recalibrate?data=digits")
    for theme in ("light", "dark"):
        waiting.turn(tab, theme)
        for part in ("[data-tag]", "[data-testid=stBaseButton-primary]"):
            element = tab.page.locator(f"[data-testid=stMain] {part}").first
            contrast = waiting.in_the_end(
                tab.page, partial(element.evaluate, CONTRAST), lambda ratio: ratio >= 4.5
            )
            assert contrast >= 4.5, (part, theme)


# ---- A view that is saved and opened again is the same link


def test_a_saved_view_opens_as_the_link_it_was_saved_from(view, tmp_path):
    settings = "bins=9&reduction=class&class=4&selected=predicted~3&pinned=b10~hequal-mass"
    tab = view(height=1100).open(f"/reliability?data=digits&{settings}")
    page = tab.page
    tab.expect("Predicted '3'")
    link = page.url
    with page.expect_download() as download:
        page.get_by_role("button", name="Save this view").click()
    saved = tmp_path / "view.json"
    saved.write_bytes(Path(download.value.path()).read_bytes())
    assert json.loads(saved.read_text())["settings"]["pinned"] == "b10~hequal-mass"
    # Elsewhere, looking at other data.
    tab = view(height=1100).open("/data?data=breast_cancer")
    tab.expect("Recognised:")
    tab.upload(str(saved))
    tab.expect("Predicted '3'")
    tab.page.wait_for_url(link)


# ---- Two files are opened, compared, and recalibrated side by side


def test_a_second_file_joins_the_comparison(view, tmp_path):
    rng = np.random.default_rng(0)
    score = rng.uniform(0.02, 0.98, 400)
    labels = (rng.random(400) < score).astype(int)
    for name, probs in (("honest", score), ("shy", 0.25 + score / 2)):
        np.savez(tmp_path / f"{name}.npz", probs=probs, labels=labels, ids=np.arange(400))
    tab = view(height=1_000).open("/compare_models?data=breast_cancer")
    tab.expect("not told apart from").settle()
    page = tab.page
    for name in ("honest", "shy"):
        if not page.locator("input[type=file]").count():
            page.get_by_text("Add a model").click()
        tab.upload(tmp_path / f"{name}.npz")
        tab.expect("honest.npz").settle()  # the second joins it; the first stays in view
    best = page.get_by_text("By NLL, 'honest' is best")
    if not waiting.in_the_end(page, best.count, bool):
        tab.upload(tmp_path / "shy.npz")  # streamlit drew the box anew between the file and its run
    tab.expect("By NLL, 'honest' is best")
    tab.expect("Identifiers agree in all 400 rows.")
    assert page.locator("[data-testid=stTable] strong").first.inner_text()
    # The diagrams of two models fill the page.
    ends = "plots => Math.max(...plots.map(p => p.getBoundingClientRect().right))"
    plots = page.locator(".js-plotly-plot")
    assert waiting.in_the_end(page, lambda: plots.evaluate_all(ends), lambda x: x > 1_200) > 1_200
    # Each model has its difference beside its mark; the rest is folded away.
    forest = plots.filter(has_text="Difference in NLL")
    assert forest.count() == 1
    assert "worse" in forest.inner_text()
    page.get_by_text("All metrics and differences").click()
    tab.expect("Download as CSV")
    page.get_by_role("tab", name="Each model after recalibration").click()
    page.get_by_role("button", name=re.compile("for each model$")).click()
    tab.expect("Bold: best of its row")


# ---- Choose a method, compare, and take the calibrated file home


def test_from_a_link_to_a_calibrated_file(view):
    tab = view(height=1600).open("/recalibrate?data=digits&model=MLP&methods=Temperature+scaling")
    page = tab.page
    # So small a file is compared at once; then the button compares again.
    page.get_by_role("heading", name="What to take").wait_for()
    page.get_by_role("button", name="Compare again").press("Enter")
    # The button was disabled meanwhile; the keyboard goes on from the title, not from the top of the page.
    at_title = "document.activeElement.tagName === 'H1'"
    assert waiting.in_the_end(page, lambda: page.evaluate(at_title), bool)
    page.get_by_role("heading", name="What to take").wait_for()
    table = page.locator("[data-testid=stTable]").first
    table.locator("tbody tr").nth(1).wait_for()
    assert table.locator("tbody tr").count() == 2
    page.get_by_text("Reliability, side by side").wait_for()
    button = page.get_by_role("button", name="Calibrated file")
    button.wait_for()
    with page.expect_download() as download:
        button.click()
    path = Path(download.value.path())
    written = read(path.read_bytes(), name=download.value.suggested_filename).first
    assert written.n == 6_000
    assert written.n_classes == 10
    # On a phone, what to take comes before the choices.
    page.set_viewport_size({"width": 390, "height": 844})
    parts = page.get_by_role("heading", name="What to take"), page.get_by_text("Split to fit on")

    def tops():
        boxes = [part.first.bounding_box() for part in parts if part.count()]
        return [box["y"] for box in boxes if box is not None]

    first = waiting.in_the_end(page, tops, lambda at: len(at) == 2 and at[0] < at[1])
    assert first[0] < first[1]
