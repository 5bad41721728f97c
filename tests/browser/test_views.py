"""A view that is saved and opened again is the same link."""

import json
from pathlib import Path


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
    tab.page.locator("input[type=file]").set_input_files(str(saved))
    tab.expect("Predicted '3'")
    tab.page.wait_for_url(link)
