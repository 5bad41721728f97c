"""Sections of the report."""

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

import calviz
from calviz.comparison.comparison_results import headline
from calviz.comparison.fitting import Division
from calviz.comparison.prediction_sets import prediction_sets, sets_of
from calviz.core.entry_specs import METRICS
from calviz.core.errors import Finding
from calviz.core.predictions import usual_columns
from calviz.core.words import NOT_SINCE, full_sentence
from calviz.figures.decision_cost import Decision
from calviz.figures.learning_curve import LearningCurves
from calviz.figures.slice_gaps import SliceGaps
from calviz.report.content import (
    PRESETS,
    Origin,
    Subject,
    TableBlock,
    Terms,
    preset_sections,
    sections_in_order,
)
from calviz.report.document import bind, make_part
from calviz.report.sections.summary import fix_words, make_definitions, make_metrics, no_fix_words
from calviz.sample.sample import Sample
from calviz.sample.slices import USUAL_RATE
from calviz.verdicts.data_checks import to_act_on
from calviz.verdicts.evaluation import Written
from calviz.verdicts.miscalibration_checks import where_to_look
from tests.inputs.command_line import run
from tests.unit.report.conftest import HTML, predictions

# ---- Sections about slices, several models and learning curves: what the library functions say, and nothing else


def report_of(subject, *keys):
    return bind([make_part(subject, sections=keys)], title="t", date="")


@pytest.fixture(scope="module")
def data():
    p = predictions(600, ("a", "b", "c"))
    groups = {HTML: np.where(np.arange(600) % 2, "odd", "</script>"), "of": np.arange(600) % 3}
    return calviz.Predictions(
        probs=p.probs, labels=p.labels, groups=groups, splits=["fit", "judge"] * 300, name="three"
    )


@pytest.mark.slow
def test_slices_are_those_of_the_library_function(data):
    report = report_of(Subject(Sample(data, bins=10)), "slices")
    columns = [*usual_columns(data), "predicted class"]
    tested = calviz.slices(data, columns, pairs=False, bins=10, rate=USUAL_RATE)
    tables = dict(report.tables())
    numbers = tables["slices"].numbers
    assert numbers["slice"].tolist() == [s.name for s in tested.slices]
    assert numbers["p_value"].tolist() == [s.p_value for s in tested.slices]
    assert sum(len(s.where) == 1 for s in tested.slices) == 2 + 3
    html = report.html()
    assert html == report_of(Subject(Sample(data, bins=10)), "slices").html()
    assert HTML not in html
    assert SliceGaps.compute(tested).answer().split(";")[0].replace("600 ", "600\u00a0") in html
    alone = replace(data, groups={})
    assert report_of(Subject(Sample(alone)), "slices").parts[0].sections == ()


def test_slices_that_were_looked_at_are_taken_as_they_are(data):
    tested = calviz.slices(data, ["of"], pairs=False, min_rows=200, against="rest", rate=0.2)
    report = report_of(Subject(Sample(data), slices=tested), "slices")
    assert len(dict(report.tables())["slices"].shown) == 3
    assert "at least 200 rows" in report.markdown()
    assert "against the other rows" in report.markdown()
    assert "at most 20 % false discoveries" in report.markdown()


def test_models_stand_once_with_the_best_marked(data):
    sharp = data.probs**3 / (data.probs**3).sum(axis=1, keepdims=True)
    other = calviz.Predictions(probs=sharp, labels=data.labels, name=HTML)
    models = {"three": data, HTML: other}
    comparison = calviz.compare_models(models, ["accuracy", "nll", "ece"], resamples=50)
    subject = Subject(Sample(data), models=comparison)
    parts = [make_part(s, sections=["models"]) for s in (subject, Subject(Sample(other)))]
    report = bind(parts, title="t", date="")
    assert [w.section.key for w in report.shared] == ["models"]
    table = dict(report.tables())["models"]
    (row,) = [r for (r, name), mark in table.marks.items() if name == "NLL" and mark == "best"]
    assert table.numbers["model"][row] == comparison.ranking("nll")[0] == "three"
    # The metric that ranks them is drawn in their order, all on one scale.
    assert table.pictured == "NLL"
    assert [b.value for b in table.bullets] == [m.metrics["nll"].value for m in comparison]
    assert report.html().count('<th scope="col" class="bullet">NLL</th>') == 1
    # Both have the same classes on top: both are best.
    assert not table.shown["Accuracy"].str.contains("≈").any()
    assert [mark for (_, name), mark in table.marks.items() if name == "Accuracy"] == ["best"] * 2
    assert {"models-nll", "models-accuracy", "models-ece"} <= {c.key for c in report.charts}
    assert HTML not in report.html()
    assert headline(comparison, "nll") in report.markdown().replace("\\", "")
    assert 'href="#models"' in report.html()


def test_a_learning_curve_says_what_the_figure_says(data):
    curve = calviz.learning_curve(
        data,
        ["temperature"],
        sizes=[50, 300],
        repeats=2,
        fit_split="fit",
        eval_split="judge",
        metrics=["ece", "accuracy"],
    )
    report = report_of(Subject(Sample(data.split("judge")), learning=curve), "learning-curve")
    text = report.markdown().replace("\\", "")
    assert LearningCurves.compute(curve, metric="ece").answer() in text
    assert [c.key for c in report.charts] == ["learning-curve-ece", "learning-curve-accuracy"]
    assert "judged on the same 300 rows (split 'judge')" in text
    assert report_of(Subject(Sample(data)), "learning-curve").parts[0].sections == ()


# ---- The report divides the rows as the app and the command line do, and its presets hold what they say


def divided(names=("calibration", "test"), n=400, **more):
    rng = np.random.default_rng(3)
    return calviz.Predictions(
        probs=rng.dirichlet(np.ones(3), n),
        labels=rng.integers(3, size=n),
        splits=np.array(names)[np.arange(n) % len(names)],
        groups={"site": np.array(["x", "y"])[np.arange(n) // 2 % 2]},
        **more,
    )


@pytest.mark.parametrize(
    "names", [("calibration", "test"), ("train", "test"), ("a", "test"), ("val", "a")]
)
def test_by_default_the_rows_are_divided_as_for_the_split_that_the_app_judges(names):
    p = divided(names)
    judged = "test" if "test" in names else None
    usual, of_split = (d.rows(p) for d in (Division(), Division.with_other_split(p, judged)))
    for one, other in zip(usual.pairs[0], of_split.pairs[0], strict=True):
        np.testing.assert_array_equal(one, other)
    assert (usual.fit, usual.evaluation) == (of_split.fit, of_split.evaluation)


def test_the_sets_of_a_report_have_their_threshold_from_the_other_split():
    p = divided()
    subject = Subject(Sample.of(p, split="test", where=(("site", "x"),)), whole=p)
    (section,) = make_part(subject, sections=["prediction-sets"]).sections
    expected = prediction_sets(
        p, fit_split="calibration", eval_split="test", within=p.groups["site"].mask("x")
    )
    assert expected.overall.rows == 100
    assert section.blocks[0].text == expected.reading()
    sets = sets_of(subject.sample, p)
    assert sets.threshold == expected.threshold
    assert (sets.evaluation.rows, sets.evaluation.how) == (100, "split 'test' where site = x")


def test_the_best_threshold_is_chosen_on_the_other_split():
    p = divided()
    assert Decision.compute(p, split="test", resamples=20).chosen_on == "calibration"
    assert Decision.compute(p, resamples=20).chosen_on is None


def test_one_answer_to_which_class():
    by = {code: Finding(code, "warning", "") for code in ("CAL002", "CAL020", "CAL013", "CAL023")}
    assert to_act_on(by.values()) == (by["CAL002"], by["CAL020"])
    without = [by["CAL002"], by["CAL013"]]
    assert to_act_on(without) == tuple(without)


def written(preset, **more):
    p = divided()
    origin = Origin("scores.csv", 1, "ab" * 32, p.n, "CSV")
    subject = Subject(
        Sample.of(p, split="test", resamples=20), whole=p, error_bars=False, origin=origin, **more
    )
    return bind([make_part(subject, sections=preset_sections(preset, subject))])


def test_one_page_has_verdict_picture_fix_file_and_date():
    report = written("one-page").dated()
    assert report.on_one_page
    keys = [w.section.key for w in report.parts[0].sections]
    assert keys == ["verdict", "diagram", "fix", "where-to-look", "threshold"]
    text = report.markdown()
    assert "No threshold can promise that at most 5.0 % of the predictions kept are wrong" in text
    sure = replace(divided(), probs=np.eye(3)[divided().labels])
    subject = Subject(Sample.of(sure, split="test"), whole=sure)
    promise = calviz.threshold(sure, choose_split="calibration").reading()
    assert promise in report_of(subject, "threshold").markdown().replace("\\", "")
    assert f"File scores.csv · {report.date}" in text
    # What was not compared is not named where advice stands.
    assert re.search(r"\*\*Temperature scaling would take the ECE of [^*]+ points", text)
    assert "split 'calibration' \\(200 rows\\)" in text
    assert 'class="one-page"' in report.html()
    compared = calviz.compare(divided(), ["temperature"], eval_split="test", resamples=200)
    text = written("one-page", comparison=compared).markdown()
    assert "**Advice: Temperature scaling.**" in text
    assert f"Maps are {compared.rows_words()}." in text.replace("\\", "")
    # An ECE that is not better beyond noise is not what the correction brings.
    better = compared["temperature"].differences["ece"].verdict == "better"
    brings = "Temperature scaling would take the ECE of", "The map brings the Brier score from"
    assert [words in text for words in brings] == [better, not better]
    subject = Subject(Sample.of(divided(), split="test", resamples=20), whole=divided())
    rows = dict(report_of(subject, "worst-rows").tables())["worst-rows"].shown
    # The first file row of the split "test" is row 2.
    assert all(int(row) % 2 == 0 for row in rows["row"])
    assert (rows["true class"] != rows["predicted"]).all()


@pytest.mark.slow
def test_after_a_change_a_report_leads_with_the_warning_and_names_the_worst_group():
    rng = np.random.default_rng(0)
    n = 6_000
    z, at = rng.normal(-1, 1.2, n), rng.integers(5, size=n)
    late = np.arange(n) >= n // 2
    hit = rng.random(n) < expit(z + 0.6 * late + 0.8 * (at == 2))
    data = calviz.Predictions(
        probs=expit(z),
        labels=hit.astype(int),
        groups={"site": np.array(["a", "b", "c", "d", "e"])[at]},
        times=np.datetime64("2024-01-01") + np.arange(n) // 20,
        ids=np.array([f"K{i}" for i in range(n)]),
    )
    compared = calviz.compare(data, ["platt", "segments"], metrics=["nll", "ece"], resamples=100)
    assert compared.advice.method == "segments"
    subject = Subject(Sample(data, resamples=20), whole=data, comparison=compared, error_bars=False)
    one = bind([make_part(subject, sections=preset_sections("one-page", subject))]).markdown()
    one = one.replace("\\", "")
    assert f"**{NOT_SINCE}**" in one
    assert "Advice" not in one
    assert "can be kept" not in one
    assert "All rows together: Group-wise calibration would take the ECE of" in one
    look = where_to_look(subject.headline)
    assert look[0].short.startswith("Unlike the rest: site = c")
    for finding in look:
        assert full_sentence(finding.short) in one
    # No row is named.
    assert not re.search(r"K\d", one)
    # The whole comparison has the same caveat beside its advice.
    (lead,) = [
        b
        for w in make_part(subject, sections=["comparison"]).sections
        for b in w.blocks
        if b.kind == "lead"
    ]
    assert lead.below.startswith(compared.advice.caveat)
    assert compared.advice.caveat.endswith(NOT_SINCE)
    # A report on rows that show no change themselves says of which change the advice knows.
    early = Subject(Sample(data.take(np.flatnonzero(~late)), resamples=20), comparison=compared)
    assert f"**{compared.advice.caveat}**" in report_of(early, "fix").markdown().replace("\\", "")


def test_a_report_says_nothing_twice():
    # The diagram is the beginning of another section, and its numbers are those of the verdict.
    part = make_part(
        Subject(Sample(predictions(200, ("a", "b", "c")), resamples=20)),
        sections=["verdict", "diagram", "reliability"],
    )
    assert [w.section.key for w in part.sections] == ["verdict", "reliability"]
    text = bind([part], date="").markdown()
    assert text.count("**Reliability diagram.**") == 1
    assert text.count("the expected calibration error is") == 1
    # What p-values mean stands beside them, also where the cards are a table.
    assert text.count("Each p-value stands alone") == 1
    # One row has no class that could be judged.
    one = Subject(Sample(predictions(200, ("a", "b", "c")).take(np.array([0]))))
    keys = [w.section.key for w in make_part(one, sections=PRESETS["default"].sections).sections]
    assert "classwise" not in keys
    assert "diagram" in keys


def test_what_would_change_nothing_is_not_said_to_change_it():
    ece = calviz.evaluate(predictions(200, ("a", "b", "c")), ["ece"], noise_floor=True)["ece"]
    words = fix_words(
        ece, replace(ece, value=ece.value + 1e-9), 1_000, "Temperature scaling", plain=False
    )
    assert words == (
        "Temperature scaling would leave the ECE of the 1,000 rows it was not fitted on "
        f"at {Written(ece).value} points, within the noise of a calibrated model."
    )
    words = fix_words(
        ece, replace(ece, value=ece.value / 2), 1_000, "Temperature scaling", plain=False
    )
    assert words.startswith("Temperature scaling would take the ECE of the 1,000 rows ")
    worse = fix_words(
        ece, replace(ece, value=2 * ece.value), 1_000, "Temperature scaling", plain=False
    )
    assert worse.endswith(
        f"{Written(ece).value} points before, {Written(ece).of(2 * ece.value)} after, the first within the noise of a calibrated model."
    )
    for value, within in ((ece.noise_floor.q95, True), (1.01 * ece.noise_floor.q95, False)):
        before = replace(ece, value=value)
        words = fix_words(
            before, replace(ece, value=value / 2), 1_000, "Temperature scaling", plain=False
        )
        which = "both" if within else "the second"
        assert words.endswith(f" points, {which} within the noise of a calibrated model.")


def test_no_correction_is_promised_where_the_advice_is_to_leave_the_model_as_it_is():
    rng = np.random.default_rng(1)
    score = rng.beta(2, 2, 60)
    rows = calviz.Predictions.from_arrays(rng.random(60) < score, score)
    for few in (rows, rows.take(np.arange(15))):
        verdict = calviz.verdict(few)
        assert verdict.direction == "undecided"
        said = "No need of a correction is shown: no miscalibration was found on these rows."
        assert said in report_of(Subject(Sample(few, resamples=200)), "fix").markdown()
        assert no_fix_words(verdict) == said
    compared = calviz.compare(rows, ["temperature", "platt"], metrics=["nll", "ece"], resamples=200)
    assert compared.advice.headline == "Advice: leave the model as it is"


def test_worst_rows_are_only_in_reports_that_name_them():
    assert {"worst-rows", "diagram"}.isdisjoint(preset_sections("full"))
    assert preset_sections("full") == tuple(s.key for s in sections_in_order())
    assert set(PRESETS["default"].sections) <= {
        s.key for s in sections_in_order(with_requested=True)
    }


def test_a_report_keeps_its_own_date():
    report = replace(written("one-page"), date="1 May")
    assert report.dated() is report


def test_sections_are_chosen_on_the_command_line(tmp_path):
    file, page = tmp_path / "two.csv", tmp_path / "page.md"
    file.write_text("label,p\n" + "0,0.2\n1,0.7\n" * 12)
    asked = ["audit", str(file), "--resamples", "20", "--markdown", page]
    assert run(*asked, "--sections", "verdict, findings").exit_code == 0
    assert [line for line in page.read_text("utf-8").splitlines() if line.startswith("## ")] == [
        "## Verdict",
        "## Findings",
    ]
    wrong = run(*asked, "--sections", "verdikt")
    assert wrong.exit_code == 2
    assert "there is no section 'verdikt'" in wrong.stderr
    both = run(*asked, "--sections", "all", "--preset", "full")
    assert "give --preset or --sections, not both." in both.stderr


# ---- What a study of a rare event reads


@pytest.fixture(scope="module")
def rare():
    rng = np.random.default_rng(2)
    p = expit(rng.normal(-3.4, 1.2, 3_000))
    days = np.datetime64("2024-01-01") + np.arange(3_000) // 10
    site = np.array(["a", "b", "c", "d", "e", "f"])[np.arange(3_000) % 6]
    return calviz.Predictions(
        probs=p, labels=(rng.random(p.size) < p) * 1, times=days, groups={"site": site}
    )


@pytest.mark.parametrize("preset", ["credit", "clinical"])
def test_definitions_are_of_the_numbers_in_the_table(rare, preset):
    subject = Subject(Sample.of(rare, resamples=100), preset=preset)
    table = next(b for b in make_metrics(subject) if isinstance(b, TableBlock))
    (terms,) = (b for b in make_definitions(subject) if isinstance(b, Terms))
    labels = [METRICS[key].label for key in table.numbers["metric"]]
    assert [term.name for term in terms.terms] == labels
    families = {METRICS[key].family for key in table.numbers["metric"]}
    assert ("Class-wise" in families) is (preset == "clinical")


def test_a_credit_report_holds_groups_and_time(rare):
    grade = np.where(rare.probs[:, 1] < np.median(rare.probs[:, 1]), "A", "B")
    subject = Subject(Sample(replace(rare, groups={"grade": grade}), resamples=99))
    assert {"slices", "over-time"} <= set(preset_sections("credit", subject))


@pytest.mark.slow
def test_a_clinical_report_holds_groups_sites_and_time_where_the_file_has_them(rare):
    def titles(subject):
        keys = set(preset_sections("clinical", subject)) & {"slices", "sites", "over-time"}
        return re.findall("<h2[^>]*>(Groups|Sites|Time)<", report_of(subject, *keys).html())

    sample = Sample(rare, resamples=99)
    assert titles(Subject(sample, sites="site")) == ["Groups", "Sites", "Time"]
    bare = Sample(replace(rare, groups={}, times=None), resamples=99)
    assert titles(Subject(bare)) == []


@pytest.mark.slow
def test_the_classes_of_a_rare_event_are_those_of_its_probability(rare):
    report = report_of(Subject(Sample(rare, resamples=99)), "classwise")
    assert set(dict(report.tables())) == {"classes-one-vs-rest"}
    assert "By true class" not in report.html()


def test_sets_of_many_classes_are_said_to_narrow_down_little():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.full(60, 5.0), 600)
    data = calviz.Predictions(probs=probs, labels=rng.integers(0, 60, 600))
    sets = prediction_sets(data, fit_fraction=0.5)
    assert re.match(r"Sets narrow down little: \d\d\.\d of 60 classes on average; ", sets.headline)
    sure = calviz.Predictions(probs=0.9 * np.eye(60)[data.labels] + 0.1 / 60, labels=data.labels)
    assert "little" not in prediction_sets(sure, fit_fraction=0.5).headline
