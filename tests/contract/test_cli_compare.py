"""`calviz compare` and `compare-models`."""

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import calviz
from benchmarks.claims.slices import of_wards
from calviz.comparison.advice import advise, suggest
from calviz.comparison.comparison_results import AGAINST_WORDS, NOISELESS_WORDS
from calviz.core.entry_specs import METRICS, RECALIBRATORS
from calviz.core.errors import InputError
from tests.inputs.command_line import outcome, run
from tests.inputs.maps_and_files import map_file, probabilities, write
from tests.inputs.simulated import simulate, softmax

# ---- ``calviz compare | recalibrate | apply | methods``: output, exit codes, JSON


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    z, y = simulate(400, 3, 2)
    p = softmax(z)
    path = tmp_path_factory.mktemp("cli") / "predictions.npz"
    split = np.repeat(["calibration", "test"], 200)
    np.savez(path, probs=p, labels=y, split=split, class_names=["cat", "dog", "fox"])
    return path


def test_methods_lists_them_all():
    out = run("methods")
    assert not any(line.endswith(" ") for line in out.stdout.splitlines())
    assert out.exit_code == 0
    for spec in RECALIBRATORS:
        assert spec.key in out.stdout


@pytest.mark.slow
def test_compare_writes_the_documented_json(file, tmp_path):
    target = tmp_path / "out.json"
    out = run("compare", file, "--methods", "ets,isotonic,temperature+irm", "--json", target)
    assert out.exit_code == 0, out.output
    assert "fitted on 200 rows (split 'calibration'), judged on 200 (split 'test')" in out.stdout
    record = json.loads(target.read_text())
    assert record["fit"]["split"] == "calibration"
    assert record["fit"]["rows"] == 200
    assert record["eval"]["split"] == "test"
    assert record["seed"] == 0
    assert list(record["methods"]) == ["identity", "ets", "isotonic", "temperature+irm"]
    method = record["methods"]["ets"]
    assert {
        "ok", "reason", "fit_seconds", "apply_seconds", "params", "accuracy_preserving",
        "predictions_changed", "metrics", "calibration_gain", "best_share",
    } <= set(method)  # fmt: skip
    assert method["ok"] is True
    assert method["accuracy_preserving"] is True
    assert method["predictions_changed"] == 0
    assert method["params"]["temperature"] > 1
    assert set(method["metrics"]["nll"]) == {"value", "interval"}
    assert 0 <= method["best_share"]["nll"] <= 1
    assert record["advice"]["method"] in record["methods"]
    assert record["advice"]["reasons"][0].startswith("The verdict finds")


@pytest.mark.slow
def test_compare_prints_the_advice_of_the_app_and_explains_its_columns(file, tmp_path):
    target = tmp_path / "out.json"
    out = run("compare", file, "--methods", "temperature,isotonic", "--json", target)
    text = " ".join(out.stdout.split())
    comparison = calviz.compare(calviz.load(file), ["temperature", "isotonic"])
    advice = advise(comparison, calviz.load(file))
    assert advice.method != "identity"
    for sentence in (advice.headline, *advice.reasons):
        assert sentence in text
    table = [line for line in out.stdout.splitlines() if line.startswith(("method", "iso", "temp"))]
    assert "against uncalibrated" in table[0]
    for line in table[1:]:
        key = line.split()[0]
        assert comparison[key].differences["nll"].verdict in line.split()
        assert (">=" in line.split()) == comparison[key].gain_is_lower_bound
    assert f"Against uncalibrated: by NLL; {AGAINST_WORDS}." in text
    assert ">= where the method may change predictions" in text


@pytest.mark.slow
def test_compare_takes_the_methods_that_the_app_suggests(file, tmp_path):
    out = run("compare", file, "--methods", "suggested", "--json", tmp_path / "out.json")
    record = json.loads((tmp_path / "out.json").read_text())
    usual = suggest(calviz.load(file), 200).methods
    assert set(record["methods"]) - {"identity"} == {*usual}
    assert f"Compared: the {len(usual)} suggested of " in " ".join(out.stdout.split())


@pytest.mark.slow
def test_compare_json_says_what_the_verdicts_go_by(file):
    every = ["--methods", "temperature,ets,irm,isotonic,histogram,vector", "--fit-fraction", "0.5"]
    record = json.loads(run("compare", file, *every, "--json", "-").stdout)
    assert "for all comparisons" in record["verdict_basis"]
    wider = 0
    for key, m in record["methods"].items():
        assert set(m["differences_adjusted"]) == set(m["differences"]) == set(m["verdicts"])
        for metric, (low, high) in m["differences_adjusted"].items():
            direction = METRICS[metric].direction
            if direction in ("zero", "one"):  # their size is what is judged
                continue
            alone = m["differences"][metric]
            assert low <= alone[0] <= alone[1] <= high, (key, metric)
            wider += high - low > 1.05 * (alone[1] - alone[0])
            # The verdict is what the adjusted interval says.
            better, worse = (low > 0, high < 0) if direction == "higher" else (high < 0, low > 0)
            assert m["verdicts"][metric] == ("better" if better else "worse" if worse else "tied")
    assert wider > 10


@pytest.mark.slow
def test_compare_says_what_zeros_cost_and_are_read_as(tmp_path):
    rng = np.random.default_rng(0)
    p = rng.integers(0, 11, 600) / 10
    y = rng.random(600) < 0.1 + 0.8 * p
    path = tmp_path / "forest.npz"
    np.savez(path, probs=p, labels=y.astype(int))
    rows = int(((p == 0) & y).sum() + ((p == 1) & ~y).sum())
    out, page = tmp_path / "out.json", tmp_path / "out.md"
    options = ["--methods", "temperature", "--fit-fraction", "0.5", "--refits", "3"]
    result = run("compare", path, *options, "--json", out, "--markdown", page)
    assert result.exit_code == 0, result.output
    words = " ".join(result.stdout.split())
    note = json.loads(out.read_text())["methods"]["identity"]["metrics"]["nll"]["note"]
    assert 0 < int(note.split()[0]) < rows
    assert "the NLL counts each as a loss of 36" in words
    assert note not in words  # it is told once
    assert "an exact probability of 0 counts as 0.01: temperature" in words
    assert "they include the variation of the fit, from 3 refits" in words
    text = page.read_text()
    assert "counts each as a loss of 36" in text
    assert "an exact probability of 0 counts as 0.01" in text
    assert "from 3 refits" in text


@pytest.mark.slow
def test_compare_gives_nothing_but_json_on_standard_output(file):
    out = run("compare", file, "--methods", "platt", "--fit-fraction", "0.5", "--json", "-")
    assert json.loads(out.stdout)["fit"]["split"] is None
    # They are fitted at the same time: any may be the first to finish.
    assert "/2] platt" in out.stderr
    assert "[2/2] " in out.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--methods", "magic"], "there is no recalibrator 'magic'"),
        (["--methods", "isotonic+ets"], "is not a composition of a parametric"),
        (["--fit-split", "spring"], "there is no split 'spring'"),
        (["--fit-split", "test", "--eval-split", "test"], "cannot both fit and judge"),
        (["--fit-fraction", "0.5", "--cross-fit", "3"], "one of the three"),
        (["--model", "other"], "there is no model 'other'"),
        (["--reduction", "class:wolf"], "predictions.npz: there is no class 'wolf'"),
        (["--reduction", "positive"], "the positive-class reduction needs two classes"),
        (["--json", "no/such/place.json"], "no such directory"),
    ],
)
def test_wrong_arguments_are_one_sentence_and_code_2(file, arguments, message):
    out = run("compare", file, *arguments)
    assert out.exit_code == 2
    assert message in out.stderr
    assert "Traceback" not in out.output


@pytest.mark.slow
def test_recalibrate_says_which_class_the_map_leaves_off(tmp_path):
    data = of_wards(np.random.default_rng(3), region=1.0, sure=0.5)[0].data
    columns = {f"p_{k}": data.probs[:, k] for k in range(4)} | {"label": data.labels}
    columns |= {
        name: np.array(data.groups[name].levels)[data.groups[name].codes]
        for name in ("region", "ward")
    }
    file, target = tmp_path / "wards.csv", tmp_path / "out.csv"
    pl.DataFrame(columns).write_csv(file)
    how = ("--group", "region", "--group", "ward", "--fit-fraction", 0.5, "--out", target)
    done = run("recalibrate", file, "--method", "segments", *how)
    assert done.exit_code == 0, done.output
    assert "segments: Where region = 0, scores of '1' stay off: about " in done.stderr


@pytest.mark.parametrize("suffix", ["csv", "parquet", "npz"])
def test_recalibrate_then_apply(file, tmp_path, suffix):
    target, saved, again = (tmp_path / n for n in (f"out.{suffix}", "map.json", f"again.{suffix}"))
    done = run(
        "recalibrate", file, "--method", "temperature+isotonic", "--fit-split", "calibration",
        "--out", target, "--save-map", saved, "--save-snippet", tmp_path / "map.py",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    q = calviz.load(target)
    assert q.class_names == ("cat", "dog", "fox")
    assert q.split_names == ("calibration", "test")
    wanted = calviz.recalibrate(calviz.load(file), "temperature+isotonic", fit_split="calibration")
    np.testing.assert_allclose(q.probs, wanted.probs, atol=1e-7)
    np.testing.assert_array_equal(q.labels, wanted.labels)
    applied = run("apply", file, "--map", saved, "--out", again)
    assert applied.exit_code == 0, applied.output
    np.testing.assert_allclose(calviz.load(again).probs, wanted.probs, atol=1e-7)
    program = {}
    exec((tmp_path / "map.py").read_text(), program)
    np.testing.assert_allclose(
        program["recalibrate"](calviz.load(file).probs), wanted.probs, atol=1e-6
    )


def test_a_map_for_other_classes_is_refused(file, tmp_path):
    saved = tmp_path / "map.json"
    run("recalibrate", file, "--method", "ets", "--out", tmp_path / "o.npz", "--save-map", saved)
    record = json.loads(saved.read_text())
    for change, message in [
        ({"class_names": ["dog", "cat", "fox"]}, "other classes, or for another order"),
        ({"classes": 7}, "7 classes and 3 'class_names'"),
        ({"classes": 7, "class_names": []}, "the map is for 7 classes"),
        ({"calviz_map": 2}, "has version 2"),
        ({"class_names": ["cat", "dog"]}, "3 classes and 2 'class_names'"),
        ({"class_names": ["cat", "cat", "fox"]}, "different from each other"),
        ({"class_names": "cat"}, "must be a list of texts"),
        ({"fitted": {}}, "is damaged: its fields must be temperature_, weights_"),
    ]:
        saved.write_text(json.dumps(record | change))
        out = run("apply", file, "--map", saved, "--out", tmp_path / "x.npz")
        assert out.exit_code == 2
        assert message in out.stderr
    saved.write_text("{no json")
    assert "not JSON" in run("apply", file, "--map", saved, "--out", tmp_path / "x.npz").stderr


def test_out_must_be_a_format_that_is_written(file, tmp_path):
    out = run("recalibrate", file, "--method", "ets", "--out", tmp_path / "x.xlsx")
    assert out.exit_code == 2
    assert ".csv, .tsv, .parquet, .jsonl or .npz" in out.stderr
    out = run(
        "recalibrate", file, "--method", "ets", "--cross-fit", 3, "--out", tmp_path / "x.npz",
        "--save-map", tmp_path / "m.json",
    )  # fmt: skip
    assert "one map per fold" in out.stderr


@pytest.mark.slow
def test_confidence_only_files_go_through(tmp_path):
    rng = np.random.default_rng(1)
    c = rng.uniform(0.3, 1, 300)
    source = tmp_path / "c.csv"
    rows = (f"{v:.5f},{int(rng.random() < v**2)}" for v in c)
    source.write_text("confidence,correct\n" + "\n".join(rows) + "\n")
    out = run("recalibrate", source, "--method", "beta", "--out", tmp_path / "o.csv")
    assert out.exit_code == 0, out.output
    assert calviz.load(tmp_path / "o.csv").n == 300
    out = run("compare", source, "--methods", "temperature,beta", "--json", "-")
    record = json.loads(out.stdout)["methods"]
    assert "confidence-only" in record["temperature"]["reason"]
    assert record["beta"]["ok"]


@pytest.mark.slow
def test_compare_models_says_how_the_rows_were_matched_and_writes_json(tmp_path):
    header, rows = "id,label,p_a,p_b\n", ["r1,a,0.9,0.1\n", "r2,b,0.3,0.7\n", "r3,a,0.6,0.4\n"]
    one, other = tmp_path / "one.csv", tmp_path / "other.csv"
    one.write_text(header + "".join(rows) + "r4,b,0.2,0.8\n")
    other.write_text(header + "".join(reversed(rows)).replace("0.6,0.4", "0.4,0.6"))
    target = tmp_path / "out.json"
    out = run("compare-models", one, other, "--json", target)
    assert out.exit_code == 0, out.output
    assert "3 rows matched by identifier." in out.stdout
    assert "1 row of 'one' left out" in out.stdout
    assert NOISELESS_WORDS in " ".join(out.stdout.split())
    record = json.loads(target.read_text())
    assert (record["rows"], record["matched_by"]) == (3, "identifier")
    assert record["files"] == ["one.csv", "other.csv"]
    assert record["models"]["one"]["metrics"]["accuracy"]["value"] == 1
    assert record["models"]["other"]["metrics"]["accuracy"]["value"] == pytest.approx(2 / 3)
    (d,) = (d for d in record["differences"] if d["metric"] == "accuracy")
    assert (d["model"], d["reference"]) == ("one", "other")
    assert d["value"] == pytest.approx(1 / 3)
    assert record["ranks"]["accuracy"]["one"] == 1
    piped = run("compare-models", one, other, "--json", "-")
    assert json.loads(piped.stdout)["models"].keys() == {"one", "other"}


@pytest.mark.slow
def test_compare_models_of_one_file_and_what_it_refuses(file, tmp_path):
    assert run("compare-models", file).exit_code == 2
    bad = run("compare-models", file, file, "--model", "nobody")
    assert bad.exit_code == 2
    assert "there is no model 'nobody'; known: predictions, predictions (2)" in bad.stderr
    missing = run("compare-models", file, tmp_path / "none.csv")
    assert missing.exit_code == 2
    assert "none.csv" in missing.stderr
    same = run("compare-models", file, file, "--split", "test")
    assert same.exit_code == 0
    assert "1. predictions, 1. predictions (2)" in same.stdout


def test_the_models_of_one_file_are_named_by_their_headings_and_need_no_match(tmp_path):
    path = tmp_path / "two.csv"
    rows = (f"{i % 2},{0.2 + i % 3 / 4},{0.1 + i % 5 / 6:.3f}\n" for i in range(40))
    path.write_text("label,p_old,p_new\n" + "".join(rows))
    asked = ("compare-models", path, "--models", "p_old,p_new", "--resamples", 20)
    both = run(*asked, "--model", "p_new", "--model", "p_old")
    assert both.exit_code == 0, both.output
    assert "matched" not in both.output
    # In the units of the sentences: a share in the table is one in the differences, too.
    assert re.search(r"\nmodel .* ECE \(points\) +MCS \(points\)", both.output)
    assert re.search(r"\nECE: 1\. .* points \(95 % CI ", both.output)
    apart = [tmp_path / "old.csv", tmp_path / "new.csv"]
    for column, each in enumerate(apart):
        lines = (line.split(",") for line in path.read_text().splitlines())
        each.write_text("".join(f"{line[0]},{line[1 + column]}\n" for line in lines))
    assert "matched by their order" in run("compare-models", *apart, "--resamples", 20).output


@pytest.mark.slow
def test_parameters_of_methods_can_be_set(file, tmp_path):
    target = tmp_path / "out.json"
    out = run(
        *("compare", file, "--methods", "temperature,histogram", "--json", target),
        *("--option", "histogram.bins=3", "--option", "temperature.floor=0.01"),
    )
    assert out.exit_code == 0, out.output
    params = {k: v["params"] for k, v in json.loads(target.read_text())["methods"].items()}
    assert params["temperature"]["floor"] == 0.01

    maps = []
    for options in ((), ("--option", "temperature.floor=0.2")):
        path = tmp_path / "map.json"
        arguments = ("--method", "temperature", "--out", tmp_path / "o.csv", "--save-map", path)
        assert run("recalibrate", file, *arguments, *options).exit_code == 0
        maps.append(json.loads(path.read_text()))
    assert maps[0] != maps[1]


@pytest.mark.parametrize("method", ["isotonic", "temperature+isotonic", "irm", "histogram"])
def test_the_cap_can_be_switched_off(file, tmp_path, method):
    lowest = {}
    for value in (None, "true", "false", "False"):
        path = tmp_path / "map.json"
        arguments = ("--method", method, "--out", tmp_path / "o.csv", "--save-map", path)
        option = () if value is None else ("--option", f"{method}.cap={value}")
        assert run("recalibrate", file, *arguments, *option).exit_code == 0
        record = json.loads(path.read_text())
        assert record["parameters"]["cap"] is (value in (None, "true"))
        part = record["fitted"].get("second", record)["fitted"]
        maps = part["maps_"] if "maps_" in part else [part["map_"]]
        lowest[value] = min(min(m["y"]) for m in maps)
    assert lowest[None] == lowest["true"] > 0
    assert lowest["false"] == lowest["False"] == 0
    out = run("recalibrate", file, *arguments, "--option", f"{method}.cap=maybe")
    assert out.exit_code == 2
    assert "'cap' must be true or false, got 'maybe'" in out.stderr


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("temperature.heat=3", "'temperature' has no parameter 'heat'; it has floor"),
        ("warmth.floor=3", "there is no recalibrator 'warmth'"),
        ("floor=3", "METHOD.PARAMETER=VALUE"),
        ("temperature.floor", "METHOD.PARAMETER=VALUE"),
        ("temperature.floor=7", "'floor' must"),
    ],
)
def test_parameters_that_there_are_not_are_one_sentence(file, tmp_path, option, message):
    out = run(
        *("recalibrate", file, "--method", "temperature", "--out", tmp_path / "o.csv"),
        *("--option", option),
    )
    assert out.exit_code == 2
    assert message in out.stderr
    assert "Traceback" not in out.stderr
    assert not (tmp_path / "o.csv").exists()


@pytest.mark.parametrize("methods", ["temperature", "temperature,beta"])
def test_parameters_of_a_method_that_is_not_compared_are_refused(file, methods):
    out = run("compare", file, "--methods", methods, "--option", "isotonic.cap=1")
    used = "method is 'temperature'" if methods == "temperature" else f"methods are {methods}"
    sentence = f"calviz: --option names 'isotonic', but the {used}.\n"
    assert (out.exit_code, out.stderr) == (2, sentence.replace(",beta", ", beta"))


def test_a_class_that_is_alone_is_named(tmp_path):
    path = tmp_path / "one.csv"
    path.write_text("label,p_cat,p_dog\n" + "dog,0.25,0.75\n" * 40)
    out = run("recalibrate", path, "--method", "platt", "--out", tmp_path / "out.csv")
    assert out.exit_code == 2
    assert "one.csv: all 20 calibration rows have 1 class, 'dog'" in out.stderr
    out = run("compare", path, "--methods", "platt")
    assert "all 20 calibration rows have 1 class, 'dog'" in out.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["compare", "--eval-split", "x"],
        ["compare", "--model", "x"],
        ["recalibrate", "--method", "temperature", "--fit-split", "x", "--out", "out.csv"],
        ["over-time"],
        ["over-time", "--model", "x"],
        ["sets", "--fit-split", "x"],
    ],
)
def test_errors_after_reading_name_the_file(file, arguments, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    out = run(arguments[0], file, *arguments[1:])
    assert out.exit_code == 2
    assert out.stderr.count("predictions.npz: ") == 1, out.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["recalibrate", "--method", "magic", "--out", "out.csv"], "there is no recalibrator"),
        (["compare", "--methods", "magic"], "there is no recalibrator"),
        (["compare", "--methods", "temperature", "--fit-fraction", "2"], "'fit_fraction' must lie"),
        (["compare", "--methods", "temperature", "--cross-fit", "1"], "'cross_fit' must be from 2"),
        (["compare", "--fit-fraction", "0.5", "--cross-fit", "3"], "give splits, a fraction"),
        (["compare", "--fit-split", "test", "--eval-split", "test"], "'test' cannot both fit"),
        (["compare", "--methods", "temperature", "--bins", "1000000"], "the number of bins"),
        (["compare", "--sample", "20", "--cross-fit", "3"], "--cross-fit needs all rows"),
        (
            [
                *"recalibrate --method temperature --option temperature.floor=5 --out out.csv".split()
            ],
            "--option of 'temperature': 'floor' must be",
        ),
        (
            ["compare", "--methods", "ets,temperature", "--option", "temperature.floor=abc"],
            "--option of 'temperature': 'floor' must be",
        ),
        ([*"recalibrate --method temperature --sample 20 --out out.csv".split()], "--out out.csv"),
        (["sets", "--coverage", "2"], "'--coverage' must lie"),
        (["sets", "--cross-fit", "3"], "prediction sets need"),
        (["over-time", "--metric", "magic"], "there is no metric"),
        (["over-time", "--method", "magic"], "there is no recalibrator"),
        (["audit", "--bins", "1000000"], "the number of bins"),
    ],
)
def test_errors_about_options_alone_do_not_name_the_file(
    file, arguments, message, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    out = run(arguments[0], file, *arguments[1:])
    assert out.exit_code == 2
    assert out.stderr.splitlines()[-1].startswith(f"calviz: {message}"), out.stderr


def test_of_several_files_the_one_that_lacks_a_column_is_named(file, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text("truth,p_cat,p_dog\n0,0.5,0.5\n")
    out = run("compare-models", other, file, "--label", "truth")
    assert (out.exit_code, f"{file}: the label 'truth' is not" in out.stderr) == (2, True)


def test_a_damaged_map_is_named(file, tmp_path):
    saved = tmp_path / "map.json"
    saved.write_text("{}")
    for target in (tmp_path / "out.csv", tmp_path / "folder"):
        out = run("apply", file, "--map", saved, "--out", target)
        assert (out.exit_code, out.stderr[:34]) == (2, "calviz: map.json: this is not the ")


def test_a_map_that_does_not_fit_names_the_file(file, tmp_path):
    record = calviz.recalibrators.TemperatureScaling().fit(np.full((20, 2), 0.5), np.arange(20) % 2)
    (tmp_path / "map.json").write_text(json.dumps(record.to_dict()))
    out = run("apply", file, "--map", tmp_path / "map.json", "--out", tmp_path / "out.csv")
    assert (out.exit_code, out.stderr[:63]) == (
        2,
        "calviz: predictions.npz: the map is for 2 classes, these data h",
    )


def test_a_file_that_is_named_twice_is_noticed(file):
    again = file.parent / ".." / file.parent.name / file.name
    out = run("compare-models", file, again, "--resamples", "20")
    assert out.exit_code == 0
    assert f"{again} is named twice, so its models are compared with themselves." in out.stderr


def test_labels_1_and_2_name_the_option(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("label,p\n1,0.5\n2,0.5\n")
    out = run("audit", path)
    assert (out.exit_code, "(label base 1, --label-base 1)" in out.stderr) == (2, True)
    assert run("audit", path, "--label-base", "1").exit_code == 0


# ---- Several files as one table: folders, patterns, and what is wrong with one of them


@pytest.mark.usefixtures("small_blocks")
def test_several_files_are_written_to_a_folder(tmp_path: Path):
    path, fitted = write(tmp_path, ".csv", probabilities()), map_file(tmp_path)
    other = tmp_path / "other.csv"
    other.write_bytes(path.read_bytes())
    for named in ((path, other), (tmp_path / "*.csv",)):
        code, _, stderr = outcome("apply", *named, "--map", fitted, "--out", tmp_path / "out.csv")
        assert (code, "must be a folder" in stderr) == (2, True)
    assert not (tmp_path / "out.csv").exists()
    other.write_text(other.read_text().replace("p_1", "p_x"))
    out = tmp_path / "out"
    code, _, stderr = outcome("apply", other, path, "--map", fitted, "--out", out)
    assert (code, "rows.csv: there is no column 'p_x', which the first file has" in stderr) == (
        2,
        True,
    )


@pytest.mark.usefixtures("small_blocks")
def test_text_files_with_columns_in_another_order_are_one_table(tmp_path: Path):
    p = np.random.default_rng(0).random(200).round(3)
    y = (np.arange(200) % 2).astype(int)
    frame = pl.DataFrame({"label": y, "p_0": 1 - p, "p_1": p})
    frame.write_csv(tmp_path / "1.csv")
    frame.select("p_1", "label", "p_0").write_csv(tmp_path / "2.csv")
    frame.write_csv(tmp_path / "3.csv", separator=";", decimal_comma=True)
    whole = calviz.load(tmp_path / "1.csv")
    profiled = calviz.profile(tmp_path)
    assert profiled.n == 600
    for key in ("nll", "ece", "brier"):
        expected = calviz.evaluate(whole, [key])[key].value
        assert calviz.evaluate(profiled, [key])[key].value == pytest.approx(expected, abs=1e-9)
    frame.select("label", "p_0").write_csv(tmp_path / "4.csv")
    with pytest.raises(InputError, match=r"4\.csv: there is no column 'p_1', which the first file"):
        calviz.profile(tmp_path)


@pytest.mark.usefixtures("small_blocks")
def test_a_line_of_text_that_cannot_be_summed_is_named(tmp_path: Path):
    path = write(tmp_path, ".csv", probabilities())
    path.write_text(path.read_text().replace("\n", "\n0,0.1,x,0.9\n", 1))
    code, _, stderr = outcome("profile", path, "--out", tmp_path / "profile.parquet")
    assert (code, "row 1 (line 2) 'p_1' = 'x' is not a number" in stderr) == (2, True)
    assert "--skip-broken" in stderr
    code, _, stderr = outcome(
        "profile",
        write(tmp_path, ".parquet", probabilities()),
        "--time",
        "label:day",
        "--out",
        tmp_path / "q.parquet",
    )
    assert (code, "column 'label': it holds no dates" in stderr) == (2, True)


@pytest.mark.usefixtures("small_blocks")
def test_a_pattern_says_what_is_wrong_with_its_files(tmp_path: Path):
    code, _, stderr = outcome("audit", tmp_path / "*.csv")
    assert (code, stderr) == (2, f"calviz: {tmp_path}/*.csv: there is no such file.\n")
    write(tmp_path, ".npz", probabilities())
    code, _, stderr = outcome("audit", tmp_path / "*.npz")
    assert (code, "rows.npz: files that end in '.npz' cannot be read block by block" in stderr) == (
        2,
        True,
    )


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("dates", "sentence"),
    [
        (["01.02.2026"] * 1_500, "row 1, column 'day': '01.02.2026' cannot be read as a date"),
        (["2026-02-01"] * 1_499 + ["soon"], "column 'day': a value cannot be read as a date"),
        (["2026-02-01"] * 1_499 + [""], "1 of 1,500 rows cannot be used: 1 with no time"),
    ],
)
def test_dates_that_cannot_be_read_are_not_a_broken_file(tmp_path: Path, dates, sentence):
    path = tmp_path / "rows.parquet"
    pl.DataFrame({"y": np.arange(1_500) % 2, "p": [0.25] * 1_500, "day": dates}).write_parquet(path)
    code, _, stderr = outcome(
        "profile", path, "--time", "day:month", "--out", tmp_path / "x.parquet"
    )
    assert (code, sentence in stderr, "skip-broken" in stderr) == (2, True, False), stderr


@pytest.mark.parametrize("command", ["slices", "over-time", "threshold"])
def test_several_models_are_shown_below_each_other_and_are_a_list(command, tmp_path):
    rng = np.random.default_rng(0)
    a, site = rng.uniform(0.1, 0.9, 240), np.arange(240) % 2
    y = (rng.random(240) < a).astype(int)
    lines = [
        f"{y[i]},{a[i]:.3f},{a[i] / 2 + 0.25:.3f},{'nm'[site[i]]},2024-0{1 + i % 3}-11"
        for i in range(240)
    ]
    path = tmp_path / "two.csv"
    path.write_text("\n".join(["label,p_old,p_new,site,date", *lines]) + "\n")
    asked = (command, path, "--models", "p_old,p_new")
    both = run(*asked, "--json", tmp_path / "both.json")
    assert both.exit_code == 0, both.stderr
    assert both.stdout.count("240 rows, 2 classes") == 1
    shown = [line.strip() for line in both.stdout.splitlines()]
    assert shown.index("old") < shown.index("new")
    records = json.loads((tmp_path / "both.json").read_text())
    assert [one["name"] for one in records] == ["old", "new"]
    one = run(*asked, "--model", "p_new", "--json", "-")
    assert json.loads(one.stdout) == records[1]
    assert json.loads(run(*asked, "--model", "old", "--json", "-").stdout)["name"] == "old"


def test_a_threshold_of_rows_that_changed_over_time_says_so(tmp_path):
    rng, n = np.random.default_rng(0), 4_000
    z, day = rng.normal(0, 1.5, n), np.sort(rng.integers(300, size=n))
    for late, told in ((1.0, True), (0.0, False)):
        hit = rng.random(n) < 1 / (1 + np.exp(-z - late * (day >= 150)))
        dates = (np.datetime64("2024-01-01") + day).astype(str)
        path = tmp_path / f"{told}.csv"
        pl.DataFrame(
            {"date": dates, "p": 1 / (1 + np.exp(-z)), "label": hit.astype(int)}
        ).write_csv(path)
        found = run("threshold", path, "--risk", "0.1")
        assert ("calibration has changed (see 'calviz over-time')" in found.stderr) == told
