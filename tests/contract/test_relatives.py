"""Relatives of the example files, made here: the same numbers or one sentence, in the library and on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import calviz
from calviz.core.errors import InputError
from calviz.core.predictions import Predictions
from calviz.data import ReadingOptions, read
from calviz.data.writing import write_predictions
from tests.inputs.command_line import outcome, run
from tests.inputs.oracle import plain_metrics
from tests.inputs.relatives import (
    HOSTILE_NAMES,
    LABELS,
    PROBS,
    REFUSED,
    REPAIRED,
    SAME,
    hostile,
)

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
    for text in (result.stdout, page.read_text()):
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "x" * 1_000 not in text
    for markup in ("<script>alert", "<img src=//", 'href="http://evil'):
        assert markup not in page.read_text()
    write_predictions(loaded.first, tables)
    assert not any(
        cell.startswith(("=", "+", "@")) for cell in tables.read_text().replace('"', "").split(",")
    )
