"""Record the results of methods in the arenas, by classes and calibration rows: the evidence for suggestions and advice.

    python benchmarks/record_arena.py STATE CALARENA
    python benchmarks/record_arena.py - CALARENA     # keeps the record of our own experiments

STATE is the file that ``calviz arena FOLDER --state STATE`` wrote for experiments with our own methods; CALARENA is the folder with the
results of CalArena (https://arxiv.org/abs/2605.30188), one CSV file per benchmark and method. Writes
`calviz/comparison/arena_evidence.json`, whose groups are in the order of lookup: our own experiments
if there are enough, CalArena's for larger data.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from calviz.comparison.arena_results import ResultTable
from calviz.comparison.arena_sources import find
from calviz.comparison.leaderboards import in_range, leaderboard, range_words
from calviz.core.entry_specs import RECALIBRATORS

OUT = Path(__file__).resolve().parents[1] / "calviz" / "comparison" / "arena_evidence.json"
#: CalArena's names of our methods.
NAMES = {
    "Base-model": "identity",
    "BBQ": "bbq",
    "Beta": "beta",
    "CDF-Spline": "spline",
    "CIR": "centered-isotonic",
    "Dirichlet": "dirichlet",
    "ETS": "ets",
    "Hist-uniform": "histogram",
    "Isotonic": "isotonic",
    "MS": "matrix",
    "Platt-logits": "platt",
    "Quadratic": "quadratic",
    "SMS": "sms",
    "SVS": "svs",
    "Scaling-Binning": "scaling-binning",
    "Spline": "logit-spline",
    "TS": "temperature",
    "VS": "vector",
    "Venn-Abers": "venn-abers",
}
OURS = "calviz's own arena, KEEL data sets and scikit-learn models"
THEIRS = "CalArena 2026"
#: Ranges of classes and calibration rows; our last two cover ranges that have too few rows by themselves.
OWN = (
    ((2, 3), (0, 1_000)),
    ((2, 3), (1_000, 20_000)),
    ((3, 20), (0, 1_000)),
    ((3, 20), (1_000, 20_000)),
)
PUBLISHED = (
    ((2, 3), (20_000, None)),
    ((2, 3), (0, None)),
    ((3, 10), (0, None)),
    ((10, 500), (0, None)),
    ((500, None), (0, None)),
)


def group(table: ResultTable, source: str, classes, rows, names=None):
    """Record of one group of experiments; None if it is empty."""
    experiments = table.experiments
    chosen = in_range([e.classes for e in experiments], *classes)
    chosen &= in_range([e.rows for e in experiments], *rows)
    if not chosen.any():
        return None
    part = table.take(chosen)
    # Winrates are among the methods that took part in every experiment.
    everywhere = [m for j, m in enumerate(part.methods) if part.entered[:, j].all()]
    part = part.take(range(len(part)), everywhere)
    board = leaderboard(part, pooled=True, rated=False, resamples=0)
    like = range_words(*classes, "classes")
    if rows != (0, None):
        like += f", {range_words(*rows, 'calibration rows')}"
    methods = {}
    for standing in board.standings.values():
        key = standing.method if names is None else names.get(standing.method)
        if key is not None:
            methods[key] = {
                "brier": round(standing.winrate["brier"], 4),
                "nll": round(standing.winrate["nll"], 4),
                "worse_brier": round(standing.worse_than_none["brier"], 4),
            }
    print(f"{source}: {like}: {int(chosen.sum())} experiments, {len(methods)} methods")
    return {
        "source": source,
        "experiments": int(chosen.sum()),
        "classes": list(classes),
        "rows": list(rows),
        "like": like,
        "methods": dict(sorted(methods.items())),
    }


def _table(folder: str) -> ResultTable:
    sources = find([folder])
    return ResultTable.of(sources.results, baseline=sources.baseline)


def main() -> None:
    """Read both arenas and write the record."""
    state, calarena = sys.argv[1:]
    published = _table(calarena)
    if state == "-":
        kept = json.loads(OUT.read_text(encoding="utf-8"))["groups"]
        groups = [g for g in kept if g["source"] == OURS]
    else:
        table = _table(state)
        # A state of `benchmarks/arena.py` also holds methods of other libraries.
        own = table.take(range(len(table)), [m for m in table.methods if m in RECALIBRATORS])
        groups = [group(own, OURS, *ranges) for ranges in OWN]
    groups += [group(published, THEIRS, *ranges, NAMES) for ranges in PUBLISHED]
    record = {"groups": [g for g in groups if g is not None]}
    OUT.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
