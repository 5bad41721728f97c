"""How many examples property tests try: few by default, more where the environment asks for it.

CALVIZ_EXAMPLES=100 pytest tests/property       # a hundred times as many, others each time
"""

from __future__ import annotations

import os

from hypothesis import settings

FACTOR = int(os.environ.get("CALVIZ_EXAMPLES", "1"))


def examples(count: int) -> settings:
    """Settings for so many examples, always the same ones unless more are asked for."""
    return settings(max_examples=count * FACTOR, derandomize=FACTOR == 1)
