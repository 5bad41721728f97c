"""O/E, calibration in the large, U, D, Q and R squared by hand and against SciPy."""

import json
import math

import numpy as np
import pytest
from scipy import optimize, stats
from scipy.special import expit, logit

import calviz
from benchmarks import record_r

KEYS = ["oe_ratio", "calibration_in_the_large", "unreliability", "discrimination_index"]
KEYS += ["quality_index", "nagelkerke_r2"]


def sample(n=800, seed=1):
    rng = np.random.default_rng(seed)
    score = rng.uniform(0.05, 0.95, size=n)
    return score, (rng.random(n) < expit(-0.4 + 0.7 * logit(score))).astype(int)


def evaluated(score, hit, keys=KEYS, **options):
    p = calviz.Predictions(probs=np.asarray(score), labels=np.asarray(hit))
    return calviz.evaluate(p, keys, reduction="positive", **options)


def log_likelihood(p, hit):
    return float(np.where(hit == 1, np.log(p), np.log1p(-p)).sum())


@pytest.mark.parametrize("n", [800, 6_000])
def test_what_validations_report(n):
    score, hit = sample(n)
    e = evaluated(score, hit)
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
    r = evaluated(score, hit, ["oe_ratio"], ci=True)["oe_ratio"]
    reach = stats.norm.ppf(0.975) * math.sqrt(0.7 / 30)
    assert r.value == pytest.approx(1.2)
    assert r.interval == pytest.approx((1.2 * math.exp(-reach), 1.2 * math.exp(reach)))
    assert r.interval_method == "closed"
    assert r.details == {"observed": 30, "expected": 25}
    drawn = evaluated(score, hit, ["oe_ratio"], ci=True, interval="percentile")["oe_ratio"]
    assert drawn.interval_method == "percentile"
    assert drawn.interval == pytest.approx(tuple(r.interval), abs=0.1)


def test_hits_that_are_all_alike():
    e = evaluated([0.2, 0.6], [1, 1])
    assert e["calibration_in_the_large"].reason == "undefined: all rows are hits, or none is."
    assert e["unreliability"].reason.startswith("undefined: no logistic curve fits")
    assert e["oe_ratio"].value == pytest.approx(2.5)


def test_the_joint_test_keeps_its_level():
    rng = np.random.default_rng(4)
    p_values = []
    for _ in range(150):
        score = rng.uniform(0.1, 0.9, size=300)
        r = evaluated(score, rng.random(300) < score, ["unreliability"])["unreliability"]
        p_values.append(r.details["p_value"])
    assert stats.kstest(p_values, "uniform").pvalue > 0.001


@pytest.mark.parametrize("name", record_r.cases())
def test_the_logistic_line_and_its_intervals_are_those_of_r(name):
    score, hit = record_r.cases()[name]
    expected = json.loads(record_r.RECORDED.read_text())["values"][name]
    keys = ["calibration_intercept", "calibration_slope", "calibration_in_the_large"]
    e = evaluated(score, hit, keys, ci=True, resamples=2)
    # R has both coefficients, then the lower ends, then the upper ones.
    for key, numbers in zip(
        keys, (expected["line"][0::2], expected["line"][1::2], expected["shift"]), strict=True
    ):
        result = (e[key].value, *e[key].interval)
        assert result == pytest.approx(tuple(numbers), abs=1e-6)
        assert e[key].interval_method == "closed"


def test_no_line_no_interval():
    # Scores that separate: no finite line. Intercepts of rows that are all alike: none.
    e = evaluated([0.2, 0.3, 0.8], [0, 0, 1], ["calibration_slope"], ci=True)
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
