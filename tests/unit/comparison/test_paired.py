"""Paired differences."""

import gc
import weakref
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
from scipy import stats

import calviz
from benchmarks.claims import SIMULATIONS, every_simulation, too_many
from calviz.comparison import paired_differences
from calviz.comparison.compare import compare
from calviz.comparison.difference_intervals import Weighted
from calviz.comparison.fitting import Division, before_and_after, calibrate, trade_off
from calviz.comparison.paired_differences import Paired, PairedMetric, RareLosses, pair
from calviz.core.entry_specs import METRICS
from calviz.core.errors import InputError, NotAvailable
from calviz.core.predictions import ConfidencePredictions, Predictions
from calviz.data.loaded import fit_split_for
from calviz.sample import draws as affordable_resamples
from calviz.sample import one_vs_rest
from calviz.sample.draws import GroupWeights, RowDraws
from calviz.sample.sample import Sample
from tests.inputs.simulated import draw_labels, softmax

# ---- Paired resamples: metrics from weights are those of the rows, drawn so often


def data(n=90, k=3, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(k), size=n).round(2)  # with ties
    p /= p.sum(axis=1, keepdims=True)
    return Predictions(probs=p, labels=rng.integers(k, size=n))


@pytest.mark.parametrize("reduction", ["top-label", "class:1"])
@pytest.mark.parametrize("n", [90, 1_500])
def test_weighted_metrics_are_those_of_the_rows_taken_so_often(n, reduction):
    p = data(n)
    weighted = Weighted(Sample(p, reduction), METRICS.keys())
    rng = np.random.default_rng(1)
    rows = rng.integers(n, size=(3, n))
    counts = np.stack([np.bincount(r, minlength=n) for r in rows], axis=1).astype(float)
    result = weighted.values(counts)
    paired = [m.key for m in METRICS if m.reweighting is not None and m.direction != "none"]
    assert sorted(result) == sorted(paired)
    # Bins or widths that follow the rows are kept, so that a resample differs slightly.
    keys = [key for key in result if not METRICS[key].follows_rows]
    for b in range(3):
        wanted = calviz.evaluate(p.take(rows[b]), keys, reduction=reduction)
        for key in keys:
            # smECE of resamples is on a coarser grid, class-wise sums are in single precision.
            near = 2e-3 if key == "smece" else 1e-6
            assert result[key][b] == pytest.approx(wanted[key].value, abs=near, nan_ok=True), key


def test_weights_of_one_are_the_sample_itself():
    p = data(400, 4)
    result = Weighted(Sample(p, "top-label"), METRICS.keys()).values(np.ones((400, 2)))
    for key in sorted(result):
        near = 2e-3 if key in ("smece", "kde_ece", "kde_ece_l2") else 1e-6
        wanted = calviz.evaluate(p, [key])[key].value
        assert result[key] == pytest.approx([wanted, wanted], abs=near, nan_ok=True), key


def test_confidence_only_data_have_those_that_need_no_more():
    p = data(200)
    hit = p.probs.argmax(axis=1) == p.labels
    top = ConfidencePredictions(confidence=p.probs.max(axis=1), correct=hit)
    paired = pair(
        {"top": top, "all": p},
        METRICS.keys(),
        reduction="top-label",
        resamples=100,
        rng=np.random.default_rng(0),
    )
    assert {"accuracy", "ece", "ks", "smece", "aurc"} <= set(paired.metrics)
    assert not {"nll", "brier", "classwise_ece"} & set(paired.metrics)
    for key in paired.metrics:
        same = paired.metrics[key].difference("top", "all")
        assert same.value == pytest.approx(0, abs=1e-12), key
        assert same.tied, key


def plain(**drawn):
    """Sets with given resamples of a metric that is a mean; what was seen is the average."""
    values = {key: {name: float(v.mean()) for name, v in of.items()} for key, of in drawn.items()}
    return Paired({key: PairedMetric(key, values[key], of) for key, of in drawn.items()})


def test_better_is_nearer_to_where_a_metric_should_be():
    drawn = {
        "nll": {"a": np.full(100, 0.1), "b": np.full(100, 0.3)},
        "accuracy": {"a": np.full(100, 0.9), "b": np.full(100, 0.8)},
    }
    paired_bootstrap = plain(**drawn)
    for key, of in drawn.items():
        assert paired_bootstrap.metrics[key].best_share() == {"a": 1.0, "b": 0.0}
        assert paired_bootstrap.metrics[key].difference("a", "b").verdict == "better"
        assert paired_bootstrap.metrics[key].difference("b", "a").verdict == "worse"
        assert paired_bootstrap.metrics[key].tied_with_best(
            {name: v[0] for name, v in of.items()}
        ) == ("a",)
    assert paired_bootstrap.metrics["accuracy"].difference("a", "b").interval == pytest.approx(
        (0.1, 0.1)
    )


def test_a_difference_of_means_has_the_middle_95_percent_of_the_resamples():
    # The 25th and the 975th of 999, as (B + 1) q says.
    drawn = {"a": np.arange(1, 1_000) / 1_000, "b": np.zeros(999)}
    paired_bootstrap = plain(nll=drawn)
    assert paired_bootstrap.metrics["nll"].difference("a", "b").interval == pytest.approx(
        (0.025, 0.975)
    )
    assert paired_bootstrap.metrics["nll"].difference("b", "a").interval == pytest.approx(
        (-0.975, -0.025)
    )
    # An interval that only touches zero is not beyond noise.
    touching = plain(nll={"a": np.maximum(np.arange(1, 1_000) - 25.0, 0), "b": np.zeros(999)})
    assert touching.metrics["nll"].difference("a", "b").tied


def test_one_of_many_comparisons_takes_as_many_standard_deviations_as_max_t():
    # Skewed resamples: the end that is nearer than the critical value says is moved to it, the other one is the percentile or farther.
    rng = np.random.default_rng(3)
    drawn = {name: rng.normal(size=999) + rng.exponential(size=999) for name in "abcdef"}
    metric = plain(nll=drawn).metrics["nll"]
    off = np.array([drawn[a] - drawn[b] for a, b in metric.all_pairs])
    scaled = np.abs(off - off.mean(axis=1, keepdims=True)) / off.std(axis=1, ddof=1, keepdims=True)
    largest = np.sort(scaled.max(axis=0))[949]  # the 950th of 999
    for (a, b), gaps in zip(metric.all_pairs, off, strict=True):
        reach = largest * gaps.std(ddof=1)
        adjusted = metric.difference(a, b, metric.all_pairs).adjusted
        assert adjusted == pytest.approx((gaps.mean() - reach, gaps.mean() + reach))
    # Of eight clusters, Student's t with 7 degrees of freedom at 5 % by Bonferroni's 15 pairs.
    drawn = {name: rng.normal(size=999) for name in "abcdef"}
    few = replace(plain(nll=drawn).metrics["nll"], units=8)
    gaps = drawn["a"] - drawn["b"]
    reach = np.sqrt(8 / 7) * stats.t.ppf(1 - 0.025 / 15, 7) * gaps.std(ddof=1)
    assert few.difference("a", "b", few.all_pairs).adjusted == pytest.approx(
        (gaps.mean() - reach, gaps.mean() + reach)
    )


@pytest.mark.slow
def test_few_clusters_do_not_tell_equal_models_apart():
    every_simulation()
    said = (
        "models-differ: any of equal models called worse, accuracy, 6 models, 80 rows in 8 clusters"
    )
    # With max-T alone, in 10 %.
    assert SIMULATIONS[said].keeps_to(60, seed=3, at_most=too_many(0.05, 60, errors=2))


def test_more_comparisons_need_clearer_differences():
    rng = np.random.default_rng(0)
    names = [f"m{i}" for i in range(12)]
    drawn = {name: rng.normal(size=4_000) for name in names}
    paired_bootstrap = plain(nll=drawn)
    # Independent sets: the range of twelve, as Tukey's studentised range for infinite degrees of freedom has it.
    tukey = stats.studentized_range.ppf(0.95, 12, 1e6) / np.sqrt(2)
    assert paired_bootstrap.metrics["nll"]._critical(
        paired_bootstrap.metrics["nll"].all_pairs
    ) == pytest.approx(tukey, rel=0.03)
    assert paired_bootstrap.metrics["nll"]._critical((("m0", "m1"),)) == pytest.approx(
        1.96, abs=0.001
    )


def test_of_a_signed_metric_the_size_says_what_is_better():
    rng = np.random.default_rng(5)
    labels = rng.integers(2, size=20_000)
    low = Predictions(probs=np.clip(labels * 0.2 + 0.35, 0, 1), labels=labels)
    high = Predictions(probs=np.full(20_000, 0.505), labels=labels)
    sets = {"low": low, "high": high}
    paired = pair(sets, ["mcs"], reduction="positive", resamples=300, rng=rng)
    d = paired.metrics["mcs"].difference("low", "high")
    seen = {name: p.probs[:, 1].mean() - labels.mean() for name, p in sets.items()}
    assert d.value == pytest.approx(seen["low"] - seen["high"])
    assert d.verdict == "worse"


def test_class_wise_errors_of_very_many_probabilities_are_left_out(monkeypatch):
    sample = Sample(data(50, 4), "top-label")
    keys = ["ece", "classwise_ece", "tace"]
    assert Weighted(sample, keys).metrics == ("ece", "classwise_ece", "tace")
    monkeypatch.setattr(one_vs_rest, "PAIRED_ENTRIES", 199)
    assert Weighted(sample, keys).metrics == ("ece",)


@pytest.mark.parametrize(("asked_after", "expected"), [(0, 100), (3, 100), (9, 180), (10**6, 500)])
def test_who_is_in_a_hurry_gets_what_there_is_and_no_less_than_an_interval_needs(
    monkeypatch, asked_after, expected
):
    monkeypatch.setattr(paired_differences, "_CELLS", 20 * 50)  # twenty at a time
    asked = count()
    result = paired_differences.resampled(
        {"sum": lambda drawn, _: {"rows": drawn.sum(axis=0)}},
        50,
        500,
        np.random.default_rng(0),
        stop_early=lambda: next(asked) >= asked_after,
    )
    assert result["sum"]["rows"].tolist() == [50] * expected


def test_scaled_gaps_are_those_of_a_world_whose_error_is_known():
    # With weights of one there is no noise: gaps of scale 1 are the sample's own, of scale 0 there are none.
    p = data(400, 4)
    weighted = Weighted(Sample(p, "top-label"), METRICS.keys())
    weighted.scaled(np.random.default_rng(0).multinomial(400, np.full(400, 1 / 400), 60).T * 1.0)
    truths = weighted.truths()
    assert {"ece", "ks", "kde_ece", "smece", "classwise_ece", "tace", "wsece", "mcs"} <= set(truths)
    for key in ("ece", "ece_equal_mass", "mce", "ks", "classwise_ece", "tace", "wsece", "mcs"):
        wanted = abs(calviz.evaluate(p, [key])[key].value)
        assert truths[key][0] == pytest.approx(0, abs=1e-7), key
        assert truths[key][3] == pytest.approx(wanted, abs=1e-6), key
        # These are proportional to the gaps.
        assert truths[key][2] == pytest.approx(0.65 * wanted, abs=1e-6), key
    # These are quadratic in them.
    square = calviz.evaluate(p, ["ece_l2"])["ece_l2"].value
    assert truths["ece_l2"][[0, 2, 3]] == pytest.approx([0, 0.65**2 * square, square], abs=1e-9)


def test_the_variation_of_the_fit_is_added_as_an_independent_part():
    rng = np.random.default_rng(2)
    drawn = {"a": rng.normal(0.5, 0.03, 20_000), "b": rng.normal(0.5, 1e-9, 20_000)}
    values = {"a": 0.5, "b": 0.5}
    refits = {"a": rng.normal(0.5, 0.04, 5_000)}
    d = PairedMetric("nll", values, drawn, refits=refits).difference("a", "b")
    # 3-4-5: standard deviations of 0.03 and 0.04 make 0.05.
    np.testing.assert_allclose(d.interval, [-1.96 * 0.05, 1.96 * 0.05], rtol=0.03)


def test_losses_that_did_not_occur_are_in_the_interval_of_the_log_loss():
    # The one says 1e-12 where the other says 1 %; with 100 rows a third of samples have no such label at all.
    rng = np.random.default_rng(0)
    held, n = 0, 100
    sets = {"bold": [1e-12, 1 - 1e-12], "true": [0.01, 0.99]}
    truth = 0.01 * (np.log(0.01) - np.log(1e-12)) + 0.99 * np.log(0.99)
    for _ in range(60):
        labels = (rng.random(n) < 0.99).astype(int)
        data = {k: Predictions(probs=np.tile(p, (n, 1)), labels=labels) for k, p in sets.items()}
        paired_bootstrap = pair(data, ["nll"], reduction="top-label", resamples=200, rng=rng)
        low, high = paired_bootstrap.metrics["nll"].difference("bold", "true").interval
        held += low <= truth <= high
    assert held >= 55


def test_the_variance_of_rare_labels_by_hand():
    """Labels below 1/n by one of the sets, at the mean of both, as often as the labels allow; without those that were seen."""
    n = 100
    sets = {"bold": [1e-12, 0.3, 0.7 - 1e-12], "true": [0.02, 0.3, 0.68]}
    gap = np.log(0.02 / 1e-12) ** 2

    def variance(labels, one="bold", other="true"):
        data = {k: Predictions(probs=np.tile(p, (n, 1)), labels=labels) for k, p in sets.items()}
        return RareLosses(data).variance(one, other)

    labels = np.full(n, 2)
    # One row is expected where none was seen: half of it is left, (0 + 1) / (1 + 1).
    wanted = 0.5 * 0.01 * gap / n
    assert variance(labels) == pytest.approx(wanted, rel=1e-9)
    assert variance(labels, "true", "bold") == pytest.approx(wanted, rel=1e-9)
    assert variance(labels, "bold", "bold") == 0
    # Seen as often as expected: resamples know it.
    labels[0] = 0
    assert variance(labels) == pytest.approx(0, abs=1e-10)
    # Thirty are expected, and the labels say that there are none: 1 of 31.
    sets["true"] = [0.6, 0.2, 0.2]
    gap = np.log(0.6 / 1e-12) ** 2
    assert variance(np.full(n, 2)) == pytest.approx(1 / 31 * 0.3 * gap / n, rel=1e-9)
    # Rare is what comes up less than once in n rows: 0.9 of a row is, 1.5 rows are not.
    sets["bold"], sets["true"] = [0.009, 0.491, 0.5], [0.018, 0.482, 0.5]
    wanted = min(1, 1 / (1.35 + 1)) * 0.0135 * np.log(2) ** 2 / n
    assert variance(np.full(n, 2)) == pytest.approx(wanted, rel=1e-9)
    sets["bold"] = [0.015, 0.485, 0.5]
    assert variance(np.full(n, 2)) == 0


def test_the_variance_of_rare_squared_errors_by_hand():
    n = 100
    sets = {"bold": [0.0, 1.0], "true": [0.02, 0.98]}
    data = {
        k: Predictions(probs=np.tile(p, (n, 1)), labels=np.ones(n, int)) for k, p in sets.items()
    }
    # A label 0 would cost 2 by the one, and 0.98^2 + 0.98^2 by the other, which has 0.0008 more than it where the label is 1. One is
    # expected, at 0.01, and none seen: half of it is left.
    gap = 2 - 2 * 0.98**2
    wanted = 0.5 * 0.01 * gap**2 / n
    assert RareLosses(data).variance("bold", "true", "squared") == pytest.approx(wanted, rel=1e-9)
    assert RareLosses(data).variance("true", "bold", "squared") == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_differences_of_brier_scores_cover_where_large_errors_are_rare(weighted):
    # The event happens in 1 % of rows, and one set says that it never does.
    n, rate, runs = 100, 0.01, 60
    rng = np.random.default_rng(0)
    truth = 2 * rate - 2 * rate * (1 - rate)
    held, resampled_held = 0, 0
    for _ in range(runs):
        labels = (rng.random(n) >= rate).astype(int)
        weights = rng.gamma(1, 1, n) if weighted else None
        data = {
            k: Predictions(probs=np.tile([p, 1 - p], (n, 1)), labels=labels, weights=weights)
            for k, p in (("never", 0.0), ("true", rate))
        }
        paired = pair(data, ["brier"], reduction="top-label", resamples=100, rng=rng)
        low, high = paired.metrics["brier"].difference("never", "true").interval
        held += low <= truth <= high
        drawn = paired.metrics["brier"].drawn
        low, high = np.quantile(drawn["never"] - drawn["true"], [0.025, 0.975])
        resampled_held += low <= truth <= high
    assert held >= 0.9 * runs > resampled_held


def test_rare_labels_of_weighted_rows_count_as_their_effective_number():
    n, gap = 100, np.log(0.02 / 1e-12) ** 2
    sets = {"bold": [1e-12, 0.3, 0.7 - 1e-12], "true": [0.02, 0.3, 0.68]}

    def variance(weights, labels):
        data = {
            k: Predictions(probs=np.tile(p, (n, 1)), labels=labels, weights=weights)
            for k, p in sets.items()
        }
        return RareLosses(data).variance("bold", "true")

    labels = np.full(n, 2)
    for equal in (np.ones(n), np.full(n, 2.0)):
        assert variance(equal, labels) == pytest.approx(0.5 * 0.01 * gap / n, rel=1e-9)
    # Half of the rows weigh three times as much: (50 + 150)^2 / (50 + 450) = 80 rows of equal weight, and 0.8 of one is expected.
    uneven = np.repeat([1.0, 3.0], n // 2)
    assert variance(uneven, labels) == pytest.approx(1 / 1.8 * 0.01 * gap / 80, rel=1e-9)
    assert variance(10 * uneven, labels) == pytest.approx(variance(uneven, labels), rel=1e-9)
    # Of the sum of w^2, which is 500, a row of weight 1 shows 1, and counts as 80 / 200 rows: 0.02 * 250 / 500 is still expected.
    labels[0] = 0
    still = min(1, 1.4 / 1.8) * 0.01 * 500 - 1
    assert variance(uneven, labels) == pytest.approx(still * gap / 200**2, rel=1e-9)
    # One of weight 3 shows more than was expected.
    labels[0], labels[-1] = 2, 0
    assert variance(uneven, labels) == 0


def test_rare_labels_of_many_rows_are_drawn(monkeypatch):
    rng = np.random.default_rng(0)
    p = rng.dirichlet([0.2] * 4, 4_000)
    q = rng.dirichlet([0.2] * 4, 4_000)
    sets = {k: Predictions(probs=v, labels=p.argmax(axis=1)) for k, v in {"p": p, "q": q}.items()}
    whole = RareLosses(sets).variance("p", "q")
    monkeypatch.setattr(paired_differences, "MOST", 4 * 2_000)
    assert RareLosses(sets).variance("p", "q") == pytest.approx(whole, rel=0.2)


def test_probabilities_are_freed_with_their_comparison():
    rng = np.random.default_rng(7)
    sets = {k: Predictions(probs=rng.dirichlet([1, 1], 9), labels=np.zeros(9, int)) for k in "pq"}
    losses = RareLosses(sets)
    assert losses.variance("p", "q") == losses.variance("p", "q")
    freed = weakref.ref(sets["p"])
    del losses, sets
    gc.collect()
    assert freed() is None


def test_very_many_cells_are_gone_through_in_parts(monkeypatch):
    sample = Sample(data(60, 4), "top-label")
    weights = np.random.default_rng(0).multinomial(60, np.full(60, 1 / 60), 30).T * 1.0
    keys = ["classwise_ece", "tace", "wsece"]
    at_once = Weighted(sample, keys).scaled(weights)
    monkeypatch.setattr(
        affordable_resamples, "PART_ENTRIES", 4 * 15 * 7
    )  # seven resamples at a time
    in_parts = Weighted(sample, keys).scaled(weights)
    for key in keys:
        np.testing.assert_allclose(in_parts[key], at_once[key], atol=1e-12)


@pytest.mark.parametrize("weights", [False, True])
def test_drawn_clusters_are_their_rows_drawn_so_often(weights):
    rng = np.random.default_rng(3)
    cluster = np.arange(300) % 40
    own = {"weights": rng.uniform(0.5, 2, 300)} if weights else {}
    p = data(300).take(np.arange(300))
    p = Predictions(probs=p.probs, labels=p.labels, clusters=cluster, **own)
    sample = Sample(p, "top-label")
    drawn = GroupWeights(RowDraws(300, cluster), rng.poisson(1, (40, 5)) + 1.0)
    by_cluster, by_row = Weighted(sample, METRICS.keys()), Weighted(sample, METRICS.keys())
    for value, wanted in (
        (by_cluster.values(drawn), by_row.values(np.asarray(drawn))),
        (by_cluster.scaled(drawn), by_row.scaled(np.asarray(drawn))),
    ):
        assert value.keys() == wanted.keys()
        for key in wanted:
            np.testing.assert_allclose(value[key], wanted[key], atol=1e-9, err_msg=key)


def test_differences_of_clusters_reach_equally_far_on_both_sides():
    rng = np.random.default_rng(2)
    cluster = np.repeat(np.arange(8), 10)
    labels = rng.integers(2, size=80)
    sets = {
        name: Predictions(
            probs=rng.beta(2, 2, 80), labels=labels, clusters=cluster, weights=rng.gamma(2, 0.5, 80)
        )
        for name in "ab"
    }
    sets["b"] = Predictions(
        probs=sets["b"].probs, labels=labels, clusters=cluster, weights=sets["a"].weights
    )
    paired = pair(sets, ["brier", "auroc"], reduction="positive", resamples=200, rng=rng)
    # Student's t with 7 degrees of freedom in place of the normal distribution.
    wider = np.sqrt(8 / 7) * stats.t.ppf(0.975, 7) / stats.norm.ppf(0.975)
    for key in ("brier", "auroc"):
        drawn, value = (
            paired.metrics[key].drawn,
            paired.metrics[key].values["a"] - paired.metrics[key].values["b"],
        )
        ends = np.quantile(drawn["a"] - drawn["b"], [0.025, 0.975], method="weibull")
        reach = wider * np.abs(ends - value).max()
        low, high = paired.metrics[key].difference("a", "b").interval
        assert (low, high) == pytest.approx((value - reach, value + reach), rel=1e-6)


def test_class_wise_differences_of_weighted_rows_are_those_of_rows_nearly_alike():
    rng = np.random.default_rng(0)
    true = rng.dirichlet(np.ones(3), 200)
    labels = draw_labels(true, rng)
    probs = true**2 / (true**2).sum(1, keepdims=True)
    values = [
        calviz.compare(
            calviz.Predictions(probs=probs, labels=labels, weights=weights),
            ["temperature"],
            metrics=["classwise_ece"],
            fit_fraction=0.5,
            resamples=100,
        )["temperature"].differences["classwise_ece"]
        for weights in (None, np.r_[np.ones(199), 1 + 1e-6])
    ]
    assert values[1].value == pytest.approx(values[0].value, abs=1e-5)
    assert values[1].interval == pytest.approx(values[0].interval, abs=1e-5)


# ---- Before and after recalibration: the judged rows are never those that the map was fitted on


def simulated(n=300, splits=None, groups=None):
    rng = np.random.default_rng(0)
    z = rng.normal(size=(n, 3)) * 3
    probs = softmax(z)
    labels = draw_labels(softmax(0.4 * z), rng)
    return Predictions(
        probs=probs, labels=labels, splits=splits, groups=groups or {}, ids=np.arange(n)
    )


SPLITS = np.repeat(["train", "val", "test"], 100)


@pytest.mark.parametrize(
    ("judged", "fit"), [("test", "val"), ("val", "test"), ("train", "val"), (None, "val")]
)
def test_which_split_is_fitted_on(judged, fit):
    data = simulated(splits=SPLITS)
    assert fit_split_for(data, judged) == fit
    done = before_and_after(data, "temperature", eval_split=judged)
    assert done.fit.split == fit
    assert set(done.fit_before.ids) == set(np.flatnonzero(fit == SPLITS))
    rest = SPLITS == "test" if judged is None else judged == SPLITS
    np.testing.assert_array_equal(done.rows, np.flatnonzero(rest))
    for part in (done.before, done.after):
        np.testing.assert_array_equal(part.ids, done.rows)
    assert not set(done.rows) & set(done.fit_before.ids)
    np.testing.assert_array_equal(done.fit_after.ids, done.fit_before.ids)


def test_splits_whose_names_say_nothing_and_a_single_one():
    data = simulated(splits=np.repeat(["a", "b"], 150))
    assert fit_split_for(data, "b") == "a"
    assert fit_split_for(data, None) is None
    assert fit_split_for(simulated(splits=np.full(300, "val")), None) is None
    assert fit_split_for(simulated(), None) is None


def test_without_splits_a_half_is_judged():
    done = before_and_after(simulated(), "temperature")
    assert done.evaluation.rows == done.rows.size == 150
    assert not set(done.rows) & set(done.fit_before.ids)


@pytest.mark.parametrize("seed", range(8))
def test_every_row_stays_with_its_own_probabilities_whichever_half_is_drawn(seed):
    # A temperature keeps the order within a row. In some halves the first row fits and the last one judges.
    done = before_and_after(simulated(), "temperature", seed=seed)
    for before, after in ((done.before, done.after), (done.fit_before, done.fit_after)):
        np.testing.assert_array_equal(before.probs.argsort(1), after.probs.argsort(1))


def test_the_map_is_that_of_calibrate():
    data = simulated(splits=SPLITS)
    whole = calibrate(data, "temperature", Division(fit_split="val")).calibrated
    done = before_and_after(data, "temperature", eval_split="test")
    np.testing.assert_allclose(done.after.probs, whole.probs[SPLITS == "test"], rtol=1e-12)
    np.testing.assert_allclose(done.fit_after.probs, whole.probs[SPLITS == "val"], rtol=1e-12)


def test_a_map_for_a_slice_is_that_of_a_comparison_of_its_rows():
    within, data = np.arange(300) % 3 == 0, simulated(splits=SPLITS)
    done = before_and_after(data, "temperature", eval_split="test", within=within)
    np.testing.assert_array_equal(done.rows, np.flatnonzero((SPLITS == "test") & within))
    assert done.fit.rows == 33
    alone = compare(data.take(within), ["temperature"], metrics=["nll"], ci=False)
    np.testing.assert_array_equal(done.after.probs, alone["temperature"].calibrated.probs)
    # A slice of one split, such as the rows since a change, is halved.
    done = before_and_after(data, "temperature", eval_split="test", within=SPLITS == "test")
    assert (done.fit.rows, done.evaluation.rows) == (50, 50)
    assert set(SPLITS[done.rows]) == {"test"}
    with pytest.raises(InputError, match="at least 10 are needed"):
        before_and_after(data, "temperature", within=np.arange(300) < 15)


def test_confidence_only():
    rng = np.random.default_rng(0)
    score = rng.random(200)
    data = ConfidencePredictions(confidence=score, correct=rng.random(200) < score**2)
    done = before_and_after(data, "isotonic")
    assert done.after.n == 100
    assert done.after.confidence.mean() < done.before.confidence.mean()
    with pytest.raises(NotAvailable):
        before_and_after(data, "vector")


def test_without_splits_the_seed_says_which_half_is_judged():
    data = simulated()
    for seed in (0, 1):
        wanted = Division(fit_fraction=0.5, seed=seed).rows(data).pairs[0][1]
        np.testing.assert_array_equal(before_and_after(data, "temperature", seed=seed).rows, wanted)
    one, other = (before_and_after(data, "temperature", seed=s).rows for s in (0, 1))
    assert set(one) != set(other)


def test_what_a_map_costs_in_the_other_proper_score_is_said():
    # Calibration rows that a score separates, and judged rows of which one in twenty is on the other side.
    p = np.tile(np.linspace(0.02, 0.98, 50), 4)
    y = (p > 0.5).astype(int)
    y[100::20] = 1 - y[100::20]
    splits = np.repeat(["cal", "test"], 100)
    data = Predictions(probs=np.stack([1 - p, p], axis=1), labels=y, splits=splits)
    division = Division(fit_split="cal")
    calibrated = calibrate(data, "platt", division).calibrated
    of_true = [d.probs[np.arange(100, 200), y[100:]] for d in (data, calibrated)]
    (brier, brier_after), (nll, nll_after) = (
        [loss(q).mean() for q in of_true]
        for loss in (lambda q: (1 - q) ** 2, lambda q: -np.log(q))  # of one column, as in tables
    )
    assert brier_after < brier
    assert nll_after > nll
    sentence = trade_off(data, calibrated, division.rows(data))
    assert f"better by Brier score ({brier:.4f} before, {brier_after:.4f} after)" in sentence
    assert f"worse by NLL ({nll:.4f} before, {nll_after:.4f} after)" in sentence
    assert trade_off(data, data, division.rows(data)) is None


def test_sets_that_were_resampled_before_are_not_drawn_again(monkeypatch):
    first, second, third = (data(300, 2, seed) for seed in range(3))
    second, third = (replace(one, labels=first.labels) for one in (second, third))
    known, keys = {}, ("nll", "ece", "auroc")

    def paired(sets, **how):
        rng = np.random.default_rng(4)
        return pair(sets, keys, reduction="positive", resamples=200, rng=rng, **how)

    paired({"a": first, "b": second}, known=known)
    made, one = [], paired_differences._resampler
    monkeypatch.setattr(paired_differences, "_resampler", lambda w: made.append(w) or one(w))
    # Whoever stops now still gets as many resamples as the others have.
    every = {"a": first, "b": second, "c": third}
    beside = paired(every, known=known, stop_early=lambda: True)
    assert len(made) == 1
    anew = paired(every)
    for key in keys:
        for names in (("a", "c"), ("a", "b")):
            differences = (p.metrics[key].difference(*names) for p in (beside, anew))
            assert len({*map(str, differences)}) == 1
