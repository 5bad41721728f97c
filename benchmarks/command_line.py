"""Measure how long commands take to answer, beside what importing their packages takes, each in a fresh process.

    python benchmarks/command_line.py [--repeats 7] [--write]

Commands and floors take turns. The fastest turn counts, because other load only adds time; processor time, of the process and of the
browser that it starts, is shown beside it. The file is the sample `digits.parquet`: 4,000 rows of its test split, one of its models.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time

from _harness import ROOT, load_words, machine, write_section

SECTION = "Command line"
AUDIT = ["audit", "sample_data/digits.parquet", "--split", "test", "--model", "MLP"]
#: What a command imports before it can begin.
HELP, NUMBERS = "import click", "import click, numpy, pyarrow.parquet, rich.console, scipy.optimize"
REPORT = f"{NUMBERS}, jinja2, pandas, plotly.graph_objects, sklearn.base"
#: Arguments, the imports that are the floor, and the goal in seconds; {} is a folder.
COMMANDS = {
    "--help": (["--help"], HELP, 0.25),
    "audit --help": (["audit", "--help"], HELP, None),
    "metrics": (["metrics"], NUMBERS, None),
    "audit": (AUDIT, NUMBERS, 1.5),
    "audit --brief": ([*AUDIT, "--brief"], NUMBERS, None),
    "audit --all": ([*AUDIT, "--all"], NUMBERS, None),
    "audit --html": ([*AUDIT, "--html", "{}/report.html"], REPORT, 4),
    "audit --pdf": ([*AUDIT, "--pdf", "{}/report.pdf"], REPORT, 8),
}


def timed(arguments: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Return clock time and processor time of a process, with the processes that it has waited for."""
    before, start = os.times(), time.perf_counter()
    subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        check=True,
    )
    clock, after = time.perf_counter() - start, os.times()
    used = after.children_user + after.children_system
    return clock, used - before.children_user - before.children_system


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument(
        "--write", action="store_true", help="write the table to benchmarks/results"
    )
    chosen = parser.parse_args()
    seconds: dict[str, list[tuple[float, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        # Bytecode is kept, as after an installation; the first turn writes it.
        keep = {"PYTHONPYCACHEPREFIX": f"{folder}/bytecode", "PYTHONPATH": str(ROOT)}
        kept = {name: v for name, v in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        for turn in range(chosen.repeats + 1):
            for arguments, floor, _ in COMMANDS.values():
                given = [argument.replace("{}", folder) for argument in arguments]
                for key, line in (
                    (floor, ["-c", floor]),
                    (str(arguments), ["-m", "calviz", *given]),
                ):
                    times = timed(line, kept | keep)
                    if turn:
                        seconds.setdefault(key, []).append(times)
    lines = ["| command | clock | processor | imports alone: clock | processor | goal |"]
    lines.append("| --- | --- | --- | --- | --- | --- |")
    for name, (arguments, floor, goal) in COMMANDS.items():
        cells = [
            f"{min(column):.2f} s"
            for key in (str(arguments), floor)
            for column in zip(*seconds[key], strict=True)
        ]
        lines.append(
            f"| `calviz {name}` | {' | '.join(cells)} | {goal or ''}{' s' if goal else ''} |"
        )
    table = "\n".join(lines)
    text = (
        f"`python benchmarks/command_line.py --write`. On {machine()}.\n"
        f"Each in a fresh process, the fastest of {chosen.repeats} turns, floors in the same turns. {load_words()}\n\n{table}\n"
    )
    print(text)
    if chosen.write:
        write_section(SECTION, text)


if __name__ == "__main__":
    main()
