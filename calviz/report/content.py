"""What a report consists of: blocks, the subject that it is about, sections and presets, and tables of metrics."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import pandas as pd

from calviz.comparison import comparison_results, learning_curves
from calviz.core import entry_specs, errors, predictions, registry
from calviz.core.entry_specs import DIRECTION_WORDS, FAMILIES, METRICS, MetricResult
from calviz.core.words import share_cell, shorten, signed_points, whole
from calviz.data import Loaded, ReadingOptions
from calviz.figures.figure import Figure
from calviz.figures.hundred_squares import Bullet
from calviz.report.json_results import plain
from calviz.sample.cutoff_and_grades import decidable, grade_columns, grade_factor
from calviz.sample.sample import Sample, event_rate_if_rare
from calviz.sample.slices import Slices
from calviz.verdicts import evaluation
from calviz.verdicts.analysis import evaluate, first_metrics, verdict
from calviz.verdicts.evaluation import Evaluation, Verdict, Written, name_of, precision_words

if TYPE_CHECKING:
    import plotly.graph_objects as go

    from calviz.comparison.judging import Judged

#: Largest number of table rows shown on a page; the table's file holds all of them.
MOST_ROWS = 1_000


class Block:
    """A part of a section, which every writer writes in its own form."""

    @property
    def kind(self) -> str:
        """Its name in the templates."""
        return type(self).__name__.lower().removesuffix("block")


@dataclass(frozen=True)
class Text(Block):
    """A paragraph of plain text."""

    text: str


@dataclass(frozen=True)
class Note(Text):
    """A paragraph in small print: how to read the block before it."""


@dataclass(frozen=True)
class Heading(Text):
    """A heading inside a section."""


@dataclass(frozen=True)
class Lead(Text):
    """The main sentence, for readers in a hurry.

    Attributes
    ----------
    tone : {"good", "bad", "open"}
        Whether it is good news, bad news, or not decided.
    below : str
        A line of text below it.
    """

    tone: Literal["good", "bad", "open"] = "open"
    below: str = ""


@dataclass(frozen=True)
class Facts(Block):
    """Names and values, one pair per line."""

    items: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Cards(Block):
    """A few metrics in large type, their number of rows, and the verdict on these rows."""

    results: tuple[MetricResult, ...]
    rows: int
    verdict: Verdict | None = None


@dataclass(frozen=True)
class Findings(Block):
    """Findings, worst first."""

    findings: tuple[errors.Finding, ...]


@dataclass(frozen=True)
class Term:
    """A name, what it means, and where it comes from."""

    name: str
    meaning: str
    formula: str
    source: str
    facts: str = ""


@dataclass(frozen=True)
class Terms(Block):
    """A glossary."""

    terms: tuple[Term, ...]


@dataclass(frozen=True, eq=False)
class TableBlock(Block):
    """A table.

    Attributes
    ----------
    key : str
        Names its file.
    title : str
    shown : DataFrame of str
        The cells as text.
    numbers : DataFrame or None
        The same for programs, with all digits; None stands for the texts.
    right : sequence of str
        Columns of `shown` that are right-aligned.
    marks : mapping of (row, column name) to {"best", "second"}
        Highlighted cells.
    groups : mapping of int to str
        Headings inside the table, by the index of the row below them.
    folded : bool
        Whether only its title is shown until a reader opens it.
    bullets : sequence of Bullet or None
        A small drawing of each row's number, beside its name, which the texts of the row repeat; empty for no drawings.
    pictured : str
        Heading of these drawings, which names the number they show if the row has several.
    one_scale : bool
        Whether these drawings share one scale, or each has its own.
    """

    key: str
    title: str
    shown: pd.DataFrame
    numbers: pd.DataFrame | None = None
    right: Sequence[str] = ()
    marks: Mapping[tuple[int, str], comparison_results.Mark] = field(default_factory=dict)
    groups: Mapping[int, str] = field(default_factory=dict)
    folded: bool = False
    bullets: Sequence[Bullet | None] = ()
    pictured: str = ""
    one_scale: bool = True

    @property
    def cut(self) -> str:
        """Sentence about the rows left out on a page; empty if all are shown."""
        left = len(self.shown) - MOST_ROWS
        return f"{left:,} more rows are in {self.key}.csv." if left > 0 else ""


@dataclass(frozen=True, eq=False)
class Chart(Block):
    """A drawn chart with its description and the table of its data.

    Attributes
    ----------
    key : str
        Names its image files.
    title : str
    alt : str
        Description in words.
    drawing : str
        The plotly figure as JSON.
    caption : tuple of str
        Lines on the origin of the data that a saved image may include.
    table : TableBlock
    """

    key: str
    title: str
    alt: str
    drawing: str
    caption: tuple[str, ...]
    table: TableBlock


#: Function that formats a value of a column as text.
CellFormat = Callable[[Any], str]
#: Heading and format of columns, by name.
Formats = dict[str, tuple[str, CellFormat]]
#: Heading and format of the columns of the table of bins. Headings have to differ: the second "to" ends with a space.
BIN_COLUMNS: Formats = {
    "low": ("above", share_cell),
    "high": ("up to", share_cell),
    "rows": ("rows", whole),
    "mean_score": ("mean score", share_cell),
    "observed": ("observed", share_cell),
    "ci_low": ("95 % CI from", share_cell),
    "ci_high": ("to", share_cell),
    "band_low": ("calibrated from", share_cell),
    "band_high": ("to ", share_cell),
    "gap": ("gap (points)", signed_points),
    "expected_gap": ("on new rows (points)", signed_points),
}
#: Width of a chart on the page in pixels; it fits A4 and US letter paper.
WIDTH = 640


def chart(
    figure: Figure,
    *,
    key: str,
    title: str,
    formats: Formats,
    caption: Sequence[str] | None = None,
    rows: Sequence[int] | None = None,
    **drawing: Any,
) -> Chart:
    """Draw a computed figure for a report.

    Parameters
    ----------
    figure : Figure
    key, title
        As in `Chart`.
    formats : mapping of str to (str, callable)
        Columns of its frame to show: the heading and the format of each.
    caption : sequence of str, optional
        As in `Chart`; the figure's own by default.
    rows : sequence of int, optional
        Positions of the rows to show; all by default. The table's file holds all.
    **drawing
        Options of the figure's `plot`.
    """
    frame = figure.frame()
    selected = frame if rows is None else frame.iloc[list(rows)]
    shown = formatted(selected, formats)
    right = [h for key, (h, _) in formats.items() if pd.api.types.is_numeric_dtype(frame[key])]
    some = "" if rows is None else f" ({len(selected):,} of {len(frame):,} points)"
    table = TableBlock(key, f"{title}, as a table{some}", shown, frame, right, folded=True)
    drawn = plain_json(figure.plot(theme="light", width=WIDTH, **drawing))
    words = figure.caption() if caption is None else caption
    return Chart(key, title, figure.describe(), drawn, tuple(words), table)


def formatted(frame: pd.DataFrame, formats: Formats) -> pd.DataFrame:
    """Write columns of a frame as texts, under the heading and in the format of each."""
    return pd.DataFrame(
        {heading: [write(v) for v in frame[name]] for name, (heading, write) in formats.items()}
    )


def plain_json(plotted: go.Figure) -> str:
    """Convert a plotly figure to compact JSON, with six significant digits."""
    values = plain(plotted.to_plotly_json(), digits=6)
    return json.dumps(values, separators=(",", ":"), allow_nan=False)


def spread(size: int, most: int, *also: int) -> list[int]:
    """Choose positions of about `most` rows, evenly spread, including both ends and the positions in `also`."""
    if size <= most:
        return list(range(size))
    return sorted({*np.linspace(0, size - 1, most).round().astype(int).tolist(), *also})


#: Keys of `PRESETS`.
Preset = Literal["clinical", "credit", "default", "one-page", "full"]


@dataclass(frozen=True, eq=False)
class Origin:
    """The file that the predictions come from.

    Attributes
    ----------
    file : str
        Its name, without folders.
    size : int
        Bytes.
    digest : str
        BLAKE2b of its bytes, in hexadecimal.
    rows : int
        Rows of the whole file.
    recognised : str
        How its format was recognised, in one sentence.
    options : ReadingOptions
        Options given for reading it.
    repairs : tuple of str
        Repairs made, in words.
    notices : tuple of Finding
        Findings from reading it.
    """

    file: str
    size: int
    digest: str
    rows: int
    recognised: str
    options: ReadingOptions = field(default_factory=ReadingOptions)
    repairs: tuple[str, ...] = ()
    notices: tuple[errors.Finding, ...] = ()

    @classmethod
    def of(cls, loaded: Loaded, options: ReadingOptions | None = None) -> Origin:
        """Record the origin of loaded data."""
        return cls(
            **errors.picked(loaded, "file size digest"),
            rows=loaded.recognition.rows,
            recognised=loaded.recognition.sentence(),
            options=options or ReadingOptions(),
            repairs=tuple(loaded.repairs_made),
            notices=tuple(loaded.notices),
        )


@dataclass(frozen=True, eq=False)
class Subject:
    """A sample, its origin, and the results of long computations on it.

    Attributes
    ----------
    sample : Sample
        The rows and how they are judged; what is computed for the report is cached on it.
    title : str
        Its title; text from a person or a file, escaped wherever it is written.
    error_bars : bool or None
        Whether all metrics get intervals and noise floors; None: unless the data are large. The
        headline metrics always get them.
    origin : Origin or None
    comparison : Comparison or None
        Comparison of recalibrators on these data.
    learning : LearningCurve or None
        Their learning curve on these data.
    models : ModelComparison or None
        Comparison of this model with others.
    slices : Slices or None
        Slices of these rows; None for the usual ones.
    preset : str or None
        The key of the preset that the report follows.
    cutoff : float or None
        The cutoff for decisions.
    grades : str or None
        The group column that holds rating grades; None for the recognised one.
    sites : str or None
        The group column that holds sites, for their summary.
    whole : Dataset or None
        All rows of the file, so that what has to be chosen (the threshold of prediction sets, a map) is chosen on rows of another
        split than the sample's; None if there are no others.
    judged : Judged or None
        What the judge of the file is worth; None if it has none.
    """

    sample: Sample
    _: KW_ONLY
    title: str = ""
    error_bars: bool | None = None
    origin: Origin | None = None
    comparison: comparison_results.Comparison | None = None
    learning: learning_curves.LearningCurve | None = None
    models: comparison_results.ModelComparison | None = None
    slices: Slices | None = None
    preset: Preset | None = None
    cutoff: float | None = None
    grades: str | None = None
    sites: str | None = None
    whole: predictions.Dataset | None = None
    judged: Judged | None = None

    @property
    def name(self) -> str:
        """The title, or the name of the data."""
        return self.title or self.sample.data.name or "Predictions"

    @property
    def of_rare_event(self) -> bool:
        """Whether one of two classes is rare, so that nearly all rows are predicted as the other."""
        return event_rate_if_rare(self.sample) is not None

    @property
    def has_error_bars(self) -> bool:
        """Whether all metrics get intervals and noise floors."""
        return not self.sample.is_large if self.error_bars is None else self.error_bars

    @property
    def headline(self) -> Evaluation:
        """The headline metrics with error bars, and the findings."""
        return evaluate(self.sample, first_metrics(self.sample), ci=True, findings=True)

    @property
    def evaluation(self) -> Evaluation:
        """All metrics."""
        options: dict[str, Any] = {} if self.cutoff is None else {"cutoff": self.cutoff}
        return evaluate(self.sample, METRICS.keys(), ci=self.has_error_bars, **options)

    @property
    def verdict(self) -> Verdict:
        """Whether these probabilities can be trusted."""
        return verdict(self.sample)


def caption(subject: Subject, *more: str) -> tuple[str, ...]:
    """Caption lines with the origin of a chart: name; rows, reduction and bins; file and digest."""
    lines = [shorten(subject.name, 60), subject.sample.words, *more]
    if subject.origin is not None:
        lines.append(f"{shorten(subject.origin.file, 60)} · digest {subject.origin.digest[:16]}")
    return tuple(lines)


# ---- Sections


#: Fields of `Subject` that hold results of long computations.
NeededWork = Literal["comparison", "learning", "models", "slices"]


@dataclass(frozen=True)
class Section:
    """A registered section.

    Attributes
    ----------
    key : str
        The stable name by which it is requested.
    title : str
        Its heading.
    place : int
        Position: sections appear in ascending order.
    make : callable
        Its docstring begins with the content in a few words. ``make(subject)`` yields its blocks; a section without blocks is left out. It raises `NotAvailable` with
        the reason if there is nothing to show.
    shared : bool
        Whether it is the same for all parts of a report, and appears once at its end.
    brief : bool
        Whether it is also in the reports of commands that compare, if it is not empty there.
    shows_result : {"comparison", "learning", "models", "slices"} or None
        The field of `Subject` it shows, if that is the result of a computation the user requested.
    on_request : bool
        Whether it is only in reports that name it: it repeats a part of another section, or shows single rows.
    earlier : str
        Its heading in earlier versions, which older links hold.
    """

    key: str
    title: str
    place: int
    make: Callable[[Subject], Iterable[Block]]
    shared: bool = False
    brief: bool = False
    shows_result: NeededWork | None = None
    on_request: bool = False
    earlier: str = ""

    @property
    def summary(self) -> str:
        """Its content in a few words."""
        return entry_specs.first_paragraph(self.make).rstrip(".")


SECTIONS: registry.Registry[Section] = registry.Registry("section")

Make = TypeVar("Make", bound=Callable[[Subject], Iterable[Block]])


def section(key: str, title: str, place: int, **options: Any) -> Callable[[Make], Make]:
    """Register a function as the `make` of a section; arguments are the fields of `Section`."""
    return SECTIONS.adding(lambda make: Section(key, title, place, make, **options))


def brief_sections() -> tuple[str, ...]:
    """Return the keys of the sections of a report on a comparison."""
    return tuple(section.key for section in SECTIONS if section.brief)


def sections_in_order(*, with_requested: bool = False) -> tuple[Section, ...]:
    """Return all sections in the order of a report; those that are only in reports that name them, if asked for."""
    chosen = (s for s in SECTIONS if with_requested or not s.on_request)
    return tuple(sorted(chosen, key=lambda section: section.place))


@dataclass(frozen=True)
class PresetSections:
    """The sections of a preset.

    Attributes
    ----------
    reader : str
        For whom it is, in a few words.
    keys : str
        Keys of the sections, as words; empty for all.
    source : str
        The guideline that it follows, or what it holds.
    decides : bool
        Whether it needs a single class to decide on.
    """

    reader: str
    keys: str
    source: str
    decides: bool = True

    @property
    def sections(self) -> tuple[str, ...]:
        """Keys of the sections; empty for all."""
        return tuple(self.keys.split())


PRESETS: dict[Preset, PresetSections] = {
    # What fits on six pages of paper for one model.
    "default": PresetSections(
        "for a colleague",
        "verdict diagram fix findings classwise slices folds sites grades judge models over-time comparison "
        "learning-curve provenance",
        "what most readers need, on a few pages",
        decides=False,
    ),
    "one-page": PresetSections(
        "for a manager",
        "verdict diagram fix where-to-look threshold",
        "verdict, picture, what recalibration would bring, where to look and what can be kept, on one sheet of paper",
        decides=False,
    ),
    # AUROC, calibration plot, net benefit, distribution of the probabilities by outcome.
    "clinical": PresetSections(
        "for a clinical study",
        "verdict calibration-curve slices sites over-time decisions metrics comparison provenance definitions",
        "Van Calster et al. 2025, what every validation of a clinical prediction model should hold; with groups, sites and time",
    ),
    "credit": PresetSections(
        "for a validation of ratings",
        "verdict grades calibration-curve slices over-time decisions metrics provenance definitions",
        "ECB 2019, validation of internal models: calibration by grade, and discrimination; with groups and time",
    ),
    "full": PresetSections("for the archive", "", "every section that is not empty", decides=False),
}


#: Sections of the preset "default" about each of several models, by the largest number of them that fits on six pages with the comparison.
IN_SHORT = {2: "verdict findings fix diagram judge", 6: "verdict fix diagram"}


def preset_sections(
    preset: str, subject: Subject | None = None, *, models: int = 1
) -> tuple[str, ...]:
    """Return the keys of a preset's sections; of several models, the default report says what its pages hold.

    Raises
    ------
    OptionError
        If there is no such preset, or `subject` lacks what the preset needs.
    """
    if preset not in PRESETS:
        raise errors.OptionError(f"there is no preset '{preset}'; known: {', '.join(PRESETS)}.")
    chosen = PRESETS[preset]
    if subject is not None and chosen.decides:
        try:
            data = decidable(subject.sample).data
        except errors.NotAvailable as reason:
            raise errors.OptionError(f"the preset {preset}: {reason}") from None
        if preset == "credit":
            check_grades(data, subject.grades)
    keys = chosen.sections or tuple(s.key for s in sections_in_order())
    if preset == "default" and models > 1:
        keys = tuple(next((IN_SHORT[n] for n in IN_SHORT if models <= n), "verdict").split())
    # Who names a cutoff asks what follows from it.
    asked = subject is not None and subject.cutoff is not None and preset == "default"
    return (*keys, "decisions") if asked else keys


def check_grades(data: predictions.Dataset, column: str | None) -> None:
    """Raise OptionError unless there is a column of rating grades: `column`, or a recognised one."""
    if column is not None:
        grade_factor(data, column)
    elif not grade_columns(data):
        others = ", ".join(errors.shortened(name) for name in data.groups)
        named = f"if one of its group columns ({others}) holds grades, name it with --grades"
        rest = named if others else "add one, such as 'grade'"
        fit = ", ".join(key for key in PRESETS if key != "credit")
        raise errors.OptionError(
            f"tests of grades need a column of rating grades, and none of this file looks like one: {rest}; presets without: {fit}."
        )


# ---- Tables of metrics


ResultsByKey = Mapping[str, MetricResult]
#: Heading of the column on how close the numbers of a profile are to those of its rows.
OF_ROWS = "of the rows"
#: Columns of numbers, right-aligned.
NUMBER_COLUMNS = ("value", "95 % interval", "noise: mean", "noise: 95 %", "p-value")


def families() -> tuple[str, ...]:
    """Return the metric families in use, in order."""
    names = dict.fromkeys(m.family for m in METRICS)
    return tuple(sorted(names, key=lambda f: FAMILIES.index(f) if f in FAMILIES else len(names)))


def metric_texts(results: ResultsByKey, verdict: Verdict | None = None) -> pd.DataFrame:
    """Table of results as texts, one row per metric, formatted like the cards; beside a verdict, with its decimals."""
    table = pd.DataFrame([_row(METRICS[key], result, verdict) for key, result in results.items()])
    if any(r.exact is not None for r in results.values()):
        # After the numbers, before the text columns.
        table.insert(6, OF_ROWS, [precision_words(r) for r in results.values()])
    return table


def written_columns(results: ResultsByKey, verdict: Verdict | None = None) -> pd.DataFrame:
    """The same for a table grouped by family: without empty columns and without notes."""
    table = metric_texts(results, verdict).drop(columns=["family", "note"])
    return table.loc[:, (table != "").any()]


def _row(
    metric: entry_specs.Metric, result: MetricResult, verdict: Verdict | None
) -> dict[str, str]:
    return {
        **Written(result, verdict).cells(),
        **({} if result.available else {"value": "not available"}),
        "better": DIRECTION_WORDS[metric.direction],
        "family": metric.family,
        "note": result.note or "" if result.available else result.reason or "undefined.",
    }


def metric_numbers(results: ResultsByKey) -> pd.DataFrame:
    """Table of results as fractions, one row per metric."""
    columns = ("value", "ci_low", "ci_high", *evaluation.NOISE_COLUMNS)
    table = pd.DataFrame(
        {
            "family": METRICS[r.key].family,
            "metric": r.key,
            "label": name_of(r),
            **dict(zip(columns, evaluation.numbers_of(r), strict=True)),
            "better": DIRECTION_WORDS[METRICS[r.key].direction],
            "reason": "" if r.available else r.reason or "",
            "note": r.note or "",
        }
        for r in results.values()
    )
    if any(r.exact is not None for r in results.values()):
        table["exact"] = [r.exact for r in results.values()]
        table["bound"] = [math.nan if r.bound is None else r.bound for r in results.values()]
    return table


def metric_columns(
    columns: Sequence[comparison_results.ComparisonColumn], rows: Sequence[str]
) -> tuple[dict[str, list[str]], dict[tuple[int, str], comparison_results.Mark]]:
    """Return the texts by heading, and the marks of the cells.

    Parameters
    ----------
    columns : sequence of ComparisonColumn
    rows : sequence of str
        Names of what is compared, in the order of the table.
    """
    texts: dict[str, list[str]] = {}
    marks: dict[tuple[int, str], comparison_results.Mark] = {}
    for column in columns:
        texts[column.written.heading] = [column.cell(row) for row in rows]
        for number, row in enumerate(rows):
            if (mark := column.mark(row)) is not None:
                marks[number, column.written.heading] = mark
    return texts, marks
