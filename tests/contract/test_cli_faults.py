"""Full disks and Ctrl-C: one sentence, and no file that is half written."""

import errno
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
from calviz.cli.text import sentence
from calviz.core.atomic_files import OutputError
from calviz.data.writing import write_predictions

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


@pytest.mark.slow
def test_ctrl_c_ends_at_once_with_a_sentence_and_no_file(tmp_path):
    probs, labels = _predictions()
    file, out = tmp_path / "in.npz", tmp_path / "out.json"
    np.savez(file, probs=probs, labels=labels)
    command = [sys.executable, "-m", "calviz", "compare", str(file), "--cross-fit", "10"]
    process = subprocess.Popen(
        [*command, "--json", str(out)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        # Whoever runs the tests in the background of a shell has had Ctrl-C switched off for them.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
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
