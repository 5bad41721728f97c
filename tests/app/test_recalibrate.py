"""The tabs of Recalibrate."""

import io
import json
import re
import shlex
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from calviz.app import recalibrate_comparison, recalibrate_results, screen, session
from calviz.core.entry_specs import METRICS, RECALIBRATORS
from calviz.data import read
from calviz.data.from_objects import from_arrays
from calviz.figures.reliability import Reliability
from calviz.recalibrators.base import load_map
from calviz.sample.sample import Sample
from calviz.verdicts.analysis import first_metrics
from tests.app.pages import (
    PATIENCE,
    helps_of,
    open_page,
    plain,
    press,
    quiet,
    text_of,
    unfold,
    upload,
    wait,
)
from tests.inputs.command_line import run
from tests.inputs.simulated import simulate, softmax

# ---- The page Recalibrate, without a browser: choose, compare, take home


ROOT = Path(__file__).resolve().parents[2]
LABELS = {spec.key: spec.label for spec in RECALIBRATORS}


def overconfident(n=600, splits=True):
    """Scores of T = 1 of a model whose true temperature is 2."""
    z, y = simulate(n, 3, 2)
    text = softmax(z)
    lines = ["split,label,p_a,p_b,p_c" if splits else "label,p_a,p_b,p_c"]
    for i, (row, label) in enumerate(zip(text, y, strict=True)):
        start = f"{('calibration', 'test')[i % 2]}," if splits else ""
        lines.append(start + "abc"[label] + "".join(f",{v:.12f}" for v in row))
    return "\n".join(lines).encode()


def opened(content, name="net.csv", **query):
    app = upload(open_page(page="data"), name, content)
    for key, value in query.items():
        app.query_params[key] = value
    return app.open("recalibrate")


def compared(app):
    app.button(key="calviz.compare").click().run()
    job = next(reversed(app.session_state["calviz.jobs"]["recalibrate"].values()))
    job.wait(PATIENCE)
    quiet(app.run())
    return job.result


def test_a_small_file_is_compared_without_a_click(monkeypatch):
    started = opened(overconfident()).session_state["calviz.jobs"]["recalibrate"]
    next(iter(started.values())).stop()
    monkeypatch.setattr(session, "AT_ONCE", 100)
    app = opened(overconfident())
    assert not app.session_state["calviz.jobs"]["recalibrate"]
    assert not app.button(key="calviz.compare").disabled
    # Until then the page says what a click does, and shows what the simplest map does.
    assert re.search(r"Fits \d+ methods, .* advises one\. It can be stopped\.", text_of(app))
    assert "would take the ECE of the " in text_of(app)
    assert any("before" in table.value for table in app.dataframe)


@pytest.mark.slow
def test_from_a_file_to_a_choice_and_a_calibrated_file():
    app = opened(overconfident())
    assert "fitted on 300 rows (split 'calibration') and judged on 300 rows" in text_of(app)
    app.multiselect(key="methods").set_value(["temperature", "ets"]).run()
    assert app.button(key="calviz.compare").label == "Compare methods"
    comparison_job = compared(app)
    assert list(comparison_job.comparison.methods) == ["identity", "ets", "temperature"]
    text = text_of(app)
    advised = "ets"
    assert f"Advice: {LABELS[advised]}" in text
    reasons = comparison_job.comparison.advice.reasons
    assert reasons[0].startswith("The verdict finds miscalibration, and Ensemble temperature")
    assert reasons[0][:20] in text
    assert all(f"- {reason[:20]}" in text for reason in reasons[1:])
    table = app.table[0].value
    assert str(table.index[0]) == "Uncalibrated"
    assert len(table) == 3
    assert app.selectbox(key="method").value == advised

    # What is chosen stays over a visit to another page, and so do the results.
    app.selectbox(key="method").set_value("temperature").run()
    app.open("overview")
    app.open("recalibrate")
    assert app.multiselect(key="methods").value == ["temperature", "ets"]
    assert len(app.table[0].value) == 3
    # It is one choice for all pages that fit.
    app.open("learning_curve")
    assert app.multiselect(key="methods").value == ["temperature", "ets"]
    app.open("overview")
    app.open("recalibrate")
    assert app.multiselect(key="methods").value == ["temperature", "ets"]

    app.selectbox(key="method").set_value("temperature").run()
    (command,) = [c.value for c in app.code if c.value.startswith("python -m calviz apply")]
    assert command.endswith("--map net-temperature-map.json --out calibrated.csv")
    wanted, files = app.session_state["calviz.recalibrate.ready"]
    assert wanted[-2:] == ("temperature", ".csv")
    # The file reads back, and holds what the map of the JSON and the program make of the rows.
    written = read(files.table, name="calibrated.csv").first
    _rows_without_labels_can_have_the_map(app)
    before = read(overconfident(), name="net.csv").first
    assert written.split_names == ("calibration", "test")
    mapped = load_map(json.loads(files.map))
    assert "fitted_where" not in json.loads(files.map)
    assert mapped.temperature_ == pytest.approx(2, rel=0.2)
    np.testing.assert_allclose(written.probs, mapped.transform(before.probs), atol=1e-9)
    program = {}
    exec(files.snippet, program)
    assert files.snippet.split("\n")[0].endswith(f"in this order: {[*before.class_names]!r}")
    np.testing.assert_allclose(program["recalibrate"](before.probs), written.probs, atol=1e-6)


def _rows_without_labels_can_have_the_map(app):
    """The maps that were taken are on offer for a file without labels; the file that is loaded stays."""
    rows = "\n".join(["p_b,p_c,p_a", *["0.25,0.125,0.625", "0.1,0.7,0.2"] * 15])
    upload(app, "new.csv", rows.encode())
    assert [plain(title.value) for title in app.title] == ["No labels found in new.csv"]
    (maps,) = (box for box in app.selectbox if box.label == "Map")
    assert maps.options == [f"{LABELS[key]}, fitted on net.csv" for key in ("temperature", "ets")]
    assert "**30 rows calibrated, 30 changed.** The mean confidence goes from 66.25 %" in text_of(
        app
    )
    next(b for b in app.button if plain(b.label) == "Back to net.csv").click().run()
    assert "Recognised:" in text_of(app)


@pytest.mark.slow
def test_the_command_for_new_predictions_reads_them_as_this_file_was_read(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    score = rng.uniform(0.05, 0.95, (400, 2)).round(4)
    label = rng.random(400) < score.mean(axis=1)
    rows = [f"{int(y)},{a},{b}" for y, (a, b) in zip(label, score, strict=True)]
    rows[3] = rows[3].rpartition(",")[0] + ","
    joined = "\n".join(["left,old,new", *rows[:200], "left,old,new", *rows[200:]])
    app = upload(open_page(page="data"), "two.csv", joined.encode())
    # What is asked whatever the answers is asked at once, the missing value of a model with it.
    radio = next(r for r in app.radio if r.options[0].startswith("2 models"))
    assert "1 of 400" in radio.options[0]
    app = press(radio.set_value(radio.options[0]).run(), "Read it with these answers")
    app = quiet(app.open("recalibrate"))
    app.multiselect(key="methods").set_value(["temperature"]).run()
    compared(app)
    (command,) = [c.value for c in app.code if c.value.startswith("python -m calviz apply")]
    # The row that lacks the score of the other model only is calibrated, too.
    assert "without a calibrated score" not in helps_of(app)
    assert "Of these, 1 row with scores of this model is calibrated." in helps_of(app)
    monkeypatch.chdir(tmp_path)
    Path("two-old-temperature-map.json").write_bytes(
        app.session_state["calviz.recalibrate.ready"][1].map
    )
    unlabelled = "\n".join(["old,new", *(row.partition(",")[2] for row in rows)])
    alone = "\n".join(["old", *(row.split(",")[1] for row in rows)])
    for content in (unlabelled, alone, joined):  # new rows, without the other model, the very file
        Path("NEW_FILE").write_text(content)
        Path("calibrated.csv").unlink(missing_ok=True)
        done = run(*shlex.split(command)[3:])
        assert done.exit_code == 0, (command, done.stderr)
        # The map needs no score of the other model, which one row lacks.
        assert len(pd.read_csv("calibrated.csv")) == 400


def test_with_times_the_earlier_rows_can_fit_and_the_page_says_which():
    lines = overconfident(splits=False).decode().splitlines()
    days = [f"2025-{1 + i // 100:02d}-{1 + i % 28:02d}" for i in range(len(lines) - 1)]
    content = "\n".join(f"{d},{line}" for d, line in zip(["date", *days], lines, strict=True))
    app = opened(content.encode(), division="the earlier rows")
    assert re.search(
        r"\(the earlier rows, 2025-01-01 to 2025-\d\d-\d\d\) and judged on [\d,]+ rows \(the later rows, 2025-\d\d-\d\d to 2025-06-28\)",
        plain(text_of(app)),
    )
    without = opened(overconfident(splits=False))
    assert "the earlier rows" not in without.segmented_control(key="division").options


@pytest.mark.slow
@pytest.mark.parametrize("way", ["split", "folds"])
def test_of_a_slice_only_its_rows_are_calibrated_and_the_file_has_all(tmp_path, way):
    lines = overconfident().decode().splitlines()
    regions = ["region", *("north", "north", "south") * 200]
    content = "\n".join(f"{r},{line}" for r, line in zip(regions, lines, strict=True)).encode()
    app = opened(content)
    app.selectbox(key="slice").set_value("region").run()
    app.selectbox(key="level").set_value("south").run()
    app.segmented_control(key="division").set_value(way).run()
    app.multiselect(key="methods").set_value(["temperature"]).run()
    compared(app)
    app.selectbox(key="method").set_value("temperature").run()
    files = app.session_state["calviz.recalibrate.ready"][1]
    text = text_of(app)
    judged = 100
    said = f"Map for region = south; other rows stay as they are. Numbers are of the {judged} judged rows of this slice."
    assert said in text
    assert "200 rows changed where region = south; 400 other rows unchanged." in text
    (command,) = [c.value for c in app.code if c.value.startswith("python -m calviz apply")]
    assert "-region-south-" in command  # maps of two slices have two names
    record = json.loads(files.map)
    assert (record["method"], record["fitted_where"]) == ("slice+temperature", "region = south")
    written = pd.read_csv(io.BytesIO(files.table))
    before = pd.read_csv(io.BytesIO(content))
    south, columns = before["region"] == "south", ["p_a", "p_b", "p_c"]
    assert len(written) == 600
    np.testing.assert_array_equal(written[columns][~south], before[columns][~south])
    assert (written[columns] != before[columns]).any(axis=1)[south].all()
    program = {}
    exec(files.snippet, program)
    mapped = program["recalibrate"](before[columns], {"region": before["region"]})
    # The command writes the same file cell by cell; out of fold, each row has a map of its own.
    (tmp_path / "net.csv").write_bytes(content)
    (tmp_path / "map.json").write_bytes(files.map)
    paths = [str(tmp_path / name) for name in ("net.csv", "map.json", "out.csv")]
    done = run("apply", paths[0], "--map", paths[1], "--out", paths[2])
    assert done.exit_code == 0, done.stderr
    applied = pd.read_csv(paths[2])
    np.testing.assert_allclose(mapped, applied[columns], atol=1e-6)
    if way == "split":
        pd.testing.assert_frame_equal(applied, written)


@pytest.mark.slow
def test_the_calibrated_file_keeps_the_labels_of_the_file(monkeypatch):
    # A large file is made on a click.
    monkeypatch.setattr(recalibrate_comparison, "FILES_AT_ONCE", 100)
    rows = "".join(f"{y},{p}\n" for y, p in [(-1, 0.1), (1, 0.8), (-1, 0.4), (1, 0.6)] * 60)
    app = opened(f"y,p\n{rows}".encode())
    app.multiselect(key="methods").set_value(["temperature"]).run()
    compared(app)
    app.selectbox(key="method").set_value("temperature").run()
    assert "Calibrates 240 rows." in text_of(app)
    app.button(key="calviz.take-home").click().run()
    assert "'p' holds the new scores; the score before is in 'uncalibrated'." in text_of(app)
    assert "All else is as in your file." in helps_of(app)
    lines = app.session_state["calviz.recalibrate.ready"][1].table.decode().splitlines()
    assert lines[0] == "y,p,split,uncalibrated"
    cells = [line.split(",") for line in lines[1:]]
    assert [[row[0], row[3]] for row in cells] == [r.split(",") for r in rows.splitlines()]
    assert [row[1] for row in cells] != [row[3] for row in cells]


@pytest.mark.slow
def test_the_calibrated_file_keeps_cells_and_rows_as_they_stand():
    rows = [f"01.{1 + i % 12:02d}.2026;{i % 40 + 7};{i % 9 + 1}.000,50;{i % 19 * 5},0 %;{('nein', 'ja')[i % 19 > 9 + i % 3]}" for i in range(400)]  # fmt: skip
    rows[3] = "01.04.2026;10;4.000,50;;ja"
    head = "Stichtag;Kunden_Nr;Betrag;p;label"
    content = "\r\n".join(["Stand;;;;", head, *rows, ""]).encode()
    app = upload(open_page(page="data"), "bank.csv", content)
    press(app, "Leave out the rows without score")
    app = app.open("recalibrate")
    app.multiselect(key="methods").set_value(["platt"]).run()
    compared(app)
    app.selectbox(key="method").set_value("platt").run()
    title, first, *lines = (
        app.session_state["calviz.recalibrate.ready"][1].table.decode().splitlines()
    )
    assert (title, first) == ("Stand;;;;", f"{head};split;p_nein;p_ja;uncalibrated")
    assert [line.split(";")[:5] for line in lines] == [row.split(";") for row in rows]
    assert [i for i, line in enumerate(lines) if line.endswith(";;;;")] == [3]
    assert "'p_nein', 'p_ja' hold the new scores; the score before is" in text_of(app)
    assert "In the file, without a calibrated score: 1 of 400 rows" in helps_of(app)


@pytest.mark.slow
def test_without_splits_rows_are_drawn_or_crossed_and_in_sample_is_labelled():
    app = opened(overconfident(splits=False))
    assert "fitted on 300 rows (50 % of the rows, stratified" in text_of(app)
    app.multiselect(key="methods").set_value(["temperature"]).run()
    app.segmented_control(key="division").set_value("folds").run()
    comparison_job = compared(app)
    assert comparison_job.comparison.evaluation.rows == 600
    files = app.session_state["calviz.recalibrate.ready"][1]
    assert json.loads(files.map)["method"] == "temperature"
    assert "Calibrates 600 rows" not in text_of(app)
    assert "map and snippet are fitted on all 600 judged rows" in text_of(app)
    app.toggle(key="in-sample").set_value(True).run()
    assert "In-sample: the maps look better than they are" in text_of(app)
    assert "The results belong to other choices" in text_of(app)
    assert compared(app).comparison.in_sample
    assert "no basis for a choice" in text_of(app)


@pytest.mark.slow
def test_before_and_after_show_the_classes_as_their_page_does():
    app = opened(overconfident())
    app.multiselect(key="methods").set_value(["temperature"]).run()
    compared(app)
    app.segmented_control(key="before-after").set_value("classes").run()
    own = app.open("classwise").segmented_control(key="classes_by").value
    page = json.loads(quiet(app).get("plotly_chart")[0].proto.spec)
    app.open("recalibrate")
    assert app.segmented_control(key="classes_by").value == own
    charts = quiet(app).get("plotly_chart")[-2:]
    before = json.loads(charts[0].proto.spec)
    shown = next(t for t in page["data"] if t["name"] == "95 % interval")
    assert shown["x"] == next(t for t in before["data"] if t["name"] == "95 % interval")["x"]
    app.segmented_control(key="classes_by").set_value("true-class").run()
    assert "Rows of each true class" in text_of(quiet(app))
    app.segmented_control(key="before-after").set_value("map").run()
    assert "Calibration map: Temperature scaling, 300 rows" in text_of(app)
    for view, name in (("classes", "xaxis"), ("risk", "yaxis"), ("cumulative", "yaxis")):
        app.segmented_control(key="before-after").set_value(view).run()
        charts = [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")[-2:]]
        one, two = (chart["layout"] for chart in charts)
        assert one[name]["range"] == two[name]["range"]
        assert [one["height"], one["margin"]] == [two["height"], two["margin"]]
        assert "Of 300 evaluation rows" in text_of(app)
        if view == "classes":
            first, second = (
                [name.split("  ")[0] for name in layout["yaxis"]["ticktext"]]
                for layout in (one, two)
            )
            assert first == second


@pytest.mark.slow
def test_confidences_say_which_methods_apply_and_why_the_others_do_not():
    rng = np.random.default_rng(1)
    score = rng.uniform(0.5, 1, 400)
    right = rng.random(400) < score**2
    rows = [f"{s:.6f},{int(r)}" for s, r in zip(score, right, strict=True)]
    app = opened(("confidence,correct\n" + "\n".join(rows)).encode())
    options = app.multiselect(key="methods").options
    assert LABELS["isotonic"] in options
    assert LABELS["temperature"] not in options
    assert "it needs the scores of all classes" in text_of(app)
    app.multiselect(key="methods").set_value(["isotonic", "beta"]).run()
    comparison_job = compared(app)
    assert all(m.ok for m in comparison_job.comparison)
    assert "Advice:" in text_of(app)
    app.selectbox(key="method").set_value("beta").run()
    files = app.session_state["calviz.recalibrate.ready"][1]
    assert read(files.table, name="calibrated.csv").first.n == 400


@pytest.mark.slow
def test_pages_that_fit_often_begin_with_few_methods_until_a_person_chooses(monkeypatch):
    app = opened(overconfident())
    many = app.multiselect(key="methods").value
    app.open("learning_curve")
    few = app.multiselect(key="methods").value
    assert 1 < len(few) < len(many)
    assert set(few) < set(many)
    # Nobody has touched it: each page has its own. "All" are more than the curves that can be told apart.
    app.open("recalibrate")
    assert app.multiselect(key="methods").value == many
    # What a comparison advises is among the few.
    made = SimpleNamespace(advice=SimpleNamespace(method="spline"))
    monkeypatch.setattr(recalibrate_comparison, "latest_comparison", lambda _: made)
    app.open("learning_curve")
    assert app.multiselect(key="methods").value == [*few, "spline"]
    app.open("recalibrate")
    assert app.multiselect(key="methods").value == many
    app.button(key="calviz.methods.All").click().run()
    app.open("learning_curve")
    assert len(app.multiselect(key="methods").value) > 8
    assert "This page has room for 8 methods. Left out here" in text_of(app)
    left_out = text_of(app).partition("Left out here: ")[2].partition(".\n")[0].split("; ")
    assert len(left_out) > 1
    assert LABELS["spline"] not in left_out


@pytest.mark.slow
def test_a_file_that_is_too_small_is_told_so_and_choices_come_from_the_address():
    app = opened(b"label,p_a,p_b\na,0.9,0.1\nb,0.2,0.8\na,0.6,0.4\n")
    assert "at least 10 are needed" in text_of(app)
    app = opened(overconfident(), division="cross-fitting", folds="3", methods=LABELS["irm"])
    assert "3-fold cross-fitting" in text_of(app)
    assert app.multiselect(key="methods").value == ["irm"]


@pytest.mark.slow
def test_the_table_leaves_in_three_forms():
    from calviz.app import recalibrate_results

    app = opened(overconfident(40))
    app.multiselect(key="methods").set_value(["temperature", "matrix-odir"]).run()
    comparison_job = compared(app)
    columns = comparison_job.comparison.columns(["nll"])
    shown = recalibrate_results.texts(comparison_job, columns, "nll")
    csv = recalibrate_results.table_export("CSV", comparison_job, shown, columns)
    frame = pd.read_csv(io.StringIO(csv))
    result = frame.set_index("method").loc["temperature"]
    assert result["value"] == pytest.approx(
        comparison_job.comparison["temperature"].metrics["nll"].value
    )
    assert recalibrate_results.table_export("Markdown", comparison_job, shown, columns).startswith(
        "| Method | NLL |"
    )
    assert r"\begin{tabular}" in recalibrate_results.table_export(
        "LaTeX", comparison_job, shown, columns
    )


def with_zeros():
    """Two classes; every fourth row says 0 or 1, and one of ten of these is wrong."""
    rng = np.random.default_rng(3)
    score = np.round(rng.uniform(0.05, 0.95, 400), 2)
    hit = rng.random(400) < score
    score[::4] = np.where(rng.random(100) < 0.9, hit[::4], ~hit[::4])
    lines = [f"{int(h)},{1 - s:.2f},{s:.2f}" for s, h in zip(score, hit, strict=True)]
    return ("label,p_0,p_1\n" + "\n".join(lines)).encode()


@pytest.mark.slow
def test_what_is_too_large_to_keep_is_drawn_before_it_goes(monkeypatch):
    def both():
        app = opened(overconfident())
        app.multiselect(key="methods").set_value(["temperature", "isotonic"]).run()
        return compared(app)

    kept = both()
    monkeypatch.setattr(recalibrate_comparison, "KEPT_BYTES", 0)
    gone = both()
    assert kept.figures == {}
    assert {m.calibrated for m in gone.comparison} == {None}
    methods = [m.key for m in kept.fitted]
    wanted = {(key, kind) for key in methods for kind in ("reliability", "map")}
    assert {key[:2] for key in gone.figures} == wanted - {("identity", "map")}
    for (method, kind, _), picture in gone.figures.items():
        if kind == "reliability":
            wanted = Reliability.compute(kept.calibrated(method), band=False)
            pd.testing.assert_frame_equal(picture.frame(), wanted.frame())


@pytest.mark.slow
def test_exact_zeros_are_said_and_can_be_read_as_something_else():
    app = opened(with_zeros())
    assert "In 100 rows a class has a probability of exactly 0" in text_of(app)
    app.multiselect(key="methods").set_value(["temperature", "temperature+irm", "irm"]).run()
    better = compared(app).comparison
    assert not [w for w in app.warning if "true class" in w.value]
    for method in ("temperature", "temperature+irm"):
        assert better[method].recalibrator.floor == "auto"
    assert better["temperature"].recalibrator.floor_ == pytest.approx(0.01)
    app.segmented_control(key="zeros").set_value("least").run()
    assert "The results belong to other choices" in text_of(app)
    poor = compared(app).comparison
    messages = [w.value for w in app.warning if "calibration rows give their true class" in w.value]
    assert len(messages) == 1  # once, with the names of the methods
    assert (
        better["temperature"].metrics["nll"].value < poor["temperature"].metrics["nll"].value - 0.05
    )
    assert better["irm"].metrics["nll"].value == poor["irm"].metrics["nll"].value
    app.segmented_control(key="zeros").set_value("own").run()
    app.number_input(key="zeros-as").set_value(0.001).run()
    for number, decimals in ((5e-5, 5), (0.00012345, 8)):
        app.number_input(key="zeros-as").set_value(number).run()
        assert app.number_input(key="zeros-as").proto.format == f"%.{decimals}f"
        assert app.number_input(key="zeros-as").value == number
    # Without zeros there is nothing to choose.
    assert not [c for c in opened(overconfident()).segmented_control if c.key == "zeros"]


@pytest.mark.slow
def test_maps_are_capped_unless_the_papers_form_is_asked_for():
    app = opened(overconfident())
    app.multiselect(key="methods").set_value(["isotonic", "temperature+irm", "temperature"]).run()
    assert "held within what their rows support" in text_of(app)
    capped = compared(app).comparison
    app.toggle(key="uncapped").set_value(True).run()
    assert "The results belong to other choices" in text_of(app)
    plain = compared(app).comparison
    for key in ("isotonic", "temperature+irm"):
        assert capped[key].recalibrator.cap is True
        assert plain[key].recalibrator.cap is False
        assert capped[key].metrics["nll"].value != plain[key].metrics["nll"].value
    assert capped["temperature"].metrics["nll"].value == plain["temperature"].metrics["nll"].value
    # A link has it.
    linked = opened(overconfident(), methods=["isotonic"], uncapped="true")
    assert linked.toggle(key="uncapped").value is True
    # It is one choice for all pages that fit.
    app.open("learning_curve")
    assert app.toggle(key="uncapped").value is True
    # What has no cap is not asked for one.
    app = opened(overconfident())
    app.multiselect(key="methods").set_value(["temperature", "bbq"]).run()
    assert not [t for t in app.toggle if t.key == "uncapped"]


@pytest.mark.slow
def test_the_rows_after_a_method_show_its_intervals():
    app = opened(overconfident())
    app.multiselect(key="methods").set_value(["venn-abers"]).run()
    compared(app)
    app.selectbox(key="method").set_value("venn-abers").run()
    quiet(unfold(app, "Rows after the method"))
    (table,) = (d.value for d in app.dataframe if "score before" in d.value and "score" in d.value)
    assert {f"interval_p{end}_{of}" for end in (0, 1) for of in "abc"} <= set(table)
    assert len(table) == 200
    assert (table["interval_p0_a"] <= table["interval_p1_a"]).all()


def test_the_table_shows_accuracy_only_where_overview_does(monkeypatch):
    monkeypatch.setattr(recalibrate_results.screen, "page_width", lambda: None)
    measured = dict.fromkeys(METRICS.in_table("fits"), SimpleNamespace(available=True))
    for events, shown in ((15, False), (40, True)):
        data = from_arrays([1] * events + [0] * (100 - events), [0.2] * 100)
        outcome = SimpleNamespace(data=data, fitted=[SimpleNamespace(metrics=measured)])
        assert ("accuracy" in recalibrate_results._usual_columns(outcome)) is shown
        first = first_metrics(Sample(data, reduction="positive"))
        assert ("accuracy" in first) is shown


def test_the_squares_before_and_after_are_equally_large_whatever_their_legends(monkeypatch):
    drawn = []
    monkeypatch.setattr(screen, "width_class", lambda: "wide")
    monkeypatch.setattr(screen, "chart", lambda figure, drawing, **how: drawn.append(drawing))
    monkeypatch.setattr(screen, "theme", lambda: "light")
    scores = np.linspace(0.3, 0.9, 200)
    off, right = (
        Reliability.compute(from_arrays(np.arange(200) % 2, s)) for s in (scores, scores / 1.2)
    )
    screen.draw_before_and_after(off, right, key="pair", name="Platt scaling", pair=True)
    before, after = (one.layout for one in drawn)
    assert len(drawn[0].data) != len(drawn[1].data)
    assert (before.height, before.margin.b) == (after.height, after.margin.b)
    # More than a legend of three lines takes.
    assert after.margin.b > 150


@pytest.mark.slow
def test_a_link_names_methods_by_their_keys_and_nothing_that_is_suggested():
    app = opened(overconfident())
    assert "methods" not in app.query_params
    app.multiselect(key="methods").set_value(["temperature", "temperature+irm"]).run()
    assert app.query_params["methods"] == "temperature~temperature+irm"
    linked = opened(overconfident(), methods="temperature~temperature+irm")
    assert linked.multiselect(key="methods").value == ["temperature", "temperature+irm"]
    # As links were written before.
    old = opened(overconfident(), methods=[LABELS["irm"], LABELS["temperature"]])
    assert set(old.multiselect(key="methods").value) == {"irm", "temperature"}


@pytest.mark.slow
def test_with_a_folder_for_it_a_comparison_is_not_computed_again(monkeypatch, tmp_path):
    monkeypatch.setenv(recalibrate_comparison.CACHE_VARIABLE, str(tmp_path))
    first = opened(overconfident())
    first.multiselect(key="methods").set_value(["temperature", "isotonic"]).run()
    made = compared(first).comparison
    monkeypatch.setattr(recalibrate_comparison, "carry_out", None)
    again = opened(overconfident())
    again.multiselect(key="methods").set_value(["temperature", "isotonic"]).run()
    kept = compared(again).comparison
    assert kept is not made
    pd.testing.assert_frame_equal(kept.frame(), made.frame())
    assert again.title[0].value == first.title[0].value
    pd.testing.assert_frame_equal(again.table[0].value, first.table[0].value)
    # The maps came with it.
    assert again.session_state["calviz.recalibrate.ready"][1].map


# ---- The page Arena, without a browser


RESULTS = "dataset,model,cal_size,test_size,{m}_brier,{m}_logloss,{m}_time\n" + "".join(
    f"d{{i}},m,{size},50,{{s}},{{s}},0.1\n".replace("{i}", str(i)).replace("{s}", f"{{s{i % 2}}}")
    for i, size in enumerate([500] * 6 + [2_000] * 6)
)


def _results(method: str, even: float, odd: float) -> tuple[str, bytes, str]:
    return f"{method}.csv", RESULTS.format(m=method, s0=even, s1=odd).encode(), "text/csv"


def _kept(app: AppTest, *files: tuple[str, bytes, str]) -> AppTest:
    next(c for c in app.button_group if c.label == "What competes").set_value("kept").run()
    app.file_uploader[0].set_value(list(files)).run()
    return wait(app)


@pytest.mark.usefixtures("few_candidates")
@pytest.mark.slow
def test_results_are_judged_shown_as_in_their_report_and_closed():
    app = _kept(
        open_page("", "arena"),
        _results("Base-model", 0.3, 0.3),
        _results("TS", 0.2, 0.2),
        _results("Beta", 0.1, 0.25),
    )
    page = app.get("iframe")[0].proto.srcdoc
    assert "12 experiments on 12 data sets, 3 methods" in page
    # TS beats Beta in every other experiment, and nothing always: 1/2 (1/2 + 1) for both.
    assert re.search(r"<td>TS</td><td[^>]*><em>0\.750 ", page)
    assert "below 1,000 calibration rows" in page
    press(app, "Close")
    assert app.file_uploader


@pytest.mark.usefixtures("few_candidates")
def test_other_files_are_refused_in_one_sentence():
    app = _kept(open_page("", "arena"), ("plain.csv", b"label,p\n0,0.5\n", "text/csv"))
    assert "plain.csv: this file holds no arena results" in text_of(app)


@pytest.mark.usefixtures("few_candidates")
@pytest.mark.slow
def test_open_models_compete():
    app = open_page("data=breast_cancer", "arena")
    # Before anything is fitted: what won in published experiments.
    assert "wins most often" in app.title[0].value
    press(app, "Start the arena")
    app = wait(app)
    assert "1 data set: another one may reverse the order" in text_of(app)
    page = app.get("iframe")[0].proto.srcdoc
    assert "5 experiments on 1 data set" in page
    assert "Uncalibrated" in page
