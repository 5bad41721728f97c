"""Our numbers against those of independent libraries on real predictions.

The reference values and data lie in a folder `shared` beside the checkout; without it these tests
are skipped. Every entry is either compared or listed with the reason why it is not.
"""

import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import calviz
from calviz.core.predictions import Predictions
from calviz.core.reduction import Reduction
from calviz.metrics.binned import rmsce
from calviz.numerics.binning import bin_events
from calviz.numerics.classes import class_table
from calviz.numerics.cumulative import ks_error
from calviz.numerics.reduce import reduce

SHARED = Path(__file__).resolve().parents[2].parent / "shared"
FILE = SHARED / "reference" / "reference.json"
PARTS = ("value", "value_test")

if not FILE.exists():
    pytest.skip("the reference values are not beside this checkout", allow_module_level=True)

REFERENCE = json.loads(FILE.read_text())


def npz(path):
    with np.load(SHARED / "data" / path) as file:
        return file["predictions"], file["ground_truth"]


def nba():
    table = pd.read_csv(SHARED / "data" / "fivethirtyeight" / "nba_games.csv")
    return table["prob1"].to_numpy(), table["prob1_outcome"].to_numpy()


def adult():
    table = pd.read_csv(SHARED / "data" / "adult" / "y_and_p.csv", header=None)
    return table[1].to_numpy(), (table[0] == 1).to_numpy()


def vgg():
    with np.load(SHARED / "data" / "verified_calibration" / "cifar10_vgg.npz") as file:
        arrays = [file[key] for key in file.files]
    labels, probs = sorted(arrays, key=lambda a: a.squeeze().ndim)
    return probs, labels.squeeze()


SETS = {
    "netcal_cifar10_wrn16_4": lambda: npz("netcal_cifar/wideresnet-16-4-cifar-10.npz"),
    "netcal_cifar100_wrn16_4": lambda: npz("netcal_cifar/wideresnet-16-4-cifar-100.npz"),
    "plambda_cifar10_vgg": vgg,
    "fte_nba_games": nba,
    "adult_rf": adult,
}


@cache
def load(dataset, part):
    probs, labels = SETS[dataset]()
    labels = np.asarray(labels).squeeze()
    if part == "value_test":
        even_odd = REFERENCE[dataset]["_meta"]["split"] == "evenodd"
        rows = slice(1, None, 2) if even_odd else slice(len(labels) // 2, None)
        probs, labels = probs[rows], labels[rows]
    return Predictions(probs=probs, labels=labels)


@cache
def evaluated(dataset, part, reduction="top-label", bins=15):
    return calviz.evaluate(load(dataset, part), reduction=reduction, bins=bins, ci=False)


def metric(key, reduction="top-label", bins=15):
    return lambda dataset, part: evaluated(dataset, part, reduction, bins)[key].value


def events(dataset, part, reduction="top-label"):
    return reduce(load(dataset, part), Reduction.of(reduction))


def mean_score(reduction):
    return lambda dataset, part: events(dataset, part, reduction).score.mean(dtype=float)


def ks(reduction):
    return lambda dataset, part: ks_error(events(dataset, part, reduction))


def rmsce_equal_mass(dataset, part):
    return float(rmsce(bin_events(events(dataset, part), bins=15, scheme="equal-mass")))


def accuracy(dataset, part):
    data = load(dataset, part)
    if data.n_classes == 2:
        # The peer says "yes" at p = 0.5 where we say "no": the other class first turns that round.
        data = Predictions(probs=data.probs[:, ::-1], labels=1 - data.labels)
    return calviz.evaluate(data, ["accuracy"])["accuracy"].value


def nll_with_sklearns_clip(dataset, part):
    # It clips at the precision of float64 and we at its smallest normal number: so many rows, so far apart.
    result = evaluated(dataset, part)["nll"]
    info = np.finfo(np.float64)
    apart = np.log(info.eps) - np.log(info.tiny)
    data = load(dataset, part)
    return result.value - result.details["clipped_rows"] / data.n * apart


def brier_per_class(dataset, part):
    return evaluated(dataset, part)["brier"].value / load(dataset, part).n_classes


def brier_for_sklearn(dataset, part):
    result = evaluated(dataset, part)["brier"]
    return result.details.get("one_column", result.value)


def brier_top_label(dataset, part):
    top = events(dataset, part)
    return ((top.score.astype(float) - top.hit) ** 2).mean()


def by_true_class(dataset, part):
    data = load(dataset, part)
    table = class_table(events(dataset, part), data.labels, data.n_classes)
    return [float(np.nanmean(table.ece)), *(table.mcs if data.n_classes == 10 else ())]


def theirs_by_true_class(value):
    # For 100 classes there is only the mean.
    return [value["unrounded_mean_ece"], *(value["unrounded_level_per_class"] or ())]


def calzone(dataset, part):
    binned = evaluated(dataset, part, "positive")
    return [evaluated(dataset, part)["ece"].value, binned["ece"].value, binned["mce"].value]


def theirs_calzone(value):
    return [value["ECE-H topclass"], value["ECE-H"], value["MCE-H"]]


FLOAT32_PEERS = {"torchmetrics-multiclass", "torch-uncertainty"}
FLOAT32_TOLERANCE = 1e-4
TOLERANCE = 1e-9

#: What is compared: the entry's name without its peer, and how we compute it.
COMPARED = {
    "accuracy": accuracy,
    "mean_conf": mean_score("top-label"),
    "mean_p": mean_score("positive"),
    "nll": nll_with_sklearns_clip,
    "brier": brier_for_sklearn,
    "brier_top1": brier_top_label,
    "ece_top1_ew15": metric("ece"),
    "ece_top1_ew25": metric("ece", bins=25),
    "ece_top1_em15": metric("ece_equal_mass"),
    "l2ce_top1_plugin_em15": rmsce_equal_mass,
    "mce_top1_ew15": metric("mce"),
    "rmsce_top1_ew15": metric("rmsce"),
    "mcs_top1_ew15": metric("mcs"),
    "ece_bin_ew10": metric("ece", "positive", 10),
    "ece_bin_ew15": metric("ece", "positive"),
    "ece_bin_em10": metric("ece_equal_mass", "positive", 10),
    "ece_bin_em15": metric("ece_equal_mass", "positive"),
    "mce_bin_ew15": metric("mce", "positive"),
    "ks_top1": ks("top-label"),
    "ks_top2": ks("top-2"),
    "ks_within_top2": ks("within-top-2"),
    "ks_bin": ks("positive"),
    "classwise_by_true_label": by_true_class,
    "calzone_all_15bins": calzone,
}
#: Where a peer's form of the same quantity is another one.
OTHER_FORM = {
    "brier@pycalib": brier_per_class,
    "brier@miscalibration_TS": metric("brier"),
    "brier@torch-uncertainty": metric("brier"),
    "nll@torch-uncertainty": metric("nll"),
}
UNPACK = {
    "classwise_by_true_label": theirs_by_true_class,
    "calzone_all_15bins": theirs_calzone,
}

#: What is not compared (dataset:entry@peer, as regular expressions), and why.
NOT_COMPARED = {
    r".*:recal:.*": "recalibrators, tested with them",
    r".*:(cwece|cwmce|sce|ace|tace)_e.*": "class-wise one-vs-rest metrics, not there yet",
    r".*:(ece|l2ce)_marginal_.*": "class-wise one-vs-rest metrics, not there yet",
    r".*:.*debiased.*": "debiased estimators, not there yet",
    r".*:(smece|ece_kde)_.*": "kernel estimators, not there yet",
    r".*:(e-?)?(aurc|augrc|auroc).*": "selective prediction, not there yet",
    r".*:(cov_at|risk_at).*": "selective prediction, not there yet",
    r".*:corp_.*": "CORP decomposition, not there yet",
    r".*:binary_tests@mapie": "tests, not there yet; its ECE uses quantile bins of its own",
    r".*:calzone_all_10bins.*": "as with 15 bins",
    r"adult_rf:calzone.*": "drops scores of exactly 0, which adult_rf has 4,974 of",
    r".*:prevalence@numpy": "a property of the labels",
    r".*:nll_top1@sklearn": "not a metric of ours",
    r".*:ace_top1_avg15@netcal": "unweighted mean of the gaps: another quantity",
    r".*:top_label_ece@mapie": "bins inside every predicted class: another quantity",
    r".*:ece_top1_em15@(mix-n-match|robustness_metrics|torch-uncertainty)": "splits ties by rank",
    r".*:ece_top1_em15@netcal": "refuses tied quantiles, or interpolates them",
    r".*:rmsce_top1_ew15@torchmetrics": "a bin of its own for scores of exactly 1",
    r"adult_rf:.*@(netcal|torchmetrics|torch-uncertainty)": "left-closed bins; scores lie on edges",
    r"adult_rf:ks_bin.*": "101 distinct scores, and an arbitrary order of the rows inside ties",
    r"adult_rf:mce_bin_ew15@pycalib": "left-closed bins; scores lie on edges",
    r".*:ece_top1_ew.*@torch-uncertainty": "as torchmetrics-multiclass, which it wraps",
}


def reason(dataset, entry):
    return next(
        (why for p, why in NOT_COMPARED.items() if re.fullmatch(p, f"{dataset}:{entry}")), None
    )


def how(entry):
    return OTHER_FORM.get(entry) or COMPARED.get(entry.split("@")[0])


ENTRIES = [
    (dataset, entry)
    for dataset, entries in REFERENCE.items()
    for entry in entries
    if entry != "_meta" and dataset in SETS
]


def test_every_data_set_is_known():
    assert set(REFERENCE) == set(SETS)


def test_every_entry_is_compared_or_listed():
    lost = [e for e in ENTRIES if how(e[1]) is None and reason(*e) is None]
    assert lost == []


def test_every_reason_is_needed():
    names = [f"{d}:{e}" for d, e in ENTRIES]
    assert [p for p in NOT_COMPARED if not any(re.fullmatch(p, n) for n in names)] == []


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(("dataset", "entry"), [e for e in ENTRIES if how(e[1]) and not reason(*e)])
def test_reference(dataset, entry, part):
    name, peer = entry.split("@")
    mine = how(entry)(dataset, part)
    theirs = REFERENCE[dataset][entry][part]
    theirs = UNPACK.get(name, np.float64)(theirs)
    tolerance = FLOAT32_TOLERANCE if peer in FLOAT32_PEERS else TOLERANCE
    if name.startswith("ks"):
        # Inside ties the peer's order is arbitrary, and its sums are float32.
        tolerance = 1 / load(dataset, part).n
    np.testing.assert_allclose(mine, theirs, rtol=tolerance, atol=tolerance)
