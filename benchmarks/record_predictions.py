"""Make the files in tests/inputs/predictions with AutoGluon and Hugging Face, and record the metrics that the tools report.

    python benchmarks/record_predictions.py

Makes the files of installed packages: ``pip install autogluon.tabular``; ``pip install transformers torch accelerate``. Nothing is
downloaded: AutoGluon fits linear models to scikit-learn's iris, the transformer is a small one with random weights.
"""

from __future__ import annotations

import json
import tempfile
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

TARGET = Path(__file__).parents[1] / "tests" / "inputs" / "predictions"
WORDS = ("the", "a", "movie", "was", "good", "bad", "fine", "great", "poor", "plot", "actor")
CLASSES = ("negative", "neutral", "positive")
ROWS = 40


def autogluon(folder: Path) -> dict[str, Any]:
    """Write ``predict_proba`` beside the labels, by pandas; returns the result of ``evaluate``."""
    import pandas as pd
    from autogluon.tabular import TabularPredictor
    from sklearn.datasets import load_iris

    iris = load_iris(as_frame=True)
    frame = iris.data.copy()
    frame["species"] = iris.target_names[iris.target]
    frame = frame.iloc[np.random.default_rng(0).permutation(len(frame))]
    fitted, rest = frame.iloc[:90], frame.iloc[90 : 90 + ROWS]
    predictor = TabularPredictor(
        label="species", path=str(folder), eval_metric="log_loss", verbosity=0
    )
    predictor.fit(fitted, hyperparameters={"LR": {}})
    scores = predictor.predict_proba(rest)
    both = pd.concat([rest["species"], scores], axis=1)
    both.to_csv(TARGET / "autogluon.csv")
    both.to_parquet(TARGET / "autogluon.parquet")
    metrics = predictor.evaluate(rest, auxiliary_metrics=True)
    return {"nll": -float(metrics["log_loss"]), "accuracy": float(metrics["accuracy"])}


def hugging_face(folder: Path) -> dict[str, Any]:
    """Write a pipeline's lists of scores, its top choice, and the output of ``Trainer.predict``; returns its loss."""
    import torch
    from transformers import (
        BertConfig,
        BertForSequenceClassification,
        BertTokenizerFast,
        Trainer,
        TrainingArguments,
        pipeline,
    )

    vocabulary = folder / "vocab.txt"
    vocabulary.write_text("\n".join(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]))
    tokens = BertTokenizerFast(str(vocabulary))
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=16,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        id2label=dict(enumerate(CLASSES)),
        label2id={name: j for j, name in enumerate(CLASSES)},
    )
    model = BertForSequenceClassification(config).eval()
    with torch.no_grad():
        model.classifier.weight *= 60
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(WORDS, 5)) for _ in range(ROWS)]
    labels = rng.integers(len(CLASSES), size=ROWS)

    def run_pipeline(**options: Any) -> Any:
        classify: Any = pipeline(
            "text-classification", model=model, tokenizer=tokens, device="cpu", **options
        )
        return classify(texts)

    all_scores, top = run_pipeline(top_k=None), run_pipeline()
    named = [CLASSES[label] for label in labels]
    (TARGET / "hugging_face_all.jsonl").write_text(
        "".join(
            json.dumps({"label": name, "scores": scores}) + "\n"
            for name, scores in zip(named, all_scores, strict=True)
        )
    )
    (TARGET / "hugging_face_top.jsonl").write_text(
        "".join(
            json.dumps({**choice, "target": name}) + "\n"
            for name, choice in zip(named, top, strict=True)
        )
    )

    class Rows(torch.utils.data.Dataset[Any]):
        def __len__(self) -> int:
            return ROWS

        def __getitem__(self, at: int) -> Any:
            return {
                **tokens(texts[at], padding="max_length", max_length=8),
                "labels": int(labels[at]),
            }

    trainer = Trainer(model, TrainingArguments(str(folder / "runs"), report_to=[], use_cpu=True))
    prediction = trainer.predict(Rows())
    np.savez(
        TARGET / "hugging_face_trainer.npz",
        predictions=prediction.predictions,
        label_ids=prediction.label_ids,
    )
    accuracy = float(
        np.mean([choice["label"] == name for choice, name in zip(top, named, strict=True)])
    )
    return {"nll": float(prediction.metrics["test_loss"]), "accuracy": accuracy}


def main() -> None:
    """Make the files of installed packages, and keep the rest of the record."""
    TARGET.mkdir(exist_ok=True)
    file = TARGET / "recorded.json"
    record = json.loads(file.read_text()) if file.is_file() else {}
    for name, package, make in (
        ("autogluon", "autogluon.tabular", autogluon),
        ("hugging_face", "transformers", hugging_face),
    ):
        try:
            versions = {package: version(package)}
        except PackageNotFoundError:
            print(f"{package} is not installed: {name} stays as it is")
            continue
        with tempfile.TemporaryDirectory() as folder:
            record[name] = {"versions": versions} | make(Path(folder))
    file.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
