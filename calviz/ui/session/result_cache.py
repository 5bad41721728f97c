"""Where results are kept: with their session, or for everybody."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, ParamSpec, TypeVar, cast

import streamlit as st

if TYPE_CHECKING:
    from calviz.ui.session.settings import Settings

#: Results of samples that are kept, for each of a session's: visitors look at them in different ways.
VISITORS = 4

P = ParamSpec("P")
R = TypeVar("R")


def kept(entries: int) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Keep the results of a function whose last argument are the settings, and not part of the key.

    Those of a file belong to its session. Sample sets are everybody's: who comes first computes for all.

    Parameters
    ----------
    entries : int
        Results that a session keeps, the latest.
    """

    def of(compute: Callable[P, R]) -> Callable[P, R]:
        own = st.cache_resource(scope="session", max_entries=entries, show_spinner=False)(compute)
        shared = st.cache_resource(max_entries=VISITORS * entries, show_spinner=False)(compute)

        @wraps(compute)
        def found(*args: P.args, **kwargs: P.kwargs) -> R:
            settings = cast("Settings", args[-1])
            keep = own if settings.entry.sample is None else shared
            return keep(*args, **kwargs)

        return found

    return of
