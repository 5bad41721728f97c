"""Record the "ECE" of libraries that are too heavy to install for the tests.

    python -P benchmarks/record_conventions.py
    python -P benchmarks/record_conventions.py hle FILE

The second command adds the error of Humanity's Last Exam to what the first one recorded: FILE is ``utils/calibration_tools.py`` of hendrycks/outlier-exposure
(e6ede98), whose function the benchmark copied. The first one needs netcal, torchmetrics and probmetrics (and with them PyTorch) but not calviz, so a separate environment
is enough (`-P`, because numba imports a module with the same name as coverage.py here). Writes
``tests/unit/metrics/recorded_conventions.json`` with the versions. The inputs come from `cases`, which the tests also call.
"""

from __future__ import annotations

import json
import runpy
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np

RECORDED = Path(__file__).parents[1] / "tests" / "unit" / "metrics" / "recorded_conventions.json"
LIBRARIES = ("netcal", "torchmetrics", "probmetrics", "torch", "numpy")


def cases() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Probabilities and labels by name: ties, scores on the edges of bins, exact 0 and 1."""
    one, labels = _binary(np.random.RandomState(1))
    three = _multiclass(np.random.RandomState(3), 300, 3, decimals=1)
    return {
        "binary, one column": (one, labels),
        "binary, two columns": (np.stack([1 - one, one], axis=1), labels),
        "three classes": _multiclass(np.random.RandomState(2), 400, 3, saturated=20),
        "three classes, tied": three,
        "three classes, two seen": (three[0], np.minimum(three[1], 1)),
        "ten classes": _multiclass(np.random.RandomState(4), 500, 10, saturated=40),
        "ten classes, tied": _multiclass(np.random.RandomState(5), 300, 10, decimals=2),
        "one row": (np.array([[0.2, 0.7, 0.1]]), np.array([2])),
        "eight rows": _multiclass(np.random.RandomState(6), 8, 3),
    }


def _binary(random: np.random.RandomState) -> tuple[np.ndarray, np.ndarray]:
    edges = [np.arange(m + 1) / m for m in (2, 5, 10, 15, 49)]
    plain, tied = random.random_sample(120), np.round(random.random_sample(120), 1)
    score = np.concatenate([plain, tied, np.zeros(7), np.ones(9), *edges])
    return score, (random.random_sample(score.size) < score**1.3).astype(np.int64)


def _multiclass(
    random: np.random.RandomState,
    n: int,
    k: int,
    *,
    saturated: int = 0,
    decimals: int | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    # RandomState's stream never changes; powers of exponentials make some rows sharp.
    weight = (-np.log(1 - random.random_sample((n, k)))) ** 3 + 1e-9
    probs = weight / weight.sum(axis=1, keepdims=True)
    upto = np.cumsum(np.sqrt(probs) / np.sqrt(probs).sum(axis=1, keepdims=True), axis=1)
    labels = (random.random_sample((n, 1)) > upto[:, :-1]).sum(axis=1)
    if decimals is not None:
        # Whole tenths or hundredths that sum to 1; the largest takes the rounding error.
        units = np.floor(probs * 10**decimals).astype(int)
        units[np.arange(n), probs.argmax(axis=1)] += 10**decimals - units.sum(axis=1)
        probs = units / 10**decimals
    probs[:saturated] = np.eye(k)[probs[:saturated].argmax(axis=1)]
    return probs, labels


def recorded(probs: np.ndarray, labels: np.ndarray) -> dict[str, float | str]:
    """Values of the libraries by the key of the convention; the error message if one refuses."""
    found: dict[str, float | str] = {}
    for key, measure in (
        ("netcal", _netcal),
        ("torchmetrics", _torchmetrics),
        ("probmetrics", _probmetrics),
    ):
        try:
            found[key] = float(measure(probs, labels))
        except (RuntimeError, ValueError) as error:
            found[key] = str(error)
    return found


def _netcal(probs: np.ndarray, labels: np.ndarray) -> float:
    from netcal.metrics import ECE

    return ECE().measure(probs, labels)


def _torchmetrics(probs: np.ndarray, labels: np.ndarray) -> float:
    import torch
    from torchmetrics.functional.classification import calibration_error

    scores, targets = torch.tensor(probs), torch.tensor(labels)
    if probs.ndim == 1:
        return calibration_error(scores, targets, task="binary")
    return calibration_error(scores, targets, task="multiclass", num_classes=probs.shape[1])


def _probmetrics(probs: np.ndarray, labels: np.ndarray) -> float:
    import torch
    from probmetrics.metrics import Metrics

    two = np.stack([1 - probs, probs], axis=1) if probs.ndim == 1 else probs
    metrics = Metrics.from_names(["ece-15"])
    values = metrics.compute_all_from_labels_probs(torch.tensor(labels), torch.tensor(two))
    return values["ece-15"]


def record_hle(file: str) -> None:
    """Add the values of ``calib_err`` to what is recorded: of confidence and hit, where the order of tied rows does not decide them."""
    error = runpy.run_path(file)["calib_err"]
    record = json.loads(RECORDED.read_text(encoding="utf-8"))
    record["versions"]["Humanity's Last Exam"] = "e6ede98"
    for name, values in record["values"].items():
        case, dtype = name.rsplit(", ", 1)
        probs, labels = cases()[case]
        probs = probs.astype(dtype)
        top = probs.ndim > 1
        score = (probs.max(axis=1) if top else probs).astype(np.float64)
        hit = probs.argmax(axis=1) == labels if top else labels == 1
        try:
            found = [float(error(score[rows], hit[rows])) for rows in _orders(score.size)]
        except IndexError as refused:
            values["hle"] = str(refused)
            continue
        if np.ptp(found) < 1e-12:
            values["hle"] = found[0]
    RECORDED.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _orders(n: int) -> list[np.ndarray]:
    random = np.random.RandomState(7)
    return [np.arange(n), *(random.permutation(n) for _ in range(20))]


def main() -> None:
    """Record all cases, in single and in double precision."""
    if sys.argv[1:2] == ["hle"]:
        record_hle(sys.argv[2])
        return
    values = {
        f"{name}, {dtype}": recorded(probs.astype(dtype), labels)
        for name, (probs, labels) in cases().items()
        for dtype in ("float64", "float32")
    }
    record = {"versions": {name: version(name) for name in LIBRARIES}, "values": values}
    RECORDED.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(record, indent=1))


if __name__ == "__main__":
    main()
