"""Numbers at the ends of their range: right, or refused in one sentence; large n and K in bounded memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import calviz
from calviz.core.entry_specs import METRICS, RECALIBRATORS
from calviz.core.errors import InputError, NotAvailable
from calviz.core.predictions import Predictions
from calviz.sample import draws as affordable_resamples
from calviz.sample.draws import ROOM, affordable
from calviz.sample.sample import Sample
from calviz.sample.true_classes import true_class_errors
from tests.inputs.oracle import plain_metrics

pytestmark = pytest.mark.usefixtures("few_candidates")

ROOT = Path(__file__).resolve().parents[2]
N = 300
RNG = np.random.default_rng(8)
LABELS = RNG.integers(3, size=N)
Z = RNG.normal(size=(N, 3)) + np.eye(3)[LABELS]


def softmax(z: np.ndarray) -> np.ndarray:
    """In long double, so that it can be the judge of double."""
    z = z.astype(np.longdouble)
    odds = np.exp(z - z.max(axis=1, keepdims=True))
    return odds / odds.sum(axis=1, keepdims=True)


def one_hot(rest: float, dtype: str, shift: int = 0) -> np.ndarray:
    probs = np.full((N, 3), rest, dtype=dtype)
    probs[np.arange(N), (LABELS + shift) % 3] = 1
    return probs


EXTREMES: dict[str, Predictions] = {
    **{f"logits of 1e4, {t}": Predictions(logits=(4e3 * Z).astype(t), labels=LABELS) for t in ("f2", "f4", "f8")},
    **{f"logits, {t}": Predictions(logits=Z.astype(t), labels=LABELS) for t in ("f2", "f4", "f8")},
    **{f"probabilities, {t}": Predictions(probs=softmax(Z).astype(t), labels=LABELS) for t in ("f2", "f4", "f8")},
    "logits of 3e38, f4": Predictions(logits=np.float32(3e38) * np.sign(Z).astype("f4"), labels=LABELS),
    "logits of 1.7e308": Predictions(logits=1.7e308 * np.sign(Z), labels=LABELS),
    "1e-320, right": Predictions(probs=one_hot(1e-320, "f8"), labels=LABELS),
    "1e-320, wrong": Predictions(probs=one_hot(1e-320, "f8", 1), labels=LABELS),
    "1e-45, wrong": Predictions(probs=one_hot(1e-45, "f4", 1), labels=LABELS),
    "exact zeros": Predictions(probs=one_hot(0, "f8", 1), labels=LABELS),
    "a last digit outside": Predictions(probs=one_hot(-1e-7, "f8"), labels=LABELS),
    "all equal": Predictions(probs=np.full((N, 3), 1 / 3), labels=LABELS),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("key", EXTREMES)
def test_every_metric_is_finite_or_says_why(key: str) -> None:
    for reduction in ("top-label", "class:0"):
        evaluation = calviz.evaluate(EXTREMES[key], reduction=reduction, ci=True, resamples=5)
        for result in evaluation:
            assert np.isfinite(result.value) or result.reason, result.key
        assert set(evaluation.metrics) == set(METRICS.keys())


@pytest.mark.parametrize("key", EXTREMES)
def test_values_are_those_of_plain_numpy(key: str) -> None:
    data = EXTREMES[key]
    evaluation = calviz.evaluate(data, ["accuracy", "brier", "ece", "nll"], bins=15, findings=False)
    probs = np.clip(data.probs.astype(np.float64), 0, None)
    with np.errstate(divide="ignore"):
        expected = plain_metrics(probs, data.labels)
    if key not in ("all equal", "a last digit outside"):  # ties and edges are another question
        assert evaluation["ece"].value == pytest.approx(expected["ece15"], abs=2e-6)
    assert evaluation["accuracy"].value == expected["accuracy"]
    assert evaluation["brier"].value == pytest.approx(expected["brier"], abs=2e-6)
    if data.kind == "logits":
        # Of logits the loss is exact, also where their softmax is 0.
        z = data.logits.astype(np.longdouble)
        z -= z.max(axis=1, keepdims=True)
        exact = np.log(np.exp(z).sum(axis=1)) - z[np.arange(N), LABELS]
        assert evaluation["nll"].details["clipped_rows"] == 0
        exact = np.minimum(exact, 1e100)  # beyond every loss that means anything
        assert evaluation["nll"].value == pytest.approx(float(exact.mean()), rel=1e-5, abs=1e-6)
    else:
        of_true, eps = probs[np.arange(N), LABELS], np.finfo(np.float64).eps
        clipped = -np.log(np.maximum(of_true, eps)).mean()
        assert evaluation["nll"].value == pytest.approx(clipped, rel=1e-5, abs=1e-6)
        assert evaluation["nll"].details["clipped_rows"] == np.count_nonzero(of_true < eps)


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
@pytest.mark.parametrize("size", [1.0, 4e3])
def test_softmax_against_long_double(dtype: str, size: float) -> None:
    logits = (size * Z).astype(dtype)
    probs = Predictions(logits=logits, labels=LABELS).probs
    assert probs.dtype == (np.float64 if dtype == "f8" else np.float32)
    np.testing.assert_allclose(probs, softmax(logits).astype(float), atol=2e-7 if dtype != "f8" else 1e-15)  # fmt: skip


@pytest.mark.parametrize("key", ["logits of 1e4, f4", "logits, f2", "1e-320, wrong", "exact zeros"])
@pytest.mark.parametrize("method", RECALIBRATORS.keys())
def test_maps_give_distributions(method: str, key: str) -> None:
    data = EXTREMES[key]
    declared = "logits" if data.logits is not None else "probabilities"
    array = data.logits if data.logits is not None else data.probs
    out = RECALIBRATORS[method].make(input=declared).fit(array, LABELS).transform(array)
    assert np.isfinite(out).all()
    assert out.min() >= 0
    assert np.abs(out.sum(axis=1, dtype=float) - 1).max() < 1e-5


def test_logits_that_mark_left_out_classes_are_refused_by_maps_with_a_remedy() -> None:
    logits = Z.astype("f4")
    logits[4, 1] = np.finfo("f4").min
    with pytest.raises(InputError, match=r"row 5.*class 1 is -3.4e\+38.*write -1e4"):
        RECALIBRATORS["temperature"].make(input="logits").fit(logits, LABELS)


@pytest.mark.slow
def test_twenty_thousand_classes() -> None:
    k, n = 20_000, 40
    probs = RNG.dirichlet(np.full(k, 0.01), size=n)
    labels = RNG.integers(k, size=n)
    labels[::2] = probs[::2].argmax(axis=1)
    data = Predictions(probs=probs, labels=labels)
    evaluation = calviz.evaluate(data, ["accuracy", "brier", "ece"], findings=False)
    expected = plain_metrics(probs, labels)
    assert evaluation["accuracy"].value == expected["accuracy"]
    assert evaluation["brier"].value == pytest.approx(expected["brier"], rel=1e-9)
    assert evaluation["ece"].value == pytest.approx(expected["ece15"], abs=1e-12)
    out = RECALIBRATORS["temperature"].make().fit(probs, labels).transform(probs)
    assert np.abs(out.sum(axis=1) - 1).max() < 1e-9


def test_resamples_of_many_classes_take_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    k = 20_000
    assert affordable(1_000, 1.0, size=2 * 3 * 8 * k) == ROOM // (48 * k) < 300
    assert affordable(1_000, 1.0, size=2 * 3 * 8 * 1_000) == 1_000
    with pytest.raises(NotAvailable):
        affordable(1_000, 1.0, size=ROOM // 99)
    source = true_class_errors(Sample(EXTREMES["logits, f8"])).source
    weights = RNG.integers(3, size=(N, 7)).astype(float)
    whole = source.weighted_errors(weights)
    monkeypatch.setattr(affordable_resamples, "PART_ENTRIES", 2 * 3 * source.bins)
    for one, other in zip(whole, source.weighted_errors(weights), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


#: Reads a file and evaluates it, and says how much the process grew.
LARGE = """
import json, pathlib, sys
import calviz
from calviz.data import read

def memory(key):
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))

read(b"y,prob\\n0,0.5\\n1,0.5\\n", name="warm.csv")
pathlib.Path("/proc/self/clear_refs").write_text("5")
before = memory("VmRSS")
data = read(sys.argv[1]).first
read_peak = memory("VmHWM") - before
found = calviz.evaluate(data, ["accuracy", "brier", "nll", "ece"], reduction="positive", findings=False)
print(json.dumps([data.n, read_peak, memory("VmHWM") - before, {r.key: r.value for r in found}]))
"""


@pytest.mark.slow
def test_five_million_rows(tmp_path: Path) -> None:
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("the largest size of a process can be set back on Linux only")
    n = 5_000_000
    rng = np.random.default_rng(0)
    score = rng.integers(1, 1_000, size=n)
    label = (rng.integers(1_000, size=n) < score).astype(np.int8)
    path = tmp_path / "large.csv"
    lines = [f"{y},0.{value:03d}\n" for y in (0, 1) for value in range(1_000)]
    path.write_text(
        "y,prob\n" + "".join(lines[j] for j in (1_000 * label.astype(int) + score).tolist())
    )
    done = subprocess.run(
        [sys.executable, "-c", LARGE, str(path)], env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    rows, read_peak, peak, values = json.loads(done.stdout)
    assert rows == n
    assert read_peak < 500 << 20
    assert peak < 900 << 20
    p = score / 1_000
    assert values["nll"] == pytest.approx(-np.log(np.where(label == 1, p, 1 - p)).mean(), rel=1e-5)
    assert values["brier"] == pytest.approx(2 * ((p - label) ** 2).mean(), rel=1e-5)
