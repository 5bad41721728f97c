"""Whether these probabilities can be trusted."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import streamlit as st

from calviz.app import navigation, pinning, reading_panel, selection, session, tables_and_cards
from calviz.app.bar import draw_other_view
from calviz.app.interactive_reliability import draw_clickable
from calviz.app.rows_shown import draw_selection, say_not_followed
from calviz.app.screen import chart, copy_button
from calviz.app.session import Settings, md
from calviz.core.entry_specs import shown_first
from calviz.core.words import keep_units_together, two_shares
from calviz.figures.hundred_squares import HundredSquares
from calviz.figures.reliability import ReliabilityOverlay
from calviz.sample.sample import MIN_ROWS, dataset_of, event_sums, on_days
from calviz.sample.slices import usual_slices
from calviz.verdicts import analysis
from calviz.verdicts.evaluation import Verdict
from calviz.verdicts.miscalibration_checks import where_to_look

#: The module that fits maps.
_FITTING = "calviz.comparison.fitting"


def overview(chosen: Settings) -> None:
    """Verdict, diagram, first numbers, findings, and what to do next."""
    with st.container(horizontal=True, vertical_alignment="center"):
        if chosen.entry.sample is not None:
            st.caption("calviz checks whether probabilities can be trusted.", width="content")
            icon = ":material/upload_file:"
            navigation.draw_link("data", "**Use your file**", icon=icon, width="content")
        st.space("stretch")
        plain = session.toggle(
            "Plain words",
            key="plain",
            help="The verdict in five sentences, for readers who do not know the terms.",
        )
    evaluation = session.evaluation(chosen)
    judged = evaluation.verdict
    assert judged is not None  # findings come with it
    title = re.sub(r" \(slope .*?\)", "", judged.headline) if plain else judged.headline
    navigation.draw_head(title, sign=tables_and_cards.sign_of(judged))
    if not plain and (more := judged.beyond_headline):
        whole = md(judged.sentence, 1_000)
        st.markdown(md(keep_units_together(more), 1_000), help=whole * (more not in whole) or None)
    if navigation.has_judge(chosen.entry):
        with st.container(horizontal=True, vertical_alignment="center"):
            navigation.draw_link("judge", navigation.TO_JUDGE, width="content")
            if chosen.entry.loaded.ways:
                reading_panel.draw_offers(chosen.entry)
    if judged.in_reverse:
        reading_panel.draw_other_way_round(chosen.entry)
    # Each row may have been told to count by itself.
    alone = chosen.entry.options.cluster_column == ""
    rows = dataset_of(replace(chosen.whole, clusters_known=False)) if alone else chosen.whole
    reading_panel.draw_related(chosen.entry, rows.days_are_clusters, say=True)
    if plain:
        in_plain_words(chosen, judged)
        return
    pictures, words = st.columns(2, gap="medium")
    with pictures, navigation.boundary():
        diagram = session.reliability(chosen)
        draw_clickable(
            diagram,
            chosen,
            key="overview.chart",
            beside=ReliabilityOverlay.of_headline(chosen.sample, diagram.sums, judged),
        )
    with words, navigation.boundary():
        keys = analysis.first_metrics(chosen.sample)
        pinned = pinning.values(chosen, keys)
        off = "oe_ratio" if "oe_ratio" in keys else "mcs"
        tiles = (off, chosen.sample.ece_key, keys[0])
        tables_and_cards.draw_tiles(evaluation, tiles, pinned=pinned)
        findings = where_to_look(evaluation)
        with st.expander("More numbers"):
            others = [key for key in keys if key not in tiles]
            tables_and_cards.draw_metric_lines(evaluation, others, pinned=pinned)
            tables_and_cards.draw_values(findings)
        say_fix = _draw_next(chosen, judged)
        if shown_first(findings):
            st.subheader("Where to look", anchor=False)
            tables_and_cards.draw_findings(findings)
        if not navigation.has_judge(chosen.entry):
            reading_panel.draw_offers(chosen.entry, of="time_column")
        for column in filter(None, (f.model_column for f in findings)):
            reading_panel.draw_models_of_rows(chosen.entry, column)
        draw_other_view(chosen, session.other_view(chosen))
    with navigation.boundary():
        draw_selection(chosen)
    say_fix()


def _draw_other_model(chosen: Settings) -> None:
    """Link to the comparison: of two models, with what the other says on average and how often it is right."""
    others = [name for name in chosen.entry.loaded.models if name != chosen.model]
    words = f"{len(others) + 1} models: {md(chosen.model, 24)} is shown; compare them"
    if len(others) == 1:
        sums = replace(chosen, model=others[0]).sample.view(event_sums)
        said, true = two_shares(*(float(s[0] / sums.n) for s in (sums.score_sum, sums.hit_sum)))
        top = chosen.reduction.kind == "top-label"
        means = f"sure of {said}, right in {true}" if top else f"mean score {said}, observed {true}"
        words = f"Compare with {md(others[0], 24)}: {means}"
    if others:
        navigation.draw_link("compare_models", words, width="content")


def _draw_next(chosen: Settings, judged: Verdict) -> Callable[[], None]:
    """Draw what to do next; return what says above it, after the rest of the page, what recalibration would bring."""
    # What fits maps takes a second to import: a fresh server draws the page first, and the line once it is there.
    waits = None if _FITTING in sys.modules else 2.0
    fix = st.container()
    with st.container(horizontal=True, gap="small"):
        groups, classes = judged.only_slices_off, judged.classes_off
        changed = bool(judged.changed)
        found = judged.direction not in ("calibrated", "undecided")
        primary = found and not (groups or changed or judged.in_reverse)
        steps: list[tuple[Any, ...]] = [("Recalibrate", "recalibrate", primary)]
        if judged.changed_where:
            days = on_days(chosen.whole, judged.changed_days, judged.changed_where)
            steps.append(("See the rows", "reliability", True, selection.SliceRule(days)))
        elif changed:
            steps.append(("See the change", "over_time", True))
        elif groups and not judged.off_alone:
            steps.append(("See the groups", "slices", True))
        elif classes:
            steps.append(("See the classes", "classwise"))
        else:
            alone, rule = bool(judged.off_alone), _worst_rows(chosen)
            steps.append(("See the rows", "reliability", alone, rule))
        if judged.off_alone or judged.elsewhere:
            found = usual_slices(chosen.sample)
            others = selection.OtherRows.than([s.where for s in found.named] if found else [])
            steps.append(("See the other rows", "reliability", False, others))
        for step in sorted(steps, key=lambda step: True not in step[2:]):
            _button(*step)
    _draw_other_model(chosen)

    def say() -> None:
        with fix:
            st.fragment(_say_what_a_fix_brings, run_every=waits)(chosen, judged, waits is not None)

    return say


def _worst_rows(chosen: Settings) -> selection.SelectionRule | None:
    """Return the rule of the slice that alone is off, or most, or of the worst bin, as diagram and findings name it; None if there is none, or if rows are selected already."""
    verdict, diagram = session.evaluation(chosen).verdict, session.reliability(chosen)
    if verdict is None or selection.current(chosen) is not None:
        return None
    if verdict.named_where:
        return selection.SliceRule(verdict.named_where)
    if None in (verdict.worst, diagram.worst) or verdict.reduction != chosen.sample.reduction.key:
        return None
    number = int(diagram.bin[diagram.worst])
    return selection.Bins(number, number)


def _button(
    label: str, page: str, primary: bool = False, rule: selection.SelectionRule | None = None
) -> None:
    # A link could not be primary.
    if st.button(label, type="primary" if primary else "secondary"):
        if rule is not None:
            # The page that is switched to draws the selection.
            selection.choose(rule, answers_first=True)
        # A click that says what it wants needs no second one.
        asked = {session.COMPARED: "yes"} if page == "recalibrate" else {}
        st.switch_page(navigation.link(page), query_params=st.query_params.to_dict() | asked)


def _say_what_a_fix_brings(chosen: Settings, judged: Verdict, waited: bool) -> None:
    """Say the advice of *Recalibrate* once there is one, and before what one parameter or two, fitted on the calibration rows or else on half of all, make of the ECE."""
    if chosen.sample.data.rows < MIN_ROWS or _FITTING not in sys.modules:
        return
    if waited:
        st.rerun()  # ends the waiting
    with navigation.boundary():
        _draw_fix(chosen, judged)


def _draw_fix(chosen: Settings, judged: Verdict) -> None:
    from calviz.app import recalibrate_comparison
    from calviz.report.sections.summary import advised

    key, plain = chosen.sample.ece_key, bool(st.session_state["plain"])
    comparison = recalibrate_comparison.latest_comparison(chosen)
    if comparison is not None and comparison.advice is not None and comparison.advice.given:
        lead, below = advised(comparison, comparison.advice, judged, key, plain)
        st.markdown(f"**{md(lead)}** {md(keep_units_together(below), 1_000)}")
        return
    pinning.say_simple_map(chosen, judged, plain=plain)


def in_plain_words(chosen: Settings, judged: Verdict) -> None:
    """Five sentences and a picture for readers who do not know the terms, and what to do next."""
    say_not_followed(chosen, "These sentences are about all rows")
    sentences = analysis.explain(chosen.sample)
    words, picture = st.columns([10, 11], gap="large")
    with words:
        st.markdown(
            "\n".join(f"{n}. {md(text, 1_000)}" for n, text in enumerate(sentences, start=1))
        )
        copy_button(" ".join(sentences), "Copy the five sentences", key="calviz.explain.copy")
        say_fix = _draw_next(chosen, judged)
    with picture:
        if judged.rows > 1:
            squares = HundredSquares.compute(judged, chosen.sample)
            chart(squares, key="explain", filename="of-a-hundred")
            st.caption("Every square stands for one of a hundred rows.")
    say_fix()


navigation.enter()
navigation.open_tab({"overview": overview})
