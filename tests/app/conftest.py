"""AppTest as a server that has seen `st.navigation`: see `calviz.ui.session.page_guard.enter`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import streamlit as st
from streamlit.runtime.scriptrunner import script_runner


@pytest.fixture(autouse=True)
def _warm_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # AppTest forgets between runs that `pages/` is not the older kind of multi-page app.
    def run_main(path: str) -> None:
        code = compile(Path(path).read_text(encoding="utf-8"), path, "exec")
        exec(code, {"__name__": "__main__", "__file__": path})

    monkeypatch.setattr(script_runner, "_mpa_v1", run_main)
    # All AppTests are one session to the caches.
    st.cache_resource.clear()
    yield
    st.cache_resource.clear()
