import contextlib
from threading import Barrier, Thread

import numpy as np
from threadpoolctl import threadpool_info

from calviz.core.blocks import one_blas_thread


def blas_threads():
    np.ones((2, 2)) @ np.ones((2, 2))
    return {i["num_threads"] for i in threadpool_info() if i["user_api"] == "blas"}


def test_the_limit_is_lifted_whoever_leaves_last():
    before = blas_threads()
    both_in, first_out = Barrier(2), Barrier(2)

    def first():
        with one_blas_thread():
            both_in.wait()
        first_out.wait()

    def second():
        with one_blas_thread():
            both_in.wait()
            first_out.wait()

    threads = [Thread(target=run) for run in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert blas_threads() == before
    with one_blas_thread(), one_blas_thread():
        assert blas_threads() == {1}
    assert blas_threads() == before


def test_an_error_lifts_it():
    before = blas_threads()
    with contextlib.suppress(ValueError), one_blas_thread():
        raise ValueError
    assert blas_threads() == before
