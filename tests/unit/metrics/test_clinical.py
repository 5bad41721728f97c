"""Tests and validation of two classes."""

import json
import math

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression

import calviz
from benchmarks import record_r
from calviz.verdicts.evaluation import remarks
from tests.inputs.reliability import event_metrics

# ---- Tests and fitted curves against scikit-learn, SciPy and closed forms


KEYS = (
    *("spiegelhalter_z", "hosmer_lemeshow", "calibration_slope", "calibration_intercept"),
    *("ici", "e50", "e90"),
)
EPS = np.finfo(np.float64).eps
NO_FIT = ("calibration_slope", "calibration_intercept", "ici", "e50", "e90")


def evaluated(score, hit, keys=KEYS, **options):
    return event_metrics(score, hit, keys, **{"curve": "logistic"} | options)


def sample(n=600, decimals=10, seed=0):
    rng = np.random.default_rng(seed)
    score = np.round(rng.uniform(0.01, 0.99, size=n), decimals).clip(0.05, 0.95)
    logit = 0.3 + 0.6 * np.log(score / (1 - score))
    return score, rng.random(n) < 1 / (1 + np.exp(-logit))


def sklearn_curve(score, hit):
    x = np.log(score / (1 - score))[:, None]
    model = LogisticRegression(C=np.inf, tol=1e-12, max_iter=1000).fit(x, hit)
    return model.intercept_[0], model.coef_[0, 0], model.predict_proba(x)[:, 1]


@pytest.mark.parametrize("decimals", [10, 1])
def test_logistic_recalibration_against_scikit_learn(decimals):
    score, hit = sample(decimals=decimals)
    intercept, slope, curve = sklearn_curve(score, hit)
    result = evaluated(score, hit)
    assert result["calibration_intercept"].value == pytest.approx(intercept, abs=1e-5)
    assert result["calibration_slope"].value == pytest.approx(slope, abs=1e-5)
    distance = np.abs(curve - score)
    assert result["ici"].value == pytest.approx(distance.mean(), abs=1e-6)
    for key, q in (("e50", 0.5), ("e90", 0.9)):
        expected = np.quantile(distance, q, method="inverted_cdf")
        assert result[key].value == pytest.approx(expected, abs=1e-5)


def test_many_rows_start_from_their_summary():
    score, hit = sample(n=6000)
    intercept, slope, _ = sklearn_curve(score, hit)
    result = evaluated(score, hit)
    assert result["calibration_intercept"].value == pytest.approx(intercept, abs=1e-5)
    assert result["calibration_slope"].value == pytest.approx(slope, abs=1e-5)


def tight_fit(x, hit):
    """Intercept and slope by SciPy, at a gradient of nothing."""
    from scipy.optimize import root
    from scipy.special import expit

    def gradient(theta):
        left = expit(theta[0] + theta[1] * x) - hit
        return [left.mean(), (left * x).mean()]

    solution = root(gradient, [0.0, 1.0], tol=1e-14)
    assert np.abs(gradient(solution.x)).max() < 1e-14
    return solution.x


@pytest.mark.parametrize("n", [300, 6_000, 40_000])
@pytest.mark.parametrize("steepness", [0.2, 3.0])
def test_slope_and_intercept_are_at_their_optimum(n, steepness):
    rng = np.random.default_rng(n)
    x = rng.normal(-1, 2, size=n)
    score = 1 / (1 + np.exp(-x))
    hit = rng.random(n) < 1 / (1 + np.exp(-0.5 - steepness * x))
    result = evaluated(score, hit, ["calibration_slope", "calibration_intercept"])
    intercept, slope = tight_fit(np.log(score) - np.log1p(-score), hit)
    assert result["calibration_slope"].value == pytest.approx(slope, rel=1e-10)
    assert result["calibration_intercept"].value == pytest.approx(intercept, rel=1e-10)
    assert not result["calibration_slope"].details


def test_scores_of_0_and_1_count_as_half_of_the_smallest_distance():
    rng = np.random.default_rng(5)
    truth = rng.beta(0.4, 0.4, size=2_000)
    score, hit = np.round(truth, 2), rng.random(2_000) < truth
    assert (score == 0).any()
    assert (score == 1).any()
    hit[np.flatnonzero(score == 0)[:5]] = True
    result = evaluated(score, hit)
    s = np.clip(score, 0.005, 0.995)
    intercept, slope = tight_fit(np.log(s) - np.log1p(-s), hit)
    assert result["calibration_slope"].value == pytest.approx(slope, rel=1e-10)
    assert result["calibration_intercept"].value == pytest.approx(intercept, rel=1e-9)
    ends = int(((score == 0) | (score == 1)).sum())
    assert result["calibration_slope"].details == {"floor": pytest.approx(0.005), "at_ends": ends}
    said = f"{ends} scores of 0 or 1 moved inwards by 0.005."
    assert ("Calibration slope; Calibration intercept", said) in remarks(result.metrics.values())
    # Clipped at 2.2e-16 as it was, a handful of rows flatten the slope of a calibrated file.
    assert slope == pytest.approx(1, abs=0.1)
    s = np.clip(score, EPS, 1 - EPS)
    assert tight_fit(np.log(s) - np.log1p(-s), hit)[1] < 0.75


def test_an_underflow_that_a_hit_refutes_is_cross_validated():
    rng = np.random.default_rng(6)
    score = rng.uniform(0.05, 0.95, size=3_000)
    hit = rng.random(3_000) < score
    score[:200], hit[:200] = 0, rng.random(200) < 0.02
    score[200] = 1e-20
    floor = evaluated(score, hit, ["calibration_slope"])["calibration_slope"].details["floor"]
    candidates = [1e-15, 1e-12, 1e-9, 1e-6, 1 / (2 * 3_001), 1e-3]
    assert min(abs(floor / c - 1) for c in candidates) < 1e-12
    # In truth these scores are 0.02: the closest candidate is the best.
    assert floor == 1e-3


def test_resamples_read_zeros_as_the_sample_does():
    rng = np.random.default_rng(7)
    truth = rng.beta(0.4, 0.4, size=500)
    score, hit = np.round(truth, 2), rng.random(500) < truth
    low, high = evaluated(score, hit, ["calibration_slope"], ci=True)["calibration_slope"].interval
    s = np.clip(score, 0.005, 0.995)
    x = np.log(s) - np.log1p(-s)
    rows = [rng.integers(500, size=500) for _ in range(200)]
    drawn = [tight_fit(x[r], hit[r])[1] for r in rows]
    wanted = np.quantile(drawn, [0.025, 0.975])
    np.testing.assert_allclose((low, high), wanted, atol=0.25 * (wanted[1] - wanted[0]))


def test_spiegelhalter_by_its_formula():
    score, hit = sample()
    top = ((hit - score) * (1 - 2 * score)).sum()
    z = top / math.sqrt(((1 - 2 * score) ** 2 * score * (1 - score)).sum())
    result = evaluated(score, hit)["spiegelhalter_z"]
    assert result.value == pytest.approx(z)
    assert result.details["p_value"] == pytest.approx(2 * stats.norm.sf(abs(z)))


def test_spiegelhalter_is_standard_normal_under_calibration():
    rng = np.random.default_rng(1)
    score = rng.random(300)
    floor = evaluated(score, rng.random(300) < score, ["spiegelhalter_z"], ci=True)
    floor = floor["spiegelhalter_z"].noise_floor
    assert floor.mean == pytest.approx(0, abs=0.13)
    assert floor.q95 == pytest.approx(1.645, abs=0.2)


def test_hosmer_lemeshow_by_its_formula():
    score, hit = sample()
    groups = np.array_split(np.argsort(score), 10)
    expected = 0.0
    for rows in groups:
        mean = score[rows].mean()
        gap = hit[rows].sum() - score[rows].sum()
        expected += gap**2 / (rows.size * mean * (1 - mean))
    result = evaluated(score, hit)["hosmer_lemeshow"]
    assert result.value == pytest.approx(expected)
    assert result.details["degrees_of_freedom"] == 10
    assert result.details["p_value"] == pytest.approx(stats.chi2.sf(expected, 10))
    assert evaluated(score, hit, groups=4)["hosmer_lemeshow"].details["degrees_of_freedom"] == 4


@pytest.mark.parametrize(
    ("score", "hit"),
    [
        ([0.2, 0.6, 0.7], [1, 1, 1]),
        ([0.2, 0.6, 0.7], [0, 0, 0]),
        ([0.4] * 4, [0, 1, 0, 1]),
        ([0.2, 0.3, 0.6, 0.7], [0, 0, 1, 1]),
        ([0.2, 0.3, 0.6, 0.7], [1, 1, 0, 0]),
        ([0.2, 0.5, 0.5, 0.7], [0, 0, 1, 1]),  # touching: still no finite optimum
        ([0.0, 1e-300, 0.0], [0, 1, 1]),  # one score after the clip
        ([0.9], [1]),
    ],
)
def test_no_curve_fits(score, hit):
    result = evaluated(score, hit, ci=True, resamples=50)
    for key in NO_FIT:
        assert math.isnan(result[key].value)
        assert result[key].reason.startswith("undefined: no logistic curve fits")


def test_overlap_by_one_row_has_a_fit():
    score, hit = np.array([0.2, 0.3, 0.4, 0.6, 0.7]), np.array([0, 1, 0, 1, 1])
    intercept, slope, _ = sklearn_curve(score, hit)
    result = evaluated(score, hit, ci=True, resamples=200)
    assert result["calibration_slope"].value == pytest.approx(slope, rel=1e-4)
    assert result["calibration_intercept"].value == pytest.approx(intercept, rel=1e-4)


def test_impossible_scores():
    result = evaluated([0.0, 0.0, 1.0, 1.0], [0, 1, 1, 1], groups=2)
    assert result["hosmer_lemeshow"].reason.startswith("undefined: the scores of a group")
    assert result["hosmer_lemeshow"].details["p_value"] == 0
    assert result["spiegelhalter_z"].reason == "undefined: all scores are exactly 0, 1/2 or 1."


@pytest.mark.slow
@pytest.mark.parametrize("decimals", [10, 1])
def test_intervals_are_those_of_resampled_rows(decimals):
    score, hit = sample(200, decimals, seed=2)
    rng = np.random.default_rng(3)
    drawn = {key: [] for key in KEYS if key != "hosmer_lemeshow"}
    for _ in range(250):
        rows = rng.integers(200, size=200)
        for r in evaluated(score[rows], hit[rows], drawn):
            drawn[r.key].append(r.value)
    for r in evaluated(score, hit, drawn, ci=True, interval="percentile"):
        low, high = np.quantile(drawn[r.key], [0.025, 0.975])
        assert r.interval == pytest.approx((low, high), abs=0.2 * (high - low)), r.key


@pytest.mark.slow
def test_resampled_fits_are_each_the_fit_of_their_resample():
    from calviz.core.events import BinaryEvents
    from calviz.sample import logistic_curves as logistic_recalibration
    from calviz.sample.steps import make_steps

    score, hit = sample(300)
    drawn = make_steps(BinaryEvents(score, hit)).bootstrap(np.random.default_rng(0), 20)
    for theta, count, hits in zip(
        logistic_recalibration.fit(drawn), drawn.count, drawn.hits, strict=True
    ):
        s = np.repeat(drawn.score, count.astype(int))
        h = np.concatenate([np.arange(c) < k for c, k in zip(count.astype(int), hits, strict=True)])
        intercept, slope, _ = sklearn_curve(s, h)
        assert theta == pytest.approx((intercept, slope), abs=1e-4)


# ---- O/E, calibration in the large, U, D, Q and R squared by hand and against SciPy


KEYS_OF_VALIDATION = [
    "oe_ratio",
    "calibration_in_the_large",
    "unreliability",
    "discrimination_index",
]
KEYS_OF_VALIDATION += ["quality_index", "nagelkerke_r2"]


def sample_of_validation(n=800, seed=1):
    rng = np.random.default_rng(seed)
    score = rng.uniform(0.05, 0.95, size=n)
    return score, (rng.random(n) < expit(-0.4 + 0.7 * logit(score))).astype(int)


def evaluated_of_validation(score, hit, keys=KEYS_OF_VALIDATION, **options):
    return event_metrics(score, hit, keys, **options)


def log_likelihood(p, hit):
    return float(np.where(hit == 1, np.log(p), np.log1p(-p)).sum())


@pytest.mark.parametrize("n", [800, 6_000])
def test_what_validations_report(n):
    score, hit = sample_of_validation(n)
    e = evaluated_of_validation(score, hit)
    z = logit(score)
    a = optimize.brentq(lambda a: (expit(a + z) - hit).sum(), -5, 5, xtol=1e-13)
    assert e["calibration_in_the_large"].value == pytest.approx(a, abs=1e-8)
    line = optimize.minimize(
        lambda t: -log_likelihood(expit(t[0] + t[1] * z), hit), [0, 1], tol=1e-10
    )
    fitted, own = -line.fun, log_likelihood(score, hit)
    alone = log_likelihood(np.full(n, hit.mean()), hit)
    d = (2 * fitted - 2 * alone - 1) / n
    u = (2 * fitted - 2 * own - 2) / n
    assert e["discrimination_index"].value == pytest.approx(d, abs=1e-8)
    assert e["unreliability"].value == pytest.approx(u, abs=1e-8)
    assert e["quality_index"].value == pytest.approx(d - u, abs=1e-8)
    r2 = (1 - math.exp(2 * (alone - fitted) / n)) / (1 - math.exp(2 * alone / n))
    assert e["nagelkerke_r2"].value == pytest.approx(r2, abs=1e-8)
    assert e["unreliability"].details["p_value"] == pytest.approx(
        stats.chi2.sf(2 * (fitted - own), 2), rel=1e-5
    )


@pytest.mark.usefixtures("usual_resamples")
def test_observed_over_expected_has_the_interval_of_its_logarithm():
    # 30 of 100 with a mean score of 0.25: O/E = 1.2, and 1.96 sqrt((1 - 0.3) / 30) = 0.29939...
    score, hit = np.full(100, 0.25), np.arange(100) < 30
    r = evaluated_of_validation(score, hit, ["oe_ratio"], ci=True)["oe_ratio"]
    reach = stats.norm.ppf(0.975) * math.sqrt(0.7 / 30)
    assert r.value == pytest.approx(1.2)
    assert r.interval == pytest.approx((1.2 * math.exp(-reach), 1.2 * math.exp(reach)))
    assert r.interval_method == "closed"
    assert r.details == {"observed": 30, "expected": 25}
    drawn = evaluated_of_validation(score, hit, ["oe_ratio"], ci=True, interval="percentile")[
        "oe_ratio"
    ]
    assert drawn.interval_method == "percentile"
    assert drawn.interval == pytest.approx(tuple(r.interval), abs=0.1)


def test_hits_that_are_all_alike():
    e = evaluated_of_validation([0.2, 0.6], [1, 1])
    assert e["calibration_in_the_large"].reason == "undefined: all rows are hits, or none is."
    assert e["unreliability"].reason.startswith("undefined: no logistic curve fits")
    assert e["oe_ratio"].value == pytest.approx(2.5)


def test_the_joint_test_keeps_its_level():
    rng = np.random.default_rng(4)
    p_values = []
    for _ in range(150):
        score = rng.uniform(0.1, 0.9, size=300)
        r = evaluated_of_validation(score, rng.random(300) < score, ["unreliability"])[
            "unreliability"
        ]
        p_values.append(r.details["p_value"])
    assert stats.kstest(p_values, "uniform").pvalue > 0.001


@pytest.mark.parametrize("name", record_r.cases())
def test_the_logistic_line_and_its_intervals_are_those_of_r(name):
    score, hit = record_r.cases()[name]
    expected = json.loads(record_r.RECORDED.read_text())["values"][name]
    keys = ["calibration_intercept", "calibration_slope", "calibration_in_the_large"]
    e = evaluated_of_validation(score, hit, keys, ci=True, resamples=2)
    # R has both coefficients, then the lower ends, then the upper ones.
    for key, numbers in zip(
        keys, (expected["line"][0::2], expected["line"][1::2], expected["shift"]), strict=True
    ):
        result = (e[key].value, *e[key].interval)
        assert result == pytest.approx(tuple(numbers), abs=1e-6)
        assert e[key].interval_method == "closed"


def test_no_line_no_interval():
    # Scores that separate: no finite line. Intercepts of rows that are all alike: none.
    e = evaluated_of_validation([0.2, 0.3, 0.8], [0, 0, 1], ["calibration_slope"], ci=True)
    assert e["calibration_slope"].interval is None


@pytest.mark.filterwarnings("error")
def test_nagelkerke_of_redrawn_clusters_is_not_below_that_of_a_constant():
    for seed in (6, 13, 15):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(4, 60))
        z = rng.normal(size=n) * rng.choice([0.5, 2, 10, 100, 600])
        p = 1 / (1 + np.exp(-np.clip(z, -700, 700)))
        y = (rng.random(n) < np.where(rng.random(n) < 0.1, 0.5, p)).astype(int)
        data = calviz.Predictions(probs=p, labels=y, clusters=np.arange(n) // 3)
        r = calviz.evaluate(
            data, ["nagelkerke_r2"], reduction="positive", noise_floor=True, resamples=50
        )["nagelkerke_r2"]
        if r.noise_floor is not None:
            assert 0 <= r.noise_floor.mean <= 1
