"""Findings, in plain words."""

from __future__ import annotations

from collections.abc import Iterator

from calviz.core.finding import worst_first
from calviz.report.blocks import Block, Findings, Text
from calviz.report.section import SECTIONS, Section
from calviz.report.subject import Subject


def make(subject: Subject) -> Iterator[Block]:
    """Yield the findings from reading the file and from the checks, worst first."""
    notices = subject.origin.notices if subject.origin else ()
    findings = worst_first((*notices, *subject.headline.findings))
    yield Findings(findings) if findings else Text("No check has anything to report.")


SECTIONS.register(
    Section("findings", "Findings", 20, "What the checks noticed, with codes", make, brief=True)
)
