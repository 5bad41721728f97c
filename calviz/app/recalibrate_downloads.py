"""The downloads: the calibrated file, and the map as JSON and as NumPy source."""

from __future__ import annotations

import json
import shlex
import tempfile
from dataclasses import dataclass
from pathlib import Path

import streamlit as st

from calviz.app.recalibrate_comparison import ComparisonOutcome
from calviz.app.session import Settings, choose_one, md
from calviz.comparison.fitting import apply_to_all
from calviz.core.entry_specs import RECALIBRATORS, UNCALIBRATED
from calviz.core.errors import NotAvailable, OptionError
from calviz.core.predictions import Dataset, Predictions
from calviz.core.words import capitalised, counted, file_size
from calviz.data.writing import SUFFIXES, write_predictions
from calviz.sample.sample import where_words

#: More numbers than this take minutes to write as text, and gigabytes to hold.
MOST_TEXT = 20_000_000

_BUILT_FILES, _ADVISED = "calviz.recalibrate.ready", "calviz.recalibrate.advised"


@dataclass(frozen=True, eq=False)
class MethodFiles:
    """The contents of the files, or the reasons why there are none."""

    table: bytes
    map: bytes | None
    snippet: str | None
    no_map: str = ""
    no_snippet: str = ""


def draw_downloads(outcome: ComparisonOutcome, advised: str, settings: Settings) -> str:
    """Draw the choice of a method and of a format, what builds the files, and the downloads; return the method."""
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        method = _choose_method(outcome, advised)
        if method == UNCALIBRATED:
            st.caption(
                "The uncalibrated model is your file as it is: there is nothing to download."
            )
            return method
        usual = _usual(settings)
        suffix = choose_one(
            "Format of the file",
            {s: s[1:].upper() for s in SUFFIXES},
            default=usual,
            key=f"calviz.take-home.format.{usual}",
        )
        file_key = (*outcome.key, method, suffix)
        is_built = st.session_state.get(_BUILT_FILES, ("",))[0] == file_key
        is_requested = st.button(
            "Prepare the files",
            icon=":material/build:",
            key="calviz.take-home",
            # Then the file is what to take.
            type="secondary" if is_built else "primary",
        )
    if is_requested:
        with st.status(f"Calibrating {counted(outcome.whole.n, 'row')} …", expanded=True) as status:
            try:
                files = _build(outcome, method, suffix)
            except (OptionError, NotAvailable) as error:
                status.update(label="Not possible", state="error")
                st.markdown(md(error, 500))
                return method
            status.update(label="The files are ready.", state="complete", expanded=False)
        st.session_state[_BUILT_FILES] = (file_key, files)
    elif not is_built:
        st.caption(
            f"{_which_rows(outcome, settings)} calibrated. Labels, identifiers, splits, groups, clusters, weights, times, numbers and "
            "texts stay; other columns are left out."
        )
        return method
    stem = f"{settings.file_stem}-{method.replace('+', '-')}"
    _offer(st.session_state[_BUILT_FILES][1], stem, suffix)
    fit = outcome.comparison.fit
    words = f"{md(outcome.comparison[method].label)}, fitted on {counted(fit.rows, 'row')}{_of_slice(settings)} ({md(fit.how)})."
    if outcome.rows.in_sample or len(outcome.rows.pairs) == 1:
        words += " The file holds these rows too: judge the result on the others."
    st.caption(words)
    return method


def _choose_method(outcome: ComparisonOutcome, advised: str) -> str:
    """Draw the choice; it follows the advice until the user chooses another one."""
    methods = [m.key for m in outcome.fitted]
    chosen, advised_before = st.session_state.get("method"), st.session_state.get(_ADVISED)
    follows_advice = chosen not in (None, advised) and (
        chosen not in methods or chosen == advised_before
    )
    if follows_advice:
        st.session_state["method"] = advised
    st.session_state[_ADVISED] = advised
    return str(
        st.selectbox(
            "Method",
            methods,
            # No default where the state is set in this run: streamlit warns about two values.
            index=0 if follows_advice else methods.index(advised),
            format_func=lambda key: RECALIBRATORS[key].label,
            key="method",
            bind="query-params",
            width=340,
            help="This method is also drawn before and after.",
        )
    )


def _of_slice(settings: Settings) -> str:
    return f" of {md(where_words(settings.where))}" if settings.where else ""


def _which_rows(outcome: ComparisonOutcome, settings: Settings) -> str:
    n = outcome.whole.n
    if settings.where:
        return f"Only the {counted(n, 'row')}{_of_slice(settings)} {'is' if n == 1 else 'are'}"
    return f"All {counted(n, 'row')} are"


def _usual(settings: Settings) -> str:
    """Return the format of the file that was opened if it can be written, else the first format."""
    name = settings.entry.loaded.file.lower()
    return next((s for s in SUFFIXES if name.endswith((s, f"{s}.gz"))), SUFFIXES[0])


def _build(outcome: ComparisonOutcome, method: str, suffix: str) -> MethodFiles:
    result = outcome.comparison[method]
    is_cross_fitted = len(outcome.rows.pairs) > 1
    st.markdown(f"Applying {md(result.label)} …")
    data = (
        outcome.calibrated(method)
        if is_cross_fitted
        else apply_to_all(outcome.whole, result.recalibrator, outcome.rows)
    )
    st.markdown(f"Writing {suffix[1:].upper()} …")
    table = _written(data, suffix)
    if is_cross_fitted:
        reason = "Cross-fitting has one map per fold: fit on a share or a split to get one map."
        return MethodFiles(table, None, None, reason, reason)
    record = result.recalibrator.to_dict() | {"class_names": list(outcome.data.class_names)}
    content = (json.dumps(record, allow_nan=False) + "\n").encode()
    try:
        return MethodFiles(table, content, result.recalibrator.snippet())
    except NotAvailable as reason:
        return MethodFiles(table, content, None, "", str(reason))


def _written(data: Dataset, suffix: str) -> bytes:
    values = data.probs.size if isinstance(data, Predictions) else data.n
    if suffix == ".csv" and values > MOST_TEXT:
        raise OptionError(f"{values:,} probabilities are too many for text; choose Parquet or NPZ.")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"calibrated{suffix}"
        write_predictions(data, path)
        return path.read_bytes()


def _offer(files: MethodFiles, stem: str, suffix: str) -> None:
    with st.container(horizontal=True, gap="small"):
        st.download_button(
            f"Calibrated file ({suffix[1:].upper()}, {file_size(len(files.table))})",
            files.table,
            f"{stem}{suffix}",
            "application/octet-stream" if suffix != ".csv" else "text/csv",
            icon=":material/download:",
            type="primary",
            on_click="ignore",
            key="calviz.take-home.file",
        )
        if files.map is not None:
            st.download_button(
                f"Map as JSON ({file_size(len(files.map))})",
                files.map,
                f"{stem}-map.json",
                "application/json",
                icon=":material/download:",
                on_click="ignore",
                key="calviz.take-home.map",
            )
        if files.snippet is not None:
            st.download_button(
                "NumPy snippet",
                files.snippet,
                f"{stem}-map.py",
                "text/x-python",
                icon=":material/download:",
                on_click="ignore",
                key="calviz.take-home.snippet",
            )
    for reason in dict.fromkeys((files.no_map, files.no_snippet)):
        if reason:
            st.caption(md(capitalised(reason), 500))
    if files.map is not None:
        st.caption("For new predictions of the same model, in a terminal:")
        map_file = shlex.quote(f"{stem}-map.json")
        st.code(
            f"calviz apply NEW_FILE --map {map_file} --out calibrated{suffix}",
            language="bash",
            wrap_lines=True,
        )
