"""Kuiper and averaged two-bin error by hand, by brute force and by their distributions under calibration."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calviz
from calviz.core.entry_specs import METRICS
from calviz.metrics.cumulative import maximum_exceeds, range_exceeds
from calviz.sample.sample import Sample
from calviz.sample.step_views import steps

KEYS = ("ks", "kuiper", "atb")
ROWS = st.lists(st.tuples(st.sampled_from([0, 0.1, 0.25, 0.5, 0.9, 1]), st.booleans()), min_size=1)


def evaluated(score, hit, **options):
    data = calviz.Predictions(probs=np.asarray(score, dtype=float), labels=np.asarray(hit))
    return calviz.evaluate(data, KEYS, reduction="positive", **options)


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
