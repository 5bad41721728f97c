"""Cards: every number with its interval and its noise floor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from calviz.core.finding import Finding
from calviz.results.evaluation import Evaluation, MetricResult
from calviz.results.verdict import Verdict
from calviz.specs.metric import METRICS
from calviz.text.metric_values import Written, name_of
from calviz.text.words import as_sentence, together
from calviz.ui.widgets import learn_links
from calviz.ui.widgets.text import md

_ICONS = {"info": ":material/info:", "warning": ":material/warning:", "error": ":material/error:"}


def metric_cards(evaluation: Evaluation, keys: Sequence[str]) -> None:
    """One card per metric, side by side; the cards fill each row."""
    with st.container(horizontal=True, gap="small"):
        for key in keys:
            with st.container(border=True, width="stretch", height="stretch", gap="xsmall"):
                _card(evaluation[key], evaluation.rows, evaluation.verdict)


def _card(result: MetricResult, rows: int, verdict: Verdict | None) -> None:
    metric = METRICS[result.key]
    written = Written(result)
    unit = f" ({written.unit_words})" if written.unit_words else ""
    st.metric(f"{name_of(result)}{unit}", written.value, help=learn_links.tooltip(metric.key))
    if not result.available:
        st.caption(md(result.reason or "not available", 300))
        return
    if rows == 1:
        st.caption("n = 1: not meaningful")
        return
    st.caption(written.interval(result.interval))
    noise = written.noise(tail=metric.tail, verdict=verdict)
    if noise:
        st.caption(noise[:1].upper() + noise[1:])


def metric_line(
    evaluation: Evaluation,
    keys: Sequence[str],
    *,
    verdict: Verdict | None = None,
    notes: Mapping[str, str] | None = None,
) -> None:
    """Metrics in one line each: value, interval, noise floor; `notes` stand behind the name.

    `verdict` is that of the same rows, where the evaluation brings none.
    """
    judged = verdict or evaluation.verdict
    with st.container(gap="xsmall"):
        for key in keys:
            _line(evaluation[key], evaluation.rows, (notes or {}).get(key, ""), judged)


def _line(result: MetricResult, rows: int, note: str, verdict: Verdict | None) -> None:
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
    st.markdown(" · ".join(p for p in parts if p), help=learn_links.tooltip(metric.key))


def findings(found: Sequence[Finding]) -> None:
    """What was found, worst first, each with its code."""
    order = {"error": 0, "warning": 1, "info": 2}
    if not found:
        st.caption("Nothing to report.")
    for finding in sorted(found, key=lambda f: order[f.severity]):
        with st.container(border=True):
            st.markdown(
                f"{_ICONS[finding.severity]} {md(together(as_sentence(finding.message)), 1_000)}"
            )
            st.caption(md(finding.code))
