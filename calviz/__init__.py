"""Can I trust these probabilities? Calibration of any classifier, with its error bars.

Start with `audit`, which takes labels and the output of ``predict_proba``, or predictions.

- Data: `Predictions` (`from_arrays`, `from_multilabel`, `from_estimator`, `from_frame`), `ConfidencePredictions`; `sample` gives a sample set, `load` reads a file or a folder of logs; `profile` summarises any number of rows.
- Evaluation: `audit`, `verdict`, `explain`, `evaluate`; `slices` and `over_time` show for whom and since when, `Watch` alarms, `expected` needs no labels yet; `conventions` computes the ECE of other libraries.
- Recalibration: `compare`, `recalibrate`, `learning_curve`; `load_map` loads a saved map; for more rows than fit into memory, `sample_rows` and `recalibrate_files`; `Calibrated` and `recalibrators` are scikit-learn estimators.
- Choice of a model, and sets of plausible classes: `compare_models`, `prediction_sets`; verdicts of a judge corrected by people: `judge`.
- Decisions: `threshold` with a guarantee; other shares of the classes: `at_prevalence`, `base_rates`.
- Output: `figures`, `scorer`, and `integrations` (MLflow, Weights & Biases, pytest).

>>> import calviz
>>> p = calviz.Predictions(probs=[[0.9, 0.1], [0.2, 0.8], [0.7, 0.3]], labels=[0, 1, 1])
>>> round(calviz.evaluate(p, metrics=["ece"], bins=1)["ece"].value, 4)
0.2667
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from calviz.core import __version__ as __version__
from calviz.core.registry import look_in, register_constructors

if TYPE_CHECKING:
    from calviz import figures as figures
    from calviz import integrations as integrations
    from calviz import recalibrators as recalibrators
    from calviz import sample as sample
    from calviz.comparison.calibrated import Calibrated as Calibrated
    from calviz.comparison.compare import compare as compare
    from calviz.comparison.compare_models import compare_models as compare_models
    from calviz.comparison.expected import expected as expected
    from calviz.comparison.fitting import recalibrate as recalibrate
    from calviz.comparison.guaranteed_thresholds import threshold as threshold
    from calviz.comparison.judging import judge as judge
    from calviz.comparison.learning_curves import learning_curve as learning_curve
    from calviz.comparison.over_time import over_time as over_time
    from calviz.comparison.prediction_sets import prediction_sets as prediction_sets
    from calviz.comparison.recalibrate_files import recalibrate_files as recalibrate_files
    from calviz.core.events import Reduction as Reduction
    from calviz.core.predictions import ConfidencePredictions as ConfidencePredictions
    from calviz.core.predictions import Predictions as Predictions
    from calviz.core.predictions import at_prevalence as at_prevalence
    from calviz.core.profile import Profile as Profile
    from calviz.data import load as load
    from calviz.data.any_size.profiling import profile as profile
    from calviz.data.any_size.sampling import sample_rows as sample_rows
    from calviz.recalibrators.base import load_map as load_map
    from calviz.recalibrators.prior import base_rates as base_rates
    from calviz.sample.multicalibration import multicalibration as multicalibration
    from calviz.sample.slices import slices as slices
    from calviz.verdicts.analysis import audit as audit
    from calviz.verdicts.analysis import conventions as conventions
    from calviz.verdicts.analysis import evaluate as evaluate
    from calviz.verdicts.analysis import explain as explain
    from calviz.verdicts.analysis import scorer as scorer
    from calviz.verdicts.analysis import verdict as verdict
    from calviz.verdicts.watching import Watch as Watch


# Module of each public name. They are imported on first use, so that the command line starts
# at once and a script that only evaluates imports neither the readers nor plotly.
_PUBLIC = {
    "calviz.comparison.calibrated": "Calibrated",
    "calviz.comparison.compare": "compare",
    "calviz.comparison.compare_models": "compare_models",
    "calviz.comparison.expected": "expected",
    "calviz.comparison.fitting": "recalibrate",
    "calviz.comparison.folds_and_sites": "folds sites",
    "calviz.comparison.guaranteed_thresholds": "threshold",
    "calviz.comparison.judging": "judge",
    "calviz.comparison.learning_curves": "learning_curve",
    "calviz.comparison.over_time": "over_time",
    "calviz.comparison.prediction_sets": "prediction_sets",
    "calviz.comparison.recalibrate_files": "recalibrate_files",
    "calviz.core.events": "Reduction",
    "calviz.core.predictions": "ConfidencePredictions Predictions at_prevalence",
    "calviz.core.profile": "Profile",
    "calviz.data": "load",
    "calviz.data.any_size.profiling": "profile",
    "calviz.data.any_size.sampling": "sample_rows",
    "calviz.recalibrators.base": "load_map",
    "calviz.recalibrators.prior": "base_rates",
    "calviz.sample.multicalibration": "multicalibration",
    "calviz.sample.slices": "slices",
    "calviz.verdicts.analysis": "audit conventions evaluate explain scorer verdict",
    "calviz.verdicts.watching": "Watch",
}
_HOMES = {name: module for module, names in _PUBLIC.items() for name in names.split()}
_ROOMS = "figures", "integrations", "recalibrators", "sample"
__all__ = sorted((*_HOMES, *_ROOMS, "__version__"))


# Package of each registry; its modules, which register their entries, are imported on first access to the registry.
look_in(
    check="calviz.verdicts",
    convention="calviz.metrics",
    figure="calviz.figures",
    format="calviz.data.formats",
    metric="calviz.metrics",
    recalibrator="calviz.recalibrators",
    section="calviz.report.sections",
)

# Implementations of the constructors of `Predictions`, and of `calviz.sample`.
register_constructors(
    arrays="calviz.data.from_objects.from_arrays",
    estimator="calviz.data.from_objects.from_estimator",
    frame="calviz.data.from_objects.from_frame",
    multilabel="calviz.data.from_objects.from_multilabel",
    sample="calviz.data.reading.sample",
)


def __getattr__(name: str) -> Any:
    if name in _ROOMS:
        return importlib.import_module(f"calviz.{name}")
    if name not in _HOMES:
        raise AttributeError(
            f"module 'calviz' has no attribute '{name}'", name=name, obj=sys.modules[__name__]
        )
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
