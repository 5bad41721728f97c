"""`calviz apply` and `calviz profile`: bad rows are named as `calviz audit` names them, and text is read in blocks as it is read whole."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import calviz
from calviz.core.errors import InputError
from calviz.data.any_size import file_sources as sources
from tests.inputs.command_line import outcome as run
from tests.inputs.maps_and_files import BAD, N, map_file, probabilities, write

pytestmark = pytest.mark.usefixtures("small_blocks")

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
    monkeypatch.setattr(sources, "_machine_memory", lambda: 1_000.0)
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
        ("label,p\n0,.5\n1,.5\n" * 2, "row 3 (line 4) 'p' = 'p' is not a number"),
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
