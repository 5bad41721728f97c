"""What holds for all predictions."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import calviz
from calviz.core.entry_specs import METRICS, RECALIBRATORS
from calviz.core.errors import CalvizError
from calviz.core.predictions import ConfidencePredictions, Predictions
from calviz.core.profile import merge
from calviz.data import ReadingOptions, read
from calviz.sample import binning, losses
from tests.inputs.simulated import draw_labels
from tests.property.example_counts import examples

# ---- Invariants that every registered metric must have, whatever it is


quick = examples(10)

#: Of one view each.
each_view = examples(20)


@st.composite
def predictions(draw, *, min_rows=1, max_classes=6):
    """Small samples with ties, exact 0 and 1, single classes, either type."""
    n = draw(st.integers(min_rows, 40))
    k = draw(st.integers(2, max_classes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shape = draw(st.sampled_from(["smooth", "counts", "one-hot", "uniform", "constant"]))
    if shape == "smooth":
        probs = rng.dirichlet(np.full(k, 0.5), size=n)
    elif shape == "counts":
        probs = rng.multinomial(4, np.full(k, 1 / k), size=n) / 4
    elif shape == "one-hot":
        probs = np.eye(k)[rng.integers(k, size=n)]
    elif shape == "uniform":
        probs = np.full((n, k), 1 / k)
    else:
        probs = np.tile(rng.dirichlet(np.ones(k)), (n, 1))
    labels = rng.integers(k, size=n) if draw(st.booleans()) else np.zeros(n, dtype=int)
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    return Predictions(probs=probs.astype(dtype), labels=labels)


def reductions(data):
    keys = ["top-label", "top-2", "within-top-2", "class:0", f"class:{data.n_classes - 1}"]
    return keys + ["positive"] * (data.n_classes == 2)


@st.composite
def views(draw, **options):
    """A small sample, and one of the ways to look at it."""
    data = draw(predictions(**options))
    return data, draw(st.sampled_from(reductions(data)))


def values(data, reduction="top-label", **options):
    evaluation = calviz.evaluate(
        data, reduction=reduction, classes=False, findings=False, **options
    )
    return {m.key: m.value for m in evaluation}


def same(mine, other, rel=1e-9, abs_=1e-12):
    for key in mine:
        assert mine[key] == pytest.approx(other[key], rel=rel, abs=abs_, nan_ok=True), key


def check(result, metric, slack=1e-6):
    """A value within its bounds, or a reason; intervals and noise floors in order and finite.

    Rows may sum to 1 only up to rounding: hence the `slack`.
    """
    if math.isnan(result.value):
        assert result.reason
        return
    low, high = metric.bounds
    assert low - slack <= result.value <= high + slack, metric.key
    if result.interval is not None:
        assert -math.inf < result.interval.low <= result.interval.high < math.inf
        assert result.interval.low >= low - slack
        assert result.interval.high <= high + slack
    if result.noise_floor is not None:
        floor = result.noise_floor
        assert low - slack <= floor.mean <= high + slack
        assert math.isfinite(floor.q95)
        assert 0 < floor.p_value <= 1


@pytest.mark.slow
@each_view
@given(view=views(), bins=st.sampled_from([1, 2, 15, 100]))
def test_finite_or_explained_and_within_bounds(view, bins):
    data, reduction = view
    evaluation = calviz.evaluate(
        data,
        reduction=reduction,
        bins=bins,
        ci=True,
        noise_floor=True,
        resamples=20,
        findings=False,
    )
    assert set(evaluation.metrics) == set(METRICS.keys())
    for result in evaluation:
        check(result, METRICS[result.key])


@pytest.mark.slow
@each_view
@given(view=views())
def test_approximations_for_many_rows_stay_sane_on_few(view):
    data, reduction = view
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(binning, "EXACT_BINNING_ROWS", 0)
        patch.setattr(losses, "EXACT_LOSS_ROWS", 0)
        for result in calviz.evaluate(
            data, reduction=reduction, ci=True, noise_floor=True, resamples=20, findings=False
        ):
            loose = result.key in ("nll", "brier")  # normal and gamma tails know no bounds
            check(result, METRICS[result.key], slack=math.inf if loose else 1e-6)


@pytest.mark.slow
@each_view
@given(view=views(), seed=st.integers(0, 99))
def test_the_order_of_rows_does_not_matter(view, seed):
    data, reduction = view
    order = np.random.default_rng(seed).permutation(data.n)
    same(values(data, reduction), values(data.take(order), reduction))


@pytest.mark.slow
@quick
@given(data=predictions())
def test_rows_counted_twice_change_nothing(data):
    twice = data.take(np.tile(np.arange(data.n), 2))
    mine, other = values(data), values(twice)
    same({k: v for k, v in mine.items() if not METRICS[k].follows_rows}, other)


@pytest.mark.slow
@quick
@given(data=predictions(), seed=st.integers(0, 99))
def test_the_names_of_classes_do_not_matter(data, seed):
    # Where no row has ties: among equal probabilities the order of the classes decides.
    ordered = np.sort(data.probs, axis=1)
    rows = np.flatnonzero((np.diff(ordered, axis=1) > 0).all(axis=1))
    if rows.size == 0:
        return
    data = data.take(rows)
    order = np.random.default_rng(seed).permutation(data.n_classes)
    other = Predictions(probs=data.probs[:, order], labels=np.argsort(order)[data.labels])
    for reduction in ("top-label", "top-2", "within-top-2"):
        same(values(data, reduction), values(other, reduction), rel=1e-5, abs_=1e-6)


@pytest.mark.slow
@quick
@given(data=predictions())
def test_the_top_label_needs_confidence_and_correctness_only(data):
    winner = data.probs.argmax(axis=1)
    confidence = ConfidencePredictions(
        confidence=data.probs.max(axis=1), correct=winner == data.labels
    )
    full, top = values(data), values(confidence)
    known = {key: value for key, value in top.items() if not math.isnan(value)}
    assert {"accuracy", "ece", "mcs"} <= set(known)
    same(known, full)


@quick
@given(data=predictions())
def test_both_types_agree(data):
    other = np.float32 if data.probs.dtype == np.float64 else np.float64
    probs = data.probs.astype(other)
    # A score may cross an edge when it is rounded: keep to those that are the same number in both.
    rows = np.flatnonzero((probs.astype(data.probs.dtype) == data.probs).all(axis=1))
    if rows.size == 0 or ((data.probs * 15) % 1 == 0).any():
        return
    twin = Predictions(probs=probs[rows], labels=data.labels[rows])
    same(values(data.take(rows)), values(twin), rel=1e-5, abs_=1e-6)


@pytest.mark.slow
@quick
@given(data=predictions(min_rows=2), seed=st.integers(0, 9))
def test_the_same_seed_gives_the_same_numbers(data, seed):
    first, second = (
        calviz.evaluate(data, ci=True, noise_floor=True, resamples=10, seed=seed) for _ in range(2)
    )
    for mine, other in zip(first, second, strict=True):
        assert mine.interval == other.interval
        assert mine.noise_floor == other.noise_floor


def test_a_metric_alone_is_the_metric_in_company():
    rng = np.random.default_rng(0)
    data = Predictions(probs=rng.dirichlet(np.ones(3), size=50), labels=rng.integers(3, size=50))
    options = {"ci": True, "noise_floor": True, "resamples": 30}
    company = calviz.evaluate(data, **options)
    for key in tuple(METRICS.keys()):
        assert calviz.evaluate(data, [key], **options)[key] == company[key], key


#: Fits of redrawn labels take seconds, and these share those of `nll_calibration`.
SHARED_FITS = {"nll_refinement", "brier_calibration", "brier_refinement"}


@pytest.mark.slow
def test_noise_floors_hold_what_they_promise():
    """On calibrated predictions p-values below 10 % are about as rare as 10 %."""
    small = Counter()
    keys = [spec.key for spec in METRICS if spec.key not in SHARED_FITS]
    for seed in range(24):
        rng = np.random.default_rng(seed)
        probs = rng.dirichlet([1, 1, 1], size=200)
        labels = draw_labels(probs, rng)
        data = Predictions(probs=probs, labels=labels)
        for result in calviz.evaluate(data, keys, noise_floor=True, resamples=100, seed=seed):
            if result.noise_floor is not None:
                small[result.key] += result.noise_floor.p_value <= 0.1
    assert len(small) > 30
    # Binomial(24, 0.1) is below 9 with probability 0.9997.
    assert not {key: times for key, times in small.items() if times >= 9}


# ---- A model whose rows stand among those of others is judged as if they stood alone


@quick
@given(gaps=st.lists(st.floats(0, 0.3), min_size=2, max_size=3), seed=st.integers(0, 2**32 - 1))
def test_a_model_below_others_is_judged_on_all_of_its_rows(gaps: list[float], seed: int) -> None:
    rng = np.random.default_rng(seed)
    n, names = 80, "abc"[: len(gaps)]
    label = rng.permutation(np.arange(n) % 2)
    held = rng.random((len(names), n)) >= np.array(gaps)[:, None]
    held[:, :40] = True  # enough of each class, in the rows of all
    columns = {"id": [f"case {i}" for i in range(n)], "site": rng.choice(["N", "S"], n)}
    columns |= {"label": label}
    table = pl.concat(
        pl.DataFrame(
            columns | {"model": name, "score": rng.uniform(0.01, 0.99, n).round(4)}
        ).filter(own)
        for name, own in zip(names, held, strict=True)
    ).sample(fraction=1, shuffle=True, seed=seed % 2**31)
    found = read(table.write_csv().encode(), options=ReadingOptions(model_column="model"))
    for name, model in found.models.items():
        rows = table.filter(pl.col("model") == name)
        alone = read(rows.drop("model").write_csv().encode(), name=f"{name}.csv").first
        for column in ("probs", "labels", "ids"):
            np.testing.assert_array_equal(getattr(model, column), getattr(alone, column))
        one, other = (calviz.evaluate(data, findings=True, resamples=20) for data in (model, alone))
        assert one.metrics.keys() == other.metrics.keys()
        for key in one.metrics:
            np.testing.assert_equal(vars(one.metrics[key]), vars(other.metrics[key]))
        assert one.verdict.sentence == other.verdict.sentence
        assert [f.message for f in one.findings] == [f.message for f in other.findings]
        np.testing.assert_array_equal(table["model"].to_numpy()[model.file_rows], name)
    shared = calviz.comparison.compare_models.same_rows(found.models)
    assert shared.rows == np.count_nonzero(held.all(axis=0))


# ---- A profile says of its rows what they say themselves: however they are divided, and in whatever order they are added


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


# ---- Whatever the predictions: a map gives distributions or says why there is none, whatever the order of rows and classes


KEYS_OF_RECALIBRATORS = RECALIBRATORS.keys()
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


@pytest.mark.usefixtures("few_candidates")
@pytest.mark.parametrize("key", KEYS_OF_RECALIBRATORS)
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


@pytest.mark.usefixtures("few_candidates")
@pytest.mark.parametrize("key", [key for key in KEYS_OF_RECALIBRATORS if key not in ORDERED])
@examples(3)
@given(seed=st.integers(0, 2**32 - 1))
def test_the_order_of_rows_does_not_matter_of_recalibrators(key: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    probs, labels = sharper(rng, 120, 0.7)
    order = rng.permutation(len(labels))
    one = RECALIBRATORS[key].make().fit(probs, labels).transform(probs)
    other = RECALIBRATORS[key].make().fit(probs[order], labels[order]).transform(probs)
    np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


#: One parameter, or the same for every class: their maps know no order of the classes.
SYMMETRIC = ["identity", "temperature", "temperature-mse", "vector", "matrix", "dirichlet", "platt", "beta", "isotonic", "irm", "ets", "histogram", "bbq", "svs", "sms"]  # fmt: skip


@pytest.mark.usefixtures("few_candidates")
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
