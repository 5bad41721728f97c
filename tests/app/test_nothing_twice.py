"""One sample is measured once: by the terminal and its report, and by page after page."""

from collections import Counter
from functools import partial

import numpy as np
import pytest

import calviz
from calviz.core.entry_specs import METRICS
from calviz.metrics import other_libraries as _measure
from calviz.sample.cross_fitted import CrossFitted
from calviz.sample.sample import Sample
from calviz.verdicts import analysis
from tests.app.pages import open_page, quiet
from tests.app.test_report import _finished
from tests.inputs.command_line import run
from tests.inputs.simulated import draw_labels

# The quick lane opens every page once (test_every_page.py); what these tests click takes long.
# What is counted here is what users have.
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("usual_resamples")]


class Measured:
    """Counts metrics of views, draws of views, and verdicts."""

    def __init__(self):
        self.values, self.draws, self.verdicts = Counter(), Counter(), Counter()
        self.views = []  # kept alive, so that no two have the same id
        self.origins = {}
        self.inside = 0

    def what(self, view):
        """What a view is of, if it is a sample's own: the same for samples that are made anew of the same rows."""
        return self.origins.get(id(view), id(view))

    def twice(self):
        """What was computed more than once."""
        counts = (self.values, self.draws, self.verdicts)
        return [(what, n) for count in counts for what, n in count.items() if n > 1]


@pytest.fixture
def measured(monkeypatch):
    """All metrics, the views that they are functions of, and the verdict, watched."""
    result = Measured()
    watched = set()

    def value_of(metric):
        def value(view, plain=metric.value):
            result.views.append(view)
            result.values[metric.key, result.what(view)] += 1
            return plain(view)

        return value

    def watch(kind):
        for how in ("bootstrap", "under_calibration"):
            plain = getattr(kind, how)

            def draw(self, rng, resamples, plain=plain, how=how):
                # A view may draw by means of another one, which then keeps what it drew.
                if not result.inside:
                    state = repr(rng.bit_generator.state)
                    result.draws[result.what(self), how, resamples, state] += 1
                result.inside += 1
                try:
                    return plain(self, rng, resamples)
                finally:
                    result.inside -= 1

            monkeypatch.setattr(kind, how, draw)

    def view(self, make, plain=Sample.view, **params):
        computed = plain(self, make, **params)
        kind = type(computed)
        # What cross-fitted parts draw is kept as the numbers that were drawn (`kept_draw`); calling them again draws nothing.
        if kind not in watched and hasattr(kind, "bootstrap") and kind is not CrossFitted:
            watched.add(kind)
            watch(kind)
        result.views += [computed, self]
        while isinstance(make, partial):
            params, make = {**make.keywords, **params}, make.func
        origin = (id(self.data), self.reduction, make, tuple(sorted(params.items())))
        result.origins.setdefault(id(computed), origin)
        return computed

    def verdict(sample, plain=analysis.judged):
        result.verdicts[id(sample.data), sample.reduction, sample.bins, sample.scheme] += 1
        result.views.append(sample)
        return plain(sample)

    monkeypatch.setattr(Sample, "view", view)
    monkeypatch.setattr(analysis, "judged", verdict)
    before = {m.key: m.value for m in METRICS}
    for m in METRICS:
        object.__setattr__(m, "value", value_of(m))
    yield result
    for m in METRICS:
        object.__setattr__(m, "value", before[m.key])


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """A file of three classes that is slightly off."""
    rng = np.random.default_rng(11)
    probs = rng.dirichlet([1.0, 1.0, 1.0], 400)
    right = rng.random(400) < 0.9
    labels = np.where(right, draw_labels(probs, rng), rng.integers(0, 3, 400))
    file = tmp_path_factory.mktemp("three") / "three.csv"
    rows = (f"{y},{','.join(f'{v:.4f}' for v in p)}" for p, y in zip(probs, labels, strict=True))
    file.write_text("\n".join(["label,p_0,p_1,p_2", *rows]))
    return file


@pytest.mark.parametrize("options", [(), ("--ci", "--bins", "7", "--conventions")])
def test_an_audit_with_its_report_measures_once(measured, three, tmp_path, options):
    html = tmp_path / "report.html"
    done = run("audit", three, "--html", html, *options)
    assert done.exit_code == 0, done.output
    assert html.stat().st_size > 100_000
    assert {key for key, _ in measured.values} == {m.key for m in METRICS}
    assert len(measured.draws) > 10
    assert len(measured.verdicts) == 1
    assert measured.twice() == []


@pytest.fixture(scope="module")
def two_models(tmp_path_factory):
    """A file with the scores of two models for the same rows."""
    rng = np.random.default_rng(12)
    score = rng.random(300)
    labels = (rng.random(300) < score).astype(int)
    file = tmp_path_factory.mktemp("two") / "two.csv"
    models = [score, score**2]
    rows = (
        ",".join([f"{y}", *(f"{1 - a[i]},{a[i]}" for a in models)]) for i, y in enumerate(labels)
    )
    file.write_text("\n".join(["label,mlp:0,mlp:1,forest:0,forest:1", *rows]))
    return file


@pytest.mark.parametrize(
    "command",
    [
        ("audit",),
        ("audit", "--preset", "full"),
        ("audit", "--preset", "full", "--ci"),
        ("compare-models",),
    ],
)
def test_a_report_on_several_models_measures_each_once(measured, two_models, tmp_path, command):
    html = tmp_path / "report.html"
    done = run(command[0], two_models, "--html", html, *command[1:])
    assert done.exit_code == 0, done.output
    # The comparison stands once, after the parts of the models.
    text = html.read_text()
    assert text.count(">Models side by side<") == text.count(">Data and provenance<") // 2
    assert text.rindex(">Models side by side<") > text.rindex(">Data and provenance<")
    # The paired resamples of both models, whose views are no sample's own, are measured as well.
    of_samples = [what for key, what in measured.values if key == "ece" and isinstance(what, tuple)]
    # Each model as it is, and after the one map that the report says the gain of.
    assert len(of_samples) == (4 if command[0] == "audit" else 2)
    assert len(measured.verdicts) == 2
    assert measured.twice() == []


@pytest.mark.parametrize("options", [(), ("--ci",)])
def test_an_audit_with_its_report_asks_other_libraries_once(monkeypatch, three, tmp_path, options):
    calls = Counter()

    def values(sample, plain=_measure._values):
        calls[id(sample.data)] += 1
        kept.append(sample)
        return plain(sample)

    kept = []  # alive, so that no two have the same id
    monkeypatch.setattr(_measure, "_values", values)
    html = str(tmp_path / "report.html")
    done = run("audit", three, "--html", html, "--preset", "full", "--conventions", *options)
    assert done.exit_code == 0, done.output
    # Means under calibration are shown with --ci only, in the terminal.
    assert ("if calibrated" in done.output) == bool(options)
    assert len(calls) == 1 + _measure.REDRAWS
    assert set(calls.values()) == {1}


def test_pages_and_the_report_of_the_same_settings_measure_once(measured):
    app = quiet(open_page("data=breast_cancer"))
    for page in ("metrics", "reliability", "report"):
        quiet(app.open(page))
    app.button(key="calviz.report.make").click().run()
    _finished(app)
    # Those of all classes say that two have none.
    keys = {m.key for m in METRICS if not m.key.endswith("_all")}
    assert {key for key, _ in measured.values} == keys
    assert len(measured.verdicts) == 1
    assert measured.twice() == []


def test_a_sample_keeps_its_results(measured):
    rng = np.random.default_rng(3)
    score = rng.random(300)
    sample = Sample(calviz.Predictions(probs=score, labels=(rng.random(300) < score).astype(int)))
    values = calviz.evaluate(sample, ["ece", "nll"], findings=True)
    calviz.verdict(sample)
    bars = calviz.evaluate(sample, ["nll", "ece"], ci=True)
    again = calviz.evaluate(sample, ["ece", "nll"], ci=True)
    assert bars["ece"].value == values["ece"].value
    assert bars["ece"] == again["ece"]
    assert bars["ece"].interval is not None
    assert len(measured.verdicts) == 1
    assert measured.twice() == []
    # Other bins are another verdict; what has no bins is not measured again.
    measured.values.clear()
    calviz.evaluate(sample, ["ece", "nll"], bins=10, findings=True)
    assert {key for key, _ in measured.values} == {"ece"}
    assert len(measured.verdicts) == 2
