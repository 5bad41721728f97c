"""Sentences."""

import re
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import expit, softmax
from scipy.stats import binom, norm

import calviz
from benchmarks.claims.slices import of_classes, one_region, two_slices
from calviz.core.blocks import Factor
from calviz.core.errors import NotAvailable
from calviz.core.p_values import in_spreads, max_t, westfall_young
from calviz.core.words import outside_range
from calviz.figures.class_bars import headline
from calviz.figures.reliability import Reliability
from calviz.figures.slice_gaps import SliceGaps
from calviz.report.sections.summary import no_fix_words
from calviz.sample import error_bars as levels
from calviz.sample.class_gaps import ClassView, class_ranges, predicted_class_sums
from calviz.sample.error_bars import CLASS_TEST, CLASSES, FILE, OVERALL
from calviz.sample.sample import Sample, rows_where
from calviz.sample.slices import USUAL_RATE, usual_slices
from calviz.verdicts.analysis import evaluate, findings_of
from calviz.verdicts.data_checks import classes_off, of_what, one_vs_rest, ranges_of
from calviz.verdicts.evaluation import Written, at_ends
from calviz.verdicts.joint_tests import collect_evidence
from calviz.verdicts.miscalibration_checks import where_to_look
from calviz.verdicts.row_checks import hardly_telling, label_shuffling
from calviz.verdicts.sentence import explained, judged, of_all_rows
from tests.inputs.simulated import draw_labels

# ---- What the verdict and the findings say, against samples whose truth is known
#
# `benchmarks/sentences.py` is the longer study; `docs/uncertainty.md` says what it found.


FEW = 199  # resamples of simulations: p-values are then multiples of 1/200


def binary(n, rng, slope=1.0, shift=0.0, spread=1.5, **columns):
    """Scores expit(shift + slope e), events with the chance expit(e), e normal."""
    e = rng.normal(0, spread, n)
    hits = rng.random(n) < expit(e)
    return calviz.Predictions(probs=expit(shift + slope * e), labels=hits, **columns)


def several(n, k, rng, sharpen=1.0):
    """Labels drawn from Dirichlet probabilities, whose logarithms are then multiplied."""
    q = rng.dirichlet(np.full(k, 0.6), n).clip(1e-9)
    q /= q.sum(axis=1, keepdims=True)
    labels = draw_labels(q, rng)
    return calviz.Predictions(probs=softmax(sharpen * np.log(q), axis=1), labels=labels)


def at_most(share, runs, errors=3.0):
    """So many of `runs`, and as many standard errors more."""
    return share * runs + errors * np.sqrt(runs * share * (1 - share))


def true_ece(slope, shift, spread=1.5):
    """E |expit(shift + slope e) - expit(e)|, e normal, by integration."""

    def gap(e):
        return abs(expit(shift + slope * e) - expit(e)) * stats.norm.pdf(e, scale=spread)

    return quad(gap, -12, 12, points=[0], limit=200)[0]


@pytest.mark.slow
def test_what_is_overconfident_everywhere_is_never_called_underconfident_in_others():
    # Logits x 1.05 make every largest probability larger: no confidence is too low.
    runs, wrong, spoken = 24, 0, 0
    for seed in range(runs):
        data = several(5_000, 5, np.random.default_rng([1, seed]), sharpen=1.05)
        seen = collect_evidence(Sample(data, resamples=FEW, seed=seed))
        wrong += seen.sides[1] or seen.direction in ("mixed", "under")
        spoken += seen.beyond_noise
    assert wrong <= at_most(0.05, runs)
    # The error is small (about one point), and still shown in many samples.
    assert spoken > runs / 4


@pytest.mark.slow
def test_both_directions_are_said_where_both_are_there():
    text = 0
    for seed in range(10):
        data = binary(3_000, np.random.default_rng([2, seed]), slope=1.6)
        f = next(iter(findings_of(Sample(data, "positive", resamples=FEW, seed=seed))))
        text += f.message.startswith("Forecast too high in places, forecast too low in others")
    assert text >= 9


@pytest.mark.slow
@pytest.mark.parametrize("reduction", ["top-label", "positive"])
def test_both_views_of_two_classes_say_what_the_worse_one_shows(reduction):
    # Events are rarer than forecast: by 5.7 points on average, whatever the view that was asked for.
    truth = (
        100
        * quad(lambda e: (expit(e) - expit(e - 0.35)) * stats.norm.pdf(e, scale=1.5), -12, 12)[0]
    )
    for seed in range(8):
        rng = np.random.default_rng([3, seed])
        e = rng.normal(0, 1.5, 3_000)
        data = calviz.Predictions(probs=expit(e), labels=rng.random(3_000) < expit(e - 0.35))
        v = judged(Sample(data, reduction, resamples=FEW))
        assert v.reduction == "positive"
        assert v.direction == "over"
        start = "Forecasts" if reduction == "positive" else "Probabilities of '1'"
        assert v.sentence.startswith(f"{start} too high by ")
        assert 100 * v.mcs == pytest.approx(truth, abs=3.5 * 100 * 0.42 / 3_000**0.5)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["two classes", "five classes"])
def test_a_calibrated_file_rarely_gets_any_statement(case):
    runs, text, overall = 40, 0, 0
    for seed in range(runs):
        rng = np.random.default_rng([4, seed])
        data = binary(400, rng) if case == "two classes" else several(400, 5, rng)
        data = data.with_columns(
            splits=None,
            groups={"a": rng.integers(0, 4, 400), "b": rng.integers(0, 3, 400)},
            ids=None,
        )
        reduction = "positive" if case == "two classes" else "top-label"
        sample = Sample(data, reduction, resamples=FEW, seed=seed)
        v = judged(sample)
        codes = {"CAL002", "CAL012", "CAL013", "CAL016", "CAL017"}
        names = {f.code for f in findings_of(sample)}
        overall += v.beyond_noise
        text += v.beyond_noise or v.slices_off > 0 or bool(names & codes)
        assert (v.direction in ("calibrated", "undecided")) == (
            not v.beyond_noise and not v.slices_off
        )
    assert overall <= at_most(OVERALL, runs)
    assert text <= at_most(FILE, runs)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "slope", "shift"),
    [(100, 1.1, 0.1), (1_000, 1.1, 0.1)],  # without an error the bound always holds
)
def test_the_error_is_below_what_is_said(n, slope, shift):
    runs, truth = 60, true_ece(slope, shift)
    held = 0
    for seed in range(runs):
        data = binary(n, np.random.default_rng([5, n, seed]), slope, shift)
        held += (
            collect_evidence(Sample(data, "positive", resamples=FEW, seed=seed)).ece_below >= truth
        )
    assert runs - held <= at_most(0.05, runs)


def test_sure_scores_that_all_hit_may_still_be_off():
    # 60 hits of 60: the exact 95 % interval of their probability begins at 0.025 ** (1 / 60) = 0.940.
    data = calviz.ConfidencePredictions(
        confidence=np.linspace(0.98, 1, 60), correct=np.full(60, True)
    )
    v = calviz.verdict(data)
    assert v.ece_below == pytest.approx(0.99 - 0.025 ** (1 / 60))
    assert v.sentence.endswith("ECE is below 4.96 points with 95 % confidence.")


@pytest.mark.slow
def test_useless_probabilities_are_said_to_be():
    # Calibrated, and all about 1/2.
    text = 0
    for seed in range(20):
        data = binary(1_000, np.random.default_rng([6, seed]), spread=0.02)
        codes = [f.code for f in findings_of(Sample(data, "positive", resamples=FEW, seed=seed))]
        text += "CAL016" in codes
    assert text >= 18
    sample = Sample(binary(1_000, np.random.default_rng(6), spread=0.02), "positive")
    assert "the probabilities hardly tell the classes apart" in judged(sample).sentence


def test_few_rare_events_are_no_reason_to_call_a_model_useless():
    wrong = 0
    for seed in range(100):
        rng = np.random.default_rng([13, seed])
        labels = np.arange(1_000) < 5
        score = expit(rng.normal(-6 + 1.2 * labels, 1))
        wrong += not tells_apart(calviz.Predictions(probs=score, labels=labels))
    assert wrong <= at_most(0.01, 100, errors=2)


@pytest.mark.slow
@pytest.mark.parametrize("n", [50, 200, 1_000])
def test_models_with_skill_are_not_called_useless(n):
    runs = 100
    wrong = sum(
        not tells_apart(binary(n, np.random.default_rng([7, n, seed]))) for seed in range(runs)
    ) + sum(
        not tells_apart(several(n, 5, np.random.default_rng([8, n, seed]))) for seed in range(runs)
    )
    assert wrong <= at_most(0.01, 2 * runs, errors=2)


def tells_apart(data):

    return hardly_telling(Sample(data)) is None


def test_shuffling_against_all_orders_of_the_labels():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), 40)
    labels = rng.integers(0, 3, 40)
    result = label_shuffling(calviz.Predictions(probs=probs, labels=labels))
    drawn = [probs[np.arange(40), rng.permutation(labels)].mean() for _ in range(20_000)]
    assert result.of_true == pytest.approx(probs[np.arange(40), labels].mean())
    assert result.shuffled == pytest.approx(np.mean(drawn), abs=5 * result.spread / 20_000**0.5)
    assert result.spread == pytest.approx(np.std(drawn), rel=0.03)
    one = calviz.Predictions(probs=probs[:, 0] * 0.9, labels=labels > 0)
    score, event = one.probs[:, 1], one.labels == 1
    apart = (score[event].mean() - score[~event].mean()) / score.std()
    # The permutation variance divides by n - 1.
    assert label_shuffling(one).effect() == pytest.approx(apart * np.sqrt(39 / 40))


@pytest.mark.slow
def test_slices_of_rare_events_are_not_called_off_by_chance():
    runs, called = 120, 0
    for seed in range(runs):
        rng = np.random.default_rng([9, seed])
        score = rng.beta(0.5, 20, 3_000)
        groups = {"g": rng.integers(0, 30, 3_000)}
        data = calviz.Predictions(probs=score, labels=rng.random(3_000) < score, groups=groups)
        result = usual_slices(Sample(data, "positive"))
        called += bool(result.off)
    assert called <= at_most(USUAL_RATE, runs)


def test_a_slice_that_is_off_is_found_and_counted_in_the_verdict():
    rng = np.random.default_rng(10)
    score, region = rng.uniform(0.2, 0.8, 6_000), rng.choice(list("abcdefghij"), 6_000)
    # One tenth of the rows is off by 15 points, another as much the other way: nothing is off on the whole.
    truth = score + 0.15 * ((region == "c").astype(float) - (region == "d"))
    data = calviz.Predictions(
        probs=score, labels=rng.random(6_000) < truth, groups={"region": region}
    )
    sample = Sample(data, "positive")
    v = judged(sample)
    assert v.direction == "off"
    (f,) = [f for f in findings_of(sample) if f.code == "CAL017"]
    assert f.message.startswith("2 of 20 slices by 'region', 'score' are off beyond chance")
    places = f.short.removeprefix("2 of 20 slices are off beyond chance, most clearly ")
    place, also = places.split("; also off: ")
    # The second is named too, in the same words.
    assert {place[:10], also[:10]} == {"region = c", "region = d"}
    assert f" Also off: {also}." in f.message
    assert v.sentence.endswith(
        f"with 95 % confidence, but 2 of 20 slices are off, most clearly {place}."
    )
    # The title does not say that the scores are off in general; what it says is not said again below it.
    where, size = place.split(": ")
    assert v.headline == f"No fault as a whole, but {size} where {where}"
    assert v.beyond_headline.endswith(" but 2 of 20 slices are off.")
    # Nor is a class that it names, beside slices or as the class that is looked at.
    off = "'a' is about 3.0 points too low on average"
    text = f"No miscalibration found on 9 rows: ECE is below 2 points, but {off} and 2 of 9 slices are off."
    of_class = replace(v, sentence=text, classes_off=(off,), off_in=None, off_where=())
    assert off in of_class.headline
    assert of_class.beyond_headline == "ECE is below 2 points, but 2 of 9 slices are off."
    text = "Probabilities of 'a' too low by 1.6 points (95 % CI 1.4 to 1.9) on 9 rows."
    seen = {"direction": "under", "reduction": "class:a", "score": 0.01, "observed": 0.03}
    times = replace(v, sentence=text, classes_off=(), off_in=None, off_where=(), **seen)
    assert times.headline.startswith("'a' is 3")
    assert times.beyond_headline == "Too low by 1.6 points (95 % CI 1.4 to 1.9)."
    # What is off in two slices each its own way, no single map corrects.
    alone = f"To repair {place[:10]} alone takes a map of its own"
    assert no_fix_words(v) == f"{alone}."
    # Told to somebody who does not know what a slice is, with the group that is meant.
    text = explained(sample, v)
    named = re.search(r"region = (\w)", f.message)[1]
    assert named in "cd"
    assert (
        text[1]
        == "As a whole no fault was found in its probabilities, but 2 of 20 groups of rows are off."
    )
    assert text[2].startswith(
        f"Most clearly off are the {np.sum(region == named):,} rows whose region is {named}: on average it says "
    )
    assert text[2].endswith(f" is to be expected; also off: {also}.")


def test_of_rare_events_their_number_is_said_and_the_ece_as_a_share_of_the_base_rate():
    rng = np.random.default_rng(0)
    score = expit(-6 + 1.5 * rng.normal(size=40_000))
    hit = rng.random(score.size) < score
    v = judged(Sample(calviz.Predictions(probs=score, labels=hit.astype(int)), "positive"))
    assert f" found on {hit.sum()} events in 40,000 rows: ECE is below " in v.sentence
    share = round(100 * v.ece_below / hit.mean())
    assert f" points ({share} % of the base rate) with 95 % confidence" in v.sentence


def test_one_slice_that_alone_is_off_is_named_by_title_sentence_and_first_finding():
    sample = one_region(np.random.default_rng(1), off=1.0)
    v = judged(sample)
    assert v.direction == "under"  # as a whole
    low = re.search(r"about [\d.]+ points too low", v.headline)[0]
    assert v.headline == f"Off where region = 0: {low}; elsewhere no miscalibration found"
    first, whole = v.sentence.split(" All rows together: ")
    rows = sample.data.n - np.sum(sample.data.groups["region"].mask("0"))
    assert first.startswith(
        f"Off where region = 0: {low}. No miscalibration found on the other "
        f"{rows:,} rows: ECE is below "
    )
    assert whole.startswith("forecasts too low by ")
    (f, *_) = findings_of(sample)
    assert f.short == f"1 of 42 slices is off beyond chance, most clearly region = 0: {low}"
    more = sum(s.adjusted <= USUAL_RATE for s in usual_slices(sample).slices) - 1
    assert f"{more} other slices are off only by rows shared with region = 0." in f.message
    # No map of all rows is offered.
    alone = "To repair region = 0 alone takes a map of its own"
    assert no_fix_words(v) == f"{alone}."
    assert v.in_places
    assert not replace(v, in_reverse=True).in_places
    text = explained(sample, v)
    assert (
        text[1]
        == "Outside one group no fault was found in its probabilities, but 1 of 42 groups of rows is off."
    )
    assert text[2].startswith(
        f"Most clearly off are the {sample.data.n - rows:,} rows whose region is 0: "
    )
    assert text[3].startswith("Elsewhere, where it promises")


@pytest.mark.slow
def test_one_slice_is_named_of_clustered_rows_too():
    sample = one_region(np.random.default_rng(1), off=1.0, clusters=3_500)
    v = judged(sample)
    assert re.fullmatch(
        r"Off where region = 0: about 1\d\.\d points too low; elsewhere no miscalibration found",
        v.headline,
    )
    assert re.search(
        r"No miscalibration found on the other 6,\d{3} rows in 3,\d{3} clus", v.sentence
    )
    assert [s.name for s in usual_slices(sample).off] == ["region = 0"]
    # The condition on another column that carries it, in clusters as well.
    pair = judged(one_region(np.random.default_rng(1), n=20_000, short=1.0, clusters=8_000))
    assert pair.headline.startswith("Off where region = 0 and tenure ≤ ")
    # All rows are off alike: no slice is named, alone or beyond the rest.
    alike = one_region(np.random.default_rng(1), all_off=0.3, clusters=3_500)
    assert not judged(alike).off_alone
    assert usual_slices(alike).rest.startswith("too low by ")
    assert not usual_slices(alike).named
    # One region further: it is unlike the rest.
    more = usual_slices(one_region(np.random.default_rng(1), all_off=0.3, off=1.0, clusters=200))
    assert more.headline.startswith("Unlike the rest: region = 0 (about ")


def test_where_a_slice_is_off_for_some_values_of_another_column_both_are_named():
    sample = one_region(np.random.default_rng(1), short=1.0)
    v = judged(sample)
    (region, value), (tenure, range_) = v.off_alone
    assert (region, value, tenure) == ("region", "0", "tenure")
    # The first intervals of the number together.
    assert range_ in sample.data.cuts["tenure"].sides
    assert 1.5 < float(range_.removeprefix("≤ ")) < 2.6
    pair = f"region = 0 and tenure {range_}"
    low = re.search(r"about [\d.]+ points too low", v.headline)[0]
    assert v.headline == f"Off where {pair}: {low}; elsewhere no miscalibration found"
    rows = sample.data.n - np.sum(rows_where(sample.data, v.off_alone))
    assert f"No miscalibration found on the other {rows:,} rows" in v.sentence
    (f, *_) = findings_of(sample)
    assert f.short == f"1 of {v.slices} slices is off beyond chance, most clearly {pair}: {low}"
    assert f"most clearly {pair}: " in f.message
    assert no_fix_words(v).startswith(f"To repair {pair} alone takes ")
    # The slice itself is off through these rows alone, and drawn so.
    tested = usual_slices(sample)
    assert (("region", "0"),) in tested.explained
    drawn = SliceGaps.compute(tested)
    assert f" on these {tested.off[0].rows:,} rows. " in drawn.beyond_headline
    traces = drawn.plot().data
    filled = [t for t in traces if t.name in ("Too high", "Too low")]
    assert sum(len(t.x) for t in filled) == len(tested.off) == 1
    # What is off only by rows of others is counted, not listed.
    assert not any("by rows of others" in t.name for t in traces)
    assert not {s.where for s in drawn.shown} & tested.explained
    assert {s.where for s in tested.slices[len(tested.own) :]} == tested.explained
    assert "by rows of others" not in str(tested.summary().rows)
    assert tested.remark in tested.summary().notes
    # Where all of the slice is off, it alone is named.
    whole = judged(one_region(np.random.default_rng(1), off=1.0, short=0.0))
    assert re.match(r"Off where region = 0: about [\d.]+ points too low; ", whole.headline)


@pytest.mark.parametrize(
    ("how", "said"), [({"off": 1.0}, True), ({"all_off": 0.15}, False), ({"all_off": 0.07}, False)]
)
@pytest.mark.slow
def test_one_slice_is_named_where_it_alone_is_off_and_not_where_all_rows_are_alike(how, said):
    files = 20
    found = [judged(one_region(np.random.default_rng([7, i]), **how)) for i in range(files)]
    alone = sum(bool(v.off_alone) for v in found)
    assert alone >= 0.8 * files if said else alone <= at_most(0.01, files)
    # What is off alike everywhere keeps its title.
    off = [v for v in found if v.beyond_noise]
    assert said or not any(v.headline.startswith("Off where") for v in off)


def test_the_title_names_the_slice_that_holds_most_of_the_error():
    sample = one_region(np.random.default_rng(1), n=20_000, off=1.0, all_off=0.1)
    v = judged(sample)
    low = r"about [\d.]+ points too low"
    rest = re.fullmatch(
        f"Off most where region = 0: {low}; other rows: (too low by .*)", v.headline
    )
    assert v.elsewhere == rest[1]
    assert not v.off_alone
    outside = sample.data.n - np.sum(rows_where(sample.data, usual_slices(sample).off[0].where))
    assert re.match(
        f"Off most where region = 0: {low}[.] .* on the other {outside:,} rows", v.sentence
    )
    assert "All rows together: forecasts too low by" in v.sentence
    assert " rows whose region is 0: on average it says " in " ".join(calviz.explain(sample.data))
    # The other rows hold more of the error: the title is of all rows.
    more = judged(one_region(np.random.default_rng(1), off=0.5, all_off=0.3))
    assert (more.elsewhere, more.headline[:9]) == ("", "Forecasts")


def test_two_slices_are_not_one():
    v = judged(two_slices(np.random.default_rng(3)))
    assert not v.off_alone
    assert v.slices_off >= 2
    first = SliceGaps.compute(usual_slices(two_slices(np.random.default_rng(3)))).headline
    assert first.startswith("Off in 2 slices, most clearly where ")
    assert v.headline == f"{first}; other rows: no miscalibration found"


def test_the_worst_bin_and_mce_are_judged_alike():
    # The largest gap is that of three rows, which says nothing; a bin of 400 rows is off by 20 points.
    score = np.concatenate([np.full(3, 0.93), np.full(400, 0.75), np.full(400, 0.25)])
    hits = np.concatenate([np.arange(3) < 1, np.arange(400) < 220, np.arange(400) < 100])
    data = calviz.Predictions(probs=score, labels=hits)
    e = calviz.evaluate(data, ["mce"], bins=10, reduction="positive", ci=True, findings=True)
    (worst,) = [f for f in e.findings if f.code == "CAL002"]
    assert worst.message.startswith("Furthest off on new rows between 0.7 and 0.8 (400 rows)")
    noise = Written(e["mce"]).noise(tail="upper", verdict=e.verdict)
    assert noise.startswith("within noise: 3 rows from 0.9 to 1.0")
    exact = stats.binomtest(1, 3).proportion_ci(1 - 0.05 / 3)
    assert f"{100 * exact.low:.1f} % to {100 * exact.high:.1f} %" in noise


@pytest.mark.slow
def test_a_p_value_alone_is_said_to_be_alone():
    # One card of a calibrated model is below 0.05 sooner or later; the verdict then says what counts.
    for seed in range(30):
        data = binary(500, np.random.default_rng([11, seed]))
        keys = ["ece", "mcs", "nll", "brier"]
        e = calviz.evaluate(
            data, keys, reduction="positive", ci=True, findings=True, resamples=FEW, seed=seed
        )
        small = [r for r in e if r.noise_floor.p_value <= 0.05]
        if small and not e.verdict.beyond_noise:
            text = Written(small[0]).noise(tail="upper", verdict=e.verdict)
            assert text.startswith("unusual alone (p = 0.0")
            assert text.endswith("not after allowing for all 10 tests")
            return
    raise AssertionError("no p-value below 0.05 in 30 files")


def test_step_down_min_p_by_hand():
    # Four draws of two tests; the sample is the fifth. p-values: 1/5 and 2/5 alone.
    observed = np.array([5.0, 4.0])
    drawn = np.array([[1.0, 2, 3, 4], [1, 2, 3, 5]])
    p, adjusted = westfall_young(observed, drawn, np.ones(2))
    assert p.tolist() == [0.2, 0.4]
    # Least p of each: 1/5 (sample), 1, 4/5, 3/5, 1/5: two of five are at most 1/5. Then the second alone.
    assert adjusted == pytest.approx([0.4, 0.4])
    # With all the weight on the first test, it is hardly adjusted.
    p, adjusted = westfall_young(observed, drawn, np.array([3.0, 1.0]))
    assert adjusted == pytest.approx([0.2, 0.4])


def test_step_down_max_t_by_hand():
    # The sample is the first of five columns.
    p, adjusted = max_t(np.array([[5.0, 1, 2, 3, 4], [4, 1, 2, 3, 5]]))
    assert p.tolist() == [0.2, 0.4]
    # The larger of both reaches 5 in two of five columns; then the second alone.
    assert adjusted == pytest.approx([0.4, 0.4])
    _, adjusted = max_t(np.array([[5.0, 1, 2, 3, 4], [1, 4, 3, 2, 1]]))
    assert adjusted == pytest.approx([0.2, 1])


def test_deviations_are_in_spreads_of_their_own_side():
    values = np.array([[9.0, 3, 4, 4, 5], [2, 2, 2, 2, 2], [1, np.nan, 3, 1, 3]])
    # Mean 5: 4 above; 2, 1 and 1 below, whose root mean square is sqrt 2.
    root = np.sqrt(2)
    assert in_spreads(values) == pytest.approx(
        np.array([[1, root, 1 / root, 1 / root, 0], [0] * 5, [1, 0, 1, 1, 1]])
    )


def test_adjusted_p_values_hold_the_level_where_tests_differ():
    rng = np.random.default_rng(12)
    runs, calls = 400, 0
    for _ in range(runs):
        common = rng.standard_normal((1, 200))
        z = np.abs(0.8 * common + 0.6 * rng.standard_normal((6, 200)))
        _, adjusted = westfall_young(z[:, 0], z[:, 1:], np.array([3.0, 1, 1, 1, 1, 1]))
        calls += adjusted.min() <= 0.05
    assert abs(calls - 0.05 * runs) <= 3.5 * np.sqrt(runs * 0.05 * 0.95)


def test_a_slice_of_the_rows_of_the_worst_bin_has_no_size_of_its_own():
    rng = np.random.default_rng(0)
    p = rng.beta(1.2, 1.2, 8_000)
    band = np.minimum(np.floor(15 * p), 14).astype(int)
    labels = rng.random(p.size) < p - 0.14 * (band == 12)
    for bands, rows in ((band, "the rows between 0.80 and 0.87"), (band // 2, "about ")):
        data = calviz.Predictions(probs=p, labels=labels, groups={"band": bands.astype(str)})
        found = calviz.evaluate(Sample.of(data), findings=True)
        (slice_, bin_) = (f for f in found.findings if f.code in ("CAL017", "CAL002"))
        assert bin_.short.startswith("Furthest off on new rows between 0.80 and 0.87: about 1")
        # Those above a score, which are all of it, are no slice beside it.
        assert slice_.short.startswith("1 of ")
        assert f"most clearly band = {bands[band == 12][0]}: {rows}" in slice_.short
        assert ("on new ones" in slice_.message) == (rows == "about ")


def test_the_worst_bin_is_named_with_its_rows_if_these_are_few():
    rng = np.random.default_rng(3)
    p = np.append(rng.uniform(0, 0.8, 1_500), rng.uniform(0.94, 0.99, 17))
    labels = np.append(rng.random(1_500) < p[:1_500], np.zeros(17, bool))
    found = calviz.evaluate(calviz.Predictions(probs=p, labels=labels), findings=True)
    assert "between 0.93 and 1.00 (17 rows)" in found.verdict.sentence
    (f,) = [f for f in found.findings if f.code == "CAL002"]
    assert f.short.startswith("Furthest off on new rows between 0.93 and 1.00 (17 rows): about ")
    assert f.message.count("17 rows") == 1


def test_the_diagram_names_the_worst_bin_of_the_findings_in_the_same_units():
    # 400 rows are 20 points too high, 60 rows 25: the many are surer, and further outside what noise explains.
    score = np.concatenate([np.full(400, 0.75), np.full(60, 0.95), np.full(400, 0.25)])
    hits = np.concatenate([np.arange(400) < 220, np.arange(60) < 42, np.arange(400) < 100])
    sample = Sample(calviz.Predictions(probs=score, labels=hits), "positive", bins=10)
    (finding,) = [f.message for f in findings_of(sample) if f.code == "CAL002"]
    description = Reliability.compute(sample).describe()
    for text in (finding, description):
        assert "between 0.7 and 0.8" in text
        # The curve through all bins expects more there than was seen: what was seen counts.
        assert "about 20.0 points too high" in text
    # (0.75 400 + 0.95 60 + 0.25 400) / 860 = 53.1 %; (220 + 42 + 100) / 860 = 42.1 %; (80 + 15) / 860 = 11.0 points.
    assert "mean forecast is 53.14 %, the frequency 42.09 %" in description
    assert "calibration error is 11.0 points" in description


@pytest.mark.parametrize(("off", "sentence"), [(1, "on one "), (2, "on 2 ")])
def test_of_one_class_it_is_not_said_that_it_is_off_most(off, sentence):
    # Three classes of 600 rows at confidence 0.8, of which half are right in the first `off`, 80 % in the others.
    n, right = 600, np.where(np.arange(3) < off, 300, 480)
    predicted = np.repeat(np.arange(3), n)
    hit = np.concatenate([np.arange(n) < r for r in right])
    miss = (predicted + 1 + np.arange(3 * n) % 2) % 3
    probs = np.full((3 * n, 3), 0.1)
    probs[np.arange(3 * n), predicted] = 0.8
    data = calviz.Predictions(probs=probs, labels=np.where(hit, predicted, miss))
    (message,) = [f.message for f in findings_of(Sample(data)) if f.code == "CAL020"]
    assert f"overconfident {sentence}" in message
    assert ("furthest where it says" in message) is (off > 1)
    assert "where it says" in message


def test_two_rows_of_many_are_not_no_rows():
    rng = np.random.default_rng(0)
    score = rng.random(9_999)
    ids = [f"r{i}" for i in range(9_999)]
    ids[-1] = ids[0]
    splits = np.where(np.arange(9_999) < 5_000, "fit", "test")
    data = calviz.Predictions(probs=score, labels=rng.random(9_999) < score, ids=ids, splits=splits)
    (message,) = [f.message for f in findings_of(Sample(data)) if f.code == "CAL011"]
    assert message.startswith("2 rows (0.02 %)")


def test_the_verdict_counts_the_classes_against_the_rest_that_are_off():
    # The top label is right in 60 % as it says; of the others one is given 35 % and the other 5 %, and each is true in 20 %.
    probs = np.tile([0.6, 0.35, 0.05], (2_000, 1))
    labels = np.repeat([0, 1, 2], [1_200, 400, 400])
    sample = Sample(calviz.Predictions(probs=probs, labels=labels))
    assert classes_off(sample) == (
        "2 of 3 classes against the rest are off, furthest beyond noise '2', about 15.0 points too low on average",
    )
    (message,) = [f.message for f in findings_of(sample) if f.code == "CAL023"]
    assert message.startswith("Of 3 classes against the rest, 1 is too high and 1 is too low")


# ---- What is said of classes, by simulation with known truth: CAL012, CAL013, CAL020, CAL023


CODES = ("CAL012", "CAL013", "CAL020", "CAL021", "CAL022", "CAL023")


def model(n, k, seed, concentration=0.3, sharpen=1.0):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(k, concentration), n)
    labels = draw_labels(probs, rng)
    probs = np.maximum(probs, 1e-300) ** sharpen
    return calviz.Predictions(probs=probs / probs.sum(axis=1, keepdims=True), labels=labels)


def findings(data, codes=CODES, reduction=None):
    return [f for f in findings_of(Sample(data, reduction, resamples=200)) if f.code in codes]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "k", "concentration"),
    [(200, 2, 0.3), (1_000, 2, 0.03), (500, 10, 0.1), (2_000, 10, 0.02), (1_000, 100, 0.05)],
)
def test_ranges_hold_all_classes_of_a_calibrated_model(n, k, concentration):
    # Labels redrawn many times: a class of any view is outside in at most the share of files that it may.
    rng = np.random.default_rng(5)
    probs = rng.dirichlet(np.full(k, concentration), n)
    base = Sample(calviz.Predictions(probs=probs, labels=np.zeros(n, int)))
    ranges = {view: class_ranges(base, view=view).range for view in get_args(ClassView)}
    winner, confidence = probs.argmax(1), probs.max(1)
    files, outside = 600, dict.fromkeys(get_args(ClassView), 0)
    for _ in range(files):
        y = draw_labels(probs, rng)
        gap = confidence - (winner == y)
        with np.errstate(invalid="ignore"):
            values = {
                view: np.bincount(by, gap, minlength=k) / np.bincount(by, minlength=k)
                for view, by in (("predicted-class", winner), ("true-class", y))
            }
        values["one-vs-rest"] = probs.mean(0) - np.bincount(y, minlength=k) / n
        for view, (low, high) in ranges.items():
            outside[view] += bool(((values[view] < low) | (values[view] > high)).any())
    # Three standard errors above the level of one test.
    limit = CLASS_TEST * files + 3 * (CLASS_TEST * files) ** 0.5 + 1
    assert max(outside.values()) <= limit, outside


@pytest.mark.slow
def test_calibrated_files_get_no_statement_about_classes_labels_or_dependence():
    spoken = [
        f
        for seed in range(20)
        for n, k, c in ((400, 2, 0.5), (600, 5, 0.1), (500, 30, 0.3))
        for f in findings(model(n, k, seed, c))
    ]
    # A hundredth of files; two of sixty have a probability of 12 %, three of 2 %.
    assert pytest.approx(6 * CLASS_TEST) == CLASSES
    assert len(spoken) <= 2, spoken


def test_cal020_names_the_predicted_class_that_is_off_and_the_page_agrees():
    q = model(4_000, 5, 1)
    rng = np.random.default_rng(2)
    # Where the model says class 2, a third of the labels go elsewhere.
    labels = q.labels.copy()
    moved = (q.probs.argmax(1) == 2) & (rng.random(q.n) < 1 / 3)
    labels[moved] = rng.choice([0, 1, 3, 4], int(moved.sum()))
    data = calviz.Predictions(probs=q.probs, labels=labels, class_names=tuple("abcde"))
    (finding,) = findings(data, ("CAL020",))
    rows = q.probs.argmax(1) == 2
    assert finding.message.startswith("Of 5 predicted classes the model is overconfident on one ")
    assert f"says 'c' ({rows.sum():,} rows)" in finding.message
    assert f"mean confidence {100 * q.probs.max(1)[rows].mean():.1f} %" in finding.message
    assert f"accuracy {100 * (labels == 2)[rows].mean():.1f} %" in finding.message
    figure = calviz.figures.ClassBars.compute(data, mode="predicted-class", resamples=50)
    assert np.flatnonzero(figure.over).tolist() == [2]
    assert figure.shares().startswith("Of 5 predicted classes, 1 is overconfident ('c')")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("moved", "said"),
    [
        ((-0.2, 0), "Forecasts up to 0.5 are too low beyond noise ("),
        ((0, 0.2), "Forecasts above 0.5 are too high beyond noise ("),
        (
            (-0.2, 0.3),
            "Forecasts up to 0.5 are too low and above 0.5 are too high beyond noise, furthest above 0.5 (",
        ),
        (
            (0.1, 0.3),
            "Forecasts on both sides of 0.5 are too high beyond noise, furthest above 0.5 (",
        ),
    ],
)
def test_of_one_event_it_is_said_which_forecasts_are_off_not_which_predicted_classes(moved, said):
    rng = np.random.default_rng(0)
    p = np.concatenate([rng.uniform(0.1, 0.4, 3_000), rng.uniform(0.6, 0.9, 3_000)])
    above = p > 0.5
    labels = rng.random(6_000) < p - np.where(above, moved[1], moved[0])
    data = calviz.Predictions(probs=p, labels=labels)
    found = {f.code: f for f in findings_of(Sample(data, "positive"))}
    assert found["CAL020"].message.startswith(said)
    rows = above if "above 0.5 (" in said or moved[0] == 0 else ~above
    forecast, frequency = 100 * p[rows].mean(), 100 * labels[rows].mean()
    words = found["CAL020"].message.replace("\u00a0", " ").replace("\u2212", "-")
    numbers = r"\((\S+) rows\): mean forecast (\S+) % but frequency (\S+) %, a difference of (\S+) points .* show (\S+) to (\S+)\."
    n, *shares, gap, low, high = (
        float(x.replace(",", "")) for x in re.search(numbers, words).groups()
    )
    assert n == rows.sum()
    assert [*shares, gap] == pytest.approx([forecast, frequency, forecast - frequency], abs=0.051)
    assert low < 0 < high
    assert not any(re.search("(predicted|true) class", f.message) for f in found.values())
    top = {f.code: f.message for f in findings_of(Sample(data, "top-label"))}
    assert top["CAL020"].startswith("Of 2 predicted classes the model is overconfident on ")


def test_cal020_is_said_of_confidence_only_data_with_predicted_classes():
    rng = np.random.default_rng(0)
    confidence, predicted = rng.uniform(0.5, 1, 3_000), rng.integers(0, 3, 3_000)
    correct = rng.random(3_000) < confidence - 0.2 * (predicted == 1)
    data = calviz.ConfidencePredictions(
        confidence=confidence, correct=correct, predicted=predicted, class_names=tuple("abc")
    )
    (finding,) = findings(data, CODES)
    assert finding.code == "CAL020"
    assert "says 'b'" in finding.message
    for view in ("true-class", "one-vs-rest"):
        with pytest.raises(NotAvailable):
            class_ranges(Sample(data), view=view)
    assert one_vs_rest(Sample(data)) is None
    assert of_what(Sample(data)) == " of the top label"


def hidden(seed, n=3_000):
    """The top label exact; of what is left, each other class has another one's share."""
    rng = np.random.default_rng(seed)
    q = rng.dirichlet(np.full(5, 0.5), n)
    labels = draw_labels(q, rng)
    order = np.argsort(-q, axis=1)
    probs = q.copy()
    others = np.take_along_axis(q, order[:, 1:], axis=1)
    np.put_along_axis(probs, order[:, 1:], np.roll(others, 1, axis=1), axis=1)
    return calviz.Predictions(probs=probs, labels=labels), q


@pytest.mark.slow
def test_cal012_sees_other_classes_that_are_off_behind_an_exact_top_label():
    spoken = 0
    for seed in range(10):
        data, q = hidden(seed)
        np.testing.assert_allclose(data.probs.max(1), q.max(1))
        statements = findings(data, ("CAL012",))
        spoken += any("class-wise ECE" in f.message for f in statements)
        assert of_what(Sample(data)) == " of the top label"
    assert spoken >= 9
    assert of_what(Sample(model(3_000, 5, 0, 0.5))) == ""


@pytest.mark.slow
def test_cal012_sees_two_classes_whose_errors_cancel_in_the_top_label():
    # Forecasts that are shifted: too sure of one class as often as not sure enough of the other.
    spoken = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        e = rng.normal(0, 1.5, 3_000)
        y = (rng.random(3_000) < 1 / (1 + np.exp(0.35 - e))).astype(int)
        data = calviz.Predictions(probs=1 / (1 + np.exp(-e)), labels=y)
        statements = findings(data, ("CAL012", "CAL023"), "top-label")
        spoken += "CAL023" in {f.code for f in statements}
    assert spoken == 8


def test_large_data_are_judged_on_some_rows_and_it_is_said(monkeypatch):
    monkeypatch.setattr("calviz.verdicts.data_checks.MOST_ROWS", 2_000)
    data, _ = hidden(0)
    result = one_vs_rest(Sample(data))
    assert result.rows == 2_000
    assert "(judged on 2,000 of 3,000 rows drawn at random)" in result.words


@pytest.mark.slow
def test_the_verdict_says_what_it_is_about_and_which_classes_are_off():
    data, _ = hidden(0)
    sentence = calviz.verdict(data).sentence
    assert sentence.startswith("No miscalibration of the top label found on")
    assert "but the probabilities of all classes are off" in sentence
    assert calviz.verdict(data).direction == "off"
    calm = calviz.verdict(model(3_000, 5, 0, 0.5))
    assert calm.sentence.startswith("No miscalibration found on")
    assert calm.classes_off == ()


def test_the_value_that_is_said_to_be_outside_differs_from_the_ends_that_are_said():
    # In points 0.79 against 0.76: with one decimal both are 0.8.
    value, low, high = outside_range(0.0079, -0.0462, 0.0076)
    assert (value, low, high) == ("0.79", "−4.62", "0.76")
    assert outside_range(-0.0521, -0.0463, 0.0076) == ("−5.2", "−4.6", "0.8")


def many_classes(rows_per_class, k=60, seed=0):
    """Calibrated confidences of k predicted classes with so many rows each; the rest is spread evenly."""
    rng = np.random.default_rng(seed)
    predicted = np.repeat(np.arange(k), rows_per_class)
    confidence = rng.uniform(0.4, 0.95, predicted.size)
    probs = np.repeat((1 - confidence)[:, None] / (k - 1), k, axis=1)
    probs[np.arange(predicted.size), predicted] = confidence
    other = (predicted + rng.integers(1, k, predicted.size)) % k
    labels = np.where(rng.random(predicted.size) < confidence, predicted, other)
    return calviz.Predictions(probs=probs, labels=labels)


@pytest.mark.parametrize("rows", [3, 12, 25])
def test_classes_of_few_rows_are_said_to_show_only_large_gaps(rows):
    data = many_classes(rows)
    figure = calviz.figures.ClassBars.compute(data, mode="predicted-class", resamples=50)
    assert not figure.beyond.any()
    text = figure.shares()
    assert f"; with a median of {rows} rows a class, half of the classes could" in text
    # The same words on page and report, and at the end of the verdict.
    words = text.removesuffix(".").split("; ")[1]
    assert headline([figure])[0].endswith(f"; {words}.")
    verdict = calviz.verdict(data)
    assert verdict.sentence.removesuffix(".").split("; ")[1] == words
    # What is said holds: whatever the labels, the share of classes that can be outside.
    sums = Sample(data).view(predicted_class_sums)
    low, high = figure.band
    mean = sums.score / sums.rows
    gaps = mean[:, None] - np.arange(rows + 1) / rows  # of every number of hits
    outside = (gaps > high[:, None] + 1e-6) | (gaps < low[:, None] - 1e-6)
    smallest = np.where(outside, np.abs(gaps), np.inf).min(axis=1)
    if "above" in words:
        limit = float(re.search(r"above (\d+) points", words)[1]) / 100
        assert np.count_nonzero(smallest > limit) >= 30
    else:
        assert np.count_nonzero(np.isinf(smallest)) >= 30


def test_classes_of_many_rows_are_not_said_to():
    data = many_classes(400, k=8)
    figure = calviz.figures.ClassBars.compute(data, mode="predicted-class", resamples=50)
    assert figure.shares() == (
        "None of 8 predicted classes is outside the range that a calibrated model would show."
    )
    assert "median" not in calviz.verdict(data).sentence


# ---- How far a class may be off: the levels, and the ranges that follow from them, by formula


def test_the_shares_are_those_of_a_file():
    assert pytest.approx(levels.FILE) == levels.OVERALL + levels.CLASSES + levels.SLICES
    assert (
        pytest.approx(levels.SLICES)
        == USUAL_RATE + levels.SEGMENTS + levels.CHANGES + levels.WITHIN
    )
    assert pytest.approx(levels.CLASSES) == 6 * levels.CLASS_TEST
    assert pytest.approx(levels.CLASS_TEST) == 3 * levels.ONE_VS_REST_TEST
    assert levels.class_level(4) == pytest.approx(1 - 0.01 / 6 / 4)


def ranges(probs, n):
    labels = np.arange(n) % len(probs)
    data = calviz.Predictions(probs=np.tile(probs, (n, 1)), labels=labels)
    return class_ranges(Sample(data, "top-label"), view="one-vs-rest").range


def test_equal_chances_have_a_normal_range():
    # No skewness: z standard deviations of a share, and half a row for what is whole. A third of a sixth of 1 % of files, two classes, two sides.
    n = 10_000
    low, high = ranges([0.5, 0.5], n)
    wanted = norm.isf(0.01 / 6 / 3 / 2 / 2) * np.sqrt(0.25 / n) + 0.5 / n
    np.testing.assert_allclose(high, wanted, rtol=1e-6)
    np.testing.assert_allclose(low, -wanted, rtol=1e-6)


def test_rare_classes_have_the_range_of_a_binomial():
    n, p = 1_000, np.array([0.04, 0.06, 0.9])
    low, high = ranges(p, n)
    tail = 0.005 / 3 / 2  # of three classes, out of the level of the verdict
    # Labels of the class above what is expected make the gap negative.
    np.testing.assert_allclose(low, p - binom.isf(tail, n, p) / n, atol=1.1 / n)
    np.testing.assert_allclose(high, p - binom.ppf(tail, n, p) / n, atol=1.1 / n)


@pytest.mark.parametrize(
    ("n", "base", "shift"), [(60, 4.6, 0), (300, -4.6, 0), (300, 0, 0.3), (300, 0, 0)]
)
def test_the_error_has_one_upper_bound_wherever_it_is_said(n, base, shift):
    for seed in range(12):
        rng = np.random.default_rng([7, n, seed])
        z = base + rng.normal(0, 1, n)
        hit = rng.random(n) < 1 / (1 + np.exp(-z - shift))
        data = calviz.Predictions(probs=1 / (1 + np.exp(-z)), labels=hit.astype(int))
        sample = Sample(data, "positive", resamples=FEW)
        key = sample.ece_key
        e, below = evaluate(sample, [key, "mcs"], ci=True), collect_evidence(sample).ece_below
        if e[key].interval is None:
            continue
        assert e[key].interval.high == below
        assert Reliability.compute(sample).ece_interval == e[key].interval
        # An error is never below the mean of its gaps.
        assert below >= max(map(abs, e["mcs"].interval or (0,)))


def test_a_predicted_class_is_not_said_to_be_off_where_a_condition_within_it_is():
    found = 0
    for seed in range(5):
        sample = of_classes(np.random.default_rng(seed), pair=0.12).but(resamples=199)
        v = judged(sample)
        found += not v.beyond_noise and bool(ranges_of(sample, "predicted-class").beyond.any())
        assert re.search(r"where predicted class = 1 and channel = 0(: about |$)", v.headline)
        assert not v.classes_off
    assert found  # the class of the condition would be said to be off
    v = judged(of_classes(np.random.default_rng(1), of_class=0.09, classes=20).but(resamples=199))
    assert v.headline.startswith("No fault as a whole, but 1 of 20 predicted classes is off, ")


def test_a_slope_has_its_interval_and_a_remark_how_many_scores_were_moved_for_it():
    rng = np.random.default_rng(0)
    z = rng.normal(size=2_000)
    p = expit(2 * z).round(2)
    data = calviz.Predictions(probs=p, labels=rng.random(2_000) < expit(z))
    sample = Sample(data, "positive", resamples=FEW)
    slope = calviz.evaluate(sample, ["calibration_slope"], ci=True)["calibration_slope"]
    low, high = slope.interval
    ends = int(((p == 0) | (p == 1)).sum())
    assert ends > 0
    said = f"(slope {slope.value:.2f}, 95 % CI {low:.2f} to {high:.2f})"
    assert said in judged(sample).sentence.replace("\u00a0", " ")
    assert at_ends(slope) == f"{ends} scores of 0 or 1 moved inwards by 0.005."


def test_no_size_is_said_of_all_other_rows_where_one_class_is_off():
    rng = np.random.default_rng(3)
    truth = rng.dirichlet([1, 1, 1], 12_000) * 0.9 + 0.1 / 3
    labels = (truth.cumsum(axis=1) < rng.random((12_000, 1))).sum(axis=1)
    region = rng.integers(0, 5, 12_000)
    sharper = np.where(region == 0, 2.5, np.where(truth.argmax(axis=1) == 2, 1.5, 1.0))
    probs = truth ** sharper[:, None]
    data = calviz.Predictions(
        probs=probs / probs.sum(axis=1, keepdims=True),
        labels=labels,
        groups={"region": Factor(region, tuple("ABCDE"))},
        class_names=("a", "b", "c"),
    )
    v = judged(Sample.of(data))
    assert v.headline.startswith("Off most where region = A: ")
    assert v.elsewhere == "1 of 3 predicted classes is off, 'c'"
    assert "On the other 9,654 rows, 1 of 3 predicted classes is off, 'c'." in v.sentence


def test_the_verdict_of_all_rows_names_no_slice():
    rng = np.random.default_rng(4)
    score, region = rng.uniform(0.1, 0.9, 6_000), np.arange(6_000) % 12
    data = calviz.Predictions(
        probs=score,
        labels=(rng.random(6_000) < score - 0.1 * (region == 0)).astype(int),
        groups={"region": region},
    )
    verdict = judged(Sample(data))
    assert "region" in verdict.headline
    of_all = of_all_rows(verdict, Sample(data))
    assert of_all.headline == "No miscalibration found on 6,000 rows"
    assert of_all.beyond_headline.startswith("ECE is below")
    assert "region" not in of_all.sentence


def _of_rate(n: int, rate: float) -> Sample:
    rng = np.random.default_rng(1)
    p = np.clip(rng.beta(1, 1 / rate - 1, n), 0.001, 0.999)
    return Sample.of(calviz.Predictions(probs=p, labels=rng.random(n) < p), reduction="positive")


def test_few_events_are_too_few_and_are_counted_in_the_headline():
    few, more = judged(_of_rate(144, 0.05)), judged(_of_rate(3_000, 0.05))
    assert re.fullmatch(r"\d+ events in 144 rows are too few to tell", few.headline)
    assert (few.direction, more.direction) == ("undecided", "calibrated")
    assert re.fullmatch(r"No miscalibration found on \d+ events in 3,000 rows", more.headline)


def test_a_headline_says_which_classes_are_off_and_the_words_below_do_not_again():
    v = judged(Sample.of(_halved(np.random.default_rng(3))))
    assert v.headline == "Off in places: 1 of 4 predicted classes is off, 'hate'"
    assert v.beyond_headline.endswith("and the probabilities of all classes are off.")
    assert not re.search("predicted class|Brier", v.beyond_headline)


def _halved(rng: np.random.Generator) -> calviz.Predictions:
    """Four classes, of which the probability of one is half of what it should be."""
    true = softmax(rng.normal(size=(3_000, 4)) * 1.6 + np.log([0.7, 0.2, 0.08, 0.03]), axis=1)
    probs = true * [1, 1, 0.5, 1]
    labels = (rng.random((3_000, 1)) > true.cumsum(axis=1)).sum(axis=1).clip(0, 3)
    names = ("ok", "spam", "hate", "harm")
    return calviz.Predictions(
        probs=probs / probs.sum(axis=1, keepdims=True), labels=labels, class_names=names
    )


def test_the_second_of_two_slices_is_named_beside_the_one_in_the_headline():
    rng = np.random.default_rng(0)
    score, region = rng.uniform(0.2, 0.6, 6_000), rng.choice(list("abcdefghij"), 6_000)
    truth = score + 0.3 * (region == "c") + 0.15 * (region == "d")
    data = calviz.Predictions(
        probs=score, labels=rng.random(6_000) < truth, groups={"region": region}
    )
    sample = Sample(data, "positive")
    v = judged(sample)
    assert v.headline.startswith("Off in 2 slices, most clearly where region = c: about ")
    assert v.headline.endswith("; other rows: no miscalibration found")
    (also,) = (f.short for f in where_to_look(calviz.evaluate(sample, findings=True)))
    assert re.fullmatch(r"Also off: region = d: about 1\d\.\d points too low", also)
    # In plain words, too: what is said of the other rows is not true of these.
    said = explained(sample, v)[2]
    assert said.endswith(f"; a{also[1:]}; other rows: no miscalibration found.")


def test_a_headline_writes_the_accuracy_with_the_decimals_of_the_table_and_of_the_picture():
    rng = np.random.default_rng(0)
    score = rng.uniform(0.6, 1, 4_000)
    right = rng.random(4_000) < score - 0.1
    data = calviz.Predictions(probs=np.c_[1 - score, score], labels=right.astype(int))
    sample = Sample(data, reduction="top-label")
    evaluation = calviz.evaluate(sample, ["accuracy"], findings=True)
    verdict = evaluation.verdict
    accuracy = Written(evaluation["accuracy"], verdict).value.replace("\u00a0", " ")
    assert accuracy == "69.65 %"
    assert f"right in {accuracy}" in verdict.headline.replace("\u00a0", " ")
    assert f"the accuracy {accuracy}" in Reliability.compute(sample).describe().replace(
        "\u00a0", " "
    )
