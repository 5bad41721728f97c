"""Whatever takes predictions takes a `Profile`, and judges it like its cells."""

import numpy as np
import pandas as pd
import pytest

import calviz
from calviz.core.entry_specs import FIGURES
from calviz.core.errors import InputError, NotAvailable


@pytest.fixture(scope="module")
def profile():
    rng = np.random.default_rng(0)
    p = rng.beta(0.7, 0.7, 4_000)
    table = {
        "label": (rng.random(p.size) < p).astype(int),
        "p_1": p,
        "split": np.repeat(["val", "test"], p.size // 2),
        "country": rng.choice(["a", "b"], p.size),
    }
    return calviz.profile(pd.DataFrame(table), by=["country"], split_column="split")


@pytest.mark.parametrize("key", [figure.key for figure in FIGURES])
def test_figures(profile, key):
    compute = FIGURES[key].compute
    try:
        expected = compute(profile.predictions(), split="test").frame()
    except NotAvailable as error:
        with pytest.raises(NotAvailable, match=str(error)):
            compute(profile, split="test")
        return
    pd.testing.assert_frame_equal(compute(profile, split="test").frame(), expected)


@pytest.mark.slow
def test_evaluations_and_comparisons(profile):
    rows = profile.predictions()
    assert calviz.verdict(profile) == calviz.verdict(rows)
    divided = {"fit_split": "val", "eval_split": "test"}
    for data in (profile, rows):
        nll = [
            calviz.compare(data, ["temperature"], **divided, ci=False)["temperature"]
            .metrics["nll"]
            .value,
            calviz.evaluate(
                calviz.recalibrate(data, "temperature", fit_split="val"), ["nll"], split="test"
            )["nll"].value,
        ]
        assert nll[0] == pytest.approx(nll[1])


@pytest.mark.parametrize(
    "function",
    [
        lambda data: calviz.compare_models({"one": data, "other": data}),
        lambda data: calviz.learning_curve(data, ["temperature"]),
        lambda data: calviz.prediction_sets(data),
    ],
)
def test_what_needs_rows_refuses_a_profile_and_its_cells(profile, function):
    for data in (profile, profile.predictions()):
        with pytest.raises(NotAvailable, match="row"):
            function(data)


@pytest.mark.parametrize("function", [calviz.recalibrate, calviz.compare])
def test_rows_of_a_profile_are_not_divided_at_random(profile, function):
    arguments = ("temperature",) if function is calviz.recalibrate else ()
    with pytest.raises(InputError, match="name the splits"):
        function(profile, *arguments, fit_fraction=0.5)
