"""The pages Compare models and Learning curve, without a browser."""

import json
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

import calviz
from calviz.app import models_compared, recalibrate_learning_curve
from calviz.app.jobs import Job
from calviz.app.tables_and_cards import marked_table
from calviz.core.predictions import Predictions
from tests.app.pages import (
    app_of,
    drop,
    open_page,
    plain,
    press,
    quiet,
    text_of,
    unfold,
    upload,
    wait,
)

# The quick lane opens every page once (test_pages.py); what these tests click takes long.
pytestmark = pytest.mark.slow


def _finished(app: AppTest) -> AppTest:
    return quiet(wait(app))


def _finish(app: AppTest, button: str) -> AppTest:
    """Press a button that starts a job, and wait for it."""
    return _finished(press(app, button))


def _csv(ids: list[str], score: np.ndarray, labels: np.ndarray) -> bytes:
    rows = (f"{i},{y},{1 - s:.4f},{s:.4f}" for i, y, s in zip(ids, labels, score, strict=True))
    return ("\n".join(["id,label,p_no,p_yes", *rows]) + "\n").encode()


def test_the_best_model_is_named_with_those_that_tie():
    app = _finished(open_page("data=breast_cancer", "compare_models"))
    answer = app.title[0].value
    assert "logistic regression" in answer
    assert "not told apart" in answer
    table = app.table[0].value
    assert len(table) == 5
    (heading,) = (name for name in table.columns if "NLL" in name)
    nll = [float(re.sub(r"[^\d.]", "", v.replace("&#46;", "."))) for v in table[heading]]
    assert table[heading].iloc[int(np.argmin(nll))].startswith("**")
    assert "Identifiers agree in all 285 rows" in text_of(app)
    # One table and one picture of differences, then the diagrams; the rest is folded away.
    assert not app.dataframe
    assert len(app.get("plotly_chart")) == 1 + len(table)
    app = unfold(app, "All metrics and differences")
    (differences,) = (shown.value for shown in app.dataframe)
    # Until all are asked for, the table has few metrics.
    few, every = (shown.value.columns for shown in app.table[:2])
    assert [re.sub(r"\W.*", "", name.strip("[")) for name in few] == [
        "Accuracy",
        "NLL",
        "ECE",
        "MCS",
        "AUROC",
    ]
    assert len(every) > 2 * len(few)
    assert {"NLL", "Brier score", "ECE"} <= set(differences["metric"])
    of_ece = differences[differences["metric"] == "ECE"]["difference"].iloc[0]
    assert re.match(r"−?[\d.]+ points \(95 % CI ", of_ece)


def test_a_second_file_is_chosen_by_itself_and_what_does_not_match_is_said():
    rng = np.random.default_rng(0)
    score = rng.uniform(0.02, 0.98, 60)
    labels = (rng.random(60) < score).astype(int)
    ids = [f"r{i}" for i in range(60)]
    app = _finished(open_page("data=breast_cancer", "compare_models"))
    drop(app, "one.csv", _csv(ids, score, labels))
    assert plain(app.title[0].value) == "Compare models: it takes two on the same rows"
    before = app.query_params["data"]
    order = rng.permutation(60)[:50]
    other = _csv([ids[i] for i in order], score[order] ** 2, labels[order])
    drop(app, "two.csv", other)
    _finished(app)
    assert app.multiselect(key="models").value == ["one", "two"]
    assert app.query_params["data"] == before  # the file that was looked at stays so
    words = text_of(app)
    assert "50 rows matched by identifier" in words
    assert "10 rows of 'one' left out" in words
    app.multiselect(key="models").set_value(["one"]).run()
    assert "it takes two on the same rows" in text_of(app)


def test_why_a_second_file_is_not_compared_is_said():
    rng = np.random.default_rng(0)
    score, labels = rng.uniform(0.02, 0.98, 60), rng.integers(0, 2, 60)
    app = _finished(open_page("data=breast_cancer", "compare_models"))
    drop(app, "one.csv", _csv([f"r{i}" for i in range(60)], score, labels))
    lines = [f"{'abc'[i % 3]},{p / 2:.4f},{p / 2:.4f},{1 - p:.4f}" for i, p in enumerate(score)]
    drop(app, "three.csv", "\n".join(["label,p_a,p_b,p_c", *lines]).encode())
    _finished(app)
    assert plain(app.title[0].value) == "Compare models: it takes two on the same rows"
    assert "3 and 2 classes that are not the same" in plain(app.warning[0].value)


def test_models_of_a_column_with_gaps_are_compared_on_the_rows_of_all():
    rng, n = np.random.default_rng(0), 200
    score = rng.uniform(0.05, 0.95, n)
    labels = (rng.random(n) < score).astype(int)
    lines = [
        f"r{i},{m},{labels[i]},{np.clip(score[i] + rng.normal(0, w), 0.01, 0.99):.4f}"
        for m, w, every in (("net", 0.1, 10), ("tree", 0.3, 8))
        for i in range(n)
        if i % every
    ]
    lines = [lines[i] for i in rng.permutation(len(lines))]
    app = upload(open_page(), "long.csv", "\n".join(["id,model,label,p", *lines]).encode())
    app = _finished(app.open("compare_models"))
    assert "160 rows matched by identifier" in text_of(app)
    left = "left out: not every model has their identifiers."
    assert re.search(f"(20 rows of 'net'|15 rows of 'tree'), .* {left}", plain(text_of(app)))
    model = app.radio(key="model").value
    own = {"net": 180, "tree": 175}[model]
    # What is paired row by row is so by identifier.
    app = _finished(app.open("reliability"))
    app = unfold(app, "Rows worth looking at")
    app = quiet(app.button_group(key="notable").set_value("models").run())
    (rows,) = (
        t.value for t in app.dataframe if "answers (calviz)" in t.value or "answers" in t.value
    )
    said = {tuple(line.split(",")[:2]): float(line.split(",")[3]) >= 0.5 for line in lines}
    differ = {
        i for i, m in said if m == "net" and said[i, "net"] != said.get((i, "tree"), said[i, "net"])
    }
    assert {*rows["id"]} == differ
    app = quiet(app.open("risk_coverage"))
    app = quiet(app.toggle(key="compare-models").set_value(True).run())
    assert f"is not drawn: it has only 160 of the {own} rows." in plain(text_of(app))


def test_metrics_without_differences_are_named_below_the_table():
    def table():
        import numpy as np

        import calviz
        from calviz.app.models_compared import draw_metrics

        labels, rng = (np.arange(100) < 3).astype(int), np.random.default_rng(0)
        models = {
            name: calviz.Predictions(probs=rng.uniform(0.05, 0.5, 100), labels=labels)
            for name in "ab"
        }
        keys = ["auprc", "brier"]
        draw_metrics(calviz.compare_models(models, metrics=keys, reduction="positive"), keys)

    text = text_of(quiet(app_of(table).run()))
    assert (
        "AUPRC: no paired differences, as it has no value on some resampled or simulated rows (no row is a hit)"
        in text
    )


def test_the_best_calibrated_model_may_be_a_weak_one():
    y = np.arange(200) % 2
    noisy = np.where(np.arange(200) % 20 == 0, 1 - y, y)
    app = _finished(open_page("data=breast_cancer", "compare_models"))
    # "weak" always says one half, which is true; "strong" is right in 95 % and says 75 %.
    for name, score in (("weak", np.full(200, 0.5)), ("strong", np.where(noisy, 0.75, 0.25))):
        content = _csv([f"r{i}" for i in range(200)], score, y)
        drop(app, f"{name}.csv", content)
    _finished(app)
    assert "'strong' is best" in text_of(app)
    assert "Calibrated is not accurate" not in text_of(app)
    title = plain(app.title[0].value).replace("\u00a0", " ")
    assert "'strong' is best" in title
    assert "After recalibration" not in text_of(app)
    answer = "'weak' is better calibrated (ECE 0.00 points) than 'strong' (20.0 points), which is best by NLL"
    assert answer in text_of(app).replace("\u00a0", " ")
    app.button_group(key="models-by").set_value("ece").run()
    words = text_of(quiet(app))
    assert "By ECE, 'weak' is best" in words
    assert "'weak' is right in 50.0 % of the rows, 'strong' in 95.0 %" in words


def test_files_that_do_not_belong_together_are_told_so():
    app = _finished(open_page("data=breast_cancer", "compare_models"))
    y = np.arange(20) % 2
    for name, labels in (("one.csv", y), ("two.csv", 1 - y)):
        content = _csv([str(i) for i in range(20)], np.full(20, 0.6), labels)
        content = re.sub(rb"^[^,]+,", b"", content, flags=re.MULTILINE)
        drop(app, name, content)
    app = _finished(app)
    assert app.multiselect(key="models").value == ["one"]
    app = app.multiselect(key="models").set_value(["one", "two"]).run()
    assert not app.exception
    assert "the true labels differ in 20 rows, first in row 1" in text_of(app)


def test_full_and_confidence_only_models_are_compared_by_what_both_have():
    names = np.array(["no", "yes"])
    y = np.arange(40) % 2
    score = np.where(y == 1, 0.8, 0.3)
    score[:6] = 1 - score[:6]
    top = ["id,confidence,true_label,pred_label"]
    full = ["id,label,p_no,p_yes"]
    for i, (s, true) in enumerate(zip(score, names[y], strict=True)):
        top.append(f"{i},{max(s, 1 - s):.4f},{true},{names[int(s > 0.5)]}")
        full.append(f"{i},{true},{1 - s:.4f},{s:.4f}")
    app = _finished(open_page("data=breast_cancer", "compare_models"))
    for name, lines in (("top.csv", top), ("full.csv", full)):
        content = "\n".join([*lines, ""]).encode()
        drop(app, name, content)
    _finished(app)
    table = app.table[0].value
    nll = next(name for name in table.columns if "NLL" in name)
    assert [v == "–" for v in table[nll]] == [True, False]
    assert [b.value for b in app.button_group if b.key == "models-by-confidence"] == ["accuracy"]
    assert "not told apart" in app.title[0].value


def test_rare_events_have_one_binning_and_one_range_of_axes():
    rng = np.random.default_rng(1)
    p = 10 ** rng.uniform(-3, -1, 4_000)
    y = (rng.random(p.size) < p).astype(int)
    scores = np.stack([p, 1.8 * p, y], axis=1)
    rows = "".join(f"{a:.5f},{b:.5f},{int(c)}\n" for a, b, c in scores.tolist())
    app = open_page("", "data")
    app = drop(app, "rare.csv", ("pd_one,pd_two,label\n" + rows).encode())
    app = _finished(press(app, "2 models"))
    app = _finished(app.open("compare_models"))
    specs = [json.loads(chart.proto.spec) for chart in app.get("plotly_chart")]
    ends = [s["layout"]["xaxis"]["range"][1] for s in specs if "yaxis2" in s["layout"]]
    assert len(ends) == 2
    assert ends[0] == ends[1] < 0.5
    assert "Binned metrics: 15 equal-mass bins" in text_of(app)


def _score(z: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-z))


def test_the_title_says_where_a_map_for_each_turns_the_order():
    rng = np.random.default_rng(1)
    z = 1.5 * rng.normal(size=1_000)
    labels = (rng.random(z.size) < _score(z)).astype(int)
    ids = [f"r{i}" for i in range(z.size)]
    app = _finished(open_page("data=breast_cancer", "compare_models"))
    drop(app, "noisy.csv", _csv(ids, _score(z + 0.8 * rng.normal(size=z.size)), labels))
    drop(app, "sharp.csv", _csv(ids, _score(3 * z), labels))
    answer = plain(_finished(app).title[0].value)
    assert (
        answer == "By NLL, 'noisy' is best as it is; after Platt scaling of each, 'sharp' is best"
    )
    assert (
        "Platt scaling of each model, one map for all its rows, fitted on 800 rows (5-fold"
        in text_of(app)
    )
    assert any("AUROC" in name for name in app.table[0].value.columns)


def test_the_rows_where_another_model_is_better_are_one_click_away():
    rng = np.random.default_rng(1)
    z, noise = 1.5 * rng.normal(size=2_000), rng.normal(size=(2, 2_000))
    labels = (rng.random(z.size) < _score(z)).astype(int)
    at_s = rng.random(z.size) < 0.25
    a, b = (_score(z + np.where(at_s == (i == 1), 1.2, 0.2) * noise[i]) for i in range(2))
    rows = zip(np.where(at_s, "s", "n"), labels, a, b, strict=True)
    lines = [f"r{i},{r},{y},{p:.4f},{q:.4f}" for i, (r, y, p, q) in enumerate(rows)]
    app = open_page("", "data")
    app = drop(app, "turn.csv", "\n".join(["id,region,label,pd_a,pd_b", *lines, ""]).encode())
    app = _finished(press(app, "2 models"))
    app = _finished(app.open("compare_models"))
    assert "is better where region = s" in text_of(app)
    # The other rows, which make the order of all, come second.
    button, other = (b for b in app.button if plain(b.label).startswith("Compare where"))
    assert plain(button.label) == "Compare where region = s"
    assert plain(other.label) == "Compare where region = n"
    app = _finished(press(app, button.label))
    assert app.query_params["slice"] == "region"
    assert app.selectbox(key="level").value == "s"
    assert f"{at_s.sum()} of 2,000 rows" in text_of(app)
    assert "'a' is best" in plain(app.title[0].value)
    assert "Compare where" not in " ".join(b.label for b in app.button)


def test_a_large_file_is_recalibrated_on_request(monkeypatch):
    monkeypatch.setattr(models_compared, "AT_ONCE", 100)
    app = _finished(open_page("data=breast_cancer", "compare_models"))
    assert "After recalibration:" not in text_of(app)
    _finish(app, "Compare after recalibration too")
    assert "After recalibration:" in text_of(app)


def test_a_model_that_does_not_match_leaves_the_comparison_of_the_others():
    rng = np.random.default_rng(0)
    labels = (np.arange(60) % 2).astype(int)
    app = _finished(open_page("data=breast_cancer", "compare_models"))
    for name, y in (("one", labels), ("two", labels), ("three", 1 - labels)):
        score = rng.uniform(0.02, 0.98, 60)
        content = _csv([str(i) for i in range(60)], score, y)
        drop(app, f"{name}.csv", re.sub(rb"^[^,]+,", b"", content, flags=re.MULTILINE))
    app = _finished(app)
    assert app.multiselect(key="models").value == ["one", "two"]
    app.multiselect(key="models").set_value(["one", "two", "three"]).run()
    assert len(_finished(app).table[0].value) == 2
    assert "'one' and 'three' cannot be matched" in text_of(app)


def test_an_answer_holds_for_another_file_with_the_same_columns():
    rng = np.random.default_rng(0)

    def content(n: int) -> bytes:
        score = 100 * rng.random(n)
        rows = (f"{i},{'ab'[i % 2]},{s:.1f},{100 - s:.1f}" for i, s in enumerate(score))
        return ("\n".join(["id,label,p_a,p_b", *rows]) + "\n").encode()

    app = _finished(open_page("data=breast_cancer", "compare_models"))
    drop(app, "one.csv", content(40))
    press(app, next(b.label for b in app.button if "100" in b.label))
    drop(app, "two.csv", content(40))
    said = "two.csv has the columns of one.csv and is read with the same answers."
    assert said in text_of(_finished(app))
    assert app.multiselect(key="models").value == ["one", "two"]


def test_methods_of_every_model():
    app = _finished(open_page("data=breast_cancer", "compare_models"))
    assert "Compare 2 methods for each model" not in [b.label for b in app.button]
    unfold(app, "Each model after recalibration")
    app.multiselect(key="methods").set_value(["temperature", "platt"]).run()
    _finish(app, "Compare 2 methods for each model")
    # It opens on what ranks the models above.
    assert app.button_group(key="calviz.models.methods.metric").value == "nll"
    table = app.table[1].value
    assert table.columns.tolist() == ["Uncalibrated", "Platt scaling", "Temperature scaling"]
    assert len(table) == 5
    assert all(sum(v.startswith("**") for v in row) >= 1 for row in table.to_numpy())
    assert "Fitted on 284 rows" in text_of(app)


def test_the_page_says_how_many_labels_are_enough():
    app = _finished(
        open_page("data=breast_cancer&model=SVM margin&label-draws=5", "learning_curve")
    )
    answer = app.title[0].value
    assert "labels" in answer
    assert "uncalibrated" in text_of(app)
    assert "judged on the same 285 rows" in text_of(app)
    app.button_group(key="labels-by").set_value("nll").run()
    assert "NLL" in quiet(app).title[0].value


def test_confidence_only_data_have_a_learning_curve():
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.5, 1, 120)
    right = rng.random(120) < confidence
    lines = [f"{c:.4f},{int(hit)}" for c, hit in zip(confidence, right, strict=True)]
    app = open_page(page="data")
    content = "\n".join(["confidence,correct", *lines, ""]).encode()
    drop(app, "top.csv", content)
    app = _finished(app.open("learning_curve"))
    assert "Platt scaling" in text_of(app)
    assert "judged on the same 60 rows" in text_of(app)


def test_what_takes_long_waits_to_be_asked_for():
    app = _finished(open_page("data=simulated_100_classes", "learning_curve"))
    assert any(b.label == "Draw the curves" for b in app.button)
    assert not any(b.label == "Stop" for b in app.button)


def _with_zeros(wrong: float) -> bytes:
    """Two classes; every fourth row says 0 or 1, and a share of these is wrong."""
    rng = np.random.default_rng(3)
    score = np.round(rng.uniform(0.05, 0.95, 240), 2)
    hit = rng.random(240) < score
    score[::4] = np.where(rng.random(60) < wrong, ~hit[::4], hit[::4])
    return _csv([f"r{i}" for i in range(240)], score, hit.astype(int))


def test_what_zeros_are_read_as_is_one_choice_for_all_pages_that_fit():
    app = open_page(page="data")
    files = [(f"{w}.csv", _with_zeros(w), "text/csv") for w in (0.05, 0.1)]
    app.file_uploader[0].set_value(files[0]).run()
    app = _finished(app.open("learning_curve"))
    assert "In 60 rows a class has a probability of exactly 0" in text_of(app)
    app.segmented_control(key="zeros").set_value("own").run()
    app.number_input(key="zeros-as").set_value(0.02).run()
    _finish(app, "Draw the curves")
    app = _finished(app.open("compare_models"))
    app.file_uploader[0].set_value(files[1]).run()
    unfold(_finished(app), "Each model after recalibration")
    assert "In 120 rows a class has a probability of exactly 0" in text_of(app)
    assert app.number_input(key="zeros-as").value == 0.02


@pytest.mark.slow
def test_a_link_says_that_another_file_was_compared():
    app = open_page(page="data")
    files = [(f"{w}.csv", _with_zeros(w), "text/csv") for w in (0.05, 0.1)]
    app.file_uploader[0].set_value(files[0]).run()
    app = _finished(app.open("compare_models"))
    assert "other-files" not in app.query_params
    app.file_uploader[0].set_value(files[1]).run()
    named = _finished(app).query_params["other-files"]
    assert re.fullmatch(r"[0-9a-f]{16}-240~0\.1\.csv", named)
    app = open_page(page="data")
    app.file_uploader[0].set_value(files[0]).run()
    app.query_params["other-files"] = named
    app = _finished(app.open("compare_models"))
    asked = "This link also compares 0.1.csv (240 rows): open that file too."
    assert asked in text_of(app)
    assert named in app.query_params["other-files"]
    app.file_uploader[0].set_value(files[1]).run()
    assert "also compares" not in text_of(_finished(app))
    # Only the digests and numbers of a link are shown.
    app = open_page("data=breast_cancer&other-files=call+me", "compare_models")
    assert "call me" not in text_of(app)
    app = open_page("data=breast_cancer&other-files=0123456789abcdef-7", "compare_models")
    asked = (
        "This link also compares a file of 7 rows (digest 0123456789abcdef): open that file too."
    )
    assert asked in text_of(app)


@pytest.mark.slow
def test_a_link_of_a_report_brings_back_the_model_of_another_file():
    def sections(app):
        return re.search(r"The report of (\d+) sections on", _finished(app).title[0].value)[1]

    files = [(f"{w}.csv", _with_zeros(w), "text/csv") for w in (0.05, 0.1)]
    app = open_page(page="data")
    app.file_uploader[0].set_value(files[0]).run()
    alone = sections(app.open("report"))
    app = _finished(app.open("compare_models"))
    app.file_uploader[0].set_value(files[1]).run()
    both = sections(_finished(app).open("report"))
    assert int(both) == int(alone) + 1
    link = {name: app.query_params[name] for name in ("data", "file", "other-files")}
    # Where it is opened, it names both files; dropped together, in whichever order, they bring the report back.
    app = open_page("&".join(f"{name}={value}" for name, value in link.items()), "report")
    assert "Open 0.05.csv: this link is about it." in text_of(app).replace("**", "")
    assert "This link also compares 0.1.csv" in text_of(app)
    app.file_uploader[0].set_value(files[1]).run()
    assert "This link needs its file" in app.title[0].value
    app.file_uploader[0].set_value(files[0]).run()
    assert sections(app) == both
    # Opened alone, the first file leaves the report without its models, which it says.
    app = open_page("&".join(f"{name}={value}" for name, value in link.items()), "report")
    app.file_uploader[0].set_value(files[0]).run()
    assert sections(app) == alone
    assert "This link also compares 0.1.csv" in text_of(app)


def test_a_learning_curve_that_was_stopped_says_how_far_it_came():
    score = np.random.default_rng(0).uniform(0.05, 0.95, 240)
    data = calviz.Predictions(probs=score, labels=(np.arange(240) % 3 < 3 * score).astype(int))
    job = Job(("a",), "", lambda job: _curve(data, job, after=7))
    job.start()
    job.wait()
    assert job.state == "stopped"
    # Two rows of the table, the uncalibrated model and one method, five draws each: part of the first size.
    (first,) = {p.rows for p in job.result.points}
    assert job.done == 7
    assert recalibrate_learning_curve.stopped_words(job).startswith(
        f"Stopped after 7 of {job.total} fits"
    )
    assert recalibrate_learning_curve.stopped_words(job).endswith(f"up to {first} of 120 labels.")
    nothing = Job(("b",), "", lambda job: _curve(data, job, after=1))
    nothing.start()
    nothing.wait()
    assert "nothing to show" in recalibrate_learning_curve.stopped_words(nothing)


def _curve(data, job, after):
    def progress(done, total):
        job.progress(done, total)
        if done == after:
            job.stop()

    return calviz.learning_curve(data, ["platt"], progress=progress, stop=job.stopping)


@pytest.mark.slow
def test_several_answers_to_each_question_become_models_at_a_click():
    rng = np.random.default_rng(0)
    lines = ["question,answer,correct,confidence"]
    for j in range(120):
        answers = rng.choice(["x", "y", "z"], 5, p=rng.dirichlet([3, 1, 1]))
        lines += [
            f"q{j},{a},{int(a == 'x')},{c:.3f}" for a, c in zip(answers, rng.random(5), strict=True)
        ]
    app = drop(
        open_page("data=breast_cancer", "compare_models"), "samples.csv", "\n".join(lines).encode()
    )
    app = quiet(app)
    (button,) = (b for b in app.button if b.label == "Compare signals of confidence")
    app = _finished(button.click().run())
    table = app.table[0].value
    assert list(table.index) == ["agreement", "entropy", "stated"]
    assert any("AUROC of failure detection" in name for name in table.columns)
    assert app.title[0].value.startswith("By ECE")
    assert "Compare signals of confidence" not in [b.label for b in app.button]


def test_models_of_another_file_are_chosen_only_if_it_has_nearly_the_same_rows():
    def of(*ids, **more):
        n = len(ids)
        return Predictions(
            probs=np.full((n, 2), 0.5), labels=np.arange(n) % 2, ids=np.array(ids), **more
        )

    def same(one, other):
        return models_compared._nearly_same_rows.__wrapped__((), one, other)

    one = of(*(f"C{i}" for i in range(40)))
    assert same(one, of(*(f"C{i}" for i in range(4, 90))))
    assert not same(one, of(*(f"C{i}" for i in range(20, 90))))
    assert not same(one, of(*(f"D{i}" for i in range(40))))
    # The same patients, admitted on other days.
    ids, days = (
        [f"P{i % 20}" for i in range(40)],
        np.arange("2026-01-01", "2026-02-10", dtype="M8[D]"),
    )
    first = of(*ids, times=days, column_names={"ids": "patient_id", "times": "admission_date"})
    assert not same(first, replace(first, times=np.where(np.arange(40) < 4, days, days + 90)))
    assert same(first, replace(first, times=days.copy(), ids=first.ids.copy()))
    # Without identifiers: as many rows, with other labels.
    bare = replace(one, ids=None)
    assert same(bare, replace(bare, labels=bare.labels.copy()))
    assert not same(bare, replace(bare, labels=1 - bare.labels))


def test_decimals_stand_below_each_other_beside_the_sign_of_ties():
    table = pd.DataFrame(
        {"NLL": ["**0.5118**", "0.5119\u00a0≈", "n/a"], "ECE": ["1.1", "1.2", "1.3"]}
    )
    shown = marked_table(table).data
    # A figure space, which nothing trims.
    assert [text[-3:] for text in shown["NLL"]] == [
        "\u00a0\u2007\u2060",
        "9\u00a0≈",
        "\u00a0\u2007\u2060",
    ]
    assert shown["ECE"].tolist() == ["1.1", "1.2", "1.3"]
