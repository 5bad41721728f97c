"""Intervals and comparisons of rows in few clusters."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit

import calviz
from calviz.core.predictions import with_rows
from calviz.metrics.binned import mcs
from calviz.sample.error_bars import resampled
from calviz.sample.sample import Sample, event_sums
from calviz.verdicts.analysis import evaluate
from tests.inputs.clusters_and_weights import dependent


@pytest.mark.parametrize("clusters", [2, 6, 10, 100])
def test_intervals_of_few_clusters_are_wider_by_students_t(clusters):
    data = dependent(clusters, 5)
    metric = evaluate(data, ["mcs"], ci=True, resamples=400)["mcs"]
    sample = Sample(data, resamples=400)
    drawn = mcs(resampled(sample.view(event_sums), "bootstrap", **sample.redrawing))
    reach = np.abs(np.quantile(drawn, [0.025, 0.975]) - metric.value).max()
    # The normal quantile is replaced by that of t, for a variance with the divisor G - 1.
    wider = stats.t.ppf(0.975, clusters - 1) / stats.norm.ppf(0.975)
    wider *= math.sqrt(clusters / (clusters - 1))
    # The farther end is that of both sides.
    expected = np.clip(metric.value + wider * reach * np.array([-1, 1]), -1, 1)
    np.testing.assert_allclose(metric.interval, expected)
    assert calviz.verdict(data).interval == evaluate(data, ["mcs"], ci=True)["mcs"].interval


@pytest.mark.slow
def test_intervals_of_few_clusters_cover_skewed_metrics():
    # The slope varies more above its value than below, which resamples of 8 clusters show the wrong way round.
    covered = []
    for seed in range(120):
        rng = np.random.default_rng([3, seed])
        cluster = np.repeat(np.arange(8), 10)

        def shared(rng=rng, cluster=cluster):
            return np.sqrt(0.2) * rng.normal(size=8)[cluster] + np.sqrt(0.8) * rng.normal(size=80)

        score = expit(2 * shared())
        labels = (stats.norm.cdf(shared()) < score).astype(int)
        data = calviz.Predictions(probs=score, labels=labels, clusters=cluster)
        e = evaluate(data, ["calibration_slope"], ci=True, noise_floor=False, resamples=200)
        low, high = e["calibration_slope"].interval
        covered.append(low <= 1 <= high)
    assert np.mean(covered) > 0.94  # percentiles on their own side: 0.9


def test_a_single_cluster_has_no_paired_differences():
    sites = {"site": np.repeat(["a", "b"], 50)}
    data = dependent(2, 50).with_columns(splits=None, groups=sites, ids=None)
    other = with_rows(
        calviz.Predictions(probs=data.probs[:, 1] ** 1.1, labels=data.labels, groups=sites),
        clusters=data.clusters,
    )
    compared = calviz.compare_models(
        {"one": data, "other": other}, ["nll"], where=(("site", "a"),), resamples=100
    )
    assert compared["one"].ok
    assert not compared.pairs


@pytest.mark.slow
def test_equal_models_on_few_clusters_are_rarely_called_different():
    different = 0
    for seed in range(120):
        rng = np.random.default_rng(seed)
        cluster = np.repeat(np.arange(10), 10)
        logit = rng.normal(0, 1, 100) + rng.normal(0, 0.8, 10)[cluster]
        labels = (rng.random(100) < expit(logit)).astype(int)
        # Both models err by the same law.
        models = [
            calviz.Predictions(
                probs=expit(logit + rng.normal(0, 0.6, 10)[cluster] + rng.normal(0, 0.4, 100)),
                labels=labels,
                clusters=cluster,
                name=name,
            )
            for name in "ab"
        ]
        pairs = calviz.compare_models(models, ["nll"], resamples=200).pairs
        different += pairs["nll"]["a", "b"].verdict != "tied"
    # 5 % are expected; the upper 99 % limit of 120 draws is 13.
    assert different <= stats.binom.ppf(0.99, 120, 0.05)
