import threading

import numpy as np
import pytest

from calviz.core.watch import Stopped, checkpoint, watching
from calviz.recalibrators.dirichlet import DirichletCalibration


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
    said = []

    def watcher(doing):
        said.append(doing)
        if doing.startswith("cross-validating the off-diagonal: strength 2"):
            raise Stopped

    with pytest.raises(Stopped), watching(watcher):
        DirichletCalibration(regularisation="odir").fit(p, rng.integers(4, size=300))
    searched = [s for s in said if s.startswith("cross-validating")]
    assert searched[0].endswith("strength 1 of at most 8, fold 1 of 3")
    assert len(searched) == 4  # three folds of the first strength, and where it stopped
