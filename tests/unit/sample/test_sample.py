"""A sample says what is looked at; it makes each view once, and views that are the same are one object."""

from dataclasses import FrozenInstanceError
from functools import partial

import numpy as np
import pytest

import calviz
from calviz.core.errors import InputError, OptionError
from calviz.core.predictions import Predictions
from calviz.sample.sample import Sample, bin_sums, event_sums, top_label_sums


def sample(reduction="top-label"):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), size=100)
    return Sample(Predictions(probs=probs, labels=rng.integers(3, size=100)), reduction)


def test_views_are_made_once_per_maker_and_parameters():
    s = sample()
    equal_width = partial(bin_sums, scheme="equal-width")
    assert s.view(equal_width) is s.view(equal_width)
    assert s.view(equal_width) is s.view(bin_sums, scheme="equal-width")
    assert s.view(equal_width) is not s.view(equal_width, bins=20)


def test_the_top_label_is_one_view_for_accuracy_and_mcs():
    s = sample()
    assert s.view(top_label_sums) is s.view(event_sums)


@pytest.mark.parametrize("reduction", ["class:1", "top-2"])
def test_accuracy_looks_at_the_top_label_under_every_reduction(reduction):
    s, top = sample(reduction), sample()
    np.testing.assert_array_equal(s.view(top_label_sums).cells, top.view(top_label_sums).cells)
    assert s.view(event_sums).score_sum[0] == pytest.approx(s.events.score.sum())
    assert s.view(event_sums).hit_sum[0] == s.events.hit.sum()


def grouped():
    rng = np.random.default_rng(1)
    return Predictions(
        probs=rng.dirichlet(np.ones(3), size=90),
        labels=rng.integers(3, size=90),
        splits=["fit"] * 30 + ["test"] * 60,
        groups={"month": ["5", "6", "7"] * 30},
    )


def test_a_sample_takes_the_rows_of_a_split_and_a_slice_and_says_so():
    p = grouped()
    seen = Sample.of(p, split="test", where=(("month", "5"),), scheme="sturges")
    expected = np.arange(90)[30::3]
    np.testing.assert_array_equal(seen.data.probs, p.probs[expected])
    # 20 rows: ceil(log2 20) + 1 = 6.
    assert seen.words == (
        "20 rows · split test · month = 5 · top label · 6 equal-width bins, by Sturges' rule"
    )
    assert Sample(p, bins=1).words == "90 rows · all splits · top label · 1 equal-width bin"
    assert Sample(p, scheme="equal-mass").ece_key == "ece_equal_mass"


def test_nothing_else_asked_is_the_same_sample():
    seen = Sample.of(grouped(), split="test", bins=7)
    assert Sample.of(seen) is Sample.of(seen, bins=7) is seen
    other = Sample.of(seen, bins=8)
    assert (other.bins, other.split) == (8, "test")
    assert other.events is seen.events
    narrower = Sample.of(seen, where=(("month", "6"),))
    assert (narrower.data.n, narrower.bins, narrower.split) == (20, 7, "test")
    assert narrower.events is not seen.events
    with pytest.raises(FrozenInstanceError):
        seen.bins = 3
    with pytest.raises(OptionError, match="'seed' must be a whole number, 0 or more"):
        seen.but(seed=-1)


@pytest.mark.slow
def test_what_is_large_can_be_let_go_and_results_stay():
    rng = np.random.default_rng(2)
    score = rng.random(20_000)
    seen = Sample(Predictions(probs=score, labels=(rng.random(20_000) < score).astype(int)))
    evaluation = calviz.evaluate(seen, ["ece", "ks"], ci=True, findings=True)
    events, sums = seen.events, seen.view(bin_sums)
    seen.let_go()
    assert seen.events is not events
    assert calviz.evaluate(seen, ["ece", "ks"], ci=True, findings=True) == evaluation
    np.testing.assert_array_equal(seen.view(bin_sums).cells, sums.cells)


def test_comparisons_measure_the_ece_over_the_bins_that_are_asked_for():
    rng = np.random.default_rng(3)
    score = rng.random(400)
    p = Predictions(probs=score, labels=(rng.random(400) < score**2).astype(int))
    how = {"bins": 7, "scheme": "equal-mass"}
    split = {"fit_fraction": 0.5, "metrics": ("ece",), "resamples": 50}
    comparison = calviz.compare(p, ["platt"], **split, **how)
    assert comparison.bins_words == "7 equal-mass bins"
    for m in comparison:
        by_hand = calviz.figures.Reliability.compute(m.calibrated, **how)
        assert m.metrics["ece"].value == by_hand.ece
        assert m.metrics["ece"].value != calviz.evaluate(m.calibrated, ["ece"])["ece"].value
    # The paired value is made of the same bins.
    judged = {m.label: m.calibrated for m in comparison}
    models = calviz.compare_models(judged, ["ece"], resamples=50, **how)
    names = list(judged)
    for name in names:
        assert models[name].metrics["ece"].value == pytest.approx(
            calviz.evaluate(judged[name], ["ece"], **how)["ece"].value
        )
    assert models.bins_words == "7 equal-mass bins"
    curve = calviz.learning_curve(
        p, ["platt"], sizes=[50], repeats=1, fit_fraction=0.5, metrics=("ece",), **how
    )
    assert curve.uncalibrated["ece"].value == comparison["identity"].metrics["ece"].value
    assert curve.bins_words == "7 equal-mass bins"


def test_columns_for_a_sample_are_those_of_the_rows_that_it_holds():
    weights = np.concatenate([np.zeros(10), np.linspace(1, 2, 90)])
    p = np.random.default_rng(0).random(100)
    data = calviz.Predictions(probs=p, labels=(p > 0.4).astype(int), weights=weights)
    sample = Sample(data)
    of_rows = calviz.evaluate(sample, ["ece"], sample_weight=weights[10:])["ece"].value
    assert of_rows == calviz.evaluate(data, ["ece"], sample_weight=weights)["ece"].value
    for column in ({"sample_weight": weights}, {"clusters": np.arange(100) // 2}):
        with pytest.raises(
            InputError, match=r"for 90 rows: a sample holds .* without those of wei"
        ):
            calviz.evaluate(sample, ["ece"], **column)
