"""Measure time and memory for profiles of files that do not fit into memory, against a bare GROUP BY of the engines.

    python benchmarks/scale.py --rows 100_000_000                # generated in 20 parts, removed at the end
    python benchmarks/scale.py --rows 10_000_000 --classes 100   # the top label of 100 columns
    python benchmarks/scale.py --folder data                     # existing files with columns p (p0, p1, ...) and y
    python benchmarks/scale.py --classes 100 --true-class        # the same with cells by true class, or --each-class
    python benchmarks/scale.py --spark python                    # also spark.ml's evaluators, with an interpreter that has pyspark

Each task is a separate process; its wall time, processor time and largest resident memory are
printed. On a busy machine, compare processor times.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
PARTS = 20

TASKS = {
    "polars, bare GROUP BY": """
import polars as pl
p = pl.col("p").cast(pl.Float64)
cells = pl.scan_parquet(files).group_by((p * 61440).cast(pl.Int32).alias("cell")).agg(
    pl.len(), pl.col("y").sum(), p.sum(), (p * p).sum().alias("squares")).collect(engine="streaming")
summary = f"{cells.height:,} cells"
""",
    "DuckDB, bare GROUP BY": """
import duckdb
duckdb.sql('SET enable_progress_bar = false')
cells = duckdb.sql(f"select cast(p::double * 61440 as int) cell, count(*), sum(y), sum(p::double), sum(p::double * p) "
                   f"from read_parquet({files}) group by 1").pl()
summary = f"{cells.height:,} cells"
""",
    "calviz profile": """
import calviz
from calviz.core.profile import write_profile
profile = calviz.profile(files, **columns)
write_profile(profile, out)
summary = profile.sentence()
""",
    "calviz profile, polars": """
import calviz
summary = calviz.profile(files, engine="polars", **columns).sentence()
""",
    "calviz profile, DuckDB": """
import calviz
summary = calviz.profile(files, engine="duckdb", memory="1GB", **columns).sentence()
""",
    "opening the profile": """
import calviz
summary = repr(calviz.load(out))
""",
    "all metrics with intervals, from the profile": """
import calviz
data = calviz.load(out)
import time
calviz.evaluate
start = time.perf_counter()
evaluation = calviz.evaluate(data, ci=True, findings=False, classes=False)
summary = f"{sum(m.available for m in evaluation)} metrics in {time.perf_counter() - start:.2f} s beside reading"
""",
    "calviz audit --html, from the profile": """
from calviz.cli import main
import contextlib, io
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    main(["audit", out, "--ci", "--html", out + ".html"])
summary = f"{os.path.getsize(out + '.html') / 1e6:.1f} MB"
""",
}


#: Spark in local mode on the same files: time and memory are mostly those of the Java process, read before it ends.
_SPARK_HEAD = """
import os, sys, time
os.environ.update(PYSPARK_PYTHON=sys.executable, SPARK_LOCAL_IP="127.0.0.1")
from pyspark.sql import SparkSession, functions as F
import pyspark
builder = SparkSession.builder.master("local[*]").config("spark.driver.memory", "4g").config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
spark = builder.config("spark.log.level", "ERROR").getOrCreate()
rows = spark.read.parquet(*files).withColumn("label", F.col("y").cast("double")).withColumn("score", F.col("p").cast("double"))
steps, at = [], time.perf_counter()
def took(name, value):
    global at
    now = time.perf_counter()
    steps.append(f"{name} {value} in {now - at:.1f} s")
    at = now
"""
_SPARK_END = """
java = spark.sparkContext._gateway.proc.pid
with open(f"/proc/{java}/stat") as stat:
    ticks = sum(map(int, stat.read().rsplit(")", 1)[1].split()[11:13]))
with open(f"/proc/{java}/status") as status:
    peak = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
summary = f"{', '.join(steps)}; Java: {ticks / os.sysconf('SC_CLK_TCK'):.1f} s, {peak * 1024 / 1e9:.2f} GB; PySpark {pyspark.__version__}"
spark.stop()
"""

SPARK_TASKS = {
    "spark.ml's evaluators": """
from pyspark.ml.evaluation import BinaryClassificationEvaluator, MulticlassClassificationEvaluator, RegressionEvaluator
from pyspark.ml.functions import array_to_vector
binary = BinaryClassificationEvaluator(rawPredictionCol="score")
took("area under ROC", binary.evaluate(rows))
took("area under PR", binary.evaluate(rows, {binary.metricName: "areaUnderPR"}))
took("mean squared error", RegressionEvaluator(predictionCol="score", metricName="mse").evaluate(rows))
vectors = rows.withColumn("probability", array_to_vector(F.array(1 - F.col("score"), F.col("score"))))
vectors = vectors.withColumn("prediction", (F.col("score") > 0.5).cast("double"))
several = MulticlassClassificationEvaluator(metricName="logLoss")
took("log loss", several.evaluate(vectors))
took("accuracy", several.evaluate(vectors, {several.metricName: "accuracy"}))
""",
    "calviz.profile of the Spark frame, and all metrics of it": """
import calviz
profile = calviz.profile(rows, label="y", scores=["p"])
took("profile", f"{profile.cells.height:,} cells")
of = calviz.evaluate(profile.predictions(), ci=True, findings=False, classes=False)
took("metrics with intervals", sum(m.available for m in of))
steps.append(", ".join(f"{key} {of[key].value}" for key in ("auroc", "auprc", "brier", "nll", "accuracy")))
""",
    "calviz.profile of the Spark frame beside Spark's own GROUP BY of the same cells": """
import calviz, statistics
spark.conf.set("spark.sql.execution.arrow.pyspark.enabled", "true")
at_edge = rows.withColumn("edge", F.floor(F.col("score") * 61440 + 0.5))
side = (F.col("score") > F.col("edge") / 61440).cast("int") - (F.col("score") < F.col("edge") / 61440).cast("int")
true = F.when(F.col("y") == 1, F.col("score")).otherwise(1 - F.col("score"))
cells = at_edge.select(((F.col("edge") * 2 + side) * 2 + F.col("y")).alias("key"), "score", F.log(true).alias("log"))
sums = [F.count("*"), F.sum("score"), F.sum(F.col("score") * F.col("score")), F.sum("log"), F.min("score"), F.max("score")]
tasks = {"GROUP BY": lambda: cells.groupBy("key").agg(*sums).toArrow().num_rows}
tasks["profile"] = lambda: calviz.profile(rows, label="y", scores=["p"]).cells.height
java = spark.sparkContext._gateway.proc.pid
def processor():
    with open(f"/proc/{java}/stat") as stat:
        return sum(map(int, stat.read().rsplit(")", 1)[1].split()[11:13])) / os.sysconf("SC_CLK_TCK") + time.process_time()
costs = {name: [] for name in tasks}
for turn in range(6):
    for name, task in tasks.items():
        before = time.perf_counter(), processor()
        number = task()
        costs[name].append((time.perf_counter() - before[0], processor() - before[1], number))
for name, turns in costs.items():
    clock, cpu, number = map(statistics.median, zip(*turns[2:]))
    steps.append(f"{name} of {number:,.0f} cells, warm: {clock:.2f} s, processor {cpu:.2f} s")
""",
}


class Cost(NamedTuple):
    """Time and memory of a process."""

    wall: float
    cpu: float
    memory: float
    summary: str


def generate(folder: Path, rows: int, classes: int) -> None:
    """Write parts of float32 scores and labels, slightly miscalibrated."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    for part in range(PARTS):
        rng = np.random.default_rng(part)
        n = rows // PARTS
        if classes == 2:
            p = rng.beta(0.6, 3, n).astype(np.float32)
            y = (rng.random(n, dtype=np.float32) < p**1.05).astype(np.int8)
            columns = {"p": p, "y": y}
        else:
            scores = rng.gamma(0.3, size=(n, classes)).astype(np.float32) + np.float32(1e-6)
            scores /= scores.sum(axis=1, keepdims=True)
            drawn = (np.cumsum(scores, axis=1) < rng.random((n, 1))).sum(axis=1)
            columns = {f"p{k}": scores[:, k] for k in range(classes)}
            columns["y"] = np.minimum(drawn, classes - 1).astype(np.int16)
        pq.write_table(pa.table(columns), folder / f"part{part:02d}.parquet")


def run(
    code: str,
    files: list[str],
    out: Path,
    classes: int,
    *,
    apart: Sequence[str] = (),
    python: str = sys.executable,
) -> Cost:
    """Run a task in a separate process."""
    scores = ["p"] if classes == 2 else [f"p{k}" for k in range(classes)]
    head = f"import os\nfiles, out = {files!r}, {str(out)!r}\ncolumns = dict(label='y', scores={scores!r})\n"
    head += f"columns |= {dict.fromkeys(apart, True)!r}\n"
    start = time.perf_counter()
    with subprocess.Popen(
        [python, "-c", head + code + "\nprint(summary)"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    ) as process:
        assert process.stdout is not None
        summary = process.stdout.read().strip()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    wall = time.perf_counter() - start
    cpu = usage.ru_utime + usage.ru_stime
    return Cost(wall, cpu, usage.ru_maxrss * 1024, summary if process.returncode == 0 else "failed")


def show(name: str, cost: Cost) -> None:
    """Print a line of the table."""
    print(
        f"| {name} | {cost.wall:.1f} s | {cost.cpu:.1f} s | {cost.memory / 1e9:.2f} GB | {cost.summary} |",
        flush=True,
    )


def main() -> None:
    """Print a table of all tasks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--classes", type=int, default=2)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--only", default="", help="tasks whose names hold this")
    parser.add_argument(
        "--quick", action="store_true", help="without the tasks of the slower engines"
    )
    parser.add_argument("--true-class", action="store_true", help="cells by true class")
    parser.add_argument("--each-class", action="store_true", help="cells of each class")
    parser.add_argument("--spark", metavar="PYTHON", help="an interpreter that has pyspark")
    chosen = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="calviz-scale-"))
    try:
        folder = chosen.folder or work
        if chosen.folder is None:
            # In a separate process, because child processes inherit the largest resident memory of their parent.
            writer = multiprocessing.get_context("spawn").Process(
                target=generate, args=(folder, chosen.rows, chosen.classes)
            )
            writer.start()
            writer.join()
            if writer.exitcode:
                sys.exit("the files could not be generated")
        files = [str(path) for path in sorted(folder.glob("*.parquet"))]
        size = sum(Path(path).stat().st_size for path in files)
        print(f"{len(files)} files, {size / 1e6:,.0f} MB, {os.cpu_count()} cores", flush=True)
        print(
            "| task | clock | processor | memory | |\n| --- | ---: | ---: | ---: | --- |",
            flush=True,
        )
        out = work / "out" / "all.parquet"
        out.parent.mkdir()
        apart = [name for name in ("true_class", "each_class") if getattr(chosen, name)]
        for name, code in TASKS.items():
            bare = "bare" in name
            slow = name in (
                "DuckDB, bare GROUP BY",
                "calviz profile, polars",
                "calviz profile, DuckDB",
            )
            left_out = (bare and chosen.classes > 2) or (slow and chosen.quick)
            if chosen.only not in name or left_out:
                continue
            show(name, run(code, files, out, chosen.classes, apart=apart))
        for name, code in SPARK_TASKS.items() if chosen.spark else ():
            if chosen.only not in name:
                continue
            whole = _SPARK_HEAD + code + _SPARK_END
            show(name, run(whole, files, out, chosen.classes, python=chosen.spark))
    finally:
        shutil.rmtree(work, ignore_errors=True)


if __name__ == "__main__":
    main()
