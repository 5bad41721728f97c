"""CAL022: rows that depend on each other, and rows that only share a column."""

import numpy as np
import pytest

import calviz
from calviz.core.entry_specs import CHECKS
from calviz.sample.sample import Sample
from calviz.verdicts.row_checks import dependence


def drawn(probs, uniform):
    order = np.argsort(-probs, axis=1)
    upto = np.cumsum(np.take_along_axis(probs, order, axis=1), axis=1)[:, :-1]
    return order[np.arange(len(probs)), (uniform[:, None] > upto).sum(axis=1)]


def clustered(seed, clusters=100, size=30, dependent=1.0):
    """Rows of a cluster take their labels from one uniform number, a share `dependent` of them."""
    rng = np.random.default_rng(seed)
    n = clusters * size
    probs = rng.dirichlet(np.full(3, 0.5), n)
    uniform = np.repeat(rng.random(clusters), size)
    uniform = np.where(rng.random(n) < dependent, uniform, rng.random(n))
    group = np.repeat(np.arange(clusters), size)
    return probs, drawn(probs, uniform), group


def findings(probs, labels, **own):
    return list(
        CHECKS["CAL022"].findings(Sample(calviz.Predictions(probs=probs, labels=labels, **own)))
    )


@pytest.mark.slow
def test_columns_that_have_nothing_to_do_with_it_are_left_alone():
    spoken = 0
    for seed in range(150):
        rng = np.random.default_rng(seed)
        probs = rng.dirichlet(np.full(4, 0.05 if seed % 2 else 0.5), 600)
        labels = drawn(probs, rng.random(600))
        sharp = np.maximum(probs, 1e-9) ** (
            2 if seed % 3 == 0 else 1
        )  # miscalibrated, but independent
        spoken += bool(
            findings(
                sharp / sharp.sum(1, keepdims=True),
                labels,
                groups={"patient": rng.integers(0, 60 if seed % 4 else 300, 600)},
                ids=rng.integers(0, 400, 600),
            )
        )
    assert spoken <= 2


@pytest.mark.parametrize(
    ("dependent", "size", "power"), [(1.0, 30, 1.0), (0.5, 30, 1.0), (1.0, 2, 0.9)]
)
@pytest.mark.parametrize("kind", ["group", "id"])
def test_dependence_within_a_column_is_seen(dependent, size, power, kind):
    spoken = []
    for seed in range(10):
        probs, labels, group = clustered(seed, 3_000 // size if size > 2 else 500, size, dependent)
        own = {"groups": {"patient": group}} if kind == "group" else {"ids": group}
        spoken += findings(probs, labels, **own)
    assert len(spoken) >= 10 * power
    assert ("with the same id" if kind == "id" else "with the same 'patient'") in spoken[0].message


def test_copies_are_seen_without_any_column_and_the_factor_is_right():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.full(3, 0.5), 100)
    labels = drawn(probs, rng.random(100))
    (finding,) = findings(np.repeat(probs, 30, axis=0), np.repeat(labels, 30))
    assert "with exactly the same scores" in finding.message
    # Thirty copies: the variance of a mean is thirty times that of independent rows.
    factor = float(finding.message.split("factor of about ")[1].split()[0])
    assert factor == pytest.approx(30**0.5, rel=0.03)


def test_ties_and_leaves_are_no_copies():
    rng = np.random.default_rng(0)
    score = np.round(rng.random(3_000), 2)
    assert not findings(score, (rng.random(3_000) < score).astype(int))
    # Leaves of an overfitted tree: every score is off by itself.
    truth = rng.random(200)
    leaf = rng.integers(0, 200, 4_000)
    score = np.clip(truth + rng.normal(0, 0.15, 200), 0.01, 0.99)[leaf]
    assert not findings(score, (rng.random(4_000) < truth[leaf]).astype(int))


def test_the_design_effect_of_equal_correlation_by_hand():
    # Residuals that are the same within pairs: ICC 1, and 1 + (2 - 1) 1 = 2.
    rng = np.random.default_rng(0)
    rate = np.full(2_000, 0.5)
    residual = np.repeat(np.where(rng.random(1_000) < 0.5, 0.5, -0.5), 2)
    result = dependence(residual, rate, np.repeat(np.arange(1_000), 2))
    assert result.icc == pytest.approx(1.0)
    assert result.design_effect == pytest.approx(2.0)
    assert result.p_value < 1e-9
