"""`calviz.verdicts.analysis`: one set of numbers, whatever else is asked for, with honest error bars."""

import inspect
import math
import re

import numpy as np
import pytest
from scipy import stats

import calviz
from calviz.core.entry_specs import METRICS
from calviz.core.errors import InputError, NotAvailable, OptionError
from calviz.sample.metric_results import MetricResult
from calviz.sample.sample import Sample
from calviz.verdicts import sentence
from calviz.verdicts.analysis import EvaluateOptions, SampleOptions, findings_of
from tests.inputs.simulated import draw_labels

ALL = METRICS.keys()


def binary(n: int, seed: int, *, calibrated: bool = True) -> calviz.Predictions:
    """P(class 1) from a beta distribution, labels drawn from it (or from something sharper)."""
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 1.5, size=n)
    truth = p if calibrated else 0.5 + 0.6 * (p - 0.5)
    return calviz.Predictions(probs=p, labels=rng.random(n) < truth)


def multiclass(n: int = 400, k: int = 5, seed: int = 0) -> calviz.Predictions:
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(k, 0.4), size=n)
    labels = draw_labels(probs, rng)
    return calviz.Predictions(
        probs=probs, labels=labels, splits=np.where(np.arange(n) % 3, "test", "calibration")
    )


def same(a: MetricResult, b: MetricResult) -> bool:
    return repr(a) == repr(b)  # repr, so that nan equals nan


@pytest.fixture(scope="module")
def data() -> calviz.Predictions:
    return multiclass()


@pytest.fixture(scope="module")
def everything(data):
    return calviz.evaluate(data, ci=True, resamples=100, seed=3)


def test_all_registered_metrics_are_evaluated_by_default(everything):
    assert tuple(everything.metrics) == ALL


def test_the_same_seed_gives_the_same_numbers(data, everything):
    again = calviz.evaluate(data, ci=True, resamples=100, seed=3)
    assert all(same(everything[key], again[key]) for key in ALL)


def test_another_seed_gives_other_error_bars_and_the_same_value(data, everything):
    for other in calviz.evaluate(data, ["ks", "nll"], ci=True, resamples=100, seed=4):
        assert other.value == everything[other.key].value
        assert other.interval != everything[other.key].interval
        assert other.noise_floor != everything[other.key].noise_floor


@pytest.mark.parametrize("key", ALL)
def test_a_metric_alone_is_the_metric_among_others(data, everything, key):
    alone = calviz.evaluate(data, [key], ci=True, resamples=100, seed=3)
    assert same(alone[key], everything[key])


def test_the_order_of_the_metrics_changes_nothing_but_the_order(data, everything):
    keys = tuple(reversed(ALL))
    turned = calviz.evaluate(data, keys, ci=True, resamples=100, seed=3)
    assert tuple(turned.metrics) == keys
    assert all(same(turned[key], everything[key]) for key in keys)


def test_one_key_may_be_given_as_text(data):
    assert tuple(calviz.evaluate(data, "ece").metrics) == ("ece",)


def test_a_split_is_the_rows_of_that_split(data):
    of_split = calviz.evaluate(data, ci=True, resamples=50, split="test")
    of_rows = calviz.evaluate(data.split("test"), ci=True, resamples=50)
    assert of_split.split == "test"
    assert of_split.rows == data.splits.counts()["test"]
    assert all(same(of_split[key], of_rows[key]) for key in ALL)


def test_error_bars_are_there_only_when_asked_for(data):
    plain = calviz.evaluate(data, ["ece"])["ece"]
    assert plain.interval is None
    assert plain.noise_floor is None
    only_interval = calviz.evaluate(data, ["ece"], ci=True, noise_floor=False, resamples=50)["ece"]
    assert only_interval.interval is not None
    assert only_interval.noise_floor is None
    only_floor = calviz.evaluate(data, ["ece"], noise_floor=True, resamples=50)["ece"]
    assert only_floor.interval is None
    assert only_floor.noise_floor is not None


def test_options_reach_the_metrics_that_have_them(data):
    few, many = (calviz.evaluate(data, ["ece", "mcs"], bins=bins) for bins in (2, 50))
    assert few["ece"].params["bins"] == 2
    assert few["ece"].value < many["ece"].value
    assert few["mcs"].value == many["mcs"].value


@pytest.mark.parametrize(
    "judge", [calviz.verdict, calviz.explain, calviz.conventions, calviz.evaluate]
)
def test_a_misspelt_option_is_named_with_the_nearest_one(data, judge):
    with pytest.raises(OptionError, match="option 'bin'; did you mean 'bins'"):
        judge(data, bin=3)


@pytest.mark.parametrize(
    "judge", [calviz.verdict, calviz.explain, calviz.conventions, calviz.evaluate]
)
def test_the_options_of_a_sample_are_in_the_signature(judge):
    shown = inspect.signature(judge).parameters
    assert {name: shown[name].default for name in SampleOptions.__annotations__} == dict.fromkeys(
        SampleOptions.__annotations__
    )


def test_type_checkers_know_the_parameters_of_all_metrics():
    declared = {*EvaluateOptions.__annotations__} - {*SampleOptions.__annotations__}
    assert declared | {"bins"} == {p.name for m in METRICS for p in m.parameters}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"metrics": ["nonsense"]}, "there is no metric 'nonsense'; known: "),
        ({"colour": 3}, "no metric has an option 'colour'; known: "),
        ({"bin": 3}, "no metric has an option 'bin'; did you mean 'bins'? known: "),
        ({"sed": 3}, "no metric has an option 'sed'; did you mean 'seed'? known: "),
        ({"bins": 2.5}, "'bins' must be a whole number, got 2.5"),
        ({"bins": True}, "'bins' must be a whole number"),
        ({"bins": 0}, "number of bins"),
        ({"level": 1.0}, "'level' must lie between 0 and 1"),
        ({"resamples": 0}, "'resamples' must be a whole number, 1 or more"),
        ({"scheme": "deciles"}, "'scheme' must be one of equal-width, equal-mass, sturges; got"),
        ({"seed": -1}, "'seed' must be a whole number, 0 or more"),
        ({"reduction": "topmost"}, "'topmost' is unknown"),
        ({"reduction": "class:zebra"}, "there is no class 'zebra'"),
        ({"reduction": "positive"}, "needs two classes"),
    ],
)
def test_wrong_options_are_said_in_a_sentence(data, wrong, words):
    with pytest.raises(OptionError, match=re.escape(words)) as caught:
        calviz.evaluate(data, **wrong)
    assert str(caught.value).endswith(".")
    assert "\n" not in str(caught.value)


def test_an_unknown_split_is_said_in_a_sentence(data):
    with pytest.raises(InputError, match="there is no split 'train'; known: "):
        calviz.evaluate(data, split="train")


def test_confidence_only_data_have_top_label_metrics_and_reasons_for_the_rest():
    full = binary(300, 1)
    confidence = full.probs.max(axis=1)
    correct = full.probs.argmax(axis=1) == full.labels
    only = calviz.ConfidencePredictions(confidence=confidence, correct=correct)
    expected = calviz.evaluate(full, reduction="top-label", ci=True, resamples=50)
    evaluation = calviz.evaluate(only, ci=True, resamples=50)
    for key in ("accuracy", "ece", "mce", "mcs", "ece_equal_mass"):
        assert same(evaluation[key], expected[key])
    for key in ("nll", "brier"):
        assert math.isnan(evaluation[key].value)
        assert not evaluation[key].available
        assert "confidence-only" in evaluation[key].reason
        assert evaluation[key].interval is None
        assert evaluation[key].noise_floor is None
    with pytest.raises(NotAvailable, match="confidence-only"):
        calviz.evaluate(only, reduction="top-2")


@pytest.mark.parametrize(
    ("scheme", "key"), [("equal-mass", "ece_equal_mass"), ("sturges", "ece_sturges")]
)
def test_metrics_of_equal_width_honour_another_scheme(scheme, key):
    data = binary(500, 3)
    keys = ["ece", "ece_l2", "rmsce", "mce", "ece_equal_mass", "ece_sturges"]
    evaluation = calviz.evaluate(data, keys, scheme=scheme, ci=True, resamples=50)
    usual = calviz.evaluate(data, keys, ci=True, resamples=50)
    assert evaluation["ece"].params["scheme"] == scheme
    assert (evaluation["ece"].value, evaluation["ece"].interval) == (
        usual[key].value,
        usual[key].interval,
    )
    assert evaluation["ece"].value != usual["ece"].value
    diagram = calviz.figures.Reliability.compute(data, scheme=scheme)
    assert evaluation["ece"].value == diagram.ece
    # By hand, of the bins that are drawn: weights and gaps.
    bins = diagram.frame().query("rows > 0")
    gap, weight = (bins.mean_score - bins.observed).abs(), bins.rows / 500
    for metric, expected in (
        ("ece", (weight * gap).sum()),
        ("ece_l2", (weight * gap**2).sum()),
        ("rmsce", math.sqrt((weight * gap**2).sum())),
        ("mce", gap.max()),
    ):
        assert evaluation[metric].value == pytest.approx(expected, abs=1e-12)
    for named in ("ece_equal_mass", "ece_sturges"):
        assert evaluation[named].value == usual[named].value


def test_one_row_has_values_and_no_interval():
    one = calviz.Predictions(probs=[[0.2, 0.8]], labels=[1])
    evaluation = calviz.evaluate(one, ci=True, resamples=50)
    assert evaluation["ece"].value == pytest.approx(0.2)
    assert all(result.interval is None for result in evaluation)


def test_an_interval_of_zero_width_is_no_interval():
    right = calviz.Predictions(probs=[[0.3, 0.7], [0.8, 0.2], [0.1, 0.9]], labels=[1, 0, 1])
    assert calviz.evaluate(right, ["accuracy"], ci=True)["accuracy"].interval is None


def test_the_interval_of_the_accuracy_is_that_of_a_binomial(data):
    n, result = data.n, calviz.evaluate(data, ["accuracy"], ci=True, resamples=4_000)["accuracy"]
    low, high = stats.binom.ppf([0.025, 0.975], n, result.value) / n
    assert result.interval == pytest.approx((low, high), abs=2.5 / n)
    wide = calviz.evaluate(data, ["accuracy"], ci=True, level=0.99, resamples=4_000)["accuracy"]
    assert wide.interval.low < result.interval.low
    assert wide.interval.high > result.interval.high


def test_the_noise_floor_of_the_mcs_is_that_of_a_sum_of_bernoulli_draws():
    n = 2_000
    score = binary(n, 5).probs[:, 1]
    spread = math.sqrt((score * (1 - score)).sum()) / n
    # Labels such that the observed value lies two standard deviations out: p = 0.0455.
    target = round(score.sum() - 2 * spread * n)
    labels = np.zeros(n, dtype=int)
    labels[:target] = 1
    data = calviz.Predictions(probs=score, labels=labels)
    floor = calviz.evaluate(
        data, ["mcs"], reduction="positive", noise_floor=True, resamples=20_000
    )["mcs"].noise_floor
    assert floor.mean == pytest.approx(0, abs=4 * spread / math.sqrt(20_000))
    assert floor.q95 == pytest.approx(1.645 * spread, rel=0.04)
    assert floor.p_value == pytest.approx(0.0455, rel=0.15)


def test_the_classes_are_the_rows_of_each_true_class_scored_by_the_top_label(data):
    assert calviz.evaluate(data, ["accuracy"]).classes == ()
    rows = calviz.evaluate(data, ["accuracy"], reduction="top-2", classes=True).classes
    assert [row.name for row in rows] == list(data.class_names)
    assert sum(row.rows for row in rows) == data.n
    for k, row in enumerate(rows):
        mine = calviz.evaluate(data.take(data.labels == k), ["accuracy", "ece", "mcs"])
        assert row.accuracy == pytest.approx(mine["accuracy"].value)
        assert row.ece == pytest.approx(mine["ece"].value)
        assert row.mcs == pytest.approx(mine["mcs"].value)


def test_confidence_only_data_have_classes_where_they_have_labels():
    columns = {"confidence": [0.9, 0.8, 0.6], "correct": [True, False, True]}
    assert calviz.evaluate(calviz.ConfidencePredictions(**columns)).classes == ()
    labelled = calviz.ConfidencePredictions(**columns, labels=[0, 2, 0])
    rows = calviz.evaluate(labelled).classes
    assert [(row.name, row.rows) for row in rows] == [("0", 2), ("1", 0), ("2", 1)]
    assert rows[0].mcs == pytest.approx(0.75 - 1)
    assert math.isnan(rows[1].ece)


@pytest.mark.slow
def test_findings_and_verdict_are_those_of_the_checks(data):
    sample = Sample(data.split("test"), "top-2", bins=10, seed=2)
    full = calviz.evaluate(data, split="test", reduction="top-2", bins=10, seed=2, resamples=200)
    assert full.findings == findings_of(sample)
    assert calviz.evaluate(data, ["ece"]).findings == ()
    massed = calviz.evaluate(data, ["ece"], findings=True, scheme="equal-mass", resamples=200)
    assert massed.findings == findings_of(Sample(data, scheme="equal-mass"))
    verdict = calviz.verdict(data, split="test", reduction="top-2", bins=10, seed=2)
    assert verdict == sentence.judged(sample)
    assert verdict.sentence.endswith(".")
    with pytest.raises(OptionError, match="'seed' must be a whole number"):
        calviz.verdict(data, seed=-1)


@pytest.mark.slow
def test_the_verdict_has_the_numbers_of_the_evaluation(data):
    full = calviz.evaluate(data, ci=True, seed=5)
    verdict = calviz.verdict(data, seed=5)
    assert verdict.mcs == full["mcs"].value
    assert verdict.interval == full["mcs"].interval
    assert verdict.ece == full["ece"].value
    assert verdict.noise_floor == full["ece"].noise_floor


KEYS = ["accuracy", "ece", "ece_equal_mass", "mcs", "nll", "brier"]


@pytest.mark.slow
def test_p_values_of_a_calibrated_model_are_uniform():
    p_values = {key: [] for key in KEYS}
    for seed in range(150):
        evaluation = calviz.evaluate(
            binary(400, seed), KEYS, noise_floor=True, resamples=199, seed=seed, bins=10
        )
        for key in KEYS:
            floor = evaluation[key].noise_floor
            if floor is not None:
                p_values[key].append(floor.p_value)
    for key, values in p_values.items():
        if values:
            assert stats.kstest(values, "uniform").pvalue > 1e-3, key


def test_p_values_of_an_overconfident_model_are_small():
    evaluation = calviz.evaluate(
        binary(2_000, 7, calibrated=False), ["ece", "mcs"], noise_floor=True, resamples=199
    )
    assert evaluation["ece"].noise_floor.p_value == pytest.approx(1 / 200)
    assert evaluation["mcs"].noise_floor.p_value == pytest.approx(1 / 200)


@pytest.mark.slow
def test_intervals_cover_the_truth_about_as_often_as_they_say():
    # The truth: the mean over an independent sample a hundred times as large.
    keys = ["accuracy", "mcs", "nll", "brier"]
    truth = calviz.evaluate(binary(200_000, 999, calibrated=False), keys)
    runs, covered = 300, dict.fromkeys(keys, 0)
    for seed in range(runs):
        evaluation = calviz.evaluate(
            binary(300, seed, calibrated=False), keys, ci=True, noise_floor=False, resamples=300
        )
        for key in keys:
            low, high = evaluation[key].interval
            covered[key] += low <= truth[key].value <= high
    # 0.1 % and 99.9 % quantiles of a binomial around 94 % (the percentile bootstrap is a bit short).
    low, high = stats.binom.ppf([0.001, 0.999], runs, 0.94)
    for key, count in covered.items():
        assert low <= count <= high, (key, count / runs)
