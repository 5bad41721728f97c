import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from calviz.core import blocks
from calviz.core.blocks import Stopped, checkpoint, watching
from calviz.core.entry_specs import RECALIBRATORS
from calviz.recalibrators.matrix import DirichletCalibration

#: Seconds after which another thread should have come: only a limit.
PATIENCE = 60


def test_a_checkpoint_tells_the_innermost_watcher_of_its_thread():
    outer, inner, elsewhere = [], [], []
    with watching(outer.append):
        checkpoint("one")
        with watching(inner.append):
            checkpoint("two")
        with watching(None):
            checkpoint("nobody")
        with watching(elsewhere.append):
            thread = threading.Thread(target=checkpoint, args=("of another thread",))
            thread.start()
            thread.join()
    checkpoint("after")
    assert (outer, inner, elsewhere) == (["one"], ["two"], [])


def test_the_search_of_odir_says_where_it_is_and_stops_where_it_is_told():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), size=300)
    messages = []

    def watcher(doing):
        messages.append(doing)
        if doing.startswith("cross-validating the off-diagonal: strength 2"):
            raise Stopped

    with pytest.raises(Stopped), watching(watcher):
        DirichletCalibration(regularisation="odir").fit(p, rng.integers(4, size=300))
    searched = [s for s in messages if s.startswith("cross-validating")]
    assert searched[0].endswith("strength 1 of at most 8, fold 1 of 3")
    assert len(searched) == 4  # three folds of the first strength, and where it stopped


class _NotedHelpers(ThreadPoolExecutor):
    """Helper threads that say whether they were called."""

    def __init__(self, threads):
        super().__init__(threads)
        self.called = threading.Event()

    def submit(self, *work):
        self.called.set()
        return super().submit(*work)


@pytest.mark.parametrize("method", ["isotonic", "temperature"])
def test_work_on_several_threads_stops_on_all_of_them(method, monkeypatch):
    monkeypatch.setattr(blocks, "available_cores", lambda: 2)
    monkeypatch.setattr(blocks, "WIDE_ENTRIES", 1 << 16)
    monkeypatch.setattr(blocks, "THREADED_BYTES", 0)
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(20), size=5_000).astype(np.float32)
    helpers = _NotedHelpers(1)
    monkeypatch.setattr(blocks, "_helpers", helpers)
    asked = set()
    another = threading.Event()

    def watcher(_):
        asked.add(threading.get_ident())
        # One thread could do all the work before another begins.
        if len(asked) > 1:
            another.set()
        elif helpers.called.is_set():
            another.wait(PATIENCE)

    fitted = RECALIBRATORS[method].make()
    with watching(watcher):
        fitted.fit(p, rng.integers(20, size=5_000))
    assert len(asked) > 1
    helpers.called.clear()
    stopping = threading.Event()

    def stop(_):
        if threading.current_thread() is not threading.main_thread():
            stopping.set()
        if helpers.called.is_set() and stopping.wait(PATIENCE):
            raise Stopped

    with helpers, pytest.raises(Stopped), watching(stop):
        fitted.fit(p, rng.integers(20, size=5_000))
