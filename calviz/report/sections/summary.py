"""What a report says first, and what it rests on: the verdict, the metrics, their definitions, the data."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import fields
from functools import partial
from importlib import metadata
from typing import Any, Literal

import numpy as np
import pandas as pd

from calviz.comparison.advice import moved_words
from calviz.comparison.comparison_results import Advice, Comparison
from calviz.comparison.fitting import BeforeAfter, before_and_after
from calviz.core import __version__, entry_specs, events, words
from calviz.core.entry_specs import LEVEL, METRICS, UNCALIBRATED, Metric, MetricResult, shown_first
from calviz.core.errors import RESAMPLES, CalvizError, NotAvailable, picked, worst_first
from calviz.core.words import counted, percent, points_cell, range_end, shorten, whole
from calviz.figures.bin_sensitivity import EceByLibrary
from calviz.figures.hundred_squares import Bullet, HundredSquares
from calviz.report import content
from calviz.report.content import Block, Facts, Heading, Note, Subject, TableBlock, Text, section
from calviz.sample.sample import rows_where, where_words
from calviz.verdicts import analysis
from calviz.verdicts.evaluation import Verdict, Written, alone, missing, remarks
from calviz.verdicts.miscalibration_checks import where_to_look

_TONES: dict[str, Literal["good", "bad", "open"]] = {
    "over": "bad",
    "under": "bad",
    "mixed": "bad",
    "off": "bad",
    "calibrated": "good",
}


@section("verdict", "Verdict", 10, brief=True)
def make_verdict(subject: Subject) -> Iterator[Block]:
    """The verdict in the words of Overview, and five metrics with their error bars."""
    verdict = subject.verdict
    tone = _TONES.get(verdict.direction, "open") if verdict.tells_apart else "open"
    yield content.Lead(verdict.headline, tone, subject.sample.words)
    if more := verdict.beyond_headline:
        yield Text(more)
    if verdict.other_view:
        yield Text(verdict.other_view)
    yield content.Cards(tuple(subject.headline), subject.sample.data.rows, verdict)
    yield Note(
        "Points are percentage points; noise is what a calibrated model would show on as many rows."
    )


@section("explained", "In plain words", 15)
def make_explained(subject: Subject) -> Iterator[Block]:
    """Five sentences without a symbol, and a picture.

    Yield the meaning of the verdict, what to do, and what is promised for a hundred rows.
    """
    yield Text(" ".join(analysis.explain(subject.sample)))
    if subject.verdict.rows > 1:
        figure = HundredSquares.compute(subject.verdict, subject.sample)
        share = partial(percent, decimals=figure.decimals)
        yield content.chart(
            figure,
            key="of-a-hundred",
            title="Of a hundred rows",
            caption=content.caption(subject, "Of a hundred rows"),
            formats={
                "rows_of": ("Which rows", str),
                "rows": ("Rows", whole),
                "promised": ("Promised", share),
                "happened": ("Happened", share),
                "to_expect": ("To expect", share),
            },
        )


@section("findings", "Findings", 20, brief=True)
def make_findings(subject: Subject) -> Iterator[Block]:
    """What the checks noticed, with codes."""
    notices = subject.origin.notices if subject.origin else ()
    findings = worst_first((*notices, *subject.headline.findings))
    yield content.Findings(findings) if findings else Text("No check has anything to report.")


@section("where-to-look", "Where to look", 36, on_request=True)
def make_where_to_look(subject: Subject) -> Iterator[Block]:
    """What is off where, in few words, as on the Overview."""
    for finding in shown_first(where_to_look(subject.headline)):
        yield Text(words.full_sentence(finding.short or finding.message))


# ---- What recalibration would bring


def fix_words(before: MetricResult, after: MetricResult, rows: int, label: str, plain: bool) -> str:
    """Say what a recalibrator makes of the ECE of so many judged rows, with the decimals of the ECE before; `plain` without terms."""
    ece, what = ("average gap", ", a simple correction,") if plain else ("ECE", "")
    written = Written(before)
    then = written.of(after.value)
    ece += f" of the {counted(rows, 'row')} it was not fitted on"
    # Beside one of the numbers it would be read of the gain.
    both = {", the first": before, ", the second": after}
    calm = [n for n, r in both.items() if r.noise_floor and r.value <= r.noise_floor.q95]
    noise = ", both" if len(calm) == 2 else "".join(calm)
    if then == written.value:
        way, noise = f"would leave the {ece} at {then} points", "," * (", the second" in calm)
    elif after.value > before.value:
        way = f"alone would not lower the {ece}: {written.value} points before, {then} after"
    else:
        way = f"would take the {ece} from {written.value} to {then} points"
    return f"{label}{what} {way}{noise and f'{noise} within the noise of a calibrated model'}."


def advice_words(
    comparison: Comparison, advice: Advice, key: str, plain: bool = False
) -> tuple[str, ...]:
    """Say what the advised recalibrator makes of the ECE if that is better beyond noise, or else of the criterion, and its cautions; empty if there is none."""
    chosen = comparison[advice.method]
    if chosen.key == UNCALIBRATED:
        return ()
    # Which others are within one standard error, the reasons say.
    brought = advice.reasons[2 if advice.caveat else 1].split("; also ")[0].rstrip(".") + "."
    if (change := chosen.differences.get(key)) and change.verdict == "better":
        # The comparison has no noise floors; those of two methods take a few hundredths of a second.
        how: Any = {"noise_floor": True, **picked(comparison, "reduction bins scheme")}
        before, after = (
            m.metrics[key]
            if m.calibrated is None
            else analysis.evaluate(m.calibrated, [key], **how)[key]
            for m in (comparison[UNCALIBRATED], chosen)
        )
        brought = fix_words(before, after, comparison.evaluation.rows, chosen.label, plain)
    return brought, *advice.cautions


def advised(
    comparison: Comparison, advice: Advice, verdict: Verdict, key: str, plain: bool = False
) -> tuple[str, str]:
    """Return the advice of a comparison, or why it gives way to a change in time, and below it what that brings on which rows."""
    change = " ".join(advice_words(comparison, advice, key, plain))
    if not advice.given:
        change = advice.reasons[bool(advice.caveat)]
    not_new = words.ENDED if verdict.ended else words.NOT_SINCE
    caveat = not_new if verdict.changed and not verdict.changed_where else advice.caveat
    if caveat and change:
        change = f"All rows together: {change}"
    rows = "" if plain else f"Maps are {comparison.rows_words()}."
    return caveat or f"{advice.headline}.", f"{change} {rows}".strip()


def fixed_rows_words(done: BeforeAfter) -> str:
    """Say which rows a recalibrator was fitted and judged on."""
    judged = f"{done.evaluation.words}, which no fit has seen"
    rows = f"{entry_specs.RECALIBRATORS[done.method].label} is fitted on {done.fit.words}; before and after are of {judged}."
    moved = moved_words(done.method, done.before, done.after)
    return " ".join(filter(None, (rows, *done.warnings, moved)))


def no_fix_words(verdict: Verdict) -> str:
    """Say that nothing is found that one map of few parameters corrects for all rows; "" if there is."""
    if verdict.elsewhere:
        return f"{verdict.alone} Group-wise calibration moves it by itself."
    where = (verdict.off_in or ("",))[0] if verdict.named_where else ""
    if verdict.ended:
        return words.ENDED
    if verdict.changed_where:
        where = f"{where_words(verdict.changed_where)} since {verdict.changed_days[0]}"
    if where:
        return verdict.own_map(where)
    if verdict.changed:
        return words.NOT_SINCE
    if verdict.classes_off:
        return "What is off are classes, not all rows: methods with parameters for each class may correct that."
    if verdict.direction not in ("calibrated", "undecided"):
        return ""
    return "No need of a correction is shown: no miscalibration was found on these rows."


def simple_words(verdict: Verdict) -> str:
    """What is said of a recalibrator that was not compared with others."""
    apart = "One map moves all rows alike: slices that are off by another amount than the rest may stay so. "
    return apart * bool(verdict.slices_off) + "A comparison of more methods may advise another."


@section("fix", "What recalibration would bring", 14, earlier="What a correction would bring")
def make_fix(subject: Subject) -> Iterator[Block]:
    """The ECE after a recalibrator with few parameters.

    Yield the advice of the comparison or, without one, what a cheap recalibrator makes of the ECE.
    """
    sample = subject.sample
    comparison = subject.comparison
    if comparison is not None and comparison.advice is not None:
        lead, below = advised(comparison, comparison.advice, subject.verdict, sample.ece_key)
        yield content.Lead(lead, below=below)
        return
    if why := no_fix_words(subject.verdict):
        yield Text(why)
        return
    whole = sample.data if subject.whole is None else subject.whole
    try:
        done = before_and_after(
            whole,
            eval_split=sample.split,
            within=None if subject.whole is None else rows_where(whole, sample.where),
            seed=sample.seed,
        )
    except CalvizError as reason:
        raise NotAvailable(f"no recalibration was tried: {reason}") from None
    key = sample.ece_key
    after, before = (
        analysis.evaluate(sample.with_data(data), [key], noise_floor=True)[key]
        for data in (done.after, done.before)
    )
    label = entry_specs.RECALIBRATORS[done.method].label
    fix = fix_words(before, after, done.evaluation.rows, label, plain=False)
    yield content.Lead(fix, below=f"{fixed_rows_words(done)} {simple_words(subject.verdict)}")


@section("worst-rows", "Worst rows", 35, on_request=True)
def make_worst_rows(subject: Subject) -> Iterator[Block]:
    """Wrong predictions, the most confident first.

    Yield the most confident wrong predictions; nothing for a profile, which holds no rows.
    """
    data, scored = subject.sample.data, subject.sample.top_scored
    if data.cells is not None:
        return
    wrong = np.flatnonzero(~scored.hit)
    # Rows in the table of the worst.
    rows = wrong[np.argsort(-scored.score[wrong], kind="stable")][:5]
    if rows.size == 0:
        yield Text("No prediction is wrong.")
        return
    columns: dict[str, object] = {}
    if data.ids is not None:
        columns[shorten(data.id_name, 40)] = [shorten(str(data.ids[i]), 40) for i in rows]
    elif (file := subject.whole) is not None:
        kept = np.ones(file.n, dtype=np.bool_)
        if (split := subject.sample.split) is not None and file.splits is not None:
            kept &= file.splits.mask(split)
        where = rows_where(file, subject.sample.where)
        numbers = np.flatnonzero(kept if where is None else kept & where)
        if numbers.size == data.n:
            row_numbers = numbers if data.file_rows is None else data.file_rows
            columns["row"] = [whole(n + 1) for n in row_numbers[rows]]
    if data.labels is not None and data.class_names:
        columns["true class"] = [shorten(data.class_names[data.labels[i]], 40) for i in rows]
    predicted = data.predicted
    if predicted is not None and data.class_names:
        columns["predicted"] = [shorten(data.class_names[predicted[i]], 40) for i in rows]
    columns["confidence"] = [percent(float(scored.score[i])) for i in rows]
    yield TableBlock(
        "worst-rows",
        f"The {counted(rows.size, 'most confident wrong prediction')} of {wrong.size:,}",
        pd.DataFrame(columns),
        right=[name for name in ("row", "confidence") if name in columns],
    )


def _in_table(subject: Subject) -> list[Metric]:
    """The metrics of the table, by family."""
    two = subject.preset == "credit" and subject.sample.data.n_classes == 2
    # One of two classes is the other turned: numbers that count classes say nothing.
    void = ("Class-wise", "Over- and underconfidence") if two else ()
    of = {f: [m for m in METRICS if m.family == f] for f in content.families()}
    return [m for f in of for m in of[f] if m.key == "mcs" or f not in void]


@section("metrics", "All metrics", 80)
def make_metrics(subject: Subject) -> Iterator[Block]:
    """Every number, with interval and noise floor.

    Yield one table of all metrics by family and, below it, why some have no value.
    """
    results = {m.key: subject.evaluation[m.key] for m in _in_table(subject)}
    available = {key: r for key, r in results.items() if r.available}
    shown = content.written_columns(available, subject.verdict)
    families = [METRICS[key].family for key in available]
    yield TableBlock(
        "metrics",
        "All metrics",
        shown,
        content.metric_numbers(results),
        [c for c in shown.columns if c in content.NUMBER_COLUMNS],
        groups={families.index(family): family for family in families},
        bullets=[Bullet.of(r) for r in available.values()] if subject.has_error_bars else [],
        one_scale=False,
    )
    yield Note(
        "Noise: the same metric if the model were perfectly calibrated, with the same number of rows: its mean, and what "
        "95 % of calibrated models stay below. p-value: how often such a model shows a value at least as "
        f"extreme. Calibration metrics look at the {subject.sample.reduction.label}, binned ones at "
        f"{subject.sample.bins_words} unless their name says otherwise; ECE², debiased, has bins of equal mass. "
        f"{alone(subject.verdict)}"
    )
    if not subject.has_error_bars:
        yield Note(
            "The data are large: intervals and noise floors are computed for the headline metrics only."
        )
    if notes := remarks(results.values()):
        yield Facts(notes)
    if reasons := missing(results.values()):
        yield Heading("Without a value")
        yield Facts(reasons)


@section("definitions", "What the numbers mean", 100, shared=True, brief=True)
def make_definitions(subject: Subject) -> Iterator[Block]:
    """Meaning, formula and source of each metric."""
    yield Note("Score: the probability that the model gives; hit: whether its event happened.")
    yield content.Terms(
        tuple(
            content.Term(
                m.label,
                m.summary.replace("``", ""),
                m.formula,
                m.reference,
                f"better: {entry_specs.DIRECTION_WORDS[m.direction]}; range {range_end(m.bounds[0])} to {range_end(m.bounds[1])}",
            )
            for m in _in_table(subject)
        )
    )


_POINTS = partial(points_cell, decimals=2)


@section("conventions", "What other libraries call ECE", 75)
def make_conventions(subject: Subject) -> Iterator[Block]:
    """The same data's ECE by library.

    Yield one row per library: its value, the difference from calviz's, and the reason.
    """
    values = analysis.conventions(subject.sample)
    dots = EceByLibrary.of(values)
    yield Text(dots.describe())
    yield content.chart(
        dots,
        key="conventions-drawn",
        title="ECE by library",
        caption=content.caption(subject),
        formats={
            "library": ("library", str),
            "call": ("function", str),
            "value": ("ECE (points)", _POINTS),
            "noise_mean": ("if calibrated (points)", _POINTS),
        },
    )
    available = [v for v in values if v.available]
    shown = pd.DataFrame(
        {
            "library": [f"{v.convention.library} {v.convention.version}" for v in available],
            "function": [v.convention.call for v in available],
            "ECE (points)": [points_cell(v.value, 2) for v in available],
            "minus calviz's": [words.signed_points(v.value - values.ece, 2) for v in available],
            "why": [v.convention.why for v in available],
        }
    )
    right = ("ECE (points)", "minus calviz's")
    yield TableBlock("conventions", "Libraries", shown, values.frame().reset_index(), right)
    yield Note(
        "With the defaults of each library: calviz computes them with its own code, written from their documentation "
        "and checked against the versions named."
    )
    missing = [v for v in values if not v.available]
    if missing:
        yield Heading("Without a value")
        yield Facts(
            tuple(
                (f"{v.convention.library} {v.convention.call}", v.reason or "undefined.")
                for v in missing
            )
        )


#: Packages that determine numbers and charts.
PACKAGES = ("numpy", "scipy", "scikit-learn", "polars", "pyarrow", "pandas", "plotly")


@section("provenance", "Data and provenance", 90, brief=True)
def make_provenance(subject: Subject) -> Iterator[Block]:
    """File, digest, settings and versions."""
    yield Heading("Data")
    yield Facts(tuple(_data(subject)))
    yield Heading("Settings")
    yield Facts(tuple(_settings(subject)))


def _data(subject: Subject) -> Iterator[tuple[str, str]]:
    sample, origin = subject.sample, subject.origin
    data = sample.data
    if origin is not None:
        yield "File", f"{shorten(origin.file, 200)} ({origin.size:,} bytes)"
        yield "Digest", f"BLAKE2b {origin.digest}"
        yield "Recognised", shorten(origin.recognised, 1_000)
        options = ", ".join(_options(origin)) or "none: the format was recognised without options"
        yield "Options given for the file", options
        yield "Repairs", "; ".join(shorten(r, 200) for r in origin.repairs) or "none"
    else:
        yield "Fingerprint of the rows", data.fingerprint()
    yield "Predictions", shorten(data.name, 100) or "without a name"
    whole = f" of {origin.rows:,}" if origin is not None and origin.rows != data.rows else ""
    yield "Evaluation rows", f"{data.rows:,}{whole}"
    yield "Split", shorten(sample.split, 60) if sample.split is not None else "all rows"
    if sample.where:
        yield "Slice", where_words(sample.where)
    names = f" ({words.listed(data.class_names, most=10)})" if data.class_names else ""
    yield "Classes", f"{data.n_classes:,}{names}" if data.n_classes else "not in the file"
    yield "Scores", data.kind


def _options(origin: content.Origin) -> Iterator[str]:
    for field in fields(origin.options):
        value = getattr(origin.options, field.name)
        if value != field.default:
            written = ", ".join(value) if isinstance(value, tuple) else str(value)
            yield f"{field.name.replace('_', ' ')}: {shorten(written, 200) or 'none'}"


def _settings(subject: Subject) -> Iterator[tuple[str, str]]:
    sample = subject.sample
    reduction = sample.reduction
    yield "Reduction", f"{shorten(reduction.label, 100)} ({shorten(reduction.key, 100)})"
    yield "Bins", sample.bins_words
    yield "Seed", str(sample.seed)
    yield "Resamples", f"{sample.resamples:,} for each interval and each noise floor"
    # As in the finding about the worst bin: counts of weighted or clustered rows are scaled to their effective number.
    of_bins = words.share_intervals(sample.data.alike)
    yield (
        "Intervals",
        f"{100 * LEVEL:g} %, bootstrap, by the method that suits each metric; for bins, {of_bins}",
    )
    yield "Other than the defaults", ", ".join(_changed(subject)) or "nothing"
    yield "Versions", ", ".join(_versions())


def _changed(subject: Subject) -> Iterator[str]:
    sample = subject.sample
    if sample.split is not None:
        yield f"split {shorten(sample.split, 60)}"
    if sample.where:
        yield f"slice {where_words(sample.where)}"
    if sample.reduction != events.Reduction.default(sample.data):
        yield f"reduction {shorten(sample.reduction.key, 60)}"
    if sample.scheme is not None:
        yield f"scheme {sample.scheme}"
    if sample.scheme != "sturges" and sample.bins != events.DEFAULT_BINS:
        yield counted(sample.bins_used, "bin")
    if sample.seed:
        yield f"seed {sample.seed}"
    if sample.resamples != RESAMPLES:
        yield f"{sample.resamples:,} resamples"
    if subject.error_bars is not None and subject.error_bars == sample.is_large:
        yield f"error bars of all metrics {'on' if subject.error_bars else 'off'}"
    if subject.origin is not None:
        yield from (f"reading: {text}" for text in _options(subject.origin))


def _versions() -> Iterator[str]:
    yield f"calviz {__version__}"
    yield f"Python {platform.python_version()}"
    for package in PACKAGES:
        try:
            version = metadata.version(package)
        except metadata.PackageNotFoundError:  # a report needs no pyarrow
            continue
        yield f"{package} {version}"
