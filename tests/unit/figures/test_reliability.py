"""The reliability diagram."""

import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import calviz
from benchmarks.claims.slices import one_region
from calviz.core.entry_specs import FIGURES
from calviz.core.errors import PREDICTED, InputError, OptionError
from calviz.core.events import Reduction
from calviz.figures.class_bars import ClassBars
from calviz.figures.cumulative_plot import Cumulative
from calviz.figures.hundred_squares import HundredSquares
from calviz.figures.marks import Overlay
from calviz.figures.reliability import Reliability, ReliabilityOverlay, kernel_curve
from calviz.figures.roc import Roc
from calviz.figures.slice_gaps import SliceGaps
from calviz.report.document import Panel, caption_of
from calviz.sample.binning import FEW_ROWS
from calviz.sample.sample import Sample, with_predicted
from calviz.sample.slices import slices
from calviz.sample.step_views import steps
from calviz.verdicts.analysis import evaluate, judged
from tests.inputs.reliability import binary, drawn, multiclass


def test_the_label_of_the_worst_bin_covers_no_point_of_a_small_diagram():
    # A bin at 0.6 whose interval reaches down to 0; on a phone the label at the lower right would begin left of it.
    score = np.repeat([0.6, 0.9], [8, 329])
    hit = np.arange(337) < 8 + 223
    hit[:8] = False
    data = calviz.Predictions(probs=score, labels=hit.astype(int))
    figure = Reliability.compute(data, reduction="positive")
    for width, side in ((640, "right"), (370, "left")):
        (label,) = (a for a in figure.plot(width=width).layout.annotations if "on these" in a.text)
        assert label.xanchor == side


def test_no_bin_is_named_where_the_verdict_finds_nothing():
    # Calibrated by construction; by chance one bin is outside the interval of all bins together.
    rng = np.random.default_rng(564)
    p = rng.random(400)
    data = calviz.Predictions(probs=p, labels=(rng.random(400) < p).astype(int))
    sample = Sample.of(data, reduction="positive", resamples=200)
    assert evaluate(sample).verdict.direction == "calibrated"
    assert Reliability.compute(data, reduction="positive").worst is not None
    figure = Reliability.compute(sample)
    assert figure.worst is None
    assert np.isnan(figure.expected_gap).all()
    assert "beyond" not in figure.describe()
    # The verdict, which adjusts for all of its tests, finds nothing: no bin is named, and none is denied.
    assert "interval (95 % for all bins together)" not in figure.describe()
    fair = Reliability.compute(binary(400), reduction="positive")
    assert "No bin lies outside its interval (95 % for all bins together)." in fair.describe()


# ---- The reliability diagram: what it computes, the rows of its bins, edge cases


SCHEMES = ("equal-width", "equal-mass", "sturges")
ECE_OF = {"equal-width": "ece", "equal-mass": "ece_equal_mass", "sturges": "ece_sturges"}


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


def test_only_gaps_that_are_drawn_are_named():
    def of(share):
        score, hit = np.repeat([0.3, 0.7], 100), np.arange(200) % 100
        p = calviz.Predictions(probs=score, labels=hit < 100 * (score + share))
        return Reliability.compute(p, band=False)

    low, high, right = of(0.1), of(-0.1), of(0.0)
    assert low.gap_lines() == "Gaps: dotted too low. "
    assert high.gap_lines(right) == "Gaps: solid too high. "
    assert right.gap_lines(high, low) == "Gaps: solid too high, dotted too low. "
    assert right.gap_lines() == ""
    # On axes that end where the scores do, a gap of less than 2 points is seen.
    rare = calviz.Predictions(probs=np.full(4_000, 0.03), labels=np.arange(4_000) < 60)
    figure = Reliability.compute(rare, reduction="positive", band=False)
    assert figure.gap_lines() == "Gaps: solid too high. "
    named = {t.name for t in figure.plot(width=480).data if t.showlegend and t.visible}
    assert {n for n in named if "(gap)" in n} == {"Forecast too high (gap)"}


def test_no_band_if_none_is_wanted():
    figure = Reliability.compute(binary(100), reduction="positive", band=False)
    assert figure.frame()["band_low"].isna().all()
    names = [t.get("name") for t in drawn(figure)["data"]]
    assert not any("if calibrated" in name for name in names if name)


def test_same_seed_same_figure():
    a, b = (Reliability.compute(binary(3_000), seed=5).frame() for _ in range(2))
    assert a.equals(b)
    assert not a.equals(Reliability.compute(binary(3_000), seed=6).frame())


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_row_is_in_one_bin(scheme):
    p = multiclass()
    figure = Reliability.compute(p, scheme=scheme)
    bins = figure.sums.edges.size - 1
    rows = [figure.rows(m) for m in range(bins)]
    assert sorted(np.concatenate(rows)) == list(range(p.n))
    assert [rows[m].size for m in figure.bin] == figure.frame()["rows"].tolist()


@settings(max_examples=40)
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
        # A gap to expect is told only of bins that are off beyond noise.
        assert frame.drop(columns="expected_gap").notna().all(axis=None)
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
    assert "mean forecast is 60.00 %, the frequency 40.00 %" in text
    assert "calibration error is 20.0 points" in text
    # What is to be expected there is less than the 40 points for which the bin was chosen.
    size = re.search(
        r"between 0.8 and 0.9 is furthest off: on new rows, its scores are about ([\d.]+) points too high",
        text,
    )
    assert size is not None
    assert 30 < float(size[1]) < 40
    assert "1 bin lies outside the 95 % range that a calibrated model would show" in text
    # Print leaves the range out, and its caption too.
    figure = Reliability.compute(p, reduction="positive", bins=10)
    assert "outside the 95 % range" not in caption_of([Panel(figure)])
    assert "furthest off" in caption_of([Panel(figure)])


def test_a_picture_of_a_million_rows_is_light():
    figure = Reliability.compute(binary(1_000_000), reduction="positive", bins=100)
    picture = figure.plot()
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


# ---- The bin-free curves of the reliability diagram are those behind the bin-free metrics


BOTH = ("kernel", "isotonic")


def binary_of_reliability_curves(n, seed=0, power=1.0):
    rng = np.random.default_rng(seed)
    score = rng.beta(2, 2, n)
    return calviz.Predictions(probs=score, labels=rng.random(n) < score**power, name="binary")


@pytest.mark.slow
@pytest.mark.parametrize("n", [200, 5_000])
def test_the_kernel_curve_is_that_of_kde_ece(n):
    p = binary_of_reliability_curves(n, power=1.5)
    x, y = kernel_curve(Sample(p, "positive").view(steps))
    value = calviz.evaluate(p, ["kde_ece"], reduction="positive")["kde_ece"]
    width = value.params["bandwidth"]
    # The density by direct summation over rows and mirror images, on a coarse grid.
    score = p.probs[:, 1]
    grid = np.linspace(0, 1, 201)
    density = np.zeros(grid.size)
    hits = np.zeros(grid.size)
    for image in (score, -score, 2 - score):
        u = (grid[:, None] - image) / width
        kernel = np.where(np.abs(u) < 1, 35 / 32 * (1 - u**2) ** 3, 0) / width
        density += kernel.sum(axis=1)
        hits += (kernel * p.labels).sum(axis=1)
    some = (density > 1e-3 * n) & (grid >= score.min()) & (grid <= score.max())
    np.testing.assert_allclose(np.interp(grid, x, y)[some], hits[some] / density[some], atol=2e-3)
    area = np.trapezoid(np.abs(grid * density - hits), grid) / n
    assert area == pytest.approx(value.value, rel=0.02)


def test_the_isotonic_curve_against_scikit_learn():
    from sklearn.isotonic import IsotonicRegression

    p = binary_of_reliability_curves(400, seed=2)
    curve = Reliability.compute(p, reduction="positive", curves=("isotonic",)).curves["isotonic"]
    score = p.probs[:, 1]
    fitted = IsotonicRegression().fit(score, p.labels)
    np.testing.assert_allclose(curve.probability, fitted.predict(curve.score), atol=1e-9)
    # Mean recalibrated score is the base rate (a property of isotonic regression).
    at = np.interp(score, curve.score, curve.probability)
    assert at.mean() == pytest.approx(p.labels.mean(), abs=1e-9)


def test_what_is_drawn_are_the_curves():
    figure = Reliability.compute(
        binary_of_reliability_curves(500), reduction="positive", curves=BOTH
    )
    picture = figure.plot(caption=True)
    for kind, name in zip(BOTH, ("Kernel-smoothed", "Isotonic (CORP)"), strict=True):
        *_, trace = [t for t in picture.data if t.name == name]
        curve = figure.curves[kind]
        np.testing.assert_allclose(trace.x, curve.score, rtol=1e-6)
        expected = np.where(curve.rows < 20, np.nan, curve.probability)
        np.testing.assert_allclose(trace.y, expected, rtol=1e-6)
    plain = Reliability.compute(binary_of_reliability_curves(500), reduction="positive")
    assert not plain.curves
    assert len(plain.plot().data) == len(
        [t for t in picture.data if t.name not in ("Kernel-smoothed", "Isotonic (CORP)")]
    )


@pytest.mark.parametrize("score", [[0.4], [0.7] * 9, [0.0, 1.0] * 5, [0.0] * 4])
def test_edge_cases_of_reliability_curves(score):
    p = calviz.Predictions(probs=np.array(score), labels=np.arange(len(score)) % 2)
    figure = Reliability.compute(p, reduction="positive", curves=BOTH)
    assert set(figure.curves) == set(BOTH)
    for curve in figure.curves.values():
        assert ((curve.probability >= 0) & (curve.probability <= 1)).all()
    figure.plot(theme="dark", caption=True, width=350)


def test_unknown_curves_are_refused():
    with pytest.raises(OptionError, match="curves"):
        Reliability.compute(binary_of_reliability_curves(10), curves=("spline",))


def test_a_million_rows_are_light():
    p = binary_of_reliability_curves(1_000_000)
    size = [
        len(Reliability.compute(p, reduction="positive", curves=c).plot().to_json())
        for c in ((), BOTH)
    ]
    assert size[1] - size[0] < 30_000


# ---- Points beside those of a reliability diagram, by hand


#: Two of four right at 0.7, one of two at 0.95.
P = calviz.Predictions(
    probs=np.array([[0.7, 0.3]] * 4 + [[0.95, 0.05]] * 2), labels=np.array([0, 0, 1, 1, 0, 1])
)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_some_of_the_rows_and_another_diagram_are_drawn_as_outlines(theme):
    sample = Sample(P, reduction="top-label", bins=10)
    figure = Reliability.compute(sample)
    some = ReliabilityOverlay.of_rows(sample, figure.sums, np.array([0, 1, 2, 4]), "Some")
    np.testing.assert_allclose(some.mean_score, [0.7, 0.95])
    np.testing.assert_allclose(some.observed, [2 / 3, 1])
    assert some.count.tolist() == [3, 1]
    other = Reliability.compute(sample.but(bins=1)).overlay("Pinned: 1 bin", "pinned")
    np.testing.assert_allclose(other.observed, [0.5])
    drawn = figure.plot(theme=theme, beside=[some, other])
    by_name = {trace.name: trace for trace in drawn.data}
    assert by_name["Some"].marker.symbol == "square-open"
    np.testing.assert_allclose(by_name["Some"].y, [2 / 3, 1])
    assert by_name["Pinned: 1 bin"].marker.symbol == "diamond-open"
    # The square keeps its size: the legend has room of its own.
    assert drawn.layout.height > figure.plot(theme=theme).layout.height


def test_the_cumulative_plot_frames_scores_and_draws_other_rows_where_one_line_says_it():
    sample = Sample(P, reduction="top-label")
    figure = Cumulative.compute(sample, band=False)
    assert figure.upto(0.8) == pytest.approx((4 / 6, 2.8 / 6))
    part = sample.with_data(P.take(np.array([0, 1, 4])))
    some = Overlay("Some", "selected", Cumulative.compute(part, band=False))
    for panel, frame in (("a", (4 / 6, 1)), ("b", (2.8 / 6, 4.7 / 6)), ("d", (0.8, 1))):
        drawn = figure.plot(panels=[panel], selected=(0.8, 1.0), beside=[some])
        (shape,) = drawn.layout.shapes
        assert (shape.x0, shape.x1) == pytest.approx(frame)
        assert ("Some" in {trace.name for trace in drawn.data}) == (panel == "d")
    by_name = {trace.name: trace for trace in figure.plot(panels=["gap"], beside=[some]).data}
    # All three are right: after two of 0.7, and one of 0.95.
    np.testing.assert_allclose(by_name["Some"].y, [0, -100 * 0.6 / 3, -100 * 0.65 / 3], rtol=1e-6)


def test_errors_of_classes_and_gaps_of_slices_in_another_state_stand_on_their_lines():
    data = calviz.Predictions(
        probs=P.probs, labels=P.labels, groups={"place": ["n", "n", "s", "s", "n", "s"]}
    )
    bars = ClassBars.compute(Sample(data), mode="true-class", resamples=20)
    other = Overlay("Pinned: other", "pinned", np.array([0.1, -0.2]))
    (mark,) = [t for t in bars.plot(order="class", beside=[other]).data if t.name == other.name]
    np.testing.assert_allclose(mark.x, [10, -20], rtol=1e-6)
    assert list(mark.customdata) == [0, 1]
    gaps = SliceGaps.compute(slices(Sample(data, reduction="top-label"), ["place"], min_rows=2))
    drawn = gaps.plot(beside=[Overlay("Pinned: other", "pinned", np.array([0.3, np.nan]))])
    (mark,) = [t for t in drawn.data if t.name == other.name]
    np.testing.assert_allclose(mark.x, [30, np.nan])


def test_another_state_has_its_own_roc_and_its_areas():
    one, two = (
        Roc.compute(calviz.Predictions(probs=np.array(p), labels=np.array([0, 0, 1, 1])))
        for p in ([0.1, 0.4, 0.35, 0.8], [0.1, 0.2, 0.3, 0.4])
    )
    drawn = one.plot(beside=[Overlay("Pinned: sure", "pinned", two)])
    text = drawn.layout.annotations[-1].text
    # Three of four pairs are in order, and all of them.
    assert "0.750" in text.split("<br>")[0]
    assert text.split("<br>")[1].startswith("Pinned: AUROC ")
    assert "1.000" in text.split("<br>")[1]


def test_a_headline_about_a_slice_is_drawn_with_the_slice_and_promised_in_squares():
    sample = one_region(np.random.default_rng(1), off=1.0)
    verdict, figure = judged(sample), Reliability.compute(sample)
    assert verdict.named_where == (("region", "0"),)
    (some,) = ReliabilityOverlay.of_headline(sample, figure.sums, verdict)
    inside = sample.data.groups["region"].mask("0")
    assert some.count.min() >= FEW_ROWS
    assert 0.9 * inside.sum() < some.count.sum() <= inside.sum()
    # Below what is observed there, and the label of the worst bin of all rows is left out.
    assert (some.mean_score < some.observed).all()
    drawn = figure.plot(beside=[some])
    assert "region = 0" in [trace.name for trace in drawn.data]
    assert not any("<b>□ about" in (a.text or "") for a in drawn.layout.annotations)
    assert any("<b>□ about" in (a.text or "") for a in figure.plot().layout.annotations)
    squares = HundredSquares.compute(verdict, sample)
    assert [panel.title for panel in squares.panels] == ["All rows", "Where region = 0"]
    assert squares.panels[1].rows == inside.sum()
    # Where a name is long its values alone are named; a number alone is no class.
    sample = sample.with_data(with_predicted(sample.data))
    both = replace(verdict, off_where=(*verdict.off_where, (PREDICTED, "1")))
    (some,) = ReliabilityOverlay.of_headline(sample, figure.sums, both)
    assert some.name == "0, class 1"
    # A headline about all rows, or none, draws no slice.
    alike = judged(one_region(np.random.default_rng(1), all_off=0.3))
    assert alike.named_where == ()
    assert ReliabilityOverlay.of_headline(sample, figure.sums, alike) == ()
    # The line below says what the title does not.
    assert verdict.beyond_headline.startswith("No miscalibration found on the other ")
    assert re.match(r"95 % CI [\d.]+ to [\d.]+, furthest", alike.beyond_headline)
