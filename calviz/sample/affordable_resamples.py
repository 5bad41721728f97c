"""How many resamples are affordable in interactive use."""

from __future__ import annotations

from calviz.core.errors import NotAvailable

#: Approximate time limit for one interval or noise floor, in nanoseconds.
BUDGET = 4e9
#: With fewer resamples than this, a 95 % interval is too imprecise.
FEWEST_RESAMPLES = 100
#: Approximate memory limit for the resamples of one interval or noise floor, in bytes.
ROOM = 256 << 20
#: Array entries (classes x bins x resamples) filled at a time: 32 MiB.
PART_ENTRIES = 1 << 22


def affordable(resamples: int, cost: float, *, start: float = 0.0, size: int = 0) -> int:
    """The number of resamples that the budget allows, at most the number asked for.

    Parameters
    ----------
    resamples : int
        How many are wanted.
    cost, start : float
        Approximate time per resample, and before the first one, in nanoseconds.
    size : int
        Approximate number of bytes kept per resample, where that is much.

    Raises
    ------
    NotAvailable
        If the budget allows fewer than `FEWEST_RESAMPLES`, and fewer than are wanted.
    """
    allowed = min(
        resamples,
        int(max(BUDGET - start, 0) / max(cost, 1.0)),
        ROOM // max(size, 1),
    )
    if allowed < min(FEWEST_RESAMPLES, resamples):
        raise NotAvailable("these data are too large to resample this metric.")
    return allowed


def in_parts(resamples: int, cells: int) -> list[slice]:
    """Split the resamples into slices, so that `cells` array entries per resample stay within `PART_ENTRIES` at a time."""
    step = max(1, PART_ENTRIES // cells)
    return [slice(start, start + step) for start in range(0, resamples, step)]
