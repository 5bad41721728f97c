"""Selective prediction and failure detection against scikit-learn, plain loops and cases by hand."""

import math

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

import calviz
from calviz.core.predictions import ConfidencePredictions

KEYS = ("aurc", "e_aurc", "accuracy_at_90_coverage", "auroc_failure", "aupr_error", "fpr95")


def evaluated(confidence, correct, keys=KEYS, **options):
    data = ConfidencePredictions(confidence=np.asarray(confidence), correct=np.asarray(correct))
    return calviz.evaluate(data, keys, **options)


def sample(n=500, decimals=8, seed=0):
    rng = np.random.default_rng(seed)
    confidence = np.round(rng.beta(3, 1, size=n), decimals)
    return confidence, rng.random(n) < 0.2 + 0.7 * confidence


def plain_aurc(confidence, correct):
    """Trapezoids between the points (coverage, risk) of every distinct confidence."""
    coverages, risks = [], []
    for threshold in np.unique(confidence)[::-1]:
        kept = confidence >= threshold
        coverages.append(kept.mean())
        risks.append(1 - correct[kept].mean())
    area = coverages[0] * risks[0]
    for i in range(1, len(risks)):
        area += (coverages[i] - coverages[i - 1]) * (risks[i] + risks[i - 1]) / 2
    return area


@pytest.mark.parametrize("decimals", [8, 2, 1])
def test_against_scikit_learn_and_plain_loops(decimals):
    confidence, correct = sample(decimals=decimals)
    result = evaluated(confidence, correct)
    wrong = ~correct
    assert result["auroc_failure"].value == pytest.approx(roc_auc_score(correct, confidence))
    assert result["aupr_error"].value == pytest.approx(average_precision_score(wrong, -confidence))
    assert result["aurc"].value == pytest.approx(plain_aurc(confidence, correct))
    error = wrong.mean()
    best = error + (1 - error) * math.log(1 - error)
    assert result["e_aurc"].value == pytest.approx(plain_aurc(confidence, correct) - best)
    kept_wrong, kept_right, _ = roc_curve(correct, confidence, drop_intermediate=False)
    assert result["fpr95"].value == pytest.approx(kept_wrong[np.argmax(kept_right >= 0.95)])


def test_by_hand():
    # Risks 0, 0, 1/3, 1/4 at coverages 1/4, 2/4, 3/4, 1.
    result = evaluated([0.9, 0.8, 0.7, 0.6], [True, True, False, True])
    assert result["aurc"].value == pytest.approx((1 / 6 + 7 / 24) / 4)
    assert result["auroc_failure"].value == pytest.approx(2 / 3)
    assert result["aupr_error"].value == pytest.approx(1 / 2)
    assert result["fpr95"].value == 1
    # 3.6 rows are kept: the three most confident, and 0.6 of the last.
    assert result["accuracy_at_90_coverage"].value == pytest.approx(1 - 1 / 3.6)


def test_accuracy_at_coverage_is_the_mean_over_the_orders_of_ties():
    rng = np.random.default_rng(0)
    confidence = np.repeat([0.9, 0.5, 0.4], [50, 30, 20])
    correct = np.arange(100) % 3 > 0
    kept = []
    for _ in range(4000):
        order = np.lexsort((rng.random(100), -confidence))[:90]
        kept.append(correct[order].mean())
    value = evaluated(confidence, correct)["accuracy_at_90_coverage"].value
    assert value == pytest.approx(np.mean(kept), abs=4 * np.std(kept) / math.sqrt(4000))


def test_a_perfect_ranking_has_next_to_no_excess():
    confidence = np.linspace(1, 0, 5000)
    result = evaluated(confidence, confidence > 0.3)
    assert result["e_aurc"].value == pytest.approx(0, abs=1e-4)
    assert result["auroc_failure"].value == 1
    assert result["fpr95"].value == 0


@pytest.mark.parametrize("right", [True, False])
def test_undefined_where_all_are_right_or_all_are_wrong(right):
    result = evaluated([0.9, 0.8, 0.8], [right] * 3)
    for key in ("auroc_failure", "fpr95"):
        assert math.isnan(result[key].value)
        assert result[key].reason == "undefined: all predictions are right, or all are wrong."
    assert result["aurc"].value == pytest.approx(0 if right else 1)
    if right:
        assert result["aupr_error"].reason == "undefined: no prediction is wrong."
    else:
        assert result["aupr_error"].value == 1


def test_looks_at_the_top_label_whatever_the_reduction():
    rng = np.random.default_rng(1)
    data = calviz.Predictions(probs=rng.dirichlet([1, 1, 1], 200), labels=rng.integers(0, 3, 200))
    one, other = (calviz.evaluate(data, KEYS, reduction=r) for r in ("top-label", "class:1"))
    assert [r.value for r in one] == [r.value for r in other]


@pytest.mark.slow
@pytest.mark.parametrize("decimals", [8, 1])
def test_intervals_are_those_of_resampled_rows(decimals):
    confidence, correct = sample(300, decimals)
    rng = np.random.default_rng(3)
    drawn = {key: [] for key in KEYS}
    for _ in range(250):
        rows = rng.integers(300, size=300)
        for r in evaluated(confidence[rows], correct[rows]):
            drawn[r.key].append(r.value)
    for r in evaluated(confidence, correct, ci=True):
        low, high = np.quantile(drawn[r.key], [0.025, 0.975])
        assert r.interval == pytest.approx((low, high), abs=0.2 * (high - low)), r.key


@pytest.mark.parametrize(
    ("right", "wrong", "note"),
    [
        (58, 200, "with only 58 hits, its interval is rough."),
        (59, 200, None),
        (200, 19, "with only 19 misses, its interval is rough."),
        (200, 20, None),
    ],
)
def test_fpr_at_95_tpr_of_few_hits_or_misses_says_that_it_is_rough(right, wrong, note):
    # The lowest of 58 hits is above the point that 95 % of all hits exceed in more than 5 % of samples.
    assert 0.95**58 > 0.05 > 0.95**59
    confidence = np.random.default_rng(0).random(right + wrong)
    correct = np.arange(right + wrong) < right
    assert evaluated(confidence, correct, "fpr95", ci=True)["fpr95"].note == note
