"""Measure how often the verdict and the findings make false statements, and how often true ones.

    python benchmarks/sentences.py [--minutes 10] [--jobs 1] [--samples FILE] [--write]

Draws as many files with known truth as the time allows, and counts the statements about them. With ``--samples`` the result of each
is written as a line of a file; results already in it also count, so that a study may be interrupted, and
``--minutes 0`` only counts. With ``--write`` the tables go to `RESULTS.md`; `docs/uncertainty.md` explains them.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from _harness import machine, run_study, write_section
from scipy.special import expit, softmax

from calviz.core.predictions import Predictions
from calviz.sample.sample import Sample
from calviz.verdicts.analysis import findings_of
from calviz.verdicts.joint_tests import collect_evidence
from calviz.verdicts.sentence import judged

SIZES = (200, 1_000, 10_000)
#: Number of files of each size per file of the largest size.
TURNS = {200: 5, 1_000: 3, 10_000: 1}
RESAMPLES = 499
#: Findings that state miscalibration; CAL001 does so if the verdict does.
STATEMENTS = (
    "CAL002",
    "CAL012",
    "CAL013",
    "CAL017",
    "CAL020",
    "CAL021",
    "CAL022",
    "CAL023",
    "CAL026",
)
#: Rows to compute a true error without a closed form.
TRUTH_ROWS = 1_000_000


def two(n, rng, *, slope=1.0, shift=0.0, spread=1.5):
    """Draw scores expit(slope e) and events with probability expit(e + shift), e normal; returns also the gap per row."""
    e = rng.normal(0, spread, n)
    score, chance = expit(slope * e), expit(e + shift)
    labels = rng.random(n) < chance
    return np.column_stack([1 - score, score]), labels.astype(int), np.abs(score - chance)


def several_classes(n, rng, *, k, alpha, sharpen=1.0):
    """Draw labels from Dirichlet probabilities, whose logarithms are then multiplied by `sharpen`."""
    q = rng.dirichlet(np.full(k, alpha), n).clip(1e-9)
    q /= q.sum(axis=1, keepdims=True)
    labels = (rng.random((n, 1)) > q.cumsum(axis=1)[:, :-1]).sum(axis=1)
    probs = softmax(sharpen * np.log(q), axis=1)
    return probs, labels, np.abs(probs.max(axis=1) - q.max(axis=1))


def even(n, rng, *, k):
    """Draw nearly equal probabilities, and labels that are independent of them."""
    z = rng.normal(0, 0.02, (n, k))
    probs = softmax(z, axis=1)
    labels = (rng.random((n, 1)) > probs.cumsum(axis=1)[:, :-1]).sum(axis=1)
    return probs, labels, np.zeros(n)


def unrelated(n, rng):
    """Draw confident scores that say nothing about the events: an AUROC of 1/2, far from calibrated."""
    score = expit(rng.normal(0, 1.5, n))
    labels = rng.random(n) < 0.5
    return np.column_stack([1 - score, score]), labels.astype(int), np.abs(score - 0.5)


def reversed_scores(n, rng, *, shift=-0.545):
    """Draw scores that are lower with the event, normal on the scale of the logits: an AUROC of Phi(shift / sqrt 2), here 0.35."""
    labels = rng.random(n) < 0.5
    e = rng.normal(size=n) + shift * labels
    score, chance = expit(e), expit(shift * (e - shift / 2))
    return np.column_stack([1 - score, score]), labels.astype(int), np.abs(score - chance)


CASES = {
    "calibrated, 2 classes": (two, "positive"),
    "calibrated, 2 classes, top label": (two, "top-label"),
    "calibrated, 5 classes": (partial(several_classes, k=5, alpha=0.6), "top-label"),
    "calibrated, 100 classes": (partial(several_classes, k=100, alpha=0.05), "top-label"),
    "logits x 1.05, 5 classes": (
        partial(several_classes, k=5, alpha=0.6, sharpen=1.05),
        "top-label",
    ),
    "logits x 1.3, 5 classes": (partial(several_classes, k=5, alpha=0.6, sharpen=1.3), "top-label"),
    "logits x 1.1, 2 classes": (partial(two, slope=1.1), "positive"),
    "logits x 1.5, 2 classes": (partial(two, slope=1.5), "positive"),
    "forecasts too high, 2 classes": (partial(two, shift=-0.35), "positive"),
    "forecasts too high, top label": (partial(two, shift=-0.35), "top-label"),
    "useless, 2 classes": (partial(two, spread=0.02), "positive"),
    "useless, 5 classes": (partial(even, k=5), "top-label"),
    "unrelated, 2 classes": (unrelated, "positive"),
    "AUROC 0.35, 2 classes": (reversed_scores, "positive"),
}
CALIBRATED = tuple(case for case in CASES if case.startswith(("calibrated", "useless")))
#: Cases in which no largest probability is too low, so that nothing may be called underconfident.
ONE_SIDED = ("logits x 1.05, 5 classes", "logits x 1.3, 5 classes")


def measure_file(case, n, run):
    """Statements about one file."""
    make, reduction = CASES[case]
    rng = np.random.default_rng([run, n, list(CASES).index(case)])
    probs, labels, _ = make(n, rng)
    groups = {"a": rng.integers(0, 4, n), "b": rng.integers(0, 10, n)}
    data = Predictions(probs=probs, labels=labels, groups=groups)
    sample = Sample(data, reduction, seed=run, resamples=RESAMPLES)
    v, facts = judged(sample), sample.once(collect_evidence)
    codes = sorted({f.code for f in findings_of(sample)})
    return {
        "direction": v.direction,
        "reduction": v.reduction,
        "beyond": bool(v.beyond_noise),
        "low": bool(facts.sides[1]),
        "slices": v.slices_off,
        "apart": bool(v.tells_apart),
        "reverse": bool(v.in_reverse),
        "below": v.ece_below,
        "codes": codes,
    }


def draw_turn(turn):
    """Draw files of all cases and sizes."""
    for case in CASES:
        for n, times in TURNS.items():
            for i in range(times):
                yield case, n, measure_file(case, n, turn * max(TURNS.values()) + i)


def share(rows, condition):
    """Per cent of the files for which a condition holds."""
    return f"{100 * np.mean([bool(condition(row)) for row in rows]):.1f} %"


def states(row):
    """Whether the verdict or a finding states any miscalibration."""
    return row["beyond"] or row["slices"] or set(row["codes"]) & set(STATEMENTS)


def tables(results):
    """Tables of the statements about calibrated files, and about others."""
    yield "### Calibrated files: statements of miscalibration\n"
    yield "| case | rows | files | verdict | slices | anything | called useless |"
    yield "| --- | --- | --- | --- | --- | --- | --- |"
    for case in CALIBRATED:
        for n in SIZES:
            rows = results[case, n]
            if rows:
                yield (
                    f"| {case} | {n:,} | {len(rows)} | {share(rows, lambda r: r['beyond'])} | "
                    f"{share(rows, lambda r: r['slices'])} | {share(rows, states)} | "
                    f"{share(rows, lambda r: not r['apart'])} |"
                )
    everything = [r for case in CALIBRATED for n in SIZES for r in results[case, n]]
    yield (
        f"| all | | {len(everything)} | {share(everything, lambda r: r['beyond'])} | "
        f"{share(everything, lambda r: r['slices'])} | {share(everything, states)} | |"
    )
    yield "\n### Miscalibrated files\n"
    yield (
        "| case | rows | files | true ECE (points) | beyond noise | over | under | both | no direction | "
        "wrongly too low somewhere | called useless |"
    )
    yield "|" + " --- |" * 11
    for case in CASES:
        if case in CALIBRATED:
            continue
        truth = true_error(case)
        for n in SIZES:
            rows = results[case, n]
            if rows:
                ways = " | ".join(
                    share(rows, lambda r, way=way: r["direction"] == way and r["beyond"])
                    for way in ("over", "under", "mixed", "off")
                )
                low = share(rows, lambda r: r["low"]) if case in ONE_SIDED else ""
                yield (
                    f"| {case} | {n:,} | {len(rows)} | {100 * truth:.2f} | {share(rows, lambda r: r['beyond'])} | "
                    f"{ways} | {low} | {share(rows, lambda r: not r['apart'])} |"
                )
    yield '\n### "The scores rank in reverse"\n'
    yield "| case | rows | files | said | called useless | both |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for case in CASES:
        for n in SIZES:
            # Files of earlier studies were not asked.
            rows = [r for r in results[case, n] if "reverse" in r]
            if rows:
                yield (
                    f"| {case} | {n:,} | {len(rows)} | {share(rows, lambda r: r['reverse'])} | "
                    f"{share(rows, lambda r: not r['apart'])} | "
                    f"{share(rows, lambda r: r['reverse'] and not r['apart'])} |"
                )
    yield '\n### "ECE is below ... with 95 % confidence"\n'
    yield "| case | rows | files | true ECE (points) | median bound | holds |"
    yield "| --- | --- | --- | --- | --- | --- |"
    for case in CASES:
        truth = true_error(case)
        for n in SIZES:
            # With two classes and two reductions, the numbers are those of the worse one.
            rows = [r for r in results[case, n] if r["reduction"] == CASES[case][1]]
            if rows and truth < 0.03:
                bound = 100 * np.median([r["below"] for r in rows])
                yield (
                    f"| {case} | {n:,} | {len(rows)} | {100 * truth:.2f} | {bound:.2f} | "
                    f"{share(rows, lambda r, truth=truth: r['below'] >= truth)} |"
                )


def true_error(case):
    """E |score - probability of a hit|, on very many rows; 0 for a calibrated model."""
    if case in CALIBRATED:
        return 0.0
    rows = TRUTH_ROWS if "2 classes" in case or "top label" in case else TRUTH_ROWS // 10
    return float(CASES[case][0](rows, np.random.default_rng(99))[2].mean())


def main() -> None:
    results, write = run_study(__doc__, draw_turn, minutes=10)
    head = (
        f"`python benchmarks/sentences.py --write` on {machine()}. {RESAMPLES} resamples; every file has two group "
        "columns of 4 and 10 values. Shares of files. The standard error of 3 % is 1.2 points with 200 files, and 0.5 "
        "with 1,000. `docs/uncertainty.md` explains.\n"
    )
    text = "\n".join([head, *tables(results)])
    print(text)
    if write:
        write_section("Sentences", text)


if __name__ == "__main__":
    main()
