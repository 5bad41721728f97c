"""Opening a page without a browser, and reading what it shows."""

import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

from streamlit.testing.v1 import AppTest
from streamlit.util import calc_hash

from calviz.app.session import md

ROOT = Path(__file__).resolve().parents[2]
#: Seconds after which a script or a job has failed: only a limit, which a machine that is many times slower keeps too.
PATIENCE = 300.0
GOOD = b"label,p_cat,p_dog,p_fox\ncat,0.81,0.12,0.07\ndog,0.25,0.55,0.2\nfox,0.1,0.3,0.6\n"


class App(AppTest):
    """The app, whose pages are opened by the path in their address, as tabs of a room share its script."""

    def open(self, page: str) -> Self:
        """Return the app on another page, after a run."""
        self._page_hash = calc_hash("start" if page == "overview" else page)
        return self.run()


def whole_app() -> App:
    """Return the app with the script that the server runs, before its first run."""
    return App(str(ROOT / "calviz" / "app" / "frame.py"), default_timeout=PATIENCE)


def app_of(script: Callable[[], None]) -> AppTest:
    """Return an app with this script, before its first run."""
    return AppTest.from_function(script, default_timeout=PATIENCE)


def open_page(query: str = "", page: str = "overview") -> App:
    """Return the app on a page that is opened by a link; `query` is the part after the question mark."""
    app = whole_app()
    for part in filter(None, query.split("&")):
        name, _, value = part.partition("=")
        app.query_params[name] = value
    return app.open(page)


def quiet(app: AppTest) -> AppTest:
    """Return the app after checking that it shows no error."""
    assert not app.exception
    assert [e.value for e in app.error] == []
    return app


def text_of(app: AppTest) -> str:
    """Return the texts of the page, without escapes, one element per line; those of tables and widgets are left out."""
    kinds = (
        *(app.markdown, app.caption, app.header, app.title, app.subheader),
        *(app.info, app.warning, app.error),
    )
    text = "\n".join([*(e.value for kind in kinds for e in kind), *chips(app)])
    return plain(text)


def helps_of(app: AppTest) -> str:
    """Return what stands behind the question marks of the texts, one element per line."""
    return plain("\n".join(e.help for kind in (app.markdown, app.caption) for e in kind if e.help))


def plain(text: str) -> str:
    """Return a text without escapes."""
    return re.sub(r"&#(\d+);", lambda m: chr(int(m[1])), text).replace("\u2060", "")


def blocks(app: AppTest) -> Iterator[Any]:
    """Yield the containers of the page, outer ones first."""

    def walk(block: Any) -> Iterator[Any]:
        for child in block.children.values():
            if hasattr(child, "children"):
                yield child
                yield from walk(child)

    return walk(app.main)


def chips(app: AppTest) -> list[str]:
    """Return the labels of what opens on a click: the chips of the bar."""
    labels = (
        getattr(getattr(getattr(b, "proto", None), "popover", None), "label", "")
        for b in blocks(app)
    )
    return [re.sub(r":gray\[(.*?)\]", r"\1", label) for label in labels if label]


def folded(app: AppTest) -> dict[str, tuple[str, Any]]:
    """Return what a click opens and computes, sections and expanders: key and value of the widget, by title."""
    found: dict[str, tuple[str, Any]] = {}
    for block in blocks(app):
        proto = getattr(block.proto, "tab_container", block.proto)
        # "$$ID-", a hash, and the key.
        *_, key = getattr(proto, "id", "").split("-", 2)
        if key and block.type == "tab_container":
            found |= {tab.label: (key, tab.label) for tab in block.children.values()}
        elif key and block.type == "expander":
            found[block.label] = (key, True)
    return found


def unfold(app: AppTest, title: str) -> AppTest:
    """Open a section or an expander by its title."""
    key, value = folded(app)[title]
    app.session_state[key] = value
    return app.run()


def unfold_all(app: AppTest) -> Iterator[AppTest]:
    """Yield the page after its expanders are opened, and those of each section after it; the open section is drawn already."""
    opened = {block.label for block in blocks(app) if block.type == "tab" and block.children}
    while rest := {t: where for t, where in folded(app).items() if t not in opened}:
        expanders = [title for title, (_, value) in rest.items() if value is True]
        for title in expanders or [next(iter(rest))]:
            opened.add(title)
            key, value = rest[title]
            app.session_state[key] = value
        yield app.run()


def upload(app: AppTest, name: str, content: bytes) -> AppTest:
    """Open a file on the page Data."""
    return drop(app.open("data"), name, content)


def drop(app: AppTest, name: str, content: bytes, kind: str = "text/csv") -> AppTest:
    """Drop a file on the first box for files of the page."""
    return app.file_uploader[0].set_value((name, content, kind)).run()


def press(app: AppTest, label: str) -> AppTest:
    """Press the first button with a label."""
    return next(b for b in app.button if b.label == label).click().run()


def give_role(app: AppTest, column: str, role: str) -> AppTest:
    """Choose the role of a column above the first rows of a file."""
    radio = next(r for r in app.radio if r.label == f"Role of {md(column, 40)}")
    return radio.set_value(role).run()


def wait(app: AppTest) -> AppTest:
    """Run the page, as a browser would, until its job has ended."""
    for _ in range(1_200):
        if not any(b.label == "Stop" for b in app.button):
            assert not app.exception
            return app
        time.sleep(0.05)
        app.run()
    raise AssertionError("the job did not end")


def first_table(app: AppTest):
    """Return the data of the first table of the page."""
    return app.dataframe[0].value


def setting(app: AppTest, key: str) -> Any:
    """Return the list of a setting of the bar; a button that sets it gives it another key."""
    lists = (*app.selectbox, *app.radio)
    return next(one for one in lists if re.fullmatch(rf"{key}(\.\d+)?", one.key or ""))
