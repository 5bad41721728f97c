"""The first request that a fresh server ever gets may be for any page."""

import pytest

pages = pytest.importorskip("calviz.app.navigation", reason="streamlit is not installed")
QUESTIONS = {"/" if p.key == "overview" else f"/{p.key}": p.question for p in pages.PAGES}
NAMES = [p.title for p in pages.PAGES]
#: A server of their own, which takes seconds, for a page of each kind.
ALONE = ("/", "/reliability")


#: As the first request of a visitor; what a link does to every other page is tested without a browser (`tests/app/test_every_page.py`).
FIRST = ("/metrics", "/recalibrate", "/over_time", "/compare_models", "/learn")


@pytest.mark.parametrize("path", [*ALONE, *FIRST])
def test_a_cold_link_opens_its_page_and_keeps_its_settings(path, request, view):
    at = request.getfixturevalue("fresh_server" if path in ALONE else "server")
    tab = view(at=at).open(f"{path}?bins=7&model=random+forest&data=breast_cancer")
    tab.expect(QUESTIONS[path])
    page = tab.page
    assert page.get_by_role("dialog").count() == 0
    assert page.get_by_text("Page not found").count() == 0
    links = page.locator("[data-testid=stSidebarNavLink]").all_inner_texts()
    assert [text.strip().splitlines()[-1] for text in links] == NAMES
    if path == "/learn":
        # They change nothing there, and are folded away.
        page.get_by_text("Settings of the data").click()
    from playwright.sync_api import expect  # here, so that the tests are collected without it

    expect(page.get_by_role("spinbutton", name="Number of bins")).to_have_value("7")
    for part in ("bins=7", "model=random+forest", "data=breast_cancer"):
        assert part in page.url.replace("%20", "+")
    assert page.url.startswith(at.url + path)

    if path != "/learn":
        # The widgets are the same from the first run on: a change is not lost.
        page.get_by_role("spinbutton", name="Number of bins").fill("9")
        page.keyboard.press("Enter")
        page.wait_for_url("**bins=9**")
    if path == "/reliability":
        view(at=at).open("/").expect(QUESTIONS["/"])
    assert at.faults == []


def test_the_first_page_can_be_asked_for_by_its_name(view):
    tab = view().open("/overview?bins=8")
    tab.expect(QUESTIONS["/"]).expect("8 equal-width bins")
    assert tab.page.get_by_role("dialog").count() == 0
