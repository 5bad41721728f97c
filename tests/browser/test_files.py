"""A person's own file: opened through the file chooser, read right or refused, linked to."""

import re
from pathlib import Path

import pytest

from tests.browser.conftest import View

BASE = """label,p_cat,p_dog,p_fox
cat,0.81,0.12,0.07
dog,0.25,0.55,0.2
fox,0.1,0.3,0.6
cat,0.35,0.4,0.25
"""


@pytest.fixture
def good(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(BASE)
    return path


@pytest.fixture
def bad(tmp_path):
    path = tmp_path / "broken.csv"
    path.write_text("label,p_cat,p_dog\ncat,0.8,0.2\ndog,n/a?,0.5\ndog,0.5,0.5\n")
    return path


def test_a_file_is_read_and_stays_whatever_comes_after_it(view, good, bad):
    tab = view().open("/data?scheme=equal-mass")
    page = tab.page
    tab.choose(good)
    tab.expect("4 rows, 3 classes (cat, dog, fox)")
    tab.settle()
    assert page.locator("[data-testid=stMain]").get_by_text("Sample data", exact=True).count() == 0
    page.wait_for_url(re.compile(r"data=[0-9a-f]{16}"))
    tab.settle()

    # How it is read can be said item by item; the labels say cat, dog, fox, and these names do not fit.
    page.get_by_role("button", name="Read it differently").click()
    tab.unfold("More about the scores and labels")
    page.get_by_role("textbox", name="Class names").fill("a\nb\nc")
    page.get_by_role("button", name="Read it this way").click()
    tab.expect("mine.csv is still loaded.")
    page.get_by_role("button", name="Back to mine.csv").click()
    tab.expect("4 rows, 3 classes (cat, dog, fox)").settle()

    # A bad file gives one sentence.
    tab.choose(bad)
    tab.expect("mine.csv is still loaded.").settle()
    alerts = page.locator("[data-testid=stAlert]").all_inner_texts()
    assert len(alerts) == 1
    assert "Row 2" in alerts[0]  # the title names the file
    assert "n/a?" in alerts[0]
    page.get_by_role("button", name="Back to mine.csv").click()
    tab.expect("4 rows, 3 classes").settle()
    assert page.locator("[data-testid=stAlert]").count() == 0

    tab.go("Overview")
    page.locator(".st-key-calviz-bar", has_text="mine.csv").wait_for()
    # The bins of the page before, whatever was read in between.
    page.locator(".st-key-calviz-bar", has_text="equal mass").wait_for()
    tab.chip("mine.csv")
    page.get_by_role("link", name="How it was read").click()
    tab.expect("4 rows, 3 classes")
    page.locator("[data-testid=stPopoverBody]").wait_for(state="hidden")

    # A file that is read by an answer stays, too, although the list of files has been on screen before; nothing is left to be asked.
    other = good.with_name("other.csv")
    other.write_text(BASE + ",0.2,0.3,0.5\n")
    tab.choose(other)
    page.get_by_role("button", name="Leave out the rows").click()
    tab.at("Overview")
    page.locator(".st-key-calviz-bar", has_text="other.csv").wait_for()


def test_after_a_file_is_read_by_keys_enter_leads_to_its_verdict(view, good):
    tab = view().open("/data")
    page = tab.page
    tab.choose(good, key="Enter")
    tab.expect("4 rows, 3 classes (cat, dog, fox)")
    page.wait_for_function("document.activeElement.innerText.includes('See the verdict')")
    tab.settle()
    page.keyboard.press("Enter")
    tab.at("Overview")
    page.locator(".st-key-calviz-bar", has_text="mine.csv").wait_for()


def test_a_file_that_asks_is_answered_by_keys_and_its_verdict_follows(view, tmp_path):
    """One Tab from the title leads to the first question; one file asks which class the score is of, and about a row without a label."""
    rows = [("red" if i % 3 else "blue", f"{i * 37 % 997 / 1000}") for i in range(300)]
    rows[5] = ("", "0.5")
    file = tmp_path / "asks.csv"
    file.write_text("\n".join(["label,score", *map(",".join, rows)]))
    tab = view().open("/data")
    page = tab.page
    tab.choose(file, key="Enter")
    tab.expect("2 questions about asks.csv")
    tab.settle()
    page.wait_for_function("document.activeElement.tagName === 'H1'")
    # The title is there, and has the focus, a moment before the questions are.
    page.locator("input[type=radio]").first.wait_for(state="attached")
    page.keyboard.press("Tab")
    page.wait_for_function("document.activeElement.type === 'radio'")
    page.keyboard.press("Space")
    page.locator(".st-key-calviz-way-all button:enabled").wait_for()
    tab.settle()
    # The radio that was chosen keeps the focus; then come the second question and the button.
    for _ in range(2):
        page.keyboard.press("Tab")
    page.wait_for_function("document.activeElement.innerText.includes('Read it with these')")
    tab.settle()  # a button that is drawn again between the focus and the key would not see it
    page.keyboard.press("Enter")
    tab.at("Overview")
    page.locator(".st-key-calviz-bar", has_text="asks.csv").wait_for()
    page.wait_for_function("document.activeElement.tagName === 'H1'")


def test_the_first_rows_of_a_wide_file_scroll_and_a_role_is_changed_on_a_phone(view, tmp_path):
    path = tmp_path / "wide.csv"
    names = ",".join(f"x{k}" for k in range(40))
    rows = "\n".join(",".join(["0.025"] * 40 + [f"x{k % 3}", f"x{k % 2}"]) for k in range(15))
    path.write_text(f"{names},kind,sort\n{rows}\n")
    tab = view(width=390, height=844).open("/data")
    page = tab.page
    tab.choose(path)
    tab.expect("12 of 42 columns").settle()
    # The page itself does not scroll sideways.
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    strip = page.locator("[data-testid=stTable]").first.locator(
        "xpath=ancestor::*[contains(@data-testid, 'stHorizontalBlock')][1]"
    )
    assert strip.evaluate("e => e.scrollWidth > e.clientWidth")
    page.get_by_test_id("stPopoverButton").locator("visible=true").first.click()
    page.get_by_text("rows that belong together").last.click()
    page.get_by_role("button", name="Read it like this").click()
    page.locator(".st-key-calviz-bar", has_text="wide.csv").wait_for()
    # The other column is now the label.
    tab.settle().open(f"/data?{page.url.partition('?')[2]}")
    tab.expect("15 rows, 40 classes").settle()
    assert page.get_by_text("rows that belong together").locator("visible=true").count() == 0


def test_a_link_asks_for_its_file_and_keeps_its_settings(view, good):
    tab = view().open("/data")
    tab.choose(good)
    tab.expect("4 rows, 3 classes")
    tab.page.wait_for_url(re.compile(r"data=[0-9a-f]{16}"))
    digest = re.search(r"data=([0-9a-f]{16})", tab.page.url)[1]

    # A reload is a new session of the same tab, which finds its files again.
    tab.open(f"/cumulative?bins=4&data={digest}").at("Diagnose", "Cumulative").expect("Bins 4")
    tab.page.reload()
    tab.at("Diagnose", "Cumulative").expect("mine.csv")

    # So does another tab of this browser, by a link that is pasted or a room that is opened there by mouse or keys.
    pasted = view().open(f"/cumulative?bins=4&data={digest}")
    pasted.at("Diagnose", "Cumulative").expect("mine.csv").expect("Bins 4")
    room = tab.page.locator("[data-testid=stTopNavLink]", has_text="Decide")
    for way in (
        lambda: room.click(modifiers=["Control"]),
        lambda: room.click(button="middle"),
        lambda: room.press("Control+Enter"),
    ):
        with tab.page.context.expect_page() as opened:
            way()
        apart = View(opened.value, tab.server).at("Decide").expect("mine.csv").expect("Bins 4")
        assert f"data={digest}" in apart.page.url
        apart.page.close()
    assert "/cumulative" in tab.page.url

    assert "file=mine.csv" in tab.page.url
    # A link of an earlier version names no file.
    other = view(stranger=True).open(f"/reliability?bins=4&reduction=class&class=fox&data={digest}")
    other.expect("This link needs its file").expect("ask whoever sent it which one was open")
    other.open(f"/reliability?bins=4&reduction=class&class=fox&data={digest}&file=mine.csv")
    other.expect("Open mine.csv: this link is about it.")
    other.choose(good)
    other.at("Diagnose", "Reliability").expect("Bins 4").expect("View class")


def test_a_link_to_a_file_that_nobody_has_can_be_left(view):
    tab = view().open("/?data=0123456789abcdef&bins=3")
    tab.expect("This link needs its file")
    tab.page.get_by_role("button", name="Show sample data instead").click()
    tab.at("Overview")


def test_sample_sets_can_be_chosen_and_templates_downloaded(view):
    tab = view().open("/data")
    page = tab.page
    tab.unfold("Templates to download")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download", exact=True).first.click()
    assert Path(download.value.path()).read_text().startswith("label,")
    tab.unfold("Sample data sets")
    page.get_by_role("button", name="Look at it").nth(1).click()
    tab.expect("569 rows")
    page.wait_for_url("**data=breast_cancer**")
