"""The sample files are what their README, their manifest and their closed forms say."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl
import pytest
from scipy.special import expit, logit

import calviz
from calviz.core.errors import InputError, OptionError
from calviz.data import reading as samples
from calviz.data.reading import SAMPLES, load_sample, project_root

FOLDER = project_root() / "sample_data"
MANIFEST: dict[str, Any] = json.loads((FOLDER / "manifest.json").read_text())
README = (FOLDER / "README.md").read_text()
KEYS = [sample.key for sample in SAMPLES]
SIMULATED = ["simulated_binary", "simulated_100_classes"]
MODELS = [(key, model) for key in KEYS for model in MANIFEST[key]["models"]]


def _load_make() -> ModuleType:
    spec = importlib.util.spec_from_file_location("sample_data_make", FOLDER / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


make = _load_make()


def frame(key: str) -> pl.DataFrame:
    return pl.read_parquet(FOLDER / MANIFEST[key]["file"])


def probabilities(table: pl.DataFrame, model: str) -> tuple[np.ndarray, np.ndarray]:
    """Scores and label indices of one model, read without calviz."""
    columns = [c for c in table.columns if c.startswith(f"{model}:")]
    names = [c.removeprefix(f"{model}:") for c in columns]
    labels = np.array([names.index(str(v)) for v in table["label"]])
    return table.select(columns).to_numpy().astype(np.float64), labels


# --- the files --------------------------------------------------------------------------------


def test_manifest_and_samples_name_the_same_files() -> None:
    assert {s.key: s.file for s in SAMPLES} == {k: e["file"] for k, e in MANIFEST.items()}
    assert list(make.MAKERS) == KEYS


def test_files_stay_small() -> None:
    sizes = [(FOLDER / entry["file"]).stat().st_size for entry in MANIFEST.values()]
    assert sum(sizes) <= make.LIMIT_BYTES == 5_000_000


def test_readme_table_tells_the_truth() -> None:
    rows = re.findall(r"^\| `(\w+)\.parquet` \| ([^\n]*) \|$", README, re.MULTILINE)
    assert [name for name, _ in rows] == KEYS
    for name, rest in rows:
        n, k, models, splits, group, _ = (cell.strip() for cell in rest.split("|"))
        table, entry = frame(name), MANIFEST[name]
        assert int(n.replace(",", "")) == table.height == entry["rows"]
        assert int(k) == entry["classes"]
        assert models.split(", ") == list(entry["models"])
        written = re.findall(r"(\w+) ([\d,]+)", splits)
        counted = dict(table["split"].value_counts().iter_rows())
        assert {s: int(c.replace(",", "")) for s, c in written} == counted == entry["splits"]
        beside = [c for c in table.columns if ":" not in c]
        assert beside == entry["columns"]
        assert sorted(set(beside) - {"id", "split", "label"}) == ([group[1:-1]] if group else [])


def test_readme_names_the_conditions_and_scores_of_the_digits() -> None:
    for condition in make.CONDITIONS:
        assert f"\n| {condition} |" in README
    for model, numbers in MANIFEST["digits"]["models"].items():
        (line,) = re.findall(rf"^\| {model} \|.*$", README, re.MULTILINE)
        accuracy, confidence = re.findall(r"([\d.]+) %", line)
        assert float(accuracy) == pytest.approx(100 * numbers["test_accuracy"], abs=0.051)
        assert float(confidence) == pytest.approx(100 * numbers["test_confidence"], abs=0.051)


@pytest.mark.parametrize(("key", "model"), MODELS)
def test_scores_are_probabilities(key: str, model: str) -> None:
    table = frame(key)
    probs, labels = probabilities(table, model)
    assert {table.schema[c] for c in table.columns if ":" in c} == {pl.Float32}
    assert probs.shape == (MANIFEST[key]["rows"], MANIFEST[key]["classes"])
    assert probs.min() >= 0
    np.testing.assert_allclose(probs.sum(axis=1), 1, atol=1e-6)
    assert set(labels) == set(range(probs.shape[1])), "a class without rows"
    test = (table["split"] == "test").to_numpy()
    hit = probs.argmax(axis=1) == labels
    numbers = MANIFEST[key]["models"][model]
    assert hit[test].mean() == pytest.approx(numbers["test_accuracy"], abs=1e-4)
    assert probs.max(axis=1)[test].mean() == pytest.approx(numbers["test_confidence"], abs=1e-4)


def test_ids_are_unique() -> None:
    for key in ("digits", "breast_cancer"):
        assert frame(key)["id"].is_unique().all()


def test_a_picture_is_in_one_split_and_in_every_condition() -> None:
    pictures = frame("digits").with_columns(picture=pl.col("id").str.split("-").list.first())
    per_picture = pictures.group_by("picture").agg(
        pl.col("split").n_unique(), pl.col("label").n_unique(), pl.col("condition").n_unique()
    )
    assert per_picture.height == 1_200
    assert (per_picture["split"] == 1).all()
    assert (per_picture["label"] == 1).all()
    assert (per_picture["condition"] == len(make.CONDITIONS)).all()


def test_the_default_sample_is_over_under_and_well_calibrated() -> None:
    table = frame("digits").filter(pl.col("split") == "test")
    gaps = {}
    for model in MANIFEST["digits"]["models"]:
        probs, labels = probabilities(table, model)
        gap = probs.max(axis=1) - (probs.argmax(axis=1) == labels)
        # The five versions of a picture go together, so pictures are the independent unit.
        by_picture = gap.reshape(-1, len(make.CONDITIONS)).mean(axis=1)
        gaps[model] = (gap.mean(), by_picture.std() / np.sqrt(by_picture.size))
    assert KEYS[0] == "digits"
    assert next(iter(gaps)) == "MLP"
    assert gaps["MLP"][0] > max(0.05, 5 * gaps["MLP"][1])
    assert gaps["logistic regression"][0] < min(-0.05, -5 * gaps["logistic regression"][1])
    assert abs(gaps["extra trees"][0]) < 2 * gaps["extra trees"][1] < 0.01


# --- the closed forms -------------------------------------------------------------------------


@pytest.mark.parametrize("case", sorted(make.CASES))
def test_binary_truth_against_simulation(case: str) -> None:
    """Zhang 2020, appendix E: the paper's own way, 10^6 draws, with z and eq. 14 as printed there."""
    b0, b1 = make.CASES[case]
    rng = np.random.default_rng(7)
    n = 1_000_000
    x = rng.standard_normal(n) + rng.choice([-1.0, 1.0], n)
    z = 1 / (1 + np.exp(-b0 - b1 * x))
    pi = 1 / (1 + np.exp(-2 * (b0 + np.log(1 / z - 1)) / b1))
    np.testing.assert_allclose(pi, 1 / (1 + np.exp(2 * x)), rtol=1e-7)
    truth = MANIFEST["simulated_binary"]["truth"][case]
    for key, values in {"ece_l1": np.abs(z - pi), "ece_l2": (z - pi) ** 2, "mcs": z - pi}.items():
        error = values.std() / np.sqrt(n)
        assert truth["positive"][key] == pytest.approx(values.mean(), abs=4 * error), key

    # Top label: narrow bins over the confidence, with the exact chance of a hit in place of hits.
    confidence = np.maximum(z, 1 - z)
    gap = confidence - np.where(z > 0.5, pi, 1 - pi)
    bins = np.floor((confidence - 0.5) * 400).astype(int)
    rows = np.bincount(bins, minlength=201)
    mean = np.bincount(bins, gap, minlength=201) / np.maximum(rows, 1)
    spread = 4 * gap.std() / np.sqrt(n)
    assert truth["top-label"]["mcs"] == pytest.approx(gap.mean(), abs=spread)
    assert truth["top-label"]["ece_l1"] == pytest.approx((rows / n) @ abs(mean), abs=2 * spread)
    assert truth["top-label"]["ece_l2"] == pytest.approx((rows / n) @ mean**2, abs=spread / 10)


def test_hundred_class_truth_against_simulation() -> None:
    """Each step of the derivation, on rows drawn another way than in make.py."""
    s, a, w = make.SHARPENING, make.LOWEST, make.rest_weights()
    rng = np.random.default_rng(8)
    q_top = a + (1 - a) * np.maximum(*rng.random((2, 400_000)))  # max of two uniforms = sqrt(U)
    few = q_top[:2_000, None]
    true = np.hstack([(1 - few) * rng.permutation(w), few])
    reported = np.exp(s * np.log(true))
    reported /= reported.sum(axis=1, keepdims=True)
    assert (reported.argmax(axis=1) == 99).all()
    confidence = reported.max(axis=1)
    log_s = np.log((w**s).sum())
    np.testing.assert_allclose(expit((logit(confidence) + log_s) / s), few[:, 0], rtol=1e-9)

    gap = expit(s * logit(q_top) - log_s) - q_top
    assert gap.min() > 0, "overconfident everywhere"
    truth = MANIFEST["simulated_100_classes"]["truth"]["sharpened"]["top-label"]
    for key, values in {"ece_l1": gap, "ece_l2": gap**2, "accuracy": q_top}.items():
        error = values.std() / np.sqrt(values.size)
        assert truth[key] == pytest.approx(values.mean(), abs=4 * error), key
    assert truth["mcs"] == truth["ece_l1"]


@pytest.mark.parametrize("key", SIMULATED)
def test_manifest_and_readme_give_the_computed_truth(key: str) -> None:
    computed = (
        {case: make.binary_truth(*beta) for case, beta in make.CASES.items()}
        if key == "simulated_binary"
        else {"sharpened": make.hundred_truth()}
    )
    for model, reductions in computed.items():
        for reduction, values in reductions.items():
            stored = MANIFEST[key]["truth"][model][reduction]
            assert stored == pytest.approx(values, abs=1e-9)
            line = next(
                line
                for line in README.splitlines()
                if line.startswith(f"| {model} |") and f"| {reduction} |" in line
            )
            written = [float(cell) for cell in line.strip("| ").split("|")[-3:]]
            expected = [values[name] for name in ("ece_l1", "ece_l2", "mcs")]
            assert written == pytest.approx(expected, abs=5.1e-8)


def test_descriptions_quote_the_truth() -> None:
    by_key = {s.key: s.description for s in SAMPLES}
    for case in make.CASES:
        value = MANIFEST["simulated_binary"]["truth"][case]["positive"]["ece_l1"]
        assert f"{100 * value:.2f} % ({case})" in by_key["simulated_binary"]
    value = MANIFEST["simulated_100_classes"]["truth"]["sharpened"]["top-label"]["ece_l1"]
    assert f"{100 * value:.2f} %" in by_key["simulated_100_classes"]
    assert f"temperature of {make.SHARPENING}" in by_key["simulated_100_classes"]


@pytest.mark.parametrize(
    ("key", "model", "reduction"),
    [
        (key, model, reduction)
        for key in SIMULATED
        for model, reductions in MANIFEST[key]["truth"].items()
        for reduction in reductions
    ],
)
def test_estimates_on_the_simulated_files_are_near_the_truth(
    key: str, model: str, reduction: str
) -> None:
    table = frame(key)
    probs, labels = probabilities(table, model)
    names = tuple(c.split(":")[1] for c in table.columns if c.startswith(f"{model}:"))
    data = calviz.Predictions(probs=probs, labels=labels, class_names=names)
    result = calviz.evaluate(data, ["ece", "mcs"], reduction=reduction, noise_floor=True)
    truth = MANIFEST[key]["truth"][model][reduction]
    hit = probs.argmax(axis=1) == labels
    error = np.sqrt(hit.mean() * (1 - hit.mean()) / len(hit))
    assert result["mcs"].value == pytest.approx(truth["mcs"], abs=3 * error)
    # A binned ECE cannot get below the noise of its bins.
    floor = result["ece"].noise_floor
    assert floor is not None
    expected = max(truth["ece_l1"], floor.mean)
    assert result["ece"].value == pytest.approx(expected, abs=3 * error)


# --- making and loading -----------------------------------------------------------------------


@pytest.mark.parametrize("key", SIMULATED)
def test_simulated_files_come_out_the_same(key: str) -> None:
    result, stored = make.MAKERS[key](), frame(key)
    rebuilt = pl.from_arrow(result.table())
    assert isinstance(rebuilt, pl.DataFrame)
    assert rebuilt.columns == stored.columns
    for name in stored.columns:
        if ":" in name:
            np.testing.assert_allclose(rebuilt[name], stored[name], atol=1e-6)
        else:
            assert rebuilt[name].to_list() == stored[name].to_list()


def test_make_writes_a_file_and_its_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(make, "FOLDER", tmp_path)
    make.main(["simulated_binary"])
    assert pl.read_parquet(tmp_path / "simulated_binary.parquet").height == 10_000
    written = json.loads((tmp_path / "manifest.json").read_text())["simulated_binary"]
    stored = MANIFEST["simulated_binary"]
    assert {k: v for k, v in written.items() if k not in ("bytes", "made_with", "truth")} == {
        k: v for k, v in stored.items() if k not in ("bytes", "made_with", "truth")
    }


def test_make_refuses_unknown_names() -> None:
    with pytest.raises(SystemExit, match="there is no sample set 'digit'"):
        make.main(["digit"])


def test_degraded_pictures_stay_pictures() -> None:
    rng = np.random.default_rng(0)
    images = rng.random((3, 8, 8))
    for condition in make.CONDITIONS:
        degraded = make.degrade(images, condition, rng)
        assert degraded.shape == images.shape
        assert degraded.min() >= 0
        assert degraded.max() <= 1
        assert np.array_equal(degraded, images) == (condition == "clean")


@pytest.mark.parametrize("key", KEYS)
def test_load_sample_recognises_everything(key: str) -> None:
    loaded, entry = load_sample(key), MANIFEST[key]
    assert list(loaded.models) == list(entry["models"])
    assert loaded.recognition.split_column == "split"
    assert loaded.recognition.id_column == ("id" if "id" in entry["columns"] else None)
    table = frame(key)
    for name, data in loaded.models.items():
        assert isinstance(data, calviz.Predictions)
        probs, labels = probabilities(table, name)
        np.testing.assert_array_equal(data.probs, probs)
        np.testing.assert_array_equal(data.labels, labels)
        assert data.splits is not None
        assert data.splits.counts() == entry["splits"]
        assert list(data.groups) == [
            c for c in entry["columns"] if c not in ("id", "split", "label")
        ]


def test_the_first_sample_is_the_default() -> None:
    assert load_sample().digest == load_sample(SAMPLES[0].key).digest


def test_unknown_sample() -> None:
    with pytest.raises(OptionError, match="there is no sample set 'moons'; known: digits, "):
        load_sample("moons")


def test_missing_sample_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samples, "project_root", lambda: tmp_path)
    with pytest.raises(InputError, match=r"digits\.parquet: the sample file is missing; make it"):
        load_sample()


def test_project_root_in_a_wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "calviz"
    (package / "data").mkdir(parents=True)
    monkeypatch.setattr(samples, "__file__", str(package / "data" / "samples.py"))
    assert project_root() == tmp_path
    (package / "_app").mkdir()
    assert project_root() == package / "_app"
