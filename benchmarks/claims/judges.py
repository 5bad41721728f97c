"""A judge corrected by human labels: intervals cover, groups are told apart only where they differ, labels that are asked for are enough."""

from __future__ import annotations

from itertools import product

import numpy as np

from benchmarks.claims import simulation
from calviz.comparison.judging import Judged, judge

ROWS = 2_000
#: Sensitivity and specificity of the judge, and share of yes.
JUDGES = ((0.6, 0.6), (0.6, 0.95), (0.95, 0.6), (0.8, 0.8), (0.95, 0.95))
PREVALENCES = (0.05, 0.2, 0.5)


def says(rng, people, sensitivity, specificity):
    """Verdicts of a judge with these error rates."""
    right = np.where(people, sensitivity, specificity)
    return np.where(rng.random(people.size) < right, people, ~people).astype(float)


def some(rng, people, labels):
    """Labels of so many rows, drawn at random; nan elsewhere."""
    chosen = rng.permutation(people.size) < labels
    return np.where(chosen, people, np.nan)


def has_both(human):
    return np.nanmin(human) < np.nanmax(human)


def drawn(rng, labels, rates, prevalence) -> Judged | None:
    """Rows of a judge; None if all labels are of one class, which is refused."""
    people = rng.random(ROWS) < prevalence
    human = some(rng, people, labels)
    return judge(says(rng, people, *rates), human) if has_both(human) else None


def holds(estimate, truth) -> bool:
    return estimate.interval.low <= truth <= estimate.interval.high


def _recommended(judged):
    return judged.corrected[judged.recommended]


SHOWN = {
    "the interval covers": (_recommended, {"at_least": 0.93, "at_most": 0.98}),
    "Rogan-Gladen covers": (lambda j: j.corrected["rogan-gladen"], {"at_least": 0.93}),
    "the judge alone covers": (lambda j: j.naive, {}),
}
for (measures, (of, required)), labels, rates, prevalence in product(
    SHOWN.items(), (50, 200, 1_000), JUDGES, PREVALENCES
):
    if not required and (labels > 50 or rates[0] != rates[1]):
        continue

    def _covered(rng, of=of, labels=labels, rates=rates, prevalence=prevalence):
        judged = drawn(rng, labels, rates, prevalence)
        return None if judged is None else holds(of(judged), prevalence)

    simulation(
        "judge",
        measures,
        f"{labels:,} labels of {ROWS:,} rows, sensitivity {rates[0]:g}, specificity {rates[1]:g}, {100 * prevalence:g} % yes",
        files=1_000,
        **required,
    )(_covered)


def _scores(rng, people):
    """A judge's score that tells people's labels apart, and is too sharp."""
    z = np.where(people, 1.0, -1.0) + 1.2 * rng.normal(size=people.size)
    return 1 / (1 + np.exp(-4 * z - 1))


def _of_scores(rng, labels, prevalence, method):
    people = rng.random(ROWS) < prevalence
    human = some(rng, people, labels)
    if np.nansum(human) < 2:
        return None
    judged = judge(_scores(rng, people), human)
    return holds(_recommended(judged.recalibrated(method) if method else judged), prevalence)


for labels, prevalence, method in product((50, 200), (0.05, 0.5), (None, "platt", "isotonic")):
    simulation(
        "judge",
        "the interval covers",
        f"{labels} labels, scores{f', recalibrated by {method}' if method else ''}, {100 * prevalence:g} % yes",
        at_least=0.93,
        at_most=0.98,
        files=500,
    )(lambda rng, a=(labels, prevalence, method): _of_scores(rng, *a))


def _active(rng, rates, prevalence, method):
    """Half of the labels drawn at random, the other half where they tell most."""
    people = rng.random(ROWS) < prevalence
    verdicts, human = says(rng, people, *rates), some(rng, people, 100)
    if not has_both(human):
        return None
    following = judge(verdicts, human).next(100, seed=int(rng.integers(1 << 30)))
    human[following.rows] = people[following.rows]
    return holds(judge(verdicts, human, chance=following.chance).corrected[method], prevalence)


for rates, prevalence, method in product(JUDGES[2:], PREVALENCES, ("ppi", "human")):
    simulation(
        "judge",
        "the interval covers, labels drawn where they tell most",
        f"200 labels, sensitivity {rates[0]:g}, specificity {rates[1]:g}, {100 * prevalence:g} % yes, {method}",
        at_least=0.93,
        at_most=0.98,
        files=500,
    )(lambda rng, a=(rates, prevalence, method): _active(rng, *a))


# ---- Systems, and the judge's errors


def systems(rng, labels, rates, shares) -> Judged:
    """Rows of several systems, of which the judge has error rates of its own for each."""
    system = rng.integers(len(shares), size=ROWS)
    people = rng.random(ROWS) < np.array(shares)[system]
    each = np.array(rates)[system]
    verdicts = says(rng, people, each[:, 0], each[:, 1])
    return judge(verdicts, some(rng, people, labels), system)


ALIKE, DRIFTING = ((0.85, 0.85),) * 2, ((0.95, 0.7), (0.7, 0.95))
for name, rates, labels in product(("alike", "drifting"), (None,), (200, 600)):
    rates = ALIKE if name == "alike" else DRIFTING

    def _difference(rng, rates=rates, labels=labels):
        (found,) = systems(rng, labels, rates, (0.5, 0.5)).differences
        return found.verdict != "tied"

    simulation(
        "judge-difference",
        "equal systems told apart",
        f"{labels} labels, error rates {name}",
        at_most=0.05,
        files=1_000,
    )(_difference)

    def _naive(rng, rates=rates, labels=labels):
        a, b = systems(rng, labels, rates, (0.5, 0.5)).groups.values()
        return a.naive.interval.low > b.naive.interval.high or a.naive.interval.high < b.naive.interval.low  # fmt: skip

    simulation(
        "judge-difference", "equal systems told apart by the judge alone", f"{labels} labels, error rates {name}"
    )(_naive)  # fmt: skip


def _found(rng):
    (found,) = systems(rng, 600, DRIFTING, (0.6, 0.35)).differences
    shift = -1 if found.first == "1" else 1
    return (found.value * shift > 0) and found.verdict != "tied"


simulation(
    "judge-difference", "a difference of 25 points found", "600 labels, error rates drifting", at_least=0.9
)(_found)  # fmt: skip


def _covers(rng, labels):
    (found,) = systems(rng, labels, DRIFTING, (0.6, 0.45)).differences
    return found.interval.low <= (0.15 if found.first == "0" else -0.15) <= found.interval.high


for labels in (100, 400):
    simulation(
        "judge-difference",
        "the interval covers the difference",
        f"{labels} labels, error rates drifting",
        at_least=0.93,
        at_most=0.98,
        files=1_000,
    )(lambda rng, labels=labels: _covers(rng, labels))


def _three(rng):
    found = systems(rng, 600, ALIKE + ALIKE[:1], (0.5,) * 3).differences
    return any(d.verdict != "tied" for d in found)


simulation(
    "judge-difference", "any of three equal systems told apart", "600 labels", at_most=0.05, files=500
)(_three)  # fmt: skip

for labels, shares in product((50, 200, 600), ((0.5, 0.5), (0.8, 0.2))):
    simulation(
        "judge-errors",
        "error rates said to differ that do not",
        f"{labels} labels, {100 * shares[0]:g} and {100 * shares[1]:g} % yes",
        at_most=0.05,
        files=500,
    )(lambda rng, a=(labels, ALIKE, shares): systems(rng, *a).differ <= 0.05)
simulation(
    "judge-errors", "drifting error rates found", "200 labels, sensitivity 0.95 and 0.7, specificity 0.7 and 0.95", at_least=0.9
)(lambda rng: systems(rng, 200, DRIFTING, (0.5, 0.5)).differ <= 0.05)  # fmt: skip


def _off(rng, rates):
    """Any group said to be off where the judge errs as often in both directions."""
    found = systems(rng, 600, (rates,) * 4, (0.5,) * 4)
    return any(group.adjusted <= 0.05 for group in found.groups.values())


simulation(
    "judge-errors", "any of four groups said to be wrong in one direction", "600 labels", at_most=0.05, files=500
)(lambda rng: _off(rng, (0.8, 0.8)))  # fmt: skip
simulation(
    "judge-errors", "one direction found", "600 labels, sensitivity 0.95, specificity 0.6", at_least=0.9
)(lambda rng: _off(rng, (0.95, 0.6)))  # fmt: skip
simulation(
    "judge-errors", "labelled rows said to be unlike that are not", "100 labels, two systems", at_most=0.05, files=500
)(lambda rng: systems(rng, 100, ALIKE, (0.5, 0.3)).unlike <= 0.05)  # fmt: skip


def _picked(rng):
    """Rows that the judge calls yes are labelled twice as often."""
    people = rng.random(ROWS) < 0.4
    verdicts = says(rng, people, 0.85, 0.85)
    chosen = rng.random(ROWS) < np.where(verdicts == 1, 0.2, 0.1)
    return judge(verdicts, np.where(chosen, people, np.nan)).unlike <= 0.05


simulation(
    "judge-errors", "labelled rows found unlike", "300 labels, twice as often where the judge says yes", at_least=0.9
)(_picked)  # fmt: skip


# ---- Questions that are asked again, or of several systems


def questions(rng, number, each, labelled, shift=0.0):
    """Answers of one or more systems to each question, which may be hard for all; the judge, too, errs on some questions rather than others.

    `labelled` is a number of questions, or a negative number of rows. Without a shift, all systems have a rate of 0.5.
    """
    question, system = np.repeat(np.arange(number), each), np.tile(np.arange(each), number)
    hard = rng.beta(0.6, 0.6, number)[question]
    people = rng.random(question.size) < np.where(system == 1, hard + shift * (1 - hard), hard)
    right = rng.beta(2.55, 0.45, number)[question]
    verdicts = np.where(rng.random(question.size) < right, people, ~people).astype(float)
    rows = rng.permutation(question.size) < -labelled
    seen = (rng.permutation(number) < labelled)[question] if labelled > 0 else rows
    return verdicts, np.where(seen, people, np.nan), question, system


for each, labelled, (name, of) in product(
    (5,),
    (40, 150, -200),
    ((k, lambda j, k=k: j.corrected[k]) for k in ("ppi", "human", "rogan-gladen")),
):

    def _of_questions(rng, each=each, labelled=labelled, of=of):
        verdicts, human, question, _ = questions(rng, 400, each, labelled)
        return holds(of(judge(verdicts, human, cluster=question)), 0.5)

    what = f"{labelled} questions" if labelled > 0 else f"{-labelled} rows at random"
    simulation(
        "judge",
        f"the interval covers, questions asked again, {name}",
        f"400 questions of {each} answers, labels of {what}",
        at_least=0.93,
        at_most=0.99 if name == "rogan-gladen" else 0.98,
        files=500,
    )(_of_questions)


def _as_if_alone(rng):
    verdicts, human, *_ = questions(rng, 400, 5, 40)
    return holds(judge(verdicts, human).corrected["ppi"], 0.5)


simulation("judge", "the interval covers if it takes answers to a question as independent", "400 questions of 5 answers, labels of 40 questions")(_as_if_alone)  # fmt: skip


def _paired(rng, labelled, shift):
    verdicts, human, question, system = questions(rng, 1_000, 2, labelled, shift=shift)
    (found,) = judge(verdicts, human, system, cluster=question).differences
    return found


#: The true difference: shift times the mean of 1 - hard.
for labelled, shift in product((100, 300, -300), (0.0, 0.2)):
    what = f"{labelled} questions" if labelled > 0 else f"{-labelled} rows at random"
    simulation(
        "judge-difference",
        "the interval covers the difference, same questions",
        f"labels of {what}, a difference of {50 * shift:g} points",
        at_least=0.93,
        at_most=0.98,
        files=1_000,
    )(
        lambda rng, a=(labelled, shift): (
            (d := _paired(rng, *a)).interval.low
            <= (-1 if d.first == "0" else 1) * a[1] / 2
            <= d.interval.high
        )
    )
for each in (2, 4):

    def _differ(rng, each=each):
        verdicts, human, question, system = questions(rng, 300, each, 60)
        return judge(verdicts, human, system % 2, cluster=question).differ <= 0.05

    simulation(
        "judge-errors",
        "error rates said to differ that do not, same questions",
        f"two systems, {each} answers to each of 60 labelled questions",
        at_most=0.05,
        files=500,
    )(_differ)


# ---- Verdicts of several judges on items that people labelled once


def judges(rng, labelled, each=3, number=600, number_more=0.0) -> Judged:
    """Several judges of the same items, whose human label stands on all their rows; each judge, and each item, has error rates of its own."""
    item, who = np.repeat(np.arange(number), each), np.tile(np.arange(each), number)
    people = rng.random(number) < 0.4
    right = (rng.beta(4, 1, number)[item] + np.linspace(0.6, 0.9, each)[who]) / 2
    verdicts = np.where(rng.random(item.size) < right, people[item], ~people[item]).astype(float)
    chance = np.where(people, 1 + number_more, 1.0) if number_more else np.ones(number)
    seen = np.zeros(number, dtype=bool)
    seen[rng.choice(number, labelled, replace=False, p=chance / chance.sum())] = True
    by = {"judge": who, "task": (np.arange(number) % 4)[item]}
    return judge(verdicts, np.where(seen, people, np.nan)[item], by, cluster=item)


for each, labelled in product((3, 6), (50, 200)):
    what = f"{each} judges of 600 items, of which {labelled} have one human label each"
    simulation(
        "judge", "the interval covers, several judges", what, at_least=0.93, at_most=0.98, files=500
    )(lambda rng, a=(labelled, each): holds(_recommended(judges(rng, *a)), 0.4))
    simulation(
        "judge-errors", "labelled rows said to be unlike that are not, several judges", what, at_most=0.05, files=500
    )(lambda rng, a=(labelled, each): judges(rng, *a).unlike <= 0.05)  # fmt: skip
simulation(
    "judge-errors", "labelled rows found unlike, several judges", "3 judges of 600 items, of which those that are yes are labelled 3 times as often", at_least=0.9
)(lambda rng: judges(rng, 200, number_more=2.0).unlike <= 0.05)  # fmt: skip


# ---- How many labels


def _needed(rng, rates, prevalence, width):
    """Width with the labels that were asked for, relative to the one that was wanted."""
    people = rng.random(20_000) < prevalence
    verdicts = says(rng, people, *rates)
    labels = judge(verdicts, some(rng, people, 150)).needed(width)
    if labels is None or labels <= 150:
        return None
    found = judge(verdicts, some(rng, people, labels)).corrected["ppi"].width
    return abs(found / width - 1) < 0.25


for rates, prevalence, width in (
    ((0.85, 0.85), 0.5, 0.06),
    ((0.95, 0.95), 0.5, 0.05),
    ((0.8, 0.8), 0.2, 0.06),
):
    simulation(
        "judge-labels",
        "width within a quarter of what was asked for",
        f"150 labels at first, sensitivity and specificity {rates[0]:g}, {100 * prevalence:g} % yes, width {100 * width:g} points",
        at_least=0.8,
        files=200,
    )(lambda rng, a=(rates, prevalence, width): _needed(rng, *a))
