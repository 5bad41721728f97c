"""Comparisons and periods of a profile are those of its rows."""

import numpy as np
import polars as pl
import pytest

import calviz
from calviz.core.errors import InputError

N = 6_000


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    p = np.round(rng.beta(1, 3, N), 2)
    day = rng.integers(0, 3, N)
    return pl.DataFrame(
        {
            "p": p,
            "y": (rng.random(N) < np.where(day == 2, p, p**1.5)).astype(int),
            "split": rng.choice(["calibration", "test"], N),
            "day": (np.datetime64("2026-01-01") + day).astype("datetime64[us]"),
        }
    )


@pytest.fixture(scope="module")
def own(rows: pl.DataFrame) -> calviz.Predictions:
    return calviz.Predictions(
        probs=rows["p"].to_numpy(),
        labels=rows["y"].to_numpy(),
        splits=rows["split"].to_numpy(),
        times=rows["day"].to_numpy(),
    )


@pytest.fixture(scope="module")
def cells(rows: pl.DataFrame):
    return calviz.profile(rows, time="day").predictions()


@pytest.mark.slow
def test_maps_are_fitted_and_judged_as_on_the_rows(own, cells):
    one, other = (
        calviz.compare(data, ["platt"], metrics=["nll", "ece"], resamples=200)
        for data in (own, cells)
    )
    assert other.fit.rows == one.fit.rows
    assert other.evaluation.rows == one.evaluation.rows
    for key in ("identity", "platt"):
        for metric in ("nll", "ece"):
            assert other[key].metrics[metric].value == pytest.approx(
                one[key].metrics[metric].value, abs=1e-6
            )
        assert other[key].predictions_changed == one[key].predictions_changed
        assert other[key].calibration_gain == pytest.approx(one[key].calibration_gain, abs=1e-6)


def test_a_profile_is_not_divided_at_random(cells):
    with pytest.raises(InputError, match="profile cannot be divided at random"):
        calviz.compare(cells, ["platt"], cross_fit=2)


@pytest.mark.slow
def test_a_day_that_differs_is_found_as_among_the_rows(own, cells):
    one, other = (calviz.over_time(data, "ece", every="day", method=None) for data in (own, cells))
    assert [p.rows for p in other.periods] == [p.rows for p in one.periods]
    for a, b in zip(one.periods, other.periods, strict=True):
        assert b.result.value == pytest.approx(a.result.value, abs=1e-9)
        assert b.expected == pytest.approx(a.expected, rel=0.1)
        assert (b.adjusted <= 0.05) == (a.adjusted <= 0.05)
    assert other.periods[2].adjusted <= 0.05


def test_after_a_map_cells_of_several_scores_are_no_longer_exact():
    rng = np.random.default_rng(1)
    p = rng.random(200_000)
    table = pl.DataFrame({"p": p, "y": (rng.random(p.size) < p).astype(int)})
    data = calviz.profile(table).predictions()
    from calviz.comparison.fitting import with_probabilities

    moved = with_probabilities(
        data, np.stack([1 - data.probs[:, 1] ** 2, data.probs[:, 1] ** 2], 1)
    )
    evaluation = calviz.evaluate(moved, ["nll", "ece"])
    assert [(m.exact, m.bound) for m in evaluation] == [(False, None)] * 2
    true = np.where(table["y"] == 1, p**2, 1 - p**2)
    assert evaluation["nll"].value == pytest.approx(-np.log(true).mean(), abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("reduction", ["positive", "top-label"])
def test_every_metric_is_that_of_the_rows_or_says_that_it_needs_them(own, cells, reduction):
    evaluation, wanted = (
        calviz.evaluate(
            data, reduction=reduction, ci=True, resamples=200, findings=False, classes=False
        )
        for data in (cells, own)
    )
    available = [m for m in evaluation if m.available]
    assert len(available) > 40
    for m in evaluation:
        assert m.available or "needs the rows" in m.reason
    for m in available:
        row = wanted[m.key]
        assert m.exact
        assert m.value == pytest.approx(row.value, rel=1e-7, abs=1e-7), m.key
        assert (m.interval is None) == (row.interval is None), m.key
        assert (m.noise_floor is None) == (row.noise_floor is None), m.key
        if m.noise_floor is not None:
            spread = abs(row.noise_floor.q95 - row.noise_floor.mean)
            assert m.noise_floor.mean == pytest.approx(
                row.noise_floor.mean, abs=0.5 * spread + 1e-9
            )


def test_few_cells_of_many_rows_are_enough_to_fit():
    table = pl.DataFrame(
        {
            "p": [0.2, 0.8] * 1_000,
            "y": [0, 1, 1, 1, 0] * 400,
            "split": ["calibration"] * 1_000 + ["test"] * 1_000,
        }
    )
    comparison = calviz.compare(calviz.profile(table).predictions(), ["platt"], metrics=["nll"])
    wanted = calviz.compare(
        calviz.Predictions(probs=table["p"], labels=table["y"], splits=table["split"]),
        ["platt"],
        metrics=["nll"],
    )
    assert comparison["platt"].metrics["nll"].value == pytest.approx(
        wanted["platt"].metrics["nll"].value
    )


def test_rows_of_a_cell_that_a_map_makes_impossible_are_all_counted():
    from calviz.comparison.fitting import with_probabilities

    table = pl.DataFrame({"p": [0.2] * 5 + [0.8] * 5, "y": [0, 0, 0, 0, 1] * 2})
    data = calviz.profile(table).predictions()
    certain = np.where(data.probs > 0.5, 1.0, 0.0)
    result = calviz.evaluate(with_probabilities(data, certain), ["nll"])["nll"]
    assert result.details["clipped_rows"] == 1 + 4


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [2, 3])
def test_the_limit_of_the_log_loss_is_that_of_the_rows(dtype, k):
    rng = np.random.default_rng(k)
    probs = rng.dirichlet(np.full(k, 0.03), 2_000).astype(dtype)
    columns = {f"p{j}": probs[:, j] for j in range(k)}
    if k == 2:
        probs[:, 0] = 1 - probs[:, 1]
        columns = {"p": probs[:, 1]}
    labels = rng.integers(k, size=2_000)
    profile = calviz.profile(pl.DataFrame({**columns, "y": labels}))
    result = calviz.evaluate(profile, ["nll"])["nll"]
    of_true, eps = probs[np.arange(2_000), labels], np.finfo(np.float64).eps
    wanted = -np.log(np.maximum(of_true, eps).astype(float)).mean()
    assert result.value == pytest.approx(wanted, rel=1e-9)
    assert result.details["clipped_rows"] == np.count_nonzero(of_true < eps) > 0
