"""Every page: it is registered, shows every sample and unusual files, and an error is one sentence."""

import numpy as np
import pytest

from calviz.app.navigation import PAGES, ROOMS
from calviz.data.reading import SAMPLES
from tests.app.pages import ROOT, open_page, quiet, text_of, unfold_all, upload
from tests.inputs.borderline import FILES


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
    assert "noise alone: 0.9, rarely above 1.3" in text_of(app)
    assert len(app.title) == 1
    assert "Sample data" in "".join(b.value for b in app.markdown)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in FILES if "two columns" not in kind])
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
    assert "read as 0.01 by the methods" in text_of(app)
    link = open_page(f"data={app.query_params['data'][0]}&bins=7&scheme=equal-width")
    quiet(upload(link, "zeros.csv", content.encode()))
    assert link.number_input(key="bins").value == 7
    assert twice == []
