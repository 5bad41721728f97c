"""CAL003: bins with so few rows that their bars say little."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calviz.checks._evidence import MIN_ROWS
from calviz.core.check import CHECKS, Check
from calviz.core.notes import Finding
from calviz.core.words import counted
from calviz.numerics.binning import Scheme
from calviz.numerics.sample import Sample, bin_sums

#: The exact 95 % interval of fewer rows is up to 46 points wide, and more.
ROWS_PER_BIN = 20
#: It matters where at least this share of the bins with rows is so.
MANY = 0.5


def few_rows_per_bin(
    sample: Sample, *, bins: int = 15, scheme: Scheme = "equal-width"
) -> Iterator[Finding]:
    """Count the bins with few rows."""
    count = sample.view(bin_sums, bins=bins, scheme=scheme).count
    filled = int(np.count_nonzero(count))
    sparse = (count > 0) & (count < ROWS_PER_BIN)
    few = int(np.count_nonzero(sparse))
    if sample.data.n < MIN_ROWS or few == 0:
        return
    rows = counted(int(count[sparse].sum()), "row")
    many = few >= MANY * filled
    remedy = "; use fewer bins, or bins of equal mass" if many and filled > 1 else ""
    yield Finding(
        "CAL003",
        "warning" if many else "info",
        f"{few} of the {counted(filled, 'bin')} with rows {'has' if few == 1 else 'have'} fewer than "
        f"{ROWS_PER_BIN} rows ({rows} in all): {'its' if few == 1 else 'their'} observed frequency "
        f"is uncertain{remedy}.",
    )


CHECKS.register(Check("CAL003", "Too few rows per bin", few_rows_per_bin))
