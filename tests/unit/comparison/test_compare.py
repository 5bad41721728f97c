import ast
import math
import re
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import calviz
from calviz.comparison import Division, calibrate, compare, learning_curve, recalibrate
from calviz.comparison.learning_curves import _points
from calviz.comparison.paired_bootstrap import best_shares
from calviz.comparison.rows import fit_split_beside
from calviz.comparison.stratified_parts import _shuffled_by_class, assign_parts, stratified_sample
from calviz.core.errors import CalvizError, InputError, NotAvailable, OptionError
from calviz.core.predictions import ConfidencePredictions, Predictions
from calviz.core.progress import Stopped, checkpoint
from calviz.specs.recalibrator import RECALIBRATORS, RecalibratorSpec
from tests.inputs.simulated import draw_labels, simulate, softmax

pytestmark = pytest.mark.usefixtures("few_candidates")

METRICS = ["accuracy", "nll", "brier", "ece"]


@pytest.fixture(scope="module")
def data():
    z, y = simulate(1_200, 4, 2.5)
    splits = np.repeat(["calibration", "test", "spare"], 400)
    return Predictions(probs=softmax(z), labels=y, splits=splits, name="simulated")


@pytest.fixture(scope="module")
def plain():
    z, y = simulate(900, 3, 2.0)
    return Predictions(probs=softmax(z), labels=y)


# ------------------------------------------------------------------ rows


def test_named_splits_are_found(data):
    rows = Division().rows(data)
    assert (rows.fit.split, rows.evaluation.split) == ("calibration", "test")
    assert (rows.fit.rows, rows.evaluation.rows) == (400, 400)


def test_names_of_splits_are_compared_as_in_what_was_recognised(data):
    names = np.array([" CAL", "Test ", "spare"], dtype=object)
    spaced = Predictions(probs=data.probs, labels=data.labels, splits=np.repeat(names, 400))
    rows = Division().rows(spaced)
    assert (rows.fit.split, rows.evaluation.split) == (" CAL", "Test ")
    assert fit_split_beside(spaced, "Test ") == " CAL"


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"fit_split": "calibration"},
        {"eval_split": "test"},
        {"fit_split": "spare", "eval_split": "test"},
        {"fit_fraction": 0.3},
        {"cross_fit": 5},
    ],
)
def test_rows_that_fit_never_judge(data, how):
    rows = Division(**how).rows(data)
    for fit, judged in rows.pairs:
        assert not np.intersect1d(fit, judged).size
    assert not rows.in_sample


def test_what_is_left_out_is_all_other_rows(data):
    rows = Division(fit_split="calibration").rows(data)
    assert rows.evaluation.rows == 800
    assert rows.evaluation.how == "all other rows"
    assert Division(eval_split="test").rows(data).fit.rows == 800


def test_without_splits_a_stratified_seeded_half(plain):
    rows = Division().rows(plain)
    fit, judged = rows.pairs[0]
    assert fit.size == judged.size == 450
    counts = np.bincount(plain.labels[fit]) - np.bincount(plain.labels) / 2
    assert np.abs(counts).max() <= 1
    np.testing.assert_array_equal(Division().rows(plain).pairs[0][0], fit)
    assert not np.array_equal(Division(seed=1).rows(plain).pairs[0][0], fit)


def test_cross_fitting_judges_every_row_once(plain):
    rows = Division(cross_fit=4).rows(plain)
    judged = np.concatenate([j for _, j in rows.pairs])
    np.testing.assert_array_equal(np.sort(judged), np.arange(900))


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"fit_split": "test", "eval_split": "test"}, "cannot both fit and judge"),
        ({"fit_split": "nothing"}, "no split 'nothing'"),
        ({"fit_fraction": 1.0}, "between 0 and 1"),
        ({"cross_fit": 1}, "from 2"),
        ({"cross_fit": 5, "fit_fraction": 0.5}, "one of the three"),
        ({"fit_fraction": 0.001}, "at least 10"),
    ],
)
def test_divisions_that_make_no_sense_are_refused(data, how, message):
    with pytest.raises(CalvizError, match=message):
        Division(**how).rows(data)


def test_data_without_splits_have_none_to_name(plain):
    with pytest.raises(InputError, match="have no splits"):
        Division(fit_split="calibration").rows(plain)


def test_in_sample_only_when_asked_and_labelled(data):
    comparison = compare(
        data, ["isotonic"], fit_split="test", eval_split="test", in_sample=True, metrics=METRICS
    )
    assert comparison.in_sample
    assert not compare(data, ["isotonic"], metrics=METRICS, ci=False).in_sample


# ------------------------------------------------------------------ comparing


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


def test_the_uncalibrated_row_is_the_data_themselves(data):
    comparison = compare(data, ["temperature"], metrics=METRICS)
    assert list(comparison.methods) == ["identity", "temperature"]
    wanted = calviz.evaluate(data, METRICS, split="test")
    for key in METRICS:
        assert comparison["identity"].metrics[key].value == wanted[key].value
    assert comparison["identity"].calibration_gain == 0
    assert comparison["identity"].predictions_changed == 0
    assert comparison["temperature"].metrics["nll"].value < wanted["nll"].value


def test_a_map_keeps_every_other_column_of_the_rows(plain):
    texts = np.array([f"text {i}" for i in range(plain.n)])
    data = replace(plain, texts={"said": texts}, weights=np.linspace(1, 2, plain.n))
    done = calibrate(data, "temperature", fit_fraction=0.5).calibrated
    kept = done.texts["said"]
    assert [kept.levels[code] for code in kept.codes] == texts.tolist()
    np.testing.assert_array_equal(done.weights, data.weights)
    assert done.split_names == ("calibration", "evaluation")


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


def test_the_calibration_gain_of_weighted_rows_is_that_of_their_brier_score(data):
    data = replace(data, weights=np.arange(1.0, data.n + 1))
    compared = compare(data, ["temperature"], metrics=("brier",), ci=False)
    before, after = (compared[key].metrics["brier"].value for key in ("identity", "temperature"))
    assert compared["temperature"].calibration_gain == pytest.approx(before - after)


def test_logits_are_used_where_there_are_any():
    z, y = simulate(600, 3, 2.0)
    logits = Predictions(logits=z, labels=y)
    result = compare(logits, ["vector"], metrics=["nll"], ci=False)["vector"]
    assert result.recalibrator.input == "logits"
    assert result.calibrated.logits is None


@pytest.mark.slow
def test_all_methods_run_and_a_failing_one_is_a_row(data, monkeypatch):
    def broken(**options):
        raise NotAvailable("not today.")

    spec = RECALIBRATORS["beta"]
    entries = dict(RECALIBRATORS._entries)
    entries["beta"] = RecalibratorSpec(**{**vars(spec), "make": broken})
    monkeypatch.setattr(RECALIBRATORS, "_entries", entries)
    seen = []
    comparison = compare(
        data, metrics=METRICS, resamples=100, progress=lambda r, i, n: seen.append((r.key, n))
    )
    assert set(comparison.methods) == set(RECALIBRATORS.keys()) == {key for key, _ in seen}
    assert [m.key for m in comparison if not m.ok] == ["beta"]
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


@pytest.mark.parametrize("error", [RuntimeError("a bug"), MemoryError(), OSError(28, "disk full")])
def test_a_method_that_dies_of_anything_is_a_row_and_the_others_finish(data, monkeypatch, error):
    def broken(**options):
        raise error

    broken_ones = {
        key: RecalibratorSpec(**{**vars(RECALIBRATORS[key]), "make": broken})
        for key in ("beta", "ets")
    }
    entries = RECALIBRATORS._entries | broken_ones
    monkeypatch.setattr(RECALIBRATORS, "_entries", entries)
    comparison = compare(data, ["beta", "temperature", "ets"], metrics=["nll"], ci=False, jobs=2)
    assert [m.key for m in comparison if m.ok] == ["identity", "temperature"]
    assert comparison["beta"].reason == comparison["ets"].reason
    assert comparison["beta"].reason.endswith(".")
    curve = learning_curve(data, ["beta", "temperature"], fit_split="calibration", repeats=1)
    assert set(curve.failures) == {"beta"}


def test_an_interruption_ends_the_fits_of_the_other_threads(data, monkeypatch):
    ended = threading.Event()

    def forever(**options):
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)  # Ctrl-C
        end = time.monotonic() + 10
        try:
            while time.monotonic() < end:
                checkpoint("fitting for ever")
        except Stopped:
            ended.set()
            raise

    spec = RecalibratorSpec(**{**vars(RECALIBRATORS["beta"]), "make": forever})
    entries = RECALIBRATORS._entries | {"beta": spec}
    monkeypatch.setattr(RECALIBRATORS, "_entries", entries)
    # A shell starts what runs in the background without the interrupt.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            compare(data, ["beta", "ets"], metrics=["nll"], ci=False, jobs=2)
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.wait(5)


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


@pytest.mark.slow
def test_confidence_only_data_have_what_has_a_meaning_for_them():
    z, y = simulate(800, 4, 3.0)
    p = softmax(z)
    data = ConfidencePredictions(confidence=p.max(axis=1), correct=p.argmax(axis=1) == y)
    comparison = compare(data, metrics=["ece", "nll"], resamples=100)
    keys = {m.key for m in comparison if m.ok}
    assert keys == {s.key for s in RECALIBRATORS if s.confidence_only}
    assert "confidence-only" in comparison["temperature"].reason
    assert comparison["isotonic"].metrics["ece"].value < comparison["identity"].metrics["ece"].value
    assert isinstance(comparison["platt"].calibrated, ConfidencePredictions)
    assert comparison["platt"].calibration_gain > 0


def test_options_reach_their_method(data):
    comparison = compare(
        data, ["histogram"], metrics=["ece"], options={"histogram": {"bins": 3}}, ci=False
    )
    assert comparison["histogram"].params["most_points"] <= 3


@pytest.mark.parametrize(
    ("method", "options", "rule"),
    [
        ("irm", {"bins": 3}, "has no option 'bins'"),
        ("irm", {"epsilon": -1}, "'epsilon' must be 0 or more"),
        ("temperature", {"floor": "abc"}, "'floor' must be"),
        ("temperature+isotonic", {"floor": 10**400}, "'floor' must be"),
        ("dirichlet-odir", {"l2": "x"}, "'l2' must be a number"),
        ("logit-spline", {"knots": 1}, "'knots' and 'folds' must be 2 or more"),
        ("cwmcs-ts", {"temperature": 0}, "'temperature' must be above 0"),
        ("auto", {"caution": float("nan")}, "'caution' must be"),
        ("scaling-binning", {"base": "isotonic"}, "'base' must be a parametric recalibrator"),
    ],
)
def test_options_that_are_not_allowed_are_refused_before_any_fit(data, method, options, rule):
    with pytest.raises(OptionError, match=f"'options' of '{re.escape(method)}': .*{rule}"):
        compare(data, [method], options={method: options}, ci=False)


def test_unknown_names_are_refused(data):
    with pytest.raises(OptionError, match="there is no recalibrator 'magic'"):
        compare(data, ["magic"])
    comparison = compare(data, ["temperature"], metrics=["nll"], ci=False)
    with pytest.raises(OptionError, match="not in this comparison"):
        comparison["ets"]
    with pytest.raises(OptionError, match="not in this comparison"):
        comparison.best("ece")


def test_two_equal_methods_are_tied(data):
    comparison = compare(data, ["temperature", "ets"], metrics=["accuracy"])
    assert set(comparison.tied["accuracy"]) == {"identity", "temperature", "ets"}
    assert comparison["ets"].differences["accuracy"].interval == (0, 0)


# ------------------------------------------------------------------ paired resamples


def test_shares_of_best():
    shares = best_shares({"a": np.array([1, 2, 3, 1.0]), "b": np.array([2, 1, 3, 0.0])})
    assert shares == {"a": 0.375, "b": 0.625}


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


def test_stratified_samples_hold_the_classes_in_proportion():
    labels = np.repeat([0, 1, 2], [700, 250, 50])
    rows = stratified_sample(labels, 100, np.random.default_rng(0))
    assert np.unique(rows).size == 100
    np.testing.assert_allclose(np.bincount(labels[rows]), [70, 25, 5], atol=1)


# ------------------------------------------------------------------ taking it home


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


def test_recalibrate_names_the_rows_that_fitted_where_there_are_no_splits(plain):
    done = calibrate(plain, "temperature", fit_fraction=0.4)
    assert done.calibrated.splits.counts()["calibration"] == 360
    assert done.recalibrator.temperature_ == pytest.approx(2.0, rel=0.2)


# ------------------------------------------------------------------ learning curves


def test_learning_curve(data):
    seen = []
    curve = learning_curve(
        data,
        ["temperature", "isotonic"],
        sizes=[50, 400],
        repeats=3,
        metrics=["nll", "accuracy"],
        progress=lambda i, n: seen.append((i, n)),
    )
    frame = curve.frame()
    assert len(frame) == 3 * 2 * 2
    assert seen[-1] == (12, 12)  # of all rows there is one draw
    assert frame[frame["rows"] == 400]["repeats"].tolist() == [1] * 6
    nll = frame[frame["metric"] == "nll"].set_index(["method", "rows"])["mean"]
    # One parameter learns from few rows, four step functions need many.
    assert nll["temperature", 50] < nll["isotonic", 50]
    assert nll["isotonic", 400] < nll["isotonic", 50]
    (few,) = (p for p in curve.of("temperature", "nll") if p.rows == 50)
    assert few.low < few.mean < few.high  # every draw is another one
    at_all = frame[(frame["rows"] == 400) & (frame["method"] == "temperature")]
    np.testing.assert_allclose(at_all["low"], at_all["high"])
    assert (curve.fit.split, curve.evaluation.split) == ("calibration", "test")
    wanted = calviz.evaluate(data, ["nll", "accuracy"], split="test")
    for metric in ("nll", "accuracy"):
        before = curve.uncalibrated[metric]
        assert before.value == wanted[metric].value
        assert before.interval.low < before.value < before.interval.high
        assert {p.mean for p in curve.of("identity", metric)} == {before.value}
    assert curve.uncalibrated["nll"].noise_floor is not None
    # With all rows the fit is that of a comparison on the same splits.
    alone = compare(data, ["temperature"], metrics=["nll"])["temperature"].metrics["nll"].value
    assert nll["temperature", 400] == pytest.approx(alone)


def test_a_band_holds_the_middle_90_percent_of_the_draws():
    (point,) = _points(
        {("ets", 50, "nll"): [i / 100 for i in range(101)]}, {("ets", 50, "nll"): "better"}
    )
    assert (point.mean, point.low, point.high) == pytest.approx((0.5, 0.05, 0.95))
    assert point.repeats == 101


def test_a_learning_curve_keeps_what_is_finished(data):
    seen = []
    curve = learning_curve(
        data,
        ["temperature"],
        sizes=[50, 100],
        repeats=2,
        progress=lambda *message: seen.append(message),
        stop=lambda: len(seen) == 4,
    )
    assert {(p.method, p.rows, p.repeats) for p in curve.points} == {
        ("identity", 50, 2),
        ("temperature", 50, 2),
    }


def test_a_learning_curve_survives_what_cannot_be_fitted():
    z, y = simulate(400, 3, 2.0)
    y[:] = 0
    y[300:] = np.arange(100) % 3
    data = Predictions(
        probs=softmax(z), labels=y, splits=np.repeat(["calibration", "test"], [300, 100])
    )
    curve = learning_curve(data, ["temperature"], sizes=[20], repeats=2, metrics=["nll"])
    assert "nothing to fit" in curve.failures["temperature"]
    assert {p.method for p in curve.points} == {"identity"}
    with pytest.raises(OptionError, match="'sizes' must be"):
        learning_curve(data, ["temperature"], sizes=[5])


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


@pytest.mark.parametrize(
    ("n", "asked", "message"),
    [
        (1, {"fit_fraction": 0.5}, "these data have 1 row in all: label more rows"),
        (8, {}, "these data have 8 rows in all: label more rows"),
        (100, {"fit_fraction": 0.05}, "fit on a larger split or a larger fraction of the rows, or"),
        (12, {"cross_fit": 2}, "take more folds, so that each map is fitted on more of the rows"),
    ],
)
def test_too_few_rows_to_fit_on_come_with_what_to_do(n, asked, message):
    data = calviz.Predictions(probs=np.linspace(0.2, 0.8, n), labels=np.arange(n) % 2)
    with pytest.raises(
        InputError, match=r"there are \d+ calibration rows \(.+\), a recal"
    ) as caught:
        Division(**asked).rows(data)
    assert message in str(caught.value)
    assert "needs at least 10" in str(caught.value)


@pytest.mark.parametrize("folder", ["comparison", "data", "core"])
def test_errors_that_begin_with_there_are_say_what_to_do(folder):
    checked = 0
    for path in (Path(calviz.__file__).parent / folder).rglob("*.py"):
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not (isinstance(call, ast.Call) and getattr(call.func, "id", "") == "InputError"):
                continue
            text = ast.unparse(call.args[0]).lstrip("f'\"") if call.args else ""
            if re.match(r"there (are|is) .*(rows|models)", text) and "labels" not in text:
                checked += 1
                assert {k.arg for k in call.keywords} & {"remedy", "repairs"}, (path.name, text)
    assert checked


@pytest.mark.parametrize("classes", [1, 7, 1 << 10, (1 << 10) + 1])
def test_rows_are_shuffled_as_by_lexsort(classes):
    labels = np.random.default_rng(classes).integers(classes, size=2_000)
    order = _shuffled_by_class(labels, np.random.default_rng(0))
    random = np.random.default_rng(0).random(labels.size)
    np.testing.assert_array_equal(order, np.lexsort((random, labels)))
