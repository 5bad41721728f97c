"""Keys lead to pages, but not while somebody types; a figure is made and copied without a server's help."""


def test_keys_lead_to_pages_and_a_figure_is_copied(view):
    tab = view(height=1400).open("/metrics?data=breast_cancer&error-bars=false").settle()
    page = tab.page
    # What listens comes with the button.
    page.get_by_role("button", name="Keyboard", exact=True).wait_for()
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Keyboard shortcuts").wait_for()
    page.keyboard.press("Escape")
    # In a field, letters are letters.
    tab.chip("Bins")
    page.get_by_role("spinbutton", name="Number of bins").focus()
    page.keyboard.type("gp")
    assert page.url.split("?")[0].endswith("/metrics")
    page.keyboard.press("Escape")
    page.locator("h1").click()
    page.keyboard.type("gp")
    page.wait_for_url("**/figures**")
    tab.at("Report", "Figures for print")
    page.wait_for_url("**/figures?**data=breast_cancer**")
    frame = page.frame_locator("iframe").first
    drawn = frame.locator("#sheet > svg")
    drawn.wait_for()
    assert drawn.get_attribute("width") == "6.750in"
    assert frame.locator("#sheet > svg > svg").count() == 2
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    frame.get_by_role("button", name="Copy figure").click()
    frame.get_by_role("button", name="Copied").wait_for()
    kind = page.evaluate("navigator.clipboard.read().then((all) => all[0].types[0])")
    assert kind == "image/png"
    with page.expect_download() as saved:
        frame.get_by_role("button", name="SVG").click()
    assert saved.value.suggested_filename == "breast_cancer-naive-Bayes-figure.svg"
