"""One line from arrays to a verdict, and results that show themselves."""

import json
import subprocess
import sys

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss, log_loss

import calviz
from calviz.core.errors import InputError, OptionError
from calviz.specs.metric import METRICS

RNG = np.random.default_rng(2)
PROBS = RNG.dirichlet([1, 1, 1], 400)
Y = (PROBS.cumsum(axis=1) > RNG.random((400, 1))).argmax(axis=1)
NAMES = np.array(["<b>ant", "bee", "cat"])[Y]


def test_audit_gives_the_evaluation_with_verdict_and_findings():
    found = calviz.audit(NAMES, PROBS, resamples=100)
    assert found["nll"].value == pytest.approx(log_loss(NAMES, PROBS))
    assert found["brier"].value == pytest.approx(
        brier_score_loss(NAMES, PROBS, scale_by_half=False)
    )
    assert found["ece"].interval is not None
    assert found.verdict.direction == "calibrated"  # the labels were drawn from the probabilities
    assert found.findings
    p = calviz.Predictions.from_arrays(NAMES, PROBS, name="<i>ants")
    same = calviz.audit(p, metrics="ece", ci=False, findings=False)
    assert [r.key for r in same] == ["ece"]
    assert same["ece"].value == found["ece"].value
    for wrong, error, said in (
        (lambda: calviz.audit(Y), InputError, "give true labels and probabilities"),
        (lambda: calviz.audit(p, pos_label=1), OptionError, "are for arrays"),
        (lambda: found["mce"], OptionError, "'mce' was not measured; there are accuracy, ece"),
    ):
        with pytest.raises(error, match=said):
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
    found = calviz.compare(p, ["temperature"], **how)
    assert tuple(found["temperature"].metrics) == METRICS.in_table("methods")
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
    for wrong, said in (
        (lambda: calviz.figures.LearningCurves.from_predictions(y, score), "takes 'curve'"),
        (
            lambda: calviz.figures.Reliability.from_predictions(y, score, colour=1),
            "no option 'colour'",
        ),
    ):
        with pytest.raises(OptionError, match=said):
            wrong()
    for name in ("Cumulative", "BinSensitivity", "RiskCoverage", "ClassBars"):
        assert len(getattr(calviz.figures, name).from_predictions(Y, PROBS).frame())
    del prob_pred


def test_figures_of_estimators():
    from sklearn.naive_bayes import GaussianNB

    clf = GaussianNB().fit(PROBS, NAMES)
    figure = calviz.figures.Reliability.from_estimator(clf, PROBS, NAMES, n_bins=5)
    assert figure.name == "GaussianNB"


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
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    seconds, loaded = json.loads(found.stdout.splitlines()[0])
    assert seconds < 0.1
    assert loaded == []
    for name in ("audit", "Calibrated", "scorer", "Predictions"):
        assert name in found.stdout
