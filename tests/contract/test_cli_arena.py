"""`calviz arena` as a contract: the JSON, the files, codes and sentences."""

import html
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from tests.inputs.command_line import run

ROOT = Path(__file__).parents[2]


@pytest.fixture
def folder(tmp_path) -> Path:
    rng = np.random.default_rng(0)
    for dataset in ("one", "two"):
        for model in ("a", "b"):
            place = tmp_path / "data" / dataset
            place.mkdir(parents=True, exist_ok=True)
            arrays = {}
            for split in ("val", "test"):
                arrays[f"{split}_probs"] = rng.dirichlet([1, 1, 1], 60)
                arrays[f"{split}_labels"] = rng.integers(0, 3, 60)
            np.savez(place / f"{model}.npz", **arrays)
    return tmp_path / "data"


def test_the_json_has_what_is_promised_and_nothing_else_goes_to_standard_output(folder):
    result = run("arena", folder, "--methods", "temperature,isotonic", "--jobs", 1, "--json", "-")
    assert result.exit_code == 0
    record = json.loads(result.stdout)
    assert record["experiments"] == 4
    assert set(record["methods"]) == {"identity", "temperature", "isotonic"}
    for entry in record["methods"].values():
        assert set(entry["winrate"]) == {"brier", "nll"}
        assert all(0 <= v <= 1 for v in entry["winrate"].values())
        assert set(entry["interval"].values()) == {None}  # two data sets are too few
        assert 0 <= entry["worse_than_none"] <= 1
        assert entry["seconds"] >= 0
    assert record["methods"]["identity"]["worse_than_none"] == 0
    assert "[4/4]" in result.stderr


def test_a_table_a_report_and_a_state_that_goes_on(folder, tmp_path):
    state, page = tmp_path / "state.jsonl", tmp_path / "arena.html"
    arguments = ("--methods", "temperature,isotonic", "--state", state, "--jobs", 1)
    first = run("arena", folder / "one", *arguments)
    assert first.exit_code == 0
    assert "winrate (95 %)" in first.stdout
    both = run(
        "arena",
        folder,
        "--methods",
        "temperature,isotonic",
        "--resume",
        state,
        "--jobs",
        1,
        "--html",
        page,
    )
    assert both.exit_code == 0
    assert "state.jsonl holds 6 results" in both.stderr
    assert "4 experiments on 2 data sets, 3 methods" in both.stdout
    written = page.read_text()
    assert "Arena of recalibrators" in written
    assert "temperature" in written
    caution = "2 data sets: another one may reverse the order. More files would tell."
    assert caution in both.stdout
    assert caution in written
    # The file of the state is an arena by itself.
    again = run("arena", state, "--resamples", 0)
    assert again.exit_code == 0
    assert "4 experiments" in again.stdout


def test_ranks_are_told_apart_in_the_words_of_the_report(tmp_path):
    rng = np.random.default_rng(0)
    for dataset in "abcdef":
        arrays = {
            f"{split}_{name}": value
            for split in ("val", "test")
            for name, value in (
                ("probs", rng.dirichlet([1, 1, 1], 60)),
                ("labels", rng.integers(0, 3, 60)),
            )
        }
        (tmp_path / dataset).mkdir()
        np.savez(tmp_path / dataset / "m.npz", **arrays)
    page = tmp_path / "page.html"
    arguments = ("--methods", "temperature,isotonic", "--jobs", 1, "--html", page)
    printed = " ".join(run("arena", tmp_path, *arguments).stdout.split())
    said = re.findall(
        r"By (?:Brier score|NLL) \S+ has the smallest mean rank, .*? apart from it[^.]*\.", printed
    )
    assert len(said) == 2
    report = " ".join(html.unescape(page.read_text()).split())
    assert all(sentence in report for sentence in said)


def test_json_is_an_arena_by_itself(folder, tmp_path):
    target = tmp_path / "arena.json"
    assert (
        run("arena", folder, "--methods", "temperature", "--jobs", 1, "--json", target).exit_code
        == 0
    )
    again = run("arena", target, "--json", "-")
    assert json.loads(again.stdout)["methods"] == json.loads(target.read_text())["methods"]
    only = run("arena", target, "--methods", "nobody")
    assert only.exit_code == 2
    assert "there are no results of 'nobody'; known: identity, temperature" in only.stderr


def test_a_state_in_the_folder_of_the_predictions_goes_on(folder):
    arguments = (folder, "--methods", "temperature", "--state", folder / "s.jsonl", "--jobs", 1)
    first, second = run("arena", *arguments), run("arena", *arguments)
    assert second.stdout == first.stdout
    assert "s.jsonl holds 8 results" in second.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere.npz"], "nowhere.npz: there is no such file"),
        (["{empty}"], "no files in this folder"),
        (["{folder}", "--methods", "nonsense"], "nonsense"),
        (["{folder}", "--methods", "ets", "--option", "beta.floor=0.1"], "but the method is 'ets'"),
        (["{folder}", "--state", "{folder}"], "--state"),
        (["{folder}", "--json", "no/such/place.json"], "place.json"),
        (["{folder}", "--html", "{folder}"], "--html"),
        (["{folder}", "--jobs", "0"], "--jobs"),
        (["{folder}/one/a.npz", "--fit-split", "train"], "there is no split 'train'"),
    ],
)
def test_what_is_wrong_is_one_sentence(folder, tmp_path, arguments, words):
    (tmp_path / "empty").mkdir()
    given = [a.format(folder=folder, empty=tmp_path / "empty") for a in arguments]
    result = run("arena", *given)
    assert result.exit_code == 2
    assert result.stdout == ""
    assert words in result.stderr
    assert result.stderr.strip().count("\n") == 0
    assert "Traceback" not in result.stderr


def started(folder: Path, state: Path, more: int) -> subprocess.Popen[str]:
    """The command, on two workers and so many experiments more, as soon as it has written results of some."""
    for at in range(more):
        (folder / f"more{at}").mkdir()
        (folder / f"more{at}" / "a.npz").write_bytes((folder / "one" / "a.npz").read_bytes())
    command = [sys.executable, "-m", "calviz", "arena", folder, "--state", state, "--jobs", "2",
               "--methods", "ets,isotonic"]  # fmt: skip
    process = subprocess.Popen(
        [str(part) for part in command],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Shells start what runs in the background with Ctrl-C ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    for _ in range(6_000):
        if state.exists() and len(state.read_text().splitlines()) > 2:
            break
        time.sleep(0.02)
    return process


@pytest.mark.slow
def test_ctrl_c_ends_it_and_what_is_done_is_kept(folder, tmp_path):
    state = tmp_path / "state.jsonl"
    process = started(folder, state, 200)
    os.killpg(process.pid, signal.SIGINT)
    _, text = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted; no output file is left incomplete." in text
    assert "Traceback" not in text
    held = len(state.read_text().splitlines()) - 1
    assert 1 <= held < 204
    again = run("arena", state, "--resamples", 0)
    assert again.exit_code == 0


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc").is_dir(), reason="processes are found in /proc")
def test_workers_end_with_a_parent_that_is_killed(folder, tmp_path):
    process = started(folder, tmp_path / "state.jsonl", 100)

    def alive() -> set[int]:
        """Processes of its session that have not ended."""
        found = set()
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                words = stat.read_text().rpartition(")")[2].split()
            except OSError:  # it has ended meanwhile
                continue
            if int(words[3]) == process.pid and words[0] != "Z":
                found.add(int(stat.parent.name))
        return found

    assert len(alive()) >= 3  # this one and its two workers
    process.kill()
    for _ in range(1_000):
        if not alive():
            break
        time.sleep(0.02)
    left = alive()
    for worker in left:
        os.kill(worker, signal.SIGKILL)
    process.communicate(timeout=60)
    assert not left
