"""The same 40 answers in the layouts of evaluation tools: which are right, and the confidence that their text states."""

import json
from typing import Any

import numpy as np

N = 40
_rng = np.random.default_rng(8)
PERCENT = _rng.integers(1, 21, N) * 5
CORRECT = _rng.random(N) < PERCENT / 130
TEXTS = [f"Because of this.\nAnswer: {j}\nConfidence: {p}%" for j, p in enumerate(PERCENT)]
MODEL = "some-model"


def hle() -> dict[str, Any]:
    """``judged_<predictions>.json``, as ``run_judge_results.py`` of Humanity's Last Exam writes it."""
    return {
        f"6687ffb1{j:04x}": {
            "model": MODEL,
            "response": text,
            "usage": {"completion_tokens": 12, "prompt_tokens": 7, "total_tokens": 19},
            "judge_response": {
                "correct_answer": "7",
                "model_answer": f"{j}",
                "reasoning": "They are the same.",
                "correct": "yes" if right else "no",
                "confidence": int(p),
            },
        }
        for j, (text, right, p) in enumerate(zip(TEXTS, CORRECT, PERCENT, strict=True))
    }


def simple_evals() -> dict[str, Any]:
    """``simpleqa_<model>_<date>_allresults.json``, as ``simple_evals.py`` writes it; an escaped answer speaks of a score."""
    page = (
        "<h3>Prompt conversation</h3>\n<pre>{}</pre>\n<h3>Results</h3>\n<p>Correct Answer: 7</p>\n"
        "<p>Extracted Answer: &lt;p&gt;Score: True&lt;/p&gt;</p>\n<p>Score: {}</p>"
    )
    return {
        "score": float(CORRECT.mean()),
        "metrics": {"is_correct": float(CORRECT.mean()), "is_not_attempted": 0.0},
        "htmls": [page.format(t, bool(c)) for t, c in zip(TEXTS, CORRECT, strict=True)],
        "convos": [
            [{"content": "Which?", "role": "user"}, {"content": t, "role": "assistant"}]
            for t in TEXTS
        ],
        "metadata": {"example_level_metadata": [None] * N},
    }


def helm(stat: str = "max_prob") -> list[dict[str, Any]]:
    """``per_instance_stats.json``, as ``helm-run`` writes it; each question a second time, with typing errors."""

    def value(name: str, mean: float) -> dict[str, Any]:
        key = {"name": name, "split": "test"}
        rest = {"count": 1, "sum": mean, "sum_squared": mean**2, "min": mean, "max": mean}
        return {"name": key, **rest, "mean": mean, "variance": 0, "stddev": 0.0}

    score = PERCENT / 100 if stat == "max_prob" else np.log(PERCENT / 100)
    return [
        {
            "instance_id": f"id{j // 2}",
            **({"perturbation": {"name": "typos", "robustness": True}} if j % 2 else {}),
            "train_trial_index": 0,
            "stats": [
                value("num_references", 4.0),
                value("exact_match", float(CORRECT[j])),
                value("quasi_exact_match", 1.0),
                value(stat, float(score[j])),
            ],
        }
        for j in range(N)
    ]


def openai_evals(kind: str = "match") -> list[dict[str, Any]]:
    """The events of ``oaieval``'s local recorder; ``kind`` is "match", or "metrics" for a graded answer."""
    spec = {
        "completion_fns": [MODEL],
        "eval_name": "sums.dev.v0",
        "base_eval": "sums",
        "split": "dev",
    }
    made = {"created_by": "", "created_at": "2026-11-22 18:19:31.494708+00:00"}
    events: list[dict[str, Any]] = [{"spec": spec | {"run_config": {}, "run_id": "r", **made}}]
    for j in range(N):
        id, right = f"sums.dev.{j}", bool(CORRECT[j])
        asked = {"prompt": [{"role": "user", "content": "Which?"}], "sampled": [TEXTS[j]]}
        judged = {"correct": right, "expected": "7", "picked": "7" if right else None}
        graded = {"choice": "Y" if right else "N", "score": float(right)}
        data = judged if kind == "match" else graded
        for type, content in (("sampling", asked), (kind, data)):
            at = {"run_id": "r", "event_id": len(events) - 1, "sample_id": id, "type": type}
            events.append(at | {"data": content, **made})
    return [*events, {"final_report": {"accuracy": float(CORRECT.mean())}, "run_id": "r"}]


def promptfoo() -> dict[str, Any]:
    """``promptfoo eval --output results.json``: each test with two providers, and one row that ended in an error."""
    rows: list[dict[str, Any]] = [
        {
            "cost": 0,
            "gradingResult": {"pass": bool(CORRECT[j]), "score": 1, "reason": "as expected"},
            "id": f"11c0-{j}",
            "latencyMs": 3,
            "namedScores": {},
            "prompt": {"raw": "Which?", "label": "Which {{n}}?"},
            "promptIdx": j % 2,
            "provider": {"id": f"openai:{MODEL}-{j % 2}", "label": ""},
            "response": {"output": TEXTS[j], "tokenUsage": {}},
            "score": float(CORRECT[j]),
            "success": bool(CORRECT[j]),
            "testCase": {"vars": {"n": j // 2}, "metadata": {"topic": "ab"[j % 3 == 0]}},
            "testIdx": j // 2,
            "vars": {"n": j // 2},
            "failureReason": 0 if CORRECT[j] else 1,
        }
        for j in range(N)
    ]
    failed = {
        "error": "429",
        "failureReason": 2,
        "id": "x",
        "success": False,
        "score": 0,
        "vars": {},
    }
    rows.append(failed)
    summary = {
        "version": 3,
        "timestamp": "2026-11-22T18:19:31.494Z",
        "prompts": [],
        "results": rows,
    }
    return {
        "evalId": "eval-a",
        "results": summary | {"stats": {}},
        "config": {},
        "shareableUrl": None,
    }


def promptfoo_lines() -> list[dict[str, Any]]:
    """``promptfoo eval --output results.jsonl``: the rows by themselves, in the order of the fields there."""
    first = ("promptIdx", "testIdx", "testCase", "prompt", "score", "success", "response")
    return [
        {"id": row["id"], "evalId": "eval-a", **{key: row[key] for key in first if key in row}}
        | {key: value for key, value in row.items() if key != "vars"}
        | {"persisted": True}
        for row in promptfoo()["results"]["results"]
        if row["failureReason"] != 2
    ]


def deepeval() -> dict[str, Any]:
    """``test_run_<date>.json``: outputs in JSON with a confidence, and one case that was not evaluated."""
    metric = {"name": "Correctness", "threshold": 0.5, "score": 0.9, "strictMode": False}
    cases: list[dict[str, Any]] = [
        {
            "name": f"test_case_{j}",
            "input": "Which?",
            "actualOutput": json.dumps({"answer": j, "confidence": PERCENT[j] / 100}),
            "success": bool(CORRECT[j]),
            "metricsData": [metric | {"success": bool(CORRECT[j])}],
            "order": j,
            "metadata": {"topic": "ab"[j % 3 == 0]},
        }
        for j in range(N)
    ]
    cases.append({"name": "open", "input": "Which?", "actualOutput": "?", "order": N})
    return {"testCases": cases, "conversationalTestCases": [], "testPassed": 1, "testFailed": 39}


def harness() -> list[dict[str, Any]]:
    """``samples_<task>_<date>.jsonl`` of lm-evaluation-harness for generated answers, with two filters."""
    return [
        {
            "doc_id": j,
            "doc": {"question": "Which?", "subject": "ab"[j % 3 == 0]},
            "target": "7",
            "arguments": {"gen_args_0": {"arg_0": "Which?", "arg_1": {"until": ["Q:"]}}},
            "resps": [[TEXTS[j]]],
            "filtered_resps": [f"{j}"],
            "filter": name,
            "metrics": ["exact_match"],
            "doc_hash": "0",
            "prompt_hash": "0",
            "target_hash": "0",
            "exact_match": float(CORRECT[j]) if name == "strict-match" else 0.0,
        }
        for name in ("strict-match", "flexible-extract")
        for j in range(N)
    ]


def files() -> dict[str, bytes]:
    """All of them, by the name that the tool gives."""
    whole = {
        "judged_hle_some-model.json": json.dumps(hle(), indent=4),
        f"simpleqa_{MODEL}_20261122_181931_allresults.json": json.dumps(simple_evals(), indent=2),
        "per_instance_stats.json": json.dumps(helm(), indent=2),
        "2611221819_match.jsonl": "\n".join(map(json.dumps, openai_evals())) + "\n",
        "results.json": json.dumps(promptfoo(), indent=2),
        "results.jsonl": "\n".join(map(json.dumps, promptfoo_lines())) + "\n",
        "test_run_20261122_181931.json": json.dumps(deepeval()),
        "samples_sums_2026-11-22T18-19-31.494708.jsonl": "\n".join(map(json.dumps, harness())),
    }
    return {name: text.encode() for name, text in whole.items()}
