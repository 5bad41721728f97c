"""Limits, and columns like those that were asked for."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import calviz
from calviz.core import errors
from calviz.core.errors import InputError, Limit, OptionError
from calviz.core.predictions import Predictions
from calviz.data import ReadingOptions, read
from calviz.data.writing import write_predictions
from tests.inputs.bombs import BOMBS, HARMLESS
from tests.inputs.command_line import outcome, run
from tests.inputs.oracle import plain_metrics
from tests.inputs.relatives import (
    HEADER,
    HOSTILE_NAMES,
    JSONL,
    LABELS,
    PROBS,
    REFUSED,
    REPAIRED,
    SAME,
    hostile,
    npz,
    text,
)

# ---- Limits are decided before anything is allocated, named in the sentence, and can be set


ROOT = Path(__file__).resolve().parents[2]
#: What reading one of these may add to the largest size of the process.
FLAT = 48 << 20

#: Reads each file of a folder in one process, and says how much its memory grew and what came of it.
MEASURE = """
import json, pathlib, sys, time
from calviz.core.errors import InputError
from calviz.data import read

def memory(key):
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))

folder, warm = (pathlib.Path(a) for a in sys.argv[1:])
for file in sorted(warm.iterdir()):  # imports and threads are not counted
    read(file.read_bytes(), name=file.name)
found = {}
for file in sorted(folder.iterdir()):
    data = file.read_bytes()
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    before, start = memory("VmRSS"), time.process_time()
    try:
        message = read(data, name=file.name).recognition.sentence()
    except InputError as error:
        message = str(error)
    found[file.name] = [memory("VmHWM") - before, time.process_time() - start, message]
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, float, str]]:
    if not Path("/proc/self/clear_refs").exists():
        pytest.skip("the largest size of a process can be set back on Linux only")
    folder, warm = tmp_path_factory.mktemp("bombs"), tmp_path_factory.mktemp("warm")
    for name, make in (BOMBS | HARMLESS).items():
        (folder / name).write_bytes(make())
    for name in ("packed.csv.gz", "objects.jsonl", "array.json", "packed.npz", "label_last.npy", "lists.parquet", "packed.feather"):  # fmt: skip
        (warm / name).write_bytes(SAME[name])
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, str(folder), str(warm)],
        env=os.environ | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {name: tuple(value) for name, value in json.loads(done.stdout).items()}


@pytest.mark.slow
@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_in_flat_memory(
    name: str, measured: dict[str, tuple[int, float, str]]
) -> None:
    growth, seconds, text = measured[name]
    assert text.startswith(name)
    assert re.search(r"limit of .*; set the environment variable CALVIZ_MAX_[A-Z_]+ to raise it|damaged|not supported", text)  # fmt: skip
    assert growth < FLAT
    assert seconds < 5


@pytest.mark.slow
@pytest.mark.parametrize("name", HARMLESS)
def test_long_texts_are_kept_once(name: str, measured: dict[str, tuple[int, float, str]]) -> None:
    growth, seconds, text = measured[name]
    assert "20,000 rows, 2 classes" in text
    assert growth < FLAT
    assert seconds < 5


LIMITS = [value for value in vars(errors).values() if isinstance(value, Limit)]
CONTENT = text().encode()
LONG_LINE = text([*HEADER, "d" * (2 << 20)], probs=[[*p, 1] for p in PROBS.tolist()]).encode()
#: A file that is above each limit when it is set to this value.
ABOVE = {
    "FILE_BYTES": ("x.csv", CONTENT, "100"),
    "ARRAY_BYTES": ("x.npz", SAME["plain.npz"], "100"),
    "EXPANSION": ("x.csv.gz", BOMBS["text.csv.gz"](), "100"),
    "ROWS": ("x.npz", SAME["plain.npz"], "11"),
    "COLUMNS": ("x.csv", CONTENT, "3"),
    "CLASSES": ("x.csv", CONTENT, "2"),
    "ARRAYS": ("x.npz", SAME["splits.npz"], "3"),
    "JSON_BYTES": ("x.jsonl", JSONL, "300"),
    "LINE_BYTES": ("x.csv", LONG_LINE, "1_000_000"),
}  # fmt: skip


def test_every_limit_is_tried() -> None:
    # No file of predictions is refused by these; pictures of rows have tests of their own.
    others = {"DOUBLE_CELLS", "JOBS", "OPEN_FILES", "OPEN_BYTES", "PICTURE_BYTES"}
    assert {limit.key for limit in LIMITS} - others == set(ABOVE)


@pytest.mark.parametrize("key", ABOVE)
def test_each_limit_is_named_and_can_be_raised(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, content, value = ABOVE[key]
    monkeypatch.setenv(f"CALVIZ_MAX_{key}", value)
    with pytest.raises(InputError, match=f"limit of .*CALVIZ_MAX_{key} to raise it"):
        read(content, name=name)
    monkeypatch.setenv(f"CALVIZ_MAX_{key}", "100_000_000")
    if key != "EXPANSION":  # eleven million rows take a second
        assert read(content, name=name).first.n in (12, 24)


@pytest.mark.parametrize("value", ["0", "-1", "many", "1e9", ""])
def test_limits_that_are_no_numbers_are_said(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CALVIZ_MAX_CLASSES", value)
    with pytest.raises(OptionError, match="CALVIZ_MAX_CLASSES must be a positive whole number"):
        read(CONTENT, name="x.csv")


def test_the_page_of_limits_is_complete() -> None:
    page = (ROOT / "docs" / "robustness.md").read_text()
    for limit in LIMITS:
        assert f"`{limit.variable}`" in page
        assert limit.key in ("ARRAY_BYTES", "JOBS") or limit.written(limit.default) in page
    assert "8.0 GiB, or half of the machine's memory where that is less" in page


@pytest.mark.slow
def test_as_many_classes_as_are_accepted_are_recognised() -> None:
    k = 20_000
    header = ",".join(f"x{j}" for j in range(k))
    row = ",".join([f"{1 / k:.6f}"] * k)
    data = read(f"label,{header}\n3,{row}\n7,{row}\n".encode(), name="x.csv").first
    assert data.n_classes == k
    probs = np.full((2, k), 1 / k, dtype=np.float32)
    assert read(npz(probs=probs, labels=[0, k - 1]), name="x.npz").first.n_classes == k
    with pytest.raises(InputError, match="limit of 20,000 classes"):
        read(npz(probs=np.full((2, k + 1), 1 / k, "f4"), labels=[0, 1]), name="x.npz")


# ---- Relatives of the example files, made here: the same numbers or one sentence, in the library and on the command line


EXPECTED = plain_metrics(PROBS, LABELS)


def check(data: object, tolerance: float = 1e-9) -> None:
    assert isinstance(data, Predictions)
    results = {bins: calviz.evaluate(data, ["accuracy", "nll", "brier", "ece"], bins=bins, findings=False) for bins in (10, 15)}  # fmt: skip
    values = {f"ece{bins}": results[bins]["ece"].value for bins in results}
    values |= {key: results[10][key].value for key in ("accuracy", "nll", "brier")}
    assert values == pytest.approx(EXPECTED, abs=tolerance)


@pytest.mark.parametrize("name", SAME)
def test_the_same_numbers(name: str) -> None:
    loaded = read(SAME[name], name=name)
    check(loaded.first)
    assert not loaded.repairs_made
    assert "12 rows, 3 classes" in loaded.recognition.sentence()


@pytest.mark.parametrize("name", ["utf16.csv", "decimal_comma.csv", "objects.jsonl", "one_hot.npz", "called.txt"])  # fmt: skip
def test_the_same_numbers_on_the_command_line(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(SAME[name])
    code, out, err = outcome("audit", tmp_path / name, "--json", "-")
    assert (code, err) == (0, "")
    metrics = json.loads(out)["metrics"]
    assert metrics["accuracy"]["value"] == pytest.approx(EXPECTED["accuracy"], abs=1e-9)
    assert metrics["ece"]["value"] == pytest.approx(EXPECTED["ece15"], abs=1e-9)


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_one_sentence(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    content, words = REFUSED[name]
    with pytest.raises(InputError) as caught:
        read(content, name=name)
    sentence = str(caught.value)
    assert sentence.startswith(name)
    assert sentence.isprintable()
    assert sentence.endswith((".", "?"))
    assert [word for word in words if word not in sentence] == []
    (tmp_path / name).write_bytes(content)
    code, out, err = outcome("audit", Path(name), "--json", "-")
    assert (code, out) == (2, "")
    assert err.startswith(f"calviz: {sentence.rstrip('.')}")
    assert err.count("\n") == 1
    # Nothing was executed and nothing was unpacked.
    assert [path.name for path in tmp_path.iterdir()] == [name]


@pytest.mark.slow
@pytest.mark.parametrize("name", REPAIRED)
def test_repairs_are_offered_made_when_asked_for_and_recorded(name: str, tmp_path: Path) -> None:
    content, repair, words = REPAIRED[name]
    with pytest.raises(InputError) as caught:
        read(content, name=name)
    assert repair in [r.key for r in caught.value.repairs]
    loaded = read(content, name=name, options=ReadingOptions(repair=(repair,)))
    check(loaded.first, tolerance=2e-4)
    (repairs_made,) = loaded.repairs_made
    assert repairs_made.startswith(repair)
    assert [word for word in words if word not in repairs_made] == []
    (tmp_path / name).write_bytes(content)
    page = tmp_path / "report.html"
    html = ["--html", str(page)] if name == "sum.csv" else []  # takes a second
    code, out, err = outcome("audit", tmp_path / name, "--json", "-", "--repair", repair, *html)
    assert (code, err) == (0, "")
    assert json.loads(out)["repairs"] == [repairs_made]
    assert not html or repairs_made in page.read_text()


def test_the_sigmoid_of_one_score_is_offered() -> None:
    scores = np.log(PROBS[:, 1] / (1 - PROBS[:, 1]))
    content = "y,score\n" + "".join(f"{int(y == 1)},{s}\n" for y, s in zip(LABELS, scores, strict=True))  # fmt: skip
    with pytest.raises(InputError) as caught:
        read(content.encode(), name="x.csv")
    assert [r.key for r in caught.value.repairs] == ["sigmoid"]
    done = read(content.encode(), name="x.csv", options=ReadingOptions(repair=("sigmoid",)))
    assert np.allclose(done.first.probs[:, 1], PROBS[:, 1], atol=1e-12)  # type: ignore[union-attr]
    assert done.repairs_made == ("sigmoid: the scores were read as logits",)


@pytest.mark.parametrize("name", ["plain.npz", "packed.npz", "plain.parquet", "plain.feather", "packed.feather", "records.npy", "packed.csv.gz", "utf16.csv", "array.json"])  # fmt: skip
def test_damage_at_many_offsets_is_refused(name: str) -> None:
    content = SAME[name]
    cuts = {int(c) for c in np.linspace(1, len(content) - 2, 25)}
    cuts.discard(len(content) - 2 if name.startswith("utf16") else -1)  # only the last newline
    for cut in sorted(cuts):
        try:
            data = read(content[:cut], name=name).first
        except InputError:
            continue
        # Text may break off at the end of a line, and nothing tells.
        assert name == "utf16.csv"
        assert data.n < len(LABELS)


@pytest.mark.slow
def test_hostile_names_are_kept_and_written_as_text(tmp_path: Path) -> None:
    loaded = read(hostile(), name="names.csv")
    assert loaded.recognition.class_names == HOSTILE_NAMES
    (tmp_path / "names.csv").write_bytes(hostile())
    page = tmp_path / "report.html"
    tables = tmp_path / "predictions.csv"
    result = run("audit", tmp_path / "names.csv", "--html", page)
    assert result.exit_code == 0
    assert result.stderr == ""
    for shown in (result.stdout, page.read_text()):
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert "x" * 1_000 not in shown
    for markup in ("<script>alert", "<img src=//", 'href="http://evil'):
        assert markup not in page.read_text()
    write_predictions(loaded.first, tables)
    assert not any(
        cell.startswith(("=", "+", "@")) for cell in tables.read_text().replace('"', "").split(",")
    )
