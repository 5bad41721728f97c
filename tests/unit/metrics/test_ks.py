"""KS error: brute force with ties, its relation to MCS, and what decides its sign."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import calviz


def evaluated(score, hit, keys=("ks", "ks_signed", "mcs"), **options):
    data = calviz.Predictions(probs=np.asarray(score, dtype=float), labels=np.asarray(hit))
    return calviz.evaluate(data, keys, reduction="positive", **options)


def plain_gaps(score, hit):
    """Gap of the cumulative sums of all rows up to each distinct score."""
    score, hit = np.asarray(score, dtype=float), np.asarray(hit)
    cuts = np.unique(score)
    return cuts, [(score[score <= c].sum() - hit[score <= c].sum()) / len(score) for c in cuts]


def test_by_hand():
    # Cumulative gaps 0.2, -0.4, 0.2 (in rows): the largest is -0.4 of 3 rows.
    result = evaluated([0.2, 0.4, 0.6], [0, 1, 0])
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
    result = evaluated(score, hit)
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
    assert evaluated(score, hit)["ks"].value == evaluated(score[order], hit[order])["ks"].value


@pytest.mark.parametrize("sign", [1, -1])
def test_is_the_absolute_mcs_where_the_sign_never_changes(sign):
    # Every score is off to the same side, so that the gap only grows.
    score = np.repeat([0.3, 0.5, 0.7], 100)
    share = score - 0.2 * sign
    hit = np.concatenate([np.arange(100) < round(100 * s) for s in share[::100]])
    result = evaluated(score, hit)
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
    interval = evaluated(score, hit, ci=True, interval="percentile")["ks"].interval
    assert interval == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.012)


@pytest.mark.slow
def test_noise_floor_is_that_of_redrawn_labels():
    rng = np.random.default_rng(2)
    score = np.round(rng.random(300), 2)
    drawn = [np.abs(plain_gaps(score, rng.random(300) < score)[1]).max() for _ in range(400)]
    floor = evaluated(score, rng.random(300) < score, ci=True)["ks"].noise_floor
    assert floor.mean == pytest.approx(np.mean(drawn), rel=0.08)
    assert floor.q95 == pytest.approx(np.quantile(drawn, 0.95), rel=0.1)
