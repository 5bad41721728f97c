"""Record results of independent libraries on the sample data, for comparison in the tests.

    python -P benchmarks/record_sample_data.py

Needs the libraries of requirements-dev.txt (`-P`, because numba imports a module with the same name as coverage.py here), but not
calviz. Writes ``tests/reference/recorded_sample_data.json``: per data set and ``quantity@library`` the value on all rows
(``value``) and on the split `test` (``value_test``); for recalibrators, the results of fits on the split `calibration`.
The names of the quantities are those of ``tests/reference``.
"""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "tests" / "reference"
LIBRARIES = (
    "betacal",
    "MAPIE",
    "model-diagnostics",
    "numpy",
    "pandas",
    "pycalib",
    "scikit-learn",
    "scipy",
    "uncertainty-calibration",
)
Arrays = tuple[np.ndarray, np.ndarray]
#: A function of probabilities, shape (n, K) in double precision, and labels, shape (n,).
Quantity = Callable[[np.ndarray, np.ndarray], Any]


def top(p: np.ndarray, y: np.ndarray) -> Arrays:
    """Largest probability of every row, and whether that class is the true one."""
    return p.max(axis=1), (p.argmax(axis=1) == y).astype(int)


def metrics(k: int) -> dict[str, Quantity]:
    """Quantities that are recorded for predictions of `k` classes."""
    import calibration as uc
    import pycalib.metrics as pc
    from mapie.metrics import calibration as mapie
    from sklearn import metrics as sk

    def on_top(quantity: Quantity) -> Quantity:
        return lambda p, y: quantity(*top(p, y))

    def error(power: int, *, debias: bool, equal_mass: bool = True) -> Quantity:
        scheme = uc.get_equal_bins if equal_mass else uc.get_equal_prob_bins
        return lambda p, y: uc.lower_bound_scaling_ce(
            p, y, p=power, debias=debias, num_bins=15, binning_scheme=scheme
        )

    def cumulative(s: np.ndarray, hit: np.ndarray) -> float:
        return float(np.abs(mapie.cumulative_differences(hit, s)).max())

    def ece(bins: int) -> Quantity:
        return lambda s, hit: uc.get_ece(s, hit, num_bins=bins)

    quantities: dict[str, Quantity] = {
        "accuracy@sklearn": lambda p, y: sk.accuracy_score(
            y, p[:, 1] >= 0.5 if k == 2 else p.argmax(axis=1)
        ),
        "mean_conf@numpy": lambda p, _: p.max(axis=1).mean(),
        "nll@sklearn": lambda p, y: sk.log_loss(y, p, labels=range(k)),
        "brier@sklearn": lambda p, y: sk.brier_score_loss(
            y, p, labels=range(k), scale_by_half=k == 2
        ),
        "brier@pycalib": lambda p, y: pc.brier_score(np.eye(k)[y], p),
        "brier_top1@sklearn": on_top(lambda s, hit: sk.brier_score_loss(hit, s)),
        "auroc_failure@sklearn": on_top(lambda s, hit: sk.roc_auc_score(hit, s)),
        "ece_top1_ew15@uncertainty-calibration": on_top(ece(15)),
        "ece_top1_ew25@uncertainty-calibration": on_top(ece(25)),
        "ece_top1_em15@uncertainty-calibration": on_top(
            lambda s, hit: uc.get_ece_em(s, hit, num_bins=15)
        ),
        "rmsce_top1_ew15@uncertainty-calibration": on_top(error(2, debias=False, equal_mass=False)),
        "l2ce_top1_plugin_em15@uncertainty-calibration": on_top(error(2, debias=False)),
        "l2ce_top1_debiased_em15@uncertainty-calibration": on_top(error(2, debias=True)),
        "ks_top1@mapie": on_top(cumulative),
    }
    if k > 2:
        return quantities | {
            "ece_top1_ew15@pycalib": lambda p, y: pc.conf_ECE(np.eye(k)[y], p, bins=15),
            "mce_top1_ew15@pycalib": lambda p, y: pc.conf_MCE(np.eye(k)[y], p, bins=15),
            "cwece_ew15@pycalib": lambda p, y: pc.classwise_ECE(np.eye(k)[y], p, bins=15),
            "cwmce_ew15@pycalib": lambda p, y: pc.classwise_MCE(np.eye(k)[y], p, bins=15),
            "ece_marginal_ew15@uncertainty-calibration": lambda p, y: uc.get_ece(
                p, y, num_bins=15, mode="marginal"
            ),
            "l2ce_marginal_debiased_em15@uncertainty-calibration": error(2, debias=True),
        }

    def positive(quantity: Quantity) -> Quantity:
        return lambda p, y: quantity(p[:, 1], y)

    def corp(p: np.ndarray, y: np.ndarray) -> dict[str, float]:
        from model_diagnostics.scoring import SquaredError, decompose

        table = decompose(y_obs=y, y_pred=p, scoring_function=SquaredError())
        parts = ("miscalibration", "discrimination", "uncertainty", "score")
        return {name: float(table[name][0]) for name in parts}

    return quantities | {
        "mean_p@numpy": positive(lambda p, _: p.mean()),
        "ece_bin_ew15@pycalib": positive(lambda p, y: pc.binary_ECE(y, p, bins=15)),
        "mce_bin_ew15@pycalib": positive(lambda p, y: pc.binary_MCE(y, p, bins=15)),
        "ece_bin_ew15@uncertainty-calibration": positive(ece(15)),
        "ece_bin_ew10@uncertainty-calibration": positive(ece(10)),
        "ece_bin_em15@uncertainty-calibration": positive(
            lambda p, y: uc.get_ece_em(p, y, num_bins=15)
        ),
        "l2ce_debiased_em15@uncertainty-calibration": positive(error(2, debias=True)),
        "ks_bin@mapie": positive(cumulative),
        "corp_brier@model-diagnostics": positive(corp),
        "binary_tests@mapie": positive(
            lambda p, y: {
                "spiegelhalter": float(mapie.spiegelhalter_statistic(y, p)),
                "spiegelhalter_p": float(mapie.spiegelhalter_p_value(y, p)),
            }
        ),
    }


def plain(value: Any) -> Any:
    """Numbers for JSON, in full precision."""
    return value if isinstance(value, dict) else float(value)


def measured(p: np.ndarray, labels: np.ndarray, split: np.ndarray) -> dict[str, Any]:
    """Compute all quantities, on all rows and on the test rows."""
    test = split == "test"
    return {
        name: {
            "value": plain(quantity(p, labels)),
            "value_test": plain(quantity(p[test], labels[test])),
        }
        for name, quantity in metrics(p.shape[1]).items()
    }


def recalibrated(p: np.ndarray, labels: np.ndarray, split: np.ndarray) -> dict[str, Any]:
    """Results on the test rows of methods fitted on the calibration rows, and their parameters."""
    fit, test = split == "calibration", split == "test"
    fit_all = _one_column if p.shape[1] == 2 else _all_columns
    results = {"none@identity": ({}, p[test]), **fit_all(p[fit], labels[fit], p[test])}
    of_true_class = np.arange(test.sum()), labels[test]
    return {
        f"recal:{name}": {
            "value": {
                "params": params,
                "test": {
                    "nll": float(
                        -np.log(np.maximum(out[of_true_class], np.finfo(float).eps)).mean()
                    ),
                    "accuracy": float((out.argmax(axis=1) == labels[test]).mean()),
                },
                "first5": (out[:5, 1] if p.shape[1] == 2 else out[:5]).tolist(),
            }
        }
        for name, (params, out) in results.items()
    }


def _all_columns(p: np.ndarray, y: np.ndarray, q: np.ndarray) -> dict[str, Any]:
    import written_objectives as written
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import log_loss

    squared = written.temperature(p, y, q, squared=True)
    warmer = (written.softmax(np.log(rows) / squared[0]["T"]) for rows in (p, q))
    tempered, tempered_test = warmer
    results: dict[str, Any] = {
        "irova@sklearn": ({}, written.one_vs_rest(p, y, q)),
        "irm@sklearn": written.pooled_isotonic(p, y, q),
        "irova_ts@sklearn": ({}, written.one_vs_rest(tempered, y, tempered_test)),
        "temperature_nll@scipy": written.temperature(p, y, q, squared=False),
        "temperature_mse@scipy": squared,
        "spline_top1@scipy": written.spline(p, y, q, r=1),
        "spline_within_top2@scipy": written.spline(p, y, q, r=2),
        "cwmcs_ts@numpy": written.class_temperatures(p, y, q),
    }
    for strength in written.STRENGTHS:
        result = written.dirichlet_odir(p, y, q, strength=strength)
        results[f"dirichlet_odir{strength:g}@scipy"] = result
    if p.shape[1] <= 10:
        model = LogisticRegression(C=np.inf, solver="newton-cg", tol=1e-8, max_iter=10_000)
        model.fit(np.log(p), y)
        loss = float(log_loss(y, model.predict_proba(np.log(p))))
        results["dirichlet@sklearn"] = ({"cal_logloss": loss}, model.predict_proba(np.log(q)))
    return results


def _one_column(both: np.ndarray, y: np.ndarray, q: np.ndarray) -> dict[str, Any]:
    import calibration as uc
    import written_objectives as written
    from betacal import BetaCalibration
    from sklearn.isotonic import IsotonicRegression
    from sklearn.linear_model import LogisticRegression

    p, test_scores = both[:, 1], q[:, 1]

    def odds(scores: np.ndarray) -> np.ndarray:
        return np.asarray(np.log(scores / (1 - scores))[:, None])

    slope = LogisticRegression(C=np.inf, fit_intercept=False, tol=1e-12).fit(odds(p), y)
    isotonic = IsotonicRegression(out_of_bounds="clip").fit(p, y)
    platt, model = uc.utils.get_platt_scaler(p, y, get_clf=True)
    beta = BetaCalibration("abm").fit(p[:, None], y)
    histogram, binner = uc.HistogramCalibrator(len(y), 10), uc.PlattBinnerCalibrator(len(y), 10)
    histogram.train_calibration(p, y)
    binner.train_calibration(p, y)
    results = {
        "temperature@sklearn": (
            {"T": 1 / float(slope.coef_[0, 0])},
            slope.predict_proba(odds(test_scores))[:, 1],
        ),
        "isotonic@sklearn": (
            {"n_thresholds": len(isotonic.X_thresholds_)},
            isotonic.predict(test_scores),
        ),
        "platt@uncertainty-calibration": (
            {"a": float(model.coef_[0, 0]), "b": float(model.intercept_[0])},
            platt(test_scores),
        ),
        "beta_abm@betacal": (
            {"map": [float(v) for v in beta.calibrator_.map_]},
            beta.predict(test_scores[:, None]),
        ),
        "hist_ew10@pandas": written.histogram(p, y, test_scores, bins=10),
        "hist_em10@uncertainty-calibration": ({}, histogram.calibrate(test_scores)),
        "platt_binner10@uncertainty-calibration": ({}, binner.calibrate(test_scores)),
    }
    return {
        name: (params, np.stack([1 - out, out], axis=1)) for name, (params, out) in results.items()
    }


def main() -> None:
    """Record every data set."""
    sys.path.insert(0, str(REFERENCE))
    samples = importlib.import_module("samples")
    values: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (file, model) in samples.SETS.items():
            stored, labels, split = samples.rows(file, model)
            p = stored.astype(np.float64)
            values[name] = measured(p, labels, split)
            if name in samples.FITTED:
                values[name] |= recalibrated(p, labels, split)
            print(f"{name}: {len(values[name])} quantities")
    path = REFERENCE / "recorded_sample_data.json"
    record = {"versions": {name: version(name) for name in LIBRARIES}, "values": values}
    path.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
