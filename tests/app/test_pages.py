"""Every page opens, with every kind of data."""

import re
import subprocess
import sys

import numpy as np
import pytest

from benchmarks.claims.slices import one_region
from benchmarks.claims.watching import moderation
from calviz.app.navigation import PAGES, ROOMS, room_of
from calviz.data.reading import SAMPLES
from tests.app.pages import ROOT, open_page, plain, press, quiet, text_of, unfold_all, upload
from tests.inputs.borderline import FILES

# ---- Every page: it is registered, shows every sample and unusual files, and an error is one sentence


def test_every_file_in_pages_is_registered_and_no_other_is():
    assert {*(ROOT / "pages").glob("*.py")} == {room.file for room in ROOMS}


def test_pages_have_their_letter_and_title():
    assert len({page.title for page in PAGES}) == len(PAGES)
    assert len({page.letter for page in PAGES}) == len(PAGES)


#: All pages with a sample of two classes and with one of a hundred; of the others, those that differ most from these.
SHOWN = [
    pytest.param(
        sample.key,
        page.key,
        marks=[] if sample.key == "breast_cancer" and page.key != "metrics" else [pytest.mark.slow],
    )
    for sample in SAMPLES
    for page in PAGES
    if sample.key in ("breast_cancer", "simulated_100_classes")
    or page.key in ("overview", "classwise", "recalibrate", "slices")
]


@pytest.mark.parametrize(("sample", "page"), SHOWN)
def test_every_page_shows_every_sample(sample, page):
    app = quiet(open_page(f"data={sample}&bins=7", page))
    assert len(app.title) == 1
    assert app.number_input(key="bins").value == 7
    # What opens without a link needs no word in it.
    assert app.query_params.get("data", "digits") == sample
    assert app.query_params["bins"] == "7"
    for unfolded in unfold_all(app):
        quiet(unfolded)


def test_it_opens_on_sample_data_with_a_verdict_and_three_numbers():
    app = quiet(open_page())
    assert [m.label.split(",")[0] for m in app.metric] == ["MCS", "ECE", "Accuracy"]
    assert "noise: 0.9, rarely above 1.3" in text_of(app)
    assert len(app.title) == 1
    assert "Sample data" in "".join(b.value for b in app.markdown)


@pytest.mark.parametrize(
    ("file", "first"),
    [(None, True), (b"label,p_a,p_b\na,0.8,0.2\n", False)],
    ids=["off", "one row"],
)
def test_recalibrate_comes_first_only_where_something_is_off(file, first):
    app = open_page() if file is None else upload(open_page(page="data"), "one.csv", file)
    buttons = [b for b in quiet(app.open("overview")).button if b.label == "Recalibrate"]
    assert [b.proto.type for b in buttons] == ["primary" if first else "secondary"]


#: Once they are read, these are as any file.
USUAL = {"sum to 0.999", "two classes in one column", "two classes in two columns"}


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in FILES if kind not in USUAL])
def test_unusual_files_are_shown_on_every_page(kind):
    app = quiet(upload(open_page(page="data"), "mine.csv", FILES[kind]))
    for page in PAGES:
        if page.key in ("learn", "arena"):  # they do not show the file
            continue
        app.open(page.key)
        quiet(app)
        for unfolded in unfold_all(app):
            quiet(unfolded)
        # Nothing to be warned of but what the data themselves are, and whether they can be fitted on.
        fits = ("recalibrate", "learning_curve")
        assert not app.warning or page.key in ("overview", "data", *fits)
    if kind == "one row":
        app.open("overview")
        assert text_of(app).count("n = 1: not meaningful") == 5


@pytest.mark.slow
def test_an_unforeseen_error_is_one_sentence(monkeypatch):
    from calviz.figures.reliability import Reliability

    def broken(*args, **kwargs):
        raise RuntimeError("secret detail")

    monkeypatch.setattr(Reliability, "compute", broken)
    app = open_page()
    assert not app.exception
    assert len({e.value for e in app.error}) == 1
    assert "secret detail" not in text_of(app)
    assert len(app.metric) == 3


@pytest.mark.slow
def test_no_widget_has_a_default_and_a_value_set_beside_it(monkeypatch):
    # streamlit warns of two values once per process, in the log of the server only.
    from streamlit.elements.lib import policies
    from streamlit.runtime.state import get_session_state

    twice = []

    def check(default_value, key, writes_allowed=True):
        is_set = key is not None and get_session_state().is_new_state_value(key)
        twice.extend([key] if is_set and default_value is not None else [])

    monkeypatch.setattr(policies, "check_session_state_rules", check)
    rng = np.random.default_rng(0)
    first = rng.integers(0, 11, 200) / 10
    cells = zip(
        np.where(rng.random(200) < first, "a", "b"), first, (1 - first).round(1), strict=True
    )
    content = "label,p_a,p_b,split\n" + "".join(
        f"{label},{a:.1f},{b:.1f},{'test' if i % 2 else 'cal'}\n"
        for i, (label, a, b) in enumerate(cells)
    )
    app = upload(open_page("bins=4"), "zeros.csv", content.encode())
    for page in ("learning_curve", "overview", "learning_curve", "recalibrate"):
        app = quiet(app.open(page))
        zeros = [w for w in app.button_group if w.key == "zeros"]
        if zeros and page == "learning_curve":
            zeros[0].set_value("own").run()
    assert app.number_input(key="zeros-as").value == 0.01
    link = open_page(f"data={app.query_params['data'][0]}&bins=7&scheme=equal-width")
    quiet(upload(link, "zeros.csv", content.encode()))
    assert link.number_input(key="bins").value == 7
    assert twice == []


# ---- The first page of a fresh server does not wait for what only other pages need; that is imported after it


CODE = """
import sys
from streamlit.testing.v1 import AppTest
app = AppTest.from_file({app!r}, default_timeout=300).run()
assert not app.exception
later = "sklearn", "calviz.comparison.fitting", "scipy.stats"
print(*(name for name in later if name in sys.modules), sep=",")
from calviz.app import navigation
navigation.import_all()
print(*(name for name in (*later, *navigation.module_names()) if name not in sys.modules), sep=",")
"""


@pytest.mark.slow
def test_the_overview_imports_nothing_that_fits_maps():
    done = subprocess.run(
        [sys.executable, "-c", CODE.format(app=str(ROOT / "app.py"))],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    before, after = done.stdout.splitlines()[-2:]
    # Up to two seconds of imports before the first verdict otherwise.
    assert before == ""
    # Nor do the pages after it wait.
    assert after == ""


def test_the_title_of_time_says_that_rows_are_off_alike_all_the_time():
    rng, n = np.random.default_rng(0), 2_000
    day, p = np.sort(rng.integers(0, 200, n)), rng.random(n)
    days = (np.datetime64("2024-01-01") + day).astype(str)
    lines = (
        f"{d},{v:.4f},{int(h)}" for d, v, h in zip(days, p, rng.random(n) < 0.7 * p, strict=True)
    )
    content = "\n".join(["date,p,label", *lines]).encode()
    app = quiet(upload(open_page(page="data"), "high.csv", content).open("over_time"))
    assert plain(app.title[0].value).startswith("Not calibrated; none of ")


@pytest.mark.slow
def test_a_change_in_one_slice_is_the_title_and_a_button_leads_to_its_rows_since():
    data = moderation(np.random.default_rng(1)).data
    columns = zip(
        data.times, data.groups["language"].values(), data.probs, data.labels, strict=True
    )
    lines = (f"{t},{g},{','.join(f'{v:.5f}' for v in p)},{y}" for t, g, p, y in columns)
    content = "\n".join(["date,language,p_0,p_1,p_2,p_3,label", *lines]).encode()
    app = quiet(upload(open_page(page="data"), "posts.csv", content).open("overview"))
    title = (
        r"Since about 2024-0\d-\d\d language = tr: \d\.\d.points too high; others: too high by 0"
    )
    assert re.search(title, plain(app.title[0].value))
    assert [b.label for b in app.button if b.proto.type == "primary"] == ["See the rows"]
    since = quiet(press(app, "See the rows"))
    assert re.search(r"Where language = tr, date since \d{4}", plain(since.title[0].value))
    assert re.search(title, plain(quiet(since.open("over_time")).title[0].value))
    # What all rows show is below, where the days are watched.
    assert "All rows together" not in text_of(since)
    assert [b.label for b in since.selectbox if b.key.startswith("time-")] == ["Metric", "Periods"]
    # Where the days of all rows are shown, the selected slice alone is one click away.
    assert SAID in _captions(since)
    button = next(b.label for b in since.button if b.label.endswith(" alone"))
    alone = quiet(press(since, button))
    name = plain(button).removeprefix("Look at ").removesuffix(" alone")
    assert f"**{name}**, " in text_of(alone)
    assert SAID not in _captions(alone)


@pytest.mark.slow
def test_one_slice_that_alone_is_off_is_the_title_and_a_button_leads_to_its_rows():
    data = one_region(np.random.default_rng(1), off=1.0).data
    region, rows = data.groups["region"].values(), data.groups["region"].mask("0").sum()
    lines = (
        f"{p:.6f},{y},r{r}" for p, y, r in zip(data.probs[:, 1], data.labels, region, strict=True)
    )
    content = "\n".join(["p,y,region", *lines]).encode()
    app = quiet(upload(open_page(page="data"), "one.csv", content).open("overview"))
    assert re.search(
        r"Off where region = r0: about [\d.]+.points too low; elsewhere no miscalibration found",
        text_of(app),
    )
    assert [b.label for b in app.button if b.proto.type == "primary"] == ["See the rows"]
    app = quiet(press(app, "See the rows"))
    assert f"Where region = r0, {rows:,} rows" in text_of(app)
    # Title and chip name what is selected, not the worst bin of all rows.
    assert app.title[0].value.startswith("Where region ")
    assert f"{rows:,} selected" in [b.label for b in app.button]
    # What the model was most sure of, and did not happen, or the reverse, comes first.
    table = next(f.value for f in app.dataframe if "event" in f.value.columns)
    off = (table["score"] - (table["event"] == "yes")).abs()
    assert off.is_monotonic_decreasing
    assert off.iloc[0] > 0.8
    # The rows that the headline calls the others are one click away.
    others = quiet(
        press(quiet(press(app, f"{rows:,} selected").open("overview")), "See the other rows")
    )
    assert f"{8_000 - rows:,} selected" in [b.label for b in others.button]
    assert others.query_params["selected"] == "others~region~r0"
    app = quiet(
        press(quiet(press(others, f"{8_000 - rows:,} selected").open("overview")), "See the rows")
    )
    # Looked at alone, they are all rows, and nothing is selected among them.
    app = quiet(app.open("slices"))
    app = quiet(press(app, app.button[-1].label))
    assert f"**region = r0**, {rows:,} of 8,000 rows" in text_of(app)
    assert "Forecasts " in app.title[0].value
    assert "selected" not in " ".join(b.label for b in app.button)


# ---- The verdict in plain words


@pytest.mark.slow
def test_the_page_has_the_numbers_of_the_overview():
    app = quiet(open_page("data=breast_cancer&plain=true"))
    text = text_of(app)
    assert [line[:3] for line in text.splitlines() if line[1:3] == ". "] == [
        f"{n}. " for n in range(1, 6)
    ]
    verdict = app.toggle(key="plain").set_value(False).run().title[0].value
    assert ("No fault was found" in text) == ("No miscalibration" in verdict)


# ---- The page Learn opens the entry that the address names, and only one that there is


def test_an_address_opens_its_entry():
    app = open_page("entry=temperature", "learn")
    assert not app.exception
    assert [s.value for s in app.subheader] == ["Temperature scaling"]
    assert len(app.latex) == 1


def test_an_entry_that_there_is_not_opens_none():
    app = open_page("entry=<script>", "learn")
    assert not app.exception
    assert not app.subheader


def test_another_entry_can_be_chosen():
    app = open_page("entry=ece", "learn")
    box = next(s for s in app.selectbox if s.label.startswith("Look up"))
    box.set_value("CAL003").run()
    assert not app.exception
    assert len(app.subheader) == 1
    assert not app.latex


# ---- Pages that are of all rows, where rows are selected


SAID = "not only the selected ones"


@pytest.mark.parametrize("room", [room.key for room in ROOMS] + ["compare"])
def test_the_name_of_a_room_is_an_address(room):
    key = open_page("data=breast_cancer", room).session_state["calviz.here"]
    assert room_of(key).key.startswith(room)


@pytest.mark.parametrize("page", ["explain", "learning_curve", "arena"])
def test_pages_that_are_of_all_rows_say_so_of_a_selection(page):
    assert SAID not in _captions(quiet(open_page("data=breast_cancer", page)))
    assert SAID in _captions(quiet(open_page("data=breast_cancer&bin=15", page)))


def _captions(app):
    return "".join(c.value for c in app.caption)


# ---- The page that puts figures beside each other


@pytest.mark.slow
def test_a_caption_writes_the_accuracy_once_and_for_all():
    # 91.46 % and 79.12 % are 12.3 points apart; with one decimal they would be 12.4.
    words = text_of(quiet(open_page("data=digits", "figures"))).replace("\u00a0", " ")
    assert "The mean confidence is 91.46 %, the accuracy 79.12 %" in words
    assert re.findall(r"All predictions: accuracy ([\d.]+ %)", words) == ["79.12 %"]


@pytest.mark.slow
def test_chosen_panels_have_one_caption():
    app = quiet(open_page("data=breast_cancer&print=true", "figures"))
    app.multiselect(key="panels").set_value(["reliability", "roc"]).run()
    quiet(app)
    text = text_of(app)
    assert "(a) Reliability diagram of" in text
    assert "(b) ROC curve of" in text
    assert "recision" not in text.split("(b) ROC")[1]
    app.multiselect(key="panels").set_value([]).run()
    assert "Choose at least one panel." in quiet(app).info[0].value
    # The same look on every page.
    assert not quiet(app.open("reliability")).error


# ---- Rows worth looking at, with the texts and the pictures that the file names


PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 20


@pytest.mark.slow
def test_texts_and_pictures_stand_beside_the_rows(tmp_path):
    (tmp_path / "0.png").write_bytes(PNG)
    rows = [f"{'cat' if i % 3 else 'dog'},0.9,0.1,tale <b>{i},{i}.png" for i in range(60)]
    content = ("label,p_cat,p_dog,tale,image\n" + "\n".join(rows)).encode()
    app = upload(open_page(), "tales.csv", content).open("reliability")
    beside = app.segmented_control(key="beside")
    assert beside.options == ["tale", "image"]
    beside.set_value("tale").run()
    # Every third is a mistake; the surest come first.
    assert "tale <b>0" in text_of(quiet(app))
    app.segmented_control(key="beside").set_value("image").run()
    app.text_input(key="calviz.pictures.folder").set_value(str(tmp_path / "none")).run()
    assert "There is no folder" in text_of(quiet(app))
    app.text_input(key="calviz.pictures.folder").set_value(str(tmp_path)).run()
    text = text_of(quiet(app))
    assert "Not shown: there is no '3.png' in the folder" in text
    # The first twelve are shown; one of them has a picture.
    assert [c.value for c in app.caption].count("no picture") == 11
    # Links of earlier versions called the identifiers "id", whatever their column is called.
    app = upload(open_page("beside=id", "data"), "tales.csv", content).open("reliability")
    assert quiet(app).segmented_control(key="beside").value == "image"
