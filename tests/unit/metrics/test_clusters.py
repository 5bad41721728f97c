"""Rows that belong to clusters: they are drawn, divided and tested by clusters."""

import numpy as np
import pytest

import calviz
from calviz.comparison.fitting import Division
from calviz.core.entry_specs import METRICS
from calviz.core.predictions import repeated, with_rows
from calviz.sample.error_bars import resampled
from calviz.sample.sample import Sample, event_sums
from calviz.verdicts.analysis import evaluate, verdict
from tests.inputs.clusters_and_weights import dependent, two_classes
from tests.inputs.simulated import draw_labels


def test_draws_of_clusters_have_the_variance_of_the_closed_form():
    data = dependent()
    sample = Sample(data, resamples=4_000)
    gap = data.probs[:, 1] - data.labels
    totals = np.bincount(data.clusters.codes, gap)
    sums = sample.view(event_sums)
    how = {"seed": 0, "resamples": 4_000}
    mcs = METRICS["mcs"].value
    null = mcs(resampled(sums, "under_calibration", **how))
    assert null.mean() == pytest.approx(0, abs=0.002)
    assert null.std() == pytest.approx(np.sqrt((totals**2).sum()) / data.n, rel=0.05)
    drawn = mcs(resampled(sums, "bootstrap", **how))
    around = np.sqrt(((totals - totals.mean()) ** 2).sum()) / data.n
    assert drawn.std() == pytest.approx(around, rel=0.05)
    # As many independent rows as know the share of hits as well.
    alone = sample.but(reduction="positive").data.probs[:, 1] - data.labels
    ratio = alone.var() / (data.n * null.var())
    assert sums.effective[0] == pytest.approx(data.n * ratio, rel=0.1)


def test_copies_of_rows_in_clusters_know_no_more_than_the_rows():
    plain = two_classes(300)
    copies = with_rows(repeated(plain, np.full(300, 4)), clusters=np.repeat(np.arange(300), 4))
    how = {"ci": True, "findings": False, "resamples": 1_500}
    one = evaluate(plain, ("mcs", "ece", "nll"), **how)
    four = evaluate(copies, ("mcs", "ece", "nll"), **how)
    for key in ("mcs", "nll"):
        width = one[key].interval.high - one[key].interval.low
        assert four[key].interval.high - four[key].interval.low == pytest.approx(width, rel=0.12)
    assert four["ece"].noise_floor.mean == pytest.approx(one["ece"].noise_floor.mean, rel=0.12)
    assert "within clusters" in four["ece"].note


def test_classes_of_clustered_rows_are_drawn_by_clusters():
    rng = np.random.default_rng(8)
    probs = rng.dirichlet([1, 1, 1], 300)
    labels = draw_labels(probs, rng)
    plain = calviz.Predictions(probs=probs, labels=labels)
    copies = with_rows(repeated(plain, np.full(300, 3)), clusters=np.repeat(np.arange(300), 3))
    one = evaluate(plain, ("classwise_ece", "skce", "wsece"), ci=True, findings=False)
    three = evaluate(copies, ("classwise_ece", "skce", "wsece"), ci=True, findings=False)
    floor = one["classwise_ece"].noise_floor.mean
    assert three["classwise_ece"].noise_floor.mean == pytest.approx(floor, rel=0.15)
    # What cannot be drawn so has no noise floor, and says why.
    assert three["skce"].interval is not None
    assert three["wsece"].noise_floor is None
    assert "cannot be resampled by clusters" in three["wsece"].note


@pytest.mark.slow
def test_dependent_calibrated_rows_are_not_called_miscalibrated():
    called = {"alone": 0, "clusters": 0}
    p_values = []
    for seed in range(16):
        data = dependent(groups=100, rows=30, seed=seed, share=0.8)
        called["clusters"] += verdict(data, seed=seed).beyond_noise
        floor = evaluate(data, ["ece"], noise_floor=True, findings=False)["ece"].noise_floor
        p_values.append(floor.p_value)
        if seed < 5:
            alone = calviz.Predictions(probs=data.probs, labels=data.labels)
            called["alone"] += verdict(alone, seed=seed).beyond_noise
    assert called["clusters"] <= 3  # P(more than 3 of 16 at 5 %) is below 1 %
    assert called["alone"] >= 4
    assert 0.3 < np.mean(p_values) < 0.7


def test_clusters_are_divided_whole():
    data = dependent()
    for division in (Division(fit_fraction=0.4), Division(cross_fit=5)):
        for fit, judged in division.rows(data).pairs:
            assert not set(data.clusters.codes[fit]) & set(data.clusters.codes[judged])
            assert fit.size
            assert judged.size


def test_slices_of_clustered_rows_are_tested_by_clusters():
    data = dependent()
    columns = {"half": data.clusters.codes % 2}
    named = data.with_columns(splits=None, groups=columns, ids=None)
    gap = data.probs[:, 1] - data.labels
    for one in calviz.slices(named).slices:
        rows = columns["half"] == int(one.where[0][1])
        totals = np.bincount(data.clusters.codes[rows], gap[rows])
        totals = totals[totals != 0]
        spread = (one.interval.high - one.interval.low) / 2 / 1.96
        assert spread == pytest.approx(
            totals.std(ddof=1) * np.sqrt(totals.size) / rows.sum(), rel=0.01
        )


@pytest.mark.slow
def test_errors_of_clustered_rows_reach_as_far_up_as_their_resamples():
    # The gaps of all bins share the luck of the clusters: a small ECE does not rule out a large one.
    keys = ["ece", "smece", "kde_ece"]
    true, ends = 0.06, {key: [] for key in keys}
    for seed in range(30):
        data = dependent(40, 20, seed=seed, share=0.9)
        p = data.probs[:, 1] + true
        off = calviz.Predictions(probs=p, labels=data.labels, clusters=data.clusters)
        e = evaluate(off, keys, ci=True)
        for key in keys:
            assert e[key].interval_method == "half-inverted"
            ends[key].append(e[key].interval.high)
    for key in keys:
        assert np.mean(np.array(ends[key]) < true) <= 0.1
    assert evaluate(two_classes(), ["ece"], ci=True)["ece"].interval_method == "inverted"


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_fits_to_residuals_with_changed_signs_do_not_run_away(seed):
    # Of confident scores, changed signs give hits below 0 or above the number of rows, which a steeper line fits ever better.
    rng = np.random.default_rng(seed)
    clusters = np.repeat(np.arange(40), 5)
    p = rng.choice([0.5, 0.9, 0.99, 0.999], clusters.size)
    p = np.where(rng.random(p.size) < 0.5, p, 1 - p) + rng.normal(0, 1e-4, p.size).clip(-4e-4, 4e-4)
    luck = np.where(rng.random(p.size) < 0.5, rng.random(40)[clusters], rng.random(p.size))
    data = calviz.Predictions(probs=p, labels=(luck < p).astype(int))
    keys = ["nll_refinement", "nll_calibration", "calibration_slope", "unreliability"]
    e = calviz.evaluate(
        data, keys, clusters=clusters.astype(str), ci=True, noise_floor=True, resamples=100
    )
    # A calibrated model has the slope 1 and the loss of its own probabilities, and nothing is left to recalibrate.
    for key, expected in zip(
        keys, (np.mean(-p * np.log(p) - (1 - p) * np.log1p(-p)), 0, 1, 0), strict=True
    ):
        assert e[key].noise_floor.mean == pytest.approx(expected, abs=0.2), key
    assert e["nll_calibration"].interval.high < 0.2


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_sure_rows_without_a_miss_prove_nothing(seed, weighted):
    # Of 500 rows at 0.996, none is a miss in 0.996^500 = 13 % of calibrated models. The residuals that are there are so small
    # that their clusters seem to hardly vary: with their signs alone, p-values of the slope were 0.03 to 0.05.
    score = np.repeat([0.3, 0.7, 0.996], [100, 100, 500])
    hit = np.repeat([1, 0, 1, 0, 1], [30, 70, 70, 30, 500])
    cluster = np.random.default_rng(seed).permutation(np.repeat(np.arange(70), 10))
    weights = np.tile([0.999, 1.001], 350) if weighted else None
    p = calviz.Predictions(probs=score, labels=hit, clusters=cluster, weights=weights)
    (slope,) = evaluate(p, ["calibration_slope"], reduction="positive", noise_floor=True)
    assert slope.noise_floor.p_value > 0.996**500
