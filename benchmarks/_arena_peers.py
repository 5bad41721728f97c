"""Recalibrators of other libraries in the arena, fitted on the same rows and judged by the same scores as our methods.

``pip install torch netcal probmetrics betacal cir-model venn-abers``; peers that are not installed are left out. Each peer gets the
probabilities in double precision, including exact zeros, which it treats by its own defaults.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from io import StringIO
from typing import Any

import numpy as np
from _harness import TimeUp, at_most, peer
from _recalibrator_peers import _both, _netcal, _nothing

from calviz.comparison.arena_experiments import experiment_digest
from calviz.comparison.arena_results import SCORES, Experiment, MethodScore
from calviz.comparison.arena_sources import Playable
from calviz.comparison.fitting import Division
from calviz.core.blocks import one_blas_thread
from calviz.core.predictions import Predictions
from calviz.verdicts.analysis import evaluate

#: A fitted peer, as a function from probabilities to calibrated ones.
Predict = Callable[[np.ndarray], np.ndarray]
Maker = Callable[[np.ndarray, np.ndarray], Predict]


#: Largest number of calibration rows for which slow peers take part.
SLOW_ROWS = 1_000


@dataclass(frozen=True)
class Peer:
    """A method of another library, and our corresponding method for two classes and for more."""

    library: str
    name: str
    ours: str
    fit: Maker
    ours_of_more: str = ""
    slow: bool = False

    def takes(self, rows: int, classes: int) -> bool:
        """Whether the peer takes part in an experiment: slow peers only with two classes and few rows."""
        return not self.slow or (classes == 2 and rows <= SLOW_ROWS)

    @property
    def key(self) -> str:
        """Name of the peer in tables."""
        return f"{self.name} ({self.library})"


def peers() -> list[Peer]:
    """Peers whose library is installed."""
    return [*_scikit_learn(), *_of_netcal(), *_of_probmetrics()]


def _scikit_learn() -> list[Peer]:
    named = {"sigmoid": "platt", "isotonic": "isotonic", "temperature": "temperature"}
    return [Peer("scikit-learn", n, ours, partial(_prefit, n)) for n, ours in named.items()]


def _prefit(method: Any, p: np.ndarray, y: np.ndarray) -> Predict:
    from sklearn.base import BaseEstimator, ClassifierMixin
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.frozen import FrozenEstimator

    class Fitted(ClassifierMixin, BaseEstimator):
        """A model that returns its inputs as probabilities."""

        classes_ = np.arange(p.shape[1])
        n_features_in_ = p.shape[1]

        def fit(self, X: Any, y: Any) -> Any:
            return self

        def __sklearn_is_fitted__(self) -> bool:
            return True

        def predict_proba(self, X: np.ndarray) -> np.ndarray:
            return X

        def predict(self, X: np.ndarray) -> np.ndarray:
            return X.argmax(axis=1)

    return CalibratedClassifierCV(FrozenEstimator(Fitted()), method=method).fit(p, y).predict_proba


def _of_netcal() -> list[Peer]:
    if peer("netcal.scaling") is None:
        return []
    methods = (
        ("scaling", "TemperatureScaling", "temperature", {}, {}),
        ("scaling", "LogisticCalibration", "platt", {}, {"slow": True}),
        ("scaling", "BetaCalibration", "beta", {}, {"slow": True}),
        ("binning", "HistogramBinning", "histogram", {"bins": 15}, {}),
        ("binning", "IsotonicRegression", "isotonic", {}, {}),
        ("binning", "BBQ", "bbq", {}, {"slow": True}),
        ("binning", "ENIR", "isotonic", {}, {"slow": True}),
    )

    def fit(module: str, name: str, options: Any, p: np.ndarray, y: np.ndarray) -> Predict:
        fit_peer = _netcal(module, name, _nothing, **options)
        assert fit_peer is not None
        return fit_peer(p, y).predict

    return [
        Peer("netcal", name, ours, partial(fit, module, name, options), **facts)
        for module, name, ours, options, facts in methods
    ]


def _of_probmetrics() -> list[Peer]:
    module = peer("probmetrics.calibrators")
    if module is None:
        return []
    torch = peer("torch")
    torch.set_num_threads(1)
    calibrator = partial(
        module.get_calibrator, svs_print_init_info=False, sms_print_init_info=False
    )
    one_vs_rest = module.MulticlassOneVsRestCalibrator

    def make_peer(name: str, ours: str, make: Callable[[], Any], **facts: Any) -> Peer:
        def fit(p: np.ndarray, y: np.ndarray) -> Predict:
            return make().fit(p, y.astype(np.int64)).predict_proba

        return Peer("probmetrics", name, ours, fit, **facts)

    peers_found = [
        make_peer("temp-scaling", "temperature", lambda: calibrator("temp-scaling")),
        make_peer("ETS", "ets", module.ETSCalibrator),
        make_peer("svs", "svs", lambda: calibrator("svs")),
        make_peer("sms", "sms", lambda: calibrator("sms")),
        make_peer("vector", "vector", module.VectorScalingCalibrator),
        make_peer("matrix", "matrix", module.MatrixScalingCalibrator),
        make_peer("logistic", "affine", lambda: calibrator("logistic"), ours_of_more="sms"),
        make_peer("linear-scaling", "linear", lambda: one_vs_rest(calibrator("linear-scaling"))),
        make_peer("affine-scaling", "affine", lambda: one_vs_rest(calibrator("affine-scaling"))),
        make_peer(
            "quadratic-scaling", "quadratic", lambda: one_vs_rest(calibrator("quadratic-scaling"))
        ),
    ]
    if peer("splinecalib") is not None:
        peers_found.append(
            make_peer("ML-insights spline", "logit-spline", module.MLISplineCalibrator)
        )
    if peer("betacal") is not None:
        peers_found.append(make_peer("beta", "beta", lambda: one_vs_rest(calibrator("beta"))))
    if peer("cir_model") is not None:
        peers_found.append(make_peer("cir", "centered-isotonic", lambda: calibrator("cir")))
    if peer("venn_abers") is not None:
        peers_found.append(make_peer("ivap", "venn-abers", lambda: calibrator("ivap")))
    return peers_found


def play_peers(
    source: Playable, division: Division, finished: frozenset[tuple[str, str]], limit: float
) -> list[tuple[Experiment, dict[tuple[str, str], MethodScore]]]:
    """Run the experiments of a source with all peers that have not finished them yet.

    Parameters
    ----------
    source : Playable
    division : Division
    finished : frozenset of (digest, name)
    limit : float
        Time limit of a peer in seconds.
    """
    results = []
    for model, data in source.models().items():
        assert isinstance(data, Predictions)
        rows = division.rows(data)
        ((fit, evaluation),) = rows.pairs
        p = data.probs.astype(np.float64)
        p /= p.sum(axis=1, keepdims=True)
        experiment = Experiment(
            source.benchmark, source.dataset, model, fit.size, evaluation.size, data.n_classes
        )
        digest = experiment_digest(data, division)
        played = {
            (digest, rival.key): _play(rival, p, data.labels, fit, evaluation, limit)
            for rival in peers()
            if (digest, rival.key) not in finished and rival.takes(fit.size, data.n_classes)
        }
        results.append((experiment, played))
    return results


def _play(
    rival: Peer,
    p: np.ndarray,
    labels: np.ndarray,
    fit: np.ndarray,
    evaluation: np.ndarray,
    limit: float,
) -> MethodScore:
    begun = time.perf_counter()
    try:
        with (
            warnings.catch_warnings(),
            np.errstate(all="ignore"),
            one_blas_thread(),
            at_most(limit),
            redirect_stdout(StringIO()),
        ):
            warnings.simplefilter("ignore")
            out = _both(rival.fit(p[fit], labels[fit])(p[evaluation])).astype(np.float64)
        seconds = time.perf_counter() - begun
        total = out.sum(axis=1, keepdims=True)
        if not (np.isfinite(out).all() and (out >= -1e-9).all() and (total > 0).all()):
            return MethodScore(rival.key, reason="what it hands out are no probabilities.")
        scores = evaluate(
            Predictions(probs=np.clip(out, 0, None) / total, labels=labels[evaluation]), SCORES
        )
        return MethodScore(rival.key, {key: scores[key].value for key in SCORES}, seconds)
    except TimeUp:
        return MethodScore(rival.key, reason=f"it is not done in {limit:g} s.")
    except Exception as error:
        return MethodScore(rival.key, reason=f"it fails ({type(error).__name__}).")
