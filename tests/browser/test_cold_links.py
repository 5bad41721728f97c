"""The first request that a fresh server ever gets may be for any page."""

import pytest

pages = pytest.importorskip("calviz.app.navigation", reason="streamlit is not installed")
NAMES = [room.title for room in pages.ROOMS]
#: A server of their own, which takes seconds, for a page of each kind.
ALONE = ("/", "/reliability")


#: As the first request of a visitor; what a link does to every other page is tested without a browser (`tests/app/test_pages.py`).
FIRST = ("/metrics", "/recalibrate", "/over_time", "/compare_models", "/learn")


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
    tab = view().open("/overview?bins=8")
    tab.at("Overview").expect("Bins 8")
    assert tab.page.get_by_role("dialog").count() == 0


def test_a_server_that_streamlit_starts_knows_the_tabs_from_its_first_request_on(
    view, start_server
):
    tab = view(at=start_server(plain=True)).open("/data?bins=8")
    tab.expect("Bins 8")
    assert tab.page.get_by_role("dialog").count() == 0
    assert tab.page.locator("h1").inner_text() == "Data"
