"""One reliability diagram before and after a recalibrator, on rows that the map has not seen.

Alone, so that the first page does not load what fits maps.
"""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from calviz.app import navigation, screen, session
from calviz.app.session import Settings, cached_results, choose_method, md, name_after
from calviz.comparison.fitting import BeforeAfter, before_and_after
from calviz.core.entry_specs import RECALIBRATORS
from calviz.core.errors import CalvizError
from calviz.figures.reliability import Reliability
from calviz.report.sections.summary import fix_words, fixed_rows_words, no_fix_words, simple_words
from calviz.sample.sample import Sample, rows_where
from calviz.verdicts import analysis
from calviz.verdicts.evaluation import Evaluation, Verdict, Written, name_of

#: Pixels of the diagram, beside its table.
WIDTH = 480


@navigation.fragment
def explore_before_and_after(settings: Settings) -> None:
    """Draw a choice of method, the points before and after in one diagram, and their metrics."""
    method = choose_method(settings)
    if method == session.NOT_RECALIBRATED:
        st.caption("Choose a method to see what it does to these points.")
    else:
        draw_before_and_after(method, settings)


def draw_before_and_after(method: str, settings: Settings) -> None:
    """Draw the points before and after a method, or `simple_method` for "", in one diagram, and their metrics."""
    result = recalibrated_numbers(method, settings)
    row = st.container(horizontal=True, gap="medium")
    with row.container(width=WIDTH + screen.wider()):
        screen.draw_before_and_after(
            *_diagrams(method, settings), key="reliability.after", name=result.label
        )
    keys = [r.key for r in result.values[0] if r.available and result.values[1][r.key].available]
    with row.container():
        shown = {
            "": [name_of(result.values[0][key]) for key in keys],
            "before": [_value(result.values[0], key) for key in keys],
            name_after(result.label): [_value(result.values[1], key) for key in keys],
        }
        screen.table(shown, alt="Metrics before and after")
        st.caption(md(result.words, 1_000))


def say_simple_map(settings: Settings, judged: Verdict, *, plain: bool = False) -> bool:
    """Say what `simple_method` makes of the ECE, or why no such map is named; return whether it can be drawn."""
    if words := no_fix_words(judged):
        st.markdown(words)
        return False
    try:
        result = recalibrated_numbers("", settings)
    except CalvizError:
        return False
    before, after = (evaluation[settings.sample.ece_key] for evaluation in result.values)
    words = md(fix_words(before, after, result.values[0].rows, result.label, plain))
    words = f"**{words}**" if after.value < before.value else words
    st.markdown(f"{words} {simple_words(judged)}", help=None if plain else md(result.words, 600))
    return True


def _value(evaluation: Evaluation, key: str) -> str:
    written = Written(evaluation[key])
    return f"{written.value} {written.unit_words}".strip()


@dataclass(frozen=True, eq=False)
class RecalibratedNumbers:
    """What a recalibration does to some metrics, and a sentence about the rows.

    Attributes
    ----------
    values : (Evaluation, Evaluation)
        Before and after, of the same rows.
    label : str
        Of the recalibrator.
    words : str
        Which rows the map was fitted on, and which are shown.
    """

    values: tuple[Evaluation, Evaluation]
    label: str
    words: str


@cached_results(8)
def recalibrated_numbers(method: str, settings: Settings) -> RecalibratedNumbers:
    """Return numbers before and after a method, or `simple_method` for ""; raise a CalvizError if it cannot be fitted or judged."""
    with st.spinner("Fitting …", show_time=True):
        both = fitted(settings.rows_key, method, settings)
        before_after, samples = both[0], _samples(settings, both)
        keys = tuple(dict.fromkeys((*analysis.first_metrics(samples[0]), "mce", "rmsce")))
        before, after = (analysis.evaluate(s, keys, noise_floor=True) for s in samples)
        label, words = RECALIBRATORS[before_after.method].label, fixed_rows_words(before_after)
        return RecalibratedNumbers((before, after), label, words)


@cached_results(8)
def _diagrams(method: str, settings: Settings) -> tuple[Reliability, Reliability]:
    with st.spinner("Binning …", show_time=True):
        before, after = _samples(settings, fitted(settings.rows_key, method, settings))
        return Reliability.compute(before, band=False), Reliability.compute(after)


def sample_after(settings: Settings, method: str) -> Sample:
    """Return the judged rows after a method; raise a CalvizError if it cannot be fitted or judged."""
    with st.spinner(md(f"Fitting {RECALIBRATORS[method].label.lower()} …"), show_time=True):
        return _samples(settings, fitted(settings.rows_key, method, settings))[1]


# The calibrated rows take as much memory as the file, so only one map is kept.
@st.cache_resource(scope="session", max_entries=1, show_spinner=False)
def fitted(key: tuple[str, ...], method: str, _settings: Settings) -> tuple[BeforeAfter, Sample]:
    """Return the rows before and after a method, and a sample of those after it."""
    before_after = recalibrate(_settings, method)
    return before_after, Sample(before_after.after)


def _samples(settings: Settings, both: tuple[BeforeAfter, Sample]) -> tuple[Sample, Sample]:
    """Return the judged rows before and after, with reduction and bins of the settings."""
    recalibrated = both[1].but(**settings.how)
    return recalibrated.with_data(both[0].before), recalibrated


def recalibrate(settings: Settings, method: str) -> BeforeAfter:
    """Fit a method and judge the split and slice of the bar; raise a CalvizError if that is not possible."""
    within = rows_where(settings.whole, settings.where)
    return before_and_after(settings.whole, method, eval_split=settings.split, within=within)
