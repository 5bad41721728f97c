"""Rating grades against SciPy's tests."""

import numpy as np
import pytest
from scipy import stats

import calviz
from benchmarks.claims import too_many
from benchmarks.claims.grades import CALIBRATED, OFF
from calviz.core.errors import OptionError
from calviz.sample.cutoff_and_grades import grade_columns, grades, possible_grade_columns
from calviz.sample.sample import Sample


def rated(grade="grade", seed=0):
    rng = np.random.default_rng(seed)
    which = rng.integers(3, size=900)
    score = np.array([0.01, 0.05, 0.2])[which] * rng.uniform(0.8, 1.2, size=900)
    hit = rng.random(900) < score * np.array([1, 1, 1.6])[which]
    groups = {"region": rng.integers(2, size=900), grade: np.array(["A", "BB", "CCC"])[which]}
    return calviz.Predictions(probs=score, labels=hit.astype(int), groups=groups), which


def test_each_grade_is_tested_as_scipy_does():
    p, which = rated()
    tested = grades(Sample.of(p), column="grade")
    assert tested.names == ("A", "BB", "CCC", "all rows")
    score, hit = p.probs[:, 1], p.labels
    for g in range(4):
        rows = which == g if g < 3 else np.ones(900, bool)
        n, k, mean = int(rows.sum()), int(hit[rows].sum()), score[rows].mean()
        assert (tested.rows[g], tested.hits[g]) == (n, k)
        assert tested.binomial[g] == pytest.approx(
            stats.binomtest(k, n, mean, alternative="greater").pvalue
        )
        posterior = stats.beta(k + 0.5, n - k + 0.5)
        assert tested.jeffreys[g] == pytest.approx(posterior.cdf(mean))
        assert tested.low[g] == pytest.approx(posterior.ppf(0.025) if k else 0)
        assert tested.high[g] == pytest.approx(posterior.ppf(0.975))
    assert tested.lights[2] == "red"
    assert tested.reading().startswith(
        "In 1 grade of 3 more happens than the probabilities say: CCC. The light of BB may be chance"
    )
    order = np.argsort(tested.binomial[:3])  # Holm: times 3, 2 and 1
    by_hand = np.maximum.accumulate(tested.binomial[order] * [3, 2, 1]).clip(max=1)
    np.testing.assert_allclose(tested.adjusted[order], by_hand)


def test_columns_of_grades_are_found_by_name_or_values():
    assert grade_columns(rated("Rating grade")[0]) == ("Rating grade",)
    assert grade_columns(rated("x")[0]) == ("x",)


def test_a_column_that_there_is_not():
    with pytest.raises(OptionError, match="there is no group column 'notch'; known: region, grade"):
        grades(Sample.of(rated()[0]), column="notch")
    many = calviz.Predictions(
        probs=np.full(60, 0.2), labels=np.arange(60) % 2, groups={"id": np.arange(60)}
    )
    with pytest.raises(OptionError, match="'id' has 60 values: a column of grades has at most 50"):
        grades(Sample.of(many), column="id")


def test_a_column_that_follows_the_scores_is_one_of_grades():
    rng = np.random.default_rng(0)
    score = rng.uniform(0.01, 0.4, size=800)
    labels = (rng.random(800) < score).astype(int)
    bucketed = np.digitize(score, [0.1, 0.2, 0.3]).astype(str)
    groups = {"season": rng.integers(2010, 2018, size=800).astype(str), "r": bucketed}
    groups["word"] = np.array(["low", "mid", "up", "top"])[bucketed.astype(int)]
    data = calviz.Predictions(probs=score, labels=labels, groups=groups)
    assert grade_columns(data) == ("r",)
    assert possible_grade_columns(data) == ("season", "r", "word")


def test_the_order_of_the_observed_shares_is_said():
    # 1, 4 and 2 hits of 10 rows each.
    score = np.repeat([0.1, 0.2, 0.3], 10)
    labels = np.concatenate([np.arange(10) < k for k in (1, 4, 2)]).astype(int)
    data = calviz.Predictions(
        probs=score, labels=labels, groups={"g": np.repeat(["A", "B", "C"], 10)}
    )
    text = grades(Sample.of(data), column="g").reading()
    assert text.endswith("The observed shares rise with the scores, but not from B to C.")


def test_grades_in_which_less_happens_are_named_and_have_no_light():
    # 50 rows with a score of 0.9 and 25 hits: the lower tail of Beta(25.5, 25.5) at 0.9 is 1.
    data = calviz.Predictions(
        probs=np.full(50, 0.9), labels=np.arange(50) % 2, groups={"g": ["A"] * 50}
    )
    tested = grades(Sample.of(data), column="g")
    assert tested.lights == ("green", "green")
    assert (
        "Less happens in A: the lights look only for scores that are too low." in tested.reading()
    )


@pytest.mark.parametrize("mean", [0.0005, 0.003, 0.01, 0.05, 0.2])
def test_red_lights_are_at_most_one_in_100_at_any_number_of_hits(mean):
    # 40 grades of 200 rows with 0 to 39 hits: which of these numbers are red, and how probable are they?
    numbers = np.arange(40)
    data = calviz.Predictions(
        probs=np.full(8_000, mean),
        labels=(np.arange(8_000) % 200 < np.arange(8_000) // 200).astype(int),
        groups={"g": np.arange(8_000) // 200},
    )
    tested = grades(Sample.of(data), column="g")
    of_hits = dict(zip(tested.hits[:-1].tolist(), tested.lights, strict=False))
    chance = stats.binom.pmf(numbers, 200, mean)
    red, yellow = (
        sum(c for k, c in zip(numbers, chance, strict=True) if of_hits[k] in lights)
        for lights in (("red",), ("red", "yellow"))
    )
    assert red <= 0.01
    assert yellow <= 0.05


def test_what_is_said_of_calibrated_grades_and_of_one_that_is_off():
    for case in ("heavy weights, few defaults", "very few defaults"):
        portfolio, files = CALIBRATED[case], 60
        drawn = [portfolio.tested(np.random.default_rng([1, i])) for i in range(files)]
        said = np.mean(["more happens than" in one.reading() for one in drawn])
        assert said <= too_many(0.05, files)
        red = np.mean([light == "red" for one in drawn for light in one.lights])
        assert red <= too_many(0.01, files * (portfolio.grades + 1))
    portfolio, times = OFF["3 times as many, few defaults"]
    found = portfolio.tested(np.random.default_rng(0), times=times).reading()
    assert found.startswith("In 1 grade of 7 more happens than the probabilities say: 3.")


def not_alike(seed=0, **columns):
    p, _ = rated(seed=seed)
    return calviz.Predictions(
        probs=p.probs, labels=p.labels, groups={"grade": p.groups["grade"]}, **columns
    )


def test_weighted_grades_count_as_fewer_rows():
    weights = np.random.default_rng(1).exponential(size=900)
    data = not_alike(weights=weights)
    tested = grades(Sample.of(data), column="grade")
    score, hit, level = (
        data.probs[:, 1],
        data.labels,
        np.array(data.groups["grade"].levels)[data.groups["grade"].codes],
    )
    for g, name in enumerate(("A", "BB", "CCC")):
        rows = level == name
        w = weights[rows]
        n, mean, share = (
            w.sum() ** 2 / (w**2).sum(),
            np.average(score[rows], weights=w),
            np.average(hit[rows], weights=w),
        )
        assert (tested.rows[g], tested.hits[g]) == (rows.sum(), hit[rows].sum())
        assert tested.counts_as[g] == pytest.approx(n)
        assert tested.observed[g] == pytest.approx(share)
        posterior = stats.beta(share * n + 0.5, (1 - share) * n + 0.5)
        assert tested.jeffreys[g] == pytest.approx(posterior.cdf(mean))
        assert tested.low[g] == pytest.approx(posterior.ppf(0.025))
    same = grades(Sample.of(not_alike(weights=np.full(900, 3.0))), column="grade")
    np.testing.assert_array_equal(
        same.jeffreys, grades(Sample.of(rated()[0]), column="grade").jeffreys
    )


def test_grades_of_rows_in_clusters_count_as_fewer_rows():
    # Ten of each row know as much as one, but for the quantile of Student's distribution.
    p, which = rated()
    tenfold = np.repeat(np.arange(900), 10)
    data = calviz.Predictions(
        probs=p.probs[tenfold],
        labels=p.labels[tenfold],
        groups={"grade": which[tenfold]},
        clusters=tenfold,
    )
    tested = grades(Sample.of(data), column="grade")
    plain = grades(Sample.of(p), column="grade")
    np.testing.assert_allclose(tested.observed, plain.observed)
    np.testing.assert_allclose(tested.counts_as, plain.rows, rtol=0.015)
    # Clusters of two rows, of different grades nearly always: nobody of a grade belongs together.
    alone = grades(Sample.of(not_alike(clusters=np.arange(900) // 2)), column="grade")
    assert (alone.counts_as > 0.8 * plain.rows).all()
    assert (alone.counts_as <= plain.rows).all()
    # Seven clusters say next to nothing of how clusters differ.
    few = grades(Sample.of(not_alike(clusters=np.arange(900) % 7)), column="grade")
    assert few.lights == ("none",) * 4
    assert np.isnan([few.low, few.high, few.jeffreys, few.binomial]).all()
    assert few.reading().startswith("Not tested: A, BB, CCC, with fewer than 8 clusters.")


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
def test_grades_of_dependent_rows_raise_no_false_alarms(weighted):
    # A calibrated model of 300 debtors with 24 rows each, of which some default more often than others in all grades.
    rng = np.random.default_rng(3)
    score, p_values = np.array([0.03, 0.1, 0.3]), []
    for _ in range(100):
        debtor, grade = np.repeat(np.arange(300), 24), rng.integers(3, size=7_200)
        chance = score[grade] * 3 * rng.beta(1, 2, size=300)[debtor]
        data = calviz.Predictions(
            probs=score[grade],
            labels=(rng.random(7_200) < chance).astype(int),
            groups={"grade": grade},
            clusters=debtor,
            weights=rng.lognormal(size=7_200) if weighted else None,
        )
        p_values.append(grades(Sample.of(data), column="grade").jeffreys[:3])
    # 300 tests at 5 %: 15 expected; with the rows taken as independent, 50 and more.
    assert 3 <= (np.array(p_values) < 0.05).sum() <= 32
