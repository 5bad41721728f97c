"""What holds for every figure."""

import inspect
import json
import re
import tomllib
from inspect import isabstract
from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import plotly.io as pio
import polars as pl
import pytest

import calviz
from calviz.core.entry_specs import FIGURES
from calviz.core.errors import NotAvailable
from calviz.core.predictions import repeated, with_rows
from calviz.core.words import plotly_text
from calviz.figures.bin_sensitivity import BinSensitivity
from calviz.figures.calibration_map import CalibrationCurve
from calviz.figures.confusion import Confusion
from calviz.figures.corp import CorpDiagram
from calviz.figures.cumulative_plot import Cumulative
from calviz.figures.decision_cost import Decision
from calviz.figures.figure import Figure
from calviz.figures.marks import captioned, with_legend_for
from calviz.figures.net_benefit import DecisionLoss
from calviz.figures.reliability import Reliability
from calviz.figures.risk_coverage import RiskCoverage
from calviz.figures.roc import OutcomeHistogram
from calviz.figures.slice_gaps import levels_of
from calviz.figures.style import PALETTES, axis, layout, plot_config
from calviz.sample.sample import Sample
from calviz.sample.slices import USUAL_RATE
from tests.inputs.figure_parts import contrast, parts, texts
from tests.inputs.simulated import draw_labels, keep_few_scores

# ---- What holds for every figure: themes, texts from files, sizes, whatever data come


KEYS = FIGURES.keys()
HOSTILE = '<b>x</b><img src=x onerror=alert(1)><a href="http://e.vil">&amp;</a>$x$<br>'


def classes(n=120, k=3, seed=0, **own):
    rng = np.random.default_rng(seed)
    return calviz.Predictions(
        probs=rng.dirichlet(np.full(k, 0.5), n), labels=rng.integers(k, size=n), **own
    )


def binary(score, labels=None):
    score = np.asarray(score, dtype=float)
    return calviz.Predictions(
        probs=score, labels=np.zeros(score.size, int) if labels is None else labels
    )


DATA = {
    "three classes": classes(),
    "many classes": classes(300, 60),
    "one row": classes(1),
    "two rows": classes(2),
    "one class": calviz.Predictions(probs=classes(30).probs, labels=np.zeros(30, int)),
    "all scores equal": binary(np.full(50, 0.7), np.arange(50) % 2),
    "only zeros and ones": binary(np.repeat([0.0, 1.0], 20), np.arange(40) % 2),
    "all wrong": binary(np.ones(10)),
    "all right": binary(np.arange(10) % 2, np.arange(10) % 2),
    "float32": calviz.Predictions(
        probs=classes(80).probs.astype(np.float32), labels=classes(80).labels
    ),
    "logits of 1e4": calviz.Predictions(
        logits=1e4 * np.sign(classes(60).probs - 0.3), labels=classes(60).labels
    ),
    "probabilities of 1e-320": binary(np.repeat([1e-320, 1.0], 20), np.arange(40) % 2),
    "confidence only": calviz.ConfidencePredictions(
        confidence=np.linspace(0.3, 1, 70), correct=np.arange(70) % 3 > 0
    ),
}


def test_the_package_offers_every_figure():
    kinds = [Figure]
    for kind in kinds:
        kinds += kind.__subclasses__()
    figures = {
        k.__name__ for k in kinds if not isabstract(k) and k.__module__.startswith("calviz.")
    }
    assert len(figures) > 20
    assert set(dir(calviz.figures)) == figures | {"plot_config"}
    assert calviz.figures.Reliability.compute(classes(60)).plot().data
    assert calviz.figures.plot_config()
    names: dict[str, object] = {}
    exec("from calviz.figures import *", names)
    assert names.keys() - {"__builtins__"} == figures | {"plot_config"}
    with pytest.raises(AttributeError, match=r"no figure 'Spiral'; known: BinSensitivity, "):
        calviz.figures.Spiral  # noqa: B018


@pytest.mark.parametrize("kind", [CalibrationCurve, Confusion, OutcomeHistogram, RiskCoverage])
def test_a_page_that_names_the_data_shows_the_reading_alone(kind):
    figure = kind.compute(classes(name="fold 2: ranked by confidence. SVM"))
    assert "SVM" not in figure.reading()
    assert figure.describe().endswith(figure.reading())


@pytest.mark.slow
@pytest.mark.parametrize("case", DATA)
@pytest.mark.parametrize("key", KEYS)
def test_whatever_data_come(key, case):
    if case == "confidence only" and key in ("class-bars", "confusion"):
        with pytest.raises(NotAvailable, match="true classes"):
            FIGURES[key].compute(DATA[case])
        return
    figure = FIGURES[key].compute(DATA[case])
    assert len(figure.frame()) > 0
    text = figure.describe()
    assert text.endswith(".")
    assert "nan" not in text
    for theme, width in (("light", None), ("dark", 350)):
        picture = figure.plot(theme=theme, caption=True, width=width)
        assert "NaN" not in json.dumps(list(texts(json.loads(picture.to_json()))))


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("key", KEYS)
def test_the_default_template_changes_nothing(key, theme):
    figure = FIGURES[key].compute(classes())
    before = figure.plot(theme=theme, caption=True).to_json()
    old = pio.templates.default
    try:
        pio.templates.default = "plotly_dark"
        assert figure.plot(theme=theme, caption=True).to_json() == before
    finally:
        pio.templates.default = old
    layout = json.loads(before)["layout"]
    assert layout["paper_bgcolor"] == PALETTES[theme].paper
    other = PALETTES["dark" if theme == "light" else "light"]
    assert other.ink not in before


@pytest.mark.parametrize("key", KEYS)
def test_texts_from_files_are_text(key):
    data = classes(
        class_names=(HOSTILE, "b" * 5_000, "c\u202e\n"), splits=np.full(120, HOSTILE), name=HOSTILE
    )
    figure = FIGURES[key].compute(data, split=HOSTILE)
    picture = json.loads(figure.plot(caption=True).to_json())
    values = [t for t in texts(picture) if len(t) < 2_000]
    tags = {tag for text in values for tag in re.findall(r"<[^>]*>?", text)}
    own = {"<b>", "</b>", "<br>", "</span>", "<extra>", "</extra>"}
    assert {t for t in tags if not t.startswith('<span style="color:#')} <= own
    assert not any("$" in text or "\u202e" in text for text in values)
    assert len(figure.describe()) < 1_500


@pytest.mark.parametrize("key", KEYS)
def test_the_caption_is_there_when_it_is_asked_for(key):
    figure = FIGURES[key].compute(classes(name="my model"))
    assert "my model" not in figure.plot().to_json()
    assert "my model" in figure.plot(caption=True).to_json()
    assert "own words" in figure.plot(caption="own words").to_json()
    with_caption, without = (figure.plot(caption=c).layout.height for c in (True, False))
    assert with_caption > without


@pytest.mark.slow
@pytest.mark.parametrize("key", KEYS)
def test_same_seed_same_figure(key):
    seeded = any(p.name == "seed" for p in FIGURES[key].parameters)
    options = {"seed": 3} if seeded else {}
    one, two = (FIGURES[key].compute(classes(), **options).frame() for _ in range(2))
    assert one.equals(two)


# ---- What figures say of a single row: that it says nothing


ONE = calviz.Predictions(probs=np.array([[0.7, 0.2, 0.1]]), labels=np.array([0]))


@pytest.mark.parametrize(
    ("figure", "message"),
    [
        (CalibrationCurve, "a single row has no curve"),
        (BinSensitivity, "A single row is in one bin"),
        (Reliability, "1 row with a score of 0.700, a hit. A single row says nothing"),
        (Cumulative, "A single row says nothing"),
        (CorpDiagram, "A single row says nothing"),
        (DecisionLoss, "A single row says nothing"),
        (Decision, "it tells neither which threshold is best"),
    ],
)
def test_no_size_of_an_error_is_read_off_one_row(figure, message):
    result = figure.compute(ONE)
    text = " ".join([result.describe(), *result.caption()])
    assert message in text
    assert "30.0 points" not in text
    assert "per 1,000 predictions" not in text
    assert result.plot().data


def test_a_legend_has_the_room_that_it_needs():
    """The same drawing on a wide page: what is drawn keeps its height, and the legend begins at the same place."""
    p = calviz.Predictions(probs=np.linspace(0, 1, 60), labels=np.arange(60) % 2)
    figure = BinSensitivity.compute(p)
    for_small, for_wide = figure.plot(), with_legend_for(figure.plot(), 1_000)
    before, after = for_small.layout, for_wide.layout
    inner = [o.height - o.margin.t - o.margin.b for o in (before, after)]
    assert inner[0] == inner[1]
    assert after.height < before.height
    assert before.margin.b - before.legend.y * before.height == pytest.approx(
        after.margin.b - after.legend.y * after.height
    )
    # A drawing whose legend stands elsewhere is left alone.
    square = Reliability.compute(p).plot()
    assert (
        with_legend_for(square, 1_000).layout.height == Reliability.compute(p).plot().layout.height
    )


# ---- Contrast of the theme and of the figures: 4.5 for text, 3 for marks (WCAG 2.1, success criteria 1.4.3 and 1.4.11)


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


# ---- What figures share


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


# ---- The caption that a picture may carry


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


# ---- Figures of rows of which some count more than others


N = 400
#: What follows the number of rows, and not their shares: ranges, rows themselves, cuts by rank and penalties.
COUNTED = ("rows", "hits", "misses", "floor", "band", "ci_", "_low", "_high", "low", "high")
OTHER = {
    "bin-sensitivity": ("ece_equal_mass",),
    "calibration-curve": ("probability",),
    "cumulative": ("probability",),
    "decision-loss": ("calibrated_mean",),
    "class-bars": ("beyond",),
    "reliability": ("expected_gap",),
}


def rows():
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.98, N)
    y = (rng.random(N) < p**1.2).astype(int)
    group = np.where(rng.random(N) < 0.4, "a", "b")
    data = calviz.Predictions(probs=p, labels=y, groups={"site": group})
    return data, rng.integers(1, 4, N)


@pytest.mark.slow
@pytest.mark.parametrize(
    "key", sorted({f.key for f in FIGURES} - {"conventions", "outcome-histogram"})
)
def test_a_weight_is_the_row_so_often(key):
    data, counts = rows()
    has_band = "band" in inspect.signature(FIGURES[key].compute).parameters
    how = {"band": False} if has_band else {}
    weighted = FIGURES[key].compute(with_rows(data, weights=counts), **how).frame()
    copied = FIGURES[key].compute(repeated(data, counts), **how).frame()
    compared = 0
    for name in weighted.select_dtypes("number"):
        if name.startswith(OTHER.get(key, ())) or any(part in name for part in COUNTED):
            continue
        compared += 1
        np.testing.assert_allclose(weighted[name], copied[name], rtol=1e-10, atol=1e-10)
    assert compared


def test_slices_are_those_of_repeated_rows():
    data, counts = rows()
    weighted = {s.where: s for s in calviz.slices(with_rows(data, weights=counts), ["site"]).slices}
    copied = {s.where: s for s in calviz.slices(repeated(data, counts), ["site"]).slices}
    assert len(weighted) == 2
    for where, one in weighted.items():
        other = copied[where]
        for name in ("score", "hits", "gap", "ece"):
            assert getattr(one, name) == pytest.approx(getattr(other, name), rel=1e-12)


def test_p_values_of_weighted_slices_are_uniform_for_a_calibrated_model():
    p_values = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        p = rng.uniform(0.1, 0.9, 200)
        y = (rng.random(200) < p).astype(int)
        data = calviz.Predictions(
            probs=p,
            labels=y,
            groups={"one": np.zeros(200, dtype=int)},
            weights=rng.exponential(size=200),
        )
        p_values += [s.p_value for s in calviz.slices(data).slices]
    assert 0.42 < np.mean(p_values) < 0.58
    assert np.mean(np.array(p_values) < 0.1) < 0.17


# ---- Every figure of weighted rows, and of a profile, shows what it shows of the rows written out


#: Columns that follow the number of rows: intervals, ranges and counts of weighted rows; bins of equal mass and curves whose
#: bandwidth is chosen lie elsewhere.
OF_ROWS = (
    *(
        "ci_low",
        "ci_high",
        "band_low",
        "band_high",
        "expected_gap",
        "beyond",
        "low",
        "high",
        "rows",
        "hits",
        "misses",
    ),
    *("ece_equal_mass", "calibrated_mean", "calibrated_high", "referred"),
)
#: Other libraries' definitions take neither; a curve is drawn at so many points as there are rows.
NEITHER, THINNED = ("conventions",), ("risk-coverage",)


def simulated(k: int, n: int = N) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(k)
    probs = rng.dirichlet(np.ones(k), n)
    y = draw_labels(probs, rng)
    return probs, y


def _numbers(frame, left_out=()):
    """Columns of numbers, in an order that does not depend on numbers of rows."""
    texts = [c for c in frame.columns if frame[c].dtype.kind not in "fiub"]
    frame = frame.sort_values(texts) if texts else frame
    return {
        c: frame[c].to_numpy(np.float64)
        for c in frame.columns
        if c not in texts
        and c not in left_out
        and not c.endswith(("_low", "_high"))
        and not c.startswith("floor")
    }


@pytest.mark.slow
@pytest.mark.parametrize("key", FIGURES.keys())
def test_weights_count_as_rows(key):
    for k in (2, 3):
        probs, y = simulated(k)
        times = np.random.default_rng(0).integers(1, 4, N)
        at = np.repeat(np.arange(N), times)
        weighted = Sample(calviz.Predictions(probs=probs, labels=y, weights=times / 2))
        rows = Sample(calviz.Predictions(probs=probs[at], labels=y[at]))
        if key in NEITHER:
            with pytest.raises(NotAvailable, match="weight"):
                weighted.view(FIGURES[key].compute)
            continue
        # As pages and reports ask for it.
        ours, theirs = (s.view(FIGURES[key].compute) for s in (weighted, rows))
        if key in THINNED:
            for level in (0.3, 0.8):
                result, wanted = (np.interp(level, f.coverage, f.risk) for f in (ours, theirs))
                assert result == pytest.approx(wanted, abs=0.005)
            continue
        result, wanted = (_numbers(f.frame(), OF_ROWS) for f in (ours, theirs))
        assert result.keys() == wanted.keys()
        # What is shown depends on the number of rows, which weights do not count.
        result.pop("useful", None)
        for name, column in result.items():
            chosen = name == "probability" and key in ("calibration-curve", "cumulative")
            assert column == pytest.approx(wanted[name], abs=0.05 if chosen else 1e-9, nan_ok=True)


#: Curves that are drawn at fewer points than there are rows: which are compared.
CURVES = {
    "cumulative": ("fractile", "gap"),
    "corp": ("score", "probability"),
    "roc": ("false_alarms", "sensitivity"),
    "risk-coverage": ("coverage", "risk"),
}


@pytest.mark.slow
@pytest.mark.parametrize("key", FIGURES.keys())
def test_a_profile_shows_what_its_rows_do(key, monkeypatch):
    keep_few_scores(monkeypatch, 0)
    for k in (2, 3):
        probs, y = simulated(k, 3_000)
        table = pl.DataFrame(probs, schema=[f"p_{j}" for j in range(k)]).with_columns(y=y)
        profile = calviz.profile(table, label="y", true_class=True, each_class=True)
        whole = Sample(profile.predictions())
        assert whole.data.n < 3_000
        if key in NEITHER or (key == "confusion" and k > 2):
            with pytest.raises(NotAvailable, match=r"needs the rows|do not name"):
                whole.view(FIGURES[key].compute)
            continue
        rows = Sample(calviz.Predictions(probs=probs, labels=y))
        ours, theirs = (s.view(FIGURES[key].compute) for s in (whole, rows))
        assert getattr(ours, "n", 3_000) == 3_000
        if key in CURVES:
            at = np.linspace(0.05, 0.95, 10)
            x, height = CURVES[key]
            drawn = (f.frame().sort_values([x, height]) for f in (ours, theirs))
            result, wanted = (np.interp(at, f[x], f[height]) for f in drawn)
            assert result == pytest.approx(wanted, abs=0.003)
            continue
        result, wanted = (_numbers(f.frame()) for f in (ours, theirs))
        assert result.keys() == wanted.keys()
        for name, column in result.items():
            # A row that lies on the edge of a drawn bin may be on its other side.
            within = 1.01 if name in ("misses", "hits") else 2e-3
            assert column == pytest.approx(wanted[name], rel=3e-3, abs=within, nan_ok=True), name


# ---- The levels of a group column, as the page Risk-coverage and `audit --by` show them


def grouped(seed, levels=8, rows=40, shape=1.0, weighted=False, off=0.0):
    """Calibrated rows of some levels; the first one hits more often by `off`."""
    rng = np.random.default_rng([seed, levels])
    group = np.repeat(np.arange(levels), rows)
    p = rng.beta(shape, shape, group.size)
    y = rng.random(group.size) < np.where(group == 0, p + off * (1 - p), p)
    w = rng.exponential(size=group.size) if weighted else None
    return Sample(
        calviz.Predictions(probs=p, labels=y.astype(int), groups={"task": group}, weights=w),
        "positive",
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "weighted"),
    [(1.0, False), (0.3, False), (1.0, True)],
    ids=["even", "sure", "weights"],
)
def test_levels_of_a_calibrated_file_are_called_off_at_the_rate_that_is_promised(shape, weighted):
    runs = 150
    alarms = sum(
        bool(levels_of(grouped(seed, shape=shape, weighted=weighted), "task", 0.1).slices.off)
        for seed in range(runs)
    )
    assert pytest.approx(0.005) == USUAL_RATE
    # Of Binomial(150, .005) 5 or more have a probability of 0.1 %.
    assert alarms <= 4


def test_a_level_that_is_off_is_found():
    levels = levels_of(grouped(0, off=0.7), "task", 0.1)
    assert [level.where for level in levels.slices.off] == [(("task", "0"),)]
    assert levels.word(levels.slices.off[0]) == "too low"
