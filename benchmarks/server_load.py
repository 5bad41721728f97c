"""Measure how many users a server can hold: real browsers that upload, view and recalibrate at the same time.

    python benchmarks/server_load.py [--sessions 1,4,8] [--rows 10000] [--classes 100] [--uploads 40] [--write]

Every session is a separate browser context with its own file; files differ in their number of rows, by which a session
recognises its own. All sessions do the same at the same time: open a link, upload, fit and judge three recalibrators, view
the overview. Meanwhile a bystander without a file changes pages. Browsers and server share the cores.
Then one session uploads many different files, one after the other.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from _harness import ROOT, machine, write_section
from _server import Server, browsing, new_tab, serving, settled

METHODS = ("Temperature scaling", "Vector scaling", "Ensemble temperature scaling (ETS)")
STEPS = ("open", "upload", "recalibrate", "overview")
DOCS = ROOT / "docs" / "robustness.md"
MARKS = ("<!-- load -->\n", "<!-- /load -->")


def write_file(folder: Path, rows: int, classes: int) -> Path:
    """Write overconfident predictions; the number of rows is also the seed."""
    rng = np.random.default_rng(rows)
    logits = rng.normal(scale=2.5, size=(rows, classes)).astype(np.float32)
    chances = np.exp(logits / 1.5)
    chances /= chances.sum(axis=1, keepdims=True)
    labels = (chances.cumsum(axis=1) > rng.random((rows, 1))).argmax(axis=1)
    probs = np.exp(logits - logits.max(axis=1, keepdims=True))
    path = folder / f"own{rows}.npz"
    np.savez(path, probs=probs / probs.sum(axis=1, keepdims=True), labels=labels)
    return path


async def upload(page: Any, file: Path, rows: int) -> None:
    await page.locator("input[type=file]").first.set_input_files(str(file))
    await page.locator("[data-testid=stMain]").get_by_text(f"{rows:,} rows").first.wait_for()


async def visit(page: Any, title: str) -> None:
    await page.locator("[data-testid=stTopNavLink]", has_text=title).click()


async def person(browser: Any, server: Server, file: Path, rows: int) -> dict[str, float]:
    """Do all steps once; returns the seconds of each, until its result is on screen."""
    page = await new_tab(browser)
    took: dict[str, float] = {}

    async def step(name: str, *actions: Any) -> None:
        start = time.perf_counter()
        for action in actions:
            await action
        took[name] = time.perf_counter() - start

    methods = "&".join(f"methods={m.replace(' ', '+')}" for m in METHODS)
    # A link from another user's view: it asks for the file and keeps the choice of methods.
    link = f"{server.url}/recalibrate?data={16 * '0'}&{methods}"
    await step("open", page.goto(link), page.wait_for_selector("h1"), settled(page))
    await step("upload", upload(page, file, rows), settled(page))
    button = page.get_by_role("button", name="Compare methods")
    heading = page.get_by_role("heading", name="What to take")
    await step("recalibrate", button.click(), heading.wait_for(), settled(page))
    await check(page, rows)
    metrics = page.locator("[data-testid=stMetric]")
    await step("overview", visit(page, "Overview"), metrics.nth(2).wait_for(), settled(page))
    await check(page, rows)
    await page.context.close()
    return took


async def check(page: Any, rows: int) -> None:
    """Check that nothing is lost, and that nothing of another session is shown."""
    text = await page.locator("[data-testid=stApp]").inner_text()
    shown_rows = set(re.findall(r"own(\d+)", text))
    if shown_rows != {str(rows)} or f"{rows:,} rows" not in text:
        raise SystemExit(f"the session of {rows} rows shows {sorted(shown_rows)}")
    if await page.locator("[data-testid=stAlertContentError]").count():
        raise SystemExit("an error is shown")


async def bystander(browser: Any, server: Server) -> list[float]:
    """Change pages until cancelled; returns the seconds of each change."""
    page = await new_tab(browser)
    await page.goto(server.url)
    await page.wait_for_selector("[data-testid=stMetric]")
    took: list[float] = []
    try:
        while True:
            for title, part in (
                ("Diagnose", ".st-key-calviz-tabs"),
                ("Overview", "[data-testid=stMetric]"),
            ):
                start = time.perf_counter()
                await visit(page, title)
                await page.locator(part).first.wait_for()
                took.append(time.perf_counter() - start)
                await asyncio.sleep(0.5)
    except asyncio.CancelledError:
        await page.context.close()
        return took


async def together(count: int, folder: Path, rows: int, classes: int) -> list[str]:
    """Run `count` sessions at the same time; returns the cells of a row of the table."""
    with serving() as server:
        async with browsing() as browser:
            # A first visitor, so that no measured session waits for imports.
            first = await new_tab(browser)
            await first.goto(server.url)
            await first.wait_for_selector("[data-testid=stMetric]")
            await settled(first)
            await first.context.close()
            before = server.resident()
            background = [
                asyncio.create_task(server.watch()),
                asyncio.create_task(bystander(browser, server)),
            ]
            row_counts = [rows + i for i in range(count)]
            files = [write_file(folder, n, classes) for n in row_counts]
            started = server.processor()
            people = await asyncio.gather(
                *(
                    person(browser, server, file, n)
                    for file, n in zip(files, row_counts, strict=True)
                )
            )
            spent = server.processor() - started
            background[0].cancel()
            background[1].cancel()
            waited = await background[1]
            children = server.children()
        if children:
            raise SystemExit(f"orphans: {children}")
        cells = [f"{count}"]
        for step in STEPS:
            values = [p[step] for p in people]
            cells.append(f"{statistics.median(values):.1f} ({max(values):.1f})")
        cells += [
            f"{statistics.median(waited):.2f} ({max(waited):.2f})",
            f"{1_000 * statistics.median(server.answers):.0f} ({1_000 * max(server.answers):.0f})",
            f"{spent / count:.1f}",
            f"{(max(server.memory) - before) / count:.0f}",
            f"{max(server.memory):,.0f}",
        ]
        return cells


async def in_a_row(count: int, folder: Path, rows: int, classes: int) -> list[float]:
    """Resident memory after each of many uploads in one session, in MB."""
    with serving() as server:
        async with browsing() as browser:
            page = await new_tab(browser)
            await page.goto(f"{server.url}/data")
            await page.wait_for_selector("h1")
            await settled(page)
            memory = [server.resident()]
            for i in range(count):
                file = write_file(folder, rows + i, classes)
                await upload(page, file, rows + i)
                await settled(page)
                file.unlink()
                memory.append(server.resident())
            return memory


def table(lines: Sequence[Sequence[str]]) -> str:
    head = (
        "sessions",
        *(f"{step}, s" for step in STEPS),
        "bystander's page, s",
        "health, ms",
        "processor / session, s",
        "memory / session, MB",
        "peak memory, MB",
    )
    rows = [head, ["---:"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def curve(memory: Sequence[float]) -> str:
    at = sorted(
        {0, 1, 6, 12, 18, 24, len(memory) // 2, 36, len(memory) - 1} & set(range(len(memory)))
    )
    head = [f"{i}" for i in at]
    body = [f"{memory[i]:,.0f}" for i in at]
    rows = [["uploads", *head], ["---", *["---:"] * len(at)], ["MB", *body]]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sessions", default="1,4,8")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--classes", type=int, default=100)
    parser.add_argument("--uploads", type=int, default=40)
    parser.add_argument(
        "--write", action="store_true", help="into benchmarks/results and docs/robustness.md"
    )
    given = parser.parse_args()
    parts: list[str] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        lines = []
        for count in filter(None, map(int, filter(None, given.sessions.split(",")))):
            lines.append(asyncio.run(together(count, folder, given.rows, given.classes)))
            print(table(lines[-1:]), flush=True)
        if lines:
            parts.append(
                f"Simultaneous sessions, each with its own file of {given.rows:,} rows and "
                f"{given.classes:,} classes, in real browsers on the same cores: the median, and in brackets "
                f"the slowest. Recalibrating fits and judges three methods ({', '.join(METHODS)}). "
                "Nothing was lost, and no session showed data of another one.\n\n" + table(lines)
            )
        if given.uploads:
            memory = asyncio.run(in_a_row(given.uploads, folder, given.rows, given.classes))
            print(curve(memory), flush=True)
            parts.append(
                f"Resident memory of the server while one session uploads {given.uploads} different files of that size in a row "
                "(the 12 latest stay open).\n\n" + curve(memory)
            )
    if given.write:
        how = f"`python benchmarks/server_load.py --write` on {machine('streamlit')}."
        text = "\n\n".join([how, *parts])
        write_section("Load", text)
        before, after = DOCS.read_text().split(MARKS[0])
        DOCS.write_text(f"{before}{MARKS[0]}{text}\n{MARKS[1]}{after.split(MARKS[1])[1]}")


if __name__ == "__main__":
    main()
