"""Kernels on a grid against sums over all points, and their characteristic functions."""

import numpy as np
import pytest
from scipy.integrate import quad

from calviz.core.events import BinaryEvents
from calviz.sample.step_views import (
    gaussian_response,
    grid_size,
    integrate,
    smooth,
    spread,
    triweight_response,
)
from calviz.sample.steps import make_steps


def steps(score):
    score = np.asarray(score, dtype=float)
    return make_steps(BinaryEvents(score, np.zeros(score.size, dtype=bool)))


@pytest.mark.parametrize("size", [2, 17, 1025])
def test_spreading_keeps_mass_and_first_moment(size):
    rng = np.random.default_rng(0)
    view = steps(np.concatenate([rng.random(500), [0, 0, 1, 1, 0.5, 1 / 16]]))
    mass = np.stack([view.count, rng.normal(size=view.score.size)])
    out = spread(view, mass, size)
    nodes = np.linspace(0, 1, size)
    np.testing.assert_allclose(out.sum(axis=1), mass.sum(axis=1))
    np.testing.assert_allclose(out @ nodes, mass @ view.score)


def test_spreading_by_hand():
    out = spread(steps([0.0, 0.1, 0.5, 0.9, 1.0]), np.ones(5), 3)
    np.testing.assert_allclose(out, [1 + 0.8, 0.2 + 1 + 0.2, 0.8 + 1])


@pytest.mark.parametrize("width", [0.05, 0.3, 1.7])
def test_triweight_response_is_the_integral(width):
    def transform(w):
        return quad(lambda u: 35 / 32 * (1 - u**2) ** 3 * np.cos(w * u), -1, 1)[0]

    response = triweight_response(width, 40)
    expected = [transform(np.pi * k * width) for k in range(40)]
    np.testing.assert_allclose(response, expected, atol=1e-9)
    # Continuous where the series takes over.
    near = triweight_response(0.01 / np.pi * 1.0001, 2)[1]
    assert near == pytest.approx(triweight_response(0.01 / np.pi * 0.9999, 2)[1], abs=1e-8)


@pytest.mark.parametrize("at", [0.0, 0.25, 1.0])
def test_smoothing_keeps_all_mass_inside(at):
    mass = spread(steps([at]), np.ones(1), 513)
    density = smooth(mass, gaussian_response(0.1, 513))
    assert integrate(density) == pytest.approx(1)
    t = np.linspace(0, 1, 513)
    images = [at + 2 * m for m in (-1, 0, 1)] + [-at + 2 * m for m in (-1, 0, 1)]
    plain = sum(np.exp(-(((t - x) / 0.1) ** 2) / 2) for x in images) / (0.1 * np.sqrt(2 * np.pi))
    np.testing.assert_allclose(density, plain, atol=1e-6)


def test_grid_size_spans_the_kernel():
    for width in (1e-9, 1e-3, 0.02, 0.5):
        size = grid_size(width, nodes=8)
        assert 1025 <= size <= (1 << 16) + 1000
        assert width < 2e-4 or width * (size - 1) >= 8
