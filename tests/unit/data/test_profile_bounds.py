"""Every metric that a profile is asked for is that of the rows, within what it says of itself."""

import numpy as np
import polars as pl
import pytest

import calviz
from calviz.core.entry_specs import METRICS, metric
from tests.inputs.simulated import draw_labels, keep_few_scores

#: Metrics whose bound is not known may differ by this share of themselves, or by this much.
SHARE, DIFFERENCE = 0.03, 1e-4


@pytest.fixture(autouse=True)
def cells_of_several_scores(monkeypatch):
    keep_few_scores(monkeypatch, 0)


def of_two_classes(n: int, seed: int, kind: type = np.float64):
    rng = np.random.default_rng(seed)
    p = rng.beta(0.7, 2, n).astype(kind)
    # Scores that are 0 or 1, that lie on edges of cells, and many of the same.
    p[: n // 50] = rng.choice([0, 1, 0.5, 0.25, 1 / 15, 0.3], n // 50)
    y = (rng.random(n) < np.clip(p, 0.02, 0.98) ** 1.1).astype(np.int64)
    return pl.DataFrame({"p": p, "y": y}), calviz.Predictions(probs=p, labels=y)


def of_four_classes(n: int, seed: int):
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(4, 0.4), n)
    y = draw_labels(probs, rng)
    columns = {f"p_{k}": probs[:, k] for k in range(4)} | {"y": y}
    return pl.DataFrame(columns), calviz.Predictions(probs=probs, labels=y)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "reduction"),
    [
        (lambda: of_two_classes(60_000, 1, np.float32), "positive"),
        (lambda: of_two_classes(60_000, 2), "top-label"),
        (lambda: of_four_classes(60_000, 3), "top-label"),
    ],
)
def test_every_metric_that_is_offered_is_that_of_the_rows(make, reduction):
    rows, own = make()
    profile = calviz.profile(rows)
    assert not profile.is_exact
    evaluation = calviz.evaluate(profile, reduction=reduction, findings=False, classes=False)
    offered = [m.key for m in evaluation if m.available]
    assert len(offered) > 50
    wanted = calviz.evaluate(own, offered, reduction=reduction)
    for key in offered:
        m, value = evaluation[key], wanted[key].value
        off = abs(m.value - value)
        if m.exact:
            assert off <= 1e-9 * max(1, abs(value)), key
        elif m.bound is not None:
            assert off <= m.bound, (key, off, m.bound)
        else:
            assert off <= max(SHARE * abs(value), DIFFERENCE), key
    bounds = {key: evaluation[key].bound for key in offered}
    assert bounds["calibration_slope"] < 0.005
    assert bounds["aurc"] < 1e-4
    assert bounds["kde_ece"] < 1e-5
    assert bounds["brier_miscalibration"] < 1e-4
    assert bounds["nll_uncertainty"] == 0


@pytest.mark.parametrize("seed", range(4))
def test_bounds_hold_for_few_rows(seed):
    # Many rows in one cell, in no order: the bounds are wide, and hold.
    rng = np.random.default_rng(seed)
    n = int(rng.integers(30, 400))
    low = np.sort(rng.choice(61_440, 6, replace=False)) / 61_440
    p = rng.choice(low, n) + rng.uniform(0.01, 0.99, n) / 61_440
    y = (rng.random(n) < 0.2 + 0.6 * p).astype(np.int64)
    evaluation = calviz.evaluate(calviz.profile(pl.DataFrame({"p": p, "y": y})), findings=False)
    own = calviz.evaluate(
        calviz.Predictions(probs=p, labels=y), [m.key for m in evaluation if m.bound is not None]
    )
    assert len(list(own)) > 25
    for m in own:
        assert abs(evaluation[m.key].value - m.value) <= evaluation[m.key].bound + 1e-12, m.key


def test_a_metric_of_whose_view_nothing_is_said_is_not_offered_to_profiles(monkeypatch):
    rows, _ = of_two_classes(100, 0)

    def by_row(sample):
        return sample.events

    monkeypatch.setattr(METRICS, "_entries", dict(METRICS._entries))
    metric(
        key="one_row",
        label="One row",
        family="Binned",
        direction="none",
        bounds=(0, 1),
        formula="s_1",
        reference="none",
        view=by_row,
    )(lambda view: view.score[0])
    result = calviz.evaluate(calviz.profile(rows), ["one_row"])["one_row"]
    assert "needs the rows" in result.reason
    assert not result.available


def test_checks_without_an_answer_are_named_with_their_reason():
    rows, _ = of_two_classes(2_000, 0)
    e = calviz.evaluate(calviz.profile(rows), ["ece"], findings=True)
    (messages,) = [f.message for f in e.findings if f.code == "CAL025"]
    assert "suspected wrong labels" in messages
    assert "they need single rows" in messages
