"""Sections about slices, several models and learning curves: what the library functions say, and nothing else."""

from dataclasses import replace

import numpy as np
import pytest

import calviz
from calviz.comparison.comparison_results import headline
from calviz.figures.learning_curve import LearningCurves
from calviz.figures.slice_gaps import SliceGaps
from calviz.report.content import Subject
from calviz.report.document import bind, make_part
from calviz.sample.sample import Sample
from calviz.sample.slices import USUAL_RATE, usual_columns
from tests.unit.report.conftest import HTML, predictions


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
    tested = calviz.slices(data, usual_columns(data), pairs=False, bins=10, rate=USUAL_RATE)
    tables = dict(report.tables())
    numbers = tables["slices"].numbers
    assert numbers["slice"].tolist() == [s.name for s in tested.slices]
    assert numbers["p_value"].tolist() == [s.p_value for s in tested.slices]
    assert len(tested.slices) == 2 + 3
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
    # Both have the same classes on top.
    assert table.shown["Accuracy"].str.contains("≈").tolist() == [False, True]
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
