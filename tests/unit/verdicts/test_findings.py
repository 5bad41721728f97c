"""Each check speaks where it should, and nowhere else."""

import re

import numpy as np
import pytest
from scipy import stats
from scipy.special import expit, logit

import calviz
from calviz.core.entry_specs import CHECKS
from calviz.core.errors import Finding
from calviz.sample.sample import Sample
from calviz.verdicts.analysis import findings_of
from tests.inputs.simulated import draw_labels


def findings(data, reduction="top-label", **options) -> dict[str, list[Finding]]:
    values: dict[str, list[Finding]] = {}
    for f in findings_of(Sample(data, reduction, **options)):
        values.setdefault(f.code, []).append(f)
    return values


def calibrated(n=4_000, k=3, seed=0) -> calviz.Predictions:
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(k, 2.0), n)
    labels = draw_labels(probs, rng)
    return calviz.Predictions(probs=probs, labels=labels, class_names=("cat", "dog", "fox")[:k])


def binary(score, labels, **options) -> calviz.Predictions:
    return calviz.Predictions(probs=np.asarray(score), labels=labels, **options)


def test_a_good_sample_has_one_finding_that_says_so():
    messages = findings(calibrated(), bins=5)
    assert set(messages) <= {"CAL001", "CAL003"}
    (f,) = messages["CAL001"]
    assert f.severity == "info"
    assert f.message.startswith("No miscalibration found on 4,000 rows: ECE is below ")


def test_registered_under_their_codes():
    assert {check.key for check in CHECKS} >= {f"CAL00{i}" for i in range(1, 10)}
    # Every kind of finding at once.
    p = binary(np.repeat([0.0, 1.0], 40), np.arange(80) % 2)
    codes = [f.code for f in findings_of(Sample(p, "positive"))]
    # The predicted class, which is known when the model is used, is the class to act on.
    assert codes == sorted(codes, key=lambda code: "CAL012z" if code == "CAL020" else code)
    for f in findings_of(Sample(p, "positive")):
        assert re.fullmatch(r"CAL\d{3}", f.code)
        assert f.message.endswith(".")
        assert f.message.count(". ") == 0  # one sentence


def test_cal001_and_cal002_name_size_and_place():
    score = np.repeat([0.25, 0.85], 500)
    hits = np.concatenate([np.arange(500) < 125, np.arange(500) < 300])
    messages = findings(binary(score, hits), "positive", bins=10)
    assert messages["CAL001"][0].severity == "warning"
    assert "Forecast too high, beyond noise: mean forecast 55.0 % against frequency 42.5 %" in (
        messages["CAL001"][0].message
    )
    # 300 of 500: exact interval at 97.5 %, as there are two bins.
    exact = stats.binomtest(300, 500).proportion_ci(0.975)
    # The curve through two bins is exact, and multiplied by 1 - 5.99 / W; W is that of the second bin, as the first one is right.
    low, high = (100 * end for end in (exact.low, exact.high))
    gain = 2 * (300 * np.log(0.6 / 0.85) + 200 * np.log(0.4 / 0.15))
    expected = expit(
        logit(0.85) + (1 - stats.chi2.ppf(0.95, 2) / gain) * (logit(0.6) - logit(0.85))
    )
    # Its interval reaches further than the exact one; the information on its log-odds is that of the 500 rows.
    reach = np.sqrt(stats.chi2.ppf(0.95, 2) / (500 * expected * (1 - expected)))
    high_end = 100 * max(exact.high, expit(logit(expected) + reach))
    head, tail = messages["CAL002"][0].message.split("; ")
    assert head == (
        "Worst between 0.8 and 0.9 (500 rows): mean forecast 85.0 % but frequency 60.0 % "
        f"(exact 95 % CI of 2 bins together {low:.1f} % to {high:.1f} %)"
    )
    assert tail == (
        f"allowing for the choice of the bin, about {85 - 100 * expected:.1f} points too high (95 % CI {85 - high_end:.1f} to {85 - low:.1f})."
    )


def test_cal003_bins_with_few_rows():
    score = np.concatenate([np.full(100, 0.25), np.full(5, 0.75), np.full(1, 0.95)])
    messages = findings(binary(score, np.arange(106) % 4 == 0), "positive", bins=10)
    (f,) = messages["CAL003"]
    assert f.severity == "warning"
    assert f.message.startswith("2 of the 3 bins with rows have fewer than 20 rows (6 rows in all)")
    assert "CAL003" not in findings(binary(score[:100], np.arange(100) % 4 == 0), "positive")


@pytest.mark.parametrize(("n", "severity"), [(1, "error"), (2, "warning"), (29, "warning")])
def test_cal004_few_rows(n, severity):
    p = binary(np.full(n, 0.3), np.zeros(n, int))
    (f,) = findings(p)["CAL004"]
    assert f.severity == severity
    assert f.message.startswith(f"n = {n}: ")
    assert not {"CAL001", "CAL002", "CAL003"} & set(findings(p))


def test_cal004_enough_rows():
    assert "CAL004" not in findings(binary(np.full(30, 0.3), np.zeros(30, int)))


def test_cal005_and_cal006_one_class_only():
    p = calviz.Predictions(
        probs=np.full((40, 3), 1 / 3), labels=np.zeros(40, int), class_names=("cat", "dog", "fox")
    )
    messages = findings(p)
    assert messages["CAL005"][0].message.startswith("All 40 rows have the label 'cat'")
    assert "CAL006" not in messages  # the same once more
    assert not {"CAL005", "CAL006"} & set(findings(calibrated()))


def test_cal006_many_classes_are_not_all_listed():
    probs = np.full((50, 1_000), 1e-3)
    (f,) = findings(calviz.Predictions(probs=probs, labels=np.arange(50)))["CAL006"]
    assert "950 of 1,000 classes have no rows ('50', '51', '52' and 947 more)" in f.message


@pytest.mark.slow
def test_cal007_saturated():
    score = np.linspace(0.01, 0.99, 200)
    score[:4] = 1.0
    labels = np.ones(200, int)
    (f,) = findings(binary(score, labels), "positive")["CAL007"]
    assert (f.severity, f.message) == ("info", "4 scores are exactly 1 (2.0 % of the rows).")
    labels[0] = 0
    (f,) = findings(binary(score, labels), "positive")["CAL007"]
    assert f.severity == "warning"
    assert f.message.endswith("and in 1 of them the event did not happen.")
    (f,) = findings(binary(score, labels))["CAL007"]
    assert f.message.endswith("and 1 of them is wrong.")
    score[:4] = 0.5
    assert "CAL007" not in findings(binary(score, labels), "positive")


def test_cal008_probability_zero():
    p = binary([0.0] * 3 + [0.5] * 60, np.ones(63, int))
    (f,) = findings(p)["CAL008"]
    assert f.message.startswith("3 rows (4.76 %) give the true class a probability of 0")
    assert calviz.evaluate(p, ["nll"])["nll"].details["clipped_rows"] == 3
    assert "CAL008" not in findings(calibrated())


@pytest.mark.slow
def test_cal009_ties():
    p = binary(np.tile([0.2, 0.4, 0.8], 50), np.arange(150) % 2)
    assert "only 3 different values" in findings(p, "positive")["CAL009"][0].message
    equal = binary(np.full(50, 0.7), np.arange(50) % 2)
    assert findings(equal, "positive")["CAL009"][0].message.startswith(
        "All 50 rows have the score 0.7"
    )
    assert "CAL009" not in findings(calibrated())


def test_confidence_only():
    rng = np.random.default_rng(0)
    data = calviz.ConfidencePredictions(
        confidence=rng.uniform(0.5, 1, 500), correct=rng.random(500) < 0.5
    )
    assert findings(data)["CAL001"][0].message.startswith("Overconfident, beyond noise")


def test_every_reduction_of_one_row_and_of_many():
    many, two = ("top-label", "top-2", "within-top-2", "class:dog"), ("positive", "top-label")
    for p in (calibrated(1), calibrated(100), calibrated(100, k=2)):
        for reduction in two if p.n_classes == 2 else many:
            for f in findings_of(Sample(p, reduction, resamples=50)):
                assert "nan" not in f.message


def test_names_from_files_are_cut():
    names = ("a" * 5_000, "b\n\u202eb", "c")
    p = calviz.Predictions(probs=np.full((9, 3), 1 / 3), labels=np.full(9, 2), class_names=names)
    for f in findings_of(Sample(p)):
        assert len(f.message) < 250
        assert "\n" not in f.message
        assert "\u202e" not in f.message


@pytest.mark.parametrize(("rows", "few"), [(19, True), (20, False)])
def test_a_bin_of_twenty_rows_is_not_few(rows, few):
    score = np.repeat([0.25, 0.75], [rows, 100 - rows])
    values = list(CHECKS["CAL003"].findings(Sample(binary(score, np.arange(100) % 2), "positive")))
    assert len(values) == few


@pytest.mark.parametrize(("rows", "tied"), [(99, False), (100, True)])
def test_ten_rows_a_score_are_tied(rows, tied):
    score = (np.arange(rows) % 10 + 0.5) / 10
    values = list(CHECKS["CAL009"].findings(Sample(binary(score, np.arange(rows) % 2), "positive")))
    assert len(values) == tied


@pytest.mark.parametrize("given", ["weights", "clusters"])
def test_cal002_of_rows_that_are_not_alike_is_not_called_exact(given):
    score = np.repeat([0.25, 0.8513], 500)
    hits = np.concatenate([np.arange(500) < 125, np.arange(500) < 300])
    columns = {
        "weights": {"weights": np.tile([1.0, 2.0], 500)},
        "clusters": {"clusters": np.arange(1000) // 2},
    }
    (f,) = findings(binary(score, hits, **columns[given]), "positive", bins=10)["CAL002"]
    assert "(95 % CI of 2 bins together " in f.message


def test_cal002_the_ends_of_a_wide_interval_have_few_decimals():
    # 91.46 % and 79.12 % are 12.3 points apart, which takes two decimals; the interval is 4.5 points wide.
    hits = np.arange(1250) < 989
    (f,) = findings(binary(np.full(1250, 0.9146), hits), "positive", bins=10)["CAL002"]
    exact = stats.binomtest(989, 1250).proportion_ci(0.95)
    assert f"(exact 95 % CI {100 * exact.low:.1f} % to {100 * exact.high:.1f} %)" in f.message
    assert "91.46 % but frequency 79.12 %" in f.message
