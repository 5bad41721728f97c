"""Suggestions and advice: the guideline as it is printed, and rules that can be checked by hand."""

import json
from pathlib import Path

import numpy as np
import pytest

import calviz
from calviz.comparison.advice import advise, guideline, suggest
from calviz.comparison.compare import compare
from calviz.comparison.comparison_results import Comparison, Difference, MethodResult, RowsUsed
from calviz.comparison.rows import Division
from calviz.core.entry_specs import RECALIBRATORS
from calviz.core.predictions import ConfidencePredictions, Predictions
from calviz.sample.error_bars import Interval
from calviz.sample.metric_results import MetricResult
from tests.inputs.simulated import draw_labels, softmax


def data(k, n=None):
    n = n or 2 * k
    return Predictions(probs=np.full((n, k), 1 / k), labels=np.arange(n) % k)


def top():
    return ConfidencePredictions(confidence=np.full(50, 0.7), correct=np.arange(50) % 2 == 0)


def comparison(values, tied, *, changed=(), in_sample=False, failed=(), rows=5_000, verdicts=None):
    methods = {
        key: MethodResult(
            key,
            RECALIBRATORS[key].label,
            key not in failed,
            accuracy_preserving=RECALIBRATORS[key].accuracy_preserving,
            predictions_changed=7 if key in changed else 0,
            metrics={} if key in failed else {"brier": MetricResult("brier", value)},
            differences={
                metric: Difference(0.0, Interval(0.0, 0.0), verdict)
                for metric, verdict in (verdicts or {}).get(key, {}).items()
            },
        )
        for key, value in values.items()
    }
    used = RowsUsed("a", rows, "split 'a'")
    return Comparison(
        "x", used, used, in_sample, 0, "top-label", methods, {"brier": "lower"}, {"brier": tied}
    )


# ------------------------------------------------------------------ what wins elsewhere

RECORDED = json.loads(
    (Path(calviz.__file__).parent / "comparison" / "arena_evidence.json").read_text()
)["groups"]


@pytest.mark.parametrize(
    ("k", "rows", "group", "published"),
    [
        (2, 500, 0, "ensemble temperature scaling"),
        (2, 1_000, 1, "ensemble temperature scaling"),
        (10, 999, 2, "ensemble temperature scaling"),
        (2, 100_000, 4, "ensemble temperature scaling"),
        (10, 5_000, 3, "ensemble temperature scaling"),  # not complex (Zhang 2020, appendix G)
        (100, 1_000, 7, "ensemble temperature scaling"),  # complex, little data
        (100, 5_000, 7, "then one-vs-rest isotonic"),
        (1_000, 25_000, 8, "then one-vs-rest isotonic"),
        (1_000, 5_000, 8, "ensemble temperature scaling"),
    ],
)
def test_the_guideline_is_what_wins_on_data_like_these(k, rows, group, published):
    methods = RECORDED[group]["methods"]
    best = max(
        (m for m in methods if m != "identity"),
        key=lambda m: methods[m]["brier"] + methods[m]["nll"],
    )
    rule = guideline(data(k), rows)
    assert rule.method == best
    assert f"In {RECORDED[group]['experiments']:,} experiments" in rule.reason
    assert f"{methods[best]['brier']:.2f} by Brier score" in rule.reason
    worse = round(100 * methods[best]["worse_brier"])
    assert f"without calibration in {f'{worse} %' if worse else 'none of them'}" in rule.reason
    assert published in rule.reason
    keeping = guideline(data(k), rows, keep_classes=True)
    assert RECALIBRATORS[keeping.method].accuracy_preserving
    assert "of those that keep every predicted class" in keeping.reason
    assert "then one-vs-rest" not in keeping.reason


def test_of_confidences_only_what_is_defined_for_them_is_recommended():
    rule = guideline(top(), 1_000)
    assert RECALIBRATORS[rule.method].confidence_only
    assert "Zhang" not in rule.reason


def test_the_record_is_of_whole_groups():
    for group in RECORDED:
        assert group["experiments"] >= 5
        for value in group["methods"].values():
            assert all(0 <= value[name] <= 1 for name in ("brier", "nll", "worse_brier"))
        # What changes nothing is never worse than nothing.
        assert group["methods"]["identity"]["worse_brier"] == 0


# ------------------------------------------------------------------ the advice


def test_what_wins_elsewhere_wins_a_tie():
    result = comparison(
        {"identity": 0.5, "temperature": 0.4, "auto": 0.41, "isotonic": 0.42},
        ("temperature", "auto", "isotonic"),
    )
    advice = advise(result, data(10))
    assert advice.method == "auto"
    assert "from 0.5000 to 0.4100" in advice.reasons[0]
    # Labels have commas of their own.
    isotonic = RECALIBRATORS["isotonic"].label
    assert f"cannot be told apart from Temperature scaling; {isotonic}." in advice.reasons[0]


def test_what_is_worse_beyond_noise_is_not_advised():
    result = comparison(
        {"identity": 0.5, "auto": 0.45, "ets": 0.44, "isotonic": 0.3},
        ("isotonic",),
        changed=("isotonic",),
    )
    advice = advise(result, data(10))
    assert advice.method == "isotonic"
    assert any(
        "Here the Brier score of Automatic mixture is worse than that of Isotonic" in r
        for r in advice.reasons
    )
    assert any("changes the predicted class of 7 of 5,000 rows" in r for r in advice.reasons)
    # Where classes must stay, the best of the others.
    assert advise(result, data(10), keep_classes=True).method == "ets"


@pytest.mark.parametrize(
    ("verdicts", "message"),
    [
        ({"brier": "tied"}, "Here the Brier score is not better than that of the uncalibrated"),
        (
            {"brier": "better", "nll": "worse"},
            "Here the NLL is worse than that of the uncalibrated",
        ),
    ],
)
def test_what_does_not_improve_the_model_is_not_advised_by_a_tie_with_the_best(verdicts, message):
    # A noisy difference is tied with the best and with none; zeros of isotonic maps cost NLL.
    result = comparison(
        {"identity": 0.5, "vector": 0.4, "sms": 0.45},
        ("vector", "sms"),
        verdicts={"vector": {"brier": "better"}, "sms": verdicts},
    )
    advice = advise(result, data(100))
    assert advice.method == "vector"
    assert any(message in r for r in advice.reasons)
    assert any("is better than that of the uncalibrated model" in r for r in advice.reasons)


def test_nothing_is_advised_where_even_the_best_makes_the_nll_worse():
    result = comparison(
        {"identity": 0.5, "histogram": 0.4},
        ("histogram",),
        verdicts={"histogram": {"brier": "better", "nll": "worse"}},
    )
    advice = advise(result, data(10))
    assert advice.method == "identity"
    assert "has the best Brier score" in advice.reasons[0]
    assert "but its NLL is worse" in advice.reasons[0]


def test_a_model_that_nothing_improves_is_left_alone():
    result = comparison({"identity": 0.5, "ets": 0.49}, ("ets", "identity"))
    advice = advise(result, data(10))
    assert advice.method == "identity"
    assert "the two are not told apart" in advice.reasons[0]
    assert advice.reasons[1].startswith("That does not make the model calibrated")
    worse = comparison({"identity": 0.5, "ets": 0.6}, ("identity",))
    assert advise(worse, data(10)).method == "identity"


def test_what_is_better_only_beside_the_uncalibrated_model_is_said_so():
    # The table calls it better, adjusted for the methods; adjusted for all pairs, the two are not told apart.
    tied = ("identity", "temperature", "beta")
    values = {"identity": 0.12, "temperature": 0.09, "beta": 0.1}
    advice = advise(
        comparison(values, tied, verdicts={"temperature": {"brier": "better"}}), data(2)
    )
    assert advice.method == "identity"
    words = " ".join(advice.reasons)
    assert "No method is better" not in words
    assert (
        "better beyond noise than that of the uncalibrated model if methods are compared" in words
    )
    assert "with all pairs of methods taken into account" in words
    advice = advise(comparison(values, tied, verdicts={"temperature": {"brier": "tied"}}), data(2))
    assert "No method is better" in " ".join(advice.reasons)


def test_where_nothing_was_fitted_nothing_is_claimed():
    result = comparison({"identity": 0.5, "ets": 0.4}, ("identity",), failed=("ets",))
    assert advise(result, data(10)).reasons == (
        "No method was fitted, so there is no basis for a choice.",
    )


def test_in_sample_results_are_no_ground_for_a_choice():
    result = comparison({"identity": 0.5, "ets": 0.4}, ("ets",), in_sample=True)
    assert any("no basis for a choice" in r for r in advise(result, data(10)).reasons)


def test_a_recommended_method_that_failed_or_was_not_tried_is_mentioned():
    failed = comparison(
        {"identity": 0.5, "auto": 0.4, "temperature": 0.4}, ("temperature",), failed=("auto",)
    )
    assert any("It has no result here: " in r for r in advise(failed, data(10)).reasons)
    missing = comparison({"identity": 0.5, "temperature": 0.4}, ("temperature",))
    assert any(
        "('auto') was not compared: add it to the methods and compare again" in r
        for r in advise(missing, data(10)).reasons
    )


def test_advice_on_a_real_comparison_of_simulated_data():
    # Logits twice as large as the truth: temperature scaling is right, and the model is not.
    rng = np.random.default_rng(0)
    z = rng.normal(scale=1.5, size=(4_000, 5))
    p = softmax(z)
    y = draw_labels(p, rng)
    q = softmax(2 * z)
    d = Predictions(probs=q, labels=y)
    compared = compare(d, ["temperature", "ets", "histogram"], metrics=["brier"], resamples=200)
    assert advise(compared, d).method in ("temperature", "ets")


# ------------------------------------------------------------------ suggestions


def test_every_method_is_suggested_left_out_or_impossible():
    for d in (data(2), data(3), data(100), top()):
        s = suggest(d, 2_000)
        named = [*s.methods, *s.left_out, *s.impossible, "identity"]
        assert sorted(named) == sorted(RECALIBRATORS.keys())
        assert all(
            reason.endswith(".") for reason in (*s.left_out.values(), *s.impossible.values())
        )


def test_methods_of_all_classes_are_impossible_for_confidences():
    s = suggest(top(), 2_000)
    assert set(s.impossible) == {spec.key for spec in RECALIBRATORS if not spec.confidence_only}
    assert "auto" in s.methods


def test_what_wins_on_such_data_is_suggested_and_what_does_not_says_its_rank():
    result = suggest(data(2), 500)
    ranking = guideline(data(2), 500).ranking
    possible = [key for key in ranking if key in result.methods or "number" in result.left_out[key]]
    assert set(possible[:5]) <= set(result.methods)
    last = next(key for key in reversed(possible) if key in result.left_out)
    assert f"number {ranking.index(last) + 1} of {len(ranking)} methods in" in result.left_out[last]
    assert "auto" in result.methods


def test_maps_of_each_class_need_rows():
    few = suggest(data(100), 1_999)
    assert "20.0 each" in few.left_out["isotonic"]
    assert {"auto", "temperature", "ets"} <= set(few.methods)
    assert "matrix-odir" in suggest(data(1_000), 25_000).left_out


def test_all_rows_fit_and_judge_in_sample_where_that_is_asked_for():
    rows = Division(in_sample=True).rows(data(3, 60))
    assert rows.in_sample
    assert rows.fit.rows == rows.evaluation.rows == 60


def test_nothing_fitted_is_no_verdict_on_the_methods():
    result = comparison({"identity": 0.3, "ets": 0.1}, ("identity",), failed=("ets",))
    advice = advise(result, data(3, 5_000))
    assert advice.method == "identity"
    assert "No method was fitted, so there is no basis for a choice." in advice.reasons
    assert not any("No method has a better" in reason for reason in advice.reasons)
