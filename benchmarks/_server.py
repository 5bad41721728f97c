"""A separate dashboard server and a browser for measurements of memory, response times and sessions."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from _harness import ROOT

CHROMIUM = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
#: Time limit of a step in the browser, in milliseconds.
PATIENCE = 180_000


@dataclass
class Server:
    """A running dashboard with measurements taken while it works."""

    url: str
    process: subprocess.Popen[bytes]
    folder: Path
    memory: list[float] = field(default_factory=list)
    answers: list[float] = field(default_factory=list)

    def resident(self) -> float:
        """Resident memory in MB."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1_000
        return float("nan")

    def processor(self) -> float:
        """Processor time used so far, in seconds."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def children(self) -> list[str]:
        """Processes that the server started."""
        return (
            Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        )

    async def watch(self) -> None:
        """Record memory and the response time of the health check until cancelled."""

        def ask() -> float:
            start = time.perf_counter()
            urllib.request.urlopen(f"{self.url}/_stcore/health", timeout=60).close()
            return time.perf_counter() - start

        while True:
            self.memory.append(self.resident())
            self.answers.append(await asyncio.to_thread(ask))
            await asyncio.sleep(0.1)


@contextmanager
def serving() -> Iterator[Server]:
    """Start a server with an empty home and temporary folder, which must be empty again at the end."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = Path(tempfile.mkdtemp())
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
    environment = {**os.environ, "HOME": str(folder), "TMPDIR": str(folder)}
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    server = Server(f"http://127.0.0.1:{port}", process, folder)
    try:
        for _ in range(600):
            with suppress(OSError):
                urllib.request.urlopen(f"{server.url}/_stcore/health", timeout=2).close()
                break
            time.sleep(0.1)
        yield server
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)
        left = [str(path) for path in folder.rglob("*")]
        shutil.rmtree(folder, ignore_errors=True)
        if left:
            raise SystemExit(f"the server left files behind: {left}")


@asynccontextmanager
async def browsing() -> AsyncIterator[Any]:
    """A Chromium; each of its contexts is a separate session."""
    from playwright.async_api import async_playwright

    path = os.environ.get("CALVIZ_CHROMIUM") or next(
        filter(None, map(shutil.which, CHROMIUM)), None
    )
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        yield browser
        await browser.close()


async def new_tab(browser: Any) -> Any:
    """Open a tab in a new session."""
    context = await browser.new_context(viewport={"width": 1200, "height": 800})
    context.set_default_timeout(PATIENCE)
    return await context.new_page()


async def settled(page: Any) -> None:
    """Wait until streamlit has finished all work for this tab."""
    await page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]")
