"""What commands write, and the profiles that they read."""

import json
import shlex
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import calviz
from calviz.core import errors
from calviz.core.entry_specs import RECALIBRATORS
from calviz.core.errors import NotAvailable
from tests.inputs.command_line import outcome, run_successfully
from tests.inputs.maps_and_files import map_file, probabilities, write
from tests.inputs.simulated import draw_labels

# ---- No output of a command replaces what is read, or another output; all are written, or none


@pytest.mark.usefixtures("small_blocks")
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
        code, _, stderr = outcome(*arguments)
        assert code == 2, arguments
        assert "would replace the file that is read" in stderr or "lies among the files" in stderr
    assert path.read_bytes() == before
    truth = tmp_path / "truth.csv"
    truth.write_text("id,label\n0,1\n")
    code, _, stderr = outcome("audit", path, "--labels", truth, "--on", "id", "--json", truth)
    assert (code, "would replace the file that is read" in stderr) == (2, True)


@pytest.mark.usefixtures("small_blocks")
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
        code, output, stderr = outcome(*arguments)
        assert (code, output) == (2, ""), arguments
        assert "name the same file" in stderr
        assert stderr.count("\n") == 1
        assert sorted(p.name for p in tmp_path.iterdir()) == sorted(names)
    code, _, stderr = outcome("apply", path, "--map", fitted, "--out", fitted)
    assert code == 2
    assert fitted.stat().st_size
    code, _, stderr = outcome(*("audit", path, "--json", "/dev/null", "--junit", "/dev/null"))
    assert (code, stderr) == (0, "")


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("option", ["--save-map", "--save-snippet"])
def test_a_map_that_cannot_be_saved_leaves_no_other_file(tmp_path: Path, option: str):
    path = write(tmp_path, ".csv", probabilities())
    arguments = ("recalibrate", path, "--method", "temperature", "--out", tmp_path / "o.csv")
    saved = tmp_path / "saved"
    full = Path("/dev/full")
    if full.exists():
        other = "--save-snippet" if option == "--save-map" else "--save-map"
        code, _, stderr = outcome(*arguments, option, full, other, saved)
        assert (code, "full: cannot be written" in stderr) == (2, True)
        assert [p.name for p in tmp_path.iterdir()] == [path.name]
    # Too many numbers for a source file.
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "calviz.recalibrators.temperature_scaling.TemperatureScaling.snippet", _too_large
        )
        code, _, stderr = outcome(*arguments, "--save-snippet", saved, "--save-map", tmp_path / "m")
    assert (code, stderr) == (2, "calviz: too large.\n")
    assert [p.name for p in tmp_path.iterdir()] == [path.name]
    assert outcome(*arguments, option, saved)[0] == 0
    assert saved.stat().st_size
    assert (tmp_path / "o.csv").stat().st_size


def _too_large(self: object, class_names=()) -> str:
    raise NotAvailable("too large.")


@pytest.mark.usefixtures("small_blocks")
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
        code, stdout, stderr = outcome(arguments[0], path, *arguments[1:])
        assert (code, stdout) == (2, "")
        assert "cannot be written to; give another" in stderr
        assert sorted(p.name for p in tmp_path.iterdir()) == ["locked", path.name]


@pytest.mark.usefixtures("small_blocks")
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
            code, _, stderr = outcome(command[0], path, *command[1:], "--out", out)
            assert (code, sentence in stderr) == (2, True), stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([path.name, "map.json", "taken"])


@pytest.mark.usefixtures("small_blocks")
def test_a_model_where_there_are_no_names_is_refused_without_an_empty_list(tmp_path: Path):
    path, fitted = write(tmp_path, ".csv", probabilities()), map_file(tmp_path)
    code, _, stderr = outcome(
        "apply", path, "--map", fitted, "--out", tmp_path / "o", "--model", "x"
    )
    assert (code, "there is one, without a name" in stderr) == (2, True), stderr


@pytest.mark.usefixtures("small_blocks")
def test_a_profile_is_not_put_among_the_files_that_are_summed(tmp_path: Path):
    folder = tmp_path / "days"
    folder.mkdir()
    write(folder, ".parquet", probabilities())
    code, _, stderr = outcome("profile", folder, "--out", folder / "all.parquet")
    assert (code, "lies among the files that are summed" in stderr) == (2, True)
    # What a stopped run left is not taken for data.
    parts = tmp_path / "all.parquet.parts"
    parts.mkdir()
    write(parts, ".parquet", probabilities())
    pattern = tmp_path / "**" / "*.parquet"
    code, _, stderr = outcome("profile", pattern, "--out", tmp_path / "all.parquet")
    assert (code, "lies among the files that are summed" in stderr) == (2, True)


@pytest.mark.usefixtures("small_blocks")
def test_a_link_in_the_folder_does_not_lead_to_a_source(tmp_path: Path):
    path, fitted = write(tmp_path, ".parquet", probabilities()), map_file(tmp_path)
    before = path.read_bytes()
    for target, source in (("out", path), ("links", tmp_path / "links" / path.name)):
        folder = tmp_path / target
        folder.mkdir()
        (folder / f"{path.stem}.parquet").symlink_to(path)
        code, _, stderr = outcome("apply", source, "--map", fitted, "--out", folder)
        assert (code, "holds the files themselves" in stderr) == (2, True)
        assert path.read_bytes() == before


@pytest.mark.usefixtures("small_blocks")
def test_what_is_refused_is_named_in_words_that_fit(tmp_path: Path):
    path, state = write(tmp_path, ".csv", probabilities()), tmp_path / "s.jsonl"
    tiny, none = tmp_path / "tiny.csv", tmp_path / "none.npz"
    tiny.write_text("label,p\n0,.5\n1,.5\n")
    groups = tmp_path / "groups.csv"
    groups.write_text("label,p,site,ward\n" + "0,.4,a,u\n1,.6,b,v\n" * 20)
    np.savez(none, label=1)
    out = ("--out", tmp_path / "o.csv")
    for arguments, sentence in (
        (("audit", path, "--by", "site"), "no group column 'site'; these rows have none."),
        (
            ("audit", groups, "--group", "site,ward"),
            "the group 'site,ward' is not in the file; give each column by itself: --group site --group ward.",
        ),
        (("audit", groups, "--group", "site,x"), "'site,x' is not in the file; there are label,"),
        (("audit", none), "no probability arrays were recognised; name the array"),
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
        code, _, wrong = outcome(*arguments)
        assert (code, sentence in wrong) == (2, True), wrong
    left = {p.name for p in tmp_path.iterdir()}
    assert left == {path.name, "tiny.csv", "groups.csv", "none.npz"}


# ---- `calviz profile`, `calviz merge`, and `calviz audit` of what comes of them


N = 500


@pytest.fixture
def days(tmp_path: Path) -> Path:
    for day in range(2):
        rng = np.random.default_rng(day)
        p = np.round(rng.beta(1, 2, N), 3)
        table = {
            "p": p,
            "y": (rng.random(N) < p).astype(int),
            "country": rng.choice(["de", "fr"], N),
        }
        table["date"] = np.full(N, np.datetime64("2026-01-01") + day)
        pl.DataFrame(table).write_parquet(tmp_path / f"day{day}.parquet")
    return tmp_path


def profiled(days: Path, day: int) -> Path:
    out = days / f"p{day}.parquet"
    code, text, wrong = outcome(
        "profile", days / f"day{day}.parquet", "--out", out, "--by", "country", "--time", "date:day"
    )
    assert (code, wrong) == (0, "")
    assert "500 rows" in text
    assert not Path(f"{out}.parts").exists()
    return out


def test_two_days_merged_are_the_two_files_at_once(days: Path):
    parts = [profiled(days, 0), profiled(days, 1)]
    merged = days / "both.parquet"
    assert outcome("merge", *parts, "--out", merged)[0] == 0
    records = []
    for source, extra in ((merged, ()), (days / "day[01].parquet", ("--group", "country"))):
        code, _, wrong = outcome("audit", source, "--json", days / "a.json", *extra)
        assert code == 0, wrong
        records.append(json.loads((days / "a.json").read_text()))
    assert "summed part by part" in wrong
    for record in records:
        assert record["rows"] == 2 * N
        assert record["metrics"]["ks"]["exact"] is True
        assert record["metrics"]["ks"]["bound"] == 0
    first, second = (
        {key: m["value"] for key, m in record["metrics"].items()} for record in records
    )
    assert first == pytest.approx(second, nan_ok=True)
    code, table, _ = outcome("audit", merged, "--by", "country")
    assert "of the rows" in table


def test_what_does_not_fit_together_is_a_sentence(days: Path):
    one = profiled(days, 0)
    code, _, text = outcome("merge", one, days / "day1.parquet", "--out", days / "x.parquet")
    assert (code, "day1.parquet: this is not a profile" in text) == (2, True)
    code, _, text = outcome("merge", one, one, "--out", days / "x.parquet")
    assert (code, "is named twice: its rows would be counted twice" in text) == (2, True)
    before = one.read_bytes()
    code, _, text = outcome("merge", one, "--out", one)
    assert (code, "would replace the file that is read" in text) == (2, True)
    assert one.read_bytes() == before
    code, _, text = outcome("profile", days / "day1.parquet", "--out", days / "x.csv")
    assert (code, "a profile is a .parquet file" in text) == (2, True)
    code, _, text = outcome("profile", days / "none*.parquet", "--out", days / "x.parquet")
    assert (code, "no such file" in text) == (2, True)
    (days / "day1.parquet").write_bytes(b"PAR1")
    code, _, text = outcome("profile", days, "--out", days / "x.parquet", "--skip-broken")
    assert not (days / "x.parquet").exists() or code == 0


def test_a_map_is_applied_to_files_block_by_block(days: Path, monkeypatch):
    from calviz.comparison import recalibrate_files as apply_to_files

    monkeypatch.setattr(apply_to_files, "BLOCK", 1)
    table = pl.read_parquet(days / "day0.parquet")

    def both(p: np.ndarray) -> np.ndarray:
        return np.stack([1 - p, p], axis=1)

    fitted = calviz.recalibrators.PlattScaling().fit(
        both(table["p"].to_numpy()), table["y"].to_numpy()
    )
    (days / "map.json").write_text(json.dumps(fitted.to_dict()))
    out = days / "calibrated"
    code, text, wrong = outcome(
        "apply", days / "day*.parquet", "--map", days / "map.json", "--out", out
    )
    assert (code, text, wrong) == (0, f"wrote 2 files to {out}\n", "")
    for day in range(2):
        before, after = (pl.read_parquet(at / f"day{day}.parquet") for at in (days, out))
        assert after.drop("p").equals(before.drop("p"))
        np.testing.assert_allclose(after["p"], fitted.transform(both(before["p"].to_numpy()))[:, 1])
    code, _, text = outcome(
        "apply", days / "day*.parquet", "--map", days / "map.json", "--out", days
    )
    assert (code, "the folder holds the files themselves" in text) == (2, True)


def test_a_file_that_may_not_fit_is_judged_from_its_profile(days: Path, monkeypatch):
    source = days / "day0.parquet"
    rows = calviz.evaluate(calviz.load(source), ["ece", "ks"])
    code, _, wrong = outcome("audit", source, "--json", days / "rows.json")
    assert (code, "profile" in wrong) == (0, False)
    monkeypatch.setattr(errors, "machine_memory", lambda: 1_000.0)
    code, _, wrong = outcome("audit", source, "--json", days / "cells.json")
    assert code == 0
    assert "day0.parquet: it may not fit into memory, so it is summed part by part" in wrong
    record = json.loads((days / "cells.json").read_text())
    assert record["rows"] == N
    for m in rows:
        assert record["metrics"][m.key]["value"] == pytest.approx(m.value, abs=1e-9)
        assert record["metrics"][m.key]["exact"] is True


# ---- Every method on hostile scores: the map through JSON and ``calviz apply``, and the snippet, give what the fit gave


ROWS = 240


def with_ties_zeros_and_ones(k, dtype):
    """Rounded to a tenth, so that there are ties and exact zeros; one row in eight is certain, and wrong at times."""
    rng = np.random.default_rng(k)
    p = rng.multinomial(10, np.full(k, 1 / k), size=ROWS) / 10
    p[::8] = np.eye(k)[rng.integers(k, size=p[::8].shape[0])]
    y = draw_labels(p, rng)
    y[::24] = (y[::24] + 1) % k
    return p.astype(dtype), y


def sites(codes):
    """A site of each row, for a method that takes columns; rows of the two codes, such as classes, are not alike at the two."""
    other = np.random.default_rng(9).random(codes.size) < 0.3
    return np.array(["north", "south"])[(codes + other) % 2]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    split = np.repeat(["calibration", "test"], ROWS // 2)
    p, y = with_ties_zeros_and_ones(3, np.float32)
    np.savez(
        folder / "single.npz",
        probs=p,
        labels=y,
        split=split,
        group_site=sites((p.argmax(axis=1) == y).astype(int)),
    )
    p, y = with_ties_zeros_and_ones(2, np.float64)
    columns = zip(y, p[:, 1], split, sites(y), strict=True)
    lines = [f"{label},{q:g},{s},{site}" for label, q, s, site in columns]
    header = "label,probability,split,site\n"
    (folder / "column.csv").write_text(header + "\n".join(lines) + "\n")
    return folder


@pytest.mark.usefixtures("few_candidates")
@pytest.mark.slow
@pytest.mark.parametrize("name", ["single.npz", "column.csv"])
@pytest.mark.parametrize("key", RECALIBRATORS.keys())
def test_map_and_snippet_do_what_the_fit_did(key, name, files, tmp_path):
    source, saved, snippet = files / name, tmp_path / "map.json", tmp_path / "map.py"
    outs = [tmp_path / "one.npz", tmp_path / "two.npz"]
    run_successfully("recalibrate", source, "--method", key, "--fit-split", "calibration", "--out", outs[0],
        "--save-map", saved, "--save-snippet", snippet)  # fmt: skip
    run_successfully("apply", source, "--map", saved, "--out", outs[1])
    fitted, applied = (calviz.load(out).probs for out in outs)
    np.testing.assert_allclose(applied, fitted, rtol=0, atol=1e-6)
    program = {}
    exec(compile(snippet.read_text(), "map.py", "exec"), program)
    given = calviz.load(source)
    columns = [{"site": given.groups["site"].values()}] if key == "segments" else []
    out = program["recalibrate"](given.probs, *columns)
    np.testing.assert_allclose(out, fitted, rtol=0, atol=1e-6)
    assert np.isfinite(out).all()
    np.testing.assert_allclose(out.sum(axis=1), 1, atol=1e-6)


@pytest.mark.parametrize(
    "options",
    [
        ("--label", "wie", "--scores", "x 1", "--class-names", "schlecht,gut", "--group", "ort"),
        ("--label", "wie", "--scores", "z", "--kind", "logits", "--class-names", "schlecht,gut"),
        ("--label", "wie", "--models", "x 1,x 2", "--model", "2", "--class-names", "schlecht,gut"),
        ("--correct-column", "stimmt", "--scores", "x 2", "--kind", "confidence", "--time", "tag"),
    ],
)
def test_the_command_that_judges_recalibrated_files_runs_as_it_is_printed(tmp_path, options):
    rng = np.random.default_rng(1)
    p = rng.random(400)
    for part in range(2):
        hit = rng.random(400) < p
        columns = {
            "x 1": p,
            "x 2": p**2,
            "z": np.log(p / (1 - p)),
            "ort": rng.choice(["n", "s"], 400),
        }
        columns |= {"wie": np.where(hit, "gut", "schlecht"), "other": rng.choice(["a", "b"], 400)}
        columns |= {"stimmt": hit.astype(int), "tag": [f"2024-01-0{j % 9 + 1}" for j in range(400)]}
        pl.DataFrame(columns).write_csv(tmp_path / f"part{part}.csv")
    out = tmp_path.parent / f"{tmp_path.name} out"
    how = ("--method", "isotonic", "--sample", 200, "--out", out)
    said = run_successfully("recalibrate", tmp_path, *options, *how)
    command = shlex.split(said.partition("calviz audit ")[2])
    assert command[0] == str(out)
    assert "600 rows" in run_successfully("audit", *command)
