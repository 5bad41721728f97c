"""How many examples property tests try: few by default, more where the environment asks for it.

CALVIZ_EXAMPLES=100 pytest tests/property       # a hundred times as many, others each time
"""

from __future__ import annotations

import os

from hypothesis import settings

FACTOR = int(os.environ.get("CALVIZ_EXAMPLES", "1"))


def examples(count: int) -> settings:
    """Settings with this number of examples times `FACTOR`; without a factor, always the same examples."""
    return settings(max_examples=count * FACTOR, derandomize=FACTOR == 1)
