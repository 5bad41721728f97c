"""Structured scaling on predictions of real networks, where they lie beside the checkout: values computed apart from this project."""

from pathlib import Path

import numpy as np
import pytest

from calviz.core.entry_specs import RECALIBRATORS

from .peer_inputs import losses

DATA = Path(__file__).resolve().parents[2].parent / "shared" / "data" / "netcal_cifar"


def halves(name):
    """The first half fits, the second one judges."""
    with np.load(DATA / f"{name}.npz") as file:
        y, p = file["ground_truth"].squeeze().astype(int), file["predictions"]
    half = y.size // 2
    return p[:half], y[:half], p[half:], y[half:]


@pytest.mark.skipif(not DATA.exists(), reason="only of the data beside the checkout")
@pytest.mark.parametrize(
    ("name", "key", "nll", "brier"),
    [
        ("wideresnet-16-4-cifar-10", "sms", 0.231115, 0.113032),
        ("wideresnet-16-4-cifar-10", "svs", 0.238224, 0.115771),
        ("lenet-5-cifar-10", "sms", 1.310992, 0.601877),
        ("lenet-5-cifar-10", "svs", 1.319809, 0.604010),
        ("wideresnet-16-4-cifar-100", "sms", 0.920977, 0.338466),
        ("wideresnet-16-4-cifar-100", "svs", 0.928103, 0.340946),
        ("densenet-bc-100-cifar-100", "sms", 0.858642, 0.336812),
        ("densenet-bc-100-cifar-100", "svs", 0.859120, 0.336634),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_losses_on_the_other_half(name, key, nll, brier, dtype):
    p, y, q, t = halves(name)
    fitted = RECALIBRATORS[key].make().fit(p.astype(dtype), y)
    result = losses(fitted.transform(q.astype(np.float64)), t)
    np.testing.assert_allclose(result, (nll, brier), rtol=0, atol=6e-7)
    if name == "wideresnet-16-4-cifar-10":
        assert 1 / fitted.temperature_ == pytest.approx(0.485620, abs=6e-7)
