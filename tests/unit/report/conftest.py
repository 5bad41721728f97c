"""Predictions for reports: small, and as hostile as a file can be."""

from __future__ import annotations

import numpy as np
import pytest

import calviz
from calviz.core.events import Reduction
from calviz.data import ReadingOptions
from calviz.report.content import Origin, Subject
from calviz.report.document import Report, compose
from calviz.sample.sample import Sample

HTML = "<img src=x onerror=alert(1)>"
FORMULA = "=cmd|' /C calc'!A0"
TURNED = "\u202eאבג"


def predictions(n: int, names: tuple[str, ...], seed: int = 0) -> calviz.Predictions:
    rng = np.random.default_rng(seed)
    probs = rng.dirichlet([0.7] * len(names), size=n)
    labels = np.array([rng.choice(len(names), p=row) for row in probs])
    return calviz.Predictions(probs=probs, labels=labels, class_names=names, name=HTML)


@pytest.fixture(scope="session")
def subject() -> Subject:
    origin = Origin(
        file=f"{HTML}.csv",
        size=12_345,
        digest="ab" * 32,
        rows=300,
        recognised=f"CSV: classes {HTML}, {FORMULA}",
        options=ReadingOptions(label=HTML, repair=("renormalise",)),
        repairs=("divided every row by its sum",),
    )
    sample = Sample(
        predictions(240, (HTML, FORMULA, TURNED)),
        Reduction("class", class_name=HTML),
        split="test",
        where=(("</script>", "a$b"),),
        bins=10,
        seed=3,
        resamples=150,
    )
    return Subject(sample, title=HTML, origin=origin)


@pytest.fixture(scope="session")
def report(subject: Subject) -> Report:
    return compose(
        subject,
        author="</title><script>alert(2)</script>",
        notes=f"First & {HTML}\n\n=second [link](http://example.org)",
        date="",
    )
