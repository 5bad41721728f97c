"""Slices and classes of a profile are those of its rows."""

import numpy as np
import polars as pl
import pytest

import calviz
from calviz.core import profile as profile_module
from calviz.data.any_size import profiling as in_blocks
from calviz.data.any_size import profiling as summarise
from calviz.data.any_size import sums as aggregate
from calviz.figures.class_bars import ClassBars
from tests.inputs.simulated import draw_labels

N = 6_000


@pytest.fixture
def cells(monkeypatch):
    for module in (aggregate, in_blocks, profile_module, summarise):
        monkeypatch.setattr(module, "FEW_SCORES", 0)


@pytest.mark.parametrize("against", ["calibrated", "rest"])
def test_slices_are_those_of_the_rows(cells, against):
    rng = np.random.default_rng(0)
    p = rng.beta(1, 2, N).astype(np.float32)
    by = {"country": rng.choice(["de", "fr", "it"], N), "device": rng.choice(["a", "b"], N)}
    y = (rng.random(N) < p + 0.1 * (by["country"] == "fr")).astype(int)
    table = pl.DataFrame({"p": p, "y": y, **by})
    profile = calviz.profile(table, label="y", scores=["p"], by=list(by))
    assert profile.cells.height < N
    own = calviz.Predictions(probs=p, labels=y, groups=by)
    tested, wanted = (calviz.slices(d, against=against) for d in (profile.predictions(), own))
    assert tested.rows == wanted.rows == N
    assert [s.where for s in tested.off] == [s.where for s in wanted.off]
    assert tested.off
    for s in wanted.slices:
        ours = next(one for one in tested.slices if one.where == s.where)
        assert ours.rows == s.rows
        for name in ("score", "hits", "gap", "interval", "ece"):
            assert getattr(ours, name) == pytest.approx(getattr(s, name), abs=1e-7), name
        assert ours.ece_noise == pytest.approx(s.ece_noise, rel=1e-4)
        assert ours.p_value == pytest.approx(s.p_value, rel=1e-3, abs=1e-12)
    sentences = [calviz.verdict(d).sentence for d in (profile, own)]
    assert sentences[0] == sentences[1]


@pytest.mark.parametrize("mode", ["predicted-class", "true-class", "one-vs-rest"])
def test_bars_of_two_classes_are_those_of_the_rows(cells, mode):
    rng = np.random.default_rng(1)
    p = rng.beta(1, 2, N)
    y = (rng.random(N) < p**1.3).astype(int)
    profile = calviz.profile(pl.DataFrame({"p": p, "y": y}))
    result, wanted = (
        ClassBars.compute(d, mode=mode, resamples=100)
        for d in (profile.predictions(), calviz.Predictions(probs=p, labels=y))
    )
    assert (result.rows == wanted.rows).all()
    assert result.value == pytest.approx(wanted.value, abs=1e-9)
    if mode == "true-class":
        assert result.band is None
        return
    for ours, theirs in zip(result.band, wanted.band, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-6)


def test_a_profile_with_all_classes_is_judged_by_all():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), N)
    y = draw_labels(probs, rng)
    table = pl.DataFrame(probs, schema=["p_0", "p_1", "p_2"]).with_columns(y=y)
    sentence = calviz.verdict(calviz.profile(table, label="y", each_class=True)).sentence
    assert sentence == calviz.verdict(calviz.Predictions(probs=probs, labels=y)).sentence
    assert sentence.startswith("No miscalibration found")
    top = calviz.verdict(calviz.profile(table, label="y")).sentence
    assert top.startswith("No miscalibration of the top label found")
