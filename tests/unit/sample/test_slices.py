"""Slices: their sums by hand, what is called off, and what is left out."""

import math

import numpy as np
import pytest
from scipy import stats

import calviz
from benchmarks.claims import too_many
from benchmarks.claims.slices import CALIBRATED
from calviz.core.errors import InputError, NotAvailable, OptionError
from calviz.core.events import BinaryEvents
from calviz.core.row_columns import Factor
from calviz.figures.slice_gaps import SliceGaps
from calviz.sample.sample import Sample, rows_where, where_words
from calviz.sample.slices import Slices, p_against_calibrated, slice_sums, slices, usual_slices


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
    # Gaps of the rows are -0.1 and 0.8: their standard deviation over sqrt(2) is 0.45 / sqrt(2).
    half = 1.959964 * 0.45 / np.sqrt(2)
    assert x.interval == pytest.approx((0.35 - half, 0.35 + half))
    # Announced with 0.9 and 0.8, at most one hit has the chance 1 - 0.72; the tail is doubled.
    assert x.p_value == pytest.approx(2 * 0.28, abs=0.02)
    # 0.9 is in (0.8, 1], 0.8 in (0.6, 0.8].
    assert x.ece == pytest.approx((0.1 + 0.8) / 2)
    assert x.ece_noise == pytest.approx(np.sqrt(2 / np.pi) * (0.3 + 0.4) / 2)


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
    tested = slices(data, reduction="positive", min_rows=2)
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
    p = np.array([s.p_value for s in tested.slices])
    m = p.size
    by_hand = [min(1, min(p[j] * m / (j + 1) for j in range(i, m))) for i in range(m)]
    assert [s.adjusted for s in tested.slices] == pytest.approx(by_hand)


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
    tested = slices(data)
    assert tested.small == 1
    assert [s.where for s in tested.slices] == [(("few", "usual"),)]
    assert tested.skipped == ("name has 1,100 values, more than 1,000",)


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
    with pytest.raises(OptionError, match="'min_rows' must be 2 or more"):
        slices(data, min_rows=1)
    with pytest.raises(OptionError, match="'rate' must be between 0 and 1"):
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
        sorted(100 * figure.frame()["gap"])
    )
    assert list(drawn.layout.yaxis.ticktext) == [s.name for s in figure.shown]
    assert "region = b" in figure.answer()
    assert "points too high" in figure.answer()


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
    monkeypatch.setattr("calviz.sample.slices.slice_sums", None)  # nothing is added up again
    other = slices(sample, ["region"], pairs=False, rate=0.2)
    assert (other.rate, other.slices) == (0.2, tested.slices)


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
