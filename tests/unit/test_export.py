"""CSV that no spreadsheet takes for a program."""

import csv
import io

import numpy as np
import pandas as pd
import pytest

from calviz.core.export import csv_bytes, neutralise


def _read(data: bytes) -> list[list[str]]:
    return list(csv.reader(io.StringIO(data.decode())))


@pytest.mark.parametrize("text", ["=1+1", "+cmd", "-x", "@SUM(A1)", "\tx", "\rx"])
def test_formula_signs_are_neutralised_in_cells_and_headers(text):
    frame = pd.DataFrame({text: [text, "plain"]})
    header, first, second = _read(csv_bytes(frame))
    assert header == ["'" + text]
    assert first == [neutralise(text)] == ["'" + text]
    assert second == ["plain"]


def test_numbers_stay_numbers_and_quotes_survive():
    frame = pd.DataFrame({"n": np.array([-1, 2]), "x": [0.1, -0.25], "t": ['a "b", c', None]})
    assert _read(csv_bytes(frame)) == [
        ["n", "x", "t"],
        ["-1", "0.1", 'a "b", c'],
        ["2", "-0.25", ""],
    ]
