"""The pages Report and Figures: what is chosen, made and downloaded."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import streamlit as st

from calviz.app import (
    decide_costs,
    decide_cutoff,
    diagnose_groups,
    jobs,
    models_compared,
    navigation,
    open_files,
    recalibrate_comparison,
    recalibrate_learning_curve,
    screen,
    session,
)
from calviz.app.jobs import Job, LongWork, Work
from calviz.app.session import NOT_RECALIBRATED, Settings, md, offer_file
from calviz.comparison.folds_and_sites import fold_columns
from calviz.core.entry_specs import FIGURES
from calviz.core.errors import CalvizError, NotAvailable, OptionError
from calviz.core.predictions import sliceable_columns
from calviz.core.words import counted, file_size, keep_units_together
from calviz.figures.style import COLUMNS
from calviz.report import content, document
from calviz.report.content import PRESETS, NeededWork, Preset, Section, Subject, preset_sections
from calviz.report.document import LETTERS, Panel, Part, Report, bind, caption_of, make_part, to_pdf
from calviz.sample.cutoff_and_grades import decidable, has_grades, possible_grade_columns

# ---- The tab Report

PLACE = "report"
#: The sections that use what was chosen in the room Decide; the section on grades also depends on the preset.
GRADES, DECISIONS, METRICS, SITES = "grades", "decisions", "metrics", "sites"
#: The section that holds the advice of a comparison, where there is one.
FIX = "fix"
#: The sections for data with times, and with folds.
OVER_TIME, FOLDS = "over-time", "folds"
#: Presets for some readers only, and the switch that shows them.
_MORE, _MORE_PRESETS = ("clinical", "credit"), "calviz.report.more"
#: The sections that the last report had by default.
_USUAL = "calviz.report.usual"


def explore_report(settings: Settings, say: Callable[[str], object]) -> None:
    """Draw the preset, the downloads, the other choices and the preview; `say` replaces the title."""
    inputs = results_of_pages(settings)
    if inputs.chosen:
        open_files.write_other_files(models_compared.other_files(inputs.chosen, settings.entry))
    if missing := open_files.missing_files(st.query_params):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f":material/link: {md(missing, 1_000)}", width="content")
            navigation.draw_link("compare_models", "Compare models", width="content")
    preset, usual = _preset(settings, inputs)
    offered = _offered(settings, inputs)
    inputs = replace(inputs, subject=replace(inputs.subject, preset=preset))
    answer = st.container()
    with st.expander("Sections, title and notes"):
        keys = _sections(offered, inputs, usual)
        title, author, notes, date = _own_words(settings)
    with answer:
        if not keys:
            st.info("Choose at least one section.", icon=":material/info:")
            return
        about = f"report of {counted(len(keys), 'section')} on {settings.row_count}"
        say(f"A {about}")
        work = LongWork(
            PLACE,
            (*settings.key, *(f"{key} {inputs.identity(key)}" for key in keys)),
            "Making the report",
            lambda: _work(settings, inputs, keys),
            "Make the report",
            ":material/description:",
            "calviz.report.make",
            stopped=lambda _: "Stopped before the report was made.",
        )
        small = session.cells(settings.sample.data) <= recalibrate_comparison.AT_ONCE
        part: Part | None = work.draw(at_once=small, patience=2.0).result
        if part is None:
            return
        say(f"The {about} is ready")
        html = _downloads(
            bind([part], title=title, author=author, notes=notes, date=date), settings
        )
    if html:
        # The content security policy of the page lets only its own two scripts run, and every text in it is escaped.
        with st.container(border=True):
            st.iframe(html, height=screen.PREVIEW[screen.page_width()], alt="Preview of the report")


@dataclass(frozen=True, eq=False)
class PageResults:
    """The subject of the report, with results and choices of other pages; models and slices that were chosen there."""

    subject: Subject
    chosen: models_compared.ChosenModels | None
    question: diagnose_groups.SlicesChoice | None

    def of(self, work: NeededWork) -> object:
        """Return the result of a kind of work, or what identifies it; None if nothing was asked for."""
        return {
            "comparison": self.subject.comparison,
            "learning": self.subject.learning,
            "models": None if self.chosen is None else self.chosen.key,
            "slices": self.question,
        }[work]

    def has(self, work: NeededWork | None) -> bool:
        """Whether a kind of work was done or asked for; with None, there is none to do."""
        return work is None or self.of(work) is not None

    def identity(self, key: str) -> str:
        """Identify what a section is made of in addition to the rows and the settings."""
        work = content.SECTIONS[key].shows_result
        if work is None:
            # The cutoff and the column of grades were chosen in the room Decide.
            about = self.subject
            made_of = {
                FIX: id(about.comparison),
                GRADES: (about.preset, about.grades),
                DECISIONS: about.cutoff,
                SITES: about.sites,
                METRICS: about.cutoff,
                "judge": id(about.judged),
            }
            return repr(made_of.get(key))
        result = self.of(work)
        # Results are compared by identity, choices by value.
        return str(id(result)) if work in ("comparison", "learning") else repr(result)


def results_of_pages(settings: Settings) -> PageResults:
    """Look up the latest results and choices of the pages Recalibrate, Learning curve, Compare models, Slices and Decisions."""
    entry, outcome = settings.entry, _latest(recalibrate_comparison.PLACE, settings)
    chosen = models_compared.usual_models(entry)
    with suppress(CalvizError):  # models of other rows: the page Compare models says why
        chosen, _ = models_compared.that_match(chosen, settings)
    grades, judged = st.session_state.get(decide_cutoff.GRADES_KEY), None
    with suppress(CalvizError):  # the tab Judge, if there is one, says why
        shown = st.session_state.get(navigation.JUDGED, {}).get((entry.content_key, settings.model))
        judged = shown or navigation.judged_by(settings)
    several = len(entry.loaded.models) > 1
    # Models of other files that are open were not asked for until they are compared on their page, or by the link.
    compared = models_compared.latest_comparison(chosen, settings)
    asked = several or compared or open_files.OTHER_FILES in st.query_params
    return PageResults(
        Subject(
            settings.sample,
            title=f"{entry.title}, {settings.model}" if several else entry.title,
            origin=content.Origin.of(entry.loaded, entry.options),
            comparison=outcome and outcome.comparison,
            learning=_latest(recalibrate_learning_curve.PLACE, settings),
            cutoff=st.session_state.get(decide_cutoff.CUTOFF_KEY),
            grades=grades if grades in possible_grade_columns(settings.whole) else None,
            sites=diagnose_groups.chosen_sites(settings.whole),
            whole=settings.whole,
            judged=judged,
        ),
        chosen if asked and len(chosen.models) > 1 else None,
        diagnose_groups.last_slices_asked(settings),
    )


def _latest(place: str, settings: Settings) -> Any:
    """Return the latest result of a page if it is about these rows, else None."""
    # The same rows apart from the split, as some splits fit and others judge.
    job = jobs.latest(place, replace(settings, split=None).rows_key)
    return None if job is None or job.running else job.result


def _offered(settings: Settings, inputs: PageResults) -> dict[str, Section]:
    """Return the sections that have content."""
    about = inputs.subject
    times, sites = settings.whole.times is not None, about.sites is not None
    applicable = {OVER_TIME: times, SITES: sites, FOLDS: bool(fold_columns(settings.whole))}
    applicable["judge"] = about.judged is not None
    # Groups that do not look like grades can be declared as such: by the preset "credit", or in the room Decide.
    declared = about.grades is not None or st.session_state.get("preset") == "credit"
    declared = declared and bool(possible_grade_columns(settings.whole))
    applicable[GRADES] = declared or has_grades(settings.whole)
    try:
        decidable(settings.sample)
    except NotAvailable:
        applicable |= {DECISIONS: False, GRADES: False}
    # The report measures slices itself if none were asked for on their page.
    sliceable = bool(sliceable_columns(settings.whole))
    return {
        s.key: s
        for s in content.sections_in_order(with_requested=True)
        if applicable.get(s.key, True)
        and (sliceable if s.shows_result == "slices" else inputs.has(s.shows_result))
    }


def _preset(settings: Settings, inputs: PageResults) -> tuple[Preset | None, list[str]]:
    """Draw the choice of a preset, which chooses its sections; return it (None for all sections), and the sections of the default."""

    def choose() -> None:
        st.session_state["sections"] = keys_of(str(st.session_state.get("preset")))

    def keys_of(named: str) -> list[str]:
        about = (
            Subject(settings.sample, cutoff=inputs.subject.cutoff) if named == "default" else None
        )
        keys = preset_sections("full" if named == "all" else named, about)
        offered = _offered(settings, inputs)  # which the preset changes
        return [key for key in keys if key in offered]

    named = st.session_state.get("preset", st.query_params.get("preset"))
    more = named in _MORE or st.session_state.get(_MORE_PRESETS, False)
    presets: dict[str, Preset] = {
        "all" if key == "full" else key: key for key in PRESETS if more or key not in _MORE
    }
    preset = st.radio(
        "Preset",
        tuple(presets),
        index=tuple(presets).index("default"),
        captions=[PRESETS[key].reader for key in presets.values()],
        horizontal=True,
        key="preset",
        bind="query-params",
        on_change=choose,
        help="\n".join(f"- {name}: {PRESETS[key].source}" for name, key in presets.items()),
    )
    if named not in _MORE:
        st.toggle("More presets: a clinical study, a validation of ratings", key=_MORE_PRESETS)
    if "sections" not in st.session_state:
        now = {each.earlier: each.title for each in _offered(settings, inputs).values()}
        query = {name: st.query_params.get_all(name) for name in st.query_params}
        named = query.get("sections", ())
        if (
            now.keys() & named
        ):  # an older link: the widget takes its titles from the address at which a page begins
            query["sections"] = [now.get(title, title) for title in named]
            st.switch_page(navigation.link(PLACE), query_params=query)
        if preset != "default" and not named:  # a link that names only the preset
            choose()
    try:
        preset_sections(presets[preset], Subject(settings.sample))
    except OptionError as reason:
        if GRADES in _offered(settings, inputs):  # none is recognised
            decide_cutoff.choose_grades(settings.whole)
        else:
            st.info(md(str(reason), 1_000), icon=":material/info:")
    return None if preset == "all" else presets[preset], keys_of("default")


def _sections(
    offered: Mapping[str, Section], inputs: PageResults, usual: list[str]
) -> tuple[str, ...]:
    """Draw the choice of sections, the `usual` ones as long as nobody chose others."""
    if st.session_state.get("sections") == st.session_state.get(_USUAL):
        st.session_state.pop("sections", None)
    st.session_state[_USUAL] = usual
    chosen = st.pills(
        "Sections",
        tuple(offered),
        selection_mode="multi",
        default=None if "sections" in st.session_state else usual,
        format_func=lambda key: offered[key].title if key in offered else str(key),
        key="sections",
        bind="query-params",
        help="\n".join(
            f"- {s.title}: {s.summary[:1].lower()}{s.summary[1:]}" for s in offered.values()
        ),
    )
    missing = [words for work, words in _FOR_MORE_SECTIONS.items() if not inputs.has(work)]
    if missing:
        st.caption(f"For more sections: {'; '.join(missing)}.")
    return tuple(key for key in offered if key in (chosen or ()))


#: What to do so that more sections are offered, by the work that they need.
_FOR_MORE_SECTIONS: dict[NeededWork, str] = {
    "comparison": "compare recalibrators on the page *Recalibrate*",
    "learning": "draw curves under *Recalibrate*, *How many labels?*",
    "models": "open the file of another model on the page *Compare models*",
}


def _own_words(settings: Settings) -> tuple[str, str, str, str]:
    """Draw the fields for the user's own words, which are not part of the link."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        title = st.text_input(
            "Title",
            placeholder=settings.entry.title[:80],
            max_chars=200,
            key="calviz.report.title",
            persist_state="session",
        )
        author = st.text_input(
            "Author", max_chars=200, key="calviz.report.author", persist_state="session"
        )
        date = st.date_input(
            "Date",
            value=None,
            format="YYYY-MM-DD",
            width=160,
            key="calviz.report.date",
            help="Without a date the same data and settings give the same file, byte by byte.",
            persist_state="session",
        )
    notes = st.text_area(
        "Notes",
        placeholder="What the predictions are, what was decided, by whom.",
        max_chars=20_000,
        height=100,
        key="calviz.report.notes",
        help="Plain text; an empty line begins a new paragraph.",
        persist_state="session",
    )
    return title or "", author or "", notes or "", "" if date is None else str(date)


def _work(settings: Settings, inputs: PageResults, keys: tuple[str, ...]) -> Callable[[Job], Part]:
    subject = inputs.subject
    compare: Work | None = None
    if inputs.question is not None:
        subject = replace(subject, slices=diagnose_groups.measure_slices(settings, inputs.question))
    if inputs.chosen is not None and any(
        content.SECTIONS[k].shows_result == "models" for k in keys
    ):
        compared = models_compared.latest_comparison(inputs.chosen, settings)
        subject = replace(subject, models=compared)
        if compared is None:
            with suppress(CalvizError):
                compare = models_compared.comparison_work(inputs.chosen, settings, 1 + len(keys))

    def work(job: Job) -> Part:
        about = subject if compare is None else replace(subject, models=compare(job))
        before = max(0, job.total - len(keys))

        def progress(name: str, done: int, total: int) -> None:
            job.progress(before + done, before + total, name)

        return make_part(about, sections=keys, progress=progress)

    return work


def _downloads(report: Report, settings: Settings) -> str:
    """Draw the downloads; return the page if a preview is wanted, else an empty text."""
    stem = settings.file_stem
    with st.spinner("Writing …"):
        html = report.html()
        on_paper = html if report.date else report.dated().html()
        anywhere = "Opens anywhere, without a network; saves its pictures as PNG or SVG."
        tables_words = "All tables as CSV, Markdown and LaTeX."
        files = (
            ("HTML", html, f"{stem}-report.html", "text/html", anywhere),
            ("Markdown", report.markdown(), f"{stem}-report.md", "text/markdown", "A model card."),
            ("Tables", report.archive(), f"{stem}-tables.zip", "application/zip", tables_words),
        )
    with st.container(horizontal=True, vertical_alignment="center"):
        for label, written, name, mime, help in files:
            length = len(written if isinstance(written, bytes) else written.encode())
            offer_file(
                f"{label} ({file_size(length)})",
                written,
                name,
                mime,
                type="primary" if label == "HTML" else "secondary",
                key=f"calviz.report.{label}",
                help=help,
            )
        draw_pdf_buttons(on_paper, f"{stem}-report.pdf", key="calviz.report")
        preview = st.toggle("Preview", value=True, key="preview", bind="query-params")
    st.caption(
        "It shows rows of your file only in the section *Worst rows*, if you choose it; with few rows, points of curves may be single scores."
    )
    return html if preview else ""


def draw_pdf_buttons(html: str, filename: str, *, key: str, **look: Any) -> None:
    """Print on request, as it takes seconds; if nothing on this machine can print, disable the button and say why.

    Parameters
    ----------
    html : str
        A self-contained page.
    filename : str
    key : str
        Prefix of the keys of the buttons, and of the PDF, which is kept until the page changes.
    **look
        Further options of the buttons.
    """
    if reason := document.why_no_pdf():
        st.button("PDF", disabled=True, key=f"{key}.no_pdf", help=md(reason, 300))
        return
    digest, state_key = hashlib.sha256(html.encode()).hexdigest(), f"{key}.pdf_made"
    printed: tuple[str, bytes] | None = st.session_state.get(state_key)
    if printed is None or printed[0] != digest:
        help = "Printed by the browser that is on this machine; takes some seconds."
        icon = ":material/picture_as_pdf:"
        if not st.button("Make a PDF", icon=icon, key=f"{key}.make_pdf", help=help, **look):
            return
        with st.spinner("Printing …", show_time=True):
            printed = digest, to_pdf(html)
        st.session_state[state_key] = printed
    label = f"PDF ({file_size(len(printed[1]))})"
    offer_file(label, printed[1], filename, "application/pdf", key=f"{key}.PDF", **look)


# ---- Figures


def explore_figures(settings: Settings, say: Callable[[str], object]) -> None:
    """Draw the choices, the preview and the downloads; `say` replaces the title."""
    keys, wide, columns, with_caption = _choices()
    panels: list[Panel] = []
    for key in keys:
        spec = FIGURES[key]
        try:
            with session.computing(settings, f"Computing: {spec.label} …") as sample:
                figure = sample.once(spec.compute)
                if key == "decision":  # the threshold is that of the room Decide
                    figure = decide_costs.decisions(settings, NOT_RECALIBRATED, figure.costs)[0][0]
            panels.append(Panel(figure, wide=key in wide))
        except CalvizError as reason:
            st.caption(f"{md(spec.label)}: {md(str(reason), 300)}")
    if not panels:
        st.info("Choose at least one panel.", icon=":material/info:")
        return
    say(f"{counted(len(panels), 'panel')}, {COLUMNS[columns]:g} inches wide, ready to save")
    stem = f"{settings.file_stem}-figure"
    with st.spinner("Drawing …"):
        html = document.to_sheet(
            panels, columns=columns, name=stem, caption=with_caption, theme=screen.theme()
        )
    caption = caption_of(panels)
    # The page's own actions stand in line with those of the frame.
    with st.container(horizontal=True, key="calviz.figures.actions"):
        draw_pdf_buttons(html, f"{stem}.pdf", key="calviz.figures", type="primary")
        screen.copy_button(caption, "Copy caption", key="calviz.figures.caption")
    # The content security policy of the page lets only its own two scripts run, not the one with which streamlit measures
    # contents; every text in it is escaped. Once drawn, the page sets the height of its frame.
    st.iframe(html, height=620, alt="Preview of the figure, with buttons that save and copy it")
    st.expander("Caption").markdown(md(keep_units_together(caption), 5_000))


def _choices() -> tuple[list[str], list[str], int, bool]:
    """Draw the choices; return the panels in order, those as wide as the sheet, the number of columns, and whether to add a caption."""
    labels = {spec.key: spec.label for spec in FIGURES}

    def label(key: str) -> str:
        return labels.get(key, str(key))

    first, second = st.columns([2, 1], gap="medium")
    below = st.container(horizontal=True, vertical_alignment="bottom", gap="medium")
    keys = first.multiselect(
        "Panels, in their order",
        list(labels),
        default=["reliability", "risk-coverage"],
        format_func=label,
        max_selections=len(LETTERS),
        key="panels",
        bind="query-params",
    )
    with below:
        columns = session.choose_one(
            "Width",
            {n: f"{n} column{'s' if n == 2 else ''}, {width:g} in" for n, width in COLUMNS.items()},
            default=2 if screen.page_width() is None else 1,
            key="sheet",
            help="Text is 7 to 8 points high.",
        )
        with_caption = st.toggle("Caption in the picture", key="sheet-caption", bind="query-params")
    wide = second.multiselect(
        "As wide as both columns",
        keys,
        format_func=label,
        placeholder="none",
        key="wide",
        bind="query-params",
        disabled=columns == 1,
    )
    return keys, wide, 1 if columns == 1 else 2, with_caption
