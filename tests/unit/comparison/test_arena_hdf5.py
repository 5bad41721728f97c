"""CalArena's HDF5 files: written here in that layout, and damaged or hostile ones."""

import sys

import numpy as np
import pytest

from calviz.comparison import arena_sources as hdf5
from calviz.comparison.arena_experiments import Rules, play_all
from calviz.comparison.arena_sources import find
from calviz.comparison.leaderboards import judge
from calviz.core.errors import InputError

NAMES = ("probas_cal", "labels_cal", "probas_test", "labels_test")


def test_without_h5py_it_says_what_to_install(tmp_path, monkeypatch):
    file = tmp_path / "a.h5"
    file.write_bytes(hdf5.SIGNATURE + bytes(100))
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(InputError, match=r"a\.h5: HDF5 files need h5py.*pip install"):
        find([file])


@pytest.fixture
def h5py():
    return pytest.importorskip("h5py", reason="h5py is not installed")


def arrays(seed, k, n=80, dtype=np.float32):
    rng = np.random.default_rng(seed)
    values = {}
    for end in ("cal", "test"):
        probs = rng.dirichlet(np.ones(k), n).astype(dtype)
        values[f"probas_{end}"] = probs[:, 1] if k == 2 else probs
        values[f"labels_{end}"] = rng.integers(0, k, n)
    return values


@pytest.fixture
def written(h5py, tmp_path):
    """The layout of CalArena: two data sets with two models each."""

    def write(name="tabrepo.h5", k=2, change=lambda group: None):
        path = tmp_path / name
        with h5py.File(path, "w") as file:
            file.attrs["source"] = "TabRepo"
            file.attrs["problem_type"] = "binary" if k == 2 else "multiclass"
            for seed, place in enumerate(
                ("adult/CatBoost", "adult/MLP", "wine/CatBoost", "wine/MLP")
            ):
                group = file.create_group(place)
                for key, value in arrays(seed, k).items():
                    group[key] = value
            change(file)
        return path

    return write


@pytest.mark.parametrize(("k", "benchmark"), [(2, "tabrepo-binary"), (4, "tabrepo-multiclass")])
def test_every_member_is_an_experiment(written, k, benchmark):
    results = find([written(k=k)])
    table, problems = play_all(results.playable, Rules(methods=("temperature",)), jobs=1)
    assert problems == ()
    assert [
        (e.benchmark, e.dataset, e.model, e.rows, e.evaluation_rows, e.classes)
        for e in table.experiments
    ] == [
        (benchmark, dataset, model, 80, 80, k)
        for dataset in ("adult", "wine")
        for model in ("CatBoost", "MLP")
    ]
    expected = arrays(0, k)
    probs, labels = expected["probas_test"].astype(float), expected["labels_test"]
    full = np.stack([1 - probs, probs], axis=1) if k == 2 else probs
    brier = ((full - np.eye(k)[labels]) ** 2).sum(1).mean()
    assert table.scores["brier"][0, 0] == pytest.approx(brier, rel=1e-6)
    assert len(judge(table).overall) == 2


def test_the_calibration_rows_come_from_cal(written):
    data = hdf5.read_member(written(), "wine", "MLP")
    assert data.split_names == ("calibration", "test")
    expected = arrays(3, 2)
    np.testing.assert_array_equal(data.labels[:80], expected["labels_cal"])
    np.testing.assert_array_equal(data.probs[:80, 1], expected["probas_cal"])


def replaced(name, value):
    def change(file):
        del file["adult/MLP"][name]
        if value is not None:
            file["adult/MLP"][name] = value

    return change


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("probas_cal", None, "there is no array 'probas_cal'"),
        ("labels_test", np.zeros(3, int), "do not go together"),
        ("labels_cal", np.full(80, 0.5), "must be whole numbers"),
        ("labels_cal", np.full(80, 7), "label"),
        ("probas_cal", np.full(80, 1.5), "row 1"),
        ("probas_cal", np.full((80, 3), 1 / 3), "different classes"),
        ("probas_test", np.array([b"a"] * 80), "is not an array of numbers"),
        ("probas_test", 0.5, "do not go together"),
    ],
)
def test_a_bad_member_is_one_sentence_and_the_others_still_play(written, name, value, words):
    results = find([written(change=replaced(name, value))])
    table, (problem,) = play_all(results.playable, Rules(methods=("temperature",)), jobs=1)
    assert len(table) == 3
    assert words in problem
    assert "tabrepo.h5" in problem
    assert "\n" not in problem


def test_links_and_arrays_elsewhere_are_not_followed(written, h5py, tmp_path):
    other = written("other.h5")

    def linked(file):
        del file["wine/MLP"]
        file["wine/MLP"] = h5py.ExternalLink(other.name, "/adult/MLP")
        del file["adult/MLP"]["probas_cal"]
        file["adult/MLP"].create_dataset(
            "probas_cal", (80,), np.float32, external=[(str(tmp_path / "secret"), 0, 320)]
        )

    results = find([written(change=linked)])
    _, problems = play_all(results.playable, Rules(methods=("temperature",)), jobs=1)
    assert sorted("is a link" in p or "is stored in another file" in p for p in problems) == [
        True,
        True,
    ]


def test_a_huge_array_is_refused_before_it_is_read(written):
    def huge(file):
        del file["adult/MLP"]["probas_cal"]
        file["adult/MLP"].create_dataset("probas_cal", (10**12,), np.float32, chunks=(1_000,))

    results = find([written(change=huge)])
    _, (problem,) = play_all(results.playable, Rules(methods=("temperature",)), jobs=1)
    assert "above the limit" in problem


def test_another_layout(written, h5py):
    with pytest.raises(InputError, match="'flat' is not a folder of models"):
        find([written(change=lambda file: file.__setitem__("flat", np.zeros(3)))])


def test_damaged_files_are_one_sentence(written, tmp_path):
    whole = written().read_bytes()
    rng = np.random.default_rng(0)
    broken = tmp_path / "broken.h5"
    messages = []
    for at in range(60):
        content = bytearray(whole[: len(whole) // 2] if at == 0 else whole)
        for place in rng.integers(0, 3_000, 8):
            content[place] = rng.integers(256)
        broken.write_bytes(content)
        try:
            for member in find([broken]).playable:
                member.models()
        except InputError as error:
            messages.append(str(error))
    assert len(messages) > 10
    assert all(text.startswith("broken.h5") and "\n" not in text for text in messages)
