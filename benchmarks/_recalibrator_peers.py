"""Heavy peers of the recalibrators behind one interface: ``fit(scores, labels)`` returns a fitted peer.

They need a separate environment with NumPy and scikit-learn:
``pip install torch netcal probmetrics betacal``. Peers that are not installed are left out.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from _harness import peer

# Progress bars take time and hide the table.
os.environ.setdefault("TQDM_DISABLE", "1")

Arrays = Mapping[str, Any]


@dataclass(frozen=True)
class FittedPeer:
    """A fitted peer: its parameters, under the names used in the tests, and its calibrated probabilities."""

    params: Arrays
    predict: Callable[[np.ndarray], np.ndarray]


Fit = Callable[[np.ndarray, np.ndarray], FittedPeer]


def _both(p: np.ndarray) -> np.ndarray:
    p = np.asarray(p)
    return np.stack([1 - p, p], axis=1) if p.ndim == 1 else p


def _netcal(module: str, name: str, params: Callable[[Any], Arrays], **options: Any) -> Fit | None:
    library = peer(f"netcal.{module}")
    if library is None:
        return None

    def double_precision(p: np.ndarray) -> np.ndarray:
        # In single precision the temperature stays at its start value.
        return p.astype(np.float64)[:, 1] if p.shape[1] == 2 else p.astype(np.float64)

    def fit(p: np.ndarray, y: np.ndarray) -> FittedPeer:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = getattr(library, name)(**options).fit(double_precision(p), y)
        return FittedPeer(params(fitted), lambda q: _both(fitted.transform(double_precision(q))))

    return fit


def _probmetrics(name: str, params: Callable[[Any], Arrays], **options: Any) -> Fit | None:
    library = peer("probmetrics.calibrators")
    if library is None:
        return None

    def fit(p: np.ndarray, y: np.ndarray) -> FittedPeer:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = getattr(library, name)(**options).fit(p, y.astype(np.int64))
        return FittedPeer(params(fitted), fitted.predict_proba)

    return fit


def _scikit_temperature(p: np.ndarray, y: np.ndarray) -> FittedPeer:
    """Temperature scaling of scikit-learn (since 1.8), through its public interface."""
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.frozen import FrozenEstimator

    class Scores(ClassifierMixin, BaseEstimator):
        classes_ = np.arange(p.shape[1])
        n_features_in_ = p.shape[1]

        def fit(self, X: Any, y: Any) -> Any:
            return self

        def __sklearn_is_fitted__(self) -> bool:
            return True

        def decision_function(self, X: np.ndarray) -> np.ndarray:
            z = np.log(X)
            return z[:, 1] - z[:, 0] if z.shape[1] == 2 else z

        def predict(self, X: np.ndarray) -> np.ndarray:
            return X.argmax(axis=1)

    fitted = CalibratedClassifierCV(FrozenEstimator(Scores()), method="temperature").fit(p, y)
    inner = fitted.calibrated_classifiers_[0].calibrators[0]
    # With two classes it turns the difference d into the scores (-d, d), which are twice as far apart.
    twice = 2 if p.shape[1] == 2 else 1
    return FittedPeer({"temperature": 1 / inner.beta_ / twice}, fitted.predict_proba)


def _betacal(p: np.ndarray, y: np.ndarray) -> FittedPeer:
    import betacal

    fitted = betacal.BetaCalibration("abm").fit(p[:, 1:], y)
    a, b, m = fitted.calibrator_.map_
    params = {"a": a, "b": b, "c": b * np.log(1 - m) - a * np.log(m)}
    return FittedPeer(params, lambda q: _both(fitted.predict(q[:, 1:])))


def _of_class_1(
    module: str, name: str, fit: Callable[..., Any], predict: Callable[..., Any], **options: Any
) -> Fit | None:
    """Wrap a peer that takes and returns only the probability of class 1."""
    library = peer(module)
    if library is None:
        return None

    def run(p: np.ndarray, y: np.ndarray) -> FittedPeer:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = getattr(library, name)(**options)
            fit(fitted, p.astype(np.float64)[:, 1], y)
        return FittedPeer({}, lambda q: _both(predict(fitted, q.astype(np.float64)[:, 1])))

    return run


def _nothing(fitted: Any) -> Arrays:
    return {}


def peers() -> dict[str, dict[str, Fit | None]]:
    """Peers by the key of our method, for methods that take probabilities; None if not installed."""
    return {
        "temperature": {
            "netcal": _netcal("scaling", "TemperatureScaling", lambda f: {"temperature": 1 / float(np.ravel(f.temperature)[0])}),
            "probmetrics": _probmetrics("TemperatureScalingCalibrator", lambda f: {"temperature": 1 / f.invtemp_}),
            "scikit-learn": _scikit_temperature,
        },
        "vector": {
            "netcal": _netcal("scaling", "LogisticCalibration", lambda f: {"weights": f.weights, "intercepts": f.intercept}),
            "probmetrics": _probmetrics("VectorScalingCalibrator", lambda f: {"weights": 1 / f.temp_.numpy(), "intercepts": f.bias_.numpy()}),
        },
        "matrix": {
            "probmetrics": _probmetrics("MatrixScalingCalibrator", lambda f: {"weights": f.itemp_.numpy().T, "intercepts": f.bias_.numpy()}),
        },
        "dirichlet-odir": {
            "probmetrics SMS (another penalty)": _probmetrics("SMSCalibrator", _nothing, print_init_info=False),
        },
        "svs": {
            "probmetrics": _probmetrics("SVSCalibrator", lambda f: {"temperature": 1 / f.ts_.cal_.invtemp_, "weights": f.v_, "intercepts": f.b_}, print_init_info=False),
        },
        "sms": {
            "probmetrics": _probmetrics("SMSCalibrator", lambda f: {"temperature": 1 / f.ts_.cal_.invtemp_, "weights": f.W_[:, :-1], "intercepts": f.W_[:, -1]}, print_init_info=False),
        },
        "ets": {
            "probmetrics": _probmetrics("ETSCalibrator", lambda f: {"temperature": f.t_, "weights": f.w_}),
        },
        "isotonic": {"netcal": _netcal("binning", "IsotonicRegression", _nothing)},
        "histogram": {"netcal": _netcal("binning", "HistogramBinning", _nothing, bins=15)},
        "bbq": {"netcal": _netcal("binning", "BBQ", _nothing)},
        "affine": {"netcal": _netcal("scaling", "LogisticCalibration", lambda f: {"a": f.weights, "b": f.intercept})},
        "beta": {
            "netcal": _netcal("scaling", "BetaCalibration", _nothing),
            "betacal": _betacal if peer("betacal") is not None else None,
        },
        "spline": {"probmetrics": _probmetrics("CDFSplineCalibrator", _nothing)},
        "centered-isotonic": {
            "cir-model": _of_class_1("cir_model", "CenteredIsotonicRegression", lambda f, p, y: f.fit(p, y), lambda f, q: f.predict(q), out_of_bounds="clip"),
        },
        "venn-abers": {
            "venn-abers": _of_class_1("venn_abers.venn_abers", "VennAbers", lambda f, p, y: f.fit(_both(p), y), lambda f, q: f.predict_proba(_both(q))[0][:, 1]),
        },
        "logit-spline": {
            "splinecalib": _of_class_1("splinecalib", "SplineCalib", lambda f, p, y: f.fit(p, y), lambda f, q: f.calibrate(q)),
        },
    }  # fmt: skip
