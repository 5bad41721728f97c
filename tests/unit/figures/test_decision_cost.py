"""The cost of decisions, by hand and against plain loops."""

import math
import re

import numpy as np
import pytest
from scipy.optimize import isotonic_regression

import calviz
from calviz.core.errors import OptionError
from calviz.figures.decision_cost import Costs, Decision, best_threshold
from calviz.sample.sample import Sample
from calviz.sample.step_views import top_label_steps


def data(confidence, correct, **own):
    return calviz.ConfidencePredictions(
        confidence=np.asarray(confidence), correct=np.asarray(correct, dtype=bool), **own
    )


def drawn(n=400, seed=0, decimals=8):
    """Overconfident: the chance of being right is the squared confidence."""
    rng = np.random.default_rng(seed)
    confidence = np.round(rng.beta(4, 1, size=n), decimals)
    return confidence, rng.random(n) < confidence**2


def plain_cost(confidence, correct, threshold, costs):
    total = 0.0
    for score, right in zip(confidence, correct, strict=True):
        if score < threshold:
            total += costs.referred
        else:
            total += costs.right if right else costs.wrong
    return total / len(confidence)


def test_by_hand():
    # Wrong 1, referred 0.3: at face value 0.7 and more is kept, three rows with one error: (1 + 0.3) / 4.
    # Best is to keep the two at the top: (0.3 + 0.3) / 4. Keeping all costs 1 / 4, referring all 0.3.
    figure = Decision.compute(
        data([0.9, 0.8, 0.7, 0.6], [1, 1, 0, 1]), wrong=1, referred=0.3, right=0
    )
    assert figure.face.threshold == pytest.approx(0.7)
    assert (figure.face.kept, figure.face.referred) == (3, 1)
    assert figure.face.accuracy == pytest.approx(2 / 3)
    assert figure.face.cost == pytest.approx(1.3 / 4)
    assert figure.best.threshold == pytest.approx(0.75)
    assert (figure.best.kept, figure.best.accuracy) == (2, 1)
    assert figure.best.cost == pytest.approx(0.6 / 4)
    assert figure.keep_all.cost == pytest.approx(1 / 4)
    assert figure.refer_all.cost == pytest.approx(0.3)
    assert figure.excess == pytest.approx(0.7 / 4)
    assert "50.0 % of them referred; referring everything costs 300." in figure.reading()
    # Four rows are too few to be sure of it.
    assert "clear of chance: 175 per 1,000 predictions" in figure.reading()


def test_a_cost_for_being_right_moves_the_face_value():
    # Keeping pays where conf * 1 + (1 - conf) * 9 <= 3: from 0.75 on.
    costs = Costs(wrong=9, referred=3, right=1)
    assert costs.face_value == pytest.approx(0.75)
    figure = Decision.compute(data([0.8, 0.76, 0.7], [1, 0, 1]), wrong=9, referred=3, right=1)
    assert figure.face.kept == 2
    assert figure.face.cost == pytest.approx((1 + 9 + 3) / 3)
    assert figure.best.cost == pytest.approx((1 + 3 + 3) / 3)


def test_ends_of_the_range():
    p = data([0.9, 0.6], [1, 0])
    # A referral dearer than a mistake: nothing is referred; one that costs nothing: everything but certainty.
    assert Decision.compute(p, wrong=1, referred=2).face.kept == 2
    free = Decision.compute(p, wrong=1, referred=0)
    assert (free.face.threshold, free.face.kept, free.face.cost) == (1, 0, 0)
    # A referral that costs less than a right prediction: not even certainty is kept.
    paid = Decision.compute(data([1.0], [1]), wrong=1, referred=-1)
    assert (paid.face.kept, paid.face.cost) == (0, -1)
    assert math.isinf(paid.face.threshold)
    assert "nothing is kept" in paid.reading()
    assert "everything costs" not in paid.reading()


@pytest.mark.parametrize("decimals", [8, 1])
@pytest.mark.parametrize("costs", [Costs(10, 1, 0), Costs(3, 1, -1), Costs(1, 0.5, 0)])
def test_against_plain_loops(costs, decimals):
    confidence, correct = drawn(200, decimals=decimals)
    other, hits = drawn(150, seed=1, decimals=decimals)
    splits = np.repeat(["test", "calibration"], [200, 150])
    p = data(np.r_[confidence, other], np.r_[correct, hits], splits=splits)
    figure = Decision.compute(
        p,
        wrong=costs.wrong,
        referred=costs.referred,
        right=costs.right,
        split="test",
        choose_split="calibration",
    )
    assert figure.n == 200
    # Brute force over every cut between two scores of the rows to choose on.
    scores = np.unique(other)
    cuts = [0.0, *((scores[1:] + scores[:-1]) / 2), math.inf]
    on_others = [plain_cost(other, hits, t, costs) for t in cuts]
    assert plain_cost(other, hits, figure.best.threshold, costs) == pytest.approx(min(on_others))
    for rule in figure.rules.values():
        assert rule.cost == pytest.approx(plain_cost(confidence, correct, rule.threshold, costs))
        assert rule.kept == np.count_nonzero(confidence >= rule.threshold)
    for t, cost in zip(figure.threshold[::20], figure.cost[::20], strict=True):
        assert cost == pytest.approx(plain_cost(confidence, correct, t, costs))


def test_of_equal_costs_the_one_that_refers_least():
    # Of the last two rows one is wrong: keeping both costs as much as referring both.
    view = Sample(data([0.9, 0.5, 0.4], [1, 0, 1])).view(top_label_steps)
    assert best_threshold(view, Costs(wrong=2, referred=1, right=0)) == 0.0


def test_single_precision_meets_its_own_face_value():
    p = data(np.array([0.9, 0.5], dtype=np.float32), [1, 0])
    assert Decision.compute(p, wrong=10, referred=1).face.kept == 1


def test_nothing_is_lost_by_a_calibrated_model():
    # Chance of being right = confidence: the best rule is the one at face value.
    rng = np.random.default_rng(0)
    confidence = rng.uniform(0.5, 1, 400_000)
    p = data(confidence, rng.random(400_000) < confidence)
    figure = Decision.compute(p, wrong=10, referred=2, band=False)
    assert figure.best.threshold == pytest.approx(0.8, abs=0.02)
    # E[min(referred, 10 (1 - c))]: 2 below 0.8 (60 % of the rows), 1 on average above.
    assert figure.face.cost == pytest.approx(0.6 * 2 + 0.4 * 1, abs=0.01)
    assert abs(figure.excess) < 0.005


def test_what_overconfidence_costs_in_closed_form():
    # Uniform confidence, right with c²; costs 1 and 1/4. Face value keeps from 3/4 on: the mistakes there are
    # the integral of 1 - c²; best is to keep where 1 - c² <= 1/4.
    rng = np.random.default_rng(1)
    confidence = rng.random(400_000)
    p = data(confidence, rng.random(400_000) < confidence**2)
    figure = Decision.compute(p, wrong=1, referred=0.25)

    def cost(t):
        return t / 4 + (1 - t) - (1 - t**3) / 3

    best = math.sqrt(0.75)
    assert figure.face.cost == pytest.approx(cost(0.75), abs=0.002)
    assert figure.best.cost == pytest.approx(cost(best), abs=0.002)
    assert figure.excess == pytest.approx(cost(0.75) - cost(best), abs=0.002)
    low, high = figure.excess_interval
    assert 0 < low < figure.excess < high
    assert "So miscalibration costs 1" in figure.reading()


@pytest.mark.usefixtures("usual_resamples")
def test_intervals_are_those_of_resampled_rows():
    confidence, correct = drawn(300)
    figure = Decision.compute(data(confidence, correct), wrong=5, referred=1)
    costs, rng = figure.costs, np.random.default_rng(7)
    cost = {
        name: np.where(
            confidence >= rule.threshold,
            np.where(correct, costs.right, costs.wrong),
            costs.referred,
        )
        for name, rule in figure.rules.items()
    }
    rows = rng.integers(300, size=(4_000, 300))
    for name, rule in figure.rules.items():
        if name == "refer everything":
            assert rule.interval is None  # it always costs the same
            continue
        low, high = np.quantile(cost[name][rows].mean(axis=1), [0.025, 0.975])
        assert rule.interval == pytest.approx((low, high), abs=0.08 * (high - low))
    at = figure.threshold.size // 2
    kept = np.where(confidence >= figure.threshold[at], np.where(correct, 0, 5), 1)
    low, high = np.quantile(kept[rows].mean(axis=1), [0.025, 0.975])
    assert figure.band[0][at] == pytest.approx(low, abs=0.08 * (high - low))
    assert figure.band[1][at] == pytest.approx(high, abs=0.08 * (high - low))


@pytest.mark.usefixtures("usual_resamples")
def test_the_interval_of_the_difference_allows_for_the_choice():
    # Every cut of all rows is a threshold, chosen again in each resample; the truth where the face value is right: isotonic, clamped.
    confidence, correct = drawn(150, seed=3)
    costs = Costs(5, 1, 0)
    figure = Decision.compute(data(confidence, correct), wrong=5, referred=1)
    order = np.argsort(confidence)
    kept = np.arange(150) >= np.arange(151)[:, None]
    face = confidence[order] >= 0.8

    def gains(right):
        more = np.where(right, costs.right, costs.wrong) - costs.referred
        return ((face.astype(float) - kept) @ more.T).T / 150

    observed = gains(correct[order])
    rng = np.random.default_rng(5)
    fitted = isotonic_regression(correct[order].astype(float)).x
    if_right = np.where(face, np.maximum(fitted, 0.8), np.minimum(fitted, 0.8))
    drift = ((face.astype(float) - kept) @ (5 * (1 - if_right) - 1)) / 150
    more = np.where(correct[order], 0.0, 5.0) - 1
    times = rng.multinomial(150, np.full(150, 1 / 150), size=4_000)
    resampled = (times * more) @ (face.astype(float) - kept).T / 150
    chosen_again = resampled.max(axis=1)
    chance = (resampled - observed + drift).max(axis=1)
    first, last = np.quantile(chosen_again, [0.025, 0.975])
    lost = chance.mean()
    low = max(0, min(observed.max() - np.quantile(chance, 0.975), first - lost))
    high = max(observed.max() - np.quantile(chance, 0.025), last - lost)
    assert figure.excess == pytest.approx(observed.max())
    assert figure.excess_interval == pytest.approx((low, high), abs=0.1 * (high - low))


def test_a_threshold_chosen_elsewhere_may_be_worse_and_is_said_to_be():
    p = data([0.9, 0.8, 0.7, 0.9, 0.8, 0.7], [1, 0, 0, 1, 1, 1], splits=["cal"] * 3 + ["test"] * 3)
    figure = Decision.compute(p, wrong=1, referred=0.3, split="test", choose_split="cal")
    assert figure.best.kept == 1
    assert figure.excess == pytest.approx(-0.6 / 3)
    assert "nothing that is clear of chance: −200 per" in figure.reading()


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan, math.inf])
def test_costs_that_make_no_sense(wrong):
    with pytest.raises(OptionError, match="wrong"):
        Decision.compute(data([0.9, 0.8], [1, 0]), wrong=wrong, right=0.0)


def test_several_curves():
    one, two = (Decision.compute(data(*drawn(seed=s), name=f"<b>{s}</b>")) for s in (0, 1))
    names = [t.name for t in one.plot(others=[two], caption=True, width=350).data if t.name]
    assert {"&lt;b&gt;0&lt;/b&gt;", "&lt;b&gt;1&lt;/b&gt;", "Refer everything"} <= set(names)
    with pytest.raises(OptionError, match="different costs"):
        one.plot(others=[Decision.compute(data(*drawn()), wrong=2)])


def test_many_rows_are_light():
    figure = Decision.compute(data(*drawn(200_000)))
    assert len(figure.plot(caption=True).to_json()) < 60_000


def test_a_sample_keeps_the_costs_and_chooses_on_another(monkeypatch):
    sample = Sample(data(*drawn()))
    others = Sample(data(*drawn(seed=1)))
    costs = Costs(10, 1)
    figure = Decision.of_rows(sample, others, costs=costs)
    plain = Decision.of_rows(sample.data, others.data, costs=costs)
    assert (figure.best, figure.excess_interval) == (plain.best, plain.excess_interval)
    monkeypatch.setattr(
        "calviz.figures.decision_cost.best_threshold", None
    )  # nothing is computed again
    monkeypatch.setattr("calviz.figures.decision_cost.cost_at", None)
    assert Decision.of_rows(sample, others, costs=costs) is figure


def test_the_difference_that_is_written_is_that_of_the_costs_beside_it():
    number = r"(−?[\d.,]*\d)"
    numbers = re.compile(f"cost {number},.* they cost {number},.* {number} per", re.DOTALL)
    for seed in range(12):
        text = Decision.compute(data(*drawn(n=700, seed=seed)), band=False).reading()
        if match := numbers.search(text):
            face, best, excess = (
                float(v.replace("−", "-").replace(",", "")) for v in match.groups()
            )
            assert face - best == pytest.approx(excess)


def test_a_threshold_of_other_rows_has_the_interval_of_its_own_gain_whether_or_not_they_are_a_split():
    """A map divides the rows without splits: the interval was that of the best of all thresholds, which is 0 or more."""
    confidence, correct = drawn(2_000)
    part = np.where(np.arange(2_000) < 1_000, "calibration", "test")
    whole = data(confidence, correct, splits=part)
    of_split = Decision.compute(whole, split="test")
    rows = [
        Sample(data(confidence[part == p], correct[part == p])) for p in ("test", "calibration")
    ]
    figure = Decision.of_rows(*rows, costs=of_split.costs)
    assert figure.excess_interval == of_split.excess_interval
    # One that does worse than the face value has an interval around that loss.
    worse = Decision.of_rows(
        rows[0], Sample(data([0.999] * 400, [True] * 399 + [False])), costs=Costs(wrong=2)
    )
    assert worse.excess < 0
    assert worse.excess_interval.low < worse.excess < worse.excess_interval.high
    assert "the threshold that was best on other rows" in worse.reading()
