"""Small blocks, so that small files have several."""

import pytest

from calviz.comparison import recalibrate_files as apply_to_files
from calviz.data.formats import csv_table
from calviz.data.formats import numpy_formats as stream


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply_to_files, "BLOCK", 1)
    monkeypatch.setattr(csv_table, "BLOCK_BYTES", 4_000)
    monkeypatch.setattr(stream, "_BLOCK_BYTES", 4_000)
