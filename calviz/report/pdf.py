"""Convert an HTML page to PDF with a browser installed on the machine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from calviz.core.errors import NotAvailable

#: Environment variable that names the browser, if it is not found automatically.
VARIABLE = "CALVIZ_CHROMIUM"
_NAMES = (
    *("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome"),
    *("microsoft-edge", "msedge"),
)
_PLACES = {
    "darwin": (
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
        "/Applications/Chromium.app/Contents/MacOS/Chromium",
        "/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge",
    ),
    "win32": (
        r"C:\Program Files\Google\Chrome\Application\chrome.exe",
        r"C:\Program Files (x86)\Google\Chrome\Application\chrome.exe",
        r"C:\Program Files (x86)\Microsoft\Edge\Application\msedge.exe",
    ),
}
#: Nothing is fetched, stored or asked; the time budget is for the page's scripts.
_OPTIONS = (
    *("--headless", "--disable-gpu", "--no-first-run", "--no-default-browser-check"),
    *("--disable-extensions", "--disable-background-networking", "--disable-sync"),
    "--host-resolver-rules=MAP * ~NOTFOUND",
    *("--no-pdf-header-footer", "--virtual-time-budget=20000"),
)
#: Timeout in seconds.
PATIENCE = 180


def find_browser() -> str | None:
    """Return the path of Chromium, Chrome or Edge, or of the program that CALVIZ_CHROMIUM names; None if there is none."""
    return next(_candidates(), None)


def _candidates() -> Iterator[str]:
    named = os.environ.get(VARIABLE)
    if named:
        path = shutil.which(named)
        yield from [path] if path else []
        return
    yield from (path for name in _NAMES if (path := shutil.which(name)))
    yield from (place for place in _PLACES.get(sys.platform, ()) if Path(place).is_file())


def why_not() -> str:
    """Return why this machine cannot write a PDF; empty if it can."""
    if find_browser() is not None:
        return ""
    named = os.environ.get(VARIABLE)
    reason = (
        f"{VARIABLE} names '{named}', which is not a program" if named else "there is none here"
    )
    return (
        f"a PDF needs Chromium, Chrome or Edge, and {reason}; install one, or open the HTML file in "
        "any browser and print it."
    )


def to_pdf(html: str) -> bytes:
    """Print a self-contained page as PDF.

    Parameters
    ----------
    html : str

    Returns
    -------
    bytes

    Raises
    ------
    NotAvailable
        If there is no browser, or printing fails.
    """
    browser = find_browser()
    if browser is None:
        raise NotAvailable(why_not())
    with tempfile.TemporaryDirectory(prefix="calviz-pdf-", ignore_cleanup_errors=True) as folder:
        page, printed = Path(folder, "page.html"), Path(folder, "page.pdf")
        page.write_text(html, encoding="utf-8")
        command = [
            browser,
            *_OPTIONS,
            # Chromium refuses to run its sandbox as root, as in a container; the page is our own and loads nothing.
            *(["--no-sandbox"] if hasattr(os, "geteuid") and os.geteuid() == 0 else []),
            f"--user-data-dir={Path(folder, 'profile')}",
            f"--print-to-pdf={printed}",
            page.as_uri(),
        ]
        try:
            subprocess.run(command, capture_output=True, timeout=PATIENCE, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            reason = "took too long" if isinstance(error, subprocess.TimeoutExpired) else str(error)
            raise NotAvailable(f"{browser} did not print: {reason}.") from None
        content = printed.read_bytes() if printed.is_file() else b""
    if not content.startswith(b"%PDF-"):
        raise NotAvailable(
            f"{browser} did not print; open the HTML file in any browser and print it."
        )
    return content
