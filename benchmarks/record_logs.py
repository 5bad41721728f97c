"""Make the logs in tests/inputs/logs with lm-evaluation-harness and Inspect, and record the accuracies that the harness reports.

    python benchmarks/record_logs.py [eval | examples]

With "eval", only the logs of Inspect in its own form are made again: `.eval`, compressed by deflate and by zstd, and the JSON that
Inspect makes of it. With "examples", only those of `examples/language_models.ipynb`, in `examples/logs`.

Needs ``pip install lm-eval inspect-ai``; no model and no network: the harness has a model that answers at random ("dummy"), Inspect one
with given answers ("mockllm").
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Any

TARGET = Path(__file__).parents[1] / "tests" / "inputs" / "logs"
TASK = """task: {name}_choices
dataset_path: json
dataset_kwargs:
  data_files:
    test: {file}
test_split: test
output_type: multiple_choice
doc_to_text: "Question: {{{{question}}}} Answer:"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: "{{{{answer}}}}"
metric_list:
  - metric: acc
  - metric: acc_norm
"""


def documents() -> dict[str, list[dict[str, Any]]]:
    """Questions with four choices, numbers among them, and with two."""
    four = [
        {
            "question": f"What is {i}+{i}?",
            "choices": [str(2 * i), str(2 * i + 1), str(2 * i + 2), "none of these"],
            "answer": 0,
            "subject": "arithmetic" if i % 2 else "sums",
        }
        for i in range(30)
    ]
    two = [
        {"question": f"Is {i} even?", "choices": ["yes", "no"], "answer": i % 2} for i in range(20)
    ]
    return {"four": four, "two": two}


def harness(folder: Path) -> dict[str, Any]:
    """Run the tasks and keep the samples; returns the accuracies that the harness reports."""
    for name, docs in documents().items():
        file = folder / f"{name}.jsonl"
        file.write_text("".join(json.dumps(doc) + "\n" for doc in docs))
        (folder / f"{name}.yaml").write_text(TASK.format(name=name, file=file))
    tasks = ",".join(f"{name}_choices" for name in documents())
    command = f"-m lm_eval --model dummy --tasks {tasks} --include_path {folder} --log_samples --output_path {folder / 'out'}"
    offline = os.environ | {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    subprocess.run([sys.executable, *command.split()], env=offline, check=True)
    for log in (folder / "out").rglob("samples_*.jsonl"):
        (TARGET / log.name).write_text(log.read_text())
    (results,) = (folder / "out").rglob("results_*.json")
    recorded = json.loads(results.read_text())["results"]
    return {
        task: {key: recorded[task][f"{key},none"] for key in ("acc", "acc_norm")}
        for task in recorded
    }


def inspect(folder: Path) -> None:
    """Write two logs of six samples: the log-probabilities of the letters, and a stated confidence; without the transcript of events."""
    from inspect_ai import Task, eval
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import (
        ChatCompletionChoice,
        ChatMessageAssistant,
        Logprob,
        Logprobs,
        ModelOutput,
        ModelUsage,
        TopLogprob,
        get_model,
    )
    from inspect_ai.scorer import Score, accuracy, choice, scorer
    from inspect_ai.solver import multiple_choice

    def model_output(letter: str, probs: dict[str, float]) -> ModelOutput:
        tops = [TopLogprob(token=t, logprob=math.log(p), bytes=None) for t, p in probs.items()]
        token = Logprob(token=letter, logprob=math.log(probs[letter]), top_logprobs=tops)
        message = ChatMessageAssistant(content=f"ANSWER: {letter}", source="generate")
        first = ChatCompletionChoice(
            message=message, stop_reason="stop", logprobs=Logprobs(content=[token])
        )
        usage = ModelUsage(input_tokens=5, output_tokens=2, total_tokens=7)
        return ModelOutput(usage=usage, model="mockllm/model", choices=[first])

    @scorer(metrics=[accuracy()])
    def stated() -> Any:
        async def score(state: Any, target: Any) -> Score:
            answer = state.output.completion[-1]
            right = "C" if answer == target.text else "I"
            return Score(value=right, answer=answer, metadata={"confidence": 70})

        return score

    outputs = [
        model_output("A", {"A": 0.7, "B": 0.2, "C": 0.06}),
        model_output("B", {"A": 0.3, "B": 0.5, "C": 0.1}),
        model_output("C", {"A": 0.1, "B": 0.1, "C": 0.7}),
    ] * 2
    samples = [
        Sample(
            input=f"q{i}",
            choices=["one", "two", "three"],
            target="ABC"[(i * 2) % 3],
            id=i + 1,
            metadata={"subject": "math" if i % 2 else "law"},
        )
        for i in range(6)
    ]
    for name, judge in (("letters", choice()), ("stated", stated())):
        task = Task(
            dataset=MemoryDataset(samples, name="demo"),
            solver=[multiple_choice()],
            scorer=judge,
            name=name,
        )
        model = get_model("mockllm/model", custom_outputs=outputs)
        (log,) = eval(task, model=model, log_dir=str(folder), log_format="json", display="none")
        record = json.loads(Path(log.location).read_text())
        record["eval"] = {
            k: v for k, v in record["eval"].items() if k in ("task", "model", "created", "dataset")
        }
        for sample in record["samples"]:
            for key in ("events", "attachments", "events_data", "store"):
                sample.pop(key, None)
        kept_parts = {k: record[k] for k in ("version", "status", "eval", "results", "samples")}
        (TARGET / f"inspect_{name}.json").write_text(json.dumps(kept_parts, indent=1) + "\n")


#: What the model says to four questions, in two epochs; the last text states no confidence.
SAYS = [
    "Paris. Confidence: 95%", "Rome, I am 0.6 sure", "**Confidence:** 30%\nOslo", "Bern. Confidence: 80/100",
    "Paris. Confidence: 90%", "Milan. Confidence: 55%", "Bergen, I am 40% sure", "Zurich, I think",
]  # fmt: skip


def own_form(folder: Path) -> None:
    """Write a log in which the answers state their confidence, as `.eval` by deflate and by zstd, and converted to JSON."""
    import zipfile

    from inspect_ai import Task, eval
    from inspect_ai._util.zipfile import zipfile_compress_kwargs
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.log import read_eval_log, write_eval_log
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import includes

    capitals = {"France": "Paris", "Italy": "Rome", "Norway": "Oslo", "Switzerland": "Bern"}
    zstd = zipfile_compress_kwargs["compression"]
    for name, method in (("deflate", zipfile.ZIP_DEFLATED), ("zstd", zstd)):
        zipfile_compress_kwargs["compression"] = method
        samples = [
            Sample(input=f"The capital of {land}?", target=city, id=j + 9, metadata={"land": land})
            for j, (land, city) in enumerate(capitals.items())
        ]
        outputs = [ModelOutput.from_content("mockllm/model", text) for text in SAYS]
        for output in outputs:  # counting tokens would need a download
            output.usage = ModelUsage(input_tokens=5, output_tokens=2, total_tokens=7)
        (log,) = eval(
            Task(dataset=MemoryDataset(samples, name="capitals"), scorer=includes(), name="capitals", epochs=2),
            model=get_model("mockllm/model", custom_outputs=outputs),
            log_dir=str(folder / name), log_format="eval", display="none", max_samples=1,
        )  # fmt: skip
        target = TARGET / f"inspect_said_{name}.eval"
        target.write_bytes(Path(log.location).read_bytes())
        write_eval_log(read_eval_log(str(target)), str(folder / f"{name}.json"), format="json")
        record = json.loads((folder / f"{name}.json").read_text())
        for sample in record["samples"]:
            sample.pop("events", None)
        (TARGET / "inspect_said.json").write_text(json.dumps(record) + "\n")


EXAMPLES = Path(__file__).parents[1] / "examples" / "logs"


def examples(folder: Path) -> None:
    """Write a log of each of two tasks, 60 questions in 5 epochs: the mock model knows how sure it may be of sums, but not of dates.

    Without the transcripts, which calviz does not read.
    """
    import zipfile

    from inspect_ai import Task, eval
    from inspect_ai._util.zipfile import zipfile_compress_kwargs
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.log import read_eval_log, write_eval_log
    from inspect_ai.model import ModelOutput, ModelUsage, get_model
    from inspect_ai.scorer import answer

    zipfile_compress_kwargs["compression"] = zipfile.ZIP_DEFLATED  # read without another package
    EXAMPLES.mkdir(exist_ok=True)
    draw, questions, epochs = Random(0), 60, 5
    for task in ("dates", "sums"):
        known = [draw.betavariate(1.6, 0.8) for _ in range(questions)]
        truths = [draw.randrange(1000, 1990) for _ in known]
        samples = [
            Sample(input=f"{task}, question {j}", target=str(truth), id=j + 1)
            for j, truth in enumerate(truths)
        ]
        outputs = []
        for _ in range(epochs):
            for p, truth in zip(known, truths, strict=True):
                said = truth if draw.random() < p else truth + draw.choice((-10, -1, 1, 10))
                sure = 0.9 if task == "dates" else p
                sure = round(100 * min(max(draw.gauss(sure, 0.07), 0.02), 0.99))
                text = f"Confidence: {sure}%\nANSWER: {said}"
                outputs.append(ModelOutput.from_content("mockllm/model", text))
                outputs[-1].usage = ModelUsage(input_tokens=5, output_tokens=2, total_tokens=7)
        (log,) = eval(
            Task(dataset=MemoryDataset(samples, name=task), scorer=answer("line"), name=task, epochs=epochs),
            model=get_model("mockllm/model", custom_outputs=outputs),
            log_dir=str(folder / task), log_format="eval", display="none", max_samples=1,
        )  # fmt: skip
        whole = read_eval_log(log.location)
        for sample in whole.samples or ():
            sample.events, sample.attachments, sample.messages = [], {}, []
        whole.eval.model_args, whole.eval.revision, whole.reductions = {}, None, None
        write_eval_log(whole, str(EXAMPLES / f"{task}.eval"), format="eval")


def main() -> None:
    """Write all of them."""
    if sys.argv[1:] == ["examples"]:
        with tempfile.TemporaryDirectory() as name:
            examples(Path(name))
        return
    if sys.argv[1:] == ["eval"]:
        with tempfile.TemporaryDirectory() as name:
            own_form(Path(name))
        return
    TARGET.mkdir(exist_ok=True)
    for old in TARGET.glob("samples_*.jsonl"):
        old.unlink()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        accuracies = harness(folder)
        inspect(folder / "inspect")
        own_form(folder / "eval")
        examples(folder / "examples")
    record = {"versions": {p: version(p) for p in ("lm_eval", "inspect_ai")}, "results": accuracies}
    (TARGET / "recorded.json").write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
