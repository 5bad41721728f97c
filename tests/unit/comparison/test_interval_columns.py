"""A method that hands out two probabilities: both go where the calibrated rows go."""

import json

import numpy as np
import pandas as pd
import pytest

import calviz
from calviz.comparison.fitting import Division, apply_map, apply_to_all, calibrate
from calviz.core.predictions import ConfidencePredictions
from calviz.data.writing import write_predictions
from tests.inputs.simulated import draw_labels


def predictions(k=2, n=300):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(k), n)
    labels = draw_labels(probs, rng)
    return calviz.Predictions(probs=probs, labels=labels, class_names=("no", "yes", "maybe")[:k])


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".npz"])
@pytest.mark.parametrize("k", [2, 3])
def test_the_calibrated_file_has_both_columns_and_is_read_back(tmp_path, suffix, k):
    done = calibrate(predictions(k), "venn-abers", Division(fit_fraction=0.5))
    path = tmp_path / f"calibrated{suffix}"
    write_predictions(done.calibrated, path)
    read = calviz.load(path)
    names = [f"interval_p{end}" for end in (0, 1)]
    if k > 2:
        names = [f"interval_p{end}_{of}" for of in ("no", "yes", "maybe") for end in (0, 1)]
    assert list(done.calibrated.numbers) == names
    assert set(read.numbers) == set(names)
    assert not read.groups
    for name in names:
        np.testing.assert_allclose(read.numbers[name], done.calibrated.numbers[name], rtol=1e-15)
    np.testing.assert_allclose(read.probs, done.calibrated.probs, rtol=1e-15)
    if suffix == ".csv" and k == 2:
        table = pd.read_csv(path)
        low, high = table["interval_p0"], table["interval_p1"]
        np.testing.assert_allclose(table["p_yes"], high / (1 - low + high))


def test_under_cross_fitting_every_row_has_the_pair_of_its_fold():
    done = calibrate(predictions(), "venn-abers", Division(cross_fit=4))
    low, high = done.calibrated.numbers.values()
    np.testing.assert_allclose(done.calibrated.probs[:, 1], high / (1 - low + high))


def test_a_map_that_is_applied_again_gives_them_too():
    data = predictions()
    done = calibrate(data, "venn-abers", Division(fit_fraction=0.5, seed=3))
    record = json.loads(json.dumps(done.recalibrator.to_dict()))
    rows = Division(fit_fraction=0.5, seed=3).rows(data)
    for other in (apply_map(data, record), apply_to_all(data, done.recalibrator, rows)):
        for name, column in done.calibrated.numbers.items():
            np.testing.assert_array_equal(other.numbers[name], column)


def test_what_was_said_of_old_scores_does_not_stay_with_new_ones():
    done = calibrate(predictions(), "venn-abers", Division(fit_fraction=0.5)).calibrated
    assert done.numbers
    again = calibrate(done, "temperature", Division(fit_split="calibration")).calibrated
    assert not again.numbers


def test_a_composition_and_confidences_have_them():
    assert calibrate(
        predictions(), "platt+venn-abers", Division(fit_fraction=0.5)
    ).calibrated.numbers
    p = predictions()
    confident = ConfidencePredictions(
        confidence=p.probs.max(axis=1), correct=p.probs.argmax(axis=1) == p.labels
    )
    done = calibrate(confident, "venn-abers", Division(fit_fraction=0.5)).calibrated
    low, high = done.numbers.values()
    np.testing.assert_allclose(done.confidence, high / (1 - low + high))


def test_numbers_belong_to_their_rows():
    done = calibrate(predictions(), "venn-abers", Division(fit_fraction=0.5)).calibrated
    rows = np.array([5, 2, 9])
    np.testing.assert_array_equal(
        done.take(rows).numbers["interval_p0"], done.numbers["interval_p0"][rows]
    )
    other = {"interval_p0": done.numbers["interval_p0"][::-1]}
    changed = calviz.Predictions(probs=done.probs, labels=done.labels, numbers=other)
    same = calviz.Predictions(probs=done.probs, labels=done.labels)
    assert changed.fingerprint() != same.fingerprint()
    with pytest.raises(calviz.core.errors.InputError, match="'interval_p0' has 3 rows"):
        calviz.Predictions(
            probs=done.probs, labels=done.labels, numbers={"interval_p0": [0.1, 0.2, 0.3]}
        )
