"""Which model: several models on the same rows."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from calviz.comparison.models_words import HEADLINE, caution, headline, ranked_by
from calviz.core.comparison import BEST_IN_WORDS, TIED_WORDS, value_notes
from calviz.core.metric import METRICS
from calviz.core.model_comparison import ModelComparison, ModelResult
from calviz.core.units import scale_of
from calviz.core.words import decimal, percent, shorten
from calviz.core.written import Written
from calviz.figures import ModelDifferences
from calviz.report.blocks import Block, Chart, Mark, Note, Table, Text, chart
from calviz.report.section import SECTIONS, Section
from calviz.report.subject import Subject
from calviz.report.wording import WIDTH

#: The metrics whose differences are drawn, of those that were computed.
DRAWN = ("nll", "accuracy", "ece")


def make(subject: Subject) -> Iterator[Block]:
    """Who is best, how the rows were matched, the metrics, and the paired differences to the best."""
    found = subject.models
    if found is None:
        return
    keys = ranked_by(found)
    if keys:
        yield Text(headline(found, keys[0]))
        warning = caution(found, keys[0])
        if warning:
            yield Text(warning)
    for note in found.alignment.notes:
        yield Note(shorten(note, 500))
    worked = [m for m in found if m.ok]
    yield _table(found, worked)
    if keys:
        yield Note(
            f"Bold: best; ≈: {TIED_WORDS}; underlined: the best of the others. "
            f"Best in: {BEST_IN_WORDS}, by {METRICS[keys[0]].label}."
        )
    for name, key, note in value_notes({m.name: m.metrics for m in worked}, HEADLINE):
        yield Note(f"{METRICS[key].label} of {shorten(name, 60)}: {note}")
    for m in found:
        if not m.ok:
            yield Text(f"{shorten(m.name, 60)}: {shorten(m.reason or '', 300)}")
    drawn = [key for key in DRAWN if key in keys] or list(keys[:1])
    best = found.ranking(keys[0])[0] if keys else ""
    for key in drawn:
        yield _differences(found, key, best)


def _table(found: ModelComparison, worked: list[ModelResult]) -> Table:
    keys = [k for k in HEADLINE if k in found.directions and found.ranking(k)]
    columns: dict[str, list[str]] = {"model": [shorten(m.name, 60) for m in worked]}
    marks: dict[tuple[int, str], Mark] = {}
    places: tuple[Mark, ...] = ("best", "second")
    for key in keys:
        written = Written.column(m.metrics[key] for m in worked)
        unit = f" ({written.unit_words})" if written.unit_words else ""
        name = METRICS[key].label + unit
        tied = found.tied_with_best(key)[1:] if key in found.pairs else ()
        columns[name] = [
            written.of(m.metrics[key].value) + ("\u00a0≈" if m.name in tied else "") for m in worked
        ]
        rows = [m.name for m in worked]
        for models, place in zip(found.leaders(key), places, strict=True):
            marks |= {(rows.index(model), name): place for model in models}
    lead = next(iter(ranked_by(found)), None)
    if lead is not None:
        columns["best in"] = [
            percent(m.best_share[lead], 0) if lead in m.best_share else "" for m in worked
        ]
    return Table(
        "models",
        "Models on the same rows",
        pd.DataFrame(columns),
        found.frame().reset_index(),
        tuple(columns)[1:],
        marks,
    )


def _differences(found: ModelComparison, metric: str, reference: str) -> Chart:
    figure = ModelDifferences.compute(found, metric=metric, reference=reference)
    scale, unit = scale_of(metric, difference=True)

    def written(value: float) -> str:
        return decimal(scale * value, 2 if unit else 4)

    return chart(
        figure,
        key=f"models-{metric}",
        title=f"{METRICS[metric].label}, minus that of {shorten(reference)}",
        caption=figure.caption(),
        formats={
            "model": ("model", lambda name: shorten(name, 60)),
            "difference": (f"difference ({unit})" if unit else "difference", written),
            "low": ("95 % CI from", written),
            "high": ("to", written),
            "beyond_noise": ("beyond noise", str),
        },
        width=WIDTH,
    )


SECTIONS.register(
    Section("models", "Models side by side", 95, "Which model, on the same rows", make, shared=True)
)
