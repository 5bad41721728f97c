"""Write figures of calviz as SVG files, drawn in a Chromium by the plotly.js of the package plotly."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

from _server import ARGUMENTS, CHROMIUM

from calviz.figures.figure import Figure

_DRAW = """async ({figure, width}) => {
    const place = document.createElement("div");
    document.body.append(place);
    figure.layout.width = width;
    await Plotly.newPlot(place, figure.data, figure.layout);
    return await Plotly.toImage(place, {format: "svg", width, height: figure.layout.height});
}"""


def write_figures(files: Mapping[Path, Figure], *, width: int = 760) -> None:
    """Write each figure with its caption, in the light theme.

    Parameters
    ----------
    files : mapping of Path to Figure
    width : int
        Width in pixels.
    """
    from playwright.sync_api import sync_playwright
    from plotly.offline import get_plotlyjs

    path = os.environ.get("CALVIZ_CHROMIUM") or next(
        filter(None, map(shutil.which, CHROMIUM)), None
    )
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=ARGUMENTS)
        page = browser.new_page(viewport={"width": width + 40, "height": 1_000})
        page.set_content("<!doctype html><body></body>")
        page.add_script_tag(content=get_plotlyjs())
        for file, figure in files.items():
            drawn = json.loads(figure.plot(caption=True, width=width).to_json())
            url = page.evaluate(_DRAW, {"figure": drawn, "width": width})
            file.write_text(
                _same_names(unquote(url.partition(",")[2]), file.stem) + "\n", encoding="utf-8"
            )
        browser.close()


def _same_names(svg: str, name: str) -> str:
    """Replace the random names of Plotly's elements by fixed ones, so that a file changes only if its figure does."""
    for number, uid in enumerate(
        dict.fromkeys(re.findall(r'id="(?:defs|topdefs|clip|legend)-?([0-9a-f]{6})', svg))
    ):
        svg = svg.replace(uid, f"{name}{number}")
    return svg
