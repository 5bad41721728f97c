"""The settings of the bar and of a link: split, reduction, slice, bins."""

import re

import pytest

from tests.app.pages import first_table, open_page, press, quiet, text_of, unfold, upload


@pytest.mark.slow
def test_the_evaluation_split_is_the_one_whose_name_says_so():
    app = open_page()
    assert app.selectbox(key="split").value == "test"
    for page in ("recalibrate", "learning_curve"):
        app.open(page)
        assert "Split test" in text_of(quiet(app))
    app.open("overview")
    app.selectbox(key="split").set_value("all rows").run()
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
    assert app.selectbox(key="reduction").value == reduction


@pytest.mark.slow
def test_the_overview_says_what_the_other_view_of_two_classes_shows():
    entry = b"label,p\n" + b"1,0.6\n" * 300 + b"0,0.6\n" * 700 + b"1,0.1\n" * 2 + b"0,0.1\n" * 98
    app = quiet(upload(open_page(page="data"), "high.csv", entry).open("overview"))
    assert "this page looks at the positive class" in text_of(app)
    assert "Seen by the top label, the predictions are overconfident by " in text_of(app)
    app.button(key="calviz.other_view").click().run()
    assert quiet(app).selectbox(key="reduction").value == "top-label"
    assert "Seen by the positive class, the forecasts are " in text_of(app)
    quiet(app.open("reliability"))
    assert "this page looks at the top label" in text_of(app)
    app.button(key="calviz.other_view").click().run()
    assert "this page looks at the positive class" in text_of(quiet(app))
    assert "reduction" not in app.query_params or app.query_params["reduction"] == "positive"


@pytest.mark.slow
def test_another_data_set_brings_its_default_where_nothing_was_chosen():
    app = open_page("data=digits")
    pick = app.selectbox(key="calviz.pick")
    assert app.selectbox(key="reduction").value == "top-label"
    pick.set_value("breast_cancer").run()
    assert quiet(app).selectbox(key="reduction").value == "positive"
    app.selectbox(key="calviz.pick").set_value("digits").run()
    assert quiet(app).selectbox(key="reduction").value == "top-label"
    # What was chosen stays, where the data have it.
    app.selectbox(key="reduction").set_value("top-r").run()
    app.selectbox(key="calviz.pick").set_value("simulated_100_classes").run()
    assert quiet(app).selectbox(key="reduction").value == "top-r"


@pytest.mark.slow
@pytest.mark.parametrize("reduction", ["within-top-r", "class"])
def test_reductions(reduction):
    app = open_page(page="reliability")
    app.selectbox(key="reduction").set_value(reduction).run()
    quiet(app)
    if reduction == "class":
        app.selectbox(key="class").set_value("7").run()
        assert "View class 7" in text_of(quiet(app))
    else:
        app.number_input(key="r").set_value(3).run()
        assert "within-top-3" in text_of(quiet(app))


@pytest.mark.slow
@pytest.mark.parametrize("reduction", ["top-r", "class"])
def test_the_cumulative_plot_follows_the_reduction(reduction):
    app = open_page(page="cumulative")
    app.selectbox(key="reduction").set_value(reduction).run()
    words = text_of(quiet(app))
    assert "KS error" in words
    assert "A calibrated model stays within" in words
    assert len(app.get("plotly_chart")) == 5
    for title in ("Isotonic curve (CORP)", "What it costs those who decide"):
        assert len(quiet(unfold(app, title)).get("plotly_chart")) == 3


@pytest.mark.slow
def test_a_slice_looks_at_some_rows():
    app = open_page()
    app.selectbox(key="slice").set_value("condition").run()
    app.selectbox(key="level").set_value("rotated").run()
    assert "Rows condition = rotated" in text_of(quiet(app))
    app.selectbox(key="calviz.pick").set_value("breast_cancer").run()
    # The other data have no such column.
    assert "condition" not in text_of(quiet(app))


def slice_of(app, *values):
    for key, value in zip(("slice", "level", "slice-2", "level-2"), values, strict=True):
        app.selectbox(key=key).set_value(value).run()


@pytest.mark.slow
def test_a_slice_of_two_columns_is_said_on_every_page():
    lines = [f"{i % 2},0.{3 + i % 5},{'xy'[i % 3 > 0]},{'uv'[i % 7 > 2]}" for i in range(210)]
    content = "\n".join(["label,p,site,shift", *lines, ""]).encode()
    app = upload(open_page(page="data"), "groups.csv", content)
    app.open("slices")
    slice_of(app, "site", "y", "shift", "v")
    assert "80 rows" in text_of(quiet(app))
    for page in ("overview", "recalibrate", "report"):
        app.open(page)
        assert "Rows site = y, shift = v" in text_of(quiet(app))
    app.open("slices")
    assert "site = y, shift = v" in text_of(app)
    press(app, "Show all rows")
    assert app.selectbox(key="slice").value == "no slice"
    assert "The other pages look at" not in text_of(quiet(app))


def test_settings_that_do_not_fit_the_data_are_left_out():
    app = quiet(open_page("model=nobody&split=nowhere&bins=0&reduction=class&class=none&slice=x"))
    assert app.selectbox(key="model").value == "MLP"


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "name"), [("equal-mass", " (equal mass)"), ("", "")])
def test_numbers_are_of_the_bins_that_are_drawn_on_every_page(scheme, name):
    def value(words):
        return re.search(rf"\*\*MCE{re.escape(name)} ([\d.]+) points", words)[1]

    app = quiet(open_page(f"scheme={scheme}" if scheme else "", "reliability"))
    drawn = re.search(r"\*\*ECE[^*]*? ([\d.]+) points", text_of(app))[1]
    largest = value(text_of(app))
    app.open("metrics")
    table = first_table(quiet(app)).set_index("metric")["value"].to_dict()
    assert 100 * table[f"ECE{name} (points)"] == pytest.approx(float(drawn), abs=0.051)
    assert 100 * table[f"MCE{name} (points)"] == pytest.approx(float(largest), abs=0.051)
    app.open("overview")
    cards = {m.label: m.value for m in quiet(app).metric}
    assert next(v for k, v in cards.items() if k.startswith("ECE")) == drawn
