"""The result of an evaluation."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from calviz.core.errors import OptionError
from calviz.core.extra_packages import needs
from calviz.core.finding import Finding
from calviz.results.display import Displayed, Summary
from calviz.results.metric_result import MetricResult
from calviz.results.metric_words import Written, name_of
from calviz.results.verdict import Verdict
from calviz.text.words import counted, shorten

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class ClassRow:
    """Numbers of one class: the rows with this true label, scored by the top label (Ao 2023)."""

    name: str
    rows: int
    accuracy: float
    confidence: float
    ece: float
    mcs: float
    ks: float


@dataclass(frozen=True, repr=False)
class Evaluation(Displayed):
    """Metrics of one sample, by key; iterates over the results.

    Attributes
    ----------
    name : str
        Name of the predictions.
    rows, n_classes : int
        Number of evaluated rows, and of classes.
    kind : str
        "probabilities", "logits" or "confidence".
    split : str or None
        The evaluated split; None for all rows.
    reduction : str
        Written form of the reduction.
    metrics : mapping of str to MetricResult
    classes : tuple of ClassRow
        Empty if not requested, and for confidence-only data without labels.
    findings : tuple of Finding
        Empty if not requested.
    verdict : Verdict or None
        The verdict; None if findings were not requested.
    sample : Sample or None
        The evaluated rows, for figures and reports (`calviz.integrations`); kept only by `calviz.audit`.
    """

    name: str
    rows: int
    n_classes: int
    kind: str
    split: str | None
    reduction: str
    metrics: Mapping[str, MetricResult]
    classes: tuple[ClassRow, ...] = ()
    findings: tuple[Finding, ...] = ()
    verdict: Verdict | None = None
    sample: Any = field(default=None, repr=False, compare=False)

    def __getitem__(self, key: str) -> MetricResult:
        try:
            return self.metrics[key]
        except KeyError:
            keys = ", ".join(self.metrics)
            raise OptionError(f"'{key}' was not measured; there are {keys}.") from None

    def summary(self) -> Summary:
        """Summarise the result: the verdict, the metrics with their error bars, and the findings."""
        rows: list[tuple[str, ...]] = []
        for r in self:
            if not r.available:
                continue
            w = Written(r)
            interval = (
                f"{w.of(r.interval.low, unit=False)} to {w.of(r.interval.high)}"
                if r.interval
                else ""
            )
            floor = f"{w.of(r.noise_floor.mean)}" if r.noise_floor else ""
            unit = f" ({w.unit_words})" if w.unit_words else ""
            rows.append((name_of(r) + unit, w.value, interval, floor))
        header: tuple[str, ...] = ("metric", "value", "95 % interval", "if calibrated")
        if not any(row[2] or row[3] for row in rows):
            header, rows = header[:2], [row[:2] for row in rows]
        split = f", split {shorten(self.split)}" if self.split else ""
        verdict = self.verdict
        return Summary(
            title=f"of '{shorten(self.name)}': {counted(self.rows, 'row')}{split}, {shorten(self.reduction)}, "
            + counted(len(self), "metric"),
            verdict="" if verdict is None else verdict.sentence,
            lines=(verdict.other_view,) if verdict is not None and verdict.other_view else (),
            header=header,
            rows=tuple(rows),
            notes=tuple(f"{f.code} {f.message}" for f in self.findings),
        )

    def __iter__(self) -> Iterator[MetricResult]:
        return iter(self.metrics.values())

    def __len__(self) -> int:
        return len(self.metrics)

    def frame(self) -> pd.DataFrame:
        """Return a table with one row per metric: value, interval, noise floor, p-value, reason."""
        # Imported here: it takes half a second, which most commands can save.
        needs("pandas")
        import pandas as pd

        return pd.DataFrame(
            {
                "metric": r.key,
                "value": r.value,
                "low": r.interval.low if r.interval else math.nan,
                "high": r.interval.high if r.interval else math.nan,
                "noise_mean": r.noise_floor.mean if r.noise_floor else math.nan,
                "noise_q95": r.noise_floor.q95 if r.noise_floor else math.nan,
                "p_value": r.noise_floor.p_value if r.noise_floor else math.nan,
                "reason": r.reason,
            }
            for r in self
        ).set_index("metric")
