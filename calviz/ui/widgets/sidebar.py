"""The sidebar: the data set, the settings, and the link to the current page and settings."""

from __future__ import annotations

import streamlit as st

from calviz.text.words import counted, distinct, shorten
from calviz.ui.pinned import sidebar_chip as pin
from calviz.ui.pinned import state as pinned
from calviz.ui.selection import sidebar_chip, state
from calviz.ui.session import navigation, open_files
from calviz.ui.widgets import browser, pictures, settings_choice, shortcuts, upload
from calviz.ui.widgets.escape import md

#: The main action of the first page, in a colour that is readable on both themes.
USE_YOUR_FILE = ":blue[:material/upload_file: **Use your file**]"

_PICK = "calviz.pick"
#: Characters of a title that fit the sidebar.
_FITS = 28


def draw(page: str) -> None:
    """Draw the sidebar of a page; while a link waits for its file, there are no settings yet."""
    with st.sidebar:
        if open_files.waiting_link() is not None:
            st.caption("Waiting for the file of a link.")
            return
        _data_set()
        selected = st.container()
        # The page Learn is not about the data; the widgets are drawn all the same, as they hold the settings.
        quiet = page == "learn"
        with (
            st.expander("Settings of the data", icon=":material/tune:") if quiet else st.container()
        ):
            chosen = settings_choice.draw()
        state.sync_with_address(chosen, page)
        pinned.sync_with_address(chosen)
        with selected:
            sidebar_chip.draw(chosen)
        pin.draw(chosen)
        pictures.options()
        browser.draw()
        shortcuts.draw()
        st.caption(stays_here())


def stays_here() -> str:
    """Say where the data stay."""
    place = "machine" if browser.host() in browser.LOOPBACK else "server"
    return f"Your data stay on this {place}; nothing is sent anywhere."


def _data_set() -> None:
    titles = distinct(tuple(open_files.titles().values()), _FITS)
    names = {key: titles[title] for key, title in open_files.titles().items()}
    # Two files of the same name are told apart by their digest.
    names = {
        key: f"{name} ({key[:6]})" if list(names.values()).count(name) > 1 else name
        for key, name in names.items()
    }
    st.session_state[_PICK] = open_files.current_key()
    st.selectbox(
        "Data set",
        list(names),
        format_func=lambda key: names.get(key, key),
        key=_PICK,
        on_change=lambda: open_files.select(st.session_state[_PICK]),
    )
    entry = open_files.current()
    loaded = entry.loaded
    if entry.sample is not None:
        st.badge("Sample data", color="violet")
    facts = [counted(loaded.recognition.rows, "row")]
    if loaded.first.n_classes:
        facts.append(f"{loaded.first.n_classes:,} classes")
    st.caption(f"{' · '.join(facts)} · digest {md(loaded.digest[:8])}")
    st.page_link(navigation.link("data"), label=USE_YOUR_FILE)
    if entry.title != shorten(entry.title, _FITS):
        with st.popover("Full name", type="tertiary"):
            st.text(entry.title)


def note() -> None:
    """Show the queued sentences, such as how a link was applied; each is shown once."""
    text = open_files.take_notes()
    if text is not None:
        st.info(md(text), icon=":material/info:")


def ask_for_file() -> None:
    """Ask for the file that a link was made with."""
    link = open_files.waiting_link()
    assert link is not None
    view = link.view
    noun = "view" if view else "link"
    st.title(f"This {noun} needs its file", anchor=False)
    file = f"**{md(view.title, 80)}** ({counted(view.rows, 'row')})" if view else "the file"
    st.markdown(
        f"It was made with {file} with digest **{md(link.key, 32)}**, which is not loaded "
        f"here: {noun}s carry settings, never data. Open that file and you see the same view."
    )
    upload.uploader(f"The file of this {noun}")
    upload.failure_card()
    names = sorted(set(link.query) - {open_files.DATA, open_files.READING})
    if names:
        values = {
            k: ", ".join([] if view else st.query_params.get_all(k)) or link.query[k] for k in names
        }
        settings_words = "; ".join(f"{md(k, 20)}: {md(v, 200)}" for k, v in values.items())
        st.caption(f"Settings in the link: {settings_words}")
    if st.button("Show sample data instead"):
        open_files.stop_waiting()
        st.rerun()
