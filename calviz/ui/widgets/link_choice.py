"""A choice of one value that the link keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import streamlit as st

T = TypeVar("T")


def one_of(
    label: str, words: Mapping[T, str], *, default: T, key: str, help: str | None = None
) -> T:
    """Draw the choice as buttons side by side; return the chosen value.

    Parameters
    ----------
    label : str
    words : mapping
        The values in the order shown, and the word on the button of each.
    default : object
        The value that is chosen at first; a link does not name it.
    key : str
        The name in the link.
    help : str, optional
    """
    return st.segmented_control(
        label,
        tuple(words),
        default=default,
        required=True,
        key=key,
        bind="query-params",
        format_func=lambda value: words.get(value, str(value)),
        help=help,
    )
