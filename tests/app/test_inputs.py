"""Every example file and its relatives through the app's own uploader, one after the other in one session."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from tests.app.pages import ROOT, drop, open_page, text_of
from tests.inputs import examples
from tests.inputs.relatives import HOSTILE_NAMES, REFUSED, REPAIRED, SAME, hostile

EXAMPLES = sorted({*examples.LOADED_AS_BASE, *examples.LOADED_OTHERWISE, *examples.REFUSED})
#: In the library all relatives are tried, here one of each kind.
RELATIVES = [
    "utf16.csv", "cp1252.csv", "decimal_comma.csv", "one_hot.csv", "logits.csv", "objects.jsonl", "splits.npz",
    "label_last.npy", "lists.parquet", "packed.feather", "called.txt",
]  # fmt: skip
BROKEN = ["negative.csv", "short.csv", "objects.npy", "new.csv", "nested.json", "half_utf16.csv"]


BROKEN_CSV = b"label,p_a,p_b\na,x,0.5\nb,0.5,0.5\n"


class Session:
    """One session with the app; it knows what it has loaded last, which must never be lost."""

    def __init__(self) -> None:
        self.app = open_page(page="data")
        self.loaded = "kept.csv"
        self.upload(self.loaded, SAME["quoted_crlf.csv"])

    def upload(self, name: str, content: bytes) -> str:
        """Everything that is said on the page after a file was given."""
        start = time.process_time()
        drop(self.app, name, content)
        assert time.process_time() - start < 20
        assert not self.app.exception
        assert self.app.file_uploader  # and the next one can be opened
        return text_of(self.app)

    def reads(self, name: str, content: bytes) -> None:
        text = self.upload(name, content)
        assert [e.value for e in self.app.error] == []
        assert name in text
        assert re.search(r"\d rows?\b", text)
        self.loaded = name

    def refuses(self, name: str, content: bytes) -> None:
        text = self.upload(name, content)
        assert len(self.app.error) == 1
        assert name in text
        assert "Traceback" not in text
        assert f"{self.loaded} is still loaded." in text


@pytest.fixture(scope="module")
def session() -> Session:
    return Session()


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_files(session: Session, name: str) -> None:
    (session.refuses if name in examples.REFUSED else session.reads)(
        name, examples.contents()[name]
    )
    assert [path.name for path in Path().glob("calviz_*")] == []


@pytest.mark.parametrize("name", RELATIVES)
def test_relatives_are_read(session: Session, name: str) -> None:
    session.reads(name, SAME[name])


@pytest.mark.parametrize("name", BROKEN)
def test_relatives_are_refused_and_nothing_is_lost(session: Session, name: str) -> None:
    session.refuses(name, REFUSED[name][0])


@pytest.mark.parametrize("name", REPAIRED)
def test_repairs_are_a_button_away_and_are_said(session: Session, name: str) -> None:
    content, repair, _ = REPAIRED[name]
    session.refuses(name, content)
    session.app.button(key=f"calviz.repair.{repair}").click().run()
    assert not session.app.error
    assert "Repair made, on request:" in text_of(session.app)
    assert f"{repair}:" in text_of(session.app)
    session.loaded = name


@pytest.mark.slow
def test_hostile_names_come_to_the_page_as_text(session: Session) -> None:
    session.reads("names.csv", hostile())
    app = session.app
    assert HOSTILE_NAMES[0] in text_of(app)
    for page in ("data", "overview", "classwise"):
        app.open(page)
        assert not app.exception
        assert not app.error
        for element in (*app.markdown, *app.caption, *app.header, *app.title):
            if not getattr(element, "allow_html", False):
                assert not re.search(r"<script|<img|!\[|\]\(http", element.value)
            assert not re.search("[\u202e\x1b]|x{1000}", element.value)
    app.open("data")
    session.refuses("<img src=x onerror=alert(1)>.csv", b"label,p_<b>x</b>,p_y\ny,=1+1,.5\n")
    assert not re.search("<img|<b>", app.error[0].value)


@pytest.mark.slow
def test_logs_that_are_opened_together_are_one_data_set_and_other_files_are_their_own(
    session: Session,
) -> None:
    logs = [(p.name, p.read_bytes()) for p in (ROOT / "tests/inputs/logs").glob("samples_*.jsonl")]
    given = [
        (name, content, "")
        for name, content in [*logs, ("results_1.json", b"{}"), ("notes.txt", b"a")]
    ]
    app = session.app
    app.file_uploader[0].set_value(given).run()
    assert not app.exception
    text = text_of(app)
    assert "2 logs of lm-evaluation-harness: 50 rows" in text
    assert "four_choices and 1 more" in text
    assert "groups task" in text
    assert "notes.txt" in text  # left out, not a log
    assert "results_1" not in text
    # On which task can it be believed, and from which confidence on?
    app.open("risk_coverage")
    assert not app.exception
    table = next(f.value for f in app.dataframe if "task" in f.value.columns)
    assert sorted(table["task"]) == ["four_choices", "two_choices"]
    by_task = dict(zip(table["task"], table["hits"], strict=True))
    assert round(by_task["four_choices"], 1) == 33.3  # what the harness says
    app.open("data")
    # Read another way: each choice by itself.
    next(button for button in app.button if button.label == "Read it differently").click().run()
    next(box for box in app.selectbox if box.label == "Questions with choices").set_value("each")
    next(button for button in app.button if button.label == "Read it this way").click().run()
    assert not app.exception
    assert "160 rows, 2 classes (wrong, right)" in text_of(app)
    two = [("broken.csv", BROKEN_CSV, ""), ("fine.csv", SAME["quoted_crlf.csv"], "")]
    app.file_uploader[0].set_value(two).run()
    assert len(app.error) == 1
    text = text_of(app)
    assert "broken.csv: row 1" in text
    assert "fine.csv is still loaded." in text
