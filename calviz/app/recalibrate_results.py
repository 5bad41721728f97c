"""The methods compared: their table, their diagrams and maps, and the rows before and after one of them."""

from __future__ import annotations

import math
import shlex
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from calviz.app import open_files, rows_shown, screen, selection, session, tables_and_cards
from calviz.app.diagnose_classes import find_class_views
from calviz.app.navigation import draw_folded
from calviz.app.open_files import UnreadableFile
from calviz.app.recalibrate_comparison import (
    ComparisonOutcome,
    differences,
    figure_after,
    metric_after,
    usual_suffix,
    written,
)
from calviz.app.selection import rows_of
from calviz.app.session import Settings, md, name_after, offer_file
from calviz.app.tables_and_cards import Cell, draw_notices, marked_table
from calviz.comparison import comparison_results
from calviz.comparison.comparison_results import Comparison, ComparisonColumn, Mark, Remark
from calviz.comparison.fitting import apply_map, reading_for_map, rows_of_its_model
from calviz.core.entry_specs import METRICS, RECALIBRATORS, UNCALIBRATED
from calviz.core.errors import CalvizError, InputError, Reading, picked
from calviz.core.predictions import Dataset
from calviz.core.words import capitalised, counted, decimal, decimals_for, percent, shorten
from calviz.data import Loaded, ReadingOptions, one_model, read
from calviz.data.format import Notice, span
from calviz.data.writing import TEXT, one_score
from calviz.figures.hundred_squares import Bullet, words
from calviz.sample.losses import part_numbers
from calviz.sample.sample import Sample, event_rate_if_rare, reduce

NBSP = "\u00a0"
#: The column that says whether a change is beyond noise.
_AGAINST = "Against uncalibrated"
#: The address's parameter for the metric that the table is sorted by.
RANK_BY = "rank-by"
#: Methods that stand beside the chosen one.
_RIVALS = 2
#: Cells up to this number of characters are not broken into lines.
SHORT = 14


def draw_methods(outcome: ComparisonOutcome, method: str) -> None:
    """Draw the chosen method beside its best two rivals and no map, and all methods behind a click; a few methods at once."""
    comparison = outcome.comparison
    lead = _leads(comparison)[0]
    ranked = [m.key for m in methods_by_rank(outcome, lead)]
    if len(ranked) <= 1 + 1 + _RIVALS:
        draw_table(outcome)
        return
    rivals = [key for key in ranked if key not in (UNCALIBRATED, method)][:_RIVALS]
    columns = measured(outcome, _usual_columns(outcome))
    _draw_rows(outcome, columns, lead, (UNCALIBRATED, method, *rivals))
    for remark in comparison.remarks(columns):
        if remark.text == comparison.infinite or (remark.kind == "warning" and method in remark.of):
            _draw_remark(comparison, remark)
    draw_folded(
        f"All {counted(len(ranked) - 1, 'method')}",
        lambda: draw_table(outcome),
        key="calviz.methods.all",
        opened=bool({"columns", RANK_BY} & {*st.query_params}),
    )


def _leads(comparison: Comparison) -> list[str]:
    """Metrics that can rank the methods, the usual one first."""
    usual = METRICS.in_table("fits")
    tested = [key for key in usual if comparison.tied.get(key)] or list(usual)
    return sorted(tested, key=lambda key: key != comparison.criterion)


def _usual_columns(outcome: ComparisonOutcome) -> list[str]:
    """The metrics of the table until others are chosen: on a phone, two; where Overview has the AUROC in place of the accuracy, not the accuracy."""
    usual = METRICS.in_table("fits")
    first = usual if screen.page_width() is None else (outcome.comparison.criterion, "ece")
    without = "accuracy" if event_rate_if_rare(Sample(outcome.data), 0.2) else ""
    return [key for key in usual if key in first and key != without and _has(outcome, key)]


def draw_table(outcome: ComparisonOutcome) -> None:
    """Draw the table of all methods with its choices and its download."""
    comparison = outcome.comparison
    above = st.container(horizontal=True, gap="small", vertical_alignment="center")
    above.subheader("All methods", anchor=False, width="content")
    with above.popover("Columns and rank", icon=":material/view_column:", type="tertiary"):
        columns = st.multiselect(
            "Columns",
            [m.key for m in METRICS],
            default=_usual_columns(outcome),
            format_func=lambda key: METRICS[key].label,
            key="columns",
            bind="query-params",
        )
        lead = st.selectbox(
            "Difference and rank by",
            _leads(comparison),
            format_func=lambda key: METRICS[key].label,
            key=RANK_BY,
            bind="query-params",
        )
    with st.spinner("Measuring …", show_time=True):
        shown = measured(outcome, columns)
    frame = _draw_rows(outcome, shown, lead)
    with above.popover("Export the table", icon=":material/download:", type="tertiary"):
        tables_and_cards.draw_export(
            lambda form: table_export(form, outcome, frame, shown), "recalibration"
        )
    for remark in comparison.remarks(shown):
        _draw_remark(comparison, remark)


def _draw_rows(
    outcome: ComparisonOutcome,
    columns: Sequence[ComparisonColumn],
    lead: str,
    only: Collection[str] = (),
) -> pd.DataFrame:
    """Draw the table of all methods, or of `only` some; return that of all."""
    comparison = outcome.comparison
    frame = texts(outcome, columns, lead)
    labels = {m.key: m.label for m in methods_by_rank(outcome, lead) if not only or m.key in only}
    shown = frame.loc[[*labels.values()]]
    st.table(_styled(shown.copy(), comparison, columns, lead), border="horizontal")
    mixture = "" if only and "auto" not in only else mixture_words(comparison)[0]
    st.caption(
        f"{comparison_results.marks_words(columns, labels)} {capitalised(comparison_results.AGAINST_WORDS)}. {md(mixture, 600)}",
        help="Change: from the uncalibrated model, with its 95\u00a0% interval; that of errors that noise makes larger is without that "
        f"noise, so that it may not be the difference of the values; {comparison_results.refit_words(comparison.refits)}. "
        f"Points are percentage points. Binned metrics: {comparison.bins_words}.",
    )
    return frame


def measured(outcome: ComparisonOutcome, metrics: Iterable[str]) -> tuple[ComparisonColumn, ...]:
    """Return a column for each metric, even for those that the comparison left out."""
    return tuple(
        outcome.comparison.column(
            key, {m.key: metric_after(outcome, m.key, key) for m in outcome.fitted}
        )
        for key in metrics
    )


def _draw_remark(comparison: Comparison, remark: Remark) -> None:
    text = remark.words("; ".join(comparison[key].label for key in remark.of))
    if remark.kind == "zeros":
        text = f"{capitalised(text)}."
    if remark.kind == "warning" and not all(comparison[key].is_its_base for key in remark.of):
        st.warning(md(text, 2_000), icon=":material/warning:")
    elif remark.kind != "failed":  # which the table says
        st.caption(md(text, 2_000))


def _has(outcome: ComparisonOutcome, key: str) -> bool:
    result = outcome.fitted[0].metrics.get(key)
    return result is not None and result.available


def mixture_words(comparison: Comparison) -> tuple[str, bool]:
    """Say in one line what the automatic mixture became here; also whether it is one of the compared methods, unchanged."""
    m = comparison.methods.get("auto")
    shares = {} if m is None else m.params.get("chosen", {})
    if m is None or not m.ok or not shares:
        return "", False
    taken = m.params.get("taken", 1)
    alone = len(shares) == 1
    named = [
        RECALIBRATORS[key].label
        if alone
        else f"{percent(w, 0)} {RECALIBRATORS[key].label}".replace(" %", f"{NBSP}%")
        for key, w in sorted(shares.items(), key=lambda pair: -pair[1])
    ]
    named[3:] = [f"{len(named) - 3} more"] if len(named) > 4 else named[3:]
    became = "the uncalibrated model" if taken == 0 else f"{', '.join(named)}{' alone' * alone}"
    part = f", of which {percent(taken, 0)} is taken" if 0 < taken < 1 else ""
    twin = next(iter(shares), "") if taken else UNCALIBRATED
    same = (alone or not taken) and taken in (0, 1) and twin in comparison.methods
    return (
        f"{m.label} averages the methods that are best on held-out rows; here: {became}{part}.",
        same,
    )


def methods_by_rank(outcome: ComparisonOutcome, lead: str) -> list[comparison_results.MethodResult]:
    """Return the uncalibrated model, then the others from best to worst, then those that failed.

    An automatic mixture that is one of the others is left out.
    """
    ranking = {key: i for i, key in enumerate(outcome.comparison.ranking(lead))}
    _, same = mixture_words(outcome.comparison)
    return sorted(
        (m for m in outcome.comparison if not (same and m.key == "auto")),
        key=lambda m: (m.key != UNCALIBRATED, not m.ok, ranking.get(m.key, len(ranking))),
    )


def texts(
    outcome: ComparisonOutcome, columns: Sequence[ComparisonColumn], lead: str
) -> pd.DataFrame:
    """Return the table as shown on screen, indexed by the methods' labels."""
    comparison = outcome.comparison
    lead_writer = comparison.column(lead).written
    rows: dict[str, dict[str, str]] = {}
    for m in methods_by_rank(outcome, lead):
        row = {column.written.heading: _cell(column, m.key) for column in columns}
        change = m.differences.get(lead)
        unit = "points" if lead_writer.unit != "plain" else ""
        head = f"{METRICS[lead].label}: change{f' ({unit})' if unit else ''}"
        row[head] = "" if change is None else _change(lead_writer.scale, change)
        if comparison.tied:
            row[_AGAINST] = "" if change is None else change.verdict
        if outcome.data.kind != "confidence":
            row["Predictions changed"] = f"{m.predictions_changed:,}" if m.ok else ""
        fit = "–" if m.key == UNCALIBRATED else f"{decimal(m.fit_seconds, 2)} s"
        row["Fit"] = fit if m.ok else m.reason or "failed"
        rows[m.label] = row
    return pd.DataFrame.from_dict(rows, orient="index")


def _cell(column: ComparisonColumn, method: str) -> str:
    result = column.results.get(method)
    return "n/a" if result is not None and not result.available else column.cell(method)


def _change(scale: float, change: comparison_results.Difference) -> str:
    """Return a difference with its interval, to two digits of the interval's half width."""
    value, low, high = change.shown
    decimals = decimals_for(scale * (high - low) / 2, figures=2, least=0, most=5)

    def signed(value: float) -> str:
        return decimal(scale * value, decimals, plus=True)

    return f"{signed(value)} ({signed(low)} to {signed(high)})"


def _pictures(comparison: Comparison, lead: str) -> dict[str, str]:
    """Return pictures of the leading metric by the methods' labels, on one scale, as markdown."""
    results = {m.label: m.metrics.get(lead) for m in comparison}
    available = {label: r for label, r in results.items() if r is not None and r.available}
    pictures = screen.picture_column([Bullet.of(r) for r in available.values()])
    return {
        label: f"![{md(words(result, ''))}]({address})" if address else ""
        for (label, result), address in zip(available.items(), pictures, strict=True)
    }


def _styled(
    frame: pd.DataFrame, comparison: Comparison, columns: Sequence[ComparisonColumn], lead: str
) -> Any:
    """Return the table with the best in bold and the second in italics, with pictures of the leading metric where there is room; all texts are escaped."""
    row_of = {label: row for row, label in enumerate(frame.index)}
    marked_cells: dict[Mark, list[Cell]] = {"best": [], "second": []}
    for number, column in enumerate(columns):
        for m in comparison.ready:
            if m.label in row_of and (mark := column.mark(m.key)) is not None:
                marked_cells[mark].append((row_of[m.label], number))
    if _AGAINST in frame:
        # The verdict goes into the cell of its change, as the table is wide.
        change = list(frame)[list(frame).index(_AGAINST) - 1]
        cells = zip(frame[change].tolist(), frame.pop(_AGAINST).tolist(), strict=True)
        frame[change] = [
            text.replace(" (", f"{NBSP}{judged.replace(' ', NBSP)} (", 1) for text, judged in cells
        ]
    shown = frame.map(_unbroken)
    pictures = {} if screen.width_class() in ("narrow", "small") else _pictures(comparison, lead)
    if any(pictures.values()):
        # Inserted after the metrics, whose cells are marked by position.
        drawn = [pictures.get(label, "") for label in frame.index]
        shown.insert(len(columns), f"{METRICS[lead].label}, 95 % CI", drawn)
    return marked_table(shown, **marked_cells)


def _unbroken(text: str) -> str:
    """Return the text escaped, with line breaks allowed only before an interval."""
    line = md(text, 600)
    if len(text) <= SHORT:
        return line.replace(" ", NBSP)
    if text.endswith(")"):
        return line.replace(" to ", f"{NBSP}to{NBSP}")
    return line


def numbers(outcome: ComparisonOutcome, columns: Sequence[ComparisonColumn]) -> pd.DataFrame:
    """Return plain numbers, one row per method and metric."""
    rows = []
    for m in outcome.comparison:
        for column in columns:
            key, result = column.key, column.results.get(m.key)
            change, share = m.differences.get(key), m.best_share.get(key)
            rows.append(
                {
                    "method": m.key,
                    "metric": key,
                    "value": math.nan if result is None else result.value,
                    "change": math.nan if change is None else change.value,
                    "change_low": math.nan if change is None else change.interval.low,
                    "change_high": math.nan if change is None else change.interval.high,
                    "against_uncalibrated": "" if change is None else change.verdict,
                    "best_share": math.nan if share is None else share,
                    "tied_with_best": m.key in outcome.comparison.tied.get(key, ()),
                    "predictions_changed": m.predictions_changed if m.ok else math.nan,
                    **picked(m, "fit_seconds apply_seconds"),
                    "reason": m.reason or "",
                }
            )
    return pd.DataFrame(rows)


def table_export(
    form: str, outcome: ComparisonOutcome, shown: pd.DataFrame, columns: Sequence[ComparisonColumn]
) -> str:
    """Return the table in a format; CSV holds plain fractions, the others the texts on screen."""
    table = shown.rename_axis("Method").reset_index()
    right = [str(c) for c in shown.columns]
    return tables_and_cards.written(
        form, numbers(outcome, columns), table, caption=caption(outcome), right=right
    )


def caption(outcome: ComparisonOutcome) -> str:
    """Return a caption that says where the numbers come from, in plain text."""
    comparison = outcome.comparison
    in_sample = "IN-SAMPLE. " if comparison.in_sample else ""
    return f"{in_sample}{comparison.name}: {comparison.rows_words()}; {outcome.reduction.label}."


# ---- Pictures

#: Width and height of a panel in pixels, and how many are drawn unless all are asked for.
PANEL, HEIGHT, _FEW = 200, 200, 4
#: Width in pixels of one of two figures beside each other.
HALF = 472

#: The setting that chooses one of the figures before and after.
LOOK_AT = "before-after"
VIEWS = {
    "reliability": "Reliability",
    "map": "What the map does",
    "cumulative": "Cumulative (KS)",
    "classes": "Classes (MCS)",
    "risk": "Risk-coverage",
}


def draw_diagrams(outcome: ComparisonOutcome, method: str, settings: Settings) -> None:
    """Draw reliability diagrams on one scale, and all as a table: of the uncalibrated model, a method and the best others or, if asked for, of all."""
    lead = st.session_state.get(RANK_BY, outcome.comparison.criterion)
    shown = [m for m in methods_by_rank(outcome, lead) if m.ok]
    if len(shown) > _FEW and not st.toggle(f"All {len(shown)} diagrams", key="all-diagrams"):
        shown = sorted(shown, key=lambda m: m.key not in (UNCALIBRATED, method))[:_FEW]
    figures = {m.label: figure_after(outcome, m.key, "reliability", settings) for m in shown}
    exact, (first, *others) = "exact " * settings.whole.alike, figures.values()
    st.caption(
        f"Circles: what was observed, {exact}95 % intervals, areas by rows. {first.gap_lines(*others)}Grey: the range of a calibrated "
        f"model. {settings.sample.bins_words}."
    )
    axes = first.shared_axes(*others)
    del axes["tallest"]  # there are no histograms
    # On a phone, two stand side by side.
    width, height = (PANEL, HEIGHT) if screen.page_width() is None else (168, 176)
    # Where some names take two lines, the squares still stand in line.
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        for m, (label, figure) in zip(shown, figures.items(), strict=True):
            with st.container(width=width, gap="xsmall"):
                # With as many decimals as a column of points.
                st.markdown(f"**{md(label)}**  \nECE {decimal(100 * figure.ece, 2)} points")
                drawing = figure.plot_small(theme=screen.theme(), height=height, **axes)
                key, file = f"recalibrate.reliability.{m.key}", f"reliability-{m.key}"
                alt = f"{label}: {figure.describe()}"
                screen.chart(figure, drawing, key=key, filename=file, alt=alt)
    tables_and_cards.draw_figure_table(
        lambda: pd.concat(
            {label: figure.frame() for label, figure in figures.items()}, names=["method"]
        ).reset_index(level=0),
        "recalibration-reliability",
        alt="What the panels show",
    )


def draw_before_and_after(outcome: ComparisonOutcome, method: str, settings: Settings) -> None:
    """Draw further figures of the uncalibrated model and of one method."""
    label = outcome.comparison[method].label
    view = session.choose_one("Look at", VIEWS, key=LOOK_AT)
    outcome = outcome.in_slice(method)
    judged = outcome.rows.evaluation
    fitted = "no map was fitted."
    if outcome.rows.in_sample:
        fitted = "the maps were fitted: they look better than they are."
    rows = counted(judged.rows, "evaluation row")
    st.caption(f"Of {rows} ({md(judged.how)}), on which {fitted}")
    if view == "reliability":
        before, then = (figure_after(outcome, m, view, settings) for m in (UNCALIBRATED, method))
        screen.draw_before_and_after(before, then, key="recalibrate.both", name=label, pair=True)
        return
    # Short names, so that both pictures stand in line.
    both = {UNCALIBRATED: "Before", method: "After"}
    if view == "map":
        st.caption("Dashed: no change. Circles: what was observed, where a map should lead.")
        both = {method: label}
    try:
        if view == "classes":
            if (class_errors := find_class_views(settings)) is None:
                return
            view = class_errors.choose()
        figures = [figure_after(outcome, key, view, settings) for key in both]
    except CalvizError as reason:
        st.info(md(reason, 500))
        return
    kinds = {"cumulative": {"panels": ["a"]}, "map": {}, "risk": {}}
    options = kinds.get(view, {"like": figures[0]})  # classes, in the same order
    drawings = [screen.plotted(f, width=screen.page_width() or HALF, **options) for f in figures]
    screen.share_axes(drawings)
    with st.container(horizontal=True, gap="medium"):
        for (key, name), figure, drawing in zip(both.items(), figures, drawings, strict=True):
            with st.container(width=HALF):
                st.markdown(f"**{md(name)}**")
                file = f"{view}-{key}"
                screen.chart(figure, drawing, key=f"recalibrate.{view}.{key}", filename=file)
                st.caption(md(figure.describe(), 600))


def draw_selected_rows(outcome: ComparisonOutcome, method: str, settings: Settings) -> None:
    """Draw their numbers; nothing if no evaluation row is selected."""
    rule = selection.current_rule()
    if rule is None or method == UNCALIBRATED:
        return
    before = Sample(outcome.calibrated(UNCALIBRATED), **settings.how)
    try:
        rows, name = rows_of(rule, before), rule.words(before)
    except CalvizError:
        return
    if not rows.size:
        return
    st.markdown(f"**Selected: {md(name, 200)}, {counted(rows.size, 'evaluation row')}**")
    after, label = outcome.calibrated(method), name_after(outcome.comparison[method].label)
    samples = {"before": before, label: before.with_data(after)}
    parts = {name: part_numbers(sample, rows) for name, sample in samples.items()}
    rows_shown.draw_parts(settings, parts, rule)


#: Rows that are shown; the calibrated file has all.
ROWS_SHOWN = 200


def draw_calibrated_rows(outcome: ComparisonOutcome, method: str) -> None:
    """Draw a table of the first rows: score before and after, and the method's intervals if it has any."""
    if method == UNCALIBRATED:
        st.caption("The uncalibrated model leaves every row as it is.")
        return
    after, before = outcome.calibrated(method), outcome.calibrated(UNCALIBRATED)
    rows = np.arange(min(ROWS_SHOWN, after.n))
    frame = tables_and_cards.rows_table(after, rows, outcome.reduction, None)
    # The row numbers of a part are not those of the file.
    frame = frame.drop(columns="row")
    score = reduce(before.take(rows), outcome.reduction).score
    frame.insert(list(frame.columns).index("score"), "score before", score)
    numbers = ["score before", "score", *after.numbers]
    first = f"the first {ROWS_SHOWN} of " if after.n > ROWS_SHOWN else ""
    st.caption(
        f"{capitalised(md(name_after(outcome.comparison[method].label)))}, {first}{counted(after.n, 'evaluation row')}; the calibrated file has all rows."
    )
    screen.table(
        frame,
        most=420,
        column_config={name: st.column_config.NumberColumn(format="%.4f") for name in numbers},
        alt="Rows after the method",
    )


# ---- Rows without labels

#: Where maps come from.
MAPS = "Recalibrate fits one to a file with labels; a saved one (JSON) is opened like a file, with the box below."


def draw_unlabelled(file: UnreadableFile) -> None:
    """Draw what can be done with a file without labels: a map is chosen, applied to the rows, and these are offered as a file."""
    maps, told = open_files.files().maps, file.options
    if not maps:
        st.caption(f"There is no map yet. {MAPS}")
        return
    names = sorted(maps, key=lambda name: maps[name].is_for(file.first_rows))[::-1]
    name = st.selectbox("Map", names, format_func=lambda name: shorten(name, 100), help=MAPS)
    chosen = maps[name]
    key = f"calviz.unlabelled.{abs(hash((file.source, told, chosen.key)))}"
    of_file = bool(told.scores or told.models)  # what was said of this file holds
    model = None if of_file else chosen.model
    options = st.session_state.get(key, told if of_file else chosen.options or told)
    try:
        loaded, before, after = _mapped(f"{key}{options}", file, chosen.record, options, model)
    except CalvizError as error:
        st.warning(md(error, 2_000), icon=":material/help:")
        for j, answer in enumerate(error.answers if isinstance(error, InputError) else ()):
            if st.button(md(capitalised(answer.label), 200), key=f"{key}.{j}"):
                st.session_state[key] = options.answered(answer)
                st.rerun()
        return
    _say_mapped(chosen.record, loaded, before, after)
    suffix = usual_suffix(file.title)
    offer_file(
        f"Calibrated file ({suffix[1:].upper()})",
        lambda: written(after, before, suffix, loaded)[0],
        f"{file.title.split('.')[0]}-calibrated{suffix}",
        "text/csv" if suffix in TEXT else "application/octet-stream",
        type="primary",
        key="calviz.unlabelled",
    )
    st.caption(" ".join(differences(suffix, loaded, before)))
    draw_notices(
        n for n in loaded.notices if n.code != Notice.REPAIRED.value or "drop-" not in n.message
    )
    st.caption(
        "Without labels nothing can be measured. In a terminal, this estimates accuracy, AUROC and Brier score as far as the map holds:"
    )
    more = {"model": model} if model else {}
    reading = Reading("", open_files.changed_options(options) | more).in_shell()
    command = f"python -m calviz expected {shlex.quote(file.title)} --map MAP.json {reading}"
    st.code(command.rstrip(), language="bash", wrap_lines=True)


@st.cache_resource(scope="session", max_entries=1, show_spinner="Calibrating …")
def _mapped(
    key: str, _file: UnreadableFile, _record: Any, _options: ReadingOptions, _model: str | None
) -> tuple[Loaded, Dataset, Dataset]:
    """Return a file as it is read for a map, and its rows before and after it."""
    options = reading_for_map(_record, _options, _model)
    loaded = read(_file.source, name=_file.title, options=options)
    if _model is None and len(loaded.models) > 1:
        own = _record.get("scores", {}).get("columns")
        columns = {name: list(loaded.score_columns(name)) for name in loaded.models}
        _model = next((name for name in columns if columns[name] == own), None)
        if _model is None:
            raise InputError(
                "the file holds several models: to which one is the map applied?",
                readings=[Reading(name, {"models": columns[name]}) for name in columns],
            )
    before = rows_of_its_model(one_model(loaded, _model), _record)
    return loaded, before, apply_map(before, _record)


def _say_mapped(record: Any, loaded: Loaded, before: Dataset, after: Dataset) -> None:
    """Say how many rows a map changes, and the mean of the scores before and after."""
    scores = [one_score(data) for data in (before, after)]
    means = [100 * float(np.average(each, weights=before.weights)) for each in scores]
    n = int((abs(scores[1] - scores[0]) > 1e-9).sum())  # beyond rounding
    of = "confidence"
    if before.kind != "confidence" and before.n_classes == 2:
        of = f"P({md(shorten(before.class_names[1], 40))})"
    st.markdown(
        f"**{counted(before.rows, 'row')} calibrated, {n:,} changed.** The mean {of} goes from {means[0]:.2f} % to {means[1]:.2f} %.",
        help="The rows are calibrated as far as labels depend on the scores as they did on the rows that the map was fitted on.",
    )
    names = tuple(record.get("class_names", ()))
    if before.kind != "confidence" and names and names != before.class_names:
        order = md(span(names))
        st.caption(f"The score columns are taken in the order of the classes of the map: {order}.")
    if other := loaded.other_scores(record, before.name):
        st.warning(md(capitalised(other), 500), icon=":material/warning:")
    if (where := record.get("fitted_where")) and "where" not in record["parameters"]:
        only = f"The map was fitted only on the rows where {md(where, 500)}"
        st.warning(f"{only}; it is applied to all rows.", icon=":material/warning:")
