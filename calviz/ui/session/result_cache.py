"""The cache of results: per session for its own files, shared by all sessions for the sample sets."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, Protocol, TypeVar, cast

import streamlit as st

from calviz.ui.session.open_file import OpenFile

#: Size of the shared cache as a multiple of a session's: visitors choose different settings for the same sample set.
VISITORS = 4

P = ParamSpec("P")
R = TypeVar("R")


class _OfFile(Protocol):
    @property
    def entry(self) -> OpenFile: ...


def cached_results(entries: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Cache the results of a function whose last argument is the settings; these are not part of the key.

    Results for a file belong to its session. Results for a sample set are shared: the first visitor computes them for all.

    Parameters
    ----------
    entries : int
        Number of results that a session keeps, the latest.
    """

    def decorate(compute: Callable[P, R]) -> Callable[P, R]:
        of_session = st.cache_resource(scope="session", max_entries=entries, show_spinner=False)(
            compute
        )
        of_all_sessions = st.cache_resource(max_entries=VISITORS * entries, show_spinner=False)(
            compute
        )

        @wraps(compute)
        def cached(*args: P.args, **kwargs: P.kwargs) -> R:
            settings = cast(_OfFile, args[-1])
            compute_once = of_session if settings.entry.sample is None else of_all_sessions
            return compute_once(*args, **kwargs)

        return cached

    return decorate
