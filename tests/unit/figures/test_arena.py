"""The figures of an arena hold what the leaderboard says, and draw it."""

import numpy as np
import pytest

from calviz.comparison.arena_results import Experiment, MethodScore, ResultTable
from calviz.comparison.leaderboards import judge
from calviz.core.errors import NotAvailable
from calviz.figures.arena_ranks import CriticalRanks, Winrates

METHODS = ("identity", "first", "second", "<b>third</b>")


def board(experiments=12):
    """The later methods are worse but for noise that cannot turn the order round."""
    rng = np.random.default_rng(0)
    results = [
        (
            Experiment("b", f"d{i}", "m", 100, 50, 2),
            [
                MethodScore(m, {s: j + 0.1 * rng.random() for s in ("brier", "nll")}, 0.1)
                for j, m in enumerate(METHODS)
            ],
        )
        for i in range(experiments)
    ]
    return judge(ResultTable.of(results), resamples=50).overall


def test_winrates_are_those_of_the_leaderboard():
    figure = Winrates.compute(board())
    frame = figure.frame()
    assert frame["method"].tolist() == list(METHODS)
    np.testing.assert_allclose(frame["brier"], [1, 2 / 3, 1 / 3, 0])
    assert (frame["nll_low"] <= frame["nll"]).all()
    assert "'identity' is first with 1.00" in figure.describe()
    for theme in ("light", "dark"):
        drawn = figure.plot(theme=theme, caption=True)
        assert [list(trace.x) for trace in drawn.data] == [
            frame["brier"].tolist(),
            frame["nll"].tolist(),
        ]
        assert "<b>" not in drawn.layout.yaxis.ticktext[3]


def test_ranks_and_who_is_not_told_apart():
    figure = CriticalRanks.compute(board(), score="nll")
    frame = figure.frame()
    assert frame["mean_rank"].tolist() == [1, 2, 3, 4]
    # Nemenyi: 2.569 sqrt(4 5 / (6 12)) = 1.354, so that neighbours are not told apart.
    assert frame["told_apart_from_first"].tolist() == [False, False, True, True]
    assert "critical difference 1.35" in figure.caption()[1]
    drawn = figure.plot(width=350)
    bars = [trace for trace in drawn.data if trace.mode == "lines"]
    assert [[round(float(y)) for y in bar.y] for bar in bars] == [[0, 1], [1, 2], [2, 3]]
    assert bars[0].hovertext == "identity to first: not told apart"


def test_too_few_data_sets_say_so():
    with pytest.raises(NotAvailable, match="five data sets"):
        CriticalRanks.compute(board(3))
    assert np.isfinite(Winrates.compute(board(1)).values["brier"]).all()
