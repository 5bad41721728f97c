"""What other libraries call the ECE, by their own defaults; one file per library.

Each file says, in its own words, what the functions of a library do to a sample when nobody sets an option,
down to the side on which bins are closed, because that is what people compare. None of the libraries is
needed to run it. `tests/unit/peers` checks every file against the library itself, or against values recorded
with it (``benchmarks/record_conventions.py``).
"""

from calviz.peers._measure import measure

__all__ = ["measure"]
