"""The outputs of ``calviz audit``: tests of a build server, JSON and a report."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from calviz.cli.command_group import CROSSED, FINE, WRONG
from calviz.cli.output_options import write_json
from calviz.cli.text import say, sentence_on
from calviz.core.atomic_files import write_output
from calviz.core.errors import CalvizError
from calviz.report.junit import CaseOutcome, Gate, to_junit

if TYPE_CHECKING:
    from calviz.cli.audit_models import Audit, AuditOptions
    from calviz.cli.fail_on import Threshold
    from calviz.cli.report_options import Documents
    from calviz.report.document import Part
    from calviz.report.subject import Preset


@dataclass
class Outputs:
    """What is written at the end: tests of a build server, JSON and a report; collected model by model."""

    options: AuditOptions
    thresholds: list[Threshold]
    json_path: str | None
    junit_path: str | None
    documents: Documents
    preset: Preset | None
    several_files: bool
    gates: list[Gate] = field(default_factory=list)
    records: list[dict[str, Any]] = field(default_factory=list)
    parts: list[Part] = field(default_factory=list)
    failed: bool = False

    def add(self, audit: Audit) -> None:
        """Add what was found about a model."""
        self.gates += _gates(audit, self.thresholds)
        if self.json_path is not None:
            self.records.append(_record(audit, self.options))
        if self.documents:
            self.parts.append(_part(audit, self.options, self.preset, named=self.several_files))

    def add_comparison(self, audits: list[Audit]) -> None:
        """Add the comparison of the models of the only file; it is shown once, in the first part."""
        if self.documents and not self.several_files and self.preset is None and len(audits) > 1:
            self.parts[0] = _with_models(self.parts[0], audits, self.options)

    def add_failure(self, file: str, error: CalvizError | OSError) -> None:
        """Add, and say, why a file cannot be used."""
        reason = sentence_on(error, file)
        say(reason)
        self.gates.append(Gate(file, "", "audit", "error", reason))
        self.failed = True

    def write(self) -> int:
        """Write everything, and return the exit code."""
        if self.junit_path is not None:
            write_output(self.junit_path, to_junit(self.gates))
        if self.failed:
            return WRONG
        if self.json_path is not None:
            one = not self.several_files and len(self.records) == 1
            write_json(self.records[0] if one else self.records, self.json_path)
        if self.documents:
            from calviz.report.document import bind

            self.documents.write(bind(self.parts))
        return CROSSED if any(gate.outcome == "failure" for gate in self.gates) else FINE


def _gates(audit: Audit, thresholds: list[Threshold]) -> Iterator[Gate]:
    """Yield the verdict as a gate that always passes, then each threshold; crossed ones go to standard error."""
    several = len(audit.loaded.models) > 1
    model = audit.evaluation.name if several else ""
    source = f"{audit.file}, {model}" if several else audit.file
    verdict = audit.evaluation.verdict
    yield Gate(audit.file, model, "audit", text=verdict.sentence if verdict else "")
    for threshold in thresholds:
        crossing = threshold.crossed(audit.evaluation)
        if crossing:
            say(f"{source}: {crossing}.")
        outcome: CaseOutcome = "failure" if crossing else "passed"
        yield Gate(audit.file, model, str(threshold), outcome, crossing or "")


def _record(audit: Audit, options: AuditOptions) -> dict[str, Any]:
    from calviz.report.json import audit_record, convention_records

    extra: dict[str, Any] = options.decisions.record(audit.sample)
    if audit.conventions is not None:
        extra["conventions"] = convention_records(audit.conventions)
    verdict = audit.evaluation.verdict
    assert verdict is not None  # an evaluation of all metrics includes findings and verdict
    return audit_record(
        audit.evaluation,
        file=audit.file,
        notices=audit.loaded.notices,
        verdict=verdict.sentence,
        other_view=verdict.other_view,
        recognised=audit.loaded.recognition.sentence(),
        repairs=audit.loaded.repairs_made,
        digest=audit.loaded.digest,
        seed=audit.sample.seed,
        resamples=audit.sample.resamples if options.ci else None,
        **extra,
    )


def _part(audit: Audit, options: AuditOptions, preset: Preset | None, *, named: bool) -> Part:
    """The part of a report about a model; `named`: whether its title names the file in any case."""
    from calviz.report.document import make_part
    from calviz.report.guideline_presets import sections_of
    from calviz.report.subject import Origin, Subject

    several = len(audit.loaded.models) > 1
    names = [audit.loaded.file] * (named or not several) + [audit.sample.data.name] * several
    subject = Subject(
        audit.sample,
        title=", ".join(names),
        error_bars=True if options.ci else None,
        origin=Origin.of(audit.loaded, options.reading),
        preset=preset,
        cutoff=options.decisions.cutoff,
        grades=options.decisions.grades,
    )
    return make_part(subject, sections=sections_of(preset, subject) if preset else None)


def _with_models(part: Part, audits: list[Audit], options: AuditOptions) -> Part:
    """Add the section that compares the models of a file."""
    from calviz.comparison import compare_models
    from calviz.report.document import with_section
    from calviz.report.subject import Subject

    comparison = compare_models(
        {audit.model: audit.loaded.models[audit.model] for audit in audits},
        samples={audit.model: audit.sample for audit in audits},
        **options.settings,
    )
    return with_section(part, "models", Subject(audits[0].sample, models=comparison))
