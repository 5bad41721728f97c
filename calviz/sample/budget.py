"""How much resampling is affordable while somebody waits."""

from __future__ import annotations

from calviz.core.errors import NotAvailable

#: Nanoseconds, about, that may be spent on one interval or noise floor.
BUDGET = 4e9
#: Fewer resamples than this say too little about a 95 % interval.
FEWEST = 100
#: Bytes, about, that the resamples of one interval or noise floor may take.
ROOM = 256 << 20
#: Cells of classes, bins and resamples that are filled at a time: 32 MiB.
CELLS = 1 << 22


def affordable(resamples: int, cost: float, *, start: float = 0.0, size: int = 0) -> int:
    """The number of resamples that the budget allows, at most the number asked for.

    Parameters
    ----------
    resamples : int
        How many are wanted.
    cost, start : float
        Nanoseconds, about, per resample and to begin with.
    size : int
        Bytes, about, that are kept per resample, where that is much.

    Raises
    ------
    NotAvailable
        Where fewer than `FEWEST` would be left.
    """
    allowed = min(resamples, int(max(BUDGET - start, 0) / max(cost, 1.0)), ROOM // max(size, 1))
    if allowed < min(FEWEST, resamples):
        raise NotAvailable("these data are too large to resample this metric.")
    return allowed


def in_parts(resamples: int, cells: int) -> list[slice]:
    """Resamples at a time, so that what is filled for them stays within `CELLS`."""
    step = max(1, CELLS // cells)
    return [slice(start, start + step) for start in range(0, resamples, step)]
