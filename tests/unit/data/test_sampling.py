"""Rows drawn from sources of any size are a function of the rows alone, and a map fitted on them is judged on others."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import calviz
from calviz.core.errors import InputError, OptionError
from calviz.data.any_size.sampling import content_hashes, draw
from tests.inputs.command_line import outcome
from tests.inputs.simulated import draw_labels

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


@pytest.mark.parametrize(
    ("change", "how", "message"),
    [
        ({}, {"rows": N}, "there are 3,000 rows, and 3,000 are to be drawn: none are left"),
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
