"""The CORP diagram against scikit-learn's isotonic regression, its bands, and the plane of several models."""

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

import calviz
from calviz.core.errors import OptionError
from calviz.figures.corp import CorpDiagram, MiscalibrationPlane


def binary(n, power=1.0, seed=0):
    rng = np.random.default_rng(seed)
    score = rng.uniform(0.01, 0.99, n)
    labels = rng.random(n) < score**power
    return calviz.Predictions(probs=score, labels=labels, name=f"power {power}")


def test_the_curve_is_the_isotonic_regression():
    p = binary(3_000, 1.5)
    figure = CorpDiagram.compute(p, reduction="positive")
    fitted = IsotonicRegression(out_of_bounds="clip").fit(p.probs[:, 1], p.labels)
    np.testing.assert_allclose(figure.probability, fitted.predict(figure.score), atol=1e-9)
    assert (np.diff(figure.score) > 0).all()
    assert figure.outside > 0.5
    assert "Brier score of (score, hit) " in figure.describe()
    e = calviz.evaluate(p, ["brier_miscalibration", "nll_miscalibration"], reduction="positive")
    assert figure.parts["brier"][0] == e["brier_miscalibration"].value
    assert figure.parts["nll"][0] == e["nll_miscalibration"].value


def test_bands_are_those_of_drawn_rows_and_labels():
    p = binary(150, 1.5)
    score, hit = p.probs[:, 1], p.labels.astype(float)
    figure = CorpDiagram.compute(p, reduction="positive")
    rng = np.random.default_rng(5)

    def curve(s, h):
        return IsotonicRegression(out_of_bounds="clip").fit(s, h).predict(figure.score)

    calibrated = [curve(score, (rng.random(150) < score).astype(float)) for _ in range(200)]
    rows = rng.integers(150, size=(200, 150))
    resampled = [curve(score[r], hit[r]) for r in rows]
    for band, drawn in ((figure.consistency, calibrated), (figure.confidence, resampled)):
        for mine, theirs in zip(band, np.quantile(drawn, [0.025, 0.975], axis=0), strict=True):
            assert np.abs(mine - theirs).mean() < 0.03
    calm = CorpDiagram.compute(binary(2_000, seed=3), reduction="positive")
    assert calm.outside < 0.25


def test_the_plane_has_a_point_per_model():
    rng = np.random.default_rng(0)
    true = rng.uniform(0.25, 0.75, 800)
    labels = rng.random(800) < true
    models = {
        "honest": true,
        "sharp": np.clip(1.6 * (true - 0.5) + 0.5, 0.01, 0.99),
        "blind": np.full(800, 0.5),
    }
    comparison = calviz.compare_models(
        {k: calviz.Predictions(probs=v, labels=labels) for k, v in models.items()}, ["brier"]
    )
    for score in ("brier", "nll"):
        figure = MiscalibrationPlane.compute(comparison, score=score)
        frame = figure.frame().set_index("model")
        # A monotone map changes no ranking; a constant has none.
        assert frame.discrimination["honest"] == pytest.approx(
            frame.discrimination["sharp"], rel=0.02
        )
        assert frame.discrimination["blind"] == pytest.approx(0, abs=1e-12)
        assert frame.miscalibration["honest"] < frame.miscalibration["sharp"]
        assert figure.one_uncertainty
        assert figure.describe().endswith(".")
        # As the CORP diagram calls it: with more than two classes it is not the NLL.
        label = {"brier": "Brier score", "nll": "Log loss"}[score]
        assert figure.caption()[0] == f"{label} of (score, hit)"
        drawn = figure.plot(caption=True)
        assert len(drawn.data) == 7  # lines of equal score, and the points
        assert list(drawn.data[-1].x) == frame.miscalibration.tolist()
    # The Brier score itself is half the sum over both classes.
    brier = comparison["honest"].metrics["brier"].value / 2
    of = MiscalibrationPlane.compute(comparison, score="brier").frame().set_index("model")["score"]
    assert of["honest"] == pytest.approx(brier)
    with pytest.raises(OptionError, match="score"):
        MiscalibrationPlane.compute(comparison, score="auc")


def test_names_of_models_stay_inside_the_panel():
    # Of two models near the left edge neither has its name on the left, where it would leave the panel.
    rng = np.random.default_rng(0)
    score = rng.random(400)
    labels = (rng.random(400) < score).astype(int)
    scores = {"near one": score, "near two": score**1.01, "far": 1 - 0.4 * score}
    models = {name: calviz.Predictions(probs=v, labels=labels) for name, v in scores.items()}
    figure = MiscalibrationPlane.compute(calviz.compare_models(models, resamples=10), score="brier")
    names = {a.text: a.xanchor for a in figure.plot(width=360).layout.annotations if a.xshift}
    assert names == {"near one": "left", "near two": "left", "far": "right"}


def test_names_of_models_do_not_lie_on_points():
    # The second point is where the name of the first would be.
    figure = MiscalibrationPlane(
        split=None,
        rows=100,
        score="brier",
        models=("first", "second", "third"),
        miscalibration=np.array([0.0, 0.01, 0.1]),
        discrimination=np.array([0.1, 0.101, 0.12]),
        uncertainty=np.full(3, 0.25),
    )
    first = next(a for a in figure.plot(width=360).layout.annotations if a.text == "first")
    assert (first.xanchor, first.yanchor) == ("left", "top")


def _log_loss_of(figure):
    miscalibration, discrimination, uncertainty = figure.parts["nll"]
    return miscalibration - discrimination + uncertainty


def test_it_says_why_its_log_loss_is_not_the_nll_if_scores_are_rounded_to_1():
    # The true class has 1e-12 in one row, whose score is 1 in single precision: by hand -ln 1e-12 = 27.631, and 36.044 if the
    # rest is 0 and counts as the machine epsilon. All other rows have -ln 1/2.
    probs = np.full((100, 2), 0.5, dtype=np.float32)
    probs[0] = 1e-12, 1
    p = calviz.Predictions(probs=probs, labels=np.arange(100) % 2, name="rounded")
    figure = CorpDiagram.compute(p, reduction="positive", resamples=50)
    assert _log_loss_of(figure) == pytest.approx((36.0437 + 99 * np.log(2)) / 100, abs=1e-5)
    says = figure.reading()
    assert says.count("The NLL of these rows is ") == 1
    nll = (12 * np.log(10) + 99 * np.log(2)) / 100
    assert f"The NLL of these rows is {nll:.4f}: " in says
    assert "(in 1 row it counts as 2.2e-16, a loss of 36)" in says
    # The true class does not have probability 0: the NLL is not called infinite.
    note = calviz.evaluate(p, ["nll_miscalibration"], reduction="positive")["nll_miscalibration"]
    assert "1 row (1.00 %) has a score of 1 without a hit" in note.note
    assert "NLL" not in note.note


def test_it_says_nothing_about_the_nll_if_its_log_loss_is_the_nll():
    p = binary(500, 1.5)
    figure = CorpDiagram.compute(p, reduction="positive", resamples=50)
    nll = -np.log(p.probs[np.arange(500), p.labels]).mean()
    assert _log_loss_of(figure) == pytest.approx(nll)
    assert "NLL" not in figure.reading()


def test_it_says_why_its_log_loss_is_not_the_nll_of_many_classes():
    # Hits at 0.5, and misses at 0.5 whose true class has 0.3: (score, hit) knows only the 0.5, and each row costs ln 2.
    p = calviz.Predictions(
        probs=np.tile([0.5, 0.3, 0.2], (200, 1)), labels=np.repeat([0, 1], 100), name="three"
    )
    figure = CorpDiagram.compute(p, reduction="top-label", resamples=50)
    assert _log_loss_of(figure) == pytest.approx(np.log(2))
    nll = (np.log(1 / 0.5) + np.log(1 / 0.3)) / 2
    assert f"The NLL of these rows is {nll:.4f}: " in figure.reading()
