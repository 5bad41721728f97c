"""Sums of rows say nothing that is not so, whatever lies behind the arrays in memory."""

from pathlib import Path

import numpy as np
import pytest

from calviz.core import probabilities
from calviz.core.errors import InputError
from calviz.core.predictions import Predictions
from calviz.core.probabilities import RowsInRange, checked_row_sums, row_sums
from calviz.data import read
from calviz.data.loaded import ReadingOptions


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
        with pytest.raises(InputError, match=r"1 of 10,000 rows sum to 1\.1, .* row 8,766"):
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
