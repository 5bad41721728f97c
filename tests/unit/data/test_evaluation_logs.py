"""Results of evaluation tools in their own layouts, logs of Inspect in their own form, and confidences that texts state."""

import io
import json
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import binomtest

import calviz
from calviz.core.blocks import watching
from calviz.core.errors import InputError, OptionError
from calviz.data import ReadingOptions, read
from calviz.data.answers import settled, stated
from tests.inputs import evaluation_logs as made
from tests.inputs.command_line import run

LOGS = Path(__file__).parents[2] / "inputs/logs"
FILES = made.files()

# ---- Logs of Inspect, written by Inspect itself (`benchmarks/record_logs.py`)


def cells(loaded):
    """All that is read, column by column."""
    data = loaded.first
    columns = {"confidence": data.confidence, "correct": data.correct, "ids": data.ids}
    columns |= {name: group.values() for name, group in data.groups.items()}
    return {name: np.asarray(v).tolist() for name, v in columns.items()} | {
        "clusters": data.clusters.values().tolist(),
        "notices": loaded.notices,
    }


@pytest.mark.parametrize("method", ["deflate", "zstd"])
def test_an_eval_file_and_its_conversion_to_json_give_the_same_table(method):
    loaded = read(LOGS / f"inspect_said_{method}.eval")
    assert cells(loaded) == cells(read(LOGS / "inspect_said.json"))
    # The outputs that the mock model was given; the last one states no confidence.
    said = [0.95, 0.6, 0.3, 0.8, 0.9, 0.55, 0.4]
    assert loaded.first.confidence.tolist() == pytest.approx(said)
    assert loaded.first.correct.tolist() == [True] * 5 + [False] * 2
    assert (
        "1 of 8 rows (0 right), in which none is understood, is left out: 'Zurich, I think'"
        in loaded.notices[0].message
    )


def test_the_order_is_that_of_inspect_whatever_the_order_in_the_file(tmp_path):
    whole = LOGS / "inspect_said_deflate.eval"
    turned = tmp_path / "turned.eval"
    with zipfile.ZipFile(whole) as archive, zipfile.ZipFile(turned, "w") as other:
        for name in reversed(archive.namelist()):
            other.writestr(name, archive.read(name))
    assert cells(read(turned)) == cells(read(whole))


def test_epochs_are_clusters_and_a_question_asked_once_is_none():
    said = read(LOGS / "inspect_said_zstd.eval")
    assert said.recognition.cluster_column == "question"
    assert said.first.clusters.counts() == {
        f"capitals/mockllm/model/{id}": n for id, n in ((9, 2), (10, 2), (11, 2), (12, 1))
    }
    assert calviz.load(LOGS / "inspect_said_zstd.eval", cluster_column="").clusters is None
    assert calviz.load(LOGS / "inspect_stated.json").clusters is None


def test_each_choice_of_two_epochs_has_the_question_as_its_cluster():
    log = json.loads((LOGS / "inspect_letters.json").read_text())
    log["samples"] += [sample | {"epoch": 2} for sample in log["samples"]]
    each = read(json.dumps(log).encode(), name="x.json", options=ReadingOptions(choices="each"))
    assert each.first.n == 2 * 6 * 3
    assert set(each.first.clusters.counts().values()) == {2 * 3}


def test_a_damaged_member_of_zstd_is_said_to_be_damaged():
    data = bytearray((LOGS / "inspect_said_zstd.eval").read_bytes())
    with zipfile.ZipFile(LOGS / "inspect_said_zstd.eval") as archive:
        at = archive.getinfo("samples/10_epoch_1.json").header_offset
    for offset in (0, 28, 200):
        wrong = data.copy()
        wrong[at + offset] ^= 0xFF
        with pytest.raises(InputError, match="damaged or incomplete"):
            read(bytes(wrong), name="log.eval")


def test_an_eval_file_that_unpacks_out_of_proportion_is_refused(monkeypatch):
    monkeypatch.setenv("CALVIZ_MAX_EXPANSION", "2")
    monkeypatch.setattr("calviz.core.errors.EXPANSION_FLOOR", 1_000)
    with pytest.raises(InputError, match="above the limit of 2 times the compressed size"):
        read(LOGS / "inspect_said_zstd.eval")


@pytest.mark.slow
def test_a_log_is_read_sample_by_sample():
    sample = json.loads((LOGS / "inspect_said.json").read_text())["samples"][0]
    header = {"version": 2, "status": "success", "eval": {"task": "t", "model": "m"}}
    long = "x" * 200_000
    members = {"header.json": json.dumps(header).encode()}
    for id in range(300):
        one = sample | {"id": id, "metadata": {"transcript": long}}
        members[f"samples/{id}_epoch_1.json"] = json.dumps(one).encode()
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    data = packed.getvalue()
    doing = []
    tracemalloc.start()
    with watching(doing.append):
        assert read(data, name="log.eval").first.n == 300
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20 * len(long)  # of 300
    assert "sample 200 of 300" in doing


# ---- Six tools, and generated answers of lm-evaluation-harness


@pytest.mark.parametrize("name", FILES)
def test_what_is_right_and_how_sure_is_read_from_the_tool_s_own_layout(name):
    loaded = read(FILES[name], name=name)
    np.testing.assert_allclose(loaded.first.confidence, made.PERCENT / 100)
    np.testing.assert_array_equal(loaded.first.correct, made.CORRECT)
    assert "confidence in confidence" in loaded.recognition.sentence()


GROUPS = {
    "per_instance_stats.json": {"perturbation": {"none": 20, "typos": 20}},
    "results.json": {
        "model": {"openai:some-model-0": 20, "openai:some-model-1": 20},
        "topic": {"a": 26, "b": 14},
    },
    "results.jsonl": {
        "model": {"openai:some-model-0": 20, "openai:some-model-1": 20},
        "topic": {"a": 26, "b": 14},
    },
    "test_run_20261122_181931.json": {"topic": {"a": 26, "b": 14}},
    "samples_sums_2026-11-22T18-19-31.494708.jsonl": {"subject": {"a": 26, "b": 14}},
}


@pytest.mark.parametrize("name", GROUPS)
def test_groups_and_questions_that_were_asked_again(name):
    data = read(FILES[name], name=name).first
    for group, counts in GROUPS[name].items():
        assert data.groups[group].counts() == counts
    asked_again = name in ("per_instance_stats.json", "results.json", "results.jsonl")
    assert (data.clusters is not None) == asked_again
    if asked_again:
        assert set(data.clusters.counts().values()) == {2}


def test_rows_that_have_no_answer_are_counted_and_left_out():
    for name, words in (
        ("results.json", "1 of 41 rows ended in an error, and were left out"),
        ("test_run_20261122_181931.json", "1 of 41 rows were not evaluated, and were left out"),
    ):
        assert any(words in n.message for n in read(FILES[name], name=name).notices)
    log = made.hle()
    log["more"] = {"model": "m", "response": "?"}
    log["long"] = log["6687ffb10000"] | {"response": "I do not know."}
    log["long"]["judge_response"] |= {"confidence": 100}
    loaded = read(json.dumps(log).encode(), name="judged_x.json")
    assert [n.message[:33] for n in loaded.notices] == [
        "1 of 42 rows were not judged, and",
        "in 1 of 41 rows the judge's confi",
    ]


def test_log_probabilities_of_helm_and_scores_of_a_grader():
    data = read(json.dumps(made.helm("logprob")).encode(), name="per_instance_stats.json").first
    np.testing.assert_allclose(data.confidence, made.PERCENT / 100)
    none = made.helm("logprob")
    for one in none:
        one["stats"][3]["mean"] = 0.0
    with pytest.raises(InputError, match="answers are right, but none states a confidence"):
        read(json.dumps(none).encode(), name="per_instance_stats.json")
    text = "\n".join(map(json.dumps, made.openai_evals("metrics")))
    data = read(text.encode(), name="graded.jsonl").first
    np.testing.assert_array_equal(data.correct, made.CORRECT)
    np.testing.assert_allclose(data.confidence, made.PERCENT / 100)


def test_a_long_first_response_does_not_hide_a_judged_file():
    log = made.hle()
    log["6687ffb10000"]["response"] = 'a "long" one. ' * 2_000
    assert read(json.dumps(log, indent=4).encode(), name="judged_x.json").first.n == made.N


def test_runs_of_helm_in_a_folder_are_told_apart_by_the_folders_names(tmp_path):
    for subject in ("law", "art"):
        folder = tmp_path / f"mmlu:subject={subject},model=openai_gpt2"
        folder.mkdir()
        (folder / "per_instance_stats.json").write_text(json.dumps(made.helm()))
        (folder / "run_spec.json").write_text("{}")
    data = read(tmp_path).first
    assert data.groups["task"].counts() == {"mmlu:subject=art": 40, "mmlu:subject=law": 40}
    assert len(data.clusters.levels) == 40


def test_a_folder_of_generated_answers_has_a_verdict_and_a_threshold_by_task(tmp_path):
    for task in ("sums", "products"):
        rows = "\n".join(map(json.dumps, made.harness()))
        (tmp_path / f"samples_{task}_2026-11-22T18-19-31.494708.jsonl").write_text(rows)
    out = run("audit", tmp_path, "--by", "task", "--risk", "0.5")
    assert out.exit_code == 0
    for task in ("sums", "products"):
        assert any(line.split()[:1] == [task] for line in out.stdout.splitlines())


def changed(name, change):
    log = json.loads(FILES[name])
    change(log)
    return json.dumps(log).encode()


SIMPLE = f"simpleqa_{made.MODEL}_20261122_181931_allresults.json"
DEEP = "test_run_20261122_181931.json"
JUDGED = "judged_hle_some-model.json"
FIRST = "6687ffb10000"
REFUSED = {
    "not judged": (JUDGED, lambda d: [one.pop("judge_response") for one in list(d.values())[1:]]
        + [d[FIRST].update(response="?" * 9000), d[FIRST].pop("judge_response")],
        ["no answer was judged", "run_judge_results.py"]),
    "judge says maybe": (JUDGED, lambda d: d[FIRST]["judge_response"].update(correct="maybe"),
        ["row 1", "'maybe', not yes or no"]),
    "judge's confidence": (JUDGED, lambda d: d[FIRST]["judge_response"].update(confidence=120),
        ["row 1", "'confidence' is 120, not a number from 0 to 100"]),
    "only averages": (SIMPLE, lambda d: d.pop("htmls"), ["no 'htmls'", "_allresults.json"]),
    "a score between": (SIMPLE, lambda d: d["htmls"].__setitem__(2, "<p>Score: 0.4</p>"),
        ["row 3", "score of the question is '0.4'", "right"]),
    "no exact match": ("per_instance_stats.json", lambda d: d[4]["stats"].pop(1),
        ["row 5", "'exact_match' is missing"]),
    "some without probability": ("per_instance_stats.json", lambda d: d[4]["stats"].pop(3),
        ["row 5", "neither 'max_prob' nor 'logprob'"]),
    "no probability": ("per_instance_stats.json", lambda d: [one["stats"].pop(3) for one in d],
        ["answers are right, but none states a confidence"]),
    "no results": ("results.json", lambda d: d["results"].pop("results"), ["has no results"]),
    "no success": ("results.json", lambda d: d["results"]["results"][1].pop("success"),
        ["row 2", "'success' is missing"]),
    "only errors": ("results.json", lambda d: [r.update(failureReason=2) for r in d["results"]["results"]],
        ["every row ended in an error"]),
    "conversations": (DEEP, lambda d: d.update(testCases=[], conversationalTestCases=[{}]),
        ["conversations, which have no single answer"]),
    "nothing evaluated": (DEEP, lambda d: [c.pop("success", 0) for c in d["testCases"]],
        ["no test case was evaluated"]),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_a_missing_field_is_one_sentence(case):
    name, change, words = REFUSED[case]
    with pytest.raises(InputError) as caught:
        read(changed(name, change), name=name)
    text = str(caught.value)
    assert text.startswith(name)
    assert text.endswith(".")
    for word in words:
        assert word in text


def test_events_without_a_verdict_and_a_metric_between_right_and_wrong():
    events = [e for e in made.openai_evals() if e.get("type") != "match"]
    with pytest.raises(InputError, match="no event 'match' or 'metrics'"):
        read("\n".join(map(json.dumps, events)).encode(), name="x.jsonl")
    rows = made.harness()
    rows[2]["exact_match"] = 0.5
    with pytest.raises(InputError, match=r"line 3: the metric 'exact_match' is 0\.5"):
        read("\n".join(map(json.dumps, rows)).encode(), name="samples_x.jsonl")


def test_answers_without_any_confidence_are_refused_with_their_accuracy_and_its_interval():
    rows = made.harness()
    for row in rows:
        row["resps"] = row["filtered_resps"]
    with pytest.raises(InputError) as caught:
        read("\n".join(map(json.dumps, rows)).encode(), name="samples_sums.jsonl")
    right = int(made.CORRECT.sum())
    low, high = binomtest(right, made.N).proportion_ci(method="exact")
    share, low, high = (f"{100 * one:.1f}" for one in (right / made.N, low, high))
    expected = f"{right} of 40 ({share} %, 95 % interval {low} to {high} %) answers are right"
    assert expected in str(caught.value)
    assert "--confidence-pattern" in str(caught.value)


# ---- What a text says

STATED = {
    "Answer: B. Confidence: 85%": (0.85, True),
    "**Confidence:** 85%": (0.85, True),
    '{"answer": "B", "confidence": 0.85}': (0.85, False),
    "Confidence: 85/100": (0.85, True),
    "confidence score: 8 out of 10": (0.8, True),
    "Confidence (0-100): 85": (85.0, False),
    "my confidence in this answer is about 70 percent.": (0.7, True),
    "The confidence is $100\\%$.": (1.0, True),
    "I am 0.85 sure": (0.85, False),
    "I'm 90 % certain.": (0.9, True),
    "with 85% confidence, B": (0.85, True),
    "I was 60% sure. Now: Confidence: 85%": (0.85, True),
    "Confidence: 85%, although at least 99% sure of the date": (0.85, True),
}
#: Bounds, ranges, other numbers, and numbers on no known scale.
NOT_STATED = [
    "85", "85%", "The answer is 85%.", "at least 80% sure", ">= 80% sure", "I am not 80% sure", "Confidence: 80-90%",
    "Confidence: 80% to 90%", "between 70% and 90% confident", "the 95% confidence interval", "Confidence: 1000", "Confidence: 101%",
    "Confidence: -5", "Confidence: 17/20", "Confidence: 0.85%", "Confidence: 0,85", "confidence score between 0% and 100%",
    "confidence: high", "", "The probability is 0.25",
]  # fmt: skip


@pytest.mark.parametrize("text", STATED)
def test_a_stated_confidence_is_understood(text):
    assert stated(text) == pytest.approx(STATED[text])


@pytest.mark.parametrize("text", NOT_STATED)
def test_what_states_no_confidence_is_not_guessed(text):
    assert stated(text) is None


def test_numbers_without_a_unit_are_read_by_the_scale_of_all_of_them():
    plain = np.array([True, True, True, False])
    for values, expected in (
        ([85.0, 5.0, 1.0, 0.4], [0.85, 0.05, 0.01, 0.4]),
        ([0.85, 0.5, 1.0, 0.4], [0.85, 0.5, 1.0, 0.4]),
        ([8.0, 5.0, 1.0, 0.4], [np.nan, np.nan, 1.0, 0.4]),
        ([85.0, 0.5, 1.0, 0.4], [np.nan, 0.5, 1.0, 0.4]),
    ):
        np.testing.assert_allclose(settled(np.array(values), plain)[0], expected)


TABLE = "question,response,correct,task\n" + "".join(
    f'q{j},"B, I am {p}% sure",{int(c)},{"ab"[j % 2]}\n'
    for j, (p, c) in enumerate(zip(made.PERCENT, made.CORRECT, strict=True))
)


def test_a_text_column_that_is_named_as_the_scores_is_read():
    table = TABLE + "q,who knows,1,a\n"
    options = ReadingOptions(scores=("response",))
    loaded = read(table.encode(), name="answers.csv", options=options)
    np.testing.assert_allclose(loaded.first.confidence, made.PERCENT / 100)
    np.testing.assert_array_equal(loaded.first.correct, made.CORRECT)
    assert loaded.first.groups["task"].counts() == {"a": 20, "b": 20}
    assert (
        "1 of 41 rows, in which none is understood, is left out: row 41 (line 42) 'who knows'"
        in loaded.notices[0].message
    )
    # A cell that is nothing but a number is a confidence in such a column.
    cells = "said,correct\n85/100,1\n40/100,0\n9/10,1\n"
    data = read(cells.encode(), name="x.csv", options=ReadingOptions(scores=("said",))).first
    assert data.confidence.tolist() == [0.85, 0.4, 0.9]


def test_a_pattern_of_the_user_finds_the_column_and_is_said_to_be_wrong(tmp_path):
    file = tmp_path / "answers.csv"
    file.write_text(TABLE.replace("I am ", "Sicherheit "))
    data = calviz.load(file, confidence_pattern=r"Sicherheit (\d+%)")
    np.testing.assert_allclose(data.confidence, made.PERCENT / 100)
    out = run("audit", file, "--confidence-pattern", r"sicherheit (?P<confidence>\d+%)")
    assert out.exit_code == 0
    for pattern, words in (
        ("(", "is not a regular expression"),
        ("abc", "must have the number in parentheses"),
        (r"Gewissheit (\d+)", "no text column"),
        (r"(\d+|a|b)", "several columns state a confidence"),
    ):
        table = file if "b" not in pattern else tmp_path / "two.csv"
        (tmp_path / "two.csv").write_text(TABLE.replace(",a\n", ",a 5%\n"))
        with pytest.raises(OptionError, match=words):
            calviz.load(table, confidence_pattern=pattern)
    with pytest.raises(InputError, match="no row states a confidence that is understood"):
        calviz.load(file, scores=["question"])
    log = tmp_path / "samples_sums.jsonl"
    rows = json.dumps(made.harness()[0]).replace("Confidence:", "sure:")
    log.write_text("\n".join([rows] * 2))
    assert (
        calviz.load(log, confidence_pattern=r"sure: (\S+)").confidence[0] == made.PERCENT[0] / 100
    )
