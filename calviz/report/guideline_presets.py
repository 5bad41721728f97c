"""Sets of sections recommended by published guidelines."""

from __future__ import annotations

from dataclasses import dataclass

from calviz.core.errors import NotAvailable, OptionError, shortened
from calviz.core.predictions import Dataset
from calviz.report.subject import Preset, Subject
from calviz.sample.cutoff import decidable
from calviz.sample.grades import grade_columns, grade_factor


@dataclass(frozen=True)
class PresetSections:
    """The sections of a preset.

    Attributes
    ----------
    label : str
    sections : tuple of str
        Keys of the sections, chosen by a published guideline.
    source : str
    """

    label: str
    sections: tuple[str, ...]
    source: str


PRESETS: dict[Preset, PresetSections] = {
    # AUROC, calibration plot, net benefit, distribution of the probabilities by outcome.
    "clinical": PresetSections(
        "clinical",
        (
            "verdict",
            "calibration-curve",
            "decisions",
            "metrics",
            "comparison",
            "provenance",
            "definitions",
        ),
        "Van Calster et al. 2025, what every validation of a clinical prediction model should hold",
    ),
    "credit": PresetSections(
        "credit",
        (
            "verdict",
            "grades",
            "calibration-curve",
            "decisions",
            "metrics",
            "provenance",
            "definitions",
        ),
        "ECB 2019, validation of internal models: calibration by grade, and discrimination",
    ),
}


def sections_of(preset: str, subject: Subject | None = None) -> tuple[str, ...]:
    """Return the keys of a preset's sections.

    Raises
    ------
    OptionError
        If there is no such preset, or `subject` lacks what the preset needs.
    """
    if preset not in PRESETS:
        raise OptionError(f"there is no preset '{preset}'; known: {', '.join(PRESETS)}.")
    if subject is not None:
        try:
            data = decidable(subject.sample).data
        except NotAvailable as reason:
            raise OptionError(f"the preset {preset}: {reason}") from None
        if preset == "credit":
            check_grades(data, subject.grades)
    return PRESETS[preset].sections


def check_grades(data: Dataset, column: str | None) -> None:
    """Raise OptionError unless there is a column of rating grades: `column`, or a recognised one."""
    if column is not None:
        grade_factor(data, column)
    elif not grade_columns(data):
        others = ", ".join(shortened(name) for name in data.groups)
        rest = (
            f"if one of its group columns ({others}) holds grades, name it with --grades, or on the page Decisions"
            if others
            else "add one, such as 'grade'"
        )
        raise OptionError(
            f"the preset credit needs a column of rating grades, and none of this file looks like one: {rest}."
        )
