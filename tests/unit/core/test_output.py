"""Files are written whole or not at all."""

import errno
import os
from pathlib import Path

import pytest

from calviz.core.limits import OutputError, replacing, write_output


def test_a_file_and_its_mode_are_replaced_and_a_link_stays_one(tmp_path):
    target, link = tmp_path / "a.txt", tmp_path / "link.txt"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to("a.txt")
    write_output(link, "é")
    assert link.is_symlink()
    assert target.read_bytes() == "é".encode()
    assert target.stat().st_mode & 0o777 == 0o640
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.txt", "link.txt"]


def test_a_new_file_has_the_mode_of_any_new_file(tmp_path):
    (tmp_path / "usual").touch()
    write_output(tmp_path / "new", b"x")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "No space left")])
@pytest.mark.parametrize("before", [None, "old"])
def test_what_breaks_off_leaves_what_was_there(tmp_path, error, before):
    target = tmp_path / "a.csv"
    if before is not None:
        target.write_text(before)
    with pytest.raises((KeyboardInterrupt, OutputError)) as caught, replacing(target) as path:  # noqa: PT012
        path.write_text("half")
        raise error
    if isinstance(error, OSError):
        left = "nothing was written" if before is None else "what was there before is unchanged"
        assert str(caught.value) == f"a.csv: cannot be written (no space left); {left}."
    assert [p.read_text() for p in tmp_path.iterdir()] == ([] if before is None else [before])


def test_a_pipe_is_written_to_and_a_device_is_not_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_output(pipe, "through")
    assert os.read(reader, 100) == b"through"
    os.close(reader)
    if Path("/dev/full").exists():
        with pytest.raises(OutputError, match=r"full: cannot be written \(no space"):
            write_output("/dev/full", "x")
        assert Path("/dev/full").is_char_device()
