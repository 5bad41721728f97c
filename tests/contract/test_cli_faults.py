"""Full disks and Ctrl-C: one sentence, and no file that is half written."""

import errno
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import calviz
from calviz.cli.command_group import sentence
from calviz.core.limits import OutputError
from calviz.data.writing import write_predictions
from tests.inputs.command_line import outcome

ROOT = Path(__file__).resolve().parents[2]


def _predictions():
    rng = np.random.default_rng(0)
    return rng.dirichlet(np.full(20, 0.3), 2_000), rng.integers(0, 20, 2_000)


@pytest.fixture
def full_disk():
    """No file may grow beyond a few kilobytes, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))  # noqa: E731
    yield limit
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz", ".NPZ"])
def test_a_full_disk_is_a_sentence_and_the_old_file_is_still_there(full_disk, tmp_path, suffix):
    probs, labels = _predictions()
    out = tmp_path / f"out{suffix}"
    out.write_text("old")
    full_disk()
    with pytest.raises(OutputError, match="what was there before is unchanged") as caught:
        write_predictions(calviz.Predictions(probs=probs, labels=labels), out)
    assert sentence(caught.value).startswith(f"out{suffix}: cannot be written (")
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [(out.name, "old")]


def test_a_full_standard_output_is_named():
    full = OSError(errno.ENOSPC, "No space left on device")
    assert sentence(full) == "the output: no space left on device."


def _started(command, **pipes):
    return subprocess.Popen(
        [sys.executable, "-m", "calviz", *map(str, command)],
        cwd=ROOT,
        text=True,
        # Whoever runs the tests in the background of a shell has had Ctrl-C switched off for them.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        **pipes,
    )


@pytest.mark.slow
def test_ctrl_c_ends_at_once_with_a_sentence_and_no_file(tmp_path):
    probs, labels = _predictions()
    file, out = tmp_path / "in.npz", tmp_path / "out.json"
    np.savez(file, probs=probs, labels=labels)
    command = ["compare", file, "--cross-fit", "10", "--json", out]
    process = _started(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert process.stderr is not None
    process.stderr.readline()  # the file is read, or the first method done: it is at work
    began = time.monotonic()
    os.kill(process.pid, signal.SIGINT)
    _, text = process.communicate(timeout=60)
    assert time.monotonic() - began < 20
    assert process.returncode == 130
    last = text.strip().splitlines()[-1]
    assert last == "calviz: interrupted; no output file is left incomplete."
    assert "Traceback" not in text
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.slow
def test_a_program_that_is_ended_leaves_no_incomplete_file(tmp_path):
    file, out = tmp_path / "in.npz", tmp_path / "out" / "out.csv"
    out.parent.mkdir()
    rng = np.random.default_rng(0)
    np.savez(file, probs=rng.dirichlet(np.ones(3), 200_000), labels=rng.integers(0, 3, 200_000))
    process = _started(
        ["recalibrate", file, "--method", "identity", "--out", out],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    while process.poll() is None and not list(out.parent.iterdir()):
        time.sleep(0.001)
    process.terminate()  # while the file is written beside its place
    _, text = process.communicate(timeout=60)
    assert (process.returncode, text) == (
        143,
        "calviz: ended; no output file is left incomplete.\n",
    )
    assert not list(out.parent.iterdir())


@pytest.mark.slow
def test_standard_output_that_is_closed_is_no_error(tmp_path):
    file, out = tmp_path / "in.csv", tmp_path / "out.json"
    file.write_text("label,p\n0,0.2\n1,0.8\n")
    line = f"{sys.executable} -m calviz audit {file} --json {out} >&-"
    done = subprocess.run(
        line, shell=True, cwd=ROOT, stderr=subprocess.PIPE, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(out.read_text())["rows"] == 2


def test_a_loop_of_links_is_no_file(tmp_path):
    loop = tmp_path / "loop.csv"
    loop.symlink_to("loop.csv")
    for command in (["audit"], ["recalibrate", "--method", "platt", "--out", tmp_path / "o.csv"]):
        code, _, wrong = outcome(command[0], loop, *command[1:])
        assert (code, wrong) == (2, "calviz: loop.csv: there is no such file.\n")
    assert list(tmp_path.iterdir()) == [loop]


def test_logits_that_are_too_large_for_a_fit_are_compared_as_they_are(tmp_path):
    # All rows say class 1, which is wrong in a quarter of them; each of these adds 2 to the sum over classes.
    file, out = tmp_path / "large.csv", tmp_path / "o.json"
    rows = "".join(f"{int(i % 4 > 0)},-1e30,1e30\n" for i in range(40))
    file.write_text("label,logit_0,logit_1\n" + rows)
    code, _, wrong = outcome(
        *("compare", file, "--methods", "temperature", "--fit-fraction", "0.5"),
        *("--json", out, "--html", tmp_path / "o.html"),
    )
    assert (code, "temperature: row 1: the logit of class 1 is 1e+30" in wrong) == (0, True)
    methods = json.loads(out.read_text())["methods"]
    assert (methods["identity"]["ok"], methods["temperature"]["ok"]) == (True, False)
    assert methods["identity"]["metrics"]["brier"]["value"] == pytest.approx(2 * 0.25)
