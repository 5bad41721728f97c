"""The reliability diagram: what is drawn is what is measured."""

import json
import re
import time

import numpy as np
import plotly.io as pio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import calviz
from calviz.core.errors import InputError, OptionError
from calviz.core.reduction import Reduction
from calviz.figures import Reliability
from calviz.figures.drawing.style import PALETTES
from calviz.specs.figure import FIGURES

SCHEMES = ("equal-width", "equal-mass", "sturges")
ECE_OF = {"equal-width": "ece", "equal-mass": "ece_equal_mass", "sturges": "ece_sturges"}


def binary(n: int, seed: int = 0, slope: float = 1.0) -> calviz.Predictions:
    rng = np.random.default_rng(seed)
    logit = rng.normal(0, 2, n)
    labels = rng.random(n) < 1 / (1 + np.exp(-logit))
    return calviz.Predictions(probs=1 / (1 + np.exp(-slope * logit)), labels=labels, name="binary")


def multiclass(n: int = 600, k: int = 4, seed: int = 1) -> calviz.Predictions:
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet(np.full(k, 0.5), size=n)
    return calviz.Predictions(
        probs=probs,
        labels=rng.integers(k, size=n),
        splits=np.where(np.arange(n) % 3, "test", "calibration"),
    )


def drawn(figure, **options):
    """The plotly figure as plain JSON."""
    return json.loads(figure.plot(**options).to_json())


def of_type(picture, kind, yaxis="y"):
    return [t for t in picture["data"] if t["type"] == kind and (t.get("yaxis") or "y") == yaxis]


def values(array):
    """A plotly array, which may be packed as base64."""
    if isinstance(array, dict):
        import base64

        return np.frombuffer(base64.b64decode(array["bdata"]), array["dtype"]).astype(float)
    return np.array(array, dtype=float)


# What is computed ------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", SCHEMES)
def test_ece_of_the_frame_is_the_metric(scheme):
    p = multiclass()
    figure = Reliability.compute(p, scheme=scheme, bins=12)
    frame = figure.frame()
    options = {} if scheme == "sturges" else {"bins": 12}
    result = calviz.evaluate(p, [ECE_OF[scheme]], ci=True, **options)[ECE_OF[scheme]]
    from_frame = (frame["rows"] * frame["gap"].abs()).sum() / frame["rows"].sum()
    assert from_frame == pytest.approx(result.value, abs=1e-14)
    assert figure.ece == pytest.approx(result.value, abs=1e-14)
    assert figure.ece_interval == pytest.approx(result.interval, abs=1e-14)


def test_frame_against_a_plain_loop():
    p = multiclass(300)
    frame = Reliability.compute(p, bins=10).frame()
    confidence, hit = p.probs.max(1), p.probs.argmax(1) == p.labels
    expected = []
    for m in range(10):
        inside = (confidence > m / 10) & (confidence <= (m + 1) / 10)
        if inside.any():
            expected.append(
                (
                    m,
                    m / 10,
                    (m + 1) / 10,
                    inside.sum(),
                    confidence[inside].mean(),
                    hit[inside].mean(),
                )
            )
    columns = ["bin", "low", "high", "rows", "mean_score", "observed"]
    np.testing.assert_allclose(frame[columns].to_numpy(), np.array(expected), atol=1e-12)
    np.testing.assert_allclose(frame["gap"], frame["mean_score"] - frame["observed"], atol=1e-12)
    assert frame["share"].sum() == pytest.approx(1)


@pytest.mark.parametrize("level", [0.8, 0.95])
def test_exact_intervals_against_scipy(level):
    frame = Reliability.compute(binary(400), reduction="positive", level=level).frame()
    for row in frame.itertuples():
        hits = round(row.observed * row.rows)
        exact = stats.binomtest(hits, row.rows).proportion_ci(level, method="exact")
        assert (row.ci_low, row.ci_high) == pytest.approx((exact.low, exact.high), abs=1e-12)


def test_band_is_binomial_where_all_scores_of_a_bin_are_equal():
    score = np.repeat([0.25, 0.7], 200)
    p = calviz.Predictions(probs=score, labels=np.arange(400) % 2)
    frame = Reliability.compute(p, reduction="positive", bins=10).frame()
    for row, s in zip(frame.itertuples(), (0.25, 0.7), strict=True):
        tail = stats.binom(200, s).ppf([0.025, 0.975]) / 200
        # 1,000 draws place a quantile within about one hit of where it belongs.
        np.testing.assert_allclose([row.band_low, row.band_high], tail, atol=2.01 / 200)


@pytest.mark.usefixtures("usual_resamples")
def test_band_of_many_rows_against_simulation():
    p = binary(5_000)
    frame = Reliability.compute(p, reduction="positive", bins=8).frame()
    score = p.probs[:, 1]
    rng = np.random.default_rng(42)
    bins = np.ceil(score * 8).astype(int) - 1
    hits = np.stack(
        [np.bincount(bins, rng.random(score.size) < score, minlength=8) for _ in range(1_000)]
    )
    low, high = np.quantile(hits / np.bincount(bins), [0.025, 0.975], axis=0)
    sd = (high - low) / 3.92
    assert (np.abs(frame["band_low"] - low) < 0.35 * sd).all()
    assert (np.abs(frame["band_high"] - high) < 0.35 * sd).all()


def test_no_band_if_none_is_wanted():
    figure = Reliability.compute(binary(100), reduction="positive", band=False)
    assert figure.frame()["band_low"].isna().all()
    names = [t.get("name") for t in drawn(figure)["data"]]
    assert not any("if calibrated" in name for name in names if name)


def test_same_seed_same_figure():
    a, b = (Reliability.compute(binary(3_000), seed=5).frame() for _ in range(2))
    assert a.equals(b)
    assert not a.equals(Reliability.compute(binary(3_000), seed=6).frame())


# Rows of a bin ---------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_row_is_in_one_bin(scheme):
    p = multiclass()
    figure = Reliability.compute(p, scheme=scheme)
    bins = figure.sums.edges.size - 1
    rows = [figure.rows(m) for m in range(bins)]
    assert sorted(np.concatenate(rows)) == list(range(p.n))
    assert [rows[m].size for m in figure.bin] == figure.frame()["rows"].tolist()


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.integers(0, 20), min_size=1, max_size=60),
    st.integers(1, 25),
    st.sampled_from(SCHEMES),
)
def test_rows_on_edges_are_where_they_are_counted(twentieths, bins, scheme):
    score = np.array(twentieths) / 20
    p = calviz.Predictions(probs=score.astype(np.float32), labels=np.zeros(score.size, int))
    figure = Reliability.compute(p, reduction="positive", bins=bins, scheme=scheme, band=False)
    assert [figure.rows(m).size for m in figure.bin] == figure.frame()["rows"].tolist()


def test_rows_of_a_split_are_rows_of_the_whole():
    p = multiclass()
    figure = Reliability.compute(p, split="test")
    part = p.split("test")
    alone = Reliability.compute(part)
    m = int(figure.bin[3])
    np.testing.assert_array_equal(p.probs[figure.rows(m)], part.probs[alone.rows(m)])
    assert (
        figure.frame()
        .drop(columns=["band_low", "band_high"])
        .equals(alone.frame().drop(columns=["band_low", "band_high"]))
    )


def test_bins_that_do_not_exist():
    figure = Reliability.compute(binary(50), bins=5)
    with pytest.raises(OptionError, match="bins 0 to 4"):
        figure.rows(5)
    with pytest.raises(OptionError, match="level"):
        Reliability.compute(binary(50), level=1.0)
    with pytest.raises(InputError, match="split"):
        Reliability.compute(binary(50), split="test")


# What is drawn ---------------------------------------------------------------------------------


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_drawing_is_square(theme):
    layout = drawn(Reliability.compute(binary(100)), theme=theme)["layout"]
    x, y = layout["xaxis"], layout["yaxis"]
    assert x["range"] == y["range"] == [0, 1]
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
    assert contrast(few["marker"]["color"], "#ffffff") < contrast(
        solid["marker"]["color"], "#ffffff"
    )
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
    # The range lies behind everything, also behind bars, whose hatching it would cloud.
    for marks in ("points", "bars"):
        (band,) = [
            t for t in drawn(figure, marks=marks)["data"] if "if calibrated" in t.get("name", "")
        ]
        assert band["zorder"] < 0
    with pytest.raises(OptionError, match="one of points, bars"):
        figure.plot(marks="circles")


def test_the_worst_bin_is_named_in_the_picture_only_beyond_noise():
    score = np.repeat([0.25, 0.75], 400)
    hits = np.concatenate([np.arange(400) < 100, np.arange(400) < 380])
    data = calviz.Predictions(probs=score, labels=hits.astype(int))
    off = Reliability.compute(data, reduction="positive", bins=10)
    (named,) = [a["text"] for a in drawn(off)["layout"]["annotations"] if a.get("showarrow")]
    assert named == "<b>20.0 points</b> too low<br>400 rows"
    assert "20.0 points too low (400 rows)" in off.describe()
    fair = Reliability.compute(binary(400), reduction="positive")
    assert not [a for a in drawn(fair)["layout"]["annotations"] if a.get("showarrow")]


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


# Themes and text from files --------------------------------------------------------------------


def luminance(colour: str) -> float:
    channels = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_colours_stand_out(theme):
    p = PALETTES[theme]
    for colour in (p.blue, p.vermillion, p.green, p.purple, p.neutral):
        assert contrast(colour, p.paper) >= (5 if theme == "dark" else 3)
    # What is grey because it is only compared with must still be seen.
    haze = [int(part) for part in re.findall(r"\d+", p.calibrated)[:3]]
    paper = [int(p.paper[i : i + 2], 16) for i in (1, 3, 5)]
    mixed = [round(b + p.haze * (h - b)) for h, b in zip(haze, paper, strict=True)]
    assert contrast("#{:02x}{:02x}{:02x}".format(*mixed), p.paper) >= 1.3
    for text in (p.ink, p.muted):
        assert contrast(text, p.paper) >= 4.5


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


def texts(value):
    if isinstance(value, dict):
        for v in value.values():
            yield from texts(v)
    elif isinstance(value, list):
        for v in value:
            yield from texts(v)
    elif isinstance(value, str):
        yield value


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


# Everything that may come ----------------------------------------------------------------------


@pytest.mark.slow
def test_every_reduction_and_scheme():
    many = ("top-label", "top-2", "within-top-2", f"class:{multiclass(200).class_names[1]}")
    for p, texts in ((multiclass(200), many), (binary(200), ("positive", "top-label"))):
        for reduction in map(Reduction.of, texts):
            for scheme in SCHEMES:
                figure = Reliability.compute(p, reduction=reduction, scheme=scheme)
                layout = drawn(figure, theme="dark", caption=True)["layout"]
                assert layout["xaxis"]["title"]["text"] == reduction.score_label
                assert layout["yaxis"]["title"]["text"] == reduction.hit_label
                assert figure.count.sum() == 200


def predictions(score, label=None):
    score = np.asarray(score)
    return calviz.Predictions(
        probs=score, labels=np.zeros(score.size, int) if label is None else label
    )


EDGE_CASES = {
    "one row": predictions([0.4], [1]),
    "all scores equal": predictions(np.full(50, 0.7), np.arange(50) % 2),
    "only zeros": predictions(np.zeros(10)),
    "only ones, all wrong": predictions(np.ones(10)),
    "perfect": predictions(np.arange(10) % 2, np.arange(10) % 2),
    "float32": predictions(np.linspace(0, 1, 99).astype(np.float32), np.arange(99) % 2),
    "confidence only": calviz.ConfidencePredictions(
        confidence=np.linspace(0.3, 1, 70), correct=np.arange(70) % 3 > 0
    ),
}


@pytest.mark.parametrize("case", EDGE_CASES)
@pytest.mark.parametrize("bins", [1, 15, 1_000])
def test_edge_cases(case, bins):
    p = EDGE_CASES[case]
    reduction = "top-label" if p.kind == "confidence" else "positive"
    for scheme in SCHEMES:
        figure = Reliability.compute(p, reduction=reduction, bins=bins, scheme=scheme)
        frame = figure.frame()
        assert len(frame) <= min(bins if scheme != "sturges" else 99, p.n)
        assert frame.notna().all(axis=None)
        assert (frame["ci_low"] <= frame["observed"]).all()
        assert (frame["ci_high"] >= frame["observed"]).all()
        drawn(figure, caption=True, selected=0)
        assert figure.describe().startswith("Reliability diagram of predictions")


def test_one_row_has_no_interval_of_the_ece():
    figure = Reliability.compute(EDGE_CASES["one row"], reduction="positive")
    assert figure.ece_interval is None
    assert "CI" not in " ".join(figure.caption())


def test_description_says_the_numbers():
    score = np.repeat([0.3, 0.9], 100)
    p = predictions(score, np.arange(200) % 100 < np.where(score < 0.5, 30, 50))
    text = Reliability.compute(p, reduction="positive", bins=10).describe()
    assert "200 rows in 10 equal-width bins, 2 of them with rows" in text
    assert "mean forecast is 60.0 %, the frequency 40.0 %" in text
    assert "calibration error is 20.0 points" in text
    assert "between 0.8 and 0.9, where the scores are 40.0 points too high (100 rows)" in text
    assert "1 bin lies outside the 95 % band" in text


def test_a_million_rows_take_no_longer_than_binning_them():
    figure = Reliability.compute(binary(1_000_000), reduction="positive", bins=100)
    start = time.perf_counter()
    picture = figure.plot()
    assert time.perf_counter() - start < 2
    assert len(picture.to_json()) < 300_000
    few = Reliability.compute(binary(100_000), reduction="positive")
    assert len(few.plot().to_json()) < 60_000


def test_it_is_registered():
    spec = FIGURES["reliability"]
    assert {p.name for p in spec.parameters} == {
        "reduction", "bins", "scheme", "level", "band", "seed", "resamples", "split", "curves"
    }  # fmt: skip
    assert len(spec.compute(binary(20)).frame()) > 0


def test_weighted_rows_have_the_means_of_the_metrics():
    # Sums of weights per bin are fractions: cut to whole rows, 300 of them were fewer, and the accuracy was too large.
    rng = np.random.default_rng(0)
    score = rng.random(300)
    labels = (rng.random(300) < score).astype(int)
    weights = rng.gamma(0.5, 1, 300)
    data = calviz.Predictions(probs=score, labels=labels, weights=weights)
    figure = Reliability.compute(data, reduction="positive")
    assert figure.n == 300
    assert figure.overall_observed == pytest.approx(np.average(labels, weights=weights))
    assert figure.overall_score == pytest.approx(np.average(score, weights=weights))
    assert "all of them with rows" in figure.describe()
