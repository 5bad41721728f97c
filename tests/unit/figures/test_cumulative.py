"""The cumulative plot, CORP, the map, and the sensitivity to bins."""

import json
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

import calviz
from calviz.core.errors import OptionError
from calviz.core.predictions import Predictions
from calviz.figures.bin_sensitivity import BinSensitivity
from calviz.figures.calibration_map import CalibrationMap
from calviz.figures.corp import CorpDiagram, MiscalibrationPlane
from calviz.figures.cumulative_plot import Cumulative
from calviz.figures.marks import EDGE, extremes
from calviz.figures.reliability import Reliability, isotonic_curve, smoothed_gap
from calviz.sample.sample import Sample
from calviz.sample.step_views import steps

# ---- The cumulative plot: its maximum is the KS error, its bands are what a calibrated model shows


def binary(n, seed=0, power=1.0, decimals=None, dtype=np.float64):
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    if decimals is not None:
        score = score.round(decimals)
    labels = rng.random(n) < score**power
    return calviz.Predictions(probs=score.astype(dtype), labels=labels, name="binary")


@pytest.mark.parametrize("decimals", [None, 2])
@pytest.mark.parametrize("n", [1, 7, 600, 5_000])
def test_the_maximum_is_the_ks_error(n, decimals):
    p = binary(n, power=1.3, decimals=decimals)
    figure = Cumulative.compute(p, reduction="positive")
    result = calviz.evaluate(p, ["ks", "ks_signed", "kuiper"], reduction="positive", ci=True)
    assert figure.ks == pytest.approx(result["ks"].value, abs=1e-12)
    assert figure.kuiper == pytest.approx(result["kuiper"].value, abs=1e-12)
    assert figure.ks_signed == pytest.approx(result["ks_signed"].value, abs=1e-12)
    assert figure.at_score == pytest.approx(result["ks"].details["at_score"])
    assert figure.at_fractile == pytest.approx(result["ks"].details["at_fractile"])
    if n > 1:
        assert figure.interval == pytest.approx(result["ks"].interval, abs=1e-12)
        assert figure.bound == pytest.approx(result["ks"].noise_floor.q95, abs=1e-12)
    frame = figure.frame()
    assert frame["gap"].abs().max() == pytest.approx(figure.ks, abs=1e-12)
    assert frame.loc[frame["maximum"], "gap"].item() == figure.ks_signed


def test_frame_against_a_plain_loop():
    p = binary(80, decimals=1)
    frame = Cumulative.compute(p, reduction="positive").frame()
    score, hit = p.probs[:, 1], p.labels == 1
    for row in frame.itertuples():
        below = score <= row.score + 1e-12
        assert row.fractile == pytest.approx(below.mean())
        assert row.cumulative_score == pytest.approx(score[below].sum() / 80)
        assert row.cumulative_hits == pytest.approx(hit[below].sum() / 80)
    assert len(frame) == np.unique(score).size


def test_extremes_keep_extremes_and_ends():
    rng = np.random.default_rng(0)
    values = np.cumsum(rng.normal(size=12_345))
    kept = extremes(values, buckets=100)
    assert kept.size <= 202
    assert {0, 12_344, int(values.argmin()), int(values.argmax())} <= set(kept.tolist())
    assert (np.diff(kept) > 0).all()
    assert extremes(np.zeros(5_000), buckets=10).size <= 22
    np.testing.assert_array_equal(extremes(values[:20], buckets=10), np.arange(20))


def test_smoothing_gives_back_a_constant_gap():
    score = np.linspace(0.3, 0.9, 4_000)
    hit = np.arange(4_000) % 2 == 0  # every second one, wherever
    view = Sample(calviz.ConfidencePredictions(confidence=score, correct=hit)).view(steps)
    gap = smoothed_gap(view, np.arange(1, 4_001) / 4_000)
    # Away from the ends, where mirroring flattens the slope of a gap that is far from constant.
    np.testing.assert_allclose((score - gap)[400:-400], 0.5, atol=0.005)
    # The same total: nothing is lost at the ends.
    assert gap.mean() == pytest.approx((score - hit).mean(), abs=1e-12)


def test_smoothing_of_ties_is_their_mean():
    score = np.repeat([0.2, 0.7], 500)
    hit = np.arange(1_000) % 2 == 0
    figure = Cumulative.compute(calviz.Predictions(probs=score, labels=hit), reduction="positive")
    assert figure.score.tolist() == [0.2, 0.7]
    # Neighbouring fractiles see a little of each other across the border between the two.
    np.testing.assert_allclose(figure.probability, 0.5, atol=0.03)


def test_isotonic_levels_against_scikit_learn():
    from sklearn.isotonic import IsotonicRegression

    p = binary(300, seed=3, decimals=2)
    score, hit = p.probs[:, 1], (p.labels == 1).astype(float)
    figure = Cumulative.compute(p, reduction="positive", estimate="isotonic")
    expected = IsotonicRegression(out_of_bounds="clip").fit(score, hit).predict(figure.score)
    np.testing.assert_allclose(figure.probability, expected, atol=1e-9)
    first, last, level = isotonic_curve(Sample(p, "positive").view(steps))
    assert (np.diff(level) > 0).all()
    assert (first <= last).all()


@pytest.mark.slow
def test_bands_hold_what_they_promise():
    stays, inside = 0, []
    for seed in range(40):
        figure = Cumulative.compute(binary(300, seed=seed), reduction="positive", seed=seed)
        stays += not figure.beyond_noise
        low, high = figure.band
        inside.append(np.mean((figure.probability >= low) & (figure.probability <= high)))
    # 95 % of 40 is 38; three standard deviations are 4.
    assert stays >= 34
    assert np.mean(inside) == pytest.approx(0.95, abs=0.03)


@pytest.mark.parametrize("panels", [("a",), ("gap",), ("c", "d"), ("a", "b", "c", "d", "gap")])
@pytest.mark.parametrize("width", [None, 350])
def test_panels(panels, width):
    picture = Cumulative.compute(binary(100), reduction="positive").plot(panels=panels, width=width)
    axes = [key for key in picture.layout.to_plotly_json() if key.startswith("yaxis")]
    assert len(axes) == len(panels)
    assert {t.yaxis for t in picture.data} == {"y"} | {f"y{i}" for i in range(2, len(panels) + 1)}
    names = [t.name for t in picture.data if t.showlegend]
    assert len(names) == len(set(names))


def test_a_panel_names_the_place_of_the_gap_on_its_own_axis():
    # Scores of 0 and 1: the gap is largest at the last 0, where the scores have added up to nothing.
    p = Predictions(probs=np.repeat([0.0, 1.0], 50), labels=np.repeat([0, 1, 1], [40, 10, 50]))
    drawn = Cumulative.compute(p, reduction="positive", resamples=20).plot(panels=["b"])
    (text,) = (a.text for a in drawn.layout.annotations if "KS" in a.text)
    assert text.endswith("at cumulative score 0.00")


def test_options_are_checked():
    figure = Cumulative.compute(binary(20))
    with pytest.raises(OptionError, match="panels"):
        figure.plot(panels=("e",))
    with pytest.raises(OptionError, match="estimate"):
        Cumulative.compute(binary(20), estimate="spline")
    with pytest.raises(OptionError, match="level"):
        Cumulative.compute(binary(20), level=0.0)


@pytest.mark.usefixtures("usual_resamples")
@pytest.mark.slow
def test_the_reading():
    figure = Cumulative.compute(binary(20_000, power=1.5), reduction="positive")
    # The mean of s - s^1.5 is 0.1, and it has one sign.
    assert figure.ks == pytest.approx(0.1, abs=0.01)
    text = figure.reading()
    assert text.startswith("The forecast runs ahead of the frequency by up to ")
    assert "points too high" in text
    assert text.endswith("this is more.")
    verdict = calviz.evaluate(binary(2_000, power=1.5), ["ks"], findings=True).verdict
    assert verdict.beyond_noise
    assert figure.reading(verdict).endswith("this is beyond noise.")
    quiet = replace(verdict, beyond_noise=False)
    assert figure.reading(quiet).endswith("this is more, looked at alone.")
    assert figure.headline(verdict).startswith("The forecast runs ahead of the frequency by up to ")
    assert "noise" not in figure.headline(verdict)
    assert figure.headline(quiet).endswith(", which noise can explain")
    calm = Cumulative.compute(binary(20_000, seed=5), reduction="positive").reading()
    assert calm.endswith("within noise.")


def test_a_gap_that_lasts_to_the_end_is_written_once_only():
    # 0.8 points too high everywhere: the largest gap is that over all rows, with an interval of about a point.
    score = np.linspace(0.1, 0.9, 3_000)
    labels = np.diff(np.floor(np.cumsum(score - 0.008)), prepend=0).astype(int)
    figure = Cumulative.compute(Predictions(probs=score, labels=labels), reduction="positive")
    assert 0 < figure.ks < 0.01
    assert figure.gap[-1] > 0.9 * figure.ks
    up_to, overall = re.findall(r"by up to (\S+) points.*it is (\S+) points", figure.describe())[0]
    assert len(up_to) == len(overall)


@pytest.mark.slow
def test_a_million_rows_are_light():
    figure = Cumulative.compute(binary(1_000_000, power=1.02), reduction="positive")
    assert figure.score.size <= 602
    assert len(figure.plot(caption=True).to_json()) <= 100_000


# ---- The CORP diagram against scikit-learn's isotonic regression, its bands, and the plane of several models


def binary_of_corp(n, power=1.0, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.uniform(0.01, 0.99, n)
    labels = rng.random(n) < score**power
    return calviz.Predictions(probs=score, labels=labels, name=f"power {power}")


def test_the_curve_is_the_isotonic_regression():
    p = binary_of_corp(3_000, 1.5)
    figure = CorpDiagram.compute(p, reduction="positive")
    fitted = IsotonicRegression(out_of_bounds="clip").fit(p.probs[:, 1], p.labels)
    np.testing.assert_allclose(figure.probability, fitted.predict(figure.score), atol=1e-9)
    assert (np.diff(figure.score) > 0).all()
    assert figure.outside > 0.5
    assert "Brier score (binary) " in figure.describe()
    e = calviz.evaluate(p, ["brier_miscalibration", "nll_miscalibration"], reduction="positive")
    assert figure.parts["brier"][0] == e["brier_miscalibration"].value
    assert figure.parts["nll"][0] == e["nll_miscalibration"].value


def test_bands_are_those_of_drawn_rows_and_labels():
    p = binary_of_corp(150, 1.5)
    score, hit = p.probs[:, 1], p.labels.astype(float)
    figure = CorpDiagram.compute(p, reduction="positive")
    rng = np.random.default_rng(5)

    def curve(s, h):
        return IsotonicRegression(out_of_bounds="clip").fit(s, h).predict(figure.score)

    calibrated = [curve(score, (rng.random(150) < score).astype(float)) for _ in range(200)]
    rows = rng.integers(150, size=(200, 150))
    resampled = [curve(score[r], hit[r]) for r in rows]
    for band, drawn in ((figure.consistency, calibrated), (figure.confidence, resampled)):
        for mine, theirs in zip(band, np.quantile(drawn, [0.025, 0.975], axis=0), strict=True):
            assert np.abs(mine - theirs).mean() < 0.03
    calm = CorpDiagram.compute(binary_of_corp(2_000, seed=3), reduction="positive")
    assert calm.outside < 0.25


def test_the_plane_has_a_point_per_model():
    rng = np.random.default_rng(0)
    true = rng.uniform(0.25, 0.75, 800)
    labels = rng.random(800) < true
    models = {
        "honest": true,
        "sharp": np.clip(1.6 * (true - 0.5) + 0.5, 0.01, 0.99),
        "blind": np.full(800, 0.5),
    }
    comparison = calviz.compare_models(
        {k: calviz.Predictions(probs=v, labels=labels) for k, v in models.items()}, ["brier"]
    )
    for score in ("brier", "nll"):
        figure = MiscalibrationPlane.compute(comparison, score=score)
        frame = figure.frame().set_index("model")
        # A monotone map changes no ranking; a constant has none.
        assert frame.discrimination["honest"] == pytest.approx(
            frame.discrimination["sharp"], rel=0.02
        )
        assert frame.discrimination["blind"] == pytest.approx(0, abs=1e-12)
        assert frame.miscalibration["honest"] < frame.miscalibration["sharp"]
        assert figure.one_uncertainty
        assert figure.describe().endswith(".")
        # As the CORP diagram calls it: with more than two classes it is not the NLL.
        label = {"brier": "Brier score", "nll": "Log loss"}[score]
        assert figure.caption()[0] == f"{label} (binary)"
        drawn = figure.plot(caption=True)
        assert len(drawn.data) == 7  # lines of equal score, and the points
        assert list(drawn.data[-1].x) == frame.miscalibration.tolist()
    # The Brier score itself is half the sum over both classes.
    brier = comparison["honest"].metrics["brier"].value / 2
    of = MiscalibrationPlane.compute(comparison, score="brier").frame().set_index("model")["score"]
    assert of["honest"] == pytest.approx(brier)
    with pytest.raises(OptionError, match="score"):
        MiscalibrationPlane.compute(comparison, score="auc")


def test_names_of_models_stay_inside_the_panel():
    # Of two models near the left edge neither has its name on the left, where it would leave the panel.
    rng = np.random.default_rng(0)
    score = rng.random(400)
    labels = (rng.random(400) < score).astype(int)
    scores = {"near one": score, "near two": score**1.01, "far": 1 - 0.4 * score}
    models = {name: calviz.Predictions(probs=v, labels=labels) for name, v in scores.items()}
    figure = MiscalibrationPlane.compute(calviz.compare_models(models, resamples=10), score="brier")
    names = {a.text: a.xanchor for a in figure.plot(width=360).layout.annotations if a.xshift}
    assert names == {"near one": "left", "near two": "left", "far": "right"}


def test_names_of_models_do_not_lie_on_points():
    # The second point is where the name of the first would be.
    figure = MiscalibrationPlane(
        split=None,
        rows=100,
        score="brier",
        models=("first", "second", "third"),
        miscalibration=np.array([0.0, 0.01, 0.1]),
        discrimination=np.array([0.1, 0.099, 0.12]),
        uncertainty=np.full(3, 0.25),
    )
    first = next(a for a in figure.plot(width=360).layout.annotations if a.text == "first")
    assert (first.xanchor, first.yanchor) == ("left", "top")


def _log_loss_of(figure):
    miscalibration, discrimination, uncertainty = figure.parts["nll"]
    return miscalibration - discrimination + uncertainty


def test_it_says_why_its_log_loss_is_not_the_nll_if_scores_are_rounded_to_1():
    # The true class has 1e-12 in one row, whose score is 1 in single precision: by hand -ln 1e-12 = 27.631, and 36.044 if the
    # rest is 0 and counts as the machine epsilon. All other rows have -ln 1/2.
    probs = np.full((100, 2), 0.5, dtype=np.float32)
    probs[0] = 1e-12, 1
    p = calviz.Predictions(probs=probs, labels=np.arange(100) % 2, name="rounded")
    figure = CorpDiagram.compute(p, reduction="positive", resamples=50)
    assert _log_loss_of(figure) == pytest.approx((36.0437 + 99 * np.log(2)) / 100, abs=1e-5)
    says = figure.reading()
    assert says.count("The NLL of these rows is ") == 1
    nll = (12 * np.log(10) + 99 * np.log(2)) / 100
    assert f"The NLL of these rows is {nll:.4f}: " in says
    assert "(in 1 row it counts as 2.2e-16, a loss of 36)" in says
    # The true class does not have probability 0: the NLL is not called infinite.
    note = calviz.evaluate(p, ["nll_miscalibration"], reduction="positive")["nll_miscalibration"]
    assert "1 row (1.00 %) has a score of 1 without a hit" in note.note
    assert "NLL" not in note.note


def test_it_says_nothing_about_the_nll_if_its_log_loss_is_the_nll():
    p = binary_of_corp(500, 1.5)
    figure = CorpDiagram.compute(p, reduction="positive", resamples=50)
    nll = -np.log(p.probs[np.arange(500), p.labels]).mean()
    assert _log_loss_of(figure) == pytest.approx(nll)
    assert "NLL" not in figure.reading()


def test_it_says_why_its_log_loss_is_not_the_nll_of_many_classes():
    # Hits at 0.5, and misses at 0.5 whose true class has 0.3: (score, hit) knows only the 0.5, and each row costs ln 2.
    p = calviz.Predictions(
        probs=np.tile([0.5, 0.3, 0.2], (200, 1)), labels=np.repeat([0, 1], 100), name="three"
    )
    figure = CorpDiagram.compute(p, reduction="top-label", resamples=50)
    assert _log_loss_of(figure) == pytest.approx(np.log(2))
    nll = (np.log(1 / 0.5) + np.log(1 / 0.3)) / 2
    assert f"The NLL of these rows is {nll:.4f}: " in figure.reading()


# ---- The calibration map: closed forms of temperature scaling, and what is no function


def powered(p, t):
    q = p ** (1 / t)
    return q / q.sum(axis=1, keepdims=True)


def pair(k, t=2.0, n=2_000, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(k), size=n)
    y = rng.integers(k, size=n)
    return Predictions(probs=p, labels=y), Predictions(probs=powered(p, t), labels=y)


def test_temperature_of_two_classes_is_the_power_of_the_odds():
    before, after = pair(2)
    figure = CalibrationMap.compute(before, after, name="T = 2", reduction="positive")
    assert figure.is_function
    odds = figure.before / (1 - figure.before)
    np.testing.assert_allclose(figure.after, np.sqrt(odds) / (1 + np.sqrt(odds)), atol=1e-9)
    assert (np.diff(figure.before) >= 0).all()
    assert figure.before.size <= 602
    p = before.probs[:, 1]
    assert figure.median[0] == pytest.approx(np.median(p))
    assert [figure.before[0], figure.before[-1]] == pytest.approx([p.min(), p.max()])
    assert "T = 2" in figure.describe()


def test_the_same_temperature_is_no_function_of_the_confidence_of_four_classes():
    before, after = pair(4)
    figure = CalibrationMap.compute(before, after)
    assert not figure.is_function
    # Half of the rows of a group lie on either side of its median; the range holds nine in ten.
    order = np.argsort(before.probs.max(axis=1))
    x, y = (d.probs.max(axis=1)[order].reshape(40, 50) for d in (before, after))
    np.testing.assert_allclose(figure.before, x.mean(axis=1))
    inside = (y >= figure.low[:, None]) & (y <= figure.high[:, None])
    assert 0.88 <= inside.mean() <= 0.94
    assert (y > figure.after[:, None]).mean() == pytest.approx(0.5, abs=0.01)
    assert figure.rows[0].size == 400


def test_a_map_with_steps_is_a_function():
    before, _ = pair(2)
    p = np.where(before.probs[:, 1] > 0.5, 0.8, 0.1)
    after = Predictions(probs=p, labels=before.labels)
    figure = CalibrationMap.compute(before, after, reduction="positive")
    assert figure.is_function
    assert set(figure.after.round(9).tolist()) == {0.1, 0.8}


def test_nothing_changes_on_the_diagonal():
    before, _ = pair(3)
    figure = CalibrationMap.compute(before, before)
    assert figure.is_function
    np.testing.assert_array_equal(figure.before, figure.after)
    assert "(0.0 points)" in figure.describe()


def test_the_observed_are_those_of_the_reliability_diagram():
    before, after = pair(3)
    figure = CalibrationMap.compute(before, after, bins=10)
    diagram = Reliability.compute(before, bins=10)
    score, hits, share = figure.observed
    np.testing.assert_allclose(score, diagram.mean_score)
    np.testing.assert_allclose(hits, diagram.observed)
    np.testing.assert_allclose(share, diagram.share)


def test_other_rows_are_refused():
    before, after = pair(3)
    with pytest.raises(OptionError, match="the same rows, got 2,000 and 5"):
        CalibrationMap.compute(before, after.take(np.arange(5)))


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("k", [2, 4])
def test_what_is_drawn_is_what_the_frame_holds(theme, k):
    before, after = pair(k)
    figure = CalibrationMap.compute(before, after, name="<b>", reduction="top-label")
    frame, drawn = figure.frame(), figure.plot(theme=theme)
    curve = next(t for t in drawn.data if t.hovertemplate and "becomes" in t.hovertemplate)
    np.testing.assert_allclose(curve.y, frame.loc[frame["kind"] == "map", "after"], rtol=1e-6)
    dots = next(t for t in drawn.data if t.hovertemplate and "observed" in t.hovertemplate)
    np.testing.assert_allclose(dots.y, frame.loc[frame["kind"] == "observed", "after"])
    assert (frame["kind"] == "row").sum() == (0 if figure.is_function else 400)
    json.loads(drawn.to_json())


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_small_diagrams_share_one_scale(theme):
    before, after = pair(3)
    one, two = (Reliability.compute(d) for d in (before, after))
    first, second = (f.plot_small(theme=theme) for f in (one, two))
    for drawn, figure in ((first, one), (second, two)):
        assert list(drawn.layout.xaxis.range) == list(drawn.layout.yaxis.range) == [-EDGE, 1 + EDGE]
        points = [t for t in drawn.data if t.mode == "markers"]
        x, y, size = (
            np.concatenate(part)
            for part in zip(*((t.x, t.y, t.marker.size) for t in points), strict=True)
        )
        order = np.argsort(x)
        np.testing.assert_allclose(x[order], np.sort(figure.mean_score))
        np.testing.assert_allclose(y[order], figure.observed[np.argsort(figure.mean_score)])
        # Points of one share have one size, in whichever panel.
        shares = figure.share[np.argsort(figure.mean_score)]
        np.testing.assert_allclose(size[order], np.maximum(6, 22 * np.sqrt(shares)), rtol=1e-9)
        # Too high and too low differ in colour, as everywhere.
        stems = {t.line.color for t in drawn.data if (t.name or "").endswith("(gap)")}
        assert len(stems) == 4


@pytest.mark.parametrize(
    ("bend", "dip"), [(0.0, None), (0.005, None), (0.2, (0.4, 0.6, 0.2))], ids=str
)
def test_where_a_map_falls_is_said(bend, dip):
    # Up to 0.4 the map is the identity; from there it falls by `bend` until 0.6, and rises again.
    p = np.linspace(0, 1, 4_001)
    after = np.interp(p, [0, 0.4, 0.6, 1], [0, 0.4, 0.4 - bend, 1])
    before, mapped = (
        Predictions(probs=np.stack([1 - q, q], axis=1), labels=np.arange(p.size) % 2)
        for q in (p, after)
    )
    figure = CalibrationMap.compute(before, mapped, reduction="positive")
    assert figure.is_function
    if dip is None:
        assert figure.dip is None
        assert "falls" not in figure.describe()
    else:
        # It is looked for in 40 groups of neighbouring rows.
        assert figure.dip == pytest.approx(dip, abs=0.03)
        assert "falls by" in figure.describe()


# ---- The ECE for every number of bins is the metric at each of them


binary_of_bin_sensitivity = partial(binary, dtype=np.float32)


@pytest.mark.parametrize("decimals", [None, 1, 2])
@pytest.mark.parametrize("n", [1, 40, 3_000])
def test_every_value_is_the_metric(n, decimals):
    p = binary_of_bin_sensitivity(n, decimals=decimals)
    figure = BinSensitivity.compute(p, reduction="positive")
    for bins in (1, 2, 7, 10, 15, 64, 100):
        result = calviz.evaluate(p, ["ece", "ece_equal_mass"], reduction="positive", bins=bins)
        assert figure.ece["equal-width"][bins - 1] == pytest.approx(result["ece"].value, abs=1e-12)
        assert figure.ece["equal-mass"][bins - 1] == pytest.approx(
            result["ece_equal_mass"].value, abs=1e-12
        )


@pytest.mark.slow
@pytest.mark.parametrize("n", [200, 5_000])
def test_floor_is_that_of_the_metric(n):
    p = binary_of_bin_sensitivity(n, power=1.4)
    figure = BinSensitivity.compute(p, reduction="positive")
    for scheme, key in (("equal-width", "ece"), ("equal-mass", "ece_equal_mass")):
        for bins in (1, 15, 60):
            options = {"reduction": "positive", "bins": bins, "noise_floor": True}
            floor = calviz.evaluate(p, [key], **options)[key].noise_floor
            assert figure.floor[scheme][0][bins - 1] == pytest.approx(floor.mean, rel=0.1)
            assert figure.floor[scheme][1][bins - 1] == pytest.approx(floor.q95, rel=0.12)


def test_what_is_drawn_is_the_frame():
    figure = BinSensitivity.compute(
        binary_of_bin_sensitivity(300), reduction="positive", bins=20, scheme="equal-mass"
    )
    frame, picture = figure.frame(), figure.plot(caption=True)
    assert frame["bins"].tolist() == list(range(1, 101))
    for name, column in (("Equal-width bins", "width"), ("Equal-mass bins", "mass")):
        (trace,) = [t for t in picture.data if t.name == name]
        np.testing.assert_allclose(trace.y, 100 * frame[f"ece_equal_{column}"], rtol=1e-6)
        assert list(trace.customdata) == frame["bins"].tolist()
    assert figure.chosen == frame["ece_equal_mass"][19]
    assert "With 20 equal-mass bins it is" in figure.describe()


@pytest.mark.slow
def test_words():
    off = BinSensitivity.compute(
        binary_of_bin_sensitivity(20_000, power=1.6), reduction="positive"
    ).describe()
    assert off.endswith("above what noise explains for every number of bins.")
    calm = BinSensitivity.compute(binary_of_bin_sensitivity(2_000), reduction="positive").describe()
    assert "noise explains it" in calm
    single = BinSensitivity.compute(binary_of_bin_sensitivity(1), reduction="positive").reading()
    assert single.startswith("A single row is in one bin, however many there are")
    alone = BinSensitivity.compute(
        binary_of_bin_sensitivity(1), reduction="positive", most=1, bins=15
    )
    assert alone.chosen is None
    assert "nan" not in alone.describe()
    alone.plot(caption=True, width=350, theme="dark")


def test_options_are_checked_of_bin_sensitivity():
    with pytest.raises(OptionError, match="scheme"):
        BinSensitivity.compute(binary_of_bin_sensitivity(10), scheme="quantile")
    with pytest.raises(OptionError, match="bins"):
        BinSensitivity.compute(binary_of_bin_sensitivity(10), most=0)


@pytest.mark.slow
def test_a_picture_of_a_million_rows_is_light():
    p = binary_of_bin_sensitivity(1_000_000, power=1.02)
    figure = BinSensitivity.compute(p, reduction="positive")
    assert len(figure.plot(caption=True).to_json()) < 30_000
