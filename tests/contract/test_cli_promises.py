"""`calviz threshold`, the guarantee of `audit`, and a new base rate on the command line."""

import json

import numpy as np
import polars as pl
import pytest

import calviz
from tests.inputs.command_line import run, run_successfully


@pytest.fixture
def file(tmp_path):
    rng = np.random.default_rng(0)
    score = 1 / (1 + np.exp(-rng.normal(-1, 2, 2_000)))
    frame = pl.DataFrame(
        {
            "p": score,
            "label": (rng.random(2_000) < score).astype(int),
            "split": np.where(np.arange(2_000) % 2, "calibration", "test"),
            "site": np.resize(["a", "b"], 2_000),
        }
    )
    frame.write_csv(tmp_path / "rows.csv")
    return tmp_path / "rows.csv"


KEYS = ["schema", "of", "target", "confidence", "threshold", "bound", "kept", "observed", "rows"]


def test_the_record_is_that_of_python(file):
    out = run_successfully("threshold", file, "--risk", ".1", "--json", "-")
    record = json.loads(out)
    assert list(record) == [*KEYS, "groups"]
    assert record == calviz.threshold(calviz.load(file), risk=0.1).to_dict()
    two = json.loads(
        run_successfully(
            *("threshold", file, "--of", "precision", "--of", "recall", "--risk", ".3"),
            *("--risk", ".3", "--by", "site", "--json", "-"),
        )
    )
    data = calviz.load(file)
    python = calviz.threshold(data, risk=(0.3, 0.3), of=("precision", "recall"), by="site")
    assert two == json.loads(json.dumps(python.to_dict()))
    text = run_successfully("threshold", file, "--risk", ".1", "--by", "site")
    assert "2 of 2 groups" in text or "1 of 2 groups" in text
    assert "guaranteed" in text


def test_without_a_threshold_the_missing_rows_are_told_and_the_record_has_null(file):
    result = run("threshold", file, "--risk", ".001", "--json", "-")
    assert result.exit_code == 0
    assert json.loads(result.stdout)["threshold"] is None
    assert "more rows would be needed" in result.stderr


def test_audit_adds_the_guarantee(file):
    text = run_successfully("audit", file, "--risk", ".1", "--guarantee", ".95")
    choice = calviz.threshold(calviz.load(file), risk=0.1)
    assert " ".join(repr(choice).split()) in " ".join(text.split())
    record = json.loads(
        run_successfully("audit", file, "--risk", ".1", "--guarantee", ".95", "--json", "-")
    )
    assert record["threshold"] == choice.to_dict()
    assert "threshold" not in json.loads(run_successfully("audit", file, "--json", "-"))


def test_audit_at_a_prevalence(file):
    record = json.loads(run_successfully("audit", file, "--prevalence", ".05", "--json", "-"))
    data = calviz.at_prevalence(calviz.load(file), 0.05)
    assert record["prevalence"] == [0.05]
    assert record["metrics"]["ece"]["value"] == calviz.evaluate(data, ["ece"])["ece"].value
    choice = json.loads(
        run_successfully("threshold", file, "--prevalence", ".05", "--of", "recall", "--json", "-")
    )
    assert choice == calviz.threshold(data, of="recall").to_dict()


def test_a_base_rate_is_given_or_estimated(file, tmp_path):
    out, saved = tmp_path / "out.csv", tmp_path / "map.json"
    how = ("recalibrate", file, "--method", "prior", "--out", out, "--save-map", saved)
    run_successfully(*how, "--option", "prior.base_rate=.03")
    by_hand = calviz.recalibrate(calviz.load(file), "prior", base_rate=0.03)
    np.testing.assert_allclose(calviz.load(out).probs, by_hand.probs, atol=1e-12)
    frame = pl.read_csv(file)
    new = frame.filter((pl.col("label") == 0) | (pl.int_range(pl.len()) % 3 == 0)).select("p")
    new.write_csv(tmp_path / "new.csv")
    result = run(*how, "--unlabelled", tmp_path / "new.csv")
    assert result.exit_code == 0
    assert "unlabelled rows" in result.stderr
    labelled = calviz.load(file).split("calibration")
    rates = calviz.base_rates(labelled, new["p"].to_numpy())
    rate = json.loads(saved.read_text())["parameters"]["base_rate"]
    np.testing.assert_allclose(rate, rates.rates, atol=1e-9)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("threshold", "--risk", "0"), "'risk' must lie between 0 and 1"),
        (("threshold", "--confidence", "1"), "'confidence' must lie between 0 and 1"),
        (("threshold", "--by", "x"), "no group column 'x'"),
        (("threshold", "--choose-split", "x"), "no split 'x'"),
        (("threshold", "--prevalence", "0"), "'prevalence' must lie between 0 and 1"),
        (("threshold", "--prevalence", "x"), "--prevalence 'x' is not a number"),
        (("audit", "--guarantee", "2"), "'confidence' must lie between 0 and 1"),
        (("recalibrate", "--method", "prior", "--option", "prior.base_rate=1"), "both excluded"),
        (("recalibrate", "--method", "prior", "--option", "prior.mean=[.2,.3,.5]"), "of the 2"),
        (("recalibrate", "--method", "platt", "--unlabelled", "new.csv"), "of --method prior"),
        (("recalibrate", "--method", "prior", "--unlabelled", "three.csv"), "other classes"),
    ],
)
def test_wrong_arguments_are_one_sentence_and_nothing_is_written(file, tmp_path, arguments, words):
    pl.DataFrame({"p_0": [0.2] * 9, "p_1": [0.3] * 9, "p_2": [0.5] * 9}).write_csv(
        tmp_path / "three.csv"
    )
    command, *rest = arguments
    rest = [tmp_path / a if str(a).endswith(".csv") else a for a in rest]
    out = tmp_path / "out.csv"
    target = ("--out", out) if command == "recalibrate" else ("--json", out)
    result = run(command, file, *rest, *target)
    assert result.exit_code == 2
    assert words in result.stderr
    assert len([line for line in result.stderr.splitlines() if line.startswith("calviz:")]) == 1
    assert not out.exists()
