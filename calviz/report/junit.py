"""Gates as JUnit XML, which CI servers show as tests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree as Xml

from calviz.core.errors import visible

CaseOutcome = Literal["passed", "failure", "error"]


@dataclass(frozen=True)
class Gate:
    """One condition on one model of one file.

    Attributes
    ----------
    file, model : str
    name : str
        The condition ("ece>0.05"), or what was done ("audit").
    outcome : {"passed", "failure", "error"}
        Condition met, violated, or not evaluated.
    text : str
        A sentence on the outcome.
    """

    file: str
    model: str
    name: str
    outcome: CaseOutcome = "passed"
    text: str = ""


def to_junit(gates: Iterable[Gate]) -> str:
    """Write gates as XML, one suite per file; names and sentences are escaped.

    Examples
    --------
    >>> print(to_junit([Gate("a.csv", "MLP", "ece>0.05", "failure", "ece is 0.1")]))
    <?xml version="1.0" encoding="UTF-8"?>
    <testsuites name="calviz" tests="1" failures="1" errors="0">
      <testsuite name="a.csv" tests="1" failures="1" errors="0">
        <testcase classname="a.csv.MLP" name="ece&gt;0.05">
          <failure message="ece is 0.1" />
        </testcase>
      </testsuite>
    </testsuites>
    <BLANKLINE>
    """
    suites: dict[str, list[Gate]] = {}
    for gate in gates:
        suites.setdefault(gate.file, []).append(gate)
    everything = [gate for suite in suites.values() for gate in suite]
    root = Xml.Element("testsuites", {"name": "calviz", **_counts(everything)})
    for file, suite in suites.items():
        element = Xml.SubElement(root, "testsuite", {"name": visible(file), **_counts(suite)})
        for gate in suite:
            place = ".".join(visible(part) for part in (file, gate.model) if part)
            case = Xml.SubElement(element, "testcase", classname=place, name=visible(gate.name))
            if gate.outcome != "passed":
                Xml.SubElement(case, gate.outcome, message=visible(gate.text))
            elif gate.text:
                Xml.SubElement(case, "system-out").text = visible(gate.text)
    Xml.indent(root)
    text = Xml.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _counts(gates: list[Gate]) -> dict[str, str]:
    outcomes = [gate.outcome for gate in gates]
    return {
        "tests": str(len(gates)),
        "failures": str(outcomes.count("failure")),
        "errors": str(outcomes.count("error")),
    }
