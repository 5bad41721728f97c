"""Recognise confidences that people and language models state as whole numbers from 0 to 100."""

from __future__ import annotations

import numpy as np

from calviz.core.arrays import FloatArray

#: Upper end of the usual rating scales (1 to 5, 1 to 10), which are not percentages.
_LARGEST_SCALE = 10
PERCENT_WORDS = "the confidences are whole numbers from 0 to 100: they were read as per cent"


def are_percentages(confidences: FloatArray) -> bool:
    """Whether the values can only be percentages: whole numbers from 0 to 100, at least one above 10; NaN is ignored.

    Parameters
    ----------
    confidences : ndarray of float, shape (n,)

    Examples
    --------
    >>> import numpy as np
    >>> are_percentages(np.array([70.0, 100.0, 5.0])), are_percentages(np.array([1.0, 5.0])), are_percentages(np.array([70.5]))
    (True, False, False)
    """
    values = confidences[~np.isnan(confidences)]
    if not values.size or values.min() < 0 or not _LARGEST_SCALE < values.max() <= 100:
        return False
    return bool((values == np.round(values)).all())
