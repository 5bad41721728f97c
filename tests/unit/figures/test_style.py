"""What figures share."""

import json

import plotly.graph_objects as go
import pytest

from calviz.core.words import plotly_text
from calviz.figures.style import PALETTES, axis, layout, plot_config


def test_config_sends_nothing_and_has_no_logo():
    config = plot_config("my figure")
    assert config["displaylogo"] is False
    assert config["showSendToCloud"] is False
    assert config["toImageButtonOptions"] == {"format": "png", "filename": "my-figure", "scale": 3}
    assert plot_config(image="svg")["toImageButtonOptions"]["format"] == "svg"
    json.dumps(config)


def test_config_is_one_that_plotly_knows():
    # An unknown option is a warning, and so an error here.
    go.Figure().to_html(config=plot_config("x"), include_plotlyjs=False)


@pytest.mark.parametrize(
    ("name", "file"), [("../../etc/passwd", "etc-passwd"), ("a/b\\c:d", "a-b-c-d"), ("…", "calviz")]
)
def test_file_names_are_harmless(name, file):
    assert plot_config(name)["toImageButtonOptions"]["filename"] == file


def test_text_from_a_file_is_text():
    assert plotly_text("<b>&$") == "&lt;b&gt;&amp;&#36;"
    assert plotly_text("a\nb\u202ec", 60) == "a b c"
    assert len(plotly_text("x" * 100, limit=10)) == 10


def test_layout_and_axis_are_plotly_layouts():
    palette = PALETTES["dark"]
    figure = go.Figure(layout=layout(palette, xaxis=axis(palette, range=[0, 1])))
    assert figure.layout.paper_bgcolor == palette.paper
    assert palette.tint(palette.blue, 0) == palette.paper
    assert palette.tint(palette.blue, 1).lower() == palette.blue.lower()
