"""One selection of rows, whatever it was picked in: in the link, on every page, ended in one place."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calviz
from calviz.app.pinning import Pin, decode_pin
from calviz.app.selection import (
    Bins,
    CellRule,
    Covered,
    Labelled,
    Predicted,
    SliceRule,
    decode_rule,
    rows_of,
)
from calviz.sample.sample import Sample
from tests.app.pages import open_page, plain, quiet, text_of

NAMES = st.text(alphabet="ab0 ~!:-.,é%&=+#日\n", min_size=1, max_size=12)
RULES = st.one_of(
    st.builds(lambda a, b: Bins(min(a, b), max(a, b)), st.integers(0, 999), st.integers(0, 999)),
    st.builds(Predicted, NAMES),
    st.builds(Labelled, NAMES),
    st.builds(CellRule, NAMES, NAMES),
    st.builds(SliceRule, st.lists(st.tuples(NAMES, NAMES), min_size=1, max_size=2).map(tuple)),
    st.builds(
        Covered,
        st.sampled_from(["kept", "referred"]),
        st.sampled_from(["confidence", "entropy", "margin"]),
        st.integers(0, 100),
    ),
)


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
        (Covered("kept", "confidence", 40), [1, 3]),
        (Covered("referred", "margin", 40), [0, 2, 4]),
    ],
)
def test_rows_by_hand(rule, rows):
    assert rows_of(rule, _sample()).tolist() == rows


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
    app.selectbox(key="split").set_value("all rows").run()
    assert app.query_params["selected"] == "cell~3~8"
    app.button(key="calviz.selected.chip").click().run()
    assert "selected" not in app.query_params
    assert "46 rows" not in text_of(quiet(app))


@pytest.mark.slow
def test_a_selection_ends_with_its_data_and_says_so():
    app = quiet(open_page("data=digits&selected=covered~kept~confidence~80", "risk_coverage"))
    assert "Kept at 80 % coverage, confidence ≥ " in text_of(app)
    app.selectbox(key="calviz.pick").set_value("breast_cancer").run()
    assert "ended: another data set is shown." in text_of(quiet(app))
    assert "selected" not in app.query_params


PINS = st.builds(
    Pin,
    model=st.one_of(st.just(""), NAMES),
    split=st.one_of(st.none(), st.just(""), NAMES),
    reduction=st.one_of(st.just(""), NAMES.map("class:{}".format)),
    bins=st.one_of(st.just(""), st.integers(1, 1_000).map(str)),
    scheme=st.sampled_from(["", "equal-mass", "sturges"]),
    map=st.sampled_from(["", "temperature", "platt+isotonic"]),
    where=st.lists(st.tuples(NAMES, NAMES), max_size=2).map(
        lambda w: tuple(t for p in w for t in p)
    ),
)


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
