"""Recreate every file in this folder: ``python sample_data/make.py [name ...]``.

Offline and seeded: the real data sets come with scikit-learn, the simulated ones from NumPy.
README.md explains the purpose of the files. Only this script writes ``manifest.json``.

The simulated files are the same wherever NumPy draws the same numbers. The fitted models are the
same with the versions in the manifest; other versions of scikit-learn or of the linear algebra
library may change digits, not the conclusions.
"""

from __future__ import annotations

import json
import platform
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import scipy
import sklearn
from scipy import integrate, ndimage
from scipy.special import expit
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold, StratifiedKFold, train_test_split
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

FOLDER = Path(__file__).resolve().parent
LIMIT_BYTES = 5_000_000


@dataclass(frozen=True)
class SampleSet:
    """The content of one file, before it is written.

    Attributes
    ----------
    columns : mapping of str to ndarray, shape (n,)
        Columns other than the scores, in order.
    models : mapping of str to ndarray, shape (n, K)
        Probabilities per model, in the order of `classes`.
    classes : tuple of str
    truth : mapping
        True values known in closed form or by quadrature, for the simulated sets.
    """

    columns: Mapping[str, np.ndarray]
    models: Mapping[str, np.ndarray]
    classes: tuple[str, ...]
    truth: Mapping[str, Any] = field(default_factory=dict)

    def table(self) -> pa.Table:
        """Build the Parquet table: the columns as they are, and one float32 column ``<model>:<class>`` per score."""
        arrays: dict[str, Any] = {}
        for name, column in self.columns.items():
            array = pa.array(column.tolist() if column.dtype.kind in "OU" else column)
            arrays[name] = array
        for model, probs in self.models.items():
            for k, c in enumerate(self.classes):
                arrays[f"{model}:{c}"] = pa.array(probs[:, k].astype(np.float32))
        return pa.table(arrays)


# --- digits: ten classes, three models --------------------------------------------------------

#: How the image of a digit was degraded before the models saw it.
CONDITIONS = ("clean", "noisy", "rotated", "shifted", "faint")


def degrade(images: np.ndarray, condition: str, rng: np.random.Generator) -> np.ndarray:
    """Degrade images, shape (n, 8, 8) with values in [0, 1], by one of the `CONDITIONS`."""
    n = len(images)
    if condition == "noisy":
        images = images + rng.normal(0, 0.25, images.shape)
    elif condition == "rotated":
        angles = rng.uniform(10, 25, n) * rng.choice([-1, 1], n)
        turned = [
            ndimage.rotate(image, angle, reshape=False, order=1)
            for image, angle in zip(images, angles, strict=True)
        ]
        images = np.stack(turned)
    elif condition == "shifted":
        moves = rng.uniform(-0.8, 0.8, (n, 2))
        moved = [
            ndimage.shift(image, move, order=1) for image, move in zip(images, moves, strict=True)
        ]
        images = np.stack(moved)
    elif condition == "faint":
        images = images * rng.uniform(0.3, 0.6, (n, 1, 1))
    return np.clip(images, 0, 1)


def _all_conditions(images: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Every image in every condition, image by image; shape (n * 5, 64)."""
    versions = np.stack([degrade(images, c, rng) for c in CONDITIONS], axis=1)
    return versions.reshape(-1, 64)


def make_digits(seed: int = 1) -> SampleSet:
    """Three classifiers on held-out handwritten digits, each image in five conditions."""
    rng = np.random.default_rng(seed)
    pixels, labels = load_digits(return_X_y=True)
    images = pixels.reshape(-1, 8, 8) / 16
    pictures = np.arange(len(images))
    train, held_out = train_test_split(pictures, train_size=597, stratify=labels, random_state=seed)
    calibration, _ = train_test_split(
        held_out, train_size=400, stratify=labels[held_out], random_state=seed
    )
    held_out = np.sort(held_out)

    clean = images[train].reshape(-1, 64), labels[train]
    copies = 2
    training = (
        np.concatenate([_all_conditions(images[train], rng) for _ in range(copies)]),
        np.tile(np.repeat(labels[train], len(CONDITIONS)), copies),
    )
    picture_of_row = np.tile(np.repeat(train, len(CONDITIONS)), copies)

    # Trained without regularisation on clean images only, long after it classifies all of them
    # correctly: overconfident, also on conditions it has never seen.
    mlp = MLPClassifier(
        (200, 100), alpha=0, max_iter=300, tol=0, n_iter_no_change=10_000, random_state=0
    )
    # Heavy shrinkage pulls all probabilities towards 1/10.
    logistic = LogisticRegression(C=0.1, max_iter=1_000)
    # Trained on the conditions of the test rows; its temperature is fitted on training images that
    # the trees have not seen (all copies of an image stay in one fold).
    folds = list(GroupKFold(10).split(training[0], groups=picture_of_row))
    trees = CalibratedClassifierCV(
        ExtraTreesClassifier(100, random_state=0), method="temperature", cv=folds, ensemble=False
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the MLP is meant to use all of its epochs
        mlp.fit(*clean)
    logistic.fit(*training)
    trees.fit(*training)

    degraded = _all_conditions(images[held_out], rng)
    rows = np.repeat(held_out, len(CONDITIONS))
    condition = np.tile(np.array(CONDITIONS, dtype=object), len(held_out))
    return SampleSet(
        columns={
            "id": np.array([f"{p:04d}-{c}" for p, c in zip(rows, condition, strict=True)]),
            "split": np.where(np.isin(rows, calibration), "calibration", "test"),
            "condition": condition,
            "label": labels[rows].astype(np.int8),
        },
        models={
            "MLP": mlp.predict_proba(degraded),
            "logistic regression": logistic.predict_proba(degraded),
            "extra trees": trees.predict_proba(degraded),
        },
        classes=tuple("0123456789"),
    )


# --- breast cancer: two classes, five models --------------------------------------------------


class Margin:
    """A linear support vector machine whose margin is rescaled to [0, 1], as is often done.

    ``p = 1/2 + d / (2 max |d|)``, the maximum over the training rows: no Platt scaling, so the
    scores crowd around one half (Niculescu-Mizil & Caruana 2005).
    """

    def __init__(self, seed: int) -> None:
        self.model = make_pipeline(StandardScaler(), LinearSVC(random_state=seed))

    def fit(self, X: np.ndarray, y: np.ndarray) -> Margin:
        """Fit the machine and store its widest margin."""
        self.model.fit(X, y)
        self.widest = float(np.abs(self.model.decision_function(X)).max())
        return self

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Rescaled margins, shape (n, 2)."""
        p = np.clip(0.5 + self.model.decision_function(X) / (2 * self.widest), 0, 1)
        return np.column_stack([1 - p, p])


def make_breast_cancer(seed: int = 1) -> SampleSet:
    """Five classifiers on the Wisconsin diagnostic set, out of fold (10 folds)."""
    data = load_breast_cancer()
    X = data.data
    labels = (data.target == 0).astype(np.int8)  # 1 = malignant, the class to detect
    models: dict[str, Callable[[], Any]] = {
        "naive Bayes": GaussianNB,
        "SVM margin": lambda: Margin(seed),
        "random forest": lambda: RandomForestClassifier(300, random_state=0),
        "logistic regression": lambda: make_pipeline(
            StandardScaler(), LogisticRegression(max_iter=1_000)
        ),
        "boosted trees": lambda: HistGradientBoostingClassifier(
            max_iter=200, early_stopping=False, random_state=0
        ),
    }
    folds = list(StratifiedKFold(10, shuffle=True, random_state=seed).split(X, labels))
    scores = {name: np.empty((len(X), 2)) for name in models}
    for name, make in models.items():
        for fit, out in folds:
            scores[name][out] = make().fit(X[fit], labels[fit]).predict_proba(X[out])
    calibration, _ = train_test_split(
        np.arange(len(X)), train_size=284, stratify=labels, random_state=seed
    )
    radius = X[:, list(data.feature_names).index("mean radius")]
    tertile = np.searchsorted(np.quantile(radius, [1 / 3, 2 / 3]), radius)
    return SampleSet(
        columns={
            "id": np.array([f"patient {i + 1:03d}" for i in range(len(X))]),
            "split": np.where(np.isin(np.arange(len(X)), calibration), "calibration", "test"),
            "tumour_size": np.array(["small", "medium", "large"], dtype=object)[tertile],
            "label": np.array(["benign", "malignant"], dtype=object)[labels],
        },
        models=scores,
        classes=("benign", "malignant"),
    )


# --- simulated, two classes: Zhang et al. 2020, appendix E ------------------------------------

#: (beta_0, beta_1) of the two cases (Zhang 2020, section 5.1).
CASES = {"less calibrated": (0.5, -1.5), "better calibrated": (0.2, -1.9)}


def _density(x: float) -> float:
    """Density of X: an even mixture of N(-1, 1) and N(1, 1) (eq. 13)."""
    return float((np.exp(-((x + 1) ** 2) / 2) + np.exp(-((x - 1) ** 2) / 2)) / np.sqrt(8 * np.pi))


def _integral(f: Callable[[float], float], low: float, high: float, *breaks: float) -> float:
    inner = sorted(b for b in breaks if low < b < high)
    ends = [low, *inner, high]
    parts = [
        integrate.quad(f, a, b, epsabs=1e-13, epsrel=1e-12, limit=500)[0] for a, b in pairwise(ends)
    ]
    return float(sum(parts))


def binary_truth(beta_0: float, beta_1: float) -> dict[str, dict[str, float]]:
    """True calibration errors of one case, by quadrature (absolute error below 1e-9).

    *Positive class* (the paper's): ``E |z - pi(z)|^d`` with z the reported probability of Y_1 and
    ``pi(z) = 1 / (1 + exp(-2 (b0 + log(1/z - 1)) / b1))`` (eq. 14); in x simply
    ``sigmoid(b0 + b1 x) - sigmoid(-2 x)``.

    *Top label*: a confidence c is reported at two values of x, where the log odds are +-log(c/(1-c)).
    The hit rate at c is the density-weighted mean of the two, so the gap is weighted in the same way
    before its absolute value is taken.
    """

    def gap(x: float) -> float:
        return float(expit(beta_0 + beta_1 * x) - expit(-2 * x))

    # Beyond 12 the density is below 1e-27. The gap changes its sign where b0 + b1 x = -2x.
    crossing = -beta_0 / (beta_1 + 2)
    positive = {
        f"ece_l{d}": _integral(
            lambda x, d=d: abs(gap(x)) ** d * _density(x), -12, 12, crossing, 0.0
        )
        for d in (1, 2)
    }
    positive["mcs"] = _integral(lambda x: gap(x) * _density(x), -12, 12, crossing, 0.0)

    def sides(t: float) -> tuple[float, float]:
        """Density-weighted gap, and density, of the confidence sigmoid(t), t > 0."""
        total, weight = 0.0, 0.0
        for sign in (1, -1):
            x = (sign * t - beta_0) / beta_1
            density = _density(x) / abs(beta_1)
            total += density * (expit(t) - expit(-2 * sign * x))
            weight += density
        return float(total), weight

    top = 12 * abs(beta_1) + abs(beta_0)
    grid = np.linspace(1e-9, top, 4_001)
    gaps = np.array([sides(t)[0] for t in grid])
    crossings = grid[:-1][np.sign(gaps[:-1]) != np.sign(gaps[1:])]

    def squared(t: float) -> float:
        total, weight = sides(t)
        return total**2 / weight if weight > 0 else 0.0

    label = {
        "ece_l1": _integral(lambda t: abs(sides(t)[0]), 0, top, *crossings),
        "ece_l2": _integral(squared, 0, top, *crossings),
        "mcs": _integral(lambda t: sides(t)[0], 0, top, *crossings),
        "accuracy": _integral(
            lambda x: float(expit(-2 * x if beta_0 + beta_1 * x > 0 else 2 * x)) * _density(x),
            -12,
            12,
            -beta_0 / beta_1,
        ),
    }
    return {"positive": positive, "top-label": label}


def make_simulated_binary(seed: int = 2020, n: int = 10_000) -> SampleSet:
    """The two synthetic models of Zhang et al. 2020, appendix E, on the same rows."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(n) < 0.5).astype(np.int8)  # 1 where Y_1 = 1
    x = rng.standard_normal(n) + np.where(labels == 1, -1.0, 1.0)
    models = {}
    for name, (beta_0, beta_1) in CASES.items():
        z = beta_0 + beta_1 * x
        models[name] = np.column_stack([expit(-z), expit(z)])
    return SampleSet(
        columns={
            "split": np.where(np.arange(n) < n // 2, "calibration", "test"),
            "label": np.array(["no", "yes"], dtype=object)[labels],
        },
        models=models,
        classes=("no", "yes"),
        truth={name: binary_truth(*beta) for name, beta in CASES.items()},
    )


# --- simulated, 100 classes -------------------------------------------------------------------

CLASSES = 100
#: The reported probabilities are the true ones raised to this power and normalised.
SHARPENING = 1.2
#: The smallest true probability of the top class.
LOWEST = 0.2


def rest_weights() -> np.ndarray:
    """Shares of the other 99 classes in the remaining probability: 1/j, normalised; shape (99,)."""
    weights = 1 / np.arange(1, CLASSES)
    return weights / weights.sum()


def hundred_truth() -> dict[str, dict[str, float]]:
    """True top-label calibration errors, by quadrature (absolute error below 1e-10).

    In each row the top class has the true probability Q, and the other 99 share 1 - Q in the fixed
    proportions w, in random order. The reported probability is ``p_k ~ q_k ** s``, so the confidence is

        c = Q^s / (Q^s + (1 - Q)^s S),   S = sum_j w_j^s,

    a function of Q alone, whatever the order: ``logit c = s logit Q - log S``. It is increasing,
    so the confidence fixes Q, and E[hit | c] = Q = sigmoid((logit c + log S) / s).
    Q = a + (1 - a) sqrt(U) has the density 2 (Q - a) / (1 - a)^2 on [a, 1]; hence
    ECE^d = integral of |c(Q) - Q|^d 2 (Q - a) / (1 - a)^2 dQ. c > Q everywhere (sharpening raises
    the largest probability), so ECE^1 is also the signed error.
    """
    s, a = SHARPENING, LOWEST
    spread = float((rest_weights() ** s).sum())

    def density(q: float) -> float:
        return 2 * (q - a) / (1 - a) ** 2

    def gap(q: float) -> float:
        return q**s / (q**s + (1 - q) ** s * spread) - q

    ece = {f"ece_l{d}": _integral(lambda q, d=d: gap(q) ** d * density(q), a, 1) for d in (1, 2)}
    return {"top-label": {**ece, "mcs": ece["ece_l1"], "accuracy": a + 2 * (1 - a) / 3}}


def make_simulated_100_classes(seed: int = 100, n: int = 6_000) -> SampleSet:
    """100 classes with labels drawn from the true probabilities, of which a sharpened version is reported."""
    rng = np.random.default_rng(seed)
    top = LOWEST + (1 - LOWEST) * np.sqrt(rng.random(n))
    order = rng.permuted(np.tile(np.arange(CLASSES), (n, 1)), axis=1)
    ranked = np.column_stack([top, (1 - top)[:, None] * rest_weights()])
    true = np.empty((n, CLASSES))
    np.put_along_axis(true, order, ranked, axis=1)
    u = rng.random(n)
    labels = np.minimum((np.cumsum(true, axis=1) < u[:, None]).sum(axis=1), CLASSES - 1)
    powers = true**SHARPENING
    return SampleSet(
        columns={
            "split": np.where(np.arange(n) < 2_000, "calibration", "test"),
            "label": np.array([f"c{k:02d}" for k in labels], dtype=object),
        },
        models={"sharpened": powers / powers.sum(axis=1, keepdims=True)},
        classes=tuple(f"c{k:02d}" for k in range(CLASSES)),
        truth={"sharpened": hundred_truth()},
    )


# --- writing ----------------------------------------------------------------------------------

MAKERS: dict[str, Callable[[], SampleSet]] = {
    "digits": make_digits,
    "breast_cancer": make_breast_cancer,
    "simulated_binary": make_simulated_binary,
    "simulated_100_classes": make_simulated_100_classes,
}


def write(sample_set: SampleSet, path: Path) -> None:
    """Write Parquet with zstd; float columns are split by byte, which compresses them better."""
    table = sample_set.table()
    floats = [f.name for f in table.schema if pa.types.is_floating(f.type)]
    others = [f.name for f in table.schema if not pa.types.is_floating(f.type)]
    pq.write_table(
        table,
        path,
        compression="zstd",
        compression_level=19,
        use_dictionary=others,
        use_byte_stream_split=floats,
    )


def describe(sample_set: SampleSet, path: Path) -> dict[str, Any]:
    """Return the manifest's entry for one file."""
    column = sample_set.columns["label"]
    labels = (
        column
        if column.dtype.kind in "iu"
        else np.array([sample_set.classes.index(str(v)) for v in column])
    )
    splits, counts = np.unique(sample_set.columns["split"].astype(str), return_counts=True)
    test = sample_set.columns["split"] == "test"
    models = {}
    for name, probs in sample_set.models.items():
        hit = probs.argmax(axis=1) == labels
        models[name] = {
            "test_accuracy": round(float(hit[test].mean()), 4),
            "test_confidence": round(float(probs.max(axis=1)[test].mean()), 4),
        }
    return {
        "file": path.name,
        "bytes": path.stat().st_size,
        "rows": len(labels),
        "classes": len(sample_set.classes),
        "columns": list(sample_set.columns),
        "splits": dict(zip(splits.tolist(), counts.tolist(), strict=True)),
        "models": models,
        **({"truth": sample_set.truth} if sample_set.truth else {}),
        "made_with": {
            "python": platform.python_version(),
            "numpy": np.__version__,
            "scipy": scipy.__version__,
            "scikit-learn": sklearn.__version__,
            "pyarrow": pa.__version__,
        },
    }


def main(names: list[str]) -> None:
    """Make the named files (all if none is named) and update the manifest."""
    unknown = [name for name in names if name not in MAKERS]
    if unknown:
        sys.exit(f"there is no sample set '{unknown[0]}'; known: {', '.join(MAKERS)}.")
    manifest_path = FOLDER / "manifest.json"
    entries = json.loads(manifest_path.read_text()) if manifest_path.exists() else {}
    for name in names or MAKERS:
        path = FOLDER / f"{name}.parquet"
        with threadpool_limits(1):  # the fits depend on the order of sums, and so on threads
            sample_set = MAKERS[name]()
        write(sample_set, path)
        entries[name] = describe(sample_set, path)
        print(f"{path.name}: {entries[name]['rows']:,} rows, {entries[name]['bytes']:,} bytes")
    manifest = {name: entries[name] for name in MAKERS if name in entries}
    manifest_path.write_text(json.dumps(manifest, indent=1) + "\n")
    total = sum(entry["bytes"] for entry in manifest.values())
    print(f"{total:,} bytes in all, {LIMIT_BYTES:,} allowed")
    if total > LIMIT_BYTES:
        sys.exit("the sample data are too large")


if __name__ == "__main__":
    main(sys.argv[1:])
