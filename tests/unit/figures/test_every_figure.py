"""What holds for every figure: themes, texts from files, sizes, whatever data come."""

import json
import re
from inspect import isabstract

import numpy as np
import plotly.io as pio
import pytest

import calviz
from calviz.core.entry_specs import FIGURES
from calviz.core.errors import NotAvailable
from calviz.figures.figure import Figure
from calviz.figures.style import PALETTES
from tests.inputs.figure_texts import texts

KEYS = FIGURES.keys()
HOSTILE = '<b>x</b><img src=x onerror=alert(1)><a href="http://e.vil">&amp;</a>$x$<br>'


def classes(n=120, k=3, seed=0, **own):
    rng = np.random.default_rng(seed)
    return calviz.Predictions(
        probs=rng.dirichlet(np.full(k, 0.5), n), labels=rng.integers(k, size=n), **own
    )


def binary(score, labels=None):
    score = np.asarray(score, dtype=float)
    return calviz.Predictions(
        probs=score, labels=np.zeros(score.size, int) if labels is None else labels
    )


DATA = {
    "three classes": classes(),
    "many classes": classes(300, 60),
    "one row": classes(1),
    "two rows": classes(2),
    "one class": calviz.Predictions(probs=classes(30).probs, labels=np.zeros(30, int)),
    "all scores equal": binary(np.full(50, 0.7), np.arange(50) % 2),
    "only zeros and ones": binary(np.repeat([0.0, 1.0], 20), np.arange(40) % 2),
    "all wrong": binary(np.ones(10)),
    "all right": binary(np.arange(10) % 2, np.arange(10) % 2),
    "float32": calviz.Predictions(
        probs=classes(80).probs.astype(np.float32), labels=classes(80).labels
    ),
    "logits of 1e4": calviz.Predictions(
        logits=1e4 * np.sign(classes(60).probs - 0.3), labels=classes(60).labels
    ),
    "probabilities of 1e-320": binary(np.repeat([1e-320, 1.0], 20), np.arange(40) % 2),
    "confidence only": calviz.ConfidencePredictions(
        confidence=np.linspace(0.3, 1, 70), correct=np.arange(70) % 3 > 0
    ),
}


def test_the_package_offers_every_figure():
    kinds = [Figure]
    for kind in kinds:
        kinds += kind.__subclasses__()
    figures = {
        k.__name__ for k in kinds if not isabstract(k) and k.__module__.startswith("calviz.")
    }
    assert len(figures) > 20
    assert set(dir(calviz.figures)) == figures | {"plot_config"}
    assert calviz.figures.Reliability.compute(classes(60)).plot().data
    assert calviz.figures.plot_config()
    names: dict[str, object] = {}
    exec("from calviz.figures import *", names)
    assert names.keys() - {"__builtins__"} == figures | {"plot_config"}
    with pytest.raises(AttributeError, match=r"no figure 'Spiral'; known: BinSensitivity, "):
        calviz.figures.Spiral  # noqa: B018


@pytest.mark.slow
@pytest.mark.parametrize("case", DATA)
@pytest.mark.parametrize("key", KEYS)
def test_whatever_data_come(key, case):
    if case == "confidence only" and key in ("class-bars", "confusion"):
        with pytest.raises(NotAvailable, match="true classes"):
            FIGURES[key].compute(DATA[case])
        return
    figure = FIGURES[key].compute(DATA[case])
    assert len(figure.frame()) > 0
    text = figure.describe()
    assert text.endswith(".")
    assert "nan" not in text
    for theme, width in (("light", None), ("dark", 350)):
        picture = figure.plot(theme=theme, caption=True, width=width)
        assert "NaN" not in json.dumps(list(texts(json.loads(picture.to_json()))))


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("key", KEYS)
def test_the_default_template_changes_nothing(key, theme):
    figure = FIGURES[key].compute(classes())
    before = figure.plot(theme=theme, caption=True).to_json()
    old = pio.templates.default
    try:
        pio.templates.default = "plotly_dark"
        assert figure.plot(theme=theme, caption=True).to_json() == before
    finally:
        pio.templates.default = old
    layout = json.loads(before)["layout"]
    assert layout["paper_bgcolor"] == PALETTES[theme].paper
    other = PALETTES["dark" if theme == "light" else "light"]
    assert other.ink not in before


@pytest.mark.parametrize("key", KEYS)
def test_texts_from_files_are_text(key):
    data = classes(
        class_names=(HOSTILE, "b" * 5_000, "c\u202e\n"), splits=np.full(120, HOSTILE), name=HOSTILE
    )
    figure = FIGURES[key].compute(data, split=HOSTILE)
    picture = json.loads(figure.plot(caption=True).to_json())
    values = [t for t in texts(picture) if len(t) < 2_000]
    tags = {tag for text in values for tag in re.findall(r"<[^>]*>?", text)}
    own = {"<b>", "</b>", "<br>", "</span>", "<extra>", "</extra>"}
    assert {t for t in tags if not t.startswith('<span style="color:#')} <= own
    assert not any("$" in text or "\u202e" in text for text in values)
    assert len(figure.describe()) < 1_500


@pytest.mark.parametrize("key", KEYS)
def test_the_caption_is_there_when_it_is_asked_for(key):
    figure = FIGURES[key].compute(classes(name="my model"))
    assert "my model" not in figure.plot().to_json()
    assert "my model" in figure.plot(caption=True).to_json()
    assert "own words" in figure.plot(caption="own words").to_json()
    with_caption, without = (figure.plot(caption=c).layout.height for c in (True, False))
    assert with_caption > without


@pytest.mark.slow
@pytest.mark.parametrize("key", KEYS)
def test_same_seed_same_figure(key):
    seeded = any(p.name == "seed" for p in FIGURES[key].parameters)
    options = {"seed": 3} if seeded else {}
    one, two = (FIGURES[key].compute(classes(), **options).frame() for _ in range(2))
    assert one.equals(two)
