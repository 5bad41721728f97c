"""Measure time and peak memory of loading, against the peers, each in a fresh process.

    python benchmarks/loading.py [--rows 50000] [--classes 1000] [--formats npz,parquet] [--repeats 5] [--write]

Candidates take turns, and the fastest turn counts, because other load only adds time. Processor
time, which a busy machine affects less, is shown beside wall time.
Peak memory is the growth of the largest resident set beyond the needs of the imports, as a multiple
of the float32 array. calviz validates the data; the peers do not. A peer that is not
installed is left out and named. With ``--write`` the table goes to ``benchmarks/results``, where
lines of formats that this run does not measure stay, and are named.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from _harness import another_run_words, machine, unmeasured_lines, write_section

# Timed code: each is run as a separate program with `path` and `k` set.
CALVIZ = (
    "import polars, pyarrow.parquet; from calviz.data import FORMATS, read; len(FORMATS)",
    "x = read(path)",
)
FLOATS = "{f'p_{j}': pl.Float32 for j in range(k)}"
PEERS = {
    "npz": {
        "calviz": CALVIZ,
        "numpy": ("import numpy as np", "z = np.load(path); x = z['probs'], z['labels']"),
    },
    "npy": {
        "calviz": CALVIZ,
        "numpy": ("import numpy as np", "x = np.load(path)"),
        "numpy, label apart": (
            "import numpy as np",
            "x = np.load(path); x, y = np.ascontiguousarray(x[:, :-1]), x[:, -1].astype(int)",
        ),
    },
    "parquet": {
        "calviz": CALVIZ,
        "polars": ("import polars as pl", "x = pl.read_parquet(path)"),
        "polars+numpy": (
            "import polars as pl",
            "x = pl.read_parquet(path); y = x['label']; x = x.drop('label').to_numpy(order='c')",
        ),
        "pyarrow": ("import pyarrow.parquet as pq", "x = pq.read_table(path)"),
        "pandas": ("import pandas as pd, pyarrow.parquet", "x = pd.read_parquet(path)"),
    },
    "arrow": {
        "calviz": CALVIZ,
        "polars": (
            "import polars as pl",
            "x = pl.read_ipc(path).drop('label').to_numpy(order='c')",
        ),
        "pyarrow": ("import pyarrow as pa", "x = pa.ipc.open_file(pa.OSFile(path)).read_all()"),
    },
    "csv": {
        "calviz": CALVIZ,
        "polars": ("import polars as pl", f"x = pl.read_csv(path, schema_overrides={FLOATS})"),
        "polars+numpy": (
            "import polars as pl",
            f"x = pl.read_csv(path, schema_overrides={FLOATS}); y = x['label']; "
            "x = x.drop('label').to_numpy(order='c')",
        ),
        "pandas": (
            "import pandas as pd, numpy as np",
            "x = pd.read_csv(path, dtype={f'p_{j}': np.float32 for j in range(k)})",
        ),
        "pyarrow": (
            "import pyarrow.csv as pc",
            "x = pc.read_csv(path, pc.ReadOptions(block_size=16 << 20))",
        ),
    },
}
MAKE = """
import sys
import numpy as np, polars as pl
path, n, k = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
key = path.rsplit(".", 1)[1]
rng = np.random.default_rng(0)
labels = rng.integers(0, k, n)
scores = rng.normal(scale=2, size=(n, k)).astype(np.float32)
scores[np.arange(n), labels] += 8
scores -= scores.max(axis=1, keepdims=True)
np.exp(scores, out=scores)
scores /= scores.sum(axis=1, keepdims=True)
if key == "npz":
    np.savez(path, probs=scores, labels=labels)
elif key == "npy":
    np.save(path, np.column_stack([scores, labels]).astype(np.float32))
else:
    frame = pl.DataFrame(scores, schema=[f"p_{j}" for j in range(k)])
    frame = frame.with_columns(label=pl.Series(labels))
    write = {"csv": frame.write_csv, "parquet": frame.write_parquet, "arrow": frame.write_ipc}
    write[key](path)
"""
PROGRAM = """
import gc, json, resource, sys, time
path, k = sys.argv[1], int(sys.argv[2])
{setup}
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
before = peak()
gc.collect()  # a collection of the objects of the imports takes 25 ms, and would come at any time
start, cpu = time.perf_counter(), time.process_time()
{work}
print(json.dumps([time.perf_counter() - start, time.process_time() - cpu, peak() - before]))
"""


def make(folder: Path, n: int, k: int, key: str) -> Path:
    """Write the predictions in one format, in a process of its own.

    A child inherits the largest resident set of its parent, so this process must stay small.
    """
    path = folder / f"w3.{key}"
    subprocess.run([sys.executable, "-c", MAKE, str(path), str(n), str(k)], check=True, cwd=folder)
    return path


Turn = tuple[float, float, float]
#: Section of the results.
SECTION = "Loading"
HEAD = [
    "| file | reader | clock | processor | peak / array | clock, processor / calviz |",
    "| --- | --- | --- | --- | --- | --- |",
]


def measure(key: str, path: Path, k: int, repeats: int) -> dict[str, Turn]:
    """Least wall time and least processor time in seconds, and largest growth in bytes, by peer."""
    turns: dict[str, list[Turn]] = {peer: [] for peer in PEERS[key]}
    for _ in range(repeats):
        for peer in list(turns):
            setup, work = PEERS[key][peer]
            done = subprocess.run(
                [sys.executable, "-c", PROGRAM.format(setup=setup, work=work), str(path), str(k)],
                capture_output=True,
                text=True,
                cwd=Path(__file__).parents[1],
            )
            if done.returncode:
                print(f"{peer}: left out ({done.stderr.strip().splitlines()[-1]})")
                del turns[peer]
                continue
            turns[peer].append(tuple(json.loads(done.stdout.splitlines()[-1])))
    return {
        peer: (min(s for s, _, _ in t), min(c for _, c, _ in t), max(p for _, _, p in t))
        for peer, t in turns.items()
    }


def main() -> None:
    """Run everything and print (or write) the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--classes", type=int, default=1_000)
    parser.add_argument("--formats", default=",".join(PEERS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="write benchmarks/results")
    args = parser.parse_args()
    array = args.rows * args.classes * 4
    lines: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for key in args.formats.split(","):
            path = make(Path(folder), args.rows, args.classes, key)
            megabytes = path.stat().st_size / 1e6
            size = f"{key}, {args.rows:,} x {args.classes:,}, {megabytes:,.0f} MB"
            results = measure(key, path, args.classes, args.repeats)
            ours = results["calviz"]
            lines[key] = [
                f"| {size} | {peer} | {seconds:.2f} s | {cpu:.2f} s | {peak / array:.2f} "
                f"| {seconds / ours[0]:.2f}, {cpu / ours[1]:.2f} |"
                for peer, (seconds, cpu, peak) in results.items()
            ]
            path.unlink()
    kept = unmeasured_lines(SECTION, lines, name_of=format_of)
    text = (
        f"`python benchmarks/loading.py --write`{another_run_words(kept)}. On {machine()}.\n"
        f"The array has float32 numbers. Each read is in a fresh process, the fastest of {args.repeats}\n"
        "turns. calviz validates and returns one row-wise array beside the labels; of its peers only those with\n"
        "`+numpy` or `label apart` in their name do as well.\n\n"
        + "\n".join([*HEAD, *in_order({**kept, **lines})])
    )
    if args.write:
        write_section(SECTION, text)
    print(text)


def format_of(file: str) -> str:
    """The format in the first cell of a line."""
    return file.partition(",")[0]


def in_order(lines: dict[str, list[str]]) -> list[str]:
    """The lines of all formats, in the order of a run of everything."""
    return [line for key in PEERS for line in lines.get(key, [])]


if __name__ == "__main__":
    main()
