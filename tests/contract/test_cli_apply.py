"""`calviz apply`."""

import gzip
import json
import re
import shlex
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

import calviz
from calviz.core import errors
from calviz.core.entry_specs import RECALIBRATORS
from calviz.core.errors import InputError, Reading
from tests.inputs.command_line import outcome as run
from tests.inputs.maps_and_files import BAD, N, map_file, probabilities, write
from tests.inputs.table_files import write_table

pytestmark = pytest.mark.usefixtures("small_blocks")


# ---- `calviz apply` and `calviz profile`: bad rows are named as `calviz audit` names them, and text is read in blocks as it is read whole


FAULTS = {
    "missing": [0.2, np.nan, 0.3],
    "infinite": [0.2, np.inf, 0.3],
    "negative": [-0.2, 0.6, 0.6],
    "sum": [0.5, 0.6, 0.6],
    "above one": [0.0, 1.001, 0.0],
}
IN_BLOCKS = (".csv", ".tsv", ".parquet", ".arrow", ".jsonl")
WHOLE = (".csv", ".csv.gz", ".parquet", ".jsonl", ".npz", ".npy")


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(
    ("suffix", "out"),
    [*((s, "calibrated") for s in IN_BLOCKS), *((s, "calibrated.csv") for s in WHOLE)],
)
def test_a_bad_row_is_named_as_by_audit(tmp_path: Path, suffix: str, out: str, fault: str):
    scores = probabilities()
    scores[[BAD, N - 1]] = FAULTS[fault]
    path = write(tmp_path, suffix, scores)
    code, _, audited = run("audit", path)
    assert (code, f"row {BAD + 1:,}" in audited) == (2, True)
    applied = run("apply", path, "--map", map_file(tmp_path), "--out", tmp_path / out)
    assert applied == (2, "", audited)
    assert not list(tmp_path.rglob("calibrated*/*"))


@pytest.mark.slow
@pytest.mark.parametrize("suffix", IN_BLOCKS)
def test_bad_logits_are_named_as_by_audit(tmp_path: Path, suffix: str):
    scores = np.log(probabilities())
    scores[BAD, 2] = np.nan
    path = write(tmp_path, suffix, scores, "logit")
    audited = run("audit", path)[2]
    assert f"row {BAD + 1:,}" in audited
    fitted = map_file(tmp_path, logits=True)
    assert run("apply", path, "--map", fitted, "--out", tmp_path / "out") == (2, "", audited)


@pytest.mark.parametrize("cell", ["n/a?", "", "0.1,0.2", "NA"])
def test_a_bad_cell_is_named_as_by_audit(tmp_path: Path, cell: str):
    path = write(tmp_path, ".csv", probabilities())
    lines = path.read_text().splitlines()
    label, first, _, last = lines[BAD].split(",")
    lines[BAD] = f"{label},{first},{cell},{last}"
    path.write_text("\n".join(lines))
    audited = run("audit", path)[2]
    assert f"{BAD + 1:,}" in audited  # the line, after that of the header
    fitted = map_file(tmp_path)
    assert run("apply", path, "--map", fitted, "--out", tmp_path / "out") == (2, "", audited)


def test_a_file_that_may_not_fit_has_its_bad_rows_counted(tmp_path: Path, monkeypatch):
    scores = probabilities()
    scores[[BAD, N - 1]] = FAULTS["sum"]
    path = write(tmp_path, ".parquet", scores)
    fitted = map_file(tmp_path)
    monkeypatch.setattr(errors, "machine_memory", lambda: 1_000.0)
    code, _, applied = run("apply", path, "--map", fitted, "--out", tmp_path / "out")
    counted = "2 of 2,500 rows cannot be used: 2 with scores that do not sum to 1"
    assert (code, counted in applied) == (2, True), applied
    assert f"the first is row {BAD + 1:,}" in applied
    audited = run("audit", path)[2]
    assert counted in audited
    assert f"the first is row {BAD + 1:,}" in audited


TEXTS = {
    "whole numbers first": lambda lines: [lines[0], *["0,1,0,0"] * 1_500, *lines[1501:]],
    "comment": lambda lines: ["# made by a model", *lines],
    "semicolons": lambda lines: [line.replace(",", ";") for line in lines],
    "decimal comma": lambda lines: [line.replace(",", ";").replace(".", ",") for line in lines],
    "spaces in the header": lambda lines: [lines[0].replace(",", " , "), *lines[1:]],
    "blank lines": lambda lines: [*lines[:1_000], "", *lines[1_000:], "", ""],
    "byte-order mark": lambda lines: ["\ufeff" + lines[0], *lines[1:]],
    "Windows line ends": lambda lines: [line + "\r" for line in lines],
}


@pytest.mark.parametrize("text", TEXTS)
def test_text_is_read_in_blocks_as_it_is_read_whole(tmp_path: Path, text: str):
    path = write(tmp_path, ".csv", probabilities())
    path.write_text("\n".join(TEXTS[text](path.read_text().splitlines())) + "\n")
    rows = calviz.load(path)
    fitted, out = map_file(tmp_path), tmp_path / "out"
    code, stdout, stderr = run("apply", path, "--map", fitted, "--out", out)
    assert (code, stdout, stderr) == (0, f"wrote 1 file to {out}\n", "")
    assert run("apply", path, "--map", fitted, "--out", tmp_path / "whole.parquet")[0] == 0
    whole = calviz.load(tmp_path / "whole.parquet")
    blocks = calviz.load(out / "rows.parquet")
    np.testing.assert_allclose(blocks.probs, whole.probs, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(blocks.labels, rows.labels)
    profiled = calviz.profile(path)
    assert profiled.n == N
    assert calviz.evaluate(profiled, ["ece"])["ece"].value == pytest.approx(
        calviz.evaluate(rows, ["ece"])["ece"].value, abs=1e-9
    )


def test_text_that_is_not_utf_8_is_refused_in_blocks(tmp_path: Path):
    path = write(tmp_path, ".csv", probabilities())
    path.write_bytes(path.read_text().replace("label", "étiquette").encode("latin-1"))
    for command in (
        ("apply", path, "--map", map_file(tmp_path), "--out", tmp_path / "out"),
        ("profile", path, "--out", tmp_path / "profile.parquet"),
    ):
        code, _, stderr = run(*command)
        assert (code, "rows.csv: the text is not UTF-8" in stderr) == (2, True)


def test_repairs_are_not_made_in_blocks(tmp_path: Path):
    path = write(tmp_path, ".csv", probabilities() * 1.1)
    fitted, out = map_file(tmp_path), tmp_path / "out"
    code, _, stderr = run("apply", path, "--map", fitted, "--out", out, "--repair", "renormalise")
    assert (code, "not repaired" in stderr, out.exists()) == (2, True, False)


def test_extra_cells_are_found_where_columns_are_not_used(tmp_path: Path):
    rng = np.random.default_rng(0)
    path = tmp_path / "rows.csv"
    columns = {"measured": rng.random(N), "label": np.arange(N) % 2, "p": rng.random(N)}
    pl.DataFrame(columns).write_csv(path)
    lines = path.read_text().splitlines()
    lines[BAD] += ",0.5"
    path.write_text("\n".join(lines))
    with pytest.raises(InputError, match="line 1,201 has 4 cells, expected 3"):
        calviz.load(path)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("label,p\n0,.5\n1,.5,7\n0,.5\n1\n", "line 3 has 3 cells, line 5 has 1 cell, expected 2"),
        ('label,p\n"0,.5\n1,.5\n', "the quotation mark that opens a cell in line 2 is not closed"),
        ("label,p\n0,.5\n1,.5\n" * 2, "1 line repeats the header (4)"),
        ("label;p\n0; 0.5 \n1; 0.25 \n", "not block by block"),
    ],
)
def test_text_that_cannot_be_read_in_blocks_is_refused_in_the_words_of_the_whole(
    tmp_path: Path, text: str, says: str
):
    path, fitted = tmp_path / "rows.csv", map_file(tmp_path)
    path.write_text(text)
    before = sorted(tmp_path.iterdir())
    for command in (
        ("apply", "--map", fitted),
        ("compare", "--methods", "platt", "--sample", "10"),
    ):
        out = ("--out", tmp_path / "above" / "out") if command[0] == "apply" else ()
        code, _, wrong = run(command[0], path, *command[1:], *out)
        assert (code, says in wrong, "new_columns" in wrong) == (2, True, False), wrong
        assert sorted(tmp_path.iterdir()) == before


def test_a_folder_is_left_only_with_files_in_it(tmp_path: Path):
    good, bad = tmp_path / "in" / "a.csv", tmp_path / "in" / "b.csv"
    good.parent.mkdir()
    frame = pl.DataFrame({f"p_{k}": probabilities()[:, k] for k in range(3)})
    frame.write_csv(good)
    frame.with_columns(p_1=frame["p_1"] + 1).write_csv(bad)
    fitted, out = map_file(tmp_path), tmp_path / "new" / "out"
    for source, left in ((bad, []), (good.parent, ["a.parquet"])):
        code, _, wrong = run("apply", source, "--map", fitted, "--out", out)
        assert (code, "b.csv" in wrong) == (2, True)
        assert out.parent.exists() == bool(left)
        assert not left or [path.name for path in out.iterdir()] == left


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_identifiers_of_more_than_64_bits_are_text(tmp_path: Path, suffix: str):
    p, ids = probabilities()[:50], [f"{10**25 + i}" for i in range(50)]
    path, out = tmp_path / f"rows{suffix}", tmp_path / "out"
    frame = pl.DataFrame({"id": ids, **{f"p_{k}": p[:, k] for k in range(3)}, "label": [0, 1] * 25})
    frame.write_csv(path) if suffix == ".csv" else frame.write_ndjson(path)
    code, _, wrong = run("apply", path, "--map", map_file(tmp_path), "--out", out)
    assert (code, wrong) == (0, "")
    assert pl.read_parquet(out / "rows.parquet")["id"].to_list() == ids
    for engine in ("polars", "duckdb"):
        code, said, _ = run("profile", path, "--out", tmp_path / "p.parquet", "--engine", engine)
        assert (code, "50 rows" in said) == (0, True)


# ---- What `calviz apply` writes beside the scores: columns with their values, types and times


@pytest.mark.parametrize("groups", [(), ("--group", "site"), ("--group", "")])
def test_columns_without_a_role_are_written_as_they_are(tmp_path: Path, groups: tuple[str, ...]):
    scores = probabilities()[:50]
    others = {
        "site": ["north", "south"] * 25,
        "time": [f"2024-03-{1 + i % 28:02d}T00:00:00+02:00" for i in range(50)],
        "comment": [f"text {i}" for i in range(50)],
    }
    frame = pl.DataFrame({**others, **{f"p_{k}": scores[:, k] for k in range(3)}})
    frame.write_csv(tmp_path / "new.csv")
    out = tmp_path / "out.csv"
    code, _, error = run(
        "apply", tmp_path / "new.csv", "--map", map_file(tmp_path), "--out", out, *groups
    )
    assert code == 0, error
    written = pl.read_csv(out, try_parse_dates=False)
    for name, values in others.items():
        assert written[name].to_list() == values


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_confidences_keep_their_classes_and_the_scores_before(tmp_path: Path, suffix: str):
    rng = np.random.default_rng(0)
    path, fitted, out = tmp_path / "mail.csv", tmp_path / "map.json", tmp_path / f"out{suffix}"
    guess, truth = rng.choice(["ham", "promo", "spam"], (2, 200))
    score = rng.uniform(0.4, 1, 200).round(3)
    pl.DataFrame({"guess": guess, "conf": score, "truth": truth}).write_csv(path)
    how = ("--prediction-column", "guess", "--out", out)
    for command, name in (
        (("recalibrate", "--method", "isotonic", "--save-map", fitted), ("label", "predicted")),
        (("apply", "--map", fitted), ("truth", "guess")),
    ):
        code, _, stderr = run(command[0], path, *command[1:], *how)
        assert (code, stderr) == (0, "")
        table = pl.read_csv(out) if suffix == ".csv" else pl.read_parquet(out)
        name = ("truth", "guess") if suffix == ".csv" else name
        written = {key: table[key].to_list() for key in (*name, "correct", "uncalibrated")}
        right = (guess == truth).astype(int).tolist()
        assert [*written.values()] == [truth.tolist(), guess.tolist(), right, score.tolist()]
        again = calviz.load(out)
        assert [again.class_names[k] for k in again.predicted] == guess.tolist()
        assert again.confidence.tolist() == table["conf"].to_list()
        assert table["conf"].to_list() != score.tolist()


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
@pytest.mark.parametrize("roles", [(), ("--group", "site", "--time", "seen", "--id", "case")])
def test_columns_keep_their_types(tmp_path: Path, suffix: str, roles: tuple[str, ...]):
    first = datetime(2024, 3, 1, 8, tzinfo=UTC)
    others = pl.DataFrame(
        {
            "case": np.arange(N) + 2**60,
            "site": pl.Series(([None, 1, 2] * N)[:N], dtype=pl.Int8),
            "urgent": ([True, False, None] * N)[:N],
            "seen": [date(2024, 1, 1) + timedelta(i) for i in range(N)],
            "at": pl.Series([first + timedelta(hours=i) for i in range(N)]).dt.convert_time_zone(
                "Europe/Berlin"
            ),
            "amount": pl.Series(np.arange(N) / 7, dtype=pl.Float32),
            "comment": [f"text {i}" for i in range(N)],
            "note": ([None, "a", "b"] * N)[:N],
            "empty": (["", "a", "b"] * N)[:N],
            "grade": pl.Series(([None, "a", "b"] * N)[:N], dtype=pl.Categorical),
            "clock": ([time(7, 30, 0, 250), None, time(23, 59)] * N)[:N],
            "wait": ([timedelta(milliseconds=1500), None, timedelta(days=2)] * N)[:N],
        }
    )
    scores = {f"p_{k}": probabilities()[:, k] for k in range(3)}
    path, fitted = tmp_path / f"new{suffix}", map_file(tmp_path)
    write_table(others.with_columns(**scores), path)
    target = tmp_path / "out.parquet"
    code, _, stderr = run("apply", path, "--map", fitted, "--out", target, *roles)
    assert (code, stderr) == (0, "")
    written = pl.read_parquet(target)
    assert written.select(others.columns).equals(others)
    assert written.select(others.columns).schema == others.schema


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_missing_texts_and_empty_texts_are_told_apart(tmp_path: Path, suffix: str):
    values = ([None, "", "a", "b"] * N)[:N]
    others = pl.DataFrame(
        {
            "site": values,
            "grade": pl.Series(values, dtype=pl.Categorical),
            "raw": [None if v is None else v.encode() for v in values],
            "comment": [v if not v else f"{v} {i}" for i, v in enumerate(values)],
            "late": [*[""] * (N - 1), None],
            "only_empty": ([""] * 2 + ["a"] * N)[:N],
            "only_missing": ([None] * 2 + ["a"] * N)[:N],
        }
    )
    p = probabilities()
    scores = {f"p_{k}": p[:, k] for k in range(3)}
    path, out = tmp_path / f"new{suffix}", tmp_path / "out.parquet"
    write_table(others.with_columns(label=pl.Series(np.arange(N) % 3), **scores), path)
    for command in (("apply", "--map", map_file(tmp_path)), ("recalibrate", "--method", "platt")):
        code, _, wrong = run(command[0], path, *command[1:], "--out", out)
        assert (code, wrong) == (0, "")
        # Whoever needs groups leaves out columns with a value of its own in every row.
        kept = [name for name in others.columns if name in pl.read_parquet_schema(out)]
        assert len(kept) == 7 or command[0] == "recalibrate"
        written = pl.read_parquet(out).select(kept)
        assert written.equals(others.select(kept))
        assert written.schema == others.select(kept).schema
    # Both are one group, as before.
    assert calviz.load(path).groups["site"].counts() == {"": N // 2, "a": N // 4, "b": N // 4}
    assert calviz.load(out).groups["site"].missing.sum() == N // 4


def test_rows_that_are_left_out_keep_the_others_as_they_are(tmp_path: Path):
    p = probabilities()
    p[::2, 1] = np.nan
    scores = {f"p_{k}": p[:, k] for k in range(3)}
    site = pl.Series("site", (["", "", None, None, "a", "a"] * N)[:N])
    path, out = tmp_path / "rows.parquet", tmp_path / "out.parquet"
    pl.DataFrame({"label": np.arange(N) // 6 % 3, "site": site, **scores}).write_parquet(path)
    code, said, wrong = run(
        *("recalibrate", path, "--method", "platt", "--repair", "drop-missing", "--out", out)
    )
    assert (code, wrong) == (0, "")
    assert said.endswith(f"\nwrote {N:,} rows ({N // 2:,} of them calibrated) to {out}\n")
    written = pl.read_parquet(out)
    assert written["site"].equals(site)
    assert written["p_1"].is_null().to_list() == [True, False] * (N // 2)


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_columns_of_objects_are_flat_in_text_and_named_in_a_notice(tmp_path: Path, suffix: str):
    p = probabilities()[:30]
    path, target = tmp_path / f"new{suffix}", tmp_path / "out.csv"
    frame = pl.DataFrame({**{f"p_{k}": p[:, k] for k in range(3)}, "meta": [{"a": 1}] * 30})
    write_table(frame, path)
    code, stdout, stderr = run("apply", path, "--map", map_file(tmp_path), "--out", target)
    assert (code, stderr) == (0, "")
    assert "not used: meta" in stdout
    assert pl.read_csv(target).columns == ["p_0", "p_1", "p_2", "meta.a", "uncalibrated"]


def test_columns_of_lists_of_one_value_keep_their_types(tmp_path: Path):
    p, rows = probabilities()[:30], range(30)
    lists = pl.DataFrame(
        {
            "whole": [[i] for i in rows],
            "some": [[i] if i else None for i in rows],
            "float": [[i / 2] for i in rows],
            "boolean": [[i % 2 == 0] for i in rows],
            "array": pl.Series([[i] for i in rows], dtype=pl.Array(pl.Float32, 1)),
        }
    )
    path, target = tmp_path / "new.parquet", tmp_path / "out.parquet"
    scores = pl.DataFrame({f"p_{k}": p[:, k] for k in range(3)})
    pl.concat([scores, lists], how="horizontal").write_parquet(path)
    code, _, stderr = run("apply", path, "--map", map_file(tmp_path), "--out", target)
    assert (code, stderr) == (0, "")
    written = pl.read_parquet(target).select(lists.columns)
    assert written.schema == lists.schema
    assert written.equals(lists)


@pytest.mark.slow
def test_times_keep_their_offsets(tmp_path: Path):
    n = 150  # several blocks
    scores = probabilities()[:n]
    hours = [f"{i % 24:02d}:30:00" for i in range(n)]
    path, fitted = tmp_path / "rows.csv", map_file(tmp_path)
    for offset in ("+02:00", "Z", ""):
        frame = pl.DataFrame(
            {
                "time": [
                    f"2024-03-{1 + i % 28:02d}T{hour}{offset}" for i, hour in enumerate(hours)
                ],
                "label": np.arange(n) % 3,
                **{f"p_{k}": scores[:, k] for k in range(3)},
            }
        )
        frame.write_csv(path)
        times = calviz.load(path).times
        for suffix in (".csv", ".parquet", ".npz"):
            out = tmp_path / f"out{suffix}"
            for command in (("apply", "--map", fitted), ("recalibrate", "--method", "temperature")):
                code, _, stderr = run(command[0], path, *command[1:], "--out", out)
                assert (code, stderr) == (0, "")
                read = calviz.load(out, time_column="time")
                np.testing.assert_array_equal(read.times, times)
                if suffix == ".csv" and (offset or command[0] == "apply"):
                    written = pl.read_csv(out, try_parse_dates=False)["time"]
                    assert written.to_list() == frame["time"].to_list()


def test_times_that_cannot_be_used_are_not_lost(tmp_path: Path):
    times = ["2024-03-01"] * (N - 1) + ["unknown"]
    scores = {f"p_{k}": probabilities()[:, k] for k in range(3)}
    path, out = tmp_path / "rows.csv", tmp_path / "out.csv"
    pl.DataFrame({"time": times, "label": np.arange(N) % 3, **scores}).write_csv(path)
    fitted = map_file(tmp_path)
    for command in (("apply", "--map", fitted), ("recalibrate", "--method", "temperature")):
        code, _, stderr = run(command[0], path, *command[1:], "--out", out)
        assert (code, stderr) == (0, "")
        assert pl.read_csv(out)["time"].to_list() == times


def test_columns_with_the_names_of_what_is_written_keep_their_values(tmp_path: Path):
    scores = probabilities()[:50]
    others = {"split": ["x", "y"] * 25, "fold": ["u"] * 25 + ["v"] * 25}
    pl.DataFrame({**others, **{f"p_{k}": scores[:, k] for k in range(3)}}).write_csv(
        tmp_path / "new.csv"
    )
    out = tmp_path / "out.csv"
    code, _, error = run(
        *("apply", tmp_path / "new.csv", "--map", map_file(tmp_path)),
        *("--out", out, "--split-column", "fold"),
    )
    assert code == 0, error
    written = pl.read_csv(out)
    assert {name: written[name].to_list() for name in others} == others


def test_decimals_are_kept_also_where_double_precision_does_not_hold_them(tmp_path: Path):
    frame = pl.from_arrow(pq.read_table(write(tmp_path, ".parquet", probabilities())))
    amount = pl.Series("amount", [Decimal("1.25")] * frame.height)
    frame = frame.with_columns(
        amount.cast(pl.Decimal(10, 2)).alias("small"), amount.cast(pl.Decimal(20, 2)).alias("large")
    )
    frame.write_parquet(tmp_path / "new.parquet")
    out = tmp_path / "out.parquet"
    code, _, stderr = run(
        "apply", tmp_path / "new.parquet", "--map", map_file(tmp_path), "--out", out
    )
    assert code == 0, stderr
    schema = pq.read_schema(out)
    assert str(schema.field("small").type) == "decimal128(10, 2)"
    assert str(schema.field("large").type) == "decimal128(20, 2)"


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
@pytest.mark.parametrize("target", [".csv", ".parquet"])
def test_a_calibrated_table_keeps_the_columns_of_the_file(tmp_path: Path, suffix, target):
    p, n = probabilities()[:60], 60
    frame = pl.DataFrame(
        {
            "ticket": [f"T{i}" for i in range(n)],
            "true_label": (["Refund", "Spam", "API"] * n)[:n],
            "predicted_label": ["Spam"] * n,
            "when": [date(2026, 1, 1) + timedelta(i) for i in range(n)],
            "logit_refund": np.log(p[:, 0]),
            "logit_spam": np.log(p[:, 1]),
            "logit_api": np.log(p[:, 2]),
        }
    )
    path, out = tmp_path / f"file{suffix}", tmp_path / f"out{target}"
    if suffix == ".jsonl":
        frame.with_columns(pl.col("when").cast(str)).write_ndjson(path)
    else:
        frame.write_parquet(path)
    code, _, stderr = run("recalibrate", path, "--method", "temperature", "--out", out)
    assert (code, stderr) == (0, "")
    written = pl.read_csv(out) if target == ".csv" else pl.read_parquet(out)
    added = ["split", "p_Refund", "p_Spam", "p_API", "uncalibrated"]
    assert written.columns == [*frame.columns, *added]
    for name in ("ticket", "true_label", "predicted_label", "logit_spam"):
        assert written[name].to_list() == pytest.approx(frame[name].to_list()), name
    assert [str(day)[:10] for day in written["when"]] == [str(day) for day in frame["when"]]


# ---- A map of a slice changes rows that it was not fitted on


@pytest.mark.parametrize("out", ["calibrated.csv", "calibrated"])
@pytest.mark.parametrize("where", ["", "language = es, created since 2026-09-01"])
def test_of_a_map_of_a_slice_it_is_said_that_all_rows_change(tmp_path: Path, where: str, out: str):
    path, fitted = write(tmp_path, ".csv", probabilities()), map_file(tmp_path)
    rows = calviz.Predictions(probs=probabilities(), labels=np.arange(N) % 3)
    record = calviz.load_map(fitted).to_apply(rows, (), where)
    assert ("fitted_where" in record) == bool(where)
    fitted.write_text(json.dumps(record))
    said = f"{fitted} was fitted only on the rows where {where}; it is applied to all rows."
    command = ("apply", path, "--map", fitted, "--out", tmp_path / out, "--json", "-")
    code, stdout, stderr = run(*command)
    assert (code, stderr) == (0, f"calviz: {said}\n" * bool(where))
    assert json.loads(stdout)["warnings"] == [said] * bool(where)
    fitted.write_text(json.dumps(record | {"fitted_where": ["es"]}))
    code, _, stderr = run(*command)
    assert (code, "'fitted_where' must be a text" in stderr) == (2, True)


def halved_where(tmp_path: Path, **conditions: str) -> Path:
    """A map of temperature 2 for the rows where a column is a value."""
    where = [{"name": name, "values": [value], "is": value} for name, value in conditions.items()]
    base = {
        "calviz_map": 1,
        "method": "temperature",
        "classes": 2,
        "parameters": {"loss": "nll", "floor": None, "input": "probabilities"},
        "floor": 0.0,
        "fitted": {"temperature_": 2.0},
    }
    parameters = {"base": "temperature", "floor": "auto", "input": "probabilities", "where": where}
    record = base | {"method": "slice+temperature", "parameters": parameters}
    record |= {"fitted": {"base": base}, "class_names": ["0", "1"], "fitted_where": "lang = es"}
    (tmp_path / "map.json").write_text(json.dumps(record))
    return tmp_path / "map.json"


#: Odds of 4 are 2 after the map.
OF_ES = "p_0,p_1,lang\n0.2,0.8,de\n0.2,0.8,es\n0.8,0.2,es\n0.8,0.2,\n0.123456789,0.876543211,en\n"


@pytest.mark.parametrize("out", ["calibrated.csv", "calibrated"])
def test_a_map_of_a_slice_changes_its_rows_alone_and_says_how_many(tmp_path: Path, out: str):
    (tmp_path / "new.csv").write_text(OF_ES)
    command = ("apply", tmp_path / "new.csv", "--map", halved_where(tmp_path, lang="es"), "--out")
    code, stdout, stderr = run(*command, tmp_path / out)
    assert (code, "applied to all rows" in stderr) == (0, False), stderr
    told = (
        "2 rows changed where lang = es; 3 other rows unchanged, 1 of them without a value there."
    )
    assert stdout.splitlines()[-1] == told
    path = tmp_path / out
    frame = pl.read_csv(path) if path.is_file() else pl.read_parquet(path / "new.parquet")
    assert frame["p_1"].to_list() == pytest.approx([0.8, 2 / 3, 1 / 3, 0.2, 0.876543211], rel=1e-9)
    assert frame["p_1"].to_numpy()[[0, 3, 4]].tolist() == [0.8, 0.2, 0.876543211]
    code, stdout, _ = run(*command, tmp_path / f"again-{out}", "--json", "-")
    said = json.loads(stdout)
    assert (said["rows_changed"], said["rows_unchanged"], said["rows_without_value"]) == (2, 3, 1)
    assert said["warnings"] == []


def test_a_map_by_a_column_of_numbers_with_words_for_missing(tmp_path: Path):
    out = "calibrated.csv"
    rows = "".join(
        f"0.2,0.8,{cell},{i // 4 % 2}\n" for i, cell in enumerate(["1.5", "n/a", "30", "-"] * 10)
    )
    (tmp_path / "new.csv").write_text(f"p_0,p_1,temp,label\n{rows}")
    saved, where = tmp_path / "map.json", 'slice+temperature.where={"temp": "> 20"}'
    fit = ("--method", "slice+temperature", "--option", where, "--fit-fraction", "0.5")
    files = ("--out", tmp_path / "fitted.csv", "--save-map", saved)
    code, stdout, stderr = run("recalibrate", tmp_path / "new.csv", *fit, *files)
    assert (code, "cells of 'temp' read as missing: 20 (n/a, -)" in stdout) == (0, True), stderr
    code, stdout, stderr = run(
        "apply", tmp_path / "new.csv", "--map", saved, "--out", tmp_path / out
    )
    assert code == 0, stderr
    told = "10 rows changed where temp > 20; 30 other rows unchanged, 20 of them without a value there."
    assert stdout.splitlines()[-1] == told


@pytest.mark.parametrize("out", ["second.csv", "second"])
def test_a_second_map_does_not_undo_the_first(tmp_path: Path, out: str):
    """Nor in files of earlier versions, where what a map made stands beside the scores before."""
    (tmp_path / "new.csv").write_text(OF_ES.replace("p_0,p_1", "score_0,score_1"))
    maps = []
    for lang in ("es", "de"):
        record = json.loads(halved_where(tmp_path, lang=lang).read_text())
        record["scores"] = {"kind": "probabilities", "columns": ["score_0", "score_1"]}
        maps.append(tmp_path / f"{lang}.json")
        maps[-1].write_text(json.dumps(record))
    first, second = tmp_path / "first.csv", tmp_path / out
    assert run("apply", tmp_path / "new.csv", "--map", maps[0], "--out", first)[0] == 0
    command = ("apply", first, "--map", maps[1], "--out", second)
    code, _, stderr = run(*command)
    assert code == 0, stderr
    if second.is_file():
        assert pl.read_csv(second)["score_1"][:2].to_list() == pytest.approx([2 / 3, 2 / 3])
        assert "a map was applied to this file before: it has 'uncalibrated'" in stderr
    made = pl.read_csv(first).rename({"score_0": "p_0", "score_1": "p_1"})
    made.hstack(pl.read_csv(tmp_path / "new.csv")["score_0", "score_1"]).write_csv(first)
    code, _, stderr = run(*command)
    assert code == 2, stderr
    assert "a map was applied before: 'p_0' stands beside 'score_0'" in stderr
    for scores, of_es in (("p_0,p_1", 2 / 3), ("score_0,score_1", 0.8)):
        code, _, stderr = run(*command, "--scores", scores)
        assert code == 0, stderr
        if second.is_file():
            of_map = pl.read_csv(second)[scores.partition(",")[2]]
            assert of_map[:2].to_list() == pytest.approx([2 / 3, of_es])


@pytest.mark.parametrize("out", ["calibrated.csv", "calibrated"])
def test_a_map_of_a_slice_is_not_applied_to_rows_without_its_column(tmp_path: Path, out: str):
    (tmp_path / "new.csv").write_text(OF_ES.replace("lang", "language"))
    fitted = halved_where(tmp_path, lang="es")
    code, _, stderr = run("apply", tmp_path / "new.csv", "--map", fitted, "--out", tmp_path / out)
    assert code == 2
    assert stderr.splitlines()[-1] == (
        "calviz: new.csv: the map is for rows where lang = es only, and there is no column 'lang'; "
        "give the rows with it, written as where the map was fitted."
    )
    assert not list(tmp_path.rglob("calibrated*"))


# ---- A map that was damaged is refused in words that need no knowledge of Python


GOOD = (
    b'{"calviz_map": 1, "method": "temperature", "classes": 3, "parameters": {"loss": "nll", "floor": null, '
    b'"input": "probabilities"}, "floor": 0.0, "floor_clips": true, "fitted": {"temperature_": 1.5}, "warnings": [], '
    b'"class_names": ["a", "b", "c"]}\n'
)


def changed(old: str, new: str) -> bytes:
    assert GOOD.count(old.encode())
    return GOOD.replace(old.encode(), new.encode("utf-8", "surrogatepass"), 1)


#: What the file holds, and what is said.
DAMAGES = {
    "nothing": (b"", "the file is empty"),
    "blanks": (b" \n\n", "the file is empty"),
    "one byte less": (GOOD[:-2], f"it breaks off after {len(GOOD) - 2} characters"),
    "half": (GOOD[:100], "it breaks off after 100 characters"),
    "in the middle of a text": (GOOD[:28], "it breaks off after 28 characters"),
    "in the middle of a name": (GOOD[:5], "it breaks off after 5 characters"),
    "twice": (GOOD + GOOD, "more follows at line 2, column 1, where the map has ended"),
    "more behind it": (GOOD.strip() + b" x", f"more follows at line 1, column {len(GOOD) + 1}"),
    "a comment": (b"// map\n" + GOOD, "not JSON at line 1, column 1"),
    "single quotes": (GOOD.replace(b'"', b"'"), "not JSON at line 1, column 2"),
    "no comma": (changed(", ", " "), "not JSON at line 1, column 18"),
    "a comma too many": (changed("1.5}", "1.5,}"), "not JSON at line 1"),
    "a wrong escape": (changed("temperature", "t\\q"), "not JSON at line 1"),
    "a control character": (changed("temperature", "t\x01"), "not JSON at line 1"),
    "NUL": (bytes(200), "not JSON at line 1, column 1"),
    "words": (b"calviz_map: 1\nmethod: temperature\n", "not JSON at line 1, column 1"),
    "CSV": (b"label,p\n1,0.5\n", "not JSON at line 1, column 1"),
    "Latin-1": (
        GOOD.replace(b"temp", b"t\xe9mp"),
        f"byte {GOOD.index(b'temp') + 2} is not text in UTF-8",
    ),
    "UTF-16": (GOOD.decode().encode("utf-16"), "byte 1 is not text in UTF-8"),
    "gzip": (gzip.compress(GOOD), "byte 2 is not text in UTF-8"),
    "a pickle": (b"\x80\x04\x95" + bytes(20), "byte 1 is not text in UTF-8"),
    "lists in lists": (b"[" * 100_000, "it is nested too deeply"),
    "closed lists in lists": (b"[" * 100_000 + b"]" * 100_000, "it is nested too deeply"),
    "lists in a field": (changed("[]", "[" * 50_000 + "]" * 50_000), "it is nested too deeply"),
    "objects in objects": (b'{"a":' * 100_000, "it is nested too deeply"),
    "too many digits": (changed("3,", "3" * 5_000 + ","), "a number of too many digits"),
    "a list": (b"[1, 2]", "not the map of a recalibrator that calviz wrote"),
    "a number": (b"3", "not the map of a recalibrator that calviz wrote"),
    "a text": (b'"map.json"', "not the map of a recalibrator that calviz wrote"),
    "null": (b"null", "not the map of a recalibrator that calviz wrote"),
    "an empty object": (b"{}", "not the map of a recalibrator that calviz wrote"),
    "NaN": (changed("1.5", "NaN"), "'temperature_' must be finite, got nan"),
    "infinity": (changed("1.5", "1e999"), "'temperature_' must be finite, got inf"),
    "a text for a number": (changed("1.5", '"1.5"'), "'temperature_' must hold numbers only"),
    "a list for a number": (changed("1.5", "[1.5]"), "'temperature_' must be a number, got 1"),
    "no field": (changed('"temperature_": 1.5', ""), "its fields must be temperature_"),
    "another version": (changed('map": 1', 'map": 2'), "has version 2, this calviz reads 1"),
    "another method": (changed("temperature", "temparature"), "did you mean 'temperature'?"),
    "classes as text": (changed("3,", '"3",'), "'classes' must hold numbers only"),
}
#: Words of Python and its libraries.
FOREIGN = (
    "Traceback recursion codec Expecting delimiter Unterminated control object NoneType".split()
)


def test_the_map_that_is_damaged_below_can_be_used(tmp_path: Path):
    (tmp_path / "map.json").write_bytes(b"\xef\xbb\xbf" + GOOD)  # as some editors save it
    path = write(tmp_path, ".csv", probabilities())
    done = run("apply", path, "--map", tmp_path / "map.json", "--out", tmp_path / "out.csv")
    assert done[0] == 0
    assert calviz.load_map(json.loads(GOOD)).temperature_ == 1.5


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_map_is_refused_in_plain_words(tmp_path: Path, damage: str):
    content, words = DAMAGES[damage]
    (tmp_path / "map.json").write_bytes(content)
    path = write(tmp_path, ".csv", probabilities())
    for command in (("apply", path, "--out", tmp_path / "out.csv"), ("expected", path)):
        code, out, wrong = run(*command, "--map", tmp_path / "map.json")
        assert (code, out, wrong.count("\n")) == (2, "", 1)
        assert wrong.startswith("calviz: map.json: ")
        assert words in wrong
        assert not [word for word in FOREIGN if word in wrong]
    assert not (tmp_path / "out.csv").exists()
    with pytest.raises(InputError, match=r"^map\.json: "):
        calviz.load_map(tmp_path / "map.json")


# ---- What a spreadsheet would run is guarded in CSV, and comes back as it was


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
@pytest.mark.parametrize(
    ("labels", "options", "written"),
    [
        (["-1", "+1"], {}, ["-1", "1"]),
        (["-1.0", "1.0"], {}, ["-1", "1"]),
        (["1", "2"], {"label_base": 1}, ["1", "2"]),
        (["no", "yes"], {}, ["no", "yes"]),
        (["=no", "@yes"], {"class_names": ("=no", "@yes")}, ["=no", "@yes"]),
    ],
)
def test_labels_and_groups_come_back_under_their_own_names(
    tmp_path: Path, labels, options, written, suffix
):
    rng = np.random.default_rng(0)
    score = rng.uniform(0.05, 0.95, 80)
    hit = rng.uniform(size=80) < score
    groups = ["=1+1", "-x", "+3", "'quoted"]
    rows = [f"{labels[int(hit[i])]},{score[i]:.4f},{groups[i % 4]}\n" for i in range(80)]
    (tmp_path / "rows.csv").write_text("label,p,group\n" + "".join(rows))
    out = tmp_path / f"out{suffix}"
    how = (
        "--method",
        "platt",
        "--fit-fraction",
        "0.5",
        *shlex.split(Reading("", options).in_shell()),
    )
    assert run("recalibrate", tmp_path / "rows.csv", *how, "--out", out)[0] == 0
    # A table asks what the file asked; arrays say it themselves.
    data = calviz.load(out, **({} if suffix == ".npz" else options))
    assert list(data.class_names) == written
    assert data.labels.tolist() == hit.astype(int).tolist()
    assert sorted(data.groups["group"].levels) == sorted(groups)
    if suffix == ".csv":
        text = out.read_text()
        assert "'=1+1" in text
        assert ",'-x," in text
        assert ",+3," in text
        assert "'-1" not in text


def test_three_labels_with_signs_are_read_again(tmp_path: Path):
    scores = np.random.default_rng(0).dirichlet([1, 1, 1], 60)
    rows = [f"{('-1', '0', '+1')[i % 3]},{p[0]},{p[1]},{p[2]}\n" for i, p in enumerate(scores)]
    (tmp_path / "rows.csv").write_text("label,p_-1,p_0,p_+1\n" + "".join(rows))
    how = ("--method", "temperature", "--fit-fraction", "0.5", "--out", tmp_path / "out.csv")
    assert run("recalibrate", tmp_path / "rows.csv", *how)[0] == 0
    data = calviz.load(tmp_path / "out.csv")
    assert data.class_names == ("-1", "0", "+1")
    assert data.labels.tolist() == [i % 3 for i in range(60)]


def test_zeros_are_read_alike_whichever_rows_fit_the_map(tmp_path: Path):
    """One row in 400 has an exact 0: whether it is among the rows that fit depends on the seed."""
    rng = np.random.default_rng(3)
    p = rng.uniform(0.02, 0.98, 400)
    y = (rng.random(400) < p).astype(int)
    p[7], p[8] = 0, 0.004
    path, out = tmp_path / "p.csv", tmp_path / "out.csv"
    pl.DataFrame({"label": y, "probability": p}).write_csv(path)
    counts_as, written = set(), []
    for seed in range(6):
        options = ("--fit-fraction", 0.5, "--seed", seed, "--out", out)
        code, _, said = run("recalibrate", path, "--method", "platt", *options)
        assert code == 0
        counts_as |= {*re.findall("an exact probability of 0 counts as ([0-9.]+)", said)}
        written.append(calviz.load(out).probs[[7, 8], 1])
    # Half of the smallest probability of the rows that fit, at most 0.01; the order of scores is kept.
    assert counts_as == {"0.002", "0.01"}
    zeros, small = np.transpose(written)
    assert zeros.min() > 1e-4
    assert (zeros <= small).all()


def test_a_map_of_one_model_needs_no_scores_of_the_others(tmp_path: Path):
    rng = np.random.default_rng(5)
    frame = pl.DataFrame(
        {"risk old": rng.uniform(0.02, 0.5, 60), "risk new": np.arange(1, 61) / 70}
    )
    frame = frame.with_columns(
        pl.Series("a:0", 1 - frame["risk old"]), pl.Series("a:1", frame["risk old"])
    )
    X = np.stack([1 - frame["risk new"], frame["risk new"]], axis=1)
    fitted = RECALIBRATORS["platt"].make().fit(X, np.arange(60) % 7 > 3)
    (tmp_path / "map.json").write_text(json.dumps(fitted.to_dict()))
    expected = fitted.transform(X)[:, 1]
    two = frame.select("risk old", "risk new").with_columns(
        pl.when(pl.int_range(60) == 3).then(None).otherwise(pl.col("risk old")).alias("risk old")
    )
    colons = frame.select(
        *("a:0", "a:1"), (1 - pl.col("risk new")).alias("b:0"), pl.col("risk new").alias("b:1")
    ).with_columns(pl.when(pl.int_range(60) == 3).then(None).otherwise(pl.col("a:1")).alias("a:1"))
    named = ("--models", "risk old,risk new", "--model", "new")
    cases = ((two, named), (two.drop("risk old"), named), (colons, ("--model", "b")))
    for rows, options in cases:
        rows.write_csv(tmp_path / "rows.csv")
        for out in ("out.csv", "folder"):
            repair = ("--repair", "drop-missing") if out == "out.csv" else ()
            how = ("--map", tmp_path / "map.json", "--out", tmp_path / out, *options, *repair)
            assert run("apply", tmp_path / "rows.csv", *how)[::2] == (0, "")
        whole, blocks = (
            pl.read_csv(tmp_path / "out.csv"),
            pl.read_parquet(tmp_path / "folder/rows.parquet"),
        )
        for written in (whole, blocks):
            column = written["b:1" if "b:1" in written.columns else "risk new"]
            np.testing.assert_allclose(column, expected)
    # Another model is not taken for the one that is asked for.
    frame.select("risk old", "risk new").write_csv(tmp_path / "rows.csv")
    for other in ("risk old", "risk o*"):
        how = ("--map", tmp_path / "map.json", "--out", tmp_path / "out.csv", "--models", other)
        refused = run("apply", tmp_path / "rows.csv", *how, "--model", "new")
        assert refused[0] == 2
        assert "there is no model 'new'" in refused[2]
    # Beside a model in percent the columns of both say which one it is; without one, only values above 1 do.
    how = ("--map", tmp_path / "map.json", "--out", tmp_path / "out.csv", *named)
    how = (*how, "--repair", "drop-missing", "--repair", "percent")
    percent = two.with_columns(pl.col("risk new") * 100)
    for rows in (
        two.with_columns(pl.col("risk old") * 100),
        percent,
        percent.drop("risk old"),
        percent.with_columns(pl.lit(None).alias("risk old")),
    ):
        rows.write_csv(tmp_path / "rows.csv")
        assert run("apply", tmp_path / "rows.csv", *how)[0] == 0
        np.testing.assert_allclose(pl.read_csv(tmp_path / "out.csv")["p_1"], expected)
    two.drop("risk old").write_csv(tmp_path / "rows.csv")
    refused = run("apply", tmp_path / "rows.csv", *how)
    assert refused[0] == 2
    assert "without 'risk old' nothing says whether it is in percent" in refused[2]
    only = tuple("risk new" if option == "risk old,risk new" else option for option in how)
    for remedy in (how[:-2], only):
        assert run("apply", tmp_path / "rows.csv", *remedy)[0] == 0


# ---- A map knows how its scores were read


def judged(folder: Path) -> Path:
    """Verdicts of a judge with its confidence, and those of people in every second row."""
    rng = np.random.default_rng(4)
    verdict, sure = rng.random(200) < 0.6, 0.5 + rng.random(200) / 2
    human = np.where(rng.random(200) < sure, verdict, ~verdict)
    words = np.array(["fail", "pass"])
    lines = [
        f"{words[int(v)]},{s:.3f},{words[int(h)] if i % 2 else ''}"
        for i, (v, s, h) in enumerate(zip(verdict, sure, human, strict=True))
    ]
    path = folder / "judge.csv"
    path.write_text("\n".join(["judge_verdict,judge_confidence,human_verdict", *lines, ""]))
    return path


def test_a_map_of_verdicts_is_applied_to_verdicts_and_never_to_a_confidence(tmp_path: Path):
    path, saved, out = judged(tmp_path), tmp_path / "map.json", tmp_path / "out.csv"
    fit = ("--method", "platt", "--fit-fraction", 0.5, "--out", out, "--save-map", saved)
    assert run("recalibrate", path, *fit)[0] == 0
    code, _, said = run("apply", path, "--map", saved, "--out", out)
    assert code == 0, said
    table = pl.read_csv(out)
    verdicts = pl.read_csv(path)["judge_verdict"] == "pass"
    assert table["uncalibrated"].to_list() == [float(verdict) for verdict in verdicts]
    bare = tmp_path / "bare.csv"
    pl.read_csv(path).drop("judge_verdict").write_csv(bare)
    for target in (tmp_path / "bare-out.csv", tmp_path / "folder"):
        code, _, said = run("apply", bare, "--map", saved, "--out", target)
        assert (code, "'judge_confidence' is called a confidence" in said) == (2, True)
    way = ("--kind", "confidence", "--scores", "judge_confidence", "--prediction-column")
    way = (*way, "judge_verdict", "--label", "human_verdict", "--repair", "drop-missing")
    assert run("recalibrate", path, *way, *fit)[0] == 0
    code, _, said = run("apply", path, "--map", saved, "--scores", "judge_confidence", "--out", out)
    assert (code, "the map was fitted on confidence, and these" in said) == (2, True)
    assert run("apply", path, "--map", saved, "--out", out)[0] == 0
    assert (
        pl.read_csv(out)["judge_confidence"].to_list()
        != pl.read_csv(path)["judge_confidence"].to_list()
    )


@pytest.mark.parametrize("names", [["a", "b", "c"], [1, 2, 3]])
def test_a_map_of_one_model_in_rows_is_applied_to_rows_of_that_model(tmp_path: Path, names):
    rng = np.random.default_rng(0)
    rows = {"id": np.repeat(np.arange(80), 3), "model": np.tile(names, 80)}
    p, y = rng.uniform(0.1, 0.9, 240).round(3), np.repeat(rng.integers(0, 2, 80), 3)
    path, fitted, out = (tmp_path / n for n in ("in.csv", "map.json", "out.csv"))
    frame = pl.DataFrame(rows | {"p": p, "label": y})
    frame.write_csv(path)
    model = names[1] if names[1] == "b" else "model 2"
    how = ("--model", model, "--method", "platt", "--save-map", fitted, "--fit-fraction", "0.5")
    assert run("recalibrate", path, *how, "--out", out)[0] == 0
    expected = pl.read_csv(out)["p"].to_list()
    own, printed = ("--model", str(names[1])), ("--model", model)
    for more in ((), own, printed, ("--model-column", "model", *own)):
        assert run("apply", path, "--map", fitted, "--out", out, *more)[0] == 0
        written = pl.read_csv(out)
        assert written["model"].to_list() == [names[1]] * 80
        assert written["p"].to_list() == pytest.approx(expected)
    # Of another one, only if that is asked for.
    other = ("--model-column", "model", "--model", str(names[0]))
    assert run("apply", path, "--map", fitted, "--out", out, *other)[0] == 0
    assert pl.read_csv(out)["model"].to_list() == [names[0]] * 80
    # Of files in a folder as of one.
    for suffix in ("csv", "parquet"):
        source, folder = tmp_path / f"in.{suffix}", tmp_path / suffix
        getattr(frame, f"write_{suffix}")(source)
        for more, of in (((), names[1]), (other, names[0])):
            code, _, said = run("apply", source, "--map", fitted, "--out", folder, *more)
            assert (code, said) == (0, "")
            written = pl.read_parquet(folder / "in.parquet")
            assert written["model"].to_list() == [of] * 80
            assert (of != names[1]) or written["p"].to_list() == pytest.approx(expected)
    frame.filter(pl.col("model") != names[1]).write_csv(path)
    code, _, said = run("apply", path, "--map", fitted, "--out", folder)
    assert (code, f"there are no rows of model = {names[1]}" in said) == (2, True)
    code, _, said = run("expected", path, "--map", fitted)
    assert (code, f"there is no '{names[1]}' here" in said) == (2, True)
    code, _, said = run("apply", path, "--map", fitted, "--out", out)
    assert (code, f"there is no '{names[1]}' here" in said) == (2, True)
