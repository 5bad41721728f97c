"""Profiles of each class and by true class."""

import numpy as np
import polars as pl
import pytest

import calviz
from calviz.core.errors import InputError
from calviz.data.any_size import profiling
from calviz.figures.class_bars import ClassBars
from calviz.sample import true_classes as true_class_cells
from calviz.sample.one_vs_rest import erring_together
from calviz.sample.sample import Sample
from tests.inputs import command_line
from tests.inputs.simulated import draw_labels, keep_few_scores

# ---- Cells of each class: class-wise errors from a profile are those of the rows


KEYS = ("classwise_ece", "tace", "ks_classwise")
N = 4_000


def simulated(
    k: int = 4, kind: type = np.float64, off: float = 0.1
) -> tuple[pl.DataFrame, calviz.Predictions]:
    """Rows of a model that gives the first class too much."""
    rng = np.random.default_rng(1)
    probs = rng.dirichlet(np.full(k, 0.4), N)
    y = draw_labels(probs, rng)
    probs[:, 0] += off
    probs = (probs / probs.sum(axis=1, keepdims=True)).astype(kind)
    days = np.datetime64("2026-01-01", "us") + np.timedelta64(1, "D") * (np.arange(N) % 2)
    site = rng.choice(["a", "b"], N)
    columns = {f"p_{j}": probs[:, j] for j in range(k)} | {"y": y, "site": site, "day": days}
    data = calviz.Predictions(probs=probs, labels=y, groups={"site": site}, times=days)
    return pl.DataFrame(columns), data


def check(result, wanted, slack: float = 1e-9) -> None:
    for m in wanted:
        own = result[m.key]
        assert own.available, own.reason
        assert own.bound is not None
        assert own.bound < 0.003
        assert own.value == pytest.approx(m.value, abs=own.bound + slack), m.key
    assert result["classwise_ece"].exact
    assert result["classwise_ece"].bound == 0


def bars(data) -> ClassBars:
    return ClassBars.compute(data, mode="one-vs-rest")


@pytest.mark.parametrize(("k", "kind"), [(3, np.float64), (12, np.float32)])
def test_errors_are_those_of_the_rows_however_these_are_divided(tmp_path, k, kind):
    table, own = simulated(k, kind)
    slack = 1e-9 if kind is np.float64 else 1e-6
    at = np.random.default_rng(0).permutation(N)
    how = {"label": "y", "each_class": True, "by": ["site"], "time": "day"}
    parts = [calviz.profile(table[rows], **how) for rows in (at[:1000], at[1000:])]
    whole = parts[1] + parts[0]
    assert "with cells of each class" in whole.sentence()
    whole.save(tmp_path / "a.parquet")
    data = calviz.load(tmp_path / "a.parquet")
    for where in ((), (("site", "a"),)):
        evaluation, wanted = (calviz.evaluate(Sample.of(d, where=where), KEYS) for d in (data, own))
        check(evaluation, wanted, slack)
    first = own.times == own.times.min()
    of_day = data.take(np.flatnonzero(data.times == data.times.min()))
    check(calviz.evaluate(of_day, KEYS), calviz.evaluate(own.take(first), KEYS), slack)
    ours, theirs = bars(data), bars(own)
    assert ours.n == theirs.n == N
    assert (ours.rows == theirs.rows).all()
    assert ours.value == pytest.approx(theirs.value, abs=slack)
    for name in ("interval", "band"):
        for end, wanted in zip(getattr(ours, name), getattr(theirs, name), strict=True):
            assert end == pytest.approx(wanted, abs=1e-4), name
    assert ours.beyond[0] > 0
    # Half of a block has no cells of its own.
    assert "needs the rows" in calviz.evaluate(data.take(np.arange(5)), KEYS)["tace"].reason


def test_two_classes_have_them_in_any_profile(monkeypatch):
    keep_few_scores(monkeypatch, 0)
    rng = np.random.default_rng(0)
    p = rng.beta(0.7, 2, N)
    y = (rng.random(N) < p**1.2).astype(np.int64)
    table = pl.DataFrame({"p": p, "y": y}).filter(pl.col("p") > 0.01)
    own = calviz.Predictions(probs=table["p"].to_numpy(), labels=table["y"].to_numpy())
    profile = calviz.profile(table, each_class=True)
    assert profile.class_cells is None
    check(calviz.evaluate(profile, KEYS), calviz.evaluate(own, KEYS))


def test_rows_that_count_and_logits():
    table, own = simulated(3)
    times = np.arange(N) % 4
    counted = calviz.profile(
        table.with_columns(times=times),
        label="y",
        scores=["p_0", "p_1", "p_2"],
        weight_column="times",
        weight_kind="frequency",
        each_class=True,
    )
    check(
        calviz.evaluate(counted, KEYS),
        calviz.evaluate(own.take(np.repeat(np.arange(N), times)), KEYS),
    )
    logits = table.select(pl.col("p_0", "p_1", "p_2").log().name.replace("p", "logit"), "y")
    of_logits = calviz.profile(logits, kind="logits", each_class=True)
    check(calviz.evaluate(of_logits, KEYS), calviz.evaluate(own, KEYS))


@pytest.mark.parametrize("engine", ["pandas", "duckdb", "pyarrow"])
def test_engines_agree(engine):
    table, _ = simulated(3)
    if engine == "duckdb":
        duckdb = pytest.importorskip("duckdb")
        native = duckdb.from_arrow(table.to_arrow())
    else:
        native = table.to_pandas() if engine == "pandas" else table.to_arrow()
    profile, wanted = (calviz.profile(t, label="y", each_class=True) for t in (native, table))
    assert profile.class_cells.drop("score_sum").equals(wanted.class_cells.drop("score_sum"))
    close = profile.class_cells["score_sum"] - wanted.class_cells["score_sum"]
    assert close.abs().max() < 1e-9


def test_without_them_it_says_how_to_have_them():
    table, _ = simulated(3)
    evaluation = calviz.evaluate(calviz.profile(table, label="y"), KEYS)
    for key in KEYS:
        assert evaluation[key].reason == (
            "needs the rows, or a profile with cells of each class (--each-class, each_class=True)."
        )
    with pytest.raises(InputError, match="one has them of each class, one has not"):
        calviz.profile(table, label="y") + calviz.profile(table, label="y", each_class=True)
    top = pl.DataFrame({"confidence": [0.5, 0.7], "correct": [0, 1]})
    with pytest.raises(InputError, match=r"leave out .* \(--each-class, each_class=\)"):
        calviz.profile(top, each_class=True)


def test_too_many_are_refused(monkeypatch):
    monkeypatch.setattr(profiling, "MOST_CELLS", 100)
    with pytest.raises(InputError, match="cells of each class, more than 100"):
        calviz.profile(simulated(3)[0], label="y", each_class=True)


def test_a_file_that_contradicts_itself_is_refused(tmp_path):
    whole = calviz.profile(simulated(3)[0], label="y", each_class=True)
    wrong = whole.class_cells.with_columns(hit=~pl.col("hit"))
    calviz.Profile(whole.facts, whole.cells, wrong).save(tmp_path / "a.parquet")
    with pytest.raises(InputError, match="its sums contradict each other"):
        calviz.load(tmp_path / "a.parquet")


def test_the_command_has_the_option(tmp_path):
    simulated(3)[0].write_parquet(tmp_path / "a.parquet")
    out = tmp_path / "out.parquet"
    args = [
        "profile",
        str(tmp_path / "a.parquet"),
        "--label",
        "y",
        "--out",
        str(out),
        "--each-class",
    ]
    result = command_line.run(*args)
    assert result.exit_code == 0, result.output
    assert calviz.load(out).class_cells is not None


def test_classes_that_err_together_have_the_variance_of_one():
    rng = np.random.default_rng(0)
    drawn = rng.gamma(4, 1, (8, 4_000))
    for together in (1, 2, 4):
        result = erring_together(rng, drawn, together)
        assert (np.sort(result, axis=1) == np.sort(drawn, axis=1)).all()
        ratio = result.sum(axis=0).var() / drawn.var(axis=1).sum()
        assert ratio == pytest.approx(together, rel=0.1)


@pytest.mark.slow
@pytest.mark.parametrize(("k", "files"), [(3, 25), (8, 12)])
def test_calibrated_models_are_rarely_off(k, files):
    """p-values at or below 5 % in at most 5 % of calibrated files; of others they are, and intervals hold the error."""
    rng = np.random.default_rng(k)
    off, held, seen = dict.fromkeys(KEYS, 0), 0, 0
    big = rng.dirichlet(np.full(k, 0.5), 200_000)
    sharp = big**1.3 / (big**1.3).sum(axis=1, keepdims=True)
    truth = np.abs(_binned(sharp, 15) - _binned(sharp, 15, big)).sum(axis=1).mean()
    names = [f"p_{j}" for j in range(k)]
    for seed in range(files):
        rows = rng.choice(len(big), 2_000, replace=False)
        y = draw_labels(big[rows], rng)
        evaluation, wrong = (
            calviz.evaluate(
                calviz.profile(
                    pl.DataFrame(probs[rows], schema=names).with_columns(y=y),
                    label="y",
                    each_class=True,
                ),
                KEYS if probs is big else KEYS[:1],
                ci=True,
                resamples=100,
                seed=seed,
            )
            for probs in (big, sharp)
        )
        for key in KEYS:
            off[key] += evaluation[key].noise_floor.p_value <= 0.05
        seen += wrong["classwise_ece"].noise_floor.p_value <= 0.05
        held += wrong["classwise_ece"].interval.low <= truth <= wrong["classwise_ece"].interval.high
    # At a rate of 5 %, more than 4 of 25, or 3 of 12, are seen less than once in 100; a rate of 95 % misses as many just as rarely.
    most = 4 if files == 25 else 3
    assert max(off.values()) <= most, off
    assert held >= files - most, held
    assert seen >= files - most, seen


def _binned(score: np.ndarray, bins: int, values: np.ndarray | None = None) -> np.ndarray:
    """Means of scores, or of other values, that fall into each bin of the score, shape (K, M)."""
    values = score if values is None else values
    place = np.clip(np.ceil(score * bins).astype(int) - 1, 0, bins - 1)
    return np.stack(
        [
            np.bincount(place[:, k], values[:, k], minlength=bins) / len(score)
            for k in range(score.shape[1])
        ]
    )


# ---- Cells by true class: the family of Ao et al. from a profile is that of the rows


KEYS_OF_PROFILE_TRUE_CLASSES = (
    "wsece",
    "msece",
    "cece",
    "wsmcs",
    "wsmcs_over",
    "under_mcs",
    "over_share",
)


def two() -> tuple[pl.DataFrame, calviz.Predictions]:
    rng = np.random.default_rng(0)
    p = rng.beta(0.7, 2, N)
    y = (rng.random(N) < p**1.2).astype(np.int64)
    return pl.DataFrame({"p": p, "y": y}), calviz.Predictions(probs=p, labels=y)


def four(names: bool = False) -> tuple[pl.DataFrame, calviz.Predictions]:
    rng = np.random.default_rng(1)
    probs = rng.dirichlet(np.full(4, 0.4), N)
    y = draw_labels(probs, rng)
    columns = {f"p_{k}": probs[:, i] for i, k in enumerate("abcd" if names else range(4))}
    labels = np.array(list("abcd"))[y] if names else y
    return pl.DataFrame(columns | {"y": labels}), calviz.Predictions(probs=probs, labels=y)


def close(result, wanted) -> None:
    for m in wanted:
        assert result[m.key].exact, m.key
        assert result[m.key].value == pytest.approx(m.value, abs=1e-12), m.key
        if m.interval is not None and m.noise_floor is not None and result[m.key].noise_floor:
            width = m.interval.high - m.interval.low
            assert result[m.key].interval == pytest.approx(m.interval, abs=0.15 * width), m.key
            floor = m.noise_floor
            off = 0.3 * abs(floor.q95 - floor.mean) + 1e-12
            assert result[m.key].noise_floor.mean == pytest.approx(floor.mean, abs=off), m.key


@pytest.mark.slow
@pytest.mark.parametrize("narrow", [1 << 7, 1 << 12, 1 << 40])
def test_two_classes_have_them_in_any_profile_of_profile_true_classes(monkeypatch, narrow):
    monkeypatch.setattr(true_class_cells, "NARROW", narrow)
    keep_few_scores(monkeypatch, 0)
    rows, own = two()
    how = {"ci": True, "resamples": 300, "classes": True}
    evaluation, wanted = (
        calviz.evaluate(d, KEYS_OF_PROFILE_TRUE_CLASSES, **how) for d in (calviz.profile(rows), own)
    )
    close(evaluation, wanted)
    for a, b in zip(evaluation.classes, wanted.classes, strict=True):
        assert (a.name, a.rows) == (b.name, b.rows)
        assert (a.accuracy, a.ece, a.mcs) == pytest.approx((b.accuracy, b.ece, b.mcs), abs=1e-12)
        assert a.ks == pytest.approx(b.ks, abs=1e-4)


@pytest.mark.parametrize("names", [False, True])
def test_more_classes_have_them_where_asked(tmp_path, names):
    rows, own = four(names)
    halves = [calviz.profile(part, true_class=True, by=()) for part in (rows[:1500], rows[1500:])]
    whole = halves[1] + halves[0]
    assert "4 classes, by true class" in whole.sentence()
    whole.save(tmp_path / "a.parquet")
    data = calviz.load(tmp_path / "a.parquet")
    evaluation = calviz.evaluate(
        data, [*KEYS_OF_PROFILE_TRUE_CLASSES, "ece", "nll"], ci=True, resamples=100, classes=True
    )
    wanted = calviz.evaluate(
        own, [*KEYS_OF_PROFILE_TRUE_CLASSES, "ece", "nll"], ci=True, resamples=100, classes=True
    )
    close(evaluation, wanted)
    # The labels of more classes cannot be redrawn from the largest probability.
    assert evaluation["wsece"].noise_floor is None
    assert [c.rows for c in evaluation.classes] == [c.rows for c in wanted.classes]
    without = calviz.evaluate(calviz.profile(rows), ["wsece"])["wsece"]
    assert "do not name the true classes" in without.reason


def test_too_many_cells_are_refused(monkeypatch):
    monkeypatch.setattr(profiling, "MOST_CELLS", 100)
    with pytest.raises(InputError, match="cells, more than 100; leave out the true classes"):
        calviz.profile(four()[0], true_class=True)


def test_the_command_has_the_option_of_profile_true_classes(tmp_path):
    four()[0].write_parquet(tmp_path / "a.parquet")
    out = tmp_path / "out.parquet"
    args = ["profile", str(tmp_path / "a.parquet"), "--out", str(out), "--true-class"]
    result = command_line.run(*args)
    assert result.exit_code == 0, result.output
    assert calviz.load(out).labels is not None
