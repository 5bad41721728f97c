"""Predictions that tools wrote (`benchmarks/record_predictions.py`), against what the tools themselves say of them."""

import json
from pathlib import Path

import pandas as pd
import pytest

import calviz
from calviz.data import read

FILES = Path(__file__).parents[2] / "inputs/predictions"
RECORDED = json.loads((FILES / "recorded.json").read_text())


@pytest.mark.parametrize(
    ("file", "tool", "measured"),
    [
        ("autogluon.csv", "autogluon", ("accuracy", "nll")),
        ("autogluon.parquet", "autogluon", ("accuracy", "nll")),
        ("hugging_face_all.jsonl", "hugging_face", ("accuracy", "nll")),
        ("hugging_face_trainer.npz", "hugging_face", ("accuracy", "nll")),
        ("hugging_face_top.jsonl", "hugging_face", ("accuracy",)),
    ],
)
def test_files_of_tools_are_read_without_an_option(file, tool, measured):
    data = read(FILES / file).first
    evaluation = calviz.evaluate(data, measured)
    for key in measured:
        # The pipeline computes in float32.
        assert evaluation[key].value == pytest.approx(RECORDED[tool][key], rel=1e-5)


def test_a_frame_of_class_columns_beside_the_labels():
    frame = pd.read_parquet(FILES / "autogluon.parquet")
    scores = frame.drop(columns="species")
    for data in (
        calviz.Predictions.from_arrays(frame["species"], scores),
        calviz.Predictions.from_frame(frame, label="species"),
    ):
        value = calviz.evaluate(data, ["nll"])["nll"].value
        assert value == pytest.approx(RECORDED["autogluon"]["nll"], rel=1e-5)


def test_the_top_choice_of_a_pipeline_is_said_to_be_one():
    loaded = read(FILES / "hugging_face_top.jsonl")
    assert loaded.recognition.kind == "confidence"
    assert any("'target' as the true class" in n.message for n in loaded.notices)
    trained = read(FILES / "hugging_face_trainer.npz")
    assert trained.recognition.kind == "logits"
