"""Rows that count more than others."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss, roc_auc_score

import calviz
from calviz.core.entry_specs import RECALIBRATORS
from calviz.core.errors import InputError
from calviz.core.events import BinaryEvents
from calviz.core.predictions import repeated, with_rows
from calviz.sample.draws import HitSums, RowDraws
from calviz.sample.sample import Sample
from calviz.verdicts.analysis import evaluate
from tests.inputs.clusters_and_weights import three_classes, two_classes


def test_equal_weights_change_nothing():
    plain, same = two_classes(), two_classes(weights=np.full(600, 3.0))
    assert same.weights is None
    assert same.fingerprint() == plain.fingerprint()


@pytest.mark.parametrize("binning", ["equal-width", "equal-mass"])
def test_a_weight_of_two_is_the_row_twice(binning):
    rng = np.random.default_rng(3)
    counts = rng.integers(1, 4, 600)
    plain = two_classes()
    twice = repeated(plain, counts)
    how = {"scheme": binning, "bandwidth": 0.1, "findings": False, "classes": False}
    weighted = evaluate(with_rows(plain, weights=counts), **how)
    expected = evaluate(twice, **how)
    # Cuts of equal mass fall on rows, of which there are others.
    by_rank = ["ece_equal_mass", "ece_sturges", "ece_sweep", "tace", "ece_debiased"]
    # Statistics of tests grow with the rows, and pairs of copies are pairs.
    by_rank += ["hosmer_lemeshow", "spiegelhalter_z", "skce", "tcal"]
    # Folds are dealt out row by row.
    by_rank += ["ce_l1_unbiased"]
    by_rank += [f"{s}_{part}" for s in ("nll", "brier") for part in ("refinement", "calibration")]
    # What parameters gain by chance is divided by the number of rows, and the penalty of a curve is for so many.
    by_rank += ["unreliability", "discrimination_index", "quality_index"]
    by_rank += ["ici", "e50", "e90", "emax", "eci"]
    compared = [m.key for m in weighted if m.available and m.key not in by_rank]
    if binning == "equal-mass":
        compared = [k for k in compared if k not in ("ece", "ece_l2", "rmsce", "mce")]
    assert len(compared) > 15
    for key in compared:
        assert weighted[key].value == pytest.approx(expected[key].value, rel=1e-12, abs=1e-12), key


def test_classes_of_weighted_rows_are_those_of_repeated_ones():
    plain, counts = three_classes(), np.random.default_rng(1).integers(1, 4, 300)
    weighted = evaluate(with_rows(plain, weights=counts), findings=False)
    expected = evaluate(repeated(plain, counts), findings=False)
    for key in ("classwise_ece", "ks_classwise", "wsece", "msece", "cece", "wsmcs"):
        assert weighted[key].value == pytest.approx(expected[key].value, rel=1e-12), key
    for one, other in zip(weighted.classes, expected.classes, strict=True):
        for name in ("accuracy", "confidence", "ece", "mcs", "ks"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-12), name


@pytest.mark.parametrize("data", [two_classes(), three_classes()], ids=["two", "three"])
def test_the_scale_of_importance_weights_is_nothing(data):
    w = np.random.default_rng(2).exponential(size=data.n)
    one = evaluate(with_rows(data, weights=w), findings=False)
    other = evaluate(with_rows(data, weights=8 * w), findings=False)
    for m in one:
        if m.available:
            assert other[m.key].value == pytest.approx(m.value, rel=1e-9, abs=1e-12), m.key


def test_pairs_count_as_the_product_of_their_weights():
    data = three_classes(60)
    w = np.random.default_rng(3).exponential(size=60)
    residual = np.eye(3)[data.labels] - data.probs
    total = pairs = 0.0
    for i in range(60):
        for j in range(60):
            if i != j:
                kernel = np.exp(-np.linalg.norm(data.probs[i] - data.probs[j]) / 0.5)
                total += w[i] * w[j] * kernel * (residual[i] @ residual[j])
                pairs += w[i] * w[j]
    evaluation = evaluate(
        with_rows(data, weights=w), ["skce"], kernel_bandwidth=0.5, findings=False
    )
    assert evaluation["skce"].value == pytest.approx(total / pairs, rel=1e-10)


def test_closed_forms_hold_for_weighted_rows_of_a_calibrated_model():
    p_values = {"ks": [], "kuiper": [], "spiegelhalter_z": [], "hosmer_lemeshow": []}
    debiased = []
    for seed in range(120):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.05, 0.95, 500)
        y = (rng.random(500) < p).astype(int)
        data = calviz.Predictions(probs=p, labels=y, weights=rng.exponential(size=500))
        evaluation = evaluate(
            data, [*p_values, "ece_debiased"], reduction="positive", findings=False
        )
        for key, column in p_values.items():
            column.append(evaluation[key].details["p_value"])
        debiased.append(evaluation["ece_debiased"].value)
    for key, column in p_values.items():
        # Of a uniform number the mean of 120 is within 0.08 of 1/2 (3 standard errors); KS and Kuiper are careful.
        assert 0.42 < np.mean(column) < 0.62, key
        assert np.mean(np.array(column) < 0.05) < 0.12, key
    assert abs(np.mean(debiased)) < 3 * np.std(debiased) / np.sqrt(120)


def test_equal_mass_bins_hold_equal_weights():
    rng = np.random.default_rng(4)
    plain = two_classes(2_000)
    sample = Sample(with_rows(plain, weights=rng.uniform(0.1, 4, 2_000)), scheme="equal-mass")
    sums = calviz.sample.sample.chosen_bins(sample)
    assert np.abs(sums.weight - 1 / 15).max() < 4 / 2_000


def test_proper_scores_are_those_of_scikit_learn():
    w = np.random.default_rng(5).uniform(0, 3, 600)
    data = two_classes()
    p, y = data.probs[:, 1], data.labels
    evaluation = evaluate(data, sample_weight=w, findings=False, reduction="top-label")
    assert evaluation["nll"].value == pytest.approx(log_loss(y, p, sample_weight=w), rel=1e-12)
    brier = brier_score_loss(y, p, sample_weight=w)
    assert evaluation["brier"].value == pytest.approx(2 * brier, rel=1e-12)
    right = data.probs.argmax(1) == y
    accuracy = accuracy_score(y, data.probs.argmax(1), sample_weight=w)
    assert evaluation["accuracy"].value == pytest.approx(accuracy, rel=1e-12)
    auroc = roc_auc_score(right, data.probs.max(1), sample_weight=w)
    assert evaluation["auroc_failure"].value == pytest.approx(auroc, rel=1e-12)


def test_every_metric_takes_weights():
    evaluation = evaluate(two_classes(weights=np.linspace(1, 2, 600)), classes=False)
    assert all("weight" not in m.reason for m in evaluation if not m.available)
    assert evaluation.verdict is not None
    assert "600 weighted rows" in evaluation.verdict.sentence


def test_weighted_maps_are_those_of_repeated_rows_and_of_scikit_learn():
    data = two_classes()
    counts = np.random.default_rng(6).integers(1, 4, 600)
    p, y = data.probs, data.labels
    many = np.repeat(np.arange(600), counts)
    for key, name in (("temperature", "temperature_"), ("beta", "coefficients_")):
        one = RECALIBRATORS[key].make().fit(p, y, sample_weight=counts)
        other = RECALIBRATORS[key].make().fit(p[many], y[many])
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-4)
    affine = RECALIBRATORS["affine"].make().fit(p, y, sample_weight=counts)
    z = np.log(p[:, 1] / p[:, 0])[:, None]
    peer = LogisticRegression(C=1e12, tol=1e-10).fit(z, y, sample_weight=counts)
    np.testing.assert_allclose(
        affine.coefficients_.ravel(), [peer.coef_[0, 0], peer.intercept_[0]], rtol=1e-5
    )


def test_counts_have_to_be_whole():
    with pytest.raises(InputError, match=r"row 2: the count is 1\.5"):
        repeated(two_classes(2), [1, 1.5])


def test_a_missing_interval_says_what_is_missing():
    # Far off, one of two classes is over and the other underconfident, whichever rows are drawn; with three it depends.
    p = np.random.default_rng(6).random(600)
    far = calviz.Predictions(probs=p, labels=(np.random.default_rng(8).random(600) < p**4))
    for data in (far, three_classes()):
        w = np.random.default_rng(7).exponential(size=data.n)
        evaluation = evaluate(with_rows(data, weights=w), ["over_share"], ci=True, findings=False)
        share = evaluation["over_share"]
        if data.n_classes == 2:
            assert share.interval is None
            assert share.note == "no interval: nearly all resamples have the same value."
        else:
            assert share.interval.low < share.interval.high
            assert share.note is None


def test_draws_that_are_kept_are_those_that_would_be_drawn_again(monkeypatch):
    w = np.random.default_rng(9).exponential(size=50)
    kept, results = RowDraws(50, None, w), []
    for rows in (kept, kept, RowDraws(50, None, w)):
        rng = np.random.default_rng(3)
        drawn = [np.asarray(rows.counts(rng, size)) for size in (7, 7, 5)]
        results.append([*drawn, rng.random(1)])
    monkeypatch.setattr("calviz.sample.draws.KEPT_DRAW_BYTES", 400)  # one of them only
    rng = np.random.default_rng(3)
    few = RowDraws(50, None, w)
    results.append([*(np.asarray(few.counts(rng, size)) for size in (7, 7, 5)), rng.random(1)])
    for other in results[1:]:
        for one, same in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one, same)
    assert not np.array_equal(results[0][0], results[0][1])
    # As often as there are rows.
    np.testing.assert_allclose((results[0][0] / w[:, None]).sum(axis=0), 50)


def test_hits_of_many_weighted_rows_have_the_cumulants_of_their_sum(monkeypatch):
    monkeypatch.setattr("calviz.sample.draws.MOST_GROUPS", 10)
    p, w = np.repeat([0.02, 0.3], 100), np.tile([0.5, 1.5], 100)
    cell = np.repeat([0, 1], 100)
    rng = np.random.default_rng(0)
    hits = HitSums(BinaryEvents(p, p > 1), cell, 2)(rng, RowDraws(200, None, w), 100_000)
    # Of independent Bernoulli variables: sums of w p, w^2 p (1 - p) and w^3 p (1 - p) (1 - 2 p).
    for i, chance in enumerate((0.02, 0.3)):
        q = chance * (1 - chance)
        variance, third = 50 * 2.5 * q, 50 * 3.5 * q * (1 - 2 * chance)
        off = hits[i] - 100 * chance
        assert off.mean() == pytest.approx(0, abs=4 * np.sqrt(variance / 100_000))
        assert off.var() == pytest.approx(variance, rel=0.03)
        assert (off**3).mean() / variance**1.5 == pytest.approx(third / variance**1.5, abs=0.05)


@pytest.mark.parametrize("clustered", [False, True])
def test_resamples_leave_out_rows_of_weight_zero(clustered):
    # Otherwise many resamples have no weight at all, and intervals are too wide.
    cluster = np.repeat(np.arange(60), 2) if clustered else None
    counted = two_classes(120).probs[:, 1] < 0.3
    if clustered:
        counted = np.repeat(counted[::2], 2)
    data = two_classes(120, clusters=cluster, weights=counted * np.linspace(1, 3, 120))
    keys = ["accuracy", "brier", "mcs", "auroc"]
    got = evaluate(data, keys, ci=True)
    expected = evaluate(data.take(np.flatnonzero(counted)), keys, ci=True)
    for key in keys:
        assert got[key].interval == pytest.approx(tuple(expected[key].interval))
    three = with_rows(two_classes(), weights=(np.arange(600) < 3) * 1.0)
    assert evaluate(three, keys, ci=True)["mcs"].interval is not None


def test_the_largest_bin_of_mce_has_a_whole_number_of_rows():
    # Weights per bin of 10 rows: 3.7, 3.6 and 2.7; at least one row each, the remaining 7 by largest remainders of
    # 2.7, 2.6 and 1.7 give 3, 2 and 2.
    p = calviz.Predictions(
        probs=np.repeat([0.1, 0.5, 0.9], [2, 3, 5]),
        labels=[0, 0, 1, 0, 1, 0, 0, 0, 0, 0],
        weights=np.repeat([1.85, 1.2, 0.54], [2, 3, 5]),
    )
    (found,) = evaluate(p, ["mce"], reduction="positive", bins=3)
    assert found.value == pytest.approx(0.9)
    assert found.details["bin_rows"] == 3
    figure = calviz.figures.Reliability.compute(p, reduction="positive", bins=3, resamples=20)
    assert figure.count.tolist() == [4, 3, 3]
