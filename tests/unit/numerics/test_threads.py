"""The limit on threads of linear algebra is lifted when its last user leaves."""

import threading

import numpy as np
from threadpoolctl import threadpool_info

from calviz.numerics.threads import one_blas_thread


def threads():
    assert np.ones((2, 2)) @ np.ones((2, 2)) is not None
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_nested_and_concurrent_users():
    before = threads()
    entered, leave = threading.Event(), threading.Event()

    def other():
        with one_blas_thread():
            entered.set()
            leave.wait(10)

    with one_blas_thread(), one_blas_thread():
        assert set(threads()) == {1}
        user = threading.Thread(target=other)
        user.start()
        assert entered.wait(10)
    assert set(threads()) == {1}  # the other one is still inside
    leave.set()
    user.join()
    assert threads() == before


def test_an_error_lifts_it():
    before = threads()
    try:
        with one_blas_thread():
            raise ValueError
    except ValueError:
        pass
    assert threads() == before
