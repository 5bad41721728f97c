"""``--json``: every command writes the shape of ``calviz/cli/schema.json``, the same keys for the same version."""

import copy
import json
import re
from importlib.resources import files
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from calviz.cli import main
from tests.inputs.command_line import run, run_successfully

SCHEMA = json.loads(files("calviz.cli").joinpath("schema.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)
SHAPES = SCHEMA["$defs"]

#: A line for every command but `app`, which is a server; {} is the folder.
LINES = {
    "apply": "{}/rows.csv --map {}/map.json --out {}/applied.csv",
    "arena": "{}/rows.csv --methods identity,platt",
    "audit": "{}/rows.csv --split test --ci --resamples 20",
    "compare": "{}/rows.csv --methods identity,platt",
    "compare-models": "{}/rows.csv {}/others.csv --resamples 20",
    "expected": "{}/rows.csv",
    "folds": "{}/rows.csv --metrics nll,ece --resamples 20",
    "formats": "",
    "judge": "{}/judge.csv",
    "merge": "{}/profile.parquet --out {}/merged.parquet",
    "methods": "",
    "metrics": "",
    "over-time": "{}/rows.csv --time date",
    "profile": "{}/rows.csv --out {}/again.parquet",
    "recalibrate": "{}/rows.csv --method platt --out {}/calibrated.csv --save-map {}/map.json",
    "sets": "{}/rows.csv",
    "sites": "{}/rows.csv --by site --resamples 20",
    "slices": "{}/rows.csv --group site",
    "threshold": "{}/rows.csv --risk 0.4",
    "watch": "{}/rows.csv --state {}/state.json",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Rows of a model that is somewhat off, with splits, sites, folds and days; another model; a judge; a map; a profile."""
    folder = tmp_path_factory.mktemp("json")
    rng = np.random.default_rng(0)
    score = rng.uniform(0.05, 0.95, 400)
    label = (rng.uniform(size=400) < score**1.2).astype(int)
    head = "id,label,p,split,site,fold,date\n"
    for name, scores in (("rows", score), ("others", score**1.2)):
        lines = [
            f"r{i},{label[i]},{scores[i]:.4f},{('calibration', 'test')[i % 2]},{'abcdefgh'[i % 8]},{i % 5},2026-01-0{i // 80 + 1}\n"
            for i in range(400)
        ]
        (folder / f"{name}.csv").write_text(head + "".join(lines))
    judged = [f"{int(score[i] > 0.5)},{label[i] if i % 3 == 0 else ''}\n" for i in range(400)]
    (folder / "judge.csv").write_text("judge,human\n" + "".join(judged))
    run_successfully("recalibrate", *words("recalibrate", folder))
    run_successfully("profile", folder / "rows.csv", "--out", folder / "profile.parquet")
    return folder


def words(command, folder):
    return LINES[command].replace("{}", str(folder)).split()


def written(command, folder):
    done = run(command, *words(command, folder), "--json", "-")
    assert done.exit_code in (0, 1), done.output
    return json.loads(done.stdout)


def wrong(record):
    return [error.message for error in VALIDATOR.iter_errors(record)]


def test_the_schema_is_a_schema_and_knows_every_command():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert sorted(LINES) == sorted({*main.list_commands(None)} - {"app"})
    assert sorted(SHAPES["record"]["properties"]["command"]["enum"]) == sorted(LINES)


@pytest.mark.slow
@pytest.mark.parametrize("command", LINES)
def test_the_output_of_every_command_fits(command, folder):
    record = written(command, folder)
    assert wrong(record) == []
    assert {"schema", "calviz", "command", *SHAPES[command]["required"]} <= set(record)
    known = {"schema", "calviz", "command", "failed", *SHAPES[command]["properties"]}
    assert {*record} - known == set(), "keys that the schema does not know"
    for key in ("schema", *SHAPES[command]["required"]):
        without = copy.deepcopy(record)
        del without[key]
        assert wrong(without), f"without '{key}' it fits too"


def test_several_models_are_a_list_of_records(folder):
    text = run_successfully("audit", folder / "rows.csv", folder / "others.csv", "--json", "-")
    records = json.loads(text)
    assert [record["name"] for record in records] == ["rows", "others"]
    assert wrong(records) == []
    assert all(record["schema"] == 1 for record in records)


@pytest.mark.parametrize(
    "change",
    [
        {"rows": "400"},
        {"metrics": {"ece": {"value": "0.1"}}},
        {"metrics": {"ece": {}}},
        {"findings": [{"code": "CAL1", "severity": "info", "message": ""}]},
        {"schema": 2},
        {"command": "audits"},
    ],
)
def test_what_does_not_fit_is_seen(folder, change):
    record = written("audit", folder)
    assert wrong(record) == []
    assert wrong(record | change)


def test_what_is_listed_is_what_there_is():
    from calviz.core.entry_specs import METRICS, RECALIBRATORS
    from calviz.data import FORMATS

    for command, registry in (("metrics", METRICS), ("methods", RECALIBRATORS)):
        entries = json.loads(run_successfully(command, "--json", "-"))[command]
        assert tuple(entry["key"] for entry in entries) == registry.keys()
        assert {e["key"]: set(e["parameters"]) for e in entries} == {
            spec.key: {p.name for p in spec.parameters} for spec in registry
        }
    listed = json.loads(run_successfully("formats", "--json", "-"))
    assert [entry["key"] for entry in listed["formats"]] == [entry.key for entry in FORMATS]


def test_the_page_has_an_example_for_every_command_with_keys_that_there_are():
    page = (Path(__file__).parents[2] / "docs/how-to/command-line.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`.+?) \| `\{(.*)\}` \|$", page.partition("## JSON")[2], re.M)
    shown = {}
    for commands, example in rows:
        # The first level: keys that follow no bracket that is still open.
        depth, keys = 0, []
        for token in re.findall(r'"\w+":|[\[\]{}]', example):
            depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token, 0)
            keys += [token.strip('":')] if depth == 0 and token.endswith(":") else []
        for command in re.findall(r"`([a-z-]+)", commands):
            shown[command] = keys
    assert sorted(shown) == sorted(LINES)
    for command, keys in shown.items():
        assert keys, command
        assert set(keys) <= set(SHAPES[command]["properties"]), command
