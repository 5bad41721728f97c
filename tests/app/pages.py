"""Opening a page without a browser, and reading what it shows."""

import re
from pathlib import Path

from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).resolve().parents[2]
GOOD = b"label,p_cat,p_dog,p_fox\ncat,0.81,0.12,0.07\ndog,0.25,0.55,0.2\nfox,0.1,0.3,0.6\n"


def _app(query: str = "", page: str = "overview") -> AppTest:
    app = AppTest.from_file(str(ROOT / "app.py"), default_timeout=600)
    for part in filter(None, query.split("&")):
        name, _, value = part.partition("=")
        app.query_params[name] = value
    return app.switch_page(f"pages/{page}.py").run()


def _quiet(app: AppTest) -> AppTest:
    assert not app.exception
    assert [e.value for e in app.error] == []
    return app


def _words(app: AppTest) -> str:
    kinds = (app.markdown, app.caption, app.header, app.title, app.subheader, app.error)
    text = "\n".join(e.value for kind in kinds for e in kind)
    return re.sub(r"&#(\d+);", lambda m: chr(int(m[1])), text).replace("\u2060", "")


def _upload(app: AppTest, name: str, content: bytes) -> AppTest:
    app.switch_page("pages/data.py").run()
    app.file_uploader[0].set_value((name, content, "text/csv")).run()
    return app


def _table(app):
    return app.dataframe[0].value
