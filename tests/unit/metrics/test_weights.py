"""Weights and clusters in every metric."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss, roc_auc_score

import calviz
from calviz.comparison.fitting import Division
from calviz.core.entry_specs import METRICS, RECALIBRATORS, reweighting_of
from calviz.core.errors import InputError, NotAvailable
from calviz.core.events import BinaryEvents
from calviz.core.predictions import repeated, with_rows
from calviz.metrics.binned import mcs
from calviz.sample.binning import effective_rows
from calviz.sample.draws import HitSums, RowDraws, held_bytes
from calviz.sample.error_bars import resampled
from calviz.sample.sample import SMALL, Sample, event_sums, metric_options, metric_view
from calviz.verdicts.analysis import evaluate, verdict
from calviz.verdicts.evaluation import missing, remarks
from tests.inputs.simulated import draw_labels

# ---- Rows that count more than others


def two_classes(n=600, seed=0, **columns):
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.98, n)
    y = (rng.random(n) < p**1.3).astype(int)
    return calviz.Predictions(probs=p, labels=y, **columns)


def dependent(groups=60, rows=10, seed=1, share=0.5):
    """Calibrated rows of which those of one cluster share some of their luck."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(groups), rows)
    p = rng.uniform(0.2, 0.8, cluster.size)
    shared = rng.random(groups)[cluster]
    own = rng.random(cluster.size)
    luck = np.where(rng.random(cluster.size) < share, shared, own)
    return calviz.Predictions(probs=p, labels=(luck < p).astype(int), clusters=cluster)


def three_classes(n=300, seed=8, **columns):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet([1, 1, 1], n)
    labels = draw_labels(probs, rng)
    return calviz.Predictions(probs=probs, labels=labels, **columns)


def test_equal_weights_change_nothing():
    plain, same = two_classes(), two_classes(weights=np.full(600, 3.0))
    assert same.weights is None
    assert same.fingerprint() == plain.fingerprint()


@pytest.mark.parametrize("binning", ["equal-width", "equal-mass"])
def test_a_weight_of_two_is_the_row_twice(binning):
    rng = np.random.default_rng(3)
    counts = rng.integers(1, 4, 600)
    plain = two_classes()
    twice = repeated(plain, counts)
    how = {"scheme": binning, "bandwidth": 0.1, "findings": False, "classes": False}
    weighted = evaluate(with_rows(plain, weights=counts), **how)
    expected = evaluate(twice, **how)
    kept = ("kde_ece", "kde_ece_l2")  # their bandwidth is given here
    compared = [
        m.key
        for m in weighted
        if m.available and (m.key in kept or not METRICS[m.key].follows_rows)
    ]
    if (
        binning == "equal-mass"
    ):  # cuts follow the rows for metrics whose bins are those of the sample
        sample = Sample.of(plain, scheme=binning)
        compared = [k for k in compared if "scheme" not in metric_options(sample, METRICS[k])]
    assert len(compared) > 15
    for key in compared:
        assert weighted[key].value == pytest.approx(expected[key].value, rel=1e-12, abs=1e-12), key


def test_classes_of_weighted_rows_are_those_of_repeated_ones():
    plain, counts = three_classes(), np.random.default_rng(1).integers(1, 4, 300)
    weighted = evaluate(with_rows(plain, weights=counts), findings=False)
    expected = evaluate(repeated(plain, counts), findings=False)
    for key in ("classwise_ece", "ks_classwise", "wsece", "msece", "cece", "wsmcs"):
        assert weighted[key].value == pytest.approx(expected[key].value, rel=1e-12), key
    for one, other in zip(weighted.classes, expected.classes, strict=True):
        for name in ("accuracy", "confidence", "ece", "mcs", "ks"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-12), name


@pytest.mark.parametrize("data", [two_classes(), three_classes()], ids=["two", "three"])
def test_the_scale_of_importance_weights_is_nothing(data):
    w = np.random.default_rng(2).exponential(size=data.n)
    one = evaluate(with_rows(data, weights=w), findings=False)
    other = evaluate(with_rows(data, weights=8 * w), findings=False)
    for m in one:
        if m.available:
            assert other[m.key].value == pytest.approx(m.value, rel=1e-9, abs=1e-12), m.key


def test_pairs_count_as_the_product_of_their_weights():
    data = three_classes(60)
    w = np.random.default_rng(3).exponential(size=60)
    residual = np.eye(3)[data.labels] - data.probs
    total = pairs = 0.0
    for i in range(60):
        for j in range(60):
            if i != j:
                kernel = np.exp(-np.linalg.norm(data.probs[i] - data.probs[j]) / 0.5)
                total += w[i] * w[j] * kernel * (residual[i] @ residual[j])
                pairs += w[i] * w[j]
    evaluation = evaluate(
        with_rows(data, weights=w), ["skce"], kernel_bandwidth=0.5, findings=False
    )
    assert evaluation["skce"].value == pytest.approx(total / pairs, rel=1e-10)


def test_closed_forms_hold_for_weighted_rows_of_a_calibrated_model():
    p_values = {"ks": [], "kuiper": [], "spiegelhalter_z": [], "hosmer_lemeshow": []}
    debiased = []
    for seed in range(120):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.05, 0.95, 500)
        y = (rng.random(500) < p).astype(int)
        data = calviz.Predictions(probs=p, labels=y, weights=rng.exponential(size=500))
        evaluation = evaluate(
            data, [*p_values, "ece_debiased"], reduction="positive", findings=False
        )
        for key, column in p_values.items():
            column.append(evaluation[key].details["p_value"])
        debiased.append(evaluation["ece_debiased"].value)
    for key, column in p_values.items():
        # Of a uniform number the mean of 120 is within 0.08 of 1/2 (3 standard errors); KS and Kuiper are careful.
        assert 0.42 < np.mean(column) < 0.62, key
        assert np.mean(np.array(column) < 0.05) < 0.12, key
    assert abs(np.mean(debiased)) < 3 * np.std(debiased) / np.sqrt(120)


def test_equal_mass_bins_hold_equal_weights():
    rng = np.random.default_rng(4)
    plain = two_classes(2_000)
    sample = Sample(with_rows(plain, weights=rng.uniform(0.1, 4, 2_000)), scheme="equal-mass")
    sums = calviz.sample.sample.chosen_bins(sample)
    assert np.abs(sums.weight - 1 / 15).max() < 4 / 2_000


def test_proper_scores_are_those_of_scikit_learn():
    w = np.random.default_rng(5).uniform(0, 3, 600)
    data = two_classes()
    p, y = data.probs[:, 1], data.labels
    evaluation = evaluate(data, sample_weight=w, findings=False, reduction="top-label")
    assert evaluation["nll"].value == pytest.approx(log_loss(y, p, sample_weight=w), rel=1e-12)
    brier = brier_score_loss(y, p, sample_weight=w)
    assert evaluation["brier"].value == pytest.approx(2 * brier, rel=1e-12)
    right = data.probs.argmax(1) == y
    accuracy = accuracy_score(y, data.probs.argmax(1), sample_weight=w)
    assert evaluation["accuracy"].value == pytest.approx(accuracy, rel=1e-12)
    auroc = roc_auc_score(right, data.probs.max(1), sample_weight=w)
    assert evaluation["auroc_failure"].value == pytest.approx(auroc, rel=1e-12)


def test_every_metric_takes_weights():
    evaluation = evaluate(two_classes(weights=np.linspace(1, 2, 600)), classes=False)
    assert all("weight" not in m.reason for m in evaluation if not m.available)
    assert evaluation.verdict is not None
    assert "600 weighted rows" in evaluation.verdict.sentence


def test_weighted_maps_are_those_of_repeated_rows_and_of_scikit_learn():
    data = two_classes()
    counts = np.random.default_rng(6).integers(1, 4, 600)
    p, y = data.probs, data.labels
    many = np.repeat(np.arange(600), counts)
    for key, name in (("temperature", "temperature_"), ("beta", "coefficients_")):
        one = RECALIBRATORS[key].make().fit(p, y, sample_weight=counts)
        other = RECALIBRATORS[key].make().fit(p[many], y[many])
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-4)
    affine = RECALIBRATORS["affine"].make().fit(p, y, sample_weight=counts)
    z = np.log(p[:, 1] / p[:, 0])[:, None]
    peer = LogisticRegression(C=1e12, tol=1e-10).fit(z, y, sample_weight=counts)
    np.testing.assert_allclose(
        affine.coefficients_.ravel(), [peer.coef_[0, 0], peer.intercept_[0]], rtol=1e-5
    )


def test_counts_have_to_be_whole():
    with pytest.raises(InputError, match=r"row 2: the count is 1\.5"):
        repeated(two_classes(2), [1, 1.5])


def test_a_missing_interval_says_what_is_missing():
    # Far off, one of two classes is over and the other underconfident, whichever rows are drawn; with three it depends.
    p = np.random.default_rng(6).random(600)
    far = calviz.Predictions(probs=p, labels=(np.random.default_rng(8).random(600) < p**4))
    for data in (far, three_classes()):
        w = np.random.default_rng(7).exponential(size=data.n)
        evaluation = evaluate(with_rows(data, weights=w), ["over_share"], ci=True, findings=False)
        share = evaluation["over_share"]
        if data.n_classes == 2:
            assert share.interval is None
            assert share.note == "no interval: nearly all resamples have the same value."
        else:
            assert share.interval.low < share.interval.high
            assert share.note is None


def test_draws_that_are_kept_are_those_that_would_be_drawn_again(monkeypatch):
    w = np.random.default_rng(9).exponential(size=50)
    kept, results = RowDraws(50, None, w), []
    for rows in (kept, kept, RowDraws(50, None, w)):
        rng = np.random.default_rng(3)
        drawn = [np.asarray(rows.counts(rng, size)) for size in (7, 7, 5)]
        results.append([*drawn, rng.random(1)])
    monkeypatch.setattr("calviz.sample.draws.KEPT_DRAW_BYTES", 400)  # one of them only
    rng = np.random.default_rng(3)
    few = RowDraws(50, None, w)
    results.append([*(np.asarray(few.counts(rng, size)) for size in (7, 7, 5)), rng.random(1)])
    for other in results[1:]:
        for one, same in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one, same)
    assert not np.array_equal(results[0][0], results[0][1])
    # As often as there are rows.
    np.testing.assert_allclose((results[0][0] / w[:, None]).sum(axis=0), 50)


@pytest.mark.slow
def test_hits_of_many_weighted_rows_have_the_cumulants_of_their_sum(monkeypatch):
    monkeypatch.setattr("calviz.sample.draws.MOST_GROUPS", 10)
    p, w = np.repeat([0.02, 0.3], 100), np.tile([0.5, 1.5], 100)
    cell = np.repeat([0, 1], 100)
    rng = np.random.default_rng(0)
    hits = HitSums(BinaryEvents(p, p > 1), cell, 2)(rng, RowDraws(200, None, w), 100_000)
    # Of independent Bernoulli variables: sums of w p, w^2 p (1 - p) and w^3 p (1 - p) (1 - 2 p).
    for i, chance in enumerate((0.02, 0.3)):
        q = chance * (1 - chance)
        variance, third = 50 * 2.5 * q, 50 * 3.5 * q * (1 - 2 * chance)
        off = hits[i] - 100 * chance
        assert off.mean() == pytest.approx(0, abs=4 * np.sqrt(variance / 100_000))
        assert off.var() == pytest.approx(variance, rel=0.03)
        assert (off**3).mean() / variance**1.5 == pytest.approx(third / variance**1.5, abs=0.05)


@pytest.mark.parametrize("clustered", [False, True])
def test_resamples_leave_out_rows_of_weight_zero(clustered):
    # Otherwise many resamples have no weight at all, and intervals are too wide.
    cluster = np.repeat(np.arange(60), 2) if clustered else None
    counted = two_classes(120).probs[:, 1] < 0.3
    if clustered:
        counted = np.repeat(counted[::2], 2)
    data = two_classes(120, clusters=cluster, weights=counted * np.linspace(1, 3, 120))
    keys = ["accuracy", "brier", "mcs", "auroc"]
    got = evaluate(data, keys, ci=True)
    expected = evaluate(data.take(np.flatnonzero(counted)), keys, ci=True)
    for key in keys:
        assert got[key].interval == pytest.approx(tuple(expected[key].interval))
    three = with_rows(two_classes(), weights=(np.arange(600) < 3) * 1.0)
    assert evaluate(three, keys, ci=True)["mcs"].interval is not None


def test_the_largest_bin_of_mce_counts_rows_whatever_their_weights():
    p = calviz.Predictions(
        probs=np.repeat([0.1, 0.5, 0.9], [2, 3, 5]),
        labels=[0, 0, 1, 0, 1, 0, 0, 0, 0, 0],
        weights=np.repeat([1.85, 1.2, 0.54], [2, 3, 5]),
    )
    (found,) = evaluate(p, ["mce"], reduction="positive", bins=3)
    assert found.value == pytest.approx(0.9)
    assert found.details["bin_rows"] == 5
    figure = calviz.figures.Reliability.compute(p, reduction="positive", bins=3, resamples=20)
    assert figure.count.tolist() == [2, 3, 5]


# ---- Rows that belong to clusters: they are drawn, divided and tested by clusters


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
    for one in calviz.slices(named, ["half"]).slices:
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


# ---- Clusters and weights together: sums, draws, refusals and remarks that concern both


def makers():
    keys = {}
    for m in METRICS:
        if m.reweighting is not None or getattr(m.view, "keywords", None) is None:
            keys.setdefault(getattr(m.view, "func", m.view), m.key)
    return sorted(keys.values())


@pytest.mark.parametrize("key", makers())
def test_sums_over_clusters_are_those_over_their_rows(key):
    cluster = np.arange(300) % 40
    data = three_classes(weights=np.random.default_rng(4).exponential(size=300), clusters=cluster)
    sample = Sample(data)
    metric = METRICS[key]
    how = reweighting_of(metric.view)
    if how is None:
        pytest.skip("it has no error bars by clusters")
    try:
        view = metric_view(sample, metric)
    except NotAvailable as error:
        pytest.skip(str(error))
    drawn = sample.row_draws.counts(np.random.default_rng(5), 6)

    def values(weights):
        result = how.make(sample, view)(weights)(None)
        return np.asarray(metric.value(result))

    np.testing.assert_allclose(values(drawn), values(np.asarray(drawn)), rtol=2e-5, atol=1e-7)


@pytest.mark.slow
def test_many_clusters_and_many_weighted_rows_are_drawn_by_groups(monkeypatch):
    data = dependent(groups=3_000, rows=2)
    plain = evaluate(data, ["mcs", "nll"], ci=True, findings=False, resamples=1_500)
    w = np.random.default_rng(6).exponential(size=data.n)
    rows = calviz.Predictions(probs=data.probs, labels=data.labels, weights=w)
    weighted = evaluate(rows, ["mcs", "nll"], ci=True, findings=False, resamples=1_500)
    monkeypatch.setattr("calviz.sample.draws.MOST_GROUPS", 1_000)
    few = evaluate(data.renamed("b"), ["mcs", "nll"], ci=True, findings=False, resamples=1_500)
    some = evaluate(rows.renamed("b"), ["mcs", "nll"], ci=True, findings=False, resamples=1_500)
    for one, other in ((plain, few), (weighted, some)):
        for m in one:
            width = m.interval.high - m.interval.low
            result = other[m.key]
            assert result.interval.high - result.interval.low == pytest.approx(width, rel=0.12)
            floor = m.noise_floor.q95 - m.noise_floor.mean
            assert result.noise_floor.mean == pytest.approx(m.noise_floor.mean, rel=0.05, abs=1e-3)
            assert result.noise_floor.q95 - result.noise_floor.mean == pytest.approx(floor, rel=0.2)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"clusters": np.zeros(600)}, "one value for all rows"),
        ({"clusters": np.arange(600)}, "no rows belong together"),
        ({"weights": np.r_[-1.0, np.ones(599)]}, "row 1: the weight is -1"),
        ({"weights": np.r_[np.ones(599), np.nan]}, "row 600: the weight is missing"),
        ({"weights": np.r_[np.inf, np.ones(599)]}, "row 1: the weight is infinite"),
        ({"weights": np.zeros(600)}, "all weights are zero"),
        ({"weights": np.ones(7)}, "'weights' has 7 rows"),
    ],
)
def test_columns_that_cannot_be_used_are_refused(columns, message):
    with pytest.raises(InputError, match=message):
        two_classes(**columns)


def test_each_remark_is_made_once_and_says_of_how_many_metrics():
    results = list(
        evaluate(dependent(), [m.key for m in METRICS], ci=True, findings=False, resamples=100)
    )
    by_key = {text: names for names, text in remarks(results)}
    assert set(by_key) == {r.note for r in results if r.note}
    many = [r for r in results if r.note and r.note.startswith("noise floor: for a calibrated")]
    assert by_key[many[0].note] == f"{len(many)} of {len(results)} metrics"
    few = [r for r in results if r.note == "no noise floor: it cannot be resampled by clusters."]
    assert by_key[few[0].note] == "; ".join(METRICS[r.key].label for r in few)
    why = {reason for _, reason in missing(results)}
    assert why == {r.reason for r in results if not r.available}


def test_rows_that_know_as_much_by_hand():
    # Three clusters of two rows in one bin, scores and share of hits 1/2: the residuals of the clusters add up to 1, -1 and 0.
    events = BinaryEvents(np.full(6, 0.5), np.array([1, 1, 0, 0, 1, 0], dtype=bool))
    edges, cluster = np.array([0.0, 1.0]), np.repeat([0, 1, 2], 2)
    # Their squares, 2, times 3 / 2 against 6 x 0.25 of single rows: half of the six rows.
    assert effective_rows(events, edges, cluster, None) == pytest.approx([3.0])
    # Weights alone: (sum of w)^2 / (sum of w^2).
    w = np.array([1.0, 1, 1, 1, 2, 4])
    assert effective_rows(events, edges, None, w) == pytest.approx([100 / 24])


@pytest.mark.parametrize(
    ("n", "expected"), [(1_000, 1_000), (200_000, 500), (10**6, 100), (10**9, 100)]
)
def test_resamples_of_many_rows_are_fewer_but_never_too_few(n, expected):
    assert RowDraws(n).affordable(1_000) == expected


def test_rows_that_are_left_may_be_one_cluster_or_one_per_row():
    data = dependent(30, 2)
    singles = with_rows(data, weights=np.tile([0.0, 2.0], 30))
    assert evaluate(singles, ["nll"], ci=True)["nll"].interval is not None
    sites = {"site": np.repeat(["a", "b"], 30)}
    weights = np.where(np.arange(60) < 30, 1.0, 2.0)
    two = calviz.ConfidencePredictions(
        confidence=data.probs[:, 1],
        correct=data.labels == 1,
        clusters=np.repeat([0, 1], 30),
        weights=weights,
        groups=sites,
    )
    sample = Sample.of(two, where=(("site", "a"),))
    assert sample.data.n == 30
    assert evaluate(sample, ["mcs"], ci=True)["mcs"].interval is None


@pytest.mark.parametrize("columns", [{"weights": True}, {"clusters": True}])
def test_views_of_rows_that_are_not_alike_do_not_count_the_sample(columns):
    n = 40_000
    own = {
        "weights": np.linspace(1, 2, n) if "weights" in columns else None,
        "clusters": np.arange(n) // 4 if "clusters" in columns else None,
    }
    sample = Sample(two_classes(n, **own))
    whole = sample.view(event_sums)
    assert sample.scored.score.nbytes > SMALL
    assert held_bytes(whole) < SMALL


# ---- Intervals and comparisons of rows in few clusters


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
