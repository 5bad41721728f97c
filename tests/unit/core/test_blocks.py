"""Work that is divided among threads: it is all done, once, in order, whoever does it."""

import os
import threading

import pytest

from calviz.core import blocks


@pytest.fixture(autouse=True)
def _three_cores(monkeypatch):
    monkeypatch.setattr(blocks, "available_cores", lambda: 3)


def test_results_come_in_order_from_several_threads():
    both = threading.Barrier(2, timeout=30)
    names = set()

    def work(item):
        if item in (0, 1):  # two threads have to meet
            both.wait()
        names.add(threading.current_thread().name)
        return item * item

    values = list(blocks.map_threads(work, range(50), threaded=True))
    assert values == [i * i for i in range(50)]
    assert len(names) > 1


def test_threads_are_kept():
    def rounds():
        meet = threading.Barrier(3, timeout=30)

        def work(item):
            meet.wait()
            return threading.get_ident()

        return set(blocks.map_threads(work, range(3), threaded=True))

    before = threading.active_count()
    assert len(rounds() | rounds() | rounds()) <= blocks.MAX_THREADS
    assert threading.active_count() <= before + blocks.MAX_THREADS - 1


def test_work_inside_of_work_ends():
    def inner(item):
        return sum(blocks.map_threads(lambda j: item * j, range(20), threaded=True))

    def outer(item):
        return sum(blocks.map_threads(inner, range(20), threaded=True))

    assert list(blocks.map_threads(outer, range(20), threaded=True)) == [190 * 190] * 20


def test_many_callers_share_the_helpers():
    values = {}

    def call(name):
        values[name] = list(blocks.map_threads(lambda i: (name, i), range(200), threaded=True))

    callers = [threading.Thread(target=call, args=[name]) for name in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join(60)
    assert values == {name: [(name, i) for i in range(200)] for name in range(8)}


@pytest.mark.parametrize("where", ["caller", "helper"])
def test_an_error_ends_the_work_of_all(where):
    me = threading.current_thread()
    begun = threading.Barrier(2, timeout=30)
    done = []

    def work(item):
        if item in (0, 1):
            begun.wait()
        if (threading.current_thread() is me) == (where == "caller"):
            raise ZeroDivisionError
        done.append(item)

    with pytest.raises(ZeroDivisionError):
        list(blocks.map_threads(work, range(200_000), threaded=True))
    assert len(done) < 200_000
    assert list(blocks.map_threads(abs, range(3), threaded=True)) == [0, 1, 2]


def test_who_asks_no_further_leaves_nothing_running():
    done = []
    results = blocks.map_threads(done.append, range(1_000_000), threaded=True)
    next(results)
    results.close()
    count = len(done)
    assert count < 1_000_000
    assert not threading.Event().wait(0.05)
    assert len(done) == count


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_has_helpers_of_its_own():
    def meet():
        both = threading.Barrier(2, timeout=20)
        return list(blocks.map_threads(lambda i: both.wait() >= 0, range(2), threaded=True))

    assert meet() == [True, True]
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if meet() == [True, True] else 1
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
