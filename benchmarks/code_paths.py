"""Measure the length of the way through the code: distinct functions called and files touched, by flow.

Each flow runs once unwatched, so that one-time imports and registrations do not count, and then once under
``sys.setprofile`` (in all threads). Only code of the package counts; comprehensions and generator expressions
belong to the function that contains them. The numbers of distinct functions and files show how much there is to read, the number of
calls how often work is repeated.

A second table lists the files that a reader passes from a flow to one function: those of the functions on the call stack
when it is first called, in their order.

    python benchmarks/code_paths.py                      # the checkout that contains this file
    python benchmarks/code_paths.py --checkout ../other  # another one, such as a git worktree of an earlier commit
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
ROWS = 400


def watched(flow: Callable[[], object], package: Path) -> tuple[int, int, int]:
    """Numbers of distinct functions of the package that a flow calls, of their files, and of calls."""
    calls: Counter[CodeType] = Counter()

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            calls[frame.f_code] += 1

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        flow()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    inside = str(package) + "/"
    # Comprehensions and generator expressions have names in angle brackets, like modules; lambdas count as functions.
    ours = [
        code
        for code in calls
        if code.co_filename.startswith(inside)
        and (not code.co_name.startswith("<") or code.co_name == "<lambda>")
    ]
    return len(ours), len({code.co_filename for code in ours}), sum(calls[code] for code in ours)


def way(flow: Callable[[], object], package: Path, goal: tuple[str, str]) -> list[str]:
    """Files of the package on the way from a flow to the first call of the function `goal` (file, name), without repetition."""
    inside = str(package) + "/"
    files: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if (
            files
            or event != "call"
            or (code.co_filename, code.co_name) != (inside + goal[0], goal[1])
        ):
            return
        caller: FrameType | None = frame
        while caller is not None:
            if caller.f_code.co_filename.startswith(inside):
                files.append(caller.f_code.co_filename.removeprefix(inside))
            caller = caller.f_back

    sys.setprofile(note)
    try:
        flow()
    finally:
        sys.setprofile(None)
    return list(dict.fromkeys(reversed(files)))


#: Questions of a newcomer: a flow, and the function that gives the answer.
QUESTIONS = {
    "the ECE of `calviz audit`": ("`audit --html`", ("metrics/binned.py", "ece")),
    "its sums per bin": ("`audit --html`", ("sample/binning.py", "bin_events")),
    "the diagram of the report": ("`audit --html`", ("figures/reliability_traces.py", "picture")),
    "what a finding of `calviz audit` checks": (
        "`audit --html`",
        ("verdicts/data_checks.py", "few_rows"),
    ),
    "where *Compare* fits temperature": (
        "the same with one metric, the ECE",
        ("recalibrators/temperature_scaling.py", "_fit_weighted"),
    ),
    "where it measures": ("the same with one metric, the ECE", ("metrics/binned.py", "ece")),
    "from `calviz.load` to the predictions": (
        "`calviz.load` of a small CSV",
        ("data/building.py", "build"),
    ),
}


def write_csv(path: Path) -> None:
    """Write overconfident predictions of three classes, in two splits."""
    import numpy as np

    rng = np.random.default_rng(0)
    logits = rng.normal(size=(ROWS, 3))
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    labels = (probs.cumsum(axis=1) < rng.random((ROWS, 1))).sum(axis=1)
    sharp = np.exp(2 * logits) / np.exp(2 * logits).sum(axis=1, keepdims=True)
    lines = ["label,split,p_0,p_1,p_2"]
    for i in range(ROWS):
        cells = ",".join(f"{p:.6f}" for p in sharp[i])
        lines.append(f"{labels[i]},{'fit' if i % 2 else 'test'},{cells}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def flows(folder: Path) -> dict[str, tuple[Callable[[], Any], Callable[[Any], object]]]:
    """Flows by name: a function that makes the input, which is not watched, and the flow itself."""
    from click.testing import CliRunner

    import calviz
    from calviz.cli import main

    path = folder / "small.csv"
    write_csv(path)

    def load() -> Any:
        return calviz.load(path)

    def compare(p: Any, metrics: list[str] | None) -> object:
        return calviz.compare(
            p, ["temperature"], fit_split="fit", eval_split="test", metrics=metrics, jobs=1
        )

    def audit(_: Any) -> None:
        outcome = CliRunner().invoke(main, ["audit", str(path), "--html", str(folder / "r.html")])
        if outcome.exit_code:
            raise SystemExit(outcome.output)

    return {
        "`calviz.load` of a small CSV": (lambda: None, lambda _: load()),
        "ECE with interval": (load, lambda p: calviz.evaluate(p, ["ece"], ci=True)),
        "the verdict of the same rows": (load, calviz.verdict),
        "`compare` with temperature alone": (load, lambda p: compare(p, None)),
        "the same with one metric, the ECE": (load, lambda p: compare(p, ["ece"])),
        "`audit --html`": (lambda: None, audit),
    }


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkout", type=Path, default=ROOT)
    checkout = parser.parse_args().checkout.resolve()
    sys.path.insert(0, str(checkout))
    print("| a flow | distinct functions called | files touched | calls |")
    print("| --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory() as folder:
        for name, (prepare, flow) in flows(Path(folder)).items():
            with contextlib.redirect_stderr(io.StringIO()):
                flow(prepare())
                given = prepare()
                counts = watched(partial(flow, given), checkout / "calviz")
            print(f"| {name} | {' | '.join(f'{count:,}' for count in counts)} |")
        print("\n| from a flow to | files | by way of |")
        print("| --- | --- | --- |")
        for question, (name, goal) in QUESTIONS.items():
            prepare, flow = flows(Path(folder))[name]
            files = way(partial(flow, prepare()), checkout / "calviz", goal)
            print(f"| {question} | {len(files)} | {', '.join(f'`{f}`' for f in files)} |")


if __name__ == "__main__":
    main()
