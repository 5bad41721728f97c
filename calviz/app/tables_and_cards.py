"""The verdict, findings and metrics in words and pictures; tables of rows; and downloads of tables."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
import streamlit as st

from calviz.app import navigation, screen
from calviz.app.session import choose_one, current, md, offer_file, on_screen
from calviz.comparison.comparison_results import TIED_SIGN, ComparisonColumn
from calviz.core import words
from calviz.core.blocks import IntArray
from calviz.core.entry_specs import BEHIND, CHECKS, METRICS, MetricResult, shown_first
from calviz.core.errors import Finding, worst_first
from calviz.core.events import Reduction
from calviz.core.predictions import Dataset, Predictions
from calviz.core.words import capitalised, counted, decimal, full_sentence, keep_units_together
from calviz.sample.sample import reduce
from calviz.verdicts.evaluation import Evaluation, Verdict, Written, at_its_end, name_of

if TYPE_CHECKING:
    from pandas.io.formats.style import Styler

#: Signs of the verdict's direction, in the colours of the figures: too high, too low.
_SIGNS = {
    "over": ":orange[:material/arrow_upward:]",
    "under": ":violet[:material/arrow_downward:]",
    "mixed": ":orange[:material/swap_vert:]",
    "off": ":orange[:material/swap_vert:]",
    "calibrated": ":green[:material/check_circle:]",
    "undecided": ":gray[:material/help:]",
}
_ICONS = {"info": ":material/info:", "warning": ":material/warning:", "error": ":material/error:"}


def sign_of(judged: Verdict | None) -> str:
    """Return the sign of a verdict's direction, in the colours of the figures, unless the headline is about a slice, whose direction may be another."""
    of_all = judged and not (judged.changed_where or judged.named_where)
    return _SIGNS.get(judged.direction, "") if judged and of_all else ""


#: The tab that shows more about the subject of a check, and the view of *Classes* that does.
_TABS = {
    "bins": ("reliability", {}),
    "predicted-class": ("classwise", {"classes_by": "by predicted class"}),
    "one-vs-rest": ("classwise", {"classes_by": "one-vs-rest"}),
    "true-class": ("classwise", {"classes_by": "by true class"}),
    "slices": ("slices", {}),
    "times": ("over_time", {}),
}


def draw_notices(notices: Iterable[Finding]) -> None:
    """Draw what was noticed or changed while a file was read, worst first; the codes are behind the help."""
    for notice in worst_first(notices):
        text = md(keep_units_together(full_sentence(on_screen(notice.message))), 1_000)
        help = f"Code {notice.code}, as in the report and on the command line."
        st.markdown(f"{_ICONS[notice.severity]} {text}", help=help)


def draw_findings(reported: Sequence[Finding]) -> None:
    """Draw the findings in few words, the rest as help, each with a link to its tab; worst first.

    Those after the first few are folded away; those about values that `shown_first` leaves out are for `draw_values`.
    """
    first, of_values = shown_first(reported), _of_values(reported)
    _listed(first)
    if rest := [f for f in worst_first(reported) if f not in (*first, *of_values)]:
        with st.expander(counted(len(rest), "more finding")):
            _listed(rest)


def draw_values(reported: Sequence[Finding]) -> None:
    """Draw the findings about values that stand behind others."""
    _listed(_of_values(reported))


def _of_values(reported: Sequence[Finding]) -> list[Finding]:
    first = shown_first(reported)
    return [f for f in worst_first(reported) if CHECKS[f.code].about in BEHIND and f not in first]


def _listed(shown: Sequence[Finding]) -> None:
    for finding in shown:
        message = md(keep_units_together(full_sentence(finding.message)), 1_000)
        icon = _ICONS[finding.severity]
        short = finding.short and md(keep_units_together(full_sentence(finding.short)), 1_000)
        text, link = st.columns([3, 1], gap="small", vertical_alignment="center")
        text.markdown(f"{icon} {short or message}", help=message if short else None)
        if (about := CHECKS[finding.code].about) in _TABS:
            tab, view = _TABS[about]
            with link:
                navigation.draw_link(tab, navigation.PAGES_BY_KEY[tab].title, settings=view)


def draw_tiles(
    evaluation: Evaluation, keys: Sequence[str], *, pinned: Mapping[str, MetricResult] | None = None
) -> None:
    """Draw metrics beside each other: name and value, and below them interval or noise floor, and the `pinned` value."""
    for place, key in zip(st.columns(len(keys), gap="small"), keys, strict=True):
        with place.container(gap="xxsmall"):
            _tile(evaluation[key], evaluation, (pinned or {}).get(key))


def _tile(result: MetricResult, evaluation: Evaluation, pinned: MetricResult | None) -> None:
    written = Written(result, evaluation.verdict)
    unit = f", {written.unit_words}" if written.unit_words else ""
    st.metric(f"{name_of(result)}{unit}", written.value, help=tooltip(result))
    floor = result.noise_floor
    if not result.available:
        text = result.reason or "not available"
    elif evaluation.rows == 1:
        text = "n = 1: not meaningful"
    elif METRICS[result.key].tail == "upper" and floor is not None:
        text = f"noise: {written.of(floor.mean)}, rarely above {written.of(floor.q95)}"
    else:
        text = written.interval(result.interval)
    st.caption(md("; ".join(filter(None, (text, written.only_alone(evaluation.verdict)))), 300))
    if pinned is not None and pinned.available:
        st.caption(_pinned(pinned))


def draw_metric_lines(
    evaluation: Evaluation,
    keys: Sequence[str],
    *,
    verdict: Verdict | None = None,
    notes: Mapping[str, str] | None = None,
    pinned: Mapping[str, MetricResult] | None = None,
) -> None:
    """Draw metrics in one line of text each: value, interval, noise floor, `pinned` value; `notes` follow the name.

    `verdict` is that of the same rows, for an evaluation that has none.
    """
    judged = verdict or evaluation.verdict
    with st.container(gap="xsmall"):
        for key in keys:
            other = (pinned or {}).get(key)
            _line(evaluation[key], evaluation.rows, (notes or {}).get(key, ""), judged, other)


def _line(
    result: MetricResult, rows: int, note: str, verdict: Verdict | None, pinned: MetricResult | None
) -> None:
    metric = METRICS[result.key]
    written = Written(result, verdict)
    if not result.available:
        st.markdown(f"**{metric.label}** {md(result.reason or 'not available', 300)}")
        return
    label = f"{metric.label} ({note})" if note else name_of(result)
    unit = f" {written.unit_words}" if written.unit_words else ""
    parts, details = [f"**{label} {written.value}{unit}**"], ""
    if rows == 1:
        parts.append("n = 1: not meaningful")
    else:
        short, full = (
            written.noise(tail=metric.tail, verdict=verdict, short=s) for s in (True, False)
        )
        parts += [written.interval(result.interval), short]
        if short != full:
            details = md(full_sentence("; ".join(filter(None, (full, written.why_apart)))), 1_000)
    if pinned is not None and pinned.available:
        parts.append(_pinned(pinned))
    help = "\n\n".join(filter(None, (capitalised(details), tooltip(result))))
    st.markdown(" · ".join(p for p in parts if p), help=help)


def _pinned(result: MetricResult) -> str:
    return f":material/keep: pinned {Written(result).value}"


def tooltip(result: MetricResult) -> str:
    """Return what a metric means, and its interval if that is baffling, in markdown for a tooltip, with a link to its entry."""
    text = f"{METRICS[result.key].summary} {capitalised(at_its_end(result))}"
    return f"{md(text, 1_000)} [Formula and source]({entry_address(result.key)})"


#: The address's parameter for the open entry.
ENTRY_PARAMETER = "entry"


def entry_address(key: str) -> str:
    """Return the address of an entry, relative to any page."""
    return f"learn?{ENTRY_PARAMETER}={key}"


# ---- Tables

#: Of a column of numbers that are written as texts.
RIGHT = st.column_config.Column(alignment="right")
#: Largest number of score columns in a preview; more would be unreadable.
PREVIEW_CLASSES = 12


def rows_table(
    data: Dataset, rows: IntArray, reduction: Reduction, numbers: IntArray | None
) -> pd.DataFrame:
    """Return a table of some rows with score and hit, which is called an event where it is not that a prediction is right.

    Parameters
    ----------
    data : Predictions or ConfidencePredictions
    rows : ndarray of int
        Which rows of `data`, 0-based.
    reduction : Reduction
        Defines score and hit.
    numbers : ndarray of int, optional
        For each row of `data` its row number in the file, 0-based, if the file was read without leaving out rows.
    """
    part = data.take(rows)
    events = reduce(part, reduction)
    facts = _facts(part)
    at = rows if numbers is None else numbers[rows]
    front: dict[str, object] = {"row": 1 + (at if part.file_rows is None else part.file_rows)}
    front |= {name: facts.pop(name) for name in (data.id_name, "label") if name in facts}
    predicted = part.predicted
    if predicted is not None and part.class_names:
        front["predicted"] = np.asarray(part.class_names, dtype=object)[predicted]
    hit = "hit" if reduction.kind == "top-label" else "event"
    front |= {"score": events.score, hit: np.where(events.hit, "yes", "no")}
    return _joined(front, facts)


def _joined(front: dict[str, object], facts: dict[str, object]) -> pd.DataFrame:
    """Return a table; columns of the file with the name of another one, such as a group called "score", are renamed."""
    facts = {name if name not in front else f"{name} (file)": c for name, c in facts.items()}
    return pd.DataFrame(front | facts)


def preview(data: Dataset) -> pd.DataFrame:
    """Return the first 50 rows as they were understood."""
    part = data.take(np.arange(min(50, data.n)))
    rows = np.arange(part.n) if part.file_rows is None else part.file_rows
    columns: dict[str, object] = {"row": 1 + rows}
    facts = _facts(part)
    columns |= {name: facts.pop(name) for name in (data.id_name, "label") if name in facts}
    if isinstance(part, Predictions):
        shown = words.distinct(part.class_names[:PREVIEW_CLASSES], 24)
        for j, short in enumerate(shown.values()):
            columns[f"P({short})"] = part.probs[:, j]
    else:
        columns["confidence"] = part.confidence
        columns["correct"] = np.where(part.correct, "yes", "no")
        if part.predicted is not None and part.class_names:
            columns["predicted"] = np.asarray(part.class_names, dtype=object)[part.predicted]
    return _joined(columns, facts)


def _facts(part: Dataset) -> dict[str, object]:
    columns: dict[str, object] = {}
    if part.ids is not None:
        columns[part.id_name] = part.ids
    if part.labels is not None and part.class_names:
        columns["label"] = np.asarray(part.class_names, dtype=object)[part.labels]
    if part.splits is not None:
        columns["split"] = part.splits.values()
    if part.times is not None and part.time_name in part.texts:  # with offsets, as in the file
        columns[part.time_name] = part.texts[part.time_name].values()
    elif part.times is not None:
        unit = "D" if (part.times.astype("datetime64[D]") == part.times).all() else "s"
        unit = {"%Y-%m": "M", "%Y": "Y"}.get(str(part.time_form), unit)  # as in the file
        columns[part.time_name] = part.times.astype(f"datetime64[{unit}]").astype(str)
    if part.clusters is not None:
        columns[part.column_names.get("clusters", "cluster")] = part.clusters.values()
    if part.weights is not None:
        columns[part.column_names.get("weights", "weight")] = part.weights
    for name, column in part.groups.items():
        if name not in part.column_names.values():
            columns[name if name not in columns else f"{name} (group)"] = column.values()
    columns |= {name: column for name, column in part.numbers.items() if name not in columns}
    columns |= {name: text.values() for name, text in part.texts.items() if name not in columns}
    return columns


def ticked(rows: Sequence[int]) -> Any:
    """Return the default selection of a table in which these rows are ticked, by their position."""
    return {"selection": {"rows": list(rows)}} if rows else None


def with_signs(frame: pd.DataFrame, signed: Mapping[str, int]) -> Styler:
    """Return a table whose signed columns have typographic plus and minus signs, and sort as numbers.

    Parameters
    ----------
    frame : DataFrame
    signed : mapping of str to int
        Columns, with their number of decimals.
    """

    def write(value: float, decimals: int) -> str:
        text = decimal(value, decimals)
        return f"+{text}" if value > 0 and float(text.replace(",", "")) != 0 else text

    forms: dict[Hashable, Callable[[float], str]] = {
        name: partial(write, decimals=decimals) for name, decimals in signed.items()
    }
    return frame.style.format(forms, na_rep="–")  # type: ignore[arg-type]


def sortable(texts: pd.DataFrame, numbers: Mapping[str, Sequence[float]]) -> Any:
    """Return a table that shows the texts, with the columns in `numbers` sorted as numbers."""
    columns = list(numbers)
    values = texts.copy()
    formats_by_column: dict[Hashable, Callable[[float], str]] = {}
    # Formats depend on the value: rows with equal values but different texts (other units, for example) are formatted one by one.
    different: set[int] = set()
    for name in columns:
        column = np.asarray(numbers[name], dtype=np.float64)
        values[name] = column
        text_of_value: dict[str, str] = {}  # by the value as text: NaNs are not equal to each other
        for at, (value, text) in enumerate(zip(column.tolist(), texts[name], strict=True)):
            if text_of_value.setdefault(str(value), text) != text:
                different.add(at)
        formats_by_column[name] = partial(_text_of, text_of_value)
    styled = values.style.format(formats_by_column, subset=columns)  # type: ignore[arg-type]
    for at in sorted(different):
        # Functions and not format strings: a text may hold braces.
        formats: dict[Any, Any] = {n: lambda _, t=str(texts[n].iat[at]): t for n in columns}
        styled = styled.format(formats, subset=pd.IndexSlice[[at], columns])
    return styled


def _text_of(texts: Mapping[str, str], value: float) -> str:
    return texts[str(value)]


Cell = tuple[int, int]

#: Characters per line of a row's name.
NAME_LENGTH = 22


def comparison_cell(column: ComparisonColumn, row: str, text: str | None = None) -> str:
    """Return a value as markdown, the best one in bold, and one that is tied with the best with the sign for ties.

    Parameters
    ----------
    column : ComparisonColumn
    row : str
    text : str, optional
        The value, if it is not written as in its column.
    """
    written = md(column.text(row) if text is None else text)
    if column.mark(row) == "best":
        written = f"**{written}**"
    return f"{written}\u00a0{TIED_SIGN}" if column.is_tied(row) else written


def marked_table(
    shown: pd.DataFrame, *, best: Iterable[Cell] = (), second: Iterable[Cell] = ()
) -> Styler:
    """Return a table for `st.table` with marked cells (row and column, from 0); its cells are escaped markdown, its names plain text."""
    shown = shown.rename(index=lambda name: md(words.in_lines(str(name), NAME_LENGTH)))
    for name, texts in shown.items():
        if (tied := texts.str.endswith(TIED_SIGN)).any():
            # A figure space is as wide as the sign: decimals stand below each other. What ends a cell is not trimmed.
            shown[name] = texts.where(tied, texts + "\u00a0\u2007\u2060")
    # Not underlined, as links are.
    styles = {"font-weight": best, "font-style": second}
    values = {"font-weight": "bold", "font-style": "italic"}
    rules = [
        {"selector": f"td.row{row}.col{column} p", "props": [(name, values[name])]}
        for name, cells in styles.items()
        for row, column in cells
    ]
    return shown.style.set_table_styles(rules)  # type: ignore[arg-type]


# ---- Downloads


def download_button(
    label: str, table: pd.DataFrame | Callable[[], pd.DataFrame], name: str, *, quiet: bool = False
) -> None:
    """Draw the button.

    Parameters
    ----------
    label : str
    table : DataFrame or callable
        The table, or a function that makes it. The CSV is written on the click: a long table takes a fifth of a second.
    name : str
        What it holds ("levels"); the file's name begins with that of the data.
    quiet : bool, default False
        Whether to draw it without a border, below a table or a figure that is the main content.
    """
    offer_file(
        label,
        lambda: words.csv_bytes(table() if callable(table) else table),
        f"{current().file_stem}-{name}.csv",
        "text/csv",
        type="tertiary" if quiet else "secondary",
        key=f"calviz.{name}.download",
    )


def draw_figure_table(
    frame: Callable[[], pd.DataFrame],
    name: str,
    *,
    alt: str,
    download: Callable[[], pd.DataFrame] | None = None,
) -> None:
    """Draw the numbers of a figure, folded away, with a button that downloads them, or `download` in their place."""

    def draw() -> None:
        shown = frame()
        screen.table(shown, alt=alt, column_config=dict.fromkeys([*shown][1:], RIGHT))
        download_button("Download as CSV", download or frame, name)

    navigation.draw_folded("What is drawn, as a table", draw, key=f"calviz.{name}.open")


#: Suffix and media type of each format.
EXPORT_FORMATS = {
    "CSV": ("csv", "text/csv"),
    "Markdown": ("md", "text/markdown"),
    "LaTeX": ("tex", "text/x-tex"),
}


def draw_export(content_in: Callable[[str], str], name: str) -> None:
    """Draw a choice of format, a button to download, and the text to copy.

    Parameters
    ----------
    content_in : callable
        ``content_in(form)`` returns the table in a format of `EXPORT_FORMATS`.
    name : str
        As in `download_button`.
    """
    forms = {form: form for form in EXPORT_FORMATS}
    form = choose_one("Format", forms, key=f"calviz.{name}.format")
    suffix, mime = EXPORT_FORMATS[form]
    content, file = content_in(form), f"{current().file_stem}-{name}.{suffix}"
    offer_file(f"Download as {form}", content, file, mime, key=f"calviz.{name}.download")
    st.code(content, language=None, height=260)


def written(
    form: str, numbers: pd.DataFrame, texts: pd.DataFrame, *, caption: str, right: Sequence[str]
) -> str:
    """Return a table in a format: the numbers as CSV, or the texts in Markdown or LaTeX with the columns in `right` aligned right."""
    if form == "CSV":
        return words.csv_bytes(numbers).decode()
    write = words.markdown_table if form == "Markdown" else words.latex_table
    return write(texts, caption=caption, right=right)
