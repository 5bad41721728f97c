"""Points beside those of a reliability diagram, by hand."""

import numpy as np
import pytest

import calviz
from calviz.figures.class_bars import ClassBars
from calviz.figures.cumulative_plot import Cumulative
from calviz.figures.marks import Overlay
from calviz.figures.reliability import Reliability, ReliabilityOverlay
from calviz.figures.roc import Roc
from calviz.figures.slice_gaps import SliceGaps
from calviz.sample.sample import Sample
from calviz.sample.slices import slices

#: Two of four right at 0.7, one of two at 0.95.
P = calviz.Predictions(
    probs=np.array([[0.7, 0.3]] * 4 + [[0.95, 0.05]] * 2),
    labels=np.array([0, 0, 1, 1, 0, 1]),
)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_some_of_the_rows_and_another_diagram_are_drawn_as_outlines(theme):
    sample = Sample(P, reduction="top-label", bins=10)
    figure = Reliability.compute(sample)
    some = ReliabilityOverlay.of_rows(sample, figure.sums, np.array([0, 1, 2, 4]), "Some")
    np.testing.assert_allclose(some.mean_score, [0.7, 0.95])
    np.testing.assert_allclose(some.observed, [2 / 3, 1])
    assert some.count.tolist() == [3, 1]
    other = Reliability.compute(sample.but(bins=1)).overlay("Pinned: 1 bin", "pinned")
    np.testing.assert_allclose(other.observed, [0.5])
    drawn = figure.plot(theme=theme, beside=[some, other])
    by_name = {trace.name: trace for trace in drawn.data}
    assert by_name["Some"].marker.symbol == "square-open"
    np.testing.assert_allclose(by_name["Some"].y, [2 / 3, 1])
    assert by_name["Pinned: 1 bin"].marker.symbol == "diamond-open"
    # The square keeps its size: the legend has room of its own.
    assert drawn.layout.height > figure.plot(theme=theme).layout.height


def test_the_cumulative_plot_frames_scores_and_draws_other_rows_where_one_line_says_it():
    sample = Sample(P, reduction="top-label")
    figure = Cumulative.compute(sample, band=False)
    assert figure.upto(0.8) == pytest.approx((4 / 6, 2.8 / 6))
    part = sample.with_data(P.take(np.array([0, 1, 4])))
    some = Overlay("Some", "selected", Cumulative.compute(part, band=False))
    for panel, frame in (("a", (4 / 6, 1)), ("b", (2.8 / 6, 4.7 / 6)), ("d", (0.8, 1))):
        drawn = figure.plot(panels=[panel], selected=(0.8, 1.0), beside=[some])
        (shape,) = drawn.layout.shapes
        assert (shape.x0, shape.x1) == pytest.approx(frame)
        assert ("Some" in {trace.name for trace in drawn.data}) == (panel == "d")
    by_name = {trace.name: trace for trace in figure.plot(panels=["gap"], beside=[some]).data}
    # All three are right: after two of 0.7, and one of 0.95.
    np.testing.assert_allclose(by_name["Some"].y, [0, -100 * 0.6 / 3, -100 * 0.65 / 3], rtol=1e-6)


def test_errors_of_classes_and_gaps_of_slices_in_another_state_stand_on_their_lines():
    data = calviz.Predictions(
        probs=P.probs, labels=P.labels, groups={"place": ["n", "n", "s", "s", "n", "s"]}
    )
    bars = ClassBars.compute(Sample(data), mode="true-class", resamples=20)
    other = Overlay("Pinned: other", "pinned", np.array([0.1, -0.2]))
    (mark,) = [t for t in bars.plot(order="class", beside=[other]).data if t.name == other.name]
    np.testing.assert_allclose(mark.x, [10, -20], rtol=1e-6)
    assert list(mark.customdata) == [0, 1]
    gaps = SliceGaps.compute(slices(Sample(data, reduction="top-label"), ["place"], min_rows=2))
    drawn = gaps.plot(beside=[Overlay("Pinned: other", "pinned", np.array([0.3, np.nan]))])
    (mark,) = [t for t in drawn.data if t.name == other.name]
    np.testing.assert_allclose(mark.x, [30, np.nan])


def test_another_state_has_its_own_roc_and_its_areas():
    one, two = (
        Roc.compute(calviz.Predictions(probs=np.array(p), labels=np.array([0, 0, 1, 1])))
        for p in ([0.1, 0.4, 0.35, 0.8], [0.1, 0.2, 0.3, 0.4])
    )
    drawn = one.plot(beside=[Overlay("Pinned: sure", "pinned", two)])
    text = drawn.layout.annotations[-1].text
    # Three of four pairs are in order, and all of them.
    assert "0.750" in text.split("<br>")[0]
    assert text.split("<br>")[1].startswith("Pinned: AUROC ")
    assert "1.000" in text.split("<br>")[1]
