"""Statements about decisions, against simulated files with known truth."""

import numpy as np
import pytest
from scipy.stats import binom

import calviz
from benchmarks.claims import SIMULATIONS, decisions, every_simulation, too_few, too_many
from calviz.figures.net_benefit import NetBenefit
from calviz.figures.risk_coverage import RiskCoverage
from calviz.sample.sample import Sample


@pytest.fixture(scope="module", autouse=True)
def simulations():
    every_simulation()


def rate(key, files):
    values = SIMULATIONS[key].outcomes(files, seed=11)
    return sum(values) / files


@pytest.mark.slow
@pytest.mark.parametrize(
    "case",
    [
        "calibrated, 2 classes, costs 4, 1, 0, 200 rows",
        "calibrated, ties, costs 10, 3, 1, 200 rows",
    ],
)
def test_a_calibrated_model_costs_nothing_that_is_clear_of_chance(case):
    assert rate(f"cost-of-miscalibration: said of calibrated models, {case}", 60) <= too_many(
        0.025, 60
    )


@pytest.mark.slow
def test_what_miscalibration_costs_is_found_and_covered():
    case = "logits x 2, 2 classes, costs 10, 1, 0, 1,000 rows"
    key = "cost-of-miscalibration: the interval covers the true cost"
    assert rate(f"{key}, {case}", 60) >= too_few(0.93, 60)
    key = "cost-of-miscalibration: said of models that are off"
    assert rate(f"{key}, {case}", 60) >= 0.9


@pytest.mark.parametrize(
    "case", ["uniform, 30 % hits", "nearly constant, 30 % hits", "rare, 2 % hits"]
)
def test_useless_scores_are_not_called_useful(case):
    key = f"useful-range: said of useless scores, {case}, 200 rows"
    assert rate(key, 20) <= too_many(0.05, 20)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["logits x 2", "logits + 1.5", "ten values"])
def test_only_useful_cutoffs_are_named(case):
    assert rate(
        f"useful-range: names a cutoff where it is not, {case}, 1,000 rows", 60
    ) <= too_many(0.05, 60)
    key = f"useful-range: share of the useful cutoffs that is named, {case}, 1,000 rows"
    assert rate(key, 10) > 0.4


def test_a_cutoff_is_named_only_if_both_binomial_tests_reject():
    rng = np.random.default_rng(2)
    score = rng.beta(2, 2, 500)
    hit = rng.random(500) < score
    f = NetBenefit.compute(
        calviz.Predictions(probs=score, labels=hit.astype(int)), reduction="positive"
    )
    acted = score >= f.cutoff[:, None]
    against_all = binom.cdf((hit & ~acted).sum(axis=1), (~acted).sum(axis=1), f.cutoff)
    against_none = binom.sf((hit & acted).sum(axis=1) - 1, acted.sum(axis=1), f.cutoff)
    p = np.maximum(against_all, against_none)
    # More than one test and fewer than 198 independent ones.
    assert p[f.useful].max() < 0.05
    assert (p[~f.useful] > 0.05 / 198).all()
    assert "between" in f.reading()
    assert f.frame()["useful"].tolist() == f.useful.tolist()


def test_with_few_clusters_no_cutoff_is_named():
    rng = np.random.default_rng(2)
    score = rng.random(400)
    data = calviz.Predictions(
        probs=score, labels=(rng.random(400) < score).astype(int), clusters=np.arange(400) % 7
    )
    f = NetBenefit.compute(data, reduction="positive")
    assert not f.useful.any()
    assert f.reading().endswith("on nobody: that takes 8 clusters.")


@pytest.mark.parametrize(
    "case", ["calibrated, 10 %, 200 rows", "10.01 % wrong everywhere, 10 %, 200 rows"]
)
def test_the_risk_is_larger_than_promised_in_one_of_twenty_files_at_most(case):
    assert rate(f"threshold-risk: the risk is larger, {case}", 100) <= too_many(0.05, 100)


@pytest.mark.slow
def test_tasks_of_few_rows_have_no_threshold_that_breaks_its_promise():
    for rows in (20, 60):
        key = f"threshold-risk: the risk of any of 13 tasks is larger, 10 %, {rows} rows each"
        assert rate(key, 40) <= too_many(0.05, 40)


@pytest.mark.parametrize("rows", ["1,000 rows", "1,000 rows, half of them to choose on"])
def test_what_is_kept_as_some_classes_is_no_more_often_wrong_than_promised(rows):
    key = "threshold-risk: the risk of the chosen predicted classes is larger"
    assert rate(f"{key}, logits x 1, first class + 0.7, 10 %, {rows}", 60) <= too_many(0.05, 60)


@pytest.mark.slow
def test_more_rows_are_kept_than_by_a_union_bound_over_a_binary_search():
    # Selection with guaranteed risk (Geifman & El-Yaniv 2017, algorithm 2), whose every test has a share of the level.
    rng = np.random.default_rng(4)
    kept = {"ours": 0, "theirs": 0}
    for _ in range(40):
        rows = decisions.top_of_two(1_000, rng, spread=2.5)
        data = rows.confidences(rng)
        kept["ours"] += (
            RiskCoverage.compute(Sample(data, resamples=1), band=False).at_risk(0.1).kept
        )
        errors = np.cumsum(~data.correct[np.argsort(-data.confidence)])
        low, high, found, tests = 1, 1_000, 0, 10
        for _ in range(tests):
            middle = (low + high + 1) // 2
            if binom.cdf(errors[middle - 1], middle, 0.1) <= 0.05 / tests:
                found, low = max(found, middle), middle
            else:
                high = middle
        kept["theirs"] += found
    assert kept["ours"] > kept["theirs"]
