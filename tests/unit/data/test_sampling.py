"""Files of any size: sampled and summed."""

import json
from collections import Counter
from pathlib import Path

import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calviz
from calviz.comparison import recalibrate_files as apply_to_files_module
from calviz.comparison.recalibrate_files import apply_to_files
from calviz.core.errors import InputError, OptionError
from calviz.core.profile import Profile, ProfileColumns
from calviz.data.any_size import profiling
from calviz.data.any_size.sampling import content_hashes, draw
from calviz.data.format import ReadingOptions
from tests.inputs.command_line import outcome, run
from tests.inputs.simulated import draw_labels, keep_few_scores, softmax

# ---- Rows drawn from sources of any size are a function of the rows alone, and a map fitted on them is judged on others


N = 3_000
COLUMNS = ["p_a", "p_b", "p_c"]
HOW = {"label": "y", "scores": COLUMNS}


def rows(decimals: int | None = None, n: int = N, sharp: float = 2.0) -> pl.DataFrame:
    """Overconfident scores of three classes of unequal size; rounded ones have many copies."""
    rng = np.random.default_rng(0)
    true = rng.dirichlet([0.9, 0.5, 0.2], n)
    p = true**sharp / (true**sharp).sum(axis=1, keepdims=True)
    if decimals is not None:
        p[:, :2] = np.floor(p[:, :2] * 10**decimals) / 10**decimals
        p[:, 2] = np.round(1 - p[:, 0] - p[:, 1], decimals)
    drawn = draw_labels(true, rng)
    return pl.DataFrame(dict(zip(COLUMNS, p.T, strict=True)) | {"y": np.array(list("abc"))[drawn]})


def contents(sample, role: int) -> Counter:
    data = sample.data
    present = data.splits.codes == role if data.splits is not None else np.full(data.n, role == 0)
    values = zip(
        data.labels[present].tolist(), map(tuple, data.probs[present].tolist()), strict=True
    )
    return Counter(values)


@pytest.mark.slow
@pytest.mark.parametrize("decimals", [None, 1])
def test_any_division_and_engine_draws_the_same_rows(tmp_path: Path, decimals):
    table = rows(decimals)
    one = calviz.sample_rows(table, 200, judged=300, **HOW)
    shuffled = table.sample(fraction=1, shuffle=True, seed=1)
    for part, (a, b) in enumerate(((0, 10), (10, 1_700), (1_700, N))):
        shuffled[a:b].write_parquet(tmp_path / f"{part}.parquet")
    for source, more in (
        (shuffled.lazy(), {}),
        (tmp_path, {}),
        (tmp_path / "*.parquet", {"engine": "duckdb"}),
        (shuffled.to_pandas(), {}),
    ):
        other = calviz.sample_rows(source, 200, judged=300, **HOW, **more)
        np.testing.assert_array_equal(other.data.probs, one.data.probs)
        np.testing.assert_array_equal(other.data.labels, one.data.labels)
        np.testing.assert_array_equal(other.data.splits.codes, one.data.splits.codes)
    # Rows that fit do not judge, and no row is drawn more often than it is there.
    every = zip(
        table["y"].replace_strict({"a": 0, "b": 1, "c": 2}).to_list(),
        table.select(COLUMNS).iter_rows(),
        strict=True,
    )
    assert not contents(one, 0) + contents(one, 1) - Counter(every)
    assert one.data.splits.counts() == {"calibration": 200, "evaluation": 300}
    assert not np.array_equal(
        calviz.sample_rows(table, 200, seed=1, **HOW).data.probs, one.data.probs[:200]
    )
    # A smaller sample is part of a larger one, but for the rounding of the classes.
    smaller = contents(calviz.sample_rows(table, 100, **HOW), 0)
    assert (smaller - contents(one, 0)).total() == 0


def test_shares_of_classes_are_kept_to_a_row_and_copies_share_the_chance():
    table = rows(1)
    sample = calviz.sample_rows(table, 100, judged=77, **HOW)
    counts = np.array([(table["y"] == c).sum() for c in "abc"])
    assert (sample.counts[0] == counts).all()
    for drawn, size, of in ((sample.fit, 100, counts), (sample.judged, 77, counts - sample.fit)):
        assert drawn.sum() == size
        assert (np.abs(drawn - size * of / of.sum()) < 1).all()
    # Of m copies in a class of n rows, of which s are drawn, s m / n are drawn, to a row (one more for the last of the class).
    result = contents(sample, 0)
    levels = table.with_columns(k=pl.col("y").replace_strict({"a": 0, "b": 1, "c": 2}))
    for *p, k, copies in levels.group_by(*COLUMNS, "k").len().iter_rows():
        assert abs(result[(k, tuple(p))] - sample.fit[k] * copies / counts[k]) < 2
    assert "a " in sample.sentence()
    assert sample.record()["classes"]["a"] == {
        "fit_rows": int(sample.fit[0]),
        "of": int(counts[0]),
        "eval_rows": int(sample.judged[0]),
        "eval_of": int(counts[0] - sample.fit[0]),
    }


def test_of_fewer_rows_than_wanted_all_are_drawn(tmp_path: Path):
    table = rows()
    sample = calviz.sample_rows(table, **HOW)
    assert (sample.data.n, sample.data.splits) == (N, None)
    assert sample.counts.sum(axis=1).tolist() == [N, 0]
    table.write_parquet(tmp_path / "rows.parquet")
    with pytest.raises(InputError, match="3,000 rows, and 3,001 are to be drawn: none are left"):
        calviz.recalibrate_files(
            tmp_path / "rows.parquet", "temperature", tmp_path / "out", rows=N + 1, **HOW
        )


def test_every_row_has_the_same_chance():
    """100 rows, the last ten of which are copies of one: 300 times, ten are drawn."""
    labels = np.zeros(100, dtype=int)
    hashes = content_hashes(labels, [np.minimum(np.arange(100.0), 90)])
    most = np.full(100, 12)  # more than there are
    times, once = np.zeros(100), np.ones(100, dtype=int)
    for seed in range(300):
        drawn = draw(
            lambda: [(hashes, labels, most, once)],
            np.array([100]),
            np.array([10]),
            np.array([0]),
            seed,
        )
        assert drawn.fit.sum() == 10
        times += drawn.taken()(hashes, once)[0]
    singles = times[:90]
    statistic = ((singles - 30) ** 2 / 27).sum()  # binomial counts: about chi squared
    assert 50 < statistic < 140
    # Of ten copies nearly one is drawn each time: their count varies less than that of other ten.
    assert abs(times[90:].sum() - 300) < 4 * np.sqrt(270)


@pytest.mark.slow
def test_a_map_is_fitted_on_the_sample_and_judged_on_all_other_rows(tmp_path: Path):
    table, source, out = rows(2), tmp_path / "rows", tmp_path / "calibrated"
    source.mkdir()
    table[:1_000].write_parquet(source / "a.parquet")
    table[1_000:].write_parquet(source / "b.parquet")
    done = calviz.recalibrate_files(source, "dirichlet", out, rows=400, seed=3, **HOW)
    data = calviz.sample_rows(table, 400, seed=3, **HOW).data
    again = calviz.recalibrators.DirichletCalibration().fit(data.probs, data.labels)
    frame = pl.read_parquet(out / "*.parquet")
    np.testing.assert_allclose(
        frame.select(COLUMNS).to_numpy(),
        again.transform(table.select(COLUMNS).to_numpy()),
        atol=1e-9,
    )
    fits = frame["split"] == "calibration"
    classes = table["y"].replace_strict({"a": 0, "b": 1, "c": 2})
    marked = zip(
        classes.filter(fits).to_list(), table.filter(fits).select(COLUMNS).iter_rows(), strict=True
    )
    assert Counter(marked) == contents(done.sample, 0)
    assert (done.judge_column, done.judge_split) == ("split", "evaluation")
    own = calviz.evaluate(
        calviz.profile(out, label="y").predictions(), ["ece", "nll"], split="evaluation"
    )
    others = frame.filter(~fits)
    memory = calviz.Predictions(
        probs=others.select(COLUMNS).to_numpy(), labels=classes.filter(~fits).to_numpy()
    )
    for m in calviz.evaluate(memory, ["ece", "nll"]):
        assert own[m.key].value == pytest.approx(m.value, abs=1e-9)
    assert own["ece"].exact
    # A profile of calibrated rows of several classes has a verdict.
    assert calviz.verdict(calviz.profile(out, label="y").predictions()).sentence


def test_names_of_splits_are_compared_without_case_and_spaces():
    table = rows().with_columns(split=pl.Series(np.tile(["x", " Cal", "TEST "], N // 3)))
    assert calviz.sample_rows(table, 200, judged=100, **HOW).splits == (" Cal", "TEST ")
    table = table.with_columns(
        split=pl.Series(np.tile(["Training", "Kalibrierung", "Test"], N // 3))
    )
    assert calviz.sample_rows(table, 200, judged=100, **HOW).splits == ("Kalibrierung", "Test")


def test_splits_say_which_rows_fit_and_judge():
    splits = np.tile(["train-old", "cal", "test"], N // 3)
    table = rows().with_columns(split=pl.Series(splits))
    sample = calviz.sample_rows(table, 100, judged=50, **HOW)
    assert sample.splits == ("cal", "test")
    first = table.select(COLUMNS).to_numpy()
    for role, name in ((0, "cal"), (1, "test")):
        allowed = {tuple(p) for p in first[splits == name].tolist()}
        assert {p for _, p in contents(sample, role)} <= allowed
    assert "of split 'cal'" in sample.sentence()
    other = calviz.sample_rows(table, 100, judged=50, eval_split="cal", **HOW)
    assert {p for _, p in contents(other, 1)} <= {tuple(p) for p in first[splits == "cal"].tolist()}
    assert other.counts.sum(axis=1).tolist() == [2 * N // 3, N // 3]


def test_rows_that_the_model_was_trained_on_are_not_drawn_and_keep_their_split(tmp_path: Path):
    splits = np.tile(["TRAIN", "HOLDOUT", "HOLDOUT"], N // 3)
    table = rows().with_columns(split=pl.Series(splits))
    sample = calviz.sample_rows(table, 100, judged=50, **HOW)
    assert sample.splits == (None, None)
    first = table.select(COLUMNS).to_numpy()[splits == "HOLDOUT"]
    drawn = {p for role in (0, 1) for _, p in contents(sample, role)}
    assert drawn <= {tuple(p) for p in first.tolist()}
    assert "of 2,000 rows outside split 'TRAIN', by a hash" in sample.sentence()
    table.write_parquet(tmp_path / "rows.parquet")
    out = tmp_path / "out"
    done = calviz.recalibrate_files(tmp_path / "rows.parquet", "temperature", out, rows=100, **HOW)
    frame = pl.read_parquet(out / "rows.parquet")
    marks = Counter(zip(frame["split"], frame[done.judge_column], strict=True))
    assert marks == {("TRAIN", "TRAIN"): 1_000, ("HOLDOUT", "calibration"): 100, ("HOLDOUT", "evaluation"): 1_900}  # fmt: skip


@pytest.mark.parametrize(
    ("change", "how", "message"),
    [
        (
            {},
            {"rows": N, "judged": 1},
            "there are 3,000 rows, and 3,000 are to be drawn: none are left",
        ),
        ({}, {"rows": 0}, "'rows' must be"),
        ({}, {"rows": 10, "fit_split": "x"}, "there is no split 'x'"),
        ({}, {"rows": 10, "fit_split": "x", "eval_split": "x"}, "cannot both fit and judge"),
        ({"y": "nobody"}, {"rows": 10}, "1 of 3,000 rows cannot be used: 1 with a label"),
        ({"p_a": float("nan")}, {"rows": 10}, "row 2,501, with a missing score"),
        ({"p_a": 3.0}, {"rows": 10}, "row 2,501, with a score outside"),
        ({"p_a": 0.0, "p_b": 0.0, "p_c": 0.0}, {"rows": 10}, "scores that do not sum to 1"),
    ],
)
def test_bad_input_is_a_sentence(tmp_path: Path, change, how, message):
    table = rows().with_row_index("row")
    at = pl.col("row") == 2_500
    changed = {c: pl.when(at).then(pl.lit(v)).otherwise(pl.col(c)) for c, v in change.items()}
    path = tmp_path / "rows.parquet"
    table.with_columns(**changed).drop("row").write_parquet(path)
    with pytest.raises((InputError, OptionError)) as caught:
        calviz.sample_rows(path, **how, **HOW)
    assert message in str(caught.value)
    if change:
        assert "rows.parquet" in str(caught.value)


def test_what_cannot_be_read_is_named(tmp_path: Path):
    rows().write_parquet(tmp_path / "a.parquet")
    for broken in (b"PAR1", rows().drop("y")):
        if isinstance(broken, bytes):
            (tmp_path / "b.parquet").write_bytes(broken)
        else:
            broken.write_parquet(tmp_path / "b.parquet")
        with pytest.raises(
            InputError, match=r"b\.parquet: (it cannot be read|there is no column 'y')"
        ):
            calviz.sample_rows(tmp_path, 10, **HOW)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"a\.parquet: it cannot be read"):
        calviz.sample_rows(tmp_path, 10, **HOW)


def test_no_frame_is_a_sentence():
    with pytest.raises(InputError, match="got int, expected a path"):
        calviz.sample_rows(3, 10)


@pytest.mark.slow
def test_the_command_line_draws_says_and_judges(tmp_path: Path):
    source = tmp_path / "rows"
    source.mkdir()
    rows().write_parquet(source / "a.parquet")

    to = ("--sample", 100, "--judge-sample", 60, "--json", tmp_path / "c.json")
    code, text, wrong = outcome("compare", source, "--methods", "temperature", *to)
    assert code == 0, wrong
    assert "so rows are drawn. 100 rows to fit on" in wrong
    assert "judged on 60 (a stratified sample of 2,900 other rows" in text
    record = json.loads((tmp_path / "c.json").read_text())
    assert (record["fit"]["rows"], record["eval"]["rows"]) == (100, 60)
    assert record["sample"]["rows_of_source"] == N
    sample = calviz.sample_rows(source, 100, judged=60)
    result = calviz.compare(sample, ["temperature"], metrics=["nll"], ci=False)
    assert record["methods"]["temperature"]["metrics"]["nll"]["value"] == pytest.approx(
        result["temperature"].metrics["nll"].value, abs=1e-9
    )
    out, saved = tmp_path / "calibrated", tmp_path / "map.json"
    code, text, wrong = outcome(
        "recalibrate", source, "--method", "temperature", "--out", out, "--sample", 300, "--save-map", saved
    )  # fmt: skip
    assert (code, "300 rows to fit on" in wrong, "--split evaluation" in text) == (0, True, True)
    assert json.loads(saved.read_text())["sample"]["fit_rows"] == 300
    assert outcome("apply", source, "--map", saved, "--out", tmp_path / "again")[0] == 0
    again = pl.read_parquet(tmp_path / "again" / "a.parquet")
    assert again.equals(pl.read_parquet(out / "a.parquet").drop("split"))
    for arguments, sentence in (
        (("compare", source, "--cross-fit", 5), "--cross-fit needs all rows in memory"),
        (
            ("compare", source, "--html", tmp_path / "x.html"),
            "a sample is drawn: write --json instead.",
        ),
        (("compare", source, "--sample", 300, "--html", tmp_path / "x.html"), "leave out --sample"),
        (
            ("recalibrate", source, "--method", "platt", "--out", tmp_path / "x.csv"),
            "must be a folder",
        ),
    ):
        code, _, wrong = outcome(*arguments)
        assert (code, sentence in wrong) == (2, True)
    with pytest.raises(InputError, match="no rows to judge on"):
        calviz.compare(calviz.sample_rows(source, 300), ["temperature"])
    with pytest.raises(OptionError, match="a sample determines which rows"):
        calviz.compare(sample, ["temperature"], cross_fit=5)


# ---- Rows that are drawn may hold logits, stand for several rows, or count by a weight


N_OF_SAMPLING_KINDS = 400
LOGITS = ["logit_a", "logit_b", "logit_c"]
HOW_OF_SAMPLING_KINDS = {"label": "y", "scores": LOGITS, "kind": "logits"}
COUNTED = {"weight_column": "times", "weight_kind": "frequency"}


def logits() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    z = rng.normal(0, 2, (N_OF_SAMPLING_KINDS, 3))
    z[:20] = z[0]
    y = np.argmax(z / 2 + rng.gumbel(size=z.shape), axis=1)
    y[:20] = 1
    times = rng.integers(0, 6, N_OF_SAMPLING_KINDS)
    times[0] = 300
    more = {
        "y": np.array(list("abc"))[y],
        "times": times,
        "w": rng.exponential(size=N_OF_SAMPLING_KINDS),
    }
    return pl.DataFrame(dict(zip(LOGITS, z.T, strict=True)) | more)


def written_out(table: pl.DataFrame) -> pl.DataFrame:
    return table[np.repeat(np.arange(table.height), table["times"].to_numpy())].drop("times")


def temperature(table: pl.DataFrame, **how) -> np.ndarray:
    """The temperature of the least log loss, on a grid: not our fit."""
    z = table.select(LOGITS).to_numpy()
    y = table["y"].replace_strict({"a": 0, "b": 1, "c": 2}).to_numpy()
    weights = how.get("weights", np.ones(len(y)))
    grid = np.geomspace(0.5, 8, 3_000)
    scaled = z[None] / grid[:, None, None]
    given = np.take_along_axis(scaled, y[None, :, None], axis=2)[..., 0]
    losses = (np.log(np.exp(scaled).sum(axis=2)) - given) @ weights
    return grid[losses.argmin()]


def test_counts_draw_as_the_rows_written_out_do(tmp_path: Path):
    table = logits()
    wanted = calviz.sample_rows(written_out(table), 100, judged=70, seed=2, **HOW_OF_SAMPLING_KINDS)
    shuffled = table.sample(fraction=1, shuffle=True, seed=1)
    shuffled[:150].write_parquet(tmp_path / "a.parquet")
    shuffled[150:].write_parquet(tmp_path / "b.parquet")
    for source in (table.lazy(), tmp_path, table.to_pandas()):
        sample = calviz.sample_rows(
            source, 100, judged=70, seed=2, **HOW_OF_SAMPLING_KINDS, **COUNTED
        )
        np.testing.assert_array_equal(sample.data.logits, wanted.data.logits)
        np.testing.assert_array_equal(sample.data.labels, wanted.data.labels)
        np.testing.assert_array_equal(sample.data.splits.codes, wanted.data.splits.codes)
        np.testing.assert_array_equal(sample.counts, wanted.counts)
    assert sample.data.n == 170
    assert "as many rows as 'times' says" in sample.sentence()
    assert sample.record()["count_column"] == "times"
    # Of 300 and more copies as large a share is drawn as of the others.
    first = tuple(table.select(LOGITS).row(0))
    copies = [tuple(z) == first for z in sample.data.logits.tolist()]
    count = written_out(table).filter(pl.col("logit_a") == first[0]).height
    share = sample.fit[1] / sample.counts[0][1]
    assert abs(sum(np.array(copies) & (sample.data.splits.codes == 0)) - count * share) < 2


def test_a_map_of_logits_is_fitted_on_drawn_rows_and_written_as_probabilities(tmp_path: Path):
    table = logits()
    table.write_parquet(tmp_path / "rows.parquet")
    out = tmp_path / "out"
    done = calviz.recalibrate_files(
        tmp_path / "rows.parquet", "temperature", out, rows=150, **HOW_OF_SAMPLING_KINDS, **COUNTED
    )
    frame = pl.read_parquet(out / "rows.parquet")
    assert frame.columns == ["y", "times", "w", "p_a", "p_b", "p_c", "split"]
    # Rows of which only some were drawn are divided: nothing is lost, and the drawn ones are marked.
    fit = frame.filter(split="calibration")
    assert fit["times"].sum() == 150
    assert frame["times"].sum() == table["times"].sum()
    assert frame["times"].dtype == table["times"].dtype
    assert frame.height > N_OF_SAMPLING_KINDS
    by_hand = temperature(
        pl.DataFrame(dict(zip(LOGITS, done.sample.data.logits.T, strict=True))).with_columns(
            y=np.array(list("abc"))[done.sample.data.labels]
        )
    )
    t = done.recalibrator.temperature_
    assert t == pytest.approx(by_hand, rel=2e-3)
    z = table.select(LOGITS).to_numpy() / t
    probs = softmax(z)
    one_each = frame.unique("w", maintain_order=True)
    np.testing.assert_allclose(one_each.select("p_a", "p_b", "p_c").to_numpy(), probs, atol=1e-12)
    drawn = Counter(map(tuple, np.round(done.recalibrator.transform(done.sample.data.logits), 9)))
    marked = Counter()
    for *p, times in fit.select("p_a", "p_b", "p_c", "times").iter_rows():
        marked[tuple(np.round(p, 9))] += times
    assert marked == drawn
    # What comes out is read again, and judged on what did not fit.
    assert calviz.profile(out, label="y", **COUNTED).n == table["times"].sum()


def test_drawn_rows_keep_their_importance_weights(tmp_path: Path):
    table = logits()
    table.write_parquet(tmp_path / "rows.parquet")
    how = {**HOW_OF_SAMPLING_KINDS, "weight_column": "w"}
    sample = calviz.sample_rows(tmp_path / "rows.parquet", 200, judged=100, **how)
    weight_of = {(*z, c): w for *z, c, w in table.select(*LOGITS, "y", "w")[20:].iter_rows()}
    data, same = sample.data, tuple(table.select(LOGITS).row(0))
    for z, label, w in zip(data.logits.tolist(), data.labels, data.weights, strict=True):
        if tuple(z) == same:
            assert w in table["w"][:20].to_list()
        else:
            assert w == weight_of[(*z, "abc"[label])]
    # The same row with other weights is another row: none is drawn twice.
    assert len(set(data.weights)) == data.n
    # Who is drawn does not depend on how much they count, and so do the shares of classes.
    counts = np.array([(table["y"] == c).sum() for c in "abc"])
    assert (sample.counts[0] == counts).all()
    assert abs(data.weights.mean() - table["w"].mean()) < 5 * table["w"].std() / np.sqrt(300)
    assert "keeps its weight in 'w'" in sample.sentence()
    done = calviz.recalibrate_files(
        tmp_path / "rows.parquet", "temperature", tmp_path / "out", rows=200, **how
    )
    fit = pl.read_parquet(tmp_path / "out" / "rows.parquet").filter(split="calibration")
    assert sorted(fit["w"]) == sorted(done.sample.data.weights)
    rows = table.filter(pl.col("w").is_in(fit["w"].implode()))
    assert done.recalibrator.temperature_ == pytest.approx(
        temperature(rows, weights=rows["w"].to_numpy()), rel=2e-3
    )
    assert abs(temperature(rows) / done.recalibrator.temperature_ - 1) > 5e-3
    comparison = calviz.compare(sample, ["temperature"], metrics=["nll"], ci=False)
    assert comparison["temperature"].calibrated.weights.size == 100


def test_one_logit_of_two_classes(tmp_path: Path):
    rng = np.random.default_rng(1)
    z = rng.normal(0, 3, N_OF_SAMPLING_KINDS)
    y = (rng.random(N_OF_SAMPLING_KINDS) < 1 / (1 + np.exp(-z / 2))).astype(int)
    pl.DataFrame({"z": z, "y": y}).write_parquet(tmp_path / "rows.parquet")
    how = {"label": "y", "scores": ["z"], "kind": "logits"}
    done = calviz.recalibrate_files(
        tmp_path / "rows.parquet", "platt", tmp_path / "out", rows=200, **how
    )
    frame = pl.read_parquet(tmp_path / "out" / "rows.parquet")
    both = np.stack([np.zeros(N_OF_SAMPLING_KINDS), z], axis=1)
    np.testing.assert_allclose(
        frame.select("p_0", "p_1").to_numpy(), done.recalibrator.transform(both), atol=1e-12
    )


@pytest.mark.parametrize(
    ("how", "value", "message"),
    [
        (COUNTED, 0.5, "1 with a count that is not a whole number"),
        (COUNTED, float("nan"), "1 with a count that is not a whole number"),
        ({"weight_column": "times"}, -1.0, "1 with a weight that is not a number from 0 up"),
        (
            {"weight_column": "times"},
            float("inf"),
            "1 with a weight that is not a number from 0 up",
        ),
        ({}, None, "1 with a missing score"),
    ],
)
def test_what_cannot_be_drawn_is_counted_and_named(tmp_path: Path, how, value, message):
    name = "times" if how else "logit_b"
    column = logits()[name].cast(pl.Float64).to_list()
    column[7] = value if how else float("inf")
    table = logits().with_columns(pl.Series(name, column))
    table.write_parquet(tmp_path / "rows.parquet")
    with pytest.raises(InputError, match=r"row 8, with a") as caught:
        calviz.sample_rows(tmp_path / "rows.parquet", 50, **HOW_OF_SAMPLING_KINDS, **how)
    assert message in str(caught.value)


def test_probabilities_do_not_take_the_place_of_a_column(tmp_path: Path):
    table = logits().with_columns(p_b=pl.lit("x"))
    table.write_parquet(tmp_path / "rows.parquet")
    map_ = calviz.recalibrators.TemperatureScaling(input="logits")
    map_.fit(table.select(LOGITS).to_numpy(), np.arange(N_OF_SAMPLING_KINDS) % 3)
    record = map_.to_dict() | {"class_names": ["a", "b", "c"]}
    options = ReadingOptions(
        label="y", scores=tuple(LOGITS), kind="logits", class_names=tuple("abc")
    )
    with pytest.raises(InputError, match=r"rows\.parquet: the column 'p_b' exists already"):
        apply_to_files([tmp_path / "rows.parquet"], record, tmp_path / "out", options=options)


def test_clusters_are_refused_in_a_sentence():
    with pytest.raises(OptionError, match="'cluster_column' is not supported where rows are read"):
        calviz.sample_rows(logits(), 50, **HOW_OF_SAMPLING_KINDS, cluster_column="times")


@pytest.mark.slow
def test_the_commands_take_them(tmp_path: Path):
    logits().write_parquet(tmp_path / "rows.parquet")
    how = ("--label", "y", "--scores", ",".join(LOGITS), "--kind", "logits")
    counts = ("--weight", "times", "--weight-kind", "frequency")
    for weight, text in (
        (counts, "as many rows as 'times'"),
        (("--weight", "w"), "keeps its weight in 'w'"),
    ):
        given = ["compare", str(tmp_path / "rows.parquet"), *how, *weight, "--sample", "100"]
        result = run(*given, "--methods", "temperature")
        assert result.exit_code == 0, result.output
        assert text in result.stderr
        assert "not available" not in result.stderr


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_columns_of_files_in_a_folder_keep_their_types(tmp_path: Path, kind: str, monkeypatch):
    monkeypatch.setattr(apply_to_files_module, "_TYPED_ROWS", 150)
    table = pa.table(
        {
            "p": np.linspace(0.01, 0.99, N_OF_SAMPLING_KINDS),
            "at": pa.array(np.arange(N_OF_SAMPLING_KINDS), pa.time64("us")),
            "took": pa.array([None, *range(1, N_OF_SAMPLING_KINDS)], pa.duration("s")),
            "raw": pa.array([b"\xff\x00"] * N_OF_SAMPLING_KINDS, pa.binary()),
            "key": pa.array([b"ab"] * N_OF_SAMPLING_KINDS, pa.binary(2)),
            "text": pa.array(["x"] * N_OF_SAMPLING_KINDS, pa.string()),
            "list": pa.array(
                [[float(i)] for i in range(N_OF_SAMPLING_KINDS)], pa.list_(pa.float64())
            ),
            "digits": pa.array([1] * N_OF_SAMPLING_KINDS, pa.decimal128(30, 2)),
        }
    )
    path = tmp_path / f"rows.{kind}"
    if kind == "parquet":
        pq.write_table(table, path)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    map_ = calviz.recalibrators.PlattScaling()
    y = np.arange(N_OF_SAMPLING_KINDS) % 2
    map_.fit(np.column_stack([1 - table["p"].to_numpy(), table["p"].to_numpy()]), y)
    (out,) = apply_to_files([path], map_.to_dict(), tmp_path / "out")
    for name in table.column_names[1:]:
        written = pq.read_table(out)[name]
        # Lists may name their items differently.
        assert written.type.equals(table[name].type), name
        assert written.to_pylist() == table[name].to_pylist()
    assert pq.read_table(out)["p"].to_pylist() != table["p"].to_pylist()


# ---- The same cells from every engine that narwhals carries the sums to


N_OF_ENGINES = 2_000


def table() -> pl.DataFrame:
    rng = np.random.default_rng(3)
    p = rng.beta(0.7, 2, N_OF_ENGINES)
    p[:4] = 0.0, 1.0, 0.5, 1 / 15
    day = np.datetime64("2026-01-30T12:00", "us") + np.timedelta64(86_400_000_000) * rng.integers(
        0, 4, N_OF_ENGINES
    )
    return pl.DataFrame(
        {
            "p": p,
            "y": (rng.random(N_OF_ENGINES) < p).astype(np.int32),
            "country": rng.choice(["de", "fr"], N_OF_ENGINES),
            "day": day.astype("datetime64[us]"),
        }
    )


def wide() -> pl.DataFrame:
    rng = np.random.default_rng(4)
    probs = rng.dirichlet(np.ones(4) * 0.5, N_OF_ENGINES)
    probs[:2] = 0.25
    columns = {f"p_{k}": probs[:, k] for k in range(4)}
    return pl.DataFrame(columns | {"y": rng.integers(0, 4, N_OF_ENGINES).astype(np.int32)})


def check(result: Profile, own: Profile) -> None:
    assert result.facts == own.facts
    keys = [c for c in own.cells.columns if own.cells[c].dtype != pl.Float64]
    assert result.cells.select(keys).equals(own.cells.select(keys))
    for name in set(own.cells.columns) - set(keys):
        np.testing.assert_allclose(result.cells[name], own.cells[name], rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("engine", ["pandas", "pyarrow", "duckdb"])
def test_frames_of_other_libraries(engine: str):
    for rows, wanted in (
        (table(), {"by": ["country"], "time": "day", "every": "month"}),
        (wide(), {}),
    ):
        if engine == "duckdb":
            duckdb = pytest.importorskip("duckdb")
            native = duckdb.from_arrow(rows.to_arrow())
        else:
            native = rows.to_pandas() if engine == "pandas" else rows.to_arrow()
        check(calviz.profile(native, **wanted), calviz.profile(rows, **wanted))


@pytest.mark.parametrize("kind", [np.float32, np.float64])
@pytest.mark.parametrize("few", [0, 700, 1 << 17])
def test_sorted_blocks_are_what_is_grouped(monkeypatch, kind, few: int):
    keep_few_scores(monkeypatch, few)
    monkeypatch.setattr(profiling, "BLOCK_ROWS", 300)
    rng = np.random.default_rng(1)
    p = np.concatenate([np.arange(400) / 61_440, rng.random(600), rng.choice([0, 1, 0.25], 600)])
    rows = pl.DataFrame(
        {"p": p.astype(kind), "y": rng.integers(0, 2, p.size), "half": np.arange(p.size) % 2}
    ).sample(fraction=1, shuffle=True, seed=0)
    layout = ProfileColumns(label="y", scores=("p",), classes=(0, 1), class_names=("0", "1"))
    assert profiling.cells_in_blocks(nw.from_native(rows.lazy()), layout) is not None
    for wanted in ({}, {"by": ["half"]}):
        profile = calviz.profile(rows, label="y", scores=["p"], **wanted)
        check(profile, calviz.profile(rows.to_arrow(), label="y", scores=["p"], **wanted))
        assert profile.is_exact == (few > 700)
        halves = [
            calviz.profile(half, label="y", scores=["p"], **wanted)
            for half in rows.partition_by("half")
        ]
        check(halves[1] + halves[0], profile)


def test_duckdb_reads_the_files_itself(tmp_path):
    pytest.importorskip("duckdb")
    table().write_parquet(tmp_path / "a.parquet")
    profile = calviz.profile(tmp_path / "a.parquet", engine="duckdb", memory="500MB")
    check(profile, calviz.profile(tmp_path / "a.parquet"))
