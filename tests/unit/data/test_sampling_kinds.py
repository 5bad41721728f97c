"""Rows that are drawn may hold logits, stand for several rows, or count by a weight."""

from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calviz
from calviz.comparison import recalibrate_files as apply_to_files_module
from calviz.comparison.recalibrate_files import apply_to_files
from calviz.core.errors import InputError
from calviz.data.loaded import ReadingOptions
from tests.inputs.command_line import run
from tests.inputs.simulated import softmax

N = 400
LOGITS = ["logit_a", "logit_b", "logit_c"]
HOW = {"label": "y", "scores": LOGITS, "kind": "logits"}
COUNTED = {"weight_column": "times", "weight_kind": "frequency"}


def logits() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    z = rng.normal(0, 2, (N, 3))
    z[:20] = z[0]
    y = np.argmax(z / 2 + rng.gumbel(size=z.shape), axis=1)
    y[:20] = 1
    times = rng.integers(0, 6, N)
    times[0] = 300
    more = {"y": np.array(list("abc"))[y], "times": times, "w": rng.exponential(size=N)}
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
    wanted = calviz.sample_rows(written_out(table), 100, judged=70, seed=2, **HOW)
    shuffled = table.sample(fraction=1, shuffle=True, seed=1)
    shuffled[:150].write_parquet(tmp_path / "a.parquet")
    shuffled[150:].write_parquet(tmp_path / "b.parquet")
    for source in (table.lazy(), tmp_path, table.to_pandas()):
        sample = calviz.sample_rows(source, 100, judged=70, seed=2, **HOW, **COUNTED)
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
        tmp_path / "rows.parquet", "temperature", out, rows=150, **HOW, **COUNTED
    )
    frame = pl.read_parquet(out / "rows.parquet")
    assert frame.columns == ["y", "times", "w", "p_a", "p_b", "p_c", "split"]
    # Rows of which only some were drawn are divided: nothing is lost, and the drawn ones are marked.
    fit = frame.filter(split="calibration")
    assert fit["times"].sum() == 150
    assert frame["times"].sum() == table["times"].sum()
    assert frame["times"].dtype == table["times"].dtype
    assert frame.height > N
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
    how = {**HOW, "weight_column": "w"}
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
    z = rng.normal(0, 3, N)
    y = (rng.random(N) < 1 / (1 + np.exp(-z / 2))).astype(int)
    pl.DataFrame({"z": z, "y": y}).write_parquet(tmp_path / "rows.parquet")
    how = {"label": "y", "scores": ["z"], "kind": "logits"}
    done = calviz.recalibrate_files(
        tmp_path / "rows.parquet", "platt", tmp_path / "out", rows=200, **how
    )
    frame = pl.read_parquet(tmp_path / "out" / "rows.parquet")
    both = np.stack([np.zeros(N), z], axis=1)
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
        calviz.sample_rows(tmp_path / "rows.parquet", 50, **HOW, **how)
    assert message in str(caught.value)


def test_probabilities_do_not_take_the_place_of_a_column(tmp_path: Path):
    table = logits().with_columns(p_b=pl.lit("x"))
    table.write_parquet(tmp_path / "rows.parquet")
    map_ = calviz.recalibrators.TemperatureScaling(input="logits")
    map_.fit(table.select(LOGITS).to_numpy(), np.arange(N) % 3)
    record = map_.to_dict() | {"class_names": ["a", "b", "c"]}
    options = ReadingOptions(
        label="y", scores=tuple(LOGITS), kind="logits", class_names=tuple("abc")
    )
    with pytest.raises(InputError, match=r"rows\.parquet: the column 'p_b' exists already"):
        apply_to_files([tmp_path / "rows.parquet"], record, tmp_path / "out", options=options)


def test_clusters_are_refused_in_a_sentence():
    with pytest.raises(
        InputError, match=r"do not support clusters, because they take rows one by one"
    ):
        calviz.sample_rows(logits(), 50, **HOW, cluster_column="times")


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
            "p": np.linspace(0.01, 0.99, N),
            "at": pa.array(np.arange(N), pa.time64("us")),
            "took": pa.array([None, *range(1, N)], pa.duration("s")),
            "raw": pa.array([b"\xff\x00"] * N, pa.binary()),
            "key": pa.array([b"ab"] * N, pa.binary(2)),
            "text": pa.array(["x"] * N, pa.string()),
            "list": pa.array([[float(i)] for i in range(N)], pa.list_(pa.float64())),
            "digits": pa.array([1] * N, pa.decimal128(30, 2)),
        }
    )
    path = tmp_path / f"rows.{kind}"
    if kind == "parquet":
        pq.write_table(table, path)
    else:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    map_ = calviz.recalibrators.PlattScaling()
    y = np.arange(N) % 2
    map_.fit(np.column_stack([1 - table["p"].to_numpy(), table["p"].to_numpy()]), y)
    (out,) = apply_to_files([path], map_.to_dict(), tmp_path / "out")
    for name in table.column_names[1:]:
        written = pq.read_table(out)[name]
        # Lists may name their items differently.
        assert written.type.equals(table[name].type), name
        assert written.to_pylist() == table[name].to_pylist()
    assert pq.read_table(out)["p"].to_pylist() != table["p"].to_pylist()
