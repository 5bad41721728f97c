"""Check whether the logits and the probabilities in a file belong together."""

from __future__ import annotations

import numpy as np

from calviz.core.arrays import FloatArray
from calviz.core.blocks import BLOCK_BYTES
from calviz.core.probabilities import softmax

#: Probabilities and the softmax of the logits may differ by this much, as numbers written with four digits do.
TOLERANCE = 1e-4


def disagreement(probs: FloatArray, logits: FloatArray) -> str:
    """Return the reason why logits do not belong to the probabilities; empty if they do.

    Parameters
    ----------
    probs, logits : ndarray, shape (n, K)

    Returns
    -------
    str
        The end of a sentence about the logits.
    """
    if logits.shape != probs.shape:
        return f"which have {logits.shape[0]:,} rows, not {probs.shape[0]:,}"
    largest = 0.0
    step = max(1, BLOCK_BYTES // max(1, logits[:1].nbytes))
    for start in range(0, logits.shape[0], step):
        block = logits[start : start + step]
        if not np.isfinite(block).all():
            return "which are not all finite"
        difference = softmax(block) - probs[start : start + step]
        largest = max(largest, float(np.abs(difference).max()))
    return "" if largest <= TOLERANCE else f"whose softmax differs from them by up to {largest:.2g}"
