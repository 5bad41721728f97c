"""What the benchmarks share: timing in turns or within limits, peak memory in a fresh process, Markdown tables."""

from __future__ import annotations

import argparse
import gc
import importlib
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import distributions
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
OURS = "calviz"
# The benchmarks measure the checkout that they lie in, installed or not.
sys.path.insert(0, str(ROOT))


def run_study(
    description: str,
    work: Callable[[int, int, float, Path], None],
    read_samples: Callable[[Path], tuple[Any, int]],
    *,
    minutes: float,
) -> tuple[Path, bool]:
    """Draw samples for as long as the command line says, on several cores; a study that was interrupted goes on.

    Parameters
    ----------
    description : str
        The documentation of the script; its first line is the help text.
    work : callable
        ``work(turn, step, until, samples)`` appends samples of every `step`-th turn to a file until the time is over.
    read_samples : callable
        Gives the samples of a file, and the first turn that is not among them.
    minutes : float
        Unless the command line says otherwise.

    Returns
    -------
    samples : Path
    write : bool
        Whether the tables are asked for in the results.
    """
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=minutes)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--samples", type=Path)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    samples = options.samples or Path(tempfile.mkdtemp()) / "samples.jsonl"
    until = time.time() + 60 * options.minutes
    first, step = read_samples(samples)[1], options.jobs
    with ProcessPoolExecutor(step) as pool:
        turns = range(first, first + step)
        list(pool.map(work, turns, [step] * step, [until] * step, [samples] * step))
    return samples, options.write


def peer(module: str) -> Any | None:
    """The module of a peer, or None where it is not installed: the table then names it as skipped."""
    before = list(sys.path)
    # The names of our scripts ("coverage") must not hide the packages that a peer imports.
    sys.path[:] = [place for place in before if Path(place).resolve() != ROOT / "benchmarks"]
    try:
        return importlib.import_module(module)
    except Exception:
        # Whatever keeps a peer from importing, the benchmark goes on without it.
        return None
    finally:
        sys.path[:] = before


@dataclass
class Comparison:
    """One hot path: seconds of calviz and of its peers over turns in one run, and what did not come to an end."""

    title: str
    goal: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    memory: str = ""
    #: Seconds that were not enough for a peer, and why another one failed.
    late: dict[str, float] = field(default_factory=dict)
    failed: dict[str, str] = field(default_factory=dict)

    def ratio(self, name: str) -> float:
        """How many times faster than a peer calviz is."""
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
    """Time all candidates in turns, so that what else the machine does hits all alike.

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
            if turn or name in slow:  # the first turn of the others only warms up
                times[name].append(took)
    result.seconds = {name: statistics.median(values) for name, values in times.items()}
    return result


class TimeUp(BaseException):
    """Out of time; no exception that a peer might catch and go on."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raise TimeUp inside after so long (0: never), between two steps of Python: one call of C is not interrupted."""

    def ring(*_: object) -> None:
        raise TimeUp

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        # Not the default, which ends the process without a word should one more be on its way.
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
    """The best of several turns of each candidate, in turns, where some take minutes.

    A peer that is not done after `limit` seconds, or fails, is named and out. Whoever has used up `patience` seconds has
    no more turns. The first turn warms up, and counts only where it is the last.
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
    """Bytes that `call` needs at its peak above what `setup` left, in a fresh process.

    Both are Python source. None where the system does not tell (only Linux does).
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
    """Seconds in a readable unit."""
    if seconds < 1e-3:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.3g} ms"
    return f"{seconds:.3g} s"


def markdown(comparisons: Iterable[Comparison]) -> str:
    """A table: one line per hot path, times and ratios to every peer."""
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
    """Cores and versions, those of peers too, and nothing that identifies the machine."""
    known = {found.metadata["Name"]: found.version for found in distributions()}
    versions = ", ".join(
        f"{name} {known[name]}"
        for name in ("numpy", "polars", "pyarrow", "scikit-learn", *peers)
        if name in known
    )
    return f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, {versions}"


def write_section(title: str, text: str, file: Path = ROOT / "benchmarks" / "RESULTS.md") -> None:
    """Replace the section of this title in the results, or add it; the others stay."""
    before = file.read_text() if file.exists() else "# Benchmarks\n"
    head, *sections = before.split("\n## ")
    kept = [section for section in sections if section.split("\n", 1)[0] != title]
    ordered = sorted([*kept, f"{title}\n\n{text.strip()}\n"])
    file.write_text("\n## ".join([head, *ordered]))


def write_between(name: str, text: str, file: Path) -> None:
    """Replace what a document has between ``<!-- name -->`` and ``<!-- end of name -->``.

    Raises
    ------
    ValueError
        Where the document has not both marks, in this order.
    """
    before, (begin, end) = file.read_text(), (f"<!-- {name} -->", f"<!-- end of {name} -->")
    head, found, rest = before.partition(begin)
    _, found_end, tail = rest.partition(end)
    if not (found and found_end):
        raise ValueError(f"{file.name} has no place for '{name}': {begin} and {end}")
    file.write_text(f"{head}{begin}\n\n{text.strip()}\n\n{end}{tail}")
