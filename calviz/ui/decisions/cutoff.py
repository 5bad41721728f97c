"""The slider of the cutoff, and everything that depends on it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import streamlit as st

from calviz.figures.kernels.overlaid_curves import Overlay
from calviz.figures.net_benefit import NetBenefit, Shown
from calviz.figures.roc import Roc
from calviz.sample.cutoff import CUTOFF, CutoffCounts, at_cutoff, decidable, net_benefit_of
from calviz.sample.sample import Sample
from calviz.text.words import (
    capitalised,
    decimal,
    keep_units_together,
    percent,
    percent_range,
    share_intervals,
    shorten,
    whole,
)
from calviz.ui.decisions.before_after import DecidingSamples, deciding
from calviz.ui.pinned import on_page
from calviz.ui.pinned import state as state_of_pin
from calviz.ui.selection import state
from calviz.ui.session import page_guard
from calviz.ui.session.settings import Settings
from calviz.ui.widgets import browser, csv_download, diagram, link_choice
from calviz.ui.widgets.escape import md
from calviz.ui.widgets.recalibration_choice import name_of

_SHOWN: dict[Shown, str] = {
    "net-benefit": "net benefit",
    "standardised": "standardised",
    "avoided": "actions avoided",
}
#: The widget of the cutoff, its smallest value and step, and the key of an invalid cutoff in a link.
KEY, LEAST, _BAD_LINK = "cutoff", 0.001, "calviz.decisions.bad_link"
#: Widths in pixels: of a square figure, two of which stand side by side, and of the confusion matrix beside the table of shares.
_SQUARE, _NARROW = 344, 300


def chosen() -> float | None:
    """Return the cutoff that was chosen in this session; None if none was."""
    value = st.session_state.get(KEY)
    return value if isinstance(value, float) else None


def _say_bad_link() -> None:
    """Warn that the cutoff in the link is not valid and was ignored, until another one is chosen."""
    in_link = st.query_params.get(KEY)
    if KEY not in st.session_state and in_link is not None and not _usable(in_link):
        st.session_state[_BAD_LINK] = in_link
    if _BAD_LINK in st.session_state:
        bad_value = md(shorten(st.session_state[_BAD_LINK], 40))
        st.warning(
            f"The link asks for a cutoff of '{bad_value}': it must be a number from {LEAST:g} to {1 - LEAST:g}, so {CUTOFF:g} is shown; "
            "drag the cutoff to the one that was meant.",
            icon=":material/link_off:",
        )


def _usable(text: str) -> bool:
    try:
        return LEAST <= float(text) <= 1 - LEAST
    except ValueError:
        return False


def _forget_bad_link() -> None:
    st.session_state.pop(_BAD_LINK, None)


@st.fragment
def explore(settings: Settings, method: str) -> None:
    """Draw the cutoff, the decisions at it, and the curves; a fragment, so that dragging reruns only this part."""
    with page_guard.boundary():
        deciding_samples = deciding(settings, method)
        name = deciding_samples.before.data.class_names[
            deciding_samples.before.reduction.class_index(deciding_samples.before.data)
        ]
        _say_bad_link()
        cutoff = st.slider(
            f"Act where the probability of '{md(shorten(name, 40))}' is at least",
            LEAST,
            1 - LEAST,
            CUTOFF,
            LEAST,
            format="%.3f",
            key=KEY,
            bind="query-params",
            on_change=_forget_bad_link,
            width=620,
            persist_state="session",
        )
        pinned = _pinned(settings)
        samples = {"now" if deciding_samples.after is None else "as it is": deciding_samples.before}
        if deciding_samples.after is not None:
            samples[deciding_samples.after.data.name] = deciding_samples.after
        if pinned is not None:
            samples[pinned.name] = pinned.content
        cells = [sample.view(at_cutoff, cutoff=cutoff) for sample in samples.values()]
        st.markdown(md(cells[0].meaning(), 1_000))
        if deciding_samples.words:
            st.caption(md(deciding_samples.words, 1_000))
        _of_selected(deciding_samples.before, settings, cutoff)
        _tables(samples, cells)
        roc = _roc(deciding_samples.before)
        beside = [] if pinned is None else [Overlay(pinned.name, pinned.role, _roc(pinned.content))]
        with st.container(horizontal=True, gap="medium"):
            for panel in ("roc", "precision-recall"):
                with st.container(width=_SQUARE):
                    drawing = diagram.plotted(roc, panel=panel, at=cells[0], beside=beside)
                    diagram.chart(roc, drawing, key=f"decisions.{panel}", filename=panel)
        st.caption(
            f"Dot: the cutoff of {cutoff:.3g}. Dashed: scores that do not tell hits from misses."
        )
        _net_benefit(deciding_samples, settings, cutoff, pinned)


def _pinned(settings: Settings) -> Overlay[Sample] | None:
    """Return the pinned state as a sample to decide on, with its own class if one was pinned."""
    pinned = state_of_pin.current(settings)
    by_class = pinned is not None and pinned.settings.reduction.kind == "class"
    return on_page.pinned_overlay(
        settings, decidable, as_now=("bins", "scheme") if by_class else on_page.REDUCTION_AND_BINS
    )


def _of_selected(sample: Sample, settings: Settings, cutoff: float) -> None:
    """Say what is decided on the selected rows, as long as they are among the rows that are shown."""
    chosen = state.current(settings)
    if chosen is None or not chosen.rows.size or sample.data.n != settings.sample.data.n:
        return
    is_acted_on = sample.scored.score[chosen.rows] >= cutoff
    is_hit = sample.scored.hit[chosen.rows]
    counts = [np.count_nonzero(is_acted_on & is_hit), np.count_nonzero(is_acted_on & ~is_hit)]
    missed, left = np.count_nonzero(~is_acted_on & is_hit), np.count_nonzero(~is_acted_on & ~is_hit)
    st.markdown(
        f"Of the selected rows ({md(chosen.name, 200)}), {sum(counts):,} of {chosen.rows.size:,} are acted on, {counts[0]:,} of them "
        f"hits; of the others {missed:,} of {missed + left:,} are hits."
    )


def _roc(sample: Sample) -> Roc:
    return sample.view(Roc.compute, **sample.redrawing)


def _curve(sample: Sample) -> NetBenefit:
    return sample.view(NetBenefit.compute, **sample.redrawing)


def _tables(samples: dict[str, Sample], cells: list[CutoffCounts]) -> None:
    confusion, shares = {}, {}
    for (name, sample), c in zip(samples.items(), cells, strict=True):
        head = "" if len(cells) == 1 else f", {shorten(name, 40)}"
        rows = c.whole
        confusion[f"hits{head}"] = [whole(rows["tp"]), whole(rows["fn"])]
        confusion[f"misses{head}"] = [whole(rows["fp"]), whole(rows["tn"])]
        net = net_benefit_of(c.tp, c.fp, c.n, c.params["cutoff"])
        shares[f"value{head}"] = [*(_share(v[0]) for v in c.shares().values()), decimal(float(net))]
        shares[f"95 % interval{head}"] = [
            *(
                "–" if low != low else percent_range(low, high)
                for _, low, high in c.shares().values()
            ),
            _interval(sample, c),
        ]
    # On a small page, the numbers would be cut beside the confusion matrix.
    side_by_side = len(cells) == 1 and browser.size() in ("wide", "usual")
    with st.container(horizontal=side_by_side, gap="medium"):
        with st.container(width=_NARROW if side_by_side else "stretch"):
            st.dataframe(
                pd.DataFrame({"decision": ["act", "do not act"], **confusion}),
                hide_index=True,
                height="content",
                alt="Confusion matrix at the cutoff",
            )
        with st.container():
            measures = [m.capitalize() for m in cells[0].shares()]
            st.dataframe(
                pd.DataFrame({"at the cutoff": [*measures, "Net benefit"], **shares}),
                hide_index=True,
                height="content",
                alt="Sensitivity, specificity, predictive values and net benefit at the cutoff",
            )
    weighted = cells[0].weights is not None and not cells[0].alike
    st.caption(
        f"{'Counts are sums of weights. ' if weighted else ''}Intervals of shares: {share_intervals(cells[0].alike)}; of the "
        "net benefit: bootstrap."
    )


def _share(value: float) -> str:
    return "–" if value != value else percent(value)


def _interval(sample: Sample, c: CutoffCounts) -> str:
    from calviz.analysis import evaluate

    interval = evaluate(
        sample, ["net_benefit"], ci=True, noise_floor=False, cutoff=c.params["cutoff"]
    )["net_benefit"].interval
    return "" if interval is None else f"{decimal(interval.low)} to {decimal(interval.high)}"


def _net_benefit(
    deciding_samples: DecidingSamples,
    settings: Settings,
    cutoff: float,
    pinned: Overlay[Sample] | None,
) -> None:
    st.subheader("Is it better than deciding without it?", anchor=False)
    shown = link_choice.one_of(
        "Drawn",
        _SHOWN,
        default="net-benefit",
        key="benefit",
        help="Net benefit: hits acted on per row, less false alarms at the cutoff's exchange rate. Standardised: divided by the share "
        "of hits, 1 at best. Actions avoided: per 100 rows, against acting on everybody, no hit being missed on balance.",
    )
    figure = _curve(deciding_samples.before)
    others = []
    if deciding_samples.after is not None:
        others = [_curve(deciding_samples.after)]
    if pinned is not None:
        others.append(replace(_curve(pinned.content), name=pinned.name))
    if others:
        figure = replace(figure, name=name_of(settings))
    st.markdown(md(keep_units_together(figure.reading()), 1_000))
    for other in others:
        name = other.name
        st.markdown(md(keep_units_together(f"{capitalised(name)}: {other.reading()}"), 1_000))
    drawing = diagram.plotted(figure, shown=shown, at=cutoff, others=others)
    diagram.chart(
        figure,
        drawing,
        key="decisions.benefit",
        filename="net-benefit",
        alt=" ".join(f.describe() for f in (figure, *others)),
    )
    frame = pd.concat(
        [f.frame().assign(model=f.name) for f in (figure, *others)], ignore_index=True
    )
    csv_download.button(
        "Download the curve as CSV",
        frame,
        f"{settings.file_stem}-net-benefit.csv",
        key="calviz.decisions.download",
        quiet=True,
    )
