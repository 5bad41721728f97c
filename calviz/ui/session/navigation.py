"""The list of pages, in the order of the navigation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from streamlit.navigation.page import Page


@dataclass(frozen=True)
class PageSpec:
    """A page: its place in the address, its name, the question it answers, its icon, and its key after a g."""

    key: str
    title: str
    question: str
    icon: str
    letter: str

    @property
    def file(self) -> str:
        """The script, relative to `app.py`."""
        return f"pages/{self.key}.py"


PAGES = (
    PageSpec("overview", "Overview", "Can I trust these probabilities?", ":material/speed:", "o"),
    PageSpec("explain", "Explain it", "How do I tell others?", ":material/forum:", "e"),
    PageSpec("data", "Data", "Did it read my file right?", ":material/table_view:", "d"),
    PageSpec("metrics", "Metrics", "What are all the numbers?", ":material/list_alt:", "m"),
    PageSpec("reliability", "Reliability", "Where is it off?", ":material/bar_chart:", "r"),
    PageSpec(
        "cumulative",
        "Cumulative & KS",
        "Binning aside, how far?",
        ":material/stacked_line_chart:",
        "k",
    ),
    PageSpec("classwise", "Class-wise", "Which classes?", ":material/category:", "c"),
    PageSpec(
        "risk_coverage", "Risk-coverage", "May I let it decide, and when?", ":material/rule:", "q"
    ),
    PageSpec("decisions", "Decisions", "Is acting on it worth it?", ":material/balance:", "i"),
    PageSpec("recalibrate", "Recalibrate", "What fixes it?", ":material/tune:", "f"),
    PageSpec(
        "learning_curve",
        "Learning curve",
        "How many labels do I need?",
        ":material/trending_down:",
        "u",
    ),
    PageSpec("compare_models", "Compare models", "Which model?", ":material/compare_arrows:", "b"),
    PageSpec("arena", "Arena", "Which recalibrator wins?", ":material/trophy:", "a"),
    PageSpec("slices", "Slices", "For whom is it wrong?", ":material/groups:", "s"),
    PageSpec("over_time", "Over time", "Does it stay right?", ":material/timeline:", "t"),
    PageSpec("figures", "Figures", "What do I print?", ":material/dashboard:", "p"),
    PageSpec("report", "Report", "What do I put on file?", ":material/description:", "h"),
    PageSpec("learn", "Learn", "What does this mean?", ":material/school:", "l"),
)
#: The picture in the browser's tab. A material icon there would be fetched from the network.
ICON = Path(__file__).with_name("icon.svg").read_text(encoding="utf-8")
#: Above the navigation; its letters stand out on both themes.
LOGO = Path(__file__).with_name("logo.svg").read_text(encoding="utf-8")
BY_KEY = {page.key: page for page in PAGES}


def _page(spec: PageSpec, **options: object) -> Page:
    return st.Page(spec.file, title=spec.title, icon=spec.icon, help=spec.question, **options)  # type: ignore[arg-type]


def navigation() -> Page:
    """Draw the navigation and return the page that was asked for."""
    first, *others = PAGES
    pages = [_page(first, default=True, url_path="start")]
    pages += [_page(spec, url_path=spec.key) for spec in others]
    # The first page lives at "/", but people also write its name.
    pages.append(_page(first, url_path=first.key, visibility="hidden"))
    # All of them: a page behind "View more" is not found.
    return st.navigation(pages, expanded=True)


def link(key: str) -> str:
    """What `st.switch_page` takes to open a page."""
    return BY_KEY[key].file
