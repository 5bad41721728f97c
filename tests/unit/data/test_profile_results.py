"""What profiles give in place of rows."""

import math

import numpy as np
import polars as pl
import pytest

import calviz
from calviz.core.errors import InputError
from calviz.core.profile import merge
from calviz.figures.class_bars import ClassBars
from tests.inputs.simulated import draw_labels, keep_few_scores
from tests.unit.data.test_sampling import check

# ---- Comparisons and periods of a profile are those of its rows


N = 6_000


@pytest.fixture(scope="module")
def rows() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    p = np.round(rng.beta(1, 3, N), 2)
    day = rng.integers(0, 3, N)
    return pl.DataFrame(
        {
            "p": p,
            "y": (rng.random(N) < np.where(day == 2, p, p**1.5)).astype(int),
            "split": rng.choice(["calibration", "test"], N),
            "day": (np.datetime64("2026-01-01") + day).astype("datetime64[us]"),
        }
    )


@pytest.fixture(scope="module")
def own(rows: pl.DataFrame) -> calviz.Predictions:
    return calviz.Predictions(
        probs=rows["p"].to_numpy(),
        labels=rows["y"].to_numpy(),
        splits=rows["split"].to_numpy(),
        times=rows["day"].to_numpy(),
    )


@pytest.fixture(scope="module")
def cells(rows: pl.DataFrame):
    return calviz.profile(rows, time="day").predictions()


@pytest.mark.slow
def test_maps_are_fitted_and_judged_as_on_the_rows(own, cells):
    one, other = (
        calviz.compare(data, ["platt"], metrics=["nll", "ece"], resamples=200)
        for data in (own, cells)
    )
    assert other.fit.rows == one.fit.rows
    assert other.evaluation.rows == one.evaluation.rows
    for key in ("identity", "platt"):
        for metric in ("nll", "ece"):
            assert other[key].metrics[metric].value == pytest.approx(
                one[key].metrics[metric].value, abs=1e-6
            )
        assert other[key].predictions_changed == one[key].predictions_changed
        assert other[key].calibration_gain == pytest.approx(one[key].calibration_gain, abs=1e-6)


def test_a_profile_is_audited_as_its_rows(rows, own):
    of_cells, of_rows = (calviz.audit(data, ci=False) for data in (calviz.profile(rows), own))
    assert of_cells.verdict.direction == of_rows.verdict.direction
    for result in of_rows:
        assert of_cells[result.key].value == pytest.approx(result.value, rel=1e-6), result.key


def test_a_profile_is_not_divided_at_random(cells):
    with pytest.raises(InputError, match="profile cannot be divided at random"):
        calviz.compare(cells, ["platt"], cross_fit=2)


@pytest.mark.slow
def test_a_day_that_differs_is_found_as_among_the_rows(own, cells):
    one, other = (calviz.over_time(data, "ece", every="day", method=None) for data in (own, cells))
    assert [p.rows for p in other.periods] == [p.rows for p in one.periods]
    for a, b in zip(one.periods, other.periods, strict=True):
        assert b.result.value == pytest.approx(a.result.value, abs=1e-9)
        assert b.expected == pytest.approx(a.expected, rel=0.1)
        assert (b.adjusted <= 0.05) == (a.adjusted <= 0.05)
    # As it is the last one, it is where the scores change, and no other is on its side.
    assert one.sides == other.sides == ("2026-01-03",)


def test_after_a_map_cells_of_several_scores_are_no_longer_exact():
    rng = np.random.default_rng(1)
    p = rng.random(200_000)
    table = pl.DataFrame({"p": p, "y": (rng.random(p.size) < p).astype(int)})
    data = calviz.profile(table).predictions()
    from calviz.comparison.fitting import with_probabilities

    moved = with_probabilities(
        data, np.stack([1 - data.probs[:, 1] ** 2, data.probs[:, 1] ** 2], 1)
    )
    evaluation = calviz.evaluate(moved, ["nll", "ece"])
    assert [(m.exact, m.bound) for m in evaluation] == [(False, None)] * 2
    true = np.where(table["y"] == 1, p**2, 1 - p**2)
    assert evaluation["nll"].value == pytest.approx(-np.log(true).mean(), abs=1e-4)


@pytest.mark.slow
@pytest.mark.parametrize("reduction", ["positive", "top-label"])
def test_every_metric_is_that_of_the_rows_or_says_that_it_needs_them(own, cells, reduction):
    evaluation, wanted = (
        calviz.evaluate(
            data, reduction=reduction, ci=True, resamples=200, findings=False, classes=False
        )
        for data in (cells, own)
    )
    available = [m for m in evaluation if m.available]
    assert len(available) > 40
    for m in evaluation:
        assert m.available or "needs the rows" in m.reason
    for m in available:
        row = wanted[m.key]
        assert m.exact
        assert m.value == pytest.approx(row.value, rel=1e-7, abs=1e-7), m.key
        assert (m.interval is None) == (row.interval is None), m.key
        assert (m.noise_floor is None) == (row.noise_floor is None), m.key
        if m.noise_floor is not None:
            spread = abs(row.noise_floor.q95 - row.noise_floor.mean)
            assert m.noise_floor.mean == pytest.approx(
                row.noise_floor.mean, abs=0.5 * spread + 1e-9
            )


def test_few_cells_of_many_rows_are_enough_to_fit():
    table = pl.DataFrame(
        {
            "p": [0.2, 0.8] * 1_000,
            "y": [0, 1, 1, 1, 0] * 400,
            "split": ["calibration"] * 1_000 + ["test"] * 1_000,
        }
    )
    comparison = calviz.compare(calviz.profile(table).predictions(), ["platt"], metrics=["nll"])
    wanted = calviz.compare(
        calviz.Predictions(probs=table["p"], labels=table["y"], splits=table["split"]),
        ["platt"],
        metrics=["nll"],
    )
    assert comparison["platt"].metrics["nll"].value == pytest.approx(
        wanted["platt"].metrics["nll"].value
    )


def test_rows_of_a_cell_that_a_map_makes_impossible_are_all_counted():
    from calviz.comparison.fitting import with_probabilities

    table = pl.DataFrame({"p": [0.2] * 5 + [0.8] * 5, "y": [0, 0, 0, 0, 1] * 2})
    data = calviz.profile(table).predictions()
    certain = np.where(data.probs > 0.5, 1.0, 0.0)
    result = calviz.evaluate(with_probabilities(data, certain), ["nll"])["nll"]
    assert result.details["clipped_rows"] == 1 + 4


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [2, 3])
def test_the_limit_of_the_log_loss_is_that_of_the_rows(dtype, k):
    rng = np.random.default_rng(k)
    probs = rng.dirichlet(np.full(k, 0.03), 2_000).astype(dtype)
    columns = {f"p{j}": probs[:, j] for j in range(k)}
    if k == 2:
        probs[:, 0] = 1 - probs[:, 1]
        columns = {"p": probs[:, 1]}
    labels = rng.integers(k, size=2_000)
    profile = calviz.profile(pl.DataFrame({**columns, "y": labels}))
    result = calviz.evaluate(profile, ["nll"])["nll"]
    of_true, eps = probs[np.arange(2_000), labels], np.finfo(np.float64).eps
    wanted = -np.log(np.maximum(of_true, eps).astype(float)).mean()
    assert result.value == pytest.approx(wanted, rel=1e-9)
    assert result.details["clipped_rows"] == np.count_nonzero(of_true < eps) > 0


# ---- Logits of files and frames are summed as the probabilities that they stand for


N_OF_PROFILE_LOGITS = 400
KEYS = ["accuracy", "nll", "brier", "ece", "mce", "ks", "auroc", "mcs", "oe_ratio"]
#: Softmax is taken in single precision in memory, and rounded to it here.
SLACK = {np.float64: 1e-9, np.float32: 2e-6}


def one_column(kind: type = np.float64) -> pl.DataFrame:
    rng = np.random.default_rng(1)
    z = rng.normal(0, 2, N_OF_PROFILE_LOGITS)
    # Some whose probability is rounded to 0 or 1, right and wrong.
    z[:4] = 800, -800, 40, -40
    y = (rng.random(N_OF_PROFILE_LOGITS) < 1 / (1 + np.exp(-z / 2))).astype(np.int64)
    y[:4] = 0, 1, 1, 1
    return pl.DataFrame({"logit": z.astype(kind), "y": y})


def three_columns(kind: type = np.float64) -> pl.DataFrame:
    rng = np.random.default_rng(2)
    z = rng.normal(0, 2, (N_OF_PROFILE_LOGITS, 3)).astype(kind)
    z[0] = 900, -900, 5
    z[1] = 1, 1, 1
    return pl.DataFrame(
        {f"logit_{k}": z[:, k] for k in range(3)} | {"y": rng.integers(0, 3, N_OF_PROFILE_LOGITS)}
    )


@pytest.mark.parametrize("kind", [np.float64, np.float32])
@pytest.mark.parametrize("make", [one_column, three_columns])
def test_numbers_are_those_of_the_file_read_whole(tmp_path, make, kind):
    table = make(kind)
    for name, part in (("a", table[:130]), ("b", table[130:]), ("whole", table)):
        part.write_parquet(tmp_path / f"{name}.parquet")
    own = calviz.load(tmp_path / "whole.parquet")
    assert own.kind == "logits"
    profile = merge([calviz.profile(tmp_path / f"{name}.parquet") for name in "ba"])
    assert profile.is_exact
    assert profile.facts.single == (own.probs.dtype == np.float32)
    wanted = calviz.evaluate(own, KEYS)
    given = calviz.evaluate(profile, KEYS)
    for m in wanted:
        assert given[m.key].available == m.available, m.key
        if m.available:
            assert given[m.key].value == pytest.approx(m.value, rel=SLACK[kind], abs=SLACK[kind]), (
                m.key
            )


def test_two_rows_by_hand():
    rows = pl.DataFrame({"z": [math.log(3), 0.0], "y": [1, 0]})
    profile = calviz.profile(rows, label="y", scores=["z"], kind="logits")
    assert profile.cells["score_sum"].to_list() == pytest.approx([0.5, 0.75])
    assert profile.cells["log_loss"].to_list() == pytest.approx([math.log(2), math.log(4 / 3)])


@pytest.mark.parametrize("engine", ["pandas", "pyarrow", "duckdb"])
@pytest.mark.parametrize("make", [one_column, three_columns])
def test_every_engine_takes_them(engine: str, make):
    table = make()
    if engine == "duckdb":
        native = pytest.importorskip("duckdb").from_arrow(table.to_arrow())
    else:
        native = table.to_pandas() if engine == "pandas" else table.to_arrow()
    result, own = (
        merge_scores(calviz.profile(frame, true_class=True)) for frame in (native, table)
    )
    check(result, own)


def merge_scores(profile):
    """Engines differ in the last digit of exp: the scores that are apart for that are put together."""
    cells = profile.cells
    keys = [name for name in ("true", "cell", "hit") if name in cells.columns]
    numbers = [c for c in cells.columns if c not in (*keys, "low", "high")]
    summed = cells.group_by(keys).agg(*(pl.col(c).sum() for c in numbers)).sort(keys)
    return type(profile)(profile.facts, summed)


@pytest.mark.parametrize("value", [None, math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("make", [one_column, three_columns])
@pytest.mark.parametrize("engine", ["polars", "pandas", "duckdb"])
def test_one_that_is_not_finite_is_refused(value, make, engine):
    table = make()
    name = table.columns[-2]
    rows = table.with_columns(pl.Series(name, [*table[name][:-1].to_list(), value]))
    if engine == "duckdb":
        native = pytest.importorskip("duckdb").from_arrow(rows.to_arrow())
    else:
        native = rows.to_pandas() if engine == "pandas" else rows
    with pytest.raises(InputError, match="1 of 400 rows cannot be used: 1 with a missing score"):
        calviz.profile(native)


def test_probabilities_that_are_called_logits_are_refused():
    p = np.random.default_rng(0).dirichlet(np.ones(3), 50)
    rows = pl.DataFrame({f"p_{k}": p[:, k] for k in range(3)} | {"y": np.arange(50) % 3})
    with pytest.raises(InputError, match="declared as logits, but all lie in"):
        calviz.profile(rows, kind="logits")


# ---- Slices and classes of a profile are those of its rows


@pytest.fixture
def cells_of_profile_slices(monkeypatch):
    keep_few_scores(monkeypatch, 0)


@pytest.mark.parametrize("against", ["calibrated", "rest"])
def test_slices_are_those_of_the_rows(cells_of_profile_slices, against):
    rng = np.random.default_rng(0)
    p = rng.beta(1, 2, N).astype(np.float32)
    by = {"country": rng.choice(["de", "fr", "it"], N), "device": rng.choice(["a", "b"], N)}
    y = (rng.random(N) < p + 0.1 * (by["country"] == "fr")).astype(int)
    table = pl.DataFrame({"p": p, "y": y, **by})
    profile = calviz.profile(table, label="y", scores=["p"], by=list(by))
    assert profile.cells.height < N
    own = calviz.Predictions(probs=p, labels=y, groups=by)
    tested, wanted = (
        calviz.slices(d, list(by), against=against) for d in (profile.predictions(), own)
    )
    assert tested.rows == wanted.rows == N
    assert [s.where for s in tested.off] == [s.where for s in wanted.off]
    assert tested.off
    for s in wanted.slices:
        ours = next(one for one in tested.slices if one.where == s.where)
        assert ours.rows == s.rows
        for name in ("score", "hits", "gap", "interval", "ece"):
            assert getattr(ours, name) == pytest.approx(getattr(s, name), abs=1e-7), name
        assert ours.ece_noise == pytest.approx(s.ece_noise, rel=1e-4)
        assert ours.p_value == pytest.approx(s.p_value, rel=1e-3, abs=1e-12)
    sentences = [calviz.verdict(d).sentence for d in (profile, own)]
    assert sentences[0] == sentences[1]


@pytest.mark.parametrize("mode", ["predicted-class", "true-class", "one-vs-rest"])
def test_bars_of_two_classes_are_those_of_the_rows(cells_of_profile_slices, mode):
    rng = np.random.default_rng(1)
    p = rng.beta(1, 2, N)
    y = (rng.random(N) < p**1.3).astype(int)
    profile = calviz.profile(pl.DataFrame({"p": p, "y": y}))
    result, wanted = (
        ClassBars.compute(d, mode=mode, resamples=100)
        for d in (profile.predictions(), calviz.Predictions(probs=p, labels=y))
    )
    assert (result.rows == wanted.rows).all()
    assert result.value == pytest.approx(wanted.value, abs=1e-9)
    if mode == "true-class":
        assert result.band is None
        return
    for ours, theirs in zip(result.band, wanted.band, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-6)


def test_a_profile_with_all_classes_is_judged_by_all():
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), N)
    y = draw_labels(probs, rng)
    table = pl.DataFrame(probs, schema=["p_0", "p_1", "p_2"]).with_columns(y=y)
    sentence = calviz.verdict(calviz.profile(table, label="y", each_class=True)).sentence
    assert sentence == calviz.verdict(calviz.Predictions(probs=probs, labels=y)).sentence
    assert sentence.startswith("No miscalibration found")
    top = calviz.verdict(calviz.profile(table, label="y")).sentence
    assert top.startswith("No miscalibration of the top label found")
