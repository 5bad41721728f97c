"""Results of evaluation tools, one answer each: Humanity's Last Exam, simple-evals, HELM, OpenAI evals, promptfoo, DeepEval."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from calviz.core.errors import Finding, InputError, shortened
from calviz.data.answers import TextRules, no_confidence, stated
from calviz.data.format import Notice, Source, without_bom
from calviz.data.formats.table_formats import parsed_object, whole_json
from calviz.data.questions import Answer, lines, log_format, number_in, of_text, short_texts

Answers = tuple[list[Answer], list[Finding]]
_STEM = re.compile(r"(?:\.(?:jsonl?|gz))+$", re.IGNORECASE)


def _task(source: Source) -> dict[str, str]:
    """The name of the file: what was run, as several files are told apart."""
    return {"task": shortened(_STEM.sub("", source.name))}


def _objects(value: Any, what: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Number the objects of a list; raise InputError if it is none, or holds something else."""
    if not isinstance(value, list) or not value:
        raise InputError(f"the file has no {what}", remedy="save the results of every answer")
    for row, one in enumerate(value, start=1):
        if not isinstance(one, Mapping):
            raise InputError("this is not a JSON object", row=row)
        yield row, one


def _right(value: Any, what: str, row: int) -> bool:
    if value is None or isinstance(value, str | list | dict) or value not in (0, 1):
        missing = "is missing" if value is None else f"is {value!r:.20}"
        raise InputError(
            f"{what} {missing}, but must say whether the answer is right (true or false, 1 or 0)",
            row=row,
            remedy="score answers as right or wrong",
        )
    return bool(value)


def _left_out(count: int, of: int, why: str) -> list[Finding]:
    if not count:
        return []
    text = f"{count:,} of {of:,} rows {why}, and were left out"
    return [Notice.LOGS_AND_HINTS.finding("warning", text)]


# ---- Humanity's Last Exam

# Files ``judged_*.json``: an object by question, with ``model``, ``response``, and the judge's ``judge_response`` (``correct``: yes or no,
# ``confidence``: 0 to 100, and 100 where the response states none). Source: ``hle_eval/run_judge_results.py``.


@log_format(
    key="hle",
    label="Humanity's Last Exam (judged_*.json)",
    # The response may be longer than what is looked at; otherwise the judge's verdict is among it.
    begins=rb'\s*\{\s*"[^"]{1,200}"\s*:\s*\{\s*"model"\s*:\s*"[^"]*"\s*,\s*"response"\s*:\s*'
    rb'(?=.*"judge_response"\s*:|"(?:[^"\\]|\\.)*\\?\Z)',
    summary="The judge's verdict and the confidence that it read in each response.",
)
def answers_of_hle(source: Source) -> Answers:
    """Return the answers of a judged file, and findings about them."""
    rows = whole_json(source)
    task, answers, unstated = _task(source), [], 0
    for row, (id, one) in enumerate(rows.items(), start=1):
        judged = one.get("judge_response") if isinstance(one, Mapping) else None
        if not isinstance(judged, Mapping):
            continue
        correct, confidence = judged.get("correct"), number_in(judged, ("confidence",))
        if correct not in ("yes", "no"):
            raise InputError(f"the judge's 'correct' is {correct!r:.20}, not yes or no", row=row)
        if confidence is None or not 0 <= confidence <= 100:
            given = judged.get("confidence")
            raise InputError(
                f"the judge's 'confidence' is {given!r:.20}, not a number from 0 to 100", row=row
            )
        response = one.get("response")
        unstated += confidence == 100 and isinstance(response, str) and not stated(response)
        model = {"model": shortened(one["model"])} if isinstance(one.get("model"), str) else {}
        sure, right = confidence / 100, correct == "yes"
        answers.append(Answer(id, confidence=sure, correct=right, columns=task | model))
    if not answers:
        raise InputError(
            "no answer was judged: there is no 'judge_response'",
            remedy="run the judge of the benchmark on it (run_judge_results.py)",
        )
    findings = _left_out(len(rows) - len(answers), len(rows), "were not judged")
    if unstated:
        text = (
            f"in {unstated:,} of {len(answers):,} rows the judge's confidence is 100, as it is where a response states none, and none was "
            "found in the response"
        )
        findings.append(Notice.LOGS_AND_HINTS.finding("warning", text))
    return answers, findings


# ---- simple-evals

# Files ``<task>_<model>_<date>_allresults.json``: ``score``, ``metrics``, ``convos`` (a list of messages per question, the last one the
# answer) and ``htmls``, which alone hold the score of each question. Source: ``simple_evals.py`` and ``common.py`` (HTML_JINJA).


_SIMPLE_NAME = re.compile(r"(?P<task>[^_]+)_(?P<model>.+)_\d{8}_\d{6}(?:_DEBUG)?_allresults")
_SCORE = re.compile(r"<p>Score: ([^<]{1,40})</p>")
_SCORES = {"True": True, "1.0": True, "1": True, "False": False, "0.0": False, "0": False}


@log_format(
    key="simple-evals",
    label="simple-evals (SimpleQA and others, *_allresults.json)",
    begins=rb'\s*\{\s*"score"\s*:\s*[^,{}\[\]]{1,40},\s*"metrics"\s*:\s*(?:\{|null)',
    summary="The score of each question, and the confidence that its answer states.",
)
def answers_of_simple_evals(source: Source) -> Answers:
    """Return the answers of a result with all conversations, and findings about them."""
    log = whole_json(source)
    rules = TextRules.of(source.options)
    pages, talks = log.get("htmls"), log.get("convos")
    if not isinstance(pages, list) or not isinstance(talks, list) or len(pages) != len(talks):
        raise InputError(
            "the file has no 'htmls' and 'convos' with a score and an answer for each question",
            remedy="open the file whose name ends in _allresults.json",
        )
    name = _SIMPLE_NAME.fullmatch(_STEM.sub("", source.name))
    columns = name.groupdict() if name else _task(source)
    answers = []
    for row, (page, talk) in enumerate(zip(pages, talks, strict=True), start=1):
        found = _SCORE.findall(page) if isinstance(page, str) else []
        score = _SCORES.get(found[-1].strip(), found[-1]) if found else None
        correct = _right(score, "the score of the question", row)
        last = talk[-1] if isinstance(talk, list) and talk else {}
        text = last.get("content") if isinstance(last, Mapping) else None
        answers.append(Answer(f"{row}", correct=correct, columns=columns, **of_text(text, rules)))
    if not answers:
        raise InputError("the file has no answers", remedy="run the evaluation again")
    return answers, []


# ---- HELM

# Files ``per_instance_stats.json`` in a folder of the run's name: a list of ``instance_id``, ``perturbation``, ``train_trial_index`` and
# ``stats``, each with a ``name`` and a ``mean``. ``exact_match`` says whether the answer is right. ``max_prob`` is the softmax of the
# choices (HELM's own ``ece_10_bin`` takes it); ``logprob`` the log-probability of the generated text, 0 where the model gives none.
# Source: ``metrics/metric.py``, ``metrics/statistic.py``, ``metrics/basic_metrics.py``.


_RUN = re.compile(r"(?P<before>.*?)[:,]model=(?P<model>[^,]+)(?P<after>.*)")


@log_format(
    key="helm",
    label="HELM (per_instance_stats.json)",
    begins=rb'\s*\[\s*\{\s*"instance_id"\s*:\s*"[^"]*"\s*,\s*(?:"perturbation"\s*:\s*\{[^{}]*\}\s*,\s*)?"train_trial_index"\s*:',
    summary="Exact match of each instance, and the probability of its answer (max_prob, or logprob).",
)
def answers_of_helm(source: Source) -> Answers:
    """Return the answers of a run, and findings about them."""
    run = _RUN.fullmatch(source.path.resolve().parent.name) if source.path else None
    columns = {"task": run["before"] + run["after"], "model": run["model"]} if run else {}
    answers, missing, nonzero = [], 0, False
    for row, one in _objects(whole_json(source), "instances"):
        stats: dict[str, float] = {}
        listed = one.get("stats")
        for stat in listed if isinstance(listed, list) else ():
            name = stat.get("name") if isinstance(stat, Mapping) else None
            mean = number_in(stat, ("mean",))
            if isinstance(name, Mapping) and mean is not None:
                stats.setdefault(str(name.get("name")), mean)
        # A model without log-probabilities has zeros alone; beside others, 0 is a probability of 1.
        score = stats.get("max_prob", math.exp(min(stats.get("logprob", math.nan), 0.0)))
        nonzero |= "max_prob" in stats or score < 1
        missing = missing or row * math.isnan(score)
        perturbation = one.get("perturbation")
        kind = perturbation.get("name") if isinstance(perturbation, Mapping) else None
        answers.append(
            Answer(
                id=f"{one.get('instance_id')}/{one.get('train_trial_index')}/{kind or ''}",
                question=f"{'/'.join(columns.values())}/{one.get('instance_id')}",
                correct=_right(stats.get("exact_match"), "the statistic 'exact_match'", row),
                confidence=score,
                columns=columns | {"perturbation": str(kind or "none")},
            )
        )
    if not nonzero:
        correct = np.array([a.correct for a in answers])
        raise no_confidence(correct, [a.question for a in answers], [""])
    if missing:
        raise InputError(
            "the statistics have neither 'max_prob' nor 'logprob', so that the answer has no confidence",
            row=missing,
            remedy="run it with a model that gives log-probabilities",
        )
    return answers, []


# ---- OpenAI evals

# JSON Lines: ``spec`` first, then events with ``sample_id``, ``type`` and ``data``: "sampling" holds the text, "match" whether it is right,
# "metrics" the score of a graded one; then ``final_report``. Source: ``evals/record.py``.


@log_format(
    key="openai-evals",
    label="OpenAI evals (JSON Lines)",
    begins=rb'\s*\{\s*"spec"\s*:\s*\{\s*"completion_fns"\s*:',
    summary="Matches, or scores of a grader, and the confidence that the sampled text states.",
)
def answers_of_openai_evals(source: Source) -> Answers:
    """Return the answers of a log of events, and findings about them."""
    rules = TextRules.of(source.options)
    columns: dict[str, str] = {}
    texts: dict[str, dict[str, Any]] = {}
    events: dict[str, list[tuple[int, str, Mapping[str, Any]]]] = {"match": [], "metrics": []}
    with source.open() as stream:
        for number, line in lines(stream):
            event = parsed_object(line, number)
            data, spec = event.get("data"), event.get("spec")
            if isinstance(spec, Mapping):
                names = {"task": spec.get("eval_name"), "model": spec.get("completion_fns")}
                names = {k: v[0] if isinstance(v, list) and v else v for k, v in names.items()}
                columns = {k: shortened(v) for k, v in names.items() if isinstance(v, str)}
            if not isinstance(data, Mapping):
                continue
            id, sampled = str(event.get("sample_id")), data.get("sampled")
            if sampled is not None:
                text = sampled[0] if isinstance(sampled, list) and sampled else sampled
                texts[id] = of_text(text, rules)
            if (type := event.get("type")) in ("match", "metrics"):
                own = number_in(data)
                marks = {"correct": data.get("correct"), "score": data.get("score"), "own": own}
                events[type].append((number, id, marks))
    kind, mark = ("match", "correct") if events["match"] else ("metrics", "score")
    answers = []
    for number, id, data in events[kind]:
        fields = texts.get(id) or of_text(None, rules)
        if data["own"] is not None:
            fields = {k: fields[k] for k in fields if k == "answer"} | {"confidence": data["own"]}
        answers.append(
            Answer(
                id=f"{id}/{number}",
                question=id,
                correct=_right(data[mark], f"'{mark}' of the event", number),
                columns=columns,
                **fields,
            )
        )
    if not answers:
        raise InputError(
            "the log has no event 'match' or 'metrics', which say whether an answer is right",
            remedy="record them: evals.record.record_match, or record_metrics(score=...)",
        )
    return answers, []


# ---- promptfoo

# ``promptfoo eval --output results.json``: ``evalId`` and ``results``, whose ``results`` hold a row per test, prompt and provider with
# ``success``, ``response.output``, ``vars``, ``namedScores``, ``failureReason`` (2: an error). Source: ``src/types/index.ts`` (EvaluateResult).
# ``--output results.jsonl``: the same rows, one a line, with ``evalId``, and ``vars`` in ``testCase`` alone (``src/models/evalResult.ts``).


_PROMPTFOO_LINE = rb'\s*\{\s*"id"\s*:\s*"[^"]*"\s*,\s*"evalId"\s*:\s*"[^"]*"\s*,\s*"promptIdx"\s*:'


def _promptfoo_rows(source: Source) -> Iterator[tuple[int, Mapping[str, Any]]]:
    if re.match(_PROMPTFOO_LINE, without_bom(source.head(8192))):
        with source.open() as stream:
            for number, line in lines(stream):
                yield number, parsed_object(line, number)
        return
    results = whole_json(source).get("results")
    yield from _objects(results.get("results") if isinstance(results, Mapping) else None, "results")


@log_format(
    key="promptfoo",
    label="promptfoo (results.json, results.jsonl)",
    begins=rb'\s*\{\s*"evalId"\s*:\s*(?:null|"[^"]*")\s*,\s*"results"\s*:\s*\{|' + _PROMPTFOO_LINE,
    summary="Success of each test, and the confidence that the output states, or a named score 'confidence'.",
)
def answers_of_promptfoo(source: Source) -> Answers:
    """Return the answers of a run, and findings about them; rows that ended in an error are left out."""
    rules = TextRules.of(source.options)
    answers, failed = [], 0
    for row, one in _promptfoo_rows(source):
        if one.get("failureReason") == 2:
            failed += 1
            continue
        response, provider, test = (one.get(key) for key in ("response", "provider", "testCase"))
        test = test if isinstance(test, Mapping) else {}
        model = (provider.get("label") or provider.get("id")) if isinstance(provider, Mapping) else provider  # fmt: skip
        prompt = one.get("promptIdx")
        asked = one.get("vars") or test.get("vars") or one.get("testIdx")
        asked = json.dumps(asked, sort_keys=True, default=str)
        own = number_in(one.get("namedScores"))
        output = response.get("output") if isinstance(response, Mapping) else response
        answers.append(
            Answer(
                id=f"{one.get('id') or row}",
                question=hashlib.blake2b(asked.encode(), digest_size=8).hexdigest(),
                correct=_right(one.get("success"), "'success'", row),
                columns=_task(source)
                | ({"model": shortened(model)} if isinstance(model, str) else {})
                | ({"prompt": f"{prompt + 1}"} if isinstance(prompt, int) else {})
                | short_texts(test.get("metadata")),
                **_of_output(output, rules, own),
            )
        )
    findings = _left_out(failed, failed + len(answers), "ended in an error")
    if not answers:
        raise InputError("every row ended in an error", remedy="run the evaluation again")
    return answers, findings


def _of_output(output: Any, rules: TextRules, own: float | None) -> dict[str, Any]:
    """The confidence of an output, unless it has its own: the output is an object if the model was asked for JSON."""
    inside = number_in(output) if own is None else None
    answer = output.get("answer") if isinstance(output, Mapping) else None
    text = output if isinstance(output, str) else json.dumps(output)
    fields = of_text(text, rules, inside if own is None else own, answer)
    return fields if inside is None else fields | {"without_unit": True}


# ---- DeepEval

# Files ``test_run_*.json``: ``testCases`` with ``success``, ``actualOutput``, ``metadata``. Source: ``deepeval/test_run/api.py``.


@log_format(
    key="deepeval",
    label="DeepEval (test_run_*.json)",
    begins=rb'\s*\{\s*(?:"testFile"\s*:\s*"[^"]*"\s*,\s*)?"testCases"\s*:\s*\[',
    summary="Success of each test case, and the confidence that its output states, or that its metadata hold.",
)
def answers_of_deepeval(source: Source) -> Answers:
    """Return the answers of a test run, and findings about them; cases that were not evaluated are left out."""
    rules = TextRules.of(source.options)
    log, answers, open_cases = whole_json(source), [], 0
    cases: Any = log.get("testCases")
    if not cases and log.get("conversationalTestCases"):
        raise InputError(
            "the test cases are conversations, which have no single answer",
            remedy="evaluate single answers (LLMTestCase)",
        )
    for row, case in _objects(cases, "test cases"):
        if case.get("success") is None:
            open_cases += 1
            continue
        answers.append(
            Answer(
                id=f"{case.get('name') or row}",
                correct=_right(case["success"], "'success'", row),
                columns=_task(source) | short_texts(case.get("metadata")),
                **_of_output(case.get("actualOutput"), rules, number_in(case.get("metadata"))),
            )
        )
    if not answers:
        raise InputError("no test case was evaluated", remedy="run its metrics")
    return answers, _left_out(open_cases, open_cases + len(answers), "were not evaluated")
