"""The golden net: record everything that users see, change the code, and check that nothing else has changed.

    python -m benchmarks.golden record FOLDER [--data FOLDER] [--only TEXT] [--jobs 2]
    python -m benchmarks.golden check FOLDER [--only TEXT] [--jobs 2]

`record` writes what this checkout puts out: text, files and exit codes of the commands; names, signatures, results and figures of the
public names; fitted maps and what they make of some rows; pages of the app that are opened by links. `check` makes all of it again,
with the recorded inputs, and compares byte for byte; maps recorded before are loaded by today's code, too. It prints what differs
and exits with 1. With ``--data`` it also reads prediction files of that folder; `check` expects them in the same place.

Only `calviz` and its public names are imported, so that the script runs on any layout of the package. Compare runs of one machine with
the same versions of the libraries: the last digits of a fit may differ elsewhere. Measured seconds are masked, and progress lines, whose
order depends on them, are sorted. Left out are PDF and NPZ, which hold the time of writing, PNG, and ``calviz app``, which serves.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import inspect
import io
import itertools
import json
import os
import re
import runpy
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

ROOT = Path(__file__).resolve().parents[1]
#: Keys of JSON whose values are measured seconds, and the words for them in text.
TIMES = ("fit_seconds", "apply_seconds", "seconds")
JSON_TIME = re.compile(rf'("(?:{"|".join(TIMES)})": *)[-+.e\d]+')
TEXT_TIME = re.compile(
    r"(?<![\w.]) *\d+(?:,\d{3})*(?:(?:\.|&#46;)\d+)?(?:e[-+]\d+)?\sm?s\b(?!\.\w)"
)
#: Numbers of profiles: the order of their sums, so their last digits, depends on the machine's load.
LONG_NUMBER = re.compile(r"-?\d+\.\d{9,}(?:[eE][-+]?\d+)?")
PROGRESS = re.compile(r"^calviz: \[\d+/\d+\] ", re.M)
#: Chains of commands; those of a chain run one after another in one folder. Files that they write are compared as well.
MLP = "inputs/digits.parquet --model MLP"
SVM = "inputs/breast_cancer.parquet --model 'SVM margin'"
SITES = "inputs/sites.csv --time date --weight weight"
QUICK = "--methods temperature,isotonic,venn-abers,temperature+irm"
CHAINS = {
    "lists": "--version; metrics; methods; formats",
    "audit": f"audit {MLP}; audit {MLP} --ci --resamples 50 --conventions; audit {MLP} --by condition --risk 0.2; audit {MLP} --json -;"
    f"audit {MLP} --ci --resamples 50 --conventions --by condition --json all.json --html all.html --markdown all.md",
    "audit-two": f"audit {SVM} --ci --resamples 50 --json -; audit {SVM} --preset clinical --cutoff 0.3 --html clinical.html;"
    f"audit {SVM} --preset credit --grades tumour_size --markdown -; audit {SVM} --reduction top-label --split test --bins 7 --seed 3;"
    "audit inputs/breast_cancer.parquet --ci --resamples 50 --fail-on 'ece>0.03' --fail-on 'nll<9' --junit gates.xml",
    "audit-kinds": f"audit {SITES} --ci --resamples 50; audit inputs/sites.csv --cluster site --ci --resamples 50 --json -;"
    "audit inputs/hits.csv --ci --resamples 50 --conventions --json hits.json; audit inputs/logits.csv --kind logits --json -;"
    "audit inputs/simulated_100_classes.parquet --reduction within-top-3; audit inputs/sites.csv --labels inputs/hits.csv --on id",
    "wrong": f"audit nothing.csv; audit {MLP} --reduction sideways; compare {MLP} --methods best; audit --bins 0; guess;"
    f"audit {MLP} --fail-on 'ece=1'; recalibrate {MLP} --method temperature --out x.doc; audit inputs/sites.csv --label nothing",
    "compare": f"compare {MLP} {QUICK}; compare {SVM} {QUICK},beta --refits 2 --json two.json --html two.html --markdown two.md;"
    f"compare {SVM} {QUICK} --cross-fit 3 --option temperature.floor=0.001 --json -; compare inputs/hits.csv --fit-fraction 0.5 --methods temperature,platt,isotonic",
    "models": "compare-models inputs/breast_cancer.parquet --resamples 50 --json models.json --html models.html --markdown models.md;"
    "compare-models inputs/digits.parquet --split test --resamples 50 --reduction top-2",
    "time": "over-time inputs/sites.csv --time date --json -; over-time inputs/sites.csv --time date --every month --method none",
    "arena": f"arena inputs {QUICK} --resamples 50 --jobs 1 --json arena.json --html arena.html --markdown arena.md --state state.jsonl;"
    "arena state.jsonl --resamples 50; arena arena.json --resamples 50 --json -",
    "profile": f"profile {MLP} --by condition --out a.parquet; profile inputs/sites.csv --time date:month --by site --out b.parquet;"
    "audit a.parquet --ci --resamples 50; audit b.parquet --json -; over-time b.parquet; compare a.parquet --methods temperature",
    "profile-classes": f"profile {MLP} --out a.parquet; profile {MLP} --each-class --out c.parquet; merge a.parquet c.parquet --out d.parquet;"
    "profile inputs/digits.parquet --model 'extra trees' --out b.parquet;"
    "merge a.parquet b.parquet --out d.parquet; audit c.parquet --json -",
    "recalibrate": f"recalibrate {MLP} --method temperature --out one.csv --save-map map.json --save-snippet map.py;"
    f"apply {MLP} --map map.json --out two.csv; audit one.csv --split test; recalibrate {SVM} --method isotonic --cross-fit 3 --out c.csv;"
    f"recalibrate {SVM} --method auto --out auto.csv; recalibrate inputs/logits.csv --kind logits --fit-fraction 0.5 --method vector --out l.csv",
    "sample": f"recalibrate {MLP} --method beta --sample 500 --out drawn; compare {MLP} {QUICK} --sample 500 --judge-sample 500",
    "sets": f"sets {MLP} --json -; sets {MLP} --method aps --coverage 0.8; sets {SVM} --fit-fraction 0.5",
}
#: Pages that are opened by links.
EVERY_PAGE = (
    "overview explain data metrics reliability cumulative classwise risk_coverage decisions recalibrate learning_curve "
    "compare_models arena slices over_time figures report learn"
)
WITH_JOBS = ("arena", "recalibrate", "learning_curve", "compare_models")
LINKS = [f"{page}?data=breast_cancer" for page in EVERY_PAGE.split()] + [
    "overview?data=digits&model=MLP&bins=7&scheme=equal-mass&split=all rows",
    "reliability?data=digits&model=MLP&bin=13-15&reduction=top-r&r=2",
    "reliability?data=digits&bins=10&recalibrated=Temperature scaling",
    "classwise?data=digits&model=MLP&selected=cell~3~8",
    "risk_coverage?data=digits&selected=covered~kept~confidence~80",
    "overview?data=digits&pinned=b10~ftemperature&slice=condition&level=noisy",
    "decisions?data=breast_cancer&cutoff=0.300",
    "recalibrate?data=breast_cancer&methods=temperature~isotonic&compared=yes",
    "learn?entry=temperature",
    "data?data=0123456789abcdef&bins=4&reduction=class&class=fox",
    "metrics?model=nobody&split=nowhere&bins=0&reduction=class&class=none&slice=x",
]  # fmt: skip
#: Figures that are made from a result instead of predictions; those of leaderboards are in the report of the arena.
MADE_FROM = {
    "CalibrationMap": "recalibrated",
    "FeatureGap": "slices",
    "HundredSquares": "verdict",
    "LearningCurves": "curve",
    "MiscalibrationPlane": "models",
    "ModelDifferences": "models",
    "OverTimeLine": "time",
    "SliceGaps": "slices",
}


def make_inputs(folder: Path) -> None:
    """Write copies of the sample data, and files of other kinds."""
    shutil.copytree(
        ROOT / "sample_data",
        folder,
        ignore=lambda _, names: [n for n in names if not n.endswith(".parquet")],
    )
    rng, n = np.random.default_rng(0), 1_200
    p = rng.beta(1.5, 2, n)
    y = (rng.random(n) < p**1.4).astype(int)
    days = np.datetime64("2024-01-01") + np.sort(rng.integers(0, 300, n))
    rows = (
        f"r{i},{days[i]},s{i % 23},{1 + i % 3},{'cal' if i % 2 else 'test'},{y[i]},{p[i]:.6f}"
        for i in range(n)
    )
    (folder / "sites.csv").write_text("\n".join(["id,date,site,weight,split,label,p", *rows, ""]))
    hits = (f"r{i},{max(p[i], 1 - p[i]):.6f},{int((p[i] > 0.5) == y[i])}" for i in range(n))
    (folder / "hits.csv").write_text("\n".join(["id,confidence,correct", *hits, ""]))
    z = rng.normal(0, 2, (n, 3))
    labels = (z + rng.gumbel(0, 1.5, z.shape)).argmax(axis=1)
    logits = (
        f"{'abc'[k]}," + ",".join(f"{v:.5f}" for v in row) for k, row in zip(labels, z, strict=True)
    )
    (folder / "logits.csv").write_text("\n".join(["label,a,b,c", *logits, ""]))


def data_chains(folder: Path) -> dict[str, str]:
    """Commands for up to four folders of files in each folder of the data."""
    chains = {}
    for top in sorted(path for path in folder.iterdir() if path.is_dir()):
        files = sorted(
            p.relative_to(folder)
            for p in top.rglob("*")
            if p.suffix in (".csv", ".npz", ".parquet")
        )
        groups = [
            list(group) for _, group in itertools.groupby(files, key=lambda path: path.parent)
        ]
        for first, *others in groups[:: -(-len(groups) // 4) or 1]:
            name, second = (
                shlex.quote(f"data/{first}"),
                shlex.quote(f"data/{others[0] if others else first}"),
            )
            chains[f"data-{'-'.join(first.parent.parts)}"] = (
                f"audit {name} --ci --resamples 50 --json -; compare {name} --fit-fraction 0.5 --methods temperature,isotonic;"
                f"compare-models {name} {second} --resamples 50"
            )
    return chains


def masked(text: str) -> str:
    """Mask measured seconds and folders, and sort the lines of progress."""
    text = text.replace(str(ROOT), "ROOT").replace(str(Path.cwd()), "HERE")
    text = JSON_TIME.sub(r"\g<1>0", re.sub(r" at 0x[0-9a-f]+", "", text))
    if "fit_seconds,apply_seconds" in text:  # a table in the form of CSV
        text = re.sub(
            r"^([a-z][\w+-]*,[a-z]\w*,.*),[-+.e\d]+,[-+.e\d]+(?=,[^,]*$)",
            r"\1,TIME,TIME",
            text,
            flags=re.M,
        )
    if PROGRESS.search(text):
        text = "\n".join(sorted(PROGRESS.sub("calviz: [.] ", text).splitlines()))
    return re.sub(r"  +", "  ", TEXT_TIME.sub(" TIME", text)) if TEXT_TIME.search(text) else text


def run_chain(commands: str, folder: Path, recorded: Path) -> None:
    """Run commands in this folder; part of a run."""
    for i, command in enumerate(filter(None, map(str.strip, commands.split(";")))):
        run = subprocess.run(
            [sys.executable, "-m", "calviz", *shlex.split(command)], capture_output=True, text=True
        )
        text = f"$ calviz {command}\nexit code {run.returncode}\n--- stdout\n{masked(run.stdout)}\n--- stderr\n{masked(run.stderr)}\n"
        (folder / f"{i:02d}.txt").write_text(text)


def run_help(folder: Path, recorded: Path) -> None:
    """Record the help of all commands."""
    listed = subprocess.run(
        [sys.executable, "-m", "calviz", "--help"], capture_output=True, text=True, check=True
    ).stdout
    names = re.findall(r"^  ([a-z][\w-]*) ", listed.partition("\nCommands:\n")[2], re.M)
    run_chain(";".join(["--help", *(f"{name} --help" for name in names)]), folder, recorded)


def run_names(folder: Path, recorded: Path) -> None:
    """Record the public names and their signatures."""
    import calviz

    def signatures(name: str, thing: Any) -> Iterator[str]:
        kind = type(thing).__name__
        with contextlib.suppress(TypeError, ValueError):
            yield f"{name}{inspect.signature(thing) if callable(thing) else f': {kind}'}\n"
        if inspect.isclass(thing):
            for key in sorted(k for k in dir(thing) if not k.startswith("_")):
                yield from signatures(f"    {name}.{key}", getattr(thing, key))

    packages = {calviz: calviz.__all__, calviz.figures: None, calviz.recalibrators: None}
    pairs = [
        (package, name)
        for package, names in packages.items()
        for name in sorted(names or dir(package))
    ]
    text = "".join(
        line
        for package, name in pairs
        if name[:1] != "_"
        for line in signatures(name, getattr(package, name))
    )
    # Addresses, and the modules of classes: only the names are public.
    (folder / "names.txt").write_text(re.sub(r" at 0x[0-9a-f]+|(?<=calviz\.)(\w+\.)+", "", text))


def run_maps(file: str, folder: Path, recorded: Path) -> None:
    """Fit and save the map of every method, and apply the recorded ones; every 20th line of what comes out."""

    def said(line: str) -> str:
        sys.argv = ["calviz", *shlex.split(line)]
        with (
            contextlib.redirect_stdout(io.StringIO()) as out,
            contextlib.redirect_stderr(out),
            contextlib.suppress(SystemExit),
        ):
            runpy.run_module("calviz", run_name="__main__")
        return out.getvalue()

    for key in [k for k in re.findall(r"^([a-z][\w+-]*) ", said("methods"), re.M) if k != "key"]:
        words = said(f"recalibrate {file} --method {key} --out all.csv --save-map {key}.json")
        (folder / f"{key}.txt").write_text(masked(words))
    for saved in sorted((recorded if recorded.exists() else folder).glob("*.json")):
        said(f"apply {file} --map {shlex.quote(str(saved))} --out all.csv")
        lines = Path("all.csv").read_text().splitlines(keepends=True)
        (folder / f"{saved.stem}.out").write_text("".join(lines[::20]))
    (folder / "all.csv").unlink()


def run_figures(file: str, folder: Path, recorded: Path) -> None:
    """Record results of the public functions, and the words, table and drawing of all figures."""
    import calviz

    path, _, model = shlex.split(file)
    data, other = calviz.load(path, model=model), calviz.load(path, model="logistic regression")
    split: dict[str, Any] = {"split": "test"}
    makers: dict[str, Callable[[], Any]] = {
        "audit": lambda: calviz.audit(data, metrics="all", resamples=50, **split),
        "verdict": lambda: calviz.verdict(data, **split),
        "explain": lambda: calviz.explain(data, **split),
        "conventions": lambda: calviz.conventions(data, resamples=50, **split),
        "compare": lambda: calviz.compare(data, ["temperature", "beta"], resamples=50, metrics="all"),
        "models": lambda: calviz.compare_models({"one": data, "two": other}, resamples=50, **split),
        "curve": lambda: calviz.learning_curve(data, ["temperature", "isotonic"], repeats=2),
        "time": lambda: calviz.over_time(calviz.load("inputs/sites.csv", time_column="date", weight_column="weight"), resamples=50),
        "slices": lambda: calviz.slices(data, **split),
        "sets": lambda: calviz.prediction_sets(data),
        "recalibrated": lambda: calviz.recalibrate(data, "platt"),
        "scorer": lambda: calviz.scorer("ece", bins=10),
        "reduction": lambda: calviz.Reduction.of("within-top-2"),
    }  # fmt: skip
    results = {name: make() for name, make in makers.items()}
    for name, result in results.items():
        text = repr(result)
        if hasattr(result, "frame"):
            text += f"\n{result.frame().drop(columns=list(TIMES), errors='ignore').to_csv()}"
        (folder / f"result-{name}.txt").write_text(masked(text))
    for name in [n for n in dir(calviz.figures) if hasattr(getattr(calviz.figures, n), "compute")]:
        compute = getattr(calviz.figures, name).compute
        known = inspect.signature(compute).parameters
        if "board" in known:
            continue
        inputs = [data, results[MADE_FROM[name]]] if name in MADE_FROM else [data]
        inputs = inputs if name == "CalibrationMap" else inputs[-1:]
        options = {key: v for key, v in {"resamples": 50, **split}.items() if key in known}
        try:
            figure = compute(*inputs, **options)
            text = "\n".join([figure.describe(), *figure.caption(), "", figure.frame().to_csv()])
            drawn = json.loads(figure.plot().to_json())
            (folder / f"{name}.json").write_text(json.dumps(drawn, indent=0))
        except Exception as error:  # that a figure is not for such data is recorded, too
            text = f"{type(error).__name__}: {error}\n"
        (folder / f"{name}.txt").write_text(text)


def shown(app: Any, kind: str) -> Iterator[str]:
    """Words of the elements of a kind: label, value, and change."""
    for element in getattr(app, kind):
        value = element.value.to_csv() if kind in ("dataframe", "table") else element.value
        words = (getattr(element, "label", ""), value, getattr(element, "delta", ""))
        yield f"[{kind}] " + " | ".join(str(word) for word in words if word not in ("", None))
        if kind == "exception":
            raise RuntimeError(f"a page has failed: {words}")


def run_links(half: str, folder: Path, recorded: Path) -> None:
    """Open pages by links and record what they show; half of them."""
    from streamlit.testing.v1 import AppTest

    kinds = "exception error warning info title header subheader metric markdown caption dataframe table code selectbox number_input "
    kinds += "slider select_slider toggle checkbox radio button_group multiselect text_input button"
    for link in LINKS[int(half) :: 2]:
        page, _, query = link.partition("?")
        app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=300)
        for name, _, value in (part.partition("=") for part in query.split("&")):
            app.query_params[name] = value
        lines = [f"link {link}"]
        if (found := next(ROOT.glob(f"**/pages/{page}.py"), None)) is None:
            lines.append("not there")
        else:
            app.switch_page(os.path.relpath(found, ROOT)).run()
            # Jobs run beside the page; the run in which one ends may show a part of the page only.
            for _ in range(2_000 if page in WITH_JOBS else 0):
                is_busy = any(button.label == "Stop" for button in app.button)
                time.sleep(0.05 * is_busy)
                app.run()
                if not is_busy:
                    break
            lines.append(f"then {sorted(app.query_params.items())}")
            lines += [words for kind in kinds.split() for words in shown(app, kind)]
        (folder / f"{re.sub(r'[^a-z0-9]+', '-', link.lower())}.txt").write_text(
            masked("\n".join(lines) + "\n")
        )


PARTS: dict[str, Callable[[Path, Path], None]] = {
    "links-0": lambda *folders: run_links("0", *folders),
    "links-1": lambda *folders: run_links("1", *folders),
    "maps-digits": lambda *folders: run_maps(MLP, *folders),
    "figures-digits": lambda *folders: run_figures(MLP, *folders),
    "figures-two": lambda *folders: run_figures(SVM, *folders),
    "maps-two": lambda *folders: run_maps(SVM, *folders),
    "help": run_help,
    "names": run_names,
}


def run_all(target: Path, recorded: Path, jobs: int, only: str) -> bool:
    """Run all parts, each in a process and a folder of its own; return whether one has failed."""
    data = Path(text) if (text := (recorded / "data.txt").read_text()) else None
    chains = CHAINS | (data_chains(data) if data else {})

    def run(name: str) -> None:
        folder, start = target / name, time.perf_counter()
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for link, place in (("inputs", recorded / "inputs"), ("data", data)):
            if place:
                (folder / link).symlink_to(place)
        code = [
            sys.executable,
            "-m",
            "benchmarks.golden",
            "part",
            name,
            str(recorded / "output" / name),
            chains.get(name, ""),
        ]
        # One thread for sums and linear algebra, whose last digits depend on it, and a fixed day, width and language.
        fixed = {
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "POLARS_MAX_THREADS": "1",
            "SOURCE_DATE_EPOCH": "0",
            "COLUMNS": "120",
            "LC_ALL": "C.UTF-8",
        }
        env = {
            **os.environ,
            **fixed,
            "NO_COLOR": "1",
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        done = subprocess.run(code, cwd=folder, env=env, capture_output=True, text=True)
        if done.returncode:
            (folder / "failed.txt").write_text(done.stderr)
        for link in ("inputs", "data"):
            (folder / link).unlink(missing_ok=True)
        words = f", failed: {done.stderr.splitlines()[-1]}" if done.returncode else ""
        print(f"{name}: {time.perf_counter() - start:.0f} s{words}", file=sys.stderr)

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(run, [name for name in [*PARTS, *chains] if only in name]))
    return any(target.glob("*/failed.txt"))


def rounded(text: str) -> str:
    """Round the numbers in the output of profiles, and mask their digests, which change with the last digit."""
    text = LONG_NUMBER.sub(lambda match: f"{float(match[0]):.9g}", text)
    return re.sub(r'("digest": *)"\w+"', r'\1""', text)


def run_part(name: str, recorded: str, commands: str) -> None:
    """Run a part in the current folder, and mask the times in what it has written."""
    folder = Path.cwd()
    if name in PARTS:
        PARTS[name](folder, Path(recorded))
    else:
        run_chain(commands, folder, Path(recorded))
    outputs = [
        p for p in folder.rglob("*.*") if not {"inputs", "data"} & set(p.parts[len(folder.parts) :])
    ]
    for written in outputs:
        path = written
        if path.suffix == ".parquet":
            frame = pl.read_parquet(path)
            path.unlink()
            path = path.with_suffix(".csv")
            path.write_text(f"{frame.schema}\n{frame.write_csv()}")
        if path.suffix in (".csv", ".html", ".json", ".jsonl", ".md", ".txt"):
            text = path.read_text()
            text = text if path.suffix in (".csv", ".txt") else masked(text)
            path.write_text(rounded(text) if name.startswith("profile") else text)


def difference(name: str, before: Path, after: Path) -> str:
    """Say how two files differ, in a few lines; empty if they do not."""
    if not before.exists() or not after.exists():
        return f"{name}: {'is new' if after.exists() else 'is no longer there'}\n"
    if before.read_bytes() == after.read_bytes():
        return ""
    try:
        # Long lines, as in reports, are broken where the values of JSON and the elements of HTML end.
        texts = [
            re.sub(r"(?<=[>,;])(?=.{200})", "\n", path.read_text()).split("\n")
            for path in (before, after)
        ]
    except UnicodeDecodeError:
        return f"{name}: {before.stat().st_size:,} and {after.stat().st_size:,} other bytes\n"
    a, b = texts
    first = next(
        (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )
    near = slice(max(0, first - 2), first + 40)
    lines = itertools.islice(
        difflib.unified_diff(a[near], b[near], f"before/{name}", f"after/{name}", lineterm="", n=2),
        30,
    )
    # Of lines that are still long, the part from the first difference on.
    one, other = ("".join(lines[first : first + 1]) for lines in texts)
    same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    start = max(0, len(list(same)) - 60)
    return "".join(f"{line if len(line) < 200 else line[start:][:200]}\n" for line in lines)


def compare(recorded: Path, made: Path, only: str) -> int:
    """Print the differences of two folders; return the number of files that differ."""
    names = sorted(
        {str(p.relative_to(top)) for top in (recorded, made) for p in top.rglob("*") if p.is_file()}
    )
    names = [name for name in names if only in Path(name).parts[0]]
    found = [text for name in names if (text := difference(name, recorded / name, made / name))]
    print("\n".join(found) + f"{len(found)} of {len(names):,} files differ")
    return len(found)


def main() -> None:
    """Record, or check."""
    if sys.argv[1:2] == ["part"]:  # a process of `run_all`
        return run_part(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("what", choices=["record", "check"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--only", default="", help="only parts whose name contains this text")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    folder = options.folder.resolve()
    if options.what == "record":
        for old in ("inputs",) if options.only else ("inputs", "output"):
            shutil.rmtree(folder / old, ignore_errors=True)
        make_inputs(folder / "inputs")
        (folder / "data.txt").write_text(str(options.data.resolve()) if options.data else "")
        sys.exit(run_all(folder / "output", folder, options.jobs, options.only))
    with tempfile.TemporaryDirectory() as made:
        run_all(Path(made), folder, options.jobs, options.only)
        sys.exit(compare(folder / "output", Path(made), options.only) > 0)


if __name__ == "__main__":
    main()
