"""A file is closed as soon as it is read or refused, and not when its memory happens to be freed."""

from pathlib import Path

import pytest

from calviz.core.errors import InputError
from calviz.data import read
from tests.inputs import examples

OPEN = Path("/proc/self/fd")
NAMES = [
    *("01_plain.csv", "30_gzip.csv.gz", "33_table.parquet", "39_val_and_test.npz"),
    *("40_label_last_column.npy", "54_inf.csv", "65_object_dtype.npz", "71_truncated.parquet"),
    *("78_length_mismatch.npz", "80_3d_probs.npz"),
]


@pytest.mark.skipif(not OPEN.is_dir(), reason="this system does not list open files")
@pytest.mark.parametrize("name", NAMES)
def test_a_file_is_closed(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(examples.contents()[name])
    kept = []  # also the error, whose traceback would keep everything alive
    try:
        kept.append(read(path))
    except InputError as error:
        kept.append(error)
    assert isinstance(kept[0], InputError) is (name in examples.REFUSED)
    assert path not in {link.resolve() for link in OPEN.iterdir()}
