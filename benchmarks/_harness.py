"""Shared code of the benchmarks: simulations, timing in turns or within limits, peak memory in a fresh process, Markdown tables."""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
OURS = "calviz"
#: Results, one file per study.
RESULTS = ROOT / "benchmarks" / "results"
# The benchmarks measure the checkout that contains them, installed or not.
sys.path.insert(0, str(ROOT))


#: Results of samples, by case and size.
Results = defaultdict[tuple[str, int], list[Any]]


def run_study(
    description: str, draw_turn: Callable[[int], Iterable[tuple[str, int, Any]]], *, minutes: float
) -> tuple[Results, bool]:
    """Draw samples for the time given on the command line, on several cores; an interrupted study continues.

    Parameters
    ----------
    description : str
        The documentation of the script; its first line is the help text.
    draw_turn : callable
        ``draw_turn(turn)`` yields the case, the size and the result of each sample of a turn. It is called in other processes, until
        the time is up; a turn that has begun is finished.
    minutes : float
        Default of the command line.

    Returns
    -------
    results : dict of list
        Those of all samples in the file.
    write : bool
        Whether to write the tables to the results.
    """
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=minutes)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--samples", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    samples = options.samples or Path(tempfile.mkdtemp()) / "samples.jsonl"
    until = time.time() + 60 * options.minutes
    first, step = _read_samples(samples)[1], options.jobs
    with ProcessPoolExecutor(step) as pool:
        work = partial(_write_samples, samples, draw_turn, step=step, until=until)
        list(pool.map(work, range(first, first + step)))
    return _read_samples(samples)[0], options.write


def _write_samples(
    samples: Path,
    draw_turn: Callable[[int], Iterable[tuple[str, int, Any]]],
    turn: int,
    *,
    step: int,
    until: float,
) -> None:
    """Append the samples of every `step`-th turn to a file, until the time is up."""
    with samples.open("a") as out:
        while time.time() < until:
            for case, n, row in draw_turn(turn):
                out.write(json.dumps({"case": case, "n": n, "turn": turn, "row": row}) + "\n")
                out.flush()
            turn += step


def _read_samples(samples: Path) -> tuple[Results, int]:
    """Read the results in a file, and the first turn that is not among them."""
    results: Results = defaultdict(list)
    turn = 0
    if samples.exists():
        for line in samples.read_text().splitlines():
            sample = json.loads(line)
            results[sample["case"], sample["n"]].append(sample["row"])
            turn = max(turn, sample["turn"] + 1)
    return results, turn


def peer(module: str) -> Any | None:
    """Import the module of a peer; None if it is not installed, and the table names it as skipped."""
    before = list(sys.path)
    # The names of our scripts ("coverage") must not shadow packages that a peer imports.
    sys.path[:] = [place for place in before if Path(place).resolve() != ROOT / "benchmarks"]
    try:
        return importlib.import_module(module)
    except Exception:
        # The benchmark continues without a peer that cannot be imported, for any reason.
        return None
    finally:
        sys.path[:] = before


@dataclass
class Comparison:
    """One hot path: seconds of calviz and its peers for each turn of a run, and the peers that did not finish."""

    title: str
    goal: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    memory: str = ""
    #: Time limits in seconds that peers exceeded, and reasons why others failed.
    late: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def ratio(self, name: str) -> float:
        """How many times as fast as a peer calviz is."""
        return self.seconds[name] / self.seconds[OURS]


def compare(
    title: str,
    ours: Callable[[], object],
    peers: dict[str, Callable[[], object] | None],
    *,
    goal: str = "",
    repeats: int = 7,
    slow: Iterable[str] = (),
) -> Comparison:
    """Time all candidates in turns, so that other load on the machine affects all equally.

    A peer that is None is not installed. Those named in `slow` are run once.
    """
    result = Comparison(title, goal, skipped=[name for name, run in peers.items() if run is None])
    candidates = {OURS: ours} | {name: run for name, run in peers.items() if run is not None}
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for turn in range(repeats + 1):
        for name, run in candidates.items():
            if name in slow and turn:
                continue
            gc.collect()
            start = time.perf_counter()
            run()
            took = time.perf_counter() - start
            if turn or name in slow:  # the first turn of the others is for warming up
                times[name].append(took)
    result.seconds = {name: statistics.median(values) for name, values in times.items()}
    return result


class TimeUp(BaseException):
    """The time is up; not an Exception, so that no peer catches it and continues."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise TimeUp in the block after some seconds (0: never); a running call of C code is not interrupted."""

    def ring(*_: object) -> None:
        raise TimeUp

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        # Not the default handler, which would silently end the process if another signal is pending.
        signal.signal(signal.SIGALRM, signal.SIG_IGN)


def race(
    title: str,
    ours: Callable[[], object],
    peers: dict[str, Callable[[], object] | None],
    *,
    goal: str = "",
    repeats: int = 5,
    limit: float = 60.0,
    patience: float = 10.0,
) -> Comparison:
    """Time the best of several turns of each candidate, for candidates that may take minutes.

    A peer that takes more than `limit` seconds, or fails, is named and left out. A candidate that has used `patience` seconds gets
    no more turns. The first turn is for warming up, and counts only if it is the only one.
    """
    result = Comparison(title, goal, skipped=[name for name, run in peers.items() if run is None])
    racing = {OURS: ours} | {name: run for name, run in peers.items() if run is not None}
    times: dict[str, list[float]] = {name: [] for name in racing}
    for _ in range(repeats + 1):
        for name, run in list(racing.items()):
            gc.collect()
            start = time.perf_counter()
            try:
                with at_most(0 if name == OURS else limit):
                    run()
            except TimeUp:
                result.late[name] = limit
                del racing[name]
                continue
            except Exception as error:
                if name == OURS:
                    raise
                result.failed[name] = type(error).__name__
                del racing[name]
                continue
            times[name].append(time.perf_counter() - start)
            if sum(times[name]) > patience:
                del racing[name]
    result.seconds = {
        name: min(values[1:] or values)
        for name, values in times.items()
        if values and name not in {*result.late, *result.failed}
    }
    return result


_PEAK = """
import os, resource, sys

def resident(what):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(what))

{setup}
with open("/proc/self/clear_refs", "w") as reset:
    reset.write("5")
before = resident("VmRSS")
{call}
print("PEAK", resident("VmHWM") - before)
"""


def peak_memory(setup: str, call: str) -> int | None:
    """Peak memory of `call` in a fresh process, in bytes above the memory after `setup`.

    Both are Python source. None if the system does not report it (only Linux does).
    """
    if not Path("/proc/self/clear_refs").exists():
        return None
    code = _PEAK.format(setup=setup, call=call)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "benchmarks")])}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True
    )
    line = next(line for line in done.stdout.splitlines() if line.startswith("PEAK"))
    return int(line.split()[1])


def duration(seconds: float) -> str:
    """Format seconds in a readable unit."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds:.3g} s"


def markdown(comparisons: Iterable[Comparison]) -> str:
    """Make a table with one line per hot path, times and ratios to every peer."""
    lines = ["| hot path | calviz | peers (times calviz) | goal | peak above the input |"]
    lines.append("| --- | --- | --- | --- | --- |")
    for c in comparisons:
        peers = [
            f"{name} {duration(seconds)} ({c.ratio(name):.3g}x)"
            for name, seconds in sorted(c.seconds.items(), key=lambda item: item[1])
            if name != OURS
        ]
        peers += [
            f"{name} not done in {duration(limit)} (> {limit / c.seconds[OURS]:.3g}x)"
            for name, limit in c.late.items()
        ]
        peers += [f"{name} fails ({why})" for name, why in c.failed.items()]
        peers += [f"{name} skipped (not installed)" for name in c.skipped]
        cells = [c.title, duration(c.seconds[OURS]), "<br>".join(peers), c.goal, c.memory]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def machine(*peers: str) -> str:
    """Number of cores and versions, including those of peers; nothing that identifies the machine."""
    installed = {
        distribution.metadata["Name"]: distribution.version for distribution in distributions()
    }
    versions = ", ".join(
        f"{name} {installed[name]}"
        for name in ("numpy", "polars", "pyarrow", "scikit-learn", *peers)
        if name in installed
    )
    return f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, {versions}"


def load_words() -> str:
    """Sentence about the load of the machine, which is part of every time; empty where the system does not report it."""
    if not hasattr(os, "getloadavg"):
        return ""
    load = os.getloadavg()[0] / (os.cpu_count() or 1)
    caution = ": ratios count, not seconds" if load > 1.2 else ""
    return f"The load of the machine was {load:.1f} times its cores{caution}."


def results_of(title: str) -> Path:
    """File of the results of a study."""
    return RESULTS / (re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") + ".md")


def unmeasured_lines(
    title: str, measured: Iterable[str], *, name_of: Callable[[str], str] = str
) -> dict[str, list[str]]:
    """Lines of the table of a study, by name, that a run of the `measured` names does not replace.

    `name_of` makes the name of a line from its first cell; lines may share one.
    """
    file = results_of(title)
    before = file.read_text() if file.exists() else ""
    replaced, lines = set(measured), defaultdict(list)
    for line in [line for line in before.splitlines() if line.startswith("| ")][2:]:
        name = name_of(line.split(" | ")[0].removeprefix("| "))
        if name not in replaced:
            lines[name].append(line)
    return dict(lines)


def another_run_words(names: Iterable[str]) -> str:
    """Part of a sentence that names the lines that another run measured; empty if there are none."""
    listed = "; ".join(names)
    return f"; from another run: {listed}" if listed else ""


def write_section(title: str, text: str) -> None:
    """Write the results of a study; headings in the text are one level lower."""
    results_of(title).write_text(f"# {title}\n\n{text.strip()}\n".replace("\n###", "\n##"))


def write_between(name: str, text: str, file: Path) -> None:
    """Replace the text of a document between ``<!-- name -->`` and ``<!-- end of name -->``.

    Raises
    ------
    ValueError
        Unless the document has both marks, in this order.
    """
    before, (begin, end) = file.read_text(), (f"<!-- {name} -->", f"<!-- end of {name} -->")
    head, begin_mark, rest = before.partition(begin)
    _, end_mark, tail = rest.partition(end)
    if not (begin_mark and end_mark):
        raise ValueError(f"{file.name} has no place for '{name}': {begin} and {end}")
    file.write_text(f"{head}{begin}\n\n{text.strip()}\n\n{end}{tail}")
