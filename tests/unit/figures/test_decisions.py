"""Decisions: net benefit and loss."""

import json

import numpy as np
import pytest
from scipy import stats
from sklearn.isotonic import IsotonicRegression
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

import calviz
from benchmarks import record_decision_curves
from calviz.core.errors import NotAvailable, OptionError
from calviz.core.predictions import Predictions
from calviz.figures.calibration_map import CalibrationCurve
from calviz.figures.decision_cost import Decision
from calviz.figures.net_benefit import LOSS_CUTOFFS, DecisionLoss, NetBenefit, decision_loss
from calviz.figures.risk_coverage import RiskCoverage
from calviz.figures.roc import OutcomeHistogram, Roc
from calviz.sample.cutoff_and_grades import at_cutoff, decidable
from calviz.sample.sample import Sample

# ---- Net benefit, ROC, scores by outcome and the calibration curve as figures


def data(n=2_000, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.beta(1, 2, size=n)
    labels = (rng.random(n) < score**1.3).astype(int)
    return calviz.Predictions(probs=score, labels=labels), score, labels


def test_net_benefit_is_what_its_formula_says():
    p, score, y = data()
    f = NetBenefit.compute(p, reduction="positive")
    for at in (0.1, 0.35, 0.8):
        i = int(np.argmin(np.abs(f.cutoff - at)))
        tp, fp = (y[score >= at] == 1).sum(), (y[score >= at] == 0).sum()
        net = (tp - fp * at / (1 - at)) / y.size
        whole = y.mean() - (1 - y.mean()) * at / (1 - at)
        assert f.values["net-benefit"][i] == pytest.approx(net)
        assert f.everybody["net-benefit"][i] == pytest.approx(whole)
        assert f.values["standardised"][i] == pytest.approx(net / y.mean())
        # Vickers & Elkin: actions avoided are the gain over acting on everybody, in false alarms.
        assert f.values["avoided"][i] == pytest.approx(100 * (net - whole) * (1 - at) / at)
        low, high = (end[i] for end in f.bands["net-benefit"])
        assert low < net < high
        gain = np.where(score >= at, np.where(y == 1, 1, -at / (1 - at)), 0)
        assert high - low == pytest.approx(2 * 1.96 * gain.std() / np.sqrt(y.size), rel=0.15)


def test_decision_curves_are_those_of_dcurves():
    score, hit = record_decision_curves.case()
    expected = json.loads(record_decision_curves.RECORDED.read_text())["values"]
    f = NetBenefit.compute(calviz.Predictions(probs=score, labels=hit), band=False)
    at = [int(np.argmin(np.abs(f.cutoff - t))) for t in record_decision_curves.CUTOFFS]
    model, everybody = expected["model"], expected["all"]["net_benefit"]
    np.testing.assert_allclose(f.values["net-benefit"][at], model["net_benefit"], atol=1e-12)
    np.testing.assert_allclose(f.everybody["net-benefit"][at], everybody, atol=1e-12)
    np.testing.assert_allclose(f.values["avoided"][at] / 100, model["avoided"], atol=1e-12)


def test_a_score_in_single_precision_reaches_its_cutoff():
    p = calviz.Predictions(probs=np.array([0.3, 0.7], np.float32), labels=np.array([1, 0]))
    f = NetBenefit.compute(p, reduction="positive")
    assert f.values["net-benefit"][29] == pytest.approx(0.5 - 0.5 * 3 / 7)


def test_curves_pass_through_what_scikit_learn_counts():
    p, score, y = data(300)
    f = Roc.compute(p, reduction="positive")
    fpr, tpr, _ = roc_curve(y, score, drop_intermediate=False)
    np.testing.assert_allclose(np.interp(fpr, f.false_alarms, f.sensitivity).max(), 1)
    np.testing.assert_allclose(f.false_alarms, fpr)
    np.testing.assert_allclose(f.sensitivity, tpr)
    assert f.auroc == pytest.approx(roc_auc_score(y, score))
    assert f.auprc == pytest.approx(average_precision_score(y, score))
    low, high = f.auroc_interval
    # Hanley & McNeil 1982.
    a, hits, misses = f.auroc, y.sum(), (1 - y).sum()
    variance = a * (1 - a) + (hits - 1) * (a / (2 - a) - a**2)
    variance += (misses - 1) * (2 * a**2 / (1 + a) - a**2)
    spread = np.sqrt(variance / (hits * misses))
    assert high - low == pytest.approx(2 * 1.96 * spread, rel=0.2)


def test_thinned_curves_have_the_same_area():
    p, score, y = data(20_000)
    f = Roc.compute(p, reduction="positive")
    assert f.cutoff.size < 450
    assert np.trapezoid(f.sensitivity, f.false_alarms) == pytest.approx(
        roc_auc_score(y, score), abs=1e-4
    )


def test_what_is_drawn_by_outcome():
    p, score, y = data(500)
    f = OutcomeHistogram.compute(p, reduction="positive")
    assert f.frame()["hits"].sum() == y.sum()
    assert f.frame()["misses"].sum() == 500 - y.sum()
    assert f"mean score of {score[y == 1].mean():.3f}" in f.describe()


def test_outcomes_of_weighted_rows_are_rows_and_heights_shares_by_weight():
    p = calviz.Predictions(
        probs=[0.11, 0.31, 0.51, 0.71, 0.71, 0.71, 0.71, 0.15, 0.35, 0.35],
        labels=[1] * 7 + [0] * 3,
        weights=[1.0] * 7 + [6.0] * 3,
    )
    f = OutcomeHistogram.compute(p, reduction="positive")
    shown = f.frame()
    assert shown["hits"].to_numpy()[[5, 15, 25, 35]].tolist() == [1, 1, 1, 4]
    assert shown["misses"].to_numpy()[[7, 17]].tolist() == [1, 2]
    assert (
        "7 hits with a mean score of 0.539 and 3 other rows with a mean score of 0.283"
        in f.describe()
    )
    drawn = f.plot().data
    assert [trace.name for trace in drawn] == ["Hits (7)", "Other rows (3)"]
    assert drawn[0].y[[5, 35]] == pytest.approx([100 / 7, 400 / 7])
    assert drawn[1].y[17] == pytest.approx(-200 / 3)


def test_every_kind_of_drawing():
    p, *_ = data(300)
    sample = Sample.of(p, reduction="positive")
    benefit, roc = NetBenefit.compute(sample), Roc.compute(sample)
    for shown in ("net-benefit", "standardised", "avoided"):
        assert (
            benefit.plot(shown=shown, at=0.3, others=[benefit]).layout.annotations[0].text
            == "cutoff 0.3"
        )
    cells = sample.view(at_cutoff, cutoff=0.3)
    drawn = roc.plot(panel="precision-recall", at=cells)
    assert drawn.data[-1].y[0] == pytest.approx(float(cells.tp / (cells.tp + cells.fp)))
    with pytest.raises(OptionError, match="'shown' must be one of"):
        benefit.plot(shown="cost")
    for kind in ("loess", "logistic"):
        assert CalibrationCurve.compute(sample, curve=kind).plot().data


def test_what_cannot_be_decided_on():
    rng = np.random.default_rng(0)
    three = calviz.Predictions(probs=rng.dirichlet(np.ones(3), 30), labels=rng.integers(3, size=30))
    with pytest.raises(
        NotAvailable, match=r"one of two classes, and these data have 3: .* class:NAME"
    ):
        decidable(Sample.of(three))
    assert decidable(Sample.of(three, reduction="class:1")).reduction.key == "class:1"
    none = calviz.Predictions(probs=np.array([0.2, 0.4]), labels=np.array([0, 0]))
    with pytest.raises(
        NotAvailable, match="none of the 2 rows has the class '1': without both outcomes"
    ):
        decidable(Sample.of(none))
    for label, words in ((0, "does not have"), (1, "has")):
        one = calviz.Predictions(probs=np.array([0.7]), labels=np.array([label]))
        with pytest.raises(NotAvailable, match=f"the only row {words} the class '1'"):
            decidable(Sample.of(one))
    top = calviz.ConfidencePredictions(confidence=np.array([0.6]), correct=np.array([True]))
    with pytest.raises(NotAvailable, match="confidence-only"):
        decidable(Sample.of(top))
    # Two classes by the top label are decided on by the positive class.
    assert decidable(Sample.of(data(50)[0], reduction="top-label")).reduction.key == "positive"


def _ends(data, name):
    counts = Sample.of(data, reduction="positive").view(at_cutoff, cutoff=0.5)
    return counts.shares()[name]


def _independent(n=400):
    rng = np.random.default_rng(3)
    score = rng.uniform(0, 1, n)
    return score, (rng.random(n) < score).astype(int)


@pytest.mark.parametrize("name", ["sensitivity", "specificity", "positive predictive value"])
def test_rows_repeated_in_their_cluster_have_the_intervals_of_the_rows_once(name):
    score, labels = _independent()
    once = _ends(Predictions(probs=score, labels=labels), name)
    five = _ends(
        Predictions(
            probs=np.repeat(score, 5),
            labels=np.repeat(labels, 5),
            clusters=np.repeat(np.arange(400), 5),
        ),
        name,
    )
    assert five[0] == pytest.approx(once[0])
    assert five[2] - five[1] == pytest.approx(once[2] - once[1], rel=0.02)


def test_weighted_rows_count_as_kish_says():
    score, labels = _independent()
    weights = np.where(np.arange(400) % 2, 3.0, 1.0)
    share, low, high = _ends(
        Predictions(probs=score, labels=labels, weights=weights), "sensitivity"
    )
    hit, right = labels == 1, score >= 0.5
    w = weights[hit]
    assert share == pytest.approx(w[right[hit]].sum() / w.sum())
    n = w.sum() ** 2 / (w**2).sum()
    assert low == pytest.approx(stats.beta.ppf(0.025, share * n, n - share * n + 1))
    assert high == pytest.approx(stats.beta.ppf(0.975, share * n + 1, n - share * n))


def test_with_few_clusters_shares_have_no_interval():
    score, labels = _independent()
    data = Predictions(probs=score, labels=labels, clusters=np.arange(400) % 7)
    share, low, high = _ends(data, "specificity")
    assert 0 < share < 1
    assert np.isnan([low, high]).all()


@pytest.mark.parametrize("weighted", [False, True])
def test_where_all_are_right_each_cluster_counts_as_one_row(weighted):
    # Clusters that are right or wrong as a whole are all right with probability p**10: only p below 0.025**(1/10) is excluded.
    score, labels = np.tile([0.9, 0.9, 0.9, 0.1], 10), np.tile([1, 1, 1, 0], 10)
    weights = np.tile([1.0, 1.1, 1.0, 1.0], 10) if weighted else None
    p = Predictions(
        probs=score, labels=labels, clusters=np.repeat(np.arange(10), 4), weights=weights
    )
    assert _ends(p, "sensitivity") == pytest.approx((1, 0.025 ** (1 / 10), 1))
    wrong = Predictions(
        probs=1 - score, labels=labels, clusters=np.repeat(np.arange(10), 4), weights=weights
    )
    assert _ends(wrong, "sensitivity") == pytest.approx((0, 0, 1 - 0.025 ** (1 / 10)))


def test_counts_of_weighted_rows_are_rows_and_shares_are_by_weight():
    score = np.array([0.9] * 4 + [0.1] * 5)
    labels = np.array([1, 1, 0, 0, 1, 1, 0, 0, 0])
    weights = np.array([0.8, 0.8] + [1.2] * 7)
    data = Predictions(probs=score, labels=labels, weights=weights)
    counts = Sample.of(data, reduction="positive").view(at_cutoff, cutoff=0.5)
    assert counts.rows == {"tp": 2, "fp": 2, "fn": 2, "tn": 3}
    by_weight = {"tp": 1.6, "fp": 2.4, "fn": 2.4, "tn": 3.6}
    assert counts.per_1000 == pytest.approx({k: 100 * w for k, w in by_weight.items()})
    # What is kept of the ranking, and by a rule of costs.
    kept = RiskCoverage.compute(data, resamples=20).at_threshold(0.85)
    assert (kept.kept, kept.referred) == (9, 0)
    score[4:] = 0.4
    data = Predictions(probs=score, labels=labels, weights=weights)
    kept = RiskCoverage.compute(data, resamples=20).at_threshold(0.85)
    assert (kept.kept, kept.referred, kept.coverage) == (4, 5, pytest.approx(0.4))
    face = Decision.compute(data, wrong=10, referred=2).face
    assert (face.kept, face.referred, face.referred_share) == (4, 5, pytest.approx(0.6))


# ---- The decision loss row by row, and what it is of a calibrated model


def test_by_hand():
    # One score of 0.3, half of its rows hits: between 0.3 and 0.5 it should be acted on, and is not.
    at = np.searchsorted(LOSS_CUTOFFS, [0.1, 0.3, 0.4, 0.5, 0.7])
    result = decision_loss(LOSS_CUTOFFS[at[1:2]], np.array([4.0]), np.array([2.0]))
    assert result[at] == pytest.approx([0, 0.2 / 0.7, 0.1 / 0.6, 0, 0])
    # A second one of 0.8 without doubt: at 0.9 those should be acted on as well.
    result = decision_loss(np.array([0.3, 0.8]), np.array([3.0, 1.0]), np.array([0.0, 1.0]))
    assert result[np.searchsorted(LOSS_CUTOFFS, [0.2, 0.9])] == pytest.approx(
        [0.75 * 0.2 / 0.8, 0.25 * 0.1 / 0.9]
    )


def test_against_the_gain_of_acting():
    rng = np.random.default_rng(0)
    score = rng.random(400).round(2)
    hit = rng.random(400) < score**1.5
    p = calviz.Predictions(probs=score, labels=hit)
    figure = DecisionLoss.compute(p, reduction="positive")
    q = IsotonicRegression().fit(score, hit).predict(score)
    for cutoff, loss in list(zip(figure.cutoff, figure.loss, strict=True))[1:-1:7]:
        # What acting gains on average where q is the probability, by deciding with q instead of the score.
        gain = (q - cutoff) / max(cutoff, 1 - cutoff)
        expected = (gain * (q > cutoff)).mean() - (gain * (score > cutoff)).mean()
        assert loss == pytest.approx(expected, abs=1e-9)
    assert figure.worst[1] == figure.loss.max()


def test_a_calibrated_model_is_within_noise_and_another_is_not():
    rng = np.random.default_rng(1)
    score = rng.random(3_000)
    for power, beyond in ((1.0, False), (1.6, True)):
        labels = rng.random(3_000) < score**power
        figure = DecisionLoss.compute(calviz.Predictions(probs=score, labels=labels))
        assert figure.beyond_noise is beyond
        assert ("more than" if beyond else "within") in figure.describe()
        assert figure.frame().shape == (201, 4)


def test_cutoffs_of_rare_events_lie_among_their_scores():
    rng = np.random.default_rng(1)
    p = 0.01 * np.exp(rng.normal(-0.5, 1, 20_000))
    data = calviz.Predictions(probs=p, labels=(rng.random(p.size) < p).astype(int))
    f = NetBenefit.compute(data, reduction="positive", resamples=200)
    assert f.cutoff.size == 99
    assert np.quantile(p, 0.99) < f.cutoff[-1] < 0.4
    assert f.useful.any()
    t = float(f.cutoff[9])
    tp, fp = np.sum(data.labels[p >= t]), np.sum(data.labels[p >= t] == 0)
    assert f.values["net-benefit"][9] == pytest.approx((tp - fp * t / (1 - t)) / p.size)
    assert f.plot().layout.xaxis.range[1] == pytest.approx(f.cutoff[-1] / 0.99)
    assert f.plot().layout.yaxis.range[1] < 0.012
