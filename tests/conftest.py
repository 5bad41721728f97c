"""What all kinds of tests share."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def few_candidates() -> Iterator[None]:
    """`auto` mixes two methods only: what holds for every recalibrator does not need ten fits on each fold to be seen."""
    from calviz.recalibrators.auto import AutomaticRecalibrator
    from calviz.specs.recalibrator import RECALIBRATORS, UNCALIBRATED

    few = [RECALIBRATORS[key] for key in (UNCALIBRATED, "temperature", "isotonic")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AutomaticRecalibrator, "_candidates", lambda self, classes: few)
        yield
