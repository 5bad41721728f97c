"""Identifiers of rows as text, whatever type they come in."""

import numpy as np
import pandas as pd
import pytest

from calviz.core.predictions import identifier_texts
from calviz.core.row_columns import Factor

DAYS = ["2026-01-01", "2026-01-02"]


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        (np.array([1, 20]), ["1", "20"]),
        (np.array([1.0, np.nan]), ["1", ""]),
        (np.array(["a ", "3.0"]), ["a", "3"]),
        (np.array(["ä".encode(), b"3.0"]), ["ä", "3"]),
        (np.array([1, None], dtype=object), ["1", ""]),
        (np.array([1, pd.NA], dtype=object), ["1", ""]),
        (np.array([1.0, float("nan")], dtype=object), ["1", ""]),
        (pd.Series(["a", None], dtype="string").to_numpy(), ["a", ""]),
        (np.array(DAYS, dtype="datetime64[D]"), DAYS),
        (np.array([DAYS[0], "NaT"], dtype="datetime64[ns]"), [f"{DAYS[0]}T00:00:00.000000000", ""]),
        (Factor.of(np.array(["", "3.0"])), ["", "3"]),
    ],
)
def test_every_type_is_written_alike_and_a_missing_one_is_empty(values, texts):
    assert identifier_texts(values) == texts
