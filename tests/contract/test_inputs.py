"""Inputs of every kind, through every door."""

from __future__ import annotations

import json
import tracemalloc
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from pycalib.metrics import binary_ECE, conf_ECE, conf_MCE
from sklearn.metrics import accuracy_score, brier_score_loss, log_loss

import calviz
from calviz.comparison.compare import Plan
from calviz.comparison.compare_models import compare_methods
from calviz.comparison.fitting import Division
from calviz.core.errors import InputError
from calviz.core.predictions import ConfidencePredictions, Predictions
from calviz.data import ReadingOptions, read
from calviz.figures.bin_sensitivity import BinSensitivity, EceByLibrary
from calviz.figures.calibration_map import CalibrationMap
from calviz.figures.cumulative_plot import Cumulative
from calviz.figures.reliability import Reliability
from calviz.sample.sample import Sample
from tests.inputs import examples
from tests.inputs.command_line import outcome, run_successfully
from tests.inputs.examples import LOADED_AS_BASE, LOADED_OTHERWISE, REFUSED
from tests.inputs.oracle import plain_ece, plain_metrics

# ---- Every example file: read to the same numbers, or refused in one sentence
#
# The files are made by ``tests/inputs/examples.py``, of a table of its own; those of the same names in a folder `shared` beside
# the checkout, where there is one, are held to the same.


SHARED = Path(__file__).resolve().parents[2].parent / "shared"
INPUTS, DATA = SHARED / "inputs", SHARED / "data"


@dataclass(frozen=True)
class Examples:
    """A folder of example files, and the numbers of the tables they were made from."""

    folder: Path
    base: dict[str, float]
    mce10: float
    #: Of the table of two classes: accuracy at 0.5, NLL, Brier score, and ECE of 10 and 15 bins.
    two: tuple[float, float, float, float, float]


def of_shared() -> Examples:
    """As scikit-learn, pycalib and netcal gave them."""
    base = {"accuracy": 0.5416666667, "nll": 0.9054668899, "brier": 0.5261529930}
    base |= {"ece10": 0.2121994583, "ece15": 0.2279787083}
    two = (0.5, 0.8144721561, 0.3024021472, 0.2536911667, 0.3387936667)
    return Examples(INPUTS, base, 0.3463953333, two)


def of_made(folder: Path) -> Examples:
    """As scikit-learn and pycalib give them."""
    y, p = examples.LABELS, examples.PROBS
    one_hot = np.eye(3)[y]
    base = {
        "accuracy": accuracy_score(y, p.argmax(axis=1)),
        "nll": log_loss(y, p),
        "brier": brier_score_loss(y, p, labels=range(3), scale_by_half=False),
        "ece10": conf_ECE(one_hot, p, bins=10),
        "ece15": conf_ECE(one_hot, p, bins=15),
    }
    y, q = examples.HAPPENED, examples.POSITIVE
    two = (
        accuracy_score(y, q >= 0.5),
        log_loss(y, q),
        brier_score_loss(y, q),
        binary_ECE(y, q, bins=10),
        binary_ECE(y, q, bins=15),
    )
    return Examples(folder, base, conf_MCE(one_hot, p, bins=10), two)


@pytest.fixture(scope="module", params=["made", *(["shared"] if INPUTS.is_dir() else [])])
def example(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Examples:
    if request.param == "shared":
        return of_shared()
    folder = tmp_path_factory.mktemp("inputs")
    for name, content in examples.contents().items():
        (folder / name).write_bytes(content)
    return of_made(folder)


@pytest.mark.slow
def test_every_example_file_is_tried(example: Examples) -> None:
    files = {path.name for path in example.folder.iterdir()} - {"EXPECTED.md"}
    assert files == {*LOADED_AS_BASE, *LOADED_OTHERWISE, *REFUSED}


@pytest.mark.parametrize("name", LOADED_AS_BASE)
def test_loads_as_base(example: Examples, name: str) -> None:
    loaded = read(example.folder / name)
    data = loaded.first
    assert isinstance(data, Predictions)
    assert LOADED_AS_BASE[name] in loaded.recognition.sentence()
    metrics = plain_metrics(data.probs.astype(float), data.labels)
    assert metrics == pytest.approx(example.base, abs=tolerance_of(name))
    results = calviz.evaluate(
        data, ["accuracy", "nll", "brier", "ece", "mce"], bins=10, findings=False
    )
    assert {r.key: r.value for r in results} == pytest.approx(
        {key: example.base[key] for key in ("accuracy", "nll", "brier")} | {"ece": example.base["ece10"], "mce": example.mce10},
        abs=tolerance_of(name),
    )  # fmt: skip


def tolerance_of(name: str) -> float:
    return {"12_logits.csv": 2e-6, "35_probs_labels.npz": 1e-6}.get(name, 1e-9)


def audit(example: Examples, name: str, *options: str) -> tuple[int, str, str]:
    code, out, err = outcome("audit", example.folder / name, "--json", "-", *options)
    assert "Traceback" not in err
    return code, out, err


@pytest.mark.parametrize("name", [*LOADED_AS_BASE, *LOADED_OTHERWISE])
def test_loads_on_the_command_line(example: Examples, name: str) -> None:
    code, out, err = audit(example, name)
    assert (code, err) == (0, "")
    record = json.loads(out)
    assert record["rows"] == LOADED_OTHERWISE.get(name, 24)
    if name in LOADED_AS_BASE:
        values = {
            key: record["metrics"][key]["value"] for key in ("accuracy", "nll", "brier", "ece")
        }
        expected = {k: example.base[k] for k in ("accuracy", "nll", "brier")} | {
            "ece": example.base["ece15"]
        }
        assert values == pytest.approx(expected, abs=tolerance_of(name))
    if "confidence" in name or "top1" in name:
        assert record["metrics"]["ece"]["value"] == pytest.approx(example.base["ece15"], abs=1e-9)
        assert record["metrics"]["nll"]["value"] is None
        assert record["metrics"]["nll"]["reason"]


def test_names_are_kept_verbatim(example: Examples) -> None:
    read_names = read(
        example.folder / "90_formula_injection_class_names.csv"
    ).recognition.class_names
    assert read_names == ("=cmd|' /C calc'!A0", "+1+1", "@SUM(1+1)")
    long = read(example.folder / "93_very_long_class_name.csv")
    assert len(long.recognition.class_names[0]) == 5000
    assert len(long.recognition.sentence()) < 400


def test_latin_1_is_said(example: Examples) -> None:
    loaded = read(example.folder / "06_latin1_header.csv")
    assert any("UTF-8" in n.message for n in loaded.notices)
    assert loaded.recognition.label == "étiquette"


def test_val_and_test_have_their_roles(example: Examples) -> None:
    recognised = read(example.folder / "39_val_and_test.npz").recognition
    assert (recognised.fit_split, recognised.eval_split) == ("val", "test")
    recognised = read(example.folder / "11_extra_id_split_group.csv").recognition
    assert (recognised.fit_split, recognised.eval_split) == ("cal", "test")


def test_half_precision_logits(example: Examples) -> None:
    loaded = read(example.folder / "37_logits_targets.npz")
    assert loaded.recognition.kind == "logits"
    assert any("precision" in n.message for n in loaded.notices)
    metrics = plain_metrics(loaded.first.probs.astype(float), loaded.first.labels)
    assert {k: metrics[k] for k in ("accuracy", "nll", "brier")} == pytest.approx(
        {k: example.base[k] for k in ("accuracy", "nll", "brier")}, abs=1e-2
    )


def test_sums_of_0_999_are_said_and_renormalising_is_offered(example: Examples) -> None:
    path = example.folder / "14_rows_sum_0.999.csv"
    loaded = read(path)
    assert [r.key for r in loaded.repairs_offered] == ["renormalise"]
    assert any(
        "24 of 24 rows sum to 0.999 (max deviation 0.001" in n.message for n in loaded.notices
    )
    done = read(path, options=ReadingOptions(repair=("renormalise",)))
    assert "24 of 24 rows" in done.repairs_made[0]
    metrics = plain_metrics(done.first.probs, done.first.labels)
    assert metrics == pytest.approx(example.base, abs=2e-6)
    assert np.allclose(done.first.probs.sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize(
    ("name", "repair", "tolerance"),
    [("15_percent_0_100.csv", "percent", 1e-9), ("52_rows_sum_1.2.csv", "renormalise", 2e-6)],
)
def test_offered_repair_gives_base(
    example: Examples, name: str, repair: str, tolerance: float
) -> None:
    with pytest.raises(InputError) as caught:
        read(example.folder / name)
    assert repair in [r.key for r in caught.value.repairs]
    done = read(example.folder / name, options=ReadingOptions(repair=(repair,)))
    assert done.repairs_made
    assert any(done.repairs_made[0] in n.message for n in done.notices)
    metrics = plain_metrics(done.first.probs, done.first.labels)
    assert metrics == pytest.approx(example.base, abs=tolerance)


@pytest.mark.parametrize("name", ["17_binary_one_column.csv", "18_binary_labels_minus1_plus1.csv"])
def test_binary(example: Examples, name: str) -> None:
    loaded = read(example.folder / name)
    data = loaded.first
    p, y = data.probs[:, 1], data.labels
    result = (
        ((p >= 0.5) == y).mean(),
        -np.log(np.where(y == 1, p, 1 - p)).mean(),
        ((p - y) ** 2).mean(),
        plain_ece(p, y, 10),
        plain_ece(p, y, 15),
    )
    assert result == pytest.approx(example.two, abs=1e-9)
    if "minus1" in name:
        assert any("-1 and +1" in n.message for n in loaded.notices)


@pytest.mark.parametrize("name", ["19_confidence_correct.csv", "20_top1_pred_label.csv"])
def test_confidence_only(example: Examples, name: str) -> None:
    data = read(example.folder / name).first
    assert isinstance(data, ConfidencePredictions)
    assert data.correct.mean() == pytest.approx(example.base["accuracy"], abs=1e-9)
    assert plain_ece(data.confidence, data.correct, 10) == pytest.approx(
        example.base["ece10"], abs=1e-9
    )
    assert plain_ece(data.confidence, data.correct, 15) == pytest.approx(
        example.base["ece15"], abs=1e-9
    )
    if "pred_label" in name:
        assert data.predicted is not None
        assert data.class_names == ("cat", "dog", "fox")


def test_one_row_and_one_class_load(example: Examples) -> None:
    assert read(example.folder / "28_one_row.csv").first.n == 1
    labels = read(example.folder / "29_one_class_only.csv").first.labels
    assert labels is not None
    assert set(labels.tolist()) == {0}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_in_one_sentence(
    example: Examples, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        read(example.folder / name)
    text = str(caught.value)
    assert text.startswith(name)
    assert "\n" not in text
    assert text.endswith(".")
    for part in REFUSED[name]:
        assert part in text
    code, out, err = audit(example, name)
    assert (code, out) == (2, "")
    assert err.startswith(f"calviz: {text.rstrip('.')}")
    assert err.count("\n") == 1 + bool(caught.value.readings)
    # Nothing was executed and nothing was unpacked.
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["68_declared_1e12_rows.npz", "69_zip_bomb_400MB.npz"])
def test_memory_stays_flat(example: Examples, name: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(InputError):
            read(example.folder / name)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5e6


def test_missing_values_can_be_dropped_on_request(example: Examples) -> None:
    options = ReadingOptions(repair=("drop-missing",))
    done = read(example.folder / "53_nan_and_empty_cells.csv", options=options)
    assert done.first.n == 22
    assert "2 of 24 rows" in done.repairs_made[0]


beside = pytest.mark.skipif(not DATA.is_dir(), reason="no data beside the checkout")
REAL = {
    "netcal_cifar/wideresnet-16-4-cifar-10.npz": (10_000, 10, "probabilities"),
    "netcal_cifar/wideresnet-16-4-cifar-100.npz": (10_000, 100, "probabilities"),
    "netcal_cifar/densenet-bc-100-cifar-100.npz": (10_000, 100, "probabilities"),
    "netcal_cifar/lenet-5-cifar-10.npz": (10_000, 10, "probabilities"),
    "netcal_cifar/lenet-5-cifar-100.npz": (10_000, 100, "probabilities"),
    "verified_calibration/cifar10_vgg.npz": (10_000, 10, "probabilities"),
    "fivethirtyeight/nba_games.csv": (8_886, 2, "probabilities"),
    "fivethirtyeight/club_soccer_matches.csv": (32_390, 3, "probabilities"),
    "fivethirtyeight/world_cup_matches_men.csv": (176, 3, "probabilities"),
    "adult/y_and_p.csv": (16_281, 2, "probabilities"),
    "imagenet_top1/resnext101_32x8d.csv": (50_000, 1_000, "confidence"),
}


@beside
@pytest.mark.parametrize("name", REAL)
def test_real_data(name: str) -> None:
    n, k, kind = REAL[name]
    data = read(DATA / name).first
    assert (data.n, data.n_classes, data.kind) == (n, k, kind)


@beside
def test_real_data_against_pandas() -> None:
    pd = pytest.importorskip("pandas")
    games = pd.read_csv(DATA / "fivethirtyeight" / "nba_games.csv")
    data = read(DATA / "fivethirtyeight" / "nba_games.csv").first
    assert isinstance(data, Predictions)
    assert np.array_equal(data.probs[:, 1], games["prob1"].to_numpy())
    assert np.array_equal(data.labels, games["prob1_outcome"].to_numpy())
    assert data.groups["season"].values().tolist() == games["season"].astype(str).tolist()
    soccer = pd.read_csv(DATA / "fivethirtyeight" / "club_soccer_matches.csv")
    data = read(DATA / "fivethirtyeight" / "club_soccer_matches.csv").first
    assert isinstance(data, Predictions)
    outcomes = soccer[["prob1_outcome", "probtie_outcome", "prob2_outcome"]].to_numpy()
    assert np.array_equal(data.labels, outcomes.argmax(axis=1))
    assert np.array_equal(data.probs, soccer[["prob1", "probtie", "prob2"]].to_numpy())
    adult = pd.read_csv(DATA / "adult" / "y_and_p.csv", header=None)
    data = read(DATA / "adult" / "y_and_p.csv").first
    assert isinstance(data, Predictions)
    assert np.array_equal(data.probs[:, 1], adult[1].to_numpy())
    assert np.array_equal(data.labels, (adult[0] > 0).to_numpy())


# ---- Two classes are judged on the positive class, by every function, where nothing else is said


def forecasts(n=400, seed=1):
    """Probabilities that are all too high: the top label hides most of it."""
    rng = np.random.default_rng(seed)
    z = rng.normal(0, 1.5, n)
    return calviz.Predictions(
        probs=1 / (1 + np.exp(-z)),
        labels=rng.random(n) < 1 / (1 + np.exp(-(z - 0.8))),
        groups={"site": np.where(np.arange(n) % 2, "a", "b")},
        name="x",
    )


P = forecasts()
GAP = P.probs[:, 1].mean() - P.labels.mean()
CONFIDENCE = P.probs.max(axis=1)
CORRECT = P.probs.argmax(axis=1) == P.labels


def test_the_two_views_of_these_data_are_apart():
    assert GAP > 0.08
    assert abs(CONFIDENCE.mean() - CORRECT.mean()) < 0.04


def test_measuring():
    e = calviz.evaluate(P, ["mcs"], ci=True, resamples=50)
    assert (e.reduction, e["mcs"].value) == ("positive", pytest.approx(GAP))
    top = calviz.evaluate(P, ["mcs"], reduction="top-label")
    assert top["mcs"].value == pytest.approx(CONFIDENCE.mean() - CORRECT.mean())
    assert Sample(P).reduction.key == "positive"
    assert calviz.conventions(P, noise=False).reduction == "positive"
    assert calviz.slices(P).reduction == "positive"
    assert calviz.slices(P).gap == pytest.approx(GAP)


def test_accuracy_and_selective_prediction_are_of_the_predicted_class_as_ever():
    e = calviz.evaluate(P, ["accuracy", "aurc", "wsece"])
    top = calviz.evaluate(P, ["accuracy", "aurc", "wsece"], reduction="top-label")
    assert e["accuracy"].value == pytest.approx(CORRECT.mean())
    assert [r.value for r in e] == [r.value for r in top]


def test_comparing():
    of = {"metrics": ["ece"], "fit_fraction": 0.5}
    assert calviz.compare(P, ["platt"], resamples=20, **of).reduction == "positive"
    curve = calviz.learning_curve(P, ["platt"], sizes=[50], repeats=1, **of)
    assert curve.reduction == "positive"
    q = forecasts()
    models = {"one": P, "other": q}
    assert calviz.compare_models(models, ["ece"], resamples=20).reduction == "positive"
    plan = Plan(methods=("platt",), division=Division(fit_fraction=0.5), metrics=("ece",))
    table = compare_methods(models, plan)
    assert {c.reduction for c in table.models.values()} == {"positive"}


def test_models_of_which_one_has_confidences_only_share_the_top_label():
    only = calviz.ConfidencePredictions(confidence=CONFIDENCE, correct=CORRECT, labels=P.labels)
    comparison = calviz.compare_models({"full": P, "only": only}, ["ece"], resamples=20)
    assert comparison.reduction == "top-label"
    assert comparison["full"].metrics["ece"].value == comparison["only"].metrics["ece"].value


@pytest.mark.slow
def test_figures():
    for figure in (Reliability, Cumulative, BinSensitivity):
        assert figure.compute(P).reduction.key == "positive"
        assert figure.compute(P, reduction="top-label").reduction.key == "top-label"
    assert CalibrationMap.compute(P, P).reduction.key == "positive"
    assert EceByLibrary.compute(P).conventions.reduction == "positive"


@pytest.fixture
def file(tmp_path):
    """One score column."""
    path = tmp_path / "rain.csv"
    rows = [f"{y},{p!r}" for y, p in zip(P.labels, P.probs[:, 1].tolist(), strict=True)]
    path.write_text("\n".join(["label,p", *rows]) + "\n")
    return path


def test_one_score_column_is_two_classes(file):
    assert calviz.evaluate(calviz.load(file), ["mcs"])["mcs"].value == pytest.approx(GAP)


@pytest.mark.slow
def test_command_line_report_and_json_say_what_the_other_view_shows(file, tmp_path):
    other_view = calviz.verdict(calviz.load(file)).other_view
    assert other_view.startswith("Seen by the top label, ")
    assert other_view in run_successfully(
        "audit", file, "--markdown", tmp_path / "rain.md", "--resamples", 50
    )
    assert other_view in (tmp_path / "rain.md").read_text().replace("\\", "")
    record = json.loads(run_successfully("audit", file, "--json", "-"))
    assert (record["reduction"], record["other_view"]) == ("positive", other_view)
    record = json.loads(run_successfully("audit", file, "--json", "-", "--reduction", "top-label"))
    assert record["reduction"] == "top-label"
    # The verdict then speaks of the positive class by itself, as it is the worse view.
    assert record["verdict"].startswith("Probabilities of '1' too high by ")
    assert record["other_view"] == other_view


@pytest.mark.slow
def test_the_commands_that_compare_judge_the_positive_class_too(file):
    for command in (
        ("compare", file, "--methods", "platt", "--fit-fraction", 0.5, "--json", "-"),
        ("compare-models", file, file, "--resamples", 20, "--json", "-"),
    ):
        assert json.loads(run_successfully(*command))["reduction"] == "positive"
        chosen = json.loads(run_successfully(*command, "--reduction", "top-label"))
        assert chosen["reduction"] == "top-label"
