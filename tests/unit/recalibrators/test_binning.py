"""Bins, splines, Gaussian processes."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.interpolate import CubicSpline
from scipy.optimize import minimize
from scipy.special import betaln, gammaln

import calviz
from calviz.core.events import BinaryEvents
from calviz.core.predictions import Predictions
from calviz.core.probabilities import Scores
from calviz.recalibrators.composition import ScalingBinning
from calviz.recalibrators.gaussian_process import GaussianProcess, LatentProblem, warp
from calviz.recalibrators.histogram import (
    BayesianBinning,
    HistogramBinning,
    _Bins,
    averaged_binnings,
    bin_counts,
    binned_by_class,
    log_rising,
)
from calviz.recalibrators.maps import (
    DamagedField,
    Piecewise,
    ProbabilityMap,
    halfway,
    steps_merged,
    thinned,
)
from calviz.recalibrators.platt_scaling import PlattScaling
from calviz.recalibrators.spline import (
    ClasswiseSpline,
    SplineRecalibrator,
    fit_bounded,
    fit_spline,
    pieces,
    slopes,
    spline_map,
    values,
)
from calviz.recalibrators.temperature_scaling import TemperatureScaling
from tests.inputs.simulated import draw_labels, simulate, softmax

# ---- Histogram binning, BBQ, scaling-binning


def two(p):
    return np.stack([1 - p, p], axis=1)


def test_equal_width_by_hand():
    p = np.array([0.0, 0.1, 0.2, 0.25, 0.5, 0.6, 0.9, 1.0])
    y = np.array([0, 1, 0, 0, 1, 1, 1, 1])
    fitted = HistogramBinning(bins=4).fit(two(p), y)
    # (0, 1/4]: 1 of 4; (1/4, 1/2]: 1 of 1; (1/2, 3/4]: 1 of 1; (3/4, 1]: 2 of 2.
    new = np.array([0.0, 0.25, 0.2500001, 0.7, 1.0])
    shares = [1 / 4, 1 / 4, 1, 1, 1]
    plain = HistogramBinning(bins=4, cap=False).fit(two(p), y)
    np.testing.assert_allclose(plain.transform(two(new))[:, 1], shares, atol=1e-8)
    # One row supports 1 - 1/4, two 1 - 1/6.
    capped = [1 / 4, 1 / 4, 3 / 4, 3 / 4, 5 / 6]
    np.testing.assert_allclose(fitted.transform(two(new))[:, 1], capped, atol=1e-8)


def test_empty_bins_keep_their_centre():
    p, y = np.array([0.1, 0.1, 0.9, 0.9]), np.array([0, 1, 0, 1])
    fitted = HistogramBinning(bins=5).fit(two(p), y)
    np.testing.assert_allclose(
        fitted.transform(two(np.array([0.3, 0.5, 0.7])))[:, 1], [0.3, 0.5, 0.7]
    )


def test_equal_mass_by_hand_with_ties_together():
    p = np.array([0.1, 0.2, 0.2, 0.2, 0.6, 0.8])
    y = np.array([0, 1, 0, 0, 1, 1])
    fitted = HistogramBinning(bins=3, scheme="equal-mass").fit(two(p), y)
    # Cuts after 2 and 4 rows, the first one moved to the end of the ties: {0.1, 0.2 x 3} and {0.6, 0.8}.
    np.testing.assert_allclose(
        fitted.transform(two(np.array([0.05, 0.39, 0.41])))[:, 1], [0.25, 0.25, 5 / 6], atol=1e-8
    )
    plain = HistogramBinning(bins=3, scheme="equal-mass", cap=False).fit(two(p), y)
    np.testing.assert_allclose(plain.transform(two(np.array([0.41])))[:, 1], [1], atol=1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bins", [1, 4, 15])
def test_the_sparse_count_is_the_plain_count(dtype, bins):
    z, y = simulate(500, 7)
    p = softmax(z).astype(dtype)
    p[:20] = np.eye(7)[y[:20]]
    rows, hits = binned_by_class(Scores(p, "probabilities", "probabilities"), y, bins)
    edges = (np.arange(1, bins) / bins).astype(dtype)
    for k in range(7):
        place = np.searchsorted(edges, p[:, k])
        np.testing.assert_array_equal(rows[k], np.bincount(place, minlength=bins))
        np.testing.assert_array_equal(hits[k], np.bincount(place[y == k], minlength=bins))


def brute_force(score, hit, new):
    """BBQ as it is defined: every binning, every bin, one after the other."""
    order = np.argsort(score, kind="stable")
    score, hit = score[order], hit[order]
    n = score.size
    evidence, rates = [], []
    for bins in bin_counts(n):
        groups, seen = [], 0
        for part in np.array_split(np.arange(n), bins):
            if part.size == 0 or part[-1] < seen:
                continue
            end = np.searchsorted(score, score[part[-1]], side="right")
            if end > seen:
                groups.append((seen, end))
                seen = end
        total, value = 0.0, np.empty(new.size)
        for start, end in groups:
            left = 0.0 if start == 0 else (score[start - 1] + score[start]) / 2
            right = 1.0 if end == n else (score[end - 1] + score[end]) / 2
            prior = 2 / len(groups)
            a, b = prior * (left + right) / 2, prior * (1 - (left + right) / 2)
            won, rows = hit[start:end].sum(), end - start
            total += betaln(won + a, rows - won + b) - betaln(a, b)
            value[(new > left) | (start == 0)] = (won + a) / (rows + prior)
        evidence.append(total)
        rates.append(value)
    weight = np.exp(np.array(evidence) - max(evidence))
    return weight @ np.array(rates) / weight.sum()


@pytest.mark.parametrize("decimals", [None, 1])
@pytest.mark.parametrize("n", [12, 60, 300])
def test_bbq_is_its_definition(decimals, n):
    rng = np.random.default_rng(n)
    score = rng.random(n)
    if decimals:
        score = score.round(decimals)
    hit = rng.random(n) < score**2
    ordered = np.sort(score)
    ends = np.searchsorted(ordered, score[hit], side="right")
    hits = np.cumsum(np.bincount(ends, minlength=n + 1))
    new = rng.random(200)
    result = averaged_binnings(ordered, hits, np.arange(ordered.size + 1.0))(new)
    np.testing.assert_allclose(result, brute_force(score, hit, new), atol=1e-9)


def evidence_by_integration(score, hit, w, bins):
    """Log marginal likelihood of one binning into equal weights, every bin's rate integrated out."""
    upto = np.cumsum(w)
    last = [int(np.searchsorted(upto, upto[-1] * m / bins * (1 - 1e-12))) for m in range(1, bins + 1)]  # fmt: skip
    ends = sorted({end + 1 for end in last})
    total, start, left = 0.0, 0, 0.0
    for end in ends:
        right = 1.0 if end == score.size else (score[end - 1] + score[end]) / 2
        a, b = (2 / len(ends) * share for share in ((left + right) / 2, 1 - (left + right) / 2))
        won, lost = (w[start:end] @ own[start:end] for own in (hit, 1 - hit))

        def density(rate, powers=(won + a - 1, lost + b - 1)):
            return rate ** powers[0] * (1 - rate) ** powers[1]

        # Its ends are steep: by halves.
        whole = sum(quad(density, *half, limit=200)[0] for half in ((0, 0.5), (0.5, 1)))
        total += np.log(whole) - betaln(a, b)
        start, left = end, right
    return total


def test_the_evidence_of_weighted_rows_is_an_integral():
    rng = np.random.default_rng(4)
    score, w = np.sort(rng.random(40)), rng.uniform(0.5, 2, 40)
    hit = (rng.random(40) < score).astype(float)
    # A whole number of rows, so that equal weights are cut as rows are.
    w *= 40 / w.sum()
    below, hits = (np.append(0, np.cumsum(v)) for v in (w, w * hit))
    for bins in (1, 4):
        evidence = _Bins.of(score, hits, np.array([bins]), below).evidence()
        assert evidence[0] == pytest.approx(evidence_by_integration(score, hit, w, bins), abs=1e-6)


@pytest.mark.parametrize("decimals", [None, 1])
def test_rows_that_count_as_several_are_as_many_rows(decimals):
    rng = np.random.default_rng(5)
    score = np.sort(rng.random(80).round(decimals) if decimals else rng.random(80))
    hit, counts = rng.random(80) < score**2, rng.integers(1, 4, 80)
    new = rng.random(200)
    below, hits = (np.append(0, np.cumsum(v)) for v in (counts, counts * hit))
    result = averaged_binnings(score, hits.astype(float), below.astype(float))(new)
    wanted = brute_force(np.repeat(score, counts), np.repeat(hit, counts), new)
    # Cuts half-way between copies and the next row are cuts half-way between the rows.
    np.testing.assert_allclose(result, wanted, atol=1e-9)


def test_bbq_takes_unequal_weights_as_fewer_rows():
    rng = np.random.default_rng(6)
    p, w = rng.random(300), rng.exponential(size=300)
    y = (rng.random(300) < p).astype(int)
    order, effective = np.argsort(p), w.sum() ** 2 / (w @ w)
    own = w[order] * effective / w.sum()
    below, hits = (np.append(0, np.cumsum(v)) for v in (own, own * y[order]))
    fitted = BayesianBinning().fit(two(p), y, sample_weight=w)
    np.testing.assert_allclose(fitted.curve(p), averaged_binnings(p[order], hits, below)(p))


def test_log_rising_is_the_quotient_of_gamma_functions():
    rng = np.random.default_rng(0)
    a = np.concatenate([10 ** rng.uniform(-9, 0.3, size=2_000), [1e-12, 1.0, 2.0]])
    m = rng.integers(0, 10 ** rng.uniform(0, 7, size=a.size))
    # The difference of two gammaln has their rounding.
    wanted = gammaln(a + m) - gammaln(a)
    np.testing.assert_allclose(log_rising(a, m), wanted, rtol=1e-13, atol=1e-11)
    # A product, exactly.
    np.testing.assert_allclose(
        log_rising(np.array([0.25]), np.array([3])), np.log(0.25 * 1.25 * 2.25)
    )


def test_bbq_finds_the_true_rate():
    rng = np.random.default_rng(0)
    p = rng.random(20_000)
    y = (rng.random(20_000) < np.where(p > 0.5, 0.8, 0.3)).astype(int)
    out = BayesianBinning().fit(two(p), y).transform(two(np.array([0.1, 0.4, 0.6, 0.9])))[:, 1]
    np.testing.assert_allclose(out, [0.3, 0.3, 0.8, 0.8], atol=0.03)


def test_scaling_binning_holds_the_means_of_the_scaled_scores():
    z, y = simulate(1_000, 2, temperature=2)
    p = softmax(z)
    scaled = PlattScaling().fit(p, y).transform(p)[:, 1]
    result = ScalingBinning(bins=10).fit(p, y).transform(p)[:, 1]
    assert np.unique(result.round(12)).size == 10
    for part in np.array_split(np.argsort(scaled), 10):
        np.testing.assert_allclose(result[part], scaled[part].mean(), atol=1e-8)


def test_pieces():
    steps = steps_merged(np.array([0.2, 0.5, 0.7]), np.array([1.0, 1.0, 2.0, 3.0]))
    np.testing.assert_array_equal(steps.x, [0.5, 0.7])
    np.testing.assert_array_equal(steps(np.array([0.1, 0.5, 0.51, 0.7, 0.8])), [1, 1, 2, 2, 3])
    ordered = np.array([0.1, 0.2, 0.2, 0.6])
    np.testing.assert_allclose(halfway(ordered, np.array([0.2])), [0.4])
    x = np.linspace(0, 1, 2_000)
    line = thinned(x, np.sin(6 * x), 1e-4)
    assert line.x.size < 300
    np.testing.assert_allclose(line(x), np.sin(6 * x), atol=1e-4)
    with pytest.raises(DamagedField, match="fit together"):
        ProbabilityMap().read({"x": [1, 2], "y": [1]}, {})


@pytest.mark.parametrize("steps", [False, True])
def test_many_scores_by_table_are_as_one_by_one(steps, monkeypatch):
    rng = np.random.default_rng(0)
    x = np.unique(np.concatenate([rng.random(50), 10.0 ** -rng.uniform(1, 40, 50), [0.5]]))
    y = np.sort(rng.random(x.size + steps))
    y[1] = y[0]
    result = Piecewise(x, y)
    score = np.concatenate(
        [rng.random(70_000), 10.0 ** -rng.uniform(0, 44, 70_000), [0, 1, 0.5, -1e-7, 1 + 1e-6], x]
    ).astype(np.float32)
    by_table = result(score)
    monkeypatch.setattr("calviz.recalibrators.maps._MANY", 10**9)
    skipping = result(score)
    monkeypatch.setattr("calviz.recalibrators.maps._SOME", 10**9)
    np.testing.assert_array_equal(skipping, result(score))
    np.testing.assert_allclose(by_table, result(score), atol=1e-9)


def test_the_natural_spline_is_scipys():
    rng = np.random.default_rng(0)
    knots = np.linspace(0, 1, 7)
    at_knots = rng.normal(size=7)
    other = CubicSpline(knots, at_knots, bc_type="natural")
    t = np.linspace(0, 1, 400)
    # Fitting the spline to itself gives it back.
    cubics = fit_spline([(t, other(t))], 7, "natural")
    np.testing.assert_allclose(values(cubics, t), other(t), atol=1e-9)
    np.testing.assert_allclose(slopes(cubics, t), other(t, 1), atol=1e-8)


def test_the_fit_is_least_squares():
    rng = np.random.default_rng(1)
    t = np.sort(rng.random(300))
    v = rng.normal(size=300)
    knots = np.linspace(0, 1, 6)
    basis = np.stack([CubicSpline(knots, e, bc_type="natural")(t) for e in np.eye(6)], axis=1)
    other = basis @ np.linalg.lstsq(basis, v)[0]
    np.testing.assert_allclose(values(fit_spline([(t, v)], 6, "natural"), t), other, atol=1e-9)


@pytest.mark.parametrize("run_out", ["parabolic", "cubic"])
def test_run_outs(run_out):
    cubics = pieces(6, run_out) @ np.random.default_rng(0).normal(size=6)
    m = np.append(2 * cubics[:, 2], 2 * cubics[-1, 2] + 6 * cubics[-1, 3] / 5)
    if run_out == "parabolic":
        assert m[0] == pytest.approx(m[1])
        assert m[-1] == pytest.approx(m[-2])
    else:
        assert m[0] - m[1] == pytest.approx(m[1] - m[2])
        assert m[-1] - m[-2] == pytest.approx(m[-2] - m[-3])


def test_a_cubic_is_its_own_spline_with_cubic_run_out():
    t = np.linspace(0, 1, 200)
    v = 1 - 2 * t + 3 * t**2 - 0.7 * t**3
    cubics = fit_spline([(t, v)], 6, "cubic")
    np.testing.assert_allclose(slopes(cubics, t), -2 + 6 * t - 2.1 * t**2, atol=1e-8)


def test_finds_the_true_map():
    rng = np.random.default_rng(3)
    score = rng.random(200_000)
    hit = rng.random(score.size) < score**2
    fitted = spline_map(BinaryEvents(score, hit).ordered)
    new = np.linspace(0.1, 0.9, 30)
    np.testing.assert_allclose(fitted(new), new**2, atol=0.02)


def test_tied_scores_get_the_hit_rate_of_their_group():
    rng = np.random.default_rng(3)
    score = rng.random(100_000).round(1)
    hit = rng.random(score.size) < score**2
    fitted = spline_map(BinaryEvents(score, hit).ordered)
    tied = np.arange(1, 10) / 10
    assert fitted.x.size <= 11
    np.testing.assert_allclose(fitted(tied), tied**2, atol=0.02)


@pytest.mark.parametrize("k", [2, 10])
def test_brings_ks_down_on_other_rows(k):
    z, y = simulate(20_000, k, temperature=2.2)
    p = softmax(z)
    fitted = SplineRecalibrator().fit(p[:10_000], y[:10_000])
    rest, labels = p[10_000:], y[10_000:]

    def ks(q, reduction="top-label"):
        data = Predictions(probs=q, labels=labels)
        return calviz.evaluate(data, ["ks"], reduction=reduction)["ks"].value

    assert ks(rest) > 0.1
    assert ks(fitted.transform(rest)) < 0.012
    by_class = ClasswiseSpline().fit(p[:10_000], y[:10_000]).transform(rest)
    assert ks(by_class, "class:1") < 0.012


def test_keeps_the_predicted_class_wherever_the_confidence_allows_it():
    z, y = simulate(5_000, 6, temperature=4)
    p = softmax(z)
    fitted = SplineRecalibrator().fit(p, y)
    out = fitted.transform(p)
    confidence = fitted.map_(p.max(axis=1))
    possible = confidence >= 1 / 6
    assert possible.mean() > 0.5
    np.testing.assert_array_equal(out.argmax(axis=1)[possible], p.argmax(axis=1)[possible])
    np.testing.assert_allclose(out[np.arange(y.size), p.argmax(axis=1)], confidence, atol=1e-9)
    # The order of the others stays.
    np.testing.assert_array_equal(
        np.argsort(out, axis=1)[possible][:, :4], np.argsort(p, axis=1)[possible][:, :4]
    )


def test_within_top_2_sets_the_sum():
    z, y = simulate(4_000, 5, temperature=2)
    p = softmax(z)
    fitted = SplineRecalibrator(mode="within-top-r", r=2).fit(p, y)
    out = fitted.transform(p)
    top = np.argsort(-p, axis=1)[:, :2]
    rows = np.arange(y.size)[:, None]
    np.testing.assert_allclose(
        out[rows, top].sum(axis=1), fitted.map_(p[rows, top].sum(axis=1)), atol=1e-9
    )
    ratio = out[rows, top] / p[rows, top]
    np.testing.assert_allclose(ratio[:, 0], ratio[:, 1], rtol=1e-9)


def saturated(n=600):
    """Scores whose hits jump, so that the derivative of a free spline leaves [0, 1]."""
    rng = np.random.default_rng(4)
    score = np.sort(rng.random(n))
    return BinaryEvents(score, score > 0.6)


def test_the_bounded_spline_is_the_quadratic_programme():
    events = saturated()
    n = events.n
    t, v = np.arange(1, n + 1) / n, np.cumsum(events.ordered.hit) / n
    knots = np.linspace(0, 1, 6)
    cubics = fit_bounded([(t, v)], 6, "natural")
    fine = np.linspace(0, 1, 1_001)
    slope = slopes(cubics, fine)
    assert slope.min() > -1e-4
    assert slope.max() < 1 + 1e-4
    # A general solver, with SciPy's own natural splines.
    basis = np.stack([CubicSpline(knots, row, bc_type="natural")(t) for row in np.eye(6)], axis=1)
    rates = np.stack(
        [CubicSpline(knots, row, bc_type="natural")(fine, 1) for row in np.eye(6)], axis=1
    )
    free = np.linalg.lstsq(basis, v)[0]
    assert (rates @ free).max() > 1.1
    assert (rates @ free).min() < -0.02
    other = minimize(
        lambda a: ((basis @ a - v) ** 2).mean(),
        knots,
        jac=lambda a: 2 * basis.T @ (basis @ a - v) / n,
        method="SLSQP",
        constraints=[
            {"type": "ineq", "fun": lambda a: rates[::5] @ a, "jac": lambda a: rates[::5]},
            {"type": "ineq", "fun": lambda a: 1 - rates[::5] @ a, "jac": lambda a: -rates[::5]},
        ],
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert ((values(cubics, t) - v) ** 2).mean() == pytest.approx(other.fun, rel=1e-3)


def test_bounds_that_are_not_reached_change_nothing():
    rng = np.random.default_rng(0)
    score = np.sort(0.2 + 0.6 * rng.random(4_000))
    v = np.cumsum(rng.random(4_000) < score) / 4_000
    points = [(np.arange(1, 4_001) / 4_000, v)]
    bounded, free = fit_bounded(points, 6, "natural"), fit_spline(points, 6, "natural")
    np.testing.assert_allclose(bounded, free, atol=1e-6)


def test_a_bounded_map_is_one_of_probabilities():
    events = saturated()
    p = np.stack([1 - events.score, events.score], axis=1)
    fitted = ClasswiseSpline(bounded=True).fit(p, events.hit.astype(int))
    out = fitted.transform(p)
    assert out.min() >= 0
    np.testing.assert_allclose(out.sum(axis=1), 1)
    assert out[:100, 1].max() < 0.05
    assert out[-100:, 1].min() > 0.9


@pytest.mark.parametrize("cap", [False, True])
def test_a_remainder_too_small_to_rescale_is_shared_evenly_in_the_snippet_too(cap):
    z, y = simulate(300, 3, temperature=2.0, seed=0)
    fitted = SplineRecalibrator(cap=cap, floor=None).fit(softmax(z), y)
    rows = np.array([[1.0, 3e-310, 1e-310], [0.0, 1.0, 5e-324], [1e-320, 0.0, 1.0]])
    program = {}
    exec(compile(fitted.snippet(), "snippet", "exec"), program)
    out = fitted.transform(rows)
    np.testing.assert_allclose(program["recalibrate"](rows), out, atol=1e-6)
    np.testing.assert_allclose(out.sum(axis=1), 1)


def nll(p, y):
    return -np.log(p[np.arange(y.size), y]).mean()


def test_gradient():
    z, y = simulate(300, 5)
    x = np.log(softmax(z))
    problem = LatentProblem(x, y, 4)
    theta = 0.3 * np.random.default_rng(0).normal(size=4 + 10 + 2)
    _, gradient = problem.negative_bound(theta)
    step = 1e-3
    other = [
        (problem.negative_bound(theta + step * e)[0] - problem.negative_bound(theta - step * e)[0])
        / (2 * step)
        for e in np.eye(theta.size)
    ]
    np.testing.assert_allclose(gradient, other, atol=2e-4)


def test_the_bound_with_a_certain_function_is_the_likelihood():
    """With nothing left uncertain, what is bounded is the softmax likelihood itself."""
    z, y = simulate(200, 3)
    x = np.log(softmax(z))
    problem = LatentProblem(x, y, 3)
    total, responsibilities = problem.responsibilities(np.zeros(problem.grid.size))
    assert total / 200 == pytest.approx(0, abs=1e-6)  # log sum exp of log-probabilities
    np.testing.assert_allclose(responsibilities.sum(), 200, rtol=1e-5)
    np.testing.assert_allclose(problem.label_counts.sum(), 200)


def test_a_row_that_counts_as_several_is_as_many_rows():
    z, y = simulate(200, 3)
    x, counts = np.log(softmax(z)), np.random.default_rng(1).integers(1, 4, 200)
    many = np.repeat(np.arange(200), counts)
    theta = 0.3 * np.random.default_rng(0).normal(size=4 + 10 + 2)
    weighted = LatentProblem(x, y, 4, counts.astype(float)).negative_bound(theta)
    copied = LatentProblem(x[many], y[many], 4).negative_bound(theta)
    assert weighted[0] == pytest.approx(copied[0], rel=1e-6)
    np.testing.assert_allclose(weighted[1], copied[1], atol=1e-6)


def test_weights_of_the_method_add_up_to_their_effective_number(monkeypatch):
    z, y = simulate(200, 3)
    w, seen = np.random.default_rng(1).exponential(size=200), []
    original = LatentProblem.__init__

    def noted(self, x, labels, inducing, weights=None):
        seen.append(weights)
        original(self, x, labels, inducing, weights)

    monkeypatch.setattr(LatentProblem, "__init__", noted)
    GaussianProcess().fit(softmax(z), y, sample_weight=w)
    np.testing.assert_allclose(seen[0], w * w.sum() / (w @ w))


def test_warp_is_fine_near_zero():
    np.testing.assert_allclose(warp(np.array([0.0, -np.expm1(1.0)])), [0, -1], atol=1e-12)


@pytest.mark.slow
def test_learns_what_a_temperature_cannot():
    rng = np.random.default_rng(2)
    n, k = 6_000, 8
    z = rng.normal(scale=2.5, size=(n, k))
    log_p = np.log(softmax(z))
    # The true map bends: sharp near 0, flat far below.
    true = softmax(-3 * np.log1p(-log_p / 3))
    y = draw_labels(true, rng)
    p = np.exp(log_p)
    half = slice(0, n // 2)
    rest = slice(n // 2, n)
    gp = GaussianProcess().fit(p[half], y[half])
    ts = TemperatureScaling().fit(p[half], y[half])
    best = nll(true[rest], y[rest])
    assert nll(gp.transform(p[rest]), y[rest]) - best < 0.2 * (
        nll(ts.transform(p[rest]), y[rest]) - best
    )


def test_is_temperature_scaling_where_that_is_right():
    z, y = simulate(4_000, 5, temperature=1.7)
    gp = GaussianProcess(input="logits").fit(z, y)
    np.testing.assert_allclose(gp.transform(z), softmax(z / 1.7), atol=0.03)


@pytest.mark.slow
def test_large_data_are_thinned_and_that_is_said():
    z, y = simulate(400, 5)
    fitted = GaussianProcess(max_pairs=1_000, input="logits").fit(z, y)
    assert fitted.warnings_[0] == "fitted on one row in 2 (200 of 400), to limit the time it takes."


@pytest.mark.slow
def test_the_prior_mean_is_temperature_scaling():
    z, y = simulate(400, 3, temperature=2.0, seed=5)
    p = softmax(z)
    temperature = TemperatureScaling().fit(p, y).temperature_
    fitted = GaussianProcess().fit(p, y)
    assert fitted.scale_ == pytest.approx(1 / temperature, rel=1e-6)
    # Far below all scores that were seen the function goes back to it, up to a constant.
    x = np.exp(np.array([-60.0, -50.0]))
    assert np.diff(fitted.curve(x))[0] == pytest.approx(10 / temperature, rel=0.05)
