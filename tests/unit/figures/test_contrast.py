"""Contrast of the theme and of the figures: 4.5 for text, 3 for marks (WCAG 2.1, success criteria 1.4.3 and 1.4.11)."""

import re
import tomllib
from pathlib import Path

import pytest

from calviz.figures.style import PALETTES
from tests.inputs.contrast import contrast, parts

ROOT = Path(__file__).parents[3]
THEMES = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text())["theme"]
#: How much of the text's colour streamlit gives to captions and to the icons of the navigation.
FADED = 0.6


def test_the_ratio_is_that_of_the_standard():
    assert contrast([0, 0, 0], [255, 255, 255]) == pytest.approx(21)
    # The usual example of the lightest grey that reads on white.
    assert contrast(parts("#767676"), [255, 255, 255]) == pytest.approx(4.54, abs=0.005)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_all_text_reads(theme):
    colours = THEMES[theme]
    text = parts(colours["textColor"])
    for name in ("backgroundColor", "secondaryBackgroundColor"):
        back = parts(colours[name])
        faded = [FADED * t + (1 - FADED) * b for t, b in zip(text, back, strict=True)]
        assert contrast(text, back) >= 4.5
        assert contrast(faded, back) >= 4.5, name
        for colour in ("linkColor", "blueColor", "greenColor", "redColor", "violetColor"):
            assert contrast(parts(colours[colour]), back) >= 4.5, (name, colour)
        # What is filled with the primary colour, such as a switch.
        assert contrast(parts(colours["primaryColor"]), back) >= 3, name
    # The primary colour is written on the background, and the background's colour on the primary colour; its ticks are white.
    primary, back = parts(colours["primaryColor"]), parts(colours["backgroundColor"])
    assert contrast(primary, back) >= 4.5
    # A chosen segment has a tenth of the primary colour behind it.
    tinted = [0.1 * p + 0.9 * b for p, b in zip(primary, back, strict=True)]
    assert contrast(primary, tinted) >= 4.5
    assert contrast([255, 255, 255], primary) >= 3


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_figures_read_and_their_marks_stand_out(theme):
    palette = PALETTES[theme]
    paper = parts(palette.paper)
    assert palette.paper == THEMES[theme]["backgroundColor"]
    for colour in (palette.ink, palette.muted):
        assert contrast(parts(colour), paper) >= 4.5
    for colour in ("blue", "vermillion", "green", "purple", "neutral"):
        least = 5 if theme == "dark" else 3
        assert contrast(parts(getattr(palette, colour)), paper) >= least, colour
    # What is grey because it is only compared with must still be seen.
    haze = [int(part) for part in re.findall(r"\d+", palette.calibrated)[:3]]
    mixed = [b + palette.haze * (h - b) for h, b in zip(haze, paper, strict=True)]
    assert contrast(mixed, paper) >= 1.3
