"""What the benchmarks share: interleaved timing, peak memory in a fresh process, Markdown tables."""

from __future__ import annotations

import gc
import importlib
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
OURS = "calviz"
# The benchmarks measure the checkout that they lie in, installed or not.
sys.path.insert(0, str(ROOT))


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
    """One hot path: seconds of calviz and of its peers, medians over turns in one run."""

    title: str
    goal: str = ""
    seconds: dict[str, float] = field(default_factory=dict)
    skipped: list[str] = field(default_factory=list)
    memory: str = ""

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
        peers += [f"{name} skipped (not installed)" for name in c.skipped]
        cells = [c.title, duration(c.seconds[OURS]), "<br>".join(peers), c.goal, c.memory]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def machine() -> str:
    """Cores and versions, and nothing that identifies the machine."""
    versions = ", ".join(
        f"{name} {module.__version__}"
        for name in ("numpy", "polars", "pyarrow", "sklearn")
        if (module := peer(name)) is not None
    )
    return f"{os.cpu_count()} cores, Python {sys.version.split()[0]}, {versions}"


def write_section(title: str, text: str, file: Path = ROOT / "benchmarks" / "RESULTS.md") -> None:
    """Replace the section of this title in the results, or add it; the others stay."""
    before = file.read_text() if file.exists() else "# Benchmarks\n"
    head, *sections = before.split("\n## ")
    kept = [section for section in sections if section.split("\n", 1)[0] != title]
    ordered = sorted([*kept, f"{title}\n\n{text.strip()}\n"])
    file.write_text("\n## ".join([head, *ordered]))
