"""Figures beside each other, as a paper prints them."""

import json
import re

import numpy as np
import pytest

import calviz
from calviz.core.entry_specs import FIGURES
from calviz.core.errors import OptionError
from calviz.figures.style import PALETTES
from calviz.report.document import Panel, caption_of, to_sheet


@pytest.fixture(scope="module")
def panels():
    rng = np.random.default_rng(0)
    p = calviz.Predictions(
        probs=rng.dirichlet([1, 1, 1], 90), labels=np.arange(90) % 3, name="</script><b>x"
    )
    return [Panel(FIGURES[key].compute(p)) for key in ("reliability", "risk-coverage", "corp")]


def spec_of(html):
    return json.loads(re.search(r'id="spec">(.*?)</script>', html, re.S)[1])


def test_panels_have_letters_one_caption_and_the_width_of_a_paper(panels):
    html = to_sheet([*panels[:2], Panel(panels[2].figure, wide=True)], columns=2, caption=True)
    spec = spec_of(html)
    assert spec["letters"] == "abc"
    # Letters of 12 pixels are 7 points high: 12 / 96 inches, of 72 points, smaller by the same factor on both widths.
    assert 12 * spec["inches"] / spec["width"] * 72 == pytest.approx(7, abs=0.1)
    first, second, third = (panel["width"] for panel in spec["panels"])
    assert first == second == (spec["width"] - spec["gap"]) // 2
    assert third == spec["width"]
    assert spec["caption"] == caption_of(panels)
    for letter, panel in zip("abc", panels, strict=True):
        assert f"({letter}) {panel.figure.describe()}"[:60] in spec["caption"]
    assert "</script><b>x" not in html


def test_one_panel_has_no_letter_and_no_grey(panels):
    spec = spec_of(to_sheet(panels[:1]))
    assert spec["letters"] == "" == spec["caption"]
    assert 12 * spec["inches"] / spec["width"] * 72 == pytest.approx(7, abs=0.1)
    drawn = spec["panels"][0]["figure"]
    fills = [t.get("fillcolor") for t in drawn["data"]]
    assert PALETTES["light"].calibrated not in fills
    assert PALETTES["light"].calibrated in [
        t.fillcolor for t in panels[0].figure.plot().data if t.type == "scatter"
    ]
    assert drawn["layout"]["xaxis"]["showgrid"] is False


def test_no_panels_and_odd_widths_are_refused(panels):
    with pytest.raises(OptionError, match="1 to 26 panels, got 0"):
        to_sheet([])
    with pytest.raises(OptionError, match="1 or 2 columns wide, got 3"):
        to_sheet(panels, columns=3)


def test_the_page_around_the_paper_follows_the_theme_and_the_figure_does_not(panels):
    light, dark = (to_sheet(panels[:1], theme=theme) for theme in ("light", "dark"))
    assert f"background: {PALETTES['dark'].paper}" in dark
    assert f"background: {PALETTES['light'].paper}" in light
    assert spec_of(dark) == spec_of(light)
