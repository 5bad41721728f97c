"""The calibration map: closed forms of temperature scaling, and what is no function."""

import json

import numpy as np
import pytest

from calviz.core.errors import OptionError
from calviz.core.predictions import Predictions
from calviz.figures.calibration_map import CalibrationMap
from calviz.figures.marks import EDGE
from calviz.figures.reliability import Reliability


def powered(p, t):
    q = p ** (1 / t)
    return q / q.sum(axis=1, keepdims=True)


def pair(k, t=2.0, n=2_000, seed=0):
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(k), size=n)
    y = rng.integers(k, size=n)
    return Predictions(probs=p, labels=y), Predictions(probs=powered(p, t), labels=y)


def test_temperature_of_two_classes_is_the_power_of_the_odds():
    before, after = pair(2)
    figure = CalibrationMap.compute(before, after, name="T = 2", reduction="positive")
    assert figure.is_function
    odds = figure.before / (1 - figure.before)
    np.testing.assert_allclose(figure.after, np.sqrt(odds) / (1 + np.sqrt(odds)), atol=1e-9)
    assert (np.diff(figure.before) >= 0).all()
    assert figure.before.size <= 602
    p = before.probs[:, 1]
    assert figure.median[0] == pytest.approx(np.median(p))
    assert [figure.before[0], figure.before[-1]] == pytest.approx([p.min(), p.max()])
    assert "T = 2" in figure.describe()


def test_the_same_temperature_is_no_function_of_the_confidence_of_four_classes():
    before, after = pair(4)
    figure = CalibrationMap.compute(before, after)
    assert not figure.is_function
    # Half of the rows of a group lie on either side of its median; the range holds nine in ten.
    order = np.argsort(before.probs.max(axis=1))
    x, y = (d.probs.max(axis=1)[order].reshape(40, 50) for d in (before, after))
    np.testing.assert_allclose(figure.before, x.mean(axis=1))
    inside = (y >= figure.low[:, None]) & (y <= figure.high[:, None])
    assert 0.88 <= inside.mean() <= 0.94
    assert (y > figure.after[:, None]).mean() == pytest.approx(0.5, abs=0.01)
    assert figure.rows[0].size == 400


def test_a_map_with_steps_is_a_function():
    before, _ = pair(2)
    p = np.where(before.probs[:, 1] > 0.5, 0.8, 0.1)
    after = Predictions(probs=p, labels=before.labels)
    figure = CalibrationMap.compute(before, after, reduction="positive")
    assert figure.is_function
    assert set(figure.after.round(9).tolist()) == {0.1, 0.8}


def test_nothing_changes_on_the_diagonal():
    before, _ = pair(3)
    figure = CalibrationMap.compute(before, before)
    assert figure.is_function
    np.testing.assert_array_equal(figure.before, figure.after)
    assert "(0.0 points)" in figure.describe()


def test_the_observed_are_those_of_the_reliability_diagram():
    before, after = pair(3)
    figure = CalibrationMap.compute(before, after, bins=10)
    diagram = Reliability.compute(before, bins=10)
    score, hits, share = figure.observed
    np.testing.assert_allclose(score, diagram.mean_score)
    np.testing.assert_allclose(hits, diagram.observed)
    np.testing.assert_allclose(share, diagram.share)


def test_other_rows_are_refused():
    before, after = pair(3)
    with pytest.raises(OptionError, match="the same rows, got 2,000 and 5"):
        CalibrationMap.compute(before, after.take(np.arange(5)))


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("k", [2, 4])
def test_what_is_drawn_is_what_the_frame_holds(theme, k):
    before, after = pair(k)
    figure = CalibrationMap.compute(before, after, name="<b>", reduction="top-label")
    frame, drawn = figure.frame(), figure.plot(theme=theme)
    curve = next(t for t in drawn.data if t.hovertemplate and "becomes" in t.hovertemplate)
    np.testing.assert_allclose(curve.y, frame.loc[frame["kind"] == "map", "after"], rtol=1e-6)
    dots = next(t for t in drawn.data if t.hovertemplate and "observed" in t.hovertemplate)
    np.testing.assert_allclose(dots.y, frame.loc[frame["kind"] == "observed", "after"])
    assert (frame["kind"] == "row").sum() == (0 if figure.is_function else 400)
    json.loads(drawn.to_json())


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_small_diagrams_share_one_scale(theme):
    before, after = pair(3)
    one, two = (Reliability.compute(d) for d in (before, after))
    first, second = (f.plot_small(theme=theme) for f in (one, two))
    for drawn, figure in ((first, one), (second, two)):
        assert list(drawn.layout.xaxis.range) == list(drawn.layout.yaxis.range) == [-EDGE, 1 + EDGE]
        points = [t for t in drawn.data if t.mode == "markers"]
        x, y, size = (
            np.concatenate(part)
            for part in zip(*((t.x, t.y, t.marker.size) for t in points), strict=True)
        )
        order = np.argsort(x)
        np.testing.assert_allclose(x[order], np.sort(figure.mean_score))
        np.testing.assert_allclose(y[order], figure.observed[np.argsort(figure.mean_score)])
        # Points of one share have one size, in whichever panel.
        shares = figure.share[np.argsort(figure.mean_score)]
        np.testing.assert_allclose(size[order], np.maximum(6, 22 * np.sqrt(shares)), rtol=1e-9)
        # Too high and too low differ in colour, as everywhere.
        stems = {t.line.color for t in drawn.data if (t.name or "").endswith("(gap)")}
        assert len(stems) == 4


@pytest.mark.parametrize(
    ("bend", "dip"), [(0.0, None), (0.005, None), (0.2, (0.4, 0.6, 0.2))], ids=str
)
def test_where_a_map_falls_is_said(bend, dip):
    # Up to 0.4 the map is the identity; from there it falls by `bend` until 0.6, and rises again.
    p = np.linspace(0, 1, 4_001)
    after = np.interp(p, [0, 0.4, 0.6, 1], [0, 0.4, 0.4 - bend, 1])
    before, mapped = (
        Predictions(probs=np.stack([1 - q, q], axis=1), labels=np.arange(p.size) % 2)
        for q in (p, after)
    )
    figure = CalibrationMap.compute(before, mapped, reduction="positive")
    assert figure.is_function
    if dip is None:
        assert figure.dip is None
        assert "falls" not in figure.describe()
    else:
        # It is looked for in 40 groups of neighbouring rows.
        assert figure.dip == pytest.approx(dip, abs=0.03)
        assert "falls by" in figure.describe()
