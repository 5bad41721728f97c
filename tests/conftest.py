"""What all kinds of tests share."""

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, settings

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


# The same examples in every run, and no limit of time: a busy machine takes longer for one than hypothesis allows.
settings.register_profile(
    "calviz",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.load_profile("calviz")


@pytest.fixture(scope="module")
def few_candidates() -> Iterator[None]:
    """`auto` mixes two methods only: what holds for every recalibrator does not need ten fits on each fold to be seen."""
    from calviz.core.entry_specs import RECALIBRATORS, UNCALIBRATED
    from calviz.recalibrators.auto import AutomaticRecalibrator

    few = [RECALIBRATORS[key] for key in (UNCALIBRATED, "temperature", "isotonic")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AutomaticRecalibrator, "_candidates", lambda self, classes: few)
        yield


@contextmanager
def _resampling(resamples: int, redraws: int) -> Iterator[None]:
    """So many resamples of error bars and verdicts where nobody says how many, and so many redraws of the conventions."""
    from calviz.cli import audit
    from calviz.cli import compare_commands as compare_models_command
    from calviz.comparison.compare import Plan, compare
    from calviz.comparison.compare_models import compare_models
    from calviz.metrics import other_libraries as _measure
    from calviz.report.sections import summary as provenance
    from calviz.sample.sample import Sample
    from calviz.verdicts import analysis

    with pytest.MonkeyPatch.context() as patch:
        for takes in (Sample.__init__, Plan.__init__, compare, compare_models):
            defaults = takes.__kwdefaults__
            assert defaults is not None
            patch.setitem(defaults, "resamples", resamples)
        for command in (audit.audit, compare_models_command.compare_models):
            option = next(p for p in command.params if p.name == "resamples")
            patch.setattr(option, "default", resamples)
        for module in (analysis, provenance):
            patch.setattr(module, "RESAMPLES", resamples)
        patch.setattr(_measure, "REDRAWS", redraws)
        yield


@pytest.fixture(scope="session", autouse=True)
def few_resamples() -> Iterator[int]:
    """200 resamples, as what is done with them seldom needs a thousand; gives the usual number of redraws.

    A test whose numbers need more asks for `usual_resamples`.
    """
    from calviz.metrics.other_libraries import LEAST_REDRAWS, REDRAWS

    with _resampling(200, LEAST_REDRAWS):
        yield REDRAWS


@pytest.fixture
def usual_resamples(few_resamples: int) -> Iterator[None]:
    """As many resamples as users have."""
    from calviz.core.errors import RESAMPLES

    with _resampling(RESAMPLES, few_resamples):
        yield
