"""Scores that rank in reverse: the test, its false alarms, the sentences, and what they advise, applied."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import mannwhitneyu

import calviz
from calviz.sample.error_bars import CLASS_TEST
from calviz.sample.sample import Sample
from calviz.verdicts.analysis import findings_of
from calviz.verdicts.reverse_checks import LEVEL_IF_OFF, area_test
from calviz.verdicts.sentence import explained, judged

FEW = 199
REVERSE, USELESS = "CAL026", "CAL016"


def shifted(n, rng, shift, *, spread=1.0, share=0.5, **columns):
    """Scores expit(spread (z + shift y)), z normal and y events: their AUROC is Phi(shift / sqrt 2)."""
    y = rng.random(n) < share
    return calviz.Predictions(
        probs=expit(spread * (rng.normal(size=n) + shift * y)), labels=y, **columns
    )


#: Phi(-0.545 / sqrt 2) = 0.35.
A35 = -0.545


def codes(data, reduction=None):
    return {f.code for f in findings_of(Sample(data, reduction, resamples=FEW))}


@pytest.mark.parametrize("digits", [1, 6])
def test_the_p_value_of_independent_rows_is_at_least_that_of_mann_and_whitney(digits):
    for seed in range(20):
        y = np.random.default_rng(seed).random(80) < 0.4
        p = np.round(expit(np.random.default_rng([1, seed]).normal(size=80) - 0.5 * y), digits)
        test = area_test(Sample(calviz.Predictions(probs=p, labels=y), "positive"))
        usual = mannwhitneyu(
            p[y], p[~y], alternative="less", use_continuity=False, method="asymptotic"
        )
        assert test.area == pytest.approx(usual.statistic / (y.sum() * (~y).sum()))
        # DeLong's variance is the larger one in some samples.
        if test.area < 0.5:
            assert usual.pvalue * (1 - 1e-9) <= test.p_value <= usual.pvalue + 0.05


@pytest.mark.parametrize("by", ["weights", "clusters", "both"])
def test_equal_weights_and_clusters_of_two_independent_rows_change_little(by):
    data = shifted(400, np.random.default_rng(3), -0.4)
    columns = {}
    if by != "clusters":
        columns["weights"] = np.linspace(1, 1 + 1e-9, 400)
    if by != "weights":
        columns["clusters"] = np.arange(400) // 2
    same = calviz.Predictions(probs=data.probs, labels=data.labels, **columns)
    plain, other = (area_test(Sample(d, "positive")) for d in (data, same))
    assert other.area == pytest.approx(plain.area)
    # Student's t has heavier tails than the normal distribution.
    assert plain.p_value <= other.p_value <= 3 * plain.p_value


def test_copies_of_rows_are_no_evidence_if_they_are_clusters():
    data = shifted(30, np.random.default_rng(5), -0.5)
    twenty = np.repeat(np.arange(30), 20)
    columns = {"probs": data.probs[twenty], "labels": data.labels[twenty]}
    rows = area_test(Sample(calviz.Predictions(**columns), "positive"))
    clusters = area_test(Sample(calviz.Predictions(**columns, clusters=twenty), "positive"))
    single = area_test(Sample(data, "positive"))
    assert rows.p_value < single.p_value / 100
    assert single.p_value / 2 <= clusters.p_value <= 3 * single.p_value


def test_nothing_is_said_where_there_is_no_area():
    p = np.linspace(0.1, 0.9, 60)
    for labels in (np.zeros(60, int), np.ones(60, int)):
        assert area_test(Sample(calviz.Predictions(probs=p, labels=labels), "positive")) is None
    few = shifted(20, np.random.default_rng(0), -4)
    assert area_test(Sample(few, "positive")) is None
    equal = calviz.Predictions(probs=np.full(60, 0.4), labels=np.arange(60) % 2)
    assert area_test(Sample(equal, "positive")).p_value == pytest.approx(0.5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spread", "columns"),
    [
        (0.01, ()),
        (1.5, ()),
        (1.0, ("weights",)),
        (1.0, ("clusters",)),
        (1.0, ("weights", "clusters")),
    ],
)
def test_useless_scores_are_hardly_ever_said_to_rank_in_reverse(spread, columns):
    # Nearly calibrated if the spread is small; otherwise the verdict finds them off, and the level is 1 %.
    runs, level = 400, CLASS_TEST if spread < 0.1 else LEVEL_IF_OFF
    found = 0
    for seed in range(runs):
        rng = np.random.default_rng([7, seed])
        of_cluster = np.repeat(rng.normal(size=40), 5)
        n = of_cluster.size
        y, z = rng.random(n) < 0.5, rng.normal(size=n)
        more = {}
        if "clusters" in columns:
            y = np.repeat(rng.normal(size=40), 5) + rng.normal(size=n) > 0.3
            z, more["clusters"] = z + of_cluster, np.repeat(np.arange(40), 5)
        if "weights" in columns:
            more["weights"] = rng.exponential(size=n)
        test = area_test(
            Sample(
                calviz.Predictions(probs=expit(spread * z), labels=y, **more),
                "positive",
                resamples=FEW,
            )
        )
        found += test.in_reverse
    assert found <= level * runs + 3 * (level * runs) ** 0.5


@pytest.mark.slow
def test_an_area_of_035_is_found_in_200_rows_and_calibrated_scores_are_not_accused():
    runs, found, wrong = 40, 0, 0
    for seed in range(runs):
        rng = np.random.default_rng([8, seed])
        found += area_test(Sample(shifted(200, rng, A35), "positive", resamples=FEW)).in_reverse
        e = rng.normal(0, 1, 200)
        data = calviz.Predictions(probs=expit(e), labels=rng.random(200) < expit(e))
        wrong += area_test(Sample(data, "positive", resamples=FEW)).in_reverse
    assert found >= 0.75 * runs
    assert not wrong


def test_reverse_and_useless_are_never_said_together():
    both = {}
    for shift in (-2.0, -0.545, -0.2, -0.02, 0.0, 0.05, 1.0):
        data = shifted(2_000, np.random.default_rng(11), shift)
        both[shift] = codes(data) & {REVERSE, USELESS}
        v = judged(Sample(data, resamples=FEW))
        assert v.in_reverse == (REVERSE in both[shift]) == ("reverse" in v.sentence)
        assert v.tells_apart == (USELESS not in both[shift]) == ("hardly" not in v.sentence)
    assert both[-2.0] == both[-0.545] == both[-0.2] == {REVERSE}
    # However certain, an area near 1/2 is no order at all.
    assert both[-0.02] == both[0.0] == both[0.05] == {USELESS}
    assert not both[1.0]


def test_every_view_of_two_classes_and_the_verdict_say_it():
    data = shifted(400, np.random.default_rng(1), -1.5)
    for reduction in ("positive", "top-label", "class:0", "class:1"):
        v = judged(Sample(data, reduction, resamples=FEW))
        assert v.sentence.startswith(
            "The scores rank the classes in reverse: are they of the other class? "
        )
        assert v.direction in ("over", "mixed", "off")
        assert REVERSE in codes(data, reduction)
    *_, example, to_do = explained(Sample(data, resamples=FEW), v)
    assert example == "Its scores rank in reverse: where it promises more, less comes true."
    assert to_do.startswith("First find out what the scores are of, such as the other class")


def test_a_reverse_order_within_a_narrow_range_is_not_called_calibrated():
    data = shifted(400, np.random.default_rng(2), -1.0, spread=0.001)
    sample = Sample(data, "positive", resamples=FEW)
    v = judged(sample)
    assert v.in_reverse
    assert v.direction not in ("calibrated", "undecided")
    if not v.beyond_noise:
        assert "they rank the rows in reverse" in explained(sample, v)[1]


def test_one_of_several_classes():
    rng = np.random.default_rng(4)
    probs = rng.dirichlet(np.ones(3), 600)
    labels = np.array([rng.choice(3, p=p) for p in probs])
    data = calviz.Predictions(probs=probs, labels=(labels + 1) % 3, class_names=("a", "b", "c"))
    (found,) = (f for f in findings_of(Sample(data, "class:a", resamples=FEW)) if f.code == REVERSE)
    assert found.message.startswith("The scores of 'a' rank in reverse on 600 rows: AUROC 0.")
    assert found.message.endswith("check which class each score column is of.")
    v = judged(Sample(data, "top-label", resamples=FEW))
    assert v.sentence.startswith("The confidence ranks the predictions in reverse: ")
    assert not codes(data, "top-2") & {REVERSE}


def test_confidence_that_is_highest_where_predictions_are_wrong():
    rng = np.random.default_rng(6)
    confidence = rng.uniform(0.5, 1, 300)
    wrong = rng.random(300) < confidence
    data = calviz.ConfidencePredictions(confidence=confidence, correct=~wrong)
    evaluation = calviz.evaluate(data, ["auroc_failure"], findings=True)
    assert evaluation.verdict.sentence.startswith(
        "The confidence ranks the predictions in reverse: the most confident ones are the most often wrong. "
    )
    (found,) = (f.message for f in evaluation.findings if f.code == REVERSE)
    assert found.startswith("The most confident predictions are the most often wrong on 300 rows")
    assert "check that 1 means a right prediction" in found
    # What it says to check, corrected.
    turned = calviz.evaluate(
        calviz.ConfidencePredictions(confidence=confidence, correct=wrong),
        ["auroc_failure"],
        findings=True,
    )
    assert turned["auroc_failure"].value == pytest.approx(1 - evaluation["auroc_failure"].value)
    assert REVERSE not in {f.code for f in turned.findings}


# ---- The remedy, applied


def columns(seed=1, n=300):
    """P(event) with three digits, and labels that say that the event is the other class."""
    rng = np.random.default_rng(seed)
    p = rng.random(n).round(3)
    return p, (rng.random(n) >= p).astype(int)


def written(folder, header, *values):
    path = folder / "predictions.csv"
    lines = [",".join(map(str, row)) for row in zip(*values, strict=True)]
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


def found_in(path, **options):
    """AUROC of a file, and the message of the finding; "" without one."""
    evaluation = calviz.audit(calviz.load(path, **options), metrics=["auroc"], ci=False)
    messages = [f.message for f in evaluation.findings if f.code == REVERSE]
    return evaluation["auroc"].value, "".join(messages)


@pytest.mark.parametrize(
    ("header", "names"),
    [
        ("label,probability", ("0", "1")),
        ("label,probability", ("no", "yes")),
        ("label,p_0,p_1", ("0", "1")),
        ("label,p_no,p_yes", ("no", "yes")),
    ],
)
def test_the_class_names_in_the_other_order_turn_the_scores_round(tmp_path, header, names):
    p, y = columns()
    scores = [p] if header.count(",") == 1 else [(1 - p).round(3), p]
    path = written(tmp_path, header, np.array(names)[y], *scores)
    area, message = found_in(path)
    assert area < 0.25
    first, second = names
    assert f"are they of '{first}', not of '{second}'?" in message
    assert f"(--class-names {second},{first}, or class_names=['{second}', '{first}'])" in message
    turned, nothing = found_in(path, class_names=[second, first])
    assert turned == pytest.approx(1 - area)
    assert nothing == ""


def test_a_header_that_names_the_class_is_corrected_in_the_header(tmp_path):
    p, y = columns()
    words = np.array(["no", "yes"])[y]
    area, message = found_in(written(tmp_path, "label,p_yes", words, p))
    assert "where the header names the class of a column" in message
    turned, nothing = found_in(written(tmp_path, "label,p_no", words, p))
    assert turned == pytest.approx(1 - area)
    assert nothing == ""


def test_labels_that_are_numbers_of_columns_are_corrected(tmp_path):
    p, y = columns()
    area, message = found_in(written(tmp_path, "label,a,b", y, (1 - p).round(3), p))
    assert "labels are numbers of columns, correct those" in message
    turned, nothing = found_in(written(tmp_path, "label,a,b", 1 - y, (1 - p).round(3), p))
    assert turned == pytest.approx(1 - area)
    assert nothing == ""


def test_arrays_take_the_same_class_names():
    p, y = columns()
    before = calviz.audit(y, p, metrics=["auroc"], ci=False)
    after = calviz.audit(y, p, metrics=["auroc"], ci=False, class_names=["1", "0"])
    assert "class_names=['1', '0']" in str(before)
    assert after["auroc"].value == pytest.approx(1 - before["auroc"].value)
    assert "reverse" not in str(after)


def test_names_that_no_option_can_take_are_not_put_into_one():
    p, y = columns()
    data = calviz.Predictions(probs=p, labels=y, class_names=("no, never", "yes"))
    (message,) = (f.message for f in findings_of(Sample(data, resamples=FEW)) if f.code == REVERSE)
    assert "name the classes in the other order; where" in message
    spaced = calviz.Predictions(probs=p, labels=y, class_names=("low risk", "yes"))
    (message,) = (
        f.message for f in findings_of(Sample(spaced, resamples=FEW)) if f.code == REVERSE
    )
    assert "(--class-names 'yes,low risk', or class_names=['yes', 'low risk'])" in message
