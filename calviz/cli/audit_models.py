"""Audits of the models of a file, one after another: read, judged, printed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calviz.cli.text import say
from calviz.core.errors import OptionError

if TYPE_CHECKING:
    from calviz.cli.at_cutoff import DecisionOptions
    from calviz.data import LabelFile, Loaded, ReadingOptions
    from calviz.results.evaluation import Evaluation
    from calviz.sample.sample import Sample
    from calviz.specs.convention import Conventions


@dataclass(frozen=True)
class Audit:
    """Results for one model of one file."""

    file: str
    model: str
    loaded: Loaded
    sample: Sample
    evaluation: Evaluation
    conventions: Conventions | None = None


@dataclass(frozen=True)
class AuditOptions:
    """How files are read and judged, and what is printed."""

    reading: ReadingOptions
    labels: LabelFile | None
    models: tuple[str, ...]
    settings: Mapping[str, Any]
    decisions: DecisionOptions
    ci: bool
    conventions: bool
    by: str | None
    risk: float
    quiet: bool


def audits_of(file: str, options: AuditOptions) -> Iterator[Audit]:
    """Read a file, and judge and print model by model; large cached values of one are dropped before the next."""
    from calviz import analysis
    from calviz.sample.sample import Sample

    loaded = _read(file, options)
    for number, name in enumerate(options.models or loaded.models):
        sample = Sample.of(loaded.models[name], **options.settings)
        if options.by is not None:
            from calviz.figures.kernels.group_levels import check_column

            check_column(sample.data, options.by)
        options.decisions.check(sample)
        evaluation = analysis.evaluate(sample, ci=options.ci, **options.decisions.options)
        conventions = (
            analysis.conventions(sample, noise=options.ci) if options.conventions else None
        )
        audit = Audit(file, name, loaded, sample, evaluation, conventions)
        if not options.quiet:
            _print(audit, options, with_recognition=number == 0)
        yield audit
        sample.let_go()  # free memory for the next model


def _read(file: str, options: AuditOptions) -> Loaded:
    from calviz.data import read

    loaded = None
    if options.labels is None:
        loaded = _out_of_core(file, options.reading, quiet=options.quiet)
    if loaded is None:
        loaded = read(file, options=options.reading, labels=options.labels)
    unknown = [name for name in options.models if name not in loaded.models]
    if unknown:
        known = ", ".join(loaded.models)
        raise OptionError(f"there is no model '{unknown[0]}'; known: {known}.")
    return loaded


def _print(audit: Audit, options: AuditOptions, *, with_recognition: bool) -> None:
    from calviz.cli.audit_text import print_conventions, print_evaluation, print_recognition
    from calviz.cli.by_group import print_groups

    if with_recognition:
        print_recognition(audit.file, audit.loaded)
    print_evaluation(audit.evaluation, named=len(audit.loaded.models) > 1)
    options.decisions.print(audit.sample)
    if audit.conventions is not None:
        print_conventions(audit.conventions)
    if options.by is not None:
        print_groups(audit.sample, options.by, options.risk)


def _out_of_core(file: str, reading: ReadingOptions, *, quiet: bool) -> Loaded | None:
    """Load several files, or a file that does not fit into memory, as a profile; None for any other source."""
    from calviz.cli.progress import showing_progress
    from calviz.data.profile_files import loaded
    from calviz.data.profiling.sources import why_out_of_core
    from calviz.data.profiling.summarise import options_and_time, profile

    why = why_out_of_core(file)
    if not why:
        return None
    if not quiet:
        say(f"{file}: {why}, so it is summed part by part and judged from its profile.")
    options, time, every = options_and_time(reading)
    with showing_progress():
        summed = profile([file], by=reading.groups or (), time=time, every=every, **options)
    return loaded(summed, Path(file).name)
