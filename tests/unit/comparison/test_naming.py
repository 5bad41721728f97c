"""Names of the models of several files."""

import pytest

from calviz.core.predictions import Predictions
from calviz.data.joining import named_models

P = Predictions(probs=[[0.5, 0.5]], labels=[0], name="p")


@pytest.mark.parametrize(
    ("files", "names"),
    [
        ([("a.csv", {"a": P})], ["a"]),
        ([("a.csv", {"mlp": P, "forest": P})], ["mlp", "forest"]),
        ([("a.csv", {"a": P}), ("b.v2.npz", {"b": P})], ["a", "b.v2"]),
        ([("a.csv", {"mlp": P, "cnn": P}), ("b.csv", {"b": P})], ["a: mlp", "a: cnn", "b"]),
        ([("a.csv", {"a": P}), ("a.npz", {"a": P})], ["a", "a (2)"]),
        ([("a.csv", {"a": P})] * 3, ["a", "a (2)", "a (3)"]),
    ],
)
def test_names(files, names):
    models = named_models(files)
    assert list(models) == names
    assert [m.name for m in models.values()] == names
