"""Escaping and number formats."""

import html
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from calviz.app.session import md
from calviz.core.words import distinct, file_size, number, shorten
from calviz.sample.error_bars import Interval, NoiseFloor
from calviz.sample.metric_results import MetricResult
from calviz.verdicts.evaluation import Written

JOINER = "\u2060"


@pytest.mark.slow
@given(st.text(max_size=80))
def test_escaped_text_reads_as_it_was(text):
    shown = html.unescape(md(text)).replace(JOINER, "")
    assert shown == shorten(text, 400)


@given(st.text(max_size=80))
def test_escaped_text_has_no_markdown_in_it(text):
    escaped = md(text)
    left = html.unescape(escaped) if "&" not in escaped else escaped
    for sign in "<>[]()!*_`$\\{}|~":
        assert sign not in left.replace("&#", "")


@pytest.mark.parametrize(
    "hostile", [":material/home:", ":red[x]", ":smile:", "http://example.org", "www.example.org"]
)
def test_notations_that_are_read_after_entities_are_broken_up(hostile):
    assert hostile not in html.unescape(md(hostile))


def test_plain_takes_away_what_cannot_be_seen_and_cuts_what_is_long():
    assert shorten("a\u202eb\u0000c\n\td", 60) == "a b c d"
    assert shorten("x" * 100, 10) == "x" * 9 + "…"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.123456, "0.123"),
        (12.3456, "12.3"),
        (1234.5, "1,234"),
        (-0.5, "−0.500"),
        (0.0, "0.00"),
        (0.00001, "0.0000"),
        (math.nan, "–"),
        (math.inf, "∞"),
    ],
)
def test_numbers_have_three_significant_digits_and_a_true_minus(value, text):
    assert number(value) == text


def test_an_ece_is_written_in_points_with_its_interval_and_noise_floor():
    floor = NoiseFloor(mean=0.0112, q95=0.016, p_value=0.001)
    written = Written(MetricResult("ece", 0.053716, Interval(0.0479, 0.0602), floor))
    assert (written.value, written.unit_words) == ("5.37", "points")
    assert written.interval(written.result.interval) == "95\u00a0% interval 4.79\u00a0to\u00a06.02"
    assert "above noise" in written.noise(tail="upper")
    assert "1.60" in written.noise(tail="upper")


def test_a_signed_metric_shows_its_sign_and_an_accuracy_its_unit():
    assert Written(MetricResult("mcs", 0.0475)).value == "+4.75"
    assert Written(MetricResult("mcs", -0.0475)).value == "−4.75"
    assert Written(MetricResult("mcs", 0.123)).of(0.0004) == "0.0"
    assert Written(MetricResult("accuracy", 0.92345)).value == "92.3\u00a0%"
    assert Written(MetricResult("nll", 0.905)).value == "0.905"


def test_what_has_no_interval_says_so():
    assert "No interval" in Written(MetricResult("ece", 0.1)).interval(None)


def test_sizes():
    assert [file_size(n) for n in (53, 12_345, 200_000_000, 2_500_000_000)] == [
        "53 bytes",
        "12.3 kB",
        "200 MB",
        "2.5 GB",
    ]


def test_shortened_names_stay_apart():
    names = ("x" * 100 + "a", "x" * 100 + "b", "")
    shown = distinct(names)
    assert len(set(shown.values())) == 3
    assert all(len(text) <= 66 for text in shown.values())
