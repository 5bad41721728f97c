"""Categorical columns."""

import numpy as np
import pytest

from calviz.core.errors import InputError
from calviz.core.row_columns import Factor


def test_levels_stand_in_the_order_of_their_first_row():
    factor = Factor.of(["test", "cal", "test", "other"])
    assert factor.levels == ("test", "cal", "other")
    assert factor.codes.tolist() == [0, 1, 0, 2]
    assert factor.values().tolist() == ["test", "cal", "test", "other"]
    assert factor.counts() == {"test": 2, "cal": 1, "other": 1}
    assert len(factor) == 4


@pytest.mark.parametrize(
    ("column", "levels"),
    [
        ([3, 1, 3], ("3", "1")),
        ([True, False], ("True", "False")),
        (np.array(["a", None, "a"], dtype=object), ("a", "None")),
        ([], ()),
    ],
)
def test_any_column_can_be_one(column, levels):
    assert Factor.of(column).levels == levels


def test_taking_rows_drops_levels_without_rows():
    factor = Factor.of(["a", "b", "c", "a"])
    taken = factor.take(np.array([False, True, False, True]))
    assert taken.levels == ("a", "b")
    assert taken.values().tolist() == ["b", "a"]


def test_the_mask_of_a_level():
    factor = Factor.of(["a", "b", "a"])
    assert factor.mask("a").tolist() == [True, False, True]
    with pytest.raises(InputError, match="there is no 'z' here; known: a, b"):
        factor.mask("z")


def test_a_factor_is_read_only_and_flat():
    factor = Factor.of(["a", "b"])
    with pytest.raises(ValueError, match="read-only"):
        factor.codes[0] = 1
    assert Factor.of(factor) is factor
    with pytest.raises(InputError, match="must be 1-D"):
        Factor.of([["a"], ["b"]])
