"""What other implementations compute."""

import json
import re
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import calviz
from calviz.core.entry_specs import RECALIBRATORS
from calviz.core.events import Reduction
from calviz.core.predictions import Predictions
from calviz.metrics.binned import rmsce
from calviz.sample.binning import bin_events
from calviz.sample.sample import Sample, reduce
from calviz.sample.true_classes import true_class_errors

from . import samples

# ---- Our numbers against those of independent libraries, on the sample data and on real predictions
#
# Values on the sample data are recorded by ``benchmarks/record_sample_data.py``. More libraries, on predictions of larger networks, have
# their values and data in a folder `shared` beside the checkout, where there is one. Every entry is either compared or
# listed with the reason why it is not.


SHARED = Path(__file__).resolve().parents[2].parent / "shared"
FILE = SHARED / "reference" / "reference.json"
PARTS = ("value", "value_test")

RECORDED = json.loads(
    (Path(__file__).parent / "recorded_sample_data.json").read_text(encoding="utf-8")
)["values"]
BESIDE = json.loads(FILE.read_text()) if FILE.exists() else {}
REFERENCE = RECORDED | BESIDE


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


#: The sets beside the checkout.
SETS = {
    "netcal_cifar10_wrn16_4": lambda: npz("netcal_cifar/wideresnet-16-4-cifar-10.npz"),
    "netcal_cifar100_wrn16_4": lambda: npz("netcal_cifar/wideresnet-16-4-cifar-100.npz"),
    "plambda_cifar10_vgg": vgg,
    "fte_nba_games": nba,
    "adult_rf": adult,
}


@cache
def load(dataset, part):
    if dataset in samples.SETS:
        probs, labels, split = samples.rows(*samples.SETS[dataset])
        chosen = split == "test" if part == "value_test" else slice(None)
        return Predictions(probs=probs[chosen], labels=labels[chosen])
    probs, labels = SETS[dataset]()
    labels = np.asarray(labels).squeeze()
    if part == "value_test":
        even_odd = REFERENCE[dataset]["_meta"]["split"] == "evenodd"
        rows = slice(1, None, 2) if even_odd else slice(len(labels) // 2, None)
        probs, labels = probs[rows], labels[rows]
    return Predictions(probs=probs, labels=labels)


@cache
def sample(dataset, part, reduction="top-label", bins=15):
    return Sample.of(load(dataset, part), reduction=reduction, bins=bins)


def evaluated(dataset, part, key, reduction="top-label", bins=15):
    return calviz.evaluate(sample(dataset, part, reduction, bins), [key], ci=False)[key]


def metric(key, reduction="top-label", bins=15):
    return lambda dataset, part: evaluated(dataset, part, key, reduction, bins).value


def events(dataset, part, reduction="top-label"):
    return reduce(load(dataset, part), Reduction.of(reduction))


def mean_score(reduction):
    return lambda dataset, part: events(dataset, part, reduction).score.mean(dtype=float)


def rmsce_equal_mass(dataset, part):
    return float(rmsce(bin_events(events(dataset, part), bins=15, scheme="equal-mass")))


def accuracy(dataset, part):
    data = load(dataset, part)
    if data.n_classes == 2:
        # The peer says "yes" at p = 0.5 where we say "no": the other class first turns that round.
        data = Predictions(probs=data.probs[:, ::-1], labels=1 - data.labels)
    return calviz.evaluate(data, ["accuracy"])["accuracy"].value


def brier_per_class(dataset, part):
    return evaluated(dataset, part, "brier").value / load(dataset, part).n_classes


def brier_for_sklearn(dataset, part):
    result = evaluated(dataset, part, "brier")
    return result.details.get("one_column", result.value)


def brier_top_label(dataset, part):
    top = events(dataset, part)
    return ((top.score.astype(float) - top.hit) ** 2).mean()


def by_true_class(dataset, part):
    data = load(dataset, part)
    errors = Sample.of(data).view(true_class_errors)
    return [float(np.nanmean(errors.ece)), *(errors.mcs if data.n_classes == 10 else ())]


def theirs_by_true_class(value):
    # For 100 classes there is only the mean.
    return [value["unrounded_mean_ece"], *(value["unrounded_level_per_class"] or ())]


def calzone(dataset, part):
    binned = [evaluated(dataset, part, key, "positive").value for key in ("ece", "mce")]
    return [evaluated(dataset, part, "ece").value, *binned]


def theirs_calzone(value):
    return [value["ECE-H topclass"], value["ECE-H"], value["MCE-H"]]


def root(key, reduction="top-label"):
    return lambda dataset, part: evaluated(dataset, part, key, reduction).details["root"]


def root_of_class_mean(dataset, part):
    data = load(dataset, part)
    squares = [
        calviz.evaluate(data, ["ece_debiased"], reduction=f"class:{name}")["ece_debiased"].value
        for name in data.class_names
    ]
    return np.sqrt(np.mean(np.maximum(squares, 0)))


def thresholded(threshold):
    def compute(dataset, part):
        return calviz.evaluate(load(dataset, part), ["tace"], threshold=threshold)["tace"].value

    return compute


def largest_class_mce(dataset, part):
    data = load(dataset, part)
    return max(
        calviz.evaluate(data, ["mce"], reduction=f"class:{name}")["mce"].value
        for name in data.class_names
    )


def kde_as_the_authors(dataset, part):
    # KDEpy's bandwidth is the standard deviation of the kernel, a third of its half-width; the authors
    # take it from the hits alone.
    top = events(dataset, part)
    width = 3 * top.score[top.hit].std(dtype=float) * (2 * top.n) ** -0.2
    return calviz.evaluate(load(dataset, part), ["kde_ece"], bandwidth=width)["kde_ece"].value


def corp(dataset, part):
    parts = [
        evaluated(dataset, part, f"brier_{key}", "positive").value
        for key in ("miscalibration", "discrimination", "uncertainty")
    ]
    return [*parts, parts[0] - parts[1] + parts[2]]


def theirs_corp(value):
    return [value[k] for k in ("miscalibration", "discrimination", "uncertainty", "score")]


def cox(dataset, part):
    keys = ("spiegelhalter_z", "calibration_slope", "calibration_intercept", "ici", "ece")
    chosen = sample(dataset, part, "positive", 10)
    result = calviz.evaluate(chosen, keys, ci=False, curve="logistic")
    return [result[key].value for key in keys]


def theirs_cox(value):
    keys = ("SpiegelhalterZ score", "COX coef", "COX intercept", "COX ICI", "ECE-H")
    return [value[key] for key in keys]


def mapie_tests(dataset, part):
    z = evaluated(dataset, part, "spiegelhalter_z", "positive")
    half = z.details["p_value"] / 2  # theirs is one-sided
    return [z.value, half if z.value > 0 else 1 - half]


def theirs_mapie(value):
    return [value["spiegelhalter"], value["spiegelhalter_p"]]


FLOAT32_PEERS = {"torchmetrics-multiclass", "torch-uncertainty"}
FLOAT32_TOLERANCE = 1e-4
TOLERANCE = 1e-9

#: What is compared: the entry's name without its peer, and how we compute it.
COMPARED = {
    "accuracy": accuracy,
    "mean_conf": mean_score("top-label"),
    "mean_p": mean_score("positive"),
    "nll": metric("nll"),
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
    "ks_top1": metric("ks", "top-label"),
    "ks_top2": metric("ks", "top-2"),
    "ks_within_top2": metric("ks", "within-top-2"),
    "ks_bin": metric("ks", "positive"),
    "classwise_by_true_label": by_true_class,
    "calzone_all_15bins": calzone,
    "calzone_all_10bins": cox,
    "cwece_ew15": metric("classwise_ece"),
    "sce_ew15": metric("classwise_ece"),
    "ece_marginal_ew15": metric("classwise_ece"),
    "cwmce_ew15": largest_class_mce,
    "ace_em15": thresholded(0.0),
    "tace_em15_thr0.01": thresholded(0.01),
    "l2ce_top1_debiased_em15": root("ece_debiased"),
    "l2ce_debiased_em15": root("ece_debiased", "positive"),
    "l2ce_marginal_debiased_em15": root_of_class_mean,
    "smece_top1_exact": metric("smece"),
    "smece_bin_exact": metric("smece", "positive"),
    "ece_kde_top1": kde_as_the_authors,
    "aurc": metric("aurc"),
    "eaurc": metric("e_aurc"),
    "e-aurc": metric("e_aurc"),
    "auroc_failure": metric("auroc_failure"),
    "corp_brier": corp,
    "binary_tests": mapie_tests,
}
#: Looser tolerances, and why.
TOLERANCES = {
    "ace_em15@robustness_metrics": 2e-3,  # tears ties apart, and cuts at other ranks
    "tace_em15_thr0.01@robustness_metrics": 1e-2,
    "smece_top1_exact@own-formula": 2e-5,  # midpoint rule on 4,001 points, and a few bisections
    "smece_bin_exact@own-formula": 2e-5,
    "ece_kde_top1@mix-n-match": 5e-3,  # integrates on a coarser grid, beyond 0 and 1
    "aurc@torch-uncertainty": 3e-3,  # starts at coverage 1 / n, the order inside ties is arbitrary
    "calzone_all_10bins@calzone-tool": 1e-7,  # another optimiser
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
    "calzone_all_10bins": theirs_cox,
    "corp_brier": theirs_corp,
    "binary_tests": theirs_mapie,
    "smece_top1_exact": lambda value: value[0],
    "smece_bin_exact": lambda value: value[0],
}

#: What is not compared (dataset:entry@peer, as regular expressions), and why: first of the sample data.
NOT_ON_SAMPLES = {
    r"breast_cancer_forest:.*_ew(10|15|25)@.*": "scores lie on edges, which they do not round to single precision"
}
NOT_COMPARED = {
    **NOT_ON_SAMPLES,
    r".*:recal:.*": "recalibrators, tested with them",
    r".*:ece_top1_debiased_.*": "a Monte-Carlo estimate of the debiased L1 error, which we have not",
    r".*:smece_.*@relplot": "half weight for scores at 0 and 1; in the unit tests without those",
    r".*:smece_top1@torch-uncertainty": "a port of relplot, in float32",
    r".*:smece_top1_logitkernel.*": "smoothed in log-odds: another quantity",
    r".*:augrc.*": "generalised risk: not a metric of ours",
    r".*:auroc@sklearn": "of the labels, not of failures: not a metric of ours",
    r".*:(cov_at|risk_at).*": "fixed risk and coverage: points of the curve, not metrics of ours",
    r".*:corp_logloss.*": "we decompose the Brier score only",
    r"(fte_nba_games|adult_rf):cwece_ew15@torch-uncertainty": "one column of the two",
    r"adult_rf:e?-?aurc@.*": "its prediction at p = 0.5 is the other class",
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
    if entry != "_meta" and (dataset in SETS or dataset in samples.SETS)
]


def test_every_data_set_is_known():
    assert set(RECORDED) == set(samples.SETS)
    assert set(BESIDE) in ({*SETS}, set())


def test_every_entry_is_compared_or_listed():
    lost = [e for e in ENTRIES if how(e[1]) is None and reason(*e) is None]
    assert lost == []


def test_every_reason_is_needed():
    names = [f"{d}:{e}" for d, e in ENTRIES]
    needed = NOT_COMPARED if BESIDE else NOT_ON_SAMPLES
    assert [p for p in needed if not any(re.fullmatch(p, n) for n in names)] == []


@pytest.mark.parametrize(
    "dataset",
    [
        pytest.param(dataset, marks=[] if dataset in samples.SETS else [pytest.mark.slow])
        for dataset in dict(ENTRIES)
    ],
)
def test_reference(dataset):
    compared = [
        (entry, part, REFERENCE[dataset][entry][part])
        for of, entry in ENTRIES
        for part in PARTS
        if of == dataset and how(entry) and not reason(dataset, entry)
        if part in REFERENCE[dataset][entry]
    ]
    assert compared
    for entry, part, theirs in compared:
        name, peer = entry.split("@")
        tolerance = FLOAT32_TOLERANCE if peer in FLOAT32_PEERS else TOLERANCE
        tolerance = TOLERANCES.get(entry, tolerance)
        if name.startswith("ks"):
            # Inside ties the peer's order is arbitrary, and its sums are float32.
            tolerance = 1 / load(dataset, part).n
        np.testing.assert_allclose(
            how(entry)(dataset, part),
            UNPACK.get(name, np.float64)(theirs),
            rtol=tolerance,
            atol=tolerance,
            err_msg=f"{entry}, {part}",
        )


# ---- The methods for two classes against independent implementations, on the sample data and on real forecasts
#
# Values on the sample data are recorded by ``benchmarks/record_two_classes.py``. Those of the basketball games, whose even rows fit and
# whose odd rows judge, are of the same libraries and of scikit-learn; the file lies in a folder `shared` beside the checkout, where there
# is one.


GAMES = (
    Path(__file__).resolve().parents[2].parent
    / "shared"
    / "data"
    / "fivethirtyeight"
    / "nba_games.csv"
)
RECORDED_OF_REFERENCE_TWO_CLASSES = json.loads(
    (Path(__file__).parent / "recorded_two_classes.json").read_text(encoding="utf-8")
)["values"]
beside = pytest.mark.skipif(not GAMES.exists(), reason="only of the data beside the checkout")


@cache
def sample_of_reference_two_classes(name):
    p, y, split = samples.rows(*samples.SETS[name])
    fit, test = split == "calibration", split == "test"
    p = p.astype(float)
    # As the peers had them: of class 1, and the rest.
    p[:, 0] = 1 - p[:, 1]
    return p[fit], y[fit], p[test]


@cache
def games():
    table = pd.read_csv(GAMES)
    p, y = table["prob1"].to_numpy(), table["prob1_outcome"].to_numpy().astype(int)
    p = np.stack([1 - p, p], axis=1)
    return p[::2], y[::2], p[1::2], y[1::2]


def having(quantity):
    return [
        name
        for name in RECORDED_OF_REFERENCE_TWO_CLASSES
        if quantity in RECORDED_OF_REFERENCE_TWO_CLASSES[name]
    ]


def check(result, recorded, atol):
    rows = np.array(recorded["rows"])
    np.testing.assert_allclose(result[: rows.size], rows, atol=atol)
    assert result.mean() == pytest.approx(recorded["mean"], abs=atol)


@pytest.mark.parametrize("name", having("venn-abers@venn-abers"))
def test_venn_abers(name):
    p, y, q = sample_of_reference_two_classes(name)
    fitted = RECALIBRATORS["venn-abers"].make().fit(p, y)
    check(
        fitted.transform(q)[:, 1],
        RECORDED_OF_REFERENCE_TWO_CLASSES[name]["venn-abers@venn-abers"],
        1e-12,
    )
    pair = fitted.intervals(q)[:, 0]
    for end, quantity in enumerate(("p0@venn-abers", "p1@venn-abers")):
        check(pair[:, end], RECORDED_OF_REFERENCE_TWO_CLASSES[name][quantity], 1e-12)


@pytest.mark.parametrize("name", having("centered-isotonic@cir-model"))
def test_centered_isotonic(name):
    p, y, q = sample_of_reference_two_classes(name)
    fitted = RECALIBRATORS["centered-isotonic"].make(smooth=False).fit(p, y)
    check(
        fitted.curve(q[:, 1]),
        RECORDED_OF_REFERENCE_TWO_CLASSES[name]["centered-isotonic@cir-model"],
        1e-12,
    )


@pytest.mark.parametrize("key", ["linear", "affine", "quadratic"])
@pytest.mark.parametrize("name", having("linear@scikit-learn"))
def test_logistic_regressions(name, key):
    p, y, _ = sample_of_reference_two_classes(name)
    description = RECALIBRATORS[key].make().fit(p, y).describe()
    names = {"linear": "a", "affine": "ba", "quadratic": "abc"}[key]
    wanted = RECORDED_OF_REFERENCE_TWO_CLASSES[name][f"{key}@scikit-learn"]
    np.testing.assert_allclose([description[n] for n in names], wanted, rtol=1e-6)


def judged(key, **options):
    """Brier score of one column, and log loss, of the maps before the two classes are normalised."""
    p, y, q, hit = games()
    fitted = RECALIBRATORS[key].make(**options).fit(p, y)
    own = fitted.curve(q[:, 1]) if hasattr(fitted, "curve") else fitted.transform(q)[:, 1]
    true = np.maximum(np.where(hit == 1, own, 1 - own), 1e-300)
    return fitted, np.mean((own - hit) ** 2), -np.log(true).mean()


@beside
def test_the_games_linear_affine_and_quadratic():
    quadratic, brier, loss = judged("quadratic")
    description = quadratic.describe()
    assert [description[n] for n in "abc"] == pytest.approx(
        [-0.16294434, 0.82271048, -0.0025178], abs=6e-9
    )
    assert (brier, loss) == (
        pytest.approx(0.21005514, abs=6e-9),
        pytest.approx(0.60724970, abs=6e-9),
    )
    affine, linear = (judged(key)[0].describe() for key in ("affine", "linear"))
    assert [affine["b"], affine["a"]] == pytest.approx([-0.16418674, 0.82013175], abs=6e-9)
    assert linear["a"] == pytest.approx(0.74064903, abs=6e-9)


@beside
def test_the_games_centered_isotonic():
    _, brier, loss = judged("centered-isotonic", smooth=False)
    assert (brier, loss) == (
        pytest.approx(0.20976570, abs=6e-9),
        pytest.approx(0.76153562, abs=6e-9),
    )
    # Smoothed, no row costs more than its piece supports.
    assert judged("centered-isotonic")[2] < 0.6068


@beside
def test_the_games_venn_abers():
    fitted, brier, loss = judged("venn-abers")
    assert (brier, loss) == (
        pytest.approx(0.21000024, abs=6e-9),
        pytest.approx(0.60726745, abs=6e-9),
    )
    half = [[0.5, 0.5]]
    assert fitted.intervals(half)[0, 0] == pytest.approx([0.44884488, 0.45214521], abs=6e-9)
    assert fitted.transform(half)[0, 1] == pytest.approx(0.45065789, abs=6e-9)


@beside
def test_the_games_logit_spline():
    _, brier, loss = judged("logit-spline")
    # The package splinecalib 0.0.13, which fits 80 % of the rows, has a Brier score of .21026050.
    assert brier < 0.21026050
    assert loss < 0.6073
