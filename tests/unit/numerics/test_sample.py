"""A sample makes each view once, and views that are the same are one object."""

from functools import partial

import numpy as np
import pytest

from calviz.core.predictions import Predictions
from calviz.numerics.sample import Sample, bin_sums, event_sums, top_label_sums


def sample(reduction="top-label"):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), size=100)
    return Sample(Predictions(probs=probs, labels=rng.integers(3, size=100)), reduction)


def test_views_are_made_once_per_maker_and_parameters():
    s = sample()
    equal_width = partial(bin_sums, scheme="equal-width")
    assert s.view(equal_width) is s.view(equal_width)
    assert s.view(equal_width) is s.view(bin_sums, scheme="equal-width")
    assert s.view(equal_width) is not s.view(equal_width, bins=20)


def test_the_top_label_is_one_view_for_accuracy_and_mcs():
    s = sample()
    assert s.view(top_label_sums) is s.view(event_sums)


@pytest.mark.parametrize("reduction", ["class:1", "top-2"])
def test_accuracy_looks_at_the_top_label_under_every_reduction(reduction):
    s, top = sample(reduction), sample()
    np.testing.assert_array_equal(s.view(top_label_sums).cells, top.view(top_label_sums).cells)
    assert s.view(event_sums).score_sum[0] == pytest.approx(s.events.score.sum())
    assert s.view(event_sums).hit_sum[0] == s.events.hit.sum()
