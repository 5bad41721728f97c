"""A click on a bar of the diagram lists the rows of that bin."""

import csv
import io
import re
from pathlib import Path

from tests.browser import pointing


def _click_bar(page, number):
    bar = page.locator(".js-plotly-plot .bars .point path").nth(number)
    chosen = page.locator(".st-key-calviz-selected-chip button").first
    bar.wait_for(state="attached")

    def click(box):
        page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] * 0.7)

    pointing.click_until(page, bar.bounding_box, click, chosen)


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
    page.get_by_text("Click a bin").wait_for()
    assert page.get_by_role("heading", name=re.compile(r"^Bin \d")).count() == 0


def test_a_row_of_the_table_and_a_link_choose_a_bin_too(view):
    tab = view(height=2400).open("/reliability?data=digits&model=MLP&bin=15")
    tab.expect("Bin 15 (")
    pointing.tick_first_row(tab.page, "The bins of the diagram")
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

    pointing.click_until(page, lambda: page.evaluate(AT_60_PERCENT), click, chosen)


def test_a_drag_over_the_diagram_picks_a_range_that_the_link_keeps(view):
    tab = view(height=1200).open("/reliability?data=digits&model=MLP&pick=a+range+by+a+drag")
    page = tab.page
    area = page.locator(".js-plotly-plot .nsewdrag").first
    area.wait_for(state="attached")
    page.locator(".js-plotly-plot .legendtext").first.wait_for()
    box = pointing.at_rest(page, area.bounding_box)
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
    tab.expect("Click a bar, tick a class")
    page.wait_for_url(re.compile(r"^((?!selected).)*$"))
    # A click on the risk-coverage curve, a few pixels beside it, selects what is kept there.
    tab.go("Decide", "Risk-coverage")
    tab.expect("Click a point of the curve").settle()
    page.locator(".js-plotly-plot .legendtext").first.wait_for()
    _click_curve(page, page.get_by_role("heading", name=re.compile(r"^Kept at 60 % coverage")))
    page.wait_for_url("**selected=covered~kept~confidence~60**")
