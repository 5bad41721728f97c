"""What other libraries compute as the ECE with their default options; one file per library.

Each file reimplements what the functions of a library compute with default options, down to the side on which bins are
closed, because those are the numbers that people compare. None of the libraries is needed at run time. `tests/unit/peers`
checks every file against the library itself, or against values recorded with it (``benchmarks/record_conventions.py``).
"""

from calviz.peers._measure import measure

__all__ = ["measure"]
