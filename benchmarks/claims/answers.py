"""Signals of confidence in the most frequent of several answers: equal ones are not told apart, and differences cover."""

from __future__ import annotations

from functools import cache, partial

import numpy as np

from benchmarks.claims import simulation
from calviz.comparison.compare_models import compare_models
from calviz.core.predictions import ConfidencePredictions
from calviz.data.answers import agreement

RESAMPLES = 499
#: Answers to each question, of which one is right.
CHOICES = 4


def signals(
    rng: np.random.Generator, questions: int, each: int
) -> dict[str, ConfidencePredictions]:
    """Questions of which the model knows more or less; the two stated confidences are equally good, and better than the agreement."""
    strength = rng.gamma(1.5, size=questions)
    logits = rng.standard_normal((questions, CHOICES))
    logits[:, 0] += strength
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    answer = (rng.random((questions, each, 1)) > p.cumsum(axis=1)[:, None, :-1]).sum(axis=2)
    question = np.repeat(np.arange(questions), each)
    found = agreement(question, answer.ravel(), answer.ravel() == 0)
    gives = np.flatnonzero(found.gives)
    said = answer.ravel()[gives[np.unique(question[gives], return_index=True)[1]]]
    ids = np.arange(questions)
    known = p[ids, said] + 0.2 * found.correct
    return {
        name: ConfidencePredictions(
            confidence=values.clip(0, 1), correct=found.correct, ids=ids, name=name
        )
        for name, values in {
            "agreement": found.share,
            "entropy": np.exp(-found.entropy),
            **{f"stated {j}": known + 0.2 * rng.standard_normal(questions) for j in (1, 2)},
        }.items()
    }


def told_apart(rng: np.random.Generator, *, metric: str, questions: int) -> bool:
    """Whether the two equally good signals are told apart, with all others compared too."""
    compared = compare_models(signals(rng, questions, 8), [metric], resamples=RESAMPLES)
    found = compared.difference(metric, "stated 1", "stated 2")
    return found is not None and found.verdict != "tied"


@cache
def truth(metric: str) -> float:
    """The difference of a very long table."""
    many = signals(np.random.default_rng(1), 400_000, 8)
    pair = {name: many[name] for name in ("stated 1", "agreement")}
    compared = compare_models(pair, [metric], ci=False)
    return compared["stated 1"].metrics[metric].value - compared["agreement"].metrics[metric].value


def covers(rng: np.random.Generator, *, metric: str, questions: int) -> bool | None:
    """Whether the interval of the difference of a stated confidence and the agreement holds the true one."""
    drawn = signals(rng, questions, 8)
    pair = {name: drawn[name] for name in ("stated 1", "agreement")}
    found = compare_models(pair, [metric], resamples=RESAMPLES).difference(metric, *pair)
    return None if found is None else found.interval.low <= truth(metric) <= found.interval.high


def found_better(rng: np.random.Generator) -> bool:
    """Whether the better signal is said to be better."""
    compared = compare_models(signals(rng, 600, 8), ["auroc_failure"], resamples=RESAMPLES)
    found = compared.difference("auroc_failure", "stated 1", "agreement")
    return found is not None and found.verdict == "better"


for metric in ("ece", "aurc", "auroc_failure"):
    simulation(
        "models-differ",
        "equally good signals of confidence told apart",
        f"{metric}, 4 signals, 300 questions of 8 answers",
        at_most=0.05,
    )(partial(told_apart, metric=metric, questions=300))
for metric, questions in (
    ("aurc", 200),
    ("auroc_failure", 200),
    ("aurc", 600),
    ("auroc_failure", 600),
):
    simulation(
        "models-differ",
        "the interval covers the difference of two signals",
        f"{metric}, {questions} questions of 8 answers",
        at_least=0.93,
        at_most=0.98,
        files=500,
    )(partial(covers, metric=metric, questions=questions))
simulation(
    "models-differ", "the better signal of confidence found", "AUROC of failure detection, 600 questions", at_least=0.9
)(found_better)  # fmt: skip
