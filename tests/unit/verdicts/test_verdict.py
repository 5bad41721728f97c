"""The verdict, on samples whose true calibration is known."""

import re

import numpy as np
import pytest

import calviz
from calviz.sample.sample import Sample
from calviz.verdicts.evaluation import Verdict
from calviz.verdicts.sentence import judged
from tests.inputs.simulated import draw_labels


def confidence(n, off, *, seed=0, low=0.3, high=0.9):
    """Confidences spread evenly, and right with a probability that is `off` from them."""
    rng = np.random.default_rng(seed)
    score = rng.uniform(low, high, n)
    truth = score - (off(score) if callable(off) else off)
    return calviz.ConfidencePredictions(confidence=score, correct=rng.random(n) < truth)


def positive(n, off, **options):
    data = confidence(n, off, **options)
    return calviz.Predictions(probs=data.confidence, labels=data.correct)


def judge(data, reduction="top-label", **options) -> Verdict:
    return judged(Sample(data, reduction, **options))


def test_overconfident_by_ten_points():
    v = judge(confidence(8_000, 0.1))
    assert v.direction == "over"
    assert v.interval.low < 0.1 < v.interval.high
    assert v.interval.high - v.interval.low == pytest.approx(2 * 1.96 * 0.47 / 8_000**0.5, rel=0.15)
    pattern = (
        r"Overconfident by (9|10)\.\d points \(95 % CI \d+\.\d to \d+\.\d\) on 8,000 rows; "
        r"worst between 0\.\d\d and 0\.\d\d\."
    )
    assert re.fullmatch(pattern, v.sentence), v.sentence
    assert v.worst.gap > 0
    assert v.worst.where in v.sentence


def test_underconfident_counts_upwards():
    v = judge(confidence(8_000, -0.1))
    assert v.direction == "under"
    assert v.mcs < 0
    match = re.match(r"Underconfident by (\S+) points \(95 % CI (\S+) to (\S+)\)", v.sentence)
    value, low, high = map(float, match.groups())
    assert 0 < low < value < high
    assert value == pytest.approx(-100 * v.mcs, abs=0.06)
    assert v.worst.gap < 0


def test_slightly():
    v = judge(confidence(400_000, 0.005))
    assert v.direction == "over"
    assert v.sentence.startswith("Slightly overconfident, by 0.")


@pytest.mark.parametrize("seed", [0, 2, 3])
def test_calibrated(seed):
    v = judge(confidence(4_000, 0.0, seed=seed))
    assert v.direction == "calibrated"
    assert v.worst is None
    assert re.fullmatch(
        r"No miscalibration of the top label found on 4,000 rows: ECE is below \d\.\d+ points with 95 % confidence\.",
        v.sentence,
    )


@pytest.mark.slow
def test_a_calibrated_model_is_rarely_called_anything_else():
    calls = [judge(confidence(400, 0.0, seed=seed), resamples=300).direction for seed in range(120)]
    wrong = sum(direction not in ("calibrated", "undecided") for direction in calls)
    # At most 3 % of 120, plus three standard deviations.
    assert wrong <= 3.6 + 3 * (120 * 0.03 * 0.97) ** 0.5


def test_not_off_on_average_but_off_everywhere_else():
    v = judge(positive(4_000, lambda s: 0.5 * (s - 0.5), low=0.0, high=1.0), "positive")
    assert v.direction == "mixed"
    assert v.sentence.startswith("Not off on average (")
    assert "points too high between 0.9" in v.sentence
    assert "points too low between 0.0" in v.sentence
    # Half of 0.5 at either end, a quarter of a half-width on average.
    assert v.ece == pytest.approx(0.125, abs=0.02)


@pytest.mark.slow
def test_off_on_average_and_in_both_directions():
    v = judge(positive(9_000, lambda s: 0.5 * (s - 0.4), low=0.0, high=1.0), "positive")
    assert v.direction == "mixed"
    assert v.sentence.startswith("Forecasts too high by ")
    assert " on average (95 % CI " in v.sentence
    assert " too low between " in v.sentence


@pytest.mark.slow
@pytest.mark.parametrize(
    ("reduction", "start"),
    [
        ("positive", "Forecasts too high by 1"),
        ("class:spam", "Probabilities of 'spam' too high by 1"),
        ("top-label", "Overconfident by 1"),
    ],
)
def test_words_follow_the_reduction(reduction, start):
    data = positive(3_000, 0.15, low=0.55, high=1.0)
    data = calviz.Predictions(probs=data.probs, labels=data.labels, class_names=("ham", "spam"))
    assert judge(data, reduction).sentence.startswith(start)


def test_ranks_have_their_words():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet([3, 2, 1], 2_000)
    data = calviz.Predictions(probs=probs, labels=np.full(2_000, 2))
    for reduction, noun in (
        ("top-2", "Probabilities of the class"),
        ("within-top-2", "Sums of the 2"),
    ):
        v = judge(data, reduction)
        assert v.direction == "over"
        assert v.sentence.startswith(noun)


def test_numbers_are_those_of_the_evaluation():
    data = confidence(2_000, 0.05)
    v = judge(data, bins=10, seed=3)
    e = calviz.evaluate(data, ["mcs", "ece"], bins=10, ci=True, seed=3)
    assert v.mcs == pytest.approx(e["mcs"].value, abs=1e-15)
    assert v.interval == pytest.approx(e["mcs"].interval, abs=1e-15)
    assert v.ece == pytest.approx(e["ece"].value, abs=1e-15)
    assert v.noise_floor == e["ece"].noise_floor


def test_one_row_and_few_rows():
    assert judge(confidence(1, 0.0)).sentence == "A single row says nothing about calibration."
    v = judge(confidence(29, 0.3))
    assert v.direction == "undecided"
    assert v.sentence.startswith("29 rows are too few for a verdict (at least 30): the mean confid")


def test_seeing_nothing_in_few_rows_is_not_being_calibrated():
    v = judge(confidence(60, 0.0))
    assert v.direction == "undecided"
    below = re.match(
        r"No miscalibration(?: of the top label)? found on 60 rows: ECE is below (\S+) points",
        v.sentence,
    )
    assert float(below[1]) > 10


@pytest.mark.parametrize(
    ("score", "correct", "direction"),
    [
        (1.0, True, "calibrated"),
        (1.0, False, "over"),
        (0.6, True, "under"),
        (0.5, None, "undecided"),
    ],
)
def test_all_scores_equal(score, correct, direction):
    hits = np.arange(40) % 2 == 0 if correct is None else np.full(40, correct)
    v = judge(calviz.ConfidencePredictions(confidence=np.full(40, score), correct=hits))
    assert v.direction == direction
    assert "nan" not in v.sentence
    assert ("CI" in v.sentence) == (v.interval is not None and direction in ("over", "under"))


@pytest.mark.parametrize("scheme", ["equal-width", "equal-mass", "sturges"])
def test_schemes(scheme):
    v = judge(confidence(5_000, 0.1), scheme=scheme, bins=7)
    assert v.direction == "over"
    assert v.worst is not None


def test_names_from_files_are_short():
    name = "x" * 5_000
    data = positive(500, 0.2, low=0.3, high=1.0)
    data = calviz.Predictions(probs=data.probs, labels=data.labels, class_names=("a", name))
    assert len(judge(data, f"class:{name}").sentence) < 250


def test_weighted_rows_without_an_error_speak_of_the_top_label_alone():
    rng = np.random.default_rng(3)
    probs = rng.dirichlet(np.ones(3), 400)
    labels = draw_labels(probs, rng)
    p = calviz.Predictions(probs=probs, labels=labels, weights=rng.uniform(0.5, 2, 400))
    verdict = calviz.verdict(p)
    assert verdict.direction in ("calibrated", "undecided")
    assert "No miscalibration of the top label found on 400 weighted rows" in verdict.sentence
    assert calviz.evaluate(p, ["ece"], findings=True)["ece"].available


def off_by_five_points(seed, groups=60, rows=10):
    """Probabilities that are 5 points too high; all rows of a cluster share most of their luck."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(groups), rows)
    true = rng.uniform(0.1, 0.85, cluster.size)
    luck = np.where(
        rng.random(cluster.size) < 0.9, rng.random(groups)[cluster], rng.random(cluster.size)
    )
    clusters = cluster if rows > 1 else None
    return calviz.Predictions(
        probs=true + 0.05, labels=(luck < true).astype(int), clusters=clusters
    )


@pytest.mark.slow
@pytest.mark.parametrize(("groups", "rows"), [(60, 10), (300, 1)])
def test_the_bound_of_the_ece_is_no_smaller_than_the_mcs_may_be(groups, rows):
    # An ECE is never below |MCS|.
    for seed in range(12):
        v = judge(off_by_five_points(seed, groups, rows), "positive")
        assert v.ece_below >= max(map(abs, v.interval))
