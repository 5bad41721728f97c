"""The reliability diagram: what is drawn is what is measured, in both themes, and names from files are text."""

import re

import numpy as np
import plotly.io as pio
import pytest

import calviz
from calviz.core.errors import OptionError
from calviz.core.events import Reduction
from calviz.figures.reliability import Reliability, ReliabilityOverlay
from calviz.figures.style import PALETTES
from tests.inputs.figure_parts import contrast, parts, texts
from tests.inputs.reliability import binary, drawn, multiclass, rare


def of_type(picture, kind, yaxis="y"):
    return [t for t in picture["data"] if t["type"] == kind and (t.get("yaxis") or "y") == yaxis]


def values(array):
    """A plotly array, which may be packed as base64."""
    if isinstance(array, dict):
        import base64

        return np.frombuffer(base64.b64decode(array["bdata"]), array["dtype"]).astype(float)
    return np.array(array, dtype=float)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_drawing_is_square(theme):
    layout = drawn(Reliability.compute(binary(100)), theme=theme)["layout"]
    x, y = layout["xaxis"], layout["yaxis"]
    assert x["range"] == y["range"] == [-0.035, 1.035]
    assert (y["scaleanchor"], y["scaleratio"]) == ("x", 1)
    assert x["constrain"] == y["constrain"] == "domain"
    assert layout["yaxis2"]["anchor"] == "x"


def test_what_is_drawn_is_the_frame():
    figure = Reliability.compute(binary(500, slope=1.5), reduction="positive", bins=9)
    frame, picture = figure.frame(), drawn(figure, marks="bars")
    bars = of_type(picture, "bar")
    np.testing.assert_allclose(values(bars[0]["y"]), frame["observed"])
    np.testing.assert_allclose(values(bars[0]["width"]), frame["high"] - frame["low"])
    gaps = [b for b in bars if b.get("name", "").endswith("(gap)")]
    assert [values(b["y"]).size for b in gaps] == [(frame.gap > 0).sum(), (frame.gap < 0).sum()]
    high = frame[frame.gap > 0]
    np.testing.assert_allclose(values(gaps[0]["base"]) + values(gaps[0]["y"]), high["mean_score"])
    assert frame["rows"].min() >= 20
    (points,) = [t for t in of_type(picture, "scatter") if t["mode"] == "markers"]
    np.testing.assert_allclose(values(points["x"]), frame["mean_score"])
    np.testing.assert_allclose(
        values(points["y"]) + values(points["error_y"]["array"]), frame["ci_high"]
    )
    np.testing.assert_allclose(
        values(points["y"]) - values(points["error_y"]["arrayminus"]), frame["ci_low"], atol=1e-15
    )
    histogram = of_type(picture, "bar", "y2")[0]
    np.testing.assert_allclose(values(histogram["y"]), 100 * frame["share"])


def test_bars_and_points_carry_their_bin():
    figure = Reliability.compute(binary(60), reduction="positive", bins=40)
    assert figure.bin.size < 40
    for marks, count in (("points", 4), ("bars", 5)):
        picture = drawn(figure, marks=marks)
        clickable = [t for t in picture["data"] if t.get("hoverinfo") == "text"]
        # Bars and the space above, points (all of few rows), histogram and the space above; points have the whole height.
        assert len(clickable) == count
        for trace in clickable:
            assert values(trace["customdata"]).tolist() == figure.bin.tolist()


def test_a_bin_with_nothing_observed_can_be_hit():
    p = calviz.Predictions(probs=np.full(20, 0.3), labels=np.zeros(20, int))
    bars = of_type(
        drawn(Reliability.compute(p, reduction="positive", bins=10), marks="bars"), "bar"
    )
    covered = sorted(
        (values(b["base"])[0], values(b["base"])[0] + values(b["y"])[0]) for b in bars[:2]
    )
    assert covered == [(0, 0), (1, 0)]


def test_gaps_differ_in_pattern_and_name_not_only_in_colour():
    picture = drawn(Reliability.compute(binary(500, slope=2), reduction="positive"), marks="bars")
    gaps = [b for b in of_type(picture, "bar") if b.get("name", "").endswith("(gap)")]
    assert {b["marker"]["pattern"]["shape"] for b in gaps} == {"/", "\\"}
    assert len({b["name"] for b in gaps}) == 2


def test_points_carry_their_gap_and_fade_where_rows_are_few():
    score = np.repeat([0.25, 0.75, 0.95], [400, 400, 10])
    labels = np.concatenate([np.arange(400) < 40, np.arange(400) < 380, np.arange(10) < 5])
    figure = Reliability.compute(
        calviz.Predictions(probs=score, labels=labels.astype(int)), reduction="positive", bins=10
    )
    picture = drawn(figure)
    solid, few = [t for t in of_type(picture, "scatter") if t["mode"] == "markers"]
    assert values(solid["x"]).tolist() == [0.25, 0.75]
    assert values(few["x"]).tolist() == pytest.approx([0.95])
    assert few["name"] == "Fewer than 20 rows"
    white = parts("#ffffff")
    faded, full = (contrast(parts(trace["marker"]["color"]), white) for trace in (few, solid))
    assert faded < full
    # Areas go by rows, down to what can be seen.
    small, large = values(few["marker"]["size"])[0], values(solid["marker"]["size"])
    assert small < large[0] == large[1]
    stems = [t for t in of_type(picture, "scatter") if t.get("name", "").endswith("(gap)")]
    ends = {
        (round(x, 2), round(a, 2), round(b, 2))
        for t in stems
        for x, a, b in zip(
            values(t["x"])[::3], values(t["y"])[::3], values(t["y"])[1::3], strict=True
        )
    }
    assert ends == {(0.25, 0.1, 0.25), (0.75, 0.95, 0.75), (0.95, 0.5, 0.95)}
    # The range lies behind everything; bars would cover it.
    for marks, first in (("points", "95 % range if calibrated"), ("bars", "Perfect calibration")):
        assert (
            of_type(drawn(figure, marks=marks), "scatter")[0]["name"].replace("\xa0", " ") == first
        )
    with pytest.raises(OptionError, match="one of points, bars"):
        figure.plot(marks="circles")


def test_the_worst_bin_is_named_in_the_picture_only_beyond_noise():
    score = np.repeat([0.25, 0.75], 400)
    hits = np.concatenate([np.arange(400) < 100, np.arange(400) < 380])
    data = calviz.Predictions(probs=score, labels=hits.astype(int))
    off = Reliability.compute(data, reduction="positive", bins=10)
    (named,) = [a["text"] for a in drawn(off)["layout"]["annotations"] if "on these" in a["text"]]
    assert named == "<b>□ about 19.5 points</b><br>too low on new rows<br>(20.0 on these 400 rows)"
    assert "about 19.5 points too low (20.0 on these 400 rows)" in off.describe()
    # A frame around its point says which it is; no line, which would look like an interval.
    (at,) = [(a["x"], a["y"]) for a in drawn(off)["layout"]["annotations"] if "bordercolor" in a]
    assert at == pytest.approx((0.75, 0.95))
    assert not [a for a in drawn(off)["layout"]["annotations"] if a["showarrow"]]
    fair = Reliability.compute(binary(400), reduction="positive")
    assert not [
        a
        for a in drawn(fair)["layout"]["annotations"]
        if "on these" in a["text"] or "bordercolor" in a
    ]


def test_a_curve_is_faint_where_it_rests_on_few_rows():
    rng = np.random.default_rng(0)
    score = np.append(rng.uniform(0.8, 1, 2_000), [0.1, 0.12])
    p = calviz.Predictions(probs=score, labels=(rng.random(score.size) < score).astype(int))
    figure = Reliability.compute(p, reduction="positive", curves=("kernel",))
    faint, solid = [t for t in drawn(figure)["data"] if t.get("name") == "Kernel-smoothed"]
    at = values(solid["x"])
    drawn_at = ~np.isnan(values(solid["y"]))
    assert not drawn_at[at < 0.5].any()
    assert drawn_at[at > 0.85].all()
    assert faint["showlegend"] is False


def test_the_legend_names_no_gap_that_a_point_covers():
    # Of 10,000 rows each, 7.7 and 0.01 points off.
    score = np.repeat([0.25, 0.75], 10_000)
    hits = np.concatenate([np.arange(10_000) < 1_730, np.arange(10_000) < 7_501])
    data = calviz.Predictions(probs=score, labels=hits.astype(int))
    traces = drawn(Reliability.compute(data, reduction="positive", bins=10))["data"]
    named = {t["name"] for t in traces if t.get("name", "").endswith("(gap)") and t["showlegend"]}
    assert named == {"Forecast too high (gap)"}


def test_only_top_label_is_called_confident():
    p = binary(300, slope=2)
    for reduction, word in (("top-label", "Overconfident"), ("positive", "Forecast too high")):
        names = {t.get("name") for t in drawn(Reliability.compute(p, reduction=reduction))["data"]}
        assert f"{word} (gap)" in names


def test_a_selected_bin_is_marked_in_both_parts():
    figure = Reliability.compute(binary(100), bins=10)
    plain, marked = (drawn(figure, selected=s)["layout"]["shapes"] for s in (None, 7))
    new = [s for s in marked if s not in plain]
    assert [(s["x0"], s["x1"]) for s in new] == [(0.7, 0.8), (0.7, 0.8)]
    assert {s["yref"] for s in new} == {"y domain", "y2 domain"}
    assert drawn(figure, selected=99)["layout"]["shapes"] == plain


def test_caption_names_what_is_shown():
    p = multiclass()
    figure = Reliability.compute(p, split="test")
    text = " ".join(figure.caption())
    for part in (
        "predictions",
        "split test",
        "400 rows",
        "top label",
        "15 equal-width bins",
        "ECE 0.",
    ):
        assert part in text
    annotations = drawn(figure, caption=True)["layout"]["annotations"]
    assert sum("ECE" in a["text"] for a in annotations) == 1
    assert any(
        "my text" in a["text"] for a in drawn(figure, caption="my text")["layout"]["annotations"]
    )
    assert not any("ECE" in a["text"] for a in drawn(figure)["layout"]["annotations"])


def test_height_follows_a_known_width():
    figure = Reliability.compute(binary(100))
    heights = [drawn(figure, width=w)["layout"]["height"] for w in (350, 420, 700, 1_200)]
    assert heights[0] < heights[1] < heights[2]
    assert heights[3] <= heights[2]  # the square stays as it is, the legend has more room


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_default_template_changes_nothing(theme):
    figure = Reliability.compute(binary(100))
    before = drawn(figure, theme=theme)
    old = pio.templates.default
    try:
        pio.templates.default = "plotly_dark"
        assert drawn(figure, theme=theme) == before
    finally:
        pio.templates.default = old
    assert before["layout"]["paper_bgcolor"] == PALETTES[theme].paper


HOSTILE = '<b>x</b><img src=x onerror=alert(1)><a href="http://e.vil">&amp;</a>$x$<br>'


def test_names_from_files_are_text():
    rng = np.random.default_rng(0)
    p = calviz.Predictions(
        probs=rng.dirichlet([1, 1, 1], 100),
        labels=rng.integers(3, size=100),
        class_names=(HOSTILE, "b" * 5_000, "c"),
        splits=np.full(100, HOSTILE),
        name=HOSTILE,
    )
    for name in p.class_names[:2]:
        figure = Reliability.compute(
            p, reduction=Reduction("class", class_name=name), split=HOSTILE
        )
        picture = drawn(figure, caption=True)
        result = list(texts(picture))
        tags = {tag for text in result for tag in re.findall(r"<[^>]*>?", text)}
        own = {"<b>", "</b>", "<br>", "</span>"}
        assert {t for t in tags if not t.startswith('<span style="color:#')} <= own
        assert not any("$" in text for text in result)
        assert max(map(len, result)) < 1_000
        assert len(figure.describe()) < 800


def test_escaped_text_reads_as_it_was():
    p = calviz.Predictions(probs=np.full(40, 0.4), labels=np.arange(40) % 2, name="a < b & c")
    annotations = drawn(Reliability.compute(p), caption=True)["layout"]["annotations"]
    assert any("a &lt; b &amp; c" in a["text"] for a in annotations)


def _label_and_points(share_of_hits):
    """Corner of the label of the worst bin, and the points of all bins, for bins of 200 rows with given shares of hits."""
    score = np.repeat((np.arange(10) + 0.5) / 10, 200)
    hits = np.round(200 * np.asarray(share_of_hits)).astype(int)
    labels = np.concatenate([np.arange(200) < k for k in hits]).astype(int)
    figure = Reliability.compute(
        calviz.Predictions(probs=score, labels=labels), reduction="positive", bins=10
    )
    (label,) = [a for a in figure.plot().layout.annotations if "points</b><br>too" in a.text]
    return label.xanchor, label.text


def test_the_label_of_the_worst_bin_covers_no_points():
    # All bins too low, the points of the first ones near 1: the upper left corner is full, the lower right one is free.
    low = [0.5, 0.9, 0.97, 0.98, 0.99, 0.99, 0.99, 0.99, 0.99, 0.99]
    assert _label_and_points(low)[0] == "right"
    # Mildly too low: the upper left corner is free, and nearer.
    mild = np.minimum((np.arange(10) + 0.5) / 10 + 0.15, 0.99)
    corner, text = _label_and_points(mild)
    assert corner == "left"
    assert "too low" in text
    # The mirror image, too high: the lower right corner is full.
    assert _label_and_points(1 - np.asarray(low)[::-1])[0] == "left"


# ---- Rare events


@pytest.mark.parametrize("marks", ["points", "bars"])
def test_the_axes_end_where_rare_events_do_and_it_is_said(marks):
    figure = Reliability.compute(rare(), reduction="positive", scheme="equal-mass")
    picture = drawn(figure, marks=marks, floor=0.0)
    layout = picture["layout"]
    end = layout["xaxis"]["range"][1] / 1.035
    shown = max(figure.mean_score.max(), figure.interval[1].max())
    assert shown <= end <= 1.6 * shown < 0.1
    assert layout["yaxis"]["range"] == layout["xaxis"]["range"]
    notes = [a["text"] for a in layout["annotations"]]
    assert f"Both axes from 0 to {end:.3g}" in notes
    # The last bin of equal mass goes on to 1.
    assert figure.high[-1] == 1
    for bar in of_type(picture, "bar"):
        assert (values(bar["x"]) + values(bar["width"]) / 2).max() <= end + 1e-9
    whole = drawn(figure, marks=marks, whole=True)["layout"]
    assert whole["xaxis"]["range"] == [-0.035, 1.035]
    assert not [a for a in whole["annotations"] if "Both axes" in a["text"]]


def _fraud() -> calviz.Predictions:
    """A rare event: scores from 0.0001 to 0.1, calibrated; no row of the lowest tenth is a hit."""
    rng = np.random.default_rng(3)
    score = 10 ** rng.uniform(-4, -1, 20_000)
    hit = (rng.random(score.size) < score) & (score > 2e-4)
    return calviz.Predictions(probs=score, labels=hit.astype(int))


def test_few_rows_do_not_decide_where_the_axes_end():
    score = np.append(np.full(500, 0.1), [0.7, 0.8])
    p = calviz.Predictions(probs=score, labels=np.append(np.arange(500) % 10 == 0, [1, 1]))
    figure = Reliability.compute(p, reduction="positive", scheme="equal-width", band=False)
    assert figure.end() < 0.4
    notes = [a.text for a in figure.plot().layout.annotations]
    assert f"Both axes from 0 to {figure.end():.3g}; the points of 2 rows lie beyond" in notes
    drawn = [t for t in figure.plot().data if getattr(t, "mode", "") == "markers"]
    assert sum(len(t.x) for t in drawn) == 1
    # Bins that are off, or of more rows, are never left out.
    more = calviz.Predictions(
        probs=np.append(np.full(200, 0.1), np.full(8, 0.8)),
        labels=np.append(np.arange(200) % 10 == 0, np.zeros(8)).astype(int),
    )
    assert Reliability.compute(more, reduction="positive", band=False).end() == 1


def test_axes_of_a_rare_event_are_logarithmic_and_bins_without_hits_lie_on_the_edge():
    figure = Reliability.compute(_fraud(), reduction="positive", bins=10, scheme="equal-mass")
    assert figure.floor() == pytest.approx(1e-4)
    picture = drawn(figure)
    layout = picture["layout"]
    for axis in ("xaxis", "yaxis"):
        assert layout[axis]["tickvals"] == pytest.approx([-4, -3, -2, -1])
        assert layout[axis]["ticktext"] == ["0.0001", "0.001", "0.01", "0.1"]
    low, high = layout["xaxis"]["range"]
    assert low < -4
    assert 10**high > figure.interval[1].max()
    assert f"Both axes logarithmic, from 0.0001 to {figure.end():.3g}" in [
        a["text"] for a in layout["annotations"]
    ]
    points, edge = (t for t in of_type(picture, "scatter") if "error_y" in t)
    none = figure.observed == 0
    assert none.sum() == 1
    assert edge["marker"]["symbol"] == "triangle-down-open"
    for trace, which in ((points, ~none), (edge, none)):
        np.testing.assert_array_equal(values(trace["customdata"]), figure.bin[which])
        np.testing.assert_allclose(values(trace["x"]), np.log10(figure.mean_score[which]))
        high = values(trace["y"]) + values(trace["error_y"]["array"])
        np.testing.assert_allclose(high, np.log10(figure.interval[1][which]))
    np.testing.assert_allclose(values(points["y"]), np.log10(figure.observed[~none]))
    # From the edge to the exact upper bound.
    assert (values(edge["y"]), values(edge["error_y"]["arrayminus"])) == (-4, 0)
    (line,) = [t for t in picture["data"] if t.get("name") == "Perfect calibration"]
    assert values(line["x"]).tolist() == values(line["y"]).tolist() == [-4, 0]
    # Other rows have no mark there, and no line to it.
    beside = drawn(figure, beside=[figure.overlay("Before", "before")])["data"]
    (other,) = [t for t in beside if t.get("name") == "Before"]
    np.testing.assert_array_equal(np.isnan(values(other["y"])), none)
    for bar in of_type(picture, "bar"):
        ends = values(bar["x"]) + np.outer([-0.5, 0.5], values(bar["width"]))
        assert ends.min() >= -4
        assert ends.max() <= np.log10(figure.end()) + 1e-9
        np.testing.assert_array_equal(values(bar["customdata"]), figure.bin)


def test_axes_are_linear_where_the_event_or_the_points_are_not_at_0():
    assert drawn(Reliability.compute(binary(500)))["layout"]["xaxis"]["tickmode"] == "linear"
    # Of equal width, 14 of 15 bins lie above a tenth of the axis.
    score = np.repeat(np.linspace(0.001, 0.999, 300), 2)
    rows = calviz.Predictions(probs=score, labels=np.arange(score.size) % 40 == 0)
    assert Reliability.compute(rows, reduction="positive").floor() == 0
    fraud = Reliability.compute(_fraud(), reduction="positive", scheme="equal-mass")
    assert drawn(fraud, whole=True)["layout"]["xaxis"]["range"] == [-0.035, 1.035]


def test_no_point_lies_beyond_the_axes():
    # 30 rows of 20,000 are forecast at 0.3: all other rows lie in the first of ten bins.
    data = rare()
    probs = np.minimum(data.probs[:, 1], 0.09)
    probs[:30] = 0.3
    data = calviz.Predictions(probs=probs, labels=data.labels)
    figure = Reliability.compute(data, reduction="positive", bins=10, scheme="equal-width")
    x = drawn(figure)["layout"]["xaxis"]["range"][1]
    assert 0.3 < x < 0.45
    other = ReliabilityOverlay("Before", "before", *np.full((2, 1), 0.6), np.array([50.0]))
    assert drawn(figure, beside=[other])["layout"]["xaxis"]["range"][1] == 1.035
    small = figure.plot_small(), figure.plot_small(end=1.0)
    assert [round(s.layout.xaxis.range[1], 3) for s in small] == [round(x, 3), 1.035]


def test_diagrams_beside_each_other_end_at_the_same_score():
    figure = Reliability.compute(
        calviz.Predictions(probs=np.full(100, 0.1), labels=np.arange(100) < 10)
    )
    own, other = figure.end(), 0.3
    assert own < other
    ends = [drawn(figure, end=end)["layout"]["xaxis"]["range"][1] for end in (own, other)]
    assert ends == pytest.approx([1.035 * own, 1.035 * other])


def test_histograms_beside_each_other_have_one_scale():
    one, two = (Reliability.compute(binary(500), bins=bins) for bins in (4, 20))
    axes = one.shared_axes(two)
    assert axes == two.shared_axes(one)
    tops = [drawn(f, **axes)["layout"]["yaxis2"]["range"][1] for f in (one, two)]
    assert tops[0] == tops[1] > drawn(two)["layout"]["yaxis2"]["range"][1]


def test_a_third_of_a_tablet_has_room_for_titles_and_means():
    figure = Reliability.compute(binary(500), reduction="top-label")
    for width, title, lines in (
        (230, "Confidence", 2),
        (400, "Confidence (largest probability)", 1),
    ):
        layout = drawn(figure, width=width, legend=False)["layout"]
        assert layout["xaxis"]["title"]["text"] == title
        (means,) = [a for a in layout["annotations"] if "Mean confidence" in a["text"]]
        # Letters stay readable, and what stands in the strip ends below the square.
        assert means["text"].count("<br>") == lines - 1
        assert means["font"]["size"] >= 10
        inner = layout["height"] - layout["margin"]["t"] - layout["margin"]["b"]
        strip = layout["yaxis"]["domain"][0] - layout["yaxis2"]["domain"][1]
        assert strip * inner > lines * 1.3 * means["font"]["size"]


def test_a_usual_diagram_keeps_its_axes():
    layout = drawn(Reliability.compute(binary(500)))["layout"]
    assert layout["xaxis"]["range"] == [-0.035, 1.035]
    assert not [a for a in layout["annotations"] if "Both axes" in a["text"]]
