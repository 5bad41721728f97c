"""A profile says of its rows what they say themselves: however they are divided, and in whatever order they are added."""

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calviz
from calviz.core.profile import merge
from tests.property.example_counts import examples

#: A little rounding: of sums, and of 1 - p in single precision.
SLACK = {np.float64: 1e-9, np.float32: 1e-7}
KEYS = (
    "accuracy", "nll", "brier", "ece", "ece_l2", "mce", "mcs", "oe_ratio", "ece_equal_mass", "ks", "kuiper", "auroc",
    "somers_d", "smece", "auroc_failure",
)  # fmt: skip


@st.composite
def rows(draw: st.DrawFn) -> tuple[pl.DataFrame, type]:
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.sampled_from((1, 2, 37, 400)))
    kind = draw(st.sampled_from((np.float64, np.float32)))
    score = {
        "smooth": rng.beta(0.7, 2, n),
        "edges": rng.choice(np.arange(16) / 15, n),
        "beside edges": np.nextafter(rng.choice(np.arange(16) / 15, n), rng.choice([0.0, 1.0], n)),
        "saturated": rng.beta(0.02, 0.03, n),
        "rounded": np.round(rng.random(n), 2),
        "one cell": 0.5 + rng.random(n) * 1e-6,
    }[
        draw(
            st.sampled_from(("smooth", "edges", "beside edges", "saturated", "rounded", "one cell"))
        )
    ]
    score = score.astype(kind)
    label = (rng.random(n) < score**1.3).astype(np.int8)
    return pl.DataFrame({"p": score, "y": label}), kind


@pytest.mark.slow
@examples(12)
@given(rows(), st.integers(0, 2**32))
def test_any_division_in_any_order_gives_the_numbers_of_the_rows(
    expected: tuple[pl.DataFrame, type], seed: int
) -> None:
    table, kind = expected
    rng = np.random.default_rng(seed)
    ends = [0, *np.sort(rng.integers(0, table.height + 1, 2)).tolist(), table.height]
    shuffled = table[rng.permutation(table.height)]
    parts = [shuffled[a:b] for a, b in pairwise(ends) if b > a]
    columns = {"label": "y", "scores": ["p"]}
    profiles = [calviz.profile(part, **columns) for part in parts]
    whole = profiles[-1]
    for other in profiles[:-1]:
        whole = whole + other
    at_once = merge(profiles)
    assert whole.cells.drop("score_sum", "square_sum", "log_loss", "squared_error").equals(
        at_once.cells.drop("score_sum", "square_sum", "log_loss", "squared_error")
    )
    rows = calviz.Predictions(probs=table["p"].to_numpy(), labels=table["y"].to_numpy())
    for reduction in ("positive", "top-label"):
        own = calviz.evaluate(rows, KEYS, reduction=reduction)
        ours = calviz.evaluate(whole, KEYS, reduction=reduction)
        assert ours.rows == own.rows
        for result in own:
            computed = ours[result.key]
            assert computed.available == result.available, (result.key, computed.reason)
            if result.available:
                slack = SLACK[kind] * max(1, abs(result.value))
                assert computed.exact is not None
                assert computed.bound is not None or not computed.exact
                bound = 0.0 if computed.bound is None else computed.bound
                assert computed.value == pytest.approx(result.value, abs=bound + slack), result.key
