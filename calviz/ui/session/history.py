"""Steps back and forth in the browser's history: then the address says what is looked at, as at the start of a session."""

from __future__ import annotations

from streamlit.runtime.scriptrunner import get_script_run_ctx


def stepped() -> bool:
    """Whether this run follows such a step, which also opens a saved view."""
    context = get_script_run_ctx()
    return context is not None and bool(context.is_history_navigation)
