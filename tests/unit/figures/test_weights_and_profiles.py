"""Every figure of weighted rows, and of a profile, shows what it shows of the rows written out."""

import numpy as np
import polars as pl
import pytest

import calviz
from calviz.core import profile as profile_module
from calviz.core.entry_specs import FIGURES
from calviz.core.errors import NotAvailable
from calviz.data.any_size import profiling as in_blocks
from calviz.data.any_size import profiling as summarise
from calviz.data.any_size import sums as aggregate
from calviz.sample.sample import Sample
from tests.inputs.simulated import draw_labels

N = 400
#: Columns that follow the number of rows: intervals, ranges and counts of weighted rows; bins of equal mass and curves whose
#: bandwidth is chosen lie elsewhere.
OF_ROWS = (
    *(
        "ci_low",
        "ci_high",
        "band_low",
        "band_high",
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
    for module in (aggregate, in_blocks, profile_module, summarise):
        monkeypatch.setattr(module, "FEW_SCORES", 0)
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
