"""Slices and grades."""

import json
import math
import re
from dataclasses import replace
from html import unescape

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import expit, logit

import calviz
from benchmarks.claims import SIMULATIONS, every_simulation, too_few, too_many
from benchmarks.claims.grades import CALIBRATED as CALIBRATED_OF_GRADES
from benchmarks.claims.grades import OFF
from benchmarks.claims.slices import (
    CALIBRATED,
    PAIR,
    REGION,
    all_off,
    of_classes,
    of_wards,
    one_region,
)
from calviz.comparison.advice import cautions_of, moved_words, still_off_words
from calviz.core.blocks import Factor
from calviz.core.entry_specs import RECALIBRATORS
from calviz.core.errors import PREDICTED, InputError, NotAvailable, OptionError
from calviz.core.events import BinaryEvents
from calviz.core.predictions import sliceable_columns, usual_columns
from calviz.core.words import p_value, points
from calviz.figures.reliability import Reliability
from calviz.figures.slice_gaps import SliceGaps, levels_of
from calviz.recalibrators.composition import SliceMap, slice_of
from calviz.sample.binning import bin_events, bin_intervals, bins_off, expected_share, furthest_off
from calviz.sample.cutoff_and_grades import (
    grade_columns,
    grades,
    has_grades,
    possible_grade_columns,
)
from calviz.sample.multicalibration import changed_slices
from calviz.sample.risk_tests import wrong_where_kept
from calviz.sample.sample import Sample, chosen_bins, rows_where, where_words
from calviz.sample.slice_results import Slices
from calviz.sample.slice_tests import LEVEL, p_against_calibrated, p_of_means, slice_sums
from calviz.sample.slices import USUAL_RATE, slices, usual_slices
from calviz.verdicts.sentence import judged

# ---- Slices: their sums by hand, what is called off, and what is left out


def predictions(score, hit, **groups):
    score = np.asarray(score, dtype=float)
    probs = np.column_stack([1 - score, score])
    return calviz.Predictions(probs=probs, labels=np.asarray(hit, dtype=int), groups=groups)


def simulated(n=4_000, seed=0):
    """Calibrated but for the rows of region b, whose events are 15 points rarer than said."""
    rng = np.random.default_rng(seed)
    score = rng.uniform(0.2, 0.8, n)
    region = rng.choice(list("abcd"), n)
    month = rng.choice(["1", "2", "3"], n)
    hit = rng.random(n) < score - 0.15 * (region == "b")
    return predictions(score, hit, region=region, month=month)


def test_the_numbers_of_a_slice_are_those_of_its_rows():
    data = predictions([0.9, 0.8, 0.3, 0.6], [1, 0, 0, 1], g=["x", "x", "y", "y"])
    tested = slices(data, reduction="positive", min_rows=2, bins=5)
    x = next(s for s in tested.slices if s.where == (("g", "x"),))
    assert x.rows == 2
    assert x.score == pytest.approx(0.85)
    assert x.hits == pytest.approx(0.5)
    assert x.gap == pytest.approx(0.35)
    # Of one hit among two rows, the exact interval is from 1 - sqrt(0.975) to sqrt(0.975).
    high = np.sqrt(0.975)
    assert x.interval == pytest.approx((0.85 - high, 0.85 - (1 - high)))
    # Announced with 0.9 and 0.8, at most one hit has the chance 1 - 0.72; the tail is doubled.
    assert x.p_value == pytest.approx(2 * 0.28, abs=0.02)
    # 0.9 is in (0.8, 1], 0.8 in (0.6, 0.8].
    assert x.ece == pytest.approx((0.1 + 0.8) / 2)
    assert x.ece_noise == pytest.approx(np.sqrt(2 / np.pi) * (0.3 + 0.4) / 2)


def test_the_kept_rows_of_a_slice_are_wrong_more_often_than_allowed():
    site = np.repeat(["a", "b", "c"], [200, 400, 49])
    wrong = np.concatenate([np.arange(200) < 60, np.arange(400) < 10, np.ones(49, bool)])
    kept = np.arange(649) >= 100  # of the wrong rows of site a, none is among these
    data = calviz.ConfidencePredictions(
        confidence=np.full(649, 0.9), correct=~wrong, groups={"site": site}
    )
    sample = Sample(data)
    # Site c has too few rows. Two intervals share 5 %.
    assert wrong_where_kept(sample, kept, 0.05) == ""
    low, high = stats.binomtest(60, 200).proportion_ci(0.975)
    said = wrong_where_kept(sample, np.ones(649, bool), 0.05)
    assert said == (
        "Where site = a, 30.0 % of 200 kept are wrong (95 % CI of all 2 slices together "
        f"{100 * low:.1f} % to {100 * high:.1f} %); of all kept, {100 * 119 / 649:.1f} %."
    )
    assert wrong_where_kept(sample, np.ones(649, bool), low + 1e-6) == ""
    assert wrong_where_kept(sample, np.ones(649, bool), low - 1e-6)
    clustered = replace(data, clusters=np.arange(649) // 10)
    assert wrong_where_kept(Sample(clustered), np.ones(649, bool), low - 1e-6) == ""
    assert wrong_where_kept(sample, np.zeros(649, bool), 0.05) == ""


def test_the_kept_rows_of_two_classes_are_looked_at_by_predicted_class():
    # All rows are sure; of those predicted as 1, half are wrong.
    score = np.repeat([0.02, 0.98], [900, 100])
    data = calviz.Predictions(probs=score, labels=np.repeat([0, 1, 0], [900, 50, 50]))
    said = wrong_where_kept(Sample.of(data), np.ones(1_000, bool), 0.06)
    assert said.startswith("Where predicted class = 1, 50.0 % of 100 kept are wrong")


def test_a_slice_is_measured_as_its_rows_alone():
    data = simulated()
    tested = slices(data, ["region"], reduction="positive", pairs=False)
    for s in tested.slices:
        alone = data.take(data.groups["region"].mask(s.where[0][1]))
        evaluation = calviz.evaluate(alone, ["mcs", "ece"], reduction="positive")
        assert s.gap == pytest.approx(evaluation["mcs"].value, abs=1e-12)
        assert s.ece == pytest.approx(evaluation["ece"].value, abs=1e-12)


def test_the_noise_of_a_slice_is_that_of_redrawn_labels():
    data = simulated(3_000)
    [s, *_] = slices(data, ["month"], reduction="positive", pairs=False).slices
    alone = data.take(data.groups["month"].mask(s.where[0][1]))
    floor = calviz.evaluate(alone, ["ece"], reduction="positive", noise_floor=True)[
        "ece"
    ].noise_floor
    assert s.ece_noise == pytest.approx(floor.mean, rel=0.05)


@pytest.mark.parametrize("against", ["calibrated", "rest"])
def test_the_region_that_is_off_is_found_and_no_other(against):
    tested = slices(simulated(), ["region"], reduction="positive", against=against)
    assert tested.slices[0].where == (("region", "b"),)
    assert tested.slices[0].gap == pytest.approx(0.15, abs=0.05)
    if against == "calibrated":
        assert [s.where for s in tested.off] == [(("region", "b"),)]


@pytest.mark.parametrize("scores", [(0.002, 0.03), (0.2, 0.8), (0.9, 1.0), (0.0, 1.0)])
def test_p_values_are_nearly_those_of_the_exact_distribution_and_no_smaller(scores):
    # The distribution of a sum of different Bernoulli draws, by convolution.
    score = np.random.default_rng(3).uniform(*scores, 80)
    chance = np.ones(1)
    for s in score:
        chance = np.convolve(chance, [1 - s, s])
    upper, lower = np.cumsum(chance[::-1])[::-1], np.cumsum(chance)
    exact = np.minimum(2 * np.minimum(upper, lower), 1)
    for hits in range(81):
        rows = BinaryEvents(score, np.arange(80) < hits), np.zeros(80, dtype=np.intp)
        (p,) = p_against_calibrated(slice_sums(*rows, 1), *rows)
        if exact[hits] > 1e-4:
            assert 0.85 * exact[hits] - 0.02 * (exact[hits] > 0.3) <= p <= 1.4 * exact[hits] + 1e-3
        else:
            assert p < 1e-3


def test_pairs_hold_the_rows_of_both():
    data = simulated()
    tested = slices(data, ["region", "month"], reduction="positive", min_rows=2)
    region, month = data.groups["region"].values(), data.groups["month"].values()
    pairs = [s for s in tested.slices if len(s.where) == 2]
    assert len(pairs) == 12
    for s in pairs:
        (_, r), (_, m) = s.where
        assert s.rows == ((region == r) & (month == m)).sum()


def test_false_discoveries_are_rare_for_a_calibrated_model():
    called = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        score = rng.uniform(0.1, 0.9, 3_000)
        group = rng.integers(0, 20, 3_000)
        data = predictions(score, rng.random(3_000) < score, g=group)
        called += bool(slices(data, reduction="positive").off)
    # With nothing to be found, the chance of calling anything at all is the rate, 5 %.
    assert called <= stats.binom.ppf(0.999, 60, 0.05)


@pytest.mark.parametrize("case", ["heavy weights, few rows", "weights fall with the scores"])
def test_hardly_any_file_of_a_calibrated_model_has_a_false_slice(case):
    files, setting = 40, CALIBRATED[case]
    samples = [setting.draw(np.random.default_rng([2, i])) for i in range(files)]
    assert sum(bool(usual_slices(s).off) for s in samples) <= files * too_many(0.01, files)


def test_slices_of_rare_events_differ_from_the_rest_as_rarely_as_they_should():
    # Events are too few to show their variance: with that of each slice, 93 % of such files had a false one.
    files, setting = 30, CALIBRATED["no weights, rare events"]
    samples = [setting.draw(np.random.default_rng([3, i])) for i in range(files)]
    false = sum(bool(slices(s, pairs=False, against="rest").off) for s in samples)
    assert false <= files * too_many(0.05, files)


def test_adjusted_p_values_are_those_of_benjamini_and_hochberg():
    tested = slices(simulated(), reduction="positive")
    by_p = sorted(tested.slices, key=lambda s: s.p_value)
    # Only those that are explained by others come later.
    assert [s for s in by_p if s.where not in tested.explained] == [*tested.own]
    p = np.array([s.p_value for s in by_p])
    m = p.size
    by_hand = [min(1, min(p[j] * m / (j + 1) for j in range(i, m))) for i in range(m)]
    assert [s.adjusted for s in by_p] == pytest.approx(by_hand)


def test_the_order_of_the_rows_does_not_matter():
    data = simulated(500)
    order = np.random.default_rng(1).permutation(500)
    one, other = (slices(d, min_rows=5).frame() for d in (data, data.take(order)))
    assert list(one["slice"]) == list(other["slice"])
    assert one["gap"].to_numpy() == pytest.approx(other["gap"].to_numpy())


def test_small_slices_and_names_are_left_out_and_said():
    data = simulated(1_100).with_columns(
        splits=None,
        groups={
            "few": Factor.of(["rare"] * 3 + ["usual"] * 1_097),
            "name": Factor.of(np.arange(1_100)),
        },
        ids=None,
    )
    tested = slices(data, ["few", "name"])
    assert tested.small == 1
    assert [s.where for s in tested.slices] == [(("few", "usual"),)]
    assert tested.skipped == ("name has a different value in each row",)


@pytest.mark.parametrize("weights", [None, np.r_[np.zeros(60), np.arange(1.0, 61)]])
def test_one_slice_has_no_rest_and_rows_without_weight_say_nothing(weights):
    rng = np.random.default_rng(0)
    score = rng.random(120)
    groups = {"one": np.zeros(120, int), "halves": np.arange(120) // 60}
    data = calviz.Predictions(
        probs=score, labels=(rng.random(120) < score).astype(int), groups=groups, weights=weights
    )
    how = {"pairs": False, "against": "rest", "reduction": "positive"}
    p = {s.name: s.p_value for s in slices(data, **how).slices}
    assert p["one = 0"] == 1
    assert set(p) == {"one = 0", "halves = 1"} | ({"halves = 0"} if weights is None else set())
    if weights is not None:
        assert p["halves = 1"] == 1


def test_certain_and_right_is_never_off():
    data = predictions([1.0, 1.0, 0.0, 0.0], [1, 1, 0, 0], g=["x", "x", "y", "y"])
    tested = slices(data, reduction="positive", min_rows=2)
    assert [s.p_value for s in tested.slices] == [1.0, 1.0]
    assert not tested.off


def test_certain_and_wrong_is_always_off():
    data = predictions([1.0, 1.0, 0.5, 0.5], [0, 0, 1, 0], g=["x", "x", "y", "y"])
    [first, _] = slices(data, reduction="positive", min_rows=2).slices
    assert first.where == (("g", "x"),)
    assert first.p_value == 0.0


def test_what_cannot_be_asked_is_one_sentence():
    data = simulated(100)
    with pytest.raises(OptionError, match="no group column 'colour'"):
        slices(data, ["colour"])
    with pytest.raises(OptionError, match="'min_rows' must be a whole number, 2 or more"):
        slices(data, min_rows=1)
    with pytest.raises(OptionError, match="'rate' must lie between 0 and 1"):
        slices(data, rate=1)
    with pytest.raises(OptionError, match="'against' must be"):
        slices(data, against="everybody")
    with pytest.raises(NotAvailable, match="no group column"):
        slices(predictions([0.5, 0.5], [0, 1]))


def test_the_picture_is_the_table():
    tested = slices(simulated(), reduction="positive")
    figure = SliceGaps.compute(tested, most=5)
    drawn = figure.plot()
    assert sorted(x for t in drawn.data for x in t.x) == pytest.approx(
        sorted(100 * figure.frame()["expected_gap"])
    )
    assert [*map(unescape, drawn.layout.yaxis.ticktext)] == [s.name for s in figure.shown]
    assert "region = b" in figure.answer()
    assert "points too high" in figure.answer()


@pytest.mark.parametrize("against", ["calibrated", "rest"])
def test_the_nearest_slice_is_said_without_alarm_or_size_where_none_is_off(against):
    rng = np.random.default_rng(2)
    score, region = rng.random(3_000), rng.choice(list("abcdef"), 3_000)
    found = slices(predictions(score, rng.random(3_000) < score, region=region), against=against)
    figure, first = SliceGaps.compute(found), found.slices[0]
    assert not found.off
    files = "calibrated files" if against == "calibrated" else "files where none differs"
    assert figure.beyond_headline == (
        f"Nearest to being called off: {found.place(first)[0]}, as near by chance in up to {100 * first.adjusted:.0f} % of {files} "
        f"(adjusted {p_value(first.adjusted)}; off at 0.05 or less)."
    )
    assert first.name not in figure.headline
    assert figure.answer() == f"{figure.headline}. {figure.beyond_headline}"
    # A change is said in its place.
    assert SliceGaps.compute(replace(found, changed=first.name)).beyond_headline == ""


def test_the_nearest_slice_is_a_remark_in_the_words_of_groups_which_leaves_the_verdict():
    rng = np.random.default_rng(6)
    score, region = rng.uniform(0.1, 0.9, 4_000), np.arange(4_000) % 10
    sure = predictions(score, rng.random(4_000) < score - 0.06 * (region == 0), region=region)
    evaluation = calviz.evaluate(sure)
    said = SliceGaps.compute(usual_slices(Sample(sure))).beyond_headline
    assert 0.005 < usual_slices(Sample(sure)).slices[0].adjusted <= 0.05
    (finding,) = (f for f in evaluation.findings if f.code == "CAL030")
    assert (finding.severity, finding.message) == ("info", said)
    assert said.startswith(finding.short + " (adjusted p = ")
    assert evaluation.verdict.direction == "calibrated"
    assert "region" not in evaluation.verdict.sentence


@pytest.mark.slow
def test_beside_a_finding_of_all_rows_a_near_slice_is_said_without_a_conclusion():
    """Of six branches one is further off than the others, and nearly but not clearly so by itself."""

    def branches(seed, apart):
        rng = np.random.default_rng(seed)
        branch, z = rng.choice(list("ABCDEF"), 3_000), rng.normal(-1.2, 1.2, 3_000)
        true = z - apart * (branch == "C") - 0.1
        hit = rng.random(3_000) < 1 / (1 + np.exp(-true))
        return predictions((1 / (1 + np.exp(-z))).round(4), hit, branch=branch)

    data = branches(11, 0.35)
    found = usual_slices(Sample(data))
    assert not found.off
    assert 0.005 < (p := found.slices[0].adjusted) <= 0.05
    evaluation = calviz.evaluate(data)
    assert evaluation.verdict.beyond_noise
    assert "branch" not in evaluation.verdict.sentence
    (finding,) = (f for f in evaluation.findings if f.code == "CAL030")
    said = "Not clear that all rows are off alike: branch = C is nearest to being off by itself"
    assert finding.message == f"{said} (adjusted {p_value(p)}; off at 0.005 or less)."
    assert (finding.severity, finding.short) == ("info", said)
    # A map of all rows is advised with it, a map by branch without.
    made = calviz.compare(data, ["temperature", "segments"])
    assert made.unclear == finding.message
    assert finding.message in cautions_of(made, made["temperature"])
    if made["segments"].recalibrator.needed_columns:
        assert finding.message not in cautions_of(made, made["segments"])
    # As near to off, but not unlike the others.
    alike = branches(21, 0.35)
    assert usual_slices(Sample(alike)).slices[0].adjusted <= 0.05
    assert "CAL030" not in {f.code for f in calviz.evaluate(alike).findings}


def test_without_slices_it_says_so():
    nothing = Slices("m", 10, 0.0, "top-label", "calibrated", 50, 0.05, 15, (), 3)
    figure = SliceGaps.compute(nothing)
    assert figure.answer() == "No slice has 50 rows or more."
    figure.plot(theme="dark", caption=True)


def test_names_from_the_file_are_not_markup():
    data = predictions([0.5] * 4, [0, 1, 0, 1], g=["<b>x</b>"] * 4)
    drawn = SliceGaps.compute(slices(data, min_rows=2)).plot()
    assert "<b>" not in drawn.layout.yaxis.ticktext[0]


def test_the_rows_of_a_slice_hold_all_its_values():
    data = predictions([0.5] * 4, [1, 0, 0, 1], g=["x", "x", "y", "y"], h=["1", "2", "1", "2"])
    assert rows_where(data, ()) is None
    assert rows_where(data, (("g", "y"),)).tolist() == [False, False, True, True]
    assert rows_where(data, (("g", "y"), ("h", "1"))).tolist() == [False, False, True, False]
    assert where_words((("g", "y"), ("h", "1"))) == "g = y, h = 1"
    with pytest.raises(OptionError, match="no group column 'k'; known: g, h"):
        rows_where(data, (("k", "1"),))
    with pytest.raises(InputError, match="there is no '3' here"):
        rows_where(data, (("h", "3"),))


def test_a_sample_says_what_is_looked_at_and_keeps_what_was_measured(monkeypatch):
    data = simulated()
    sample = Sample(data, "positive", scheme="sturges")
    tested = slices(sample, ["region"], pairs=False)
    bins = math.ceil(math.log2(data.n)) + 1  # Sturges 1926
    assert tested.bins == bins
    assert tested == slices(data, ["region"], pairs=False, reduction="positive", bins=bins)
    monkeypatch.setattr("calviz.sample.slice_tests.crossed_sums", None)  # nothing is added up again
    other = slices(sample, ["region"], pairs=False, rate=0.2)
    assert other.rate == 0.2
    assert [s.gap for s in other.slices] == [s.gap for s in tested.slices]


def test_clusters_of_a_slice_are_a_t_test_of_their_sums():
    # Ten clusters of ten rows that agree in all but one of ten rows each; the sums of s - h are tested against 0.
    cluster = np.repeat(np.arange(10), 10)
    hit = np.tile(np.arange(10) < 9, 10) == (cluster % 4 > 0)
    events = BinaryEvents(np.full(100, 0.5), hit)
    sums = np.bincount(cluster, 0.5 - hit)
    t = abs(sums.sum()) / np.sqrt((sums**2).sum())
    one = np.zeros(100, dtype=int)
    result = p_against_calibrated(slice_sums(events, one, 1, cluster), events, one)
    assert result == pytest.approx([2 * stats.t.sf(t, 9)], rel=1e-9)


def test_a_slice_without_misses_is_not_off_for_how_little_its_clusters_vary():
    # Of 100 patients of a ward, each with ten rows of one label and a risk of 2.5 %, none is a case.
    cluster, ward = np.repeat(np.arange(400), 10), np.repeat(np.arange(400) % 4, 10)
    hit = (ward > 0) & (cluster < 12)
    events = BinaryEvents(np.full(4_000, 0.025), hit)
    sums = slice_sums(events, ward, 4, cluster)
    p = p_against_calibrated(sums, events, ward)
    # 0.975^100 = 8 %, and twice that for either side.
    assert (p > 0.05).all()
    by_hand = 2 * stats.t.sf(25 / np.sqrt(100 * 10**2 * 0.025 * 0.975), 99)
    assert p[0] == pytest.approx(by_hand, rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_slice_against_the_rest_counts_clusters_that_lie_in_both(weighted):
    rng = np.random.default_rng(2)
    cluster, score = np.repeat(np.arange(60), 5), rng.random(300)
    g = np.where(rng.random(300) < 0.8, cluster % 3, rng.integers(0, 3, 300))
    # Rows of a cluster agree in most of what decides them.
    luck = np.where(rng.random(300) < 0.8, rng.random(60)[cluster], rng.random(300))
    hit, weights = luck < score, rng.uniform(0.5, 2, 300) if weighted else None
    data = calviz.Predictions(
        probs=score, labels=hit.astype(int), groups={"g": g}, clusters=cluster, weights=weights
    )
    tested = slices(data, against="rest", reduction="positive")
    w, ratios = weights / weights.mean() if weighted else np.ones(300), []
    for s in tested.slices:
        inside = g == int(s.where[0][1])
        rest = np.average(score - hit, weights=w * ~inside)
        sign = np.where(inside, 1, -w[inside].sum() / w[~inside].sum())
        by_cluster = np.bincount(cluster, sign * w * (score - hit - rest))
        t = abs(by_cluster.sum()) / np.sqrt((by_cluster**2).sum())
        clusters = min(np.unique(cluster[some]).size for some in (inside, ~inside))
        ratios.append(s.p_value / (2 * stats.t.sf(t, clusters - 1)))
    # At least the one whose clusters vary most, beside calibrated rows, is tested by its own sums alone.
    assert min(ratios) == pytest.approx(1, rel=1e-6)
    # Fewer than eight clusters outside say nothing of how clusters vary.
    few = replace(data, groups={"g": (cluster > 6).astype(int)}, weights=None)
    assert {s.p_value for s in slices(few, against="rest", min_rows=5).slices} == {1}


def test_a_click_on_a_slice_does_not_fade_the_others():
    rng = np.random.default_rng(0)
    score = rng.uniform(0.2, 0.8, 900)
    p = calviz.Predictions(
        probs=score, labels=rng.random(900) < score**2, groups={"g": np.arange(900) % 3}
    )
    drawn = SliceGaps.compute(calviz.slices(p)).plot()
    clickable = [trace for trace in drawn.data if trace.customdata is not None]
    assert clickable
    assert all(trace.unselected.marker.opacity == 1 for trace in clickable)


# ---- Rating grades against SciPy's tests


def rated(grade="grade", seed=0):
    rng = np.random.default_rng(seed)
    which = rng.integers(3, size=900)
    score = np.array([0.01, 0.05, 0.2])[which] * rng.uniform(0.8, 1.2, size=900)
    hit = rng.random(900) < score * np.array([1, 1, 1.6])[which]
    groups = {"region": rng.integers(2, size=900), grade: np.array(["A", "BB", "CCC"])[which]}
    return calviz.Predictions(probs=score, labels=hit.astype(int), groups=groups), which


def test_each_grade_is_tested_as_scipy_does():
    p, which = rated()
    tested = grades(Sample.of(p), column="grade")
    assert tested.names == ("A", "BB", "CCC", "all rows")
    score, hit = p.probs[:, 1], p.labels
    for g in range(4):
        rows = which == g if g < 3 else np.ones(900, bool)
        n, k, mean = int(rows.sum()), int(hit[rows].sum()), score[rows].mean()
        assert (tested.rows[g], tested.hits[g]) == (n, k)
        assert tested.binomial[g] == pytest.approx(
            stats.binomtest(k, n, mean, alternative="greater").pvalue
        )
        posterior = stats.beta(k + 0.5, n - k + 0.5)
        assert tested.jeffreys[g] == pytest.approx(posterior.cdf(mean))
        assert tested.low[g] == pytest.approx(posterior.ppf(0.025) if k else 0)
        assert tested.high[g] == pytest.approx(posterior.ppf(0.975))
    assert tested.lights[2] == "red"
    assert tested.reading().startswith(
        "In 1 grade of 3 more happens than the probabilities say: CCC. The light of BB may be chance"
    )
    order = np.argsort(tested.binomial[:3])  # Holm: times 3, 2 and 1
    by_hand = np.maximum.accumulate(tested.binomial[order] * [3, 2, 1]).clip(max=1)
    np.testing.assert_allclose(tested.adjusted[order], by_hand)


def test_columns_of_grades_are_found_by_name_or_values():
    assert grade_columns(rated("x")[0]) == ("x",)
    for name in (
        "Rating grade",
        "Ratingklasse",
        "Bonitätsstufe",
        "rating_class",
        "classe de risque",
    ):
        assert has_grades(rated(name)[0])
        assert grade_columns(rated(name)[0]) == (name,)
    for name in ("x", "class", "operating", "Note", "classe de revenu"):
        assert not has_grades(rated(name)[0])


def test_a_column_that_there_is_not():
    with pytest.raises(OptionError, match="there is no group column 'notch'; known: region, grade"):
        grades(Sample.of(rated()[0]), column="notch")
    many = calviz.Predictions(
        probs=np.full(60, 0.2), labels=np.arange(60) % 2, groups={"id": np.arange(60)}
    )
    with pytest.raises(OptionError, match="'id' has 60 values: a column of grades has at most 50"):
        grades(Sample.of(many), column="id")


@pytest.mark.parametrize("before", ["", "R", "Klasse "])
def test_a_column_that_follows_the_scores_is_one_of_grades(before):
    rng = np.random.default_rng(0)
    score = rng.uniform(0.01, 0.4, size=800)
    labels = (rng.random(800) < score).astype(int)
    bucketed = np.digitize(score, [0.1, 0.2, 0.3]).astype(str)
    r = np.array([f"{before}{8 + int(b)}" for b in bucketed])  # R8 to R11
    groups = {"season": rng.integers(2010, 2018, size=800).astype(str), "r": r}
    groups["word"] = np.array(["low", "mid", "up", "top"])[bucketed.astype(int)]
    data = calviz.Predictions(probs=score, labels=labels, groups=groups)
    assert grade_columns(data) == ("r",)
    assert tuple(possible_grade_columns(data)) == ("season", "r", "word")


def test_the_order_of_the_observed_shares_is_said():
    # 1, 4 and 2 hits of 10 rows each.
    score = np.repeat([0.1, 0.2, 0.3], 10)
    labels = np.concatenate([np.arange(10) < k for k in (1, 4, 2)]).astype(int)
    data = calviz.Predictions(
        probs=score, labels=labels, groups={"g": np.repeat(["A", "B", "C"], 10)}
    )
    text = grades(Sample.of(data), column="g").reading()
    assert text.endswith("The observed shares rise with the scores, but not from B to C.")


def test_grades_in_which_less_happens_are_named_and_have_no_light():
    # 50 rows with a score of 0.9 and 25 hits: the lower tail of Beta(25.5, 25.5) at 0.9 is 1.
    data = calviz.Predictions(
        probs=np.full(50, 0.9), labels=np.arange(50) % 2, groups={"g": ["A"] * 50}
    )
    tested = grades(Sample.of(data), column="g")
    assert tested.lights == ("green", "green")
    assert tested.headline == (
        "In 1 grade of 1 less happens than the probabilities say, in none more"
    )
    assert (
        "Less happens in A: the lights look only for scores that are too low." in tested.reading()
    )


def test_grades_of_too_few_rows_are_not_said_to_hold():
    def said(rows):
        data = calviz.Predictions(
            probs=np.full(10 * rows, 0.6),
            labels=np.ones(10 * rows, dtype=int),
            groups={"g": np.repeat(list("ABCDEFGHIJ"), rows)},
        )
        return grades(Sample.of(data), column="g").reading()

    # 0.6^10 is 0.0060, above 0.05 / 10; 0.6^11 is 0.0036.
    cannot = "Whether the grades hold what they say cannot be told: in so few rows hits alone would not be beyond chance; A would need 11 rows."
    assert said(3).startswith(cannot)
    assert said(10).startswith(cannot)
    assert said(11).startswith("In 10 grades of 10 more happens")


@pytest.mark.parametrize("mean", [0.0005, 0.003, 0.01, 0.05, 0.2])
def test_red_lights_are_at_most_one_in_100_at_any_number_of_hits(mean):
    # 40 grades of 200 rows with 0 to 39 hits: which of these numbers are red, and how probable are they?
    numbers = np.arange(40)
    data = calviz.Predictions(
        probs=np.full(8_000, mean),
        labels=(np.arange(8_000) % 200 < np.arange(8_000) // 200).astype(int),
        groups={"g": np.arange(8_000) // 200},
    )
    tested = grades(Sample.of(data), column="g")
    of_hits = dict(zip(tested.hits[:-1].tolist(), tested.lights, strict=False))
    chance = stats.binom.pmf(numbers, 200, mean)
    red, yellow = (
        sum(c for k, c in zip(numbers, chance, strict=True) if of_hits[k] in lights)
        for lights in (("red",), ("red", "yellow"))
    )
    assert red <= 0.01
    assert yellow <= 0.05


def test_what_is_said_of_calibrated_grades_and_of_one_that_is_off():
    for case in ("heavy weights, few defaults", "very few defaults"):
        portfolio, files = CALIBRATED_OF_GRADES[case], 60
        drawn = [portfolio.tested(np.random.default_rng([1, i])) for i in range(files)]
        said = np.mean(["more happens than" in one.reading() for one in drawn])
        assert said <= too_many(0.05, files)
        red = np.mean([light == "red" for one in drawn for light in one.lights])
        assert red <= too_many(0.01, files * (portfolio.grades + 1))
    portfolio, times = OFF["3 times as many, few defaults"]
    found = portfolio.tested(np.random.default_rng(0), times=times).reading()
    assert found.startswith("In 1 grade of 7 more happens than the probabilities say: 3.")


def not_alike(seed=0, **columns):
    p, _ = rated(seed=seed)
    return calviz.Predictions(
        probs=p.probs, labels=p.labels, groups={"grade": p.groups["grade"]}, **columns
    )


def test_weighted_grades_count_as_fewer_rows():
    weights = np.random.default_rng(1).exponential(size=900)
    data = not_alike(weights=weights)
    tested = grades(Sample.of(data), column="grade")
    score, hit, level = (
        data.probs[:, 1],
        data.labels,
        np.array(data.groups["grade"].levels)[data.groups["grade"].codes],
    )
    for g, name in enumerate(("A", "BB", "CCC")):
        rows = level == name
        w = weights[rows]
        n, mean, share = (
            w.sum() ** 2 / (w**2).sum(),
            np.average(score[rows], weights=w),
            np.average(hit[rows], weights=w),
        )
        assert (tested.rows[g], tested.hits[g]) == (rows.sum(), hit[rows].sum())
        assert tested.counts_as[g] == pytest.approx(n)
        assert tested.observed[g] == pytest.approx(share)
        posterior = stats.beta(share * n + 0.5, (1 - share) * n + 0.5)
        assert tested.jeffreys[g] == pytest.approx(posterior.cdf(mean))
        assert tested.low[g] == pytest.approx(posterior.ppf(0.025))
    same = grades(Sample.of(not_alike(weights=np.full(900, 3.0))), column="grade")
    np.testing.assert_array_equal(
        same.jeffreys, grades(Sample.of(rated()[0]), column="grade").jeffreys
    )


def test_grades_of_rows_in_clusters_count_as_fewer_rows():
    # Ten of each row know as much as one, but for the quantile of Student's distribution.
    p, which = rated()
    tenfold = np.repeat(np.arange(900), 10)
    data = calviz.Predictions(
        probs=p.probs[tenfold],
        labels=p.labels[tenfold],
        groups={"grade": which[tenfold]},
        clusters=tenfold,
    )
    tested = grades(Sample.of(data), column="grade")
    plain = grades(Sample.of(p), column="grade")
    np.testing.assert_allclose(tested.observed, plain.observed)
    np.testing.assert_allclose(tested.counts_as, plain.rows, rtol=0.015)
    # Clusters of two rows, of different grades nearly always: nobody of a grade belongs together.
    alone = grades(Sample.of(not_alike(clusters=np.arange(900) // 2)), column="grade")
    assert (alone.counts_as > 0.8 * plain.rows).all()
    assert (alone.counts_as <= plain.rows).all()
    # Seven clusters say next to nothing of how clusters differ.
    few = grades(Sample.of(not_alike(clusters=np.arange(900) % 7)), column="grade")
    assert few.lights == ("none",) * 4
    assert np.isnan([few.low, few.high, few.jeffreys, few.binomial]).all()
    assert few.reading().startswith("Not tested: A, BB, CCC, with fewer than 8 clusters.")


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_grades_of_dependent_rows_raise_no_false_alarms(weighted):
    # A calibrated model of 300 debtors with 24 rows each, of which some default more often than others in all grades.
    rng = np.random.default_rng(3)
    score, p_values = np.array([0.03, 0.1, 0.3]), []
    for _ in range(100):
        debtor, grade = np.repeat(np.arange(300), 24), rng.integers(3, size=7_200)
        chance = score[grade] * 3 * rng.beta(1, 2, size=300)[debtor]
        data = calviz.Predictions(
            probs=score[grade],
            labels=(rng.random(7_200) < chance).astype(int),
            groups={"grade": grade},
            clusters=debtor,
            weights=rng.lognormal(size=7_200) if weighted else None,
        )
        p_values.append(grades(Sample.of(data), column="grade").jeffreys[:3])
    # 300 tests at 5 %: 15 expected; with the rows taken as independent, 50 and more.
    assert 3 <= (np.array(p_values) < 0.05).sum() <= 32


# ---- The share of hits that is expected in the bin with the largest gap


def sums_of(score, rows, hits, bins=10):
    """Bins in which all scores are the same."""
    hit = np.concatenate([np.arange(n) < h for n, h in zip(rows, hits, strict=True)])
    return bin_events(BinaryEvents(np.repeat(score, rows), hit), bins=bins)


def test_the_curve_is_that_of_a_general_minimiser_shrunk_by_its_significance():
    score = np.array([0.15, 0.35, 0.55, 0.75, 0.95])
    rows, hits = np.array([200, 150, 100, 150, 200]), np.array([50, 60, 48, 102, 168])
    z = logit(score)

    def loss(t):
        m = z + t[0] + t[1] * z
        return (rows * np.logaddexp(0, m) - hits * m).sum()

    best = optimize.minimize(loss, [0.0, 0.0], tol=1e-10)
    ratio, c = 2 * (loss([0, 0]) - best.fun), stats.chi2.ppf(0.95, 2)
    a, b = best.x * (1 - c / ratio)
    at = 4
    curve = expit(z[at] + a + b * z[at])
    share, interval = expected_share(sums_of(score, rows, hits), at)
    # The bin agrees with the curve: 168 of 200, at 99 %.
    exact = stats.binomtest(168, 200).proportion_ci(0.99)
    assert exact.low < curve < exact.high
    assert share == pytest.approx(curve, abs=1e-5)
    q = expit(z + a + b * z)
    x = np.stack([np.ones(5), z], axis=1)
    variance = x[at] @ np.linalg.inv((x.T * (rows * q * (1 - q))) @ x) @ x[at]
    reach = np.sqrt(c * variance)
    # 168 of 200 are 84 %, 11 points from the score: the ends go towards those of the curve as far as that may be chance.
    by_chance = ((exact.high - 0.84) / 0.11) ** 2
    assert 0 < by_chance < 1
    low, high = expit(logit(curve) - reach), expit(logit(curve) + reach)
    low = exact.low - by_chance * max(exact.low - low, 0)
    assert interval.low == pytest.approx(low, abs=1e-5)
    high = exact.high + by_chance * max(high - exact.high, 0)
    assert interval.high == pytest.approx(high, abs=1e-5)
    assert high > exact.high


def test_a_bin_far_from_the_curve_keeps_most_of_its_gap():
    score, rows = np.linspace(0.05, 0.95, 10), np.full(10, 400)
    hits = np.round(score * rows).astype(int)
    hits[6] = 120  # 30 % instead of 65 %
    share, interval = expected_share(sums_of(score, rows, hits), 6)
    assert 0.30 < share < 0.40
    assert interval.low < 0.30 < interval.high


def test_the_worst_bin_has_the_largest_gap_that_is_shown_not_the_largest_that_was_seen():
    score = np.array([0.05, *np.linspace(0.15, 0.95, 9)])
    rows = np.array([4_000, 800, 500, 400, 400, 400, 400, 400, 400, 200])
    hits = np.array([280, 160, 140, 144, 184, 212, 232, 264, 296, 166])
    hit = np.concatenate([np.arange(n) < h for n, h in zip(rows, hits, strict=True)])
    data = calviz.Predictions(probs=np.repeat(score, rows), labels=hit.astype(int))
    diagram = Reliability.compute(Sample(data, "positive", bins=10), band=False)
    sums = diagram.sums
    seen = score - hits / rows
    shown = np.array([score[m] - expected_share(sums, m)[0] for m in range(10)])
    assert (seen.argmax(), np.abs(shown).argmax()) == (9, 8)
    off = bins_off(sums)
    assert off[0] == diagram.worst == 8
    assert np.all(np.diff(np.abs(shown[list(off)])) <= 0)
    np.testing.assert_allclose(diagram.frame()["expected_gap"][list(off)], shown[list(off)])
    assert diagram.frame()["expected_gap"].notna().sum() == len(off)
    # Only bins whose mean score lies outside the interval for all ten together.
    for m in range(10):
        low, high = stats.binomtest(hits[m], rows[m]).proportion_ci(0.995)
        assert (m in off) == (not low <= score[m] <= high)


@pytest.mark.parametrize("hits", [0, 4, 400])
def test_with_few_hits_or_misses_only_the_bin_itself_counts(hits):
    share, interval = expected_share(sums_of([0.75], [400], [hits]), 0)
    exact = stats.binomtest(hits, 400).proportion_ci(0.95)
    assert interval == pytest.approx((exact.low, exact.high), abs=1e-9)
    assert share == pytest.approx(exact.low if hits == 400 else exact.high, abs=1e-9)


def test_one_bin_is_shrunk_too():
    # 280 of 400 where 300 are promised: 2 log-likelihood ratio 5.06, of which 3.84 are not significant.
    share, _ = expected_share(sums_of([0.75], [400], [280]), 0)
    ratio = 2 * (280 * np.log(0.7 / 0.75) + 120 * np.log(0.3 / 0.25))
    factor = 1 - stats.chi2.ppf(0.95, 1) / ratio
    assert share == pytest.approx(
        expit(logit(0.75) + factor * (logit(0.7) - logit(0.75))), abs=1e-5
    )


@pytest.mark.slow
def test_it_is_nearer_the_truth_than_the_score_and_its_interval_holds():
    every_simulation()
    case = "logits x 1.5, 2 classes, 500 rows"
    near, holds = (
        SIMULATIONS[f"worst-bin: {measures}, {case}"].outcomes(25, seed=3)
        for measures in (
            "expected share nearer the truth than the score",
            "interval holds the truth",
        )
    )
    assert np.mean(near) >= 0.8
    assert np.mean(holds) >= too_few(0.95, len(holds))


@pytest.mark.slow
def test_months_that_come_round_are_named_and_a_lasting_change_is_no_season():
    every_simulation()
    case = "5,000 rows of 3 years, 0.6 logits up"
    season = f"slices: months named that are off each year, {case} in each December to February"
    change = f"slices: months named after one lasting change, {case} from day 547 on"
    assert SIMULATIONS[season].keeps_to(20, at_least=0.7)
    assert SIMULATIONS[change].keeps_to(20, at_most=0.2)


@pytest.mark.slow
@pytest.mark.parametrize(
    "kind", ["title: slices off, no miscalibration as a whole", "advice: miscalibration in places"]
)
def test_slices_alone_are_named_where_one_is_off_and_rarely_elsewhere(kind):
    every_simulation()
    held = "said of calibrated files, no weights, 1,000 rows, 12 slices"
    off = "said where one slice is off and the whole is not found, no weights, 0.9 logits, 8,000 rows, 40 slices"
    assert SIMULATIONS[f"slices: {kind}, {held}"].keeps_to(20, seed=5, at_most=1 / 20)
    assert SIMULATIONS[f"slices: {kind}, {off}"].keeps_to(10, seed=5, at_least=too_few(0.9, 10))


# ---- Slices that only hold more of the rows of another one


@pytest.mark.parametrize("weighted", [False, True])
def test_slices_that_only_hold_rows_of_another_one_are_not_listed(weighted):
    sample = one_region(np.random.default_rng(4), off=1.2)
    if weighted:
        weights = np.random.default_rng(5).uniform(0.5, 1.5, sample.data.n)
        sample = sample.with_data(replace(sample.data, weights=weights))
    tested = usual_slices(sample)
    assert [s.where for s in tested.off] == [(("region", "0"),)]
    alone = {s.name for s in tested.slices if s.adjusted <= tested.rate} - {"region = 0"}
    assert "channel = 0" in alone  # by itself it is off
    assert tested.remark.startswith(
        f"{len(alone)} other slices are off only by rows shared with region = 0."
    )
    assert tested.frame()["off"].sum() == 1
    # Truly so: no slice of the other rows is off.
    assert not usual_slices(_outside(sample, (("region", "0"),))).off


def _outside(sample, where):
    rows = np.flatnonzero(~rows_where(sample.data, where))
    return sample.with_data(sample.data.take(rows))


def test_slices_that_are_off_beyond_another_one_are_listed():
    rng = np.random.default_rng(6)
    n = 12_000
    z, a = rng.normal(size=n), rng.integers(0, 5, n)
    # Half of the rows of b = 0 are of a = 0; they are off as those of all other a are.
    b = np.where(rng.random(n) < 0.4, a, rng.integers(0, 5, n))
    data = calviz.Predictions(
        probs=expit(z - 1.2 * (a == 0) - 0.8 * (b == 0)),
        labels=rng.random(n) < expit(z),
        groups={"a": a, "b": b},
    )
    found = usual_slices(Sample(data, "positive")).off
    assert [s.name for s in found] == ["a = 0", "b = 0 (not a = 0)"]
    # The numbers are those of the rows that it does not share.
    assert found[1].rows == ((b == 0) & (a != 0)).sum()
    # Where all rows are off alike, no slice explains another one.
    for seed in range(5):
        tested = usual_slices(one_region(np.random.default_rng([8, seed]), all_off=0.3))
        assert len(tested.off) > 10
        assert not tested.explained
        assert (
            tested.remark
            == f"{len(tested.off)} slices are off, not found to differ from other rows with such scores."
        )


def test_where_all_rows_are_off_the_slice_that_differs_comes_first():
    tested = usual_slices(all_off(np.random.default_rng(3), more=0.1))
    assert [s.name for s in tested.slices if s.adjusted <= USUAL_RATE][
        1:
    ]  # others carry the error of all rows
    assert [s.name for s in tested.named] == ["site = 0"] == [tested.slices[0].name]
    assert re.fullmatch(
        r"Unlike the rest: site = 0 \(about \d+\.\d points too high\); other rows: too high by \d\.\d points",
        tested.headline,
    )
    # What lies within that slice is not as the others are.
    (part,) = (s for s in tested.off[1:] if ("site", "0") in s.where)
    assert (tested.word(part), tested.within) == ("within", {part.where})
    others = len(tested.off) - 2
    assert (
        tested.remark
        == f"{others} other slices are off, but, without the rows of those named, not found to differ from other rows with such scores."
    )
    words = dict.fromkeys(map(tested.word, tested.off))
    assert list(words) == ["yes", "otherwise as others", "within"]
    assert tested.frame()["differs"].tolist() == [True] + [False] * (len(tested.slices) - 1)
    (finding,) = (
        f
        for f in calviz.evaluate(all_off(np.random.default_rng(3), more=0.1)).findings
        if f.code == "CAL017"
    )
    assert (finding.severity, finding.short) == ("warning", tested.headline)


def test_where_all_rows_are_off_alike_no_slice_is_named():
    sample = all_off(np.random.default_rng(4))
    tested = usual_slices(sample)
    assert len(tested.off) > 5
    assert not tested.named
    assert re.fullmatch(
        r"All rows: too high by \d\.\d points; no slice is found off beyond that", tested.headline
    )
    assert {f.severity for f in calviz.evaluate(sample).findings if f.code == "CAL017"} == {"info"}


def test_where_all_rows_but_a_slice_are_off_that_slice_is_named():
    sample = one_region(np.random.default_rng(1), n=20_000, off=-0.3, all_off=0.3)
    tested = usual_slices(sample)
    assert re.fullmatch(r"All rows but region = 0: too low by \d\.\d points", tested.headline)
    right = next(s for s in tested.slices if s.name == "region = 0")
    assert right not in tested.off
    assert tested.word(right) == ""
    # A map of all rows would make it wrong.
    (finding,) = (f for f in calviz.evaluate(sample).findings if f.code == "CAL017")
    assert (finding.severity, finding.short) == ("warning", tested.headline)


def test_the_further_off_of_two_slices_is_named():
    rng = np.random.default_rng(2)
    chance, group = rng.uniform(0.2, 0.7, 6_000), rng.integers(0, 2, 6_000)
    score = chance + np.where(group == 1, 0.15, 0.05)
    data = calviz.Predictions(
        probs=score, labels=rng.random(6_000) < chance, groups={"group": group}
    )
    assert [s.name for s in usual_slices(Sample(data, "positive")).named] == ["group = 1"]


def test_where_a_slice_stays_off_after_a_map_is_said():
    before = one_region(np.random.default_rng(9), off=1.0).data
    p, inside = before.probs[:, 1], before.groups["region"].mask("0")

    def after(moved):
        return replace(before, probs=np.stack([1 - moved, moved], axis=1))

    half, whole = (expit(np.log(p / (1 - p)) + by * inside) for by in (0.5, 1.0))
    # The number is that of the verdict on the rows after the map.
    (one,) = usual_slices(Sample(after(half), "positive")).named
    assert still_off_words(before, after(half)) == (
        f"Where region = 0, scores stay off: about {-100 * one.expected:.1f} points too low."
    )
    low = (before.labels - half)[inside].mean()
    assert -one.expected == pytest.approx(low, abs=0.002)
    assert still_off_words(before, after(whole)) == still_off_words(None, None) == ""
    fine = one_region(np.random.default_rng(9)).data
    assert still_off_words(fine, fine) == ""
    # What is named on more rows is said of a map that takes it off, and not of one that leaves it.
    named = usual_slices(Sample(before, "positive")).named
    assert still_off_words(after(whole), after(whole), named) == ""
    said = still_off_words(after(whole), before, named)
    assert re.fullmatch(
        r"Where region = 0, scores are then off: about \d\d\.\d points too low\.", said
    )


def test_a_slice_that_a_map_takes_off_is_said_beside_what_stays_off():
    before = one_region(np.random.default_rng(9), off=1.0).data
    p, region = before.probs[:, 1], before.groups["region"]
    inside, other = region.mask("0"), region.mask("1")
    # A map that corrects half of the fault, and moves a region that was right.
    moved = expit(np.log(p / (1 - p)) + 0.5 * inside + 1.2 * other)
    after = replace(before, probs=np.stack([1 - moved, moved], axis=1))
    low = 100 * (before.labels - moved)[inside].mean()
    stays = still_off_words(before, after)
    size = re.fullmatch(
        r"Where region = 0, scores stay off: about ([\d.]+) points too low\.", stays
    )
    assert float(size[1]) == pytest.approx(low, abs=0.2)
    said = still_off_words(before, after, most=None)
    taken = re.search(
        r"Where region = 1, scores are then off: about ([\d.]+) points too high\.", said
    )
    assert float(taken[1]) == pytest.approx(100 * (moved - before.labels)[other].mean(), abs=1.5)
    assert stays in said
    # Of the slice that has a map of its own, that map's sentence tells.
    assert still_off_words(before, after, (), None, (("region", "0"),)) == taken[0]


def test_a_class_that_a_map_leaves_off_in_a_group_is_told():
    # The top label is not off there, so that no slice was named.
    after, gaps = of_wards(np.random.default_rng(1), region=0.6)
    after, inside = after.data, after.data.groups["region"].mask("0")
    fine = of_wards(np.random.default_rng(1))[0].data
    found = still_off_words(fine, after, (), None)
    said = r"Where region = 0, scores of '1' are then off: about ([\d.]+) points too low\."
    size = float(re.fullmatch(said, found)[1])
    assert size == pytest.approx(-100 * gaps[inside].mean(), abs=1.5)
    # After a map that leaves nothing, there is nothing to say.
    assert still_off_words(fine, fine, (), None) == ""
    # One that was named on all rows stays off on a half of them.
    whole = of_wards(np.random.default_rng(3), region=1.0)[0]
    half = whole.data.take(np.arange(3_000))
    told = still_off_words(half, half, usual_slices(whole).named, None)
    assert told.startswith("Where region = 0, scores of '1' stay off: ")
    # The verdict after the map gives the same number.
    size = float(re.search(r"about ([\d.]+) points", told)[1])
    assert size == pytest.approx(-100 * usual_slices(Sample.of(half)).named[0].expected, abs=0.05)


def test_the_largest_move_of_rows_that_were_not_off_is_told():
    sample = one_region(np.random.default_rng(9), off=1.2)
    before, region = sample.data, sample.data.groups["region"]
    moved = before.probs[:, 1] + 0.02 * region.mask("3") + 0.3 * region.mask("0")
    after = replace(before, probs=np.stack([1 - moved, moved], 1).clip(0, 1))
    after = replace(after, probs=after.probs / after.probs.sum(1, keepdims=True))
    words = moved_words("segments", before, after)
    assert words == (
        "The map moves rows of slices that were not found off, too, most where region = 3: by +2.0 points on average."
    )
    assert moved_words("platt", before, after) == moved_words("segments", before, None) == ""


# ---- The predicted class, crossed with the columns

REFUND_IN_CHAT = (("predicted class", "1"), ("channel", "0"))


def test_a_predicted_class_that_is_off_in_one_channel_is_named_with_it():
    sample = of_classes(np.random.default_rng(1), pair=0.12)
    found = usual_slices(sample)
    assert [s.where for s in found.off] == [REFUND_IN_CHAT]
    assert found.furthest[0] == "predicted class = 1 and channel = 0"
    # The rows can be asked for, and the channel is not off without them.
    inside = np.asarray(rows_where(sample.data, REFUND_IN_CHAT))
    assert inside.sum() == found.off[0].rows
    top = sample.data.probs.argmax(axis=1)
    np.testing.assert_array_equal(inside, (top == 1) & sample.data.groups["channel"].mask("0"))
    v = judged(sample)
    assert v.headline.startswith("Off where predicted class = 1 and channel = 0: about ")
    assert calviz.slices(sample.data).slices[0].where == REFUND_IN_CHAT
    # Under another reduction, and of two classes, nothing is crossed.
    assert all(len(s.where) == 1 for s in usual_slices(sample.but(reduction="class:1")).slices)


def test_the_class_that_is_off_in_a_region_is_named_with_it():
    sample, _ = of_wards(np.random.default_rng(4), region=1.3)
    found = usual_slices(sample)
    (one,) = found.off
    assert (one.where, one.of_class) == (REGION, "1")
    inside = rows_where(sample.data, REGION)
    own = sample.data.probs[inside, 1].mean() - (sample.data.labels[inside] == 1).mean()
    assert one.gap == pytest.approx(own)
    # The axis says what that row of the picture is about, and no mark speaks of confidence.
    picture = SliceGaps.compute(found).plot()
    assert picture.layout.xaxis.title.text.endswith("<br>after a colon: P(class) − its share")
    assert {trace.name.split(",")[0] for trace in picture.data} == {"Too high", "Too low"}
    assert one.top.gap == pytest.approx(
        sample.data.take(np.flatnonzero(inside)).probs.max(axis=1).mean()
        - (sample.data.probs.argmax(axis=1) == sample.data.labels)[inside].mean()
    )
    assert re.fullmatch(r"'1' about \d+\.\d points too low", found.furthest[1])
    assert found.furthest[0] == "region = 0"
    # What is off by the rows of the region is not told as a fault of its own.
    assert not [s for s in found.named if s.where[0][0] == PREDICTED]
    verdict = judged(sample)
    assert verdict.off_class == "1"
    assert not verdict.classes_off  # which is off by these rows alone
    assert verdict.named_where == REGION
    # A region whose scores are too sure has no such class, nor has one in which a class is as low as in all rows.
    for off in ({"sure": 0.5}, {"everywhere": 1.0}):
        found = usual_slices(of_wards(np.random.default_rng(4), **off)[0])
        assert not [s for s in found.slices if s.of_class]


def test_a_class_is_named_in_a_region_whose_top_label_is_not_found_off():
    sample, gap = of_wards(np.random.default_rng(1), region=0.7)
    by_top_label = slices(sample, ["region"], pairs=True)
    assert not [s for s in by_top_label.slices if s.adjusted <= USUAL_RATE]
    found = usual_slices(sample)
    assert [(s.where, s.of_class) for s in found.off] == [(REGION, "1")]
    inside = np.asarray(rows_where(sample.data, REGION))
    assert found.off[0].gap == pytest.approx(
        (sample.data.probs[inside, 1] - (sample.data.labels[inside] == 1)).mean(), abs=1e-9
    )
    low, high = found.off[0].expected_interval
    assert low <= gap[inside].mean() <= high


def test_a_ward_stays_off_beside_a_class_of_a_region_that_is_named_first():
    # In this file the ward differs from rows with such scores at p = 0.0003, but from all rows outside the region at 0.0000005.
    sample, _ = of_wards(np.random.default_rng([7, 14]), region=1.5, ward=0.5)
    found = usual_slices(sample)
    assert {s.where for s in found.named} == {REGION, (("ward", "0"),)}
    assert not found.rest


#: 2,500 users, each with rows in all regions and wards.
USERS = {"n": 8_000, "clusters": 2_500, "across": True}


@pytest.mark.parametrize("how", [{}, USERS])
@pytest.mark.parametrize("off", [{"ward": 0.5}, {"all_sure": 0.4}, {"everywhere": 1.0}])
def test_a_class_is_named_in_its_region_whatever_else_is_off(how, off):
    sample, _ = of_wards(np.random.default_rng([7, 3]), region=1.0, **off, **how)
    found = usual_slices(sample)
    named = {s.where: s.of_class for s in found.named}
    assert named[REGION] == "1"
    # A ward is named beside it; all rows are not.
    assert named.get((("ward", "0"),)) == ("" if "ward" in off else None)
    assert bool(found.rest) == ("ward" not in off)


@pytest.mark.parametrize("off", [{"all_sure": 0.4, "more": 1.5}, {"sure": 0.5}, {}])
def test_no_class_is_named_for_users_in_several_regions_where_none_is_off_by_itself(off):
    found = usual_slices(of_wards(np.random.default_rng([7, 3]), **off, **USERS)[0])
    assert not [s for s in found.off if s.of_class]


@pytest.mark.parametrize("how", [{}, {"noise": 0.7}, {"clusters": 4_000}])
def test_what_is_off_in_all_of_a_class_or_of_a_channel_is_not_named_as_both(how):
    for off in ({"of_class": 0.12}, {"channel": 0.12}):
        found = usual_slices(of_classes(np.random.default_rng(2), **off, **how))
        assert not [s for s in found.off if len(s.where) > 1]
        # A class alone is named by the test of classes, which is of rows that are alike.
        alone = [s for s in found.off if s.where == (("predicted class", "1"),)]
        assert len(alone) == (bool(how) and "of_class" in off)
    found = usual_slices(of_classes(np.random.default_rng(2), pair=0.14, **how))
    assert found.off[0].where == REFUND_IN_CHAT
    # More of its class than of its channel: neither is named for it.
    assert not {(("channel", "0"),), (("predicted class", "1"),)} & {s.where for s in found.off}


def test_confidences_have_predicted_classes_too_but_profiles_and_two_classes_have_none():
    sample = of_classes(np.random.default_rng(1), pair=0.12)
    data, top = sample.data, sample.data.probs.argmax(axis=1)
    rows = {"groups": data.groups, "numbers": data.numbers, "class_names": data.class_names}
    confidences = calviz.ConfidencePredictions(
        confidence=data.probs.max(axis=1), correct=top == data.labels, predicted=top, **rows
    )
    assert usual_slices(Sample.of(confidences)).off[0].where == REFUND_IN_CHAT
    assert "predicted class" in sliceable_columns(confidences)
    assert "predicted class" not in sliceable_columns(replace(confidences, predicted=None))
    assert "predicted class" not in usual_columns(data)
    assert "predicted class" not in sliceable_columns(one_region(np.random.default_rng(0)).data)
    assert sliceable_columns(replace(data, groups={}, numbers={}, cuts={})) == ()
    # After rows are taken, they are those of these rows.
    assert data.predicted.size == data.n
    part = data.take(np.arange(5, 50))
    np.testing.assert_array_equal(part.predicted, top[5:50])


def off_above_a_score(rng, n=40_000, off=-1.8, above=True):
    e, site = rng.normal(size=n), rng.integers(0, 6, n)
    score = expit(-4.5 + 1.5 * e)
    bad = (site == 2) & ((score > 0.05) | (not above))
    hit = rng.random(n) < expit(logit(score) + off * bad)
    return calviz.Predictions(probs=score, labels=hit.astype(int), groups={"site": site})


def test_a_slice_that_is_off_above_a_score_only_is_named_with_it():
    data = off_above_a_score(np.random.default_rng(0))
    found = usual_slices(Sample(data, "positive"))
    (one, *_) = found.off
    score = data.probs[:, 1]
    at = float(one.where[1][1].removeprefix("> "))
    # Half of the expected events lie above it, and no label is asked.
    assert score[score > at].sum() / score.sum() == pytest.approx(0.5, abs=0.05)
    assert one.where == (("site", "2"), ("score", f"> {at:g}"))
    assert found.furthest[0] == f"site = 2 and score > {at:g}"
    mask = rows_where(data, one.where)
    np.testing.assert_array_equal(mask, data.groups["site"].mask("2") & (score > at))
    assert one.rows == mask.sum()
    assert one.gap == pytest.approx((score - data.labels)[mask].mean())
    # Of rows that were taken out, the cut is the same.
    part = data.take(np.flatnonzero(score > 0.02))
    assert rows_where(part, one.where).sum() == one.rows
    assert len(found.slices) == 12
    assert len(slices(data, ["site"], reduction="positive").slices) == 6
    cut = slices(data, ["site", "score"], pairs=False, edges={"score": [0.3]}).slices
    assert {s.where[1][1] for s in cut if len(s.where) > 1} == {"> 0.3"}


@pytest.mark.parametrize("off", [-1.0, 1.0])
def test_a_slice_that_is_off_at_all_scores_is_named_as_a_whole(off):
    data = off_above_a_score(np.random.default_rng(1), off=off, above=False)
    found = usual_slices(Sample(data, "positive"))
    assert [s.where for s in found.off] == [(("site", "2"),)]


def test_a_map_for_rows_above_a_score_leaves_others_as_they_are():
    data = off_above_a_score(np.random.default_rng(0))
    where = usual_slices(Sample(data, "positive")).off[0].where
    inside = np.asarray(rows_where(data, where))
    base = RECALIBRATORS["platt"].make().fit(data.probs[inside], data.labels[inside])
    fitted = SliceMap.around(base, slice_of(data, where))
    columns = {"site": data.groups["site"]}
    after = fitted.transform(data.probs, columns)
    np.testing.assert_array_equal((after != data.probs).any(axis=1), inside)
    again = SliceMap.from_dict(json.loads(json.dumps(fitted.to_dict())))
    np.testing.assert_array_equal(again.transform(data.probs, columns), after)
    space: dict = {}
    exec(compile(fitted.snippet(), "snippet", "exec"), space)
    by_source = space["recalibrate"](data.probs, {"site": data.groups["site"].values()})
    np.testing.assert_allclose(by_source, after, atol=1e-12)


def test_a_column_that_repeats_the_predicted_class_is_no_default_slice():
    data = of_classes(np.random.default_rng(3)).data
    predicted = np.array(data.class_names)[data.predicted]
    column = np.where(np.arange(data.n) % 200, predicted, data.class_names[0])
    again = calviz.Predictions(
        probs=data.probs,
        labels=data.labels,
        class_names=data.class_names,
        groups={"says": column, "of": np.roll(predicted, 1)},
    )
    assert usual_columns(again) == ("of",)
    assert "says" in sliceable_columns(again)


def test_a_second_slice_that_is_off_is_named_and_none_is_excused_that_stays_off():
    sample = of_classes(np.random.default_rng(3), pair=0.14, language=0.09)
    found = usual_slices(sample)
    assert {s.where for s in found.off} == {REFUND_IN_CHAT, (("language", "3"),)}
    first, second = (": ".join(found.place(s)) for s in found.off)
    assert found.headline.endswith(f"beyond chance, most clearly {first}")
    assert found.also == second
    # Without both, nothing is off; the first alone excuses none that is off without it.
    rest = _outside(sample, found.off[0].where)
    rest = rest.but(resamples=200)
    assert not usual_slices(_outside(rest, found.off[1].where)).off
    assert found.off[1].where in [s.where for s in usual_slices(rest).off]
    for s in found.slices:
        if s.adjusted <= found.rate and s not in found.off:
            assert s.where in found.explained


def test_the_size_of_a_slice_is_one_number_wherever_it_is_said():
    sample = one_region(np.random.default_rng(7), off=0.5, n=4_000)
    found = usual_slices(sample)
    (one,) = found.off
    size = f"about {points(abs(one.expected), 1)} points too low"
    assert found.furthest == ("region = 0", size)
    # Selected for its gap: less than that, and within the interval, which is wider to the side of 0.
    assert one.gap < one.expected < 0
    low, high = one.expected_interval
    assert low == pytest.approx(one.interval.low)
    assert one.expected < high
    assert one.interval.high <= high < 0
    figure = SliceGaps.compute(found)
    ends = f"{points(-high)} to {points(-low)}"
    assert figure.headline == f"Off where region = 0: {size}"
    assert figure.beyond_headline == (
        f"95 % CI {ends} points on new rows; {points(-one.gap)} on these {one.rows} rows. 1 of {len(found.slices)} slices is off beyond chance."
    )
    row = found.frame().set_index("slice").loc["region = 0"]
    assert (row.expected_gap, row.expected_low, row.expected_high) == (one.expected, low, high)
    # What is not selected is as it is measured.
    other = found.slices[-1]
    assert other.expected == other.gap
    assert other.expected_interval == pytest.approx(other.interval)


def test_a_pair_is_selected_by_its_difference_from_the_rest_of_the_class():
    sample = of_classes(np.random.default_rng(3), pair=0.09)
    one = next(s for s in usual_slices(sample).off if s.where == PAIR)
    assert one.difference != one.gap
    rows, data = np.asarray(rows_where(sample.data, PAIR)), sample.data
    rest = np.asarray(rows_where(data, PAIR[:1])) & ~rows
    gap = sample.scored.score - sample.scored.hit
    assert one.difference == pytest.approx(gap[rows].mean() - gap[rest].mean(), rel=0.2)


def test_long_names_are_drawn_whole():
    region = np.where(np.arange(4_000) % 8 == 0, "a region of quite a long name with an end", "b")
    score = np.random.default_rng(0).uniform(0.3, 0.7, 4_000)
    labels = np.random.default_rng(1).random(4_000) < score + 0.2 * (region != "b")
    data = calviz.Predictions(probs=score, labels=labels, groups={"place of the row": region})
    figure = SliceGaps.compute(usual_slices(Sample(data, "positive")))
    name = "place of the row = a region of quite a long name with an end"
    assert name in figure.plot().layout.yaxis.ticktext
    notes = [a.text for a in figure.plot(width=350).layout.annotations]
    assert name in [" ".join(text.split("<br>")) for text in notes]


def p_of_codes(values, *codes):
    factors = [Factor(of, tuple(map(str, range(int(of.max()) + 1)))) for of in codes]
    return p_of_means(values, factors, np.ones(values.size), None, seed=0)[1]


def test_a_mean_is_not_shown_where_few_rows_hold_against_it():
    """Without those few rows, of which by chance there may be none, every difference has the other sign."""
    rng = np.random.default_rng(0)
    region = np.repeat([0, 1], [1_800, 200])
    values = np.where(region == 1, 0.05, 0) + np.where(region == 1, 0.01, 0.1) * rng.normal(
        size=2_000
    )
    values[-2:] = -0.5
    assert p_of_codes(values, region)[1] == 1
    values[-30:] = -0.01
    assert p_of_codes(values, region)[1] <= LEVEL


def test_rare_values_in_a_large_file_do_not_hide_the_other_slices(monkeypatch):
    """Of each rare value a few rows at most are permuted, the studentised mean of which may be of any size."""
    monkeypatch.setattr("calviz.sample.slice_tests.MOST_PERMUTED", 800)
    rng = np.random.default_rng(0)
    region, rare = rng.integers(4, size=80_000), np.zeros(80_000, int)
    rare[rng.choice(rare.size, 1_000, replace=False)] = np.repeat(np.arange(1, 11), 100)
    values = rng.normal(size=rare.size) + np.where(region == 3, 0.3, -0.1)
    assert p_of_codes(values, region, rare)[3] <= LEVEL


def of_two_values(off, n=40_000, since=None):
    """Columns of eight values; of rows with the first of both, one in 64, events are `off` (logits) too frequent, from a share of the year on."""
    rng = np.random.default_rng(4)
    score = rng.beta(2, 6, n)
    region, product = rng.choice(list("abcdefgh"), (2, n))
    day = np.sort(rng.integers(0, 365, n))
    inside = (region == "a") & (product == "a") & (day >= 365 * (since or 0))
    hit = rng.random(n) < expit(logit(score) + off * inside)
    data = predictions(score, hit, region=region, product=product)
    times = None if since is None else np.datetime64("2025-01-01") + day
    return replace(data, times=times), (region == "a") & (product == "a")


def test_two_values_that_are_off_only_together_are_named_and_their_numbers_are_those_of_their_rows():
    data, inside = of_two_values(0.7)
    found = usual_slices(Sample.of(data))
    (one,) = found.off
    assert {*one.where} == {("region", "a"), ("product", "a")}
    assert one.rows == inside.sum()
    score, hit = data.probs[inside, 1], data.labels[inside]
    assert one.gap == pytest.approx(np.mean(score) - np.mean(hit))
    true = np.mean(score - expit(logit(score) + 0.7))
    assert one.expected_interval.low < true < one.expected_interval.high
    assert abs(one.expected) <= abs(one.gap)
    assert found.headline.startswith("1 of ")
    # More rows than the two values have are asked for: neither is named, nor an error raised.
    assert not slices(data, pairs=False, min_rows=2_000, rate=0.005).off
    calibrated, _ = of_two_values(0.0)
    assert not usual_slices(Sample.of(calibrated)).off


@pytest.mark.parametrize("gaps", [((12, -12), (-12, 12)), ((14, -10), (-7, 9))])
def test_pairs_with_errors_of_both_signs_are_named_in_place_of_the_single_values_in_which_these_cancel(
    gaps,
):
    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 2, (2, 8_000))
    score = expit(rng.normal(size=a.size))
    hit = rng.random(a.size) < np.clip(score + np.array(gaps)[a, b] / 100, 0.005, 0.995)
    found = usual_slices(Sample.of(predictions(score, hit, a=a, b=b)))
    assert {s.where for s in found.off} == {(("a", i), ("b", j)) for i in "01" for j in "01"}
    assert len(found.named) > 1
    assert (found.off[0].expected > 0) == (found.off[0].gap > 0)


def test_a_change_of_two_values_together_is_found_and_being_off_alike_all_the_time_is_none():
    data, _ = of_two_values(1.3, since=0.5)
    ((p, largest, where), *_) = changed_slices(Sample.of(data))
    assert {*where} == {("region", "a"), ("product", "a")}
    assert p <= largest
    data, _ = of_two_values(1.3, since=0.0)
    assert usual_slices(Sample.of(data)).off
    assert changed_slices(Sample.of(data)) == []


@pytest.mark.parametrize(("low", "seed"), [(0.15, 3), (0.15, 4), (0.25, 3)])
def test_a_ward_that_is_too_extreme_is_named_above_a_score_beside_a_site_that_is_too_low(low, seed):
    # Few rows of other wards have scores as high: they are right there.
    rng, n = np.random.default_rng(seed), 20_000
    ward, site = rng.choice(5, n, p=[0.2, 0.3, 0.2, 0.15, 0.15]), rng.choice(4, n)
    true = rng.normal(-1.5, 0.7, n)
    score = np.where(ward == 0, 2.2 * (true + 1.3) - 1.3, true) - low * (site == 0)
    data = calviz.Predictions(
        probs=expit(score),
        labels=rng.random(n) < expit(true),
        groups={"ward": ward, "site": site, "sex": rng.choice(2, n)},
        numbers={"age": rng.integers(18, 99, n)},
    )
    (first, *_) = usual_slices(Sample.of(data)).named
    assert first.where[0] == ("ward", "0")
    assert first.of_score


@pytest.mark.parametrize(("low", "seed"), [(0.0, 0), (0.0, 2), (0.15, 3), (0.15, 4)])
def test_a_ward_that_is_too_extreme_is_named_alone_and_for_its_scores_not_for_a_number_that_rises_with_them(
    low, seed
):
    rng, n = np.random.default_rng(seed), 9_000
    patient = np.repeat(np.arange(3_000), 3)
    ward, site = rng.choice(5, n, p=[0.2, 0.3, 0.2, 0.15, 0.15]), rng.choice(4, 3_000)[patient]
    true = rng.normal(-1.7, 0.7, 3_000)[patient] + rng.normal(0, 0.6, n)
    score = np.where(ward == 0, 2.2 * (true + 1.3) - 1.3, true) - low * (site == 0)
    data = calviz.Predictions(
        probs=expit(score),
        labels=rng.random(n) < expit(true),
        groups={"ward": ward, "site": site, "sex": rng.choice(2, 3_000)[patient]},
        numbers={"other risk": expit(0.6 * true + rng.normal(0, 0.5, n))},
        clusters=patient,
    )
    found = usual_slices(Sample.of(data))
    assert [name for name, _ in found.off[0].where] == ["ward", "score"]
    assert "sex" not in found.headline + found.also


def test_a_ward_of_which_only_high_scores_are_off_is_not_called_right_where_its_mean_is():
    rng, n = np.random.default_rng(2), 9_000
    ward, true = rng.choice(5, n, p=[0.2, 0.3, 0.2, 0.15, 0.15]), rng.normal(-1.7, 0.9, n)
    score = np.where(ward == 0, 2.2 * (true + 1.3) - 1.3, true)
    data = calviz.Predictions(
        probs=expit(score), labels=rng.random(n) < expit(true), groups={"ward": ward}
    )
    levels = levels_of(Sample.of(data), "ward", 0.05)
    words = {s.where[0][1]: levels.word(s) for s in levels.slices.slices}
    assert words.pop("0").startswith("too high where score > 0.2")
    assert {*words.values()} == {"not found off"}


def test_of_slices_that_differ_the_second_is_named_and_one_that_is_right_where_others_are_off():
    rng, n = np.random.default_rng(0), 8_000
    topic, version = rng.choice(5, n, p=[0.15, 0.2, 0.25, 0.2, 0.2]), rng.choice(2, n, p=[0.7, 0.3])
    true = expit(rng.normal(0, 0.8, n))
    high = np.array([0.22, 0.0, 0.07, 0.07, 0.07])[topic] + 0.1 * (version == 1) * (topic != 1)
    data = calviz.Predictions(
        probs=np.clip(true + high, 0, 1),
        labels=rng.random(n) < true,
        groups={"topic": topic, "version": version},
    )
    headline = usual_slices(Sample.of(data)).headline
    assert headline.startswith("Unlike the rest: topic = 0 (about ")
    assert "; topic = 1: not found off; other rows: too high by " in headline


def test_a_second_column_is_named_beside_a_value_only_if_it_leaves_out_a_share_of_its_rows():
    # Scores at 1 cannot be as much too high as others.
    rng, n = np.random.default_rng(2), 9_000
    topic, true = rng.choice(5, n, p=[0.15, 0.2, 0.25, 0.2, 0.2]), expit(rng.normal(0.3, 1.2, n))
    data = calviz.Predictions(
        probs=np.clip(true + np.where(topic == 0, 0.22, 0.06), 0, 1),
        labels=rng.random(n) < true,
        groups={"topic": topic},
        numbers={"logprob": np.log(true)},
    )
    assert [name for name, _ in usual_slices(Sample.of(data)).off[0].where] == ["topic"]


def test_a_bin_that_is_less_off_than_all_rows_is_not_called_furthest_off():
    # All rows are 2 points too low; chance alone makes a bin stand out, whose gap to expect is smaller.
    rng, found = np.random.default_rng(1), []
    for _ in range(40):
        score = rng.beta(1.2, 18, 3_000)
        sample = Sample.of(predictions(score, rng.random(3_000) < np.minimum(1.4 * score, 1)))
        sums, mean = chosen_bins(sample), sample.scored
        gap = (mean.score - mean.hit).mean()
        scores = bin_intervals(sums).score
        further = furthest_off(sums)
        assert {*further} <= {*bins_off(sums)}
        for m in further:
            assert (scores[m] - expected_share(sums, m)[0]) / gap >= 1
        found.append(len(bins_off(sums)) > len(further))
    assert any(found)
