"""Sums over rows, progress, threads, runs."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Thread

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from calviz.core import blocks, probabilities
from calviz.core.blocks import Stopped, checkpoint, one_blas_thread, watching
from calviz.core.entry_specs import RECALIBRATORS
from calviz.core.errors import InputError
from calviz.core.predictions import Predictions
from calviz.core.probabilities import RowsInRange, checked_row_sums, row_sums
from calviz.data import read
from calviz.data.format import ReadingOptions
from calviz.recalibrators.matrix import DirichletCalibration

# ---- Sums of rows say nothing that is not so, whatever lies behind the arrays in memory


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k", [1, 2, 3, 5, 9, 17])
def test_rows_are_added_up_without_a_warning(k, dtype):
    # Freed memory full of nan stands where a kernel may read beyond the end; warnings are errors in the tests.
    rng = np.random.default_rng(k)
    for n in (1, 3, 19, 119, 147, 162, 400):
        for _ in range(20):
            block = rng.random((n, k)).astype(dtype)
            junk = np.full(4 * k, np.nan, dtype)
            del junk
            np.testing.assert_allclose(row_sums(block), block.sum(axis=1), rtol=1e-5)


def _probs(n: int, k: int, dtype: type = np.float32) -> np.ndarray:
    return np.random.default_rng(n).dirichlet(np.ones(k), n).astype(dtype)


@pytest.fixture
def passes(monkeypatch):
    """How often an array of probabilities is read as a whole to check its range."""
    calls = []
    full = probabilities._sums_in_range
    monkeypatch.setattr(
        probabilities, "_sums_in_range", lambda probs: calls.append(len(probs)) or full(probs)
    )
    return calls


class TestRowsInRange:
    def test_what_the_reader_found_is_what_the_full_check_finds(self, passes):
        probs = _probs(500, 3)
        probs[7] *= np.float32(1.01)
        found = RowsInRange(probs)
        for start in (300, 0, 100, 200, 400):
            found.add(slice(start, start + 100))
        seen = checked_row_sums(probs, found)
        assert passes == []
        assert seen == checked_row_sums(probs)
        assert (seen.off, passes) == (1, [500])

    @pytest.mark.parametrize("case", ["another array", "a row missing", "below 0", "nan", "-0.0"])
    def test_everything_else_is_left_to_the_full_check(self, case, passes):
        probs = _probs(50, 3)
        if case == "below 0":
            probs[30, 1] -= 1
        if case == "nan":
            probs[30, 1] = np.nan
        if case == "-0.0":
            probs[30] = (-0.0, 0.5, 0.5)
        found = RowsInRange(probs)
        found.add(slice(0, 20))
        found.add(slice(20, 49 if case == "a row missing" else 50))
        judged = probs.copy() if case == "another array" else probs
        if case in ("below 0", "nan"):
            with pytest.raises(InputError, match=r"^row 31"):
                checked_row_sums(judged, found)
        else:
            assert checked_row_sums(judged, found) == checked_row_sums(judged)
        assert passes[0] == 50

    def test_predictions_keep_nothing_of_it(self):
        probs = _probs(9, 3)
        found = RowsInRange(probs)
        found.add(slice(0, 9))
        data = Predictions(probs=probs, labels=np.arange(9) % 3, filled=found)
        assert data.row_sums == checked_row_sums(probs)
        assert data.filled is None


class TestReadingNpy:
    """Rows of NPY files are checked while they are read, and files in every other layout afterwards."""

    @staticmethod
    def _file(folder: Path, scores: np.ndarray, order: str = "C") -> Path:
        rows = np.column_stack([scores, np.arange(len(scores)) % scores.shape[1]])
        np.save(folder / "x.npy", np.asarray(rows.astype(scores.dtype), order=order))
        return folder / "x.npy"

    # 10,000 x 500 float32 numbers are 20 MB, which threads read in parts.
    @pytest.mark.parametrize(("n", "k"), [(40, 3), (10_000, 500)])
    @pytest.mark.parametrize("order", ["C", "F"])
    def test_rows_in_range_are_read_once(self, n, k, order, tmp_path, passes):
        scores = _probs(n, k)
        data = read(self._file(tmp_path, scores, order)).first
        np.testing.assert_array_equal(data.probs, scores)
        assert passes == ([] if order == "C" else [n])
        assert data.row_sums == checked_row_sums(scores)

    def test_a_bad_number_of_a_large_file_is_named_by_its_row(self, tmp_path):
        scores = _probs(10_000, 500)
        scores[8_765, 3] = 1.5
        scores[9_876, 3] = np.nan
        with pytest.raises(InputError, match=r"row 9,877"):
            read(self._file(tmp_path, scores))
        scores[9_876] = scores[0]
        with pytest.raises(InputError, match=r"row 8,766"):
            read(self._file(tmp_path, scores))
        scores[8_765] = scores[0] * np.float32(1.1)
        with pytest.raises(InputError, match=r"1 of 10,000 rows sums to 1\.1, .*row 8,766"):
            read(self._file(tmp_path, scores))

    @pytest.mark.parametrize("repair", ["percent", "renormalise"])
    def test_repaired_numbers_are_checked_again(self, repair, tmp_path, passes):
        scores = _probs(40, 3)
        given = scores * 100 if repair == "percent" else scores * np.float32(0.9)
        data = read(
            self._file(tmp_path, given),
            options=ReadingOptions(
                scores=tuple(f"column {j}" for j in (1, 2, 3)), repair=(repair,)
            ),
        ).first
        np.testing.assert_allclose(data.probs, scores, rtol=1e-5)
        assert passes == [40]
        assert data.row_sums.off == 0

    def test_rows_left_out_are_not_among_the_sums(self, tmp_path):
        scores = _probs(40, 3)
        scores[5, 1] = np.nan
        scores[6] *= np.float32(1.01)
        options = ReadingOptions(repair=("drop-missing",))
        data = read(self._file(tmp_path, scores), options=options).first
        assert (data.n, data.row_sums.off) == (39, 1)


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


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("starts", [[0], [0, 1, 2, 999], [0, 10, 64, 65, 128, 500]])
def test_totals_of_runs_are_those_of_the_pieces(monkeypatch, dtype, starts):
    monkeypatch.setattr(blocks, "BLOCK", 64)
    values = np.random.default_rng(0).random(1_000).astype(dtype)
    pieces = np.split(values.astype(float), starts[1:])
    result = blocks.run_totals(values, np.array(starts))
    np.testing.assert_allclose(result, [p.sum() for p in pieces], rtol=1e-14)
