"""Evidence from experiments on many data sets: which recalibrator wins on similar data, and how often it makes the score worse."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from calviz.specs.recalibrator import RECALIBRATORS, UNCALIBRATED

#: Written by ``benchmarks/record_arena.py``; the first group that matches the data is used.
_FILE = "arena_evidence.json"


@dataclass(frozen=True)
class Record:
    """Record of one method in a group of experiments.

    Attributes
    ----------
    brier, nll : float
        Winrates: mean share of the other methods with a strictly larger score.
    worse_brier, worse_nll : float
        Share of the experiments in which the score is larger (worse) than without calibration.
    gain : float
        Mean gain in the Brier score over no calibration.
    """

    brier: float
    nll: float
    worse_brier: float
    worse_nll: float
    gain: float

    @property
    def winrate(self) -> float:
        """Mean of the two winrates."""
        return (self.brier + self.nll) / 2


@dataclass(frozen=True)
class ExperimentGroup:
    """Experiments with similar numbers of classes and calibration rows.

    Attributes
    ----------
    source : str
        Source of the experiments, in words.
    experiments : int
    classes, rows : (int, int or None)
        Range: from the first number up to, but not including, the second; None for no upper end.
    like : str
        The two ranges in words ("2 classes, 1,000 to 4,999 calibration rows").
    records : mapping of str to Record
        By the key of the method.
    """

    source: str
    experiments: int
    classes: tuple[int, int | None]
    rows: tuple[int, int | None]
    like: str
    records: Mapping[str, Record]

    def holds(self, classes: int, rows: int) -> bool:
        """Whether data with these numbers belong to the group."""
        return all(
            low <= value and (high is None or value < high)
            for value, (low, high) in ((classes, self.classes), (rows, self.rows))
        )

    @property
    def ranking(self) -> tuple[str, ...]:
        """Keys of the methods, highest mean winrate first, without the uncalibrated model."""
        keys = [key for key in self.records if key != UNCALIBRATED]
        return tuple(sorted(keys, key=lambda key: (-self.records[key].winrate, key)))

    def keeping(self) -> tuple[str, ...]:
        """Return the methods of the ranking that keep every predicted class."""
        return tuple(key for key in self.ranking if RECALIBRATORS[key].accuracy_preserving)

    def record_words(self, key: str) -> str:
        """Return the winrates of a method, and how often it does harm, in words."""
        record = self.records[key]
        share = round(100 * record.worse_brier)
        often = (
            f"in {share} %"
            if share
            else "in none of them"
            if not record.worse_brier
            else "in less than 1 %"
        )
        return (
            f"winrate {record.brier:.2f} by Brier score and {record.nll:.2f} by log loss, Brier score worse than without "
            f"calibration {often}"
        )


def evidence(classes: int, rows: int) -> ExperimentGroup:
    """Return the experiments that are most similar to the data.

    Parameters
    ----------
    classes : int
    rows : int
        Number of calibration rows.
    """
    return next(group for group in _groups() if group.holds(classes, rows))


@cache
def _groups() -> tuple[ExperimentGroup, ...]:
    record = json.loads(files(__package__).joinpath(_FILE).read_text(encoding="utf-8"))
    return tuple(
        ExperimentGroup(
            source=group["source"],
            experiments=group["experiments"],
            classes=(group["classes"][0], group["classes"][1]),
            rows=(group["rows"][0], group["rows"][1]),
            like=group["like"],
            records={
                key: Record(**values)
                for key, values in group["methods"].items()
                if key in RECALIBRATORS
            },
        )
        for group in record["groups"]
    )
