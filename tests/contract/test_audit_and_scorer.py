"""The audit and the scorer from Python."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.calibration import calibration_curve
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import brier_score_loss, log_loss, make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.svm import LinearSVC

import calviz
from calviz.core.entry_specs import METRICS
from calviz.core.errors import CalvizError, InputError, OptionError
from calviz.figures.risk_coverage import RiskCoverage
from tests.inputs.command_line import run, run_successfully
from tests.inputs.simulated import draw_labels

# ---- One line from arrays to a verdict, and results that show themselves


RNG = np.random.default_rng(2)
PROBS = RNG.dirichlet([1, 1, 1], 400)
Y = draw_labels(PROBS, RNG)
NAMES = np.array(["<b>ant", "bee", "cat"])[Y]


def test_audit_gives_the_evaluation_with_verdict_and_findings():
    result = calviz.audit(NAMES, PROBS, resamples=100)
    assert result["nll"].value == pytest.approx(log_loss(NAMES, PROBS))
    assert result["brier"].value == pytest.approx(
        brier_score_loss(NAMES, PROBS, scale_by_half=False)
    )
    assert result["ece"].interval is not None
    assert result.verdict.direction == "calibrated"  # the labels were drawn from the probabilities
    assert result.findings
    p = calviz.Predictions.from_arrays(NAMES, PROBS, name="<i>ants")
    same = calviz.audit(p, metrics="ece", ci=False, findings=False)
    assert [r.key for r in same] == ["ece"]
    assert same["ece"].value == result["ece"].value
    for wrong, error, text in (
        (lambda: calviz.audit(Y), InputError, "give true labels and probabilities"),
        (lambda: calviz.audit(p, pos_label=1), OptionError, "are for arrays"),
        (lambda: result["mce"], OptionError, "'mce' was not measured; there are accuracy, ece"),
    ):
        with pytest.raises(error, match=text):
            wrong()


def test_results_are_one_line_in_a_console_short_when_printed_and_escaped_in_a_notebook():
    p = calviz.Predictions.from_arrays(NAMES, PROBS, groups={"half": Y % 2}, name="<i>ants")
    assert len(p) == 400
    results = [
        p,
        calviz.audit(p, resamples=100),
        calviz.compare(p, ["temperature"], fit_fraction=0.5, ci=False),
        calviz.compare_models({"<u>one": p, "other": p.renamed("x")}, ["nll"], ci=False),
        calviz.slices(p),
        calviz.figures.Reliability.compute(p),
    ]
    for result in results:
        assert "\n" not in repr(result)
        assert len(repr(result)) < 700
        assert repr(result).startswith(f"<{type(result).__name__}")
    for result in results[:-1]:
        page = result._repr_html_()
        assert page.startswith('<div class="calviz">')
        for tag in ("<i>", "<b>", "<u>"):
            assert tag not in page
    printed = str(results[1]).splitlines()
    assert printed[1] == results[1].verdict.sentence
    assert printed[2].split() == ["metric", "value", "95", "%", "interval", "if", "calibrated"]


def test_compare_measures_the_metrics_of_its_tables_unless_asked():
    p = calviz.Predictions.from_arrays(Y, PROBS)
    how = {"fit_fraction": 0.5, "ci": False}
    comparison = calviz.compare(p, ["temperature"], **how)
    assert tuple(comparison["temperature"].metrics) == METRICS.in_table("methods")
    assert tuple(calviz.compare(p, ["temperature"], metrics="nll", **how)["identity"].metrics) == (
        "nll",
    )
    every = calviz.compare(p, [], metrics="all", **how)
    assert len(every["identity"].metrics) == len(METRICS)


def test_figures_of_arrays_show_what_scikit_learn_shows():
    y, score = (Y == 1), PROBS[:, 1]
    figure = calviz.figures.Reliability.from_predictions(y, score, n_bins=7)
    frame = figure.frame()
    prob_true, prob_pred = calibration_curve(y, score, n_bins=7)
    used = frame[frame["rows"] > 0]
    column = next(c for c in ("observed", "hits", "accuracy") if c in used)
    np.testing.assert_allclose(used[column], prob_true)
    assert figure.plot().data
    for wrong, text in (
        (lambda: calviz.figures.LearningCurves.from_predictions(y, score), "takes 'curve'"),
        (
            lambda: calviz.figures.Reliability.from_predictions(y, score, colour=1),
            "no option 'colour'",
        ),
    ):
        with pytest.raises(OptionError, match=text):
            wrong()
    for name in ("Cumulative", "BinSensitivity", "RiskCoverage", "ClassBars"):
        assert len(getattr(calviz.figures, name).from_predictions(Y, PROBS).frame())
    del prob_pred


def test_figures_of_estimators():
    from sklearn.naive_bayes import GaussianNB

    clf = GaussianNB().fit(PROBS, NAMES)
    figure = calviz.figures.Reliability.from_estimator(clf, PROBS, NAMES, n_bins=5)
    assert figure.name == "GaussianNB"


def test_a_scorer_gets_weights_by_metadata_routing():
    weights = RNG.integers(0, 4, 400)
    own = calviz.scorer("brier")
    with pytest.raises(OptionError, match="metadata routing is off"):
        own.set_score_request(sample_weight=True)
    with sklearn.config_context(enable_metadata_routing=True):
        clf = LogisticRegression().set_fit_request(sample_weight=False)
        theirs = make_scorer(
            brier_score_loss, greater_is_better=False, response_method="predict_proba"
        ).set_score_request(sample_weight=True)
        scores = [
            cross_val_score(clf, PROBS, Y == 1, scoring=one, params={"sample_weight": weights})
            for one in (own.set_score_request(sample_weight=True), theirs)
        ]
        # Ours sums over both classes.
        np.testing.assert_allclose(scores[0], 2 * scores[1])
        search = GridSearchCV(
            clf, {"C": [0.1, 1]}, scoring={"own": own, "theirs": theirs}, refit="own"
        )
        cv_results = search.fit(PROBS, Y == 1, sample_weight=weights).cv_results_
        np.testing.assert_allclose(cv_results["mean_test_own"], 2 * cv_results["mean_test_theirs"])
        with pytest.raises(ValueError, match=r"not explicitly set .* for calviz.scorer\('ece'\)"):
            cross_val_score(
                clf, PROBS, Y, scoring=calviz.scorer("ece"), params={"sample_weight": weights}
            )


def test_models_are_compared_by_the_metrics_of_the_page_unless_asked():
    p = calviz.Predictions.from_arrays(Y, PROBS)
    models = {"one": p, "other": p.renamed("x")}
    comparison = calviz.compare_models(models, ci=False)
    assert tuple(comparison["one"].metrics) == METRICS.in_table("rivals")
    every = calviz.compare_models(models, "all", ci=False)
    assert len(every["one"].metrics) == len(METRICS)


P = calviz.Predictions
FRAME = pd.DataFrame({"y": Y % 2, "p": PROBS[:, 0], "high": PROBS[:, 0] * 100})
SVC = LinearSVC().fit(PROBS, NAMES)
GOOD = P.from_arrays(Y, PROBS)
WRONG = {
    "a frame to audit": (lambda: calviz.audit(FRAME), "Predictions.from_frame(df)"),
    "a path to audit": (lambda: calviz.audit("predictions.csv"), "audit(calviz.load(path))"),
    "the arguments exchanged": (lambda: calviz.audit(PROBS, Y), "labels have shape (400, 3)"),
    "the arguments of two classes exchanged": (lambda: calviz.audit(PROBS[:, 0], Y == 1), "give the labels before the probabilities"),
    "arrays to evaluate": (lambda: calviz.evaluate(PROBS, Y), "calviz.audit(y_true, y_prob) evaluates them"),
    "an option of no metric": (lambda: calviz.audit(Y, PROBS, bin=9), "did you mean 'bins'?"),
    "an option of no scorer": (lambda: calviz.scorer("ece", bin=9), "did you mean 'bins'?"),
    "an option of no figure": (lambda: calviz.figures.Reliability.from_predictions(Y, PROBS, bin=9), "did you mean 'bins'?"),
    "an option of no method": (lambda: calviz.recalibrate(GOOD, "temperature", fit_fraction=0.5, flor=1), "did you mean 'floor'?"),
    "a sample set that there is not": (lambda: calviz.sample("digit"), "did you mean 'digits'?"),
    "a model of no sample set": (lambda: calviz.sample("digits", "MPL"), "did you mean 'MLP'?"),
    "predictions and probabilities": (lambda: calviz.audit(GOOD, PROBS), "leave out y_prob"),
    "lengths": (lambda: calviz.audit(Y[:9], PROBS), "400 rows of probabilities but 9 labels"),
    "an unknown label": (lambda: calviz.audit([7] * 400, PROBS), "there is 1 different label (7)"),
    "percentages": (lambda: calviz.audit(Y == 1, PROBS[:, 0] * 100), "divide them by 100"),
    "logits": (lambda: calviz.audit(Y, np.log(PROBS)), 'say kind="logits"'),
    "texts": (lambda: calviz.audit(Y == 1, ["high"] * 400), "the probabilities are text"),
    "a metric that there is not": (lambda: calviz.audit(Y, PROBS, metrics=["smce"]), "did you mean 'smece'?"),
    "groups without names": (lambda: calviz.audit(Y, PROBS, groups=[1] * 400), "a mapping of names"),
    "few clusters": (lambda: calviz.audit(Y, PROBS, clusters=["a"] * 5), "'clusters' has 5 rows"),
    "weights as text": (lambda: calviz.audit(Y, PROBS, sample_weight=["a"] * 400), "weights hold text"),
    "labels as text": (lambda: P(probs=PROBS, labels=NAMES), "from_arrays(y_true, y_prob)"),
    "no predict_proba": (lambda: P.from_estimator(SVC, PROBS, Y), 'response_method="decision_function"'),
    "a class": (lambda: P.from_estimator(LinearSVC, PROBS, Y), "expected a fitted estimator"),
    "other features": (lambda: P.from_estimator(SVC, PROBS[:, :2], Y, response_method="decision_function"), "X has 2 features"),
    "a label of no score": (lambda: P.from_estimator(SVC, PROBS, ["dog"] * 400, response_method="decision_function"), "none of the classes"),
    "a column of no frame": (lambda: P.from_frame(FRAME, label="z"), "label 'z' is not in the frame; there are y, p, high"),
    "no frame": (lambda: P.from_frame(PROBS), "expected a data frame"),
    "an empty frame": (lambda: P.from_frame(FRAME[:0], label="y"), "the frame has no rows; give at least one"),
    "per cent in a frame": (lambda: P.from_frame(FRAME, label="y", scores=["high"]), '(repair="percent")'),
    "an option of no reader": (lambda: P.from_frame(FRAME, lable="y"), "no reading option 'lable'"),
    "a frame to load": (lambda: calviz.load(FRAME), "calviz.Predictions.from_frame(df)"),
    "nothing to load": (lambda: calviz.load(None), "got NoneType, expected the path of a file"),
    "one model": (lambda: calviz.compare_models(GOOD), "expected several models"),
    "arrays for sets": (lambda: calviz.prediction_sets(PROBS), "expected Predictions, got ndarray"),
    "no estimator": (lambda: calviz.Calibrated(None).fit(PROBS, Y), "expected a scikit-learn classifier"),
    "one column to fit": (lambda: calviz.recalibrators.TemperatureScaling().fit(PROBS[:, 0], Y), "one column per class"),
    "other columns than fitted": (lambda: calviz.recalibrators.TemperatureScaling().fit(PROBS, Y).transform(np.full((4, 2), 0.5)), "X has 2 features"),
    "a theme": (lambda: calviz.figures.Reliability.compute(GOOD).plot(theme="pink"), "'theme' must be one of light, dark"),
    "a reduction": (lambda: calviz.Reduction("top"), "the reduction 'top' is unknown"),
}  # fmt: skip


@pytest.mark.parametrize("call", WRONG)
def test_a_wrong_call_gets_one_sentence(call):
    wrong, text = WRONG[call]
    with pytest.raises(CalvizError) as caught:
        wrong()
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(caught.value).endswith((".", "?"))


def test_a_sample_set_is_a_call_whatever_was_imported():
    import calviz.sample.sample

    assert calviz.sample("digits").name == "MLP"
    assert calviz.sample("breast_cancer", "naive Bayes").class_names == ("benign", "malignant")
    assert calviz.sample.sample.Sample is not None
    assert [key for key in ("figure", "evaluates") if hasattr(calviz, key)] == []


@pytest.mark.slow
def test_importing_takes_no_time_and_loads_no_integration():
    code = """
import sys, time
start = time.process_time()
import calviz
seconds = time.process_time() - start
import json
print(json.dumps([seconds, sorted({"narwhals", "mlflow", "wandb", "numpy", "sklearn"} & set(sys.modules))]))
calviz.Predictions
help(calviz)
"""
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    seconds, loaded = json.loads(result.stdout.splitlines()[0])
    assert seconds < 0.1
    assert loaded == []
    for name in ("audit", "Calibrated", "scorer", "Predictions"):
        assert name in result.stdout


# ---- `calviz threshold`, the guarantee of `audit`, and a new base rate on the command line


@pytest.fixture
def file(tmp_path):
    rng = np.random.default_rng(0)
    score = 1 / (1 + np.exp(-rng.normal(-1, 2, 2_000)))
    frame = pl.DataFrame(
        {
            "p": score,
            "label": (rng.random(2_000) < score).astype(int),
            "split": np.where(np.arange(2_000) % 2, "calibration", "test"),
            "site": np.resize(["a", "b"], 2_000),
        }
    )
    frame.write_csv(tmp_path / "rows.csv")
    return tmp_path / "rows.csv"


#: What the command line adds to the record of a result.
HEAD = ("calviz", "command", "file")
KEYS = [
    "schema",
    "of",
    "target",
    "confidence",
    "predicted",
    "threshold",
    "bound",
    "kept",
    "observed",
    "rows",
    "refuted",
]


def test_the_record_is_that_of_python(file):
    out = run_successfully("threshold", file, "--risk", ".1", "--json", "-")
    record = json.loads(out)
    head = [record.pop(key) for key in HEAD]
    assert head == [calviz.__version__, "threshold", str(file)]
    assert list(record) == [*KEYS, "groups"]
    assert record == calviz.threshold(calviz.load(file), risk=0.1).to_dict()
    two = json.loads(
        run_successfully(
            *("threshold", file, "--of", "precision", "--of", "recall", "--risk", ".3"),
            *("--risk", ".3", "--by", "site", "--json", "-"),
        )
    )
    data = calviz.load(file)
    python = calviz.threshold(data, risk=(0.3, 0.3), of=("precision", "recall"), by="site")
    assert [two.pop(key) for key in HEAD] == head
    assert two == json.loads(json.dumps(python.to_dict()))
    twice = ("--by", "site", "--by", "predicted class")
    assert ", 1: " in run_successfully("threshold", file, "--risk", ".1", *twice)
    text = run_successfully("threshold", file, "--risk", ".1", "--by", "site")
    assert "2 of 2 groups" in text or "1 of 2 groups" in text
    assert "guaranteed" in text


def test_in_sample_all_rows_choose_the_threshold(file):
    curve = calviz.figures.RiskCoverage.compute(calviz.load(file), band=False, seed=0)
    on_all = curve.at_risk(0.1)
    how = ("threshold", file, "--risk", ".1", "--in-sample")
    record = json.loads(run_successfully(*how, "--json", "-"))
    assert record["threshold"] == on_all.threshold
    assert record["kept"] == pytest.approx(on_all.coverage)
    assert not record["refuted"]
    assert "Chosen on all rows (2,000 rows)" in " ".join(run_successfully(*how).split())


def test_without_a_threshold_the_missing_rows_are_told_and_the_record_has_null(file):
    result = run("threshold", file, "--risk", ".02", "--json", "-")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["threshold"] is None
    assert result.stderr.endswith(": more rows may help.\n")


def test_without_a_threshold_the_reason_is_that_of_the_app(tmp_path):
    """Every row is wrong."""
    path = tmp_path / "wrong.csv"
    p = np.linspace(0.6, 0.99, 200)
    path.write_text("label,probability\n" + "".join(f"0,{x:.4f}\n" for x in p[:-1]) + "1,0.01\n")
    text = " ".join(run_successfully("threshold", path, "--risk", ".1").split())
    why = "o threshold that keeps 5 % of the rows gets clearly below 10.0 % wrong, and more rows would hardly help one threshold for all."
    assert why in text
    assert why in RiskCoverage.compute(calviz.load(path)).at_risk(0.1).sentence


def test_blank_groups_are_missing_and_none_says_for_which_thresholds(tmp_path):
    path = tmp_path / "groups.csv"
    rows = [f"{i % 2},{(i % 99 + 1) / 100},{'a' * (i % 3 > 0)}" for i in range(300)]
    path.write_text("\n".join(["label,probability,site", *rows]))
    text = " ".join(run_successfully("audit", path, "--by", "site").split())
    assert " missing 100 " in text
    words = "more rows would hardly help, unless fewer than 5 % of the rows are to be kept;"
    assert f"None: {words}" in text


@pytest.mark.parametrize("command", [("audit",), ("over-time", "--time", "day")])
def test_that_all_splits_are_used_is_said_once(tmp_path, command):
    name, *options = command
    path = tmp_path / "splits.csv"
    rows = [
        f"{i % 2},{0.3 + 0.4 * (i % 2)},2026-01-{1 + i // 30:02},{split}"
        for split in ("train", "test", "new rows")
        for i in range(60)
    ]
    path.write_text("\n".join(["label,probability,day,split", *rows]))
    words = "uses all rows; the file has the splits train, test, new rows (--split 'test', as the app opens)"
    assert run_successfully(name, path, *options).count(words) == 1
    assert words not in run_successfully(name, path, *options, "--split", "test")


def test_audit_by_a_column_has_the_thresholds_of_the_command(file):
    text = " ".join(run_successfully("audit", file, "--risk", ".2", "--by", "site").split())
    choice = calviz.threshold(calviz.load(file), risk=0.2, by="site")
    assert any(one.threshold for one in choice.groups.values())
    for one in choice.groups.values():
        assert " ".join(one.cells).replace("\xa0", " ") in text.replace("\xa0", " ")
    assert f"Chosen on {choice.fit.words}" in text.replace("\xa0", " ")


def test_audit_adds_the_guarantee(file):
    text = run_successfully("audit", file, "--risk", ".1", "--guarantee", ".95")
    choice = calviz.threshold(calviz.load(file), risk=0.1)
    assert " ".join(repr(choice).split()) in " ".join(text.split())
    record = json.loads(
        run_successfully("audit", file, "--risk", ".1", "--guarantee", ".95", "--json", "-")
    )
    assert record["threshold"] == choice.to_dict()
    assert "threshold" not in json.loads(run_successfully("audit", file, "--json", "-"))


def test_audit_at_a_prevalence(file):
    record = json.loads(run_successfully("audit", file, "--prevalence", ".05", "--json", "-"))
    data = calviz.at_prevalence(calviz.load(file), 0.05)
    assert record["prevalence"] == [0.05]
    assert record["metrics"]["ece"]["value"] == calviz.evaluate(data, ["ece"])["ece"].value
    choice = json.loads(
        run_successfully("threshold", file, "--prevalence", ".05", "--of", "recall", "--json", "-")
    )
    assert [choice.pop(key) for key in HEAD][1:] == ["threshold", str(file)]
    assert choice == calviz.threshold(data, of="recall").to_dict()


def test_a_base_rate_is_given_or_estimated(file, tmp_path):
    out, saved = tmp_path / "out.csv", tmp_path / "map.json"
    how = ("recalibrate", file, "--method", "prior", "--out", out, "--save-map", saved)
    run_successfully(*how, "--option", "prior.base_rate=.03")
    by_hand = calviz.recalibrate(calviz.load(file), "prior", base_rate=0.03)
    np.testing.assert_allclose(calviz.load(out).probs, by_hand.probs, atol=1e-12)
    frame = pl.read_csv(file)
    new = frame.filter((pl.col("label") == 0) | (pl.int_range(pl.len()) % 3 == 0)).select("p")
    new.write_csv(tmp_path / "new.csv")
    result = run(*how, "--unlabelled", tmp_path / "new.csv")
    assert result.exit_code == 0
    assert "unlabelled rows" in result.stderr
    labelled = calviz.load(file).split("calibration")
    rates = calviz.base_rates(labelled, new["p"].to_numpy())
    rate = json.loads(saved.read_text())["parameters"]["base_rate"]
    np.testing.assert_allclose(rate, rates.rates, atol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("threshold", "--risk", "0"), "'risk' must lie between 0 and 1"),
        (("threshold", "--confidence", "1"), "'--confidence' must lie between 0 and 1"),
        (("threshold", "--by", "x"), "no group column 'x'"),
        (("threshold", "--choose-split", "x"), "no split 'x'"),
        (("threshold", "--prevalence", "0"), "'prevalence' must lie between 0 and 1"),
        (("threshold", "--prevalence", "x"), "--prevalence 'x' is not a number"),
        (("audit", "--guarantee", "2"), "'--guarantee' must lie between 0 and 1"),
        (("recalibrate", "--method", "prior", "--option", "prior.base_rate=1"), "both excluded"),
        (("recalibrate", "--method", "prior", "--option", "prior.mean=[.2,.3,.5]"), "of the 2"),
        (("recalibrate", "--method", "platt", "--unlabelled", "new.csv"), "of --method prior"),
        (("recalibrate", "--method", "prior", "--unlabelled", "three.csv"), "other classes"),
    ],
)
def test_wrong_arguments_are_one_sentence_and_nothing_is_written(file, tmp_path, arguments, words):
    pl.DataFrame({"p_0": [0.2] * 9, "p_1": [0.3] * 9, "p_2": [0.5] * 9}).write_csv(
        tmp_path / "three.csv"
    )
    command, *rest = arguments
    rest = [tmp_path / a if str(a).endswith(".csv") else a for a in rest]
    out = tmp_path / "out.csv"
    target = ("--out", out) if command == "recalibrate" else ("--json", out)
    result = run(command, file, *rest, *target)
    assert result.exit_code == 2
    assert words in result.stderr
    assert len([line for line in result.stderr.splitlines() if line.startswith("calviz:")]) == 1
    assert not out.exists()
