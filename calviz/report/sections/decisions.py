"""Decisions by a cutoff: ROC, net benefit, and the scores by outcome."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from calviz.analysis import VALIDATION_METRICS, evaluate
from calviz.core.errors import NotAvailable
from calviz.figures.net_benefit import NetBenefit
from calviz.figures.outcome_histogram import OutcomeHistogram
from calviz.figures.roc import Roc
from calviz.report.blocks import Block, Cards, Heading, Note, TableBlock, Text, chart, spread
from calviz.report.chart_caption import WIDTH, caption
from calviz.report.section import SECTIONS, Section
from calviz.report.subject import Subject
from calviz.sample.cutoff import at_cutoff, decidable, net_benefit_of
from calviz.sample.sample import Sample
from calviz.text.words import decimal, percent, points, share_intervals, whole

#: Number of rows of the tables below the charts.
ROWS = 21
#: Cutoffs in the table of decisions.
CUTOFFS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)

_SHORT = {"positive predictive value": "PPV", "negative predictive value": "NPV"}


def make(subject: Subject) -> Iterator[Block]:
    """Yield the curves, and the results of decisions at some cutoffs; nothing if no single class is decided on."""
    try:
        sample = decidable(subject.sample)
    except NotAvailable:
        # With many classes, none is judged alone: nothing is missing from such a report.
        if subject.sample.data.n_classes != 2 and subject.sample.reduction.kind != "class":
            return
        raise
    yield from _trade_offs(subject, sample)
    yield from _net_benefit(subject, sample)
    yield _at_cutoffs(sample, subject.cutoff)
    intervals = share_intervals(sample.view(at_cutoff, cutoff=CUTOFFS[0]).alike)
    yield Note(
        f"Shares in % with 95 % intervals: {intervals}; PPV and NPV: positive and negative predictive value. A cutoff of t "
        "means that a missed hit is as bad as (1 - t) / t false alarms; net benefit weighs them accordingly."
    )
    yield Heading("What validations report")
    # The areas are given above.
    keys = [key for key in VALIDATION_METRICS if key not in ("auroc", "auprc")]
    yield Cards(tuple(evaluate(sample, keys, ci=True)), sample.data.rows)
    yield from _scores_by_outcome(subject, sample)


def _trade_offs(subject: Subject, sample: Sample) -> Iterator[Block]:
    """Yield the ROC and precision-recall curves, and what the cutoff of the subject means."""
    roc = sample.view(Roc.compute, **sample.redrawing)
    yield Text(roc.reading())
    cells = None
    if subject.cutoff is not None:
        cells = sample.view(at_cutoff, cutoff=subject.cutoff)
        yield Text(cells.meaning())
    share = {"sensitivity": "sensitivity", "false_alarms": "false alarms", "precision": "precision"}
    for panel, title in (("roc", "ROC curve"), ("precision-recall", "Precision and recall")):
        yield chart(
            roc,
            key=panel,
            title=title,
            caption=caption(subject, roc.reading()),
            formats={
                "cutoff": ("cutoff", decimal),
                **{name: (heading, percent) for name, heading in share.items()},
            },
            rows=spread(roc.cutoff.size, ROWS)[1:],
            panel=panel,
            at=cells,
            width=WIDTH,
        )


def _net_benefit(subject: Subject, sample: Sample) -> Iterator[Block]:
    """Yield the net benefit at all cutoffs."""
    benefit = sample.view(NetBenefit.compute, **sample.redrawing)
    yield Text(benefit.reading())
    yield chart(
        benefit,
        key="net-benefit",
        title="Net benefit",
        caption=caption(subject, benefit.reading()),
        formats={
            "cutoff": ("cutoff", lambda v: decimal(v, 2)),
            "net_benefit": ("net benefit", decimal),
            "net_benefit_low": ("95 % CI from", decimal),
            "net_benefit_high": ("to", decimal),
            "act_on_all": ("acting on everybody", decimal),
            "standardised": ("standardised", decimal),
            "avoided": ("actions avoided per 100", lambda v: decimal(v, 1)),
        },
        rows=spread(benefit.cutoff.size, ROWS),
        at=subject.cutoff,
        width=WIDTH,
    )


def _scores_by_outcome(subject: Subject, sample: Sample) -> Iterator[Block]:
    """Yield the histograms of the scores of hits and of misses."""
    figure = sample.view(OutcomeHistogram.compute, seed=sample.seed)
    yield Text(figure.describe().split(": ", 1)[-1])
    yield chart(
        figure,
        key="scores-by-outcome",
        title="Scores by outcome",
        caption=caption(subject),
        formats={
            "low": ("above", lambda v: decimal(v, 2)),
            "high": ("up to", lambda v: decimal(v, 2)),
            "hits": ("hits", whole),
            "misses": ("misses", whole),
        },
        width=WIDTH,
    )


def _at_cutoffs(sample: Sample, chosen: float | None) -> TableBlock:
    shown, numbers = [], []
    extra = () if chosen is None else (chosen,)
    for cutoff in sorted({*CUTOFFS, *extra}):
        c = sample.view(at_cutoff, cutoff=cutoff)
        net = float(net_benefit_of(c.tp, c.fp, c.n, cutoff))
        counts = {"tp": c.tp, "fp": c.fp, "fn": c.fn, "tn": c.tn}
        row = {"cutoff": cutoff, **{k: float(v) for k, v in counts.items()}}
        # Only what fits on a page; the numbers include all counts.
        text = {
            "cutoff": f"{cutoff:.3g}",
            "net benefit": decimal(net),
            "acted on": whole(float(c.tp + c.fp)),
        }
        for name, (value, low, high) in c.shares().items():
            row |= {name: value, f"{name} low": low, f"{name} high": high}
            ends = "" if low != low else f" ({points(low)} to {points(high)})"
            text[_SHORT.get(name, name)] = "–" if value != value else f"{points(value)}{ends}"
        numbers.append(row | {"net benefit": net})
        shown.append(text)
    frame = pd.DataFrame(shown)
    return TableBlock(
        "decisions",
        "Decisions at some cutoffs",
        frame,
        pd.DataFrame(numbers),
        list(frame.columns),
    )


SECTIONS.register(
    Section("decisions", "Decisions", 58, "ROC, net benefit, and scores by outcome", make)
)
