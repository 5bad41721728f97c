"""Metrics with their intervals and noise floors, the verdict, and the findings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from calviz.core.finding import Finding, worst_first
from calviz.figures.drawing.style import PALETTES
from calviz.results.evaluation import Evaluation
from calviz.results.metric_result import MetricResult
from calviz.results.metric_words import Written, name_of
from calviz.results.verdict import Verdict
from calviz.specs.metric import METRICS
from calviz.text.words import counted, full_sentence, keep_units_together
from calviz.ui.widgets import bullet, diagram, learn_links
from calviz.ui.widgets.escape import md

#: Width in pixels of a metric's name and value; they stand beside the picture on a phone too.
_NAME = 168
#: Findings shown at once; the others are folded away.
AT_ONCE = 3
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


def metric_cards(
    evaluation: Evaluation,
    keys: Sequence[str],
    *,
    pinned: Mapping[str, MetricResult] | None = None,
) -> None:
    """Draw one line per metric: name and value, with a picture of interval and noise beside them and the `pinned` value below."""
    with st.container(gap="xxsmall"):
        for key in keys:
            _card(evaluation[key], evaluation.rows, evaluation.verdict, (pinned or {}).get(key))


def _card(
    result: MetricResult, rows: int, verdict: Verdict | None, pinned: MetricResult | None
) -> None:
    line = st.container(horizontal=True, gap="small", vertical_alignment="center")
    number, beside = line.container(width=_NAME, gap="xxsmall"), line.container()
    metric = METRICS[result.key]
    written = Written(result)
    unit = f" ({written.unit_words})" if written.unit_words else ""
    name = f"{name_of(result)}{unit}"
    number.metric(name, written.value, help=learn_links.tooltip(metric.key))
    if pinned is not None and pinned.available:
        number.caption(_pinned(pinned))
    if not result.available:
        beside.caption(md(result.reason or "not available", 300))
        return
    if rows == 1:
        beside.caption("n = 1: not meaningful")
        return
    noise = written.noise(tail=metric.tail, verdict=verdict)
    beside.html(bullet.picture(result, PALETTES[diagram.theme()], noise=noise))


def _pinned(result: MetricResult) -> str:
    return f":material/keep: pinned {Written(result).value}"


def metric_line(
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
    result: MetricResult,
    rows: int,
    note: str,
    verdict: Verdict | None,
    pinned: MetricResult | None,
) -> None:
    metric = METRICS[result.key]
    written = Written(result)
    if not result.available:
        st.markdown(f"**{metric.label}** {md(result.reason or 'not available', 300)}")
        return
    label = f"{metric.label} ({note})" if note else name_of(result)
    unit = f" {written.unit_words}" if written.unit_words else ""
    parts = [f"**{label} {written.value}{unit}**"]
    if rows == 1:
        parts.append("n = 1: not meaningful")
    else:
        noise = written.noise(tail=metric.tail, verdict=verdict)
        parts += [written.interval(result.interval), noise]
    if pinned is not None and pinned.available:
        parts.append(_pinned(pinned))
    st.markdown(" · ".join(p for p in parts if p), help=learn_links.tooltip(metric.key))


def findings(reported: Sequence[Finding]) -> None:
    """Draw the findings, worst first, each with its code; those after the first few are folded away."""
    if not reported:
        st.caption("Nothing to report.")
    ranked = worst_first(reported)
    _listed(ranked[:AT_ONCE])
    if rest := ranked[AT_ONCE:]:
        with st.expander(counted(len(rest), "more finding"), icon=":material/expand_more:"):
            _listed(rest)


def _listed(shown: Sequence[Finding]) -> None:
    for finding in shown:
        message = md(keep_units_together(full_sentence(finding.message)), 1_000)
        st.markdown(f"{_ICONS[finding.severity]} {message} :gray[{md(finding.code)}]")


def verdict(judged: Verdict | None, sentence: str) -> None:
    """Draw the verdict as the largest sentence of the page, with a sign of its direction."""
    sign = _SIGNS.get(judged.direction, "") if judged else ""
    st.header(f"{sign} {md(keep_units_together(sentence), 1_000)}".strip(), anchor=False)
