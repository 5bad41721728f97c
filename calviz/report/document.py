"""A report, made of sections about one or more models, and how it is written: HTML, PDF, Markdown, tables in a ZIP file; also a sheet of figures."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from calviz.core import __version__, entry_specs, words
from calviz.core.errors import NotAvailable, OptionError
from calviz.figures.figure import Figure
from calviz.figures.hundred_squares import Bullet, Scale, shared_scale, svg
from calviz.figures.style import COLUMNS, PALETTES, drawn_width, printed
from calviz.report import content
from calviz.report.content import Chart, Note, Section, Subject, TableBlock, sections_in_order
from calviz.verdicts.evaluation import Written, alone, at_its_end, name_of

#: What a report in short says of itself.
IN_SHORT_WORDS = "Each model in short: the preset full (--preset full), or the report of one model (--model), holds all sections."


@dataclass(frozen=True, eq=False)
class WrittenSection:
    """A section with its blocks."""

    section: Section
    blocks: tuple[content.Block, ...]


@dataclass(frozen=True, eq=False)
class Part:
    """The part of a report about one subject.

    Attributes
    ----------
    name : str
    verdict : str
        The verdict's sentence.
    sections : tuple of WrittenSection
    shared : tuple of WrittenSection
        Sections that are the same for all parts.
    file : str
        Name of the file of the predictions; empty if they come from none.
    """

    name: str
    verdict: str
    sections: tuple[WrittenSection, ...]
    shared: tuple[WrittenSection, ...] = ()
    file: str = ""


@dataclass(frozen=True, eq=False)
class Report:
    """A report, ready to be written as HTML, as Markdown, or as tables.

    The same data and settings give the same bytes: it has no date unless one is given.

    Attributes
    ----------
    parts : tuple of Part
    title, author, notes, date : str
        Plain text entered by a person, escaped wherever it is written. Empty lines in the notes separate paragraphs.
    """

    parts: tuple[Part, ...]
    title: str
    author: str = ""
    notes: str = ""
    date: str = ""

    @property
    def shared(self) -> tuple[WrittenSection, ...]:
        """Sections that are the same for all parts and are written once."""
        return self.parts[0].shared

    @property
    def on_one_page(self) -> bool:
        """Whether it holds only sections of the preset "one-page", so that each part fits on a sheet of paper."""
        keys = {w.section.key for part in self.parts for w in part.sections}
        return {"diagram"} <= keys <= set(content.PRESETS["one-page"].sections) and not self.shared

    @property
    def leading(self) -> tuple[WrittenSection, ...]:
        """Shared sections that stand before the parts: what compares them."""
        return tuple(w for w in self.shared if w.section.shows_result and len(self.parts) > 1)

    @property
    def trailing(self) -> tuple[WrittenSection, ...]:
        """The other shared sections."""
        return tuple(w for w in self.shared if w not in self.leading)

    @property
    def in_short(self) -> bool:
        """Whether each of several parts holds only what `IN_SHORT` gives it."""
        keys = {w.section.key for part in self.parts for w in part.sections}
        short = {*content.IN_SHORT[min(content.IN_SHORT)].split(), "provenance"}
        return len(self.parts) > 1 and keys <= short

    @property
    def byline(self) -> tuple[str, ...]:
        """Author, files and date: the line below the title, which may itself be the name of the file."""
        files = dict.fromkeys(part.file for part in self.parts)
        named = [f"File {name}" for name in files if name and name != self.title]
        return tuple(text for text in (self.author, *named[:3], self.date) if text)

    def dated(self) -> Report:
        """Return the report with a date for a sheet of paper: its own, or today's."""
        today = datetime.now().astimezone().date().isoformat()
        return self if self.date else replace(self, date=today)

    @property
    def paragraphs(self) -> tuple[str, ...]:
        """The notes, paragraph by paragraph."""
        return tuple(p.strip() for p in re.split(r"\n\s*\n", self.notes) if p.strip())

    def tables(self) -> Iterator[tuple[str, TableBlock]]:
        """Iterate over all tables, including those of charts, with their file names without suffix."""
        for number, part in enumerate(self.parts, start=1):
            folder = f"{number:02d}-" if len(self.parts) > 1 else ""
            for table in _tables_of(part.sections):
                yield f"{folder}{table.key}", table
        for table in _tables_of(self.shared):
            yield table.key, table

    @property
    def charts(self) -> tuple[Chart, ...]:
        """All charts, in order."""
        written = [*(w for part in self.parts for w in part.sections), *self.shared]
        return tuple(b for w in written for b in w.blocks if isinstance(b, Chart))

    def html(self) -> str:
        """Write one self-contained page."""
        script = "charts.js" if self.charts else None
        style = Markup(_template("style.css"))
        return _page("report.html", script, report=self, several=len(self.parts) > 1, style=style)

    def markdown(self) -> str:
        """Write a model card, with names and notes escaped; charts become descriptions and tables."""
        return "\n\n".join(_markdown_lines(self)) + "\n"

    def archive(self) -> bytes:
        """Write all tables, and the model card, into a ZIP file."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w") as archive:
            for name, written in _files(self):
                # The earliest time a ZIP file can store, used for all entries: the same tables give the same bytes on any day.
                entry = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, written)
        return buffer.getvalue()


def _tables_of(written: Iterable[WrittenSection]) -> Iterator[TableBlock]:
    for section in written:
        for block in section.blocks:
            table = block.table if isinstance(block, Chart) else block
            if isinstance(table, TableBlock):
                yield table


def compose(
    subjects: Subject | Iterable[Subject], *, sections: Iterable[str] | None = None, **texts: Any
) -> Report:
    """Compute a report.

    Parameters
    ----------
    subjects : Subject or iterable of Subject
        Each becomes a part of the report.
    sections : iterable of str, optional
        Keys of sections, whatever their order; by default, all that are not empty.
    **texts
        Title, author, notes and date, as in `bind`.

    Raises
    ------
    OptionError
        If there is no subject, or no such section.
    """
    about = [subjects] if isinstance(subjects, Subject) else subjects
    chosen = None if sections is None else tuple(sections)
    return bind([make_part(subject, sections=chosen) for subject in about], **texts)


def make_part(
    subject: Subject,
    *,
    sections: Iterable[str] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Part:
    """Compute the sections about one subject; the part keeps no arrays of its rows.

    `progress` is called before each section is made, with its title, the number done and the total number.
    """
    chosen = chosen_sections(sections)
    written = []
    for done, section in enumerate(chosen):
        if progress:
            progress(section.title, done, len(chosen))
        written.append(write_section(section, subject))
    filled = [w for w in written if w.blocks]
    return Part(
        name=subject.name,
        verdict=subject.verdict.sentence,
        sections=tuple(w for w in filled if not w.section.shared),
        shared=tuple(w for w in filled if w.section.shared),
        file=words.shorten(subject.origin.file, 200) if subject.origin else "",
    )


def with_section(part: Part, key: str, subject: Subject) -> Part:
    """Return the part with one more section, in its place; unchanged if the section is empty."""
    written = write_section(content.SECTIONS[key], subject)
    if not written.blocks:
        return part
    where = "shared" if written.section.shared else "sections"
    every = sorted((*getattr(part, where), written), key=lambda w: w.section.place)
    changed: dict[str, Any] = {where: tuple(every)}
    return replace(part, **changed)


def bind(
    parts: Iterable[Part],
    *,
    title: str = "",
    author: str = "",
    notes: str = "",
    date: str | None = None,
) -> Report:
    """Combine parts into a report.

    Parameters
    ----------
    parts : iterable of Part
    title, author, notes : str
        Plain text.
    date : str, optional
        Text of the date; by default, the day of ``SOURCE_DATE_EPOCH`` if that is set, else no date, so that
        the same input gives the same bytes.
    """
    bound = tuple(parts)
    if not bound:
        raise OptionError("a report needs at least one set of predictions.")
    return Report(
        parts=bound,
        title=title or (bound[0].name if len(bound) == 1 else "Calibration of several models"),
        author=author,
        notes=notes,
        date=source_date() if date is None else date,
    )


def chosen_sections(keys: Iterable[str] | None) -> tuple[Section, ...]:
    """Return the sections with these keys, in the order of a report; for None, all but those that have to be named."""
    if keys is None:
        return sections_in_order()
    wanted = {content.SECTIONS[key].key for key in keys}
    if "reliability" in wanted:  # which begins with the diagram
        wanted.discard("diagram")
    every = sections_in_order(with_requested=True)
    return tuple(section for section in every if section.key in wanted)


def write_section(section: Section, subject: Subject) -> WrittenSection:
    """Make the blocks of a section; `NotAvailable` becomes a note with the reason."""
    try:
        return WrittenSection(section, tuple(section.make(subject)))
    except NotAvailable as reason:
        return WrittenSection(section, (Note(words.capitalised(str(reason))),))


def source_date() -> str:
    """Return the day of ``SOURCE_DATE_EPOCH``, the convention for reproducible output; empty without it.

    Raises
    ------
    OptionError
        If it is not a number of seconds.
    """
    text = os.environ.get("SOURCE_DATE_EPOCH", "")
    if not text:
        return ""
    try:
        return datetime.fromtimestamp(int(text), UTC).date().isoformat()
    except (ValueError, OverflowError, OSError):
        raise OptionError(
            f"SOURCE_DATE_EPOCH must be a whole number of seconds, got '{text[:40]}'."
        ) from None


# ---- HTML


def _page(template: str, script: str | None, **values: Any) -> str:
    """Write a standalone page with plotly.js and one script, or without scripts.

    A content security policy allows exactly the scripts of the page and forbids any network access; the templates escape every text
    that comes from a person or a file.

    Parameters
    ----------
    template, script : str
        Their file names.
    **values
        Values for the template.
    """
    scripts = [] if script is None else [_plotly(), _template(script)]
    digests = (base64.b64encode(hashlib.sha256(text.encode()).digest()) for text in scripts)
    hashes = " ".join(f"'sha256-{digest.decode()}'" for digest in digests) or "'none'"
    policy = (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    page = _environment().get_template(template)
    marked = map(Markup, scripts)
    return page.render(scripts=list(marked), policy=policy, version=__version__, **values)


@cache
def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    # Browsers normalise line breaks like this before they hash the script.
    return str(get_plotlyjs()).replace("\r\n", "\n").replace("\r", "\n")


def _template(name: str) -> str:
    loader = _environment().loader
    assert loader is not None
    return loader.get_source(_environment(), name)[0]


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("calviz.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "cards": _cards,
        "together": _together,
        "mathml": _mathml,
        "spec": _spec,
        "bullets": _bullets,
        "sentence": words.full_sentence,
        "capitalize_first": words.capitalised,
    }
    environment.globals |= {"most_rows": content.MOST_ROWS, "in_short_words": IN_SHORT_WORDS}
    return environment


def _together(text: object) -> str:
    """Keep a number and its unit, and a p and its value, on one line."""
    return words.keep_units_together(str(text)).replace("p-value", "p\u2011value")


@cache
def _mathml(formula: str) -> Markup:
    """Convert one of our own formulas (never from a file) to MathML; lines may break between its parts, which browsers do not do by themselves."""
    parts = re.split(r",\\(?:quad|;) ?", formula)
    if any(part.count("{") != part.count("}") for part in parts):
        parts = [formula]
    return Markup(", ").join(_one_formula(part) for part in parts)


def _one_formula(formula: str) -> Markup:
    from latex2mathml.converter import convert

    text = convert(formula.replace(r"\arg\max", r"\mathrm{arg\,max}"))
    text = text.replace('<mn mathvariant="bold">1</mn>', "<mn>\N{MATHEMATICAL BOLD DIGIT ONE}</mn>")
    # A bar over several symbols: not every machine has a font with a stretchable bar.
    text = re.sub(
        r'<mover>(.*?)<mo stretchy="true">&#x02015;</mo></mover>',
        r'<mrow class="bar">\1</mrow>',
        text,
    )
    return Markup(text)


def _bullets(table: TableBlock) -> list[Markup]:
    """Drawings for the rows of a table; the rows also hold the numbers, for readers who cannot see drawings."""
    shown = table.bullets[: content.MOST_ROWS]
    scale = shared_scale(shown) if table.one_scale else None
    return [Markup("") if bullet is None else _inline(bullet, scale) for bullet in shown]


def _inline(bullet: Bullet, scale: Scale | None = None) -> Markup:
    """SVG inside the page, which needs no namespace and is styled by the page."""
    drawing = svg(bullet, PALETTES["light"], scale)
    for attribute in (' xmlns="http://www.w3.org/2000/svg"', ' vector-effect="non-scaling-stroke"'):
        drawing = drawing.replace(attribute, "")
    return Markup(drawing)


def _cards(block: content.Cards) -> Iterator[dict[str, str]]:
    several = block.rows > 1
    for result in block.results:
        card = {"label": name_of(result), "unit": "", "noise": "", "drawing": ""}
        if not result.available:
            yield card | {"value": "–", "interval": result.reason or ""}
            continue
        written = Written(result, block.verdict)
        card |= {"value": written.value, "unit": written.unit_words}
        if not several:
            yield card | {"interval": "n = 1: not meaningful"}
            continue
        noise = written.noise(tail=entry_specs.METRICS[result.key].tail, verdict=block.verdict)
        yield card | {
            "interval": written.interval(result.interval),
            "noise": "; ".join(filter(None, (noise, written.why_apart, at_its_end(result)))),
            "drawing": _inline(Bullet.of(result)),
        }


def _spec(chart: Chart) -> Any:
    """Data of a chart for the page's script, as JSON that is safe inside its element."""
    caption = json.dumps(list(chart.caption), separators=(",", ":"))
    return _as_element(f'{{"figure":{chart.drawing},"caption":{caption}}}')


def _as_element(text: str) -> Markup:
    """Escape JSON so that it cannot close the element that holds it."""
    for sign, code in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
        text = text.replace(sign, code)
    return Markup(text)


# ---- Markdown


#: Largest number of rows of a table in Markdown; the other files hold all.
MARKDOWN_ROWS = 60


def _markdown_lines(report: Report) -> Iterator[str]:
    yield f"# {_escaped(report.title)}"
    if report.byline:
        yield " · ".join(_escaped(text) for text in report.byline)
    for paragraph in report.paragraphs:
        yield "  \n".join(_escaped(line) for line in paragraph.splitlines())
    yield from _markdown_sections(report.leading, 2)
    for part in report.parts:
        named = part.name != report.title
        if named:
            yield f"## {_escaped(part.name)}"
        yield from _markdown_sections(part.sections, 2 + named)
    yield from _markdown_sections(report.trailing, 2)
    if report.in_short:
        yield f"*{IN_SHORT_WORDS}*"
    yield f"*Written by calviz {__version__}.*"


def _markdown_sections(sections: Iterable[WrittenSection], level: int) -> Iterator[str]:
    for written in sections:
        yield f"{'#' * level} {_escaped(written.section.title)}"
        for block in written.blocks:
            yield from _markdown_block(block, level + 1)


def _escaped(text: str) -> str:
    return words.markdown_text(words.shorten(text, 5_000))


def _markdown_block(block: content.Block, level: int) -> Iterator[str]:
    match block:
        case content.Lead():
            yield f"**{_escaped(block.text)}**"
            yield _escaped(block.below)
        case Note():
            yield f"*{_escaped(block.text)}*"
        case content.Heading():
            yield f"{'#' * level} {_escaped(block.text)}"
        case content.Text():
            yield _escaped(block.text)
        case content.Facts():
            yield "\n".join(
                f"- **{_escaped(name)}:** {_escaped(value)}" for name, value in block.items
            )
        case content.Findings():
            yield "\n".join(
                f"- **{f.severity} {_escaped(f.code)}** {_escaped(words.full_sentence(f.message))}"
                for f in block.findings
            )
        case content.Cards():
            shown = content.metric_texts({r.key: r for r in block.results}, block.verdict).drop(
                columns=["family", "note", "better"]
            )
            yield _markdown_table(shown, [c for c in shown.columns if c in content.NUMBER_COLUMNS])
            if block.rows > 1:
                yield f"*{_escaped(alone(block.verdict))}*"
        case content.Terms():
            yield "\n".join(
                f"- **{_escaped(t.name)}:** {_escaped(t.meaning)} ({_escaped(t.source)})"
                for t in block.terms
            )
        case TableBlock():
            yield _markdown_table(block.shown, list(block.right))
        case Chart():
            yield f"**{_escaped(block.title)}.** {_escaped(block.alt)}"
            yield _markdown_table(block.table.shown, list(block.table.right))


def _markdown_table(shown: pd.DataFrame, right: list[str]) -> str:
    text = words.markdown_table(shown.head(MARKDOWN_ROWS), right=right).rstrip()
    left = len(shown) - MARKDOWN_ROWS
    return f"{text}\n\n*{left:,} more rows are left out.*" if left > 0 else text


def _files(report: Report) -> Iterator[tuple[str, str | bytes]]:
    yield "report.md", report.markdown()
    for name, table in report.tables():
        shown = table.shown
        yield f"{name}.csv", words.csv_bytes(shown if table.numbers is None else table.numbers)
        yield f"{name}.md", words.markdown_table(shown, caption=table.title, right=table.right)
        yield f"{name}.tex", words.latex_table(shown, caption=table.title, right=table.right)


# ---- Figures for papers: several on one sheet


#: Letters of the panels.
LETTERS = "abcdefghijklmnopqrstuvwxyz"
#: Gap between panels, in pixels of the drawing.
GAP = 24


@dataclass(frozen=True)
class Panel:
    """A figure on the sheet.

    Attributes
    ----------
    figure : Figure
        The computed figure.
    wide : bool
        Whether it takes the full width of the sheet.
    """

    figure: Figure
    wide: bool = False


def caption_of(panels: Sequence[Panel]) -> str:
    """Compose one caption that describes the panels, one sentence per figure."""
    sentences = [words.full_sentence(p.figure.printed().describe()) for p in panels]
    if len(sentences) > 1:
        sentences = [f"({letter}) {text}" for letter, text in zip(LETTERS, sentences, strict=False)]
    return words.shorten(" ".join(sentences), 5_000)


def to_sheet(
    panels: Sequence[Panel],
    *,
    columns: int = 1,
    name: str = "figure",
    caption: bool = False,
    theme: entry_specs.Theme = "light",
) -> str:
    """Write a page that draws the panels, and saves them as one SVG or PNG, or copies them to the clipboard.

    When printed, the page holds only the figure, on paper of its size.

    Parameters
    ----------
    panels : sequence of Panel
        1 to 26 panels.
    columns : {1, 2}
        Whether the sheet is as wide as one column of a paper (3.25 in) or two (6.75 in, two panels in a row).
    name : str
        Name of the files.
    caption : bool
        Whether the image includes the caption, below the panels.
    theme : {"light", "dark"}
        Colours of the page around the figure. The figure itself is always black on white, as it is saved.

    Raises
    ------
    OptionError
        If there are no panels or too many, or for any other number of columns.
    """
    if not 0 < len(panels) <= len(LETTERS):
        raise OptionError(f"a figure has 1 to {len(LETTERS)} panels, got {len(panels)}.")
    if columns not in COLUMNS:
        raise OptionError(f"a figure is 1 or 2 columns wide, got {columns}.")
    whole = drawn_width(columns)
    part = whole if columns == 1 else (whole - GAP) // 2
    spec = {
        "name": re.sub(r"[^\w.-]+", "-", words.shorten(name, 80)).strip("-.") or "figure",
        "width": whole,
        "gap": GAP,
        "inches": COLUMNS[columns],
        "letters": LETTERS[: len(panels)] if len(panels) > 1 else "",
        "caption": caption_of(panels) if caption else "",
        "panels": [
            _panel_spec(panel, whole if panel.wide or len(panels) == 1 else part)
            for panel in panels
        ],
    }
    return _page(
        "figure_sheet.html",
        "sheet.js",
        spec=_as_element(json.dumps(spec)),
        alt=" ".join(panel.figure.printed().describe() for panel in panels),
        theme=theme,
        palette=PALETTES[theme],
    )


def _panel_spec(panel: Panel, width: int) -> dict[str, object]:
    figure = panel.figure.printed()
    picture = printed(figure.plot(theme="light", width=width, **figure.print_options))
    return {"width": width, "figure": json.loads(content.plain_json(picture))}


# ---- PDF


#: Environment variable that names the browser, if it is not found automatically.
BROWSER_VARIABLE = "CALVIZ_CHROMIUM"
_BROWSERS = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
    *("microsoft-edge", "msedge"),
)
_BROWSER_PATHS = {
    "darwin": (
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
        "/Applications/Chromium.app/Contents/MacOS/Chromium",
        "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    ),
    "win32": (
        r"C:\Program Files\Google\Chrome\Application\chrome.exe",
        r"C:\Program Files (x86)\Google\Chrome\Application\chrome.exe",
        r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
    ),
}
#: Nothing is fetched, stored or asked; the time budget is for the page's scripts.
_BROWSER_OPTIONS = (
    *("--headless", "--disable-gpu", "--no-first-run", "--no-default-browser-check"),
    *("--disable-extensions", "--disable-background-networking", "--disable-sync"),
    "--host-resolver-rules=MAP * ~NOTFOUND",
    *("--no-pdf-header-footer", "--virtual-time-budget=20000"),
)


def _browser() -> str | None:
    """Return the path of Chromium, Chrome or Edge, or of the program that CALVIZ_CHROMIUM names; None if there is none."""
    if named := os.environ.get(BROWSER_VARIABLE):
        return shutil.which(named)
    places = (place for place in _BROWSER_PATHS.get(sys.platform, ()) if Path(place).is_file())
    return next((path for name in _BROWSERS if (path := shutil.which(name))), next(places, None))


def why_no_pdf() -> str:
    """Return why this machine cannot write a PDF; empty if it can."""
    if _browser() is not None:
        return ""
    named = os.environ.get(BROWSER_VARIABLE)
    reason = "there is none here"
    if named:
        reason = f"{BROWSER_VARIABLE} names '{named}', which is not a program"
    return (
        f"a PDF needs Chromium, Chrome or Edge, and {reason}; install one, or open the HTML file in "
        "any browser and print it."
    )


def to_pdf(html: str) -> bytes:
    """Print a self-contained page as PDF.

    Parameters
    ----------
    html : str

    Returns
    -------
    bytes

    Raises
    ------
    NotAvailable
        If there is no browser, or printing fails.
    """
    browser = _browser()
    if browser is None:
        raise NotAvailable(why_no_pdf())
    with tempfile.TemporaryDirectory(prefix="calviz-pdf-", ignore_cleanup_errors=True) as folder:
        page, printed = Path(folder, "page.html"), Path(folder, "page.pdf")
        page.write_text(html, encoding="utf-8")
        command = [
            browser,
            *_BROWSER_OPTIONS,
            # Chromium refuses to run its sandbox as root, as in a container; the page is our own and loads nothing.
            *(["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []),
            f"--user-data-dir={Path(folder, 'profile')}",
            f"--print-to-pdf={printed}",
            page.as_uri(),
        ]
        try:
            subprocess.run(command, capture_output=True, timeout=180, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            reason = "took too long" if isinstance(error, subprocess.TimeoutExpired) else str(error)
            raise NotAvailable(f"{browser} did not print: {reason}.") from None
        pdf = printed.read_bytes() if printed.is_file() else b""
    if not pdf.startswith(b"%PDF-"):
        raise NotAvailable(
            f"{browser} did not print; open the HTML file in any browser and print it."
        )
    return pdf
