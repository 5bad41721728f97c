"""Steps back and forward in the browser's history; after one, the address sets all choices, as at the start of a session."""

from __future__ import annotations

from streamlit.runtime.scriptrunner import get_script_run_ctx


def is_step() -> bool:
    """Whether this run follows such a step; opening a saved view is one too."""
    context = get_script_run_ctx()
    return context is not None and bool(context.is_history_navigation)
