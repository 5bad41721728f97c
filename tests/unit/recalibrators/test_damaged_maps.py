"""Saved maps of which one value was changed: refused with one sentence, or applied exactly as they say."""

import contextlib
import copy
import json
import math

import numpy as np
import pytest

from calviz.core.entry_specs import RECALIBRATORS
from calviz.core.errors import CalvizError, NotAvailable
from calviz.recalibrators.base import load_map
from tests.inputs.simulated import simulate, softmax

pytestmark = pytest.mark.usefixtures("few_candidates")

KEYS = (*RECALIBRATORS.keys(), "vector+spline-classwise")
NUMBERS = ("text", "1.5", None, True, math.nan, math.inf, -math.inf, 10**400)


def saved(key, k=3, n=60):
    z, y = simulate(n, k, temperature=2.0, seed=4)
    record = RECALIBRATORS[key].make().fit(softmax(z), y).to_dict()
    return json.loads(json.dumps(record | {"class_names": [f"c{j}" for j in range(k)]}))


def places(value, path=()):
    """Yield the path of every value in a record; of long lists, those of the first and the last item."""
    yield path
    if isinstance(value, dict):
        for name in value:
            yield from places(value[name], (*path, name))
    elif isinstance(value, list):
        for at in sorted({0, len(value) - 1}) if value else ():
            yield from places(value[at], (*path, at))


def changes(value):
    """Yield what might stand in the place of a value."""
    if isinstance(value, dict):
        yield from ({}, [], None, 3, {**value, "extra": 1})
        yield from ({k: v for k, v in value.items() if k != name} for name in value)
    elif isinstance(value, list):
        yield from ([], {}, None, 3, "text", value[:-1], value + value[-1:], value[::-1], [value])
    elif isinstance(value, bool):
        yield from (None, "true", 3, [])
    elif isinstance(value, int | float):
        yield from (*NUMBERS, -value, [value], [], {})
    else:
        yield from (None, 3, "", "nonsense", [], {})


def changed(record, path, value):
    if not path:
        return value
    record = copy.deepcopy(record)
    inner = record
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return record


def at(record, path):
    for name in path:
        record = record[name]
    return record


def outcome(record):
    """The loaded map and no sentence, or no map and the sentence."""
    try:
        return load_map(record), ""
    except CalvizError as error:
        return None, str(error)


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("key", KEYS)
def test_a_changed_map_is_refused_or_is_what_it_says(key, k):
    record = saved(key, k)
    z, _ = simulate(8, k, seed=5)
    p = np.concatenate([softmax(z), np.eye(k)])
    before = load_map(record).transform(p)
    refused = 0
    for path in places(record):
        for value in changes(at(record, path)):
            wrong = changed(record, path, value)
            loaded, sentence = outcome(wrong)
            if loaded is None:
                refused += 1
                assert sentence.endswith("."), (path, value)
                assert "Error" not in sentence, (path, value)
                continue
            after = loaded.transform(p)
            if not np.array_equal(after, before):
                says = loaded.to_dict()
                assert {name: wrong[name] for name in says} == says, (path, value)
                assert np.isfinite(after).all(), (path, value)
                assert after.min() >= 0, (path, value)
                assert after.sum(axis=1) == pytest.approx(1), (path, value)
            json.dumps(loaded.describe())
            with contextlib.suppress(NotAvailable):
                assert np.isfinite(loaded.intervals(p)).all(), (path, value)
    assert refused > 50


def test_an_unchanged_map_passes():
    for key in ("temperature", "venn-abers", "dirichlet-odir", "gp"):
        assert load_map(saved(key)).classes_.size == 3
