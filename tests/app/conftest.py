"""What AppTests share with a server and with each other: caches, jobs, the main module."""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pytest
import streamlit as st
from streamlit.components.v2 import manifest_scanner


@pytest.fixture(autouse=True)
def _warm_server() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        # A server looks through all installed packages for components once, every AppTest anew.
        patch.setattr(manifest_scanner, "scan_component_manifests", list)
        # It also leaves its script as the main module, which processes that are started later would run.
        patch.setitem(sys.modules, "__main__", sys.modules["__main__"])
        yield


@pytest.fixture(scope="module", autouse=True)
def _module_caches() -> Iterator[None]:
    # All AppTests are one session to the caches: what one test of a module has computed, the next one finds.
    st.cache_resource.clear()
    yield
    st.cache_resource.clear()


@pytest.fixture(autouse=True)
def _own_caches(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that changes how something is computed finds nothing and leaves nothing."""
    changes = "monkeypatch" in request.fixturenames
    if changes:
        st.cache_resource.clear()
    yield
    if changes:
        st.cache_resource.clear()


@pytest.fixture(autouse=True)
def _no_work_left_behind() -> Iterator[None]:
    """No session of an AppTest ever ends; what its pages have started would go on beside the next tests."""
    from calviz.app.jobs import Job

    started: list[Job] = []
    start = Job.start

    def noted(job: Job) -> None:
        started.append(job)
        start(job)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Job, "start", noted)
        yield
    for job in started:
        job.stop()
    for job in started:
        job.wait()
