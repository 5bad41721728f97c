"""P-values, levels, and proportions."""

import numpy as np
import pytest
from scipy import stats
from scipy.stats import binom, false_discovery_control, norm

from calviz.core.blocks import effective_number, with_mean_one
from calviz.core.p_values import (
    LARGE,
    above,
    above_drawn,
    benjamini_hochberg,
    clopper_pearson,
    draws,
    holm,
    middle_of_mean,
    quantile,
    selected,
    tails_of_hits,
)

# ---- Adjusted p-values and Fisher's exact test, against SciPy and by hand


def test_by_hand():
    # 0.01 * 4, 0.02 * 4 / 2, then 0.04 * 4 / 3 = 0.0533 and 0.9; in the order that they are given in.
    assert benjamini_hochberg([0.04, 0.01, 0.9, 0.02]) == pytest.approx([0.16 / 3, 0.04, 0.9, 0.04])


@pytest.mark.parametrize("tests", [1, 2, 7, 400])
def test_as_in_scipy(tests):
    rng = np.random.default_rng(tests)
    p = rng.random(tests).round(2) ** 2  # with ties, 0 and 1
    np.testing.assert_allclose(benjamini_hochberg(p), false_discovery_control(p), rtol=1e-12)


def test_holm_by_hand():
    # 4 * 0.01, 3 * 0.02, then 2 * 0.02 is raised to 0.06, and 0.9.
    assert holm([0.02, 0.01, 0.9, 0.02]) == pytest.approx([0.06, 0.04, 0.9, 0.06])


# ---- Tails from three cumulants against SciPy's distributions and exact sums


@pytest.mark.parametrize("skewness", [-2.0, -0.3, 0.0, 0.5, 1.5])
def test_against_pearson3_of_scipy(skewness):
    law = stats.pearson3(skewness, loc=2.0, scale=3.0)
    moments = np.array(2.0), np.array(9.0), np.array(skewness * 27.0)
    for q in (1e-5, 0.01, 0.4, 0.975, 0.9999):
        assert quantile(q, *moments) == pytest.approx(law.ppf(q), abs=1e-6)
    for x in (-4.0, 1.0, 2.5, 11.0):
        assert above(x, *moments) == pytest.approx(law.sf(x), rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_against_the_exact_distribution_of_a_sum_of_unequal_draws(seed):
    # Poisson binomial by convolution, in its far tails, with the correction for continuity.
    p = np.random.default_rng(seed).beta(0.2, 2.0, 300)
    exact = np.ones(1)
    for one in p:
        exact = np.convolve(exact, [1 - one, one])
    v = p * (1 - p)
    moments = p.sum(), v.sum(), (v * (1 - 2 * p)).sum()
    upper = np.cumsum(exact[::-1])[::-1]
    for target in (0.05, 1e-3, 1e-5):
        count = int(np.searchsorted(-upper, -target))
        ratio = float(above(count - 0.5, *moments)) / upper[count]
        # A little too heavy far out, never much too light.
        assert 0.9 < ratio < 1.4, target


def test_without_variance_and_from_draws():
    assert above(1.0, 1.0, 0.0, 0.0) == 1
    assert above(1.1, 1.0, 0.0, 0.0) == 0
    rng = np.random.default_rng(0)
    drawn = rng.gamma(9.0, size=400)
    # Beyond all draws there is still a probability: within a factor of two of the true one.
    p = above_drawn(drawn, 22.0)
    assert stats.gamma(9.0).sf(22.0) / 2 < p < 2 * stats.gamma(9.0).sf(22.0)
    assert above_drawn(np.array([1.0]), 5.0) == 1


def test_above_few_draws_by_hand():
    # Mean 0, no skewness; the variance of four draws is 20 / 3, that of a fifth one's distance from their mean 5 / 4 of it.
    drawn = np.array([-3.0, -1.0, 1.0, 3.0])
    assert above_drawn(drawn, 5.0) == pytest.approx(norm.sf(5 / np.sqrt(20 / 3 * 5 / 4)), rel=1e-6)


def test_the_mean_of_rare_rows_has_the_middle_of_a_binomial():
    n, p = 400, 0.05
    moments = (np.array([p]),) * 3  # of a row that is 0 or 1
    low, high = middle_of_mean(0.99, n, *moments)
    wanted = binom.ppf([0.005, 0.995], n, p) / n
    np.testing.assert_allclose(np.concatenate([low, high]), wanted, atol=1.1 / n)


@pytest.mark.parametrize("third", [-3.0, 0.0, 1e-9, 0.5, 8.0])
def test_draws_have_the_cumulants(third):
    drawn = draws(np.random.default_rng(0), 5.0, 4.0, third, 400_000)
    assert drawn.mean() == pytest.approx(5, abs=0.02)
    assert drawn.var() == pytest.approx(4, rel=0.03)
    assert stats.skew(drawn) * 8 == pytest.approx(third, abs=0.35)


def test_draws_of_several_variables():
    mean, variance, third = np.array([[5.0, 0.0, -2.0], [0.0, 1.0, 4.0], [0.0, 0.8, -4.0]])
    drawn = draws(np.random.default_rng(0), mean, variance, third, 100_000)
    assert drawn.shape == (3, 100_000)
    assert (drawn[0] == 5).all()
    np.testing.assert_allclose(drawn.mean(axis=1), mean, atol=0.02)
    np.testing.assert_allclose(drawn.var(axis=1), variance, rtol=0.03)
    np.testing.assert_allclose(stats.skew(drawn[1:], axis=1), [0.8, -0.5], atol=0.05)


def tails_of(score, hit, weights):
    """`tails_of_hits` from the rows."""
    v = score * (1 - score)
    moments = weights**2 @ v, weights**3 * v @ (1 - 2 * score)
    large = weights > LARGE * moments[0] ** 0.5
    columns = score[large], hit[large], weights[large]
    return tails_of_hits(weights @ (hit - score), *moments, weights.sum(), weights.size, *columns)


@pytest.mark.parametrize("seed", range(6))
def test_tails_of_a_weighted_sum_against_all_outcomes(seed):
    rng = np.random.default_rng(seed)
    score, weights = rng.beta(0.6, 1.0, 12), rng.lognormal(0, 1.5, 12)
    outcomes = (np.arange(2**12)[:, None] >> np.arange(12)) % 2
    chance = np.prod(np.where(outcomes == 1, score, 1 - score), axis=1)
    total = outcomes @ weights
    near = 0.2 * np.sqrt(weights**2 @ (score * (1 - score)))  # what rounded weights move
    for row in rng.choice(2**12, 20, p=chance):
        more, fewer = tails_of(score, outcomes[row] == 1, weights)
        at = total[row]
        assert chance @ (total >= at + near) - 0.01 <= more <= chance @ (total >= at - near) + 0.01
        assert chance @ (total <= at - near) - 0.01 <= fewer <= chance @ (total <= at + near) + 0.01


def test_tails_of_equal_weights_are_binomial():
    score, weights = np.full(40, 0.1), np.full(40, 3.0)
    for hits in range(12):
        more, fewer = tails_of(score, np.arange(40) < hits, weights)
        assert more == pytest.approx(binom.sf(hits - 1, 40, 0.1), rel=1e-9)
        assert fewer == pytest.approx(binom.cdf(hits, 40, 0.1), rel=1e-9)


def test_one_heavy_row_decides_the_tail_which_three_cumulants_do_not_tell():
    # The heavy row hits with a chance of 1 in 100; without it, the sum cannot be far from its mean.
    score = np.append(np.full(400, 0.3), 0.01)
    weights = np.append(np.full(400, 1.0), 1_000.0)
    hit = np.append(np.arange(400) < 120, True)
    more, _ = tails_of(score, hit, weights)
    assert more == pytest.approx(0.01 * binom.sf(119, 400, 0.3), rel=0.15)
    more, fewer = tails_of(score, hit & (weights == 1), weights)
    assert more == pytest.approx(0.01 + 0.99 * binom.sf(119, 400, 0.3), rel=0.15)
    assert fewer == pytest.approx(0.99 * binom.cdf(120, 400, 0.3), rel=0.15)


# ---- Clopper-Pearson intervals


def test_closed_forms_at_the_ends():
    for n in (1, 5, 1_000):
        low, high = clopper_pearson([0, n], [n, n])
        assert (low[0], high[1]) == (0, 1)
        assert high[0] == pytest.approx(1 - 0.025 ** (1 / n), rel=1e-12)
        assert low[1] == pytest.approx(0.025 ** (1 / n), rel=1e-12)


def test_defining_equations():
    low, high = clopper_pearson(37, 100, level=0.9)
    assert stats.binom.sf(36, 100, low) == pytest.approx(0.05)
    assert stats.binom.cdf(37, 100, high) == pytest.approx(0.05)


def test_against_scipy():
    rng = np.random.default_rng(0)
    n = rng.integers(1, 500, 60)
    k = rng.integers(0, n + 1)
    low, high = clopper_pearson(k, n)
    exact = [
        stats.binomtest(int(a), int(b)).proportion_ci(method="exact")
        for a, b in zip(k, n, strict=True)
    ]
    np.testing.assert_allclose(np.stack([low, high], axis=1), exact, atol=1e-12)


def test_no_rows_and_many_rows():
    assert clopper_pearson(0, 0) == (0, 1)
    low, high = clopper_pearson(5e8, 1e9)
    assert 0.49996 < low < 0.5 < high < 0.50004


# ---- Effective sample sizes of weights of any size


@pytest.mark.parametrize("factor", [1e-300, 1e-160, 1.0, 1e160, 8e307])
def test_no_size_of_weights_overflows(factor):
    weights = factor * np.array([1.0, 2.0, 0.0, 1.0])
    # (1 + 2 + 1)^2 / (1 + 4 + 1)
    assert effective_number(weights) == pytest.approx(16 / 6, rel=1e-15)
    np.testing.assert_allclose(with_mean_one(weights), [1, 2, 0, 1], rtol=1e-15)


def test_equal_weights_count_as_their_number():
    assert effective_number(np.full(7, 0.3)) == pytest.approx(7, rel=1e-14)
    np.testing.assert_array_equal(with_mean_one(np.full(7, 0.3)), np.ones(7))


def test_selected_effects_are_stated_without_the_bias_of_their_selection():
    """Where half of the effects are selected or more, within 5 %; intervals hold."""
    rng, least = np.random.default_rng(0), norm.isf(1e-4 / 2)
    for effect in (least, 1.1 * least, 1.5 * least, 2 * least):
        seen = effect + rng.normal(size=20_000)
        seen = seen[seen > least][:4_000]
        less, low = np.transpose([selected(z - least, share=1 / 50) for z in seen])
        assert abs((seen - less).mean() / effect - 1) < 0.05
        assert np.mean((seen + low <= effect) & (effect <= seen + norm.isf(0.025))) > 0.945
        assert ((low < -less) & (less >= 0)).all()


def test_the_lower_end_of_a_selected_effect_makes_it_rare():
    _, low = selected(2.5, share=1 / 50)
    assert norm.cdf(low) / norm.cdf(low + 2.5) == pytest.approx(0.025, rel=1e-3)
    assert selected(0.0, share=1 / 50)[1] == pytest.approx(norm.ppf(0.025 / 50))
    assert selected(20.0) == pytest.approx((0, norm.ppf(0.025)))
