"""Measure by simulation with known truth how often each kind of sentence is false, and how often it is made where it is true.

    python -m benchmarks.sentences [--only CLAIM ...] [--files N] [--minutes M] [--seed S] [--samples FILE] [--jobs J] [--write]

Draws the files of all simulations in `benchmarks/claims` in turn, until each has its number or the time is up. With ``--samples`` each
outcome is a line of a file and counts in the next run, so that a study may be interrupted; ``--minutes 0`` only counts. ``--write`` puts
the rates into `benchmarks/results/sentences.md` and the summary into `docs/uncertainty.md`; cases of which no file was drawn stay.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from benchmarks._harness import ROOT, machine, results_of, write_between, write_section
from benchmarks.claims import SIMULATIONS, Simulation, every_claim, every_simulation, mean_and_error
from calviz.core.blocks import one_blas_thread

Outcomes = dict[str, dict[int, float | None]]
SUMMARY = ROOT / "docs" / "uncertainty.md"
#: Files of a case from which its own rate is told in the summary.
ENOUGH = 150


def read(samples: Path | None, seed: int) -> Outcomes:
    """Outcomes in a file, by simulation and number of the file; those of other seeds are left out."""
    found: Outcomes = defaultdict(dict)
    if samples is not None and samples.exists():
        for line in samples.read_text().splitlines():
            row = json.loads(line)
            if row["seed"] == seed:
                found[row["key"]][row["number"]] = row["outcome"]
    return found


def drawn(seed: int, until: float, work: tuple[str, int]) -> tuple[str, int, float | None] | None:
    """Draw one file; None if the time is up."""
    if time.time() > until:
        return None
    every_simulation()
    key, number = work
    with one_blas_thread():
        return key, number, SIMULATIONS[key].outcome(seed, number)


def run(chosen: list[Simulation], options: argparse.Namespace) -> Outcomes:
    """Draw what is missing, and append it to the file of samples."""
    found = read(options.samples, options.seed)
    turns = max((options.files or one.files for one in chosen), default=0)
    work = [
        (one.key, number)
        for number in range(turns)
        for one in chosen
        if number < (options.files or one.files) and number not in found[one.key]
    ]
    until = time.time() + 60 * options.minutes
    out = None if options.samples is None else options.samples.open("a")
    with ProcessPoolExecutor(options.jobs) as pool:
        for result in pool.map(partial(drawn, options.seed, until), work, chunksize=1):
            if result is None:
                continue
            key, number, outcome = result
            found[key][number] = outcome
            if out is not None:
                row = {"key": key, "seed": options.seed, "number": number, "outcome": outcome}
                out.write(json.dumps(row) + "\n")
                out.flush()
    return found


def line(one: Simulation, outcomes: dict[int, float | None]) -> str:
    """One simulation as a line of the table."""
    values = [value for value in outcomes.values() if value is not None]
    if not values:
        return f"| {one.measures} | {one.case} | {one.required} |  | {len(outcomes)} |  |"
    mean, error = mean_and_error(values)
    low = one.at_least is None or mean + 2 * error >= one.at_least
    high = one.at_most is None or mean - 2 * error <= one.at_most
    said = f"{len(values)}" if len(values) == len(outcomes) else f"{len(values)} of {len(outcomes)}"
    return (
        f"| {one.measures} | {one.case} | {one.required} | {100 * mean:.1f} % ± {100 * error:.1f} | {said} | "
        f"{'' if low and high else 'missed'} |"
    )


def lines_of(text: str) -> dict[str, dict[tuple[str, str], str]]:
    """The lines of tables, by claim, what is measured, and case."""
    found: dict[str, dict[tuple[str, str], str]] = {}
    for part in f"\n{text}".split("\n## ")[1:]:
        key, *lines = part.splitlines()
        cells = [(one.split(" | "), one) for one in lines if one.startswith("| ")]
        found[key] = {(first[0].removeprefix("| "), first[1]): one for first, one in cells[2:]}
    return found


def tables(chosen: list[Simulation], found: Outcomes, before: str) -> str:
    """All rates, a table per claim; those that were not drawn are as they were `before`."""
    lines, old, claims = [], lines_of(before), every_claim()
    again = {one.key for one in chosen if found[one.key]}
    for key in dict.fromkeys([*(key for key in old if key in claims), *claims]):
        claim = claims[key]
        lines += [
            f"## {key}\n",
            f"*{claim.says}* Chosen: {claim.chosen}. Adjusted: {claim.adjusted}.\n",
        ]
        lines += [
            "| measured | case | required | rate | files | |",
            "| --- | --- | --- | --- | --- | --- |",
        ]
        for one in (one for one in SIMULATIONS.values() if one.claim == key):
            kept = old.get(key, {}).get((one.measures, one.case))
            new = kept is None or one.key in again
            lines.append(line(one, found[one.key]) if new else kept)
        lines.append("")
    return "\n".join(lines)


def summary(text: str) -> str:
    """One line per claim: sentence, selection, adjustment, and the rates of the tables over all cases together."""
    lines = ["| sentence | chosen | adjusted | measured |", "| --- | --- | --- | --- |"]
    claims = every_claim()
    for key, cases in lines_of(text).items():
        rates: dict[tuple[str, str], list[tuple[float, int]]] = defaultdict(list)
        for case in cases.values():
            measures, _, required, rate, files, *_ = case.removeprefix("| ").split(" | ")
            if rate.strip():
                mean, said = float(rate.split()[0]), int(files.split()[0])
                rates[measures, required].append((mean, said))
        measured = "; ".join(
            f"{measures}: {pooled(of)}" + (f" ({required})" if required.strip() else "")
            for (measures, required), of in rates.items()
        )
        claim = claims[key]
        lines.append(f"| {claim.says} | {claim.chosen} | {claim.adjusted} | {measured} |")
    return "\n".join(lines)


def pooled(cases: list[tuple[float, int]]) -> str:
    """The mean rate over all files, and the range over those cases that have enough files to tell it, from rates and numbers of files."""
    files = sum(said for _, said in cases)
    mean = f"{sum(rate * said for rate, said in cases) / files:.1f} % of {files:,}"
    large = [rate for rate, said in cases if said >= ENOUGH]
    if len(large) < 2 or max(large) - min(large) < 0.05:
        return mean
    return f"{mean}, by case {min(large):.1f} to {max(large):.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", help="keys of claims; all if left out")
    parser.add_argument("--files", type=int, help="files per simulation, instead of its own number")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--samples", type=Path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    chosen = [one for one in every_simulation() if not options.only or one.claim in options.only]
    found = run(chosen, options)
    text = tables(chosen, found, results_of("Sentences").read_text())
    print(text)
    if options.write:
        head = (
            f"`python -m benchmarks.sentences --write`, seed {options.seed}, on {machine()}. Rates with their standard "
            "errors over the simulated files of which the sentence was made; *missed*: more than two standard errors outside what is "
            "required.\n\n"
        )
        write_section("Sentences", head + text)
        write_between("sentences", summary(text), SUMMARY)


if __name__ == "__main__":
    main()
