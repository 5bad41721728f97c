"""Files and objects of profiles."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import calviz
from calviz.core.blocks import Stopped, watching
from calviz.core.entry_specs import FIGURES
from calviz.core.errors import InputError, NotAvailable, OptionError
from calviz.core.profile import KEY, Profile, merge, write_profile
from calviz.data.any_size import file_sources as sources
from calviz.data.reading import read_profile

# ---- Profiles of files: parts, faults, broken files, stopping and going on, and the file of the profile itself


N = 900


def table(seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    p = np.round(rng.beta(1, 2, N), 3)
    return pl.DataFrame(
        {
            "p": p,
            "y": (rng.random(N) < p).astype(int),
            "country": rng.choice(["de", "fr"], N),
            "date": np.datetime64("2026-01-30") + rng.integers(0, 4, N),
        }
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    at = tmp_path / "data"
    for seed in range(3):
        (at / f"day={seed}").mkdir(parents=True)
        table(seed).write_parquet(at / f"day={seed}" / f"part{seed}.parquet")
    return at


def same(a: Profile, b: Profile) -> bool:
    keys = [c for c in a.cells.columns if a.cells[c].dtype != pl.Float64]
    return a.cells.select(keys).equals(b.cells.select(keys)) and bool(
        np.allclose(a.cells["score_sum"], b.cells["score_sum"], rtol=0, atol=1e-9)
    )


def test_three_rows_by_hand():
    # Edges of the cells are multiples of 1 / 61,440: 1/2 is one, 0.3 is none.
    rows = pl.DataFrame({"p": [0.5, 0.5, 0.3], "y": [1, 0, 1]})
    profile = calviz.profile(rows, label="y", scores=["p"])
    assert profile.cells.select("cell", "hit", "n", "score_sum").rows() == [
        (2 * 18_432, True, 1, 0.3),
        (61_440, False, 1, 0.5),
        (61_440, True, 1, 0.5),
    ]
    assert profile.cells["log_loss"].to_list() == pytest.approx(-np.log([0.3, 0.5, 0.5]))
    assert profile.cells["squared_error"].to_list() == pytest.approx([2 * 0.49, 0.5, 0.5])
    assert calviz.evaluate(profile, ["ece"], bins=2)["ece"].value == pytest.approx(
        (abs(0.3 + 0.5 + 0.5 - 2) + 0) / 3
    )


def test_a_hive_table_by_country_and_month_is_the_sum_of_its_files(folder: Path):
    wanted = {"by": ["country", "day"], "time": "date", "every": "month"}
    whole = calviz.profile(folder, **wanted)
    assert whole.n == 3 * N
    assert whole.is_exact
    assert whole.facts.groups == ("country", "day")
    assert same(whole, calviz.profile(str(folder / "**" / "*.parquet"), **wanted))
    parts = [calviz.profile(p, **wanted) for p in sorted(folder.glob("*/*.parquet"))]
    assert same(whole, merge(reversed(parts)))
    data = whole.predictions()
    assert {str(t)[:7] for t in data.times} == {"2026-01", "2026-02"}
    rows = pl.concat([table(s) for s in range(3)]).filter(pl.col("country") == "de")
    own = calviz.Predictions(probs=rows["p"].to_numpy(), labels=rows["y"].to_numpy())
    from calviz.sample.sample import Sample

    asked = ("ece", "nll", "ks", "auroc")
    ours = calviz.evaluate(Sample.of(whole, where=(("country", "de"),)), asked, ci=True)
    for result in calviz.evaluate(own, asked, ci=True):
        from_profile = ours[result.key]
        assert (from_profile.exact, from_profile.bound) == (True, 0)
        assert from_profile.value == pytest.approx(result.value, abs=1e-9)
        width = result.interval.high - result.interval.low
        assert from_profile.interval == pytest.approx(result.interval, abs=0.2 * width)
        assert from_profile.noise_floor.mean == pytest.approx(
            result.noise_floor.mean, abs=0.1 * width
        )


def test_a_written_profile_is_read_again_and_opened_like_any_other_file(folder: Path, tmp_path):
    profile = calviz.profile(folder, by=["country"], time="date")
    write_profile(profile, tmp_path / "a.parquet")
    again = read_profile(tmp_path / "a.parquet")
    assert again.facts == profile.facts
    assert again.cells.equals(profile.cells)
    opened = calviz.load(tmp_path / "a.parquet")
    assert opened.rows == 3 * N
    assert opened.n == profile.cells.height
    assert "2,700 rows" in repr(opened)


def damaged(path: Path, **changes) -> None:
    import pyarrow.parquet as pq

    whole = pq.read_table(path)
    facts = json.loads(whole.schema.metadata[KEY]) | changes
    pq.write_table(whole.replace_schema_metadata({KEY: json.dumps(facts)}), path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"version": 2}, "profile of version 2 .* expected version 1"),
        ({"rows": 5}, "its sums contradict each other"),
        ({"groups": ["planet"]}, "does not have the columns that its facts declare"),
        ({"reduction": "none"}, "its facts are incomplete"),
    ],
)
def test_a_profile_that_is_not_what_it_says_is_refused(tmp_path: Path, changes, message):
    write_profile(calviz.profile(table()), tmp_path / "a.parquet")
    damaged(tmp_path / "a.parquet", **changes)
    with pytest.raises(InputError, match=rf"a\.parquet: .*{message}"):
        calviz.load(tmp_path / "a.parquet")


def test_profiles_of_different_groups_or_times_are_not_added():
    one = calviz.profile(table(), by=["country"])
    with pytest.raises(InputError, match="different group columns cannot be merged"):
        one + calviz.profile(table())
    with pytest.raises(InputError, match="different buckets of time"):
        merge([calviz.profile(table()), calviz.profile(table(), time="date")])
    three = pl.DataFrame(
        {
            "label": ["a", "b", "c"],
            "p_a": [0.5, 0.2, 0.3],
            "p_b": [0.2, 0.5, 0.3],
            "p_c": [0.3, 0.3, 0.4],
        }
    )
    with pytest.raises(InputError, match=r"by true class.*'profile' has none, 'profile' has some"):
        merge([calviz.profile(three), calviz.profile(three, true_class=True)])


def test_bad_rows_are_counted_and_the_first_is_named(folder: Path):
    bad = table(1).with_columns(
        p=pl.when(pl.int_range(N) == 17).then(1.5).otherwise("p"),
        y=pl.when(pl.int_range(N) == 40).then(None).otherwise("y"),
    )
    bad.write_parquet(folder / "day=1" / "part1.parquet")
    with pytest.raises(
        InputError, match=r"2 of 2,700 rows cannot be used: .*row 18 of part1\.parquet"
    ):
        calviz.profile(folder)
    with pytest.raises(InputError, match="1 with no label, 1 with a score outside"):
        calviz.profile(bad)


def test_a_broken_file_is_named_or_left_out(folder: Path):
    (folder / "day=1" / "part1.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(InputError, match=r"part1\.parquet: the file cannot be read"):
        calviz.profile(folder)
    profile = calviz.profile(folder, skip_broken=True)
    assert (profile.n, profile.facts.skipped) == (2 * N, ("part1.parquet",))


def test_stopped_work_goes_on_where_it_was(folder: Path, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(sources, "PART_BYTES", 1)
    messages = []

    def stop_at_the_third(doing: str) -> None:
        messages.extend([doing] * bool(doing))
        if len(messages) == 3:
            raise Stopped

    with pytest.raises(Stopped), watching(stop_at_the_third):
        calviz.profile(folder, parts=tmp_path / "parts")
    assert messages[2].startswith("part 3 of 3, 1,800 rows")
    kept = {p: p.stat().st_mtime_ns for p in (tmp_path / "parts").iterdir()}
    assert len(kept) == 2
    whole = calviz.profile(folder, parts=tmp_path / "parts")
    assert {p: p.stat().st_mtime_ns for p in kept} == kept
    assert same(whole, calviz.profile(folder))
    # Another file under the same name is another part.
    table(7).write_parquet(folder / "day=0" / "part0.parquet")
    assert not same(calviz.profile(folder, parts=tmp_path / "parts"), whole)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"by": ["planet"]}, "no column 'planet'"),
        ({"every": "minute"}, "every"),
        ({"label": "y", "scores": ["country"]}, "country"),
        ({"separator": ";"}, "'separator' is not supported where rows are read block by block"),
        ({"decimal": "."}, "'decimal' is not supported"),
        ({"header_line": 0}, "'header_line' is not supported"),
        ({"repair": ["renormalise"]}, "'repair' is not supported"),
        ({"confidence_pattern": "([0-9]+)"}, "'confidence_pattern' is not supported"),
    ],
)
def test_what_cannot_be_told_is_said_in_a_sentence(options, message):
    with pytest.raises((InputError, OptionError), match=message):
        calviz.profile(table(), **options)


@pytest.mark.parametrize("reads", [calviz.profile, calviz.sample_rows])
def test_how_text_is_written_is_not_told_to_what_reads_block_by_block(tmp_path, reads):
    table().write_csv(tmp_path / "rows.csv")
    with pytest.raises(OptionError, match="or read the whole file"):
        reads(tmp_path / "rows.csv", separator=",")


def test_labels_are_read_as_those_of_files():
    rows = table()
    own = calviz.evaluate(calviz.profile(rows), ["ece"])["ece"].value
    for label in (
        pl.col("y").cast(pl.Boolean),
        pl.col("y") * 2 - 1,
        pl.when(pl.col("y") == 1).then(pl.lit("yes")).otherwise(pl.lit("no")),
        pl.col("y").cast(pl.Float64),
    ):
        again = calviz.profile(rows.with_columns(y=label))
        assert calviz.evaluate(again, ["ece"])["ece"].value == pytest.approx(own)


def test_the_top_label_of_several_classes():
    rng = np.random.default_rng(0)
    probs = np.array([[0.7, 0.1, 0.1, 0.1], [0.25, 0.25, 0.25, 0.25], [0.1, 0.2, 0.2, 0.5]])
    probs = probs[rng.integers(0, 3, 500)]
    labels = rng.integers(0, 4, 500)
    columns = {f"p_{k}": probs[:, k] for k in range(4)} | {"y": labels}
    profile = calviz.profile(pl.DataFrame(columns))
    own = calviz.Predictions(probs=probs, labels=labels)
    for result in calviz.evaluate(own, ["accuracy", "ece", "nll", "brier", "mcs"]):
        ours = calviz.evaluate(profile, [result.key])[result.key]
        assert ours.value == pytest.approx(result.value, abs=1e-9)
        assert ours.exact


def test_confidences_and_whether_they_were_right():
    rng = np.random.default_rng(0)
    confidence = rng.random(300)
    correct = rng.random(300) < confidence
    profile = calviz.profile(pl.DataFrame({"confidence": confidence, "correct": correct}))
    own = calviz.ConfidencePredictions(confidence=confidence, correct=correct)
    assert calviz.evaluate(profile, ["ece"])["ece"].value == pytest.approx(
        calviz.evaluate(own, ["ece"])["ece"].value
    )
    assert "no sums" in calviz.evaluate(profile, ["nll"])["nll"].reason


# ---- Whatever takes predictions takes a `Profile`, and judges it like its cells


@pytest.fixture(scope="module")
def profile():
    rng = np.random.default_rng(0)
    p = rng.beta(0.7, 0.7, 4_000)
    table = {
        "label": (rng.random(p.size) < p).astype(int),
        "p_1": p,
        "split": np.repeat(["val", "test"], p.size // 2),
        "country": rng.choice(["a", "b"], p.size),
    }
    return calviz.profile(pd.DataFrame(table), by=["country"], split_column="split")


@pytest.mark.parametrize("key", [figure.key for figure in FIGURES])
def test_figures(profile, key):
    compute = FIGURES[key].compute
    try:
        expected = compute(profile.predictions(), split="test").frame()
    except NotAvailable as error:
        with pytest.raises(NotAvailable, match=str(error)):
            compute(profile, split="test")
        return
    pd.testing.assert_frame_equal(compute(profile, split="test").frame(), expected)


@pytest.mark.slow
def test_evaluations_and_comparisons(profile):
    rows = profile.predictions()
    assert calviz.verdict(profile) == calviz.verdict(rows)
    divided = {"fit_split": "val", "eval_split": "test"}
    for data in (profile, rows):
        nll = [
            calviz.compare(data, ["temperature"], **divided, ci=False)["temperature"]
            .metrics["nll"]
            .value,
            calviz.evaluate(
                calviz.recalibrate(data, "temperature", fit_split="val"), ["nll"], split="test"
            )["nll"].value,
        ]
        assert nll[0] == pytest.approx(nll[1])


@pytest.mark.parametrize(
    "function",
    [
        lambda data: calviz.compare_models({"one": data, "other": data}),
        lambda data: calviz.learning_curve(data, ["temperature"]),
        lambda data: calviz.prediction_sets(data),
    ],
)
def test_what_needs_rows_refuses_a_profile_and_its_cells(profile, function):
    for data in (profile, profile.predictions()):
        with pytest.raises(NotAvailable, match="row"):
            function(data)


@pytest.mark.parametrize("function", [calviz.recalibrate, calviz.compare])
def test_rows_of_a_profile_are_not_divided_at_random(profile, function):
    arguments = ("temperature",) if function is calviz.recalibrate else ()
    with pytest.raises(InputError, match="name the splits"):
        function(profile, *arguments, fit_fraction=0.5)
