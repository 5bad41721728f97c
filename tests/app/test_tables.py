"""Tables that are read as texts and sorted as numbers."""

import numpy as np
import pandas as pd

from calviz.ui.widgets.tables import sortable


def test_every_row_has_its_own_text_and_its_number():
    # Equal values with other texts (of other units), texts with braces, numbers that are not there.
    value = [0.5, 0.5, 0.25, np.nan, np.nan]
    texts = pd.DataFrame(
        {"metric": list("abcde"), "value": ["50.0 %", "0.500", "{0.25}", "n/a", "n/a"]}
    )
    styled = sortable(texts, {"value": value})
    np.testing.assert_array_equal(styled.data["value"], value)
    shown = [row[-1]["display_value"] for row in styled._translate(False, False)["body"]]
    assert shown == texts["value"].tolist()
