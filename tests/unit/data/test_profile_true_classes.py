"""Cells by true class: the family of Ao et al. from a profile is that of the rows."""

import numpy as np
import polars as pl
import pytest

import calviz
from calviz.core import profile as profile_module
from calviz.core.errors import InputError
from calviz.data.any_size import profiling as in_blocks
from calviz.data.any_size import profiling as summarise
from calviz.data.any_size import sums as aggregate
from calviz.sample import true_classes as true_class_cells
from tests.inputs import command_line
from tests.inputs.simulated import draw_labels

KEYS = ("wsece", "msece", "cece", "wsmcs", "wsmcs_over", "under_mcs", "over_share")
N = 4_000


def two() -> tuple[pl.DataFrame, calviz.Predictions]:
    rng = np.random.default_rng(0)
    p = rng.beta(0.7, 2, N)
    y = (rng.random(N) < p**1.2).astype(np.int64)
    return pl.DataFrame({"p": p, "y": y}), calviz.Predictions(probs=p, labels=y)


def four(names: bool = False) -> tuple[pl.DataFrame, calviz.Predictions]:
    rng = np.random.default_rng(1)
    probs = rng.dirichlet(np.full(4, 0.4), N)
    y = draw_labels(probs, rng)
    columns = {f"p_{k}": probs[:, i] for i, k in enumerate("abcd" if names else range(4))}
    labels = np.array(list("abcd"))[y] if names else y
    return pl.DataFrame(columns | {"y": labels}), calviz.Predictions(probs=probs, labels=y)


def close(result, wanted) -> None:
    for m in wanted:
        assert result[m.key].exact, m.key
        assert result[m.key].value == pytest.approx(m.value, abs=1e-12), m.key
        if m.interval is not None and m.noise_floor is not None and result[m.key].noise_floor:
            width = m.interval.high - m.interval.low
            assert result[m.key].interval == pytest.approx(m.interval, abs=0.15 * width), m.key
            floor = m.noise_floor
            off = 0.3 * abs(floor.q95 - floor.mean) + 1e-12
            assert result[m.key].noise_floor.mean == pytest.approx(floor.mean, abs=off), m.key


@pytest.mark.slow
@pytest.mark.parametrize("narrow", [1 << 7, 1 << 12, 1 << 40])
def test_two_classes_have_them_in_any_profile(monkeypatch, narrow):
    monkeypatch.setattr(true_class_cells, "NARROW", narrow)
    for module in (aggregate, in_blocks, profile_module, summarise):
        monkeypatch.setattr(module, "FEW_SCORES", 0)
    rows, own = two()
    how = {"ci": True, "resamples": 300, "classes": True}
    evaluation, wanted = (calviz.evaluate(d, KEYS, **how) for d in (calviz.profile(rows), own))
    close(evaluation, wanted)
    for a, b in zip(evaluation.classes, wanted.classes, strict=True):
        assert (a.name, a.rows) == (b.name, b.rows)
        assert (a.accuracy, a.ece, a.mcs) == pytest.approx((b.accuracy, b.ece, b.mcs), abs=1e-12)
        assert a.ks == pytest.approx(b.ks, abs=1e-4)


@pytest.mark.parametrize("names", [False, True])
def test_more_classes_have_them_where_asked(tmp_path, names):
    rows, own = four(names)
    halves = [calviz.profile(part, true_class=True, by=()) for part in (rows[:1500], rows[1500:])]
    whole = halves[1] + halves[0]
    assert "4 classes, by true class" in whole.sentence()
    whole.save(tmp_path / "a.parquet")
    data = calviz.load(tmp_path / "a.parquet")
    evaluation = calviz.evaluate(data, [*KEYS, "ece", "nll"], ci=True, resamples=100, classes=True)
    wanted = calviz.evaluate(own, [*KEYS, "ece", "nll"], ci=True, resamples=100, classes=True)
    close(evaluation, wanted)
    # The labels of more classes cannot be redrawn from the largest probability.
    assert evaluation["wsece"].noise_floor is None
    assert [c.rows for c in evaluation.classes] == [c.rows for c in wanted.classes]
    without = calviz.evaluate(calviz.profile(rows), ["wsece"])["wsece"]
    assert "do not name the true classes" in without.reason


def test_too_many_cells_are_refused(monkeypatch):
    monkeypatch.setattr(summarise, "MOST_CELLS", 100)
    with pytest.raises(InputError, match="cells, more than 100; leave out the true classes"):
        calviz.profile(four()[0], true_class=True)


def test_the_command_has_the_option(tmp_path):
    four()[0].write_parquet(tmp_path / "a.parquet")
    out = tmp_path / "out.parquet"
    args = ["profile", str(tmp_path / "a.parquet"), "--out", str(out), "--true-class"]
    result = command_line.run(*args)
    assert result.exit_code == 0, result.output
    assert calviz.load(out).labels is not None
