"""What every metric declares."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest

from calviz.core.entry_specs import FAMILIES, METRICS, MetricRegistry, is_of_steps
from calviz.core.errors import NotAvailable
from calviz.core.predictions import Predictions
from calviz.sample.sample import Sample, metric_view
from calviz.sample.steps import Steps

ALL = pytest.mark.parametrize("metric", list(METRICS), ids=lambda m: m.key)


@ALL
def test_declares_what_the_app_shows(metric):
    assert metric.family in FAMILIES
    assert metric.label
    assert metric.reference
    assert metric.summary.endswith(".")
    assert "\n" not in metric.summary
    low, high = metric.bounds
    assert low < high
    assert metric.direction != "zero" or low == -high
    assert metric.direction != "higher" or math.isfinite(high)


@ALL
def test_formula_is_balanced_latex(metric):
    formula = metric.formula
    assert formula.count("{") == formula.count("}")
    assert len(re.findall(r"\\left", formula)) == len(re.findall(r"\\right", formula))
    # Only commands that KaTeX has.
    known = {"frac", "sum", "mathbf", "mathrm", "hat", "neq", "log", "left", "right", "sqrt"}
    known |= {"overline", "max", "min", "int", "hat", "cdot", "lvert", "rvert", "text", "bar"}
    known |= {"pi", "sigma", "epsilon", "tilde", "dots", "forall", "le", "ge", "ne", "arg", "top"}
    known |= {"ln", "Big", "tfrac", "quad", "ell"}
    assert set(re.findall(r"\\([a-zA-Z]+)", formula)) <= known
    assert formula.isascii()


@ALL
def test_a_view_names_the_fields_that_differ_between_resamples(metric):
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(2), 80)
    sample = Sample(Predictions(probs=probs, labels=rng.integers(0, 2, 80)))
    try:
        view = metric_view(sample, metric)
        drawn = view.bootstrap(rng, 20)
    except NotAvailable as reason:
        pytest.skip(str(reason))
    assert view.DRAWN
    for name in view.DRAWN:
        one, several = getattr(view, name), getattr(drawn, name)
        assert not isinstance(one, np.ndarray) or np.ndim(several) == np.ndim(one) + 1


@ALL
def test_a_metric_that_leaves_steps_in_memory_says_so(metric):
    # Such metrics are evaluated last (`calviz.sample.metric_results`).
    probs = np.random.default_rng(0).dirichlet(np.ones(3), 80)
    sample = Sample(Predictions(probs=probs, labels=np.arange(80) % 3))
    metric.value(metric_view(sample, metric))
    left = any(isinstance(value, Steps) for value in sample.cache.values())
    assert left == is_of_steps(metric.view)


def test_families_come_in_their_order():
    families = [m.family for m in METRICS]
    assert families == sorted(families, key=FAMILIES.index)


def of_a_plugin(view):
    return view.mean_gap


def test_a_metric_of_a_plugin_comes_last_in_its_family():
    registry = MetricRegistry("metric")
    ece = METRICS["ece"]
    for metric in (
        replace(ece, key="of_a_plugin", value=of_a_plugin),
        METRICS["mcs"],
        ece,
        METRICS["ece_sweep"],
    ):
        registry.register(metric)
    assert registry.keys() == ("ece", "ece_sweep", "of_a_plugin", "mcs")


def test_an_unknown_family_comes_last():
    registry = MetricRegistry("metric")
    ece = METRICS["ece"]
    registry.register(replace(ece, key="strange", family="Strange"))
    registry.register(ece)
    assert registry.keys() == ("ece", "strange")
