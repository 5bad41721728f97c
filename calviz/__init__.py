"""Can I trust these probabilities? Calibration of any classifier, with its error bars.

Start with `audit`, which takes labels and the output of ``predict_proba``, or predictions.

- Data: `Predictions` (`from_arrays`, `from_estimator`, `from_frame`), `ConfidencePredictions`; `load` reads a file or a folder of logs; `profile` summarises any number of rows.
- Evaluation: `audit`, `verdict`, `explain`, `evaluate`; `slices` and `over_time` show for whom and since when; `conventions` computes the ECE of other libraries.
- Recalibration: `compare`, `recalibrate`, `learning_curve`; `load_map` loads a saved map; for more rows than fit into memory, `sample_rows` and `recalibrate_files`; `Calibrated` and `recalibrators` are scikit-learn estimators.
- Choice of a model, and sets of plausible classes: `compare_models`, `prediction_sets`.
- Output: `figures`, `scorer`, and `integrations` (MLflow, Weights & Biases, pytest).

>>> import calviz
>>> p = calviz.Predictions(probs=[[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]], labels=[0, 1, 1])
>>> round(calviz.evaluate(p, metrics=["ece"], bins=1)["ece"].value, 4)
0.2667
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from calviz.core.constructors import register_constructors
from calviz.core.version import __version__
from calviz.specs.registry import look_in

if TYPE_CHECKING:
    from calviz import figures as figures
    from calviz import integrations as integrations
    from calviz import recalibrators as recalibrators
    from calviz.analysis import conventions, evaluate, explain, verdict
    from calviz.audit_and_scorer import audit, scorer
    from calviz.comparison import (
        compare,
        compare_models,
        learning_curve,
        over_time,
        prediction_sets,
        recalibrate,
        recalibrate_files,
        slices,
    )
    from calviz.comparison.calibrated import Calibrated
    from calviz.core.predictions import ConfidencePredictions, Predictions
    from calviz.core.reduction import Reduction
    from calviz.data import load
    from calviz.data.profiling import profile
    from calviz.data.sampling import sample_rows
    from calviz.profiles.profile import Profile
    from calviz.recalibrators.maps.loading import load_map


__all__ = [
    "Calibrated",
    "ConfidencePredictions",
    "Predictions",
    "Profile",
    "Reduction",
    "__version__",
    "audit",
    "compare",
    "compare_models",
    "conventions",
    "evaluate",
    "explain",
    "figures",
    "integrations",
    "learning_curve",
    "load",
    "load_map",
    "over_time",
    "prediction_sets",
    "profile",
    "recalibrate",
    "recalibrate_files",
    "recalibrators",
    "sample_rows",
    "scorer",
    "slices",
    "verdict",
]

# Module of each public name. They are imported on first use, so that the command line starts
# at once and a script that only evaluates imports neither the readers nor plotly.
_HOMES = {
    "Calibrated": "calviz.comparison.calibrated",
    "ConfidencePredictions": "calviz.core.predictions",
    "Predictions": "calviz.core.predictions",
    "Profile": "calviz.profiles.profile",
    "Reduction": "calviz.core.reduction",
    "audit": "calviz.audit_and_scorer",
    "compare": "calviz.comparison",
    "compare_models": "calviz.comparison",
    "conventions": "calviz.analysis",
    "evaluate": "calviz.analysis",
    "explain": "calviz.analysis",
    "learning_curve": "calviz.comparison",
    "load": "calviz.data",
    "load_map": "calviz.recalibrators.maps.loading",
    "over_time": "calviz.comparison",
    "prediction_sets": "calviz.comparison",
    "profile": "calviz.data.profiling",
    "recalibrate": "calviz.comparison",
    "recalibrate_files": "calviz.comparison",
    "sample_rows": "calviz.data.sampling",
    "scorer": "calviz.audit_and_scorer",
    "slices": "calviz.comparison",
    "verdict": "calviz.analysis",
}


# Package of each registry; its modules, which register their entries, are imported on first access to the registry.
look_in(
    check="calviz.checks",
    convention="calviz.peers",
    figure="calviz.figures",
    format="calviz.data.formats",
    metric="calviz.metrics",
    recalibrator="calviz.recalibrators",
    section="calviz.report.sections",
)

# Implementations of the constructors of `Predictions`.
register_constructors(
    arrays="calviz.data.making.arrays.from_arrays",
    estimator="calviz.data.making.estimators.from_estimator",
    frame="calviz.data.making.frames.from_frame",
)


def __getattr__(name: str) -> Any:
    if name in ("figures", "integrations", "recalibrators"):
        return importlib.import_module(f"calviz.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'calviz' has no attribute '{name}'")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
