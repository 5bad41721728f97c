"""The verdict."""

import re
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binom

import calviz
from benchmarks.claims import SIMULATIONS, every_simulation, too_few, too_many
from calviz.core.words import decimal, points, share_decimals
from calviz.figures.hundred_squares import HundredSquares
from calviz.figures.reliability import Reliability
from calviz.report.content import Subject
from calviz.report.document import compose
from calviz.sample.sample import Sample
from calviz.verdicts.analysis import findings_of
from calviz.verdicts.evaluation import Verdict
from calviz.verdicts.joint_tests import collect_evidence, joint
from calviz.verdicts.row_checks import FEW_COLUMNS, row_hashes
from calviz.verdicts.sentence import _on_average, explained, judged, seen_by_other
from tests.inputs.simulated import draw_labels

# ---- The verdict, on samples whose true calibration is known


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
        r"Overconfident by (9|10)\.\d points \(95 % CI \d+\.\d to \d+\.\d\) on 8,000 rows, "
        r"furthest off on new rows between 0\.\d\d and 0\.\d\d\."
    )
    assert re.fullmatch(pattern, v.sentence), v.sentence
    assert v.worst.gap > 0
    assert v.worst.where in v.sentence


def test_one_bin_is_called_the_worst():
    # Too high on average, by 7.5 points in most rows; 60 rows are further off, in the other direction.
    bins = {0.9: (3_300, 4_000), 0.5: (360, 800), 0.35: (40, 60)}
    right = np.concatenate([np.arange(rows) < hits for hits, rows in bins.values()])
    scores = np.repeat(list(bins), [rows for _, rows in bins.values()])
    sample = Sample(calviz.ConfidencePredictions(confidence=scores, correct=right))
    found = next(f for f in findings_of(sample) if f.code == "CAL002")
    assert found.short.startswith(
        "Furthest off on new rows between 0.33 and 0.40: about 22.9 points too low"
    )
    verdict = judged(sample)
    assert verdict.direction == "over"
    assert verdict.sentence.endswith(
        "on 4,860 rows, but about 22.9 points too low between 0.33 and 0.40."
    )
    assert explained(sample, verdict)[2].startswith(
        "On new rows it will be furthest off where it says between 33 and 40 percent"
    )


def test_the_side_on_which_scores_are_off_the_other_way_is_named_too():
    # Log-odds 1.7 times too spread about their mean: too high on average, too low in four rows of ten.
    rng = np.random.default_rng(0)
    truth = rng.normal(-1.6, 0.9, 16_000)
    spread = -1.6 + 1.7 * (truth + 1.6)
    labels = rng.random(truth.size) < expit(truth)
    for turned in (False, True):
        probs = expit(spread if not turned else -spread)
        data = calviz.Predictions(probs=probs, labels=labels != turned)
        sentence = judged(Sample(data)).sentence
        way, other = ("low", "high") if turned else ("high", "low")
        assert re.match(
            rf"Forecasts too {way} by \d\.\d points .* on 16,000 rows, furthest off on new rows between 0\.\d\d and 0\.\d\d, "
            rf"but about \d\.\d points too {other} between \d\.\d\d and \d\.\d\d\.$",
            sentence,
        ), sentence


def test_a_slight_error_of_the_other_side_is_left_out():
    # A third of the rows is 10 points too high, the others are 0.7 points too low.
    scores, hits = np.repeat([0.8, 0.05], [20_000, 40_000]), np.zeros(60_000, dtype=bool)
    hits[:14_000] = hits[20_000:22_280] = True
    sample = Sample(calviz.Predictions(probs=scores, labels=hits))
    assert sample.once(collect_evidence).too_low.slight
    assert judged(sample).sentence.endswith(
        "on 60,000 rows, furthest off on new rows between 0.73 and 0.80."
    )


def test_underconfident_counts_upwards():
    v = judge(confidence(8_000, -0.1))
    assert v.direction == "under"
    assert v.mcs < 0
    match = re.match(r"Underconfident by (\S+) points \(95 % CI (\S+) to (\S+)\)", v.sentence)
    value, low, high = map(float, match.groups())
    assert 0 < low < value < high
    assert value == pytest.approx(-100 * v.mcs, abs=0.06)
    assert v.worst.gap < 0


def test_less_than_a_point():
    v = judge(confidence(400_000, 0.005))
    assert v.direction == "over"
    assert v.sentence.startswith("Overconfident by 0.")


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
    assert v.sentence.startswith("Not shown to be off on average (")
    assert "points too high between 0.9" in v.sentence
    assert "points too low between 0.0" in v.sentence
    # Half of 0.5 at either end, a quarter of a half-width on average.
    assert v.ece == pytest.approx(0.125, abs=0.02)


def test_an_interval_that_excludes_0_is_not_called_no_error_on_average():
    # Logits 1.3 times too large, and rare events, so that the mean is off too: by 3 points, in the interval but not in the tests.
    rng = np.random.default_rng(7)
    e = rng.normal(-1, 1.5, 800)
    labels = (rng.random(800) < 1 / (1 + np.exp(-e))).astype(int)
    data = calviz.Predictions(probs=1 / (1 + np.exp(-1.3 * e)), labels=labels)
    v = calviz.verdict(data, resamples=300)
    assert v.direction == "off"
    assert v.interval.high < 0
    assert v.sentence.startswith("Perhaps off on average (")
    assert " on 800 rows, and too low in places: " in v.sentence
    second = calviz.explain(data, resamples=300)[1]
    assert second.startswith("On average that may be chance, but in detail ")
    # The test of the mean alone has to agree.
    evidence = collect_evidence(Sample(data, resamples=300))
    assert evidence.interval_excludes_0
    assert _on_average(evidence) == ("perhaps", "and")
    weaker = tuple(replace(test, p_value=0.06) for test in evidence.tests)
    assert _on_average(replace(evidence, tests=weaker)) == ("not shown to be", "but")


@pytest.mark.slow
def test_off_on_average_is_rarely_said_where_scores_are_off_in_places_only():
    every_simulation()
    said = "off-on-average: off, or perhaps off, on average, said of files that are off in places"
    one = SIMULATIONS[f"{said}, off in places, 2 classes, 1,000 rows"]
    assert one.keeps_to(30, seed=5, at_most=too_many(0.05, 30))
    said = "off-on-average: the same of files that are off by 3 points on average"
    case = "off in places and by 3 points, 2 classes, 4,000 rows"
    one = SIMULATIONS[f"{said}, {case}"]
    assert one.keeps_to(10, seed=5, at_least=too_few(0.95, 10))


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


# ---- Two shares in a sentence differ by what the sentence says is between them


#: A mean score and a share of hits, and after or before them what lies between.
AFTER = r"([\d.]+) % but [a-z ]+?([\d.]+) %.*?(?:difference of |, )[−]?([\d.]+) points"
BEFORE = r"by ([\d.]+) points: mean confidence ([\d.]+) %, accuracy ([\d.]+) %"


@pytest.mark.parametrize("written", [1, 2])
def test_shares_as_written_differ_by_the_gap_as_written(written):
    rng = np.random.default_rng(0)
    wrong = 0
    for score, hits in rng.uniform(0, 1, (5_000, 2)).tolist():
        d = share_decimals(score, hits, written)
        apart = abs(Decimal(f"{100 * score:.{d}f}") - Decimal(f"{100 * hits:.{d}f}"))
        gap = Decimal(f"{abs(100 * (score - hits)):.{written}f}")
        # Half a digit may be rounded either way.
        wrong += abs(apart - gap) > Decimal(5).scaleb(-written - 1)
    # Where a gap is next to half a digit three decimals may not do; with one decimal it is one in four.
    assert wrong <= (0.01 if written == 1 else 0.05) * 5_000


def test_a_share_has_the_same_digits_in_percent_as_in_a_fraction():
    # Half a digit, which rounds either way once it has been multiplied by 100.
    for hits in range(1, 4_000, 2):
        share = hits / 4_000
        assert round(float(points(share, 2)) / 100, 4) == float(decimal(share, 4)), hits


def files():
    rng = np.random.default_rng(1)
    for seed in range(6):
        n = int(rng.integers(800, 4_000))
        p = rng.beta(0.6, 0.8, n)
        y = (rng.random(n) < p ** rng.uniform(0.6, 1.6)).astype(int)
        site = np.where(rng.random(n) < 0.5, "a", "b")
        yield calviz.Predictions(probs=p, labels=y, groups={"site": site})
        z = rng.normal(size=(n, 3))
        label = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
        sharp = np.exp(z * rng.uniform(1.2, 2))
        probs = sharp / sharp.sum(axis=1, keepdims=True)
        yield calviz.Predictions(probs=probs, labels=label, name=f"{seed}")


@pytest.mark.slow
def test_sentences_do_the_sum():
    checked = set()
    for data in files():
        sample = Sample(data)
        result = calviz.audit(sample)
        messages = [(f.code, f.message) for f in result.findings]
        messages.append(("other view", result.verdict.other_view or ""))
        for code, text in messages:
            text = text.replace("\u00a0", " ")
            for a, b, gap in re.findall(AFTER, text):
                checked.add(code)
                assert f"{abs(float(a) - float(b)):.{len(gap.partition('.')[2])}f}" == gap, text
            for gap, a, b in re.findall(BEFORE, text):
                checked.add(code)
                assert f"{abs(float(a) - float(b)):.1f}" == gap, text
        head = next(m for c, m in messages if c == "CAL001").replace("\u00a0", " ")
        if "(seen from" not in head:
            explained = calviz.explain(sample)[0]
            pair = re.search(r"([\d.]+) % against [a-z ]+?([\d.]+) %", head).groups()
            assert all(f"{share} percent" in explained for share in pair), (head, explained)
    assert {"CAL020", "other view"} <= checked


def far_apart_where_rounded():
    """Rows whose mean confidence is 84.44 % and whose accuracy is 73.06 %: with one decimal they would be 11.3 points apart, not 11.4."""
    n = 10_000
    hit = np.arange(n) < 7_306
    scores = np.full(n, 0.8444)
    return calviz.Predictions(probs=scores, labels=hit.astype(int))


@pytest.mark.slow
def test_a_diagram_its_report_and_its_squares_do_the_sum():
    sample = Sample(far_apart_where_rounded(), resamples=50)
    diagram = Reliability.compute(sample)
    verdict = calviz.verdict(sample)
    for text in (diagram.describe(), HundredSquares.compute(verdict).describe()):
        assert "84.44 %" in text
        assert "73.06 %" in text
    report = compose(Subject(sample), date="").html()
    assert "The mean forecast is 84.44" in report
    assert re.search(r"<td[^>]*>84\.44.%</td>\s*<td[^>]*>73\.06.%</td>", report)
    assert re.search(r"<td[^>]*>0\.8444</td>\s*<td[^>]*>0\.7306</td>", report)
    drawn = diagram.plot()
    label = next(a.text for a in drawn.layout.annotations if a.text and "Frequency" in a.text)
    assert "84.44 %" in label
    assert "73.06 %" in label
    hover = next(t.hovertext for t in drawn.data if t.hovertext is not None)[0]
    assert "84.44 %" in hover
    assert "73.06 %" in hover
    assert "Gap 11.4 points" in hover


# ---- Equal rows have equal numbers, and others do not; of few columns and of many


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_hashes(dtype):
    rng = np.random.default_rng(0)
    grid = rng.integers(0, 17, size=(20_000, 4)).astype(dtype) / 16  # short floats: few bits differ
    hashes = row_hashes(grid)
    assert np.unique(hashes).size == np.unique(grid, axis=0).shape[0]
    np.testing.assert_array_equal(row_hashes(grid[::-1]), hashes[::-1])
    np.testing.assert_array_equal(row_hashes(np.asfortranarray(grid)), hashes)
    swapped = row_hashes(grid[:, ::-1])
    assert (swapped == hashes).mean() < 0.02  # the order of the columns matters


@pytest.mark.parametrize("columns", [2, FEW_COLUMNS, FEW_COLUMNS + 1])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_equal_rows_are_those_of_unique(columns, kind):
    rows = np.random.default_rng(columns).integers(3, size=(500, columns)).astype(kind) / 2
    codes = np.unique(rows, axis=0, return_inverse=True)[1].ravel()
    hashed = np.unique(row_hashes(rows), return_inverse=True)[1]
    # One to one.
    assert np.unique(np.column_stack([codes, hashed]), axis=0).shape[0] == codes.max() + 1
    assert hashed.max() == codes.max()


# ---- The statistics that the verdict tests are those of the metrics, whichever way they are computed from the steps


def two_classes():
    """Scores on a grid of 1/40, so that many are 1/2 and most have a score that mirrors them."""
    rng = np.random.default_rng(0)
    score = rng.integers(1, 40, 400) / 40
    return calviz.Predictions(probs=score, labels=(rng.random(400) < score**2).astype(int))


@pytest.mark.parametrize("reduction", ["positive", "top-label", "class:0"])
def test_of_two_classes_both_views_are_those_of_the_metrics(reduction):
    data = two_classes()
    tests = joint(Sample(data, reduction, resamples=20)).tests
    assert len({test.reduction for test in tests if test.reduction}) == 2
    seen = {test.key for test in tests}
    assert seen == {"mcs", "ece", "ks", "brier_miscalibration", "brier", "nll"}
    for test in tests:
        wanted = calviz.evaluate(data, [test.key], reduction=test.reduction or reduction)
        assert test.value == pytest.approx(wanted[test.key].value, abs=1e-9), test


def test_of_more_classes_too():
    rng = np.random.default_rng(1)
    data = calviz.Predictions(probs=rng.dirichlet([1, 1, 1], 300), labels=rng.integers(3, size=300))
    tests = joint(Sample(data, "top-label", resamples=20)).tests
    assert "spiegelhalter_z" in {test.key for test in tests}
    for test in tests:
        wanted = calviz.evaluate(data, [test.key], reduction="top-label")[test.key].value
        assert test.value == pytest.approx(wanted, abs=1e-6), test


# ---- What the other view of two classes shows: said where one of the two is off, with numbers that hold


def forecasts(n, seed, truth=lambda z: z):
    """Scores expit(z), z ~ N(0, 1.5), of an event that has the probability expit(truth(z))."""
    rng = np.random.default_rng([seed, n])
    z = rng.normal(0, 1.5, n)
    return calviz.Predictions(probs=expit(z), labels=rng.random(n) < expit(truth(z)), name="x")


SHIFTED = forecasts(3_000, 1, lambda z: z - 0.35)
SHARP = forecasts(3_000, 1, lambda z: z / 1.5)


def means(data):
    """Mean forecast, frequency, mean confidence, accuracy, in percent."""
    p, y = data.probs[:, 1], data.labels
    values = (p.mean(), y.mean(), np.maximum(p, 1 - p).mean(), ((p > 0.5) == y).mean())
    return [f"{100 * v:.2f} %" for v in values]


def quick(data):
    """With as many resamples as a simulation can afford."""
    return seen_by_other(Sample(data, "positive", resamples=199))


def test_of_a_rare_event_the_top_label_is_not_spoken_of():
    """It has nearly the same rows, as 1 less the probability of the event."""
    rng = np.random.default_rng(3)
    e = rng.normal(-3.4, 1.2, 12_000)
    hits = rng.random(e.size) < expit(e + 0.4)
    sample = Sample(calviz.Predictions(probs=expit(e), labels=hits), resamples=199)
    verdict = calviz.verdict(sample)
    assert verdict.reduction == "positive"
    assert verdict.other_view is None
    # A bump that the top label's large bin shows too.
    p = expit(rng.normal(-3.75, 1.2, 12_000))
    hits = rng.random(p.size) < np.where((p > 0.02) & (p < 0.04), 1.6 * p, p)
    sample = Sample(calviz.Predictions(probs=p, labels=hits), resamples=199)
    assert calviz.verdict(sample).reduction == "positive"


@pytest.mark.slow
def test_the_top_label_hides_forecasts_that_are_too_high():
    forecast, frequency, confidence, accuracy = means(SHIFTED)
    other_view = calviz.verdict(SHIFTED).other_view
    assert other_view.startswith(
        "Seen by the top label, these 3,000 rows do not show it: mean confidence "
    )
    assert f"mean confidence {confidence}, accuracy {accuracy}, ECE" in other_view
    assert other_view.endswith("Errors above and below a score of 1/2 cancel there.")
    # Asked for the top label, the verdict speaks of the positive class, and this of the top label.
    assert calviz.verdict(SHIFTED, reduction="top-label").other_view == other_view
    gap = float(forecast.split()[0]) - float(frequency.split()[0])
    verdict = calviz.verdict(SHIFTED, reduction="top-label")
    assert f"too high by {gap:.1f} points" in verdict.sentence


@pytest.mark.slow
def test_the_mean_of_the_positive_class_hides_overconfidence():
    _, _, confidence, accuracy = means(SHARP)
    other_view = calviz.verdict(SHARP).other_view
    assert "the predictions are overconfident by " in other_view
    assert other_view.endswith(f"mean confidence {confidence}, accuracy {accuracy}.")
    assert (
        "is not shown to be off on average, but in places"
        in calviz.verdict(SHARP, reduction="top-label").other_view
    )


@pytest.mark.slow
def test_nothing_where_there_is_no_other_view_or_it_shows_the_same():
    three = calviz.Predictions(probs=np.full((50, 3), 1 / 3), labels=[0, 0, 0, 0, 1] * 10)
    assert calviz.verdict(three).other_view is None
    assert calviz.verdict(SHIFTED, reduction="class:0").other_view is None
    assert calviz.verdict(SHIFTED.take(np.arange(20))).other_view is None
    # All scores above 1/2: the top label is the positive class.
    high = calviz.Predictions(probs=np.full(500, 0.9), labels=[0, 1] * 250)
    assert calviz.verdict(high).other_view is None
    only = calviz.ConfidencePredictions(confidence=[0.9] * 50, correct=[False] * 50)
    assert calviz.verdict(only).other_view is None


@pytest.mark.slow
@pytest.mark.parametrize(("n", "runs"), [(100, 60), (1_000, 40)])
def test_a_calibrated_file_gets_it_in_three_of_a_hundred_samples_at_most(n, runs):
    alarms = sum(quick(forecasts(n, seed)) is not None for seed in range(runs))
    assert alarms <= binom.ppf(0.999, runs, 0.03)


@pytest.mark.slow
@pytest.mark.parametrize("truth", [lambda z: z - 0.35, lambda z: z / 1.5])
def test_it_is_said_where_it_matters(truth):
    assert sum(quick(forecasts(2_000, seed, truth)) is not None for seed in range(20)) >= 18
