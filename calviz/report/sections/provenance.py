"""Data, settings and versions: everything needed to reproduce the numbers."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from dataclasses import fields
from importlib import metadata

from calviz.core.bins import DEFAULT_BINS
from calviz.core.reduction import Reduction
from calviz.core.version import __version__
from calviz.data import ReadingOptions
from calviz.report.blocks import Block, Facts, Heading
from calviz.report.section import SECTIONS, Section
from calviz.report.subject import Subject
from calviz.results.slices import where_words
from calviz.sample.error_bars import LEVEL, RESAMPLES
from calviz.text.words import counted, listed, share_intervals, shorten

#: Packages that determine numbers and charts.
PACKAGES = ("numpy", "scipy", "scikit-learn", "polars", "pyarrow", "pandas", "plotly")


def make(subject: Subject) -> Iterator[Block]:
    """Yield the file, the rows, the settings and the versions."""
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
        options = (
            ", ".join(_options(origin.options)) or "none: the format was recognised without options"
        )
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
    names = f" ({listed(data.class_names, most=10)})" if data.class_names else ""
    yield "Classes", f"{data.n_classes:,}{names}" if data.n_classes else "not in the file"
    yield "Scores", data.kind


def _options(options: ReadingOptions) -> Iterator[str]:
    for field in fields(options):
        value = getattr(options, field.name)
        if value != field.default:
            words = ", ".join(value) if isinstance(value, tuple) else str(value)
            yield f"{field.name.replace('_', ' ')}: {shorten(words, 200) or 'none'}"


def _settings(subject: Subject) -> Iterator[tuple[str, str]]:
    sample = subject.sample
    reduction = sample.reduction
    yield "Reduction", f"{shorten(reduction.label, 100)} ({shorten(reduction.key, 100)})"
    yield "Bins", sample.bins_words
    yield "Seed", str(sample.seed)
    yield "Resamples", f"{sample.resamples:,} for each interval and each noise floor"
    # As in the finding about the worst bin: counts of weighted or clustered rows are scaled to their effective number.
    of_bins = share_intervals(sample.data.alike)
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
    if sample.reduction != Reduction.default(sample.data):
        yield f"reduction {shorten(sample.reduction.key, 60)}"
    if sample.scheme != "equal-width":
        yield f"scheme {sample.scheme}"
    if sample.scheme != "sturges" and sample.bins != DEFAULT_BINS:
        yield counted(sample.bins, "bin")
    if sample.seed:
        yield f"seed {sample.seed}"
    if sample.resamples != RESAMPLES:
        yield f"{sample.resamples:,} resamples"
    if subject.error_bars is not None and subject.error_bars == sample.is_large:
        yield f"error bars of all metrics {'on' if subject.error_bars else 'off'}"
    if subject.origin is not None:
        yield from (f"reading: {text}" for text in _options(subject.origin.options))


def _versions() -> Iterator[str]:
    yield f"calviz {__version__}"
    yield f"Python {platform.python_version()}"
    for package in PACKAGES:
        try:
            version = metadata.version(package)
        except metadata.PackageNotFoundError:  # a report needs no pyarrow
            continue
        yield f"{package} {version}"


SECTIONS.register(
    Section(
        "provenance",
        "Data and provenance",
        90,
        "File, digest, settings and versions",
        make,
        brief=True,
    )
)
