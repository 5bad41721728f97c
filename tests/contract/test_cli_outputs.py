"""No output of a command replaces what is read, or another output; all are written, or none."""

from pathlib import Path

import numpy as np
import pytest

from calviz.core.errors import NotAvailable
from tests.inputs.command_line import outcome as run
from tests.inputs.maps_and_files import map_file, probabilities, write

pytestmark = pytest.mark.usefixtures("small_blocks")


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
        code, _, stderr = run(*arguments)
        assert code == 2, arguments
        assert "would replace the file that is read" in stderr or "lies among the files" in stderr
    assert path.read_bytes() == before
    truth = tmp_path / "truth.csv"
    truth.write_text("id,label\n0,1\n")
    code, _, stderr = run("audit", path, "--labels", truth, "--on", "id", "--json", truth)
    assert (code, "would replace the file that is read" in stderr) == (2, True)


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
        code, output, stderr = run(*arguments)
        assert (code, output) == (2, ""), arguments
        assert "name the same file" in stderr
        assert stderr.count("\n") == 1
        assert sorted(p.name for p in tmp_path.iterdir()) == sorted(names)
    code, _, stderr = run("apply", path, "--map", fitted, "--out", fitted)
    assert code == 2
    assert fitted.stat().st_size
    code, _, stderr = run(*("audit", path, "--json", "/dev/null", "--junit", "/dev/null"))
    assert (code, stderr) == (0, "")


@pytest.mark.parametrize("option", ["--save-map", "--save-snippet"])
def test_a_map_that_cannot_be_saved_leaves_no_other_file(tmp_path: Path, option: str):
    path = write(tmp_path, ".csv", probabilities())
    arguments = ("recalibrate", path, "--method", "temperature", "--out", tmp_path / "o.csv")
    saved = tmp_path / "saved"
    full = Path("/dev/full")
    if full.exists():
        other = "--save-snippet" if option == "--save-map" else "--save-map"
        code, _, stderr = run(*arguments, option, full, other, saved)
        assert (code, "full: cannot be written" in stderr) == (2, True)
        assert [p.name for p in tmp_path.iterdir()] == [path.name]
    # Too many numbers for a source file.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "calviz.recalibrators.temperature_scaling.TemperatureScaling.snippet", _too_large
        )
        code, _, stderr = run(*arguments, "--save-snippet", saved, "--save-map", tmp_path / "m")
    assert (code, stderr) == (2, "calviz: too large.\n")
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
        ("recalibrate", "--method", "temperature", "--sample", 90, "--out", locked),
        ("audit", "--json", locked),
    ):  # fmt: skip
        code, stdout, stderr = run(arguments[0], path, *arguments[1:])
        assert (code, stdout) == (2, "")
        assert "cannot be written to; give another" in stderr
        assert sorted(p.name for p in tmp_path.iterdir()) == ["locked", path.name]


def test_a_folder_to_write_to_is_neither_standard_output_nor_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    path, fitted = write(tmp_path, ".csv", probabilities()), map_file(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("x")
    for command in (("apply", "--map", fitted), ("recalibrate", "--method", "ets", "--sample", 90)):
        for out, sentence in (
            ("-", "only --json and --markdown write to"),
            ("taken", "must be a folder, and is a file"),
            ("taken/new", "must be a folder, and 'taken' is a file"),
        ):
            code, _, stderr = run(command[0], path, *command[1:], "--out", out)
            assert (code, sentence in stderr) == (2, True), stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([path.name, "map.json", "taken"])


def test_a_model_where_there_are_no_names_is_refused_without_an_empty_list(tmp_path: Path):
    path, fitted = write(tmp_path, ".csv", probabilities()), map_file(tmp_path)
    code, _, stderr = run("apply", path, "--map", fitted, "--out", tmp_path / "o", "--model", "x")
    assert (code, "there is one, without a name" in stderr) == (2, True), stderr


def test_a_profile_is_not_put_among_the_files_that_are_summed(tmp_path: Path):
    folder = tmp_path / "days"
    folder.mkdir()
    write(folder, ".parquet", probabilities())
    code, _, stderr = run("profile", folder, "--out", folder / "all.parquet")
    assert (code, "lies among the files that are summed" in stderr) == (2, True)
    # What a stopped run left is not taken for data.
    parts = tmp_path / "all.parquet.parts"
    parts.mkdir()
    write(parts, ".parquet", probabilities())
    pattern = tmp_path / "**" / "*.parquet"
    code, _, stderr = run("profile", pattern, "--out", tmp_path / "all.parquet")
    assert (code, "lies among the files that are summed" in stderr) == (2, True)


def test_a_link_in_the_folder_does_not_lead_to_a_source(tmp_path: Path):
    path, fitted = write(tmp_path, ".parquet", probabilities()), map_file(tmp_path)
    before = path.read_bytes()
    for target, source in (("out", path), ("links", tmp_path / "links" / path.name)):
        folder = tmp_path / target
        folder.mkdir()
        (folder / f"{path.stem}.parquet").symlink_to(path)
        code, _, stderr = run("apply", source, "--map", fitted, "--out", folder)
        assert (code, "holds the files themselves" in stderr) == (2, True)
        assert path.read_bytes() == before


def test_what_is_refused_is_named_in_words_that_fit(tmp_path: Path):
    path, state = write(tmp_path, ".csv", probabilities()), tmp_path / "s.jsonl"
    tiny, none = tmp_path / "tiny.csv", tmp_path / "none.npz"
    tiny.write_text("label,p\n0,.5\n1,.5\n")
    np.savez(none, label=1)
    out = ("--out", tmp_path / "o.csv")
    for arguments, sentence in (
        (("audit", path, "--by", "site"), "no group column 'site'; these rows have none."),
        (("audit", none), "there are no probability arrays; name the array"),
        (("arena", path, "--state", state), "'rows' has no splits; name two (--fit-split"),
        (("recalibrate", tiny, "--method", "platt", *out), "there is 1 calibration row ("),
        (
            ("recalibrate", tiny, "--method", "platt", "--cross-fit", 3, *out),
            "must be at most the number of rows, 2, got 3.",
        ),
        (
            (
                "profile",
                path,
                "--out",
                tmp_path / "p.parquet",
                "--engine",
                "duckdb",
                "--memory",
                "much",
            ),
            "the memory limit must be a size such as 1GB, got 'much'.",
        ),
    ):
        code, _, wrong = run(*arguments)
        assert (code, sentence in wrong) == (2, True), wrong
    left = {p.name for p in tmp_path.iterdir()}
    assert left == {path.name, "tiny.csv", "none.npz"}
