"""CAL003: bins with so few rows that their bars say little."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calviz.checks.verdict.evidence import MIN_ROWS
from calviz.core.finding import Finding
from calviz.sample.bin_gaps import FEW_ROWS
from calviz.sample.sample import Sample, chosen_bins
from calviz.specs.check import CHECKS, Check
from calviz.text.words import counted

#: It is a warning if at least this share of the non-empty bins has few rows.
MANY = 0.5


def few_rows_per_bin(sample: Sample) -> Iterator[Finding]:
    """Count the bins with few rows."""
    count = chosen_bins(sample).count
    filled = int(np.count_nonzero(count))
    sparse = (count > 0) & (count < FEW_ROWS)
    few = int(np.count_nonzero(sparse))
    if sample.data.rows < MIN_ROWS or few == 0:
        return
    rows = counted(int(count[sparse].sum()), "row")
    many = few >= MANY * filled
    remedy = "; use fewer bins, or bins of equal mass" if many and filled > 1 else ""
    yield Finding(
        "CAL003",
        "warning" if many else "info",
        f"{few} of the {counted(filled, 'bin')} with rows {'has' if few == 1 else 'have'} fewer than "
        f"{FEW_ROWS} rows ({rows} in all): {'its' if few == 1 else 'their'} observed frequency "
        f"is uncertain{remedy}.",
    )


CHECKS.register(Check("CAL003", "Too few rows per bin", few_rows_per_bin, clusters=True))
