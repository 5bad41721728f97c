"""Scores in reverse, wrong labels, dependent rows."""

import re

import numpy as np
import pytest
from scipy import optimize
from scipy.special import expit
from scipy.stats import mannwhitneyu

import calviz
from benchmarks.claims import SIMULATIONS, every_simulation, too_few
from calviz.core.entry_specs import CHECKS
from calviz.data import ReadingOptions, read
from calviz.data.writing import write_predictions
from calviz.sample.binning import dependence
from calviz.sample.error_bars import CLASS_TEST
from calviz.sample.sample import Sample, dataset_of
from calviz.sample.slices import usual_slices
from calviz.verdicts.analysis import findings_of
from calviz.verdicts.joint_tests import LEVEL_IF_OFF, area_test
from calviz.verdicts.row_checks import label_errors, label_errors_found
from calviz.verdicts.sentence import explained, judged
from calviz.verdicts.watching import watched
from tests.inputs.simulated import draw_labels, softmax

# ---- Scores that rank in reverse: the test, its false alarms, the sentences, and what they advise, applied


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


@pytest.mark.slow
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


# ---- CAL021: wrong labels are suspected where labels are wrong, and not where the model is overconfident


def noisy(seed, *, k=10, scale=6.0, sharpen=1.0, wrong=0.0, n=2_000, dtype=np.float64, **own):
    """Calibrated softmax scores with logits times `sharpen`, and a share of the labels replaced by another class."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(n, k)) * scale
    labels = draw_labels(softmax(z), rng)
    flipped = rng.random(n) < wrong
    labels = np.where(flipped, (labels + rng.integers(1, k, n)) % k, labels)
    p = softmax(sharpen * z).astype(dtype)
    return Sample(calviz.Predictions(probs=p, labels=labels, **own), resamples=200)


def findings(seed, **how):
    return list(CHECKS["CAL021"].findings(noisy(seed, dtype=np.float32, **how)))


@pytest.mark.parametrize("k", [2, 3, 10])
@pytest.mark.parametrize("sharpen", [1.0, 1.5, 3.0])
def test_a_calibrated_or_overconfident_model_is_not_suspected(k, sharpen):
    assert sum(bool(findings(seed, k=k, sharpen=sharpen)) for seed in range(25)) <= 1


@pytest.mark.parametrize(
    ("k", "sharpen", "power"), [(2, 1.0, 0.9), (3, 1.0, 0.9), (10, 1.0, 0.9), (10, 1.5, 0.9)]
)
def test_two_wrong_labels_of_a_hundred_are_seen(k, sharpen, power):
    spoken = [bool(findings(seed, k=k, sharpen=sharpen, wrong=0.02)) for seed in range(25)]
    assert np.mean(spoken) >= power


def test_the_rows_are_named_and_the_least_probable_comes_first():
    names = np.array([f"image {i}" for i in range(2_000)])
    (finding,) = findings(0, wrong=0.05, ids=names)
    rows = findings(0, wrong=0.05)[0].message.split("first rows ")[1].rstrip(".").split(", ")
    assert ("first ids " + ", ".join(f"image {int(r.replace(',', '')) - 1}" for r in rows)) in (
        finding.message.replace("\n", "")
    )
    assert finding.message.startswith("The labels of ")


def test_a_row_is_named_by_its_number_of_the_file():
    data = noisy(0, k=3, wrong=0.05).data
    rows = [
        f"{a:.9f},{b:.9f},{1 - a - b:.9f},{y}"
        for (a, b, _), y in zip(data.probs, data.labels, strict=True)
    ]
    named = []
    for left_out in (0, 7):
        text = "\n".join(["a,b,c,label", *["0.5,,0.5,0"] * left_out, *rows])
        read_data = read(text.encode(), options=ReadingOptions(repair=("drop-missing",))).first
        (finding,) = CHECKS["CAL021"].findings(Sample(read_data))
        shown = finding.message.split("first rows ")[1].rstrip(".").split(", ")
        named.append([int(row.replace(",", "")) for row in shown])
    assert named[1] == [row + 7 for row in named[0]]
    of_labels = data.probs[np.arange(data.n), data.labels]
    assert named[0][0] - 1 == of_labels.argmin()


def test_a_confidence_alone_does_not_tell_wrong_labels_from_overconfidence():
    rng = np.random.default_rng(0)
    confidence = 1 - 10.0 ** rng.uniform(-8, -0.5, 4_000)
    right = (rng.random(4_000) < confidence) & (rng.random(4_000) > 0.02)
    data = calviz.ConfidencePredictions(confidence=confidence, correct=right)
    assert not list(CHECKS["CAL021"].findings(Sample(data)))


@pytest.mark.parametrize(("k", "sharpen"), [(2, 1.0), (5, 1.5), (3, 0.8)])
def test_the_gain_of_wrong_labels_is_at_most_that_beside_the_best_map(k, sharpen):
    """Against a general minimiser over a factor and an offset for each class, and a share of random labels."""
    data = noisy(k, k=k, scale=3.0, n=1_000, sharpen=sharpen, wrong=0.08).data
    logs, rows, y = np.log(data.probs), np.arange(data.n), data.labels

    def loss(x, share=0.0):
        q = softmax(x[:k] * logs + x[k:])[rows, y]
        return -np.log((1 - share) * q + share / k).sum()

    start = np.append(np.ones(k), np.zeros(k))
    alone = optimize.minimize(loss, start, method="BFGS")
    beside = optimize.minimize(
        lambda x: loss(x[1:], expit(x[0])), np.append(-3.0, alone.x), method="BFGS"
    )
    mapped = softmax(alone.x[:k] * logs + alone.x[k:])[rows, y]
    share = optimize.minimize_scalar(
        lambda e: -np.log((1 - e) * mapped + e / k).sum(), bounds=(0, 1), method="bounded"
    )
    found = label_errors(data)
    assert found.of_map == pytest.approx(loss(start) - alone.fun, abs=0.01)
    assert found.of_labels == pytest.approx(alone.fun - share.fun, abs=0.01)
    assert 0 < found.of_labels <= alone.fun - beside.fun + 0.01


def of_log_odds(z, truth, rng, wrong=0.0, **own):
    """Two classes with these log-odds, rounded as in a file, whose true log-odds are others; a share of the labels is wrong."""
    labels = (rng.random(z.size) < expit(truth)) ^ (rng.random(z.size) < wrong)
    data = calviz.Predictions(probs=expit(z).round(5), labels=labels, **own)
    return Sample(data, resamples=200)


@pytest.mark.parametrize("seed", range(3))
def test_some_rows_that_are_too_low_are_not_called_wrong_labels(seed):
    rng = np.random.default_rng(seed)
    truth = rng.normal(-1.6, 0.9, 16_000)
    sample = of_log_odds(truth - (rng.random(truth.size) < 0.086), truth, rng)
    assert not list(CHECKS["CAL021"].findings(sample))
    assert "labels" not in explained(sample, judged(sample))[-1]


@pytest.mark.parametrize("seed", range(3))
def test_a_slice_that_is_off_is_not_called_wrong_labels(seed):
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 3, 16_000)
    site = rng.integers(0, 10, z.size)
    sample = of_log_odds(z, z / np.where(site == 0, 4, 1), rng, groups={"site": site})
    assert label_errors(sample.data).shown
    assert label_errors_found(sample) is None


def test_wrong_labels_are_told_where_a_slice_is_off_too():
    rng = np.random.default_rng(0)
    z = rng.normal(0, 3, 16_000)
    site = rng.integers(0, 10, z.size)
    sample = of_log_odds(z + 2 * (site == 0), z, rng, wrong=0.05, groups={"site": site})
    # Wrong labels make the other rows off, too.
    assert re.fullmatch(
        r"Unlike the rest: site = 0 \(about 2\d\.\d points too high\); other rows: off in places",
        usual_slices(sample).headline,
    )
    assert label_errors_found(sample) is not None


def test_what_is_said_of_wrong_labels():
    sample = noisy(4, k=2, scale=4.0, n=8_000, wrong=0.05)
    (finding,) = CHECKS["CAL021"].findings(sample)
    assert re.match(
        r"The labels of \d+ rows are of a class to which the model gives 1 % or less, where calibrated probabilities would allow "
        r"[\d.]+, and beta calibration does not explain them \(log-likelihood [\d.]+ less than with wrong labels too\): "
        r"some labels may be wrong, or the model is too sure there; first rows ",
        finding.message,
    )
    assert finding.short.startswith(
        "Some labels may be wrong, or the model is too sure there; first rows "
    )
    *_, to_do = explained(sample, judged(sample))
    assert to_do.startswith("Before anybody acts on these probabilities, correct them")
    assert to_do.endswith("some may be wrong, or it is too sure there.")


@pytest.mark.parametrize("own", ["weights", "clusters"])
def test_weighted_or_clustered_rows_are_not_compared(own):
    column = {own: np.random.default_rng(0).integers(1, 40, 2_000)}
    sample = noisy(0, k=3, scale=6.0, n=2_000, wrong=0.05, **column)
    assert label_errors_found(sample) is None
    assert "labels" not in explained(sample, judged(sample))[-1]


@pytest.mark.parametrize(
    "said",
    [lambda z: 1.7 * z - 2, lambda z: np.where(z > 0, 2 * z, 0.8 * z), lambda z: 1.5 * z + 1],
    ids=["slope and offset", "beta", "offset"],
)
def test_right_labels_of_two_classes_are_not_suspected_where_a_curve_explains_the_rows(said):
    z = np.random.default_rng(5).normal(-1, 1.5, 10_000)
    y = (np.random.default_rng(6).random(z.size) < expit(z)).astype(int)
    p = expit(said(z))
    assert (
        label_errors_found(Sample(calviz.Predictions(probs=np.stack([1 - p, p], axis=1), labels=y)))
        is None
    )


def test_an_overconfident_model_is_to_be_corrected():
    sample = noisy(0, k=5, scale=3.0, n=2_000, sharpen=1.5)
    assert label_errors_found(sample) is None
    assert "correct them" in explained(sample, judged(sample))[-1]


@pytest.mark.slow
def test_rates_of_the_simulations():
    every_simulation()
    there = "wrong-labels: named, 3 % wrong labels, calibrated, 5 classes, 2,000 rows"
    assert SIMULATIONS[there].keeps_to(20, seed=7, at_least=too_few(0.9, 20))
    for case in ("slope 1.7 about -3, a fifth events", "an offset for each class, 5 classes"):
        none = SIMULATIONS[f"wrong-labels: named where there are none, {case}, 20,000 rows"]
        assert not np.any(none.outcomes(10, seed=7))


# ---- CAL022: rows that depend on each other, and rows that only share a column


def drawn(probs, uniform):
    order = np.argsort(-probs, axis=1)
    upto = np.cumsum(np.take_along_axis(probs, order, axis=1), axis=1)[:, :-1]
    return order[np.arange(len(probs)), (uniform[:, None] > upto).sum(axis=1)]


def clustered(seed, clusters=100, size=30, dependent=1.0):
    """Rows of a cluster take their labels from one uniform number, a share `dependent` of them."""
    rng = np.random.default_rng(seed)
    n = clusters * size
    probs = rng.dirichlet(np.full(3, 0.5), n)
    uniform = np.repeat(rng.random(clusters), size)
    uniform = np.where(rng.random(n) < dependent, uniform, rng.random(n))
    group = np.repeat(np.arange(clusters), size)
    return probs, drawn(probs, uniform), group


def findings_of_dependent_rows(probs, labels, **own):
    return list(
        CHECKS["CAL022"].findings(Sample(calviz.Predictions(probs=probs, labels=labels, **own)))
    )


@pytest.mark.slow
def test_columns_that_have_nothing_to_do_with_it_are_left_alone():
    spoken = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        probs = rng.dirichlet(np.full(4, 0.05 if seed % 2 else 0.5), 600)
        labels = drawn(probs, rng.random(600))
        sharp = np.maximum(probs, 1e-9) ** (
            2 if seed % 3 == 0 else 1
        )  # miscalibrated, but independent
        spoken += bool(
            findings_of_dependent_rows(
                sharp / sharp.sum(1, keepdims=True),
                labels,
                groups={"patient": rng.integers(0, 60 if seed % 4 else 300, 600)},
                ids=rng.integers(0, 400, 600),
            )
        )
    assert spoken <= 2


@pytest.mark.parametrize(
    ("dependent", "size", "power"), [(1.0, 30, 1.0), (0.5, 30, 1.0), (1.0, 2, 0.9)]
)
@pytest.mark.parametrize("kind", ["group", "id"])
def test_dependence_within_a_column_is_seen(dependent, size, power, kind):
    spoken = []
    for seed in range(10):
        probs, labels, group = clustered(seed, 3_000 // size if size > 2 else 500, size, dependent)
        own = {"groups": {"patient": group}} if kind == "group" else {"ids": group}
        spoken += findings_of_dependent_rows(probs, labels, **own)
    assert len(spoken) >= 10 * power
    assert ("with the same id" if kind == "id" else "with the same 'patient'") in spoken[0].message


def test_copies_are_seen_without_any_column_and_the_factor_is_right():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.full(3, 0.5), 100)
    labels = drawn(probs, rng.random(100))
    (finding,) = findings_of_dependent_rows(np.repeat(probs, 30, axis=0), np.repeat(labels, 30))
    assert "with exactly the same scores" in finding.message
    # Thirty copies: the variance of a mean is thirty times that of independent rows.
    factor = float(finding.message.split("factor of about ")[1].split()[0])
    assert factor == pytest.approx(30**0.5, rel=0.03)


def test_ties_and_leaves_are_no_copies():
    rng = np.random.default_rng(0)
    score = np.round(rng.random(3_000), 2)
    assert not findings_of_dependent_rows(score, (rng.random(3_000) < score).astype(int))
    # Leaves of an overfitted tree: every score is off by itself.
    truth = rng.random(200)
    leaf = rng.integers(0, 200, 4_000)
    score = np.clip(truth + rng.normal(0, 0.15, 200), 0.01, 0.99)[leaf]
    assert not findings_of_dependent_rows(score, (rng.random(4_000) < truth[leaf]).astype(int))


def test_the_design_effect_of_equal_correlation_by_hand():
    # Residuals that are the same within pairs: ICC 1, and 1 + (2 - 1) 1 = 2.
    rng = np.random.default_rng(0)
    rate = np.full(2_000, 0.5)
    residual = np.repeat(np.where(rng.random(1_000) < 0.5, 0.5, -0.5), 2)
    result = dependence(residual, rate, np.repeat(np.arange(1_000), 2))
    assert result.icc == pytest.approx(1.0)
    assert result.design_effect == pytest.approx(2.0)
    assert result.p_value < 1e-9


def of_days(*, together, change=0.0, weekday=0.0):
    """250 days of 40 rows, of which a share hit or miss together; points too low on the last 100 days, and on Mondays."""
    rng = np.random.default_rng(5)
    score, day = rng.beta(2, 3, 10_000), np.repeat(np.arange(250), 40)
    u = np.where(rng.random(10_000) < together, rng.random(250)[day], rng.random(10_000))
    true = score + change * (day >= 150) + weekday * (day % 7 == 0)
    times = np.datetime64("2024-01-01") + day
    return calviz.Predictions(
        probs=np.column_stack([1 - score, score]), labels=(u < true).astype(int), times=times
    )


@pytest.mark.slow
def test_rows_of_one_day_that_are_alike_count_together(tmp_path):
    dependent = of_days(together=1 / 3)
    result = calviz.evaluate(dependent)
    assert "in 250 days" in result.verdict.sentence
    assert result.verdict.direction == "calibrated"
    found = [f.message for f in result.findings if f.code == "CAL022"]
    assert len(found) == 1
    assert found[0].startswith("Rows of one day of 'time' are not independent: over 250 clusters")
    # It is found once, also for comparisons, which divide the rows as without, and no file gets the days.
    how = {"methods": ["platt"], "fit_fraction": 0.5, "metrics": ["nll"], "resamples": 100}
    assert "clusters" not in dependent.column_names
    single = Sample.of(dependent, clusters="").data
    assert "clusters" not in single.column_names
    assert (single.clusters, dataset_of(single)) == (None, single)
    assert dataset_of(dependent) is dataset_of(dependent)
    days, rows = (calviz.compare(d, **how)["platt"].metrics["nll"] for d in (dependent, single))
    assert days.value == rows.value
    assert np.ptp(days.interval) > 1.2 * np.ptp(rows.interval)
    write_predictions(dataset_of(dependent), tmp_path / "out.csv")
    assert "day of time" not in (tmp_path / "out.csv").read_text().splitlines()[0]
    # A change beside it is dated.
    state = watched(Sample.of(of_days(together=1 / 3, change=0.2)))
    assert state.change.between[0] <= "2024-05-30" <= state.change.between[1]
    assert state.condition == ", if days are independent of each other"
    # What a change or a weekday makes alike is told from that.
    for data, words in (
        (of_days(together=0.0), "No miscalibration found"),
        (of_days(together=0.0, change=0.1), "Since about 2024-0"),
        (of_days(together=0.0, weekday=0.1), "where weekday of time = Monday"),
    ):
        assert Sample.of(data).data is data
        assert words in calviz.verdict(data).headline
