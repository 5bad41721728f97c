"""What is computed some steps at a time is what all steps at once give."""

import numpy as np
import pytest

from calviz.core.entry_specs import METRICS
from calviz.core.events import BinaryEvents
from calviz.metrics import binned as debiased
from calviz.metrics.binned import MonotoneBins, sweep_steps
from calviz.metrics.smooth import KernelSteps
from calviz.sample import steps as steps_module
from calviz.sample.step_views import steps, top_label_steps
from calviz.sample.steps import Steps, make_steps

KEYS = [m.key for m in METRICS if m.view in (steps, top_label_steps)]


def events(n=20_000, *, seed=0, dtype=np.float32, power=1.0, ties=0.0):
    rng = np.random.default_rng(seed)
    score = rng.random(n).astype(dtype)
    score[rng.random(n) < ties] = 1
    return BinaryEvents(score, rng.random(n) < score**power)


@pytest.fixture(params=[64, 1_000, 5_000])
def block(request, monkeypatch):
    monkeypatch.setattr(steps_module, "STEP_BLOCK", request.param)


@pytest.mark.parametrize("ties", [0.0, 0.4])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_steps_count_rows_and_hits_per_distinct_score(block, dtype, ties):
    e = events(dtype=dtype, ties=ties)
    view = make_steps(e)
    score, inverse = np.unique(e.score, return_inverse=True)
    np.testing.assert_array_equal(view.score, score)
    np.testing.assert_array_equal(view.count, np.bincount(inverse))
    np.testing.assert_array_equal(view.hits, np.bincount(inverse, e.hit))
    assert view.size == score.size
    assert float(view.n) == e.n
    assert float(view.n_hits) == e.hit.sum()


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("ties", [0.0, 0.4])
def test_blocks_of_steps_give_the_value_of_all(monkeypatch, key, ties):
    metric = METRICS[key]
    parted = make_steps(events(power=1.3, ties=ties))
    whole = Steps(parted.score, parted.count, parted.hits)
    monkeypatch.setattr(steps_module, "STEP_BLOCK", 700)
    assert len(list(parted.blocks())) > 1
    value = float(metric.value(whole))
    assert float(metric.value(parted)) == pytest.approx(value, rel=1e-9, abs=1e-12)
    if metric.details:
        assert dict(metric.details(parted)) == pytest.approx(dict(metric.details(whole)))


def test_kernels_of_blocks_are_those_of_all(monkeypatch):
    parted = make_steps(events())
    whole = Steps(parted.score, parted.count, parted.hits)
    monkeypatch.setattr(steps_module, "STEP_BLOCK", 700)
    for key in ("kde_ece", "kde_ece_l2"):
        value = [
            float(METRICS[key].value(KernelSteps(v, width=0.05, nodes=1_025)))
            for v in (parted, whole)
        ]
        assert value[0] == pytest.approx(value[1], rel=1e-9)


@pytest.mark.parametrize("ties", [0.0, 0.4])
@pytest.mark.parametrize("power", [1.0, 0.3, 3.0])
@pytest.mark.parametrize("n", [3_000, 40_000])
def test_the_sweep_of_many_steps_is_the_sweep_of_all(n, power, ties):
    view = make_steps(events(n, power=power, ties=ties, dtype=np.float64))
    assert view.size > steps_module.MAX_STEPS or ties
    bins, error = sweep_steps(view, view.count, view.hits)
    result = debiased._sweep_of_many(view)
    assert int(result[0]) == int(bins)
    assert float(result[1]) == pytest.approx(float(error), rel=1e-9)


def test_the_sweep_goes_on_to_the_steps_where_they_rise():
    score = np.linspace(0, 1, 5_001)[1:]
    view = make_steps(BinaryEvents(score, score > 0.5))
    bins, error = sweep_steps(view, view.count, view.hits)
    assert int(bins) == 5_000
    plain = np.abs(score - (score > 0.5)).mean()
    assert float(error) == pytest.approx(plain, rel=1e-12)
    result = METRICS["ece_sweep"].value(MonotoneBins(view, base=view))
    assert float(result) == pytest.approx(plain, rel=1e-12)
