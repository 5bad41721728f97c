"""Winrates, Elo, ranks and means by hand, by closed forms and by scipy."""

import math

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import friedmanchisquare, ttest_1samp, ttest_ind
from scipy.stats import t as student

from benchmarks.claims import SIMULATIONS, mean_and_error
from benchmarks.claims import arena as _arena  # noqa: F401  # noqa: F401
from calviz.comparison.arena_results import CriticalDifference, Experiment
from calviz.comparison.leaderboards import (
    Averages,
    block_ranks,
    critical_difference,
    elo,
    nemenyi,
    winrates,
)
from calviz.comparison.leaderboards import count_duels as duels


def entered(scores):
    return np.ones(scores.shape, dtype=bool)


def experiments(*places):
    return [Experiment(b, d, f"m{i}", 100, 100, 2) for i, (b, d) in enumerate(places)]


class TestWinrates:
    def test_three_methods_by_hand(self):
        # First row: .1 beats both, the two at .2 beat nobody. Second: .5 beats nobody, .3 one, .2 two.
        scores = np.array([[0.1, 0.2, 0.2], [0.5, 0.3, 0.2]])
        np.testing.assert_array_equal(winrates(scores, entered(scores)), [[1, 0, 0], [0, 0.5, 1]])

    def test_who_has_no_score_beats_nobody_and_gives_nobody_a_win(self):
        scores = np.array([[0.1, math.nan, 0.2]])
        np.testing.assert_array_equal(winrates(scores, entered(scores)), [[0.5, 0, 0]])

    def test_an_infinite_score_loses(self):
        scores = np.array([[0.1, math.inf]])
        np.testing.assert_array_equal(winrates(scores, entered(scores)), [[1, 0]])

    def test_who_does_not_take_part_does_not_count(self):
        scores = np.array([[0.1, 0.2, 0.3], [0.1, 0.2, 0.3]])
        present = np.array([[True, True, False], [True, False, False]])
        np.testing.assert_array_equal(
            winrates(scores, present), [[1, 0, math.nan], [math.nan, math.nan, math.nan]]
        )

    def test_without_ties_they_average_one_half(self):
        scores = np.random.default_rng(0).random((40, 7))
        assert winrates(scores, entered(scores)).mean() == pytest.approx(0.5)


class TestAverages:
    def test_benchmarks_count_alike(self):
        averages = Averages.over(experiments(("a", "x"), ("a", "y"), ("a", "z"), ("b", "x")))
        values = np.array([[0.0], [0.3], [0.6], [1.0]])
        assert averages.mean(values) == pytest.approx([(0.3 + 1.0) / 2])
        assert averages.weights() == pytest.approx([2 / 3, 2 / 3, 2 / 3, 2])

    def test_pooled_they_do_not(self):
        averages = Averages.over(experiments(("a", "x"), ("a", "y"), ("b", "x")), pooled=True)
        assert averages.mean(np.array([[0.0], [0.3], [1.0]])) == pytest.approx([1.3 / 3])

    def test_a_missing_value_does_not_count(self):
        averages = Averages.over(experiments(("a", "x"), ("a", "y"), ("b", "x")))
        values = np.array([[0.2, math.nan], [math.nan, math.nan], [0.6, 0.5]])
        assert averages.mean(values) == pytest.approx([0.4, 0.5])

    def test_models_of_a_data_set_are_left_out_together(self):
        averages = Averages.over(experiments(("a", "x"), ("a", "x"), ("a", "y"), ("b", "x")))
        expected = [[0, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0]]
        np.testing.assert_array_equal(averages.left_out(), expected)

    def interval_of(self, values, places, **kwargs):
        averages = Averages.over(experiments(*places))
        table = np.array(values, dtype=float)[:, None]
        left_out = averages.mean(table, averages.left_out())
        return averages.intervals(averages.mean(table), left_out, ~np.isnan(table), **kwargs)[0]

    def test_the_interval_of_one_number_per_data_set_is_that_of_student(self):
        values = np.random.default_rng(1).normal(size=7)
        interval = self.interval_of(values, [("a", f"d{i}") for i in range(7)])
        expected = ttest_1samp(values, 0).confidence_interval()
        assert tuple(interval) == pytest.approx(tuple(expected))

    def test_the_mean_of_two_benchmarks_has_the_interval_of_welch(self):
        one, other = np.random.default_rng(2).normal(size=(2, 6))
        other = 3 * other[:4]
        places = [("a", f"d{i}") for i in range(6)] + [("b", f"d{i}") for i in range(4)]
        # (one + other) / 2 is half the difference of one and -other.
        expected = ttest_ind(one, -other, equal_var=False).confidence_interval()
        interval = self.interval_of([*one, *other], places)
        assert tuple(interval) == pytest.approx((expected.low / 2, expected.high / 2))

    def test_the_interval_of_a_share_by_hand(self):
        # n = v (1 - v) / se^2 with se^2 = s^2 / 5; the ends solve (v - p)^2 = t^2 p (1 - p) / n (Wilson 1927).
        values = np.array([1, 1, 0.5, 1, 0.75])
        low, high = self.interval_of(values, [("a", f"d{i}") for i in range(5)], share=True)
        v, t = values.mean(), student.ppf(0.975, 4)
        number = v * (1 - v) / (values.var(ddof=1) / 5)
        for end in (low, high):
            assert (v - end) ** 2 == pytest.approx(t**2 * end * (1 - end) / number)
        assert 0 < low < v < high < 1

    def test_where_all_data_sets_agree_the_interval_is_not_a_point(self):
        low, high = self.interval_of([1.0] * 5, [("a", f"d{i}") for i in range(5)], share=True)
        t = student.ppf(0.975, 4)
        assert (low, high) == pytest.approx((5 / (5 + t**2), 1))

    @pytest.mark.parametrize(
        "places",
        [
            [("a", "x"), ("a", "y"), ("a", "x"), ("a", "y")],
            [("a", "x"), ("a", "y"), ("a", "z"), ("b", "x")],
        ],
    )
    def test_two_data_sets_or_a_benchmark_of_one_have_none(self, places):
        assert self.interval_of([0.1, 0.2, 0.3, 0.4], places) is None


@pytest.mark.parametrize("case", ["6 methods, 5 data sets", "one far ahead, 8 data sets"])
def test_intervals_cover_the_winrates_of_all_data_sets(case):
    one = SIMULATIONS[f"arena-mean: true winrates covered, {case}"]
    mean, error = mean_and_error(one.outcomes(60, seed=7))
    assert 0.93 - 3 * error < mean < 0.98 + 3 * error


class TestElo:
    @pytest.mark.parametrize(("won", "lost"), [(9, 1), (3, 3), (1, 40)])
    def test_two_methods_in_closed_form(self, won, lost):
        # The odds are the ratio of the wins.
        ratings = elo(np.array([[0.0, won], [lost, 0.0]]))
        assert ratings[0] - ratings[1] == pytest.approx(400 * math.log10(won / lost), abs=1e-6)
        assert ratings.mean() == pytest.approx(1_000)

    def test_five_methods_as_scipy_maximises_the_likelihood(self):
        wins = np.random.default_rng(3).integers(1, 30, (5, 5)).astype(float)
        np.fill_diagonal(wins, 0)

        def loss(free):
            theta = np.append(free, 0)
            return (wins * np.logaddexp(0, theta[None, :] - theta[:, None])).sum()

        theta = np.append(minimize(loss, np.zeros(4), tol=1e-12).x, 0)
        expected = 1_000 + 400 / math.log(10) * (theta - theta.mean())
        np.testing.assert_allclose(elo(wins), expected, atol=0.01)

    def test_several_at_once_are_each_by_itself(self):
        wins = np.random.default_rng(4).integers(1, 9, (6, 4, 4)).astype(float)
        wins[:, np.arange(4), np.arange(4)] = 0
        np.testing.assert_allclose(elo(wins), [elo(one) for one in wins], atol=1e-6)

    def test_who_always_wins_gets_a_draw_with_everybody(self):
        # (5 + 1/2) : 1/2 between neighbours; there is no largest likelihood without.
        ratings = elo(np.array([[0.0, 5.0], [0.0, 0.0]]))
        assert ratings[0] - ratings[1] == pytest.approx(400 * math.log10(11), abs=1e-6)

    def test_duels_by_hand(self):
        scores = np.array([[0.1, 0.2, 0.2, math.nan]])
        expected = [[0, 1, 1, 1], [0, 0, 0.5, 1], [0, 0.5, 0, 1], [0, 0, 0, 0]]
        np.testing.assert_array_equal(duels(scores, entered(scores))[0], expected)

    def test_who_does_not_take_part_has_no_duels(self):
        present = np.array([[True, True, False]])
        won = duels(np.array([[0.1, 0.2, 0.3]]), present)[0]
        assert won.sum() == 1


class TestCriticalDifference:
    @pytest.mark.parametrize(
        # q at 5 %, Demšar 2006, table 5 (a).
        ("k", "q"),
        [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (6, 2.850), (7, 2.949), (10, 3.164)],
    )
    def test_published_quantiles(self, k, q):
        n = 30
        assert nemenyi(k, n) == pytest.approx(q * math.sqrt(k * (k + 1) / (6 * n)), rel=5e-4)

    def test_the_published_example(self):
        # Demšar 2006, section 3.2.4: four classifiers on 14 data sets, CD = 1.25.
        assert nemenyi(4, 14) == pytest.approx(1.25, abs=0.005)

    def test_friedman_as_scipy_has_it(self):
        scores = np.random.default_rng(5).random((20, 4)) + np.array([0, 0.1, 0.2, 0.3])
        averages = Averages.over(experiments(*[("a", f"d{i}") for i in range(20)]))
        result = critical_difference("abcd", block_ranks(scores, averages))
        expected = friedmanchisquare(*scores.T)
        assert result.statistic == pytest.approx(expected.statistic)
        assert result.p_value == pytest.approx(expected.pvalue)
        assert result.blocks == 20

    def test_ranks_by_hand(self):
        # Three models of one data set, then single ones; who has no score comes last.
        places = [("a", "x")] * 3 + [("a", f"d{i}") for i in range(8)]
        scores = np.array([[1, 2, 3], [1, 2, 3], [3, 2, 1]] + [[0.5, math.nan, 0.5]] * 8)
        ranks = block_ranks(scores, Averages.over(experiments(*places)))
        assert ranks[0].tolist() == [1, 2, 3]  # mean ranks 5/3, 2, 7/3
        assert ranks[1:].tolist() == [[1.5, 3, 1.5]] * 8

    def test_too_few_blocks_or_methods_have_none(self):
        assert critical_difference("abc", np.ones((4, 3))) is None
        assert critical_difference("ab", np.ones((50, 2))) is None

    def test_groups_that_are_not_told_apart(self):
        ranks = {"a": 1.0, "b": 1.5, "c": 2.5, "d": 4.0}
        result = CriticalDifference(ranks, 9, 1.2, 1.0, 0.1)
        assert result.cliques() == (("a", "b"), ("b", "c"))
        assert CriticalDifference(ranks, 9, 9.0, 1.0, 0.1).cliques() == (tuple("abcd"),)
        assert CriticalDifference(ranks, 9, 0.1, 1.0, 0.1).cliques() == ()
