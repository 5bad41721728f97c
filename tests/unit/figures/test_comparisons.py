"""Figures of comparisons."""

import html
import json
from dataclasses import replace

import numpy as np
import pytest

import calviz
from calviz.comparison.arena_results import Experiment, MethodScore, ResultTable
from calviz.comparison.comparison_results import (
    Alignment,
    Difference,
    ModelComparison,
    ModelResult,
    RowsUsed,
)
from calviz.comparison.leaderboards import judge
from calviz.comparison.learning_curves import LearningCurve, LearningPoint
from calviz.core.entry_specs import Interval, MetricResult, NoiseFloor
from calviz.core.errors import NotAvailable, OptionError
from calviz.core.predictions import Predictions
from calviz.figures.arena_ranks import CriticalRanks, Winrates
from calviz.figures.learning_curve import LabelWidths, LearningCurves, ModelDifferences
from calviz.figures.style import PALETTES

# ---- The figures of an arena hold what the leaderboard says, and draw it


METHODS = ("identity", "first", "second", "<b>third</b>")


def board(experiments=12):
    """The later methods are worse but for noise that cannot turn the order round."""
    rng = np.random.default_rng(0)
    results = [
        (
            Experiment("b", f"d{i}", "m", 100, 50, 2),
            [
                MethodScore(m, {s: j + 0.1 * rng.random() for s in ("brier", "nll")}, 0.1)
                for j, m in enumerate(METHODS)
            ],
        )
        for i in range(experiments)
    ]
    return judge(ResultTable.of(results), resamples=50).overall


@pytest.mark.parametrize("figure", [Winrates, CriticalRanks])
def test_on_a_phone_names_of_methods_stand_above_their_rows(figure):
    above, beside = (figure.compute(board()).plot(width=width) for width in (350, None))
    texts = (html.unescape(a.text) for a in above.layout.annotations)
    names = [text.removeprefix("<i>").removesuffix("</i>") for text in texts]
    assert names[-len(METHODS) :] == list(METHODS)
    assert above.layout.yaxis.showticklabels is False
    assert above.layout.margin.l < beside.layout.margin.l
    assert not set(METHODS) & {a.text for a in beside.layout.annotations}


def test_winrates_are_those_of_the_leaderboard():
    figure = Winrates.compute(board())
    frame = figure.frame()
    assert frame["method"].tolist() == list(METHODS)
    np.testing.assert_allclose(frame["brier"], [1, 2 / 3, 1 / 3, 0])
    assert (frame["nll_low"] <= frame["nll"]).all()
    assert "'identity' is first with 1.00" in figure.describe()
    for theme in ("light", "dark"):
        drawn = figure.plot(theme=theme, caption=True)
        assert [list(trace.x) for trace in drawn.data] == [
            frame["brier"].tolist(),
            frame["nll"].tolist(),
        ]
        assert "<b>" not in drawn.layout.yaxis.ticktext[3]


def test_ranks_and_who_is_not_told_apart():
    figure = CriticalRanks.compute(board(), score="nll")
    frame = figure.frame()
    assert frame["mean_rank"].tolist() == [1, 2, 3, 4]
    # Nemenyi: 2.569 sqrt(4 5 / (6 12)) = 1.354, so that neighbours are not told apart.
    assert frame["told_apart_from_first"].tolist() == [False, False, True, True]
    assert "critical difference 1.35" in figure.caption()[1]
    drawn = figure.plot(width=350)
    bars = [trace for trace in drawn.data if trace.mode == "lines"]
    assert [[round(float(y)) for y in bar.y] for bar in bars] == [[0, 1], [1, 2], [2, 3]]
    assert bars[0].hovertext == "identity to first: not told apart"


def test_too_few_data_sets_say_so():
    with pytest.raises(NotAvailable, match="five data sets"):
        CriticalRanks.compute(board(3))
    assert np.isfinite(Winrates.compute(board(1)).values["brier"]).all()


# ---- Learning curves: what is drawn, and the plain answer


SIZES = (50, 100, 400)
A = [(0.02, 0.03, 0.05), (0.02, 0.025, 0.03), (0.02, 0.02, 0.02)]
B = [(0.05, 0.12, 0.30), (0.04, 0.06, 0.11), (0.01, 0.01, 0.02)]


def curve(p_value=0.001, before=0.1, failures=None, **methods):
    methods = methods or {"a": A, "b": B}
    floor = NoiseFloor(mean=0.005, q95=0.01, p_value=p_value)
    return LearningCurve(
        name="<b>by hand</b>",
        points=tuple(
            LearningPoint(
                method,
                rows,
                "ece",
                mean,
                low,
                high,
                1 if rows == 400 else 8,
                None,
                before - mean,
                (high - low) / 3.3,
                0.002,
            )
            for method, bands in {"identity": [(before,) * 3] * 3, **methods}.items()
            for rows, (low, mean, high) in zip(SIZES, bands, strict=True)
        ),
        failures=failures or {},
        fit=RowsUsed("calibration", 400, "split 'calibration'"),
        evaluation=RowsUsed("test", 900, "split 'test'"),
        reduction="top-label",
        seed=0,
        uncalibrated={"ece": MetricResult("ece", before, Interval(0.08, 0.12), floor)},
        directions={"ece": "lower"},
        labels={"a": "Method A", "b": "Method B", "identity": "Uncalibrated"},
    )


def test_the_answer():
    figure = LearningCurves.compute(curve())
    assert figure.answer() == (
        "50 labels are enough for Method A to beat no calibration, by ECE. From there on it is better in at least 90 % of the draws of "
        "so many labels (95 % confidence, beyond the noise of the draws and of the 900 evaluation rows, adjusted for 3 sizes and 2 "
        "methods). Fewer were not tried. With 400, Method B has the best ECE: 1.00 points, against "
        "10.0 points uncalibrated."
    )
    assert figure.headline == "50 labels are enough for Method A to beat no calibration, by ECE"
    a, b = figure.needed()
    assert (a.method, b.method) == ("a", "b")
    # 90 % of A's gain of 0.08 is an ECE of 0.028.
    # The gain of B with 100 labels is two standard deviations of 8 draws, and with 400 labels there is one draw.
    assert figure.sentences() == (
        "Method A: better from 50 labels on; 90 % of the gain from 100 on.",
        "Method B: not shown to be enough: up to 400 labels.",
    )
    assert figure.warnings() == ()


def test_one_size_is_nothing_to_adjust_for():
    one = replace(curve(), points=tuple(p for p in curve().points if p.rows == 400))
    assert "evaluation rows, adjusted for 2 methods" in LearningCurves.compute(one).answer()


def test_rows_of_clusters_cannot_tell_how_many_are_enough():
    figure = LearningCurves.compute(replace(curve(), clustered=True))
    assert figure.headline == "No number up to 400 labels is shown to be enough, by ECE"
    assert "Rows of clusters cannot tell how many labels are enough" in figure.answer()


def test_the_answer_where_nothing_helps():
    figure = LearningCurves.compute(
        curve(before=0.005, p_value=0.4, failures={"b": "with 50 rows: no"})
    )
    assert figure.answer() == (
        "No number up to 400 labels is shown to be enough, by ECE. No method is shown to be better in at least 90 % of the draws of so many "
        "labels (95 % confidence, beyond the noise of the draws and of the 900 evaluation rows, adjusted for 3 sizes and 2 methods); a comparison of methods tests only the one map of all labels."
        " With all 400 none is better."
    )
    assert "not better with 400 labels" in figure.sentences()[0]
    noise, failed = figure.warnings()
    assert "within noise on these 900 rows" in noise
    assert "'Method B'" in failed


def test_what_changes_nothing_is_said_to():
    figure = LearningCurves.compute(curve(a=[(0.1, 0.1, 0.1)] * 3))
    assert figure.sentences() == ("Method A: the same as uncalibrated.",)


def test_the_advised_or_simplest_method_leads_and_what_holds_for_several_is_said_once():
    both = curve(a=A, b=A)
    assert LearningCurves.compute(replace(both, lead="b")).headline.startswith(
        "50 labels are enough for Method B "
    )
    assert LearningCurves.compute(both).sentences() == (
        "Method A, Method B: better from 50 labels on; 90 % of the gain from 100 on.",
    )
    # A lead that does not help gives way to a method that does.
    assert "for Method A " in LearningCurves.compute(replace(curve(), lead="b")).headline


def test_the_criterion_is_that_of_the_advice():
    measured = {key: MetricResult(key, 0.3) for key in ("nll", "brier", "accuracy")}
    plain = replace(curve(), uncalibrated=measured, directions=dict.fromkeys(measured, "lower"))
    assert plain.criteria == ("nll", "brier", "accuracy")
    measured["nll"] = MetricResult("nll", 0.3, details={"clipped_rows": 2})
    assert plain.criteria == ("brier", "nll", "accuracy")


def test_the_frame_is_what_is_drawn():
    figure = LearningCurves.compute(curve())
    frame = figure.frame()
    assert frame["rows"].tolist() == [*SIZES, *SIZES]
    assert set(frame["uncalibrated"]) == {0.1}
    assert set(frame["noise_floor"]) == {0.005}
    drawn = {t.name: t for t in figure.plot().data if t.mode == "lines+markers"}
    for method, name in (("a", "Method A"), ("b", "Method B")):
        own = frame[frame["method"] == method]
        assert drawn[name].x.tolist() == own["rows"].tolist()
        assert drawn[name].y.tolist() == pytest.approx((100 * own["mean"]).tolist())
    lines = {t.name: t.y.tolist() for t in figure.plot().data if t.mode == "lines" and t.name}
    assert lines["Uncalibrated"] == pytest.approx([10, 10])
    assert lines["Noise floor (calibrated)"] == pytest.approx([0.5, 0.5])


def test_a_curve_that_runs_off_is_cut_and_that_is_said():
    far = [(1.0, 2.0, 3.0), (0.5, 0.6, 0.7), (0.02, 0.02, 0.02)]
    picture = LearningCurves.compute(curve(a=far)).plot()
    assert picture.layout.yaxis.range[1] < 50
    # Above the panel, where no curve is.
    (note,) = picture.layout.annotations
    assert (note.text, note.y, note.yanchor) == ("Some bands are cut", 1, "bottom")
    near = [(0.06, 0.08, 0.1), (0.02, 0.025, 0.03), (0.02, 0.02, 0.02)]
    assert not LearningCurves.compute(curve(a=near)).plot().layout.annotations
    # Ten points would press curves of 2 to 3 points together.
    picture = LearningCurves.compute(curve(a=A)).plot()
    assert picture.layout.yaxis.range[1] < 6
    assert [note.text for note in picture.layout.annotations] == ["Uncalibrated 10.0 points ↑"]
    assert "Uncalibrated" not in {trace.name for trace in picture.data}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_themes_sizes_and_texts_from_files(theme):
    figure = LearningCurves.compute(curve())
    picture = figure.plot(theme=theme, caption=True, width=350)
    assert picture.layout.paper_bgcolor == PALETTES[theme].paper
    text = json.dumps(picture.to_plotly_json(), default=str)
    assert "&lt;b&gt;by hand" in text
    assert "judged on 900 rows of split test" in text
    assert picture.layout.height > figure.plot(theme=theme, width=350).layout.height
    assert "own words" in str(figure.plot(caption="own words").layout.annotations[0].text)


def test_a_metric_that_is_not_there():
    with pytest.raises(OptionError, match="'nll' is not in this learning curve; it has ece"):
        LearningCurves.compute(curve(), metric="nll")


def test_a_curve_without_points_draws_and_says_so():
    empty = LearningCurves.compute(replace(curve(), points=()))
    assert empty.answer() == "No method has a curve of the ECE to judge by."
    assert empty.plot().layout.height > 100
    assert empty.describe().endswith(".")


def test_methods_that_change_nothing_leave_the_axis_readable():
    flat = [(0.1, 0.1, 0.1)] * 3
    low, high = LearningCurves.compute(curve(a=flat, b=flat)).plot().layout.yaxis.range
    # In points; an axis of a billionth of a point had ticks such as 9.99999998.
    assert low < 9.99
    assert high > 10.01


# ---- Paired differences of models, drawn


def comparison(metric="nll", direction="lower"):
    side = "worse" if direction == "lower" else "better"
    value = {"<b>a</b>": 0.30, "b": 0.20, "c": 0.25}
    return ModelComparison(
        alignment=Alignment(
            {"b": Predictions(probs=np.full((40, 2), 0.5), labels=np.zeros(40, int))}, "order", ()
        ),
        split="test",
        reduction="top-label",
        seed=0,
        models={k: ModelResult(k, {metric: MetricResult(metric, v)}) for k, v in value.items()},
        directions={metric: direction},
        pairs={
            metric: {
                ("<b>a</b>", "b"): Difference(0.1, Interval(0.05, 0.15), side),
                ("<b>a</b>", "c"): Difference(0.05, Interval(0.01, 0.09), side),
                ("b", "c"): Difference(-0.05, Interval(-0.12, 0.02), "tied"),
            }
        },
    )


def test_the_best_is_the_reference_and_sides_are_named():
    figure = ModelDifferences.compute(comparison())
    assert figure.reference == "b"
    assert figure.models == ("c", "<b>a</b>")
    assert [d.verdict for d in figure.differences] == ["tied", "worse"]
    assert figure.frame()["difference"].tolist() == pytest.approx([0.05, 0.10])
    assert figure.describe() == (
        "NLL of 2 models minus that of 'b' on the same 40 rows: 'c' not told apart from it; "
        "'<b>a</b>' worse beyond noise."
    )


def test_another_reference_turns_the_signs():
    figure = ModelDifferences.compute(comparison(), reference="<b>a</b>")
    assert figure.models == ("b", "c")
    assert [d.value for d in figure.differences] == pytest.approx([-0.10, -0.05])
    assert [d.verdict for d in figure.differences] == ["better", "better"]
    higher = ModelDifferences.compute(comparison("accuracy", "higher"), metric="accuracy")
    assert higher.reference == "<b>a</b>"
    assert [d.verdict for d in higher.differences] == ["worse", "worse"]
    assert higher.text(higher.differences[0]) == "−5.0 points (95 % CI −9.0 to −1.0)"


def test_what_is_drawn_is_the_frame():
    figure = ModelDifferences.compute(comparison())
    picture = figure.plot()
    frame = figure.frame()
    points = picture.data[1:]
    assert [t.x[0] for t in points] == frame["difference"].tolist()
    ends = [(t.x[0] - t.error_x.arrayminus[0], t.x[0] + t.error_x.array[0]) for t in points]
    np.testing.assert_allclose(ends, frame[["low", "high"]])
    assert [t.marker.symbol for t in points] == ["circle-open", "square"]
    numbers = ["0.050 (95 % CI −0.020 to 0.120), tied", "0.100 (95 % CI 0.050 to 0.150), worse"]
    texts = [a.text for a in picture.layout.annotations]
    assert texts == [*numbers, "← better", "worse →"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_themes_and_texts_from_files(theme):
    picture = ModelDifferences.compute(comparison()).plot(theme=theme, caption=True, width=350)
    assert picture.layout.paper_bgcolor == PALETTES[theme].paper
    text = json.dumps(picture.to_plotly_json(), default=str)
    assert "&lt;b&gt;a" in text
    assert "<b>a" not in text
    assert "40 rows" in text
    # On a narrow page a name stands above its row, with the numbers.
    beside = [a.text for a in picture.layout.annotations if a.yref == "y"]
    assert [name for name, _, _ in (text.partition(" ") for text in beside)] == [
        "b",
        "c",
        "&lt;b&gt;a&lt;/b&gt;",
    ]
    assert not picture.layout.yaxis.showticklabels


def test_what_is_not_there_is_refused():
    with pytest.raises(OptionError, match="no paired differences of 'ece'; known: nll"):
        ModelDifferences.compute(comparison(), metric="ece")
    with pytest.raises(OptionError, match="'d' has no 'nll'"):
        ModelDifferences.compute(comparison(), reference="d")


def test_a_metric_without_differences_says_why():
    hit = (np.arange(100) < 3).astype(int)
    scores = np.random.default_rng(0).uniform(0.05, 0.5, (2, 100))
    models = {
        name: calviz.Predictions(probs=score, labels=hit)
        for name, score in zip("ab", scores, strict=True)
    }
    compared = calviz.compare_models(models, metrics=["auprc", "brier"], reduction="positive")
    with pytest.raises(OptionError, match="has no value on some resampled or simulated rows"):
        ModelDifferences.compute(compared, metric="auprc")


# ---- A judge's labels


def test_widths_of_a_judge_are_those_of_its_intervals():
    rng = np.random.default_rng(0)
    people = rng.random(3_000) < 0.4
    says = np.where(rng.random(3_000) < 0.9, people, ~people).astype(float)
    judged = calviz.judge(says, np.where(rng.permutation(3_000) < 200, people, np.nan))
    figure = LabelWidths.compute(judged)
    rows = figure.frame().set_index("labels")
    assert rows["with_judge"][200] == pytest.approx(judged.corrected["ppi"].width, rel=1e-6)
    assert rows["labels_alone"][200] == pytest.approx(judged.corrected["human"].width, rel=0.02)
    # With all rows labelled, the judge adds nothing; before, more labels and the judge both help.
    assert rows["with_judge"][3_000] == pytest.approx(rows["labels_alone"][3_000])
    assert (rows["with_judge"].loc[:2_900] < rows["labels_alone"].loc[:2_900]).all()
    assert (rows.diff().dropna() < 0).all().all()
    assert "With 200 labels" in figure.describe()
    for theme in ("light", "dark"):
        drawn = figure.plot(theme=theme)
        assert list(drawn.data[1].y) == pytest.approx(100 * rows["with_judge"].to_numpy())
        assert drawn.data[2].x[0] == 200
