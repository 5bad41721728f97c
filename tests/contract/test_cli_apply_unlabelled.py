"""`calviz apply` on rows without labels, or with labels or classes that the map does not know."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import calviz
from calviz.recalibrators.base import load_map
from tests.inputs.command_line import outcome as run
from tests.inputs.maps_and_files import N, map_file, probabilities, write
from tests.inputs.table_files import write_table

pytestmark = pytest.mark.usefixtures("small_blocks")


def unlabelled(folder: Path, suffix: str) -> tuple[Path, dict[str, list[object]]]:
    """Write rows without labels; also return their other columns."""
    p = probabilities()
    others: dict[str, list[object]] = {
        "customer": [f"c{i}" for i in range(N)],
        "region": ["EU"] * N,
        "amount": (np.arange(N) / 8).tolist(),
        "n_children": (np.arange(N) % 3).tolist(),
    }
    path = folder / f"new{suffix}"
    frame = pl.DataFrame({**others, **{f"p_{k}": p[:, k] for k in range(3)}})
    if suffix == ".npz":
        np.savez(path, probs=p, **{name: np.array(column) for name, column in others.items()})
    else:
        write_table(frame, path)
    return path, others


@pytest.mark.parametrize(
    ("suffix", "out"),
    [
        (suffix, out)
        for suffix in (".csv", ".parquet", ".arrow", ".jsonl", ".npz")
        for out in ("out.csv", "out.parquet", "out.npz", "out")
        if (suffix, out) != (".npz", "out")
    ],
)
def test_rows_without_labels_are_calibrated_with_all_their_columns(
    tmp_path: Path, suffix: str, out: str
):
    path, others = unlabelled(tmp_path, suffix)
    fitted, target = map_file(tmp_path), tmp_path / out
    code, _, stderr = run("apply", path, "--map", fitted, "--out", target)
    assert (code, stderr) == (0, "")
    if out == "out.npz":
        arrays = dict(np.load(target))
        scores = arrays.pop("probs")
        assert arrays.pop("class_names").tolist() == ["0", "1", "2"]
        written = {k.removeprefix("group_"): v.astype(str).tolist() for k, v in arrays.items()}
    else:
        at = target / "new.parquet" if out == "out" else target
        frame = pl.read_csv(at) if out == "out.csv" else pl.read_parquet(at)
        scores = frame.select("p_0", "p_1", "p_2").to_numpy()
        written = {
            name: frame[name].cast(pl.String).to_list()
            for name in frame.columns
            if not name.startswith("p_")
        }
    if out != "out":  # files of a folder keep the columns that they have
        before = np.array(written.pop("uncalibrated"), dtype=float)
        assert before == pytest.approx(probabilities().max(axis=1), abs=1e-12)
    assert written == {k: [str(v) for v in column] for k, column in others.items()}
    assert load_map(json.loads(fitted.read_text())).transform(probabilities()) == pytest.approx(
        scores, abs=1e-12
    )


@pytest.mark.parametrize("out", ["out.parquet", "out"])
def test_labels_that_are_missing_or_of_no_class_stay_as_they_are(tmp_path: Path, out: str):
    path, fitted = write(tmp_path, ".parquet", probabilities()), map_file(tmp_path)
    frame = pl.read_parquet(path)
    for labels in (
        pl.Series("label", [None, *(np.arange(1, N) % 3)]),
        pl.Series("label", np.arange(N) % 9),
        pl.Series("label", [""] * N),
    ):
        frame.with_columns(labels).write_parquet(path)
        code, _, stderr = run("apply", path, "--map", fitted, "--out", tmp_path / out)
        assert (code, stderr) == (0, "")
        at = tmp_path / out / "rows.parquet" if out == "out" else tmp_path / out
        written = pl.read_parquet(at)["label"]
        numeric = labels.dtype.is_numeric()
        expected = labels.cast(pl.Float64) if numeric else labels
        assert (written.cast(expected.dtype, strict=False) if numeric else written).equals(expected)


@pytest.mark.parametrize("out", ["out.npz", "out.parquet"])
def test_one_hot_labels_of_some_parts_are_written_as_the_names_of_the_classes(
    tmp_path: Path, out: str
):
    p, path, target = probabilities(), tmp_path / "parts.npz", tmp_path / out
    parts = {"val_probs": p[:900], "test_probs": p[900:], "class_names": np.array(["2", "0", "1"])}
    truth = np.arange(900) % 3
    record = json.loads(map_file(tmp_path).read_text()) | {"class_names": ["2", "0", "1"]}
    (tmp_path / "named.json").write_text(json.dumps(record))
    for block in (np.eye(3, dtype=np.uint8)[truth], np.eye(3)[truth].astype(bool)):
        np.savez(path, **parts, val_labels=block)
        code, _, wrong = run("apply", path, "--map", tmp_path / "named.json", "--out", target)
        assert (code, wrong) == (0, "")
        if out == "out.npz":
            with np.load(target) as arrays:
                written = arrays["group_labels"].tolist()
        else:
            written = pl.read_parquet(target)["labels"].to_list()
        assert written[:900] == [("2", "0", "1")[k] for k in truth]
        assert set(written[900:]) == {""}
    np.savez(path, **parts, val_labels=np.full((900, 3), 1 / 3))
    code, said, wrong = run("apply", path, "--map", tmp_path / "named.json", "--out", target)
    assert (code, wrong) == (0, "")
    assert "'labels' is left out: it is not one label per row" in said


@pytest.mark.parametrize("out", ["out.csv", "out"])
def test_classes_that_a_file_without_labels_does_not_name_are_those_of_the_map(
    tmp_path: Path, out: str
):
    p = (np.arange(200) + 0.5) / 200
    pairs = np.column_stack([1 - p, p])
    fitted = tmp_path / "map.json"
    record = (
        calviz.recalibrators.IsotonicRecalibrator()
        .fit(pairs, (np.arange(200) % 3 == 2).astype(int))
        .to_dict()
    )
    fitted.write_text(json.dumps(record | {"class_names": ["benign", "malignant"]}))
    for column in ("p", "p_malignant", "p_benign"):
        path = tmp_path / "new.csv"
        pl.DataFrame({"case": np.arange(200), column: p}).write_csv(path)
        code, _, stderr = run("apply", path, "--map", fitted, "--out", tmp_path / out)
        refused = column == "p_benign"
        assert (code, "another order of them" in stderr) == ((2, True) if refused else (0, False))


@pytest.mark.parametrize("out", ["out.csv", "out"])
@pytest.mark.parametrize(
    ("map_classes", "columns", "labels", "applies"),
    [
        (["cat", "dog"], ["p"], [0, 1], True),
        (["cat", "dog"], ["p_0", "p_1"], [0, 1], True),
        (["cat", "dog"], ["p_1", "p_2"], [1, 2], True),
        (["cat", "dog"], ["p_cat", "p_dog"], [0, 1], True),
        (["cat", "dog"], ["p_cat", "p_dog"], ["no", "yes"], True),
        (["cat", "dog"], ["p"], ["no", "yes"], True),
        (["cat", "dog"], ["p"], ["cat", "dog"], True),
        (["0", "1"], ["p_1", "p_2"], [1, 2], True),
        (["0", "1"], ["p"], ["no", "yes"], True),
        (["0", "1"], ["p_cat", "p_dog"], ["cat", "dog"], False),
        (["0", "1"], ["p_1", "p_0"], [0, 1], True),
        (["1", "0"], ["p_1", "p_0"], [0, 1], True),
        (["1", "0"], ["p_0", "p_1"], [0, 1], False),
        (["0", "1"], ["p_0"], [0, 1], False),
        (["0", "1", "2"], ["p_2", "p_1", "p_0"], [0, 1, 2], False),
        (["1", "2", "3"], ["p_3", "p_2", "p_1"], [1, 2, 3], False),
        (["cat", "dog"], ["p_dog", "p_cat"], ["cat", "dog"], False),
        (["cat", "dog"], ["p_no", "p_yes"], ["no", "yes"], False),
        (["cat", "dog"], ["p_cat"], ["cat", "dog"], False),
    ],
)
def test_the_order_of_the_classes_counts_and_labels_do_not(
    tmp_path: Path, map_classes, columns, labels, applies: bool, out: str
):
    p = (np.arange(200) + 0.5) / 200
    k = len(map_classes)
    pairs = np.column_stack([*[(1 - p) / (k - 1)] * (k - 1), p])
    scaling = calviz.recalibrators.IsotonicRecalibrator()
    scaling.fit(pairs, np.where(np.arange(200) % 3 == 2, k - 1, np.arange(200) % (k - 1)))
    (tmp_path / "map.json").write_text(json.dumps(scaling.to_dict() | {"class_names": map_classes}))
    scores = dict(zip(columns, pairs.T[-len(columns) :], strict=True))
    frame = pl.DataFrame({"label": (labels * 100)[:200], **scores})
    frame.write_csv(tmp_path / "new.csv")
    target = tmp_path / out
    code, _, stderr = run(
        "apply", tmp_path / "new.csv", "--map", tmp_path / "map.json", "--out", target
    )
    if not applies:
        assert (code, stderr.count("\n"), "(--scores" in stderr) == (2, 1, True)
        return
    assert code == 0, stderr
    written = pl.read_csv(target) if target.suffix else pl.read_parquet(target / "new.parquet")
    if target.suffix or columns != ["p_cat", "p_dog"]:
        assert written["label"].cast(pl.String).to_list()[:2] in (
            [str(label) for label in labels],
            ["cat", "dog"],  # labels that are numbers of classes are written by name
        )
    last = [name for name in written.columns if name.startswith("p")][-1]
    by_name = map_classes == ["0", "1"] and columns == ["p_1", "p_0"]
    expected = (
        scaling.transform(pairs[:, ::-1])[:, 0 if last == "p_0" else 1]
        if by_name
        else scaling.transform(pairs)[:, 1]
    )
    assert written[last].to_numpy() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("out", ["out.csv", "out"])
def test_confidences_of_unknown_outcome_are_calibrated(tmp_path: Path, out: str):
    p = (np.arange(200) + 0.5) / 200
    pairs = np.column_stack([1 - p, p])
    fitted, path = tmp_path / "map.json", tmp_path / "new.csv"
    scaling = calviz.recalibrators.IsotonicRecalibrator().fit(
        pairs, (np.arange(200) % 3 == 2).astype(int)
    )
    fitted.write_text(json.dumps(scaling.to_dict()))
    pl.DataFrame({"prediction": ["cat", "dog"] * 100, "confidence": p}).write_csv(path)
    assert run("apply", path, "--map", fitted, "--out", tmp_path / out)[0] == 0
    at = tmp_path / out
    written = pl.read_csv(at) if at.suffix else pl.read_parquet(at / "new.parquet")
    before = {"uncalibrated"} if at.suffix else set()
    assert set(written.columns) == {"prediction", "confidence", *before}
    assert written["prediction"].to_list() == ["cat", "dog"] * 100
    expected = scaling.transform(pairs)[:, 1]
    assert written["confidence"].to_numpy() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("out", ["out.csv", "out.npz"])
def test_all_parts_of_an_array_file_without_labels_are_calibrated(tmp_path: Path, out: str):
    p, path, target = probabilities(), tmp_path / "parts.npz", tmp_path / out
    ids = np.arange(N)
    np.savez(path, val_probs=p[:900], test_probs=p[900:], val_ids=ids[:900], test_ids=ids[900:])
    fitted = map_file(tmp_path)
    code, stdout, stderr = run("apply", path, "--map", fitted, "--out", target)
    assert (code, stderr) == (0, "")
    assert "val 900, test 1,600" in stdout
    if out == "out.npz":
        with np.load(target) as arrays:
            scores, splits, written = arrays["probs"], arrays["split"].tolist(), arrays["ids"]
    else:
        frame = pl.read_csv(target)
        scores, splits = frame.select("p_0", "p_1", "p_2").to_numpy(), frame["split"].to_list()
        written = frame["id"].to_numpy()
    assert splits == ["val"] * 900 + ["test"] * 1_600
    np.testing.assert_array_equal(written, ids)
    np.testing.assert_allclose(scores, calviz.load_map(fitted).transform(p), atol=1e-12)
    code, _, stderr = run("audit", path)
    assert (code, "label" in stderr, "one-hot" in stderr) == (2, True, False)


@pytest.mark.parametrize("labels", ["index", "name", "one-hot"])
@pytest.mark.parametrize("labelled", ["val", "test"])
def test_parts_of_an_array_file_without_labels_are_calibrated_beside_those_with(
    tmp_path: Path, labels: str, labelled: str
):
    p, path, target = probabilities(), tmp_path / "parts.npz", tmp_path / "out.csv"
    rows = {"val": slice(0, 900), "test": slice(900, N)}
    index = (np.arange(N) % 3)[rows[labelled]]
    values = {"index": index, "name": np.array(["0", "1", "2"])[index], "one-hot": np.eye(3)[index]}
    np.savez(
        path,
        val_probs=p[rows["val"]],
        test_probs=p[rows["test"]],
        **{f"{labelled}_labels": values[labels]},
    )
    fitted = map_file(tmp_path)
    code, stdout, stderr = run("apply", path, "--map", fitted, "--out", target)
    assert (code, stderr) == (0, "")
    assert "val 900, test 1,600" in stdout
    assert "left out" not in stdout
    frame = pl.read_csv(target)
    assert frame["split"].to_list() == ["val"] * 900 + ["test"] * 1_600
    scores = frame.select("p_0", "p_1", "p_2").to_numpy()
    np.testing.assert_allclose(scores, calviz.load_map(fitted).transform(p), atol=1e-12)
    written = np.array(frame["labels"].cast(pl.String).fill_null(""))
    assert written[rows[labelled]].tolist() == [str(v) for v in index]
    assert set(np.delete(written, np.arange(N)[rows[labelled]])) == {""}
    # Whoever needs labels gets the rows that have some.
    code, stdout, _ = run("audit", path)
    assert (code, f"'{'test' if labelled == 'val' else 'val'}_probs' is left out" in stdout) == (
        0,
        True,
    )


#: Score columns, labels of their classes, and further columns that may be taken for scores or for what was right.
STYLES: dict[str, tuple[list[str], list[str], dict[str, float]]] = {
    "spaces": (["p_old_cat", "p_dog", "p_red_fox"], ["old cat", "dog", "red fox"], {}),
    "hyphens and case": (["p_old_cat", "p_dog", "p_fox"], ["Old-Cat", "Dog", "Fox"], {}),
    "prefix": (["confidence.a", "confidence.b", "confidence.c"], ["a", "b", "c"], {"size": 0.4}),
    "numbers before": (["0: cat", "1: dog", "2: fox"], ["cat", "dog", "fox"], {}),
    "counted from 1": (["p_1", "p_2", "p_3"], ["1", "2", "3"], {}),
    "-1 and 1": (["score"], ["-1", "1"], {}),
    "0 and 1": (["probability"], ["0", "1"], {}),
    "right or not": (["prob"], ["0", "1"], {"correct": 1}),
    "first is the event": (["probability_class_1", "probability_class_0"], ["1", "0"], {}),
}


@pytest.mark.parametrize("style", STYLES)
def test_a_map_is_applied_to_the_columns_that_it_was_fitted_on_whatever_the_labels_are(
    tmp_path: Path, style: str
):
    columns, labels, others = STYLES[style]
    rng, k = np.random.default_rng(0), len(labels)
    p = rng.dirichlet([1] * k, 400).round(4)
    p[:, -1] = 1 - p[:, :-1].sum(axis=1)
    # The classes do not follow their probabilities alike, so that a map for each of them differs.
    true = np.array([rng.choice(k, p=q) for q in p**2 / (p**2).sum(axis=1, keepdims=True)])
    shown = p[:, -len(columns) :]
    new = pl.DataFrame(
        {"id": [f"r{i}" for i in range(400)]}
        | {name: shown[:, j] for j, name in enumerate(columns)}
        | {name: np.where(rng.random(400) < 0.8, value, 0) for name, value in others.items()}
    )
    whole, path, fitted = tmp_path / "whole.csv", tmp_path / "new.csv", tmp_path / "map.json"
    new.with_columns(truth=np.array(labels)[true]).write_csv(whole)
    how = ("--method", "isotonic", "--label", "truth", "--out", tmp_path / "fit.csv")
    code, _, wrong = run("recalibrate", whole, *how, "--save-map", fitted)
    assert code == 0, wrong
    expected = pl.read_csv(tmp_path / "fit.csv").select(columns).to_numpy()
    shuffled = new.select("id", *others, *columns[::-1])
    few = np.where(np.arange(400) < 300, np.array(labels)[true], "")
    for frame in (
        new,
        shuffled,
        new.with_columns(truth=np.array(labels)[true]),
        new.with_columns(truth=few),
        new.with_columns(truth=pl.lit(labels[0])),
    ):
        frame.write_csv(path)
        for out in (tmp_path / "out.csv", tmp_path / "out"):
            code, _, wrong = run("apply", path, "--map", fitted, "--out", out)
            assert (code, wrong) == (0, "")
            table = pl.read_csv(out) if out.suffix else pl.read_parquet(out / "new.parquet")
            assert {*table.columns} - {*frame.columns} == (
                {"uncalibrated"} if out.suffix else set()
            )
            np.testing.assert_allclose(table.select(columns), expected, atol=1e-9)


@pytest.mark.parametrize("column", ["confidence", "logprob", "how_sure"])
def test_confidences_are_taken_from_the_column_of_the_map(tmp_path: Path, column: str):
    rng = np.random.default_rng(0)
    p = rng.uniform(0.3, 0.99, 300)
    shown = np.log(p) if column == "logprob" else p
    whole = pl.DataFrame({column: shown, "answer": ["cat", "dog", "fox"] * 100})
    kind = ("--kind", "confidence", "--scores", column) if column == "how_sure" else ()
    fitted, path = tmp_path / "map.json", tmp_path / "new.csv"
    whole.with_columns(correct=(rng.random(300) < p**2).astype(int)).write_csv(path)
    how = ("--method", "isotonic", "--out", tmp_path / "fit.csv", "--save-map", fitted)
    code, _, wrong = run("recalibrate", path, *how, *kind)
    assert code == 0, wrong
    whole.with_columns(size=pl.lit(0.5)).write_csv(path)
    code, _, wrong = run("apply", path, "--map", fitted, "--out", tmp_path / "out.csv")
    assert (code, wrong) == (0, "")
    before, after = (pl.read_csv(tmp_path / name) for name in ("fit.csv", "out.csv"))
    name = column if column == "how_sure" else "confidence"
    assert after[name].to_numpy() == pytest.approx(before[name].to_numpy())


def test_classes_of_a_map_without_its_columns_may_differ_in_case_and_between_words(tmp_path: Path):
    p = probabilities()
    names = ["p_old_cat", "p_dog", "p_red_fox"]
    record = json.loads(map_file(tmp_path).read_text())
    path, fitted = tmp_path / "new.csv", tmp_path / "named.json"
    pl.DataFrame({name: p[:, j] for j, name in enumerate(names)}).write_csv(path)
    for classes, applies in (
        (["old cat", "Dog", "red-fox"], True),
        (["dog", "old cat", "red fox"], False),  # another order
        (["old cat", "dog", "redfox"], False),
        (["old cat", "dog", "red wolf"], False),
    ):
        fitted.write_text(json.dumps(record | {"class_names": classes}))
        for out in (tmp_path / "out.csv", tmp_path / "out"):
            code, _, wrong = run("apply", path, "--map", fitted, "--out", out)
            assert (code, "other classes" in wrong) == ((0, False) if applies else (2, True))
    # Names that differ by nothing else are not guessed.
    twice = ["p_a_b", "p_a b", "p_c"]
    pl.DataFrame({name: p[:, j] for j, name in enumerate(twice)}).write_csv(path)
    fitted.write_text(json.dumps(record | {"class_names": ["a b", "a_b", "c"]}))
    code, _, wrong = run("apply", path, "--map", fitted, "--out", tmp_path / "out.csv")
    assert (code, "other classes" in wrong) == (2, True)


def test_only_a_map_does_without_labels(tmp_path: Path):
    path, _ = unlabelled(tmp_path, ".npz")
    for command in (
        ["audit"],
        ["recalibrate", "--method", "temperature", "--out", tmp_path / "o.csv"],
    ):
        code, _, stderr = run(command[0], path, *command[1:])
        assert code == 2, stderr


def test_a_map_of_one_of_two_models_says_which_column_it_takes(tmp_path: Path):
    p = np.linspace(0.05, 0.95, 60)
    labels = (np.arange(60) % 3 == 0).astype(int)
    known, new, out = (tmp_path / name for name in ("known.csv", "new.csv", "out.csv"))
    pl.DataFrame({"old": p, "new": p**2, "label": labels}).write_csv(known)
    pl.DataFrame({"new": p**2, "amount": 9 * p, "old": p}).write_csv(new)
    fitted, models = tmp_path / "map.json", ("--models", "old,new", "--model", "old")
    options = (*models, "--method", "platt", "--out", out, "--save-map", fitted)
    assert run("recalibrate", known, *options)[0] == 0
    record = json.loads(fitted.read_text())
    assert record["scores"] == {"kind": "probabilities", "columns": ["old"]}
    code, _, stderr = run("apply", new, "--map", fitted, "--out", out)
    assert (code, stderr) == (0, "")
    mapped = load_map(record).transform(np.stack([1 - p, p], axis=1))[:, 1]
    written = pl.read_csv(out)
    np.testing.assert_allclose(written["old"], mapped, atol=1e-12)
    # A file whose only scores have another name is calibrated as before, and it is said.
    pl.DataFrame({"p_new": p**2}).write_csv(new)
    code, stdout, stderr = run("apply", new, "--map", fitted, "--out", out, "--json", "-")
    said = "the map was fitted on 'old', and is applied to 'p_new'."
    assert code == 0
    assert said in stderr
    assert json.loads(stdout)["warnings"] == [said]


@pytest.mark.parametrize("header", ["prob.{} (%)", "p_{} [%]", "p_{}_pct", "prob {} %"])
def test_a_unit_in_the_headers_is_no_part_of_the_classes_with_and_without_labels(
    tmp_path: Path, header: str
):
    names, p = ["Water", "Dry land", "Ice"], (100 * probabilities()).round(1)
    labels = [names[k] for k in np.arange(N) % 3]
    scores = {header.format(name): p[:, k] for k, name in enumerate(names)}
    for name, extra in (("old", {"label": labels}), ("new", {})):
        pl.DataFrame({**extra, **scores}).write_csv(tmp_path / f"{name}.csv")
    percent = ("--repair", "percent")
    fit = ("--method", "temperature", "--fit-fraction", 0.5, "--save-map", tmp_path / "map.json")
    code, _, stderr = run(
        "recalibrate", tmp_path / "old.csv", *fit, "--out", tmp_path / "cal.csv", *percent
    )
    assert code == 0, stderr
    assert json.loads((tmp_path / "map.json").read_text())["class_names"] == names
    out = {}
    for name in ("old", "new"):
        to = ("--map", tmp_path / "map.json", "--out", tmp_path / f"{name}_out.csv")
        code, _, stderr = run("apply", tmp_path / f"{name}.csv", *to, *percent)
        assert code == 0, stderr
        out[name] = pl.read_csv(tmp_path / f"{name}_out.csv").drop("label", strict=False)
    assert out["old"].equals(out["new"])


def test_a_map_whose_classes_still_hold_the_unit_is_for_the_same_classes(tmp_path: Path):
    p, fitted = probabilities(), json.loads(map_file(tmp_path).read_text())
    fitted["class_names"] = ["Water (%)", "Dry land (%)", "Ice (%)"]
    (tmp_path / "map.json").write_text(json.dumps(fitted))
    names = ("p_Water (%)", "p_Dry land (%)", "p_Ice (%)")
    pl.DataFrame({n: 100 * p[:, k] for k, n in enumerate(names)}).write_csv(tmp_path / "new.csv")
    to = ("--map", tmp_path / "map.json", "--out", tmp_path / "out.csv", "--repair", "percent")
    code, _, stderr = run("apply", tmp_path / "new.csv", *to)
    assert code == 0, stderr


def test_the_columns_in_percent_that_a_map_was_fitted_on_are_taken_beside_those_of_another_model(
    tmp_path: Path,
):
    rng = np.random.default_rng(0)
    names = ("ok", "gearbox", "generator")
    one, other = (np.round(100 * rng.dirichlet([1, 1, 1], 600), 3) for _ in range(2))
    columns = {f"P[{name}] %": one[:, k] for k, name in enumerate(names)}
    columns |= {f"New model: P[{name}] %": other[:, k] for k, name in enumerate(names)}
    labels = np.array(names)[[rng.choice(3, p=row / row.sum()) for row in one]]
    whole, new = tmp_path / "whole.csv", tmp_path / "new.csv"
    pl.DataFrame({"label": labels, **columns}).write_csv(whole)
    pl.DataFrame(columns).write_csv(new)
    of = [f"--scores={','.join([*columns][:3])}", "--repair", "percent"]
    fitted, target = tmp_path / "map.json", tmp_path / "out.csv"
    how = ("--method", "temperature", "--save-map", fitted, "--out", target)
    made = run("recalibrate", whole, *of, *how)
    assert made[0] == 0, made
    for path in (new, whole):
        how = ("--map", fitted, "--out", target, "--repair", "percent")
        code, _, stderr = run("apply", path, *how)
        assert code == 0, stderr
        made = pl.read_csv(target)
        p = made.select([f"p_{name}" for name in names]).to_numpy()
        np.testing.assert_array_equal(p.argmax(axis=1), one.argmax(axis=1))


@pytest.mark.slow
def test_models_in_percent_have_the_same_names_with_and_without_labels(tmp_path: Path):
    rng = np.random.default_rng(0)
    names = ("ok", "gearbox", "generator")
    p = {m: np.round(100 * rng.dirichlet([1, 1, 1], 600), 3) for m in ("model", "New model")}
    heads = {m: [f"{'New model: ' * (m != 'model')}P[{name}] %" for name in names] for m in p}
    columns = {heads[m][k]: p[m][:, k] for m in p for k in range(3)}
    labels = [names[rng.choice(3, p=row / row.sum())] for row in p["model"] + p["New model"]]
    whole, new, target = (tmp_path / name for name in ("whole.csv", "new.csv", "out.csv"))
    pl.DataFrame(columns | {"outcome": labels}).write_csv(whole)
    pl.DataFrame(columns).write_csv(new)
    percent = ("--repair", "percent")
    code, out, stderr = run("audit", whole, *percent, "--json", "-")
    assert code == 0, stderr
    for model, scores in p.items():
        assert f'"{model}"' in out
        how = ("--model", model, *percent, "--out", target)
        made = run(
            "recalibrate", whole, "--method", "temperature", "--save-map", tmp_path / "m.json", *how
        )
        assert made[0] == 0, made
        for path in (whole, new):
            code, _, stderr = run("apply", path, "--map", tmp_path / "m.json", *how)
            assert code == 0, stderr
            calibrated = pl.read_csv(target).select([f"p_{name}" for name in names]).to_numpy()
            np.testing.assert_array_equal(calibrated.argmax(axis=1), scores.argmax(axis=1))
