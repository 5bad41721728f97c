"""What all kinds of tests share."""

import gc
import os
import sys
from collections.abc import Iterator

import pytest

# The processes that tests start, and the next run, need not compile every module again, also where a container keeps no bytecode.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# Workers that run side by side share the cores: threads of linear algebra in each would wait for one another, which takes a
# quarter of the time. It is read when the library is loaded, here and in the processes that tests start.
if "PYTEST_XDIST_WORKER" in os.environ:
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "POLARS_MAX_THREADS"):
        os.environ.setdefault(name, "1")

# The modules that are loaded here hold a million objects, and looking through all of them again and again takes a tenth of the time.
gc.set_threshold(10_000, 50, 100)


@pytest.fixture(scope="module")
def few_candidates() -> Iterator[None]:
    """`auto` mixes two methods only: what holds for every recalibrator does not need ten fits on each fold to be seen."""
    from calviz.recalibrators.auto import AutomaticRecalibrator
    from calviz.specs.recalibrator import RECALIBRATORS, UNCALIBRATED

    few = [RECALIBRATORS[key] for key in (UNCALIBRATED, "temperature", "isotonic")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AutomaticRecalibrator, "_candidates", lambda self, classes: few)
        yield


@pytest.fixture(scope="module")
def few_resamples() -> Iterator[None]:
    """Error bars and verdicts of 200 resamples where nobody says how many, and few redraws of the conventions.

    What pages and commands do with them does not need a thousand. A module whose numbers do, overrides this fixture.
    """
    from calviz import analysis
    from calviz.peers import _measure
    from calviz.report.sections import provenance
    from calviz.sample.sample import Sample

    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(Sample.__init__.__kwdefaults__, "resamples", 200)
        for module in (analysis, provenance):
            patch.setattr(module, "RESAMPLES", 200)
        patch.setattr(_measure, "REDRAWS", _measure.LEAST_REDRAWS)
        yield
