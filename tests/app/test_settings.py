"""What the bar sets: views, settings, selections, and that they hold from page to page."""

import json
import re
from datetime import date
from types import SimpleNamespace

import numpy as np
import pytest
import streamlit as st_app
from hypothesis import given, settings
from hypothesis import strategies as st
from streamlit.elements.lib import policies

import calviz
from calviz.app import bar
from calviz.app.navigation import PAGES_BY_KEY
from calviz.app.open_files import is_view, read_view, request_settings, view_header
from calviz.app.pinning import Pin, decode_pin
from calviz.app.selection import (
    Bins,
    CellRule,
    Covered,
    Labelled,
    OtherRows,
    Predicted,
    SliceRule,
    decode_rule,
    rows_of,
)
from calviz.core.errors import InputError
from calviz.data.reading import load_sample
from calviz.sample.sample import Sample
from tests.app.pages import (
    GOOD,
    chips,
    drop,
    first_table,
    open_page,
    plain,
    press,
    quiet,
    setting,
    text_of,
    unfold,
    upload,
)
from tests.inputs.reliability import rare, rare_file

# ---- The settings of the bar and of a link: split, reduction, slice, bins


@pytest.mark.slow
def test_the_evaluation_split_is_the_one_whose_name_says_so():
    app = open_page()
    assert setting(app, "split").value == "test"
    for page in ("recalibrate", "learning_curve"):
        app.open(page)
        assert "Split test" in text_of(quiet(app))
    app.open("overview")
    setting(app, "split").set_value("all rows").run()
    assert "Split all rows" in text_of(quiet(app))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "reduction"),
    [
        ("data=breast_cancer", "positive"),
        ("data=breast_cancer&reduction=positive", "positive"),
        ("data=breast_cancer&reduction=top-label", "top-label"),
        ("data=digits", "top-label"),
        ("data=digits&reduction=top-r", "top-r"),
    ],
)
def test_a_link_without_a_reduction_shows_the_default_of_the_data(query, reduction):
    app = quiet(open_page(query))
    assert setting(app, "reduction").value == reduction


@pytest.mark.slow
def test_the_overview_says_what_the_other_view_of_two_classes_shows():
    entry = b"label,p\n" + b"1,0.6\n" * 300 + b"0,0.6\n" * 700 + b"1,0.1\n" * 2 + b"0,0.1\n" * 98
    app = quiet(upload(open_page(page="data"), "high.csv", entry).open("overview"))
    assert "this page looks at the positive class" in text_of(app)
    assert "Seen by the top label, the predictions are overconfident by " in text_of(app)
    app.button(key="calviz.other_view").click().run()
    assert setting(quiet(app), "reduction").value == "top-label"
    assert "Seen by the positive class, the forecasts are " in text_of(app)
    quiet(app.open("reliability"))
    assert "this page looks at the top label" in text_of(app)
    app.button(key="calviz.other_view").click().run()
    assert "this page looks at the positive class" in text_of(quiet(app))
    assert "reduction" not in app.query_params or app.query_params["reduction"] == "positive"


@pytest.mark.slow
def test_another_data_set_brings_its_default_where_nothing_was_chosen():
    app = open_page("data=digits")
    pick = next(s for s in app.selectbox if s.label == "Data set")
    assert setting(app, "reduction").value == "top-label"
    pick.set_value("breast_cancer").run()
    assert setting(quiet(app), "reduction").value == "positive"
    next(s for s in app.selectbox if s.label == "Data set").set_value("digits").run()
    assert setting(quiet(app), "reduction").value == "top-label"
    # What was chosen stays, where the data have it.
    setting(app, "reduction").set_value("top-r").run()
    next(s for s in app.selectbox if s.label == "Data set").set_value("simulated_100_classes").run()
    assert setting(quiet(app), "reduction").value == "top-r"


@pytest.mark.slow
@pytest.mark.parametrize("reduction", ["within-top-r", "class"])
def test_reductions(reduction):
    app = open_page(page="reliability")
    setting(app, "reduction").set_value(reduction).run()
    quiet(app)
    if reduction == "class":
        assert f"View class {setting(app, 'class').value}" in text_of(app)
        setting(app, "class").set_value("7").run()
        assert "View class 7" in text_of(quiet(app))
    else:
        app.number_input(key="r").set_value(3).run()
        assert "within-top-3" in text_of(quiet(app))


@pytest.mark.slow
@pytest.mark.parametrize("reduction", ["top-r", "class"])
def test_the_cumulative_plot_follows_the_reduction(reduction):
    app = open_page(page="cumulative")
    setting(app, "reduction").set_value(reduction).run()
    words = text_of(quiet(app))
    assert "Kuiper error" in words
    assert "A calibrated model stays within" in words
    assert len(app.get("plotly_chart")) == 2
    more = "Three more panels, isotonic curve (CORP), what it costs those who decide"
    assert len(unfold(app, more).get("plotly_chart")) == 5
    # A link to one of these opens them.
    linked = open_page("below-sums=Isotonic curve (CORP)", "cumulative")
    assert len(quiet(linked).get("plotly_chart")) == 3
    for title in ("Isotonic curve (CORP)", "What it costs those who decide"):
        assert len(quiet(unfold(app, title)).get("plotly_chart")) == 3


@pytest.mark.slow
def test_a_slice_looks_at_some_rows():
    app = open_page()
    setting(app, "slice").set_value("condition").run()
    setting(app, "level").set_value("rotated").run()
    assert "Rows condition = rotated" in text_of(quiet(app))
    next(s for s in app.selectbox if s.label == "Data set").set_value("breast_cancer").run()
    # The other data have no such column.
    assert "condition" not in text_of(quiet(app))


@pytest.mark.slow
def test_days_are_chosen_by_their_ends_and_the_link_keeps_them():
    rng = np.random.default_rng(0)
    day = np.datetime64("2026-04-01") + rng.integers(0, 60, 900)
    score = rng.random(900)
    hit = rng.random(900) < score
    lines = (
        f"{d},{p:.3f},{h:d},{'xy'[i % 2]}"
        for i, (d, p, h) in enumerate(zip(day, score, hit, strict=True))
    )
    content = "\n".join(["day,p,label,site", *lines]).encode()
    app = quiet(upload(open_page(page="data"), "days.csv", content).open("overview"))
    setting(app, "slice").set_value("day").run()
    assert [one.value for one in quiet(app).date_input] == [None, None]
    assert "level" not in app.query_params
    app.date_input[0].set_value(date(2026, 5, 1)).run()
    may = (day >= np.datetime64("2026-05-01")).sum()
    assert f"**day since 2026-05-01**, {may} of 900 rows" in text_of(quiet(app))
    app.date_input[1].set_value(date(2026, 5, 20)).run()
    both = ((day >= np.datetime64("2026-05-01")) & (day <= np.datetime64("2026-05-20"))).sum()
    assert f"**day 2026-05-01 to 2026-05-20**, {both} of 900 rows" in text_of(quiet(app))
    assert app.query_params["level"] == "(2026-04-30 23:59:59, 2026-05-20 23:59:59]"
    setting(app, "slice-2").set_value("site").run()
    assert "day 2026-05-01 to 2026-05-20, site = x" in text_of(quiet(app.open("slices")))
    app.date_input[0].set_value(None).run()
    assert "day until 2026-05-20, site = x" in text_of(quiet(app))
    assert [one.value for one in app.date_input] == [None, date(2026, 5, 20)]
    app.date_input[1].set_value(None).run()
    assert "level" not in quiet(app).query_params


def slice_of(app, *values):
    for key, value in zip(("slice", "level", "slice-2", "level-2"), values, strict=False):
        app.selectbox(key=key).set_value(value).run()


@pytest.mark.slow
def test_a_slice_of_two_columns_is_said_on_every_page():
    lines = [f"{i % 2},0.{3 + i % 5},{'xy'[i % 3 > 0]},{'uv'[i % 7 > 2]}" for i in range(210)]
    content = "\n".join(["label,p,site,shift", *lines, ""]).encode()
    app = upload(open_page(page="data"), "groups.csv", content)
    app.open("slices")
    slice_of(app, "site", "y", "shift", "v")
    assert "80 of 210 rows" in text_of(quiet(app))
    for page in ("overview", "recalibrate", "report"):
        app.open(page)
        assert "Rows site = y, shift = v" in text_of(quiet(app))
    app.open("slices")
    assert "site = y, shift = v" in text_of(app)
    # Another column first: the value of the one before is none of its own.
    setting(app, "slice-2").set_value("no second column").run()
    setting(app, "slice").set_value("shift").run()
    assert "Rows shift = " in text_of(quiet(app))
    slice_of(app, "site", "y", "shift", "v")
    setting(app, "slice").set_value("shift").run()
    assert "Rows shift = " in text_of(quiet(app))
    slice_of(app, "site", "y", "shift", "v")
    assert (
        "Groups are of all rows; other pages: **site = y, shift = v**, 80 of 210 rows"
        in text_of(app)
    )
    press(app, "All rows")
    assert setting(app, "slice").value == "no slice"
    assert "other pages" not in text_of(quiet(app))


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page in PAGES_BY_KEY if page not in ("data", "learn")])
def test_every_page_names_the_rows_it_is_limited_to_and_ends_that_by_a_click(page):
    app = quiet(open_page("data=digits&slice=condition&level=rotated", page))
    assert re.search(r"\*\*condition = rotated\*\*, [\d,]+ of [\d,]+ rows", text_of(app))
    app.button(key="calviz.limit.end").click().run()
    assert setting(app, "slice").value == "no slice"
    assert "condition = rotated**" not in text_of(quiet(app))


@pytest.mark.slow
def test_where_no_rows_are_left_a_title_says_so_and_a_click_takes_all():
    lines = [
        f"{i % 2},0.{3 + i % 5},{'xy'[i % 2 * (i > 99)]},{'test' if i > 99 else 'calibration'}"
        for i in range(300)
    ]
    content = "\n".join(["label,p,site,split", *lines]).encode()
    app = upload(open_page(page="data"), "empty.csv", content).open("slices")
    slice_of(app, "site", "y")
    setting(app, "split").set_value("calibration").run()
    for page in ("overview", "risk_coverage", "decisions"):
        app.open(page)
        assert app.title[0].value == "No rows are left"
    app = quiet(press(app, "All rows"))
    assert "site = y" not in text_of(app)


@pytest.mark.parametrize(("asked", "said"), [("extra trees", False), ("LP", True)])
def test_a_link_never_takes_another_model_silently(asked, said):
    app = quiet(open_page(f"data=digits&model={asked}"))
    assert ("No model here is named" in text_of(app)) is said
    assert ("Model MLP" in text_of(app)) is said


def test_settings_that_do_not_fit_the_data_are_left_out():
    app = quiet(open_page("model=nobody&split=nowhere&bins=0&reduction=class&class=none&slice=x"))
    assert setting(app, "model").value == "MLP"


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "name"), [("equal-mass", " (equal mass)"), ("", "")])
def test_numbers_are_of_the_bins_that_are_drawn_on_every_page(scheme, name):
    def value(words):
        return re.search(rf"\*\*RMSCE{re.escape(name)} ([\d.]+) points", words)[1]

    app = quiet(open_page(f"scheme={scheme}" if scheme else "", "reliability"))
    drawn = re.search(r"\*\*ECE[^*]*? ([\d.]+) points", text_of(app))[1]
    largest = value(text_of(app))
    app.open("metrics")
    table = first_table(quiet(app)).set_index("metric")["value"].to_dict()
    assert 100 * table[f"ECE{name} (points)"] == pytest.approx(float(drawn), abs=0.051)
    assert 100 * table[f"RMSCE{name} (points)"] == pytest.approx(float(largest), abs=0.051)
    app.open("overview")
    cards = {m.label: m.value for m in quiet(app).metric}
    assert next(v for k, v in cards.items() if k.startswith("ECE")) == drawn


@pytest.mark.slow
def test_bins_by_the_cube_root_are_kept_in_links_and_pins():
    app = quiet(open_page("data=digits&scheme=cube root, equal mass", "reliability"))
    app.button(key="calviz.pin").click().run()
    assert app.query_params["pinned"] == "bcube_root~hequal-mass"
    setting(app, "scheme").set_value("equal-width").run()
    assert "16 equal-mass bins" in plain(quiet(app).button(key="calviz.unpin").help)
    assert "scheme" not in app.query_params


# ---- Saved views: what is read, what is refused in a sentence, and what is opened


PAGES = frozenset({"overview", "reliability"})


def _view(**changes):
    view = view_header(key="digits", title="Handwritten digits", digest="fd49", rows=6_000) | {
        "page": "reliability",
        "settings": {"bins": "9", "curves": ["kernel", "isotonic (CORP)"], "selected": "bins~2-3"},
    }
    return json.dumps(view | changes).encode()


def test_a_view_holds_page_settings_and_the_fingerprint_of_the_data():
    view = read_view(_view(), pages=PAGES)
    assert (view.page, view.key, view.rows) == ("reliability", "digits", 6_000)
    assert view.settings["curves"] == ("kernel", "isotonic (CORP)")
    assert is_view(_view())
    assert not is_view(b'{"p": 0.5, "calviz": 1}'[:8])
    assert not is_view(b"label,p_a\n")


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (_view()[:-5], "it is not complete JSON"),
        (_view(version=2), "it is of version 2, and this calviz reads version 1"),
        (_view(version=True), "it is of version True"),
        (_view(page="../etc"), "there is no page '../etc'"),
        (_view(extra=1), "and nothing else"),
        (_view(data={"key": "digits"}), "'data' must hold key, title, rows, digest"),
        (_view(settings={"bins": 9}), "the setting 'bins' must be a text"),
        (_view(settings={"data": "x"}), "'data' is not a setting"),
        (_view(settings=[]), "'settings' must be"),
        (b" " * 300_000, "at most 200,000 are read"),
    ],
)
def test_a_broken_view_is_one_sentence(content, why):
    with pytest.raises(InputError, match="this saved view cannot be opened") as error:
        read_view(content, pages=PAGES)
    assert why in str(error.value)


@pytest.mark.slow
def test_a_view_is_opened_where_files_are_and_names_the_data_that_are_missing():
    app = quiet(open_page(page="data"))
    drop(app, "v.json", _view(version=7), "application/json")
    assert "version 7" in " ".join(e.value for e in app.info)
    # The browser is told where to go; the rest is a step in its history.
    drop(app, "v.json", _view(), "application/json")
    turn, view = app.session_state["calviz.view"]
    assert turn
    assert view.settings["selected"] == ("bins~2-3",)
    missing = view_header(key="0123456789abcdef", title="mine.csv", digest="0123", rows=77)
    content = _view(data=missing["data"])
    drop(app, "v.json", content, "application/json")
    text = text_of(quiet(app)).replace("**", "")
    assert (
        "It was made with mine.csv (77 rows). Views carry settings, never data: open that file"
        in text
    )


@pytest.mark.slow
def test_a_link_names_its_file_without_its_folder():
    app = quiet(open_page("data=0123456789abcdef&file=mine.csv"))
    assert "Open mine.csv: this link is about it." in text_of(app).replace("**", "")
    app = upload(open_page(page="data"), "some/folder\\mine.csv", b"label,p\n1,0.9\n0,0.2\n")
    assert app.query_params["file"] in ("mine.csv", ["mine.csv"])


@pytest.mark.slow
def test_identifiers_that_repeat_are_no_slices_and_one_click_makes_them_clusters():
    lines = [f"{i % 2},0.{2 + i % 7},u{i % 120},s{i % 3}" for i in range(600)]
    content = "\n".join(["label,p,author_id,site", *lines, ""]).encode()
    app = upload(open_page(page="data"), "authors.csv", content)
    assert app.open("slices").multiselect(key="calviz.groups.slice-columns").value == [
        "site",
        "score",
    ]
    # The same offer where the file is described, and next to the verdict, before the numbers, which says why.
    (label,) = [b.label for b in app.open("data").button if "rows of one" in b.label]
    labels = [b.label for b in app.open("overview").button]
    assert labels.index(label) < labels.index("Recalibrate")
    assert "may belong together: intervals may be too narrow" in text_of(app)
    press(app, label)
    assert "rows in 120 clusters" in text_of(quiet(app))
    assert "may belong together" not in text_of(app)
    assert "Intervals count rows of one author_id together." in text_of(app).replace("\\", "")
    assert "cluster" in text_of(quiet(app.open("data")))
    assert not [b for b in app.button if b.label.startswith("Count rows of one")]
    # One click goes back.
    press(app.open("overview"), "Count each row by itself")
    assert "rows in 120 clusters" not in text_of(quiet(app))
    assert [b.label for b in app.button if "rows of one" in b.label] == [label]


@pytest.mark.slow
def test_days_count_as_clusters_or_each_row_by_itself_and_back():
    rng = np.random.default_rng(0)
    day, score = np.arange(6_000) // 100, rng.uniform(0.1, 0.9, 6_000)
    hit = rng.random(6_000) < np.clip(score + rng.normal(0, 0.2, 60)[day], 0, 1)
    dates = np.datetime64("2024-01-01") + day
    lines = (f"{p:.4f},{y},{d}" for p, y, d in zip(score, hit.astype(int), dates, strict=True))
    app = upload(open_page(page="data"), "days.csv", "\n".join(["p,label,date", *lines]).encode())
    alone, together = "Count each row by itself", "Count rows of one day together"
    for offered, other in ((alone, together), (together, alone), (alone, together)):
        labels = [b.label for b in quiet(app.open("overview")).button]
        assert offered in labels
        assert other not in labels
        assert ("each day counts as one cluster" in text_of(app)) == (offered == alone)
        press(app, offered)


# ---- One selection of rows, whatever it was picked in: in the link, on every page, ended in one place


NAMES = st.text(alphabet="ab0 ~!:-.,é%&=+#日\n", min_size=1, max_size=12)
WHERES = st.lists(st.tuples(NAMES, NAMES), min_size=1, max_size=2).map(tuple)
RULES = st.one_of(
    st.builds(lambda a, b: Bins(min(a, b), max(a, b)), st.integers(0, 999), st.integers(0, 999)),
    st.builds(Predicted, NAMES),
    st.builds(Labelled, NAMES),
    st.builds(CellRule, NAMES, NAMES),
    st.builds(SliceRule, WHERES),
    st.builds(OtherRows.than, st.lists(WHERES, min_size=1, max_size=3)),
    st.builds(
        Covered,
        st.sampled_from(["kept", "referred"]),
        st.sampled_from(["confidence", "entropy", "margin"]),
        st.integers(0, 100) | st.floats(0, 100),
    ),
)


@pytest.mark.slow
@settings(max_examples=40)
@given(RULES)
def test_a_link_holds_the_rule_whatever_the_names(rule):
    assert decode_rule(rule.link()) == rule


@pytest.mark.parametrize(
    "link",
    ["", "bins", "bins~0", "bins~1-2-3", "cell~a", "slice~a", "covered~kept~luck~3", "what~1"],
)
def test_what_holds_no_rule_selects_nothing(link):
    assert decode_rule(link) is None


def _sample():
    probs = np.array([[0.7, 0.3], [0.9, 0.1], [0.4, 0.6], [0.2, 0.8], [0.55, 0.45]])
    p = calviz.Predictions(
        probs=probs,
        labels=np.array([0, 1, 1, 0, 0]),
        class_names=("cat", "dog"),
        groups={"place": ["n", "n", "s", "s", "n"]},
    )
    return Sample(p, reduction="top-label", bins=10)


@pytest.mark.parametrize(
    ("rule", "rows"),
    [
        (Bins(5, 6), [0, 2, 4]),  # scores 0.7, 0.9, 0.6, 0.8, 0.55; bins are closed on the right
        (Predicted("cat"), [0, 1, 4]),
        (Labelled("dog"), [1, 2]),
        (CellRule("dog", "cat"), [1]),
        (SliceRule((("place", "s"),)), [2, 3]),
        (OtherRows.than([(("place", "s"),)]), [0, 1, 4]),
        (OtherRows.than([(("place", "s"),), (("place", "n"),)]), []),
        (Covered("kept", "confidence", 40), [1, 3]),
        (Covered("referred", "margin", 40), [0, 2, 4]),
        (Covered("kept", "confidence", 67, ("cat",)), [0, 1]),  # of rows 0, 1 and 4
        (Covered("referred", "confidence", 67, ("cat",)), [4]),
        (Covered("kept", "confidence", 0.7), [0, 1, 3]),
        (Covered("referred", "entropy", 0.501), [0, 2, 4]),
    ],
)
def test_rows_by_hand(rule, rows):
    assert rows_of(rule, _sample()).tolist() == rows


def test_a_link_to_a_bin_that_is_not_there_says_so():
    app = quiet(open_page("data=breast_cancer&selected=bins~99", "reliability"))
    assert "The selection in the link cannot be shown: there are 15 bins." in text_of(app)
    assert app.title


@pytest.mark.slow
def test_a_selection_goes_from_page_to_page_and_is_cleared_in_one_place():
    app = quiet(open_page("data=digits&model=MLP&selected=cell~3~8", "classwise"))
    assert "'3' taken for '8', 46 rows" in text_of(app)
    for page in ("overview", "slices"):
        app.open(page)
        text = text_of(quiet(app))
        assert "'3' taken for '8', 46 rows" in text
        # Chosen by the outcome: neither a test nor an interval.
        assert "no sign of miscalibration" in text
        assert app.query_params["selected"] == "cell~3~8"
    # The rows of a class mean something in another split too; those of other data do not.
    setting(app, "split").set_value("all rows").run()
    assert app.query_params["selected"] == "cell~3~8"
    app.button(key="calviz.selected.chip").click().run()
    assert "selected" not in app.query_params
    assert "46 rows" not in text_of(quiet(app))


@pytest.mark.slow
def test_a_selection_ends_with_its_data_and_says_so():
    app = quiet(open_page("data=digits&selected=covered~kept~confidence~80", "risk_coverage"))
    assert "Kept at 80 % coverage, confidence ≥ " in text_of(app)
    next(s for s in app.selectbox if s.label == "Data set").set_value("breast_cancer").run()
    assert "ended: another data set is shown." in text_of(quiet(app))
    assert "selected" not in app.query_params
    setting(app, "split").set_value("all rows").run()
    assert "ended:" not in text_of(quiet(app))  # other rows


PINS = st.builds(
    Pin,
    model=st.one_of(st.just(""), NAMES),
    split=st.one_of(st.none(), st.just(""), NAMES),
    reduction=st.one_of(st.just(""), NAMES.map("class:{}".format)),
    bins=st.one_of(st.sampled_from(["", "cube_root"]), st.integers(1, 1_000).map(str)),
    scheme=st.sampled_from(["", "equal-mass", "sturges"]),
    prevalence=st.sampled_from(["", "0.03"]),
    map=st.sampled_from(["", "temperature", "platt+isotonic"]),
    cuts=st.one_of(st.just(""), NAMES.map("{}=30,50".format)),
    where=st.lists(st.tuples(NAMES, NAMES), max_size=2).map(
        lambda w: tuple(t for p in w for t in p)
    ),
)


@pytest.mark.slow
@settings(max_examples=40)
@given(PINS)
def test_a_link_holds_what_is_pinned_whatever_the_names(pin):
    assert decode_pin(pin.link()) == pin


@pytest.mark.slow
def test_a_pinned_state_stands_beside_the_present_one():
    app = quiet(open_page("data=digits&bins=10&recalibrated=Temperature scaling", "reliability"))
    assert "before and after are of split 'test' (4,000 rows), which no fit has seen" in text_of(
        app
    )
    app.button(key="calviz.pin").click().run()
    assert app.query_params["pinned"] == "b10~ftemperature"
    app.number_input(key="bins").set_value(15).run()
    chip = quiet(app).button(key="calviz.unpin")
    assert "10 equal-width bins, after temperature scaling" in plain(chip.help)
    # Accuracy is that of all rows, whatever the map; the ECE is that after it.
    app.open("overview")
    assert "pinned 79.1" in text_of(quiet(app))
    app.button(key="calviz.unpin").click().run()
    assert "pinned" not in app.query_params
    assert "pinned 79.1" not in text_of(quiet(app))
    # What is pinned there is what is seen there, without the map of another page.
    app.button(key="calviz.pin").click().run()
    assert quiet(app).query_params["pinned"] == "-"


@pytest.mark.slow
def test_two_classes_are_seen_at_a_prevalence():
    app = quiet(open_page("data=breast_cancer&prevalence=10&bins=10", "overview"))
    assert "View positive at 10 %" in map(plain, chips(app))
    text = text_of(app).replace("\xa0", " ")
    assert "285 rows at a prevalence of 10 %" in text
    test = load_sample("breast_cancer").first.split("test")
    there = calviz.evaluate(calviz.at_prevalence(test, 0.1), bins=10)
    assert there.verdict.beyond_headline.replace("\xa0", " ") in text
    app.button(key="calviz.pin").click().run()
    assert "p0.1" in app.query_params["pinned"]
    app.number_input(key="prevalence").set_value(None).run()
    assert "prevalence" not in app.query_params
    assert "prevalence 10 %" in plain(quiet(app).button(key="calviz.unpin").help)
    app.number_input(key="prevalence").set_value(100).run()
    assert "between 0 and 100 %" in text_of(quiet(app))
    assert "prevalence" not in app.query_params
    next(s for s in app.selectbox if s.label == "Data set").set_value("digits").run()
    assert not [box for box in quiet(app).number_input if box.key == "prevalence"]


@pytest.mark.slow
def test_a_prevalence_is_not_that_of_another_file():
    app = quiet(open_page("data=breast_cancer&prevalence=10", "data"))
    assert "View positive at 10 %" in map(plain, chips(app))
    app = quiet(upload(app, "mine.csv", b"label,score\n" + b"0,0.2\n1,0.7\n1,0.9\n0,0.4\n" * 20))
    assert "View positive" in map(plain, chips(app))
    assert app.number_input(key="prevalence").value is None
    assert "prevalence" not in app.query_params


def test_a_choice_that_no_browser_has_drawn_yet_begins_with_the_present_value():
    """As when the first run was broken off: a later one must not offer the first of the list, which the browser would take."""
    app = open_page("split=calibration&bins=9").run()
    split = setting(app, "split")
    assert (split.proto.set_value, split.value) == (True, "calibration")
    bins = app.number_input(key="bins").proto
    assert (bins.set_value, bins.value) == (True, 9)


def test_what_was_asked_for_outlives_a_run_that_another_click_breaks_off(monkeypatch):
    """A click asks for rows; before the bar has drawn them, another one asks for the view, and the run begins again."""
    app = open_page()
    bins = bar._bins
    clicks = iter(({"reduction": "class", "class": "cat"},))

    def broken_off(*given):
        for second in clicks:
            request_settings(second)
            st_app.rerun()
        return bins(*given)

    monkeypatch.setattr(bar, "_bins", broken_off)
    app.session_state["calviz.settings"] = {"slice": "condition", "level": "rotated"}
    text = text_of(quiet(app.run()))
    assert next(clicks, None) is None
    assert "Rows condition = rotated" in text
    assert "View class cat" in text
    # What was drawn is asked for no more.
    next(one for one in app.selectbox if one.label == "Slice by").set_value("no slice").run()
    assert "Rows all" in text_of(quiet(app))


def test_a_button_that_sets_a_setting_outlives_what_a_browser_still_holds_of_its_widget():
    """A browser sends the value of a list in a closed chip again with the next click: all rows were a slice again on the next page."""
    app = quiet(open_page())
    setting(app, "slice").set_value("condition").run()
    setting(app, "level").set_value("rotated").run()
    press(app, "All rows")
    assert "Rows all" in text_of(quiet(app))
    assert "slice" not in {one.key for one in app.selectbox}
    (own,) = (one for one in app.selectbox if one.label == "Slice by")
    assert own.value == "no slice"
    own.set_value("condition").run()
    assert "Rows condition" in text_of(quiet(app))


def test_a_link_whose_first_run_starts_another_one_sets_no_value_twice(monkeypatch):
    """As on a fresh server: the page runs again once what fits maps is imported."""
    again = iter((st_app.rerun,))
    monkeypatch.setattr(bar, "draw_notes", lambda: next(again, lambda: None)())
    monkeypatch.setattr(policies, "_shown_default_value_warning", False)
    said = []
    monkeypatch.setattr(
        policies, "_LOGGER", SimpleNamespace(warning=lambda *words: said.append(words))
    )
    app = quiet(open_page("split=calibration&bins=9"))
    assert (setting(app, "split").value, app.number_input(key="bins").value) == ("calibration", 9)
    assert next(again, None) is None
    assert said == []


@pytest.mark.slow
def test_rare_events_open_with_bins_of_equal_mass_and_there_is_a_way_back():
    app = quiet(upload(open_page(), "fraud.csv", rare_file()).open("overview"))
    assert "Bins 15, equal mass" in text_of(app)
    labels = [m.label for m in app.metric]
    assert "ECE (equal mass), points" in labels
    # Always saying no is right in over 99 %.
    assert "AUROC" in labels
    assert "Accuracy" not in labels
    # A ratio, as a gap of a hundredth of a point says nothing.
    assert "O/E ratio" in labels
    table = first_table(quiet(app.open("reliability")))
    assert table["scores"].is_unique
    assert not any(ends.count("0.0000") == 2 for ends in table["scores"])
    app = quiet(app.open("overview"))
    # The command line names the same place.
    judged = calviz.verdict(rare(3_000)).beyond_headline
    assert judged in text_of(app).replace("\u00a0", " ")
    assert "scheme" not in app.query_params
    setting(app, "scheme").set_value("equal-width").run()
    assert "Bins 15\n" in text_of(quiet(app)) + "\n"
    assert app.query_params["scheme"] in ("equal-width", ["equal-width"])
    assert "ECE, points" in [m.label for m in app.metric]
    # What was not chosen does not stay for the next file.
    other = quiet(upload(open_page(), "fraud.csv", rare_file()))
    other = quiet(upload(other, "good.csv", GOOD))
    assert setting(other, "scheme").value == "equal-width"


@pytest.mark.slow
def test_the_norm_is_found_beside_the_bins():
    app = quiet(open_page("data=breast_cancer"))
    (link,) = [b for b in app.get("page_link") if b.proto.label.startswith("Other norms:")]
    assert link.proto.page == "metrics"
