"""Choose a method, compare, and take the calibrated file home."""

from pathlib import Path

from calviz.data import read


def test_from_a_link_to_a_calibrated_file(view):
    tab = view(height=1600).open("/recalibrate?data=digits&model=MLP&methods=Temperature+scaling")
    page = tab.page
    page.get_by_role("button", name="Compare 1 method").click()
    page.get_by_role("heading", name="What to take").wait_for()
    table = page.locator("[data-testid=stTable]").first
    table.locator("tbody tr").nth(1).wait_for()
    assert table.locator("tbody tr").count() == 2
    page.get_by_text("Reliability, side by side").wait_for()
    page.get_by_role("button", name="Prepare the files").click()
    button = page.get_by_role("button", name="Calibrated file")
    button.wait_for()
    with page.expect_download() as download:
        button.click()
    path = Path(download.value.path())
    written = read(path.read_bytes(), name=download.value.suggested_filename).first
    assert written.n == 6_000
    assert written.n_classes == 10
