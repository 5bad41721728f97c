import numpy as np
import pytest

from calviz.recalibrators.isotonic import CenteredIsotonicRecalibrator, IsotonicRecalibrator


def both(p):
    p = np.asarray(p, dtype=float)
    return np.stack([1 - p, p], axis=1)


#: Pieces: two misses (0.1, 0.2); (0.3, 0.4, 0.5, 0.6) with one hit each half; (0.7, 0.8) with hits alone.
SCORES = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8]
LABELS = [0, 0, 1, 0, 1, 0, 1, 1]


def points(fitted):
    (maps,) = fitted.maps_
    return np.stack([maps.x, maps.y], axis=1)


def test_the_paper_by_hand():
    fitted = CenteredIsotonicRecalibrator(smooth=False).fit(both(SCORES), LABELS)
    # Pieces at 0 and 1 keep both ends; the others stand at their mean score.
    wanted = [(0.1, 0), (0.2, 0), (0.45, 0.5), (0.7, 1), (0.8, 1)]
    np.testing.assert_allclose(points(fitted), wanted, atol=1e-15)
    np.testing.assert_allclose(
        fitted.curve(np.array([0.0, 0.325, 0.45, 0.575, 1.0])), [0, 0.25, 0.5, 0.75, 1]
    )


def test_smooth_values_by_hand():
    fitted = CenteredIsotonicRecalibrator().fit(both(SCORES), LABELS)
    # (H + 1/2) / (n + 1): 0.5 / 3, 2.5 / 5, 2.5 / 3.
    wanted = [(0.1, 1 / 6), (0.2, 1 / 6), (0.45, 0.5), (0.7, 5 / 6), (0.8, 5 / 6)]
    np.testing.assert_allclose(points(fitted), wanted, atol=1e-15)


def test_outer_pieces_that_are_not_sure_keep_their_outer_end():
    # (0.1, 0.2, 0.3) with one hit; (0.5, 0.6, 0.9) with two.
    fitted = CenteredIsotonicRecalibrator(smooth=False).fit(
        both([0.1, 0.2, 0.3, 0.5, 0.6, 0.9]), [1, 0, 0, 1, 1, 0]
    )
    wanted = [(0.1, 1 / 3), (0.2, 1 / 3), (2 / 3, 2 / 3), (0.9, 2 / 3)]
    np.testing.assert_allclose(points(fitted), wanted, atol=1e-15)


def test_smooth_values_that_do_not_ascend_are_pooled():
    # Nine of ten, then one of one: 9.5 / 11 = 0.864 and 1.5 / 2 = 0.75, so (9.5 + 1.5) / (11 + 2).
    p = np.append(np.linspace(0.5, 0.59, 10), [0.2, 0.9])
    y = np.append(np.arange(10) > 0, [0, 1]).astype(int)
    y[:10] = y[:10][::-1]  # its only miss comes last
    fitted = CenteredIsotonicRecalibrator().fit(both(p), y)
    values = np.unique(points(fitted)[:, 1])
    np.testing.assert_allclose(values, [0.25, 11 / 13], atol=1e-15)
    x = points(fitted)[:, 0]
    assert x[-2:] == pytest.approx([(p[:10].sum() + 0.9) / 11, 0.9])


def test_rows_of_one_score_are_one_point():
    fitted = CenteredIsotonicRecalibrator().fit(both([0.4] * 6), [1, 0, 0, 0, 0, 1])
    np.testing.assert_allclose(points(fitted), [(0.4, 2.5 / 7)])


@pytest.mark.parametrize("smooth", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_rises_between_the_pieces_of_isotonic_regression(smooth, dtype):
    rng = np.random.default_rng(0)
    p = rng.random(2_000).astype(dtype)
    y = (rng.random(2_000) < p**2).astype(int)
    X = np.stack([1 - p, p], axis=1)
    fitted = CenteredIsotonicRecalibrator(smooth=smooth).fit(X, y)
    x, value = fitted.maps_[0].x, fitted.maps_[0].y
    assert (np.diff(x) > 0).all()
    assert (np.diff(value) >= 0).all()
    assert (value[0] > 0) == (value[-1] < 1) == smooth
    # As many values as isotonic regression has, and every one is that of a piece.
    if not smooth:
        steps = IsotonicRecalibrator(cap=False).fit(X, y).maps_[0].y
        np.testing.assert_allclose(np.unique(value), np.unique(steps))
        # Weighted means of the points of the pieces are those of the rows.
        assert fitted.transform(X)[:, 1].mean() == pytest.approx(y.mean(), abs=0.01)
