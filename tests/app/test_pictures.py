"""Numbers as pictures, the names of pictures, and where a page leads."""

import re
from urllib.parse import unquote

import plotly.graph_objects as go
import pytest

from calviz.app import screen
from calviz.figures import hundred_squares as drawing
from calviz.figures.marks import Sheet
from calviz.figures.style import PALETTES
from calviz.sample.error_bars import Interval, NoiseFloor
from calviz.sample.metric_results import MetricResult


def places(result):
    """Shares of the width: the value, the ends of the interval, and what is grey."""
    drawn = drawing.svg(drawing.Bullet.of(result), PALETTES["light"])
    blue, grey = PALETTES["light"].blue, PALETTES["light"].neutral

    def marks(pattern, colour):
        matches = re.findall(rf'd="{pattern}"[^>]* stroke="{colour}"', drawn)
        return [float(m) if isinstance(m, str) else tuple(map(float, m)) for m in matches]

    (value,), (ends,) = marks(r"M([\d.]+) 1V21", blue), marks(r"M([\d.]+) 11H([\d.]+)", blue)
    range_ = marks(r"M([\d.]+) 3V19H([\d.]+)V3Z", grey)
    return value, ends, marks(r"M([\d.]+) 3V19", grey), range_


@pytest.mark.parametrize("scale", [1e-4, 0.1, 1.0])
def test_a_bullet_stands_where_its_numbers_are(scale):
    def at(x):
        return x * scale

    error = MetricResult(
        "ece", at(0.6), Interval(at(0.5), at(0.8)), NoiseFloor(at(0.1), at(0.2), 0.001)
    )
    value, (low, high), mean, ((left, right),) = places(error)
    # An error's grey begins at 0; lengths are in proportion.
    assert (left, mean) == (0, [])
    unit = right / 0.2
    assert value == pytest.approx(0.6 * unit, abs=0.05)
    assert (low, high) == (pytest.approx(0.5 * unit, abs=0.05), pytest.approx(0.8 * unit, abs=0.05))
    assert high < 200
    two_sided = MetricResult(
        "mcs", at(0.6), Interval(at(0.5), at(0.8)), NoiseFloor(0.0, at(0.2), 0.001)
    )
    value, (low, high), (zero,), none = places(two_sided)
    assert none == []
    assert (value - zero) / (high - low) == pytest.approx(0.6 / 0.3, rel=0.01)


def test_a_column_of_bullets_has_one_scale_with_zero_on_it():
    given = [drawing.Bullet(2.0, (1.0, 3.0), (-1.0, 1.0)), None, drawing.Bullet(-4.0)]
    palette = PALETTES["light"]
    first, none, second = drawing.column(given, palette)
    assert none is None
    assert not set("#<> ") & set(first)
    at = []
    for address in (first, second):
        cell = unquote(address)
        upright = [
            (float(x), colour)
            for x, colour in re.findall(r"d='M([\d.]+) \dV\d+' stroke='(#\w+)'", cell)
        ]
        zero, value = (
            next(x for x, colour in upright if colour == c) for c in (palette.muted, palette.blue)
        )
        at.append((zero, value))
    assert at[0][0] == at[1][0]
    # Two to the right of 0, and four to its left.
    assert at[0][1] - at[0][0] == pytest.approx((at[1][0] - at[1][1]) / 2, abs=0.11)


@pytest.mark.parametrize("width", [88, 124])
def test_a_picture_is_not_wider_than_its_column(width):
    (cell,) = screen.picture_column([drawing.Bullet(2.0, (1.0, 3.0))], width=width)
    wide, tall = map(int, re.findall(r"(?:width|height)='(\d+)'", unquote(cell))[:2])
    # Streamlit draws it 29 pixels high: 35 less 3 above and 3 below.
    assert width - 2 <= wide * 29 / tall <= width


def test_a_bullet_says_in_words_what_it_shows():
    error = MetricResult("ece", 0.06, Interval(0.05, 0.08), NoiseFloor(0.01, 0.02, 0.001))
    said = drawing.words(error, "above noise: <b>")
    assert said == "ECE 6.00; 95\u00a0% interval 5.00\u00a0to\u00a08.00; above noise: <b>."
    assert PALETTES["dark"].blue in drawing.svg(drawing.Bullet.of(error), PALETTES["dark"])


def test_a_wide_page_reserves_no_line_that_its_legend_does_not_need(monkeypatch):
    names = [f"A series with a name, {i}" for i in range(4)]
    sheet = Sheet(PALETTES["light"])

    def height(size):
        monkeypatch.setattr(screen, "width_class", lambda: size)
        traces = [{"type": "scatter", "x": [0], "y": [0], "name": name} for name in names]
        drawing = go.Figure(sheet.picture(traces, inner=300, margins=(60, 20, 20, 50)))
        return screen.as_wide_as_the_page(drawing).layout.height

    assert height("wide") < height("usual")
