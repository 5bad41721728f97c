"""Suggestions and advice: the guideline as it is printed, and rules that can be checked by hand."""

import json
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit, logit

import calviz
from benchmarks.claims import SIMULATIONS, mean_and_error
from benchmarks.claims.advice import brought, by_column, of_classes, of_slice
from calviz.comparison.advice import advise, guideline, rows_of_slice, suggest
from calviz.comparison.compare import KeptComparisons, compare
from calviz.comparison.comparison_results import Comparison, Difference, MethodResult, RowsUsed
from calviz.comparison.difference_intervals import SCALES, Spread, Z
from calviz.comparison.fitting import Division, calibrated_by, simple_method
from calviz.comparison.paired_differences import PairedMetric
from calviz.core.entry_specs import RECALIBRATORS, Interval, MetricResult, cheap_method
from calviz.core.predictions import ConfidencePredictions, Predictions, cut_columns
from calviz.core.words import IN_TURN, signed_points
from calviz.report.sections.summary import advice_words, advised
from calviz.sample.sample import where_words
from tests.inputs.simulated import draw_labels, softmax


def data(k, n=None):
    n = n or 2 * k
    return Predictions(probs=np.full((n, k), 1 / k), labels=np.arange(n) % k)


def top():
    return ConfidencePredictions(confidence=np.full(50, 0.7), correct=np.arange(50) % 2 == 0)


OFF = "Overconfident by 9.0 points on 5,000 rows."


def comparison(
    values, near=(), *, found=OFF, numbers=(), changed=(), failed=(), verdicts=None, **fields
):
    """A comparison with Brier scores; `near` are the methods within one standard error of the best candidate."""
    methods = {
        key: MethodResult(
            key,
            RECALIBRATORS[key].label,
            key not in failed,
            accuracy_preserving=RECALIBRATORS[key].accuracy_preserving,
            predictions_changed=7 if key in changed else 0,
            numbers=dict(numbers).get(key, 9),
            metrics={} if key in failed else {"brier": MetricResult("brier", value)},
            differences={
                metric: Difference(0.0, INTERVALS[verdict], verdict)
                for metric, verdict in (verdicts or {}).get(key, {}).items()
            },
        )
        for key, value in values.items()
    }
    used = RowsUsed("a", 5_000, "split 'a'")
    made = Comparison(
        "x",
        used,
        used,
        fields.pop("in_sample", False),
        0,
        "top-label",
        methods,
        directions={"brier": "lower"},
        tied={"brier": tuple(values)[:1]},
        found=found,
        **fields,
    )
    lists = [made.candidates(keep_classes=keep) for keep in (True, False)]
    return replace(made, near={names[0]: (names[0], *near) for names in lists if names})


# ------------------------------------------------------------------ what wins elsewhere

INTERVALS = {
    "better": Interval(-0.2, -0.1),
    "tied": Interval(-0.1, 0.1),
    "worse": Interval(0.1, 0.2),
}
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


VALUES = {"identity": 0.5, "vector": 0.41, "temperature": 0.42, "isotonic": 0.4}


def test_of_methods_near_the_best_the_simplest_is_advised():
    numbers = {"isotonic": 80, "vector": 13, "temperature": 4}
    result = comparison(VALUES, ("vector", "temperature"), numbers=numbers)
    advice = advise(result, data(10))
    assert advice.method == "temperature"
    assert advice.reasons[0] == (
        "The verdict finds miscalibration, and Temperature scaling is the simplest of 3 methods within one standard error of the best "
        f"Brier score ({RECALIBRATORS['isotonic'].label}, whose lead may be chance)."
    )
    assert "(Brier score 0.5000 before, 0.4200 after)" in advice.reasons[1]
    # Labels have commas of their own.
    assert (
        f"{RECALIBRATORS['isotonic'].label}; {RECALIBRATORS['vector'].label}." in advice.reasons[1]
    )
    assert advice.reasons[2] == f"Verdict before recalibration: {OFF}"
    assert advice.headline == "Advice: Temperature scaling"
    assert str(replace(result, advice=advice)).splitlines()[1] == (
        f"{advice.headline}. {advice.reasons[0]}"
    )
    # What is further from the best is not advised, however simple.
    assert advise(comparison(VALUES, ("vector",), numbers=numbers), data(10)).method == "vector"
    # Where the simplest is the best, there is nothing to explain.
    best = advise(comparison(VALUES, ("vector",), numbers={"isotonic": 1, "vector": 13}), data(10))
    assert best.reasons[0].endswith(
        "is the simplest of 2 methods within one standard error of the best Brier score."
    )
    alone = advise(comparison(VALUES, numbers=numbers), data(10))
    assert alone.method == "isotonic"
    assert (
        "has the best Brier score of the methods, by more than one standard error"
        in alone.reasons[0]
    )
    # What the table marks as not told apart is not far behind.
    for tied, beside in (
        (("isotonic", "vector"), "Vector scaling."),
        (("isotonic", "vector", "temperature"), "2 other methods."),
    ):
        marked = advise(
            replace(comparison(VALUES, numbers=numbers), tied={"brier": tied}), data(10)
        )
        assert marked.reasons[0].endswith(
            f"by more than one standard error; not told apart from it at 95 % (≈): {beside}"
        )


def test_the_advice_says_which_methods_were_compared_and_how_to_compare_others():
    known = suggest(data(10), comparison(VALUES).fit.rows)
    every, usual = {*known.methods, *known.left_out}, known.methods

    def said(keys):
        result = comparison(dict.fromkeys(["identity", *keys], 0.5))
        return next(r for r in advise(result, data(10)).reasons if r.startswith("Compared"))

    assert said(("vector", "temperature")).startswith("Compared: ")
    assert said(("vector", "temperature")).endswith(f" of {len(every)} methods for such data.")
    some = said(usual)
    assert some.startswith(f"Compared: the {len(usual)} suggested of {len(every)} methods")
    assert some.endswith("with all (--methods all; All in the app) the advice may differ.")
    whole = said(every)
    assert whole.startswith(f"Compared: all {len(every)} methods")
    assert f"with the {len(usual)} suggested (--methods suggested; Suggested in the app)" in whole


def test_a_single_candidate_is_called_the_only_one():
    advice = advise(comparison({"identity": 0.5, "ets": 0.4}), data(10))
    assert advice.reasons[0].endswith("is the only method with a better Brier score.")


def test_of_equally_simple_methods_one_that_keeps_classes_then_what_wins_elsewhere():
    near = ("vector", "temperature")
    assert advise(comparison(VALUES, near), data(10)).method == "temperature"
    values = {"identity": 0.5, "vector": 0.4, "sms": 0.41, "dirichlet-odir": 0.42}
    ranking = guideline(data(10), 5_000).ranking
    method = advise(comparison(values, ("sms", "dirichlet-odir")), data(10)).method
    assert method == min(list(values)[1:], key=ranking.index)


def test_where_the_verdict_finds_nothing_one_method_named_beforehand_decides():
    values = VALUES | {"auto": 0.43}
    left = comparison(values, found="", verdicts={"auto": {"brier": "tied"}})
    advice = advise(left, data(10))
    assert advice.method == "identity"
    assert advice.reasons[0] == (
        "The verdict finds no miscalibration, and Automatic mixture is not better than the uncalibrated model beyond noise by Brier "
        "score."
    )
    # Others may look better: they are chosen among many.
    others = {"isotonic": {"brier": "better"}, "auto": {"brier": "tied"}}
    assert advise(comparison(values, found="", verdicts=others), data(10)).method == "identity"
    proven = comparison(values, found="", verdicts={"auto": {"brier": "better"}})
    advice = advise(proven, data(10))
    assert advice.method == "isotonic"
    assert "finds no miscalibration, but Automatic mixture is better" in advice.reasons[0]
    # Without it, what wins most often on such data.
    ranking = [key for key in guideline(data(10), 5_000).ranking if key in VALUES]
    proven = comparison(VALUES, found="", verdicts={ranking[0]: {"brier": "better"}})
    assert advise(proven, data(10)).method != "identity"
    # A method that cannot be advised proves nothing for the others, and is not said to be no better.
    verdicts = {"auto": {"brier": "better", "nll": "worse"}}
    for given in (values, {"identity": 0.5, "auto": 0.43}):
        advice = advise(comparison(given, found="", verdicts=verdicts), data(10))
        assert advice.method == "identity"
        assert advice.reasons[0] == (
            "The verdict finds no miscalibration, and Automatic mixture is better by Brier score, but worse by NLL, than the "
            "uncalibrated model beyond noise."
        )


def test_of_methods_near_the_best_one_with_a_worse_ece_is_not_advised():
    numbers, near = {"isotonic": 80, "vector": 13, "temperature": 4}, ("vector", "temperature")
    made = comparison(VALUES, near, numbers=numbers)
    tied = {"brier": ("isotonic",), "ece": ("vector", "isotonic")}
    advice = advise(replace(made, tied=tied), data(10))
    assert advice.method == "vector"
    assert advice.reasons[0].endswith(
        f"is the simplest of 2 methods within one standard error of the best Brier score ({RECALIBRATORS['isotonic'].label}, whose lead "
        "may be chance), with an ECE that is not told apart from the best."
    )
    alone = advise(replace(made, tied={**tied, "ece": ("temperature", "ets")}), data(10))
    assert alone.method == "temperature"
    assert "alone of 3 methods" in alone.reasons[0]
    # If none of them has such an ECE, the simplest is taken as before.
    other = advise(replace(made, tied={**tied, "ece": ("ets",)}), data(10))
    assert other.method == "temperature"
    assert "ECE" not in other.reasons[0]
    worse = {"temperature": {"ece": "worse"}}
    assert advise(comparison(VALUES, near, numbers=numbers, verdicts=worse), data(10)).method == (
        "vector"
    )


def test_what_is_better_by_its_own_interval_alone_is_tied_in_the_table_and_no_proof():
    made = comparison(VALUES | {"auto": 0.43}, found="", verdicts={"auto": {"brier": "tied"}})
    alone = replace(
        made["auto"], differences={"brier": Difference(-0.07, INTERVALS["better"], "tied")}
    )
    advice = advise(replace(made, methods={**made.methods, "auto": alone}), data(10))
    assert advice.method == "identity"
    assert (
        "Automatic mixture is not better than the uncalibrated model beyond noise"
        in advice.reasons[0]
    )


def test_where_classes_must_stay_the_others_are_not_advised():
    result = comparison(VALUES, changed=("isotonic", "vector"))
    advice = advise(result, data(10))
    assert advice.method == "isotonic"
    # What a method changes besides stands beside what it brings.
    assert advice.cautions == ("The map changes the predicted class of 7 of 5,000 rows.",)
    assert set(advice.cautions) < set(advice.reasons)
    assert advice_words(result, advice, "ece") == (advice.reasons[1], *advice.cautions)
    assert advise(result, data(10), keep_classes=True).method == "temperature"
    none = comparison({"identity": 0.5, "isotonic": 0.4}, changed=("isotonic",))
    advice = advise(none, data(10), keep_classes=True)
    assert advice.method == "identity"
    assert "no method that keeps every predicted class has a better Brier" in advice.reasons[0]


def test_the_columns_that_an_advised_map_needs_are_named():
    result = comparison(VALUES)
    methods = dict(result.methods)
    fitted = SimpleNamespace(is_its_base=False, needed_columns=("site", "age"))
    methods["isotonic"] = replace(methods["isotonic"], recalibrator=fitted)
    advice = advise(replace(result, methods=methods), data(10))
    assert advice.cautions[0].endswith("The map corrects by 'site', 'age': new rows need that too.")
    assert "corrects by" not in advise(result, data(10)).reasons[0]


def test_a_map_that_is_its_base_alone_is_not_a_method_of_its_own():
    result = comparison(VALUES)
    for alone, first in ((True, "vector"), (False, "isotonic")):
        methods = dict(result.methods)
        fitted = SimpleNamespace(is_its_base=alone)
        methods["isotonic"] = replace(methods["isotonic"], recalibrator=fitted)
        assert replace(result, methods=methods).candidates()[0] == first


def test_where_only_slices_are_off_a_method_is_advised_that_is_better_beyond_noise():
    found = "No miscalibration found on 5,000 rows: ECE is below 1.1 points, but 2 of 84 slices are off."
    better, tied = {"isotonic": {"brier": "better"}}, {"isotonic": {"brier": "tied"}}
    alone = "Off where region = West: too low. No miscalibration found on the other 4,000 rows."
    for values, verdicts, then in (
        (VALUES, better, "and Isotonic"),
        (VALUES, tied, "but no method has a better Brier score than the uncalibrated model beyond"),
        ({"identity": 0.5, "ets": 0.6}, tied, "but no method"),
    ):
        for sentence in (found, alone):
            made = comparison(values, found=sentence, in_places=True, verdicts=verdicts)
            reason = advise(made, data(10)).reasons[0]
            assert reason.startswith(f"The verdict finds miscalibration in places, {then}")
    # Of all rows, the verdict is enough.
    assert advise(comparison(VALUES, verdicts=tied), data(10)).method == "isotonic"


def named_slice(columns=("site",), **fields):
    """A comparison whose verdict names site = A, with segments that correct by `columns`, and no method that is better beyond noise."""
    fields = {"verdicts": {"segments": {"brier": "tied"}, "auto": {"brier": "tied"}}} | fields
    made = comparison(
        {"identity": 0.5, "segments": 0.4, "auto": 0.49},
        found="No miscalibration found, but 1 of 36 slices is off.",
        in_places=True,
        alone="To repair site = A alone takes a map of its own.",
        off_where=(("site", "A"),),
        **fields,
    )
    fitted = SimpleNamespace(is_its_base=False, needed_columns=columns)
    segments = replace(made["segments"], recalibrator=fitted)
    return replace(made, methods={**made.methods, "segments": segments})


def test_for_a_slice_that_the_verdict_names_segments_are_advised_although_all_rows_hardly_gain():
    made = named_slice()
    advice = advise(made, data(2))
    assert advice.method == "segments"
    assert advice.reasons[0] == (
        "The verdict finds miscalibration in places. To repair site = A alone takes a map of its own."
    )
    assert "The map corrects by 'site': new rows need that too." in advice.cautions
    assert advice_words(made, advice, "ece")[0].startswith(
        "The gain on all 5,000 evaluation rows is within noise (Brier score 0.5000 before, 0.4000 after); what the map mends is the slice."
    )
    # Where it names none, the model is left as before.
    none = replace(made, alone="", off_where=())
    assert advise(none, data(2)).headline == "Advice: leave the model as it is"


@pytest.mark.parametrize(
    ("made", "keep_classes", "why"),
    [
        (
            named_slice(("age",)),
            False,
            "Group-wise calibration does not correct by 'site': the fitting rows do not show that it differs.",
        ),
        (
            named_slice(changed=("segments",)),
            True,
            "Group-wise calibration changes predicted classes.",
        ),
        (
            named_slice(verdicts={"segments": {"brier": "tied", "nll": "worse"}}),
            False,
            "Group-wise calibration is worse by NLL than the uncalibrated model beyond noise.",
        ),
    ],
)
def test_segments_that_do_not_repair_the_slice_are_not_advised(made, keep_classes, why):
    advice = advise(made, data(2), keep_classes=keep_classes)
    assert advice.headline == "No advice"
    assert advice.reasons[0].endswith(f" To repair site = A alone takes a map of its own. {why}")


def test_where_segments_were_not_compared_the_model_is_not_said_to_be_left():
    made = named_slice()
    made = replace(made, methods={k: m for k, m in made.methods.items() if k != "segments"})
    made = replace(made, near={})
    advice = advise(made, data(2))
    assert (advice.method, advice.headline) == ("identity", "No advice")
    assert advice.reasons[0].endswith(
        " To repair site = A alone takes a map of its own. Group-wise calibration was not compared: add it to the methods and compare again before you choose."
    )
    verdict = SimpleNamespace(changed="", ended=False)
    assert advised(made, advice, verdict, "ece")[1].startswith(advice.reasons[0])


def test_what_the_table_calls_better_is_advised_or_the_reason_says_why_not():
    # The best is not better beyond noise, and the one that is lies further from it than one standard error.
    values = {"identity": 0.5, "isotonic": 0.3, "auto": 0.49}
    better = {"isotonic": {"brier": "tied"}, "auto": {"brier": "better"}}
    advice = advise(comparison(values, in_places=True, verdicts=better), data(10))
    assert advice.method == "auto"
    assert advice.reasons[0].endswith("the only method with a better Brier score beyond noise.")
    worse = {"isotonic": {"brier": "tied"}, "auto": {"brier": "better", "ece": "worse"}}
    advice = advise(comparison(values, in_places=True, verdicts=worse), data(10))
    assert advice.method == "identity"
    assert advice.reasons[0].endswith(
        "ECE. Automatic mixture is better by Brier score, but worse by ECE, than the uncalibrated model beyond noise."
    )


def test_one_slice_of_a_file_that_is_off_is_repaired_by_a_map_for_it(tmp_path):
    rng = np.random.default_rng(0)
    true, score, column = by_column(20_000, rng, 0.8)
    rows = Predictions(
        probs=np.stack([1 - score, score], axis=1),
        labels=(rng.random(score.size) < true).astype(int),
        groups={"site": column},
    )
    how = {"metrics": ["nll"], "resamples": 200, "jobs": 1}
    made = compare(rows, ["prior", "temperature", "segments"], **how)
    assert made.off_where == (("site", "0"),)
    # Whatever methods were chosen, a map for that slice is compared too.
    advice, own = made.advice, made["slice+platt"]
    assert advice.method == own.key
    assert (
        advice.headline
        == f"Advice: {own.label}"
        == "Advice: Map for site = 0, other rows as they are"
    )
    assert "finds miscalibration" in advice.reasons[0]
    assert "The map corrects by 'site': new rows need that too." in advice.cautions
    before, inside = (
        made["identity"].calibrated,
        made["identity"].calibrated.groups["site"].mask("0"),
    )
    changed = (own.calibrated.probs != before.probs).any(axis=1)
    np.testing.assert_array_equal(changed, inside)
    old, new = (
        signed_points(float((d.probs[inside, 1] - d.labels[inside]).mean()))
        for d in (before, own.calibrated)
    )
    gap = own.calibrated.probs[inside, 1] - own.calibrated.labels[inside]
    half = 1.959964 * gap.std() / gap.size**0.5
    within = f" (95 % CI {signed_points(gap.mean() - half)} to {signed_points(gap.mean() + half)})"
    (was, most), (then, top) = (
        (s.min(), s.max()) for s in (d.probs[inside, 1] for d in (before, own.calibrated))
    )
    said = f"On the {inside.sum():,} judged rows of the slice, mean forecast minus frequency is {old} points before the map and {new} after it{within}; scores there, {was:.2f} to {most:.2f} before, become {then:.2f} to {top:.2f}."
    assert said in advice.cautions
    # What is kept on disk says the same.
    kept = KeptComparisons(tmp_path)
    kept.keep(("a",), made)
    again = kept.get(("a",), before)
    assert (again.advice, again.slice_options) == (advice, made.slice_options)
    assert again[own.key].recalibrator.to_dict() == own.recalibrator.to_dict()
    # Under cross-fitting, too.
    folds = compare(rows, ["prior"], cross_fit=2, **how)
    assert folds.advice.method == own.key
    np.testing.assert_array_equal(
        (folds[own.key].calibrated.probs != rows.probs).any(axis=1), rows.groups["site"].mask("0")
    )


@pytest.mark.parametrize(
    ("options", "base", "of_class"),
    [({}, "vector", "2"), ({"shift": 0.0, "by": 1.6}, "temperature", "")],
)
def test_the_map_of_a_slice_moves_a_class_where_that_is_the_fault(options, base, of_class):
    made, fresh = of_classes(np.random.default_rng(1), **options)
    assert made.advice.method == f"slice+{base}"
    # Not only where that class is predicted.
    assert (made.off_where, made.off_class) == ((("c", "0"),), of_class)
    said = f"mean probability of '{of_class}' minus frequency is +" * bool(of_class)
    assert said in made.advice.cautions[0]
    # The map with one parameter brings 0.2 of what can be gained where one class is too high; offsets, nothing where scores are too sure.
    assert brought(made, fresh) > (0.8 if of_class else 0.5)


@pytest.mark.slow
def test_a_slice_that_the_verdict_names_first_gets_its_map_first_and_the_change_in_another_the_next():
    rng, n = np.random.default_rng(2), 12_000
    scanner, site = rng.integers(0, 5, n), rng.integers(0, 6, n)
    day, true = rng.integers(0, 365, n), rng.beta(1.5, 2, n)
    score = np.clip(true + 0.12 * (scanner == 0), 0.001, 0.999)
    score = expit(logit(score) - ((site == 1) & (day >= 220)))
    rows = Predictions(
        probs=score,
        labels=(rng.random(n) < true).astype(int),
        groups={"scanner": scanner.astype(str), "site": site.astype(str)},
        times=np.datetime64("2023-01-01") + day,
    )
    how = {"metrics": ["nll", "ece"], "resamples": 200}
    made = compare(rows, ["platt", "segments"], **how)
    assert made.found.startswith("Off in 2 slices, most clearly where scanner = 0: about ")
    assert made.advice.headline == "Advice: Map for scanner = 0, other rows as they are"
    said = advised(made, made.advice, calviz.verdict(rows), "ece")
    assert said[0] == f"{made.advice.headline}."
    (second,) = [text for text in made.advice.cautions if text.endswith(IN_TURN)]
    assert re.match(
        r"Since about 2023-0[78]-\d\d site = 1: \d+\.\d points too low; others?:? ", second
    )
    assert second in said[1]
    # On the calibrated file, the change is the first.
    first = made[made.advice.method].recalibrator
    then = compare(calibrated_by(first, rows, rows.probs), ["platt"], **how)
    assert then.advice.headline.startswith("Advice: Map for site = 1, time since 2023-0")


@pytest.mark.parametrize("above", [0.0, 0.5])
def test_where_the_other_rows_are_off_too_these_get_the_map_of_all_rows(above):
    made = of_slice(np.random.default_rng(1), 1.1, days=120, above=above)
    advice, own = made.advice, made["slice+platt"]
    assert (advice.method, made.in_places) == (own.key, not above)
    assert not advice.caveat
    others = "by Platt scaling" if above else "as they are"
    assert advice.headline == f"Advice: Map for c = 0, time since 2026-03-21, other rows {others}"
    assert made.slice_options.get("others") == ("platt" if above else None)
    # Both parts are fitted on their rows alone, and better than either.
    before, inside = made["identity"].calibrated, rows_of_slice(made, made["identity"].calibrated)
    changed = (own.calibrated.probs != before.probs).any(axis=1)
    assert changed[inside].all()
    assert np.delete(changed, inside).all() == bool(above)
    if above:
        fitted, nll = own.recalibrator, {m.key: m.metrics["nll"].value for m in made}
        assert (fitted.base_.key, fitted.others_.key) == ("platt", "platt")
        assert fitted.others_.to_dict() != made["platt"].recalibrator.to_dict()
        assert nll[own.key] == min(nll.values())


def test_of_confidences_the_map_of_both_is_told_by_the_squared_error():
    rng = np.random.default_rng(2)
    true, column = expit(rng.normal(1, 1.1, 8_000)), rng.integers(0, 6, 8_000)
    day = rng.integers(0, 150, 8_000)
    score = expit(logit(true) + 0.15 + 1.2 * ((column == 1) & (day >= 75)))
    rows = ConfidencePredictions(
        confidence=score,
        correct=rng.random(8_000) < true,
        groups={"c": column.astype(str)},
        times=np.datetime64("2026-01-01") + day,
    )
    # By the KS error an offset of all rows is as good: it takes from the good rows what the others lack.
    made = compare(rows, ["prior", "platt"], resamples=200, jobs=1)
    own = made[made.advice.method]
    assert own.is_of_slice
    assert made.slice_options["others"] == "prior"
    assert own.calibration_gain == max(m.calibration_gain for m in made)


def test_a_map_of_all_rows_that_is_clearly_better_is_taken_rather_than_that_of_the_slice(
    monkeypatch,
):
    stays = "Where site = A, scores stay off: about 9.0 points too high."
    monkeypatch.setattr("calviz.comparison.advice.still_off_words", lambda *_, **__: stays)
    values = {"identity": 0.5, "vector": 0.4, "slice+platt": 0.45}
    better = {key: {"brier": "better"} for key in values}
    made = comparison(
        values,
        in_places=True,
        verdicts=better,
        alone="To repair site = A alone takes a map of its own.",
        off_where=(("site", "A"),),
    )
    said = "Vector scaling has a better Brier score than a map for it."
    for tied, rather in ((("vector",), True), (("vector", "slice+platt"), False)):
        advice = advise(replace(made, tied={"brier": tied}), data(10))
        assert (advice.method == "vector") == any(said in c for c in advice.cautions) == rather
    # Where it has a map of the other rows, it is told apart from neither or not taken.
    both = replace(made, slice_options={"others": "vector"}, in_places=False)
    for tied, taken in ((("vector", "slice+platt"), True), (("vector",), False)):
        advice = advise(replace(both, tied={"brier": tied}), data(10))
        assert advice.is_of_slice == taken


def sharp(rng):
    """Two classes whose log-odds are twice what they should be."""
    z = rng.normal(0, 1.5, 4_000)
    p = expit(np.stack([-2 * z, 2 * z], axis=1))
    return Predictions(probs=p, labels=rng.random(4_000) < expit(z))


def test_noise_stands_beside_the_ece_before_and_after():
    made = compare(
        sharp(np.random.default_rng(0)), ["temperature"], fit_fraction=0.5, resamples=200, jobs=1
    )
    assert made.advice.method == "temperature"
    said = advice_words(made, made.advice, "ece")[0]
    assert re.search(
        r"take the ECE of .* from [\d.]+ to [\d.]+ points, the second within the noise of a", said
    )
    # Without the rows, there is no telling.
    bare = {k: replace(m, calibrated=None) for k, m in made.methods.items()}
    bare_words = advice_words(replace(made, methods=bare), made.advice, "ece")
    assert bare_words
    assert "noise" not in " ".join(bare_words)


@pytest.mark.parametrize(
    ("where", "low", "high", "decile"),
    [("≤ 5", 0, 5, "≤ 6"), ("> 56", 56, 60, "> 55"), ("(20, 33]", 20, 33, "in (25, 31]")],
)
def test_the_edge_of_a_number_is_that_of_the_fitting_rows(where, low, high, decile):
    # Off up to 5, and the first decile is 6: as many rows with 6 as with any other value.
    rng = np.random.default_rng(0)
    months, true = rng.integers(1, 61, 12_000), rng.normal(-1, 1.4, 12_000)
    inside = (months > low) & (months <= high)
    rows = Predictions(
        probs=expit(true + inside),
        labels=(rng.random(months.size) < expit(true)).astype(int),
        numbers={"months": months.astype(float)},
    )
    made = compare(rows, ["platt"], metrics=["nll"], resamples=100, jobs=1)
    assert made.off_where == (("months", where),)
    words = where_words(made.off_where)
    assert made.advice.headline == f"Advice: Map for {words}, other rows as they are"
    said = f"The fitting rows tell this edge; that of the verdict, months {decile}, is a decile."
    assert said in made.advice.cautions
    after = made[made.advice.method].recalibrator.transform(rows.probs, {"months": months})
    np.testing.assert_array_equal((after != rows.probs).any(axis=1), inside)
    if low:
        return
    # Edges that someone has chosen stay.
    own = cut_columns(rows, {"months": ["6"]})
    made = compare(own, ["platt"], metrics=["nll"], resamples=100, jobs=1)
    assert made.off_where == (("months", "≤ 6"),)


@pytest.mark.slow
@pytest.mark.parametrize("wave", [0.0, 0.8])
def test_what_the_segments_leave_off_is_said(wave, usual_resamples):
    rng = np.random.default_rng(0)
    site, z = rng.integers(0, 5, 20_000), rng.normal(0, 1.5, 20_000)
    labels = rng.random(z.size) < expit(z - 0.5 - (site == 0) + wave * np.sin(3 * z))
    rows = Predictions(probs=expit(z), labels=labels.astype(int), groups={"site": site})
    made = compare(rows, ["platt", "segments"], metrics=["nll", "ece"], resamples=100, jobs=1)
    assert made.advice.method == "segments"
    left = [c for c in made.advice.cautions if c.startswith("Verdict after the map: ")]
    assert bool(left) == bool(wave)


def test_where_the_verdict_names_no_slice_or_finds_the_other_rows_off_no_map_of_a_slice_is_compared():
    rng = np.random.default_rng(0)
    for off in (0.0, 1.0):
        true, score, column = by_column(20_000, rng, off)
        score = expit(logit(score) + off)  # all rows, and one slice less
        rows = Predictions(
            probs=score, labels=(rng.random(score.size) < true).astype(int), groups={"site": column}
        )
        made = compare(rows, ["platt"], metrics=["nll"], resamples=100, jobs=1)
        assert [m.key for m in made] == ["identity", "platt"]


@pytest.mark.slow
def test_of_rare_events_an_offset_is_told_from_too_large_logits():
    # The Brier score has both maps within one standard error, and the temperature is the simpler.
    rng = np.random.default_rng(5)
    true = rng.normal(-5, 1.5, 20_000)
    p = Predictions(
        probs=expit(true - 0.7),
        labels=(rng.random(20_000) < expit(true)).astype(int),
        splits=np.repeat(["fit", "judge"], 10_000),
    )
    made = compare(
        p, ["temperature", "platt"], fit_split="fit", eval_split="judge", resamples=200, jobs=1
    )
    assert made.advice.method == "platt"
    assert "best NLL" in made.advice.reasons[0]


def test_a_method_that_makes_the_nll_worse_is_not_advised():
    # Zeros of isotonic maps cost NLL.
    verdicts = {"isotonic": {"brier": "better", "nll": "worse"}}
    assert advise(comparison(VALUES, verdicts=verdicts), data(10)).method == "vector"
    advice = advise(comparison({"identity": 0.5, "isotonic": 0.4}, verdicts=verdicts), data(10))
    assert advice.method == "identity"
    assert "no method has a better Brier score" in advice.reasons[0]


def test_where_nothing_helps_the_model_is_left_although_it_is_off():
    advice = advise(comparison({"identity": 0.5, "ets": 0.6}), data(10))
    assert advice.method == "identity"
    assert advice.reasons[0].startswith("The verdict finds miscalibration, but no method has")


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (comparison({"identity": 0.5, "ets": 0.4}, failed=("ets",)), "No method was fitted"),
        (comparison({"identity": 0.5, "ets": 0.4}, in_sample=True), "no basis for a choice"),
        (replace(comparison({"identity": 0.5, "ets": 0.4}), tied={}), "No error bars"),
        (comparison({"identity": 0.5, "ets": 0.4}, found=None), "cannot tell"),
    ],
)
def test_without_a_basis_there_is_no_advice(made, words):
    advice = advise(made, data(10))
    assert (advice.method, advice.headline) == ("identity", "No advice")
    assert words in advice.reasons[0]


def test_a_recommended_method_that_failed_or_was_not_tried_is_mentioned():
    failed = comparison({"identity": 0.5, "auto": 0.4, "temperature": 0.4}, failed=("auto",))
    assert any(
        "Automatic mixture has no result here: " in r for r in advise(failed, data(10)).reasons
    )
    missing = comparison({"identity": 0.5, "temperature": 0.4})
    assert any(
        "('auto') was not compared: add it to the methods and compare again" in r
        for r in advise(missing, data(10)).reasons
    )


def test_near_the_best_is_within_one_standard_error_of_the_paired_difference():
    # Differences of the losses from the best: 1 and 1.5 standard errors of the mean, by hand.
    rng = np.random.default_rng(0)
    loss = rng.normal(size=400)
    noise = (noise := rng.normal(size=400)) - noise.mean()
    noise /= noise.std() / np.sqrt(400)
    draws = rng.integers(400, size=(4_000, 400))
    sets = {"best": loss, "near": loss + noise + 0.9, "far": loss + noise + 1.2}
    paired = PairedMetric(
        "brier",
        {k: v.mean() for k, v in sets.items()},
        {k: v[draws].mean(axis=1) for k, v in sets.items()},
    )
    assert paired.near("best", sets) == ("best", "near")


def test_a_set_that_is_better_without_noise_is_near_however_much_better_it_is():
    # Observed errors are the true ones plus 0.02; those of the second are hypot(0.28, truth), so that 0.31 is little more than noise.
    truth = np.array(SCALES) / 4
    off = np.random.default_rng(0).normal(0, 0.02, (len(SCALES), 250))
    means = {"best": truth + 0.02, "better": np.hypot(0.28, truth), "far": truth + 0.02}
    values = {"best": 0.30, "better": 0.31, "far": 0.45}
    errors = {k: Spread.of(values[k], truth, m[:, None] + off) for k, m in means.items()}
    paired = PairedMetric("ece", values, errors=errors)
    gap = paired.difference("better", "best")
    assert -gap.value > (gap.interval.high - gap.interval.low) / (2 * Z)
    assert paired.near("best", values) == ("best", "better")


@pytest.mark.parametrize("cross_fit", [None, 3])
def test_a_map_is_as_complex_as_the_numbers_that_it_holds(cross_fit):
    rng = np.random.default_rng(1)
    p = softmax(rng.normal(scale=1.5, size=(300, 3)))
    d = Predictions(probs=p, labels=draw_labels(p, rng))
    keys = ["temperature", "vector", "dirichlet", "isotonic"]
    result = compare(d, keys, metrics=["brier"], cross_fit=cross_fit, ci=False)
    counts = [result[key].numbers for key in keys]
    assert counts == sorted(set(counts))
    # Weights and intercepts of 3 classes in place of one temperature.
    assert counts[1] - counts[0] == 2 * 3 - 1


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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "files"),
    [
        ("regret, of the attainable gain, any of the nine settings", 12),
        ("left although the verdict finds it off, any of the nine settings", 12),
        ("worse than nothing, calibrated, 2 classes, 200 rows", 20),
        ("recalibrated, no slice is off, rare events, 20,000 rows", 12),
    ],
)
def test_the_advice_gains_most_of_what_can_be_gained(key, files):
    one = SIMULATIONS[f"advice: {key}"]
    outcomes = one.outcomes(files, seed=5)
    mean, error = mean_and_error(outcomes)
    assert mean <= one.at_most + 3 * error


@pytest.mark.slow
@pytest.mark.parametrize(
    ("slope", "offset", "named"),
    [(1.6, 0.0, "temperature"), (1.0, 0.6, "platt"), (0.6, -0.5, "platt")],
)
def test_the_simple_method_is_that_which_a_comparison_of_both_advises(slope, offset, named):
    rng = np.random.default_rng(0)
    true = rng.normal(0, 1.5, 2_000)
    rows = Predictions(
        probs=expit(slope * true + offset), labels=(rng.random(2_000) < expit(true)).astype(int)
    )
    how = {"fit_fraction": 0.5}
    made = compare(rows, ["temperature", "platt"], metrics=["nll"], resamples=100, jobs=1, **how)
    simple = simple_method(rows, Division(**how).rows(rows))
    assert simple == made.advice.method == named


def test_after_an_offset_of_the_log_odds_the_offset_alone_is_advised():
    rng = np.random.default_rng(0)
    z = rng.normal(-1, 1.5, 6_000)
    hit = (rng.random(z.size) < expit(z + 0.7)).astype(int)
    rows = Predictions(probs=expit(z), labels=hit)
    methods = ("temperature", "prior", "platt", "beta", "isotonic")
    assert "prior" in suggest(rows, 3_000).methods
    made = calviz.compare(rows, methods, fit_fraction=0.5, ci=True, resamples=200)
    assert (made["prior"].numbers, made["platt"].numbers) == (
        made["temperature"].numbers,
        made["temperature"].numbers + 1,
    )
    assert made.advice.headline == "Advice: Offset (recalibration in the large)"


# ------------------------------------------------------------------ suggestions


def test_every_method_is_suggested_left_out_or_impossible():
    for d in (data(2), data(3), data(100), top()):
        s = suggest(d, 2_000)
        named = [*s.methods, *s.left_out, *s.impossible, "identity"]
        assert sorted(named) == sorted(RECALIBRATORS.keys())
        # What Overview says it would bring can be found again.
        assert cheap_method(d) in s.methods
        assert all(
            reason.endswith(".") for reason in (*s.left_out.values(), *s.impossible.values())
        )


def test_methods_of_all_classes_are_impossible_for_confidences():
    s = suggest(top(), 2_000)
    rows_without_columns = {spec.key for spec in RECALIBRATORS if spec.takes_columns}
    assert rows_without_columns == {"segments"}
    for_confidences = {spec.key for spec in RECALIBRATORS if spec.confidence_only}
    assert set(s.impossible) == {*RECALIBRATORS.keys()} - for_confidences | rows_without_columns
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


def _tickets() -> Predictions:
    """Three classes, calibrated but where language = fr, of which logits are 0.4 times what they should be."""
    rng = np.random.default_rng(7)
    language = rng.choice(["en", "de", "fr", "es"], 800, p=[0.4, 0.25, 0.2, 0.15])
    z = rng.normal([0.5, 0.2, -0.3], 1.6, (800, 3))
    true = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    labels = (rng.random((800, 1)) > true.cumsum(axis=1)).sum(axis=1).clip(0, 2)
    probs = np.exp(z * np.where(language == "fr", 0.4, 1.0)[:, None])
    return Predictions(
        probs=probs / probs.sum(axis=1, keepdims=True), labels=labels, groups={"language": language}
    )


def test_a_slice_that_keeps_most_of_its_gap_gets_a_map_of_its_own() -> None:
    data = _tickets()
    found = compare(data, methods=("temperature",))
    assert found.off_where == (("language", "fr"),)
    assert found.advice is not None
    assert found.advice.method.startswith("slice+")
    # By hand: temperature leaves more than half of the gap of the judged rows, and its own map less.
    gaps = {}
    for key in ("identity", "temperature", found.advice.method):
        after = found[key].calibrated
        rows = rows_of_slice(found, after)
        hits = after.probs.argmax(axis=1) == after.labels
        gaps[key] = float((after.probs.max(axis=1) - hits)[rows].mean())
    assert gaps["temperature"] / gaps["identity"] > 0.5
    assert abs(gaps[found.advice.method]) < abs(gaps["identity"]) / 2
