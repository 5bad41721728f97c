"""What fixes it: recalibrators side by side, on rows that they were not fitted to."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from calviz.comparison.advice import CRITERIA, advise
from calviz.comparison.fitting import UNCALIBRATED
from calviz.core.comparison import (
    TIED_WORDS,
    Comparison,
    MethodResult,
    refit_words,
    value_notes,
    zeros_read,
)
from calviz.core.metric import METRICS
from calviz.core.reduction import Reduction
from calviz.core.slices import where_words
from calviz.core.words import decimal, decimals_for, percent, shorten
from calviz.core.written import Written
from calviz.figures import Reliability
from calviz.report.blocks import Block, Chart, Facts, Heading, Lead, Mark, Note, Table, Text, chart
from calviz.report.section import SECTIONS, Section
from calviz.report.sections.reliability import COLUMNS
from calviz.report.subject import Subject
from calviz.report.wording import WIDTH, caption, count

#: The columns of the table, of those that were computed.
SHOWN = ("accuracy", "nll", "brier", "ece", "ks", "smece", "classwise_ece")
#: The metric that chooses which method is drawn where the advice is to leave the model as it is.
CHOSEN_BY = "nll"


def make(subject: Subject) -> Iterator[Block]:
    """The table of methods, what was not told apart, and the diagrams before and after the best."""
    found = subject.comparison
    if found is None:
        return
    if found.in_sample:
        yield Lead("In-sample: judged on rows that fitted the maps.", "bad")
    yield Facts(
        (
            *((("Slice", where_words(subject.slice)),) if subject.slice else ()),
            ("Fitted on", f"{found.fit.rows:,} rows ({shorten(found.fit.how, 80)})"),
            ("Judged on", f"{found.evaluation.rows:,} rows ({shorten(found.evaluation.how, 80)})"),
            ("Reduction", shorten(Reduction.of(found.reduction).label, 100)),
            ("Seed", str(found.seed)),
        )
    )
    worked = [m for m in found if m.ok]
    advice = advise(found, subject.data) if any(found.tied.get(c) for c in CRITERIA) else None
    if advice is not None:
        left = advice.method == UNCALIBRATED
        take = "leave the model as it is" if left else found[advice.method].label
        yield Lead(f"Advice: {take}.", below=" ".join(advice.reasons))
    yield _table(found, worked)
    yield Note(
        f"Bold: best, or {TIED_WORDS}; underlined: the best of the others. Values are on the rows that judged; lower is better for all but "
        "accuracy. Gain: mean squared error before minus after; ≥ where the method may change predictions."
        + (f" What is not told apart: {refit_words(found.refits)}." if found.tied else "")
    )
    for name, key, note in value_notes({m.label: m.metrics for m in worked}, SHOWN):
        yield Note(f"{METRICS[key].label} of {name}: {note}")
    tied = [
        (METRICS[key].label, ", ".join(found[name].label for name in names))
        for key, names in found.tied.items()
        if key in SHOWN and len(names) > 1
    ]
    if tied:
        yield Heading(TIED_WORDS[0].upper() + TIED_WORDS[1:])
        yield Facts(tuple(tied))
    said = [(m.label, shorten(m.reason or "", 300)) for m in found if not m.ok]
    said += [(m.label, shorten(text, 300)) for m in worked for text in m.warnings]
    said += [(", ".join(m.label for m in of), text) for text, of in zeros_read(worked).items()]
    if said:
        yield Heading("What the fits had to say")
        yield Facts(tuple(said))
    yield from _diagrams(subject, found, advice.method if advice else UNCALIBRATED)


def _table(found: Comparison, worked: list[MethodResult]) -> Table:
    keys = [key for key in SHOWN if key in found.directions and found.ranking(key)]
    names = {key: _heading(key, worked) for key in keys}
    marks: dict[tuple[int, str], Mark] = {}
    columns: dict[str, list[str]] = {"method": [m.label for m in worked]}
    for key in keys:
        places: dict[Mark, tuple[str, ...]] = dict(
            zip(("best", "second"), found.leaders(key), strict=True)
        )
        same = Written.column(m.metrics[key] for m in worked)
        columns[names[key]] = [same.of(m.metrics[key].value) for m in worked]
        for row, m in enumerate(worked):
            for mark, at in places.items():
                if m.key in at:
                    marks[row, names[key]] = mark
    columns["predictions changed"] = [count(m.predictions_changed) for m in worked]
    digits = decimals_for(*(m.calibration_gain for m in worked), least=4, most=6)
    columns["gain"] = [
        f"{'≥ ' if m.gain_is_lower_bound else ''}{decimal(m.calibration_gain, digits)}"
        for m in worked
    ]
    # Times are left out: they differ from run to run, and a report does not.
    numbers = found.frame().drop(columns=["fit_seconds", "apply_seconds"]).reset_index()
    shown = pd.DataFrame(columns)
    return Table("comparison", "Recalibrators", shown, numbers, tuple(columns)[1:], marks)


def _heading(key: str, worked: list[MethodResult]) -> str:
    unit = Written(worked[0].metrics[key]).unit_words if worked else ""
    return f"{METRICS[key].label} ({unit})" if unit else METRICS[key].label


def _diagrams(subject: Subject, found: Comparison, advised: str) -> Iterator[Block]:
    ranked = found.ranking(CHOSEN_BY) if CHOSEN_BY in found.directions else ()
    best = found[ranked[0]] if ranked else None
    why = "has the lowest NLL"
    if advised != UNCALIBRATED:
        best, why = found[advised], "is the advice"
    before = found.methods.get("identity")
    if best is None or best.calibrated is None or before is None or best is before:
        return
    yield Heading(f"Before and after {best.label}, which {why}")
    for name, method in (("before", before), ("after", best)):
        if method.calibrated is not None:
            yield _diagram(subject, method, name)
    accuracy = [Written(m.metrics["accuracy"]) for m in (before, best) if "accuracy" in m.metrics]
    if len(accuracy) == 2:
        yield Text(
            f"Predictions changed: {count(best.predictions_changed)} of {found.evaluation.rows:,}; accuracy "
            f"{percent(accuracy[0].result.value)} before, {percent(accuracy[1].result.value)} after."
        )


def _diagram(subject: Subject, method: MethodResult, name: str) -> Chart:
    assert method.calibrated is not None
    diagram = Reliability.compute(
        method.calibrated,
        reduction=subject.reduction,
        bins=subject.bins,
        scheme=subject.scheme,
        seed=subject.seed,
    )
    return chart(
        diagram,
        key=f"reliability-{name}",
        title=f"Reliability {name}: {method.label}",
        caption=caption(subject, method.label),
        formats=COLUMNS,
        width=WIDTH,
    )


SECTIONS.register(
    Section(
        "comparison", "Recalibration", 70, "Methods side by side, where they were compared", make
    )
)
