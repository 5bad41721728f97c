"""How much resampling is affordable while somebody waits."""

from __future__ import annotations

from calviz.core.errors import NotAvailable

#: Elementary steps (a multiply-add on one entry) spent on one interval or noise floor.
BUDGET = 4e9
#: Fewer resamples than this say too little about a 95 % interval.
FEWEST = 100


def affordable(resamples: int, cost: float) -> int:
    """As many resamples of this cost each as the budget allows, at most those asked for.

    Raises
    ------
    NotAvailable
        Where fewer than `FEWEST` would be left.
    """
    allowed = min(resamples, int(BUDGET / max(cost, 1.0)))
    if allowed < min(FEWEST, resamples):
        raise NotAvailable("these data are too large to resample this metric.")
    return allowed
