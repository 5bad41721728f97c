"""Every page, light and dark, on a desk and on a phone."""

from functools import partial
from pathlib import Path

import pytest

from tests.browser import pointing, settling, tabbing

#: Those with the most figures are measured at this width too (`test_boxes.py`).
PAGES = ["/", "/data"]


#: One theme each: their charts take the colours of the same palettes.
ONCE = {
    "/metrics?data=breast_cancer&error-bars=false": True,
    "/cumulative?data=breast_cancer": False,
    "/risk_coverage?data=breast_cancer": False,
}


#: By how much the page, and its main part, are wider than what is seen of them.
WIDER = """() => [document.documentElement, document.querySelector('[data-testid=stMain]')]
    .map(e => e.scrollWidth - e.clientWidth)"""


@pytest.mark.parametrize("path", [*PAGES, *ONCE])
def test_a_page_fits_a_phone(path, view):
    first = ONCE.get(path, False)
    tab = view(width=390, height=844, dark=first).open(path)
    page = tab.page
    for dark in {first, *([] if path in ONCE else [True])}:
        settling.turn(tab, "dark" if dark else "light")
        wide = settling.in_the_end(page, lambda: page.evaluate(WIDER), lambda wide: not any(wide))
        assert wide == [0, 0], dark


def _has_a_diagram_with_its_words(tab):
    tab.page.wait_for_selector(".js-plotly-plot .bars .point path", state="attached")
    chart = tab.page.locator("[data-testid=stPlotlyChart]").first
    label = chart.get_attribute("aria-label") or chart.locator("[aria-label]").first.get_attribute(
        "aria-label"
    )
    assert "Reliability diagram of" in label


def test_the_overview_says_what_it_is_with_a_verdict_and_three_numbers(view):
    tab = view().open("/")
    tab.page.locator("[data-testid=stMetric]").nth(2).wait_for()
    tab.settle()
    _has_a_diagram_with_its_words(tab)
    tab.page.locator(".js-plotly-plot .legendtext").first.wait_for()
    # The first screen holds verdict, numbers and diagram.
    for part in ("h1", "[data-testid=stMetric]:last-of-type", ".js-plotly-plot"):
        box = pointing.at_rest(
            tab.page, tab.page.locator(f"[data-testid=stMain] {part}").last.bounding_box
        )
        assert box["y"] + box["height"] <= 900, part
    assert tab.page.locator("[data-testid=stHeaderLogo], [data-testid*=Logo]").count()
    assert tab.page.locator("[data-testid=stMetric]").count() == 3
    tab.expect("Your data stay on this machine")
    verdict = tab.page.locator("h1").first.inner_text()
    assert "points" in verdict or "calibrat" in verdict
    assert len(verdict.split()) <= 15
    # What one cheap map would bring.
    tab.expect("would take the ECE from")
    # Every control is reached by Tab, and one sees where the focus is.
    for theme in ("light", "dark"):
        settling.turn(tab, theme)
        # A page that runs again under the Tab key loses the focus.
        settling.drawn_in(tab, theme)
        stops = tabbing.stops(tab.page)
        assert {"Copy link", "Recalibrate", "See the rows", "Use your file"} <= {
            stop["name"].split("\n")[-1].strip() for stop in stops
        }
        assert tabbing.missed(tab.page) == []
        assert tabbing.unseen(tab.page, stops) == []
    tab.page.locator("[data-testid=stMain]").get_by_role("link", name="Use your file").click()
    tab.expect("Recognised:")


def test_settings_survive_a_page_switch_and_a_step_back(view):
    tab = view().open("/")
    page = tab.page
    tab.bins(20)
    tab.go("Diagnose").expect("Bins 20")
    assert "/reliability" in page.url
    _has_a_diagram_with_its_words(tab)
    tab.go("Diagnose", "Classes (MCS)").expect("Bins 20")
    page.go_back()
    tab.at("Diagnose", "Reliability").expect("Bins 20")
    # A room opens at the tab where it was left.
    tab.go("Overview").go("Diagnose").at("Diagnose", "Reliability")
    page.go_back()
    tab.at("Overview").expect("Bins 20")


def test_a_figure_has_the_font_of_its_page_and_a_saved_one_has_not(view):
    tab = view().open("/explain?picture=SVG")
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
        settling.turn(tab, theme)
        for part in ("[data-tag]", "[data-testid=stBaseButton-primary]"):
            element = tab.page.locator(f"[data-testid=stMain] {part}").first
            contrast = settling.in_the_end(
                tab.page, partial(element.evaluate, CONTRAST), lambda ratio: ratio >= 4.5
            )
            assert contrast >= 4.5, (part, theme)
