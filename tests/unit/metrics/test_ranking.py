"""Ranking, operating points, selection."""

import math

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score, roc_curve

import calviz
from benchmarks.claims import every_simulation, too_few
from calviz.core.errors import OptionError
from calviz.core.predictions import ConfidencePredictions
from calviz.sample.cutoff_and_grades import at_cutoff
from calviz.sample.sample import Sample
from calviz.sample.step_views import estimate_of_rows, steps
from tests.inputs.reliability import event_metrics

# ---- AUROC, AUPRC, Dxy and net benefit against scikit-learn and by hand


def data(n=400, seed=0, decimals=2):
    rng = np.random.default_rng(seed)
    score = rng.beta(1, 2, size=n).round(decimals)
    return score, (rng.random(n) < score).astype(int)


@pytest.mark.parametrize("n", [30, 5_000])
def test_areas_are_scikit_learns(n):
    score, hit = data(n, decimals=2 if n < 100 else 9)
    e = event_metrics(score, hit, ["auroc", "auprc", "somers_d"])
    assert e["auroc"].value == pytest.approx(roc_auc_score(hit, score), abs=1e-12)
    assert e["somers_d"].value == pytest.approx(2 * roc_auc_score(hit, score) - 1, abs=1e-12)
    assert e["auprc"].value == pytest.approx(average_precision_score(hit, score), abs=1e-12)


def test_without_hits_there_is_no_area():
    e = event_metrics([0.1, 0.4], [0, 0], ["auroc", "auprc"])
    assert e["auroc"].reason == "undefined: all rows are hits, or none is."
    assert e["auprc"].reason == "undefined: no row is a hit."


def test_net_benefit_by_hand():
    # Of 0.2, 0.3, 0.6 and 0.8 the last three reach 0.3: two hits, one false alarm at 3 : 7.
    e = event_metrics([0.2, 0.3, 0.6, 0.8], [1, 0, 1, 1], ["net_benefit"], cutoff=0.3)
    assert e["net_benefit"].value == pytest.approx(2 / 4 - 1 / 4 * 3 / 7)
    single = np.array([0.2, 0.3, 0.6, 0.8], dtype=np.float32)
    e = event_metrics(single, [1, 0, 1, 1], ["net_benefit"], cutoff=0.3)
    assert e["net_benefit"].value == pytest.approx(2 / 4 - 1 / 4 * 3 / 7)
    assert e["net_benefit"].params == {"cutoff": 0.3}


def test_its_noise_floor_is_what_the_scores_promise():
    score, hit = data(3_000)
    e = event_metrics(score, hit, ["net_benefit"], cutoff=0.4, ci=True)["net_benefit"]
    above = score >= 0.4
    promised = (score[above].sum() - (1 - score[above]).sum() * 0.4 / 0.6) / 3_000
    assert e.noise_floor.mean == pytest.approx(promised, abs=0.002)
    values = hit[above] - (1 - hit[above]) * 0.4 / 0.6
    spread = np.append(values, np.zeros(3_000 - above.sum())).std() / np.sqrt(3_000)
    low, high = e.interval
    assert high - low == pytest.approx(2 * 1.96 * spread, rel=0.1)


def test_shares_at_a_cutoff_by_hand():
    p = calviz.Predictions(probs=np.array([0.2, 0.3, 0.6, 0.8]), labels=np.array([1, 0, 1, 1]))
    shares = Sample.of(p, reduction="positive").view(at_cutoff, cutoff=0.5).shares()
    assert [v[0] for v in shares.values()] == [2 / 3, 1.0, 1.0, 0.5]
    # Clopper & Pearson: one of one has a lower limit of 0.025, none of none says nothing.
    assert shares["specificity"][1:] == pytest.approx((0.025, 1.0))


@pytest.mark.parametrize("cutoff", [0, 1, -0.1, float("nan"), "0.5", True])
def test_a_cutoff_outside_0_and_1(cutoff):
    with pytest.raises(OptionError, match="'cutoff' must be a number above 0 and below 1"):
        Sample.of(calviz.Predictions(probs=np.array([0.2]), labels=np.array([1]))).view(
            at_cutoff, cutoff=cutoff
        )


def delong_variance(score, hit):
    """Variance of the area by DeLong, DeLong & Clarke-Pearson (1988), pair by pair."""
    pairs = np.array(
        [[(a > b) + 0.5 * (a == b) for b in score[hit == 0]] for a in score[hit == 1]], dtype=float
    )
    return sum(pairs.mean(axis=k).var(ddof=1) / pairs.shape[1 - k] for k in (0, 1))


def hanley_variance(area, hits, misses):
    """Variance of an area by Hanley & McNeil (1982), with the mean number of rows of a kind in both places (Newcombe 2006)."""
    one_hit, two_hits = area / (2 - area), 2 * area**2 / (1 + area)
    more = (hits + misses) / 2 - 1
    spread = more * (one_hit - area**2) + more * (two_hits - area**2)
    return (area * (1 - area) + spread) / (hits * misses)


@pytest.mark.parametrize("hits", [8, 30])
@pytest.mark.parametrize("seed", range(6))
def test_the_interval_holds_the_areas_that_are_not_unusual(seed, hits):
    rng = np.random.default_rng(seed)
    hit = np.r_[np.ones(hits, int), np.zeros(40, int)]
    score = (1 / (1 + np.exp(-rng.normal(1.5 * hit, 1 + seed * hit)))).round(2)
    r = event_metrics(score, hit, ["auroc", "somers_d"], ci=True, resamples=20)
    area, (low, high) = r["auroc"].value, r["auroc"].interval
    assert r["auroc"].interval_method == "closed"
    more = delong_variance(score, hit) / hanley_variance(area, hits, 40)
    if more < 1:  # with up to 20 events, and in part with 30, the variance is that of the formula
        more = 1 if hits < 20 else more + (1 - more) * 20 / hits
    for end in (low, high):
        distance = 1.959964 * np.sqrt(more * hanley_variance(end, hits, 40))
        assert abs(area - end) == pytest.approx(distance, rel=1e-6)
    assert r["somers_d"].interval == pytest.approx((2 * low - 1, 2 * high - 1))
    # Hits and misses exchanged, the other way round.
    turned = event_metrics(1 - score, 1 - hit, ["auroc"], ci=True, resamples=20)["auroc"]
    assert turned.interval == pytest.approx((low, high))


def test_a_perfect_area_of_few_events_is_not_certain():
    r = event_metrics([0.1, 0.2, 0.3, 0.8, 0.9], [0, 0, 0, 1, 1], ["auroc"], ci=True)["auroc"]
    low, high = r.interval
    assert high == r.value == 1
    assert 1 - low == pytest.approx(1.959964 * np.sqrt(hanley_variance(low, 2, 3)), rel=1e-6)
    lone = event_metrics([0.1, 0.6, 0.3], [0, 1, 0], ["auroc"], ci=True)["auroc"]
    assert 0 < lone.interval.low < 0.5


@pytest.mark.slow
def test_the_interval_of_few_events_covers_the_area():
    covered = []
    for seed in range(250):
        rng = np.random.default_rng([5, seed])
        hit = np.r_[np.ones(13, int), np.zeros(187, int)]
        # The difference of two normal variables is above 0 in Phi(2.326 / sqrt(2)) = 95 % of pairs.
        score = 1 / (1 + np.exp(-rng.normal(2.3262 * hit, 1)))
        low, high = event_metrics(score, hit, ["auroc"], ci=True, resamples=20)["auroc"].interval
        covered.append(low <= 0.95 <= high)
    assert np.mean(covered) > 0.92  # percentiles: 82 to 86 %


@pytest.mark.slow
def test_the_interval_does_not_jump_at_any_number_of_events():
    # Hits of half the spread of misses: the formula's variance is 1.8 times the true one.
    hit = np.r_[np.zeros(2_000, int), np.ones(400, int)]
    rng = np.random.default_rng(0)
    score = 1 / (1 + np.exp(-rng.normal(1.2 * hit, 1 - 0.5 * hit)))
    widths = {}
    for events in (*range(15, 30), *range(95, 105), 400):
        rows = slice(0, 2_000 + events)
        r = event_metrics(score[rows], hit[rows], ["auroc"], ci=True, resamples=20)["auroc"]
        widths[events] = (r.interval.high - r.interval.low) * np.sqrt(events)
    for events in (*range(16, 30), *range(96, 105)):
        assert widths[events] == pytest.approx(widths[events - 1], rel=0.06)
    # With many events, the interval is that of DeLong's variance.
    delong = 2 * 1.959964 * np.sqrt(delong_variance(score, hit) * 400)
    assert widths[400] == pytest.approx(delong, rel=0.03)


def weighted(score, hit, weights, key="auroc"):
    data = calviz.Predictions(probs=score, labels=hit, weights=weights)
    sample = Sample(data, "positive")
    return estimate_of_rows(sample.view(steps)), calviz.evaluate(
        data, [key], reduction="positive", ci=True, resamples=20
    )[key]


def test_the_variance_of_a_weighted_area_is_that_of_the_influence_of_its_rows():
    rng = np.random.default_rng(4)
    hit = (rng.random(60) < 0.4).astype(int)
    score = (0.3 * hit + 0.7 * rng.random(60)).round(2)  # with ties
    weights = rng.integers(1, 6, 60).astype(float)
    estimate, _ = weighted(score, hit, weights)
    influence = np.empty(60)
    for i in range(60):
        step = 1e-5 * (np.arange(60) == i)
        more, less = (roc_auc_score(hit, score, sample_weight=weights + d) for d in (step, -step))
        influence[i] = weights[i] * (more - less) / 2e-5
    variance = 0.0
    for kind in (0, 1):
        w = weights[hit == kind]
        n = w.sum() ** 2 / (w**2).sum()
        variance += (influence[hit == kind] ** 2).sum() * n / (n - 1)
    assert estimate.variance == pytest.approx(variance, rel=1e-6)
    assert estimate.freedom == pytest.approx(variance**2 / (influence**4).sum(), rel=1e-6)


def test_equal_weights_change_only_the_quantile():
    rng = np.random.default_rng(5)
    hit = (rng.random(400) < 0.3).astype(int)
    score = 1 / (1 + np.exp(-rng.normal(hit, 1)))
    estimate, one = weighted(score, hit, np.full(400, 2.5))
    assert estimate.variance == pytest.approx(delong_variance(score, hit), rel=1e-9)
    assert estimate.events == pytest.approx((hit.sum(), 400 - hit.sum()))
    plain = event_metrics(score, hit, ["auroc"], ci=True, resamples=20)["auroc"]
    assert one.interval_method == "closed"
    assert one.interval == pytest.approx(plain.interval, abs=2e-3)
    twice = weighted(score, hit, np.full(400, 2.5), "somers_d")[1]
    assert twice.interval == pytest.approx([2 * end - 1 for end in one.interval])


def test_intervals_of_weighted_areas_cover_where_weights_go_with_the_scores():
    every = every_simulation()
    for case in ("weights fall with the scores, 300 rows", "heavy weights that rise"):
        one = next(s for s in every if s.claim == "weighted-auroc" and s.case.startswith(case))
        covered = one.outcomes(60, seed=1)
        assert np.mean(covered) >= too_few(0.94, len(covered))  # resamples: 86 %


def test_few_events_have_a_note():
    rng = np.random.default_rng(0)
    few = np.r_[np.ones(19, int), np.zeros(300, int)]
    score = 1 / (1 + np.exp(-rng.normal(few, 1)))
    r = event_metrics(score, few, ["auroc", "auprc"], ci=True, resamples=50)
    assert r["auprc"].note == "with only 19 hits, its interval is rough."
    assert r["auroc"].note is None
    data = calviz.Predictions(probs=score, labels=few, clusters=np.arange(319) % 60)
    dependent = calviz.evaluate(data, ["auroc"], reduction="positive", ci=True)["auroc"]
    assert dependent.interval_method == "percentile"
    assert dependent.note.startswith("with only 19 hits, its interval is rough.")


def test_a_note_on_few_events_counts_rows_and_needs_an_interval():
    few, many = np.r_[np.ones(5), np.zeros(395)].astype(int), np.repeat([1, 0], 200)
    score = np.random.default_rng(0).random(400)
    for labels, weight, rough in ((few, 50.0, True), (many, 0.02, False)):
        data = calviz.Predictions(probs=score, labels=labels)
        how = {"reduction": "positive", "sample_weight": np.where(labels == 1, weight, 1.0)}
        assert calviz.evaluate(data, ["auprc"], **how)["auprc"].note is None
        result = calviz.evaluate(data, ["auprc", "auroc"], **how, ci=True)
        for key in ("auprc", "auroc"):
            assert ("only 5 hits" in (result[key].note or "")) == rough


# ---- Accuracy at a coverage and coverage at a risk: by hand, by brute force, over resampled rows


def evaluated_of_operating_points(confidence, correct, key, **options):
    return evaluated_of_selective(confidence, correct, [key], **options)[key]


def sample(n=300, decimals=8, seed=0):
    rng = np.random.default_rng(seed)
    confidence = np.round(rng.beta(3, 1, size=n), decimals)
    return confidence, rng.random(n) < 0.2 + 0.75 * confidence


def plain_coverage(confidence, correct, risk):
    """Try every threshold."""
    best = 0.0
    for threshold in np.unique(confidence):
        kept = confidence >= threshold
        if np.count_nonzero(kept & ~correct) <= risk * np.count_nonzero(kept) + 1e-9:
            best = max(best, kept.mean())
    return best


def plain_accuracy(confidence, correct, coverage):
    """Keep whole rows from the top, of the last group of ties the share that is still needed."""
    target, rows, hits = coverage * len(confidence), 0.0, 0.0
    for threshold in np.unique(confidence)[::-1]:
        tied = confidence == threshold
        share = min(1.0, (target - rows) / tied.sum())
        rows += share * tied.sum()
        hits += share * np.count_nonzero(tied & correct)
        if share < 1:
            break
    return hits / target


def test_by_hand():
    confidence, correct = [0.9, 0.8, 0.7, 0.7, 0.6], [True, True, False, True, True]
    # Errors among the kept: 0 of 1, 0 of 2, 1 of 4 (both of the tie), 1 of 5.
    for risk, coverage in ((0, 0.4), (0.19, 0.4), (0.2, 1.0), (1, 1.0)):
        assert (
            evaluated_of_operating_points(confidence, correct, "coverage_at_risk", risk=risk).value
            == coverage
        )
    # 3 of 5 rows: the two at the top, and half of a tie with one hit.
    at_60 = evaluated_of_operating_points(
        confidence, correct, "accuracy_at_coverage", coverage=0.6
    ).value
    assert at_60 == pytest.approx(2.5 / 3)
    assert (
        evaluated_of_operating_points([0.9, 0.8], [False, True], "coverage_at_risk", risk=0.4).value
        == 0
    )


@pytest.mark.parametrize("decimals", [8, 1])
def test_against_brute_force(decimals):
    confidence, correct = sample(decimals=decimals)
    for risk in (0, 0.02, 0.05, 0.1, 0.2, 1):
        result = evaluated_of_operating_points(confidence, correct, "coverage_at_risk", risk=risk)
        assert result.value == pytest.approx(plain_coverage(confidence, correct, risk))
        assert result.params == {"risk": risk}
    for coverage in (0.01, 0.7, 0.8, 0.9, 0.95, 1):
        value = evaluated_of_operating_points(
            confidence, correct, "accuracy_at_coverage", coverage=coverage
        ).value
        assert value == pytest.approx(plain_accuracy(confidence, correct, coverage))


def test_the_fixed_key_is_one_of_them():
    confidence, correct = sample()
    at_90 = evaluated_of_operating_points(
        confidence, correct, "accuracy_at_coverage", coverage=0.9, ci=True
    )
    fixed = evaluated_of_operating_points(confidence, correct, "accuracy_at_90_coverage", ci=True)
    assert (at_90.value, at_90.interval) == (fixed.value, fixed.interval)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "options", "plain"),
    [
        ("coverage_at_risk", {"risk": 0.1}, plain_coverage),
        ("accuracy_at_coverage", {"coverage": 0.7}, plain_accuracy),
    ],
)
def test_intervals_are_those_of_resampled_rows(key, options, plain):
    confidence, correct = sample(200, decimals=2)
    rng = np.random.default_rng(3)
    (setting,) = options.values()
    drawn = []
    for _ in range(600):
        rows = rng.integers(200, size=200)
        drawn.append(plain(confidence[rows], correct[rows], setting))
    low, high = np.quantile(drawn, [0.025, 0.975])
    interval = evaluated_of_operating_points(confidence, correct, key, ci=True, **options).interval
    assert interval == pytest.approx((low, high), abs=0.2 * (high - low))


def test_the_figure_agrees():
    confidence, correct = sample(400)
    data = calviz.ConfidencePredictions(confidence=confidence, correct=correct)
    figure = calviz.figures.RiskCoverage.compute(data)
    result = evaluated_of_operating_points(
        confidence, correct, "coverage_at_risk", risk=0.08, ci=True
    )
    # What can be promised of new rows is less than what could be kept by the errors of these.
    assert figure.at_risk(0.08).coverage < result.value
    assert math.isnan(figure.at_risk(0).accuracy) == (figure.at_risk(0).kept == 0)


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan, "x", True, None])
def test_what_is_refused(value):
    for key, name in (("coverage_at_risk", "risk"), ("accuracy_at_coverage", "coverage")):
        with pytest.raises(OptionError, match=name):
            evaluated_of_operating_points([0.9], [True], key, **{name: value})


# ---- Selective prediction and failure detection against scikit-learn, plain loops and cases by hand


KEYS = ("aurc", "e_aurc", "accuracy_at_90_coverage", "auroc_failure", "aupr_error", "fpr95")


def evaluated_of_selective(confidence, correct, keys=KEYS, **options):
    data = ConfidencePredictions(confidence=confidence, correct=correct)
    return calviz.evaluate(data, keys, **options)


def sample_of_selective(n=500, decimals=8, seed=0):
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
    confidence, correct = sample_of_selective(decimals=decimals)
    result = evaluated_of_selective(confidence, correct)
    wrong = ~correct
    assert result["auroc_failure"].value == pytest.approx(roc_auc_score(correct, confidence))
    assert result["aupr_error"].value == pytest.approx(average_precision_score(wrong, -confidence))
    assert result["aurc"].value == pytest.approx(plain_aurc(confidence, correct))
    error = wrong.mean()
    best = error + (1 - error) * math.log(1 - error)
    assert result["e_aurc"].value == pytest.approx(plain_aurc(confidence, correct) - best)
    kept_wrong, kept_right, _ = roc_curve(correct, confidence, drop_intermediate=False)
    assert result["fpr95"].value == pytest.approx(kept_wrong[np.argmax(kept_right >= 0.95)])


def test_by_hand_of_selective():
    # Risks 0, 0, 1/3, 1/4 at coverages 1/4, 2/4, 3/4, 1.
    result = evaluated_of_selective([0.9, 0.8, 0.7, 0.6], [True, True, False, True])
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
    value = evaluated_of_selective(confidence, correct)["accuracy_at_90_coverage"].value
    assert value == pytest.approx(np.mean(kept), abs=4 * np.std(kept) / math.sqrt(4000))


def test_a_perfect_ranking_has_next_to_no_excess():
    confidence = np.linspace(1, 0, 5000)
    result = evaluated_of_selective(confidence, confidence > 0.3)
    assert result["e_aurc"].value == pytest.approx(0, abs=1e-4)
    assert result["auroc_failure"].value == 1
    assert result["fpr95"].value == 0


@pytest.mark.parametrize("right", [True, False])
def test_undefined_where_all_are_right_or_all_are_wrong(right):
    result = evaluated_of_selective([0.9, 0.8, 0.8], [right] * 3)
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
def test_intervals_are_those_of_resampled_rows_of_selective(decimals):
    confidence, correct = sample_of_selective(300, decimals)
    rng = np.random.default_rng(3)
    drawn = {key: [] for key in KEYS}
    for _ in range(250):
        rows = rng.integers(300, size=300)
        for r in evaluated_of_selective(confidence[rows], correct[rows]):
            drawn[r.key].append(r.value)
    for r in evaluated_of_selective(confidence, correct, ci=True):
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
    assert evaluated_of_selective(confidence, correct, "fpr95", ci=True)["fpr95"].note == note
