"""How metrics are written."""

import re

import numpy as np
import pytest

import calviz
from calviz.core.entry_specs import METRICS
from calviz.core.words import points_text
from calviz.figures.reliability import Reliability
from calviz.verdicts.evaluation import Written, value_text


def test_what_is_written_in_points_or_percent_lies_within_one():
    within = [m for m in METRICS if m.unit != "plain"]
    assert len(within) > 20
    assert all(-1 <= low <= high <= 1 for low, high in (m.bounds for m in within))


def test_what_may_lie_on_both_sides_of_zero_is_best_there():
    # Written with a plus sign for that reason.
    points = [m for m in METRICS if m.unit == "points"]
    assert {m.key for m in points if m.direction == "zero"} == {
        m.key for m in points if m.bounds[0] < 0 < m.bounds[1] and m.key != "ce_l1_unbiased"
    }  # an estimate without bias may fall below 0, which is no better than 0


@pytest.mark.slow
@pytest.mark.parametrize("n", [150, 600, 5_000, 30_000])
@pytest.mark.parametrize("power", [0.7, 0.97, 1.6])
@pytest.mark.parametrize("kind", ["top-label", "positive"])
def test_an_ece_is_written_the_same_everywhere(n, power, kind):
    rng = np.random.default_rng(n)
    p = rng.beta(2, 2, n)
    odds = (p / (1 - p)) ** power
    data = calviz.Predictions(probs=p, labels=rng.random(n) < odds / (1 + odds))
    e = calviz.evaluate(data, ["ece", "mcs"], findings=True, ci=True, reduction=kind)
    card = Written(e["ece"]).value
    (messages,) = (f.message for f in e.findings if f.code == "CAL001")
    if e.verdict.reduction == kind:
        assert f"ECE {card} points where" in messages
        matches = re.findall(r"ECE ([\d.]+) points where", e.verdict.sentence)
        assert set(matches) <= {card}
        floor = Written(e["ece"]).of(e["ece"].noise_floor.mean)
        assert f"would show {floor} on average" in messages
    assert value_text("ece", e["ece"].value) == f"{card} points"
    drawn = Reliability.compute(data, reduction=kind)
    assert points_text(drawn.ece) == f"{card} points"


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        ("accuracy", 1.0, "100.0 %"),
        ("ece", 0.1234, "12.3 points"),
        ("ece", 0.00039, "0.04 points"),
        ("mcs", -0.154, "−15.4 points"),
        ("nll", 1.2345, "1.234"),
        ("aurc", 0.00535, "0.00535"),
        ("nll", float("nan"), "no value"),
    ],
)
def test_values_in_sentences(metric, value, text):
    assert value_text(metric, value) == text
