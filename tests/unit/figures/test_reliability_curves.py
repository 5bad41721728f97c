"""The bin-free curves of the reliability diagram are those behind the bin-free metrics."""

import numpy as np
import pytest

import calviz
from calviz.core.errors import OptionError
from calviz.figures.curve_estimates import kernel_curve
from calviz.figures.reliability import Reliability
from calviz.sample.sample import Sample
from calviz.sample.step_views import steps

BOTH = ("kernel", "isotonic")


def binary(n, seed=0, power=1.0):
    rng = np.random.default_rng(seed)
    score = rng.beta(2, 2, n)
    return calviz.Predictions(probs=score, labels=rng.random(n) < score**power, name="binary")


@pytest.mark.slow
@pytest.mark.parametrize("n", [200, 5_000])
def test_the_kernel_curve_is_that_of_kde_ece(n):
    p = binary(n, power=1.5)
    x, y = kernel_curve(Sample(p, "positive").view(steps))
    value = calviz.evaluate(p, ["kde_ece"], reduction="positive")["kde_ece"]
    width = value.params["bandwidth"]
    # The density by direct summation over rows and mirror images, on a coarse grid.
    score = p.probs[:, 1]
    grid = np.linspace(0, 1, 201)
    density = np.zeros(grid.size)
    hits = np.zeros(grid.size)
    for image in (score, -score, 2 - score):
        u = (grid[:, None] - image) / width
        kernel = np.where(np.abs(u) < 1, 35 / 32 * (1 - u**2) ** 3, 0) / width
        density += kernel.sum(axis=1)
        hits += (kernel * p.labels).sum(axis=1)
    some = (density > 1e-3 * n) & (grid >= score.min()) & (grid <= score.max())
    np.testing.assert_allclose(np.interp(grid, x, y)[some], hits[some] / density[some], atol=2e-3)
    area = np.trapezoid(np.abs(grid * density - hits), grid) / n
    assert area == pytest.approx(value.value, rel=0.02)


def test_the_isotonic_curve_against_scikit_learn():
    from sklearn.isotonic import IsotonicRegression

    p = binary(400, seed=2)
    frame = Reliability.compute(p, reduction="positive", curves=("isotonic",)).curves_frame()
    score = p.probs[:, 1]
    fitted = IsotonicRegression().fit(score, p.labels)
    np.testing.assert_allclose(frame["probability"], fitted.predict(frame["score"]), atol=1e-9)
    # Mean recalibrated score is the base rate (a property of isotonic regression).
    at = np.interp(score, frame["score"], frame["probability"])
    assert at.mean() == pytest.approx(p.labels.mean(), abs=1e-9)


def test_what_is_drawn_is_the_frame():
    figure = Reliability.compute(binary(500), reduction="positive", curves=BOTH)
    frame, picture = figure.curves_frame(), figure.plot(caption=True)
    for kind, name in zip(BOTH, ("Kernel-smoothed", "Isotonic (CORP)"), strict=True):
        *_, trace = [t for t in picture.data if t.name == name]
        part = frame[frame["curve"] == kind]
        few = part["rows"] < 20
        np.testing.assert_allclose(trace.x, part["score"], rtol=1e-6)
        expected = part["probability"].where(~few)
        np.testing.assert_allclose(trace.y, expected, rtol=1e-6)
    plain = Reliability.compute(binary(500), reduction="positive")
    assert len(plain.curves_frame()) == 0
    assert len(plain.plot().data) == len(
        [t for t in picture.data if t.name not in ("Kernel-smoothed", "Isotonic (CORP)")]
    )


@pytest.mark.parametrize("score", [[0.4], [0.7] * 9, [0.0, 1.0] * 5, [0.0] * 4])
def test_edge_cases(score):
    p = calviz.Predictions(probs=np.array(score), labels=np.arange(len(score)) % 2)
    figure = Reliability.compute(p, reduction="positive", curves=BOTH)
    frame = figure.curves_frame()
    assert set(frame["curve"]) == set(BOTH)
    assert frame["probability"].between(0, 1).all()
    figure.plot(theme="dark", caption=True, width=350)


def test_unknown_curves_are_refused():
    with pytest.raises(OptionError, match="curves"):
        Reliability.compute(binary(10), curves=("spline",))


def test_a_million_rows_are_light():
    p = binary(1_000_000)
    size = [
        len(Reliability.compute(p, reduction="positive", curves=c).plot().to_json())
        for c in ((), BOTH)
    ]
    assert size[1] - size[0] < 30_000
