"""The monotone sweep against its algorithm, step by step."""

import numpy as np
import pytest

import calviz


def evaluated(score, hit, **options):
    data = calviz.Predictions(probs=np.asarray(score, dtype=float), labels=np.asarray(hit))
    return calviz.evaluate(data, ["ece_sweep"], reduction="positive", **options)["ece_sweep"]


def bins_of(score, b):
    """Equal-mass bins: rows in order, cut as array_split does, ties moved to the bin on the left."""
    order = np.argsort(score, kind="stable")
    pieces = np.array_split(order, b)
    last = [score[piece[-1]] for piece in pieces if piece.size]
    bin_of = np.searchsorted(np.unique(last[:-1]), score, side="left")
    return [np.flatnonzero(bin_of == m) for m in np.unique(bin_of)]


def literal(score, hit):
    """Roelofs et al. 2022, algorithm 1."""
    best = [np.arange(score.size)]
    for b in range(2, score.size + 1):
        bins = bins_of(score, b)
        if np.any(np.diff([hit[rows].mean() for rows in bins]) < 0):
            break
        best = bins
    gaps = [rows.size * abs(score[rows].mean() - hit[rows].mean()) for rows in best]
    return len(best), sum(gaps) / score.size


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("decimals", [8, 1])
@pytest.mark.parametrize("n", [1, 7, 60, 150])
def test_against_the_algorithm(n, decimals, seed):
    rng = np.random.default_rng(seed)
    score = np.round(rng.random(n), decimals)
    hit = rng.random(n) < (score if seed % 2 else score > 0.5)
    bins, value = literal(score, hit)
    result = evaluated(score, hit)
    assert result.value == pytest.approx(value)
    assert result.details["bins"] == bins


def test_separated_scores_are_swept_to_single_rows_at_once():
    # A sweep of 200,000 rows bin by bin would not end.
    score = np.linspace(0, 1, 200_000)
    result = evaluated(score, score > 0.5)
    assert result.details["bins"] == 200_000
    assert result.value == pytest.approx(0.25, abs=1e-4)


def test_many_hits_alike_beside_single_rows():
    # Monotone at every number of bins, and the ties never come apart.
    score = np.concatenate([np.zeros(50_000), np.linspace(0.5, 1, 10)])
    hit = np.concatenate([np.arange(50_000) % 2, np.ones(10, dtype=int)])
    assert evaluated(score, hit).details["bins"] == 11


def test_the_floor_repeats_the_sweep():
    rng = np.random.default_rng(3)
    score = rng.random(150)
    drawn = [literal(score, rng.random(150) < score)[1] for _ in range(250)]
    floor = evaluated(score, rng.random(150) < score, ci=True).noise_floor
    assert floor.mean == pytest.approx(np.mean(drawn), rel=0.08)
