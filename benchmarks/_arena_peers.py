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

from calviz.analysis import evaluate
from calviz.arena.run import experiment_digest
from calviz.arena.sources import Playable
from calviz.comparison.rows import Division
from calviz.core.predictions import Predictions
from calviz.numerics.threads import one_blas_thread
from calviz.results.arena import SCORES, Experiment, MethodScore

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
    known = (
        ("scaling", "TemperatureScaling", "temperature", {}, {}),
        ("scaling", "LogisticCalibration", "platt", {}, {"slow": True}),
        ("scaling", "BetaCalibration", "beta", {}, {"slow": True}),
        ("binning", "HistogramBinning", "histogram", {"bins": 15}, {}),
        ("binning", "IsotonicRegression", "isotonic", {}, {}),
        ("binning", "BBQ", "bbq", {}, {"slow": True}),
        ("binning", "ENIR", "isotonic", {}, {"slow": True}),
    )

    def fit(module: str, name: str, options: Any, p: np.ndarray, y: np.ndarray) -> Predict:
        made = _netcal(module, name, _nothing, **options)
        assert made is not None
        return made(p, y).predict

    return [
        Peer("netcal", name, ours, partial(fit, module, name, options), **facts)
        for module, name, ours, options, facts in known
    ]


def _of_probmetrics() -> list[Peer]:
    found = peer("probmetrics.calibrators")
    if found is None:
        return []
    torch = peer("torch")
    torch.set_num_threads(1)
    made = partial(found.get_calibrator, svs_print_init_info=False, sms_print_init_info=False)
    each = found.MulticlassOneVsRestCalibrator

    def of(name: str, ours: str, make: Callable[[], Any], **facts: Any) -> Peer:
        def fit(p: np.ndarray, y: np.ndarray) -> Predict:
            return make().fit(p, y.astype(np.int64)).predict_proba

        return Peer("probmetrics", name, ours, fit, **facts)

    known = [
        of("temp-scaling", "temperature", lambda: made("temp-scaling")),
        of("ETS", "ets", found.ETSCalibrator),
        of("svs", "svs", lambda: made("svs")),
        of("sms", "sms", lambda: made("sms")),
        of("vector", "vector", found.VectorScalingCalibrator),
        of("matrix", "matrix", found.MatrixScalingCalibrator),
        of("logistic", "affine", lambda: made("logistic"), ours_of_more="sms"),
        of("linear-scaling", "linear", lambda: each(made("linear-scaling"))),
        of("affine-scaling", "affine", lambda: each(made("affine-scaling"))),
        of("quadratic-scaling", "quadratic", lambda: each(made("quadratic-scaling"))),
    ]
    if peer("splinecalib") is not None:
        known.append(of("ML-insights spline", "logit-spline", found.MLISplineCalibrator))
    if peer("betacal") is not None:
        known.append(of("beta", "beta", lambda: each(made("beta"))))
    if peer("cir_model") is not None:
        known.append(of("cir", "centered-isotonic", lambda: made("cir")))
    if peer("venn_abers") is not None:
        known.append(of("ivap", "venn-abers", lambda: made("ivap")))
    return known


def play_peers(
    source: Playable, division: Division, known: frozenset[tuple[str, str]], limit: float
) -> list[tuple[Experiment, dict[tuple[str, str], MethodScore]]]:
    """Run the experiments of a source with all peers whose results are not known yet.

    Parameters
    ----------
    source : Playable
    division : Division
    known : frozenset of (digest, name)
    limit : float
        Time limit of a peer in seconds.
    """
    results = []
    for member in source.members():
        data = member.data
        assert isinstance(data, Predictions)
        rows = division.rows(data)
        ((fit, judged),) = rows.pairs
        p = data.probs.astype(np.float64)
        p /= p.sum(axis=1, keepdims=True)
        experiment = Experiment(
            member.benchmark, member.dataset, member.model, fit.size, judged.size, data.n_classes
        )
        digest = experiment_digest(data, division)
        played = {
            (digest, one.key): _play(one, p, data.labels, fit, judged, limit)
            for one in peers()
            if (digest, one.key) not in known and one.takes(fit.size, data.n_classes)
        }
        results.append((experiment, played))
    return results


def _play(
    one: Peer, p: np.ndarray, labels: np.ndarray, fit: np.ndarray, judged: np.ndarray, limit: float
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
            out = _both(one.fit(p[fit], labels[fit])(p[judged])).astype(np.float64)
        seconds = time.perf_counter() - begun
        total = out.sum(axis=1, keepdims=True)
        if not (np.isfinite(out).all() and (out >= -1e-9).all() and (total > 0).all()):
            return MethodScore(one.key, reason="what it hands out are no probabilities.")
        scores = evaluate(
            Predictions(probs=np.clip(out, 0, None) / total, labels=labels[judged]), SCORES
        )
        return MethodScore(one.key, {key: scores[key].value for key in SCORES}, seconds)
    except TimeUp:
        return MethodScore(one.key, reason=f"it is not done in {limit:g} s.")
    except Exception as error:
        return MethodScore(one.key, reason=f"it fails ({type(error).__name__}).")
