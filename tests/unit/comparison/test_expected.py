"""Expected performance: expectations by hand, intervals that cover, and what is said of bad input."""

import json
import math

import numpy as np
import pytest
from scipy.special import expit

import calviz
from calviz.core.errors import InputError, NotAvailable, OptionError
from tests.inputs.command_line import run


def scored(rng, n, *, mean=0.0, slope=1.0, offset=0.0):
    """Rows of two classes, of which p is calibrated if the slope is 1 and the offset 0."""
    z = rng.normal(mean, 1.5, n)
    labels = (rng.random(n) < expit(slope * z + offset)).astype(int)
    return calviz.Predictions(probs=expit(z), labels=labels)


def test_metrics_of_calibrated_rows_by_hand():
    p = np.array([0.9, 0.2, 0.6, 0.35, 0.5001])
    e = calviz.expected(p, draws=20)
    q = np.stack([1 - p, p], axis=1)
    assert e.metrics["accuracy"].value == pytest.approx(np.mean(q.max(1)))
    # E (p - y)^2 = p (1 - p), for both classes.
    assert e.metrics["brier"].value == pytest.approx(np.mean(2 * p * (1 - p)))
    assert e.metrics["nll"].value == pytest.approx(np.mean(-(q * np.log(q)).sum(1)))
    said = p > 0.5
    tp, fp, fn = p[said].sum(), (1 - p)[said].sum(), p[~said].sum()
    np.testing.assert_allclose(e.confusion, [[(1 - p)[~said].sum(), fp], [fn, tp]])
    assert e.metrics["f1"].value == pytest.approx(2 * tp / (2 * tp + fp + fn))
    # Pairs of a row as an event with a row as none, each with its probability.
    pairs = np.outer(p, 1 - p)
    wins = (p[:, None] > p) + 0.5 * (p[:, None] == p)
    assert e.metrics["auroc"].value == pytest.approx((pairs * wins).sum() / pairs.sum())


def test_metrics_of_three_classes_by_hand():
    rng = np.random.default_rng(0)
    q = rng.dirichlet([1, 1, 1], 40)
    e = calviz.expected(q, metrics=["accuracy", "brier"], draws=20)
    assert e.metrics["accuracy"].value == pytest.approx(np.mean(q.max(1)))
    assert e.metrics["brier"].value == pytest.approx(np.mean(1 - (q**2).sum(1)))
    assert e.confusion.shape == (3, 3)
    assert e.confusion.sum() == pytest.approx(40)
    np.testing.assert_allclose(e.confusion.sum(1), q.sum(0))
    f1 = [2 * c[k, k] / (c[k].sum() + c[:, k].sum()) for c in [e.confusion] for k in range(3)]
    assert e.metrics["f1"].value == pytest.approx(np.mean(f1))


def test_a_map_is_taken_to_be_true():
    rng = np.random.default_rng(0)
    rows = scored(rng, 500, slope=0.5)
    scaling = calviz.recalibrators.TemperatureScaling().fit(rows.probs, rows.labels)
    e = calviz.expected(rows, map=scaling, draws=20)
    believed = scaling.transform(rows.probs)
    chosen = rows.probs.argmax(1)
    assert e.metrics["accuracy"].value == pytest.approx(believed[np.arange(500), chosen].mean())
    assert calviz.expected(rows, map=scaling.to_dict(), draws=20).metrics == e.metrics
    assert "calibrated on these rows" in e.assumption


def test_intervals_hold_what_the_labels_give():
    """Also where the scores have moved; labels follow them as before."""
    metrics = ["accuracy", "brier"]
    held = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        rows = scored(rng, 400, mean=0.7, slope=0.6, offset=-0.4)
        labelled = scored(rng, 600, slope=0.6, offset=-0.4)
        e = calviz.expected(rows, labelled=labelled, metrics=metrics, draws=60, seed=seed)
        true = calviz.evaluate(rows, metrics)
        held += [
            e.metrics[m].interval.low <= true[m].value <= e.metrics[m].interval.high
            for m in metrics
        ]
        assert e.moved < 0.01
        assert e.labelled == 600
    assert np.mean(held) >= 0.8
    # The scores themselves promise too much.
    naive = calviz.expected(rows, metrics=metrics, draws=60)
    assert not naive.metrics["accuracy"].interval.low <= true["accuracy"].value


def test_what_it_rests_on_is_said():
    rng = np.random.default_rng(0)
    labelled = scored(rng, 300)
    same = calviz.expected(scored(rng, 300), labelled=labelled, draws=20)
    assert same.moved > 0.01
    assert "300 labelled rows" in str(same)
    assert "moved" not in str(same)
    beyond = calviz.expected(np.full(50, 0.9999), labelled=labelled, draws=20)
    assert beyond.outside == 1
    assert "outside those of the labelled rows" in str(beyond)
    assert "moved" in str(beyond)


def test_confidences_have_no_confusion():
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.3, 1, 300)
    rows = calviz.ConfidencePredictions(confidence=confidence, correct=np.zeros(300, dtype=bool))
    e = calviz.expected(rows, metrics=["accuracy"], draws=20)
    assert e.metrics["accuracy"].value == pytest.approx(confidence.mean())
    assert list(e.metrics) == ["accuracy"]


def test_what_cannot_be_estimated_is_one_sentence():
    rng = np.random.default_rng(0)
    rows = scored(rng, 50)
    with pytest.raises(OptionError, match="not both"):
        calviz.expected(rows, map={}, labelled=rows)
    with pytest.raises(OptionError, match="no metric 'magic'"):
        calviz.expected(rows, metrics=["magic"])
    with pytest.raises(OptionError, match="between 0 and 1"):
        calviz.expected(rows, confidence=95)
    with pytest.raises(InputError, match="other classes"):
        calviz.expected(np.full((4, 3), 1 / 3), labelled=rows)
    with pytest.raises(InputError, match="shape"):
        calviz.expected(np.zeros((2, 2, 2)))
    with pytest.raises(InputError):
        calviz.expected([0.2, 1.7])
    with pytest.raises(NotAvailable, match="count alike"):
        calviz.expected(
            calviz.Predictions(probs=rows.probs, labels=rows.labels, weights=np.arange(1.0, 51))
        )
    only = calviz.Predictions(probs=[[0.4, 0.6], [0.3, 0.7]], labels=[1, 1])
    with pytest.raises(InputError, match="1 class"):
        calviz.expected(rows, labelled=only, method="platt")


# ---- The command


def test_the_command_estimates_rows_without_labels(tmp_path):
    rng = np.random.default_rng(0)
    data = scored(rng, 400, slope=0.5)
    lines = ["part,outcome,p_no,p_yes"]
    for k, (p, label) in enumerate(zip(data.probs[:, 1], data.labels, strict=True)):
        part, outcome = ("val", ("no", "yes")[label]) if k < 250 else ("now", "")
        lines.append(f"{part},{outcome},{1 - p},{p}")
    file = tmp_path / "scores.csv"
    file.write_text("\n".join(lines) + "\n")
    done = run(
        "expected",
        file,
        "--split-column",
        "part",
        "--labelled-split",
        "val",
        "--method",
        "isotonic",
        "--json",
        "-",
    )
    assert done.exit_code == 0, done.stderr
    record = json.loads(done.stdout)
    assert list(record) == ["schema", "metrics", "rows"]
    assert record["rows"] == 150
    labelled = calviz.Predictions(probs=data.probs[:250], labels=data.labels[:250])
    e = calviz.expected(data.probs[250:], labelled=labelled, method="isotonic")
    assert record["metrics"]["accuracy"]["value"] == pytest.approx(e.metrics["accuracy"].value)
    low, high = record["metrics"]["brier"]["interval"]
    assert low < record["metrics"]["brier"]["value"] < high

    unlabelled = tmp_path / "now.csv"
    unlabelled.write_text(
        "\n".join(["p_no,p_yes", *(x.split(",", 2)[2] for x in lines[251:])]) + "\n"
    )
    done = run("expected", unlabelled)
    assert done.exit_code == 0, done.stderr
    assert "Expected of 150 rows without labels" in done.stdout
    saved = tmp_path / "map.json"
    calibrated = (
        calviz.recalibrators.IsotonicRecalibrator().fit(labelled.probs, labelled.labels).to_dict()
    )
    saved.write_text(json.dumps(calibrated))
    done = run("expected", unlabelled, "--map", saved, "--json", "-")
    again = json.loads(done.stdout)["metrics"]["accuracy"]
    assert again["value"] == pytest.approx(record["metrics"]["accuracy"]["value"])
    # The map is not refitted here.
    width = np.diff(again["interval"])[0]
    assert width < np.diff(record["metrics"]["accuracy"]["interval"])[0] + 0.02

    for arguments, words in {
        ("--map", str(saved), "--labelled-split", "val"): "exclude each other",
        ("--labelled-split", "none"): "no split",
        ("--method", "beta"): "--labelled-split",
    }.items():
        done = run("expected", file, "--split-column", "part", *arguments)
        assert done.exit_code == 2
        assert words in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1


def test_all_draws_are_finite_or_left_out():
    """With one row, AUROC has no value."""
    e = calviz.expected([0.7], draws=20)
    assert e.metrics["accuracy"].value == pytest.approx(0.7)
    assert math.isnan(e.metrics["auroc"].interval.low)
