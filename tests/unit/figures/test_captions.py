"""The caption that a picture may carry."""

import plotly.graph_objects as go

from calviz.figures.marks import captioned


def test_the_drawing_keeps_its_size_and_the_caption_stands_above_it():
    drawn = go.Figure(layout={"height": 300, "margin": {"t": 20}})
    captioned(drawn, ["Title", "3 rows"])
    assert drawn.layout.height - drawn.layout.margin.t == 300 - 20
    (label,) = drawn.layout.annotations
    assert label.text == "<b>Title</b><br>3 rows"
    assert (label.y, label.yanchor, label.yshift) == (1, "bottom", 20)
    assert drawn.layout.margin.t - label.yshift >= 2 * label.font.size


def test_names_are_shown_as_they_are():
    drawn = captioned(go.Figure(), ["<b>bold</b> $x$"])
    assert drawn.layout.annotations[0].text == "<b>&lt;b&gt;bold&lt;/b&gt; &#36;x&#36;</b>"


def test_without_lines_nothing_changes():
    drawn = go.Figure(layout={"height": 300})
    assert captioned(drawn, []).to_dict() == go.Figure(layout={"height": 300}).to_dict()


def test_long_lines_are_broken():
    drawn = captioned(go.Figure(), ["one · two · three"], characters=12)
    assert drawn.layout.annotations[0].text == "<b>one · two</b><br>three"
    assert drawn.layout.height == 450 + 2 * 19 + 8
