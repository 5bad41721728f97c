"""Keep pages working: handle the first request to a fresh server, and unexpected errors."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from calviz.core.atomic_files import FULL
from calviz.core.errors import CalvizError, NotAvailable
from calviz.text.words import full_sentence
from calviz.ui.session import temporary_folder
from calviz.ui.session.navigation import ICON, navigation
from calviz.ui.widgets.escape import md

_FRAME, _ERROR = "calviz.frame", ":material/error:"
_LOG = logging.getLogger("calviz.ui")
#: Whether this server has seen the navigation.
_declared = False


def enter(*, frame: bool = False) -> None:
    """Make sure that the page runs inside `app.py`; the first statement of every script.

    Parameters
    ----------
    frame : bool
        Whether the script is `app.py`.

    Notes
    -----
    Until a fresh server has seen ``st.navigation``, streamlit treats `pages/` as the older kind of
    multi-page app and runs only the script that the address names. Declaring the navigation ends
    that for the whole server; the next run goes through `app.py`, keeps address and query,
    and gives every widget its final identity. Later visitors need only one run.
    """
    global _declared
    temporary_folder.use_own_folder()
    if frame and _declared:
        st.session_state[_FRAME] = True
    if _FRAME not in st.session_state:
        st.session_state[_FRAME] = True
        configure()
        navigation()
        _declared = True
        st.rerun()


def configure() -> None:
    """Set title, icon and layout; called before the navigation, or the browser fetches a page's icon from the network."""
    st.set_page_config(page_title="calviz", page_icon=ICON, layout="wide")


@contextmanager
def boundary() -> Iterator[None]:
    """Show an error as one sentence; what was loaded stays."""
    try:
        yield
    except NotAvailable as reason:
        st.info(md(full_sentence(str(reason)), 2_000), icon=":material/info:")
    except CalvizError as error:
        st.error(md(error, 2_000), icon=_ERROR)
    except MemoryError:
        st.error("There is not enough memory for this; what is loaded stays.", icon=_ERROR)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in FULL:
            st.error("The server's disk is full; what is loaded stays.", icon=_ERROR)
            return
        _LOG.exception("a page failed")
        st.error(
            "Something went wrong that calviz did not foresee; your data are still loaded. "
            "Change a setting or open another page, and please report it with the lines that the "
            "server wrote.",
            icon=_ERROR,
        )
