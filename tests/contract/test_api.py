"""The library: what a script or a notebook may rely on."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import calviz
from calviz.core.errors import InputError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def p() -> calviz.Predictions:
    probs = np.random.default_rng(0).dirichlet([1, 1, 1], size=60)
    return calviz.Predictions(probs=probs, labels=np.arange(60) % 3, name="three")


def test_every_public_name_is_there():
    for name in calviz.__all__:
        assert getattr(calviz, name) is not None
    assert set(calviz.__all__) <= set(dir(calviz))
    with pytest.raises(AttributeError, match="module 'calviz' has no attribute 'nonsense'"):
        _ = calviz.nonsense


def test_measuring(p):
    e = calviz.evaluate(p, metrics=["ece", "mcs"], reduction="class:1", bins=15, ci=True)
    assert 0 < e["ece"].value < 1
    assert e["ece"].interval.low < e["ece"].interval.high
    assert e["ece"].noise_floor.p_value <= 1
    assert e.frame().index.tolist() == ["ece", "mcs"]
    assert len(calviz.evaluate(p)) > 5
    assert calviz.verdict(p).sentence


def test_reading(p, tmp_path):
    np.savez(tmp_path / "three.npz", probs=p.probs, labels=p.labels)
    q = calviz.load(tmp_path / "three.npz", kind="probabilities", class_names=["a", "b", "c"])
    assert q.class_names == ("a", "b", "c")
    np.testing.assert_array_equal(q.probs, p.probs)


def test_a_saved_map(p, tmp_path):
    record = calviz.recalibrators.TemperatureScaling().fit(p.probs, p.labels)
    path = tmp_path / "map.json"
    path.write_text(json.dumps(record.to_dict()))
    for source in (path, str(path), record.to_dict()):
        loaded = calviz.load_map(source)
        np.testing.assert_array_equal(loaded.transform(p.probs), record.transform(p.probs))
    for text in ("{", "{}", "[1]"):
        path.write_text(text)
        with pytest.raises(InputError, match=r"^map\.json: this is not"):
            calviz.load_map(path)
    with pytest.raises(InputError, match=r"^this is not the map of a recalibrator"):
        calviz.load_map(None)
    for place, what in (("none.json", "there is no such file"), (".", "cannot be opened")):
        with pytest.raises(InputError, match=what):
            calviz.load_map(tmp_path / place)


def test_drawing(p):
    figure = calviz.figures.Reliability.compute(p, bins=15)
    assert len(figure.frame()) > 0
    assert figure.plot().to_plotly_json()["data"]


@pytest.mark.slow
def test_the_names_come_with_a_plain_import():
    code = (
        "import calviz; print(calviz.load.__name__, calviz.figures.Reliability.__name__,"
        " calviz.verdict.__name__)"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == ["load", "Reliability", "verdict"]
