"""Recalibrators compared."""

import importlib
import math
import re
import signal
import threading
import time
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import calviz
from calviz.comparison.compare import KeptComparisons, compare
from calviz.comparison.comparison_results import (
    Comparison,
    ComparisonColumn,
    MethodResult,
    RowsUsed,
    marks_words,
)
from calviz.comparison.fitting import Division, assign_parts, calibrate, recalibrate
from calviz.comparison.learning_curves import learning_curve
from calviz.comparison.paired_differences import best_shares
from calviz.core.blocks import Stopped, checkpoint
from calviz.core.entry_specs import RECALIBRATORS, MetricResult
from calviz.core.errors import NotAvailable, OptionError
from calviz.core.predictions import ConfidencePredictions, Predictions
from calviz.data.joining import named_models
from calviz.sample.sample import Sample
from tests.inputs.reliability import rare
from tests.inputs.simulated import draw_labels, simulate, softmax

# ---- Recalibrators compared: values, differences, failures, stops, and the map that is taken home


METRICS = ["accuracy", "nll", "brier", "ece"]


@pytest.mark.usefixtures("few_candidates")
def test_in_sample_only_when_asked_and_labelled(data):
    comparison = compare(
        data, ["isotonic"], fit_split="test", eval_split="test", in_sample=True, metrics=METRICS
    )
    assert comparison.in_sample
    assert not compare(data, ["isotonic"], metrics=METRICS, ci=False).in_sample


@pytest.mark.usefixtures("few_candidates")
@pytest.mark.parametrize(
    ("methods", "used"),
    [
        (["beta"], "method is 'beta'"),
        (["beta", "ets"], "methods are beta, ets"),
        ("beta", "method is 'beta'"),
        ("all", "methods are identity, "),
    ],
)
def test_options_of_methods_that_are_not_used_are_refused(data, methods, used):
    options = {"temperature+bbq": {"floor": 0.1}}
    for function in (compare, learning_curve):
        with pytest.raises(
            OptionError, match=rf"^'options' names 'temperature\+bbq', but the {used}"
        ):
            function(data, methods, options=options)


@pytest.mark.usefixtures("few_candidates")
def test_the_uncalibrated_row_is_the_data_themselves(data):
    comparison = compare(data, ["temperature"], metrics=METRICS)
    assert list(comparison.methods) == ["identity", "temperature"]
    wanted = calviz.evaluate(data, METRICS, split="test")
    for key in METRICS:
        assert comparison["identity"].metrics[key].value == wanted[key].value
    assert comparison["identity"].calibration_gain == 0
    assert comparison["identity"].predictions_changed == 0
    assert comparison["temperature"].metrics["nll"].value < wanted["nll"].value


@pytest.mark.usefixtures("few_candidates")
def test_a_map_keeps_every_other_column_of_the_rows(plain):
    texts = np.array([f"text {i}" for i in range(plain.n)])
    data = replace(plain, texts={"said": texts}, weights=np.linspace(1, 2, plain.n))
    done = calibrate(data, "temperature", Division(fit_fraction=0.5)).calibrated
    kept = done.texts["said"]
    assert [kept.levels[code] for code in kept.codes] == texts.tolist()
    np.testing.assert_array_equal(done.weights, data.weights)
    assert done.split_names == ("calibration", "evaluation")


@pytest.mark.usefixtures("few_candidates")
def test_a_method_by_hand(data):
    result = compare(data, ["isotonic"], metrics=METRICS, ci=False)["isotonic"]
    fit, test = data.split("calibration"), data.split("test")
    one = RECALIBRATORS["isotonic"].make().fit(fit.probs, fit.labels)
    out = one.transform(test.probs)
    np.testing.assert_array_equal(result.calibrated.probs, out)
    own = out[np.arange(400), test.labels]
    assert result.metrics["nll"].value == pytest.approx(-np.log(own).mean())
    assert result.predictions_changed == (out.argmax(1) != test.probs.argmax(1)).sum()

    def brier(p):
        return ((p - np.eye(4)[test.labels]) ** 2).sum(axis=1).mean()

    assert result.calibration_gain == pytest.approx(brier(test.probs) - brier(out))
    assert result.gain_is_lower_bound
    assert result.fit_seconds > 0


@pytest.mark.usefixtures("few_candidates")
def test_the_calibration_gain_of_weighted_rows_is_that_of_their_brier_score(data):
    data = replace(data, weights=np.arange(1.0, data.n + 1))
    compared = compare(data, ["temperature"], metrics=("brier",), ci=False)
    before, after = (compared[key].metrics["brier"].value for key in ("identity", "temperature"))
    assert compared["temperature"].calibration_gain == pytest.approx(before - after)


@pytest.mark.usefixtures("few_candidates")
def test_logits_are_used_where_there_are_any():
    z, y = simulate(600, 3, 2.0)
    logits = Predictions(logits=z, labels=y)
    result = compare(logits, ["vector"], metrics=["nll"], ci=False)["vector"]
    assert result.recalibrator.input == "logits"
    assert result.calibrated.logits is None


@pytest.mark.usefixtures("few_candidates")
@pytest.mark.slow
def test_all_methods_run_and_a_failing_one_is_a_row(data, monkeypatch):
    def broken(**options):
        raise NotAvailable("not today.")

    spec = RECALIBRATORS["beta"]
    entries = dict(RECALIBRATORS._entries)
    entries["beta"] = replace(spec, make=broken)
    monkeypatch.setattr(RECALIBRATORS, "_entries", entries)
    seen = []
    comparison = compare(
        data, metrics=METRICS, resamples=100, progress=lambda r, i, n: seen.append((r.key, n))
    )
    assert set(comparison.methods) == set(RECALIBRATORS.keys()) == {key for key, _ in seen}
    assert [m.key for m in comparison if not m.ok] == ["beta", "segments"]  # there is no column
    assert comparison["beta"].reason == "not today."
    assert comparison["beta"].metrics == {}
    frame = comparison.frame()
    assert frame.loc["beta", "reason"] == "not today."
    assert frame.loc["ets", "nll"] == comparison["ets"].metrics["nll"].value
    for method in comparison:
        if method.ok and method.accuracy_preserving:
            assert method.predictions_changed == 0
    for key in METRICS:
        assert sum(m.best_share[key] for m in comparison if m.ok) == pytest.approx(1)
        assert comparison.best(key) == comparison.ranking(key)[0]
        assert comparison.best(key) in comparison.tied[key]


@pytest.mark.usefixtures("few_candidates")
@pytest.mark.parametrize(
    ("error", "jobs"),
    [(RuntimeError("a bug"), 1), (MemoryError(), 2), (OSError(28, "disk full"), 2)],
)
def test_a_method_that_dies_of_anything_is_a_row_and_the_others_finish(
    data, monkeypatch, error, jobs
):
    def broken(**options):
        raise error

    broken_ones = {key: replace(RECALIBRATORS[key], make=broken) for key in ("beta", "ets")}
    entries = RECALIBRATORS._entries | broken_ones
    monkeypatch.setattr(RECALIBRATORS, "_entries", entries)
    asked = {"metrics": ["nll"], "ci": False, "jobs": jobs}
    comparison = compare(data, ["beta", "temperature", "ets"], **asked)
    assert [m.key for m in comparison if m.ok] == ["identity", "temperature"]
    assert comparison["beta"].reason == comparison["ets"].reason
    assert comparison["beta"].reason.endswith(".")
    curve = learning_curve(data, ["beta", "temperature"], fit_split="calibration", repeats=1)
    assert set(curve.failures) == {"beta"}


@pytest.mark.usefixtures("few_candidates")
@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interruption_ends_the_fits_of_the_other_threads(data, monkeypatch, jobs):
    ended = threading.Event()

    def forever(**options):
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # Ctrl-C
        end = time.monotonic() + 60
        try:
            while time.monotonic() < end:
                checkpoint("fitting for ever")
        except Stopped:
            ended.set()
            raise

    spec = replace(RECALIBRATORS["beta"], make=forever)
    entries = RECALIBRATORS._entries | {"beta": spec}
    monkeypatch.setattr(RECALIBRATORS, "_entries", entries)
    # A shell starts what runs in the background without the interrupt.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            compare(data, ["beta", "ets"], metrics=["nll"], ci=False, jobs=jobs)
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.wait(60)


@pytest.mark.usefixtures("few_candidates")
@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interruption_by_the_progress_leaves_no_thread(data, jobs):
    def interrupt(result, done, total):
        told.append(result.key)
        raise KeyboardInterrupt

    told, before = [], set(threading.enumerate())
    with pytest.raises(KeyboardInterrupt):
        compare(
            data,
            ["temperature", "vector"],
            metrics=["nll"],
            ci=False,
            jobs=jobs,
            progress=interrupt,
        )
    assert len(told) <= jobs
    for thread in set(threading.enumerate()) - before:
        thread.join(60)
        assert not thread.is_alive()


@pytest.mark.usefixtures("few_candidates")
def test_numbers_do_not_depend_on_the_company(data):
    alone = compare(data, ["ets"], metrics=["ece"], jobs=1)["ets"]
    together = compare(data, ["vector", "ets", "irm"], metrics=["ece", "nll"], jobs=2)["ets"]
    assert alone.metrics["ece"] == together.metrics["ece"]
    one, three = alone.differences["ece"], together.differences["ece"]
    assert (one.value, one.interval) == (three.value, three.interval)
    # What the verdict goes by is wider for more comparisons.
    assert one.adjusted == one.interval
    assert three.adjusted.low <= one.adjusted.low
    assert one.adjusted.high <= three.adjusted.high


@pytest.mark.usefixtures("few_candidates")
def test_stopping_keeps_what_is_finished(data):
    done = []
    comparison = compare(
        data,
        ["temperature", "ets", "irm"],
        metrics=["nll"],
        jobs=1,
        progress=lambda r, i, n: done.append(r.key),
        stop=lambda: len(done) >= 2,
    )
    assert [m.ok for m in comparison] == [True, True, False, False]
    assert "stopped" in comparison["irm"].reason


@pytest.mark.usefixtures("few_candidates")
def test_cross_fitting_calibrates_every_row_by_a_map_that_never_saw_it(plain):
    result = compare(plain, ["temperature"], cross_fit=3, metrics=["nll"], ci=False)["temperature"]
    assert result.calibrated.n == 900
    share = assign_parts(plain.labels, 3, np.random.default_rng(0))
    for fold in range(3):
        seen = share != fold
        one = RECALIBRATORS["temperature"].make().fit(plain.probs[seen], plain.labels[seen])
        np.testing.assert_allclose(
            result.calibrated.probs[~seen], one.transform(plain.probs[~seen]), atol=1e-12
        )
    assert result.recalibrator is None


@pytest.mark.usefixtures("few_candidates")
@pytest.mark.slow
def test_confidence_only_data_have_what_has_a_meaning_for_them():
    z, y = simulate(800, 4, 3.0)
    p = softmax(z)
    data = ConfidencePredictions(confidence=p.max(axis=1), correct=p.argmax(axis=1) == y)
    comparison = compare(data, metrics=["ece", "nll"], resamples=100)
    keys = {m.key for m in comparison if m.ok}
    assert keys == {s.key for s in RECALIBRATORS if s.confidence_only and not s.takes_columns}
    assert "confidence-only" in comparison["temperature"].reason
    assert comparison["isotonic"].metrics["ece"].value < comparison["identity"].metrics["ece"].value
    assert isinstance(comparison["platt"].calibrated, ConfidencePredictions)
    assert comparison["platt"].calibration_gain > 0


@pytest.mark.usefixtures("few_candidates")
def test_options_reach_their_method(data):
    comparison = compare(
        data, ["histogram"], metrics=["ece"], options={"histogram": {"bins": 3}}, ci=False
    )
    assert comparison["histogram"].params["most_points"] <= 3


@pytest.mark.usefixtures("few_candidates")
@pytest.mark.parametrize(
    ("method", "options", "rule"),
    [
        ("irm", {"bins": 3}, "has no option 'bins'"),
        ("irm", {"epsilon": -1}, "'epsilon' must be 0 or more"),
        ("temperature", {"floor": "abc"}, "'floor' must be"),
        ("temperature+isotonic", {"floor": 10**400}, "'floor' must be"),
        ("dirichlet-odir", {"l2": "x"}, "'l2' must be a finite number"),
        ("logit-spline", {"knots": 1}, "'knots' and 'folds' must be 2 or more"),
        ("cwmcs-ts", {"temperature": 0}, "'temperature' must be above 0"),
        ("auto", {"caution": float("nan")}, "'caution' must be"),
        ("scaling-binning", {"base": "isotonic"}, "'base' must be a parametric recalibrator"),
    ],
)
def test_options_that_are_not_allowed_are_refused_before_any_fit(data, method, options, rule):
    with pytest.raises(OptionError, match=f"'options' of '{re.escape(method)}': .*{rule}"):
        compare(data, [method], options={method: options}, ci=False)


@pytest.mark.usefixtures("few_candidates")
def test_unknown_names_are_refused(data):
    with pytest.raises(OptionError, match="there is no recalibrator 'magic'"):
        compare(data, ["magic"])
    comparison = compare(data, ["temperature"], metrics=["nll"], ci=False)
    with pytest.raises(OptionError, match="not in this comparison"):
        comparison["ets"]
    with pytest.raises(OptionError, match="not in this comparison"):
        comparison.best("ece")


@pytest.mark.usefixtures("few_candidates")
def test_two_equal_methods_are_tied(data):
    comparison = compare(data, ["temperature", "ets"], metrics=["accuracy"])
    assert set(comparison.tied["accuracy"]) == {"identity", "temperature", "ets"}
    assert comparison["ets"].differences["accuracy"].interval == (0, 0)


@pytest.mark.usefixtures("few_candidates")
def test_shares_of_best():
    shares = best_shares({"a": np.array([1, 2, 3, 1.0]), "b": np.array([2, 1, 3, 0.0])})
    assert shares == {"a": 0.375, "b": 0.625}


@pytest.mark.usefixtures("few_candidates")
def test_a_metric_without_a_value_for_a_calibrated_model_has_no_difference():
    # So many classes that some are too confident in every resample: their mean error has a value in all of them.
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.full(20, 0.5), size=1_000)
    labels = draw_labels(p, rng)
    sharp = p**2 / (p**2).sum(axis=1, keepdims=True)
    comparison = compare(
        Predictions(probs=sharp, labels=labels),
        ["temperature"],
        metrics=["over_mcs", "under_mcs", "wsmcs_over"],
        resamples=100,
    )
    for method in comparison:
        assert np.isfinite(list(method.best_share.values())).all()
        assert np.isfinite([d.interval for d in method.differences.values()]).all()
    assert list(comparison.tied) == ["wsmcs_over"]


@pytest.mark.usefixtures("few_candidates")
def test_recalibrate_gives_all_rows_under_their_splits(data):
    q = recalibrate(data, "ets", fit_split="calibration")
    assert isinstance(q, Predictions)
    assert q.split_names == data.split_names
    test = data.split("test")
    one = (
        RECALIBRATORS["ets"]
        .make()
        .fit(data.split("calibration").probs, data.split("calibration").labels)
    )
    np.testing.assert_allclose(q.split("test").probs, one.transform(test.probs), atol=1e-12)
    assert calviz.recalibrate is recalibrate


@pytest.mark.usefixtures("few_candidates")
def test_recalibrate_names_the_rows_that_fitted_where_there_are_no_splits(plain):
    done = calibrate(plain, "temperature", Division(fit_fraction=0.4))
    assert done.calibrated.splits.counts()["calibration"] == 360
    assert done.recalibrator.temperature_ == pytest.approx(2.0, rel=0.2)


@pytest.mark.usefixtures("few_candidates")
def test_a_stop_inside_a_fit_keeps_what_is_finished(data):
    heard = []

    def stop():
        return any(doing.startswith("cross-validating") for _, doing in heard)

    comparison = compare(
        data,
        ["temperature", "dirichlet-odir"],
        metrics=METRICS,
        resamples=100,
        jobs=1,
        activity=lambda *message: heard.append(message),
        stop=stop,
    )
    assert ("temperature", "fitting") in heard
    assert comparison["temperature"].ok
    assert comparison["temperature"].differences["nll"].interval.high < 0
    assert not comparison["dirichlet-odir"].ok
    assert "stopped" in comparison["dirichlet-odir"].reason


@pytest.mark.usefixtures("few_candidates")
def test_a_stop_is_never_an_error_wherever_it_comes(data):
    asked, limit = 0, math.inf

    def stop():
        nonlocal asked
        asked += 1
        return asked > limit

    def run():
        return compare(data, ["temperature"], metrics=["nll"], ci=False, jobs=1, stop=stop)

    assert all(m.ok for m in run())
    for place in range(asked):
        asked, limit = 0, place
        result = run()
        assert not result["temperature"].ok
        assert "stopped" in result["temperature"].reason


@pytest.mark.usefixtures("few_candidates")
def test_refits_widen_differences_by_what_the_fit_varies(data):
    methods, metrics = ["temperature", "histogram"], ["nll", "ece"]
    asked = {"metrics": metrics, "resamples": 300, "options": {"histogram": {"cap": False}}}
    once = compare(data, methods, **asked)
    again = compare(data, methods, **asked, refits=5)
    assert (once.refits, again.refits) == (0, 5)
    for key in methods:
        assert once[key].fit_spread == {}
        for metric in metrics:
            assert again[key].metrics[metric].value == once[key].metrics[metric].value
            narrow, wide = (c[key].differences[metric].interval for c in (once, again))
            assert wide.low < narrow.low
            assert narrow.high < wide.high
    # One parameter varies less than levels of exactly 0, which a single hit lifts.
    assert again["temperature"].fit_spread["nll"] < again["histogram"].fit_spread["nll"]
    with pytest.raises(OptionError, match="'refits' must be 0, or 2 or more, got 1"):
        compare(data, methods, refits=1)


@pytest.mark.usefixtures("few_candidates")
@pytest.mark.slow
def test_ctrl_c_is_heard_although_it_interrupts_no_system_call(data, monkeypatch):
    def works_on(self, spec):
        while True:
            checkpoint("fitting")
            time.sleep(0.01)

    def interrupt(*_):
        raise KeyboardInterrupt

    module = importlib.import_module("calviz.comparison.compare")
    monkeypatch.setattr(module._Judging, "result", works_on)
    before = signal.signal(signal.SIGALRM, interrupt)
    # As with Ctrl-C once polars has read a file.
    signal.siginterrupt(signal.SIGALRM, False)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        began = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            compare(data, ["temperature", "platt"], jobs=2)
        assert time.monotonic() - began < 5
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


# ---- The table of a comparison: marks that can be checked by hand, and remarks that stand once


def column(key, tied=(), **values):
    return ComparisonColumn.of(key, {row: MetricResult(key, v) for row, v in values.items()}, tied)


@pytest.mark.parametrize(
    ("key", "tied", "best", "second"),
    [
        ("nll", (), ("a",), ("b",)),  # lower is better
        ("accuracy", (), ("c",), ("b",)),  # higher is better
        # One that is left is the last, not the best of the others.
        ("nll", ("a", "b"), ("a", "b"), ()),
        ("nll", ("a", "b", "c"), ("a", "b", "c"), ()),
    ],
)
def test_the_best_those_tied_with_it_and_the_best_of_the_others(key, tied, best, second):
    result = column(key, tied, c=0.4, a=0.1, b=0.2, none=math.nan)
    assert (result.best, result.second) == (best, second)
    marks = {row: result.mark(row) for row in ("a", "b", "c", "none")}
    assert {r for r, m in marks.items() if m == "best"} == set(best[:1])
    assert {r for r, m in marks.items() if m == "second"} == set(second)
    assert marks["none"] is None
    assert {row for row in marks if result.is_tied(row)} == set(best[1:])


@pytest.mark.parametrize("tied", [(), ("a", "b")])
def test_equal_values_are_both_the_best(tied):
    result = column("accuracy", tied, a=0.6707, b=0.6707, c=0.6143, d=0.5)
    assert [result.mark(row) for row in "abcd"] == ["best", "best", "second", None]
    assert not any(result.is_tied(row) for row in "abcd")


def test_a_caption_explains_the_marks_that_are_there():
    result = column("nll", ("a", "b"), a=0.1, b=0.2, c=0.3, d=0.4)
    assert re.findall("Bold|≈|Italic", marks_words([result])) == ["Bold", "≈", "Italic"]
    assert marks_words([result], ["a", "d"]) == "Bold: best."
    assert re.findall("Bold|≈|Italic", marks_words([result], ["b", "d"])) == ["≈"]
    assert marks_words([result], ["d"]) == ""


def test_a_column_has_one_number_of_decimals_and_its_unit():
    result = column("ece", a=0.012345, b=0.5, none=math.nan)
    assert result.written.heading == "ECE (points)"
    assert [result.text(row) for row in ("a", "b", "none", "absent")] == ["1.23", "50.00", "–", "–"]


def test_remarks_stand_once_with_all_that_they_are_about():
    note = "1 row counts as 2.2e-16."
    methods = {
        "identity": MethodResult(
            "identity", "Uncalibrated", True, metrics={"nll": MetricResult("nll", 1, note=note)}
        ),
        "platt": MethodResult("platt", "Platt", True, warnings=("It hit a bound.",)),
        "beta": MethodResult("beta", "Beta", True, warnings=("It hit a bound.", "No rows.")),
        "vector": MethodResult("vector", "Vector", False, "It failed."),
    }
    used = RowsUsed(None, 10, "all rows")
    result = Comparison(
        "x", used, used, False, 0, "top-label", methods, directions={"nll": "lower"}
    )
    assert [(r.kind, r.of, r.text) for r in result.remarks(result.columns(["nll", "brier"]))] == [
        ("value", ("identity",), note),
        ("failed", ("vector",), "It failed."),
        ("warning", ("platt", "beta"), "It hit a bound."),
        ("warning", ("beta",), "No rows."),
    ]


# ---- Names of the models of several files


P = Predictions(probs=[[0.5, 0.5]], labels=[0], name="p")


@pytest.mark.parametrize(
    ("files", "names"),
    [
        ([("a.csv", {"a": P})], ["a"]),
        ([("a.csv", {"mlp": P, "forest": P})], ["mlp", "forest"]),
        ([("a.csv", {"a": P}), ("b.v2.npz", {"b": P})], ["a", "b.v2"]),
        ([("a.csv", {"mlp": P, "cnn": P}), ("b.csv", {"b": P})], ["a: mlp", "a: cnn", "b"]),
        ([("a.csv", {"a": P}), ("a.npz", {"a": P})], ["a", "a (2)"]),
        ([("a.csv", {"a": P})] * 3, ["a", "a (2)", "a (3)"]),
    ],
)
def test_names(files, names):
    models = named_models(files)
    assert list(models) == names
    assert [m.name for m in models.values()] == names


# ---- A comparison read from its folder is the one that was written


KEY = ("file", "plan")


def _rows(n, classes, seed=0):
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, classes))
    true = np.exp(logits / 2)
    true /= true.sum(1, keepdims=True)
    labels = (true.cumsum(1) > rng.random((n, 1))).argmax(1)
    return calviz.Predictions.from_arrays(labels, logits, kind="logits")


def _confidences(n):
    rng = np.random.default_rng(1)
    confidence = rng.uniform(0.2, 0.99, n)
    return calviz.ConfidencePredictions(
        confidence=confidence, correct=rng.random(n) < confidence**2
    )


def _text(results):
    # nan is not equal to itself, and NumPy's numbers are written with their type.
    return re.sub(r"np\.float64\(([^)]*)\)", r"\1", repr(results))


def _same(one, other):
    for method in one:
        again = other[method.key]
        assert again.reason == method.reason
        assert _text(again.metrics) == _text(method.metrics)
        assert _text(again.differences) == _text(method.differences)
        assert _text(again.params) == _text(method.params)
        assert (again.recalibrator is None) == (method.recalibrator is None)


@pytest.mark.slow
@pytest.mark.parametrize("folds", [None, 3])
@pytest.mark.parametrize(
    "data", [_rows(300, 3), _rows(300, 2), _confidences(300)], ids=["3", "2", "conf"]
)
def test_it_is_the_same_comparison(tmp_path, data, folds):
    methods = ["temperature", "isotonic", "venn-abers", "beta"]
    how = {"cross_fit": folds} if folds else {"fit_fraction": 0.5}
    made = calviz.compare(data, methods=methods, resamples=60, **how)
    kept = KeptComparisons(tmp_path / "folder")
    assert KEY not in kept
    kept.keep(KEY, made)
    assert KEY in kept
    judged = data if folds else made["identity"].calibrated
    again = kept.get(KEY, judged)
    _same(made, again)
    assert repr(again) == repr(made)
    pd.testing.assert_frame_equal(again.frame(), made.frame())
    assert again.advice == made.advice
    assert again.tied == made.tied
    for method in made:
        if folds and method.calibrated is not None:
            after, before = again[method.key].calibrated, method.calibrated
            name = "probs" if hasattr(before, "probs") else "confidence"
            np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
            assert after.numbers.keys() == before.numbers.keys()
        elif method.recalibrator is not None:
            scores = np.array([[0.2, 0.8], [0.5, 0.5]])
            if getattr(judged, "n_classes", 2) == 3:
                scores = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
            np.testing.assert_array_equal(
                again[method.key].recalibrator.transform(scores),
                method.recalibrator.transform(scores),
            )


@pytest.mark.slow
def test_every_method_comes_back(tmp_path):
    data = _rows(200, 3)
    made = calviz.compare(data, methods="all", fit_fraction=0.5, resamples=20)
    assert len(made) > len(RECALIBRATORS) / 2
    kept = KeptComparisons(tmp_path)
    kept.keep(KEY, made)
    _same(made, kept.get(KEY, made["identity"].calibrated))


def test_another_key_version_or_a_damaged_file_is_as_good_as_none(tmp_path, monkeypatch):
    data = _rows(100, 3)
    kept = KeptComparisons(tmp_path)
    kept.keep(KEY, calviz.compare(data, methods=["temperature"], fit_fraction=0.5, resamples=20))
    assert kept.get(("file", "other"), data) is None
    [file] = tmp_path.glob("*.npz")
    whole = file.read_bytes()
    for damaged in (
        b"",
        whole[:200],
        whole[:-50],
        whole.replace(b"MetricResult", b"OtherResults"),
        b"PK\x03\x04",
    ):
        file.write_bytes(damaged)
        assert kept.get(KEY, data) is None
    file.write_bytes(whole)
    assert kept.get(KEY, data) is not None
    monkeypatch.setattr("calviz.comparison.compare.__version__", "0")
    assert kept.get(KEY, data) is None


def test_the_oldest_make_room_and_a_folder_that_cannot_be_written_is_no_error(tmp_path):
    made = calviz.compare(_rows(100, 3), methods=["temperature"], fit_fraction=0.5, resamples=20)
    KeptComparisons(tmp_path).keep(("0",), made)
    size = sum(f.stat().st_size for f in tmp_path.iterdir())
    kept = KeptComparisons(tmp_path, limit=int(2.5 * size))
    for k in "123":
        kept.keep((k,), made)
    assert [(k,) in kept for k in "0123"] == [False, False, True, True]
    blocked = tmp_path / "file"
    blocked.write_text("")
    KeptComparisons(blocked / "folder").keep(KEY, made)


def test_the_verdict_before_is_that_of_the_same_rows_and_bins():
    rng = np.random.default_rng(0)
    score = rng.random(600)
    hit = rng.random(600) < np.sqrt(score)
    data = calviz.Predictions(
        probs=score, labels=hit.astype(int), splits=np.repeat(["val", "test"], 300)
    )
    result = calviz.compare(data, ["temperature"], bins=6, scheme="equal-mass")
    verdict = calviz.verdict(Sample.of(data, split="test", bins=6, scheme="equal-mass"))
    assert result.found == verdict.sentence


def test_bins_of_a_rare_event_are_placed_as_its_verdict_and_diagrams_place_them():
    data = rare(3_000)
    placed = Sample.of(data).placed
    assert placed == "equal-mass"
    result = calviz.compare(data, ["isotonic"], fit_fraction=0.5, ci=False)
    models = calviz.compare_models({"a": data, "b": data}, metrics=["ece"], ci=False)
    curve = learning_curve(data, ["temperature"], sizes=[1_000], repeats=1, metrics=["ece"])
    assert [result.scheme, models.scheme, curve.scheme] == [placed] * 3
    usual = calviz.evaluate(data, ["ece_equal_mass"])["ece_equal_mass"].value
    assert models["a"].metrics["ece"].value == pytest.approx(usual)
    assert calviz.compare(data, [], scheme="equal-width", ci=False).scheme == "equal-width"
