"""Which recalibrators are worth trying first on some data, and why the others are left out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from calviz.comparison.fitting import UNCALIBRATED
from calviz.core.predictions import Dataset, Predictions
from calviz.core.recalibrator import RECALIBRATORS

#: Calibration rows per class from which a map of its own for each class follows more than noise.
ROWS_PER_CLASS = 20
#: Rows times the square of the classes up to which the search of ODIR takes seconds.
QUICK_SEARCH = 3_000_000
#: Classes up to which a histogram or a curve for each is looked at by default.
FEW_CLASSES = 20


@dataclass(frozen=True)
class Suggestion:
    """A set of recalibrators to begin with.

    Attributes
    ----------
    methods : tuple of str
        Keys, in the order of the registry.
    left_out : mapping of str to str
        Of methods that work on these data and are not among them: why.
    impossible : mapping of str to str
        Of methods that have no meaning for these data: why.
    """

    methods: tuple[str, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    impossible: Mapping[str, str] = field(default_factory=dict)


def suggest(data: Dataset, fit_rows: int) -> Suggestion:
    """Choose methods by the kind of data, the number of classes and that of calibration rows.

    Parameters
    ----------
    data : Predictions or ConfidencePredictions
    fit_rows : int
        Rows that the methods will be fitted on.
    """
    confidence = data.kind == "confidence"
    k = 2 if confidence else data.n_classes
    logits = isinstance(data, Predictions) and data.logits is not None
    other_form = "dirichlet-odir" if logits else "matrix-odir"
    methods: list[str] = []
    left_out: dict[str, str] = {}
    impossible: dict[str, str] = {}
    for spec in RECALIBRATORS:
        if spec.key == UNCALIBRATED:
            continue
        if confidence and not spec.confidence_only:
            impossible[spec.key] = "it needs the scores of all classes, and the file has one."
        elif spec.key == other_form:
            left_out[spec.key] = (
                "the other form of the same map, which suits this file's scores less."
            )
        elif reason := _against(spec.key, fit_rows, k, confidence=confidence):
            left_out[spec.key] = reason
        else:
            methods.append(spec.key)
    return Suggestion(tuple(methods), left_out, impossible)


def _against(key: str, n: int, k: int, *, confidence: bool) -> str:
    """Why a method is not tried at first; "" where it is."""
    per_class = n / k
    few = f"{n:,} rows for {k:,} classes are {per_class:,.1f} each, fewer than {ROWS_PER_CLASS}"
    if key in ("matrix", "dirichlet"):
        return f"{k * (k + 1):,} free parameters; the form with ODIR holds them back."
    if key in ("matrix-odir", "dirichlet-odir"):
        if per_class < ROWS_PER_CLASS:
            return f"{few}, for {k * (k + 1):,} parameters."
        if n * k * k > QUICK_SEARCH:
            return f"the search of its strengths over {k * (k + 1):,} parameters takes long."
        return "for two classes it is Platt scaling or beta calibration." if k == 2 else ""
    if key in ("platt", "beta", "spline-classwise") and k > 2:
        return "it looks at each class alone, which changes more predictions than it has to."
    if key in ("vector", "isotonic", "temperature+isotonic") and per_class < ROWS_PER_CLASS:
        return f"{few}: it would follow noise."
    if key == "histogram" and k > FEW_CLASSES:
        return f"{k:,} histograms leave too few rows in a bin."
    if key == "cwmcs-ts":
        return "it is about the errors by class, and may change predictions for it."
    if key in ("irm", "ets", "temperature+isotonic") and k == 2:
        return "for two classes it comes close to temperature scaling or isotonic regression."
    return _VARIANTS.get(key, "") if not (confidence and key == "spline-classwise") else ""


_VARIANTS = {
    "temperature-mse": "a variant of temperature scaling, by squared error.",
    "temperature+irm": "a variant of IRM.",
    "ets+isotonic": "a variant of temperature scaling, then isotonic regression.",
    "scaling-binning": "a variant of histogram binning.",
    "bbq": "an average of histogram binnings, slower than one.",
    "gp": "it takes longest of all.",
}
