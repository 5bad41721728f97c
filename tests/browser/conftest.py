"""A freshly started server and a real browser; nothing may leave the machine."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: The first draws no window frame that nobody sees, which takes a quarter less time per page.
NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
)
HOW = "install Chromium (apt-get install chromium, or python -m playwright install chromium)"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    # All tabs share a process, and what it has compiled: a page takes half the time.
    "--process-per-site",
]
#: Milliseconds: starting a server and loading the first page on a busy machine takes a while.
PATIENCE = 120_000


def pytest_itemcollected(item: pytest.Item) -> None:
    item.add_marker(pytest.mark.browser)


def _missing(what: str) -> None:
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(f"{what}; {HOW}")
    pytest.skip(f"{what}; {HOW}")


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """A real Chromium."""
    try:
        from playwright.sync_api import Error, expect, sync_playwright
    except ImportError:
        _missing("playwright is not installed")
    expect.set_options(timeout=PATIENCE)
    path = os.environ.get("CALVIZ_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    with sync_playwright() as playwright:
        try:
            result = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        except Error:
            _missing("no Chromium was found")
        yield result
        result.close()


#: Below the ports that the system hands out by itself. Each worker of xdist has its own, and two test runs start at different ones,
#: so that no two servers are after the same: a test might then be answered by the other one.
_PORTS = count(
    20_000 + 1_000 * int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:]) + os.getpid() % 900
)


def _free_port() -> int:
    for port in _PORTS:
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("unreachable")


@dataclass
class Server:
    """A running dashboard."""

    url: str
    log: Path
    process: subprocess.Popen[bytes]

    @property
    def events(self) -> list[list[str]]:
        """What a server that was started with `audit` wrote, started and connected to."""
        lines = (self.log.parent / "audit.txt").read_text().splitlines()
        return [json.loads(line) for line in lines]

    @property
    def faults(self) -> list[str]:
        """Tracebacks that go through calviz; streamlit writes one of its own where a tab closes while it is being answered."""
        ours = [str(ROOT / name) for name in ("app.py", "calviz", "pages")]
        raised = self.log.read_text().split("Traceback")[1:]
        return [text for text in raised if any(f'File "{path}' in text for path in ours)]

    @property
    def temporary(self) -> Path:
        """The folder for temporary files of a server that was started with `audit`."""
        return self.log.parent / "tmp"

    def stop(self) -> None:
        """End it as a service manager does."""
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(PATIENCE / 1_000)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(10)


@contextmanager
def _started(
    folder: Path, *, audit: bool = False, plain: bool = False, port: int | None = None
) -> Iterator[Server]:
    port = port or _free_port()
    log = folder / "log.txt"
    program = ["-m", "calviz"]
    environment = {**os.environ, "HOME": str(folder)}
    if audit:
        (folder / "tmp").mkdir()
        program = [str(Path(__file__).with_name("audited.py")), str(folder / "audit.txt")]
        environment |= {"TMPDIR": str(folder / "tmp"), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, *program, "app", "--port", str(port), "--no-browser"]
    if plain:
        command = [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={port}"]
    environment.pop("CALVIZ_OPEN", None)
    with log.open("wb") as out:
        process = subprocess.Popen(
            command, cwd=ROOT, stdout=out, stderr=subprocess.STDOUT, env=environment
        )
    server = Server(f"http://127.0.0.1:{port}", log, process)
    try:
        _wait_for(server)
        yield server
    finally:
        server.stop()


def _wait_for(server: Server) -> None:
    for _ in range(600):
        try:
            urllib.request.urlopen(f"{server.url}/_stcore/health", timeout=2).close()
            return
        except OSError:
            assert server.process.poll() is None, server.log.read_text()
            time.sleep(0.1)
    raise AssertionError(f"the server did not start: {server.log.read_text()}")


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all tests that do not need their own; every tab is another visitor of it."""
    with _started(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="module")
def start_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Server]]:
    """Start further servers: `audit` with a watch on what they write, `plain` by streamlit, `port` in the place of another one."""
    with ExitStack() as running:

        def start(**options: Any) -> Server:
            folder = tmp_path_factory.mktemp("server")
            return running.enter_context(_started(folder, **options))

        yield start


@pytest.fixture
def fresh_server(tmp_path: Path) -> Iterator[Server]:
    """A server that nobody has visited yet."""
    with _started(tmp_path) as running:
        yield running


@dataclass
class View:
    """A browser tab with what it asked the network for."""

    page: Any
    server: Server
    requests: list[str] = field(default_factory=list)

    def open(self, path: str = "/") -> View:
        """Open a page by its link and wait until it is drawn."""
        self.page.goto(self.server.url + path)
        return self.settle()

    def settle(self) -> View:
        """Wait until streamlit has nothing more to do."""
        self.page.wait_for_selector("h1", timeout=PATIENCE)
        self.page.wait_for_selector(
            "[data-testid=stApp][data-test-script-state=notRunning]", timeout=PATIENCE
        )
        return self

    def expect(self, text: str) -> View:
        """Wait for a text to be visible."""
        self.page.get_by_text(text).first.wait_for(timeout=PATIENCE)
        return self

    def go(self, room: str, tab: str = "") -> View:
        """Open a room by its entry, and a tab of it, which may stand behind *More*."""
        self.page.locator("[data-testid=stTopNavLink]", has_text=room).click()
        if tab in ("Which wins elsewhere?", "Grades"):
            self.at(room)
            self.page.locator(".st-key-calviz-tabs button", has_text="More").click()
            self.page.get_by_role("link", name=tab).click()
        elif tab:
            self.page.locator(".st-key-calviz-tabs a", has_text=tab).click()
        return self.at(room, tab)

    def at(self, room: str, tab: str = "") -> View:
        """Wait until a room is open, at a tab of it."""
        self.page.locator("[data-testid=stTopNavLink][aria-current=page]", has_text=room).wait_for()
        if tab:
            self.page.locator(".st-key-calviz-tabs a strong", has_text=tab).wait_for()
        return self.settle()

    def back(self) -> View:
        """Step back to the page before; on a change of page streamlit may push its address twice, first without its settings."""
        path = urlsplit(self.page.url).path
        self.page.go_back()
        if urlsplit(self.page.url).path == path:
            self.page.go_back()
        return self

    def chip(self, name: str) -> View:
        """Open or close the chip of a setting."""
        self.page.locator(".st-key-calviz-bar button", has_text=name).first.click()
        return self

    def unfold(self, title: str) -> View:
        """Open or close an expander; it moves what stands in it for half a second, and a click in that time misses."""
        self.page.locator("summary", has_text=title).first.click()
        self.page.wait_for_function(
            "[...document.querySelectorAll('details')].every(e => e.getAnimations().length === 0)"
        )
        return self.settle()

    def upload(self, file: Any) -> View:
        """Give a file to the page's box; one that streamlit draws anew in that very moment takes none, and gets it again."""
        from playwright.sync_api import TimeoutError as NothingSent

        with suppress(NothingSent):
            return self._give(file, PATIENCE / 6)
        return self._give(file, PATIENCE)

    def _give(self, file: Any, patience: float) -> View:
        with self.page.expect_request("**/upload_file/**", timeout=patience):
            self.page.locator("input[type=file]").first.set_input_files(file)
        return self

    def choose(self, file: Any, *, key: str = "") -> View:
        """Pick a file in the chooser that the page's box opens by the mouse or a key; again, as with `upload`."""
        from playwright.sync_api import TimeoutError as NothingSent

        with suppress(NothingSent):
            return self._pick(file, key, PATIENCE / 6)
        return self._pick(file, key, PATIENCE)

    def _pick(self, file: Any, key: str, patience: float) -> View:
        button = self.page.locator("[data-testid=stFileUploaderDropzone] button").first
        with self.page.expect_request("**/upload_file/**", timeout=patience):
            with self.page.expect_file_chooser() as chooser:
                button.press(key) if key else button.click()
            chooser.value.set_files(str(file))
        return self

    def bins(self, number: int) -> View:
        """Choose a number of bins in the bar."""
        self.chip("Bins")
        box = self.page.get_by_role("spinbutton", name="Number of bins")
        box.fill(str(number))
        self.page.keyboard.press("Enter")
        self.page.wait_for_url(f"**bins={number}**")
        self.page.keyboard.press("Escape")
        return self.settle()

    @property
    def text(self) -> str:
        """All text of the page's main part."""
        return str(self.page.locator("[data-testid=stMain]").inner_text())

    @property
    def elsewhere(self) -> list[str]:
        """Requests that would have left the machine."""
        inside = (self.server.url, self.server.url.replace("http", "ws"), "data:", "blob:")
        return [url for url in self.requests if not url.startswith(inside)]


@pytest.fixture(scope="session")
def visitor(browser: Any) -> Iterator[Any]:
    """One browser profile for all tabs: streamlit's and plotly's scripts are fetched and compiled once, not for every test."""
    context = browser.new_context(accept_downloads=True)
    context.set_default_timeout(PATIENCE)
    yield context
    context.close()


@pytest.fixture
def view(browser: Any, visitor: Any, server: Server) -> Iterator[Callable[..., View]]:
    """Open a new tab; at the end nothing may have been asked of another machine, nor a traceback shown."""
    if not visitor.pages:
        # The process of the tabs ends with the last of them; this one stays.
        visitor.new_page().goto(f"{server.url}/_stcore/health")
    with ExitStack() as apart:
        opened: list[View] = []

        def new(
            *,
            width: int = 1440,
            height: int = 900,
            dark: bool = False,
            at: Server | None = None,
            stranger: bool = False,
        ) -> View:
            # A stranger shares no cookie and no storage with the other tabs, and has a screen for fingers.
            context = visitor
            if stranger:
                context = apart.enter_context(browser.new_context(has_touch=True))
            page = context.new_page()
            page.set_default_timeout(PATIENCE)
            page.set_viewport_size({"width": width, "height": height})
            # Nothing here looks at a transition, and each is drawn frame by frame.
            page.emulate_media(color_scheme="dark" if dark else "light", reduced_motion="reduce")
            value = View(page, at or server)
            page.on("request", lambda request: value.requests.append(request.url))
            page.on("websocket", lambda socket: value.requests.append(socket.url))
            opened.append(value)
            return value

        yield new
        for value in opened:
            text = value.page.locator("body").inner_text()
            value.page.evaluate("localStorage.clear(); sessionStorage.clear()")
            value.page.close()
            assert value.elsewhere == []
            assert "Traceback" not in text
        visitor.clear_cookies()
        visitor.clear_permissions()
