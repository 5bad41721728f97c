"""The methods for two classes against independent implementations, on the sample data and on real forecasts.

Values on the sample data are recorded by ``benchmarks/record_two_classes.py``. Those of the basketball games, whose even rows fit and
whose odd rows judge, are of the same libraries and of scikit-learn; the file lies in a folder `shared` beside the checkout, where there
is one.
"""

import json
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from calviz.core.entry_specs import RECALIBRATORS

from . import samples

GAMES = (
    Path(__file__).resolve().parents[2].parent
    / "shared"
    / "data"
    / "fivethirtyeight"
    / "nba_games.csv"
)
RECORDED = json.loads(
    (Path(__file__).parent / "recorded_two_classes.json").read_text(encoding="utf-8")
)["values"]
beside = pytest.mark.skipif(not GAMES.exists(), reason="only of the data beside the checkout")


@cache
def sample(name):
    p, y, split = samples.rows(*samples.SETS[name])
    fit, test = split == "calibration", split == "test"
    p = p.astype(float)
    # As the peers had them: of class 1, and the rest.
    p[:, 0] = 1 - p[:, 1]
    return p[fit], y[fit], p[test]


@cache
def games():
    table = pd.read_csv(GAMES)
    p, y = table["prob1"].to_numpy(), table["prob1_outcome"].to_numpy().astype(int)
    p = np.stack([1 - p, p], axis=1)
    return p[::2], y[::2], p[1::2], y[1::2]


def having(quantity):
    return [name for name in RECORDED if quantity in RECORDED[name]]


def check(result, recorded, atol):
    rows = np.array(recorded["rows"])
    np.testing.assert_allclose(result[: rows.size], rows, atol=atol)
    assert result.mean() == pytest.approx(recorded["mean"], abs=atol)


@pytest.mark.parametrize("name", having("venn-abers@venn-abers"))
def test_venn_abers(name):
    p, y, q = sample(name)
    fitted = RECALIBRATORS["venn-abers"].make().fit(p, y)
    check(fitted.transform(q)[:, 1], RECORDED[name]["venn-abers@venn-abers"], 1e-12)
    pair = fitted.intervals(q)[:, 0]
    for end, quantity in enumerate(("p0@venn-abers", "p1@venn-abers")):
        check(pair[:, end], RECORDED[name][quantity], 1e-12)


@pytest.mark.parametrize("name", having("centered-isotonic@cir-model"))
def test_centered_isotonic(name):
    p, y, q = sample(name)
    fitted = RECALIBRATORS["centered-isotonic"].make(smooth=False).fit(p, y)
    check(fitted.curve(q[:, 1]), RECORDED[name]["centered-isotonic@cir-model"], 1e-12)


@pytest.mark.parametrize("key", ["linear", "affine", "quadratic"])
@pytest.mark.parametrize("name", having("linear@scikit-learn"))
def test_logistic_regressions(name, key):
    p, y, _ = sample(name)
    description = RECALIBRATORS[key].make().fit(p, y).describe()
    names = {"linear": "a", "affine": "ba", "quadratic": "abc"}[key]
    wanted = RECORDED[name][f"{key}@scikit-learn"]
    np.testing.assert_allclose([description[n] for n in names], wanted, rtol=1e-6)


def judged(key, **options):
    """Brier score of one column, and log loss, of the maps before the two classes are normalised."""
    p, y, q, hit = games()
    fitted = RECALIBRATORS[key].make(**options).fit(p, y)
    own = fitted.curve(q[:, 1]) if hasattr(fitted, "curve") else fitted.transform(q)[:, 1]
    true = np.maximum(np.where(hit == 1, own, 1 - own), 1e-300)
    return fitted, np.mean((own - hit) ** 2), -np.log(true).mean()


@beside
def test_the_games_linear_affine_and_quadratic():
    quadratic, brier, loss = judged("quadratic")
    description = quadratic.describe()
    assert [description[n] for n in "abc"] == pytest.approx(
        [-0.16294434, 0.82271048, -0.0025178], abs=6e-9
    )
    assert (brier, loss) == (
        pytest.approx(0.21005514, abs=6e-9),
        pytest.approx(0.60724970, abs=6e-9),
    )
    affine, linear = (judged(key)[0].describe() for key in ("affine", "linear"))
    assert [affine["b"], affine["a"]] == pytest.approx([-0.16418674, 0.82013175], abs=6e-9)
    assert linear["a"] == pytest.approx(0.74064903, abs=6e-9)


@beside
def test_the_games_centered_isotonic():
    _, brier, loss = judged("centered-isotonic", smooth=False)
    assert (brier, loss) == (
        pytest.approx(0.20976570, abs=6e-9),
        pytest.approx(0.76153562, abs=6e-9),
    )
    # Smoothed, no row costs more than its piece supports.
    assert judged("centered-isotonic")[2] < 0.6068


@beside
def test_the_games_venn_abers():
    fitted, brier, loss = judged("venn-abers")
    assert (brier, loss) == (
        pytest.approx(0.21000024, abs=6e-9),
        pytest.approx(0.60726745, abs=6e-9),
    )
    half = [[0.5, 0.5]]
    assert fitted.intervals(half)[0, 0] == pytest.approx([0.44884488, 0.45214521], abs=6e-9)
    assert fitted.transform(half)[0, 1] == pytest.approx(0.45065789, abs=6e-9)


@beside
def test_the_games_logit_spline():
    _, brier, loss = judged("logit-spline")
    # The package splinecalib 0.0.13, which fits 80 % of the rows, has a Brier score of .21026050.
    assert brier < 0.21026050
    assert loss < 0.6073
