"""A link opens the page and the view it was copied from, also as the first request that a fresh server gets."""

import pytest

from tests.browser import waiting

pages = pytest.importorskip("calviz.app.navigation", reason="streamlit is not installed")
NAMES = [room.title for room in pages.ROOMS]
#: A server of their own, which takes seconds, for a page of each kind.
ALONE = ("/", "/reliability")


#: As the first request of a visitor; what a link does to every other page is tested without a browser (`tests/app/test_pages.py`).
FIRST = ("/recalibrate", "/over_time", "/compare_models", "/learn")


@pytest.mark.parametrize("path", [*ALONE, *FIRST])
def test_a_cold_link_opens_its_page_and_keeps_its_settings(path, request, view):
    at = request.getfixturevalue("fresh_server" if path in ALONE else "server")
    tab = view(at=at).open(f"{path}?bins=7&model=random+forest&data=breast_cancer")
    page = tab.page
    room = pages.room_of(path.strip("/") or "overview")
    if room is not None:
        tab.at(room.title)
    assert page.get_by_role("dialog").count() == 0
    assert page.get_by_text("Page not found").count() == 0
    links = page.locator("[data-testid=stTopNavLink]").all_inner_texts()
    assert [text.strip().splitlines()[-1] for text in links] == NAMES
    tab.expect("Bins 7")
    for part in ("bins=7", "model=random+forest", "data=breast_cancer"):
        assert part in page.url.replace("%20", "+")
    assert page.url.startswith(at.url + path)

    if path != "/learn":
        # The widgets are the same from the first run on: a change is not lost.
        tab.bins(9)
    if path == "/reliability":
        view(at=at).open("/").at("Overview")
    assert at.faults == []


def test_the_first_page_can_be_asked_for_by_its_name(view):
    tab = view().open("/overview?bins=8&model=random+forest&data=breast_cancer")
    tab.at("Overview").expect("Bins 8").expect("Model random forest")
    assert tab.page.get_by_role("dialog").count() == 0
    # What stands behind a chip that nobody has opened holds on the next pages.
    tab.go("Diagnose").expect("Model random forest")
    tab.go("Overview").expect("Model random forest")


def test_a_server_that_streamlit_starts_knows_the_tabs_from_its_first_request_on(
    view, start_server
):
    tab = view(at=start_server(plain=True)).open("/data?bins=8")
    tab.expect("Bins 8")
    assert tab.page.get_by_role("dialog").count() == 0
    assert tab.page.locator("h1").inner_text() == "Data"


def test_a_link_names_the_class_that_was_picked_and_all_curves(view):
    tab = view(height=1400).open("/classwise?data=digits")
    page = tab.page
    waiting.tick_first_row(page)
    page.get_by_role("button", name="against the rest").click()
    page.get_by_role("link", name="on Reliability").click()
    tab.at("Diagnose", "Reliability").expect("View class")
    words = page.locator(".st-key-calviz-chip-view button p").first.inner_text()
    for curve in ("kernel", "isotonic (CORP)"):
        page.get_by_role("button", name=curve).click()
        # Only then is the click known to the server.
        page.wait_for_url(f"**curves={curve.split()[0]}**")
        tab.settle()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.get_by_role("button", name="Copy link").click()
    page.get_by_role("button", name="Link copied").wait_for()
    link = page.evaluate("navigator.clipboard.readText()")
    assert "data=digits" in link
    assert "class=" in link.replace("reduction=class", "")

    other = view().open(link.removeprefix(tab.server.url))
    other.expect(words)
    for curve in ("Kernel-smoothed", "Isotonic (CORP)"):
        other.page.locator(".legendtext", has_text=curve).first.wait_for()
