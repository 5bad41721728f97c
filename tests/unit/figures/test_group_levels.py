"""The levels of a group column, as the page Risk-coverage and `audit --by` show them."""

from unittest.mock import MagicMock

import numpy as np
import pytest

import calviz
from calviz.figures.slice_gaps import levels_of
from calviz.sample.sample import Sample
from calviz.sample.slices import USUAL_RATE


def grouped(seed, levels=8, rows=40, shape=1.0, weighted=False, off=0.0):
    """Calibrated rows of some levels; the first one hits more often by `off`."""
    rng = np.random.default_rng([seed, levels])
    group = np.repeat(np.arange(levels), rows)
    p = rng.beta(shape, shape, group.size)
    y = rng.random(group.size) < np.where(group == 0, p + off * (1 - p), p)
    w = rng.exponential(size=group.size) if weighted else None
    return Sample(
        calviz.Predictions(probs=p, labels=y.astype(int), groups={"task": group}, weights=w),
        "positive",
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "weighted"),
    [(1.0, False), (0.3, False), (1.0, True)],
    ids=["even", "sure", "weights"],
)
def test_levels_of_a_calibrated_file_are_called_off_at_the_rate_that_is_promised(
    shape, weighted, monkeypatch
):
    # From which confidence on they can be believed is another question, and takes most of the time.
    monkeypatch.setattr("calviz.figures.slice_gaps.RiskCoverage", MagicMock())
    runs = 150
    alarms = sum(
        bool(levels_of(grouped(seed, shape=shape, weighted=weighted), "task", 0.1).slices.off)
        for seed in range(runs)
    )
    assert USUAL_RATE == 0.01
    # Of Binomial(150, .01) 7 or more have a probability of 0.08 %.
    assert alarms <= 6


def test_a_level_that_is_off_is_found():
    levels = levels_of(grouped(0, off=0.7), "task", 0.1)
    assert [level.where for level in levels.slices.off] == [(("task", "0"),)]
    assert levels.word(levels.slices.off[0]) == "too low"
