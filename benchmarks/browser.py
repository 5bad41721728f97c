"""Measure how fast the dashboard responds in a real browser, and whether it releases memory.

    python benchmarks/browser.py [--part "10,000 x 100"] [--sessions 20] [--write]

A fresh server and a headless Chromium. Times are from the key press or click to the frame that shows the result, the median
of several; the first chart is timed on a server that has had a visitor before. With ``--write`` the
tables go to ``benchmarks/results``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from _harness import ROOT, duration, machine, write_section
from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import sync_playwright

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
TURNS = 7
WAIT = 120_000
#: Seconds after which a session cannot be resumed and its memory has been released.
AWAY = 240
#: JavaScript that tests whether nothing is being computed and nothing on the page is stale.
IDLE = """() => !document.querySelector('[data-testid="stStatusWidget"], [data-testid="stSpinner"]')
    && document.querySelector('[data-testid="stMain"] h1')"""
DRAWN = "() => document.querySelector('.js-plotly-plot .main-svg')"
SAYS = """text => document.querySelector('[data-testid=stMain]').innerText
    .replaceAll('\\u00a0', ' ').includes(text)"""
#: A minimal app that shows a chart.
FLOOR = """import plotly.graph_objects as go
import streamlit as st

st.plotly_chart(go.Figure(go.Bar(y=[1, 3, 2])), theme=None)
"""
#: JavaScript that tests whether a selection of bins has a heading that differs from the previous one.
OTHER_BIN = """before => [...document.querySelectorAll('[data-testid=stMain] h3')]
    .some(h => h.innerText.startsWith('Bin ') && !before.includes(h.innerText))"""
#: JavaScript that tests whether the setting in the top bar is the one given, and nothing is computed.
SET = f"""text => ({IDLE})() && document.querySelector('[data-testid=stApp]').dataset.testScriptState === 'notRunning'
    && document.querySelector('.st-key-calviz-bar').innerText.replace(/\\s+/g, ' ').includes(text)"""
#: JavaScript that tests whether a tab of a room is open, and nothing is computed.
OPEN = f"""([room, tab]) => ({IDLE})() && document.querySelector('[data-testid=stApp]').dataset.testScriptState === 'notRunning'
    && document.querySelector('[data-testid=stTopNavLink][aria-current=page]')?.innerText.includes(room)
    && (!tab || document.querySelector('.st-key-calviz-tabs a strong')?.innerText.includes(tab))"""
#: Tabs that are opened in turn, with their rooms.
TABS = (
    ("Diagnose", "Reliability"),
    ("Diagnose", "Cumulative (KS)"),
    ("Diagnose", "Classes (MCS)"),
    ("Diagnose", "All metrics"),
    ("Decide", "Risk-coverage"),
    ("Decide", "Prediction sets"),
    ("Overview", ""),
)


@dataclass(frozen=True)
class Line:
    """A row of the table."""

    what: str
    seconds: float
    cpu: float
    goal: str


@contextmanager
def server(file: Path | None = None, root: Path = ROOT) -> Iterator[tuple[str, int]]:
    """Start the dashboard, or another app; yields its address and process id."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {**os.environ, **({"CALVIZ_OPEN": str(file)} if file else {})}
    command = [sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(port)]
    process = subprocess.Popen(
        [*command, "--server.headless", "true"],
        cwd=root,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            try:
                urllib.request.urlopen(f"{url}/_stcore/health", timeout=2).close()
                break
            except OSError:
                time.sleep(0.1)
        yield url, process.pid
    finally:
        process.terminate()
        process.wait(20)


def until(page: Any, condition: str, argument: object = None) -> None:
    """Wait for the first frame in which a condition holds."""
    page.wait_for_function(condition, arg=argument, polling="raf", timeout=WAIT)


def idle(page: Any) -> None:
    """Wait until the page is drawn and quiet."""
    page.wait_for_timeout(300)
    until(page, IDLE)


def timed(
    page: Any, pid: int, act: Callable[[], object], condition: str, argument: object = None
) -> tuple[float, float]:
    """Seconds from an action to the frame that shows its result, and the server's processor time until it is idle."""
    before, start = computed(pid), time.perf_counter()
    act()
    until(page, condition, argument)
    took = time.perf_counter() - start
    idle(page)
    return took, computed(pid) - before


def computed(pid: int) -> float:
    """Processor seconds of a process, on all cores; 0 if the system does not report them."""
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        return 0.0
    fields = stat.read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def line(action: str, times: list[tuple[float, float]], goal: str) -> Line:
    """Row of the table with the medians of several turns."""
    took, cpu = zip(*times, strict=True)
    return Line(action, statistics.median(took), statistics.median(cpu), goal)


def first_visit(context: Any, url: str, pid: int) -> tuple[float, float, float]:
    """Visit until the first chart: elapsed seconds, and processor seconds of the page and of the server."""
    page = context.new_page()
    tools = context.new_cdp_session(page)
    tools.send("Performance.enable", {"timeDomain": "threadTicks"})
    before, start = computed(pid), time.perf_counter()
    page.goto(url)
    until(page, DRAWN)
    took = time.perf_counter() - start
    metrics = tools.send("Performance.getMetrics")["metrics"]
    busy = next(m["value"] for m in metrics if m["name"] == "TaskDuration")
    page.wait_for_timeout(300)
    served = computed(pid) - before
    page.close()
    return took, busy, served


def first_chart(browser: Any, folder: Path, _: int) -> str:
    """Time the sample data and the minimal chart in turns, for new and returning visitors."""
    (folder / "app.py").write_text(FLOOR, encoding="utf-8")
    shutil.copytree(ROOT / ".streamlit", folder / ".streamlit")
    with server() as (url, pid), server(root=folder) as (floor, floor_pid):
        apps = {
            "calviz, sample data": (f"{url}/?data=digits", pid),
            "three bars by `st.plotly_chart`, nothing else": (floor, floor_pid),
        }
        times: dict[str, list[tuple[float, float, float]]] = {}
        back = browser.new_context()
        for turn in range(TURNS + 1):
            for app, address in apps.items():
                new = browser.new_context()
                for who, context in (("", new), (", again in the same browser", back)):
                    visit = first_visit(context, *address)
                    if turn:  # the first turn warms up the servers and the browser of the returning visitor
                        times.setdefault(app + who, []).append(visit)
                new.close()
    lines = []
    for app, rows in times.items():
        took, page, served = zip(*rows, strict=True)
        cells = [duration(statistics.median(x)) for x in (took, page, served)]
        lines.append(f"| {app} | {cells[0]} ({duration(min(took))}) | {cells[1]} | {cells[2]} |")
    return (
        "A new visitor has an empty cache. The floor is a page with three bars: streamlit's own start and its 4.7 MB of "
        "plotly.js, which the browser reads and runs again; the rest is calviz.\n\n"
        "| what | until the first chart: median (fastest) | the page computes | server computes |\n"
        "| --- | --- | --- | --- |\n" + "\n".join(lines) + "\n"
    )


def sliders(page: Any, url: str, pid: int, name: str, goal: str) -> Iterator[Line]:
    """Time the sliders of the share kept and the number of bins."""
    page.goto(f"{url}/risk_coverage?keep=80")
    until(page, SAYS, "Keep, % of the rows")
    idle(page)
    slider = page.locator("[data-testid=stSlider]", has_text="Keep, %").locator("input").first
    slider.focus()
    times = []
    for turn in range(TURNS):
        page.wait_for_timeout(400)
        text = f"Keeping the {79 - turn}.0 %"
        times.append(timed(page, pid, lambda: page.keyboard.press("ArrowLeft"), SAYS, text))
    yield line(f"slider *Keep* on Risk-coverage, {name}", times[1:], goal)
    page.goto(f"{url}/reliability")
    until(page, DRAWN)
    idle(page)
    page.locator(".st-key-calviz-bar button", has_text="Bins").first.click()
    box = page.get_by_role("spinbutton", name="Number of bins")
    times = []
    for turn in range(TURNS):
        page.wait_for_timeout(400)
        box.fill(str(16 + turn))
        times.append(timed(page, pid, lambda: box.press("Enter"), SET, f"Bins {16 + turn}"))
    yield line(f"number of bins on Reliability, {name}", times[1:], goal)


def selections(page: Any, url: str, pid: int, name: str, goal: str) -> Iterator[Line]:
    """Time a click on a bin until the numbers of its rows are shown beside those of all rows."""
    from calviz.core.events import DEFAULT_BINS

    for where, path in (("Overview", ""), ("Reliability", "reliability")):
        page.goto(f"{url}/{path}")
        until(page, DRAWN)
        idle(page)
        area = page.locator(".js-plotly-plot .nsewdrag").first.bounding_box()
        times = []
        for turn in range(TURNS):
            page.wait_for_timeout(400)
            share = 0.94 - turn / DEFAULT_BINS
            at = (area["x"] + share * area["width"], area["y"] + area["height"] / 2)
            before = page.locator("[data-testid=stMain] h3", has_text="Bin ").all_inner_texts()
            times.append(timed(page, pid, partial(page.mouse.click, *at), OTHER_BIN, before))
        yield line(f"select a bin on {where}, {name}", times[1:], goal)


def switches(page: Any, url: str, pid: int, name: str, goal: str) -> Iterator[Line]:
    """Time the change from tab to tab: the first time, and with everything computed."""
    page.goto(f"{url}/")
    until(page, DRAWN)
    idle(page)
    times: dict[tuple[str, str], list[tuple[float, float]]] = {there: [] for there in TABS}
    for _ in range(3):
        for room, tab in TABS:

            def go(room: str = room, tab: str = tab) -> None:
                entry = page.locator("[data-testid=stTopNavLink]", has_text=room)
                if entry.get_attribute("aria-current") != "page":
                    entry.click()
                if tab:
                    page.locator(".st-key-calviz-tabs a", has_text=tab).click()

            times[room, tab].append(timed(page, pid, go, OPEN, [room, tab]))
    for (room, tab), turns in times.items():
        if tab:
            yield line(f"switch to {tab}, first time, {name}", turns[:1], goal)
        yield line(f"switch to {tab or room}, again, {name}", turns[1:], goal)


def resident(pid: int) -> int:
    """Resident memory of a process in bytes."""
    text = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in text.splitlines() if "VmRSS" in line)


def visit(browser: Any, url: str, file: Path) -> None:
    """Open a file, view its overview, and leave."""
    context = browser.new_context()
    try:
        page = context.new_page()
        page.goto(f"{url}/data")
        until(page, "() => document.querySelector('input[type=file]')")
        idle(page)
        page.locator("input[type=file]").first.set_input_files(file)
        until(page, SAYS, file.name)
        idle(page)
        page.locator("[data-testid=stTopNavLink]", has_text="Overview").click()
        until(page, DRAWN)
        idle(page)
    finally:
        context.close()


def sessions(browser: Any, url: str, pid: int, file: Path, count: int) -> str:
    """Memory over visitors that open a file, view two pages and leave."""
    readings, lost = [], 0
    while len(readings) <= count:
        try:
            visit(browser, url, file)
        except PlaywrightError as error:
            # A visit that the browser did not finish is reported, and still is a session of the server.
            lost += 1
            print("a visit was not finished:", str(error).split("\n", 1)[0], file=sys.stderr)
            if lost > count // 4:
                raise
        readings.append(resident(pid))
        print(len(readings), "sessions:", readings[-1] // 10**6, "MB", file=sys.stderr)
    # Streamlit keeps a session for two minutes, in case the browser comes back.
    time.sleep(AWAY)
    after = resident(pid)
    at = [i for i in (1, 2, 5, 10, 15, 20, 30, 40) if i < count] + [count]
    rows = [(f"{i}", readings[i]) for i in [0, *at]]
    rows[0] = ("the first, which loads the libraries", readings[0])
    rows.append((f"{AWAY // 60} minutes after all have ended", after))
    listed = "\n".join(f"| {what} | {held / 1e6:.0f} MB |" for what, held in rows)
    unfinished = f" {lost} visits were not finished by the browser." if lost else ""
    return (
        f"Resident memory of the server over {count} consecutive sessions after a first one; each opens a file of "
        f"{file.stat().st_size / 1e6:.0f} MB, views two pages and leaves.{unfinished}\n\n"
        f"| after session | resident memory |\n| --- | ---: |\n{listed}\n"
    )


def predictions(path: Path, n: int, k: int) -> Path:
    """Write overconfident predictions as NPZ, in blocks, so that no copy in double precision is made."""
    rng = np.random.default_rng(0)
    probs = np.empty((n, k), dtype=np.float32)
    labels = rng.integers(0, k, n)
    for start in range(0, n, 5_000):
        part = rng.normal(size=(min(5_000, n - start), k)).astype(np.float32) * 1.5
        rows = np.arange(len(part))
        part[rows, labels[start : start + 5_000]] += 6
        part = np.exp(part - part.max(axis=1, keepdims=True))
        probs[start : start + 5_000] = part / part.sum(axis=1, keepdims=True)
    wrong = rng.random(n) < 0.2
    labels[wrong] = rng.integers(0, k, int(wrong.sum()))
    np.savez(path, probs=probs, labels=labels)
    return path


def small(browser: Any, folder: Path, _: int) -> str:
    """10,000 rows of 100 classes."""
    with server(predictions(folder / "small.npz", 10_000, 100)) as (url, pid):
        page = browser.new_page(viewport={"width": 1440, "height": 1200})
        lines = list(sliders(page, url, pid, "10,000 x 100", "< 0.3 s"))
        lines += selections(page, url, pid, "10,000 x 100", "< 0.5 s")
        lines += switches(page, url, pid, "10,000 x 100", "< 0.5 s")
    return table(lines)


def large(browser: Any, folder: Path, _: int) -> str:
    """50,000 rows of 1,000 classes."""
    with server(predictions(folder / "large.npz", 50_000, 1_000)) as (url, pid):
        page = browser.new_page(viewport={"width": 1440, "height": 1200})
        lines = list(sliders(page, url, pid, "50,000 x 1,000", "< 1 s"))
        lines += switches(page, url, pid, "50,000 x 1,000", "")
    return table(lines)


def memory(browser: Any, folder: Path, count: int) -> str:
    """Memory of sessions that come and go; a remark if the system does not report it."""
    if not Path("/proc/self/status").exists():
        return "Not measured: this system does not tell.\n"
    with server() as (url, pid):
        return sessions(browser, url, pid, predictions(folder / "visitor.npz", 10_000, 100), count)


def table(lines: list[Line]) -> str:
    """Format the lines as a Markdown table."""
    rows = "\n".join(
        f"| {x.what} | {duration(x.seconds)} | {duration(x.cpu)} | {x.goal} |" for x in lines
    )
    return (
        f"| what | until it shows | server computes | goal |\n| --- | --- | --- | --- |\n{rows}\n"
    )


PARTS: dict[str, Callable[[Any, Path, int], str]] = {
    "first chart": first_chart,
    "10,000 x 100": small,
    "50,000 x 1,000": large,
    "memory": memory,
}


def main() -> None:
    """Measure, print, and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument("--part", choices=PARTS, action="append", help="all where left out")
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    path = os.environ.get("CALVIZ_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    for part in options.part or PARTS:
        with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
            table = PARTS[part](browser, Path(folder), options.sessions)
            version = browser.version.split(".")[0]
            browser.close()
        load = os.getloadavg()[1] if hasattr(os, "getloadavg") else float("nan")
        text = (
            f"{machine('streamlit', 'plotly')}, Chromium {version}, headless, on the same machine, with a load average of {load:.1f}. "
            "The server's processor time depends less on other load than the time until the result "
            f"shows.\n\n{table}"
        )
        print(text, flush=True)
        if options.write:
            write_section(f"In a browser: {part}", text)


if __name__ == "__main__":
    main()
