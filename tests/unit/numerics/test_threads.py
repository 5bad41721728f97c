"""The limit on threads of linear algebra holds inside, and is lifted however it is left."""

import contextlib

from threadpoolctl import threadpool_info

from calviz.numerics.threads import one_blas_thread


def threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_limit_holds_inside_and_nests():
    before = threads()
    with one_blas_thread():
        with one_blas_thread():
            assert set(threads()) <= {1}
        assert set(threads()) <= {1}
    assert threads() == before


def test_an_error_lifts_it():
    before = threads()
    with contextlib.suppress(ValueError), one_blas_thread():
        raise ValueError
    assert threads() == before
