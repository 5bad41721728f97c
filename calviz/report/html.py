"""A report as one self-contained HTML file: no network, no other files, and no script except for charts."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from calviz.core.version import __version__
from calviz.figures.drawing.bullet import Bullet, Scale, shared_scale, svg
from calviz.figures.drawing.style import PALETTES
from calviz.report.blocks import MOST_ROWS, Chart, TableBlock
from calviz.report.document import Report
from calviz.results.metric_result import MetricResult
from calviz.results.metric_words import Written, name_of
from calviz.results.verdict import Verdict
from calviz.specs.metric import METRICS
from calviz.text.words import capitalised, full_sentence, keep_units_together


def to_html(report: Report) -> str:
    """Write a report as one page.

    plotly.js is embedded once. A content security policy allows exactly the two scripts of the page
    and forbids any network access; the templates escape every text that comes from a person or a file.

    Parameters
    ----------
    report : Report
    """
    scripts = [_plotly(), _script()] if report.charts else []
    return (
        _environment()
        .get_template("report.html")
        .render(
            report=report,
            several=len(report.parts) > 1,
            style=Markup(_text("style.css")),
            scripts=[Markup(script) for script in scripts],
            policy=policy(scripts),
            version=__version__,
        )
    )


def write_page(template: str, script: str, **values: Any) -> str:
    """Write a standalone page with plotly.js and one script, under the same policy as a report.

    Parameters
    ----------
    template, script : str
        Their file names.
    **values
        Values for the template.
    """
    scripts = [_plotly(), _text(script)]
    return (
        _environment()
        .get_template(template)
        .render(
            scripts=[Markup(text) for text in scripts],
            policy=policy(scripts),
            version=__version__,
            **values,
        )
    )


def policy(scripts: list[str]) -> str:
    """Return the content security policy: only these scripts, and nothing from elsewhere."""
    hashes = " ".join(f"'sha256-{_digest(script)}'" for script in scripts) or "'none'"
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


@cache
def _plotly() -> str:
    from plotly.offline import get_plotlyjs

    # Browsers normalise line breaks like this before they hash the script.
    return str(get_plotlyjs()).replace("\r\n", "\n").replace("\r", "\n")


@cache
def _script() -> str:
    return _text("charts.js")


def _text(name: str) -> str:
    source, _, _ = _loader().get_source(_environment(), name)
    return source


@cache
def _loader() -> PackageLoader:
    return PackageLoader("calviz.report")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=_loader(),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["card"] = _card
    environment.filters["together"] = _together
    environment.filters["mathml"] = _mathml
    environment.filters["spec"] = _spec
    environment.filters["bullets"] = _bullets
    environment.filters["sentence"] = full_sentence
    environment.filters["capitalize_first"] = capitalised
    environment.globals["most_rows"] = MOST_ROWS
    return environment


def _together(text: object) -> str:
    """Keep a number and its unit, and a p and its value, on one line."""
    return keep_units_together(str(text)).replace("p-value", "p\u2011value")


@cache
def _mathml(formula: str) -> Markup:
    """Convert one of our own formulas (never from a file) to MathML; lines may break between its parts, which browsers do not do by themselves."""
    parts = re.split(r",\\(?:quad|;) ?", formula)
    if any(part.count("{") != part.count("}") for part in parts):
        parts = [formula]
    return Markup(", ").join(_one_formula(part) for part in parts)


def _one_formula(formula: str) -> Markup:
    from latex2mathml.converter import convert

    text = convert(formula.replace(r"\arg\max", r"\mathrm{arg\,max}"))
    text = text.replace('<mn mathvariant="bold">1</mn>', "<mn>\N{MATHEMATICAL BOLD DIGIT ONE}</mn>")
    # A bar over several symbols: not every machine has a font with a stretchable bar.
    text = re.sub(
        r'<mover>(.*?)<mo stretchy="true">&#x02015;</mo></mover>',
        r'<mrow class="bar">\1</mrow>',
        text,
    )
    return Markup(text)


def _bullets(table: TableBlock) -> list[Markup]:
    """Drawings for the rows of a table; the rows also hold the numbers, for readers who cannot see drawings."""
    shown = table.bullets[:MOST_ROWS]
    scale = shared_scale(shown) if table.one_scale else None
    return [Markup("") if bullet is None else _inline(bullet, scale) for bullet in shown]


def _inline(bullet: Bullet, scale: Scale | None = None) -> Markup:
    """SVG inside the page, which needs no namespace and is styled by the page."""
    drawing = svg(bullet, PALETTES["light"], scale)
    for attribute in (' xmlns="http://www.w3.org/2000/svg"', ' vector-effect="non-scaling-stroke"'):
        drawing = drawing.replace(attribute, "")
    return Markup(drawing)


def _card(result: MetricResult, rows: int, verdict: Verdict | None = None) -> dict[str, str]:
    metric, written = METRICS[result.key], Written(result)
    if not result.available:
        return {
            "label": name_of(result),
            "value": "–",
            "unit": "",
            "interval": result.reason or "",
            "noise": "",
            "drawing": "",
        }
    return {
        "label": name_of(result),
        "value": written.value,
        "unit": written.unit_words,
        "interval": written.interval(result.interval) if rows > 1 else "n = 1: not meaningful",
        "noise": written.noise(tail=metric.tail, verdict=verdict) if rows > 1 else "",
        "drawing": _inline(Bullet.of(result)) if rows > 1 else "",
    }


def _spec(chart: Chart) -> Any:
    """Data of a chart for the page's script, as JSON that is safe inside its element."""
    caption = json.dumps(list(chart.caption), separators=(",", ":"))
    return as_element(f'{{"figure":{chart.drawing},"caption":{caption}}}')


def as_element(text: str) -> Markup:
    """Escape JSON so that it cannot close the element that holds it."""
    for sign, code in (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026")):
        text = text.replace(sign, code)
    return Markup(text)
