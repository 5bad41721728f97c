"""Whatever the predictions: a map gives distributions or says why there is none, whatever the order of rows and classes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calviz.core.entry_specs import RECALIBRATORS
from calviz.core.errors import CalvizError
from tests.inputs.simulated import draw_labels
from tests.property.example_counts import examples

pytestmark = pytest.mark.usefixtures("few_candidates")

KEYS = RECALIBRATORS.keys()
#: They divide the rows by their place, to choose a strength or to bin on rows that they were not fitted on.
ORDERED = {"matrix-odir", "dirichlet-odir", "scaling-binning", "gp", "cwmcs-ts"}


@st.composite
def samples(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities with ties, exact zeros, or none; any labels."""
    n, k = draw(st.integers(2, 60)), draw(st.integers(2, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.sampled_from(["smooth", "counts", "one-hot", "uniform", "tiny"]))
    if shape == "smooth":
        probs = rng.dirichlet(np.full(k, 0.7), size=n)
    elif shape == "counts":
        probs = rng.multinomial(4, np.full(k, 1 / k), size=n) / 4
    elif shape == "uniform":
        probs = np.full((n, k), 1 / k)
    else:
        probs = np.full((n, k), 1e-320 if shape == "tiny" else 0.0)
        probs[np.arange(n), rng.integers(k, size=n)] = 1
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    return probs.astype(dtype), rng.integers(k, size=n)


@pytest.mark.parametrize("key", KEYS)
@examples(5)
@given(sample=samples())
def test_distributions_or_a_reason(key: str, sample: tuple[np.ndarray, np.ndarray]) -> None:
    probs, labels = sample
    try:
        out = RECALIBRATORS[key].make().fit(probs, labels).transform(probs)
    except CalvizError:
        return
    assert out.dtype == probs.dtype
    assert np.isfinite(out).all()
    assert out.min() >= 0
    assert np.abs(out.sum(axis=1, dtype=float) - 1).max() < 1e-5


def sharper(rng: np.random.Generator, n: int, power: float) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities of three classes, and labels drawn from their powers."""
    probs = rng.dirichlet(np.ones(3), size=n)
    true = probs**power / (probs**power).sum(axis=1, keepdims=True)
    return probs, draw_labels(true, rng)


@pytest.mark.parametrize("key", [key for key in KEYS if key not in ORDERED])
@examples(3)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_order_of_rows_does_not_matter(key: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    probs, labels = sharper(rng, 120, 0.7)
    order = rng.permutation(len(labels))
    one = RECALIBRATORS[key].make().fit(probs, labels).transform(probs)
    other = RECALIBRATORS[key].make().fit(probs[order], labels[order]).transform(probs)
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


#: One parameter, or the same for every class: their maps know no order of the classes.
SYMMETRIC = ["identity", "temperature", "temperature-mse", "vector", "matrix", "dirichlet", "platt", "beta", "isotonic", "irm", "ets", "histogram", "bbq", "svs", "sms"]  # fmt: skip


@pytest.mark.parametrize("key", SYMMETRIC)
@examples(3)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_order_of_the_classes_does_not_matter(key: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    probs, labels = sharper(rng, 150, 1.4)
    order = rng.permutation(3)
    one = RECALIBRATORS[key].make().fit(probs, labels).transform(probs)
    other = RECALIBRATORS[key].make().fit(probs[:, order], np.argsort(order)[labels])
    np.testing.assert_allclose(
        one[:, order], other.transform(probs[:, order]), rtol=1e-3, atol=1e-4
    )
