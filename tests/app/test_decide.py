"""The tabs of Decide."""

import json
import re

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

import calviz
from calviz.app import open_files, screen, session
from calviz.app.selection import SliceRule
from calviz.comparison.fitting import before_and_after
from calviz.core.words import from_on, percent
from calviz.figures.risk_coverage import RiskCoverage
from calviz.figures.slice_gaps import levels_of
from calviz.sample.class_gaps import class_ranges
from calviz.sample.risk_tests import wrong_where_kept
from calviz.sample.sample import Sample, with_predicted
from calviz.verdicts.analysis import evaluate
from tests.app.pages import (
    GOOD,
    PATIENCE,
    give_role,
    open_page,
    plain,
    press,
    quiet,
    text_of,
    unfold,
    upload,
)
from tests.inputs.reliability import binary, rare, rare_file

# ---- Costs of decisions, and grades


@pytest.mark.slow
def test_the_cutoff_decides_what_is_shown():
    app = quiet(open_page("data=breast_cancer&cutoff=0.300", "decisions"))
    assert app.number_input(key="cutoff").value == 0.3
    assert "a false negative is as bad as 2.33 false positives" in text_of(app)
    before = [d.value for d in app.dataframe]
    odds = lambda: app.number_input(key="calviz.decisions.odds")  # noqa: E731
    for cutoff, ratio in ((0.5, 1), (0.999, 0.001 / 0.999), (0.8, 0.25)):
        app.number_input(key="cutoff").set_value(cutoff).run()
        assert quiet(app).number_input(key="cutoff").value == cutoff
        assert odds().value == pytest.approx(ratio)
    assert "a false positive is as bad as 4 false negatives" in text_of(quiet(app))
    after = [d.value for d in app.dataframe]
    assert not all(one.equals(other) for one, other in zip(before, after, strict=True))
    app.selectbox(key="recalibrated").set_value("temperature").run()
    assert "is fitted on" in text_of(quiet(app))
    assert "After temperature scaling: Deciding by the scores" in text_of(app)
    for ratio, cutoff, said in (
        (19, 0.05, "a false negative is as bad as 19 false positives"),
        (1_999, 0.0005, "a false negative is as bad as 2,000 false positives"),
        (1e9, 0.000001, "a false negative is as bad as 1,000,000 false positives"),
        (0.000001, 0.999999, "a false positive is as bad as 1,000,000 false negatives"),
        (1, 0.5, "a false negative is as bad as a false positive."),
    ):
        odds().set_value(ratio).run()
        assert quiet(app).number_input(key="cutoff").value == cutoff
        assert app.select_slider(key="calviz.slider.cutoff").value == cutoff
        assert said in text_of(app)


@pytest.mark.slow
def test_decisions_on_weighted_rows_are_counted_in_rows_and_by_weight_in_1000():
    rng = np.random.default_rng(0)
    score = rng.random(600).round(3)
    hit = rng.random(600) < score
    weight = np.where(hit, 1.0, 4.0)
    rows = zip(hit.astype(int), score, weight, strict=True)
    table = "\n".join(["fraud,p,w", *(f"{h},{p},{w}" for h, p, w in rows)])
    app = upload(open_page("cutoff=0.6", "data"), "fraud.csv", table.encode())
    press(app, "Read it differently")
    give_role(app, "w", "weight")
    app.open("decisions")
    on, total = score >= 0.6, weight.sum()
    cells = [[hit & on, ~hit & on], [hit & ~on, ~hit & ~on]]
    counts = [[f"{cell.sum()}" for cell in row] for row in cells]
    # Whole ones, as there are ten or more of each.
    rates = [[f"{1000 * weight[cell].sum() / total:.0f}" for cell in row] for row in cells]
    for method in ("none", "temperature"):
        app.selectbox(key="recalibrated").set_value(method).run()
        matrix = next(d.value for d in quiet(app).dataframe if "decision" in d.value)
        shown = matrix.iloc[:, 1:3].to_numpy().tolist()
        if method == "none":
            assert shown == counts + rates
            assert f"finds {100 * weight[hit & on].sum() / weight[hit].sum():.1f}" in text_of(app)
        # By weight, too, beside a map.
        assert sum(float(value) for row in shown[2:] for value in row) == pytest.approx(1000, abs=2)


@pytest.mark.slow
def test_where_the_predicted_class_is_another_than_the_decision_at_one_half_it_is_said():
    rows = "sick,0.2,0.8\nwell,0.5,0.5\nwell,0.9,0.1\n" * 20
    app = upload(open_page(), "halves.csv", f"label,p_well,p_sick\n{rows}".encode())
    app = quiet(app.open("decisions"))
    words = "20 rows at exactly 0.5: acted on here; the predicted class is 'well'."
    assert words in text_of(app)
    # By the cutoff all 20 are false positives, by their predicted class they are right.
    assert app.dataframe[0].value["negatives"].tolist() == ["20", "20"]
    app.number_input(key="cutoff").set_value(0.499).run()
    assert "the predicted class is" not in text_of(quiet(app))


@pytest.mark.slow
def test_costs_say_where_scores_are_not_calibrated_or_have_changed():
    rng = np.random.default_rng(0)
    score = rng.uniform(0, 1, 2_000)
    for power, said in ((1, False), (3, True)):
        hit = rng.random(2_000) < score**power
        rows = "\n".join(f"{y:d},{p:.6f}" for y, p in zip(hit, score, strict=True))
        app = upload(open_page(), "mine.csv", f"label,score\n{rows}".encode()).open("decisions")
        words = "The scores are off, and a cutoff by costs is right for calibrated scores only."
        assert (words in text_of(quiet(app))) == said
        assert "If the scores are calibrated, a cutoff of 0.5 is right where" in text_of(app)
    app = quiet(upload(open_page(), "days.csv", _changed_file()).open("decisions"))
    assert "What these rows show may not hold on new ones." in text_of(app)


@pytest.mark.slow
def test_a_title_says_what_sets_and_grades_lack():
    sure = b"confidence,correct,site\n" + b"0.9,1,a\n0.6,0,b\n" * 30
    titles = {
        "prediction_sets": "A set needs the probabilities of all classes",
        "grades": "Decisions for or against a class need its probability",
    }
    one = b"label,score,site\n" + b"1,0.9,a\n1,0.6,b\n" * 30
    few = b"label,score,site\n" + b"1,0.9,a\n0,0.6,b\n1,0.7,c\n" * 3
    for content, expected in (
        (sure, titles),
        (one, {"grades": "Every one of the 60 rows has the class '1'"}),
        (few, {"prediction_sets": "There are 4 calibration rows, at least 10 are needed"}),
        (few, {"grades": "Choose the column of grades"}),
    ):
        app = upload(open_page(), "mine.csv", content)
        for page, title in expected.items():
            app = quiet(app.open(page))
            assert plain(app.title[0].value).replace("\xa0", " ") == title


@pytest.mark.slow
def test_more_than_two_classes_are_told_what_to_choose():
    app = quiet(unfold(open_page("data=digits", "decisions"), "Act or not, for one class"))
    assert app.title[0].value == "Choose the class that is decided on"
    assert not app.info
    app.selectbox(key="calviz.one_class").set_value(3).run()
    assert "AUROC" in text_of(quiet(unfold(app, "What validations report")))
    assert "View class 3" in text_of(app)
    assert app.selectbox(key="class").value == "3"
    app.selectbox(key="class").set_value("5").run()
    assert quiet(app).selectbox(key="calviz.one_class").value == 5
    app.selectbox(key="calviz.one_class").set_value(None).run()
    own = next(one for one in quiet(app).selectbox if one.label == "View (reduction)")
    assert own.value == "top-label"


@pytest.mark.slow
def test_a_column_of_grades_has_its_tests():
    rows = "1,0.1,B\n" * 30 + "0,0.1,B\n" * 70 + "1,0.02,A\n" + "0,0.02,A\n" * 99
    app = upload(open_page(), "loans.csv", f"label,p,grade\n{rows}".encode())
    app = quiet(app.open("grades"))
    assert "In 1 grade of 2 more happens than the probabilities say: B." in text_of(app)
    assert app.dataframe[-1].value["light"].tolist() == ["● green", "● red", "● red"]


@pytest.mark.slow
def test_a_link_with_a_cutoff_that_cannot_be_is_said_until_another_is_chosen():
    app = quiet(open_page("data=breast_cancer&cutoff=1.5", "decisions"))
    assert "The link asks for a cutoff of '1&#46;5': it must be a number from 0.000001" in _warned(
        app
    )
    assert app.number_input(key="cutoff").value == 0.5
    app.number_input(key="cutoff").set_value(0.2).run()
    assert not _warned(quiet(app))


@pytest.mark.slow
def test_steps_of_the_cutoff_follow_the_scores_and_any_can_be_typed():
    p = rare(3_000).probs[:, 1]
    app = quiet(upload(open_page(), "fraud.csv", rare_file()).open("decisions"))
    slider = lambda: app.select_slider(key="calviz.slider.cutoff")  # noqa: E731
    steps = np.array(slider().options, float)
    # They are among the scores, but for the one that it begins with, and along the ROC curve: many where frauds are.
    assert sorted(steps)[-2] <= p.max() + 1e-6
    assert steps.size > 100
    assert 0.1 < np.mean(steps > np.quantile(p, 0.9)) < 0.7
    assert np.mean(steps <= np.median(p)) > 0.2
    rate = float(f"{rare(3_000).labels.mean():.2g}")
    assert slider().value == app.number_input(key="cutoff").value == rate
    assert "share of positives" in app.number_input(key="cutoff").help
    app.number_input(key="cutoff").set_value(0.0123).run()
    assert slider().value == 0.0123
    acted = int(np.sum(p >= 0.0123))
    assert sum(int(v.replace(",", "")) for v in app.dataframe[1].value.iloc[0, 1:]) == acted
    step = slider().options[30]
    slider().set_value(step).run()
    assert quiet(app).number_input(key="cutoff").value == float(step)


@pytest.mark.slow
def test_the_tab_with_the_threshold_for_an_error_rate_is_one_click_away():
    app = quiet(open_page("data=breast_cancer", "decisions"))
    (link,) = [b for b in app.get("page_link") if "are at most 5 %" in b.proto.label]
    assert link.proto.page == "risk_coverage"


@pytest.mark.slow
def test_a_cutoff_that_was_not_chosen_begins_anew_for_another_file():
    app = quiet(upload(open_page(), "fraud.csv", rare_file()).open("decisions"))
    other = b"label,p\n" + b"1,0.6\n0,0.4\n0,0.6\n" * 20
    app = quiet(upload(app.open("overview"), "other.csv", other).open("decisions"))
    assert app.number_input(key="cutoff").value == 0.5


@pytest.mark.slow
def test_that_few_are_wrong_says_nothing_of_rare_events(tmp_path):
    data = rare(6_000)
    rows = zip(data.labels, data.probs[:, 1], ["calibration", "test"] * 3_000, strict=True)
    lines = ["fraud,score,split", *(f"{hit},{p:.7f},{split}" for hit, p, split in rows)]
    (tmp_path / "fraud.csv").write_text("\n".join(lines))
    app = upload(open_page(), "fraud.csv", "\n".join(lines).encode())
    app = quiet(app.open("risk_coverage"))
    text = plain(text_of(app))
    assert re.search(r"Always '0' would be right in 99\.\d\s%: what counts is '1'", text)
    for of in ("recall", "precision"):
        saved = calviz.load(tmp_path / "fraud.csv")
        choice = calviz.threshold(saved, 0.05, of=of, choose_split="calibration")
        assert choice.reading() in text.replace("\u00a0", " ")
    usual = plain(text_of(quiet(open_page("data=breast_cancer", "risk_coverage"))))
    assert "Always" not in usual
    # Of a rare event alerts lead, else what the title says.
    assert usual.index("of the predictions kept") < usual.index("of the rows acted on are not")
    assert text.index("of the rows acted on are not") < text.index("of the predictions")
    app = quiet(app.open("decisions"))
    (alerts,) = (t.value for t in app.dataframe if "alerts per 1,000" in t.value)
    score, hit = data.probs[1::2, 1].round(7), data.labels[1::2]
    for line in alerts.to_dict("records"):
        acted = score >= float(line["cutoff"])
        per_1000 = 1000 * acted.mean()
        off = 0.5 if per_1000 >= 10 else 0.06  # whole ones from ten on
        assert float(line["alerts per 1,000"]) == pytest.approx(per_1000, abs=off)
        found = 100 * hit[acted].sum() / hit.sum()
        assert float(line["events found, %"].split()[0]) == pytest.approx(found, abs=0.06)


def _warned(app):
    return "".join(w.value for w in app.warning)


# ---- The page Risk-coverage


@pytest.mark.slow
@pytest.mark.parametrize("by", ["share", "threshold", "error"])
@pytest.mark.parametrize("ranking", ["confidence", "entropy"])
def test_a_slider_says_what_a_threshold_does(by, ranking):
    app = open_page("data=breast_cancer", "risk_coverage")
    app.segmented_control(key="ranking").set_value(ranking).run()
    app.segmented_control(key="by").set_value(by).run()
    expected = "are wrong, with 95" if by == "error" else "the accuracy is"
    assert expected in text_of(quiet(app))


@pytest.mark.slow
def test_a_slice_whose_kept_rows_are_wrong_more_often_than_allowed_is_named():
    rng = np.random.default_rng(0)
    topic, score = rng.integers(0, 10, 4_000), rng.uniform(0.6, 1, 4_000)
    correct = rng.random(4_000) < score - 0.3 * (topic == 2)
    lines = [f"{p:.6f},{y:d},t{t}" for p, y, t in zip(score, correct, topic, strict=True)]
    app = upload(open_page(), "judge.csv", "\n".join(["confidence,correct,topic", *lines]).encode())
    app = app.open("risk_coverage")
    assert "Where topic" not in text_of(quiet(app))  # nothing is kept at 5 %
    app = quiet(app.slider(key="allowed").set_value(25.0).run())
    said = re.compile(
        r"Where topic = t2, \d\d\.\d % of [\d,]+ kept are wrong \(95 % CI of all 10 slices together .*\); of all kept, (.*)\."
    )
    assert re.fullmatch(r"2\d\.\d %", said.search(text_of(app).replace("\xa0", " "))[1])
    app = quiet(app.segmented_control(key="by").set_value("share").run())
    assert re.fullmatch(r"\d+\.\d %", said.search(text_of(app).replace("\xa0", " "))[1])


@pytest.mark.slow
def test_a_threshold_is_asked_for_by_the_errors_allowed_unless_a_link_names_a_share():
    app = quiet(open_page("", "risk_coverage"))
    assert app.segmented_control(key="by").value == "error"
    app = quiet(open_page("keep=70", "risk_coverage"))
    assert "Keep 70.0 % of the rows" in text_of(app).replace("\xa0", " ")
    one = upload(open_page(page="data"), "one.csv", b"label,p_a,p_b\na,0.8,0.2\n")
    assert not quiet(one.open("risk_coverage")).slider
    assert "One row cannot tell" in text_of(one)


@pytest.mark.slow
def test_what_one_split_guarantees_is_observed_on_the_other():
    app = open_page("", "risk_coverage")
    app.segmented_control(key="by").set_value("error").run()
    words = text_of(quiet(app)).replace("\xa0", " ")
    assert "Chosen on split 'calibration' (2,000 rows)." in words
    # The title says what the others show, and nothing else is promised.
    p = calviz.load("sample_data/digits.parquet", model="MLP")
    found = calviz.threshold(p, choose_split="calibration")
    right = percent(1 - found.observed).replace("\xa0", " ")
    assert f"Keep {percent(found.kept)} of the rows: ".replace("\xa0", " ") + right in words
    assert words.count("with 95 % confidence") == 2
    slice = r"Where (condition = \w+, [\d.]+ % of \d+ kept are wrong) \("
    title = plain(app.title[0].value).replace("\xa0", " ")
    assert title.endswith(f"; where {re.search(slice, plain(words))[1]}")


@pytest.mark.slow
def test_title_mark_and_table_are_of_the_rows_that_check_the_threshold(tmp_path):
    p = binary(3_000)
    lines = "".join(
        f"{label},{score:.6f}\n" for label, score in zip(p.labels, p.probs[:, 1], strict=True)
    )
    (tmp_path / "half.csv").write_text(f"label,score\n{lines}")
    app = upload(open_page(), "half.csv", (tmp_path / "half.csv").read_bytes())
    app.query_params["allowed"] = "20"
    app = quiet(app.open("risk_coverage"))
    chosen = calviz.threshold(calviz.load(tmp_path / "half.csv"), 0.2)
    assert (chosen.rows, chosen.judged.size) == (1_500, 1_500)

    def said(kept, right):
        title = plain(app.title[0].value).replace("\xa0", " ")
        assert title == f"Keep {kept} of the rows: {right} are right".replace("\xa0", " ")
        (chart,) = app.get("plotly_chart")
        (mark,) = json.loads(chart.proto.spec)["layout"]["annotations"]
        assert mark["text"] == f"<b>{right}</b> right<br>{kept} kept"

    said(percent(chosen.kept), percent(1 - chosen.observed))
    caption = "Shares, curve and table are of the 1,500 rows left to check it."
    assert caption in text_of(app)
    app = quiet(unfold(app, "Accuracy by share kept, as a table"))
    table = next(t.value for t in app.dataframe if "rows kept" in t.value)
    assert table["rows kept"].tolist()[-1] == 1_500
    # Other rankings are of the same rows.
    app = quiet(app.toggle(key="compare").set_value(True).run())
    said(percent(chosen.kept), percent(1 - chosen.observed))
    # A share that is chosen is that of all rows.
    app = quiet(app.segmented_control(key="by").set_value("share").run())
    every = RiskCoverage.compute(calviz.load(tmp_path / "half.csv"))
    said(percent(0.8), percent(every.at_coverage(0.8).accuracy))
    assert caption not in text_of(app)


@pytest.mark.slow
def test_a_promise_from_rows_that_the_model_was_trained_on_is_asked_for_and_refused():
    rng = np.random.default_rng(0)
    z = rng.normal(0, 2, 4_000)
    y = (rng.random(4_000) < 1 / (1 + np.exp(-z))).astype(int)
    known = np.arange(4_000) % 2 == 0
    p = 1 / (1 + np.exp(-z - 1.3 * known * (2 * y - 1)))
    rows = zip(np.where(known, "TRAIN", "HOLDOUT"), y, p, strict=True)
    lines = "".join(f"{split},{label},{score:.6f}\n" for split, label, score in rows)
    app = upload(open_page(page="data"), "lapses.csv", f"split,label,score\n{lines}".encode())
    app = quiet(app.open("risk_coverage"))
    assert app.selectbox(key="set-on").value == "HOLDOUT"
    assert (
        "Chosen on 50 % of the rows of split 'HOLDOUT', stratified, seed 0 (1,000 rows)"
        in text_of(app).replace("\xa0", " ")
    )
    app.selectbox(key="set-on").set_value("TRAIN").run()
    said = "It cannot be promised that at most 5.0 % of the predictions kept are wrong"
    assert plain(app.title[0].value).replace("\xa0", " ").endswith(said)
    (warning,) = app.warning
    words = plain(warning.value).replace("\xa0", " ")
    assert words.startswith("A confidence of")
    assert "The model was trained on split 'TRAIN': its Brier score is" in words
    app = quiet(app.open("recalibrate"))
    assert app.segmented_control(key="division").value == "share"
    assert "1,000 rows (50 % of the rows of split 'HOLDOUT', stratified, seed 0)" in text_of(app)


@pytest.mark.slow
def test_before_and_after_are_judged_on_rows_that_the_map_has_not_seen():
    app = open_page("recalibrated=Temperature scaling", "risk_coverage")
    words = text_of(quiet(app))
    assert "Temperature scaling is fitted on split 'calibration' (2,000 rows)" in words
    assert "both curves are of split 'test' (4,000 rows)" in words
    app.selectbox(key="split").set_value("calibration").run()
    assert "fitted on split 'test' (4,000 rows)" in text_of(quiet(app))
    # A file without splits is divided.
    upload(app, "mine.csv", b"confidence,correct\n" + b"0.9,1\n0.7,0\n0.8,1\n0.6,0\n" * 10)
    app.open("risk_coverage")
    app.selectbox(key="recalibrated").set_value("isotonic").run()
    words = text_of(quiet(app))
    assert "fitted on 50 % of the rows, stratified, seed 0 (20 rows)" in words
    assert "both curves are of all other rows (20 rows)" in words


@pytest.mark.slow
def test_with_a_map_every_count_is_of_the_scores_after_it_and_of_the_rows_judged(tmp_path):
    rng = np.random.default_rng(0)
    topic, score = rng.integers(0, 4, 8_000), rng.uniform(0, 1, 8_000)
    hit = rng.random(8_000) < np.where(topic == 2, score**4, score)
    lines = [f"{p:.6f},{y:d},t{t}" for p, y, t in zip(score, hit, topic, strict=True)]
    (tmp_path / "calls.csv").write_text("\n".join(["score,label,topic", *lines]))
    app = upload(open_page(), "calls.csv", (tmp_path / "calls.csv").read_bytes())
    app.session_state["calviz.selection"].select(SliceRule((("topic", "t2"),)))
    app.open("risk_coverage")
    app = quiet(app.slider(key="allowed").set_value(20.0).run())
    app = quiet(app.slider(key="trust-errors").set_value(20).run())
    text = text_of(app).replace("\xa0", " ")
    assert "Where topic = t2," in text
    off = "Scores are off most clearly where topic = t2: recalibrate"
    assert off in [plain(b.proto.label) for b in app.get("page_link")]
    assert "recalibration" not in text
    assert _by(app, "topic")["rows"].sum() == 8_000
    app = quiet(app.selectbox(key="recalibrated").set_value("segments").run())
    text = text_of(quiet(unfold(app, "Summaries: AURC and others"))).replace("\xa0", " ")

    result = before_and_after(calviz.load(tmp_path / "calls.csv"), "segments")
    after, before = Sample(result.after), Sample(result.before)
    at, was = (RiskCoverage.compute(s).at_risk(0.2) for s in (after, before))
    assert plain(app.title[0].value).replace("\xa0", " ") == at.headline != was.headline
    assert f"After recalibration: {at.sentence}" in text
    assert f"Before the map, on the rows that judge it: {was.sentence}" in text
    kept = after.top_scored.score >= at.threshold - 1e-12
    assert wrong_where_kept(after, kept, 0.2) == ""
    assert "kept are wrong (" not in text
    chosen = result.after.groups["topic"].mask("t2")
    right = np.count_nonzero(after.top_scored.hit[kept & chosen])
    said = f"{np.count_nonzero(kept & chosen):,} of {np.count_nonzero(chosen):,} judged are kept, and {right:,} of these are right."
    assert f"Of the selected rows (where topic = t2), {said}" in text
    assert re.search(r"They are 2\d\.\d % of the rows.*, before recalibration\.", text)
    assert "Where can it be believed after recalibration?" in text
    table, levels = _by(app, "topic"), levels_of(after.but(reduction="positive"), "topic", 0.2)
    assert table["rows"].tolist() == [s.rows for s in levels.slices.slices]
    assert table["rows"].sum() == 4_000
    assert table["kept"].tolist() == [c.cells[1] for c in levels.choices]
    assert set(table["the score is"]) == {"not found off"}
    assert "These summaries rank 4,000 rows by confidence after recalibration." in text
    assert f"{evaluate(after, ['aurc'])['aurc'].value:.4f}" in text
    assert "Select the kept rows before recalibration" in {b.label for b in app.button}
    app = quiet(unfold(app, "Accuracy by share kept, as a table"))
    curve = next(t.value for t in app.dataframe if "rows kept" in t.value)
    assert curve["threshold"].tolist()[-1] == RiskCoverage.compute(after).at_coverage(1).threshold
    assert (
        curve["threshold before"].tolist()[-1]
        == RiskCoverage.compute(before).at_coverage(1).threshold
    )


def _by(app, column):
    return next(t.value for t in app.dataframe if "from" in t.value and column in t.value)


@pytest.mark.slow
def test_a_promise_about_the_scores_before_a_map_is_not_made_of_those_after_it():
    data = rare(6_000)
    rows = zip(data.labels, data.probs[:, 1], ["calibration", "test"] * 3_000, strict=True)
    lines = ["fraud,score,split", *(f"{hit},{p:.7f},{split}" for hit, p, split in rows)]
    app = upload(open_page(), "fraud.csv", "\n".join(lines).encode())
    app = quiet(app.open("risk_coverage"))
    assert "No threshold can promise" in text_of(app)
    assert "rows cannot show" in text_of(app)
    app = quiet(app.selectbox(key="recalibrated").set_value("platt").run())
    assert "Always '0' would be right in" in text_of(app)
    assert "No threshold can promise" not in text_of(app)
    assert "rows cannot show" not in text_of(app)


@pytest.mark.slow
def test_a_change_is_said_to_be_of_the_scores_before_a_map():
    app = upload(open_page(), "days.csv", _changed_file()).open("risk_coverage")
    words = next(m.value for m in quiet(app).markdown if "may not hold on new ones" in m.value)
    assert "Before recalibration" not in words
    app = quiet(app.selectbox(key="recalibrated").set_value("platt").run())
    words = next(m.value for m in app.markdown if "may not hold on new ones" in m.value)
    assert "Before recalibration: " in plain(words)


@pytest.mark.slow
def test_the_method_that_was_advised_comes_first_for_the_model_that_it_was_advised_for():
    app = open_page("data=digits&model=MLP", "risk_coverage")
    names = app.selectbox(key="recalibrated").options
    assert not any("advised" in name for name in names)
    app = quiet(app.open("recalibrate"))
    app.multiselect(key="methods").set_value(["vector", "temperature"]).run()
    app.button(key="calviz.compare").click().run()
    next(reversed(app.session_state["calviz.jobs"]["recalibrate"].values())).wait(PATIENCE)
    app = quiet(quiet(app.run()).open("risk_coverage"))
    first, advised, *others = app.selectbox(key="recalibrated").options
    assert (first, advised) == ("not recalibrated", "Vector scaling (advised)")
    assert others == [name for name in names[1:] if name != "Vector scaling"]
    app.selectbox(key="recalibrated").set_value("vector").run()
    assert "Vector scaling is fitted on split 'calibration'" in text_of(quiet(app))
    app.radio(key="model").set_value("extra trees").run()
    assert app.selectbox(key="recalibrated").options == names


@pytest.mark.slow
def test_the_map_of_the_slice_of_the_verdict_or_of_a_comparison_can_be_chosen():
    rng = np.random.default_rng(0)
    site, z = rng.choice(list("abc"), 1_200), 1.5 * rng.normal(size=1_200)
    labels = (rng.random(z.size) < 1 / (1 + np.exp((site == "b") - z))).astype(int)
    rows = zip(labels, 1 / (1 + np.exp(-z)), site, strict=True)
    content = "label,p,site\n" + "".join(f"{y},{p:.4f},{s}\n" for y, p, s in rows)
    app = upload(open_page(), "sites.csv", content.encode()).open("risk_coverage")
    of_b, of_c = (
        f"slice+platt {json.dumps({'where': [{'name': 'site', 'values': [s], 'is': s}]})}"
        for s in "bc"
    )
    label = "Map for site = b, other rows as they are"
    assert quiet(app).selectbox(key="recalibrated").options[1] == label
    for page in ("risk_coverage", "decisions"):
        app = quiet(app.open(page))
        app = quiet(app.selectbox(key="recalibrated").set_value(of_b).run())
        assert f"{label} is fitted on" in text_of(app)
        assert app.query_params["recalibrated"] == of_b
    settings = app.session_state["calviz.chosen"]
    model = open_files.model_key(settings.entry, settings.model)
    app.session_state[session.ADVISED] = model, "slice+platt", of_b
    app = quiet(app.run())
    assert app.selectbox(key="recalibrated").options[1] == f"{label} (advised)"
    assert app.selectbox(key="recalibrated").value == of_b
    # That of the comparison takes the place of that of the verdict, advised or not.
    app.session_state[session.ADVISED] = model, "platt", of_c
    app = quiet(app.run())
    first, second, *others = app.selectbox(key="recalibrated").options[1:]
    assert (first, second) == ("Platt scaling (advised)", label.replace("b", "c", 1))
    assert label not in others
    assert app.selectbox(key="recalibrated").value == "none"
    assert "recalibrated" not in app.query_params


@pytest.mark.slow
@pytest.mark.parametrize(
    ("in_link", "shown"),
    [
        ('slice+platt {"where": {"site": "b"}}', "Map for site = b, other rows as they are"),
        ("platt", "Platt scaling"),
        ("Platt scaling (advised)", "Platt scaling"),
        ('slice+platt {"where": 1}', ""),
        ("no method", ""),
    ],
)
def test_a_link_holds_the_map_by_its_key_or_an_older_one_by_its_label(in_link, shown):
    # Nothing is off, so the verdict names no slice.
    lines = [f"{i % 10 < j},0.{j},{'abc'[i % 3]}" for i in range(120) for j in range(1, 10)]
    app = open_page(f"recalibrated={in_link}")
    app = upload(app, "sites.csv", "\n".join(["label,p,site", *lines]).encode())
    app.query_params["recalibrated"] = in_link
    app = quiet(app.open("risk_coverage"))
    assert ("is fitted on" in text_of(app)) == bool(shown)
    assert f"{shown} is fitted on" in text_of(app) or not shown
    assert ("recalibrated" in app.query_params) == bool(shown)


def test_models_are_compared_where_their_rows_are_the_same():
    app = upload(open_page(page="data"), "one.csv", GOOD)
    upload(app, "two.csv", GOOD.replace(b"0.81,0.12", b"0.71,0.22"))
    upload(app, "three.csv", GOOD.replace(b"fox,", b"dog,"))
    upload(app, "one.csv", GOOD)
    app.open("risk_coverage")
    app.toggle(key="compare-models").set_value(True).run()
    words = text_of(quiet(app))
    assert "three is not drawn: " in words
    assert "two.csv is not drawn" not in words


def _two_models(query: str = "") -> AppTest:
    rows = "\n".join(f"{'cat' if i % 3 else 'dog'},0.9,0.1,0.8,0.2,tale {i}" for i in range(60))
    content = f"label,a:cat,a:dog,b:cat,b:dog,tale\n{rows}".encode()
    return upload(open_page(query, "data"), "tales.csv", content)


@pytest.mark.slow
def test_other_models_and_the_column_beside_rows_are_two_choices():
    app = _two_models().open("reliability")
    app.segmented_control(key="beside").set_value("tale").run()
    app.open("risk_coverage")
    assert quiet(app).toggle(key="compare-models").value is False
    app.toggle(key="compare-models").set_value(True).run()
    assert app.query_params["compare-models"] == "true"
    app.open("reliability")
    assert quiet(app).segmented_control(key="beside").value == "tale"
    app.open("risk_coverage")
    assert quiet(app).toggle(key="compare-models").value is True


@pytest.mark.slow
def test_an_older_link_still_compares_the_models(monkeypatch):
    app = _two_models("beside=true").open("risk_coverage")
    assert quiet(app).toggle(key="compare-models").value is True
    assert app.query_params["compare-models"] == "true"
    assert "beside" not in app.query_params
    app.toggle(key="compare-models").set_value(False).run()
    assert "compare-models" not in app.query_params
    # So does a step back to such a link, and a saved view.
    app.query_params["beside"] = "true"
    with monkeypatch.context() as patch:
        patch.setattr(open_files, "is_history_step", lambda: True)
        app.run()
    assert quiet(app).toggle(key="compare-models").value is True
    app = _two_models("beside=tale").open("risk_coverage")
    assert quiet(app).toggle(key="compare-models").value is False


@pytest.mark.slow
def test_too_few_rows_to_fit_on_is_one_sentence():
    app = upload(open_page(page="data"), "mine.csv", GOOD)
    app.open("risk_coverage")
    app.selectbox(key="recalibrated").set_value("temperature").run()
    assert not app.exception
    assert "at least 10 are needed" in text_of(app)


@pytest.mark.slow
def test_costs_that_make_no_sense_are_one_sentence():
    app = unfold(open_page("data=breast_cancer", "decisions"), "Keep or refer")
    assert "miscalibration costs" in text_of(quiet(app))
    app.selectbox(key="recalibrated").set_value("temperature").run()
    names = [text for m in quiet(app).markdown for text in re.findall(r"\*\*(.*?):\*\* ", m.value)]
    assert names[-2:] == ["naive Bayes", "After temperature scaling"]
    app.number_input(key="cost-wrong").set_value(-1.0).run()
    assert not app.exception
    assert "a wrong prediction must cost more than a right one" in text_of(app)


@pytest.mark.slow
def test_the_table_of_few_rows_ends_with_all_of_them():
    rows = [
        f"{'b' if i % 3 == 0 else 'a'},{0.9 - 0.05 * i:.2f},{0.1 + 0.05 * i:.2f}" for i in range(7)
    ]
    text = "\n".join(["label,p_a,p_b", *rows])
    app = upload(open_page(page="data"), "few.csv", text.encode())
    app = quiet(unfold(app.open("risk_coverage"), "Accuracy by share kept, as a table"))
    table = next(t.value for t in app.dataframe if "rows kept" in t.value.columns)
    assert table["rows kept"].tolist() == list(range(1, 8))
    assert table["kept"].tolist()[-1] == "100 %"


@pytest.mark.slow
def test_each_task_has_a_threshold_or_the_rows_that_are_missing():
    rng = np.random.default_rng(0)
    task = np.repeat(["algebra", "law", "chess"], [900, 500, 40])
    score = rng.uniform(0.7, 1, task.size)
    hit = rng.random(task.size) < score
    lines = [f"{s:.6f},{int(h)},{name}" for s, h, name in zip(score, hit, task, strict=True)]
    app = upload(open_page(), "tasks.csv", "\n".join(["confidence,correct,task", *lines]).encode())
    app = app.open("risk_coverage")
    app = quiet(app.slider(key="trust-errors").set_value(10).run())
    table = next(t.value for t in app.dataframe if "from" in t.value).set_index("task")
    # The threshold is beside the name, where a phone shows it.
    assert [*table][:4] == ["from", "kept", "right of the kept", "the score is"]
    # What stands there is what the command says: a half of the rows chooses, the other half checks.
    data = calviz.ConfidencePredictions(
        confidence=score.round(6), correct=hit, groups={"task": task}
    )
    choice = calviz.threshold(data, 0.1, by="task")
    for name, one in choice.groups.items():
        assert table.loc[name, ["from", "kept", "right of the kept"]].tolist() == [*one.cells]
    assert 0.7 < float(table.loc["algebra", "from"]) < 1
    assert table.loc["algebra", "kept"] == percent(choice.groups["algebra"].kept)
    assert re.fullmatch(r"not yet: ≥ [\d,]+ more rows", table.loc["chess", "from"])
    assert table.loc["chess", "kept"] == "–"
    said = plain(" ".join(c.value for c in app.caption))
    assert "on new rows too, with 95 % confidence for all values together" in said
    assert (
        "Chosen on 50 % of the rows, stratified, seed 0 (720 rows); what is kept, and right of it, is counted on all other rows (720 rows)."
        in said
    )


# ---- A judge against people


def _judged_file(rows=400):
    rng = np.random.default_rng(0)
    people = rng.random(rows) < 0.5
    says = np.where(rng.random(rows) < 0.85, people, ~people)
    looked = rng.random(rows) < 0.3
    words = np.array(["no", "yes"])
    human = np.where(looked, words[people.astype(int)], "")
    lines = [f"{'ab'[i % 2]},{words[int(says[i])]},{human[i]}" for i in range(rows)]
    return "\n".join(["system,judge,human", *lines, ""]).encode()


@pytest.mark.slow
def test_the_judge_has_a_tab_where_there_is_one():
    app = upload(open_page(), "judged.csv", _judged_file())
    labels = lambda app: [b.proto.label for b in app.get("page_link")]  # noqa: E731
    app = quiet(app.open("decisions"))
    assert "Judge" in labels(app)
    app = quiet(app.open("judge"))
    assert "corrected by" in text_of(app)
    assert app.dataframe[0].value["what"].tolist()[:4] == ["judge alone", "Rogan-Gladen", "PPI++", "labels alone"]  # fmt: skip
    app.selectbox(key="calviz.judge.by").set_value("system").run()
    assert "'a' and 'b' are not told apart" in text_of(quiet(app)) or "corrected rate" in text_of(
        app
    )
    app.slider(key="judge-width").set_value(3.0).run()
    assert "of 3.0 points" in text_of(quiet(app))
    # As if all rows of a system belonged to one question: two questions, which tell little.
    app.selectbox(key="calviz.judge.by").set_value(None).run()
    app.selectbox(key="calviz.judge.cluster").set_value("system").run()
    low, high = app.dataframe[0].value["95 % interval"][2].split(" to ")
    assert float(high) - float(low) > 30


@pytest.mark.slow
def test_items_that_share_a_label_are_taken_and_either_word_is_the_event():
    rng = np.random.default_rng(0)
    good, words = np.tile(rng.random(1_500) < 0.6, 3), np.array(["bad", "good"])
    says = words[np.where(rng.random(4_500) < 0.85, good, ~good).astype(int)]
    human = np.where(np.arange(4_500) % 1_500 < 300, words[good.astype(int)], "")
    lines = [f"{i % 1_500 // 3},q{i % 1_500},{'xyz'[i // 1_500]},s{i % 2},{says[i]},{50 + i % 50},{human[i]}" for i in range(4_500)]  # fmt: skip
    content = "\n".join(
        ["prompt_id,item_id,attempt,system,verdict,confidence,human", *lines, ""]
    ).encode()
    app = upload(open_page(), "judges.csv", content)
    assert "which still count on the tab Judge" in text_of(app)
    next(b for b in app.button if plain(b.label).startswith("Leave out the rows")).click()
    app = quiet(quiet(app.run()).open("judge"))
    boxes = {name: app.selectbox(key=f"calviz.judge.{name}") for name in ("by", "cluster", "event")}
    assert {name: box.value for name, box in boxes.items()} == {"by": "system", "cluster": "item_id", "event": "good"}  # fmt: skip
    said = text_of(app)
    assert "corrected by 300 human labels" in said
    assert "Rows with the same 'item_id' share one human label and count as one item." in said
    assert app.number_input(key="calviz.judge.next").label == "Items to label next"
    assert "'good' in 5" in said
    rate = float(app.dataframe[0].value["value"][0].removesuffix(" %"))
    boxes["event"].set_value("bad")
    app = quiet(app.run())
    assert "'bad' in 4" in text_of(app)
    assert float(app.dataframe[0].value["value"][0].removesuffix(" %")) == pytest.approx(100 - rate)
    app.selectbox(key="calviz.judge.cluster").set_value("")
    assert "corrected by 900 human labels" in text_of(quiet(app.run()))


@pytest.mark.slow
def test_grades_of_a_judge_have_a_button_for_each_meaning():
    lines = _judged_file().decode().splitlines()
    graded = [line.replace(",yes,", ",5,").replace(",no,", ",2,") for line in lines]
    app = upload(open_page(), "grades.csv", "\n".join([*graded, ""]).encode())
    assert "One question about grades" in app.title[0].value
    assert "Still to say" not in text_of(app)
    labels = [button.label for button in app.button]
    assert "Read it like this" not in labels
    assert {"5 or more is right", "2 or less is right"} <= {*labels}
    next(button for button in app.button if button.label == "5 or more is right").click()
    app = quiet(quiet(app.run()).open("judge"))
    assert "'judge' is read so: 5 or more is right." in text_of(app)
    same = quiet(upload(open_page(), "judged.csv", _judged_file()).open("judge"))
    assert app.dataframe[0].value.equals(same.dataframe[0].value)


def test_whether_the_confidence_of_a_judge_is_right_is_asked_in_one_click():
    lines = _judged_file().decode().splitlines()
    sure = [f"{line},{60 + i % 40}%" for i, line in enumerate(lines[1:])]
    content = "\n".join([f"{lines[0]},judge_confidence", *sure, ""]).encode()
    app = upload(open_page(), "sure.csv", content)
    for page in ("data", "overview"):
        app = quiet(app.open(page))
        (ask,) = (b for b in app.button if plain(b.label) == "Is its confidence right?")
    app = quiet(quiet(ask.click().run()).open("data"))
    assert "confidence in judge_confidence" in text_of(app)
    assert "label 'human' (compared with 'judge')" in text_of(app)
    # The other question stays one click away.
    assert "See what the judge is worth" in [b.proto.label for b in app.get("page_link")]


@pytest.mark.slow
def test_the_tab_is_of_the_judge_that_is_looked_at_and_not_offered_where_nothing_is_yes():
    lines = (f"q{i},{j},{'yn'[i % k == 0]},{60 + i % 40},{'yn'[i % 3 == 0]}" for i in range(90) for j, k in (("big", 3), ("small", 4)))  # fmt: skip
    content = "\n".join(["id,judge,verdict,confidence,human", *lines, ""]).encode()
    app = quiet(upload(open_page(), "judges.csv", content).open("judge"))
    assert "corrected by 90 human labels" in text_of(app)
    app = upload(open_page(), "models.csv", content.replace(b"verdict,", b"text,"))
    labels = [b.proto.label for b in app.get("page_link")]
    assert "See what the judge is worth" not in labels


def test_other_files_have_no_tab_of_a_judge():
    app = quiet(open_page("data=breast_cancer", "decisions"))
    assert not [b for b in app.get("page_link") if b.proto.label == "Judge"]
    app = open_page("data=breast_cancer", "judge")
    assert "for files with a column 'judge'" in text_of(app)


def _changed_file(n=4_000):
    """Calibrated rows of two sites and kinds, of which one kind is off; from July on all scores are too high."""
    rng = np.random.default_rng(0)
    day = rng.integers(0, 360, n)
    kind, z = rng.integers(0, 3, n), rng.normal(0, 1.5, n)
    hit = rng.random(n) < 1 / (1 + np.exp(-(z - 1.2 * (day >= 180) - 1.5 * (kind == 2))))
    score = 1 / (1 + np.exp(-z))
    dates = np.datetime64("2025-01-01") + day.astype("timedelta64[D]")
    sites = rng.integers(0, 2, n)
    lines = (
        f"{d},{p:.6f},{y:d},s{s},k{k}"
        for d, p, y, s, k in zip(dates, score, hit, sites, kind, strict=True)
    )
    return "\n".join(["date,score,label,site,kind", *lines]).encode()


@pytest.mark.slow
def test_what_holds_on_all_rows_is_doubted_where_they_changed_and_one_click_takes_those_since():
    app = upload(open_page(), "days.csv", _changed_file())
    app = quiet(app.open("risk_coverage"))
    # The column of the slice that is most surely off stands first, before one with fewer values.
    assert app.selectbox(key="trust-by").value == "kind"
    assert "What these rows show may not hold on new ones." in text_of(app)
    (label,) = [b.label for b in app.button if b.label.startswith("Only the rows since")]
    # Where a map is fitted, this comes first, and all that is about all days second.
    app = quiet(app.open("recalibrate"))
    app.multiselect(key="methods").set_value(["temperature"]).run()
    for prepared in (False, True):
        if prepared:
            app.button(key="calviz.compare").click().run()
            next(reversed(app.session_state["calviz.jobs"]["recalibrate"].values())).wait(PATIENCE)
            app = quiet(app.run())
            assert "Not advised: a map of all days" in text_of(app)
            assert "NumPy snippet" in [b.label for b in app.get("download_button")]
        assert [b.label for b in app.button if b.proto.type == "primary"] == [label]
        assert f"Advice: fit on the rows since {label[-10:]} only" in text_of(app)
    # They are rows among those that are chosen, and the bar shows each condition.
    app = app.open("risk_coverage")
    app.selectbox(key="slice").set_value("site").run()
    app.selectbox(key="level").set_value("s1").run()
    (label,) = [b.label for b in app.button if b.label.startswith("Only the rows since")]
    app = quiet(press(app, label))
    assert "may not hold on new ones" not in text_of(app)
    assert f"Rows site = s1, date since {label[-10:]}" in text_of(app)


@pytest.mark.slow
def test_models_of_another_file_are_in_the_report_once_they_are_compared():
    rows = [f"{i},{i % 2},{0.3 + 0.4 * (i % 2)}" for i in range(60)]
    app, content = open_page(), "\n".join(["id,label,score", *rows])
    for name, text in (("one.csv", content), ("two.csv", content.replace("0.7", "0.8"))):
        app = upload(app, name, text.encode())
    missing = "open the file of another model on the page *Compare models*"
    assert missing in text_of(quiet(app.open("report")))
    quiet(app.open("compare_models"))
    assert missing not in text_of(quiet(app.open("report")))


# ---- Of which predictions?


def _moderated(n=6_000):
    rng = np.random.default_rng(1)
    p = rng.dirichlet([1.5, 0.3, 0.3], n)
    label = (rng.random((n, 1)) > p.cumsum(axis=1)[:, :2]).sum(axis=1)
    names = ("ok", "spam", "hate")
    rows = [
        f"{names[k]},{'en' if i % 3 else 'tr'}," + ",".join(f"{v:.6f}" for v in row)
        for i, (k, row) in enumerate(zip(label, p, strict=True))
    ]
    return "\n".join(["label,lang,p_ok,p_spam,p_hate", *rows]).encode()


@pytest.mark.slow
def test_everything_on_risk_coverage_is_about_the_predicted_classes_that_are_chosen(tmp_path):
    (tmp_path / "posts.csv").write_bytes(_moderated())
    data = calviz.load(tmp_path / "posts.csv")
    app = upload(open_page(), "posts.csv", _moderated()).open("risk_coverage")
    app = quiet(app.slider(key="allowed").set_value(20.0).run())
    every = calviz.threshold(data, 0.2)
    title = f"Keep {percent(every.kept)} of the rows: {percent(1 - every.observed)} are right"
    assert plain(app.title[0].value).replace("\xa0", " ").startswith(title.replace("\xa0", " "))
    app = quiet(app.multiselect(key="predicted").set_value(["hate", "spam"]).run())
    curve = RiskCoverage.compute(data, predicted=["spam", "hate"])
    promised = calviz.threshold(data, 0.2, predicted=["spam", "hate"])
    some, text = curve.at_threshold(promised.threshold), text_of(app).replace("\xa0", " ")
    assert some.threshold > every.threshold
    promise = "at most 20.0 % of what is kept as 'spam' or 'hate' is wrong"
    assert plain(app.title[0].value).replace("\xa0", " ").endswith(promise)
    assert promised.reading() in text
    assert _by(app, "lang")["rows"].sum() == curve.n
    assert app.query_params["predicted"] == "spam~hate"
    # The link of each tab was drawn with it: who comes back finds it.
    links = [link.proto.query_string for link in app.get("page_link")]
    assert any("predicted" in query for query in links)
    assert all("spam~hate" in query for query in links if "predicted" in query)
    app = quiet(app.selectbox(key="trust-by").set_value("predicted class").run())
    assert {*_by(app, "predicted class")["predicted class"]} == {"spam", "hate"}
    app = quiet(unfold(app, "Summaries: AURC and others"))
    part = Sample(data).predicted(["spam", "hate"])
    assert f"AURC {evaluate(part, ['aurc'])['aurc'].value:.3f}" in text_of(app)
    app = quiet(unfold(app, "Accuracy by share kept, as a table"))
    table = next(t.value for t in app.dataframe if "rows kept" in t.value)
    assert table["rows kept"].tolist()[-1] == promised.rows < curve.n
    app.button(key="calviz.risk.select.kept").click().run()
    # As many rows as are promised, and as the threshold that is written keeps.
    text = text_of(quiet(app)).replace("\xa0", " ")
    name = f"Kept of those predicted as 'spam' or 'hate', confidence ≥ {from_on(some.threshold)}"
    assert f"{name}, {some.kept:,} rows" in text
    top = data.probs[data.probs.argmax(axis=1) > 0].max(axis=1)
    assert np.count_nonzero(top >= float(from_on(some.threshold))) == some.kept
    assert round(100 * some.coverage) / 100 * curve.n != some.kept


@pytest.mark.slow
def test_the_view_of_a_class_is_followed_or_said_not_to_matter_by_every_tab():
    nothing = "changes nothing here:"
    app = quiet(open_page("data=digits&reduction=class&class=3", "risk_coverage"))
    assert app.multiselect(key="predicted").value == ["3"]
    assert "of what is kept as '3' is wrong" in plain(app.title[0].value)
    assert nothing not in text_of(app)
    assert "predicted" not in app.query_params
    app = quiet(app.multiselect(key="predicted").set_value([]).run())
    assert app.query_params["predicted"] == ""
    assert f"The view in the bar, class '3' against the rest, {nothing}" in plain(text_of(app))
    app = quiet(app.selectbox(key="class").set_value("5").run())
    assert app.multiselect(key="predicted").value == ["5"]
    app = quiet(app.selectbox(key="reduction").set_value("top-label").run())
    assert app.multiselect(key="predicted").value == []
    for page, link in (("decisions", "reduction=top-r"), ("prediction_sets", "reduction=top-r")):
        app = quiet(open_page(f"data=digits&{link}", page))
        assert f"The view in the bar, top 2, {nothing}" in text_of(app)
    app = quiet(open_page("data=digits&reduction=class&class=3&predicted=", "risk_coverage"))
    assert app.multiselect(key="predicted").value == []
    app = quiet(open_page("data=breast_cancer", "risk_coverage"))
    assert not app.multiselect


def test_classes_named_by_numbers_are_slices_of_their_own():
    probs = np.eye(20) * 0.81 + 0.01
    data = calviz.Predictions(
        probs=np.repeat(probs / probs.sum(1), 60, axis=0), labels=np.repeat(np.arange(20), 60)
    )
    levels = levels_of(Sample(with_predicted(data)), "predicted class", 0.1)
    assert {s.where[0][1] for s in levels.slices.slices} == {str(k) for k in range(20)}


def test_classes_are_off_where_the_page_of_classes_says_so():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.full(30, 0.05), 9_000)
    drawn = (probs.cumsum(1) > rng.random((9_000, 1))).argmax(1)
    # A third of the labels of some predicted classes are another one, of some a sixth.
    wrong = rng.random(9_000) < np.where(probs.argmax(1) < 4, 0.3, np.where(probs.argmax(1) < 12, 0.16, 0))  # fmt: skip
    labels = np.where(wrong, (drawn + 1) % 30, drawn)
    sample = Sample(with_predicted(calviz.Predictions(probs=probs, labels=labels)))
    levels = levels_of(sample, "predicted class", 0.1)
    over = np.flatnonzero(class_ranges(sample, view="predicted-class").beyond > 0)
    high = {s.where[0][1] for s in levels.slices.slices if levels.word(s) == "too high"}
    assert high == {str(k) for k in over}
    assert 0 < len(high) < len(levels.slices.off)


@pytest.mark.slow
@pytest.mark.parametrize("width", ["narrow", "wide"])
def test_on_a_phone_intervals_stand_beside_costs(width, monkeypatch):
    monkeypatch.setattr(screen, "width_class", lambda: width)
    app = quiet(open_page("data=digits", "decisions"))
    (table,) = [t.value for t in app.dataframe if "rule" in t.value]
    if width == "wide":
        assert [*table][:3] == ["rule", "cost of 1,000", "95 % interval"]
    else:
        assert [*table][:3] == ["rule", "cost of 1,000 (95 % CI)", "confidence ≥"]
        costs = table["cost of 1,000 (95 % CI)"].tolist()
        assert all(re.fullmatch(r"[\d,]+ \([\d,]+ to [\d,]+\)", plain(c)) for c in costs[:3])
        assert costs[3] == "1,000"
