"""Points beside those of a reliability diagram, by hand."""

import numpy as np
import pytest

import calviz
from calviz.figures import Reliability
from calviz.figures.kernels.beside import Beside
from calviz.sample.sample import Sample

#: Two of four right at 0.7, one of two at 0.95.
P = calviz.Predictions(
    probs=np.array([[0.7, 0.3]] * 4 + [[0.95, 0.05]] * 2),
    labels=np.array([0, 0, 1, 1, 0, 1]),
)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_some_of_the_rows_and_another_diagram_are_drawn_as_outlines(theme):
    sample = Sample(P, reduction="top-label", bins=10)
    figure = Reliability.compute(sample)
    some = Beside.of_rows(sample, figure.sums, np.array([0, 1, 2, 4]), "Some")
    np.testing.assert_allclose(some.mean_score, [0.7, 0.95])
    np.testing.assert_allclose(some.observed, [2 / 3, 1])
    assert some.count.tolist() == [3, 1]
    other = Beside.of(Reliability.compute(sample.but(bins=1)), "Pinned: 1 bin", "pinned")
    np.testing.assert_allclose(other.observed, [0.5])
    drawn = figure.plot(theme=theme, beside=[some, other])
    by_name = {trace.name: trace for trace in drawn.data}
    assert by_name["Some"].marker.symbol == "square-open"
    np.testing.assert_allclose(by_name["Some"].y, [2 / 3, 1])
    assert by_name["Pinned: 1 bin"].marker.symbol == "diamond-open"
    # The square keeps its size: the legend has room of its own.
    assert drawn.layout.height > figure.plot(theme=theme).layout.height
