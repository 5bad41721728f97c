"""`calviz apply`: bad rows are named as `calviz audit` names them, and what is written is read back as it was."""

import json
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

import calviz
from calviz.comparison import apply_to_files
from calviz.core.errors import InputError, NotAvailable
from calviz.data.formats.csv import table as csv_table
from calviz.data.formats.npy import stream
from calviz.data.profiling import sources
from calviz.recalibrators.maps.loading import load_map
from tests.inputs.command_line import outcome as run
from tests.inputs.table_files import write_table

#: More rows than two of the smallest blocks.
N = 2_500
BAD = 1_200


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply_to_files, "BLOCK", 1)
    monkeypatch.setattr(csv_table, "BLOCK_BYTES", 4_000)
    monkeypatch.setattr(stream, "_BLOCK_BYTES", 4_000)


def probabilities() -> np.ndarray:
    return np.random.default_rng(0).dirichlet([1, 1, 1], N)


def map_file(folder: Path, *, logits: bool = False) -> Path:
    p = probabilities()
    y = np.arange(N) % 3
    scaling = calviz.recalibrators.TemperatureScaling(input="logits" if logits else "probabilities")
    path = folder / "map.json"
    path.write_text(json.dumps(scaling.fit(np.log(p) if logits else p, y).to_dict()))
    return path


def write(folder: Path, suffix: str, scores: np.ndarray, name: str = "p") -> Path:
    path, y = folder / f"rows{suffix}", np.arange(N) % 3
    if suffix == ".npz":
        np.savez(path, **{"probs" if name == "p" else "logits": scores, "labels": y})
        return path
    if suffix == ".npy":
        np.save(path, np.column_stack([scores, y]))
        return path
    columns = {f"{name}_{k}": scores[:, k] for k in range(scores.shape[1])}
    frame = pl.DataFrame({"label": y, **columns})
    write_table(frame, path)
    return path


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
    code, said, wrong = run("apply", path, "--map", fitted, "--out", out)
    assert (code, said, wrong) == (0, f"wrote 1 file to {out}\n", "")
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
        code, _, wrong = run(*command)
        assert (code, "rows.csv: the text is not UTF-8" in wrong) == (2, True)


def test_repairs_are_not_made_in_blocks(tmp_path: Path):
    path = write(tmp_path, ".csv", probabilities() * 1.1)
    fitted, out = map_file(tmp_path), tmp_path / "out"
    code, _, wrong = run("apply", path, "--map", fitted, "--out", out, "--repair", "renormalise")
    assert (code, "not repaired" in wrong, out.exists()) == (2, True, False)


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


def test_no_output_replaces_what_is_read(tmp_path: Path):
    path = write(tmp_path, ".csv", probabilities())
    table = write(tmp_path, ".parquet", probabilities())
    fitted, before = map_file(tmp_path), path.read_bytes()
    for arguments in (
        ("audit", path, "--json", path),
        ("audit", path, "--html", path),
        ("compare", path, "--methods", "temperature", "--json", path),
        ("recalibrate", path, "--method", "temperature", "--out", path),
        ("apply", path, "--map", fitted, "--out", path),
        ("profile", table, "--out", table),
    ):
        code, _, wrong = run(*arguments)
        assert code == 2, arguments
        assert "would replace the file that is read" in wrong or "lies among the files" in wrong
    assert path.read_bytes() == before
    truth = tmp_path / "truth.csv"
    truth.write_text("id,label\n0,1\n")
    code, _, wrong = run("audit", path, "--labels", truth, "--on", "id", "--json", truth)
    assert (code, "would replace the file that is read" in wrong) == (2, True)


def test_no_output_replaces_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path, fitted = write(tmp_path, ".csv", probabilities()), map_file(tmp_path)
    monkeypatch.chdir(tmp_path)
    out = ("x.csv", "./x.csv")
    names = [path.name, "map.json"]
    for arguments in (
        *(("audit", path, first, "a", second, "./a") for first, second in (
            ("--json", "--html"), ("--html", "--markdown"), ("--junit", "--json")
        )),
        ("compare", path, "--methods", "temperature", "--json", "a", "--markdown", tmp_path / "a"),
        ("recalibrate", path, "--method", "temperature", "--out", out[0], "--save-map", out[1]),
        ("recalibrate", path, "--method", "temperature", "--out", out[0], "--save-snippet", out[1]),
        ("recalibrate", path, "--method", "ets", "--out", "b", "--save-map", "a", "--save-snippet", "a"),
        ("arena", path, "--state", "a", "--json", "a"),
    ):  # fmt: skip
        code, output, wrong = run(*arguments)
        assert (code, output) == (2, ""), arguments
        assert "name the same file" in wrong
        assert wrong.count("\n") == 1
        assert sorted(p.name for p in tmp_path.iterdir()) == sorted(names)
    code, _, wrong = run("apply", path, "--map", fitted, "--out", fitted)
    assert code == 2
    assert fitted.stat().st_size
    code, _, wrong = run(*("audit", path, "--json", "/dev/null", "--junit", "/dev/null"))
    assert (code, wrong) == (0, "")


@pytest.mark.parametrize("option", ["--save-map", "--save-snippet"])
def test_a_map_that_cannot_be_saved_leaves_no_other_file(tmp_path: Path, option: str):
    path = write(tmp_path, ".csv", probabilities())
    arguments = ("recalibrate", path, "--method", "temperature", "--out", tmp_path / "o.csv")
    saved = tmp_path / "saved"
    full = Path("/dev/full")
    if full.exists():
        other = "--save-snippet" if option == "--save-map" else "--save-map"
        code, _, wrong = run(*arguments, option, full, other, saved)
        assert (code, "full: cannot be written" in wrong) == (2, True)
        assert [p.name for p in tmp_path.iterdir()] == [path.name]
    # Too many numbers for a source file.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("calviz.recalibrators.temperature.TemperatureScaling.snippet", _too_large)
        code, _, wrong = run(*arguments, "--save-snippet", saved, "--save-map", tmp_path / "m")
    assert (code, wrong) == (2, "calviz: too large.\n")
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    assert run(*arguments, option, saved)[0] == 0
    assert saved.stat().st_size
    assert (tmp_path / "o.csv").stat().st_size


def _too_large(self: object) -> str:
    raise NotAvailable("too large.")


def test_a_folder_without_the_right_to_write_is_found_before_any_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path = write(tmp_path, ".csv", probabilities())
    (tmp_path / "locked").mkdir()
    monkeypatch.setattr("os.access", lambda place, mode: Path(place).name != "locked")
    locked = tmp_path / "locked" / "x"
    for arguments in (
        ("recalibrate", "--method", "temperature", "--out", tmp_path / "o.csv", "--save-map", locked),
        ("recalibrate", "--method", "temperature", "--out", f"{locked}.csv"),
        ("audit", "--json", locked),
    ):  # fmt: skip
        code, said, wrong = run(arguments[0], path, *arguments[1:])
        assert (code, said) == (2, "")
        assert "its directory cannot be written to" in wrong
        assert sorted(p.name for p in tmp_path.iterdir()) == ["locked", path.name]


def test_a_folder_to_write_to_is_neither_standard_output_nor_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path, fitted = write(tmp_path, ".csv", probabilities()), map_file(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("x")
    for command in (("apply", "--map", fitted), ("recalibrate", "--method", "ets", "--sample", 90)):
        for out, sentence in (("-", "only --json and --markdown write to"), ("taken", "is a file")):
            code, _, wrong = run(command[0], path, *command[1:], "--out", out)
            assert (code, sentence in wrong) == (2, True), wrong
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([path.name, "map.json", "taken"])


def test_a_model_where_there_are_no_names_is_refused_without_an_empty_list(tmp_path: Path):
    path, fitted = write(tmp_path, ".csv", probabilities()), map_file(tmp_path)
    code, _, wrong = run("apply", path, "--map", fitted, "--out", tmp_path / "o", "--model", "x")
    assert (code, "there is one, without a name" in wrong) == (2, True), wrong


def test_a_profile_is_not_put_among_the_files_that_are_summed(tmp_path: Path):
    folder = tmp_path / "days"
    folder.mkdir()
    write(folder, ".parquet", probabilities())
    code, _, wrong = run("profile", folder, "--out", folder / "all.parquet")
    assert (code, "lies among the files that are summed" in wrong) == (2, True)
    # What a stopped run left is not taken for data.
    parts = tmp_path / "all.parquet.parts"
    parts.mkdir()
    write(parts, ".parquet", probabilities())
    pattern = tmp_path / "**" / "*.parquet"
    code, _, wrong = run("profile", pattern, "--out", tmp_path / "all.parquet")
    assert (code, "lies among the files that are summed" in wrong) == (2, True)


def test_several_files_are_written_to_a_folder(tmp_path: Path):
    path, fitted = write(tmp_path, ".csv", probabilities()), map_file(tmp_path)
    other = tmp_path / "other.csv"
    other.write_bytes(path.read_bytes())
    for named in ((path, other), (tmp_path / "*.csv",)):
        code, _, wrong = run("apply", *named, "--map", fitted, "--out", tmp_path / "out.csv")
        assert (code, "must be a folder" in wrong) == (2, True)
    assert not (tmp_path / "out.csv").exists()
    other.write_text(other.read_text().replace("p_1", "p_x"))
    out = tmp_path / "out"
    code, _, wrong = run("apply", other, path, "--map", fitted, "--out", out)
    assert (code, "rows.csv: there is no column 'p_x', which the first file has" in wrong) == (
        2,
        True,
    )


def test_text_files_with_columns_in_another_order_are_one_table(tmp_path: Path):
    p = np.random.default_rng(0).random(200).round(3)
    y = (np.arange(200) % 2).astype(int)
    frame = pl.DataFrame({"label": y, "p_0": 1 - p, "p_1": p})
    frame.write_csv(tmp_path / "1.csv")
    frame.select("p_1", "label", "p_0").write_csv(tmp_path / "2.csv")
    frame.write_csv(tmp_path / "3.csv", separator=";", decimal_comma=True)
    whole = calviz.load(tmp_path / "1.csv")
    profiled = calviz.profile(tmp_path)
    assert profiled.n == 600
    for key in ("nll", "ece", "brier"):
        expected = calviz.evaluate(whole, [key])[key].value
        assert calviz.evaluate(profiled, [key])[key].value == pytest.approx(expected, abs=1e-9)
    frame.select("label", "p_0").write_csv(tmp_path / "4.csv")
    with pytest.raises(InputError, match=r"4\.csv: there is no column 'p_1', which the first file"):
        calviz.profile(tmp_path)


def test_a_line_of_text_that_cannot_be_summed_is_named(tmp_path: Path):
    path = write(tmp_path, ".csv", probabilities())
    path.write_text(path.read_text().replace("\n", "\n0,0.1,x,0.9\n", 1))
    code, _, wrong = run("profile", path, "--out", tmp_path / "profile.parquet")
    assert (code, "row 1 (line 2) 'p_1' = 'x' is not a number" in wrong) == (2, True)
    assert "--skip-broken" in wrong
    code, _, wrong = run(
        "profile",
        write(tmp_path, ".parquet", probabilities()),
        "--time",
        "label:day",
        "--out",
        tmp_path / "q.parquet",
    )
    assert (code, "column 'label': it holds no dates" in wrong) == (2, True)


def test_a_pattern_says_what_is_wrong_with_its_files(tmp_path: Path):
    code, _, wrong = run("audit", tmp_path / "*.csv")
    assert (code, wrong) == (2, "calviz: *.csv: there is no such file.\n")
    write(tmp_path, ".npz", probabilities())
    code, _, wrong = run("audit", tmp_path / "*.npz")
    assert (code, "rows.npz: files that end in '.npz' cannot be read block by block" in wrong) == (
        2,
        True,
    )


@pytest.mark.parametrize(
    ("dates", "sentence"),
    [
        (["01.02.2026"] * 1_500, "row 1, column 'day': '01.02.2026' cannot be read as a date"),
        (["2026-02-01"] * 1_499 + ["soon"], "column 'day': a value cannot be read as a date"),
        (["2026-02-01"] * 1_499 + [""], "1 of 1,500 rows cannot be used: 1 with no time"),
    ],
)
def test_dates_that_cannot_be_read_are_not_a_broken_file(tmp_path: Path, dates, sentence):
    path = tmp_path / "rows.parquet"
    pl.DataFrame({"y": np.arange(1_500) % 2, "p": [0.25] * 1_500, "day": dates}).write_parquet(path)
    code, _, wrong = run("profile", path, "--time", "day:month", "--out", tmp_path / "x.parquet")
    assert (code, sentence in wrong, "skip-broken" in wrong) == (2, True, False), wrong


def unlabelled(folder: Path, suffix: str) -> tuple[Path, dict[str, list[object]]]:
    """Write rows without labels; also return their other columns."""
    p = probabilities()
    others: dict[str, list[object]] = {
        "customer": [f"c{i}" for i in range(N)],
        "region": ["EU"] * N,
        "amount": (np.arange(N) / 8).tolist(),
        "n_children": (np.arange(N) % 3).tolist(),
    }
    path = folder / f"new{suffix}"
    frame = pl.DataFrame({**others, **{f"p_{k}": p[:, k] for k in range(3)}})
    if suffix == ".npz":
        np.savez(path, probs=p, **{name: np.array(column) for name, column in others.items()})
    else:
        write_table(frame, path)
    return path, others


@pytest.mark.parametrize(
    ("suffix", "out"),
    [
        (suffix, out)
        for suffix in (".csv", ".parquet", ".arrow", ".jsonl", ".npz")
        for out in ("out.csv", "out.parquet", "out.npz", "out")
        if (suffix, out) != (".npz", "out")
    ],
)
def test_rows_without_labels_are_calibrated_with_all_their_columns(
    tmp_path: Path, suffix: str, out: str
):
    path, others = unlabelled(tmp_path, suffix)
    fitted, target = map_file(tmp_path), tmp_path / out
    code, _, wrong = run("apply", path, "--map", fitted, "--out", target)
    assert (code, wrong) == (0, "")
    if out == "out.npz":
        arrays = dict(np.load(target))
        scores = arrays.pop("probs")
        assert arrays.pop("class_names").tolist() == ["0", "1", "2"]
        written = {k.removeprefix("group_"): v.astype(str).tolist() for k, v in arrays.items()}
    else:
        at = target / "new.parquet" if out == "out" else target
        frame = pl.read_csv(at) if out == "out.csv" else pl.read_parquet(at)
        scores = frame.select("p_0", "p_1", "p_2").to_numpy()
        written = {
            name: frame[name].cast(pl.String).to_list()
            for name in frame.columns
            if not name.startswith("p_")
        }
    assert written == {k: [str(v) for v in column] for k, column in others.items()}
    assert load_map(json.loads(fitted.read_text())).transform(probabilities()) == pytest.approx(
        scores, abs=1e-12
    )


@pytest.mark.parametrize("out", ["out.parquet", "out"])
def test_labels_that_are_missing_or_of_no_class_stay_as_they_are(tmp_path: Path, out: str):
    path, fitted = write(tmp_path, ".parquet", probabilities()), map_file(tmp_path)
    frame = pl.read_parquet(path)
    for labels in (
        pl.Series("label", [None, *(np.arange(1, N) % 3)]),
        pl.Series("label", np.arange(N) % 9),
        pl.Series("label", [""] * N),
    ):
        frame.with_columns(labels).write_parquet(path)
        code, _, wrong = run("apply", path, "--map", fitted, "--out", tmp_path / out)
        assert (code, wrong) == (0, "")
        at = tmp_path / out / "rows.parquet" if out == "out" else tmp_path / out
        written = pl.read_parquet(at)["label"]
        numeric = labels.dtype.is_numeric()
        expected = labels.cast(pl.Float64) if numeric else labels
        assert (written.cast(expected.dtype, strict=False) if numeric else written).equals(expected)


@pytest.mark.parametrize("out", ["out.csv", "out"])
def test_classes_that_a_file_without_labels_does_not_name_are_those_of_the_map(
    tmp_path: Path, out: str
):
    p = (np.arange(200) + 0.5) / 200
    pairs = np.column_stack([1 - p, p])
    fitted = tmp_path / "map.json"
    record = (
        calviz.recalibrators.IsotonicRecalibrator()
        .fit(pairs, (np.arange(200) % 3 == 2).astype(int))
        .to_dict()
    )
    fitted.write_text(json.dumps(record | {"class_names": ["benign", "malignant"]}))
    for column in ("p", "p_malignant", "p_benign"):
        path = tmp_path / "new.csv"
        pl.DataFrame({"case": np.arange(200), column: p}).write_csv(path)
        code, _, wrong = run("apply", path, "--map", fitted, "--out", tmp_path / out)
        refused = column == "p_benign"
        assert (code, "another order of them" in wrong) == ((2, True) if refused else (0, False))


@pytest.mark.parametrize("out", ["out.csv", "out"])
@pytest.mark.parametrize(
    ("map_classes", "columns", "labels", "applies"),
    [
        (["cat", "dog"], ["p"], [0, 1], True),
        (["cat", "dog"], ["p_0", "p_1"], [0, 1], True),
        (["cat", "dog"], ["p_1", "p_2"], [1, 2], True),
        (["cat", "dog"], ["p_cat", "p_dog"], [0, 1], True),
        (["cat", "dog"], ["p_cat", "p_dog"], ["no", "yes"], True),
        (["cat", "dog"], ["p"], ["no", "yes"], True),
        (["cat", "dog"], ["p"], ["cat", "dog"], True),
        (["0", "1"], ["p_1", "p_2"], [1, 2], True),
        (["0", "1"], ["p"], ["no", "yes"], True),
        (["0", "1"], ["p_cat", "p_dog"], ["cat", "dog"], False),
        (["0", "1"], ["p_1", "p_0"], [0, 1], False),
        (["0", "1"], ["p_0"], [0, 1], False),
        (["0", "1", "2"], ["p_2", "p_1", "p_0"], [0, 1, 2], False),
        (["1", "2", "3"], ["p_3", "p_2", "p_1"], [1, 2, 3], False),
        (["cat", "dog"], ["p_dog", "p_cat"], ["cat", "dog"], False),
        (["cat", "dog"], ["p_no", "p_yes"], ["no", "yes"], False),
        (["cat", "dog"], ["p_cat"], ["cat", "dog"], False),
    ],
)
def test_the_order_of_the_classes_counts_and_labels_do_not(
    tmp_path: Path, map_classes, columns, labels, applies: bool, out: str
):
    p = (np.arange(200) + 0.5) / 200
    k = len(map_classes)
    pairs = np.column_stack([*[(1 - p) / (k - 1)] * (k - 1), p])
    scaling = calviz.recalibrators.IsotonicRecalibrator()
    scaling.fit(pairs, np.where(np.arange(200) % 3 == 2, k - 1, np.arange(200) % (k - 1)))
    (tmp_path / "map.json").write_text(json.dumps(scaling.to_dict() | {"class_names": map_classes}))
    scores = dict(zip(columns, pairs.T[-len(columns) :], strict=True))
    frame = pl.DataFrame({"label": (labels * 100)[:200], **scores})
    frame.write_csv(tmp_path / "new.csv")
    target = tmp_path / out
    code, _, wrong = run(
        "apply", tmp_path / "new.csv", "--map", tmp_path / "map.json", "--out", target
    )
    if not applies:
        assert (code, wrong.count("\n"), "(--scores" in wrong) == (2, 1, True)
        return
    assert code == 0, wrong
    written = pl.read_csv(target) if target.suffix else pl.read_parquet(target / "new.parquet")
    if target.suffix or columns != ["p_cat", "p_dog"]:
        assert written["label"].cast(pl.String).to_list()[:2] in (
            [str(label) for label in labels],
            ["cat", "dog"],  # labels that are numbers of classes are written by name
        )
    last = [name for name in written.columns if name.startswith("p")][-1]
    expected = scaling.transform(pairs)[:, 1]
    assert written[last].to_numpy() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("out", ["out.csv", "out"])
def test_confidences_of_unknown_outcome_are_calibrated(tmp_path: Path, out: str):
    p = (np.arange(200) + 0.5) / 200
    pairs = np.column_stack([1 - p, p])
    fitted, path = tmp_path / "map.json", tmp_path / "new.csv"
    scaling = calviz.recalibrators.IsotonicRecalibrator().fit(
        pairs, (np.arange(200) % 3 == 2).astype(int)
    )
    fitted.write_text(json.dumps(scaling.to_dict()))
    pl.DataFrame({"prediction": ["cat", "dog"] * 100, "confidence": p}).write_csv(path)
    assert run("apply", path, "--map", fitted, "--out", tmp_path / out)[0] == 0
    at = tmp_path / out
    written = pl.read_csv(at) if at.suffix else pl.read_parquet(at / "new.parquet")
    assert set(written.columns) == {"prediction", "confidence"}
    assert written["prediction"].to_list() == ["cat", "dog"] * 100
    expected = scaling.transform(pairs)[:, 1]
    assert written["confidence"].to_numpy() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("out", ["out.csv", "out.npz"])
def test_all_parts_of_an_array_file_without_labels_are_calibrated(tmp_path: Path, out: str):
    p, path, target = probabilities(), tmp_path / "parts.npz", tmp_path / out
    ids = np.arange(N)
    np.savez(path, val_probs=p[:900], test_probs=p[900:], val_ids=ids[:900], test_ids=ids[900:])
    fitted = map_file(tmp_path)
    code, said, wrong = run("apply", path, "--map", fitted, "--out", target)
    assert (code, wrong) == (0, "")
    assert "val 900, test 1,600" in said
    if out == "out.npz":
        with np.load(target) as arrays:
            scores, splits, written = arrays["probs"], arrays["split"].tolist(), arrays["ids"]
    else:
        frame = pl.read_csv(target)
        scores, splits = frame.select("p_0", "p_1", "p_2").to_numpy(), frame["split"].to_list()
        written = frame["id"].to_numpy()
    assert splits == ["val"] * 900 + ["test"] * 1_600
    np.testing.assert_array_equal(written, ids)
    np.testing.assert_allclose(scores, calviz.load_map(fitted).transform(p), atol=1e-12)
    code, _, wrong = run("audit", path)
    assert (code, "label" in wrong, "one-hot" in wrong) == (2, True, False)


@pytest.mark.parametrize("labels", ["index", "name", "one-hot"])
@pytest.mark.parametrize("labelled", ["val", "test"])
def test_parts_of_an_array_file_without_labels_are_calibrated_beside_those_with(
    tmp_path: Path, labels: str, labelled: str
):
    p, path, target = probabilities(), tmp_path / "parts.npz", tmp_path / "out.csv"
    rows = {"val": slice(0, 900), "test": slice(900, N)}
    index = (np.arange(N) % 3)[rows[labelled]]
    values = {"index": index, "name": np.array(["0", "1", "2"])[index], "one-hot": np.eye(3)[index]}
    np.savez(
        path,
        val_probs=p[rows["val"]],
        test_probs=p[rows["test"]],
        **{f"{labelled}_labels": values[labels]},
    )
    fitted = map_file(tmp_path)
    code, said, wrong = run("apply", path, "--map", fitted, "--out", target)
    assert (code, wrong) == (0, "")
    assert "val 900, test 1,600" in said
    assert "left out" not in said
    frame = pl.read_csv(target)
    assert frame["split"].to_list() == ["val"] * 900 + ["test"] * 1_600
    scores = frame.select("p_0", "p_1", "p_2").to_numpy()
    np.testing.assert_allclose(scores, calviz.load_map(fitted).transform(p), atol=1e-12)
    if labels != "one-hot":
        written = frame["labels"].to_numpy()
        assert [int(v) for v in written[rows[labelled]]] == index.tolist()
    # Whoever needs labels gets the rows that have some.
    code, said, _ = run("audit", path)
    assert (code, f"'{'test' if labelled == 'val' else 'val'}_probs' is left out" in said) == (
        0,
        True,
    )


def test_only_a_map_does_without_labels(tmp_path: Path):
    path, _ = unlabelled(tmp_path, ".npz")
    for command in (
        ["audit"],
        ["recalibrate", "--method", "temperature", "--out", tmp_path / "o.csv"],
    ):
        code, _, wrong = run(command[0], path, *command[1:])
        assert code == 2, wrong


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
    code, _, wrong = run("apply", path, "--map", fitted, "--out", target, *roles)
    assert (code, wrong) == (0, "")
    written = pl.read_parquet(target).rename({"id": "case"} if roles else {})
    assert written.select(others.columns).equals(others)
    assert written.select(others.columns).schema == others.schema


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_columns_of_objects_are_left_out_with_a_notice(tmp_path: Path, suffix: str):
    p = probabilities()[:30]
    path, target = tmp_path / f"new{suffix}", tmp_path / "out.csv"
    frame = pl.DataFrame({**{f"p_{k}": p[:, k] for k in range(3)}, "meta": [{"a": 1}] * 30})
    write_table(frame, path)
    code, said, wrong = run("apply", path, "--map", map_file(tmp_path), "--out", target)
    assert (code, wrong) == (0, "")
    assert "left out: meta" in said
    assert pl.read_csv(target).columns == ["p_0", "p_1", "p_2"]


def test_times_keep_their_offsets(tmp_path: Path):
    scores = probabilities()
    hours = [f"{i % 24:02d}:30:00" for i in range(N)]
    path, fitted = tmp_path / "rows.csv", map_file(tmp_path)
    for offset in ("+02:00", "Z", ""):
        frame = pl.DataFrame(
            {
                "time": [
                    f"2024-03-{1 + i % 28:02d}T{hour}{offset}" for i, hour in enumerate(hours)
                ],
                "label": np.arange(N) % 3,
                **{f"p_{k}": scores[:, k] for k in range(3)},
            }
        )
        frame.write_csv(path)
        times = calviz.load(path).times
        for suffix in (".csv", ".parquet", ".npz"):
            out = tmp_path / f"out{suffix}"
            for command in (("apply", "--map", fitted), ("recalibrate", "--method", "temperature")):
                code, _, wrong = run(command[0], path, *command[1:], "--out", out)
                assert (code, wrong) == (0, "")
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
        code, _, wrong = run(command[0], path, *command[1:], "--out", out)
        assert (code, wrong) == (0, "")
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
    assert written["split"].to_list() == others["fold"]
    assert written["split_"].to_list() == others["split"]


def test_a_link_in_the_folder_does_not_lead_to_a_source(tmp_path: Path):
    path, fitted = write(tmp_path, ".parquet", probabilities()), map_file(tmp_path)
    before = path.read_bytes()
    for target, source in (("out", path), ("links", tmp_path / "links" / path.name)):
        folder = tmp_path / target
        folder.mkdir()
        (folder / f"{path.stem}.parquet").symlink_to(path)
        code, _, wrong = run("apply", source, "--map", fitted, "--out", folder)
        assert (code, "holds the files themselves" in wrong) == (2, True)
        assert path.read_bytes() == before


def test_a_decimal_that_double_precision_does_not_hold_keeps_no_decimal_type(tmp_path: Path):
    frame = pl.from_arrow(pq.read_table(write(tmp_path, ".parquet", probabilities())))
    amount = pl.Series("amount", [Decimal("1.25")] * frame.height)
    frame = frame.with_columns(
        amount.cast(pl.Decimal(10, 2)).alias("small"), amount.cast(pl.Decimal(20, 2)).alias("large")
    )
    frame.write_parquet(tmp_path / "new.parquet")
    out = tmp_path / "out.parquet"
    code, _, wrong = run(
        "apply", tmp_path / "new.parquet", "--map", map_file(tmp_path), "--out", out
    )
    assert code == 0, wrong
    schema = pq.read_schema(out)
    assert str(schema.field("small").type) == "decimal128(10, 2)"
    assert "decimal" not in str(schema.field("large").type)
