"""Leaderboards and win rates."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import friedmanchisquare, ttest_1samp, ttest_ind
from scipy.stats import t as student

from benchmarks.claims import SIMULATIONS, every_simulation, mean_and_error
from calviz.comparison.arena_results import (
    CriticalDifference,
    Experiment,
    MethodScore,
    ResultTable,
    rated_words,
)
from calviz.comparison.arena_sources import BASELINE, find
from calviz.comparison.leaderboards import (
    Averages,
    block_ranks,
    critical_difference,
    elo,
    in_range,
    judge,
    leaderboard,
    nemenyi,
    winrates,
)
from calviz.comparison.leaderboards import count_duels as duels
from calviz.core.errors import InputError

# ---- Leaderboards from results in CalArena's layout: by hand, and as CalArena has published them


PUBLISHED = Path(__file__).resolve().parents[4] / "shared" / "data" / "calarena" / "results"

# Mean winrates by Brier score and log loss, to three digits, from CalArena's CSV files.
BINARY = {
    "Quadratic": (0.714, 0.672),
    "Platt-logits": (0.700, 0.616),
    "Beta": (0.694, 0.683),
    "Spline": (0.687, 0.632),
    "CatBoost": (0.653, 0.677),
    "ETS": (0.613, 0.618),
    "CIR": (0.602, 0.384),
    "Venn-Abers": (0.597, 0.621),
    "TS": (0.585, 0.554),
    "Isotonic": (0.550, 0.363),
    "Base-model": (0.393, 0.376),
}
MULTICLASS = {
    "SMS": (0.776, 0.830),
    "SVS": (0.714, 0.761),
    "VS": (0.706, 0.686),
    "Spline": (0.655, 0.616),
    "CIR": (0.602, 0.343),
    "ETS": (0.578, 0.636),
    "Dirichlet": (0.570, 0.625),
    "TS": (0.564, 0.623),
    "MS": (0.530, 0.576),
    "Base-model": (0.400, 0.451),
}


def write(folder, benchmark, method, rows, classes=None):
    """A file of results in CalArena's layout; rows of (dataset, model, cal_size, brier, logloss)."""
    place = folder / benchmark
    place.mkdir(exist_ok=True, parents=True)
    head = ["dataset", "model", "cal_size", "test_size"] + ["n_classes"] * (classes is not None)
    ends = ("brier", "logloss", "ece-15", "accuracy", "time")
    with (place / f"{method}.csv").open("w", newline="") as stream:
        out = csv.writer(stream)
        out.writerow([*head, *(f"{method}_{end}" for end in ends)])
        for dataset, model, size, brier, loss in rows:
            keys = [dataset, model, size, 50] + [classes] * (classes is not None)
            out.writerow([*keys, brier, loss, 0.1, 0.9, 0.25])


@pytest.fixture
def small(tmp_path):
    """Two benchmarks of two classes: one experiment in the first, two in the second."""
    scores = {
        "Base-model": [("a", 0.30, 0.5), ("b", 0.20, 0.4), ("c", 0.20, 0.4)],
        "TS": [("a", 0.20, 0.4), ("b", 0.10, ""), ("c", 0.30, 0.3)],
        "Beta": [("a", 0.10, 0.3), ("b", 0.15, 0.3), ("c", 0.25, 0.2)],
    }
    for method, ((_, *first), *others) in scores.items():
        write(tmp_path, "one-binary", method, [("a", "m", 500, *first)])
        write(tmp_path, "two-binary", method, [(d, "m", 2_000, *s) for d, *s in others])
    write(tmp_path, "one-binary", "Extra", [("a", "m", 500, 0.05, 0.1)])
    return tmp_path


def table_of(folder):
    results = find([folder])
    return ResultTable.of(results.results, baseline=results.baseline)


class TestByHand:
    def test_winrates_are_means_over_benchmarks(self, small):
        board = judge(table_of(small)).overall
        # a: Beta 1, TS 1/2, none 0. b: TS 1, Beta 1/2, none 0. c: none 1, Beta 1/2, TS 0.
        assert board["Beta"].winrate["brier"] == pytest.approx((1 + (0.5 + 0.5) / 2) / 2)
        assert board["TS"].winrate["brier"] == pytest.approx((0.5 + (1 + 0) / 2) / 2)
        assert board[BASELINE].winrate["brier"] == pytest.approx((0 + (0 + 1) / 2) / 2)
        # Log loss: TS has none for b, beats nobody there and gives nobody a win.
        assert board["Beta"].winrate["nll"] == pytest.approx((1 + (0.5 + 1) / 2) / 2)
        assert board["TS"].winrate["nll"] == pytest.approx((0.5 + (0 + 0.5) / 2) / 2)
        assert board["TS"].failed == 1
        assert [s.method for s in board] == ["Beta", "TS", BASELINE]

    def test_gains_and_shares(self, small):
        beta = judge(table_of(small)).overall["Beta"]
        assert beta.gain["brier"] == pytest.approx((0.20 + (0.05 - 0.05) / 2) / 2)
        assert beta.median_gain["brier"] == pytest.approx(0.05)
        assert beta.worse_than_none["brier"] == pytest.approx((0 + 1 / 2) / 2)
        assert beta.worse_than_none["nll"] == 0
        assert beta.seconds == 0.25

    def test_a_method_of_one_benchmark_is_left_out_and_named(self, small):
        arena = judge(table_of(small))
        assert arena.overall.left_out == ("Extra",)
        assert any("'Extra' is not on the board" in note for note in arena.notes)

    def test_a_single_experiment_has_no_interval(self, small):
        table = table_of(small).take([0])
        board = judge(table).overall
        assert board["Beta"].interval["brier"] is None
        assert not board.critical

    def test_tasks_have_boards_of_their_own(self, small):
        for method, shift in (("Base-model", 0.1), ("SMS", 0.0), ("TS", 0.2)):
            rows = [(d, "m", 300, 0.3 + shift, 0.5 + shift) for d in "xyz"]
            write(small, "three-multiclass", method, rows, classes=5)
        arena = judge(table_of(small))
        assert [board.key for board in arena.boards] == ["binary", "multiclass"]
        assert arena.boards[1]["SMS"].winrate["brier"] == 1
        # All together, who takes part in one task only keeps its winrate there.
        assert arena.overall["SMS"].winrate["brier"] == 1
        assert arena.overall["Beta"].winrate == arena.boards[0]["Beta"].winrate

    def test_a_thousand_classes_stand_apart(self, small):
        for method, loss in (("Base-model", 0.9), ("TS", 0.8)):
            write(small, "imagenet-multiclass", method, [("i", "m", 9, loss, loss)], classes=1_000)
        arena = judge(table_of(small))
        assert [board.key for board in arena.boards] == ["binary", "apart"]
        assert len(arena.overall.table) == 3

    def test_strata_are_means_over_experiments(self):
        results = [
            (
                Experiment("b", f"d{i}", "m", rows, 50, 2),
                [MethodScore("identity", {"brier": 0.2}), MethodScore("x", {"brier": first})],
            )
            for i, (rows, first) in enumerate([(999, 0.1)] * 5 + [(1_000, 0.3)] * 5)
        ]
        low, high = judge(ResultTable.of(results)).strata["binary"]
        assert (low.title, high.title) == (
            "below 1,000 calibration rows",
            "1,000 to 4,999 calibration rows",
        )
        assert low["x"].winrate["brier"] == 1
        assert high["x"].winrate["brier"] == 0


def test_random_results_of_equal_methods_are_not_told_apart():
    rng = np.random.default_rng(0)
    results = [
        (
            Experiment("b", f"d{i}", "m", 100, 50, 2),
            [MethodScore(m, {"brier": rng.random(), "nll": rng.random()}) for m in "abcdef"],
        )
        for i in range(300)
    ]
    board = leaderboard(ResultTable.of(results, baseline="a"))
    assert sum(s.interval["brier"].low <= 0.5 <= s.interval["brier"].high for s in board) >= 5
    assert board.critical["brier"].cliques() == (tuple(board.critical["brier"].ranks),)
    assert all(abs(s.elo["brier"] - 1_000) < 60 for s in board)


def test_a_board_without_intervals_says_what_they_need(small):
    assert "no intervals: they need three data sets, and two in every benchmark" in rated_words(
        judge(table_of(small)).overall
    )


def test_ranges_hold_their_lower_edge_only():
    assert in_range([999, 1_000, 4_999, 5_000], 1_000, 5_000).tolist() == [False, True, True, False]
    assert in_range([3, 9], 4, None).tolist() == [False, True]


class TestRefused:
    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("dataset,model,cal_size\na,b,3\n", "need the column 'test_size'"),
            (
                "dataset,model,cal_size,test_size,X_brier\na,b,3,4,0.1\n",
                "'X' has no column 'X_logloss'",
            ),
            (
                "dataset,model,cal_size,test_size,X_brier,X_logloss\na,b,many,4,0.1,0.2\n",
                "must be numbers",
            ),
            ("dataset,model,cal_size,test_size,X_brier,X_logloss\na,b,-3,4,0.1,0.2\n", "got -3"),
            (
                "dataset,model,cal_size,test_size,X_brier,X_logloss\na,b,3,4,low,0.2\n",
                "column 'X_brier'",
            ),
            ("dataset,model,cal_size,test_size,X_brier,X_logloss\na,b,3,4,0.1\n", "line 2"),
            ("dataset,model,cal_size,test_size\na,b,3,4\n", "holds no results"),
        ],
    )
    def test_one_sentence(self, tmp_path, text, words):
        file = tmp_path / "X.csv"
        file.write_text(text)
        with pytest.raises(InputError, match=r"X\.csv") as error:
            judge(table_of(file))
        assert words in str(error.value)

    def test_two_different_results(self, tmp_path):
        for name, score in (("one", 0.1), ("other", 0.2)):
            folder = tmp_path / name
            write(folder, "b", "X", [("a", "m", 9, score, 0.1)])
        with pytest.raises(InputError, match="'X' has two different results for 'm' on 'a'"):
            table_of(tmp_path)

    def test_a_single_method(self, tmp_path):
        write(tmp_path, "b", "X", [("a", "m", 9, 0.1, 0.1)])
        with pytest.raises(InputError, match="only the method 'X'"):
            judge(table_of(tmp_path))

    def test_an_unknown_method_on_a_board(self, small):
        with pytest.raises(ValueError, match="'nobody' is not on this leaderboard"):
            judge(table_of(small)).overall["nobody"]


@pytest.fixture(scope="module")
def arena():
    return judge(table_of(PUBLISHED), resamples=100)


@pytest.mark.slow
@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="CalArena's results are not there")
class TestPublished:
    @pytest.mark.parametrize(("at", "expected"), [(0, BINARY), (1, MULTICLASS)])
    def test_the_leaderboards_come_out(self, arena, at, expected):
        board = arena.boards[at]
        for method, (brier, loss) in expected.items():
            assert board[method].winrate["brier"] == pytest.approx(brier, abs=6e-4), method
            assert board[method].winrate["nll"] == pytest.approx(loss, abs=6e-4), method

    def test_histograms_and_averages_of_them_are_at_the_bottom(self, arena):
        for at, methods in ((0, ("BBQ", "Hist-uniform", "Hist-quantile")), (1, ("Hist-quantile",))):
            assert all(arena.boards[at][m].winrate["brier"] < 0.31 for m in methods)

    def test_imagenet_apart(self, arena):
        board = arena.boards[2]
        assert (len(board.table), board.key) == (8, "apart")
        assert board["SVS"].winrate["nll"] == 1
        assert board["TS"].winrate["nll"] == 0.875
        for method in ("VS", "Isotonic", "Hist-uniform", "Hist-quantile"):
            assert board[method].winrate["nll"] < board[BASELINE].winrate["nll"]

    def test_by_calibration_rows_and_by_classes(self, arena):
        firsts = {p.key: [s.method for s in p.ranking("brier")] for p in arena.strata["binary"]}
        assert firsts["rows-0"][:2] == ["ETS", "Platt-logits"]
        assert firsts["rows-1000"][:3] == ["Quadratic", "Beta", "Spline"]
        assert firsts["rows-5000"][:3] == ["Spline", "Quadratic", "Beta"]
        assert firsts["rows-20000"][:2] == ["Spline", "CIR"]
        classes = [p for p in arena.strata["multiclass"] if p.key in ("classes-4", "classes-10")]
        assert [p.ranking(s)[0].method for p in classes for s in ("brier", "nll")] == ["SMS"] * 4

    def test_gains_on_images_and_what_gets_worse(self, arena):
        table = arena.boards[1].table
        none = table.methods.index(BASELINE)

        def gains(method, benchmark):
            rows = [i for i, e in enumerate(table.experiments) if e.benchmark == benchmark]
            brier = table.scores["brier"][rows]
            return brier[:, none] - brier[:, table.methods.index(method)]

        assert 100 * np.median(gains("SMS", "cv-multiclass")) == pytest.approx(4.3, abs=0.05)
        assert 100 * np.median(gains("TS", "cv-multiclass")) == pytest.approx(2.8, abs=0.05)
        assert 100 * np.median(gains("SMS", "tabrepo-multiclass")) == pytest.approx(0.08, abs=0.005)
        assert 0.27 < (gains("SMS", "tabrepo-multiclass") < 0).mean() < 0.39

    def test_all_experiments_are_there(self, arena):
        assert [len(b.table) for b in arena.boards] == [1_159, 624, 8]
        assert [len(b) for b in arena.boards] == [20, 19, 9]
        assert not math.isnan(arena.overall["SMS"].seconds)


# ---- Winrates, Elo, ranks and means by hand, by closed forms and by scipy


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


@pytest.mark.slow
@pytest.mark.parametrize("case", ["6 methods, 5 data sets", "one far ahead, 8 data sets"])
def test_intervals_cover_the_winrates_of_all_data_sets(case):
    every_simulation()
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
