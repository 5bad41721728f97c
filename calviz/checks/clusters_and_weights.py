"""CAL024: rows that belong to clusters or have weights: their effective sample size, and the checks not run on them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calviz.core.finding import Finding
from calviz.sample.sample import Sample, event_sums
from calviz.specs.check import CHECKS, Check
from calviz.text.words import counted, decimal

#: With fewer clusters than this, intervals are rough although they follow Student's t: they assume that the sums of clusters are normal.
FEW_CLUSTERS = 20


def rows_not_alike(sample: Sample) -> Iterator[Finding]:
    """Report the effective sample size of weighted or clustered rows."""
    data = sample.data
    if data.alike:
        return
    whole = sample.view(event_sums)
    assert whole.effective is not None
    information = f"as much information as about {float(whole.effective[0]):,.0f} independent rows"
    left_out = [c.title.lower() for c in CHECKS if not c.takes(data)]
    tests = f"; not checked in such rows: {', '.join(left_out)}" if left_out else ""
    few = False
    if data.clusters is None:
        head = f"The {counted(data.n, 'row')} have weights and carry {information} of equal weight"
        error_bars = "error bars follow the weights"
    else:
        clusters = len(data.clusters.levels)
        few = clusters < FEW_CLUSTERS
        size = decimal(float(np.mean(np.bincount(data.clusters.codes))), 1)
        both = ", with weights," if data.weights is not None else ""
        head = (
            f"The {counted(data.n, 'row')}{both} are in {counted(clusters, 'cluster')} of {size} rows on average, and "
            f"carry {information}"
        )
        error_bars = "intervals and p-values resample clusters"
        if few:
            error_bars += f"; with fewer than {FEW_CLUSTERS} clusters, intervals are only rough"
    yield Finding("CAL024", "warning" if few else "info", f"{head}; {error_bars}{tests}.")


CHECKS.register(
    Check(
        "CAL024",
        "Rows in clusters or with weights",
        rows_not_alike,
        clusters=True,
        weights=True,
    )
)
