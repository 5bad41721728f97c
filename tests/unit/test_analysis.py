"""Analyses from end to end, and data at the edge."""

from __future__ import annotations

import csv
import doctest
import importlib
import inspect
import io
import json
import math
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.calibration import calibration_curve

import calviz
from calviz.core.entry_specs import METRICS, RECALIBRATORS, MetricResult
from calviz.core.errors import OTHER_NAMES, InputError, NotAvailable, OptionError
from calviz.core.predictions import Predictions
from calviz.core.words import csv_bytes, latex_table, markdown_table, spreadsheet_text
from calviz.data import ReadingOptions
from calviz.sample import draws as affordable_resamples
from calviz.sample.draws import ROOM, affordable
from calviz.sample.sample import Sample
from calviz.sample.true_classes import true_class_errors
from calviz.verdicts import sentence
from calviz.verdicts.analysis import EvaluateOptions, SampleOptions, findings_of
from tests.inputs.oracle import plain_metrics
from tests.inputs.simulated import draw_labels

# ---- `calviz.verdicts.analysis`: one set of numbers, whatever else is asked for, with honest error bars


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


@pytest.mark.slow
def test_a_metric_alone_is_the_metric_among_others(data, everything):
    for key in ALL:
        alone = calviz.evaluate(data, [key], ci=True, resamples=100, seed=3)
        assert same(alone[key], everything[key]), key


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
    ("theirs", "ours"),
    [("log_loss", "nll"), ("log-loss", "nll"), ("roc_auc", "auroc"), ("brier_score_loss", "brier")],
)
def test_the_names_of_scikit_learn_are_answered_with_ours(data, theirs, ours):
    for asked in (calviz.scorer, calviz.evaluate(data, ["ece"]).__getitem__):
        with pytest.raises(OptionError, match=f"'{theirs}'; did you mean '{ours}'"):
            asked(theirs)


def test_every_name_of_others_leads_to_a_known_one():
    columns = ReadingOptions.__dataclass_fields__
    assert not set(OTHER_NAMES) - {*METRICS.keys(), *RECALIBRATORS.keys(), *columns}


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
        ({"metrics": ["ECE"]}, "there is no metric 'ECE'; did you mean 'ece'? known: "),
        ({"colour": 3}, "no metric has an option 'colour'; known: "),
        ({"bin": 3}, "no metric has an option 'bin'; did you mean 'bins'? known: "),
        ({"sed": 3}, "no metric has an option 'sed'; did you mean 'seed'? known: "),
        ({"bins": 2.5}, "'bins' must be a whole number, got 2.5"),
        ({"bins": True}, "'bins' must be a whole number"),
        ({"bins": 0}, "number of bins"),
        ({"level": 1.0}, "'level' must lie between 0 and 1, got 1.0."),
        ({"level": 95}, "got 95 (95 % is 0.95)."),
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


@pytest.mark.parametrize(
    ("scheme", "strategy"), [("equal-width", "uniform"), ("equal-mass", "quantile")]
)
def test_cube_root_draws_what_scikit_learn_draws(scheme, strategy):
    data = binary(512, 3)
    diagram = calviz.figures.Reliability.compute(data, bins="cube_root", scheme=scheme)
    observed, mean = calibration_curve(data.labels, data.probs[:, 1], n_bins=8, strategy=strategy)
    drawn = diagram.frame().query("rows > 0")
    np.testing.assert_allclose(drawn.observed, observed, atol=1e-12)
    np.testing.assert_allclose(drawn.mean_score, mean, atol=1e-12)
    # Bins that name their scheme have as many, and a part of the rows has its own number.
    keys = ["ece_equal_mass", "classwise_ece"]
    ours = calviz.evaluate(data, keys, bins="cube_root", scheme=scheme)
    theirs = calviz.evaluate(data, keys, bins=8)
    assert [ours[key].value for key in keys] == [theirs[key].value for key in keys]
    part = Sample(data.take(np.arange(100)), bins="cube_root", scheme=scheme)
    assert part.bins_used == 5


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


# ---- Numbers at the ends of their range: right, or refused in one sentence; large n and K in bounded memory


ROOT = Path(__file__).resolve().parents[2]
N = 300
RNG = np.random.default_rng(8)
LABELS = RNG.integers(3, size=N)
Z = RNG.normal(size=(N, 3)) + np.eye(3)[LABELS]


def softmax(z: np.ndarray) -> np.ndarray:
    """In long double, so that it can be the judge of double."""
    z = z.astype(np.longdouble)
    odds = np.exp(z - z.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def one_hot(rest: float, dtype: str, shift: int = 0) -> np.ndarray:
    probs = np.full((N, 3), rest, dtype=dtype)
    probs[np.arange(N), (LABELS + shift) % 3] = 1
    return probs


EXTREMES: dict[str, Predictions] = {
    **{f"logits of 1e4, {t}": Predictions(logits=(4e3 * Z).astype(t), labels=LABELS) for t in ("f2", "f4", "f8")},
    **{f"logits, {t}": Predictions(logits=Z.astype(t), labels=LABELS) for t in ("f2", "f4", "f8")},
    **{f"probabilities, {t}": Predictions(probs=softmax(Z).astype(t), labels=LABELS) for t in ("f2", "f4", "f8")},
    "logits of 3e38, f4": Predictions(logits=np.float32(3e38) * np.sign(Z).astype("f4"), labels=LABELS),
    "logits of 1.7e308": Predictions(logits=1.7e308 * np.sign(Z), labels=LABELS),
    "1e-320, right": Predictions(probs=one_hot(1e-320, "f8"), labels=LABELS),
    "1e-320, wrong": Predictions(probs=one_hot(1e-320, "f8", 1), labels=LABELS),
    "1e-45, wrong": Predictions(probs=one_hot(1e-45, "f4", 1), labels=LABELS),
    "exact zeros": Predictions(probs=one_hot(0, "f8", 1), labels=LABELS),
    "a last digit outside": Predictions(probs=one_hot(-1e-7, "f8"), labels=LABELS),
    "all equal": Predictions(probs=np.full((N, 3), 1 / 3), labels=LABELS),
}  # fmt: skip


@pytest.mark.usefixtures("few_candidates")
@pytest.mark.slow
@pytest.mark.parametrize("key", EXTREMES)
def test_every_metric_is_finite_or_says_why(key: str) -> None:
    for reduction in ("top-label", "class:0"):
        evaluation = calviz.evaluate(EXTREMES[key], reduction=reduction, ci=True, resamples=5)
        for result in evaluation:
            assert np.isfinite(result.value) or result.reason, result.key
        assert set(evaluation.metrics) == set(METRICS.keys())


@pytest.mark.usefixtures("few_candidates")
@pytest.mark.parametrize("key", EXTREMES)
def test_values_are_those_of_plain_numpy(key: str) -> None:
    data = EXTREMES[key]
    evaluation = calviz.evaluate(data, ["accuracy", "brier", "ece", "nll"], bins=15, findings=False)
    probs = np.clip(data.probs.astype(np.float64), 0, None)
    with np.errstate(divide="ignore"):
        expected = plain_metrics(probs, data.labels)
    if key not in ("all equal", "a last digit outside"):  # ties and edges are another question
        assert evaluation["ece"].value == pytest.approx(expected["ece15"], abs=2e-6)
    assert evaluation["accuracy"].value == expected["accuracy"]
    assert evaluation["brier"].value == pytest.approx(expected["brier"], abs=2e-6)
    if data.kind == "logits":
        # Of logits the loss is exact, also where their softmax is 0.
        z = data.logits.astype(np.longdouble)
        z -= z.max(axis=1, keepdims=True)
        exact = np.log(np.exp(z).sum(axis=1)) - z[np.arange(N), LABELS]
        assert evaluation["nll"].details["clipped_rows"] == 0
        exact = np.minimum(exact, 1e100)  # beyond every loss that means anything
        assert evaluation["nll"].value == pytest.approx(float(exact.mean()), rel=1e-5, abs=1e-6)
    else:
        of_true, eps = probs[np.arange(N), LABELS], np.finfo(np.float64).eps
        clipped = -np.log(np.maximum(of_true, eps)).mean()
        assert evaluation["nll"].value == pytest.approx(clipped, rel=1e-5, abs=1e-6)
        assert evaluation["nll"].details["clipped_rows"] == np.count_nonzero(of_true < eps)


@pytest.mark.usefixtures("few_candidates")
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("size", [1.0, 4e3])
def test_softmax_against_long_double(dtype: str, size: float) -> None:
    logits = (size * Z).astype(dtype)
    probs = Predictions(logits=logits, labels=LABELS).probs
    assert probs.dtype == (np.float64 if dtype == "f8" else np.float32)
    np.testing.assert_allclose(probs, softmax(logits).astype(float), atol=2e-7 if dtype != "f8" else 1e-15)  # fmt: skip


@pytest.mark.usefixtures("few_candidates")
@pytest.mark.parametrize("method", RECALIBRATORS.keys())
def test_maps_give_distributions(method: str) -> None:
    for key in ("logits of 1e4, f4", "logits, f2", "1e-320, wrong", "exact zeros"):
        data = EXTREMES[key]
        declared = "logits" if data.logits is not None else "probabilities"
        array = data.logits if data.logits is not None else data.probs
        out = RECALIBRATORS[method].make(input=declared).fit(array, LABELS).transform(array)
        assert np.isfinite(out).all(), key
        assert out.min() >= 0, key
        assert np.abs(out.sum(axis=1, dtype=float) - 1).max() < 1e-5, key


@pytest.mark.usefixtures("few_candidates")
def test_logits_that_mark_left_out_classes_are_refused_by_maps_with_a_remedy() -> None:
    logits = Z.astype("f4")
    logits[4, 1] = np.finfo("f4").min
    with pytest.raises(InputError, match=r"row 5.*class 1 is -3.4e\+38.*write -1e4"):
        RECALIBRATORS["temperature"].make(input="logits").fit(logits, LABELS)


@pytest.mark.usefixtures("few_candidates")
@pytest.mark.slow
def test_twenty_thousand_classes() -> None:
    k, n = 20_000, 40
    probs = RNG.dirichlet(np.full(k, 0.01), size=n)
    labels = RNG.integers(k, size=n)
    labels[::2] = probs[::2].argmax(axis=1)
    data = Predictions(probs=probs, labels=labels)
    evaluation = calviz.evaluate(data, ["accuracy", "brier", "ece"], findings=False)
    expected = plain_metrics(probs, labels)
    assert evaluation["accuracy"].value == expected["accuracy"]
    assert evaluation["brier"].value == pytest.approx(expected["brier"], rel=1e-9)
    assert evaluation["ece"].value == pytest.approx(expected["ece15"], abs=1e-12)
    out = RECALIBRATORS["temperature"].make().fit(probs, labels).transform(probs)
    assert np.abs(out.sum(axis=1) - 1).max() < 1e-9


@pytest.mark.usefixtures("few_candidates")
def test_resamples_of_many_classes_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    k = 20_000
    assert affordable(1_000, 1.0, size=2 * 3 * 8 * k) == ROOM // (48 * k) < 300
    assert affordable(1_000, 1.0, size=2 * 3 * 8 * 1_000) == 1_000
    with pytest.raises(NotAvailable):
        affordable(1_000, 1.0, size=ROOM // 99)
    source = true_class_errors(Sample(EXTREMES["logits, f8"])).source
    weights = RNG.integers(3, size=(N, 7)).astype(float)
    whole = source.weighted_errors(weights)
    monkeypatch.setattr(affordable_resamples, "PART_ENTRIES", 2 * 3 * source.bins)
    for one, other in zip(whole, source.weighted_errors(weights), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


#: Reads a file and evaluates it, and says how much the process grew.
LARGE = """
import json, pathlib, sys
import calviz
from calviz.data import read

def memory(key):
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))

read(b"y,prob\\n0,0.5\\n1,0.5\\n", name="warm.csv")
pathlib.Path("/proc/self/clear_refs").write_text("5")
before = memory("VmRSS")
data = read(sys.argv[1]).first
read_peak = memory("VmHWM") - before
found = calviz.evaluate(data, ["accuracy", "brier", "nll", "ece"], reduction="positive", findings=False)
print(json.dumps([data.n, read_peak, memory("VmHWM") - before, {r.key: r.value for r in found}]))
"""


@pytest.mark.usefixtures("few_candidates")
@pytest.mark.slow
def test_five_million_rows(tmp_path: Path) -> None:
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("the largest size of a process can be set back on Linux only")
    n = 5_000_000
    rng = np.random.default_rng(0)
    score = rng.integers(1, 1_000, size=n)
    label = (rng.integers(1_000, size=n) < score).astype(np.int8)
    path = tmp_path / "large.csv"
    lines = [f"{y},0.{value:03d}\n" for y in (0, 1) for value in range(1_000)]
    path.write_text(
        "y,prob\n" + "".join(lines[j] for j in (1_000 * label.astype(int) + score).tolist())
    )
    done = subprocess.run(
        [sys.executable, "-c", LARGE, str(path)], env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    rows, read_peak, peak, values = json.loads(done.stdout)
    assert rows == n
    assert read_peak < 500 << 20
    assert peak < 900 << 20
    p = score / 1_000
    assert values["nll"] == pytest.approx(-np.log(np.where(label == 1, p, 1 - p)).mean(), rel=1e-5)
    assert values["brier"] == pytest.approx(2 * ((p - label) ** 2).mean(), rel=1e-5)


# ---- CSV that no spreadsheet takes for a program


def _read(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode())))


@pytest.mark.parametrize(
    "text", ["=1+1", "+cmd", "-x", "@SUM(A1)", "\tx", "\rx", " =1", "\u200a@x", "\uff1d1"]
)
def test_formula_signs_are_neutralised_in_cells_and_headers(text):
    frame = pd.DataFrame({text: [text, "plain"]})
    header, first, second = _read(csv_bytes(frame))
    assert header == ["'" + text]
    assert first == [spreadsheet_text(text)] == ["'" + text]
    assert second == ["plain"]


def test_markdown_cells_are_neutralised_and_signed_numbers_are_not():
    frame = pd.DataFrame({"=A1": ["=1+1", "+cmd|x", "+1.5 (0.2 to 3)", "-2"]})
    cells = [line.strip("| ") for line in markdown_table(frame).splitlines()]
    assert cells == ["'=A1", "---", "'=1+1", r"'+cmd\|x", r"+1.5 \(0.2 to 3\)", "-2"]


def test_numbers_stay_numbers_and_quotes_survive():
    frame = pd.DataFrame({"n": np.array([-1, 2]), "x": [0.1, -0.25], "t": ['a "b", c', None]})
    assert _read(csv_bytes(frame)) == [
        ["n", "x", "t"],
        ["-1", "0.1", 'a "b", c'],
        ["2", "-0.25", ""],
    ]


def test_markdown_and_latex_show_texts_as_they_are():
    frame = pd.DataFrame({"a_b": ["x|y", "50 %"], "v": ["1", "\u22122"]})
    markdown = markdown_table(frame, caption="<b>", right=["v"])
    assert markdown.splitlines()[:3] == ["| a\\_b | v |", "| --- | ---: |", "| x\\|y | 1 |"]
    assert "\\<b\\>" in markdown
    latex = latex_table(frame, caption="50 % & more", right=["v"])
    assert r"\begin{tabular}{lr}" in latex
    assert r"50 \% & $-$2 \\" in latex
    assert r"\caption{50 \% \& more}" in latex


# ---- The examples in docstrings do what they say
#
# Only modules that have any are looked through: pytest's own collection imports and searches all of them in every process.


MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in (ROOT / "calviz").rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


def test_some_modules_have_examples():
    assert len(MODULES) > 20


@pytest.mark.parametrize("name", MODULES)
def test_examples_do_what_they_say(name):
    module = importlib.import_module(name)
    result = doctest.testmod(module, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    assert result.attempted
    assert not result.failed
