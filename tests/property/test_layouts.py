"""Exports in the layouts of other tools: read right, or a question with an answer that is right."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from calviz.core.errors import CalvizError, InputError
from calviz.core.predictions import ConfidencePredictions, Predictions
from calviz.data import Loaded, ReadingOptions, read
from tests.inputs.layouts import CASES, Layout

#: Files that are refused without a question: no header or value says what they hold.
REFUSED = {"vertex_arrays_rev"}


def opened(layout: Layout, options: ReadingOptions) -> Loaded:
    return read(layout.content, name=f"x{layout.suffix}", options=options)


def fault(found: Loaded, layout: Layout) -> str:
    """What is wrong with how a file was read; empty if nothing is."""
    data = found.first
    if layout.confidence is not None:
        if not isinstance(data, ConfidencePredictions):
            return "no confidence"
        same = np.allclose(data.confidence, layout.confidence[0], atol=1e-3)
        return "" if same and (data.correct == layout.confidence[1]).all() else "confidence"
    if not isinstance(data, Predictions):
        return "a confidence"
    if layout.models is not None:
        scores = [model.probs[:, 1] for model in found.models.values()]
        same = len(scores) == len(layout.models) and all(
            np.allclose(one, two, atol=1e-4)
            for one, two in zip(scores, layout.models.values(), strict=True)
        )
        return "" if same and (data.labels == layout.y).all() else "models"
    if len(found.models) > 1 or data.probs.shape != layout.p.shape:
        return "shape"
    fits = [
        [i for i in range(layout.p.shape[1]) if np.allclose(column, layout.p[:, i], atol=2e-3)]
        for column in data.probs.T
    ]
    if any(len(fit) != 1 for fit in fits):
        return "scores"
    order = np.array([fit[0] for fit in fits])
    if not (order[data.labels] == layout.y).all():
        return "labels"
    return "" if layout.event in (None, order[1]) else "the event is not the positive class"


def answers(
    layout: Layout, error: InputError, options: ReadingOptions, depth: int = 2
) -> Iterator[Loaded]:
    for reading in error.readings:
        chosen = replace(options, **reading.options)
        try:
            yield opened(layout, chosen)
        except InputError as further:
            if depth > 1:
                yield from answers(layout, further, chosen, depth - 1)
        except CalvizError:
            pass


@pytest.mark.parametrize("layout", CASES, ids=[f"{j}-{c.name.split('[')[0]}" for j, c in enumerate(CASES)])  # fmt: skip
def test_an_export_is_read_right_or_asked_about(layout: Layout) -> None:
    options = ReadingOptions()
    found: Loaded | InputError
    try:
        found = opened(layout, options)
    except InputError as error:
        found = error
    if not isinstance(found, InputError):
        assert (layout.asks, fault(found, layout)) == (False, "")
        return
    assert found.readings or layout.name in REFUSED
    if found.readings and not layout.asks:
        assert "" in [fault(answer, layout) for answer in answers(layout, found, options)]


def test_most_exports_are_read_without_a_question() -> None:
    asked = 0
    for layout in CASES:
        try:
            opened(layout, ReadingOptions())
        except InputError:
            asked += layout.models is None
    assert asked < 0.1 * len(CASES)
