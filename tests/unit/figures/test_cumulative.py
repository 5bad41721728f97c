"""The cumulative plot: its maximum is the KS error, its bands are what a calibrated model shows."""

import re
from dataclasses import replace

import numpy as np
import pytest

import calviz
from calviz.core.errors import OptionError
from calviz.core.predictions import Predictions
from calviz.figures.cumulative_plot import Cumulative
from calviz.figures.curve_estimates import isotonic_curve, smoothed_gap
from calviz.figures.marks import extremes
from calviz.sample.sample import Sample
from calviz.sample.step_views import steps


def binary(n, seed=0, power=1.0, decimals=None):
    rng = np.random.default_rng(seed)
    score = rng.random(n)
    if decimals is not None:
        score = score.round(decimals)
    return calviz.Predictions(probs=score, labels=rng.random(n) < score**power, name="binary")


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
    assert text.startswith("The scores run ahead of the hits by up to ")
    assert "points too high" in text
    assert text.endswith("this is more.")
    verdict = calviz.evaluate(binary(2_000, power=1.5), ["ks"], findings=True).verdict
    assert verdict.beyond_noise
    assert figure.reading(verdict).endswith("this is beyond noise.")
    quiet = replace(verdict, beyond_noise=False)
    assert figure.reading(quiet).endswith("this is more, looked at alone.")
    assert figure.headline(verdict).startswith("The scores run ahead of the hits by up to ")
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
    up_to, overall = re.findall(r"by up to (\S+) points.*they are (\S+) points", figure.describe())[
        0
    ]
    assert len(up_to) == len(overall)


@pytest.mark.slow
def test_a_million_rows_are_light():
    figure = Cumulative.compute(binary(1_000_000, power=1.02), reduction="positive")
    assert figure.score.size <= 602
    assert len(figure.plot(caption=True).to_json()) <= 100_000
