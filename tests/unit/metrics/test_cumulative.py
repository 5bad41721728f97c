"""Cumulative errors, KS and SKCE."""

import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calviz
from calviz.core.entry_specs import METRICS
from calviz.core.errors import OptionError
from calviz.core.predictions import Predictions
from calviz.metrics.cumulative import maximum_exceeds, range_exceeds
from calviz.sample.sample import Sample
from calviz.sample.step_views import steps
from tests.inputs.reliability import event_metrics
from tests.inputs.simulated import draw_labels

# ---- Kuiper and averaged two-bin error by hand, by brute force and by their distributions under calibration


KEYS = ("ks", "kuiper", "atb")
ROWS = st.lists(st.tuples(st.sampled_from([0, 0.1, 0.25, 0.5, 0.9, 1]), st.booleans()), min_size=1)


evaluated = partial(event_metrics, keys=KEYS)


def sums(score, hit, cuts):
    """Hits minus scores of the rows up to each cut, divided by all rows."""
    score, hit = np.asarray(score, dtype=float), np.asarray(hit, dtype=float)
    return np.array([(hit - score)[score <= c].sum() for c in cuts]) / score.size


def two_bins(score, hit, cut):
    """Squared errors of the rows up to a cut and of those above it, added up."""
    below = sums(score, hit, [cut])[0]
    return below**2 + (sums(score, hit, [2.0])[0] - below) ** 2


def test_by_hand():
    # Hits minus scores: -0.2, +0.6, -0.6 of 3 rows; summed up 0, -0.2, 0.4, -0.2.
    evaluation = evaluated([0.2, 0.4, 0.6], [0, 1, 0])
    assert evaluation["ks"].value == pytest.approx(0.4 / 3)
    assert evaluation["kuiper"].value == pytest.approx(0.6 / 3)
    details = evaluation["kuiper"].details
    # From the first score, which is below the range, to the last of it.
    assert (details["from_score"], details["to_score"]) == pytest.approx((0.2, 0.4))
    assert details["sigma"] == pytest.approx(math.sqrt(0.16 + 0.24 + 0.24) / 3)
    # Cuts below 0.2, up to 0.4, up to 0.6, and above: the squares of both bins, times 9.
    expected = 0.2 * 0.04 + 0.2 * (0.04 + 0) + 0.2 * (0.16 + 0.36) + 0.4 * 0.04
    assert evaluation["atb"].value == pytest.approx(expected / 9)
    assert evaluation["atb"].details["if_calibrated"] == pytest.approx(details["sigma"] ** 2)


@settings(max_examples=40)
@given(ROWS)
def test_against_all_cuts(rows):
    score, hit = zip(*rows, strict=True)
    evaluation = evaluated(score, hit)
    cuts = [-1.0, *np.unique(score)]
    gaps = sums(score, hit, cuts)
    assert evaluation["kuiper"].value == pytest.approx(np.ptp(gaps), abs=1e-12)
    # A fine grid has every score on one of its points.
    grid = (np.arange(400) + 0.5) / 400
    assert evaluation["atb"].value == pytest.approx(
        np.mean([two_bins(score, hit, c) for c in grid]), abs=1e-12
    )


def test_points_of_the_distributions():
    assert range_exceeds(2.4976721610) == pytest.approx(0.05, abs=1e-9)
    assert range_exceeds(3.0233410818) == pytest.approx(0.01, abs=1e-9)
    assert maximum_exceeds(2.2414027273) == pytest.approx(0.05, abs=1e-9)
    # Both series meet at the turn; beyond it a tail does not drown in rounding.
    for exceeds in (maximum_exceeds, range_exceeds):
        assert exceeds(1.5 - 1e-9) == pytest.approx(exceeds(1.5 + 1e-9), abs=1e-8)
        assert exceeds(0.0) == exceeds(1e-3) == 1.0
        assert 0 < exceeds(30.0) < 1e-190
    # 4 P(Z > x), and 8 P(Z > x), are all that is left of the tails.
    tail = math.erfc(8 / math.sqrt(2)) / 2
    assert maximum_exceeds(8.0) == pytest.approx(4 * tail, rel=1e-12)
    assert range_exceeds(8.0) == pytest.approx(8 * tail, rel=1e-12)


def test_p_values_are_uniform_under_calibration():
    rng = np.random.default_rng(0)
    score = rng.random(4_000)
    view = Sample(calviz.Predictions(probs=score, labels=rng.random(4_000) < score)).view(steps)
    drawn = view.under_calibration(rng, 1_000)
    sigma = math.sqrt((score * (1 - score)).sum()) / 4_000
    for key, exceeds in (("ks", maximum_exceeds), ("kuiper", range_exceeds)):
        values = np.concatenate([METRICS[key].value(part) for part in drawn.parts()]) / sigma
        p = np.array([exceeds(x) for x in values])
        # A path of finitely many steps goes a little less far, by the order of 1 / sqrt(steps).
        for level in (0.05, 0.25, 0.5):
            assert np.mean(p <= level) == pytest.approx(level, abs=0.05)
        assert np.mean(p <= 0.05) <= 0.05 + 0.021
    # E C_j^2 + E (C_m - C_j)^2 = Var C_m whatever j.
    values = np.concatenate([METRICS["atb"].value(part) for part in drawn.parts()])
    assert values.mean() == pytest.approx(sigma**2, rel=5 * values.std() / values.mean() / 31)


def test_the_truth_has_the_lowest_two_bin_error():
    # Exact expectation over all labels of four rows: the true probabilities beat every grid of lies.
    true = np.array([0.2, 0.4, 0.4, 0.9])
    labels = (np.arange(16)[:, None] >> np.arange(4)) & 1
    chance = np.prod(np.where(labels, true, 1 - true), axis=1)

    def expected(score):
        return sum(
            c * evaluated(score, hit)["atb"].value for c, hit in zip(chance, labels, strict=True)
        )

    honest = expected(true)
    assert honest == pytest.approx((true * (1 - true)).sum() / 16)
    rng = np.random.default_rng(1)
    for _ in range(6):
        assert expected(np.clip(true + rng.normal(0, 0.1, 4), 0, 1)) > honest


def test_without_any_doubt_there_is_no_p_value():
    evaluation = evaluated([0, 1, 1], [0, 1, 0])
    assert "p_value" not in evaluation["kuiper"].details
    assert evaluation["kuiper"].value == pytest.approx(1 / 3)


# ---- KS error: brute force with ties, its relation to MCS, and what decides its sign


evaluated_of_ks = partial(event_metrics, keys=("ks", "ks_signed", "mcs"))


def plain_gaps(score, hit):
    """Gap of the cumulative sums of all rows up to each distinct score."""
    score, hit = np.asarray(score, dtype=float), np.asarray(hit)
    cuts = np.unique(score)
    return cuts, [(score[score <= c].sum() - hit[score <= c].sum()) / len(score) for c in cuts]


def test_by_hand_of_ks():
    # Cumulative gaps 0.2, -0.4, 0.2 (in rows): the largest is -0.4 of 3 rows.
    result = evaluated_of_ks([0.2, 0.4, 0.6], [0, 1, 0])
    assert result["ks"].value == pytest.approx(0.4 / 3)
    assert result["ks_signed"].value == pytest.approx(-0.4 / 3)
    assert result["ks_signed"].details == pytest.approx({"at_score": 0.4, "at_fractile": 2 / 3})
    sigma = np.sqrt(0.16 + 0.24 + 0.24) / 3
    assert result["ks"].details["sigma"] == pytest.approx(sigma)
    # The first terms of the series of its p-value; the next is 1e-35.
    c = np.pi**2 / 8 * (3 * sigma / 0.4) ** 2
    p = 1 - 4 / np.pi * (np.exp(-c) - np.exp(-9 * c) / 3)
    assert result["ks"].details["p_value"] == pytest.approx(p, abs=1e-12)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.sampled_from([0, 0.1, 0.25, 0.5, 0.9, 1]), st.booleans()), min_size=1))
def test_with_ties_against_all_cuts(rows):
    score, hit = zip(*rows, strict=True)
    _, gaps = plain_gaps(score, np.array(hit, dtype=float))
    result = evaluated_of_ks(score, hit)
    assert result["ks"].value == pytest.approx(np.abs(gaps).max(), abs=1e-12)
    assert abs(result["ks_signed"].value) == pytest.approx(result["ks"].value, abs=1e-12)


@settings(max_examples=15)
@given(st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_matter(random):
    rng = np.random.default_rng(0)
    score = np.round(rng.random(60), 1)
    hit = rng.random(60) < score
    order = list(range(60))
    random.shuffle(order)
    assert (
        evaluated_of_ks(score, hit)["ks"].value
        == evaluated_of_ks(score[order], hit[order])["ks"].value
    )


@pytest.mark.parametrize("sign", [1, -1])
def test_is_the_absolute_mcs_where_the_sign_never_changes(sign):
    # Every score is off to the same side, so that the gap only grows.
    score = np.repeat([0.3, 0.5, 0.7], 100)
    share = score - 0.2 * sign
    hit = np.concatenate([np.arange(100) < round(100 * s) for s in share[::100]])
    result = evaluated_of_ks(score, hit)
    assert result["mcs"].value == pytest.approx(0.2 * sign)
    assert result["ks"].value == pytest.approx(0.2)
    assert result["ks_signed"].value == pytest.approx(0.2 * sign)


@pytest.mark.slow
def test_interval_is_that_of_resampled_rows():
    rng = np.random.default_rng(1)
    score = rng.random(200)
    hit = rng.random(200) < score**2
    drawn = []
    for _ in range(400):
        rows = rng.integers(200, size=200)
        drawn.append(np.abs(plain_gaps(score[rows], hit[rows])[1]).max())
    interval = evaluated_of_ks(score, hit, ci=True, interval="percentile")["ks"].interval
    assert interval == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.012)


@pytest.mark.slow
def test_noise_floor_is_that_of_redrawn_labels():
    rng = np.random.default_rng(2)
    score = np.round(rng.random(300), 2)
    drawn = [np.abs(plain_gaps(score, rng.random(300) < score)[1]).max() for _ in range(400)]
    floor = evaluated_of_ks(score, rng.random(300) < score, ci=True)["ks"].noise_floor
    assert floor.mean == pytest.approx(np.mean(drawn), rel=0.08)
    assert floor.q95 == pytest.approx(np.quantile(drawn, 0.95), rel=0.1)


# ---- SKCE against a double loop, and what it is under calibration


def sample(n=40, k=3, seed=0):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.ones(k), size=n)
    return probs, rng.integers(0, k, size=n)


def evaluated_of_skce(probs, labels, **options):
    return calviz.evaluate(Predictions(probs=probs, labels=labels), ["skce"], **options)["skce"]


def double_loop(probs, labels, kernel, width):
    n = len(labels)
    one_hot = np.eye(probs.shape[1])[labels]
    total = 0.0
    for i in range(n):
        for j in range(n):
            if i != j:
                d = math.dist(probs[i], probs[j]) / width
                k = math.exp(-d) if kernel == "laplacian" else math.exp(-(d**2) / 2)
                total += k * float((one_hot[i] - probs[i]) @ (one_hot[j] - probs[j]))
    return total / (n * (n - 1))


@pytest.mark.parametrize("kernel", ["laplacian", "rbf"])
@pytest.mark.parametrize("width", [None, 0.2])
def test_against_a_double_loop(kernel, width):
    probs, labels = sample()
    result = evaluated_of_skce(
        probs, labels, kernel=kernel, **({} if width is None else {"kernel_bandwidth": width})
    )
    if width is None:
        pairs = [math.dist(p, q) for i, p in enumerate(probs) for q in probs[:i]]
        width = float(np.median(pairs))
        assert result.params["kernel_bandwidth"] == pytest.approx(width)
    assert result.value == pytest.approx(double_loop(probs, labels, kernel, width))


def test_says_which_rows_it_used():
    probs, labels = sample(n=300)
    capped = evaluated_of_skce(probs, labels, kernel_rows=100)
    assert capped.params["rows"] == 100
    assert evaluated_of_skce(probs, labels).params["rows"] == 300
    # The choice has a seed of its own, so that the value is always the same.
    assert evaluated_of_skce(probs, labels, kernel_rows=100, seed=5).value == capped.value


def test_equal_rows_and_one_row():
    # Every pair has distance 0: the mean of the products of the residuals.
    probs, labels = np.full((4, 2), 0.5), np.array([0, 0, 0, 1])
    assert evaluated_of_skce(probs, labels).value == pytest.approx((3 * 0.5 - 3 * 0.5) * 2 / 12)
    assert (
        evaluated_of_skce(probs[:1], labels[:1], ci=True).reason
        == "undefined: one row makes no pair."
    )
    assert evaluated_of_skce(probs[:2], labels[:2], ci=True).value == pytest.approx(0.5)


@pytest.mark.parametrize(
    "options", [{"kernel_rows": 1}, {"kernel_bandwidth": 0.0}, {"kernel": "linear"}]
)
def test_options_are_checked(options):
    with pytest.raises(OptionError, match="kernel"):
        evaluated_of_skce(*sample(), **options)


@pytest.mark.slow
def test_is_unbiased_and_its_floor_fits_under_calibration():
    rng = np.random.default_rng(1)
    values, p_values = [], []
    for _ in range(150):
        probs = rng.dirichlet(np.ones(3), size=60)
        labels = draw_labels(probs, rng)
        result = evaluated_of_skce(probs, labels, noise_floor=True, resamples=99)
        values.append(result.value)
        p_values.append(result.noise_floor.p_value)
    assert abs(np.mean(values)) < 3.5 * np.std(values) / math.sqrt(150)
    assert 0.005 < np.mean(np.array(p_values) <= 0.1) < 0.2
