"""Statements about decisions: the cost of miscalibration, the range of useful cutoffs, and thresholds with a risk."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial

import numpy as np
from scipy.special import expit, logit, softmax

from benchmarks.claims import simulation
from calviz.comparison.guaranteed_thresholds import threshold
from calviz.core.blocks import Factor
from calviz.core.p_values import at_most
from calviz.core.predictions import ConfidencePredictions, Predictions
from calviz.figures.decision_cost import Costs, Decision
from calviz.figures.net_benefit import NetBenefit
from calviz.figures.risk_coverage import RiskCoverage
from calviz.figures.slice_gaps import levels_of
from calviz.recalibrators.prior import base_rates
from calviz.sample.sample import Sample

RESAMPLES = 499
#: Rows to compute a truth.
TRUTH_ROWS = 400_000


@dataclass(frozen=True)
class Rows:
    """Scores, and the probability that each row is a hit, with weights or clusters if any; of a cluster all rows may be alike."""

    score: np.ndarray
    chance: np.ndarray
    weights: np.ndarray | None = None
    clusters: np.ndarray | None = None

    def hits(self, rng):
        """Draw the hits: one for each cluster, where there are clusters."""
        u = rng.random(self.score.size)
        return (u if self.clusters is None else u[self.clusters]) < self.chance

    def confidences(self, rng, **own):
        """Draw a file of confidences."""
        return ConfidencePredictions(
            confidence=self.score,
            correct=self.hits(rng),
            weights=self.weights,
            clusters=self.clusters,
            **own,
        )

    def predictions(self, rng):
        """Draw a file of two classes."""
        return Predictions(
            probs=self.score,
            labels=self.hits(rng).astype(int),
            weights=self.weights,
            clusters=self.clusters,
        )


def events(n, rng, *, mean=0.0, spread=1.5, slope=1.0, shift=0.0):
    """Logits normal; the scores have them times `slope`, plus `shift`."""
    e = rng.normal(mean, spread, n)
    return Rows(expit(slope * e + shift), expit(e))


def top_of_two(n, rng, *, spread=1.5, slope=1.0, shift=0.0):
    """The predicted one of two classes."""
    rows = events(n, rng, spread=spread, slope=slope, shift=shift)
    positive = rows.score >= 0.5
    return Rows(
        np.where(positive, rows.score, 1 - rows.score),
        np.where(positive, rows.chance, 1 - rows.chance),
    )


def top_of_several(n, rng, *, k=5, alpha=0.6, sharpen=1.0):
    q = rng.dirichlet(np.full(k, alpha), n).clip(1e-9)
    q /= q.sum(axis=1, keepdims=True)
    return Rows(softmax(sharpen * np.log(q), axis=1).max(axis=1), q.max(axis=1))


def beta(n, rng, *, a=4.0, b=1.0, power=1.0):
    score = rng.beta(a, b, n)
    return Rows(score, score**power)


def tied(n, rng, *, make):
    rows = make(n, rng)
    score = np.round(rows.score, 1).clip(0.05, 0.99)
    return Rows(score, score)


def through(n, rng, *, at, slope):
    """Off everywhere but at one score, where decisions are right: their logits differ from there by a factor."""
    rows = top_of_two(n, rng, spread=3)
    return Rows(
        rows.score, expit(logit(at) + slope * (logit(rows.score.clip(1e-6, 1 - 1e-6)) - logit(at)))
    )


def weighted(n, rng, *, make):
    """Uneven weights, larger where the model is less often right: with these, 1,000 rows are worth about 500."""
    rows = make(n, rng)
    weights = np.exp(rng.normal(0, 0.75, n) + 1.5 * (1 - rows.chance))
    return Rows(rows.score, rows.chance, weights=weights)


def clustered(n, rng, *, make, size=5):
    """Clusters of rows with the same score and outcome."""
    rows = make(n // size, rng)
    of = np.repeat(np.arange(n // size), size)
    return Rows(rows.score[of], rows.chance[of], clusters=of)


def uneven(n, rng, *, make):
    """Clusters of 1 to about 15 rows, with scores of their own, whose outcomes depend on each other."""
    return replace(make(n, rng), clusters=np.repeat(np.arange(n), rng.geometric(0.4, n))[:n])


def varied(cases, *names):
    """Some of the cases with weights, and in clusters."""
    return {
        f"{name}, {how}": partial(change, make=cases[name])
        for name in names
        for how, change in (("weighted", weighted), ("clusters of 5", clustered))
    }


def truth(make):
    """Very many rows, by descending score, and their weights."""
    rows = make(TRUTH_ROWS, np.random.default_rng(99))
    order = np.argsort(-rows.score, kind="stable")
    weights = np.ones(TRUTH_ROWS) if rows.weights is None else rows.weights
    return rows.score[order], rows.chance[order], weights[order]


# ---- What miscalibration costs

COSTS = {"10, 1, 0": Costs(10, 1, 0), "4, 1, 0": Costs(4, 1, 0), "10, 3, 1": Costs(10, 3, 1)}
CALIBRATED = {
    "calibrated, 2 classes": top_of_two,
    "calibrated, 5 classes": top_of_several,
    "calibrated, confident": partial(beta, a=8, b=1),
    "calibrated, ties": partial(tied, make=partial(beta, a=4, b=1)),
}
OFF = {
    "logits x 1.5, 2 classes": partial(top_of_two, slope=1.5),
    "logits x 2, 2 classes": partial(top_of_two, slope=2.0),
    "logits x 1.5, 5 classes": partial(top_of_several, sharpen=1.5),
    "logits x 0.5, 2 classes": partial(top_of_two, slope=0.5),
    "shifted by 0.7, 2 classes": partial(top_of_two, shift=0.7),
    "chance is the squared score": partial(beta, power=2.0),
}
HARMLESS = {
    "all right with the probability at which keeping pays": 0.0,
    "logits x 4 around the threshold that is right": 0.25,
}


OFF_TOO = OFF | varied(OFF, "logits x 2, 2 classes")


@cache
def true_cost(case: str, costs: Costs) -> float:
    """Cost at face value minus that of the best threshold, on very many rows."""
    score, chance, weights = truth(OFF_TOO[case])
    more = weights * (chance * costs.right + (1 - chance) * costs.wrong - costs.referred)
    upto = np.append(0.0, np.cumsum(more)) / weights.sum()
    return float(upto[np.searchsorted(-score, -costs.face_value, side="right")] - upto.min())


def decided(make, n: int, costs: Costs, rng, *, other: bool = False) -> Decision:
    """The cost of a drawn file; `other`: with the best threshold chosen on other rows."""

    def sample() -> Sample:
        return Sample(
            make(n, rng).confidences(rng), seed=int(rng.integers(2**31)), resamples=RESAMPLES
        )

    return Decision.of_rows(sample(), sample() if other else None, costs=costs, band=False)


def says_cost(figure: Decision) -> bool:
    return "So miscalibration costs" in figure.reading() and "nothing" not in figure.reading()


def costs_of(
    measures: str,
    cases: dict[str, Callable],
    outcome: Callable,
    sizes: tuple[int, ...] = (200, 1_000),
    costs: dict[str, Costs] = COSTS,
    *,
    other: bool = False,
    **required: float,
) -> None:
    """Make a simulation of each case, size and set of costs."""
    for case, make in cases.items():
        for name, own in costs.items():
            for n in sizes:

                def draw(rng, case=case, make=make, own=own, n=n):
                    return outcome(decided(make, n, own, rng, other=other), case, own)

                words = f"{case}, costs {name}, {n:,} rows"
                simulation("cost-of-miscalibration", measures, words, **required)(draw)


def said(figure, _case, _costs):
    return says_cost(figure)


def covers(figure, case, costs):
    ends = figure.excess_interval
    return bool(ends is not None and ends.low <= true_cost(case, costs) <= ends.high)


FIRST = {"10, 1, 0": COSTS["10, 1, 0"]}
TWO = FIRST | {"4, 1, 0": COSTS["4, 1, 0"]}
costs_of("said of calibrated models", CALIBRATED, said, at_most=0.025)
costs_of(
    "said of calibrated models",
    varied(CALIBRATED, "calibrated, 2 classes"),
    said,
    (1_000,),
    TWO,
    at_most=0.025,
)
costs_of(
    "said of calibrated models, threshold chosen on other rows",
    {"calibrated, 2 classes": top_of_two},
    said,
    costs=TWO,
    other=True,
    at_most=0.025,
)
for name, own in TWO.items():
    costs_of(
        "said where the threshold at face value is right",
        {
            case: partial(through, at=own.face_value, slope=slope)
            for case, slope in HARMLESS.items()
        },
        said,
        costs={name: own},
        at_most=0.05,
    )
costs_of("said of models that are off", OFF, said, (200, 1_000, 5_000), FIRST)
costs_of("the interval covers the true cost", OFF_TOO, covers, costs=TWO, at_least=0.93)


# ---- Where the scores are useful

USELESS = {
    "uniform, 30 % hits": lambda n, rng: Rows(rng.beta(2, 4, n), np.full(n, 0.3)),
    "uniform, 50 % hits": lambda n, rng: Rows(rng.random(n), np.full(n, 0.5)),
    "rare, 2 % hits": lambda n, rng: Rows(rng.beta(1, 30, n), np.full(n, 0.02)),
    "nearly constant, 30 % hits": lambda n, rng: Rows(
        expit(logit(0.3) + rng.normal(0, 0.05, n)), np.full(n, 0.3)
    ),
    "four values, 20 % hits": lambda n, rng: Rows(
        rng.choice([0.1, 0.2, 0.3, 0.5], n), np.full(n, 0.2)
    ),
    "constant, 30 % hits": lambda n, rng: Rows(np.full(n, 0.3), np.full(n, 0.3)),
    "in reverse": lambda n, rng: Rows(*(lambda e: (expit(e), expit(-e)))(rng.normal(0, 1.5, n))),
}
USEFUL = {
    "calibrated": events,
    "calibrated, hardly tells apart": partial(events, mean=-1, spread=0.5),
    "calibrated, rare hits": partial(events, mean=-4, spread=1.2),
    "logits x 2": partial(events, slope=2.0),
    "logits + 1.5": partial(events, shift=1.5),
    "ten values": partial(tied, make=partial(events, slope=2.0)),
}
USEFUL |= varied(USEFUL, "logits x 2", "logits + 1.5")
USELESS |= varied(USELESS, "uniform, 30 % hits", "uniform, 50 % hits", "rare, 2 % hits")
CUTOFFS = np.arange(1, 100) / 100


@cache
def truly_useful(case: str) -> np.ndarray:
    """Cutoffs at which the scores have a higher net benefit than both defaults, shape (99,)."""
    score, chance, weights = truth(USEFUL[case])
    cell = np.searchsorted(CUTOFFS, score, side="right")
    n, hits = (
        np.bincount(cell, w, minlength=100)[::-1].cumsum()[::-1]
        for w in (weights, weights * chance)
    )
    net = hits[1:] - (n[1:] - hits[1:]) * CUTOFFS / (1 - CUTOFFS)
    everybody = hits[0] - (n[0] - hits[0]) * CUTOFFS / (1 - CUTOFFS)
    # Far within the error of the truth, as of cutoffs without scores on one side.
    return net > np.maximum(everybody, 0) + 1e-9 * TRUTH_ROWS


def useful_at(make, n, rng) -> NetBenefit:
    sample = Sample(
        make(n, rng).predictions(rng),
        "positive",
        seed=int(rng.integers(2**31)),
        resamples=RESAMPLES,
    )
    return NetBenefit.compute(sample, band=False)


def says_useful(figure: NetBenefit) -> bool:
    return figure.reading().startswith("Deciding by the scores is better")


for n in (200, 1_000, 5_000):
    for case, make in USELESS.items():
        simulation("useful-range", "said of useless scores", f"{case}, {n:,} rows", at_most=0.05)(
            lambda rng, make=make, n=n: says_useful(useful_at(make, n, rng))
        )
    for case, make in USEFUL.items():
        simulation(
            "useful-range", "names a cutoff where it is not", f"{case}, {n:,} rows", at_most=0.05
        )(
            lambda rng, make=make, n=n, case=case: bool(
                (useful_at(make, n, rng).useful & ~truly_useful(case)).any()
            )
        )
        simulation(
            "useful-range", "share of the useful cutoffs that is named", f"{case}, {n:,} rows"
        )(
            lambda rng, make=make, n=n, case=case: float(
                useful_at(make, n, rng).useful[truly_useful(case)].mean()
            )
        )

# ---- Thresholds with a risk


def surest_wrong(n, rng):
    """The surest rows are wrong more often than others: tests of a threshold that begin there fail."""
    rows = top_of_two(n, rng, spread=2.5)
    return Rows(rows.score, np.where(rows.score > 0.985, 0.95, rows.chance))


RANKED = {
    "calibrated": partial(top_of_two, spread=2.5),
    "the surest wrong": surest_wrong,
    "logits x 2": partial(top_of_two, spread=2.5, slope=2.0),
    "5 classes": top_of_several,
    "nearly always right": partial(beta, a=30, b=1),
    "ten values": partial(tied, make=partial(beta, a=4, b=1)),
}
RANKED |= {
    f"{name}, uneven clusters": partial(uneven, make=RANKED[name])
    for name in ("logits x 2", "nearly always right")
} | varied(RANKED, "logits x 2", "nearly always right")


@cache
def risks_from(case: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, descending, and the weight and risk of all rows from each on; shape (TRUTH_ROWS,) each."""
    score, chance, weights = truth(RANKED[case])
    upto = np.cumsum(weights)
    return score, upto, np.cumsum(weights * (1 - chance)) / upto


def true_risk(case: str, threshold: float) -> float:
    """Risk of all rows from a threshold on."""
    score, _, risk = risks_from(case)
    return float(risk[max(np.searchsorted(-score, -threshold, side="right") - 1, 0)])


def kept_of_best(choice, case: str, target: float) -> float | None:
    """Share of the rows that is kept, over the largest with a risk of at most `target`; None if there is none."""
    score, upto, risk = risks_from(case)
    whole = np.append(score[1:] != score[:-1], True)
    best = float(np.max(upto[whole & (risk <= target)], initial=0.0) / upto[-1])
    return choice.coverage / best if best else None


def at_risk(make, n, target, rng):
    sample = Sample(make(n, rng).confidences(rng), resamples=1)
    return RiskCoverage.compute(sample, band=False).at_risk(target)


def violated(choice, case, target) -> bool:
    return bool(choice.kept and true_risk(case, choice.threshold) > target)


for target in (0.1, 0.03):
    for case, make in RANKED.items():
        for n in (40, 200, 1_000, 5_000):
            words = f"{case}, {100 * target:g} %, {n:,} rows"
            simulation("threshold-risk", "the risk is larger", words, at_most=0.05)(
                lambda rng, make=make, n=n, target=target, case=case: violated(
                    at_risk(make, n, target, rng), case, target
                )
            )
            if n >= 200:
                simulation("threshold-risk", "kept, as a share of what could be", words)(
                    lambda rng, make=make, n=n, target=target, case=case: kept_of_best(
                        at_risk(make, n, target, rng), case, target
                    )
                )


def alike(n, rng):
    return Rows(rng.random(n), np.full(n, 0.8999))


def all_in_large(n, rng):
    """As many rows are wrong, in whole clusters of five rows or more, which hold 0.6^4 (1 + 4 * 0.4) of them."""
    rows = uneven(n, rng, make=alike)
    size = np.bincount(rows.clusters)[rows.clusters]
    return replace(rows, chance=np.where(size < 5, 1, 1 - 0.1001 / (0.6**4 * 2.6)))


#: A tenth of all rows is wrong from every threshold on: any threshold at all violates the risk, and chance alone decides.
EVERYWHERE = {
    "": alike,
    ", uneven clusters": partial(uneven, make=alike),
    ", in large clusters": all_in_large,
}
for n in (40, 200, 1_000, 5_000):
    for how, make in EVERYWHERE.items():
        simulation(
            "threshold-risk",
            "the risk is larger",
            f"10.01 % wrong everywhere{how}, 10 %, {n:,} rows",
            at_most=0.05,
        )(lambda rng, n=n, make=make: bool(at_risk(make, n, 0.1, rng).kept))


MORE_ROWS = ("calibrated", "5 classes", "ten values", "logits x 2", "logits x 2, clusters of 5")
MORE_ROWS += ("nearly always right, weighted", *(f"{s} % wrong everywhere" for s in (8, 15, 30)))
RANKED |= {
    f"{share} % wrong everywhere": lambda n, rng, share=share: Rows(
        rng.random(n), np.full(n, 1 - share / 100)
    )
    for share in (8, 15, 30)
}


def usable(case: str, n: int, target: float) -> bool | None:
    """Whether ten times as many more rows would show the risk of a threshold that keeps a twentieth of them; None if it is only too close to the target."""
    score, upto, risk = risks_from(case)
    fine = np.append(score[1:] != score[:-1], True) & (risk < target) & (upto >= 0.05 * upto[-1])
    q = risk[fine].clip(1e-12)
    divergence = q * np.log(q / target) + (1 - q) * np.log((1 - q) / (1 - target))
    worth = 0.2 if "clusters" in case else 0.5 if "weighted" in case else 1
    rows = 11 * n * worth * upto[fine] / upto[-1]
    return bool((rows * divergence >= np.log(20)).any()) or (None if fine.any() else False)


def hopeless(rng, *, case: str, n: int, target: float) -> bool:
    """Whether more rows are said to hardly help."""
    return at_risk(RANKED[case], n, target, rng).more_rows == np.inf


for target in (0.1, 0.05):
    for case in MORE_ROWS:
        for n in (60, 250, 2_000):
            known = usable(case, n, target)
            if known is not None:
                measures = (
                    "said where ten times as many would",
                    "said where no such threshold exists",
                )
                simulation(
                    "more-rows",
                    measures[not known],
                    f"{case}, {100 * target:g} %, {n:,} rows",
                    at_most=0.05 if known else None,
                )(partial(hopeless, case=case, n=n, target=target))


def of_tasks(rng, *, rows: int, tasks: int = 13, target: float = 0.1) -> bool:
    """Whether the threshold of any task has a larger risk: some tasks are easy, some are hard."""
    task = np.repeat(np.arange(tasks), rows)
    e = rng.normal(np.linspace(0.5, 3, tasks)[task], 1.5)
    drawn = Rows(expit(np.abs(e)), expit(np.abs(e) / 1.3))
    data = drawn.confidences(rng, groups={"task": task})
    levels = levels_of(Sample(data, resamples=1), "task", target)
    for one, choice in zip(levels.slices.slices, levels.choices, strict=True):
        mean = np.linspace(0.5, 3, tasks)[int(one.where[0][1])]
        if choice.kept and _risk_of_task(mean, choice.threshold) > target:
            return True
    return False


def _risk_of_task(mean: float, threshold: float) -> float:
    e = np.abs(np.linspace(mean - 9, mean + 9, 20_001))
    density = np.exp(-0.5 * ((np.linspace(mean - 9, mean + 9, 20_001) - mean) / 1.5) ** 2)
    kept = density * (expit(e) >= threshold)
    return float(kept @ expit(-e / 1.3) / kept.sum())


for rows in (20, 40, 60, 400):
    simulation(
        "threshold-risk",
        "the risk of any of 13 tasks is larger",
        f"10 %, {rows} rows each",
        at_most=0.05,
    )(partial(of_tasks, rows=rows))


def three_classes(n, rng, *, slope: float, shift: float) -> tuple[Predictions, np.ndarray]:
    """Rows of three classes, the first of which is frequent, and the probability that each prediction is right."""
    z = rng.normal([2, 0, 0], 2, (n, 3))
    true = softmax(z / slope + np.array([shift, 0, 0]), axis=1)
    labels = (rng.random((n, 1)) > true.cumsum(axis=1)[:, :2]).sum(axis=1)
    probs = softmax(z, axis=1)
    chance = true[np.arange(n), probs.argmax(axis=1)]
    return Predictions(probs=probs, labels=labels, class_names=("a", "b", "c")), chance


@cache
def risks_of_classes(slope: float, shift: float) -> tuple[np.ndarray, np.ndarray]:
    """Confidences of the rows that are predicted "b" or "c", descending, and the risk of all of these from each on."""
    data, chance = three_classes(TRUTH_ROWS, np.random.default_rng(0), slope=slope, shift=shift)
    rows = np.flatnonzero(data.probs.argmax(axis=1))
    score = data.probs.max(axis=1)[rows]
    order = np.argsort(-score)
    wrong = 1 - chance[rows][order]
    return score[order], np.cumsum(wrong) / np.arange(1, rows.size + 1)


def of_classes(rng, *, n: int, target: float, halved: bool, **how: float) -> bool:
    """Whether what is kept as "b" or "c" is wrong more often, where the first class hides it."""
    data, _ = three_classes(n, rng, **how)
    of = {"predicted": ("b", "c")}
    if halved:
        at = threshold(data, target, seed=int(rng.integers(2**31)), **of).threshold
    else:
        choice = RiskCoverage.compute(data, band=False, resamples=1, **of).at_risk(target)
        at = choice.threshold if choice.kept else None
    score, risk = risks_of_classes(**how)
    return at is not None and bool(risk[max(np.searchsorted(-score, -at) - 1, 0)] > target)


for n in (200, 1_000, 5_000):
    for slope, shift in ((1.0, 0.0), (1.5, 0.0), (1.0, 0.7)):
        for halved in (False, True):
            off = f"logits x {slope:g}, first class + {shift:g}"
            rows = f"{n:,} rows{', half of them to choose on' * halved}"
            how = {"slope": slope, "shift": shift, "halved": halved}
            simulation(
                "threshold-risk",
                "the risk of the chosen predicted classes is larger",
                f"{off}, 10 %, {rows}",
                at_most=0.05,
            )(partial(of_classes, n=n, target=0.1, **how))


# ---- Thresholds with other risks, for groups, and what others keep

COST = Costs(5, 2, 0)
PROMISED = {
    "events": partial(events, spread=2.0),
    "events, logits x 2": partial(events, spread=2.0, slope=2.0),
    "rare events": partial(events, mean=-2.5, spread=2.0),
    "ten values": partial(tied, make=partial(events, spread=2.0)),
}
PROMISED |= varied(PROMISED, "events")
PROMISED_COST = {
    f"top of two, {name}": RANKED[name]
    for name in RANKED
    if name == "calibrated" or name.startswith("logits x 2")
}
EVERY_PROMISED = PROMISED | PROMISED_COST
TARGETS = {"precision": 0.2, "recall": 0.2, "fpr": 0.2, "cost": 1.3}


@cache
def true_risks(case: str, of: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Scores, descending, and share kept and risk if all rows down to each are kept, shape (TRUTH_ROWS,) each."""
    score, chance, weights = truth(EVERY_PROMISED[case])
    kept, hits = np.cumsum(weights), np.cumsum(weights * chance)
    n, misses = kept[-1], kept - hits
    risk = {
        "precision": misses / kept,
        "recall": 1 - hits / hits[-1],
        "fpr": misses / misses[-1],
        "cost": (misses * COST.wrong + hits * COST.right + (n - kept) * COST.referred) / n,
    }[of]
    return score, kept / n, risk


def at_threshold(case: str, of: str, threshold: float) -> tuple[float, float]:
    """Share kept, and risk, of very many rows."""
    score, kept, risk = true_risks(case, of)
    at = max(int(np.searchsorted(-score, -threshold, side="right")) - 1, 0)
    return float(kept[at]), float(risk[at])


def chosen(rng, *, case: str, n: int, of, others: float = 0.1, **options):
    """Choose a threshold on n rows, observed on a share of as many others."""
    names = (of,) if isinstance(of, str) else of
    rows = EVERY_PROMISED[case](n + round(n * others), rng)
    split = np.where(np.arange(rows.score.size) < n, "calibration", "test")
    data = rows.confidences(rng) if "cost" in names else rows.predictions(rng)
    return threshold(
        replace(data, splits=Factor.of(split)),
        [TARGETS[name] for name in names],
        of=names,
        costs=(COST.wrong, COST.referred, COST.right),
        **options,
    )


def promised(rng, **how):
    """The threshold alone."""
    return chosen(rng, **how).threshold


def refuted(rng, *, case: str, of, **how) -> bool:
    """Whether the other rows are said to break a promise that holds."""
    choice = chosen(rng, case=case, of=of, others=1, **how)
    if not choice.refuted:
        return False
    names = (of,) if isinstance(of, str) else of
    risks = ((at_threshold(case, name, choice.threshold)[1], TARGETS[name]) for name in names)
    return all(risk <= target for risk, target in risks)


def memorised(rng, *, n: int, moved: float) -> bool | None:
    """Whether other rows refute a threshold that was set on rows whose logits are moved to the labels; None if there is no threshold."""
    rows = events(2 * n, rng, spread=2.0)
    data, known = rows.predictions(rng), np.arange(2 * n) < n
    score = expit(logit(rows.score) + moved * known * (2 * data.labels - 1))
    splits = np.where(known, "train", "test")
    data = Predictions(probs=score, labels=data.labels, splits=splits)
    choice = threshold(data, 0.05, choose_split="train")
    return None if choice.threshold is None else choice.refuted


def breaks(rng, *, case: str, of, **how) -> bool:
    found = promised(rng, case=case, of=of, **how)
    names = (of,) if isinstance(of, str) else of
    return found is not None and any(
        at_threshold(case, name, found)[1] > TARGETS[name] for name in names
    )


def share_of_best(found: float | None, case: str, of: str) -> float | None:
    """What is kept, over what could be; for recall, what is not kept. None if there is no such threshold."""
    score, kept, risk = true_risks(case, of)
    fine = np.append(score[1:] != score[:-1], True) & (risk <= TARGETS[of])
    kept = 1 - kept if of == "recall" else kept
    best = float(kept[fine].max(initial=0.0))
    if best <= 0:
        return None
    if found is None:
        return 0.0
    own = at_threshold(case, of, found)[0]
    return (1 - own if of == "recall" else own) / best


def by_mapie(rng, *, case: str, n: int, of: str) -> float | None:
    """MAPIE's threshold: 100 of them, Bonferroni and Holm."""
    from mapie.risk_control import BinaryClassificationController

    data = EVERY_PROMISED[case](n, rng).predictions(rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        controller = BinaryClassificationController(
            lambda x: np.stack([1 - x[:, 0], x[:, 0]], axis=1),
            risk=of,
            target_level=TARGETS[of] if of == "fpr" else 1 - TARGETS[of],
            confidence_level=0.95,
        ).calibrate(data.probs[:, 1:], data.labels)
    valid = np.ravel(controller.valid_predict_params)
    if not valid.size:
        return None
    return float(valid.max() if of == "recall" else valid.min())


for n in (300, 2_000):
    for case in PROMISED:
        for of in ("precision", "recall", "fpr", ("precision", "recall")):
            name = of if isinstance(of, str) else " and ".join(of)
            simulation(
                "threshold-risk",
                "the risk is larger",
                f"{name} of {case}, 20 %, {n:,} rows",
                at_most=0.05,
                files=1_000,
            )(partial(breaks, case=case, of=of, n=n))
    for case in PROMISED_COST:
        simulation(
            "threshold-risk",
            "the risk is larger",
            f"cost of {case}, 1.3 with costs 5, 2, 0, {n:,} rows",
            at_most=0.05,
            files=1_000,
        )(partial(breaks, case=case, of="cost", n=n))
        simulation(
            "threshold-risk",
            "kept, as a share of what could be",
            f"cost of {case}, 1.3 with costs 5, 2, 0, {n:,} rows",
        )(
            lambda rng, case=case, n=n: share_of_best(
                promised(rng, case=case, of="cost", n=n), case, "cost"
            )
        )
    for of in ("precision", "recall", "fpr"):
        for who, choose in (("", promised), (" by MAPIE", by_mapie)):
            simulation(
                "threshold-risk",
                f"kept{who}, as a share of what could be",
                f"{of} of events, 20 %, {n:,} rows",
            )(
                lambda rng, choose=choose, of=of, n=n: share_of_best(
                    choose(rng, case="events", of=of, n=n), "events", of
                )
            )


for n in (300, 2_000):
    for of, cases in (("precision", PROMISED), ("fpr", PROMISED), ("cost", PROMISED_COST)):
        for case in cases:
            simulation(
                "threshold-risk",
                "said to be refuted although the promise holds",
                f"{of} of {case}, {n:,} rows each",
                at_most=0.01,
                files=400,
            )(partial(refuted, case=case, of=of, n=n))
simulation(
    "threshold-risk",
    "refuted on new rows",
    "5 %, set on logits moved by 1.3 to the labels, 2,000 rows each",
    at_least=0.9,
)(partial(memorised, n=2_000, moved=1.3))


def kept_by_sgr(rng, *, case: str, n: int, target: float) -> float | None:
    """Selection with guaranteed risk (Geifman & El-Yaniv 2017, algorithm 2): a union bound over a binary search."""
    rows = RANKED[case](n, rng)
    order = np.argsort(-rows.score)
    errors = np.cumsum(~rows.hits(rng)[order])
    low, high, found = 1, n, None
    tests = int(np.ceil(np.log2(n)))
    for _ in range(tests):
        middle = (low + high + 1) // 2
        if at_most(errors[middle - 1], middle, target) <= 0.05 / tests:
            found, low = middle, middle
        else:
            high = middle
    score, upto, risk = risks_from(case)
    best = float(np.max(upto[risk <= target], initial=0.0) / upto[-1])
    if not best or found is None:
        return 0.0 if best else None
    kept = np.searchsorted(-score, -rows.score[order][found - 1], side="right")
    return float(upto[kept - 1] / upto[-1] / best)


for n in (200, 1_000, 5_000):
    for case in ("calibrated", "logits x 2"):
        simulation(
            "threshold-risk",
            "kept by SGR, as a share of what could be",
            f"{case}, 10 %, {n:,} rows",
        )(partial(kept_by_sgr, case=case, n=n, target=0.1))


def of_sites(rng, *, rows: int, sites: int = 13, target: float = 0.1) -> bool:
    """As `of_tasks`, with the level of what is kept as a whole left to the others."""
    site = np.repeat(np.arange(sites), rows)
    e = rng.normal(np.linspace(0.5, 3, sites)[site], 1.5)
    drawn = Rows(expit(np.abs(e)), expit(np.abs(e) / 1.3))
    data = drawn.confidences(rng, groups={"site": site})
    chosen = threshold(data, target, by="site", seed=int(rng.integers(2**31)))
    means = np.linspace(0.5, 3, sites)
    return any(
        one.threshold is not None and _risk_of_task(means[int(name)], one.threshold) > target
        for name, one in chosen.groups.items()
    )


for rows in (60, 400, 1_500):
    simulation(
        "threshold-risk",
        "the risk of any of 13 groups is larger",
        f"10 %, {rows} rows each, half of them to choose on",
        at_most=0.05,
        files=1_000,
    )(partial(of_sites, rows=rows))


# ---- A new base rate


def of_two(n, rate, rng, *, sharper=1.0):
    """Calibrated scores of two classes at a share of 30 %, drawn at another share; `sharper`: factor of their logits."""
    hit = rng.random(n) < rate
    e = 2 * rng.normal(np.where(hit, 1.0, -1.0), 1.5) / 1.5**2 + logit(0.3)
    score = expit(sharper * e)
    return np.stack([1 - score, score], axis=1), hit.astype(int)


def of_five(n, rates, rng, *, sharper=1.0):
    label = rng.choice(5, n, p=rates)
    e = rng.normal(0, 1, (n, 5))
    e[np.arange(n), label] += 1.5
    return softmax(sharper * 1.5 * e, axis=1), label


SHARES = {
    "2 classes": (of_two, 0.3, 0.1, np.array([0.9, 0.1])),
    "2 classes, rare": (of_two, 0.3, 0.02, np.array([0.98, 0.02])),
    "5 classes": (
        of_five,
        np.full(5, 0.2),
        [0.4, 0.3, 0.15, 0.1, 0.05],
        [0.4, 0.3, 0.15, 0.1, 0.05],
    ),
}


def estimated(rng, *, case: str, n: int, sharper: float = 1.0):
    make, before, after, _ = SHARES[case]
    probs, labels = make(n, before, rng)
    return base_rates(
        Predictions(probs=probs, labels=labels), make(n, after, rng, sharper=sharper)[0]
    )


def covers_shares(rng, *, case: str, n: int) -> float:
    rates, true = estimated(rng, case=case, n=n), SHARES[case][3]
    inside = [low <= r <= high for (low, high), r in zip(rates.intervals, true, strict=True)]
    return float(inside[1]) if len(inside) == 2 else float(np.mean(inside))


for n in (500, 2_000):
    for case in SHARES:
        words = f"{case}, {n:,} rows"
        simulation(
            "base-rate", "said where only the base rate changed", words, at_most=0.01, files=1_000
        )(lambda rng, case=case, n=n: estimated(rng, case=case, n=n).changed)
        simulation("base-rate", "the interval covers the share", words, at_least=0.93, files=1_000)(
            partial(covers_shares, case=case, n=n)
        )
        simulation("base-rate", "said of logits x 1.5", words)(
            lambda rng, case=case, n=n: estimated(rng, case=case, n=n, sharper=1.5).changed
        )
