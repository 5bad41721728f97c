"""The tabs of Report."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from urllib.parse import unquote

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from calviz.app import exporting, recalibrate_comparison, screen
from calviz.app.tables_and_cards import preview, rows_table, sortable
from calviz.core.entry_specs import Interval, MetricResult, NoiseFloor
from calviz.core.events import Reduction
from calviz.core.predictions import Predictions
from calviz.data import ReadingOptions, read
from calviz.figures import hundred_squares as drawing
from calviz.figures.marks import Sheet
from calviz.figures.style import PALETTES
from calviz.report.content import SECTIONS
from calviz.report.document import bind
from tests.app.pages import PATIENCE, open_page, quiet, unfold, upload, whole_app

# ---- The page Report and the choices about pictures, without a browser


def _finished(app):
    """Wait for the latest report, as a browser would, and look again."""
    *_, job = app.session_state["calviz.jobs"][exporting.PLACE].values()
    job.wait(PATIENCE)
    assert job.state == "finished", job.error
    return quiet(app.run())


@pytest.mark.slow
def test_a_report_of_few_rows_is_there_at_once_and_taken_home():
    app = _finished(open_page("data=breast_cancer", "report"))
    app.pills(key="sections").set_value(["verdict", "provenance"]).run()
    app.text_input(key="calviz.report.title").set_value("For <b>the file</b>").run()
    app = _finished(app)
    labels = [
        json.loads(b.proto.label) if b.proto.label.startswith('"') else b.proto.label
        for b in app.get("download_button")
    ]
    assert [label.split(" ")[0] for label in labels] == ["HTML", "Markdown", "Tables"]
    (frame,) = app.get("iframe")
    assert "For &lt;b&gt;the file&lt;/b&gt;" in frame.proto.srcdoc
    assert 'id="provenance"' in frame.proto.srcdoc
    app.pills(key="sections").set_value(["verdict", "findings"]).run()
    page = _finished(app).get("iframe")[0].proto.srcdoc
    assert 'id="provenance"' not in page
    assert 'id="findings"' in page


@pytest.mark.slow
def test_a_report_of_many_rows_is_made_on_demand(monkeypatch):
    monkeypatch.setattr(recalibrate_comparison, "AT_ONCE", 0)
    app = quiet(open_page("data=breast_cancer", "report"))
    app.pills(key="sections").set_value(["verdict"]).run()
    assert not app.get("download_button")
    app.button(key="calviz.report.make").click().run()
    app = _finished(app)
    assert app.get("iframe")
    app.number_input(key="bins").set_value(7).run()
    assert not app.get("iframe")
    assert app.button(key="calviz.report.make")


@pytest.mark.slow
def test_without_sections_there_is_nothing_to_make():
    app = open_page("data=breast_cancer", "report")
    app.pills(key="sections").set_value([]).run()
    assert [i.value for i in app.info] == ["Choose at least one section."]


@pytest.mark.slow
@pytest.mark.parametrize("wanted", [True, False])
def test_a_caption_stands_above_figures_where_it_is_wanted(wanted):
    app = open_page("caption=true" if wanted else "", "cumulative")
    unfold(app, "Three more panels, isotonic curve (CORP), what it costs those who decide")
    charts = [json.loads(c.proto.spec) for c in app.get("plotly_chart")]
    charts += [
        json.loads(unfold(app, title).get("plotly_chart")[-1].proto.spec)
        for title in ("Isotonic curve (CORP)", "What it costs those who decide")
    ]
    assert len(charts) == 7
    for chart in charts:
        texts = [a["text"] for a in chart["layout"].get("annotations", [])]
        assert any("digest " in text for text in texts) is wanted


@pytest.mark.slow
def test_figures_are_saved_as_what_is_chosen():
    app = open_page("picture=SVG", "cumulative")
    for chart in app.get("plotly_chart"):
        assert json.loads(chart.proto.config)["toImageButtonOptions"]["format"] == "svg"


@pytest.mark.slow
def test_a_comparison_of_the_same_file_is_offered():
    from types import SimpleNamespace

    import calviz
    from calviz.data.reading import load_sample

    app = open_page("data=breast_cancer", "report")
    chosen = app.session_state["calviz.chosen"]
    p = load_sample("breast_cancer").models[chosen.model]
    comparison = calviz.compare(
        p,
        ["temperature"],
        fit_split="calibration",
        eval_split="test",
        metrics=["nll"],
        resamples=20,
    )
    content, model, _, *part = chosen.rows_key
    for key, offered in (((content, model, "None", *part), True), (("other", model), False)):
        job = SimpleNamespace(
            key=key, running=False, result=SimpleNamespace(comparison=comparison), stop=lambda: None
        )
        app.session_state["calviz.jobs"] = {recalibrate_comparison.PLACE: {key: job}}
        quiet(app.run())
        assert ("Recalibration" in app.pills(key="sections").options) is offered


@pytest.mark.slow
@pytest.mark.parametrize(("data", "expected"), [("digits", False), ("breast_cancer", True)])
def test_decisions_are_offered_where_a_class_is_decided_on_and_grades_where_there_are_some(
    data, expected
):
    options = quiet(open_page(f"data={data}", page="report")).pills(key="sections").options
    assert any("decisions" in title for title in options) is expected
    assert not any("Grades" in title for title in options)


@pytest.mark.slow
def test_a_column_of_grades_is_chosen_where_the_preset_needs_one_and_none_is_recognised():
    rows = "".join(
        f"{j % 7 < 3:d},{j % 10 / 10},{'good fair poor'.split()[j % 3]}\n" for j in range(60)
    )
    app = upload(open_page(), "loans.csv", f"label,p,word\n{rows}".encode())
    app.query_params["preset"] = "credit"
    app = quiet(app.open("report"))
    assert not app.info
    app.selectbox(key="grades").set_value("word").run()
    app = _finished(app)
    assert app.selectbox(key="grades").value == "word"
    *_, job = app.session_state["calviz.jobs"][exporting.PLACE].values()
    assert "## Grades" in bind([job.result]).markdown()


@pytest.mark.slow
def test_presets_and_the_links_to_them():
    sections = {}
    for name in ("default", "one-page", "clinical", "all"):
        app = open_page(f"data=digits&preset={name}", "report")
        assert app.session_state["preset"] == name
        sections[name] = set(app.session_state["sections"])
    assert sections["one-page"] == {"verdict", "fix", "diagram", "where-to-look", "threshold"}
    assert sections["default"] < sections["all"] | {"diagram"}
    # A link holds the titles of the sections: no two have the same, and none that another had.
    titles = [section.title for section in SECTIONS]
    earlier = [section.earlier for section in SECTIONS if section.earlier]
    assert len({*titles, *earlier}) == len(titles) + len(earlier)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("preset", "named", "keys"),
    [
        ("default", ["Slices", "Reliability", "Verdict"], {"slices", "reliability", "verdict"}),
        ("one-page", ["Groups", "Verdict"], {"slices", "verdict"}),
    ],
)
def test_links_hold_titles_of_now_and_of_earlier_versions(preset, named, keys):
    app = whole_app()
    app.query_params.update({"data": "digits", "preset": preset, "sections": named})
    app = quiet(app.open("report"))
    assert app.session_state["preset"] == preset
    assert set(app.session_state["sections"]) == keys


# ---- Numbers as pictures, the names of pictures, and where a page leads


def places(result):
    """Shares of the width: the value, the ends of the interval, and what is grey."""
    drawn = drawing.svg(drawing.Bullet.of(result), PALETTES["light"])
    blue, grey = PALETTES["light"].blue, PALETTES["light"].neutral

    def marks(pattern, colour):
        matches = re.findall(rf'd="{pattern}"[^>]* stroke="{colour}"', drawn)
        return [float(m) if isinstance(m, str) else tuple(map(float, m)) for m in matches]

    (value,), (ends,) = marks(r"M([\d.]+) 1V21", blue), marks(r"M([\d.]+) 11H([\d.]+)", blue)
    range_ = marks(r"M([\d.]+) 3V19H([\d.]+)V3Z", grey)
    return value, ends, marks(r"M([\d.]+) 3V19", grey), range_


@pytest.mark.parametrize("scale", [1e-4, 0.1, 1.0])
def test_a_bullet_stands_where_its_numbers_are(scale):
    def at(x):
        return x * scale

    error = MetricResult(
        "ece", at(0.6), Interval(at(0.5), at(0.8)), NoiseFloor(at(0.1), at(0.2), 0.001)
    )
    value, (low, high), mean, ((left, right),) = places(error)
    # An error's grey begins at 0; lengths are in proportion.
    assert (left, mean) == (0, [])
    unit = right / 0.2
    assert value == pytest.approx(0.6 * unit, abs=0.05)
    assert (low, high) == (pytest.approx(0.5 * unit, abs=0.05), pytest.approx(0.8 * unit, abs=0.05))
    assert high < 200
    two_sided = MetricResult(
        "mcs", at(0.6), Interval(at(0.5), at(0.8)), NoiseFloor(0.0, at(0.2), 0.001)
    )
    value, (low, high), (zero,), none = places(two_sided)
    assert none == []
    assert (value - zero) / (high - low) == pytest.approx(0.6 / 0.3, rel=0.01)


def test_a_column_of_bullets_has_one_scale_with_zero_on_it():
    given = [drawing.Bullet(2.0, (1.0, 3.0), (-1.0, 1.0)), None, drawing.Bullet(-4.0)]
    palette = PALETTES["light"]
    first, none, second = drawing.column(given, palette)
    assert none is None
    assert not set("#<> ") & set(first)
    at = []
    for address in (first, second):
        cell = unquote(address)
        upright = [
            (float(x), colour)
            for x, colour in re.findall(r"d='M([\d.]+) \dV\d+' stroke='(#\w+)'", cell)
        ]
        zero, value = (
            next(x for x, colour in upright if colour == c) for c in (palette.muted, palette.blue)
        )
        at.append((zero, value))
    assert at[0][0] == at[1][0]
    # Two to the right of 0, and four to its left.
    assert at[0][1] - at[0][0] == pytest.approx((at[1][0] - at[1][1]) / 2, abs=0.11)


@pytest.mark.parametrize("page", [None, 358])
def test_a_picture_is_not_wider_than_its_column(page, monkeypatch):
    monkeypatch.setattr(screen, "page_width", lambda: page)
    width = screen.picture_width()
    (cell,) = screen.picture_column([drawing.Bullet(2.0, (1.0, 3.0))])
    wide, tall = map(int, re.findall(r"(?:width|height)='(\d+)'", unquote(cell))[:2])
    # Streamlit draws it 29 pixels high: 35 less 3 above and 3 below.
    assert width - 2 <= wide * 29 / tall <= width


def test_a_bullet_says_in_words_what_it_shows():
    error = MetricResult("ece", 0.06, Interval(0.05, 0.08), NoiseFloor(0.01, 0.02, 0.001))
    said = drawing.words(error, "above noise: <b>")
    assert said == "ECE 6.00; 95\u00a0% interval 5.00\u00a0to\u00a08.00; above noise: <b>."
    assert PALETTES["dark"].blue in drawing.svg(drawing.Bullet.of(error), PALETTES["dark"])


def test_a_wide_page_reserves_no_line_that_its_legend_does_not_need():
    names = [f"A series with a name, {i}" for i in range(4)]
    sheet = Sheet(PALETTES["light"])

    def height(width):
        traces = [{"type": "scatter", "x": [0], "y": [0], "name": name} for name in names]
        drawing = go.Figure(sheet.picture(traces, inner=300, margins=(60, 20, 20, 50)))
        return screen.with_legend_for(drawing, width).layout.height

    assert height(screen.WIDE) < height(screen.USUAL)


# ---- Tables that are read as texts and sorted as numbers


def test_every_row_has_its_own_text_and_its_number():
    # Equal values with other texts (of other units), texts with braces, numbers that are not there.
    value = [0.5, 0.5, 0.25, np.nan, np.nan]
    texts = pd.DataFrame(
        {"metric": list("abcde"), "value": ["50.0 %", "0.500", "{0.25}", "n/a", "n/a"]}
    )
    styled = sortable(texts, {"value": value})
    np.testing.assert_array_equal(styled.data["value"], value)
    shown = [row[-1]["display_value"] for row in styled._translate(False, False)["body"]]
    assert shown == texts["value"].tolist()


def test_the_first_rows_show_the_columns_of_a_file_under_its_own_names():
    clusters, days = np.array(["ann", "bob", "ann"]), np.array(["2026-01-01"] * 3, "datetime64[D]")
    p = Predictions(
        probs=np.array([0.2, 0.7, 0.9]), labels=[0, 1, 1], clusters=clusters, times=days
    )
    assert list(preview(p))[-2:] == ["time", "cluster"]
    named = replace(
        p, column_names={"clusters": "user", "times": "seen"}, groups={"user": clusters}
    )
    assert list(preview(named))[-2:] == ["seen", "user"]
    assert preview(named)["user"].tolist() == clusters.tolist()


def test_rows_are_shown_under_their_numbers_of_the_file():
    text = b"label,p,split\n1,0.9,a\n,0.5,b\n0,0.2,b\n1,0.6,b\n"
    data = read(text, name="x.csv", options=ReadingOptions(repair=("drop-missing",))).first
    assert preview(data)["row"].tolist() == [1, 3, 4]
    of_class = Reduction("positive")
    assert rows_table(data, np.array([2, 1]), of_class, None)["row"].tolist() == [4, 3]
    judged = data.split("b")
    assert rows_table(judged, np.array([1]), of_class, np.array([1, 2]))["row"].tolist() == [4]


def test_a_month_stays_a_month_in_a_table_of_rows():
    rows = b"".join(
        f"{j % 2},{(j % 9 + 1) / 10},2023-{j % 12 + 1:02d}\n".encode() for j in range(48)
    )
    data = read(b"label,p,month\n" + rows, name="m.csv").first
    assert preview(data)["month"].tolist()[:2] == ["2023-01", "2023-02"]
    days = read(b"label,p,day\n" + rows.replace(b"\n", b"-01\n"), name="d.csv").first
    assert preview(days)["day"].tolist()[:2] == ["2023-01-01", "2023-02-01"]


@pytest.mark.slow
def test_shares_of_many_classes_differ():
    rng = np.random.default_rng(0)
    header = "label," + ",".join(f"p_{k}" for k in range(300))
    rows = [f"{rng.integers(300)}," + ",".join(["0.0033"] * 299 + ["0.0133"]) for _ in range(900)]
    app = upload(open_page(page="data"), "many.csv", "\n".join([header, *rows]).encode())
    config = next(
        t.proto.columns for t in quiet(app).dataframe if {"rows", "share"} <= set(t.value.columns)
    )
    # A class has 0.3 % of the rows: two digits of that are seen.
    assert "%.2f" in config
