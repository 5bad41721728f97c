"""What the other view of two classes shows: said where one of the two is off, with numbers that hold."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

import calviz
from calviz.sample.sample import Sample
from calviz.verdicts.sentence import other_view


def forecasts(n, seed, truth=lambda z: z):
    """Scores expit(z), z ~ N(0, 1.5), of an event that has the probability expit(truth(z))."""
    rng = np.random.default_rng([seed, n])
    z = rng.normal(0, 1.5, n)
    return calviz.Predictions(probs=expit(z), labels=rng.random(n) < expit(truth(z)), name="x")


SHIFTED = forecasts(3_000, 1, lambda z: z - 0.35)
SHARP = forecasts(3_000, 1, lambda z: z / 1.5)


def means(data):
    """Mean forecast, frequency, mean confidence, accuracy, in percent."""
    p, y = data.probs[:, 1], data.labels
    values = (p.mean(), y.mean(), np.maximum(p, 1 - p).mean(), ((p > 0.5) == y).mean())
    return [f"{100 * v:.1f} %" for v in values]


def quick(data):
    """With as many resamples as a simulation can afford."""
    return other_view(Sample(data, "positive", resamples=199))


@pytest.mark.slow
def test_the_top_label_hides_forecasts_that_are_too_high():
    forecast, frequency, confidence, accuracy = means(SHIFTED)
    other_view = calviz.verdict(SHIFTED).other_view
    assert other_view.startswith(
        "Seen by the top label, these 3,000 rows do not show it: mean confidence "
    )
    assert f"mean confidence {confidence}, accuracy {accuracy}, ECE" in other_view
    assert other_view.endswith("Errors above and below a score of 1/2 cancel there.")
    # Asked for the top label, the verdict speaks of the positive class, and this of the top label.
    assert calviz.verdict(SHIFTED, reduction="top-label").other_view == other_view
    gap = float(forecast.split()[0]) - float(frequency.split()[0])
    verdict = calviz.verdict(SHIFTED, reduction="top-label")
    assert f"too high by {gap:.1f} points" in verdict.sentence


@pytest.mark.slow
def test_the_mean_of_the_positive_class_hides_overconfidence():
    _, _, confidence, accuracy = means(SHARP)
    other_view = calviz.verdict(SHARP).other_view
    assert "the predictions are overconfident by " in other_view
    assert other_view.endswith(f"mean confidence {confidence}, accuracy {accuracy}.")
    assert (
        "is not off on average but in places"
        in calviz.verdict(SHARP, reduction="top-label").other_view
    )


@pytest.mark.slow
def test_nothing_where_there_is_no_other_view_or_it_shows_the_same():
    three = calviz.Predictions(probs=np.full((50, 3), 1 / 3), labels=[0, 0, 0, 0, 1] * 10)
    assert calviz.verdict(three).other_view is None
    assert calviz.verdict(SHIFTED, reduction="class:0").other_view is None
    assert calviz.verdict(SHIFTED.take(np.arange(20))).other_view is None
    # All scores above 1/2: the top label is the positive class.
    high = calviz.Predictions(probs=np.full(500, 0.9), labels=[0, 1] * 250)
    assert calviz.verdict(high).other_view is None
    only = calviz.ConfidencePredictions(confidence=[0.9] * 50, correct=[False] * 50)
    assert calviz.verdict(only).other_view is None


@pytest.mark.slow
@pytest.mark.parametrize(("n", "runs"), [(100, 60), (1_000, 40)])
def test_a_calibrated_file_gets_it_in_three_of_a_hundred_samples_at_most(n, runs):
    alarms = sum(quick(forecasts(n, seed)) is not None for seed in range(runs))
    assert alarms <= binom.ppf(0.999, runs, 0.03)


@pytest.mark.slow
@pytest.mark.parametrize("truth", [lambda z: z - 0.35, lambda z: z / 1.5])
def test_it_is_said_where_it_matters(truth):
    assert sum(quick(forecasts(2_000, seed, truth)) is not None for seed in range(20)) >= 18
