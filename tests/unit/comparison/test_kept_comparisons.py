"""A comparison read from its folder is the one that was written."""

import re

import numpy as np
import pandas as pd
import pytest

import calviz
from calviz.comparison import kept_comparisons
from calviz.comparison.kept_comparisons import KeptComparisons
from calviz.core.entry_specs import RECALIBRATORS

KEY = ("file", "plan")


def _rows(n, classes, seed=0):
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, classes))
    true = np.exp(logits / 2)
    true /= true.sum(1, keepdims=True)
    labels = (true.cumsum(1) > rng.random((n, 1))).argmax(1)
    return calviz.Predictions.from_arrays(labels, logits, kind="logits")


def _confidences(n):
    rng = np.random.default_rng(1)
    confidence = rng.uniform(0.2, 0.99, n)
    return calviz.ConfidencePredictions(
        confidence=confidence, correct=rng.random(n) < confidence**2
    )


def _text(results):
    # nan is not equal to itself, and NumPy's numbers are written with their type.
    return re.sub(r"np\.float64\(([^)]*)\)", r"\1", repr(results))


def _same(one, other):
    for method in one:
        again = other[method.key]
        assert again.reason == method.reason
        assert _text(again.metrics) == _text(method.metrics)
        assert _text(again.differences) == _text(method.differences)
        assert _text(again.params) == _text(method.params)
        assert (again.recalibrator is None) == (method.recalibrator is None)


@pytest.mark.parametrize("folds", [None, 3])
@pytest.mark.parametrize(
    "data", [_rows(300, 3), _rows(300, 2), _confidences(300)], ids=["3", "2", "conf"]
)
def test_it_is_the_same_comparison(tmp_path, data, folds):
    methods = ["temperature", "isotonic", "venn-abers", "beta"]
    how = {"cross_fit": folds} if folds else {"fit_fraction": 0.5}
    made = calviz.compare(data, methods=methods, resamples=60, **how)
    kept = KeptComparisons(tmp_path / "folder")
    assert KEY not in kept
    kept.keep(KEY, made)
    assert KEY in kept
    judged = data if folds else made["identity"].calibrated
    again = kept.get(KEY, judged)
    _same(made, again)
    assert repr(again) == repr(made)
    pd.testing.assert_frame_equal(again.frame(), made.frame())
    assert again.advice == made.advice
    assert again.tied == made.tied
    for method in made:
        if folds and method.calibrated is not None:
            after, before = again[method.key].calibrated, method.calibrated
            name = "probs" if hasattr(before, "probs") else "confidence"
            np.testing.assert_array_equal(getattr(after, name), getattr(before, name))
            assert after.numbers.keys() == before.numbers.keys()
        elif method.recalibrator is not None:
            scores = np.array([[0.2, 0.8], [0.5, 0.5]])
            if getattr(judged, "n_classes", 2) == 3:
                scores = np.array([[0.2, 0.5, 0.3], [0.1, 0.1, 0.8]])
            np.testing.assert_array_equal(
                again[method.key].recalibrator.transform(scores),
                method.recalibrator.transform(scores),
            )


def test_every_method_comes_back(tmp_path):
    data = _rows(200, 3)
    made = calviz.compare(data, methods="all", fit_fraction=0.5, resamples=20)
    assert len(made) > len(RECALIBRATORS) / 2
    kept = KeptComparisons(tmp_path)
    kept.keep(KEY, made)
    _same(made, kept.get(KEY, made["identity"].calibrated))


def test_another_key_version_or_a_damaged_file_is_as_good_as_none(tmp_path, monkeypatch):
    data = _rows(100, 3)
    kept = KeptComparisons(tmp_path)
    kept.keep(KEY, calviz.compare(data, methods=["temperature"], fit_fraction=0.5, resamples=20))
    assert kept.get(("file", "other"), data) is None
    [file] = tmp_path.glob("*.npz")
    whole = file.read_bytes()
    for damaged in (
        b"",
        whole[:200],
        whole[:-50],
        whole.replace(b"MetricResult", b"OtherResults"),
        b"PK\x03\x04",
    ):
        file.write_bytes(damaged)
        assert kept.get(KEY, data) is None
    file.write_bytes(whole)
    assert kept.get(KEY, data) is not None
    monkeypatch.setattr(kept_comparisons, "__version__", "0")
    assert kept.get(KEY, data) is None


def test_the_oldest_make_room_and_a_folder_that_cannot_be_written_is_no_error(tmp_path):
    made = calviz.compare(_rows(100, 3), methods=["temperature"], fit_fraction=0.5, resamples=20)
    KeptComparisons(tmp_path).keep(("0",), made)
    size = sum(f.stat().st_size for f in tmp_path.iterdir())
    kept = KeptComparisons(tmp_path, limit=int(2.5 * size))
    for k in "123":
        kept.keep((k,), made)
    assert [(k,) in kept for k in "0123"] == [False, False, True, True]
    blocked = tmp_path / "file"
    blocked.write_text("")
    KeptComparisons(blocked / "folder").keep(KEY, made)
