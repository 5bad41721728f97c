"""What the documents tell people to do works: the examples are taken out of them and run."""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import entry_points
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd
import pytest

import calviz
from calviz.data import read
from tests.inputs import command_line, evaluation_logs
from tests.inputs.wandb_stub import stub

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(document: str, language: str) -> list[str]:
    text = (ROOT / document).read_text(encoding="utf-8")
    return [code for kind, code in FENCE.findall(text) if kind == language]


def examples() -> dict[str, str]:
    """The files that CONTRIBUTING.md writes, by path."""
    files = {}
    for code in blocks("CONTRIBUTING.md", "python"):
        match = re.match(r"# ((?:calviz|tests)/[\w/]+\.py)\n", code)
        assert match, f"an example does not name its file: {code[:60]!r}"
        files[match[1]] = code.removeprefix(match[0])
    return files


def run(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-B", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the project into which somebody has put the files of CONTRIBUTING.md."""
    folder = tmp_path_factory.mktemp("project")
    # With its bytecode, which stays valid as the copies keep their times: two processes need not compile all of it.
    shutil.copytree(ROOT / "calviz", folder / "calviz")
    for part in ("tests", "benchmarks", "documentation", "pages", "scripts", ".streamlit"):
        shutil.copytree(ROOT / part, folder / part)
    for file in ("pyproject.toml", "app.py", "ARCHITECTURE.md"):
        shutil.copy(ROOT / file, folder)
    for path, code in examples().items():
        target = folder / path
        assert not (ROOT / path).exists(), f"{path} is taken"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(code, encoding="utf-8")
    return folder


def test_the_plugin_has_the_metric_of_the_example() -> None:
    _, _, example = examples()["calviz/metrics/average.py"].partition("\n")
    plugin = (ROOT / "examples/plugin/calviz_average/average.py").read_text(encoding="utf-8")
    # The plugin leaves out the short tables; its module docstring differs.
    assert plugin.partition("\n")[2] == example.replace('    tables=("methods",),\n', "")


def test_the_usual_additions_have_an_example() -> None:
    rooms = {str(Path(path).parent) for path in examples()}
    for room in ("metrics", "figures", "recalibrators"):
        assert {f"calviz/{room}", f"tests/unit/{room}"} <= rooms


def test_the_examples_pass_their_tests_and_those_of_all_entries(project: Path) -> None:
    """The tests beside them, and those that go through the registries, with the entries of the examples among them."""
    beside = {
        path: code.count("def test_")
        for path, code in examples().items()
        if path.startswith("tests/")
    }
    of_all = (
        "unit/metrics/test_binned.py",
        "unit/metrics/test_other_libraries.py",
        "unit/metrics/test_weights.py",
        "unit/comparison/test_paired.py",
        "unit/recalibrators/test_common.py",
        "unit/recalibrators/test_maps.py",
        "unit/recalibrators/test_weights.py",
        "unit/figures/test_every_figure.py",
    )
    files = [*beside, *(f"tests/{name}" for name in of_all)]
    chosen = (
        f"({' or '.join(Path(path).stem for path in beside)} or shrink or scores-by-hit"
        " or are_all_there or is_described or every_method or offers_every"
        " or and_doubled or weight_of_two or taken_so_often or what_the_app_shows or balanced_latex)"
        " and not (infinite_loss or row_so_often or count_as_rows)"  # they take no weights
    )
    out = run(project, "-m", "pytest", "-q", "-rp", "-p", "no:cacheprovider", *files, "-k", chosen)
    passed = Counter(re.findall(r"^PASSED (\S+?)::", out, re.MULTILINE))
    assert beside.items() <= passed.items()
    assert passed.total() - sum(beside.values()) > 45


#: What a new file raises in any case.
RAISED = ("files", "code lines", "imports between files")


def test_the_examples_are_code_of_the_house(project: Path) -> None:
    """All quick tests of the code hold with them, but for the counts that people raise with a reason."""
    tests = "tests/architecture/test_code.py"
    counts = [f"--deselect={tests}::test_the_code_does_not_grow[{count}]" for count in RAISED]
    run(project, "-m", "pytest", "-q", "-m", "not slow", *counts, tests)


ASKED = """
import json, calviz, numpy as np
from click.testing import CliRunner
from calviz.cli import main
from calviz.comparison.advice import suggest
from calviz.core.entry_specs import FIGURES, RECALIBRATORS
from calviz.core.entry_specs import METRICS

p = calviz.Predictions(probs=[0.2, 0.4, 0.9], labels=[0, 1, 1])
rng = np.random.default_rng(0)
two, three = (
    calviz.Predictions(probs=rng.dirichlet(np.ones(k), 400), labels=rng.integers(k, size=400))
    for k in (2, 3)
)
gain = calviz.compare(two, ["shrink"], metrics=["average_ce"], seed=0)["shrink"].differences["average_ce"]
lines = {}
for line in ("metrics", "methods", "audit small.csv --json -"):
    done = CliRunner().invoke(main, line.split())
    assert done.exit_code == 0, done.output
    lines[line.split()[0]] = done.stdout
print(json.dumps({
    "metric": METRICS.keys(), "figure": FIGURES.keys(), "recalibrator": RECALIBRATORS.keys(),
    "evaluated": list(calviz.evaluate(p).metrics),
    "parameters": [q.name for q in METRICS["average_ce"].parameters],
    "summary": METRICS["average_ce"].summary, "home": calviz.__file__,
    "two": suggest(two, 400).methods, "three": suggest(three, 400).left_out,
    "table": METRICS.in_table("methods"),
    "better": [gain.value, gain.interval.low, gain.interval.high, gain.verdict],
    "lines": lines,
}))
"""


@pytest.fixture(scope="module")
def registered(project: Path) -> dict[str, Any]:
    """What one process of that project knows, has computed and has printed."""
    (project / "small.csv").write_text("label,p_cat,p_dog\ncat,0.9,0.1\ndog,0.2,0.8\ncat,0.4,0.6\n")
    answers: dict[str, Any] = json.loads(run(project, "-c", ASKED))
    return answers


def test_everything_registers_itself(project: Path, registered: dict[str, Any]) -> None:
    assert Path(registered["home"]).is_relative_to(project)
    assert "average_ce" in registered["metric"]
    assert "average_ce" in registered["evaluated"]
    assert registered["parameters"] == ["bins"]
    assert registered["summary"].startswith("Average calibration error:")
    assert "scores-by-hit" in registered["figure"]
    assert "shrink" in registered["recalibrator"]


def test_what_the_rest_has_to_know_is_said_by_the_entry(registered: dict[str, Any]) -> None:
    """Suggestions, paired differences and short tables take what was added, without another edit."""
    assert "shrink" in registered["two"]
    assert registered["three"]["shrink"] == "one term of ETS."
    assert "average_ce" in registered["table"]
    value, low, high, verdict = registered["better"]
    # Scores that say nothing about the labels: shrinking them takes most of the error away.
    assert low <= value <= high < 0
    assert verdict == "better"


def test_the_command_line_knows_them(registered: dict[str, Any]) -> None:
    lines = registered["lines"]
    assert "average_ce" in lines["metrics"]
    assert "shrink" in lines["methods"]
    audited = json.loads(lines["audit"])
    assert audited["rows"] == 3
    assert 0 <= audited["metrics"]["average_ce"]["value"] <= 1


@pytest.mark.parametrize("arguments", [["check"], ["format", "--check"]], ids=" ".join)
def test_the_examples_follow_the_house_style(project: Path, arguments: list[str]) -> None:
    pytest.importorskip("ruff", reason="ruff is not installed")
    run(project, "-m", "ruff", *arguments, "--no-cache", *examples())


#: Pages whose snippets are run; CONTRIBUTING.md is put into a copy of the project above.
PAGES = [
    str(path.relative_to(ROOT))
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
]


def snippets(page: str) -> list[str]:
    """The Python of a page, but for files that it names."""
    return [code for code in blocks(page, "python") if not code.startswith("# test_")]


@pytest.fixture
def trackers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A folder for MLflow's runs, its evaluator found, and a stand-in for wandb."""
    monkeypatch.setitem(sys.modules, "wandb", stub())
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("DO_NOT_TRACK", "true")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow = pytest.importorskip(
        "mlflow", reason="mlflow is not installed: pip install mlflow-skinny"
    )
    from mlflow.models.evaluation.evaluator_registry import _model_evaluation_registry

    from calviz.integrations.mlflow import Evaluator

    _model_evaluation_registry.register("calviz", Evaluator)
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    yield
    mlflow.set_tracking_uri(before)


def own() -> dict[str, object]:
    """What the first lines of README.md take as the reader's own."""
    import mlflow
    from sklearn.datasets import load_iris
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(X[::2], y[::2])
    names = {"mlflow": mlflow, "pipeline": pipeline, "X_test": X[1::2], "y_test": y[1::2]}
    scores = pipeline.predict_proba(X)
    df = pd.DataFrame(scores, columns=["cat", "dog", "fox"])
    df["animal"] = df.columns[y]
    return names | {"df": df, "y_true": y, "y_prob": scores}


@pytest.mark.parametrize("page", [page for page in PAGES if snippets(page)])
def test_the_python_of_a_page_runs(
    page: str, request: pytest.FixtureRequest, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From its first snippet to its last, in a folder that has sample_data and the files of the command lines."""
    codes = snippets(page)
    (files / "sample_data").symlink_to(ROOT / "sample_data")
    monkeypatch.chdir(files)
    with warnings.catch_warnings():
        if any("mlflow" in code for code in codes):
            warnings.simplefilter("ignore")  # what MLflow warns of is its own
            request.getfixturevalue("trackers")
        names = own() if page == "README.md" else {}
        for number, code in enumerate(codes, start=1):
            exec(compile(code, f"{page}, snippet {number}", "exec"), names)


def test_the_tests_of_the_pages_pass(tmp_path: Path) -> None:
    """With the fixture that pytest finds where calviz is installed."""
    files = {
        match[1]: code
        for page in PAGES
        for code in blocks(page, "python")
        if (match := re.match(r"# (test_\w+\.py)\n", code))
    }
    assert files
    for name, code in files.items():
        (tmp_path / name).write_text(code, encoding="utf-8")
    installed = "calviz" in entry_points(group="pytest11").names
    plugin = () if installed else ("-p", "calviz.integrations.pytest_plugin")
    options = ("-q", "-c", os.devnull, "-p", "no:cacheprovider", *plugin)
    out = run(ROOT, "-m", "pytest", *options, str(tmp_path))
    assert re.search(rf"\b{sum(c.count('def test_') for c in files.values())} passed", out)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page, "yaml")])
def test_the_yaml_of_a_page_is_what_the_tools_read(page: str, files: Path) -> None:
    """Inputs of the action, and identifiers of hooks; what they hand to ``calviz audit`` is run."""
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    seen = []
    for code in blocks(page, "yaml"):
        (entry,) = yaml.safe_load(code)
        if "with" in entry:
            assert set(entry["with"]) <= set(action["inputs"])
            gates = [f"--fail-on={gate}" for gate in entry["with"]["fail-on"].split("\n") if gate]
            seen.append([*gates, *entry["with"]["options"].split()])
        for hook in entry.get("hooks", ()):
            assert hook["id"] in {known["id"] for known in hooks}
            seen.append(hook["args"])
    for arguments in seen:
        line = ["audit", "--resamples", "20", *arguments, str(files / "predictions.csv")]
        result = command_line.run(*line)
        assert result.exit_code in (0, 1), result.stderr


#: Commands that are run by nobody here: they install, build or serve.
OTHERS = ("python3 -m venv .venv && ", ".venv/bin/", "python benchmarks/")


def test_other_lines_are_those_that_are_known() -> None:
    for page in (*PAGES, "CONTRIBUTING.md"):
        for code in blocks(page, "sh"):
            for line in code.splitlines():
                assert line.startswith(("python -m calviz ", *OTHERS)), f"{page}: {line}"


LINES = list(
    dict.fromkeys(
        line.removeprefix("python -m calviz ")
        for page in PAGES
        for code in blocks(page, "sh")
        for line in code.splitlines()
        if line.startswith("python -m calviz ") and not line.startswith("python -m calviz app")
    )
)


def days() -> dict[str, bytes]:
    """Two days of a table of clicks, the profiles of two months, and rows of three classes as they came and calibrated, by name."""
    files = {}
    for number, (day, month) in enumerate((("monday", "october"), ("tuesday", "november"))):
        clicks = pd.DataFrame({"y": [0, 1, 0, 1] * 20, "p": [0.2, 0.7, 0.4, 0.45] * 20})
        clicks["country"] = ["de", "fr"] * 40
        clicks["date"] = pd.Timestamp(2026, 10 + number, 5) + pd.to_timedelta(
            np.arange(80) // 40, "D"
        )
        files[f"days/{day}.parquet"] = clicks.to_parquet()
        with TemporaryDirectory() as folder:
            path = Path(folder) / month
            calviz.profile(clicks, by=["country"], time="date").save(path)
            files[f"{month}.parquet"] = path.read_bytes()
    rng = np.random.default_rng(0)
    types = pd.DataFrame(rng.dirichlet([1, 1, 1], 2_000), columns=["p_cat", "p_dog", "p_fox"])
    types["y"] = np.resize(["cat", "dog", "fox"], 2_000)
    files["types/all.parquet"] = types.to_parquet()
    types["split"] = ["calibration"] * 500 + ["evaluation"] * 1_500
    files["calibrated/all.parquet"] = types.to_parquet()
    return files


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the lines name."""
    folder = tmp_path_factory.mktemp("files")
    frame = pd.DataFrame(
        {
            "label": ["cat", "dog", "fox", "dog"] * 12,
            "split": ["test", "test", "calibration", "test"] * 12,
            "p_cat": [0.7, 0.1, 0.2, 0.3] * 12,
            "p_dog": [0.2, 0.8, 0.2, 0.4] * 12,
            "p_fox": [0.1, 0.1, 0.6, 0.3] * 12,
        }
    )
    for name in ("predictions.csv", "mlp.csv", "forest.csv"):
        frame.to_csv(folder / name, index=False)
    frame.to_parquet(folder / "predictions.parquet")
    risks = {"label": [0, 1, 0, 1] * 20, "probability": [0.2, 0.7, 0.4, 0.45] * 20}
    pd.DataFrame(risks).to_csv(folder / "risks.csv", index=False)
    named = frame.assign(id=range(len(frame)))
    named.drop(columns="label").to_csv(folder / "scores.csv", index=False)
    named[["id", "label"]].to_csv(folder / "truth.csv", index=False)
    (folder / "harness_output").mkdir()
    for log in (ROOT / "tests/inputs/logs").glob("samples_*.jsonl"):
        shutil.copy(log, folder / "harness_output")
    said = ROOT / "tests/inputs/logs/inspect_said_zstd.eval"
    shutil.copy(said, folder / "run.eval")
    (folder / "judged_model.json").write_text(json.dumps(evaluation_logs.hle()))
    answers = {"response": evaluation_logs.TEXTS, "correct": evaluation_logs.CORRECT.astype(int)}
    pd.DataFrame(answers).to_csv(folder / "answers.csv", index=False)
    samples = {
        "question": np.repeat(np.arange(60), 5),
        "answer": np.resize([1, 1, 2, 1, 3, 3, 2], 300),
    }
    samples |= {"correct": np.resize([1, 1, 0], 300), "confidence": np.linspace(0.3, 1, 300)}
    pd.DataFrame(samples).to_csv(folder / "samples.csv", index=False)
    (folder / "folder").mkdir()
    for name, file in days().items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(file)
    _promises(folder)
    divided = frame.assign(split=["calibration"] * 24 + ["test"] * 24)
    divided.to_csv(folder / "folder" / "mlp.csv", index=False)
    return folder


@pytest.fixture
def files(written: Path, tmp_path: Path) -> Path:
    """A copy of them, in which a test may write."""
    return shutil.copytree(written, tmp_path / "files")


def _promises(folder: Path) -> None:
    """Files of a model in use: with labels, without, and with those of a part; its map."""
    rng = np.random.default_rng(0)
    p = rng.uniform(0.02, 0.98, 240)
    labels = (rng.random(240) < p).astype(int)
    site = np.resize(["north", "south"], 240)
    labelled = pd.DataFrame({"label": labels, "probability": p, "site": site})
    labelled["split"] = np.resize(["calibration", "test"], 240)
    labelled.to_csv(folder / "labelled.csv", index=False)
    labelled[["probability"]].to_csv(folder / "new.csv", index=False)
    part = np.repeat(["validation", "now"], 120)
    partly = labelled.assign(split=part, label=np.where(part == "now", "", labels.astype(str)))
    partly.to_csv(folder / "scored.csv", index=False)
    days = labelled.assign(
        day=pd.Timestamp("2026-01-01") + pd.to_timedelta(np.arange(240) // 40, "D")
    )
    days.to_csv(folder / "week.csv", index=False)
    labelled.to_csv(folder / "today.csv", index=False)
    human = np.where(rng.random(240) < 0.4, labels.astype(str), "")
    system = np.resize(["a", "b"], 240)
    judged = pd.DataFrame({"system": system, "judge": (p > 0.5).astype(int), "human": human})
    judged = judged.assign(question=np.arange(240) // 2, task=np.resize(["x", "y", "z"], 240))
    judged.to_csv(folder / "judged.csv", index=False)
    of_two = pd.concat([judged.assign(model=name) for name in ("gpt", "llama")])
    of_two.to_csv(folder / "judges.csv", index=False)
    posts = pd.DataFrame(rng.dirichlet([1, 1, 1], 600), columns=["p_ok", "p_spam", "p_hate"])
    posts["label"] = posts.idxmax(axis=1).str.removeprefix("p_")
    posts.to_csv(folder / "posts.csv", index=False)
    scaling = calviz.recalibrators.TemperatureScaling().fit(np.stack([1 - p, p], axis=1), labels)
    (folder / "map.json").write_text(json.dumps(scaling.to_dict()))


@pytest.mark.parametrize("line", LINES)
def test_the_command_lines_of_the_pages_run(
    line: str, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(files)
    result = command_line.run(*shlex.split(line))
    allowed = (0, 1) if "--fail-on" in line else (0,)
    assert result.exit_code in allowed, result.output
    assert "Traceback" not in result.stderr
    if "--json -" in line:
        record = json.loads(result.stdout)
        assert record.get("reduction") == "class:dog" or set(record["groups"]) == {"a", "b"}


#: A row or two for every layout in the table of docs/how-to/files.md: header, rows, models, kind, splits, groups.
LAYOUTS = {
    "label,p_cat,p_dog,p_fox": ("dog,0.1,0.8,0.1\ncat,0.7,0.2,0.1", 1, "probabilities"),
    "label,logit_cat,logit_dog,logit_fox": ("1,0.5,2.0,-1.0\n0,3.0,-2.5,1.0", 1, "logits"),
    "label,probability": ("1,0.8\n0,0.3", 1, "probabilities"),
    "confidence,correct": ("0.8,1\n0.6,0", 1, "confidence"),
    "confidence,true_label,pred_label": ("0.8,cat,cat\n0.6,dog,cat", 1, "confidence"),
    "label,mlp:cat,mlp:dog,forest:cat,forest:dog": (
        "cat,0.9,0.1,0.6,0.4\ndog,0.2,0.8,0.3,0.7",
        2,
        "probabilities",
    ),
}


@pytest.mark.parametrize("header", LAYOUTS)
def test_the_layouts_of_the_page_are_read(header: str) -> None:
    rows, models, kind = LAYOUTS[header]
    assert f"`{header}`" in (ROOT / "docs/how-to/files.md").read_text(encoding="utf-8")
    loaded = read(f"{header}\n{rows}\n".encode(), name="layout.csv")
    assert len(loaded.models) == models
    assert {data.kind for data in loaded.models.values()} == {kind}
    assert all(data.n == 2 for data in loaded.models.values())


def test_other_columns_of_the_page_are_read() -> None:
    text = (
        b"id,split,hospital,p_a,p_b,y_a,y_b\nr1,test,north,0.9,0.1,1,0\nr2,cal,south,0.2,0.8,0,1\n"
    )
    (data,) = read(text, name="layout.csv").models.values()
    assert data.split_names == ("test", "cal")
    assert data.ids is not None
    assert list(data.groups) == ["hospital"]
    assert data.labels is not None
    assert data.labels.tolist() == [0, 1]


def test_the_arrays_of_the_page_are_read() -> None:
    probs, labels = np.array([[0.9, 0.1], [0.2, 0.8]]), np.array([0, 1])
    for keys in (
        ("probs", "labels"),
        ("logits", "labels"),
        ("val_probs", "val_labels", "test_probs", "test_labels"),
    ):
        arrays = {key: labels if "labels" in key else probs for key in keys}
        if "logits" in arrays:
            arrays["logits"] = 3 * np.log(probs)
        stream = io.BytesIO()
        np.savez(stream, **arrays)
        (data,) = read(stream.getvalue(), name="arrays.npz").models.values()
        assert data.n == len(keys)
        assert data.split_names == (("val", "test") if len(keys) == 4 else ())
