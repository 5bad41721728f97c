"""Logs of language models: those that the tools themselves wrote (`benchmarks/record_logs.py`), and broken ones.

What is right, and how often, is what the tools' own results say.
"""

import codecs
import gzip
import json
import math
import shutil
import zipfile
from pathlib import Path

import numpy as np
import pytest

import calviz
from calviz.core.errors import InputError, OptionError
from calviz.data import ReadingOptions, read
from tests.inputs.command_line import run
from tests.inputs.examples import REFUSED_LOGS, logs
from tests.inputs.simulated import softmax

LOGS = Path(__file__).parents[2] / "inputs/logs"
RECORDED = json.loads((LOGS / "recorded.json").read_text())["results"]


def log_of(task: str) -> Path:
    (path,) = LOGS.glob(f"samples_{task}_*.jsonl")
    return path


@pytest.mark.parametrize("task", RECORDED)
def test_accuracies_are_those_of_the_harness_raw_and_by_length(task):
    for scores, metric in (("logits", "acc"), ("logits_per_byte", "acc_norm")):
        p = calviz.load(log_of(task), scores=scores)
        right = (p.probs.argmax(axis=1) == p.labels).mean()
        assert right == pytest.approx(RECORDED[task][metric])


def test_probabilities_are_the_softmax_of_the_log_likelihoods():
    rows = [json.loads(line) for line in log_of("four_choices").read_text().splitlines()]
    logits = np.array([[float(one[0]) for one in row["filtered_resps"]] for row in rows])
    p = calviz.load(log_of("four_choices"))
    expected = softmax(logits)
    np.testing.assert_allclose(p.probs, expected, rtol=1e-12)
    assert p.class_names == ("A", "B", "C", "D")
    assert p.groups["subject"].values().tolist() == [row["doc"]["subject"] for row in rows]
    # The same two answers to all questions name the classes.
    assert calviz.load(log_of("two_choices")).class_names == ("yes", "no")


def test_a_folder_of_tasks_is_read_as_one_and_judged_by_task(tmp_path):
    for file in LOGS.glob("samples_*.jsonl"):
        shutil.copy(file, tmp_path)
    # An earlier run of a task does not count, nor does what is no log.
    log = log_of("two_choices")
    earlier = "samples_two_choices_2020-01-01T00-00-00.000000.jsonl"
    (tmp_path / earlier).write_text("".join(log.read_text().splitlines(keepends=True)[:3]))
    (tmp_path / "results.json").write_text("{}")
    loaded = read(tmp_path)
    assert loaded.first.n == 50
    assert loaded.first.groups["task"].counts() == {"four_choices": 30, "two_choices": 20}
    assert "different numbers of choices (2, 4)" in loaded.notices[1].message
    assert "1 log of a task that was run again later was left out" in loaded.notices[0].message
    right = dict(zip(loaded.first.groups["task"].levels, (10, 6), strict=True))
    for task, rows in right.items():
        assert loaded.first.correct[loaded.first.groups["task"].mask(task)].sum() == rows
    assert len(loaded.digest) == 64
    out = run("audit", tmp_path, "--by", "task", "--risk", "0.5")
    assert out.exit_code == 0
    lines = {line.split()[0]: line for line in out.stdout.splitlines() if "_choices  " in line}
    assert "33.33 %" in lines["four_choices"]  # its accuracy
    wrong = run("audit", tmp_path, "--by", "site")
    assert wrong.exit_code == 2
    assert "no group column 'site'; known: task, subject." in wrong.stderr


def test_questions_with_other_numbers_of_choices_by_choice_by_number_and_by_length(tmp_path):
    for file in LOGS.glob("samples_*.jsonl"):
        shutil.copy(file, tmp_path)
    rows = {
        task: [json.loads(line) for line in log_of(task).read_text().splitlines()]
        for task in RECORDED
    }
    by_task = {}
    for task, value in rows.items():
        raw = np.array([[float(one[0]) for one in row["filtered_resps"]] for row in value])
        by_task[task] = softmax(raw)
    each = calviz.load(tmp_path, choices="each")
    assert each.class_names == ("wrong", "right")
    assert each.n == 30 * 4 + 20 * 2
    assert each.labels.sum() == 50
    assert len(each.clusters.levels) == 50
    for task, p in by_task.items():
        mask = each.groups["task"].mask(task)
        np.testing.assert_allclose(each.probs[mask, 1], p.ravel(), rtol=1e-12)
    four = calviz.load(tmp_path, choices=4)
    np.testing.assert_allclose(four.probs, by_task["four_choices"], rtol=1e-12)
    # What the harness calls acc_norm, of all tasks together.
    right = sum(RECORDED[task]["acc_norm"] * len(rows[task]) for task in rows)
    assert calviz.load(tmp_path, scores="logits_per_byte").correct.sum() == pytest.approx(right)
    for choices, text in (("7", "no question has 7 choices"), ("some", "must be top, each")):
        with pytest.raises(OptionError, match=text):
            calviz.load(tmp_path, choices=choices)
    with pytest.raises(OptionError, match="'choices' is for questions"):
        calviz.load(LOGS / "inspect_stated.json", choices="each")


def test_answers_with_scores_have_the_same_top_choice_beside_answers_without(tmp_path):
    alone = calviz.load(log_of("four_choices"), choices="top")
    shutil.copy(log_of("four_choices"), tmp_path)
    shutil.copy(LOGS / "inspect_stated.json", tmp_path)
    both = calviz.load(tmp_path)
    scored = both.confidence[np.flatnonzero(both.groups["task"].values() == "four_choices")]
    np.testing.assert_array_equal(scored, alone.confidence)


def test_logs_of_two_models_lie_in_two_folders(tmp_path):
    for model in ("small", "large"):
        (tmp_path / model).mkdir()
        shutil.copy(log_of("four_choices"), tmp_path / model)
    data = calviz.load(tmp_path)
    assert data.groups["model"].counts() == {"large": 30, "small": 30}


@pytest.mark.parametrize("packed", [bytes, gzip.compress])
def test_a_log_with_a_byte_order_mark_is_read_like_one_without(packed):
    log = log_of("four_choices")
    data = read(packed(codecs.BOM_UTF8 + log.read_bytes()), name=log.name).first
    np.testing.assert_array_equal(data.probs, calviz.load(log).probs)


@pytest.mark.parametrize("logprob", [800.0, 0.5, float("inf"), float("nan"), True, None])
def test_what_is_no_log_probability_is_not_read_as_one(logprob):
    log = json.loads((LOGS / "inspect_letters.json").read_text())
    tokens = log["samples"][1]["output"]["choices"][0]["logprobs"]["content"]
    tokens[-1]["logprob"] = logprob
    with pytest.raises(InputError, match="row 2: the sample has neither a stated confidence nor"):
        read(json.dumps(log).encode(), name="log.json")
    tokens[-1]["logprob"] = 1e-9  # rounding
    assert read(json.dumps(log).encode(), name="log.json").models


def test_letters_and_stated_confidences_of_inspect():
    letters = calviz.load(LOGS / "inspect_letters.json")
    assert letters.class_names == ("A", "B", "C")
    # P(A), P(B), P(C) were .7, .2 and .06 of the first answer, in which nothing else was considered.
    np.testing.assert_allclose(letters.probs[0], np.array([0.7, 0.2, 0.06]) / 0.96, rtol=1e-9)
    text = json.loads((LOGS / "inspect_letters.json").read_text())["results"]["scores"][0]
    accuracy = text["metrics"]["accuracy"]["value"]
    assert (letters.probs.argmax(axis=1) == letters.labels).mean() == pytest.approx(accuracy)
    stated = read(LOGS / "inspect_stated.json")
    assert stated.first.confidence.tolist() == [0.7] * 6
    assert stated.first.correct.mean() == pytest.approx(accuracy)
    assert stated.notices[0].message.startswith("the confidences are whole numbers from 0 to 100")


@pytest.mark.parametrize("name", REFUSED_LOGS)
def test_a_log_that_cannot_be_used_is_refused_in_one_sentence(name):
    with pytest.raises(InputError) as caught:
        read(logs()[name], name=name)
    text = str(caught.value)
    assert text.startswith(name)
    assert text.endswith(".")
    for part in REFUSED_LOGS[name]:
        assert part in text


def test_targets_that_are_texts_are_told_from_indices_by_the_logs_own_accuracy():
    # "2" is the third choice, and the text of the first; the top choice is the first, and the log says that it is right.
    row = {
        "doc_id": 0,
        "doc": {},
        "target": "2",
        "arguments": [["q", " 2"], ["q", " 4"], ["q", " 6"]],
        "filtered_resps": [[-0.1, True], [-3.0, False], [-4.0, False]],
        "acc": 1.0,
    }
    lines = "\n".join(json.dumps(row | {"doc_id": j}) for j in range(3)).encode()
    assert read(lines, name="samples_sums.jsonl").first.labels.tolist() == [0, 0, 0]
    wrong = "\n".join(json.dumps(row | {"doc_id": j, "target": 1}) for j in range(3)).encode()
    (notice, *_) = read(wrong, name="samples_sums.jsonl").notices
    assert (
        "in 3 of 3 rows the top choice is right and the log's own 'acc' says wrong"
        in notice.message
    )


def test_rows_of_json_with_different_choices_are_judged_by_the_top_one():
    rows = [
        {"probs": {"a": 0.2, "b": 0.8}, "label": "b", "task": "t"},
        {"probs": {"a": 0.5, "b": 0.2, "c": 0.3}, "label": "c", "task": "u"},
    ]
    loaded = read("\n".join(map(json.dumps, rows)).encode(), name="x.jsonl")
    assert loaded.first.confidence.tolist() == [0.8, 0.5]
    assert loaded.first.correct.tolist() == [True, False]
    assert "choices (2, 3): the top choice of each row is judged" in loaded.notices[0].message
    each = read(
        b"\n".join(json.dumps(r).encode() for r in rows),
        name="x.jsonl",
        options=ReadingOptions(choices="each"),
    )
    assert each.first.probs[:, 1].tolist() == [0.2, 0.8, 0.5, 0.2, 0.3]
    assert each.first.labels.tolist() == [0, 1, 0, 0, 1]
    # The same rows as lists of log-probabilities; a row that is no distribution is refused as before.
    rows = [{"logprobs": [math.log(0.2), math.log(0.8)], "label": 1}]
    rows.append({"logprobs": [math.log(0.5), math.log(0.2), math.log(0.3)], "label": 2})
    again = read("\n".join(map(json.dumps, rows)).encode(), name="x.jsonl").first
    np.testing.assert_allclose(again.confidence, [0.8, 0.5])
    bad = b'{"probs": {"a": 0.2, "b": 0.8}, "label": "b"}\n{"probs": {"a": 0.5, "b": 0.2, "c": 0.1}, "label": "c"}'
    with pytest.raises(InputError, match=r"'probs\[c\]' is empty"):
        read(bad, name="x.jsonl")


@pytest.mark.parametrize(
    ("line", "confidence"),
    [
        ('{"confidence": 85, "correct": true}', 0.85),
        ('{"logprob": -0.5, "correct": true}', math.exp(-0.5)),
    ],
)
def test_stated_confidences_and_log_probabilities_are_read_and_said(line, confidence):
    loaded = read(f"{line}\n{line}\n".encode(), name="x.jsonl")
    assert loaded.first.confidence.tolist() == pytest.approx([confidence] * 2)
    assert loaded.notices[0].code == "DATA011"


def test_a_scale_of_agreement_is_no_percentage():
    with pytest.raises(InputError, match="outside"):
        read(
            b'{"confidence": 5, "correct": true}\n{"confidence": 4, "correct": true}',
            name="x.jsonl",
        )


def test_the_lists_of_labels_and_scores_of_a_pipeline_are_read():
    rows = [
        {
            "scores": [{"label": "pos", "score": 0.9}, {"label": "neg", "score": 0.1}],
            "label": "pos",
        },
        {
            "scores": [{"label": "neg", "score": 0.6}, {"label": "pos", "score": 0.4}],
            "label": "pos",
        },
    ]
    p = read("\n".join(map(json.dumps, rows)).encode(), name="x.jsonl").first
    assert p.class_names == ("neg", "pos")
    assert p.probs[:, 1].tolist() == [0.9, 0.4]


@pytest.mark.parametrize("name", ["letters", "stated"])
@pytest.mark.parametrize("header", ["header.json", "_journal/start.json"])
def test_the_zip_form_of_an_inspect_log_is_read_like_its_json(tmp_path, name, header):
    log = json.loads((LOGS / f"inspect_{name}.json").read_text())
    path = tmp_path / "log.eval"
    parts = {"header.json": ("version", "status", "eval"), "_journal/start.json": ("version", "eval")}  # fmt: skip
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(header, json.dumps({key: log[key] for key in parts[header]}))
        for number, sample in enumerate(log["samples"]):
            archive.writestr(f"samples/{number}_epoch_1.json", json.dumps(sample))
    loaded, same = read(path), read(LOGS / f"inspect_{name}.json")
    assert loaded.first.fingerprint() == same.first.fingerprint()
    unfinished = any("ended with the status 'started'" in n.message for n in loaded.notices)
    assert unfinished == (header != "header.json")
    for cut in (0.5, 0.9):
        with pytest.raises(InputError):
            read(path.read_bytes()[: int(cut * path.stat().st_size)], name="log.eval")
