"""What the fixture `calibration` claims, and its sentences; a run of pytest with it is in tests/contract/test_contributing.py."""

import numpy as np
import pytest

import calviz
from calviz.core.errors import NotAvailable, OptionError
from calviz.integrations.pytest_plugin import Calibration
from calviz.sample.sample import Sample


def claims(rows, shift=0.0):
    """Scores that are `shift` too high."""
    rng = np.random.default_rng(0)
    truth = rng.uniform(0.2, 0.7, size=rows)
    labels = (rng.uniform(size=rows) < truth).astype(int)
    return Calibration(Sample.of(calviz.Predictions.from_arrays(labels, truth + shift)))


def test_many_calibrated_rows_are_shown_to_be_below():
    claims(20_000).assert_below("ece", 0.05)
    claims(20_000).assert_above("accuracy", 0.5)


def test_few_rows_leave_room_for_doubt_and_it_says_both():
    few = claims(60)
    with pytest.raises(AssertionError) as caught:
        few.assert_below("ece", 0.05)
    result = calviz.evaluate(few.sample, ["ece"], ci=True)["ece"]
    assert f"ece is {result.value:.4g} on 60 rows" in str(caught.value)
    assert f"the upper bound {result.interval.high:.4g} is not below it" in str(caught.value)
    few.assert_below("ece", 0.05, doubt="passes")


def test_rows_that_are_off_fail_either_way():
    off = claims(5_000, shift=0.2)
    for doubt in ("fails", "passes"):
        with pytest.raises(AssertionError, match="the whole interval is above it"):
            off.assert_below("ece", 0.05, doubt=doubt)
    with pytest.raises(AssertionError, match="the whole interval is below it"):
        off.assert_above("mcs", 0.4)


def test_what_cannot_be_judged_is_no_pass():
    one = Calibration(Sample.of(calviz.Predictions.from_arrays([1, 1, 1], [0.5, 0.6, 0.7])))
    with pytest.raises(NotAvailable, match="calibration_slope has no value"):
        one.assert_above("calibration_slope", 0.5)
    with pytest.raises(OptionError, match="doubt"):
        one.assert_below("ece", 0.5, doubt="maybe")
