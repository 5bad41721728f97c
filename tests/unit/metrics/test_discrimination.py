"""AUROC, AUPRC, Dxy and net benefit against scikit-learn and by hand."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

import calviz
from calviz.core.errors import OptionError
from calviz.sample.cutoff import at_cutoff
from calviz.sample.sample import Sample


def data(n=400, seed=0, decimals=2):
    rng = np.random.default_rng(seed)
    score = rng.beta(1, 2, size=n).round(decimals)
    return score, (rng.random(n) < score).astype(int)


def evaluated(score, hit, keys, **options):
    p = calviz.Predictions(probs=np.asarray(score), labels=np.asarray(hit))
    return calviz.evaluate(p, keys, reduction="positive", **options)


@pytest.mark.parametrize("n", [30, 5_000])
def test_areas_are_scikit_learns(n):
    score, hit = data(n, decimals=2 if n < 100 else 9)
    e = evaluated(score, hit, ["auroc", "auprc", "somers_d"])
    assert e["auroc"].value == pytest.approx(roc_auc_score(hit, score), abs=1e-12)
    assert e["somers_d"].value == pytest.approx(2 * roc_auc_score(hit, score) - 1, abs=1e-12)
    assert e["auprc"].value == pytest.approx(average_precision_score(hit, score), abs=1e-12)


def test_without_hits_there_is_no_area():
    e = evaluated([0.1, 0.4], [0, 0], ["auroc", "auprc"])
    assert e["auroc"].reason == "undefined: all rows are hits, or none is."
    assert e["auprc"].reason == "undefined: no row is a hit."


def test_net_benefit_by_hand():
    # Of 0.2, 0.3, 0.6 and 0.8 the last three reach 0.3: two hits, one false alarm at 3 : 7.
    e = evaluated([0.2, 0.3, 0.6, 0.8], [1, 0, 1, 1], ["net_benefit"], cutoff=0.3)
    assert e["net_benefit"].value == pytest.approx(2 / 4 - 1 / 4 * 3 / 7)
    single = np.array([0.2, 0.3, 0.6, 0.8], dtype=np.float32)
    e = evaluated(single, [1, 0, 1, 1], ["net_benefit"], cutoff=0.3)
    assert e["net_benefit"].value == pytest.approx(2 / 4 - 1 / 4 * 3 / 7)
    assert e["net_benefit"].params == {"cutoff": 0.3}


def test_its_noise_floor_is_what_the_scores_promise():
    score, hit = data(3_000)
    e = evaluated(score, hit, ["net_benefit"], cutoff=0.4, ci=True)["net_benefit"]
    above = score >= 0.4
    promised = (score[above].sum() - (1 - score[above]).sum() * 0.4 / 0.6) / 3_000
    assert e.noise_floor.mean == pytest.approx(promised, abs=0.002)
    values = hit[above] - (1 - hit[above]) * 0.4 / 0.6
    spread = np.append(values, np.zeros(3_000 - above.sum())).std() / np.sqrt(3_000)
    low, high = e.interval
    assert high - low == pytest.approx(2 * 1.96 * spread, rel=0.1)


def test_shares_at_a_cutoff_by_hand():
    p = calviz.Predictions(probs=np.array([0.2, 0.3, 0.6, 0.8]), labels=np.array([1, 0, 1, 1]))
    shares = Sample.of(p, reduction="positive").view(at_cutoff, cutoff=0.5).shares()
    assert [v[0] for v in shares.values()] == [2 / 3, 1.0, 1.0, 0.5]
    # Clopper & Pearson: one of one has a lower limit of 0.025, none of none says nothing.
    assert shares["specificity"][1:] == pytest.approx((0.025, 1.0))


@pytest.mark.parametrize("cutoff", [0, 1, -0.1, float("nan"), "0.5", True])
def test_a_cutoff_outside_0_and_1(cutoff):
    with pytest.raises(OptionError, match="'cutoff' must be a number above 0 and below 1"):
        Sample.of(calviz.Predictions(probs=np.array([0.2]), labels=np.array([1]))).view(
            at_cutoff, cutoff=cutoff
        )
