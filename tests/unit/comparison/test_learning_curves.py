"""Learning curves: what methods reach with so many rows to fit on."""

import numpy as np
import pytest

import calviz
from calviz.comparison.compare import compare
from calviz.comparison.comparison_results import Difference
from calviz.comparison.learning_curves import _points, learning_curve
from calviz.core.errors import OptionError
from calviz.core.predictions import Predictions
from calviz.sample.error_bars import Interval
from calviz.sample.metric_results import MetricResult
from tests.inputs.simulated import simulate, softmax

pytestmark = pytest.mark.usefixtures("few_candidates")


def test_learning_curve(data):
    seen = []
    curve = learning_curve(
        data,
        ["temperature", "isotonic"],
        sizes=[50, 400],
        repeats=3,
        metrics=["nll", "accuracy"],
        progress=lambda i, n: seen.append((i, n)),
    )
    frame = curve.frame()
    assert len(frame) == 3 * 2 * 2
    assert seen[-1] == (12, 12)  # of all rows there is one draw
    assert frame[frame["rows"] == 400]["repeats"].tolist() == [1] * 6
    nll = frame[frame["metric"] == "nll"].set_index(["method", "rows"])["mean"]
    # One parameter learns from few rows, four step functions need many.
    assert nll["temperature", 50] < nll["isotonic", 50]
    assert nll["isotonic", 400] < nll["isotonic", 50]
    (few,) = (p for p in curve.of("temperature", "nll") if p.rows == 50)
    assert few.low < few.mean < few.high  # every draw is another one
    at_all = frame[(frame["rows"] == 400) & (frame["method"] == "temperature")]
    np.testing.assert_allclose(at_all["low"], at_all["high"])
    assert (curve.fit.split, curve.evaluation.split) == ("calibration", "test")
    wanted = calviz.evaluate(data, ["nll", "accuracy"], split="test")
    for metric in ("nll", "accuracy"):
        before = curve.uncalibrated[metric]
        assert before.value == wanted[metric].value
        assert before.interval.low < before.value < before.interval.high
        assert {p.mean for p in curve.of("identity", metric)} == {before.value}
    assert curve.uncalibrated["nll"].noise_floor is not None
    # With all rows the fit is that of a comparison on the same splits.
    alone = compare(data, ["temperature"], metrics=["nll"])["temperature"].metrics["nll"].value
    assert nll["temperature", 400] == pytest.approx(alone)


@pytest.mark.parametrize(
    ("metric", "before", "gain"),
    [("nll", 0.7, 0.2), ("accuracy", 0.4, 0.1), ("mcs", -0.6, 0.1), ("auroc", 0.5, 0.0)],
)
def test_a_band_holds_the_middle_90_percent_of_the_draws(metric, before, gain):
    key = "ets", 50, metric
    end = Interval(-0.3, -0.1) if metric == "nll" else Interval(0.1 - 0.2, 0.1 + 0.2)
    difference = Difference(-0.2 if metric == "nll" else 0.1, end, "better")
    (point,) = _points(
        {key: [i / 100 for i in range(101)]},
        {key: difference},
        {metric: MetricResult(metric, before)},
    )
    assert (point.mean, point.low, point.high) == pytest.approx((0.5, 0.05, 0.95))
    assert point.repeats == 101
    assert point.verdict == "better"
    assert point.gain == pytest.approx(gain)
    assert point.spread == pytest.approx(np.std(np.arange(101) / 100, ddof=1))
    # Half of a 95 % interval is 1.96 standard errors.
    assert point.noise == pytest.approx({"nll": 0.1}.get(metric, 0.2) / 1.96, rel=1e-3)


def test_a_learning_curve_keeps_what_is_finished(data):
    seen = []
    curve = learning_curve(
        data,
        ["temperature"],
        sizes=[50, 100],
        repeats=2,
        progress=lambda *message: seen.append(message),
        stop=lambda: len(seen) == 4,
    )
    assert {(p.method, p.rows, p.repeats) for p in curve.points} == {
        ("identity", 50, 2),
        ("temperature", 50, 2),
    }


def test_a_learning_curve_survives_what_cannot_be_fitted():
    z, y = simulate(400, 3, 2.0)
    y[:] = 0
    y[300:] = np.arange(100) % 3
    data = Predictions(
        probs=softmax(z), labels=y, splits=np.repeat(["calibration", "test"], [300, 100])
    )
    curve = learning_curve(data, ["temperature"], sizes=[20], repeats=2, metrics=["nll"])
    assert "nothing to fit" in curve.failures["temperature"]
    assert {p.method for p in curve.points} == {"identity"}
    with pytest.raises(OptionError, match="'sizes' must be"):
        learning_curve(data, ["temperature"], sizes=[5])
