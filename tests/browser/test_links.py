"""A copied link opens the view it was copied from."""

from tests.browser import pointing


def test_a_link_names_the_class_that_was_picked_and_all_curves(view):
    tab = view(height=1400).open("/classwise?data=digits")
    page = tab.page
    pointing.tick_first_row(page)
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
