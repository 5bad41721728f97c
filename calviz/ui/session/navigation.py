"""The list of pages, in the order of the navigation."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from streamlit.navigation.page import Page


@dataclass(frozen=True)
class PageSpec:
    """A page of the app.

    Attributes
    ----------
    key : str
        Its path in the address, and the name of its script.
    title, question, icon : str
        Its name, the question that it answers, and the icon beside its name.
    letter : str
        Keyboard shortcut: the key that opens it when pressed after g.
    leads_to : tuple of (str, str)
        Keys of the pages to go to next, and the labels of the links; empty for the overview, whose links depend on its findings.
    """

    key: str
    title: str
    question: str
    icon: str
    letter: str
    leads_to: tuple[tuple[str, str], ...] = ()

    @property
    def file(self) -> str:
        """The script, relative to `app.py`."""
        return f"pages/{self.key}.py"


PAGES = (
    PageSpec("overview", "Overview", "Can I trust these probabilities?", ":material/speed:", "o"),
    PageSpec(
        "explain",
        "Explain it",
        "How do I tell others?",
        ":material/forum:",
        "e",
        leads_to=(
            ("overview", "Back to the verdict"),
            ("report", "Put it on file"),
        ),
    ),
    PageSpec(
        "data",
        "Data",
        "Did it read my file right?",
        ":material/table_view:",
        "d",
        leads_to=(("overview", "See the verdict"),),
    ),
    PageSpec(
        "metrics",
        "Metrics",
        "What are all the numbers?",
        ":material/list_alt:",
        "m",
        leads_to=(
            ("reliability", "See where it is off"),
            ("report", "Put it on file"),
        ),
    ),
    PageSpec(
        "reliability",
        "Reliability",
        "Where is it off?",
        ":material/bar_chart:",
        "r",
        leads_to=(
            ("classwise", "See which classes"),
            ("recalibrate", "Recalibrate this"),
        ),
    ),
    PageSpec(
        "cumulative",
        "Cumulative & KS",
        "Binning aside, how far?",
        ":material/stacked_line_chart:",
        "k",
        leads_to=(("recalibrate", "Recalibrate this"),),
    ),
    PageSpec(
        "classwise",
        "Class-wise",
        "Which classes?",
        ":material/category:",
        "c",
        leads_to=(("recalibrate", "Recalibrate this"),),
    ),
    PageSpec(
        "risk_coverage",
        "Risk-coverage",
        "May I let it decide, and when?",
        ":material/rule:",
        "q",
        leads_to=(
            ("recalibrate", "Recalibrate this"),
            ("report", "Put it on file"),
        ),
    ),
    PageSpec(
        "decisions",
        "Decisions",
        "Is acting on it worth it?",
        ":material/balance:",
        "i",
        leads_to=(
            ("recalibrate", "Recalibrate this"),
            ("report", "Put it on file"),
        ),
    ),
    PageSpec(
        "recalibrate",
        "Recalibrate",
        "What fixes it?",
        ":material/tune:",
        "f",
        leads_to=(
            ("learning_curve", "See how many labels this needs"),
            ("report", "Put it on file"),
        ),
    ),
    PageSpec(
        "learning_curve",
        "Learning curve",
        "How many labels do I need?",
        ":material/trending_down:",
        "u",
        leads_to=(("recalibrate", "Compare the methods"),),
    ),
    PageSpec(
        "compare_models",
        "Compare models",
        "Which model?",
        ":material/compare_arrows:",
        "b",
        leads_to=(
            ("recalibrate", "Recalibrate one of them"),
            ("report", "Put it on file"),
        ),
    ),
    PageSpec(
        "arena",
        "Arena",
        "Which recalibrator wins?",
        ":material/trophy:",
        "a",
        leads_to=(("recalibrate", "Recalibrate these data"),),
    ),
    PageSpec(
        "slices",
        "Slices",
        "For whom is it wrong?",
        ":material/groups:",
        "s",
        leads_to=(
            ("recalibrate", "Recalibrate this"),
            ("report", "Put it on file"),
        ),
    ),
    PageSpec(
        "over_time",
        "Over time",
        "Does it stay right?",
        ":material/timeline:",
        "t",
        leads_to=(
            ("slices", "See for whom it is wrong"),
            ("recalibrate", "Recalibrate this"),
        ),
    ),
    PageSpec(
        "figures",
        "Figures",
        "What do I print?",
        ":material/dashboard:",
        "p",
        leads_to=(("report", "Put it on file"),),
    ),
    PageSpec(
        "report",
        "Report",
        "What do I put on file?",
        ":material/description:",
        "h",
        leads_to=(("overview", "Back to the verdict"),),
    ),
    PageSpec(
        "learn",
        "Learn",
        "What does this mean?",
        ":material/school:",
        "l",
        leads_to=(("overview", "Back to the verdict"),),
    ),
)
#: The icon in the browser's tab. A material icon there would be fetched from the network.
ICON = Path(__file__).with_name("icon.svg").read_text(encoding="utf-8")
#: The logo above the navigation; its letters are readable on both themes.
LOGO = Path(__file__).with_name("logo.svg").read_text(encoding="utf-8")
BY_KEY = {page.key: page for page in PAGES}


def _streamlit_page(spec: PageSpec, **options: object) -> Page:
    return st.Page(spec.file, title=spec.title, icon=spec.icon, help=spec.question, **options)  # type: ignore[arg-type]


def navigation() -> Page:
    """Draw the navigation and return the page that was asked for."""
    first, *others = PAGES
    pages = [_streamlit_page(first, default=True, url_path="start")]
    pages += [_streamlit_page(spec, url_path=spec.key) for spec in others]
    # The first page is at "/", but people also type its name.
    pages.append(_streamlit_page(first, url_path=first.key, visibility="hidden"))
    # Expanded, as nobody finds a page behind "View more".
    return st.navigation(pages, expanded=True)


def link(key: str) -> str:
    """Return the path that `st.page_link` and `st.switch_page` take to open a page."""
    return BY_KEY[key].file
