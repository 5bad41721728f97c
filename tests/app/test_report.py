"""The page Report and the choices about pictures, without a browser."""

from __future__ import annotations

import json

import pytest

from calviz.app import exporting, recalibrate_comparison
from calviz.report.content import SECTIONS
from tests.app.pages import PATIENCE, open_page, quiet, text_of, unfold

# The quick lane opens every page once (test_every_page.py); what these tests click takes long.
pytestmark = pytest.mark.slow


def _finished(app):
    """Wait for the job, as a browser would, and look again."""
    job = next(j for j in app.session_state["calviz.jobs"][exporting.PLACE].values())
    job.wait(PATIENCE)
    assert job.state == "finished", job.error
    return quiet(app.run())


def test_a_report_is_made_on_demand_and_taken_home():
    app = open_page("data=breast_cancer", "report")
    app.pills(key="sections").set_value(["verdict", "provenance"]).run()
    app.text_input(key="calviz.report.title").set_value("For <b>the file</b>").run()
    assert not app.get("download_button")
    app.button(key="calviz.report.make").click().run()
    app = _finished(app)
    labels = [
        json.loads(b.proto.label) if b.proto.label.startswith('"') else b.proto.label
        for b in app.get("download_button")
    ]
    assert [label.split(" ")[0] for label in labels] == ["HTML", "Markdown", "Tables"]
    (frame,) = app.get("iframe")
    assert "For &lt;b&gt;the file&lt;/b&gt;" in frame.proto.srcdoc
    assert 'id="provenance"' in frame.proto.srcdoc
    # Fewer sections are there at once, more have to be made.
    app.pills(key="sections").set_value(["verdict"]).run()
    assert 'id="provenance"' not in app.get("iframe")[0].proto.srcdoc
    app.pills(key="sections").set_value(["verdict", "findings"]).run()
    assert not app.get("iframe")
    assert "does not hold all of these sections" in text_of(app)


def test_without_sections_there_is_nothing_to_make():
    app = open_page("data=breast_cancer", "report")
    app.pills(key="sections").set_value([]).run()
    assert [i.value for i in app.info] == ["Choose at least one section."]


def test_other_settings_need_another_report():
    app = open_page("data=breast_cancer", "report")
    app.pills(key="sections").set_value(["verdict"]).run()
    app.button(key="calviz.report.make").click().run()
    app = _finished(app)
    assert app.get("iframe")
    app.number_input(key="bins").set_value(7).run()
    assert not app.get("iframe")
    assert app.button(key="calviz.report.make")


@pytest.mark.parametrize("wanted", [True, False])
def test_a_caption_stands_above_figures_where_it_is_wanted(wanted):
    app = open_page("caption=true" if wanted else "", "cumulative")
    charts = [json.loads(c.proto.spec) for c in app.get("plotly_chart")]
    charts += [
        json.loads(unfold(app, title).get("plotly_chart")[-1].proto.spec)
        for title in ("Isotonic curve (CORP)", "What it costs those who decide")
    ]
    assert len(charts) == 7
    for chart in charts:
        texts = [a["text"] for a in chart["layout"].get("annotations", [])]
        assert any("digest " in text for text in texts) is wanted


def test_figures_are_saved_as_what_is_chosen():
    app = open_page("picture=SVG", "cumulative")
    for chart in app.get("plotly_chart"):
        assert json.loads(chart.proto.config)["toImageButtonOptions"]["format"] == "svg"


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


@pytest.mark.parametrize(("data", "expected"), [("digits", False), ("breast_cancer", True)])
def test_decisions_are_offered_where_a_class_is_decided_on_and_grades_where_there_are_some(
    data, expected
):
    options = quiet(open_page(f"data={data}", page="report")).pills(key="sections").options
    assert any("Decisions" in title for title in options) is expected
    assert not any("grades" in title for title in options)


@pytest.mark.slow
def test_presets_and_the_links_to_them():
    sections = {}
    for name in ("default", "one-page", "clinical", "all"):
        app = open_page(f"data=digits&preset={name}", "report")
        assert app.session_state["preset"] == name
        sections[name] = set(app.session_state["sections"])
    assert sections["one-page"] == {"verdict", "fix", "diagram", "worst-rows"}
    assert sections["default"] < sections["all"] | {"diagram"}
    # A link holds the titles of the sections: no two have the same.
    titles = [section.title for section in SECTIONS]
    assert len(set(titles)) == len(titles)
